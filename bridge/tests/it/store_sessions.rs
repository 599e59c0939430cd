//! Sessions in the store, on each database.

use crate::store::{Database, on_each_database};
use clopen_mcp::store::StoredSession;
use std::collections::BTreeSet;

on_each_database! {
    a_session_is_saved_found_and_deleted
    a_session_is_saved_again
    sessions_outlive_a_process_that_was_killed
    sessions_are_touched_together
    idle_sessions_are_deleted
    odd_ids_are_no_sessions
    many_sessions_are_saved_at_once
}

fn session(id: &str) -> StoredSession {
    StoredSession {
        id: id.to_owned(),
        principal: "service".to_owned(),
        version: "2025-11-25".to_owned(),
        client_info: r#"{"name":"größe 'x'","version":"1"}"#.to_owned(),
        capabilities: r#"{"elicitation":{}}"#.to_owned(),
        level: None,
        subscriptions: BTreeSet::new(),
        created_at: 1000,
        last_seen_at: 1000,
    }
}

async fn a_session_is_saved_found_and_deleted(database: Database) {
    let store = database.open().await;
    assert_eq!(store.find_session("a").await.unwrap(), None);
    store.save_session(&session("a")).await.unwrap();
    assert_eq!(store.find_session("a").await.unwrap(), Some(session("a")));
    assert_eq!(store.find_session("A").await.unwrap(), None);
    assert_eq!(store.count_sessions().await.unwrap(), 1);
    assert!(store.delete_session("a").await.unwrap());
    assert!(!store.delete_session("a").await.unwrap());
    assert_eq!(store.find_session("a").await.unwrap(), None);
    assert_eq!(store.count_sessions().await.unwrap(), 0);
}

async fn a_session_is_saved_again(database: Database) {
    let store = database.open().await;
    store.save_session(&session("a")).await.unwrap();
    let changed = StoredSession {
        level: Some("debug".to_owned()),
        subscriptions: BTreeSet::from(["b://\"2\"".to_owned(), "a://1".to_owned()]),
        last_seen_at: 2000,
        ..session("a")
    };
    store.save_session(&changed).await.unwrap();
    assert_eq!(store.find_session("a").await.unwrap(), Some(changed));
    store.save_session(&session("a")).await.unwrap();
    assert_eq!(store.find_session("a").await.unwrap(), Some(session("a")));
    assert_eq!(store.count_sessions().await.unwrap(), 1);
}

async fn sessions_outlive_a_process_that_was_killed(database: Database) {
    let killed = database.open().await;
    killed.save_session(&session("a")).await.unwrap();
    let store = database.open().await;
    assert_eq!(store.find_session("a").await.unwrap(), Some(session("a")));
    drop(killed);
}

async fn sessions_are_touched_together(database: Database) {
    let store = database.open().await;
    for id in ["a", "b", "c"] {
        store.save_session(&session(id)).await.unwrap();
    }
    let mut seen: Vec<(String, i64)> = (0..1200).map(|it| (format!("gone-{it}"), 5000)).collect();
    seen.extend([
        ("a".to_owned(), 3000),
        ("a".to_owned(), 2000),
        ("b".to_owned(), 10),
        ("c".to_owned(), i64::MAX),
    ]);
    store.touch_sessions(&seen).await.unwrap();
    store.touch_sessions(&[]).await.unwrap();
    let mut last = Vec::new();
    for id in ["a", "b", "c"] {
        last.extend(
            store
                .find_session(id)
                .await
                .unwrap()
                .map(|it| it.last_seen_at),
        );
    }
    assert_eq!(last, [3000, 1000, i64::MAX]);
    assert_eq!(store.count_sessions().await.unwrap(), 3);
}

async fn idle_sessions_are_deleted(database: Database) {
    let store = database.open().await;
    for (id, last_seen_at) in [("a", 1000), ("b", 2000), ("c", 2001)] {
        let session = StoredSession {
            last_seen_at,
            ..session(id)
        };
        store.save_session(&session).await.unwrap();
    }
    assert_eq!(store.delete_sessions_idle_since(999).await.unwrap(), 0);
    assert_eq!(store.delete_sessions_idle_since(2000).await.unwrap(), 2);
    assert!(store.find_session("c").await.unwrap().is_some());
}

async fn odd_ids_are_no_sessions(database: Database) {
    let store = database.open().await;
    store.save_session(&session("a")).await.unwrap();
    for id in ["", "a\0", "\0", "' OR 1 = 1 --", "a ", "\u{fffd}"] {
        assert_eq!(store.find_session(id).await.unwrap(), None, "{id:?}");
        assert!(!store.delete_session(id).await.unwrap(), "{id:?}");
    }
}

async fn many_sessions_are_saved_at_once(database: Database) {
    let (one, other) = tokio::join!(database.open(), database.open());
    let saved = futures_util::future::join_all((0..100).map(|number| {
        let store = if number % 2 == 0 { &one } else { &other };
        async move {
            store
                .save_session(&session(&format!("s{}", number / 2)))
                .await
        }
    }));
    assert!(saved.await.into_iter().all(|it| it.is_ok()));
    assert_eq!(one.count_sessions().await.unwrap(), 50);
}
