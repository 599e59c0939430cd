//! What people and host applications reach besides MCP.

mod streams;

use axum::Router;
use std::sync::Arc;
use tool_runtime::Streams;

/// The routes, to be put behind the guard.
pub(crate) fn routes(streams: Arc<Streams>) -> Router {
    streams::routes(streams)
}
