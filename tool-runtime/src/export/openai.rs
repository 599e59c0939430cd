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
    }
}

/// Rewrites a schema for strict mode: every property required, those that were optional nullable, every object closed
/// (<https://platform.openai.com/docs/guides/structured-outputs>). `None` where strict mode has no words for it.
fn strict(schema: &Value) -> Option<Value> {
    let schema = schema.as_object()?;
    let typed = ["type", "enum", "const", "anyOf", "oneOf", "$ref"];
    if !typed.iter().any(|it| schema.contains_key(*it)) {
        return None;
    }
    let mut strict_schema = Map::new();
    for (keyword, value) in schema {
        let value = match keyword.as_str() {
            "properties" => {
                let properties = value.as_object()?.iter();
                let required = schema.get("required").and_then(Value::as_array);
                let properties = properties.map(|(name, it)| {
                    let required = required.is_some_and(|it| it.iter().any(|it| it == name));
                    let it = strict(it)?;
                    Some((name.clone(), if required { it } else { nullable(it) }))
                });
                properties.collect::<Option<Map<_, _>>>()?.into()
            }
            "items" => strict(value)?,
            "anyOf" | "oneOf" => {
                let branches = value.as_array()?.iter().map(strict);
                let branches = branches.collect::<Option<Vec<_>>>()?;
                strict_schema.insert("anyOf".to_owned(), branches.into());
                continue;
            }
            "$defs" => {
                let definitions = value.as_object()?.iter();
                let definitions = definitions.map(|(name, it)| Some((name.clone(), strict(it)?)));
                definitions.collect::<Option<Map<_, _>>>()?.into()
            }
            "additionalProperties" if value != &Value::Bool(false) => return None,
            "additionalProperties" | "required" | "default" | "examples" | "title" => continue,
            "allOf" | "not" | "if" | "then" | "else" | "patternProperties" | "prefixItems"
            | "dependentRequired" | "dependentSchemas" | "propertyNames" => return None,
            _ => value.clone(),
        };
        strict_schema.insert(keyword.clone(), value);
    }
    if schema.get("type").is_some_and(|it| it == "object") {
        let properties = strict_schema.get("properties").and_then(Value::as_object);
        // An object without known properties is a map, which strict mode can't say.
        let is_map = properties.is_none() && !schema.contains_key("additionalProperties");
        if is_map {
            return None;
        }
        let names: Vec<Value> = properties
            .into_iter()
            .flat_map(|it| it.keys().cloned().map(Value::from))
            .collect();
        strict_schema.insert("required".to_owned(), names.into());
        strict_schema.insert("additionalProperties".to_owned(), false.into());
    }
    Some(strict_schema.into())
}

fn nullable(mut schema: Value) -> Value {
    if let Some(kind) = schema
        .get("type")
        .and_then(Value::as_str)
        .map(str::to_owned)
    {
        schema["type"] = json!([kind, "null"]);
        if let Some(Value::Array(values)) = schema.get_mut("enum") {
            values.push(Value::Null);
        }
        return schema;
    }
    json!({ "anyOf": [schema, { "type": "null" }] })
}
