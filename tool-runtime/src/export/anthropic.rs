//! Anthropic's Messages API: tools, and a `tool_use` block into a `tool_result` block.

use crate::{
    context::{Caller, Context},
    dispatcher::Dispatcher,
    output::{Content, Output},
    view::View,
};
use serde_json::{Value, json};

/// Returns the tools that a caller can call, for the parameter `tools`.
pub fn tools(view: &View, caller: &Caller) -> Vec<Value> {
    let tools = view.tools(caller).map(|it| {
        json!({
            "name": it.name,
            "description": it.item.description,
            "input_schema": &*it.item.input_schema,
        })
    });
    tools.collect()
}

/// Makes the call that a `tool_use` block asks for, and returns the `tool_result` block for the next user message.
pub async fn answer(dispatcher: &Dispatcher, tool_use: &Value, context: &Context) -> Value {
    let (name, input) = (tool_use.get("name"), tool_use.get("input"));
    let output = super::call(dispatcher, name, input, context).await;
    json!({
        "type": "tool_result",
        "tool_use_id": tool_use.get("id"),
        "content": content(&output),
        "is_error": output.is_error,
    })
}

/// The API takes text and pictures; everything else is told in words.
fn content(output: &Output) -> Vec<Value> {
    let blocks = output.content.iter().map(|it| match it.plain() {
        Content::Image { data, mime_type } => json!({
            "type": "image",
            "source": { "type": "base64", "media_type": mime_type, "data": data },
        }),
        other => json!({ "type": "text", "text": super::openai::in_words(other) }),
    });
    blocks.collect()
}
