//! Tools that go on after their answer, and one whose argument stands in a header.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tool_runtime::{Client, ToolError, tool_server};

/// A yes or no.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Confirmation {
    confirm: bool,
}

/// A name.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Name {
    name: String,
}

/// Jobs that take a while.
#[tool_server(name = "jobs", version = "1.0.0")]
pub(crate) mod server {
    use super::{Client, Confirmation, Duration, Name, ToolError};

    /// Greet somebody, at once.
    #[tool(read_only)]
    pub(crate) fn greet(
        /// The name.
        name: String,
    ) -> String {
        format!("Hello, {name}!")
    }

    /// Compute for some seconds.
    #[tool(read_only, task)]
    pub(crate) async fn slow_compute(
        /// How many seconds.
        #[arg(default = 1.0, range = 0.0..=60.0)]
        seconds: f64,
        /// What to call the computation.
        label: Option<String>,
    ) -> String {
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        let label = label.unwrap_or_default();
        format!("Computed {label} for {seconds} seconds")
    }

    /// Run, and report a failure.
    #[tool(read_only, task = "required")]
    pub(crate) async fn failing_job() -> Result<String, ToolError> {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err("The job failed on purpose".into())
    }

    /// Break in the middle.
    #[tool(read_only, task)]
    pub(crate) async fn protocol_error_job() -> String {
        tokio::time::sleep(Duration::from_millis(50)).await;
        panic!("the job breaks on purpose")
    }

    /// Delete a file, once the user has confirmed.
    #[tool(task)]
    pub(crate) async fn confirm_delete(
        /// The file.
        filename: String,
        client: &Client,
    ) -> Result<String, ToolError> {
        let question = format!("Delete {filename}?");
        let Confirmation { confirm } = client.elicit(question).await?;
        let done = if confirm { "Deleted" } else { "Kept" };
        Ok(format!("{done} {filename}"))
    }

    /// Ask two things at once.
    #[tool(task)]
    pub(crate) async fn multi_input(client: &Client) -> Result<String, ToolError> {
        let [first, second] = ["first", "second"].map(|it| client.named(it));
        let (one, other) = tokio::join!(
            first.elicit::<Name>("What is the first name?"),
            second.elicit::<Name>("What is the second name?"),
        );
        Ok(format!("{} and {}", one?.name, other?.name))
    }

    /// Ask for a name, and then greet it in a task.
    #[tool(task = "asks-first")]
    pub(crate) async fn test_tool_with_task(client: &Client) -> Result<String, ToolError> {
        let user = client.named("user_name");
        let Name { name } = user.elicit("What is your name?").await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(format!("Hello, {name}, from a task!"))
    }

    /// Take a value that stands in a header too.
    #[tool(read_only)]
    pub(crate) fn test_custom_header(
        /// The value.
        #[arg(header = "Value")]
        value: String,
        /// A number.
        #[arg(header = "Count")]
        count: Option<i64>,
    ) -> String {
        format!("{value} {count:?}")
    }
}
