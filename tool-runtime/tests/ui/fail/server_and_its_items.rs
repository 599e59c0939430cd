#![allow(unused_variables)]

use tool_runtime::tool_server;

#[tool_server(name = "Weather")]
mod spelled_otherwise_without_version {
    /// Adds.
    #[tool(read_olny)]
    pub fn add() {}
}

#[tool_server]
mod without_anything {
    /// Is no function.
    #[tool]
    pub struct Add;
}

#[tool_server(name = "weather", version = 1)]
mod empty {
    pub fn add() {}
}

#[tool_server(name = "weather", versoin = "1.0.0")]
mod unfinished {
    /// Adds.
    #[prompt]
    pub fn add(#[arg(length = 1)] x: String) {}
}

fn main() {}
