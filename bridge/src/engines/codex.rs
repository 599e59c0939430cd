//! Codex.

use super::{
    Access, Engine, Format, Lifetime, Place, Root, TOKEN_VARIABLE, Token, in_map, nothing_else,
};
use serde_json::{Value, json};
use tool_runtime::{Dialect, NAMESPACE, Spelling, TooLong};

/// Codex.
pub static ENGINE: Engine = Engine {
    id: "codex",
    title: "Codex",
    aliases: &["codex-cli"],
    programs: &["codex"],
    clients: &["codex"],
    format: Format::Toml,
    user: Place {
        root: Root::Home {
            variable: "CODEX_HOME",
            folder: ".codex",
        },
        names: &["config.toml"],
    },
    project: Some(Place {
        root: Root::Project(".codex"),
        names: &["config.toml"],
    }),
    entry_at: &in_map("mcp_servers"),
    lifetime: Lifetime::Stream,
    variable: Some("bearer_token_env_var"),
    entry,
    further: nothing_else,
    // The model sees a namespace, `mcp__clopen_mcp`, and this in it.
    spelling: Spelling {
        before: "mcp__clopen_mcp__",
        apart: true,
        keeps: Some("_"),
        too_long: TooLong::Cut {
            to: 128,
            ending: 13,
        },
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::OPENAI,
    most_output: None,
    invents: &[],
    reasons: &[(
        "`required`",
        "the first turn doesn't wait for a server otherwise, and a bridge that isn't there goes unnoticed; entries of external servers go without, since Codex would not start at all once one is gone",
    )],
    notes: &[
        "Tools that say that they change nothing run without approval; `default_tools_approval_mode = \"approve\"` lets the others run too.",
        "The configuration of a project is read once the project is trusted.",
        "Of a result with structured content, the model sees that alone.",
    ],
};

fn entry(access: &Access<'_>) -> Value {
    let mut entry = json!({ "url": access.address });
    // A server that is gone keeps nobody from the others.
    if access.name == NAMESPACE {
        entry["required"] = true.into();
    }
    match access.token {
        Token::Unneeded => {}
        Token::Variable => entry["bearer_token_env_var"] = TOKEN_VARIABLE.into(),
        Token::Written(_) => entry["http_headers"] = access.headers.clone(),
    }
    entry
}
