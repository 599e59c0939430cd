//! MCP: the items of `tools/list` and the result of `tools/call`.

use crate::{
    context::{Caller, Context},
    dispatcher::Dispatcher,
    name::{NAMESPACE, full_name},
    output::{Body, Content, Output},
    provider::Tool,
    schema::{Dialect, adapt, adapt_output},
    view::{Listed, View},
};
use serde_json::{Map, Value, json};

/// Returns the tools that a caller can call, as `tools/list` gives them.
pub fn tools(view: &View, caller: &Caller) -> Vec<Value> {
    view.tools(caller).map(tool).collect()
}

/// Makes the call of `tools/call` (`{"name": …, "arguments": …}`) and returns its result.
pub async fn answer(dispatcher: &Dispatcher, params: &Value, context: &Context) -> Value {
    let (name, arguments) = (params.get("name"), params.get("arguments"));
    result(&super::call(dispatcher, name, arguments, context).await)
}

/// Returns a tool as `tools/list` gives it to somebody who takes schemas in a dialect. What the dialect can't say stands
/// in the descriptions; calls are checked against the tool's own schema all the same.
pub fn tool_for(listed: Listed<'_, Tool>, dialect: &Dialect) -> Value {
    let mut described = tool(listed);
    described["inputSchema"] = adapt(&listed.item.input_schema, dialect).schema.into();
    if let Some(schema) = &listed.item.output_schema {
        let schema = Value::Object((**schema).clone());
        described["outputSchema"] = adapt_output(&schema, dialect).schema.into();
    }
    described
}

/// Returns a tool as `tools/list` gives it. One that is listed by another name than its server's has its full name in
/// `_meta`, under `clopen-mcp/name`.
pub fn tool(listed: Listed<'_, Tool>) -> Value {
    let Listed { name, item } = listed;
    let mut tool = Map::new();
    tool.insert("name".to_owned(), name.into());
    if let Some(title) = &item.title {
        tool.insert("title".to_owned(), title.as_str().into());
    }
    tool.insert("description".to_owned(), item.description.as_str().into());
    tool.insert(
        "inputSchema".to_owned(),
        (*item.input_schema).clone().into(),
    );
    if let Some(schema) = &item.output_schema {
        tool.insert("outputSchema".to_owned(), (**schema).clone().into());
    }
    let hints = [
        ("readOnlyHint", item.hints.read_only),
        ("destructiveHint", item.hints.destructive),
        ("idempotentHint", item.hints.idempotent),
        ("openWorldHint", item.hints.open_world),
    ];
    let hints = hints
        .into_iter()
        .filter_map(|(key, hint)| Some((key.to_owned(), hint?.into())));
    let hints: Map<String, Value> = hints.collect();
    if !hints.is_empty() {
        tool.insert("annotations".to_owned(), hints.into());
    }
    add_further(&mut tool, &item.further);
    let mut meta = item.meta.clone();
    if name != item.name {
        let full_name = full_name(&item.server, &item.name);
        meta.insert(format!("{NAMESPACE}/name"), full_name.into());
    }
    if !meta.is_empty() {
        tool.insert("_meta".to_owned(), meta.into());
    }
    tool.into()
}

/// Adds whatever else a server says of something. What is said already stays.
pub fn add_further(described: &mut Map<String, Value>, further: &Map<String, Value>) {
    for (key, value) in further {
        described.entry(key).or_insert_with(|| value.clone());
    }
}

/// Returns an output as the result of `tools/call`.
pub fn result(output: &Output) -> Value {
    let mut result = Map::new();
    let content: Vec<Value> = output.content.iter().map(content).collect();
    result.insert("content".to_owned(), content.into());
    if let Some(structured) = &output.structured {
        let structured = serde_json::from_str(structured.get());
        result.insert(
            "structuredContent".to_owned(),
            structured.expect("it is JSON"),
        );
    }
    result.insert("isError".to_owned(), output.is_error.into());
    if let Some(meta) = &output.meta {
        result.insert("_meta".to_owned(), (**meta).clone().into());
    }
    result.into()
}

/// Returns a block of content.
pub fn content(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image { data, mime_type } => {
            json!({ "type": "image", "data": data, "mimeType": mime_type })
        }
        Content::Audio { data, mime_type } => {
            json!({ "type": "audio", "data": data, "mimeType": mime_type })
        }
        Content::Resource {
            uri,
            mime_type,
            body,
        } => json!({ "type": "resource", "resource": resource(uri, mime_type.as_deref(), body) }),
        Content::Link {
            uri,
            name,
            mime_type,
            description,
        } => {
            let mut link = json!({ "type": "resource_link", "uri": uri, "name": name });
            if let Some(mime_type) = mime_type {
                link["mimeType"] = mime_type.as_str().into();
            }
            if let Some(description) = description {
                link["description"] = description.as_str().into();
            }
            link
        }
        Content::Annotated { content, further } => {
            let mut described = self::content(content);
            if let Value::Object(described) = &mut described {
                add_further(described, further);
            }
            described
        }
    }
}

/// Returns the contents of a resource.
pub fn resource(uri: &str, mime_type: Option<&str>, body: &Body) -> Value {
    let mut resource = json!({ "uri": uri });
    if let Some(mime_type) = mime_type {
        resource["mimeType"] = mime_type.into();
    }
    match body {
        Body::Text(text) => resource["text"] = text.as_str().into(),
        Body::Blob(blob) => resource["blob"] = blob.as_str().into(),
    }
    resource
}
