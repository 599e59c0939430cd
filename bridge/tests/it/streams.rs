//! The host application says which conversations are under way, and calls are given to them.

use crate::{
    bridge::{Serving, TOKEN, profile},
    client::{Client, Era, plain_http},
};
use clopen_mcp::store::NewToken;
use expect_test::{Expect, expect};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn say(
    serving: &Serving,
    token: &str,
    method: Method,
    path: &str,
    body: Value,
) -> StatusCode {
    let url = format!("http://{}{path}", serving.address);
    let request = plain_http()
        .request(method, url)
        .bearer_auth(token)
        .json(&body);
    request.send().await.expect("the bridge answers").status()
}

async fn begin(serving: &Serving, engine: &str, project: &str, session: &str) {
    let stream = json!({ "engine": engine, "project": project, "session": session });
    let status = say(serving, TOKEN, Method::POST, "/api/streams", stream).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
}

async fn check(serving: &Serving, query: &str, expected: Expect) {
    let url = format!("{}?{query}", serving.url());
    let client = Client::http(&url, profile(Era::Modern)).await;
    let seen: Value = serde_json::from_str(&client.call("who", json!({})).await.text())
        .expect("the tool answers in JSON");
    let said = ["engine", "project", "session"].map(|it| seen[it].as_str().unwrap_or_default());
    expected.assert_eq(&said.join("/"));
}

#[tokio::test]
async fn calls_are_given_to_the_conversation_that_they_can_only_come_from() {
    let serving = Serving::start("").await;
    begin(&serving, "codex", "atlas", "one").await;
    begin(&serving, "claude-code", "atlas", "two").await;
    begin(&serving, "codex", "beacon", "three").await;

    check(&serving, "project=atlas", expect!["claude/atlas/two"]).await;
    check(
        &serving,
        "project=atlas&engine=codex",
        expect!["codex/atlas/one"],
    )
    .await;
    check(&serving, "engine=codex", expect!["codex/beacon/three"]).await;
    check(&serving, "session=elsewhere", expect!["//elsewhere"]).await;
    check(&serving, "project=cellar", expect!["/cellar/"]).await;
    check(&serving, "", expect!["//"]).await;

    let ended = say(
        &serving,
        TOKEN,
        Method::DELETE,
        "/api/streams/two",
        json!(null),
    )
    .await;
    assert_eq!(ended, StatusCode::NO_CONTENT);
    check(&serving, "project=atlas", expect!["codex/atlas/one"]).await;
    let again = say(
        &serving,
        TOKEN,
        Method::DELETE,
        "/api/streams/two",
        json!(null),
    )
    .await;
    assert_eq!(again, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn only_the_host_application_says_what_is_under_way() {
    let serving = Serving::start("").await;
    let project_token = serving
        .token(NewToken {
            name: "a-project".to_owned(),
            servers: None,
            read_only: false,
            project: Some("atlas".to_owned()),
        })
        .await;
    let stream = json!({ "engine": "codex", "project": "beacon", "session": "mine" });
    for (token, expected) in [
        (project_token.as_str(), StatusCode::FORBIDDEN),
        ("nobody-knows-this-token", StatusCode::UNAUTHORIZED),
    ] {
        let status = say(
            &serving,
            token,
            Method::POST,
            "/api/streams",
            stream.clone(),
        )
        .await;
        assert_eq!(status, expected);
    }
    let nameless = json!({ "engine": "codex", "session": "" });
    let status = say(&serving, TOKEN, Method::POST, "/api/streams", nameless).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn an_address_that_is_not_there_is_not_found() {
    let serving = Serving::start("").await;
    let url = format!(
        "http://{}/.well-known/oauth-protected-resource/mcp",
        serving.address
    );
    let answer = plain_http()
        .get(url)
        .send()
        .await
        .expect("the bridge answers");
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}
