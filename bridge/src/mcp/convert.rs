//! Our types ⇄ rmcp's types; nothing else.
#![expect(deprecated, reason = "clients up to 2025-11-25 read logs")]

use rmcp::{
    ErrorData,
    model::{
        CallToolResponse, CallToolResult, ErrorCode, GetPromptResult, InputRequiredResult,
        LoggingLevel, Prompt, ReadResourceResult, Resource, ResourceTemplate, Tool,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tool_runtime::{
    self as runtime, Body, CallError, Content, InputRequired, Level, Listed, Message, Output,
    ReadError, Role, export::mcp,
};

pub(super) fn tool(listed: Listed<'_, runtime::Tool>) -> Result<Tool, ErrorData> {
    typed(mcp::tool(listed))
}

pub(super) fn call_result(output: &Output) -> Result<CallToolResponse, ErrorData> {
    if let Some(required) = &output.input_required {
        return Ok(input_required(required)?.into());
    }
    typed::<CallToolResult>(complete(mcp::result(output))).map(Into::into)
}

fn input_required(required: &InputRequired) -> Result<InputRequiredResult, ErrorData> {
    let requests = required.requests.iter().map(|(key, it)| {
        let request = json!({ "method": it.method, "params": it.params });
        (key.clone(), request)
    });
    let requests: Map<String, Value> = requests.collect();
    let mut result = json!({ "resultType": "input_required" });
    if !requests.is_empty() {
        result["inputRequests"] = requests.into();
    }
    if let Some(state) = &required.state {
        result["requestState"] = state.as_str().into();
    }
    typed(result)
}

/// A call that did not happen: a name that means nothing is an error of the protocol, everything else is told to the
/// model as the tool's result.
pub(super) fn call_error(error: &CallError) -> Result<CallToolResponse, ErrorData> {
    match error {
        CallError::Unknown { .. } | CallError::Ambiguous(_) => Err(ErrorData::invalid_params(
            error.to_string(),
            Some(code(error)),
        )),
        _ => {
            let mut output = Output::error(error.to_string());
            output
                .meta
                .insert("clopen-mcp/error".to_owned(), error.code().into());
            call_result(&output)
        }
    }
}

fn code(error: &CallError) -> Value {
    json!({ "code": error.code() })
}

pub(super) fn resource(resource: &runtime::Resource) -> Result<Resource, ErrorData> {
    typed(described_resource(resource, "uri"))
}

pub(super) fn template(resource: &runtime::Resource) -> Result<ResourceTemplate, ErrorData> {
    typed(described_resource(resource, "uriTemplate"))
}

fn described_resource(resource: &runtime::Resource, address: &str) -> Value {
    let mut described = json!({ "name": resource.name, "description": resource.description });
    described[address] = resource.uri.as_str().into();
    if let Some(title) = &resource.title {
        described["title"] = title.as_str().into();
    }
    if let Some(mime_type) = &resource.mime_type {
        described["mimeType"] = mime_type.as_str().into();
    }
    described
}

pub(super) fn contents(
    uri: &str,
    mime_type: Option<&str>,
    output: &Output,
) -> Result<ReadResourceResult, ErrorData> {
    let contents = output.content.iter().map(|it| match it {
        Content::Resource {
            uri,
            mime_type,
            body,
        } => mcp::resource(uri, mime_type.as_deref(), body),
        Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
            mcp::resource(uri, Some(mime_type), &Body::Blob(data.clone()))
        }
        Content::Link { uri: target, .. } => {
            mcp::resource(uri, Some("text/uri-list"), &Body::Text(target.clone()))
        }
        other => {
            let text = other.as_text().unwrap_or_default().to_owned();
            mcp::resource(uri, mime_type, &Body::Text(text))
        }
    });
    let contents: Vec<Value> = contents.collect();
    typed(complete(json!({ "contents": contents })))
}

pub(super) fn prompt(listed: Listed<'_, runtime::Prompt>) -> Result<Prompt, ErrorData> {
    let Listed { name, item } = listed;
    let arguments = item.arguments.iter().map(
        |it| json!({ "name": it.name, "description": it.description, "required": it.required }),
    );
    let arguments: Vec<Value> = arguments.collect();
    let mut prompt = json!({ "name": name, "description": item.description });
    if let Some(title) = &item.title {
        prompt["title"] = title.as_str().into();
    }
    if !arguments.is_empty() {
        prompt["arguments"] = arguments.into();
    }
    typed(prompt)
}

pub(super) fn messages(messages: &[Message]) -> Result<GetPromptResult, ErrorData> {
    let messages = messages.iter().map(|it| {
        let role = match it.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({ "role": role, "content": mcp::content(&it.content) })
    });
    let messages: Vec<Value> = messages.collect();
    typed(complete(json!({ "messages": messages })))
}

pub(super) fn read_error(error: &ReadError) -> ErrorData {
    match error {
        ReadError::NotFound { uri } => {
            ErrorData::resource_not_found(error.to_string(), Some(json!({ "uri": uri })))
        }
        ReadError::UnknownPrompt { .. }
        | ReadError::Ambiguous(_)
        | ReadError::MissingArgument { .. } => ErrorData::invalid_params(error.to_string(), None),
        _ => ErrorData::internal_error(error.to_string(), None),
    }
}

pub(super) fn level(level: Level) -> LoggingLevel {
    match level {
        Level::Debug => LoggingLevel::Debug,
        Level::Info => LoggingLevel::Info,
        Level::Notice => LoggingLevel::Notice,
        Level::Warning => LoggingLevel::Warning,
        Level::Error => LoggingLevel::Error,
        Level::Critical => LoggingLevel::Critical,
        Level::Alert => LoggingLevel::Alert,
        Level::Emergency => LoggingLevel::Emergency,
    }
}

pub(super) fn own_level(level: LoggingLevel) -> Level {
    match level {
        LoggingLevel::Debug => Level::Debug,
        LoggingLevel::Info => Level::Info,
        LoggingLevel::Notice => Level::Notice,
        LoggingLevel::Warning => Level::Warning,
        LoggingLevel::Error => Level::Error,
        LoggingLevel::Critical => Level::Critical,
        LoggingLevel::Alert => Level::Alert,
        LoggingLevel::Emergency => Level::Emergency,
    }
}

/// Marks a result as the last word on its request; rmcp takes the mark off for clients that don't know it.
fn complete(mut result: Value) -> Value {
    result["resultType"] = "complete".into();
    result
}

/// What the runtime writes in MCP's own words, as rmcp's type for it.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| {
        let message = format!("the bridge made an answer that is no MCP: {error}");
        ErrorData::new(ErrorCode::INTERNAL_ERROR, message, None)
    })
}
