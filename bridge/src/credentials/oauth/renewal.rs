//! Keeps tokens good: each is renewed by one at a time, whoever else needs it, here or on another machine.
//!
//! In this process the place of a token has a lock. Between processes there is a lease in the database: who has it asks for
//! a new token, others wait and read what came of it. A token that can be used once to get another is so used once.

use super::{
    SignIns,
    bearer::Bearer,
    client::Origin,
    command,
    error::{OAuthError, shown},
    kept::{Kept, Tokens},
    token::{self, Given, NotGiven},
};
use crate::{
    secret::Secret,
    store::{CredentialKey, StoredCredential, now},
};
use reqwest::Url;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long before its end a token is renewed, in milliseconds; earlier than a quarter of its life it isn't.
const AHEAD: i64 = 60_000;
/// For how long one may renew a token, in milliseconds: longer than the request takes.
const LEASE: i64 = 30_000;
/// How long to wait for another that renews it.
const WAIT: Duration = Duration::from_secs(35);
/// How often to look whether it has.
const PAUSE: Duration = Duration::from_millis(50);
/// How long what was read is believed: others may have signed in or out.
const BELIEVED: Duration = Duration::from_secs(1);
/// How long a server that refuses a new token is not given another.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long to wait after a failure, in milliseconds, at most.
const LONGEST_REST: i64 = 300_000;

/// A credential that can be used.
pub(super) struct Current {
    pub(super) token: Secret,
    pub(super) version: i64,
    due_at: Option<i64>,
}

impl SignIns {
    /// Sees to it that the place of a token holds a good one, where somebody has signed in.
    pub async fn ready(&self, bearer: &Bearer) -> Result<(), OAuthError> {
        let mut turn = bearer.turn().lock().await;
        let is_recent = turn.looked_at.is_some_and(|it| it.elapsed() < BELIEVED);
        if is_recent && bearer.held().due_at.is_none_or(|it| now() < it) {
            return Ok(());
        }
        let current = self.current_of(bearer, None).await?;
        turn.looked_at = Some(Instant::now());
        hold(bearer, current);
        Ok(())
    }

    /// Gets another token in place of one that the server has refused, known by its version; says whether there is one.
    pub async fn renewed(&self, bearer: &Bearer, refused: i64) -> Result<bool, OAuthError> {
        let mut turn = bearer.turn().lock().await;
        let is_again = turn.renewed_at.is_some_and(|it| it.elapsed() < PATIENCE);
        let had = bearer.held();
        if had.version == refused && had.token.is_some() && is_again {
            return Ok(false);
        }
        let refused_one = had.token.is_some().then_some(refused);
        let current = self.current_of(bearer, refused_one).await?;
        turn.looked_at = Some(Instant::now());
        let is_other = current.as_ref().is_some_and(|it| it.version != refused);
        if is_other && had.token.is_some() {
            turn.renewed_at = Some(Instant::now());
        }
        hold(bearer, current);
        Ok(is_other)
    }

    async fn current_of(
        &self,
        bearer: &Bearer,
        refused: Option<i64>,
    ) -> Result<Option<Current>, OAuthError> {
        let (server, subject) = (bearer.server(), bearer.subject());
        let stored = self.0.store.credential(server, subject, None).await?;
        match stored {
            Some(stored) => self.current(&stored.key, Some(bearer.url()), refused).await,
            None => Ok(None),
        }
    }

    /// Returns a token that is good; `None` if somebody has to sign in. `url` is the server that it is for.
    pub(super) async fn current(
        &self,
        key: &CredentialKey,
        url: Option<&str>,
        refused: Option<i64>,
    ) -> Result<Option<Current>, OAuthError> {
        let end = Instant::now() + WAIT;
        let mut has_renewed = false;
        loop {
            let now = now();
            let (server, subject, account) = (&key.server, &key.subject, Some(&*key.account));
            let stored = self.0.store.credential(server, subject, account).await?;
            let Some(stored) = stored else {
                return Ok(None);
            };
            let kept = Kept::opened(self.vault()?, &stored)?;
            let is_elsewhere = url.is_some_and(|it| it != kept.agreement.url);
            let Some(tokens) = kept.tokens.as_ref().filter(|_| !is_elsewhere) else {
                return Ok(None);
            };
            let current = Current {
                token: Secret::new(tokens.access.clone()),
                version: stored.version,
                due_at: due_at(&stored),
            };
            let is_refused = refused == Some(stored.version);
            let is_due = current.due_at.is_some_and(|it| it <= now);
            if !(is_refused || is_due) || has_renewed {
                return Ok(Some(current));
            }
            let is_over = is_refused || stored.expires_at.is_some_and(|it| it <= now);
            let good = (!is_over).then_some(current);
            if tokens.refresh.is_none() {
                return Ok(good);
            }
            let resting = |reason: &str, until: i64| OAuthError::Resting {
                server: key.server.clone(),
                reason: reason.to_owned(),
                wait: (until - now).max(1_000) / 1_000,
            };
            if let Some(retry_at) = stored.retry_at.filter(|it| now < *it) {
                let failed = resting("it has just failed", retry_at);
                return good.map(Some).ok_or(failed);
            }
            let lease = (now, now.saturating_add(LEASE));
            let (holder, version) = (&self.0.holder, stored.version);
            if self
                .0
                .store
                .lease_credential(key, version, holder, lease)
                .await?
            {
                // It goes on if nobody waits for it any more: what comes may be the only good token.
                let (all, stored) = (self.clone(), stored);
                let renewal = tokio::spawn(async move { all.renew(&stored, kept).await });
                match renewal.await {
                    Ok(renewed) => match renewed? {
                        None => has_renewed = true,
                        Some((reason, until)) => {
                            return good.map(Some).ok_or_else(|| resting(&reason, until));
                        }
                    },
                    Err(_) => return Err(resting("the renewal ended early", now)),
                }
            } else if Instant::now() > end {
                let failed = resting("another process doesn't get done with it", now);
                return good.map(Some).ok_or(failed);
            } else {
                sleep(PAUSE).await;
            }
        }
    }

    /// Renews a credential that this process has the lease of. Returns why it can't be done now, and until when.
    async fn renew(
        &self,
        stored: &StoredCredential,
        mut kept: Kept,
    ) -> Result<Option<(String, i64)>, OAuthError> {
        let key = &stored.key;
        let mine = (key, stored.version, &*self.0.holder);
        let refresh = kept.tokens.as_ref().and_then(|it| it.refresh.clone());
        let given = match &refresh {
            Some(refresh) => self.ask_again(&kept, refresh).await,
            None => Err(NotGiven::Transient(
                "there is nothing to renew it with".to_owned(),
            )),
        };
        let now = now();
        let expires_at = match given {
            Ok(given) => {
                kept.tokens = Some(Tokens {
                    access: given.access.expose().to_owned(),
                    // Who says nothing of it means the old one.
                    refresh: given.refresh.map(|it| it.expose().to_owned()).or(refresh),
                });
                given.expires_at
            }
            Err(error) if error.is("invalid_grant") => {
                tracing::warn!(server = key.server, "the sign-in is not good any more");
                kept.tokens = None;
                None
            }
            Err(error) => {
                let mut reason = error.reason().to_owned();
                if error.is("invalid_client") && kept.agreement.client.origin == Origin::Registered
                {
                    let (issuer, redirect) = (
                        &kept.agreement.authorization.issuer,
                        &kept.agreement.redirect,
                    );
                    self.0.store.delete_oauth_client(issuer, redirect).await?;
                    reason = format!(
                        "the authorization server doesn't know this client any more; sign in again with `{}`",
                        command(key)
                    );
                }
                let exponent = stored.failures.clamp(0, 10);
                let rest = (1_000_i64 << exponent).min(LONGEST_REST);
                let until = now.saturating_add(rest);
                self.0.store.rest_credential(mine, until).await?;
                tracing::warn!(server = key.server, reason, "a token could not be renewed");
                return Ok(Some((reason, until)));
            }
        };
        let sealed = kept.sealed(self.vault()?, key)?;
        // The old one is of no use any more, so this must be kept.
        let mut tries = 0;
        loop {
            let renewed = self
                .0
                .store
                .renew_credential(mine, &sealed, expires_at, now);
            match renewed.await {
                Ok(_) => return Ok(None),
                Err(error) if tries == 3 => return Err(error.into()),
                Err(_) => {
                    tries += 1;
                    sleep(PAUSE * 10).await;
                }
            }
        }
    }

    async fn ask_again(&self, kept: &Kept, refresh: &str) -> Result<Given, NotGiven> {
        let mut form = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh.to_owned()),
        ];
        form.extend(kept.agreement.resource.clone().map(|it| ("resource", it)));
        let told = Secret::new(refresh);
        self.ask_for_token(&kept.agreement, form, &[&told]).await
    }

    /// Asks for a token.
    pub(super) async fn ask_for_token(
        &self,
        agreement: &super::kept::Agreement,
        mut form: Vec<(&'static str, String)>,
        told: &[&Secret],
    ) -> Result<Given, NotGiven> {
        let transient = |reason: String| NotGiven::Transient(shown(&reason, &[]));
        let secret = agreement.client.secret();
        let told: Vec<&Secret> = told.iter().copied().chain(&secret).collect();
        let (url, endpoint) = (
            Url::parse(&agreement.url),
            Url::parse(&agreement.authorization.token),
        );
        let (Ok(url), Ok(endpoint)) = (url, endpoint) else {
            return Err(NotGiven::Unreadable(
                "its token endpoint has no address".to_owned(),
            ));
        };
        let egress = self.0.network.for_server(&url).await;
        let egress = egress.map_err(|it| transient(it.to_string()))?;
        let mut headers = super::form_headers();
        agreement.client.sign(&mut form, &mut headers);
        let answer = egress.post(&endpoint, headers, super::form(&form)).await;
        let answer = answer.map_err(|it| transient(it.to_string()))?;
        token::read(&answer, now(), &told)
    }
}

fn hold(bearer: &Bearer, current: Option<Current>) {
    match current {
        Some(it) => bearer.hold(Some(it.token), it.version, it.due_at),
        None => bearer.hold(None, 0, None),
    }
}

/// When a token is to be renewed.
fn due_at(stored: &StoredCredential) -> Option<i64> {
    let expires_at = stored.expires_at?;
    let life = expires_at.saturating_sub(stored.updated_at).max(0);
    Some(expires_at.saturating_sub(AHEAD.min(life / 4)))
}
