//! The servers of this program, mirrored for whoever looks at the database, and what the user switched on and off.

use super::{DatabaseError, Store, from_json, to_json};
use sqlx::{Any, Row as _, Transaction, any::AnyRow};

/// A server that this program has in its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredServer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for; may be empty.
    pub description: String,
    /// The names of its tools, in its own order.
    pub tools: Vec<String>,
}

/// A server, as the database keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredServer {
    /// What the program that was last started has, or had, in its code.
    pub server: MirroredServer,
    /// Whether the program that was last started has it.
    pub present: bool,
    /// When a program that has it was last started, in milliseconds since 1970.
    pub mirrored_at: i64,
}

/// Something that the user switched on or off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Switch {
    /// The server.
    pub server: String,
    /// The tool; `None` is the server itself.
    pub tool: Option<String>,
    /// Whether it is on.
    pub enabled: bool,
}

impl Store {
    /// Keeps which servers this program has. Those that it no longer has stay, marked as gone; switches stay too.
    pub async fn mirror_servers(
        &self,
        servers: &[MirroredServer],
        now: i64,
    ) -> Result<(), DatabaseError> {
        let mut transaction = self.begin_alone().await?;
        sqlx::query("UPDATE servers SET present = 0 WHERE kind = 'internal'")
            .execute(&mut *transaction)
            .await?;
        for server in servers {
            mirror(&mut transaction, server, now).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Returns the servers of this program and those that it had, by name.
    pub async fn servers(&self) -> Result<Vec<StoredServer>, DatabaseError> {
        let rows = sqlx::query(
            "SELECT name, version, description, tools, present, mirrored_at
             FROM servers WHERE kind = 'internal'",
        )
        .fetch_all(&self.pool)
        .await?;
        let mut servers: Vec<StoredServer> = rows.iter().map(server).collect::<Result<_, _>>()?;
        servers.sort_by(|a, b| a.server.name.cmp(&b.server.name));
        Ok(servers)
    }

    /// Switches a server, or one of its tools, on or off. Bridges that run see it when they next look.
    pub async fn set_switch(
        &self,
        server: &str,
        tool: Option<&str>,
        enabled: bool,
    ) -> Result<(), DatabaseError> {
        sqlx::query(
            "INSERT INTO switches (server, tool, enabled) VALUES ($1, $2, $3)
             ON CONFLICT (server, tool) DO UPDATE SET enabled = excluded.enabled",
        )
        .bind(server.to_owned())
        .bind(tool.unwrap_or_default().to_owned())
        .bind(i64::from(enabled))
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Returns what was ever switched, by server and tool.
    pub async fn switches(&self) -> Result<Vec<Switch>, DatabaseError> {
        let rows = sqlx::query("SELECT server, tool, enabled FROM switches")
            .fetch_all(&self.pool)
            .await?;
        let mut switches: Vec<Switch> = rows.iter().map(switch).collect::<Result<_, _>>()?;
        switches.sort();
        Ok(switches)
    }
}

async fn mirror(
    transaction: &mut Transaction<'_, Any>,
    server: &MirroredServer,
    now: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO servers (name, kind, description, version, tools, present, mirrored_at)
         VALUES ($1, 'internal', $2, $3, $4, 1, $5)
         ON CONFLICT (name) DO UPDATE SET
            kind = excluded.kind,
            description = excluded.description,
            version = excluded.version,
            tools = excluded.tools,
            present = 1,
            mirrored_at = excluded.mirrored_at",
    )
    .bind(server.name.clone())
    .bind(server.description.clone())
    .bind(server.version.clone())
    .bind(to_json(&server.tools))
    .bind(now)
    .execute(&mut **transaction)
    .await
    .map(drop)
}

fn server(row: &AnyRow) -> Result<StoredServer, sqlx::Error> {
    Ok(StoredServer {
        server: MirroredServer {
            name: row.try_get("name")?,
            version: row.try_get("version")?,
            description: row.try_get("description")?,
            tools: from_json(row, "tools")?,
        },
        present: row.try_get::<i64, _>("present")? != 0,
        mirrored_at: row.try_get("mirrored_at")?,
    })
}

fn switch(row: &AnyRow) -> Result<Switch, sqlx::Error> {
    let tool: String = row.try_get("tool")?;
    Ok(Switch {
        server: row.try_get("server")?,
        tool: (!tool.is_empty()).then_some(tool),
        enabled: row.try_get::<i64, _>("enabled")? != 0,
    })
}
