//! What only clients with a session meet: batches, the choice of a version, streams that stay open.

use crate::{
    bridge::{Serving, TOKEN},
    client::{plain_http, soon},
    sample_servers::Room,
};
use axum::{
    Router,
    body::{Body, BodyDataStream, Bytes},
    handler::Handler as _,
    http::Request,
    response::Response,
    routing::any_service,
};
use clopen_mcp::{
    config::{Config, Flags},
    mcp::{self, FrontDoor, guard::Guard},
    store::Store,
};
use expect_test::{Expect, expect};
use futures_util::StreamExt as _;
use serde_json::{Value, json, value::RawValue};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::time::Instant;
use tool_runtime::{Changes, Streams};

/// The answer to a body.
struct Answer {
    status: u16,
    session: Option<String>,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("it is JSON")
    }

    /// The status, and the code and the words of the error.
    fn error(&self) -> String {
        let error = &self.json()["error"];
        let words = error["message"].as_str().expect("it is an error");
        format!("{} {} {words}", self.status, error["code"])
    }
}

async fn post(bridge: &Serving, session: Option<&str>, body: impl Into<String>) -> Answer {
    let mut request = plain_http()
        .post(bridge.url())
        .bearer_auth(TOKEN)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let response = soon(request.body(body.into()).send()).await;
    let response = response.expect("the bridge answers");
    let session = response.headers().get("mcp-session-id");
    let session = session.map(|it| it.to_str().expect("it is text").to_owned());
    Answer {
        status: response.status().as_u16(),
        session,
        body: soon(response.text()).await.expect("it ends"),
    }
}

fn initialize(params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

fn client_of(version: &Value) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": { "name": "it", "version": "1" },
    })
}

async fn open(bridge: &Serving, version: &str) -> String {
    let hello = initialize(&client_of(&json!(version)));
    let answer = post(bridge, None, hello.to_string()).await;
    answer.session.expect("a session is opened")
}

/// Sends a body in a session of some version.
async fn send(version: &str, body: impl Into<String>) -> Answer {
    let bridge = Serving::start("").await;
    let session = open(&bridge, version).await;
    post(&bridge, Some(&session), body).await
}

fn pings(count: usize) -> String {
    let pings = (0..count).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    pings.collect::<Value>().to_string()
}

async fn answers(batch: &str, expected: Expect) {
    let answer = send("2025-03-26", batch).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    // The ids must be seen as they stand.
    let messages: Vec<Box<RawValue>> = serde_json::from_str(&answer.body).expect("it is an array");
    let lines: Vec<&str> = messages.iter().map(|it| it.get()).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn a_batch_is_answered_with_one() {
    let batch = r#"[
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": { "name": "text" } },
        { "jsonrpc": "1.0", "id": 2, "method": "ping" },
        { "jsonrpc": "2.0", "id": "own-1", "result": {} },
        { "jsonrpc": "2.0", "id": -3, "method": "tools/call", "params": { "name": "fail" } },
        { "jsonrpc": "2.0", "id": null, "method": "ping" },
        "ping",
        { "jsonrpc": "2.0", "id": 123456789012345678901234567890, "method": "tools/invent" }
    ]"#;
    answers(batch, expect![[r#"
        {"jsonrpc":"2.0","id":1,"result":{}}
        {"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"a text"}],"isError":false}}
        {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"the body is no JSON-RPC message: `jsonrpc` must be \"2.0\""}}
        {"jsonrpc":"2.0","id":-3,"result":{"content":[{"type":"text","text":"the flask is broken"}],"isError":true}}
        {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the `id` must be a string or a whole number"}}
        {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the body is no JSON-RPC message: it must be an object"}}
        {"jsonrpc":"2.0","id":123456789012345678901234567890,"error":{"code":-32601,"message":"there is no method `tools/invent`"}}"#]]).await;
}

#[tokio::test]
async fn a_batch_that_wants_no_answer() {
    let batch = json!([
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": "own-1", "result": {} },
        { "jsonrpc": "2.0", "method": "notifications/invented", "params": {} },
    ]);
    let answer = send("2025-03-26", batch.to_string()).await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
}

#[tokio::test]
async fn a_batch_as_long_as_one_may_be() {
    let answer = send("2025-03-26", pings(100)).await;
    let ids = answer.json();
    let ids = ids.as_array().expect("it is an array").iter();
    let ids: Vec<Value> = ids.map(|it| it["id"].clone()).collect();
    assert_eq!(ids, (0..100).map(Value::from).collect::<Vec<_>>());
}

#[tokio::test]
async fn batches_that_are_refused() {
    let mut lines = Vec::new();
    for (name, version, batch) in [
        ("empty", "2025-03-26", "[]".to_owned()),
        ("too long", "2025-03-26", pings(101)),
        ("in a later version", "2025-06-18", pings(2)),
        ("in the latest version", "2025-11-25", pings(2)),
        ("broken", "2025-03-26", "[{]".to_owned()),
    ] {
        let answer = send(version, batch).await;
        assert_eq!(answer.json()["id"], Value::Null, "{name}");
        lines.push(format!("{name}: {}", answer.error()));
    }
    expect![[r#"
        empty: 400 -32600 a batch holds at least one message
        too long: 400 -32600 a batch may have 100 messages
        in a later version: 400 -32600 this version of the protocol has no batches; send the messages one by one
        in the latest version: 400 -32600 this version of the protocol has no batches; send the messages one by one
        broken: 400 -32700 the body is not JSON: key must be a string at line 1 column 3"#]].assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn a_batch_opens_no_session() {
    let bridge = Serving::start("").await;
    let batch = json!([initialize(&client_of(&json!("2025-03-26")))]).to_string();
    let outside = post(&bridge, None, batch.as_str()).await;
    assert_eq!(outside.session, None);
    expect!["400 -32600 the request names no session: send `initialize` first and then its `Mcp-Session-Id`, or the `_meta` of 2026-07-28"].assert_eq(&outside.error());

    let session = open(&bridge, "2025-03-26").await;
    let within = post(&bridge, Some(&session), batch).await;
    assert_eq!(within.session, None);
    let answer = within.json();
    assert_eq!(answer[0].get("result"), None, "{answer}");
    expect![[r#"[{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"there is no method `initialize`"}}]"#]].assert_eq(&answer.to_string());
}

#[tokio::test]
async fn versions_are_agreed_on() {
    let bridge = Serving::start("").await;
    let versions = json!([
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
        "1900-01-01",
        "",
        null,
        20_250_326,
    ]);
    let versions = versions.as_array().expect("it is an array").iter();
    let asked = versions.map(|it| (it.to_string(), client_of(it)));
    let nothing = ("nothing".to_owned(), json!({ "capabilities": {} }));
    let mut lines = Vec::new();
    for (asked, params) in asked.chain([nothing]) {
        let answer = post(&bridge, None, initialize(&params).to_string()).await;
        let agreed = answer.json()["result"]["protocolVersion"].clone();
        let said = match (&agreed, &answer.session) {
            (Value::Null, None) => answer.error(),
            (Value::String(version), Some(session)) => {
                let batch = post(&bridge, Some(session), pings(1)).await;
                let batches = if batch.status == 200 {
                    "batches"
                } else {
                    "no batches"
                };
                format!("{version}, {batches}")
            }
            _ => panic!("a version and a session come together: {}", answer.body),
        };
        lines.push(format!("{asked}: {said}"));
    }
    expect![[r#"
        "2024-11-05": 2024-11-05, batches
        "2025-03-26": 2025-03-26, batches
        "2025-06-18": 2025-06-18, no batches
        "2025-11-25": 2025-11-25, no batches
        "2026-07-28": 2025-11-25, no batches
        "1900-01-01": 2025-11-25, no batches
        "": 2025-11-25, no batches
        null: 200 -32602 the parameters of `initialize` don't fit: invalid type: null, expected a string at line 1 column 23
        20250326: 200 -32602 the parameters of `initialize` don't fit: invalid type: integer `20250326`, expected a string at line 1 column 27
        nothing: 200 -32602 the parameters of `initialize` don't fit: missing field `protocolVersion` at line 1 column 19"#]].assert_eq(&lines.join("\n"));
}

/// The front door in this process: nothing comes from outside, so that the clock may stand.
struct Indoors {
    router: Router,
    front_door: FrontDoor,
    changes: Changes,
    session: String,
    _folder: TempDir,
}

impl Indoors {
    async fn new() -> Self {
        let folder = TempDir::new().expect("the temporary folder can be written");
        let flags = Flags {
            data: Some(folder.path().to_owned()),
            no_auth: true,
            ..Flags::default()
        };
        let variables = BTreeMap::new();
        let config =
            Config::load(&flags, &variables, folder.path()).expect("the settings are right");
        let dispatcher = clopen_mcp::dispatcher(&config, &variables).await;
        let dispatcher = dispatcher.expect("the servers are right");
        let store = Store::open(&config.data, None)
            .await
            .expect("the store opens");
        let changes = dispatcher.changes().clone();
        let front_door = FrontDoor::new(dispatcher, &[7; 32], None, None, config.limits, true);
        let guard = Guard::new(&config, None, store);
        let streams = Arc::new(Streams::default());
        let router = mcp::router(&front_door, guard, streams, Router::new());
        let mut door = Self {
            router,
            front_door,
            changes,
            session: String::new(),
            _folder: folder,
        };
        let hello = initialize(&client_of(&json!("2025-11-25")));
        let response = door.post(&hello, "application/json").await;
        let session = &response.headers()["mcp-session-id"];
        let session = session.to_str().expect("it is text");
        session.clone_into(&mut door.session);
        door
    }

    async fn respond(&self, method: &str, accept: &str, body: Body) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", accept);
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        let request = request.body(body).expect("the request is right");
        let response = any_service(self.router.clone()).call(request, ()).await;
        assert_eq!(response.status().as_u16(), 200);
        response
    }

    async fn post(&self, message: &Value, accept: &str) -> Response {
        let body = Body::from(message.to_string());
        self.respond("POST", accept, body).await
    }

    /// Makes a request that is answered at once.
    async fn request(&self, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let response = self.post(&message, "application/json").await;
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        serde_json::from_slice(&body.expect("it ends")).expect("it is JSON")
    }

    async fn listen(&self) -> BodyDataStream {
        let response = self
            .respond("GET", "text/event-stream", Body::empty())
            .await;
        response.into_body().into_data_stream()
    }
}

async fn piece(stream: &mut BodyDataStream) -> Option<Bytes> {
    let piece = stream.next().await?;
    Some(piece.expect("a body has no errors"))
}

/// Signs of life come after so many seconds, and nothing else does.
async fn lives(stream: &mut BodyDataStream, since: Instant, sign: &str, seconds: [u64; 3]) {
    for second in seconds {
        let piece = piece(stream).await;
        assert_eq!(piece.as_deref(), Some(sign.as_bytes()));
        assert_eq!(since.elapsed().as_secs(), second);
    }
}

/// A call that lasts, as a client gets it that takes this kind of answer.
async fn a_call_lasts(accept: &str, sign: &str, last: Expect) {
    let door = Indoors::new().await;
    let name = format!("lasts for one who accepts {accept}");
    let params = json!({ "name": "wait", "arguments": { "room": name } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    tokio::time::pause();
    let begun = Instant::now();
    let response = door.post(&call, accept).await;
    let mut stream = response.into_body().into_data_stream();
    lives(&mut stream, begun, sign, [5, 20, 35]).await;
    Room::named(&name).release();
    let piece = piece(&mut stream).await.expect("it is answered");
    last.assert_eq(str::from_utf8(&piece).expect("it is UTF-8"));
    assert_eq!(stream.next().await.map(Result::ok), None);
    assert!(begun.elapsed() < Duration::from_secs(36));
}

#[tokio::test]
async fn a_call_that_lasts_as_events() {
    a_call_lasts(
        "application/json, text/event-stream",
        ": still here\n\n",
        expect![[r#"
            event: message
            data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"waited"}],"isError":false}}

        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_call_that_lasts_as_json() {
    a_call_lasts("application/json", " ", expect![[r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"waited"}],"isError":false}}"#]]).await;
}

#[tokio::test]
async fn a_stream_without_news() {
    let door = Indoors::new().await;
    tokio::time::pause();
    let begun = Instant::now();
    let mut stream = door.listen().await;
    lives(&mut stream, begun, ": still here\n\n", [0, 15, 30]).await;
}

/// Says that these resources have changed; returns the first of them that the stream tells of.
async fn first_told(door: &Indoors, stream: &mut BodyDataStream, changed: [&str; 2]) -> Value {
    for uri in changed {
        door.changes.resource(uri);
    }
    loop {
        let piece = soon(piece(stream)).await.expect("the stream goes on");
        let event = str::from_utf8(&piece).expect("it is UTF-8");
        if let Some((_, data)) = event.split_once("data: ") {
            let message: Value = serde_json::from_str(data).expect("it is a message");
            assert_eq!(message["method"], "notifications/resources/updated");
            return message["params"]["uri"].clone();
        }
    }
}

#[tokio::test]
async fn only_who_subscribes_is_told() {
    // News is told in the order of the addresses.
    const MOTTO: &str = "gallery://motto";
    const ROOM: &str = "gallery://rooms/7";
    let door = Indoors::new().await;
    door.front_door.tend();
    // Whoever tends the door begins to watch.
    tokio::task::yield_now().await;
    let mut stream = door.listen().await;
    let set = async |method: &str, uri: &str| {
        let answer = door.request(method, json!({ "uri": uri })).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    };
    let both = [MOTTO, ROOM];

    set("resources/subscribe", ROOM).await;
    assert_eq!(first_told(&door, &mut stream, both).await, ROOM);
    set("resources/subscribe", MOTTO).await;
    assert_eq!(first_told(&door, &mut stream, both).await, MOTTO);
    assert_eq!(first_told(&door, &mut stream, [ROOM, ROOM]).await, ROOM);
    set("resources/unsubscribe", MOTTO).await;
    assert_eq!(first_told(&door, &mut stream, both).await, ROOM);
    door.front_door.close();
}

#[tokio::test]
async fn what_is_not_there_has_no_subscribers() {
    let door = Indoors::new().await;
    let params = json!({ "uri": "gallery://nope" });
    let answer = door.request("resources/subscribe", params.clone()).await;
    expect![[r#"{"code":-32002,"message":"there is no resource `gallery://nope`","data":{"uri":"gallery://nope"}}"#]].assert_eq(&answer["error"].to_string());
    // Who has no subscription may end it.
    let answer = door.request("resources/unsubscribe", params).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
}
