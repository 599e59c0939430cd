use std::cell::Cell;
use tool_runtime::tool_server;

#[derive(Default)]
struct Counter {
    count: Cell<u64>,
}

#[tool_server(name = "counter", version = "1.0.0")]
impl Counter {
    /// Counts.
    #[tool]
    async fn next(&self) -> String {
        self.count.set(self.count.get() + 1);
        self.count.get().to_string()
    }
}

fn main() {}
