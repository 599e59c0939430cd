//! Write a tool once, as an annotated async function; call it from every agent.

mod argument;
mod context;
pub mod definition;
mod error;
mod name;
mod output;
mod registry;
mod schema;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use argument::{Argument, Arguments};
pub use context::{
    Caller, Cancellation, Client, ClientError, Context, Conversation, Identified, Lend, Level, Log,
    Progress, ProgressReport, Root, Scopes,
};
pub use error::{ArgumentError, CallError, ToolError, Violation};
pub use name::ToolName;
pub use output::{
    Body, Content, InputRequest, InputRequired, IntoMessages, IntoOutput, Json, Message, Output,
    Role,
};
pub use registry::Environment;
pub use tool_macros::{prompt, resource, tool, tool_server};
