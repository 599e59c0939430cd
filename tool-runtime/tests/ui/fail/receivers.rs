use std::sync::Arc;
use tool_runtime::tool_server;

#[derive(Default)]
struct Counter {
    n: u64,
}

#[tool_server(name = "counter", version = "1.0.0")]
impl Counter {
    /// Counts.
    #[tool]
    async fn next(&mut self) -> String {
        self.n += 1;
        self.n.to_string()
    }

    /// Ends.
    #[tool]
    async fn end(self) -> String {
        self.n.to_string()
    }

    /// Shares.
    #[tool]
    async fn share(self: Arc<Self>) -> String {
        self.n.to_string()
    }
}

fn main() {}
