//! Decides who is calling, before any body is parsed: by `Host`, by `Origin`, by token.
//!
//! `Host` and `Origin` keep web pages out that a browser on this machine shows: a page of another site sends its
//! origin, and a page whose name was pointed at this machine sends that name as the host.

use crate::{
    config::{Config, normal_origin, split_authority},
    engines::Engine,
    secret::Secret,
    store::{self, DatabaseError, Store, Token},
};
use axum::{
    Json,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode, Uri,
        header::{AUTHORIZATION, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE},
        request::Parts,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeSet, HashMap},
    net::{Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use thiserror::Error;
use tokio::time::Instant;
use tool_runtime::{Caller, Reach};

/// How long a project token is taken to be good without asking the database again. Another process that revokes it is
/// heard after this time; this one at once.
const REMEMBERED: Duration = Duration::from_secs(10);

/// The most characters of an engine's, a project's or a session's name.
pub const LONGEST_NAME: usize = 200;

/// The most characters of a refused value that are repeated.
const MOST_SHOWN: usize = 100;

/// Who may call, and from where.
#[derive(Debug)]
pub struct Guard {
    service_token: Option<Secret>,
    no_auth: bool,
    allowed_hosts: Vec<String>,
    allowed_origins: Vec<String>,
    store: Store,
    /// Project tokens that were good a moment ago, by their SHA-256.
    known: Mutex<HashMap<[u8; 32], Known>>,
}

#[derive(Debug)]
struct Known {
    access: Access,
    until: Instant,
    token_changes: u64,
}

/// What a caller may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// On whose behalf: the name of a project token, `service` for the service token, `anonymous` without tokens.
    pub principal: Arc<str>,
    /// The servers that are open; `None` is all.
    pub servers: Option<Arc<BTreeSet<String>>>,
    /// Whether only tools that change nothing are open.
    pub read_only: bool,
    /// The project that the token stands for, whatever the request says.
    pub project: Option<String>,
}

/// Why a request isn't served. As a response it is a JSON-RPC error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The request names no host.
    #[error("the request names no host, or several; send one `Host` header")]
    NoHost,
    /// The request is for another host.
    #[error(
        "the bridge doesn't answer to the host `{host}`; if that is its name, add it to the setting `allowed_hosts`"
    )]
    Host {
        /// The host, made fit to show.
        host: String,
    },
    /// The request comes from a web page of another site.
    #[error(
        "web pages of `{origin}` may not call the bridge; if they should, add the origin to the setting `allowed_origins`"
    )]
    Origin {
        /// The origin, made fit to show.
        origin: String,
    },
    /// The request shows no token.
    #[error(
        "a token is needed: send the header `Authorization: Bearer TOKEN`; the token is in `CLOPEN_MCP_TOKEN` where that is set, else in the file `token` of the bridge's data folder, and `clopen-mcp tokens create` makes others"
    )]
    NoToken,
    /// The token opens nothing.
    #[error(
        "the token is unknown or revoked; the right one is in `CLOPEN_MCP_TOKEN` where that is set, else in the file `token` of the bridge's data folder, and `clopen-mcp tokens create` makes others"
    )]
    WrongToken,
    /// The address says something about the caller that can't be.
    #[error("the parameter `{parameter}` of the address {problem}")]
    Parameter {
        /// The parameter.
        parameter: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Nobody knows whether the token is good.
    #[error(
        "the bridge can't look up the token at the moment; try again, and look at the bridge's log if that doesn't help"
    )]
    Unavailable(#[from] DatabaseError),
}

impl Guard {
    /// Makes one from the settings. Without a service token only project tokens open anything, unless the settings
    /// say that nobody needs one.
    pub fn new(config: &Config, service_token: Option<Secret>, store: Store) -> Self {
        Self {
            service_token,
            no_auth: config.no_auth,
            allowed_hosts: config.allowed_hosts.clone(),
            allowed_origins: config.allowed_origins.clone(),
            store,
            known: Mutex::default(),
        }
    }

    fn answers_to(&self, authority: &str) -> bool {
        let authority = authority.to_ascii_lowercase();
        let Some((host, _)) = split_authority(&authority) else {
            return false;
        };
        // What is allowed without a port is allowed on any.
        is_this_machine(host)
            || self
                .allowed_hosts
                .iter()
                .any(|allowed| allowed == host || *allowed == authority)
    }

    fn lets_in(&self, origin: &str) -> bool {
        let Some(origin) = normal_origin(origin) else {
            return false;
        };
        if self.allowed_origins.contains(&origin) {
            return true;
        }
        origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .and_then(split_authority)
            .is_some_and(|(host, _)| is_this_machine(host))
    }

    async fn access(&self, headers: &HeaderMap) -> Result<Access, Refusal> {
        if self.no_auth {
            return Ok(Access::unlimited("anonymous"));
        }
        let token = bearer(headers)?;
        if self.service_token.as_ref().is_some_and(|it| it.is(token)) {
            return Ok(Access::unlimited("service"));
        }
        let key = Sha256::digest(token).into();
        let now = Instant::now();
        // Read before the database is, so that a change in between is not missed.
        let token_changes = self.store.token_changes();
        if let Some(access) = self.remembered(&key, now, token_changes) {
            return Ok(access);
        }
        let found = self.store.find_token(token, store::now()).await?;
        let access = Access::from(found.ok_or(Refusal::WrongToken)?);
        self.remember(key, now, token_changes, access.clone());
        Ok(access)
    }

    fn remembered(&self, key: &[u8; 32], now: Instant, token_changes: u64) -> Option<Access> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(key)?;
        (known.token_changes == token_changes && now < known.until).then(|| known.access.clone())
    }

    fn remember(&self, key: [u8; 32], now: Instant, token_changes: u64, access: Access) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, it| now < it.until);
        known.insert(
            key,
            Known {
                access,
                until: now + REMEMBERED,
                token_changes,
            },
        );
    }
}

impl Access {
    /// Says whether a server is open.
    pub fn opens(&self, server: &str) -> bool {
        self.servers
            .as_ref()
            .is_none_or(|servers| servers.contains(server))
    }

    fn unlimited(principal: &str) -> Self {
        Self {
            principal: principal.into(),
            servers: None,
            read_only: false,
            project: None,
        }
    }
}

impl From<Token> for Access {
    fn from(token: Token) -> Self {
        Self {
            principal: token.name.into(),
            servers: token.servers.map(Arc::new),
            read_only: token.read_only,
            project: token.project,
        }
    }
}

/// Lets a request through with its [`Access`] and its `Arc<Caller>` among its extensions, or answers it.
pub async fn admit(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let admitted = match check(&guard, &parts).await {
        Ok(access) => caller(&parts.uri, &access).map(|caller| (access, caller)),
        Err(refusal) => Err(refusal),
    };
    match admitted {
        Ok((access, caller)) => {
            parts.extensions.insert(access);
            parts.extensions.insert(Arc::new(caller));
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Decides who is calling. A refusal is logged here.
pub async fn check(guard: &Guard, parts: &Parts) -> Result<Access, Refusal> {
    let outcome = match check_place(guard, parts) {
        Ok(()) => guard.access(&parts.headers).await,
        Err(refusal) => Err(refusal),
    };
    match &outcome {
        Err(Refusal::Unavailable(error)) => tracing::error!(%error, "can't look up a token"),
        Err(refusal) => tracing::warn!(%refusal, "a request is refused"),
        Ok(_) => {}
    }
    outcome
}

pub(super) fn check_place(guard: &Guard, parts: &Parts) -> Result<(), Refusal> {
    let mut named = Vec::new();
    named.extend(parts.uri.authority().map(|it| it.as_str().as_bytes()));
    let headers: Vec<_> = parts.headers.get_all(HOST).iter().collect();
    named.extend(headers.iter().map(|it| it.as_bytes()));
    if named.is_empty() || headers.len() > 1 {
        return Err(Refusal::NoHost);
    }
    // HTTP/2 and a proxy's form of HTTP/1 name the host in the address; where both do, neither may be wrong.
    for host in named {
        if !is_text(host, |host| guard.answers_to(host)) {
            return Err(Refusal::Host { host: shown(host) });
        }
    }
    for origin in parts.headers.get_all(ORIGIN) {
        let origin = origin.as_bytes();
        if !is_text(origin, |origin| guard.lets_in(origin)) {
            return Err(Refusal::Origin {
                origin: shown(origin),
            });
        }
    }
    Ok(())
}

fn is_text(bytes: &[u8], is_right: impl FnOnce(&str) -> bool) -> bool {
    str::from_utf8(bytes).is_ok_and(is_right)
}

fn is_this_machine(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok_and(|it| it.is_loopback()),
        None => host == "localhost" || host.parse::<Ipv4Addr>().is_ok_and(|it| it.is_loopback()),
    }
}

fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Refusal::NoToken)?;
    if values.next().is_some() {
        return Err(Refusal::WrongToken);
    }
    let value = value.to_str().map_err(|_| Refusal::WrongToken)?;
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(Refusal::NoToken),
    }
}

/// Makes bytes from outside fit for a message and a log.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown: String = text
        .chars()
        .take(MOST_SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(MOST_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Reads what the address says about the caller: `?engine=…&project=…&session=…&model=…`, and `without=…` for each server
/// whose tools it doesn't want; `names=prefixed` where each tool's name is to have that of its server before it. The project of a token wins over the one in the address.
///
/// The session is as the address names it; where it names none, whoever finds it out says how.
pub fn caller(uri: &Uri, access: &Access) -> Result<Caller, Refusal> {
    let mut caller = Caller {
        principal: access.principal.to_string(),
        reach: Reach {
            servers: access.servers.as_deref().cloned(),
            read_only: access.read_only,
            ..Reach::default()
        },
        ..Caller::default()
    };
    let query = uri.query().unwrap_or_default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let (parameter, fact) = match name.as_ref() {
            "engine" => ("engine", &mut caller.engine),
            "project" => ("project", &mut caller.project),
            "session" => ("session", &mut caller.session),
            "model" => ("model", &mut caller.model),
            "names" => {
                caller.prefixed = value == "prefixed";
                continue;
            }
            "without" => {
                caller.reach.without.insert(value.into_owned());
                continue;
            }
            _ => continue,
        };
        let wrong = |problem| Refusal::Parameter { parameter, problem };
        if value.is_empty() {
            continue;
        }
        if !fact.is_empty() {
            return Err(wrong("is there twice; name it once"));
        }
        if value.contains(char::REPLACEMENT_CHARACTER) {
            return Err(wrong("can't be read; encode it as UTF-8"));
        }
        if value.chars().any(char::is_control) {
            return Err(wrong("holds a control character; leave it out"));
        }
        if value.chars().nth(LONGEST_NAME).is_some() {
            return Err(wrong("is longer than 200 characters; shorten it"));
        }
        *fact = value.into_owned();
    }
    caller.engine = Engine::one_name(caller.engine);
    if let Some(project) = &access.project {
        caller.project.clone_from(project);
    }
    Ok(caller)
}

impl Refusal {
    /// Returns the HTTP status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NoHost | Self::Parameter { .. } => StatusCode::BAD_REQUEST,
            Self::Host { .. } | Self::Origin { .. } => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn challenge(&self) -> Option<(HeaderName, HeaderValue)> {
        let challenge = match self {
            Self::NoToken => r#"Bearer realm="clopen-mcp""#,
            Self::WrongToken => r#"Bearer realm="clopen-mcp", error="invalid_token""#,
            _ => return None,
        };
        Some((WWW_AUTHENTICATE, HeaderValue::from_static(challenge)))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = match self {
            Self::Unavailable(_) => -32603,
            _ => -32600,
        };
        let body = json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": { "code": code, "message": self.to_string() },
        });
        let mut response = (self.status(), Json(body)).into_response();
        response.headers_mut().extend(self.challenge());
        response
    }
}
