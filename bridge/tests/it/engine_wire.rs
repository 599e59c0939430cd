//! What an engine meets at `/mcp`, by what the address says of it or by what its client calls itself.

use crate::{
    bridge::{Serving, TOKEN, config, profile},
    cli::Here,
    client::{Client, Era, Profile, Reply, plain_http},
    engine_schemas::understood,
    sample_servers::{Room, lines_of},
};
use clopen_mcp::engines::ENGINES;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tempfile::TempDir;
use tool_runtime::{Caller, export::mcp};

const ERAS: [Era; 2] = [Era::Legacy("2025-06-18"), Era::Modern];

/// What Gemini CLI calls itself.
const GEMINI: &str = "gemini-cli-mcp-client";

/// Connects with a query, under a name.
async fn connect(bridge: &Serving, era: Era, query: &str, name: &'static str) -> Client {
    let url = format!("{}{query}", bridge.url());
    let profile = Profile {
        name,
        ..profile(era)
    };
    Client::http(&url, profile).await
}

/// The tools, with their members as they were sent.
async fn listed(client: &Client) -> Vec<Value> {
    let reply = client.request("tools/list", json!({})).await;
    let tools = reply.message["result"]["tools"].as_array();
    tools.expect("they are listed").clone()
}

#[track_caller]
fn tool<'a>(tools: &'a [Value], name: &str) -> &'a Value {
    let tool = tools.iter().find(|it| it["name"] == name);
    tool.expect("it is listed")
}

/// Shows what each kind of client gets of a tool; both eras give the same.
async fn shows(name: &str, expected: Expect) {
    let bridge = Serving::start("").await;
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for (query, client) in [
        ("?engine=gemini", "it"),
        ("", GEMINI),
        ("?engine=codex", GEMINI),
        ("?engine=opencode", "it"),
        ("?engine=opencode&model=gemini-3-pro", "it"),
        ("?model=google%2FGemini-3-Flash", "it"),
        ("?engine=claude", "it"),
        ("", "it"),
    ] {
        for era in ERAS {
            let connected = connect(&bridge, era, query, client).await;
            let tools = listed(&connected).await;
            let tool = tool(&tools, name);
            let input = serde_json::to_string_pretty(&tool["inputSchema"]);
            let input = input.expect("JSON can be written");
            let schemas = format!("{input}\n{}", tool["outputSchema"]);
            let who = format!("{client} at /mcp{query}");
            match told.iter_mut().find(|(it, _)| *it == schemas) {
                Some((_, all)) if all.contains(&who) => {}
                Some((_, all)) => all.push(who),
                None => told.push((schemas, vec![who])),
            }
        }
    }
    let told = told
        .iter()
        .map(|(schemas, all)| format!("{}\n{schemas}\n", all.join("\n")));
    expected.assert_eq(&told.collect::<String>());
}

#[tokio::test]
async fn schemas_are_as_the_engine_and_its_model_take_them() {
    shows(
        "point",
        expect![[r#"
            it at /mcp?engine=gemini
            gemini-cli-mcp-client at /mcp
            it at /mcp?engine=opencode&model=gemini-3-pro
            it at /mcp?model=google%2FGemini-3-Flash
            {
              "type": "object",
              "properties": {
                "x": {
                  "type": "integer",
                  "minimum": -10,
                  "maximum": 10,
                  "description": "How far to the right."
                },
                "y": {
                  "type": "integer",
                  "minimum": -2147483648,
                  "maximum": 2147483647,
                  "description": "How far up.\nDefault: 1."
                }
              },
              "required": [
                "x"
              ],
              "description": "No other properties."
            }
            {"type":"object","properties":{"x":{"type":"integer","minimum":-2147483648,"maximum":2147483647},"y":{"type":"integer","minimum":-2147483648,"maximum":2147483647}},"required":["x","y"],"description":"A place in the plane."}
            gemini-cli-mcp-client at /mcp?engine=codex
            it at /mcp?engine=opencode
            it at /mcp?engine=claude
            it at /mcp
            {
              "type": "object",
              "properties": {
                "x": {
                  "type": "integer",
                  "minimum": -10,
                  "maximum": 10,
                  "description": "How far to the right."
                },
                "y": {
                  "type": "integer",
                  "minimum": -2147483648,
                  "maximum": 2147483647,
                  "description": "How far up.",
                  "default": 1
                }
              },
              "required": [
                "x"
              ],
              "additionalProperties": false
            }
            {"type":"object","properties":{"x":{"type":"integer","minimum":-2147483648,"maximum":2147483647},"y":{"type":"integer","minimum":-2147483648,"maximum":2147483647}},"required":["x","y"],"description":"A place in the plane."}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn without_an_engine_tools_are_listed_as_they_are() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let config = config(folder.path(), "");
    let dispatcher = clopen_mcp::dispatcher(&config, &BTreeMap::new()).await;
    let dispatcher = dispatcher.expect("it can be made");
    let tools = mcp::tools(&dispatcher.view(), &Caller::default());
    let bridge = Serving::start("").await;
    for era in ERAS {
        let client = connect(&bridge, era, "", "it").await;
        let listed = Value::from(listed(&client).await);
        assert_eq!(listed.to_string(), Value::from(tools.clone()).to_string());
    }
}

#[tokio::test]
async fn without_an_engine_a_pipe_lists_tools_as_the_command_does() {
    let here = Here::new();
    let said = here.run(&["tools", "list", "--json"]).await;
    let told: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    for era in ERAS {
        let client = Client::pipe(&mut here.command(&["stdio"]), Profile::of(era)).await;
        let listed = Value::from(listed(&client).await);
        assert_eq!(listed.to_string(), told["tools"].to_string());
        client.close_pipe().await;
    }
}

/// What a model of Gemini CLI calls `point` with, with what Gemini CLI adds.
fn point() -> Value {
    json!({ "x": 3, "wait_for_previous": true })
}

#[tokio::test]
async fn what_gemini_cli_adds_to_arguments_is_left_out() {
    let bridge = Serving::start("").await;
    for era in ERAS {
        for (query, name) in [
            ("?engine=gemini", "it"),
            ("?engine=gemini-cli", "it"),
            ("", GEMINI),
        ] {
            let client = connect(&bridge, era, query, name).await;
            let reply = client.call("point", point()).await;
            assert_eq!(reply.text(), r#"{"x":3,"y":1}"#, "{query} {name}");
            let reply = client
                .call("text", json!({ "wait_for_previous": false }))
                .await;
            assert_eq!(reply.text(), "a text", "{query} {name}");
            // Other arguments that aren't there are still told.
            let reply = client
                .call("point", json!({ "wait_for_previous": true, "why": 1 }))
                .await;
            let text = reply.text();
            assert!(text.contains("there is no `why`"), "{text}");
            assert!(!text.contains("wait_for_previous"), "{text}");
        }
    }
}

#[tokio::test]
async fn what_gemini_cli_adds_is_left_out_over_a_pipe() {
    let here = Here::new();
    let arguments = json!({ "path": "poem.txt", "wait_for_previous": true });
    for era in ERAS {
        let mut texts = Vec::new();
        for name in [GEMINI, "it"] {
            let profile = Profile {
                name,
                ..Profile::of(era)
            };
            let client = Client::pipe(&mut here.command(&["stdio"]), profile).await;
            texts.push(client.call("count_lines", arguments.clone()).await.text());
            client.close_pipe().await;
        }
        assert!(!texts[0].contains("wait_for_previous"), "{}", texts[0]);
        assert!(texts[1].contains("no `wait_for_previous`"), "{}", texts[1]);
    }
}

#[tokio::test]
async fn what_another_engine_adds_is_wrong() {
    let bridge = Serving::start("").await;
    let mut texts = BTreeSet::new();
    for era in ERAS {
        for (query, name) in [
            ("?engine=codex", "it"),
            // What the address says counts.
            ("?engine=codex", GEMINI),
            ("?engine=opencode&model=gemini-3-pro", "it"),
            ("", "codex-mcp-client"),
            ("", "it"),
        ] {
            let client = connect(&bridge, era, query, name).await;
            let reply = client.call("point", point()).await;
            texts.insert(reply.text());
            let code = &reply.result()["_meta"]["clopen-mcp/error"];
            assert_eq!(code, "invalid_arguments");
        }
    }
    let texts = texts.into_iter().collect::<Vec<_>>();
    expect![[r#"
        error: the arguments of `point` are not valid, nothing was done:
        - there is no `wait_for_previous`; there are `x`, `y`"#]]
    .assert_eq(&texts.join("\n"));
}

#[tokio::test]
async fn a_tool_keeps_an_argument_of_that_name() {
    let bridge = Serving::start("").await;
    for era in ERAS {
        for (query, name) in [("?engine=gemini", "it"), ("", GEMINI), ("", "it")] {
            let client = connect(&bridge, era, query, name).await;
            let reply = client
                .call("queue", json!({ "wait_for_previous": true }))
                .await;
            assert_eq!(reply.text(), "after the others");
            let reply = client.call("queue", json!({})).await;
            assert_eq!(reply.text(), "at once");
            let tools = listed(&client).await;
            let properties = &tool(&tools, "queue")["inputSchema"]["properties"];
            assert!(properties["wait_for_previous"].is_object());
        }
    }
}

#[tokio::test]
async fn a_text_may_say_what_gemini_cli_adds() {
    let bridge = Serving::start("").await;
    let room = Room::named("wait_for_previous");
    for era in ERAS {
        let client = connect(&bridge, era, "?engine=gemini", "it").await;
        room.release();
        let arguments = json!({ "room": "wait_for_previous", "wait_for_previous": true });
        let reply = client.call("wait", arguments).await;
        assert_eq!(reply.text(), "waited");
        room.until_begun().await;
        room.until_left().await;
    }
}

/// Splits a piece from the note on how to read on.
#[track_caller]
fn piece(reply: &Reply) -> (String, Option<Value>) {
    let text = reply.text();
    let Some((piece, note)) = text.split_once("\n\n[cut after ") else {
        return (text, None);
    };
    let arguments = note.split_once("`read_result` with ");
    let (_, arguments) = arguments.expect("it says how to read on");
    let arguments = arguments.trim_end_matches(']');
    let arguments = serde_json::from_str(arguments).expect("they are JSON");
    (piece.to_owned(), Some(arguments))
}

/// Reads a long text to its end, in pieces as large as they may be; returns their sizes.
async fn sizes(client: &Client, lines: usize) -> Vec<usize> {
    let reply = client.call("long_text", json!({ "lines": lines })).await;
    let (mut read, mut on) = piece(&reply);
    let mut sizes = vec![read.len()];
    while let Some(mut arguments) = on {
        arguments["length"] = 80_000.into();
        let (more, then) = piece(&client.call("read_result", arguments).await);
        sizes.push(more.len());
        read.push_str(&more);
        on = then;
    }
    assert_eq!(read, lines_of(lines));
    sizes
}

#[tokio::test]
async fn a_long_result_is_as_long_as_the_engine_shows() {
    let bridge = Serving::start("").await;
    for era in ERAS {
        for (query, name, expected) in [
            ("?engine=claude", "it", [75_000, 75_000, 5_000].as_slice()),
            ("?engine=claude-code", "it", &[75_000, 75_000, 5_000]),
            ("", "claude-code", &[75_000, 75_000, 5_000]),
            ("?engine=codex", "it", &[100_000, 55_000]),
            ("?engine=codex", "claude-code", &[100_000, 55_000]),
            ("", "it", &[100_000, 55_000]),
        ] {
            let client = connect(&bridge, era, query, name).await;
            assert_eq!(sizes(&client, 15_000).await, expected, "{query} {name}");
        }
    }
}

#[tokio::test]
async fn a_result_that_an_engine_shows_whole_is_whole() {
    let bridge = Serving::start("").await;
    for (query, lines) in [("?engine=claude", 7_500), ("", 10_000)] {
        let client = connect(&bridge, Era::Modern, query, "it").await;
        assert_eq!(sizes(&client, lines).await, [lines * 10]);
    }
}

#[tokio::test]
async fn no_engine_gets_more_than_the_bridge_gives() {
    let bridge = Serving::start("max_output = 1000").await;
    let client = connect(&bridge, Era::Modern, "?engine=claude", "it").await;
    assert_eq!(sizes(&client, 250).await, [1_000, 1_000, 500]);
}

#[tokio::test]
async fn text_and_structured_content_hold_the_same_facts() {
    let bridge = Serving::start("").await;
    for era in ERAS {
        for engine in ENGINES {
            let query = format!("?engine={}", engine.id);
            let client = connect(&bridge, era, &query, "it").await;
            let tools = listed(&client).await;
            let tools = tools.iter().filter(|it| it.get("outputSchema").is_some());
            let mut names = Vec::new();
            for tool in tools {
                let name = tool["name"].as_str().expect("it has a name");
                let arguments = match name {
                    "point" => json!({ "x": 3 }),
                    _ => json!({}),
                };
                let result = client.call(name, arguments).await.result();
                let structured = &result["structuredContent"];
                let text = result["content"][0]["text"].as_str();
                let told: Value = serde_json::from_str(text.expect("it has text"))
                    .expect("the text is the content");
                assert_eq!(told, *structured, "{name} for {}", engine.id);
                let schema = understood(&tool["outputSchema"]);
                assert!(
                    jsonschema::is_valid(&schema, structured),
                    "{name} for {}: {structured} is not {schema}",
                    engine.id
                );
                names.push(name.to_owned());
            }
            assert_eq!(names, ["point", "numbers", "who"]);
        }
    }
}

#[tokio::test]
async fn a_result_is_as_long_as_the_engine_of_the_conversation_shows() {
    let bridge = Serving::start("").await;
    let stream = json!({ "engine": "claude", "project": "atlas", "session": "s-1" });
    let url = format!("http://{}/api/streams", bridge.address);
    let begun = plain_http().post(url).bearer_auth(TOKEN).json(&stream);
    let begun = begun.send().await.expect("the bridge answers");
    assert!(begun.status().is_success(), "{}", begun.status());
    for era in ERAS {
        let client = connect(&bridge, era, "?project=atlas", "it").await;
        let seen = client.call("who", json!({})).await.text();
        assert!(seen.contains(r#""engine":"claude""#), "{seen}");
        assert_eq!(sizes(&client, 15_000).await, [75_000, 75_000, 5_000]);
    }
}

/// A client repeats in headers what the schema that it got marks so.
#[tokio::test]
async fn what_a_schema_does_not_mark_needs_no_header() {
    let bridge = Serving::start("").await;
    let client = connect(&bridge, Era::Modern, "?engine=gemini", "it").await;
    let tools = listed(&client).await;
    let number = &tool(&tools, "light")["inputSchema"]["properties"]["number"];
    assert_eq!(number.get("x-mcp-header"), None);
    let reply = client.call("light", json!({ "number": 7 })).await;
    assert_eq!(reply.text(), "lamp 7 is on");
}
