//! The gateway against HTTP services on this machine.

use crate::{check_error, loopback};
use axum::{
    Router,
    extract::Request,
    http::{
        HeaderName, StatusCode,
        header::{CONTENT_TYPE, LOCATION},
    },
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use servers::api_gateway::{Answer, ApiGateway, CallError, Method, Scalar};
use std::{collections::BTreeMap, fmt::Write as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tool_runtime::{Environment, Json};

const TOKEN: &str = "tok/en-0123456789";

fn gateway<const N: usize>(variables: [(&str, &str); N]) -> ApiGateway {
    ApiGateway::start(&Environment::new(variables)).unwrap()
}

/// A gateway with one service `demo`, which has a token and allows everything.
fn demo(url: &str) -> ApiGateway {
    gateway([
        ("API_GATEWAY_DEMO_URL", url),
        ("API_GATEWAY_DEMO_TOKEN", TOKEN),
        ("API_GATEWAY_DEMO_METHODS", "GET,HEAD,POST,PUT,PATCH,DELETE"),
    ])
}

async fn call(gateway: &ApiGateway, method: Method, path: &str) -> Result<Answer, CallError> {
    let answer = gateway.call_service("demo".into(), method, path.into(), BTreeMap::new(), None);
    answer.await.map(|Json(it)| it)
}

/// A service that tells what reached it.
fn echo() -> Router {
    Router::new().fallback(|request: Request| async {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 100_000).await.unwrap();
        let header = |name: HeaderName| {
            let value = head.headers.get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        let seen = json!({
            "method": head.method.as_str(),
            "uri": head.uri.to_string(),
            "authorization": header(axum::http::header::AUTHORIZATION),
            "content_type": header(CONTENT_TYPE),
            "body": String::from_utf8(body.to_vec()).unwrap(),
        });
        axum::Json(seen)
    })
}

/// A service with one fixed answer.
async fn fixed(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Vec<u8>>,
) -> ApiGateway {
    let body = body.into();
    let router = Router::new()
        .fallback(move || async move { (status, [(CONTENT_TYPE, content_type)], body) });
    demo(&loopback::serve(router).await)
}

fn check(value: impl serde::Serialize, expected: &Expect) {
    expected.assert_eq(&serde_json::to_string_pretty(&value).unwrap());
}

#[tokio::test]
async fn no_services() {
    let gateway = gateway([]);
    check(
        gateway.list_services().0,
        &expect![[r#"
        {
          "services": [],
          "hint": "no service is set up; the operator adds one with the variable `API_GATEWAY_<NAME>_URL`"
        }"#]],
    );
    check_error(
        call(&gateway, Method::Get, "/").await.unwrap_err(),
        &expect!["there is no service `demo`; no service is set up"],
    );
}

#[tokio::test]
async fn services_of_the_environment() {
    let gateway = gateway([
        ("API_GATEWAY_ORDERS_URL", "https://orders.example/v1"),
        ("API_GATEWAY_ORDERS_METHODS", "get, POST"),
        ("API_GATEWAY_ISSUE_TRACKER_URL", "http://[::1]:8080/"),
        ("API_GATEWAY_ISSUE_TRACKER_TOKEN", TOKEN),
        ("API_GATEWAY_OFF_URL", ""),
        ("API_GATEWAY_KEY", "of something else"),
        ("HOME", "/root"),
    ]);
    check(
        gateway.list_services().0,
        &expect![[r#"
        {
          "services": [
            {
              "name": "issue_tracker",
              "url": "http://[::1]:8080/",
              "methods": [
                "GET"
              ]
            },
            {
              "name": "orders",
              "url": "https://orders.example/v1",
              "methods": [
                "GET",
                "POST"
              ]
            }
          ]
        }"#]],
    );
    assert!(!format!("{gateway:?}").contains(TOKEN));
    check_error(
        call(&gateway, Method::Get, "/").await.unwrap_err(),
        &expect!["there is no service `demo`; there is `issue_tracker`, `orders`"],
    );
    let answer = gateway.call_service(
        "issue_tracker".into(),
        Method::Delete,
        "/".into(),
        BTreeMap::new(),
        None,
    );
    check_error(
        answer.await.unwrap_err(),
        &expect!["`issue_tracker` does not allow `DELETE`, only `GET`"],
    );
}

#[tokio::test]
async fn what_is_sent() {
    let url = loopback::serve(echo()).await;
    let gateway = demo(&format!("{url}/base/"));
    let query = BTreeMap::from([
        ("page".to_owned(), Scalar::Number(2.into())),
        ("q".to_owned(), Scalar::Text("a&b=ç".to_owned())),
        ("all".to_owned(), Scalar::Bool(true)),
    ]);
    let answer = gateway
        .call_service(
            "demo".into(),
            Method::Post,
            "/v1/people/Ada Lovelace".into(),
            query,
            Some(json!({"born": 1815})),
        )
        .await;
    // The service sent the token back; it is taken out.
    check(
        answer.unwrap().0,
        &expect![[r#"
        {
          "status": 200,
          "content_type": "application/json",
          "body": {
            "method": "POST",
            "uri": "/base/v1/people/Ada%20Lovelace?all=true&page=2&q=a%26b%3D%C3%A7",
            "authorization": "Bearer (token)",
            "content_type": "application/json",
            "body": "{\"born\":1815}"
          },
          "truncated": false
        }"#]],
    );
}

#[tokio::test]
async fn token_is_sent_but_never_shown() {
    let url = loopback::serve(Router::new().fallback(|request: Request| async move {
        let sent = request.headers()["authorization"]
            .to_str()
            .unwrap()
            .to_owned();
        assert_eq!(sent, format!("Bearer {TOKEN}"));
        // As text, in a header, escaped in JSON, and across the limit of what is shown.
        let (status, content_type, body) = match request.uri().path() {
            "/text" => (StatusCode::OK, "text/plain".to_owned(), sent),
            "/error" => (StatusCode::UNAUTHORIZED, "text/plain".to_owned(), sent),
            "/header" => (StatusCode::OK, format!("text/{TOKEN}"), String::new()),
            "/json" => {
                let body = format!(r#"{{"{TOKEN}": ["{}"]}}"#, sent.replace('/', "\\/"));
                (StatusCode::OK, "application/json".to_owned(), body)
            }
            _ => {
                let body = "x".repeat(64 * 1024 - 5) + TOKEN + "more";
                (StatusCode::OK, "text/plain".to_owned(), body)
            }
        };
        (status, [(CONTENT_TYPE, content_type)], body)
    }))
    .await;
    let gateway = demo(&url);
    for path in ["/text", "/error", "/header", "/json", "/long"] {
        let shown = match call(&gateway, Method::Get, path).await {
            Ok(answer) => format!("{answer:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        let leaked = shown.contains("tok/") || shown.contains("tok\\/") || shown.contains("0123");
        assert!(!leaked, "{path}: {}", &shown[shown.len() - 100..]);
        assert!(
            shown.contains("(tok"),
            "{path}: the test lost what it looks for"
        );
    }
}

#[tokio::test]
async fn paths_stay_below_the_service() {
    let url = loopback::serve(echo()).await;
    let gateway = demo(&format!("{url}/base"));
    for (path, sent) in [
        ("/", "/base/"),
        ("/a", "/base/a"),
        ("/a/", "/base/a/"),
        ("/a/b;c=d,e", "/base/a/b;c=d,e"),
        ("/@user:pass@host", "/base/@user:pass@host"),
        ("/http:", "/base/http:"),
        ("/a%20b", "/base/a%20b"),
        ("/100%", "/base/100%25"),
        ("/a%2520b", "/base/a%2520b"),
        ("/ü", "/base/%C3%BC"),
        ("/...", "/base/..."),
    ] {
        let answer = call(&gateway, Method::Get, path).await.unwrap();
        assert_eq!(answer.body["uri"], sent, "{path}");
    }
}

#[tokio::test]
async fn paths_that_are_refused() {
    // Nobody listens there: nothing must be sent.
    let gateway = demo(&format!("{}/base", loopback::nobody().await));
    let mut refused = String::new();
    for path in [
        "",
        "a",
        "http://evil.example/",
        "//evil.example/a",
        "/a//b",
        "/..",
        "/../secret",
        "/a/./b",
        "/a/%2e%2e/b",
        "/a/.%2E/b",
        "/a/%252e%252e/b",
        "/a%2fb",
        "/a%252Fb",
        "/a\\b",
        "/a%5c..%5cb",
        "/a?b",
        "/a#b",
        "/a\r\nHost: evil",
        "/a%0d%0ab",
        "/.\t./b",
        "/%ff",
    ] {
        let error = call(&gateway, Method::Get, path).await.unwrap_err();
        assert!(
            matches!(error, CallError::BadPath { .. }),
            "{path}: {error}"
        );
        writeln!(refused, "{error}").unwrap();
    }
    expect![[r#"
        the path `` can't be used: it must begin with `/`; nothing was sent
        the path `a` can't be used: it must begin with `/`; nothing was sent
        the path `http://evil.example/` can't be used: it must begin with `/`; nothing was sent
        the path `//evil.example/a` can't be used: it can't hold `//`; nothing was sent
        the path `/a//b` can't be used: it can't hold `//`; nothing was sent
        the path `/..` can't be used: it can't hold `.` or `..` as a step, however encoded; nothing was sent
        the path `/../secret` can't be used: it can't hold `.` or `..` as a step, however encoded; nothing was sent
        the path `/a/./b` can't be used: it can't hold `.` or `..` as a step, however encoded; nothing was sent
        the path `/a/%2e%2e/b` can't be used: it can't hold `.` or `..` as a step, however encoded; nothing was sent
        the path `/a/.%2E/b` can't be used: it can't hold `.` or `..` as a step, however encoded; nothing was sent
        the path `/a/%252e%252e/b` can't be used: it can't hold `.` or `..` as a step, however encoded; nothing was sent
        the path `/a%2fb` can't be used: it can't hold `\` or an encoded `/`; nothing was sent
        the path `/a%252Fb` can't be used: it can't hold `\` or an encoded `/`; nothing was sent
        the path `/a\\b` can't be used: it can't hold `\` or an encoded `/`; nothing was sent
        the path `/a%5c..%5cb` can't be used: it can't hold `\` or an encoded `/`; nothing was sent
        the path `/a?b` can't be used: it can't hold `?` or `#`; send the query as `query`; nothing was sent
        the path `/a#b` can't be used: it can't hold `?` or `#`; send the query as `query`; nothing was sent
        the path `/a\r\nHost: evil` can't be used: it can't hold control characters; nothing was sent
        the path `/a%0d%0ab` can't be used: it can't hold control characters; nothing was sent
        the path `/.\t./b` can't be used: it can't hold control characters; nothing was sent
        the path `/%ff` can't be used: what is encoded in it must be UTF-8; nothing was sent
    "#]].assert_eq(&refused);
}

#[tokio::test]
async fn answers() {
    let gateway = fixed(
        StatusCode::CREATED,
        "application/hal+json; charset=utf-8",
        "[1, 2]",
    )
    .await;
    let answer = call(&gateway, Method::Get, "/").await.unwrap();
    assert_eq!((answer.status, answer.body), (201, json!([1, 2])));

    let gateway = fixed(StatusCode::OK, "application/json", "no JSON").await;
    assert_eq!(
        call(&gateway, Method::Get, "/").await.unwrap().body,
        "no JSON"
    );

    let gateway = fixed(StatusCode::OK, "image/png", b"\x89PNG\xff".as_slice()).await;
    let answer = call(&gateway, Method::Get, "/").await.unwrap();
    assert_eq!(answer.body, "(the body is not text, and left out)");

    let gateway = fixed(StatusCode::OK, "text/plain", "not for HEAD").await;
    assert_eq!(
        call(&gateway, Method::Head, "/").await.unwrap().body,
        Value::Null
    );
}

#[tokio::test]
async fn long_answers_are_cut() {
    // Two bytes a character and one before them: the limit falls into the middle of a character.
    let body = format!("x{}", "é".repeat(100_000));
    let gateway = fixed(StatusCode::OK, "application/json", body).await;
    let answer = call(&gateway, Method::Get, "/").await.unwrap();
    assert!(answer.truncated);
    assert_eq!(answer.body.as_str().unwrap().len(), 64 * 1024 - 1);
}

#[tokio::test]
async fn errors_of_the_service() {
    let gateway = fixed(
        StatusCode::NOT_FOUND,
        "application/json",
        r#"{"error": "no order 17"}"#,
    );
    let error = call(&gateway.await, Method::Get, "/orders/17").await;
    check_error(
        error.unwrap_err(),
        &expect![[r#"
        `GET /orders/17` of `demo` was answered with 404 Not Found: {"error":"no order 17"}
        (check the path)"#]],
    );

    let gateway = fixed(StatusCode::UNAUTHORIZED, "text/plain", "");
    check_error(
        call(&gateway.await, Method::Put, "/").await.unwrap_err(),
        &expect![[r#"
        `PUT /` of `demo` was answered with 401 Unauthorized
        (ask the operator to check `API_GATEWAY_DEMO_TOKEN`)"#]],
    );

    let gateway = fixed(
        StatusCode::INTERNAL_SERVER_ERROR,
        "text/html",
        "x".repeat(5000),
    );
    let error = call(&gateway.await, Method::Get, "/")
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.len() < 2200 && error.ends_with("x …\n(try again in a minute)"),
        "{error}"
    );
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let router = Router::new().fallback(|| async {
        (
            StatusCode::FOUND,
            [(LOCATION, "http://169.254.169.254/latest")],
        )
    });
    let gateway = demo(&loopback::serve(router).await);
    let error = call(&gateway, Method::Get, "/").await;
    check_error(
        error.unwrap_err(),
        &expect![
            "`GET /` of `demo` was answered with 302 Found to `http://169.254.169.254/latest`, and redirects are not followed; call the path that it leads to, if that is part of the service"
        ],
    );
}

#[tokio::test]
async fn no_answer() {
    let gateway = demo(&loopback::nobody().await);
    let error = call(&gateway, Method::Post, "/orders").await;
    check_error(
        error.unwrap_err(),
        &expect![
            "`POST /orders` of `demo` was not sent, the service can't be reached: connection refused; try again in a minute"
        ],
    );

    // It begins to answer, and goes.
    let (listener, url) = loopback::listen().await;
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let _ = socket.read(&mut request).await.unwrap();
        let begun = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun";
        socket.write_all(begun).await.unwrap();
    });
    let error = call(&demo(&url), Method::Get, "/").await;
    check_error(
        error.unwrap_err(),
        &expect![
            "`GET /` of `demo` gave no answer: end of file before message length reached; it may have been carried out all the same"
        ],
    );
}

#[tokio::test]
async fn bodies_only_where_they_belong() {
    let gateway = demo(&loopback::nobody().await);
    let answer = gateway.call_service(
        "demo".into(),
        Method::Get,
        "/".into(),
        BTreeMap::new(),
        Some(json!({})),
    );
    check_error(
        answer.await.unwrap_err(),
        &expect!["`GET` has no body; leave `body` out, or use another method"],
    );
}

#[test]
fn proxies_are_for_the_world() {
    loopback::passes_with_proxy("api_gateway::what_is_sent");
}

#[test]
fn bad_settings() {
    let start = |variables: &[(&str, &str)]| {
        let environment = Environment::new(variables.iter().copied());
        ApiGateway::start(&environment).unwrap_err()
    };
    let url = |url| start(&[("API_GATEWAY_A_URL", url)]);
    check_error(
        url("orders"),
        &expect![
            "`API_GATEWAY_A_URL` is not a base URL like `https://api.example.com/v1`: relative URL without a base"
        ],
    );
    check_error(
        url("http://orders.example"),
        &expect![
            "`API_GATEWAY_A_URL` is not a base URL like `https://api.example.com/v1`: `http` is only allowed to this machine; use `https`"
        ],
    );
    check_error(
        url("file:///etc"),
        &expect![
            "`API_GATEWAY_A_URL` is not a base URL like `https://api.example.com/v1`: the scheme `file` is not HTTP"
        ],
    );
    check_error(
        url("https://me:secret@orders.example"),
        &expect![
            "`API_GATEWAY_A_URL` is not a base URL like `https://api.example.com/v1`: it can't hold a user or password; use the variable `…_TOKEN`"
        ],
    );
    check_error(
        url("https://orders.example/?key=1"),
        &expect![
            "`API_GATEWAY_A_URL` is not a base URL like `https://api.example.com/v1`: a base URL has no `?` and no `#`"
        ],
    );

    let good = ("API_GATEWAY_A_URL", "https://a.example");
    let methods = start(&[good, ("API_GATEWAY_A_METHODS", "GET,FETCH")]);
    check_error(
        methods,
        &expect![
            "`API_GATEWAY_A_METHODS` must be a list like `GET,POST`: `FETCH` is no method; use `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE`"
        ],
    );
    let token = start(&[good, ("API_GATEWAY_A_TOKEN", "sec\nret")]);
    check_error(
        token,
        &expect!["`API_GATEWAY_A_TOKEN` holds characters that can't be in an HTTP header"],
    );
    let token = start(&[("API_GATEWAY_B_TOKEN", "secret")]);
    check_error(
        token,
        &expect!["`API_GATEWAY_B_TOKEN` is set, but `API_GATEWAY_B_URL` is not"],
    );
}
