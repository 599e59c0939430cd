//! A sign-in, from the address that a person opens to the token.

use super::{
    Egress, OAuthError, SignIns, Target,
    challenge::scopes,
    client::{self, Client, Origin},
    discovery::{self, Authorization, OFFLINE},
    error::shown,
    hashed,
    kept::{Agreement, Flow, Kept, Tokens, open, owner_of_client, owner_of_flow, seal},
    random,
};
use crate::{
    secret::Secret,
    store::{CredentialKey, FlowState, now},
};
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use std::{collections::BTreeMap, fmt};

/// How long somebody may take to sign in, in milliseconds.
const PATIENCE: i64 = 10 * 60 * 1_000;
/// How long the address that was come back to may be.
const LONGEST_CALLBACK: usize = 64 * 1024;
/// What stands for a sign-in that has to be begun again.
const AGAIN: &str = "again";
const DONE: &str = "ok";

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

impl SignIns {
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
