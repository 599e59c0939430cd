use tool_runtime::tool_server;

#[tool_server(name = "markers", version = "1.0.0")]
mod markers {
    /// Is two things.
    #[tool]
    #[prompt]
    pub fn two() -> String {
        String::new()
    }

    /// Is no function.
    #[tool]
    pub struct Thing;
}

fn main() {
    let _ = markers::Thing;
}
