//! What is true of every change to a configuration file, whatever is in the file.

use clopen_mcp::engines::edit::{
    Format::{self, Json, Toml, Yaml},
    Step::{self, Element, Key},
    get, parse, remove, set,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Texts that break a line, a quote or a type.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9_-]{0,6}",
        "[ -~]{0,8}",
        r#"["'\\#:{}\[\],\n\r\t .=|>&*!%@~ü\u{85}\u{2028}\u{7f}-]{0,6}"#,
        Just("true".to_owned()),
        Just("1e3".to_owned()),
        Just("null".to_owned()),
        any::<String>(),
    ]
}

fn scalars() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6).prop_map(Value::from),
        texts().prop_map(Value::from),
    ]
}

/// Values that all three formats can say.
fn values() -> impl Strategy<Value = Value> {
    scalars().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            objects_of(inner),
        ]
    })
}

fn objects_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((texts(), inner), 0..4)
        .prop_map(|it| Value::Object(it.into_iter().collect()))
}

fn objects() -> impl Strategy<Value = Value> {
    objects_of(values())
}

/// Servers of a file in which there may be ours.
fn servers() -> impl Strategy<Value = Vec<(String, Value)>> {
    prop::collection::vec((texts(), objects()), 0..4)
}

/// Says how a file is written beyond what it says.
#[derive(Clone, Debug)]
struct Habits {
    newline: &'static str,
    unit: &'static str,
    has_comments: bool,
    ends_with_newline: bool,
    has_trailing_commas: bool,
    mark: &'static str,
}

fn habits() -> impl Strategy<Value = Habits> {
    let texts = (
        prop::sample::select(vec!["\n", "\r\n"]),
        prop::sample::select(vec!["  ", "    ", "\t", " "]),
        prop::sample::select(vec!["", "\u{feff}"]),
    );
    (texts, any::<[bool; 3]>()).prop_map(|((newline, unit, mark), [comments, end, commas])| {
        Habits {
            newline,
            unit,
            has_comments: comments,
            ends_with_newline: end,
            has_trailing_commas: commas,
            mark,
        }
    })
}

impl Habits {
    /// Writes lines as someone with these habits does.
    fn text(&self, lines: &[String]) -> String {
        let mut text = self.mark.to_owned() + &lines.join(self.newline);
        if self.ends_with_newline {
            text += self.newline;
        }
        text
    }

    fn comment(&self, comment: &str) -> String {
        if self.has_comments {
            comment.to_owned()
        } else {
            String::new()
        }
    }

    fn json(&self, servers: &[(String, Value)], is_minified: bool) -> String {
        let comma = if self.has_trailing_commas { "," } else { "" };
        if is_minified {
            let servers: Vec<String> = servers
                .iter()
                .map(|(key, value)| format!("{}:{value}", json!(key)))
                .collect();
            return self.text(&[format!(
                "{{\"x\":1,\"mcp\":{{{}}},\"y\":[]}}",
                servers.join(",")
            )]);
        }
        let unit = self.unit;
        let mut lines = vec!["{".to_owned()];
        if self.has_comments {
            "/* head */ {".clone_into(&mut lines[0]);
        }
        lines.push(format!(
            "{unit}\"x\": 12345678901234567890123,{}",
            self.comment(" // x")
        ));
        if servers.is_empty() {
            lines.push(format!("{unit}\"mcp\": {{}}{comma}"));
        } else {
            lines.push(format!("{unit}\"mcp\": {{"));
            for (index, (key, value)) in servers.iter().enumerate() {
                let comma = if index + 1 < servers.len() {
                    ","
                } else {
                    comma
                };
                lines.push(format!(
                    "{unit}{unit}{}: {value}{comma}{}",
                    json!(key),
                    self.comment(" // it")
                ));
                lines.extend(
                    self.has_comments
                        .then(|| format!("{unit}{unit}/* a\n b */")),
                );
            }
            lines.push(format!("{unit}}}{comma}"));
        }
        lines.push("}".to_owned());
        self.text(&lines)
    }
}

/// What may stand between the tokens of JSON.
fn spaces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        " ",
        "",
        "\n",
        "\n  ",
        "\n\t",
        "\r\n",
        "// c\n",
        "/* c */",
        "/*\n*/",
        " // c,\n\n ",
    ]);
    prop::collection::vec(piece, 0..3).prop_map(|pieces| pieces.concat())
}

/// Says what has to be true of a file, whatever is in it.
fn survives(
    format: Format,
    text: &str,
    path: &[Step<'_>],
    value: &Value,
) -> Result<(), TestCaseError> {
    let Ok(before) = get(text, format, path) else {
        return Ok(());
    };
    let Ok(after) = set(text, format, path, value) else {
        return Ok(());
    };
    prop_assert_eq!(get(&after, format, path).unwrap(), Some(value.clone()));
    prop_assert_eq!(set(&after, format, path, value).unwrap(), after.as_str());
    if let Ok(back) = remove(&after, format, path) {
        prop_assert_eq!(get(&back, format, path).unwrap(), None);
    }
    if before.is_none() {
        prop_assert_eq!(remove(text, format, path).unwrap(), text);
    }
    Ok(())
}

/// Sets and removes, and says that the file is as it was.
fn comes_back(
    format: Format,
    text: &str,
    path: &[Step<'_>],
    value: &Value,
) -> Result<(), TestCaseError> {
    let before =
        get(text, format, path).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
    let after = set(text, format, path, value)
        .map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
    prop_assert_eq!(get(&after, format, path).unwrap(), Some(value.clone()));
    prop_assert_eq!(set(&after, format, path, value).unwrap(), after.as_str());
    if before.is_none() {
        prop_assert_eq!(remove(&after, format, path).unwrap(), text, "{:?}", after);
    }
    Ok(())
}

fn unique(servers: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut seen = BTreeSet::from(["ours".to_owned(), "name".to_owned()]);
    servers
        .into_iter()
        .filter(|(key, _)| seen.insert(key.clone()))
        .collect()
}

/// Pieces of which files are made, in any order.
fn broken() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        ": ",
        "\"",
        "\"a\"",
        "a",
        "mcp",
        "\"mcp\"",
        "ours",
        "- ",
        "-",
        "? ",
        "#",
        "//",
        "/*",
        "*/",
        "\n",
        "\r\n",
        "\r",
        " ",
        "  ",
        "\t",
        "=",
        ".",
        "'",
        "\"\"\"",
        "|",
        "|+\n",
        ">",
        "&a ",
        "*a",
        "!t ",
        "---\n",
        "...",
        "<<",
        "1",
        "null",
        "~",
        "{}",
        "[]",
        "[mcp]\n",
        "[[mcp]]\n",
        "name",
        "mcp:\n",
        "  a: 1\n",
        "mcp = {}\n",
        "ü",
        "\u{feff}",
        "\u{2028}",
        "\\",
        "\\ud800",
        "%YAML 1.2\n",
        "\u{0}",
        "[mcp.ours]\n",
        "ours = 1\n",
        "mcp.ours.a = 1\n",
        "\"mcp\": {",
        "\"ours\": 1",
        "- name: ours\n",
        "  ours:\n",
        "@",
        "`",
    ]);
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

const fn named(name: &str) -> Step<'_> {
    Element { key: "name", name }
}

const MCP: &[Step<'_>] = &[Key("mcp"), Key("ours")];
const LIST: &[Step<'_>] = &[Key("mcp"), named("ours")];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in prop_oneof![any::<String>(), broken()], value in objects()) {
        let mut named = value.clone();
        named["name"] = json!("ours");
        for format in [Json, Toml, Yaml] {
            drop(parse(&text, format));
            survives(format, &text, MCP, &value)?;
            survives(format, &text, LIST, &named)?;
            survives(format, &text, &MCP[..1], &value)?;
        }
    }

    #[test]
    fn json_comes_back_byte_for_byte(
        habits in habits(), servers in servers(), is_minified: bool, value in values(),
    ) {
        let text = habits.json(&unique(servers), is_minified);
        comes_back(Json, &text, MCP, &value)?;
    }

    #[test]
    fn json_comes_back_however_it_is_arranged(
        entries in prop::collection::btree_map("[a-n]", (spaces(), spaces(), spaces()), 1..4),
        around in prop::collection::vec(spaces(), 4),
        has_trailing_comma: bool,
        value in values(),
    ) {
        let written: Vec<String> = entries
            .iter()
            .map(|(key, (before, between, after))| format!("{before}\"{key}\"{between}:{between}{{}}{after}"))
            .collect();
        let comma = if has_trailing_comma { "," } else { "" };
        let [head, open, close, end] = [0, 1, 2, 3].map(|index| &around[index]);
        let written = written.join(",");
        let text = format!("{head}{{{open}\"mcp\":{open}{{{written}{comma}{close}}}{end}}}{head}");
        comes_back(Json, &text, MCP, &value)?;
        for key in entries.keys() {
            prop_assert!(remove(&text, Json, &[Key("mcp"), Key(key)]).is_ok(), "{:?}", text);
        }
    }

    #[test]
    fn toml_comes_back_byte_for_byte(
        habits in habits(), servers in servers(), is_inline: bool, value in objects(),
    ) {
        let mut text = habits.text(&[habits.comment("# head"), "x = 1".to_owned(), String::new()]);
        for (key, value) in unique(servers) {
            text = set(&text, Toml, &[Key("mcp"), Key(&key)], &value).unwrap();
            let comment = habits.comment("# between");
            if text.ends_with('\n') && !comment.is_empty() {
                text = text + &comment + habits.newline;
            }
        }
        if text.ends_with('\n') {
            text = text + "[z]" + habits.newline + &habits.comment("# end");
        }
        if is_inline {
            let all = get(&text, Toml, &[Key("mcp")]).unwrap().unwrap_or_else(|| json!({}));
            text = set("mcp = 1 # it\ny = 1\n", Toml, &[Key("mcp")], &all).unwrap();
        }
        comes_back(Toml, &text, MCP, &value)?;
    }

    #[test]
    fn yaml_comes_back_byte_for_byte(
        habits in habits(), servers in servers(), value in values(), indent in 1..5_usize,
    ) {
        let unit = " ".repeat(indent);
        let mut lines = vec![habits.comment("# head"), "x: ü # x".to_owned(), "l:".to_owned(), format!("{unit}a: 1")];
        let servers = unique(servers);
        if servers.is_empty() {
            lines.push(format!("mcp: {{}}{}", habits.comment(" # it")));
        } else {
            lines.push(format!("mcp:{}", habits.comment(" # it")));
        }
        let all = Value::Object(servers.into_iter().collect());
        let rendered = set(&format!("l:\n{unit}a: 1\n"), Yaml, &[Key("mcp")], &all).unwrap();
        lines.extend(rendered.lines().skip(3).map(str::to_owned));
        lines.push(habits.comment("  # between"));
        lines.push("y: |".to_owned());
        lines.push("  text".to_owned());
        let text = habits.text(&lines);
        comes_back(Yaml, &text, MCP, &value)?;
    }

    #[test]
    fn lists_come_back_byte_for_byte(
        names in prop::collection::btree_set("[a-n]{1,3}", 0..4), value in objects(), offset in 0..3_usize,
    ) {
        let mut value = value;
        value["name"] = json!("ours");
        let mut lines = vec!["x: 1".to_owned(), "mcp:".to_owned()];
        let indentation = " ".repeat(offset);
        for name in &names {
            lines.push(format!("{indentation}- url: u # {name}"));
            lines.push(format!("{indentation}  name: {name}"));
        }
        if names.is_empty() {
            lines[1] += " []";
        }
        lines.push("y: 1".to_owned());
        comes_back(Yaml, &lines.join("\n"), LIST, &value)?;

        let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        comes_back(Json, &serde_json::to_string_pretty(&json!({"mcp": list})).unwrap(), LIST, &value)?;
        let tables: Vec<String> = names.iter().map(|name| format!("[[mcp]]\nname = \"{name}\"\n")).collect();
        comes_back(Toml, &(tables.join("\n") + "[z]\n"), LIST, &value)?;
    }
}
