//! Signing in on the command line, and calls with what came of it.

use crate::{
    authorization::{Habits, Site, fields},
    bridge::{Serving, profile},
    cli::{Here, Said},
    client::{Client, Era, Profile, soon},
    connect::Home,
};
use clopen_mcp::store::NewToken;
use expect_test::{Expect, expect};
use serde_json::json;
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::sleep,
};

/// How a person comes back.
enum Way {
    /// The browser shows the page.
    Browser,
    /// They paste its address.
    Paste,
}

/// Signs in on the command line, as a person does who agrees. The address that was opened stands in for itself.
async fn login(here: &Here, site: &Site, line: &str, way: Way) -> (String, Said) {
    let arguments: Vec<&str> = line.split(' ').collect();
    let mut child = here
        .command(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut url = String::new();
    soon(lines.read_line(&mut url))
        .await
        .expect("it says where");
    if !url.is_empty() {
        let back = site.agree(url.trim());
        match way {
            Way::Browser => {
                let page = get(&back).await;
                assert!(page.contains("You are signed in to"), "{page}");
                assert!(page.contains("default-src 'none'"), "{page}");
            }
            Way::Paste => {
                let pasted = stdin.write_all(format!("{back}\n").as_bytes()).await;
                pasted.expect("it reads");
            }
        }
    }
    let mut stdout = String::new();
    soon(lines.read_to_string(&mut stdout))
        .await
        .expect("it is text");
    drop(stdin);
    let output = soon(child.wait_with_output()).await.expect("it ends");
    let said = Said {
        code: output.status.code(),
        stdout,
        stderr: here.plain(&output.stderr),
    };
    for secret in site.secrets() {
        assert!(!said.stderr.contains(&secret), "{}", said.stderr);
        assert!(!said.stdout.contains(&secret), "{}", said.stdout);
    }
    (url, said)
}

async fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("it is of this machine");
    let (host, path) = rest.split_once('/').expect("it has a path");
    let mut stream = TcpStream::connect(host).await.expect("something listens");
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it is taken");
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer))
        .await
        .expect("it is text");
    answer
}

/// A person who has added a server to which one signs in.
async fn with_server(habits: Habits) -> (Home, Site) {
    let site = Site::serve(habits).await;
    let mut home = Home::new();
    home.0 = home.0.with("CLOPEN_MCP_LISTEN", "127.0.0.1:0");
    let added = home
        .works(&format!("servers add fake --url {}", site.mcp()))
        .await;
    expect![[r#"
        `fake` is kept, but can't be used yet
        warning: server `fake` wants somebody to sign in: nobody has signed in to it; do so with `clopen-mcp auth login fake`
    "#]]
    .assert_eq(&format!("{}{}", added.stdout, added.stderr));
    (home, site)
}

async fn signs_in(home: &Home, site: &Site, line: &str, way: Way, expected: Expect) -> String {
    let (url, said) = login(&home.0, site, line, way).await;
    expected.assert_eq(&said.stdout);
    url
}

#[tokio::test]
async fn a_person_signs_in_calls_and_signs_out() {
    let (home, site) = with_server(Habits::default()).await;
    home.says(
        "auth status",
        0,
        expect![[r#"
        nobody has signed in to an external server; `clopen-mcp auth login SERVER` does
    "#]],
    )
    .await;
    signs_in(
        &home,
        &site,
        "auth login fake --no-browser",
        Way::Browser,
        expect![[r#"
        signed in to `fake`
        `fake` is there, with 1 tools
    "#]],
    )
    .await;
    home.says(
        "tools call fake_whoami {}",
        0,
        expect![[r#"
        scopes: 
    "#]],
    )
    .await;
    home.works("auth refresh fake").await;
    assert_eq!(site.inner().refreshed, 1);
    let status = home.works("auth status").await.stdout;
    let status = status.replace(&site.origin, "http://SITE");
    assert!(
        status.starts_with("fake                 default     signed in, renewed in 59m"),
        "{status}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&home.works("auth status --json").await.stdout).unwrap();
    assert_eq!(json["accounts"][0]["isSignedIn"], true);
    home.says(
        "auth logout fake",
        0,
        expect![[r#"
        signed out of `fake`
    "#]],
    )
    .await;
    assert_eq!(site.inner().revoked.len(), 2);
    home.says("tools call fake_whoami {}", 1, expect![[r#"
        server `fake` wants somebody to sign in: nobody has signed in to it; do so with `clopen-mcp auth login fake`
    "#]]).await;
    home.says(
        "auth logout fake",
        3,
        expect![[r#"
        error: nobody has signed in to `fake`; do so with `clopen-mcp auth login fake`
    "#]],
    )
    .await;
    home.says(
        "auth login nothing",
        3,
        expect![[r#"
        error: there is no external server `nothing`; there are `fake`
    "#]],
    )
    .await;
}

#[tokio::test]
async fn an_address_can_be_pasted_and_a_client_is_registered_once_more() {
    let (home, site) = with_server(Habits::default()).await;
    // Where the redirect is the same, so is the client.
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let line = format!("auth login fake --no-browser --listen 127.0.0.1:{port}");
    signs_in(
        &home,
        &site,
        &line,
        Way::Paste,
        expect![[r#"
        signed in to `fake`
        `fake` is there, with 1 tools
    "#]],
    )
    .await;
    site.forget_clients();
    let said = {
        let arguments: Vec<&str> = line.split(' ').collect();
        let mut child = home
            .0
            .command(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _stdin = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        for _ in 0..2 {
            let mut url = String::new();
            soon(lines.read_line(&mut url)).await.unwrap();
            get(&site.agree(url.trim())).await;
        }
        let mut rest = String::new();
        soon(lines.read_to_string(&mut rest)).await.unwrap();
        soon(child.wait()).await.unwrap();
        rest
    };
    assert_eq!(said, "signed in to `fake`\n`fake` is there, with 1 tools\n");
    assert_eq!(site.inner().registered, 2);
}

#[tokio::test]
async fn oau_173_a_new_token_that_is_refused_is_no_endless_loop() {
    let (home, site) = with_server(Habits {
        refuses_tokens: true,
        challenge: Some(r#"Bearer error="invalid_token""#.to_owned()),
        resource_paths: vec!["/.well-known/oauth-protected-resource"],
        ..Habits::default()
    })
    .await;
    let before = site.count("/mcp");
    let (_, said) = login(&home.0, &site, "auth login fake --no-browser", Way::Browser).await;
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.ends_with("warning: server `fake` wants somebody to sign in: it refuses the token that it is given with status 401, so the token may be for something else, or for too little; it says `Bearer error=\"invalid_token\"`; do so with `clopen-mcp auth login fake`\n"), "{}", said.stderr);
    assert_eq!(site.inner().refreshed, 1);
    assert!(site.count("/mcp") - before < 8);
}

#[tokio::test]
async fn oau_174_a_call_that_needs_more_says_so_and_the_next_sign_in_asks_for_it() {
    let (home, site) = with_server(Habits {
        resource: json!({ "scopes_supported": ["files:read"] }),
        tool_scope: Some("files:write"),
        ..Habits::default()
    })
    .await;
    let line = "auth login fake --no-browser";
    let there = "signed in to `fake`\n`fake` is there, with 1 tools\n";
    let (_, said) = login(&home.0, &site, line, Way::Browser).await;
    assert_eq!(said.stdout, there);
    home.says("tools call fake_whoami {}", 1, expect![[r#"
        server `fake` wants somebody to sign in: it wants the scopes `files:write` besides; do so with `clopen-mcp auth login fake`
    "#]]).await;
    let (url, said) = login(&home.0, &site, line, Way::Browser).await;
    assert_eq!(said.stdout, there);
    let query = url.trim().split_once('?').unwrap().1;
    assert_eq!(fields(query.as_bytes())["scope"], "files:read files:write");
    home.says(
        "tools call fake_whoami {}",
        0,
        expect![[r#"
        scopes: files:read files:write
    "#]],
    )
    .await;
}

/// A bridge that serves with a server to which nobody has signed in.
async fn served(site: &Site) -> (Serving, Home) {
    let bridge = Serving::start("").await;
    let data = bridge.folder.path().join("data").display().to_string();
    let mut home = Home::new();
    home.0 = home
        .0
        .with("CLOPEN_MCP_DATA", &data)
        .with("CLOPEN_MCP_LISTEN", &bridge.address.to_string());
    home.works(&format!("servers add fake --url {}", site.mcp()))
        .await;
    (bridge, home)
}

async fn until(client: &Client, name: &str) {
    let looking = async {
        while !client.names("tools").await.iter().any(|it| it == name) {
            sleep(Duration::from_millis(50)).await;
        }
    };
    soon(looking).await;
}

#[tokio::test]
async fn oau_182_who_has_to_sign_in_hides_no_other_and_comes_back() {
    let site = Site::serve(Habits::default()).await;
    let (bridge, home) = served(&site).await;
    let client = bridge.client(Era::Modern).await;
    let names = client.names("tools").await;
    assert!(names.iter().any(|it| it == "text"), "{names:?}");
    // The bridge itself is where people come back to.
    let (_, said) = login(&home.0, &site, "auth login fake --no-browser", Way::Browser).await;
    assert_eq!(
        said.stdout,
        "signed in to `fake`\n`fake` is there, with 1 tools\n"
    );
    until(&client, "whoami").await;
    assert_eq!(
        client.call("fake_whoami", json!({})).await.text(),
        "scopes: "
    );

    // A token that is not taken any more is renewed, and the call is made.
    site.expire();
    assert_eq!(
        client.call("fake_whoami", json!({})).await.text(),
        "scopes: "
    );
    assert_eq!(site.inner().refreshed, 1);

    // What one token is refused says nothing of the others.
    let ci = bridge
        .token(NewToken {
            name: "ci".to_owned(),
            ..NewToken::default()
        })
        .await;
    let of_ci = bridge
        .client_with(Profile {
            token: Some(ci),
            ..profile(Era::Modern)
        })
        .await;
    expect!["error: server `fake` wants somebody to sign in: nobody has signed in to it for the token `ci`; do so with `clopen-mcp auth login fake --token ci`"]
        .assert_eq(&of_ci.call("fake_whoami", json!({})).await.text());
    assert_eq!(
        client.call("fake_whoami", json!({})).await.text(),
        "scopes: "
    );
    let (_, said) = login(
        &home.0,
        &site,
        "auth login fake --no-browser --token ci",
        Way::Browser,
    )
    .await;
    assert_eq!(said.stdout, "signed in to `fake`\n");
    assert_eq!(
        of_ci.call("fake_whoami", json!({})).await.text(),
        "scopes: "
    );

    home.works("auth logout fake").await;
    let refused = soon(async {
        loop {
            let said = client.call("fake_whoami", json!({})).await.text();
            // A bridge looks now and then whether somebody has signed out elsewhere.
            if said.contains("nobody has signed in") {
                return said;
            }
            sleep(Duration::from_millis(50)).await;
        }
    });
    expect!["error: server `fake` wants somebody to sign in: nobody has signed in to it; do so with `clopen-mcp auth login fake`"]
        .assert_eq(&refused.await);
    assert_eq!(
        of_ci.call("fake_whoami", json!({})).await.text(),
        "scopes: "
    );
}

#[tokio::test]
async fn who_comes_back_without_having_begun_is_told_so() {
    let bridge = Serving::start("").await;
    let at = |path: &str| format!("http://{}{path}", bridge.address);
    let page = get(&at("/api/mcp/oauth/callback?code=a&state=%3Cb%3E")).await;
    assert!(page.starts_with("HTTP/1.1 400"), "{page}");
    assert!(page.contains("no sign-in is under way"), "{page}");
    let document = get(&at("/api/mcp/oauth/client.json")).await;
    assert!(document.starts_with("HTTP/1.1 404"), "{document}");
    let public = Serving::start("[sign_in]\npublic_url = \"https://bridge.example/\"\n").await;
    let document = get(&format!(
        "http://{}/api/mcp/oauth/client.json",
        public.address
    ))
    .await;
    assert!(
        document.contains(r#""client_id":"https://bridge.example/api/mcp/oauth/client.json""#),
        "{document}"
    );
}
