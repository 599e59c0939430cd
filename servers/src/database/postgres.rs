//! PostgreSQL, which can't write here for two reasons of its own: every query runs in a read-only transaction that is
//! rolled back, and it runs as a subquery, where the grammar admits nothing but queries.
//!
//! The transaction alone would not do. It lets a superuser `COPY … TO` a file or a program, and it ends when it is
//! told to. Neither fits into a subquery, nor does a second statement into the extended protocol. Functions keep the
//! rights of the role: give the server a role that may only read.

use super::{CONNECTIONS, Collector, Parameter, QUERY_TIME, QueryError, Rows, StartError};
use futures_util::TryStreamExt as _;
use serde_json::value::RawValue;
use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, Encode, Executor as _, Postgres as Driver,
    Row as _, SqlSafeStr as _, Statement as _, Type, TypeInfo as _,
    encode::IsNull,
    error::{BoxDynError, DatabaseError},
    postgres::{
        PgArgumentBuffer, PgColumn, PgConnectOptions, PgConnection, PgDatabaseError, PgPool,
        PgPoolOptions, PgTypeInfo, types::Oid,
    },
};
use std::{fmt::Write as _, str::FromStr as _, time::Duration};
use tokio::time::timeout;

pub(super) const TABLES: &str = "SELECT
        CASE WHEN pg_table_is_visible(c.oid) THEN quote_ident(c.relname)
            ELSE format('%I.%I', n.nspname, c.relname) END,
        CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
            WHEN 'f' THEN 'foreign table' ELSE 'table' END
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
        AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
        AND has_table_privilege(c.oid, 'SELECT')
    ORDER BY 1";

pub(super) const COLUMNS: &str = "SELECT
        a.attname::text, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
        EXISTS (SELECT FROM pg_index i
            WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey))
    FROM pg_attribute a
    WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum";

const CONNECT_TIME: Duration = Duration::from_secs(10);

/// A pool of connections to one database.
#[derive(Debug)]
pub(super) struct Postgres {
    pool: PgPool,
}

impl Postgres {
    pub(super) async fn connect(url: &str) -> Result<Self, StartError> {
        let options = PgConnectOptions::from_str(url).map_err(StartError::Postgres)?;
        let options = options.application_name("clopen-mcp");
        // The pool would try a dead address until its time is over, and then no longer know why.
        let first = timeout(CONNECT_TIME, PgConnection::connect_with(&options));
        let first = first.await.map_err(|_| StartError::NoAnswer)?;
        first
            .map_err(StartError::Postgres)?
            .close()
            .await
            .map_err(StartError::Postgres)?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(CONNECT_TIME)
            // Locks and temporary tables of a query are gone before the next one gets the connection.
            .after_release(|connection, _| {
                Box::pin(async move {
                    connection.clear_cached_statements().await?;
                    connection.execute("DISCARD ALL").await?;
                    Ok(true)
                })
            })
            .connect_lazy_with(options);
        Ok(Self { pool })
    }

    pub(super) async fn query(
        &self,
        sql: &str,
        parameters: Vec<Parameter>,
        limit: usize,
    ) -> Result<Rows, QueryError> {
        let sql = sql.trim_end_matches(|it: char| it == ';' || it.is_whitespace());

        let mut transaction = self
            .pool
            .begin_with("BEGIN TRANSACTION READ ONLY")
            .await
            .map_err(|error| refused(&error))?;
        let time = QUERY_TIME.as_millis().to_string();
        sqlx::query("SELECT set_config('statement_timeout', $1, true)")
            .bind(time)
            .execute(&mut *transaction)
            .await
            .map_err(|error| refused(&error))?;

        // As it stands first, so that complaints are about what the caller wrote.
        let types: Vec<PgTypeInfo> = parameters.iter().map(Parameter::type_info).collect();
        let statement = transaction
            .prepare_with(AssertSqlSafe(sql).into_sql_str(), &types)
            .await
            .map_err(|error| refused(&error))?;
        let columns = statement.columns();
        if columns.is_empty() {
            return Err(QueryError::NotAQuery);
        }
        let names = columns.iter().map(|it| it.name().to_owned()).collect();
        let mut collected = Collector::new(names, limit);

        let mut query = sqlx::query(AssertSqlSafe(as_json(sql, columns, limit))).persistent(false);
        for parameter in parameters {
            query = query.bind(parameter);
        }
        let mut rows = query.fetch(&mut *transaction);
        while let Some(row) = rows.try_next().await.map_err(|error| not_a_query(&error))? {
            let cells: Option<Vec<Option<String>>> =
                row.try_get(0).map_err(|error| refused(&error))?;
            let more = match cells {
                Some(cells) => collected.push(cells.into_iter().map(to_json).collect())?,
                None => collected.push_oversized()?,
            };
            if !more {
                break;
            }
        }
        drop(rows);
        transaction
            .rollback()
            .await
            .map_err(|error| refused(&error))?;
        Ok(collected.rows)
    }
}

/// Wraps a query so that the database writes each value as JSON: it knows all of its types. Columns are renamed, since
/// two may have one name. A row beyond the limit tells that there are more, a row of nothing that it was too large.
fn as_json(sql: &str, columns: &[PgColumn], limit: usize) -> String {
    let mut names = String::new();
    let mut cells = String::new();
    for (index, column) in columns.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(names, "{comma}c{index}");
        let _ = match column.type_info().name() {
            "BYTEA" => write!(
                cells,
                "{comma}'{{\"base64\":\"' || translate(encode(c{index}, 'base64'), E'\\n', '') || '\"}}'"
            ),
            "VOID" => write!(cells, "{comma}NULL"),
            _ => write!(cells, "{comma}to_json(c{index})::text"),
        };
    }
    // The line breaks end a comment at the end of the query.
    format!(
        "SELECT CASE WHEN octet_length(cells::text) <= {} THEN cells END FROM (\
         SELECT ARRAY[{cells}]::text[] AS cells FROM (\n{sql}\n) AS t({names}) LIMIT {}) AS r",
        // Quotes and escapes make the array longer than the JSON that it holds.
        4 * super::MAX_BYTES,
        limit + 1,
    )
}

fn to_json(cell: Option<String>) -> Box<RawValue> {
    cell.and_then(|it| RawValue::from_string(it).ok())
        .unwrap_or_else(|| RawValue::NULL.to_owned())
}

impl Parameter {
    fn type_info(&self) -> PgTypeInfo {
        match self {
            // No type: PostgreSQL then takes the one that fits the place.
            Self::Null => PgTypeInfo::with_oid(Oid(0)),
            Self::Bool(_) => <bool as Type<Driver>>::type_info(),
            Self::Integer(_) => <i64 as Type<Driver>>::type_info(),
            Self::Real(_) => <f64 as Type<Driver>>::type_info(),
            Self::Text(_) => <String as Type<Driver>>::type_info(),
        }
    }
}

impl Type<Driver> for Parameter {
    fn type_info() -> PgTypeInfo {
        Self::Null.type_info()
    }
}

impl Encode<'_, Driver> for Parameter {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Bool(it) => Encode::<Driver>::encode_by_ref(it, buffer),
            Self::Integer(it) => Encode::<Driver>::encode_by_ref(it, buffer),
            Self::Real(it) => Encode::<Driver>::encode_by_ref(it, buffer),
            Self::Text(it) => Encode::<Driver>::encode_by_ref(it, buffer),
        }
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(self.type_info())
    }
}

// Codes of PostgreSQL, from its appendix A.
const SYNTAX_ERROR: &str = "42601";
const FEATURE_NOT_SUPPORTED: &str = "0A000";
const QUERY_CANCELED: &str = "57014";

/// Explains an error of a query that stood the test by itself: then the subquery is what it can't be.
fn not_a_query(error: &sqlx::Error) -> QueryError {
    let code = error.as_database_error().and_then(DatabaseError::code);
    match code.as_deref() {
        Some(SYNTAX_ERROR | FEATURE_NOT_SUPPORTED) => QueryError::NotAQuery,
        _ => refused(error),
    }
}

fn refused(error: &sqlx::Error) -> QueryError {
    let sqlx::Error::Database(error) = error else {
        return QueryError::Unavailable {
            reason: error.to_string(),
        };
    };
    let error = error.downcast_ref::<PgDatabaseError>();
    if error.code() == QUERY_CANCELED {
        return QueryError::TimedOut;
    }
    let mut message = error.message().to_owned();
    for (name, more) in [("detail", error.detail()), ("hint", error.hint())] {
        if let Some(more) = more {
            let _ = write!(message, "; {name}: {more}");
        }
    }
    QueryError::Refused { message }
}
