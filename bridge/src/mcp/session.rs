//! The sessions of clients up to 2025-11-25: entries of a map, kept in the store too, so that a client goes on after the
//! bridge has restarted, and at another bridge on the same store. Only a session with an open stream or a call under way
//! has more than its entry.

use super::{
    rpc::{self, Answer},
    sightings::ClientInfo,
};
use crate::{
    config::Limits,
    engines::Engine,
    store::{DatabaseError, Store, StoredSession, now},
};
use serde_json::{Value, value::RawValue};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use tool_runtime::{Cancellation, Level};

/// How long an entry is taken to be as the store has it: what another bridge does to a session is seen after this time at
/// the latest, and on PostgreSQL by the next request.
pub(super) const CHECKED: Duration = Duration::from_secs(2);

/// How long an unused entry stays in memory where the store has it too.
const RESTING: Duration = Duration::from_mins(10);

/// How many messages may wait for a client that reads its stream slowly.
const WAITING: usize = 64;

/// All sessions of this process.
#[derive(Debug)]
pub(super) struct Sessions {
    open: RwLock<HashMap<Box<str>, Arc<Session>>>,
    store: Option<Store>,
    /// How many the store had when it was last counted, and what was opened and closed here since. While the store is
    /// being counted, none is opened or closed: one would count twice.
    stored: tokio::sync::RwLock<AtomicUsize>,
    most: usize,
    idle: Duration,
}

/// One client's session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: Box<str>,
    /// On whose behalf it was opened; nobody else may use it.
    pub(super) principal: Box<str>,
    pub(super) version: Version,
    /// What the client can do, as JSON.
    pub(super) capabilities: Box<str>,
    /// The engine that its client is, where that is known.
    pub(super) engine: Option<&'static Engine>,
    last_seen_at: AtomicI64,
    /// When the entry was last as the store had it.
    checked_at: AtomicI64,
    kept: Mutex<Kept>,
    live: Mutex<Option<Box<Live>>>,
}

/// What a client has asked for, and expects to stay.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) level: Option<Level>,
    pub(super) subscriptions: BTreeSet<String>,
    /// Counts what was changed here, so that what was read before is not put in its place.
    changes: u32,
}

/// What only a session with a stream or a call has.
#[derive(Debug, Default)]
struct Live {
    /// The stream for what belongs to no request.
    stream: Option<mpsc::Sender<Vec<u8>>>,
    /// Calls under way, by the JSON of their id.
    running: HashMap<String, Cancellation>,
    /// Our own requests, by id.
    asked: HashMap<String, oneshot::Sender<Result<Value, Value>>>,
    last_id: u64,
}

/// The versions that have sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
}

impl Version {
    pub(super) const LATEST: Self = Self::V2025_11_25;

    pub(super) fn of(text: &str) -> Option<Self> {
        let all = [
            Self::V2024_11_05,
            Self::V2025_03_26,
            Self::V2025_06_18,
            Self::V2025_11_25,
        ];
        all.into_iter().find(|it| it.as_str() == text)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }
}

/// Why there is no session.
#[derive(Debug)]
pub(super) enum SessionError {
    /// There are too many.
    Full,
    /// The store failed.
    Store(DatabaseError),
}

impl From<DatabaseError> for SessionError {
    fn from(error: DatabaseError) -> Self {
        Self::Store(error)
    }
}

impl Sessions {
    pub(super) fn new(store: Option<Store>, limits: &Limits) -> Self {
        Self {
            open: RwLock::default(),
            store,
            stored: tokio::sync::RwLock::default(),
            most: limits.sessions,
            idle: limits.session_idle,
        }
    }

    /// Opens a session; it is in the store before the client hears of it.
    pub(super) async fn open(
        &self,
        principal: &str,
        version: Version,
        capabilities: String,
        client_info: String,
    ) -> Result<Arc<Session>, SessionError> {
        let count = self.stored.read().await;
        let known = self.read().len().max(count.load(Ordering::Relaxed));
        if known >= self.most {
            return Err(SessionError::Full);
        }
        let time = now();
        let stored = StoredSession {
            id: new_id(),
            principal: principal.to_owned(),
            version: version.as_str().to_owned(),
            client_info,
            capabilities,
            level: None,
            subscriptions: BTreeSet::new(),
            created_at: time,
            last_seen_at: time,
        };
        if let Some(store) = &self.store {
            store.save_session(&stored).await?;
            count.fetch_add(1, Ordering::Relaxed);
        }
        let session = Arc::new(Session::new(stored, version));
        self.write().insert(session.id.clone(), session.clone());
        Ok(session)
    }

    /// Finds a principal's session; another's is as good as none.
    pub(super) async fn find(
        &self,
        id: &str,
        principal: &str,
    ) -> Result<Option<Arc<Session>>, SessionError> {
        let time = now();
        let open = {
            let open = self.read();
            let session = open.get(id);
            // Under the lock, so that a sweep doesn't take it for unused.
            if let Some(session) = session.filter(|it| *it.principal == *principal) {
                session.last_seen_at.store(time, Ordering::Relaxed);
            }
            session.cloned()
        };
        let found = match (open, &self.store) {
            // Where bridges share a database, the next request may come to any of them.
            (Some(session), Some(store)) if store.has_others() || !session.is_checked(time) => {
                self.check(store, session).await?
            }
            (None, Some(store)) => match store.find_session(id).await? {
                Some(stored) => self.restore(stored, time),
                None => None,
            },
            (open, _) => open,
        };
        Ok(found.filter(|it| *it.principal == *principal))
    }

    fn restore(&self, stored: StoredSession, time: i64) -> Option<Arc<Session>> {
        let version = Version::of(&stored.version)?;
        let session = Session::new(stored, version);
        session.last_seen_at.store(time, Ordering::Relaxed);
        let mut open = self.write();
        // Two requests of one client may come at once after a restart.
        let session = open
            .entry(session.id.clone())
            .or_insert_with(|| Arc::new(session));
        Some(session.clone())
    }

    /// Brings an entry to what the store has; one that another bridge has ended ends here too.
    async fn check(
        &self,
        store: &Store,
        session: Arc<Session>,
    ) -> Result<Option<Arc<Session>>, SessionError> {
        let changes = session.kept().changes;
        if let Some(stored) = store.find_session(&session.id).await? {
            session.take(stored, changes);
            return Ok(Some(session));
        }
        self.forget(&session);
        Ok(None)
    }

    /// Checks the sessions that are busy, which may make no request for long.
    pub(super) async fn check_busy(&self) -> Result<(), SessionError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let time = now();
        let busy: HashMap<String, (Arc<Session>, u32)> = self
            .read()
            .values()
            .filter(|it| !it.is_checked(time) && it.is_busy())
            .map(|it| (it.id.to_string(), (it.clone(), it.kept().changes)))
            .collect();
        let ids: Vec<&str> = busy.keys().map(String::as_str).collect();
        let mut found: HashMap<String, StoredSession> = store
            .find_sessions(&ids)
            .await?
            .into_iter()
            .map(|it| (it.id.clone(), it))
            .collect();
        for (id, (session, changes)) in busy {
            match found.remove(&id) {
                Some(stored) => session.take(stored, changes),
                None => self.forget(&session),
            }
        }
        Ok(())
    }

    /// Has the entry of a session checked before it is next used: another bridge has done something to it.
    pub(super) fn doubt(&self, id: &str) {
        if let Some(session) = self.read().get(id) {
            session.checked_at.store(0, Ordering::Relaxed);
        }
    }

    /// Changes what a client has asked for. Says whether the session is still there.
    pub(super) async fn change(
        &self,
        session: &Session,
        change: impl Fn(&mut Kept) + Send + Sync,
    ) -> Result<bool, SessionError> {
        if let Some(store) = &self.store {
            let of_stored = |stored: &mut StoredSession| {
                let mut kept = Kept::of(stored);
                change(&mut kept);
                stored.level = kept.level.map(|it| it.name().to_owned());
                stored.subscriptions = kept.subscriptions;
            };
            if !store.change_session(&session.id, of_stored).await? {
                self.forget(session);
                return Ok(false);
            }
        }
        let mut kept = session.kept();
        change(&mut kept);
        kept.changes = kept.changes.wrapping_add(1);
        Ok(true)
    }

    /// Ends a session: its streams close and its calls are stopped.
    pub(super) async fn close(&self, session: &Session) -> Result<(), SessionError> {
        if let Some(store) = &self.store {
            let count = self.stored.read().await;
            if store.delete_session(&session.id).await? {
                let less = |count: usize| Some(count.saturating_sub(1));
                let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
        }
        self.forget(session);
        Ok(())
    }

    fn forget(&self, session: &Session) {
        self.write().remove(&session.id);
        session.end();
    }

    /// Forgets what nobody has used for long, and notes in the store what somebody has.
    pub(super) async fn sweep(&self) -> Result<(), SessionError> {
        let time = now();
        let ago = |it: Duration| time - i64::try_from(it.as_millis()).unwrap_or(i64::MAX);
        let since = ago(self.idle);
        let resting_since = match &self.store {
            Some(_) => since.max(ago(RESTING)),
            None => since,
        };
        let mut seen = Vec::new();
        self.write().retain(|id, session| {
            let is_busy = session.is_busy();
            if is_busy {
                session.last_seen_at.store(time, Ordering::Relaxed);
            }
            let last_seen_at = session.last_seen_at.load(Ordering::Relaxed);
            if last_seen_at >= since {
                seen.push((id.to_string(), last_seen_at));
            }
            is_busy || last_seen_at >= resting_since
        });
        if let Some(store) = &self.store {
            store.touch_sessions(&seen).await?;
            store.delete_sessions_idle_since(since).await?;
            let mut count = self.stored.write().await;
            let counted = usize::try_from(store.count_sessions().await?);
            *count.get_mut() = counted.unwrap_or(usize::MAX);
        }
        Ok(())
    }

    /// Returns the sessions that have a stream open.
    pub(super) fn listening(&self) -> Vec<Arc<Session>> {
        let open = self.read();
        let listening = open.values().filter(|it| it.has_stream());
        listening.cloned().collect()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<Box<str>, Arc<Session>>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Box<str>, Arc<Session>>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn of(stored: &mut StoredSession) -> Self {
        Self {
            level: stored.level.as_deref().and_then(Level::named),
            subscriptions: std::mem::take(&mut stored.subscriptions),
            changes: 0,
        }
    }
}

impl Session {
    fn new(mut stored: StoredSession, version: Version) -> Self {
        let kept = Kept::of(&mut stored);
        let client_info: Option<&RawValue> = serde_json::from_str(&stored.client_info).ok();
        Self {
            engine: ClientInfo::of(client_info).engine(),
            id: stored.id.into(),
            principal: stored.principal.into(),
            version,
            capabilities: stored.capabilities.into(),
            last_seen_at: AtomicI64::new(stored.last_seen_at),
            checked_at: AtomicI64::new(now()),
            kept: Mutex::new(kept),
            live: Mutex::default(),
        }
    }

    /// Says whether the entry is as the store has it, as far as anybody can tell. A clock that was put back says no.
    fn is_checked(&self, time: i64) -> bool {
        let age = time.abs_diff(self.checked_at.load(Ordering::Relaxed));
        u128::from(age) < CHECKED.as_millis()
    }

    /// Takes what the store had, unless something was changed here since it was asked.
    fn take(&self, mut stored: StoredSession, changes: u32) {
        let mut kept = self.kept();
        if kept.changes == changes {
            *kept = Kept {
                changes,
                ..Kept::of(&mut stored)
            };
            self.checked_at.store(now(), Ordering::Relaxed);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on what only a busy session has; an entry that is idle again is given back.
    fn live<T>(&self, work: impl FnOnce(&mut Live) -> T) -> T {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let mut busy = live.take().unwrap_or_default();
        let done = work(&mut busy);
        if busy.stream.is_some() || !busy.running.is_empty() || !busy.asked.is_empty() {
            *live = Some(busy);
        }
        done
    }

    fn is_busy(&self) -> bool {
        self.live(|it| it.stream.is_some() || !it.running.is_empty())
    }

    /// The least level that the client wants to read; everything, while it hasn't said.
    pub(super) fn level(&self) -> Level {
        self.kept().level.unwrap_or(Level::Debug)
    }

    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        self.kept().subscriptions.contains(uri)
    }

    /// Opens the stream for what belongs to no request; an older one ends.
    pub(super) fn open_stream(&self) -> mpsc::Receiver<Vec<u8>> {
        let (stream, messages) = mpsc::channel(WAITING);
        self.live(|it| it.stream = Some(stream));
        messages
    }

    fn has_stream(&self) -> bool {
        self.live(|it| {
            it.stream = it.stream.take().filter(|stream| !stream.is_closed());
            it.stream.is_some()
        })
    }

    /// Sends what belongs to no request, if the client listens.
    pub(super) fn send(&self, message: Vec<u8>) {
        self.live(|it| {
            if let Some(stream) = &it.stream {
                // A client that reads so slowly will list again when it comes back.
                let _ = stream.try_send(message);
            }
        });
    }

    /// Notes a call under way, so that it can be taken back by its id.
    pub(super) fn start(self: &Arc<Self>, id: &str, cancellation: &Cancellation) -> Running {
        self.live(|it| it.running.insert(id.to_owned(), cancellation.clone()));
        Running {
            session: self.clone(),
            id: id.to_owned(),
        }
    }

    /// Takes a call back; one that has ended already stays as it is.
    pub(super) fn cancel(&self, id: &str) {
        self.live(|it| {
            if let Some(cancellation) = it.running.get(id) {
                cancellation.cancel();
            }
        });
    }

    /// Makes a request of ours: its message, and where its answer comes in.
    pub(super) fn ask(self: &Arc<Self>, method: &str, params: &Value) -> (Vec<u8>, Asked) {
        let (answer, coming) = oneshot::channel();
        let id = self.live(|it| {
            it.last_id += 1;
            let id = format!("clopen-mcp-{:016x}-{}", random(), it.last_id);
            it.asked.insert(id.clone(), answer);
            id
        });
        let message = rpc::request(&id, method, params);
        let session = self.clone();
        (
            message,
            Asked {
                session,
                id,
                coming,
            },
        )
    }

    /// Takes in a client's answer; one to no question of ours is nothing.
    pub(super) fn answer(&self, answer: Answer) {
        let Ok(id) = serde_json::from_str::<String>(answer.id.get()) else {
            return;
        };
        if let Some(asked) = self.live(|it| it.asked.remove(&id)) {
            let _ = asked.send(answer.outcome);
        }
    }

    fn end(&self) {
        self.live(|it| {
            for cancellation in it.running.values() {
                cancellation.cancel();
            }
            *it = Live::default();
        });
    }
}

/// A request of ours, until it is answered or dropped.
#[derive(Debug)]
pub(super) struct Asked {
    session: Arc<Session>,
    id: String,
    coming: oneshot::Receiver<Result<Value, Value>>,
}

impl Asked {
    /// Waits for the client's answer; `None` if the session ends before.
    pub(super) async fn answer(mut self) -> Option<Result<Value, Value>> {
        (&mut self.coming).await.ok()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.session.live(|it| it.asked.remove(&self.id));
    }
}

/// A call under way, until it is dropped.
#[derive(Debug)]
pub(super) struct Running {
    session: Arc<Session>,
    id: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.session.live(|it| it.running.remove(&self.id));
    }
}

/// A name that can't be guessed.
fn new_id() -> String {
    format!("{:016x}{:016x}", random(), random())
}

fn random() -> u64 {
    getrandom::u64().expect("the system has a source of randomness")
}
