use tool_runtime::tool_server;

#[tool_server(name = "weather", version = "1.0.0")]
mod weather {
    #[tool]
    pub fn a_tool() {}

    /// # Examples
    ///
    /// A heading is for people.
    #[tool]
    pub fn only_a_section() {}

    ///
    #[resource(uri = "weather://now")]
    pub fn a_resource() {}

    #[doc(hidden)]
    #[prompt]
    pub fn a_prompt() -> String {
        String::new()
    }
}

fn main() {}
