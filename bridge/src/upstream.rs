//! External servers: each is a server like our own to whoever calls.

mod approval;
mod connector;
mod entry;
mod failure;
mod health;
mod items;
mod line;
mod lists;
mod probe;
mod promises;
mod provider;
mod relay;
mod server;
mod sign_in;

pub use approval::Held;
pub use connector::{
    Address, Client, Connector, ConnectorError, Era, Journals, Limits, Listener, News, Opening,
    Refusal, Talk, UpstreamError, param_headers,
};
pub use entry::{Entry, EntryError, Origin};
pub use failure::ExternalError;
pub use probe::{Finding, Probe};

use crate::{
    credentials::{SignIns, Vault},
    store::{Approval, ExternalServer, Store, now},
};
use failure::Failure;
use line::{Use, Wanted};
use lists::Heard;
use relay::{Params, Relay, WaitingCalls};
use serde_json::{Map, Value, value::RawValue};
use server::Upstream;
use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tool_runtime::{Caller, Change, Context, ToolError};

/// How long a server that says that its lists have changed may go on changing them.
const SETTLED: Duration = Duration::from_millis(500);

/// How long all pages of all lists may take.
const LISTING: Duration = Duration::from_mins(2);

/// How long to wait before a server that has failed is asked once more for the same call.
const ONCE_MORE: Duration = Duration::from_millis(500);

/// All external servers. Clones are the same.
#[derive(Clone, Debug)]
pub struct Upstreams(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    connector: Connector,
    sign_ins: SignIns,
    /// How long a call may take, of servers for which that was set.
    timeouts: BTreeMap<String, Duration>,
    all: RwLock<BTreeMap<String, Arc<Upstream>>>,
    /// What has changed since somebody asked.
    changes: Mutex<BTreeSet<Change>>,
    changed: Notify,
    waiting: WaitingCalls,
    /// Ends what is being started; nothing more is started then.
    closing: CancellationToken,
}

impl Upstreams {
    /// Makes room for the servers of a store; `take` takes them. `timeouts` says how long the calls of some may take, by
    /// name.
    pub fn new(
        store: Store,
        connector: Connector,
        sign_ins: SignIns,
        timeouts: BTreeMap<String, Duration>,
    ) -> Self {
        Self(Arc::new(Shared {
            store,
            connector,
            sign_ins,
            timeouts,
            all: RwLock::default(),
            changes: Mutex::default(),
            changed: Notify::new(),
            waiting: WaitingCalls::default(),
            closing: CancellationToken::new(),
        }))
    }

    /// Returns what signs in to them.
    pub fn sign_ins(&self) -> &SignIns {
        &self.0.sign_ins
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

    /// Takes what has been approved of the servers; says whether anything changed.
    pub fn take_approvals(&self, approvals: Vec<Approval>) -> bool {
        let mut approved: BTreeMap<String, Approval> = approvals
            .into_iter()
            .map(|it| (it.server.clone(), it))
            .collect();
        let mut has_changed = false;
        for upstream in self.all() {
            let of_it = approved.remove(upstream.name());
            let of_it = of_it.filter(|it| it.added_at == upstream.stored.added_at);
            has_changed |= upstream.note_approved(of_it.map(|it| it.tools));
        }
        has_changed
    }

    /// Approves the tools of a server as it last listed them; returns how many.
    pub async fn approve(&self, name: &str) -> Result<usize, ExternalError> {
        let upstream = self.find(name).ok_or_else(|| ExternalError::NoServer {
            name: name.to_owned(),
        })?;
        let tools = upstream.definitions();
        let tools = tools.ok_or_else(|| ExternalError::NotListed {
            name: name.to_owned(),
        })?;
        let approval = Approval {
            server: name.to_owned(),
            added_at: upstream.stored.added_at,
            tools,
            approved_at: now(),
        };
        let kept = self.0.store.save_approval(&approval).await;
        kept.map_err(|source| ExternalError::Keep {
            name: name.to_owned(),
            source,
        })?;
        let count = approval.tools.len();
        if upstream.note_approved(Some(approval.tools)) {
            self.tell_of_lists();
        }
        Ok(count)
    }

    /// Returns the tools of a server that are held back, since they are other than approved.
    pub fn held(&self, name: &str) -> Vec<Held> {
        let upstream = self.find(name);
        upstream.map(|it| it.held()).unwrap_or_default()
    }

    /// Asks the servers that have never listed anything, all at once; what went wrong stands in what they offer.
    pub async fn list_new(&self) {
        let new = self.everything().into_iter().filter(|it| it.is_new());
        let lists = new.map(|upstream| self.list_beside(upstream));
        for list in lists.collect::<Vec<_>>() {
            let _ = list.await;
        }
    }

    /// Asks a server what it offers, and keeps it; returns what had to be changed or left out of it.
    pub async fn list(&self, name: &str) -> Result<Vec<String>, ExternalError> {
        let upstream = self.find(name);
        let upstream = upstream.ok_or_else(|| ExternalError::NoServer {
            name: name.to_owned(),
        })?;
        self.list_of(&upstream).await
    }

    /// Ends what nobody has needed for long.
    pub async fn rest(&self) {
        self.0.waiting.sweep();
        for upstream in self.everything() {
            upstream.rest().await;
        }
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

    /// Hears what a server says that has changed, as long as a connection is of use.
    fn watch(&self, upstream: &Arc<Upstream>, used: &Use) {
        let (all, upstream) = (self.clone(), upstream.clone());
        let (client, forgotten) = (used.client().clone(), used.forgotten());
        tokio::spawn(async move {
            for uri in upstream.watched() {
                if let Err(error) = client.subscribe(&uri).await {
                    tracing::debug!(%error, "a resource can't be watched");
                }
            }
            loop {
                let news = tokio::select! {
                    () = client.closed() => return upstream.forget(&client),
                    () = forgotten.cancelled() => return,
                    news = client.news() => news,
                };
                match news {
                    News::Updated(uri) => all.tell(Change::Resource(uri)),
                    News::Tools | News::Prompts | News::Resources => {
                        // A server that says so all the time is asked now and then.
                        sleep(SETTLED).await;
                        let _ = all.list_beside(upstream.clone()).await;
                        if upstream.may_tell_again() {
                            all.tell_of_lists();
                        }
                    }
                }
            }
        });
    }

    /// Returns a connection on which callers can be asked this; starts one if there is none. A start goes on if nobody
    /// waits for it any more: whoever asks next finds it done.
    async fn open(&self, upstream: &Arc<Upstream>, wanted: &Wanted) -> Result<Use, ExternalError> {
        self.ready(wanted).await?;
        if let Some(used) = upstream.line(wanted) {
            return Ok(used);
        }
        let (all, started) = (self.clone(), upstream.clone());
        let wanted = wanted.clone();
        let start = tokio::spawn(async move {
            tokio::select! {
                biased;
                () = all.0.closing.cancelled() => Err(ExternalError::Stopping),
                used = all.start(&started, &wanted) => used,
            }
        });
        // A start that panicked has said so in the log.
        start.await.unwrap_or(Err(ExternalError::Stopping))
    }

    /// Does the same for a call, which waits no longer than it may take.
    async fn open_in_time(
        &self,
        upstream: &Arc<Upstream>,
        wanted: &Wanted,
    ) -> Result<Use, ExternalError> {
        // Where nobody signs in, nothing has to be looked up.
        if wanted.bearer.is_none()
            && let Some(used) = upstream.line(wanted)
        {
            return Ok(used);
        }
        let limit = self.call_limit(upstream.name());
        let opened = timeout(limit, self.open(upstream, wanted)).await;
        opened.unwrap_or_else(|_| {
            Err(ExternalError::Starting {
                name: upstream.name().to_owned(),
                limit,
            })
        })
    }

    async fn start(&self, upstream: &Arc<Upstream>, wanted: &Wanted) -> Result<Use, ExternalError> {
        let connector = self.connector(upstream.name());
        let version = wanted.version();
        let mut opened = upstream.open(&connector, wanted).await;
        if let Err(ExternalError::Upstream(error)) = &opened
            && self.is_renewed(wanted, version, error).await?
        {
            opened = upstream.open(&connector, wanted).await;
        }
        let (used, is_new) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let error = self.with_way_out(wanted, error).await;
                self.note_down(upstream, wanted, &error).await;
                return Err(error);
            }
        };
        if is_new {
            self.watch(upstream, &used);
        }
        Ok(used)
    }

    /// Returns what connects to a server, with the limit of its calls.
    fn connector(&self, name: &str) -> Connector {
        let connector = self.0.connector.clone();
        connector.with_call_limit(self.call_limit(name))
    }

    fn call_limit(&self, name: &str) -> Duration {
        let limit = self.0.timeouts.get(name).copied();
        limit.unwrap_or_else(|| self.0.connector.call_limit())
    }

    async fn note_down(&self, upstream: &Upstream, wanted: &Wanted, error: &ExternalError) {
        if matches!(error, ExternalError::NeedsSignIn { .. }) {
            // That one subject has to sign in concerns no other.
            let others = self.0.sign_ins.has_others(upstream.name()).await;
            if !wanted.is_own() || others {
                return;
            }
        }
        if upstream.note_down(error) {
            self.tell_of_lists();
        }
    }

    /// Makes a request on behalf of a caller. One that the server has not taken is made again on a new connection; one
    /// that may have been taken only if that does no harm.
    async fn relay(
        &self,
        upstream: &Arc<Upstream>,
        method: &'static str,
        params: &Params,
        schema: Option<&Map<String, Value>>,
        may_be_repeated: bool,
        context: &Context,
    ) -> Result<Box<RawValue>, Failure> {
        let (mut is_first, mut has_renewed, started) = (true, false, Instant::now());
        let wanted = self.of(upstream, context, context.client.capabilities());
        loop {
            let used = self.open_in_time(upstream, &wanted).await?;
            let trial = upstream.admit()?;
            let version = wanted.version();
            let relay = Relay {
                server: upstream.name(),
                client: used.client(),
                waiting: &self.0.waiting,
                method,
                params: params.clone(),
                headers: match (schema, &params.arguments) {
                    (Some(schema), Some(arguments)) if used.client().is_modern() => {
                        param_headers(schema, arguments)
                    }
                    _ => Vec::new(),
                },
                context,
            };
            let error = match relay.run().await {
                Err(Failure::External(ExternalError::Upstream(error))) => error,
                other => {
                    trial.worked();
                    return other;
                }
            };
            server::report::<()>(trial, Err(&error));
            if !has_renewed && self.is_renewed(&wanted, version, &error).await? {
                has_renewed = true;
                continue;
            }
            let is_lost = failure::is_lost(&error);
            if is_lost {
                upstream.forget(used.client());
            }
            let is_untaken = failure::was_not_taken(&error);
            let again = is_lost && (may_be_repeated || is_untaken)
                || failure::is_of_server(&error) && may_be_repeated;
            if !(is_first && again) {
                let limit = self.call_limit(upstream.name());
                let error = ExternalError::of_call(error, started.elapsed(), limit);
                let error = self.with_way_out(&wanted, error).await;
                // A call that needs more scopes says nothing of the others.
                if !matches!(error, ExternalError::NeedsSignIn { .. }) || wanted.has_no_token() {
                    self.note_down(upstream, &wanted, &error).await;
                }
                return Err(Failure::External(error));
            }
            is_first = false;
            if !is_lost {
                sleep(ONCE_MORE).await;
            }
        }
    }

    async fn list_of(&self, upstream: &Arc<Upstream>) -> Result<Vec<String>, ExternalError> {
        let (name, begun) = (upstream.name(), Instant::now());
        let _listing = upstream.listing.lock().await;
        // Whoever was before us has asked for both.
        if upstream.is_listed_since(begun) {
            return Ok(upstream.notes());
        }
        let wanted = self.own(upstream, Map::new());
        let version = wanted.version();
        let mut heard = self.hear(upstream, &wanted).await;
        if let Err(ExternalError::Upstream(error)) = &heard
            && self.is_renewed(&wanted, version, error).await?
        {
            heard = self.hear(upstream, &wanted).await;
        }
        let heard = match heard {
            Ok(heard) => heard,
            Err(error) => {
                let error = self.with_way_out(&wanted, error).await;
                self.note_down(upstream, &wanted, &error).await;
                return Err(error);
            }
        };
        upstream.note_listed(heard.good_for());
        // A server that is still loading may list nothing at first.
        if heard.offers_nothing() && upstream.server().tools.is_empty() {
            if upstream.note_empty() {
                self.tell_of_lists();
            }
            return Ok(Vec::new());
        }
        let json = serde_json::to_string(&heard).expect("lists of JSON are JSON");
        let keep = |source| ExternalError::Keep {
            name: name.to_owned(),
            source,
        };
        let (store, added_at, now) = (&self.0.store, upstream.stored.added_at, now());
        if !upstream.is_of_workspace() {
            let noted = store.note_listed(name, added_at, &json, now).await;
            noted.map_err(keep)?;
            upstream.note_listed_at(Some(now));
        }
        let is_back = upstream.come_back();
        if upstream.note_heard(&json) {
            upstream.offer(&heard);
            self.tell_of_lists();
        } else if is_back {
            self.tell_of_lists();
        }
        Ok(upstream.notes())
    }

    async fn hear(
        &self,
        upstream: &Arc<Upstream>,
        wanted: &Wanted,
    ) -> Result<Heard, ExternalError> {
        let (name, used) = (upstream.name(), self.open(upstream, wanted).await?);
        let heard = timeout(LISTING, Heard::of(name, used.client())).await;
        heard.unwrap_or_else(|_| {
            Err(ExternalError::Unreadable {
                name: name.to_owned(),
                reason: format!("it takes longer than {LISTING:?}"),
            })
        })
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

    /// Waits until something has changed, and returns what.
    pub async fn changed(&self) -> BTreeSet<Change> {
        loop {
            let changes = {
                let mut changes = self.0.changes.lock();
                let changes = changes.as_deref_mut();
                changes.map(std::mem::take).unwrap_or_default()
            };
            if !changes.is_empty() {
                return changes;
            }
            self.0.changed.notified().await;
        }
    }

    fn tell(&self, change: Change) {
        let mut changes = self
            .0
            .changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        changes.insert(change);
        drop(changes);
        self.0.changed.notify_one();
    }

    fn tell_of_lists(&self) {
        for list in [Change::Tools, Change::Prompts, Change::Resources] {
            self.tell(list);
        }
    }

    /// Returns the names of all.
    pub fn names(&self) -> BTreeSet<String> {
        self.read().keys().cloned().collect()
    }

    /// Ends all connections and programs, for good.
    pub async fn close(&self) {
        self.0.closing.cancel();
        self.0.waiting.end();
        let closing = self
            .everything()
            .into_iter()
            .map(|it| async move { it.close().await });
        futures_util::future::join_all(closing).await;
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<Upstream>>> {
        self.0.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<Upstream>> {
        self.read().values().cloned().collect()
    }

    /// Returns all, and those of all workspaces.
    fn everything(&self) -> Vec<Arc<Upstream>> {
        let all = self.all().into_iter();
        all.flat_map(|it| {
            let mut together = it.of_workspaces();
            together.push(it);
            together
        })
        .collect()
    }

    fn find(&self, name: &str) -> Option<Arc<Upstream>> {
        self.read().get(name).cloned()
    }

    /// Finds the server of an item that was offered a moment ago.
    fn find_now(&self, name: &str, caller: &Caller) -> Result<Arc<Upstream>, ToolError> {
        let gone = || format!("the external server `{name}` has just been removed");
        let upstream = self.find(name).ok_or_else(gone)?;
        if upstream.differs_by_workspace() && !caller.project.is_empty() {
            return Ok(upstream.of_workspace(&caller.project).0);
        }
        Ok(upstream)
    }
}

impl ExternalServer {
    /// Whether it is the same entry, whatever it has listed since.
    fn is_same(&self, other: &Self) -> bool {
        self.added_at == other.added_at && self.sealed == other.sealed
    }
}
