//! Puts everything together; the only place that constructs.

use crate::{
    config::{self, Config},
    mcp::{self, FrontDoor},
    secret::Secret,
    store::{OpenError, ServiceTokenError, Store, service_token},
    telemetry::CallLog,
};
use axum::{Router, serve::ListenerExt};
use std::{collections::BTreeMap, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tool_runtime::{
    Caller, Dispatcher, Environment, Limits, Registry, RegistryError, Selection, SelectionError,
    ServerSelection,
};

/// How long streams that are still open get to close, after the calls have ended.
const CLOSING: Duration = Duration::from_secs(1);

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
    /// The server stopped by itself.
    #[error("the HTTP server failed")]
    Serve(#[source] io::Error),
    /// The pipe can't be served.
    #[error("can't serve on standard input and output: {0}")]
    Pipe(String),
}

fn of_file(file: Option<&PathBuf>) -> String {
    file.map_or_else(
        || "from variables".to_owned(),
        |it| it.display().to_string(),
    )
}

/// Makes the dispatcher of all servers that are linked into this program, with what the settings select.
pub async fn dispatcher(
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<Arc<Dispatcher>, StartError> {
    let environment = Environment::new(variables.clone());
    let registry = Registry::linked(&environment).await?;
    let limits = Limits {
        time: config.limits.call_timeout,
        output: config.limits.max_output,
    };
    let dispatcher = Dispatcher::with(registry, Vec::new(), limits, vec![Arc::new(CallLog)])?;
    let selected = dispatcher.select(selection(&config.servers));
    selected.map_err(|source| StartError::Selection {
        file: config.file.clone(),
        source,
    })?;
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
            };
            selection.server(name, of_server)
        })
}

/// A bridge that listens.
#[derive(Debug)]
pub struct Bridge {
    listener: TcpListener,
    router: Router,
    front_door: FrontDoor,
    drain: Duration,
    /// The file with the service token, unless the token was given or nobody needs one.
    pub token_file: Option<PathBuf>,
    /// What can be called.
    pub dispatcher: Arc<Dispatcher>,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Bridge {
    /// Opens the store, starts the servers and listens.
    pub async fn start(
        config: &Config,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, StartError> {
        let dispatcher = dispatcher(config, variables).await?;
        let store = Store::open(&config.data, config.database_url.as_ref()).await?;
        let (token, token_file) = token(config)?;
        let listener = listen(config.listen).await?;
        let address = listener.local_addr().map_err(|source| StartError::Listen {
            address: config.listen,
            source,
        })?;
        let front_door = FrontDoor::new(dispatcher.clone(), config.limits.max_body);
        let guard = mcp::guard::Guard::new(config, token, store);
        let router = mcp::router(&front_door, guard);
        Ok(Self {
            listener,
            router,
            front_door,
            drain: config.limits.drain,
            token_file,
            dispatcher,
            address,
        })
    }

    /// Serves until `stop` is cancelled; then no new call is taken, and those under way may end within the limit.
    pub async fn serve(self, stop: CancellationToken) -> Result<(), StartError> {
        // Without it, an answer of two packets waits 40 ms for an acknowledgement.
        let listener = self.listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let closing = stop.clone();
        let serving = axum::serve(listener, self.router)
            .with_graceful_shutdown(async move { closing.cancelled().await });
        let serving = tokio::spawn(async move { serving.await });
        let abort = serving.abort_handle();
        let front_door = self.front_door;
        let drain = self.drain;
        let ending = async move {
            stop.cancelled().await;
            if tokio::time::timeout(drain, front_door.idle())
                .await
                .is_err()
            {
                let calls = front_door.calls();
                tracing::warn!(calls, limit = ?drain, "calls were still under way at the limit and were stopped");
            }
            front_door.close();
            tokio::time::sleep(CLOSING).await;
            abort.abort();
        };
        tokio::select! {
            served = serving => match served {
                Ok(served) => served.map_err(StartError::Serve),
                Err(_) => Ok(()),
            },
            () = ending => Ok(()),
        }
    }
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
    caller: Caller,
) -> Result<(), StartError> {
    let dispatcher = dispatcher(config, variables).await?;
    mcp::serve_pipe(dispatcher, caller)
        .await
        .map_err(StartError::Pipe)
}
