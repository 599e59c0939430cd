use schemars::JsonSchema;
use serde::Deserialize;
use tool_runtime::tool_server;

#[derive(Deserialize, JsonSchema)]
pub struct All {
    pub x: f64,
}

#[tool_server(name = "headers", version = "1.0.0")]
mod headers {
    use super::All;

    /// Has names that no header can have.
    #[tool]
    pub fn names(
        #[arg(header = "")] empty: String,
        #[arg(header = "My Region")] space: String,
        #[arg(header = "Region:")] colon: String,
        #[arg(header = "Größe")] letters: String,
        #[arg(header = 5)] no_text: String,
        #[arg(header)] no_value: String,
        #[arg(header = "A", header = "B")] twice: String,
    ) {
        let _ = (empty, space, colon, letters, no_text, no_value, twice);
    }

    /// Has a header twice.
    #[tool]
    pub fn twice(
        #[arg(header = "Region")] region: String,
        #[arg(header = "Size")] size: u8,
        #[arg(header = "REGION")] area: String,
    ) {
        let _ = (region, size, area);
    }

    /// Repeats everything.
    #[tool]
    pub fn whole(#[arg(flatten, header = "All")] all: All) {
        let _ = all.x;
    }

    /// Has no arguments that are sent as such.
    #[resource(uri = "headers://{region}")]
    pub fn resource(#[arg(header = "Region")] region: String) -> String {
        region
    }

    /// Is filled in.
    #[prompt]
    pub fn prompt(#[arg(header = "Region")] region: String) -> String {
        region
    }
}

fn main() {}
