//! How a connection is opened.

use super::{
    Address, Connector, Opening, UpstreamError,
    http::Endpoint,
    link::{Link, Transport},
    message,
    meta::ClientInfo,
    stdio::{Program, Start},
    welcome::Welcome,
};
use serde_json::json;
use std::sync::Arc;
use tokio::time::timeout;

/// What we ask for. A server may answer with another one.
const VERSION: &str = "2025-11-25";
/// How many bytes the answer to a greeting may have, which is taken apart and kept.
const LONGEST_WELCOME: usize = 1024 * 1024;

/// Opens a connection, and says what the server says of itself.
pub(super) async fn open(
    connector: &Connector,
    server: &Arc<str>,
    address: &Address,
    opening: &Opening,
) -> Result<(Link, Welcome), UpstreamError> {
    let limits = connector.limits;
    let link = Link::new(server, transport(connector, server, address)?, limits);
    let greeted = timeout(limits.connect, initialize(&link, opening)).await;
    let welcome = greeted.unwrap_or_else(|_| Err(link.timed_out("initialize", limits.connect)))?;
    Ok((link, welcome))
}

fn transport(
    connector: &Connector,
    server: &Arc<str>,
    address: &Address,
) -> Result<Transport, UpstreamError> {
    let limits = connector.limits;
    Ok(match address {
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
            Transport::Program(Program::start(server, &start, limits)?)
        }
        Address::Http { url, headers } => {
            let clients = &connector.clients;
            Transport::Endpoint(Endpoint::new(server, (url, headers), limits, clients)?)
        }
    })
}

async fn initialize(link: &Link, opening: &Opening) -> Result<Welcome, UpstreamError> {
    let method = "initialize";
    let params = json!({
        "protocolVersion": VERSION,
        "capabilities": opening.capabilities,
        "clientInfo": ClientInfo::OURS,
    });
    let result = link.ask(method, &params, std::time::Duration::MAX).await?;
    if result.get().len() > LONGEST_WELCOME {
        return Err(UpstreamError::TooLarge {
            server: link.server.to_string(),
            method: method.to_owned(),
            limit: LONGEST_WELCOME,
        });
    }
    let welcome = Welcome::read(&result, link.transport.ears().masks());
    let welcome = welcome.ok_or_else(|| UpstreamError::Malformed {
        server: link.server.to_string(),
        method: method.to_owned(),
        what: "a result that is no object".to_owned(),
    })?;
    match &link.transport {
        Transport::Program(program) => program.notify(message::initialized()).await,
        Transport::Endpoint(endpoint) => {
            endpoint.speak(&welcome.version);
            let method = "notifications/initialized";
            endpoint.notify(method, message::initialized()).await?;
        }
    }
    Ok(welcome)
}
