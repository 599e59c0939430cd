//! The servers as a program that links them offers them.

use expect_test::{Expect, expect};
use servers as _;
use tool_runtime::{Context, Dispatcher, Environment, Registry};

/// Starts all servers; those of the database only if the variables say where it is.
async fn registry<const N: usize>(variables: [(&str, &str); N]) -> Registry {
    Registry::linked(&Environment::new(variables))
        .await
        .unwrap()
}

async fn dispatcher<const N: usize>(variables: [(&str, &str); N]) -> Dispatcher {
    Dispatcher::new(registry(variables).await).unwrap()
}

#[tokio::test]
async fn tools_stay_as_published() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let url = format!("sqlite:{}", file.path().display());
    let registry = registry([("DATABASE_URL", &url)]).await;
    tool_runtime::assert_tools!("tests/tools.json", registry);
}

/// Calls a tool; gives what the model reads.
async fn call(dispatcher: &Dispatcher, tool: &str, arguments: &str) -> String {
    match dispatcher.call(tool, arguments, &Context::default()).await {
        Ok(output) => output.to_text(),
        Err(error) => error.to_string(),
    }
}

async fn check(dispatcher: &Dispatcher, tool: &str, arguments: &str, expected: &Expect) {
    expected.assert_eq(&call(dispatcher, tool, arguments).await);
}

#[tokio::test]
async fn a_server_without_its_setting_leaves_the_others_alone() {
    let dispatcher = dispatcher([]).await;
    check(
        &dispatcher,
        "query",
        r#"{"sql": "SELECT 1"}"#,
        &expect!["the server `database` is not available: the environment variable `DATABASE_URL` is not set: set it to `sqlite:path` or `postgres://user:password@host/name`"],
    )
    .await;
    check(
        &dispatcher,
        "count_lines",
        r#"{"path": "rust-toolchain.missing"}"#,
        &expect!["`rust-toolchain.missing` can't be read: No such file or directory (os error 2)"],
    )
    .await;
    check(&dispatcher, "list_services", "{}", &expect![[r#"{"services":[],"hint":"no service is set up; the operator adds one with the variable `API_GATEWAY_<NAME>_URL`"}"#]]).await;
}

#[tokio::test]
async fn bad_settings_are_told_with_their_variable() {
    let dispatcher = dispatcher([
        ("OPEN_METEO_URL", "weather"),
        ("FILE_UTILS_ROOT", "/missing"),
        ("DATABASE_URL", "mysql:x"),
        ("API_GATEWAY_A_URL", "a"),
    ])
    .await;
    let place = r#"{"latitude": 1, "longitude": 2}"#;
    check(&dispatcher, "get_temperature", place, &expect!["the server `weather-service` is not available: `OPEN_METEO_URL` is not a base URL like `https://api.open-meteo.com`: relative URL without a base"]).await;
    check(&dispatcher, "count_lines", r#"{"path": "a"}"#, &expect!["the server `file-utils` is not available: `FILE_UTILS_ROOT` must name a folder that can be read, and `/missing` is none: No such file or directory (os error 2)"]).await;
    check(&dispatcher, "list_tables", "", &expect!["the server `database` is not available: `DATABASE_URL` must begin with `sqlite:` or `postgres:`, other databases are not supported"]).await;
    check(&dispatcher, "list_services", "", &expect!["the server `api-gateway` is not available: `API_GATEWAY_A_URL` is not a base URL like `https://api.example.com/v1`: relative URL without a base"]).await;
}

#[tokio::test]
async fn arguments_are_checked_and_completed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.db");
    rusqlite::Connection::open(&file)
        .unwrap()
        .execute_batch("CREATE TABLE numbers (it INTEGER); INSERT INTO numbers VALUES (1), (2)")
        .unwrap();
    let url = format!("sqlite:{}", file.display());
    let dispatcher = dispatcher([("DATABASE_URL", &url)]).await;

    let place = r#"{"latitude": 90.5, "longitude": "x", "unit": "kelvin"}"#;
    check(
        &dispatcher,
        "get_temperature",
        place,
        &expect![[r#"
        the arguments of `get_temperature` are not valid, nothing was done:
        - /latitude: 90.5 is greater than the maximum of 90.0
        - /longitude: "x" is not of type number
        - /unit: "kelvin" is none of ["celsius","fahrenheit"]"#]],
    )
    .await;
    check(
        &dispatcher,
        "query",
        r#"{"sql": "", "limit": 1001, "parameters": {}}"#,
        &expect![[r#"
            the arguments of `query` are not valid, nothing was done:
            - /sql: "" is shorter than 1 character
            - /limit: 1001 is greater than the maximum of 1000
            - /parameters: {} is not of type array"#]],
    )
    .await;
    check(
        &dispatcher,
        "query",
        r#"{"sql": "SELECT it FROM numbers WHERE it > $1", "parameters": [1]}"#,
        &expect![[r#"{"columns":["it"],"rows":[[2]],"truncated":false}"#]],
    )
    .await;
    check(
        &dispatcher,
        "call_service",
        r#"{"service": "a", "path": "/", "method": "TRACE", "query": {"a": [1]}}"#,
        &expect![[r#"
            the arguments of `call_service` are not valid, nothing was done:
            - /method: "TRACE" is none of ["GET","HEAD","POST","PUT","PATCH","DELETE"]
            - /query/a: [1] is not valid under any of the schemas listed in the 'anyOf' keyword"#]],
    )
    .await;
    check(
        &dispatcher,
        "call_service",
        r#"{"service": "a", "path": "/"}"#,
        &expect!["there is no service `a`; no service is set up"],
    )
    .await;
}
