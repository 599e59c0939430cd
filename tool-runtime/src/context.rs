//! What the runtime lends to a tool for the time of one call.

use crate::{
    changes::Changes,
    definition::BoxFuture,
    output::{InputRequired, Question},
    selection::Reach,
};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Number, Value, json};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use thiserror::Error;
use tokio::sync::Notify;

/// Tells a tool that its caller has taken the call back. A tool that is stopped at an `await` needs it only to
/// stop work that it started elsewhere.
pub use tokio_util::sync::CancellationToken as Cancellation;

/// Everything about one call.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Who is calling.
    pub caller: Arc<Caller>,
    /// Whether the call was taken back.
    pub cancellation: Cancellation,
    /// Where to report progress.
    pub progress: Progress,
    /// Where to log for the caller.
    pub log: Log,
    /// The caller's side, for questions.
    pub client: Client,
    /// Where to say that something which clients watch has changed.
    pub changes: Changes,
    /// Whether the caller would wait for the result of a call that goes on after its answer.
    pub later: Later,
    /// What else the caller says about the call, in the protocol's `_meta`: traces, for example. It goes on to the server
    /// of an external tool.
    pub meta: Option<Box<Map<String, Value>>>,
    /// How long the call may take, instead of the dispatcher's limit; the tool's own comes first.
    pub limit: Option<Duration>,
}

impl Context {
    /// Makes the context of a call that only answers: no progress, no log, no questions.
    pub fn new(caller: impl Into<Arc<Caller>>) -> Self {
        Self {
            caller: caller.into(),
            ..Self::default()
        }
    }
}

/// Lets a call go on after its answer, where the caller has a way to come back for the result. The default is that it
/// hasn't.
#[derive(Clone, Debug, Default)]
pub struct Later(Option<Arc<Handover>>);

#[derive(Debug, Default)]
struct Handover {
    wanted: Notify,
    given: Notify,
}

impl Later {
    /// Makes one for a caller who would come back.
    pub fn possible() -> Self {
        Self(Some(Arc::default()))
    }

    /// Says whether the caller would come back.
    pub fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    /// Says that the call goes on for long, and waits until the caller has been told so. It must be possible.
    pub async fn go_on(&self) {
        if let Some(handover) = &self.0 {
            handover.wanted.notify_one();
            handover.given.notified().await;
        }
    }

    /// Waits until the call wants to go on.
    pub async fn wanted(&self) {
        match &self.0 {
            Some(handover) => handover.wanted.notified().await,
            None => pending().await,
        }
    }

    /// Lets the call go on: the caller is about to be told so.
    pub fn give(&self) {
        if let Some(handover) = &self.0 {
            handover.given.notify_one();
        }
    }
}

/// Something that the runtime lends to a tool.
#[diagnostic::on_unimplemented(
    message = "the runtime has no `{Self}` to lend to a tool",
    label = "not lent by the runtime",
    note = "a parameter taken by reference is lent by the runtime: `&Caller`, `&Progress`, `&Cancellation`, `&Log`, `&Client`, `&Changes` or `&Context`",
    note = "a parameter that the model sends is taken by value"
)]
pub trait Lend {
    /// Whether a tool that has it may talk while it runs, so that one plain answer isn't enough.
    const CONVERSES: bool = false;

    /// Takes it out of the context.
    fn lend(context: &Context) -> &Self;
}

impl Lend for Context {
    const CONVERSES: bool = true;

    fn lend(context: &Context) -> &Self {
        context
    }
}

impl Lend for Caller {
    fn lend(context: &Context) -> &Self {
        &context.caller
    }
}

impl Lend for Cancellation {
    fn lend(context: &Context) -> &Self {
        &context.cancellation
    }
}

impl Lend for Changes {
    fn lend(context: &Context) -> &Self {
        &context.changes
    }
}

impl Lend for Progress {
    const CONVERSES: bool = true;

    fn lend(context: &Context) -> &Self {
        &context.progress
    }
}

impl Lend for Log {
    const CONVERSES: bool = true;

    fn lend(context: &Context) -> &Self {
        &context.log
    }
}

impl Lend for Client {
    const CONVERSES: bool = true;

    fn lend(context: &Context) -> &Self {
        &context.client
    }
}

/// Who is calling. A text is empty where it isn't known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The engine, for example `codex`.
    pub engine: String,
    /// The project that the engine works on.
    pub project: String,
    /// The conversation.
    pub session: String,
    /// How the session was found.
    pub identified: Identified,
    /// The model behind the engine, where that is known, for example `gemini-3-pro`.
    pub model: String,
    /// Whether the names of all tools are listed with that of their server before them, also of those that need it not.
    pub prefixed: bool,
    /// How many bytes of text a result may have that the caller takes whole, where that is less than the limit of all.
    pub most_output: Option<usize>,
    /// On whose behalf, as the front door knows it: the name of a token, never the token itself.
    pub principal: String,
    /// What the caller may do.
    pub scopes: Scopes,
    /// How far the caller reaches.
    pub reach: Reach,
}

/// How a caller's session was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identified {
    /// It was not found: nobody knows the session.
    #[default]
    Unknown,
    /// The call names it.
    Exact,
    /// It is the most recent one in the project that the call names.
    ByProject,
    /// It is the most recent one on the engine that the call names.
    ByEngine,
}

/// What a caller may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scopes {
    /// Everything.
    #[default]
    All,
    /// Only this.
    Only(BTreeSet<String>),
}

impl Scopes {
    /// Says whether a scope has been given.
    pub fn include(&self, scope: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(given) => given.contains(scope),
        }
    }
}

/// A step of a long call.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressReport {
    /// How much is done; grows from report to report.
    pub done: Number,
    /// How much there is to do, where that is known.
    pub total: Option<Number>,
    /// What is being done.
    pub message: Option<String>,
}

/// Reports the progress of a long call. Reports that don't move forward are left out, as the protocol wants.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<ProgressSink>>);

struct ProgressSink {
    /// The bits of the last `done`, plus one; 0 before the first report. The bits of numbers from 0 up are ordered as the
    /// numbers are.
    next: AtomicU64,
    send: Box<dyn Fn(ProgressReport) + Send + Sync>,
}

impl Progress {
    /// Makes one that hands each report on.
    pub fn to(send: impl Fn(ProgressReport) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(ProgressSink {
            next: AtomicU64::new(0),
            send: Box::new(send),
        })))
    }

    /// Says how much of how much is done.
    pub fn report(&self, done: u64, total: u64) {
        self.relay(done.into(), of(total), None);
    }

    /// Says how much of how much is done, and what is going on.
    pub fn report_with(&self, done: u64, total: u64, message: impl Into<String>) {
        self.relay(done.into(), of(total), Some(message.into()));
    }

    /// Says whether anybody listens.
    pub fn is_heard(&self) -> bool {
        self.0.is_some()
    }

    /// Passes on what somebody else reports, who may count in fractions.
    pub fn relay(&self, done: Number, total: Option<Number>, message: Option<String>) {
        let Some(sink) = &self.0 else { return };
        let Some(amount) = done.as_f64().filter(|it| *it >= 0.0) else {
            return;
        };
        // There is a negative zero, whose bits are those of a very large number.
        let next = amount.abs().to_bits().saturating_add(1);
        if sink.next.fetch_max(next, Ordering::Relaxed) < next {
            (sink.send)(ProgressReport {
                done,
                total,
                message,
            });
        }
    }
}

/// How much there is to do in all; a tool that doesn't know says 0.
fn of(total: u64) -> Option<Number> {
    (total > 0).then(|| total.into())
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Progress(listened to: {})", self.0.is_some())
    }
}

/// How much a log message matters (RFC 5424).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever looks for a fault.
    Debug,
    /// Normal.
    Info,
    /// Normal, but worth knowing.
    Notice,
    /// Might become a fault.
    Warning,
    /// A fault.
    Error,
    /// A fault that takes a part out.
    Critical,
    /// Somebody must act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl Level {
    /// All levels, from the least, with the protocol's words for them.
    const NAMED: [(&str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    /// Reads the protocol's word for a level.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMED.iter().find(|(known, _)| *known == name);
        found.map(|(_, level)| *level)
    }

    /// Returns the protocol's word for the level.
    pub fn name(self) -> &'static str {
        let found = Self::NAMED.iter().find(|(_, level)| *level == self);
        found.map_or("info", |(name, _)| name)
    }
}

/// Logs for the caller, who may show it to a person.
#[derive(Clone, Default)]
pub struct Log(Option<Arc<LogSink>>);

struct LogSink {
    least: Box<dyn Fn() -> Level + Send + Sync>,
    send: Box<dyn Fn(Level, Value) + Send + Sync>,
}

impl Log {
    /// Makes one that hands each message on.
    pub fn to(send: impl Fn(Level, Value) + Send + Sync + 'static) -> Self {
        Self::from_level(|| Level::Debug, send)
    }

    /// Makes one that hands each message on that matters at least so much.
    pub fn from_level(
        least: impl Fn() -> Level + Send + Sync + 'static,
        send: impl Fn(Level, Value) + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(LogSink {
            least: Box::new(least),
            send: Box::new(send),
        })))
    }

    /// Returns how much a message must matter; `None` if nobody listens.
    pub fn least(&self) -> Option<Level> {
        self.0.as_ref().map(|it| (it.least)())
    }

    /// Logs a text or data.
    pub fn log(&self, level: Level, message: impl Into<Value>) {
        if let Some(sink) = &self.0
            && level >= (sink.least)()
        {
            (sink.send)(level, message.into());
        }
    }

    /// Logs for whoever looks for a fault.
    pub fn debug(&self, message: impl Into<Value>) {
        self.log(Level::Debug, message);
    }

    /// Logs something normal.
    pub fn info(&self, message: impl Into<Value>) {
        self.log(Level::Info, message);
    }

    /// Logs what might become a fault.
    pub fn warning(&self, message: impl Into<Value>) {
        self.log(Level::Warning, message);
    }

    /// Logs a fault.
    pub fn error(&self, message: impl Into<Value>) {
        self.log(Level::Error, message);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log(listened to: {})", self.0.is_some())
    }
}

/// The caller's side, which can answer questions.
#[derive(Clone, Default)]
pub struct Client {
    asking: Option<Arc<Asking>>,
    /// The name of the next question; empty where it has none.
    key: String,
}

/// A way to put a question to a client. A closure is one, for agents in the same process.
pub trait Conversation: Send + Sync {
    /// Asks, and waits for the answer: the `result` of the protocol's method.
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Value, ClientError>>;

    /// Returns what the client can answer: the protocol's `ClientCapabilities`. The default is everything.
    fn capabilities(&self) -> Map<String, Value> {
        let all = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
        match all {
            Value::Object(all) => all,
            _ => Map::new(),
        }
    }

    /// Returns what the client has sent along, if it answers by making the call again. The default is that it answers
    /// while the call runs.
    fn round(&self) -> Option<Round> {
        None
    }

    /// Returns the questions that can't be answered while the call runs: it is stopped, and made again with the answers
    /// at hand. The default is none.
    fn missing(&self) -> Option<InputRequired> {
        None
    }
}

impl<F, A> Conversation for F
where
    F: Fn(Question) -> A + Send + Sync,
    A: Future<Output = Result<Value, ClientError>> + Send + 'static,
{
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Value, ClientError>> {
        Box::pin(self(question))
    }
}

/// What a client brings that makes a call again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// The state of an [`InputRequired`] that the call gave before; `None` if this is the first round.
    pub state: Option<String>,
    /// The answers to its questions, by name.
    pub answers: BTreeMap<String, Value>,
}

/// Why a question has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The client can't be asked this.
    #[error("the client can't answer `{method}`")]
    Unsupported {
        /// The method of the protocol.
        method: Cow<'static, str>,
    },
    /// The person said no.
    #[error("the user declined to answer")]
    Declined,
    /// The person closed the question.
    #[error("the user closed the question without an answer")]
    Cancelled,
    /// The answer has the wrong shape.
    #[error("the client's answer can't be read: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The client gave an error.
    #[error("the client could not answer: {reason}")]
    Failed {
        /// What it said.
        reason: String,
    },
}

/// A folder that the client lets servers work on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// Its address, a `file://` URI.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

struct Asking {
    conversation: Arc<dyn Conversation>,
    /// How many questions have no answer yet.
    open: AtomicUsize,
}

/// A question without an answer, until it is dropped.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl From<Arc<dyn Conversation>> for Client {
    fn from(conversation: Arc<dyn Conversation>) -> Self {
        let asking = Asking {
            conversation,
            open: AtomicUsize::new(0),
        };
        Self {
            asking: Some(Arc::new(asking)),
            key: String::new(),
        }
    }
}

impl Client {
    /// Makes one that hands each question on.
    pub fn to(conversation: impl Conversation + 'static) -> Self {
        let conversation: Arc<dyn Conversation> = Arc::new(conversation);
        conversation.into()
    }

    /// Gives the next question a name, by which a stateless client sends its answer along. Without one, questions are
    /// counted in the order in which they are asked.
    #[must_use]
    pub fn named(&self, key: impl Into<String>) -> Self {
        Self {
            asking: self.asking.clone(),
            key: key.into(),
        }
    }

    /// Asks the person to fill in a form: the fields of `T`, which are texts, numbers, flags or enums.
    ///
    /// A person who declines or closes the form is an error, so that `?` ends the call.
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        message: impl Into<String>,
    ) -> Result<T, ClientError> {
        let params = json!({
            "mode": "form",
            "message": message.into(),
            "requestedSchema": crate::schema::published_form::<T>(),
        });
        let mut answer = self.ask("elicitation/create", params).await?;
        accepted(&answer)?;
        read(&mut answer, "content")
    }

    /// Asks the person to open a page, for what must not pass through the client, such as a password. Returns when the
    /// person has agreed to open it, which is before they are done there.
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<(), ClientError> {
        let params = json!({ "mode": "url", "message": message.into(), "url": url.into() });
        let answer = self.ask("elicitation/create", params).await?;
        accepted(&answer)
    }

    /// Asks the client's model. `params` are those of `sampling/createMessage`; the answer is its result.
    pub async fn sample(&self, params: Value) -> Result<Value, ClientError> {
        self.ask("sampling/createMessage", params).await
    }

    /// Asks which folders the client lets servers work on.
    pub async fn roots(&self) -> Result<Vec<Root>, ClientError> {
        let mut answer = self.ask("roots/list", json!({})).await?;
        read(&mut answer, "roots")
    }

    /// Puts a question in the protocol's own words.
    pub async fn ask(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: Value,
    ) -> Result<Value, ClientError> {
        let method = method.into();
        match &self.asking {
            Some(asking) => {
                let key = self.key.clone();
                let question = Question {
                    key,
                    method,
                    params,
                };
                asking.open.fetch_add(1, Ordering::Relaxed);
                let _open = Open(&asking.open);
                asking.conversation.ask(question).await
            }
            None => Err(ClientError::Unsupported { method }),
        }
    }

    /// Returns what the client can answer: the protocol's `ClientCapabilities`; empty if it can't be asked.
    pub fn capabilities(&self) -> Map<String, Value> {
        let asking = self.asking.as_ref();
        asking
            .map(|it| it.conversation.capabilities())
            .unwrap_or_default()
    }

    /// Returns what the client has sent along, if it answers questions by making the call again.
    pub fn round(&self) -> Option<Round> {
        self.asking.as_ref()?.conversation.round()
    }

    /// The questions that keep the call from going on.
    pub(crate) fn missing(&self) -> Option<InputRequired> {
        self.asking.as_ref()?.conversation.missing()
    }

    /// Whether somebody is being asked: that is no work of the tool's.
    pub(crate) fn is_asked(&self) -> bool {
        let asking = self.asking.as_ref();
        asking.is_some_and(|it| it.open.load(Ordering::Relaxed) > 0)
    }
}

fn accepted(answer: &Value) -> Result<(), ClientError> {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => Ok(()),
        Some("decline") => Err(ClientError::Declined),
        Some("cancel") => Err(ClientError::Cancelled),
        _ => Err(ClientError::Invalid {
            reason: "`action` is none of `accept`, `decline` and `cancel`".to_owned(),
        }),
    }
}

fn read<T: DeserializeOwned>(answer: &mut Value, key: &str) -> Result<T, ClientError> {
    let part = answer.get_mut(key).map(Value::take).unwrap_or_default();
    serde_json::from_value(part).map_err(|error| ClientError::Invalid {
        reason: format!("`{key}`: {error}"),
    })
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client(can be asked: {})", self.asking.is_some())
    }
}
