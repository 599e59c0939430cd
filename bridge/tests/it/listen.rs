//! What those hear who listen without a session.

use crate::{
    bridge::{Serving, config, profile},
    client::{Client, Era, Events, soon},
};
use clopen_mcp::{Bridge, StartError};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tool_runtime::{Change, Dispatcher};

const MOTTO: &str = "gallery://motto";

/// A bridge whose changes the test tells itself.
struct Changing {
    client: Client,
    dispatcher: Arc<Dispatcher>,
    stop: CancellationToken,
    served: JoinHandle<Result<(), StartError>>,
    _folder: TempDir,
}

impl Changing {
    async fn start() -> Self {
        let folder = TempDir::new().expect("the temporary folder can be written");
        let config = config(folder.path(), "");
        let bridge = Bridge::start(&config, &BTreeMap::new()).await;
        let bridge = bridge.expect("it starts");
        let url = format!("http://{}/mcp", bridge.address);
        let (dispatcher, stop) = (bridge.dispatcher.clone(), CancellationToken::new());
        let served = tokio::spawn(bridge.serve(stop.clone()));
        Self {
            client: Client::http(&url, profile(Era::Modern)).await,
            dispatcher,
            stop,
            served,
            _folder: folder,
        }
    }

    /// Tells changes in one go: the bridge runs on the thread of the test, so that it hears of none before the last.
    fn tell(&self, changes: impl IntoIterator<Item = Change>) {
        for change in changes {
            self.dispatcher.changes().tell(change);
        }
    }

    async fn stopped(self) {
        self.stop.cancel();
        let served = soon(self.served).await.expect("it doesn't panic");
        served.expect("it ends well");
    }
}

fn every_change() -> [Change; 5] {
    [
        Change::Resource("gallery://logo".to_owned()),
        Change::Resource(MOTTO.to_owned()),
        Change::Resources,
        Change::Prompts,
        Change::Tools,
    ]
}

fn every_filter() -> Value {
    json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["gallery://logo", MOTTO],
    })
}

/// Shows a message of a subscription, and holds it to its id: `7` is another one than `"7"`.
fn shown(mut message: Value, id: &Value) -> String {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let is_result = message.get("method").is_none();
    let body = if is_result { "result" } else { "params" };
    let meta = &message[body]["_meta"];
    let marked = &meta["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(marked, id, "{message}");
    if is_result {
        assert_eq!(message["id"], *id, "{message}");
    } else {
        assert_eq!(message.get("id"), None, "{message}");
    }
    let mut said = message[body].take();
    let fields = said.as_object_mut().expect("it is an object");
    fields.remove("_meta");
    said.sort_all_objects();
    let method = message["method"].as_str().unwrap_or("result");
    format!("{method} {said}\n")
}

/// Shows the next message.
async fn next(stream: &mut Events, id: &Value) -> String {
    let message = soon(stream.next()).await;
    shown(message.expect("the stream goes on"), id)
}

/// Shows everything up to the end of the stream.
async fn rest(stream: &mut Events, id: &Value) -> String {
    let mut all = String::new();
    while let Some(message) = soon(stream.next()).await {
        all += &shown(message, id);
    }
    all
}

/// Shows what is heard, from first to last, of one change of every kind by a client that asks for this.
async fn hears(id: Value, asked: Value, expected: Expect) {
    let bridge = Changing::start().await;
    let client = &bridge.client;
    let mut stream = client.subscribe(id.clone(), asked).await;
    let everything = json!("everything");
    let mut other = client.subscribe(everything.clone(), every_filter()).await;
    bridge.tell(every_change());
    // When the other one has heard the last, nothing is on its way any more.
    let last = format!("{{\"uri\":\"{MOTTO}\"}}");
    while !next(&mut other, &everything).await.contains(&last) {}
    bridge.stopped().await;
    expected.assert_eq(&rest(&mut stream, &id).await);
}

#[tokio::test]
async fn everything_is_heard_by_who_asks_for_it() {
    hears(json!("all of it"), every_filter(), expect![[r#"
        notifications/subscriptions/acknowledged {"notifications":{"promptsListChanged":true,"resourceSubscriptions":["gallery://logo","gallery://motto"],"resourcesListChanged":true,"toolsListChanged":true}}
        notifications/tools/list_changed {}
        notifications/prompts/list_changed {}
        notifications/resources/list_changed {}
        notifications/resources/updated {"uri":"gallery://logo"}
        notifications/resources/updated {"uri":"gallery://motto"}
        result {"resultType":"complete"}
    "#]]).await;
}

#[tokio::test]
async fn lists_without_resources() {
    let asked = json!({ "toolsListChanged": true, "promptsListChanged": true });
    hears(json!("7"), asked, expect![[r#"
        notifications/subscriptions/acknowledged {"notifications":{"promptsListChanged":true,"toolsListChanged":true}}
        notifications/tools/list_changed {}
        notifications/prompts/list_changed {}
        result {"resultType":"complete"}
    "#]]).await;
}

#[tokio::test]
async fn one_resource_without_lists() {
    let asked = json!({ "resourceSubscriptions": [MOTTO] });
    hears(json!(7), asked, expect![[r#"
        notifications/subscriptions/acknowledged {"notifications":{"resourceSubscriptions":["gallery://motto"]}}
        notifications/resources/updated {"uri":"gallery://motto"}
        result {"resultType":"complete"}
    "#]]).await;
}

#[tokio::test]
async fn what_is_declined_is_not_heard() {
    let asked = json!({
        "toolsListChanged": false,
        "promptsListChanged": false,
        "resourcesListChanged": true,
        "resourceSubscriptions": [],
    });
    hears(
        json!(-7),
        asked,
        expect![[r#"
        notifications/subscriptions/acknowledged {"notifications":{"resourcesListChanged":true}}
        notifications/resources/list_changed {}
        result {"resultType":"complete"}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn nothing_is_heard_by_who_asks_for_nothing() {
    hears(
        json!(""),
        json!({}),
        expect![[r#"
        notifications/subscriptions/acknowledged {"notifications":{}}
        result {"resultType":"complete"}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_burst_is_heard_once() {
    let bridge = Changing::start().await;
    let id = json!(1);
    let mut stream = bridge.client.subscribe(id.clone(), every_filter()).await;
    let mut heard = next(&mut stream, &id).await;
    let motto = || Change::Resource(MOTTO.to_owned());
    for _ in 0..2 {
        let burst = [Change::Tools, motto()].into_iter().cycle().take(20);
        bridge.tell(burst);
        heard += &next(&mut stream, &id).await;
        heard += &next(&mut stream, &id).await;
    }
    bridge.stopped().await;
    heard += &rest(&mut stream, &id).await;
    expect![[r#"
        notifications/subscriptions/acknowledged {"notifications":{"promptsListChanged":true,"resourceSubscriptions":["gallery://logo","gallery://motto"],"resourcesListChanged":true,"toolsListChanged":true}}
        notifications/tools/list_changed {}
        notifications/resources/updated {"uri":"gallery://motto"}
        notifications/tools/list_changed {}
        notifications/resources/updated {"uri":"gallery://motto"}
        result {"resultType":"complete"}
    "#]].assert_eq(&heard);
}

#[tokio::test]
async fn a_stream_ends_with_the_bridge() {
    let bridge = Changing::start().await;
    let id = json!("until the end");
    let mut stream = bridge.client.subscribe(id.clone(), json!({})).await;
    next(&mut stream, &id).await;
    bridge.stopped().await;
    let last = soon(stream.next()).await.expect("it ends with a word");
    assert_eq!(last["id"], id);
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
    assert_eq!(soon(stream.next()).await, None);
}

#[tokio::test]
async fn a_session_subscribes_in_another_way() {
    let bridge = Serving::start("").await;
    let client = bridge.client(Era::Legacy("2025-11-25")).await;
    let params = json!({ "notifications": every_filter() });
    let reply = client.request("subscriptions/listen", params).await;
    assert_eq!(reply.error()["code"], -32601, "{}", reply.message);
}
