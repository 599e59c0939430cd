//! The front door: MCP over HTTP and over a pipe, in both eras of the protocol.
//!
//! A request comes through `guard` (who is calling), `rpc` (what the body holds), and `modern` or `legacy` (what this
//! era wants of it), to `methods`, which knows no era but for the shape of an answer. `stream` sends the answer.

mod calls;
mod conversation;
mod cors;
mod gauge;
pub mod guard;
mod legacy;
mod listen;
mod methods;
mod modern;
mod news;
mod peer;
mod pipe;
mod result;
mod rpc;
mod seal;
mod session;
mod sightings;
mod stream;
mod tasks;

use crate::{config::Limits, engines::Engine, skills::Skills, store::Store};
use axum::{
    Json, Router,
    body::Body,
    extract::{Path, Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{ALLOW, CONTENT_TYPE},
        request::Parts,
    },
    middleware::{self, Next},
    response::Response,
    routing::{any, get},
};
use gauge::{Entered, Gauge};
use guard::Guard;
use listen::Listeners;
use rpc::{INTERNAL_ERROR, INVALID_REQUEST, Incoming, Message, RpcError};
use seal::Seal;
use serde_json::json;
use session::Sessions;
pub(crate) use sightings::DOCTOR;
use sightings::Sightings;
use std::{io, sync::Arc, time::Duration};
use stream::{Accepts, Exchange};
use tasks::Tasks;
use tokio_util::sync::CancellationToken;
use tool_runtime::{Caller, Dispatcher, Streams};

/// The time between two looks for sessions that nobody uses.
const SWEEP: Duration = Duration::from_mins(1);

/// What all clients come through.
#[derive(Clone, Debug)]
pub struct FrontDoor(Arc<Door>);

#[derive(Debug)]
struct Door {
    dispatcher: Arc<Dispatcher>,
    sessions: Sessions,
    sightings: Sightings,
    /// The tasks extension needs a store.
    tasks: Option<Arc<Tasks>>,
    skills: Option<Arc<Skills>>,
    listeners: Listeners,
    seal: Seal,
    in_flight: Gauge,
    requests: Gauge,
    closed: CancellationToken,
    /// Who looks after tasks has something to do after the door has closed.
    tending: Gauge,
    limits: Limits,
    /// Whether everyone sees the same: nobody needs a token.
    is_open: bool,
}

impl FrontDoor {
    /// Makes the front door to a dispatcher. `key` seals what stateless clients carry; with a store, there are tasks, and
    /// sessions outlive the process; `is_open` says that nobody needs a token.
    pub fn new(
        dispatcher: Arc<Dispatcher>,
        key: &[u8; 32],
        store: Option<Store>,
        skills: Option<Arc<Skills>>,
        limits: Limits,
        is_open: bool,
    ) -> Self {
        Self(Arc::new(Door {
            dispatcher,
            skills,
            tasks: store.clone().map(|it| Arc::new(Tasks::new(it))),
            sightings: Sightings::new(store.clone()),
            sessions: Sessions::new(store, &limits),
            listeners: Listeners::default(),
            seal: Seal::new(key),
            in_flight: Gauge::default(),
            requests: Gauge::default(),
            closed: CancellationToken::new(),
            tending: Gauge::default(),
            limits,
            is_open,
        }))
    }

    /// Looks after sessions and those who listen, until the door closes.
    pub fn tend(&self) {
        tokio::spawn(listen::spread(self.0.clone()));
        let (door, tending) = (self.0.clone(), self.0.tending.enter());
        tokio::spawn(async move {
            tasks::tend(door).await;
            drop(tending);
        });
        tokio::spawn(news::hear(self.0.clone()));
        let door = self.0.clone();
        tokio::spawn(async move {
            let mut sweeps = tokio::time::interval(SWEEP.min(door.limits.session_idle));
            let mut checks = tokio::time::interval(session::CHECKED);
            loop {
                tokio::select! {
                    () = door.closed.cancelled() => return,
                    _ = checks.tick() => door.check_sessions().await,
                    _ = sweeps.tick() => {
                        if let Err(error) = door.sessions.sweep().await {
                            tracing::error!(?error, "can't look after sessions");
                        }
                    }
                }
            }
        });
    }

    /// Waits until no call is under way.
    pub async fn idle(&self) {
        self.0.in_flight.idle().await;
    }

    /// Returns how many calls are under way.
    pub fn calls(&self) -> usize {
        self.0.in_flight.count()
    }

    /// Ends all streams, and takes the calls back that are under way.
    pub fn close(&self) {
        self.0.closed.cancel();
    }

    /// Waits until a closed door has left its tasks to other bridges.
    pub async fn left(&self) {
        self.0.tending.idle().await;
    }

    /// Serves one client over standard input and output, until it closes them.
    pub async fn serve_pipe(&self, caller: Caller) -> io::Result<()> {
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        pipe::serve(self.0.clone(), Arc::new(caller), input, output).await
    }
}

/// The routes: `/mcp` and further ones behind the guard, `/healthz` before it.
pub fn router(
    front_door: &FrontDoor,
    guard: Guard,
    streams: Arc<Streams>,
    further: Router,
) -> Router {
    let guard = Arc::new(guard);
    Router::new()
        .route("/mcp", any(serve))
        .route("/mcp/ext/{server}", any(serve_one))
        .with_state(front_door.0.clone())
        .merge(further)
        .route_layer(middleware::from_fn_with_state(streams, identify))
        .route_layer(middleware::from_fn_with_state(guard.clone(), guard::admit))
        .route_layer(middleware::from_fn_with_state(guard, cors::allow))
        .route("/healthz", get(health))
}

/// Finds out which conversation a call comes from.
async fn identify(
    State(streams): State<Arc<Streams>>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Some(caller) = request.extensions_mut().get_mut::<Arc<Caller>>() {
        let caller = Arc::make_mut(caller);
        streams.identify(caller);
        caller.most_output = Engine::named(&caller.engine).and_then(|it| it.most_output);
    }
    next.run(request).await
}

async fn health() -> Json<serde_json::Value> {
    Json(json!({ "status": "ok", "name": "clopen-mcp", "version": env!("CARGO_PKG_VERSION") }))
}

/// Serves one server alone, to those who may know of it.
async fn serve_one(
    State(door): State<Arc<Door>>,
    Path(server): Path<String>,
    mut request: Request,
) -> Response {
    let caller = request.extensions_mut().get_mut::<Arc<Caller>>();
    let view = door.dispatcher.view();
    let known = caller.filter(|it| it.reaches_server(&server) && view.server(&server).is_some());
    let Some(caller) = known else {
        let message = format!("there is no server `{}`", rpc::shown(&server));
        let error = refuse(StatusCode::NOT_FOUND, message);
        return stream::json(error.status, rpc::error_answer(None, &error));
    };
    Arc::make_mut(caller).reach.servers = Some([server].into());
    serve(State(door), request).await
}

async fn serve(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let caller = parts
        .extensions
        .get::<Arc<Caller>>()
        .cloned()
        .unwrap_or_default();
    let served = match parts.method {
        Method::POST => {
            door.dispatcher.enter(&caller).await;
            post(&door, &caller, &parts, body).await
        }
        Method::GET => open_stream(&door, &caller, &parts).await,
        Method::DELETE => end_session(&door, &caller, &parts).await,
        _ => Err(not_allowed("send POST")),
    };
    served.unwrap_or_else(|error| {
        let mut response = stream::json(error.status, rpc::error_answer(None, &error));
        if error.status == StatusCode::METHOD_NOT_ALLOWED {
            let allowed = HeaderValue::from_static("POST, GET, DELETE");
            response.headers_mut().insert(ALLOW, allowed);
        }
        response
    })
}

fn not_allowed(way_out: &str) -> RpcError {
    let message = format!("this method is not for this address; {way_out}");
    refuse(StatusCode::METHOD_NOT_ALLOWED, message)
}

fn refuse(status: StatusCode, message: impl Into<String>) -> RpcError {
    RpcError::new(INVALID_REQUEST, message).with_status(status)
}

async fn post(
    door: &Arc<Door>,
    caller: &Arc<Caller>,
    parts: &Parts,
    body: Body,
) -> Result<Response, RpcError> {
    let headers = &parts.headers;
    let accepts = acceptable(headers)?;
    let under_way = door.requests.enter();
    if door.requests.count() > door.limits.requests {
        let message = "too many requests are under way; try again in a moment";
        let error = RpcError::new(INTERNAL_ERROR, message);
        return Err(error.with_status(StatusCode::SERVICE_UNAVAILABLE));
    }
    let max_body = door.limits.max_body;
    let bytes = axum::body::to_bytes(body, max_body).await.map_err(|_| {
        let message = format!("the body is longer than {max_body} bytes (setting `max_body`)");
        refuse(StatusCode::PAYLOAD_TOO_LARGE, message)
    })?;
    let incoming = match rpc::parse(&bytes) {
        Ok(incoming) => incoming,
        Err(refused) => {
            let body = rpc::error_answer(refused.id.as_deref(), &refused.error);
            return Ok(stream::json(refused.error.status, body));
        }
    };
    let is_modern = match &incoming {
        Incoming::One(Message::Request(it)) => modern::is_meant(headers, it.params.as_deref()),
        Incoming::One(Message::Notification(it)) => modern::is_meant(headers, it.params.as_deref()),
        _ => modern::is_meant(headers, None),
    };
    if is_modern {
        return stateless(door, caller, headers, incoming, accepts, under_way).await;
    }
    if let Incoming::One(Message::Request(request)) = &incoming
        && request.method == "initialize"
    {
        let opened = legacy::initialize(door, caller, request).await;
        let (session, outcome) = match opened {
            Ok((session, result)) => (Some(session), Ok(result)),
            Err(error) => (None, Err(error)),
        };
        let status = outcome
            .as_ref()
            .err()
            .map_or(StatusCode::OK, |it| it.status);
        let mut response = stream::json(status, rpc::answer(&request.id, &outcome));
        if let Some(session) = session {
            legacy::name_session(&mut response, &session);
        }
        return Ok(response);
    }
    let session = match legacy::session(door, caller, headers).await {
        Ok(session) => session,
        Err(error) => {
            let id = match &incoming {
                Incoming::One(Message::Request(request)) => Some(&*request.id),
                _ => None,
            };
            return Ok(stream::json(error.status, rpc::error_answer(id, &error)));
        }
    };
    Ok(legacy::post(door, caller, &session, incoming, accepts, under_way).await)
}

/// Answers a request of 2026-07-28.
async fn stateless(
    door: &Arc<Door>,
    caller: &Arc<Caller>,
    headers: &HeaderMap,
    incoming: Incoming,
    accepts: Accepts,
    under_way: Entered,
) -> Result<Response, RpcError> {
    let request = match incoming {
        Incoming::One(Message::Request(request)) => request,
        // The protocol defines none over HTTP, and wants them taken.
        Incoming::One(Message::Notification(_)) => return Ok(legacy::accepted()),
        Incoming::One(Message::Answer(_)) => {
            let message = "this version asks its clients nothing that they could answer here; answers go into `inputResponses`";
            return Err(refuse(StatusCode::BAD_REQUEST, message));
        }
        Incoming::Batch(_) => {
            let message = "this version has no batches; send the messages one by one";
            return Err(refuse(StatusCode::BAD_REQUEST, message));
        }
    };
    let exchange = match modern::peer(door, caller, headers, &request) {
        // Who only listens is no work.
        Ok(peer) if request.method == "subscriptions/listen" => {
            methods::exchange(door, &peer, request)
        }
        Ok(peer) => methods::exchange(door, &peer, request).holding(under_way),
        Err(error) => Exchange::known(request.id, Err(error)),
    };
    Ok(stream::respond(exchange, accepts).await)
}

/// What the client takes, if that is something that we have; and what it sends must be JSON.
fn acceptable(headers: &HeaderMap) -> Result<Accepts, RpcError> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = content_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/json") {
        let message = "the body must be JSON: send `Content-Type: application/json`";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let accepts = Accepts::of(headers);
    if accepts.json || accepts.events {
        Ok(accepts)
    } else {
        let message = "answers are JSON or a stream of events: send `Accept: application/json, text/event-stream`";
        Err(refuse(StatusCode::NOT_ACCEPTABLE, message))
    }
}

async fn open_stream(door: &Door, caller: &Caller, parts: &Parts) -> Result<Response, RpcError> {
    let headers = &parts.headers;
    if modern::is_meant(headers, None) || !headers.contains_key(legacy::SESSION_HEADER) {
        return Err(not_allowed(
            "GET opens the stream of a session, and names it in `Mcp-Session-Id`",
        ));
    }
    if !Accepts::of(headers).events {
        let message = "the answer is a stream of events: send `Accept: text/event-stream`";
        return Err(refuse(StatusCode::NOT_ACCEPTABLE, message));
    }
    let session = legacy::session(door, caller, headers).await?;
    Ok(legacy::listen(door, &session))
}

async fn end_session(door: &Door, caller: &Caller, parts: &Parts) -> Result<Response, RpcError> {
    let headers = &parts.headers;
    if modern::is_meant(headers, None) || !headers.contains_key(legacy::SESSION_HEADER) {
        return Err(not_allowed(
            "DELETE ends a session, and names it in `Mcp-Session-Id`",
        ));
    }
    let session = legacy::session(door, caller, headers).await?;
    Ok(legacy::end(door, &session).await)
}
