//! OpenAI's Chat Completions API: functions, and a tool call into a `tool` message.

use crate::{
    context::{Caller, Context},
    dispatcher::Dispatcher,
    output::{Body, Content},
    provider::Tool,
    view::{Listed, View},
};
use serde_json::{Map, Value, json};

/// Returns the tools that a caller can call, for the parameter `tools`.
pub fn tools(view: &View, caller: &Caller) -> Vec<Value> {
    let tools = view.tools(caller);
    let tools = tools.map(|it| {
        let schema = Value::Object((*it.item.input_schema).clone());
        function(it, schema, false)
    });
    tools.collect()
}

/// Returns the same tools so that the model is made to keep to the schema (`"strict": true`), wherever strict mode can
/// say what the schema says; a tool whose arguments are open stays as it is.
pub fn strict_tools(view: &View, caller: &Caller) -> Vec<Value> {
    let tools = view.tools(caller).map(|it| {
        let schema = Value::Object((*it.item.input_schema).clone());
        match strict(&schema) {
            Some(strict) => function(it, strict, true),
            None => function(it, schema, false),
        }
    });
    tools.collect()
}

/// Makes the call that an item of `tool_calls` asks for, and returns the message that answers it.
pub async fn answer(dispatcher: &Dispatcher, tool_call: &Value, context: &Context) -> Value {
    let function = tool_call.get("function").unwrap_or(tool_call);
    let (name, arguments) = (function.get("name"), function.get("arguments"));
    let output = super::call(dispatcher, name, arguments, context).await;
    let blocks: Vec<String> = output.content.iter().map(in_words).collect();
    json!({
        "role": "tool",
        "tool_call_id": tool_call.get("id"),
        "content": blocks.join("\n"),
    })
}

fn function(listed: Listed<'_, Tool>, parameters: Value, strict: bool) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), listed.name.into());
    function.insert(
        "description".to_owned(),
        listed.item.description.as_str().into(),
    );
    function.insert("parameters".to_owned(), parameters);
    if strict {
        function.insert("strict".to_owned(), true.into());
    }
    json!({ "type": "function", "function": function })
}

/// Tells a block of content in words, for an API that takes text only.
pub(super) fn in_words(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Image { mime_type, .. } => format!("[an image, {mime_type}]"),
        Content::Audio { mime_type, .. } => format!("[a sound, {mime_type}]"),
        Content::Resource { uri, body, .. } => match body {
            Body::Text(text) => format!("{uri}:\n{text}"),
            Body::Blob(_) => format!("[the bytes of {uri}]"),
        },
        Content::Link { uri, name, .. } => format!("{name}: {uri}"),
        Content::Annotated { content, .. } => in_words(content),
    }
}

/// The forms of text that strict mode knows.
const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Rewrites the schema of arguments for strict mode: every property required, those that were optional nullable, every
/// object closed (<https://platform.openai.com/docs/guides/structured-outputs>). `None` where strict mode has no words
/// for it.
fn strict(schema: &Value) -> Option<Value> {
    let is_choice = ["anyOf", "oneOf"].iter().any(|it| schema.get(it).is_some());
    if is_choice || schema.get("type")? != "object" {
        return None;
    }
    strict_part(schema)
}

fn strict_part(schema: &Value) -> Option<Value> {
    let schema = schema.as_object()?;
    if let Some(reference) = schema.get("$ref") {
        let is_definition = reference.as_str()?.starts_with("#/$defs/");
        return is_definition.then(|| json!({ "$ref": reference }));
    }
    let typed = ["type", "anyOf", "oneOf"];
    if !typed.iter().any(|it| schema.contains_key(*it)) {
        return None;
    }
    let mut strict = Map::new();
    for (keyword, value) in schema {
        let value = match keyword.as_str() {
            "properties" => strict_properties(schema, value)?,
            "items" => strict_part(value)?,
            "anyOf" | "oneOf" => {
                let branches = value.as_array()?.iter().map(strict_part);
                let branches = branches.collect::<Option<Vec<_>>>()?;
                strict.insert("anyOf".to_owned(), branches.into());
                continue;
            }
            "$defs" => {
                let definitions = value.as_object()?.iter();
                let definitions =
                    definitions.map(|(name, it)| Some((name.clone(), strict_part(it)?)));
                definitions.collect::<Option<Map<_, _>>>()?.into()
            }
            "additionalProperties" if value != &Value::Bool(false) => return None,
            // What says nothing about which values are good.
            "additionalProperties"
            | "required"
            | "default"
            | "examples"
            | "title"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "x-mcp-header" => continue,
            "format" if value.as_str().is_none_or(|it| !FORMATS.contains(&it)) => continue,
            "type" | "description" | "enum" | "const" | "format" | "pattern" | "minimum"
            | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "minLength"
            | "maxLength" | "minItems" | "maxItems" => value.clone(),
            _ => return None,
        };
        strict.insert(keyword.clone(), value);
    }
    if let Some(Value::String(format)) = schema
        .get("format")
        .filter(|_| !strict.contains_key("format"))
    {
        let own = strict.get("description").and_then(Value::as_str);
        let rule = format!("It has the form `{format}`.");
        let description = own.map_or(rule.clone(), |own| format!("{own}\n{rule}"));
        strict.insert("description".to_owned(), description.into());
    }
    if names_kind(schema, "array") && !strict.contains_key("items") {
        return None;
    }
    if names_kind(schema, "object") {
        let properties = strict.get("properties").and_then(Value::as_object);
        // An object without known properties is a map, which strict mode can't say.
        if properties.is_none() && !schema.contains_key("additionalProperties") {
            return None;
        }
        let names: Vec<Value> = properties
            .into_iter()
            .flat_map(|it| it.keys().cloned().map(Value::from))
            .collect();
        strict.entry("properties").or_insert_with(|| json!({}));
        strict.insert("required".to_owned(), names.into());
        strict.insert("additionalProperties".to_owned(), false.into());
    }
    Some(strict.into())
}

fn strict_properties(schema: &Map<String, Value>, properties: &Value) -> Option<Value> {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = properties.as_object()?.iter().map(|(name, it)| {
        let is_required = required.is_some_and(|it| it.iter().any(|it| it == name));
        let it = strict_part(it)?;
        Some((name.clone(), if is_required { it } else { nullable(it) }))
    });
    Some(properties.collect::<Option<Map<_, _>>>()?.into())
}

/// Whether a schema names a type, alone or among others.
fn names_kind(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|it| it == kind),
        Some(only) => only == kind,
        None => false,
    }
}

fn nullable(mut schema: Value) -> Value {
    if let Value::Object(object) = &mut schema {
        if names_kind(object, "null") {
            return schema;
        }
        let kind = object.get("type").and_then(Value::as_str);
        if let Some(kind) = kind.filter(|_| !object.contains_key("const")) {
            let kinds = json!([kind, "null"]);
            object.insert("type".to_owned(), kinds);
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                values.push(Value::Null);
            }
            return schema;
        }
        if let Some(Value::Array(branches)) = object.get_mut("anyOf") {
            let null = json!({ "type": "null" });
            if !branches.contains(&null) {
                branches.push(null);
            }
            return schema;
        }
    }
    json!({ "anyOf": [schema, { "type": "null" }] })
}
