//! Schemas of structured output: an object, or wrapped in one.

use super::{
    Adapted, Dialect, Object, adapt, empty, keyword, merge, outline, pointer, repair, size,
    walk::Notes,
};
use serde_json::{Value, json};

/// The property that output is put under if it is no object.
const RESULT: &str = "result";

/// A schema of structured output for a reader.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptedOutput {
    /// The schema, as it stands in `outputSchema`.
    pub schema: Object,
    /// Whether structured output must be sent as `{"result": …}`, as the schema says.
    pub wraps: bool,
    /// A sentence per change, as of [`Adapted`].
    pub notes: Vec<String>,
}

/// Makes a schema of structured output, which a server of others sent, right for every reader, then for one.
///
/// A schema without a word about types is that of an object, as in every revision before 2026-07-28. One of any other
/// type is wrapped for a reader who takes objects only.
pub fn adapt_output(schema: &Value, dialect: &Dialect) -> AdaptedOutput {
    let mut notes = Notes::default();
    let whole = match size::check(schema) {
        Ok(()) => match repair::mend(schema.clone(), &mut notes) {
            Value::Object(schema) => schema,
            _ => Object::new(),
        },
        Err(excess) => {
            let Adapted { schema, notes } = outline(schema.get("description"), &excess);
            return AdaptedOutput {
                schema,
                wraps: false,
                notes,
            };
        }
    };
    let mut wraps = false;
    let schema = if is_object(&whole) {
        object(whole, &mut notes)
    } else if dialect.any_output {
        whole
    } else {
        wraps = true;
        notes.add(
            "",
            format_args!("wrapped it as `{RESULT}`, as it is no object"),
        );
        wrapped(whole)
    };
    let Adapted {
        schema,
        notes: of_reader,
    } = adapt(&schema, dialect);
    let mut notes = notes.into_list();
    notes.extend(of_reader);
    AdaptedOutput {
        schema,
        wraps,
        notes,
    }
}

fn object(mut schema: Object, notes: &mut Notes) -> Object {
    if !schema.contains_key("type") {
        schema.shift_insert(0, "type".to_owned(), "object".into());
        notes.add("", format_args!("added `\"type\": \"object\"`"));
    }
    if schema.len() == 1 { empty() } else { schema }
}

/// Whether only objects fit, or whether nothing is said of it.
fn is_object(schema: &Object) -> bool {
    let root = Value::Object(schema.clone());
    is_object_in(&root, &root, 0)
}

fn is_object_in(schema: &Value, root: &Value, level: usize) -> bool {
    let Some(schema) = schema.as_object().filter(|_| level < 16) else {
        return false;
    };
    if let Some(kinds) = schema.get("type") {
        return merge::kinds(kinds) == ["object"];
    }
    if let Some(Value::String(reference)) = schema.get("$ref") {
        let target = pointer::resolved(root, reference);
        return target.is_some_and(|(_, it)| is_object_in(it, root, level + 1));
    }
    let mut of_others = false;
    for keyword in ["oneOf", "anyOf"] {
        if let Some(Value::Array(branches)) = schema.get(keyword) {
            return branches.iter().all(|it| is_object_in(it, root, level + 1));
        }
    }
    for keyword in schema.keys() {
        match keyword::kind(keyword) {
            Some("object") => return true,
            Some(_) => of_others = true,
            None => of_others |= matches!(keyword.as_str(), "const" | "enum"),
        }
    }
    !of_others
}

/// Puts a schema under `result` of an object, with all that it refers to.
pub(in crate::schema) fn wrapped(schema: Object) -> Object {
    // What belongs to the root stays there, so references to it stay as they are.
    let stays = ["$schema", "$id", "$defs", "definitions"];
    let mut inner = Value::Object(schema);
    pointer::rewrite(&mut inner, &mut |reference| {
        let tokens = pointer::tokens(reference)?;
        let is_kept = tokens
            .first()
            .is_some_and(|it| stays.contains(&it.as_str()));
        let rest = reference.strip_prefix('#')?;
        (!is_kept).then(|| format!("#/properties/{RESULT}{rest}"))
    });
    let mut outer = Object::new();
    outer.insert("type".to_owned(), "object".into());
    outer.insert("properties".to_owned(), json!({}));
    outer.insert("required".to_owned(), json!([RESULT]));
    if let Value::Object(inner) = &mut inner {
        for keyword in stays {
            if let Some(value) = inner.shift_remove(keyword) {
                outer.insert(keyword.to_owned(), value);
            }
        }
    }
    outer.insert("properties".to_owned(), json!({ RESULT: inner }));
    outer
}
