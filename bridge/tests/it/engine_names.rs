//! What each engine shows its model, and that all of it is understood.

use crate::name_strategies::{entries, legal_server, legal_tool, named, wild_name};
use clopen_mcp::engines::Engine;
use proptest::prelude::*;
use std::collections::HashSet;
use tool_runtime::{NAMESPACE, Names, Shown, Spelling};

/// An engine's own rule, as one would write it for that engine alone: what it shows of a name of a server, or nothing. `#`
/// stands for what only the engine knows.
type Rule = fn(&str, &str) -> String;

/// Each engine with its rule, and its other ways.
fn engines() -> Vec<(&'static str, Spelling, Rule)> {
    let codex_in_code_mode = Spelling {
        apart: false,
        ..spelling_of("codex")
    };
    let pi_with_adapter = Spelling {
        before: "clopen-mcp_",
        ..Spelling::AS_LISTED
    };
    let rules: [(&'static str, Rule); 13] = [
        ("claude", by_claude_code),
        ("codex", by_codex),
        ("opencode", by_open_code),
        ("copilot", by_copilot),
        ("qwen", by_qwen_code),
        ("gemini", by_gemini),
        ("cline", by_cline),
        ("pi", by_pi),
        ("continue", by_continue),
        ("cursor", by_cursor),
        ("vscode", by_vs_code),
        ("zed", by_zed),
        ("goose", by_goose),
    ];
    let engines = rules.map(|(engine, rule)| (engine, spelling_of(engine), rule));
    let others: [(&'static str, Spelling, Rule); 2] = [
        (
            "codex in code mode",
            codex_in_code_mode,
            by_codex_in_code_mode,
        ),
        ("pi with adapter", pi_with_adapter, by_pi_adapter),
    ];
    engines.into_iter().chain(others).collect()
}

fn spelling_of(engine: &str) -> Spelling {
    Engine::named(engine).expect("it is known").spelling
}

fn replaced(name: &str, safe: &[char], with: &str) -> String {
    let is_safe = |it: char| it.is_ascii_alphanumeric() || safe.contains(&it);
    name.replace(|it| !is_safe(it), with)
}

fn length(name: &str) -> usize {
    name.chars().count()
}

fn first(count: usize, name: &str) -> String {
    name.chars().take(count).collect()
}

fn last(count: usize, name: &str) -> String {
    name.chars().skip(length(name) - count).collect()
}

fn by_claude_code(server: &str, name: &str) -> String {
    let name = replaced(&format!("mcp__{server}__{name}"), &['_', '-'], "_");
    if length(&name) > 128 {
        String::new()
    } else {
        name
    }
}

fn by_codex(server: &str, name: &str) -> String {
    let before = format!("mcp__{server}__").replace('-', "_");
    by_codex_in_code_mode(server, name).replacen(&before, "", 1)
}

fn by_codex_in_code_mode(server: &str, name: &str) -> String {
    let name = replaced(&format!("mcp__{server}__{name}"), &['_'], "_");
    match length(&name) {
        0..=128 => name,
        _ => format!("{}_############", first(115, &name)),
    }
}

fn by_open_code(server: &str, name: &str) -> String {
    replaced(&format!("{server}_{name}"), &['_', '-'], "_")
}

fn by_copilot(server: &str, name: &str) -> String {
    if !name.is_ascii() {
        return format!("{server}-xn--####");
    }
    let name = replaced(&format!("{server}-{name}"), &['_', '-'], "-");
    first(64, &name)
}

fn by_qwen_code(server: &str, name: &str) -> String {
    let whole = format!("mcp__{server}__{name}");
    let clean = replaced(&whole, &['_', '-'], "_");
    if clean == whole && length(&clean) <= 63 {
        clean
    } else {
        format!("{}_#######", first(55, &clean))
    }
}

fn by_gemini(server: &str, name: &str) -> String {
    let name = replaced(&format!("mcp_{server}_{name}"), &['_', '-', '.'], "_");
    match length(&name) {
        0..=63 => name,
        _ => format!("{}...{}", first(30, &name), last(30, &name)),
    }
}

fn by_cline(server: &str, name: &str) -> String {
    let mut clean = replaced(name, &['_', '-'], "_");
    while clean.contains("__") {
        clean = clean.replace("__", "_");
    }
    let whole = format!("{server}__{clean}");
    if clean == name && length(&whole) <= 64 {
        whole
    } else {
        format!("{}_########", first(55, &whole))
    }
}

fn by_pi(server: &str, name: &str) -> String {
    let name = replaced(&format!("mcp__{server}__{name}"), &['_'], "_");
    match length(&name) {
        0..=64 => name,
        _ => format!("{}_########", first(55, &name)),
    }
}

fn by_pi_adapter(server: &str, name: &str) -> String {
    format!("{server}_{name}")
}

fn by_continue(_: &str, name: &str) -> String {
    name.to_owned()
}

fn by_cursor(server: &str, name: &str) -> String {
    if length(server) + 1 + length(name) > 60 {
        String::new()
    } else {
        format!("mcp_{server}_{name}")
    }
}

fn by_vs_code(server: &str, name: &str) -> String {
    let label = first(13, server);
    let name = replaced(name, &['_', '-'], "_");
    first(64, &format!("mcp_{label}_{name}"))
}

fn by_zed(_: &str, name: &str) -> String {
    first(64, name)
}

fn by_goose(server: &str, name: &str) -> String {
    format!("{server}__{name}")
}

/// Writes what is shown as the table of this module does.
fn text(shown: Shown) -> String {
    match shown {
        Shown::As(name) => name,
        Shown::Beginning(name) => format!("{name}…"),
        Shown::Dropped => "nothing".to_owned(),
    }
}

fn spelling(engine: &str) -> Spelling {
    let engines = engines();
    let mut engines = engines.iter();
    let (_, spelling, _) = engines
        .find(|(it, _, _)| *it == engine)
        .unwrap_or_else(|| panic!("there is no engine `{engine}`"));
    *spelling
}

const ROWS: &[(&str, &str, &str)] = &[
    (
        "claude",
        "get_temperature",
        "mcp__clopen-mcp__get_temperature",
    ),
    (
        "claude",
        "resolve-Library-id",
        "mcp__clopen-mcp__resolve-Library-id",
    ),
    (
        "claude",
        "admin.tools.list",
        "mcp__clopen-mcp__admin_tools_list",
    ),
    (
        "claude",
        "files/read (v2)",
        "mcp__clopen-mcp__files_read__v2_",
    ),
    ("codex", "get_temperature", "get_temperature"),
    ("codex", "resolve-Library-id", "resolve_Library_id"),
    ("codex", "admin.tools.list", "admin_tools_list"),
    (
        "codex in code mode",
        "get_temperature",
        "mcp__clopen_mcp__get_temperature",
    ),
    (
        "codex in code mode",
        "resolve-Library-id",
        "mcp__clopen_mcp__resolve_Library_id",
    ),
    (
        "codex in code mode",
        "admin.tools.list",
        "mcp__clopen_mcp__admin_tools_list",
    ),
    ("opencode", "get_temperature", "clopen-mcp_get_temperature"),
    (
        "opencode",
        "resolve-Library-id",
        "clopen-mcp_resolve-Library-id",
    ),
    (
        "opencode",
        "admin.tools.list",
        "clopen-mcp_admin_tools_list",
    ),
    ("copilot", "get_temperature", "clopen-mcp-get_temperature"),
    (
        "copilot",
        "resolve-Library-id",
        "clopen-mcp-resolve-Library-id",
    ),
    ("copilot", "admin.tools.list", "clopen-mcp-admin-tools-list"),
    ("copilot", "files/read v2", "clopen-mcp-files-read-v2"),
    ("copilot", "ümläut", "clopen-mcp-…"),
    (
        "qwen",
        "get_temperature",
        "mcp__clopen-mcp__get_temperature",
    ),
    (
        "qwen",
        "resolve-Library-id",
        "mcp__clopen-mcp__resolve-Library-id",
    ),
    (
        "qwen",
        "admin.tools.list",
        "mcp__clopen-mcp__admin_tools_list…",
    ),
    (
        "gemini",
        "get_temperature",
        "mcp_clopen-mcp_get_temperature",
    ),
    (
        "gemini",
        "resolve-Library-id",
        "mcp_clopen-mcp_resolve-Library-id",
    ),
    (
        "gemini",
        "admin.tools.list",
        "mcp_clopen-mcp_admin.tools.list",
    ),
    ("gemini", "files/read v2", "mcp_clopen-mcp_files_read_v2"),
    ("cline", "get_temperature", "clopen-mcp__get_temperature"),
    (
        "cline",
        "resolve-Library-id",
        "clopen-mcp__resolve-Library-id",
    ),
    ("cline", "admin.tools.list", "clopen-mcp__admin_tools_list…"),
    ("cline", "get__item", "clopen-mcp__get_item…"),
    ("pi", "get_temperature", "mcp__clopen_mcp__get_temperature"),
    (
        "pi",
        "resolve-Library-id",
        "mcp__clopen_mcp__resolve_Library_id",
    ),
    (
        "pi",
        "admin.tools.list",
        "mcp__clopen_mcp__admin_tools_list",
    ),
    (
        "pi with adapter",
        "get_temperature",
        "clopen-mcp_get_temperature",
    ),
    (
        "pi with adapter",
        "admin.tools.list",
        "clopen-mcp_admin.tools.list",
    ),
    ("continue", "get_temperature", "get_temperature"),
    ("continue", "admin.tools.list", "admin.tools.list"),
    (
        "cursor",
        "get_temperature",
        "mcp_clopen-mcp_get_temperature",
    ),
    (
        "vscode",
        "get_temperature",
        "mcp_clopen-mcp_get_temperature",
    ),
    (
        "vscode",
        "resolve-Library-id",
        "mcp_clopen-mcp_resolve-Library-id",
    ),
    (
        "vscode",
        "admin.tools.list",
        "mcp_clopen-mcp_admin_tools_list",
    ),
    ("zed", "get_temperature", "get_temperature"),
    ("goose", "get_temperature", "clopen-mcp__get_temperature"),
];

#[test]
fn nam_050_051_053_each_engine_spells_in_its_way_and_is_understood() {
    for (engine, raw, expected) in ROWS {
        let spelling = spelling(engine);
        assert_eq!(text(spelling.of(raw)), *expected, "`{raw}` by {engine}");
        let names = Names::new([("some", *raw), ("other", "get_humidity")]);
        for name in [raw, names.listed(0)] {
            if let Shown::As(shown) = spelling.of(name) {
                assert_eq!(names.resolve(&shown), Ok(Some(0)), "`{shown}` by {engine}");
            }
        }
    }
}

#[test]
fn nam_046_048_each_engine_has_its_limit_which_counts_the_whole_name() {
    let long = |count: usize| "a".repeat(count);
    let rows = [
        ("claude", 111, format!("mcp__clopen-mcp__{}", long(111))),
        ("claude", 112, "nothing".to_owned()),
        ("codex", 111, long(111)),
        ("codex", 112, format!("{}…", long(98))),
        (
            "codex in code mode",
            111,
            format!("mcp__clopen_mcp__{}", long(111)),
        ),
        (
            "codex in code mode",
            112,
            format!("mcp__clopen_mcp__{}…", long(98)),
        ),
        ("opencode", 128, format!("clopen-mcp_{}", long(128))),
        ("copilot", 53, format!("clopen-mcp-{}", long(53))),
        ("copilot", 54, format!("clopen-mcp-{}", long(53))),
        ("qwen", 46, format!("mcp__clopen-mcp__{}", long(46))),
        ("qwen", 47, format!("mcp__clopen-mcp__{}…", long(38))),
        ("gemini", 48, format!("mcp_clopen-mcp_{}", long(48))),
        ("gemini", 49, format!("mcp_clopen-mcp_{}…", long(15))),
        ("cline", 52, format!("clopen-mcp__{}", long(52))),
        ("cline", 53, format!("clopen-mcp__{}…", long(43))),
        ("pi", 47, format!("mcp__clopen_mcp__{}", long(47))),
        ("pi", 48, format!("mcp__clopen_mcp__{}…", long(38))),
        ("pi with adapter", 128, format!("clopen-mcp_{}", long(128))),
        ("continue", 128, long(128)),
        ("cursor", 49, format!("mcp_clopen-mcp_{}", long(49))),
        ("cursor", 50, "nothing".to_owned()),
        ("vscode", 49, format!("mcp_clopen-mcp_{}", long(49))),
        ("vscode", 50, format!("mcp_clopen-mcp_{}", long(49))),
        ("zed", 64, long(64)),
        ("zed", 65, long(64)),
        ("goose", 128, format!("clopen-mcp__{}", long(128))),
    ];
    for (engine, count, expected) in rows {
        let shown = spelling(engine).of(&long(count));
        assert_eq!(text(shown), expected, "{count} characters by {engine}");
    }
}

#[test]
fn every_engine_puts_the_namespace_before_or_nothing() {
    for (engine, spelling, _) in engines() {
        let before = spelling.before.replace('_', "-");
        assert!(
            before.is_empty() || before.contains(NAMESPACE),
            "{engine} puts `{}` before",
            spelling.before
        );
    }
}

#[test]
fn nam_062_a_model_may_mistake_the_form_but_not_the_name() {
    let names = Names::new([("notes", "save"), ("weather-service", "get_temperature")]);
    for right in [
        "clopen_mcp__get_temperature",
        "clopen_mcp_get_temperature",
        "clopen_mcp.get_temperature",
        "clopen-mcp.get_temperature",
        "clopen-mcp:get_temperature",
        "clopen-mcp/get_temperature",
        "mcp_clopen_mcp_get_temperature",
        "mcp__clopen-mcp__get-temperature",
        "mcp__clopen-mcp__weather_service__get_temperature",
        "mcp_weather-service_get_temperature",
    ] {
        assert_eq!(names.resolve(right), Ok(Some(1)), "{right}");
    }
    for wrong in [
        "clopen-mcp-get_temperature2",
        "mcp__clopen-mcp__get_temperature_1539oh5",
        "mcp_clopen-mcp_get_temp...rature",
        "mcp__clopen__get_temperature",
        "mcp__get_temperature",
        "clopenmcp_get_temperature",
        "Clopen-MCP_get_temperature",
    ] {
        assert_eq!(names.resolve(wrong), Ok(None), "{wrong}");
    }
}

/// Whether our data about an engine says of a name what the engine's rule does.
fn check_rule(name: &str) -> Result<(), TestCaseError> {
    for (engine, spelling, rule) in engines() {
        let ruled = rule(NAMESPACE, name);
        match spelling.of(name) {
            Shown::As(shown) => prop_assert_eq!(shown, ruled, "{}", engine),
            Shown::Beginning(shown) => {
                prop_assert!(ruled.starts_with(&shown), "`{}` by {}", shown, engine);
                prop_assert!(ruled.contains('#') || ruled.contains("..."), "{}", engine);
            }
            Shown::Dropped => prop_assert_eq!(ruled, "", "{}", engine),
        }
    }
    Ok(())
}

/// What every engine shows of a set is exactly foretold, no two alike, and means what it is shown for.
fn check_set(entries: &[(String, String)]) -> Result<(), TestCaseError> {
    let names = named(entries);
    for (engine, spelling, rule) in engines() {
        let mut seen = HashSet::new();
        for index in 0..entries.len() {
            let listed = names.listed(index);
            let shown = rule(NAMESPACE, listed);
            prop_assert_eq!(spelling.of(listed), Shown::As(shown.clone()));
            prop_assert_eq!(names.resolve(&shown), Ok(Some(index)), "`{}`", shown);
            prop_assert!(seen.insert(shown), "{} shows two alike", engine);
        }
    }
    Ok(())
}

/// The same where each server has an entry of its own, under its name. What two servers show alike is an error. Only a `__`
/// says where the name of the server ends: `a_b` is `b` of `a` to OpenCode, and may be the `a-b` or `a_b` of others.
fn check_each(entries: &[(String, String)]) -> Result<(), TestCaseError> {
    let names = named(entries);
    let folded = |name: &str| name.replace('-', "_");
    for (engine, spelling, rule) in engines() {
        for (index, (server, _)) in entries.iter().enumerate() {
            let listed = names.listed(index);
            let ruled = rule(server, listed);
            match spelling.of_server(server, listed) {
                Shown::As(shown) => {
                    prop_assert_eq!(&shown, &ruled, "{}", engine);
                    match names.resolve(&shown) {
                        Ok(Some(meant)) if meant == index => {}
                        Ok(Some(_)) if !shown.contains("__") => {}
                        Err(_) => {}
                        // What is left of a name that is cut may be anybody's.
                        _ if length(server) > spelling.most_before => {}
                        _ if !folded(&shown).ends_with(&folded(listed)) => {}
                        other => prop_assert!(false, "`{}` by {}: {:?}", shown, engine, other),
                    }
                }
                Shown::Beginning(shown) => prop_assert!(ruled.starts_with(&shown)),
                Shown::Dropped => prop_assert_eq!(ruled, ""),
            }
        }
    }
    Ok(())
}

#[test]
fn a_server_with_an_entry_of_its_own_stands_in_the_place_of_the_namespace() {
    let rows = [
        ("claude", "mcp__git-tools__show"),
        ("codex", "show"),
        ("codex in code mode", "mcp__git_tools__show"),
        ("opencode", "git-tools_show"),
        ("copilot", "git-tools-show"),
        ("qwen", "mcp__git-tools__show"),
        ("gemini", "mcp_git-tools_show"),
        ("cline", "git-tools__show"),
        ("pi", "mcp__git_tools__show"),
        ("continue", "show"),
        ("cursor", "mcp_git-tools_show"),
        ("vscode", "mcp_git-tools_show"),
        ("zed", "show"),
        ("goose", "git-tools__show"),
    ];
    let names = Names::new([("git-tools", "show"), ("notes", "save")]);
    for (engine, expected) in rows {
        let shown = text(spelling(engine).of_server("git-tools", "show"));
        assert_eq!(shown, expected, "{engine}");
        assert_eq!(names.resolve(&shown), Ok(Some(0)), "{engine}");
    }
    // Of two servers with one tool, each is listed behind the name of its server, also where it is served alone.
    let names = Names::new([("git-tools", "show"), ("notes", "show")]);
    for (engine, _) in rows {
        let shown = text(spelling(engine).of_server("git-tools", "git-tools_show"));
        assert_eq!(names.resolve(&shown), Ok(Some(0)), "{shown} by {engine}");
    }
}

#[test]
fn the_limits_of_engines_count_the_name_of_the_server_too() {
    let server = "a-server-with-a-long-name";
    let rows = [
        ("codex", 96, "a".repeat(96)),
        ("codex", 97, format!("{}…", "a".repeat(83))),
        ("qwen", 31, format!("mcp__{server}__{}", "a".repeat(31))),
        ("qwen", 32, format!("mcp__{server}__{}…", "a".repeat(23))),
        ("cursor", 34, format!("mcp_{server}_{}", "a".repeat(34))),
        ("cursor", 35, "nothing".to_owned()),
        (
            "vscode",
            46,
            format!("mcp_a-server-with_{}", "a".repeat(46)),
        ),
        (
            "vscode",
            47,
            format!("mcp_a-server-with_{}", "a".repeat(46)),
        ),
    ];
    for (engine, count, expected) in rows {
        let shown = spelling(engine).of_server(server, &"a".repeat(count));
        assert_eq!(text(shown), expected, "{count} characters by {engine}");
    }
}

proptest! {
    #[test]
    fn what_an_engine_shows_of_servers_with_entries_of_their_own_means_them(
        few in entries("[ab](-[ab])?", "[ab]([_.-][ab]){0,2}"),
        many in entries(legal_server(), wild_name()),
    ) {
        check_each(&few)?;
        check_each(&many)?;
    }

    #[test]
    fn what_an_engine_makes_of_any_name_is_foretold(name in prop_oneof![wild_name(), "[a-z_-]{30,150}"]) {
        check_rule(&name)?;
    }

    #[test]
    fn what_an_engine_shows_of_our_tools_means_them(entries in entries(legal_server(), legal_tool())) {
        check_set(&entries)?;
    }

    /// So few words that servers and tools often meet.
    #[test]
    fn what_an_engine_shows_of_tools_that_look_alike_means_them(
        entries in entries("[ab](-[ab])?|clopen-mcp", "[ab]([_.-][ab]){0,2}"),
    ) {
        check_set(&entries)?;
    }

    #[test]
    fn what_an_engine_shows_of_external_tools_means_them(
        entries in entries(prop_oneof!["a(__[x-y])?", "[ab]-?[xy]?", "b|clopen-mcp", legal_server(), wild_name()], wild_name()),
    ) {
        check_set(&entries)?;
    }
}
