//! Which engines have called: what the database keeps, and what real requests leave there.

use crate::{
    bridge::{Serving, profile},
    client::{Client, Era, soon},
    store::{Database, on_each_database},
};
use clopen_mcp::store::{Sighting, Store};
use expect_test::expect;
use std::time::Duration;

on_each_database! {
    the_last_sighting_of_an_engine_in_a_project_is_kept
    only_so_many_sightings_are_kept
}

fn sighting(engine: &str, project: &str, seen_at: i64) -> Sighting {
    Sighting {
        engine: engine.to_owned(),
        project: project.to_owned(),
        client: "größe 'x'".to_owned(),
        client_version: "1".to_owned(),
        protocol: "2026-07-28".to_owned(),
        seen_at,
    }
}

async fn the_last_sighting_of_an_engine_in_a_project_is_kept(database: Database) {
    let store = database.open().await;
    for (project, seen_at) in [("/a", 1), ("/b", 2), ("/a", 3)] {
        let sighting = sighting("codex", project, seen_at);
        store.note_sighting(&sighting).await.unwrap();
    }
    let kept = [sighting("codex", "/a", 3), sighting("codex", "/b", 2)];
    assert_eq!(store.sightings().await.unwrap(), kept);
}

async fn only_so_many_sightings_are_kept(database: Database) {
    let store = database.open().await;
    for number in 1..=1_003 {
        let sighting = sighting("codex", &format!("/{number}"), number);
        store.note_sighting(&sighting).await.unwrap();
    }
    let kept = store.sightings().await.unwrap();
    assert_eq!(kept.len(), 1_000);
    assert_eq!(kept.last().map(|it| it.seen_at), Some(4));
}

#[tokio::test]
async fn whoever_calls_is_seen() {
    let bridge = Serving::start("").await;
    for (query, era) in [
        ("?engine=codex&project=atlas", Era::Legacy("2025-06-18")),
        ("?engine=claude-code", Era::Modern),
        ("", Era::Legacy("2025-11-25")),
    ] {
        let url = format!("{}{query}", bridge.url());
        let client = Client::http(&url, profile(era)).await;
        client.names("tools").await;
    }
    let store = Store::open(&bridge.folder.path().join("data"), None).await;
    let store = store.expect("it opens");
    let all = async {
        loop {
            let seen = store.sightings().await.expect("it answers");
            if seen.len() == 3 {
                return seen;
            }
            // What is noted is written beside the answers.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let mut lines: Vec<String> = soon(all)
        .await
        .into_iter()
        .map(|it| {
            format!(
                "{} in `{}`: {}, {}",
                it.engine, it.project, it.client, it.protocol
            )
        })
        .collect();
    lines.sort();
    expect![[r#"
        claude in ``: it, 2026-07-28
        codex in `atlas`: it, 2025-06-18
        it in ``: it, 2025-11-25"#]]
    .assert_eq(&lines.join("\n"));
}
