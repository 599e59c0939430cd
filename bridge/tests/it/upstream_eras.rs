//! Servers with sessions and without, and how it is found out which is which.

use crate::{
    bridge::{Serving, TOKEN},
    endpoint::{Answer, Asked, Endpoint, connector, legacy, limits},
    upstream_talk::{Scribe, talk},
};
use clopen_mcp::{
    secret::Secret,
    upstream::{Address, Client, Era, Limits, News, Opening, Talk, UpstreamError, param_headers},
};
use serde_json::{Value, json, value::to_raw_value};
use std::{
    collections::BTreeMap,
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::{sync::mpsc, time::timeout};

const DISCOVERY: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"instructions":"Be kind.","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"9"}}}}"#;
const WELCOME: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;

fn address(url: &str) -> Address {
    Address::Http {
        url: url.to_owned(),
        headers: BTreeMap::new(),
    }
}

fn shell(script: &str) -> Address {
    Address::Command {
        program: "/bin/sh".to_owned(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        environment: BTreeMap::new(),
        folder: None,
    }
}

/// Little patience for what may be unknown.
fn hasty() -> Limits {
    Limits {
        connect: Duration::from_secs(4),
        ..limits()
    }
}

async fn connect(address: &Address) -> Result<Client, UpstreamError> {
    connect_with(address, &Opening::default()).await
}

async fn connect_with(address: &Address, opening: &Opening) -> Result<Client, UpstreamError> {
    connector(hasty()).connect("fake", address, opening).await
}

/// Serves without sessions; `answer` answers what comes after `server/discover`.
async fn serve(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Endpoint {
    Endpoint::serve(move |asked| {
        if asked.is("server/discover") {
            Answer::json(DISCOVERY)
        } else {
            answer(asked)
        }
    })
    .await
}

fn body(asked: &Asked) -> Value {
    serde_json::from_str(&asked.body).expect("it is JSON")
}

/// A stream of these messages, which are the answers to whatever was asked.
fn stream(messages: &[&str]) -> Answer {
    let events = messages.iter().map(|it| format!("data: {it}\n\n"));
    Answer::stream(&events.collect::<String>())
}

#[tokio::test]
async fn pro_253_without_a_session_every_request_says_everything() {
    let endpoint = serve(|asked| {
        if asked.is("subscriptions/listen") {
            return Answer::stream(": hi\n\n").hanging();
        }
        stream(&[
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"id":3,"result":{"resultType":"input_required"}}"#,
        ])
    });
    let endpoint = endpoint.await;
    let client = connect(&address(&endpoint.url)).await.expect("it connects");
    assert!(client.is_modern());
    assert_eq!(client.protocol_version(), "2026-07-28");
    assert_eq!(client.server_info(), ("new", "9"));
    assert_eq!(client.instructions(), Some("Be kind."));
    endpoint.was_asked(|it| it.is("subscriptions/listen")).await;

    let scribe = Arc::new(Scribe::default());
    let schema =
        json!({ "properties": { "place": { "type": "string", "x-mcp-header": "Place" } } });
    let arguments = json!({ "place": "Zürich" });
    let raw = to_raw_value(&arguments).expect("it is JSON");
    let sampling = json!({ "sampling": {} });
    let meta = json!({
        "traceparent": "00-1",
        "a.example/x": 1,
        "progressToken": "theirs",
        "io.modelcontextprotocol/protocolVersion": "1900-01-01",
    });
    let said = Talk {
        capabilities: sampling.as_object().cloned().unwrap_or_default(),
        meta: meta.as_object().cloned().unwrap_or_default(),
        headers: param_headers(schema.as_object().expect("it is an object"), &raw),
        ..talk(&scribe)
    };
    let call = json!({ "name": "weather", "arguments": arguments });
    let result = client.converse("tools/call", &call, said).await;
    assert_eq!(
        result.expect("it answers").get(),
        r#"{"resultType":"input_required"}"#
    );
    assert_eq!(scribe.heard(), ["1 of None: None", r#"Error of None: "x""#]);
    client.close().await;

    let asked = endpoint.asked();
    let discover = &asked[0];
    assert_eq!(
        body(discover),
        json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "server/discover",
            "params": { "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "clopen-mcp", "version": env!("CARGO_PKG_VERSION") },
                "io.modelcontextprotocol/clientCapabilities": {},
            } },
        })
    );
    assert_eq!(discover.header("mcp-method"), Some("server/discover"));
    let call = endpoint.was_asked(|it| it.is("tools/call")).await;
    // Headers are of this body, whatever the caller's said.
    assert_eq!(call.header("mcp-name"), Some("weather"));
    assert_eq!(call.header("mcp-method"), Some("tools/call"));
    assert_eq!(
        call.header("mcp-param-place"),
        Some("=?base64?WsO8cmljaA==?=")
    );
    assert_eq!(call.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(
        body(&call)["params"]["_meta"],
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "clopen-mcp", "version": env!("CARGO_PKG_VERSION") },
            "io.modelcontextprotocol/clientCapabilities": { "sampling": {} },
            "io.modelcontextprotocol/logLevel": "notice",
            "progressToken": 3,
            "traceparent": "00-1",
            "a.example/x": 1,
        })
    );
    // No session, and nothing that goes with one; a server's requests are not answered.
    assert!(asked.iter().all(|it| it.method == "POST"), "{asked:#?}");
    assert_eq!(endpoint.asked().len(), 3);
}

#[tokio::test]
async fn ses_143_no_session_crosses_over() {
    let endpoint = Endpoint::serve(|asked| {
        if asked.is("server/discover") {
            let headers = ["content-type: application/json", "mcp-session-id: s-9"];
            Answer::new(
                "200 OK",
                &headers,
                &DISCOVERY.replace("listChanged", "silent"),
            )
        } else {
            Answer::json(r#"{"id":2,"result":{}}"#)
        }
    });
    let endpoint = endpoint.await;
    let mut address = address(&endpoint.url);
    if let Address::Http { headers, .. } = &mut address {
        headers.insert("Mcp-Session-Id".to_owned(), Secret::new("of-a-client"));
    }
    let client = connect(&address).await.expect("it connects");
    client.request("tools/list", &()).await.expect("it answers");
    for asked in endpoint.asked() {
        assert_eq!(asked.header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn who_reads_no_further_has_cancelled() {
    let endpoint = serve(|_| Answer::stream(": wait\n\n").hanging()).await;
    let client = connect(&address(&endpoint.url)).await.expect("it connects");
    let call = client.request("tools/call", &());
    timeout(Duration::from_millis(300), call)
        .await
        .expect_err("it hangs");
    endpoint.was_left(|it| it.is("tools/call")).await;
    let told = endpoint.asked();
    assert!(!told.iter().any(|it| it.is("notifications/cancelled")));
    assert!(!client.is_closed());
}

#[tokio::test]
async fn an_unknown_kind_of_result_is_none() {
    let endpoint = Endpoint::serve(|asked| {
        if asked.is("server/discover") {
            Answer::json(&DISCOVERY.replace("listChanged", "silent"))
        } else {
            Answer::json(r#"{"id":2,"result":{"resultType":"task"}}"#)
        }
    });
    let client = connect(&address(&endpoint.await.url)).await;
    let client = client.expect("it connects");
    let answer = client.request("tools/call", &()).await;
    let error = answer.expect_err("no task was wanted");
    assert!(matches!(error, UpstreamError::Malformed { .. }), "{error}");
    assert!(
        error.to_string().contains(r#"the unknown type `"task"`"#),
        "{error}"
    );
}

#[tokio::test]
async fn endpoints_that_understand_nothing_get_a_session() {
    type Refuse = fn() -> Answer;
    let refusals: [Refuse; 9] = [
        Answer::default,
        || Answer::stream(": no\n\n"),
        || Answer::new("400 Bad Request", &[], "Bad Request: no valid session ID"),
        || Answer::new("404 Not Found", &[], ""),
        || Answer::new("500 Oops", &[], "oops"),
        || Answer::json(r#"{"id":1,"error":{"code":-32601,"message":"no"}}"#),
        || {
            let error = r#"{"id":null,"error":{"code":-32600,"message":"not initialized"}}"#;
            Answer::new("400 Bad Request", &[], error)
        },
        || Answer::json(r#"{"id":1,"result":{}}"#),
        || {
            let error = r#"{"id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}}"#;
            Answer::new("400 Bad Request", &[], error)
        },
    ];
    for refuse in refusals {
        let endpoint = Endpoint::serve(move |asked| {
            if asked.is("initialize") {
                Answer::new("200 OK", &["mcp-session-id: s-1"], WELCOME)
            } else if asked.is("server/discover") {
                refuse()
            } else {
                Answer::accepted()
            }
        });
        let endpoint = endpoint.await;
        let client = connect(&address(&endpoint.url)).await.expect("it connects");
        assert_eq!(client.era(), Era::Legacy);
        let asked = endpoint.asked();
        assert_eq!(asked[1].header("mcp-method"), None);
        assert_eq!(asked[1].header("mcp-protocol-version"), None);
    }
}

#[tokio::test]
async fn who_refuses_altogether_is_not_asked_again() {
    for status in [
        "401 Unauthorized",
        "403 Forbidden",
        "408 Timeout",
        "429 Too Many",
        "503 Busy",
    ] {
        let endpoint = Endpoint::serve(move |_| Answer::new(status, &[], "")).await;
        let error = connect(&address(&endpoint.url)).await;
        let error = error.expect_err("it refuses").to_string();
        assert!(error.contains(&status[..3]), "{error}");
        assert_eq!(endpoint.asked().len(), 1, "{status}");
    }
    // It speaks a later version only.
    let endpoint = Endpoint::serve(|_| {
        let error = r#"{"id":1,"error":{"code":-32022,"message":"too old","data":{"supported":["2027-01-01"]}}}"#;
        Answer::new("400 Bad Request", &[], error)
    });
    let error = connect(&address(&endpoint.await.url)).await;
    let error = error.expect_err("it refuses").to_string();
    assert!(error.contains("too old"), "{error}");
}

#[tokio::test]
async fn a_version_that_is_offered_is_taken() {
    let is_first = AtomicBool::new(true);
    let endpoint = Endpoint::serve(move |asked| {
        if is_first.swap(false, Ordering::Relaxed) {
            let error = r#"{"id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}"#;
            Answer::new("400 Bad Request", &[], error)
        } else {
            Answer::json(&DISCOVERY.replace(r#""id":1"#, &format!(r#""id":{}"#, body(asked)["id"])))
        }
    });
    let client = connect(&address(&endpoint.await.url)).await;
    assert!(client.expect("it connects").is_modern());
}

#[tokio::test]
async fn an_endpoint_that_leaves_a_question_open_gets_a_session() {
    let endpoint = Endpoint::serve(|asked| {
        if asked.is("server/discover") {
            Answer::stream(": hm\n\n").hanging()
        } else if asked.is("initialize") {
            Answer::json(WELCOME)
        } else {
            Answer::accepted()
        }
    });
    let client = connect(&address(&endpoint.await.url)).await;
    assert!(!client.expect("it connects").is_modern());
}

#[tokio::test]
async fn what_is_known_is_tried_first_and_found_out_anew() {
    let endpoint = serve(|_| Answer::new("404 Not Found", &[], "")).await;
    let client = connect_with(&address(&endpoint.url), &legacy()).await;
    assert!(client.expect("it connects").is_modern());
    let methods = endpoint.asked().into_iter().map(|it| it.is("initialize"));
    assert_eq!(methods.take(2).collect::<Vec<_>>(), [true, false]);

    let endpoint = Endpoint::serve(|asked| {
        if asked.is("initialize") {
            Answer::json(WELCOME)
        } else {
            Answer::accepted()
        }
    });
    let endpoint = endpoint.await;
    let modern = Opening {
        known: Some(Era::Modern),
        ..Opening::default()
    };
    let client = connect_with(&address(&endpoint.url), &modern).await;
    assert!(!client.expect("it connects").is_modern());
}

#[tokio::test]
async fn a_server_may_tell_nothing_after_all() {
    let endpoint = serve(|asked| {
        if asked.is("subscriptions/listen") {
            let id = &body(asked)["id"];
            let error = format!(r#"{{"id":{id},"error":{{"code":-32601,"message":"no"}}}}"#);
            Answer::new("404 Not Found", &[], &error)
        } else {
            Answer::json(r#"[{"id":2,"result":{}},{"id":3,"result":{}}]"#)
        }
    });
    let endpoint = endpoint.await;
    let client = connect(&address(&endpoint.url)).await.expect("it connects");
    endpoint.was_asked(|it| it.is("subscriptions/listen")).await;
    client.request("tools/list", &()).await.expect("it answers");
    client.subscribe("a:1").await.expect("nobody knows");
    assert!(!client.is_closed());
}

#[tokio::test]
async fn who_watches_nothing_listens_to_nothing() {
    let endpoint = Endpoint::serve(|asked| {
        if asked.is("server/discover") {
            Answer::json(&DISCOVERY.replace("listChanged", "silent"))
        } else {
            let acknowledged =
                r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}"#;
            stream(&[acknowledged]).hanging()
        }
    });
    let endpoint = endpoint.await;
    let client = connect(&address(&endpoint.url)).await.expect("it connects");
    client.subscribe("a:1").await.expect("it can");
    endpoint.was_asked(|it| it.body.contains("a:1")).await;
    client.unsubscribe("a:1").await.expect("it can");
    endpoint.were_left(1).await;
    client.subscribe("a:2").await.expect("it can");
    let last = endpoint.was_asked(|it| it.body.contains("a:2")).await;
    assert_eq!(
        body(&last)["params"]["notifications"],
        json!({ "resourceSubscriptions": ["a:2"] })
    );
}

#[tokio::test]
async fn std_114_a_program_that_can_not_bear_questions_is_started_anew() {
    let script = format!(
        r#"read -r line; case $line in *'"initialize"'*) ;; *) echo 'not initialized' >&2; exit 7 ;; esac
printf '%s\n' '{WELCOME}'; read -r line; read -r line; printf '{{"id":2,"result":7}}\n'; cat >/dev/null"#
    );
    let client = connect(&shell(&script)).await.expect("it connects");
    assert!(!client.is_modern());
    let result = client.request("x", &()).await.expect("it answers");
    assert_eq!(result.get(), "7");
    // Once it is known, it is not asked.
    let folder = TempDir::new().expect("the temporary folder can be written");
    let file = folder.path().join("starts");
    let counted = format!("echo start >> '{}'; {script}", file.display());
    let client = connect_with(&shell(&counted), &legacy()).await;
    client.expect("it connects");
    let starts = fs::read_to_string(&file).expect("it was written");
    assert_eq!(starts, "start\n");
}

#[tokio::test]
async fn a_program_that_has_answered_is_not_started_anew() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let file = folder.path().join("starts");
    let script = format!(
        r#"echo start >> '{}'; read -r line; printf '{{"id":1,"error":{{"code":-32601,"message":"what?"}}}}\n'; read -r line; exit 3"#,
        file.display()
    );
    let error = connect(&shell(&script)).await.expect_err("it ends");
    assert!(error.to_string().contains("exit code 3"), "{error}");
    let starts = fs::read_to_string(&file).expect("it was written");
    assert_eq!(starts, "start\n");
}

#[tokio::test]
async fn programs_that_understand_nothing_get_a_session() {
    let second = WELCOME.replace(r#""id":1"#, r#""id":2"#);
    let refuse = r#"printf '{"id":1,"error":{"code":-32602,"message":"what?"}}\n'"#;
    for first in [refuse, "echo what?", "sleep 0.1"] {
        let script = format!(
            "read -r line; {first}; read -r line; printf '%s\\n' '{second}'; read -r line; printf '{{\"id\":3,\"result\":%s}}\\n' \"$line\"; cat >/dev/null"
        );
        let client = connect(&shell(&script)).await.expect("it connects");
        assert!(!client.is_modern(), "{first}");
        // The next that it is told is that the session has begun.
        let told = client.request("x", &()).await.expect("it answers");
        assert!(told.get().contains("notifications/initialized"), "{told}");
    }
}

#[tokio::test]
async fn programs_may_have_no_sessions() {
    let cancelled =
        r#"read -r a; read -r b; printf '{"id":4,"result":{"a":%s}}\n' "$b"; cat >/dev/null"#;
    // It tells of its tools, which is the second request.
    let script = format!(
        r#"read -r line; printf '%s\n' '{DISCOVERY}'; read -r listen
printf '%s\n' '{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}}' '{{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}'
{cancelled}"#
    );
    let client = connect(&shell(&script)).await.expect("it connects");
    assert!(client.is_modern());
    let changed = timeout(Duration::from_secs(5), client.news()).await;
    assert_eq!(changed.expect("it is told"), News::Tools);
    let call = client.request("tools/call", &());
    timeout(Duration::from_millis(300), call)
        .await
        .expect_err("nobody answers");
    let told = client.request("tools/call", &()).await;
    let told = told.expect("it answers");
    assert!(told.get().contains(r#""requestId":3"#), "{told}");
}

#[tokio::test]
async fn a_slow_program_without_sessions_is_waited_for() {
    let script = format!(
        r#"read -r discover; read -r initialize
printf '%s\n' '{{"id":2,"error":{{"code":-32601,"message":"no such method"}}}}' '{DISCOVERY}'; cat >/dev/null"#
    );
    let client = connect(&shell(&script)).await.expect("it connects");
    assert!(client.is_modern());
}

#[tokio::test]
async fn news_come_on_a_stream_that_is_kept_up() {
    let endpoint = serve(|asked| {
        let acknowledged =
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}"#;
        let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1"}}"#;
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        if asked.body.contains("a:2") {
            // It breaks off, and the next one tells nothing.
            stream(&[acknowledged])
        } else if asked.body.contains("a:1") {
            stream(&[acknowledged, updated]).hanging()
        } else {
            stream(&[acknowledged, changed]).hanging()
        }
    });
    let endpoint = endpoint.await;
    let client = connect(&address(&endpoint.url)).await.expect("it connects");
    let news = async || {
        let news = timeout(Duration::from_secs(10), client.news()).await;
        news.expect("it is told")
    };
    assert_eq!(news().await, News::Tools);
    let first = endpoint.was_asked(|it| it.is("subscriptions/listen")).await;
    assert_eq!(
        body(&first)["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    client.subscribe("a:1").await.expect("it can");
    assert_eq!(news().await, News::Updated("a:1".to_owned()));
    let second = endpoint.was_asked(|it| it.body.contains("a:1")).await;
    assert_eq!(
        body(&second)["params"]["notifications"],
        json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:1"] })
    );
    endpoint
        .was_left(|it| it.is("subscriptions/listen") && !it.body.contains("a:1"))
        .await;
    client.subscribe("a:2").await.expect("it can");
    // All that may have been missed.
    assert_eq!(news().await, News::Tools);
    assert_eq!(news().await, News::Updated("a:1".to_owned()));
    assert_eq!(news().await, News::Updated("a:2".to_owned()));
}

/// Serves as of 2024-11-05: what is posted is answered on the stream, except that the connection breaks at `die`.
async fn serve_old(path: &'static str, sends_to: &'static str) -> Endpoint {
    let (sender, receiver) = mpsc::unbounded_channel();
    let sender = Mutex::new(Some(sender));
    let receiver = Mutex::new(Some(receiver));
    let endpoint = Endpoint::serve(move |asked| {
        if asked.method == "GET" && asked.path == path {
            let named = format!("event: endpoint\r\ndata: {sends_to}\r\n\r\n");
            return Answer {
                more: receiver.lock().expect("it is free").take(),
                ..Answer::stream(&named)
            };
        }
        if asked.method != "POST" || asked.path != "/send?session=s3cr3t-1" {
            return Answer::new("405 Not Allowed", &[], "");
        }
        let mut stream = sender.lock().expect("it is free");
        let say = |text: String| {
            let event = format!("event: message\r\ndata: {text}\r\n\r\n");
            let stream = stream.as_ref().expect("it is open");
            stream.send(event.into_bytes()).expect("it is read");
        };
        if asked.is("initialize") {
            say(WELCOME.replace(r#""id":1"#, &format!(r#""id":{}"#, body(asked)["id"])));
        } else if asked.is("die") {
            *stream = None;
        } else if asked.is("tools/call") {
            say(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create"}"#.to_owned());
        } else if asked.body.contains(r#""id":"q""#) {
            say(r#"{"jsonrpc":"2.0","id":2,"result":"key s3cr3t-1"}"#.to_owned());
        } else if asked.is("refuse") {
            let error = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no s3cr3t-1"}}"#;
            say(error.to_owned());
        }
        Answer::accepted()
    });
    let mut endpoint = endpoint.await;
    endpoint.url = endpoint.url.replace("/mcp", path);
    endpoint
}

#[tokio::test]
async fn the_first_http_of_all_is_spoken() {
    for path in ["/sse", "/old"] {
        let endpoint = serve_old(path, "/send?session=s3cr3t-1").await;
        let client = connect(&address(&endpoint.url)).await.expect("it connects");
        assert!(!client.is_modern());
        let asked = endpoint.asked();
        let tried = asked.iter().position(|it| it.method == "GET");
        assert_eq!(tried, Some(if path == "/sse" { 0 } else { 2 }));

        let scribe = Arc::new(Scribe::default());
        let answer = client
            .converse("tools/call", &json!({}), talk(&scribe))
            .await;
        assert_eq!(answer.expect("it answers").get(), r#""key s3cr3t-1""#);
        assert_eq!(scribe.heard(), ["asked elicitation/create {}"]);
        let error = client.request("refuse", &()).await.expect_err("it refuses");
        assert_eq!(
            error.to_string(),
            "server `fake` refused `refuse`: no *** (code -1)"
        );
        let error = client.request("die", &()).await.expect_err("it breaks");
        assert!(
            matches!(error, UpstreamError::Unreachable { .. }),
            "{error}"
        );
        client.closed().await;
    }
}

#[tokio::test]
async fn the_stream_may_not_send_us_elsewhere() {
    let endpoint = serve_old("/sse", "https://evil.example/send").await;
    let error = connect(&address(&endpoint.url)).await;
    let error = error.expect_err("it is elsewhere").to_string();
    assert!(error.contains("status 405"), "{error}");
}

/// What came of a call, in words.
async fn call(client: &Client, name: &str, scribe: &Arc<Scribe>, talk: Talk) -> String {
    let call = json!({ "name": name, "arguments": {} });
    let result = client.converse("tools/call", &call, talk).await;
    let result = result.unwrap_or_else(|error| panic!("{name}: {error}"));
    let result: Value = serde_json::from_str(result.get()).expect("it is JSON");
    let kind = result["content"][0]["text"].as_str();
    let kind = kind.or(result["resultType"].as_str()).unwrap_or_default();
    format!("{}: {kind}", scribe.heard().join(", "))
}

#[tokio::test]
async fn a_bridge_is_spoken_to_in_both_eras() {
    let bridge = Serving::start("").await;
    let address = Address::Http {
        url: bridge.url(),
        headers: BTreeMap::from([(
            "Authorization".to_owned(),
            Secret::new(format!("Bearer {TOKEN}")),
        )]),
    };
    let elicitation = json!({ "elicitation": {} });
    let capabilities = elicitation.as_object().cloned().unwrap_or_default();
    for known in [None, Some(Era::Legacy)] {
        let opening = Opening {
            capabilities: capabilities.clone(),
            known,
            ..Opening::default()
        };
        let client = connect_with(&address, &opening).await.expect("it connects");
        assert_eq!(client.is_modern(), known.is_none());
        assert!(client.has_tools() && client.declares("logging"));
        let said = |scribe: &Arc<Scribe>| Talk {
            capabilities: capabilities.clone(),
            ..talk(scribe)
        };
        let scribe = || {
            let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
            Arc::new(Scribe::answering(answer))
        };

        let ear = scribe();
        let counted = call(&client, "count", &ear, said(&ear)).await;
        assert!(
            counted.contains(r#"2 of Some(3.0): Some("counted 2")"#)
                && counted.ends_with(": counted"),
            "{counted}"
        );
        let ear = scribe();
        let logged = call(&client, "chatter", &ear, said(&ear)).await;
        assert!(
            logged.contains(r#"{"x":3}"#) && !logged.contains("a fact"),
            "{logged}"
        );
        let ear = scribe();
        let asked = call(&client, "ask_user", &ear, said(&ear)).await;
        if client.is_modern() {
            assert_eq!(asked, ": input_required");
        } else {
            assert!(asked.starts_with("asked elicitation/create"), "{asked}");
            assert!(asked.ends_with(": hello, Ada"), "{asked}");
        }

        let listed = client.request("tools/list", &()).await.expect("it lists");
        let listed: Value = serde_json::from_str(listed.get()).expect("it is JSON");
        let tools = listed["tools"].as_array().expect("it is a list").iter();
        let mut schemas = tools.filter(|it| it["name"] == "light");
        let schema = &schemas.next().expect("it is there")["inputSchema"];
        let arguments = to_raw_value(&json!({ "number": 7 })).expect("it is JSON");
        let light = json!({ "name": "light", "arguments": arguments });
        let repeated = Talk {
            headers: param_headers(schema.as_object().expect("it is one"), &arguments),
            ..Talk::default()
        };
        assert_eq!(repeated.headers, [("Lamp".to_owned(), "7".to_owned())]);
        let lit = client.converse("tools/call", &light, repeated).await;
        assert!(lit.expect("it shines").get().contains("lamp 7 is on"));
        let wrong = client.request("tools/call", &light).await;
        // Without a session, the bridge checks that the header is there.
        assert_eq!(wrong.is_err(), client.is_modern());
        client.close().await;
    }
    bridge.stop();
    bridge.stopped().await;
}

#[tokio::test]
async fn a_bridge_on_a_pipe_is_spoken_to_in_both_eras() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let data = folder.path().join("data").display().to_string();
    let address = Address::Command {
        program: env!("CARGO_BIN_EXE_clopen-mcp").to_owned(),
        arguments: vec!["stdio".to_owned()],
        environment: BTreeMap::from([("CLOPEN_MCP_DATA".to_owned(), Secret::new(data))]),
        folder: Some(folder.path().to_owned()),
    };
    for known in [None, Some(Era::Legacy)] {
        let opening = Opening {
            known,
            ..Opening::default()
        };
        let client = connector(limits())
            .connect("other", &address, &opening)
            .await;
        let client = client.expect("it connects");
        assert_eq!(client.is_modern(), known.is_none());
        let listed = client.request("tools/list", &()).await.expect("it lists");
        assert!(listed.get().contains("count_lines"), "{listed}");
        client.close().await;
    }
}
