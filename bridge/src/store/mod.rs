//! What must outlive the process: one SQLite file, or a PostgreSQL database that several bridges share.
//!
//! One set of SQL runs on both: `$1` placeholders, `ON CONFLICT … DO UPDATE`, `RETURNING`, `BIGINT`, `TEXT`.

mod approvals;
mod catalog;
mod data;
mod external_servers;
mod folder;
mod keys;
mod migrations;
mod others;
mod presence;
mod servers;
mod service_token;
mod sessions;
mod sightings;
mod sign_ins;
mod tasks;
mod tokens;

pub(crate) use folder::create as create_private_file;

pub use approvals::Approval;
pub use catalog::{CatalogServer, CatalogSync};
pub use data::{BackupError, ExportError, ImportError, Imported};
pub use external_servers::ExternalServer;
pub use keys::{Key, KeyError};
pub use others::Others;
pub use presence::Presence;
// Without `self`, the compiler also looks for a crate of this name, and links it.
pub use self::servers::{MirroredServer, StoredServer, Switch};
pub use service_token::{ServiceToken, ServiceTokenError, service_token};
pub use sessions::StoredSession;
pub use sightings::Sighting;
pub use sign_ins::{CredentialKey, FlowState, StoredCredential};
pub use tasks::{Answers, CreateTaskError, NewTask, Outcome, Renewed, StoredTask, TaskStatus};
pub use tokens::{CreateTokenError, NewToken, RevokeTokenError, Token};

use crate::secret::Secret;
use serde::{Serialize, de::DeserializeOwned};
use sqlx::{
    Any, AnyPool, ConnectOptions as _, Connection as _, Executor as _, Row as _, Transaction,
    any::{AnyConnectOptions, AnyPoolOptions, AnyRow},
};
use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use thiserror::Error;

/// The SQLite file in the data folder.
pub const FILE_NAME: &str = "clopen-mcp.sqlite";

/// Another process that has just begun to write is done within this time.
const BUSY: Duration = Duration::from_secs(5);

/// A connection that was used within this time is taken to be there still; asking it would double the way of most
/// statements.
const FRESH: Duration = Duration::from_secs(10);

const SQLITE_BUSY: u32 = 5;
const SQLITE_CORRUPT: u32 = 11;
const SQLITE_NOT_A_DATABASE: u32 = 26;

/// The database. Clones share it.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
    kind: Kind,
    /// The data folder, where the database is in it.
    data: Option<Arc<Path>>,
    /// The address, where the database has one.
    url: Option<Secret>,
    token_changes: Arc<AtomicU64>,
}

/// Which database it is, where one set of SQL isn't enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sqlite,
    Postgres,
}

/// Why the database can't be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The data folder can't be made or written.
    #[error(
        "can't write to the data folder `{}`; make it yours, or name another one with `--data`, `CLOPEN_MCP_DATA` or the key `data`", folder.display()
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is something else.
    #[error(
        "`{database}` is not a SQLite database, or it is damaged; move it away for an empty one, or name another data folder with `--data`"
    )]
    NotADatabase {
        /// The file.
        database: String,
    },
    /// The database was written by a later version.
    #[error(
        "the database `{database}` was written by a newer clopen-mcp (schema {found}, while this one knows schemas up to {known}); update clopen-mcp, or use another database"
    )]
    Newer {
        /// The file, or the address without its password.
        database: String,
        /// The schema of the database.
        found: i64,
        /// The last schema that this program knows.
        known: i64,
    },
    /// The address can't be read.
    #[error(
        "the database's address can't be read; it looks like `postgres://user:password@host/database`"
    )]
    Address,
    /// There is no connection.
    #[error("can't open the database `{database}`")]
    Connect {
        /// The file, or the address without its password.
        database: String,
        /// Why.
        source: DatabaseError,
    },
    /// The tables can't be brought up to date.
    #[error("can't bring the database `{database}` up to schema {version}")]
    Migrate {
        /// The file, or the address without its password.
        database: String,
        /// The schema that failed.
        version: i64,
        /// Why.
        source: DatabaseError,
    },
}

/// The database failed. This is the end of the chain, since sqlx repeats its sources in its own words.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct DatabaseError(sqlx::Error);

impl From<sqlx::Error> for DatabaseError {
    fn from(error: sqlx::Error) -> Self {
        Self(error)
    }
}

/// Returns the time, in milliseconds since 1970 in UTC.
#[expect(
    clippy::disallowed_methods,
    reason = "the one clock; whoever needs the time gets it from a caller of this"
)]
pub fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Store {
    /// Opens the SQLite database in the data folder, or the PostgreSQL database where an address is given, and
    /// brings its tables up to date. Several processes may do so at once.
    pub async fn open(data: &Path, database_url: Option<&Secret>) -> Result<Self, OpenError> {
        sqlx::any::install_default_drivers();
        match database_url {
            Some(url) => Self::open_url(url).await,
            None => Self::open_file(data).await,
        }
    }

    /// Closes all connections. SQLite's side files go away with the last one.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Changes whenever this process changes a token, so that whoever remembers tokens knows when to ask again.
    pub fn token_changes(&self) -> u64 {
        self.token_changes.load(Ordering::Acquire)
    }

    fn tokens_changed(&self) {
        self.token_changes.fetch_add(1, Ordering::Release);
    }

    /// Begins a transaction that no other of its kind runs beside, so that two that write many rows don't wait for
    /// each other.
    async fn begin_alone(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        migrations::begin(&self.pool, self.kind).await
    }

    async fn open_file(data: &Path) -> Result<Self, OpenError> {
        let (data, path) = folder::prepare(data)
            .and_then(|data| {
                let path = data.join(FILE_NAME);
                folder::touch(&path)?;
                Ok((data, path))
            })
            .map_err(|source| OpenError::Folder {
                folder: data.to_owned(),
                source,
            })?;
        let database = path.display().to_string();
        let connect = |error: sqlx::Error| match sqlite_code(&error) {
            Some(SQLITE_CORRUPT | SQLITE_NOT_A_DATABASE) => OpenError::NotADatabase {
                database: database.clone(),
            },
            _ => OpenError::Connect {
                database: database.clone(),
                source: error.into(),
            },
        };
        let options = sqlite_address(&path).map_err(connect)?;
        write_ahead(&options).await.map_err(connect)?;
        let pool = pool_options()
            .max_connections(4)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    connection
                        .execute("PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL")
                        .await
                        .map(drop)
                })
            })
            .connect_with(options)
            .await
            .map_err(connect)?;
        migrations::run(&pool, Kind::Sqlite, &database).await?;
        Ok(Self {
            data: Some(data.into()),
            ..Self::new(pool, Kind::Sqlite)
        })
    }

    async fn open_url(url: &Secret) -> Result<Self, OpenError> {
        let options: AnyConnectOptions = url.expose().parse().map_err(|_| OpenError::Address)?;
        let database = without_password(&options);
        let connect = |error: sqlx::Error| OpenError::Connect {
            database: database.clone(),
            source: error.into(),
        };
        // A pool would only say that the time is up, and not what is wrong.
        let connection = options.connect().await.map_err(connect)?;
        connection.close().await.map_err(connect)?;
        let pool = pool_options()
            .max_connections(8)
            .connect_with(options)
            .await
            .map_err(connect)?;
        migrations::run(&pool, Kind::Postgres, &database).await?;
        Ok(Self {
            url: Some(url.clone()),
            ..Self::new(pool, Kind::Postgres)
        })
    }

    fn new(pool: AnyPool, kind: Kind) -> Self {
        Self {
            pool,
            kind,
            data: None,
            url: None,
            token_changes: Arc::default(),
        }
    }
}

fn pool_options() -> AnyPoolOptions {
    AnyPoolOptions::new()
        .acquire_timeout(2 * BUSY)
        .test_before_acquire(false)
        .before_acquire(|connection, state| {
            Box::pin(async move { Ok(state.idle_for < FRESH || connection.ping().await.is_ok()) })
        })
}

fn sqlite_address(path: &Path) -> Result<AnyConnectOptions, sqlx::Error> {
    let mut address = "sqlite:".to_owned();
    for byte in path.to_string_lossy().bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._".contains(&byte) {
            address.push(char::from(byte));
        } else {
            write!(address, "%{byte:02X}").expect("a String takes everything");
        }
    }
    address.push_str("?mode=rwc");
    address.parse()
}

/// Switches the file to a log that readers needn't wait for. SQLite doesn't wait for others here, so this does.
///
/// A connection of its own tells what is wrong with the file; a pool would only say that the time is up.
async fn write_ahead(options: &AnyConnectOptions) -> Result<(), sqlx::Error> {
    let pause = Duration::from_millis(50);
    let mut waited = Duration::ZERO;
    let mut connection = options.connect().await?;
    loop {
        match connection.execute("PRAGMA journal_mode = WAL").await {
            Err(error) if sqlite_code(&error) == Some(SQLITE_BUSY) && waited < BUSY => {
                waited += pause;
                tokio::time::sleep(pause).await;
            }
            Err(error) => return Err(error),
            Ok(_) => return connection.close().await,
        }
    }
}

/// Returns what kind of error it is to SQLite, without the finer distinction in the upper bits.
fn sqlite_code(error: &sqlx::Error) -> Option<u32> {
    let code: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// Says whether a text from outside can be in the database: PostgreSQL refuses this one character.
fn can_be_text(text: &str) -> bool {
    !text.contains('\0')
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("lists and maps of texts can be written as JSON")
}

fn from_json<T: DeserializeOwned>(row: &AnyRow, column: &str) -> Result<T, sqlx::Error> {
    let json: String = row.try_get(column)?;
    serde_json::from_str(&json).map_err(|error| sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: error.into(),
    })
}

fn without_password(options: &AnyConnectOptions) -> String {
    let url = &options.database_url;
    let host = url.host_str().unwrap_or_default();
    let port = url
        .port()
        .map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{host}{port}{}", url.scheme(), url.path())
}
