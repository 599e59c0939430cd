//! The catalog in the shape that a model's API wants, and what the model answers back into calls.

pub mod anthropic;
pub mod mcp;
pub mod openai;

use crate::{
    context::Context,
    dispatcher::Dispatcher,
    output::{InputRequired, Output},
};
use serde_json::Value;

/// Calls the tool that a model asked for. A model sends its arguments as an object or as text that holds one; whatever
/// goes wrong is an output that tells the model.
async fn call(
    dispatcher: &Dispatcher,
    name: Option<&Value>,
    arguments: Option<&Value>,
    context: &Context,
) -> Output {
    let Some(name) = name.and_then(Value::as_str) else {
        return Output::error("the call names no tool");
    };
    let arguments = match arguments {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(json)) => json.trim().to_owned(),
        Some(value) => value.to_string(),
    };
    match dispatcher.call(name, &arguments, context).await {
        Ok(Output {
            input_required: Some(required),
            ..
        }) => Output::error(format!(
            "the tool must ask the user: {}",
            questions_of(&required)
        )),
        Ok(output) => output,
        Err(error) => Output::error(error.to_string()),
    }
}

/// A question that is put to a person has words; any other is known by its method.
fn questions_of(required: &InputRequired) -> String {
    let questions = required.questions.iter().map(|it| {
        let message = it.params.get("message").and_then(Value::as_str);
        message.unwrap_or(&it.method)
    });
    let questions: Vec<&str> = questions.collect();
    questions.join("; ")
}
