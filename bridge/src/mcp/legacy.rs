//! Up to 2025-11-25: a client says once what it is, and every later request names its session.

use super::{
    Door,
    gauge::Entered,
    methods,
    modern::VERSION_HEADER,
    news::News,
    peer::{Era, Peer},
    rpc::{self, INTERNAL_ERROR, INVALID_REQUEST, Incoming, Message, Request, RpcError},
    session::{Session, SessionError, Version},
    sightings::{ClientInfo, name_engine},
    stream::{self, Accepts, Exchange},
};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::Response,
};
use futures_util::TryFutureExt as _;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, sync::Arc};
use tool_runtime::Caller;

pub(super) const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// How many messages a batch may have.
const BATCH: usize = 100;

#[derive(Deserialize)]
struct InitializeParams<'a> {
    #[serde(borrow, rename = "protocolVersion")]
    version: Cow<'a, str>,
    #[serde(borrow, default)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "clientInfo")]
    client_info: Option<&'a RawValue>,
}

/// Opens a session. A client that asks for a version with sessions gets it, any other the latest with sessions.
pub(super) async fn initialize(
    door: &Arc<Door>,
    caller: &Arc<Caller>,
    request: &Request,
) -> Result<(Arc<Session>, Value), RpcError> {
    let params: InitializeParams<'_> = rpc::params("initialize", request.params.as_deref())?;
    let version = Version::of(&params.version).unwrap_or(Version::LATEST);
    let json = |raw: Option<&RawValue>| raw.map_or("{}", RawValue::get).to_owned();
    let (capabilities, client_info) = (json(params.capabilities), json(params.client_info));
    let opened = door
        .sessions
        .open(&caller.principal, version, capabilities, client_info)
        .await;
    let session = opened.map_err(|error| no_session(&error))?;
    let client = ClientInfo::of(params.client_info);
    let caller = name_engine(caller, || session.engine);
    door.sightings.note(&caller, client, version.as_str());
    Ok((session, methods::initialized(door, &caller, version)))
}

fn no_session(error: &SessionError) -> RpcError {
    match error {
        SessionError::Full => {
            let message = "there are too many sessions; end some with DELETE, or wait until unused ones run out";
            RpcError::new(INTERNAL_ERROR, message).with_status(StatusCode::SERVICE_UNAVAILABLE)
        }
        SessionError::Store(error) => {
            tracing::error!(%error, "can't look after sessions");
            let message = "the bridge can't look after sessions at the moment; try again";
            RpcError::new(INTERNAL_ERROR, message).with_status(StatusCode::SERVICE_UNAVAILABLE)
        }
    }
}

fn refuse(status: StatusCode, message: &str) -> RpcError {
    RpcError::new(INVALID_REQUEST, message).with_status(status)
}

/// Finds the session that a request names.
pub(super) async fn session(
    door: &Door,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Arc<Session>, RpcError> {
    let id = headers.get(SESSION_HEADER).ok_or_else(|| {
        refuse(
            StatusCode::BAD_REQUEST,
            "the request names no session: send `initialize` first and then its `Mcp-Session-Id`, or the `_meta` of 2026-07-28",
        )
    })?;
    if let Some(version) = headers.get(VERSION_HEADER) {
        let known = version.to_str().ok().and_then(Version::of);
        if known.is_none() {
            let message =
                "the header `MCP-Protocol-Version` names a version that this server doesn't speak";
            return Err(refuse(StatusCode::BAD_REQUEST, message));
        }
    }
    let id = id.to_str().unwrap_or_default();
    let found = door.sessions.find(id, &caller.principal).await;
    found.map_err(|error| no_session(&error))?.ok_or_else(|| {
        refuse(
            StatusCode::NOT_FOUND,
            "there is no such session any more; send `initialize` again",
        )
    })
}

/// Answers what a client sends in its session.
pub(super) async fn post(
    door: &Arc<Door>,
    caller: &Arc<Caller>,
    session: &Arc<Session>,
    incoming: Incoming,
    accepts: Accepts,
    under_way: Entered,
) -> Response {
    match incoming {
        Incoming::One(message) => match take(door, caller, session, message) {
            Some(exchange) => stream::respond(exchange.holding(under_way), accepts).await,
            None => accepted(),
        },
        Incoming::Batch(messages) => batch(door, caller, session, messages).await,
    }
}

/// Takes in one message; a request gives an exchange.
pub(super) fn take(
    door: &Arc<Door>,
    caller: &Arc<Caller>,
    session: &Arc<Session>,
    message: Message,
) -> Option<Exchange> {
    match message {
        Message::Request(request) => {
            let peer = Peer {
                caller: name_engine(caller, || session.engine),
                era: Era::Legacy(session.clone()),
            };
            let mut exchange = methods::exchange(door, &peer, request);
            // Up to 2025-11-25 an error in an answer is no error of HTTP.
            let as_answer = |error: RpcError| error.with_status(StatusCode::OK);
            exchange.work = Box::pin(exchange.work.map_err(as_answer));
            Some(exchange)
        }
        Message::Notification(notification) => {
            if let Some(id) = notification.taken_back() {
                session.cancel(id);
            }
            None
        }
        Message::Answer(answer) => {
            session.answer(answer);
            None
        }
    }
}

async fn batch(
    door: &Arc<Door>,
    caller: &Arc<Caller>,
    session: &Arc<Session>,
    messages: Vec<Result<Message, rpc::Refused>>,
) -> Response {
    if session.version > Version::V2025_03_26 || messages.len() > BATCH {
        let message = if messages.len() > BATCH {
            "a batch may have 100 messages"
        } else {
            "this version of the protocol has no batches; send the messages one by one"
        };
        let error = refuse(StatusCode::BAD_REQUEST, message);
        return stream::json(error.status, rpc::error_answer(None, &error));
    }
    let mut answers = Vec::new();
    for message in messages {
        match message {
            Ok(message) => {
                if let Some(exchange) = take(door, caller, session, message) {
                    answers.push(exchange.finish().await);
                }
            }
            Err(refused) => {
                answers.push(rpc::error_answer(refused.id.as_deref(), &refused.error));
            }
        }
    }
    if answers.is_empty() {
        return accepted();
    }
    let body = [b"[", answers.join(&b","[..]).as_slice(), b"]"].concat();
    stream::json(StatusCode::OK, body)
}

/// The answer to what wants none.
pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Opens the stream for what belongs to no request.
pub(super) fn listen(door: &Door, session: &Session) -> Response {
    stream::listening(session.open_stream(), door.closed.clone())
}

/// Ends a session at its client's wish.
pub(super) async fn end(door: &Door, session: &Session) -> Response {
    if let Err(error) = door.sessions.close(session).await {
        let error = no_session(&error);
        return stream::json(error.status, rpc::error_answer(None, &error));
    }
    door.tell_others(News::Session(session.id.to_string()));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Names the session of an answer.
pub(super) fn name_session(response: &mut Response, session: &Session) {
    let id = HeaderValue::from_str(&session.id).expect("an id is made of hexadecimal digits");
    response.headers_mut().insert(SESSION_HEADER, id);
}
