//! An authorization server of this test's own, and an MCP server that takes only its tokens, on one port: they speak the
//! real protocol, and do wrong what a test wants them to.

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::net::TcpListener;

/// What it does otherwise than usual.
#[derive(Clone)]
pub(crate) struct Habits {
    /// What the challenge of a 401 says; `{site}` is its origin. Without one there is no header.
    pub(crate) challenge: Option<String>,
    /// The paths at which the metadata of the MCP server are, and what they say besides.
    pub(crate) resource_paths: Vec<&'static str>,
    pub(crate) resource: Value,
    /// The paths at which the metadata of the authorization server are, and what they say besides; `null` takes out.
    pub(crate) metadata_paths: Vec<&'static str>,
    pub(crate) metadata: Value,
    /// The path of the issuer.
    pub(crate) issuer_path: &'static str,
    /// Paths that answer with a status.
    pub(crate) failing: BTreeMap<&'static str, u16>,
    /// Paths that redirect.
    pub(crate) moved: BTreeMap<&'static str, String>,
    /// What the token endpoint answers, instead of a token: status, kind, body.
    pub(crate) token_answer: Option<(u16, &'static str, String)>,
    /// What is put over the token's answer; `null` takes out.
    pub(crate) token: Value,
    /// Why no client is registered.
    pub(crate) refuses_clients: Option<String>,
    /// What it says who it is when it sends people back.
    pub(crate) iss: Option<String>,
    /// A header that the MCP server wants with every request.
    pub(crate) wanted_header: Option<(&'static str, &'static str)>,
    /// Whether the MCP server takes no token at all.
    pub(crate) refuses_tokens: bool,
    /// A scope that its tool wants.
    pub(crate) tool_scope: Option<&'static str>,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            challenge: Some(
                r#"Bearer resource_metadata="{site}/.well-known/oauth-protected-resource/mcp""#
                    .to_owned(),
            ),
            resource_paths: vec!["/.well-known/oauth-protected-resource/mcp"],
            resource: json!({}),
            metadata_paths: vec!["/.well-known/oauth-authorization-server"],
            metadata: json!({}),
            issuer_path: "",
            failing: BTreeMap::new(),
            moved: BTreeMap::new(),
            token_answer: None,
            token: json!({}),
            refuses_clients: None,
            iss: None,
            wanted_header: None,
            refuses_tokens: false,
            tool_scope: None,
        }
    }
}

struct Code {
    challenge: String,
    redirect: String,
    client: String,
    resource: Option<String>,
    scope: String,
}

struct Refresh {
    family: usize,
    is_used: bool,
    scope: String,
}

/// What it was asked.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: String,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) habits: Habits,
    pub(crate) clients: BTreeMap<String, Option<String>>,
    codes: BTreeMap<String, Code>,
    /// The scopes of tokens.
    pub(crate) access: BTreeMap<String, String>,
    refreshes: BTreeMap<String, Refresh>,
    dead_families: BTreeSet<usize>,
    pub(crate) reused: usize,
    pub(crate) refreshed: usize,
    pub(crate) registered: usize,
    pub(crate) revoked: Vec<String>,
    pub(crate) seen: Vec<Seen>,
    number: usize,
}

#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) origin: String,
    inner: Arc<Mutex<Inner>>,
}

impl Site {
    pub(crate) async fn serve(habits: Habits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let site = Self {
            origin: format!("http://{address}"),
            inner: Arc::default(),
        };
        site.inner().habits = habits;
        let router = Router::new().fallback(answer).with_state(site.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        site
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("it is free")
    }

    pub(crate) fn mcp(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    pub(crate) fn issuer(&self) -> String {
        format!("{}{}", self.origin, self.inner().habits.issuer_path)
    }

    /// How often something was asked.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.inner()
            .seen
            .iter()
            .filter(|it| it.path == path)
            .count()
    }

    /// What a token was asked for with, last.
    pub(crate) fn last(&self, path: &str) -> BTreeMap<String, String> {
        let inner = self.inner();
        let last = inner.seen.iter().rfind(|it| it.path == path);
        fields(last.expect("it was asked").body.as_bytes())
    }

    /// Every secret that it has given.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let inner = self.inner();
        let all = inner
            .access
            .keys()
            .chain(inner.refreshes.keys())
            .chain(inner.codes.keys());
        all.cloned()
            .chain(inner.clients.values().flatten().cloned())
            .collect()
    }

    /// Forgets all clients.
    pub(crate) fn forget_clients(&self) {
        self.inner().clients.clear();
    }

    /// Does not take the tokens any more that it has given; they can be renewed.
    pub(crate) fn expire(&self) {
        self.inner().access.clear();
    }

    /// Agrees as a person does who opens an address; returns where the browser is sent.
    pub(crate) fn agree(&self, url: &str) -> String {
        let (_, query) = url.split_once('?').expect("it has a query");
        let asked = fields(query.as_bytes());
        assert_eq!(asked["response_type"], "code");
        assert_eq!(asked["code_challenge_method"], "S256");
        let issuer = self.issuer();
        let mut inner = self.inner();
        let code = inner.name("code");
        let answers = [
            ("code", Some(code.clone())),
            ("state", Some(asked["state"].clone())),
            (
                "iss",
                inner
                    .habits
                    .iss
                    .clone()
                    .map(|it| it.replace("{issuer}", &issuer)),
            ),
        ];
        let answers = answers
            .into_iter()
            .filter_map(|(name, it)| Some((name, it?)));
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(answers);
        let code_of = Code {
            challenge: asked["code_challenge"].clone(),
            redirect: asked["redirect_uri"].clone(),
            client: asked["client_id"].clone(),
            resource: asked.get("resource").cloned(),
            scope: asked.get("scope").cloned().unwrap_or_default(),
        };
        inner.codes.insert(code, code_of);
        format!("{}?{}", asked["redirect_uri"], query.finish())
    }
}

impl Inner {
    fn name(&mut self, kind: &str) -> String {
        self.number += 1;
        format!("planted-{kind}-{}", self.number)
    }

    fn give(&mut self, family: Option<usize>, scope: String) -> Value {
        let (access, refresh) = (self.name("access"), self.name("refresh"));
        let family = family.unwrap_or(self.number);
        self.access.insert(access.clone(), scope.clone());
        let kept = Refresh {
            family,
            is_used: false,
            scope,
        };
        self.refreshes.insert(refresh.clone(), kept);
        let mut given = json!({
            "access_token": access, "token_type": "Bearer", "expires_in": 3600,
            "refresh_token": refresh,
        });
        merge(&mut given, &self.habits.token);
        given
    }
}

fn merge(value: &mut Value, over: &Value) {
    let (Some(value), Some(over)) = (value.as_object_mut(), over.as_object()) else {
        return;
    };
    for (name, it) in over {
        if it.is_null() {
            value.remove(name);
        } else {
            value.insert(name.clone(), it.clone());
        }
    }
}

pub(crate) fn fields(query: &[u8]) -> BTreeMap<String, String> {
    form_urlencoded::parse(query).into_owned().collect()
}

fn told(status: u16, value: &Value) -> Response {
    let status = StatusCode::from_u16(status).expect("it is one");
    let kind = [(CONTENT_TYPE, "application/json")];
    (status, kind, value.to_string()).into_response()
}

fn refused(status: u16, code: &str) -> Response {
    told(
        status,
        &json!({ "error": code, "error_description": format!("no: {code}") }),
    )
}

async fn answer(State(site): State<Site>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.expect("it is short");
    let path = parts.uri.path().to_owned();
    let header = |name: &str| {
        let value = parts.headers.get(name)?;
        Some(value.to_str().expect("it is text").to_owned())
    };
    let issuer = site.issuer();
    let mut inner = site.inner();
    inner.seen.push(Seen {
        path: path.clone(),
        authorization: header("authorization"),
        body: String::from_utf8_lossy(&body).into_owned(),
    });
    if let Some(status) = inner.habits.failing.get(&*path) {
        return told(*status, &json!({}));
    }
    if let Some(place) = inner.habits.moved.get(&*path) {
        let place = place.replace("{site}", &site.origin);
        return (StatusCode::FOUND, [("location", place)]).into_response();
    }
    let habits = inner.habits.clone();
    if habits.resource_paths.contains(&&*path) {
        let mut metadata = json!({
            "resource": site.mcp(), "authorization_servers": [issuer],
        });
        merge(&mut metadata, &habits.resource);
        return told(200, &metadata);
    }
    if habits.metadata_paths.contains(&&*path) {
        let at = |path: &str| format!("{}{path}", site.origin);
        let mut metadata = json!({
            "issuer": issuer,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "revocation_endpoint": at("/revoke"),
            "code_challenge_methods_supported": ["S256"],
        });
        merge(&mut metadata, &habits.metadata);
        return told(200, &metadata);
    }
    match &*path {
        "/register" => register(&mut inner, &body),
        "/token" => token(&mut inner, &parts.headers, &body),
        "/revoke" => {
            let token = fields(&body)["token"].clone();
            inner.access.remove(&token);
            inner.refreshes.remove(&token);
            inner.revoked.push(token);
            told(200, &json!({}))
        }
        "/mcp" => {
            if let Some((name, value)) = habits.wanted_header
                && header(name).as_deref() != Some(value)
            {
                return told(400, &json!({ "error": "a header is missing" }));
            }
            mcp(&site.origin, &inner, header("authorization"), &body)
        }
        _ => told(404, &json!({})),
    }
}

fn register(inner: &mut Inner, body: &[u8]) -> Response {
    if let Some(reason) = &inner.habits.refuses_clients {
        let refusal = json!({ "error": "invalid_redirect_uri", "error_description": reason });
        return told(400, &refusal);
    }
    let mut client: Value = serde_json::from_slice(body).expect("it is JSON");
    let id = inner.name("client");
    inner.registered += 1;
    inner.clients.insert(id.clone(), None);
    client["client_id"] = id.into();
    told(201, &client)
}

fn token(inner: &mut Inner, headers: &HeaderMap, body: &Bytes) -> Response {
    if let Some((status, kind, body)) = inner.habits.token_answer.clone() {
        let status = StatusCode::from_u16(status).expect("it is one");
        return (status, [(CONTENT_TYPE, kind)], body).into_response();
    }
    let asked = fields(body);
    let client = asked.get("client_id").cloned().unwrap_or_else(|| {
        let basic = headers["authorization"].to_str().expect("it is text");
        let pair = base64::prelude::BASE64_STANDARD.decode(basic.trim_start_matches("Basic "));
        let pair = String::from_utf8(pair.expect("it is base64")).expect("it is text");
        pair.split_once(':').expect("it is a pair").0.to_owned()
    });
    if !inner.clients.contains_key(&client) {
        return refused(401, "invalid_client");
    }
    if asked["grant_type"] == "authorization_code" {
        let Some(code) = inner.codes.remove(&asked["code"]) else {
            return refused(400, "invalid_grant");
        };
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&asked["code_verifier"]));
        let is_right = hash == code.challenge
            && asked["redirect_uri"] == code.redirect
            && asked.get("resource") == code.resource.as_ref()
            && client == code.client;
        if !is_right {
            return refused(400, "invalid_grant");
        }
        return told(200, &inner.give(None, code.scope));
    }
    inner.refreshed += 1;
    let dead = inner.dead_families.clone();
    let Some(refresh) = inner.refreshes.get_mut(&asked["refresh_token"]) else {
        return refused(400, "invalid_grant");
    };
    let family = refresh.family;
    if dead.contains(&family) {
        return refused(400, "invalid_grant");
    }
    if std::mem::replace(&mut refresh.is_used, true) {
        inner.dead_families.insert(family);
        inner.reused += 1;
        return refused(400, "invalid_grant");
    }
    let scope = refresh.scope.clone();
    let omits = inner.habits.token.get("refresh_token") == Some(&Value::Null);
    if omits {
        // It is not one that is used once.
        refresh.is_used = false;
    }
    told(200, &inner.give(Some(family), scope))
}

fn mcp(origin: &str, inner: &Inner, authorization: Option<String>, body: &[u8]) -> Response {
    let token = authorization.and_then(|it| it.strip_prefix("Bearer ").map(str::to_owned));
    let scope = token.and_then(|it| inner.access.get(&it));
    let Some(scope) = scope.filter(|_| !inner.habits.refuses_tokens) else {
        let mut response = told(401, &json!({}));
        if let Some(challenge) = &inner.habits.challenge {
            let challenge = challenge.replace("{site}", origin);
            let challenge = challenge.parse().expect("it can be a header");
            response.headers_mut().insert("www-authenticate", challenge);
        }
        return response;
    };
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let (id, method) = (
        &message["id"],
        message["method"].as_str().unwrap_or_default(),
    );
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "protected", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{
            "name": "whoami", "description": "Say who calls.", "inputSchema": { "type": "object" },
        }] }),
        "tools/call" => {
            if let Some(wanted) = inner.habits.tool_scope
                && !scope.split(' ').any(|it| it == wanted)
            {
                let mut response = told(403, &json!({}));
                let challenge = format!(r#"Bearer error="insufficient_scope", scope="{wanted}""#);
                let challenge = challenge.parse().expect("it can be a header");
                response.headers_mut().insert("www-authenticate", challenge);
                return response;
            }
            json!({ "content": [{ "type": "text", "text": format!("scopes: {scope}") }] })
        }
        _ if id.is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({ "code": -32601, "message": "there is no such method" });
            return told(200, &json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    told(
        200,
        &json!({ "jsonrpc": "2.0", "id": id, "result": result }),
    )
}
