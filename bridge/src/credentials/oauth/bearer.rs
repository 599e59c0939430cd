//! The token that requests to a server carry on behalf of a subject: a place that always holds the newest one.

use crate::secret::Secret;
use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};
use tokio::{sync::Mutex, time::Instant};

/// A place for a token. Clones are the same.
#[derive(Clone)]
pub struct Bearer(Arc<Place>);

struct Place {
    server: String,
    url: String,
    subject: String,
    held: RwLock<Held>,
    turn: Mutex<Turn>,
}

#[derive(Clone, Default)]
pub(super) struct Held {
    pub(super) token: Option<Secret>,
    /// What it was before, which answers may still hold.
    pub(super) past: Option<Secret>,
    pub(super) version: i64,
    pub(super) due_at: Option<i64>,
}

/// What only one looks after at a time.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) looked_at: Option<Instant>,
    /// When a token was last renewed since the server refused it.
    pub(super) renewed_at: Option<Instant>,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer")
            .field("server", &self.0.server)
            .field("subject", &self.0.subject)
            .finish_non_exhaustive()
    }
}

impl Bearer {
    pub(super) fn new(server: &str, url: &str, subject: &str) -> Self {
        Self(Arc::new(Place {
            server: server.to_owned(),
            url: url.to_owned(),
            subject: subject.to_owned(),
            held: RwLock::default(),
            turn: Mutex::default(),
        }))
    }

    /// The token of now, where somebody has signed in.
    pub fn token(&self) -> Option<Secret> {
        self.held().token
    }

    /// What must not be shown of what the server says.
    pub fn secrets(&self) -> Vec<Secret> {
        let held = self.held();
        held.token.into_iter().chain(held.past).collect()
    }

    /// Tells tokens apart; whoever says that one was refused names it so.
    pub fn version(&self) -> i64 {
        self.held().version
    }

    /// On whose behalf.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    pub(super) fn server(&self) -> &str {
        &self.0.server
    }

    pub(super) fn url(&self) -> &str {
        &self.0.url
    }

    pub(super) fn turn(&self) -> &Mutex<Turn> {
        &self.0.turn
    }

    pub(super) fn held(&self) -> Held {
        let held = self.0.held.read();
        held.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn hold(&self, token: Option<Secret>, version: i64, due_at: Option<i64>) {
        let mut held = self.0.held.write().unwrap_or_else(PoisonError::into_inner);
        if held.version != version || held.token.is_some() != token.is_some() {
            held.past = held.token.take().or_else(|| held.past.take());
        }
        held.token = token;
        held.version = version;
        held.due_at = due_at;
    }
}
