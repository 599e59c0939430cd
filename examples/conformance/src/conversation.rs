//! Tools that talk while they run: progress, log, questions to the client.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;
use tool_runtime::{Client, Log, Progress, ToolError, tool_server};

/// The pause between two messages that the suite expects.
const PAUSE: Duration = Duration::from_millis(50);

/// What a new user fills in.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Registration {
    /// User's response
    username: String,
    /// User's email address
    #[schemars(email)]
    email: String,
}

/// Progress, log and questions.
#[tool_server(name = "conversation", version = "1.0.0")]
pub(crate) mod server {
    use super::{Client, Log, PAUSE, Progress, Registration, ToolError, json, sleep};

    /// Report progress three times.
    #[tool(read_only)]
    pub(crate) async fn test_tool_with_progress(progress: &Progress) -> &'static str {
        for done in [0, 50, 100] {
            let message = format!("Completed step {done} of 100");
            progress.report_with(done, 100, message);
            sleep(PAUSE).await;
        }
        "Tool with progress executed successfully"
    }

    /// Log three times.
    #[tool(read_only)]
    pub(crate) async fn test_tool_with_logging(log: &Log) -> &'static str {
        log.info("Tool execution started");
        sleep(PAUSE).await;
        log.info("Tool processing data");
        sleep(PAUSE).await;
        log.info("Tool execution completed");
        "Tool with logging executed successfully"
    }

    /// Return after the client has had to reconnect, if it had to.
    #[tool(read_only)]
    pub(crate) async fn test_reconnection() -> &'static str {
        sleep(PAUSE).await;
        "Reconnection test completed successfully"
    }

    /// Ask the client's model.
    #[tool(read_only)]
    pub(crate) async fn test_sampling(
        /// What to ask.
        prompt: String,
        client: &Client,
    ) -> Result<String, ToolError> {
        let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
        let params = json!({ "messages": [message], "maxTokens": 100 });
        let answer = client.sample(params).await?;
        let text = answer["content"]["text"].as_str().unwrap_or("No response");
        Ok(format!("LLM response: {text}"))
    }

    /// Ask the user to register.
    #[tool]
    pub(crate) async fn test_elicitation(
        /// What to show the user.
        message: String,
        client: &Client,
    ) -> Result<String, ToolError> {
        let registration: Registration = client.elicit(message).await?;
        Ok(format!("User response: {}", json!(registration)))
    }

    /// Ask for a form whose fields are filled in already.
    #[tool]
    pub(crate) async fn test_elicitation_sep1034_defaults(
        client: &Client,
    ) -> Result<String, ToolError> {
        let fields = json!({
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        });
        elicit_fields(client, fields).await
    }

    /// Ask for a form with every kind of choice.
    #[tool]
    pub(crate) async fn test_elicitation_sep1330_enums(
        client: &Client,
    ) -> Result<String, ToolError> {
        let fields = json!({
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": {
                "type": "string",
                "oneOf": [
                    { "const": "value1", "title": "First Option" },
                    { "const": "value2", "title": "Second Option" },
                    { "const": "value3", "title": "Third Option" },
                ],
            },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
            },
            "titledMulti": {
                "type": "array",
                "items": { "anyOf": [
                    { "const": "value1", "title": "First Choice" },
                    { "const": "value2", "title": "Second Choice" },
                    { "const": "value3", "title": "Third Choice" },
                ] },
            },
        });
        elicit_fields(client, fields).await
    }

    async fn elicit_fields(
        client: &Client,
        fields: serde_json::Value,
    ) -> Result<String, ToolError> {
        let params = json!({
            "message": "Please review and update the form fields",
            "requestedSchema": { "type": "object", "properties": fields, "required": [] },
        });
        let answer = client.ask("elicitation/create", params).await?;
        let (action, content) = (&answer["action"], &answer["content"]);
        let action = action.as_str().unwrap_or_default();
        Ok(format!(
            "Elicitation completed: action={action}, content={content}"
        ))
    }
}
