//! The store, on each database, and the service token.

use clopen_mcp::{
    config::environment,
    secret::Secret,
    store::{
        CreateTokenError, FILE_NAME, NewToken, RevokeTokenError, ServiceToken, Store, service_token,
    },
};
use expect_test::expect;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};
use std::{
    collections::BTreeSet,
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};
use tempfile::TempDir;

/// A database that nobody else has.
pub(crate) struct Database {
    pub(crate) folder: TempDir,
    pub(crate) url: Option<Secret>,
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self {
            folder: TempDir::new().expect("the temporary folder can be written"),
            url: None,
        }
    }

    pub(crate) async fn postgres() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);

        let url = environment()
            .remove("CLOPEN_MCP_TEST_POSTGRES")
            .expect("`CLOPEN_MCP_TEST_POSTGRES` is the address of a PostgreSQL database");
        let schema = format!(
            "test_{}_{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&url).await.expect("PostgreSQL runs");
        for statement in ["DROP SCHEMA IF EXISTS {} CASCADE", "CREATE SCHEMA {}"] {
            sqlx::raw_sql(AssertSqlSafe(statement.replace("{}", &schema)))
                .execute(&mut connection)
                .await
                .expect("this user may make schemas");
        }
        let separator = if url.contains('?') { '&' } else { '?' };
        Self {
            url: Some(Secret::new(format!(
                "{url}{separator}options[search_path]={schema}"
            ))),
            ..Self::sqlite()
        }
    }

    pub(crate) async fn open(&self) -> Store {
        match self.try_open().await {
            Ok(store) => store,
            Err(error) => panic!("{error}"),
        }
    }

    async fn try_open(&self) -> Result<Store, String> {
        Store::open(self.folder.path(), self.url.as_ref())
            .await
            .map_err(|error| chain(&error))
    }

    pub(crate) async fn execute(&self, sql: &'static str) {
        let url = match &self.url {
            Some(url) => url.expose().to_owned(),
            None => format!("sqlite:{}", self.sqlite_file().display()),
        };
        let mut connection = AnyConnection::connect(&url)
            .await
            .expect("the database is there");
        sqlx::raw_sql(sql)
            .execute(&mut connection)
            .await
            .expect("the statement is right");
    }

    fn sqlite_file(&self) -> PathBuf {
        self.folder.path().join(FILE_NAME)
    }
}

pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Runs each story on every database.
macro_rules! on_each_database {
    ($($story:ident)*) => {
        mod sqlite {
            use super::Database;

            $(#[tokio::test]
            async fn $story() {
                super::$story(Database::sqlite()).await;
            })*
        }

        mod postgres {
            use super::Database;

            $(#[tokio::test]
            #[ignore = "needs PostgreSQL"]
            async fn $story() {
                super::$story(Database::postgres().await).await;
            })*
        }
    };
}

pub(crate) use on_each_database;

on_each_database! {
    a_token_is_made_found_and_revoked
    a_token_keeps_its_limits
    tokens_outlive_the_process
    names_are_used_once
    use_is_noted_to_the_minute
    a_token_is_revoked_by_id_and_only_once
    what_is_remembered_of_tokens_goes_stale
    many_processes_start_at_once
    many_tokens_are_made_at_once
    a_newer_schema_is_left_alone
}

fn named(name: &str) -> NewToken {
    NewToken {
        name: name.to_owned(),
        ..NewToken::default()
    }
}

async fn a_token_is_made_found_and_revoked(database: Database) {
    let store = database.open().await;
    let (made, text) = store.create_token(named("ci"), 1000).await.unwrap();
    assert!(text.expose().starts_with("cmcp_"));
    assert_eq!(text.expose().len(), "cmcp_".len() + 43);
    assert_eq!(store.tokens().await.unwrap().len(), 1);

    let found = store.find_token(text.expose(), 2000).await.unwrap();
    assert_eq!(found.expect("it was just made").id, made.id);
    assert_eq!(
        store.find_token("cmcp_something", 2000).await.unwrap(),
        None
    );

    let revoked = store.revoke_token("ci", 3000).await.unwrap();
    assert_eq!(revoked.revoked_at, Some(3000));
    assert_eq!(store.find_token(text.expose(), 4000).await.unwrap(), None);
    assert_eq!(store.tokens().await.unwrap(), [revoked]);
}

async fn a_token_keeps_its_limits(database: Database) {
    let store = database.open().await;
    let new = NewToken {
        name: "reader".to_owned(),
        servers: Some(BTreeSet::from([
            "weather-service".to_owned(),
            "sql".to_owned(),
        ])),
        read_only: true,
        project: Some("größe/'x'".to_owned()),
    };
    let (_, text) = store.create_token(new.clone(), 1).await.unwrap();
    let found = store.find_token(text.expose(), 2).await.unwrap().unwrap();
    assert_eq!(
        NewToken {
            name: found.name,
            servers: found.servers,
            read_only: found.read_only,
            project: found.project,
        },
        new
    );
    let nothing = NewToken {
        servers: Some(BTreeSet::new()),
        ..named("nothing")
    };
    expect!["the token `nothing` would open no server at all; name at least one, or leave the list out for all of them"]
        .assert_eq(&store.create_token(nothing, 1).await.unwrap_err().to_string());
}

async fn tokens_outlive_the_process(database: Database) {
    let store = database.open().await;
    let (_, text) = store.create_token(named("b"), 1).await.unwrap();
    store.create_token(named("B"), 1).await.unwrap();
    store.create_token(named("a"), 1).await.unwrap();
    store.close().await;

    let store = database.open().await;
    assert!(store.find_token(text.expose(), 2).await.unwrap().is_some());
    let names: Vec<_> = store
        .tokens()
        .await
        .unwrap()
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(names, ["B", "a", "b"]);
}

async fn names_are_used_once(database: Database) {
    let store = database.open().await;
    store.create_token(named("ci"), 1).await.unwrap();
    store.revoke_token("ci", 2).await.unwrap();
    let error = store.create_token(named("ci"), 3).await.unwrap_err();
    assert!(matches!(error, CreateTokenError::Taken { .. }));
    expect!["there is a token named `ci` already, or there was one: names are not used twice, so that records stay true; choose another name"]
        .assert_eq(&error.to_string());
    for name in [
        "",
        "service",
        "anonymous",
        "tok_1",
        "a b",
        "-a",
        "é",
        &"a".repeat(65),
    ] {
        let error = store.create_token(named(name), 1).await.unwrap_err();
        assert!(matches!(error, CreateTokenError::Name { .. }), "{name}");
    }
    expect![[r"`a\n` can't be the name of a token; a name has 1 to 64 letters, digits, `.`, `_` and `-`, starts with a letter or digit, and is neither `service` nor `anonymous` nor begins with `tok_`"]]
        .assert_eq(&store.create_token(named("a\n"), 1).await.unwrap_err().to_string());
}

async fn use_is_noted_to_the_minute(database: Database) {
    let store = database.open().await;
    let (_, text) = store.create_token(named("ci"), 0).await.unwrap();
    let mut noted = Vec::new();
    for now in [1_000, 2_000, 60_999, 61_000, 62_000] {
        store.find_token(text.expose(), now).await.unwrap();
        noted.extend(store.tokens().await.unwrap()[0].last_used_at);
    }
    assert_eq!(noted, [1_000, 1_000, 1_000, 61_000, 61_000]);
}

async fn a_token_is_revoked_by_id_and_only_once(database: Database) {
    let store = database.open().await;
    let (token, _) = store.create_token(named("ci"), 1).await.unwrap();
    store.create_token(named("other"), 1).await.unwrap();
    store.revoke_token(&token.id, 2).await.unwrap();
    let again = store.revoke_token("ci", 3).await.unwrap();
    assert_eq!(again.revoked_at, Some(2));
    assert_eq!(store.tokens().await.unwrap()[1].revoked_at, None);
    let error = store.revoke_token("ic", 3).await.unwrap_err();
    assert!(matches!(error, RevokeTokenError::Unknown { .. }));
    expect!["no token has the name or id `ic`; `clopen-mcp tokens list` shows them"]
        .assert_eq(&error.to_string());
}

async fn what_is_remembered_of_tokens_goes_stale(database: Database) {
    let store = database.open().await;
    let before = store.token_changes();
    store.clone().create_token(named("ci"), 1).await.unwrap();
    let made = store.token_changes();
    assert_ne!(before, made);
    store.clone().revoke_token("ci", 1).await.unwrap();
    assert_ne!(made, store.token_changes());
}

async fn many_processes_start_at_once(database: Database) {
    let (a, b, c, d) = tokio::join!(
        database.open(),
        database.open(),
        database.open(),
        database.open()
    );
    for (store, name) in [(a, "a"), (b, "b"), (c, "c"), (d, "d")] {
        store.create_token(named(name), 1).await.unwrap();
    }
    assert_eq!(database.open().await.tokens().await.unwrap().len(), 4);
}

async fn many_tokens_are_made_at_once(database: Database) {
    let store = database.open().await;
    let made = futures_util::future::join_all((0..50).map(|number| {
        let store = store.clone();
        async move { store.create_token(named(&format!("t{number}")), 1).await }
    }));
    assert!(made.await.into_iter().all(|it| it.is_ok()));
    assert_eq!(store.tokens().await.unwrap().len(), 50);
}

async fn a_newer_schema_is_left_alone(database: Database) {
    database.open().await.close().await;
    database
        .execute("INSERT INTO clopen_mcp_migrations (version, name, applied_at) VALUES (1000, 'later', 0)")
        .await;
    let error = database.try_open().await.unwrap_err();
    assert!(
        error.contains(
            "was written by a newer clopen-mcp (schema 1000, while this one knows schemas up to "
        ),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_no_database() {
    let database = Database::sqlite();
    fs::write(database.sqlite_file(), "once upon a time ".repeat(100)).unwrap();
    let error = database.try_open().await.unwrap_err();
    expect!["`DATA/clopen-mcp.sqlite` is not a SQLite database, or it is damaged; move it away for an empty one, or name another data folder with `--data`"]
        .assert_eq(&without_path(&error, database.folder.path()));
}

#[tokio::test]
async fn a_data_folder_that_is_a_file() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    fs::write(&data, "").unwrap();
    let error = Store::open(&data, None).await.unwrap_err();
    let error = chain(&error);
    let error = error.split(" (os error").next().unwrap_or_default();
    expect!["can't write to the data folder `DATA/data`; make it yours, or name another one with `--data`, `CLOPEN_MCP_DATA` or the key `data`: File exists"]
        .assert_eq(&without_path(error, folder.path()));
}

#[tokio::test]
async fn a_database_that_is_not_there() {
    let url = Secret::new("postgres://ada:hunter2@127.0.0.1:1/clopen");
    let error = Store::open(Path::new("unused"), Some(&url))
        .await
        .unwrap_err();
    expect!["can't open the database `postgres://127.0.0.1:1/clopen`"]
        .assert_eq(&error.to_string());
    assert!(!format!("{error:?} {}", chain(&error)).contains("hunter2"));
}

#[tokio::test]
async fn an_address_that_is_none() {
    let url = Secret::new("hunter2");
    let error = Store::open(Path::new("unused"), Some(&url))
        .await
        .unwrap_err();
    expect!["the database's address can't be read; it looks like `postgres://user:password@host/database`"]
        .assert_eq(&chain(&error));
}

#[tokio::test]
async fn an_odd_data_folder() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("a b/ü?#%41&mode=ro");
    let store = Store::open(&data, None).await.unwrap();
    store.create_token(named("ci"), 1).await.unwrap();
    assert!(data.join(FILE_NAME).is_file());
}

#[tokio::test]
#[cfg(unix)]
async fn the_database_is_for_its_owner_only() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let store = Store::open(&data, None).await.unwrap();
    store.create_token(named("ci"), 1).await.unwrap();
    assert_eq!(mode(&data), 0o700);
    for file in fs::read_dir(&data).unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn the_service_token_is_made_once() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("new/data");
    let made = service_token(&data).unwrap();
    assert!(made.token.expose().starts_with("cmcp_"));
    assert_eq!(made.file, data.join("token"));
    assert_eq!(made.warning, None);
    let read = service_token(&data).unwrap();
    assert!(made.token.is(read.token.expose()));
    assert_eq!(fs::read_dir(&data).unwrap().count(), 1);
    #[cfg(unix)]
    assert_eq!(mode(&made.file), 0o600);
}

#[test]
fn the_first_of_many_makes_the_service_token() {
    let folder = TempDir::new().unwrap();
    let tokens: Vec<ServiceToken> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| service_token(folder.path())))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic").expect("a token"))
            .collect()
    });
    assert!(
        tokens
            .iter()
            .all(|it| it.token.is(tokens[0].token.expose()))
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
#[cfg(unix)]
fn a_service_token_that_others_can_read() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = TempDir::new().unwrap();
    let file = service_token(folder.path()).unwrap().file;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let warning = service_token(folder.path()).unwrap().warning;
    expect!["others could read the service token in `DATA/token` (mode 0644), which is set to 0600 now; if somebody may have, delete the file and start again for a new token"]
        .assert_eq(&without_path(&warning.unwrap_or_default(), folder.path()));
    assert_eq!(mode(&file), 0o600);
    assert_eq!(service_token(folder.path()).unwrap().warning, None);
}

#[test]
fn a_service_token_that_is_none() {
    let folder = TempDir::new().unwrap();
    for content in [
        &b""[..],
        b"short\n",
        b"two words are not a token",
        &[0xff; 40],
    ] {
        fs::write(folder.path().join("token"), content).unwrap();
        let error = service_token(folder.path()).unwrap_err();
        expect!["`DATA/token` holds no token, which is one line of at least 16 visible ASCII characters; delete the file for a new token"]
            .assert_eq(&without_path(&chain(&error), folder.path()));
    }
}

#[test]
fn a_service_token_of_ones_own() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("token"), "0123456789abcdef\r\n").unwrap();
    assert!(
        service_token(folder.path())
            .unwrap()
            .token
            .is("0123456789abcdef")
    );
}

pub(crate) fn without_path(text: &str, path: &Path) -> String {
    text.replace(&path.display().to_string(), "DATA")
}

#[cfg(unix)]
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;

    fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o777
}
