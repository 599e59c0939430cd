//! An external server as a person has added it, and as the database keeps it: sealed.

use super::Address;
use crate::{
    credentials::{Vault, VaultError},
    secret::Secret,
    store::ExternalServer,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};
use thiserror::Error;

/// The most characters of a name.
const LONGEST: usize = 40;

/// An external server.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name among all servers: small letters, digits and `-`.
    pub name: String,
    /// Where it comes from: `by hand`, or the engine whose configuration it stood in.
    pub source: String,
    /// How it is reached.
    pub address: Address,
}

/// Why an entry can't be kept or used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EntryError {
    /// The vault failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// What the database has is no entry.
    #[error("the database's entry of `{name}` is damaged; remove the server and add it again")]
    Damaged {
        /// The server.
        name: String,
        /// Why.
        source: serde_json::Error,
    },
}

/// What is sealed.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum Written {
    Command {
        program: String,
        arguments: Vec<String>,
        environment: BTreeMap<String, String>,
        folder: Option<PathBuf>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

impl Entry {
    /// Makes a name for a server out of what it is called elsewhere: `My Server (prod)` is `my-server-prod`. `None` if
    /// nothing of it can be kept.
    pub fn name_for(called: &str) -> Option<String> {
        let words = called.split(|it: char| !it.is_ascii_alphanumeric());
        let words: Vec<String> = words
            .filter(|it| !it.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        let name: String = words.join("-").chars().take(LONGEST).collect();
        let name = name.trim_end_matches('-');
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// Seals how it is reached and what it is given.
    pub fn sealed(&self, vault: &Vault, added_at: i64) -> Result<ExternalServer, EntryError> {
        let written = match self.address.clone() {
            Address::Command {
                program,
                arguments,
                environment,
                folder,
            } => Written::Command {
                program,
                arguments,
                environment: exposed(environment),
                folder,
            },
            Address::Http { url, headers } => Written::Http {
                url,
                headers: exposed(headers),
            },
        };
        let written = serde_json::to_string(&written).expect("texts are JSON");
        Ok(ExternalServer {
            name: self.name.clone(),
            source: self.source.clone(),
            sealed: vault.seal(&self.name, &Secret::new(written))?,
            listed: None,
            listed_at: None,
            added_at,
        })
    }

    /// Opens what the database keeps.
    pub fn opened(stored: &ExternalServer, vault: &Vault) -> Result<Self, EntryError> {
        let written = vault.unseal(&stored.name, &stored.sealed)?;
        let written = serde_json::from_str(written.expose());
        let written = written.map_err(|source| EntryError::Damaged {
            name: stored.name.clone(),
            source,
        })?;
        Ok(Self {
            name: stored.name.clone(),
            source: stored.source.clone(),
            address: match written {
                Written::Command {
                    program,
                    arguments,
                    environment,
                    folder,
                } => Address::Command {
                    program,
                    arguments,
                    environment: secret(environment),
                    folder,
                },
                Written::Http { url, headers } => Address::Http {
                    url,
                    headers: secret(headers),
                },
            },
        })
    }
}

fn exposed(secrets: BTreeMap<String, Secret>) -> BTreeMap<String, String> {
    let texts = secrets.into_iter();
    texts
        .map(|(name, it)| (name, it.expose().to_owned()))
        .collect()
}

fn secret(texts: BTreeMap<String, String>) -> BTreeMap<String, Secret> {
    let secrets = texts.into_iter();
    secrets.map(|(name, it)| (name, Secret::new(it))).collect()
}
