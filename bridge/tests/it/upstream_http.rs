//! Endpoints that misbehave.

use crate::endpoint::{Answer, Asked, Endpoint, connector, legacy, limits};
use clopen_mcp::{
    secret::Secret,
    upstream::{Address, Client, Limits, News, UpstreamError},
};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::{Instant, timeout};

const WELCOME: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}}"#;
const NEWS: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true}}}}"#;
const CHANGED: &str =
    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";

fn address(url: &str) -> Address {
    let token = Secret::new("Bearer s3cr3t-word");
    Address::Http {
        url: url.to_owned(),
        headers: BTreeMap::from([("Authorization".to_owned(), token)]),
    }
}

/// Serves a session; `answer` answers what comes after its beginning.
async fn serve(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Endpoint {
    serve_with(WELCOME, answer).await
}

async fn serve_with(
    welcome: &'static str,
    answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> Endpoint {
    Endpoint::serve(move |asked| {
        if asked.is("initialize") {
            let headers = ["content-type: application/json", "mcp-session-id: s-1"];
            Answer::new("200 OK", &headers, welcome)
        } else if asked.method == "POST" && asked.body.contains(r#""method":"notifications/"#) {
            Answer::accepted()
        } else {
            answer(asked)
        }
    })
    .await
}

async fn open(endpoint: &Endpoint) -> Client {
    let client = connector(limits())
        .connect("fake", &address(&endpoint.url), &legacy())
        .await;
    client.expect("it connects")
}

/// Returns the result, or the error in words.
async fn ask(answer: fn() -> Answer) -> String {
    let endpoint = serve(move |_| answer()).await;
    let client = open(&endpoint).await;
    assert_eq!(
        format!("{client:?}"),
        r#"Client { server: "fake", closed: false, .. }"#
    );
    match client.request("tools/call", &json!({ "name": "a" })).await {
        Ok(result) => result.get().to_owned(),
        Err(error) => {
            let shown = format!("{error:?} {client:?}");
            assert!(!shown.contains("s3cr3t"), "{shown}");
            error.to_string()
        }
    }
}

#[tokio::test]
async fn a_session_is_kept() {
    let endpoint = serve(|_| Answer::json(r#"{"id":2,"result":{"n":1.0}}"#)).await;
    let client = open(&endpoint).await;
    let result = client.request("tools/list", &json!({})).await;
    assert_eq!(result.expect("it answers").get(), r#"{"n":1.0}"#);
    client.close().await;
    assert!(client.is_closed());

    let asked = endpoint.asked();
    let [initialize, initialized, list, delete] = asked.as_slice() else {
        panic!("{asked:#?}");
    };
    assert_eq!(initialize.header("mcp-session-id"), None);
    assert_eq!(initialize.header("mcp-protocol-version"), None);
    assert!(
        initialize
            .body
            .contains(r#""protocolVersion":"2025-11-25""#)
    );
    assert!(initialized.is("notifications/initialized"));
    for later in [initialized, list, delete] {
        assert_eq!(later.header("mcp-session-id"), Some("s-1"));
        // HTT-135
        assert_eq!(later.header("mcp-protocol-version"), Some("2025-06-18"));
        assert_eq!(later.header("authorization"), Some("Bearer s3cr3t-word"));
    }
    assert_eq!(
        list.header("accept"),
        Some("application/json, text/event-stream")
    );
    assert_eq!(list.header("content-type"), Some("application/json"));
    assert_eq!(
        (delete.method.as_str(), delete.path.as_str()),
        ("DELETE", "/mcp")
    );
}

#[tokio::test]
async fn htt_117_an_answer_may_be_in_a_stream() {
    let result = ask(|| {
        Answer::stream(
            "\u{feff}: hello\r\nid: 1\r\nretry: 3000\r\ndata:\r\n\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\r\n\r\ndata: nonsense\r\n\r\ndata: {\"id\":\"2\",\r\ndata: \"result\":\r\ndata: 7}\r\n\r\n",
        ).hanging()
    });
    assert_eq!(result.await, "7");
    // Without an empty line at the end.
    assert_eq!(
        ask(|| Answer::stream("data: {\"id\":2,\"result\":8}")).await,
        "8"
    );
}

#[tokio::test]
async fn htt_118_a_stream_may_end_without_an_answer() {
    let error = ask(|| Answer::stream("id: 1\nretry: 30\ndata:\n\n")).await;
    assert!(
        error.contains("the stream ended before the answer"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_may_go_on_in_another_stream() {
    let endpoint = serve(|asked| match asked.header("last-event-id") {
        None => Answer::stream("id: a-1\nretry: 20\ndata:\n\n"),
        Some("a-1") => Answer::stream(&format!(": hi\n\nid: a-2\n{CHANGED}")),
        Some(_) => Answer::stream("data: {\"id\":2,\"result\":7}\n\n"),
    });
    let endpoint = endpoint.await;
    let client = open(&endpoint).await;
    let result = client.request("tools/call", &()).await;
    assert_eq!(result.expect("it answers").get(), "7");
    assert_eq!(client.news().await, News::Tools);
    let asked = endpoint.asked();
    let gets: Vec<&Asked> = asked.iter().filter(|it| it.method == "GET").collect();
    let [first, second] = gets.as_slice() else {
        panic!("{asked:#?}");
    };
    assert_eq!(first.header("accept"), Some("text/event-stream"));
    assert_eq!(first.header("mcp-session-id"), Some("s-1"));
    assert_eq!(second.header("last-event-id"), Some("a-2"));
}

#[tokio::test]
async fn htt_120_a_burst_of_events_is_read() {
    let result = ask(|| {
        let burst = "data: hello\n\n".repeat(100_000);
        Answer::stream(&format!("{burst}data: {{\"id\":2,\"result\":1}}\n\n"))
    });
    assert_eq!(result.await, "1");
}

#[tokio::test]
async fn htt_121_letters_may_be_split() {
    let result = ask(|| {
        let mut answer = Answer::stream("");
        answer
            .pieces
            .push(b"data: {\"id\":2,\"result\":\"\xc3".to_vec());
        answer.pieces.push(b"\xa9\"}\r".to_vec());
        answer.pieces.push(b"\n\r".to_vec());
        answer.pieces.push(b"\n".to_vec());
        answer
    });
    assert_eq!(result.await, "\"é\"");
}

#[tokio::test]
async fn htt_124_an_error_in_the_body_of_a_failure_is_heard() {
    let error = ask(|| {
        let body =
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"bad s3cr3t-word"}}"#;
        Answer::new("400 Bad Request", &["content-type: application/json"], body)
    });
    assert_eq!(
        error.await,
        "server `fake` refused `tools/call`: bad *** (code -32602)"
    );
    let error = ask(|| Answer::new("500 Oops", &[], "<b>\u{1b}[1moops</b>\n s3cr3t-word")).await;
    assert_eq!(
        error,
        "server `fake` answered `tools/call` with status 500: `<b>oops</b> /  ***`"
    );
}

#[tokio::test]
async fn a_key_in_the_url_is_in_no_error() {
    let endpoint = serve(|asked| Answer::new("500 Oops", &[], &asked.path)).await;
    let url = format!("{}/sk-very-long-key-1?key=k3y&b=%41bcd", endpoint.url);
    let client = connector(limits())
        .connect("fake", &address(&url), &legacy())
        .await;
    let client = client.expect("it connects");
    let error = client.request("x", &()).await.expect_err("it fails");
    assert_eq!(
        error.to_string(),
        "server `fake` answered `x` with status 500: `/mcp/***?***`"
    );
    assert_eq!(
        endpoint.asked()[0].path,
        "/mcp/sk-very-long-key-1?key=k3y&b=%41bcd"
    );
}

#[tokio::test]
async fn htt_127_nothing_goes_to_another_host() {
    let evil = Endpoint::serve(|_| Answer::json("{}")).await;
    let location = evil.url.clone();
    let endpoint = serve(move |_| {
        let location = format!("location: {location}?token=1");
        Answer::new("307 Elsewhere", &[&location], "")
    });
    let endpoint = endpoint.await;
    let client = open(&endpoint).await;
    let error = client
        .request("tools/call", &())
        .await
        .expect_err("it is elsewhere");
    let origin = evil.url.trim_end_matches("/mcp");
    assert_eq!(
        error.to_string(),
        format!(
            "server `fake` answered `tools/call` with status 307: `it has moved to {origin}; if that is right, use its \
             URL there`"
        )
    );
    assert!(evil.asked().is_empty());
}

#[tokio::test]
async fn htt_127_a_slash_may_be_added() {
    let endpoint = serve(|asked| {
        if asked.path == "/mcp" {
            Answer::new("308 Moved", &["location: /mcp/"], "")
        } else {
            Answer::json(r#"{"id":2,"result":1}"#)
        }
    });
    let endpoint = endpoint.await;
    let client = open(&endpoint).await;
    client.request("tools/call", &()).await.expect("it follows");
    let last = endpoint.asked().pop().expect("it was asked");
    assert_eq!(
        (last.method.as_str(), last.path.as_str()),
        ("POST", "/mcp/")
    );
    assert_eq!(last.header("authorization"), Some("Bearer s3cr3t-word"));
}

#[tokio::test]
async fn htt_128_a_server_may_offer_no_news() {
    let endpoint = serve_with(NEWS, |asked| match asked.method.as_str() {
        "GET" => Answer::new("405 Not Allowed", &[], ""),
        _ => Answer::json(r#"{"id":2,"result":1}"#),
    });
    let endpoint = endpoint.await;
    let client = open(&endpoint).await;
    let get = endpoint.was_asked(|it| it.method == "GET").await;
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    assert_eq!(get.header("mcp-session-id"), Some("s-1"));
    client.request("tools/call", &()).await.expect("it answers");
    assert!(!client.is_closed());
}

#[tokio::test]
async fn news_are_heard() {
    let endpoint = serve_with(NEWS, |_| {
        Answer::stream(&format!(": hi\n\n{CHANGED}")).hanging()
    });
    let endpoint = endpoint.await;
    let client = open(&endpoint).await;
    let changed = timeout(Duration::from_secs(5), client.news()).await;
    changed.expect("it is told");
    // And in the stream of an answer.
    let endpoint =
        serve(|_| Answer::stream(&format!("{CHANGED}data: {{\"id\":2,\"result\":1}}\n\n")));
    let client = open(&endpoint.await).await;
    client.request("x", &()).await.expect("it answers");
    let changed = timeout(Duration::from_secs(5), client.news()).await;
    changed.expect("it is told");
}

#[tokio::test]
async fn a_gap_in_the_news_counts_as_news() {
    let endpoint = serve_with(NEWS, |_| Answer::stream(": hi\n\n")).await;
    let client = open(&endpoint).await;
    let changed = timeout(Duration::from_secs(10), client.news()).await;
    changed.expect("it is told");
    let gets = endpoint.asked().into_iter().filter(|it| it.method == "GET");
    assert!((2..4).contains(&gets.count()));
}

fn endless() -> String {
    "x".repeat(3_000_000)
}

#[tokio::test]
async fn htt_130_a_failure_is_read_to_its_end_or_left() {
    let endpoint = serve(|_| Answer::new("404 Not Found", &[], &endless()).hanging()).await;
    for n in 1..=5 {
        let client = open(&endpoint).await;
        let error = client.request("tools/call", &()).await;
        error.expect_err("there is nothing");
        endpoint.were_left(n).await;
    }
}

#[tokio::test]
async fn tim_235_nothing_is_sent_twice() {
    // It takes the call, and the connection breaks.
    let endpoint = serve(|_| Answer::default()).await;
    let client = open(&endpoint).await;
    let error = client.request("tools/call", &()).await;
    let error = error.expect_err("it breaks");
    // So that whoever asks again knows what that may mean.
    let was_connected = matches!(
        error,
        UpstreamError::Unreachable {
            was_connected: true,
            ..
        }
    );
    assert!(was_connected, "{error}");
    let asked = endpoint.asked();
    let calls = asked.iter().filter(|it| it.is("tools/call"));
    assert_eq!(calls.count(), 1);
}

#[tokio::test]
async fn tim_239_a_call_that_is_taken_back_harms_no_other() {
    let endpoint = serve(|asked| {
        if asked.is("slow") {
            Answer::stream(": wait\n\n").hanging()
        } else {
            Answer::json(r#"[{"id":3,"result":1},{"id":4,"result":1}]"#)
        }
    });
    let endpoint = endpoint.await;
    let client = open(&endpoint).await;
    let slow = client.request("slow", &());
    timeout(Duration::from_millis(300), slow)
        .await
        .expect_err("it hangs");
    for _ in 0..2 {
        client.request("fast", &()).await.expect("it answers");
    }
    assert!(!client.is_closed());
}

#[tokio::test]
async fn htt_132_localhost_is_tried_by_both_addresses() {
    let endpoint = serve(|_| Answer::json(r#"{"id":2,"result":1}"#)).await;
    let url = endpoint.url.replace("127.0.0.1", "localhost");
    let client = connector(limits())
        .connect("fake", &address(&url), &legacy())
        .await;
    client.expect("it listens on one of them");
}

#[tokio::test]
async fn htt_134_bodies_have_a_limit() {
    let too_large =
        "server `fake` answered `tools/call` with more than 1048576 bytes; ask for less";
    let error = ask(|| {
        let headers = [
            "content-type: application/json",
            "content-length: 1000000000",
        ];
        Answer::new("200 OK", &headers, "{").hanging()
    });
    assert_eq!(error.await, too_large);
    let error = ask(|| Answer::json(&endless()).hanging());
    assert_eq!(error.await, too_large);
    let error = ask(|| Answer::stream(&format!("data: {}", endless())).hanging());
    assert_eq!(error.await, too_large);
    let error = ask(|| Answer::new("500 Oops", &[], &endless()).hanging());
    assert!(error.await.len() < 500);
}

#[tokio::test]
async fn what_is_no_answer_is_told() {
    let check = |answer: fn() -> Answer, what: &'static str| async move {
        let error = ask(answer).await;
        let whole =
            format!("server `fake` answered `tools/call` with {what}; check that it speaks MCP");
        assert_eq!(error, whole);
    };
    check(Answer::accepted, "status 202 and nothing else").await;
    check(|| Answer::json("<!doctype html>"), "a web page").await;
    check(
        || Answer::json(r#"{"id":9,"result":1}"#),
        r#"`{"id":9,"result":1}`, which is no answer to it"#,
    )
    .await;
    check(
        || Answer::json(r#"{"id":2}"#),
        "neither a result nor an error",
    )
    .await;
    // Sloppy, but an answer.
    assert_eq!(
        ask(|| Answer::new("200 OK", &[], r#"[{"id":2,"result":1}]"#)).await,
        "1"
    );
    assert_eq!(
        ask(|| Answer::json(r#"{"id":null,"error":{"code":-32700,"message":"parse error"}}"#))
            .await,
        "server `fake` refused `tools/call`: parse error (code -32700)"
    );
}

#[tokio::test]
async fn ses_138_a_lost_session_is_told() {
    let lost = [
        (
            "404 Not Found",
            r#"{"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        ("410 Gone", ""),
        (
            "400 Bad Request",
            "Bad Request: No valid session ID provided",
        ),
    ];
    for (status, body) in lost {
        let endpoint = serve(move |_| Answer::new(status, &[], body)).await;
        let client = open(&endpoint).await;
        for _ in 0..2 {
            let error = client
                .request("tools/call", &())
                .await
                .expect_err("it is lost");
            assert!(
                matches!(error, UpstreamError::SessionLost { .. }),
                "{status}: {error}"
            );
        }
        assert!(client.is_closed());
        client.closed().await;
        client.close().await;
        // Nothing was asked twice, and there is nothing to delete.
        assert_eq!(endpoint.asked().len(), 3);
    }
}

#[tokio::test]
async fn ses_140_other_failures_are_no_lost_session() {
    let error = ask(|| Answer::new("503 Busy", &[], "later")).await;
    assert_eq!(
        error,
        "server `fake` answered `tools/call` with status 503: `later`"
    );
    let error = ask(|| {
        Answer::new(
            "404 Not Found",
            &[],
            r#"{"id":2,"error":{"code":-32601,"message":"no"}}"#,
        )
    })
    .await;
    assert_eq!(
        error,
        "server `fake` refused `tools/call`: no (code -32601)"
    );
}

#[tokio::test]
async fn ses_142_a_new_connection_has_no_old_session() {
    let endpoint = serve(|_| Answer::json(r#"{"id":2,"result":1}"#)).await;
    let mut sloppy = address(&endpoint.url);
    if let Address::Http { headers, .. } = &mut sloppy {
        headers.insert("Mcp-Session-Id".to_owned(), Secret::new("old-session"));
    }
    connector(limits())
        .connect("fake", &sloppy, &legacy())
        .await
        .expect("it connects");
    assert_eq!(endpoint.asked()[0].header("mcp-session-id"), None);
}

#[tokio::test]
async fn ses_145_who_waits_is_told_of_the_end() {
    let endpoint = serve(|asked| {
        if asked.is("slow") {
            Answer::stream(": wait\n\n").hanging()
        } else {
            Answer::new("404 Not Found", &[], "")
        }
    });
    let endpoint = endpoint.await;
    let client = open(&endpoint).await;
    let nothing = json!({});
    let (slow, lost) = tokio::join!(client.request("slow", &nothing), async {
        endpoint.was_asked(|it| it.is("slow")).await;
        client.request("tools/list", &nothing).await
    });
    for answer in [slow, lost] {
        assert!(
            matches!(answer, Err(UpstreamError::SessionLost { .. })),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn who_asks_may_have_to_be_known() {
    let endpoint = Endpoint::serve(|_| {
        let challenge =
            r#"www-authenticate: Bearer resource_metadata="https://a.example/.well-known/x""#;
        Answer::new("401 Unauthorized", &[challenge], "s3cr3t-word")
    });
    let endpoint = endpoint.await;
    let client = connector(limits())
        .connect("fake", &address(&endpoint.url), &legacy())
        .await;
    let error = client.expect_err("it must log in");
    let UpstreamError::Unauthorized {
        challenge, status, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(*status, 401);
    let expected = r#"Bearer resource_metadata="https://a.example/.well-known/x""#;
    assert_eq!(challenge.as_deref(), Some(expected));
    assert_eq!(
        error.to_string(),
        "server `fake` refuses `initialize` with status 401; sign in with `clopen-mcp auth login fake`, or check the token that it is given"
    );
}

#[tokio::test]
async fn jso_095_a_dropped_request_is_cancelled() {
    let endpoint = serve(|_| Answer::stream(": wait\n\n").hanging()).await;
    let client = open(&endpoint).await;
    let call = client.request("tools/call", &());
    let _ = timeout(Duration::from_millis(300), call)
        .await
        .expect_err("it hangs");
    let cancel = endpoint
        .was_asked(|it| it.is("notifications/cancelled"))
        .await;
    assert!(cancel.body.contains(r#""requestId":2"#), "{}", cancel.body);
    assert_eq!(cancel.header("mcp-session-id"), Some("s-1"));
}

#[tokio::test]
async fn a_hanging_server_is_left() {
    let hanging: [fn() -> Answer; 3] = [
        || Answer::default().hanging(),
        || Answer::json("{").hanging(),
        || Answer::new("500 Oops", &[], "o").hanging(),
    ];
    for answer in hanging {
        let endpoint = serve(move |_| answer()).await;
        let limits = Limits {
            call: Duration::from_millis(300),
            ..limits()
        };
        let connector = connector(limits);
        let client = connector
            .connect("fake", &address(&endpoint.url), &legacy())
            .await;
        let client = client.expect("it connects");
        let start = Instant::now();
        let error = client
            .request("tools/call", &())
            .await
            .expect_err("it hangs");
        assert!(matches!(error, UpstreamError::TimedOut { .. }), "{error}");
        assert!(start.elapsed() < Duration::from_secs(3));
        endpoint
            .was_asked(|it| it.is("notifications/cancelled"))
            .await;
    }
}

#[tokio::test]
async fn requests_of_a_server_are_answered() {
    let endpoint = serve(|asked| {
        if asked.body.contains(r#""method":"tools/call""#) {
            Answer::stream(
                "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n\ndata: {\"id\":\"r\",\"method\":\"roots/list\"}\n\ndata: {\"id\":2,\"result\":1}\n\n",
            )
        } else {
            Answer::accepted()
        }
    });
    let endpoint = endpoint.await;
    let client = open(&endpoint).await;
    client.request("tools/call", &()).await.expect("it answers");
    endpoint
        .was_asked(|it| it.body == r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)
        .await;
    endpoint
        .was_asked(|it| it.body == r#"{"jsonrpc":"2.0","id":"r","error":{"code":-32601,"message":"no call is under way that could answer this"}}"#)
        .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let connector = connector(limits());
    let check = async |url: &str| {
        let client = connector.connect("fake", &address(url), &legacy()).await;
        client.expect_err("it is not there").to_string()
    };
    let client = connector
        .connect("fake", &address("http://127.0.0.1:1/"), &legacy())
        .await;
    assert!(matches!(
        client,
        Err(UpstreamError::Unreachable {
            was_connected: false,
            ..
        })
    ));
    let error = check("http://127.0.0.1:1/mcp/very-long-secret-key?key=abcdef").await;
    assert_eq!(
        error,
        "could not ask server `fake` at `http://127.0.0.1:1` for `initialize`: connection refused; check that it runs \
         and that its URL is right"
    );
    assert!(
        check("ftp://a.example/")
            .await
            .contains("`ftp` is not HTTP")
    );
    assert!(check("nowhere").await.contains("its URL is none"));
    let shown = format!("{:?}", address("https://u:pass-word@a.example/key?key=1"));
    assert_eq!(
        shown,
        r#"Http { origin: Some("https://a.example"), headers: {"Authorization"} }"#
    );
}

#[tokio::test]
async fn a_bad_header_is_named_but_not_shown() {
    let check = async |name: &str, value: &str| {
        let address = Address::Http {
            url: "http://127.0.0.1:1/".to_owned(),
            headers: BTreeMap::from([(name.to_owned(), Secret::new(value))]),
        };
        let client = connector(limits())
            .connect("fake", &address, &legacy())
            .await;
        client.expect_err("it is bad").to_string()
    };
    let error = check("x-key", "s3cr3t\n").await;
    assert!(
        error.contains("`x-key`") && !error.contains("s3cr3t"),
        "{error}"
    );
    assert!(
        check("x key", "1")
            .await
            .contains("can't be the name of a header")
    );
}

#[tokio::test]
async fn a_welcome_may_be_odd() {
    let odd: [(&str, &str); 4] = [
        (r#"{"id":1,"result":{}}"#, "2025-03-26"),
        (
            r#"{"id":1,"result":{"protocolVersion":"a\r\nb","capabilities":[],"serverInfo":"x","instructions":7}}"#,
            "2025-03-26",
        ),
        (
            r#"{"id":"1","result":{"protocolVersion":"2024-10-07","capabilities":{"tools":null}}}"#,
            "2024-10-07",
        ),
        (
            r#"{"id":1,"result":{"protocolVersion":20250618,"serverInfo":{"name":1}}}"#,
            "2025-03-26",
        ),
    ];
    for (welcome, version) in odd {
        let client = open(&serve_with(welcome, |_| Answer::accepted()).await).await;
        assert_eq!(client.protocol_version(), version);
        assert_eq!(client.server_info(), ("", ""));
        assert!(!client.has_tools() && client.instructions().is_none());
    }
    let endpoint = serve_with(r#"{"id":1,"result":[]}"#, |_| Answer::accepted()).await;
    let client = connector(limits())
        .connect("fake", &address(&endpoint.url), &legacy())
        .await;
    let error = client.expect_err("it is no welcome").to_string();
    assert!(error.contains("a result that is no object"), "{error}");
}
