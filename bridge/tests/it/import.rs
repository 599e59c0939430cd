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
          github               npx -y @modelcontextprotocol/server-github --api-key …, with GITHUB_TOKEN
          My Server (prod)     as `my-server-prod` http://127.0.0.1:1/mcp, with X-Key
          linear               left as it is: it needs the variable `LINEAR_TOKEN`, which isn't set here
          weather-service      left as it is: there is a server `weather-service` already
        nothing is changed; with `--yes` these are taken over, and with `--remove` also taken out of the configuration of Codex
    "#]]).await;
}

#[tokio::test]
async fn of_opencode() {
    shows("opencode", ".config/opencode/opencode.jsonc", OPENCODE, expect![[r#"
        ~/.config/opencode/opencode.jsonc:
          files                npx -y files, with ROOT
          remote               http://127.0.0.1:1/mcp
        nothing is changed; with `--yes` these are taken over, and with `--remove` also taken out of the configuration of OpenCode
    "#]]).await;
}

#[tokio::test]
async fn of_cline() {
    shows("cline", ".cline/data/settings/cline_mcp_settings.json", CLINE, expect![[r#"
        ~/.cline/data/settings/cline_mcp_settings.json:
          nested               node server.js
          old                  left as it is: it speaks over HTTP+SSE, which newer versions of the protocol have replaced
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
              My Server (prod)     as `my-server-prod` http://127.0.0.1:1/mcp
              my-server-prod       left as it is: there is a server `my-server-prod` already
            `my-server-prod` is kept, but can't be used yet
            warning: could not ask server `my-server-prod` at `http://127.0.0.1:1` for `initialize`: connection refused; check that it runs and that its URL is right
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
    let home = Home::new();
    home.write(".codex/config.toml", CODEX);
    home.says("servers import codex --yes --remove", 0, expect![[r#"
        ~/.codex/config.toml:
          github               npx -y @modelcontextprotocol/server-github --api-key …, with GITHUB_TOKEN
          My Server (prod)     as `my-server-prod` http://127.0.0.1:1/mcp, with X-Key
          linear               left as it is: it needs the variable `LINEAR_TOKEN`, which isn't set here
          weather-service      left as it is: there is a server `weather-service` already
        `github` is kept, but can't be used yet
        `my-server-prod` is kept, but can't be used yet
        they are taken out of ~/.codex/config.toml
        warning: server `github` ended with exit code 127, so `initialize` got no answer (its last words: `sh: 1: mcp-server-github: not found / npm notice / npm notice New minor version of npm available! 11.19.1 -> 11.21.2 / npm notice Changelog: https://github.com/npm/cli/releases/tag/v11.21.2 / npm notice To update run: npm install -g npm@11.21.2 / npm notice`); check its command and what its environment needs
        warning: could not ask server `my-server-prod` at `http://127.0.0.1:1` for `initialize`: connection refused; check that it runs and that its URL is right
    "#]]).await;
    expect![[r#"
        model = "gpt-5.5"

        [mcp_servers.clopen-mcp]
        url = "http://127.0.0.1:9151/mcp"

        [mcp_servers.linear]
        url = "https://127.0.0.1:1/mcp"
        bearer_token_env_var = "LINEAR_TOKEN"

        [mcp_servers.weather-service]
        command = "weather"
    "#]]
    .assert_eq(&home.read(".codex/config.toml"));
    home.says("servers list", 0, expect![[r#"
        api-gateway          1.0.0     on
        database             1.0.0     on  not available: the environment variable `DATABASE_URL` is not set: set it to `sqlite:path` or `postgres://user:password@host/name`
        file-utils           1.0.0     on
        github                         on  external, from Codex  not available: it has not told its tools yet; `clopen-mcp servers check github` asks it
        my-server-prod                 on  external, from Codex  not available: it has not told its tools yet; `clopen-mcp servers check my-server-prod` asks it
        results              1.0.0     on
        weather-service      1.0.0     on
    "#]]).await;
    home.works("connect --undo").await;
    assert_eq!(home.read(".codex/config.toml"), CODEX);
    home.works("servers remove github").await;
    // What is secret is sealed, also in what SQLite has not tidied up yet.
    let data = std::fs::read_dir(home.0.folder.path().join("data")).expect("it is there");
    for file in data.filter_map(|it| std::fs::read(it.ok()?.path()).ok()) {
        let file = String::from_utf8_lossy(&file);
        for secret in ["planted-secret-2", "planted-secret-4"] {
            assert!(!file.contains(secret), "{secret} is in the data folder");
        }
    }
}
