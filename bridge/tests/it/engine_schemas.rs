//! What each engine gets of schemas that have broken engines: it takes them, and they mean what they meant.

use clopen_mcp::engines::{ENGINES, Engine, dialect};
use expect_test::{Expect, expect};
use serde_json::{Map, Value, json};
use tool_runtime::{Caller, Dialect, adapt, adapt_output, repair};

/// What an engine complains of, as its errors say it.
type Rule = fn(&Value) -> Vec<String>;

/// Who reads a schema: an engine, perhaps with a model of Google's behind it.
struct Reader {
    engine: &'static Engine,
    dialect: Dialect,
    rules: Vec<Rule>,
    is_google: bool,
}

impl Reader {
    /// What it gets of the schema of arguments that a server sent.
    fn arguments(&self, sent: &Value) -> Value {
        adapt(&repair(Some(sent)).schema, &self.dialect)
            .schema
            .into()
    }

    #[track_caller]
    fn takes(&self, case: &str, schema: &Value) {
        let complaints: Vec<String> = self.rules.iter().flat_map(|rule| rule(schema)).collect();
        let engine = self.engine.id;
        assert!(
            complaints.is_empty(),
            "{case} for {engine}: {complaints:#?}\n{schema}"
        );
    }
}

fn rule_of(engine: &Engine) -> Rule {
    match engine.id {
        "claude" => by_claude_code,
        "gemini" => by_gemini,
        "opencode" => by_open_code,
        "qwen" => by_qwen_code,
        "codex" | "copilot" | "pi" => by_model_of_openai,
        // Nobody has seen these refuse a schema; what they pass on to a model must do for it.
        "cline" | "continue" | "cursor" | "goose" | "vscode" | "windsurf" | "zed" => {
            by_model_of_openai
        }
        other => panic!("say what {other} takes of a schema"),
    }
}

/// Every engine, with its own models.
fn engines() -> Vec<Reader> {
    let readers = ENGINES.iter().map(|engine| Reader {
        engine,
        dialect: engine.dialect,
        rules: vec![rule_of(engine)],
        is_google: engine.id == "gemini",
    });
    readers.collect()
}

/// Every engine, with a model of Google's.
fn engines_with_gemini() -> Vec<Reader> {
    let readers = ENGINES.iter().map(|engine| Reader {
        engine,
        dialect: dialect(&Caller {
            engine: engine.id.to_owned(),
            model: "gemini-3-pro".to_owned(),
            ..Caller::default()
        }),
        rules: vec![rule_of(engine), by_gemini],
        is_google: true,
    });
    readers.collect()
}

fn readers() -> Vec<Reader> {
    let mut readers = engines();
    readers.extend(engines_with_gemini());
    readers
}

/// A schema in another, and the keyword that it stands under.
struct Place<'a> {
    pointer: String,
    under: &'a str,
    schema: &'a Value,
}

impl<'a> Place<'a> {
    fn keywords(&self) -> impl Iterator<Item = &'a String> {
        self.schema.as_object().into_iter().flat_map(Map::keys)
    }

    fn names(&self, keyword: &str) -> Vec<&'a str> {
        match self.schema.get(keyword) {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(name)) => vec![name],
            _ => Vec::new(),
        }
    }
}

/// A schema and all that are in it.
fn places(schema: &Value) -> Vec<Place<'_>> {
    let mut places = Vec::new();
    let mut open = vec![Place {
        pointer: "#".to_owned(),
        under: "",
        schema,
    }];
    while let Some(place) = open.pop() {
        for (keyword, value) in place.schema.as_object().into_iter().flatten() {
            let inner: Vec<(String, &Value)> = match (keyword.as_str(), value) {
                (
                    "$defs" | "definitions" | "dependentSchemas" | "patternProperties"
                    | "properties",
                    Value::Object(schemas),
                ) => schemas
                    .iter()
                    .map(|(name, it)| (format!("/{name}"), it))
                    .collect(),
                ("allOf" | "anyOf" | "items" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                    let numbered = schemas.iter().enumerate();
                    numbered.map(|(at, it)| (format!("/{at}"), it)).collect()
                }
                (
                    "additionalItems"
                    | "additionalProperties"
                    | "contains"
                    | "else"
                    | "if"
                    | "items"
                    | "not"
                    | "propertyNames"
                    | "then"
                    | "unevaluatedItems"
                    | "unevaluatedProperties",
                    schema,
                ) => vec![(String::new(), schema)],
                _ => continue,
            };
            open.extend(inner.into_iter().map(|(rest, schema)| Place {
                pointer: format!("{}/{keyword}{rest}", place.pointer),
                under: keyword,
                schema,
            }));
        }
        places.push(place);
    }
    places
}

/// “inputSchema without `"type":"object"`”: all tools of the server are lost.
fn root_is_no_object(schema: &Value) -> Vec<String> {
    let is_object = schema["type"] == "object";
    (!is_object)
        .then(|| "the root is not of type object".to_owned())
        .into_iter()
        .collect()
}

/// “does not support oneOf, allOf, or anyOf at the top level”.
fn root_has_combinators(schema: &Value) -> Vec<String> {
    let combinators = [
        "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "$ref",
    ];
    let there = combinators.iter().filter(|it| schema.get(it).is_some());
    there.map(|it| format!("`{it}` at the root")).collect()
}

/// What no reader of JSON Schema can make sense of.
fn references_lead_nowhere(schema: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    for place in places(schema) {
        let Some(reference) = place.schema.get("$ref") else {
            continue;
        };
        let pointer = reference.as_str().and_then(|it| it.strip_prefix('#'));
        let pointer = pointer.map(|it| it.replace("%20", " "));
        if pointer.is_none_or(|it| schema.pointer(&it).is_none()) {
            complaints.push(format!("{}: {reference} is not there", place.pointer));
        }
    }
    complaints
}

fn by_claude_code(schema: &Value) -> Vec<String> {
    [
        root_is_no_object(schema),
        root_has_combinators(schema),
        references_lead_nowhere(schema),
    ]
    .concat()
}

/// “array schema missing items”, besides what is wrong for Anthropic's models too.
fn by_model_of_openai(schema: &Value) -> Vec<String> {
    let places = places(schema);
    let bare = places
        .iter()
        .filter(|it| it.names("type").contains(&"array") && it.schema.get("items").is_none());
    let bare = bare.map(|it| format!("{}: array schema missing items", it.pointer));
    [by_claude_code(schema), bare.collect()].concat()
}

fn by_qwen_code(schema: &Value) -> Vec<String> {
    by_model_of_openai(schema)
}

/// Besides, a property schema `true` has all tools lost. `"additionalProperties": false` it writes itself.
fn by_open_code(schema: &Value) -> Vec<String> {
    let flags = ["additionalProperties", "unevaluatedProperties"];
    let places = places(schema);
    let booleans = places
        .iter()
        .filter(|it| it.schema.is_boolean() && !flags.contains(&it.under));
    let booleans = booleans.map(|it| format!("{}: `{}` as a schema", it.pointer, it.schema));
    [by_model_of_openai(schema), booleans.collect()].concat()
}

/// Google's function declarations: `Schema` of <https://ai.google.dev/api/caching#Schema>.
fn by_gemini(schema: &Value) -> Vec<String> {
    let known = [
        "anyOf",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "nullable",
        "pattern",
        "properties",
        "propertyOrdering",
        "required",
        "title",
        "type",
    ];
    let types = ["string", "number", "integer", "boolean", "array", "object"];
    let mut complaints = by_model_of_openai(schema);
    for place in places(schema) {
        let mut complain = |what: String| complaints.push(format!("{}: {what}", place.pointer));
        if !place.schema.is_object() {
            complain(format!("{} is no object", place.schema));
            continue;
        }
        for keyword in place.keywords().filter(|it| !known.contains(&it.as_str())) {
            complain(format!("Unknown name \"{keyword}\""));
        }
        if place.schema.get("anyOf").is_some() {
            if place.keywords().count() > 1 {
                complain("any_of must be the only field set".to_owned());
            }
            continue;
        }
        let kind = place.schema["type"].as_str();
        if kind.is_none_or(|it| !types.contains(&it)) {
            complain(format!("the type is {}", place.schema["type"]));
        }
        if let Some(values) = place.schema.get("enum").and_then(Value::as_array) {
            if kind != Some("string") {
                complain("enum: only allowed for STRING type".to_owned());
            }
            let is_text = |it: &Value| it.as_str().is_some_and(|it| !it.is_empty());
            if values.is_empty() || !values.iter().all(is_text) {
                complain("enum: cannot be empty".to_owned());
            }
        }
        for name in place.names("required") {
            if place.schema["properties"].get(name).is_none() {
                complain(format!("required: `{name}` is not defined"));
            }
        }
        let formats = ["date-time", "double", "enum", "float", "int32", "int64"];
        for format in place.names("format") {
            if !formats.contains(&format) {
                complain(format!("format: `{format}`"));
            }
        }
    }
    complaints
}

/// The cases of a kind by their ids.
fn kept(kind: &str) -> Vec<(String, Value)> {
    let all: Value =
        serde_json::from_str(include_str!("../data/schemas.json")).expect("it is JSON");
    let cases = all[kind].as_object().expect("they have ids");
    cases
        .iter()
        .map(|(id, schema)| (id.clone(), schema.clone()))
        .collect()
}

/// Twenty definitions, each of which has the next one twice: a million of the last.
fn laughs() -> Value {
    let mut definitions = Map::new();
    for level in 0..20 {
        let next = json!({ "$ref": format!("#/$defs/D{}", level + 1) });
        let definition = json!({ "type": "object", "properties": { "a": next, "b": next } });
        definitions.insert(format!("D{level}"), definition);
    }
    definitions.insert("D20".to_owned(), json!({ "type": "string" }));
    json!({
        "type": "object",
        "properties": { "x": { "$ref": "#/$defs/D0" } },
        "$defs": definitions,
    })
}

/// Schemas of arguments as servers have sent them, by the id of the case.
fn arguments() -> Vec<(String, Value)> {
    let moves = json!([{ "const": "Left", "description": "Left" }, { "const": "Right" }]);
    let mut cases = kept("arguments");
    let made = [
        ("SCH-009", laughs()),
        (
            "SCH-039",
            json!({ "type": "object", "properties": { "move": { "oneOf": moves } } }),
        ),
        (
            "SCH-040",
            json!({ "type": "object", "properties": { "v": { "title": "AnyValue" } } }),
        ),
    ];
    cases.extend(made.map(|(id, schema)| (id.to_owned(), schema)));
    cases
}

fn case(id: &str) -> Value {
    let mut cases = arguments().into_iter();
    let (_, schema) = cases.find(|(it, _)| it == id).expect("it is a case");
    schema
}

#[test]
fn every_engine_takes_every_schema() {
    for (id, sent) in arguments() {
        for reader in readers() {
            reader.takes(&id, &reader.arguments(&sent));
        }
    }
}

/// Arguments of any kind, for any schema.
fn assorted() -> Vec<Value> {
    let objects = json!([
        {},
        { "a": 1 },
        { "a": "text" },
        { "a": null },
        { "a": [], "b": {} },
        { "edge_id": "e" },
        { "edge_id": "e", "from": "f" },
        { "edge_id": 7 },
        { "from": "f", "to": "t" },
        { "from": "f" },
        { "mode": "small", "size": 10 },
        { "mode": "small", "size": 11 },
        { "mode": "large", "size": 11 },
        { "size": "many" },
        { "x": 0 },
        { "x": 1 },
        { "x": -1 },
        { "x": 0.5 },
        { "x": 1e300 },
        { "x": "text" },
        { "x": "" },
        { "x": true },
        { "x": null },
        { "x": {} },
        { "x": { "x": { "x": [1, "two", null] } } },
        { "x": [] },
        { "x": ["a", "b"] },
        { "x": ["a", "a"] },
        { "x": [1, 2.5, true, null, {}] },
        { "x": [["a"], ["b"]] },
        { "x": "text", "y": 1 },
        { "y": "text" },
        { "e": "FOO" },
        { "e": null },
        { "e": "BAZ" },
        { "n": { "c": { "c": {} } } },
        { "n": { "c": [{ "c": [] }] } },
        { "unknown": "größe" },
    ]);
    let Value::Array(objects) = objects else {
        unreachable!("it was just made");
    };
    objects
}

/// What fits the schema of a case, and what fits for nobody.
fn examples(id: &str) -> (Value, Value) {
    match id {
        "SCH-001" | "SCH-016" => (json!([{ "x": 1 }, { "x": ["a"] }, { "y": 1 }]), json!([])),
        "SCH-002" => (json!([{ "x": "a" }]), json!([{ "x": 1 }])),
        "SCH-003" => (
            json!([{ "n": { "c": { "c": { "c": { "c": {} } } } } }]),
            json!([{ "n": 1 }, { "n": { "c": "a" } }]),
        ),
        "SCH-004" => (
            json!([{ "n": { "c": [{ "c": [{ "c": [{ "c": [] }] }] }] } }]),
            json!([{ "n": [] }, { "n": { "c": {} } }, { "n": { "c": [1] } }]),
        ),
        "SCH-005" => (
            json!([{ "nodes": [{ "children": [{ "children": [{ "children": [{}] }] }] }] }]),
            json!([{ "nodes": [1] }, { "nodes": [{ "children": ["a"] }] }]),
        ),
        "SCH-006" => (
            json!([{ "headers": {}, "actions": [{ "a": 1 }] }]),
            json!([{ "actions": [1] }, { "actions": {} }]),
        ),
        "SCH-007" => (
            json!([{ "x": "a", "y": 1 }]),
            json!([{ "x": 1 }, { "y": "a" }]),
        ),
        "SCH-008" => (json!([{ "x": 1, "y": {} }]), json!([])),
        "SCH-009" => (
            json!([{ "x": {} }, { "x": { "a": { "b": { "a": {} } } } }]),
            json!([{ "x": 1 }]),
        ),
        "SCH-010" => (
            json!([{ "edge_id": "e" }, { "from": "f", "to": "t" }, { "edge_id": "e", "to": "t" }]),
            json!([{ "edge_id": 1 }, { "from": "f", "to": [] }]),
        ),
        "SCH-011" => (
            json!([{ "mode": "small", "size": 10 }, { "mode": "large", "size": 11 }, {}]),
            json!([{ "mode": 1 }, { "size": "11" }]),
        ),
        "SCH-012" => (json!([{ "a": "a" }, { "b": 1 }, {}]), json!([{ "a": 1 }])),
        "SCH-018" => (
            json!([{ "correspondent": 1.5 }, { "correspondent": null }, {}]),
            json!([{ "correspondent": "a" }]),
        ),
        "SCH-020" => (
            json!([{ "e": "FOO" }, { "e": null }, {}]),
            json!([{ "e": 1 }, { "e": "BAZ" }]),
        ),
        "SCH-021" => (
            json!([{ "x": 0.5 }, {}]),
            json!([{ "x": -1 }, { "x": "a" }]),
        ),
        "SCH-022" => (
            json!([{ "x": 1 }, {}]),
            json!([{ "x": 0 }, { "x": -1 }, { "x": 1.5 }]),
        ),
        "SCH-023" => (
            json!([{ "x": ["a", "b"] }, { "x": [] }]),
            json!([{ "x": [1] }, { "x": "a" }]),
        ),
        "SCH-024" => (
            json!([{ "x": [] }, { "x": [1, "a", null, {}, ["a"], true] }]),
            json!([{ "x": {} }, { "x": "a" }]),
        ),
        "SCH-026" => (
            json!([{ "f": [{ "name": "a" }] }, { "f": [{}] }]),
            json!([{ "f": {} }, { "f": [1] }]),
        ),
        "SCH-028" => (json!([{ "a": "a" }, {}]), json!([{ "a": 1 }])),
        "SCH-032" => (json!([{}]), json!([])),
        "SCH-039" => (
            json!([{ "move": "Left" }, { "move": "Right" }]),
            json!([{ "move": 1 }, { "move": "Up" }]),
        ),
        "SCH-040" => (json!([{ "v": 1 }, { "v": "a" }, { "v": {} }]), json!([])),
        "SCH-013" | "SCH-014" | "SCH-015" => (json!([{}, { "any": "thing" }]), json!([])),
        other => panic!("say what fits {other}"),
    }
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        other => panic!("{other} is no list"),
    }
}

/// What readers with `nullable` understand by it, in JSON Schema.
pub(crate) fn understood(schema: &Value) -> Value {
    match schema {
        Value::Object(schema) => {
            let inner = schema.iter().map(|(key, it)| (key.clone(), understood(it)));
            let mut inner: Map<String, Value> = inner.collect();
            match inner.get("nullable") {
                Some(Value::Bool(true)) => {
                    inner.remove("nullable");
                    json!({ "anyOf": [{ "type": "null" }, inner] })
                }
                _ => inner.into(),
            }
        }
        Value::Array(items) => items.iter().map(understood).collect(),
        other => other.clone(),
    }
}

#[test]
fn every_engine_lets_through_what_the_server_takes() {
    for (id, sent) in arguments() {
        let repaired = Value::from(repair(Some(&sent)).schema);
        // A schema as it was sent may mean nothing.
        let meant = [Some(&sent).filter(|it| !it.is_null()), Some(&repaired)];
        let meant: Vec<_> = meant
            .into_iter()
            .flatten()
            .filter_map(|it| jsonschema::validator_for(it).ok())
            .collect();
        let (good, bad) = examples(&id);
        let (good, bad) = (list(good), list(bad));
        for instance in &good {
            let fits = meant.iter().any(|it| it.is_valid(instance));
            assert!(fits, "{instance} doesn't fit {id} to begin with");
        }
        let mut instances = assorted();
        instances.extend(good);
        instances.retain(|it| meant.iter().any(|schema| schema.is_valid(it)));
        for reader in readers() {
            let schema = reader.arguments(&sent);
            let adapted = jsonschema::validator_for(&understood(&schema));
            let adapted = adapted.expect("an adapted schema is one");
            let who = reader.engine.id;
            for instance in &instances {
                assert!(
                    adapted.is_valid(instance),
                    "{id}: {who} refuses {instance} by {schema}"
                );
            }
            for instance in &bad {
                assert!(
                    !adapted.is_valid(instance),
                    "{id}: {who} takes {instance} by {schema}"
                );
            }
        }
    }
}

#[test]
fn sch_016_no_flag_is_left_where_flags_break_an_engine() {
    for reader in readers() {
        let x = reader.arguments(&case("SCH-016"))["properties"]["x"].clone();
        let breaks = reader.engine.id == "opencode" || reader.is_google;
        assert_eq!(x.is_object(), breaks, "{}: {x}", reader.engine.id);
    }
}

#[test]
fn sch_028_closed_objects_stay_closed_where_that_can_be_said() {
    let open = json!({ "a": "a", "b": 1 });
    for reader in readers() {
        let schema = reader.arguments(&case("SCH-028"));
        if reader.is_google {
            assert_eq!(schema["description"], "No other properties.");
        } else {
            assert_eq!(schema, case("SCH-028"), "{}", reader.engine.id);
            assert!(!jsonschema::is_valid(&schema, &open));
        }
    }
}

#[test]
fn sch_032_keywords_that_nobody_knows_stay_byte_for_byte() {
    for reader in engines().iter().filter(|it| !it.is_google) {
        let schema = reader.arguments(&case("SCH-032"));
        assert_eq!(
            schema.to_string(),
            case("SCH-032").to_string(),
            "{}",
            reader.engine.id
        );
    }
}

#[test]
fn whatever_the_engine_a_model_of_google_gets_what_gemini_cli_gets() {
    for (id, sent) in arguments() {
        let of_gemini = adapt(&repair(Some(&sent)).schema, &Dialect::GEMINI).schema;
        for reader in engines_with_gemini() {
            let schema = reader.arguments(&sent);
            let who = reader.engine.id;
            assert_eq!(schema, Value::from(of_gemini.clone()), "{id} for {who}");
        }
    }
}

#[test]
fn whoever_is_unknown_gets_schemas_as_they_are() {
    for caller in [("", ""), ("", "llama-5"), ("of-my-own", "")] {
        let dialect = dialect(&Caller {
            engine: caller.0.to_owned(),
            model: caller.1.to_owned(),
            ..Caller::default()
        });
        for (id, sent) in arguments() {
            let repaired = repair(Some(&sent)).schema;
            let adapted = adapt(&repaired, &dialect);
            assert_eq!(adapted.notes, [""; 0], "{id} for {caller:?}");
            assert_eq!(
                Value::from(adapted.schema).to_string(),
                Value::from(repaired).to_string()
            );
        }
    }
}

/// Shows which engines get what of a case.
fn shows(id: &str, expected: &Expect) {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for reader in engines() {
        let schema = reader.arguments(&case(id));
        let schema = serde_json::to_string_pretty(&schema).expect("JSON can be written");
        match told.iter_mut().find(|(it, _)| *it == schema) {
            Some((_, engines)) => engines.push(reader.engine.id),
            None => told.push((schema, vec![reader.engine.id])),
        }
    }
    let told = told
        .iter()
        .map(|(schema, engines)| format!("{}\n{schema}\n", engines.join(", ")));
    expected.assert_eq(&told.collect::<String>());
}

#[test]
fn sch_010_what_a_choice_at_the_root_becomes() {
    shows(
        "SCH-010",
        &expect![[r#"
        claude, cline, codex, continue, copilot, cursor, gemini, goose, opencode, pi, qwen, vscode, windsurf, zed
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
    "#]],
    );
}

#[test]
fn sch_011_what_a_condition_at_the_root_becomes() {
    shows(
        "SCH-011",
        &expect![[r#"
        claude, cline, codex, continue, copilot, cursor, gemini, goose, opencode, pi, qwen, vscode, windsurf, zed
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
    "#]],
    );
}

#[test]
fn sch_018_what_a_list_of_types_becomes() {
    shows(
        "SCH-018",
        &expect![[r#"
        claude, cline, codex, continue, copilot, cursor, goose, opencode, pi, qwen, vscode, windsurf, zed
        {
          "type": "object",
          "properties": {
            "correspondent": {
              "type": [
                "number",
                "null"
              ]
            }
          }
        }
        gemini
        {
          "type": "object",
          "properties": {
            "correspondent": {
              "type": "number",
              "nullable": true
            }
          }
        }
    "#]],
    );
}

#[test]
fn sch_022_what_an_exclusive_bound_becomes() {
    shows(
        "SCH-022",
        &expect![[r#"
        claude, cline, codex, continue, copilot, cursor, goose, opencode, pi, qwen, vscode, windsurf, zed
        {
          "type": "object",
          "properties": {
            "x": {
              "type": "integer",
              "exclusiveMinimum": 0
            }
          }
        }
        gemini
        {
          "type": "object",
          "properties": {
            "x": {
              "type": "integer",
              "minimum": 1
            }
          }
        }
    "#]],
    );
}

#[test]
fn sch_023_what_keywords_become_that_google_refuses() {
    shows(
        "SCH-023",
        &expect![[r#"
        claude, cline, codex, continue, copilot, cursor, goose, opencode, pi, qwen, vscode, windsurf, zed
        {
          "type": "object",
          "properties": {
            "x": {
              "type": "array",
              "items": {
                "type": "string"
              },
              "uniqueItems": true,
              "examples": [
                [
                  "a"
                ]
              ]
            }
          }
        }
        gemini
        {
          "type": "object",
          "properties": {
            "x": {
              "type": "array",
              "items": {
                "type": "string"
              },
              "description": "Each item at most once. For example [\"a\"]."
            }
          }
        }
    "#]],
    );
}

#[test]
fn sch_024_what_an_array_of_anything_becomes() {
    shows(
        "SCH-024",
        &expect![[r#"
        claude
        {
          "type": "object",
          "properties": {
            "x": {
              "type": "array"
            }
          }
        }
        cline, codex, continue, copilot, cursor, goose, opencode, pi, qwen, vscode, windsurf, zed
        {
          "type": "object",
          "properties": {
            "x": {
              "type": "array",
              "items": {}
            }
          }
        }
        gemini
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
    "#]],
    );
}

/// Schemas of structured output as servers have sent them.
fn outputs() -> Vec<(String, Value)> {
    let mut cases = kept("outputs");
    let within = json!({
        "type": "array",
        "items": { "$ref": "#/items/$defs/X", "$defs": { "X": { "type": "integer" } } },
    });
    let beside = json!({
        "type": "array",
        "items": { "$ref": "#/$defs/X" },
        "$defs": { "X": { "type": "array", "items": { "$ref": "#/$defs/X" } } },
    });
    cases.push(("SCH-036 within".to_owned(), within));
    cases.push(("SCH-036 beside".to_owned(), beside));
    cases.push(("a text".to_owned(), json!({ "type": "string" })));
    cases
}

#[test]
fn sch_033_gemini_cli_gets_no_output_but_objects() {
    for reader in readers().iter().filter(|it| it.engine.id == "gemini") {
        for (id, sent) in outputs() {
            let adapted = adapt_output(&sent, &reader.dialect);
            reader.takes(&id, &adapted.schema.into());
            let is_of_objects = ["SCH-034", "SCH-037"].contains(&id.as_str());
            assert_eq!(adapted.wraps, !is_of_objects, "{id}");
        }
    }
}

#[test]
fn sch_034_output_without_a_type_is_an_object_for_all() {
    for reader in readers() {
        let (_, sent) = outputs().remove(1);
        let adapted = adapt_output(&sent, &reader.dialect);
        assert_eq!(adapted.schema["type"], "object", "{}", reader.engine.id);
        assert_eq!(adapted.schema["description"], sent["description"]);
        assert!(!adapted.wraps, "{}", reader.engine.id);
    }
}

/// What tools give out.
fn given() -> [Value; 6] {
    [
        json!([]),
        json!([1, 2]),
        json!([[], [[]]]),
        json!({}),
        json!("a"),
        json!({ "id": "i", "ended_at": "now" }),
    ]
}

/// Whether what a tool gives out is right for its schema, and for what a reader gets of that. Returns how often it was.
#[track_caller]
fn output_fits(id: &str, sent: &Value, reader: &Reader) -> usize {
    // A schema as it was sent may mean nothing; then what is right about it counts.
    let meant = jsonschema::validator_for(sent).or_else(|_| {
        let repaired = adapt_output(sent, &Dialect::ANY).schema;
        jsonschema::validator_for(&repaired.into())
    });
    let meant = meant.expect("it is a schema by now");
    let adapted = adapt_output(sent, &reader.dialect);
    let schema = understood(&adapted.schema.into());
    // A schema without a word about types is that of an object.
    let is_meant = |it: &Value| meant.is_valid(it) && (id != "SCH-034" || it.is_object());
    let mut count = 0;
    for value in given().into_iter().filter(is_meant) {
        let value = if adapted.wraps {
            json!({ "result": value })
        } else {
            value
        };
        let who = reader.engine.id;
        assert!(
            jsonschema::is_valid(&schema, &value),
            "{id}: {who} refuses {value} by {schema}"
        );
        count += 1;
    }
    count
}

#[test]
fn sch_036_output_fits_when_it_is_wrapped() {
    let engines = engines();
    let gemini = engines.iter().find(|it| it.engine.id == "gemini");
    let gemini = gemini.expect("it is an engine");
    let counts = outputs()
        .into_iter()
        .map(|(id, sent)| format!("{id}: {}\n", output_fits(&id, &sent, gemini)));
    expect![[r#"
        SCH-033: 3
        SCH-034: 2
        SCH-036: 3
        SCH-037: 1
        SCH-036 within: 2
        SCH-036 beside: 2
        a text: 1
    "#]]
    .assert_eq(&counts.collect::<String>());
}

#[test]
fn sch_033_output_fits_for_whoever_takes_lists() {
    for (id, sent) in outputs() {
        for reader in readers() {
            output_fits(&id, &sent, &reader);
        }
    }
}
