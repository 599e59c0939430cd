//! What a server gives when it is asked for something: the results of tools, resources, prompts and completions.

use super::further;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tool_runtime::{Body, Completion, Content, Message, Output, Role, Tool, ToolError};

/// The members of a block of content that we know.
const BLOCK: [&str; 8] = [
    "type",
    "text",
    "data",
    "mimeType",
    "resource",
    "uri",
    "name",
    "description",
];

/// The members of the contents of a resource that we know.
const CONTENTS: [&str; 4] = ["uri", "mimeType", "text", "blob"];

/// Reads the result of a call of a tool that has promised structured content, or hasn't.
pub(in crate::upstream) fn output(raw: &RawValue, promise: Promise) -> Result<Output, ToolError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        #[serde(default)]
        content: Value,
        /// As it came: numbers of any length stay.
        #[serde(default)]
        structured_content: Option<Box<RawValue>>,
        #[serde(default)]
        is_error: Value,
        #[serde(default, rename = "_meta")]
        meta: Value,
    }
    let answer: Answer = serde_json::from_str(raw.get()).map_err(|error| no_result(&error))?;
    let mut content: Vec<Content> = match &answer.content {
        Value::Array(blocks) => blocks.iter().map(block).collect(),
        Value::String(text) => vec![Content::text(text.as_str())],
        _ => Vec::new(),
    };
    let mut is_error = answer.is_error == Value::Bool(true);
    let mut structured = answer.structured_content.filter(|it| it.get() != "null");
    if structured.is_none() && promise == Promise::Object && !is_error {
        structured = content.iter().find_map(|it| object(it.as_text()?));
        if structured.is_none() {
            is_error = true;
            content.push(Content::text(
                "the tool promises structured content, and gave none",
            ));
        }
    }
    if let Some(json) = &structured
        && !says(&content, json)
    {
        content.push(Content::text(json.get()));
    }
    // What is no object is known to newer clients only; a promise of it is wrapped like the result.
    if let Some(json) =
        structured.take_if(|it| promise != Promise::Wrapped && !it.get().starts_with('{'))
    {
        structured = Some(RawValue::from_string(format!(
            "{{\"result\":{}}}",
            json.get()
        ))?);
    }
    Ok(Output {
        content,
        structured,
        is_error,
        meta: answer.meta.as_object().cloned().map(Box::new),
        input_required: None,
    })
}

/// What a tool's schema says of its structured content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::upstream) enum Promise {
    /// It says nothing.
    Nothing,
    /// It is an object.
    Object,
    /// It is something else, which is put under `result` after the call.
    Wrapped,
}

impl Promise {
    pub(in crate::upstream) fn of(tool: &Tool) -> Self {
        match &tool.output_schema {
            None => Self::Nothing,
            Some(_) if tool.wraps_output => Self::Wrapped,
            Some(_) => Self::Object,
        }
    }
}

/// The object that a text is.
fn object(text: &str) -> Option<Box<RawValue>> {
    let object: Box<RawValue> = serde_json::from_str(text).ok()?;
    object.get().starts_with('{').then_some(object)
}

/// Whether one of the texts is this JSON: engines show their model the one or the other.
fn says(content: &[Content], json: &RawValue) -> bool {
    let data: Option<Value> = serde_json::from_str(json.get()).ok();
    let mut texts = content.iter().filter_map(Content::as_text);
    texts.any(|it| serde_json::from_str(it).ok() == data)
}

/// Reads a block with whatever else is said of it; of one of a kind that nobody knows, the kind is told.
fn block(block: &Value) -> Content {
    let further = further(block, &BLOCK);
    match plain(block) {
        content if further.is_empty() => content,
        content => Content::Annotated {
            content: Box::new(content),
            further,
        },
    }
}

fn plain(block: &Value) -> Content {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    let owned = |key: &str| text(key).map(str::to_owned);
    let known = || {
        Some(match text("type")? {
            "text" => Content::text(text("text")?),
            "image" => Content::Image {
                data: owned("data")?,
                mime_type: owned("mimeType")?,
            },
            "audio" => Content::Audio {
                data: owned("data")?,
                mime_type: owned("mimeType")?,
            },
            "resource" => {
                let resource = block.get("resource")?;
                let of_resource = |key: &str| Some(resource.get(key)?.as_str()?.to_owned());
                let body = of_resource("text").map(Body::Text);
                Content::Resource {
                    uri: of_resource("uri")?,
                    mime_type: of_resource("mimeType"),
                    body: body.or_else(|| of_resource("blob").map(Body::Blob))?,
                }
            }
            "resource_link" => Content::Link {
                uri: owned("uri")?,
                name: owned("name").or_else(|| owned("uri"))?,
                mime_type: owned("mimeType"),
                description: owned("description"),
            },
            _ => return None,
        })
    };
    known().unwrap_or_else(|| {
        let kind: String = text("type").unwrap_or("unknown").chars().take(40).collect();
        Content::text(format!("[a block of type `{kind}`, which can't be shown]"))
    })
}

fn no_result(error: &serde_json::Error) -> ToolError {
    format!("the server's answer is no result: {error}").into()
}

/// Reads the contents of a resource.
pub(in crate::upstream) fn contents(raw: &RawValue, asked: &str) -> Result<Output, ToolError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        contents: Vec<Value>,
        #[serde(default, rename = "_meta")]
        meta: Option<Map<String, Value>>,
    }
    let answer: Answer = serde_json::from_str(raw.get()).map_err(|error| no_result(&error))?;
    let contents = answer.contents.iter().map(|it| {
        let text = |key: &str| it.get(key).and_then(Value::as_str).map(str::to_owned);
        let body = text("text").map(Body::Text);
        let body = body.or_else(|| text("blob").map(Body::Blob));
        let content = Content::Resource {
            uri: text("uri").unwrap_or_else(|| asked.to_owned()),
            mime_type: text("mimeType"),
            body: body.unwrap_or_else(|| Body::Text(String::new())),
        };
        let further = further(it, &CONTENTS);
        if further.is_empty() {
            content
        } else {
            Content::Annotated {
                content: Box::new(content),
                further,
            }
        }
    });
    Ok(Output {
        content: contents.collect(),
        meta: answer.meta.map(Box::new),
        ..Output::default()
    })
}

/// Reads the messages of a prompt.
pub(in crate::upstream) fn messages(raw: &RawValue) -> Result<Vec<Message>, ToolError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        messages: Vec<Written>,
    }
    #[derive(Deserialize)]
    struct Written {
        #[serde(default)]
        role: Value,
        #[serde(default)]
        content: Value,
    }
    let answer: Answer = serde_json::from_str(raw.get()).map_err(|error| no_result(&error))?;
    let messages = answer.messages.iter().map(|it| Message {
        role: if it.role == "assistant" {
            Role::Assistant
        } else {
            Role::User
        },
        content: match &it.content {
            Value::String(text) => Content::text(text.as_str()),
            content => block(content),
        },
    });
    Ok(messages.collect())
}

/// Reads what is offered to a user who types.
pub(in crate::upstream) fn completion(raw: &RawValue) -> Result<Completion, ToolError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        completion: Offered,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Offered {
        values: Vec<Value>,
        total: Option<u64>,
        has_more: bool,
    }
    let Answer { completion } =
        serde_json::from_str(raw.get()).map_err(|error| no_result(&error))?;
    let values = completion.values.iter().filter_map(Value::as_str);
    Ok(Completion {
        has_more: completion.has_more || completion.values.len() > Completion::MOST,
        values: values.take(Completion::MOST).map(str::to_owned).collect(),
        total: completion.total,
    })
}
