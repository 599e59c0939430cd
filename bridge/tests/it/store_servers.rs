//! Servers and switches in the store, on each database, and what a bridge makes of them.

use crate::{
    bridge::{Serving, config},
    client::{Era, soon},
    store::{Database, on_each_database},
};
use clopen_mcp::{
    Bridge,
    store::{MirroredServer, Store, StoredServer, Switch},
};
use serde_json::json;
use std::{collections::BTreeMap, slice};
use tempfile::TempDir;
use tool_runtime::ServerSelection;

on_each_database! {
    servers_are_mirrored
    servers_that_are_gone_stay_with_their_switches
    switches_are_kept
    many_bridges_mirror_at_once
}

fn server(name: &str, tools: &[&str]) -> MirroredServer {
    MirroredServer {
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        description: format!("What {name} is for."),
        tools: tools.iter().map(|&it| it.to_owned()).collect(),
    }
}

fn stored(server: MirroredServer, present: bool, mirrored_at: i64) -> StoredServer {
    StoredServer {
        server,
        present,
        mirrored_at,
    }
}

async fn servers_are_mirrored(database: Database) {
    let store = database.open().await;
    let (b, a) = (server("b", &["z", "a"]), server("a", &[]));
    store
        .mirror_servers(&[b.clone(), a.clone()], 1)
        .await
        .unwrap();
    assert_eq!(
        store.servers().await.unwrap(),
        [stored(a.clone(), true, 1), stored(b, true, 1)]
    );
    let newer = MirroredServer {
        version: "2.0.0".to_owned(),
        ..server("b", &["z"])
    };
    store
        .mirror_servers(&[a.clone(), newer.clone()], 2)
        .await
        .unwrap();
    assert_eq!(
        store.servers().await.unwrap(),
        [stored(a, true, 2), stored(newer, true, 2)]
    );
}

async fn servers_that_are_gone_stay_with_their_switches(database: Database) {
    let store = database.open().await;
    let (a, b) = (server("a", &["x"]), server("b", &[]));
    store
        .mirror_servers(&[a.clone(), b.clone()], 1)
        .await
        .unwrap();
    store.set_switch("b", None, false).await.unwrap();
    // The clock may have been put back.
    store.mirror_servers(slice::from_ref(&a), 0).await.unwrap();
    assert_eq!(
        store.servers().await.unwrap(),
        [stored(a.clone(), true, 0), stored(b.clone(), false, 1)]
    );
    assert_eq!(store.switches().await.unwrap().len(), 1);
    store.mirror_servers(&[a, b], 3).await.unwrap();
    assert!(store.servers().await.unwrap().iter().all(|it| it.present));
    assert_eq!(store.switches().await.unwrap().len(), 1);
}

async fn switches_are_kept(database: Database) {
    let store = database.open().await;
    store.set_switch("b", Some("x"), false).await.unwrap();
    store.set_switch("b", None, false).await.unwrap();
    store.set_switch("a", Some("x"), false).await.unwrap();
    store.set_switch("b", Some("x"), true).await.unwrap();
    store.close().await;
    let switch = |server: &str, tool: Option<&str>, enabled| Switch {
        server: server.to_owned(),
        tool: tool.map(str::to_owned),
        enabled,
    };
    assert_eq!(
        database.open().await.switches().await.unwrap(),
        [
            switch("a", Some("x"), false),
            switch("b", None, false),
            switch("b", Some("x"), true),
        ]
    );
}

async fn many_bridges_mirror_at_once(database: Database) {
    let (one, other) = tokio::join!(database.open(), database.open());
    let servers: Vec<MirroredServer> = (0..10)
        .map(|it| server(&format!("s{it}"), &["x"]))
        .collect();
    let backwards: Vec<MirroredServer> = servers.iter().rev().cloned().collect();
    let mirrored = futures_util::future::join_all((0..10).map(|number| {
        let (store, servers) = if number % 2 == 0 {
            (&one, &servers)
        } else {
            (&other, &backwards)
        };
        store.mirror_servers(servers, number)
    }));
    assert!(mirrored.await.into_iter().all(|it| it.is_ok()));
    let known = one.servers().await.unwrap();
    assert_eq!(known.len(), 10);
    assert!(known.iter().all(|it| it.present));
}

/// A bridge whose database had these switches when it started.
async fn bridge(settings: &str, switches: &[(&str, Option<&str>, bool)]) -> (Bridge, TempDir) {
    let folder = TempDir::new().unwrap();
    let config = config(folder.path(), settings);
    let store = Store::open(&config.data, None).await.unwrap();
    for (server, tool, enabled) in switches {
        store.set_switch(server, *tool, *enabled).await.unwrap();
    }
    store.close().await;
    let bridge = Bridge::start(&config, &BTreeMap::new()).await.unwrap();
    (bridge, folder)
}

fn selected(bridge: &Bridge, server: &str) -> ServerSelection {
    let view = bridge.dispatcher.view();
    view.server(server).expect("it is linked").1
}

#[tokio::test]
async fn a_bridge_mirrors_its_servers() {
    let (bridge, folder) = bridge("", &[]).await;
    let store = Store::open(&folder.path().join("data"), None)
        .await
        .unwrap();
    let servers = store.servers().await.unwrap();
    let linked: Vec<String> = bridge
        .dispatcher
        .view()
        .servers()
        .map(|it| it.name.clone())
        .collect();
    let mirrored: Vec<&str> = servers.iter().map(|it| it.server.name.as_str()).collect();
    assert_eq!(mirrored, linked);
    let gallery = servers
        .iter()
        .find(|it| it.server.name == "gallery")
        .unwrap();
    assert!(gallery.server.tools.contains(&"text".to_owned()));
    assert!(gallery.mirrored_at > 0);
}

#[tokio::test]
async fn what_is_switched_off_is_off() {
    let switches = [
        ("left-twin", None, false),
        ("gallery", Some("text"), false),
        ("gallery", Some("point"), false),
        ("gallery", Some("numbers"), true),
        ("gallery", Some("gone"), false),
        ("gone", None, false),
        ("gone", Some("text"), false),
    ];
    let (bridge, _folder) = bridge("", &switches).await;
    assert!(!selected(&bridge, "left-twin").enabled);
    let gallery = selected(&bridge, "gallery");
    assert!(gallery.enabled);
    // What isn't there is off as soon as it is.
    assert_eq!(Vec::from_iter(gallery.without), ["gone", "point", "text"]);
    assert!(selected(&bridge, "lab").without.is_empty());
}

#[tokio::test]
async fn a_server_and_a_tool_of_it_are_off() {
    let switches = [("gallery", None, false), ("gallery", Some("text"), false)];
    let (bridge, _folder) = bridge("", &switches).await;
    let gallery = selected(&bridge, "gallery");
    assert!(!gallery.enabled);
    assert_eq!(Vec::from_iter(gallery.without), ["text"]);
}

#[tokio::test]
async fn settings_win_over_switches() {
    let settings = r#"
        [servers.gallery]
        tools = ["text"]

        [servers.lab]
        without = ["fail"]

        [servers.right-twin]
        enabled = false
    "#;
    let switches = [
        ("gallery", None, false),
        ("gallery", Some("text"), false),
        ("lab", Some("fail"), true),
        ("lab", Some("crash"), false),
        ("right-twin", None, true),
    ];
    let (bridge, _folder) = bridge(settings, &switches).await;
    let gallery = selected(&bridge, "gallery");
    assert!(gallery.enabled);
    assert_eq!(gallery.only.map(Vec::from_iter).unwrap(), ["text"]);
    assert!(gallery.without.is_empty());
    assert_eq!(
        Vec::from_iter(selected(&bridge, "lab").without),
        ["crash", "fail"]
    );
    assert!(!selected(&bridge, "right-twin").enabled);
}

/// Switches a tool off and on again beside a bridge that runs; a client that listens hears of each, and lists anew.
async fn switched_while_it_runs(era: Era) {
    let bridge = Serving::start("").await;
    let client = bridge.client(era).await;
    let mut heard = if era.is_modern() {
        let asked = json!({ "toolsListChanged": true });
        client.subscribe(json!(1), asked).await
    } else {
        client.listen().await
    };
    let has_tool = async || {
        let names = client.names("tools").await;
        names.iter().any(|it| it == "fail")
    };
    assert!(has_tool().await);
    let store = Store::open(&bridge.folder.path().join("data"), None).await;
    let store = store.expect("it opens");
    for on in [false, true] {
        store
            .set_switch("lab", Some("fail"), on)
            .await
            .expect("it can be switched");
        let changed = async {
            loop {
                let message = heard.next().await.expect("the stream goes on");
                if message["method"] == "notifications/tools/list_changed" {
                    return;
                }
            }
        };
        soon(changed).await;
        assert_eq!(has_tool().await, on);
    }
}

#[tokio::test]
async fn a_session_hears_of_what_is_switched() {
    switched_while_it_runs(Era::Legacy("2025-11-25")).await;
}

#[tokio::test]
async fn who_listens_without_a_session_hears_of_what_is_switched() {
    switched_while_it_runs(Era::Modern).await;
}
