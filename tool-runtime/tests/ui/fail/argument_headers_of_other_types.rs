#![allow(unused_variables)]

use schemars::JsonSchema;
use serde::Deserialize;
use tool_runtime::tool_server;

#[derive(Deserialize, JsonSchema)]
pub struct Point {
    pub x: u8,
}

#[tool_server(name = "headers", version = "1.0.0")]
mod headers {
    use super::Point;

    /// Has arguments that no header can repeat.
    #[tool]
    pub fn all(
        #[arg(header = "Float")] float: f64,
        #[arg(header = "Large")] large: u128,
        #[arg(header = "List")] list: Vec<String>,
        #[arg(header = "Point")] point: Option<Point>,
        #[arg(header = "Nullable")] nullable: Option<Option<bool>>,
    ) {
    }
}

fn main() {}
