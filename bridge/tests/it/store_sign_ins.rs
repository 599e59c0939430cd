//! Sign-ins in the store, on each database.

use crate::store::{Database, on_each_database};
use clopen_mcp::store::{CredentialKey, FlowState, Store};

on_each_database! {
    one_at_a_time_renews_a_credential
    the_default_is_the_last_and_never_that_of_another
    a_sign_in_is_taken_once_and_in_time
    a_server_that_is_removed_takes_its_credentials_along
}

fn key(subject: &str, account: &str) -> CredentialKey {
    CredentialKey {
        server: "notes".to_owned(),
        subject: subject.to_owned(),
        account: account.to_owned(),
    }
}

async fn version(store: &Store) -> i64 {
    let stored = store.credential("notes", "", None).await.unwrap();
    stored.expect("it is there").version
}

async fn one_at_a_time_renews_a_credential(database: Database) {
    let (store, other) = (database.open().await, database.open().await);
    let key = key("", "default");
    store.save_credential(&key, "a", Some(9), 1).await.unwrap();
    let first = version(&store).await;
    let lease = |store: &Store, holder: &'static str, version, now| {
        let (store, key) = (store.clone(), key.clone());
        async move {
            let leased = store.lease_credential(&key, version, holder, (now, now + 10));
            leased.await.unwrap()
        }
    };
    assert!(lease(&store, "x", first, 100).await);
    assert!(!lease(&other, "y", first, 105).await);
    // Whoever held it has died.
    assert!(lease(&other, "y", first, 110).await);
    let renewed = store
        .renew_credential((&key, first, "x"), "b", None, 111)
        .await;
    assert!(!renewed.unwrap());
    let renewed = other
        .renew_credential((&key, first, "y"), "c", None, 111)
        .await;
    assert!(renewed.unwrap());
    let stored = store.credential("notes", "", None).await.unwrap().unwrap();
    assert_eq!((&*stored.sealed, stored.version), ("c", first + 1));
    assert!(!lease(&store, "x", first, 200).await);
    assert!(lease(&store, "x", first + 1, 200).await);
    let mine = (&key, first + 1, "x");
    store.rest_credential(mine, 300).await.unwrap();
    let stored = store.credential("notes", "", None).await.unwrap().unwrap();
    assert_eq!((stored.failures, stored.retry_at), (1, Some(300)));
    assert!(lease(&other, "y", first + 1, 201).await);
}

async fn the_default_is_the_last_and_never_that_of_another(database: Database) {
    let store = database.open().await;
    for (at, (subject, account)) in [("", "a"), ("", "b"), ("ci", "c")].into_iter().enumerate() {
        let at = i64::try_from(at).unwrap();
        store
            .save_credential(&key(subject, account), "x", None, at)
            .await
            .unwrap();
    }
    let used = async |subject: &str| {
        let used = store.credential("notes", subject, None).await.unwrap();
        used.map(|it| it.key.account)
    };
    assert_eq!(used("").await.as_deref(), Some("b"));
    assert_eq!(used("ci").await.as_deref(), Some("c"));
    assert_eq!(used("other").await, None);
    assert!(store.delete_credential(&key("", "b")).await.unwrap());
    assert!(!store.delete_credential(&key("", "b")).await.unwrap());
    assert_eq!(used("").await.as_deref(), Some("a"));
    assert!(store.delete_credential(&key("", "a")).await.unwrap());
    assert_eq!(used("").await, None);
    assert_eq!(used("ci").await.as_deref(), Some("c"));
}

async fn a_sign_in_is_taken_once_and_in_time(database: Database) {
    let store = database.open().await;
    let state = async |hash: &str, now| store.oauth_flow(hash, now).await.unwrap();
    store.begin_oauth_flow("a", "sealed", 10, 1).await.unwrap();
    assert_eq!(state("a", 9).await, FlowState::Waiting);
    assert_eq!(state("a", 10).await, FlowState::Gone);
    assert_eq!(store.take_oauth_flow("a", 10).await.unwrap(), None);
    let taken = store.take_oauth_flow("a", 9).await.unwrap();
    assert_eq!(taken.as_deref(), Some("sealed"));
    assert_eq!(store.take_oauth_flow("a", 9).await.unwrap(), None);
    assert_eq!(state("a", 9).await, FlowState::Taken(String::new()));
    store.end_oauth_flow("a", "ok").await.unwrap();
    assert_eq!(state("a", 99).await, FlowState::Taken("ok".to_owned()));
    let late = 10 + 60 * 60 * 1_000 + 1;
    store
        .begin_oauth_flow("b", "sealed", late + 10, late)
        .await
        .unwrap();
    assert_eq!(state("a", late).await, FlowState::Gone);
}

async fn a_server_that_is_removed_takes_its_credentials_along(database: Database) {
    let store = database.open().await;
    store
        .save_credential(&key("ci", "a"), "x", None, 1)
        .await
        .unwrap();
    store.delete_external_server("notes").await.unwrap();
    assert!(store.credentials().await.unwrap().is_empty());
}
