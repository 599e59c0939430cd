use schemars::JsonSchema;
use serde::Deserialize;
use tool_runtime::tool_server;

#[derive(Deserialize)]
pub struct NoSchema {
    pub x: f64,
}

#[derive(JsonSchema)]
pub struct NoDeserialize {
    pub x: f64,
}

#[tool_server(name = "points", version = "1.0.0")]
mod points {
    use super::*;

    /// Takes both.
    #[tool]
    pub async fn both(a: NoSchema, b: NoDeserialize) -> String {
        (a.x + b.x).to_string()
    }
}

fn main() {}
