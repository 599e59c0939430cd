//! The tools of this agent.

use tool_runtime::{ToolError, tool_server};

/// A small shop.
#[tool_server(name = "shop", version = "1.0.0")]
pub(crate) mod tools_of_the_shop {
    use super::ToolError;

    /// Tell what a number of pieces of an article cost.
    #[tool(read_only, open_world = false)]
    pub(crate) fn price(
        /// The article, in the singular.
        article: String,
        /// How many pieces.
        #[arg(default = 1, range = 1..=1_000)]
        pieces: u32,
    ) -> Result<String, ToolError> {
        let cents = match article.as_str() {
            "apple" => 50,
            "pear" => 70,
            other => {
                return Err(format!("the shop has no `{other}`; it has `apple` and `pear`").into());
            }
        };
        let total = cents * pieces;
        Ok(format!("{}.{:02}", total / 100, total % 100))
    }
}
