use tool_runtime::tool_server;

#[tool_server(name = "weather", version = "1.0.0")]
mod weather {
    /// The first.
    #[tool]
    pub fn get() {}

    /// The second.
    #[tool(name = "get")]
    pub fn fetch() {}

    /// Only one of the two has a condition.
    #[cfg(all())]
    #[tool(name = "get")]
    pub fn get_sometimes() {}

    /// A tool and a prompt may share a name.
    #[prompt(name = "get")]
    pub fn get_prompt() -> String {
        String::new()
    }

    /// The second prompt.
    #[prompt(name = "get")]
    pub fn another_prompt() -> String {
        String::new()
    }

    /// The first resource.
    #[resource(uri = "weather://now")]
    pub fn now() {}

    /// The same address.
    #[resource(uri = "weather://now")]
    pub fn today() {}

    /// The same name.
    #[resource(uri = "weather://today", name = "now")]
    pub fn this_day() {}
}

fn main() {}
