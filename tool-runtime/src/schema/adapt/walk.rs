//! A walk through the schemas of a schema, which keeps the sense of the whole when one of them becomes wider.

use super::{
    Object,
    keyword::{self, Shape},
    pointer::{self, References},
    words,
};
use serde_json::Value;
use std::{collections::BTreeSet, fmt};

/// The most notes that are kept; the rest is counted.
const MOST: usize = 100;

/// The most schemas within one another.
const DEEPEST: usize = 128;

/// What was changed, a sentence each.
#[derive(Debug, Default)]
pub(super) struct Notes {
    list: Vec<String>,
    more: usize,
}

impl Notes {
    pub(super) fn add(&mut self, path: &str, what: fmt::Arguments<'_>) {
        if self.list.len() == MOST {
            self.more += 1;
            return;
        }
        let what = what.to_string();
        let (path, what) = (words::shortened(path), words::shortened(&what));
        self.list.push(format!("`#{path}`: {what}."));
    }

    pub(super) fn extend(&mut self, other: Self) {
        let room = MOST - self.list.len();
        self.more += other.more + other.list.len().saturating_sub(room);
        self.list.extend(other.list.into_iter().take(room));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn into_list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.list.push(format!("And {} more changes.", self.more));
        }
        self.list
    }
}

/// A schema that was gone through.
#[derive(Debug)]
pub(super) struct Part {
    pub schema: Value,
    /// It accepts more than before.
    pub is_wider: bool,
    /// It accepted `null` before, so that now it must be possible to leave it out.
    pub is_optional: bool,
}

impl Part {
    pub(super) fn new(schema: impl Into<Value>, is_wider: bool) -> Self {
        Self {
            schema: schema.into(),
            is_wider,
            is_optional: false,
        }
    }
}

/// Where a schema stands in the one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In `properties`.
    Property,
    /// Where it is about the same value as the schema around it: in `anyOf`, `not`, `if` and the like.
    Branch,
    Elsewhere,
}

/// How far a walk has come.
#[derive(Debug, Default)]
pub(super) struct Course {
    pub path: String,
    pub notes: Notes,
    pub references: References,
    /// The targets of references that became wider on this walk.
    wider: BTreeSet<String>,
    /// Those that did on the walk before.
    were_wider: BTreeSet<String>,
    depth: usize,
}

impl Course {
    /// Begins at the root of a schema.
    pub(super) fn of(root: &Value) -> Self {
        Self {
            references: References::of(root),
            ..Self::default()
        }
    }

    /// Whether a reference leads to a schema that becomes wider.
    pub(super) fn leads_to_wider(&self, target: &str) -> bool {
        self.were_wider.contains(target)
    }

    pub(super) fn note(&mut self, what: fmt::Arguments<'_>) {
        self.notes.add(&self.path, what);
    }
}

/// What is done to each schema of a schema.
pub(super) trait Pass {
    fn course(&mut self) -> &mut Course;
    fn node(&mut self, schema: Value, place: Place) -> Part;
}

/// Goes through the whole of a schema: again while the target of another reference turns out to become wider, since a
/// reference to it under `not` and the like is then not what it was.
pub(super) fn walk<P: Pass>(root: &Value, notes: &mut Notes, pass: impl Fn(Course) -> P) -> Value {
    /// After so many walks all targets are taken for wider.
    const WALKS: usize = 4;
    let mut were_wider = BTreeSet::new();
    for count in 1.. {
        let mut pass = pass(Course {
            were_wider: were_wider.clone(),
            ..Course::of(root)
        });
        let part = visit(&mut pass, root.clone(), Place::Elsewhere);
        let course = std::mem::take(pass.course());
        if course.wider.is_subset(&were_wider) {
            notes.extend(course.notes);
            return part.schema;
        }
        were_wider.extend(course.wider);
        if count == WALKS {
            were_wider.extend(course.references.into_targets());
        }
    }
    root.clone()
}

/// Goes through one schema, and all in it.
pub(super) fn visit(pass: &mut impl Pass, schema: Value, place: Place) -> Part {
    let course = pass.course();
    if course.depth == DEEPEST {
        course.note(format_args!("left out what is too deep"));
        return Part::new(Object::new(), true);
    }
    course.depth += 1;
    let part = pass.node(schema, place);
    let course = pass.course();
    course.depth -= 1;
    if part.is_wider && course.references.has(&course.path) {
        course.wider.insert(course.path.clone());
    }
    part
}

/// Goes through the schemas in a schema. Says whether it accepts more by that. Where a wider part would make the whole
/// narrower, that part goes, and is told in words.
pub(super) fn descend(pass: &mut impl Pass, schema: &mut Object) -> bool {
    // What may have to go is told as it was.
    let told: Vec<(&str, Option<String>)> = ["not", "if", "contains"]
        .iter()
        .filter_map(|it| Some((*it, words::words(it, schema.get(*it)?, schema))))
        .collect();
    let mut wider: Vec<String> = Vec::new();
    let mut optional: Vec<String> = Vec::new();
    for (keyword, value) in schema.iter_mut() {
        let length = enter(pass, keyword);
        let is_wider = match keyword::shape(keyword) {
            Some(Shape::Schema) if value.is_boolean() && is_flag(keyword) => false,
            Some(Shape::Schema) => one(pass, value, place(keyword)),
            Some(Shape::SchemaOrList) if !value.is_array() => one(pass, value, Place::Elsewhere),
            Some(Shape::SchemaOrList | Shape::List) => all(pass, value, place(keyword)),
            Some(shape @ (Shape::Named | Shape::Dependencies)) => {
                let has_lists = shape == Shape::Dependencies;
                named(pass, value, place(keyword), has_lists, &mut optional)
            }
            Some(_) => false,
            None => {
                referred(pass, value);
                false
            }
        };
        pass.course().path.truncate(length);
        if is_wider && keyword::is_rule(keyword) {
            wider.push(keyword.clone());
        }
    }
    let mut sentences = Vec::new();
    for keyword in &wider {
        let dropped: &[&str] = match keyword.as_str() {
            "not" => &["not"],
            "if" => &["if", "then", "else"],
            "contains" if schema.contains_key("maxContains") => {
                &["contains", "minContains", "maxContains"]
            }
            "oneOf" => {
                sentences.extend(loosen_one_of(pass, schema));
                continue;
            }
            _ => continue,
        };
        let as_it_was = told.iter().find(|it| it.0 == keyword);
        sentences.extend(as_it_was.and_then(|it| it.1.clone()));
        remove(pass, schema, dropped, "it can't be said in full");
    }
    if !optional.is_empty() {
        release(pass, schema, &optional);
    }
    let is_wider = !wider.is_empty();
    if is_wider {
        sentences.extend(open_unevaluated(pass, schema));
    }
    words::tell(schema, &sentences);
    is_wider
}

/// Takes keywords out.
pub(super) fn remove(pass: &mut impl Pass, schema: &mut Object, keywords: &[&str], why: &str) {
    for keyword in keywords {
        if schema.shift_remove(*keyword).is_some() {
            pass.course()
                .note(format_args!("left `{keyword}` out, as {why}"));
        }
    }
}

/// Puts another keyword in the place of one.
pub(super) fn rename(schema: &mut Object, from: &str, to: &str, value: Value) {
    if from != to {
        schema.shift_remove(to);
    }
    let index = schema.keys().position(|it| it == from);
    schema.shift_remove(from);
    let index = index.unwrap_or(schema.len());
    schema.shift_insert(index, to.to_owned(), value);
}

/// Makes `anyOf` of `oneOf`: wider branches may fit together.
pub(super) fn loosen_one_of(pass: &mut impl Pass, schema: &mut Object) -> Option<String> {
    let branches = schema.get("oneOf")?;
    if schema.contains_key("anyOf") {
        let told = words::words("oneOf", branches, schema);
        remove(pass, schema, &["oneOf"], "it can't be said in full");
        return told;
    }
    let branches = branches.clone();
    rename(schema, "oneOf", "anyOf", branches);
    pass.course().note(format_args!("wrote `oneOf` as `anyOf`"));
    Some("Exactly one of the alternatives.".to_owned())
}

/// What counts as evaluated is not what it was, once a schema is wider.
pub(super) fn open_unevaluated(pass: &mut impl Pass, schema: &mut Object) -> Vec<String> {
    let mut sentences = Vec::new();
    for keyword in ["unevaluatedItems", "unevaluatedProperties"] {
        if let Some(value) = schema.get(keyword) {
            sentences.extend(words::words(keyword, value, schema));
            remove(pass, schema, &[keyword], "it can't be said in full");
        }
    }
    sentences
}

fn place(keyword: &str) -> Place {
    if keyword == "properties" {
        Place::Property
    } else if keyword::is_branch(keyword) {
        Place::Branch
    } else {
        Place::Elsewhere
    }
}

/// Where `true` and `false` are what every reader knows.
fn is_flag(keyword: &str) -> bool {
    matches!(
        keyword,
        "additionalItems" | "additionalProperties" | "unevaluatedItems" | "unevaluatedProperties"
    )
}

fn enter(pass: &mut impl Pass, token: &str) -> usize {
    let path = &mut pass.course().path;
    let length = path.len();
    pointer::push(path, token);
    length
}

fn one(pass: &mut impl Pass, value: &mut Value, place: Place) -> bool {
    let part = visit(pass, value.take(), place);
    *value = part.schema;
    part.is_wider
}

fn all(pass: &mut impl Pass, value: &mut Value, place: Place) -> bool {
    let mut is_wider = false;
    for (index, item) in value.as_array_mut().into_iter().flatten().enumerate() {
        let length = enter(pass, &index.to_string());
        is_wider |= one(pass, item, place);
        pass.course().path.truncate(length);
    }
    is_wider
}

fn named(
    pass: &mut impl Pass,
    value: &mut Value,
    place: Place,
    has_lists: bool,
    optional: &mut Vec<String>,
) -> bool {
    let mut is_wider = false;
    for (name, value) in value.as_object_mut().into_iter().flatten() {
        if has_lists && value.is_array() {
            continue;
        }
        let length = enter(pass, name);
        let part = visit(pass, value.take(), place);
        *value = part.schema;
        is_wider |= part.is_wider;
        if part.is_optional {
            optional.push(name.clone());
        }
        pass.course().path.truncate(length);
    }
    is_wider
}

/// Goes through the schemas in a keyword of others that references point to, and leaves all else as it is.
fn referred(pass: &mut impl Pass, value: &mut Value) {
    let course = pass.course();
    if !course.references.reach(&course.path) {
        return;
    }
    if course.references.has(&course.path) {
        one(pass, value, Place::Elsewhere);
        return;
    }
    match value {
        Value::Object(object) => {
            for (token, value) in object {
                let length = enter(pass, token);
                referred(pass, value);
                pass.course().path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter_mut().enumerate() {
                let length = enter(pass, &index.to_string());
                referred(pass, value);
                pass.course().path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Makes properties optional.
fn release(pass: &mut impl Pass, schema: &mut Object, names: &[String]) {
    let Some(Value::Array(required)) = schema.get_mut("required") else {
        return;
    };
    let count = required.len();
    required.retain(|it| !names.iter().any(|name| it == name));
    if required.len() == count {
        return;
    }
    if required.is_empty() {
        schema.shift_remove("required");
    }
    let names: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
    let names = names.join(", ");
    pass.course()
        .note(format_args!("no longer requires {names}"));
}
