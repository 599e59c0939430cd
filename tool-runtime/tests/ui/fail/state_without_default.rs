use tool_runtime::tool_server;

struct Database {
    url: String,
}

#[tool_server(name = "db", version = "1.0.0")]
impl Database {
    /// Gives the address.
    #[tool]
    async fn url(&self) -> String {
        self.url.clone()
    }
}

fn main() {}
