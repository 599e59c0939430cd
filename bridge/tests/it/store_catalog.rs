//! The catalog in the store, on each database.

use crate::store::{Database, on_each_database};
use clopen_mcp::store::{CatalogServer, CatalogSync};

on_each_database! {
    what_a_registry_offers_is_kept_with_how_far_one_has_come
    what_a_full_sync_has_not_seen_is_forgotten
    many_servers_are_kept_at_once
}

fn server(name: &str, version: &str) -> CatalogServer {
    CatalogServer {
        registry: "official".to_owned(),
        name: name.to_owned(),
        version: version.to_owned(),
        title: "Größe 'x'".to_owned(),
        status: "active".to_owned(),
        kinds: "npm remote".to_owned(),
        needs_key: name == "a/b",
        record: r#"{"name":"\u0000"}"#.to_owned(),
        ..CatalogServer::default()
    }
}

fn sync(number: i64) -> CatalogSync {
    CatalogSync {
        registry: "official".to_owned(),
        url: "https://registry.example".to_owned(),
        number,
        started_at: 5,
        next_page: Some("abc".to_owned()),
        ..CatalogSync::default()
    }
}

async fn what_a_registry_offers_is_kept_with_how_far_one_has_come(database: Database) {
    let store = database.open().await;
    assert_eq!(store.catalog_sync("official").await.unwrap(), None);
    let twice = vec![
        server("a/b", "1.0.0"),
        server("a/c", "1.0.0"),
        server("a/b", "2.0.0"),
    ];
    store.save_catalog(&sync(1), twice, &[]).await.unwrap();
    assert_eq!(store.catalog_sync("official").await.unwrap(), Some(sync(1)));
    assert_eq!(
        store.catalog_servers("a/b").await.unwrap(),
        [server("a/b", "2.0.0")]
    );
    let done = CatalogSync {
        next_page: None,
        synced_to: Some("2026-11-30T00:00:00Z".to_owned()),
        synced_at: Some(7),
        ..sync(1)
    };
    let gone = ["a/b".to_owned()];
    store.save_catalog(&done, Vec::new(), &gone).await.unwrap();
    assert_eq!(store.catalog_sync("official").await.unwrap(), Some(done));
    assert_eq!(store.catalog_servers("a/b").await.unwrap(), []);
    let without_record = CatalogServer {
        record: String::new(),
        ..server("a/c", "1.0.0")
    };
    assert_eq!(store.catalog("official").await.unwrap(), [without_record]);
    assert_eq!(store.catalog("other").await.unwrap(), []);
}

async fn what_a_full_sync_has_not_seen_is_forgotten(database: Database) {
    let store = database.open().await;
    let other = CatalogServer {
        registry: "other".to_owned(),
        ..server("a/old", "1.0.0")
    };
    let sync_of_other = CatalogSync {
        registry: "other".to_owned(),
        ..sync(1)
    };
    let first = vec![server("a/b", "1.0.0"), server("a/old", "1.0.0")];
    store.save_catalog(&sync(1), first, &[]).await.unwrap();
    store
        .save_catalog(&sync_of_other, vec![other], &[])
        .await
        .unwrap();
    let second = vec![server("a/b", "1.0.0")];
    store.save_catalog(&sync(2), second, &[]).await.unwrap();
    assert_eq!(store.forget_unseen(&sync(2)).await.unwrap(), 1);
    assert_eq!(store.catalog_servers("a/b").await.unwrap().len(), 1);
    let old = store.catalog_servers("a/old").await.unwrap();
    let registries: Vec<&str> = old.iter().map(|it| it.registry.as_str()).collect();
    assert_eq!(registries, ["other"]);
}

async fn many_servers_are_kept_at_once(database: Database) {
    let store = database.open().await;
    let many = (0..500).map(|it| server(&format!("a/{it}"), "1.0.0"));
    store
        .save_catalog(&sync(1), many.collect(), &[])
        .await
        .unwrap();
    assert_eq!(store.catalog("official").await.unwrap().len(), 500);
    store.reset(false).await.unwrap();
    assert_eq!(store.catalog("official").await.unwrap(), []);
    assert_eq!(store.catalog_sync("official").await.unwrap(), None);
}
