use tool_runtime::tool_server;

#[tool_server(name = "WeatherService", version = "1.0.0")]
mod spelled_otherwise {
    /// Adds.
    #[tool]
    pub fn add() {}
}

#[tool_server(name = "weather--service", version = "1.0.0")]
mod two_separators {
    /// Adds.
    #[tool]
    pub fn add() {}
}

#[tool_server(name = "weather-", version = "1.0.0")]
mod ends_with_separator {
    /// Adds.
    #[tool]
    pub fn add() {}
}

#[tool_server(name = "", version = "1.0.0")]
mod empty {
    /// Adds.
    #[tool]
    pub fn add() {}
}

#[tool_server(name = "a-service-that-tells-the-weather-of-tomorrow", version = "1.0.0")]
mod too_long {
    /// Adds.
    #[tool]
    pub fn add() {}
}

#[tool_server(name = "clopen-mcp", version = "1.0.0")]
mod reserved {
    /// Adds.
    #[tool]
    pub fn add() {}
}

fn main() {}
