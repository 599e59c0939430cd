//! OpenCode.

use super::{Access, Engine, Format, Lifetime, Place, Root, in_map, nothing_else};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling};

/// OpenCode.
pub static ENGINE: Engine = Engine {
    id: "opencode",
    title: "OpenCode",
    aliases: &["open-code"],
    programs: &["opencode"],
    clients: &["opencode"],
    format: Format::Json,
    user: Place {
        root: Root::Config("opencode"),
        names: &["opencode.json", "opencode.jsonc", "config.json"],
    },
    project: Some(Place {
        root: Root::Project(""),
        names: &["opencode.json", "opencode.jsonc"],
    }),
    entry_at: &in_map("mcp"),
    lifetime: Lifetime::Stream,
    variable: Some("{env:CLOPEN_TOKEN}"),
    entry,
    further: nothing_else,
    spelling: Spelling {
        before: "clopen-mcp_",
        keeps: Some("_-"),
        ..Spelling::AS_LISTED
    },
    dialect: Dialect {
        booleans: false,
        ..Dialect::OPENAI
    },
    most_output: None,
    invents: &[],
    reasons: &[
        (
            "`oauth`",
            "a refused token would start a sign-in, with a registration of its own, where there is nothing to sign in to",
        ),
        (
            "`enabled`",
            "a default elsewhere may have turned servers off",
        ),
    ],
    notes: &[
        "The configuration of one conversation is given in `OPENCODE_CONFIG_CONTENT`.",
        "Of a result, the model sees the text alone.",
    ],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "type": "remote",
        "url": access.address,
        "headers": access.headers,
        "oauth": false,
        "enabled": true,
    })
}
