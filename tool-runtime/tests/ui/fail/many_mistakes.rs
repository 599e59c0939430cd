#![allow(unused_variables)]

use tool_runtime::{Caller, ToolError, tool_server};

#[tool_server(name = "weather", versoin = "1.0.0")]
mod weather {
    use super::*;

    #[tool]
    pub async fn no_description(
        city: &str,
        #[arg(rang = 1..=3, lenght = 2..)] days: u8,
        #[arg(default = 1)] caller: &Caller,
    ) -> Result<String, ToolError> {
        Ok(format!("{city}{days}{}", caller.engine))
    }

    /// Generic.
    #[tool]
    pub async fn generic<T>(x: T) -> String {
        String::new()
    }
}

fn main() {
    // The developer's own items stay known, and so do the names of the tools.
    let _ = weather::no_description;
    let _ = weather::tools::NO_DESCRIPTION;
}
