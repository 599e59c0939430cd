//! Qwen Code.

use super::{
    Access, Change, Connection, Engine, Format, Lifetime, Place, Root, Scope, allowed, in_map,
};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling, TooLong};

const USER: Place = Place {
    root: Root::Home {
        variable: "",
        folder: ".qwen",
    },
    names: &["settings.json"],
};

const PROJECT: Place = Place {
    root: Root::Project(".qwen"),
    names: &["settings.json"],
};

/// Qwen Code.
pub static ENGINE: Engine = Engine {
    id: "qwen",
    title: "Qwen Code",
    aliases: &["qwen-code"],
    programs: &["qwen"],
    clients: &["qwen"],
    format: Format::Json,
    user: USER,
    project: Some(PROJECT),
    entry_at: &in_map("mcpServers"),
    lifetime: Lifetime::Project,
    variable: Some("${CLOPEN_TOKEN}"),
    entry,
    further,
    spelling: Spelling {
        before: "mcp__clopen-mcp__",
        keeps: Some("_-"),
        mark: 8,
        too_long: TooLong::Cut { to: 63, ending: 8 },
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::OPENAI,
    most_output: None,
    invents: &[],
    reasons: &[
        (
            "`permissions.allow`",
            "without a person to ask, Qwen Code refuses every tool that isn't named there; only tools that change nothing are",
        ),
        (
            "`alwaysLoadTools`",
            "tools are shown by name only until the model searches for them, otherwise",
        ),
    ],
    notes: &[
        "Of a project's settings, the server is used once it is approved: `qwen mcp approve clopen-mcp`, again with each new token.",
        "The names of tools that change nothing are those of the day; `connect qwen` once more adds new ones.",
        "Of a result, the model sees the structured content, then the text.",
    ],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "httpUrl": access.address,
        "headers": access.headers,
        "alwaysLoadTools": true,
    })
}

fn further(connection: &Connection, scope: Scope) -> Vec<Change<'static>> {
    let place = match scope {
        Scope::User => USER,
        Scope::Project => PROJECT,
    };
    vec![allowed(place, &connection.read_only_tools)]
}
