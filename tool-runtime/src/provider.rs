//! Where tools come from: a provider offers servers, each with tools, resources and prompts.

use crate::{
    argument::Arguments,
    context::{Caller, Context},
    definition::{BoxFuture, Requirement, TaskSupport},
    error::{ArgumentError, ToolError},
    output::{Message, Output},
    schema::Check,
};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// A source of servers. The dispatcher treats all sources alike: names, selection, limits and records are its own.
pub trait Provider: fmt::Debug + Send + Sync {
    /// Returns the servers that it offers now.
    fn servers(&self) -> Vec<Arc<Server>>;

    /// Says whether it offers other servers in some workspaces: that of a caller is its project. The default is no.
    fn differs_by_workspace(&self) -> bool {
        false
    }

    /// Returns the servers that it offers in a workspace now.
    fn servers_in(&self, _: &str) -> Vec<Arc<Server>> {
        self.servers()
    }

    /// Finds out what it offers in a workspace, if it doesn't know; says whether it knows more than before.
    fn enter<'a>(&'a self, _: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }

    /// Takes the arguments at once, and gives the future that runs the tool.
    fn call<'a>(
        &'a self,
        tool: &Tool,
        arguments: &Arguments<'_>,
        context: &'a Context,
    ) -> Result<BoxFuture<'a, Result<Output, ToolError>>, ArgumentError>;

    /// Reads a resource by its address; `variables` are those of its URI template.
    fn read<'a>(
        &'a self,
        resource: &'a Resource,
        uri: &'a str,
        variables: BTreeMap<String, String>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Output, ToolError>>;

    /// Makes the messages of a prompt.
    fn prompt<'a>(
        &'a self,
        prompt: &'a Prompt,
        arguments: BTreeMap<String, String>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Vec<Message>, ToolError>>;

    /// Returns what to offer a user who types into an argument of a prompt or a variable of an address. The default is
    /// those of the item's own values that begin with what was typed.
    fn complete<'a>(
        &'a self,
        item: Fillable<'a>,
        typed: &'a Typed,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Completion, ToolError>> {
        let completion = Completion::of(item.arguments(), typed);
        Box::pin(async move { Ok(completion) })
    }

    /// Says that somebody wants to hear of changes of a resource. The default is nothing: who changes a resource tells
    /// so by [`Changes`](crate::Changes).
    fn watch(&self, _: &Resource, _: &str, _: &Caller) {}
}

/// Something that a user fills in.
#[derive(Clone, Copy, Debug)]
pub enum Fillable<'a> {
    /// The arguments of a prompt.
    Prompt(&'a Prompt),
    /// The variables of an address.
    Resource(&'a Resource),
}

impl<'a> Fillable<'a> {
    /// Returns what there is to fill in.
    pub fn arguments(self) -> &'a [PromptArgument] {
        match self {
            Self::Prompt(prompt) => &prompt.arguments,
            Self::Resource(resource) => &resource.variables,
        }
    }
}

/// What a user has typed so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// The argument or variable.
    pub argument: String,
    /// The beginning of its value.
    pub value: String,
    /// The arguments that are filled in already.
    pub others: BTreeMap<String, String>,
}

/// What is offered to a user who types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The values: at most 100, as the protocol wants.
    pub values: Vec<String>,
    /// How many there are in all, where that is known.
    pub total: Option<u64>,
    /// Whether there are more.
    pub has_more: bool,
}

impl Completion {
    /// How many values there are at most: the protocol's limit.
    pub const MOST: usize = 100;

    fn of(arguments: &[PromptArgument], typed: &Typed) -> Self {
        let start = typed.value.to_lowercase();
        let argument = arguments.iter().find(|it| it.name == typed.argument);
        let values = argument.map(|it| it.values.as_slice()).unwrap_or_default();
        let fitting = values
            .iter()
            .filter(|it| it.to_lowercase().starts_with(&start));
        let fitting: Vec<String> = fitting.cloned().collect();
        let total = fitting.len();
        Self {
            values: fitting.into_iter().take(Self::MOST).collect(),
            total: u64::try_from(total).ok(),
            has_more: total > Self::MOST,
        }
    }
}

/// A server and what it offers.
#[derive(Debug)]
pub struct Server {
    /// Its name, unique among all providers.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for; may be empty.
    pub description: String,
    /// Why it can't be called, if it can't.
    pub unavailable: Option<Unavailable>,
    /// Its tools, in its own order.
    pub tools: Vec<Arc<Tool>>,
    /// Its resources, in its own order.
    pub resources: Vec<Arc<Resource>>,
    /// What stands for its resources that are in no list, if it may have some: its address is empty.
    pub unlisted: Option<Arc<Resource>>,
    /// Its prompts, in its own order.
    pub prompts: Vec<Arc<Prompt>>,
}

/// Why a server can't be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// What went wrong, and what to do.
    pub reason: String,
    /// The environment variable that it lacks, if that is why.
    pub variable: Option<String>,
}

/// A tool, as it is offered.
#[derive(Debug)]
pub struct Tool {
    /// Name of its server.
    pub server: Arc<str>,
    /// Name in its server.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What a model reads about it.
    pub description: String,
    /// The schema of its arguments: published, and enforced before every call.
    pub input_schema: Arc<Map<String, Value>>,
    /// The schema of its structured output; always of an object.
    pub output_schema: Option<Arc<Map<String, Value>>>,
    /// Hints for the engine.
    pub hints: Hints,
    /// Further facts for clients, published as `_meta`.
    pub meta: Map<String, Value>,
    /// Whatever else its server says of it, published as it is: icons, for example.
    pub further: Map<String, Value>,
    /// What the caller must be allowed to do.
    pub scopes: Vec<String>,
    /// What the caller must bring.
    pub requires: Vec<Requirement>,
    /// How long one call may take, where its author knows better than the host.
    pub timeout: Option<Duration>,
    /// Whether it may run as a task, which the client asks for its result later.
    pub task: Option<TaskSupport>,
    /// Whether it may talk while it runs.
    pub converses: bool,
    /// Why it is neither listed nor called, and what to do, where its provider holds it back.
    pub held: Option<String>,
    /// How its arguments are checked.
    pub check: Check,
    /// Whether structured output must be put under `result`, since it is no object.
    pub wraps_output: bool,
    /// The provider's own number for it.
    pub index: usize,
}

/// Hints about a tool; `None` says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Calling it twice is as good as once.
    pub idempotent: Option<bool>,
    /// It reaches out to a world that it does not own.
    pub open_world: Option<bool>,
}

/// A resource or a family of resources, as it is offered.
#[derive(Debug)]
pub struct Resource {
    /// Name of its server.
    pub server: Arc<str>,
    /// A URI, or a template with variables (`{name}`).
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it holds.
    pub description: String,
    /// MIME type of its text or bytes.
    pub mime_type: Option<String>,
    /// The variables of its template.
    pub variables: Vec<PromptArgument>,
    /// Whatever else its server says of it, published as it is: its size, for example.
    pub further: Map<String, Value>,
    /// The provider's own number for it.
    pub index: usize,
}

impl Resource {
    /// Says whether the URI has variables.
    pub fn is_template(&self) -> bool {
        self.uri.contains('{')
    }

    /// Returns how many bytes of the URI are the same in all of this family.
    pub(crate) fn literals(&self) -> usize {
        let variables = self.uri.split('{').skip(1);
        let variables = variables.filter_map(|it| it.find('}').map(|end| end + 2));
        self.uri.len() - variables.sum::<usize>()
    }

    /// Returns the variables of a URI of this family; `None` if it is of another.
    ///
    /// A variable is never empty and holds no `/` unless it is the last; it is percent-decoded.
    pub fn matches(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        let mut variables = BTreeMap::new();
        let (mut template, mut rest) = (self.uri.as_str(), uri);
        while let Some((literal, after)) = template.split_once('{') {
            rest = rest.strip_prefix(literal)?;
            let (name, next) = after.split_once('}')?;
            let literal = next.split('{').next().unwrap_or(next);
            let end = if literal.is_empty() {
                rest.len()
            } else if next.contains('{') {
                rest.find(literal)?
            } else {
                rest.len().checked_sub(literal.len())?
            };
            let value = rest.get(..end)?;
            let is_last = next.is_empty();
            if value.is_empty() || (!is_last && value.contains('/')) {
                return None;
            }
            variables.insert(name.to_owned(), percent_decoded(value)?);
            rest = &rest[end..];
            template = next;
        }
        (rest == template).then_some(variables)
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            let [high, low] = [digits[0], digits[1]].map(|it| char::from(it).to_digit(16));
            bytes.push(u8::try_from(high? * 16 + low?).ok()?);
            rest = after;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// A prompt, as it is offered.
#[derive(Debug)]
pub struct Prompt {
    /// Name of its server.
    pub server: Arc<str>,
    /// Name in its server.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it asks for.
    pub description: String,
    /// What the user fills in.
    pub arguments: Vec<PromptArgument>,
    /// Whatever else its server says of it, published as it is.
    pub further: Map<String, Value>,
    /// The provider's own number for it.
    pub index: usize,
}

/// Something that the user fills in, for a prompt or the address of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it means; may be empty.
    pub description: String,
    /// Whether it can't be left out.
    pub required: bool,
    /// Values to offer while the user types.
    pub values: Vec<String>,
}
