//! What can be wrong with the settings, for the person who wrote them.

use std::{error::Error as _, fmt, io, net::SocketAddr, path::PathBuf};
use thiserror::Error;

/// Everything that is wrong with the settings.
#[derive(Debug)]
pub struct ConfigError {
    /// Never empty; those of the settings file in the file's order.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
            let mut source = problem.source();
            while let Some(cause) = source {
                write!(f, ": {cause}")?;
                source = cause.source();
            }
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// One thing that is wrong with the settings.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// A value has the wrong shape.
    #[error("{place}: expected {expected}{}", found.as_ref().map_or(String::new(), |it| format!(", found {it}")))]
    Value {
        /// Where it stands.
        place: Place,
        /// What would be right.
        expected: &'static str,
        /// What is there; `None` for a secret.
        found: Option<String>,
    },
    /// The file has a key that means nothing.
    #[error("{place} is not a setting{}", suggestion.as_ref().map_or(String::new(), |it| format!("; did you mean `{it}`?")))]
    UnknownKey {
        /// Where it stands.
        place: Place,
        /// The key that was probably meant.
        suggestion: Option<&'static str>,
    },
    /// The file holds a token.
    #[error(
        "{place} doesn't belong in a settings file; put the token into the variable `CLOPEN_MCP_TOKEN`, or leave it to the file `token` in the data folder"
    )]
    TokenInFile {
        /// Where it stands.
        place: Place,
    },
    /// The file is not TOML.
    #[error("{}:{line}:{column}: not TOML: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// The file that was asked for can't be read.
    #[error("{place}: can't read the settings file `{}`", path.display())]
    Named {
        /// Who asked for it.
        place: Place,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file that is there can't be read.
    #[error("can't read the settings file `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Everybody on the network could call.
    #[error(
        "{place}: without tokens the bridge may only listen on this machine, and `{listen}` is open to others; listen on `127.0.0.1:{}`, or let callers show a token", listen.port()
    )]
    NoAuthInTheOpen {
        /// What switched tokens off.
        place: Place,
        /// The address.
        listen: SocketAddr,
    },
    /// Nothing says where to put the data.
    #[error(
        "no folder for the data is known, since this user has no home folder here; name one with `--data`, `CLOPEN_MCP_DATA` or the key `data`"
    )]
    NoDataFolder,
}

impl Problem {
    /// Says where in the settings file it is; (0, 0) where it is elsewhere.
    pub(super) fn position(&self) -> (usize, usize) {
        match self {
            Self::Value { place, .. }
            | Self::UnknownKey { place, .. }
            | Self::TokenInFile { place }
            | Self::NoAuthInTheOpen { place, .. } => match place {
                Place::File { line, column, .. } => (*line, *column),
                Place::Flag(_) | Place::Variable(_) => (0, 0),
            },
            Self::Syntax { line, column, .. } => (*line, *column),
            Self::Named { .. } | Self::Unreadable { .. } | Self::NoDataFolder => (0, 0),
        }
    }
}

/// Where a setting stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the command line.
    Flag(&'static str),
    /// In the environment.
    Variable(String),
    /// In the settings file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// The key, with the tables that it is in.
        key: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "`{name}`"),
            Self::Variable(name) => write!(f, "`{name}`"),
            Self::File {
                path,
                line,
                column,
                key,
            } => write!(
                f,
                "{}:{line}:{column}: `{}`",
                path.display(),
                key.escape_debug()
            ),
        }
    }
}

/// Returns the candidate that is likely to be meant.
pub(super) fn closest<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len() / 3)
        .min()
        .map(|(_, candidate)| candidate)
}
