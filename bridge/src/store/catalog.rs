//! What the registries offer, as it was last fetched: the latest version of each server, and how far each sync has come.

use super::{DatabaseError, Store};
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction, any::AnyRow};
use std::collections::BTreeMap;

/// The tables, which no export has: whatever is in them can be fetched again.
pub(super) const TABLES: [&str; 2] = ["catalog_servers", "catalog_syncs"];

/// What a [`CatalogServer`] is read from, and written to.
const COLUMNS: [&str; 11] = [
    "registry",
    "name",
    "version",
    "title",
    "description",
    "status",
    "status_message",
    "kinds",
    "needs_key",
    "updated_at",
    "record",
];

/// How many servers one statement writes. Databases have a limit for the values of a statement.
const AT_ONCE: usize = 100;

/// Stands between the facts of a server where many are read at once. No fact has it.
const BETWEEN_FACTS: char = '\u{1f}';

/// Stands between servers then.
const BETWEEN_SERVERS: char = '\u{1e}';

/// A server that a registry offers. Its texts have no control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogServer {
    /// The registry, as the settings name it.
    pub registry: String,
    /// Its name there: `namespace/name`.
    pub name: String,
    /// Its latest version.
    pub version: String,
    /// What people call it; may be empty.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// `active` or `deprecated`.
    pub status: String,
    /// What the registry says of that; may be empty.
    pub status_message: String,
    /// In which ways it is offered, such as `npm` and `remote`, with blanks between.
    pub kinds: String,
    /// Whether each of these ways needs a key.
    pub needs_key: bool,
    /// When it was last changed, as the registry says it; may be empty.
    pub updated_at: String,
    /// Its record, as the registry gave it: JSON. Empty where many are read at once.
    pub record: String,
}

/// How far the sync with a registry has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogSync {
    /// The registry, as the settings name it.
    pub registry: String,
    /// Its address then.
    pub url: String,
    /// Counts the syncs, so that what a full one hasn't seen can be told.
    pub number: i64,
    /// When it began, in milliseconds since 1970.
    pub started_at: i64,
    /// Only what has changed since then is asked for; `None` is everything.
    pub since: Option<String>,
    /// Where it goes on. `None` where it has not begun, or is done.
    pub next_page: Option<String>,
    /// The latest change that it has seen.
    pub newest: Option<String>,
    /// Up to when a sync that is done has seen all changes.
    pub synced_to: Option<String>,
    /// When that was, in milliseconds since 1970.
    pub synced_at: Option<i64>,
}

impl Store {
    /// Returns how far the sync with a registry has come.
    pub async fn catalog_sync(&self, registry: &str) -> Result<Option<CatalogSync>, DatabaseError> {
        let row = sqlx::query("SELECT * FROM catalog_syncs WHERE registry = $1")
            .bind(registry.to_owned())
            .fetch_optional(&self.pool)
            .await?;
        Ok(row.as_ref().map(sync).transpose()?)
    }

    /// Keeps what a sync has fetched and how far it has come, both or neither. Of servers that come twice, the last
    /// counts; those that are `gone` are forgotten.
    pub async fn save_catalog(
        &self,
        sync: &CatalogSync,
        servers: Vec<CatalogServer>,
        gone: &[String],
    ) -> Result<(), DatabaseError> {
        let mut transaction = self.begin_alone().await?;
        for name in gone {
            sqlx::query("DELETE FROM catalog_servers WHERE registry = $1 AND name = $2")
                .bind(sync.registry.clone())
                .bind(name.clone())
                .execute(&mut *transaction)
                .await?;
        }
        let servers: BTreeMap<String, CatalogServer> = servers
            .into_iter()
            .map(|it| (it.name.clone(), it))
            .collect();
        let servers: Vec<CatalogServer> = servers.into_values().collect();
        for servers in servers.chunks(AT_ONCE) {
            save_servers(&mut transaction, servers, sync.number).await?;
        }
        save_sync(&mut transaction, sync).await?;
        Ok(transaction.commit().await?)
    }

    /// Forgets what a sync of everything that is done hasn't seen; says how many servers that were.
    pub async fn forget_unseen(&self, sync: &CatalogSync) -> Result<u64, DatabaseError> {
        let forgotten =
            sqlx::query("DELETE FROM catalog_servers WHERE registry = $1 AND seen_by < $2")
                .bind(sync.registry.clone())
                .bind(sync.number)
                .execute(&self.pool)
                .await?;
        Ok(forgotten.rows_affected())
    }

    /// Returns the servers of a name, one of each registry that has it, by registry.
    pub async fn catalog_servers(&self, name: &str) -> Result<Vec<CatalogServer>, DatabaseError> {
        let sql = format!(
            "SELECT {} FROM catalog_servers WHERE name = $1 ORDER BY registry",
            COLUMNS.join(", ")
        );
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(name.to_owned())
            .fetch_all(&self.pool)
            .await?;
        let servers: Result<Vec<CatalogServer>, sqlx::Error> = rows.iter().map(server).collect();
        Ok(servers?)
    }

    /// Returns all servers of a registry without their records. One row brings them all, since a row each would take
    /// ten times as long.
    pub async fn catalog(&self, registry: &str) -> Result<Vec<CatalogServer>, DatabaseError> {
        let facts = "name || $2 || version || $2 || title || $2 || description || $2 || status || $2 || status_message
             || $2 || kinds || $2 || needs_key || $2 || updated_at";
        let sql =
            format!("SELECT string_agg({facts}, $3) FROM catalog_servers WHERE registry = $1");
        let all: Option<String> = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(registry.to_owned())
            .bind(BETWEEN_FACTS.to_string())
            .bind(BETWEEN_SERVERS.to_string())
            .fetch_one(&self.pool)
            .await?;
        let all = all.unwrap_or_default();
        let servers = all.split(BETWEEN_SERVERS);
        Ok(servers.filter_map(|it| from_facts(registry, it)).collect())
    }
}

async fn save_servers(
    transaction: &mut Transaction<'_, Any>,
    servers: &[CatalogServer],
    number: i64,
) -> Result<(), sqlx::Error> {
    let width = COLUMNS.len() + 1;
    let row = |row: usize| {
        let places = (1..=width).map(|it| format!("${}", row * width + it));
        format!("({})", places.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = (0..servers.len()).map(row).collect();
    let columns = COLUMNS.join(", ");
    let changes = COLUMNS[2..]
        .iter()
        .map(|it| format!("{it} = excluded.{it}"));
    let changes: Vec<String> = changes.collect();
    let sql = format!(
        "INSERT INTO catalog_servers ({columns}, seen_by) VALUES {}
         ON CONFLICT (registry, name) DO UPDATE SET {}, seen_by = excluded.seen_by",
        rows.join(", "),
        changes.join(", ")
    );
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for it in servers {
        let it = it.clone();
        query = query
            .bind(it.registry)
            .bind(it.name)
            .bind(it.version)
            .bind(it.title)
            .bind(it.description)
            .bind(it.status)
            .bind(it.status_message)
            .bind(it.kinds)
            .bind(i64::from(it.needs_key))
            .bind(it.updated_at)
            .bind(it.record)
            .bind(number);
    }
    query.execute(&mut **transaction).await.map(drop)
}

async fn save_sync(
    transaction: &mut Transaction<'_, Any>,
    sync: &CatalogSync,
) -> Result<(), sqlx::Error> {
    let sync = sync.clone();
    sqlx::query(
        "INSERT INTO catalog_syncs
            (registry, url, number, started_at, since, next_page, newest, synced_to, synced_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (registry) DO UPDATE SET
            url = excluded.url,
            number = excluded.number,
            started_at = excluded.started_at,
            since = excluded.since,
            next_page = excluded.next_page,
            newest = excluded.newest,
            synced_to = excluded.synced_to,
            synced_at = excluded.synced_at",
    )
    .bind(sync.registry)
    .bind(sync.url)
    .bind(sync.number)
    .bind(sync.started_at)
    .bind(sync.since)
    .bind(sync.next_page)
    .bind(sync.newest)
    .bind(sync.synced_to)
    .bind(sync.synced_at)
    .execute(&mut **transaction)
    .await
    .map(drop)
}

fn server(row: &AnyRow) -> Result<CatalogServer, sqlx::Error> {
    Ok(CatalogServer {
        registry: row.try_get("registry")?,
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        title: row.try_get("title")?,
        description: row.try_get("description")?,
        status: row.try_get("status")?,
        status_message: row.try_get("status_message")?,
        kinds: row.try_get("kinds")?,
        needs_key: row.try_get::<i64, _>("needs_key")? != 0,
        updated_at: row.try_get("updated_at")?,
        record: row.try_get("record")?,
    })
}

fn from_facts(registry: &str, facts: &str) -> Option<CatalogServer> {
    let mut facts = facts.split(BETWEEN_FACTS);
    let mut next = || facts.next().map(str::to_owned);
    Some(CatalogServer {
        registry: registry.to_owned(),
        name: next()?,
        version: next()?,
        title: next()?,
        description: next()?,
        status: next()?,
        status_message: next()?,
        kinds: next()?,
        needs_key: next()? == "1",
        updated_at: next()?,
        record: String::new(),
    })
}

fn sync(row: &AnyRow) -> Result<CatalogSync, sqlx::Error> {
    Ok(CatalogSync {
        registry: row.try_get("registry")?,
        url: row.try_get("url")?,
        number: row.try_get("number")?,
        started_at: row.try_get("started_at")?,
        since: row.try_get("since")?,
        next_page: row.try_get("next_page")?,
        newest: row.try_get("newest")?,
        synced_to: row.try_get("synced_to")?,
        synced_at: row.try_get("synced_at")?,
    })
}
