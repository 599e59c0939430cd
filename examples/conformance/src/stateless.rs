//! Tools of 2026-07-28: the same questions as in a session, answered along with the call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tool_runtime::{Change, Changes, Client, ClientError, Log, ToolError, tool_server};

/// A name.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Name {
    name: String,
}

/// A yes or no.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Confirmation {
    ok: bool,
}

/// A color.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Color {
    color: String,
}

/// What a prompt is about.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct About {
    context: String,
}

fn message(text: &str, most: u32) -> serde_json::Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    json!({ "messages": [message], "maxTokens": most })
}

/// Questions without sessions.
#[tool_server(name = "stateless", version = "1.0.0")]
pub(crate) mod server {
    use super::{
        About, Change, Changes, Client, ClientError, Color, Confirmation, Log, Name, ToolError,
        message,
    };

    /// Ask the client's model, which the client must have declared.
    #[tool(read_only)]
    pub(crate) async fn test_missing_capability(client: &Client) -> Result<String, ToolError> {
        let answer = client.sample(message("Say something", 50)).await?;
        Ok(answer.to_string())
    }

    /// Ask the user for a name.
    #[tool]
    pub(crate) async fn test_streaming_elicitation(client: &Client) -> Result<String, ToolError> {
        let Name { name } = client.elicit("What is your name?").await?;
        Ok(format!("Hello, {name}!"))
    }

    /// Log something.
    #[tool(read_only)]
    pub(crate) fn test_logging_tool(log: &Log) -> &'static str {
        log.info("The tool logs");
        "Logged"
    }

    /// Change the list of tools, as far as clients can tell.
    #[tool]
    pub(crate) fn test_trigger_tool_change(changes: &Changes) -> &'static str {
        changes.tell(Change::Tools);
        "Changed"
    }

    /// Change the list of prompts, as far as clients can tell.
    #[tool]
    pub(crate) fn test_trigger_prompt_change(changes: &Changes) -> &'static str {
        changes.tell(Change::Prompts);
        "Changed"
    }

    /// Ask the user for a name.
    #[tool]
    pub(crate) async fn test_input_required_result_elicitation(
        client: &Client,
    ) -> Result<String, ToolError> {
        let Name { name } = client
            .named("user_name")
            .elicit("What is your name?")
            .await?;
        Ok(format!("Hello, {name}!"))
    }

    /// Ask the client's model about a capital.
    #[tool(read_only)]
    pub(crate) async fn test_input_required_result_sampling(
        client: &Client,
    ) -> Result<String, ToolError> {
        let question = message("What is the capital of France?", 100);
        let answer = client.named("capital_question").sample(question).await?;
        let text = answer["content"]["text"].as_str().unwrap_or_default();
        Ok(format!("The model says: {text}"))
    }

    /// Ask which folders the client works on.
    #[tool(read_only)]
    pub(crate) async fn test_input_required_result_list_roots(
        client: &Client,
    ) -> Result<String, ToolError> {
        let roots = client.named("client_roots").roots().await?;
        Ok(format!("The client has {} roots", roots.len()))
    }

    /// Ask the user to confirm.
    #[tool]
    pub(crate) async fn test_input_required_result_request_state(
        client: &Client,
    ) -> Result<String, ToolError> {
        let Confirmation { ok } = client.named("confirm").elicit("Please confirm").await?;
        Ok(format!("state-ok, confirmed: {ok}"))
    }

    /// Ask the user to confirm, with a state that nobody may touch.
    #[tool]
    pub(crate) async fn test_input_required_result_tampered_state(
        client: &Client,
    ) -> Result<String, ToolError> {
        let Confirmation { ok } = client.named("confirm").elicit("Please confirm").await?;
        Ok(format!("confirmed: {ok}"))
    }

    /// Ask three things at once.
    #[tool]
    pub(crate) async fn test_input_required_result_multiple_inputs(
        client: &Client,
    ) -> Result<String, ToolError> {
        let [user, model, folders] =
            ["user_name", "greeting", "client_roots"].map(|it| client.named(it));
        let (name, greeting, roots) = tokio::join!(
            user.elicit::<Name>("What is your name?"),
            model.sample(message("Generate a greeting", 50)),
            folders.roots(),
        );
        let (Name { name }, greeting, roots) = (name?, greeting?, roots?);
        let greeting = greeting["content"]["text"].as_str().unwrap_or_default();
        Ok(format!("{greeting} {name}, you have {} roots", roots.len()))
    }

    /// Ask two things, one after the other.
    #[tool]
    pub(crate) async fn test_input_required_result_multi_round(
        client: &Client,
    ) -> Result<String, ToolError> {
        let step1 = client.named("step1");
        let Name { name } = step1.elicit("Step 1: What is your name?").await?;
        let step2 = client.named("step2");
        let Color { color } = step2.elicit("Step 2: What is your favorite color?").await?;
        Ok(format!("{name} likes {color}"))
    }

    /// Ask whatever the client can answer.
    #[tool]
    pub(crate) async fn test_input_required_result_capabilities(
        client: &Client,
    ) -> Result<String, ToolError> {
        let name = match client
            .named("user_name")
            .elicit::<Name>("What is your name?")
            .await
        {
            Ok(Name { name }) => name,
            Err(ClientError::Unsupported { .. }) => "somebody".to_owned(),
            Err(error) => return Err(error.into()),
        };
        let greeting = client
            .named("greeting")
            .sample(message("Generate a greeting", 50))
            .await?;
        let greeting = greeting["content"]["text"].as_str().unwrap_or_default();
        Ok(format!("{greeting} {name}"))
    }

    /// Ask what the prompt is about.
    #[prompt]
    pub(crate) async fn test_input_required_result_prompt(
        client: &Client,
    ) -> Result<String, ToolError> {
        let user = client.named("user_context");
        let About { context } = user.elicit("What context should the prompt use?").await?;
        Ok(format!("Talk about {context}."))
    }
}
