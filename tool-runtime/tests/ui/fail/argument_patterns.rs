use tool_runtime::tool_server;

#[tool_server(name = "patterns", version = "1.0.0")]
mod patterns {
    /// Has no names.
    #[tool]
    pub fn nameless(_: u8, (a, b): (u8, u8), ref c: u8, d @ 0..: u8) {
        let _ = (a, b, c, d);
    }
}

fn main() {}
