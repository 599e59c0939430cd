//! Docs become descriptions.
#![deny(warnings)]

use tool_runtime::{
    definition::{Input, ToolServer},
    tool_server,
};

#[derive(Default)]
pub struct Server;

/// A server.
///
/// It has descriptions.
#[tool_server(name = "docs", version = "1.0.0")]
impl Server {
    /// The first line.
    /// The second line.
    ///
    /// - a list
    ///   that is indented
    ///
    /// ```
    /// # let hidden = 1;
    /// ```
    ///
    /// # Examples
    ///
    /// Only people read this.
    #[tool]
    pub fn lines(
        &self,
        /// One argument
        /// in two lines.
        _argument: u8,
        not_described: u8,
    ) {
        let _ = not_described;
    }

    /**
     * A block
     * of two lines.
     */
    #[tool]
    pub fn block(&self) {}

    /// Before.
    #[doc = include_str!("../data/description.md")]
    /// After.
    #[tool]
    pub fn included(&self) {}

    #[doc = concat!("Made of ", "two.")]
    #[tool]
    pub fn joined(&self) {}
}

fn main() {
    let server = Server::DEFINITION;
    assert_eq!(server.description, "A server.\n\nIt has descriptions.");
    let descriptions: Vec<&str> = server.tools.iter().map(|it| it.description).collect();
    assert_eq!(
        descriptions,
        [
            "The first line.\nThe second line.\n\n- a list\n  that is indented\n\n```\n# let hidden = 1;\n```",
            "A block\nof two lines.",
            "Before.\nThe first line.\nThe second line.\n\nAfter.",
            "Made of two.",
        ]
    );
    let Input::Arguments(arguments) = &server.tools[0].arguments else {
        panic!("{:?}", server.tools[0].arguments)
    };
    assert_eq!(arguments[0].name, "_argument");
    assert_eq!(arguments[0].description, "One argument\nin two lines.");
    assert_eq!(arguments[1].description, "");
}
