//! How much schema is too much: measured without recursion, so that no depth can overflow the stack.

use super::Object;
use serde_json::Value;

/// The most JSON that a schema is, in bytes.
const LARGEST: usize = 1 << 20;
/// The most levels of JSON that a schema has; serde's parser reads no more.
const DEEPEST: usize = 128;

/// Says in words what is too much about a schema.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    check_values(vec![(schema, 1)])
}

/// The same for a schema that is an object already.
pub(super) fn check_object(schema: &Object) -> Result<(), String> {
    let names: usize = schema.keys().map(|it| it.len() + 4).sum();
    if names > LARGEST {
        return Err(too_large());
    }
    check_values(schema.values().map(|it| (it, 2)).collect())
}

fn check_values(mut open: Vec<(&Value, usize)>) -> Result<(), String> {
    let mut bytes = 0;
    while let Some((value, level)) = open.pop() {
        if level > DEEPEST {
            return Err(format!("is more than {DEEPEST} levels deep"));
        }
        bytes += own(value);
        if bytes > LARGEST {
            return Err(too_large());
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|it| (it, level + 1))),
            Value::Object(object) => open.extend(object.values().map(|it| (it, level + 1))),
            _ => {}
        }
    }
    Ok(())
}

fn too_large() -> String {
    format!("is larger than {LARGEST} bytes")
}

/// Returns about how many bytes of JSON a value is, if it is no more than `most`.
pub(super) fn within(value: &Value, most: usize) -> Option<usize> {
    let mut bytes = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        bytes += own(value);
        if bytes > most {
            return None;
        }
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(object) => open.extend(object.values()),
            _ => {}
        }
    }
    Some(bytes)
}

/// The bytes of a value without what is in it.
fn own(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 3,
        Value::Object(object) => 2 + object.keys().map(|it| it.len() + 4).sum::<usize>(),
        Value::Array(items) => 2 + items.len(),
        _ => 5,
    }
}
