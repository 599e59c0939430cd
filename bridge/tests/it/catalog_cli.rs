//! Servers of a registry from the command line: found, looked at, added, changed.

use crate::{
    catalog_sync::{entry, page},
    connect::Home,
    endpoint::{Answer, Endpoint},
};
use clopen_mcp::{
    credentials::Vault,
    secret::Secret,
    store::{ExternalServer, FILE_NAME},
    upstream::{Address, Entry},
};
use expect_test::expect;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tempfile::TempDir;

/// A package whose key is secret and required.
fn notes(version: &str, status: &str) -> Value {
    let mut notes = entry("com.example/notes", version, status);
    notes["server"].as_object_mut().unwrap().remove("remotes");
    notes["server"]["title"] = json!("Notes \u{1b}]0;owned\u{7}& more");
    notes["server"]["description"] = json!("Reads\u{1b}[2J notes.");
    notes["server"]["packages"] = json!([
        {
            "registryType": "npm",
            "identifier": "@example/notes",
            "version": version,
            "packageArguments": [
                { "type": "named", "name": "--folder", "format": "filepath", "isRequired": true,
                  "description": "Where the notes are" },
                { "type": "named", "name": "--mode", "choices": ["read", "write"], "default": "read" },
            ],
            "environmentVariables": [
                { "name": "NOTES_KEY", "description": "From your account", "isRequired": true, "isSecret": true },
                { "name": "NOTES_LOG" },
            ],
        },
        { "registryType": "cargo", "identifier": "notes", "version": version },
    ]);
    notes["_meta"]["io.modelcontextprotocol.registry/official"]["statusMessage"] =
        json!("moved to com.example/better");
    notes
}

/// A home with a registry and an `npx` that notes what it was told, and is a bridge.
struct Place {
    home: Home,
    is_later: Arc<AtomicBool>,
}

impl Place {
    async fn new() -> Self {
        let is_later = Arc::new(AtomicBool::new(false));
        let later = is_later.clone();
        let registry = Endpoint::serve(move |asked| {
            let notes = if later.load(Ordering::Relaxed) {
                notes("2.0.0", "deprecated")
            } else {
                notes("1.0.0", "active")
            };
            let remote = entry("com.example/remote", "1.0.0", "active");
            match &*asked.path {
                "/v0.1/servers/com.example%2Fnotes/versions" => page(
                    asked,
                    &[vec![notes, entry("com.example/notes", "0.9.0", "active")]],
                ),
                path if path.starts_with("/v0.1/servers?") => {
                    page(asked, &[vec![notes], vec![remote]])
                }
                _ => Answer::new("404 Not Found", &[], r#"{"error":"not found"}"#),
            }
        })
        .await;
        let home = Home::new();
        let root = home.0.folder.path().display().to_string();
        let programs = home.0.folder.path().join("bin");
        fs::create_dir(&programs).unwrap();
        let npx = programs.join("npx");
        let binary = env!("CARGO_BIN_EXE_clopen-mcp");
        let script = format!(
            "#!/bin/sh\nfor it in \"$@\"; do echo \"$it\"; done > {root}/told\necho \"key $NOTES_KEY log $NOTES_LOG\" >> {root}/told\nexport CLOPEN_MCP_DATA={root}/other\nexec {binary} stdio\n"
        );
        fs::write(&npx, script).unwrap();
        fs::set_permissions(&npx, fs::Permissions::from_mode(0o755)).unwrap();
        let url = registry.url.trim_end_matches("/mcp").to_owned();
        let path = programs.display().to_string();
        let here = home
            .0
            .with("CLOPEN_MCP_REGISTRY_OFFICIAL_URL", &url)
            .with("PATH", &path);
        Self {
            home: Home(here),
            is_later,
        }
    }

    fn told(&self) -> String {
        let root = self.home.0.folder.path();
        let told = fs::read_to_string(root.join("told")).unwrap();
        self.home.0.plain(told.as_bytes())
    }
}

#[tokio::test]
async fn a_server_is_found_and_looked_at() {
    let place = Place::new().await;
    let home = &place.home;
    home.says(
        "servers search figma --limit 1",
        0,
        expect![[r#"
        com.figma.mcp/mcp  [remote; needs a key or a sign-in]
            Figma: Bring Figma design context and canvas tools into the work.
        not everything of `official` has been fetched yet; `clopen-mcp servers sync` does that
    "#]],
    )
    .await;
    home.says(
        "servers sync",
        0,
        expect![[r#"
        official: 2 servers
    "#]],
    )
    .await;
    home.says(
        "servers search notes rea",
        0,
        expect![[r#"
        com.example/notes  [npm, cargo; needs a key or a sign-in]
            Notes & more: Reads notes.
    "#]],
    )
    .await;
    home.says(
        "servers search unheardofword",
        1,
        expect![[r#"
        nothing is found
    "#]],
    )
    .await;
    home.says(
        "servers info com.example/notes",
        0,
        expect![[r#"
        Notes & more: com.example/notes 1.0.0, from official
        Reads notes.
        to be had as:
          npm     @example/notes 1.0.0
            folder: Where the notes are (required, filepath)
            mode: (optional, one of read, write, default read)
            NOTES_KEY: From your account (required, secret)
            NOTES_LOG: (optional)
          cargo   notes 1.0.0: not here, packages of `cargo` are not started here
        versions: 1.0.0, 0.9.0
    "#]],
    )
    .await;
}

const ADD: &str = "servers add com.example/notes --set folder=poems --set NOTES_KEY=planted-1";

#[tokio::test]
async fn a_server_is_added_once_everything_is_said() {
    let place = Place::new().await;
    let home = &place.home;
    home.works("servers sync").await;
    home.says(
        "servers add com.example/notes",
        3,
        expect![[r#"
        error: `com.example/notes` is not added yet:
        - `folder` is missing (Where the notes are); say it with `--set folder=VALUE`
        - `NOTES_KEY` is missing (From your account); say it with `--set NOTES_KEY=VALUE`
    "#]],
    )
    .await;
    home.says(
        ADD,
        0,
        expect![[r#"
        Notes & more: com.example/notes 1.0.0, from official
          way: npm @example/notes 1.0.0 (the only one that can be used here)
          runs: npx -y @example/notes@1.0.0 --folder FOLDER/poems --mode read
          with the variables NOTES_KEY
        nothing is changed; with `--yes` it is added as `notes-more`
    "#]],
    )
    .await;
    home.says(
        &format!("{ADD} --yes --as notes"),
        0,
        expect![[r#"
        Notes & more: com.example/notes 1.0.0, from official
          way: npm @example/notes 1.0.0 (the only one that can be used here)
          runs: npx -y @example/notes@1.0.0 --folder FOLDER/poems --mode read
          with the variables NOTES_KEY
        `notes` is there, with 5 tools
    "#]],
    )
    .await;
    expect![[r#"
        -y
        @example/notes@1.0.0
        --folder
        FOLDER/poems
        --mode
        read
        key planted-1 log 
    "#]]
    .assert_eq(&place.told());
    home.says(
        "servers show notes",
        0,
        expect![[r#"
        name          notes
        from          official
        server        com.example/notes
        version       1.0.0
        inputs        NOTES_KEY, folder
        command       npx -y @example/notes@1.0.0 --folder FOLDER/poems --mode read
        variables     NOTES_KEY
        state         on
        tools         5
    "#]],
    )
    .await;
    home.says("servers tools notes", 0, expect![[r#"
        list_services                    on   List the services that `call_service` can call, and what each allows.
        call_service                     on   Call one HTTP service and get its answer.
        count_lines                      on   Count the lines and bytes of a text file.
        read_result                      on   Read on in a result that was cut.
        get_temperature                  on   Get the current air temperature at a place.
    "#]]).await;
}

#[tokio::test]
async fn what_a_server_was_told_is_changed() {
    let place = Place::new().await;
    let home = &place.home;
    home.works("servers sync").await;
    home.works(&format!("{ADD} --yes --as notes")).await;
    home.says(
        "servers set notes NOTES_LOG=all mode=both",
        3,
        expect![[r#"
            error: `notes` stays as it was:
            - `mode` is one of `read`, `write`
        "#]],
    )
    .await;
    home.says(
        "servers set notes NOTES_LOG=all mode=write NOTES_KEY=planted-2",
        0,
        expect![[r#"
            `notes` is there, with 5 tools
        "#]],
    )
    .await;
    expect![[r#"
        -y
        @example/notes@1.0.0
        --folder
        FOLDER/poems
        --mode
        write
        key planted-2 log all
    "#]]
    .assert_eq(&place.told());
    home.says(
        "servers set notes folder=",
        3,
        expect![[r#"
            error: `notes` stays as it was:
            - `folder` is missing (Where the notes are); say it with `--set folder=VALUE`
        "#]],
    )
    .await;
    home.says(
        "servers set other a=b",
        3,
        expect![[r#"
        error: there is no external server `other`; there are `notes`
    "#]],
    )
    .await;
    let list = home.works("servers list").await.stdout;
    assert!(list.contains("external, com.example/notes 1.0.0"), "{list}");
    let shown = home.works("servers show notes --json").await.stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["variables"], json!(["NOTES_KEY", "NOTES_LOG"]));
    assert_eq!(shown["argv"][2], "@example/notes@1.0.0");
    let database = home.0.folder.path().join("data").join(FILE_NAME);
    for file in [database.clone(), database.with_extension("sqlite-wal")] {
        let bytes = fs::read(file).unwrap_or_default();
        assert!(!bytes.windows(8).any(|it| it == b"planted-"));
    }
}

#[tokio::test]
async fn reg_190_who_has_installed_what_is_given_up_is_warned() {
    let place = Place::new().await;
    let home = &place.home;
    home.works("servers sync").await;
    home.works("servers add com.example/notes --set folder=/a --set NOTES_KEY=k --yes --as notes")
        .await;
    place.is_later.store(true, Ordering::Relaxed);
    home.works("servers sync").await;
    let shown = home.works("servers show notes").await;
    expect![[r#"
        warning: `com.example/notes` is deprecated: moved to com.example/better
        warning: the registry has version 2.0.0 of it
    "#]]
    .assert_eq(&shown.stderr);
    let found = home.works("servers search com.example/notes").await;
    expect![[r#"
        com.example/notes  [npm, cargo; needs a key or a sign-in; deprecated]
            Notes & more: Reads notes.
    "#]]
    .assert_eq(&found.stdout);
}

#[tokio::test]
async fn what_is_added_is_told_as_json() {
    let place = Place::new().await;
    let home = &place.home;
    home.works("servers sync").await;
    let line = "servers add com.example/notes --set folder=/a --set NOTES_KEY=planted --json --yes --as notes";
    let said = home.works(line).await.stdout;
    assert!(!said.contains("planted"), "{said}");
    expect![[r#"
        {
          "name": "notes",
          "origin": {
            "registry": "official",
            "name": "com.example/notes",
            "version": "1.0.0"
          },
          "way": "npm",
          "why": "the only one that can be used here",
          "runs": "npx -y @example/notes@1.0.0 --folder /a --mode read",
          "argv": [
            "npx",
            "-y",
            "@example/notes@1.0.0",
            "--folder",
            "/a",
            "--mode",
            "read"
          ],
          "given": [
            "NOTES_KEY"
          ],
          "notes": [],
          "warnings": [],
          "added": true,
          "tools": 5,
          "toolNotes": []
        }
    "#]]
    .assert_eq(&said);
    let info = home.works("servers info com.example/notes --json").await;
    let info: Value = serde_json::from_str(&info.stdout).unwrap();
    assert_eq!(info["versions"], json!(["1.0.0", "0.9.0"]));
    assert_eq!(info["ways"][0]["inputs"][2]["secret"], true);
    let tools = home.works("servers tools notes --json").await.stdout;
    let tools: Value = serde_json::from_str(&tools).unwrap();
    assert_eq!(tools["tools"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn what_is_meant_is_asked_and_not_guessed() {
    let place = Place::new().await;
    let home = &place.home;
    home.works("servers sync").await;
    home.says(
        "servers add notes",
        3,
        expect![[r#"
        error: there is no server `notes`; is it `com.example/notes`?
    "#]],
    )
    .await;
    home.says(
        "servers info com.example/notes --version 7.0.0",
        3,
        expect![[r#"
            error: there is no version `7.0.0` of `com.example/notes`
        "#]],
    )
    .await;
    home.says(
        "servers sync --registry other",
        3,
        expect![[r#"
        error: there is no registry `other` in the settings; there are `official`
    "#]],
    )
    .await;
    home.says(
        "servers add com.example/remote --as Remote",
        3,
        expect![[r#"
            error: `Remote` is no name for a server: it has small letters, digits and single `-`, at most 40
        "#]],
    )
    .await;
    home.says(
        "servers add com.example/remote --as database --yes",
        3,
        expect![[r#"
            error: there is a server `database` already; say another name with `--as`
        "#]],
    )
    .await;
    home.says("servers add com.figma.mcp/mcp", 0, expect![[r#"
        Figma: com.figma.mcp/mcp 2.2.107, from well-known
          sign-in: in the browser (OAuth); whom it admits is not established (looked up on 2026-11-30, confidence high: https://github.com/figma/mcp-server-guide/blob/0762b6c8a1b49dc2eb81760dd16673b6d9e681d4/server.json)
          mind: Registration answers 403 to clients outside Figma's catalogue; an unlisted bridge cannot sign in. Do not pose as another client.
          way: remote https://mcp.figma.com/mcp (the only one that can be used here)
          reaches: https://mcp.figma.com/mcp
        nothing is changed; with `--yes` it is added as `figma`
    "#]])
        .await;
}

#[tokio::test]
async fn registries_are_settings() {
    let other = Endpoint::serve(|asked| {
        if asked.header("authorization") != Some("Bearer planted-token") {
            return Answer::new("401 Unauthorized", &[], "");
        }
        page(asked, &[vec![notes("1.0.0", "active")]])
    })
    .await;
    let url = other.url.trim_end_matches("/mcp").to_owned();
    let Place { home, .. } = Place::new().await;
    let home = Home(
        home.0
            .settings(&format!("[registries.our-own]\nurl = \"{url}/v0.1/\"\n")),
    );
    let said = home.run("servers sync").await;
    assert_eq!(said.code, Some(3));
    expect![[r#"
        official: 2 servers
        error: the registry `our-own` answers 401 Unauthorized; give its `token` in the settings, or in the variable CLOPEN_MCP_REGISTRY_<NAME>_TOKEN
          what came before is kept; `clopen-mcp servers sync` goes on there
    "#]].assert_eq(&format!("{}{}", said.stdout, said.stderr));
    let home = Home(
        home.0
            .with("CLOPEN_MCP_REGISTRY_OUR_OWN_TOKEN", "planted-token"),
    );
    home.says(
        "servers sync --registry our-own",
        0,
        expect![[r#"
        our-own: 1 servers
    "#]],
    )
    .await;
    home.says("servers info com.example/notes", 3, expect![[r#"
        error: `com.example/notes` is in the registries `official` and `our-own`; say which with `--registry`
    "#]])
        .await;
    let info = home
        .works("servers info com.example/notes --registry our-own")
        .await;
    assert!(info.stdout.contains("from our-own"), "{}", info.stdout);
    let wrong = "[registries.A]\nurl = 1\n[registries.b]\ntokn = \"x\"\n[registries.official]\nenabled = false\n";
    let home = Home(home.0.settings(wrong));
    home.says("servers sync", 3, expect![[r#"
        error: clopen-mcp.toml:1:13: `registries.A`: expected the name of a registry: small letters, digits and `-`
        clopen-mcp.toml:3:1: `registries.b.url`: expected the address of a registry, such as `https://registry.example.com`, without a password
        clopen-mcp.toml:4:1: `registries.b.tokn` is not a setting; did you mean `token`?
    "#]]).await;
}

/// Before there were registries, what is sealed had no origin.
#[test]
fn an_older_entry_can_be_opened() {
    let folder = TempDir::new().unwrap();
    let vault = Vault::open(folder.path()).unwrap();
    let written = r#"{"http":{"url":"https://example.org/mcp","headers":{"X":"planted"}}}"#;
    let stored = ExternalServer {
        name: "old".to_owned(),
        source: "by hand".to_owned(),
        sealed: vault.seal("old", &Secret::new(written)).unwrap(),
        listed: None,
        listed_at: None,
        added_at: 1,
    };
    let entry = Entry::opened(&stored, &vault).unwrap();
    let Address::Http { url, headers } = &entry.address else {
        panic!("{entry:?}")
    };
    assert_eq!(
        (url.as_str(), headers["X"].expose()),
        ("https://example.org/mcp", "planted")
    );
    assert!(entry.origin.is_none());
}
