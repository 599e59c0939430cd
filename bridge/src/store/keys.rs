//! Keys that all bridges on one database share: random bytes, made when they are first asked for.

use super::{DatabaseError, Store};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use std::fmt;
use thiserror::Error;

/// Thirty-two random bytes, which are never printed by accident.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// Returns the bytes themselves, for the one place that needs them.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Why there is no key.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The system has no randomness to give.
    #[error("the system gives no random bytes for the key `{name}`")]
    Random {
        /// The key's name.
        name: String,
        /// Why.
        source: getrandom::Error,
    },
    /// What the database has is no key.
    #[error(
        "the database's key `{name}` is damaged: it is not 32 bytes in base64; restore the database from a backup"
    )]
    Damaged {
        /// The key's name.
        name: String,
    },
    /// The database failed.
    #[error("can't get the key `{name}` from the database")]
    Database {
        /// The key's name.
        name: String,
        /// Why.
        source: DatabaseError,
    },
}

impl Store {
    /// Returns the key with this name; makes it where there is none yet. Of several bridges that make one at once,
    /// the first wins and the others take its key.
    pub async fn key(&self, name: &str) -> Result<Key, KeyError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|source| KeyError::Random {
            name: name.to_owned(),
            source,
        })?;
        let text = self
            .first_key(name, BASE64_STANDARD.encode(bytes))
            .await
            .map_err(|source| KeyError::Database {
                name: name.to_owned(),
                source: source.into(),
            })?;
        BASE64_STANDARD
            .decode(text)
            .ok()
            .and_then(|bytes| Some(Key(bytes.try_into().ok()?)))
            .ok_or_else(|| KeyError::Damaged {
                name: name.to_owned(),
            })
    }

    async fn first_key(&self, name: &str, new: String) -> Result<String, sqlx::Error> {
        sqlx::query(
            "INSERT INTO keys (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
        )
        .bind(name.to_owned())
        .bind(new)
        .execute(&self.pool)
        .await?;
        sqlx::query_scalar("SELECT secret FROM keys WHERE name = $1")
            .bind(name.to_owned())
            .fetch_one(&self.pool)
            .await
    }
}
