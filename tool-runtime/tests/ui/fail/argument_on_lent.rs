use tool_runtime::{Caller, tool_server};

#[tool_server(name = "lent", version = "1.0.0")]
mod lent {
    use super::Caller;

    /// States a rule for the runtime.
    #[tool]
    pub fn ask(#[arg(name = "who")] caller: &Caller) {
        let _ = caller;
    }
}

fn main() {}
