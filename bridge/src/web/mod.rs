//! What people and host applications reach besides MCP.

mod sign_in;
mod streams;

pub(crate) use sign_in::routes as sign_in_routes;

use axum::Router;
use std::sync::Arc;
use tool_runtime::Streams;

/// The routes, to be put behind the guard.
pub(crate) fn routes(streams: Arc<Streams>) -> Router {
    streams::routes(streams)
}
