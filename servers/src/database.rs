//! The server `database`: questions to one SQLite or PostgreSQL database, which no question can change.
//!
//! What a model may not do is forbidden where it can't be talked around, in the database: `database/sqlite.rs` and
//! `database/postgres.rs` say how. Nothing here reads the SQL.

mod postgres;
mod sqlite;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, value::RawValue};
use std::time::Duration;
use thiserror::Error;
use tool_runtime::{Environment, Json, MissingVariable, tool_server};

/// Variable with the URL of the database.
pub const URL_VARIABLE: &str = "DATABASE_URL";

/// How long the database may work on one query.
const QUERY_TIME: Duration = Duration::from_secs(10);
/// How many queries may run at a time.
const CONNECTIONS: u32 = 4;
/// How much JSON a model gets from one query.
const MAX_BYTES: usize = 200_000;
const MAX_LISTED: usize = 1000;

/// Asks one database.
#[derive(Debug)]
pub struct Database {
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Sqlite(sqlite::Sqlite),
    Postgres(postgres::Postgres),
}

/// Questions to a database, in SQL. Nothing can be changed through it.
#[tool_server(name = "database", version = "1.0.0", start)]
impl Database {
    /// Connects to the database that `DATABASE_URL` names: `sqlite:path` or `postgres://user:password@host/name`.
    pub async fn start(environment: &Environment) -> Result<Self, StartError> {
        let url = environment.required(URL_VARIABLE)?;
        let engine = match url.split_once(':') {
            Some(("sqlite", path)) => Engine::Sqlite(sqlite::Sqlite::open(path).await?),
            Some(("postgres" | "postgresql", _)) => {
                Engine::Postgres(postgres::Postgres::connect(url).await?)
            }
            _ => return Err(StartError::UnknownDatabase),
        };
        Ok(Self { engine })
    }

    /// Run one SQL query and get its rows. The database is read-only: write a `SELECT`, `WITH` or `VALUES`. Call
    /// `list_tables` and `describe_table` first if you don't know the tables. Let the database count, sum and filter
    /// rather than fetching many rows.
    #[tool(
        title = "Query the database",
        read_only,
        idempotent,
        open_world = false,
        timeout = "30s"
    )]
    pub async fn query(
        &self,
        /// One SQL statement. Write `$1`, `$2`, … where values of `parameters` belong. PostgreSQL wants a cast where a
        /// value is neither text, number nor boolean: `$1::uuid`, `$1::date`.
        #[arg(length = 1..=100_000, example = "SELECT name FROM users WHERE id = $1")]
        sql: String,
        /// Values for `$1`, `$2`, …; lists and objects are sent as JSON text.
        #[arg(default = Vec::new(), length = 0..=100)]
        parameters: Vec<Value>,
        /// Largest number of rows to return.
        #[arg(default = 100, range = 1..=1000)]
        limit: u32,
    ) -> Result<Json<Rows>, QueryError> {
        self.rows(&sql, parameters, limit as usize).await.map(Json)
    }

    /// List the tables and views of the database.
    #[tool(title = "List tables", read_only, idempotent, open_world = false)]
    pub async fn list_tables(&self) -> Result<Json<Tables>, QueryError> {
        let sql = match self.engine {
            Engine::Sqlite(_) => sqlite::TABLES,
            Engine::Postgres(_) => postgres::TABLES,
        };
        let found = self.rows(sql, Vec::new(), MAX_LISTED).await?;
        let tables = found.rows.iter().map(|row| Table {
            name: text(row, 0),
            kind: text(row, 1),
        });
        Ok(Json(Tables {
            tables: tables.collect(),
            truncated: found.truncated,
        }))
    }

    /// Describe the columns of one table or view.
    #[tool(title = "Describe a table", read_only, idempotent, open_world = false)]
    pub async fn describe_table(
        &self,
        /// Name of the table, as `list_tables` spells it.
        #[arg(length = 1..=300, example = "users")]
        table: String,
    ) -> Result<Json<Columns>, QueryError> {
        let sql = match self.engine {
            Engine::Sqlite(_) => sqlite::COLUMNS,
            Engine::Postgres(_) => postgres::COLUMNS,
        };
        let found = self
            .rows(sql, vec![Value::from(table.as_str())], MAX_LISTED)
            .await?;
        if found.rows.is_empty() {
            return Err(QueryError::NoTable { table });
        }
        let columns = found.rows.iter().map(|row| Column {
            name: text(row, 0),
            data_type: text(row, 1),
            nullable: flag(row, 2),
            primary_key: flag(row, 3),
        });
        Ok(Json(Columns {
            columns: columns.collect(),
        }))
    }
}

impl Database {
    async fn rows(
        &self,
        sql: &str,
        parameters: Vec<Value>,
        limit: usize,
    ) -> Result<Rows, QueryError> {
        let parameters = (1..).zip(parameters).map(Parameter::read);
        let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
        match &self.engine {
            Engine::Sqlite(it) => it.query(sql, parameters, limit).await,
            Engine::Postgres(it) => it.query(sql, parameters, limit).await,
        }
    }
}

/// What a query gave.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// One list per row, in the order of the columns. Bytes are `{"base64": "…"}`.
    #[schemars(with = "Vec<Vec<Value>>")]
    pub rows: Vec<Vec<Box<RawValue>>>,
    /// Whether there are more rows than these.
    pub truncated: bool,
}

/// The tables of a database.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tables {
    /// The tables and views, by name.
    pub tables: Vec<Table>,
    /// Whether there are more than these.
    pub truncated: bool,
}

/// A table or view.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Table {
    /// Its name, as a query writes it.
    pub name: String,
    /// What it is, for example `table` or `view`.
    pub kind: String,
}

/// The columns of a table.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Columns {
    /// The columns, in their order.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type, in the words of the database.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Whether it can be `NULL`.
    pub nullable: bool,
    /// Whether it belongs to the primary key.
    pub primary_key: bool,
}

fn text(row: &[Box<RawValue>], column: usize) -> String {
    row.get(column)
        .and_then(|it| serde_json::from_str(it.get()).ok())
        .unwrap_or_default()
}

/// Reads a boolean, which SQLite spells as a number.
fn flag(row: &[Box<RawValue>], column: usize) -> bool {
    row.get(column)
        .is_some_and(|it| matches!(it.get(), "true" | "1"))
}

/// A value of the model, as databases take it.
#[derive(Clone, Debug)]
enum Parameter {
    Null,
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(String),
}

impl Parameter {
    fn read((position, value): (usize, Value)) -> Result<Self, QueryError> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(it) => Self::Bool(it),
            Value::Number(it) => match (it.as_i64(), it.as_f64()) {
                (Some(integer), _) => Self::Integer(integer),
                (None, Some(real)) if it.is_f64() => Self::Real(real),
                _ => {
                    return Err(QueryError::NumberTooLarge {
                        position,
                        value: it.to_string(),
                    });
                }
            },
            Value::String(it) => Self::Text(it),
            Value::Array(_) | Value::Object(_) => Self::Text(value.to_string()),
        })
    }
}

/// Takes rows until there are enough.
struct Collector {
    rows: Rows,
    limit: usize,
    room: usize,
}

impl Collector {
    fn new(columns: Vec<String>, limit: usize) -> Self {
        Self {
            rows: Rows {
                columns,
                rows: Vec::new(),
                truncated: false,
            },
            limit,
            room: MAX_BYTES,
        }
    }

    /// Takes a row; says whether another may follow.
    fn push(&mut self, row: Vec<Box<RawValue>>) -> Result<bool, QueryError> {
        // A comma or bracket stands on each side of a value.
        let bytes = row.iter().map(|it| it.get().len() + 1).sum::<usize>() + 2;
        if bytes > self.room {
            return self.push_oversized();
        }
        if self.rows.rows.len() == self.limit {
            self.rows.truncated = true;
            return Ok(false);
        }
        self.room -= bytes;
        self.rows.rows.push(row);
        Ok(true)
    }

    /// Takes note of a row that is too large to be taken.
    fn push_oversized(&mut self) -> Result<bool, QueryError> {
        if self.rows.rows.is_empty() {
            return Err(QueryError::RowTooLarge);
        }
        self.rows.truncated = true;
        Ok(false)
    }
}

/// Why the server can't start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The variable is missing.
    #[error("{0}: set it to `sqlite:path` or `postgres://user:password@host/name`")]
    Missing(#[from] MissingVariable),
    /// The URL is of something else.
    #[error(
        "`{URL_VARIABLE}` must begin with `sqlite:` or `postgres:`, other databases are not supported"
    )]
    UnknownDatabase,
    /// The SQLite file can't be used.
    #[error("`{URL_VARIABLE}` names the SQLite database `{path}`, which can't be read: {reason}")]
    Sqlite {
        /// The file.
        path: String,
        /// What SQLite says.
        reason: String,
    },
    /// The URL of SQLite names no file.
    #[error("`{URL_VARIABLE}` must name a file: `sqlite:path`")]
    NoFile,
    /// The PostgreSQL server can't be reached, or refused.
    #[error("could not connect to the PostgreSQL database of `{URL_VARIABLE}`")]
    Postgres(#[source] sqlx::Error),
    /// The PostgreSQL server says nothing.
    #[error("the PostgreSQL server of `{URL_VARIABLE}` did not answer")]
    NoAnswer,
    /// The thread that opens the file has gone.
    #[error("the opening thread failed")]
    Broken(#[from] tokio::task::JoinError),
}

/// Why a query gave no rows.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The database refused; in its own words.
    #[error("the database refused the query: {message}")]
    Refused {
        /// What it says.
        message: String,
    },
    /// It is more than one statement.
    #[error("`sql` holds several statements; send one per call")]
    SeveralStatements,
    /// It isn't a statement that gives rows.
    #[error(
        "`sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`"
    )]
    NotAQuery,
    /// A parameter has no type in databases.
    #[error(
        "parameter ${position} is {value}, which is beyond 64 bits; send it as text and cast it"
    )]
    NumberTooLarge {
        /// Its number, counted from 1.
        position: usize,
        /// The number.
        value: String,
    },
    /// A single row is more than a model should read.
    #[error(
        "one row has more than {MAX_BYTES} bytes; select fewer columns, or parts of them with `substr`"
    )]
    RowTooLarge,
    /// It took too long.
    #[error(
        "the query was stopped after {} s; filter more, aggregate in the database or set a lower `limit`",
        QUERY_TIME.as_secs()
    )]
    TimedOut,
    /// There is no such table.
    #[error("there is no table `{table}`; call `list_tables` to see what there is")]
    NoTable {
        /// The name that was asked for.
        table: String,
    },
    /// The database can't be asked.
    #[error("the database can't be asked at the moment: {reason}; try again in a minute")]
    Unavailable {
        /// What went wrong.
        reason: String,
    },
}
