//! Changes to configuration files of engines: ours is there afterwards, and theirs is as it was.

use clopen_mcp::engines::edit::{
    Format::{self, Json, Toml, Yaml},
    Step::{self, Element, Key},
    get, parse, remove, set,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

const fn named(name: &str) -> Step<'_> {
    Element { key: "name", name }
}

const CLAUDE: &[Step<'_>] = &[Key("mcpServers"), Key("clopen-mcp")];
const OPENCODE: &[Step<'_>] = &[Key("mcp"), Key("clopen-mcp")];
const ZED: &[Step<'_>] = &[Key("context_servers"), Key("clopen-mcp")];
const CODEX: &[Step<'_>] = &[Key("mcp_servers"), Key("clopen-mcp")];
const VIBE: &[Step<'_>] = &[Key("mcp_servers"), named("clopen-mcp")];
const CONTINUE: &[Step<'_>] = &[Key("mcpServers"), named("clopen-mcp")];
const GOOSE: &[Step<'_>] = &[Key("extensions"), Key("clopen-mcp")];

fn server() -> Value {
    json!({
        "type": "http",
        "url": "http://127.0.0.1:9151/mcp",
        "headers": {"Authorization": "Bearer ${CLOPEN_TOKEN}"},
    })
}

fn codex_server() -> Value {
    json!({
        "url": "http://127.0.0.1:9151/mcp",
        "http_headers": {"Authorization": "Bearer T"},
        "required": true,
    })
}

fn continue_server() -> Value {
    json!({
        "name": "clopen-mcp",
        "type": "streamable-http",
        "url": "http://127.0.0.1:9151/mcp",
        "requestOptions": {"headers": {"Authorization": "Bearer T"}},
    })
}

/// Sets a value and shows the file; what is true of every change is checked on the way.
fn added(format: Format, path: &[Step<'_>], value: &Value, before: &str, expected: &Expect) {
    let after = holds(format, path, value, before);
    expected.assert_eq(&after);
}

/// The same for files in which white space matters.
fn added_exactly(
    format: Format,
    path: &[Step<'_>],
    value: &Value,
    before: &str,
    expected: &Expect,
) {
    let after = holds(format, path, value, before);
    expected.assert_eq(&format!("{after:?}"));
}

fn holds(format: Format, path: &[Step<'_>], value: &Value, before: &str) -> String {
    let after = set(before, format, path, value).expect("it can be set");
    assert_eq!(get(&after, format, path).unwrap().as_ref(), Some(value));
    assert_eq!(set(&after, format, path, value).unwrap(), after);
    let back = remove(&after, format, path).expect("it can be removed");
    assert_eq!(get(&back, format, path).unwrap(), None);
    let (last, parents) = path.split_last().unwrap();
    let parent = get(before, format, parents).unwrap();
    let had_parent = match last {
        Key(_) => parent.is_some_and(|it| it.is_object()),
        Element { .. } => parent.is_some_and(|it| it.is_array()),
    };
    let is_new = before.trim().is_empty();
    if had_parent && !is_new && get(before, format, path).unwrap().is_none() {
        assert_eq!(back, before, "the file is as it was");
    }
    after
}

fn removed(format: Format, path: &[Step<'_>], before: &str, expected: &Expect) {
    let after = remove(before, format, path).expect("it can be removed");
    assert_eq!(get(&after, format, path).unwrap(), None);
    expected.assert_eq(&after);
}

/// Shows why a file is neither read nor changed.
fn refused(format: Format, path: &[Step<'_>], text: &str, expected: &Expect) {
    let error = set(text, format, path, &server()).expect_err("it can't be set");
    expected.assert_eq(&error.to_string());
    assert!(remove(text, format, path).is_err() || get(text, format, path).unwrap().is_none());
}

#[test]
fn an_empty_file_becomes_one_with_the_server() {
    added(
        Json,
        CLAUDE,
        &server(),
        "",
        &expect![[r#"
        {
          "mcpServers": {
            "clopen-mcp": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              }
            }
          }
        }
    "#]],
    );
    let of_nothing = set("", Json, CLAUDE, &server()).unwrap();
    for blank in ["\n", " \n\t\n"] {
        assert_eq!(set(blank, Json, CLAUDE, &server()).unwrap(), of_nothing);
    }
    added(
        Toml,
        CODEX,
        &codex_server(),
        "",
        &expect![[r#"
        [mcp_servers.clopen-mcp]
        url = "http://127.0.0.1:9151/mcp"
        http_headers = { Authorization = "Bearer T" }
        required = true
    "#]],
    );
    added(
        Yaml,
        GOOSE,
        &server(),
        "",
        &expect![[r#"
        extensions:
          clopen-mcp:
            type: http
            url: http://127.0.0.1:9151/mcp
            headers:
              Authorization: "Bearer ${CLOPEN_TOKEN}"
    "#]],
    );
    added(
        Yaml,
        CONTINUE,
        &continue_server(),
        "\n\n",
        &expect![[r"
        mcpServers:
          - name: clopen-mcp
            type: streamable-http
            url: http://127.0.0.1:9151/mcp
            requestOptions:
              headers:
                Authorization: Bearer T
    "]],
    );
    added_exactly(
        Json,
        &[Key("a")],
        &json!(1),
        "\u{feff}",
        &expect![[r#""\u{feff}{\n  \"a\": 1\n}\n""#]],
    );
    added_exactly(
        Json,
        &[Key("a")],
        &json!({"b": []}),
        "\r\n",
        &expect![[r#""{\r\n  \"a\": {\r\n    \"b\": []\r\n  }\r\n}\r\n""#]],
    );
    added_exactly(
        Toml,
        &[Key("a")],
        &json!(1),
        "\r\n",
        &expect![[r#""a = 1\r\n""#]],
    );
    added_exactly(
        Yaml,
        &[Key("a")],
        &json!(1),
        "\r\n",
        &expect![[r#""a: 1\r\n""#]],
    );
}

#[test]
fn a_server_comes_after_the_others() {
    added(
        Json,
        CLAUDE,
        &server(),
        r#"{
  "numStartups": 9007199254740993123,
  "tipsHistory": {},
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": ["-y", "x"]
    }
  },
  "cut": "\ud83d"
}
"#,
        &expect![[r#"
            {
              "numStartups": 9007199254740993123,
              "tipsHistory": {},
              "mcpServers": {
                "github": {
                  "command": "npx",
                  "args": ["-y", "x"]
                },
                "clopen-mcp": {
                  "type": "http",
                  "url": "http://127.0.0.1:9151/mcp",
                  "headers": {
                    "Authorization": "Bearer ${CLOPEN_TOKEN}"
                  }
                }
              },
              "cut": "\ud83d"
            }
        "#]],
    );
    added(
        Json,
        OPENCODE,
        &server(),
        r#"{
    // Which model.
    "model": "x", // the good one
    "mcp": {
        // Theirs.
        "other": {"type": "local"}, // keep
        /* "old": {}, */
    },
}"#,
        &expect![[r#"
            {
                // Which model.
                "model": "x", // the good one
                "mcp": {
                    // Theirs.
                    "other": {"type": "local"}, // keep
                    "clopen-mcp": {
                        "type": "http",
                        "url": "http://127.0.0.1:9151/mcp",
                        "headers": {
                            "Authorization": "Bearer ${CLOPEN_TOKEN}"
                        }
                    },
                    /* "old": {}, */
                },
            }"#]],
    );
    added(
        Json,
        ZED,
        &server(),
        "// Zed settings\n//\n{\n\t\"theme\": \"One\",\n\t\"context_servers\": {\n\t\t\"a\": {} // last\n\t\t// end\n\t}\n}\n",
        &expect![[r#"
            // Zed settings
            //
            {
            	"theme": "One",
            	"context_servers": {
            		"a": {}, // last
            		"clopen-mcp": {
            			"type": "http",
            			"url": "http://127.0.0.1:9151/mcp",
            			"headers": {
            				"Authorization": "Bearer ${CLOPEN_TOKEN}"
            			}
            		}
            		// end
            	}
            }
        "#]],
    );
}

#[test]
fn missing_parents_are_made() {
    added(
        Json,
        CLAUDE,
        &server(),
        "{\n  \"a\": 1\n}\n",
        &expect![[r#"
            {
              "a": 1,
              "mcpServers": {
                "clopen-mcp": {
                  "type": "http",
                  "url": "http://127.0.0.1:9151/mcp",
                  "headers": {
                    "Authorization": "Bearer ${CLOPEN_TOKEN}"
                  }
                }
              }
            }
        "#]],
    );
    added(
        Json,
        CLAUDE,
        &server(),
        "{}",
        &expect![[r#"
        {
          "mcpServers": {
            "clopen-mcp": {
              "type": "http",
              "url": "http://127.0.0.1:9151/mcp",
              "headers": {
                "Authorization": "Bearer ${CLOPEN_TOKEN}"
              }
            }
          }
        }"#]],
    );
    added(
        Json,
        CLAUDE,
        &json!({}),
        "{\"mcpServers\": null}",
        &expect![[r#"{"mcpServers": {"clopen-mcp": {}}}"#]],
    );
    added(
        Json,
        CLAUDE,
        &json!({}),
        "// nothing yet",
        &expect![[r#"
        // nothing yet
        {
          "mcpServers": {
            "clopen-mcp": {}
          }
        }
    "#]],
    );
    added(
        Json,
        &[Key("list"), named("a"), Key("url")],
        &json!("u"),
        "{}",
        &expect![[r#"
            {
              "list": [
                {
                  "name": "a",
                  "url": "u"
                }
              ]
            }"#]],
    );
}

#[test]
fn an_empty_object_is_opened_as_its_surroundings_are() {
    added(
        Json,
        CLAUDE,
        &json!({"url": "u"}),
        "{\n    \"mcpServers\": {}\n}\n",
        &expect![[r#"
            {
                "mcpServers": {
                    "clopen-mcp": {
                        "url": "u"
                    }
                }
            }
        "#]],
    );
    added(
        Json,
        CLAUDE,
        &json!({"url": "u"}),
        "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n",
        &expect![[r#"
            {
              "mcpServers": {
                // none yet
                "clopen-mcp": {
                  "url": "u"
                }
              }
            }
        "#]],
    );
    added(
        Json,
        CLAUDE,
        &json!({"url": "u"}),
        "{ \"mcpServers\": {} }",
        &expect![[r#"{ "mcpServers": {"clopen-mcp": {"url": "u"}} }"#]],
    );
    added(
        Json,
        CLAUDE,
        &json!({"url": "u"}),
        "{ \"mcpServers\": {/* none */} }",
        &expect![[r#"{ "mcpServers": {/* none */ "clopen-mcp": {"url": "u"}} }"#]],
    );
}

#[test]
fn what_is_on_one_line_stays_on_it() {
    for (before, expected) in [
        (
            r#"{"mcpServers":{"a":{}},"z":1}"#,
            expect![[r#"{"mcpServers":{"a":{},"clopen-mcp":{"url":"u","args":[1,2]}},"z":1}"#]],
        ),
        (
            r#"{"mcpServers": {"a": {}}}"#,
            expect![[r#"{"mcpServers": {"a": {}, "clopen-mcp": {"url": "u", "args": [1, 2]}}}"#]],
        ),
        (
            r#"{ "mcpServers": { "a": {}, } }"#,
            expect![[
                r#"{ "mcpServers": { "a": {}, "clopen-mcp": {"url": "u", "args": [1, 2]}, } }"#
            ]],
        ),
        (
            "{\n  \"mcpServers\": { \"a\": {} }\n}",
            expect![[r#"
            {
              "mcpServers": { "a": {}, "clopen-mcp": {"url": "u", "args": [1, 2]} }
            }"#]],
        ),
    ] {
        added(
            Json,
            CLAUDE,
            &json!({"url": "u", "args": [1, 2]}),
            before,
            &expected,
        );
    }
}

#[test]
fn line_ends_tabs_and_marks_stay() {
    for (before, expected) in [
        (
            "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": 1\r\n\t}\r\n}\r\n",
            expect![[
                r#""\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": 1,\r\n\t\t\"clopen-mcp\": {\r\n\t\t\t\"url\": \"u\"\r\n\t\t}\r\n\t}\r\n}\r\n""#
            ]],
        ),
        (
            "{\r\n  \"mcpServers\": {}\r\n}",
            expect![[
                r#""{\r\n  \"mcpServers\": {\r\n    \"clopen-mcp\": {\r\n      \"url\": \"u\"\r\n    }\r\n  }\r\n}""#
            ]],
        ),
        (
            "{\n   \"mcpServers\": {\n      \"a\": 1   \n   } }  \n\n",
            expect![[
                r#""{\n   \"mcpServers\": {\n      \"a\": 1,   \n      \"clopen-mcp\": {\n         \"url\": \"u\"\n      }\n   } }  \n\n""#
            ]],
        ),
    ] {
        added_exactly(Json, CLAUDE, &json!({"url": "u"}), before, &expected);
    }
    for (before, expected) in [
        (
            "\u{feff}[mcp_servers.a]\r\nurl = \"u\"\r\n\r\n[z]\r\n",
            expect![[
                r#""\u{feff}[mcp_servers.a]\r\nurl = \"u\"\r\n\r\n[mcp_servers.clopen-mcp]\r\nurl = \"u\"\r\n\r\n[z]\r\n""#
            ]],
        ),
        (
            "[mcp_servers.a]\r\nurl = \"u\"",
            expect![[
                r#""[mcp_servers.a]\r\nurl = \"u\"\r\n\r\n[mcp_servers.clopen-mcp]\r\nurl = \"u\"""#
            ]],
        ),
        (
            "[mcp_servers.a]\nurl = \"u\"\n\n\n",
            expect![[
                r#""[mcp_servers.a]\nurl = \"u\"\n\n[mcp_servers.clopen-mcp]\nurl = \"u\"\n\n\n""#
            ]],
        ),
    ] {
        added_exactly(Toml, CODEX, &json!({"url": "u"}), before, &expected);
    }
    for (before, expected) in [
        (
            "\u{feff}extensions:\r\n    a:\r\n        b: 1\r\nz: ü\r\n",
            expect![[
                r#""\u{feff}extensions:\r\n    a:\r\n        b: 1\r\n    clopen-mcp:\r\n        url: u\r\nz: ü\r\n""#
            ]],
        ),
        (
            "z: ü\nextensions:\n  a: 1",
            expect![[r#""z: ü\nextensions:\n  a: 1\n  clopen-mcp:\n    url: u""#]],
        ),
        (
            "extensions:\n  a: |\n    x\n\n\n# end",
            expect![[r#""extensions:\n  a: |\n    x\n  clopen-mcp:\n    url: u\n\n\n# end""#]],
        ),
        (
            "extensions:\n  a: |+\n    x\n\n\nz: 1\n",
            expect![[r#""extensions:\n  a: |+\n    x\n\n\n  clopen-mcp:\n    url: u\nz: 1\n""#]],
        ),
    ] {
        added_exactly(Yaml, GOOSE, &json!({"url": "u"}), before, &expected);
    }
}

#[test]
fn a_server_that_is_there_is_replaced_in_its_place() {
    added(
        Json,
        CLAUDE,
        &json!({"url": "new"}),
        "{\n  \"mcpServers\": {\n    \"clopen-mcp\": {\n      // ours\n      \"url\": \"old\"\n    }, // keep\n    \"z\": {}\n  }\n}\n",
        &expect![[r#"
            {
              "mcpServers": {
                "clopen-mcp": {
                  "url": "new"
                }, // keep
                "z": {}
              }
            }
        "#]],
    );
    added(
        Json,
        &[Key("servers"), named("b"), Key("url")],
        &json!("new"),
        r#"{"servers": [{"name": "a", "url": "1"}, {"name": "b", "url": "2"}]}"#,
        &expect![[r#"{"servers": [{"name": "a", "url": "1"}, {"name": "b", "url": "new"}]}"#]],
    );
}

#[test]
fn a_table_that_is_there_is_replaced_in_its_place() {
    added(
        Toml,
        CODEX,
        &json!({"url": "new"}),
        "[mcp_servers.clopen-mcp]\nurl = \"old\"\n# ours\nrequired = true\n[mcp_servers.clopen-mcp.env]\nA = \"1\"\n\n# theirs\n[z]\n[mcp_servers.clopen-mcp.tools.x]\n[y]\n",
        &expect![[r#"
            [mcp_servers.clopen-mcp]
            url = "new"

            # theirs
            [z]
            [y]
        "#]],
    );
    added(
        Toml,
        CODEX,
        &json!({"url": "new", "env": {"A": "1"}}),
        "mcp_servers.clopen-mcp.url = \"old\" # ours\nmcp_servers.a.url = \"u\"\n",
        &expect![[r#"
            mcp_servers.clopen-mcp.url = "new"
            mcp_servers.clopen-mcp.env = { A = "1" }
            mcp_servers.a.url = "u"
        "#]],
    );
    added(
        Toml,
        CODEX,
        &json!({"url": "new"}),
        "[mcp_servers]\na = { url = \"u\" }\nclopen-mcp = { url = \"old\" } # ours\n",
        &expect![[r#"
            [mcp_servers]
            a = { url = "u" }
            clopen-mcp = { url = "new" } # ours
        "#]],
    );
    added(
        Toml,
        VIBE,
        &json!({"name": "clopen-mcp", "url": "new"}),
        "[[mcp_servers]]\nname = \"a\"\n\n[[mcp_servers]]\nurl = \"old\"\nname = \"clopen-mcp\"\n\n[[mcp_servers]]\n",
        &expect![[r#"
            [[mcp_servers]]
            name = "a"

            [[mcp_servers]]
            name = "clopen-mcp"
            url = "new"

            [[mcp_servers]]
        "#]],
    );
}

#[test]
fn a_block_that_is_there_is_replaced_in_its_place() {
    added(
        Yaml,
        GOOSE,
        &json!({"url": "new"}),
        "extensions:\n  clopen-mcp: # ours\n    url: old\n    x: [1]\n\n  # theirs\n  z:\n    a: 1\n",
        &expect![[r"
            extensions:
              clopen-mcp:
                url: new

              # theirs
              z:
                a: 1
        "]],
    );
    added(
        Yaml,
        &[Key("extensions"), Key("clopen-mcp"), Key("enabled")],
        &json!(false),
        "extensions:\n  clopen-mcp:\n    enabled: true # by hand\n    x: 1\n",
        &expect![[r"
            extensions:
              clopen-mcp:
                enabled: false # by hand
                x: 1
        "]],
    );
    added(
        Yaml,
        CONTINUE,
        &continue_server(),
        "mcpServers:\n  - name: a\n    url: u\n  # ours\n  - url: old\n    name: clopen-mcp\n  - name: z\n",
        &expect![[r"
            mcpServers:
              - name: a
                url: u
              # ours
              - name: clopen-mcp
                type: streamable-http
                url: http://127.0.0.1:9151/mcp
                requestOptions:
                  headers:
                    Authorization: Bearer T
              - name: z
        "]],
    );
}

#[test]
fn codex_gets_a_table_of_its_own() {
    for (before, expected) in [
        (
            "model = \"x\" # the good one\n\n[features]\nweb = true\n",
            expect![[r#"
                model = "x" # the good one

                [features]
                web = true

                [mcp_servers.clopen-mcp]
                url = "http://127.0.0.1:9151/mcp"
                http_headers = { Authorization = "Bearer T" }
                required = true
            "#]],
        ),
        (
            "[mcp_servers.github]\ncommand = \"npx\"\n[mcp_servers.github.env]\nA = \"1\"\n\n# Where we trust.\n[projects.\"/home/x\"]\ntrust_level = \"trusted\"\n",
            expect![[r#"
                [mcp_servers.github]
                command = "npx"
                [mcp_servers.github.env]
                A = "1"

                [mcp_servers.clopen-mcp]
                url = "http://127.0.0.1:9151/mcp"
                http_headers = { Authorization = "Bearer T" }
                required = true

                # Where we trust.
                [projects."/home/x"]
                trust_level = "trusted"
            "#]],
        ),
        (
            "[mcp_servers]\n\n[mcp_servers.a]\nurl = \"u\"\n[tui]\n",
            expect![[r#"
                [mcp_servers]

                [mcp_servers.a]
                url = "u"

                [mcp_servers.clopen-mcp]
                url = "http://127.0.0.1:9151/mcp"
                http_headers = { Authorization = "Bearer T" }
                required = true
                [tui]
            "#]],
        ),
        (
            "[mcp_servers]\na = { url = \"u\" }\n\n[tui]\n",
            expect![[r#"
                [mcp_servers]
                a = { url = "u" }

                [mcp_servers.clopen-mcp]
                url = "http://127.0.0.1:9151/mcp"
                http_headers = { Authorization = "Bearer T" }
                required = true

                [tui]
            "#]],
        ),
        (
            "mcp_servers.a.url = \"u\"\nmodel = \"x\"\n[tui]\n",
            expect![[r#"
                mcp_servers.a.url = "u"
                mcp_servers.clopen-mcp.url = "http://127.0.0.1:9151/mcp"
                mcp_servers.clopen-mcp.http_headers = { Authorization = "Bearer T" }
                mcp_servers.clopen-mcp.required = true
                model = "x"
                [tui]
            "#]],
        ),
        (
            "mcp_servers = { a = { url = \"u\" } }\n",
            expect![[r#"
            mcp_servers = { a = { url = "u" }, clopen-mcp = { url = "http://127.0.0.1:9151/mcp", http_headers = { Authorization = "Bearer T" }, required = true } }
        "#]],
        ),
        (
            "mcp_servers = {} # none\nx = 1\n",
            expect![[r#"
            mcp_servers = { clopen-mcp = { url = "http://127.0.0.1:9151/mcp", http_headers = { Authorization = "Bearer T" }, required = true } } # none
            x = 1
        "#]],
        ),
        (
            "# only a comment",
            expect![[r#"
            # only a comment

            [mcp_servers.clopen-mcp]
            url = "http://127.0.0.1:9151/mcp"
            http_headers = { Authorization = "Bearer T" }
            required = true"#]],
        ),
    ] {
        added(Toml, CODEX, &codex_server(), before, &expected);
    }
}

#[test]
fn lists_of_tables_get_another_table() {
    for (before, expected) in [
        (
            "[[mcp_servers]]\nname = \"a\"\nurl = \"u\"\n\n[tools]\n",
            expect![[r#"
                [[mcp_servers]]
                name = "a"
                url = "u"

                [[mcp_servers]]
                name = "clopen-mcp"
                url = "u"

                [tools]
            "#]],
        ),
        (
            "model = \"x\"\n",
            expect![[r#"
            model = "x"

            [[mcp_servers]]
            name = "clopen-mcp"
            url = "u"
        "#]],
        ),
        (
            "mcp_servers = [{ name = \"a\" }]\n",
            expect![[r#"
            mcp_servers = [{ name = "a" }, { name = "clopen-mcp", url = "u" }]
        "#]],
        ),
        (
            "mcp_servers = [\n  { name = \"a\" }, # first\n]\n",
            expect![[r#"
                mcp_servers = [
                  { name = "a" }, # first
                  { name = "clopen-mcp", url = "u" },
                ]
            "#]],
        ),
        (
            "mcp_servers = []\n",
            expect![[r#"
            mcp_servers = [{ name = "clopen-mcp", url = "u" }]
        "#]],
        ),
    ] {
        let value = json!({"name": "clopen-mcp", "url": "u"});
        added(Toml, VIBE, &value, before, &expected);
    }
    added(
        Toml,
        &[Key("mcp_servers"), named("a"), Key("url")],
        &json!("new"),
        "[[mcp_servers]]\nname = \"a\"\n[[mcp_servers]]\nname = \"b\"\n",
        &expect![[r#"
            [[mcp_servers]]
            name = "a"
            url = "new"
            [[mcp_servers]]
            name = "b"
        "#]],
    );
}

#[test]
fn a_key_comes_after_the_keys_of_its_table() {
    for (path, before, expected) in [
        (
            &[Key("notify")][..],
            "# head\nmodel = \"x\"\n\n[a]\nb = 1\n",
            expect![[r#"
                # head
                model = "x"
                notify = ["p", 1.5, true]

                [a]
                b = 1
            "#]],
        ),
        (
            &[Key("notify")],
            "[a]\nb = 1\n",
            expect![[r#"
            notify = ["p", 1.5, true]
            [a]
            b = 1
        "#]],
        ),
        (
            &[Key("a"), Key("c d")],
            "[a]\nb = 1 # x\n\n[a.z]\n[q]\n",
            expect![[r#"
                [a]
                b = 1 # x
                "c d" = ["p", 1.5, true]

                [a.z]
                [q]
            "#]],
        ),
        (
            &[Key("a"), Key("c")],
            "[a.z]\n[q]\n",
            expect![[r#"
            [a.z]

            [a]
            c = ["p", 1.5, true]
            [q]
        "#]],
        ),
        (
            &[Key("n"), Key("c")],
            "x = 1\n",
            expect![[r#"
            x = 1

            [n]
            c = ["p", 1.5, true]
        "#]],
        ),
    ] {
        let after = set(before, Toml, path, &json!(["p", 1.5, true])).unwrap();
        expected.assert_eq(&after);
    }
}

#[test]
fn continue_gets_what_its_neighbours_look_like() {
    for (before, expected) in [
        (
            "name: Local\nversion: 1.0.0\nmcpServers:\n  - name: a # first\n    command: npx\n    args:\n      - -y\nmodels: []\n",
            expect![[r"
                name: Local
                version: 1.0.0
                mcpServers:
                  - name: a # first
                    command: npx
                    args:
                      - -y
                  - name: clopen-mcp
                    type: streamable-http
                    url: http://127.0.0.1:9151/mcp
                    requestOptions:
                      headers:
                        Authorization: Bearer T
                models: []
            "]],
        ),
        (
            "mcpServers:\n- name: a\n  args:\n  - x\n",
            expect![[r"
            mcpServers:
            - name: a
              args:
              - x
            - name: clopen-mcp
              type: streamable-http
              url: http://127.0.0.1:9151/mcp
              requestOptions:
                headers:
                  Authorization: Bearer T
        "]],
        ),
        (
            "mcpServers: [] # none\nx: 1\n",
            expect![[r"
            mcpServers: # none
              - name: clopen-mcp
                type: streamable-http
                url: http://127.0.0.1:9151/mcp
                requestOptions:
                  headers:
                    Authorization: Bearer T
            x: 1
        "]],
        ),
        (
            "models:\n    - name: m\n",
            expect![[r"
            models:
                - name: m
            mcpServers:
                - name: clopen-mcp
                  type: streamable-http
                  url: http://127.0.0.1:9151/mcp
                  requestOptions:
                    headers:
                      Authorization: Bearer T
        "]],
        ),
        (
            "mcpServers:\n  -   name: a\n      url: u\n\n# end\n",
            expect![[r"
                mcpServers:
                  -   name: a
                      url: u
                  -   name: clopen-mcp
                      type: streamable-http
                      url: http://127.0.0.1:9151/mcp
                      requestOptions:
                        headers:
                          Authorization: Bearer T

                # end
            "]],
        ),
    ] {
        added(Yaml, CONTINUE, &continue_server(), before, &expected);
    }
}

#[test]
fn goose_gets_what_its_neighbours_look_like() {
    for (before, expected) in [
        (
            "extensions:\n    developer:\n        enabled: true\n        # later\n    # memory:\nGOOSE_MODEL: x\n",
            expect![[r#"
                extensions:
                    developer:
                        enabled: true
                        # later
                    clopen-mcp:
                        type: http
                        url: http://127.0.0.1:9151/mcp
                        headers:
                            Authorization: "Bearer ${CLOPEN_TOKEN}"
                    # memory:
                GOOSE_MODEL: x
            "#]],
        ),
        (
            "extensions: # mine\n",
            expect![[r#"
            extensions: # mine
              clopen-mcp:
                type: http
                url: http://127.0.0.1:9151/mcp
                headers:
                  Authorization: "Bearer ${CLOPEN_TOKEN}"
        "#]],
        ),
        (
            "a: 1\nextensions: {}\n",
            expect![[r#"
            a: 1
            extensions:
              clopen-mcp:
                type: http
                url: http://127.0.0.1:9151/mcp
                headers:
                  Authorization: "Bearer ${CLOPEN_TOKEN}"
        "#]],
        ),
        (
            "---\n# head\na: &x 1\nb: *x\n...\n",
            expect![[r#"
            ---
            # head
            a: &x 1
            b: *x
            extensions:
              clopen-mcp:
                type: http
                url: http://127.0.0.1:9151/mcp
                headers:
                  Authorization: "Bearer ${CLOPEN_TOKEN}"
            ...
        "#]],
        ),
        (
            "# only a comment\n",
            expect![[r#"
            # only a comment
            extensions:
              clopen-mcp:
                type: http
                url: http://127.0.0.1:9151/mcp
                headers:
                  Authorization: "Bearer ${CLOPEN_TOKEN}"
        "#]],
        ),
        (
            "{}",
            expect![[r#"
            extensions:
              clopen-mcp:
                type: http
                url: http://127.0.0.1:9151/mcp
                headers:
                  Authorization: "Bearer ${CLOPEN_TOKEN}""#]],
        ),
    ] {
        added(Yaml, GOOSE, &server(), before, &expected);
    }
}

#[test]
fn texts_of_yaml_have_quotes_where_they_need_them() {
    let value = json!({
        "yes": "no", "1": "1", "": "", "a: b": "- x", "#": "a #b", "t": "true", "d": "2001-01-01",
        "l": "a\nb\u{85}\u{2028}\"\\", "u": "http://127.0.0.1:9/mcp", "h": "Bearer T", "e": "ü",
        "n": null, "f": 1.0, "big": 1e300, "neg": -1, "lists": [[1, []], [{"a": {}, "b": [1]}], []],
        "<<": "=", "~": "~", "end": "x:", "x": " x", "v": "${V}", "i": ".inf", "s": "a  b",
    });
    added(
        Yaml,
        &[Key("a")],
        &value,
        "",
        &expect![[r##"
        a:
          "yes": "no"
          "1": "1"
          "": ""
          "a: b": "- x"
          "#": "a #b"
          t: "true"
          d: "2001-01-01"
          l: "a\nb\u0085\u2028\"\\"
          u: http://127.0.0.1:9/mcp
          h: Bearer T
          e: "ü"
          "n": null
          f: 1.0
          big: 1e+300
          neg: -1
          lists:
            - - 1
              - []
            - - a: {}
                b:
                  - 1
            - []
          "<<": "="
          "~": "~"
          end: "x:"
          x: " x"
          v: "${V}"
          i: ".inf"
          s: a  b
    "##]],
    );
}

#[test]
fn only_the_entry_goes() {
    for (before, expected) in [
        (
            "{\n  \"mcpServers\": {\n    \"clopen-mcp\": {}\n  }\n}\n",
            expect![[r#"
                {
                  "mcpServers": {}
                }
            "#]],
        ),
        (
            "{\n  \"mcpServers\": {\n    // a\n    \"clopen-mcp\": {}, // ours\n    // b\n    \"z\": 1 // z\n  }\n}\n",
            expect![[r#"
                {
                  "mcpServers": {
                    // a
                    // b
                    "z": 1 // z
                  }
                }
            "#]],
        ),
        (
            "{\n  \"mcpServers\": {\n    \"a\": 1, // a\n    // b\n    \"clopen-mcp\": {} // ours\n    // c\n  }\n}\n",
            expect![[r#"
                {
                  "mcpServers": {
                    "a": 1 // a
                    // b
                    // c
                  }
                }
            "#]],
        ),
        (
            "{\n  \"mcpServers\": {\n    \"a\": 1,\n\n    \"clopen-mcp\": {},\n  }\n}\n",
            expect![[r#"
                {
                  "mcpServers": {
                    "a": 1,

                  }
                }
            "#]],
        ),
        (
            r#"{"mcpServers": {"clopen-mcp": {}, "z": 1}}"#,
            expect![[r#"{"mcpServers": {"z": 1}}"#]],
        ),
        (
            r#"{"mcpServers": {"a": 1, "clopen-mcp": {}, "z": 1}}"#,
            expect![[r#"{"mcpServers": {"a": 1, "z": 1}}"#]],
        ),
        (
            r#"{"mcpServers": { "a": 1 /* a */, /* o */ "clopen-mcp": {} }}"#,
            expect![[r#"{"mcpServers": { "a": 1 /* a */ /* o */ }}"#]],
        ),
        (
            r#"{"mcpServers": { "clopen-mcp": {}, }}"#,
            expect![[r#"{"mcpServers": {}}"#]],
        ),
        (
            "{\"mcpServers\": {\n  \"clopen-mcp\": {}, \"z\": 1\n}}",
            expect![[r#"
                {"mcpServers": {
                  "z": 1
                }}"#]],
        ),
    ] {
        removed(Json, CLAUDE, before, &expected);
    }
}

#[test]
fn only_the_table_goes() {
    for (before, expected) in [
        (
            "[mcp_servers.clopen-mcp]\nurl = \"u\"\n\n[z]\n",
            expect![[r"
                [z]
            "]],
        ),
        (
            "a = 1\n\n# about it\n[mcp_servers.clopen-mcp] # ours\nurl = \"\"\"\n[x]\n\"\"\"\n[mcp_servers.clopen-mcp.env]\n# about z\n[z]\n",
            expect![[r"
                a = 1

                # about it
                # about z
                [z]
            "]],
        ),
        (
            "[mcp_servers]\nclopen-mcp = {}\n",
            expect![[r"
            [mcp_servers]
        "]],
        ),
        (
            "mcp_servers.clopen-mcp.url = \"u\"\nmcp_servers.clopen-mcp.x = 1\nmcp_servers.a.x = 1\n",
            expect![[r"
                mcp_servers.a.x = 1
            "]],
        ),
        (
            "mcp_servers = { clopen-mcp = {}, b = 1 }\n",
            expect![[r"
            mcp_servers = { b = 1 }
        "]],
        ),
        (
            "mcp_servers = { b.c = 1, clopen-mcp = {} }\n",
            expect![[r"
                mcp_servers = { b.c = 1 }
            "]],
        ),
        (
            "mcp_servers = {\n  a = 1, # a\n  clopen-mcp = {}, # ours\n}\n",
            expect![[r"
                mcp_servers = {
                  a = 1, # a
                }
            "]],
        ),
    ] {
        removed(Toml, CODEX, before, &expected);
    }
}

#[test]
fn only_the_block_goes() {
    for (before, expected) in [
        (
            "extensions:\n  # about\n  clopen-mcp:\n    a: 1\n  # end\nz: 1\n",
            expect![[r"
                extensions: {}
                  # about
                  # end
                z: 1
            "]],
        ),
        (
            "extensions:\n  a: 1\n  clopen-mcp:\n    a: 1 # ours\n\n  b: 1\n",
            expect![[r"
                extensions:
                  a: 1

                  b: 1
            "]],
        ),
        (
            "extensions:\n  a: 1\n  clopen-mcp: {a: 1}",
            expect![[r"
            extensions:
              a: 1"]],
        ),
    ] {
        removed(Yaml, GOOSE, before, &expected);
    }
}

#[test]
fn only_the_item_goes() {
    for (before, expected) in [
        (
            "mcpServers:\n- name: clopen-mcp\n  a: 1\n- name: z\n",
            expect![[r"
                mcpServers:
                - name: z
            "]],
        ),
        (
            "mcpServers:\n  - name: clopen-mcp\nz: 1\n",
            expect![[r"
            mcpServers: []
            z: 1
        "]],
        ),
    ] {
        removed(Yaml, CONTINUE, before, &expected);
    }
    removed(
        Yaml,
        &[Key("a")],
        "a: 1\n",
        &expect![[r"
        {}
    "]],
    );
    removed(
        Yaml,
        &[Key("a")],
        "# a\na:\n  - 1\nb: 2\n",
        &expect![[r"
        # a
        b: 2
    "]],
    );
    removed(
        Yaml,
        &[Key("l"), named("x"), Key("url")],
        "l:\n  - url: u\n    name: x\n",
        &expect![[r"
            l:
              - name: x
        "]],
    );
}

#[test]
fn large_files_take_no_time() {
    let entries: Vec<String> = (0..5_000)
        .map(|index| format!("\"k{index}\":{{\"a\":[1,2,\"x\"]}}"))
        .collect();
    let on_one_line = format!("{{\"mcpServers\":{{{}}}}}", entries.join(","));
    let on_many_lines = on_one_line.replace(',', ",\n");
    for text in [on_one_line, on_many_lines] {
        holds(Json, CLAUDE, &server(), &text);
    }
}

#[test]
fn what_is_not_there_is_not_removed() {
    for (format, text) in [
        (Json, ""),
        (Json, "{\"mcpServers\" : null}"),
        (Json, "{}\n\n"),
        (Toml, "# x"),
        (Yaml, "mcpServers:\n"),
    ] {
        assert_eq!(remove(text, format, CLAUDE).unwrap(), text);
    }
}

#[test]
fn broken_json_is_refused_where_it_breaks() {
    for (text, expected) in [
        (
            "{ \"mcpServers\": {,} }",
            expect!["line 1, column 18: expected a key in double quotes or `}`"],
        ),
        (
            "{\n  \"a\": 1\n  \"b\": 2\n}",
            expect!["line 3, column 3: expected `,` or `}`"],
        ),
        (
            "{\"ü\": 1 2}",
            expect!["line 1, column 9: expected `,` or `}`"],
        ),
        (
            "{\"a\": secret}",
            expect!["line 1, column 7: expected a value"],
        ),
        ("{\"a\" 1}", expect!["line 1, column 6: expected `:`"]),
        (
            "{a: 1}",
            expect!["line 1, column 2: expected a key in double quotes or `}`"],
        ),
        (
            "{'a': 1}",
            expect!["line 1, column 2: expected a key in double quotes or `}`"],
        ),
        (
            "{\"a\": [1, 2}",
            expect!["line 1, column 12: expected `,` or `]`"],
        ),
        (
            "{\"a\": \"secret\n\"}",
            expect![[r#"line 1, column 7: this text has no closing `"`"#]],
        ),
        (
            "{\"a\": \"\\q\"}",
            expect!["line 1, column 8: expected an escape that JSON knows"],
        ),
        (
            "{\"a\": \"\\u12\"}",
            expect![[r"line 1, column 8: expected four hexadecimal digits after `\u`"]],
        ),
        (
            "{\"a\": \"\u{1}\"}",
            expect!["line 1, column 8: expected no control character in a text"],
        ),
        (
            "{\"a\": 01}",
            expect!["line 1, column 8: expected `,` or `}`"],
        ),
        ("{\"a\": 1.}", expect!["line 1, column 9: expected a digit"]),
        (
            "{\"a\": 1,,}",
            expect!["line 1, column 9: expected a key in double quotes or `}`"],
        ),
        (
            "{\"a\": 1",
            expect!["line 1, column 8: expected `,` or `}`"],
        ),
        (
            "{\"a\": 1} {}",
            expect!["line 1, column 10: expected the end of the file"],
        ),
        (
            "{ /* a",
            expect!["line 1, column 3: this comment has no closing `*/`"],
        ),
        (
            "{\u{a0}}",
            expect!["line 1, column 2: expected a key in double quotes or `}`"],
        ),
        (
            &"[".repeat(100_000),
            expect![
                "line 1, column 129: lists and objects lie inside one another more than 128 times"
            ],
        ),
    ] {
        refused(Json, CLAUDE, text, &expected);
    }
}

#[test]
fn broken_toml_is_refused_where_it_breaks() {
    for (text, expected) in [
        (
            "a = secret\n",
            expect!["line 1, column 5: string values must be quoted, expected literal string"],
        ),
        (
            "a = 1\n[b\n",
            expect!["line 2, column 3: unclosed table, expected `]`"],
        ),
        ("[b]\n[b]\n", expect!["line 2, column 2: duplicate key"]),
        (
            "mcp_servers.a = 1\nmcp_servers.a = 2",
            expect!["line 2, column 13: duplicate key"],
        ),
        (
            "a = \"ü",
            expect![[r#"line 1, column 7: invalid basic string, expected `"`"#]],
        ),
    ] {
        refused(Toml, CODEX, text, &expected);
    }
}

#[test]
fn broken_yaml_is_refused_where_it_breaks() {
    for (text, expected) in [
        (
            "a: [1, 2\nb: 1\n",
            expect!["line 2, column 2: illegal placement of ':' indicator"],
        ),
        (
            "a: b: c\n",
            expect!["line 1, column 5: mapping values are not allowed in this context"],
        ),
        (
            "a: \"secret\n",
            expect![
                "line 1, column 4: while scanning a quoted scalar, found unexpected end of stream"
            ],
        ),
        (
            "a:\n  b: 1\n c: 1\n",
            expect!["line 3, column 2: while parsing a block mapping, did not find expected key"],
        ),
        (
            "a: 1\n---\nb: 1\n",
            expect!["line 2, column 1: expected one document, not several"],
        ),
        (
            "ü: `a\n",
            expect!["line 1, column 4: unexpected character: ``'"],
        ),
        (
            &"[".repeat(100_000),
            expect!["line 1, column 256: recursion limit exceeded"],
        ),
    ] {
        refused(Yaml, GOOSE, text, &expected);
    }
}

#[test]
fn parents_of_another_type_are_refused() {
    for (format, path, text, expected) in [
        (
            Json,
            CLAUDE,
            "{\n  \"mcpServers\": []\n}",
            expect!["line 2, column 17: expected an object"],
        ),
        (
            Json,
            CLAUDE,
            "{\"mcpServers\": \"x\"}",
            expect!["line 1, column 16: expected an object"],
        ),
        (
            Json,
            CLAUDE,
            "[1]",
            expect!["line 1, column 1: expected an object"],
        ),
        (
            Json,
            CONTINUE,
            "{\"mcpServers\": {}}",
            expect!["line 1, column 16: expected a list"],
        ),
        (
            Toml,
            CODEX,
            "mcp_servers = 1\n",
            expect!["line 1, column 15: expected an object"],
        ),
        (
            Toml,
            CODEX,
            "x = 1\n[[mcp_servers]]\nname = \"a\"\n",
            expect!["line 2, column 1: expected an object"],
        ),
        (
            Toml,
            VIBE,
            "x = 1\n[mcp_servers.a]\n",
            expect!["line 2, column 2: expected a list"],
        ),
        (
            Yaml,
            GOOSE,
            "extensions:\n  - a\n",
            expect!["line 2, column 5: expected an object"],
        ),
        (
            Yaml,
            GOOSE,
            "just text\n",
            expect!["line 1, column 1: expected an object"],
        ),
        (
            Yaml,
            CONTINUE,
            "mcpServers:\n  a: 1\n",
            expect!["line 2, column 3: expected a list"],
        ),
    ] {
        refused(format, path, text, &expected);
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    for (format, path, text, expected) in [
        (
            Json,
            CLAUDE,
            "{\"mcpServers\": {},\n \"mcpServers\": {}}",
            expect!["line 2, column 2: `mcpServers` is there twice"],
        ),
        (
            Json,
            CLAUDE,
            "{\"mcpServers\": {\"clopen-mcp\": 1, \"clopen-mcp\": 2}}",
            expect!["line 1, column 34: `clopen-mcp` is there twice"],
        ),
        (
            Json,
            CONTINUE,
            "{\"mcpServers\": [{\"name\": \"clopen-mcp\"}, {\"name\": \"clopen-mcp\"}]}",
            expect!["line 1, column 41: `clopen-mcp` is there twice"],
        ),
        (
            Yaml,
            GOOSE,
            "extensions:\nextensions:\n",
            expect!["line 2, column 1: `extensions` is there twice"],
        ),
        (
            Yaml,
            GOOSE,
            "extensions: &x\n  a: 1\n",
            expect![
                "line 2, column 3: what has an anchor can't be edited, since it is used elsewhere too"
            ],
        ),
        (
            Yaml,
            GOOSE,
            "x: &x\n  a: 1\nextensions: *x\n",
            expect!["line 3, column 13: an alias can't be edited; write what it stands for"],
        ),
        (
            Yaml,
            GOOSE,
            "extensions: !!map\n  a: 1\n",
            expect!["line 2, column 3: what has a tag can't be edited; take the tag out"],
        ),
        (
            Yaml,
            GOOSE,
            "x: &x {}\nextensions:\n  <<: *x\n",
            expect![
                "line 3, column 3: an object with a merge key can't be edited; write its members out"
            ],
        ),
        (
            Yaml,
            GOOSE,
            "extensions:\n  ? [a]\n  : 1\n",
            expect![
                "line 2, column 5: an object with a key that is no text on one line can't be edited"
            ],
        ),
    ] {
        let error = set(text, format, path, &server()).expect_err("it can't be set");
        expected.assert_eq(&error.to_string());
        remove(text, format, path).expect_err("it can't be removed");
        get(text, format, path).expect_err("it can't be read");
    }
    // Elsewhere, it doesn't matter.
    let twice = "{\"a\": 1, \"a\": 2, \"mcpServers\": {}}";
    added(
        Json,
        CLAUDE,
        &json!(1),
        twice,
        &expect![[r#"{"a": 1, "a": 2, "mcpServers": {"clopen-mcp": 1}}"#]],
    );
}

#[test]
fn what_cannot_be_edited_line_by_line_is_refused() {
    for (path, text, expected) in [
        (
            GOOSE,
            "extensions: {a: 1}\n",
            expect![
                "line 1, column 13: this stands in brackets and can't be edited; write it in block style, with an entry on each line"
            ],
        ),
        (
            GOOSE,
            "{extensions: {}}\n",
            expect![
                "line 1, column 1: this stands in brackets and can't be edited; write it in block style, with an entry on each line"
            ],
        ),
        (
            CONTINUE,
            "x: 1\nmcpServers: [\n  {name: a}\n]\n",
            expect![
                "line 2, column 13: this stands in brackets and can't be edited; write it in block style, with an entry on each line"
            ],
        ),
        (
            &[Key("l"), named("x"), Key("a")],
            "l: [{name: x}]\n",
            expect![
                "line 1, column 4: this stands in brackets and can't be edited; write it in block style, with an entry on each line"
            ],
        ),
        (
            &[Key("? x"), Key("y")],
            "? ? x\n: a: 1\n",
            expect![
                "line 1, column 5: an object with a key that is no text on one line can't be edited"
            ],
        ),
    ] {
        let error = set(text, Yaml, path, &server()).expect_err("it can't be set");
        expected.assert_eq(&error.to_string());
    }
    let in_braces = "mcp_servers = { clopen-mcp.url = 1 }\n";
    refused(
        Toml,
        CODEX,
        in_braces,
        &expect![
            "line 1, column 17: a dotted key in braces can't be edited; write braces in the braces"
        ],
    );
}

#[test]
fn values_that_the_file_cannot_have_are_refused() {
    let table = "[mcp_servers.clopen-mcp]\n";
    for (format, path, text, value, expected) in [
        (
            Toml,
            CODEX,
            "",
            json!({"a": null}),
            expect!["line 1, column 1: TOML has no `null`"],
        ),
        (
            Toml,
            CODEX,
            "",
            json!({"a": [u64::MAX]}),
            expect!["line 1, column 1: TOML has no integers as large as this value has"],
        ),
        (
            Toml,
            CODEX,
            table,
            json!(1),
            expect![
                "line 1, column 1: this is a table with lines of its own; only a table can take its place"
            ],
        ),
        (
            Json,
            CONTINUE,
            "",
            json!({"name": "b"}),
            expect![
                "line 1, column 1: only an object with the name that it is found by can stand here"
            ],
        ),
        (
            Json,
            CONTINUE,
            "",
            json!(1),
            expect![
                "line 1, column 1: only an object with the name that it is found by can stand here"
            ],
        ),
        (
            Json,
            &[],
            "{}",
            json!(1),
            expect!["line 1, column 1: the file as a whole can't be replaced"],
        ),
    ] {
        let error = set(text, format, path, &value).expect_err("it can't be set");
        expected.assert_eq(&error.to_string());
    }
}

#[test]
fn a_file_is_read_as_a_value() {
    for (format, text, expected) in [
        (Json, "\u{feff}", expect!["null"]),
        (
            Json,
            "[1, -0.5e3, \"\\u00e9\\ud83d\\ude00\\ud83d\\n\", true, null, 1e999, {\"a\": {},},] // x",
            expect![[r#"[1,-500.0,"é😀�\n",true,null,"1e999",{"a":{}}]"#]],
        ),
        (
            Toml,
            "a.b = 1\nd = 1979-05-27\nf = [inf, 1.0]\n[[t]]\nx = {y.z = 'a'}\n[[t]]\n",
            expect![[
                r#"{"a":{"b":1},"d":"1979-05-27","f":["inf",1.0],"t":[{"x":{"y":{"z":"a"}}},{}]}"#
            ]],
        ),
        (
            Yaml,
            "a: 0x10\nb: [~, No, true, 1e3, .inf, '1', 0o7, +1, 1_0]\nc: |\n  x\n1: *y\n",
            expect!["line 5, column 4: while parsing node, found unknown anchor"],
        ),
        (
            Yaml,
            "a: &x 1\nb: *x\nc: >-\n  x\n  y\nd: {e: f}\ng: !t h\n? [k]\n: v\n",
            expect![
                "line 1, column 1: an object with a key that is no text on one line can't be edited"
            ],
        ),
        (Yaml, "# nothing\n", expect!["null"]),
    ] {
        let shown = match parse(text, format) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }
}
