//! External servers that come to an engine from an entry each.

use crate::{
    bridge::{Serving, profile},
    client::{Client, Era},
    connect::{Home, connects_in},
};
use expect_test::{Expect, expect};
use serde_json::json;

/// The tools of a server of the tests' own.
const GALLERY: [&str; 6] = [
    "text",
    "everything",
    "point",
    "numbers",
    "long_text",
    "light",
];

/// A person with two external servers, which can't be reached.
async fn with_two() -> Home {
    let home = Home::new();
    for server in ["git-tools", "memory"] {
        add(&home, server).await;
    }
    home
}

async fn add(home: &Home, server: &str) {
    home.works(&format!(
        "servers add {server} --url http://127.0.0.1:1/mcp"
    ))
    .await;
}

/// Connects an engine with an entry for each server, twice, and takes it back in both ways.
async fn connects(engine: &str, expected: Expect) {
    connects_in(&with_two().await, engine, &["--external", "each"], expected).await;
}

#[tokio::test]
async fn claude() {
    connects(
        "claude",
        expect![[r#"
        .claude/settings.json
        {
          "permissions": {
            "allow": [
              "mcp__clopen-mcp__list_services",
              "mcp__clopen-mcp__count_lines",
              "mcp__clopen-mcp__read_result",
              "mcp__clopen-mcp__get_temperature"
            ]
          }
        }

        .claude.json
        {
          "mcpServers": {
            "clopen-mcp": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp?engine=claude&without=git-tools&without=memory",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              },
              "alwaysLoad": true
            },
            "git-tools": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp/ext/git-tools?engine=claude",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              },
              "alwaysLoad": true
            },
            "memory": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp/ext/memory?engine=claude",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              },
              "alwaysLoad": true
            }
          }
        }
    "#]],
    )
    .await;
}

#[tokio::test]
async fn codex() {
    connects(
        "codex",
        expect![[r#"
            .codex/config.toml
            [mcp_servers.clopen-mcp]
            url = "http://127.0.0.1:9151/mcp?engine=codex&without=git-tools&without=memory"
            required = true
            bearer_token_env_var = "CLOPEN_TOKEN"

            [mcp_servers.git-tools]
            url = "http://127.0.0.1:9151/mcp/ext/git-tools?engine=codex"
            bearer_token_env_var = "CLOPEN_TOKEN"

            [mcp_servers.memory]
            url = "http://127.0.0.1:9151/mcp/ext/memory?engine=codex"
            bearer_token_env_var = "CLOPEN_TOKEN"
        "#]],
    )
    .await;
}

#[tokio::test]
async fn continue_dev() {
    connects(
        "continue",
        expect![[r#"
        .continue/config.yaml
        name: clopen-mcp
        version: "1.0.0"
        schema: v1
        mcpServers:
          - name: clopen-mcp
            type: streamable-http
            url: http://127.0.0.1:9151/mcp?engine=continue&without=git-tools&without=memory
            requestOptions:
              headers:
                Authorization: "Bearer ${{ secrets.CLOPEN_TOKEN }}"
          - name: git-tools
            type: streamable-http
            url: http://127.0.0.1:9151/mcp/ext/git-tools?engine=continue
            requestOptions:
              headers:
                Authorization: "Bearer ${{ secrets.CLOPEN_TOKEN }}"
          - name: memory
            type: streamable-http
            url: http://127.0.0.1:9151/mcp/ext/memory?engine=continue
            requestOptions:
              headers:
                Authorization: "Bearer ${{ secrets.CLOPEN_TOKEN }}"
    "#]],
    )
    .await;
}

#[tokio::test]
async fn copilot() {
    connects(
        "copilot",
        expect![[r#"
        .copilot/mcp-config.json
        {
          "mcpServers": {
            "clopen-mcp": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp?engine=copilot&without=git-tools&without=memory",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              },
              "tools": [
                "*"
              ]
            },
            "git-tools": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp/ext/git-tools?engine=copilot",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              },
              "tools": [
                "*"
              ]
            },
            "memory": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp/ext/memory?engine=copilot",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              },
              "tools": [
                "*"
              ]
            }
          }
        }
    "#]],
    )
    .await;
}

#[tokio::test]
async fn gemini() {
    connects("gemini", expect![[r#"
        .gemini/policies/clopen-mcp.toml
        rule = [{ toolName = "*", mcpName = "clopen-mcp", toolAnnotations = { readOnlyHint = true }, decision = "allow", priority = 100 }]

        .gemini/settings.json
        {
          "mcpServers": {
            "clopen-mcp": {
              "url": "http://127.0.0.1:9151/mcp?engine=gemini&without=git-tools&without=memory",
              "type": "http",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              }
            },
            "git-tools": {
              "url": "http://127.0.0.1:9151/mcp/ext/git-tools?engine=gemini",
              "type": "http",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              }
            },
            "memory": {
              "url": "http://127.0.0.1:9151/mcp/ext/memory?engine=gemini",
              "type": "http",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              }
            }
          }
        }
    "#]]).await;
}

#[tokio::test]
async fn goose() {
    connects(
        "goose",
        expect![[r#"
        .config/goose/config.yaml (private)
        extensions:
          clopen-mcp:
            enabled: true
            type: streamable_http
            name: clopen-mcp
            description: The tools of clopen-mcp
            uri: http://127.0.0.1:9151/mcp?engine=goose&without=git-tools&without=memory
            headers:
              Authorization: Bearer TOKEN
            timeout: 300
          git-tools:
            enabled: true
            type: streamable_http
            name: git-tools
            description: The tools of git-tools
            uri: http://127.0.0.1:9151/mcp/ext/git-tools?engine=goose
            headers:
              Authorization: Bearer TOKEN
            timeout: 300
          memory:
            enabled: true
            type: streamable_http
            name: memory
            description: The tools of memory
            uri: http://127.0.0.1:9151/mcp/ext/memory?engine=goose
            headers:
              Authorization: Bearer TOKEN
            timeout: 300
    "#]],
    )
    .await;
}

#[tokio::test]
async fn opencode() {
    connects(
        "opencode",
        expect![[r#"
        .config/opencode/opencode.json
        {
          "mcp": {
            "clopen-mcp": {
              "type": "remote",
              "url": "http://127.0.0.1:9151/mcp?engine=opencode&without=git-tools&without=memory",
              "headers": {
                "Authorization": "Bearer {env:CLOPEN_TOKEN}"
              },
              "oauth": false,
              "enabled": true
            },
            "git-tools": {
              "type": "remote",
              "url": "http://127.0.0.1:9151/mcp/ext/git-tools?engine=opencode",
              "headers": {
                "Authorization": "Bearer {env:CLOPEN_TOKEN}"
              },
              "oauth": false,
              "enabled": true
            },
            "memory": {
              "type": "remote",
              "url": "http://127.0.0.1:9151/mcp/ext/memory?engine=opencode",
              "headers": {
                "Authorization": "Bearer {env:CLOPEN_TOKEN}"
              },
              "oauth": false,
              "enabled": true
            }
          }
        }
    "#]],
    )
    .await;
}

#[tokio::test]
async fn vscode() {
    connects(
        "vscode",
        expect![[r#"
        .config/Code/User/mcp.json
        {
          "servers": {
            "clopen-mcp": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp?engine=vscode&without=git-tools&without=memory",
              "headers": {
                "Authorization": "Bearer ${input:clopen-mcp-token}"
              }
            },
            "git-tools": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp/ext/git-tools?engine=vscode",
              "headers": {
                "Authorization": "Bearer ${input:clopen-mcp-token}"
              }
            },
            "memory": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp/ext/memory?engine=vscode",
              "headers": {
                "Authorization": "Bearer ${input:clopen-mcp-token}"
              }
            }
          },
          "inputs": [
            {
              "type": "promptString",
              "id": "clopen-mcp-token",
              "description": "The token of clopen-mcp",
              "password": true
            }
          ]
        }
    "#]],
    )
    .await;
}

#[tokio::test]
async fn entries_follow_the_servers() {
    let home = with_two().await;
    home.write(
        ".codex/config.toml",
        "[mcp_servers.mine]\ncommand = \"npx\" # by hand\n",
    );
    home.works("connect codex --external each").await;
    home.works("servers remove git-tools").await;
    add(&home, "time").await;
    home.works("servers disable memory").await;
    home.works("connect codex").await;
    expect![[r#"
        [mcp_servers.mine]
        command = "npx" # by hand

        [mcp_servers.clopen-mcp]
        url = "http://127.0.0.1:9151/mcp?engine=codex&without=time"
        required = true
        bearer_token_env_var = "CLOPEN_TOKEN"

        [mcp_servers.time]
        url = "http://127.0.0.1:9151/mcp/ext/time?engine=codex"
        bearer_token_env_var = "CLOPEN_TOKEN"
    "#]]
    .assert_eq(&home.read(".codex/config.toml"));
    home.works("connect codex --external merged").await;
    expect![[r#"
        [mcp_servers.mine]
        command = "npx" # by hand

        [mcp_servers.clopen-mcp]
        url = "http://127.0.0.1:9151/mcp?engine=codex"
        required = true
        bearer_token_env_var = "CLOPEN_TOKEN"
    "#]]
    .assert_eq(&home.read(".codex/config.toml"));
    home.works("disconnect codex").await;
    assert_eq!(
        home.read(".codex/config.toml"),
        "[mcp_servers.mine]\ncommand = \"npx\" # by hand\n"
    );
}

#[tokio::test]
async fn what_was_connected_last_is_undone_alone() {
    let home = with_two().await;
    home.works("connect opencode").await;
    let merged = home.files();
    home.works("connect opencode --external each").await;
    home.works("connect --undo").await;
    assert_eq!(home.files(), merged);
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused() {
    let home = with_two().await;
    let text =
        r#"{"mcpServers":{"memory":{"url":"http://127.0.0.1:9151/mcp/ext/other?engine=cursor"}}}"#;
    home.write(".cursor/mcp.json", text);
    home.says("connect cursor --external each", 3, expect![[r#"
        error: `FOLDER/home/.cursor/mcp.json` has a server `memory` that isn't this bridge's; rename it there, or connect with `--external merged`
    "#]])
        .await;
    assert_eq!(home.read(".cursor/mcp.json"), text);
    home.works("connect cursor").await;
    home.works("disconnect cursor").await;
    assert_eq!(home.read(".cursor/mcp.json"), text);
}

#[tokio::test]
async fn without_servers_there_is_no_entry() {
    let home = Home::new();
    home.says(
        "connect codex --external each --dry-run",
        0,
        expect![[r#"
            --- ~/.codex/config.toml
            +++ ~/.codex/config.toml
            @@ line 1 @@
            +[mcp_servers.clopen-mcp]
            +url = "http://127.0.0.1:9151/mcp?engine=codex"
            +required = true
            +bearer_token_env_var = "CLOPEN_TOKEN"
            there are no external servers that are on; `connect codex --external each` once there are
        "#]],
    )
    .await;
}

#[tokio::test]
async fn our_entries_are_not_taken_over() {
    let home = with_two().await;
    home.works("connect claude --external each").await;
    home.says(
        "servers import claude",
        0,
        expect![[r#"
        there is no other server in the configuration of Claude Code
    "#]],
    )
    .await;
}

#[tokio::test]
async fn engines_say_what_is_wrong_with_entries() {
    let home = with_two().await;
    let home = Home(home.0.with("CLOPEN_MCP_NO_AUTH", "true"));
    home.works("connect cline --external each").await;
    let of_cline = async || {
        let said = home.works("engines").await.stdout;
        let lines = said.lines().skip_while(|it| !it.starts_with("cline"));
        let lines: Vec<&str> = lines.take_while(|it| !it.starts_with("codex")).collect();
        lines.join("\n")
    };
    expect![[r#"
        cline      Cline        installed  connected
            user: ~/.cline/data/settings/cline_mcp_settings.json, with an entry each for git-tools, memory"#]].assert_eq(&of_cline().await);
    home.works("servers remove git-tools").await;
    let file = ".cline/data/settings/cline_mcp_settings.json";
    let text = home.read(file).replace("&without=memory", "");
    home.write(file, &text);
    expect![[r#"
        cline      Cline        installed  connected
            user: ~/.cline/data/settings/cline_mcp_settings.json, with an entry each for git-tools, memory
            problem: ~/.cline/data/settings/cline_mcp_settings.json: there is no external server `git-tools` any more, and an entry for it; `clopen-mcp connect cline` puts it right
            problem: ~/.cline/data/settings/cline_mcp_settings.json: the tools of `memory` are there twice; `clopen-mcp connect cline` puts it right"#]].assert_eq(&of_cline().await);
    home.write(
        file,
        &text.replace("127.0.0.1:9151/mcp/ext", "127.0.0.1:9152/mcp/ext"),
    );
    expect![[r#"
        cline      Cline        installed  connected
            user: ~/.cline/data/settings/cline_mcp_settings.json, with an entry each for git-tools, memory
            problem: ~/.cline/data/settings/cline_mcp_settings.json: there is no external server `git-tools` any more, and an entry for it; `clopen-mcp connect cline` puts it right
            problem: ~/.cline/data/settings/cline_mcp_settings.json: the entry `memory` leads to http://127.0.0.1:9152/mcp/ext/memory, and ours to http://127.0.0.1:9151/mcp; `clopen-mcp connect cline` puts it right"#]].assert_eq(&of_cline().await);
    home.works("connect cline").await;
    expect![[r#"
        cline      Cline        installed  connected
            user: ~/.cline/data/settings/cline_mcp_settings.json, with an entry each for memory"#]]
    .assert_eq(&of_cline().await);
}

#[tokio::test]
async fn an_address_leaves_servers_out() {
    let bridge = Serving::start("").await;
    for era in [Era::Legacy("2025-11-25"), Era::Modern] {
        let all = bridge.client(era).await.names("tools").await;
        let url = format!("{}?engine=codex&without=gallery&without=gone", bridge.url());
        let client = Client::http(&url, profile(era)).await;
        let names = client.names("tools").await;
        let left = all.iter().map(String::as_str);
        let left = left.filter(|it| !GALLERY.contains(it));
        assert_eq!(names, left.collect::<Vec<_>>());
        assert_eq!(names.len() + GALLERY.len(), all.len());
        let reply = client.call("text", json!({})).await;
        assert_eq!(reply.error()["code"], -32602, "{}", reply.message);
    }
}
