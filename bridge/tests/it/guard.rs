//! Who may call, from where, with which token.

use axum::{Extension, Router, middleware, routing::post};
use clopen_mcp::{
    config::{Config, Flags},
    mcp::guard::{Access, Guard, Refusal, admit, caller, check},
    secret::Secret,
    store::{NewToken, Store},
};
use expect_test::{Expect, expect};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tool_runtime::Caller;

const SERVICE_TOKEN: &str = "the-service-token";

/// A guard with its store.
struct Door {
    guard: Arc<Guard>,
    store: Store,
    folder: TempDir,
}

impl Door {
    async fn new(flags: Flags) -> Self {
        let folder = TempDir::new().expect("the temporary folder can be written");
        let flags = Flags {
            data: Some(folder.path().to_owned()),
            ..flags
        };
        let config =
            Config::load(&flags, &BTreeMap::new(), folder.path()).expect("the settings are right");
        let store = Store::open(&config.data, None)
            .await
            .expect("the store opens");
        let token = Secret::new(SERVICE_TOKEN);
        Self {
            guard: Arc::new(Guard::new(&config, Some(token), store.clone())),
            store,
            folder,
        }
    }

    async fn check(&self, request: axum::http::request::Builder) -> Result<Access, Refusal> {
        let (parts, ()) = request.body(()).expect("the request is right").into_parts();
        check(&self.guard, &parts).await
    }

    async fn serve(&self) -> SocketAddr {
        let router = Router::new()
            .route("/mcp", post(who))
            .layer(middleware::from_fn_with_state(self.guard.clone(), admit));
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    async fn token(&self, new: NewToken) -> String {
        let (_, text) = self
            .store
            .create_token(new, 0)
            .await
            .expect("it can be made");
        text.expose().to_owned()
    }
}

async fn who(
    Extension(access): Extension<Access>,
    Extension(caller): Extension<Arc<Caller>>,
) -> String {
    format!("{} on {}", access.principal, caller.engine)
}

fn named(name: &str) -> NewToken {
    NewToken {
        name: name.to_owned(),
        ..NewToken::default()
    }
}

fn request(host: &str, token: &str) -> axum::http::request::Builder {
    axum::http::Request::post("/mcp")
        .header("host", host)
        .header("authorization", format!("Bearer {token}"))
}

fn with_origin(origin: &str) -> axum::http::request::Builder {
    request("localhost", SERVICE_TOKEN).header("origin", origin)
}

/// Sends lines of a request, and returns the answer without its date.
async fn send(address: SocketAddr, lines: &[&str]) -> String {
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    let request = format!("{}\r\nconnection: close\r\n\r\n", lines.join("\r\n"));
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it is read");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .expect("it is answered");
    let lines: Vec<_> = answer
        .split("\r\n")
        .filter(|line| !line.starts_with("date: "))
        .collect();
    lines.join("\n")
}

async fn answers(flags: Flags, lines: &[&str], expected: Expect) {
    let address = Door::new(flags).await.serve().await;
    expected.assert_eq(&send(address, lines).await);
}

#[tokio::test]
async fn the_service_token_opens_everything() {
    answers(
        Flags::default(),
        &[
            "POST /mcp?engine=codex HTTP/1.1",
            "Host: localhost:9151",
            "Origin: http://localhost:5173",
            "Authorization: bearer the-service-token",
        ],
        expect![[r#"
            HTTP/1.1 200 OK
            content-type: text/plain; charset=utf-8
            content-length: 16
            connection: close

            service on codex"#]],
    )
    .await;
}

#[tokio::test]
async fn a_wrong_host() {
    answers(
        Flags::default(),
        &["POST /mcp HTTP/1.1", "Host: evil.example:9151"],
        expect![[r#"
            HTTP/1.1 403 Forbidden
            content-type: application/json
            content-length: 181
            connection: close

            {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the bridge doesn't answer to the host `evil.example:9151`; if that is its name, add it to the setting `allowed_hosts`"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn a_wrong_origin() {
    answers(
        Flags::default(),
        &[
            "POST /mcp HTTP/1.1",
            "Host: localhost",
            "Origin: https://evil.example",
            "Authorization: Bearer the-service-token",
        ],
        expect![[r#"
            HTTP/1.1 403 Forbidden
            content-type: application/json
            content-length: 188
            connection: close

            {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"web pages of `https://evil.example` may not call the bridge; if they should, add the origin to the setting `allowed_origins`"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn no_token() {
    answers(
        Flags::default(),
        &["POST /mcp?token=the-service-token HTTP/1.1", "Host: localhost"],
        expect![[r#"
            HTTP/1.1 401 Unauthorized
            content-type: application/json
            www-authenticate: Bearer realm="clopen-mcp"
            content-length: 281
            connection: close

            {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a token is needed: send the header `Authorization: Bearer TOKEN`; the token is in `CLOPEN_MCP_TOKEN` where that is set, else in the file `token` of the bridge's data folder, and `clopen-mcp tokens create` makes others"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn a_wrong_token() {
    answers(
        Flags::default(),
        &[
            "POST /mcp HTTP/1.1",
            "Host: localhost",
            "Authorization: Bearer the-service-tokem",
        ],
        expect![[r#"
            HTTP/1.1 401 Unauthorized
            content-type: application/json
            www-authenticate: Bearer realm="clopen-mcp", error="invalid_token"
            content-length: 252
            connection: close

            {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the token is unknown or revoked; the right one is in `CLOPEN_MCP_TOKEN` where that is set, else in the file `token` of the bridge's data folder, and `clopen-mcp tokens create` makes others"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn a_wrong_parameter() {
    answers(
        Flags::default(),
        &[
            "POST /mcp?session=a%0Ab HTTP/1.1",
            "Host: localhost",
            "Authorization: Bearer the-service-token",
        ],
        expect![[r#"
            HTTP/1.1 400 Bad Request
            content-type: application/json
            content-length: 142
            connection: close

            {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the parameter `session` of the address holds a control character; leave it out"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn without_tokens() {
    let flags = Flags {
        no_auth: true,
        ..Flags::default()
    };
    let door = Door::new(flags).await;
    let access = door
        .check(axum::http::Request::post("/").header("host", "localhost"))
        .await;
    assert_eq!(
        &*access.expect("nobody needs a token").principal,
        "anonymous"
    );
    let refused = door
        .check(axum::http::Request::post("/").header("host", "evil.example"))
        .await;
    assert!(matches!(refused, Err(Refusal::Host { .. })));
    let refused = door
        .check(
            axum::http::Request::post("/")
                .header("host", "localhost")
                .header("origin", "null"),
        )
        .await;
    assert!(matches!(refused, Err(Refusal::Origin { .. })));
}

#[tokio::test]
async fn htt_131_the_authority_of_a_request_is_its_host() {
    let flags = Flags {
        allowed_hosts: vec!["gw.example".to_owned()],
        ..Flags::default()
    };
    let door = Door::new(flags).await;
    let request = |uri: &str| {
        let token = format!("Bearer {SERVICE_TOKEN}");
        axum::http::Request::post(uri).header("authorization", token)
    };
    let allowed = door.check(request("https://gw.example/mcp")).await;
    assert!(allowed.is_ok(), "{allowed:?}");
    let refused = door.check(request("https://evil.example/mcp")).await;
    assert!(matches!(refused, Err(Refusal::Host { .. })), "{refused:?}");
    // Who says two things is not believed.
    let two = request("https://evil.example/mcp").header("host", "gw.example");
    let refused = door.check(two).await;
    assert!(matches!(refused, Err(Refusal::Host { .. })), "{refused:?}");
}

#[tokio::test]
async fn hosts() {
    let flags = Flags {
        allowed_hosts: vec!["MCP.example.com".to_owned(), "10.0.0.5:9151".to_owned()],
        ..Flags::default()
    };
    let door = Door::new(flags).await;
    for host in [
        "localhost",
        "LocalHost:1",
        "127.0.0.1",
        "127.0.0.1:9151",
        "[::1]",
        "[::1]:80",
        "mcp.EXAMPLE.com",
        "mcp.example.com:443",
        "10.0.0.5:9151",
    ] {
        let access = door.check(request(host, SERVICE_TOKEN)).await;
        assert!(access.is_ok(), "{host}");
    }
    for host in [
        "",
        "evil.example",
        "localhost.evil.example",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost:80:80",
        "localhost:x",
        "localhost/",
        "localhost, evil.example",
        "::1",
        "[::2]",
        "10.0.0.5",
        "10.0.0.5:9152",
        "sub.mcp.example.com",
        "127.0.0.1.nip.io",
    ] {
        let refused = door.check(request(host, SERVICE_TOKEN)).await;
        assert!(matches!(refused, Err(Refusal::Host { .. })), "{host}");
    }
}

#[tokio::test]
async fn a_host_in_the_address() {
    let door = Door::new(Flags::default()).await;
    let to = |address: &str| {
        axum::http::Request::post(address).header("authorization", "Bearer the-service-token")
    };
    assert!(door.check(to("http://localhost:9151/mcp")).await.is_ok());
    for wrong in [
        to("http://evil.example/mcp"),
        to("http://evil.example/mcp").header("host", "localhost"),
        to("http://localhost/mcp").header("host", "evil.example"),
    ] {
        assert!(matches!(door.check(wrong).await, Err(Refusal::Host { .. })));
    }
    for wrong in [
        to("/mcp"),
        to("/mcp")
            .header("host", "localhost")
            .header("host", "localhost"),
    ] {
        assert!(matches!(door.check(wrong).await, Err(Refusal::NoHost)));
    }
}

#[tokio::test]
async fn origins() {
    let flags = Flags {
        allowed_origins: vec![
            "https://app.example.com:443".to_owned(),
            "vscode-webview://abc".to_owned(),
        ],
        ..Flags::default()
    };
    let door = Door::new(flags).await;
    for origin in [
        "http://localhost",
        "http://localhost:5173",
        "https://127.0.0.1:8443",
        "http://[::1]:3000",
        "https://app.example.com",
        "vscode-webview://abc",
    ] {
        assert!(door.check(with_origin(origin)).await.is_ok(), "{origin}");
    }
    for origin in [
        "",
        "null",
        "localhost",
        "ftp://localhost",
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://app.example.com/",
        "https://app.example.com.evil.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "vscode-webview://abd",
    ] {
        let refused = door.check(with_origin(origin)).await;
        assert!(matches!(refused, Err(Refusal::Origin { .. })), "{origin}");
    }
    let twice = with_origin("http://localhost").header("origin", "https://evil.example");
    assert!(matches!(
        door.check(twice).await,
        Err(Refusal::Origin { .. })
    ));
}

#[tokio::test]
async fn what_is_refused_is_shown_with_care() {
    let door = Door::new(Flags::default()).await;
    let refusal = door
        .check(with_origin(&format!("a\t{}", "b".repeat(200))))
        .await
        .unwrap_err();
    expect![[r#"web pages of `a\tbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…` may not call the bridge; if they should, add the origin to the setting `allowed_origins`"#]].assert_eq(&refusal.to_string());
}

#[tokio::test]
async fn headers_that_are_no_token() {
    let door = Door::new(Flags::default()).await;
    let with = |value: &str| {
        axum::http::Request::post("/mcp")
            .header("host", "localhost")
            .header("authorization", value)
    };
    assert!(door.check(with("BEARER  the-service-token ")).await.is_ok());
    for missing in ["Basic dGhlOnNlcnZpY2U=", "the-service-token", "Bearer"] {
        let refused = door.check(with(missing)).await;
        assert!(matches!(refused, Err(Refusal::NoToken)), "{missing}");
    }
    for wrong in [
        "Bearer ",
        "Bearer the-service-token2",
        "Bearer a b",
        "Bearer cmcp_x",
    ] {
        let refused = door.check(with(wrong)).await;
        assert!(matches!(refused, Err(Refusal::WrongToken)), "{wrong}");
    }
    let twice = with("Bearer the-service-token").header("authorization", "Bearer other");
    assert!(matches!(door.check(twice).await, Err(Refusal::WrongToken)));
}

#[tokio::test]
async fn a_project_token_opens_what_it_names() {
    let door = Door::new(Flags::default()).await;
    let token = door
        .token(NewToken {
            name: "reader".to_owned(),
            servers: Some(BTreeSet::from(["weather-service".to_owned()])),
            read_only: true,
            project: Some("forecast".to_owned()),
        })
        .await;
    let access = door
        .check(request("localhost", &token))
        .await
        .expect("it is good");
    assert_eq!(&*access.principal, "reader");
    assert!(access.opens("weather-service"));
    assert!(!access.opens("sql"));
    assert!(access.read_only);
    let uri = "/mcp?project=other&engine=codex"
        .parse()
        .expect("it is an address");
    let caller = caller(&uri, &access).expect("it is right");
    assert_eq!(caller.project, "forecast");
    assert_eq!(caller.engine, "codex");
    assert_eq!(caller.principal, "reader");
}

#[tokio::test]
async fn a_revoked_token_opens_nothing_at_once() {
    let door = Door::new(Flags::default()).await;
    let token = door.token(named("ci")).await;
    for _ in 0..2 {
        assert!(door.check(request("localhost", &token)).await.is_ok());
    }
    door.store.revoke_token("ci", 1).await.expect("it is there");
    let refused = door.check(request("localhost", &token)).await;
    assert!(matches!(refused, Err(Refusal::WrongToken)));
}

#[tokio::test]
async fn another_process_is_heard_after_ten_seconds() {
    let door = Door::new(Flags::default()).await;
    let token = door.token(named("ci")).await;
    let folder = door.folder.path();
    let other = Store::open(folder, None)
        .await
        .expect("a second one may open it");
    assert!(door.check(request("localhost", &token)).await.is_ok());
    other.revoke_token("ci", 1).await.expect("it is there");

    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(9)).await;
    assert!(door.check(request("localhost", &token)).await.is_ok());
    tokio::time::advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    let refused = door.check(request("localhost", &token)).await;
    assert!(matches!(refused, Err(Refusal::WrongToken)));
}

#[tokio::test]
async fn a_store_that_fails_is_not_the_callers_fault() {
    let door = Door::new(Flags::default()).await;
    let token = door.token(named("ci")).await;
    door.store.close().await;
    assert!(
        door.check(request("localhost", SERVICE_TOKEN))
            .await
            .is_ok()
    );
    let refusal = door.check(request("localhost", &token)).await.unwrap_err();
    assert_eq!(refusal.status(), 503);
    expect!["the bridge can't look up the token at the moment; try again, and look at the bridge's log if that doesn't help"].assert_eq(&refusal.to_string());
}

#[tokio::test]
async fn what_the_address_says() {
    let door = Door::new(Flags::default()).await;
    let access = door
        .check(request("localhost", SERVICE_TOKEN))
        .await
        .expect("it is good");
    let read = |address: &str| caller(&address.parse().expect("it is an address"), &access);

    let nothing = read("/mcp").expect("nothing is needed");
    assert_eq!(nothing.principal, "service");
    assert_eq!(
        (nothing.engine, nothing.project, nothing.session),
        Default::default()
    );

    let all =
        read("/mcp?other=1&engine=claude-code&project=%2Fhome%2Fada%2Fgr%C3%B6%C3%9Fe+2&session=")
            .expect("it is right");
    assert_eq!(all.engine, "claude");
    assert_eq!(all.project, "/home/ada/größe 2");
    assert_eq!(all.session, "");
    assert!(!all.prefixed);

    let prefixed = read("/mcp?names=prefixed&without=git&without=").expect("it is right");
    assert!(prefixed.prefixed);
    assert!(!prefixed.reaches_server("git") && prefixed.reaches_server("notes"));

    assert!(read(&format!("/mcp?session={}", "%C3%A4".repeat(200))).is_ok());
    let wrong = [
        format!("/mcp?session={}", "a".repeat(201)),
        "/mcp?engine=a%00".to_owned(),
        "/mcp?project=a&project=b".to_owned(),
    ];
    let wrong = wrong.map(|address| read(&address).unwrap_err().to_string());
    expect![[r#"
        the parameter `session` of the address is longer than 200 characters; shorten it
        the parameter `engine` of the address holds a control character; leave it out
        the parameter `project` of the address is there twice; name it once"#]]
    .assert_eq(&wrong.join("\n"));
}
