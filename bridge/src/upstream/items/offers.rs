//! The resources and the prompts of a server.

use super::{check_name, each, further, shortened};
use serde_json::{Map, Value};
use std::sync::Arc;
use tool_runtime::{Prompt, PromptArgument, Resource};

/// The most resources and the most prompts of a server.
const MOST: usize = 10_000;

/// The most characters of an address.
const LONGEST_URI: usize = 4_096;

/// The members of a resource that we know.
const RESOURCE: [&str; 6] = [
    "uri",
    "uriTemplate",
    "name",
    "title",
    "description",
    "mimeType",
];

/// The members of a prompt that we know.
const PROMPT: [&str; 4] = ["name", "title", "description", "arguments"];

/// Reads the resources of a server: those with an address, then the families of addresses.
pub(in crate::upstream) fn resources(
    server: &Arc<str>,
    resources: &[Value],
    templates: &[Value],
    notes: &mut Vec<String>,
) -> Vec<Arc<Resource>> {
    let one = |server: &Arc<str>, index, item: &Value, _: &mut Vec<String>| {
        resource(server, "uri", index, item)
    };
    let family = |server: &Arc<str>, index: usize, item: &Value, _: &mut Vec<String>| {
        resource(server, "uriTemplate", index + MOST, item)
    };
    let mut all = each("resource", MOST, server, resources, notes, one);
    let kind = "resource template";
    all.extend(each(kind, MOST, server, templates, notes, family));
    all
}

fn resource(
    server: &Arc<str>,
    address: &str,
    index: usize,
    item: &Value,
) -> Result<Resource, String> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let uri = text(address).filter(|it| !it.is_empty());
    let uri = uri.ok_or_else(|| format!("it has no `{address}`"))?;
    if uri.len() > LONGEST_URI || uri.chars().any(char::is_control) {
        return Err(format!(
            "its address has more than {LONGEST_URI} bytes, or characters that can't be shown"
        ));
    }
    let name = text("name").unwrap_or(uri);
    check_name(name)?;
    let variables = uri.split('{').skip(1).filter_map(|it| it.split_once('}'));
    let variables = variables.flat_map(|(names, _)| names.split(','));
    Ok(Resource {
        server: server.clone(),
        name: name.to_owned(),
        title: text("title").map(shortened),
        description: text("description").map(shortened).unwrap_or_default(),
        mime_type: text("mimeType").map(str::to_owned),
        variables: variables.map(|it| argument(it, "", true)).collect(),
        further: further(item, &RESOURCE),
        uri: uri.to_owned(),
        index,
    })
}

/// What stands for the resources of a server that are in no list.
pub(in crate::upstream) fn unlisted(server: &Arc<str>) -> Arc<Resource> {
    Arc::new(Resource {
        server: server.clone(),
        uri: String::new(),
        name: String::new(),
        title: None,
        description: String::new(),
        mime_type: None,
        variables: Vec::new(),
        further: Map::new(),
        index: 0,
    })
}

/// Reads the prompts of a server.
pub(in crate::upstream) fn prompts(
    server: &Arc<str>,
    listed: &[Value],
    notes: &mut Vec<String>,
) -> Vec<Arc<Prompt>> {
    each("prompt", MOST, server, listed, notes, prompt)
}

fn prompt(
    server: &Arc<str>,
    index: usize,
    item: &Value,
    _: &mut Vec<String>,
) -> Result<Prompt, String> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let name = text("name").ok_or("it has no name")?;
    check_name(name)?;
    let arguments = item.get("arguments").and_then(Value::as_array);
    let arguments = arguments.into_iter().flatten().filter_map(|it| {
        let text = |key: &str| it.get(key).and_then(Value::as_str);
        let required = it.get("required") == Some(&Value::Bool(true));
        let description = text("description").unwrap_or_default();
        Some(argument(text("name")?, description, required))
    });
    Ok(Prompt {
        server: server.clone(),
        name: name.to_owned(),
        title: text("title").map(shortened),
        description: text("description").map(shortened).unwrap_or_default(),
        arguments: arguments.collect(),
        further: further(item, &PROMPT),
        index,
    })
}

fn argument(name: &str, description: &str, required: bool) -> PromptArgument {
    PromptArgument {
        name: name.to_owned(),
        description: shortened(description),
        required,
        values: Vec::new(),
    }
}
