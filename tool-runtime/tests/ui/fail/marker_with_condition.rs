use tool_runtime::tool_server;

#[tool_server(name = "conditions", version = "1.0.0")]
mod conditions {
    /// Is a tool sometimes.
    #[cfg_attr(all(), tool)]
    pub fn sometimes(#[arg(default = 1)] count: u8) {
        let _ = count;
    }

    /// Is a tool.
    #[tool]
    pub fn always() {}
}

fn main() {}
