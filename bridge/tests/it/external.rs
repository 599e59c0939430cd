//! External servers: another bridge, over each transport, is served like our own.

use crate::{
    bridge::{Serving, TOKEN, profile},
    client::{Client, Era, soon},
    connect::Home,
};
use expect_test::expect;
use serde_json::{Value, json};
use std::{fmt::Write as _, fs, time::Duration};
use tokio::time::sleep;

const BINARY: &str = env!("CARGO_BIN_EXE_clopen-mcp");

fn lines(names: &[String]) -> String {
    names.join("\n")
}

/// Adds another bridge, which speaks over standard input and output.
async fn with_program() -> Home {
    let home = Home::new();
    let root = home.0.folder.path().display().to_string();
    let said = home
        .works(&format!(
            "servers add other --env CLOPEN_MCP_DATA={root}/other --env FILE_UTILS_ROOT={root} -- {BINARY} stdio"
        ))
        .await;
    assert_eq!(
        said.stdout, "`other` is there, with 5 tools\n",
        "{}",
        said.stderr
    );
    home
}

#[tokio::test]
async fn a_program_is_added_called_and_removed() {
    let home = with_program().await;
    home.says("servers list", 0, expect![[r#"
        api-gateway          1.0.0     on
        database             1.0.0     on  not available: the environment variable `DATABASE_URL` is not set: set it to `sqlite:path` or `postgres://user:password@host/name`
        file-utils           1.0.0     on
        other                VERSION     on  external, by hand
        results              1.0.0     on
        weather-service      1.0.0     on
    "#]]).await;
    home.says("tools list", 0, expect![[r#"
        api-gateway 1.0.0
          api-gateway_list_services List the services that `call_service` can call, and what each allows.
          api-gateway_call_service Call one HTTP service and get its answer.
        database 1.0.0
          not available: the environment variable `DATABASE_URL` is not set: set it to `sqlite:path` or `postgres://user:password@host/name`
        file-utils 1.0.0
          file-utils_count_lines   Count the lines and bytes of a text file.
        other VERSION
          other_list_services      List the services that `call_service` can call, and what each allows.
          other_call_service       Call one HTTP service and get its answer.
          other_count_lines        Count the lines and bytes of a text file.
          other_read_result        Read on in a result that was cut.
          other_get_temperature    Get the current air temperature at a place.
        results 1.0.0
          results_read_result      Read on in a result that was cut.
        weather-service 1.0.0
          weather-service_get_temperature Get the current air temperature at a place.
    "#]]).await;
    home.says(
        "tools call other_count_lines {\"path\":\"poem.txt\"}",
        0,
        expect![[r#"
            {"path":"poem.txt","lines":2,"bytes":8}
        "#]],
    )
    .await;
    home.says(
        "tools call other_count_lines {\"pth\":1}",
        1,
        expect![[r#"
        error: the arguments of `count_lines` are not valid, nothing was done:
        - there is no `pth`; did you mean `path`?
        - `path` is required
    "#]],
    )
    .await;
    home.works("servers disable other list_services").await;
    home.says(
        "tools call mcp__other__list_services",
        1,
        expect![[r#"
        error: the tool `mcp__other__list_services` is turned off
    "#]],
    )
    .await;
    home.says(
        "servers remove other",
        0,
        expect![[r#"
        `other` is removed
    "#]],
    )
    .await;
    home.says(
        "servers remove other",
        3,
        expect![[r#"
            error: there is no external server `other`; none has been added
        "#]],
    )
    .await;
    home.says(
        "tools call other_count_lines",
        1,
        expect![[r#"
        error: there is no tool `other_count_lines`
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_bridge_that_is_its_own_external_server_does_not_start_itself_again() {
    let home = Home::new();
    let root = home.0.folder.path().display();
    let add = format!("servers add itself --env FILE_UTILS_ROOT={root} -- {BINARY} stdio");
    let added = home.works(&add).await;
    assert_eq!(added.stdout, "`itself` is there, with 5 tools\n");
    let checked = home.works("servers check").await;
    assert_eq!(checked.stdout, added.stdout, "{}", checked.stderr);
}

#[tokio::test]
async fn what_is_off_stays_off_when_it_comes_back() {
    let home = with_program().await;
    home.works("servers disable other list_services").await;
    home.works("servers remove other").await;
    let root = home.0.folder.path().display().to_string();
    let add = format!("servers add other --env CLOPEN_MCP_DATA={root}/other -- {BINARY} stdio");
    home.works(&add).await;
    home.says(
        "tools call mcp__other__list_services",
        1,
        expect![[r#"
        error: the tool `mcp__other__list_services` is turned off
    "#]],
    )
    .await;
}

#[tokio::test]
async fn settings_of_an_external_server_stop_nothing() {
    let home = with_program().await;
    let settings = home.0.folder.path().join("clopen-mcp.toml");
    fs::write(
        settings,
        "[servers.other]\nwithout = [\"is_gone\", \"list_services\"]\n",
    )
    .expect("it can be written");
    home.says(
        "tools call mcp__other__list_services",
        1,
        expect![[r#"
        error: the tool `mcp__other__list_services` is turned off
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_an_external_server_says_of_itself_is_not_taken_for_granted() {
    let home = with_program().await;
    home.works("connect qwen").await;
    let settings = home.read(".qwen/settings.json");
    assert!(
        settings.contains("mcp__clopen-mcp__file-utils_count_lines"),
        "{settings}"
    );
    assert!(!settings.contains("other_count_lines"), "{settings}");
}

#[tokio::test]
async fn a_program_that_can_not_be_started_is_kept_and_says_why() {
    let home = Home::new();
    home.says(
        "servers add broken -- /no/such/program --flag",
        0,
        expect![[r#"
            `broken` is kept, but can't be used yet
            warning: could not start `/no/such/program` for server `broken`: there is no such file, or what its first line names is missing; check the path
        "#]],
    )
    .await;
    home.says("servers check broken", 1, expect![[r#"
        `broken` needs other settings (not_started)
          could not start `/no/such/program` for server `broken`: there is no such file, or what its first line names is missing; check the path
          to do: install `/no/such/program`, or correct its path: `clopen-mcp servers remove broken`, then `servers add broken` as it should be
    "#]]).await;
    home.says(
        "servers add broken -- other",
        3,
        expect![[r#"
        error: there is a server `broken` already
    "#]],
    )
    .await;
    home.says(
        "servers add Not_A_Name --url http://127.0.0.1:1",
        3,
        expect![[r#"
            error: `Not_A_Name` is no name for a server: it has small letters, digits and single `-`, at most 40
        "#]],
    )
    .await;
}

#[tokio::test]
async fn all_are_checked_at_once() {
    let home = with_program().await;
    home.works("servers add broken -- /no/such/program").await;
    let said = home.run("servers check --json").await;
    assert_eq!(said.code, Some(1));
    let checked: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    let [broken, other] = checked["servers"].as_array().expect("a list").as_slice() else {
        panic!("{checked}");
    };
    assert_eq!(broken["name"], "broken");
    assert_eq!(broken["finding"], "needs_configuration");
    assert_eq!(broken["code"], "not_started");
    assert_eq!(broken["tools"], Value::Null);
    assert_eq!(other["finding"], "ok");
    assert_eq!(other["next"], Value::Null);
    assert_eq!(other["tools"], 5);
    home.works("servers remove broken").await;
    home.says(
        "servers check",
        0,
        expect![[r#"
        `other` is there, with 5 tools
    "#]],
    )
    .await;
    home.works("servers remove other").await;
    home.says(
        "servers check",
        0,
        expect![[r#"
        no external server has been added
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_program_that_says_something_before_it_ends() {
    let home = Home::new();
    let script = home.0.folder.path().join("ends.sh");
    fs::write(&script, "echo \"no key: $KEY\" >&2\nexit 3\n").expect("it can be written");
    let script = script.display();
    let said = home
        .works(&format!(
            "servers add ends --env KEY=planted-secret -- /bin/sh {script}"
        ))
        .await;
    assert!(!said.stderr.contains("planted-secret"), "{}", said.stderr);
    assert!(said.stderr.contains("no key: "), "{}", said.stderr);
    assert!(said.stderr.contains('3'), "{}", said.stderr);
}

/// A bridge, and an address of another that has its tools as an external server.
async fn over_http() -> (Serving, Serving) {
    let other = Serving::start("").await;
    let bridge = Serving::start("").await;
    let data = bridge.folder.path().join("data").display().to_string();
    let home = Home::new();
    let said = home
        .0
        .run(&[
            "servers",
            "add",
            "other",
            "--data",
            &data,
            "--url",
            &other.url(),
            "--header",
            &format!("Authorization: Bearer {TOKEN}"),
        ])
        .await;
    assert!(
        said.stdout.contains("`other` is there"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    (other, bridge)
}

/// Waits until a bridge that runs has taken up what another process has added.
async fn until_listed(client: &Client, name: &str) -> Vec<String> {
    let looking = async {
        loop {
            let names = client.names("tools").await;
            if names.iter().any(|it| it == name) {
                return names;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    soon(looking).await
}

#[tokio::test]
async fn a_running_bridge_takes_up_a_server_that_is_added() {
    let (_other, bridge) = over_http().await;
    for era in [Era::Legacy("2025-11-25"), Era::Modern] {
        let client = bridge.client(era).await;
        until_listed(&client, "other_text").await;
        let own = client.call("gallery_text", json!({})).await.text();
        assert_eq!(client.call("other_text", json!({})).await.text(), own);
        assert_eq!(client.call("mcp__other__text", json!({})).await.text(), own);
        let point = client.call("other_point", json!({})).await;
        let own = client.call("gallery_point", json!({})).await;
        assert_eq!(
            point.result()["structuredContent"],
            own.result()["structuredContent"]
        );
    }
}

#[tokio::test]
async fn one_server_is_served_alone() {
    let (_other, bridge) = over_http().await;
    until_listed(&bridge.client(Era::Modern).await, "other_text").await;
    for era in [Era::Legacy("2025-11-25"), Era::Modern] {
        let url = format!("http://{}/mcp/ext/other", bridge.address);
        let client = Client::http(&url, profile(era)).await;
        let names = client.names("tools").await;
        assert!(names.iter().any(|it| it == "text"), "{}", lines(&names));
        let is_of_another = |it: &String| it.starts_with("gallery_") || it.starts_with("other_");
        assert!(!names.iter().any(is_of_another), "{}", lines(&names));
        let reply = client.call("gallery_text", json!({})).await;
        assert_eq!(reply.error()["code"], -32602, "{}", reply.message);
    }
}

/// Adds a server that is odd in one way; shows what came of it, and what a call of its first tool gives.
async fn odd(cases: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/odd.py");
    let mut shown = String::new();
    for case in cases {
        let home = Home::new();
        let added = home
            .run(&format!("servers add odd -- python3 {script} {case}"))
            .await;
        let called = home.run("tools call mcp__odd__a").await;
        let said = [added.stdout, added.stderr, called.stdout, called.stderr].concat();
        writeln!(shown, "{case}:\n{}", said.trim_end()).expect("a String takes everything");
    }
    shown
}

#[tokio::test]
#[ignore = "needs python3"]
async fn dis_216_one_bad_tool_costs_no_other() {
    let cases = [
        "dangling_ref",
        "bool_schema_prop",
        "bool_input_schema",
        "no_type_input",
        "null_input",
        "missing_input",
        "root_anyof",
        "recursive",
        "output_nonobject",
        "output_notype",
        "excl_min_bool",
        "dup_names",
        "empty_name",
        "long_name",
        "uni_name",
        "desc_null",
        "required_null",
        "annot_bad",
    ];
    expect![[r#"
        dangling_ref:
        `odd` is there, with 1 tools
          `odd.a`, arguments: `#/properties/x`: left `$ref` out, as `#/$defs/Nope` is not there.
        ok
        bool_schema_prop:
        `odd` is there, with 1 tools
        ok
        bool_input_schema:
        `odd` is there, with 2 tools
          `odd.a`, arguments: `#`: the schema is true; any object is taken.
        ok
        no_type_input:
        `odd` is there, with 2 tools
          `odd.a`, arguments: `#`: added `"type": "object"`.
        ok
        null_input:
        `odd` is there, with 2 tools
          `odd.a`, arguments: `#`: there is no schema; any object is taken.
        ok
        missing_input:
        `odd` is there, with 2 tools
          `odd.a`, arguments: `#`: there is no schema; any object is taken.
        ok
        root_anyof:
        `odd` is there, with 2 tools
          `odd.a`, arguments: `#`: added `"type": "object"`.
        ok
        recursive:
        `odd` is there, with 1 tools
        ok
        output_nonobject:
        `odd` is there, with 2 tools
          `odd.a`, result: `#`: wrapped it as `result`, as it is no object.
        ok
        output_notype:
        `odd` is there, with 2 tools
          `odd.a`, result: `#`: added `"type": "object"`.
        ok
        the tool promises structured content, and gave none
        excl_min_bool:
        `odd` is there, with 1 tools
          `odd.a`, arguments: `#/properties/x`: wrote `exclusiveMinimum` as a number.
        ok
        dup_names:
        `odd` is there, with 2 tools
        ok
        empty_name:
        `odd` is there, with 2 tools
        error: there is no tool `mcp__odd__a`
        long_name:
        `odd` is there, with 2 tools
        error: there is no tool `mcp__odd__a`
        uni_name:
        `odd` is there, with 2 tools
        error: there is no tool `mcp__odd__a`
        desc_null:
        `odd` is there, with 2 tools
        ok
        required_null:
        `odd` is there, with 2 tools
          `odd.a`, arguments: `#`: left `required` out, as it is malformed.
        ok
        annot_bad:
        `odd` is there, with 2 tools
        ok
    "#]]
    .assert_eq(&odd(&cases).await);
}

#[tokio::test]
#[ignore = "needs python3"]
async fn dis_214_215_lists_end() {
    let cases = [
        "cursor_loop",
        "cursor_empty",
        "tools_null",
        "err_string",
        "die_mid",
    ];
    expect![[r#"
        cursor_loop:
        `odd` is there, with 2 tools
        ok
        cursor_empty:
        `odd` is there, with 1 tools
        ok
        tools_null:
        `odd` is kept, but can't be used yet
        warning: `odd` gives no list that can be read: there is no list `tools` in it
        error: there is no tool `mcp__odd__a`
        err_string:
        `odd` is kept, but can't be used yet
        warning: server `odd` refused `tools/list`: boom (code -32603)
        error: there is no tool `mcp__odd__a`
        die_mid:
        `odd` is kept, but can't be used yet
        warning: server `odd` ended with exit code 3, so `tools/list` got no answer; check its command and what its environment needs
        error: there is no tool `mcp__odd__a`
    "#]].assert_eq(&odd(&cases).await);
}

#[tokio::test]
#[ignore = "needs python3"]
async fn res_065_to_074_results_are_made_right() {
    let cases = [
        "content_missing",
        "content_null",
        "content_str",
        "content_unknown",
        "err_structured",
        "big_int",
        "schema_mismatch",
        "schema_nostruct",
        "err_outschema",
        "die_call",
    ];
    expect![[r#"
        content_missing:
        `odd` is there, with 1 tools
        {"ok": 1}
        content_null:
        `odd` is there, with 1 tools
        content_str:
        `odd` is there, with 1 tools
        hello
        content_unknown:
        `odd` is there, with 1 tools
        [a block of type `video`, which can't be shown]
        ok
        err_structured:
        `odd` is there, with 1 tools
        bad
        {"code": "E1"}
        big_int:
        `odd` is there, with 1 tools
        {"id": 9007199254740993123}
        schema_mismatch:
        `odd` is there, with 1 tools
        {}
        {"n": "str"}
        schema_nostruct:
        `odd` is there, with 1 tools
        {"n":1}
        err_outschema:
        `odd` is there, with 1 tools
        bad
        die_call:
        `odd` is there, with 1 tools
        server `odd` ended with exit code 3, so `tools/call` got no answer; check its command and what its environment needs
    "#]].assert_eq(&odd(&cases).await);
}
