//! A root of alternatives made one object: for readers who refuse combinators there.

use super::{Object, merge, pointer, walk::Notes, words};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How many combinators within one another are flattened.
const DEEPEST: usize = 8;

/// The most schemas of one property that are told apart.
const MOST: usize = 32;

/// Makes one object of the root: with the properties of all alternatives, and what every one of them requires. The rule
/// that chose between them is told in words.
pub(super) fn flatten(schema: Value, notes: &mut Notes) -> Value {
    let Value::Object(object) = &schema else {
        return schema;
    };
    let is_object = object.get("type").is_some_and(|it| it == "object");
    if is_object && !COMBINATORS.iter().any(|it| object.contains_key(*it)) {
        return schema;
    }
    let mut flattening = Flattening {
        root: &schema,
        notes,
    };
    let flat = flattening.flat(object.clone(), 0);
    let mut schema = flat.schema;
    if schema.get("type").is_none_or(|it| it != "object") {
        notes.add("", format_args!("wrote `type` as `object`"));
        schema.shift_remove("type");
        schema.shift_insert(0, "type".to_owned(), "object".into());
    }
    unite_properties(&mut schema, &flat.possible);
    words::tell(&mut schema, &flat.sentences);
    schema.into()
}

/// What no root may have for these readers.
const COMBINATORS: [&str; 10] = [
    "$ref", "allOf", "anyOf", "const", "else", "enum", "if", "not", "oneOf", "then",
];

struct Flattening<'a> {
    root: &'a Value,
    notes: &'a mut Notes,
}

/// A schema without combinators.
#[derive(Default)]
struct Flat {
    /// What holds in any case.
    schema: Object,
    /// The properties that it has in some cases. They are of the root unless it says something of them itself.
    possible: Vec<(String, Value)>,
    sentences: Vec<String>,
    /// Says no more of properties than their schemas.
    is_plain: bool,
}

impl Flattening<'_> {
    fn flat(&mut self, mut schema: Object, level: usize) -> Flat {
        let mut flat = Flat {
            is_plain: true,
            ..Flat::default()
        };
        for _ in 0..DEEPEST {
            let Some(Value::String(reference)) = schema.shift_remove("$ref") else {
                break;
            };
            let what = format_args!("wrote in place what `{}` is", words::shortened(&reference));
            self.notes.add("", what);
            if let Some((_, Value::Object(target))) = pointer::resolved(self.root, &reference) {
                let merged = merge::merge(&mut schema, target.clone());
                flat.sentences.extend(merged.sentences);
            }
        }
        schema.shift_remove("$ref");
        for keyword in ["enum", "const", "not"] {
            if let Some(value) = schema.shift_remove(keyword) {
                flat.sentences
                    .extend(words::words(keyword, &value, &schema));
                self.note(keyword);
            }
        }
        self.cases(&mut schema, level, &mut flat);
        if let Some(Value::Array(parts)) = schema.shift_remove("allOf") {
            self.note("allOf");
            for part in parts {
                if let Value::Object(part) = part {
                    let part = self.inner(part, level);
                    flat.sentences.extend(part.sentences);
                    flat.possible.extend(part.possible);
                    flat.is_plain &= part.is_plain;
                    let merged = merge::merge(&mut schema, part.schema);
                    flat.sentences.extend(merged.sentences);
                }
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = schema.shift_remove(keyword) {
                self.note(keyword);
                flat.sentences
                    .extend(words::words(keyword, &branches, &schema));
                if let Value::Array(branches) = branches {
                    self.choose(&mut schema, branches, level, &mut flat);
                }
            }
        }
        // What counts as evaluated was decided by the branches, too.
        if !flat.is_plain
            && let Some(value) = schema.shift_remove("unevaluatedProperties")
        {
            let told = words::words("unevaluatedProperties", &value, &schema);
            flat.sentences.extend(told);
        }
        flat.schema = schema;
        flat
    }

    fn note(&mut self, keyword: &str) {
        let what = format_args!("took `{keyword}` from the root");
        self.notes.add("", what);
    }

    fn inner(&mut self, schema: Object, level: usize) -> Flat {
        if level == DEEPEST {
            let told = words::quoted(&schema.into());
            return Flat {
                sentences: vec![format!("Fits {told}.")],
                ..Flat::default()
            };
        }
        let mut flat = self.flat(schema, level + 1);
        for keyword in ["$schema", "$id", "$comment", "title", "description"] {
            flat.schema.shift_remove(keyword);
        }
        flat
    }

    /// Tells conditions in words.
    fn cases(&mut self, schema: &mut Object, level: usize, flat: &mut Flat) {
        if let Some(value) = schema.get("if") {
            flat.sentences.extend(words::words("if", value, schema));
        }
        for keyword in ["then", "else", "if"] {
            let Some(case) = schema.shift_remove(keyword) else {
                continue;
            };
            self.note(keyword);
            if keyword != "if" {
                self.branches(vec![case], level, flat);
            }
        }
    }

    /// Returns the alternatives that an object can fit, or nothing if one of them is any object. Their properties become
    /// possible.
    fn branches(
        &mut self,
        branches: Vec<Value>,
        level: usize,
        flat: &mut Flat,
    ) -> Option<Vec<Object>> {
        let mut schemas = Vec::new();
        let mut is_open = false;
        for branch in branches {
            let Value::Object(branch) = branch else {
                is_open |= branch == true;
                continue;
            };
            let branch = self.inner(branch, level);
            let kinds = branch.schema.get("type").map(merge::kinds);
            if kinds.is_some_and(|it| !it.contains(&"object")) {
                continue;
            }
            let plain = ["properties", "required", "type"];
            flat.is_plain &= branch.is_plain;
            flat.is_plain &= branch.schema.keys().all(|it| plain.contains(&it.as_str()));
            if let Some(Value::Object(properties)) = branch.schema.get("properties") {
                let properties = properties.iter().map(|(k, v)| (k.clone(), v.clone()));
                flat.possible.extend(properties);
            }
            flat.possible.extend(branch.possible);
            schemas.push(branch.schema);
        }
        (!is_open).then_some(schemas)
    }

    fn choose(&mut self, schema: &mut Object, branches: Vec<Value>, level: usize, flat: &mut Flat) {
        if let Some(branches) = self.branches(branches, level, flat) {
            require(schema, &branches);
            close(schema, &branches);
        }
    }
}

/// Requires what all alternatives require.
fn require(schema: &mut Object, branches: &[Object]) {
    let required = |it: &Object| -> BTreeSet<String> {
        let names = it.get("required").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    };
    let Some((first, others)) = branches.split_first() else {
        return;
    };
    let mut common = required(first);
    for other in others {
        let other = required(other);
        common.retain(|it| other.contains(it));
    }
    if common.is_empty() {
        return;
    }
    let own = required(schema);
    // In the order in which the first has them.
    let names = first.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter(|it| {
        let name = it.as_str();
        name.is_some_and(|it| common.remove(it) && !own.contains(it))
    });
    let names: Vec<Value> = names.cloned().collect();
    let own = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(own) = own {
        own.extend(names);
    }
}

/// Allows no other properties if no alternative does.
fn close(schema: &mut Object, branches: &[Object]) {
    let is_closed = |it: &Object| {
        let no_others = it.get("additionalProperties").is_some_and(|it| it == false);
        no_others && !it.contains_key("patternProperties")
    };
    let is_said = ["additionalProperties", "patternProperties"];
    let is_said = is_said.iter().any(|it| schema.contains_key(*it));
    if !branches.is_empty() && !is_said && branches.iter().all(is_closed) {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}

/// Adds the properties of the alternatives. One that several have is as any of them has it.
fn unite_properties(schema: &mut Object, possible: &[(String, Value)]) {
    let mut found: Vec<(&String, Vec<&Value>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, value) in possible {
        let index = *places.entry(name).or_insert(found.len());
        match found.get_mut(index) {
            Some((_, values)) if values.len() > MOST || values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => found.push((name, vec![value])),
        }
    }
    let own = schema.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(own) = own else { return };
    for (name, values) in found {
        own.entry(name.clone()).or_insert_with(|| any_of(&values));
    }
}

fn any_of(schemas: &[&Value]) -> Value {
    if let [only] = schemas {
        return (*only).clone();
    }
    if schemas.len() > MOST {
        return json!({});
    }
    values(schemas).unwrap_or_else(|| json!({ "anyOf": schemas }))
}

/// One list of values of several, as those that tell alternatives apart are.
fn values(schemas: &[&Value]) -> Option<Value> {
    let mut united = Object::new();
    let mut all: Vec<Value> = Vec::new();
    for schema in schemas {
        let schema = schema.as_object()?;
        let known = ["type", "const", "enum", "description", "title"];
        if schema.keys().any(|it| !known.contains(&it.as_str())) {
            return None;
        }
        match (schema.get("const"), schema.get("enum")) {
            (Some(value), None) => all.push(value.clone()),
            (None, Some(Value::Array(values))) => all.extend(values.iter().cloned()),
            _ => return None,
        }
        if all.iter().any(|it| !it.is_string()) {
            return None;
        }
    }
    if schemas
        .iter()
        .all(|it| it.get("type").is_none_or(|it| it == "string"))
    {
        united.insert("type".to_owned(), "string".into());
    }
    let mut seen = BTreeSet::new();
    all.retain(|it| seen.insert(it.as_str().unwrap_or_default().to_owned()));
    united.insert("enum".to_owned(), all.into());
    Some(united.into())
}
