//! A connection to an external server: for whom it is, and whether anybody uses it.

use super::connector::Client;
use crate::credentials::Bearer;
use serde_json::{Map, Value};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a connection may be of no use.
const IDLE: Duration = Duration::from_mins(10);

/// What a connection is wanted for.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// What the callers can be asked.
    pub(super) capabilities: Map<String, Value>,
    /// The token of the callers, where one can sign in: each subject has connections of its own.
    pub(super) bearer: Option<Bearer>,
}

impl Wanted {
    pub(super) fn subject(&self) -> &str {
        self.bearer.as_ref().map_or("", Bearer::subject)
    }

    /// Whether it is wanted by whoever runs the bridge.
    pub(super) fn is_own(&self) -> bool {
        self.subject().is_empty()
    }

    /// Whether nobody has signed in for whom it is wanted.
    pub(super) fn has_no_token(&self) -> bool {
        self.bearer.as_ref().is_none_or(|it| it.token().is_none())
    }

    /// Which token requests carry now.
    pub(super) fn version(&self) -> i64 {
        self.bearer.as_ref().map_or(0, Bearer::version)
    }
}

/// A connection, and whether it is of use.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) client: Client,
    /// Cancelled when no further call uses it, though it may not have ended: those under way go on.
    pub(super) forgotten: CancellationToken,
    under_way: AtomicUsize,
    used_at: Mutex<Instant>,
}

/// The use of a connection.
#[derive(Debug)]
pub(super) struct Use(Arc<Line>);

impl Use {
    pub(super) fn of(line: &Arc<Line>) -> Self {
        line.under_way.fetch_add(1, Ordering::Relaxed);
        Self(line.clone())
    }

    pub(super) fn client(&self) -> &Client {
        &self.0.client
    }

    pub(super) fn forgotten(&self) -> CancellationToken {
        self.0.forgotten.clone()
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        *self.0.used_at() = Instant::now();
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Line {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            forgotten: CancellationToken::new(),
            under_way: AtomicUsize::default(),
            used_at: Mutex::new(Instant::now()),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) == 0 && self.used_at().elapsed() >= IDLE
    }

    fn used_at(&self) -> MutexGuard<'_, Instant> {
        self.used_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
