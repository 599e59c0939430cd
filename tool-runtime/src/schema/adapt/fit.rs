//! A schema without what one reader rejects: each place goes through the same rules in one order.

use super::{
    Dialect, Object, keyword, merge, pointer, repair, size, walk,
    walk::{Course, Notes, Part, Pass, Place},
    words,
};
use serde_json::{Value, json};

mod kinds;

/// The most JSON that is written several times over, in bytes.
const LARGEST: usize = 64 << 10;

/// Takes out what a reader rejects.
pub(super) fn fit(schema: &Value, dialect: &Dialect, notes: &mut Notes) -> Value {
    walk::walk(schema, notes, |course| Fitting {
        dialect,
        root: schema,
        left: LARGEST,
        course,
    })
}

struct Fitting<'a> {
    dialect: &'a Dialect,
    root: &'a Value,
    /// What may still be written several times over.
    left: usize,
    course: Course,
}

/// What a place loses.
#[derive(Default)]
struct Lost {
    sentences: Vec<String>,
    is_wider: bool,
}

impl Pass for Fitting<'_> {
    fn course(&mut self) -> &mut Course {
        &mut self.course
    }

    fn node(&mut self, schema: Value, place: Place) -> Part {
        let mut schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(flag) if !self.dialect.booleans => match self.flag(flag) {
                Ok(schema) => schema,
                Err(part) => return part,
            },
            other => return Part::new(other, false),
        };
        let mut lost = Lost::default();
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let target = pointer::target(self.root, reference);
            lost.is_wider = target.is_some_and(|it| self.course.leads_to_wider(&it));
        }
        self.all_of(&mut schema, &mut lost);
        self.constant(&mut schema);
        self.bounds(&mut schema, &mut lost);
        let is_optional = self.kinds(&mut schema, place, &mut lost);
        self.values(&mut schema, &mut lost);
        self.one_of(&mut schema, &mut lost);
        self.keywords(&mut schema, &mut lost);
        lost.is_wider |= self.typed(&mut schema);
        if lost.is_wider {
            lost.sentences
                .extend(walk::open_unevaluated(self, &mut schema));
        }
        if self.dialect.takes("description") {
            words::tell(&mut schema, &lost.sentences);
        }
        let mut is_wider = lost.is_wider;
        is_wider |= self.beside_any_of(&mut schema);
        self.items(&mut schema);
        if !self.dialect.beside_any_of && place != Place::Branch {
            is_wider |= repair::unknown_names(self, &mut schema);
        }
        is_wider |= walk::descend(self, &mut schema);
        Part {
            schema: schema.into(),
            is_wider,
            is_optional,
        }
    }
}

impl Fitting<'_> {
    /// `true` and `false` written as objects.
    fn flag(&mut self, flag: bool) -> Result<Object, Part> {
        self.course
            .note(format_args!("wrote `{flag}` as an object"));
        let mut schema = Object::new();
        if flag {
            return Ok(schema);
        }
        if self.dialect.takes("not") {
            schema.insert("not".to_owned(), json!({}));
            return Err(Part::new(schema, false));
        }
        words::tell(&mut schema, &["No value fits.".to_owned()]);
        self.typed(&mut schema);
        self.beside_any_of(&mut schema);
        Err(Part::new(schema, true))
    }

    /// Takes a keyword out, and keeps its rule in words.
    fn lose(&mut self, schema: &mut Object, keyword: &str, lost: &mut Lost) {
        if let Some(value) = schema.get(keyword) {
            lost.sentences.extend(words::words(keyword, value, schema));
            lost.is_wider |= keyword::is_rule(keyword);
            walk::remove(self, schema, &[keyword], "the reader doesn't take it");
        }
    }

    /// Puts the parts of `allOf` into the schema itself.
    fn all_of(&mut self, schema: &mut Object, lost: &mut Lost) {
        if self.dialect.takes("allOf") {
            return;
        }
        for _ in 0..super::ROUNDS {
            let Some(Value::Array(parts)) = schema.shift_remove("allOf") else {
                break;
            };
            self.course
                .note(format_args!("wrote `allOf` as one schema"));
            for part in parts {
                match part {
                    Value::Object(part) => {
                        let merged = merge::merge(schema, part);
                        lost.is_wider |= merged.is_wider;
                        lost.sentences.extend(merged.sentences);
                    }
                    Value::Bool(false) => {
                        lost.is_wider = true;
                        lost.sentences.push("No value fits.".to_owned());
                    }
                    _ => {}
                }
            }
        }
        self.lose(schema, "allOf", lost);
    }

    fn constant(&mut self, schema: &mut Object) {
        if self.dialect.takes("const") || !self.dialect.takes("enum") {
            return;
        }
        let Some(value) = schema.get("const") else {
            return;
        };
        let is_listed = match schema.get("enum") {
            Some(Value::Array(values)) => values.contains(value),
            Some(_) => false,
            None => true,
        };
        if is_listed {
            let values = json!([value]);
            walk::rename(schema, "const", "enum", values);
            self.course.note(format_args!("wrote `const` as `enum`"));
        }
    }

    /// Puts exclusive bounds into the others.
    fn bounds(&mut self, schema: &mut Object, lost: &mut Lost) {
        let is_whole = schema.get("type").is_some_and(|it| it == "integer");
        for (exclusive, bound, step) in [
            ("exclusiveMinimum", "minimum", 1),
            ("exclusiveMaximum", "maximum", -1),
        ] {
            if self.dialect.takes(exclusive) || !self.dialect.takes(bound) {
                continue;
            }
            let Some(value) = schema.get(exclusive).cloned().filter(Value::is_number) else {
                continue;
            };
            let next = is_whole.then(|| further(&value, step)).flatten();
            if next.is_none() {
                lost.sentences
                    .extend(words::words(exclusive, &value, schema));
                lost.is_wider = true;
            }
            let value = next.unwrap_or(value);
            let own = schema.get(bound);
            let is_stricter = own.is_none_or(|own| {
                let (own, new) = (own.as_f64(), value.as_f64());
                own.zip(new)
                    .is_none_or(|(own, new)| if step > 0 { new > own } else { new < own })
            });
            if is_stricter {
                walk::rename(schema, exclusive, bound, value);
            }
            schema.shift_remove(exclusive);
            self.course
                .note(format_args!("wrote `{exclusive}` as `{bound}`"));
        }
    }

    /// Some readers have lists of texts only.
    fn values(&mut self, schema: &mut Object, lost: &mut Lost) {
        let Some(Value::Array(values)) = schema.get("enum").filter(|_| !self.dialect.any_enum)
        else {
            return;
        };
        let are_texts = values
            .iter()
            .all(|it| it.as_str().is_some_and(|it| !it.is_empty()));
        match schema.get("type") {
            None if are_texts && !values.is_empty() => {
                schema.insert("type".to_owned(), "string".into());
                self.course
                    .note(format_args!("added `\"type\": \"string\"`"));
            }
            Some(kind) if are_texts && !values.is_empty() && kind == "string" => {}
            _ => self.lose(schema, "enum", lost),
        }
    }

    fn one_of(&mut self, schema: &mut Object, lost: &mut Lost) {
        let is_one_of = schema.contains_key("oneOf") && !self.dialect.takes("oneOf");
        if is_one_of && self.dialect.takes("anyOf") {
            lost.sentences.extend(walk::loosen_one_of(self, schema));
            lost.is_wider = true;
        }
    }

    /// Takes out the keywords, and the values of `format`, that the reader doesn't know.
    fn keywords(&mut self, schema: &mut Object, lost: &mut Lost) {
        let has_tuple = schema.get("items").is_some_and(Value::is_array);
        let format = schema.get("format").and_then(Value::as_str);
        let mut refused: Vec<String> = Vec::new();
        for keyword in schema.keys() {
            let is_refused = match keyword.as_str() {
                "items" if has_tuple => !self.dialect.tuples,
                "format" => format.is_some_and(|it| !self.dialect.formats.has(it)),
                _ => false,
            };
            if is_refused || !self.dialect.takes(keyword) {
                refused.push(keyword.clone());
            }
        }
        let lacks = |keyword: &str| refused.iter().any(|it| it == keyword);
        // What only makes sense with what goes.
        let mut followers: Vec<&str> = Vec::new();
        if lacks("properties") || lacks("patternProperties") {
            followers.extend(["additionalProperties", "unevaluatedProperties"]);
        }
        let mut items = None;
        if lacks("prefixItems") || lacks("items") {
            items = any_item(schema).filter(|_| self.dialect.takes("anyOf"));
            followers.extend(["items", "additionalItems", "unevaluatedItems"]);
        }
        for followed in [
            ["contains", "minContains", "maxContains"],
            ["if", "then", "else"],
        ] {
            let [first, ..] = followed;
            if followed.iter().any(|it| lacks(it)) {
                self.lose(schema, first, lost);
                walk::remove(self, schema, &followed[1..], "the reader doesn't take it");
            }
        }
        for keyword in &refused {
            self.lose(schema, keyword, lost);
        }
        for keyword in followers {
            self.lose(schema, keyword, lost);
        }
        if let Some(items) = items.filter(|_| self.dialect.takes("items")) {
            schema.insert("items".to_owned(), items);
            self.course
                .note(format_args!("wrote one schema of all items"));
        }
    }

    /// Puts what stands beside `anyOf` into its branches, and the description into the first.
    fn beside_any_of(&mut self, schema: &mut Object) -> bool {
        let has_branches = schema.get("anyOf").is_some_and(Value::is_array);
        if self.dialect.beside_any_of || schema.len() < 2 || !has_branches {
            return false;
        }
        let Some(Value::Array(mut branches)) = schema.shift_remove("anyOf") else {
            return false;
        };
        let beside = std::mem::take(schema);
        let size: usize = beside
            .values()
            .filter_map(|it| size::within(it, LARGEST))
            .sum();
        let Some(left) = self.left.checked_sub(size.saturating_mul(branches.len())) else {
            *schema = beside;
            let told = words::words("anyOf", &branches.into(), schema);
            words::tell(schema, &told.into_iter().collect::<Vec<_>>());
            self.course
                .note(format_args!("left `anyOf` out, as it is too large"));
            self.typed(schema);
            return true;
        };
        self.left = left;
        let kind = beside
            .get("type")
            .and_then(Value::as_str)
            .map(str::to_owned);
        if let Some(kind) = kind {
            let fits = |it: &Value| {
                let own = it.get("type").and_then(Value::as_str);
                own.is_none_or(|own| own == kind || own == "integer" && kind == "number")
            };
            if branches.iter().any(fits) {
                branches.retain(fits);
            }
        }
        let mut is_wider = false;
        for (index, branch) in branches.iter_mut().enumerate() {
            if branch == &Value::Bool(true) {
                *branch = json!({});
            }
            let Value::Object(branch) = branch else {
                continue;
            };
            let mut added = beside.clone();
            if let Some(Value::String(description)) = added.shift_remove("description")
                && index == 0
            {
                let own = branch.shift_remove("description");
                branch.insert("description".to_owned(), description.into());
                if let Some(Value::String(own)) = own {
                    words::tell(branch, &[own]);
                }
            }
            let own = branch
                .get("type")
                .and_then(Value::as_str)
                .map(str::to_owned);
            added.retain(|keyword, _| match (keyword::kind(keyword), &own) {
                (Some("number"), Some(own)) => own == "integer" || own == "number",
                (Some(kind), Some(own)) => own == kind,
                _ => true,
            });
            let merged = merge::merge(branch, added);
            is_wider |= merged.is_wider;
            words::tell(branch, &merged.sentences);
        }
        self.course
            .note(format_args!("put what was beside `anyOf` into it"));
        schema.insert("anyOf".to_owned(), branches.into());
        is_wider
    }

    fn items(&mut self, schema: &mut Object) {
        let kinds = schema.get("type").map(merge::kinds).unwrap_or_default();
        let is_bare = kinds.contains(&"array") && !schema.contains_key("items");
        if is_bare && !self.dialect.bare_arrays {
            schema.insert("items".to_owned(), json!({}));
            self.course.note(format_args!("added `items`"));
        }
    }
}

/// What any item of a tuple is, if that can be said.
fn any_item(schema: &Object) -> Option<Value> {
    const MOST: usize = 8;
    let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
        (Some(Value::Array(first)), rest) => (first, rest),
        (None, Some(Value::Array(first))) => (first, schema.get("additionalItems")),
        _ => return None,
    };
    let rest = rest.filter(|it| *it != true)?;
    let mut all: Vec<&Value> = Vec::new();
    for item in first.iter().chain([rest]) {
        if item != false && !all.contains(&item) {
            all.push(item);
        }
        if all.len() > MOST {
            return None;
        }
    }
    match all.as_slice() {
        [only] => Some((*only).clone()),
        many => Some(json!({ "anyOf": many })),
    }
}

/// The next whole number that an exclusive bound allows.
fn further(bound: &Value, step: i64) -> Option<Value> {
    if let Some(whole) = bound.as_i64() {
        return whole.checked_add(step).map(Value::from);
    }
    let bound = bound.as_f64().filter(|it| it.abs() < 9e15)?;
    let next = if step > 0 {
        bound.floor() + 1.0
    } else {
        bound.ceil() - 1.0
    };
    format!("{next:.0}").parse::<i64>().ok().map(Value::from)
}
