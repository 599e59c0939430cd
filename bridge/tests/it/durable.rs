//! What survives: sessions and tasks when a bridge is killed, and when several bridges share a database.

use crate::{
    bridge::{TOKEN, config, profile},
    client::{Client, Era, Events, PATIENCE, Profile, Reply, plain_http, soon},
    store::{Database, on_each_database},
};
use clopen_mcp::{
    Bridge, StartError,
    config::{Config, Flags, environment},
    store::{NewToken, Store},
};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tool_runtime::{Change, Changes, Client as Asked, Environment, ToolError, tool_server};

const LATEST_LEGACY: Era = Era::Legacy("2025-11-25");

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// After this time a bridge knows what another has done to a session. The bridge promises 2 s, and this is a busy machine.
const KNOWN: Duration = Duration::from_secs(6);

/// What the user answers.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Size {
    size: String,
}

/// A place where tests watch slow work, in whatever process it is done.
#[derive(Debug)]
pub(crate) struct Workshop {
    folder: PathBuf,
}

/// Works slowly.
#[tool_server(name = "workshop", version = "1.0.0", start)]
impl Workshop {
    /// Opens the place, where a test has named one.
    #[expect(clippy::unused_async, reason = "`start` is async")]
    pub(crate) async fn start(environment: &Environment) -> Result<Self, ToolError> {
        let folder = environment.required("WORKSHOP")?.into();
        Ok(Self { folder })
    }

    /// Measure a piece, which can be done twice.
    #[tool(read_only, task)]
    pub(crate) async fn measure(
        &self,
        /// The piece.
        piece: String,
    ) -> String {
        self.work(&piece).await;
        format!("measured {piece}")
    }

    /// Cut a piece, which can't be done twice.
    #[tool(task)]
    pub(crate) async fn cut(
        &self,
        /// The piece.
        piece: String,
    ) -> String {
        self.work(&piece).await;
        format!("cut {piece}")
    }

    /// Ask for a size.
    #[tool(task)]
    pub(crate) async fn order(&self, client: &Asked) -> Result<String, ToolError> {
        self.begin("order");
        let Size { size } = client.named("size").elicit("Which size?").await?;
        Ok(format!("ordered {size}"))
    }

    /// Say that something has changed.
    #[tool(read_only)]
    pub(crate) fn announce(
        &self,
        /// The resource; nothing is the list of tools.
        uri: Option<String>,
        changes: &Changes,
    ) -> &'static str {
        self.begin("announcing");
        changes.tell(uri.map_or(Change::Tools, Change::Resource));
        "announced"
    }
}

impl Workshop {
    /// Notes that work begins.
    fn begin(&self, piece: &str) {
        let begun = self.folder.join(format!("begun-{piece}"));
        let begun = fs::OpenOptions::new().append(true).create(true).open(begun);
        let mut begun = begun.expect("the folder can be written");
        begun.write_all(b"x").expect("the file can be written");
    }

    /// Works until the test lets it end.
    async fn work(&self, piece: &str) {
        self.begin(piece);
        let ends = ["end".to_owned(), format!("end-{piece}")];
        until(|| ends.iter().any(|it| self.folder.join(it).exists())).await;
    }
}

/// Looks until something is so.
async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        sleep(Duration::from_millis(20)).await;
    }
}

/// The folder of a story: the data folder, and where work is watched.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().expect("the temporary folder can be written");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// How often work on a piece has begun.
    fn begun(&self, piece: &str) -> usize {
        let file = self.path().join(format!("begun-{piece}"));
        fs::read(file).map_or(0, |it| it.len())
    }

    async fn until_begun(&self, pieces: &[String]) {
        soon(until(|| pieces.iter().all(|it| self.begun(it) > 0))).await;
    }

    /// Lets work on a piece end, or all of it.
    fn end(&self, piece: Option<&str>) {
        let file = piece.map_or("end".to_owned(), |it| format!("end-{it}"));
        fs::write(self.path().join(file), "").expect("it can be written");
    }

    async fn store(&self) -> Store {
        let store = Store::open(&self.path().join("data"), None).await;
        store.expect("it opens")
    }
}

/// A bridge in a process of its own: this binary once more.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    async fn start(place: &Place, listen: &str) -> Self {
        let this = std::env::current_exe().expect("it is there");
        let mut child = Command::new(this)
            .args(["durable::a_process_of_its_own", "--exact", "--nocapture"])
            .env_clear()
            .env("WORKSHOP", place.path())
            .env("CLOPEN_MCP_DATA", place.path().join("data"))
            .env("CLOPEN_MCP_LISTEN", listen)
            .env("CLOPEN_MCP_TOKEN", TOKEN)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let stdout = child.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(stdout).lines();
        let address = loop {
            let line = soon(lines.next_line()).await.expect("it is UTF-8");
            let line = line.expect("it listens before it ends");
            if let Some((_, address)) = line.split_once("listens on ") {
                break address.parse().expect("it is an address");
            }
        };
        Self { child, address }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Ends it with SIGKILL, which no process notices.
    async fn kill(mut self) {
        soon(self.child.kill()).await.expect("it can be killed");
    }

    /// The bytes of memory that it has at the moment.
    #[cfg(target_os = "linux")]
    fn memory(&self) -> usize {
        const PAGE: usize = 4096;

        let id = self.child.id().expect("it runs");
        let statm = fs::read_to_string(format!("/proc/{id}/statm")).expect("Linux has it");
        let resident = statm.split(' ').nth(1).expect("it has seven numbers");
        PAGE * resident.parse::<usize>().expect("it is a number")
    }
}

/// Serves, where one of these tests has started this binary to have a bridge that can be killed.
#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::print_stdout,
    reason = "whoever started it reads the address there"
)]
async fn a_process_of_its_own() {
    let variables = environment();
    let Some(folder) = variables.get("WORKSHOP") else {
        return;
    };
    let config = Config::load(&Flags::default(), &variables, Path::new(folder));
    let bridge = Bridge::start(&config.expect("it is right"), &variables).await;
    let bridge = bridge.expect("it starts");
    println!("listens on {}", bridge.address);
    let served = bridge.serve(CancellationToken::new()).await;
    served.expect("it is killed before");
}

/// A bridge in this process.
struct Here {
    address: SocketAddr,
    stop: CancellationToken,
    served: JoinHandle<Result<(), StartError>>,
}

impl Here {
    async fn start(config: &Config, place: &Place) -> Self {
        let place = place.path().to_str().expect("it is UTF-8").to_owned();
        let variables = BTreeMap::from([("WORKSHOP".to_owned(), place)]);
        let bridge = Bridge::start(config, &variables).await.expect("it starts");
        let (address, stop) = (bridge.address, CancellationToken::new());
        let served = tokio::spawn(bridge.serve(stop.clone()));
        Self {
            address,
            stop,
            served,
        }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    async fn stopped(self) {
        self.stop.cancel();
        let served = soon(self.served).await.expect("it doesn't panic");
        served.expect("it ends well");
    }
}

/// Two bridges on one database.
async fn two(database: &Database) -> (Here, Here, Place) {
    let place = Place::new();
    let mut config = config(place.path(), "drain = \"100ms\"");
    config.data = database.folder.path().to_owned();
    config.database_url.clone_from(&database.url);
    let one = Here::start(&config, &place).await;
    let other = Here::start(&config, &place).await;
    (one, other, place)
}

/// A client that can have tasks and answer with forms.
fn with_tasks() -> Profile {
    Profile {
        capabilities: json!({ "extensions": { TASKS: {} }, "elicitation": {} }),
        ..profile(Era::Modern)
    }
}

async fn start_task(client: &Client, tool: &str, arguments: Value) -> String {
    let reply = client.call(tool, arguments).await;
    let result = &reply.message["result"];
    assert_eq!(result["resultType"], "task", "{}", reply.message);
    let id = result["taskId"].as_str().expect("it has an id");
    id.to_owned()
}

async fn task(client: &Client, id: &str) -> Value {
    let reply = client.request("tasks/get", json!({ "taskId": id })).await;
    reply.result()
}

/// Looks at a task until it has some status.
async fn until_task(client: &Client, id: &str, status: &str) -> Value {
    let looking = async {
        loop {
            let task = task(client, id).await;
            if task["status"] == status {
                return task;
            }
            assert!(
                ["working", "input_required"].contains(&task["status"].as_str().unwrap()),
                "{task}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    };
    soon(looking).await
}

async fn set_level(client: &Client, level: &str) {
    let reply = client.request("logging/setLevel", json!({ "level": level }));
    reply.await.result();
}

async fn subscribe(client: &Client, uri: &str) {
    let reply = client.request("resources/subscribe", json!({ "uri": uri }));
    reply.await.result();
}

/// The levels of the messages that a call logs.
async fn levels(client: &Client) -> Vec<Value> {
    let Reply { said, .. } = client.call("chatter", json!({})).await;
    let levels = said.iter().map(|it| it["params"]["level"].clone());
    levels.collect()
}

async fn heard(stream: &mut Events) -> Value {
    let message = soon(stream.next()).await.expect("the stream goes on");
    message["method"].clone()
}

/// Sends a message in a client's session, or another request about it; returns the status and the body.
async fn send(client: &Client, url: &str, method: reqwest::Method) -> (u16, String) {
    send_with(TOKEN, client, url, method).await
}

async fn send_with(
    token: &str,
    client: &Client,
    url: &str,
    method: reqwest::Method,
) -> (u16, String) {
    let session = client.session().expect("it has a session");
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let response = plain_http()
        .request(method, url)
        .bearer_auth(token)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", session)
        .json(&ping)
        .send()
        .await
        .expect("the bridge answers");
    let status = response.status().as_u16();
    (status, response.text().await.expect("it ends"))
}

const MOTTO: &str = "gallery://motto";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_a_kill() {
    const CLIENTS: usize = 200;
    const CALLS: usize = 40;
    const TASKS_OF_A_KIND: usize = 25;

    let is_quiet = |number: usize| number.is_multiple_of(2);
    let is_subscribed = |number: usize| number.is_multiple_of(3);

    let place = Place::new();
    let bridge = Process::start(&place, "127.0.0.1:0").await;
    let (address, url) = (bridge.address, bridge.url());
    let clients = (0..CLIENTS).map(async |number| {
        let client = Client::http(&url, profile(LATEST_LEGACY)).await;
        if is_quiet(number) {
            set_level(&client, "error").await;
        }
        if is_subscribed(number) {
            subscribe(&client, MOTTO).await;
        }
        client
    });
    let clients = join_all(clients).await;
    let mut pieces = Vec::new();
    let mut calls = Vec::new();
    for (number, client) in clients.iter().take(CALLS).enumerate() {
        let piece = format!("call-{number}");
        calls.push(client.start_call("cut", json!({ "piece": piece })));
        pieces.push(piece);
    }
    let worker = Client::http(&url, with_tasks()).await;
    let mut tasks = Vec::new();
    for number in 0..TASKS_OF_A_KIND {
        for tool in ["measure", "cut"] {
            let piece = format!("{tool}-{number}");
            let id = start_task(&worker, tool, json!({ "piece": piece })).await;
            pieces.push(piece.clone());
            tasks.push((tool, piece, id));
        }
    }
    place.until_begun(&pieces).await;

    bridge.kill().await;
    for call in calls {
        assert!(call.end().await.is_none(), "nobody is there to answer");
    }
    place.end(None);
    let killed_at = Instant::now();
    let bridge = Process::start(&place, &address.to_string()).await;

    for (_, _, id) in &tasks {
        task(&worker, id).await;
    }
    for (tool, piece, id) in &tasks {
        let again = *tool == "measure";
        let status = if again { "completed" } else { "failed" };
        let task = until_task(&worker, id, status).await;
        let words = if again {
            &task["result"]["content"][0]["text"]
        } else {
            &task["error"]["message"]
        };
        let expected = if again {
            format!("measured {piece}")
        } else {
            "the bridge was restarted while the tool ran, and running it again might do something twice; start it again if that is right".to_owned()
        };
        assert_eq!(*words, expected);
        assert_eq!(place.begun(piece), if again { 2 } else { 1 });
    }
    assert!(
        killed_at.elapsed() < Duration::from_secs(14),
        "a dead bridge's lease is not waited for"
    );

    let all = clients.iter().enumerate().map(async |(number, client)| {
        let all = ["debug", "info", "warning", "error"];
        let expected = if is_quiet(number) { &all[3..] } else { &all };
        assert_eq!(levels(client).await, expected);
        client.listen().await
    });
    let mut streams = join_all(all).await;
    clients[0].call("announce", json!({ "uri": MOTTO })).await;
    for (number, stream) in streams.iter_mut().enumerate() {
        if is_subscribed(number) {
            assert_eq!(heard(stream).await, "notifications/resources/updated");
        }
    }
    clients[0].call("announce", json!({})).await;
    for stream in &mut streams {
        assert_eq!(heard(stream).await, "notifications/tools/list_changed");
    }
    bridge.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_dead_bridge_loses_its_tasks() {
    let place = Place::new();
    let alive = Process::start(&place, "127.0.0.1:0").await;
    let dies = Process::start(&place, "127.0.0.1:0").await;
    let client = Client::http(&alive.url(), with_tasks()).await;
    let kept = start_task(&client, "cut", json!({ "piece": "kept" })).await;
    let elsewhere = client.at(&dies.url());
    let left = start_task(&elsewhere, "measure", json!({ "piece": "left" })).await;
    place
        .until_begun(&["kept".to_owned(), "left".to_owned()])
        .await;

    dies.kill().await;
    let next = Process::start(&place, "127.0.0.1:0").await;
    soon(until(|| place.begun("left") == 2)).await;
    place.end(Some("left"));
    let client = client.at(&next.url());
    let task = until_task(&client, &left, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "measured left");

    place.end(Some("kept"));
    let task = until_task(&client, &kept, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "cut kept");
    assert_eq!((place.begun("kept"), place.begun("left")), (1, 2));
    alive.kill().await;
    next.kill().await;
}

on_each_database! {
    a_session_is_one_at_both_bridges
    a_session_that_was_ended_elsewhere_is_gone
    what_two_bridges_change_at_once_all_counts
    a_task_is_one_at_both_bridges
    a_bridge_that_stops_leaves_its_tasks_to_the_other
    a_state_opens_at_the_other_bridge
}

async fn a_session_is_one_at_both_bridges(database: Database) {
    let (one, other, _place) = two(&database).await;
    let here = Client::http(&one.url(), profile(LATEST_LEGACY)).await;
    let there = here.at(&other.url());
    assert_eq!(levels(&there).await.len(), 4);
    let mut stream = here.listen().await;

    let changed_at = Instant::now();
    set_level(&here, "error").await;
    let seen = async { while levels(&there).await.len() > 1 {} };
    timeout(KNOWN, seen).await.expect("it is seen there");
    subscribe(&there, MOTTO).await;
    let told = async {
        loop {
            here.call("announce", json!({ "uri": MOTTO })).await;
            if let Ok(message) = timeout(Duration::from_millis(200), stream.next()).await {
                return message.expect("the stream goes on");
            }
        }
    };
    let told = timeout(KNOWN, told).await.expect("it is seen here");
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(levels(&here).await.len(), 1);
    assert!(changed_at.elapsed() < 2 * KNOWN);
    one.stopped().await;
    other.stopped().await;
}

async fn a_session_that_was_ended_elsewhere_is_gone(database: Database) {
    let (one, other, _place) = two(&database).await;
    let here = Client::http(&one.url(), profile(LATEST_LEGACY)).await;
    let there = here.at(&other.url());
    assert_eq!(levels(&there).await.len(), 4);
    let mut stream = there.listen().await;

    let (status, _) = send(&here, &one.url(), reqwest::Method::DELETE).await;
    assert_eq!(status, 204);
    let (status, _) = send(&here, &one.url(), reqwest::Method::POST).await;
    assert_eq!(status, 404);
    // The bridge looks after what has a stream by itself.
    let ended = timeout(KNOWN, stream.next()).await;
    assert_eq!(ended.expect("the stream ends"), None);
    let (status, body) = send(&here, &other.url(), reqwest::Method::POST).await;
    assert_eq!(status, 404);
    assert!(
        body.contains("there is no such session any more; send `initialize` again"),
        "{body}"
    );
    let reply = there.request("logging/setLevel", json!({ "level": "info" }));
    assert_eq!(reply.await.status, 404, "a change doesn't bring it back");
    one.stopped().await;
    other.stopped().await;
}

async fn what_two_bridges_change_at_once_all_counts(database: Database) {
    let (one, other, place) = two(&database).await;
    let here = Client::http(&one.url(), profile(LATEST_LEGACY)).await;
    let there = here.at(&other.url());
    let rooms: Vec<String> = (0..10).map(|it| format!("gallery://rooms/{it}")).collect();
    let all = rooms.iter().enumerate().map(async |(number, uri)| {
        let client = if number < 5 { &here } else { &there };
        subscribe(client, uri).await;
    });
    join_all(all).await;
    one.stopped().await;
    other.stopped().await;
    let store = database.open().await;
    let session = here.session().expect("it has one");
    let kept = store.find_session(&session).await.unwrap();
    let kept = kept.expect("it is there").subscriptions;
    assert_eq!(kept.into_iter().collect::<Vec<_>>(), rooms);
    drop(place);
}

async fn a_task_is_one_at_both_bridges(database: Database) {
    let (one, other, place) = two(&database).await;
    let here = Client::http(&one.url(), with_tasks()).await;
    let there = here.at(&other.url());

    let id = start_task(&here, "order", json!({})).await;
    let asks = until_task(&there, &id, "input_required").await;
    assert_eq!(
        asks["inputRequests"]["size"]["params"]["message"],
        "Which size?"
    );
    let answer = json!({ "action": "accept", "content": { "size": "large" } });
    let params = json!({ "taskId": id, "inputResponses": { "size": answer } });
    there.request("tasks/update", params).await.result();
    let done = until_task(&there, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "ordered large");

    let id = start_task(&here, "cut", json!({ "piece": "unwanted" })).await;
    place.until_begun(&["unwanted".to_owned()]).await;
    let params = json!({ "taskId": id });
    there.request("tasks/cancel", params).await.result();
    until_task(&there, &id, "cancelled").await;
    assert_eq!(task(&here, &id).await["status"], "cancelled");
    one.stopped().await;
    other.stopped().await;
}

async fn a_bridge_that_stops_leaves_its_tasks_to_the_other(database: Database) {
    let (one, other, place) = two(&database).await;
    let here = Client::http(&one.url(), with_tasks()).await;
    let there = here.at(&other.url());
    let id = start_task(&here, "measure", json!({ "piece": "long" })).await;
    place.until_begun(&["long".to_owned()]).await;
    let stopped_at = Instant::now();
    one.stopped().await;
    soon(until(|| place.begun("long") == 2)).await;
    place.end(None);
    let done = until_task(&there, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "measured long");
    assert!(
        stopped_at.elapsed() < Duration::from_secs(14),
        "the lease of a bridge that has stopped is not waited for"
    );
    other.stopped().await;
}

async fn a_state_opens_at_the_other_bridge(database: Database) {
    let (one, other, _place) = two(&database).await;
    let profile = Profile {
        capabilities: json!({ "elicitation": {} }),
        ..profile(Era::Modern)
    };
    let here = Client::http(&one.url(), profile).await;
    let mut call = json!({ "name": "ask_user", "arguments": {} });
    let asked = here.request("tools/call", call.clone()).await.result();
    let requests = asked["inputRequests"].as_object().expect("it asks");
    let key = requests.keys().next().expect("it asks something");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    call["inputResponses"] = json!({ key: answer });
    call["requestState"] = asked["requestState"].clone();
    assert!(call["requestState"].is_string(), "{asked}");
    let there = here.at(&other.url());
    let reply = there.request("tools/call", call).await;
    assert_eq!(reply.text(), "hello, Ada");
    one.stopped().await;
    other.stopped().await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_token_that_was_revoked_elsewhere_is_refused() {
    let database = Database::postgres().await;
    let (one, other, _place) = two(&database).await;
    let store = database.open().await;
    let new = NewToken {
        name: "ci".to_owned(),
        servers: None,
        read_only: false,
        project: None,
    };
    let (token, text) = store.create_token(new, 0).await.expect("it can be made");
    let profile = Profile {
        token: Some(text.expose().to_owned()),
        ..profile(LATEST_LEGACY)
    };
    let here = Client::http(&one.url(), profile).await;
    let there = here.at(&other.url());
    assert_eq!(levels(&there).await.len(), 4);
    store
        .revoke_token(&token.id, 1)
        .await
        .expect("it can be revoked");
    let refused = async {
        let (token, url, post) = (text.expose(), other.url(), reqwest::Method::POST);
        while send_with(token, &there, &url, post.clone()).await.0 != 401 {
            sleep(Duration::from_millis(200)).await;
        }
    };
    let refused = timeout(Duration::from_secs(11), refused).await;
    refused.expect("it is refused there");
    one.stopped().await;
    other.stopped().await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn news_of_one_bridge_is_heard_at_the_other() {
    let database = Database::postgres().await;
    let (one, other, _place) = two(&database).await;
    let here = Client::http(&one.url(), profile(LATEST_LEGACY)).await;
    let there = here.at(&other.url());
    let mut stream = here.listen().await;
    // Until the bridge has begun to hear, it may miss something.
    let told = async {
        loop {
            there.call("announce", json!({})).await;
            if let Ok(message) = timeout(Duration::from_millis(500), stream.next()).await {
                return message.expect("the stream goes on");
            }
        }
    };
    assert_eq!(
        soon(told).await["method"],
        "notifications/tools/list_changed"
    );
    one.stopped().await;
    other.stopped().await;
}

/// Each of 2,000 sessions may add 2 KiB to what the process has resident. Sessions before them fill what is filled once:
/// SQLite's page caches, the allocator's arenas, the connection's buffers.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_rest_costs_little() {
    const SESSIONS: usize = 2_000;
    const MOST: usize = 2 * 1024;

    let place = Place::new();
    let bridge = Process::start(&place, "127.0.0.1:0").await;
    let http = plain_http();
    let open = async |count: usize| {
        for _ in 0..count {
            let params = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "roots": { "listChanged": true }, "sampling": {}, "elicitation": {} },
                "clientInfo": { "name": "it", "version": "1" },
            });
            let initialize =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
            let response = http
                .post(bridge.url())
                .bearer_auth(TOKEN)
                .header("accept", "application/json")
                .json(&initialize)
                .send()
                .await
                .expect("the bridge answers");
            assert_eq!(response.status().as_u16(), 200);
            response.bytes().await.expect("it ends");
        }
    };
    open(SESSIONS).await;
    let before = bridge.memory();
    open(SESSIONS).await;
    let grown = bridge.memory().saturating_sub(before);
    assert!(
        grown <= SESSIONS * MOST,
        "a session costs {} bytes",
        grown / SESSIONS
    );
    bridge.kill().await;
}

#[tokio::test]
async fn too_many_requests_are_refused() {
    let place = Place::new();
    let mut config = config(place.path(), "drain = \"100ms\"");
    config.limits.requests = 2;
    let bridge = Here::start(&config, &place).await;
    let client = Client::http(&bridge.url(), profile(LATEST_LEGACY)).await;
    let mut calls = Vec::new();
    for piece in ["one", "two"] {
        calls.push(client.start_call("measure", json!({ "piece": piece })));
        place.until_begun(&[piece.to_owned()]).await;
    }
    let (status, body) = send(&client, &bridge.url(), reqwest::Method::POST).await;
    assert_eq!(status, 503);
    assert!(
        body.contains("too many requests are under way; try again in a moment"),
        "{body}"
    );
    place.end(None);
    for call in calls {
        call.reply().await;
    }
    let (status, _) = send(&client, &bridge.url(), reqwest::Method::POST).await;
    assert_eq!(status, 200);
    bridge.stopped().await;
}

#[tokio::test]
async fn a_call_whose_client_has_gone_still_counts() {
    let place = Place::new();
    let mut config = config(place.path(), "drain = \"100ms\"");
    config.limits.requests = 1;
    let bridge = Here::start(&config, &place).await;
    let client = Client::http(&bridge.url(), profile(LATEST_LEGACY)).await;
    let call = client.start_call("measure", json!({ "piece": "left" }));
    place.until_begun(&["left".to_owned()]).await;
    call.hang_up();
    for _ in 0..10 {
        let (status, _) = send(&client, &bridge.url(), reqwest::Method::POST).await;
        assert_eq!(status, 503);
    }
    place.end(None);
    let served = async {
        while send(&client, &bridge.url(), reqwest::Method::POST).await.0 != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    soon(served).await;
    bridge.stopped().await;
}

#[tokio::test]
async fn too_many_sessions_are_refused() {
    let place = Place::new();
    let mut config = config(place.path(), "drain = \"100ms\"");
    config.limits.sessions = 3;
    let bridge = Here::start(&config, &place).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(Client::http(&bridge.url(), profile(LATEST_LEGACY)).await);
    }
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let refused = clients[0].request("initialize", params).await;
    assert_eq!(refused.status, 503);
    assert_eq!(
        refused.error()["message"],
        "there are too many sessions; end some with DELETE, or wait until unused ones run out"
    );
    let (status, _) = send(&clients[1], &bridge.url(), reqwest::Method::DELETE).await;
    assert_eq!(status, 204);
    clients.push(Client::http(&bridge.url(), profile(LATEST_LEGACY)).await);
    bridge.stopped().await;

    // Those from before a restart count too, once the bridge has counted.
    let bridge = Here::start(&config, &place).await;
    let client = clients[0].at(&bridge.url());
    let full = async {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        while client.request("initialize", params.clone()).await.status != 503 {}
    };
    soon(full).await;
    bridge.stopped().await;
}

#[tokio::test]
async fn unused_sessions_are_forgotten() {
    let place = Place::new();
    let mut config = config(place.path(), "drain = \"100ms\"");
    config.limits.session_idle = Duration::from_millis(300);
    let bridge = Here::start(&config, &place).await;
    let unused = Client::http(&bridge.url(), profile(LATEST_LEGACY)).await;
    let busy = Client::http(&bridge.url(), profile(LATEST_LEGACY)).await;
    let call = busy.start_call("measure", json!({ "piece": "long" }));
    place.until_begun(&["long".to_owned()]).await;
    let store = place.store().await;
    let swept = async {
        while store.count_sessions().await.unwrap() > 1 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, swept).await.expect("one is forgotten");
    let (status, _) = send(&unused, &bridge.url(), reqwest::Method::POST).await;
    assert_eq!(status, 404);
    let (status, _) = send(&busy, &bridge.url(), reqwest::Method::POST).await;
    assert_eq!(status, 200);
    place.end(None);
    assert_eq!(call.reply().await.text(), "measured long");
    store.close().await;
    bridge.stopped().await;
}

#[tokio::test]
async fn ses_141_a_session_outlives_its_bridge() {
    let place = Place::new();
    let config = config(place.path(), "drain = \"100ms\"");
    let before = Here::start(&config, &place).await;
    let client = Client::http(&before.url(), profile(Era::Legacy("2025-11-25"))).await;
    before.stopped().await;
    let after = Here::start(&config, &place).await;
    let names = client.at(&after.url()).names("tools").await;
    assert!(!names.is_empty());
    after.stopped().await;
}
