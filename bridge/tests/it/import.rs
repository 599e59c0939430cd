//! Servers that a person has in an engine's configuration become external servers of the bridge.

use crate::connect::Home;
use expect_test::{Expect, expect};

const CODEX: &str = r#"model = "gpt-5.5"

[mcp_servers.clopen-mcp]
url = "http://127.0.0.1:9151/mcp"

[mcp_servers.github]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-github", "--api-key", "planted-secret-1"]
env = { GITHUB_TOKEN = "planted-secret-2" }

[mcp_servers."My Server (prod)"]
url = "http://127.0.0.1:1/mcp?key=planted-secret-3"
http_headers = { X-Key = "planted-secret-4" }

[mcp_servers.linear]
url = "https://127.0.0.1:1/mcp"
bearer_token_env_var = "LINEAR_TOKEN"

[mcp_servers.weather-service]
command = "weather"
"#;

const OPENCODE: &str = r#"{
  // mine
  "mcp": {
    "files": { "type": "local", "command": ["npx", "-y", "files"], "environment": { "ROOT": "{env:HOME}" } },
    "remote": { "type": "remote", "url": "http://127.0.0.1:1/mcp" },
  },
}
"#;

const CLINE: &str = r#"{"mcpServers":{"nested":{"transport":{"type":"stdio","command":"node","args":["server.js"]}},"old":{"transport":{"type":"sse","url":"http://127.0.0.1:1/sse"}}}}"#;

const CONTINUE: &str = "name: mine\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: listed\n    command: uvx\n    args: [listed]\n";

const GOOSE: &str = "extensions:\n  developer:\n    type: builtin\n    enabled: true\n  notes:\n    type: stdio\n    cmd: uvx\n    args: [notes]\n    envs: {KEY: planted-secret-5}\n";

/// Shows what would be taken over; nothing changes, and no secret is shown.
async fn shows(engine: &str, file: &str, text: &str, expected: Expect) {
    let home = Home::new();
    home.write(file, text);
    let said = home.works(&format!("servers import {engine}")).await;
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(!said.contains("planted-secret"), "{said}");
    expected.assert_eq(&said);
    assert_eq!(home.read(file), text);
    let servers = home.works("servers list").await.stdout;
    assert!(!servers.contains("external"), "{servers}");
}

#[tokio::test]
async fn of_codex() {
    shows("codex", ".codex/config.toml", CODEX, expect![[r#"
        ~/.codex/config.toml:
          github               npx @modelcontextprotocol/server-github (and 3 more arguments), with GITHUB_TOKEN
          My Server (prod)     as `my-server-prod` http://127.0.0.1:1, with X-Key
          linear               left as it is: it needs the variable `LINEAR_TOKEN`, which isn't set here
          weather-service      left as it is: there is a server `weather-service` already
        nothing is changed; with `--yes` these are taken over, and with `--remove` also taken out of the configuration of Codex
    "#]]).await;
}

#[tokio::test]
async fn of_opencode() {
    shows("opencode", ".config/opencode/opencode.jsonc", OPENCODE, expect![[r#"
        ~/.config/opencode/opencode.jsonc:
          files                npx files (and 1 more arguments), with ROOT
          remote               http://127.0.0.1:1
        nothing is changed; with `--yes` these are taken over, and with `--remove` also taken out of the configuration of OpenCode
    "#]]).await;
}

#[tokio::test]
async fn of_cline() {
    shows("cline", ".cline/data/settings/cline_mcp_settings.json", CLINE, expect![[r#"
        ~/.cline/data/settings/cline_mcp_settings.json:
          nested               node server.js
          old                  http://127.0.0.1:1
        nothing is changed; with `--yes` these are taken over, and with `--remove` also taken out of the configuration of Cline
    "#]]).await;
}

#[tokio::test]
async fn of_continue() {
    shows("continue", ".continue/config.yaml", CONTINUE, expect![[r#"
        ~/.continue/config.yaml:
          listed               uvx listed
        nothing is changed; with `--yes` these are taken over, and with `--remove` also taken out of the configuration of Continue
    "#]]).await;
}

#[tokio::test]
async fn of_goose() {
    shows("goose", ".config/goose/config.yaml", GOOSE, expect![[r#"
        ~/.config/goose/config.yaml:
          developer            left as it is: it has neither a command nor an address
          notes                uvx notes, with KEY
        nothing is changed; with `--yes` these are taken over, and with `--remove` also taken out of the configuration of Goose
    "#]]).await;
}

#[tokio::test]
async fn of_an_engine_without_servers() {
    let home = Home::new();
    home.says(
        "servers import gemini",
        0,
        expect![[r#"
        there is no other server in the configuration of Gemini CLI
    "#]],
    )
    .await;
}

#[tokio::test]
async fn eng_247_names_are_matched_as_written_and_as_adapted() {
    let home = Home::new();
    let text = r#"{"mcpServers":{"My Server (prod)":{"url":"http://127.0.0.1:1/mcp"},"my-server-prod":{"url":"http://127.0.0.1:2/mcp"}}}"#;
    home.write(".cursor/mcp.json", text);
    home.says(
        "servers import cursor --yes",
        0,
        expect![[r#"
            ~/.cursor/mcp.json:
              My Server (prod)     as `my-server-prod` http://127.0.0.1:1
              my-server-prod       left as it is: there is a server `my-server-prod` already
            `my-server-prod` is kept, but can't be used yet
            warning: could not ask server `my-server-prod` at `http://127.0.0.1:1` for `server/discover`: connection refused; check that it runs and that its URL is right
        "#]],
    )
    .await;
    // Once more, both are there already.
    home.says(
        "servers import cursor --yes",
        0,
        expect![[r#"
        ~/.cursor/mcp.json:
          My Server (prod)     left as it is: there is a server `my-server-prod` already
          my-server-prod       left as it is: there is a server `my-server-prod` already
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_is_taken_over_is_taken_out_and_can_be_put_back() {
    const BINARY: &str = env!("CARGO_BIN_EXE_clopen-mcp");
    let home = Home::new();
    let other = home.0.folder.path().join("other");
    let kept = CODEX.replace("npx", "/no/such/npx");
    let codex = format!(
        "{kept}\n[mcp_servers.other]\ncommand = \"{BINARY}\"\nargs = [\"stdio\"]\nenv = {{ CLOPEN_MCP_DATA = \"{}\" }}\n",
        other.display()
    );
    home.write(".codex/config.toml", &codex);
    let said = home.works("servers import codex --yes --remove").await;
    let said = format!("{}{}", said.stdout, said.stderr).replace(BINARY, "BINARY");
    expect![[r#"
        ~/.codex/config.toml:
          github               /no/such/npx @modelcontextprotocol/server-github (and 3 more arguments), with GITHUB_TOKEN
          My Server (prod)     as `my-server-prod` http://127.0.0.1:1, with X-Key
          linear               left as it is: it needs the variable `LINEAR_TOKEN`, which isn't set here
          weather-service      left as it is: there is a server `weather-service` already
          other                BINARY stdio, with CLOPEN_MCP_DATA
        `github` is kept, but can't be used yet
        `my-server-prod` is kept, but can't be used yet
        `other` is there, with 5 tools
        those that have told their tools are taken out of ~/.codex/config.toml
        warning: could not start `/no/such/npx` for server `github`: there is no such file, or what its first line names is missing; check the path
        warning: could not ask server `my-server-prod` at `http://127.0.0.1:1` for `server/discover`: connection refused; check that it runs and that its URL is right
    "#]].assert_eq(&said);
    let left = home.read(".codex/config.toml");
    assert_eq!(left.trim_end(), kept.trim_end());
    home.works("connect --undo").await;
    assert_eq!(home.read(".codex/config.toml"), codex);
    let servers = home.works("servers list").await.stdout;
    assert_eq!(
        servers.matches("external, from Codex").count(),
        3,
        "{servers}"
    );
    // What is secret is sealed, also in what SQLite has not tidied up yet.
    let data = std::fs::read_dir(home.0.folder.path().join("data")).expect("it is there");
    for file in data.filter_map(|it| std::fs::read(it.ok()?.path()).ok()) {
        let file = String::from_utf8_lossy(&file);
        assert!(
            !file.contains("planted-secret"),
            "a secret is in the data folder"
        );
    }
}

#[tokio::test]
async fn what_can_not_be_taken_over_as_it_is_stays() {
    let text = r#"{"mcpServers":{
        "off": {"command": "a", "disabled": true},
        "some": {"command": "a", "includeTools": ["b"]},
        "all": {"command": "a", "tools": ["*"], "args": ["--port", 8080, "{n:${HOME}}"], "cwd": "/tmp"},
        "odd": {"command": "a", "args": [{}]},
        "none": {},
        "text": "a",
        "empty": {"command": []}
    }}"#;
    shows("cursor", ".cursor/mcp.json", text, expect![[r#"
        ~/.cursor/mcp.json:
          off                  left as it is: it is turned off there
          some                 left as it is: not all of its tools are open there (`includeTools`)
          all                  a 8080 (and 2 more arguments)
          odd                  left as it is: one of its arguments is no text
          none                 left as it is: it has neither a command nor an address
          text                 left as it is: it is no object
          empty                left as it is: its command is empty
        nothing is changed; with `--yes` these are taken over, and with `--remove` also taken out of the configuration of Cursor
    "#]]).await;
}
