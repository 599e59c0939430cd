//! Names of tools.

/// The full name of a tool, as a constant that the compiler checks: `weather::tools::GET_TEMPERATURE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName {
    /// Name of the server.
    pub server: &'static str,
    /// Name of the tool in its server.
    pub tool: &'static str,
}

impl ToolName {
    /// Joins the two parts.
    pub const fn new(server: &'static str, tool: &'static str) -> Self {
        Self { server, tool }
    }
}
