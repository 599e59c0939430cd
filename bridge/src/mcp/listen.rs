//! News for those who listen: `subscriptions/listen` of 2026-07-28, and the streams of sessions.

use super::{
    Door,
    peer::Peer,
    result::complete_result,
    rpc::{self, INVALID_REQUEST, RpcError},
    stream::Exchange,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{broadcast::error::RecvError, mpsc};
use tool_runtime::{Cancellation, Change};

/// How long news of one kind is gathered before it is told.
const GATHERED: Duration = Duration::from_millis(50);

/// How much news may wait for a client that reads slowly.
const WAITING: usize = 64;

/// Everyone who listens without a session.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Vec<Listener>>);

#[derive(Debug)]
struct Listener {
    subscription: Value,
    wants: Filter,
    news: mpsc::Sender<Vec<u8>>,
}

/// What a client wants to hear of.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Filter {
    #[serde(skip_serializing_if = "is_false")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    resource_subscriptions: BTreeSet<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Filter {
    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools_list_changed,
            Change::Prompts => self.prompts_list_changed,
            Change::Resources => self.resources_list_changed,
            Change::Resource(uri) => self.resource_subscriptions.contains(uri),
        }
    }
}

#[derive(Deserialize)]
struct ListenParams {
    #[serde(default)]
    notifications: Filter,
}

/// Begins to tell a client what it wants to hear of; the first message says what that is.
pub(super) fn exchange(
    door: &Arc<Door>,
    peer: &Peer,
    id: Box<RawValue>,
    params: Option<&RawValue>,
) -> Exchange {
    let wants = match rpc::params::<ListenParams>("subscriptions/listen", params) {
        Ok(params) => params.notifications,
        Err(error) => return Exchange::known(id, Err(error)),
    };
    let Some(subscription) = subscription(&id) else {
        let message = "the id of a subscription is a text of whole characters, or an integer of at most 64 bits";
        return Exchange::known(id, Err(RpcError::new(INVALID_REQUEST, message)));
    };
    let (news, inbox) = mpsc::channel(WAITING);
    let mut acknowledged = json!({ "notifications": wants });
    mark(&mut acknowledged, &subscription);
    let acknowledged = rpc::notification("notifications/subscriptions/acknowledged", &acknowledged);
    let sent = news.try_send(acknowledged);
    sent.expect("a new channel has room");
    door.listeners.add(Listener {
        subscription: subscription.clone(),
        wants,
        news,
    });
    let (closed, peer) = (door.closed.clone(), peer.clone());
    let work = async move {
        closed.cancelled().await;
        let mut result = complete_result(&peer, json!({}));
        mark(&mut result, &subscription);
        Ok::<Value, RpcError>(result)
    };
    Exchange {
        id,
        work: Box::pin(work),
        inbox,
        cancellation: Cancellation::new(),
        outlives_client: false,
    }
}

/// Reads the id of a request as that of a subscription, which stands in every message in its JSON type.
fn subscription(id: &RawValue) -> Option<Value> {
    let id: Value = serde_json::from_str(id.get()).ok()?;
    (id.is_string() || id.is_i64() || id.is_u64()).then_some(id)
}

/// Says which subscription a message belongs to.
fn mark(params: &mut Value, subscription: &Value) {
    params["_meta"]["io.modelcontextprotocol/subscriptionId"] = subscription.clone();
}

impl Listeners {
    fn add(&self, listener: Listener) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|it| !it.news.is_closed());
        listeners.push(listener);
    }

    fn tell(&self, change: &Change) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|it| !it.news.is_closed());
        for listener in listeners.iter().filter(|it| it.wants.wants(change)) {
            let (method, mut params) = told(change);
            mark(&mut params, &listener.subscription);
            // Whoever reads too slowly lists again when it comes back.
            let _ = listener.news.try_send(rpc::notification(method, &params));
        }
    }
}

fn told(change: &Change) -> (&'static str, Value) {
    match change {
        Change::Tools => ("notifications/tools/list_changed", json!({})),
        Change::Prompts => ("notifications/prompts/list_changed", json!({})),
        Change::Resources => ("notifications/resources/list_changed", json!({})),
        Change::Resource(uri) => ("notifications/resources/updated", json!({ "uri": uri })),
    }
}

/// Tells everyone what changes, until the door closes.
pub(super) async fn spread(door: Arc<Door>) {
    let mut changes = door.dispatcher.changes().watch();
    loop {
        let mut gathered = BTreeSet::new();
        tokio::select! {
            () = door.closed.cancelled() => return,
            first = changes.recv() => match first {
                Ok(change) => drop(gathered.insert(change)),
                Err(RecvError::Lagged(_)) => gathered.extend(lists()),
                Err(RecvError::Closed) => return,
            },
        }
        tokio::time::sleep(GATHERED).await;
        while let Ok(change) = changes.try_recv() {
            gathered.insert(change);
        }
        for change in &gathered {
            tell(&door, change);
            door.tell_others(change.into());
        }
    }
}

/// Tells everyone who listens here.
pub(super) fn tell(door: &Door, change: &Change) {
    door.listeners.tell(change);
    for session in door.sessions.listening() {
        let wanted = match change {
            Change::Resource(uri) => session.is_subscribed(uri),
            _ => true,
        };
        if wanted {
            let (method, params) = told(change);
            session.send(rpc::notification(method, &params));
        }
    }
}

/// What may have changed when some of the news was missed.
pub(super) fn lists() -> [Change; 3] {
    [Change::Tools, Change::Prompts, Change::Resources]
}
