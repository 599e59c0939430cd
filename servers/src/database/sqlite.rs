//! SQLite, which can't write here for three reasons of its own: the file is open for reading, `query_only` is on, and
//! SQLite asks [`only_reads`] about every action while it compiles a statement.
//!
//! The last one is needed. A connection for reading may still attach other files, `VACUUM INTO` writes a new one
//! whatever the connection was opened for, and `query_only` can be turned off in SQL.

use super::{CONNECTIONS, Collector, Parameter, QUERY_TIME, QueryError, Rows, StartError};
use base64::Engine as _;
use rusqlite::{
    Connection, Error, ErrorCode, OpenFlags,
    hooks::{AuthAction, AuthContext, Authorization},
    limits::Limit,
    types::{Value as SqliteValue, ValueRef},
};
use serde_json::{Value, json, value::RawValue};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};
use tool_runtime::Cancellation;

pub(super) const TABLES: &str = "SELECT name, type FROM sqlite_schema \
    WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";

pub(super) const COLUMNS: &str = "SELECT name, type, \"notnull\" = 0, pk > 0 \
    FROM pragma_table_xinfo($1) WHERE hidden <> 1 ORDER BY cid";

/// How long a query waits for a writer.
const BUSY_TIME: Duration = Duration::from_secs(5);
/// No value that a query makes or meets may be longer.
const MAX_VALUE: i32 = 16 * 1024 * 1024;
/// How often SQLite asks whether it should stop, in steps of its machine: some thousand times a second.
const STEPS: i32 = 10_000;

/// A few connections to one file.
#[derive(Debug)]
pub(super) struct Sqlite {
    file: Arc<DatabaseFile>,
    slots: Arc<Semaphore>,
}

#[derive(Debug)]
struct DatabaseFile {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Sqlite {
    /// Opens the file of a URL without its `sqlite:`.
    pub(super) async fn open(path: &str) -> Result<Self, StartError> {
        let path = path.strip_prefix("//").unwrap_or(path);
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        if path.is_empty() || path == ":memory:" {
            return Err(StartError::NoFile);
        }
        let path = percent_encoding::percent_decode_str(path)
            .decode_utf8_lossy()
            .into_owned();
        let file = Arc::new(DatabaseFile {
            path: PathBuf::from(&path),
            idle: Mutex::default(),
        });
        let opened = spawn_blocking({
            let file = Arc::clone(&file);
            move || {
                let connection = connect(&file.path)?;
                // SQLite looks at a file only when it is first asked something.
                connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
                file.give_back(connection);
                Ok(())
            }
        });
        opened.await?.map_err(|error| StartError::Sqlite {
            path,
            reason: words(error),
        })?;
        Ok(Self {
            file,
            slots: Arc::new(Semaphore::new(CONNECTIONS as usize)),
        })
    }

    pub(super) async fn query(
        &self,
        sql: &str,
        parameters: Vec<Parameter>,
        limit: usize,
    ) -> Result<Rows, QueryError> {
        // When this future is dropped, the guard stops the thread that it can't take with it.
        let stop = Cancellation::new();
        let _guard = stop.clone().drop_guard();

        let run = async {
            let slot = Arc::clone(&self.slots).acquire_owned().await;
            let file = Arc::clone(&self.file);
            let sql = sql.to_owned();
            spawn_blocking(move || {
                let _slot = slot;
                let connection = file.take().map_err(refused)?;
                let result = connection
                    .progress_handler(STEPS, Some(move || stop.is_cancelled()))
                    .map_err(refused)
                    .and_then(|()| rows(&connection, &sql, parameters, limit));
                file.give_back(connection);
                result
            })
            .await
        };
        match timeout(QUERY_TIME, run).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(QueryError::Unavailable {
                reason: panic.to_string(),
            }),
            Err(_) => Err(QueryError::TimedOut),
        }
    }
}

impl DatabaseFile {
    fn take(&self) -> Result<Connection, Error> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        match idle {
            Some(connection) => Ok(connection),
            None => connect(&self.path),
        }
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(connection);
    }
}

fn connect(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIME)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    connection.authorizer(Some(only_reads))?;
    Ok(connection)
}

/// Pragmas that only tell something; the tables of full-text search ask for the last one.
const TELLING_PRAGMAS: [&str; 9] = [
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "function_list",
    "data_version",
];

/// Allows what a query needs and nothing that would stay behind in the connection.
fn only_reads(context: AuthContext<'_>) -> Authorization {
    let allowed = match context.action {
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Recursive
        // The tables of R*Tree compile these even to read. To run them is impossible: the file is open for reading.
        | AuthAction::Insert { .. }
        | AuthAction::Update { .. }
        | AuthAction::Delete { .. } => true,
        AuthAction::Function { function_name } => {
            !function_name.eq_ignore_ascii_case("load_extension")
        }
        AuthAction::Pragma { pragma_name, .. } => TELLING_PRAGMAS
            .iter()
            .any(|it| it.eq_ignore_ascii_case(pragma_name)),
        _ => false,
    };
    if allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

fn rows(
    connection: &Connection,
    sql: &str,
    parameters: Vec<Parameter>,
    limit: usize,
) -> Result<Rows, QueryError> {
    let mut statement = connection.prepare(sql).map_err(refused)?;
    let columns: Vec<String> = statement
        .column_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let width = columns.len();
    if width == 0 && statement.readonly() {
        return Err(QueryError::NotAQuery);
    }

    let mut collected = Collector::new(columns, limit);
    let mut rows = statement
        .query(rusqlite::params_from_iter(
            parameters.into_iter().map(to_sqlite),
        ))
        .map_err(refused)?;
    while let Some(row) = rows.next().map_err(refused)? {
        let cells = (0..width)
            .map(|column| row.get_ref(column).map(to_json))
            .collect::<Result<Vec<_>, _>>()
            .map_err(refused)?;
        if !collected.push(cells)? {
            break;
        }
    }
    Ok(collected.rows)
}

fn to_sqlite(parameter: Parameter) -> SqliteValue {
    match parameter {
        Parameter::Null => SqliteValue::Null,
        Parameter::Bool(it) => SqliteValue::Integer(it.into()),
        Parameter::Integer(it) => SqliteValue::Integer(it),
        Parameter::Real(it) => SqliteValue::Real(it),
        Parameter::Text(it) => SqliteValue::Text(it),
    }
}

fn to_json(value: ValueRef<'_>) -> Box<RawValue> {
    let value = match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(it) => it.into(),
        ValueRef::Real(it) if it.is_finite() => it.into(),
        ValueRef::Real(it) => it.to_string().into(),
        ValueRef::Text(it) => String::from_utf8_lossy(it).into(),
        ValueRef::Blob(it) => {
            json!({"base64": base64::engine::general_purpose::STANDARD.encode(it)})
        }
    };
    serde_json::value::to_raw_value(&value).expect("a JSON value can be written as JSON")
}

fn refused(error: Error) -> QueryError {
    match error {
        Error::MultipleStatement => QueryError::SeveralStatements,
        Error::SqliteFailure(failure, _)
            if failure.code == ErrorCode::AuthorizationForStatementDenied =>
        {
            QueryError::NotAQuery
        }
        other => QueryError::Refused {
            message: words(other),
        },
    }
}

/// Returns what SQLite says, without the number and the name that it also gives to it.
fn words(error: Error) -> String {
    match error {
        Error::SqlInputError { msg, offset, .. } => format!("{msg} (at byte {offset} of `sql`)"),
        Error::SqliteFailure(failure, message) => message.unwrap_or_else(|| failure.to_string()),
        other => other.to_string(),
    }
}
