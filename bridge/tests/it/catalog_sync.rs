//! Bringing what a registry offers into the store, whatever the registry does meanwhile.

use crate::{
    endpoint::{Answer, Asked, Endpoint},
    store::chain,
};
use clopen_mcp::{
    catalog::{Client, Patience, Synced, sync},
    secret::Secret,
    store::Store,
};
use expect_test::{Expect, expect};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;

/// 2026-11-30T12:00:00Z.
const NOON: i64 = 1_796_040_000_000;

pub(crate) fn entry(name: &str, version: &str, status: &str) -> Value {
    json!({
        "server": {
            "name": name,
            "title": format!("Title of {name}"),
            "description": "What it is for.",
            "version": version,
            "remotes": [{ "type": "streamable-http", "url": "https://example.org/mcp" }],
        },
        "_meta": { "io.modelcontextprotocol.registry/official": {
            "status": status,
            "updatedAt": "2026-11-01T08:00:00.123456Z",
            "isLatest": true,
        }},
    })
}

fn active(name: &str) -> Value {
    entry(name, "1.0.0", "active")
}

/// Answers with the page that is asked for; `page-1` asks for the second.
pub(crate) fn page(asked: &Asked, pages: &[Vec<Value>]) -> Answer {
    let number = asked.path.split("cursor=page-").nth(1);
    let number = number.map_or(0, |it| it.split('&').next().unwrap().parse().unwrap());
    let next = (number + 1 < pages.len()).then(|| format!("page-{}", number + 1));
    let metadata = json!({ "nextCursor": next, "count": pages[number].len() });
    Answer::json(&json!({ "servers": pages[number], "metadata": metadata }).to_string())
}

fn is_list(asked: &Asked) -> bool {
    asked.path.starts_with("/v0.1/servers?")
}

struct Place {
    folder: TempDir,
    store: Store,
}

impl Place {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = Store::open(folder.path(), None).await.unwrap();
        Self { folder, store }
    }

    async fn tries(&self, client: &Client, is_full: bool) -> Result<Synced, String> {
        let synced = sync(client, &self.store, is_full, NOON, |_| ()).await;
        synced.map_err(|error| chain(&error))
    }

    async fn synced(&self, client: &Client) -> Synced {
        self.tries(client, false).await.unwrap()
    }

    /// The names that are kept, with what is not `active`.
    async fn names(&self) -> String {
        assert!(self.folder.path().exists());
        let mut names: Vec<String> = Vec::new();
        for it in self.store.catalog("official").await.unwrap() {
            let status = it.status.replace("active", "");
            names.push(
                format!("{} {} {status}", it.name, it.version)
                    .trim()
                    .to_owned(),
            );
        }
        names.sort();
        names.join(", ")
    }
}

pub(crate) fn client_of(url: &str, token: Option<&str>) -> Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let patience = Patience {
        tries: 3,
        pause: Duration::from_millis(1),
        answer: Duration::from_secs(10),
    };
    let token = token.map(Secret::new);
    Client::new("official", url, token.as_ref(), &tls, patience).unwrap()
}

fn client(endpoint: &Endpoint) -> Client {
    client_of(endpoint.url.trim_end_matches("/mcp"), None)
}

fn queries(endpoint: &Endpoint) -> String {
    let asked = endpoint.asked();
    let paths: Vec<&str> = asked.iter().map(|it| it.path.as_str()).collect();
    paths.join("\n")
}

fn pages(names: &[&[&str]]) -> Vec<Vec<Value>> {
    let page = |names: &&[&str]| names.iter().map(|it| active(it)).collect();
    names.iter().map(page).collect()
}

#[tokio::test]
async fn all_pages_are_kept_and_then_only_what_has_changed() {
    let first = pages(&[&["a/one", "a/two"], &["a/three"]]);
    let changes = vec![vec![
        entry("a/one", "2.0.0", "active"),
        entry("a/two", "1.0.0", "deleted"),
        entry("a/three", "1.0.0", "deprecated"),
        entry("a/four", "1.0.0", "active"),
    ]];
    let endpoint = Endpoint::serve(move |asked| {
        let is_change = asked.path.contains("updated_since");
        page(asked, if is_change { &changes } else { &first })
    })
    .await;
    let (place, client) = (Place::new().await, client(&endpoint));
    let synced = place.synced(&client).await;
    assert_eq!((synced.read, synced.kept, synced.skipped), (3, 3, 0));
    assert_eq!(
        place.names().await,
        "a/one 1.0.0, a/three 1.0.0, a/two 1.0.0"
    );
    let synced = place.synced(&client).await;
    assert!(synced.is_incremental);
    assert_eq!((synced.kept, synced.removed), (3, 1));
    assert_eq!(
        place.names().await,
        "a/four 1.0.0, a/one 2.0.0, a/three 1.0.0 deprecated"
    );
    expect![[r#"
        /v0.1/servers?limit=100&version=latest&include_deleted=true
        /v0.1/servers?limit=100&version=latest&include_deleted=true&cursor=page-1
        /v0.1/servers?limit=100&version=latest&include_deleted=true&updated_since=2026-11-01T07%3A50%3A00Z"#]]
    .assert_eq(&queries(&endpoint));
}

#[tokio::test]
async fn what_a_full_sync_does_not_see_is_forgotten() {
    let times = AtomicUsize::new(0);
    let endpoint = Endpoint::serve(move |asked| {
        let first: &[&str] = &["a/one", "a/two"];
        let is_first = times.fetch_add(1, Ordering::Relaxed) == 0;
        page(asked, &pages(&[if is_first { first } else { &["a/two"] }]))
    })
    .await;
    let (place, client) = (Place::new().await, client(&endpoint));
    place.synced(&client).await;
    let synced = place.tries(&client, true).await.unwrap();
    assert_eq!((synced.kept, synced.removed), (1, 1));
    assert!(!synced.is_incremental);
    assert_eq!(place.names().await, "a/two 1.0.0");
}

#[tokio::test]
async fn a_change_in_the_future_hides_no_later_one() {
    let mut future = active("a/one");
    future["_meta"]["io.modelcontextprotocol.registry/official"]["updatedAt"] =
        json!("2099-01-01T00:00:00Z");
    let pages = vec![vec![future]];
    let endpoint = Endpoint::serve(move |asked| page(asked, &pages)).await;
    let (place, client) = (Place::new().await, client(&endpoint));
    place.synced(&client).await;
    let sync = place.store.catalog_sync("official").await.unwrap().unwrap();
    assert_eq!(sync.synced_to.as_deref(), Some("2026-11-30T11:50:00Z"));
}

/// A sync that is cut at the third page; the second goes on there.
async fn goes_on(cut: fn() -> Answer, expected: Expect) {
    let is_cut = AtomicUsize::new(0);
    let all = pages(&[&["a/1"], &["a/2"], &["a/3"], &["a/4"]]);
    let endpoint = Endpoint::serve(move |asked| {
        let is_third = asked.path.contains("cursor=page-2");
        // As often as it is tried.
        if is_third && is_cut.fetch_add(1, Ordering::Relaxed) < 3 {
            return cut();
        }
        page(asked, &all)
    })
    .await;
    let (place, client) = (Place::new().await, client(&endpoint));
    let error = place.tries(&client, false).await.unwrap_err();
    let origin = endpoint.url.trim_end_matches("/mcp");
    expected.assert_eq(&error.replace(origin, "ORIGIN"));
    assert_eq!(place.names().await, "a/1 1.0.0, a/2 1.0.0");
    let asked = endpoint.asked().len();
    let synced = place.synced(&client).await;
    assert!(synced.is_resumed);
    assert_eq!(synced.read, 2);
    assert_eq!(endpoint.asked().len(), asked + 2);
    assert_eq!(
        place.names().await,
        "a/1 1.0.0, a/2 1.0.0, a/3 1.0.0, a/4 1.0.0"
    );
    let sync = place.store.catalog_sync("official").await.unwrap().unwrap();
    assert_eq!((sync.next_page, sync.synced_at), (None, Some(NOON)));
}

#[tokio::test]
async fn a_sync_that_is_cut_goes_on_where_it_was() {
    goes_on(
        Answer::default,
        expect!["the registry `official` can't be reached at `ORIGIN` (3 tries): connection closed before message completed"],
    )
    .await;
}

#[tokio::test]
async fn a_sync_that_is_refused_goes_on_where_it_was() {
    goes_on(
        || {
            Answer::new(
                "503 Service Unavailable",
                &[],
                r#"{"error":"try \u001b[31mlater"}"#,
            )
        },
        expect!["the registry `official` answers 503 Service Unavailable: try later"],
    )
    .await;
}

#[tokio::test]
async fn half_an_answer_is_none() {
    goes_on(
        || Answer::new("200 OK", &["content-length: 1000"], r#"{"servers": ["#),
        expect!["the registry `official` can't be reached at `ORIGIN` (3 tries): end of file before message length reached"],
    )
    .await;
}

#[tokio::test]
async fn a_page_that_a_registry_no_longer_knows_starts_it_over() {
    let times = AtomicUsize::new(0);
    let all = pages(&[&["a/1"], &["a/2"]]);
    let endpoint = Endpoint::serve(move |asked| {
        if asked.path.contains("cursor") && times.fetch_add(1, Ordering::Relaxed) < 4 {
            let is_known = times.load(Ordering::Relaxed) < 4;
            let status = if is_known {
                "500 Oh"
            } else {
                "400 Bad Request"
            };
            return Answer::new(status, &[], "{}");
        }
        page(asked, &all)
    })
    .await;
    let (place, client) = (Place::new().await, client(&endpoint));
    place.tries(&client, false).await.unwrap_err();
    let synced = place.synced(&client).await;
    assert_eq!((synced.read, synced.is_resumed), (2, false));
    assert_eq!(place.names().await, "a/1 1.0.0, a/2 1.0.0");
}

#[tokio::test]
async fn what_may_be_over_soon_is_asked_again() {
    let times = AtomicUsize::new(0);
    let all = pages(&[&["a/1"], &["a/2"], &["a/3"]]);
    let endpoint = Endpoint::serve(
        move |asked| match times.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => Answer::new("429 Too Many Requests", &["retry-after: 0"], "slowly"),
            1 => Answer::default(),
            _ => page(asked, &all),
        },
    )
    .await;
    let (place, client) = (Place::new().await, client(&endpoint));
    assert_eq!(place.synced(&client).await.read, 3);
}

#[tokio::test]
async fn a_circle_is_no_way() {
    let endpoint = Endpoint::serve(|asked| {
        let next = if asked.path.contains("cursor=b") {
            "a"
        } else {
            "b"
        };
        let servers = [active(&format!("a/{next}"))];
        Answer::json(&json!({ "servers": servers, "metadata": { "nextCursor": next } }).to_string())
    })
    .await;
    let (place, client) = (Place::new().await, client(&endpoint));
    let error = place.tries(&client, false).await.unwrap_err();
    expect!["the registry `official` sends back to a page that it gave before, after 3 pages"]
        .assert_eq(&error);
    assert_eq!(endpoint.asked().len(), 3);
    assert_eq!(place.names().await, "a/a 1.0.0, a/b 1.0.0");
}

#[tokio::test]
async fn one_bad_entry_hides_no_other() {
    let long = "x".repeat(300_000);
    let servers = vec![vec![
        active("a/1"),
        json!(null),
        json!("text"),
        json!({ "server": { "name": "no-slash", "version": "1.0.0" } }),
        json!({ "server": { "name": "a/\u{1b}[31mred", "version": "1.0.0" } }),
        json!({ "server": { "name": "-a/b", "version": "1.0.0" } }),
        json!({ "server": { "name": "a/versionless", "version": 7 } }),
        json!({ "server": { "name": "a/long", "version": "1.0.0", "description": long } }),
        json!({ "server": { "name": "a/packages", "version": "1.0.0", "packages": [{ "identifier": 1 }] } }),
        active("a/2"),
    ]];
    let endpoint = Endpoint::serve(move |asked| page(asked, &servers)).await;
    let (place, client) = (Place::new().await, client(&endpoint));
    let synced = place.synced(&client).await;
    assert_eq!((synced.read, synced.kept, synced.skipped), (10, 3, 7));
    expect![[r#"
        it can't be read: invalid type: null, expected a server at line 1 column 4
        it can't be read: invalid type: string "text", expected a server at line 1 column 6
        its name `no-slash` is none: one looks like `namespace/name`
        its name `a/red` is none: one looks like `namespace/name`
        its name `-a/b` is none: one looks like `namespace/name`
        `a/versionless`: it can't be read: invalid type: integer `7`, expected a string at line 1 column 35
        it has 300063 bytes, more than 262144"#]]
    .assert_eq(&synced.reasons.join("\n"));
    assert_eq!(
        place.names().await,
        "a/1 1.0.0, a/2 1.0.0, a/packages 1.0.0"
    );
}

#[tokio::test]
async fn reg_187_older_shapes_are_read() {
    let snake = json!({
        "name": "io.github.example/snake",
        "description": "In the old spelling.",
        "status": "active",
        "version_detail": { "version": "1.0.2", "is_latest": true },
        "packages": [{
            "registry_type": "npm",
            "identifier": "@example/snake",
            "version": "1.0.2",
            "environment_variables": [{ "name": "KEY", "is_required": true, "is_secret": true }],
        }],
        "remotes": [{
            "transport_type": "sse",
            "url": "https://snake.example.org/sse",
            "headers": [{ "name": "X-Key", "is_required": true, "is_secret": true }],
        }],
    });
    let old =
        json!({ "name": "a/b", "version_detail": { "version": "1.0.0", "is_latest": false } });
    let body = json!({ "servers": [snake, old], "metadata": { "next_cursor": "" } }).to_string();
    let endpoint = Endpoint::serve(move |asked| {
        if is_list(asked) {
            return Answer::new("404 Not Found", &[], r#"{"error":"not found"}"#);
        }
        Answer::json(&body)
    })
    .await;
    let (place, client) = (Place::new().await, client(&endpoint));
    place.synced(&client).await;
    let kept = place.store.catalog("official").await.unwrap();
    let [kept] = &kept[..] else {
        panic!("{kept:?}")
    };
    assert_eq!((&*kept.version, &*kept.kinds), ("1.0.2", "npm remote"));
    assert!(kept.needs_key);
    assert!(endpoint.asked()[1].path.starts_with("/v0/servers?"));
}

#[tokio::test]
async fn reg_190_what_was_deleted_or_is_not_the_latest_is_hidden() {
    let mut older = active("a/older");
    older["_meta"]["io.modelcontextprotocol.registry/official"]["isLatest"] = json!(false);
    let servers = vec![vec![
        older,
        entry("a/gone", "1.0.0", "deleted"),
        active("a/b"),
        entry("a/b", "1.0.0", "deleted"),
        entry("a/old", "1.0.0", "deprecated"),
    ]];
    let endpoint = Endpoint::serve(move |asked| page(asked, &servers)).await;
    let (place, client) = (Place::new().await, client(&endpoint));
    place.synced(&client).await;
    assert_eq!(place.names().await, "a/old 1.0.0 deprecated");
}

#[tokio::test]
async fn reg_198_a_document_is_no_registry_but_can_be_read() {
    let body = json!([active("a/b")]).to_string();
    let endpoint = Endpoint::serve(move |asked| {
        if asked.path == "/apps.json" {
            Answer::json(&body)
        } else {
            Answer::new("404 Not Found", &[], "")
        }
    })
    .await;
    let base = endpoint.url.trim_end_matches("/mcp");
    let place = Place::new().await;
    let document = client_of(&format!("{base}/apps.json"), None);
    place.synced(&document).await;
    assert_eq!(place.names().await, "a/b 1.0.0");
    assert_eq!(queries(&endpoint), "/apps.json");
    let elsewhere = client_of(&format!("{base}/registry"), None);
    let error = place.tries(&elsewhere, false).await.unwrap_err();
    expect!["`ORIGIN/registry` is no registry: there is neither `/v0.1/servers` nor `/v0/servers`; correct `url` in `[registries.official]`"]
        .assert_eq(&error.replace(base, "ORIGIN"));
}

#[tokio::test]
async fn a_token_goes_to_its_registry_only() {
    let other = Endpoint::serve(|_| Answer::json(r#"{"servers":[]}"#)).await;
    let to = other.url.clone();
    let endpoint =
        Endpoint::serve(move |_| Answer::new("302 Found", &[&format!("location: {to}")], "")).await;
    let base = endpoint.url.trim_end_matches("/mcp");
    let client = client_of(base, Some("planted-secret"));
    let place = Place::new().await;
    let error = place.tries(&client, false).await.unwrap_err();
    expect!["the registry `official` has moved to `OTHER`; write that into `[registries.official]` if you trust it"]
        .assert_eq(&error.replace(&other.url, "OTHER"));
    let asked = &endpoint.asked()[0];
    assert_eq!(asked.header("authorization"), Some("Bearer planted-secret"));
    assert_eq!(other.asked().len(), 0);
    assert!(!format!("{client:?}").contains("planted-secret"));
}

#[tokio::test]
async fn one_who_is_not_let_in_is_told_where_the_token_goes() {
    let endpoint = Endpoint::serve(|_| Answer::new("401 Unauthorized", &[], "")).await;
    let (place, client) = (Place::new().await, client(&endpoint));
    let error = place.tries(&client, false).await.unwrap_err();
    expect!["the registry `official` answers 401 Unauthorized; give its `token` in the settings, or in the variable CLOPEN_MCP_REGISTRY_<NAME>_TOKEN"]
        .assert_eq(&error);
    assert_eq!(endpoint.asked().len(), 1);
}

#[tokio::test]
async fn versions_are_asked_for_by_name() {
    let endpoint = Endpoint::serve(|asked| match &*asked.path {
        "/v0.1/servers/a%2Fb/versions" => page(
            asked,
            &[vec![entry("a/b", "2.0.0", "active"), active("a/b")]],
        ),
        "/v0.1/servers/a%2Fb/versions/1.0.0%2B7" => {
            Answer::json(&entry("a/b", "1.0.0+7", "active").to_string())
        }
        _ => Answer::new("404 Not Found", &[], r#"{"error":"not found"}"#),
    })
    .await;
    let client = client(&endpoint);
    assert_eq!(client.versions("a/b").await.unwrap().unwrap().len(), 2);
    let entry = client.version("a/b", "1.0.0+7").await.unwrap().unwrap();
    assert_eq!(entry.record.version, "1.0.0+7");
    assert!(client.version("a/b", "3.0.0").await.unwrap().is_none());
}
