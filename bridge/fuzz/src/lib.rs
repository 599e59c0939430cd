//! The front door in process, a server with one tool behind it, and what must hold of every answer.

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use clopen_mcp::{
    config::{Config, Flags},
    mcp::{self, FrontDoor, guard::Guard},
    store::Store,
};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    mem,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tool_runtime::{Streams, tool_server};
use tower::ServiceExt as _;

/// The revision whose requests repeat in headers what their bodies say.
pub const MODERN: &str = "2026-07-28";

/// The versions of the sessions that are open all the time; only the second takes batches.
const LEGACY: [&str; 2] = ["2025-11-25", "2025-03-26"];

/// Far above what any answer takes, so that only one that never ends is found.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a call of the tool was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// The argument behind `Mcp-Param-Value`.
    pub value: String,
    /// The argument behind `Mcp-Param-Count`.
    pub count: Option<i64>,
    /// The argument behind `Mcp-Param-Flag`.
    pub flag: Option<bool>,
}

static RAN: Mutex<Vec<Ran>> = Mutex::new(Vec::new());

/// Says what it was given.
#[tool_server(name = "echo", version = "1.0.0")]
pub mod server {
    use super::{PoisonError, RAN, Ran};
    use tool_runtime::Progress;

    /// Take arguments that stand in headers too.
    #[tool(read_only)]
    pub fn repeat(
        /// A text.
        #[arg(header = "Value")]
        value: String,
        /// A number.
        #[arg(header = "Count")]
        count: Option<i64>,
        /// A yes or no.
        #[arg(header = "Flag")]
        flag: Option<bool>,
        progress: &Progress,
    ) -> String {
        progress.report(1, 2);
        let said = format!("{value} {count:?} {flag:?}");
        let mut ran = RAN.lock().unwrap_or_else(PoisonError::into_inner);
        ran.push(Ran { value, count, flag });
        said
    }
}

/// The bridge that all inputs of a process go to.
#[derive(Debug)]
pub struct Bridge {
    runtime: Runtime,
    router: Router,
    sessions: Vec<String>,
    _front_door: FrontDoor,
    _data: TempDir,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// Whether the body is a stream of events.
    pub is_stream: bool,
    /// The messages in the body, each as it stands.
    pub messages: Vec<Box<RawValue>>,
    /// What the tool was given meanwhile, call by call.
    pub ran: Vec<Ran>,
}

impl Bridge {
    /// The one of this process.
    pub fn of_process() -> &'static Self {
        static BRIDGE: OnceLock<Bridge> = OnceLock::new();
        BRIDGE.get_or_init(Self::start)
    }

    /// The front door is not tended: what it does by the clock would make two runs of one input differ.
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let data = TempDir::new().expect("the temporary folder can be written");
        let flags = Flags {
            data: Some(data.path().to_owned()),
            no_auth: true,
            ..Flags::default()
        };
        let variables = BTreeMap::new();
        let (router, front_door) = runtime.block_on(async {
            let config =
                Config::load(&flags, &variables, Path::new("/")).expect("the settings are right");
            let dispatcher = clopen_mcp::dispatcher(&config, &variables)
                .await
                .expect("the server is right");
            let store = Store::open(&config.data, None)
                .await
                .expect("the store opens");
            let kept = Some(store.clone());
            let front_door = FrontDoor::new(dispatcher, &[7; 32], kept, None, config.limits, true);
            let guard = Guard::new(&config, None, store);
            let streams = Arc::new(Streams::default());
            let router = mcp::router(&front_door, guard, streams, Router::new());
            (router, front_door)
        });
        let mut bridge = Self {
            runtime,
            router,
            sessions: Vec::new(),
            _front_door: front_door,
            _data: data,
        };
        bridge.sessions = LEGACY.iter().map(|it| bridge.open_session(it)).collect();
        bridge
    }

    fn open_session(&self, version: &str) -> String {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"fuzz","version":"1"}}}}}}"#
        );
        let request = request(Method::POST, "/mcp", &usual_headers(), body.as_bytes());
        let response = self.runtime.block_on(self.respond(request));
        let session = session_of(&response);
        session.expect("`initialize` opens a session")
    }

    /// The session of a version before 2026-07-28 that stands at this place.
    #[must_use]
    pub fn session(&self, at: usize) -> &str {
        &self.sessions[at % self.sessions.len()]
    }

    async fn respond(&self, request: Request<Body>) -> Response {
        let response = self.router.clone().oneshot(request).await;
        response.unwrap_or_else(|never| match never {})
    }

    /// Sends a body to the front door, checks the answer, and returns it. `None` if no client could send the request.
    pub fn send(&self, query: &str, headers: &HeaderMap, body: &[u8]) -> Option<Answer> {
        let uri: Uri = format!("/mcp{query}").parse().ok()?;
        mem::take(&mut *RAN.lock().unwrap_or_else(PoisonError::into_inner));
        let sent = Sent::of(body);
        let answer = self.runtime.block_on(async {
            let request = request(Method::POST, &uri.to_string(), headers, body);
            let response = self.respond(request).await;
            let session = session_of(&response);
            let answer = Answer::of(response, sent.method() == "subscriptions/listen").await;
            if let Some(session) = session {
                self.end_session(&session).await;
            }
            answer
        });
        answer.check(query, headers, &sent);
        answer.check_calls(headers, body);
        Some(answer)
    }

    /// There is room for some thousand sessions only, and a run opens more.
    async fn end_session(&self, session: &str) {
        let mut headers = usual_headers();
        let name = HeaderName::from_static("mcp-session-id");
        headers.insert(name, session.parse().expect("it came in a header"));
        let request = request(Method::DELETE, "/mcp", &headers, b"");
        let status = self.respond(request).await.status();
        assert_eq!(status, StatusCode::NO_CONTENT, "a session can be ended");
    }
}

fn request(method: Method, uri: &str, headers: &HeaderMap, body: &[u8]) -> Request<Body> {
    let mut request = Request::new(Body::from(body.to_vec()));
    *request.method_mut() = method;
    *request.uri_mut() = uri.parse().expect("it is an address");
    *request.headers_mut() = headers.clone();
    request
}

/// The headers that every client sends.
#[must_use]
pub fn usual_headers() -> HeaderMap {
    let usual = [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let usual = usual.map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    });
    usual.into_iter().collect()
}

fn session_of(response: &Response) -> Option<String> {
    let session = response.headers().get("mcp-session-id")?;
    Some(session.to_str().expect("it is ASCII").to_owned())
}

/// Reads JSON, which is UTF-8 in what is skipped too.
fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    serde_json::from_str(str::from_utf8(body).ok()?).ok()
}

/// What a body asks for, read without the code that is tried.
struct Sent<'a> {
    is_batch: bool,
    request: Option<SentRequest<'a>>,
}

#[derive(Deserialize)]
struct SentRequest<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
}

impl<'a> Sent<'a> {
    fn of(body: &'a [u8]) -> Self {
        Self {
            is_batch: body.trim_ascii_start().starts_with(b"["),
            request: json(body),
        }
    }

    fn method(&self) -> &str {
        self.request.as_ref().map_or("", |it| &*it.method)
    }

    /// The id, if it is one that must come back: a text or a whole number, in a request that is one.
    fn id(&self) -> Option<&'a str> {
        let request = self.request.as_ref()?;
        let id = request.id?.get();
        let is_whole = id.bytes().all(|it| it.is_ascii_digit() || it == b'-');
        let is_good = request.jsonrpc == "2.0" && (is_whole || id.starts_with('"'));
        is_good.then_some(id)
    }
}

/// A call as far as it can be read: one part that can't must not hide the others.
#[derive(Deserialize)]
struct SentCall<'a> {
    #[serde(borrow, default)]
    params: Option<SentParams<'a>>,
}

#[derive(Default, Deserialize)]
struct SentParams<'a> {
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<SentMeta<'a>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SentMeta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<Error<'a>>,
}

#[derive(Debug, Deserialize)]
struct Error<'a> {
    code: i64,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

impl Answer {
    /// Reads a response; of a stream that only listens, the first piece.
    async fn of(response: Response, only_listens: bool) -> Self {
        let status = response.status();
        let kind = response.headers().get("content-type");
        let kind = kind.map(|it| it.to_str().expect("it is ASCII").to_owned());
        let mut pieces = response.into_body().into_data_stream();
        let is_stream = kind.as_deref() == Some("text/event-stream");
        let mut body = Vec::new();
        loop {
            let piece = tokio::time::timeout(PATIENCE, pieces.next()).await;
            match piece.expect("an answer ends") {
                Some(piece) => body.extend_from_slice(&piece.expect("a body has no errors")),
                None => break,
            }
            if is_stream && only_listens {
                break;
            }
        }
        drop(pieces);
        // What wrote the stream notices that nobody reads it any more.
        tokio::task::yield_now().await;
        let messages = match kind.as_deref() {
            None => {
                assert!(body.is_empty(), "a body has a type");
                Vec::new()
            }
            Some("application/json") => {
                vec![serde_json::from_slice(&body).expect("a body that is called JSON is JSON")]
            }
            Some("text/event-stream") => events(&body),
            Some(other) => panic!("a body is of the type {other}"),
        };
        let ran = mem::take(&mut *RAN.lock().unwrap_or_else(PoisonError::into_inner));
        Self {
            status,
            is_stream,
            messages,
            ran,
        }
    }

    /// Checks what must hold whatever was sent.
    fn check(&self, query: &str, headers: &HeaderMap, sent: &Sent<'_>) {
        let status = self.status.as_u16();
        let is_sensible = matches!(status, 200 | 202 | 400 | 403 | 404 | 406 | 413 | 415);
        assert!(is_sensible, "no answer has the status {status}");
        if status == 202 {
            assert!(self.messages.is_empty(), "what is only taken has no answer");
            assert!(sent.id().is_none(), "a request is answered");
            return;
        }
        assert!(!self.messages.is_empty(), "an answer has a body");
        // These are decided before the body is read, so that the answer can't know the id.
        let may_be_unread = matches!(status, 403 | 406 | 413 | 415)
            || (status == 400
                && (!query.is_empty() || headers.get_all("host").iter().count() != 1));
        let mut answers = 0;
        for raw in &self.messages {
            if raw.get().starts_with('[') {
                assert!(sent.is_batch, "only a batch is answered with one");
                let messages: Vec<Message<'_>> =
                    serde_json::from_str(raw.get()).expect("a batch holds messages");
                assert!(!messages.is_empty(), "a batch holds at least one message");
                messages.iter().for_each(Message::check);
                answers += 1;
                continue;
            }
            let message: Message<'_> =
                serde_json::from_str(raw.get()).expect("an answer is a message");
            message.check();
            if message.method.is_some() {
                assert!(self.is_stream, "only a stream holds more than the answer");
                continue;
            }
            answers += 1;
            let id = message.id.map(RawValue::get);
            assert!(
                id == sent.id() || (id.is_none() && may_be_unread) || sent.id().is_none(),
                "the answer to {:?} is for {id:?}",
                sent.id()
            );
            if message.error.is_none() {
                assert_eq!(status, 200, "a result has the status 200");
            }
        }
        let only_listens = sent.method() == "subscriptions/listen" && self.is_stream;
        let expected = usize::from(!only_listens);
        assert_eq!(answers, expected, "a request has one answer");
    }

    /// Checks that the tool was only given what the headers said too, where the protocol wants them to say it.
    fn check_calls(&self, headers: &HeaderMap, body: &[u8]) {
        let Some(ran) = self.ran.first() else {
            return;
        };
        // A batch is none of these, and 2026-07-28 has no batches.
        let call: Option<SentCall<'_>> = json(body);
        let params = call.and_then(|it| it.params).unwrap_or_default();
        let Some(version) = params.meta.and_then(|it| it.version) else {
            let said = headers.get("mcp-protocol-version");
            assert!(
                said.is_none_or(|it| it.as_bytes() != MODERN.as_bytes()),
                "the header says {MODERN} and the body doesn't"
            );
            assert!(
                headers.contains_key("mcp-session-id"),
                "a call has a session, or says everything itself"
            );
            return;
        };
        assert_eq!(self.ran.len(), 1, "one request is one call");
        let says = |name: &str, expected: &str| {
            let said = said(headers, name);
            assert_eq!(
                said.as_deref(),
                Some(expected),
                "`{name}` contradicts the body"
            );
        };
        says("mcp-protocol-version", MODERN);
        assert_eq!(version, MODERN);
        says("mcp-method", "tools/call");
        says("mcp-name", &params.name.expect("a call names a tool"));
        let arguments: Option<Value> = params
            .arguments
            .and_then(|it| serde_json::from_str(it.get()).ok());
        if arguments.is_some_and(|it| it["value"].is_string()) {
            says("mcp-param-value", &ran.value);
        }
        let count = said(headers, "mcp-param-count");
        assert!(
            is_same_number(count.as_deref(), ran.count),
            "`Mcp-Param-Count` says {count:?}, and the tool was given {:?}",
            ran.count
        );
        let flag = said(headers, "mcp-param-flag");
        assert_eq!(
            flag,
            ran.flag.map(|it| it.to_string()),
            "`Mcp-Param-Flag` contradicts the body"
        );
    }
}

impl Message<'_> {
    fn check(&self) {
        assert_eq!(self.jsonrpc, "2.0");
        let outcomes = usize::from(self.result.is_some()) + usize::from(self.error.is_some());
        match &self.method {
            Some(method) => {
                assert!(!method.is_empty(), "a message names its method");
                assert_eq!(outcomes, 0, "what has a method is no answer");
            }
            None => assert_eq!(outcomes, 1, "an answer is a result or an error"),
        }
        if self.result.is_some() {
            assert!(self.id.is_some(), "a result is for a request");
        }
        if let Some(Error { code, message }) = &self.error {
            assert!(*code != 0, "an error has a code");
            assert!(*code != -32603, "the bridge is at fault: {message}");
            assert!(!message.is_empty(), "an error has a message");
        }
    }
}

/// The messages of a stream of events, each in one line of data.
fn events(body: &[u8]) -> Vec<Box<RawValue>> {
    let text = str::from_utf8(body).expect("events are UTF-8");
    let data = text.lines().filter_map(|it| it.strip_prefix("data: "));
    data.map(|it| serde_json::from_str(it).expect("the data of an event is JSON"))
        .collect()
}

/// What the one header of a name says; nothing, if there are several or it can't be read.
fn said(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let text = value.to_str().ok()?.trim_matches([' ', '\t']);
    let coded = text.strip_prefix("=?base64?");
    match coded.and_then(|it| it.strip_suffix("?=")) {
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a fraction is compared as one")]
fn is_same_number(said: Option<&str>, given: Option<i64>) -> bool {
    let (Some(said), Some(given)) = (said, given) else {
        return said.is_none() && given.is_none();
    };
    match said.parse::<i128>() {
        Ok(said) => said == given.into(),
        // A whole number may be written with a fraction of zero or an exponent.
        Err(_) => said.parse() == Ok(given as f64),
    }
}

/// A text as a header holds it: in base64 where it could not stand there, or would be read as something else.
#[must_use]
pub fn encoded(text: &str) -> String {
    let stands = text.bytes().all(|it| (b' '..=b'~').contains(&it))
        && text.trim() == text
        && !text.starts_with("=?base64?");
    if stands {
        text.to_owned()
    } else {
        in_base64(text)
    }
}

/// A text in base64 behind the protocol's mark.
#[must_use]
pub fn in_base64(text: &str) -> String {
    format!("=?base64?{}?=", STANDARD.encode(text))
}
