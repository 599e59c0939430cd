//! The rules of a schema in words, for the descriptions that the model reads.

use super::Object;
use serde_json::Value;
use std::io;

/// The longest text that is quoted, in bytes.
const QUOTED: usize = 300;

/// Tells in a sentence what a keyword demands; `None` if it demands nothing, or nothing that a model could use.
pub(super) fn words(keyword: &str, value: &Value, schema: &Object) -> Option<String> {
    let json = || quoted(value);
    Some(match keyword {
        "minimum" => format!("At least {}.", json()),
        "maximum" => format!("At most {}.", json()),
        "exclusiveMinimum" => format!("At least {} (exclusive).", json()),
        "exclusiveMaximum" => format!("At most {} (exclusive).", json()),
        "multipleOf" => format!("A multiple of {}.", json()),
        "minLength" => format!("At least {}.", count(value, "character")),
        "maxLength" => format!("At most {}.", count(value, "character")),
        "pattern" => format!("Matches {}.", text(value)),
        "format" => format!("Has the form {}.", text(value)),
        "contentEncoding" => format!("Encoded in {}.", text(value)),
        "contentMediaType" => format!("Holds {}.", text(value)),
        "minItems" => format!("At least {}.", count(value, "item")),
        "maxItems" => format!("At most {}.", count(value, "item")),
        "uniqueItems" if value == true => "Each item at most once.".to_owned(),
        "contains" => {
            let least = schema.get("minContains").map_or("1".to_owned(), quoted);
            match schema.get("maxContains").map(quoted) {
                Some(most) => format!("{least} to {most} items fit {}.", json()),
                None => format!("At least {least} of the items fit {}.", json()),
            }
        }
        "prefixItems" => format!("The items begin with {}.", list(value, ", then ")),
        "items" if value.is_array() => format!("The items begin with {}.", list(value, ", then ")),
        "items" | "additionalItems" | "unevaluatedItems" if value == false => {
            "No other items.".to_owned()
        }
        "items" | "additionalItems" | "unevaluatedItems" if value != true => {
            format!("Other items fit {}.", json())
        }
        "minProperties" => format!("At least {}.", count(value, "property")),
        "maxProperties" => format!("At most {}.", count(value, "property")),
        "additionalProperties" | "unevaluatedProperties" if value == false => {
            "No other properties.".to_owned()
        }
        "additionalProperties" | "unevaluatedProperties" if value != true => {
            format!("Other properties fit {}.", json())
        }
        "properties" => format!("Its properties are {}.", json()),
        "patternProperties" => each(value, |name, it| {
            format!("Properties that match {name} fit {}.", branch(it))
        }),
        "propertyNames" => format!("The names of properties fit {}.", json()),
        "required" => format!("Required: {}.", names(value)),
        "dependentRequired" | "dependentSchemas" | "dependencies" => each(value, |name, it| {
            if it.is_array() {
                format!("With `{name}` also {}.", names(it))
            } else {
                format!("With `{name}` it fits {}.", branch(it))
            }
        }),
        "const" => format!("Always {}.", json()),
        "enum" => format!("One of {}.", list(value, ", ")),
        "type" => match value {
            Value::Array(_) => format!("One of the types {}.", list(value, ", ")),
            one => format!("Of the type {}.", text(one)),
        },
        "not" => format!("Not {}.", branch(value)),
        "oneOf" => format!("Exactly one of: {}.", list(value, "; ")),
        "anyOf" => format!("At least one of: {}.", list(value, "; ")),
        "allOf" => format!("All of: {}.", list(value, "; ")),
        "if" => {
            let then = schema
                .get("then")
                .map(|it| format!(", then {}", branch(it)));
            let otherwise = schema
                .get("else")
                .map(|it| format!(", otherwise {}", branch(it)));
            format!(
                "If {}{}{}.",
                branch(value),
                then.unwrap_or_default(),
                otherwise.unwrap_or_default()
            )
        }
        "default" => format!("Default: {}.", json()),
        "examples" => format!("For example {}.", list(value, ", ")),
        "deprecated" if value == true => "Deprecated.".to_owned(),
        "readOnly" if value == true => "Read only.".to_owned(),
        "writeOnly" if value == true => "Write only.".to_owned(),
        _ => return None,
    })
}

/// Adds sentences to the description of a schema.
pub(super) fn tell(schema: &mut Object, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    let told = sentences.join(" ");
    let own = schema.get("description").and_then(Value::as_str);
    let description = match own {
        Some(own) if !own.is_empty() => format!("{own}\n{told}"),
        _ => told,
    };
    schema.insert("description".to_owned(), description.into());
}

/// Writes a value as JSON, of which a long one loses its end.
pub(super) fn quoted(value: &Value) -> String {
    let mut quote = Quote(Vec::new());
    // It ends with an error where the quote is full.
    let _ = serde_json::to_writer(&mut quote, value);
    shortened(&String::from_utf8_lossy(&quote.0)).into_owned()
}

struct Quote(Vec<u8>);

impl io::Write for Quote {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() > QUOTED {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = &bytes[..bytes.len().min(QUOTED + 8)];
        self.0.extend_from_slice(taken);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Cuts a long text.
pub(super) fn shortened(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= QUOTED {
        return text.into();
    }
    let end = (0..=QUOTED).rev().find(|it| text.is_char_boundary(*it));
    format!("{}…", &text[..end.unwrap_or(0)]).into()
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => shortened(text).into_owned(),
        other => quoted(other),
    }
}

/// A sentence for each of the first entries.
fn each(value: &Value, sentence: impl Fn(&str, &Value) -> String) -> String {
    let entries = value.as_object().into_iter().flatten().take(5);
    let told: Vec<String> = entries
        .map(|(name, it)| sentence(&shortened(name), it))
        .collect();
    told.join(" ")
}

fn count(value: &Value, what: &str) -> String {
    match (value.as_u64(), what) {
        (Some(1), what) => format!("1 {what}"),
        (_, "property") => format!("{} properties", quoted(value)),
        (_, what) => format!("{} {what}s", quoted(value)),
    }
}

/// The first values of a list.
fn list(value: &Value, between: &str) -> String {
    const MOST: usize = 20;
    let Some(items) = value.as_array() else {
        return quoted(value);
    };
    let mut told: Vec<String> = items.iter().take(MOST).map(branch).collect();
    if items.len() > MOST {
        told.push("…".to_owned());
    }
    shortened(&told.join(between)).into_owned()
}

/// A schema among others. One that only wants properties is told by their names.
fn branch(value: &Value) -> String {
    match value.as_object() {
        Some(schema) if schema.len() == 1 => match schema.get("required") {
            Some(required) if required.is_array() => names(required),
            _ => quoted(value),
        },
        _ => quoted(value),
    }
}

fn names(value: &Value) -> String {
    let names = value.as_array().into_iter().flatten().take(20);
    let names: Vec<String> = names.map(|it| format!("`{}`", text(it))).collect();
    match names.as_slice() {
        [] => "nothing".to_owned(),
        [first @ .., last] if !first.is_empty() => {
            shortened(&format!("{} and {last}", first.join(", "))).into_owned()
        }
        [only] | [.., only] => only.clone(),
    }
}
