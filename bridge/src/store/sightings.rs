//! Which engines have called, from which projects, and when last.

use super::{DatabaseError, Store};
use sqlx::{Row as _, any::AnyRow};

/// How many sightings are kept: the latest.
const MOST: i64 = 1_000;

/// An engine that has called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// The engine, or what the client calls itself where that is no known one.
    pub engine: String,
    /// The project that it called from; may be empty.
    pub project: String,
    /// What the client calls itself; may be empty.
    pub client: String,
    /// Its version; may be empty.
    pub client_version: String,
    /// The version of the protocol that it spoke.
    pub protocol: String,
    /// When it last called, in milliseconds since 1970.
    pub seen_at: i64,
}

impl Store {
    /// Notes that an engine has called; it takes the place of what was known of this engine in this project.
    pub async fn note_sighting(&self, sighting: &Sighting) -> Result<(), DatabaseError> {
        let sighting = sighting.clone();
        sqlx::query(
            "INSERT INTO sightings (engine, project, client, client_version, protocol, seen_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (engine, project) DO UPDATE SET
                client = excluded.client,
                client_version = excluded.client_version,
                protocol = excluded.protocol,
                seen_at = excluded.seen_at",
        )
        .bind(sighting.engine)
        .bind(sighting.project)
        .bind(sighting.client)
        .bind(sighting.client_version)
        .bind(sighting.protocol)
        .bind(sighting.seen_at)
        .execute(&self.pool)
        .await?;
        sqlx::query(
            "DELETE FROM sightings WHERE seen_at <
             (SELECT seen_at FROM sightings ORDER BY seen_at DESC LIMIT 1 OFFSET $1)",
        )
        .bind(MOST - 1)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Returns the engines that have called, the latest first.
    pub async fn sightings(&self) -> Result<Vec<Sighting>, DatabaseError> {
        let rows = sqlx::query(
            "SELECT engine, project, client, client_version, protocol, seen_at
             FROM sightings ORDER BY seen_at DESC",
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.iter().map(sighting).collect::<Result<_, _>>()?)
    }
}

fn sighting(row: &AnyRow) -> Result<Sighting, sqlx::Error> {
    Ok(Sighting {
        engine: row.try_get("engine")?,
        project: row.try_get("project")?,
        client: row.try_get("client")?,
        client_version: row.try_get("client_version")?,
        protocol: row.try_get("protocol")?,
        seen_at: row.try_get("seen_at")?,
    })
}
