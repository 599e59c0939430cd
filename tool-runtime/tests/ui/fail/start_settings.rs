use tool_runtime::{ToolError, definition::ToolServer, tool_server};

#[tool_server(name = "module", version = "1.0.0", start)]
mod module {
    /// Adds.
    #[tool]
    pub fn add() {}
}

#[tool_server(name = "by-hand", version = "1.0.0", manual)]
mod by_hand {
    /// Adds.
    #[tool]
    pub fn add() {}
}

struct Both;

#[tool_server(name = "both", version = "1.0.0", manual, start)]
impl Both {
    /// Adds.
    #[tool]
    pub fn add(&self) {}
}

struct Missing;

#[tool_server(name = "missing", version = "1.0.0", start)]
impl Missing {
    /// Adds.
    #[tool]
    pub fn add(&self) {}
}

struct Otherwise;

#[tool_server(name = "otherwise", version = "1.0.0", start)]
impl Otherwise {
    pub fn start(url: String) -> Result<Self, ToolError> {
        drop(url);
        Ok(Self)
    }

    /// Adds.
    #[tool]
    pub fn add(&self) {}
}

fn main() {
    // A server that isn't right is still one.
    let _ = Missing::DEFINITION;
}
