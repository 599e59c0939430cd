//! What the runtime lends to a tool for the time of one call.

mod client;

pub use client::{Client, ClientError, Conversation, Root, Round};

use crate::{changes::Changes, selection::Reach};
use serde_json::{Map, Number, Value};
use std::{
    collections::BTreeSet,
    fmt,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
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
