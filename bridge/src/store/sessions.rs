//! Sessions of clients before 2026-07-28, which survive a restart of the bridge.

use super::{DatabaseError, Store, from_json, to_json};
use sqlx::{AssertSqlSafe, Row as _, any::AnyRow};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// What a [`StoredSession`] is read from.
macro_rules! columns {
    () => {
        "id, principal, version, client_info, capabilities, level, subscriptions, created_at, last_seen_at"
    };
}

/// How many sessions one statement touches: far fewer than either database takes.
const AT_ONCE: usize = 500;

/// A session, as the database keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// What the client calls it by.
    pub id: String,
    /// Who opened it; nobody else may use it.
    pub principal: String,
    /// The version of the protocol that it speaks.
    pub version: String,
    /// What the client says it is: JSON.
    pub client_info: String,
    /// What the client can do: JSON.
    pub capabilities: String,
    /// The level from which on it wants log messages.
    pub level: Option<String>,
    /// The resources that it wants to hear of.
    pub subscriptions: BTreeSet<String>,
    /// When it was opened, in milliseconds since 1970.
    pub created_at: i64,
    /// When it last did something.
    pub last_seen_at: i64,
}

impl Store {
    /// Keeps a session, in place of what was kept of it.
    pub async fn save_session(&self, session: &StoredSession) -> Result<(), DatabaseError> {
        sqlx::query(concat!(
            "INSERT INTO sessions (",
            columns!(),
            ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (id) DO UPDATE SET
                principal = excluded.principal,
                version = excluded.version,
                client_info = excluded.client_info,
                capabilities = excluded.capabilities,
                level = excluded.level,
                subscriptions = excluded.subscriptions,
                created_at = excluded.created_at,
                last_seen_at = excluded.last_seen_at"
        ))
        .bind(session.id.clone())
        .bind(session.principal.clone())
        .bind(session.version.clone())
        .bind(session.client_info.clone())
        .bind(session.capabilities.clone())
        .bind(session.level.clone())
        .bind(to_json(&session.subscriptions))
        .bind(session.created_at)
        .bind(session.last_seen_at)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Finds a session.
    pub async fn find_session(&self, id: &str) -> Result<Option<StoredSession>, DatabaseError> {
        if !super::can_be_text(id) {
            return Ok(None);
        }
        let row = sqlx::query(concat!(
            "SELECT ",
            columns!(),
            " FROM sessions WHERE id = $1"
        ))
        .bind(id.to_owned())
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.as_ref().map(session).transpose()?)
    }

    /// Finds several sessions; what isn't there is left out.
    pub async fn find_sessions(&self, ids: &[&str]) -> Result<Vec<StoredSession>, DatabaseError> {
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(AT_ONCE) {
            let places: Vec<String> = (1..=some.len()).map(|it| format!("${it}")).collect();
            let sql = format!(
                concat!("SELECT ", columns!(), " FROM sessions WHERE id IN ({})"),
                places.join(", ")
            );
            let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
            for id in some {
                query = query.bind((*id).to_owned());
            }
            for row in query.fetch_all(&self.pool).await? {
                found.push(session(&row)?);
            }
        }
        Ok(found)
    }

    /// Changes what a client has asked for, which others may do at the same time. Says whether the session is there.
    pub async fn change_session(
        &self,
        id: &str,
        change: impl Fn(&mut StoredSession) + Send,
    ) -> Result<bool, DatabaseError> {
        if !super::can_be_text(id) {
            return Ok(false);
        }
        loop {
            let row = sqlx::query(concat!(
                "SELECT ",
                columns!(),
                " FROM sessions WHERE id = $1"
            ))
            .bind(id.to_owned())
            .fetch_optional(&self.pool)
            .await?;
            let Some(row) = row else { return Ok(false) };
            let before: String = row.try_get("subscriptions")?;
            let mut session = session(&row)?;
            let level = session.level.clone();
            change(&mut session);
            let changed = sqlx::query(
                "UPDATE sessions SET level = $1, subscriptions = $2
                 WHERE id = $3 AND subscriptions = $4 AND COALESCE(level, '') = $5",
            )
            .bind(session.level)
            .bind(to_json(&session.subscriptions))
            .bind(id.to_owned())
            .bind(before)
            .bind(level.unwrap_or_default())
            .execute(&self.pool)
            .await?;
            if changed.rows_affected() > 0 {
                return Ok(true);
            }
        }
    }

    /// Notes when sessions last did something. What is known to be later stays, and what is gone stays gone.
    pub async fn touch_sessions(&self, seen: &[(String, i64)]) -> Result<(), DatabaseError> {
        let mut latest: BTreeMap<&str, i64> = BTreeMap::new();
        for (id, at) in seen {
            let known = latest.entry(id).or_insert(*at);
            *known = (*known).max(*at);
        }
        let latest: Vec<(&str, i64)> = latest.into_iter().collect();
        for some in latest.chunks(AT_ONCE) {
            let sql = format!(
                "WITH seen (id, at) AS (VALUES {})
                 UPDATE sessions SET last_seen_at = seen.at FROM seen
                 WHERE sessions.id = seen.id AND sessions.last_seen_at < seen.at",
                pairs(some.len())
            );
            // Lists of every length would push the other statements out of the cache.
            let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
            for (id, at) in some {
                query = query.bind((*id).to_owned()).bind(*at);
            }
            query.execute(&self.pool).await?;
        }
        Ok(())
    }

    /// Deletes a session; says whether there was one.
    pub async fn delete_session(&self, id: &str) -> Result<bool, DatabaseError> {
        if !super::can_be_text(id) {
            return Ok(false);
        }
        let deleted = sqlx::query("DELETE FROM sessions WHERE id = $1")
            .bind(id.to_owned())
            .execute(&self.pool)
            .await?;
        Ok(deleted.rows_affected() > 0)
    }

    /// Deletes the sessions that did nothing after `time`; says how many.
    pub async fn delete_sessions_idle_since(&self, time: i64) -> Result<u64, DatabaseError> {
        let deleted = sqlx::query("DELETE FROM sessions WHERE last_seen_at <= $1")
            .bind(time)
            .execute(&self.pool)
            .await?;
        Ok(deleted.rows_affected())
    }

    /// Counts the sessions.
    pub async fn count_sessions(&self) -> Result<u64, DatabaseError> {
        let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM sessions")
            .fetch_one(&self.pool)
            .await?;
        Ok(count.unsigned_abs())
    }
}

/// Returns `($1, $2), ($3, $4)` and so on.
fn pairs(count: usize) -> String {
    let mut text = String::new();
    for index in 0..count {
        let comma = if index == 0 { "" } else { ", " };
        write!(text, "{comma}(${}, ${})", 2 * index + 1, 2 * index + 2)
            .expect("a String takes everything");
    }
    text
}

fn session(row: &AnyRow) -> Result<StoredSession, sqlx::Error> {
    Ok(StoredSession {
        id: row.try_get("id")?,
        principal: row.try_get("principal")?,
        version: row.try_get("version")?,
        client_info: row.try_get("client_info")?,
        capabilities: row.try_get("capabilities")?,
        level: row.try_get("level")?,
        subscriptions: from_json(row, "subscriptions")?,
        created_at: row.try_get("created_at")?,
        last_seen_at: row.try_get("last_seen_at")?,
    })
}
