use tool_runtime::{Caller, tool_server};

#[tool_server(name = "borrow", version = "1.0.0")]
mod borrow {
    use super::*;
    use std::path::Path;

    /// Borrows what is sent.
    #[tool]
    pub async fn from_model(
        text: &str,
        list: &[Vec<u8>],
        path: &Path,
        optional: Option<&str>,
        pair: (u8, &u8),
    ) {
        let _ = (text, list, path, optional, pair);
    }

    /// Changes what is lent.
    #[tool]
    pub async fn from_runtime(caller: &mut Caller) {
        let _ = caller;
    }
}

fn main() {}
