//! Who has signed in to what: the list, renewing by hand, and signing out.

use super::{
    OAuthError, SignIns,
    challenge::scopes,
    command,
    error::shown,
    form, form_headers,
    kept::{Agreement, Kept},
    sign_in_command,
};
use crate::store::{StoredCredential, now};
use reqwest::Url;
use serde::Serialize;

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

impl SignIns {
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
