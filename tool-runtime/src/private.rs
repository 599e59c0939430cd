//! For generated code only; not public API.

pub use crate::{
    argument::{Arguments, InHeader, Measured, Ranged, Sent, Text, argument},
    context::{Context, Lend},
    definition::{
        Annotations, ArgumentDefinition, BoxFuture, Format, Input, Instance, Linked, Location,
        Measure, PromptDefinition, Requirement, ResourceDefinition, Rule, SelfStarting,
        ServerDefinition, TaskSupport, ToolDefinition, ToolServer,
    },
    error::{ArgumentError, ToolError},
    name::ToolName,
    output::{Failure, IntoMessages, IntoOutput, Message, Output},
    registry::Environment,
};
pub use inventory;
pub use serde_json::Value;
pub use std::{
    boxed::Box,
    option::Option::{self, None, Some},
    result::Result::{self, Ok},
    time::Duration,
    vec::Vec,
};

use schemars::Schema;
use serde::Serialize;
use std::future::Future;

/// A call whose arguments are taken apart, and which runs in the future.
pub type Called<'a, T> = Result<BoxFuture<'a, Result<T, ToolError>>, ArgumentError>;

/// A server that starts.
pub type Started<'a> = BoxFuture<'a, Result<Box<Instance>, ToolError>>;

/// What a function returns: how it is described, and what becomes of it.
///
/// One function gives both, so that rustc tells only once of a type that can't be returned.
#[derive(Debug)]
pub struct Returned<T, O> {
    /// Describes it.
    pub schema: fn() -> Option<Schema>,
    convert: fn(T) -> Result<O, ToolError>,
}

/// Speaks of a tool or resource that returns this type.
pub const fn output<T: IntoOutput>() -> Returned<T, Output> {
    Returned {
        schema: T::schema,
        convert: T::into_output,
    }
}

/// Speaks of a prompt that returns this type.
pub const fn messages<T: IntoMessages>() -> Returned<T, Vec<Message>> {
    Returned {
        schema: || None,
        convert: T::into_messages,
    }
}

impl<T, O> Returned<T, O> {
    /// Waits for an async function.
    pub fn after<'a, F>(self, running: F) -> BoxFuture<'a, Result<O, ToolError>>
    where
        F: Future<Output = T> + Send + 'a,
        T: 'a,
        O: 'a,
    {
        Box::pin(async move { (self.convert)(running.await) })
    }

    /// Runs a sync function.
    pub fn of<'a, F>(self, function: F) -> BoxFuture<'a, Result<O, ToolError>>
    where
        F: FnOnce() -> T + Send + 'a,
        T: 'a,
        O: 'a,
    {
        Box::pin(async move { (self.convert)(function()) })
    }
}

/// A value that stands in the source and goes into the schema.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` can't be written into the schema",
    label = "can't become JSON",
    note = "a default, a bound or an example needs `#[derive(Serialize)]`"
)]
pub trait Written: Serialize {}
#[diagnostic::do_not_recommend]
impl<T: Serialize> Written for T {}

/// A default, a bound or an example as JSON.
pub fn value<T: Written>(value: T) -> Value {
    // By way of text, `0.1_f32` stays 0.1; as a value it would be 0.10000000149011612.
    serde_json::to_string(&value)
        .and_then(|json| serde_json::from_str(&json))
        .expect("what stands in `#[arg]` and `#[tool]` serializes")
}

/// A type that a text in the source stands for.
#[diagnostic::on_unimplemented(
    message = "a text is no `{Self}`",
    label = "expected a `{Self}`",
    note = "where a type is made of text (`From<&str>`), the text alone is enough"
)]
pub trait MadeOfText: From<&'static str> {}
#[diagnostic::do_not_recommend]
impl<T: From<&'static str>> MadeOfText for T {}

/// Makes a value of a text in the source.
pub fn made_of<T: MadeOfText>(text: &'static str) -> T {
    T::from(text)
}

/// Asserts at compile time that a range can bound a type.
pub const fn ranged<T: Ranged>() {}

/// Asserts at compile time that a type is text.
pub const fn text<T: Text + ?Sized>() {}

/// Asserts at compile time that a header can repeat a type.
pub const fn in_header<T: InHeader>() {}

/// The state of a server.
pub fn downcast<T: 'static>(instance: &Instance) -> &T {
    instance
        .downcast_ref()
        .expect("the registry pairs each definition with its own type")
}

/// Starts a server that has no state.
pub fn start_stateless(_: &Environment) -> BoxFuture<'_, Result<Box<Instance>, ToolError>> {
    Box::pin(async { Ok(Box::new(()) as Box<Instance>) })
}

/// Starts a server that has a `Default`.
pub fn start_default<T: SelfStarting + ToolServer>(
    _: &Environment,
) -> BoxFuture<'_, Result<Box<Instance>, ToolError>> {
    Box::pin(async { Ok(Box::new(T::make()) as Box<Instance>) })
}

/// Puts a started server where its instances live.
pub fn started<T: ToolServer, E: Failure>(
    server: Result<T, E>,
) -> Result<Box<Instance>, ToolError> {
    server
        .map(|it| Box::new(it) as Box<Instance>)
        .map_err(Into::into)
}
