use std::rc::Rc;
use tool_runtime::tool_server;

#[tool_server(name = "rc", version = "1.0.0")]
mod rc {
    use super::*;

    /// Holds an `Rc` over an await.
    #[tool]
    pub async fn hold(times: u8) -> String {
        let text = Rc::new(times);
        other().await;
        text.to_string()
    }

    async fn other() {}
}

fn main() {}
