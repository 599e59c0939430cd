//! The real binary as a subprocess, in each era; and the same stories over HTTP.

use crate::{
    bridge::TOKEN,
    client::{Client, Era, Profile, binary, soon},
    serving::Program,
};
use expect_test::expect;
use serde_json::{Value, json};
use std::{fs, net::TcpListener, path::Path};
use tempfile::TempDir;
use tokio::process::Command;

/// How a client reaches the binary.
#[derive(Clone, Copy)]
enum Transport {
    Pipe,
    Http,
}

/// A client of the real binary, which ends with it.
struct Connected {
    client: Client,
    transport: Transport,
    _folder: TempDir,
    _program: Option<Program>,
}

macro_rules! in_each_era_on_each_transport {
    ($($story:ident)*) => {
        in_each_era_on_each_transport! { pipe: Transport::Pipe, $($story)* }
        in_each_era_on_each_transport! { http: Transport::Http, $($story)* }
    };
    ($module:ident: $transport:expr, $($story:ident)*) => {
        mod $module {
            mod legacy_2025_03_26 {
                use super::super::{Era, Transport};
                $(#[tokio::test] async fn $story() { super::super::$story($transport, Era::Legacy("2025-03-26")).await; })*
            }
            mod legacy_2025_06_18 {
                use super::super::{Era, Transport};
                $(#[tokio::test] async fn $story() { super::super::$story($transport, Era::Legacy("2025-06-18")).await; })*
            }
            mod legacy_2025_11_25 {
                use super::super::{Era, Transport};
                $(#[tokio::test] async fn $story() { super::super::$story($transport, Era::Legacy("2025-11-25")).await; })*
            }
            mod modern {
                use super::super::{Era, Transport};
                $(#[tokio::test] async fn $story() { super::super::$story($transport, Era::Modern).await; })*
            }
        }
    };
}

in_each_era_on_each_transport! {
    a_conversation
    what_goes_wrong
    a_call_taken_back
}

async fn connect(transport: Transport, era: Era) -> Connected {
    connect_to(transport, era, "http://127.0.0.1:1").await
}

/// Connects to the binary, whose tool for the weather asks this address.
async fn connect_to(transport: Transport, era: Era, weather: &str) -> Connected {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let mut command = with_files(folder.path());
    command.env("OPEN_METEO_URL", weather);
    let (client, program) = match transport {
        Transport::Pipe => {
            let client = Client::pipe(command.arg("stdio"), Profile::of(era)).await;
            (client, None)
        }
        Transport::Http => {
            let program = Program::start(command.env("CLOPEN_MCP_TOKEN", TOKEN)).await;
            let client = Client::http(&program.url, crate::bridge::profile(era)).await;
            (client, Some(program))
        }
    };
    Connected {
        client,
        transport,
        _folder: folder,
        _program: program,
    }
}

impl Connected {
    /// Ends the conversation; what came over a pipe is looked at once more.
    async fn end(self) {
        if let Transport::Pipe = self.transport {
            let (status, _) = self.client.close_pipe().await;
            assert_eq!(status.code(), Some(0));
        }
    }
}

/// The binary with one file to count.
fn with_files(folder: &Path) -> Command {
    let files = folder.join("files");
    fs::create_dir(&files).expect("it can be made");
    fs::write(files.join("poem.txt"), "one\ntwo\nthree").expect("it can be written");
    let mut command = binary(folder);
    command.env("FILE_UTILS_ROOT", files);
    command
}

async fn a_conversation(transport: Transport, era: Era) {
    let connected = connect(transport, era).await;
    let client = &connected.client;
    let names = client.names("tools").await;
    expect![[r#"
        list_services
        call_service
        count_lines
        read_result
        get_temperature"#]]
    .assert_eq(&names.join("\n"));
    let arguments = json!({ "path": "poem.txt" });
    let counted = json!({ "bytes": 13, "lines": 3, "path": "poem.txt" });
    for spelling in [
        "count_lines",
        "mcp__clopen_mcp__count_lines",
        "clopen-mcp_count_lines",
    ] {
        let reply = client.call(spelling, arguments.clone()).await;
        let text: Value = serde_json::from_str(&reply.text()).expect("it is JSON");
        assert_eq!(text, counted);
        // Structured output came with the version after the first.
        if era != Era::Legacy("2025-03-26") {
            assert_eq!(reply.result()["structuredContent"], counted);
        }
    }
    assert_eq!(client.list("resources").await, json!([]));
    assert_eq!(client.list("resources/templates").await, json!([]));
    assert_eq!(client.list("prompts").await, json!([]));
    if !era.is_modern() {
        let pong = client.request("ping", Value::Null).await;
        assert_eq!(pong.result(), json!({}));
    }
    connected.end().await;
}

async fn what_goes_wrong(transport: Transport, era: Era) {
    let connected = connect(transport, era).await;
    let client = &connected.client;
    let mut said = Vec::new();
    for (tool, arguments) in [
        ("count_lines", json!({ "path": "prose.txt" })),
        ("count_lines", json!({ "file": "poem.txt" })),
        ("get_temperature", json!({ "latitude": 1, "longitude": 2 })),
    ] {
        said.push(client.call(tool, arguments).await.text());
    }
    expect![[r#"
        error: `prose.txt` can't be read: No such file or directory (os error 2)
        error: the arguments of `count_lines` are not valid, nothing was done:
        - there is no `file`; there is only `path`
        - `path` is required
        error: the weather server http://127.0.0.1:1 can't be reached: connection refused; try again in a minute"#]].assert_eq(&said.join("\n"));

    let unknown = client.call("count_words", json!({})).await;
    assert_eq!(unknown.error()["code"], -32602);
    let params = json!({ "uri": "file:///etc/passwd" });
    let missing = client.request("resources/read", params).await;
    let code = if era.is_modern() { -32602 } else { -32002 };
    assert_eq!(missing.error()["code"], code);
    let invented = client.request("tools/invent", json!({})).await;
    assert_eq!(invented.error()["code"], -32601);
    connected.end().await;
}

async fn a_call_taken_back(transport: Transport, era: Era) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = silent.local_addr().expect("it has an address");
    let connected = connect_to(transport, era, &format!("http://{address}")).await;
    let client = &connected.client;
    let place = json!({ "latitude": 1, "longitude": 2 });
    let call = client.start_call("get_temperature", place);
    let come = tokio::task::spawn_blocking(move || silent.accept());
    let (stream, _) = soon(come).await.expect("it returns").expect("it is called");
    call.cancel().await;
    // The tool that is stopped hangs up.
    let hung_up = tokio::task::spawn_blocking(move || {
        let mut stream = stream;
        std::io::copy(&mut stream, &mut std::io::sink())
    });
    // An abrupt end is one as well.
    drop(soon(hung_up).await.expect("it returns"));
    let reply = client
        .call("count_lines", json!({ "path": "poem.txt" }))
        .await;
    assert!(reply.text().contains("13"), "{}", reply.text());
    connected.end().await;
}

async fn pipe(era: Era, arguments: &[&str]) -> (Client, TempDir) {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let mut command = with_files(folder.path());
    let client = Client::pipe(command.arg("stdio").args(arguments), Profile::of(era)).await;
    (client, folder)
}

#[tokio::test]
async fn the_end_of_input_is_the_end() {
    for era in [Era::Legacy("2025-11-25"), Era::Modern] {
        let (client, _folder) = pipe(era, &[]).await;
        assert!(!client.names("tools").await.is_empty());
        let (status, stderr) = client.close_pipe().await;
        assert_eq!(status.code(), Some(0));
        assert!(!stderr.contains("error"), "{stderr}");
    }
}

#[tokio::test]
async fn a_client_that_says_nothing() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let output = with_files(folder.path())
        .arg("stdio")
        .stdin(std::process::Stdio::null())
        .output();
    let output = soon(output).await.expect("the binary starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

#[tokio::test]
async fn the_log_goes_to_standard_error() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let mut command = with_files(folder.path());
    command.arg("stdio").env("CLOPEN_MCP_LOG", "trace");
    let client = Client::pipe(&mut command, Profile::of(Era::Modern)).await;
    client
        .call("count_lines", json!({ "path": "poem.txt" }))
        .await;
    let (status, stderr) = client.close_pipe().await;
    assert_eq!(status.code(), Some(0));
    assert!(stderr.contains("done"), "{stderr}");
}

#[tokio::test]
async fn lines_that_are_no_message() {
    for era in [Era::Legacy("2025-11-25"), Era::Modern] {
        let (client, _folder) = pipe(era, &[]).await;
        for line in ["not JSON", "", "[]", "{}", r#"{"jsonrpc":"2.0"}"#] {
            client.write_line(line).await;
        }
        let reply = client
            .call("count_lines", json!({ "path": "poem.txt" }))
            .await;
        assert!(reply.text().contains("13"), "{}", reply.text());
        let (status, _) = client.close_pipe().await;
        assert_eq!(status.code(), Some(0));
    }
}

#[tokio::test]
async fn a_wrong_setting_is_told_on_standard_error() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let output = with_files(folder.path())
        .args(["stdio", "--listen", "nowhere"])
        .output()
        .await
        .expect("the binary starts");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    expect![[r#"
        error: `--listen`: expected an address with a port, such as `127.0.0.1:9151`, found `nowhere`
    "#]].assert_eq(&String::from_utf8_lossy(&output.stderr));
}
