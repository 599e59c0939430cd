//! External servers: each is a server like our own to whoever calls.

mod connector;
mod entry;
mod items;

pub use connector::{
    Address, Client, Connector, ConnectorError, Era, Limits, Listener, News, Opening, Refusal,
    Talk, UpstreamError,
};
pub use entry::{Entry, EntryError};

use crate::{
    credentials::Vault,
    store::{DatabaseError, ExternalServer, Store, now},
};
use items::{Listed, Promise};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    pin::Pin,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use thiserror::Error;
use tokio::{
    sync::{Mutex, Notify},
    task::JoinHandle,
    time::{Instant, timeout},
};
use tool_runtime::{
    ArgumentError, Arguments, BoxFuture, Context, Message, Output, Prompt, Provider, Resource,
    Server, Tool, ToolError, Unavailable,
};

/// How long a list of tools is good that the server doesn't say has changed.
const LISTED: Duration = Duration::from_mins(10);

/// How long a server that says that its tools have changed may go on changing them.
const SETTLED: Duration = Duration::from_millis(500);

/// How long all pages of a list may take.
const LISTING: Duration = Duration::from_mins(2);

/// How many bytes all pages of a list may have.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// How many pages a list of tools may have.
const MOST_PAGES: usize = 100;

/// All external servers. Clones are the same.
#[derive(Clone, Debug)]
pub struct Upstreams(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    connector: Connector,
    all: RwLock<BTreeMap<String, Arc<Upstream>>>,
    /// Told when what they offer has changed.
    changed: Notify,
    /// Whether no connection is started any more.
    is_closed: AtomicBool,
}

/// One external server.
struct Upstream {
    stored: ExternalServer,
    /// How it is reached, or why it can't be.
    entry: Result<Entry, String>,
    offered: RwLock<Arc<Server>>,
    notes: RwLock<Vec<String>>,
    /// The list that it offers, as it came.
    heard: RwLock<Option<String>>,
    client: Mutex<Option<Client>>,
    /// Whether it was removed, or replaced by another of its name.
    is_gone: AtomicBool,
    listed_at: RwLock<Option<Instant>>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({})", self.stored.name)
    }
}

/// Why it isn't known what an external server offers.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListError {
    /// There is no such server.
    #[error("there is no external server `{name}`")]
    NoServer {
        /// The name.
        name: String,
    },
    /// It can't be reached, or refuses.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// Its secrets can't be opened.
    #[error("{0}")]
    Entry(String),
    /// What it lists is no list of tools.
    #[error("`{name}` gives no list of tools that can be read: {reason}")]
    Unreadable {
        /// The server.
        name: String,
        /// Why.
        reason: String,
    },
    /// The list can't be kept.
    #[error("can't keep what `{name}` has listed")]
    Keep {
        /// The server.
        name: String,
        /// Why.
        source: DatabaseError,
    },
}

impl Upstreams {
    /// Makes room for the servers of a store; `take` takes them.
    pub fn new(store: Store, connector: Connector) -> Self {
        Self(Arc::new(Shared {
            store,
            connector,
            all: RwLock::default(),
            changed: Notify::new(),
            is_closed: AtomicBool::new(false),
        }))
    }

    /// Takes the servers as the database keeps them: those that are new or were changed anew, and those that are gone
    /// end. Says whether anything changed.
    pub fn take(&self, stored: Vec<ExternalServer>, vault: &Vault) -> bool {
        let mut taken = BTreeMap::new();
        let mut before = self.read().clone();
        let mut has_changed = false;
        for stored in stored {
            let name = stored.name.clone();
            let upstream = match before.remove(&name) {
                Some(known) if known.stored.is_same(&stored) => {
                    has_changed |= known.take_listed(&stored);
                    known
                }
                other => {
                    has_changed = true;
                    if let Some(replaced) = other {
                        replaced.end();
                    }
                    let entry = Entry::opened(&stored, vault);
                    Arc::new(Upstream::new(stored, entry))
                }
            };
            taken.insert(name, upstream);
        }
        has_changed |= !before.is_empty();
        *self.0.all.write().unwrap_or_else(PoisonError::into_inner) = taken;
        for gone in before.into_values() {
            gone.end();
        }
        has_changed
    }

    /// Asks the servers that have never listed anything, all at once; what went wrong stands in what they offer.
    pub async fn list_new(&self) {
        let new = self.all().into_iter().filter(|it| it.is_new());
        let lists = new.map(|upstream| self.list_beside(upstream));
        for list in lists.collect::<Vec<_>>() {
            let _ = list.await;
        }
    }

    /// Asks a server what it offers, and keeps it; returns what had to be changed or left out of it.
    pub async fn list(&self, name: &str) -> Result<Vec<String>, ListError> {
        let upstream = self.find(name);
        let upstream = upstream.ok_or_else(|| ListError::NoServer {
            name: name.to_owned(),
        })?;
        self.list_of(&upstream).await
    }

    /// Asks a server beside whatever else goes on.
    fn list_beside(&self, upstream: Arc<Upstream>) -> JoinHandle<()> {
        let all = self.clone();
        let list: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            if let Err(error) = all.list_of(&upstream).await {
                tracing::warn!(%error, "an external server doesn't say what it offers");
            }
        });
        tokio::spawn(list)
    }

    /// Asks a server again each time that it says that its tools have changed, as long as a connection lasts.
    fn watch(&self, upstream: &Arc<Upstream>, client: Client) {
        let (all, upstream) = (self.clone(), upstream.clone());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = client.closed() => return,
                    news = client.news() => if news != News::Tools { continue },
                }
                // A server that says so all the time is asked now and then.
                tokio::time::sleep(SETTLED).await;
                let _ = all.list_beside(upstream.clone()).await;
            }
        });
    }

    /// Returns the connection to a server; starts one if there is none.
    async fn client(&self, upstream: &Arc<Upstream>) -> Result<Client, ListError> {
        if self.0.is_closed.load(Ordering::Relaxed) {
            return Err(ListError::Entry("the bridge is stopping".to_owned()));
        }
        let (client, is_new) = upstream.client(&self.0.connector).await?;
        if is_new {
            self.watch(upstream, client.clone());
        }
        Ok(client)
    }

    /// Calls a tool. A call that the server has not taken is made again on a new connection; one that may have been
    /// taken only if its tool says that this does no harm.
    async fn call_on(
        &self,
        upstream: &Arc<Upstream>,
        call: &Call<'_>,
        may_be_repeated: bool,
        promise: Promise,
    ) -> Result<Output, ToolError> {
        let client = self.client(upstream).await?;
        let answered = match client.request("tools/call", call).await {
            Err(error) if error.is_lost() && (may_be_repeated || error.was_not_taken()) => {
                upstream.forget(&client).await;
                let client = self.client(upstream).await?;
                client.request("tools/call", call).await
            }
            answered => answered,
        };
        items::output(&answered?, promise)
    }

    async fn list_of(&self, upstream: &Arc<Upstream>) -> Result<Vec<String>, ListError> {
        let listed = match self.client(upstream).await {
            Ok(client) => match timeout(LISTING, upstream.listed(&client)).await {
                Ok(listed) => listed,
                Err(_) => Err(ListError::Unreadable {
                    name: upstream.stored.name.clone(),
                    reason: format!("it takes longer than {LISTING:?}"),
                }),
            },
            Err(error) => Err(error),
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                upstream.is_down(&error);
                self.0.changed.notify_one();
                return Err(error);
            }
        };
        // A server that is still loading may list nothing at first.
        if listed.is_empty() && upstream.server().tools.is_empty() {
            upstream.is_unavailable("it lists no tools".to_owned());
            self.0.changed.notify_one();
            return Ok(Vec::new());
        }
        let name = &upstream.stored.name;
        let json = Value::Array(listed.clone()).to_string();
        let keep = |source| ListError::Keep {
            name: name.clone(),
            source,
        };
        let (store, added_at) = (&self.0.store, upstream.stored.added_at);
        let noted = store.note_listed(name, added_at, &json, now()).await;
        noted.map_err(keep)?;
        if upstream.hears(&json) {
            upstream.offer(&listed);
            self.0.changed.notify_one();
        }
        Ok(upstream.notes())
    }

    /// Returns what had to be changed or left out of what the servers offer.
    pub fn notes(&self) -> Vec<String> {
        let all = self.all().into_iter();
        all.flat_map(|it| it.notes()).collect()
    }

    /// Counts the tools of a server.
    pub fn count(&self, name: &str) -> usize {
        self.find(name).map_or(0, |it| it.server().tools.len())
    }

    /// Waits until what they offer has changed.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Returns the names of all.
    pub fn names(&self) -> BTreeSet<String> {
        self.read().keys().cloned().collect()
    }

    /// Ends all connections and programs, for good.
    pub async fn close(&self) {
        self.0.is_closed.store(true, Ordering::Relaxed);
        for upstream in self.all() {
            upstream.close().await;
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<Upstream>>> {
        self.0.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<Upstream>> {
        self.read().values().cloned().collect()
    }

    fn find(&self, name: &str) -> Option<Arc<Upstream>> {
        self.read().get(name).cloned()
    }
}

#[derive(Serialize)]
struct Page<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    arguments: &'a RawValue,
}

impl UpstreamError {
    /// Whether the connection is of no use any more.
    fn is_lost(&self) -> bool {
        matches!(
            self,
            Self::SessionLost { .. }
                | Self::Ended { .. }
                | Self::Unreachable { .. }
                | Self::Closed { .. }
        )
    }

    /// Whether the server is known to have done nothing.
    fn was_not_taken(&self) -> bool {
        matches!(self, Self::SessionLost { .. })
    }
}

impl ExternalServer {
    /// Whether it is the same entry, whatever it has listed since.
    fn is_same(&self, other: &Self) -> bool {
        self.added_at == other.added_at && self.sealed == other.sealed
    }
}

impl Upstream {
    fn new(stored: ExternalServer, entry: Result<Entry, EntryError>) -> Self {
        let upstream = Self {
            offered: RwLock::new(Arc::new(server(&stored, Vec::new(), None))),
            entry: entry.map_err(|error| error.to_string()),
            heard: RwLock::new(stored.listed.clone()),
            stored,
            notes: RwLock::default(),
            client: Mutex::default(),
            is_gone: AtomicBool::new(false),
            listed_at: RwLock::default(),
        };
        let listed = upstream.stored.listed.as_deref();
        let listed: Option<Vec<Value>> = listed.and_then(|it| serde_json::from_str(it).ok());
        let name = &upstream.stored.name;
        match (&upstream.entry, listed) {
            (Err(reason), _) => upstream.is_unavailable(reason.clone()),
            (Ok(_), Some(listed)) => upstream.offer(&listed),
            (Ok(_), None) => upstream.is_unavailable(format!(
                "it has not told its tools yet; `clopen-mcp servers check {name}` asks it"
            )),
        }
        upstream
    }

    fn is_new(&self) -> bool {
        self.entry.is_ok() && self.stored.listed.is_none()
    }

    /// Takes what another process has heard from it.
    fn take_listed(&self, stored: &ExternalServer) -> bool {
        let Some(json) = stored.listed.as_deref().filter(|it| self.hears(it)) else {
            return false;
        };
        let listed: Option<Vec<Value>> = serde_json::from_str(json).ok();
        self.offer(&listed.unwrap_or_default());
        true
    }

    /// Says whether a list is another one than it offers, and is from now on the one that it offers.
    fn hears(&self, json: &str) -> bool {
        let mut heard = self.heard.write().unwrap_or_else(PoisonError::into_inner);
        let is_another = heard.as_deref() != Some(json);
        *heard = Some(json.to_owned());
        is_another
    }

    fn offer(&self, listed: &[Value]) {
        let Listed { tools, notes } = items::tools(&self.stored.name, listed);
        self.show(server(&self.stored, tools, None));
        *self.notes.write().unwrap_or_else(PoisonError::into_inner) = notes;
    }

    /// A server that is down keeps its tools listed; calls say that it is.
    fn is_down(&self, error: &ListError) {
        if self.server().tools.is_empty() {
            self.is_unavailable(error.to_string());
        }
    }

    fn is_unavailable(&self, reason: String) {
        self.show(server(&self.stored, Vec::new(), Some(reason)));
    }

    fn show(&self, server: Server) {
        *self.offered.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(server);
    }

    fn server(&self) -> Arc<Server> {
        let offered = self.offered.read();
        offered.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn notes(&self) -> Vec<String> {
        let notes = self.notes.read();
        notes.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the connection, and whether it is new: one is started if there is none. Whoever comes meanwhile waits for
    /// the same.
    async fn client(&self, connector: &Connector) -> Result<(Client, bool), ListError> {
        let entry = self.entry.as_ref();
        let entry = entry.map_err(|reason| ListError::Entry(reason.clone()))?;
        let mut client = self.client.lock().await;
        if self.is_gone.load(Ordering::Relaxed) {
            let name = entry.name.clone();
            return Err(ListError::NoServer { name });
        }
        if let Some(client) = client.as_ref().filter(|it| !it.is_closed()) {
            return Ok((client.clone(), false));
        }
        let new = connector
            .connect(&entry.name, &entry.address, &Opening::default())
            .await?;
        Ok((client.insert(new).clone(), true))
    }

    async fn close(&self) {
        if let Some(client) = self.client.lock().await.take() {
            client.close().await;
        }
    }

    /// Ends it for good, beside whatever else goes on.
    fn end(self: &Arc<Self>) {
        self.is_gone.store(true, Ordering::Relaxed);
        let ended = self.clone();
        tokio::spawn(async move { ended.close().await });
    }

    /// Forgets a connection that is of no use any more, unless another has taken its place.
    async fn forget(&self, lost: &Client) {
        let mut client = self.client.lock().await;
        client.take_if(|it| it.is(lost));
    }

    /// Asks for all pages of the list.
    async fn listed(&self, client: &Client) -> Result<Vec<Value>, ListError> {
        #[derive(Deserialize)]
        struct Answer {
            tools: Vec<Value>,
            #[serde(default, rename = "nextCursor")]
            next_cursor: Option<String>,
        }
        let mut listed = Vec::new();
        let mut bytes = 0;
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let page = Page {
                cursor: cursor.as_deref(),
            };
            let answer = client.request("tools/list", &page).await?;
            bytes += answer.get().len();
            if bytes > MOST_BYTES {
                return Err(ListError::Unreadable {
                    name: self.stored.name.clone(),
                    reason: format!("it has more than {MOST_BYTES} bytes"),
                });
            }
            let answer: Answer =
                serde_json::from_str(answer.get()).map_err(|error| ListError::Unreadable {
                    name: self.stored.name.clone(),
                    reason: error.to_string(),
                })?;
            listed.extend(answer.tools);
            // A server that gives the cursor again that it was given would be asked for ever.
            let next = answer.next_cursor.filter(|it| !it.is_empty());
            if next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        *self
            .listed_at
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(listed)
    }

    fn is_listed_lately(&self) -> bool {
        let listed_at = self.listed_at.read();
        let listed_at = *listed_at.unwrap_or_else(PoisonError::into_inner);
        listed_at.is_some_and(|it| it.elapsed() < LISTED)
    }
}

/// What an external server is to whoever calls.
fn server(stored: &ExternalServer, tools: Vec<Arc<Tool>>, reason: Option<String>) -> Server {
    Server {
        name: stored.name.clone(),
        version: String::new(),
        description: String::new(),
        unavailable: reason.map(|reason| Unavailable {
            reason,
            variable: None,
        }),
        tools,
        resources: Vec::new(),
        prompts: Vec::new(),
    }
}

impl Provider for Upstreams {
    fn servers(&self) -> Vec<Arc<Server>> {
        self.all().iter().map(|it| it.server()).collect()
    }

    fn call<'a>(
        &'a self,
        tool: &Tool,
        arguments: &Arguments<'_>,
        _: &'a Context,
    ) -> Result<BoxFuture<'a, Result<Output, ToolError>>, ArgumentError> {
        let upstream = self.find(&tool.server);
        let (server, name) = (tool.server.clone(), tool.name.clone());
        let arguments = arguments.json().to_owned();
        let is_safe = |hint: Option<bool>| hint == Some(true);
        let may_be_repeated = is_safe(tool.hints.read_only) || is_safe(tool.hints.idempotent);
        let promise = Promise::of(tool);
        Ok(Box::pin(async move {
            let gone = || format!("the external server `{server}` has just been removed");
            let upstream = upstream.ok_or_else(gone)?;
            let arguments = RawValue::from_string(arguments)?;
            let call = Call {
                name: &name,
                arguments: &arguments,
            };
            let output = self
                .call_on(&upstream, &call, may_be_repeated, promise)
                .await;
            if output.is_ok() && !upstream.is_listed_lately() {
                self.list_beside(upstream);
            }
            output
        }))
    }

    fn read<'a>(
        &'a self,
        resource: &'a Resource,
        _: BTreeMap<String, String>,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        let reason = format!("`{}` is of no server that can be read from", resource.uri);
        Box::pin(async move { Err(reason.into()) })
    }

    fn prompt<'a>(
        &'a self,
        prompt: &'a Prompt,
        _: BTreeMap<String, String>,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Vec<Message>, ToolError>> {
        let reason = format!("`{}` is of no server that has prompts", prompt.name);
        Box::pin(async move { Err(reason.into()) })
    }
}
