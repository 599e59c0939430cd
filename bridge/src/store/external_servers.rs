//! The external servers that a person has added, and what each last listed.

use super::{DatabaseError, Store};
use sqlx::{Row as _, any::AnyRow};
use std::collections::BTreeMap;

/// What an [`ExternalServer`] is read from.
macro_rules! columns {
    () => {
        "name, source, sealed, listed, listed_at, added_at"
    };
}

/// An external server, as the database keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalServer {
    /// Its name among all servers.
    pub name: String,
    /// Where it comes from: `by hand`, or the engine whose configuration it stood in.
    pub source: String,
    /// How it is reached, and what it is given: sealed, since arguments and addresses may be secret too.
    pub sealed: String,
    /// Its tools, as it last listed them: JSON. `None` if it never did.
    pub listed: Option<String>,
    /// When it did, in milliseconds since 1970.
    pub listed_at: Option<i64>,
    /// When it was added, in milliseconds since 1970.
    pub added_at: i64,
}

impl Store {
    /// Keeps an external server, in place of one of the same name.
    pub async fn save_external_server(&self, server: &ExternalServer) -> Result<(), DatabaseError> {
        let server = server.clone();
        sqlx::query(concat!(
            "INSERT INTO external_servers (",
            columns!(),
            ") VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (name) DO UPDATE SET
                source = excluded.source,
                sealed = excluded.sealed,
                listed = excluded.listed,
                listed_at = excluded.listed_at,
                added_at = excluded.added_at"
        ))
        .bind(server.name)
        .bind(server.source)
        .bind(server.sealed)
        .bind(server.listed)
        .bind(server.listed_at)
        .bind(server.added_at)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Keeps what an external server that was added then has listed; says whether it is still there.
    pub async fn note_listed(
        &self,
        name: &str,
        added_at: i64,
        listed: &str,
        now: i64,
    ) -> Result<bool, DatabaseError> {
        let noted = sqlx::query(
            "UPDATE external_servers SET listed = $1, listed_at = $2
             WHERE name = $3 AND added_at = $4",
        )
        .bind(listed.to_owned())
        .bind(now)
        .bind(name.to_owned())
        .bind(added_at)
        .execute(&self.pool)
        .await?;
        Ok(noted.rows_affected() > 0)
    }

    /// Returns what tells whether anything about the external servers has changed: by name, when each was added and
    /// last listed.
    pub async fn external_times(
        &self,
    ) -> Result<BTreeMap<String, (i64, Option<i64>)>, DatabaseError> {
        let rows = sqlx::query("SELECT name, added_at, listed_at FROM external_servers")
            .fetch_all(&self.pool)
            .await?;
        let times = rows.iter().map(|row| {
            let times = (row.try_get("added_at")?, row.try_get("listed_at")?);
            Ok((row.try_get("name")?, times))
        });
        Ok(times.collect::<Result<_, sqlx::Error>>()?)
    }

    /// Returns the external servers, by name.
    pub async fn external_servers(&self) -> Result<Vec<ExternalServer>, DatabaseError> {
        let rows = sqlx::query(concat!("SELECT ", columns!(), " FROM external_servers"))
            .fetch_all(&self.pool)
            .await?;
        let servers: Result<Vec<ExternalServer>, _> = rows.iter().map(external_server).collect();
        let mut servers = servers?;
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(servers)
    }

    /// Forgets an external server, with what was approved of it and the credentials for it; says whether there was one.
    pub async fn delete_external_server(&self, name: &str) -> Result<bool, DatabaseError> {
        sqlx::query("DELETE FROM approvals WHERE server = $1")
            .bind(name.to_owned())
            .execute(&self.pool)
            .await?;
        sqlx::query("DELETE FROM oauth_credentials WHERE server = $1")
            .bind(name.to_owned())
            .execute(&self.pool)
            .await?;
        let deleted = sqlx::query("DELETE FROM external_servers WHERE name = $1")
            .bind(name.to_owned())
            .execute(&self.pool)
            .await?;
        Ok(deleted.rows_affected() > 0)
    }
}

fn external_server(row: &AnyRow) -> Result<ExternalServer, sqlx::Error> {
    Ok(ExternalServer {
        name: row.try_get("name")?,
        source: row.try_get("source")?,
        sealed: row.try_get("sealed")?,
        listed: row.try_get("listed")?,
        listed_at: row.try_get("listed_at")?,
        added_at: row.try_get("added_at")?,
    })
}
