use tool_runtime::{prompt, resource, tool};

/// Adds.
#[tool]
async fn add(
    /// Left.
    a: i32,
    #[arg(range = 1..)] b: i32,
) -> String {
    (a + b).to_string()
}

/// Reads.
#[resource(uri = "a://b")]
fn read() {}

struct Server;

impl Server {
    /// Asks.
    #[prompt]
    fn ask(&self, #[arg(default = 1)] count: u8) -> u8 {
        count
    }
}

fn main() {
    let _ = add(1, 2);
    read();
    Server.ask(1);
}
