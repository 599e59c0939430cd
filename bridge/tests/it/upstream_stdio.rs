//! Programs that misbehave, most of them in a few lines of shell.

use crate::endpoint::{connector, connector_in, legacy, limits};
use clopen_mcp::{
    secret::Secret,
    upstream::{Address, Client, Limits, UpstreamError},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

/// Greets as a server does, and reads what a client says then.
const GREET: &str = r#"
read -r line
printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"},"instructions":"Be kind."}}'
read -r line
"#;

fn shell(script: &str, environment: &[(&str, &str)]) -> Address {
    let environment = environment.iter();
    Address::Command {
        program: "/bin/sh".to_owned(),
        arguments: vec!["-c".to_owned(), script.to_owned(), "sh".to_owned()],
        environment: environment
            .map(|(name, value)| ((*name).to_owned(), Secret::new(*value)))
            .collect(),
        folder: None,
    }
}

async fn open(script: &str) -> Client {
    open_with(script, limits(), &[]).await
}

async fn open_with(script: &str, limits: Limits, environment: &[(&str, &str)]) -> Client {
    let address = shell(&format!("{GREET}{script}"), environment);
    let client = connector(limits).connect("fake", &address, &legacy()).await;
    client.expect("it connects")
}

async fn connect_error(script: &str, environment: &[(&str, &str)]) -> UpstreamError {
    let connector = connector(limits());
    let client = connector
        .connect("fake", &shell(script, environment), &legacy())
        .await;
    client.expect_err("it can't connect")
}

/// Waits until a program has written a file.
async fn written(path: &Path) -> String {
    for _ in 0..200 {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => sleep(Duration::from_millis(50)).await,
        }
    }
    panic!("nobody writes `{}`", path.display())
}

async fn is_gone(pid: &str) -> bool {
    for _ in 0..200 {
        let status = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // A zombie that nobody reaps, where the tests have no init, is gone.
        if status.map_or(true, |it| it.contains(") Z ")) {
            return true;
        }
        sleep(Duration::from_millis(50)).await;
    }
    false
}

#[tokio::test]
async fn a_server_says_what_it_is() {
    let client = open("cat > /dev/null").await;
    assert_eq!(client.server_info(), ("fake", "1"));
    assert_eq!(client.instructions(), Some("Be kind."));
    assert_eq!(client.protocol_version(), "2025-06-18");
    assert!(client.has_tools() && !client.declares("prompts") && !client.is_closed());
    client.close().await;
    assert!(client.is_closed());
    let error = client.request("tools/list", &json!({})).await;
    let error = error.expect_err("it is closed");
    assert!(matches!(error, UpstreamError::Closed { .. }), "{error}");
}

#[tokio::test]
async fn what_is_sent_is_json_rpc() {
    let script = r#"read -r line; printf '%s\n' "$line" >&2; printf '%s\n' "{\"id\":2,\"result\":$line}"; cat >/dev/null"#;
    let client = open(script).await;
    let sent = client.request("tools/call", &json!({ "name": "a" })).await;
    assert_eq!(
        sent.expect("it answers").get(),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}"#
    );
}

#[tokio::test]
async fn std_100_banners_are_skipped() {
    let script = r#"echo 'Server starting...'; echo '✓ ready'; echo; echo '{"level":"info"}'; echo '[1]'
read -r line; printf '%s\r\n' '{"jsonrpc":"2.0","id":"2","result":{"tools":[]}}'; cat >/dev/null"#;
    let client = open(script).await;
    let tools = client.request("tools/list", &json!({})).await;
    assert_eq!(tools.expect("it answers").get(), r#"{"tools":[]}"#);
}

#[tokio::test]
async fn std_101_an_end_is_told_to_all_who_wait() {
    let script = "read -r a; read -r b; read -r c; echo 'out of memory' >&2; exit 3";
    let client = open(script).await;
    let start = Instant::now();
    let nothing = json!({});
    let (a, b, c) = tokio::join!(
        client.request("tools/call", &nothing),
        client.request("tools/call", &nothing),
        client.request("tools/list", &nothing),
    );
    for answer in [a, b, c] {
        let error = answer.expect_err("it has ended");
        let UpstreamError::Ended { how, said, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(
            (how.as_str(), said.as_str()),
            ("ended with exit code 3", "out of memory")
        );
    }
    assert!(start.elapsed() < Duration::from_secs(5) && client.is_closed());
    let late = client.request("tools/list", &nothing).await;
    assert!(matches!(late, Err(UpstreamError::Ended { .. })));
    client.closed().await;
}

#[tokio::test]
async fn std_102_an_early_end_says_why() {
    let error = connect_error("echo 'Error: FIRECRAWL_API_KEY required' >&2; exit 1", &[]).await;
    assert_eq!(
        error.to_string(),
        "server `fake` ended with exit code 1, so `initialize` got no answer (its last words: `Error: \
         FIRECRAWL_API_KEY required`); check its command and what its environment needs"
    );
    let error = connect_error("echo 'usage: x'; kill -9 $$", &[]).await;
    assert!(
        error.to_string().contains("was ended by signal 9"),
        "{error}"
    );
    assert!(error.to_string().contains("usage: x"), "{error}");
}

#[tokio::test]
async fn std_103_a_missing_program_is_named() {
    let start = |program: &str, folder: Option<&str>| {
        let address = Address::Command {
            program: program.to_owned(),
            arguments: Vec::new(),
            environment: BTreeMap::from([("PATH".to_owned(), Secret::new("/bin:/nowhere"))]),
            folder: folder.map(Into::into),
        };
        async move {
            let client = connector(limits())
                .connect("fake", &address, &legacy())
                .await;
            client.expect_err("it can't start").to_string()
        }
    };
    assert_eq!(
        start("npxx", None).await,
        "could not start `npxx` for server `fake`: it is in no folder of `PATH`, which is `/bin:/nowhere`; install it, \
         or name it by its whole path"
    );
    assert!(
        start("/nowhere/npxx", None)
            .await
            .contains("check the path")
    );
    assert!(start("/etc/passwd", None).await.contains("permissions"));
    assert!(
        start("sh", Some("/nowhere"))
            .await
            .contains("its folder `/nowhere` is not there")
    );
    assert!(start("s\0h", None).await.contains("zero byte"));
}

#[tokio::test]
async fn std_113_a_program_is_found_where_a_login_shell_finds_it() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let path = |name: &str| folder.path().join(name);
    let script = |name: &str, text: String| {
        fs::write(path(name), format!("#!/bin/sh\n{text}")).expect("it can be written");
        fs::set_permissions(path(name), Permissions::from_mode(0o755)).expect("it is ours");
    };
    // It calls another program of its folder, as `npx` does.
    script("server", "exec runtime\n".to_owned());
    script("runtime", format!("{GREET}\ncat >/dev/null"));
    let there = folder.path().display();
    let shell = format!("echo Welcome!\nshift\nPATH=$PATH:'{there}' exec /bin/sh \"$@\"\n");
    script("shell", shell);
    let environment = [
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("SHELL".into(), path("shell").into_os_string()),
    ];
    let connector = connector_in(limits(), &environment);
    let start = async |program: &str| {
        let address = Address::Command {
            program: program.to_owned(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            folder: None,
        };
        connector.connect("fake", &address, &legacy()).await
    };
    start("server").await.expect("it is found");
    let error = start("nothing").await.expect_err("it is nowhere");
    let searched = format!("`PATH`, which is `/usr/bin:/bin:{there}`");
    assert!(error.to_string().contains(&searched), "{error}");
}

#[tokio::test]
async fn tim_234_a_call_that_is_never_answered_is_given_up_alone() {
    let limits = Limits {
        call: Duration::from_millis(300),
        ..limits()
    };
    let script = r#"read -r call; read -r cancel; read -r next; printf '{"id":3,"result":%s}\n' "$cancel"; cat >/dev/null"#;
    let client = open_with(script, limits, &[]).await;
    let error = client.request("tools/call", &()).await;
    let error = error.expect_err("nobody answers").to_string();
    assert!(
        error.contains("did not answer `tools/call` within 300ms"),
        "{error}"
    );
    let cancel = client.request("tools/call", &()).await;
    let cancel = cancel.expect("the connection is kept");
    assert!(cancel.get().contains(r#""requestId":2"#), "{cancel}");
}

#[tokio::test]
async fn tim_239_a_call_that_is_taken_back_harms_no_other() {
    let script = r#"read -r a; read -r b; read -r cancel
printf '{"id":3,"result":3}\n'; read -r c; printf '{"id":4,"result":4}\n'; cat >/dev/null"#;
    let client = open(script).await;
    let nothing = json!({});
    let taken_back = async {
        let call = client.request("tools/call", &nothing);
        timeout(Duration::from_millis(300), call).await
    };
    let (taken_back, other) = tokio::join!(taken_back, client.request("tools/call", &nothing));
    taken_back.expect_err("nobody answers");
    assert_eq!(other.expect("it answers").get(), "3");
    let later = client.request("tools/call", &nothing).await;
    assert_eq!(later.expect("it answers").get(), "4");
}

#[tokio::test]
async fn std_105_the_whole_tree_is_ended() {
    let folder = tempfile::tempdir().expect("there is room");
    let pids = folder.path().join("pids");
    let tree = format!(
        "trap '' TERM; sh -c 'trap \"\" TERM; while :; do sleep 1; done' & echo \"$! $$\" > '{}'; while :; do sleep 1; done",
        pids.display()
    );
    let client = open(&tree).await;
    let ids = written(&pids).await;
    client.close().await;
    for pid in ids.split_whitespace() {
        assert!(is_gone(pid).await, "{pid} lives");
    }
}

#[tokio::test]
async fn std_105_a_program_is_asked_to_end_before_it_is_killed() {
    let folder = tempfile::tempdir().expect("there is room");
    let [ready, asked] = ["ready", "asked"].map(|it| folder.path().join(it));
    let script = format!(
        "trap 'echo yes > \"{}\"; exit' TERM; echo yes > '{}'; while :; do sleep 0.1; done",
        asked.display(),
        ready.display()
    );
    let client = open(&script).await;
    written(&ready).await;
    client.close().await;
    assert_eq!(written(&asked).await, "yes\n");
}

#[tokio::test]
async fn std_105_what_a_dead_server_leaves_is_ended() {
    let folder = tempfile::tempdir().expect("there is room");
    let pids = folder.path().join("pids");
    // The grandchild holds the output open.
    let script = format!("sleep 600 & echo $! > '{}'; exit 0", pids.display());
    let client = open(&script).await;
    timeout(Duration::from_secs(5), client.closed())
        .await
        .expect("it notices");
    assert!(is_gone(&written(&pids).await).await);
}

#[tokio::test]
async fn std_106_a_dropped_client_ends_its_program() {
    let folder = tempfile::tempdir().expect("there is room");
    let pid = folder.path().join("pid");
    let client = open(&format!("echo $$ > '{}'; exec sleep 600", pid.display())).await;
    let clone = client.clone();
    let id = written(&pid).await;
    drop(client);
    assert!(!clone.is_closed());
    drop(clone);
    assert!(is_gone(&id).await);
}

#[test]
fn std_106_a_program_ends_with_the_runtime() {
    let folder = tempfile::tempdir().expect("there is room");
    let pid = folder.path().join("pid");
    let runtime = tokio::runtime::Runtime::new().expect("it runs");
    let script = format!(
        "trap '' TERM; echo $$ > '{}'; while :; do sleep 1; done",
        pid.display()
    );
    let (id, client) = runtime.block_on(async {
        let client = open(&script).await;
        (written(&pid).await, client)
    });
    drop(runtime);
    drop(client);
    let runtime = tokio::runtime::Runtime::new().expect("it runs");
    assert!(runtime.block_on(is_gone(&id)));
}

#[tokio::test]
async fn std_109_a_closed_input_is_an_end() {
    let client = open("exec 0<&-; sleep 600").await;
    let big = json!({ "text": "x".repeat(200_000) });
    let answer = client.request("tools/call", &big).await;
    let error = answer.expect_err("nobody reads").to_string();
    assert!(error.contains("closed its input"), "{error}");
}

#[tokio::test]
async fn std_115_last_answers_are_heard() {
    // It answers only once its input has ended.
    let folder = TempDir::new().expect("the temporary folder can be written");
    let file = folder.path().join("read");
    let script = r#"read -r a; read -r b; echo both >"$FILE"; cat >/dev/null
for id in 2 3; do printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' $id; done"#;
    let path = file.to_str().expect("it is UTF-8");
    let client = open_with(script, limits(), &[("FILE", path)]).await;
    let nothing = json!({});
    let (a, b, ()) = tokio::join!(
        client.request("tools/call", &nothing),
        client.request("tools/call", &nothing),
        async {
            written(&file).await;
            client.close().await;
        },
    );
    assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn std_115_an_answer_just_before_the_end_is_heard() {
    let script = r#"text=$(head -c 50000 /dev/zero | tr '\0' x); read -r a; read -r b
printf '{"id":2,"result":"%s"}\n{"id":3,"result":"%s"}\n' "$text" "$text"; echo bye >&2; exit 4"#;
    for _ in 0..10 {
        let client = open(script).await;
        let nothing = json!({});
        let (a, b, c) = tokio::join!(
            client.request("a", &nothing),
            client.request("b", &nothing),
            client.request("c", &nothing),
        );
        assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
        let error = c.expect_err("it has ended").to_string();
        assert!(
            error.contains("exit code 4") && error.contains("`bye`"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn std_116_requests_do_not_mix() {
    let script = r#"while read -r line; do
case $line in '{"jsonrpc":"2.0","id":'*'"}}') ;; *) exit 9 ;; esac
id=${line#*id\":}; id=${id%%,*}; printf '{"jsonrpc":"2.0","id":%s,"result":"%s"}\n' $id ${#line}
done"#;
    let client = open(script).await;
    let calls = (0..50).map(|n| {
        let client = client.clone();
        let text = "x".repeat(n * 100);
        tokio::spawn(async move {
            let params = json!({ "text": text });
            client.request("tools/call", &params).await
        })
    });
    for answer in futures_util::future::join_all(calls).await {
        answer.expect("it runs").expect("it answers");
    }
    let connecting = tokio::spawn(async { open(GREET).await.is_closed() });
    connecting.await.expect("it runs");
}

#[tokio::test]
async fn a_program_is_given_no_more_than_it_should_be() {
    let script = r#"read -r line; printf '{"id":2,"result":"%s"}\n' "$(env | sort | cut -d= -f1 | tr '\n' ' ')"; cat >/dev/null"#;
    let client = open_with(script, limits(), &[("TOKEN", "s3cr3t-word")]).await;
    let names = client.request("x", &()).await.expect("it answers");
    let names: Vec<&str> = names.get().trim_matches('"').split_whitespace().collect();
    let expected = ["HOME", "PATH", "PWD", "TOKEN"];
    let names = names
        .into_iter()
        .filter(|it| !matches!(*it, "_" | "SHLVL" | "OLDPWD"));
    assert_eq!(names.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn no_secret_is_in_an_error() {
    let script =
        r#"echo "bad key: $TOKEN ($(echo "$TOKEN" | cut -d' ' -f2)) on=$FLAG" >&2; exit 1"#;
    let environment = [("TOKEN", "Bearer s3cr3t-word"), ("FLAG", "1")];
    let error = connect_error(script, &environment).await;
    assert!(
        error.to_string().contains("`bad key: *** (***) on=1`"),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("s3cr3t"));
    let address = shell("x", &environment);
    let shown = format!("{address:?}");
    assert!(
        !shown.contains("s3cr3t") && shown.contains("TOKEN"),
        "{shown}"
    );

    let script = r#"read -r l; printf '{"id":2,"error":{"code":-1,"message":"no: %s"}}\n' "$TOKEN"; cat >/dev/null"#;
    let client = open_with(script, limits(), &environment).await;
    let error = client.request("x", &()).await.expect_err("it refuses");
    assert_eq!(
        error.to_string(),
        "server `fake` refused `x`: no: *** (code -1)"
    );
    assert!(!format!("{client:?}{error:?}").contains("s3cr3t"));
}

#[tokio::test]
async fn jso_094_a_dropped_request_is_cancelled() {
    let script = r#"read -r call; read -r cancel; read -r next
printf '{"id":2,"result":"late"}\n'; printf '%s\n' "{\"id\":3,\"result\":$cancel}"; cat >/dev/null"#;
    let client = open(script).await;
    let call = client.request("tools/call", &());
    let _ = timeout(Duration::from_millis(300), call)
        .await
        .expect_err("nobody answers");
    let cancel = client.request("x", &()).await.expect("it answers");
    assert!(
        cancel
            .get()
            .contains(r#""method":"notifications/cancelled""#),
        "{cancel}"
    );
    assert!(cancel.get().contains(r#""requestId":2"#), "{cancel}");
}

#[tokio::test]
async fn jso_096_requests_of_a_server_are_answered() {
    let script = r#"read -r call
ask() { printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":{}}\n' "$1" "$2"; read -r answer; all="$all$answer"; }
ask 2 ping; ask '"a"' roots/list; ask 0 sampling/createMessage
printf '%s\n' "{\"id\":2,\"result\":[$(printf '%s' "$all" | sed 's/}{/},{/g')]}"; cat >/dev/null"#;
    let client = open(script).await;
    let answers = client.request("x", &()).await.expect("it answers");
    assert_eq!(
        answers.get(),
        r#"[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"no call is under way that could answer this"}},{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no call is under way that could answer this"}}]"#
    );
}

#[tokio::test]
async fn changes_are_told() {
    let script = r#"printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'; cat >/dev/null"#;
    let client = open(script).await;
    let changed = timeout(Duration::from_secs(5), client.news()).await;
    changed.expect("it is told");
}

#[tokio::test]
async fn a_hanging_server_is_left() {
    let limits = Limits {
        call: Duration::from_millis(300),
        ..limits()
    };
    let client = open_with("echo busy >&2; cat >/dev/null", limits, &[]).await;
    let error = client
        .request("tools/call", &())
        .await
        .expect_err("it hangs");
    assert!(
        error
            .to_string()
            .contains("within 300ms (its last words: `busy`)"),
        "{error}"
    );
    // Neither does one hang that reads nothing at all.
    let client = open_with("exec sleep 600", limits, &[]).await;
    let big = json!({ "text": "x".repeat(500_000) });
    for _ in 0..3 {
        let answer = client.request("tools/call", &big).await;
        assert!(matches!(answer, Err(UpstreamError::TimedOut { .. })));
    }
    timeout(Duration::from_secs(8), client.close())
        .await
        .expect("it ends");
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused_alone() {
    let script = r#"read -r a; read -r b
printf '{"result":{"id":3,"x":"'; head -c 3000000 /dev/zero | tr '\0' x; printf '"},"id":2}\n'
printf '{"id":3,"result":1}\n'; cat >/dev/null"#;
    let client = open(script).await;
    let (large, small) = tokio::join!(client.request("a", &()), client.request("b", &()));
    assert!(matches!(
        large,
        Err(UpstreamError::TooLarge {
            limit: 1_048_576,
            ..
        })
    ));
    assert_eq!(small.expect("it is small").get(), "1");
}

#[tokio::test]
async fn floods_are_borne() {
    let script = r#"head -c 30000000 /dev/zero | tr '\0' x >&2; yes '{"jsonrpc":"2.0","id":1,"method":"ping"}' | head -n 20000
while read -r a; do case $a in *'"method":"a"'*) printf '{"id":2,"result":1}\n' ;; esac; done"#;
    let client = open(script).await;
    client.request("a", &()).await.expect("it answers");
}

mod odd {
    use super::*;

    async fn open(case: &str) -> Result<Client, UpstreamError> {
        let address = Address::Command {
            program: "python3".to_owned(),
            arguments: vec![
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/odd.py").to_owned(),
                case.to_owned(),
            ],
            environment: BTreeMap::new(),
            folder: Some("/".into()),
        };
        connector(limits())
            .connect("odd", &address, &legacy())
            .await
    }

    async fn ask(case: &str, method: &str) -> Result<String, UpstreamError> {
        let client = open(case).await.expect("it connects");
        let answer = client.request(method, &json!({ "name": "a" })).await;
        client.close().await;
        answer.map(|it| it.get().to_owned())
    }

    #[tokio::test]
    #[ignore = "needs python3"]
    async fn every_case_is_borne() {
        for case in [
            "banner",
            "oldproto",
            "id_string",
            "big_int",
            "content_null",
            "uni_name",
        ] {
            let tools = ask(case, "tools/list").await.expect("it lists");
            assert!(tools.contains("inputSchema"), "{case}: {tools}");
            let result = ask(case, "tools/call").await.expect("it answers");
            assert!(result.contains("content"), "{case}: {result}");
        }
        let result = ask("big_int", "tools/call").await.expect("it answers");
        assert!(result.contains("9007199254740993123"), "{result}");
    }

    #[tokio::test]
    #[ignore = "needs python3"]
    async fn jso_090_an_error_that_is_a_text() {
        let error = ask("err_string", "tools/list")
            .await
            .expect_err("it refuses");
        assert_eq!(
            error.to_string(),
            "server `odd` refused `tools/list`: boom (code -32603)"
        );
    }

    #[tokio::test]
    #[ignore = "needs python3"]
    async fn jso_098_an_old_version_is_spoken() {
        let client = open("oldproto").await.expect("it connects");
        assert_eq!(client.protocol_version(), "2024-10-07");
    }

    #[tokio::test]
    #[ignore = "needs python3"]
    async fn std_101_an_exit_during_a_call() {
        let error = ask("die_call", "tools/call").await.expect_err("it dies");
        assert!(
            error.to_string().contains("ended with exit code 3"),
            "{error}"
        );
        let error = ask("die_mid", "tools/list").await.expect_err("it dies");
        assert!(
            error.to_string().contains("ended with exit code 3"),
            "{error}"
        );
    }
}
