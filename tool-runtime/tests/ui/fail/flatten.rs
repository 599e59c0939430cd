use schemars::JsonSchema;
use serde::Deserialize;
use tool_runtime::tool_server;

#[derive(Deserialize, JsonSchema)]
pub struct All {
    pub x: f64,
}

#[tool_server(name = "flat", version = "1.0.0")]
mod flat {
    use super::All;

    /// Has another argument.
    #[tool]
    pub fn with_other(#[arg(flatten)] all: All, other: u8) {
        let _ = (all.x, other);
    }

    /// Has two.
    #[tool]
    pub fn two(#[arg(flatten)] all: All, #[arg(flatten)] more: All) {
        let _ = (all.x, more.x);
    }

    /// Has rules.
    #[tool]
    pub fn with_rules(
        /// Everything.
        #[arg(flatten, name = "all")]
        all: All,
    ) {
        drop(all);
    }

    /// May be missing.
    #[tool]
    pub fn optional(#[arg(flatten)] all: Option<All>) {
        drop(all);
    }

    /// Is no tool.
    #[prompt]
    pub fn prompt(#[arg(flatten)] all: All) -> String {
        all.x.to_string()
    }
}

fn main() {}
