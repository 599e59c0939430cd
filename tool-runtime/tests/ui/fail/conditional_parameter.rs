use tool_runtime::tool_server;

#[tool_server(name = "conditions", version = "1.0.0")]
mod conditions {
    /// Takes it sometimes.
    #[tool]
    pub fn sometimes(#[cfg(all())] count: u8) {
        let _ = count;
    }
}

fn main() {}
