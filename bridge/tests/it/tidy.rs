//! The repository keeps its own rules: who may import whom, what files are called, how they begin.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use toml::Table;

/// The modules of the bridge, from above to below. A module may use those of the lines under its own, and none beside
/// it; `secret` is under everything.
const LAYERS: [&[&str]; 7] = [
    &["cli"],
    &["app"],
    &["mcp", "web"],
    &["upstream", "engines", "catalog", "skills"],
    &["credentials", "telemetry"],
    &["store", "config"],
    &["secret"],
];

/// Names that say nothing attract everything.
const EMPTY_NAMES: [&str; 8] = [
    "util", "utils", "common", "helper", "helpers", "types", "prelude", "misc",
];

struct Source {
    /// From the root of the repository.
    path: String,
    text: String,
    /// The code without comments and texts.
    code: String,
}

impl Source {
    fn is_in(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// The module of the bridge that the file belongs to, for example `mcp`.
    fn module(&self) -> Option<&str> {
        let rest = self.path.strip_prefix("bridge/src/")?;
        let first = rest.split('/').next().unwrap_or(rest);
        Some(first.trim_end_matches(".rs"))
    }

    /// Says whether the code names a crate, a module or an item.
    fn names(&self, word: &str) -> bool {
        self.code.match_indices(word).any(|(at, _)| {
            let before = self.code[..at].chars().next_back();
            let after = self.code[at + word.len()..].chars().next();
            let is_part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
            !is_part(before) && !is_part(after)
        })
    }
}

fn root() -> PathBuf {
    let bridge = Path::new(env!("CARGO_MANIFEST_DIR"));
    bridge.parent().expect("it is in the workspace").to_owned()
}

/// Every source file of ours, by path.
fn sources() -> Vec<Source> {
    let mut paths = Vec::new();
    for folder in [
        "tool-macros",
        "tool-runtime",
        "servers",
        "bridge",
        "examples",
    ] {
        collect(&root().join(folder), &mut paths);
    }
    paths.sort();
    let root = root();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("it can be read");
        let path = path.strip_prefix(&root).expect("it is below the root");
        Source {
            path: path.to_str().expect("it is UTF-8").replace('\\', "/"),
            code: code(&text),
            text,
        }
    };
    let sources: Vec<Source> = paths.into_iter().map(read).collect();
    assert!(sources.len() > 50, "the sources are elsewhere");
    sources
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            // What fuzzing and compile errors are tried on is no code of ours; `wip` is what trybuild leaves behind.
            let name = path.file_name().and_then(|it| it.to_str());
            if !matches!(name, Some("target" | "wip" | "data")) {
                collect(&path, paths);
            }
        } else if path.extension().is_some_and(|it| it == "rs") {
            paths.push(path);
        }
    }
}

/// The sources of one folder, without tests.
fn sources_of(folder: &str) -> Vec<Source> {
    let sources: Vec<Source> = sources()
        .into_iter()
        .filter(|it| it.is_in(folder))
        .collect();
    assert!(!sources.is_empty(), "`{folder}` is elsewhere");
    sources
}

/// Takes comments and the contents of texts out, so that what is left is names and punctuation.
fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let bytes: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest {
            ['/', '/', ..] => rest.iter().take_while(|it| **it != '\n').count(),
            ['/', '*', ..] => length_of_block_comment(rest),
            ['r', '#' | '"', ..] if is_start(&bytes, at) => length_of_raw_text(rest).unwrap_or(0),
            ['"', ..] => length_of_text(rest),
            ['\'', '\\', _, ..] => 3 + rest[3..].iter().take_while(|it| **it != '\'').count() + 1,
            ['\'', _, '\'', ..] => 3,
            _ => 0,
        };
        if length == 0 {
            code.push(bytes[at]);
            at += 1;
        } else {
            code.push(' ');
            at += length;
        }
    }
    code
}

fn is_start(code: &[char], at: usize) -> bool {
    at == 0 || !(code[at - 1].is_alphanumeric() || code[at - 1] == '_')
}

fn length_of_block_comment(rest: &[char]) -> usize {
    let end = rest.windows(2).skip(2).position(|it| it == ['*', '/']);
    end.map_or(rest.len(), |it| it + 4)
}

fn length_of_text(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// `r"…"` or `r#"…"#`; `None` for a raw identifier such as `r#type`.
fn length_of_raw_text(rest: &[char]) -> Option<usize> {
    let marks = rest[1..].iter().take_while(|it| **it == '#').count();
    if rest.get(1 + marks) != Some(&'"') {
        return None;
    }
    let mut at = 2 + marks;
    loop {
        at += rest[at..].iter().position(|it| *it == '"')?;
        let closing = rest[at + 1..].iter().take_while(|it| **it == '#').count();
        if closing >= marks {
            return Some(at + 1 + marks);
        }
        at += 1;
    }
}

#[test]
fn code_is_what_is_left() {
    let text = r##"
        use a::b; // use c
        /* use d */ let e = "f::g \" h"; let i = r#"j "k" l"#; let m = 'n'; let o = '\''; let r#type = 'p: loop {};
    "##;
    let words: Vec<String> = code(text)
        .split(|it: char| !it.is_alphanumeric())
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    assert_eq!(
        words.join(" "),
        "use a b let e let i let m let o let r type p loop"
    );
}

#[track_caller]
fn nothing(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

/// Checks that only some files of the bridge name a crate.
#[track_caller]
fn only_in(krate: &str, allowed: &[&str]) {
    let wrong: Vec<String> = sources_of("bridge/src/")
        .into_iter()
        .filter(|it| it.names(krate))
        .map(|it| it.path)
        .filter(|path| {
            let rest = path.trim_start_matches("bridge/src/");
            !allowed.iter().any(|it| rest.starts_with(it))
        })
        .collect();
    nothing(&format!("only {allowed:?} may name `{krate}`"), &wrong);
}

#[test]
fn the_protocol_is_spoken_at_the_doors() {
    only_in("rmcp", &["mcp/", "upstream/", "credentials/"]);
}

#[test]
fn http_is_served_at_the_front() {
    only_in("axum", &["mcp/", "web/", "app.rs"]);
}

#[test]
fn sql_is_in_the_store() {
    only_in("sqlx", &["store/"]);
}

#[test]
fn the_command_line_is_read_in_one_place() {
    only_in("clap", &["cli.rs", "cli/"]);
}

/// The modules that a file of the bridge's library names: `crate::x` and `crate::{x, y::z}`.
fn imports(source: &Source) -> BTreeSet<String> {
    let mut imports = BTreeSet::new();
    for (at, _) in source.code.match_indices("crate::") {
        let before = source.code[..at].chars().next_back();
        if before.is_some_and(|it| it.is_alphanumeric() || "_$".contains(it)) {
            continue;
        }
        let rest = source.code[at + "crate::".len()..].trim_start();
        match rest.strip_prefix('{') {
            Some(group) => imports.extend(first_names(group)),
            None => imports.extend(word(rest)),
        }
    }
    imports
}

fn word(text: &str) -> Option<String> {
    let word: String = text
        .chars()
        .take_while(|it| it.is_alphanumeric() || *it == '_')
        .collect();
    (!word.is_empty()).then_some(word)
}

/// The first name of each path in a group, up to the brace that ends the group.
fn first_names(group: &str) -> Vec<String> {
    let (mut depth, mut names, mut is_first) = (0, Vec::new(), true);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_first = true,
            _ if character.is_whitespace() => {}
            _ => {
                if is_first {
                    names.extend(word(&group[at..]));
                }
                is_first = false;
            }
        }
    }
    names
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|it| it.contains(&module))
}

#[test]
fn arrows_point_down() {
    let mut wrong = Vec::new();
    for source in sources_of("bridge/src/") {
        let module = source.module().expect("it is in the bridge");
        if matches!(module, "lib" | "main") {
            continue;
        }
        let Some(from) = layer(module) else {
            wrong.push(format!(
                "{}: `{module}` has no place in the layers",
                source.path
            ));
            continue;
        };
        for import in imports(&source) {
            let is_below = layer(&import).is_some_and(|to| from < to);
            if import != module && !is_below {
                wrong.push(format!(
                    "{}: `{module}` may not know `{import}`",
                    source.path
                ));
            }
        }
    }
    nothing(
        "arrows point down only, and neighbours don't know each other",
        &wrong,
    );
}

#[test]
fn the_runtime_does_no_io_and_knows_no_protocol() {
    let manifest = manifest("tool-runtime");
    for krate in ["rmcp", "axum", "sqlx", "reqwest"] {
        for dependencies in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let named = manifest.get(dependencies).and_then(|it| it.get(krate));
            assert!(named.is_none(), "tool-runtime depends on {krate}");
        }
    }
    let mut wrong = Vec::new();
    for source in sources_of("tool-runtime/src/") {
        // The macro `assert_tools` reads and writes the file of a test.
        if source.path == "tool-runtime/src/golden.rs" {
            continue;
        }
        for outside in ["rmcp", "axum", "sqlx", "reqwest", "SystemTime"] {
            if source.names(outside) {
                wrong.push(format!("{}: `{outside}`", source.path));
            }
        }
        let std: BTreeSet<String> = std_modules(&source).into_iter().collect();
        for outside in ["fs", "net", "process", "env"] {
            if std.contains(outside) {
                wrong.push(format!("{}: `std::{outside}`", source.path));
            }
        }
    }
    nothing("the runtime does no I/O and knows no protocol", &wrong);
}

/// The modules of the standard library and of tokio that a file names.
fn std_modules(source: &Source) -> Vec<String> {
    let mut modules = Vec::new();
    for krate in ["std::", "tokio::"] {
        for (at, _) in source.code.match_indices(krate) {
            let rest = source.code[at + krate.len()..].trim_start();
            match rest.strip_prefix('{') {
                Some(group) => modules.extend(first_names(group)),
                None => modules.extend(word(rest)),
            }
        }
    }
    modules
}

#[test]
fn the_macros_name_the_runtime_by_path_only() {
    let manifest = manifest("tool-macros");
    let dependencies = manifest["dependencies"].as_table().expect("it is a table");
    for ours in ["tool-runtime", "servers", "clopen-mcp"] {
        assert!(
            !dependencies.contains_key(ours),
            "tool-macros depends on {ours}"
        );
    }
    let mut wrong = Vec::new();
    for source in sources_of("tool-macros/src/") {
        for (at, _) in source.code.match_indices("tool_runtime") {
            let before = source.code[..at].trim_end();
            if !before.ends_with("::") {
                let line = source.code[..at].matches('\n').count() + 1;
                wrong.push(format!("{}:{line}", source.path));
            }
        }
    }
    nothing(
        "the macros name the runtime as `::tool_runtime` only",
        &wrong,
    );
}

#[test]
fn servers_know_the_runtime_and_nothing_else_of_ours() {
    let manifest = manifest("servers");
    let dependencies = manifest["dependencies"].as_table().expect("it is a table");
    assert!(dependencies.contains_key("tool-runtime"));
    for ours in ["tool-macros", "clopen-mcp"] {
        assert!(
            !dependencies.contains_key(ours),
            "servers depends on {ours}"
        );
    }
    for source in sources_of("servers/src/") {
        for ours in ["tool_macros", "clopen_mcp", "rmcp"] {
            assert!(!source.names(ours), "{}: `{ours}`", source.path);
        }
    }
}

#[test]
fn only_the_binary_links_the_servers() {
    let wrong: Vec<String> = sources_of("bridge/src/")
        .into_iter()
        .filter(|it| it.path != "bridge/src/main.rs")
        .filter(|it| {
            // A module may have this name too, but a path to it that could mean the crate links the crate.
            let is_module_here = it.code.contains("mod servers;");
            let ways = ["use servers", "use ::servers", "crate servers"];
            let paths = it.code.match_indices("servers::");
            let mut before = paths.map(|(at, _)| it.code[..at].trim_end());
            ways.iter().any(|way| it.code.contains(way))
                || !is_module_here
                    && before.any(|it| {
                        !["crate::", "self::", "super::", "store::"]
                            .iter()
                            .any(|start| it.ends_with(start))
                    })
        })
        .map(|it| it.path)
        .collect();
    nothing("only main.rs links the servers", &wrong);
    let main = root().join("bridge/src/main.rs");
    let main = fs::read_to_string(main).expect("it can be read");
    assert!(main.contains("\nuse servers as _;"));
}

#[test]
fn the_binary_has_exactly_our_servers() {
    let folder = tempfile::TempDir::new().expect("the temporary folder can be written");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_clopen-mcp"))
        .env_clear()
        .env("CLOPEN_MCP_DATA", folder.path())
        .current_dir(folder.path())
        .args(["tools", "list"])
        .output()
        .expect("the binary starts");
    let list = String::from_utf8(output.stdout).expect("it is UTF-8");
    let servers: Vec<&str> = list
        .lines()
        .filter(|it| !it.starts_with(' '))
        .filter_map(|it| it.split(' ').next())
        .collect();
    assert_eq!(
        servers,
        [
            "api-gateway",
            "database",
            "file-utils",
            "results",
            "weather-service"
        ]
    );
}

#[test]
fn every_file_says_what_it_is_for() {
    let wrong: Vec<String> = sources()
        .into_iter()
        // The modules of a test binary are named after what they are about.
        .filter(|it| !it.path.contains("/tests/") || it.path.ends_with("/main.rs"))
        .filter(|it| !it.text.starts_with("//! ") && !it.text.starts_with("#![doc = include_str!("))
        .map(|it| it.path)
        .collect();
    nothing("a file opens with one sentence on what it is for", &wrong);
}

#[test]
fn no_name_says_nothing() {
    let wrong: Vec<String> = sources()
        .into_iter()
        .map(|it| it.path)
        .filter(|path| {
            let mut parts = path.trim_end_matches(".rs").split('/');
            parts.any(|it| EMPTY_NAMES.contains(&it))
        })
        .collect();
    nothing("a name that says nothing attracts everything", &wrong);
}

#[test]
fn nothing_is_left_to_do() {
    // In two parts, so that this file doesn't find itself.
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
    ];
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|it| {
            it.names_in_text(marks[0]) || it.names_in_text(marks[1]) || it.text.contains(marks[2])
        })
        .map(|it| it.path)
        .collect();
    nothing("what is left to do is an issue, not a comment", &wrong);
}

impl Source {
    fn names_in_text(&self, word: &str) -> bool {
        self.text
            .split(|it: char| !it.is_alphanumeric() && it != '_')
            .any(|it| it == word)
    }
}

#[test]
fn versions_stand_in_one_place() {
    let workspace = manifest(".");
    let members = workspace["workspace"]["dependencies"]
        .as_table()
        .expect("it is a table");
    let mut wrong = Vec::new();
    for folder in ["tool-macros", "tool-runtime", "servers", "bridge"] {
        let manifest = manifest(folder);
        for field in ["version", "edition", "rust-version", "license", "publish"] {
            let is_shared = manifest["package"][field]
                .get("workspace")
                .and_then(toml::Value::as_bool);
            if is_shared != Some(true) {
                wrong.push(format!("{folder}: `package.{field}`"));
            }
        }
        for (name, it) in dependencies(&manifest) {
            if it.get("workspace").and_then(toml::Value::as_bool) != Some(true) {
                wrong.push(format!("{folder}: `{name}`"));
            }
        }
    }
    nothing("versions stand in the workspace's manifest", &wrong);
    let version = workspace["workspace"]["package"]["version"].as_str();
    let exact = format!("={}", version.expect("it is a text"));
    for ours in ["tool-macros", "tool-runtime", "servers", "clopen-mcp"] {
        assert_eq!(members[ours]["version"].as_str(), Some(&*exact), "{ours}");
    }
}

fn manifest(folder: &str) -> Table {
    let file = root().join(folder).join("Cargo.toml");
    let text = fs::read_to_string(file).expect("it can be read");
    text.parse().expect("it is TOML")
}

/// All dependencies of a crate, whatever for and wherever.
fn dependencies(manifest: &Table) -> BTreeMap<String, toml::Value> {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let of = |table: &Table| -> Vec<(String, toml::Value)> {
        let tables = kinds.iter().filter_map(|it| table.get(*it)?.as_table());
        tables
            .flatten()
            .map(|(name, it)| (name.clone(), it.clone()))
            .collect()
    };
    let mut all = of(manifest);
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        all.extend(
            targets
                .values()
                .filter_map(toml::Value::as_table)
                .flat_map(of),
        );
    }
    all.into_iter().collect()
}
