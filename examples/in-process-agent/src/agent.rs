//! The loop of an agent: ask the model, run what it asks for, tell it what came of it, until it answers.

use serde_json::{Value, json};
use tool_runtime::{
    Caller, Context, Dispatcher, ToolError,
    export::{anthropic, openai},
};

/// How often the model may ask for tools before it must answer.
const ROUNDS: usize = 8;

pub(crate) struct Agent<'a> {
    pub(crate) client: &'a reqwest::Client,
    pub(crate) base_url: &'a str,
    pub(crate) dispatcher: &'a Dispatcher,
    pub(crate) context: &'a Context,
}

impl Agent<'_> {
    pub(crate) async fn ask_openai(&self, question: &str) -> Result<String, ToolError> {
        let tools = openai::strict_tools(&self.dispatcher.view(), self.caller());
        let mut messages = vec![json!({ "role": "user", "content": question })];
        for _ in 0..ROUNDS {
            let request = json!({ "model": "any", "messages": messages, "tools": tools });
            let response = self.post("/v1/chat/completions", &request).await?;
            let message = response["choices"][0]["message"].clone();
            let calls = message["tool_calls"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            if calls.is_empty() {
                return text(&message["content"]);
            }
            messages.push(message);
            for call in calls {
                messages.push(openai::answer(self.dispatcher, &call, self.context).await);
            }
        }
        Err("the model never came to an answer".into())
    }

    pub(crate) async fn ask_anthropic(&self, question: &str) -> Result<String, ToolError> {
        let tools = anthropic::tools(&self.dispatcher.view(), self.caller());
        let mut messages = vec![json!({ "role": "user", "content": question })];
        for _ in 0..ROUNDS {
            let request = json!({
                "model": "any",
                "max_tokens": 1_000,
                "messages": messages,
                "tools": tools,
            });
            let response = self.post("/v1/messages", &request).await?;
            let blocks = response["content"].as_array().cloned().unwrap_or_default();
            messages.push(json!({ "role": "assistant", "content": blocks }));
            let mut results = Vec::new();
            for block in blocks.iter().filter(|it| it["type"] == "tool_use") {
                results.push(anthropic::answer(self.dispatcher, block, self.context).await);
            }
            if results.is_empty() {
                return text(&blocks[0]["text"]);
            }
            messages.push(json!({ "role": "user", "content": results }));
        }
        Err("the model never came to an answer".into())
    }

    fn caller(&self) -> &Caller {
        &self.context.caller
    }

    async fn post(&self, path: &str, request: &Value) -> Result<Value, ToolError> {
        let url = format!("{}{path}", self.base_url);
        let response = self.client.post(url).json(request).send().await?;
        Ok(response.error_for_status()?.json().await?)
    }
}

fn text(value: &Value) -> Result<String, ToolError> {
    let text = value.as_str().ok_or("the model's answer is no text")?;
    Ok(text.to_owned())
}
