//! Puts everything together; the only place that constructs.

use crate::{
    catalog,
    config::{self, Config},
    credentials::{Network, SignIns, Vault, VaultError},
    mcp::{self, FrontDoor},
    secret::Secret,
    skills::{self, Skills, SkillsError},
    store::{
        DatabaseError, KeyError, MirroredServer, OpenError, ServiceTokenError, Store, Switch, now,
        service_token,
    },
    telemetry::CallLog,
    upstream::{self, Connector, ConnectorError, Journals, Upstreams},
    web,
};
use axum::{Router, serve::ListenerExt};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fs, io,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tool_runtime::{
    Caller, Change, Dispatcher, Environment, Limits, Provider, Registry, RegistryError, Selection,
    SelectionError, ServerSelection, Streams,
};

/// How long the answers of the last calls get to be sent. Without an open stream the end comes earlier.
const SENDING: Duration = Duration::from_millis(250);

/// How long streams that are still open get to close, after the calls have ended.
const CLOSING: Duration = Duration::from_secs(1);

/// How long an external server may take to start. What `npx` has to fetch first takes its time.
const CONNECT: Duration = Duration::from_mins(1);

/// How long a call of an external server may take that tells of its progress.
const LONGEST_CALL: Duration = Duration::from_hours(1);

/// How many bytes a message of an external server may have.
const MESSAGE: usize = 16 * 1024 * 1024;

/// The variable by which a program that a bridge has started knows of it.
const WITHIN: &str = "CLOPEN_MCP_WITHIN";

/// How often a bridge looks for connections that nobody needs, and asks servers that have never listed anything.
const REST: Duration = Duration::from_mins(1);

/// How often a bridge looks for what was switched on and off.
const LOOK: Duration = Duration::from_secs(1);

/// Why the bridge can't start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The servers in this program don't go together.
    #[error("the tool servers of this program don't go together")]
    Registry(#[from] RegistryError),
    /// The settings select what does not exist.
    #[error("the settings select what does not exist ({})", of_file(.file.as_ref()))]
    Selection {
        /// The settings file.
        file: Option<PathBuf>,
        /// What is unknown.
        source: SelectionError,
    },
    /// The store can't be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The store can't keep which servers there are, or say what is switched on.
    #[error("can't keep the list of servers in the database")]
    Servers(#[from] DatabaseError),
    /// The key for what stateless clients carry can't be had.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The skills can't be served.
    #[error("can't serve the skills")]
    Skills(#[from] SkillsError),
    /// The service token can't be had.
    #[error(transparent)]
    Token(#[from] ServiceTokenError),
    /// The address is taken.
    #[error(
        "`{address}` is taken by another program, perhaps another clopen-mcp; stop that one, or choose another address with `--listen HOST:PORT`"
    )]
    Taken {
        /// The address.
        address: SocketAddr,
    },
    /// The address can't be listened on.
    #[error("can't listen on `{address}`; choose another address with `--listen HOST:PORT`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The secrets of external servers can't be opened.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// External servers can't be reached over HTTP.
    #[error(transparent)]
    Connector(#[from] ConnectorError),
    /// The server stopped by itself.
    #[error("the HTTP server failed")]
    Serve(#[source] io::Error),
    /// The pipe can't be served.
    #[error("can't serve on standard input and output")]
    Pipe(#[source] io::Error),
}

fn of_file(file: Option<&PathBuf>) -> String {
    file.map_or_else(
        || "from variables".to_owned(),
        |it| it.display().to_string(),
    )
}

/// Makes the dispatcher of all servers that are linked into this program, with what the settings select and the user
/// has not switched off.
pub async fn dispatcher(
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<Arc<Dispatcher>, StartError> {
    let store = Store::open(&config.data, config.database_url.as_ref()).await?;
    let switches = store.switches().await?;
    let upstreams = upstreams(config, variables, &store).await?;
    dispatcher_with(config, variables, &switches, Some(upstreams)).await
}

/// Returns where it is kept what the programs of external servers write to their error output.
pub(crate) fn journals(config: &Config) -> Journals {
    Journals::new(config.data.join("logs"))
}

/// Makes the external servers of a store, as they last listed their tools.
pub(crate) async fn upstreams(
    config: &Config,
    variables: &BTreeMap<String, String>,
    store: &Store,
) -> Result<Upstreams, StartError> {
    let limits = upstream::Limits {
        connect: CONNECT,
        call: config.limits.call_timeout,
        longest: LONGEST_CALL.max(config.limits.call_timeout),
        message: MESSAGE,
    };
    let within = Within::of(config, variables);
    let environment = variables.iter().map(|(name, it)| (name.into(), it.into()));
    let environment = environment.chain(within.variable());
    let connector = Connector::new(limits, environment, &tls())?;
    let connector = connector.with_journals(journals(config));
    let network = Network::new(tls(), config.sign_in.allow_private, variables);
    let (data, settings) = (config.data.clone(), config.sign_in.clone());
    let sign_ins = SignIns::new(store.clone(), data, settings, network);
    let timeouts = config.timeouts.clone();
    let upstreams = Upstreams::new(store.clone(), connector, sign_ins, timeouts);
    let stored = store.external_servers().await?;
    // Without any, nobody needs a key.
    if !stored.is_empty() && !within.is_itself {
        upstreams.take(stored, &Vault::open(&config.data)?);
        upstreams.take_approvals(store.approvals().await?);
    }
    Ok(upstreams)
}

/// The bridges as whose external server this one runs, by their data folders. One that is its own serves no external ones:
/// it would start itself again and again.
struct Within {
    folders: Vec<PathBuf>,
    is_itself: bool,
}

impl Within {
    fn of(config: &Config, variables: &BTreeMap<String, String>) -> Self {
        let above = variables.get(WITHIN).map(env::split_paths);
        let mut folders: Vec<PathBuf> = above.into_iter().flatten().collect();
        let own = fs::canonicalize(&config.data).unwrap_or_else(|_| config.data.clone());
        let is_itself = folders.contains(&own);
        folders.push(own);
        Self { folders, is_itself }
    }

    /// The variable that tells programs which bridges they are within.
    fn variable(&self) -> Option<(OsString, OsString)> {
        // A folder whose name can't stand in a list is told to nobody.
        let folders = env::join_paths(&self.folders).ok()?;
        Some((WITHIN.into(), folders))
    }
}

/// Listens for people who come back from an authorization server, until what it returns is dropped. `None` if the address
/// is taken: by a bridge, which listens for them too.
pub(crate) async fn listen_for_sign_ins(
    sign_ins: &SignIns,
    address: SocketAddr,
) -> io::Result<Option<(SocketAddr, DropGuard)>> {
    let listener = match TcpListener::bind(address).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(None),
        bound => bound?,
    };
    let (address, stop) = (listener.local_addr()?, CancellationToken::new());
    let (router, stopped) = (web::sign_in_routes(sign_ins.clone()), stop.clone());
    let serving = axum::serve(listener, router)
        .with_graceful_shutdown(async move { stopped.cancelled().await });
    tokio::spawn(async move { serving.await });
    Ok(Some((address, stop.drop_guard())))
}

/// Makes the client of a registry of the settings.
pub(crate) fn registry(
    name: &str,
    registry: &config::Registry,
    patience: catalog::Patience,
) -> Result<catalog::Client, catalog::RegistryError> {
    let token = registry.token.as_ref();
    catalog::Client::new(name, &registry.url, token, &tls(), patience)
}

/// Makes the clients of where packages are fetched from: of npm, what `npx` will use too.
pub(crate) fn indexes(
    variables: &BTreeMap<String, String>,
) -> Result<catalog::Indexes, catalog::RegistryError> {
    let npm = ["npm_config_registry", "NPM_CONFIG_REGISTRY"];
    let npm = npm.iter().find_map(|it| variables.get(*it));
    let npm = npm.map_or("https://registry.npmjs.org", String::as_str);
    let client =
        |name, url| catalog::Client::new(name, url, None, &tls(), catalog::Patience::SHORT);
    Ok(catalog::Indexes {
        npm: client("npm", npm)?,
        pypi: client("PyPI", "https://pypi.org")?,
    })
}

pub(crate) async fn dispatcher_with(
    config: &Config,
    variables: &BTreeMap<String, String>,
    switches: &[Switch],
    upstreams: Option<Upstreams>,
) -> Result<Arc<Dispatcher>, StartError> {
    let environment = Environment::new(variables.clone());
    let registry = Registry::linked(&environment).await?;
    let limits = Limits {
        time: config.limits.call_timeout,
        output: config.limits.max_output,
    };
    let external = upstreams.as_ref().map(Upstreams::names).unwrap_or_default();
    let further = upstreams.map(|it| Arc::new(it) as Arc<dyn Provider>);
    let further = further.into_iter().collect();
    let dispatcher = Dispatcher::with(registry, further, limits, vec![Arc::new(CallLog)])?;
    // What the settings say of servers in this program must be true of them; others come and go.
    let ours = config
        .servers
        .iter()
        .filter(|(name, _)| !external.contains(*name));
    let ours = ours.map(|(name, it)| (name.clone(), it.clone())).collect();
    dispatcher
        .select(selection(&ours))
        .map_err(|source| StartError::Selection {
            file: config.file.clone(),
            source,
        })?;
    dispatcher.select_whatever_comes(with_switches(&config.servers, switches));
    for server in config.timeouts.keys().filter(|it| !external.contains(*it)) {
        if dispatcher.view().server(server).is_some() {
            tracing::warn!(%server, "its `timeout` is not used: only external servers have one");
        }
    }
    Ok(Arc::new(dispatcher))
}

fn selection(servers: &BTreeMap<String, config::ServerSelection>) -> Selection {
    servers
        .iter()
        .fold(Selection::all(), |selection, (name, it)| {
            let of_server = ServerSelection {
                enabled: it.enabled,
                only: it.tools.clone().map(|tools| tools.into_iter().collect()),
                without: it.without.iter().cloned().collect(),
                prefix: it.prefix.clone(),
            };
            selection.server(name, of_server)
        })
}

/// Turns off what the user switched off, unless the settings say something about the same thing. Switches of what isn't
/// there hold once it is.
fn with_switches(
    servers: &BTreeMap<String, config::ServerSelection>,
    switches: &[Switch],
) -> Selection {
    let mut selection = selection(servers);
    for Switch { server, tool, .. } in switches.iter().filter(|it| !it.enabled) {
        let mut of_server = selection.of(server);
        match tool {
            None if !servers.contains_key(server) => of_server.enabled = false,
            Some(tool) if of_server.only.is_none() => {
                of_server.without.insert(tool.clone());
            }
            _ => continue,
        }
        selection = selection.server(server, of_server);
    }
    selection
}

/// Keeps in the store which servers are linked into this program.
pub(crate) async fn mirror(store: &Store, dispatcher: &Dispatcher) -> Result<(), DatabaseError> {
    let view = dispatcher.view();
    let servers: Vec<MirroredServer> = view
        .servers()
        .map(|it| MirroredServer {
            name: it.name.clone(),
            version: it.version.clone(),
            description: it.description.clone(),
            tools: it.tools.iter().map(|tool| tool.name.clone()).collect(),
        })
        .collect();
    store.mirror_servers(&servers, now()).await
}

/// A bridge that listens.
#[derive(Debug)]
pub struct Bridge {
    listener: TcpListener,
    router: Router,
    front_door: FrontDoor,
    followed: Followed,
    drain: Duration,
    /// The file with the service token, unless the token was given or nobody needs one.
    pub token_file: Option<PathBuf>,
    /// What can be called.
    pub dispatcher: Arc<Dispatcher>,
    /// Which conversations are under way, as the host application says it.
    pub streams: Arc<Streams>,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Bridge {
    /// Opens the store, starts the servers and listens.
    pub async fn start(
        config: &Config,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, StartError> {
        let store = Store::open(&config.data, config.database_url.as_ref()).await?;
        let (dispatcher, followed) = followed(config, variables, &store).await?;
        mirror(&store, &dispatcher).await?;
        let (token, token_file) = token(config)?;
        let listener = listen(config.listen).await?;
        let address = listener.local_addr().map_err(|source| StartError::Listen {
            address: config.listen,
            source,
        })?;
        let key = store.key("request state").await?;
        let (dispatch, kept) = (dispatcher.clone(), Some(store.clone()));
        let front_door = FrontDoor::new(
            dispatch,
            key.expose(),
            kept,
            skills(config)?,
            config.limits,
            config.no_auth,
        );
        front_door.tend();
        let sign_ins = followed.upstreams.sign_ins().clone();
        let guard = mcp::guard::Guard::new(config, token, store);
        let streams = Arc::new(Streams::default());
        let further = web::routes(streams.clone());
        let router = mcp::router(&front_door, guard, streams.clone(), further)
            .merge(web::sign_in_routes(sign_ins));
        Ok(Self {
            listener,
            router,
            front_door,
            followed,
            drain: config.limits.drain,
            token_file,
            dispatcher,
            streams,
            address,
        })
    }

    /// Serves until `stop` is cancelled; then no new call is taken, and those under way may end within the limit.
    pub async fn serve(self, stop: CancellationToken) -> Result<(), StartError> {
        // Without it, an answer of two packets waits 40 ms for an acknowledgement.
        let listener = self.listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let upstreams = self.followed.upstreams.clone();
        tokio::spawn(follow(self.dispatcher, self.followed, stop.clone()));
        let closing = stop.clone();
        let serving = axum::serve(listener, self.router)
            .with_graceful_shutdown(async move { closing.cancelled().await });
        let serving = tokio::spawn(async move { serving.await });
        let abort = serving.abort_handle();
        let (front_door, closing) = (self.front_door.clone(), self.front_door);
        let drain = self.drain;
        let ending = async move {
            stop.cancelled().await;
            if tokio::time::timeout(drain, front_door.idle())
                .await
                .is_err()
            {
                let calls = front_door.calls();
                tracing::warn!(calls, limit = ?drain, "calls were still under way at the limit and were stopped");
            } else {
                // A call has ended before its answer is on its way.
                tokio::time::sleep(SENDING).await;
            }
            front_door.close();
            tokio::time::sleep(CLOSING).await;
            abort.abort();
        };
        let ended = tokio::select! {
            served = serving => match served {
                Ok(served) => served.map_err(StartError::Serve),
                Err(_) => Ok(()),
            },
            () = ending => Ok(()),
        };
        closing.close();
        let _ = tokio::time::timeout(CLOSING, closing.left()).await;
        let _ = tokio::time::timeout(drain, upstreams.close()).await;
        ended
    }
}

/// What the user switches while the bridge runs, from a command line or another bridge.
#[derive(Debug)]
struct Followed {
    /// Whether it runs as its own external server.
    is_within_itself: bool,
    store: Store,
    settings: BTreeMap<String, config::ServerSelection>,
    switches: Vec<Switch>,
    data: PathBuf,
    external: BTreeMap<String, (i64, Option<i64>)>,
    approved: BTreeMap<String, i64>,
    upstreams: Upstreams,
}

/// Makes the dispatcher of what is there now, to be followed from now on.
async fn followed(
    config: &Config,
    variables: &BTreeMap<String, String>,
    store: &Store,
) -> Result<(Arc<Dispatcher>, Followed), StartError> {
    let switches = store.switches().await?;
    let is_within_itself = Within::of(config, variables).is_itself;
    let upstreams = upstreams(config, variables, store).await?;
    let further = Some(upstreams.clone());
    let dispatcher = dispatcher_with(config, variables, &switches, further).await?;
    let followed = Followed {
        store: store.clone(),
        settings: config.servers.clone(),
        switches,
        data: config.data.clone(),
        is_within_itself,
        external: store.external_times().await?,
        approved: store.approval_times().await?,
        upstreams,
    };
    Ok((dispatcher, followed))
}

/// Takes up what the user switches, adds and removes, and what external servers offer anew, until `stop` is cancelled;
/// engines that listen hear of it.
async fn follow(dispatcher: Arc<Dispatcher>, mut followed: Followed, stop: CancellationToken) {
    let upstreams = followed.upstreams.clone();
    let mut looks = tokio::time::interval(LOOK);
    let mut rests = tokio::time::interval(REST);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            changes = upstreams.changed() => take_up(&dispatcher, changes),
            _ = rests.tick() => {
                upstreams.rest().await;
                let asked = upstreams.clone();
                tokio::spawn(async move { asked.list_new().await });
            }
            _ = looks.tick() => {
                if let Err(error) = followed.look(&dispatcher).await {
                    tracing::warn!(%error, "can't take up what was switched, added or removed");
                }
            }
        }
    }
}

/// Takes up what has changed with external servers.
fn take_up(dispatcher: &Dispatcher, changes: BTreeSet<Change>) {
    if changes.contains(&Change::Tools) {
        dispatcher.renew();
    }
    for change in changes {
        if matches!(change, Change::Resource(_)) {
            dispatcher.changes().tell(change);
        }
    }
}

impl Followed {
    async fn look(&mut self, dispatcher: &Dispatcher) -> Result<(), StartError> {
        let external = self.store.external_times().await?;
        let approved = self.store.approval_times().await?;
        let is_other = external != self.external || approved != self.approved;
        if is_other && !self.is_within_itself {
            (self.external, self.approved) = (external, approved);
            let stored = self.store.external_servers().await?;
            let vault = Vault::open(&self.data)?;
            let approvals = self.store.approvals().await?;
            let is_other = self.upstreams.take(stored, &vault);
            if self.upstreams.take_approvals(approvals) || is_other {
                dispatcher.renew();
                let asked = self.upstreams.clone();
                tokio::spawn(async move { asked.list_new().await });
            }
        }
        let switches = self.store.switches().await?;
        if switches != self.switches {
            dispatcher.select_whatever_comes(with_switches(&self.settings, &switches));
            self.switches = switches;
        }
        Ok(())
    }
}

/// Trusts what the system trusts. A small container has no certificates of its own: there, those of Mozilla.
fn tls() -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of the default versions");
    if let Ok(trusting) = builder.clone().with_platform_verifier() {
        return trusting.with_no_client_auth();
    }
    let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    builder.with_root_certificates(roots).with_no_client_auth()
}

fn skills(config: &Config) -> Result<Option<Arc<Skills>>, StartError> {
    let Some(folder) = &config.skills else {
        return Ok(None);
    };
    let skills = Skills::open(folder, skills::PAGE_SIZE)?;
    for note in skills.notes() {
        tracing::warn!("{note}");
    }
    Ok(Some(Arc::new(skills)))
}

fn token(config: &Config) -> Result<(Option<Secret>, Option<PathBuf>), StartError> {
    if config.no_auth {
        return Ok((None, None));
    }
    if let Some(token) = &config.token {
        return Ok((Some(token.clone()), None));
    }
    let found = service_token(&config.data)?;
    if let Some(warning) = found.warning {
        tracing::warn!("{warning}");
    }
    Ok((Some(found.token), Some(found.file)))
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => StartError::Taken { address },
            _ => StartError::Listen { address, source },
        })
}

/// Serves one client over standard input and output, until it closes them.
pub(crate) async fn serve_pipe(
    config: &Config,
    variables: &BTreeMap<String, String>,
    mut caller: Caller,
) -> Result<(), StartError> {
    Streams::default().identify(&mut caller);
    let store = Store::open(&config.data, config.database_url.as_ref()).await?;
    let (dispatcher, followed) = followed(config, variables, &store).await?;
    let upstreams = followed.upstreams.clone();
    let stop = CancellationToken::new();
    let following = stop.clone().drop_guard();
    tokio::spawn(follow(dispatcher.clone(), followed, stop));
    // One client and one process: what the client carries needs to outlive neither.
    let mut key = [0; 32];
    let filled = getrandom::fill(&mut key).map_err(io::Error::other);
    filled.map_err(StartError::Pipe)?;
    let front_door = FrontDoor::new(dispatcher, &key, None, skills(config)?, config.limits, true);
    front_door.tend();
    let served = front_door.serve_pipe(caller).await;
    drop(following);
    let _ = tokio::time::timeout(config.limits.drain, upstreams.close()).await;
    served.map_err(StartError::Pipe)
}
