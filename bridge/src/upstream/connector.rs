//! Our side of the connections to external MCP servers, which are taken to be hostile and sloppy.
//!
//! A [`Connector`] opens connections, a [`Client`] is one of them. What a server says is bounded in size and in time,
//! its words in errors are made printable, and what it was given in confidence is masked in them. No request is ever
//! sent twice here: whoever knows whether it may be decides that.

mod client;
mod clients;
mod ears;
mod error;
mod greeting;
mod guardian;
mod http;
mod journal;
mod lines;
mod link;
mod listening;
mod mask;
mod message;
mod meta;
mod modern;
mod news;
mod ongoing;
mod parameters;
mod path;
mod process;
mod sse;
mod stdio;
mod tail;
mod talk;
mod waiting;
mod welcome;

pub use client::Client;
pub use error::UpstreamError;
pub use journal::Journals;
pub use news::News;
pub use parameters::param_headers;
pub(super) use parameters::wrong_param_headers;
pub use talk::{Listener, Refusal, Talk};

use crate::{credentials::Bearer, secret::Secret};
use clients::{Clients, origin};
use guardian::Guardian;
use path::LoginPath;
use reqwest::Url;
use rustls::ClientConfig;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use thiserror::Error;

/// The longest limit of time there is, so that what it ends at can be told.
const EVER: Duration = Duration::from_hours(24 * 365);

/// Where a server is and what it is given.
#[derive(Clone)]
pub enum Address {
    /// A program that speaks MCP on its input and output.
    Command {
        /// The program, by path or by a name that `PATH` knows.
        program: String,
        /// Its arguments, as they are: no shell reads them.
        arguments: Vec<String>,
        /// What it finds in its environment besides the few variables that every program gets.
        environment: BTreeMap<String, Secret>,
        /// Where it runs; in the bridge's own folder if that isn't said.
        folder: Option<PathBuf>,
    },
    /// An endpoint of HTTP, of whichever version.
    Http {
        /// The endpoint.
        url: String,
        /// What every request to it carries.
        headers: BTreeMap<String, Secret>,
    },
}

/// Arguments and URLs may hold secrets too: neither is shown in full.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command {
                program,
                arguments,
                environment,
                folder,
            } => f
                .debug_struct("Command")
                .field("program", program)
                .field("arguments", &arguments.len())
                .field("environment", &environment.keys().collect::<BTreeSet<_>>())
                .field("folder", folder)
                .finish(),
            Self::Http { url, headers } => f
                .debug_struct("Http")
                .field("origin", &Url::parse(url).ok().map(|it| origin(&it)))
                .field("headers", &headers.keys().collect::<BTreeSet<_>>())
                .finish(),
        }
    }
}

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// With a session that begins with `initialize`: all versions before 2026-07-28.
    Legacy,
    /// Every request says everything: 2026-07-28.
    Modern,
}

/// What is known of a connection before it is opened. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// What whoever uses the connection can be asked, for a server with sessions, which wants to know it at once: the
    /// protocol's `ClientCapabilities`.
    pub capabilities: Map<String, Value>,
    /// How the server was spoken to the last time. It is found out where that is unknown, or not so any more.
    pub known: Option<Era>,
    /// The token that every request carries, where somebody has signed in: the newest one at any time.
    pub bearer: Option<Bearer>,
}

/// How long and how large.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a server may take until it is known how it is spoken to, and what it says of itself.
    pub connect: Duration,
    /// How long it may take for a request, or be silent where it tells of its progress.
    pub call: Duration,
    /// How long a request may take even so.
    pub longest: Duration,
    /// How many bytes one message may have.
    pub message: usize,
}

/// Why there is no [`Connector`].
#[derive(Debug, Error)]
#[error("could not set up the HTTP client for external servers")]
pub struct ConnectorError(#[from] reqwest::Error);

/// Opens connections. Holds what they share: the HTTP clients, what programs find in their environment,
/// and what ends them when we are killed.
#[derive(Clone, Debug)]
pub struct Connector {
    limits: Limits,
    environment: BTreeMap<OsString, OsString>,
    clients: Clients,
    guardian: Arc<Guardian>,
    login_path: Arc<LoginPath>,
    journals: Option<Journals>,
}

impl Connector {
    /// Takes the bridge's own environment, of which programs get the harmless part, and how TLS is spoken.
    pub fn new(
        limits: Limits,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        tls: &ClientConfig,
    ) -> Result<Self, ConnectorError> {
        let environment = environment.into_iter();
        let bounded = |it: Duration| it.min(EVER);
        Ok(Self {
            limits: Limits {
                connect: bounded(limits.connect),
                call: bounded(limits.call),
                longest: bounded(limits.longest),
                message: limits.message,
            },
            environment: environment.filter(stdio::is_harmless).collect(),
            clients: Clients::new(tls)?,
            guardian: Arc::default(),
            login_path: Arc::default(),
            journals: None,
        })
    }

    /// Returns one that keeps what programs write to their error output.
    #[must_use]
    pub fn with_journals(mut self, journals: Journals) -> Self {
        self.journals = Some(journals);
        self
    }

    /// Returns one that is the same in all but how long a server may take for a request.
    #[must_use]
    pub fn with_call_limit(mut self, limit: Duration) -> Self {
        self.limits.call = limit;
        self.limits.longest = self.limits.longest.max(limit);
        self
    }

    /// Returns one that is the same in all but how long a server may take until it has answered `initialize`.
    #[must_use]
    pub fn with_connect_limit(mut self, limit: Duration) -> Self {
        self.limits.connect = limit;
        self
    }

    /// Returns how long a server may take for a request, or be silent where it tells of its progress.
    pub const fn call_limit(&self) -> Duration {
        self.limits.call
    }

    /// Starts the program or opens the session, and agrees on how to speak. `name` is what errors call the server.
    pub async fn connect(
        &self,
        name: &str,
        address: &Address,
        opening: &Opening,
    ) -> Result<Client, UpstreamError> {
        client::connect(self, name, address, opening).await
    }
}
