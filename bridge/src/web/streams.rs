//! JSON for the host application that starts engines: which conversations are under way.

use crate::engines::Engine;
use axum::{
    Extension, Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{delete, post},
};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tool_runtime::{Caller, Stream, Streams};

/// The principals that may say what is under way: those of the host application itself.
const HOSTS: [&str; 2] = ["service", "anonymous"];

/// The routes, to be put behind the guard.
pub(super) fn routes(streams: Arc<Streams>) -> Router {
    Router::new()
        .route("/api/streams", post(start))
        .route("/api/streams/{session}", delete(end))
        .with_state(streams)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Started {
    engine: String,
    #[serde(default)]
    project: String,
    session: String,
}

async fn start(
    State(streams): State<Arc<Streams>>,
    Extension(caller): Extension<Arc<Caller>>,
    Json(started): Json<Started>,
) -> Response {
    if let Some(refusal) = refused(&caller) {
        return refusal;
    }
    let Started {
        engine,
        project,
        session,
    } = started;
    if session.is_empty() {
        let message = "the `session` is empty; give each conversation a name of its own";
        return problem(StatusCode::UNPROCESSABLE_ENTITY, message);
    }
    streams.start(Stream {
        engine: Engine::one_name(engine),
        project,
        session,
    });
    StatusCode::NO_CONTENT.into_response()
}

async fn end(
    State(streams): State<Arc<Streams>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(session): Path<String>,
) -> Response {
    if let Some(refusal) = refused(&caller) {
        return refusal;
    }
    if streams.end(&session) {
        StatusCode::NO_CONTENT.into_response()
    } else {
        problem(
            StatusCode::NOT_FOUND,
            "no conversation of this name is under way",
        )
    }
}

fn refused(caller: &Caller) -> Option<Response> {
    let is_host = HOSTS.contains(&caller.principal.as_str());
    (!is_host).then(|| {
        problem(
            StatusCode::FORBIDDEN,
            "only the service token may say which conversations are under way",
        )
    })
}

fn problem(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}
