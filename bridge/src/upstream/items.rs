//! What an external server says, as our own items: each tool is read by itself, repaired where that can be done, and left
//! out with a reason where it can't.

mod offers;
mod result;

pub(super) use offers::{prompts, resources, unlisted};
pub(super) use result::{Promise, completion, contents, messages, output};

use super::connector::wrong_param_headers;
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use tool_runtime::{Check, Dialect, Enforcement, Hints, TaskSupport, Tool, adapt_output, repair};

/// The most characters of a name.
const LONGEST_NAME: usize = 256;

/// The most tools of a server.
const MOST_TOOLS: usize = 5_000;

/// The most characters of a description.
const LONGEST_TEXT: usize = 20_000;

/// How long one call may take, with all its questions and signs of life; the connection ends it earlier if it hears
/// nothing.
const LONGEST_CALL: Duration = Duration::from_hours(1);

/// The members of a tool that we know.
const TOOL: [&str; 6] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "_meta",
];

/// Reads the tools of a server out of all that it listed; notes what was changed or left out.
pub(super) fn tools(
    server: &Arc<str>,
    listed: &[Value],
    is_modern: bool,
    notes: &mut Vec<String>,
) -> Vec<Arc<Tool>> {
    each(
        "tool",
        MOST_TOOLS,
        server,
        listed,
        notes,
        |server, index, item, notes| {
            // Whoever calls it would have to repeat arguments in headers that can't be.
            let schema = item.get("inputSchema").and_then(Value::as_object);
            match schema.filter(|_| is_modern).and_then(wrong_param_headers) {
                Some(reason) => Err(reason),
                None => tool(server, index, item, notes),
            }
        },
    )
}

/// Reads each item by itself.
fn each<T>(
    kind: &str,
    most: usize,
    server: &Arc<str>,
    listed: &[Value],
    notes: &mut Vec<String>,
    read: impl Fn(&Arc<str>, usize, &Value, &mut Vec<String>) -> Result<T, String>,
) -> Vec<Arc<T>> {
    if listed.len() > most {
        let all = listed.len();
        notes.push(format!(
            "`{server}` lists {all} {kind}s; those after {most} were left out"
        ));
    }
    let mut items = Vec::new();
    for (index, item) in listed.iter().take(most).enumerate() {
        match read(server, index, item, notes) {
            Ok(item) => items.push(Arc::new(item)),
            Err(reason) => notes.push(format!(
                "the {kind} at place {} of `{server}` was left out: {reason}",
                index + 1
            )),
        }
    }
    items
}

/// What else is said of an item, besides what we know.
fn further(item: &Value, known: &[&str]) -> Map<String, Value> {
    let members = item.as_object().into_iter().flatten();
    let further = members.filter(|(key, _)| !known.contains(&key.as_str()));
    further
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Whether a name can be shown and called.
fn check_name(name: &str) -> Result<(), String> {
    if name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(format!(
            "its name has more than {LONGEST_NAME} characters, or characters that can't be shown"
        ));
    }
    Ok(())
}

fn tool(
    server: &Arc<str>,
    index: usize,
    item: &Value,
    notes: &mut Vec<String>,
) -> Result<Tool, String> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let name = text("name").ok_or("it has no name")?.to_owned();
    check_name(&name)?;
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
        further: further_of_tool(item),
        scopes: Vec::new(),
        requires: Vec::new(),
        timeout: Some(LONGEST_CALL),
        task: Some(TaskSupport::Late),
        converses: true,
        held: None,
        check,
        wraps_output,
        index,
        name,
    })
}

/// Icons and the like. Of the hints, those are told that we read; how a tool runs as a task is between the server and us.
fn further_of_tool(item: &Value) -> Map<String, Value> {
    let mut further = further(item, &TOOL);
    further.remove("annotations");
    further.remove("execution");
    further
}

fn meta(item: &Value) -> Map<String, Value> {
    let meta = item.get("_meta").and_then(Value::as_object);
    meta.cloned().unwrap_or_default()
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}
