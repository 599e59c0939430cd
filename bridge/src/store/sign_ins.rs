//! Sign-ins to external servers: clients of authorization servers, sign-ins under way, and what came of them, sealed.

use super::{DatabaseError, Store};
use sqlx::{
    Any, Row as _,
    any::{AnyArguments, AnyRow},
    query::Query,
};

/// How long it is kept what came of a sign-in, after the time in which it could have been finished, in milliseconds.
const KEPT: i64 = 60 * 60 * 1_000;

/// What a [`StoredCredential`] is read from.
macro_rules! columns {
    () => {
        "server, subject, account, sealed, expires_at, is_default, version, wanted, failures, retry_at, updated_at"
    };
}

/// Who has a credential for what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CredentialKey {
    /// The external server.
    pub server: String,
    /// On whose behalf; empty for whoever runs the bridge.
    pub subject: String,
    /// Which of their accounts there.
    pub account: String,
}

/// A credential, as the database keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCredential {
    /// Whose it is, and for what.
    pub key: CredentialKey,
    /// The tokens, and what is needed to renew them.
    pub sealed: String,
    /// Until when the token is good, in milliseconds since 1970, where that is known.
    pub expires_at: Option<i64>,
    /// Whether calls use it that name no account.
    pub is_default: bool,
    /// Goes up with every change of what is sealed.
    pub version: i64,
    /// The scopes that the server has asked for since, separated by spaces.
    pub wanted: String,
    /// How often in a row it could not be renewed.
    pub failures: i64,
    /// When renewing may be tried again.
    pub retry_at: Option<i64>,
    /// When what is sealed was changed.
    pub updated_at: i64,
}

/// What is known of a sign-in under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// Nobody has come back yet.
    Waiting,
    /// It is finished, or being finished; what came of it: empty while it isn't known.
    Taken(String),
    /// There is none, or it has taken too long.
    Gone,
}

impl Store {
    /// Keeps a client that was registered with an authorization server.
    pub async fn save_oauth_client(
        &self,
        issuer: &str,
        redirect: &str,
        sealed: &str,
        now: i64,
    ) -> Result<(), DatabaseError> {
        sqlx::query(
            "INSERT INTO oauth_clients (issuer, redirect, sealed, created_at)
             VALUES ($1, $2, $3, $4)
             ON CONFLICT (issuer, redirect) DO UPDATE SET
                sealed = excluded.sealed, created_at = excluded.created_at",
        )
        .bind(issuer.to_owned())
        .bind(redirect.to_owned())
        .bind(sealed.to_owned())
        .bind(now)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Returns the client that was registered, sealed.
    pub async fn oauth_client(
        &self,
        issuer: &str,
        redirect: &str,
    ) -> Result<Option<String>, DatabaseError> {
        let sealed = sqlx::query_scalar(
            "SELECT sealed FROM oauth_clients WHERE issuer = $1 AND redirect = $2",
        )
        .bind(issuer.to_owned())
        .bind(redirect.to_owned())
        .fetch_optional(&self.pool)
        .await?;
        Ok(sealed)
    }

    /// Forgets a client that its authorization server doesn't know any more.
    pub async fn delete_oauth_client(
        &self,
        issuer: &str,
        redirect: &str,
    ) -> Result<(), DatabaseError> {
        sqlx::query("DELETE FROM oauth_clients WHERE issuer = $1 AND redirect = $2")
            .bind(issuer.to_owned())
            .bind(redirect.to_owned())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Keeps a sign-in that has begun, and forgets old ones.
    pub async fn begin_oauth_flow(
        &self,
        state_hash: &str,
        sealed: &str,
        expires_at: i64,
        now: i64,
    ) -> Result<(), DatabaseError> {
        sqlx::query("DELETE FROM oauth_flows WHERE expires_at < $1")
            .bind(now.saturating_sub(KEPT))
            .execute(&self.pool)
            .await?;
        sqlx::query(
            "INSERT INTO oauth_flows (state_hash, sealed, expires_at, outcome)
             VALUES ($1, $2, $3, '')",
        )
        .bind(state_hash.to_owned())
        .bind(sealed.to_owned())
        .bind(expires_at)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Takes a sign-in to finish it: once, and in time.
    pub async fn take_oauth_flow(
        &self,
        state_hash: &str,
        now: i64,
    ) -> Result<Option<String>, DatabaseError> {
        let sealed = sqlx::query_scalar(
            "UPDATE oauth_flows SET taken_at = $2
             WHERE state_hash = $1 AND taken_at IS NULL AND expires_at > $2
             RETURNING sealed",
        )
        .bind(state_hash.to_owned())
        .bind(now)
        .fetch_optional(&self.pool)
        .await?;
        Ok(sealed)
    }

    /// Notes what came of a sign-in; what was sealed is of no use any more.
    pub async fn end_oauth_flow(
        &self,
        state_hash: &str,
        outcome: &str,
    ) -> Result<(), DatabaseError> {
        sqlx::query("UPDATE oauth_flows SET outcome = $2, sealed = '' WHERE state_hash = $1")
            .bind(state_hash.to_owned())
            .bind(outcome.to_owned())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Says how a sign-in stands.
    pub async fn oauth_flow(&self, state_hash: &str, now: i64) -> Result<FlowState, DatabaseError> {
        let row = sqlx::query(
            "SELECT expires_at, taken_at, outcome FROM oauth_flows WHERE state_hash = $1",
        )
        .bind(state_hash.to_owned())
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else {
            return Ok(FlowState::Gone);
        };
        let taken_at: Option<i64> = row.try_get("taken_at")?;
        let expires_at: i64 = row.try_get("expires_at")?;
        Ok(match taken_at {
            Some(_) => FlowState::Taken(row.try_get("outcome")?),
            None if expires_at > now => FlowState::Waiting,
            None => FlowState::Gone,
        })
    }

    /// Keeps a new credential, in place of one of the same key; from now on it is the one that calls use.
    pub async fn save_credential(
        &self,
        key: &CredentialKey,
        sealed: &str,
        expires_at: Option<i64>,
        now: i64,
    ) -> Result<(), DatabaseError> {
        let mut transaction = self.begin_alone().await?;
        sqlx::query(
            "UPDATE oauth_credentials SET is_default = 0 WHERE server = $1 AND subject = $2",
        )
        .bind(key.server.clone())
        .bind(key.subject.clone())
        .execute(&mut *transaction)
        .await?;
        // One that was deleted and made again has another version.
        of_key("INSERT INTO oauth_credentials (server, subject, account, sealed, expires_at, is_default,
                version, wanted, failures, updated_at)
             VALUES ($1, $2, $3, $4, $5, 1, $6, '', 0, $6)
             ON CONFLICT (server, subject, account) DO UPDATE SET
                sealed = excluded.sealed,
                expires_at = excluded.expires_at,
                is_default = 1,
                version = oauth_credentials.version + 1,
                wanted = '',
                failures = 0,
                retry_at = NULL,
                leased_by = NULL,
                leased_until = NULL,
                updated_at = excluded.updated_at", key)
        .bind(sealed.to_owned())
        .bind(expires_at)
        .bind(now)
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Returns a credential: that of an account, or the one that calls use. Never that of another subject.
    pub async fn credential(
        &self,
        server: &str,
        subject: &str,
        account: Option<&str>,
    ) -> Result<Option<StoredCredential>, DatabaseError> {
        let row = match account {
            Some(account) => {
                sqlx::query(concat!(
                    "SELECT ",
                    columns!(),
                    " FROM oauth_credentials
                      WHERE server = $1 AND subject = $2 AND account = $3"
                ))
                .bind(server.to_owned())
                .bind(subject.to_owned())
                .bind(account.to_owned())
                .fetch_optional(&self.pool)
                .await?
            }
            None => {
                sqlx::query(concat!(
                    "SELECT ",
                    columns!(),
                    " FROM oauth_credentials
                      WHERE server = $1 AND subject = $2 AND is_default = 1"
                ))
                .bind(server.to_owned())
                .bind(subject.to_owned())
                .fetch_optional(&self.pool)
                .await?
            }
        };
        Ok(row.as_ref().map(credential).transpose()?)
    }

    /// Returns all credentials, by key.
    pub async fn credentials(&self) -> Result<Vec<StoredCredential>, DatabaseError> {
        let rows = sqlx::query(concat!("SELECT ", columns!(), " FROM oauth_credentials"))
            .fetch_all(&self.pool)
            .await?;
        let all: Result<Vec<StoredCredential>, _> = rows.iter().map(credential).collect();
        let mut all = all?;
        all.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(all)
    }

    /// Lets one process renew a credential of this version, until a time; says whether it is this one.
    pub async fn lease_credential(
        &self,
        key: &CredentialKey,
        version: i64,
        holder: &str,
        (now, until): (i64, i64),
    ) -> Result<bool, DatabaseError> {
        let leased = of_key(
            "UPDATE oauth_credentials SET leased_by = $5, leased_until = $6
             WHERE server = $1 AND subject = $2 AND account = $3 AND version = $4
                AND (leased_until IS NULL OR leased_until <= $7)",
            key,
        )
        .bind(version)
        .bind(holder.to_owned())
        .bind(until)
        .bind(now)
        .execute(&self.pool)
        .await?;
        Ok(leased.rows_affected() > 0)
    }

    /// Keeps what a credential has become, for who has its lease; says whether that was so.
    pub async fn renew_credential(
        &self,
        (key, version, holder): (&CredentialKey, i64, &str),
        sealed: &str,
        expires_at: Option<i64>,
        now: i64,
    ) -> Result<bool, DatabaseError> {
        let renewed = of_key(
            "UPDATE oauth_credentials SET sealed = $6, expires_at = $7, updated_at = $8,
                version = version + 1, failures = 0, retry_at = NULL,
                leased_by = NULL, leased_until = NULL
             WHERE server = $1 AND subject = $2 AND account = $3 AND version = $4
                AND leased_by = $5",
            key,
        )
        .bind(version)
        .bind(holder.to_owned())
        .bind(sealed.to_owned())
        .bind(expires_at)
        .bind(now)
        .execute(&self.pool)
        .await?;
        Ok(renewed.rows_affected() > 0)
    }

    /// Gives a lease back, where renewing has failed and is to be tried again.
    pub async fn rest_credential(
        &self,
        (key, version, holder): (&CredentialKey, i64, &str),
        retry_at: i64,
    ) -> Result<(), DatabaseError> {
        of_key(
            "UPDATE oauth_credentials SET failures = failures + 1, retry_at = $6,
                leased_by = NULL, leased_until = NULL
             WHERE server = $1 AND subject = $2 AND account = $3 AND version = $4
                AND leased_by = $5",
            key,
        )
        .bind(version)
        .bind(holder.to_owned())
        .bind(retry_at)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Notes the scopes that a server asks for besides, for the next sign-in.
    pub async fn note_wanted_scopes(
        &self,
        key: &CredentialKey,
        scopes: &str,
    ) -> Result<(), DatabaseError> {
        of_key(
            "UPDATE oauth_credentials SET wanted = $4
             WHERE server = $1 AND subject = $2 AND account = $3",
            key,
        )
        .bind(scopes.to_owned())
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Forgets a credential; of those that the subject has left for the server, calls use the one that was changed last.
    /// Says whether there was one.
    pub async fn delete_credential(&self, key: &CredentialKey) -> Result<bool, DatabaseError> {
        let mut transaction = self.begin_alone().await?;
        let deleted = of_key(
            "DELETE FROM oauth_credentials WHERE server = $1 AND subject = $2 AND account = $3",
            key,
        )
        .execute(&mut *transaction)
        .await?;
        sqlx::query(
            "UPDATE oauth_credentials SET is_default = 1
             WHERE server = $1 AND subject = $2
                AND NOT EXISTS (SELECT 1 FROM oauth_credentials AS other
                    WHERE other.server = $1 AND other.subject = $2 AND other.is_default = 1)
                AND account = (SELECT account FROM oauth_credentials AS last
                    WHERE last.server = $1 AND last.subject = $2
                    ORDER BY updated_at DESC, account LIMIT 1)",
        )
        .bind(key.server.clone())
        .bind(key.subject.clone())
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(deleted.rows_affected() > 0)
    }
}

/// Begins a query whose first parameters are a key.
fn of_key<'q>(sql: &'static str, key: &CredentialKey) -> Query<'q, Any, AnyArguments> {
    sqlx::query(sql)
        .bind(key.server.clone())
        .bind(key.subject.clone())
        .bind(key.account.clone())
}

fn credential(row: &AnyRow) -> Result<StoredCredential, sqlx::Error> {
    let is_default: i64 = row.try_get("is_default")?;
    Ok(StoredCredential {
        key: CredentialKey {
            server: row.try_get("server")?,
            subject: row.try_get("subject")?,
            account: row.try_get("account")?,
        },
        sealed: row.try_get("sealed")?,
        expires_at: row.try_get("expires_at")?,
        is_default: is_default != 0,
        version: row.try_get("version")?,
        wanted: row.try_get("wanted")?,
        failures: row.try_get("failures")?,
        retry_at: row.try_get("retry_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}
