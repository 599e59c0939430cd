use tool_runtime::tool_server;

#[tool_server(name = "outside", version = "1.0.0")]
mod outside {
    /// Is a tool.
    #[tool]
    pub fn tool() {}

    /// Is none.
    pub fn forgotten(
        /// How many.
        #[arg(range = 1..)]
        count: u8,
    ) -> u8 {
        count
    }
}

fn main() {
    outside::forgotten(1);
}
