//! Continue.

use super::{
    Access, Change, Connection, Engine, Format, Lifetime, Place, Root, Scope, Step, Wanted,
};
use serde_json::{Value, json};
use tool_runtime::{Dialect, NAMESPACE, Spelling};

const USER: Place = Place {
    root: Root::Home {
        variable: "CONTINUE_GLOBAL_DIR",
        folder: ".continue",
    },
    names: &["config.yaml"],
};

/// Continue.
pub static ENGINE: Engine = Engine {
    id: "continue",
    title: "Continue",
    aliases: &["continue-dev", "cn"],
    programs: &["cn"],
    clients: &["continue"],
    format: Format::Yaml,
    user: USER,
    project: None,
    entry_at: &[
        Step::Key("mcpServers"),
        Step::Element {
            key: "name",
            name: NAMESPACE,
        },
    ],
    lifetime: Lifetime::Stream,
    variable: Some("${{ secrets.CLOPEN_TOKEN }}"),
    entry,
    further,
    spelling: Spelling::AS_LISTED,
    dialect: Dialect::OPENAI,
    most_output: None,
    invents: &[],
    reasons: &[(
        "`name`, `version`, `schema`",
        "a file without them is refused; written only where there are none",
    )],
    notes: &[
        "The configuration of one conversation is given with `--config`.",
        "Names of tools reach the model as they are.",
        "Without a person, Continue stops if one server doesn't answer; `connect continue` once more takes out the entries of external servers that are gone.",
    ],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "name": access.name,
        "type": "streamable-http",
        "url": access.address,
        "requestOptions": { "headers": access.headers },
    })
}

fn further(_: &Connection, _: Scope) -> Vec<Change<'static>> {
    let needed = [("name", NAMESPACE), ("version", "1.0.0"), ("schema", "v1")];
    let needed = needed.map(|(key, value)| Change {
        place: USER,
        format: Format::Yaml,
        at: vec![Step::Key(key)],
        wanted: Wanted::Default(value.into()),
    });
    needed.into()
}
