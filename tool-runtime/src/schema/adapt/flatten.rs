//! A root of alternatives made one object: for readers who refuse combinators there.

use super::{Object, merge, pointer, walk::Notes, words};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How many combinators within one another are flattened.
const DEEPEST: usize = 8;

/// Makes one object of the root: with the properties of all alternatives, and what every one of them requires. The rule
/// that chose between them is told in words.
pub(super) fn flatten(schema: Value, notes: &mut Notes) -> Value {
    let Value::Object(object) = &schema else {
        return schema;
    };
    let combines = [
        "$ref", "allOf", "anyOf", "const", "else", "enum", "if", "not", "oneOf", "then",
    ];
    let is_object = object.get("type").is_some_and(|it| it == "object");
    if is_object && !combines.iter().any(|it| object.contains_key(*it)) {
        return schema;
    }
    let mut flattening = Flattening {
        root: &schema,
        notes,
    };
    let (mut flat, sentences) = flattening.flat(object.clone(), 0);
    if flat.get("type").is_none_or(|it| it != "object") {
        flattening
            .notes
            .add("", format_args!("wrote `type` as `object`"));
        flat.shift_remove("type");
        flat.shift_insert(0, "type".to_owned(), "object".into());
    }
    words::tell(&mut flat, &sentences);
    flat.into()
}

struct Flattening<'a> {
    root: &'a Value,
    notes: &'a mut Notes,
}

impl Flattening<'_> {
    fn flat(&mut self, mut schema: Object, level: usize) -> (Object, Vec<String>) {
        let mut sentences = Vec::new();
        for _ in 0..DEEPEST {
            let Some(Value::String(reference)) = schema.shift_remove("$ref") else {
                break;
            };
            let what = format_args!("wrote in place what `{}` is", words::shortened(&reference));
            self.notes.add("", what);
            if let Some((_, Value::Object(target))) = pointer::resolved(self.root, &reference) {
                sentences.extend(merge::merge(&mut schema, target.clone()).sentences);
            }
        }
        schema.shift_remove("$ref");
        for keyword in ["enum", "const", "not"] {
            if let Some(value) = schema.shift_remove(keyword) {
                sentences.extend(words::words(keyword, &value, &schema));
                self.note(keyword);
            }
        }
        if let Some(value) = schema.get("if") {
            sentences.extend(words::words("if", value, &schema));
        }
        let cases: Vec<Value> = ["then", "else", "if"]
            .iter()
            .filter_map(|it| {
                let value = schema.shift_remove(*it)?;
                self.note(it);
                (*it != "if").then_some(value)
            })
            .collect();
        if !cases.is_empty() {
            let (branches, _) = self.branches(cases, level);
            open_unless_plain(&mut schema, &branches, &mut sentences);
            unite_properties(&mut schema, &branches);
        }
        if let Some(Value::Array(parts)) = schema.shift_remove("allOf") {
            self.note("allOf");
            for part in parts {
                if let Value::Object(part) = part {
                    let (part, told) = self.inner(part, level);
                    sentences.extend(told);
                    sentences.extend(merge::merge(&mut schema, part).sentences);
                }
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(branches) = schema.shift_remove(keyword) else {
                continue;
            };
            self.note(keyword);
            sentences.extend(words::words(keyword, &branches, &schema));
            if let Value::Array(branches) = branches {
                self.choose(&mut schema, branches, level, &mut sentences);
            }
        }
        (schema, sentences)
    }

    fn note(&mut self, keyword: &str) {
        let what = format_args!("took `{keyword}` from the root");
        self.notes.add("", what);
    }

    fn inner(&mut self, schema: Object, level: usize) -> (Object, Vec<String>) {
        if level == DEEPEST {
            let told = words::quoted(&schema.into());
            return (Object::new(), vec![format!("Fits {told}.")]);
        }
        let (mut schema, told) = self.flat(schema, level + 1);
        for keyword in ["$schema", "$id", "$comment", "title", "description"] {
            schema.shift_remove(keyword);
        }
        (schema, told)
    }

    /// The alternatives that an object can fit, and whether one of them is any object.
    fn branches(&mut self, branches: Vec<Value>, level: usize) -> (Vec<Object>, bool) {
        let mut flat = Vec::new();
        let mut is_open = false;
        for branch in branches {
            match branch {
                Value::Object(branch) => {
                    let (branch, _) = self.inner(branch, level);
                    let kinds = branch.get("type").map(merge::kinds);
                    if kinds.is_none_or(|it| it.contains(&"object")) {
                        flat.push(branch);
                    }
                }
                branch => is_open |= branch == true,
            }
        }
        (flat, is_open)
    }

    fn choose(
        &mut self,
        schema: &mut Object,
        branches: Vec<Value>,
        level: usize,
        sentences: &mut Vec<String>,
    ) {
        let (branches, is_open) = self.branches(branches, level);
        open_unless_plain(schema, &branches, sentences);
        if !is_open {
            require(schema, &branches);
            close(schema, &branches);
        }
        unite_properties(schema, &branches);
    }
}

/// What counts as evaluated was decided by the branches, too.
fn open_unless_plain(schema: &mut Object, branches: &[Object], sentences: &mut Vec<String>) {
    let plain = ["properties", "required", "type"];
    let is_plain = |it: &Object| it.keys().all(|it| plain.contains(&it.as_str()));
    if branches.iter().all(is_plain) {
        return;
    }
    if let Some(value) = schema.shift_remove("unevaluatedProperties") {
        sentences.extend(words::words("unevaluatedProperties", &value, schema));
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
fn unite_properties(schema: &mut Object, branches: &[Object]) {
    let mut found: Vec<(&String, Vec<&Value>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for branch in branches {
        let Some(Value::Object(properties)) = branch.get("properties") else {
            continue;
        };
        for (name, value) in properties {
            let index = *places.entry(name).or_insert(found.len());
            match found.get_mut(index) {
                Some((_, values)) if !values.contains(&value) => values.push(value),
                Some(_) => {}
                None => found.push((name, vec![value])),
            }
        }
    }
    if found.is_empty() && branches.is_empty() {
        return;
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
