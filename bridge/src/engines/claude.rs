//! Claude Code.

use super::{
    Access, Change, Connection, Engine, Format, Lifetime, Place, Root, Scope, allowed, in_map,
};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling, TooLong};

/// Claude Code.
pub static ENGINE: Engine = Engine {
    id: "claude",
    title: "Claude Code",
    aliases: &["claude-code"],
    programs: &["claude"],
    clients: &["claude-code"],
    format: Format::Json,
    user: Place {
        root: Root::Home {
            variable: "CLAUDE_CONFIG_DIR",
            folder: "",
        },
        names: &[".claude.json"],
    },
    project: Some(Place {
        root: Root::Project(""),
        names: &[".mcp.json"],
    }),
    entry_at: &in_map("mcpServers"),
    lifetime: Lifetime::Stream,
    variable: Some("${CLOPEN_TOKEN}"),
    entry,
    further,
    spelling: Spelling {
        before: "mcp__clopen-mcp__",
        keeps: Some("_-"),
        too_long: TooLong::Dropped { over: 128 },
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::ANTHROPIC,
    // 25,000 tokens, unless `MAX_MCP_OUTPUT_TOKENS` says otherwise; a token has three bytes or more.
    most_output: Some(75_000),
    invents: &[],
    reasons: &[
        (
            "`alwaysLoad`",
            "a server that answers after two seconds is left out of the first turn otherwise, and tools are shown by name only until the model searches for them",
        ),
        (
            "`permissions.allow` in `settings.json`",
            "without a person to ask, Claude Code refuses every tool that isn't named there; only tools that change nothing are",
        ),
    ],
    notes: &[
        "The names of tools that change nothing are those of the day; `connect claude` once more adds new ones.",
        "The configuration of one conversation is given with `--mcp-config`.",
        "Claude Code reads what a project allows once the folder is trusted.",
        "Of a result with structured content, the model sees that alone.",
    ],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "type": "http",
        "url": access.address,
        "headers": access.headers,
        "alwaysLoad": true,
    })
}

fn further(connection: &Connection, scope: Scope) -> Vec<Change<'static>> {
    let root = match scope {
        Scope::User => Root::Home {
            variable: "CLAUDE_CONFIG_DIR",
            folder: ".claude",
        },
        Scope::Project => Root::Project(".claude"),
    };
    let place = Place {
        root,
        names: &["settings.json"],
    };
    vec![allowed(place, &connection.read_only_tools)]
}
