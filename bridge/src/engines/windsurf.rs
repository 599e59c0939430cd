//! Windsurf.

use super::{Access, Engine, Format, Lifetime, Place, Root, in_map, nothing_else};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling};

/// Windsurf.
pub static ENGINE: Engine = Engine {
    id: "windsurf",
    title: "Windsurf",
    aliases: &["codeium"],
    programs: &["windsurf"],
    clients: &["windsurf", "Windsurf", "codeium"],
    format: Format::Json,
    user: Place {
        root: Root::Home {
            variable: "",
            folder: ".codeium/windsurf",
        },
        names: &["mcp_config.json"],
    },
    project: None,
    entry_at: &in_map("mcpServers"),
    lifetime: Lifetime::User,
    variable: Some("${env:CLOPEN_TOKEN}"),
    entry,
    further: nothing_else,
    spelling: Spelling::AS_LISTED,
    dialect: Dialect::OPENAI,
    most_output: None,
    invents: &[],
    reasons: &[("`serverUrl`", "an entry with `url` doesn't connect")],
    notes: &[],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "serverUrl": access.address,
        "headers": access.headers,
    })
}
