//! Settings, and every way to get them wrong.

use clopen_mcp::config::{Config, ConfigError, FILE_NAME, Flags, Limits, ServerSelection};
use expect_test::{Expect, expect};
use std::{collections::BTreeMap, fs, path::Path, time::Duration};
use tempfile::TempDir;

/// Loads from a folder with this settings file (none where it is empty).
fn load(file: &str, flags: &Flags, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let folder = TempDir::new().expect("the temporary folder can be written");
    if !file.is_empty() {
        fs::write(folder.path().join(FILE_NAME), file).expect("the settings file can be written");
    }
    load_in(folder.path(), flags, variables)
}

fn load_in(
    folder: &Path,
    flags: &Flags,
    variables: &[(&str, &str)],
) -> Result<Config, ConfigError> {
    let mut all = BTreeMap::from([("HOME".to_owned(), "/home/ada".to_owned())]);
    for (name, value) in variables {
        all.insert((*name).to_owned(), (*value).to_owned());
    }
    Config::load(flags, &all, folder)
}

#[track_caller]
fn good(file: &str, flags: &Flags, variables: &[(&str, &str)]) -> Config {
    match load(file, flags, variables) {
        Ok(config) => config,
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn bad(file: &str, flags: &Flags, variables: &[(&str, &str)], expected: &Expect) {
    match load(file, flags, variables) {
        Ok(config) => panic!("it was taken: {config:?}"),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

fn bad_file(file: &str, expected: &Expect) {
    bad(file, &Flags::default(), &[], expected);
}

fn bad_variable(name: &str, value: &str, expected: &Expect) {
    bad("", &Flags::default(), &[(name, value)], expected);
}

#[test]
fn nothing_is_needed() {
    let config = good("", &Flags::default(), &[]);
    assert_eq!(config.listen, "127.0.0.1:9151".parse().unwrap());
    assert!(!config.no_auth);
    assert!(config.token.is_none());
    assert!(config.database_url.is_none());
    assert_eq!(config.skills, None);
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.file, None);
    assert!(config.servers.is_empty());
    assert!(config.warnings.is_empty());
    #[cfg(all(unix, not(target_os = "macos")))]
    assert_eq!(config.data, Path::new("/home/ada/.local/share/clopen-mcp"));
}

#[test]
#[cfg(all(unix, not(target_os = "macos")))]
fn the_data_folder_follows_xdg() {
    let config = good("", &Flags::default(), &[("XDG_DATA_HOME", "/data")]);
    assert_eq!(config.data, Path::new("/data/clopen-mcp"));
    let config = good("", &Flags::default(), &[("XDG_DATA_HOME", "relative")]);
    assert_eq!(config.data, Path::new("/home/ada/.local/share/clopen-mcp"));
}

#[test]
fn a_file_says_everything() {
    let config = good(
        r#"
            listen = "[::1]:8000"
            data = "data"
            skills = "skills"
            no_auth = true
            allowed_hosts = ["MCP.example.com", "10.0.0.5:9151", "[fe80::1]:80"]
            allowed_origins = ["https://App.example.com:443", "vscode-webview://abc", "http://a.example:8080"]
            database_url = "postgres://ada:hunter2@db/clopen"
            call_timeout = "2m"
            max_output = 1_000
            max_body = 0x100
            drain = "500ms"

            [servers.weather-service]
            tools = ["get_temperature"]

            [servers.filesystem]
            without = ["delete"]

            [servers.sql]
            enabled = false
            timeout = "10s"

            [servers.slow]
            timeout = "5m"
        "#,
        &Flags::default(),
        &[],
    );
    assert_eq!(config.listen, "[::1]:8000".parse().unwrap());
    let file = config.file.as_ref().expect("a file was read");
    assert_eq!(config.data, file.parent().unwrap().join("data"));
    assert_eq!(config.skills, Some(file.parent().unwrap().join("skills")));
    assert!(config.no_auth);
    assert_eq!(
        config.allowed_hosts,
        ["mcp.example.com", "10.0.0.5:9151", "[fe80::1]:80"]
    );
    assert_eq!(
        config.allowed_origins,
        [
            "https://app.example.com",
            "vscode-webview://abc",
            "http://a.example:8080"
        ]
    );
    assert_eq!(
        config.limits,
        Limits {
            call_timeout: Duration::from_mins(2),
            max_output: 1000,
            max_body: 256,
            drain: Duration::from_millis(500),
            ..Limits::default()
        }
    );
    assert_eq!(
        config.servers["weather-service"],
        ServerSelection {
            tools: Some(vec!["get_temperature".to_owned()]),
            ..ServerSelection::default()
        }
    );
    assert_eq!(config.servers["filesystem"].without, ["delete"]);
    assert!(!config.servers["sql"].enabled);
    assert_eq!(config.timeouts["sql"], Duration::from_secs(10));
    assert_eq!(config.timeouts["slow"], Duration::from_mins(5));
    assert!(
        !config.servers.contains_key("slow"),
        "a time turns nothing on"
    );
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn the_folder_of_skills_is_found_from_where_it_was_named() {
    let folder = TempDir::new().unwrap();
    let here = folder.path().join("here");
    fs::create_dir_all(&here).unwrap();
    fs::write(folder.path().join("settings.toml"), "skills = 'file'").unwrap();
    let mut flags = Flags {
        config: Some("../settings.toml".into()),
        ..Flags::default()
    };
    let config = load_in(&here, &flags, &[]).unwrap();
    assert_eq!(config.skills, Some(here.join("../file")));
    let variables = [("CLOPEN_MCP_SKILLS", "variable")];
    let config = load_in(&here, &flags, &variables).unwrap();
    assert_eq!(config.skills, Some(here.join("variable")));
    flags.skills = Some("flag".into());
    let config = load_in(&here, &flags, &variables).unwrap();
    assert_eq!(config.skills, Some(here.join("flag")));
    bad_file(
        "skills = ['a', 'b']",
        &expect!["clopen-mcp.toml:1:10: `skills`: expected the path of a folder, found an array"],
    );
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let file = "listen = '127.0.0.1:1'\nmax_body = 1\nallowed_hosts = ['file']";
    let variables = [
        ("CLOPEN_MCP_LISTEN", "127.0.0.1:2"),
        ("CLOPEN_MCP_MAX_BODY", "2"),
        ("CLOPEN_MCP_ALLOWED_HOSTS", "one, two:80,"),
        ("CLOPEN_MCP_DATA", "from-variable"),
        ("CLOPEN_MCP_NO_AUTH", "1"),
        ("CLOPEN_MCP_TOKEN", "0123456789abcdef"),
    ];
    let flags = Flags {
        listen: Some("localhost:3".to_owned()),
        data: Some("/from-flag".into()),
        ..Flags::default()
    };
    let config = good(file, &flags, &variables);
    assert_eq!(config.listen, "127.0.0.1:3".parse().unwrap());
    assert_eq!(config.limits.max_body, 2);
    assert_eq!(config.allowed_hosts, ["one", "two:80"]);
    assert_eq!(config.data, Path::new("/from-flag"));
    assert!(config.no_auth);
    assert!(config.token.expect("a token is set").is("0123456789abcdef"));

    let flags = Flags {
        allowed_hosts: vec!["flag".to_owned()],
        ..Flags::default()
    };
    assert_eq!(good(file, &flags, &variables).allowed_hosts, ["flag"]);
}

#[test]
fn an_empty_variable_is_not_set() {
    let config = good(
        "max_body = 1",
        &Flags::default(),
        &[("CLOPEN_MCP_MAX_BODY", ""), ("CLOPEN_MCP_TOKEN", "")],
    );
    assert_eq!(config.limits.max_body, 1);
    assert!(config.token.is_none());
}

#[test]
fn a_file_can_be_named() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.toml"), "max_body = 1").unwrap();
    fs::write(folder.path().join("b.toml"), "max_body = 2").unwrap();
    fs::write(folder.path().join(FILE_NAME), "max_body = 3").unwrap();
    let variables = [("CLOPEN_MCP_CONFIG", "b.toml")];
    let flags = Flags {
        config: Some("a.toml".into()),
        ..Flags::default()
    };
    let max_body = |flags: &Flags, variables: &[(&str, &str)]| {
        load_in(folder.path(), flags, variables)
            .expect("the settings are right")
            .limits
            .max_body
    };
    assert_eq!(max_body(&flags, &variables), 1);
    assert_eq!(max_body(&Flags::default(), &variables), 2);
    assert_eq!(max_body(&Flags::default(), &[]), 3);
}

#[test]
#[cfg(all(unix, not(target_os = "macos")))]
fn a_file_may_lie_in_the_folder_for_settings() {
    let folder = TempDir::new().unwrap();
    let home = TempDir::new().unwrap();
    let settings = home.path().join(".config/clopen-mcp");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join(FILE_NAME), "data = 'here'").unwrap();
    let variables = [("HOME", home.path().to_str().expect("the path is UTF-8"))];
    let config = load_in(folder.path(), &Flags::default(), &variables).unwrap();
    assert_eq!(config.data, settings.join("here"));
}

#[test]
fn unknown_variables_are_warnings() {
    let config = good(
        "",
        &Flags::default(),
        &[
            ("CLOPEN_MCP_LISTN", "127.0.0.1:1"),
            ("CLOPEN_MCP_FAVOURITE_COLOUR", "blue"),
            ("CLOPEN_MCP_LOG", "debug"),
            ("OTHER", "x"),
        ],
    );
    expect![[r#"
        the variable `CLOPEN_MCP_FAVOURITE_COLOUR` is not a setting, so nothing reads it
        the variable `CLOPEN_MCP_LISTN` is not a setting, so nothing reads it; did you mean `CLOPEN_MCP_LISTEN`?"#]]
    .assert_eq(&config.warnings.join("\n"));
}

#[test]
fn every_problem_of_a_file_is_found_in_its_order() {
    bad_file(
        r#"
max_body = "4 MiB"
listen = "here"
lisen = "127.0.0.1:1"
data = 3
no_auth = "yes"
colour = "blue"
token = "0123456789abcdef"
allowed_hosts = ["fine.example", "https://no.example", 4]
allowed_origins = "https://app.example.com"
database_url = "mysql://root:hunter2@db"
call_timeout = "0s"
max_output = -1
drain = 10

[servers]
sql = false

[servers.weather-service]
enabled = "no"
tool = ["x"]
tools = "all"
without = [""]
timeout = "soon"
"#,
        &expect![[r#"
            clopen-mcp.toml:2:12: `max_body`: expected a number of bytes from 1 to 1073741824, such as `100000`, found "4 MiB"
            clopen-mcp.toml:3:10: `listen`: expected an address with a port, such as `127.0.0.1:9151`, found "here"
            clopen-mcp.toml:4:1: `lisen` is not a setting; did you mean `listen`?
            clopen-mcp.toml:5:8: `data`: expected the path of a folder, found the number `3`
            clopen-mcp.toml:6:11: `no_auth`: expected `true` or `false`, found "yes"
            clopen-mcp.toml:7:1: `colour` is not a setting
            clopen-mcp.toml:8:1: `token` doesn't belong in a settings file; put the token into the variable `CLOPEN_MCP_TOKEN`, or leave it to the file `token` in the data folder
            clopen-mcp.toml:9:34: `allowed_hosts`: expected a host with or without a port, such as `mcp.example.com` or `10.0.0.5:9151`, found "https://no.example"
            clopen-mcp.toml:9:56: `allowed_hosts`: expected a host with or without a port, such as `mcp.example.com` or `10.0.0.5:9151`, found the number `4`
            clopen-mcp.toml:10:19: `allowed_origins`: expected an array of texts, found "https://app.example.com"
            clopen-mcp.toml:11:16: `database_url`: expected the address of a PostgreSQL database, such as `postgres://user:password@host/database`
            clopen-mcp.toml:12:16: `call_timeout`: expected a time such as `30s`, `500ms` or `2m`, more than zero and at most `24h`, found "0s"
            clopen-mcp.toml:13:14: `max_output`: expected a number of bytes from 1 to 1073741824, such as `100000`, found the number `-1`
            clopen-mcp.toml:14:9: `drain`: expected a time such as `30s`, `500ms` or `2m`, at most `24h`, found the number `10`
            clopen-mcp.toml:17:7: `servers.sql`: expected a table such as `[servers.weather-service]`, found `false`
            clopen-mcp.toml:20:11: `servers.weather-service.enabled`: expected `true` or `false`, found "no"
            clopen-mcp.toml:21:1: `servers.weather-service.tool` is not a setting; did you mean `tools`?
            clopen-mcp.toml:22:9: `servers.weather-service.tools`: expected an array of texts, found "all"
            clopen-mcp.toml:23:12: `servers.weather-service.without`: expected the name of a tool, found ""
            clopen-mcp.toml:24:11: `servers.weather-service.timeout`: expected a time such as `30s`, `500ms` or `2m`, more than zero and at most `24h`, found "soon""#]],
    );
}

#[test]
fn broken_toml() {
    bad_file(
        "listen = \nmax_body = 1 2\n",
        &expect![[r#"
        clopen-mcp.toml:1:10: not TOML: string values must be quoted, expected literal string
        clopen-mcp.toml:2:12: not TOML: string values must be quoted, expected literal string"#]],
    );
    bad_file(
        "listen = 'a'\nlisten = 'b'\n",
        &expect!["clopen-mcp.toml:2:1: not TOML: duplicate key"],
    );
    bad_file(
        "[servers.ü]\nä = 'é' x",
        &expect![[r#"
        clopen-mcp.toml:1:10: not TOML: invalid unquoted key, expected letters, numbers, `-`, `_`
        clopen-mcp.toml:2:1: not TOML: invalid unquoted key, expected letters, numbers, `-`, `_`
        clopen-mcp.toml:2:9: not TOML: unexpected key or value, expected newline, `#`"#]],
    );
}

#[test]
fn values_of_variables() {
    bad_variable(
        "CLOPEN_MCP_LISTEN",
        "9151",
        &expect![
            "`CLOPEN_MCP_LISTEN`: expected an address with a port, such as `127.0.0.1:9151`, found `9151`"
        ],
    );
    bad_variable(
        "CLOPEN_MCP_NO_AUTH",
        "maybe",
        &expect!["`CLOPEN_MCP_NO_AUTH`: expected `true` or `false`, found `maybe`"],
    );
    bad_variable(
        "CLOPEN_MCP_ALLOWED_HOSTS",
        "a.example, b.example/path",
        &expect![
            "`CLOPEN_MCP_ALLOWED_HOSTS`: expected a host with or without a port, such as `mcp.example.com` or `10.0.0.5:9151`, found `b.example/path`"
        ],
    );
    bad_variable(
        "CLOPEN_MCP_ALLOWED_ORIGINS",
        "null",
        &expect![
            "`CLOPEN_MCP_ALLOWED_ORIGINS`: expected an origin such as `https://app.example.com`, with nothing after the host and its port, found `null`"
        ],
    );
    bad_variable(
        "CLOPEN_MCP_ALLOWED_ORIGINS",
        "https://a.example/",
        &expect![
            "`CLOPEN_MCP_ALLOWED_ORIGINS`: expected an origin such as `https://app.example.com`, with nothing after the host and its port, found `https://a.example/`"
        ],
    );
    bad_variable(
        "CLOPEN_MCP_CALL_TIMEOUT",
        "25h",
        &expect![
            "`CLOPEN_MCP_CALL_TIMEOUT`: expected a time such as `30s`, `500ms` or `2m`, more than zero and at most `24h`, found `25h`"
        ],
    );
    bad_variable(
        "CLOPEN_MCP_MAX_BODY",
        "4\u{1b}[31m",
        &expect![[
            r#"`CLOPEN_MCP_MAX_BODY`: expected a number of bytes from 1 to 1073741824, such as `100000`, found `4\u{1b}[31m`"#
        ]],
    );
}

#[test]
fn secrets_are_not_printed() {
    bad_variable(
        "CLOPEN_MCP_TOKEN",
        "hunter2",
        &expect![
            "`CLOPEN_MCP_TOKEN`: expected a token of at least 16 visible ASCII characters, such as `openssl rand -hex 32` prints"
        ],
    );
    bad_variable(
        "CLOPEN_MCP_TOKEN",
        "hunter2 hunter2 hunter2",
        &expect![
            "`CLOPEN_MCP_TOKEN`: expected a token of at least 16 visible ASCII characters, such as `openssl rand -hex 32` prints"
        ],
    );
    bad_variable(
        "CLOPEN_MCP_DATABASE_URL",
        "mysql://root:hunter2@db",
        &expect![
            "`CLOPEN_MCP_DATABASE_URL`: expected the address of a PostgreSQL database, such as `postgres://user:password@host/database`"
        ],
    );
}

#[test]
fn values_of_flags() {
    let flags = Flags {
        listen: Some("0.0.0.0".to_owned()),
        allowed_hosts: vec!["*".to_owned()],
        ..Flags::default()
    };
    bad(
        "",
        &flags,
        &[],
        &expect![[r#"
        `--listen`: expected an address with a port, such as `127.0.0.1:9151`, found `0.0.0.0`
        `--allowed-host`: expected a host with or without a port, such as `mcp.example.com` or `10.0.0.5:9151`, found `*`"#]],
    );
}

#[test]
fn no_auth_is_for_this_machine_only() {
    let flags = Flags {
        no_auth: true,
        ..Flags::default()
    };
    bad(
        "listen = '0.0.0.0:9151'",
        &flags,
        &[],
        &expect![
            "`--no-auth`: without tokens the bridge may only listen on this machine, and `0.0.0.0:9151` is open to others; listen on `127.0.0.1:9151`, or let callers show a token"
        ],
    );
    bad_file(
        "no_auth = true\nlisten = '[::]:80'",
        &expect![
            "clopen-mcp.toml:1:11: `no_auth`: without tokens the bridge may only listen on this machine, and `[::]:80` is open to others; listen on `127.0.0.1:80`, or let callers show a token"
        ],
    );
}

#[test]
fn how_one_signs_in() {
    let file = "[sign_in]\npublic_url = 'https://bridge.example/'\nallow_private = true\nwithout_resource = ['notes']";
    let sign_in = good(file, &Flags::default(), &[]).sign_in;
    assert_eq!(
        sign_in.public_url.as_deref(),
        Some("https://bridge.example")
    );
    assert!(sign_in.allow_private && sign_in.without_resource.contains("notes"));
    bad_file(
        "[sign_in]\npublic_url = 'bridge.example'",
        &expect![[
            r#"clopen-mcp.toml:2:14: `sign_in.public_url`: expected the address of this bridge from outside, such as `https://bridge.example.com`, found "bridge.example""#
        ]],
    );
    bad_file(
        "[sign_in]\npublic = 'x'",
        &expect!["clopen-mcp.toml:2:1: `sign_in.public` is not a setting"],
    );
}

#[test]
fn a_named_file_must_be_there() {
    let flags = Flags {
        config: Some("missing.toml".into()),
        ..Flags::default()
    };
    bad(
        "",
        &flags,
        &[],
        &expect![
            "`--config`: can't read the settings file `missing.toml`: No such file or directory (os error 2)"
        ],
    );
    bad_variable(
        "CLOPEN_MCP_CONFIG",
        "/",
        &expect![
            "`CLOPEN_MCP_CONFIG`: can't read the settings file `/`: Is a directory (os error 21)"
        ],
    );
}

#[test]
#[cfg(unix)]
fn a_file_that_is_no_text() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(FILE_NAME), [0xff, 0xfe]).unwrap();
    let error = load_in(folder.path(), &Flags::default(), &[]).unwrap_err();
    expect!["can't read the settings file `clopen-mcp.toml`: stream did not contain valid UTF-8"]
        .assert_eq(&error.to_string());
}

#[test]
fn no_home_no_data() {
    bad(
        "",
        &Flags::default(),
        &[("HOME", "")],
        &expect![
            "no folder for the data is known, since this user has no home folder here; name one with `--data`, `CLOPEN_MCP_DATA` or the key `data`"
        ],
    );
}
