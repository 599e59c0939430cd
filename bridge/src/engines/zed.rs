//! Zed.

use super::{Access, Engine, Format, Lifetime, Place, Root, in_map, nothing_else};
use serde_json::{Value, json};
use tool_runtime::{Dialect, Spelling, TooLong};

/// Zed.
pub static ENGINE: Engine = Engine {
    id: "zed",
    title: "Zed",
    aliases: &[],
    programs: &["zed", "zeditor"],
    clients: &["Zed", "zed"],
    format: Format::Json,
    user: Place {
        root: if cfg!(windows) {
            Root::Application("Zed")
        } else {
            Root::Config("zed")
        },
        names: &["settings.json"],
    },
    project: Some(Place {
        root: Root::Project(".zed"),
        names: &["settings.json"],
    }),
    entry_at: &in_map("context_servers"),
    lifetime: Lifetime::Project,
    variable: None,
    entry,
    further: nothing_else,
    spelling: Spelling {
        too_long: TooLong::Cut { to: 64, ending: 0 },
        ..Spelling::AS_LISTED
    },
    dialect: Dialect::OPENAI,
    most_output: None,
    invents: &[],
    reasons: &[],
    notes: &["Names of tools reach the model as they are."],
};

fn entry(access: &Access<'_>) -> Value {
    json!({
        "url": access.address,
        "headers": access.headers,
    })
}
