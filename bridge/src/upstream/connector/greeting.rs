//! How a connection is opened, and how it is found out how a server is spoken to.

use super::{
    Address, Connector, Era, Opening, UpstreamError,
    http::Endpoint,
    link::{Link, Transport},
    message,
    meta::ClientInfo,
    modern::{self, Offer},
    stdio::{Program, Start},
    welcome::Welcome,
};
use crate::secret::Secret;
use serde_json::{json, value::RawValue};
use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

/// What we ask for with a session. A server may answer with another one.
const VERSION: &str = "2025-11-25";
/// How many bytes the answer to a greeting may have, which is taken apart and kept.
const LONGEST_WELCOME: usize = 1024 * 1024;
/// How long a server may take at most to answer a question that it may not know.
const PROBE: Duration = Duration::from_secs(5);

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

/// Opens a connection, and says what the server says of itself.
pub(super) async fn open(
    connector: &Connector,
    server: &Arc<str>,
    address: &Address,
    opening: &Opening,
) -> Result<(Link, Welcome), UpstreamError> {
    let greeting = Greeting {
        connector,
        server,
        address,
        opening,
        end: Instant::now() + connector.limits.connect,
    };
    if let Address::Http { url, headers } = address
        && opening.known != Some(Era::Modern)
        && Endpoint::looks_old(url)
        && let Ok(greeted) = greeting.with_old_session(url, headers).await
    {
        return Ok(greeted);
    }
    if opening.known == Some(Era::Legacy) {
        match greeting.with_session().await {
            Err(error) if wants_another_era(&error) => {}
            greeted => return greeted,
        }
    }
    match address {
        Address::Command { .. } => greeting.to_program().await,
        Address::Http { .. } => greeting.to_endpoint().await,
    }
}

/// Says whether an error means that the server may know another way to be spoken to.
fn wants_another_era(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Refused { .. }
        | UpstreamError::Malformed { .. }
        | UpstreamError::TooLarge { .. } => true,
        // Some hang up where they don't understand.
        UpstreamError::Unreachable { was_connected, .. } => *was_connected,
        // A gateway that can't reach the server says so with those above 500.
        UpstreamError::Status { status, .. } => !matches!(status, 408 | 429 | 502..),
        _ => false,
    }
}

/// What is needed to greet a server.
struct Greeting<'a> {
    connector: &'a Connector,
    server: &'a Arc<str>,
    address: &'a Address,
    opening: &'a Opening,
    /// Until when there must be a connection.
    end: Instant,
}

type Greeted = Result<(Link, Welcome), UpstreamError>;

impl Greeting<'_> {
    /// Opens a session right away.
    async fn with_session(&self) -> Greeted {
        let link = self.link(Era::Legacy).await?;
        let error = match self.initialize(&link).await {
            Ok(welcome) => return Ok((link, welcome)),
            Err(error) => error,
        };
        match self.address {
            Address::Http { url, headers } if wants_another_era(&error) => {
                match self.with_old_session(url, headers).await {
                    Err(unauthorized @ UpstreamError::Unauthorized { .. }) => Err(unauthorized),
                    Err(_) => Err(error),
                    Ok(greeted) => Ok(greeted),
                }
            }
            _ => Err(error),
        }
    }

    /// Opens a session as of 2024-11-05, in which all answers come on one stream.
    async fn with_old_session(&self, url: &str, headers: &BTreeMap<String, Secret>) -> Greeted {
        let (limits, clients) = (self.connector.limits, &self.connector.clients);
        let given = (url, headers, self.opening.bearer.as_ref());
        let endpoint = Endpoint::old(self.server, given, limits, clients);
        let endpoint = timeout(self.patience(), endpoint).await;
        let endpoint = endpoint.unwrap_or_else(|_| {
            Err(UpstreamError::TimedOut {
                server: self.server.to_string(),
                method: INITIALIZE.to_owned(),
                after: self.patience(),
                said: String::new(),
            })
        });
        let link = Link::new(self.server, Transport::Endpoint(endpoint?), limits);
        let welcome = self.initialize(&link).await?;
        Ok((link, welcome))
    }

    /// Asks a program what it is, and opens a session if it doesn't understand. One that ends instead is started anew: it
    /// may be that it can't bear to be asked.
    async fn to_program(&self) -> Greeted {
        let link = self.link(Era::Legacy).await?;
        let welcome = match self.discover_or_initialize(&link).await {
            Ok(Some(welcome)) => welcome,
            Ok(None) => self.initialize(&link).await?,
            Err(UpstreamError::Ended { .. }) => return self.with_session().await,
            Err(error) => return Err(error),
        };
        Ok((link, welcome))
    }

    /// Asks a program what it is; one that doesn't answer soon is asked for a session as well. `None` if it has answered
    /// that it doesn't understand.
    async fn discover_or_initialize(&self, link: &Link) -> Result<Option<Welcome>, UpstreamError> {
        let mut discovery = pin!(self.discover(link, self.left()));
        let discovered = match timeout(self.patience(), &mut discovery).await {
            Ok(discovered) => discovered?,
            // It is slow, or leaves aside what it doesn't know.
            Err(_) => match self.initialize(link).await {
                Err(refused @ UpstreamError::Refused { .. }) => {
                    let discovered = timeout(self.patience(), discovery).await;
                    let discovered = discovered.ok().and_then(Result::ok).flatten();
                    Some(discovered.ok_or(refused)?)
                }
                greeted => return greeted.map(Some),
            },
        };
        if discovered.is_some() {
            link.transport.ears().be_modern();
        }
        Ok(discovered)
    }

    /// Asks an endpoint what it is, and opens a session if it doesn't understand.
    async fn to_endpoint(&self) -> Greeted {
        let link = self.link(Era::Modern).await?;
        let patience = if self.opening.known == Some(Era::Modern) {
            self.left()
        } else {
            self.patience()
        };
        let is_slow = match self.discover(&link, patience).await {
            Ok(Some(welcome)) => return Ok((link, welcome)),
            Ok(None) => false,
            Err(UpstreamError::TimedOut { .. }) => true,
            Err(error) => return Err(error),
        };
        match self.with_session().await {
            Err(error) if is_slow && wants_another_era(&error) => {
                match self.discover(&link, self.left()).await {
                    Ok(Some(welcome)) => Ok((link, welcome)),
                    _ => Err(error),
                }
            }
            greeted => greeted,
        }
    }

    async fn link(&self, era: Era) -> Result<Link, UpstreamError> {
        let limits = self.connector.limits;
        let transport = match self.address {
            Address::Command {
                program,
                arguments,
                environment,
                folder,
            } => {
                let inherited = &self.connector.environment;
                let login_path = &self.connector.login_path;
                let path = match environment.get("PATH") {
                    Some(_) => None,
                    None => login_path.longer(program, inherited).await,
                };
                let start = Start {
                    program,
                    arguments,
                    inherited,
                    path: path.as_deref(),
                    environment,
                    folder: folder.as_deref(),
                    guardian: &self.connector.guardian,
                    journals: self.connector.journals.as_ref(),
                };
                Transport::Program(Program::start(self.server, &start, limits)?)
            }
            Address::Http { url, headers } => {
                let given = (url.as_str(), headers, self.opening.bearer.as_ref());
                let clients = &self.connector.clients;
                Transport::Endpoint(Endpoint::new(self.server, given, era, limits, clients)?)
            }
        };
        Ok(Link::new(self.server, transport, limits))
    }

    /// Asks for what a server of 2026-07-28 says of itself. `None` if it is none, or wants a session.
    async fn discover(
        &self,
        link: &Link,
        patience: Duration,
    ) -> Result<Option<Welcome>, UpstreamError> {
        let nothing = json!({});
        let ask = || link.ask(Era::Modern, DISCOVER, &nothing, patience);
        let asked = match ask().await {
            Err(error) if modern::offer(&error) == Some(Offer::Again) => ask().await,
            asked => asked,
        };
        match asked {
            Ok(result) if modern::is_discovery(&result) => {
                let mut welcome = welcome(link, DISCOVER, &result)?;
                modern::VERSION.clone_into(&mut welcome.version);
                Ok(Some(welcome))
            }
            Ok(_) => Ok(None),
            Err(error) if modern::offer(&error) == Some(Offer::Sessions) => Ok(None),
            Err(error) if wants_another_era(&error) && !modern::is_own_error(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn initialize(&self, link: &Link) -> Result<Welcome, UpstreamError> {
        let params = json!({
            "protocolVersion": VERSION,
            "capabilities": self.opening.capabilities,
            "clientInfo": ClientInfo::OURS,
        });
        let left = self.left();
        let result = link.ask(Era::Legacy, INITIALIZE, &params, left).await?;
        let welcome = welcome(link, INITIALIZE, &result)?;
        match &link.transport {
            Transport::Program(program) => program.notify(message::initialized()).await,
            Transport::Endpoint(endpoint) => {
                endpoint.speak(&welcome.version);
                let method = "notifications/initialized";
                let told = endpoint.notify(method, message::initialized());
                let told = timeout(self.left(), told).await;
                told.unwrap_or_else(|_| Err(link.timed_out(method, left)))?;
            }
        }
        Ok(welcome)
    }

    /// How long a server may take to answer what it may not know, so that enough is left for what it knows.
    fn patience(&self) -> Duration {
        PROBE.min(self.connector.limits.connect / 4)
    }

    /// How long it may still take.
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}

/// Reads what a server says of itself.
fn welcome(link: &Link, method: &str, result: &RawValue) -> Result<Welcome, UpstreamError> {
    let (server, method) = (link.server.to_string(), method.to_owned());
    if result.get().len() > LONGEST_WELCOME {
        return Err(UpstreamError::TooLarge {
            server,
            method,
            limit: LONGEST_WELCOME,
        });
    }
    let welcome = Welcome::read(result, link.transport.ears().masks());
    welcome.ok_or_else(|| UpstreamError::Malformed {
        server,
        method,
        what: "a result that is no object".to_owned(),
    })
}
