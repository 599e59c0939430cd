use tool_runtime::tool_server;

pub struct Pool;

#[tool_server(name = "pools", version = "1.0.0")]
mod pools {
    use super::Pool;

    /// Asks the runtime for something that it has not.
    #[tool]
    pub async fn ask(pool: &Pool) {
        let _ = pool;
    }
}

fn main() {}
