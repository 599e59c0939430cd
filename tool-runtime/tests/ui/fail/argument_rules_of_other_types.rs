#![allow(unused_variables)]

use tool_runtime::tool_server;

#[tool_server(name = "rules", version = "1.0.0")]
mod rules {
    /// Has rules that don't fit.
    #[tool]
    pub fn all(
        #[arg(length = 1..=3)] number: u32,
        #[arg(pattern = "^a")] list: Vec<String>,
        #[arg(format = "email")] optional: Option<u32>,
    ) {
    }
}

fn main() {}
