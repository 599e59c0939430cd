//! Gemini CLI.

use super::{
    Access, Change, Connection, Engine, Format, Lifetime, Place, Root, Scope, Step, Wanted, in_map,
};
use serde_json::{Value, json};
use tool_runtime::{Dialect, NAMESPACE, Spelling, TooLong};

/// Gemini CLI.
pub static ENGINE: Engine = Engine {
    id: "gemini",
    title: "Gemini CLI",
    aliases: &["gemini-cli"],
    programs: &["gemini"],
    clients: &["gemini"],
    format: Format::Json,
    user: Place {
        root: Root::Home {
            variable: "",
            folder: ".gemini",
        },
        names: &["settings.json"],
    },
    project: Some(Place {
        root: Root::Project(".gemini"),
        names: &["settings.json"],
    }),
    entry_at: &in_map("mcpServers"),
    lifetime: Lifetime::Project,
    variable: Some("${CLOPEN_TOKEN}"),
    entry,
    further,
    // A long name keeps its two ends: thirty characters, `...`, and thirty more.
    spelling: Spelling {
        before: "mcp_clopen-mcp_",
        keeps: Some("_-."),
        too_long: TooLong::Cut { to: 63, ending: 33 },
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::GEMINI,
    most_output: None,
    invents: &["wait_for_previous"],
    reasons: &[(
        "the rule in `policies/clopen-mcp.toml`",
        "without a person to ask, Gemini CLI offers only tools that a rule allows; this one allows those that change nothing",
    )],
    notes: &[
        "Without a person to ask, Gemini CLI runs in trusted folders only.",
        "The rule is a person's: `connect gemini` writes it, and `connect gemini --project DIR` doesn't.",
        "Gemini CLI gives every tool an argument `wait_for_previous`, which the bridge takes out.",
        "Of a result, the model sees the text alone.",
    ],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "url": access.address,
        "type": "http",
        "headers": access.headers,
    })
}

fn further(_: &Connection, scope: Scope) -> Vec<Change<'static>> {
    if scope == Scope::Project {
        return Vec::new();
    }
    let rule = json!({
        "toolName": "*",
        "mcpName": NAMESPACE,
        "toolAnnotations": { "readOnlyHint": true },
        "decision": "allow",
        "priority": 100,
    });
    vec![Change {
        place: Place {
            root: Root::Home {
                variable: "",
                folder: ".gemini/policies",
            },
            names: &["clopen-mcp.toml"],
        },
        format: Format::Toml,
        at: vec![Step::Key("rule")],
        wanted: Wanted::Value(json!([rule])),
    }]
}
