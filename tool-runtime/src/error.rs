//! Why a tool failed (words for the model), and why a call did not happen.

use crate::name::Ambiguous;
use serde_json::Value;
use std::{
    error::Error as StdError,
    fmt::{self, Write as _},
    time::Duration,
};
use thiserror::Error;

/// Why a tool failed, in words for the model.
///
/// Like `anyhow::Error`, it takes any error with `?`, also a `String` or a `&str`, and for that reason doesn't
/// implement [`std::error::Error`] itself. The model reads the error and its causes, joined by `: `.
pub struct ToolError(Box<dyn StdError + Send + Sync>);

impl ToolError {
    /// Returns the error of a type, if that is what went wrong, or what is behind it.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        let mut next: Option<&(dyn StdError + 'static)> = Some(&*self.0);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = self.0.to_string();
        write!(f, "{last}")?;
        let mut source = self.0.source();
        while let Some(error) = source {
            let text = error.to_string();
            // Many errors already quote their cause.
            if !last.contains(&text) {
                write!(f, ": {text}")?;
            }
            last = text;
            source = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolError({self})")
    }
}

/// An argument that could not be made into its type.
#[derive(Debug, Error)]
#[error("{}", match .name { Some(name) => format!("argument `{name}`: {}", .reason), None => .reason.clone() })]
pub struct ArgumentError {
    /// The argument, where a single one is at fault.
    pub name: Option<&'static str>,
    /// What is wrong with it.
    pub reason: String,
}

/// One way in which arguments break the published schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer to the value at fault; empty for the arguments as a whole.
    pub path: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// An error in the protocol's own words. A client that speaks the protocol gets it as it is: an external server has given
/// it.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{message}")]
pub struct ProtocolError {
    /// The code of JSON-RPC.
    pub code: i64,
    /// What went wrong.
    pub message: String,
    /// Further facts.
    pub data: Option<Value>,
}

/// Why a call did not happen or did not end, in words for the model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// No tool has that name.
    #[error("there is no tool `{name}`{}", did_you_mean(.similar))]
    Unknown {
        /// The name as it was called.
        name: String,
        /// Names that look like it; never called instead.
        similar: Vec<String>,
    },
    /// Several tools could be meant.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// The tool exists, but is turned off.
    #[error("the tool `{name}` is turned off")]
    Disabled {
        /// The full name of the tool.
        name: String,
    },
    /// The tool exists, but is held back.
    #[error("the tool `{name}` is held back: {reason}")]
    Held {
        /// The full name of the tool.
        name: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The server of the tool could not start.
    #[error("the server `{server}` is not available: {reason}")]
    Unavailable {
        /// Name of the server.
        server: String,
        /// Why it could not start.
        reason: String,
    },
    /// The caller may not do this.
    #[error("`{tool}` needs the scope{} {}, which this caller has not been given", if .missing.len() == 1 { "" } else { "s" }, joined(.missing, "and"))]
    Forbidden {
        /// Name of the tool.
        tool: String,
        /// The scopes that the caller lacks.
        missing: Vec<String>,
    },
    /// The tool works on a project, and the call names none.
    #[error(
        "`{tool}` works on a project, and this call does not say which: connect with a URL that ends in `?project=NAME`"
    )]
    ProjectRequired {
        /// Name of the tool.
        tool: String,
    },
    /// The arguments break the published schema.
    #[error("the arguments of `{tool}` are not valid, nothing was done:{}", lines(.violations))]
    InvalidArguments {
        /// Name of the tool.
        tool: String,
        /// Everything that is wrong with them.
        violations: Vec<Violation>,
    },
    /// The call took too long and was stopped.
    #[error("`{tool}` was stopped after {}: that is the limit for one call", seconds(*.limit))]
    TimedOut {
        /// Name of the tool.
        tool: String,
        /// How long it was allowed to take.
        limit: Duration,
    },
    /// The tool must ask the client something that it can't answer.
    #[error("`{tool}` must ask the client (`{method}`), which this client can't answer")]
    ClientLacks {
        /// Name of the tool.
        tool: String,
        /// The method of the protocol.
        method: String,
    },
    /// An external server has refused the call.
    #[error("`{tool}` was refused by its server: {error}")]
    Protocol {
        /// Name of the tool.
        tool: String,
        /// What the server says.
        error: Box<ProtocolError>,
    },
    /// The caller took the call back.
    #[error("the call of `{tool}` was cancelled")]
    Cancelled {
        /// Name of the tool.
        tool: String,
    },
    /// The tool has a bug.
    #[error("`{tool}` failed by an internal error; the same call will probably fail again")]
    Panicked {
        /// Name of the tool.
        tool: String,
        /// What it said; for the record, not for the model.
        message: String,
    },
}

impl CallError {
    /// Returns a stable code, the same in every place where a person may meet the error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_tool",
            Self::Ambiguous(_) => "ambiguous_tool",
            Self::Disabled { .. } => "tool_disabled",
            Self::Held { .. } => "tool_held",
            Self::Unavailable { .. } => "server_unavailable",
            Self::Forbidden { .. } => "forbidden",
            Self::ProjectRequired { .. } => "project_required",
            Self::InvalidArguments { .. } => "invalid_arguments",
            Self::TimedOut { .. } => "timed_out",
            Self::ClientLacks { .. } => "client_lacks",
            Self::Protocol { .. } => "refused_by_server",
            Self::Cancelled { .. } => "cancelled",
            Self::Panicked { .. } => "panicked",
        }
    }
}

/// Joins names as `` `a`, `b` or `c` ``.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    joined(names, "or")
}

fn joined<S: AsRef<str>>(names: &[S], word: &str) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|it| format!("`{}`", it.as_ref()))
        .collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {word} {last}", others.join(", ")),
        None => String::new(),
    }
}

pub(crate) fn did_you_mean<S: AsRef<str>>(similar: &[S]) -> String {
    if similar.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", list(similar))
    }
}

fn lines(violations: &[Violation]) -> String {
    let mut lines = String::new();
    for violation in violations {
        write!(lines, "\n- {violation}").expect("writing to a String does not fail");
    }
    lines
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
