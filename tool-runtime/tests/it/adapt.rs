//! Schemas of others: repaired for all readers, and adapted to one.

#![expect(clippy::too_many_lines, reason = "schemas are long")]

mod properties;
mod readers;

use expect_test::{Expect, expect};
use readers::{GEMINI, Reader};
use serde_json::{Map, Value, json};
use tool_runtime::{Adapted, Dialect, SchemaNames, adapt, adapt_output, repair};

/// A reader whose only quirk is that it can't follow references.
const WITHOUT_REFERENCES: Dialect = Dialect {
    references: false,
    ..Dialect::ANY
};

fn told(schema: &Map<String, Value>, notes: &[String]) -> String {
    let mut told = serde_json::to_string_pretty(schema).unwrap();
    for note in notes {
        told.push('\n');
        told.push_str(note);
    }
    told.push('\n');
    told
}

fn check_repair(schema: Value, expected: Expect) {
    let Adapted { schema, notes } = repair(Some(&schema));
    Reader::ANY.check(&schema);
    assert_eq!(repair(Some(&schema.clone().into())).notes, [""; 0]);
    expected.assert_eq(&told(&schema, &notes));
}

fn check_repairs_nothing(schema: Value) {
    let repaired = repair(Some(&schema));
    assert_eq!(repaired.notes, [""; 0]);
    let repaired = serde_json::to_string(&repaired.schema).unwrap();
    assert_eq!(repaired, schema.to_string());
}

fn check_adapt(schema: Value, dialect: &Dialect, expected: Expect) {
    let repaired = repair(Some(&schema));
    let adapted = adapt(&repaired.schema, dialect);
    let again = adapt(&adapted.schema, dialect);
    assert_eq!(again.notes, [""; 0], "{:#?}", adapted.schema);
    assert_eq!(again.schema, adapted.schema);
    expected.assert_eq(&told(&adapted.schema, &adapted.notes));
}

fn check_takes(schema: Value, dialect: &Dialect) {
    let object = schema.as_object().unwrap();
    let adapted = adapt(object, dialect);
    assert_eq!(adapted.notes, [""; 0]);
    assert_eq!(
        serde_json::to_string(&adapted.schema).unwrap(),
        schema.to_string()
    );
}

fn check_gemini(schema: Value, expected: Expect) {
    let repaired = repair(Some(&schema));
    GEMINI.check(&adapt(&repaired.schema, &Dialect::GEMINI).schema);
    check_adapt(schema, &Dialect::GEMINI, expected);
}

fn check_output(schema: Value, dialect: &Dialect, wraps: bool, expected: Expect) {
    let adapted = adapt_output(&schema, dialect);
    assert_eq!(adapted.wraps, wraps);
    expected.assert_eq(&told(&adapted.schema, &adapted.notes));
}

/// One property in a root.
fn property(schema: Value) -> Value {
    json!({ "type": "object", "properties": { "x": schema } })
}

#[test]
fn sch_001_dangling_ref() {
    check_repair(
        property(json!({ "$ref": "#/$defs/Nope" })),
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {
                  "description": "Refers to `#/$defs/Nope`, which is not there."
                }
              }
            }
            `#/properties/x`: left `$ref` out, as `#/$defs/Nope` is not there.
        "#]],
    );
    check_repair(
        json!({
            "type": "object",
            "properties": {
                "a": { "$ref": "#/$defs/Nope", "title": "A" },
                "b": { "oneOf": [{ "$ref": "#/$defs/Nope" }, { "type": "string" }] },
                "c": { "not": { "$ref": "#/$defs/Nope" } },
                "d": { "$ref": 5 },
                "e": { "$ref": "#/required" },
            },
            "required": ["a"],
        }),
        expect![[r##"
            {
              "type": "object",
              "properties": {
                "a": {
                  "title": "A",
                  "description": "Refers to `#/$defs/Nope`, which is not there."
                },
                "b": {
                  "anyOf": [
                    {
                      "description": "Refers to `#/$defs/Nope`, which is not there."
                    },
                    {
                      "type": "string"
                    }
                  ],
                  "description": "Exactly one of the alternatives."
                },
                "c": {
                  "description": "Not {\"$ref\":\"#/$defs/Nope\"}."
                },
                "d": {},
                "e": {
                  "description": "Refers to `#/required`, which is not there."
                }
              },
              "required": [
                "a"
              ]
            }
            `#/properties/a`: left `$ref` out, as `#/$defs/Nope` is not there.
            `#/properties/b/oneOf/0`: left `$ref` out, as `#/$defs/Nope` is not there.
            `#/properties/b`: wrote `oneOf` as `anyOf`.
            `#/properties/c/not`: left `$ref` out, as `#/$defs/Nope` is not there.
            `#/properties/c`: left `not` out, as it can't be said in full.
            `#/properties/d`: left `$ref` out, as it is malformed.
            `#/properties/e`: left `$ref` out, as `#/required` is not there.
        "##]],
    );
}

#[test]
fn sch_002_ref_with_siblings() {
    let schema = json!({
        "type": "object",
        "properties": {
            "x": { "$ref": "#/$defs/Q", "title": "X", "examples": ["a"], "minLength": 2 },
            "y": { "$ref": "#/$defs/P", "properties": { "b": { "type": "string" } }, "required": ["b"] },
        },
        "$defs": {
            "Q": { "type": "string", "title": "Q", "minLength": 5 },
            "P": { "type": "object", "properties": { "a": true }, "required": ["a"] },
        },
    });
    check_takes(schema.clone(), &Dialect::ANY);
    check_adapt(
        schema,
        &WITHOUT_REFERENCES,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {
                  "title": "X",
                  "examples": [
                    "a"
                  ],
                  "minLength": 2,
                  "type": "string",
                  "description": "At least 5 characters."
                },
                "y": {
                  "properties": {
                    "b": {
                      "type": "string"
                    },
                    "a": true
                  },
                  "required": [
                    "b",
                    "a"
                  ],
                  "type": "object"
                }
              }
            }
            `#`: left `$defs` out, as nothing refers to it any more.
            `#/properties/x`: wrote in place what `#/$defs/Q` is.
            `#/properties/y`: wrote in place what `#/$defs/P` is.
        "#]],
    );
}

#[test]
fn sch_003_definitions() {
    let schema = json!({
        "type": "object",
        "definitions": {
            "N": { "type": "object", "properties": { "c": { "$ref": "#/definitions/N" } } },
        },
        "properties": { "n": { "$ref": "#/definitions/N" } },
    });
    check_repairs_nothing(schema.clone());
    check_takes(schema, &Dialect::ANY);
}

#[test]
fn sch_004_recursion() {
    let schema = json!({
        "type": "object",
        "properties": { "n": { "$ref": "#/$defs/N" } },
        "$defs": {
            "N": { "type": "object", "properties": { "c": { "type": "array", "items": { "$ref": "#/$defs/N" } } } },
        },
    });
    check_repairs_nothing(schema.clone());
    check_takes(schema.clone(), &Dialect::ANTHROPIC);
    check_adapt(
        schema,
        &WITHOUT_REFERENCES,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "n": {
                  "type": "object",
                  "properties": {
                    "c": {
                      "type": "array",
                      "items": {
                        "type": "object",
                        "properties": {
                          "c": {
                            "type": "array",
                            "items": {
                              "type": "object",
                              "description": "Nested further in the same way."
                            }
                          }
                        }
                      }
                    }
                  }
                }
              }
            }
            `#`: left `$defs` out, as nothing refers to it any more.
            `#/properties/n/properties/c/items/properties/c/items`: left `$ref` out, as `#/$defs/N` would be too deep.
            `#/properties/n/properties/c/items`: wrote in place what `#/$defs/N` is.
            `#/properties/n`: wrote in place what `#/$defs/N` is.
        "#]],
    );
    // What isn't an object doesn't become one.
    check_adapt(
        json!({
            "type": "object",
            "properties": { "n": { "$ref": "#/$defs/N" } },
            "$defs": { "N": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "$ref": "#/$defs/N" } }] } },
        }),
        &WITHOUT_REFERENCES,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "n": {
                  "anyOf": [
                    {
                      "type": "string"
                    },
                    {
                      "type": "array",
                      "items": {
                        "anyOf": [
                          {
                            "type": "string"
                          },
                          {
                            "type": "array",
                            "items": {
                              "description": "Nested further in the same way."
                            }
                          }
                        ]
                      }
                    }
                  ]
                }
              }
            }
            `#`: left `$defs` out, as nothing refers to it any more.
            `#/properties/n/anyOf/1/items/anyOf/1/items`: left `$ref` out, as `#/$defs/N` would be too deep.
            `#/properties/n/anyOf/1/items`: wrote in place what `#/$defs/N` is.
            `#/properties/n`: wrote in place what `#/$defs/N` is.
        "#]],
    );
    // A reference to itself says nothing.
    check_adapt(
        json!({
            "type": "object",
            "properties": { "n": { "$ref": "#/$defs/N" } },
            "$defs": { "N": { "$ref": "#/$defs/M" }, "M": { "$ref": "#/$defs/N" } },
        }),
        &WITHOUT_REFERENCES,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "n": {
                  "description": "Nested further in the same way."
                }
              }
            }
            `#`: left `$defs` out, as nothing refers to it any more.
            `#/properties/n`: left `$ref` out, as `#/$defs/N` would be too deep.
            `#/properties/n`: wrote in place what `#/$defs/M` is.
            `#/properties/n`: wrote in place what `#/$defs/N` is.
            `#/properties/n`: wrote in place what `#/$defs/M` is.
            `#/properties/n`: wrote in place what `#/$defs/N` is.
        "#]],
    );
}

#[test]
fn sch_005_cycle_through_a_pointer() {
    let schema = json!({
        "type": "object",
        "properties": {
            "nodes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "children": { "type": "array", "items": { "$ref": "#/properties/nodes/items" } } },
                },
            },
        },
    });
    check_repairs_nothing(schema.clone());
    check_adapt(
        schema,
        &WITHOUT_REFERENCES,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "nodes": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "properties": {
                      "children": {
                        "type": "array",
                        "items": {
                          "type": "object",
                          "properties": {
                            "children": {
                              "type": "array",
                              "items": {
                                "type": "object",
                                "properties": {
                                  "children": {
                                    "type": "array",
                                    "items": {
                                      "type": "object",
                                      "description": "Nested further in the same way."
                                    }
                                  }
                                }
                              }
                            }
                          }
                        }
                      }
                    }
                  }
                }
              }
            }
            `#/properties/nodes/items/properties/children/items/properties/children/items/properties/children/items`: left `$ref` out, as `#/properties/nodes/items` would be too deep.
            `#/properties/nodes/items/properties/children/items/properties/children/items`: wrote in place what `#/properties/nodes/items` is.
            `#/properties/nodes/items/properties/children/items`: wrote in place what `#/properties/nodes/items` is.
        "#]],
    );
}

#[test]
fn sch_006_ref_to_a_sibling() {
    let schema = json!({
        "type": "object",
        "properties": {
            "headers": { "type": "object" },
            "actions": { "type": "array", "items": { "$ref": "#/properties/headers" } },
        },
    });
    check_repairs_nothing(schema.clone());
    check_gemini(
        schema,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "headers": {
                  "type": "object"
                },
                "actions": {
                  "type": "array",
                  "items": {
                    "type": "object"
                  }
                }
              }
            }
            `#/properties/actions/items`: wrote in place what `#/properties/headers` is.
        "#]],
    );
}

#[test]
fn sch_007_names_of_definitions() {
    let schema = json!({
        "type": "object",
        "properties": {
            "x": { "$ref": "#/$defs/a~1b" },
            "y": { "$ref": "#/$defs/Alias%20One" },
            "z": { "$ref": "#/$defs/50%25~0" },
        },
        "$defs": {
            "a/b": { "type": "string" },
            "Alias One": { "type": "integer" },
            "50%~": { "type": "boolean" },
        },
    });
    check_repairs_nothing(schema.clone());
    check_adapt(
        schema,
        &WITHOUT_REFERENCES,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {
                  "type": "string"
                },
                "y": {
                  "type": "integer"
                },
                "z": {
                  "type": "boolean"
                }
              }
            }
            `#`: left `$defs` out, as nothing refers to it any more.
            `#/properties/x`: wrote in place what `#/$defs/a~1b` is.
            `#/properties/y`: wrote in place what `#/$defs/Alias%20One` is.
            `#/properties/z`: wrote in place what `#/$defs/50%25~0` is.
        "#]],
    );
}

#[test]
fn sch_008_remote_ref() {
    check_repair(
        json!({
            "type": "object",
            "properties": {
                "x": { "$ref": "file:///etc/passwd" },
                "y": { "$ref": "http://169.254.169.254/latest", "type": "string" },
                "z": { "$dynamicRef": "other.json#x" },
            },
        }),
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {},
                "y": {
                  "type": "string"
                },
                "z": {}
              }
            }
            `#/properties/x`: left `$ref` out, as `file:///etc/passwd` is elsewhere.
            `#/properties/y`: left `$ref` out, as `http://169.254.169.254/latest` is elsewhere.
            `#/properties/z`: left `$dynamicRef` out, as `other.json#x` is elsewhere.
        "#]],
    );
}

#[test]
fn refs_by_name_become_pointers() {
    check_repair(
        json!({
            "$id": "https://example.com/root.json",
            "type": "object",
            "properties": {
                "a": { "$ref": "#thing" },
                "b": { "$ref": "Other" },
                "c": { "$ref": "https://example.com/root.json#/$defs/T" },
            },
            "$defs": {
                "T": { "$anchor": "thing", "type": "string" },
                "O": {
                    "$id": "Other",
                    "type": "object",
                    "properties": { "inner": { "$ref": "#/$defs/I" } },
                    "$defs": { "I": { "type": "integer" } },
                },
            },
        }),
        expect![[r##"
            {
              "$id": "https://example.com/root.json",
              "type": "object",
              "properties": {
                "a": {
                  "$ref": "#/$defs/T"
                },
                "b": {
                  "$ref": "#/$defs/O"
                },
                "c": {
                  "$ref": "#/$defs/T"
                }
              },
              "$defs": {
                "T": {
                  "$anchor": "thing",
                  "type": "string"
                },
                "O": {
                  "type": "object",
                  "properties": {
                    "inner": {
                      "$ref": "#/$defs/O/$defs/I"
                    }
                  },
                  "$defs": {
                    "I": {
                      "type": "integer"
                    }
                  }
                }
              }
            }
            `#/properties/a`: wrote `$ref` as a pointer.
            `#/properties/b`: wrote `$ref` as a pointer.
            `#/properties/c`: wrote `$ref` as a pointer.
            `#/$defs/O`: left `$id` out.
            `#/$defs/O/properties/inner`: wrote `$ref` as a pointer.
        "##]],
    );
}

#[test]
fn refs_into_unknown_keywords() {
    let schema = json!({
        "type": "object",
        "properties": { "p": { "$ref": "#/components/schemas/P" } },
        "components": {
            "schemas": { "P": { "type": "object", "properties": { "x": { "$ref": "#/nowhere" }, "y": true } } },
            "other": true,
        },
    });
    check_repair(
        schema.clone(),
        expect![[r##"
            {
              "type": "object",
              "properties": {
                "p": {
                  "$ref": "#/components/schemas/P"
                }
              },
              "components": {
                "schemas": {
                  "P": {
                    "type": "object",
                    "properties": {
                      "x": {
                        "description": "Refers to `#/nowhere`, which is not there."
                      },
                      "y": true
                    }
                  }
                },
                "other": true
              }
            }
            `#/components/schemas/P/properties/x`: left `$ref` out, as `#/nowhere` is not there.
        "##]],
    );
    let without_booleans = Dialect {
        booleans: false,
        ..Dialect::ANY
    };
    check_adapt(
        schema.clone(),
        &without_booleans,
        expect![[r##"
            {
              "type": "object",
              "properties": {
                "p": {
                  "$ref": "#/components/schemas/P"
                }
              },
              "components": {
                "schemas": {
                  "P": {
                    "type": "object",
                    "properties": {
                      "x": {
                        "description": "Refers to `#/nowhere`, which is not there."
                      },
                      "y": {}
                    }
                  }
                },
                "other": true
              }
            }
            `#/components/schemas/P/properties/y`: wrote `true` as an object.
        "##]],
    );
    check_adapt(
        schema,
        &WITHOUT_REFERENCES,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "p": {
                  "type": "object",
                  "properties": {
                    "x": {
                      "description": "Refers to `#/nowhere`, which is not there."
                    },
                    "y": true
                  }
                }
              }
            }
            `#`: left `components` out, as nothing refers to it any more.
            `#/properties/p`: wrote in place what `#/components/schemas/P` is.
        "#]],
    );
}

fn laughs(of_each: usize, levels: usize) -> Value {
    let mut definitions = Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/D{}", level + 1) });
        let properties: Map<String, Value> = (0..of_each)
            .map(|it| (format!("p{it}"), next.clone()))
            .collect();
        let definition = json!({ "type": "object", "properties": properties });
        definitions.insert(format!("D{level}"), definition);
    }
    definitions.insert(format!("D{levels}"), json!({ "type": "string" }));
    json!({
        "type": "object",
        "properties": { "x": { "$ref": "#/$defs/D0" } },
        "$defs": definitions,
    })
}

#[test]
fn sch_009_billion_laughs() {
    for schema in [
        laughs(2, 20),
        laughs(10, 10),
        laughs(200, 40),
        laughs(2_000, 3),
    ] {
        check_repairs_nothing(schema.clone());
        check_takes(schema.clone(), &Dialect::ANY);
        let schema = schema.as_object().unwrap();
        for (dialect, reader) in [
            (WITHOUT_REFERENCES, Reader::WITHOUT_REFERENCES),
            (Dialect::GEMINI, GEMINI),
        ] {
            let adapted = adapt(schema, &dialect);
            let json = serde_json::to_string(&adapted.schema).unwrap();
            assert!(json.len() < 1 << 20, "{} bytes", json.len());
            assert!(adapted.notes.len() <= 101);
            reader.check(&adapted.schema);
        }
    }
}

#[test]
fn sch_009_bytes() {
    let enormous = "a".repeat(1 << 20);
    check_repair(
        json!({ "type": "object", "description": "Short.", "title": enormous }),
        expect![[r#"
            {
              "type": "object",
              "properties": {},
              "description": "Short."
            }
            `#`: the schema is larger than 1048576 bytes; any object is taken.
        "#]],
    );
    // What an adapted schema grows to counts as well.
    let any: Map<String, Value> = (0..9_000).map(|it| (it.to_string(), json!({}))).collect();
    let adapted = adapt(
        json!({ "type": "object", "properties": any })
            .as_object()
            .unwrap(),
        &Dialect::GEMINI,
    );
    expect![[r#"
        {
          "type": "object",
          "properties": {}
        }
        `#`: the schema is larger than 1048576 bytes; any object is taken.
    "#]]
    .assert_eq(&told(&adapted.schema, &adapted.notes));
}

#[test]
fn sch_009_laughs_without_references() {
    // What stands beside `anyOf` goes into each branch, again and again.
    let mut schema = json!({ "type": "string" });
    for _ in 0..30 {
        schema = json!({
            "anyOf": [{ "type": "object" }, { "type": "object", "minProperties": 1 }],
            "properties": { "x": schema },
        });
    }
    let adapted = adapt(property(schema).as_object().unwrap(), &Dialect::GEMINI);
    GEMINI.check(&adapted.schema);
    assert!(serde_json::to_string(&adapted.schema).unwrap().len() < 1 << 20);
}

/// `json!` would copy what is inside.
fn around(keyword: &str, inner: Value) -> Value {
    let mut outer = Map::new();
    outer.insert(keyword.to_owned(), inner);
    outer.into()
}

#[test]
fn sch_009_depth() {
    let nested = |depth: usize, outer: fn(Value) -> Value| {
        (0..depth).fold(json!({ "type": "string" }), |schema, _| outer(schema))
    };
    let outers: [fn(Value) -> Value; 4] = [
        |it| around("properties", around("x", it)),
        |it| around("not", it),
        |it| {
            around(
                "allOf",
                Value::Array(vec![it, json!({ "anyOf": [{ "type": "null" }, true] })]),
            )
        },
        |it| around("enum", Value::Array(vec![it])),
    ];
    for outer in outers {
        for depth in [40, 62, 126, 2_000] {
            let schema = around("properties", around("x", nested(depth, outer)));
            let repaired = repair(Some(&schema));
            for dialect in [Dialect::ANY, WITHOUT_REFERENCES, Dialect::GEMINI] {
                let adapted = adapt(schema.as_object().unwrap(), &dialect);
                let again = adapt(&adapted.schema, &dialect);
                assert_eq!(again.schema, adapted.schema);
                adapt(&repaired.schema, &dialect);
                adapt_output(&schema, &dialect);
            }
        }
    }
    // The deepest that a parser reads.
    let text = format!("{}{}", r#"{"not":"#.repeat(126) + "{}", "}".repeat(126));
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(repair(Some(&schema)).schema["type"], "object");
}

#[test]
fn sch_009_depth_of_a_hundred_thousand() {
    let mut schema = json!({});
    for _ in 0..100_000 {
        schema = around("not", schema);
    }
    let repaired = repair(Some(&schema));
    expect![[r#"
        {
          "type": "object",
          "properties": {}
        }
        `#`: the schema is more than 128 levels deep; any object is taken.
    "#]]
    .assert_eq(&told(&repaired.schema, &repaired.notes));
    let adapted = adapt(schema.as_object().unwrap(), &Dialect::ANY);
    assert_eq!(adapted.schema["type"], "object");
    assert_eq!(
        adapt_output(&schema, &Dialect::ANY).schema["type"],
        "object"
    );
    // To drop it whole would overflow the stack.
    while let Value::Object(mut outer) = schema {
        schema = outer.remove("not").unwrap_or_default();
    }
}

#[test]
fn sch_010_root_one_of() {
    let schema = json!({
        "type": "object",
        "properties": {
            "edge_id": { "type": "string" },
            "from": { "type": "string" },
            "to": { "type": "string" },
        },
        "oneOf": [{ "required": ["edge_id"] }, { "required": ["from", "to"] }],
    });
    check_repairs_nothing(schema.clone());
    check_takes(schema.clone(), &Dialect::ANY);
    check_adapt(
        schema,
        &Dialect::ANTHROPIC,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "edge_id": {
                  "type": "string"
                },
                "from": {
                  "type": "string"
                },
                "to": {
                  "type": "string"
                }
              },
              "description": "Exactly one of: `edge_id`; `from` and `to`."
            }
            `#`: took `oneOf` from the root.
        "#]],
    );
}

#[test]
fn sch_010_root_alternatives() {
    let schema = json!({
        "type": "object",
        "description": "Moves a thing.",
        "oneOf": [
            {
                "type": "object",
                "properties": { "kind": { "const": "up" }, "by": { "type": "integer" }, "id": { "type": "string" } },
                "required": ["kind", "id", "by"],
                "additionalProperties": false,
            },
            { "$ref": "#/$defs/To" },
            { "type": "null" },
        ],
        "$defs": {
            "To": {
                "type": "object",
                "properties": { "kind": { "const": "to" }, "by": { "type": "string" }, "at": { "$ref": "#/$defs/At" } },
                "required": ["id", "kind"],
                "additionalProperties": false,
            },
            "At": { "type": "string" },
        },
    });
    check_adapt(
        schema.clone(),
        &Dialect::ANTHROPIC,
        expect![[r##"
            {
              "type": "object",
              "description": "Moves a thing.\nExactly one of: {\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"up\"},\"by\":{\"type\":\"integer\"},\"id\":{\"type\":\"string\"}},\"required\":[\"kind\",\"id\",\"by\"],\"additionalProperties\":false}; {\"$ref\":\"#/$defs/To\"}; {\"type\":\"null\"}.",
              "$defs": {
                "To": {
                  "type": "object",
                  "properties": {
                    "kind": {
                      "const": "to"
                    },
                    "by": {
                      "type": "string"
                    },
                    "at": {
                      "$ref": "#/$defs/At"
                    }
                  },
                  "required": [
                    "id",
                    "kind"
                  ],
                  "additionalProperties": false
                },
                "At": {
                  "type": "string"
                }
              },
              "required": [
                "kind",
                "id"
              ],
              "additionalProperties": false,
              "properties": {
                "kind": {
                  "type": "string",
                  "enum": [
                    "up",
                    "to"
                  ]
                },
                "by": {
                  "anyOf": [
                    {
                      "type": "integer"
                    },
                    {
                      "type": "string"
                    }
                  ]
                },
                "id": {
                  "type": "string"
                },
                "at": {
                  "$ref": "#/$defs/At"
                }
              }
            }
            `#`: took `oneOf` from the root.
            `#`: wrote in place what `#/$defs/To` is.
        "##]],
    );
    check_gemini(
        schema,
        expect![[r#"
            {
              "type": "object",
              "description": "Moves a thing.\nExactly one of: {\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"up\"},\"by\":{\"type\":\"integer\"},\"id\":{\"type\":\"string\"}},\"required\":[\"kind\",\"id\",\"by\"],\"additionalProperties\":false}; {\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"to\"},\"by\":{\"type\":\"string\"},\"at\":{\"type\":\"string\"}},\"required\":[\"id\",\"kind\"],\"additionalPr….\nNo other properties.",
              "required": [
                "kind",
                "id"
              ],
              "properties": {
                "kind": {
                  "type": "string",
                  "enum": [
                    "up",
                    "to"
                  ]
                },
                "by": {
                  "anyOf": [
                    {
                      "type": "integer"
                    },
                    {
                      "type": "string"
                    }
                  ]
                },
                "id": {
                  "type": "string"
                },
                "at": {
                  "type": "string"
                }
              }
            }
            `#`: left `$defs` out, as nothing refers to it any more.
            `#/oneOf/1/properties/at`: wrote in place what `#/$defs/At` is.
            `#/oneOf/1`: wrote in place what `#/$defs/To` is.
            `#`: took `oneOf` from the root.
            `#`: left `additionalProperties` out, as the reader doesn't take it.
        "#]],
    );
}

#[test]
fn sch_011_root_conditions() {
    let schema = json!({
        "type": "object",
        "properties": { "mode": { "type": "string" }, "size": { "type": "integer" } },
        "allOf": [{
            "if": { "properties": { "mode": { "const": "small" } } },
            "then": { "properties": { "size": { "maximum": 10 } } },
        }],
    });
    check_takes(schema.clone(), &Dialect::ANY);
    check_adapt(
        schema,
        &Dialect::ANTHROPIC,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "mode": {
                  "type": "string"
                },
                "size": {
                  "type": "integer"
                }
              },
              "description": "If {\"properties\":{\"mode\":{\"const\":\"small\"}}}, then {\"properties\":{\"size\":{\"maximum\":10}}}."
            }
            `#`: took `allOf` from the root.
            `#`: took `then` from the root.
            `#`: took `if` from the root.
        "#]],
    );
    check_adapt(
        json!({
            "type": "object",
            "allOf": [
                { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
                { "properties": { "b": { "type": "integer" } }, "not": { "required": ["c"] } },
            ],
            "unevaluatedProperties": false,
        }),
        &Dialect::OPENAI,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "a": {
                  "type": "string"
                },
                "b": {
                  "type": "integer"
                }
              },
              "required": [
                "a"
              ],
              "description": "No other properties. Not `c`."
            }
            `#`: took `allOf` from the root.
            `#`: took `not` from the root.
        "#]],
    );
}

#[test]
fn sch_012_root_without_type() {
    check_repair(
        json!({ "anyOf": [{ "type": "object", "properties": { "a": { "type": "string" } } }] }),
        expect![[r#"
            {
              "type": "object",
              "anyOf": [
                {
                  "type": "object",
                  "properties": {
                    "a": {
                      "type": "string"
                    }
                  }
                }
              ]
            }
            `#`: added `"type": "object"`.
        "#]],
    );
    check_repair(
        json!({ "type": ["object", "null"] }),
        expect![[r#"
            {
              "type": "object"
            }
            `#`: wrote `type` as `object`.
        "#]],
    );
    check_repair(
        json!({ "type": "string", "description": "A name." }),
        expect![[r#"
            {
              "type": "object",
              "properties": {},
              "description": "A name."
            }
            `#`: the schema is of string; any object is taken.
        "#]],
    );
}

#[test]
fn sch_013_empty_schema() {
    check_repair(
        json!({}),
        expect![[r#"
            {
              "type": "object",
              "properties": {}
            }
            `#`: added `"type": "object"`.
        "#]],
    );
    check_repair(
        json!({ "$schema": "http://json-schema.org/draft-07/schema#" }),
        expect![[r#"
            {
              "type": "object",
              "properties": {},
              "$schema": "http://json-schema.org/draft-07/schema#"
            }
            `#`: added `"type": "object"`.
        "#]],
    );
}

#[test]
fn sch_014_boolean_schema() {
    check_repair(
        json!(true),
        expect![[r#"
            {
              "type": "object",
              "properties": {}
            }
            `#`: the schema is true; any object is taken.
        "#]],
    );
    check_repair(
        json!(false),
        expect![[r#"
            {
              "type": "object",
              "properties": {}
            }
            `#`: the schema is false; any object is taken.
        "#]],
    );
    check_repair(
        json!([{}]),
        expect![[r#"
            {
              "type": "object",
              "properties": {}
            }
            `#`: the schema is [{}]; any object is taken.
        "#]],
    );
}

#[test]
fn sch_015_no_schema() {
    let Adapted { schema, notes } = repair(None);
    expect![[r#"
        {
          "type": "object",
          "properties": {}
        }
        `#`: there is no schema; any object is taken.
    "#]]
    .assert_eq(&told(&schema, &notes));
    assert_eq!(repair(Some(&Value::Null)).schema, schema);
    check_repairs_nothing(json!({ "type": "object" }));
}

#[test]
fn sch_016_boolean_property() {
    let schema = json!({
        "type": "object",
        "properties": { "x": true, "y": false, "z": { "type": "array", "items": true } },
        "additionalProperties": false,
    });
    check_repairs_nothing(schema.clone());
    check_takes(schema.clone(), &Dialect::ANTHROPIC);
    let without_booleans = Dialect {
        booleans: false,
        ..Dialect::ANY
    };
    check_adapt(
        schema.clone(),
        &without_booleans,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {},
                "y": {
                  "not": {}
                },
                "z": {
                  "type": "array",
                  "items": {}
                }
              },
              "additionalProperties": false
            }
            `#/properties/x`: wrote `true` as an object.
            `#/properties/y`: wrote `false` as an object.
            `#/properties/z/items`: wrote `true` as an object.
        "#]],
    );
    check_gemini(
        schema,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {
                  "anyOf": [
                    {
                      "type": "string",
                      "nullable": true
                    },
                    {
                      "type": "number",
                      "nullable": true
                    },
                    {
                      "type": "boolean",
                      "nullable": true
                    },
                    {
                      "type": "object",
                      "nullable": true
                    },
                    {
                      "type": "array",
                      "items": {
                        "anyOf": [
                          {
                            "type": "string",
                            "nullable": true
                          },
                          {
                            "type": "number",
                            "nullable": true
                          },
                          {
                            "type": "boolean",
                            "nullable": true
                          },
                          {
                            "type": "object",
                            "nullable": true
                          },
                          {
                            "type": "array",
                            "items": {
                              "type": "string"
                            },
                            "nullable": true
                          }
                        ]
                      },
                      "nullable": true
                    }
                  ]
                },
                "y": {
                  "anyOf": [
                    {
                      "type": "string",
                      "description": "No value fits.",
                      "nullable": true
                    },
                    {
                      "type": "number",
                      "nullable": true
                    },
                    {
                      "type": "boolean",
                      "nullable": true
                    },
                    {
                      "type": "object",
                      "nullable": true
                    },
                    {
                      "type": "array",
                      "items": {
                        "anyOf": [
                          {
                            "type": "string",
                            "nullable": true
                          },
                          {
                            "type": "number",
                            "nullable": true
                          },
                          {
                            "type": "boolean",
                            "nullable": true
                          },
                          {
                            "type": "object",
                            "nullable": true
                          },
                          {
                            "type": "array",
                            "items": {
                              "type": "string"
                            },
                            "nullable": true
                          }
                        ]
                      },
                      "nullable": true
                    }
                  ]
                },
                "z": {
                  "type": "array",
                  "items": {
                    "anyOf": [
                      {
                        "type": "string",
                        "nullable": true
                      },
                      {
                        "type": "number",
                        "nullable": true
                      },
                      {
                        "type": "boolean",
                        "nullable": true
                      },
                      {
                        "type": "object",
                        "nullable": true
                      },
                      {
                        "type": "array",
                        "items": {
                          "anyOf": [
                            {
                              "type": "string",
                              "nullable": true
                            },
                            {
                              "type": "number",
                              "nullable": true
                            },
                            {
                              "type": "boolean",
                              "nullable": true
                            },
                            {
                              "type": "object",
                              "nullable": true
                            },
                            {
                              "type": "array",
                              "items": {
                                "type": "string"
                              },
                              "nullable": true
                            }
                          ]
                        },
                        "nullable": true
                      }
                    ]
                  }
                }
              },
              "description": "No other properties."
            }
            `#`: left `additionalProperties` out, as the reader doesn't take it.
            `#/properties/x`: wrote `true` as an object.
            `#/properties/x`: wrote all types as `anyOf`.
            `#/properties/x`: put what was beside `anyOf` into it.
            `#/properties/y`: wrote `false` as an object.
            `#/properties/y`: wrote all types as `anyOf`.
            `#/properties/y`: put what was beside `anyOf` into it.
            `#/properties/z/items`: wrote `true` as an object.
            `#/properties/z/items`: wrote all types as `anyOf`.
            `#/properties/z/items`: put what was beside `anyOf` into it.
        "#]],
    );
}

#[test]
fn sch_018_type_list() {
    let schema = json!({
        "type": "object",
        "properties": {
            "correspondent": { "type": ["number", "null"] },
            "both": { "type": ["string", "integer"], "minLength": 1 },
            "any": { "anyOf": [{ "type": "string", "maxLength": 9 }, { "type": "null" }], "default": null },
            "list": { "type": "array", "items": { "type": ["string", "null"] } },
            "nothing": { "type": "null" },
            "value": { "type": ["string", "null"], "enum": ["a", null] },
        },
        "required": ["correspondent", "both"],
    });
    check_takes(schema.clone(), &Dialect::OPENAI);
    let strict = Dialect {
        type_lists: false,
        nullable: false,
        ..Dialect::ANY
    };
    check_adapt(
        schema.clone(),
        &strict,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "correspondent": {
                  "type": "number",
                  "description": "Leave it out instead of `null`."
                },
                "both": {
                  "anyOf": [
                    {
                      "type": "string"
                    },
                    {
                      "type": "integer"
                    }
                  ],
                  "minLength": 1
                },
                "any": {
                  "type": "string",
                  "maxLength": 9,
                  "description": "Leave it out instead of `null`."
                },
                "list": {
                  "type": "array",
                  "items": {
                    "description": "One of the types \"string\", \"null\"."
                  }
                },
                "nothing": {
                  "description": "Always `null`."
                },
                "value": {
                  "type": "string",
                  "enum": [
                    "a"
                  ],
                  "description": "Leave it out instead of `null`."
                }
              },
              "required": [
                "both"
              ]
            }
            `#/properties/correspondent`: left the type `null` out.
            `#/properties/correspondent`: wrote `type` as one type.
            `#/properties/both`: wrote `type` as `anyOf`.
            `#/properties/any`: left the type `null` out.
            `#/properties/list/items`: left the type `null` out.
            `#/properties/list/items`: left `type` out, as the reader doesn't take it.
            `#/properties/nothing`: left the type `null` out.
            `#/properties/value`: left the type `null` out.
            `#/properties/value`: wrote `type` as one type.
            `#`: no longer requires `correspondent`, `any`, `value`.
        "#]],
    );
    check_gemini(
        schema,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "correspondent": {
                  "type": "number",
                  "nullable": true
                },
                "both": {
                  "anyOf": [
                    {
                      "type": "string",
                      "minLength": 1
                    },
                    {
                      "type": "integer"
                    }
                  ]
                },
                "any": {
                  "type": "string",
                  "maxLength": 9,
                  "nullable": true,
                  "description": "Default: null."
                },
                "list": {
                  "type": "array",
                  "items": {
                    "type": "string",
                    "nullable": true
                  }
                },
                "nothing": {
                  "type": "string",
                  "nullable": true,
                  "description": "Always `null`."
                },
                "value": {
                  "type": "string",
                  "enum": [
                    "a"
                  ],
                  "nullable": true
                }
              },
              "required": [
                "correspondent",
                "both"
              ]
            }
            `#/properties/correspondent`: left the type `null` out.
            `#/properties/correspondent`: wrote `type` as one type.
            `#/properties/both`: wrote `type` as `anyOf`.
            `#/properties/both`: put what was beside `anyOf` into it.
            `#/properties/any`: left the type `null` out.
            `#/properties/any`: left `default` out, as the reader doesn't take it.
            `#/properties/list/items`: left the type `null` out.
            `#/properties/list/items`: wrote `type` as one type.
            `#/properties/nothing`: left the type `null` out.
            `#/properties/value`: left the type `null` out.
            `#/properties/value`: wrote `type` as one type.
        "#]],
    );
}

#[test]
fn sch_020_nullable_enum() {
    let nullable = json!({ "type": ["null", "string"], "default": null, "enum": ["FOO", "BAR"] });
    check_repair(
        property(nullable),
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {
                  "type": [
                    "null",
                    "string"
                  ],
                  "default": null,
                  "enum": [
                    "FOO",
                    "BAR",
                    null
                  ]
                }
              }
            }
            `#/properties/x`: added `null` to `enum`.
        "#]],
    );
    check_repairs_nothing(property(
        json!({ "type": ["null", "string"], "enum": ["FOO"] }),
    ));
}

#[test]
fn sch_021_boolean_exclusive_bounds() {
    check_repair(
        json!({
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "properties": {
                "x": { "type": "number", "minimum": 0, "exclusiveMinimum": true },
                "y": { "type": "number", "maximum": 9, "exclusiveMaximum": false },
                "z": { "exclusiveMaximum": true },
            },
        }),
        expect![[r#"
            {
              "$schema": "http://json-schema.org/draft-07/schema#",
              "type": "object",
              "properties": {
                "x": {
                  "type": "number",
                  "exclusiveMinimum": 0
                },
                "y": {
                  "type": "number",
                  "maximum": 9
                },
                "z": {}
              }
            }
            `#`: wrote `$schema` as draft-07.
            `#/properties/x`: wrote `exclusiveMinimum` as a number.
            `#/properties/y`: left `exclusiveMaximum` out, as it is no number.
            `#/properties/z`: left `exclusiveMaximum` out, as it is no number.
        "#]],
    );
}

#[test]
fn sch_022_exclusive_bounds() {
    let schema = json!({
        "type": "object",
        "properties": {
            "x": { "type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9.5 },
            "y": { "type": "number", "exclusiveMinimum": 0, "description": "How much." },
            "z": { "type": "integer", "exclusiveMaximum": i64::MIN, "minimum": 3, "exclusiveMinimum": 1 },
        },
    });
    check_takes(schema.clone(), &Dialect::ANTHROPIC);
    check_gemini(
        schema,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {
                  "type": "integer",
                  "minimum": 1,
                  "maximum": 9
                },
                "y": {
                  "type": "number",
                  "minimum": 0,
                  "description": "How much.\nAt least 0 (exclusive)."
                },
                "z": {
                  "type": "integer",
                  "maximum": -9223372036854775808,
                  "minimum": 3,
                  "description": "At most -9223372036854775808 (exclusive)."
                }
              }
            }
            `#/properties/x`: wrote `exclusiveMinimum` as `minimum`.
            `#/properties/x`: wrote `exclusiveMaximum` as `maximum`.
            `#/properties/y`: wrote `exclusiveMinimum` as `minimum`.
            `#/properties/z`: wrote `exclusiveMinimum` as `minimum`.
            `#/properties/z`: wrote `exclusiveMaximum` as `maximum`.
        "#]],
    );
}

#[test]
fn sch_023_keywords() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "x": { "type": "array", "items": { "type": "string" }, "uniqueItems": true, "examples": [["a"]] },
            "number": { "type": "number", "multipleOf": 5, "default": 10, "readOnly": true, "$comment": "c" },
            "pair": { "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer" }], "items": false },
            "map": {
                "type": "object",
                "description": "A map.",
                "propertyNames": { "pattern": "^a$" },
                "patternProperties": { "^x-": { "type": "string" } },
                "dependentRequired": { "a": ["b"] },
                "additionalProperties": { "type": "integer" },
            },
            "bytes": { "type": "string", "contentEncoding": "base64", "format": "byte" },
            "kind": { "const": "a" },
            "level": { "type": "integer", "enum": [1, 2] },
            "empty": { "type": "string", "enum": ["", "a"] },
            "one": { "oneOf": [{ "type": "string" }, { "type": "integer" }], "description": "One." },
            "all": { "allOf": [{ "type": "string" }, { "minLength": 2 }], "title": "All" },
            "not": { "type": "string", "not": { "const": "b" } },
            "if": { "type": "string", "if": { "minLength": 3 }, "then": { "pattern": "^a" } },
            "contains": { "type": "array", "contains": { "const": 1 }, "maxContains": 2 },
        },
        "additionalProperties": false,
    });
    check_takes(schema.clone(), &Dialect::ANTHROPIC);
    check_gemini(
        schema,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {
                  "type": "array",
                  "items": {
                    "type": "string"
                  },
                  "description": "Each item at most once. For example [\"a\"]."
                },
                "number": {
                  "type": "number",
                  "description": "A multiple of 5. Default: 10. Read only."
                },
                "pair": {
                  "type": "array",
                  "items": {
                    "anyOf": [
                      {
                        "type": "string"
                      },
                      {
                        "type": "integer"
                      }
                    ]
                  },
                  "description": "The items begin with {\"type\":\"string\"}, then {\"type\":\"integer\"}. No other items."
                },
                "map": {
                  "type": "object",
                  "description": "A map.\nThe names of properties fit {\"pattern\":\"^a$\"}. Properties that match ^x- fit {\"type\":\"string\"}. With `a` also `b`. Other properties fit {\"type\":\"integer\"}."
                },
                "bytes": {
                  "type": "string",
                  "description": "Encoded in base64. Has the form byte."
                },
                "kind": {
                  "enum": [
                    "a"
                  ],
                  "type": "string"
                },
                "level": {
                  "type": "integer",
                  "description": "One of 1, 2."
                },
                "empty": {
                  "type": "string",
                  "description": "One of \"\", \"a\"."
                },
                "one": {
                  "anyOf": [
                    {
                      "type": "string",
                      "description": "One.\nExactly one of the alternatives."
                    },
                    {
                      "type": "integer"
                    }
                  ]
                },
                "all": {
                  "title": "All",
                  "type": "string",
                  "minLength": 2
                },
                "not": {
                  "type": "string",
                  "description": "Not {\"const\":\"b\"}."
                },
                "if": {
                  "type": "string",
                  "description": "If {\"minLength\":3}, then {\"pattern\":\"^a\"}."
                },
                "contains": {
                  "type": "array",
                  "description": "1 to 2 items fit {\"const\":1}.",
                  "items": {
                    "anyOf": [
                      {
                        "type": "string",
                        "nullable": true
                      },
                      {
                        "type": "number",
                        "nullable": true
                      },
                      {
                        "type": "boolean",
                        "nullable": true
                      },
                      {
                        "type": "object",
                        "nullable": true
                      },
                      {
                        "type": "array",
                        "items": {
                          "anyOf": [
                            {
                              "type": "string",
                              "nullable": true
                            },
                            {
                              "type": "number",
                              "nullable": true
                            },
                            {
                              "type": "boolean",
                              "nullable": true
                            },
                            {
                              "type": "object",
                              "nullable": true
                            },
                            {
                              "type": "array",
                              "items": {
                                "type": "string"
                              },
                              "nullable": true
                            }
                          ]
                        },
                        "nullable": true
                      }
                    ]
                  }
                }
              },
              "description": "No other properties."
            }
            `#`: left `$schema` out, as the reader doesn't take it.
            `#`: left `additionalProperties` out, as the reader doesn't take it.
            `#/properties/x`: left `uniqueItems` out, as the reader doesn't take it.
            `#/properties/x`: left `examples` out, as the reader doesn't take it.
            `#/properties/number`: left `multipleOf` out, as the reader doesn't take it.
            `#/properties/number`: left `default` out, as the reader doesn't take it.
            `#/properties/number`: left `readOnly` out, as the reader doesn't take it.
            `#/properties/number`: left `$comment` out, as the reader doesn't take it.
            `#/properties/pair`: left `prefixItems` out, as the reader doesn't take it.
            `#/properties/pair`: left `items` out, as the reader doesn't take it.
            `#/properties/pair`: wrote one schema of all items.
            `#/properties/map`: left `propertyNames` out, as the reader doesn't take it.
            `#/properties/map`: left `patternProperties` out, as the reader doesn't take it.
            `#/properties/map`: left `dependentRequired` out, as the reader doesn't take it.
            `#/properties/map`: left `additionalProperties` out, as the reader doesn't take it.
            `#/properties/bytes`: left `contentEncoding` out, as the reader doesn't take it.
            `#/properties/bytes`: left `format` out, as the reader doesn't take it.
            `#/properties/kind`: wrote `const` as `enum`.
            `#/properties/kind`: added `"type": "string"`.
            `#/properties/level`: left `enum` out, as the reader doesn't take it.
            `#/properties/empty`: left `enum` out, as the reader doesn't take it.
            `#/properties/one`: wrote `oneOf` as `anyOf`.
            `#/properties/one`: put what was beside `anyOf` into it.
            `#/properties/all`: wrote `allOf` as one schema.
            `#/properties/not`: left `not` out, as the reader doesn't take it.
            `#/properties/if`: left `if` out, as the reader doesn't take it.
            `#/properties/if`: left `then` out, as the reader doesn't take it.
            `#/properties/contains`: left `contains` out, as the reader doesn't take it.
            `#/properties/contains`: left `maxContains` out, as the reader doesn't take it.
            `#/properties/contains`: added `items`.
            `#/properties/contains/items`: wrote all types as `anyOf`.
            `#/properties/contains/items`: put what was beside `anyOf` into it.
        "#]],
    );
}

#[test]
fn sch_024_array_without_items() {
    let schema = property(json!({ "type": "array" }));
    check_takes(schema.clone(), &Dialect::ANTHROPIC);
    check_adapt(
        schema.clone(),
        &Dialect::OPENAI,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {
                  "type": "array",
                  "items": {}
                }
              }
            }
            `#/properties/x`: added `items`.
        "#]],
    );
    check_gemini(
        schema,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "x": {
                  "type": "array",
                  "items": {
                    "anyOf": [
                      {
                        "type": "string",
                        "nullable": true
                      },
                      {
                        "type": "number",
                        "nullable": true
                      },
                      {
                        "type": "boolean",
                        "nullable": true
                      },
                      {
                        "type": "object",
                        "nullable": true
                      },
                      {
                        "type": "array",
                        "items": {
                          "anyOf": [
                            {
                              "type": "string",
                              "nullable": true
                            },
                            {
                              "type": "number",
                              "nullable": true
                            },
                            {
                              "type": "boolean",
                              "nullable": true
                            },
                            {
                              "type": "object",
                              "nullable": true
                            },
                            {
                              "type": "array",
                              "items": {
                                "type": "string"
                              },
                              "nullable": true
                            }
                          ]
                        },
                        "nullable": true
                      }
                    ]
                  }
                }
              }
            }
            `#/properties/x`: added `items`.
            `#/properties/x/items`: wrote all types as `anyOf`.
            `#/properties/x/items`: put what was beside `anyOf` into it.
        "#]],
    );
}

#[test]
fn sch_026_unknown_required() {
    check_repair(
        json!({
            "type": "object",
            "properties": {
                "f": { "type": "array", "items": { "type": "object", "properties": {}, "required": ["name"] } },
                "g": { "type": "object", "properties": { "a": {} }, "required": ["a", "b", 5] },
                "h": { "type": "string", "required": true },
            },
            "required": ["f"],
        }),
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "f": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "properties": {}
                  }
                },
                "g": {
                  "type": "object",
                  "properties": {
                    "a": {}
                  },
                  "required": [
                    "a"
                  ]
                },
                "h": {
                  "type": "string"
                }
              },
              "required": [
                "f"
              ]
            }
            `#/properties/f/items`: no longer requires `name`, which `properties` lacks.
            `#/properties/g`: left out of `required` what is no name.
            `#/properties/g`: no longer requires `b`, which `properties` lacks.
            `#/properties/h`: left `required` out, as it is malformed.
        "#]],
    );
    // What is known from elsewhere stays, as what is under `not` does.
    check_repairs_nothing(property(json!({
        "properties": { "a": {} },
        "anyOf": [{ "properties": { "a": { "const": 1 } }, "required": ["b"] }],
        "required": ["c"],
        "not": { "properties": { "a": {} }, "required": ["d"] },
    })));
}

#[test]
fn sch_028_additional_properties() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "string" } },
        "additionalProperties": false,
    });
    check_repairs_nothing(schema.clone());
    check_takes(schema.clone(), &Dialect::ANTHROPIC);
    check_takes(schema.clone(), &Dialect::OPENAI);
    check_gemini(
        schema,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "a": {
                  "type": "string"
                }
              },
              "description": "No other properties."
            }
            `#`: left `additionalProperties` out, as the reader doesn't take it.
        "#]],
    );
}

#[test]
fn sch_032_unknown_keywords() {
    let schema = json!({
        "type": "object",
        "properties": {},
        "$defs": {},
        "unevaluatedProperties": false,
        "$anchor": "a",
        "x-vendor": 1,
        "x-more": { "$ref": "#/nowhere", "properties": 5, "type": [] },
    });
    check_repairs_nothing(schema.clone());
    check_takes(schema.clone(), &Dialect::ANY);
    check_takes(schema, &Dialect::ANTHROPIC);
}

#[test]
fn sch_033_output_of_another_type() {
    let objects_only = Dialect {
        any_output: false,
        ..Dialect::ANY
    };
    let schema = json!({ "type": "array", "items": {} });
    check_output(
        schema.clone(),
        &Dialect::ANY,
        false,
        expect![[r#"
        {
          "type": "array",
          "items": {}
        }
    "#]],
    );
    check_output(
        schema,
        &objects_only,
        true,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "result": {
                  "type": "array",
                  "items": {}
                }
              },
              "required": [
                "result"
              ]
            }
            `#`: wrapped it as `result`, as it is no object.
        "#]],
    );
    let object = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    check_output(
        object,
        &objects_only,
        false,
        expect![[r#"
        {
          "type": "object",
          "properties": {
            "a": {
              "type": "string"
            }
          }
        }
    "#]],
    );
    let choice = json!({ "anyOf": [{ "type": "object" }, { "type": "null" }] });
    check_output(
        choice,
        &objects_only,
        true,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "result": {
                  "anyOf": [
                    {
                      "type": "object"
                    },
                    {
                      "type": "null"
                    }
                  ]
                }
              },
              "required": [
                "result"
              ]
            }
            `#`: wrapped it as `result`, as it is no object.
        "#]],
    );
}

#[test]
fn sch_034_output_without_type() {
    let schema = json!({ "$id": "mcpx.v1", "description": "..." });
    check_output(
        schema,
        &Dialect::ANY,
        false,
        expect![[r#"
            {
              "type": "object",
              "$id": "mcpx.v1",
              "description": "..."
            }
            `#`: added `"type": "object"`.
        "#]],
    );
    check_output(
        json!(true),
        &Dialect::ANY,
        false,
        expect![[r#"
            {
              "type": "object",
              "properties": {}
            }
            `#`: added `"type": "object"`.
        "#]],
    );
    let reference = json!({ "$ref": "#/$defs/A", "$defs": { "A": { "type": "object" } } });
    check_output(
        reference,
        &Dialect::ANY,
        false,
        expect![[r##"
            {
              "type": "object",
              "$ref": "#/$defs/A",
              "$defs": {
                "A": {
                  "type": "object"
                }
              }
            }
            `#`: added `"type": "object"`.
        "##]],
    );
}

#[test]
fn sch_036_wrapped_references() {
    let objects_only = Dialect {
        any_output: false,
        ..Dialect::ANY
    };
    check_output(
        json!({
            "type": "array",
            "items": {
                "$ref": "#/items/$defs/X",
                "$defs": { "X": { "anyOf": [{ "type": "string" }, { "$ref": "#" }, { "$ref": "#/$defs/Y" }] } },
            },
            "$defs": { "Y": { "type": "integer" } },
        }),
        &objects_only,
        true,
        expect![[r##"
            {
              "type": "object",
              "properties": {
                "result": {
                  "type": "array",
                  "items": {
                    "$ref": "#/properties/result/items/$defs/X",
                    "$defs": {
                      "X": {
                        "anyOf": [
                          {
                            "type": "string"
                          },
                          {
                            "$ref": "#/properties/result"
                          },
                          {
                            "$ref": "#/$defs/Y"
                          }
                        ]
                      }
                    }
                  }
                }
              },
              "required": [
                "result"
              ],
              "$defs": {
                "Y": {
                  "type": "integer"
                }
              }
            }
            `#`: wrapped it as `result`, as it is no object.
        "##]],
    );
}

#[test]
fn references_follow_what_moves() {
    // At the root there is no `oneOf` any more to refer to.
    check_adapt(
        json!({
            "type": "object",
            "properties": { "again": { "$ref": "#/oneOf/0/properties/a" } },
            "oneOf": [{ "properties": { "a": { "type": "string" } } }, { "properties": { "b": { "type": "string" } } }],
        }),
        &Dialect::ANTHROPIC,
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "again": {
                  "type": "string"
                },
                "a": {
                  "type": "string"
                },
                "b": {
                  "type": "string"
                }
              },
              "description": "Exactly one of: {\"properties\":{\"a\":{\"type\":\"string\"}}}; {\"properties\":{\"b\":{\"type\":\"string\"}}}."
            }
            `#/properties/again`: wrote in place what `#/oneOf/0/properties/a` is.
            `#`: took `oneOf` from the root.
        "#]],
    );
}

#[test]
fn wider_parts_keep_the_sense() {
    let without_patterns = Dialect {
        keywords: SchemaNames::only(&[
            "$ref",
            "$defs",
            "type",
            "properties",
            "oneOf",
            "anyOf",
            "not",
            "if",
            "then",
            "else",
            "description",
            "unevaluatedProperties",
            "minLength",
            "additionalProperties",
        ]),
        ..Dialect::ANY
    };
    check_adapt(
        json!({
            "type": "object",
            "properties": {
                "one": { "oneOf": [{ "type": "string", "pattern": "^a" }, { "type": "string", "minLength": 3 }] },
                "not": { "type": "string", "not": { "pattern": "^b" } },
                "if": { "if": { "pattern": "^c" }, "then": { "minLength": 2 }, "else": { "minLength": 3 } },
                "ref": { "not": { "$ref": "#/$defs/D" } },
                "others": { "patternProperties": { "^x": {} }, "additionalProperties": false },
                "kept": { "not": { "minLength": 4 } },
            },
            "$defs": { "D": { "$ref": "#/$defs/E" }, "E": { "pattern": "^d" } },
        }),
        &without_patterns,
        expect![[r##"
            {
              "type": "object",
              "properties": {
                "one": {
                  "anyOf": [
                    {
                      "type": "string",
                      "description": "Matches ^a."
                    },
                    {
                      "type": "string",
                      "minLength": 3
                    }
                  ],
                  "description": "Exactly one of the alternatives."
                },
                "not": {
                  "type": "string",
                  "description": "Not {\"pattern\":\"^b\"}."
                },
                "if": {
                  "description": "If {\"pattern\":\"^c\"}, then {\"minLength\":2}, otherwise {\"minLength\":3}."
                },
                "ref": {
                  "description": "Not {\"$ref\":\"#/$defs/D\"}."
                },
                "others": {
                  "description": "Properties that match ^x fit {}. No other properties."
                },
                "kept": {
                  "not": {
                    "minLength": 4
                  }
                }
              },
              "$defs": {
                "D": {
                  "$ref": "#/$defs/E"
                },
                "E": {
                  "description": "Matches ^d."
                }
              }
            }
            `#/properties/one/oneOf/0`: left `pattern` out, as the reader doesn't take it.
            `#/properties/one`: wrote `oneOf` as `anyOf`.
            `#/properties/not/not`: left `pattern` out, as the reader doesn't take it.
            `#/properties/not`: left `not` out, as it can't be said in full.
            `#/properties/if/if`: left `pattern` out, as the reader doesn't take it.
            `#/properties/if`: left `if` out, as it can't be said in full.
            `#/properties/if`: left `then` out, as it can't be said in full.
            `#/properties/if`: left `else` out, as it can't be said in full.
            `#/properties/ref`: left `not` out, as it can't be said in full.
            `#/properties/others`: left `patternProperties` out, as the reader doesn't take it.
            `#/properties/others`: left `additionalProperties` out, as the reader doesn't take it.
            `#/$defs/E`: left `pattern` out, as the reader doesn't take it.
        "##]],
    );
}

#[test]
fn dialects_of_two() {
    let names = |it: &'static [&'static str]| Dialect {
        keywords: SchemaNames::only(it),
        ..Dialect::ANY
    };
    let both = names(&["type", "properties", "format"]).both(names(&["format", "items", "type"]));
    assert!(both.keywords.has("type") && both.keywords.has("format"));
    assert!(!both.keywords.has("properties") && !both.keywords.has("items"));
    expect![[r#"{"type", "format"} all"#]]
        .assert_eq(&format!("{:?} {:?}", both.keywords, both.formats));
    let narrow = Dialect::GEMINI.both(both).both(Dialect::ANTHROPIC);
    assert!(narrow.keywords.has("format") && !narrow.keywords.has("minimum"));
    assert!(!narrow.root_combinators && !narrow.references);
    assert!(Dialect::ANY.both(Dialect::ANY).keywords.has("anything"));
}
