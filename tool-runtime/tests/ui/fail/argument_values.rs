#![allow(unused_variables)]

use schemars::JsonSchema;
use serde::Deserialize;
use tool_runtime::tool_server;

#[derive(Default, Deserialize, JsonSchema)]
pub struct Silent;

#[tool_server(name = "values", version = "1.0.0")]
mod values {
    use super::Silent;

    /// Has values of other types.
    #[tool]
    pub fn all(
        #[arg(default = "ten")] default: u32,
        #[arg(default = 1)] optional_default: Option<u32>,
        #[arg(range = -90..=90.0)] bound: f64,
        #[arg(example = 1)] example: Option<String>,
        #[arg(length = 1u8..)] length: String,
        #[arg(default = Silent)] not_serializable: Silent,
    ) {
    }
}

fn main() {}
