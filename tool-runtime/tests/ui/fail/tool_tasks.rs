use tool_runtime::tool_server;

#[tool_server(name = "tasks", version = "1.0.0")]
mod tasks {
    /// Is another word.
    #[tool(task = "optional")]
    pub fn word() {}

    /// Is a flag.
    #[tool(task = true)]
    pub fn flag() {}

    /// Is a list.
    #[tool(task("required"))]
    pub fn list() {}

    /// Is said twice.
    #[tool(task, task = "required")]
    pub fn twice() {}

    /// Is no tool.
    #[prompt(task)]
    pub fn prompt() -> String {
        String::new()
    }
}

fn main() {}
