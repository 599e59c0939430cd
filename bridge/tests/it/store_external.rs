//! External servers in the store, on each database.

use crate::store::{Database, on_each_database};
use clopen_mcp::store::{Approval, ExternalServer};
use std::collections::BTreeMap;

on_each_database! {
    an_external_server_is_kept_listed_and_removed
    an_approval_is_of_the_server_that_was_there
}

fn external(name: &str) -> ExternalServer {
    ExternalServer {
        name: name.to_owned(),
        source: "by hand".to_owned(),
        sealed: "größe \'x\'".to_owned(),
        listed: None,
        listed_at: None,
        added_at: 5,
    }
}

async fn an_external_server_is_kept_listed_and_removed(database: Database) {
    let store = database.open().await;
    store.save_external_server(&external("b")).await.unwrap();
    store.save_external_server(&external("a")).await.unwrap();
    let all = [external("a"), external("b")];
    assert_eq!(store.external_servers().await.unwrap(), all);
    assert!(store.note_listed("a", 5, "[]", 7).await.unwrap());
    assert!(!store.note_listed("c", 5, "[]", 7).await.unwrap());
    assert!(!store.note_listed("a", 4, "[1]", 7).await.unwrap());
    let times = store.external_times().await.unwrap();
    assert_eq!(times["a"], (5, Some(7)));
    assert_eq!(times["b"], (5, None));
    let listed = ExternalServer {
        listed: Some("[]".to_owned()),
        listed_at: Some(7),
        ..external("a")
    };
    assert_eq!(store.external_servers().await.unwrap()[0], listed);
    store.save_external_server(&external("a")).await.unwrap();
    assert_eq!(store.external_servers().await.unwrap()[0], external("a"));
    assert!(store.delete_external_server("a").await.unwrap());
    assert!(!store.delete_external_server("a").await.unwrap());
    assert_eq!(store.external_servers().await.unwrap(), [external("b")]);
}

async fn an_approval_is_of_the_server_that_was_there(database: Database) {
    let store = database.open().await;
    let approval = |added_at, tool: &str| Approval {
        server: "a".to_owned(),
        added_at,
        tools: BTreeMap::from([(tool.to_owned(), "größe".to_owned())]),
        approved_at: 8,
    };
    store.save_external_server(&external("a")).await.unwrap();
    store.save_approval(&approval(5, "x")).await.unwrap();
    store.save_approval(&approval(5, "y")).await.unwrap();
    assert_eq!(store.approvals().await.unwrap(), [approval(5, "y")]);
    assert_eq!(store.approval_times().await.unwrap()["a"], 8);
    // Added anew, it is another one.
    store.save_approval(&approval(4, "x")).await.unwrap();
    assert_eq!(store.approvals().await.unwrap(), []);
    store.delete_external_server("a").await.unwrap();
    assert!(store.approval_times().await.unwrap().is_empty());
}
