//! A tool that isn't there, for `#[cfg]` says so, may speak of types that aren't there.
#![deny(warnings)]

use tool_runtime::{definition::ToolServer, tool_server};

#[tool_server(name = "module", version = "1.0.0")]
pub mod module {
    /// Is there.
    #[cfg(all())]
    #[tool(name = "choice")]
    pub fn here() {}

    /// Is not there.
    #[cfg(any())]
    #[tool(name = "choice")]
    pub async fn not_here(unknown: Unknown, lent: &Unknown) -> Unknown {
        unknown.with(lent)
    }

    /// Is not there either.
    #[cfg_attr(all(), cfg(any()), allow(unused))]
    #[tool]
    pub async fn nor_here(unknown: Unknown) -> Unknown {
        unknown
    }
}

#[derive(Default)]
pub struct Server;

#[tool_server(name = "type", version = "1.0.0")]
impl Server {
    /// Is there.
    #[tool]
    pub fn here(&self) {}

    /// Is not there.
    #[cfg(any())]
    #[tool]
    pub fn not_here(&self, unknown: Unknown) -> Unknown {
        unknown
    }
}

#[tool_server(name = "nowhere", version = "1.0.0")]
#[cfg(any())]
impl Unknown {
    /// Is not there.
    #[tool]
    pub fn not_here(&self) {}
}

fn main() {
    assert_eq!(module::tools::HERE.tool, "choice");
    assert_eq!(Server::HERE.tool, "here");
    assert_eq!(Server::DEFINITION.tools.len(), 1);
}
