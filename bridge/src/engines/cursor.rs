//! Cursor.

use super::{Access, Engine, Format, Lifetime, Place, Root, in_map, nothing_else};
use serde_json::{Value, json};

/// Cursor.
pub static ENGINE: Engine = Engine {
    id: "cursor",
    title: "Cursor",
    aliases: &["cursor-agent"],
    programs: &["cursor", "cursor-agent"],
    clients: &["cursor", "Cursor"],
    format: Format::Json,
    user: Place {
        root: Root::Home {
            variable: "",
            folder: ".cursor",
        },
        names: &["mcp.json"],
    },
    project: Some(Place {
        root: Root::Project(".cursor"),
        names: &["mcp.json"],
    }),
    entry_at: &in_map("mcpServers"),
    lifetime: Lifetime::Project,
    variable: Some("${env:CLOPEN_TOKEN}"),
    entry,
    further: nothing_else,
    invents: &[],
    reasons: &[],
    notes: &["Cursor leaves tools out whose name has more than 60 characters with the server's."],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "url": access.address,
        "headers": access.headers,
    })
}
