//! Whom sessions, states and tasks belong to: what one caller was given is nothing to another.

use crate::{
    bridge::{Serving, TOKEN, config, profile},
    client::{Client, Era, Profile, Reply, plain_http, soon},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    Key, KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use clopen_mcp::{
    Bridge,
    store::{NewToken, Store, now},
};
use expect_test::expect;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{collections::BTreeMap, fmt::Write as _, path::Path, time::Duration};
use tempfile::TempDir;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The tokens of three callers.
struct Callers {
    service: String,
    left: String,
    right: String,
}

impl Callers {
    /// Makes two project tokens beside the service token.
    async fn of(folder: &Path) -> Self {
        let store = store(folder).await;
        let make = async |name: &str| {
            let new = NewToken {
                name: name.to_owned(),
                ..NewToken::default()
            };
            let (_, text) = store.create_token(new, 0).await.expect("it can be made");
            text.expose().to_owned()
        };
        let callers = Self {
            service: TOKEN.to_owned(),
            left: make("left").await,
            right: make("right").await,
        };
        store.close().await;
        callers
    }
}

async fn store(folder: &Path) -> Store {
    let store = Store::open(&folder.join("data"), None).await;
    store.expect("it opens")
}

fn with_token(token: &str, profile: Profile) -> Profile {
    Profile {
        token: Some(token.to_owned()),
        ..profile
    }
}

/// The code and the words of an error, or the text of a tool.
fn told(reply: &Reply) -> String {
    match &reply.message["error"] {
        Value::Null => reply.text(),
        error => {
            let text = error["message"].as_str().expect("it has words");
            format!("{} {text}", error["code"])
        }
    }
}

/// The status and the words of an error.
async fn outcome(response: Response) -> String {
    let status = response.status().as_u16();
    if response.status().is_success() {
        return status.to_string();
    }
    let answer: Value = response.json().await.expect("it is JSON");
    let words = answer["error"]["message"].as_str();
    format!("{status} {}", words.expect("it has words"))
}

/// Has one caller open a session, and another use it before its owner does.
async fn a_session_of_another(choose: impl FnOnce(&Callers) -> [&str; 2]) {
    let bridge = Serving::start("").await;
    let callers = Callers::of(bridge.folder.path()).await;
    let [owner, other] = choose(&callers);
    let profile = with_token(owner, profile(Era::Legacy("2025-11-25")));
    let session = bridge.client_with(profile).await.session();
    let session = session.expect("it has one");
    let send = async |method: Method, token: &str, session: &str| {
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let response = plain_http()
            .request(method, bridge.url())
            .bearer_auth(token)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", session)
            .json(&ping)
            .send();
        outcome(response.await.expect("the bridge answers")).await
    };
    let methods = [Method::POST, Method::GET, Method::DELETE];
    let mut lines = String::new();
    for (who, token, session) in [
        ("nobody's", owner, "nope"),
        ("another's", other, &session),
        ("its own", owner, &session),
    ] {
        for method in methods.clone() {
            let outcome = send(method.clone(), token, session).await;
            writeln!(lines, "{who}, {method}: {outcome}").unwrap();
        }
    }
    // Another's session looks like none.
    expect![[r#"
        nobody's, POST: 404 there is no such session any more; send `initialize` again
        nobody's, GET: 404 there is no such session any more; send `initialize` again
        nobody's, DELETE: 404 there is no such session any more; send `initialize` again
        another's, POST: 404 there is no such session any more; send `initialize` again
        another's, GET: 404 there is no such session any more; send `initialize` again
        another's, DELETE: 404 there is no such session any more; send `initialize` again
        its own, POST: 200
        its own, GET: 200
        its own, DELETE: 204
    "#]]
    .assert_eq(&lines);
}

#[tokio::test]
async fn a_session_of_the_service_and_a_project_token() {
    a_session_of_another(|it| [&it.service, &it.left]).await;
}

#[tokio::test]
async fn a_session_of_a_project_token_and_the_service() {
    a_session_of_another(|it| [&it.left, &it.service]).await;
}

#[tokio::test]
async fn a_session_of_a_project_token_and_another() {
    a_session_of_another(|it| [&it.left, &it.right]).await;
}

/// A call of the caller `left` that the user was asked about.
struct Asked {
    bridge: Serving,
    callers: Callers,
    /// The call with the user's answer and the state.
    again: Value,
    state: String,
}

impl Asked {
    async fn start() -> Self {
        let bridge = Serving::start("").await;
        let callers = Callers::of(bridge.folder.path()).await;
        let mut again = json!({ "name": "ask_user", "arguments": {} });
        let client = Self::client(&bridge, &callers.left).await;
        let asked = client.request("tools/call", again.clone()).await;
        let result = &asked.message["result"];
        assert_eq!(result["resultType"], "input_required", "{}", asked.message);
        let questions = result["inputRequests"].as_object().expect("there are some");
        let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
        let answers = questions.keys().map(|key| (key.clone(), answer.clone()));
        again["inputResponses"] = answers.collect();
        again["requestState"] = result["requestState"].clone();
        let state = result["requestState"].as_str().expect("there is one");
        Self {
            state: state.to_owned(),
            bridge,
            callers,
            again,
        }
    }

    async fn client(bridge: &Serving, token: &str) -> Client {
        let profile = Profile {
            capabilities: json!({ "elicitation": {}, "sampling": {} }),
            ..profile(Era::Modern)
        };
        bridge.client_with(with_token(token, profile)).await
    }

    /// Makes the call again, with a change.
    async fn again(&self, token: &str, method: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut call = self.again.clone();
        change(&mut call);
        let client = Self::client(&self.bridge, token).await;
        told(&client.request(method, call).await)
    }

    /// Opens the state as the bridge does, and seals it again with a change.
    async fn resealed(&self, change: impl FnOnce(&mut Value)) -> String {
        let store = store(self.bridge.folder.path()).await;
        let key = store.key("request state").await.expect("there is one");
        store.close().await;
        let cipher = XChaCha20Poly1305::new(&Key::from(*key.expose()));
        let mut hash = Sha256::new();
        for part in ["left", "tools/call", "ask_user", "{}"] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let aad: &[u8] = &hash.finalize();
        let bytes = URL_SAFE_NO_PAD.decode(&self.state).expect("it is Base64");
        let (nonce, msg) = bytes.split_first_chunk::<24>().expect("it has a nonce");
        let nonce = XNonce::from(*nonce);
        let state = cipher.decrypt(&nonce, Payload { msg, aad });
        let state = state.expect("it is bound to this call");
        let mut state: Value = serde_json::from_slice(&state).expect("it is JSON");
        change(&mut state);
        let state = serde_json::to_vec(&state).expect("JSON is JSON");
        let msg: &[u8] = &state;
        let sealed = cipher.encrypt(&nonce, Payload { msg, aad });
        let sealed = sealed.expect("it is short");
        URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }
}

/// Makes the call again by some caller, with a change that its state is not for.
async fn is_refused(
    by: impl FnOnce(&Callers) -> &str,
    method: &str,
    change: impl FnOnce(&mut Value),
) {
    let asked = Asked::start().await;
    let told = asked.again(by(&asked.callers), method, change).await;
    expect!["-32602 the `requestState` is not one that this server gave for this request"]
        .assert_eq(&told);
    let unchanged = asked.again(&asked.callers.left, "tools/call", |_| ()).await;
    assert_eq!(unchanged, "hello, Ada");
}

#[tokio::test]
async fn a_state_of_a_project_token_and_another() {
    is_refused(|it| &it.right, "tools/call", |_| ()).await;
}

#[tokio::test]
async fn a_state_of_a_project_token_and_the_service() {
    is_refused(|it| &it.service, "tools/call", |_| ()).await;
}

#[tokio::test]
async fn a_state_with_other_arguments() {
    let change = |call: &mut Value| call["arguments"] = json!({ "title": "Countess" });
    is_refused(|it| &it.left, "tools/call", change).await;
}

#[tokio::test]
async fn a_state_for_another_tool() {
    let change = |call: &mut Value| call["name"] = "ask_model".into();
    is_refused(|it| &it.left, "tools/call", change).await;
}

#[tokio::test]
async fn a_state_for_a_prompt() {
    is_refused(|it| &it.left, "prompts/get", |_| ()).await;
}

#[tokio::test]
async fn a_state_that_is_too_old() {
    const HOUR: i64 = 60 * 60 * 1_000;

    let before = now();
    let asked = Asked::start().await;
    let after = now();
    let mut until = None;
    let same = asked.resealed(|it| until = it["until"].as_i64()).await;
    let until = until.expect("it ends");
    assert!((before + HOUR..=after + HOUR).contains(&until), "{until}");
    let old = asked.resealed(|it| it["until"] = (before - 1).into()).await;

    let mut lines = String::new();
    for (name, state) in [("the same", same), ("an old one", old)] {
        let change = |call: &mut Value| call["requestState"] = state.into();
        let told = asked.again(&asked.callers.left, "tools/call", change);
        writeln!(lines, "{name}: {}", told.await).unwrap();
    }
    expect![[r#"
        the same: hello, Ada
        an old one: -32602 the `requestState` is too old; make the request again without it
    "#]]
    .assert_eq(&lines);
}

/// Starts a bridge whose tools can be tasks. It ends with the test.
async fn with_workshop() -> (TempDir, String) {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let config = config(folder.path(), "");
    let place = folder.path().to_str().expect("it is UTF-8").to_owned();
    let variables = BTreeMap::from([("WORKSHOP".to_owned(), place)]);
    let bridge = Bridge::start(&config, &variables).await;
    let bridge = bridge.expect("it starts");
    let url = format!("http://{}/mcp", bridge.address);
    tokio::spawn(bridge.serve(CancellationToken::new()));
    (folder, url)
}

/// Looks at a task until it has some status.
async fn until_task(client: &Client, id: &str, status: &str) -> Value {
    let looking = async {
        loop {
            let reply = client.request("tasks/get", json!({ "taskId": id })).await;
            let task = reply.result();
            if task["status"] == status {
                return task;
            }
            let still = ["working", "input_required"];
            assert!(still.iter().any(|it| task["status"] == *it), "{task}");
            sleep(Duration::from_millis(20)).await;
        }
    };
    soon(looking).await
}

/// Starts a task that asks its user for a size; returns when it has asked.
async fn start_order(client: &Client) -> String {
    let started = client.call("order", json!({})).await;
    let id = started.message["result"]["taskId"].as_str();
    let id = id.expect("it is a task").to_owned();
    until_task(client, &id, "input_required").await;
    id
}

/// Has one caller start a task, and another look at it, answer it and cancel it.
async fn a_task_of_another(choose: impl FnOnce(&Callers) -> [&str; 2]) {
    let (folder, url) = with_workshop().await;
    let callers = Callers::of(folder.path()).await;
    let [owner, other] = choose(&callers).map(|token| {
        let profile = Profile {
            capabilities: json!({
                "extensions": { "io.modelcontextprotocol/tasks": {} },
                "elicitation": {},
            }),
            ..profile(Era::Modern)
        };
        Client::http(&url, with_token(token, profile))
    });
    let (owner, other) = (owner.await, other.await);
    let id = &start_order(&owner).await;

    let answers = |size: &str| {
        let answer = json!({ "action": "accept", "content": { "size": size } });
        json!({ "taskId": id, "inputResponses": { "size": answer } })
    };
    let mut lines = String::new();
    for (method, params) in [
        ("tasks/get", json!({ "taskId": id })),
        ("tasks/update", answers("small")),
        ("tasks/cancel", json!({ "taskId": id })),
    ] {
        let reply = other.request(method, params).await;
        let told = told(&reply).replace(id, "(id)");
        writeln!(lines, "{method}: {told}").unwrap();
    }
    expect![[r#"
        tasks/get: -32602 there is no task `(id)`
        tasks/update: -32602 there is no task `(id)`
        tasks/cancel: -32602 there is no task `(id)`
    "#]]
    .assert_eq(&lines);

    // The first answer would have counted.
    until_task(&owner, id, "input_required").await;
    let answered = owner.request("tasks/update", answers("large")).await;
    answered.result();
    let done = until_task(&owner, id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "ordered large");

    let id = start_order(&owner).await;
    let cancelled = owner.request("tasks/cancel", json!({ "taskId": id })).await;
    cancelled.result();
    until_task(&owner, &id, "cancelled").await;
}

#[tokio::test]
async fn a_task_of_the_service_and_a_project_token() {
    a_task_of_another(|it| [&it.service, &it.left]).await;
}

#[tokio::test]
async fn a_task_of_a_project_token_and_the_service() {
    a_task_of_another(|it| [&it.left, &it.service]).await;
}

#[tokio::test]
async fn a_task_of_a_project_token_and_another() {
    a_task_of_another(|it| [&it.left, &it.right]).await;
}
