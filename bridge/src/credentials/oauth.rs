//! Signing in to external servers with OAuth: once per server, subject and account, for all engines.
//!
//! A subject is on whose behalf a call is made. Whoever runs the bridge is the empty one: the service token, the command
//! line, a pipe, and the tokens that `connect` writes into this person's own files. Every other token is a subject of its
//! own, by its name. A subject without a credential is told to sign in; it is never given that of another.

mod bearer;
mod challenge;
mod client;
mod discovery;
mod egress;
mod error;
mod kept;
mod renewal;
mod token;

pub use bearer::Bearer;
pub use egress::{EgressError, Network};
pub use error::OAuthError;

use super::Vault;
use crate::{
    config,
    secret::Secret,
    store::{CredentialKey, FlowState, Store, StoredCredential, now},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use challenge::{Challenge, scopes};
use client::{Client, Origin};
use discovery::{Authorization, OFFLINE};
use egress::Egress;
use error::shown;
use kept::{Agreement, Flow, Kept, Tokens, open, owner_of_client, owner_of_flow, seal};
use reqwest::{
    Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde::Serialize;
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

/// How long somebody may take to sign in, in milliseconds.
const PATIENCE: i64 = 10 * 60 * 1_000;
/// How long the address that was come back to may be.
const LONGEST_CALLBACK: usize = 64 * 1024;
/// What the names of the tokens begin with that `connect` writes, which no other token may have.
pub const OWN_TOKENS: &str = "connect-";
/// What stands for a sign-in that has to be begun again.
const AGAIN: &str = "again";
const DONE: &str = "ok";

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

/// Who wants to sign in to what.
#[derive(Clone, Debug)]
pub struct SigningIn {
    /// The server.
    pub target: Target,
    /// On whose behalf.
    pub subject: String,
    /// What the account is called here.
    pub account: String,
    /// Where the person comes back to.
    pub redirect: String,
    /// A client that the person has registered by hand.
    pub client: Option<ClientOfPerson>,
    /// What is asked for, instead of what the server says.
    pub scopes: Vec<String>,
    /// Whether a client is registered anew.
    pub anew: bool,
}

/// A client that a person has registered by hand.
#[derive(Clone, Debug)]
pub struct ClientOfPerson {
    /// Its id.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<Secret>,
}

/// A sign-in that has begun.
#[derive(Clone)]
pub struct Begun {
    /// What the person opens.
    pub url: String,
    state_hash: String,
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Begun(…)")
    }
}

/// Somebody has signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// To which server.
    pub server: String,
    /// On whose behalf.
    pub subject: String,
    /// With which account.
    pub account: String,
}

/// How a sign-in stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has come back yet.
    Waiting,
    /// It is done.
    Done,
    /// The client isn't known any more, and has been forgotten: it is worth the while to begin again.
    Again,
    /// It has failed, and why.
    Failed(String),
}

/// A credential, without what is secret.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// The server.
    pub server: String,
    /// On whose behalf.
    pub subject: String,
    /// What it is called.
    pub account: String,
    /// Whether calls use it.
    pub is_default: bool,
    /// Whether there is a token; if not, somebody has to sign in again.
    pub is_signed_in: bool,
    /// Who has given it.
    pub issuer: String,
    /// What was asked for.
    pub scopes: Vec<String>,
    /// What the server asks for besides.
    pub wanted: Vec<String>,
    /// Until when it is good, in milliseconds since 1970, where that is known.
    pub expires_at: Option<i64>,
    /// Whether it can be renewed.
    pub is_renewable: bool,
    /// When renewing is tried again that has failed.
    pub retry_at: Option<i64>,
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

    /// Begins to sign in: finds out where, makes this client known, and returns the address that the person opens.
    pub async fn begin(&self, asked: SigningIn) -> Result<Begun, OAuthError> {
        let server = asked.target.server.clone();
        if asked.target.has_token() {
            return Err(OAuthError::HasHeader { server });
        }
        let url = Url::parse(&asked.target.url).map_err(|error| OAuthError::Answer {
            what: format!("sign in to `{server}`"),
            reason: format!("its address is none: {error}"),
        })?;
        let egress = self.0.network.for_server(&url).await;
        let egress = egress.map_err(|error| OAuthError::Answer {
            what: "set up the HTTP client to sign in with".to_owned(),
            reason: error.to_string(),
        })?;
        let headers = headers_of(&asked.target.headers);
        let found = discovery::find(&egress, &server, &url, &headers).await?;
        let key = CredentialKey {
            server,
            subject: asked.subject.clone(),
            account: asked.account.clone(),
        };
        let before = self.before(&key, &asked.target.url).await?;
        let mut wanted = match &before {
            // A step up asks for what there was as well.
            Some((kept, wanted)) if !wanted.is_empty() => {
                let all = [&kept.agreement.scopes, wanted, &found.scopes, &asked.scopes];
                scopes(all.into_iter().flatten().map(String::as_str))
            }
            _ if !asked.scopes.is_empty() => scopes(asked.scopes.iter().map(String::as_str)),
            _ => found.scopes.clone(),
        };
        let is_listed = found.authorization.offers_offline && !wanted.is_empty();
        if is_listed && !wanted.iter().any(|it| it == OFFLINE) {
            wanted.push(OFFLINE.to_owned());
        }
        let before = before.map(|(kept, _)| kept.agreement);
        let client = self
            .client(&egress, &found.authorization, &asked, before, &wanted)
            .await?;
        let says_resource = !self.0.settings.without_resource.contains(&key.server);
        let agreement = Agreement {
            url: asked.target.url,
            resource: says_resource.then_some(found.resource),
            authorization: found.authorization,
            client,
            redirect: asked.redirect,
            scopes: wanted,
        };
        self.keep_flow(&egress, key, agreement).await
    }

    /// What is known of an earlier sign-in to the same server, and which scopes the server has asked for since.
    async fn before(
        &self,
        key: &CredentialKey,
        url: &str,
    ) -> Result<Option<(Kept, Vec<String>)>, OAuthError> {
        let (server, subject) = (&key.server, &key.subject);
        let stored = self.0.store.credential(server, subject, Some(&key.account));
        let Some(stored) = stored.await? else {
            return Ok(None);
        };
        // What can't be opened any more doesn't keep anybody from signing in again.
        let kept = Kept::opened(self.vault()?, &stored).ok();
        let kept = kept.filter(|it| it.agreement.url == url);
        Ok(kept.map(|it| (it, scopes([&*stored.wanted]))))
    }

    /// Returns who we are to an authorization server.
    async fn client(
        &self,
        egress: &Egress,
        authorization: &Authorization,
        asked: &SigningIn,
        before: Option<Agreement>,
        scopes: &[String],
    ) -> Result<Client, OAuthError> {
        if let Some(by_hand) = &asked.client {
            let secret = by_hand.secret.as_ref();
            return Ok(Client::by_hand(&by_hand.id, secret, authorization));
        }
        let (issuer, redirect) = (&authorization.issuer, &asked.redirect);
        let known = before.filter(|it| it.authorization.issuer == *issuer);
        if let Some(known) = known.filter(|it| it.client.origin == Origin::ByHand) {
            return Ok(known.client);
        }
        if authorization.takes_documents
            && let Some(address) = self.document_address()
        {
            return Ok(Client::of_document(&address));
        }
        let Some(endpoint) = &authorization.register else {
            return Err(OAuthError::NoClient {
                issuer: shown(issuer, &[]),
                redirect: redirect.clone(),
                takes_documents: authorization.takes_documents,
            });
        };
        let owner = owner_of_client(issuer, redirect);
        if !asked.anew
            && let Some(sealed) = self.0.store.oauth_client(issuer, redirect).await?
            && let Ok(Some(client)) = open::<Client>(self.vault()?, &owner, &sealed)
            && client.expires_at.is_none_or(|it| now() < it)
        {
            return Ok(client);
        }
        let client = client::register(egress, authorization, endpoint, redirect, scopes).await?;
        let sealed = seal(self.vault()?, &owner, &client)?;
        let store = &self.0.store;
        store
            .save_oauth_client(issuer, redirect, &sealed, now())
            .await?;
        Ok(client)
    }

    /// Keeps a sign-in that begins, and puts the address together that the person opens.
    async fn keep_flow(
        &self,
        egress: &Egress,
        key: CredentialKey,
        agreement: Agreement,
    ) -> Result<Begun, OAuthError> {
        let (state, verifier) = (random()?, random()?);
        let hash = hashed(&verifier);
        let issuer = shown(&agreement.authorization.issuer, &[]);
        let authorize = Url::parse(&agreement.authorization.authorize);
        let mut url = authorize.map_err(|error| OAuthError::Answer {
            what: format!("sign in with `{issuer}`"),
            reason: format!("its authorization endpoint has no address: {error}"),
        })?;
        egress.check(&url).map_err(|source| OAuthError::Request {
            what: format!("sign in with `{issuer}`"),
            source,
        })?;
        url.set_fragment(None);
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", &agreement.client.id),
            ("redirect_uri", &agreement.redirect),
            ("state", &state),
            ("code_challenge", &hash),
            ("code_challenge_method", "S256"),
        ];
        let scope = agreement.scopes.join(" ");
        if !scope.is_empty() {
            query.push(("scope", &scope));
        }
        query.extend(agreement.resource.as_deref().map(|it| ("resource", it)));
        if agreement.scopes.iter().any(|it| it == OFFLINE) {
            query.push(("prompt", "consent"));
        }
        url.query_pairs_mut().extend_pairs(query);
        let state_hash = hashed(&state);
        let flow = Flow {
            server: key.server,
            subject: key.subject,
            account: key.account,
            agreement,
            verifier,
        };
        let sealed = seal(self.vault()?, &owner_of_flow(&state_hash), &flow)?;
        let (now, store) = (now(), &self.0.store);
        let until = now.saturating_add(PATIENCE);
        store
            .begin_oauth_flow(&state_hash, &sealed, until, now)
            .await?;
        Ok(Begun {
            url: url.to_string(),
            state_hash,
        })
    }

    /// Finishes a sign-in with what the person came back with: the address, or its query.
    pub async fn finish(&self, callback: &str) -> Result<Signed, OAuthError> {
        let callback = callback.trim();
        let query = callback.split_once('?').map_or(callback, |(_, it)| it);
        let query = query.split('#').next().unwrap_or_default();
        let query = if query.len() > LONGEST_CALLBACK {
            ""
        } else {
            query
        };
        let answers: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let state = answers.get("state").filter(|it| !it.is_empty());
        let state = state.ok_or(OAuthError::Callback { missing: "state" })?;
        let hash = hashed(state);
        let taken = self.0.store.take_oauth_flow(&hash, now()).await?;
        let sealed = taken.ok_or(OAuthError::State)?;
        let flow = open::<Flow>(self.vault()?, &owner_of_flow(&hash), &sealed);
        let finished = match flow {
            Ok(Some(flow)) => self.exchange(flow, &answers).await,
            Ok(None) => Err(OAuthError::State),
            Err(error) => Err(error),
        };
        let outcome = match &finished {
            Ok(_) => DONE.to_owned(),
            Err(OAuthError::ClientGone { .. }) => AGAIN.to_owned(),
            Err(error) => error.to_string(),
        };
        self.0.store.end_oauth_flow(&hash, &outcome).await?;
        finished
    }

    /// Says how a sign-in stands, also where another process finishes it.
    pub async fn state(&self, begun: &Begun) -> Result<State, OAuthError> {
        Ok(
            match self.0.store.oauth_flow(&begun.state_hash, now()).await? {
                FlowState::Waiting => State::Waiting,
                FlowState::Taken(outcome) => match &*outcome {
                    "" => State::Waiting,
                    DONE => State::Done,
                    AGAIN => State::Again,
                    why => State::Failed(why.to_owned()),
                },
                FlowState::Gone => State::Failed(OAuthError::State.to_string()),
            },
        )
    }

    /// Makes a token of a code.
    async fn exchange(
        &self,
        flow: Flow,
        answers: &BTreeMap<String, String>,
    ) -> Result<Signed, OAuthError> {
        let agreement = flow.agreement;
        let authorization = &agreement.authorization;
        let issuer = shown(&authorization.issuer, &[]);
        let found = answers.get("iss");
        let is_mixed = match found {
            Some(found) => *found != authorization.issuer,
            None => authorization.names_itself,
        };
        if is_mixed {
            return Err(OAuthError::Mixed {
                expected: issuer,
                found: found.map(|it| shown(it, &[])),
            });
        }
        if let Some(code) = answers.get("error") {
            let words = [answers.get("error_description"), Some(code)];
            let words = words.into_iter().flatten().map(|it| shown(it, &[]));
            let reason: Vec<String> = words.collect();
            return Err(OAuthError::Denied {
                reason: reason.join("; "),
            });
        }
        let code = answers.get("code").filter(|it| !it.is_empty());
        let code = code.ok_or(OAuthError::Callback { missing: "code" })?;
        let mut form = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.clone()),
            ("redirect_uri", agreement.redirect.clone()),
            ("code_verifier", flow.verifier.clone()),
        ];
        form.extend(agreement.resource.clone().map(|it| ("resource", it)));
        let told = [Secret::new(code), Secret::new(flow.verifier)];
        let told: Vec<&Secret> = told.iter().collect();
        let given = match self.ask_for_token(&agreement, form, &told).await {
            Ok(given) => given,
            Err(error)
                if error.is("invalid_client") && agreement.client.origin == Origin::Registered =>
            {
                let (store, issuer) = (&self.0.store, &authorization.issuer);
                store
                    .delete_oauth_client(issuer, &agreement.redirect)
                    .await?;
                return Err(OAuthError::ClientGone {
                    issuer: shown(issuer, &[]),
                });
            }
            Err(error) => {
                return Err(OAuthError::Refused {
                    issuer,
                    reason: error.reason().to_owned(),
                });
            }
        };
        let key = CredentialKey {
            server: flow.server,
            subject: flow.subject,
            account: flow.account,
        };
        let kept = Kept {
            agreement,
            tokens: Some(Tokens {
                access: given.access.expose().to_owned(),
                refresh: given.refresh.map(|it| it.expose().to_owned()),
            }),
        };
        let sealed = kept.sealed(self.vault()?, &key)?;
        let (store, now) = (&self.0.store, now());
        store
            .save_credential(&key, &sealed, given.expires_at, now)
            .await?;
        self.look_again(&key).await;
        Ok(Signed {
            server: key.server,
            subject: key.subject,
            account: key.account,
        })
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

    /// Returns all credentials, without what is secret.
    pub async fn accounts(&self) -> Result<Vec<Account>, OAuthError> {
        let stored = self.0.store.credentials().await?;
        Ok(stored.into_iter().map(|it| self.account(it)).collect())
    }

    fn account(&self, stored: StoredCredential) -> Account {
        let kept = self.vault().and_then(|it| Kept::opened(it, &stored)).ok();
        let tokens = kept.as_ref().and_then(|it| it.tokens.as_ref());
        let agreement = kept.as_ref().map(|it| &it.agreement);
        let is_good = stored.expires_at.is_none_or(|it| now() < it);
        let is_renewable = tokens.is_some_and(|it| it.refresh.is_some());
        Account {
            is_signed_in: tokens.is_some() && (is_good || is_renewable),
            is_renewable,
            issuer: agreement.map_or_else(String::new, |it| shown(&it.authorization.issuer, &[])),
            scopes: agreement.map_or_else(Vec::new, |it| it.scopes.clone()),
            wanted: scopes([&*stored.wanted]),
            server: stored.key.server,
            subject: stored.key.subject,
            account: stored.key.account,
            is_default: stored.is_default,
            expires_at: stored.expires_at,
            retry_at: stored.retry_at,
        }
    }

    async fn named(
        &self,
        server: &str,
        subject: &str,
        account: Option<&str>,
    ) -> Result<StoredCredential, OAuthError> {
        let stored = self.0.store.credential(server, subject, account).await?;
        stored.ok_or_else(|| OAuthError::NotSignedIn {
            server: server.to_owned(),
            command: sign_in_command(server, subject),
        })
    }

    /// Renews a credential, also one that is still good.
    pub async fn refresh(
        &self,
        server: &str,
        subject: &str,
        account: Option<&str>,
    ) -> Result<(), OAuthError> {
        let stored = self.named(server, subject, account).await?;
        let renewed = self
            .current(&stored.key, None, Some(stored.version))
            .await?;
        renewed.map(drop).ok_or_else(|| OAuthError::NotSignedIn {
            server: server.to_owned(),
            command: command(&stored.key),
        })
    }

    /// Forgets a credential, and takes its tokens back where the authorization server offers that. Returns why it didn't
    /// take them.
    pub async fn sign_out(
        &self,
        server: &str,
        subject: &str,
        account: Option<&str>,
    ) -> Result<Option<String>, OAuthError> {
        let stored = self.named(server, subject, account).await?;
        let kept = self.vault().and_then(|it| Kept::opened(it, &stored)).ok();
        self.0.store.delete_credential(&stored.key).await?;
        self.look_again(&stored.key).await;
        match kept {
            Some(kept) => Ok(self.revoke(&kept).await),
            None => Ok(None),
        }
    }

    async fn revoke(&self, kept: &Kept) -> Option<String> {
        let Agreement {
            url,
            authorization,
            client,
            ..
        } = &kept.agreement;
        let (tokens, endpoint) = (kept.tokens.as_ref()?, authorization.revoke.as_ref()?);
        let (Ok(url), Ok(endpoint)) = (Url::parse(url), Url::parse(endpoint)) else {
            return Some("its revocation endpoint has no address".to_owned());
        };
        let egress = match self.0.network.for_server(&url).await {
            Ok(egress) => egress,
            Err(error) => return Some(error.to_string()),
        };
        // What gets others goes first.
        let refresh = tokens.refresh.as_ref().map(|it| (it, "refresh_token"));
        for (token, hint) in refresh
            .into_iter()
            .chain([(&tokens.access, "access_token")])
        {
            let mut form = vec![
                ("token", token.clone()),
                ("token_type_hint", hint.to_owned()),
            ];
            let mut headers = form_headers();
            client.sign(&mut form, &mut headers);
            match egress.post(&endpoint, headers, self::form(&form)).await {
                Ok(answer) if answer.is_success() => {}
                Ok(answer) => return Some(format!("it answered with status {}", answer.status)),
                Err(error) => return Some(error.to_string()),
            }
        }
        None
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

fn headers_of(headers: &BTreeMap<String, Secret>) -> HeaderMap {
    // The connection says what is wrong with those that are none.
    let headers = headers.iter().filter_map(|(name, value)| {
        let mut value = HeaderValue::from_str(value.expose()).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    });
    headers.collect()
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
