//! What is wrong with a schema for every reader, put right.

use super::{
    Adapted, Object, ROUNDS, empty,
    keyword::{self, Shape},
    merge, outline,
    pointer::{self, REFERENCES},
    size, walk,
    walk::{Course, Notes, Part, Pass, Place},
    words,
};
use serde_json::{Value, json};

/// Makes a schema of a tool's arguments, which a server of others sent, such that every reader of JSON Schema understands
/// it: an object, with references that lead somewhere in it, and with keywords that are what they should be.
///
/// Nothing is fetched. A keyword that isn't of JSON Schema stays as it is, and a schema without fault does. What a schema
/// accepts is accepted afterwards. A schema of more than 1 MiB or of more than 128 levels becomes that of any object, as
/// do `true`, `null` and no schema at all.
pub fn repair(schema: Option<&Value>) -> Adapted {
    let what = match schema {
        Some(Value::Object(_)) => None,
        None | Some(Value::Null) => Some("there is no schema".to_owned()),
        Some(other) => Some(format!("the schema is {}", words::quoted(other))),
    };
    let mut notes = Notes::default();
    let schema = match (schema, what) {
        (Some(schema), None) => {
            if let Err(excess) = size::check(schema) {
                return outline(schema.get("description"), &excess);
            }
            root(mend(schema.clone(), &mut notes), &mut notes)
        }
        (_, what) => {
            let what = what.unwrap_or_default();
            notes.add("", format_args!("{what}; any object is taken"));
            empty()
        }
    };
    if let Err(excess) = size::check_object(&schema) {
        return outline(schema.get("description"), &excess);
    }
    Adapted {
        schema,
        notes: notes.into_list(),
    }
}

/// Makes an object schema of a root: arguments are always an object.
fn root(schema: Value, notes: &mut Notes) -> Object {
    let Value::Object(mut schema) = schema else {
        return empty();
    };
    let kinds: Option<Vec<&str>> = schema.get("type").map(merge::kinds);
    match kinds.as_deref() {
        Some(["object"]) => schema.insert("type".to_owned(), "object".into()),
        Some(kinds) if kinds.contains(&"object") => {
            notes.add("", format_args!("wrote `type` as `object`"));
            schema.insert("type".to_owned(), "object".into())
        }
        Some(kinds) => {
            let kinds = kinds.join(", ");
            notes.add(
                "",
                format_args!("the schema is of {kinds}; any object is taken"),
            );
            let mut emptied = empty();
            for keyword in ["title", "description"] {
                if let Some(value) = schema.remove(keyword) {
                    emptied.insert(keyword.to_owned(), value);
                }
            }
            return emptied;
        }
        None => {
            notes.add("", format_args!("added `\"type\": \"object\"`"));
            if !schema.keys().any(|it| keyword::is_rule(it)) {
                schema.shift_insert(0, "properties".to_owned(), json!({}));
            }
            schema.shift_insert(0, "type".to_owned(), "object".into())
        }
    };
    schema
}

/// Puts right what is wrong within a schema of any type.
pub(super) fn mend(mut schema: Value, notes: &mut Notes) -> Value {
    pointer::settle(&mut schema, notes);
    draft(&mut schema, notes);
    for _ in 0..ROUNDS {
        let mut of_round = Notes::default();
        schema = walk::walk(&schema, &mut of_round, |course| Mending {
            root: &schema,
            course,
        });
        if of_round.is_empty() {
            break;
        }
        notes.extend(of_round);
    }
    schema
}

/// Readers know `$schema` of JSON Schema's own drafts, and none before draft-06 has numbers as exclusive bounds.
fn draft(schema: &mut Value, notes: &mut Notes) {
    let Some(Value::String(draft)) = schema.get_mut("$schema") else {
        return;
    };
    let version = draft
        .trim_start_matches("http")
        .trim_start_matches('s')
        .trim_start_matches("://json-schema.org/")
        .trim_end_matches('#');
    match version {
        "draft/2020-12/schema" | "draft/2019-09/schema" | "draft-07/schema" | "draft-06/schema" => {
        }
        "draft-04/schema" | "draft-03/schema" => {
            "http://json-schema.org/draft-07/schema#".clone_into(draft);
            notes.add("", format_args!("wrote `$schema` as draft-07"));
        }
        _ => {
            notes.add("", format_args!("left `$schema` out, as few know it"));
            if let Value::Object(schema) = schema {
                schema.shift_remove("$schema");
            }
        }
    }
}

struct Mending<'a> {
    root: &'a Value,
    course: Course,
}

impl Pass for Mending<'_> {
    fn course(&mut self) -> &mut Course {
        &mut self.course
    }

    fn node(&mut self, schema: Value, place: Place) -> Part {
        let mut schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(_) => return Part::new(schema, false),
            other => {
                let other = words::quoted(&other);
                self.course.note(format_args!("wrote `{{}}` for {other}"));
                return Part::new(Object::new(), true);
            }
        };
        let mut is_wider = self.bounds(&mut schema);
        is_wider |= self.malformed(&mut schema);
        is_wider |= self.nullable(&mut schema);
        is_wider |= self.references(&mut schema);
        if place != Place::Branch && !self.course.references.share(&self.course.path) {
            is_wider |= unknown_names(self, &mut schema);
        }
        if is_wider {
            let told = walk::open_unevaluated(self, &mut schema);
            words::tell(&mut schema, &told);
        }
        is_wider |= walk::descend(self, &mut schema);
        Part::new(schema, is_wider)
    }
}

impl Mending<'_> {
    /// In draft-04, and descriptions of web services, an exclusive bound is a flag beside the bound.
    fn bounds(&mut self, schema: &mut Object) -> bool {
        for (exclusive, bound) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            let Some(Value::Bool(is_exclusive)) = schema.get(exclusive) else {
                continue;
            };
            let is_exclusive = *is_exclusive;
            match schema
                .get(bound)
                .filter(|it| it.is_number() && is_exclusive)
            {
                Some(value) => {
                    let value = value.clone();
                    schema.insert(exclusive.to_owned(), value);
                    schema.shift_remove(bound);
                    let what = format_args!("wrote `{exclusive}` as a number");
                    self.course.note(what);
                }
                None => walk::remove(self, schema, &[exclusive], "it is no number"),
            }
        }
        false
    }

    /// Takes out what a keyword can't have.
    fn malformed(&mut self, schema: &mut Object) -> bool {
        if let Some(Value::Array(names)) = schema.get_mut("required") {
            let count = names.len();
            names.retain(Value::is_string);
            if names.len() < count {
                self.course
                    .note(format_args!("left out of `required` what is no name"));
            }
        }
        let malformed: Vec<String> = schema
            .iter()
            .filter(|(keyword, value)| {
                let shape = keyword::shape(keyword).filter(|it| *it != Shape::Any);
                shape.is_some_and(|it| !it.fits(value))
            })
            .map(|(keyword, _)| keyword.clone())
            .collect();
        for keyword in &malformed {
            walk::remove(self, schema, &[keyword], "it is malformed");
        }
        malformed.iter().any(|it| keyword::is_rule(it))
    }

    /// A value that may be `null`, and is by default, may be `null` though a list of values forgets to say so.
    fn nullable(&mut self, schema: &mut Object) -> bool {
        let kinds = schema.get("type").map(merge::kinds).unwrap_or_default();
        if !kinds.contains(&"null") || schema.get("default") != Some(&Value::Null) {
            return false;
        }
        let Some(Value::Array(values)) = schema.get_mut("enum") else {
            return false;
        };
        if values.contains(&Value::Null) {
            return false;
        }
        values.push(Value::Null);
        self.course.note(format_args!("added `null` to `enum`"));
        true
    }

    /// References lead to a schema in this one, or go.
    fn references(&mut self, schema: &mut Object) -> bool {
        let mut is_wider = false;
        for keyword in REFERENCES {
            let Some(Value::String(reference)) = schema.get(keyword) else {
                continue;
            };
            let reference = reference.clone();
            let is_anchor = reference.starts_with('#') && !reference.starts_with("#/");
            if let Some(target) = pointer::target(self.root, &reference) {
                is_wider |= self.course.leads_to_wider(&target);
            } else if keyword != "$ref" && is_anchor {
                // It is found as the schema is read.
            } else if reference.starts_with('#') {
                schema.shift_remove(keyword);
                let reference = words::shortened(&reference);
                words::tell(
                    schema,
                    &[format!("Refers to `{reference}`, which is not there.")],
                );
                let what = format_args!("left `{keyword}` out, as `{reference}` is not there");
                self.course.note(what);
                is_wider = true;
            } else {
                schema.shift_remove(keyword);
                let reference = words::shortened(&reference);
                let what = format_args!("left `{keyword}` out, as `{reference}` is elsewhere");
                self.course.note(what);
                is_wider = true;
            }
        }
        is_wider
    }
}

/// Takes names out of `required` that `properties` lacks, unless the schema knows them from elsewhere.
pub(super) fn unknown_names(pass: &mut impl Pass, schema: &mut Object) -> bool {
    let knows_more = [
        "$dynamicRef",
        "$recursiveRef",
        "$ref",
        "allOf",
        "anyOf",
        "dependencies",
        "dependentSchemas",
        "if",
        "oneOf",
        "patternProperties",
    ];
    if knows_more.iter().any(|it| schema.contains_key(*it)) {
        return false;
    }
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return false;
    };
    let Some(Value::Array(required)) = schema.get("required") else {
        return false;
    };
    let is_known = |it: &Value| it.as_str().is_some_and(|it| properties.contains_key(it));
    let (known, unknown): (Vec<Value>, Vec<Value>) = required.iter().cloned().partition(is_known);
    if unknown.is_empty() {
        return false;
    }
    if known.is_empty() {
        schema.shift_remove("required");
    } else {
        schema.insert("required".to_owned(), known.into());
    }
    let names: Vec<String> = unknown
        .iter()
        .map(|it| format!("`{}`", words::text(it)))
        .collect();
    let names = names.join(", ");
    let what = format_args!("no longer requires {names}, which `properties` lacks");
    pass.course().note(what);
    true
}
