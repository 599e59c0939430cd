//! Keys in the store, on each database.

use crate::store::{Database, on_each_database};
use expect_test::expect;

on_each_database! {
    a_key_is_made_once
    the_first_of_many_bridges_makes_the_key
    a_damaged_key_is_not_replaced
}

async fn a_key_is_made_once(database: Database) {
    let store = database.open().await;
    let made = store.key("seal").await.unwrap();
    let other = store.key("cursor").await.unwrap();
    assert_ne!(made.expose(), other.expose());
    assert_ne!(made.expose(), &[0; 32]);
    assert_eq!(format!("{made:?}"), "Key(…)");
    store.close().await;

    let again = database.open().await.key("seal").await.unwrap();
    assert_eq!(made.expose(), again.expose());
}

async fn the_first_of_many_bridges_makes_the_key(database: Database) {
    let (one, other) = tokio::join!(database.open(), database.open());
    let made = futures_util::future::join_all((0..20).map(|number| {
        let store = if number % 2 == 0 { &one } else { &other };
        store.key("seal")
    }))
    .await;
    let first = made[0].as_ref().unwrap().expose();
    assert!(made.iter().all(|it| it.as_ref().unwrap().expose() == first));
}

async fn a_damaged_key_is_not_replaced(database: Database) {
    let store = database.open().await;
    database
        .execute("INSERT INTO keys (name, secret) VALUES ('seal', 'c2hvcnQ=')")
        .await;
    let error = store.key("seal").await.unwrap_err();
    expect!["the database's key `seal` is damaged: it is not 32 bytes in base64; restore the database from a backup"]
        .assert_eq(&error.to_string());
}
