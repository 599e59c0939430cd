//! How a bridge begins, refuses and ends.

use crate::{
    bridge::{Serving, TOKEN, config, profile},
    client::{Client, Era, Profile, binary, plain_http, soon},
    sample_servers::Room,
};
use clopen_mcp::Bridge;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::{collections::BTreeMap, error::Error, fs, net::TcpListener, process::Stdio};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStderr, Command},
};

const LATEST_LEGACY: Era = Era::Legacy("2025-11-25");

/// Sends a request as it is, and returns the status and the body.
async fn send(bridge: &Serving, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(bridge.address)
        .await
        .expect("it listens");
    let request = request.replace('\n', "\r\n");
    let request = format!("{request}\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it reads");
    let mut answer = String::new();
    let read = soon(stream.read_to_string(&mut answer));
    read.await.expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("it is HTTP");
    let status = head.split(' ').nth(1).expect("there is a status");
    (status.parse().expect("it is a number"), body.to_owned())
}

async fn refuses(request: &str, expected: Expect) {
    let bridge = Serving::start("").await;
    let (status, body) = send(&bridge, request).await;
    expected.assert_eq(&format!("{status} {body}"));
}

#[tokio::test]
async fn health_needs_no_token() {
    let bridge = Serving::start("").await;
    let (status, body) = send(&bridge, "GET /healthz HTTP/1.1\nHost: 10.1.2.3").await;
    assert_eq!(status, 200);
    let body: Value = serde_json::from_str(&body).expect("it is JSON");
    assert_eq!(
        body,
        json!({ "status": "ok", "name": "clopen-mcp", "version": env!("CARGO_PKG_VERSION") })
    );
}

#[tokio::test]
async fn nothing_else_is_served() {
    let bridge = Serving::start("").await;
    let request = format!("GET /other HTTP/1.1\nHost: localhost\nAuthorization: Bearer {TOKEN}");
    let (status, _) = send(&bridge, &request).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_call_without_a_token() {
    refuses(
        "POST /mcp HTTP/1.1\nHost: localhost\nContent-Length: 0",
        expect![[r#"401 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a token is needed: send the header `Authorization: Bearer TOKEN`; the token is in `CLOPEN_MCP_TOKEN` where that is set, else in the file `token` of the bridge's data folder, and `clopen-mcp tokens create` makes others"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn a_call_with_a_wrong_token() {
    refuses(
        "POST /mcp HTTP/1.1\nHost: localhost\nAuthorization: Bearer guessed\nContent-Length: 0",
        expect![[r#"401 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the token is unknown or revoked; the right one is in `CLOPEN_MCP_TOKEN` where that is set, else in the file `token` of the bridge's data folder, and `clopen-mcp tokens create` makes others"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn a_call_from_another_page() {
    refuses(
        "POST /mcp HTTP/1.1\nHost: localhost\nOrigin: https://evil.example\nContent-Length: 0",
        expect![[r#"403 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"web pages of `https://evil.example` may not call the bridge; if they should, add the origin to the setting `allowed_origins`"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn a_call_to_another_name() {
    refuses(
        "POST /mcp HTTP/1.1\nHost: evil.example\nContent-Length: 0",
        expect![[r#"403 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the bridge doesn't answer to the host `evil.example`; if that is its name, add it to the setting `allowed_hosts`"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn a_body_that_is_too_long() {
    let bridge = Serving::start("max_body = 1000").await;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#,
        "x".repeat(2000)
    );
    let request = format!(
        "POST /mcp HTTP/1.1\nHost: localhost\nAuthorization: Bearer {TOKEN}\nContent-Type: application/json\nAccept: application/json, text/event-stream\nContent-Length: {}\n\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(bridge.address)
        .await
        .expect("it listens");
    let request = request.replace('\n', "\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it reads");
    let mut line = String::new();
    let mut reader = BufReader::new(stream);
    soon(reader.read_line(&mut line)).await.expect("it answers");
    assert!(line.starts_with("HTTP/1.1 413 "), "{line}");
}

#[tokio::test]
async fn a_session_belongs_to_the_bridge_that_opened_it() {
    let bridge = Serving::start("").await;
    let client = bridge.client(LATEST_LEGACY).await;
    let session = client.session().expect("it has one");
    let request = |session: &str| {
        plain_http()
            .post(bridge.url())
            .bearer_auth(TOKEN)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", session)
            .json(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
            .send()
    };
    let known = request(&session).await.expect("it answers");
    assert_eq!(known.status(), 200);
    let unknown = request("invented").await.expect("it answers");
    assert_eq!(unknown.status(), 404);
}

#[tokio::test]
async fn a_session_that_is_ended() {
    let bridge = Serving::start("").await;
    let client = bridge.client(LATEST_LEGACY).await;
    let session = client.session().expect("it has one");
    let ended = plain_http()
        .delete(bridge.url())
        .bearer_auth(TOKEN)
        .header("mcp-session-id", &session)
        .send()
        .await
        .expect("it answers");
    assert!(ended.status().is_success(), "{}", ended.status());
    let after = plain_http()
        .post(bridge.url())
        .bearer_auth(TOKEN)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", &session)
        .json(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
        .send()
        .await
        .expect("it answers");
    assert_eq!(after.status(), 404);
}

#[tokio::test]
async fn an_address_that_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has an address");
    let folder = TempDir::new().expect("the temporary folder can be written");
    let mut config = config(folder.path(), "");
    config.listen = address;
    let refused = Bridge::start(&config, &BTreeMap::new()).await;
    let error = refused.expect_err("it is taken").to_string();
    expect!["`ADDRESS` is taken by another program, perhaps another clopen-mcp; stop that one, or choose another address with `--listen HOST:PORT`"].assert_eq(&error.replace(&address.to_string(), "ADDRESS"));
}

#[tokio::test]
async fn an_address_of_another_machine() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    // This network is for documentation, so that no machine has it.
    let mut config = config(folder.path(), "");
    config.listen = "192.0.2.1:9151".parse().expect("it is an address");
    let refused = Bridge::start(&config, &BTreeMap::new()).await;
    let error = refused.expect_err("it is not ours");
    assert!(error.source().is_some());
    expect!["can't listen on `192.0.2.1:9151`; choose another address with `--listen HOST:PORT`"]
        .assert_eq(&error.to_string());
}

#[tokio::test]
async fn settings_that_select_what_is_not_there() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let settings = "[servers.galery]\n[servers.lab]\nwithout = [\"whoo\"]";
    let config = config(folder.path(), settings);
    let refused = Bridge::start(&config, &BTreeMap::new()).await;
    let error = refused.expect_err("they are wrong");
    let cause = error.source().expect("it has a cause").to_string();
    let folder = folder.path().display().to_string();
    expect![[r#"
        the settings select what does not exist (FOLDER/clopen-mcp.toml):
        there is no server `galery`; did you mean `gallery`?
        the server `lab` has no tool `whoo`; did you mean `who`?"#]]
    .assert_eq(&format!("{error}:\n{cause}").replace(&folder, "FOLDER"));
}

/// A call under way when the bridge is asked to stop.
async fn a_call_ends_before_the_bridge(era: Era) {
    let bridge = Serving::start("").await;
    let client = bridge.client(era).await;
    let name = format!("ends before the bridge in {}", era.version());
    let room = Room::named(&name);
    let call = client.start_call("wait", json!({ "room": name }));
    room.until_begun().await;
    bridge.stop();
    refuses_connections(&bridge).await;
    assert!(!room.is_left());
    room.release();
    assert_eq!(call.reply().await.text(), "waited");
    bridge.stopped().await;
}

#[tokio::test]
async fn a_call_ends_before_the_bridge_legacy() {
    a_call_ends_before_the_bridge(LATEST_LEGACY).await;
}

#[tokio::test]
async fn a_call_ends_before_the_bridge_modern() {
    a_call_ends_before_the_bridge(Era::Modern).await;
}

/// Waits until nobody listens any more.
async fn refuses_connections(bridge: &Serving) {
    let refused = async {
        while TcpStream::connect(bridge.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    soon(refused).await;
}

async fn a_call_over_the_limit_does_not_hold_the_end_up(era: Era) {
    let bridge = Serving::start("drain = \"50ms\"").await;
    let client = bridge.client(era).await;
    let name = format!("over the limit in {}", era.version());
    let room = Room::named(&name);
    let call = client.start_call("wait", json!({ "room": name }));
    room.until_begun().await;
    bridge.stop();
    bridge.stopped().await;
    call.hang_up();
}

#[tokio::test]
async fn a_call_over_the_limit_does_not_hold_the_end_up_legacy() {
    a_call_over_the_limit_does_not_hold_the_end_up(LATEST_LEGACY).await;
}

#[tokio::test]
async fn a_call_over_the_limit_does_not_hold_the_end_up_modern() {
    a_call_over_the_limit_does_not_hold_the_end_up(Era::Modern).await;
}

#[tokio::test]
async fn an_open_stream_does_not_hold_the_end_up() {
    let bridge = Serving::start("").await;
    let client = bridge.client(LATEST_LEGACY).await;
    let _stream = client.listen().await;
    bridge.stop();
    bridge.stopped().await;
}

#[tokio::test]
async fn a_bridge_without_calls_ends_at_once() {
    let bridge = Serving::start("").await;
    let client = bridge.client(Era::Modern).await;
    assert_eq!(client.call("text", json!({})).await.text(), "a text");
    bridge.stop();
    bridge.stopped().await;
}

#[tokio::test]
async fn a_caller_who_hangs_up_stops_the_tool() {
    let bridge = Serving::start("").await;
    let client = bridge.client(Era::Modern).await;
    let room = Room::named("hangs up");
    let call = client.start_call("wait", json!({ "room": "hangs up" }));
    room.until_begun().await;
    call.hang_up();
    room.until_left().await;
}

#[tokio::test]
async fn a_legacy_caller_may_lose_the_connection() {
    let bridge = Serving::start("").await;
    let client = bridge.client(LATEST_LEGACY).await;
    let room = Room::named("loses the connection");
    let call = client.start_call("wait", json!({ "room": "loses the connection" }));
    room.until_begun().await;
    call.hang_up();
    // The same connection may carry this call, so that the bridge has seen the other one end.
    assert_eq!(client.call("text", json!({})).await.text(), "a text");
    assert!(!room.is_left());
    room.release();
    room.until_left().await;
}

/// The real binary, serving.
pub(crate) struct Program {
    child: Child,
    stderr: Lines<BufReader<ChildStderr>>,
    pub(crate) greeting: Vec<String>,
    pub(crate) url: String,
}

impl Program {
    pub(crate) async fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let stderr = child.stderr.take().expect("it is piped");
        let mut program = Self {
            child,
            stderr: BufReader::new(stderr).lines(),
            greeting: Vec::new(),
            url: String::new(),
        };
        loop {
            let line = program.line().await;
            if let Some((_, url)) = line.split_once(" listens on ") {
                url.clone_into(&mut program.url);
            }
            let is_count = line.contains(" tools of ");
            program.greeting.push(line);
            if is_count {
                return program;
            }
        }
    }

    async fn line(&mut self) -> String {
        let line = soon(self.stderr.next_line()).await;
        line.expect("it is UTF-8").expect("it says something")
    }

    /// Waits for a line that begins so.
    async fn until(&mut self, beginning: &str) {
        while !self.line().await.starts_with(beginning) {}
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().expect("it runs").to_string();
        let status = std::process::Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(status.expect("there is a `kill`").success());
    }

    async fn code(&mut self) -> Option<i32> {
        let status = soon(self.child.wait()).await;
        status.expect("it ends").code()
    }

    pub(crate) fn port(&self) -> &str {
        let port = self.url.rsplit(':').next().expect("it has a port");
        port.trim_end_matches("/mcp")
    }
}

fn folder() -> TempDir {
    TempDir::new().expect("the temporary folder can be written")
}

#[tokio::test]
async fn the_program_says_where_it_listens_and_where_the_token_is() {
    let folder = folder();
    let program = Program::start(&mut binary(folder.path())).await;
    let greeting = program.greeting.join("\n").replace(program.port(), "PORT");
    let data = folder.path().canonicalize().expect("it is there");
    let greeting = greeting.replace(&data.display().to_string(), "FOLDER");
    let greeting = greeting.replace(&folder.path().display().to_string(), "FOLDER");
    expect![[r#"
        clopen-mcp VERSION listens on http://127.0.0.1:PORT/mcp
        token: in FOLDER/data/token (send it as `Authorization: Bearer …`)
        5 tools of 4 servers"#]]
    .assert_eq(&greeting.replace(env!("CARGO_PKG_VERSION"), "VERSION"));

    let file = folder.path().join("data/token");
    let token = fs::read_to_string(file).expect("it is there");
    let profile = Profile {
        token: Some(token.trim().to_owned()),
        ..Profile::of(Era::Modern)
    };
    let client = Client::http(&program.url, profile).await;
    let names = client.names("tools").await;
    assert!(names.contains(&"count_lines".to_owned()), "{names:?}");
}

#[tokio::test]
async fn without_tokens_the_program_warns() {
    let folder = folder();
    let program = Program::start(binary(folder.path()).args(["serve", "--no-auth"])).await;
    assert!(
        program.greeting.iter().any(
            |it| it == "WARNING: --no-auth: every program on this machine can call every tool"
        ),
        "{:?}",
        program.greeting
    );
    let client = Client::http(&program.url, Profile::of(Era::Modern)).await;
    assert!(!client.names("tools").await.is_empty());
}

#[tokio::test]
async fn without_tokens_it_listens_on_this_machine_only() {
    let folder = folder();
    let output = binary(folder.path())
        .args(["serve", "--no-auth", "--listen", "0.0.0.0:0"])
        .output()
        .await
        .expect("the binary starts");
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    expect![[r#"
        error: `--no-auth`: without tokens the bridge may only listen on this machine, and `0.0.0.0:0` is open to others; listen on `127.0.0.1:0`, or let callers show a token
    "#]].assert_eq(&said);
}

#[tokio::test]
#[cfg(unix)]
async fn a_signal_ends_the_program() {
    for name in ["TERM", "INT"] {
        let folder = folder();
        let mut program = Program::start(&mut binary(folder.path())).await;
        program.signal(name);
        program
            .until("stopping; calls under way may end (press Ctrl-C again to stop at once)")
            .await;
        assert_eq!(program.code().await, Some(0), "{name}");
    }
}

/// Starts the program with a tool that waits for a service that never answers, and calls it.
#[cfg(unix)]
async fn busy(folder: &TempDir, silent: &TcpListener) -> (Program, crate::client::Running) {
    let address = silent.local_addr().expect("it has an address");
    let mut command = binary(folder.path());
    command
        .env("OPEN_METEO_URL", format!("http://{address}"))
        .env("CLOPEN_MCP_TOKEN", TOKEN);
    let program = Program::start(&mut command).await;
    let client = Client::http(&program.url, profile(Era::Modern)).await;
    let place = json!({ "latitude": 1, "longitude": 2 });
    let call = client.start_call("get_temperature", place);
    // The call is under way when it has come to the service.
    let silent = silent.try_clone().expect("it can be shared");
    let come = tokio::task::spawn_blocking(move || silent.accept());
    let (stream, _) = soon(come).await.expect("it returns").expect("it is called");
    // The service keeps the connection for as long as the test runs.
    std::mem::forget(stream);
    (program, call)
}

#[tokio::test]
#[cfg(unix)]
async fn a_call_over_the_limit_is_stopped_with_the_program() {
    let folder = folder();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    fs::write(folder.path().join("clopen-mcp.toml"), "drain = \"50ms\"")
        .expect("it can be written");
    let (mut program, call) = busy(&folder, &silent).await;
    program.signal("TERM");
    program.until("stopping").await;
    assert_eq!(program.code().await, Some(0));
    call.hang_up();
}

#[tokio::test]
#[cfg(unix)]
async fn a_second_signal_ends_the_program_at_once() {
    let folder = folder();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let (mut program, call) = busy(&folder, &silent).await;
    program.signal("TERM");
    program.until("stopping").await;
    program.signal("TERM");
    assert_eq!(program.code().await, Some(3));
    call.hang_up();
}

/// JSON allows more than most readers of JSON take: half a surrogate pair, and numbers without end.
#[tokio::test]
async fn ids_and_tokens_come_back_as_they_came() {
    let bridge = Serving::start("").await;
    let digits = "1".repeat(400);
    for odd in [
        r#""\ud800""#,
        "123456789012345678901234567890",
        digits.as_str(),
    ] {
        let meta = format!(
            r#""_meta":{{"progressToken":{odd},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
        );
        let request = |method: &'static str, params: &str| {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{odd},"method":"{method}","params":{{{meta}{params}}}}}"#
            );
            plain_http()
                .post(bridge.url())
                .bearer_auth(TOKEN)
                .header("accept", "application/json, text/event-stream")
                .header("content-type", "application/json")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", method)
                .header("mcp-name", "count")
                .body(body)
                .send()
        };
        let refused = request("none", "").await.expect("it answers");
        let text = refused.text().await.expect("it has a body");
        assert!(text.contains(&format!(r#""id":{odd},"error""#)), "{text}");
        let called = request("tools/call", r#","name":"count","arguments":{}"#);
        let text = called.await.expect("it answers").text().await;
        let text = text.expect("it has a body");
        let reported = format!(r#""progressToken":{odd},"progress":1,"total":3"#);
        assert!(text.contains(&reported), "{text}");
        assert!(text.contains(&format!(r#""id":{odd},"result""#)), "{text}");
    }
}
