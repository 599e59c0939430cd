use tool_runtime::tool_server;

#[tool_server(name = "danger", version = "1.0.0")]
mod danger {
    /// Jumps.
    #[tool]
    pub unsafe fn jump() {}
}

fn main() {}
