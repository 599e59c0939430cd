//! A model on loopback. It speaks both APIs, asks for the price of three apples, first with a mistake that real models
//! make, and answers with what it was told.

use axum::{Json, Router, routing::post};
use serde_json::{Value, json};
use std::io;

/// Serves the model and returns its base URL.
pub(crate) async fn serve() -> io::Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/messages", post(messages));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(format!("http://{address}"))
}

/// What the model wants next.
enum Turn {
    Call(Value),
    Say(String),
}

/// Decides by what the model was told last.
fn turn(last_result: Option<&str>) -> Turn {
    match last_result {
        None => Turn::Call(json!({ "article": "apples", "pieces": "3" })),
        Some(refused) if refused.contains("the shop has no `apples`") => {
            Turn::Call(json!({ "article": "apple", "pieces": 3 }))
        }
        Some(price) => Turn::Say(format!("They cost {price}.")),
    }
}

/// The name by which the request offers the tool for prices.
fn offered<'r>(request: &'r Value, name: fn(&'r Value) -> &'r Value) -> &'r str {
    let tools = request["tools"].as_array();
    let mut names = tools
        .into_iter()
        .flatten()
        .filter_map(|it| name(it).as_str());
    names
        .find(|it| it.ends_with("price"))
        .expect("the tool is offered")
}

async fn chat_completions(Json(request): Json<Value>) -> Json<Value> {
    let last = request["messages"].as_array().and_then(|it| it.last());
    let result = last
        .filter(|it| it["role"] == "tool")
        .and_then(|it| it["content"].as_str());
    let message = match turn(result) {
        Turn::Say(text) => json!({ "role": "assistant", "content": text }),
        Turn::Call(arguments) => json!({
            "role": "assistant",
            "content": null,
            "tool_calls": [{
                "id": "call_1",
                "type": "function",
                "function": {
                    "name": offered(&request, |it| &it["function"]["name"]),
                    "arguments": arguments.to_string(),
                },
            }],
        }),
    };
    Json(json!({ "choices": [{ "index": 0, "message": message }] }))
}

async fn messages(Json(request): Json<Value>) -> Json<Value> {
    let last = request["messages"].as_array().and_then(|it| it.last());
    let result = last.and_then(|it| it["content"][0]["content"][0]["text"].as_str());
    let block = match turn(result) {
        Turn::Say(text) => json!({ "type": "text", "text": text }),
        Turn::Call(input) => json!({
            "type": "tool_use",
            "id": "toolu_1",
            "name": offered(&request, |it| &it["name"]),
            "input": input,
        }),
    };
    Json(json!({ "role": "assistant", "content": [block] }))
}
