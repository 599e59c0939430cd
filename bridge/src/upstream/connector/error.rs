//! What can go wrong with an external server, in words for whoever has to do something about it.

use super::{
    ears::Ears,
    mask::Masks,
    message::{Failure, Outcome},
};
use serde_json::{Value, value::RawValue};
use std::time::Duration;
use thiserror::Error;

/// How many letters of a server's words stand in an error.
const LONGEST_MESSAGE: usize = 1_000;
/// How many bytes of data an error keeps.
const LARGEST_DATA: usize = 16 * 1024;

/// Why there is no connection, or no result.
#[derive(Clone, Debug, Error)]
pub enum UpstreamError {
    /// The address can't be one. Trying again won't help.
    #[error("the address of server `{server}` can't be used: {reason}")]
    BadAddress {
        /// The server.
        server: String,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// The program could not be started. Trying again won't help.
    #[error("could not start `{program}` for server `{server}`: {reason}")]
    NotStarted {
        /// The server.
        server: String,
        /// The program.
        program: String,
        /// What the system says, and what to do.
        reason: String,
    },
    /// The program ended, or stopped to listen or to speak.
    #[error(
        "server `{server}` {how}, so `{method}` got no answer{}; check its command and what its environment needs",
        last_words(said)
    )]
    Ended {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// How, for example "ended with exit code 3".
        how: String,
        /// The end of what it wrote to its error output; may be empty.
        said: String,
    },
    /// The server could not be reached, or the connection broke.
    #[error(
        "could not ask server `{server}` at `{origin}` for `{method}`: {reason}; check that it runs and that its URL is right"
    )]
    Unreachable {
        /// The server.
        server: String,
        /// Where it is: scheme, host and port of its URL.
        origin: String,
        /// What was asked.
        method: String,
        /// What happened.
        reason: String,
        /// Whether there was a connection, so that the server may have done what was asked.
        was_connected: bool,
    },
    /// The server took too long. It was told to stop.
    #[error(
        "server `{server}` did not answer `{method}` within {after:?}{}; it may be overloaded, or need a longer limit",
        last_words(said)
    )]
    TimedOut {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// How long it had.
        after: Duration,
        /// The end of what it wrote to its error output; may be empty.
        said: String,
    },
    /// The server wants to know who asks, or knows and says no.
    #[error(
        "server `{server}` refuses `{method}` with status {status}; sign in with `clopen-mcp auth login {server}`, or check the token that it is given"
    )]
    Unauthorized {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// 401 or 403.
        status: u16,
        /// Its `WWW-Authenticate`, which says where to log in.
        challenge: Option<String>,
    },
    /// The server has forgotten the session. Nothing was done: connect again, then ask again.
    #[error(
        "server `{server}` has lost the session, and did not do `{method}`; connect to it again"
    )]
    SessionLost {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
    },
    /// The server answered with a status that means failure.
    #[error(
        "server `{server}` answered `{method}` with status {status}{}",
        quoted(body)
    )]
    Status {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// The status.
        status: u16,
        /// The beginning of what it said, or where it points; may be empty.
        body: String,
    },
    /// The server answered with an error of JSON-RPC.
    #[error("server `{server}` refused `{method}`: {message} (code {code})")]
    Refused {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// The code; -32603 where it gave none.
        code: i64,
        /// Its words, bounded and printable.
        message: String,
        /// What it says besides, unless that is much.
        data: Option<Box<Value>>,
    },
    /// The answer is larger than the limit.
    #[error("server `{server}` answered `{method}` with more than {limit} bytes; ask for less")]
    TooLarge {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// How large it may be.
        limit: usize,
    },
    /// The answer is none of the protocol.
    #[error("server `{server}` answered `{method}` with {what}; check that it speaks MCP")]
    Malformed {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
        /// What it answered with.
        what: String,
    },
    /// The parameters can't be written as JSON.
    #[error("could not write the parameters of `{method}` for server `{server}`: {reason}")]
    Unsendable {
        /// The server.
        server: String,
        /// What was to be asked.
        method: String,
        /// Why.
        reason: String,
    },
    /// The connection was closed from our side.
    #[error(
        "the connection to server `{server}` was closed before `{method}` was answered; connect to it again"
    )]
    Closed {
        /// The server.
        server: String,
        /// What was asked.
        method: String,
    },
}

fn last_words(said: &str) -> String {
    if said.is_empty() {
        String::new()
    } else {
        format!(" (its last words: `{said}`)")
    }
}

fn quoted(body: &str) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!(": `{body}`")
    }
}

/// Makes of an answer what the caller gets.
pub(super) fn result(
    method: &str,
    outcome: Outcome,
    ears: &Ears,
) -> Result<Box<RawValue>, UpstreamError> {
    match outcome {
        Outcome::Done(result) => Ok(result),
        Outcome::Refused(failure) => Err(refused(method, &failure, ears)),
        Outcome::Nothing => Err(UpstreamError::Malformed {
            server: ears.server().to_owned(),
            method: method.to_owned(),
            what: "neither a result nor an error".to_owned(),
        }),
    }
}

/// Makes of an error of JSON-RPC what the caller gets.
pub(super) fn refused(method: &str, failure: &Failure, ears: &Ears) -> UpstreamError {
    UpstreamError::Refused {
        server: ears.server().to_owned(),
        method: method.to_owned(),
        code: failure.code,
        message: ears.masks().beginning(&failure.message, LONGEST_MESSAGE),
        data: data(failure.data.as_deref(), ears.masks()),
    }
}

fn data(data: Option<&RawValue>, masks: &Masks) -> Option<Box<Value>> {
    let data = data.map(RawValue::get);
    let data = data.filter(|it| it.len() <= LARGEST_DATA)?;
    let data = serde_json::from_str(data).ok();
    data.map(|it| Box::new(masks.masked(it)))
}
