//! All that the store holds: exported, imported, backed up and reset; and the commands that do so.

use crate::{
    client::binary,
    store::{Database, chain, on_each_database, without_path},
};
use clopen_mcp::store::{
    Approval, BackupError, CredentialKey, ExternalServer, FILE_NAME, ImportError, MirroredServer,
    NewTask, NewToken, Sighting, Store, StoredSession,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use sqlx::{Connection as _, Row as _};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};
use tempfile::TempDir;

on_each_database! {
    an_export_is_imported_on_sqlite
    an_export_of_sqlite_is_imported
    only_an_empty_database_takes_an_import
    an_import_replaces_all
    a_bad_import_changes_nothing
    a_reset_keeps_tokens_and_keys
    a_reset_of_all_keeps_nothing
    texts_that_sort_differently
}

/// Puts something into every table; returns the text of the token.
async fn fill(store: &Store) -> String {
    let token = NewToken {
        name: "ci".to_owned(),
        servers: Some(BTreeSet::from(["lab".to_owned()])),
        read_only: true,
        project: Some("größe/'x'".to_owned()),
    };
    let (_, text) = store.create_token(token, 1).await.unwrap();
    store.key("seal").await.unwrap();
    let server = MirroredServer {
        name: "lab".to_owned(),
        version: "1.0.0".to_owned(),
        description: "Two\nlines.".to_owned(),
        tools: vec!["wait".to_owned()],
    };
    store.mirror_servers(&[server], 2).await.unwrap();
    store.set_switch("lab", None, true).await.unwrap();
    store.set_switch("lab", Some("wait"), false).await.unwrap();
    let session = StoredSession {
        id: "s".to_owned(),
        principal: "ci".to_owned(),
        version: "2025-11-25".to_owned(),
        client_info: "{}".to_owned(),
        capabilities: "{}".to_owned(),
        level: Some("info".to_owned()),
        subscriptions: BTreeSet::from(["a://\u{1F980}".to_owned()]),
        created_at: 3,
        last_seen_at: i64::MAX,
    };
    store.save_session(&session).await.unwrap();
    let external = ExternalServer {
        name: "notes".to_owned(),
        source: "by hand".to_owned(),
        sealed: "größe \'x\'".to_owned(),
        listed: Some("[]".to_owned()),
        listed_at: Some(8),
        added_at: 7,
    };
    store.save_external_server(&external).await.unwrap();
    let approval = Approval {
        server: "notes".to_owned(),
        added_at: 7,
        tools: BTreeMap::from([("a".to_owned(), "{}".to_owned())]),
        approved_at: 9,
    };
    store.save_approval(&approval).await.unwrap();
    let key = CredentialKey {
        server: "notes".to_owned(),
        subject: String::new(),
        account: "default".to_owned(),
    };
    let (issuer, sealed) = ("https://a.example", "größe \'x\'");
    store
        .save_credential(&key, sealed, Some(9), 8)
        .await
        .unwrap();
    store
        .save_oauth_client(issuer, "http://127.0.0.1:1/", sealed, 8)
        .await
        .unwrap();
    let sighting = Sighting {
        engine: "codex".to_owned(),
        seen_at: 6,
        ..Sighting::default()
    };
    store.note_sighting(&sighting).await.unwrap();
    let task = NewTask {
        principal: "ci".to_owned(),
        tool: "mcp__lab__wait".to_owned(),
        arguments: "{}".to_owned(),
        caller: "{}".to_owned(),
        idempotent: false,
        ttl_ms: None,
        poll_interval_ms: Some(1),
        owner: "bridge-1".to_owned(),
        lease_until: 5,
    };
    store.create_task(task, 4).await.unwrap();
    text.expose().to_owned()
}

async fn export(store: &Store) -> String {
    let mut written = Vec::new();
    store.export(&mut written).await.unwrap();
    String::from_utf8(written).expect("it is JSON")
}

async fn import(store: &Store, document: &str, replace: bool) -> Result<(), ImportError> {
    let imported = store.import(&mut document.as_bytes(), replace).await;
    imported.map(drop)
}

/// The tables that have rows.
async fn filled(store: &Store) -> Vec<String> {
    let document: Value = serde_json::from_str(&export(store).await).unwrap();
    let tables = document["tables"].as_object().unwrap().iter();
    tables
        .filter(|(_, rows)| !rows.as_array().unwrap().is_empty())
        .map(|(name, _)| name.clone())
        .collect()
}

async fn moves(from: &Store, to: &Store) {
    let token = fill(from).await;
    let document = export(from).await;
    let imported = to.import(&mut document.as_bytes(), false).await.unwrap();
    assert_eq!(imported["switches"], 2);
    assert_eq!(export(to).await, document);
    let key = from.key("seal").await.unwrap();
    assert_eq!(to.key("seal").await.unwrap().expose(), key.expose());
    assert!(to.find_token(&token, 10).await.unwrap().is_some());
}

async fn an_export_is_imported_on_sqlite(database: Database) {
    let target = Database::sqlite();
    moves(&database.open().await, &target.open().await).await;
}

async fn an_export_of_sqlite_is_imported(database: Database) {
    let source = Database::sqlite();
    moves(&source.open().await, &database.open().await).await;
}

async fn only_an_empty_database_takes_an_import(database: Database) {
    let store = database.open().await;
    fill(&store).await;
    let document = export(&store).await;
    let error = import(&store, &document, false).await.unwrap_err();
    expect!["the database isn't empty: it has 1 rows in `tokens`, for one; import into an empty database, or add `--replace` to put the export in place of all that is there"]
        .assert_eq(&error.to_string());
    assert_eq!(export(&store).await, document);
}

async fn an_import_replaces_all(database: Database) {
    let store = database.open().await;
    let empty = export(&store).await;
    let token = fill(&store).await;
    let full = export(&store).await;
    let known = store.token_changes();
    import(&store, &empty, true).await.unwrap();
    assert_ne!(store.token_changes(), known);
    assert!(filled(&store).await.is_empty());
    assert!(store.find_token(&token, 10).await.unwrap().is_none());
    import(&store, &full, true).await.unwrap();
    import(&store, &full, true).await.unwrap();
    assert_eq!(export(&store).await, full);
}

async fn a_bad_import_changes_nothing(database: Database) {
    let store = database.open().await;
    fill(&store).await;
    let document = export(&store).await;
    // The second row with one key fails only in the database, when the tables are empty already.
    let mut twice: Value = serde_json::from_str(&document).unwrap();
    let tokens = twice["tables"]["tokens"].as_array_mut().unwrap();
    tokens.push(tokens[0].clone());
    let error = import(&store, &twice.to_string(), true).await.unwrap_err();
    assert!(matches!(error, ImportError::Database(_)), "{error:?}");
    assert_eq!(export(&store).await, document);
}

async fn a_reset_keeps_tokens_and_keys(database: Database) {
    let store = database.open().await;
    let token = fill(&store).await;
    store.reset(false).await.unwrap();
    assert_eq!(filled(&store).await, ["keys", "tokens"]);
    assert!(store.find_token(&token, 10).await.unwrap().is_some());
}

async fn a_reset_of_all_keeps_nothing(database: Database) {
    let store = database.open().await;
    fill(&store).await;
    let known = store.token_changes();
    store.reset(true).await.unwrap();
    assert_ne!(store.token_changes(), known);
    assert!(filled(&store).await.is_empty());
    fill(&store).await;
}

async fn texts_that_sort_differently(database: Database) {
    let store = database.open().await;
    for name in ["b", "B", "a-b", "ab", "ä"] {
        store.set_switch(name, None, true).await.unwrap();
    }
    let document: Value = serde_json::from_str(&export(&store).await).unwrap();
    let rows = document["tables"]["switches"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().filter_map(|it| it["server"].as_str()).collect();
    assert_eq!(names, ["B", "a-b", "ab", "b", "ä"]);
}

/// Whoever adds a table or a column has to export it, unless it can be fetched again.
#[tokio::test]
async fn an_export_holds_every_column() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path(), None).await.unwrap();
    fill(&store).await;
    let document: Value = serde_json::from_str(&export(&store).await).unwrap();
    let mut exported = BTreeSet::new();
    for (table, rows) in document["tables"].as_object().unwrap() {
        let row = rows[0].as_object();
        let row = row.unwrap_or_else(|| panic!("`fill` puts nothing into `{table}`"));
        exported.extend(row.keys().map(|column| format!("{table}.{column}")));
    }
    let url = format!("sqlite:{}", folder.path().join(FILE_NAME).display());
    let mut connection = sqlx::AnyConnection::connect(&url).await.unwrap();
    let rows = sqlx::query(
        "SELECT m.name || '.' || c.name AS name FROM sqlite_master m, pragma_table_info(m.name) c
         WHERE m.type = 'table' AND m.name <> 'clopen_mcp_migrations' AND m.name NOT LIKE 'catalog%'
         AND m.name <> 'oauth_flows'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let there: BTreeSet<String> = rows.iter().map(|it| it.get("name")).collect();
    assert_eq!(exported, there);
}

async fn refuses(document: &str, expected: Expect) {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path(), None).await.unwrap();
    let error = import(&store, document, false).await.unwrap_err();
    expected.assert_eq(&chain(&error));
}

fn document(tables: &Value) -> String {
    json!({ "format": "clopen-mcp store", "schema": 1, "tables": tables }).to_string()
}

#[tokio::test]
async fn what_is_no_export() {
    refuses(
        "once upon a time",
        expect![
            "this is nothing that `clopen-mcp data export` wrote: expected value at line 1 column 1"
        ],
    )
    .await;
    refuses("{}", expect!["this is nothing that `clopen-mcp data export` wrote: missing field `format` at line 1 column 2"]).await;
    refuses(
        r#"{"format": "other", "schema": 1, "tables": {}}"#,
        expect!["this is nothing that `clopen-mcp data export` wrote: its `format` is `other` and not `clopen-mcp store`"],
    )
    .await;
    let later = document(&json!({})).replace("\"schema\":1", "\"schema\":1000");
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path(), None).await.unwrap();
    let error = import(&store, &later, false).await.unwrap_err();
    assert!(matches!(error, ImportError::Newer { found: 1000, .. }));
}

#[tokio::test]
async fn rows_that_are_wrong() {
    refuses(
        &document(&json!({ "a\n": [] })),
        expect![[r"the export has a table `a\n`, which this clopen-mcp doesn't know"]],
    )
    .await;
    refuses(
        &document(
            &json!({ "switches": [{ "server": "a", "tool": "", "enabled": 1, "colour": 1 }] }),
        ),
        expect![
            "row 1 of the export's table `switches` has a column `colour`, which doesn't exist"
        ],
    )
    .await;
    refuses(
        &document(&json!({ "switches": [
            { "server": "a", "tool": "", "enabled": 1 },
            { "server": "a", "tool": "b", "enabled": true },
        ] })),
        expect![
            "row 2 of the export's table `switches` needs a whole number in the column `enabled`"
        ],
    )
    .await;
    refuses(
        &document(&json!({ "switches": [{ "server": "a", "enabled": 1 }] })),
        expect!["row 1 of the export's table `switches` needs text in the column `tool`"],
    )
    .await;
}

#[tokio::test]
async fn an_older_export_lacks_tables() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path(), None).await.unwrap();
    let token = json!({
        "id": "tok_1", "name": "ci", "hash": "00", "read_only": 0, "created_at": 1,
    });
    import(&store, &document(&json!({ "tokens": [token] })), false)
        .await
        .unwrap();
    assert_eq!(store.tokens().await.unwrap()[0].project, None);
}

#[tokio::test]
async fn a_backup_is_a_database() {
    let (data, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = Store::open(data.path(), None).await.unwrap();
    fill(&store).await;
    let file = other.path().join(FILE_NAME);
    store.backup(&file).await.unwrap();
    #[cfg(unix)]
    assert_eq!(crate::store::mode(&file), 0o600);
    let restored = Store::open(other.path(), None).await.unwrap();
    assert_eq!(export(&restored).await, export(&store).await);
}

#[tokio::test]
async fn a_backup_replaces_nothing() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(&folder.path().join("data"), None)
        .await
        .unwrap();
    let file = folder.path().join("backup");
    fs::write(&file, "precious").unwrap();
    let error = store.backup(&file).await.unwrap_err();
    expect!["`DATA/backup` exists already; name a new file for the backup"]
        .assert_eq(&without_path(&chain(&error), folder.path()));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    let error = store.backup(&folder.path().join("not/there")).await;
    assert!(matches!(error, Err(BackupError::Write { .. })));
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn postgresql_has_its_own_backups() {
    let store = Database::postgres().await.open().await;
    let error = store.backup(Path::new("unused")).await.unwrap_err();
    expect!["a PostgreSQL database is backed up with `pg_dump`; `clopen-mcp data export` writes what is in it for either kind of database"]
        .assert_eq(&error.to_string());
}

/// Runs the binary in a folder; returns its exit code and what it printed.
async fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = binary(folder).args(arguments).output().await.unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8(printed).expect("it is UTF-8");
    (output.status.code().expect("it ends"), printed)
}

#[tokio::test]
async fn data_moves_by_commands() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    run(one.path(), &["tokens", "create", "ci"]).await;
    let said = run(one.path(), &["data", "export", "all.json"]).await;
    assert_eq!(said, (0, "exported to all.json\n".to_owned()));
    let file = one.path().join("all.json");
    #[cfg(unix)]
    assert_eq!(crate::store::mode(&file), 0o600);
    let again = run(one.path(), &["data", "export", "all.json"]).await;
    let words = "error: `all.json` exists already; name a new file for the export\n";
    assert_eq!(again, (3, words.to_owned()));
    let printed = run(one.path(), &["data", "export"]).await;
    assert_eq!(printed, (0, fs::read_to_string(&file).unwrap()));

    let file = file.to_str().unwrap();
    let said = run(other.path(), &["data", "import", file]).await;
    assert_eq!(said, (0, "imported 1 tokens\n".to_owned()));
    let (code, said) = run(other.path(), &["data", "import", file]).await;
    assert_eq!(code, 3);
    assert!(said.contains("the database isn't empty"), "{said}");
    let said = run(other.path(), &["data", "import", file, "--replace"]).await;
    assert_eq!(said, (0, "imported 1 tokens\n".to_owned()));

    let said = run(other.path(), &["data", "backup", "copy.sqlite"]).await;
    assert_eq!(said, (0, "copied to copy.sqlite\n".to_owned()));
    assert!(other.path().join("copy.sqlite").is_file());
}

#[tokio::test]
async fn a_reset_wants_a_yes() {
    let folder = TempDir::new().unwrap();
    run(folder.path(), &["tokens", "create", "ci"]).await;
    let (code, said) = run(folder.path(), &["data", "reset"]).await;
    expect![[r#"
        error: this forgets what was switched on and off and all sessions and tasks; add `--yes` if you want that
    "#]]
    .assert_eq(&said);
    assert_eq!(code, 2);
    let (code, said) = run(folder.path(), &["data", "reset", "--all"]).await;
    expect![[r#"
        error: this forgets what was switched on and off, all sessions and tasks, and all project tokens and keys; add `--yes` if you want that
    "#]]
    .assert_eq(&said);
    assert_eq!(code, 2);

    let data = folder.path().join("data");
    let store = Store::open(&data, None).await.unwrap();
    assert_eq!(filled(&store).await, ["tokens"]);
    let said = run(folder.path(), &["data", "reset", "--yes"]).await;
    assert_eq!(said, (0, "the database is reset\n".to_owned()));
    assert_eq!(filled(&store).await, ["servers", "tokens"]);
    let said = run(folder.path(), &["data", "reset", "--all", "--yes"]).await;
    assert_eq!(said, (0, "the database is reset\n".to_owned()));
    assert_eq!(filled(&store).await, ["servers"]);
}
