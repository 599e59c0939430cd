use tool_runtime::tool_server;

#[tool_server(name = "unfinished", version = "1.0.0")]
mod unfinished {
    /// Isn't finished.
    #[tool]
    pub fn now(
        /// How many.
        #[arg(range = 1..)]
        count: u8,
    ) -> String {
        count.
    }

    /// Has no description, and that is told as well.
    pub fn fine() {}

    #[tool]
    pub fn no_description() {}
}

fn main() {
    unfinished::fine();
}
