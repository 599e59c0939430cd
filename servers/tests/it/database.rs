//! The database server against real databases.

use crate::check_error;
use expect_test::expect;
use serde_json::{Value, json};
use servers::database::{Database, QueryError, Rows, URL_VARIABLE};
use tool_runtime::{Environment, Json};

async fn connect(url: &str) -> Database {
    Database::start(&Environment::new([(URL_VARIABLE, url)]))
        .await
        .unwrap()
}

async fn query(database: &Database, sql: &str, parameters: &[Value]) -> Result<Rows, QueryError> {
    let answer = database.query(sql.to_owned(), parameters.to_vec(), 100);
    answer.await.map(|Json(it)| it)
}

/// Returns the one value of a query.
async fn value(database: &Database, sql: &str, parameters: &[Value]) -> Value {
    let rows = query(database, sql, parameters).await.unwrap();
    let rows = serde_json::to_value(rows.rows).unwrap();
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
    rows[0][0].clone()
}

async fn refusal(database: &Database, sql: &str) -> String {
    let answer = query(database, sql, &[]).await;
    answer.expect_err("it must be refused").to_string()
}

/// Makes each function a test on both databases. PostgreSQL is at `CLOPEN_MCP_TEST_POSTGRES`.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {$(
            #[tokio::test]
            async fn $name() {
                let fixture = super::sqlite::Fixture::new().await;
                super::$name(&fixture.database).await;
            }
        )*}
        mod on_postgres {$(
            #[tokio::test]
            #[ignore = "needs PostgreSQL"]
            async fn $name() {
                let fixture = super::postgres::Fixture::new().await;
                super::$name(&fixture.database).await;
                fixture.remove().await;
            }
        )*}
    };
}

on_both![
    rows_and_columns,
    parameters,
    limits,
    tables,
    statements_that_change,
    one_statement_at_a_time,
    errors,
    queries_side_by_side,
];

async fn rows_and_columns(database: &Database) {
    let rows = query(
        database,
        "SELECT id, name, height, photo FROM people ORDER BY id",
        &[],
    )
    .await;
    let rows = serde_json::to_string_pretty(&rows.unwrap()).unwrap();
    expect![[r#"
        {
          "columns": [
            "id",
            "name",
            "height",
            "photo"
          ],
          "rows": [
            [
              1,
              "Ada",
              1.65,
              {"base64":"AP8="}
            ],
            [
              9007199254740993,
              "Grace",
              null,
              null
            ]
          ],
          "truncated": false
        }"#]]
    .assert_eq(&rows);

    // Names may be double and rows none; a comment or semicolon at the end does no harm.
    let rows = query(database, "SELECT 1 AS a, 'x' AS a WHERE 1 = 0; ", &[])
        .await
        .unwrap();
    assert_eq!(rows.columns, ["a", "a"]);
    assert!(rows.rows.is_empty() && !rows.truncated);
    let rows = query(database, "SELECT 1 AS a, 'x' AS a -- twice", &[])
        .await
        .unwrap();
    assert_eq!(serde_json::to_value(rows.rows).unwrap(), json!([[1, "x"]]));
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n";
    assert_eq!(value(database, sql, &[]).await, json!(15));
    let rows = query(database, "VALUES (1, 'a'), (2, 'b')", &[])
        .await
        .unwrap();
    assert_eq!(
        serde_json::to_value(rows.rows).unwrap(),
        json!([[1, "a"], [2, "b"]])
    );
}

async fn parameters(database: &Database) {
    let sql = "SELECT name FROM people WHERE id = $1";
    assert_eq!(
        value(database, sql, &[json!(9_007_199_254_740_993_i64)]).await,
        "Grace"
    );
    // The same statement with a value of another type.
    let sql = "SELECT count(*) FROM people WHERE height > $1 OR $1 IS NULL";
    assert_eq!(value(database, sql, &[json!(1.5)]).await, 1);
    assert_eq!(value(database, sql, &[Value::Null]).await, 2);
    assert_eq!(value(database, sql, &[json!(2)]).await, 0);

    let sql = "SELECT count(*) FROM people WHERE name = $1";
    let injection = json!("Ada' OR '1' = '1");
    assert_eq!(value(database, sql, &[injection]).await, 0);

    let echo = "SELECT CAST($1 AS TEXT)";
    assert_eq!(
        value(database, echo, &[json!({"a": [1, null]})]).await,
        r#"{"a":[1,null]}"#
    );
    assert_eq!(value(database, echo, &[Value::Null]).await, Value::Null);
    for number in [i64::MIN, i64::MAX, 9_007_199_254_740_993] {
        let echo = "SELECT CAST($1 AS BIGINT)";
        assert_eq!(value(database, echo, &[json!(number)]).await, json!(number));
    }
    let error = query(database, echo, &[json!(u64::MAX)]).await.unwrap_err();
    check_error(
        error,
        &expect![
            "parameter $1 is 18446744073709551615, which is beyond 64 bits; send it as text and cast it"
        ],
    );
    let error = query(database, "SELECT name FROM people WHERE id = $1", &[]).await;
    assert!(
        matches!(error, Err(QueryError::Refused { .. })),
        "{error:?}"
    );
}

async fn limits(database: &Database) {
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT i FROM n";
    for (limit, rows, truncated) in [
        (49, 49, true),
        (50, 50, false),
        (51, 50, false),
        (1, 1, true),
    ] {
        let answer = database
            .query(numbers.to_owned(), vec![], limit)
            .await
            .unwrap()
            .0;
        assert_eq!(
            (answer.rows.len(), answer.truncated),
            (rows, truncated),
            "limit {limit}"
        );
    }
    // What never ends is still cut.
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let answer = database
        .query(endless.to_owned(), vec![], 10)
        .await
        .unwrap()
        .0;
    assert_eq!((answer.rows.len(), answer.truncated), (10, true));

    let long = "WITH RECURSIVE n(i, t) AS (SELECT 1, $1 UNION ALL SELECT i + 1, t FROM n WHERE i < 50) SELECT t FROM n";
    let answer = query(database, long, &[json!("\"".repeat(10_000))])
        .await
        .unwrap();
    assert!(answer.truncated);
    // Each quote takes two bytes in JSON.
    assert_eq!(answer.rows.len(), 9);
    assert!(serde_json::to_string(&answer).unwrap().len() < 201_000);

    let error = query(database, "SELECT $1", &[json!("x".repeat(200_000))]).await;
    check_error(
        error.unwrap_err(),
        &expect![
            "one row has more than 200000 bytes; select fewer columns, or parts of them with `substr`"
        ],
    );
    let error = query(database, "SELECT $1", &[json!("\n".repeat(1_000_000))]).await;
    assert!(matches!(error, Err(QueryError::RowTooLarge)), "{error:?}");
}

async fn tables(database: &Database) {
    let tables = database.list_tables().await.unwrap().0;
    // PostgreSQL lists the tables of other schemas, too, by a longer name.
    let tables: Vec<_> = tables
        .tables
        .iter()
        .map(|it| (it.name.as_str(), it.kind.as_str()))
        .filter(|(name, _)| !name.contains('.'))
        .collect();
    assert_eq!(tables, [("names", "view"), ("people", "table")]);
    let columns = database.describe_table("people".into()).await.unwrap().0;
    let names: Vec<_> = columns.columns.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["id", "name", "height", "photo"]);
    let facts: Vec<_> = columns
        .columns
        .iter()
        .map(|it| (it.nullable, it.primary_key))
        .collect();
    assert_eq!(
        facts,
        [(false, true), (false, false), (true, false), (true, false)]
    );
    assert!(
        columns.columns[2]
            .data_type
            .eq_ignore_ascii_case("double precision")
    );
    assert_eq!(
        database
            .describe_table("names".into())
            .await
            .unwrap()
            .0
            .columns
            .len(),
        1
    );

    let error = database.describe_table("missing".into()).await;
    check_error(
        error.unwrap_err(),
        &expect!["there is no table `missing`; call `list_tables` to see what there is"],
    );
}

async fn statements_that_change(database: &Database) {
    for sql in [
        "INSERT INTO people (id, name) VALUES (3, 'Eve')",
        "INSERT INTO people (id, name) VALUES (3, 'Eve') RETURNING id",
        "WITH eve AS (SELECT 3 AS id) INSERT INTO people (id, name) SELECT id, 'Eve' FROM eve RETURNING id",
        "UPDATE people SET name = 'Eve'",
        "DELETE FROM people",
        "DELETE FROM people RETURNING id",
        "DROP TABLE people",
        "CREATE TABLE eve (id BIGINT)",
        "CREATE TEMPORARY TABLE eve (id BIGINT)",
        "CREATE TEMPORARY TABLE eve AS SELECT 1 AS id",
        "CREATE INDEX eve ON people (name)",
        "ALTER TABLE people ADD COLUMN eve TEXT",
        "REINDEX TABLE people",
        "VACUUM",
        "ANALYZE",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT eve",
        "",
        " -- nothing",
    ] {
        let error = query(database, sql, &[]).await.expect_err(sql);
        assert!(
            !matches!(error, QueryError::Unavailable { .. }),
            "{sql}: {error}"
        );
        assert_eq!(
            value(database, "SELECT count(*) FROM people", &[]).await,
            2,
            "{sql}"
        );
    }
    assert_eq!(
        value(database, "SELECT name FROM people WHERE id = 1", &[]).await,
        "Ada"
    );
}

async fn one_statement_at_a_time(database: &Database) {
    for sql in [
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE people",
        "COMMIT; DROP TABLE people",
        "ROLLBACK; DELETE FROM people; SELECT 1",
        // Out of a subquery, and out of what a naive reading takes for a text.
        "SELECT 1) AS t(c0)) AS r; DROP TABLE people; --",
        "SELECT 1) AS t(c0) LIMIT 1) AS r; DELETE FROM people; SELECT * FROM (SELECT * FROM (SELECT 1",
        "SELECT $a('); DELETE FROM people; --')",
        "SELECT /* ; */ 1 ; DELETE FROM people /* ; */",
    ] {
        query(database, sql, &[]).await.expect_err(sql);
        assert_eq!(
            value(database, "SELECT count(*) FROM people", &[]).await,
            2,
            "{sql}"
        );
    }
    assert_eq!(value(database, "SELECT ';' /* ; */", &[]).await, ";");
}

async fn errors(database: &Database) {
    for (sql, words) in [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM missing", "missing"),
        ("SELECT missing FROM people", "missing"),
    ] {
        let error = refusal(database, sql).await;
        assert!(
            error.starts_with("the database refused the query: "),
            "{error}"
        );
        assert!(error.contains(words), "{error}");
    }
    // And the connection is as good as before.
    assert_eq!(value(database, "SELECT 1", &[]).await, 1);
}

async fn queries_side_by_side(database: &Database) {
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT sum(i) FROM n";
    let all = futures_util::future::join_all((0..20).map(|_| value(database, sql, &[]))).await;
    assert!(all.iter().all(|it| *it == 500_500));
}

#[tokio::test]
async fn bad_settings() {
    let start = async |url: &str| {
        let environment = Environment::new([(URL_VARIABLE, url)]);
        Database::start(&environment).await.unwrap_err()
    };
    check_error(
        Database::start(&Environment::default()).await.unwrap_err(),
        &expect![
            "the environment variable `DATABASE_URL` is not set: set it to `sqlite:path` or `postgres://user:password@host/name`"
        ],
    );
    check_error(
        start("mysql://localhost/x").await,
        &expect![
            "`DATABASE_URL` must begin with `sqlite:` or `postgres:`, other databases are not supported"
        ],
    );
    check_error(
        start("app.db").await,
        &expect![
            "`DATABASE_URL` must begin with `sqlite:` or `postgres:`, other databases are not supported"
        ],
    );
    check_error(
        start("sqlite::memory:").await,
        &expect!["`DATABASE_URL` must name a file: `sqlite:path`"],
    );
    check_error(
        start("sqlite:/missing/app.db").await,
        &expect![
            "`DATABASE_URL` names the SQLite database `/missing/app.db`, which can't be read: unable to open database file: /missing/app.db"
        ],
    );
    check_error(
        start("sqlite:Cargo.toml").await,
        &expect![
            "`DATABASE_URL` names the SQLite database `Cargo.toml`, which can't be read: file is not a database"
        ],
    );
    let url = crate::loopback::nobody()
        .await
        .replace("http", "postgres://u:secret@");
    let error = start(&url.replace("@://", "@")).await;
    let text = tool_runtime::ToolError::from(error).to_string();
    assert!(!text.contains("secret"), "{text}");
    assert!(
        text.starts_with("could not connect to the PostgreSQL database of `DATABASE_URL`: "),
        "{text}"
    );
}

mod sqlite {
    use super::{connect, query, refusal, value};
    use expect_test::expect;
    use rusqlite::Connection;
    use serde_json::json;
    use servers::database::{Database, QueryError};
    use std::{fmt::Write as _, fs, sync::Arc};
    use tempfile::TempDir;

    pub(super) struct Fixture {
        pub(super) database: Database,
        pub(super) folder: TempDir,
    }

    impl Fixture {
        pub(super) async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            Connection::open(&path)
                .unwrap()
                .execute_batch(
                    "CREATE TABLE people (id BIGINT PRIMARY KEY NOT NULL, name TEXT NOT NULL,
                        height DOUBLE PRECISION, photo BLOB);
                    INSERT INTO people VALUES
                        (1, 'Ada', 1.65, X'00ff'), (9007199254740993, 'Grace', NULL, NULL);
                    CREATE VIEW names AS SELECT name FROM people;",
                )
                .unwrap();
            let database = connect(&format!("sqlite:{}", path.display())).await;
            Self { database, folder }
        }

        fn writer(&self) -> Connection {
            Connection::open(self.folder.path().join("app.db")).unwrap()
        }
    }

    #[tokio::test]
    async fn no_way_to_other_files() {
        let fixture = Fixture::new().await;
        let database = &fixture.database;
        let other = fixture.folder.path().join("other.db");
        Connection::open(&other)
            .unwrap()
            .execute_batch("CREATE TABLE secrets (it TEXT)")
            .unwrap();
        let new = fixture.folder.path().join("new.db");
        let (other, new) = (other.display(), new.display());
        let mut said = String::new();
        for sql in [
            format!("ATTACH '{other}' AS other"),
            format!("ATTACH '{new}' AS new"),
            format!("ATTACH 'file:{new}?mode=rwc' AS new"),
            format!("VACUUM INTO '{new}'"),
            format!("SELECT 1; ATTACH '{new}' AS new"),
            "PRAGMA query_only = OFF".to_owned(),
            "PRAGMA query_only = OFF; DELETE FROM people".to_owned(),
            "PRAGMA writable_schema = ON".to_owned(),
            "PRAGMA journal_mode = WAL".to_owned(),
            "PRAGMA temp_store_directory = '/tmp'".to_owned(),
            "PRAGMA hard_heap_limit = 1".to_owned(),
            "SELECT * FROM pragma_database_list".to_owned(),
            "SELECT load_extension('evil')".to_owned(),
            "SELECT writefile('evil', 'x')".to_owned(),
            "EXPLAIN ATTACH 'x' AS y".to_owned(),
        ] {
            let error = refusal(database, &sql).await;
            writeln!(said, "{sql}\n    {error}").unwrap();
        }
        let said = said.replace(&fixture.folder.path().display().to_string(), "TEMP");
        expect![[r#"
            ATTACH 'TEMP/other.db' AS other
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            ATTACH 'TEMP/new.db' AS new
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            ATTACH 'file:TEMP/new.db?mode=rwc' AS new
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            VACUUM INTO 'TEMP/new.db'
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            SELECT 1; ATTACH 'TEMP/new.db' AS new
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            PRAGMA query_only = OFF
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            PRAGMA query_only = OFF; DELETE FROM people
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            PRAGMA writable_schema = ON
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            PRAGMA journal_mode = WAL
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            PRAGMA temp_store_directory = '/tmp'
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            PRAGMA hard_heap_limit = 1
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            SELECT * FROM pragma_database_list
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            SELECT load_extension('evil')
                the database refused the query: not authorized to use function: load_extension (at byte 7 of `sql`)
            SELECT writefile('evil', 'x')
                the database refused the query: no such function: writefile (at byte 7 of `sql`)
            EXPLAIN ATTACH 'x' AS y
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
        "#]].assert_eq(&said);

        let mut files: Vec<_> = fs::read_dir(fixture.folder.path())
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files, ["app.db", "other.db"]);
    }

    #[tokio::test]
    async fn errors_in_the_words_of_the_database() {
        let fixture = Fixture::new().await;
        let database = &fixture.database;
        expect!["the database refused the query: no such column: nme (at byte 7 of `sql`)"]
            .assert_eq(&refusal(database, "SELECT nme FROM people").await);
        expect![[
            r#"the database refused the query: near "SELEC": syntax error (at byte 0 of `sql`)"#
        ]]
        .assert_eq(&refusal(database, "SELEC 1").await);
        expect!["the database refused the query: Wrong number of parameters passed to query. Got 0, needed 1"].assert_eq(&refusal(database, "SELECT $1").await);
        expect!["the database refused the query: attempt to write a readonly database"]
            .assert_eq(&refusal(database, "DELETE FROM people").await);
        expect!["`sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`"].assert_eq(&refusal(database, "DROP TABLE people").await);
        expect!["`sql` holds several statements; send one per call"]
            .assert_eq(&refusal(database, "SELECT 1; SELECT 2").await);
        expect!["the database refused the query: string or blob too big"]
            .assert_eq(&refusal(database, "SELECT zeroblob(100000000)").await);
    }

    #[tokio::test]
    async fn values_of_all_kinds() {
        let fixture = Fixture::new().await;
        let sql = "SELECT NULL, 1, 2.5, 'text', x'00', 1e999, CAST(x'ff' AS TEXT), true";
        let rows = query(&fixture.database, sql, &[]).await.unwrap().rows;
        expect![[r#"[[null,1,2.5,"text",{"base64":"AA=="},"inf","�",1]]"#]]
            .assert_eq(&serde_json::to_string(&rows).unwrap());
        for sql in [
            "PRAGMA table_info(people)",
            "SELECT name FROM pragma_table_info('people')",
            "EXPLAIN QUERY PLAN SELECT * FROM people",
        ] {
            assert!(
                !query(&fixture.database, sql, &[])
                    .await
                    .unwrap()
                    .rows
                    .is_empty(),
                "{sql}"
            );
        }
        let kinds = "SELECT group_concat(typeof(value)) FROM json_each($1)";
        let value = value(&fixture.database, kinds, &[json!([1, "a", null, 1.5])]).await;
        assert_eq!(value, "integer,text,null,real");
    }

    #[tokio::test]
    async fn search_and_space_tables_can_be_read() {
        let fixture = Fixture::new().await;
        fixture
            .writer()
            .execute_batch(
                "CREATE VIRTUAL TABLE notes USING fts5(text);
                INSERT INTO notes VALUES ('a quick fox'), ('a lazy dog');
                CREATE VIRTUAL TABLE places USING rtree(id, west, east);
                INSERT INTO places VALUES (7, 1.0, 2.0);",
            )
            .unwrap();
        let database = &fixture.database;
        let search = "SELECT text FROM notes WHERE notes MATCH $1";
        assert_eq!(
            value(database, search, &["fox".into()]).await,
            "a quick fox"
        );
        assert_eq!(
            value(database, "SELECT id FROM places WHERE west < 1.5", &[]).await,
            7
        );
        for sql in [
            "INSERT INTO notes VALUES ('x')",
            "INSERT INTO notes (notes) VALUES ('rebuild')",
            "INSERT INTO places VALUES (8, 1.0, 2.0)",
        ] {
            refusal(database, sql).await;
        }
    }

    #[tokio::test]
    async fn others_may_write_meanwhile() {
        for mode in ["DELETE", "WAL"] {
            let fixture = Fixture::new().await;
            let count = async || value(&fixture.database, "SELECT count(*) FROM people", &[]).await;
            let writer = fixture.writer();
            writer.pragma_update(None, "journal_mode", mode).unwrap();
            for written in 3..6 {
                writer
                    .execute(
                        "INSERT INTO people (id, name) VALUES ($1, 'new')",
                        [written],
                    )
                    .unwrap();
                assert_eq!(count().await, written, "{mode}");
            }
        }
    }

    const ENDLESS: &str =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

    #[tokio::test]
    async fn endless_queries_are_stopped() {
        let fixture = Fixture::new().await;
        let database = Arc::new(fixture.database);
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let database = Arc::clone(&database);
            calls.spawn(async move { query(&database, ENDLESS, &[]).await });
        }
        tokio::task::yield_now().await;
        tokio::time::pause();
        tokio::time::advance(std::time::Duration::from_secs(11)).await;
        for answer in calls.join_all().await {
            assert!(matches!(answer, Err(QueryError::TimedOut)), "{answer:?}");
        }
        tokio::time::resume();
        // All connections are free again, which they would not be if one still ran.
        super::queries_side_by_side(&database).await;
    }

    #[tokio::test]
    async fn queries_end_with_their_caller() {
        let fixture = Fixture::new().await;
        let database = Arc::new(fixture.database);
        for _ in 0..8 {
            let call = tokio::spawn({
                let database = Arc::clone(&database);
                async move { query(&database, ENDLESS, &[]).await }
            });
            tokio::task::yield_now().await;
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
        }
        super::queries_side_by_side(&database).await;
    }
}

mod postgres {
    use super::{connect, query, refusal, value};
    use expect_test::expect;
    use serde_json::json;
    use servers::database::{Database, QueryError};
    use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
    use std::{
        fmt::Write as _,
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    /// A schema of its own, so that tests can run side by side.
    pub(super) struct Fixture {
        pub(super) database: Database,
        schema: String,
        writer: PgConnection,
    }

    impl Fixture {
        pub(super) async fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            #[expect(
                clippy::disallowed_methods,
                reason = "a test has no other way to be told"
            )]
            let url = std::env::var("CLOPEN_MCP_TEST_POSTGRES")
                .expect("`CLOPEN_MCP_TEST_POSTGRES` names a PostgreSQL database to test with");
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let schema = format!("servers_{}_{number}", std::process::id());
            let mut writer = PgConnection::connect(&url).await.unwrap();
            let setup = format!(
                "DROP SCHEMA IF EXISTS {schema} CASCADE;
                CREATE SCHEMA {schema};
                SET search_path = {schema};
                CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT NOT NULL,
                    height DOUBLE PRECISION, photo BYTEA);
                INSERT INTO people VALUES
                    (1, 'Ada', 1.65, '\\x00ff'), (9007199254740993, 'Grace', NULL, NULL);
                CREATE VIEW names AS SELECT name FROM people;
                CREATE SEQUENCE numbers;"
            );
            writer.execute(AssertSqlSafe(setup)).await.unwrap();
            let separator = if url.contains('?') { '&' } else { '?' };
            let url = format!("{url}{separator}options=-csearch_path%3D{schema}");
            let database = connect(&url).await;
            Self {
                database,
                schema,
                writer,
            }
        }

        pub(super) async fn remove(mut self) {
            let sql = format!("DROP SCHEMA {} CASCADE", self.schema);
            self.writer.execute(AssertSqlSafe(sql)).await.unwrap();
        }
    }

    #[tokio::test]
    #[ignore = "needs PostgreSQL"]
    async fn only_queries() {
        let fixture = Fixture::new().await;
        let mut said = String::new();
        for sql in [
            "COPY (SELECT 1) TO '/tmp/evil'",
            "COPY (SELECT 1) TO PROGRAM 'touch /tmp/evil'",
            "DO $$ BEGIN DELETE FROM people; END $$",
            "SET TRANSACTION READ WRITE",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
            "SET search_path = pg_catalog",
            "LISTEN evil",
            "SHOW ALL",
            "EXPLAIN ANALYZE DELETE FROM people",
            "WITH gone AS (DELETE FROM people RETURNING id) SELECT * FROM gone",
            "SELECT * INTO evil FROM people",
            "SELECT set_config('transaction_read_only', 'off', false)",
            "SELECT nextval('numbers')",
            "SELECT * FROM people FOR UPDATE",
        ] {
            match query(&fixture.database, sql, &[]).await {
                Ok(rows) => writeln!(said, "{sql}\n    {:?}", rows.rows).unwrap(),
                Err(error) => writeln!(said, "{sql}\n    {error}").unwrap(),
            }
        }
        expect![[r#"
            COPY (SELECT 1) TO '/tmp/evil'
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            COPY (SELECT 1) TO PROGRAM 'touch /tmp/evil'
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            DO $$ BEGIN DELETE FROM people; END $$
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            SET TRANSACTION READ WRITE
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            SET search_path = pg_catalog
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            LISTEN evil
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            SHOW ALL
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            EXPLAIN ANALYZE DELETE FROM people
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            WITH gone AS (DELETE FROM people RETURNING id) SELECT * FROM gone
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            SELECT * INTO evil FROM people
                `sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`
            SELECT set_config('transaction_read_only', 'off', false)
                the database refused the query: transaction read-write mode must be set before any query
            SELECT nextval('numbers')
                the database refused the query: cannot execute nextval() in a read-only transaction
            SELECT * FROM people FOR UPDATE
                the database refused the query: cannot execute SELECT FOR UPDATE in a read-only transaction
        "#]].assert_eq(&said);
        fixture.remove().await;
    }

    #[tokio::test]
    #[ignore = "needs PostgreSQL"]
    async fn nothing_stays_in_the_session() {
        let fixture = Fixture::new().await;
        let database = &fixture.database;
        // Through each connection of the pool.
        for _ in 0..8 {
            value(
                database,
                "SELECT set_config('search_path', 'pg_catalog', false)",
                &[],
            )
            .await;
            value(database, "SELECT pg_advisory_lock(1)", &[]).await;
            assert_eq!(value(database, "SELECT count(*) FROM people", &[]).await, 2);
        }
        let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 1";
        value(database, "SELECT pg_advisory_lock(1)", &[]).await;
        // A connection is made new beside whatever comes next.
        let released = async {
            while value(database, locks, &[]).await != 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(20), released).await;
        in_time.expect("the lock is released");
        fixture.remove().await;
    }

    #[tokio::test]
    #[ignore = "needs PostgreSQL"]
    async fn values_of_all_kinds() {
        let fixture = Fixture::new().await;
        let database = &fixture.database;
        let sql = "SELECT 12345678901234567890.123456789::numeric, 'NaN'::float8, 1.5::real, true,
            '2026-07-28 12:00:00'::timestamp, '2026-07-28 12:00:00Z'::timestamptz AT TIME ZONE 'UTC',
            '2026-07-28'::date, '1 day'::interval, '6e8bc430-9c3a-11d9-9669-0800200c9a66'::uuid,
            '{\"a\":  1}'::json, '{\"a\":  1}'::jsonb, ARRAY[1, 2], ROW(1, 'x'), '10.0.0.1'::inet,
            int4range(1, 5), 'people'::regclass, ''::bytea, NULL::int";
        let rows = query(database, sql, &[]).await.unwrap().rows;
        expect![[r#"[[12345678901234567890.123456789,"NaN",1.5,true,"2026-07-28T12:00:00","2026-07-28T12:00:00","2026-07-28","1 day","6e8bc430-9c3a-11d9-9669-0800200c9a66",{"a":  1},{"a": 1},[1,2],{"f1":1,"f2":"x"},"10.0.0.1","[1,5)","people",{"base64":""},null]]"#]].assert_eq(&serde_json::to_string(&rows).unwrap());

        let cast = "SELECT $1::uuid, $2::date + 1, $3::jsonb -> 'a', $4::int[]";
        let values = [
            "6e8bc430-9c3a-11d9-9669-0800200c9a66".into(),
            "2026-07-28".into(),
            json!({"a": 1}),
            "{1,2}".into(),
        ];
        let rows = query(database, cast, &values).await.unwrap().rows;
        expect![[r#"[["6e8bc430-9c3a-11d9-9669-0800200c9a66","2026-07-29",1,[1,2]]]"#]]
            .assert_eq(&serde_json::to_string(&rows).unwrap());
        fixture.remove().await;
    }

    #[tokio::test]
    #[ignore = "needs PostgreSQL"]
    async fn wide_tables() {
        let fixture = Fixture::new().await;
        let columns: Vec<String> = (0..300).map(|it| it.to_string()).collect();
        let sql = format!("SELECT {}", columns.join(", "));
        let rows = query(&fixture.database, &sql, &[]).await.unwrap();
        assert_eq!(rows.rows[0][299].get(), "299");
        fixture.remove().await;
    }

    #[tokio::test]
    #[ignore = "needs PostgreSQL"]
    async fn errors_in_the_words_of_the_database() {
        let fixture = Fixture::new().await;
        let database = &fixture.database;
        expect![[r#"the database refused the query: column "nme" does not exist; hint: Perhaps you meant to reference the column "people.name"."#]].assert_eq(&refusal(database, "SELECT nme FROM people").await);
        expect![[r#"the database refused the query: syntax error at or near "SELEC""#]]
            .assert_eq(&refusal(database, "SELEC 1").await);
        expect!["the database refused the query: division by zero"]
            .assert_eq(&refusal(database, "SELECT 1/0").await);
        expect!["`sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`"].assert_eq(&refusal(database, "DELETE FROM people").await);
        expect!["`sql` is no query: this connection is read-only and runs only what returns rows, like `SELECT`, `WITH` or `VALUES`"]
            .assert_eq(&refusal(database, "DELETE FROM people RETURNING id").await);
        expect!["the database refused the query: cannot insert multiple commands into a prepared statement"].assert_eq(&refusal(database, "SELECT 1; SELECT 2").await);
        fixture.remove().await;
    }

    #[tokio::test]
    #[ignore = "needs PostgreSQL"]
    async fn long_queries_are_stopped() {
        let fixture = Fixture::new().await;
        let answer = query(&fixture.database, "SELECT pg_sleep(60)", &[]).await;
        assert!(matches!(answer, Err(QueryError::TimedOut)), "{answer:?}");
        fixture.remove().await;
    }
}
