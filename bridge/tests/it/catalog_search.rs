//! Finding servers by words, and the well-known ones.

use clopen_mcp::{
    catalog::{Entry, Filter, Index, Kind, Programs, SignIn, completed, known, note, ways},
    store::CatalogServer,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json, value::RawValue};

fn server(name: &str, title: &str, description: &str) -> CatalogServer {
    CatalogServer {
        registry: "official".to_owned(),
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        status: "active".to_owned(),
        kinds: "npm".to_owned(),
        ..CatalogServer::default()
    }
}

fn index() -> Index {
    Index::new(vec![
        server(
            "io.github.me/notion-lite",
            "Notes",
            "A small notion client.",
        ),
        server("io.github.me/notion", "Mine", "Something else."),
        server("com.notion/mcp", "Notion", "Pages of your workspace."),
        server("io.github.me/calendar", "", "Reads notion and calendars."),
        CatalogServer {
            status: "deprecated".to_owned(),
            needs_key: true,
            kinds: "pypi remote".to_owned(),
            ..server("io.github.old/postgres", "Postgres", "Queries PostgreSQL.")
        },
        server("io.github.new/pg", "PG", "Queries Postgres databases."),
    ])
}

fn finds(query: &str, filter: &Filter, expected: &Expect) {
    let index = index();
    let found = index.search(query, filter, 5);
    let lines = found.iter().map(|it| {
        let known = if it.is_known { " (well-known)" } else { "" };
        format!("{}{known}\n", it.server.name)
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn what_is_called_so_comes_first_and_the_well_known_before_others() {
    let filter = Filter::default();
    finds(
        "notion",
        &filter,
        &expect![[r#"
        com.notion/mcp (well-known)
        io.github.me/notion
        io.github.me/notion-lite
        io.github.me/calendar
    "#]],
    );
    finds(
        "Postgres",
        &filter,
        &expect![[r#"
        io.github.old/postgres
        local.known/neon (well-known)
        io.github.new/pg
    "#]],
    );
    finds(
        "google drive",
        &filter,
        &expect![[r#"
        local.known/google-drive (well-known)
        local.known/google-workspace-community (well-known)
    "#]],
    );
    finds(
        "com.notion/mcp",
        &filter,
        &expect![[r#"
        com.notion/mcp (well-known)
    "#]],
    );
}

#[test]
fn a_beginning_is_enough() {
    finds(
        "post quer",
        &Filter::default(),
        &expect![[r#"
        io.github.PostHog/mcp (well-known)
        io.github.new/pg
        io.github.old/postgres
    "#]],
    );
}

#[test]
fn what_has_not_all_words_is_found_if_nothing_has() {
    finds(
        "postgres unheardofword",
        &Filter::default(),
        &expect![[r#"
            local.known/neon (well-known)
            io.github.new/pg
            io.github.old/postgres
        "#]],
    );
    finds("unheardofword", &Filter::default(), &expect![[r#""#]]);
}

#[test]
fn kinds_and_keys_are_filters() {
    let kind = |kind: &str| Filter {
        kind: Some(kind.to_owned()),
        no_key: false,
    };
    let no_key = Filter {
        kind: None,
        no_key: true,
    };
    finds(
        "postgres",
        &kind("pypi"),
        &expect![[r#"
        io.github.old/postgres
    "#]],
    );
    finds(
        "postgres",
        &no_key,
        &expect![[r#"
        io.github.new/pg
    "#]],
    );
    finds(
        "notion",
        &no_key,
        &expect![[r#"
        io.github.me/notion
        io.github.me/notion-lite
        io.github.me/calendar
    "#]],
    );
}

#[test]
fn a_registry_has_the_word_on_versions() {
    let index = index();
    let found = index.search("com.notion/mcp", &Filter::default(), 1);
    assert_eq!(found[0].server.registry, "official");
    assert_eq!(found[0].server.title, "Notion");
    assert!(found[0].is_known && found[0].server.needs_key);
}

#[test]
fn each_well_known_server_can_be_read_and_had() {
    let path = std::env::join_paths(["/nowhere"]).unwrap();
    let programs = Programs::of_path(path.to_str().unwrap());
    assert_eq!(known().len(), 70);
    for (entry, note) in known() {
        let record = &entry.record;
        let ways = ways(record);
        let can_be_had = ways.iter().any(|it| it.recipe.is_ok());
        assert!(can_be_had, "{}: {ways:#?}", record.name);
        assert!(!note.source.is_empty() && !note.checked.is_empty());
        // Nobody's key is in an address, and nobody else's host.
        for way in &ways {
            for wrong in [
                "canva.xyz",
                "canva-dev.com",
                "mcp.reddit.com",
                "search.brave.com",
                "key=",
            ] {
                assert!(!way.shown.contains(wrong), "{}", way.shown);
            }
            let is_program = !matches!(way.kind, Kind::Remote | Kind::Other(_));
            assert_eq!(
                is_program && way.recipe.is_ok(),
                way.is_refused(&programs).is_some() && way.recipe.is_ok()
            );
        }
    }
}

#[test]
fn what_is_known_of_a_service_is_known_by_its_address_too() {
    let (figma, _) = known()
        .iter()
        .find(|(it, _)| it.record.title == "Figma")
        .unwrap();
    let mut other = figma.record.clone();
    other.name = "io.github.someone/figma".to_owned();
    let note = note(&other).unwrap();
    assert_eq!(note.auth, SignIn::Oauth);
    assert!(note.caveat.contains("403"), "{}", note.caveat);
    for service in ["ClickUp", "Square"] {
        let (_, note) = known().iter().find(|it| it.1.service == service).unwrap();
        assert!(!note.caveat.is_empty(), "{service}");
    }
}

/// The registry's record of GitHub has been one without a header for the token.
#[test]
fn a_token_can_be_sent_where_it_is_known_that_it_is_taken() {
    let record = |headers: Value| {
        let remote = json!({ "type": "streamable-http", "url": "https://api.githubcopilot.com/mcp", "headers": headers });
        let server = json!({ "name": "io.github.github/github-mcp-server", "version": "1.0.0", "remotes": [remote] });
        let raw = RawValue::from_string(server.to_string()).unwrap();
        completed(Entry::read(&raw).unwrap()).record
    };
    let asked = |headers: Value| {
        let ways = ways(&record(headers));
        let asked = &ways[0].recipe.as_ref().unwrap().asked;
        let keys: Vec<String> = asked.iter().map(|it| it.key.clone()).collect();
        keys.join(", ")
    };
    assert_eq!(asked(json!(null)), "token");
    assert_eq!(asked(json!([{ "name": "X-Own" }])), "X-Own");
}
