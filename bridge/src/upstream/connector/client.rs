//! One live connection to a server.

use super::{
    Address, Connector, Limits, UpstreamError,
    http::Endpoint,
    mask::Masks,
    message,
    stdio::{Program, Start},
};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::timeout};

/// What we ask for. A server may answer with another one.
const VERSION: &str = "2025-11-25";
/// What a server speaks that doesn't say so, according to 2025-11-25.
const UNSAID_VERSION: &str = "2025-03-26";
/// How long a version may be.
const LONGEST_VERSION: usize = 32;
/// How many bytes the answer to `initialize` may have, which is taken apart and kept.
const LONGEST_WELCOME: usize = 1024 * 1024;
/// How long the name of a server may be, and its own version.
const LONGEST_NAME: usize = 128;

/// A connection. Its clones are the same one, which ends with the last of them: a program is ended then, a session is
/// left to the server, so that [`Client::close`] is more polite.
#[derive(Clone)]
pub struct Client(Arc<Connection>);

/// URLs and what servers say may hold secrets: neither is shown.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", &self.0.server)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

struct Connection {
    server: Arc<str>,
    limits: Limits,
    transport: Transport,
    last_id: AtomicU64,
    changes: Arc<Notify>,
    welcome: Welcome,
}

/// What a server says of itself.
struct Welcome {
    version: String,
    name: String,
    server_version: String,
    instructions: Option<String>,
    capabilities: Map<String, Value>,
}

enum Transport {
    Program(Program),
    Endpoint(Endpoint),
}

pub(super) async fn connect(
    connector: &Connector,
    server: &str,
    address: &Address,
) -> Result<Client, UpstreamError> {
    let limits = connector.limits;
    let server: Arc<str> = server.into();
    let changes = Arc::new(Notify::new());
    let transport = match address {
        Address::Command {
            program,
            arguments,
            environment,
            folder,
        } => {
            let start = Start {
                program,
                arguments,
                inherited: &connector.environment,
                environment,
                folder: folder.as_deref(),
            };
            Transport::Program(Program::start(&server, &start, limits, changes.clone())?)
        }
        Address::Http { url, headers } => Transport::Endpoint(Endpoint::new(
            &server,
            (url, headers),
            limits,
            &connector.clients,
            changes.clone(),
        )?),
    };
    let greeting = transport.greet(&server);
    let welcome = in_time(&transport, &server, "initialize", limits.connect, greeting).await?;
    if welcome.announces_changes()
        && let Transport::Endpoint(endpoint) = &transport
    {
        endpoint.listen();
    }
    Ok(Client(Arc::new(Connection {
        server,
        limits,
        transport,
        last_id: AtomicU64::new(Transport::GREETING),
        changes,
        welcome,
    })))
}

impl Client {
    /// Whether both are the same connection.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sends a request, once, and returns the result as it came. If the future is dropped, the server is told that
    /// nobody waits any more.
    pub async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let it = &*self.0;
        let id = it.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let message = write(&it.server, id, method, params)?;
        let exchange = it.transport.exchange(id, method, message);
        in_time(&it.transport, &it.server, method, it.limits.call, exchange).await
    }

    /// Returns what the server wants models to know, as it came: it may be long, and may lie.
    pub fn instructions(&self) -> Option<&str> {
        self.0.welcome.instructions.as_deref()
    }

    /// Returns the name and the version that the server gives itself. Both may be empty.
    pub fn server_info(&self) -> (&str, &str) {
        (&self.0.welcome.name, &self.0.welcome.server_version)
    }

    /// Returns the version of the protocol that the server speaks.
    pub fn protocol_version(&self) -> &str {
        &self.0.welcome.version
    }

    /// Says whether the server declares a capability, for example `resources`.
    pub fn declares(&self, capability: &str) -> bool {
        self.0.welcome.declares(capability)
    }

    /// Says whether the server declares that it has tools. Sloppy ones forget to.
    pub fn has_tools(&self) -> bool {
        self.declares("tools")
    }

    /// Says whether the connection can't be used any more.
    pub fn is_closed(&self) -> bool {
        match &self.0.transport {
            Transport::Program(program) => program.has_ended(),
            Transport::Endpoint(endpoint) => endpoint.has_ended(),
        }
    }

    /// Resolves when the connection can't be used any more.
    pub async fn closed(&self) {
        match &self.0.transport {
            Transport::Program(program) => program.ended().await,
            Transport::Endpoint(endpoint) => endpoint.ended().await,
        }
    }

    /// Resolves when the server says that its tools have changed, or may have while it could not say so. What it said
    /// while nobody waited counts, once. One waits at a time.
    pub async fn tools_changed(&self) {
        self.0.changes.notified().await;
    }

    /// Ends the connection and waits until it has ended. A program's input is closed; if that doesn't end it, it is
    /// asked to, then killed with all that it started. A session is deleted.
    pub async fn close(&self) {
        match &self.0.transport {
            Transport::Program(program) => program.close().await,
            Transport::Endpoint(endpoint) => endpoint.close().await,
        }
    }
}

impl Transport {
    /// The id of the request that opens a connection.
    const GREETING: u64 = 1;

    async fn greet(&self, server: &str) -> Result<Welcome, UpstreamError> {
        let method = "initialize";
        let params = json!({
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": { "name": "clopen-mcp", "version": env!("CARGO_PKG_VERSION") },
        });
        let message = write(server, Self::GREETING, method, &params)?;
        let result = self.exchange(Self::GREETING, method, message).await?;
        if result.get().len() > LONGEST_WELCOME {
            return Err(UpstreamError::TooLarge {
                server: server.to_owned(),
                method: method.to_owned(),
                limit: LONGEST_WELCOME,
            });
        }
        let welcome = Welcome::read(&result, self.masks());
        let welcome = welcome.ok_or_else(|| UpstreamError::Malformed {
            server: server.to_owned(),
            method: method.to_owned(),
            what: "a result that is no object".to_owned(),
        })?;
        match self {
            Self::Program(program) => program.notify(message::initialized()).await,
            Self::Endpoint(endpoint) => {
                endpoint.speak(&welcome.version);
                let method = "notifications/initialized";
                endpoint.notify(method, message::initialized()).await?;
            }
        }
        Ok(welcome)
    }

    async fn exchange(
        &self,
        id: u64,
        method: &str,
        message: Vec<u8>,
    ) -> Result<Box<RawValue>, UpstreamError> {
        match self {
            Self::Program(program) => program.exchange(id, method, message).await,
            Self::Endpoint(endpoint) => endpoint.exchange(id, method, message).await,
        }
    }

    fn masks(&self) -> &Masks {
        match self {
            Self::Program(program) => program.masks(),
            Self::Endpoint(endpoint) => endpoint.masks(),
        }
    }

    /// Returns the last words of a program.
    fn said(&self) -> String {
        match self {
            Self::Program(program) => program.said(),
            Self::Endpoint(_) => String::new(),
        }
    }
}

fn write(
    server: &str,
    id: u64,
    method: &str,
    params: &impl Serialize,
) -> Result<Vec<u8>, UpstreamError> {
    message::request(id, method, params).map_err(|error| UpstreamError::Unsendable {
        server: server.to_owned(),
        method: method.to_owned(),
        reason: error.to_string(),
    })
}

async fn in_time<T>(
    transport: &Transport,
    server: &str,
    method: &str,
    limit: Duration,
    exchange: impl Future<Output = Result<T, UpstreamError>>,
) -> Result<T, UpstreamError> {
    let answer = timeout(limit, exchange).await;
    answer.unwrap_or_else(|_| {
        Err(UpstreamError::TimedOut {
            server: server.to_owned(),
            method: method.to_owned(),
            after: limit,
            said: transport.said(),
        })
    })
}

impl Welcome {
    /// Reads the answer to `initialize`. Whatever is missing or of another shape is taken to be unsaid.
    fn read(result: &RawValue, masks: &Masks) -> Option<Self> {
        let Value::Object(mut result) = serde_json::from_str(result.get()).ok()? else {
            return None;
        };
        let version = result.get("protocolVersion").and_then(Value::as_str);
        // It becomes a header.
        let version = version.filter(|it| {
            let is_sound = it.bytes().all(|it| it.is_ascii_graphic());
            is_sound && !it.is_empty() && it.len() <= LONGEST_VERSION
        });
        let version = version.unwrap_or(UNSAID_VERSION).to_owned();
        let of_itself = |key: &str| {
            let text = result
                .get("serverInfo")
                .and_then(|it| it.get(key)?.as_str());
            masks.beginning(text.unwrap_or_default(), LONGEST_NAME)
        };
        Some(Self {
            name: of_itself("name"),
            server_version: of_itself("version"),
            version,
            instructions: match result.remove("instructions") {
                Some(Value::String(text)) if !text.trim().is_empty() => Some(text),
                _ => None,
            },
            capabilities: match result.remove("capabilities") {
                Some(Value::Object(capabilities)) => capabilities,
                _ => Map::new(),
            },
        })
    }

    fn declares(&self, capability: &str) -> bool {
        let declared = self.capabilities.get(capability);
        declared.is_some_and(|it| !matches!(it, Value::Null | Value::Bool(false)))
    }

    fn announces_changes(&self) -> bool {
        let tools = self.capabilities.get("tools");
        tools.and_then(|it| it.get("listChanged")) == Some(&Value::Bool(true))
    }
}
