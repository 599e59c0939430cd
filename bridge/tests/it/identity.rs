//! Whose call is whose: when many call at once, by what an engine's own settings say, and not at all where the address
//! means nothing.

use crate::{
    bridge::{Serving, TOKEN, profile},
    client::{Client, Era, MODERN, Profile, plain_http},
};
use clopen_mcp::{
    engines::{self, Connection, ENGINES, Engine, Lifetime, Scope, Token, edit},
    secret::Secret,
};
use expect_test::expect;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError},
};
use tool_runtime::{Caller, NAMESPACE};
use tracing_subscriber::fmt::MakeWriter;

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Keeps what this thread logs.
    fn here() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(log.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// Counts the records of calls, by engine, project and session.
    fn records(&self) -> BTreeMap<[String; 3], usize> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let log = String::from_utf8_lossy(&log);
        let mut records = BTreeMap::new();
        for line in log.lines() {
            let record: Value = serde_json::from_str(line).expect("it is logged as JSON");
            let fields = &record["fields"];
            if fields["message"] == "done" {
                let who = ["engine", "project", "session"];
                let who = who.map(|it| fields[it].as_str().unwrap_or("?").to_owned());
                *records.entry(who).or_default() += 1;
            }
        }
        records
    }
}

/// Four conversations, of two engines in two projects, in both eras.
const CONVERSATIONS: [(&str, &str, &str, Era); 4] = [
    ("codex", "/home/ada/atlas", "one", Era::Legacy("2025-06-18")),
    ("claude", "/home/ada/atlas", "two", Era::Modern),
    ("codex", "/home/ada/beacon", "three", Era::Modern),
    (
        "claude",
        "/home/ada/beacon",
        "four",
        Era::Legacy("2025-11-25"),
    ),
];

/// How many calls each makes.
const CALLS: usize = 250;

/// Has all call at once; `query` says what an address holds.
async fn call(query: impl Fn(&str, &str, &str) -> String) -> BTreeMap<[String; 3], usize> {
    let (log, _logs) = Log::here();
    let bridge = Serving::start("").await;
    let mut clients = Vec::new();
    for (engine, project, session, era) in CONVERSATIONS {
        let stream = json!({ "engine": engine, "project": project, "session": session });
        let url = format!("http://{}/api/streams", bridge.address);
        let begun = plain_http().request(Method::POST, url).bearer_auth(TOKEN);
        begun
            .json(&stream)
            .send()
            .await
            .expect("the bridge answers");
        let url = format!("{}?{}", bridge.url(), query(engine, project, session));
        clients.push(Client::http(&url, profile(era)).await);
    }
    let calls = (0..CALLS).flat_map(|_| CONVERSATIONS.iter().zip(&clients));
    let calls = calls.map(|((engine, project, session, _), client)| async move {
        let seen: Value = serde_json::from_str(&client.call("who", json!({})).await.text())
            .expect("the tool answers in JSON");
        assert_eq!(seen["engine"], *engine);
        assert_eq!(seen["project"], *project);
        assert_eq!(seen["session"], *session);
    });
    join_all(calls).await;
    log.records()
}

fn expected() -> BTreeMap<[String; 3], usize> {
    let who = CONVERSATIONS.map(|(engine, project, session, _)| [engine, project, session]);
    let who = who.map(|it| it.map(str::to_owned));
    who.map(|it| (it, CALLS)).into()
}

#[tokio::test]
async fn ide_227_a_thousand_calls_that_name_their_conversation() {
    let records = call(|engine, project, session| {
        format!("engine={engine}&project={project}&session={session}")
    });
    assert_eq!(records.await, expected());
}

#[tokio::test]
async fn ide_227_a_thousand_calls_that_name_their_engine_and_project() {
    let records = call(|engine, project, _| format!("engine={engine}&project={project}"));
    assert_eq!(records.await, expected());
}

/// A project whose name must be written with care in an address.
const PROJECT: &str = "/home/ada/größe & more?engine=x#1";

fn connection(url: &str, token: Token) -> Connection {
    Connection {
        url: url.to_owned(),
        caller: Caller {
            project: PROJECT.to_owned(),
            session: "s-1".to_owned(),
            ..Caller::default()
        },
        token,
        external: Vec::new(),
        read_only_tools: vec!["get_temperature".to_owned()],
    }
}

/// The address that Codex reads in its file.
fn address_for_codex(url: &str, scope: Scope) -> String {
    let connection = connection(url, Token::Variable);
    let changes = engines::codex::ENGINE.changes(&connection, scope);
    let changes = changes.expect("Codex has such a file");
    let text = changes.iter().fold(String::new(), |text, change| {
        change.make(&text).expect("it can be made")
    });
    let file: toml::Table = text.parse().expect("it is TOML");
    let address = file["mcp_servers"][NAMESPACE]["url"].as_str();
    address.expect("there is one").to_owned()
}

#[tokio::test]
async fn ide_229_codex_says_no_project_but_its_file_does() {
    let (log, _logs) = Log::here();
    let bridge = Serving::start("").await;
    for (scope, project) in [(Scope::Project, PROJECT), (Scope::User, "")] {
        let address = address_for_codex(&bridge.url(), scope);
        for era in [Era::Legacy("2025-06-18"), Era::Modern] {
            let codex = Profile {
                name: "codex-mcp-client",
                ..profile(era)
            };
            let client = Client::http(&address, codex).await;
            let seen = client.call("who", json!({})).await.text();
            let seen: Value = serde_json::from_str(&seen).expect("the tool answers in JSON");
            assert_eq!(seen["engine"], "codex");
            assert_eq!(seen["project"], project);
            let reply = client.call("in_project", json!({})).await;
            let is_in_project = reply.text() == format!("in {project}");
            assert_eq!(is_in_project, scope == Scope::Project, "{}", reply.text());
        }
    }
    let records = log.records();
    let of = |project: &str| {
        let mut records = records.iter();
        let found = records.find(|(who, _)| who[0] == "codex" && who[1] == project);
        found.map(|(_, count)| *count)
    };
    assert_eq!(of(PROJECT), Some(4), "{records:?}");
}

/// Asks for all tools at an address, as clients of both eras begin. Returns what comes back.
async fn ask_for_tools(url: &str) -> Vec<(u16, String)> {
    let modern = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": { "name": "it", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let legacy = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "it", "version": "1" },
        },
    });
    let http = plain_http();
    let mut answers = Vec::new();
    for message in [modern, legacy] {
        let mut post = http
            .post(url)
            .bearer_auth(TOKEN)
            .header("accept", "application/json, text/event-stream");
        if message["method"] == "tools/list" {
            post = post
                .header("mcp-protocol-version", MODERN)
                .header("mcp-method", "tools/list");
        }
        let response = post.json(&message).send().await;
        let response = response.expect("the bridge answers");
        let status = response.status().as_u16();
        let body = response.text().await.expect("it ends");
        answers.push((status, body));
    }
    answers
}

#[tokio::test]
async fn ide_230_an_address_that_means_nothing_lists_no_tools() {
    let bridge = Serving::start("").await;
    let long = "a".repeat(201);
    let mut said = Vec::new();
    for (path, expected) in [
        ("/base/servers/ID/mcp", 404),
        ("/servers/ID/mcp", 404),
        ("/base/mcp", 404),
        ("/base/mcp?project=atlas", 404),
        ("/mcp/", 404),
        ("/mcp/servers/lab", 404),
        ("/mcp;project=atlas", 404),
        ("/mcp%2Flab", 404),
        ("/mcp%3Fproject=atlas", 404),
        ("/MCP", 404),
        ("//mcp", 404),
        ("/", 404),
        ("/mcp?project=atlas&project=beacon", 400),
        ("/mcp?engine=codex&project=atlas&engine=codex", 400),
        ("/mcp?project=at%00las", 400),
        ("/mcp?session=a%0Ab", 400),
        (&format!("/mcp?project={long}"), 400),
    ] {
        let url = format!("http://{}{path}", bridge.address);
        for (status, body) in ask_for_tools(&url).await {
            assert_eq!(status, expected, "{path}: {body}");
            for listed in ["inputSchema", "left-twin"] {
                assert!(!body.contains(listed), "{path}: {body}");
            }
            let answer: Value = serde_json::from_str(&body).unwrap_or_default();
            if let Some(words) = answer["error"]["message"].as_str() {
                said.push(format!("{path}: {words}\n").replace(&long, "aa…"));
            }
        }
    }
    expect![[r#"
        /mcp?project=atlas&project=beacon: the parameter `project` of the address is there twice; name it once
        /mcp?project=atlas&project=beacon: the parameter `project` of the address is there twice; name it once
        /mcp?engine=codex&project=atlas&engine=codex: the parameter `engine` of the address is there twice; name it once
        /mcp?engine=codex&project=atlas&engine=codex: the parameter `engine` of the address is there twice; name it once
        /mcp?project=at%00las: the parameter `project` of the address holds a control character; leave it out
        /mcp?project=at%00las: the parameter `project` of the address holds a control character; leave it out
        /mcp?session=a%0Ab: the parameter `session` of the address holds a control character; leave it out
        /mcp?session=a%0Ab: the parameter `session` of the address holds a control character; leave it out
        /mcp?project=aa…: the parameter `project` of the address is longer than 200 characters; shorten it
        /mcp?project=aa…: the parameter `project` of the address is longer than 200 characters; shorten it
    "#]].assert_eq(&said.concat());
    let url = format!("{}?project=atlas", bridge.url());
    for (status, body) in ask_for_tools(&url).await {
        assert_eq!(status, 200, "{body}");
        assert!(body.contains("left-twin"), "{body}");
    }
}

/// Such names would all be read as one, so that one project's calls were taken for another's.
#[tokio::test]
async fn ide_230_a_project_whose_name_can_not_be_read_lists_no_tools() {
    let bridge = Serving::start("").await;
    let url = format!("{}?project=%2Fhome%2Fada%2F%FF", bridge.url());
    for (status, body) in ask_for_tools(&url).await {
        assert_eq!(status, 400, "{body}");
    }
}

/// Where the list of servers stands that an engine connects to.
fn servers_of<'v>(engine: &Engine, file: &'v Value) -> &'v Value {
    let [edit::Step::Key(list), ..] = engine.entry_at else {
        panic!("the entry of {} is in no list", engine.id);
    };
    &file[list]
}

/// All texts and names in a value.
fn words_of(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|it| words_of(it, words)),
        Value::Object(members) => {
            for (name, value) in members {
                words.push(name.clone());
                words_of(value, words);
            }
        }
        _ => {}
    }
}

#[test]
fn eng_246_an_engine_knows_the_bridge_and_no_sign_in() {
    let url = "http://127.0.0.1:9151/mcp";
    let tokens = [
        Token::Unneeded,
        Token::Variable,
        Token::Written(Secret::new("the-token")),
    ];
    for engine in ENGINES {
        for token in &tokens {
            let files = engine.config(&connection(url, token.clone()));
            let files = files.expect("every change can be made to an empty file");
            let mut addresses = 0;
            for (index, file) in files.iter().enumerate() {
                let parsed = edit::parse(&file.text, file.format).expect("it can be read");
                if index == 0 {
                    let servers = match servers_of(engine, &parsed) {
                        Value::Object(servers) => servers.keys().map(String::as_str).collect(),
                        Value::Array(servers) => servers
                            .iter()
                            .map(|it| it["name"].as_str().unwrap_or("?"))
                            .collect(),
                        _ => Vec::new(),
                    };
                    assert_eq!(servers, [NAMESPACE], "{}", engine.id);
                }
                let mut words = Vec::new();
                words_of(&parsed, &mut words);
                for word in words {
                    if word.contains("://") {
                        assert!(word.starts_with(url), "{}: {word}", engine.id);
                        addresses += 1;
                    }
                    let small = word.to_lowercase();
                    let signs_in = ["oauth", "client_id", "clientid", "client_secret", "scopes"];
                    let signs_in = signs_in.iter().any(|it| small.contains(it));
                    // OpenCode signs in by itself unless it is told not to.
                    let is_refusal = engine.id == "opencode" && small == "oauth";
                    assert!(!signs_in || is_refusal, "{}: {word}", engine.id);
                }
                if engine.id == "opencode" {
                    assert_eq!(parsed["mcp"][NAMESPACE]["oauth"], false);
                }
            }
            assert_eq!(addresses, 1, "{}", engine.id);
        }
    }
}

#[test]
fn ide_229_every_engine_says_as_much_as_its_settings_live() {
    let url = "http://127.0.0.1:9151/mcp";
    let mut said = Vec::new();
    for engine in ENGINES {
        let files = engine.config(&connection(url, Token::Unneeded));
        let files = files.expect("every change can be made to an empty file");
        let parsed = edit::parse(&files[0].text, files[0].format).expect("it can be read");
        let mut words = Vec::new();
        words_of(&parsed, &mut words);
        let address = words.iter().find(|it| it.starts_with(url));
        let query = address.and_then(|it| it.split_once('?'));
        let (_, query) = query.expect("it has a query");
        let query: BTreeMap<_, _> = form_urlencoded::parse(query.as_bytes()).collect();
        assert_eq!(query["engine"], engine.id);
        let names: Vec<&str> = query.keys().map(AsRef::as_ref).collect();
        if engine.lifetime >= Lifetime::Project {
            assert_eq!(query["project"], PROJECT, "{}", engine.id);
        }
        said.push(format!("{}: {}\n", engine.id, names.join(", ")));
    }
    expect![[r#"
        claude: engine, project, session
        cline: engine
        codex: engine, project, session
        continue: engine, project, session
        copilot: engine, project, session
        cursor: engine, project
        gemini: engine, project
        goose: engine
        opencode: engine, project, session
        pi: engine, project
        qwen: engine, project
        vscode: engine, project
        windsurf: engine
        zed: engine, project
    "#]]
    .assert_eq(&said.concat());
}
