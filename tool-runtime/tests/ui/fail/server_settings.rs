use tool_runtime::tool_server;

#[tool_server(name = "weather", name = "wether", version = 1, title = "Weather")]
mod weather {
    /// Adds.
    #[tool]
    pub fn add() {}
}

fn main() {}
