//! Local references: what they point to, by RFC 6901, and where that is after a move.

use super::{
    keyword::{self, Shape},
    walk::Notes,
};
use serde_json::Value;
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

/// Pointers longer than this are not followed, in bytes: a small schema could else write large ones many times.
const LONGEST: usize = 1_000;

/// The keywords that refer to another schema.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// What a value is, seen from the root of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Schema,
    Schemas,
    /// In a keyword that isn't of JSON Schema, such as `components`: it may be anything.
    Other,
}

impl Place {
    /// What is at `token` of a value that is this; `None` where there are no schemas.
    fn inner(self, token: &str, value: &Value) -> Option<Self> {
        match self {
            Self::Schemas => Some(Self::Schema),
            Self::Other if is_data(token) => None,
            Self::Other => Some(Self::Other),
            Self::Schema => match keyword::shape(token) {
                None => Some(Self::Other),
                Some(Shape::Schema) => Some(Self::Schema),
                Some(Shape::SchemaOrList) if !value.is_array() => Some(Self::Schema),
                Some(Shape::SchemaOrList | Shape::List) if value.is_array() => Some(Self::Schemas),
                Some(Shape::Named | Shape::Dependencies) if value.is_object() => {
                    Some(Self::Schemas)
                }
                Some(_) => None,
            },
        }
    }
}

fn is_data(token: &str) -> bool {
    matches!(token, "const" | "default" | "enum" | "examples" | "example")
}

/// Returns the pointer that a local reference stands for, written in one way, if a schema is there.
pub(super) fn target(root: &Value, reference: &str) -> Option<String> {
    let (pointer, _) = resolved(root, reference)?;
    Some(pointer)
}

/// Returns what a local reference points to as well.
pub(super) fn resolved<'v>(root: &'v Value, reference: &str) -> Option<(String, &'v Value)> {
    let tokens = tokens(reference)?;
    let mut value = root;
    let mut place = Place::Schema;
    let mut pointer = String::new();
    for token in tokens {
        value = match value {
            Value::Object(object) => object.get(&token)?,
            Value::Array(items) => items.get(index(&token)?)?,
            _ => return None,
        };
        place = place.inner(&token, value)?;
        push(&mut pointer, &token);
    }
    (keyword::is_schema(value) && place != Place::Schemas).then_some((pointer, value))
}

/// Reads the pointer of a local reference: percent-decoded first, then `~1` and `~0`.
pub(super) fn tokens(reference: &str) -> Option<Vec<String>> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    if pointer.len() > LONGEST {
        return None;
    }
    let decoded = percent_decoded(pointer)?;
    let tokens = decoded.strip_prefix('/')?.split('/');
    Some(
        tokens
            .map(|it| it.replace("~1", "/").replace("~0", "~"))
            .collect(),
    )
}

fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(text.into());
    }
    let digit = |it: Option<&u8>| it.and_then(|it| char::from(*it).to_digit(16));
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        let pair = digit(bytes.get(index + 1)).zip(digit(bytes.get(index + 2)));
        match pair.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(meant) if *byte == b'%' => {
                decoded.push(meant);
                index += 3;
            }
            _ => {
                decoded.push(*byte);
                index += 1;
            }
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

fn index(token: &str) -> Option<usize> {
    let is_plain = token == "0" || !token.starts_with(['0', '+']);
    is_plain.then(|| token.parse().ok()).flatten()
}

/// Goes one step further.
pub(super) fn push(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
}

/// What the references of a schema point to.
#[derive(Debug, Default)]
pub(super) struct References {
    targets: BTreeSet<String>,
    /// Those of references that are about the same value as another schema.
    shared: BTreeSet<String>,
    count: usize,
    is_exotic: bool,
}

impl References {
    pub(super) fn of(root: &Value) -> Self {
        let mut references = Self::default();
        each(root, Place::Schema, false, &mut |it| {
            references.count += 1;
            references.is_exotic |= !(it.text.starts_with("#/") || it.text == "#");
            if it.keyword == "$ref"
                && let Some(target) = target(root, it.text)
            {
                if it.is_shared {
                    references.shared.insert(target.clone());
                }
                references.targets.insert(target);
            }
        });
        references
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn has(&self, pointer: &str) -> bool {
        self.targets.contains(pointer)
    }

    /// Whether what is at a place is also said of a value of which another schema says something.
    pub(super) fn share(&self, pointer: &str) -> bool {
        self.shared.contains(pointer)
    }

    pub(super) fn into_targets(self) -> BTreeSet<String> {
        self.targets
    }

    /// Whether one points at or below a place.
    pub(super) fn reach(&self, pointer: &str) -> bool {
        let from = self.targets.range(pointer.to_owned()..);
        from.take_while(|it| it.starts_with(pointer))
            .any(|it| matches!(it.as_bytes().get(pointer.len()), None | Some(b'/')))
    }

    /// Whether there is still a schema wherever the references that are left point to.
    pub(super) fn all_found_in(&self, schema: &super::Object) -> bool {
        if self.targets.is_empty() {
            return true;
        }
        let root = Value::Object(schema.clone());
        let mut is_found = true;
        each(&root, Place::Schema, false, &mut |it| {
            let was = tokens(it.text).map(|tokens| {
                let mut pointer = String::new();
                for token in &tokens {
                    push(&mut pointer, token);
                }
                pointer
            });
            let was_found = was.is_some_and(|it| self.has(&it));
            is_found &= !was_found || target(&root, it.text).is_some();
        });
        is_found
    }
}

struct Reference<'a> {
    keyword: &'a str,
    text: &'a str,
    /// It stands in a branch, or beside rules.
    is_shared: bool,
}

fn each(value: &Value, place: Place, is_branch: bool, visit: &mut impl FnMut(Reference<'_>)) {
    match value {
        Value::Object(object) => {
            let is_rule = |it: &String| keyword::is_rule(it) && !REFERENCES.contains(&it.as_str());
            for (token, value) in object {
                match value {
                    Value::String(text)
                        if place != Place::Schemas && REFERENCES.contains(&token.as_str()) =>
                    {
                        visit(Reference {
                            keyword: token,
                            text,
                            is_shared: is_branch || object.keys().any(is_rule),
                        });
                    }
                    value => {
                        if let Some(inner) = place.inner(token, value) {
                            let is_branch = match place {
                                Place::Schema => keyword::is_branch(token),
                                Place::Schemas => is_branch,
                                Place::Other => false,
                            };
                            each(value, inner, is_branch, visit);
                        }
                    }
                }
            }
        }
        Value::Array(items) if place != Place::Schema => {
            let inner = if place == Place::Schemas {
                Place::Schema
            } else {
                place
            };
            for value in items {
                each(value, inner, is_branch, visit);
            }
        }
        _ => {}
    }
}

/// Rewrites all references of a schema that is moved.
pub(super) fn rewrite(schema: &mut Value, change: &mut impl FnMut(&str) -> Option<String>) {
    rewrite_in(
        schema,
        Place::Schema,
        &mut String::new(),
        &mut |_, object| {
            for keyword in REFERENCES {
                if let Some(Value::String(reference)) = object.get_mut(keyword)
                    && let Some(changed) = change(reference)
                {
                    *reference = changed;
                }
            }
        },
    );
}

/// Visits every object that may be a schema, with its pointer.
fn rewrite_in(
    value: &mut Value,
    place: Place,
    path: &mut String,
    visit: &mut impl FnMut(&str, &mut super::Object),
) {
    let length = path.len();
    match value {
        Value::Object(object) => {
            if place != Place::Schemas {
                visit(path, object);
            }
            for (token, value) in object {
                if let Some(inner) = place.inner(token, value) {
                    push(path, token);
                    rewrite_in(value, inner, path, visit);
                    path.truncate(length);
                }
            }
        }
        Value::Array(items) if place != Place::Schema => {
            let inner = if place == Place::Schemas {
                Place::Schema
            } else {
                place
            };
            for (index, value) in items.iter_mut().enumerate() {
                push(path, &index.to_string());
                rewrite_in(value, inner, path, visit);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Writes every reference to an anchor, or to a schema by its `$id`, as a pointer from the root. An `$id` further in,
/// from which pointers would start anew, goes. So there is one way to refer, and readers who know no other lose nothing.
pub(super) fn settle(root: &mut Value, notes: &mut Notes) {
    let references = References::of(root);
    if references.is_empty() {
        return;
    }
    let mut anchors = BTreeMap::new();
    let mut resources = BTreeMap::new();
    rewrite_in(
        root,
        Place::Schema,
        &mut String::new(),
        &mut |path, object| {
            if path.len() > LONGEST {
                return;
            }
            for keyword in ["$anchor", "$dynamicAnchor", "$id"] {
                match object.get(keyword) {
                    Some(Value::String(id)) if keyword != "$id" => {
                        anchors.entry(id.clone()).or_insert_with(|| path.to_owned());
                    }
                    Some(Value::String(id)) => {
                        let (map, name) = match id.strip_prefix('#') {
                            Some(anchor) => (&mut anchors, anchor),
                            None => (&mut resources, id.trim_end_matches('#')),
                        };
                        map.entry(name.to_owned())
                            .or_insert_with(|| path.to_owned());
                    }
                    _ => {}
                }
            }
        },
    );
    let has_inner = resources.values().any(|it| !it.is_empty());
    if !references.is_exotic && !has_inner {
        return;
    }
    // Bases in the order of the walk: the innermost that encloses a place is the last that begins it.
    let mut bases: Vec<String> = vec![String::new()];
    rewrite_in(
        root,
        Place::Schema,
        &mut String::new(),
        &mut |path, object| {
            let encloses = |base: &String| {
                let rest = path.strip_prefix(base.as_str());
                rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
            };
            while bases.last().is_some_and(|it| !encloses(it)) {
                bases.pop();
            }
            if let Some(Value::String(id)) = object.get("$id")
                && !path.is_empty()
            {
                if !id.starts_with('#') && path.len() <= LONGEST {
                    bases.push(path.to_owned());
                }
                object.shift_remove("$id");
                notes.add(path, format_args!("left `$id` out"));
            }
            let Some(Value::String(reference)) = object.get_mut("$ref") else {
                return;
            };
            let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
            let base = match uri {
                "" => bases.last(),
                uri => resources.get(uri),
            };
            let meant = base.and_then(|base| match fragment {
                "" => Some(format!("#{}", in_fragment(base))),
                pointer if pointer.starts_with('/') => {
                    Some(format!("#{}{pointer}", in_fragment(base)))
                }
                anchor => anchors
                    .get(anchor)
                    .map(|it| format!("#{}", in_fragment(it))),
            });
            if let Some(meant) = meant.filter(|it| it != reference && it.len() <= LONGEST) {
                notes.add(path, format_args!("wrote `$ref` as a pointer"));
                *reference = meant;
            }
        },
    );
}

/// A pointer as it stands in a reference.
fn in_fragment(pointer: &str) -> Cow<'_, str> {
    if pointer.contains('%') {
        pointer.replace('%', "%25").into()
    } else {
        pointer.into()
    }
}
