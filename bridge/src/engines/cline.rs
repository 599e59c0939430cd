//! Cline.

use super::{Access, Engine, Format, Lifetime, Place, Root, in_map, nothing_else};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling, TooLong};

/// Cline.
pub static ENGINE: Engine = Engine {
    id: "cline",
    title: "Cline",
    aliases: &["cline-cli"],
    programs: &["cline"],
    clients: &["@cline", "cline"],
    format: Format::Json,
    user: Place {
        root: Root::Home {
            variable: "",
            folder: ".cline",
        },
        names: &["data/settings/cline_mcp_settings.json"],
    },
    project: None,
    entry_at: &in_map("mcpServers"),
    lifetime: Lifetime::User,
    variable: None,
    entry,
    further: nothing_else,
    spelling: Spelling {
        before: "clopen-mcp__",
        keeps: Some("_-"),
        joins: true,
        mark: 9,
        too_long: TooLong::Cut { to: 64, ending: 9 },
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::OPENAI,
    most_output: None,
    invents: &[],
    reasons: &[],
    notes: &["Cline runs tools without approval unless `--auto-approve` says otherwise."],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "transport": {
            "type": "streamableHttp",
            "url": access.address,
            "headers": access.headers,
        },
    })
}
