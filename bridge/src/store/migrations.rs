//! Brings the tables up to date.

use super::{DatabaseError, Kind, OpenError, now};
use sqlx::{Any, AnyPool, Transaction};

/// Numbered by their place, from 1. Only ever add to the end.
const MIGRATIONS: [(&str, &str); 10] = [
    ("tokens", include_str!("migrations/0001_tokens.sql")),
    ("sessions", include_str!("migrations/0002_sessions.sql")),
    ("tasks", include_str!("migrations/0003_tasks.sql")),
    ("keys", include_str!("migrations/0004_keys.sql")),
    ("servers", include_str!("migrations/0005_servers.sql")),
    ("sightings", include_str!("migrations/0006_sightings.sql")),
    (
        "external servers",
        include_str!("migrations/0007_external_servers.sql"),
    ),
    ("catalog", include_str!("migrations/0008_catalog.sql")),
    ("approvals", include_str!("migrations/0009_approvals.sql")),
    ("sign-ins", include_str!("migrations/0010_sign_ins.sql")),
];

/// The version of the tables when all has been run.
pub(super) fn known() -> i64 {
    number(MIGRATIONS.len())
}

/// Runs what hasn't been run on this database, all or nothing.
pub(super) async fn run(pool: &AnyPool, kind: Kind, database: &str) -> Result<(), OpenError> {
    let connect = |source: sqlx::Error| OpenError::Connect {
        database: database.to_owned(),
        source: source.into(),
    };
    let mut transaction = begin(pool, kind).await.map_err(connect)?;
    let found = version(&mut transaction).await.map_err(connect)?;
    let known = known();
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

/// Begins a transaction that no other of its kind runs beside, in this process or another.
pub(super) async fn begin(
    pool: &AnyPool,
    kind: Kind,
) -> Result<Transaction<'static, Any>, sqlx::Error> {
    match kind {
        Kind::Sqlite => pool.begin_with("BEGIN IMMEDIATE").await,
        Kind::Postgres => {
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
