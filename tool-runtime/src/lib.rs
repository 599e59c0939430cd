#![doc = include_str!("guide.md")]

extern crate self as tool_runtime;

pub mod definition;
pub mod export;

mod argument;
mod background;
mod changes;
mod context;
mod dispatcher;
mod error;
mod golden;
mod limits;
mod name;
mod output;
mod provider;
mod registry;
mod schema;
mod selection;
mod streams;
mod view;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use argument::{Argument, Arguments};
pub use changes::{Change, Changes};
pub use context::{
    Caller, Cancellation, Client, ClientError, Context, Conversation, Identified, Later, Lend,
    Level, Log, Progress, ProgressReport, Root, Round, Scopes,
};
pub use definition::{BoxFuture, TaskSupport, ToolServer};
pub use dispatcher::{Dispatcher, Observer, Outcome, ReadError, Record};
pub use error::{ArgumentError, CallError, ProtocolError, ToolError, Violation};
#[doc(hidden)]
pub use golden::compare as __compare_tools;
pub use limits::{Limits, Results};
pub use name::{
    Ambiguous, LONGEST_TOOL_NAME, NAMESPACE, Names, Shown, Spelling, TooLong, ToolName, full_name,
    parse_full_name,
};
pub use output::{
    Body, Content, InputRequired, IntoMessages, IntoOutput, Json, Message, Output, Question, Role,
};
pub use provider::{
    Completion, Fillable, Hints, Prompt, PromptArgument, Provider, Resource, Server, Tool, Typed,
    Unavailable,
};
pub use registry::{Environment, MissingVariable, Registry, RegistryError};
pub use schema::{
    Adapted, AdaptedOutput, Check, Dialect, Enforcement, Repaired, SchemaError, SchemaNames, adapt,
    adapt_output, repair,
};
pub use selection::{Reach, Selection, SelectionError, ServerSelection};
pub use streams::{Stream, Streams};
pub use tool_macros::{prompt, resource, tool, tool_server};
pub use view::{Listed, Statistics, View};
