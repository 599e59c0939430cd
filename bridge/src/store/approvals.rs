//! What a person has approved of the tools of external servers.

use super::{DatabaseError, Store, from_json, to_json};
use sqlx::{Row as _, any::AnyRow};
use std::collections::BTreeMap;

/// The tools of an external server, as a person has approved them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The server.
    pub server: String,
    /// When the server was added: one that is added anew is approved anew.
    pub added_at: i64,
    /// What each tool says of itself, by its name.
    pub tools: BTreeMap<String, String>,
    /// When they were approved, in milliseconds since 1970.
    pub approved_at: i64,
}

impl Store {
    /// Keeps what was approved of a server, in place of what was before.
    pub async fn save_approval(&self, approval: &Approval) -> Result<(), DatabaseError> {
        sqlx::query(
            "INSERT INTO approvals (server, added_at, tools, approved_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (server) DO UPDATE SET
                added_at = excluded.added_at,
                tools = excluded.tools,
                approved_at = excluded.approved_at",
        )
        .bind(approval.server.clone())
        .bind(approval.added_at)
        .bind(to_json(&approval.tools))
        .bind(approval.approved_at)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Returns what tells whether anything has been approved: by server, when that was.
    pub async fn approval_times(&self) -> Result<BTreeMap<String, i64>, DatabaseError> {
        let rows = sqlx::query("SELECT server, approved_at FROM approvals")
            .fetch_all(&self.pool)
            .await?;
        let times = rows
            .iter()
            .map(|row| Ok((row.try_get("server")?, row.try_get("approved_at")?)));
        Ok(times.collect::<Result<_, sqlx::Error>>()?)
    }

    /// Returns what has been approved of the external servers that are there.
    pub async fn approvals(&self) -> Result<Vec<Approval>, DatabaseError> {
        let rows = sqlx::query(
            "SELECT approvals.server, approvals.added_at, approvals.tools, approvals.approved_at
             FROM approvals
             JOIN external_servers ON external_servers.name = approvals.server
                AND external_servers.added_at = approvals.added_at
             ORDER BY approvals.server",
        )
        .fetch_all(&self.pool)
        .await?;
        let approvals: Result<Vec<Approval>, _> = rows.iter().map(approval).collect();
        Ok(approvals?)
    }
}

fn approval(row: &AnyRow) -> Result<Approval, sqlx::Error> {
    Ok(Approval {
        server: row.try_get("server")?,
        added_at: row.try_get("added_at")?,
        tools: from_json(row, "tools")?,
        approved_at: row.try_get("approved_at")?,
    })
}
