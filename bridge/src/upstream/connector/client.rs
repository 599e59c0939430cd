//! One live connection to a server.

use super::{
    Address, Connector, Era, News, Opening, Talk, UpstreamError, greeting,
    link::{Link, Transport},
    listening,
    news::Bulletin,
    welcome::Welcome,
};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;
use tool_runtime::Level;

/// How long a server may take to say that it logs from another level on.
const SET_LEVEL: Duration = Duration::from_secs(5);

/// A connection. Its clones are the same one, which ends with the last of them: a program is ended then, a session is
/// left to the server, so that [`Client::close`] is more polite.
#[derive(Clone)]
pub struct Client(Arc<Connection>);

/// URLs and what servers say may hold secrets: neither is shown.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", &self.0.link.server)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

struct Connection {
    link: Arc<Link>,
    welcome: Welcome,
    /// Told when something else is to be watched.
    renew: Arc<Notify>,
    /// Whether somebody listens for what is watched.
    listens: AtomicBool,
    over: CancellationToken,
    /// From which level on a server with sessions was told to log.
    logs_from: Mutex<Option<Level>>,
}

pub(super) async fn connect(
    connector: &Connector,
    server: &str,
    address: &Address,
    opening: &Opening,
) -> Result<Client, UpstreamError> {
    let (link, welcome) = greeting::open(connector, &server.into(), address, opening).await?;
    let bulletin = link.transport.ears().bulletin();
    for news in welcome.announced() {
        bulletin.watch(news);
    }
    // Many servers ask between requests what concerns one, and nobody at all if nobody listens there.
    let may_ask = link.transport.ears().era() == Era::Legacy && !opening.capabilities.is_empty();
    let has_news = !bulletin.watched().is_empty() || may_ask;
    let client = Client(Arc::new(Connection {
        link: Arc::new(link),
        welcome,
        renew: Arc::default(),
        listens: AtomicBool::new(false),
        over: CancellationToken::new(),
        logs_from: Mutex::default(),
    }));
    if has_news {
        client.0.listen();
    }
    if may_ask {
        client.0.is_listening().await;
    }
    Ok(client)
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
        self.converse(method, params, Talk::default()).await
    }

    /// Does the same, and lets the server talk with whoever wants to know. The parameters are an object without `_meta`,
    /// or nothing.
    pub async fn converse(
        &self,
        method: &str,
        params: &impl Serialize,
        talk: Talk,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let it = &*self.0;
        if let (Some(level), Some(_)) = (talk.log, &talk.listener) {
            it.log_from(level).await;
        }
        it.link.converse(method, params, &talk).await
    }

    /// Has the server tell when a resource changes.
    pub async fn subscribe(&self, uri: &str) -> Result<(), UpstreamError> {
        let it = &*self.0;
        if !self.is_modern() {
            let params = json!({ "uri": uri });
            self.request("resources/subscribe", &params).await?;
        }
        if it.bulletin().watch(News::Updated(uri.to_owned())) {
            it.listen();
            it.is_listening().await;
        }
        Ok(())
    }

    /// Does not want to know of a resource any more.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), UpstreamError> {
        let it = &*self.0;
        if !it.bulletin().unwatch(&News::Updated(uri.to_owned())) {
            return Ok(());
        }
        if self.is_modern() {
            it.listen();
        } else {
            let params = json!({ "uri": uri });
            self.request("resources/unsubscribe", &params).await?;
        }
        Ok(())
    }

    /// Resolves when the server says that something has changed, or may have while it could not say so. What it said while
    /// nobody waited counts, once each. One waits at a time.
    pub async fn news(&self) -> News {
        self.0.bulletin().next().await
    }

    /// Returns how the server is spoken to; who remembers it is connected sooner the next time.
    pub fn era(&self) -> Era {
        self.0.link.transport.ears().era()
    }

    /// Says whether the server speaks 2026-07-28, without a session.
    pub fn is_modern(&self) -> bool {
        self.era() == Era::Modern
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

    /// Returns what the server declares that it can do, as it came.
    pub fn capabilities(&self) -> &Map<String, Value> {
        &self.0.welcome.capabilities
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
        self.0.link.transport.has_ended()
    }

    /// Resolves when the connection can't be used any more.
    pub async fn closed(&self) {
        self.0.link.transport.ended().await;
    }

    /// Ends the connection and waits until it has ended. A program's input is closed; if that doesn't end it, it is
    /// asked to, then killed with all that it started. A session is deleted.
    pub async fn close(&self) {
        self.0.link.transport.close().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl Connection {
    fn bulletin(&self) -> &Bulletin {
        self.link.transport.ears().bulletin()
    }

    /// Listens for news between requests, where that needs more than to hear.
    fn listen(&self) {
        match (&self.link.transport, self.link.transport.ears().era()) {
            (_, Era::Modern) => {
                if self.listens.swap(true, Ordering::Relaxed) {
                    self.renew.notify_one();
                    return;
                }
                let (link, renew) = (self.link.clone(), self.renew.clone());
                tokio::spawn(listening::listen(link, renew, self.over.clone()));
            }
            (Transport::Endpoint(endpoint), Era::Legacy) => endpoint.listen(),
            (Transport::Program(_), Era::Legacy) => {}
        }
    }

    /// Waits until a session is listened to.
    async fn is_listening(&self) {
        if let Transport::Endpoint(endpoint) = &self.link.transport {
            endpoint.is_listened_to().await;
        }
    }

    /// Has a server with sessions log from a level on, if it can, and doesn't already.
    async fn log_from(&self, level: Level) {
        let is_modern = self.link.transport.ears().era() == Era::Modern;
        if is_modern || !self.welcome.declares("logging") {
            return;
        }
        let mut logs_from = self.logs_from.lock().await;
        if logs_from.is_none_or(|it| level < it) {
            // Others may want less, which is left out when it comes. One that refuses is not asked again.
            *logs_from = Some(level);
            let params = json!({ "level": level.name() });
            let set = self
                .link
                .ask(Era::Legacy, "logging/setLevel", &params, SET_LEVEL)
                .await;
            if let Err(error) = set {
                tracing::debug!(%error, "a server logs as it likes");
            }
        }
    }
}
