//! Why an external server gives nothing.

use super::connector::UpstreamError;
use crate::{credentials::OAuthError, store::DatabaseError};
use serde_json::{Value, json};
use std::time::Duration;
use thiserror::Error;
use tool_runtime::{ClientError, InputRequired, Output, ProtocolError, ToolError};

/// Errors of the protocol that are about one hop: whoever is behind it can do nothing with them as they are.
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;
/// The one of them that is about what the caller can be asked.
const MISSING_CAPABILITY: i64 = -32021;
/// What servers up to 2025-11-25 say of a resource that they don't have.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// What they say that want a page to be opened before.
const URL_REQUIRED: i64 = -32042;
const INVALID_PARAMS: i64 = -32602;
/// The code of JSON-RPC for a method that the other side doesn't have.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// The one for whatever has no other.
pub(super) const INTERNAL_ERROR: i64 = -32603;

/// Why an external server gives nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExternalError {
    /// There is no such server.
    #[error("there is no external server `{name}`")]
    NoServer {
        /// The name.
        name: String,
    },
    /// It can't be reached, or refuses.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// It has failed too often, and is left alone for a while.
    #[error(
        "server `{name}` is not asked at the moment, since it failed before: {why}; it is tried again {}",
        soon(*.wait)
    )]
    Resting {
        /// The server.
        name: String,
        /// What went wrong the last time.
        why: String,
        /// When it is tried again.
        wait: Duration,
    },
    /// It took too long for a call, and was told to stop.
    #[error(
        "server `{name}` did not answer `{method}` within its limit of {} ({} have passed){}; it may be overloaded, or need a longer `timeout` in `[servers.{name}]` of the settings",
        shown(*.limit), shown(*.elapsed), last_words(.said)
    )]
    TimedOut {
        /// The server.
        name: String,
        /// What was asked.
        method: String,
        /// How long the call has taken, with all signs of life and a second try.
        elapsed: Duration,
        /// How long the server may be silent.
        limit: Duration,
        /// The end of what it wrote to its error output; may be empty.
        said: String,
    },
    /// It takes longer to start than a call may take.
    #[error(
        "server `{name}` is still starting after {}, and goes on; make the call again in a moment, or give it a longer `timeout` in `[servers.{name}]` of the settings",
        shown(*.limit)
    )]
    Starting {
        /// The server.
        name: String,
        /// How long a call may take.
        limit: Duration,
    },
    /// Nothing is started any more.
    #[error("the bridge is stopping")]
    Stopping,
    /// It wants to know who asks, and nobody has signed in, or not for enough.
    #[error("server `{name}` wants somebody to sign in: {reason}; do so with `{command}`")]
    NeedsSignIn {
        /// The server.
        name: String,
        /// Why.
        reason: String,
        /// What is to be typed.
        command: String,
    },
    /// The token of who has signed in can't be had or renewed.
    #[error(transparent)]
    SignIn(#[from] Box<OAuthError>),
    /// Its secrets can't be opened.
    #[error("{0}")]
    Entry(String),
    /// What it lists is no list.
    #[error("`{name}` gives no list that can be read: {reason}")]
    Unreadable {
        /// The server.
        name: String,
        /// Why.
        reason: String,
    },
    /// The list can't be kept.
    #[error("can't keep what `{name}` has listed, or what was approved of it")]
    Keep {
        /// The server.
        name: String,
        /// Why.
        source: DatabaseError,
    },
    /// It has told no tools that could be approved.
    #[error(
        "server `{name}` has not told its tools yet; `clopen-mcp servers check {name}` asks it"
    )]
    NotListed {
        /// The server.
        name: String,
    },
    /// A call that waited for an answer of its client is gone.
    #[error(
        "the call of `{name}` that asked this has ended meanwhile; make the call again without `requestState`"
    )]
    CallGone {
        /// The server.
        name: String,
    },
}

fn soon(wait: Duration) -> String {
    match wait.as_secs() {
        0 => "with the next call".to_owned(),
        seconds => format!("in {seconds} s"),
    }
}

/// A time as the settings write it.
fn shown(time: Duration) -> String {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    humantime::format_duration(Duration::from_millis(millis)).to_string()
}

fn last_words(said: &str) -> String {
    if said.is_empty() {
        String::new()
    } else {
        format!("; its last words: `{said}`")
    }
}

impl ExternalError {
    /// Says of a call what went wrong with it: where that is the time, how much has passed, and what can be set.
    pub(super) fn of_call(error: UpstreamError, elapsed: Duration, limit: Duration) -> Self {
        match error {
            UpstreamError::TimedOut {
                server,
                method,
                after,
                said,
            } if after == limit => Self::TimedOut {
                name: server,
                method,
                elapsed,
                limit,
                said,
            },
            error => Self::Upstream(error),
        }
    }

    /// Returns a stable code, the same in every place where a person may meet the error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoServer { .. } => "unknown_server",
            Self::Upstream(error) => code(error),
            Self::Resting { .. } => "server_resting",
            Self::TimedOut { .. } => "timed_out",
            Self::Starting { .. } => "server_starting",
            Self::Stopping => "stopping",
            Self::NeedsSignIn { .. } => "needs_sign_in",
            Self::SignIn(_) => "sign_in_failed",
            Self::Entry(_) => "server_unreadable",
            Self::Unreadable { .. } => "list_unreadable",
            Self::Keep { .. } => "store_failed",
            Self::NotListed { .. } => "not_listed",
            Self::CallGone { .. } => "call_gone",
        }
    }
}

/// Returns the stable code of what went wrong with a server.
const fn code(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::BadAddress { .. } => "bad_address",
        UpstreamError::NotStarted { .. } => "not_started",
        UpstreamError::Ended { .. } => "server_ended",
        UpstreamError::Unreachable { .. } => "unreachable",
        UpstreamError::TimedOut { .. } => "timed_out",
        UpstreamError::Unauthorized { .. } => "needs_sign_in",
        UpstreamError::SessionLost { .. } => "session_lost",
        UpstreamError::Status { .. } => "server_failed",
        UpstreamError::Refused { .. } => "refused_by_server",
        UpstreamError::TooLarge { .. } => "answer_too_large",
        UpstreamError::Malformed { .. } => "not_mcp",
        UpstreamError::Unsendable { .. } => "unsendable",
        UpstreamError::Closed { .. } => "closed",
    }
}

/// Whether the connection is of no use any more.
pub(super) const fn is_lost(error: &UpstreamError) -> bool {
    matches!(
        error,
        UpstreamError::SessionLost { .. }
            | UpstreamError::Ended { .. }
            | UpstreamError::Unreachable { .. }
            | UpstreamError::Closed { .. }
    )
}

/// Whether the server has refused the token, or wants one.
pub(super) const fn is_unauthorized(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Unauthorized { status: 401, .. })
}

/// Whether the server is known to have done nothing.
pub(super) const fn was_not_taken(error: &UpstreamError) -> bool {
    matches!(
        error,
        UpstreamError::SessionLost { .. }
            | UpstreamError::Unreachable {
                was_connected: false,
                ..
            }
    )
}

/// Whether the server itself has failed, so that it may do so again in a moment, or not.
pub(super) const fn is_of_server(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Status { status: 500.., .. })
}

/// Whether this says that a server does not work, rather than that it refuses something.
pub(super) const fn is_failure(error: &UpstreamError) -> bool {
    is_of_server(error)
        || matches!(
            error,
            UpstreamError::Ended { .. }
                | UpstreamError::Unreachable { .. }
                | UpstreamError::TimedOut { .. }
        )
}

/// Why a request to an external server has no result.
#[derive(Debug)]
pub(super) enum Failure {
    External(ExternalError),
    /// The client must answer before.
    Asks(InputRequired),
    /// The client can't be asked.
    Client(ClientError),
    /// The answer can't be read.
    Answer(ToolError),
}

impl<E: Into<ExternalError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::External(error.into())
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::External(ExternalError::Upstream(UpstreamError::Refused {
                code,
                message,
                data,
                ..
            })) => refused(code, message, data.map(|it| *it)).into(),
            Failure::External(error) => error.into(),
            Failure::Asks(required) => required.into(),
            Failure::Client(error) => error.into(),
            Failure::Answer(error) => error,
        }
    }
}

impl Failure {
    /// Makes of it what a tool gives: a refusal stays one, a server that fails is told to the model.
    pub(super) fn into_output(self) -> Result<Output, ToolError> {
        match self {
            Self::External(ExternalError::Upstream(UpstreamError::Refused { .. })) => {
                Err(self.into())
            }
            Self::External(error) => {
                let mut output = Output::error(error.to_string());
                output.insert_meta("clopen-mcp/error", error.code());
                Ok(output)
            }
            Self::Asks(required) => Ok(Output {
                input_required: Some(Box::new(required)),
                ..Output::default()
            }),
            other => Err(other.into()),
        }
    }
}

/// What a server has refused, in the words of the newest protocol; what was about our own hop is our fault.
fn refused(code: i64, message: String, data: Option<Value>) -> ProtocolError {
    let (code, data) = match code {
        RESOURCE_NOT_FOUND => (INVALID_PARAMS, data),
        HEADER_MISMATCH | UNSUPPORTED_VERSION => (INTERNAL_ERROR, None),
        URL_REQUIRED => (INTERNAL_ERROR, data.map(|it| json!({ "urlRequired": it }))),
        MISSING_CAPABILITY => (MISSING_CAPABILITY, data),
        code => (code, data),
    };
    ProtocolError {
        code,
        message,
        data,
    }
}
