//! VS Code.

use super::{
    Access, Change, Connection, Engine, Format, Lifetime, Place, Root, Scope, Step, Token, Wanted,
    in_map,
};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling, TooLong};

const USER: Place = Place {
    root: Root::Application("Code/User"),
    names: &["mcp.json"],
};

const PROJECT: Place = Place {
    root: Root::Project(".vscode"),
    names: &["mcp.json"],
};

/// The name of what VS Code asks for once, and keeps sealed.
const INPUT: &str = "clopen-mcp-token";

/// VS Code.
pub static ENGINE: Engine = Engine {
    id: "vscode",
    title: "VS Code",
    aliases: &["vs-code", "code"],
    programs: &["code", "codium"],
    clients: &["Visual Studio Code", "vscode"],
    format: Format::Json,
    user: USER,
    project: Some(PROJECT),
    entry_at: &in_map("servers"),
    lifetime: Lifetime::Project,
    variable: Some("${input:clopen-mcp-token}"),
    entry,
    further,
    spelling: Spelling {
        before: "mcp_clopen-mcp_",
        most_before: 13,
        keeps: Some("_-"),
        too_long: TooLong::Cut { to: 64, ending: 0 },
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::OPENAI,
    most_output: None,
    invents: &[],
    reasons: &[(
        "`inputs`",
        "VS Code asks for the token once, and keeps it where it keeps secrets",
    )],
    notes: &[],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "type": "http",
        "url": access.address,
        "headers": access.headers,
    })
}

fn further(connection: &Connection, scope: Scope) -> Vec<Change<'static>> {
    let Token::Variable = connection.token else {
        return Vec::new();
    };
    let input = json!({
        "type": "promptString",
        "id": INPUT,
        "description": "The token of clopen-mcp",
        "password": true,
    });
    vec![Change {
        place: match scope {
            Scope::User => USER,
            Scope::Project => PROJECT,
        },
        format: Format::Json,
        at: vec![
            Step::Key("inputs"),
            Step::Element {
                key: "id",
                name: INPUT,
            },
        ],
        wanted: Wanted::Value(input),
    }]
}
