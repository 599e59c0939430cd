//! What an external server says, as our own items: each tool is read by itself, repaired where that can be done, and left
//! out with a reason where it can't.

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use std::sync::Arc;
use tool_runtime::{
    Body, Check, Content, Dialect, Enforcement, Hints, Output, Tool, ToolError, adapt_output,
    repair,
};

/// The most characters of a name.
const LONGEST_NAME: usize = 256;

/// The most tools of a server.
const MOST_TOOLS: usize = 5_000;

/// The most characters of a description.
const LONGEST_TEXT: usize = 20_000;

/// The tools of a list, and what was changed or left out.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) tools: Vec<Arc<Tool>>,
    pub(super) notes: Vec<String>,
}

/// Reads the tools of a server out of all that it listed.
pub(super) fn tools(server: &str, listed: &[Value]) -> Listed {
    let mut all = Listed::default();
    let server: Arc<str> = server.into();
    if listed.len() > MOST_TOOLS {
        let note = format!(
            "`{server}` lists {} tools; those after {MOST_TOOLS} were left out",
            listed.len()
        );
        all.notes.push(note);
    }
    for (index, item) in listed.iter().take(MOST_TOOLS).enumerate() {
        match tool(&server, index, item, &mut all.notes) {
            Ok(tool) => all.tools.push(Arc::new(tool)),
            Err(reason) => {
                let note = format!(
                    "the tool at place {} of `{server}` was left out: {reason}",
                    index + 1
                );
                all.notes.push(note);
            }
        }
    }
    all
}

fn tool(
    server: &Arc<str>,
    index: usize,
    item: &Value,
    notes: &mut Vec<String>,
) -> Result<Tool, String> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let name = text("name").ok_or("it has no name")?.to_owned();
    if name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(format!(
            "its name has more than {LONGEST_NAME} characters, or characters that can't be shown"
        ));
    }
    let mut note = |what: &str, of: Vec<String>| {
        let changes = of.into_iter();
        notes.extend(changes.map(|it| format!("`{server}.{name}`, {what}: {it}")));
    };
    let input = repair(item.get("inputSchema"));
    note("arguments", input.notes);
    let schema = Arc::new(input.schema);
    let (schema, check) = match Check::new(schema.clone(), Enforcement::Schema) {
        Ok(check) => (schema, check),
        Err(error) => {
            note("arguments", vec![format!("any are taken, since {error}")]);
            let any = Arc::new(repair(None).schema);
            let check = Check::new(any.clone(), Enforcement::Schema);
            (any, check.map_err(|error| error.to_string())?)
        }
    };
    let output = item.get("outputSchema").map(|it| {
        let dialect = Dialect {
            any_output: false,
            ..Dialect::ANY
        };
        adapt_output(it, &dialect)
    });
    let wraps_output = output.as_ref().is_some_and(|it| it.wraps);
    let output_schema = output.map(|it| {
        note("result", it.notes);
        Arc::new(it.schema)
    });
    let hint = |key: &str| item.get("annotations")?.get(key)?.as_bool();
    let title = text("title").or_else(|| item.get("annotations")?.get("title")?.as_str());
    Ok(Tool {
        server: server.clone(),
        title: title.map(shortened),
        description: text("description").map(shortened).unwrap_or_default(),
        input_schema: schema,
        output_schema,
        hints: Hints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
        meta: meta(item),
        further: Map::new(),
        scopes: Vec::new(),
        requires: Vec::new(),
        timeout: None,
        task: None,
        converses: true,
        check,
        wraps_output,
        index,
        name,
    })
}

fn meta(item: &Value) -> Map<String, Value> {
    let meta = item.get("_meta").and_then(Value::as_object);
    meta.cloned().unwrap_or_default()
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

/// Reads the result of a call of a tool that has promised structured content, or hasn't.
pub(super) fn output(raw: &RawValue, promise: Promise) -> Result<Output, ToolError> {
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
    let answer: Answer = serde_json::from_str(raw.get())
        .map_err(|error| format!("the server's answer is no result: {error}"))?;
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
pub(super) enum Promise {
    /// It says nothing.
    Nothing,
    /// It is an object.
    Object,
    /// It is something else, which is put under `result` after the call.
    Wrapped,
}

impl Promise {
    pub(super) fn of(tool: &Tool) -> Self {
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

/// Reads a block; of one of a kind that nobody knows, the kind is told.
fn block(block: &Value) -> Content {
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
