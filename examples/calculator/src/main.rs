//! The first tool: an expression in, a number out.
//!
//! `cargo run -p calculator` calls it as an agent would, and checks what comes back.

use tool_runtime::{Context, Dispatcher, Environment, Registry, ToolError, tool_server};

/// Arithmetic.
#[tool_server(name = "calculator", version = "1.0.0")]
pub mod calculator {
    use super::ToolError;

    /// Evaluate an arithmetic expression exactly as it is written, for example `2 * (3 + 4)^2` or `sqrt(2) / sin(0.5)`.
    #[tool(read_only, idempotent, open_world = false)]
    pub fn calculate(
        /// The expression: numbers, `+ - * / ^ %`, parentheses, and functions such as `sqrt`, `sin`, `ln`.
        #[arg(length = 1..=1_000, example = "2 * (3 + 4)^2")]
        expression: String,
    ) -> Result<String, ToolError> {
        let value: f64 = exmex::eval_str(&expression)?;
        if value.is_finite() {
            Ok(value.to_string())
        } else {
            Err(format!("`{expression}` has no finite value").into())
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ToolError> {
    // A tool stays a plain function.
    assert_eq!(calculator::calculate("1 + 1".to_owned())?, "2");

    // An agent calls it by name, with the JSON that its model wrote.
    let registry = Registry::linked(&Environment::default()).await?;
    let dispatcher = Dispatcher::new(registry)?;
    let context = Context::default();
    let name = calculator::tools::CALCULATE.to_string();

    let output = dispatcher
        .call(&name, r#"{"expression":"2 * (3 + 4)^2"}"#, &context)
        .await?;
    assert_eq!(output.to_text(), "98");

    // What the model gets wrong comes back in words that it can act on.
    let output = dispatcher
        .call(&name, r#"{"expression":"1 / 0"}"#, &context)
        .await?;
    assert!(output.is_error);
    assert_eq!(output.to_text(), "`1 / 0` has no finite value");

    let refused = dispatcher
        .call(&name, r#"{"expresion":"1"}"#, &context)
        .await;
    let words = refused.expect_err("the argument is misspelled").to_string();
    assert!(words.contains("did you mean `expression`?"), "{words}");
    Ok(())
}
