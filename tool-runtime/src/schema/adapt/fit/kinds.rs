//! The type of a place, for readers who want one each, or know no `null`.

use super::{Fitting, Lost};
use crate::schema::{
    Object,
    adapt::{
        keyword, merge,
        walk::{self, Place},
    },
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

impl Fitting<'_> {
    /// Makes one type of several. Says whether the place must be one to leave out, as it can no longer be `null`.
    pub(super) fn kinds(&mut self, schema: &mut Object, place: Place, lost: &mut Lost) -> bool {
        if self.dialect.type_lists {
            return false;
        }
        let before = schema.clone();
        let allowed = take_null(schema);
        if allowed != Null::Untouched {
            self.course.note(format_args!("left the type `null` out"));
        }
        let is_optional = match allowed {
            Null::Untouched | Null::Impossible => false,
            Null::Only => {
                lost.sentences.push("Always `null`.".to_owned());
                lost.is_wider = true;
                if !self.dialect.untyped && self.dialect.nullable {
                    schema.insert("type".to_owned(), "string".into());
                    schema.insert("nullable".to_owned(), true.into());
                }
                false
            }
            Null::Possible if self.dialect.takes("nullable") && self.dialect.nullable => {
                schema.insert("nullable".to_owned(), true.into());
                // What else the place demands is not asked of `null`.
                lost.is_wider = true;
                false
            }
            Null::Possible if place == Place::Property => {
                lost.sentences
                    .push("Leave it out instead of `null`.".to_owned());
                if schema.get("default").is_some_and(Value::is_null) {
                    schema.shift_remove("default");
                }
                lost.is_wider = true;
                true
            }
            Null::Possible => {
                *schema = before;
                for keyword in ["type", "anyOf", "oneOf"] {
                    if names_null(schema, keyword) {
                        self.lose(schema, keyword, lost);
                    }
                }
                false
            }
        };
        self.one_kind(schema, lost);
        is_optional
    }

    /// Makes one type of a list, or a choice of them.
    fn one_kind(&mut self, schema: &mut Object, lost: &mut Lost) {
        let Some(kinds @ Value::Array(_)) = schema.get("type") else {
            return;
        };
        let mut kinds = merge::kinds(kinds);
        let mut seen = BTreeSet::new();
        kinds.retain(|it| seen.insert(*it));
        if let [only] = kinds.as_slice() {
            let only = (*only).into();
            schema.insert("type".to_owned(), only);
            self.course.note(format_args!("wrote `type` as one type"));
        } else if self.dialect.takes("anyOf") && !schema.contains_key("anyOf") {
            let branches = kinds.iter().map(|it| json!({ "type": it })).collect();
            walk::rename(schema, "type", "anyOf", branches);
            self.course.note(format_args!("wrote `type` as `anyOf`"));
        } else {
            self.lose(schema, "type", lost);
        }
    }

    /// Writes a type where there is none: that of its values, the one that its rules are about, or a choice of all. Says
    /// whether other values may fit by that.
    pub(super) fn typed(&mut self, schema: &mut Object) -> bool {
        let says_kind = ["$ref", "allOf", "anyOf", "oneOf", "type"];
        if self.dialect.untyped || says_kind.iter().any(|it| schema.contains_key(*it)) {
            return false;
        }
        let of_values = kind_of_values(schema);
        let mut kinds: Vec<&str> = schema.keys().filter_map(|it| keyword::kind(it)).collect();
        kinds.dedup();
        let kind = match (of_values, kinds.as_slice()) {
            (Some(kind), _) => kind,
            (None, [kind]) => *kind,
            _ if self.dialect.takes("anyOf") => {
                let is_ruled = schema.keys().any(|it| keyword::is_rule(it));
                schema.insert("anyOf".to_owned(), any(self.dialect.nullable));
                if self.dialect.nullable {
                    schema.insert("nullable".to_owned(), true.into());
                }
                self.course.note(format_args!("wrote all types as `anyOf`"));
                return is_ruled;
            }
            _ => "string",
        };
        schema.shift_insert(0, "type".to_owned(), kind.into());
        self.course
            .note(format_args!("added `\"type\": \"{kind}\"`"));
        of_values.is_none()
    }
}

fn names_null(schema: &Object, keyword: &str) -> bool {
    match (keyword, schema.get(keyword)) {
        ("type", Some(kinds)) => merge::kinds(kinds).contains(&"null"),
        (_, Some(Value::Array(branches))) => branches.iter().any(is_null),
        _ => false,
    }
}

/// Takes `null` out of the types, the values and the branches.
fn take_null(schema: &mut Object) -> Null {
    let mut is_named = false;
    let mut is_possible = true;
    if let Some(kinds) = schema.get("type") {
        let others: Vec<&str> = merge::kinds(kinds);
        is_possible &= others.contains(&"null");
        is_named |= is_possible;
        if is_possible {
            let others: Vec<Value> = others
                .into_iter()
                .filter(|it| *it != "null")
                .map(Value::from)
                .collect();
            if others.is_empty() {
                schema.shift_remove("type");
                return Null::Only;
            }
            schema.insert("type".to_owned(), others.into());
        }
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = schema.get_mut(keyword) else {
            continue;
        };
        let count = branches.len();
        branches.retain(|it| !is_null(it));
        let has_null = branches.len() < count;
        // A branch without a type may be `null` as well.
        is_possible &= has_null || branches.iter().any(may_be_null);
        is_named |= has_null;
        if branches.is_empty() {
            schema.shift_remove(keyword);
            return Null::Only;
        }
        if has_null && branches.len() == 1 {
            let only = branches.remove(0);
            schema.shift_remove(keyword);
            let mut merged = Value::Object(std::mem::take(schema));
            merge::merge_values(&mut merged, only);
            if let Value::Object(merged) = merged {
                *schema = merged;
            }
        }
    }
    if !is_named {
        return Null::Untouched;
    }
    if schema.get("const").is_some_and(|it| !it.is_null()) {
        is_possible = false;
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        let count = values.len();
        values.retain(|it| !it.is_null());
        is_possible &= values.len() < count;
        if values.is_empty() {
            schema.shift_remove("enum");
            return Null::Only;
        }
    }
    if is_possible {
        Null::Possible
    } else {
        Null::Impossible
    }
}

/// The type of all values that a schema lists, if they have one type.
fn kind_of_values(schema: &Object) -> Option<&'static str> {
    let values = match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => std::slice::from_ref(value),
        (None, Some(Value::Array(values))) => values,
        _ => return None,
    };
    let mut kinds = values.iter().map(|it| match it {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    });
    let first = kinds.next()?;
    let is_one = kinds.all(|it| it == first) && first != "null";
    is_one.then_some(first)
}

/// What became of `null`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Null {
    /// There was none.
    Untouched,
    /// It was named, but something else forbids it.
    Impossible,
    Possible,
    /// Nothing else was possible.
    Only,
}

fn is_null(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else {
        return false;
    };
    let is_null = |keyword: &str| schema.get(keyword).is_some_and(Value::is_null);
    schema
        .get("type")
        .is_some_and(|it| merge::kinds(it) == ["null"])
        || is_null("const")
        || schema
            .get("enum")
            .is_some_and(|it| it == &json!([Value::Null]))
}

fn may_be_null(schema: &Value) -> bool {
    match schema {
        Value::Object(schema) => schema
            .get("type")
            .is_none_or(|it| merge::kinds(it).contains(&"null")),
        other => other == true,
    }
}

/// A choice of all types. What is in a list of lists is text: it has to end.
fn any(is_nullable: bool) -> Value {
    let mut branches: Vec<Value> = ["string", "number", "boolean", "object"]
        .iter()
        .map(|it| json!({ "type": it }))
        .collect();
    let mut items = branches.clone();
    items.push(json!({ "type": "array", "items": { "type": "string" } }));
    if is_nullable {
        for item in &mut items {
            item["nullable"] = true.into();
        }
    }
    branches.push(json!({ "type": "array", "items": { "anyOf": items } }));
    branches.into()
}
