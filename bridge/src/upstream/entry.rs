//! An external server as a person has added it, and as the database keeps it: sealed.

use super::Address;
use crate::{
    credentials::{Vault, VaultError},
    secret::Secret,
    store::ExternalServer,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};
use thiserror::Error;

/// What stands for the workspace in an address and in the values of headers.
const WORKSPACE: &str = "{workspaceCode}";

/// What of a workspace's name can't stand in an address as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

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
    /// What its address was made of, where it is of a registry.
    pub origin: Option<Origin>,
}

/// What a server of a registry was made of, so that it can be made again with other inputs.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The registry, as the settings named it.
    pub registry: String,
    /// Its name there.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its record, as it was when the server was added: JSON.
    pub record: String,
    /// Which of the ways in the record was taken, by its place.
    pub way: usize,
    /// What was said for its inputs.
    pub inputs: BTreeMap<String, Vec<Secret>>,
    /// What its program is given besides, that the record doesn't ask for.
    pub environment: BTreeMap<String, Secret>,
}

/// Why an entry can't be kept or used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EntryError {
    /// The vault failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// A workspace can't stand in a header.
    #[error(
        "the workspace {workspace:?} can't stand in a header: name one of visible ASCII, by `?project=NAME`"
    )]
    Workspace {
        /// The workspace.
        workspace: String,
    },
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
struct Written {
    #[serde(flatten)]
    address: WrittenAddress,
    /// Entries of before there were registries have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<WrittenOrigin>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum WrittenAddress {
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

#[derive(Deserialize, Serialize)]
struct WrittenOrigin {
    registry: String,
    name: String,
    version: String,
    record: String,
    way: usize,
    inputs: BTreeMap<String, Vec<String>>,
    environment: BTreeMap<String, String>,
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

    /// Whether it is another server in each workspace.
    pub fn differs_by_workspace(&self) -> bool {
        match &self.address {
            Address::Command { .. } => false,
            Address::Http { url, headers } => {
                let in_headers = headers.values().any(|it| it.expose().contains(WORKSPACE));
                in_headers || url.contains(WORKSPACE)
            }
        }
    }

    /// Makes the entry of a workspace.
    pub fn in_workspace(&self, workspace: &str) -> Result<Self, EntryError> {
        let mut entry = self.clone();
        let Address::Http { url, headers } = &mut entry.address else {
            return Ok(entry);
        };
        // What is no part of a segment would lead elsewhere.
        let encoded = utf8_percent_encode(workspace, SEGMENT).to_string();
        *url = url.replace(WORKSPACE, &encoded);
        for value in headers.values_mut() {
            if value.expose().contains(WORKSPACE) {
                if !workspace.bytes().all(|it| it.is_ascii_graphic()) {
                    return Err(EntryError::Workspace {
                        workspace: workspace.to_owned(),
                    });
                }
                *value = Secret::new(value.expose().replace(WORKSPACE, workspace));
            }
        }
        Ok(entry)
    }

    /// Seals how it is reached and what it is given.
    pub fn sealed(&self, vault: &Vault, added_at: i64) -> Result<ExternalServer, EntryError> {
        let written = Written {
            address: WrittenAddress::from(self.address.clone()),
            origin: self.origin.clone().map(WrittenOrigin::from),
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
        let written: Result<Written, _> = serde_json::from_str(written.expose());
        let written = written.map_err(|source| EntryError::Damaged {
            name: stored.name.clone(),
            source,
        })?;
        Ok(Self {
            name: stored.name.clone(),
            source: stored.source.clone(),
            address: written.address.into(),
            origin: written.origin.map(Origin::from),
        })
    }
}

impl From<Address> for WrittenAddress {
    fn from(address: Address) -> Self {
        match address {
            Address::Command {
                program,
                arguments,
                environment,
                folder,
            } => Self::Command {
                program,
                arguments,
                environment: exposed(environment),
                folder,
            },
            Address::Http { url, headers } => Self::Http {
                url,
                headers: exposed(headers),
            },
        }
    }
}

impl From<WrittenAddress> for Address {
    fn from(written: WrittenAddress) -> Self {
        match written {
            WrittenAddress::Command {
                program,
                arguments,
                environment,
                folder,
            } => Self::Command {
                program,
                arguments,
                environment: secret(environment),
                folder,
            },
            WrittenAddress::Http { url, headers } => Self::Http {
                url,
                headers: secret(headers),
            },
        }
    }
}

impl From<Origin> for WrittenOrigin {
    fn from(origin: Origin) -> Self {
        let texts = |it: Vec<Secret>| it.iter().map(|it| it.expose().to_owned()).collect();
        Self {
            registry: origin.registry,
            name: origin.name,
            version: origin.version,
            record: origin.record,
            way: origin.way,
            inputs: each(origin.inputs, texts),
            environment: exposed(origin.environment),
        }
    }
}

impl From<WrittenOrigin> for Origin {
    fn from(written: WrittenOrigin) -> Self {
        let secrets = |it: Vec<String>| it.into_iter().map(Secret::new).collect();
        Self {
            registry: written.registry,
            name: written.name,
            version: written.version,
            record: written.record,
            way: written.way,
            inputs: each(written.inputs, secrets),
            environment: secret(written.environment),
        }
    }
}

fn exposed(secrets: BTreeMap<String, Secret>) -> BTreeMap<String, String> {
    each(secrets, |it| it.expose().to_owned())
}

fn secret(texts: BTreeMap<String, String>) -> BTreeMap<String, Secret> {
    each(texts, Secret::new)
}

fn each<A, B>(values: BTreeMap<String, A>, change: impl Fn(A) -> B) -> BTreeMap<String, B> {
    let values = values.into_iter();
    values.map(|(name, it)| (name, change(it))).collect()
}
