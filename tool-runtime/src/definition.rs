//! What `#[tool_server]` writes: servers, tools, resources and prompts as static data.

use crate::{
    argument::Arguments,
    context::Context,
    error::{ArgumentError, ToolError},
    name::ToolName,
    output::{Message, Output},
    registry::Environment,
};
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;
use std::{any::Any, fmt, future::Future, pin::Pin, time::Duration};

/// A future on the heap that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The state of a running server; the registry pairs it with its definition.
pub type Instance = dyn Any + Send + Sync;

/// How a definition is called: takes the arguments apart at once, then gives the future that runs the function.
pub type Call<T> = for<'a> fn(
    &'a Instance,
    &'a Context,
    &Arguments<'_>,
) -> Result<BoxFuture<'a, Result<T, ToolError>>, ArgumentError>;

/// How a server comes to life.
pub type Start = for<'a> fn(&'a Environment) -> BoxFuture<'a, Result<Box<Instance>, ToolError>>;

/// Where in the source something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Path of the file, as the compiler was given it.
    pub file: &'static str,
    /// Line, counted from 1.
    pub line: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A server as its author wrote it.
#[derive(Debug)]
pub struct ServerDefinition {
    /// Name, unique in a program: lower-case letters, digits and `-`.
    pub name: &'static str,
    /// Version, as the author counts it.
    pub version: &'static str,
    /// What the server is for; may be empty.
    pub description: &'static str,
    /// Where it is defined.
    pub location: Location,
    /// Its tools, in source order.
    pub tools: &'static [ToolDefinition],
    /// Its resources, in source order.
    pub resources: &'static [ResourceDefinition],
    /// Its prompts, in source order.
    pub prompts: &'static [PromptDefinition],
}

/// A definition together with the way to start its server; what `inventory` collects.
#[derive(Debug)]
pub struct Linked {
    /// The server.
    pub definition: &'static ServerDefinition,
    /// How it starts.
    pub start: Start,
}
inventory::collect!(Linked);

/// A type whose methods are tools. Implemented by `#[tool_server]`.
pub trait ToolServer: Any + Send + Sync {
    /// What the server offers.
    const DEFINITION: &'static ServerDefinition;
}

/// A server that the registry can make by itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be registered automatically, because it has no `Default`",
    label = "the registry doesn't know how to create this server",
    note = "implement `Default` for `{Self}`, or write `#[tool_server(.., manual)]` and add the instance with `Registry::with`",
    note = "a server that needs the environment has `fn start(environment: &Environment)` and says `#[tool_server(.., start)]`"
)]
pub trait SelfStarting: Sized {
    /// Makes the server.
    fn make() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> SelfStarting for T {
    fn make() -> Self {
        T::default()
    }
}

/// A tool as its author wrote it.
#[derive(Debug)]
pub struct ToolDefinition {
    /// Server and tool name.
    pub name: ToolName,
    /// What the model reads to decide when to use it.
    pub description: &'static str,
    /// Hints for the engine.
    pub annotations: Annotations,
    /// What the model sends.
    pub arguments: Input,
    /// The shape of structured output, where the return type has one.
    pub output_schema: fn() -> Option<Schema>,
    /// Whether it may talk back while it runs (progress, log, questions to the client).
    pub converses: bool,
    /// What to use instead, for a tool that should no longer be used.
    pub deprecated: Option<&'static str>,
    /// How long one call may take, where the author knows better than the host.
    pub timeout: Option<Duration>,
    /// Whether it may run as a task, which the client asks for its result later.
    pub task: Option<TaskSupport>,
    /// What the caller must be allowed to do.
    pub scopes: &'static [&'static str],
    /// What the caller must bring.
    pub requires: &'static [Requirement],
    /// Arguments of good calls.
    pub examples: &'static [fn() -> Value],
    /// Further facts for clients, published as `_meta`.
    pub meta: &'static [Fact],
    /// How it is called.
    pub call: Call<Output>,
}

/// How a tool goes with the protocol's tasks: the client gets the number of a task at once, and asks for its result
/// later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskSupport {
    /// It runs as a task for clients that know tasks, and as a plain call for others.
    Optional,
    /// It runs only as a task; a client that doesn't know tasks can't call it.
    Required,
    /// It runs only as a task, which begins when it has its answers: what it asks, it asks before.
    AsksFirst,
    /// It decides while it runs, by [`Context::later`](crate::Context::later).
    Late,
}

/// A further fact about a tool: its key, and what makes its value.
pub type Fact = (&'static str, fn() -> Value);

/// Something that a caller must bring before a tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requirement {
    /// The call must come from a known project.
    Project,
}

/// Hints about a tool; `None` says nothing. Engines may use them to decide whether to ask the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// A name for people.
    pub title: Option<&'static str>,
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Calling it twice is as good as once.
    pub idempotent: Option<bool>,
    /// It reaches out to a world that it does not own.
    pub open_world: Option<bool>,
}

/// What a function takes from the model.
#[derive(Debug)]
pub enum Input {
    /// One property per argument.
    Arguments(&'static [ArgumentDefinition]),
    /// One type that is the whole object: `#[arg(flatten)]`.
    Whole(fn(&mut SchemaGenerator) -> Schema),
}

/// One argument, as data: the schema is built from it when the program starts.
#[derive(Debug)]
pub struct ArgumentDefinition {
    /// Name that the model sees.
    pub name: &'static str,
    /// What the model reads about it; may be empty.
    pub description: &'static str,
    /// Whether a call must have it.
    pub required: bool,
    /// The value of an argument that was not sent.
    pub default: Option<fn() -> Value>,
    /// The schema of its type, an outer `Option` taken off.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// The rules of `#[arg]`.
    pub rules: &'static [Rule],
}

/// A rule of `#[arg]` that goes into the schema, and is enforced because the schema is.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// The least value.
    Minimum(fn() -> Value),
    /// The greatest value.
    Maximum(fn() -> Value),
    /// The value that is just too great.
    ExclusiveMaximum(fn() -> Value),
    /// The least length, in the unit of the type.
    MinLength(Measure, usize),
    /// The greatest length, in the unit of the type.
    MaxLength(Measure, usize),
    /// A regular expression (ECMA 262) that the text must match somewhere.
    Pattern(&'static str),
    /// A well-known form of text.
    Format(Format),
    /// A value for illustration.
    Example(fn() -> Value),
    /// The client repeats the value in the HTTP header `Mcp-Param-` with this name.
    Header(&'static str),
}

/// What a length counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Characters of a text.
    Characters,
    /// Items of a list or set.
    Items,
    /// Entries of a map.
    Entries,
}

/// The forms of text that `#[arg(format = "…")]` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An e-mail address.
    Email,
    /// An absolute URI (RFC 3986).
    Uri,
    /// A date, `2026-07-28` (RFC 3339).
    Date,
    /// A date with time and offset (RFC 3339).
    DateTime,
    /// A UUID (RFC 4122).
    Uuid,
}

impl Format {
    /// Returns the word of JSON Schema for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Uri => "uri",
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Uuid => "uuid",
        }
    }
}

/// A resource as its author wrote it.
#[derive(Debug)]
pub struct ResourceDefinition {
    /// A URI, or a template whose variables (`{name}`) are the arguments.
    pub uri: &'static str,
    /// Name, unique in its server.
    pub name: &'static str,
    /// A name for people.
    pub title: Option<&'static str>,
    /// What it holds.
    pub description: &'static str,
    /// MIME type of its text or bytes.
    pub mime_type: Option<&'static str>,
    /// The variables of the template.
    pub arguments: &'static [ArgumentDefinition],
    /// How it is read.
    pub call: Call<Output>,
}

/// A prompt as its author wrote it.
#[derive(Debug)]
pub struct PromptDefinition {
    /// Name, unique in its server.
    pub name: &'static str,
    /// A name for people.
    pub title: Option<&'static str>,
    /// What it asks for.
    pub description: &'static str,
    /// What the user fills in.
    pub arguments: &'static [ArgumentDefinition],
    /// How it is made.
    pub call: Call<Vec<Message>>,
}
