use tool_runtime::tool_server;

#[tool_server(name = "weather", version = "1.0.0")]
mod weather {
    /// Adds.
    #[tool]
    pub fn add() {}

    mod tools {}
}

fn main() {}
