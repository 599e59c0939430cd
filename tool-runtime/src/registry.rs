//! The servers linked into this program, as a provider.

use crate::{
    argument::Arguments,
    context::Context,
    definition::{
        ArgumentDefinition, BoxFuture, Instance, Linked, Location, PromptDefinition,
        ResourceDefinition, ServerDefinition, ToolDefinition, ToolServer,
    },
    error::{ArgumentError, ToolError},
    output::{Message, Output},
    provider::{Hints, Prompt, PromptArgument, Provider, Resource, Server, Tool, Unavailable},
    schema::{self, Check, SchemaError},
};
use futures_util::{FutureExt, future::join_all};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use thiserror::Error;

/// How long a server may take to start, before it counts as unavailable.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The environment variables that servers may read when they start. Prints only their names.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Makes an environment of these variables.
    pub fn new<N: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let owned = variables.into_iter().map(|(n, v)| (n.into(), v.into()));
        Self(owned.collect())
    }

    /// Returns the value of a variable, unless it is missing or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|it| !it.is_empty())
    }

    /// Returns the value of a variable that a server can't do without.
    pub fn required(&self, name: &str) -> Result<&str, MissingVariable> {
        self.get(name).ok_or_else(|| MissingVariable {
            name: name.to_owned(),
        })
    }

    /// Returns all variables, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A variable that a server needs and the environment lacks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the environment variable `{name}` is not set")]
pub struct MissingVariable {
    /// Name of the variable.
    pub name: String,
}

/// Why the servers of a program can't be put together. Each is a mistake in the program.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Two servers have one name.
    #[error("two servers are called `{name}`: {first} and {second}; rename one of them")]
    DuplicateServer {
        /// The name.
        name: String,
        /// Where one is defined.
        first: Location,
        /// Where the other is defined.
        second: Location,
    },
    /// The schema of a tool, resource or prompt can't be enforced.
    #[error("the schema of `{item}` ({location}) can't be used")]
    Schema {
        /// Name of the tool or prompt, or URI of the resource.
        item: String,
        /// Where its server is defined.
        location: Location,
        /// What is wrong with it.
        source: SchemaError,
    },
}

/// The servers linked into this program, and those added by hand.
#[derive(Default)]
pub struct Registry {
    servers: BTreeMap<&'static str, (&'static ServerDefinition, Arc<Server>)>,
    /// In the order in which the servers were added, as are the tools, resources and prompts.
    states: Vec<Result<Box<Instance>, Unavailable>>,
    tools: Vec<(usize, &'static ToolDefinition)>,
    resources: Vec<(usize, &'static ResourceDefinition, Check)>,
    prompts: Vec<(usize, &'static PromptDefinition, Check)>,
}

impl Registry {
    /// Starts every server that is linked into this program. One that can't start is offered as unavailable.
    ///
    /// Two servers of one name, in whichever crates, are an error that says where both are:
    ///
    /// ```standalone_crate
    /// use tool_runtime::{Environment, Registry, tool_server};
    ///
    /// #[tool_server(name = "git", version = "1.0.0")]
    /// mod git {
    ///     /// Show what changed.
    ///     #[tool]
    ///     pub fn status() {}
    /// }
    ///
    /// #[tool_server(name = "git", version = "2.0.0")]
    /// mod another {
    ///     /// Show what changed.
    ///     #[tool]
    ///     pub fn status() {}
    /// }
    ///
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # runtime.block_on(async {
    /// let error = Registry::linked(&Environment::default()).await.unwrap_err();
    /// let error = error.to_string();
    /// assert!(error.starts_with("two servers are called `git`: "));
    /// assert!(error.ends_with("; rename one of them"));
    /// # });
    /// ```
    pub async fn linked(environment: &Environment) -> Result<Self, RegistryError> {
        let mut linked: Vec<&Linked> = inventory::iter::<Linked>.into_iter().collect();
        linked.sort_by_key(|it| it.definition.name);
        for (first, second) in linked.iter().zip(linked.iter().skip(1)) {
            if first.definition.name == second.definition.name {
                return Err(duplicate(first.definition.location, second.definition));
            }
        }
        let states = join_all(linked.iter().map(|it| start(it, environment))).await;
        let mut registry = Self::default();
        for (it, state) in linked.iter().zip(states) {
            registry.add(it.definition, state)?;
        }
        Ok(registry)
    }

    /// Makes a registry without any server.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Adds a server that the program made itself.
    pub fn with<S: ToolServer>(mut self, server: S) -> Result<Self, RegistryError> {
        self.add(S::DEFINITION, Ok(Box::new(server)))?;
        Ok(self)
    }

    /// Returns the definitions of all servers, by name.
    pub fn definitions(&self) -> impl Iterator<Item = &'static ServerDefinition> {
        self.servers.values().map(|(definition, _)| *definition)
    }

    fn add(
        &mut self,
        definition: &'static ServerDefinition,
        state: Result<Box<Instance>, Unavailable>,
    ) -> Result<(), RegistryError> {
        if let Some((first, _)) = self.servers.get(definition.name) {
            return Err(duplicate(first.location, definition));
        }
        let index = self.states.len();
        let name: Arc<str> = definition.name.into();
        let unusable = |item: String| {
            move |source| RegistryError::Schema {
                item,
                location: definition.location,
                source,
            }
        };
        let mut tools = Vec::new();
        for it in definition.tools {
            let tool = tool(it, name.clone(), self.tools.len());
            tools.push(Arc::new(tool.map_err(unusable(it.name.to_string()))?));
            self.tools.push((index, it));
        }
        let mut resources = Vec::new();
        for it in definition.resources {
            let (check, variables) =
                to_fill_in(it.arguments).map_err(unusable(it.uri.to_owned()))?;
            let resource = resource(it, name.clone(), variables, self.resources.len());
            resources.push(Arc::new(resource));
            self.resources.push((index, it, check));
        }
        let mut prompts = Vec::new();
        for it in definition.prompts {
            let (check, arguments) =
                to_fill_in(it.arguments).map_err(unusable(it.name.to_owned()))?;
            let prompt = prompt(it, name.clone(), arguments, self.prompts.len());
            prompts.push(Arc::new(prompt));
            self.prompts.push((index, it, check));
        }
        let server = Server {
            name: definition.name.to_owned(),
            version: definition.version.to_owned(),
            description: definition.description.to_owned(),
            unavailable: state.as_ref().err().cloned(),
            tools,
            resources,
            unlisted: None,
            prompts,
        };
        self.servers
            .insert(definition.name, (definition, Arc::new(server)));
        self.states.push(state);
        Ok(())
    }

    /// The state of a server; a call of one that could not start gets the reason.
    fn instance(&self, server: usize) -> Result<&Instance, ToolError> {
        match &self.states[server] {
            Ok(instance) => Ok(&**instance),
            Err(unavailable) => Err(unavailable.reason.clone().into()),
        }
    }
}

impl Provider for Registry {
    fn servers(&self) -> Vec<Arc<Server>> {
        self.servers.values().map(|(_, it)| it.clone()).collect()
    }

    fn call<'a>(
        &'a self,
        tool: &Tool,
        arguments: &Arguments<'_>,
        context: &'a Context,
    ) -> Result<BoxFuture<'a, Result<Output, ToolError>>, ArgumentError> {
        let (server, definition) = self.tools[tool.index];
        match self.instance(server) {
            Ok(instance) => (definition.call)(instance, context, arguments),
            Err(error) => Ok(Box::pin(async { Err(error) })),
        }
    }

    fn read<'a>(
        &'a self,
        resource: &'a Resource,
        _: &'a str,
        variables: BTreeMap<String, String>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let (server, definition, check) = &self.resources[resource.index];
            let sent = from_text(check, &variables)?;
            let arguments = check.accept(&sent).ok_or("its arguments don't fit")?;
            (definition.call)(self.instance(*server)?, context, &arguments)?.await
        })
    }

    fn prompt<'a>(
        &'a self,
        prompt: &'a Prompt,
        arguments: BTreeMap<String, String>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Vec<Message>, ToolError>> {
        Box::pin(async move {
            let (server, definition, check) = &self.prompts[prompt.index];
            let sent = from_text(check, &arguments)?;
            let arguments = check.accept(&sent).ok_or("its arguments don't fit")?;
            (definition.call)(self.instance(*server)?, context, &arguments)?.await
        })
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.definitions().map(|it| it.name);
        f.debug_list().entries(names).finish()
    }
}

fn duplicate(first: Location, second: &ServerDefinition) -> RegistryError {
    RegistryError::DuplicateServer {
        name: second.name.to_owned(),
        first,
        second: second.location,
    }
}

async fn start(linked: &Linked, environment: &Environment) -> Result<Box<Instance>, Unavailable> {
    let starting = AssertUnwindSafe((linked.start)(environment)).catch_unwind();
    let (reason, variable) = match tokio::time::timeout(START_LIMIT, starting).await {
        Ok(Ok(Ok(instance))) => return Ok(instance),
        Ok(Ok(Err(error))) => {
            let missing = error.downcast_ref::<MissingVariable>();
            let variable = missing.map(|it| it.name.clone());
            (error.to_string(), variable)
        }
        Ok(Err(_)) => ("it panicked while it started".to_owned(), None),
        Err(_) => {
            let limit = START_LIMIT.as_secs();
            (format!("it had not started after {limit} s"), None)
        }
    };
    Err(Unavailable { reason, variable })
}

fn tool(definition: &ToolDefinition, server: Arc<str>, index: usize) -> Result<Tool, SchemaError> {
    let ToolDefinition { annotations, .. } = definition;
    let (mut input_schema, rules) = schema::input(&definition.arguments);
    let examples: Vec<Value> = definition.examples.iter().map(|it| it()).collect();
    if !examples.is_empty() {
        input_schema.insert("examples".to_owned(), examples.into());
    }
    let input_schema = Arc::new(input_schema);
    let check = Check::new(input_schema.clone(), rules)?;
    check.check_defaults()?;
    let (output_schema, wraps_output) = match (definition.output_schema)() {
        Some(output) => {
            let (schema, wraps) = schema::output(output);
            (Some(Arc::new(schema)), wraps)
        }
        None => (None, false),
    };
    let description = match definition.deprecated {
        Some(instead) => format!("Deprecated: {instead}.\n{}", definition.description),
        None => definition.description.to_owned(),
    };
    let meta = definition
        .meta
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value()));
    Ok(Tool {
        server,
        name: definition.name.tool.to_owned(),
        title: annotations.title.map(str::to_owned),
        description,
        check,
        input_schema,
        output_schema,
        hints: Hints {
            read_only: annotations.read_only,
            destructive: annotations.destructive,
            idempotent: annotations.idempotent,
            open_world: annotations.open_world,
        },
        meta: meta.collect(),
        further: Map::new(),
        scopes: definition
            .scopes
            .iter()
            .map(|it| (*it).to_owned())
            .collect(),
        requires: definition.requires.to_vec(),
        timeout: definition.timeout,
        task: definition.task,
        converses: definition.converses,
        held: None,
        wraps_output,
        index,
    })
}

fn resource(
    definition: &ResourceDefinition,
    server: Arc<str>,
    variables: Vec<PromptArgument>,
    index: usize,
) -> Resource {
    Resource {
        server,
        uri: definition.uri.to_owned(),
        name: definition.name.to_owned(),
        title: definition.title.map(str::to_owned),
        description: definition.description.to_owned(),
        mime_type: definition.mime_type.map(str::to_owned),
        variables,
        further: Map::new(),
        index,
    }
}

fn prompt(
    definition: &PromptDefinition,
    server: Arc<str>,
    arguments: Vec<PromptArgument>,
    index: usize,
) -> Prompt {
    Prompt {
        server,
        name: definition.name.to_owned(),
        title: definition.title.map(str::to_owned),
        description: definition.description.to_owned(),
        arguments,
        further: Map::new(),
        index,
    }
}

/// Returns how arguments that come as text are checked, and what is offered of them.
fn to_fill_in(
    definitions: &[ArgumentDefinition],
) -> Result<(Check, Vec<PromptArgument>), SchemaError> {
    let (schema, rules) = schema::arguments(definitions);
    let arguments = definitions.iter().map(|it| PromptArgument {
        name: it.name.to_owned(),
        description: it.description.to_owned(),
        required: it.required,
        values: schema::values_of(&schema["properties"][it.name]),
    });
    let arguments = arguments.collect();
    let check = Check::new(Arc::new(schema), rules)?;
    check.check_defaults()?;
    Ok((check, arguments))
}

/// Makes the JSON of arguments that came as text (variables of a URI, arguments of a prompt): each becomes what its
/// schema wants.
fn from_text(check: &Check, texts: &BTreeMap<String, String>) -> Result<String, ToolError> {
    let sent = texts
        .iter()
        .map(|(name, text)| (name.clone(), text.clone().into()));
    let sent = Value::Object(sent.collect()).to_string();
    match check.repair(&sent) {
        Ok(repaired) => Ok(repaired.json),
        Err(violations) => {
            let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
            Err(lines.join("; ").into())
        }
    }
}
