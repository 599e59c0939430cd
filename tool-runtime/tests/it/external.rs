//! A provider of whatever tools an external server may have.

use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tool_runtime::{
    ArgumentError, Arguments, Check, Context, Enforcement, Hints, Message, Output, Prompt,
    Provider, Resource, Server, Tool, ToolError, definition::BoxFuture,
};

/// An external source of servers, as it comes.
#[derive(Debug)]
pub(crate) struct External(pub(crate) Vec<Arc<Server>>);

impl Provider for External {
    fn servers(&self) -> Vec<Arc<Server>> {
        self.0.clone()
    }

    fn call<'a>(
        &'a self,
        tool: &Tool,
        arguments: &Arguments<'_>,
        _: &'a Context,
    ) -> Result<BoxFuture<'a, Result<Output, ToolError>>, ArgumentError> {
        let text = format!("{} of {}: {}", tool.name, tool.server, arguments.json());
        Ok(Box::pin(async { Ok(Output::text(text)) }))
    }

    fn read<'a>(
        &'a self,
        resource: &'a Resource,
        _: &'a str,
        _: BTreeMap<String, String>,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async { Ok(Output::text(resource.uri.clone())) })
    }

    fn prompt<'a>(
        &'a self,
        prompt: &'a Prompt,
        _: BTreeMap<String, String>,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Vec<Message>, ToolError>> {
        Box::pin(async { Ok(vec![Message::user(prompt.name.as_str())]) })
    }
}

/// A tool of this schema.
pub(crate) fn external_tool(
    server: &str,
    name: &str,
    description: &str,
    schema: Value,
) -> Arc<Tool> {
    let Value::Object(schema) = schema else {
        panic!("a schema is an object")
    };
    let schema = Arc::new(schema);
    Arc::new(Tool {
        server: server.into(),
        name: name.to_owned(),
        title: None,
        description: description.to_owned(),
        check: Check::new(schema.clone(), Enforcement::Schema).unwrap(),
        input_schema: schema,
        output_schema: None,
        hints: Hints::default(),
        meta: Map::new(),
        further: Map::new(),
        scopes: Vec::new(),
        requires: Vec::new(),
        timeout: None,
        task: None,
        converses: true,
        held: None,
        wraps_output: false,
        index: 0,
    })
}

/// A server of tools, each with a name and a description.
pub(crate) fn external(name: &str, tools: &[(&str, &str)]) -> Arc<Server> {
    let tools = tools.iter().map(|(tool, description)| {
        external_tool(name, tool, description, json!({"type": "object"}))
    });
    Arc::new(Server {
        name: name.to_owned(),
        version: "0.1.0".to_owned(),
        description: String::new(),
        unavailable: None,
        tools: tools.collect(),
        resources: Vec::new(),
        unlisted: None,
        prompts: Vec::new(),
    })
}
