#![allow(unused_variables)]

use std::time::Duration;
use tool_runtime::tool_server;

#[tool_server(name = "ranges", version = "1.0.0")]
mod ranges {
    use super::Duration;

    /// Has ranges of what is no number.
    #[tool]
    pub fn all(
        #[arg(range = "a"..="z")] text: String,
        #[arg(range = 'a'..)] letter: char,
        #[arg(range = ..Duration::from_secs(60))] optional: Option<Duration>,
    ) {
    }
}

fn main() {}
