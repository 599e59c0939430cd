//! Signing in to external servers with OAuth: once per server, subject and account, for all engines.
//!
//! A subject is on whose behalf a call is made. Whoever runs the bridge is the empty one: the service token, the command
//! line, a pipe, and the tokens that `connect` writes into this person's own files. Every other token is a subject of its
//! own, by its name. A subject without a credential is told to sign in; it is never given that of another.

mod accounts;
mod bearer;
mod challenge;
mod client;
mod discovery;
mod egress;
mod error;
mod flow;
mod kept;
mod renewal;
mod token;

pub use accounts::Account;
pub use bearer::Bearer;
pub use egress::{EgressError, Network};
pub use error::OAuthError;
pub use flow::{Begun, ClientOfPerson, Signed, SigningIn, State};

use super::Vault;
use crate::{
    config,
    secret::Secret,
    store::{CredentialKey, Store},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use challenge::{Challenge, scopes};
use egress::Egress;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

/// The path at which people come back from an authorization server.
pub const CALLBACK: &str = "/api/mcp/oauth/callback";
/// The path of the metadata document of this client.
pub const DOCUMENT: &str = "/api/mcp/oauth/client.json";
/// What an account is called that isn't called anything.
pub const USUAL_ACCOUNT: &str = "default";

/// What the names of the tokens begin with that `connect` writes, which no other token may have.
pub const OWN_TOKENS: &str = "connect-";

/// Signs in to external servers. Clones are the same.
#[derive(Clone)]
pub struct SignIns(Arc<Shared>);

struct Shared {
    store: Store,
    /// The folder of the vault's key, which is made when it is needed.
    data: PathBuf,
    vault: OnceLock<Vault>,
    settings: config::SignIn,
    network: Network,
    /// What the leases of this process are called.
    holder: String,
    bearers: Mutex<BTreeMap<(String, String, String), Bearer>>,
}

impl fmt::Debug for SignIns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignIns(…)")
    }
}

/// A server that one can sign in to.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name.
    pub server: String,
    /// Its address.
    pub url: String,
    /// What every request to it carries.
    pub headers: BTreeMap<String, Secret>,
}

impl Target {
    /// Whether it is given a token of its own, so that nobody signs in.
    pub fn has_token(&self) -> bool {
        has_token(&self.headers)
    }
}

/// Whether headers hold a token.
pub fn has_token(headers: &BTreeMap<String, Secret>) -> bool {
    headers
        .keys()
        .any(|it| it.eq_ignore_ascii_case("authorization"))
}

/// Returns on whose behalf the calls of a principal are made.
pub fn subject(principal: &str) -> &str {
    let is_own = matches!(principal, "service" | "anonymous") || principal.starts_with(OWN_TOKENS);
    if is_own { "" } else { principal }
}

/// What is to be typed to sign in.
pub fn sign_in_command(server: &str, subject: &str) -> String {
    if subject.is_empty() {
        format!("clopen-mcp auth login {server}")
    } else {
        format!("clopen-mcp auth login {server} --token {subject}")
    }
}

fn command(key: &CredentialKey) -> String {
    let command = sign_in_command(&key.server, &key.subject);
    if key.account == USUAL_ACCOUNT {
        command
    } else {
        format!("{command} --account {}", key.account)
    }
}

impl SignIns {
    /// Makes one that keeps what comes of it in a store, sealed by the vault of the data folder.
    pub fn new(store: Store, data: PathBuf, settings: config::SignIn, network: Network) -> Self {
        // It only tells processes apart.
        let holder = random().unwrap_or_else(|_| std::process::id().to_string());
        Self(Arc::new(Shared {
            store,
            data,
            vault: OnceLock::new(),
            settings,
            network,
            holder,
            bearers: Mutex::default(),
        }))
    }

    fn vault(&self) -> Result<&Vault, OAuthError> {
        if let Some(vault) = self.0.vault.get() {
            return Ok(vault);
        }
        let opened = Vault::open(&self.0.data)?;
        Ok(self.0.vault.get_or_init(|| opened))
    }

    /// Where people come back to, if the settings say how this bridge is reached from outside.
    pub fn public_callback(&self) -> Option<String> {
        let url = self.0.settings.public_url.as_deref()?;
        Some(format!("{}{CALLBACK}", url.trim_end_matches('/')))
    }

    /// The metadata document of this client, where there is a public address that it can be at.
    pub fn document(&self) -> Option<Value> {
        let (address, redirect) = (self.document_address()?, self.public_callback()?);
        Some(client::document(&address, &redirect))
    }

    fn document_address(&self) -> Option<String> {
        let url = self.0.settings.public_url.as_deref()?;
        let is_https = url.starts_with("https://");
        is_https.then(|| format!("{}{DOCUMENT}", url.trim_end_matches('/')))
    }

    /// Returns the place of the token for a server and a subject.
    pub fn bearer(&self, server: &str, url: &str, subject: &str) -> Bearer {
        let key = (server.to_owned(), url.to_owned(), subject.to_owned());
        let mut bearers = self
            .0
            .bearers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let bearer = bearers.entry(key);
        bearer
            .or_insert_with(|| Bearer::new(server, url, subject))
            .clone()
    }

    /// Has this process believe nothing any more of what it has read of a credential.
    async fn look_again(&self, key: &CredentialKey) {
        let bearers = self.0.bearers.lock();
        let bearers = bearers.unwrap_or_else(PoisonError::into_inner).clone();
        for bearer in bearers.into_values() {
            if bearer.server() == key.server && bearer.subject() == key.subject {
                bearer.turn().lock().await.looked_at = None;
            }
        }
    }

    /// Notes what a challenge asks for besides what a token is good for, for the next sign-in; returns it.
    pub async fn want(&self, bearer: &Bearer, challenge: &str) -> Result<Vec<String>, OAuthError> {
        let challenge = Challenge::read(challenge);
        let is_about_scopes = challenge.error.as_deref() == Some("insufficient_scope");
        let wanted = scopes(challenge.scope.as_deref());
        if !is_about_scopes || wanted.is_empty() {
            return Ok(Vec::new());
        }
        let (server, subject) = (bearer.server(), bearer.subject());
        if let Some(stored) = self.0.store.credential(server, subject, None).await? {
            let all = scopes(
                [stored.wanted.as_str()]
                    .into_iter()
                    .chain(wanted.iter().map(String::as_str)),
            );
            self.0
                .store
                .note_wanted_scopes(&stored.key, &all.join(" "))
                .await?;
        }
        Ok(wanted)
    }

    /// Whether anybody has signed in to a server besides whoever runs the bridge.
    pub async fn has_others(&self, server: &str) -> bool {
        let stored = self.0.store.credentials().await.unwrap_or_default();
        let mut keys = stored.iter().map(|it| &it.key);
        keys.any(|it| it.server == server && !it.subject.is_empty())
    }
}

/// A sign-in under way is known by the hash of its state, so that who reads the database can't finish it.
fn hashed(text: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(text))
}

fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

fn form_headers() -> HeaderMap {
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    let json = HeaderValue::from_static("application/json");
    HeaderMap::from_iter([(CONTENT_TYPE, form), (ACCEPT, json)])
}

fn form(fields: &[(&'static str, String)]) -> Vec<u8> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    form.finish().into_bytes()
}
