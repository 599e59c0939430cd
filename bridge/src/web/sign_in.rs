//! Where people come back to who sign in to an external server, and the document that says who we are.
//!
//! Both are before the guard: browsers and authorization servers have no token. What somebody comes back with is good once,
//! and only for a sign-in that was begun here.

use crate::credentials::{CALLBACK, DOCUMENT, SignIns};
use axum::{
    Json, Router,
    extract::{RawQuery, State},
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY},
    },
    response::{IntoResponse, Response},
    routing::get,
};

/// The routes.
pub(crate) fn routes(sign_ins: SignIns) -> Router {
    Router::new()
        .route(CALLBACK, get(come_back))
        .route(DOCUMENT, get(document))
        .with_state(sign_ins)
}

async fn come_back(State(sign_ins): State<SignIns>, RawQuery(query): RawQuery) -> Response {
    match sign_ins.finish(&query.unwrap_or_default()).await {
        Ok(signed) => page(
            StatusCode::OK,
            &format!(
                "You are signed in to {}. You can close this page.",
                signed.server
            ),
        ),
        Err(error) => {
            tracing::warn!(%error, "a sign-in has failed");
            page(
                StatusCode::BAD_REQUEST,
                &format!("This did not work: {error}."),
            )
        }
    }
}

async fn document(State(sign_ins): State<SignIns>) -> Response {
    match sign_ins.document() {
        Some(document) => Json(document).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A page that loads nothing, and tells nobody where one came from.
fn page(status: StatusCode, text: &str) -> Response {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let page =
        format!("<!doctype html><meta charset=\"utf-8\"><title>clopen-mcp</title><p>{text}</p>\n");
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers, page).into_response()
}
