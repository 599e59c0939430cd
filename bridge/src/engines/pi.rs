//! Pi.

use super::{Access, Engine, Format, Lifetime, Place, Root, in_map, nothing_else};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling, TooLong};

/// Pi.
pub static ENGINE: Engine = Engine {
    id: "pi",
    title: "Pi",
    aliases: &["pi-coding-agent"],
    programs: &["pi"],
    clients: &["pi"],
    format: Format::Json,
    user: Place {
        root: Root::Home {
            variable: "",
            folder: ".pi/agent",
        },
        names: &["mcp.json"],
    },
    project: Some(Place {
        root: Root::Project(".pi"),
        names: &["mcp.json"],
    }),
    entry_at: &in_map("mcpServers"),
    lifetime: Lifetime::Project,
    variable: Some("${CLOPEN_TOKEN}"),
    entry,
    further: nothing_else,
    spelling: Spelling {
        before: "mcp__clopen_mcp__",
        keeps: Some("_"),
        too_long: TooLong::Cut { to: 64, ending: 9 },
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::OPENAI,
    most_output: None,
    invents: &[],
    reasons: &[(
        "`exposure`",
        "the model sees the tools themselves, not a way to call them from code",
    )],
    notes: &[
        "Where the variable isn't set, Pi never connects, and says nothing.",
        "The file of a project is read once the project is trusted.",
        "Of a result, the model sees the text alone.",
    ],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "url": access.address,
        "headers": access.headers,
        "exposure": "direct",
    })
}
