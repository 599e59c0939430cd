//! The sessions of clients up to 2025-11-25: entries of a map, kept in the store too, so that a client goes on after the
//! bridge has restarted. Only a session with an open stream or a call under way has more than its entry.

use super::rpc::{self, Answer};
use crate::store::{DatabaseError, Store, StoredSession, now};
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use tool_runtime::{Cancellation, Level};

/// How long a session may be unused. At rest it costs little, and people come back after a weekend.
pub(super) const IDLE: Duration = Duration::from_hours(72);

/// How many sessions there may be.
pub(super) const MOST: usize = 20_000;

/// How many messages may wait for a client that reads its stream slowly.
const WAITING: usize = 64;

/// All sessions of this process.
#[derive(Debug)]
pub(super) struct Sessions {
    open: RwLock<HashMap<Box<str>, Arc<Session>>>,
    store: Option<Store>,
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
    client_info: Box<str>,
    created_at: i64,
    last_seen_at: AtomicI64,
    kept: Mutex<Kept>,
    live: Mutex<Option<Box<Live>>>,
}

/// What a client has asked for, and expects to stay.
#[derive(Clone, Debug, Default)]
struct Kept {
    level: Option<Level>,
    subscriptions: BTreeSet<String>,
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
    pub(super) fn new(store: Option<Store>) -> Self {
        Self {
            open: RwLock::default(),
            store,
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
        if self.count() >= MOST {
            return Err(SessionError::Full);
        }
        let time = now();
        let session = Session {
            id: new_id().into(),
            principal: principal.into(),
            version,
            capabilities: capabilities.into(),
            client_info: client_info.into(),
            created_at: time,
            last_seen_at: AtomicI64::new(time),
            kept: Mutex::default(),
            live: Mutex::default(),
        };
        let session = Arc::new(session);
        self.save(&session).await?;
        self.write().insert(session.id.clone(), session.clone());
        Ok(session)
    }

    /// Finds a principal's session; another's is as good as none.
    pub(super) async fn find(
        &self,
        id: &str,
        principal: &str,
    ) -> Result<Option<Arc<Session>>, SessionError> {
        let open = self.read().get(id).cloned();
        let found = match (open, &self.store) {
            (Some(session), _) => Some(session),
            (None, Some(store)) => match store.find_session(id).await? {
                Some(stored) => self.restore(stored),
                None => None,
            },
            (None, None) => None,
        };
        let found = found.filter(|it| *it.principal == *principal);
        if let Some(session) = &found {
            session.last_seen_at.store(now(), Ordering::Relaxed);
        }
        Ok(found)
    }

    fn restore(&self, stored: StoredSession) -> Option<Arc<Session>> {
        let session = Session {
            id: stored.id.into(),
            principal: stored.principal.into(),
            version: Version::of(&stored.version)?,
            capabilities: stored.capabilities.into(),
            client_info: stored.client_info.into(),
            created_at: stored.created_at,
            last_seen_at: AtomicI64::new(stored.last_seen_at),
            kept: Mutex::new(Kept {
                level: stored.level.as_deref().and_then(level_of),
                subscriptions: stored.subscriptions,
            }),
            live: Mutex::default(),
        };
        let mut open = self.write();
        // Two requests of one client may come at once after a restart.
        let session = open
            .entry(session.id.clone())
            .or_insert_with(|| Arc::new(session));
        Some(session.clone())
    }

    /// Keeps what a client has asked for.
    pub(super) async fn save(&self, session: &Session) -> Result<(), SessionError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let kept = session.kept().clone();
        let stored = StoredSession {
            id: session.id.to_string(),
            principal: session.principal.to_string(),
            version: session.version.as_str().to_owned(),
            client_info: session.client_info.to_string(),
            capabilities: session.capabilities.to_string(),
            level: kept.level.map(|it| level_name(it).to_owned()),
            subscriptions: kept.subscriptions,
            created_at: session.created_at,
            last_seen_at: session.last_seen_at.load(Ordering::Relaxed),
        };
        Ok(store.save_session(&stored).await?)
    }

    /// Ends a session: its streams close and its calls are stopped.
    pub(super) async fn close(&self, session: &Session) -> Result<(), SessionError> {
        self.write().remove(&session.id);
        session.end();
        if let Some(store) = &self.store {
            store.delete_session(&session.id).await?;
        }
        Ok(())
    }

    /// Forgets what nobody has used for long, and notes in the store what somebody has.
    pub(super) async fn sweep(&self) -> Result<(), SessionError> {
        let since = now() - i64::try_from(IDLE.as_millis()).unwrap_or(i64::MAX);
        let mut seen = Vec::new();
        self.write().retain(|id, session| {
            let last_seen_at = session.last_seen_at.load(Ordering::Relaxed);
            let stays = last_seen_at >= since || session.is_busy();
            if stays {
                seen.push((id.to_string(), last_seen_at));
            } else {
                session.end();
            }
            stays
        });
        if let Some(store) = &self.store {
            store.touch_sessions(&seen).await?;
            store.delete_sessions_idle_since(since).await?;
        }
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.read().len()
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

impl Session {
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

    pub(super) fn set_level(&self, level: Level) {
        self.kept().level = Some(level);
    }

    pub(super) fn subscribe(&self, uri: &str) {
        self.kept().subscriptions.insert(uri.to_owned());
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.kept().subscriptions.remove(uri);
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

const LEVELS: [(&str, Level); 8] = [
    ("debug", Level::Debug),
    ("info", Level::Info),
    ("notice", Level::Notice),
    ("warning", Level::Warning),
    ("error", Level::Error),
    ("critical", Level::Critical),
    ("alert", Level::Alert),
    ("emergency", Level::Emergency),
];

/// Reads the protocol's word for a level.
pub(super) fn level_of(name: &str) -> Option<Level> {
    let found = LEVELS.iter().find(|(known, _)| *known == name);
    found.map(|(_, level)| *level)
}

/// Returns the protocol's word for a level.
pub(super) fn level_name(level: Level) -> &'static str {
    let found = LEVELS.iter().find(|(_, known)| *known == level);
    found.map_or("info", |(name, _)| name)
}

/// A name that can't be guessed.
fn new_id() -> String {
    format!("{:016x}{:016x}", random(), random())
}

fn random() -> u64 {
    getrandom::u64().expect("the system has a source of randomness")
}
