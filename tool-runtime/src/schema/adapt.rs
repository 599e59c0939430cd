//! Schemas of others, made right for every reader, and then for one: `repair`, `adapt` and `adapt_output`.

mod dialect;
mod fit;
mod flatten;
mod inline;
mod keyword;
mod merge;
mod output;
mod pointer;
mod repair;
mod size;
mod walk;
mod words;

pub use dialect::{Dialect, Names};
pub use output::{AdaptedOutput, adapt_output};
pub use repair::repair;

pub(super) use output::wrapped;

use super::Object;
use pointer::References;
use serde_json::{Value, json};
use walk::Notes;

/// How often a schema is gone through, at most: what one rule wrote may concern another.
const ROUNDS: usize = 6;

/// A schema for a reader, and what was changed to make it so.
#[derive(Clone, Debug, PartialEq)]
pub struct Adapted {
    /// The schema: an object as it stands in `inputSchema`, at most 1 MiB of JSON and 128 levels deep.
    pub schema: Object,
    /// A sentence per change, for the record, which begins with the JSON pointer of the place: ``"`#/properties/x`: …"``.
    /// Empty if nothing was changed. At most 101 of at most 1,000 characters.
    pub notes: Vec<String>,
}

/// Takes out of a schema what a reader rejects, and only that; what rules are lost by it is told in the `description` of
/// their place.
///
/// What the schema accepts is accepted by the adapted one too, with exceptions which readers force on us:
///
/// - A property that may be `null` may only be left out, for a reader who knows no `null`.
/// - A property of one alternative is of its type there, for a reader who takes no alternatives at the root.
/// - A place with `properties` is an object, one with `items` an array and so on, for a reader who wants types everywhere;
///   and where any value is good, a list of lists is one of texts.
///
/// The arguments of a call are to be checked against the original.
///
/// A schema of which the reader takes everything is returned as it is. An adapted schema is such a schema. The input
/// should have gone through [`repair`] if others wrote it.
pub fn adapt(schema: &Object, dialect: &Dialect) -> Adapted {
    let mut notes = Notes::default();
    if let Err(excess) = size::check_object(schema) {
        return outline(schema.get("description"), &excess);
    }
    let mut schema = schema.clone();
    for _ in 0..ROUNDS {
        let mut of_round = Notes::default();
        schema = round(schema, dialect, &mut of_round);
        if of_round.is_empty() {
            break;
        }
        notes.extend(of_round);
        if let Err(excess) = size::check_object(&schema) {
            return outline(schema.get("description"), &excess);
        }
    }
    Adapted {
        schema,
        notes: notes.into_list(),
    }
}

fn round(schema: Object, dialect: &Dialect, notes: &mut Notes) -> Object {
    let original = Value::Object(schema);
    if !dialect.references {
        return fitted(inline::inline(original, notes), dialect, notes);
    }
    let targets = References::of(&original);
    let mut tried = Notes::default();
    let fitted_in_place = fitted(original.clone(), dialect, &mut tried);
    // A rule may have moved what a reference points to. Then nothing must point there.
    if targets.all_found_in(&fitted_in_place) {
        notes.extend(tried);
        return fitted_in_place;
    }
    fitted(inline::inline(original, notes), dialect, notes)
}

fn fitted(schema: Value, dialect: &Dialect, notes: &mut Notes) -> Object {
    // The root has a type, beside which there must be room for them.
    let schema = if dialect.root_combinators && dialect.beside_any_of {
        schema
    } else {
        flatten::flatten(schema, notes)
    };
    match fit::fit(&schema, dialect, notes) {
        Value::Object(schema) => schema,
        _ => empty(),
    }
}

/// What remains of a schema that can't be handled: any object will do.
fn outline(description: Option<&Value>, excess: &str) -> Adapted {
    let mut schema = empty();
    if let Some(Value::String(text)) = description {
        schema.insert("description".to_owned(), words::shortened(text).into());
    }
    let mut notes = Notes::default();
    notes.add("", format_args!("the schema {excess}; any object is taken"));
    Adapted {
        schema,
        notes: notes.into_list(),
    }
}

fn empty() -> Object {
    let mut schema = Object::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), json!({}));
    schema
}
