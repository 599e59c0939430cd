//! Copilot CLI.

use super::{Access, Engine, Format, Lifetime, Place, Root, in_map, nothing_else};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling, TooLong};

/// Copilot CLI.
pub static ENGINE: Engine = Engine {
    id: "copilot",
    title: "Copilot CLI",
    aliases: &["copilot-cli", "github-copilot"],
    programs: &["copilot"],
    clients: &["copilot", "github-copilot"],
    format: Format::Json,
    user: Place {
        root: Root::Home {
            variable: "COPILOT_HOME",
            folder: ".copilot",
        },
        names: &["mcp-config.json"],
    },
    project: Some(Place {
        root: Root::Project(".github"),
        names: &["mcp.json"],
    }),
    entry_at: &in_map("mcpServers"),
    lifetime: Lifetime::Stream,
    variable: Some("${CLOPEN_TOKEN}"),
    entry,
    further: nothing_else,
    spelling: Spelling {
        before: "clopen-mcp-",
        keeps: Some("_-"),
        instead: '-',
        encodes: true,
        too_long: TooLong::Cut { to: 64, ending: 0 },
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::OPENAI,
    most_output: None,
    invents: &[],
    reasons: &[(
        "`tools`",
        "only tools that are named are offered; `*` is all",
    )],
    notes: &[
        "The configuration of one conversation is given with `--additional-mcp-config`.",
        "The file of a project is read once the folder is trusted.",
        "Tools that say that they change nothing run without approval.",
        "Copilot shows the tools that it saw last before the bridge answers, also where the bridge refuses it.",
    ],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "type": "http",
        "url": access.address,
        "headers": access.headers,
        "tools": ["*"],
    })
}
