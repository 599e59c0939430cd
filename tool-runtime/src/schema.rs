//! Schemas.
use schemars::{JsonSchema, Schema};
pub(crate) fn published_output<T: JsonSchema>() -> Schema {
    schemars::schema_for!(T)
}
pub(crate) fn published_form<T: JsonSchema>() -> Schema {
    schemars::schema_for!(T)
}
