//! Goose.

use super::{Access, Engine, Format, Lifetime, Place, Root, in_map, nothing_else};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling};

/// Goose.
pub static ENGINE: Engine = Engine {
    id: "goose",
    title: "Goose",
    aliases: &[],
    programs: &["goose"],
    clients: &["goose"],
    format: Format::Yaml,
    user: Place {
        root: if cfg!(windows) {
            Root::Application("Block/goose/config")
        } else {
            Root::Config("goose")
        },
        names: &["config.yaml"],
    },
    project: None,
    entry_at: &in_map("extensions"),
    lifetime: Lifetime::User,
    variable: None,
    entry,
    further: nothing_else,
    spelling: Spelling {
        before: "clopen-mcp__",
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::OPENAI,
    most_output: None,
    invents: &[],
    reasons: &[
        ("`enabled`", "an extension is off without it"),
        (
            "`timeout`",
            "seconds that a call may take; Goose wants a number",
        ),
    ],
    notes: &[],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "enabled": true,
        "type": "streamable_http",
        "name": access.name,
        "description": format!("The tools of {}", access.name),
        "uri": access.address,
        "headers": access.headers,
        "timeout": 300,
    })
}
