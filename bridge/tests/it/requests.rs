//! What requests are answered that no client of ours would send.

use crate::{
    bridge::{Serving, TOKEN, profile},
    client::{Client, Era, MODERN, plain_http, soon},
    sample_servers::Room,
};
use expect_test::{Expect, expect};
use reqwest::{
    Method, StatusCode,
    header::{HeaderName, HeaderValue},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// A request that is right until something in it is changed.
struct Odd {
    method: Method,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Odd {
    fn legacy(message: &Value) -> Self {
        let headers = [
            ("authorization", format!("Bearer {TOKEN}")),
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
        ];
        Self {
            method: Method::POST,
            headers: headers.into(),
            body: message.to_string().into(),
        }
    }

    /// `params` get a `_meta` of their own unless they have one; `null` is none.
    fn modern(method: &str, mut params: Value) -> Self {
        let own = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let fields = params.as_object_mut().expect("they are an object");
        let meta = fields.entry("_meta").or_insert(own);
        if meta.is_null() {
            fields.remove("_meta");
        }
        let name = ["name", "uri"].iter().find_map(|it| params[it].as_str());
        let name = name.map(str::to_owned);
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let odd = Self::legacy(&message)
            .with("mcp-protocol-version", MODERN)
            .with("mcp-method", method);
        match name {
            Some(name) => odd.with("mcp-name", &name),
            None => odd,
        }
    }

    fn with(mut self, header: &'static str, value: &str) -> Self {
        self.headers.push((header, value.to_owned()));
        self
    }

    fn without(mut self, header: &str) -> Self {
        self.headers.retain(|(name, _)| *name != header);
        self
    }

    fn instead(self, header: &'static str, value: &str) -> Self {
        self.without(header).with(header, value)
    }

    fn by(mut self, method: Method) -> Self {
        self.method = method;
        self.body.clear();
        self
    }

    fn saying(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    async fn send(self, bridge: &Serving) -> reqwest::Response {
        let mut request = plain_http().request(self.method, bridge.url());
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let answer = request.body(self.body).send().await;
        answer.expect("it is answered")
    }
}

/// An answer but for its id, which may be one that few readers take.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    error: Value,
    result: Value,
}

/// Returns the status and, if there is one, the code of the error or the kind of the result.
async fn outcome(response: reqwest::Response) -> String {
    let status = response.status().as_u16();
    let text = response.text().await.expect("it can be read");
    let json = match text.rsplit_once("data: ") {
        Some((_, data)) => serde_json::from_str(data.trim()),
        None => serde_json::from_str(&text),
    };
    let Answer { error, result } = json.unwrap_or_default();
    match (&error["code"], &result["isError"]) {
        (Value::Null, Value::Bool(true)) => format!("{status} error result"),
        (Value::Null, _) if result.is_object() => format!("{status} result"),
        (Value::Null, _) => status.to_string(),
        (code, _) => format!("{status} {code}"),
    }
}

async fn outcomes(bridge: &Serving, cases: impl IntoIterator<Item = (&str, Odd)>) -> String {
    let mut lines = Vec::new();
    for (name, odd) in cases {
        lines.push(format!(
            "{name}: {}\n",
            outcome(odd.send(bridge).await).await
        ));
    }
    lines.concat()
}

async fn check(cases: impl IntoIterator<Item = (&str, Odd)>, expected: Expect) {
    let bridge = Serving::start("").await;
    expected.assert_eq(&outcomes(&bridge, cases).await);
}

fn list() -> Odd {
    Odd::modern("tools/list", json!({}))
}

fn with_meta(change: impl FnOnce(&mut Value)) -> Odd {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    change(&mut meta);
    Odd::modern("tools/list", json!({ "_meta": meta }))
}

fn of_version(version: &str) -> Odd {
    with_meta(|meta| meta["io.modelcontextprotocol/protocolVersion"] = json!(version))
        .instead("mcp-protocol-version", version)
}

#[tokio::test]
async fn framing() {
    let message = |it: Value| list().saying(it.to_string());
    let id_null = json!({ "jsonrpc": "2.0", "id": null, "method": "tools/list", "params": {} });
    let cases = [
        ("broken JSON", list().saying("{not json")),
        ("no body", list().saying("")),
        ("not UTF-8", list().saying(*b"\"\xff\"")),
        ("JSON of another kind", message(json!({ "a": 1 }))),
        ("an id of null", message(id_null)),
        (
            "a batch",
            message(json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }])),
        ),
        ("anything accepted", list().instead("accept", "*/*")),
        (
            "only JSON accepted",
            list().instead("accept", "application/json"),
        ),
        ("nothing said of what is accepted", list().without("accept")),
        ("plain text", list().instead("content-type", "text/plain")),
        ("too large", list().saying(" ".repeat(5 << 20))),
    ];
    check(
        cases,
        expect![[r#"
        broken JSON: 400 -32700
        no body: 400 -32700
        not UTF-8: 400 -32700
        JSON of another kind: 400 -32600
        an id of null: 400 -32600
        a batch: 400 -32600
        anything accepted: 200 result
        only JSON accepted: 200 result
        nothing said of what is accepted: 200 result
        plain text: 415 -32600
        too large: 413 -32600
    "#]],
    )
    .await;
}

#[tokio::test]
async fn places() {
    let cases = [
        (
            "a page of this machine",
            list().with("origin", "http://localhost:3000"),
        ),
        (
            "a page from outside",
            list().with("origin", "http://evil.example"),
        ),
        ("a page from nowhere", list().with("origin", "null")),
        ("another port", list().with("host", "localhost:1")),
        ("another host", list().with("host", "evil.example")),
    ];
    check(
        cases,
        expect![[r#"
        a page of this machine: 200 result
        a page from outside: 403 -32600
        a page from nowhere: 403 -32600
        another port: 200 result
        another host: 403 -32600
    "#]],
    )
    .await;
}

#[tokio::test]
async fn headers_against_the_body() {
    let read = |uri: &str| Odd::modern("resources/read", json!({ "uri": uri }));
    let cases = [
        ("no method", list().without("mcp-method")),
        ("another method", list().instead("mcp-method", "tools/call")),
        ("no version", list().without("mcp-protocol-version")),
        ("no name", read("test://nope").without("mcp-name")),
        (
            "another name",
            read("test://nope").instead("mcp-name", "test://other"),
        ),
        (
            "two names",
            read("test://nope").with("mcp-name", "test://nope"),
        ),
        (
            "a name in Base64",
            read("test://nope").instead("mcp-name", "=?base64?dGVzdDovL25vcGU=?="),
        ),
        ("a session", list().with("mcp-session-id", "abc")),
    ];
    check(
        cases,
        expect![[r#"
        no method: 400 -32020
        another method: 400 -32020
        no version: 400 -32020
        no name: 400 -32020
        another name: 400 -32020
        two names: 400 -32020
        a name in Base64: 200 -32602
        a session: 200 result
    "#]],
    )
    .await;
}

#[tokio::test]
async fn headers_against_the_arguments() {
    let light = |number: &str, header: &str| {
        let params = json!({ "name": "gallery.light", "arguments": { "number": 0 } });
        let mut odd = Odd::modern("tools/call", params);
        let body = String::from_utf8(odd.body).expect("it is text");
        odd.body = body.replace(":0}", &format!(":{number}}}")).into();
        odd.with("mcp-param-lamp", header)
    };
    // Half a surrogate pair is JSON, but no text: few readers take it.
    let beside_a_half = |odd: Odd| {
        let body = String::from_utf8(odd.body.clone()).expect("it is text");
        odd.saying(body.replace(r#""_meta":{"#, r#""_meta":{"half":"\ud800","#))
    };
    let cases = [
        ("the number", light("7", "7")),
        ("the number in other digits", light("7", "7.0e0")),
        ("another number", light("7", "8")),
        ("no number", light("7", "7").without("mcp-param-lamp")),
        ("two numbers", light("7", "7").with("mcp-param-lamp", "7")),
        ("no digits", light("7", "seven")),
        (
            "a large number",
            light("9007199254740993", "9007199254740993"),
        ),
        (
            "its neighbour",
            light("9007199254740993", "9007199254740992"),
        ),
        ("beside a half, the number", beside_a_half(light("7", "7"))),
        (
            "beside a half, another number",
            beside_a_half(light("7", "8")),
        ),
        (
            "beside a half, another name",
            beside_a_half(light("7", "7").instead("mcp-name", "gallery.text")),
        ),
    ];
    check(
        cases,
        expect![[r#"
        the number: 200 result
        the number in other digits: 200 result
        another number: 400 -32020
        no number: 400 -32020
        two numbers: 400 -32020
        no digits: 400 -32020
        a large number: 200 result
        its neighbour: 400 -32020
        beside a half, the number: 200 result
        beside a half, another number: 400 -32020
        beside a half, another name: 400 -32020
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_each_request_must_say() {
    let without = |name: &str| {
        with_meta(|meta| {
            meta.as_object_mut().expect("it is an object").remove(name);
        })
    };
    let level = with_meta(|meta| meta["io.modelcontextprotocol/logLevel"] = json!("loud"));
    let cases = [
        (
            "nothing",
            Odd::modern("tools/list", json!({ "_meta": null })),
        ),
        (
            "no capabilities",
            without("io.modelcontextprotocol/clientCapabilities"),
        ),
        (
            "no version",
            without("io.modelcontextprotocol/protocolVersion"),
        ),
        ("no such level", level),
        ("a version from before", of_version("2025-11-25")),
        ("no such version", of_version("1999-01-01")),
    ];
    check(
        cases,
        expect![[r#"
        nothing: 400 -32602
        no capabilities: 400 -32602
        no version: 400 -32602
        no such level: 400 -32602
        a version from before: 400 -32022
        no such version: 400 -32022
    "#]],
    )
    .await;
}

#[tokio::test]
async fn methods_of_the_other_era() {
    let initialize = json!({ "protocolVersion": MODERN, "capabilities": {}, "clientInfo": {} });
    let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover" });
    let cases = [
        ("ping", Odd::modern("ping", json!({}))),
        (
            "logging/setLevel",
            Odd::modern("logging/setLevel", json!({ "level": "info" })),
        ),
        (
            "resources/subscribe",
            Odd::modern("resources/subscribe", json!({ "uri": "a:b" })),
        ),
        ("initialize", Odd::modern("initialize", initialize)),
        ("server/discover", Odd::legacy(&discover)),
    ];
    check(
        cases,
        expect![[r#"
        ping: 404 -32601
        logging/setLevel: 404 -32601
        resources/subscribe: 404 -32601
        initialize: 404 -32601
        server/discover: 400 -32600
    "#]],
    )
    .await;
}

#[tokio::test]
async fn ids_of_subscriptions() {
    let listen = |id: &str| {
        let odd = Odd::modern("subscriptions/listen", json!({ "notifications": {} }));
        let body = String::from_utf8(odd.body.clone()).expect("it is text");
        odd.saying(body.replace(r#""id":1"#, &format!(r#""id":{id}"#)))
    };
    let cases = [
        ("half a surrogate pair", listen(r#""\ud800""#)),
        ("thirty digits", listen("123456789012345678901234567890")),
    ];
    check(
        cases,
        expect![[r#"
        half a surrogate pair: 200 -32600
        thirty digits: 200 -32600
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_is_no_request() {
    let message = |it: Value, method: &str| {
        let odd = list().saying(it.to_string());
        odd.instead("mcp-method", method)
    };
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    let cases = [
        (
            "a notification",
            message(cancelled.clone(), "notifications/cancelled"),
        ),
        ("a notification of nobody", Odd::legacy(&cancelled)),
        (
            "an answer",
            message(answer.clone(), "tools/list").without("mcp-method"),
        ),
        ("an answer of nobody", Odd::legacy(&answer)),
        ("GET", list().by(Method::GET)),
        ("GET of nobody", Odd::legacy(&json!(null)).by(Method::GET)),
        ("DELETE", list().by(Method::DELETE)),
        ("PUT", list().by(Method::PUT)),
    ];
    check(
        cases,
        expect![[r#"
        a notification: 202
        a notification of nobody: 400 -32600
        an answer: 400 -32600
        an answer of nobody: 400 -32600
        GET: 405 -32600
        GET of nobody: 405 -32600
        DELETE: 405 -32600
        PUT: 405 -32600
    "#]],
    )
    .await;
}

#[tokio::test]
async fn sessions() {
    let bridge = Serving::start("").await;
    let ping = json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" });
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "odd", "version": "1" },
    });
    let first = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let first = Odd::legacy(&first).send(&bridge).await;
    let session = first.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let within = |message: &Value| {
        let odd = Odd::legacy(message).with("mcp-protocol-version", "2025-11-25");
        odd.with("mcp-session-id", &session)
    };
    let ends = || within(&ping).by(Method::DELETE);
    let tasks = |method: &str| within(&json!({ "jsonrpc": "2.0", "id": 7, "method": method }));
    let cases = [
        ("before the client is ready", within(&ping)),
        (
            "no such version",
            within(&ping).instead("mcp-protocol-version", "1.2.3"),
        ),
        (
            "another version",
            within(&ping).instead("mcp-protocol-version", "2025-03-26"),
        ),
        ("no session", within(&ping).without("mcp-session-id")),
        (
            "no such session",
            within(&ping).instead("mcp-session-id", "nope"),
        ),
        ("no such method", tasks("x/y")),
        (
            "the end of another",
            ends().instead("mcp-session-id", "nope"),
        ),
        ("the end", ends()),
        ("the end once more", ends()),
        ("after the end", within(&ping)),
    ];
    expect![[r#"
        before the client is ready: 200 result
        no such version: 400 -32600
        another version: 200 result
        no session: 400 -32600
        no such session: 404 -32600
        no such method: 200 -32601
        the end of another: 404 -32600
        the end: 204
        the end once more: 404 -32600
        after the end: 404 -32600
    "#]]
    .assert_eq(&outcomes(&bridge, cases).await);
}

/// A call that takes long has its status and its first bytes before its result, or a proxy would give it up.
async fn first_bytes(accept: &str, first: &str, rest: Expect) {
    let bridge = Serving::start("").await;
    let room = format!("a slow call that accepts {accept}");
    let params = json!({ "name": "lab.wait", "arguments": { "room": room } });
    let slow = Odd::modern("tools/call", params).instead("accept", accept);
    let mut answer = soon(slow.send(&bridge)).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let bytes = soon(answer.chunk()).await.expect("it goes on");
    assert_eq!(bytes.as_deref(), Some(first.as_bytes()));

    let room = Room::named(&room);
    assert!(!room.is_left());
    room.release();
    rest.assert_eq(&soon(answer.text()).await.expect("it ends well"));
}

#[tokio::test]
async fn a_slow_call_as_events() {
    first_bytes(
        "application/json, text/event-stream",
        ": still here\n\n",
        expect![[r#"
            event: message
            data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"waited"}],"isError":false,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"clopen-mcp","version":"0.1.0"}}}}

        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_slow_call_as_json() {
    first_bytes("application/json", " ", expect![[r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"waited"}],"isError":false,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"clopen-mcp","version":"0.1.0"}}}}"#]]).await;
}

#[tokio::test]
async fn pages_of_a_browser() {
    let bridge = Serving::start("allowed_origins = [\"https://inspector.example\"]").await;
    let asked = Odd::legacy(&json!(null))
        .by(Method::OPTIONS)
        .without("authorization")
        .with("access-control-request-method", "POST")
        .with(
            "access-control-request-headers",
            "authorization, mcp-method",
        );
    let answer = asked
        .with("origin", "https://inspector.example")
        .send(&bridge)
        .await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    expect![[r#"
        access-control-allow-headers: authorization, mcp-method
        access-control-allow-methods: POST, GET, DELETE
        access-control-allow-origin: https://inspector.example
        access-control-expose-headers: Mcp-Session-Id, WWW-Authenticate
        access-control-max-age: 600
        vary: Origin"#]]
    .assert_eq(&permissions(&answer));

    let answer = list()
        .with("origin", "https://inspector.example")
        .send(&bridge)
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    expect![[r#"
        access-control-allow-origin: https://inspector.example
        access-control-expose-headers: Mcp-Session-Id, WWW-Authenticate
        vary: Origin"#]]
    .assert_eq(&permissions(&answer));

    // What is missing is told to the page too, and nothing to a page that may not call.
    let answer = list()
        .without("authorization")
        .with("origin", "https://inspector.example")
        .send(&bridge)
        .await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    assert!(answer.headers().contains_key("access-control-allow-origin"));
    let answer = list()
        .with("origin", "https://evil.example")
        .send(&bridge)
        .await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    expect![[""]].assert_eq(&permissions(&answer));
}

fn permissions(answer: &reqwest::Response) -> String {
    let is_one = |(name, _): &(&HeaderName, &HeaderValue)| {
        name.as_str().starts_with("access-control-") || *name == "vary"
    };
    let mut lines: Vec<_> = answer
        .headers()
        .iter()
        .filter(is_one)
        .map(|(name, value)| format!("{name}: {}", value.to_str().expect("it is text")))
        .collect();
    lines.sort();
    lines.join("\n")
}

/// Follows a list from page to page.
async fn pages(client: &Client, what: &str) -> Vec<Vec<String>> {
    let (field, key) = match what {
        "resources" => ("resources", "uri"),
        "resources/templates" => ("resourceTemplates", "uriTemplate"),
        _ => (what, "name"),
    };
    let (mut pages, mut params) = (Vec::new(), json!({}));
    loop {
        let reply = client.request(&format!("{what}/list"), params).await;
        let result = reply.result();
        let items = result[field].as_array().expect("there are some").iter();
        let items = items.map(|it| it[key].as_str().expect("it has a name").to_owned());
        pages.push(items.collect());
        match &result["nextCursor"] {
            Value::Null => return pages,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
}

#[tokio::test]
async fn lists_come_in_pages() {
    let whole = Serving::start("").await;
    let bridge = Serving::start_with("", |config| config.limits.page = 2).await;
    for era in [Era::Modern, Era::Legacy("2025-11-25")] {
        for what in ["tools", "resources", "resources/templates", "prompts"] {
            let all = pages(&whole.client_with(profile(era)).await, what).await;
            let pages = pages(&bridge.client_with(profile(era)).await, what).await;
            assert_eq!(all.len(), 1, "{what}");
            assert_eq!(pages.len(), all[0].len().div_ceil(2).max(1), "{what}");
            assert!(
                pages.iter().all(|page| page.len() <= 2),
                "{what}: {pages:?}"
            );
            assert_eq!(pages.concat(), all[0], "{what}");
        }
    }
}
