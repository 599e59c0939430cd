//! What holds for any schema: it ends, its reader takes it, and it accepts no less.

use super::{
    WITHOUT_REFERENCES,
    readers::{ANTHROPIC, GEMINI, OPENAI, Reader},
};
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::{Map, Value, json};
use tool_runtime::{Dialect, SchemaNames, adapt, adapt_output, repair};

/// Dialects that take out one thing each, or all at once.
fn dialects() -> Vec<(Dialect, Reader)> {
    let any = Dialect::ANY;
    vec![
        (any, Reader::ANY),
        (WITHOUT_REFERENCES, Reader::WITHOUT_REFERENCES),
        (Dialect::ANTHROPIC, ANTHROPIC),
        (Dialect::OPENAI, OPENAI),
        (Dialect::GEMINI, GEMINI),
        (Dialect::GEMINI.both(Dialect::OPENAI), GEMINI),
        (
            Dialect {
                booleans: false,
                ..any
            },
            Reader::ANY,
        ),
        (
            Dialect {
                type_lists: false,
                nullable: false,
                ..any
            },
            Reader::ANY,
        ),
        (
            Dialect {
                constants: false,
                exclusive_bounds: false,
                tuples: false,
                ..any
            },
            Reader::ANY,
        ),
        (
            Dialect {
                any_enum: false,
                untyped: false,
                beside_any_of: false,
                ..any
            },
            Reader::ANY,
        ),
        (
            Dialect {
                keywords: SchemaNames::only(&[
                    "$ref",
                    "$defs",
                    "type",
                    "properties",
                    "required",
                    "oneOf",
                    "not",
                    "if",
                    "then",
                    "else",
                    "description",
                    "unevaluatedProperties",
                    "additionalProperties",
                    "items",
                    "minLength",
                    "contains",
                    "maxContains",
                ]),
                ..any
            },
            Reader::ANY,
        ),
    ]
}

fn keyword() -> impl Strategy<Value = String> {
    let known = vec![
        "type",
        "properties",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "$ref",
        "$defs",
        "enum",
        "const",
        "required",
        "additionalProperties",
        "prefixItems",
        "patternProperties",
        "minimum",
        "exclusiveMinimum",
        "minLength",
        "format",
        "description",
        "default",
        "nullable",
        "contains",
        "maxContains",
        "unevaluatedProperties",
        "dependentSchemas",
        "dependencies",
        "propertyNames",
        "x-vendor",
        "$id",
        "$anchor",
        "definitions",
        "a",
        "0",
        "$schema",
        "examples",
    ];
    prop::sample::select(known).prop_map(str::to_owned)
}

/// Any JSON, with the words of JSON Schema in it.
fn any_json() -> impl Strategy<Value = Value> {
    let words = vec![
        "object",
        "array",
        "string",
        "null",
        "integer",
        "#",
        "#/$defs/a",
        "#/properties/a",
        "#/anyOf/0",
        "#a",
        "#/items",
        "#/x-vendor/a",
        "http://a/b",
        "",
        "uuid",
        "a",
        "#/not",
        "#/oneOf/0/properties/a",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9i64).prop_map(Value::from),
        any::<f64>().prop_map(|it| json!(it)),
        prop::sample::select(words).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 5, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => prop::collection::vec((keyword(), inner), 0..5)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

/// Schemas that make sense: they compile, and say the type of everything that they say more of.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": "string", "minLength": 1 })),
        Just(json!({ "type": "string", "pattern": "^a" })),
        Just(json!({ "type": "string", "format": "uuid" })),
        Just(json!({ "type": "string", "enum": ["a", "b"] })),
        Just(json!({ "type": ["string", "null"] })),
        Just(json!({ "type": ["string", "integer"] })),
        Just(json!({ "type": ["string", "integer", "null"], "minLength": 1, "maximum": 4 })),
        Just(json!({ "type": ["string", "null"], "enum": ["a", null] })),
        Just(json!({ "type": ["null"] })),
        Just(json!({ "type": "null" })),
        Just(json!({ "type": "array" })),
        Just(json!({ "type": "object" })),
        Just(json!({ "type": "boolean" })),
        Just(json!({ "type": "integer", "exclusiveMinimum": 1 })),
        Just(json!({ "type": "integer", "exclusiveMaximum": 2.5, "minimum": 1 })),
        Just(json!({ "type": "number", "exclusiveMinimum": 1, "multipleOf": 2 })),
        Just(json!({ "const": "a" })),
        Just(json!({ "const": 1 })),
        Just(json!({ "const": null })),
        Just(json!({ "enum": ["a", 1, null] })),
        Just(json!({ "enum": ["", "a"] })),
        Just(json!({ "$ref": "#/$defs/A" })),
        Just(json!({ "$ref": "#/$defs/B", "description": "B." })),
        Just(json!({ "$ref": "#/properties/a" })),
        Just(json!(true)),
        Just(json!({})),
        Just(json!(false)),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..3);
        let object = (
            prop::collection::vec((prop::sample::select(&["a", "b", "c"][..]), inner.clone()), 0..3),
            prop::collection::vec(prop::sample::select(&["a", "b", "d"][..]), 0..2),
            prop::option::of(prop_oneof![Just(json!(false)), inner.clone()]),
            any::<bool>(),
        );
        prop_oneof![
            object.prop_map(|(properties, required, others, evaluates)| {
                let properties: Map<_, _> = properties.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
                let mut schema = json!({ "type": "object", "properties": properties, "required": required });
                if let Some(others) = others {
                    let keyword = if evaluates { "unevaluatedProperties" } else { "additionalProperties" };
                    schema[keyword] = others;
                }
                schema
            }),
            inner.clone().prop_map(|it| json!({ "type": "array", "items": it })),
            (some(), inner.clone()).prop_map(|(first, rest)| {
                json!({ "type": "array", "prefixItems": first, "items": rest })
            }),
            inner.clone().prop_map(|it| json!({ "type": "array", "contains": it, "maxContains": 1 })),
            some().prop_map(|it| json!({ "anyOf": it })),
            some().prop_map(|it| json!({ "oneOf": it })),
            some().prop_map(|it| json!({ "allOf": it })),
            (some(), inner.clone()).prop_map(|(it, own)| beside(own, "anyOf", it.into())),
            (some(), inner.clone()).prop_map(|(it, own)| beside(own, "oneOf", it.into())),
            (some(), inner.clone()).prop_map(|(it, own)| beside(own, "allOf", it.into())),
            (inner.clone(), inner.clone()).prop_map(|(it, own)| beside(own, "not", it)),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| {
                json!({ "if": a, "then": b, "else": c })
            }),
            (inner.clone(), inner.clone()).prop_map(|(it, other)| {
                json!({ "type": "object", "patternProperties": { "^a": it }, "additionalProperties": other })
            }),
            (inner.clone(), inner).prop_map(|(it, other)| {
                json!({
                    "type": "object",
                    "allOf": [{ "properties": { "a": it } }],
                    "properties": { "b": other },
                    "unevaluatedProperties": false,
                })
            }),
        ]
    })
}

fn beside(own: Value, keyword: &str, value: Value) -> Value {
    match own {
        Value::Object(mut own) => {
            own.insert(keyword.to_owned(), value);
            own.into()
        }
        _ => json!({ keyword: value }),
    }
}

/// What stands in a root beside the properties `a` and `b`, of which it may say more.
fn combinator() -> impl Strategy<Value = Value> {
    let names = || prop::collection::vec(prop::sample::select(&["a", "b"][..]), 0..2);
    let branch = (schema(), schema(), names(), 0..9).prop_map(|(a, b, required, of)| match of {
        0 => json!({ "required": required }),
        1 => json!({ "properties": { "a": a }, "additionalProperties": false }),
        2 => json!({ "type": "object", "properties": { "b": b }, "required": required }),
        3 => json!({ "type": "null" }),
        4 => json!({ "$ref": "#/$defs/A" }),
        5 => json!({ "patternProperties": { "^a": a } }),
        6 => json!({ "if": { "required": required }, "then": { "properties": { "a": a } } }),
        7 => json!({ "anyOf": [{ "properties": { "b": b }, "required": ["b"] }, { "properties": { "a": a } }] }),
        _ => json!({ "not": { "required": required } }),
    });
    let branch = branch.boxed();
    let some = prop::collection::vec(branch.clone(), 1..4);
    prop_oneof![
        some.clone().prop_map(|it| json!({ "oneOf": it })),
        some.clone().prop_map(|it| json!({ "anyOf": it })),
        some.prop_map(|it| json!({ "allOf": it })),
        (branch.clone(), branch.clone(), branch.clone())
            .prop_map(|(a, b, c)| json!({ "if": a, "then": b, "else": c })),
        branch.prop_map(|it| json!({ "not": it })),
    ]
}

/// A root of which the properties, and what they refer to, are any schemas.
fn root() -> impl Strategy<Value = Value> {
    let combinators = prop::collection::vec((combinator(), any::<bool>()), 0..2);
    (schema(), schema(), schema(), schema(), combinators).prop_map(|(a, b, d, e, combinators)| {
        let mut root = json!({
            "type": "object",
            "properties": { "a": a, "b": b },
            "$defs": { "A": d, "B": e },
        });
        for (combinator, evaluates) in combinators {
            for (keyword, value) in combinator.as_object().unwrap() {
                root[keyword] = value.clone();
            }
            if evaluates {
                root["unevaluatedProperties"] = false.into();
            }
        }
        root
    })
}

fn instance() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!("a")),
        Just(json!("ab")),
        Just(json!("")),
        Just(json!("b")),
        Just(json!(1)),
        Just(json!(2)),
        Just(json!(2.5)),
        Just(json!(4)),
        Just(json!(true)),
        Just(json!(null)),
        Just(json!({})),
        Just(json!([])),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => prop::collection::vec((prop::sample::select(&["a", "b", "c", "ax"][..]), inner), 0..3)
                .prop_map(|it| Value::Object(it.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

/// What a reader with `nullable` understands, as JSON Schema.
fn understood(schema: &Value) -> Value {
    match schema {
        Value::Object(schema) => {
            let inner = schema.iter().map(|(k, v)| (k.clone(), understood(v)));
            let mut inner: Map<_, _> = inner.collect();
            match inner.remove("nullable") {
                Some(Value::Bool(true)) => json!({ "anyOf": [inner, { "type": "null" }] }),
                Some(other) => {
                    inner.insert("nullable".to_owned(), other);
                    inner.into()
                }
                None => inner.into(),
            }
        }
        Value::Array(items) => items.iter().map(understood).collect(),
        other => other.clone(),
    }
}

fn accepts(schema: &Value, instance: &Value) -> bool {
    jsonschema::validator_for(schema)
        .unwrap()
        .is_valid(instance)
}

/// What may be left out instead of `null`, left out.
fn without_null(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.iter().filter(|(_, it)| !it.is_null());
            Value::Object(kept.map(|(k, v)| (k.clone(), without_null(v))).collect())
        }
        Value::Array(items) => items.iter().map(without_null).collect(),
        other => other.clone(),
    }
}

fn has_lists_of_lists(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.values().any(has_lists_of_lists),
        Value::Array(items) => items
            .iter()
            .any(|it| it.is_array() || has_lists_of_lists(it)),
        _ => false,
    }
}

proptest! {
    // The same cases on every machine: schemas have no end of corners, and a change must show its own.
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(202_012), ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_repaired_and_adapted(json in any_json()) {
        let repaired = repair(Some(&json));
        Reader::ANY.check(&repaired.schema);
        let again = repair(Some(&repaired.schema.clone().into()));
        prop_assert_eq!(&again.notes, &[""; 0], "{}", serde_json::to_string(&repaired.schema).unwrap());
        prop_assert_eq!(
            serde_json::to_string(&again.schema).unwrap(),
            serde_json::to_string(&repaired.schema).unwrap()
        );
        for (dialect, reader) in dialects() {
            let adapted = adapt(&repaired.schema, &dialect);
            let rejected = reader.rejects(&adapted.schema);
            prop_assert!(rejected.is_empty(), "{rejected:?} {}", serde_json::to_string(&adapted.schema).unwrap());
            let again = adapt(&adapted.schema, &dialect);
            prop_assert_eq!(&again.notes, &[""; 0], "{}", serde_json::to_string(&adapted.schema).unwrap());
            prop_assert_eq!(
                serde_json::to_string(&again.schema).unwrap(),
                serde_json::to_string(&adapted.schema).unwrap()
            );
            let output = adapt_output(&json, &Dialect { any_output: false, ..dialect });
            prop_assert_eq!(&output.schema["type"], "object");
        }
    }

    #[test]
    fn unrepaired_json_is_adapted(json in any_json()) {
        if let Value::Object(schema) = &json {
            for (dialect, _) in dialects() {
                let adapted = adapt(schema, &dialect);
                let again = adapt(&adapted.schema, &dialect);
                prop_assert_eq!(
                    serde_json::to_string(&again.schema).unwrap(),
                    serde_json::to_string(&adapted.schema).unwrap()
                );
            }
            let unchanged = adapt(schema, &Dialect::ANY);
            prop_assert_eq!(&unchanged.notes, &[""; 0]);
            prop_assert_eq!(serde_json::to_string(&unchanged.schema).unwrap(), json.to_string());
        }
    }

    #[test]
    fn what_was_accepted_still_is(
        schema in root(),
        instances in prop::collection::vec((instance(), instance()), 12)
    ) {
        let instances = instances.into_iter().flat_map(|(a, b)| {
            [json!({ "a": a, "b": b }), json!({ "a": a }), json!({ "b": b })]
        });
        let mut accepted: Vec<Value> = instances.filter(|it| accepts(&schema, it)).collect();
        accepted.extend(Some(json!({})).filter(|it| accepts(&schema, it)));
        let repaired = repair(Some(&schema));
        let as_value = Value::Object(repaired.schema.clone());
        for instance in &accepted {
            prop_assert!(accepts(&as_value, instance), "{as_value} {instance}");
        }
        for (dialect, _) in dialects() {
            let adapted = understood(&adapt(&repaired.schema, &dialect).schema.into());
            // Where any value is good, a list of lists is told to be one of texts.
            let can_be_said = |it: &&Value| dialect.untyped || !has_lists_of_lists(it);
            for instance in accepted.iter().filter(can_be_said) {
                // Who knows no `null` leaves it out; where that isn't allowed, they can't say this.
                let left_out = without_null(instance);
                let is_accepted = accepts(&adapted, instance)
                    || !dialect.type_lists
                        && (accepts(&adapted, &left_out) || !accepts(&as_value, &left_out));
                prop_assert!(is_accepted, "{dialect:?} {schema} {adapted} {instance}");
            }
        }
    }
}
