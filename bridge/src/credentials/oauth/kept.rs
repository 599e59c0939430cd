//! What is sealed of a sign-in, while it is under way and afterwards.

use super::{client::Client, discovery::Authorization, error::OAuthError};
use crate::{
    credentials::Vault,
    secret::Secret,
    store::{CredentialKey, StoredCredential},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// With whom somebody signs in for what, and as who.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Agreement {
    /// The server's address: a token goes to no other.
    pub(super) url: String,
    /// What the token is for, unless the authorization server can't bear to be told.
    pub(super) resource: Option<String>,
    pub(super) authorization: Authorization,
    pub(super) client: Client,
    pub(super) redirect: String,
    /// What was asked for.
    pub(super) scopes: Vec<String>,
}

/// A sign-in under way.
#[derive(Deserialize, Serialize)]
pub(super) struct Flow {
    pub(super) server: String,
    pub(super) subject: String,
    pub(super) account: String,
    pub(super) agreement: Agreement,
    pub(super) verifier: String,
}

/// A credential.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Kept {
    pub(super) agreement: Agreement,
    /// None once they are of no use; the rest helps to sign in again.
    pub(super) tokens: Option<Tokens>,
}

#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Tokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
}

impl Kept {
    pub(super) fn sealed(&self, vault: &Vault, key: &CredentialKey) -> Result<String, OAuthError> {
        seal(vault, &owner(key), self)
    }

    pub(super) fn opened(vault: &Vault, stored: &StoredCredential) -> Result<Self, OAuthError> {
        open(vault, &owner(&stored.key), &stored.sealed)?.ok_or_else(|| OAuthError::Damaged {
            server: stored.key.server.clone(),
            command: super::command(&stored.key),
        })
    }
}

/// What a credential is bound to: all of its key, so that no row can be put in the place of another.
fn owner(key: &CredentialKey) -> String {
    let parts = ["sign-in", &key.server, &key.subject, &key.account];
    let parts =
        parts.map(|it| -> String { form_urlencoded::byte_serialize(it.as_bytes()).collect() });
    parts.join("/")
}

/// What a client is bound to.
pub(super) fn owner_of_client(issuer: &str, redirect: &str) -> String {
    let parts = ["client", issuer, redirect];
    let parts =
        parts.map(|it| -> String { form_urlencoded::byte_serialize(it.as_bytes()).collect() });
    parts.join("/")
}

/// What a sign-in under way is bound to.
pub(super) fn owner_of_flow(state_hash: &str) -> String {
    format!("sign-in under way/{state_hash}")
}

pub(super) fn seal(
    vault: &Vault,
    owner: &str,
    value: &impl Serialize,
) -> Result<String, OAuthError> {
    let text = serde_json::to_string(value).expect("texts are JSON");
    Ok(vault.seal(owner, &Secret::new(text))?)
}

/// Opens what was sealed; `None` if it isn't what it should be.
pub(super) fn open<T: DeserializeOwned>(
    vault: &Vault,
    owner: &str,
    sealed: &str,
) -> Result<Option<T>, OAuthError> {
    let opened = vault.unseal(owner, sealed)?;
    Ok(serde_json::from_str(opened.expose()).ok())
}
