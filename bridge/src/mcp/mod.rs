//! The front door: MCP over HTTP and over a pipe.

mod convert;
mod gauge;
pub mod guard;
mod handler;

use axum::{Json, Router, middleware, routing::get};
use gauge::Gauge;
use guard::Guard;
use handler::Handler;
use rmcp::{
    ServiceExt as _,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::{LocalSessionManager, SessionConfig},
    },
};
use serde_json::json;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tool_runtime::{Caller, Dispatcher};

type Service = StreamableHttpService<Handler, LocalSessionManager>;

/// What all clients come through.
#[derive(Clone)]
pub struct FrontDoor {
    service: Service,
    in_flight: Gauge,
    closed: CancellationToken,
}

impl FrontDoor {
    /// Makes the front door to a dispatcher; a request's body may have `max_body` bytes.
    pub fn new(dispatcher: Arc<Dispatcher>, max_body: usize) -> Self {
        let (in_flight, closed) = (Gauge::default(), CancellationToken::new());
        let nobody = Arc::new(Caller::default());
        let of_calls = in_flight.clone();
        let handler = move || {
            Ok(Handler::new(
                dispatcher.clone(),
                nobody.clone(),
                of_calls.clone(),
            ))
        };
        // A stream that opens with an event without data costs Gemini CLI the whole server.
        let mut session = SessionConfig::default();
        session.sse_retry = None;
        let mut sessions = LocalSessionManager::default();
        sessions.session_config = session;
        // The guard has looked at Host and Origin before.
        let config = StreamableHttpServerConfig::default()
            .with_sse_retry(None)
            .with_json_response(true)
            .with_max_request_body_bytes(max_body)
            .with_cancellation_token(closed.clone())
            .disable_allowed_hosts()
            .disable_allowed_origins();
        Self {
            service: StreamableHttpService::new(handler, Arc::new(sessions), config),
            in_flight,
            closed,
        }
    }

    /// Waits until no call is under way.
    pub async fn idle(&self) {
        self.in_flight.idle().await;
    }

    /// Returns how many calls are under way.
    pub fn calls(&self) -> usize {
        self.in_flight.count()
    }

    /// Ends all sessions and streams.
    pub fn close(&self) {
        self.closed.cancel();
    }
}

impl std::fmt::Debug for FrontDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FrontDoor({} calls under way)", self.calls())
    }
}

/// The routes: `/mcp` behind the guard, `/healthz` before it.
pub fn router(front_door: &FrontDoor, guard: Guard) -> Router {
    let guard = Arc::new(guard);
    Router::new()
        .route_service("/mcp", front_door.service.clone())
        .layer(middleware::from_fn_with_state(guard, guard::admit))
        .route("/healthz", get(health))
}

async fn health() -> Json<serde_json::Value> {
    Json(json!({ "status": "ok", "name": "clopen-mcp", "version": env!("CARGO_PKG_VERSION") }))
}

/// Serves one client over standard input and output, until it closes them.
pub async fn serve_pipe(dispatcher: Arc<Dispatcher>, caller: Caller) -> Result<(), String> {
    let handler = Handler::new(dispatcher, Arc::new(caller), Gauge::default());
    let running = handler.serve(rmcp::transport::stdio()).await;
    let running = running.map_err(|error| error.to_string())?;
    running.waiting().await.map_err(|error| error.to_string())?;
    Ok(())
}
