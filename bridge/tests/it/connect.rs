//! Connecting engines, in a home folder of the test's own.

use crate::{
    bridge::TOKEN,
    cli::{Here, Said},
};
use clopen_mcp::engines::ENGINES;
use expect_test::{Expect, expect};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// A person's home folder, with the binary.
pub(crate) struct Home(pub(crate) Here);

impl Home {
    pub(crate) fn new() -> Self {
        let here = Here::new();
        let home = here.folder.path().join("home");
        fs::create_dir(&home).expect("it can be made");
        let home = home.to_str().expect("it is UTF-8").to_owned();
        Self(
            here.with("HOME", &home)
                .with("CLOPEN_MCP_LISTEN", "127.0.0.1:9151"),
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.folder.path().join("home").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let file = self.path(name);
        fs::create_dir_all(file.parent().expect("it is in a folder")).expect("they can be made");
        fs::write(file, text).expect("it can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("it is there")
    }

    pub(crate) async fn run(&self, line: &str) -> Said {
        let arguments: Vec<&str> = line.split(' ').collect();
        self.0.run(&arguments).await
    }

    /// Runs a command that works.
    pub(crate) async fn works(&self, line: &str) -> Said {
        let said = self.run(line).await;
        assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
        said
    }

    /// Runs a command, and checks everything that it prints.
    pub(crate) async fn says(&self, line: &str, code: i32, expected: Expect) {
        let said = self.run(line).await;
        expected.assert_eq(&format!("{}{}", said.stdout, said.stderr));
        assert_eq!(said.code, Some(code));
    }

    /// All files with what stands in them; those that only their owner reads are marked. Tokens are left out.
    pub(crate) fn files(&self) -> String {
        let mut files = Vec::new();
        collect(&self.path(""), &mut files);
        files.sort();
        let shown = files.iter().map(|file| {
            let name = file.strip_prefix(self.path("")).expect("it is in it");
            let metadata = fs::metadata(file).expect("it is there");
            let is_private = metadata.permissions().mode() & 0o777 == 0o600;
            let private = if is_private { " (private)" } else { "" };
            let text = fs::read_to_string(file).expect("it is text");
            format!("{}{private}\n{}", name.display(), without_tokens(&text))
        });
        shown.collect::<Vec<_>>().join("\n")
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            collect(&path, files);
            // A folder that was made and is empty would be left behind.
            if fs::read_dir(&path).expect("it is there").next().is_none() {
                files.push(path.join("EMPTY"));
            }
        } else {
            files.push(path);
        }
    }
}

fn without_tokens(text: &str) -> String {
    let mut parts = text.split("cmcp_");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_of_token = |it: char| it.is_ascii_alphanumeric() || "_-".contains(it);
        shown.push_str("TOKEN");
        shown.push_str(part.trim_start_matches(is_of_token));
    }
    shown
}

/// Connects an engine in an empty home folder, twice, and takes it back in both ways.
async fn connects(engine: &str, expected: Expect) {
    connects_in(&Home::new(), engine, &[], expected).await;
}

/// Does the same in this home folder, with these flags.
pub(crate) async fn connects_in(home: &Home, engine: &str, flags: &[&str], expected: Expect) {
    let connect = [&["connect", engine], flags].concat().join(" ");
    home.works(&format!("{connect} --dry-run")).await;
    assert_eq!(home.files(), "");
    home.works(&connect).await;
    let files = home.files();
    expected.assert_eq(&files);
    let again = home.works(&format!("connect {engine}")).await;
    assert!(
        again.stdout.contains("is connected already"),
        "{}",
        again.stdout
    );
    assert_eq!(home.files(), files);
    home.works(&format!("disconnect {engine}")).await;
    assert_eq!(home.files(), "");
    home.works(&connect).await;
    home.works("connect --undo").await;
    assert_eq!(home.files(), "");
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
              "url": "http://127.0.0.1:9151/mcp?engine=claude",
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
async fn cline() {
    connects(
        "cline",
        expect![[r#"
        .cline/data/settings/cline_mcp_settings.json (private)
        {
          "mcpServers": {
            "clopen-mcp": {
              "transport": {
                "type": "streamableHttp",
                "url": "http://127.0.0.1:9151/mcp?engine=cline",
                "headers": {
                  "Authorization": "Bearer TOKEN"
                }
              }
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
        url = "http://127.0.0.1:9151/mcp?engine=codex"
        required = true
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
            url: http://127.0.0.1:9151/mcp?engine=continue
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
              "url": "http://127.0.0.1:9151/mcp?engine=copilot",
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
async fn cursor() {
    connects(
        "cursor",
        expect![[r#"
        .cursor/mcp.json
        {
          "mcpServers": {
            "clopen-mcp": {
              "url": "http://127.0.0.1:9151/mcp?engine=cursor",
              "headers": {
                "Authorization": "Bearer ${env:CLOPEN_TOKEN}"
              }
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
              "url": "http://127.0.0.1:9151/mcp?engine=gemini",
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
            uri: http://127.0.0.1:9151/mcp?engine=goose
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
              "url": "http://127.0.0.1:9151/mcp?engine=opencode",
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
async fn pi() {
    connects(
        "pi",
        expect![[r#"
        .pi/agent/mcp.json
        {
          "mcpServers": {
            "clopen-mcp": {
              "url": "http://127.0.0.1:9151/mcp?engine=pi",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              },
              "exposure": "direct"
            }
          }
        }
    "#]],
    )
    .await;
}

#[tokio::test]
async fn qwen() {
    connects(
        "qwen",
        expect![[r#"
        .qwen/settings.json
        {
          "mcpServers": {
            "clopen-mcp": {
              "httpUrl": "http://127.0.0.1:9151/mcp?engine=qwen",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              },
              "alwaysLoadTools": true
            }
          },
          "permissions": {
            "allow": [
              "mcp__clopen-mcp__list_services",
              "mcp__clopen-mcp__count_lines",
              "mcp__clopen-mcp__read_result",
              "mcp__clopen-mcp__get_temperature"
            ]
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
              "url": "http://127.0.0.1:9151/mcp?engine=vscode",
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
async fn windsurf() {
    connects(
        "windsurf",
        expect![[r#"
        .codeium/windsurf/mcp_config.json
        {
          "mcpServers": {
            "clopen-mcp": {
              "serverUrl": "http://127.0.0.1:9151/mcp?engine=windsurf",
              "headers": {
                "Authorization": "Bearer ${env:CLOPEN_TOKEN}"
              }
            }
          }
        }
    "#]],
    )
    .await;
}

#[tokio::test]
async fn zed() {
    connects(
        "zed",
        expect![[r#"
        .config/zed/settings.json (private)
        {
          "context_servers": {
            "clopen-mcp": {
              "url": "http://127.0.0.1:9151/mcp?engine=zed",
              "headers": {
                "Authorization": "Bearer TOKEN"
              }
            }
          }
        }
    "#]],
    )
    .await;
}

/// Connects an engine that has settings already; they are the same bytes after `disconnect`, and after `--undo`.
async fn keeps(engine: &str, file: &str, text: &str, expected: Expect) {
    let home = Home::new();
    home.write(file, text);
    home.works(&format!("connect {engine}")).await;
    let connected = home.read(file);
    expected.assert_eq(&without_tokens(&connected));
    home.works(&format!("disconnect {engine}")).await;
    assert_eq!(home.read(file), text);
    home.works(&format!("connect {engine}")).await;
    home.works("connect --undo").await;
    assert_eq!(home.read(file), text);

    // What somebody else wrote meanwhile stays, and our entry goes.
    home.works(&format!("connect {engine}")).await;
    let connected = home.read(file);
    let marked = match file.rsplit('.').next() {
        Some("toml" | "yaml") => format!("{connected}# by hand\n"),
        _ => format!("{connected}\n"),
    };
    home.write(file, &marked);
    let undone = home.run("connect --undo").await;
    assert_eq!(undone.code, Some(3), "{}", undone.stderr);
    assert!(
        undone.stderr.contains("was changed after that"),
        "{}",
        undone.stderr
    );
    assert_eq!(home.read(file), marked);
    home.works(&format!("disconnect {engine}")).await;
    assert!(!home.read(file).contains("clopen"), "{}", home.read(file));
}

#[tokio::test]
async fn comments_and_order_of_codex_are_kept() {
    let text = "# mine\nmodel = \"gpt-5.5\"   # fast\n\n[mcp_servers.other]\ncommand = 'npx' # a comment\n\n[analytics]\nenabled = false\n";
    keeps(
        "codex",
        ".codex/config.toml",
        text,
        expect![[r##"
        # mine
        model = "gpt-5.5"   # fast

        [mcp_servers.other]
        command = 'npx' # a comment

        [mcp_servers.clopen-mcp]
        url = "http://127.0.0.1:9151/mcp?engine=codex"
        required = true
        bearer_token_env_var = "CLOPEN_TOKEN"

        [analytics]
        enabled = false
    "##]],
    )
    .await;
}

#[tokio::test]
async fn comments_of_opencode_are_kept() {
    let text = "{\n  // mine\n  \"mcp\": {\n    \"other\": { \"type\": \"local\" }, // keep\n  },\n  \"share\": \"disabled\",\n}\n";
    keeps(
        "opencode",
        ".config/opencode/opencode.jsonc",
        text,
        expect![[r#"
            {
              // mine
              "mcp": {
                "other": { "type": "local" }, // keep
                "clopen-mcp": {
                  "type": "remote",
                  "url": "http://127.0.0.1:9151/mcp?engine=opencode",
                  "headers": {
                    "Authorization": "Bearer {env:CLOPEN_TOKEN}"
                  },
                  "oauth": false,
                  "enabled": true
                },
              },
              "share": "disabled",
            }
        "#]],
    )
    .await;
}

#[tokio::test]
async fn the_others_of_continue_are_kept() {
    let text = "name: mine\nversion: 0.1.0\nschema: v1\nmcpServers:\n  # the first\n  - name: other\n    command: npx\nmodels: []\n";
    keeps(
        "continue",
        ".continue/config.yaml",
        text,
        expect![[r#"
        name: mine
        version: 0.1.0
        schema: v1
        mcpServers:
          # the first
          - name: other
            command: npx
          - name: clopen-mcp
            type: streamable-http
            url: http://127.0.0.1:9151/mcp?engine=continue
            requestOptions:
              headers:
                Authorization: "Bearer ${{ secrets.CLOPEN_TOKEN }}"
        models: []
    "#]],
    )
    .await;
}

#[tokio::test]
async fn the_state_of_claude_is_kept() {
    let text = "{\"numStartups\":12,\"mcpServers\":{},\"big\":12345678901234567890}";
    keeps("claude", ".claude.json", text, expect![[r#"{"numStartups":12,"mcpServers":{"clopen-mcp":{"type":"http","url":"http://127.0.0.1:9151/mcp?engine=claude","headers":{"Authorization":"Bearer ${CLOPEN_TOKEN}"},"alwaysLoad":true}},"big":12345678901234567890}"#]]).await;
}

/// Tries to connect an engine whose file can't be changed; it stays as it is, and the place is named.
async fn refuses(engine: &str, file: &str, text: &str, expected: Expect) {
    let home = Home::new();
    home.write(file, text);
    home.says(&format!("connect {engine}"), 3, expected).await;
    assert_eq!(home.read(file), text);
    let tokens: Value =
        serde_json::from_str(&home.works("tokens list --json").await.stdout).expect("it is JSON");
    let live = tokens["tokens"].as_array().expect("it is a list").iter();
    assert_eq!(
        live.filter(|it| it["revokedAt"].is_null()).count(),
        0,
        "{tokens}"
    );
}

#[tokio::test]
async fn eng_245_broken_file() {
    refuses(
        "cursor",
        ".cursor/mcp.json",
        "{ \"mcpServers\": {,} }",
        expect![[r#"
            error: `FOLDER/home/.cursor/mcp.json` is left as it is: line 1, column 18: expected a key in double quotes or `}`
        "#]],
    )
    .await;
}

#[tokio::test]
async fn broken_toml() {
    refuses(
        "codex",
        ".codex/config.toml",
        "[mcp_servers\n",
        expect![[r#"
            error: `FOLDER/home/.codex/config.toml` is left as it is: line 1, column 13: unclosed table, expected `]`
        "#]],
    )
    .await;
}

#[tokio::test]
async fn broken_yaml() {
    refuses(
        "goose",
        ".config/goose/config.yaml",
        "extensions:\n  a: [1\n",
        expect![[r#"
            error: `FOLDER/home/.config/goose/config.yaml` is left as it is: line 3, column 1: while parsing a flow sequence, expected ',' or ']'
        "#]],
    )
    .await;
}

#[tokio::test]
async fn foreign_shape() {
    refuses(
        "zed",
        ".config/zed/settings.json",
        "{\n  \"context_servers\": []\n}\n",
        expect![[r#"
            error: `FOLDER/home/.config/zed/settings.json` is left as it is: line 2, column 22: expected an object
        "#]],
    )
    .await;
}

#[tokio::test]
async fn no_such_engine() {
    Home::new().says("connect emacs", 3, expect![[r#"
        error: there is no engine `emacs`; known are claude, cline, codex, continue, copilot, cursor, gemini, goose, opencode, pi, qwen, vscode, windsurf, zed
    "#]]).await;
}

#[tokio::test]
async fn no_file_of_a_project() {
    Home::new()
        .says(
            "connect cline --scope project",
            3,
            expect![[r#"
            error: Cline has no settings of a project; connect it with `--scope user`
        "#]],
        )
        .await;
}

#[tokio::test]
async fn a_diff_is_shown_without_tokens() {
    let home = Home::new();
    home.write(".codex/config.toml", "model = \"gpt-5.5\"\n");
    home.says(
        "connect codex --dry-run",
        0,
        expect![[r#"
            --- ~/.codex/config.toml
            +++ ~/.codex/config.toml
            @@ line 2 @@
            +
            +[mcp_servers.clopen-mcp]
            +url = "http://127.0.0.1:9151/mcp?engine=codex"
            +required = true
            +bearer_token_env_var = "CLOPEN_TOKEN"
        "#]],
    )
    .await;
    home.works("connect cline").await;
    home.works("tokens revoke connect-cline").await;
    home.says(
        "connect cline",
        0,
        expect![[r#"
            --- ~/.cline/data/settings/cline_mcp_settings.json
            +++ ~/.cline/data/settings/cline_mcp_settings.json
            @@ line 8 @@
            -          "Authorization": "…"
            +          "Authorization": "…"
            Cline is connected
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_project_goes_into_the_address() {
    let home = Home::new();
    let project = home.0.folder.path().join("my project");
    fs::create_dir(&project).expect("it can be made");
    let project = project.to_str().expect("it is UTF-8");
    let said = home
        .0
        .run(&["connect", "claude", "--project", project])
        .await;
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let text = fs::read_to_string(Path::new(project).join(".mcp.json")).expect("it is there");
    let entry: Value = serde_json::from_str(&text).expect("it is JSON");
    let address = entry["mcpServers"]["clopen-mcp"]["url"]
        .as_str()
        .expect("it has one");
    let encoded = "%2Fmy+project";
    assert!(
        address.starts_with("http://127.0.0.1:9151/mcp?engine=claude&project="),
        "{address}"
    );
    assert!(address.ends_with(encoded), "{address}");
    assert_eq!(home.files(), "");
}

#[tokio::test]
async fn all_that_are_installed() {
    let home = Home::new();
    home.says(
        "connect --all",
        3,
        expect![[r#"
        error: no engine is installed here; name one, and it will find the bridge once it is
    "#]],
    )
    .await;
    home.write(".cursor/mcp.json", "{}");
    home.write(".codex/config.toml", "[broken\n");
    home.write(".gemini/settings.json", "{}");
    let said = home.run("connect --all").await;
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stderr.contains("error: Codex: "), "{}", said.stderr);
    assert!(
        said.stdout.contains("Cursor is connected"),
        "{}",
        said.stdout
    );
    assert!(
        said.stdout.contains("Gemini CLI is connected"),
        "{}",
        said.stdout
    );
}

#[tokio::test]
async fn every_engine_can_be_connected() {
    let home = Home::new();
    for engine in ENGINES {
        home.works(&format!("connect {}", engine.id)).await;
    }
    let said = home.works("engines --json").await;
    let engines: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    for engine in engines["engines"].as_array().expect("it is a list") {
        let connected = engine["connected"].as_array().expect("it is a list");
        assert_eq!(connected.len(), 1, "{engine}");
    }
}

#[tokio::test]
async fn what_keeps_engines_from_their_tools() {
    let home = Home::new();
    home.works("connect cline").await;
    home.works("connect claude").await;
    let problems = async |home: &Home| {
        let said = home.works("engines --json").await;
        let engines: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
        let engines = engines["engines"].as_array().expect("it is a list").clone();
        let problems = engines
            .iter()
            .flat_map(|it| it["problems"].as_array().into_iter().flatten());
        let lines: Vec<String> = problems
            .map(|it| format!("{}\n", it.as_str().expect("it is a text")))
            .collect();
        lines.concat()
    };
    expect![[r#"
        ~/.claude.json: CLOPEN_TOKEN isn't set in this environment; where it isn't set for Claude Code either, the bridge refuses it: export CLOPEN_TOKEN="$(cat 'FOLDER/data/token')"
    "#]].assert_eq(&problems(&home).await);
    home.works("tokens revoke connect-cline").await;
    expect![[r#"
        ~/.claude.json: CLOPEN_TOKEN isn't set in this environment; where it isn't set for Claude Code either, the bridge refuses it: export CLOPEN_TOKEN="$(cat 'FOLDER/data/token')"
        the token in ~/.cline/data/settings/cline_mcp_settings.json is `connect-cline`, which is revoked; `clopen-mcp connect cline` writes a new one
    "#]].assert_eq(&problems(&home).await);
    let home = Home(
        home.0
            .with("CLOPEN_TOKEN", "cmcp_of-another-bridge")
            .with("CLOPEN_MCP_LISTEN", "127.0.0.1:9152"),
    );
    expect![[r#"
        ~/.claude.json: it looks for the bridge at http://127.0.0.1:9151/mcp, and this one is at http://127.0.0.1:9152/mcp
        the token in CLOPEN_TOKEN is none of this bridge's (another data folder?); make one with `clopen-mcp tokens create claude`, and set the variable to it
        ~/.cline/data/settings/cline_mcp_settings.json: it looks for the bridge at http://127.0.0.1:9151/mcp, and this one is at http://127.0.0.1:9152/mcp
        the token in ~/.cline/data/settings/cline_mcp_settings.json is `connect-cline`, which is revoked; `clopen-mcp connect cline` writes a new one
    "#]].assert_eq(&problems(&home).await);
    let home = Home(
        home.0
            .with("CLOPEN_MCP_TOKEN", TOKEN)
            .with("CLOPEN_TOKEN", TOKEN)
            .with("CLOPEN_MCP_LISTEN", "127.0.0.1:9151"),
    );
    home.works("connect cline").await;
    assert_eq!(problems(&home).await, "");
}

#[tokio::test]
async fn engines_are_listed() {
    let home = Home::new();
    home.works("connect codex").await;
    home.says("engines", 0, expect![[r#"
        claude     Claude Code  not found  not connected
        cline      Cline        not found  not connected
        codex      Codex        installed  connected
            user: ~/.codex/config.toml
            problem: ~/.codex/config.toml: CLOPEN_TOKEN isn't set in this environment; where it isn't set for Codex either, the bridge refuses it: export CLOPEN_TOKEN="$(cat 'FOLDER/data/token')"
        continue   Continue     not found  not connected
        copilot    Copilot CLI  not found  not connected
        cursor     Cursor       not found  not connected
        gemini     Gemini CLI   not found  not connected
        goose      Goose        not found  not connected
        opencode   OpenCode     not found  not connected
        pi         Pi           not found  not connected
        qwen       Qwen Code    not found  not connected
        vscode     VS Code      not found  not connected
        windsurf   Windsurf     not found  not connected
        zed        Zed          not found  not connected
    "#]]).await;
}

#[tokio::test]
async fn a_file_whose_copy_is_gone_stays() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{}");
    home.works("connect cursor").await;
    let connected = home.read(".cursor/mcp.json");
    let copy = home.0.folder.path().join("data/connections/1/0.before");
    fs::remove_file(copy).expect("it is there");
    home.says("connect --undo", 3, expect![[r#"
        error: `FOLDER/home/.cursor/mcp.json` stays as it is: the copy of what stood in it, `FOLDER/data/connections/1/0.before`, is gone
    "#]]).await;
    assert_eq!(home.read(".cursor/mcp.json"), connected);
}

#[tokio::test]
async fn what_was_done_last_is_undone_first() {
    let home = Home::new();
    home.works("connect codex").await;
    home.works("connect cursor").await;
    let connected = home.files();
    home.works("disconnect cursor").await;
    home.works("connect --undo").await;
    assert_eq!(home.files(), connected);
    home.works("connect --undo").await;
    home.works("connect --undo").await;
    assert_eq!(home.files(), "");
    home.says(
        "connect --undo",
        3,
        expect![[r#"
        error: there is nothing to undo
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_token_goes_with_its_connection() {
    let home = Home::new();
    let live = async || {
        let tokens = home.works("tokens list --json").await.stdout;
        let tokens: Value = serde_json::from_str(&tokens).expect("it is JSON");
        let tokens = tokens["tokens"].as_array().expect("it is a list").clone();
        tokens.iter().filter(|it| it["revokedAt"].is_null()).count()
    };
    home.works("connect cline").await;
    assert_eq!(live().await, 1);
    home.works("connect --undo").await;
    assert_eq!(live().await, 0);
    home.works("connect cline").await;
    home.works("disconnect cline").await;
    assert_eq!(live().await, 0);
    home.says("connect --undo", 0, expect![[r#"
        `FOLDER/home/.cline/data/settings/cline_mcp_settings.json` is as it was before `disconnect cline`
        its token `connect-cline-2` is revoked; `connect` once more writes a new one
    "#]]).await;
}

#[tokio::test]
async fn the_service_token_is_written_into_no_file() {
    let home = Home::new();
    let home = Home(
        home.0
            .with("CLOPEN_MCP_TOKEN", TOKEN)
            .with("CLOPEN_TOKEN", TOKEN),
    );
    home.works("connect zed").await;
    let settings = home.read(".config/zed/settings.json");
    assert!(!settings.contains(TOKEN), "{settings}");
    assert!(settings.contains("Bearer cmcp_"), "{settings}");
}

#[tokio::test]
async fn a_diff_shows_nothing_of_others() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers":{"x":{"env":{"API_KEY":"planted-1"}}}}"#,
    );
    home.write(".codex/config.toml", "API_KEY = \"planted-2\"");
    home.says("connect cursor --dry-run", 0, expect![[r#"
        --- ~/.cursor/mcp.json
        +++ ~/.cursor/mcp.json
        @@ line 1 @@
        -{"mcpServers":{"x":{"env":{"API_KEY":"…"}}}}
        +{"mcpServers":{"x":{"env":{"API_KEY":"…"}},"clopen-mcp":{"url":"…","headers":{"Authorization":"…"}}}}
    "#]])
        .await;
    home.says(
        "connect codex --dry-run",
        0,
        expect![[r#"
        --- ~/.codex/config.toml
        +++ ~/.codex/config.toml
        @@ line 2 @@
        +
        +[mcp_servers.clopen-mcp]
        +url = "http://127.0.0.1:9151/mcp?engine=codex"
        +required = true
        +bearer_token_env_var = "CLOPEN_TOKEN"
    "#]],
    )
    .await;
}
