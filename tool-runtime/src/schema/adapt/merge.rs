//! Two schemas of one value made one, which accepts no less than both together.

use super::{Object, keyword, words};
use serde_json::Value;

/// Keywords that only make sense with each other.
const GROUPS: [&[&str]; 3] = [
    &["prefixItems", "items", "additionalItems"],
    &["contains", "minContains", "maxContains"],
    &["if", "then", "else"],
];

/// What was lost when two schemas became one.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// It accepts more than both together.
    pub is_wider: bool,
    /// The lost rules in words.
    pub sentences: Vec<String>,
}

/// Adds what another schema of the same value says. Where the two disagree the own word counts.
pub(super) fn merge(own: &mut Object, other: Object) -> Merged {
    let mut merged = Merged {
        is_wider: closes(own, &other) || closes(&other, own),
        ..Merged::default()
    };
    let mut skipped: Vec<&str> = Vec::new();
    for group in GROUPS {
        let differs = group.iter().any(|it| own.get(*it) != other.get(*it));
        let has = |schema: &Object| group.iter().any(|it| schema.contains_key(*it));
        if differs && has(own) && has(&other) {
            skipped.extend(group);
            merged.is_wider = true;
        }
    }
    for keyword in &skipped {
        let value = other.get(*keyword);
        let told = value.and_then(|it| words::words(keyword, it, &other));
        merged.sentences.extend(told);
    }
    for (keyword, value) in other {
        if !skipped.contains(&keyword.as_str()) {
            add(own, &keyword, value, &mut merged);
        }
    }
    if merged.is_wider {
        for keyword in ["unevaluatedItems", "unevaluatedProperties"] {
            if let Some(value) = own.shift_remove(keyword) {
                let told = words::words(keyword, &value, own);
                merged.sentences.extend(told);
            }
        }
    }
    merged
}

/// Whether a schema that allows no other properties is to get some.
fn closes(one: &Object, other: &Object) -> bool {
    let is_closed = ["additionalProperties", "unevaluatedProperties"]
        .iter()
        .any(|it| one.get(*it).is_some_and(|it| it != true));
    let adds = |keyword: &str| {
        let here = one.get(keyword).and_then(Value::as_object);
        let names = other.get(keyword).and_then(Value::as_object);
        names.is_some_and(|it| {
            it.keys()
                .any(|name| here.is_none_or(|here| !here.contains_key(name)))
        })
    };
    is_closed && (adds("properties") || adds("patternProperties"))
}

fn add(own: &mut Object, keyword: &str, value: Value, merged: &mut Merged) {
    let Some(here) = own.get_mut(keyword) else {
        own.insert(keyword.to_owned(), value);
        return;
    };
    if *here == value || !keyword::is_rule(keyword) {
        return;
    }
    match (keyword, here, value) {
        (
            "properties" | "patternProperties" | "dependentSchemas",
            Value::Object(here),
            Value::Object(there),
        ) => {
            for (name, schema) in there {
                match here.get_mut(&name) {
                    Some(own) => merged.is_wider |= merge_values(own, schema),
                    None => {
                        here.insert(name, schema);
                    }
                }
            }
        }
        ("required", Value::Array(here), Value::Array(there)) => {
            for name in there {
                if !here.contains(&name) {
                    here.push(name);
                }
            }
        }
        ("allOf", Value::Array(here), Value::Array(there)) => here.extend(there),
        ("type", here, there) => match common_kinds(here, &there) {
            Some(kinds) => *here = kinds,
            None => merged.is_wider = true,
        },
        (keyword, _, there) => {
            merged.is_wider = true;
            merged
                .sentences
                .extend(words::words(keyword, &there, &Object::new()));
        }
    }
}

/// The same for two schemas that may be `true` or `false`. Says whether the result is wider, and tells why in it.
pub(super) fn merge_values(own: &mut Value, other: Value) -> bool {
    match (own, other) {
        (Value::Object(own), Value::Object(other)) => {
            let merged = merge(own, other);
            words::tell(own, &merged.sentences);
            merged.is_wider
        }
        (Value::Bool(false), _) | (_, Value::Bool(true)) => false,
        (own, other) => {
            *own = other;
            false
        }
    }
}

/// The types that both have, if there are any.
fn common_kinds(one: &Value, other: &Value) -> Option<Value> {
    let (one, other) = (kinds(one), kinds(other));
    let has = |kinds: &[&str], kind: &str| {
        kinds.contains(&kind) || kind == "integer" && kinds.contains(&"number")
    };
    let mut common: Vec<&str> = one.iter().copied().filter(|it| has(&other, it)).collect();
    let more = other.iter().filter(|it| has(&one, it));
    for kind in more {
        if !common.contains(kind) {
            common.push(kind);
        }
    }
    match common.as_slice() {
        [] => None,
        [only] => Some((*only).into()),
        many => Some(many.to_vec().into()),
    }
}

/// The types that a value of `type` names.
pub(super) fn kinds(value: &Value) -> Vec<&str> {
    match value {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}
