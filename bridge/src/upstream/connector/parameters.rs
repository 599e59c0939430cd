//! Arguments that headers repeat since 2026-07-28, as the schema of their tool says by `x-mcp-header`.

use serde_json::{Map, Value, value::RawValue};

/// The keyword.
const MARK: &str = "x-mcp-header";
/// How deep a marked argument may lie.
const DEEPEST: usize = 32;
/// The largest whole number that every reader of JSON keeps.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// Keywords whose values are data and no schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "examples", "example"];

/// Returns what headers repeat of the arguments of a tool with this schema of its input, as
/// [`Talk::headers`](super::Talk::headers) wants it. Arguments that are not there, or `null`, are not repeated.
pub fn param_headers(schema: &Map<String, Value>, arguments: &RawValue) -> Vec<(String, String)> {
    let mut marks = Vec::new();
    collect(schema, &mut Vec::new(), &mut marks);
    if marks.is_empty() {
        return Vec::new();
    }
    let arguments: Value = serde_json::from_str(arguments.get()).unwrap_or_default();
    let repeated = marks.into_iter().filter_map(|mark| {
        let mut steps = mark.path.iter();
        let value = steps.try_fold(&arguments, |it, step| it.get(*step))?;
        Some((mark.name.to_owned(), text(value)?))
    });
    repeated.collect()
}

/// Says what is wrong with the marks of a schema, if anything. Over HTTP, a tool with such a schema must not be offered
/// to anybody.
pub(in crate::upstream) fn wrong_param_headers(schema: &Map<String, Value>) -> Option<String> {
    let mut marks = Vec::new();
    collect(schema, &mut Vec::new(), &mut marks);
    let mut names: Vec<String> = Vec::new();
    for mark in &marks {
        let name = mark.name.to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(is_of_token) {
            let name = name.escape_debug();
            return Some(format!(
                "its `{MARK}` `{name}` can't be a part of a header's name"
            ));
        }
        if !matches!(mark.kind, Some("string" | "integer" | "boolean")) {
            return Some(format!(
                "its `{MARK}` `{name}` marks what is no text, whole number or boolean"
            ));
        }
        if names.contains(&name) {
            return Some(format!("its `{MARK}` `{name}` is there twice"));
        }
        names.push(name);
    }
    let found: usize = schema.iter().map(count_in).sum();
    (found != marks.len()).then(|| format!("it has an `{MARK}` where no single argument is meant"))
}

/// A marked argument.
struct Mark<'a> {
    path: Vec<&'a str>,
    name: &'a str,
    kind: Option<&'a str>,
}

fn collect<'a>(schema: &'a Map<String, Value>, path: &mut Vec<&'a str>, marks: &mut Vec<Mark<'a>>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    let schemas = properties.filter_map(|(argument, it)| Some((argument, it.as_object()?)));
    for (argument, schema) in schemas {
        path.push(argument);
        if let Some(name) = schema.get(MARK).and_then(Value::as_str) {
            marks.push(Mark {
                path: path.clone(),
                name,
                kind: schema.get("type").and_then(Value::as_str),
            });
        }
        if path.len() < DEEPEST {
            collect(schema, path, marks);
        }
        path.pop();
    }
}

/// Counts the marks anywhere in a schema.
fn count(schema: &Value) -> usize {
    match schema {
        Value::Array(schemas) => schemas.iter().map(count).sum(),
        Value::Object(members) => members.iter().map(count_in).sum(),
        _ => 0,
    }
}

fn count_in((keyword, value): (&String, &Value)) -> usize {
    match keyword.as_str() {
        MARK => 1,
        "properties" | "patternProperties" | "$defs" | "definitions" => {
            let named = value.as_object().into_iter().flatten();
            named.map(|(_, schema)| count(schema)).sum()
        }
        keyword if DATA.contains(&keyword) => 0,
        _ => count(value),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(match number.as_f64() {
            Some(it) if number.is_f64() && it.fract() == 0.0 && it.abs() <= LARGEST => {
                format!("{it:.0}")
            }
            _ => number.to_string(),
        }),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether a byte may be in the name of a header.
fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(schema: &Value) -> Map<String, Value> {
        schema.as_object().cloned().expect("it is an object")
    }

    #[test]
    fn marked_arguments_are_repeated() {
        let schema = schema(&json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "none": { "type": "string", "x-mcp-header": "None" },
            "in": { "properties": {
                "n": { "type": "integer", "x-mcp-header": "N" },
                "flag": { "type": "boolean", "x-mcp-header": "Flag" },
            } },
            "x-mcp-header": { "type": "string" },
        } }));
        let arguments = r#"{"region":" ü","none":null,"in":{"n":42.0,"flag":false},"other":1}"#;
        let arguments = RawValue::from_string(arguments.to_owned()).expect("it is JSON");
        let headers = param_headers(&schema, &arguments);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(headers, [("Region", " ü"), ("N", "42"), ("Flag", "false")]);
        assert_eq!(wrong_param_headers(&schema), None);
    }

    #[test]
    fn wrong_marks_are_told() {
        let check = |wrong: Value, expected: &str| {
            let said = wrong_param_headers(&schema(&wrong)).unwrap_or_default();
            assert!(said.contains(expected), "{said}");
        };
        let marked = |name: &str| json!({ "type": "string", "x-mcp-header": name });
        check(json!({ "properties": { "a": marked("") } }), "can't be");
        check(json!({ "properties": { "a": marked("a b") } }), "can't be");
        let twice = json!({ "properties": { "a": marked("A"), "b": marked("a") } });
        check(twice, "there twice");
        let number = json!({ "type": "number", "x-mcp-header": "A" });
        check(json!({ "properties": { "a": number } }), "no text");
        check(
            json!({ "properties": { "a": { "items": marked("A") } } }),
            "no single",
        );
        check(json!({ "$defs": { "a": marked("A") } }), "no single");
        let data = json!({ "properties": { "a": { "default": marked("A") } } });
        assert_eq!(wrong_param_headers(&schema(&data)), None);
    }
}
