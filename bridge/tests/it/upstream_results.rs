//! What external servers give as results, and what a caller gets of it.

use crate::{
    bridge::{Serving, profile},
    client::{Client, Era, Reply},
    endpoint::serve_tools,
};
use serde_json::{Value, json};

/// A tool that promises nothing.
fn plain() -> Value {
    json!({ "name": "a", "inputSchema": { "type": "object" } })
}

/// A tool that promises a number.
fn promising() -> Value {
    let schema = json!({
        "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"],
    });
    json!({ "name": "a", "inputSchema": { "type": "object" }, "outputSchema": schema })
}

/// What callers of both eras get of a result.
async fn replies(settings: &str, tool: Value, result: Value) -> Vec<Reply> {
    let listed = json!({ "tools": [tool] });
    let endpoint = serve_tools(listed["tools"].clone(), result).await;
    let external = [("odd", endpoint.address(), Some(listed))];
    let bridge = Serving::start_before(settings, &external).await;
    let mut replies = Vec::new();
    for era in [Era::Legacy("2025-11-25"), Era::Modern] {
        let client = Client::http(&bridge.url(), profile(era)).await;
        replies.push(client.call("mcp__odd__a", json!({})).await);
    }
    bridge.stop();
    bridge.stopped().await;
    replies
}

/// Checks what callers get of a result.
async fn check(tool: Value, result: Value, expected: Value) {
    for reply in replies("", tool.clone(), result.clone()).await {
        assert_eq!(reply.result(), expected);
    }
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

#[tokio::test]
async fn res_067_a_block_of_an_unknown_kind_is_told_of() {
    let content = json!([{ "type": "video", "data": "x" }, { "type": "text", "text": "ok" }]);
    for reply in replies("", plain(), json!({ "content": content })).await {
        let text = reply.text();
        assert!(text.contains("video") && text.ends_with("ok"), "{text}");
    }
}

#[tokio::test]
async fn res_068_a_failure_is_not_held_to_the_schema() {
    let failure = json!({
        "isError": true, "content": text("bad"), "structuredContent": { "code": "E1" },
    });
    for reply in replies("", promising(), failure).await {
        let result = reply.result();
        assert_eq!(result["isError"], true);
        assert_eq!(result["structuredContent"], json!({ "code": "E1" }));
        assert_eq!(result["content"][0]["text"], "bad");
    }
}

#[tokio::test]
async fn res_069_structured_content_may_stand_in_a_text() {
    let expected = json!({ "content": text("{\"n\":1}"), "structuredContent": { "n": 1 } });
    check(
        promising(),
        json!({ "content": text("{\"n\":1}") }),
        expected,
    )
    .await;
    for reply in replies("", promising(), json!({ "content": text("one") })).await {
        let text = reply.text();
        assert!(text.starts_with("error: one\n"), "{text}");
        assert!(text.contains("promises structured content"), "{text}");
    }
}

#[tokio::test]
async fn res_070_null_is_no_structured_content() {
    let result = json!({ "content": text("x"), "structuredContent": null });
    check(plain(), result, json!({ "content": text("x") })).await;
}

#[tokio::test]
async fn res_071_an_array_is_put_into_an_object() {
    let expected = json!({ "content": text("[1,2]"), "structuredContent": { "result": [1, 2] } });
    check(plain(), json!({ "structuredContent": [1, 2] }), expected).await;
}

#[tokio::test]
async fn res_072_a_large_number_stays_as_it_is() {
    let id = 9_007_199_254_740_993_123_u64;
    let result = json!({ "content": [], "structuredContent": { "id": id } });
    for reply in replies("", plain(), result).await {
        assert_eq!(reply.result()["structuredContent"]["id"], id);
    }
}

#[tokio::test]
async fn res_073_more_than_was_promised_is_let_through() {
    let result = json!({ "content": text("{}"), "structuredContent": { "n": 1, "extra": 2 } });
    for reply in replies("", promising(), result).await {
        let result = reply.result();
        assert_eq!(result["structuredContent"], json!({ "n": 1, "extra": 2 }));
    }
}

#[tokio::test]
async fn res_074_other_than_was_promised_is_let_through() {
    let result = json!({ "content": text("{}"), "structuredContent": { "n": "one" } });
    for reply in replies("", promising(), result).await {
        let result = reply.result();
        assert_eq!(result["structuredContent"], json!({ "n": "one" }));
        assert_eq!(result["isError"], Value::Null);
    }
}

#[tokio::test]
async fn res_076_a_long_result_is_cut_and_read_on() {
    let result = json!({ "content": text(&"ü".repeat(200_000)) });
    for reply in replies("", plain(), result).await {
        let text = reply.text();
        assert!(text.len() < 101_000, "{}", text.len());
        assert!(text.contains("read_result"), "{text}");
    }
}

#[tokio::test]
async fn res_078_a_cut_result_has_no_half_of_its_structured_content() {
    let result = json!({ "content": [], "structuredContent": { "n": 1, "x": "y".repeat(400) } });
    for reply in replies("max_output = 100", promising(), result).await {
        let result = reply.result();
        assert_eq!(result["structuredContent"], Value::Null);
        // Without it, a client that holds the result to the schema takes a failure only.
        assert_eq!(result["isError"], true);
        assert!(reply.text().contains("read_result"), "{}", reply.text());
    }
}
