//! What clients of each era meet at `/mcp`.

use crate::{
    bridge::{Serving, profile},
    client::{Client, Era, Events, Profile, Reply, soon},
    sample_servers::{Room, lines_of},
};
use clopen_mcp::store::NewToken;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

macro_rules! in_each_era {
    ($($story:ident)*) => {
        in_each_era! { legacy_2025_03_26: Era::Legacy("2025-03-26"), $($story)* }
        in_each_era! { legacy_2025_06_18: Era::Legacy("2025-06-18"), $($story)* }
        in_each_era! { legacy_2025_11_25: Era::Legacy("2025-11-25"), $($story)* }
        in_each_era! { modern: Era::Modern, $($story)* }
    };
    ($module:ident: $era:expr, $($story:ident)*) => {
        mod $module {
            use super::Era;

            $(#[tokio::test]
            async fn $story() {
                super::$story($era).await;
            })*
        }
    };
}

in_each_era! {
    the_bridge_says_who_it_is
    tools_are_listed
    a_tool_is_listed_in_full
    a_tool_answers
    every_kind_of_content
    structured_output
    a_tool_that_fails
    a_tool_that_crashes
    a_tool_that_takes_too_long
    arguments_that_are_wrong
    arguments_that_are_no_object
    arguments_that_are_left_out
    a_tool_that_is_not_there
    a_tool_of_a_server_that_is_not_available
    a_name_that_could_mean_two
    every_spelling_means_the_same
    a_method_that_is_not_there
    a_cursor_that_nobody_gave
    resources_are_listed
    resources_are_read
    a_page_to_show
    a_resource_that_is_not_there
    a_resource_that_fails
    prompts_are_listed
    prompts_are_filled_in
    prompts_that_can_not_be_made
    progress_for_whoever_wants_it
    logs_for_whoever_wants_them
    a_call_taken_back_stops_its_tool
    calls_run_side_by_side
    the_address_says_who_calls
    a_tool_for_a_project
    a_token_for_one_server
    a_token_for_reading
    what_is_turned_off
    a_long_answer_is_read_in_pieces
    a_client_that_can_not_be_asked
}

/// A bridge and a client of it. The bridge ends with the test.
async fn connected(era: Era) -> (Serving, Client) {
    let bridge = Serving::start("").await;
    let client = bridge.client(era).await;
    (bridge, client)
}

fn check(actual: &Value, expected: &Expect) {
    let pretty = serde_json::to_string_pretty(actual).expect("JSON can be written");
    expected.assert_eq(&pretty);
}

/// The code and the words of an error.
fn words(reply: &Reply) -> String {
    let error = reply.error();
    let text = error["message"].as_str().expect("it has words");
    format!("{} {text}", error["code"])
}

fn lines(of: impl IntoIterator<Item = String>) -> String {
    of.into_iter().collect::<Vec<_>>().join("\n")
}

async fn the_bridge_says_who_it_is(era: Era) {
    let (_bridge, client) = connected(era).await;
    let greeting = client.greeting();
    assert!(greeting["capabilities"]["tools"].is_object(), "{greeting}");
    if era.is_modern() {
        let versions = greeting["supportedVersions"].as_array();
        let versions = versions.expect("they are listed");
        assert!(versions.contains(&"2026-07-28".into()), "{greeting}");
    } else {
        assert_eq!(greeting["serverInfo"]["name"], "clopen-mcp");
    }
    let instructions = greeting["instructions"].as_str().expect("there are some");
    expect![[r#"
        Tools of these servers:
        - gallery: Shows every kind of content.
        - lab: Does what tools do besides answering.
        - left-twin: Has a tool that the other twin has too.
        - results: Reads on in results that were too long to be shown at once.
        - right-twin: Has a tool that the other twin has too."#]]
    .assert_eq(instructions);
}

async fn tools_are_listed(era: Era) {
    let (_bridge, client) = connected(era).await;
    expect![[r#"
        text
        everything
        point
        numbers
        long_text
        light
        fail
        crash
        who
        change
        in_project
        wait
        queue
        dawdle
        count
        chatter
        ask_user
        ask_to_open
        ask_model
        ask_roots
        left-twin_greet
        read_result
        right-twin_greet"#]]
    .assert_eq(&lines(client.names("tools").await));
}

async fn a_tool_is_listed_in_full(era: Era) {
    let (_bridge, client) = connected(era).await;
    let tools = client.list("tools").await;
    let tools = tools.as_array().expect("it is a list");
    let point = tools.iter().find(|it| it["name"] == "point");
    check(
        point.expect("it is listed"),
        &expect![[r#"
            {
              "annotations": {
                "idempotentHint": true,
                "openWorldHint": false,
                "readOnlyHint": true
              },
              "description": "Show a point, as data.",
              "inputSchema": {
                "additionalProperties": false,
                "properties": {
                  "x": {
                    "description": "How far to the right.",
                    "maximum": 10,
                    "minimum": -10,
                    "type": "integer"
                  },
                  "y": {
                    "default": 1,
                    "description": "How far up.",
                    "maximum": 2147483647,
                    "minimum": -2147483648,
                    "type": "integer"
                  }
                },
                "required": [
                  "x"
                ],
                "type": "object"
              },
              "name": "point",
              "outputSchema": {
                "description": "A place in the plane.",
                "properties": {
                  "x": {
                    "maximum": 2147483647,
                    "minimum": -2147483648,
                    "type": "integer"
                  },
                  "y": {
                    "maximum": 2147483647,
                    "minimum": -2147483648,
                    "type": "integer"
                  }
                },
                "required": [
                  "x",
                  "y"
                ],
                "type": "object"
              },
              "title": "A point"
            }"#]],
    );
}

async fn a_tool_answers(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.call("text", json!({})).await;
    check(
        &reply.result(),
        &expect![[r#"
            {
              "content": [
                {
                  "text": "a text",
                  "type": "text"
                }
              ]
            }"#]],
    );
}

async fn every_kind_of_content(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.call("everything", json!({})).await;
    let blocks = reply.result()["content"].clone();
    let blocks = blocks.as_array().expect("it has content");
    let (link, others) = blocks.split_last().expect("it has blocks");
    if era == Era::Legacy("2025-03-26") {
        // Links came with the version after that.
        let words = json!({ "type": "text", "text": "the seventh room: gallery://rooms/7" });
        assert_eq!(*link, words);
    } else {
        let words =
            r#"{"name":"the seventh room","type":"resource_link","uri":"gallery://rooms/7"}"#;
        assert_eq!(link.to_string(), words);
    }
    expect![[r#"
        {"text":"all of it","type":"text"}
        {"data":"AQID","mimeType":"image/png","type":"image"}
        {"data":"BAU=","mimeType":"audio/wav","type":"audio"}
        {"resource":{"mimeType":"text/plain","text":"ars longa","uri":"gallery://motto"},"type":"resource"}
        {"resource":{"blob":"AQID","mimeType":"image/png","uri":"gallery://logo"},"type":"resource"}"#]].assert_eq(&lines(others.iter().map(Value::to_string)));
}

async fn structured_output(era: Era) {
    let (_bridge, client) = connected(era).await;
    let point = client.call("point", json!({ "x": 3 })).await.result();
    let numbers = client.call("numbers", json!({})).await.result();
    if era == Era::Legacy("2025-03-26") {
        // It came with the version after that.
        assert_eq!(point.get("structuredContent"), None);
        assert_eq!(point["content"][0]["text"], r#"{"x":3,"y":1}"#);
        return;
    }
    // Some engines show only the text, others only the data.
    expect![[r#"
        {"content":[{"text":"{\"x\":3,\"y\":1}","type":"text"}],"structuredContent":{"x":3,"y":1}}
        {"content":[{"text":"{\"result\":[1,2,3]}","type":"text"}],"structuredContent":{"result":[1,2,3]}}"#]].assert_eq(&lines([point.to_string(), numbers.to_string()]));
}

async fn a_tool_that_fails(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.call("fail", json!({})).await;
    check(
        &reply.result(),
        &expect![[r#"
            {
              "content": [
                {
                  "text": "the flask is broken",
                  "type": "text"
                }
              ],
              "isError": true
            }"#]],
    );
}

async fn a_tool_that_crashes(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.call("crash", json!({})).await;
    expect!["error: `crash` failed by an internal error; the same call will probably fail again"]
        .assert_eq(&reply.text());
    let after = client.call("text", json!({})).await;
    assert_eq!(after.text(), "a text");
}

async fn a_tool_that_takes_too_long(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.call("dawdle", json!({})).await;
    expect!["error: `dawdle` was stopped after 0.05 s: that is the limit for one call"]
        .assert_eq(&reply.text());
}

async fn arguments_that_are_wrong(era: Era) {
    let (_bridge, client) = connected(era).await;
    let wrong = json!({ "x": 11, "why": true });
    let reply = client.call("point", wrong).await;
    expect![[r#"
        error: the arguments of `point` are not valid, nothing was done:
        - /x: 11 is greater than the maximum of 10
        - there is no `why`; there are `x`, `y`"#]]
    .assert_eq(&reply.text());
    assert_eq!(
        reply.result()["_meta"]["clopen-mcp/error"],
        "invalid_arguments"
    );
}

async fn arguments_that_are_no_object(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.call("point", json!([1, 2])).await;
    assert_eq!(reply.error()["code"], -32602, "{}", reply.message);
}

async fn arguments_that_are_left_out(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.call("text", Value::Null).await;
    assert_eq!(reply.text(), "a text");
    let reply = client.call("point", Value::Null).await;
    expect![[r#"
        error: the arguments of `point` are not valid, nothing was done:
        - `x` is required"#]]
    .assert_eq(&reply.text());
}

async fn a_tool_that_is_not_there(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.call("pont", json!({})).await;
    assert_eq!(reply.status, 200);
    expect!["-32602 there is no tool `pont`; did you mean `point`?"].assert_eq(&words(&reply));
}

async fn a_tool_of_a_server_that_is_not_available(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.call("open", json!({})).await;
    expect!["error: the server `locked` is not available: the environment variable `LOCKED_KEY` is not set"].assert_eq(&reply.text());
}

async fn a_name_that_could_mean_two(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.call("greet", json!({})).await;
    expect!["-32602 `greet` could mean several: call `mcp__left-twin__greet` or `mcp__right-twin__greet`"].assert_eq(&words(&reply));
    assert_eq!(
        client.call("left-twin_greet", json!({})).await.text(),
        "left"
    );
}

async fn every_spelling_means_the_same(era: Era) {
    let (_bridge, client) = connected(era).await;
    let spellings = [
        "long_text",
        "mcp__gallery__long_text",
        // Claude Code, Qwen Code
        "mcp__clopen-mcp__long_text",
        // Codex, Pi
        "mcp__clopen_mcp__long_text",
        // OpenCode
        "clopen-mcp_long_text",
        // Copilot CLI
        "clopen-mcp-long_text",
        // Gemini CLI
        "mcp_clopen-mcp_long_text",
        // Cline
        "clopen-mcp__long_text",
        "gallery_long_text",
        "mcp__clopen-mcp__gallery_long_text",
    ];
    for spelling in spellings {
        let reply = client.call(spelling, json!({ "lines": 1 })).await;
        assert_eq!(reply.text(), "line 0000\n", "{spelling}");
    }
}

async fn a_method_that_is_not_there(era: Era) {
    let (_bridge, client) = connected(era).await;
    let reply = client.request("tools/invent", json!({})).await;
    assert_eq!(reply.error()["code"], -32601, "{}", reply.message);
    let status = if era.is_modern() { 404 } else { 200 };
    assert_eq!(reply.status, status);
}

async fn a_cursor_that_nobody_gave(era: Era) {
    let (_bridge, client) = connected(era).await;
    for what in ["tools", "resources", "resources/templates", "prompts"] {
        let method = format!("{what}/list");
        let reply = client.request(&method, json!({ "cursor": "x" })).await;
        assert_eq!(reply.error()["code"], -32602, "{what}: {}", reply.message);
    }
}

async fn resources_are_listed(era: Era) {
    let (_bridge, client) = connected(era).await;
    let resources = client.list("resources").await;
    let templates = client.list("resources/templates").await;
    check(
        &json!([resources, templates]),
        &expect![[r#"
            [
              [
                {
                  "description": "Words on the wall.",
                  "mimeType": "text/plain",
                  "name": "motto",
                  "uri": "gallery://motto"
                },
                {
                  "description": "The picture on the door.",
                  "mimeType": "image/png",
                  "name": "logo",
                  "uri": "gallery://logo"
                },
                {
                  "description": "The rooms as a page.",
                  "mimeType": "text/html;profile=mcp-app",
                  "name": "plan",
                  "uri": "ui://gallery/plan"
                }
              ],
              [
                {
                  "description": "What hangs in a room.",
                  "mimeType": "text/plain",
                  "name": "room",
                  "uriTemplate": "gallery://rooms/{number}"
                }
              ]
            ]"#]],
    );
}

async fn resources_are_read(era: Era) {
    let (_bridge, client) = connected(era).await;
    let mut read = Vec::new();
    for uri in ["gallery://motto", "gallery://logo", "gallery://rooms/7"] {
        let reply = client
            .request("resources/read", json!({ "uri": uri }))
            .await;
        read.push(reply.result().to_string());
    }
    expect![[r#"
        {"contents":[{"mimeType":"text/plain","text":"ars longa","uri":"gallery://motto"}]}
        {"contents":[{"blob":"AQID","mimeType":"image/png","uri":"gallery://logo"}]}
        {"contents":[{"mimeType":"text/plain","text":"room 7 is empty","uri":"gallery://rooms/7"}]}"#]].assert_eq(&lines(read));
}

async fn a_page_to_show(era: Era) {
    let (_bridge, client) = connected(era).await;
    let params = json!({ "uri": "ui://gallery/plan" });
    let page = client.request("resources/read", params).await;
    check(
        &page.result(),
        &expect![[r#"
        {
          "contents": [
            {
              "_meta": {
                "ui": {
                  "prefersBorder": true
                }
              },
              "mimeType": "text/html;profile=mcp-app",
              "text": "<h1>Nine rooms</h1>",
              "uri": "ui://gallery/plan"
            }
          ]
        }"#]],
    );
}

async fn a_resource_that_is_not_there(era: Era) {
    let (_bridge, client) = connected(era).await;
    let params = json!({ "uri": "gallery://cellar" });
    let reply = client.request("resources/read", params).await;
    let code = if era.is_modern() { -32602 } else { -32002 };
    assert_eq!(reply.error()["code"], code, "{}", reply.message);
    assert_eq!(reply.error()["data"]["uri"], "gallery://cellar");
    expect!["there is no resource `gallery://cellar`"]
        .assert_eq(reply.error()["message"].as_str().expect("it has words"));
}

async fn a_resource_that_fails(era: Era) {
    let (_bridge, client) = connected(era).await;
    let mut said = Vec::new();
    for uri in ["gallery://rooms/10", "gallery://rooms/x"] {
        let reply = client
            .request("resources/read", json!({ "uri": uri }))
            .await;
        said.push(words(&reply));
    }
    expect![[r#"
        -32603 `gallery://rooms/10` could not be had: the gallery has nine rooms
        -32603 `gallery://rooms/x` could not be had: /number: "x" is not of type integer"#]]
    .assert_eq(&lines(said));
}

async fn prompts_are_listed(era: Era) {
    let (_bridge, client) = connected(era).await;
    check(
        &client.list("prompts").await,
        &expect![[r#"
            [
              {
                "arguments": [
                  {
                    "description": "What to describe.",
                    "name": "subject",
                    "required": true
                  },
                  {
                    "description": "How many sentences.",
                    "name": "sentences",
                    "required": false
                  }
                ],
                "description": "Ask for a description.",
                "name": "describe",
                "title": "Describe something"
              }
            ]"#]],
    );
}

async fn prompts_are_filled_in(era: Era) {
    let (_bridge, client) = connected(era).await;
    let arguments = json!({ "subject": "the sea", "sentences": "3" });
    let params = json!({ "name": "describe", "arguments": arguments });
    let reply = client.request("prompts/get", params).await;
    check(
        &reply.result(),
        &expect![[r#"
            {
              "messages": [
                {
                  "content": {
                    "text": "Describe the sea in 3 sentences.",
                    "type": "text"
                  },
                  "role": "user"
                },
                {
                  "content": {
                    "text": "Gladly.",
                    "type": "text"
                  },
                  "role": "assistant"
                }
              ]
            }"#]],
    );
}

async fn prompts_that_can_not_be_made(era: Era) {
    let (_bridge, client) = connected(era).await;
    let mut said = Vec::new();
    for params in [
        json!({ "name": "describe" }),
        json!({ "name": "describe", "arguments": { "subject": "x", "sentences": "many" } }),
        json!({ "name": "descibe", "arguments": { "subject": "x" } }),
    ] {
        let reply = client.request("prompts/get", params).await;
        said.push(words(&reply));
    }
    expect![[r#"
        -32602 the prompt `describe` needs the argument `subject`
        -32603 `describe` could not be had: /sentences: "many" is not of type integer
        -32602 there is no prompt `descibe`; did you mean `describe`?"#]]
    .assert_eq(&lines(said));
}

async fn progress_for_whoever_wants_it(era: Era) {
    let (_bridge, client) = connected(era).await;
    let silent = client.call("count", json!({})).await;
    assert_eq!(silent.text(), "counted");
    assert_eq!(silent.said, Vec::<Value>::new());

    for token in [json!("p-1"), json!(7)] {
        let params =
            json!({ "name": "count", "arguments": {}, "_meta": { "progressToken": token } });
        let reply = client.request("tools/call", params).await;
        assert_eq!(reply.text(), "counted");
        let done: Vec<f64> = reply
            .said
            .iter()
            .map(|it| it["params"]["progress"].as_f64().expect("a number"))
            .collect();
        assert_eq!(done, [1.0, 2.0, 3.0]);
        let last = reply.said.last().expect("there were three");
        assert_eq!(last["method"], "notifications/progress");
        assert_eq!(last["params"]["progressToken"], token);
        assert_eq!(last["params"]["total"].as_f64(), Some(3.0));
        assert_eq!(last["params"]["message"], "counted 3");
    }
}

/// Calls the tool that logs, and returns what it logged.
async fn chatter(client: &Client, level: Option<&str>, stream: &mut Option<Events>) -> String {
    let mut params = json!({ "name": "chatter", "arguments": {} });
    if let Some(level) = level {
        params["_meta"] = json!({ "io.modelcontextprotocol/logLevel": level });
    }
    let reply = client.request("tools/call", params).await;
    assert_eq!(reply.text(), "logged");
    let mut messages = reply.said;
    if let Some(stream) = stream {
        // A session may hear them on the stream of the request, or on its own.
        while messages
            .last()
            .is_none_or(|it| it["params"]["data"] != "a fault")
        {
            messages.push(soon(stream.next()).await.expect("the stream stays open"));
        }
    }
    let messages = messages.iter().map(|it| {
        assert_eq!(it["method"], "notifications/message");
        format!("{} {}", it["params"]["level"], it["params"]["data"])
    });
    lines(messages)
}

async fn logs_for_whoever_wants_them(era: Era) {
    const ALL: &str =
        "\"debug\" \"a detail\"\n\"info\" \"a fact\"\n\"warning\" {\"x\":3}\n\"error\" \"a fault\"";
    const GRAVE: &str = "\"warning\" {\"x\":3}\n\"error\" \"a fault\"";

    let (_bridge, client) = connected(era).await;
    if era.is_modern() {
        assert_eq!(chatter(&client, None, &mut None).await, "");
        assert_eq!(chatter(&client, Some("debug"), &mut None).await, ALL);
        assert_eq!(chatter(&client, Some("warning"), &mut None).await, GRAVE);
        return;
    }
    let mut stream = Some(client.listen().await);
    assert_eq!(chatter(&client, None, &mut stream).await, ALL);
    let level = json!({ "level": "warning" });
    let reply = client.request("logging/setLevel", level).await;
    assert_eq!(reply.result(), json!({}));
    assert_eq!(chatter(&client, None, &mut stream).await, GRAVE);
}

async fn a_call_taken_back_stops_its_tool(era: Era) {
    let (_bridge, client) = connected(era).await;
    let name = format!("taken back in {}", era.version());
    let room = Room::named(&name);
    let call = client.start_call("wait", json!({ "room": name }));
    room.until_begun().await;
    call.cancel().await;
    room.until_left().await;
    assert_eq!(client.call("text", json!({})).await.text(), "a text");
}

async fn calls_run_side_by_side(era: Era) {
    let (_bridge, client) = connected(era).await;
    let name = format!("side by side in {}", era.version());
    let room = Room::named(&name);
    let calls: Vec<_> = (0..3)
        .map(|_| client.start_call("wait", json!({ "room": name })))
        .collect();
    for _ in &calls {
        room.until_begun().await;
    }
    assert_eq!(client.call("text", json!({})).await.text(), "a text");
    for _ in &calls {
        room.release();
    }
    for call in calls {
        assert_eq!(call.reply().await.text(), "waited");
    }
}

async fn the_address_says_who_calls(era: Era) {
    let bridge = Serving::start("").await;
    let url = format!(
        "{}?engine=codex&project=%2Fhome%2Fada%2Fgame&session=s-1&other=1",
        bridge.url()
    );
    let client = Client::http(&url, profile(era)).await;
    expect![[
        r#"{"engine":"codex","project":"/home/ada/game","session":"s-1","principal":"service"}"#
    ]]
    .assert_eq(&client.call("who", json!({})).await.text());
}

async fn a_tool_for_a_project(era: Era) {
    let bridge = Serving::start("").await;
    let without = bridge.client(era).await;
    let reply = without.call("in_project", json!({})).await;
    expect!["error: `in_project` works on a project, and this call does not say which: connect with a URL that ends in `?project=NAME`"].assert_eq(&reply.text());

    let url = format!("{}?project=game", bridge.url());
    let with = Client::http(&url, profile(era)).await;
    assert_eq!(with.call("in_project", json!({})).await.text(), "in game");
}

async fn with_token(bridge: &Serving, era: Era, token: NewToken) -> Client {
    let token = Some(bridge.token(token).await);
    bridge
        .client_with(Profile {
            token,
            ..Profile::of(era)
        })
        .await
}

async fn a_token_for_one_server(era: Era) {
    let bridge = Serving::start("").await;
    let token = NewToken {
        name: "narrow".to_owned(),
        servers: Some(BTreeSet::from(["lab".to_owned()])),
        project: Some("game".to_owned()),
        ..NewToken::default()
    };
    let client = with_token(&bridge, era, token).await;
    expect![[r#"
        fail
        crash
        who
        change
        in_project
        wait
        queue
        dawdle
        count
        chatter
        ask_user
        ask_to_open
        ask_model
        ask_roots"#]]
    .assert_eq(&lines(client.names("tools").await));
    assert_eq!(client.list("resources").await, json!([]));
    assert_eq!(client.list("resources/templates").await, json!([]));
    assert_eq!(client.list("prompts").await, json!([]));
    expect![[r#"{"engine":"","project":"game","session":"","principal":"narrow"}"#]]
        .assert_eq(&client.call("who", json!({})).await.text());

    // What it doesn't reach looks like what is not there.
    let reached = client.call("point", json!({ "x": 1 })).await;
    let invented = client.call("pint", json!({ "x": 1 })).await;
    assert_eq!(
        words(&reached).replace("point", "…"),
        words(&invented).replace("pint", "…")
    );
    let ambiguous = client.call("greet", json!({})).await;
    let said = words(&ambiguous);
    assert!(!said.contains("twin"), "{said}");
    let params = json!({ "uri": "gallery://motto" });
    let reply = client.request("resources/read", params).await;
    assert_eq!(
        reply.error()["message"],
        "there is no resource `gallery://motto`"
    );
}

async fn a_token_for_reading(era: Era) {
    let bridge = Serving::start("").await;
    let token = NewToken {
        name: "reader".to_owned(),
        read_only: true,
        ..NewToken::default()
    };
    let client = with_token(&bridge, era, token).await;
    let names = client.names("tools").await;
    assert!(names.contains(&"who".to_owned()), "{names:?}");
    assert!(!names.contains(&"change".to_owned()), "{names:?}");
    let reply = client.call("change", json!({})).await;
    expect!["-32602 there is no tool `change`; did you mean `chatter`?"].assert_eq(&words(&reply));
}

async fn what_is_turned_off(era: Era) {
    let settings = r#"
        [servers.gallery]
        tools = ["text", "point"]

        [servers.lab]
        without = ["who"]

        [servers.left-twin]
        enabled = false
    "#;
    let bridge = Serving::start(settings).await;
    let client = bridge.client(era).await;
    let names = client.names("tools").await;
    assert!(names.contains(&"point".to_owned()), "{names:?}");
    for off in ["numbers", "who", "left-twin_greet"] {
        assert!(!names.contains(&off.to_owned()), "{off}");
        let reply = client.call(off, json!({})).await;
        let code = &reply.result()["_meta"]["clopen-mcp/error"];
        assert_eq!(code, "tool_disabled", "{off}");
    }
    let reply = client.call("who", json!({})).await;
    expect!["error: the tool `mcp__lab__who` is turned off"].assert_eq(&reply.text());
}

async fn a_long_answer_is_read_in_pieces(era: Era) {
    let bridge = Serving::start("max_output = 1000").await;
    let client = bridge.client(era).await;
    let whole: String = lines_of(250);
    let reply = client.call("long_text", json!({ "lines": 250 })).await;
    let (mut read, mut note) = split_note(&reply.text());
    let mut pieces = 1;
    while let Some(mut next) = note {
        next["length"] = 1000.into();
        let reply = client.call("read_result", next).await;
        let (piece, then) = split_note(&reply.text());
        read.push_str(&piece);
        note = then;
        pieces += 1;
    }
    assert_eq!(read, whole);
    assert_eq!(pieces, 3);
}

/// Takes the note about how to read on from the text before it.
fn split_note(text: &str) -> (String, Option<Value>) {
    let Some((piece, note)) = text.split_once("\n\n[cut after ") else {
        return (text.to_owned(), None);
    };
    let arguments = &note[note.find('{').expect("it has arguments")..note.len() - 1];
    let arguments = serde_json::from_str(arguments).expect("they are JSON");
    (piece.to_owned(), Some(arguments))
}

async fn a_client_that_can_not_be_asked(era: Era) {
    let (_bridge, client) = connected(era).await;
    let mut said = Vec::new();
    for (tool, capability) in [
        ("ask_user", "elicitation"),
        ("ask_model", "sampling"),
        ("ask_roots", "roots"),
    ] {
        let reply = client.call(tool, json!({})).await;
        if era.is_modern() {
            assert_eq!(
                (reply.status, &reply.error()["code"]),
                (400, &json!(-32021))
            );
            let required = &reply.error()["data"]["requiredCapabilities"];
            assert!(required[capability].is_object(), "{}", reply.message);
            let words = reply.error()["message"].as_str();
            said.push(words.expect("it has words").to_owned());
        } else {
            said.push(reply.text().trim_start_matches("error: ").to_owned());
        }
    }
    expect![[r#"
        `ask_user` must ask the client (`elicitation/create`), which this client can't answer
        `ask_model` must ask the client (`sampling/createMessage`), which this client can't answer
        `ask_roots` must ask the client (`roots/list`), which this client can't answer"#]]
    .assert_eq(&lines(said));
    assert_eq!(client.asked(), Vec::<Value>::new());
}

/// A client that answers so.
fn talkative(era: Era, answers: &[(&'static str, Value)]) -> Profile {
    Profile {
        capabilities: json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} }),
        answers: answers.iter().cloned().collect::<HashMap<_, _>>(),
        ..profile(era)
    }
}

/// Calls a tool that asks; a session is asked while the call runs, and other clients call once more. Returns the
/// question and the text of the result, which are the same in both.
async fn ask(tool: &str, answers: &[(&'static str, Value)]) -> (Value, String) {
    let mut told = Vec::new();
    for era in [Era::Legacy("2025-11-25"), Era::Modern] {
        let bridge = Serving::start("").await;
        let client = bridge.client_with(talkative(era, answers)).await;
        let text = client.call(tool, json!({})).await.text();
        let [asked] = client.asked().try_into().expect("one question is asked");
        let mut params = asked["params"].clone();
        if let Some(params) = params.as_object_mut() {
            params.remove("_meta");
        }
        params.sort_all_objects();
        let question = json!({ "method": asked["method"], "params": params });
        told.push((question, text));
    }
    assert_eq!(told[0], told[1]);
    told.remove(0)
}

async fn asks(tool: &str, answers: &[(&'static str, Value)], question: Expect, text: Expect) {
    let (asked, told) = ask(tool, answers).await;
    check(&asked, &question);
    text.assert_eq(&told);
}

#[tokio::test]
async fn the_user_is_asked() {
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    asks(
        "ask_user",
        &[("elicitation/create", answer)],
        expect![[r#"
            {
              "method": "elicitation/create",
              "params": {
                "message": "Who are you?",
                "mode": "form",
                "requestedSchema": {
                  "description": "What a user fills in.",
                  "properties": {
                    "name": {
                      "description": "The name.",
                      "type": "string"
                    }
                  },
                  "required": [
                    "name"
                  ],
                  "type": "object"
                }
              }
            }"#]],
        expect!["hello, Ada"],
    )
    .await;
}

async fn user_answers(answer: Value, text: Expect) {
    let (_, told) = ask("ask_user", &[("elicitation/create", answer)]).await;
    text.assert_eq(&told);
}

#[tokio::test]
async fn the_user_declines() {
    let answer = json!({ "action": "decline" });
    user_answers(answer, expect!["error: the user declined to answer"]).await;
}

#[tokio::test]
async fn the_user_closes_the_question() {
    let answer = json!({ "action": "cancel" });
    let text = expect!["error: the user closed the question without an answer"];
    user_answers(answer, text).await;
}

#[tokio::test]
async fn the_user_fills_in_something_else() {
    let answer = json!({ "action": "accept", "content": { "age": 36 } });
    let answers = [("elicitation/create", answer)];
    let bridge = Serving::start("").await;
    let session = talkative(Era::Legacy("2025-11-25"), &answers);
    let client = bridge.client_with(session).await;
    let reply = client.call("ask_user", json!({})).await;
    expect!["error: the client's answer can't be read: `content`: missing field `name`"]
        .assert_eq(&reply.text());

    // A client without a session is asked again.
    let client = bridge.client_with(talkative(Era::Modern, &answers)).await;
    let reply = client.call("ask_user", json!({})).await;
    assert_eq!(reply.message["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn the_model_is_asked() {
    let content = json!({ "type": "text", "text": "because" });
    let answer = json!({ "role": "assistant", "model": "m", "content": content });
    asks(
        "ask_model",
        &[("sampling/createMessage", answer)],
        expect![[r#"
            {
              "method": "sampling/createMessage",
              "params": {
                "maxTokens": 10,
                "messages": [
                  {
                    "content": {
                      "text": "Why?",
                      "type": "text"
                    },
                    "role": "user"
                  }
                ]
              }
            }"#]],
        expect![[r#"the model says "because""#]],
    )
    .await;
}

#[tokio::test]
async fn the_folders_are_asked_for() {
    let answer = json!({ "roots": [{ "uri": "file:///a", "name": "a" }, { "uri": "file:///b" }] });
    asks(
        "ask_roots",
        &[("roots/list", answer)],
        expect![[r#"
            {
              "method": "roots/list",
              "params": {}
            }"#]],
        expect!["file:///a, file:///b"],
    )
    .await;
}

#[tokio::test]
async fn a_client_that_answers_with_an_error() {
    let bridge = Serving::start("").await;
    let profile = talkative(Era::Legacy("2025-11-25"), &[]);
    let client = bridge.client_with(profile).await;
    let reply = client.call("ask_user", json!({})).await;
    let text = reply.text();
    assert!(
        text.starts_with("error: the client could not answer: "),
        "{text}"
    );
    assert!(text.contains("nobody is there to ask"), "{text}");
}

#[tokio::test]
async fn what_a_client_brings_back_is_sealed() {
    let bridge = Serving::start("").await;
    let client = bridge.client_with(talkative(Era::Modern, &[])).await;
    let call = json!({ "name": "ask_user", "arguments": {} });
    let asked = client.request("tools/call", call.clone()).await;
    let result = &asked.message["result"];
    assert_eq!(result["resultType"], "input_required");
    let questions = result["inputRequests"].as_object().expect("there are some");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let answers = questions.keys().map(|key| (key.clone(), answer.clone()));
    let mut again = call;
    again["inputResponses"] = answers.collect();
    again["requestState"] = result["requestState"].clone();
    let reply = client.request("tools/call", again.clone()).await;
    assert_eq!(reply.text(), "hello, Ada");

    let state = result["requestState"].as_str().expect("there is one");
    let mut forged = again.clone();
    forged["requestState"] = format!("{state}A").into();
    let reply = client.request("tools/call", forged).await;
    assert_eq!(reply.error()["code"], -32602, "{}", reply.message);
    let mut elsewhere = again;
    elsewhere["name"] = "ask_roots".into();
    let reply = client.request("tools/call", elsewhere).await;
    assert_eq!(reply.error()["code"], -32602, "{}", reply.message);
}
