use tool_runtime::tool_server;

#[tool_server]
mod nothing {
    /// Adds.
    #[tool]
    pub fn add() {}
}

#[tool_server(name = "weather")]
mod no_version {
    /// Adds.
    #[tool]
    pub fn add() {}
}

#[tool_server(name = "weather", version = "")]
mod empty_version {
    /// Adds.
    #[tool]
    pub fn add() {}
}

fn main() {}
