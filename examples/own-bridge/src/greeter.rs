//! A tool of our own.

use tool_runtime::tool_server;

/// Greetings.
#[tool_server(name = "greeter", version = "1.0.0")]
pub(crate) mod server {
    /// Greet somebody by name.
    #[tool(read_only, open_world = false)]
    pub(crate) fn greet(
        /// The name.
        #[arg(length = 1..=100)]
        name: String,
    ) -> String {
        format!("Hello, {name}!")
    }
}
