//! The command line of the real binary.

use crate::{
    bridge::TOKEN,
    client::{Client, Era, Profile, binary},
    serving::Program,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::{fs, process::Stdio};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, process::Command};

/// A folder in which the binary is called.
pub(crate) struct Here {
    pub(crate) folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Here {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("the temporary folder can be written");
        fs::write(folder.path().join("poem.txt"), "one\ntwo\n").expect("it can be written");
        Self {
            folder,
            variables: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    pub(crate) fn settings(self, text: &str) -> Self {
        let file = self.folder.path().join("clopen-mcp.toml");
        fs::write(file, text).expect("it can be written");
        self
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = binary(self.folder.path());
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command.args(arguments).kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, "").await
    }

    pub(crate) async fn run_with(&self, arguments: &[&str], input: &str) -> Said {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        // A command that reads nothing may have ended before.
        drop(stdin.write_all(input.as_bytes()).await);
        drop(stdin);
        let output = crate::client::soon(child.wait_with_output()).await;
        let output = output.expect("it ends");
        Said {
            code: output.status.code(),
            stdout: self.plain(&output.stdout),
            stderr: self.plain(&output.stderr),
        }
    }

    /// A text without what differs from run to run.
    pub(crate) fn plain(&self, text: &[u8]) -> String {
        let text = String::from_utf8(text.to_vec()).expect("it is UTF-8");
        let folder = self.folder.path();
        let canonical = folder.canonicalize().expect("it is there");
        text.replace(&canonical.display().to_string(), "FOLDER")
            .replace(&folder.display().to_string(), "FOLDER")
            .replace(env!("CARGO_PKG_VERSION"), "VERSION")
    }

    /// Checks the exit code and everything that is printed.
    pub(crate) async fn says(&self, arguments: &[&str], code: i32, expected: Expect) {
        let said = self.run(arguments).await;
        expected.assert_eq(&format!("{}{}", said.stdout, said.stderr));
        assert_eq!(said.code, Some(code));
    }

    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        let said = self.run(arguments).await;
        serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{}", said.stderr))
    }
}

#[tokio::test]
async fn help() {
    Here::new().says(&["--help"], 0, expect![[r#"
        One bridge between your tools and every coding agent.

        Without a command it serves. Exit codes: 0 it worked; 1 it ran and says no (a tool failed, `doctor`
        found something); 2 the command line is wrong; 3 it could not run.

        Usage: clopen-mcp [OPTIONS] [COMMAND]

        Commands:
          serve       Serve MCP over HTTP at /mcp
          stdio       Serve one client over standard input and output, for hosts that start a subprocess
          tools       List, show and call tools
          servers     List servers, and switch them and their tools on and off
          engines     List the coding agents: which are here, connected, and seen, and what keeps them from
                      their tools
          connect     Connect a coding agent: write our entry into its configuration
          disconnect  Take our entry out of the configuration of a coding agent
          auth        Sign in to external servers, and out
          tokens      Create, list and revoke tokens
          data        Export, import, back up and reset what is in the database
          doctor      Check the whole path from the settings to a list of tools, and say what to do
          help        Print this message or the help of the given subcommand(s)

        Options:
          -h, --help
                  Print help (see a summary with '-h')

          -V, --version
                  Print version

        Settings:
              --config <FILE>
                  Settings file [default: ./clopen-mcp.toml, or the one in the folder for settings] [env:
                  CLOPEN_MCP_CONFIG]

              --listen <HOST:PORT>
                  Address to listen on [default: 127.0.0.1:9151] [env: CLOPEN_MCP_LISTEN]

              --data <DIR>
                  Folder for everything that outlives the process [env: CLOPEN_MCP_DATA]

              --no-auth
                  Take calls without a token; only on a loopback address [env: CLOPEN_MCP_NO_AUTH]

              --allowed-host <HOST[:PORT]>
                  Host name that requests may be addressed to, besides this machine's own [env:
                  CLOPEN_MCP_ALLOWED_HOSTS]

              --allowed-origin <ORIGIN>
                  Web origin that may call, besides this machine's own [env: CLOPEN_MCP_ALLOWED_ORIGINS]

              --skills <DIR>
                  Folder of skills to serve [env: CLOPEN_MCP_SKILLS]
    "#]]).await;
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "nearly all of it is the snapshot")]
async fn help_of_each_command() {
    let here = Here::new();
    let mut all = String::new();
    for command in [
        &["serve"][..],
        &["stdio"],
        &["tools"],
        &["auth"],
        &["auth", "login"],
        &["servers"],
        &["tools", "list"],
        &["tools", "show"],
        &["tools", "call"],
        &["tokens"],
        &["tokens", "create"],
        &["tokens", "list"],
        &["tokens", "revoke"],
        &["doctor"],
    ] {
        let mut arguments = command.to_vec();
        arguments.push("-h");
        let said = here.run(&arguments).await;
        assert_eq!(said.code, Some(0));
        // The settings are the same for all.
        let own = said.stdout.split("\nSettings:").next().unwrap_or_default();
        all.push_str(own);
        all.push_str("----\n");
    }
    expect![[r#"
        Serve MCP over HTTP at /mcp

        Usage: clopen-mcp serve [OPTIONS]

        Options:
          -h, --help  Print help
        ----
        Serve one client over standard input and output, for hosts that start a subprocess

        Usage: clopen-mcp stdio [OPTIONS]

        Options:
              --engine <ENGINE>    Engine that calls, for example `codex`
              --project <PROJECT>  Project that it works on
              --session <SESSION>  Conversation that it is
          -h, --help               Print help
        ----
        List, show and call tools

        Usage: clopen-mcp tools [OPTIONS] <COMMAND>

        Commands:
          list  List the tools that can be called
          show  Show a tool: what it does, what it takes, what it gives
          call  Call a tool; exits with 1 if the tool fails
          help  Print this message or the help of the given subcommand(s)

        Options:
          -h, --help  Print help
        ----
        Sign in to external servers, and out

        Usage: clopen-mcp auth [OPTIONS] <COMMAND>

        Commands:
          login    Sign in to an external server, for all engines
          logout   Sign out, and take the token back where that is offered
          status   List who has signed in to what
          refresh  Renew a token now
          help     Print this message or the help of the given subcommand(s)

        Options:
          -h, --help  Print help
        ----
        Sign in to an external server, for all engines

        Usage: clopen-mcp auth login [OPTIONS] <SERVER>

        Arguments:
          <SERVER>  The server

        Options:
              --account <NAME>          What the account is called here; calls use the one that was signed
                                        in last [default: default]
              --token <NAME>            Sign in for the calls of this token, instead of those of your own
                                        engines
              --client-id <ID>          The id of a client that you have registered with the authorization
                                        server
              --client-secret <SECRET>  Its secret
              --scope <SCOPE>           A scope to ask for, instead of those that the server names
              --new-client              Register a client anew, if the authorization server doesn't know the
                                        old one any more
              --no-browser              Only print the address, and open nothing
          -h, --help                    Print help
        ----
        List servers, and switch them and their tools on and off

        Usage: clopen-mcp servers [OPTIONS] <COMMAND>

        Commands:
          list     List the servers, and what is off
          add      Add an external server, of a registry or by hand, and ask it for its tools
          show     Show a server: where it comes from, what is started or reached for it, what state it is
                   in
          tools    List the tools of a server, and which are on
          set      Change what an external server of a registry was told
          import   Take over the servers that stand in the configuration of an engine
          check    Ask external servers for their tools, and say what is wrong with each and what to do
          logs     Show what the program of an external server has written to its error output
          approve  Approve an external server's tools as they are; what changes later is held back
          remove   Remove an external server
          enable   Switch a server or one of its tools on; a running bridge takes it up at once
          disable  Switch a server or one of its tools off; a running bridge takes it up at once
          sync     Fetch what the registries offer
          search   Find servers that the registries offer
          info     Show a server of a registry: what it is, what it wants to know, what can be used here
          help     Print this message or the help of the given subcommand(s)

        Options:
          -h, --help  Print help
        ----
        List the tools that can be called

        Usage: clopen-mcp tools list [OPTIONS]

        Options:
              --json  Print JSON, as `tools/list` gives it
          -h, --help  Print help
        ----
        Show a tool: what it does, what it takes, what it gives

        Usage: clopen-mcp tools show [OPTIONS] <NAME>

        Arguments:
          <NAME>  Any spelling of its name

        Options:
              --engine <ENGINE>  Show it as this engine is given it
              --json             Print JSON, as `tools/list` gives it
          -h, --help             Print help
        ----
        Call a tool; exits with 1 if the tool fails

        Usage: clopen-mcp tools call [OPTIONS] <NAME> [ARGUMENTS]

        Arguments:
          <NAME>       Any spelling of its name
          [ARGUMENTS]  Its arguments, a JSON object; `-` reads them from standard input [default: {}]

        Options:
              --project <PROJECT>  Project that the call comes from
              --json               Print JSON, as `tools/call` gives it
          -h, --help               Print help
        ----
        Create, list and revoke tokens

        Usage: clopen-mcp tokens [OPTIONS] <COMMAND>

        Commands:
          create  Create a token for a project or a program, and print it once
          list    List all tokens, without their secrets
          revoke  Revoke a token, by its name or id; it is refused from then on
          help    Print this message or the help of the given subcommand(s)

        Options:
          -h, --help  Print help
        ----
        Create a token for a project or a program, and print it once

        Usage: clopen-mcp tokens create [OPTIONS] <NAME>

        Arguments:
          <NAME>  A name to recognize it by

        Options:
              --server <SERVER>    A server that it reaches; all, if none is named
              --read-only          Let it use only tools that say they change nothing
              --project <PROJECT>  The project that its calls come from
              --json               Print JSON
          -h, --help               Print help
        ----
        List all tokens, without their secrets

        Usage: clopen-mcp tokens list [OPTIONS]

        Options:
              --json  Print JSON
          -h, --help  Print help
        ----
        Revoke a token, by its name or id; it is refused from then on

        Usage: clopen-mcp tokens revoke [OPTIONS] <TOKEN>

        Arguments:
          <TOKEN>  Its name or id

        Options:
          -h, --help  Print help
        ----
        Check the whole path from the settings to a list of tools, and say what to do

        Usage: clopen-mcp doctor [OPTIONS]

        Options:
              --json  Print JSON
          -h, --help  Print help
        ----
    "#]].assert_eq(&all);
}

#[tokio::test]
async fn the_version() {
    Here::new()
        .says(
            &["--version"],
            0,
            expect![[r#"
                clopen-mcp VERSION
            "#]],
        )
        .await;
}

#[tokio::test]
async fn a_command_that_is_not_there() {
    Here::new()
        .says(
            &["tool"],
            2,
            expect![[r#"
                error: unrecognized subcommand 'tool'

                  tip: a similar subcommand exists: 'tools'

                Usage: clopen-mcp [OPTIONS] [COMMAND]

                For more information, try '--help'.
            "#]],
        )
        .await;
}

#[tokio::test]
async fn a_flag_that_is_not_there() {
    let here = Here::new();
    here.says(
        &["serve", "--port", "1"],
        2,
        expect![[r#"
            error: unexpected argument '--port' found

            Usage: clopen-mcp serve [OPTIONS]

            For more information, try '--help'.
        "#]],
    )
    .await;
}

#[tokio::test]
async fn tools_are_listed() {
    Here::new().says(&["tools", "list"], 0, expect![[r#"
        api-gateway 1.0.0
          list_services            List the services that `call_service` can call, and what each allows.
          call_service             Call one HTTP service and get its answer.
        database 1.0.0
          not available: the environment variable `DATABASE_URL` is not set: set it to `sqlite:path` or `postgres://user:password@host/name`
        file-utils 1.0.0
          count_lines              Count the lines and bytes of a text file.
        results 1.0.0
          read_result              Read on in a result that was cut.
        weather-service 1.0.0
          get_temperature          Get the current air temperature at a place.
    "#]]).await;
}

#[tokio::test]
async fn tools_are_listed_as_json() {
    let listed = Here::new().json(&["tools", "list", "--json"]).await;
    let tools = listed["tools"].as_array().expect("it is a list");
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].is_string(), "{tool}");
    }
    let count_lines = tools.iter().find(|it| it["name"] == "count_lines");
    let shown = Here::new()
        .json(&["tools", "show", "count_lines", "--json"])
        .await;
    assert_eq!(count_lines, Some(&shown));
}

#[tokio::test]
async fn a_tool_is_shown() {
    let here = Here::new();
    here.says(
        &["tools", "show", "mcp__clopen-mcp__count_lines"],
        0,
        expect![[r#"
            mcp__file-utils__count_lines
            listed as count_lines

            Count the lines and bytes of a text file. Use it before you read a file that may be large. A last line without
            a line break counts.

            read only: yes
            idempotent: yes
            open world: no
            arguments: {
              "type": "object",
              "properties": {
                "path": {
                  "type": "string",
                  "description": "Path of the file, relative to the folder that this server may read.",
                  "minLength": 1,
                  "maxLength": 4096,
                  "examples": [
                    "src/main.rs"
                  ]
                }
              },
              "required": [
                "path"
              ],
              "additionalProperties": false
            }
            result: {
              "type": "object",
              "properties": {
                "path": {
                  "type": "string",
                  "description": "The path, as it was asked for."
                },
                "lines": {
                  "type": "integer",
                  "description": "Number of lines.",
                  "minimum": 0
                },
                "bytes": {
                  "type": "integer",
                  "description": "Number of bytes.",
                  "minimum": 0
                }
              },
              "required": [
                "path",
                "lines",
                "bytes"
              ],
              "description": "The size of a text file."
            }
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_not_shown() {
    let here = Here::new();
    here.says(
        &["tools", "show", "count_words"],
        1,
        expect![[r#"
            error: there is no tool `count_words`; `clopen-mcp tools list` shows all
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_tool_that_is_turned_off_is_shown() {
    let here = Here::new().settings("[servers.file-utils]\nenabled = false\n");
    let said = here.run(&["tools", "show", "count_lines"]).await;
    assert_eq!(said.code, Some(0));
    let beginning: Vec<&str> = said.stdout.lines().take(2).collect();
    expect![[r#"
        mcp__file-utils__count_lines
        turned off, or its server is not available"#]]
    .assert_eq(&beginning.join("\n"));
}

#[tokio::test]
async fn a_tool_is_called() {
    let here = Here::new();
    here.says(
        &["tools", "call", "count_lines", r#"{"path":"poem.txt"}"#],
        0,
        expect![[r#"
            {"path":"poem.txt","lines":2,"bytes":8}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_tool_is_called_with_json() {
    let here = Here::new();
    let arguments = ["tools", "call", "clopen-mcp_count_lines", "--json", "-"];
    let said = here.run_with(&arguments, r#"{"path":"poem.txt"}"#).await;
    assert_eq!(said.code, Some(0));
    expect![[r#"
        {
          "content": [
            {
              "type": "text",
              "text": "{\"path\":\"poem.txt\",\"lines\":2,\"bytes\":8}"
            }
          ],
          "structuredContent": {
            "path": "poem.txt",
            "lines": 2,
            "bytes": 8
          },
          "isError": false
        }
    "#]]
    .assert_eq(&said.stdout);
}

#[tokio::test]
async fn a_tool_that_fails() {
    let here = Here::new();
    here.says(
        &["tools", "call", "count_lines", r#"{"path":"prose.txt"}"#],
        1,
        expect![[r#"
            `prose.txt` can't be read: No such file or directory (os error 2)
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_call_with_wrong_arguments() {
    let here = Here::new();
    here.says(
        &["tools", "call", "count_lines"],
        1,
        expect![[r#"
            error: the arguments of `count_lines` are not valid, nothing was done:
            - `path` is required
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_call_with_arguments_that_are_no_json() {
    let here = Here::new();
    here.says(
        &["tools", "call", "count_lines", "path=poem.txt"],
        1,
        expect![[r#"
            error: the arguments of `count_lines` are not valid, nothing was done:
            - the arguments are not JSON: expected value at line 1 column 1
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_call_of_what_is_not_there() {
    let here = Here::new();
    here.says(
        &["tools", "call", "count_line", "--json"],
        1,
        expect![[r#"
            {
              "error": {
                "code": "unknown_tool",
                "message": "there is no tool `count_line`; did you mean `count_lines`?"
              }
            }
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_call_of_a_server_that_is_not_available() {
    let here = Here::new();
    here.says(&["tools", "call", "query", "{}"], 3, expect![[r#"
        error: the server `database` is not available: the environment variable `DATABASE_URL` is not set: set it to `sqlite:path` or `postgres://user:password@host/name`
    "#]])
        .await;
}

#[tokio::test]
async fn a_reader_that_has_enough() {
    let here = Here::new();
    let mut child = here
        .command(&["tools", "list", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[tokio::test]
async fn servers_are_switched_off_and_on() {
    let here = Here::new();
    here.says(
        &["servers", "disable", "file-utils"],
        0,
        expect![[r#"
        `file-utils` is off
    "#]],
    )
    .await;
    here.says(
        &["servers", "disable", "api-gateway", "call_service"],
        0,
        expect![[r#"
            `api-gateway.call_service` is off
        "#]],
    )
    .await;
    here.says(&["servers", "list"], 0, expect![[r#"
        api-gateway          1.0.0     on  without call_service
        database             1.0.0     on  not available: the environment variable `DATABASE_URL` is not set: set it to `sqlite:path` or `postgres://user:password@host/name`
        file-utils           1.0.0     off
        results              1.0.0     on
        weather-service      1.0.0     on
    "#]]).await;
    // It holds for every command.
    here.says(&["tools", "list"], 0, expect![[r#"
        api-gateway 1.0.0
          list_services            List the services that `call_service` can call, and what each allows.
        database 1.0.0
          not available: the environment variable `DATABASE_URL` is not set: set it to `sqlite:path` or `postgres://user:password@host/name`
        file-utils 1.0.0
        results 1.0.0
          read_result              Read on in a result that was cut.
        weather-service 1.0.0
          get_temperature          Get the current air temperature at a place.
    "#]]).await;
    here.says(
        &["tools", "call", "count_lines", r#"{"path":"poem.txt"}"#],
        1,
        expect![[r#"
            error: the tool `mcp__file-utils__count_lines` is turned off
        "#]],
    )
    .await;
    here.says(
        &["servers", "enable", "file-utils"],
        0,
        expect![[r#"
        `file-utils` is on
    "#]],
    )
    .await;
    let servers = here.json(&["servers", "list", "--json"]).await;
    let on = servers["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["enabled"]);
    assert!(on.clone().all(|it| it == true), "{servers}");
    here.says(
        &["servers", "disable", "file-util"],
        3,
        expect![[r#"
        error: there is no server `file-util`; did you mean `file-utils`?
    "#]],
    )
    .await;
    here.says(
        &["servers", "disable", "file-utils", "count_line"],
        3,
        expect![[r#"
            error: the server `file-utils` has no tool `count_line`; did you mean `count_lines`?
        "#]],
    )
    .await;
}

#[tokio::test]
async fn tokens_come_and_go() {
    let here = Here::new();
    here.says(
        &["tokens", "list"],
        0,
        expect![[r#"
            there are no tokens; `clopen-mcp tokens create NAME` makes one
        "#]],
    )
    .await;
    let said = here.run(&["tokens", "create", "ci"]).await;
    assert_eq!(said.code, Some(0));
    let token = said.stdout.trim().to_owned();
    assert!(token.starts_with("cmcp_"), "{token}");
    expect![[r#"
        this is `ci`; it is shown this once
    "#]]
    .assert_eq(&said.stderr);

    let arguments = ["tokens", "create", "game", "--json", "--read-only"];
    let limits = ["--server", "file-utils", "--project", "/home/ada/game"];
    let game = here.json(&[&arguments[..], &limits[..]].concat()).await;
    assert_eq!(game["servers"], json!(["file-utils"]));
    assert_eq!(game["readOnly"], true);
    assert_eq!(game["project"], "/home/ada/game");
    assert!(game["token"].is_string());

    let said = here.run(&["tokens", "revoke", "ci"]).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "`ci` is revoked\n")
    );
    let said = here.run(&["tokens", "list"]).await;
    let ids = here.json(&["tokens", "list", "--json"]).await;
    let mut list = said.stdout;
    for it in ids["tokens"].as_array().expect("it is a list") {
        list = list.replace(it["id"].as_str().expect("it has one"), "ID");
    }
    expect![[r#"
        ci                   ID revoked
        game                 ID read only; servers file-utils; project /home/ada/game
    "#]]
    .assert_eq(&list);
}

#[tokio::test]
async fn a_token_that_can_not_be_made() {
    let here = Here::new();
    here.says(&["tokens", "create", "a b"], 3, expect![[r#"
        error: `a b` can't be the name of a token; a name has 1 to 64 letters, digits, `.`, `_` and `-`, starts with a letter or digit, and is neither `service` nor `anonymous` nor begins with `tok_`
    "#]])
        .await;
    here.run(&["tokens", "create", "ci"]).await;
    here.says(&["tokens", "create", "ci"], 3, expect![[r#"
        error: there is a token named `ci` already, or there was one: names are not used twice, so that records stay true; choose another name
    "#]])
        .await;
}

#[tokio::test]
async fn a_token_that_is_not_there_is_not_revoked() {
    let here = Here::new();
    here.says(
        &["tokens", "revoke", "ci"],
        3,
        expect![[r#"
            error: no token has the name or id `ci`; `clopen-mcp tokens list` shows them
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_token_opens_a_running_bridge() {
    let here = Here::new();
    let program = Program::start(&mut here.command(&["serve"])).await;
    let arguments = ["tokens", "create", "ci", "--server", "file-utils"];
    let token = here.run(&arguments).await.stdout.trim().to_owned();
    let profile = Profile {
        token: Some(token),
        ..Profile::of(Era::Modern)
    };
    let client = Client::http(&program.url, profile).await;
    assert_eq!(client.names("tools").await, ["count_lines"]);
}

#[tokio::test]
async fn a_doctor_who_finds_all_well() {
    let here = Here::new();
    let program = Program::start(&mut here.command(&["serve"])).await;
    let listen = format!("127.0.0.1:{}", program.port());
    let said = here.run(&["doctor", "--listen", &listen]).await;
    assert_eq!(said.code, Some(0));
    expect![[r#"
        ok  settings  no settings file; flags, variables and defaults
        ok  servers   5 tools of 4 servers
        -   server    `database` is not available: the environment variable `DATABASE_URL` is not set: set it to `sqlite:path` or `postgres://user:password@host/name`
        ok  store     opens; 0 tokens besides the service token
        ok  token     in FOLDER/data/token
        ok  bridge    http://127.0.0.1:PORT/mcp answers; it lists 5 tools
    "#]].assert_eq(&said.stdout.replace(program.port(), "PORT"));

    let json = here.json(&["doctor", "--json", "--listen", &listen]).await;
    assert_eq!(json["ok"], true);
    let states = json["findings"].as_array().expect("it is a list");
    let states: Vec<_> = states
        .iter()
        .map(|it| [&it["check"], &it["state"]])
        .collect();
    assert_eq!(
        json!(states),
        json!([
            ["settings", "good"],
            ["servers", "good"],
            ["server", "note"],
            ["store", "good"],
            ["token", "good"],
            ["bridge", "good"],
        ])
    );
}

#[tokio::test]
async fn a_doctor_who_finds_another_token() {
    let here = Here::new();
    let program = Program::start(&mut here.command(&["serve"])).await;
    let listen = format!("127.0.0.1:{}", program.port());
    let other = Here::new().with("CLOPEN_MCP_TOKEN", TOKEN);
    let said = other.run(&["doctor", "--listen", &listen]).await;
    assert_eq!(said.code, Some(1));
    let said = said.stdout.replace(program.port(), "PORT");
    let last = said.lines().last().expect("it says something");
    expect!["BAD bridge    http://127.0.0.1:PORT/mcp refuses the token; it was started with another one (compare CLOPEN_MCP_TOKEN and --data)"].assert_eq(last);
}

#[tokio::test]
async fn a_doctor_who_finds_no_bridge() {
    let here = Here::new().settings("[servers.file-util]\n");
    here.says(&["doctor", "--listen", "127.0.0.1:1"], 1, expect![[r#"
        ok  settings  read from FOLDER/clopen-mcp.toml
        BAD servers   the settings select what does not exist (FOLDER/clopen-mcp.toml): there is no server `file-util`; did you mean `file-utils`?
        ok  store     opens; 0 tokens besides the service token
        ok  token     in FOLDER/data/token
        BAD bridge    no bridge runs at http://127.0.0.1:1/mcp; start one with `clopen-mcp serve`
    "#]])
        .await;
    let json = here
        .json(&["doctor", "--json", "--listen", "127.0.0.1:1"])
        .await;
    assert_eq!(json["ok"], false);
}

#[tokio::test]
async fn settings_that_are_wrong() {
    let here = Here::new().settings(
        "call_timeout = 5\nno_aut = true\n\n[servers.file-utils]\ntools = \"count_lines\"\n",
    );
    let said = here.run(&["tools", "list"]).await;
    assert_eq!(said.code, Some(3));
    assert_eq!(said.stdout, "");
    expect![[r#"
        error: clopen-mcp.toml:1:16: `call_timeout`: expected a time such as `30s`, `500ms` or `2m`, more than zero and at most `24h`, found the number `5`
        clopen-mcp.toml:2:1: `no_aut` is not a setting; did you mean `no_auth`?
        clopen-mcp.toml:5:9: `servers.file-utils.tools`: expected an array of texts, found "count_lines"
    "#]].assert_eq(&said.stderr);
}

#[tokio::test]
async fn settings_that_select_what_is_not_there() {
    let here = Here::new().settings("[servers.file-util]\n");
    here.says(&["serve"], 3, expect![[r#"
        error: the settings select what does not exist (FOLDER/clopen-mcp.toml): there is no server `file-util`; did you mean `file-utils`?
    "#]]).await;
}

#[tokio::test]
async fn a_variable_that_nothing_reads() {
    let here = Here::new().with("CLOPEN_MCP_LISTN", "127.0.0.1:1");
    let said = here.run(&["tools", "show", "no_such_tool"]).await;
    expect![[r#"
        warning: the variable `CLOPEN_MCP_LISTN` is not a setting, so nothing reads it; did you mean `CLOPEN_MCP_LISTEN`?
        error: there is no tool `no_such_tool`; `clopen-mcp tools list` shows all
    "#]].assert_eq(&said.stderr);
}

#[tokio::test]
async fn a_data_folder_that_can_not_be_written() {
    let here = Here::new();
    let serve = here.run(&["serve", "--data", "poem.txt/data"]).await;
    let list = here
        .run(&["tokens", "list", "--data", "poem.txt/data"])
        .await;
    assert_eq!((serve.code, list.code), (Some(3), Some(3)));
    assert_eq!(serve.stderr, list.stderr);
    expect![[r#"
        error: can't write to the data folder `FOLDER/poem.txt/data`; make it yours, or name another one with `--data`, `CLOPEN_MCP_DATA` or the key `data`: Not a directory (os error 20)
    "#]].assert_eq(&serve.stderr);
}

/// Calls everything that could show a secret.
#[tokio::test]
async fn secrets_are_never_printed() {
    const SECRETS: [&str; 3] = [
        "planted-service-token",
        "planted-password",
        "planted-api-key",
    ];

    let here = Here::new()
        .with("CLOPEN_MCP_TOKEN", SECRETS[0])
        .with(
            "DATABASE_URL",
            "postgres://ada:planted-password@127.0.0.1:1/db",
        )
        .with("API_GATEWAY_SHOP_URL", "http://127.0.0.1:1")
        .with("API_GATEWAY_SHOP_TOKEN", SECRETS[2])
        .with("CLOPEN_MCP_LOG", "trace");
    let program = Program::start(&mut here.command(&["serve"])).await;
    let listen = format!("127.0.0.1:{}", program.port());
    let mut all = program.greeting.join("\n");
    for arguments in [
        &["tools", "list"][..],
        &["tools", "list", "--json"],
        &["tools", "call", "list_services"],
        &["tools", "call", "query", r#"{"sql":"select 1"}"#],
        &["tokens", "create", "ci", "--json"],
        &["tokens", "list", "--json"],
        &["doctor", "--listen", &listen],
        &["doctor", "--json", "--listen", &listen],
        &["serve", "--listen", &listen],
        &["serve", "--listen", "nowhere"],
    ] {
        let said = here.run(arguments).await;
        all.push_str(&said.stdout);
        all.push_str(&said.stderr);
    }
    for secret in SECRETS {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
    let broken = Here::new()
        .with("CLOPEN_MCP_TOKEN", "planted")
        .with("CLOPEN_MCP_DATABASE_URL", "mysql://ada:planted@host/db");
    let said = broken.run(&["serve"]).await;
    assert_eq!(said.code, Some(3));
    expect![[r#"
        error: `CLOPEN_MCP_TOKEN`: expected a token of at least 16 visible ASCII characters, such as `openssl rand -hex 32` prints
        `CLOPEN_MCP_DATABASE_URL`: expected the address of a PostgreSQL database, such as `postgres://user:password@host/database`
    "#]].assert_eq(&said.stderr);
}
