use tool_runtime::tool_server;

#[tool_server(name = "prompts", version = "1.0.0")]
mod prompts {
    /// Is no tool.
    #[prompt(read_only)]
    pub fn prompt() -> String {
        String::new()
    }
}

fn main() {}
