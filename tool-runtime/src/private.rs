//! For generated code only; not public API.

pub use crate::{
    argument::{Argument, Arguments, Measured, Text},
    context::{Context, Lend},
    definition::{
        Annotations, ArgumentDefinition, BoxFuture, Format, Input, Instance, Linked, Location,
        Measure, PromptDefinition, Requirement, ResourceDefinition, Rule, SelfStarting,
        ServerDefinition, ToolDefinition, ToolServer,
    },
    error::{ArgumentError, ToolError},
    name::ToolName,
    output::{IntoMessages, IntoOutput, Message, Output},
    registry::Environment,
};
pub use inventory;
pub use schemars::{Schema, SchemaGenerator};
pub use serde_json::Value;
pub use std::{
    boxed::Box,
    option::Option::{self, None, Some},
    result::Result::{self, Ok},
    time::Duration,
    vec::Vec,
};

use serde::Serialize;
use std::any::Any;

/// The schema of an argument.
pub fn schema<T: Argument>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A default, a bound or an example as JSON.
pub fn value<T: Serialize>(value: T) -> Value {
    serde_json::to_value(value).expect("what stands in `#[arg]` and `#[tool]` serializes")
}

/// Asserts at compile time that a type is text.
pub const fn text<T: Text + ?Sized>() {}

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
pub fn start_default<T: SelfStarting + Any + Send + Sync>(
    _: &Environment,
) -> BoxFuture<'_, Result<Box<Instance>, ToolError>> {
    Box::pin(async { Ok(Box::new(T::make()) as Box<Instance>) })
}

/// Puts a started server where its instances live.
pub fn started<T: Any + Send + Sync, E: Into<ToolError>>(
    server: Result<T, E>,
) -> Result<Box<Instance>, ToolError> {
    server
        .map(|it| Box::new(it) as Box<Instance>)
        .map_err(Into::into)
}
