//! Brings the tables up to date.

use super::{DatabaseError, OpenError, now};
use sqlx::{Any, AnyPool, Transaction};

/// Numbered by their place, from 1. Only ever add to the end.
const MIGRATIONS: [(&str, &str); 1] = [("tokens", include_str!("migrations/0001_tokens.sql"))];

/// How a database lets one process at a time change the tables.
#[derive(Clone, Copy)]
pub(super) enum Lock {
    /// SQLite: a transaction that writes from its start.
    BeginImmediate,
    /// PostgreSQL: a lock with a number of our own, until the transaction ends.
    Advisory,
}

/// Runs what hasn't been run on this database, all or nothing.
pub(super) async fn run(pool: &AnyPool, lock: Lock, database: &str) -> Result<(), OpenError> {
    let connect = |source: sqlx::Error| OpenError::Connect {
        database: database.to_owned(),
        source: source.into(),
    };
    let mut transaction = begin(pool, lock).await.map_err(connect)?;
    let found = version(&mut transaction).await.map_err(connect)?;
    let known = number(MIGRATIONS.len());
    if found > known {
        return Err(OpenError::Newer {
            database: database.to_owned(),
            found,
            known,
        });
    }
    for (index, (name, sql)) in MIGRATIONS.iter().enumerate() {
        let version = number(index + 1);
        if version > found {
            apply(&mut transaction, version, name, sql)
                .await
                .map_err(|error| OpenError::Migrate {
                    database: database.to_owned(),
                    version,
                    source: DatabaseError::from(error),
                })?;
        }
    }
    transaction.commit().await.map_err(connect)
}

async fn begin(pool: &AnyPool, lock: Lock) -> Result<Transaction<'static, Any>, sqlx::Error> {
    match lock {
        Lock::BeginImmediate => pool.begin_with("BEGIN IMMEDIATE").await,
        Lock::Advisory => {
            let mut transaction = pool.begin().await?;
            sqlx::raw_sql("SELECT pg_advisory_xact_lock(1668113264)::text")
                .execute(&mut *transaction)
                .await?;
            Ok(transaction)
        }
    }
}

/// The table has our name in its own, since a shared database may hold another program's `migrations`.
async fn version(transaction: &mut Transaction<'_, Any>) -> Result<i64, sqlx::Error> {
    sqlx::raw_sql(
        "CREATE TABLE IF NOT EXISTS clopen_mcp_migrations (
            version BIGINT NOT NULL PRIMARY KEY,
            name TEXT NOT NULL,
            applied_at BIGINT NOT NULL
        )",
    )
    .execute(&mut **transaction)
    .await?;
    sqlx::query_scalar("SELECT COALESCE(MAX(version), 0) FROM clopen_mcp_migrations")
        .fetch_one(&mut **transaction)
        .await
}

async fn apply(
    transaction: &mut Transaction<'_, Any>,
    version: i64,
    name: &str,
    sql: &'static str,
) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(sql).execute(&mut **transaction).await?;
    sqlx::query("INSERT INTO clopen_mcp_migrations (version, name, applied_at) VALUES ($1, $2, $3)")
        .bind(version)
        .bind(name.to_owned())
        .bind(now())
        .execute(&mut **transaction)
        .await
        .map(drop)
}

fn number(length: usize) -> i64 {
    i64::try_from(length).expect("there are fewer migrations than that")
}
