//! An external server that is another one in each workspace.

use crate::{
    bridge::{Serving, profile},
    client::{Client, Era},
    endpoint::{Answer, Asked, Endpoint, session},
};
use clopen_mcp::{secret::Secret, upstream::Address};
use expect_test::expect;
use serde_json::json;
use std::collections::BTreeMap;

/// Lists a tool that is named after the workspace in its address, and answers with what a call brought.
async fn offices() -> Endpoint {
    Endpoint::serve(|asked: &Asked| {
        let workspace = asked.path.trim_start_matches("/of/").replace('/', "_");
        let header = asked.header("x-workspace").unwrap_or("none").to_owned();
        session(move |method, _| match method {
            "tools/list" => {
                Answer::result(&json!({ "tools": [{ "name": format!("{workspace}_desk") }] }))
            }
            _ => Answer::result(&json!({ "content": [
                { "type": "text", "text": format!("{workspace}, as {header}") },
            ] })),
        })(asked)
    })
    .await
}

async fn bridge(endpoint: &Endpoint) -> Serving {
    let base = endpoint.url.trim_end_matches("/mcp");
    let header = Secret::new("key-{workspaceCode}");
    let address = Address::Http {
        url: format!("{base}/of/{{workspaceCode}}"),
        headers: BTreeMap::from([("X-Workspace".to_owned(), header)]),
    };
    Serving::start_before("", &[("office", address, None)]).await
}

async fn client(bridge: &Serving, era: Era, query: &str) -> Client {
    Client::http(&format!("{}{query}", bridge.url()), profile(era)).await
}

async fn desks(client: &Client) -> Vec<String> {
    let names = client.names("tools").await;
    names.into_iter().filter(|it| it.contains("desk")).collect()
}

#[tokio::test]
async fn two_workspaces_see_two_catalogs() {
    let endpoint = offices().await;
    let bridge = bridge(&endpoint).await;
    for era in [Era::Legacy("2025-11-25"), Era::Modern] {
        for workspace in ["north", "south"] {
            let client = client(&bridge, era, &format!("?project={workspace}")).await;
            let desk = format!("{workspace}_desk");
            assert_eq!(desks(&client).await, [&*desk]);
            let reply = client.call(&desk, json!({})).await;
            assert_eq!(reply.text(), format!("{workspace}, as key-{workspace}"));
            let other = if workspace == "north" {
                "south_desk"
            } else {
                "north_desk"
            };
            let refused = client.call(other, json!({})).await;
            assert_eq!(refused.error()["code"], -32602);
        }
    }
    let lists = endpoint.asked();
    let lists: Vec<&Asked> = lists.iter().filter(|it| it.is("tools/list")).collect();
    assert_eq!(lists.len(), 2, "each is asked once");
}

#[tokio::test]
async fn who_names_no_workspace_hears_why_there_is_none() {
    let bridge = bridge(&offices().await).await;
    let client = client(&bridge, Era::Modern, "").await;
    assert!(desks(&client).await.is_empty());
    let listed = client.request("tools/list", json!({})).await;
    expect![[r#""it is another server in each project, and the caller names none: connect with a URL that ends in `?project=NAME`""#]]
        .assert_eq(&listed.result()["_meta"]["clopen-mcp/missing"]["office"].to_string());
}

#[tokio::test]
async fn no_name_of_a_workspace_leads_elsewhere() {
    let endpoint = offices().await;
    let bridge = bridge(&endpoint).await;
    let client = client(&bridge, Era::Modern, "?project=..%2Fadmin%3Fx%3D1").await;
    desks(&client).await;
    let asked = endpoint.asked();
    assert!(!asked.is_empty());
    for asked in asked {
        assert_eq!(asked.path, "/of/..%2Fadmin%3Fx%3D1");
    }
    let client = self::client(&bridge, Era::Modern, "?project=S%C3%BCd").await;
    let listed = client.request("tools/list", json!({})).await;
    expect![[r#""the workspace \"Süd\" can't stand in a header: name one of visible ASCII, by `?project=NAME`""#]]
        .assert_eq(&listed.result()["_meta"]["clopen-mcp/missing"]["office"].to_string());
}
