//! What is wrong with an external server, and what to do.

use crate::{
    bridge::keep,
    endpoint::{Answer, Endpoint, connector, limits, serve_tools, session},
    sign_in::sign_ins_in,
};
use clopen_mcp::{
    config::SignIn,
    credentials::Vault,
    store::Store,
    upstream::{Address, ExternalError, Finding, Probe, Upstreams},
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::{net::TcpListener, time::Instant};

/// One external server, `odd`, in a database of its own.
struct Place {
    _folder: TempDir,
    store: Store,
    all: Upstreams,
}

impl Place {
    async fn of(address: Address) -> Self {
        let folder = TempDir::new().expect("the temporary folder can be written");
        keep(folder.path(), &[("odd", address, None)]).await;
        let store = Store::open(folder.path(), None).await.expect("it opens");
        let sign_ins = sign_ins_in(&store, folder.path(), SignIn::default());
        let all = Upstreams::new(
            store.clone(),
            connector(limits()),
            sign_ins,
            BTreeMap::new(),
        );
        let vault = Vault::open(folder.path()).expect("it opens");
        all.take(
            store.external_servers().await.expect("they are there"),
            &vault,
        );
        Self {
            _folder: folder,
            store,
            all,
        }
    }
}

fn http(url: &str) -> Address {
    Address::Http {
        url: url.to_owned(),
        headers: BTreeMap::new(),
    }
}

fn shell(script: &str) -> Address {
    program("/bin/sh", &["-c", script])
}

fn program(program: &str, arguments: &[&str]) -> Address {
    Address::Command {
        program: program.to_owned(),
        arguments: arguments.iter().map(|&it| it.to_owned()).collect(),
        environment: BTreeMap::new(),
        folder: None,
    }
}

/// Probes a server, and checks what is found; nothing is kept of it.
async fn check(address: Address, expected: Expect) -> Probe {
    let origin = match &address {
        Address::Http { url, .. } => url.trim_end_matches("/mcp").to_owned(),
        Address::Command { .. } => "no origin".to_owned(),
    };
    let place = Place::of(address).await;
    let started = Instant::now();
    let probe = place.all.probe("odd").await;
    // It promises 5 s; a busy machine gets more.
    assert!(started.elapsed() < Duration::from_secs(9));
    let found = format!("{:?} {}\n", probe.finding, probe.code);
    let evidence = probe.evidence.iter().map(|it| format!("{it}\n"));
    let next = probe.next.iter().map(|it| format!("to do: {it}\n"));
    let lines: String = [found].into_iter().chain(evidence).chain(next).collect();
    let mut lines = lines.replace(&origin, "http://HERE");
    // How much time is left for the last of several tries is no one's business.
    if let Some((before, after)) = lines.clone().split_once(" within 2.9") {
        let after = after.trim_start_matches(|it: char| it.is_ascii_digit());
        lines = format!("{before} within 3{after}");
    }
    expected.assert_eq(&lines);
    let servers = place.store.external_servers().await.expect("it is there");
    assert_eq!(servers[0].listed, None);
    assert_eq!(place.all.count("odd"), 0);
    place.all.close().await;
    probe
}

/// A server that answers everything so.
async fn answers(answer: fn() -> Answer) -> Address {
    let endpoint = Endpoint::serve(move |_| answer()).await;
    http(&endpoint.url)
}

#[tokio::test]
async fn one_that_works() {
    let tools = json!([{ "name": "a" }, { "name": "b" }]);
    let endpoint = serve_tools(tools, json!({})).await;
    check(
        http(&endpoint.url),
        expect![[r#"
        Ok ok
        `initialize` was answered by `fake` 1, which speaks 2025-06-18
        `tools/list` gave 2 tools
    "#]],
    )
    .await;
    assert_eq!(endpoint.count("tools/list"), 1);
    assert_eq!(endpoint.count("tools/call"), 0);
}

#[tokio::test]
async fn one_that_wants_somebody_to_sign_in() {
    let unauthorized = || {
        let challenge = "www-authenticate: Bearer resource_metadata=\"https://a.example/meta\"";
        Answer::new("401 Unauthorized", &[challenge], "")
    };
    check(answers(unauthorized).await, expect![[r#"
        NeedsAuth needs_sign_in
        server `odd` refuses `server/discover` with status 401; sign in with `clopen-mcp auth login odd`, or check the token that it is given
        its challenge: `Bearer resource_metadata="https://a.example/meta"`
        to do: sign in with `clopen-mcp auth login odd`, or give it a token (`--header 'Authorization: Bearer …'`): `clopen-mcp servers remove odd`, then `servers add odd` as it should be
    "#]]).await;
    let forbidden = || Answer::new("403 Forbidden", &[], "");
    check(answers(forbidden).await, expect![[r#"
        NeedsAuth needs_sign_in
        server `odd` refuses `server/discover` with status 403; sign in with `clopen-mcp auth login odd`, or check the token that it is given
        there is no challenge that says where to log in
        to do: sign in with more scopes (`clopen-mcp auth login odd --scope …`), or give it a token that may do this (`--header 'Authorization: Bearer …'`): `clopen-mcp servers remove odd`, then `servers add odd` as it should be
    "#]]).await;
}

#[tokio::test]
async fn one_whose_program_is_not_there() {
    check(program("/no/such/program", &[]), expect![[r#"
        NeedsConfiguration not_started
        could not start `/no/such/program` for server `odd`: there is no such file, or what its first line names is missing; check the path
        to do: install `/no/such/program`, or correct its path: `clopen-mcp servers remove odd`, then `servers add odd` as it should be
    "#]]).await;
}

#[tokio::test]
async fn one_that_lacks_a_variable() {
    let says = "echo 'Error: GITHUB_TOKEN environment variable is required' >&2; exit 1";
    check(shell(says), expect![[r#"
        NeedsConfiguration server_ended
        server `odd` ended with exit code 1, so `initialize` got no answer (its last words: `Error: GITHUB_TOKEN environment variable is required`); check its command and what its environment needs
        to do: give it the variable `GITHUB_TOKEN` (`--env GITHUB_TOKEN=…`): `clopen-mcp servers remove odd`, then `servers add odd` as it should be
    "#]]).await;
}

#[tokio::test]
async fn one_that_ends() {
    check(shell("echo oops >&2; exit 7"), expect![[r#"
        Error server_ended
        server `odd` ended with exit code 7, so `initialize` got no answer (its last words: `oops`); check its command and what its environment needs
        to do: run its command or open its URL by hand, and tell who maintains `odd` what came
    "#]]).await;
}

#[tokio::test]
async fn one_with_a_wrong_address() {
    check(http("ftp://a.example/mcp"), expect![[r#"
        NeedsConfiguration bad_address
        the address of server `odd` can't be used: `ftp` is not HTTP; the URL begins with `https://` or `http://`
        to do: correct its address: `clopen-mcp servers remove odd`, then `servers add odd` as it should be
    "#]]).await;
    let nothing = || Answer::new("404 Not Found", &[], "");
    check(answers(nothing).await, expect![[r#"
        NeedsConfiguration server_failed
        server `odd` answered `initialize` with status 404
        to do: nothing speaks MCP at this URL; correct its path (`/mcp` is usual): `clopen-mcp servers remove odd`, then `servers add odd` as it should be
    "#]]).await;
}

#[tokio::test]
async fn one_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it listens");
    drop(listener);
    check(http(&format!("http://{address}/mcp")), expect![[r#"
        Unreachable unreachable
        could not ask server `odd` at `http://HERE` for `server/discover`: connection refused; check that it runs and that its URL is right
        to do: see that it runs and that its URL is right, then check again
    "#]]).await;
}

#[tokio::test]
async fn one_that_hangs() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it listens");
    check(http(&format!("http://{address}/mcp")), expect![[r#"
        Unreachable timed_out
        server `odd` did not answer `initialize` within 3s; it may be overloaded, or need a longer limit
        to do: wait and check again: it may be overloaded, or a program that is fetched before its first start; a running bridge goes on trying
    "#]]).await;
    let list = session(|_, _| Answer::default().hanging());
    let endpoint = Endpoint::serve(list).await;
    check(http(&endpoint.url), expect![[r#"
        Unreachable timed_out
        `initialize` was answered by `fake` 1, which speaks 2025-06-18
        server `odd` did not answer `tools/list` within 5s; it may be overloaded, or need a longer limit
        to do: wait and check again: it may be overloaded, or a program that is fetched before its first start; a running bridge goes on trying
    "#]]).await;
}

#[tokio::test]
async fn one_that_is_a_web_page() {
    let page = || Answer::new("200 OK", &["content-type: text/html"], "<html>");
    check(answers(page).await, expect![[r#"
        Error not_mcp
        server `odd` answered `initialize` with a web page; check that it speaks MCP
        to do: see that its address or command is that of an MCP server: `clopen-mcp servers remove odd`, then `servers add odd` as it should be
    "#]]).await;
}

#[tokio::test]
async fn one_that_is_well_again_is_asked_again() {
    let works = Arc::new(AtomicBool::new(false));
    let is_up = works.clone();
    let answer = session(|_, _| Answer::result(&json!({ "tools": [{ "name": "a" }] })));
    let endpoint = Endpoint::serve(move |asked| {
        if is_up.load(Ordering::Relaxed) {
            answer(asked)
        } else {
            Answer::new("503 Service Unavailable", &[], "")
        }
    });
    let place = Place::of(http(&endpoint.await.url)).await;
    let failed = place.all.list("odd").await.expect_err("it is down");
    assert!(matches!(failed, ExternalError::Upstream(_)), "{failed}");
    // Each failure doubles how long it is left alone: nobody waits that long here.
    let probe = place.all.probe("odd").await;
    assert_eq!(
        (probe.finding, probe.code),
        (Finding::Unreachable, "server_failed")
    );
    works.store(true, Ordering::Relaxed);
    assert_eq!(place.all.probe("odd").await.finding, Finding::Ok);
    place.all.list("odd").await.expect("it is asked");
    assert_eq!(place.all.count("odd"), 1);
    let nobody = place.all.probe("nobody").await;
    assert_eq!(nobody.code, "unknown_server");
    let shown = serde_json::to_value(&nobody).expect("it is JSON");
    assert_eq!(shown["finding"], Value::from("needs_configuration"));
}
