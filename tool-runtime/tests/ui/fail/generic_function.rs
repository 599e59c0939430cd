use tool_runtime::tool_server;

#[tool_server(name = "generic", version = "1.0.0")]
mod generic {
    /// A type.
    #[tool]
    pub async fn of_type<T>(x: T) -> String {
        drop(x);
        String::new()
    }

    /// A constant.
    #[prompt]
    pub async fn of_constant<const N: usize>() -> String {
        N.to_string()
    }

    /// A hidden type.
    #[tool]
    pub async fn of_impl(x: impl Into<String>, y: &impl Send) -> String {
        let _ = y;
        x.into()
    }

    /// A hidden return type.
    #[tool]
    pub fn to_impl() -> impl Future<Output = String> {
        async { String::new() }
    }
}

fn main() {}
