use tool_runtime::{Environment, ToolError, tool_server};

struct Notes;

#[tool_server(name = "notes", version = "1.0.0", start)]
impl Notes {
    async fn start(_: &Environment) -> Result<String, ToolError> {
        Ok(String::new())
    }

    /// Adds.
    #[tool]
    pub fn add(&self) {}
}

struct Failing;

pub struct NoError;

#[tool_server(name = "failing", version = "1.0.0", start)]
impl Failing {
    async fn start(_: &Environment) -> Result<Self, NoError> {
        Err(NoError)
    }

    /// Adds.
    #[tool]
    pub fn add(&self) {}
}

fn main() {}
