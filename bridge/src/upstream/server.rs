//! One external server: what it offers, and the connections to it.

mod workspaces;

use super::{
    approval::{self, Held},
    connector::{Address, Client, Connector, Opening, UpstreamError},
    entry::{Entry, EntryError},
    failure::{self, ExternalError},
    health::{Health, Resting, Trial},
    items,
    line::{Line, Use, Wanted},
    lists::Heard,
    promises::Promises,
};
use crate::{
    credentials::{Bearer, SignIns, has_token},
    store::ExternalServer,
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tool_runtime::{Output, Server, Tool, Unavailable};

/// How often in a minute a server is believed that its lists have changed when they look the same.
const TOLD: usize = 10;

/// How often a server is asked again that lists nothing: it may be loading.
const ASKED_AGAIN: usize = 10;

const NO_WORKSPACE: &str = "it is another server in each project, and the caller names none: connect with a URL that ends in `?project=NAME`";

/// How many resources of a server are watched.
const MOST_WATCHED: usize = 1_000;

/// One external server.
pub(super) struct Upstream {
    pub(super) stored: ExternalServer,
    /// How it is reached, or why it can't be.
    entry: Result<Entry, String>,
    /// The only workspace that it is of.
    workspace: Option<String>,
    /// The same server in each workspace, where that is another one.
    workspaces: Mutex<BTreeMap<String, Arc<Upstream>>>,
    offered: RwLock<Arc<Server>>,
    notes: RwLock<Vec<String>>,
    /// What it has told, as it was kept.
    heard: RwLock<Option<String>>,
    /// What each of its tools has to be, if a person has approved them.
    approved: RwLock<Option<BTreeMap<String, String>>>,
    /// The tools that are not so, by name.
    held: RwLock<BTreeMap<String, Held>>,
    promises: Promises,
    /// By on whose behalf they are, and what was declared that their callers can be asked: a session can't take that back.
    lines: Mutex<BTreeMap<(String, String), Arc<Line>>>,
    /// Held by who opens a connection.
    opening: tokio::sync::Mutex<()>,
    is_modern: AtomicBool,
    health: Health,
    watched: Mutex<BTreeSet<String>>,
    /// Whether it was removed, or replaced by another of its name.
    is_gone: AtomicBool,
    /// Held by who asks for its lists.
    pub(super) listing: tokio::sync::Mutex<()>,
    /// When its lists were had, and until when they are good.
    listed: Mutex<Option<(Instant, Instant)>>,
    /// The tools that only run as tasks, on servers with sessions.
    only_tasks: RwLock<BTreeSet<String>>,
    /// How often it has listed nothing.
    was_empty: AtomicUsize,
    told: Mutex<VecDeque<Instant>>,
    /// When it last listed something, as the database says.
    listed_at: Mutex<Option<i64>>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({})", self.stored.name)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Upstream {
    pub(super) fn new(stored: ExternalServer, entry: Result<Entry, EntryError>) -> Self {
        Self::with(stored, entry.map_err(|error| error.to_string()))
    }

    fn with(stored: ExternalServer, entry: Result<Entry, String>) -> Self {
        let upstream = Self {
            offered: RwLock::new(Arc::new(nothing(&stored))),
            entry,
            workspace: None,
            workspaces: Mutex::default(),
            heard: RwLock::new(stored.listed.clone()),
            approved: RwLock::default(),
            held: RwLock::default(),
            promises: Promises::default(),
            listed_at: Mutex::new(stored.listed_at),
            stored,
            notes: RwLock::default(),
            lines: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            is_modern: AtomicBool::default(),
            health: Health::default(),
            watched: Mutex::default(),
            is_gone: AtomicBool::new(false),
            listing: tokio::sync::Mutex::default(),
            listed: Mutex::default(),
            was_empty: AtomicUsize::default(),
            only_tasks: RwLock::default(),
            told: Mutex::default(),
        };
        let listed = upstream.stored.listed.as_deref().and_then(Heard::read);
        let name = &upstream.stored.name;
        if let Err(reason) = &upstream.entry {
            upstream.note_unavailable(reason.clone());
        } else if upstream.differs_by_workspace() {
            upstream.note_unavailable(NO_WORKSPACE.to_owned());
        } else if let Some(listed) = listed {
            upstream.offer(&listed);
        } else {
            upstream.note_unavailable(format!(
                "it has not told its tools yet; `clopen-mcp servers check {name}` asks it"
            ));
        }
        upstream
    }

    pub(super) fn name(&self) -> &str {
        &self.stored.name
    }

    /// How it is reached.
    pub(super) fn entry(&self) -> Result<&Entry, ExternalError> {
        let entry = self.entry.as_ref();
        entry.map_err(|reason| ExternalError::Entry(reason.clone()))
    }

    /// Notes that it has answered, however often it has failed before.
    pub(super) fn note_well(&self) {
        self.health.forget();
    }

    /// Whether it has never told what it offers, and could be asked now.
    pub(super) fn is_new(&self) -> bool {
        let may_be_loading = self.was_empty.load(Ordering::Relaxed) <= ASKED_AGAIN;
        let can_be_asked = self.entry.is_ok() && !self.differs_by_workspace();
        let is_new = can_be_asked && !self.has_told() && may_be_loading;
        is_new && self.health.admit().is_ok()
    }

    /// Notes that it has listed nothing; says whether that is new.
    pub(super) fn note_empty(&self) -> bool {
        self.was_empty.fetch_add(1, Ordering::Relaxed);
        self.note_unavailable("it lists no tools".to_owned())
    }

    /// Returns what it has told, taken apart.
    fn heard(&self) -> Option<Heard> {
        let heard = self.heard.read();
        let heard = heard.unwrap_or_else(PoisonError::into_inner);
        heard.as_deref().and_then(Heard::read)
    }

    fn has_told(&self) -> bool {
        let heard = self.heard.read();
        heard.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The place of the token of a subject; `None` where nobody signs in to it.
    pub(super) fn bearer(&self, sign_ins: &SignIns, subject: &str) -> Option<Bearer> {
        match &self.entry.as_ref().ok()?.address {
            Address::Http { url, headers } if !has_token(headers) => {
                Some(sign_ins.bearer(self.name(), url, subject))
            }
            _ => None,
        }
    }

    /// Notes when it has listed something; says whether that is news.
    pub(super) fn note_listed_at(&self, at: Option<i64>) -> bool {
        let mut listed_at = locked(&self.listed_at);
        let is_news = at > *listed_at;
        *listed_at = at.max(*listed_at);
        is_news
    }

    /// Takes what another process has heard from it. One that has told another its lists is there again.
    pub(super) fn take_listed(&self, stored: &ExternalServer) -> bool {
        let is_news = self.note_listed_at(stored.listed_at);
        let Some(json) = stored.listed.as_deref().filter(|it| self.note_heard(it)) else {
            return is_news && self.come_back();
        };
        self.offer(&Heard::read(json).unwrap_or_default());
        true
    }

    /// Says whether this is other than what it offers, and is from now on what it offers.
    pub(super) fn note_heard(&self, json: &str) -> bool {
        let mut heard = self.heard.write().unwrap_or_else(PoisonError::into_inner);
        let is_another = heard.as_deref() != Some(json);
        *heard = Some(json.to_owned());
        is_another
    }

    pub(super) fn offer(&self, heard: &Heard) {
        self.is_modern.store(heard.is_modern, Ordering::Relaxed);
        let name: Arc<str> = self.name().into();
        let mut notes = Vec::new();
        for missing in &heard.missing {
            notes.push(format!(
                "`{name}` doesn't give all that it announces: {missing}"
            ));
        }
        let mut tools = items::tools(&name, &heard.tools, heard.is_modern, &mut notes);
        self.hold(&mut tools, &heard.tools);
        *self
            .only_tasks
            .write()
            .unwrap_or_else(PoisonError::into_inner) = heard.only_tasks();
        self.promises.forget();
        let (resources, templates) = (&heard.resources, &heard.templates);
        self.show(Server {
            version: heard.version.clone(),
            description: heard.instructions.clone(),
            tools,
            resources: items::resources(&name, resources, templates, &mut notes),
            unlisted: heard.has_resources.then(|| items::unlisted(&name)),
            prompts: items::prompts(&name, &heard.prompts, &mut notes),
            ..nothing(&self.stored)
        });
        *self.notes.write().unwrap_or_else(PoisonError::into_inner) = notes;
    }

    /// Holds back the tools that are other than approved.
    fn hold(&self, tools: &mut [Arc<Tool>], listed: &[Value]) {
        let held = match &*self.approved.read().unwrap_or_else(PoisonError::into_inner) {
            Some(approved) => approval::held(approved, listed),
            None => BTreeMap::new(),
        };
        for tool in tools.iter_mut().filter_map(Arc::get_mut) {
            tool.held = held.get(&tool.name).map(|it| it.reason(self.name()));
        }
        let mut before = self.held.write().unwrap_or_else(PoisonError::into_inner);
        for tool in held.keys().filter(|it| !before.contains_key(*it)) {
            tracing::warn!(
                server = self.name(),
                ?tool,
                "a tool is held back, since it is other than approved"
            );
        }
        *before = held;
    }

    /// Says in the log when a result is other than its tool promises.
    pub(super) fn hold_to_promise(
        &self,
        tool: &str,
        promised: &Arc<Map<String, Value>>,
        output: &Output,
        promise: items::Promise,
    ) {
        let wrapped = promise == items::Promise::Wrapped;
        if let Some(place) = self.promises.broken(tool, promised, output, wrapped) {
            let server = self.name();
            tracing::warn!(
                server,
                ?tool,
                ?place,
                "a result is other than its tool promises"
            );
        }
    }

    pub(super) fn held(&self) -> Vec<Held> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.values().cloned().collect()
    }

    /// Takes what was approved; says whether that is new.
    pub(super) fn note_approved(&self, tools: Option<BTreeMap<String, String>>) -> bool {
        let mut of_workspaces = false;
        for upstream in self.of_workspaces() {
            of_workspaces |= upstream.note_approved(tools.clone());
        }
        {
            let mut approved = self
                .approved
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            if *approved == tools {
                return of_workspaces;
            }
            *approved = tools;
        }
        let heard = self.heard();
        match heard.filter(|_| self.server().unavailable.is_none()) {
            Some(heard) => self.offer(&heard),
            None => return of_workspaces,
        }
        true
    }

    /// Returns what its tools say of themselves, if it has told any.
    pub(super) fn definitions(&self) -> Option<BTreeMap<String, String>> {
        let heard = self.heard()?;
        Some(approval::definitions(&heard.tools))
    }

    /// Offers the same as before, if it was out of reach.
    pub(super) fn come_back(&self) -> bool {
        let server = self.server();
        if server.unavailable.is_none() {
            return false;
        }
        let Some(heard) = self.heard() else {
            return false;
        };
        self.offer(&heard);
        true
    }

    /// One that is down keeps its tools listed, and calls say that it is. One that wants somebody to sign in doesn't.
    /// Says whether anything has changed.
    pub(super) fn note_down(&self, error: &ExternalError) -> bool {
        let wants_sign_in = matches!(
            error,
            ExternalError::Upstream(UpstreamError::Unauthorized { .. })
                | ExternalError::NeedsSignIn { .. }
        );
        if self.server().tools.is_empty() || wants_sign_in {
            self.note_unavailable(error.to_string())
        } else {
            false
        }
    }

    /// Says why it can't be used; says whether that is new.
    pub(super) fn note_unavailable(&self, reason: String) -> bool {
        let before = self.server();
        let is_new = before.unavailable.as_ref().map(|it| &it.reason) != Some(&reason);
        self.show(Server {
            unavailable: Some(Unavailable {
                reason,
                variable: None,
            }),
            version: before.version.clone(),
            description: before.description.clone(),
            // They are not listed, but who calls one hears why it can't be called.
            tools: before.tools.clone(),
            resources: before.resources.clone(),
            unlisted: before.unlisted.clone(),
            prompts: before.prompts.clone(),
            ..nothing(&self.stored)
        });
        is_new
    }

    fn show(&self, server: Server) {
        *self.offered.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(server);
    }

    pub(super) fn server(&self) -> Arc<Server> {
        let offered = self.offered.read();
        offered.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a tool must be called as a task.
    pub(super) fn only_runs_as_task(&self, tool: &str) -> bool {
        let only_tasks = self.only_tasks.read();
        only_tasks
            .unwrap_or_else(PoisonError::into_inner)
            .contains(tool)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let notes = self.notes.read();
        notes.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets a request ask it, unless it has failed too often.
    pub(super) fn admit(&self) -> Result<Trial<'_>, ExternalError> {
        let admitted = self.health.admit();
        admitted.map_err(|Resting { why, wait }| ExternalError::Resting {
            name: self.name().to_owned(),
            why,
            wait,
        })
    }

    /// Returns the connection on which callers can be asked this, and whether it is new: one is started if there is none.
    /// Whoever comes meanwhile waits for the same.
    pub(super) async fn open(
        &self,
        connector: &Connector,
        wanted: &Wanted,
    ) -> Result<(Use, bool), ExternalError> {
        let entry = self.entry()?;
        if entry.differs_by_workspace() {
            return Err(ExternalError::Entry(NO_WORKSPACE.to_owned()));
        }
        if let Some(used) = self.line(wanted) {
            return Ok((used, false));
        }
        let _opening = self.opening.lock().await;
        if let Some(used) = self.line(wanted) {
            return Ok((used, false));
        }
        if self.is_gone.load(Ordering::Relaxed) {
            let name = entry.name.clone();
            return Err(ExternalError::NoServer { name });
        }
        let trial = self.admit()?;
        let known = self.heard();
        let opening = Opening {
            capabilities: wanted.capabilities.clone(),
            known: known.map(|it| it.era()),
            bearer: wanted.bearer.clone(),
        };
        let connected = connector
            .connect(&entry.name, &entry.address, &opening)
            .await;
        let client = match connected {
            Ok(client) => client,
            Err(error) => {
                if matches!(error, UpstreamError::Unauthorized { .. }) {
                    trial.worked();
                } else {
                    trial.failed_to_start(&error.to_string());
                }
                return Err(error.into());
            }
        };
        trial.worked();
        self.is_modern.store(client.is_modern(), Ordering::Relaxed);
        let line = Arc::new(Line::new(client));
        let used = Use::of(&line);
        locked(&self.lines).insert(self.key(wanted), line);
        Ok((used, true))
    }

    /// Returns a live connection.
    pub(super) fn line(&self, wanted: &Wanted) -> Option<Use> {
        let lines = locked(&self.lines);
        let line = lines.get(&self.key(wanted))?;
        (!line.client.is_closed()).then(|| Use::of(line))
    }

    /// Without sessions, each request says what its caller can be asked, so that all share one connection.
    fn key(&self, wanted: &Wanted) -> (String, String) {
        let subject = wanted.subject().to_owned();
        let capabilities = &wanted.capabilities;
        if capabilities.is_empty() || self.is_modern.load(Ordering::Relaxed) {
            return (subject, String::new());
        }
        (subject, Value::Object(capabilities.clone()).to_string())
    }

    /// Forgets a connection that is of no use any more, unless another has taken its place.
    pub(super) fn forget(&self, lost: &Client) {
        for (_, line) in locked(&self.lines).extract_if(.., |_, it| it.client.is(lost)) {
            line.forgotten.cancel();
        }
    }

    /// Ends the connections that nobody has used for long. Those on which a resource is watched stay.
    pub(super) async fn rest(&self) {
        if !locked(&self.watched).is_empty() {
            return;
        }
        let idle: Vec<Arc<Line>> = {
            let mut lines = locked(&self.lines);
            lines
                .extract_if(.., |_, it| it.is_idle())
                .map(|it| it.1)
                .collect()
        };
        for line in idle {
            tracing::debug!(server = self.name(), "nobody needs the connection");
            line.client.close().await;
        }
    }

    pub(super) async fn close(&self) {
        // Who opens a connection at this moment would leave it open.
        let _opening = self.opening.lock().await;
        let lines = std::mem::take(&mut *locked(&self.lines));
        for line in lines.into_values() {
            line.client.close().await;
        }
    }

    /// Ends it for good, beside whatever else goes on.
    pub(super) fn end(self: &Arc<Self>) {
        self.is_gone.store(true, Ordering::Relaxed);
        for upstream in self.of_workspaces() {
            upstream.end();
        }
        let ended = self.clone();
        tokio::spawn(async move { ended.close().await });
    }

    /// Notes that a resource is watched; says whether that is new.
    pub(super) fn watches(&self, uri: &str) -> bool {
        let mut watched = locked(&self.watched);
        watched.len() < MOST_WATCHED && watched.insert(uri.to_owned())
    }

    pub(super) fn watched(&self) -> BTreeSet<String> {
        locked(&self.watched).clone()
    }

    /// Whether it is believed that something has changed which its lists don't show: now and then.
    pub(super) fn may_tell_again(&self) -> bool {
        let mut told = locked(&self.told);
        told.retain(|it| it.elapsed() < Duration::from_mins(1));
        let may = told.len() < TOLD;
        if may {
            told.push_back(Instant::now());
        }
        may
    }

    /// Whether its lists were had after a moment.
    pub(super) fn is_listed_since(&self, moment: Instant) -> bool {
        let listed = *locked(&self.listed);
        listed.is_some_and(|(at, _)| at > moment)
    }

    /// Notes that its lists have just been had.
    pub(super) fn note_listed(&self, good_for: Duration) {
        let now = Instant::now();
        *locked(&self.listed) = Some((now, now + good_for));
    }

    pub(super) fn is_listed_lately(&self) -> bool {
        let listed = *locked(&self.listed);
        listed.is_some_and(|(_, good_until)| Instant::now() < good_until)
    }
}

/// What an external server is to whoever calls, before it has told anything.
fn nothing(stored: &ExternalServer) -> Server {
    Server {
        name: stored.name.clone(),
        version: String::new(),
        description: String::new(),
        unavailable: None,
        tools: Vec::new(),
        resources: Vec::new(),
        unlisted: None,
        prompts: Vec::new(),
    }
}

/// Tells a trial what came of it.
pub(super) fn report<T>(trial: Trial<'_>, answered: Result<&T, &UpstreamError>) {
    match answered {
        Err(error) if failure::is_failure(error) => trial.failed(&error.to_string()),
        _ => trial.worked(),
    }
}
