//! Cursor.

use super::{Access, Engine, Format, Lifetime, Place, Root, in_map, nothing_else};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling, TooLong};

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
    // The names of server and tool have at most 60 characters together, with one between.
    spelling: Spelling {
        before: "mcp_clopen-mcp_",
        too_long: TooLong::Dropped { over: 64 },
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::OPENAI,
    most_output: None,
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
