//! What browsers ask before a page may call: only pages that the guard lets in are told yes.

use super::guard::{self, Guard};
use axum::{
    body::Body,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{
            ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
            ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
            ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
        },
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use std::sync::Arc;

/// Answers a browser's question whether a page may call, and tells it what the page may read.
pub(super) async fn allow(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(origin) = request.headers().get(ORIGIN).cloned() else {
        return next.run(request).await;
    };
    let (parts, body) = request.into_parts();
    let asks = parts.method == Method::OPTIONS
        && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if asks {
        if let Err(refusal) = guard::check_place(&guard, &parts) {
            return refusal.into_response();
        }
        yes(&parts.headers)
    } else {
        next.run(Request::from_parts(parts, body)).await
    };
    if response.status() != StatusCode::FORBIDDEN {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        let readable = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, readable);
    }
    response
}

/// The headers that a page may send are those that it asks for: none of them opens anything without the token.
fn yes(asked: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("POST, GET, DELETE");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    if let Some(wanted) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
