//! A client that speaks raw JSON-RPC, in both eras, over HTTP and over a pipe.
//!
//! It holds every answer to the rules of its era, so that each story checks them too.

use futures_util::StreamExt as _;
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, Command},
    sync::oneshot,
    task::JoinHandle,
};

/// More than anything here takes; a test that would hang fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for something that must come.
pub(crate) async fn soon<T>(event: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, event)
        .await
        .expect("it comes soon")
}

/// A version of the protocol, and with it the way to open a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// `initialize`, then a session.
    Legacy(&'static str),
    /// Every request says everything.
    Modern,
}

pub(crate) const MODERN: &str = "2026-07-28";

impl Era {
    pub(crate) fn is_modern(self) -> bool {
        self == Self::Modern
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Legacy(version) => version,
            Self::Modern => MODERN,
        }
    }
}

/// Who connects, and what it can be asked.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) era: Era,
    /// What the client calls itself.
    pub(crate) name: &'static str,
    pub(crate) token: Option<String>,
    pub(crate) capabilities: Value,
    /// The answers to questions, by method: a `result`.
    pub(crate) answers: HashMap<&'static str, Value>,
}

impl Profile {
    pub(crate) fn of(era: Era) -> Self {
        Self {
            era,
            name: "it",
            token: None,
            capabilities: json!({}),
            answers: HashMap::new(),
        }
    }
}

/// One client, which may be shared.
#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    profile: Profile,
    line: Line,
    next_id: AtomicU64,
    greeting: Mutex<Value>,
    /// What the server said besides answers and has not been read yet.
    said: Mutex<Vec<Value>>,
    asked: Mutex<Vec<Value>>,
}

enum Line {
    Http(Http),
    Pipe(Box<Pipe>),
}

struct Http {
    client: reqwest::Client,
    url: String,
    session: Mutex<Option<String>>,
}

struct Pipe {
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    /// Lines that are no message of the protocol.
    rubbish: Mutex<Vec<String>>,
    child: tokio::sync::Mutex<Child>,
    stderr: Mutex<Option<JoinHandle<String>>>,
}

/// The answer to one request.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The whole message.
    pub(crate) message: Value,
    /// The notifications that came before it.
    pub(crate) said: Vec<Value>,
    /// The status of HTTP; 200 over a pipe.
    pub(crate) status: u16,
}

impl Reply {
    /// The result in one order, without what only one era has and what goes without saying.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let mut result = self.message["result"].clone();
        result.sort_all_objects();
        let Value::Object(fields) = &mut result else {
            panic!("no result: {}", self.message);
        };
        for only_modern in ["resultType", "ttlMs", "cacheScope"] {
            fields.shift_remove(only_modern);
        }
        if fields.get("isError") == Some(&Value::Bool(false)) {
            fields.shift_remove("isError");
        }
        if let Some(Value::Object(meta)) = fields.get_mut("_meta") {
            meta.shift_remove("io.modelcontextprotocol/serverInfo");
            if meta.is_empty() {
                fields.shift_remove("_meta");
            }
        }
        result
    }

    #[track_caller]
    pub(crate) fn error(&self) -> &Value {
        let error = &self.message["error"];
        assert!(error.is_object(), "no error: {}", self.message);
        error
    }

    /// All text of a tool's result, behind `error: ` where it is one.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        let result = self.result();
        let blocks = result["content"].as_array().expect("it has content");
        let texts: Vec<&str> = blocks.iter().filter_map(|it| it["text"].as_str()).collect();
        let mark = if result["isError"] == true {
            "error: "
        } else {
            ""
        };
        format!("{mark}{}", texts.join("\n"))
    }
}

/// A request under way.
pub(crate) struct Running {
    pub(crate) id: u64,
    client: Client,
    reply: JoinHandle<Option<Reply>>,
}

impl Running {
    pub(crate) async fn reply(self) -> Reply {
        let reply = soon(self.reply).await.expect("the client doesn't panic");
        reply.expect("the server answers")
    }

    /// Waits for the end of the exchange; `None` where the connection broke before the answer.
    pub(crate) async fn end(self) -> Option<Reply> {
        soon(self.reply).await.expect("the client doesn't panic")
    }

    /// Takes the request back, as its era and transport do it; returns the answer, if one comes all the same.
    pub(crate) async fn cancel(self) -> Option<Reply> {
        if self.client.0.is_stateless() {
            self.reply.abort();
            return None;
        }
        let params = json!({ "requestId": self.id, "reason": "the user pressed Escape" });
        self.client.notify("notifications/cancelled", params).await;
        match self.client.0.line {
            // Over HTTP the stream ends, with an answer or without.
            Line::Http(_) => soon(self.reply).await.expect("the client doesn't panic"),
            Line::Pipe(_) => {
                self.reply.abort();
                None
            }
        }
    }

    /// Hangs up without a word.
    pub(crate) fn hang_up(self) {
        self.reply.abort();
    }
}

impl Client {
    /// Connects to `http://…/mcp`, perhaps with a query.
    pub(crate) async fn http(url: &str, profile: Profile) -> Self {
        let line = Line::Http(Http {
            client: plain_http(),
            url: url.to_owned(),
            session: Mutex::default(),
        });
        let client = Self::over(line, profile);
        client.greet().await;
        client
    }

    /// Starts a program and speaks with it over its standard input and output.
    pub(crate) async fn pipe(command: &mut Command, profile: Profile) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let stdout = child.stdout.take().expect("it is piped");
        let stderr = child.stderr.take().expect("it is piped");
        let line = Line::Pipe(Box::new(Pipe {
            stdin: tokio::sync::Mutex::new(child.stdin.take()),
            waiting: Mutex::default(),
            rubbish: Mutex::default(),
            child: tokio::sync::Mutex::new(child),
            stderr: Mutex::new(Some(tokio::spawn(read_all(stderr)))),
        }));
        let client = Self::over(line, profile);
        let reader = client.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                reader.hear_line(&line).await;
            }
            if let Line::Pipe(pipe) = &reader.0.line {
                pipe.waiting.lock().unwrap().clear();
            }
        });
        client.greet().await;
        client
    }

    fn over(line: Line, profile: Profile) -> Self {
        Self(Arc::new(Inner {
            profile,
            line,
            next_id: AtomicU64::new(1),
            greeting: Mutex::default(),
            said: Mutex::default(),
            asked: Mutex::default(),
        }))
    }

    /// The same client, with its session, at another address.
    pub(crate) fn at(&self, url: &str) -> Self {
        let line = Line::Http(Http {
            client: plain_http(),
            url: url.to_owned(),
            session: Mutex::new(self.session()),
        });
        Self::over(line, self.0.profile.clone())
    }

    async fn greet(&self) {
        let greeting = match self.era() {
            Era::Modern => self.request("server/discover", json!({})).await,
            Era::Legacy(version) => {
                let params = json!({
                    "protocolVersion": version,
                    "capabilities": self.0.profile.capabilities,
                    "clientInfo": { "name": self.0.profile.name, "version": "1" },
                });
                let greeting = self.request("initialize", params).await;
                assert_eq!(greeting.result()["protocolVersion"], version);
                self.notify("notifications/initialized", Value::Null).await;
                greeting
            }
        };
        *self.0.greeting.lock().unwrap() = greeting.result();
    }

    pub(crate) fn era(&self) -> Era {
        self.0.profile.era
    }

    /// What the server says about itself.
    pub(crate) fn greeting(&self) -> Value {
        self.0.greeting.lock().unwrap().clone()
    }

    /// The questions that the server has asked.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.0.asked.lock().unwrap().clone()
    }

    pub(crate) fn session(&self) -> Option<String> {
        match &self.0.line {
            Line::Http(http) => http.session.lock().unwrap().clone(),
            Line::Pipe(_) => None,
        }
    }

    /// Calls a tool, and answers what it asks. One that asks a third time gets no answer.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Reply {
        let mut call = call_of(tool, arguments);
        for round in 0.. {
            let reply = self.request("tools/call", call.clone()).await;
            let result = &reply.message["result"];
            if result["resultType"] != "input_required" || round == 2 {
                return reply;
            }
            let questions = result["inputRequests"].as_object();
            let questions = questions.expect("it asks something");
            let answers = questions.iter().map(|(key, question)| {
                self.0.asked.lock().unwrap().push(question.clone());
                let method = question["method"].as_str().expect("it is a question");
                let answer = self.0.profile.answers.get(method);
                let answer = answer.expect("only what the client can answer is asked");
                (key.clone(), answer.clone())
            });
            call["inputResponses"] = answers.collect();
            call["requestState"] = result["requestState"].clone();
        }
        unreachable!("the last round returns")
    }

    pub(crate) async fn list(&self, what: &str) -> Value {
        let method = format!("{what}/list");
        let reply = self.request(&method, json!({})).await;
        let key = method.split('/').rev().nth(1).expect("it has two parts");
        let key = if key == "templates" {
            "resourceTemplates"
        } else {
            key
        };
        reply.result()[key].clone()
    }

    /// The names in a list.
    pub(crate) async fn names(&self, what: &str) -> Vec<String> {
        let list = self.list(what).await;
        let list = list.as_array().expect("it is a list");
        list.iter()
            .map(|it| it["name"].as_str().expect("it has a name").to_owned())
            .collect()
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> Reply {
        self.start(method, params).reply().await
    }

    pub(crate) fn start_call(&self, tool: &str, arguments: Value) -> Running {
        self.start("tools/call", call_of(tool, arguments))
    }

    pub(crate) fn start(&self, method: &str, mut params: Value) -> Running {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        if self.era().is_modern() {
            self.0.state_everything(&mut params);
        }
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        let (client, method) = (self.clone(), method.to_owned());
        let reply = tokio::spawn(async move {
            let reply = client.exchange(id, message).await?;
            client.0.check(&method, &reply);
            Some(reply)
        });
        Running {
            id,
            client: self.clone(),
            reply,
        }
    }

    pub(crate) async fn notify(&self, method: &str, mut params: Value) {
        if self.era().is_modern() {
            self.0.state_everything(&mut params);
        }
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        self.tell(message).await;
    }

    /// Sends a message that has no answer.
    async fn tell(&self, message: Value) {
        match &self.0.line {
            Line::Http(http) => {
                let response = self.post(http, &message).await;
                let response = response.expect("the bridge answers");
                assert_eq!(response.status().as_u16(), 202, "{message}");
                let body = response.text().await.expect("it ends");
                assert_eq!(body, "", "{message}");
            }
            Line::Pipe(pipe) => pipe.write(&message).await,
        }
    }

    async fn exchange(&self, id: u64, message: Value) -> Option<Reply> {
        let (message, status) = match &self.0.line {
            Line::Http(http) => self.exchange_http(http, id, message).await?,
            Line::Pipe(pipe) => {
                let (sender, receiver) = oneshot::channel();
                pipe.waiting.lock().unwrap().insert(id, sender);
                pipe.write(&message).await;
                (receiver.await.ok()?, 200)
            }
        };
        let said = std::mem::take(&mut *self.0.said.lock().unwrap());
        Some(Reply {
            message,
            said,
            status,
        })
    }

    async fn exchange_http(&self, http: &Http, id: u64, message: Value) -> Option<(Value, u16)> {
        let response = self.post(http, &message).await.ok()?;
        let status = response.status().as_u16();
        let session = response.headers().get("mcp-session-id");
        let session = session.map(|it| it.to_str().expect("it is text").to_owned());
        if self.era().is_modern() {
            assert_eq!(session, None, "a stateless answer opens no session");
        } else if session.is_some() && message["method"] == "initialize" {
            *http.session.lock().unwrap() = session;
        }
        let kind = response.headers().get("content-type");
        let kind = kind.map_or("", |it| it.to_str().expect("it is text"));
        if !kind.starts_with("text/event-stream") {
            assert!(
                kind.starts_with("application/json"),
                "{status} {kind}: {message}"
            );
            let answer: Value = response.json().await.expect("it is JSON");
            assert_eq!(answer["id"], id, "{answer}");
            return Some((answer, status));
        }
        let mut events = Events::of(response);
        while let Some(event) = events.next().await {
            if event["id"] == id && event.get("method").is_none() {
                return Some((event, status));
            }
            self.hear(event).await;
        }
        None
    }

    async fn post(&self, http: &Http, message: &Value) -> reqwest::Result<reqwest::Response> {
        let mut post = http
            .client
            .post(&http.url)
            .header("accept", "application/json, text/event-stream");
        if let Some(token) = &self.0.profile.token {
            post = post.bearer_auth(token);
        }
        match self.era() {
            Era::Modern => {
                post = post.header("mcp-protocol-version", MODERN);
                if let Some(method) = message["method"].as_str() {
                    post = post.header("mcp-method", method);
                }
                let params = &message["params"];
                let named = ["name", "uri", "taskId"];
                if let Some(name) = named.iter().find_map(|it| params[*it].as_str()) {
                    post = post.header("mcp-name", name);
                }
            }
            Era::Legacy(version) => {
                let session = http.session.lock().unwrap().clone();
                if let Some(session) = session {
                    post = post.header("mcp-session-id", session);
                    // The header came with the version after the first.
                    if version != "2025-03-26" {
                        post = post.header("mcp-protocol-version", version);
                    }
                }
            }
        }
        post.json(message).send().await
    }

    /// Opens the stream of a legacy session; returns when it is open.
    pub(crate) async fn listen(&self) -> Events {
        let Line::Http(http) = &self.0.line else {
            panic!("a pipe is one stream");
        };
        let mut get = http
            .client
            .get(&http.url)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", self.session().expect("it has a session"));
        if let Some(token) = &self.0.profile.token {
            get = get.bearer_auth(token);
        }
        let response = get.send().await.expect("the bridge answers");
        assert_eq!(response.status().as_u16(), 200);
        Events::of(response)
    }

    /// Subscribes to changes, under an id of the test's own; returns when the stream is open.
    pub(crate) async fn subscribe(&self, id: Value, notifications: Value) -> Events {
        let Line::Http(http) = &self.0.line else {
            panic!("a pipe is one stream");
        };
        let mut params = json!({ "notifications": notifications });
        self.0.state_everything(&mut params);
        let message = json!({
            "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params,
        });
        let response = self.post(http, &message).await;
        let response = response.expect("the bridge answers");
        assert_eq!(response.status().as_u16(), 200);
        Events::of(response)
    }

    async fn hear_line(&self, line: &str) {
        let Line::Pipe(pipe) = &self.0.line else {
            return;
        };
        let Ok(message @ Value::Object(_)) = serde_json::from_str(line) else {
            pipe.rubbish.lock().unwrap().push(line.to_owned());
            return;
        };
        let answers = message["id"]
            .as_u64()
            .filter(|_| message.get("method").is_none());
        match answers {
            Some(id) => {
                let waiting = pipe.waiting.lock().unwrap().remove(&id);
                if let Some(waiting) = waiting {
                    drop(waiting.send(message));
                }
            }
            // An answer to what could not be read says so to nobody in particular.
            None if message.get("method").is_none() => assert!(message["error"].is_object()),
            None => self.hear(message).await,
        }
    }

    /// Takes what the server says by itself: a notification, or a question.
    async fn hear(&self, message: Value) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        let method = message["method"].as_str().expect("it is no answer");
        let Some(id) = message.get("id") else {
            self.0.said.lock().unwrap().push(message);
            return;
        };
        assert!(
            !self.era().is_modern(),
            "a modern client is not asked: {message}"
        );
        let mut answer = json!({ "jsonrpc": "2.0", "id": id });
        match self.0.profile.answers.get(method) {
            Some(result) => answer["result"] = result.clone(),
            None => answer["error"] = json!({ "code": -1, "message": "nobody is there to ask" }),
        }
        self.0.asked.lock().unwrap().push(message.clone());
        self.tell(answer).await;
    }

    /// Closes standard input and waits for the program's end; returns what it wrote to standard error.
    pub(crate) async fn close_pipe(&self) -> (ExitStatus, String) {
        let Line::Pipe(pipe) = &self.0.line else {
            panic!("it is no pipe");
        };
        pipe.stdin.lock().await.take();
        let status = soon(async { pipe.child.lock().await.wait().await });
        let status = status.await.expect("it ends");
        let stderr = pipe.stderr.lock().unwrap().take();
        let stderr = soon(stderr.expect("it is closed once")).await;
        assert_eq!(
            *pipe.rubbish.lock().unwrap(),
            Vec::<String>::new(),
            "standard output carries the protocol only"
        );
        (status, stderr.expect("it is read"))
    }

    /// Writes a line as it is.
    pub(crate) async fn write_line(&self, line: &str) {
        let Line::Pipe(pipe) = &self.0.line else {
            panic!("it is no pipe");
        };
        pipe.write_line(line).await;
    }
}

impl Pipe {
    async fn write(&self, message: &Value) {
        self.write_line(&message.to_string()).await;
    }

    async fn write_line(&self, line: &str) {
        let mut stdin = self.stdin.lock().await;
        let stdin = stdin.as_mut().expect("it is open");
        let line = format!("{line}\n");
        stdin
            .write_all(line.as_bytes())
            .await
            .expect("the program reads");
        stdin.flush().await.expect("the program reads");
    }
}

impl Inner {
    fn is_stateless(&self) -> bool {
        self.profile.era.is_modern() && matches!(self.line, Line::Http(_))
    }

    /// Puts into the parameters what a modern request says each time.
    fn state_everything(&self, params: &mut Value) {
        if params.is_null() {
            *params = json!({});
        }
        let ours = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": { "name": self.profile.name, "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": self.profile.capabilities,
        });
        let Value::Object(ours) = ours else {
            unreachable!("it was just made");
        };
        let meta = params["_meta"].as_object().cloned().unwrap_or_default();
        let all: Map<String, Value> = ours.into_iter().chain(meta).collect();
        params["_meta"] = all.into();
    }

    /// Holds an answer to the rules of the era.
    fn check(&self, method: &str, reply: &Reply) {
        let message = &reply.message;
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        assert_ne!(
            message.get("result").is_some(),
            message.get("error").is_some(),
            "{message}"
        );
        let result = &message["result"];
        if result.is_null() {
            assert!(message["error"]["code"].is_i64(), "{message}");
            assert!(message["error"]["message"].is_string(), "{message}");
            return;
        }
        assert_eq!(reply.status, 200, "{message}");
        if !self.profile.era.is_modern() {
            for only_modern in ["resultType", "ttlMs", "cacheScope"] {
                assert!(result.get(only_modern).is_none(), "{message}");
            }
            return;
        }
        let kind = result["resultType"].as_str();
        assert!(
            matches!(kind, Some("complete" | "input_required" | "task")),
            "{message}"
        );
        let is_cached =
            method.ends_with("/list") || ["server/discover", "resources/read"].contains(&method);
        if is_cached && kind == Some("complete") {
            assert!(result["ttlMs"].is_u64(), "{message}");
            // With a token the answer depends on the caller, and is nobody else's.
            let scope = result["cacheScope"].as_str();
            let is_open = self.profile.token.is_none() && scope == Some("public");
            assert!(scope == Some("private") || is_open, "{message}");
        }
    }
}

/// The messages of an event stream.
pub(crate) struct Events {
    response: std::pin::Pin<Box<dyn futures_util::Stream<Item = Vec<u8>> + Send>>,
    buffer: Vec<u8>,
}

impl Events {
    fn of(response: reqwest::Response) -> Self {
        let chunks = response.bytes_stream();
        let chunks = chunks.map(|it| it.map(|it| it.to_vec()).unwrap_or_default());
        Self {
            response: Box::pin(chunks),
            buffer: Vec::new(),
        }
    }

    /// The next message; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|it| it == b"\n\n") {
                let event: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let event = String::from_utf8(event).expect("it is UTF-8");
                let data = event.lines().filter_map(|it| it.strip_prefix("data:"));
                let data: Vec<&str> = data.map(str::trim_start).collect();
                if data.is_empty() {
                    continue;
                }
                // Gemini CLI gives the whole server up over an event without data.
                let message = serde_json::from_str(&data.join("\n"));
                return Some(message.expect("every event is a message"));
            }
            self.buffer.extend(self.response.next().await?);
        }
    }
}

fn call_of(tool: &str, arguments: Value) -> Value {
    let mut call = json!({ "name": tool });
    if !arguments.is_null() {
        call["arguments"] = arguments;
    }
    call
}

async fn read_all(mut from: impl AsyncRead + Unpin) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).await.expect("it is UTF-8");
    text
}

/// A client for loopback, where there is no TLS, so that no authority needs to be trusted.
pub(crate) fn plain_http() -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of the default versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .build()
        .expect("it can be made")
}

/// The real binary, with nothing of this process's environment, in a folder of its own.
pub(crate) fn binary(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clopen-mcp"));
    command
        .env_clear()
        .env("HOME", folder)
        .env("CLOPEN_MCP_DATA", folder.join("data"))
        .env("CLOPEN_MCP_LISTEN", "127.0.0.1:0")
        .current_dir(folder);
    command
}
