//! All that the store holds: out as one document, in again on either kind of database, copied, emptied.

use super::{DatabaseError, Kind, Store, catalog, folder, migrations};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction, any::AnyRow};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf, absolute},
};
use thiserror::Error;

/// What a document says it is.
const FORMAT: &str = "clopen-mcp store";

/// A table, so that its rows can be written and read without knowing what they mean.
struct Table {
    name: &'static str,
    /// Whether only a reset of everything empties it.
    kept: bool,
    /// How many of the columns, from the first, tell the rows apart.
    key: usize,
    columns: &'static [(&'static str, Type)],
}

#[derive(Clone, Copy)]
enum Type {
    Text,
    Integer,
    OptionalText,
    OptionalInteger,
}

use Type::{Integer, OptionalInteger, OptionalText, Text};

/// Every table but that of the migrations, those of the catalog, and sign-ins under way.
const TABLES: [Table; 11] = [
    Table {
        name: "tokens",
        kept: true,
        key: 1,
        columns: &[
            ("id", Text),
            ("name", Text),
            ("hash", Text),
            ("servers", OptionalText),
            ("read_only", Integer),
            ("project", OptionalText),
            ("created_at", Integer),
            ("last_used_at", OptionalInteger),
            ("revoked_at", OptionalInteger),
        ],
    },
    Table {
        name: "keys",
        kept: true,
        key: 1,
        columns: &[("name", Text), ("secret", Text)],
    },
    Table {
        name: "servers",
        kept: false,
        key: 1,
        columns: &[
            ("name", Text),
            ("kind", Text),
            ("description", Text),
            ("version", Text),
            ("tools", Text),
            ("present", Integer),
            ("mirrored_at", Integer),
        ],
    },
    Table {
        name: "external_servers",
        kept: false,
        key: 1,
        columns: &[
            ("name", Text),
            ("source", Text),
            ("sealed", Text),
            ("listed", OptionalText),
            ("listed_at", OptionalInteger),
            ("added_at", Integer),
        ],
    },
    Table {
        name: "approvals",
        kept: false,
        key: 1,
        columns: &[
            ("server", Text),
            ("added_at", Integer),
            ("tools", Text),
            ("approved_at", Integer),
        ],
    },
    Table {
        name: "oauth_clients",
        kept: false,
        key: 2,
        columns: &[
            ("issuer", Text),
            ("redirect", Text),
            ("sealed", Text),
            ("created_at", Integer),
        ],
    },
    Table {
        name: "oauth_credentials",
        kept: false,
        key: 3,
        columns: &[
            ("server", Text),
            ("subject", Text),
            ("account", Text),
            ("sealed", Text),
            ("expires_at", OptionalInteger),
            ("is_default", Integer),
            ("version", Integer),
            ("wanted", Text),
            ("failures", Integer),
            ("retry_at", OptionalInteger),
            ("leased_by", OptionalText),
            ("leased_until", OptionalInteger),
            ("updated_at", Integer),
        ],
    },
    Table {
        name: "switches",
        kept: false,
        key: 2,
        columns: &[("server", Text), ("tool", Text), ("enabled", Integer)],
    },
    Table {
        name: "sessions",
        kept: false,
        key: 1,
        columns: &[
            ("id", Text),
            ("principal", Text),
            ("version", Text),
            ("client_info", Text),
            ("capabilities", Text),
            ("level", OptionalText),
            ("subscriptions", Text),
            ("created_at", Integer),
            ("last_seen_at", Integer),
        ],
    },
    Table {
        name: "sightings",
        kept: false,
        key: 2,
        columns: &[
            ("engine", Text),
            ("project", Text),
            ("client", Text),
            ("client_version", Text),
            ("protocol", Text),
            ("seen_at", Integer),
        ],
    },
    Table {
        name: "tasks",
        kept: false,
        key: 1,
        columns: &[
            ("id", Text),
            ("principal", Text),
            ("tool", Text),
            ("arguments", Text),
            ("caller", Text),
            ("idempotent", Integer),
            ("status", Text),
            ("status_message", OptionalText),
            ("created_at", Integer),
            ("updated_at", Integer),
            ("ttl_ms", OptionalInteger),
            ("poll_interval_ms", OptionalInteger),
            ("input_requests", Text),
            ("input_responses", Text),
            ("input_taken", Text),
            ("cancel_requested", Integer),
            ("result", OptionalText),
            ("error", OptionalText),
            ("owner", OptionalText),
            ("lease_until", OptionalInteger),
            ("revision", Integer),
        ],
    },
];

/// The document.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    schema: i64,
    tables: BTreeMap<String, Rows>,
}

/// The rows of a table, by column.
type Rows = Vec<Map<String, Value>>;

/// How many rows came in, by table.
pub type Imported = BTreeMap<&'static str, usize>;

/// Why nothing was exported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The database failed.
    #[error("can't read the database")]
    Database(#[from] DatabaseError),
    /// The document can't be written.
    #[error("can't write the export")]
    Write(#[source] io::Error),
}

/// Why nothing was imported. The database is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It can't be read, or isn't JSON of the right shape.
    #[error("this is nothing that `clopen-mcp data export` wrote")]
    Document(#[source] serde_json::Error),
    /// It is of something else.
    #[error(
        "this is nothing that `clopen-mcp data export` wrote: its `format` is `{}` and not `{FORMAT}`", found.escape_debug()
    )]
    Format {
        /// What it says it is.
        found: String,
    },
    /// It was written by a later version.
    #[error(
        "the export was written by a newer clopen-mcp (schema {found}, while this one knows schemas up to {known}); update clopen-mcp"
    )]
    Newer {
        /// The schema of the document.
        found: i64,
        /// The last schema that this program knows.
        known: i64,
    },
    /// It names a table that doesn't exist.
    #[error("the export has a table `{}`, which this clopen-mcp doesn't know", table.escape_debug())]
    Table {
        /// The table.
        table: String,
    },
    /// A row has a wrong shape.
    #[error("row {row} of the export's table `{table}` {problem}")]
    Row {
        /// The table.
        table: &'static str,
        /// The row, counted from 1.
        row: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// There is something in the database already.
    #[error(
        "the database isn't empty: it has {rows} rows in `{table}`, for one; import into an empty database, or add `--replace` to put the export in place of all that is there"
    )]
    NotEmpty {
        /// The first table that has rows.
        table: &'static str,
        /// How many.
        rows: i64,
    },
    /// The database failed.
    #[error("can't import into the database")]
    Database(#[from] DatabaseError),
}

/// Why there is no backup.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The database has its own tool for that.
    #[error(
        "a PostgreSQL database is backed up with `pg_dump`; `clopen-mcp data export` writes what is in it for either kind of database"
    )]
    Postgres,
    /// There is such a file.
    #[error("`{}` exists already; name a new file for the backup", file.display())]
    Exists {
        /// The file.
        file: PathBuf,
    },
    /// The file can't be made.
    #[error("can't write the backup `{}`", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The database failed.
    #[error("can't copy the database to `{}`", file.display())]
    Database {
        /// The file.
        file: PathBuf,
        /// Why.
        source: DatabaseError,
    },
}

impl Store {
    /// Writes everything in the database as one JSON document, as it was at one moment. It holds the keys and the
    /// hashes of the tokens, so it is for its owner only.
    pub async fn export(&self, to: &mut (dyn Write + Send)) -> Result<(), ExportError> {
        let tables = self.read_all().await.map_err(DatabaseError::from)?;
        let document = Document {
            format: FORMAT.to_owned(),
            schema: migrations::known(),
            tables,
        };
        serde_json::to_writer_pretty(&mut *to, &document)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(to))
            .and_then(|()| to.flush())
            .map_err(ExportError::Write)
    }

    /// Reads what [`export`](Self::export) wrote on either kind of database, all or nothing. The database has to be
    /// empty, unless everything in it is to be replaced.
    pub async fn import(
        &self,
        from: &mut (dyn Read + Send),
        replace: bool,
    ) -> Result<Imported, ImportError> {
        let rows = rows(from)?;
        let imported = self.write_all(rows, replace).await;
        // Also after a failure, since nobody knows whether the database did it.
        self.tokens_changed();
        imported
    }

    /// Copies a SQLite database that may be in use into a new file, which is for its owner only.
    pub async fn backup(&self, file: &Path) -> Result<(), BackupError> {
        if self.kind == Kind::Postgres {
            return Err(BackupError::Postgres);
        }
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => BackupError::Exists {
                file: file.to_owned(),
            },
            _ => BackupError::Write {
                file: file.to_owned(),
                source,
            },
        };
        // SQLite takes some relative paths for addresses.
        let path = absolute(file).map_err(failed)?;
        let name = path.to_str().ok_or_else(|| {
            failed(io::Error::new(
                io::ErrorKind::InvalidFilename,
                "SQLite takes only UTF-8 as the name of a file",
            ))
        })?;
        // SQLite fills a file that is empty, and leaves its mode alone.
        let made = folder::create(&path).map_err(failed)?;
        let copied = sqlx::query("VACUUM INTO $1")
            .bind(name.to_owned())
            .execute(&self.pool)
            .await
            .map_err(|source| BackupError::Database {
                file: file.to_owned(),
                source: source.into(),
            })
            .and_then(|_| made.sync_all().map_err(failed));
        if copied.is_err() {
            // What is left is no backup; the failure is what counts.
            drop(fs::remove_file(&path));
        }
        copied
    }

    /// Forgets servers, switches, sessions, tasks and the catalog; with `all` the project tokens and the keys too.
    pub async fn reset(&self, all: bool) -> Result<(), DatabaseError> {
        let mut transaction = self.begin_alone().await?;
        for table in TABLES.iter().filter(|it| all || !it.kept) {
            empty(&mut transaction, table.name).await?;
        }
        for table in catalog::TABLES.into_iter().chain(["oauth_flows"]) {
            empty(&mut transaction, table).await?;
        }
        let reset = transaction.commit().await;
        self.tokens_changed();
        Ok(reset?)
    }

    async fn read_all(&self) -> Result<BTreeMap<String, Rows>, sqlx::Error> {
        let one_moment = match self.kind {
            Kind::Sqlite => "BEGIN",
            Kind::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ",
        };
        let mut transaction = self.pool.begin_with(one_moment).await?;
        let mut tables = BTreeMap::new();
        for table in &TABLES {
            let sql = format!("SELECT {} FROM {}", table.column_names(), table.name);
            let mut rows = sqlx::query(AssertSqlSafe(sql))
                .fetch_all(&mut *transaction)
                .await?
                .iter()
                .map(|row| table.read(row))
                .collect::<Result<Vec<_>, _>>()?;
            // Sorted here, since databases differ in what comes first.
            rows.sort_by_cached_key(|row| table.key_of(row));
            tables.insert(table.name.to_owned(), rows);
        }
        transaction.commit().await?;
        Ok(tables)
    }

    async fn write_all(
        &self,
        rows: Vec<(&Table, Rows)>,
        replace: bool,
    ) -> Result<Imported, ImportError> {
        let mut transaction = self.begin_alone().await.map_err(DatabaseError::from)?;
        for table in &TABLES {
            if replace {
                empty(&mut transaction, table.name)
                    .await
                    .map_err(DatabaseError::from)?;
            } else {
                refuse_rows(&mut transaction, table).await?;
            }
        }
        let mut imported = Imported::new();
        for (table, rows) in rows {
            imported.insert(table.name, rows.len());
            for row in rows {
                table
                    .insert(&mut transaction, &row)
                    .await
                    .map_err(DatabaseError::from)?;
            }
        }
        transaction.commit().await.map_err(DatabaseError::from)?;
        Ok(imported)
    }
}

/// Reads a document and checks all of it before anything is touched.
fn rows(from: &mut dyn Read) -> Result<Vec<(&'static Table, Rows)>, ImportError> {
    let document: Document =
        serde_json::from_reader(io::BufReader::new(from)).map_err(ImportError::Document)?;
    let known = migrations::known();
    if document.format != FORMAT {
        return Err(ImportError::Format {
            found: document.format,
        });
    }
    if document.schema > known {
        return Err(ImportError::Newer {
            found: document.schema,
            known,
        });
    }
    let mut checked = Vec::new();
    for (name, rows) in document.tables {
        let Some(table) = TABLES.iter().find(|it| it.name == name) else {
            return Err(ImportError::Table { table: name });
        };
        for (index, row) in rows.iter().enumerate() {
            table.check(row).map_err(|problem| ImportError::Row {
                table: table.name,
                row: index + 1,
                problem,
            })?;
        }
        checked.push((table, rows));
    }
    Ok(checked)
}

async fn empty(transaction: &mut Transaction<'_, Any>, table: &str) -> Result<(), sqlx::Error> {
    let sql = format!("DELETE FROM {table}");
    sqlx::query(AssertSqlSafe(sql))
        .execute(&mut **transaction)
        .await
        .map(drop)
}

async fn refuse_rows(
    transaction: &mut Transaction<'_, Any>,
    table: &Table,
) -> Result<(), ImportError> {
    let sql = format!("SELECT COUNT(*) FROM {}", table.name);
    let rows: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(&mut **transaction)
        .await
        .map_err(DatabaseError::from)?;
    if rows > 0 {
        return Err(ImportError::NotEmpty {
            table: table.name,
            rows,
        });
    }
    Ok(())
}

impl Table {
    fn column_names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    fn read(&self, row: &AnyRow) -> Result<Map<String, Value>, sqlx::Error> {
        let read = |(name, type_): &(&str, Type)| {
            let value = match type_ {
                Text => row.try_get::<String, _>(*name)?.into(),
                Integer => row.try_get::<i64, _>(*name)?.into(),
                OptionalText => row.try_get::<Option<String>, _>(*name)?.into(),
                OptionalInteger => row.try_get::<Option<i64>, _>(*name)?.into(),
            };
            Ok(((*name).to_owned(), value))
        };
        self.columns.iter().map(read).collect()
    }

    fn key_of(&self, row: &Map<String, Value>) -> Vec<String> {
        self.columns[..self.key]
            .iter()
            .map(|(name, _)| row[*name].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Says what is wrong with a row. An older document may lack what a later migration added as optional.
    fn check(&self, row: &Map<String, Value>) -> Result<(), String> {
        for name in row.keys() {
            if !self.columns.iter().any(|(known, _)| known == name) {
                let name = name.escape_debug();
                return Err(format!("has a column `{name}`, which doesn't exist"));
            }
        }
        for (name, type_) in self.columns {
            let value = row.get(*name).unwrap_or(&Value::Null);
            let (right, wanted) = match type_ {
                Text => (value.is_string(), "text"),
                Integer => (value.is_i64(), "a whole number"),
                OptionalText => (value.is_string() || value.is_null(), "text or null"),
                OptionalInteger => (value.is_i64() || value.is_null(), "a whole number or null"),
            };
            if !right {
                return Err(format!("needs {wanted} in the column `{name}`"));
            }
        }
        Ok(())
    }

    async fn insert(
        &self,
        transaction: &mut Transaction<'_, Any>,
        row: &Map<String, Value>,
    ) -> Result<(), sqlx::Error> {
        let places: Vec<String> = (1..=self.columns.len())
            .map(|it| format!("${it}"))
            .collect();
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.name,
            self.column_names(),
            places.join(", ")
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (name, type_) in self.columns {
            let value = row.get(*name).unwrap_or(&Value::Null);
            query = match type_ {
                Text | OptionalText => query.bind(value.as_str().map(str::to_owned)),
                Integer | OptionalInteger => query.bind(value.as_i64()),
            };
        }
        query.execute(&mut **transaction).await.map(drop)
    }
}
