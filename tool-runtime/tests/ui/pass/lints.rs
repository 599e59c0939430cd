//! What the macro writes is clean, whatever the developer asks of a crate.
#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    unused_lifetimes,
    single_use_lifetimes,
    elided_lifetimes_in_paths,
    let_underscore_drop,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::allow_attributes,
    clippy::absolute_paths,
    clippy::module_inception,
    clippy::str_to_string
)]

use tool_runtime::{Caller, Context, Environment, Json, Progress, ToolError, tool_server};

/// A default with a name.
const COUNT: u32 = 7;

/// State.
#[derive(Debug)]
struct Desk;

/// What came of it.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
struct Sum {
    /// The sum.
    sum: u32,
}

#[tool_server(name = "desk", version = "1.0.0", start)]
impl Desk {
    /// Starts.
    async fn start(environment: &Environment) -> Result<Self, ToolError> {
        tokio::task::yield_now().await;
        drop(format!("{environment:?}"));
        Ok(Self)
    }

    /// Adds.
    #[tool(
        read_only,
        timeout = "2m",
        scopes("desk:read"),
        requires(project),
        examples(serde_json::json!({"call": 1, "by": 2})),
        meta("example.org/kind" = "sum", weight = 3)
    )]
    async fn add(
        &self,
        #[arg(default = COUNT, range = 0..10)] call: u32,
        #[arg(name = "by", example = 3)] context: Option<u32>,
        #[arg(length = ..5, pattern = "^a", format = "email")] text: String,
        cx: &Context,
        progress: &Progress,
    ) -> Json<Sum> {
        tokio::task::yield_now().await;
        drop((cx.clone(), text, progress.clone()));
        Json(Sum { sum: call + context.unwrap_or_default() })
    }

    /// Asks.
    #[prompt]
    fn ask(&self, caller: &Caller) -> String {
        caller.engine.clone()
    }

    /// Reads.
    #[resource(uri = "desk://{drawer}")]
    fn read(&self, drawer: u8) -> String {
        drawer.to_string()
    }
}

/// Functions.
#[tool_server(name = "module", version = "1.0.0")]
mod module {
    /// Does what was once needed.
    #[deprecated = "of no use"]
    #[tool(deprecated = "use `add` instead")]
    fn nothing(mut count: u8) -> String {
        count += 1;
        count.to_string()
    }
}

fn main() {}
