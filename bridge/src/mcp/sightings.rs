//! Which engine is calling: what the address says, else what the client calls itself; and that it was seen.

use crate::{
    engines::Engine,
    store::{Sighting, Store, now},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tool_runtime::Caller;

/// How long a sighting is taken to be the same one, in milliseconds.
const SAME: i64 = 60_000;

/// How many are remembered, so that one isn't noted again: whoever makes up names fills no memory.
const MOST: usize = 1_000;

/// The most characters of what a client says of itself.
const LONGEST: usize = 100;

/// Notes which engines call.
#[derive(Debug)]
pub(super) struct Sightings {
    store: Option<Store>,
    noted: Mutex<HashMap<(String, String), i64>>,
}

/// What the doctor says that it is when it tries an engine's way: no engine was seen then.
pub(crate) const DOCTOR: &str = "clopen-mcp doctor";

/// What a client says of itself.
#[derive(Debug, Default)]
pub(super) struct ClientInfo {
    name: String,
    version: String,
}

impl ClientInfo {
    /// Reads it as far as it can be read.
    pub(super) fn of(raw: Option<&RawValue>) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Sent {
            name: String,
            version: String,
        }
        let sent: Option<Sent> = raw.and_then(|it| serde_json::from_str(it.get()).ok());
        let Sent { name, version } = sent.unwrap_or_default();
        Self {
            name: short(&name),
            version: short(&version),
        }
    }

    /// The engine whose client this is.
    pub(super) fn engine(&self) -> Option<&'static Engine> {
        Engine::of_client(&self.name)
    }
}

fn short(text: &str) -> String {
    let printable = text.chars().filter(|it| !it.is_control());
    printable.take(LONGEST).collect()
}

/// Names the engine of a caller whose address doesn't.
pub(super) fn name_engine(
    caller: &Arc<Caller>,
    engine: impl FnOnce() -> Option<&'static Engine>,
) -> Arc<Caller> {
    if caller.engine.is_empty()
        && let Some(engine) = engine()
    {
        let mut named = Caller::clone(caller);
        engine.id.clone_into(&mut named.engine);
        named.most_output = engine.most_output;
        return Arc::new(named);
    }
    caller.clone()
}

impl Sightings {
    pub(super) fn new(store: Option<Store>) -> Self {
        Self {
            store,
            noted: Mutex::default(),
        }
    }

    /// Notes that somebody has called, unless that was noted just now. Nobody waits for it.
    pub(super) fn note(&self, caller: &Caller, client: ClientInfo, protocol: &str) {
        let Some(store) = self.store.as_ref().filter(|_| client.name != DOCTOR) else {
            return;
        };
        let engine = match (caller.engine.as_str(), client.name.as_str()) {
            ("", "") => return,
            ("", name) => name.to_owned(),
            (engine, _) => engine.to_owned(),
        };
        let seen_at = now();
        let key = (engine.clone(), caller.project.clone());
        {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            if noted.get(&key).is_some_and(|it| seen_at - it < SAME) {
                return;
            }
            if noted.len() >= MOST {
                noted.retain(|_, it| seen_at - *it < SAME);
            }
            if noted.len() < MOST {
                noted.insert(key, seen_at);
            }
        }
        let sighting = Sighting {
            engine,
            project: caller.project.clone(),
            client: client.name,
            client_version: client.version,
            protocol: protocol.to_owned(),
            seen_at,
        };
        let store = store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.note_sighting(&sighting).await {
                tracing::warn!(%error, "can't note which engine has called");
            }
        });
    }
}
