//! Whose call is whose, when many call at once.

use crate::{
    bridge::{Serving, TOKEN, profile},
    client::{Client, Era, plain_http},
};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError},
};
use tracing_subscriber::fmt::MakeWriter;

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Counts the records of calls, by engine, project and session.
    fn records(&self) -> BTreeMap<[String; 3], usize> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let log = String::from_utf8_lossy(&log);
        let mut records = BTreeMap::new();
        for line in log.lines() {
            let record: Value = serde_json::from_str(line).expect("it is logged as JSON");
            let fields = &record["fields"];
            if fields["message"] == "done" {
                let who = ["engine", "project", "session"];
                let who = who.map(|it| fields[it].as_str().unwrap_or("?").to_owned());
                *records.entry(who).or_default() += 1;
            }
        }
        records
    }
}

/// Four conversations, of two engines in two projects, in both eras.
const CONVERSATIONS: [(&str, &str, &str, Era); 4] = [
    ("codex", "/home/ada/atlas", "one", Era::Legacy("2025-06-18")),
    ("claude", "/home/ada/atlas", "two", Era::Modern),
    ("codex", "/home/ada/beacon", "three", Era::Modern),
    (
        "claude",
        "/home/ada/beacon",
        "four",
        Era::Legacy("2025-11-25"),
    ),
];

/// How many calls each makes.
const CALLS: usize = 250;

/// Has all call at once; `query` says what an address holds.
async fn call(query: impl Fn(&str, &str, &str) -> String) -> BTreeMap<[String; 3], usize> {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(log.clone())
        .finish();
    let _logs = tracing::subscriber::set_default(subscriber);
    let bridge = Serving::start("").await;
    let mut clients = Vec::new();
    for (engine, project, session, era) in CONVERSATIONS {
        let stream = json!({ "engine": engine, "project": project, "session": session });
        let url = format!("http://{}/api/streams", bridge.address);
        let begun = plain_http().request(Method::POST, url).bearer_auth(TOKEN);
        begun
            .json(&stream)
            .send()
            .await
            .expect("the bridge answers");
        let url = format!("{}?{}", bridge.url(), query(engine, project, session));
        clients.push(Client::http(&url, profile(era)).await);
    }
    let calls = (0..CALLS).flat_map(|_| CONVERSATIONS.iter().zip(&clients));
    let calls = calls.map(|((engine, project, session, _), client)| async move {
        let seen: Value = serde_json::from_str(&client.call("who", json!({})).await.text())
            .expect("the tool answers in JSON");
        assert_eq!(seen["engine"], *engine);
        assert_eq!(seen["project"], *project);
        assert_eq!(seen["session"], *session);
    });
    join_all(calls).await;
    log.records()
}

fn expected() -> BTreeMap<[String; 3], usize> {
    let who = CONVERSATIONS.map(|(engine, project, session, _)| [engine, project, session]);
    let who = who.map(|it| it.map(str::to_owned));
    who.map(|it| (it, CALLS)).into()
}

#[tokio::test]
async fn a_thousand_calls_that_name_their_conversation() {
    let records = call(|engine, project, session| {
        format!("engine={engine}&project={project}&session={session}")
    });
    assert_eq!(records.await, expected());
}

#[tokio::test]
async fn a_thousand_calls_that_name_their_engine_and_project() {
    let records = call(|engine, project, _| format!("engine={engine}&project={project}"));
    assert_eq!(records.await, expected());
}
