//! Project tokens: what lets an engine in with less than everything.

use super::{DatabaseError, Store, from_json, to_json};
use crate::secret::Secret;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use sqlx::{Row as _, any::AnyRow};
use std::{collections::BTreeSet, fmt::Write as _};
use thiserror::Error;

const PREFIX: &str = "cmcp_";
const ID_PREFIX: &str = "tok_";

/// What principals are called that show no project token.
const RESERVED: [&str; 2] = ["service", "anonymous"];

/// What a [`Token`] is read from, by name, so that a later column doesn't get in the way.
macro_rules! columns {
    () => {
        "id, name, servers, read_only, project, created_at, last_used_at, revoked_at"
    };
}

/// How stale `last_used_at` may get, so that not every use is a write.
const USE_IS_NOTED_EVERY: i64 = 60_000;

/// A project token, without its text: only a hash of that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its number, so to speak: `tok_` and some letters.
    pub id: String,
    /// Its name, which no other token ever had.
    pub name: String,
    /// The servers that it opens; `None` is all.
    pub servers: Option<BTreeSet<String>>,
    /// Whether it opens only tools that change nothing.
    pub read_only: bool,
    /// The project that it stands for.
    pub project: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When it was last used, to the minute.
    pub last_used_at: Option<i64>,
    /// When it was revoked.
    pub revoked_at: Option<i64>,
}

/// A project token to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewToken {
    /// Its name: 1 to 64 letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The servers that it opens; `None` is all.
    pub servers: Option<BTreeSet<String>>,
    /// Whether it opens only tools that change nothing.
    pub read_only: bool,
    /// The project that it stands for.
    pub project: Option<String>,
}

/// Why a token wasn't made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateTokenError {
    /// The name has a wrong shape.
    #[error(
        "`{}` can't be the name of a token; a name has 1 to 64 letters, digits, `.`, `_` and `-`, starts with a letter or digit, and is neither `service` nor `anonymous` nor begins with `tok_`", name.escape_debug()
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The name is taken.
    #[error(
        "there is a token named `{name}` already, or there was one: names are not used twice, so that records stay true; choose another name"
    )]
    Taken {
        /// The name.
        name: String,
    },
    /// The list of servers is there, but empty.
    #[error(
        "the token `{name}` would open no server at all; name at least one, or leave the list out for all of them"
    )]
    NoServers {
        /// The name.
        name: String,
    },
    /// The system has no randomness to give.
    #[error("the system gives no random bytes for a token")]
    Random(#[from] getrandom::Error),
    /// The database failed.
    #[error("can't keep the token")]
    Database(#[from] DatabaseError),
}

/// Why a token wasn't revoked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RevokeTokenError {
    /// There is none.
    #[error("no token has the name or id `{}`; `clopen-mcp tokens list` shows them", token.escape_debug())]
    Unknown {
        /// What was asked for.
        token: String,
    },
    /// The database failed.
    #[error("can't revoke the token `{}`", token.escape_debug())]
    Database {
        /// What was asked for.
        token: String,
        /// Why.
        source: DatabaseError,
    },
}

/// Returns what is kept of a token's text: its SHA-256, in hexadecimal.
fn hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

pub(super) fn random_text() -> Result<Secret, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    let text = BASE64_URL_SAFE_NO_PAD.encode(bytes);
    Ok(Secret::new(format!("{PREFIX}{text}")))
}

pub(super) fn random_id<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

impl Store {
    /// Makes a token. Its text is returned here and never again.
    pub async fn create_token(
        &self,
        new: NewToken,
        now: i64,
    ) -> Result<(Token, Secret), CreateTokenError> {
        let NewToken {
            name,
            servers,
            read_only,
            project,
        } = new;
        if !is_name(&name) {
            return Err(CreateTokenError::Name { name });
        }
        if servers.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(CreateTokenError::NoServers { name });
        }
        let text = random_text()?;
        let token = Token {
            id: format!("{ID_PREFIX}{}", random_id::<8>()?),
            name,
            servers,
            read_only,
            project,
            created_at: now,
            last_used_at: None,
            revoked_at: None,
        };
        let servers = token.servers.as_ref().map(to_json);
        let made = sqlx::query(
            "INSERT INTO tokens (id, name, hash, servers, read_only, project, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (name) DO NOTHING",
        )
        .bind(token.id.clone())
        .bind(token.name.clone())
        .bind(hash(text.expose()))
        .bind(servers)
        .bind(i64::from(token.read_only))
        .bind(token.project.clone())
        .bind(token.created_at)
        .execute(&self.pool)
        .await
        .map_err(DatabaseError::from)?;
        if made.rows_affected() == 0 {
            return Err(CreateTokenError::Taken { name: token.name });
        }
        self.tokens_changed();
        Ok((token, text))
    }

    /// Returns every token, the revoked ones too, by name.
    pub async fn tokens(&self) -> Result<Vec<Token>, DatabaseError> {
        let rows = sqlx::query(concat!("SELECT ", columns!(), " FROM tokens"))
            .fetch_all(&self.pool)
            .await?;
        let mut tokens: Vec<Token> = rows.iter().map(token).collect::<Result<_, _>>()?;
        // Sorted here, since databases differ in what comes first.
        tokens.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(tokens)
    }

    /// Revokes the token with this name or id. One that is revoked already stays as it is.
    pub async fn revoke_token(
        &self,
        name_or_id: &str,
        now: i64,
    ) -> Result<Token, RevokeTokenError> {
        let row = sqlx::query(concat!(
            "UPDATE tokens SET revoked_at = COALESCE(revoked_at, $1) WHERE name = $2 OR id = $2 RETURNING ",
            columns!()
        ))
        .bind(now)
        .bind(name_or_id.to_owned())
        .fetch_optional(&self.pool)
        .await;
        // Also after a failure, since nobody knows whether the database did it.
        self.tokens_changed();
        match row.and_then(|row| row.as_ref().map(token).transpose()) {
            Ok(Some(token)) => Ok(token),
            Ok(None) => Err(RevokeTokenError::Unknown {
                token: name_or_id.to_owned(),
            }),
            Err(error) => Err(RevokeTokenError::Database {
                token: name_or_id.to_owned(),
                source: error.into(),
            }),
        }
    }

    /// Finds the token with this text, also a revoked one.
    pub async fn look_up_token(&self, text: &str) -> Result<Option<Token>, DatabaseError> {
        if !text.starts_with(PREFIX) {
            return Ok(None);
        }
        let row = sqlx::query(concat!(
            "SELECT ",
            columns!(),
            " FROM tokens WHERE hash = $1"
        ))
        .bind(hash(text))
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.as_ref().map(token).transpose()?)
    }

    /// Finds the token with this text, unless it is revoked, and notes that it is used.
    pub async fn find_token(&self, text: &str, now: i64) -> Result<Option<Token>, DatabaseError> {
        let token = self.look_up_token(text).await?;
        let Some(token) = token.filter(|it| it.revoked_at.is_none()) else {
            return Ok(None);
        };
        if token
            .last_used_at
            .is_none_or(|last| now - last >= USE_IS_NOTED_EVERY)
        {
            let noted = sqlx::query("UPDATE tokens SET last_used_at = $1 WHERE id = $2")
                .bind(now)
                .bind(token.id.clone())
                .execute(&self.pool)
                .await;
            // The token is good all the same.
            if let Err(error) = noted {
                tracing::warn!(token = token.name, %error, "can't note that a token was used");
            }
        }
        Ok(Some(token))
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !name.starts_with(ID_PREFIX)
        && !RESERVED.contains(&name)
}

fn token(row: &AnyRow) -> Result<Token, sqlx::Error> {
    let servers: Option<String> = row.try_get("servers")?;
    let servers = servers.map(|_| from_json(row, "servers")).transpose()?;
    Ok(Token {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        servers,
        read_only: row.try_get::<i64, _>("read_only")? != 0,
        project: row.try_get("project")?,
        created_at: row.try_get("created_at")?,
        last_used_at: row.try_get("last_used_at")?,
        revoked_at: row.try_get("revoked_at")?,
    })
}
