//! The answer to one request over HTTP: plain JSON while it comes soon and alone, else a stream of events.

use super::rpc::{self, RpcError};
use axum::{
    body::{Body, Bytes},
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE},
    },
    response::Response,
};
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use serde_json::{Value, value::RawValue};
use std::{convert::Infallible, future::pending, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, interval_at, sleep},
};
use tool_runtime::Cancellation;

/// How long an answer may take before the client gets its first bytes: proxies give up after 30 s or more.
const SOON: Duration = Duration::from_secs(5);

/// The time between two signs of life on a stream.
const ALIVE: Duration = Duration::from_secs(15);

/// How many frames may wait for a client that reads slowly.
const FRAMES: usize = 32;

const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A request that is being answered.
pub(super) struct Exchange {
    pub(super) id: Box<RawValue>,
    /// What gives the result.
    pub(super) work: Work,
    /// The messages that belong to it and come before the result.
    pub(super) inbox: mpsc::Receiver<Vec<u8>>,
    /// Takes it back.
    pub(super) cancellation: Cancellation,
    /// Whether it goes on when the client is gone: so up to 2025-11-25.
    pub(super) outlives_client: bool,
}

pub(super) type Work = futures_util::future::BoxFuture<'static, Result<Value, RpcError>>;

impl Exchange {
    /// An exchange whose outcome is known.
    pub(super) fn known(id: Box<RawValue>, outcome: Result<Value, RpcError>) -> Self {
        Self {
            id,
            work: Box::pin(std::future::ready(outcome)),
            inbox: mpsc::channel(1).1,
            cancellation: Cancellation::new(),
            outlives_client: false,
        }
    }

    /// Keeps something until the work has ended, which may be long after the client has gone.
    pub(super) fn holding(mut self, held: impl Send + 'static) -> Self {
        let work = self.work;
        self.work = Box::pin(async move {
            let _held = held;
            work.await
        });
        self
    }

    /// Whether the client took it back with a notification: it gets no answer then.
    fn is_taken_back(&self) -> bool {
        self.outlives_client && self.cancellation.is_cancelled()
    }

    /// Runs it to its end, the messages before the result left out.
    pub(super) async fn finish(mut self) -> Vec<u8> {
        self.inbox.close();
        let outcome = self.work.await;
        rpc::answer(&self.id, &outcome)
    }
}

/// The kinds of answer that a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// Reads the header `Accept`; a client that sends none takes everything.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut found = Self {
            json: false,
            events: false,
        };
        let mut any = false;
        for value in headers.get_all(ACCEPT) {
            for range in value.to_str().unwrap_or_default().split(',') {
                any = true;
                let range = range.split(';').next().unwrap_or_default().trim();
                match range.to_ascii_lowercase().as_str() {
                    "*/*" => (found.json, found.events) = (true, true),
                    "application/json" | "application/*" => found.json = true,
                    "text/event-stream" | "text/*" => found.events = true,
                    _ => {}
                }
            }
        }
        if any {
            found
        } else {
            Self {
                json: true,
                events: true,
            }
        }
    }
}

/// Answers a request in the way that it turns out to need.
pub(super) async fn respond(mut exchange: Exchange, accepts: Accepts) -> Response {
    if let Some(outcome) = (&mut exchange.work).now_or_never() {
        return ended(exchange, outcome, accepts);
    }
    if exchange.outlives_client {
        let running = tokio::spawn(exchange.work);
        exchange.work = Box::pin(async move {
            running.await.unwrap_or_else(|error| {
                let message = format!("the request ended in the middle: {error}");
                Err(RpcError::new(rpc::INTERNAL_ERROR, message))
            })
        });
    }
    tokio::select! {
        biased;
        Some(first) = exchange.inbox.recv(), if accepts.events => {
            streamed(exchange, Some(first), Framing::Events)
        }
        outcome = &mut exchange.work => ended(exchange, outcome, accepts),
        () = sleep(SOON) => {
            let framing = if accepts.events { Framing::Events } else { Framing::Json };
            streamed(exchange, None, framing)
        }
    }
}

/// Answers a request that has ended before anything was sent.
fn ended(mut exchange: Exchange, outcome: Result<Value, RpcError>, accepts: Accepts) -> Response {
    if exchange.is_taken_back() {
        return events(mpsc::channel(1).1);
    }
    // It may have said something in its last breath.
    if let (true, Ok(first)) = (accepts.events, exchange.inbox.try_recv()) {
        exchange.work = Box::pin(std::future::ready(outcome));
        return streamed(exchange, Some(first), Framing::Events);
    }
    plain(&exchange.id, &outcome)
}

fn plain(id: &RawValue, outcome: &Result<Value, RpcError>) -> Response {
    let status = outcome
        .as_ref()
        .err()
        .map_or(StatusCode::OK, |it| it.status);
    json(status, rpc::answer(id, outcome))
}

/// A response of JSON.
pub(super) fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// How a message stands in a body that is sent piece by piece.
#[derive(Clone, Copy)]
enum Framing {
    /// Events of `text/event-stream`.
    Events,
    /// White space until the one answer: JSON doesn't mind.
    Json,
}

fn streamed(exchange: Exchange, first: Option<Vec<u8>>, framing: Framing) -> Response {
    let (frames, body) = mpsc::channel(FRAMES);
    tokio::spawn(write(exchange, first, framing, frames));
    match framing {
        Framing::Events => events(body),
        Framing::Json => {
            let mut response = json(StatusCode::OK, Vec::new());
            *response.body_mut() = Body::from_stream(received(body));
            response
        }
    }
}

/// A response of messages that belong to no request, with signs of life between; the first is sent at once, so that the
/// client has its headers.
pub(super) fn listening(messages: mpsc::Receiver<Vec<u8>>, closed: Cancellation) -> Response {
    let signs = interval_at(Instant::now(), ALIVE);
    let frames = stream::unfold((messages, signs), async |(mut messages, mut signs)| {
        let frame = tokio::select! {
            message = messages.recv() => event(&message?),
            _ = signs.tick() => alive(),
        };
        Some((Ok::<_, Infallible>(frame), (messages, signs)))
    });
    of_events(Body::from_stream(
        frames.take_until(closed.cancelled_owned()),
    ))
}

/// A response of events, as they come.
fn events(frames: mpsc::Receiver<Bytes>) -> Response {
    of_events(Body::from_stream(received(frames)))
}

fn of_events(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    response
}

fn received(frames: mpsc::Receiver<Bytes>) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(frames, async |mut frames| {
        let frame = frames.recv().await?;
        Some((Ok(frame), frames))
    })
}

/// A message as an event.
fn event(message: &[u8]) -> Bytes {
    [b"event: message\ndata: ", message, b"\n\n"]
        .concat()
        .into()
}

/// A sign of life as an event that means nothing.
fn alive() -> Bytes {
    Bytes::from_static(b": still here\n\n")
}

/// Writes the messages of an exchange and at last its result, with signs of life between.
async fn write(
    mut exchange: Exchange,
    first: Option<Vec<u8>>,
    framing: Framing,
    frames: mpsc::Sender<Bytes>,
) {
    let (says_more, sign) = match framing {
        Framing::Events => (true, alive()),
        Framing::Json => (false, Bytes::from_static(b" ")),
    };
    // The first sign goes out at once, so that the client has its headers.
    let opening = first.map_or_else(|| sign.clone(), |it| event(&it));
    let mut gone = frames.send(opening).await.is_err();
    let mut signs = interval_at(Instant::now() + ALIVE, ALIVE);
    let outcome = loop {
        if gone && !exchange.outlives_client {
            exchange.cancellation.cancel();
            return;
        }
        let closed = async {
            if gone {
                pending::<()>().await;
            } else {
                frames.closed().await;
            }
        };
        tokio::select! {
            biased;
            Some(message) = exchange.inbox.recv() => {
                gone = says_more && frames.send(event(&message)).await.is_err();
            }
            outcome = &mut exchange.work => break outcome,
            () = closed => gone = true,
            _ = signs.tick() => drop(frames.try_send(sign.clone())),
        }
    };
    while let (true, Ok(message)) = (says_more, exchange.inbox.try_recv()) {
        let _ = frames.send(event(&message)).await;
    }
    if exchange.is_taken_back() {
        return;
    }
    let answer = rpc::answer(&exchange.id, &outcome);
    let last = match framing {
        Framing::Events => event(&answer),
        Framing::Json => answer.into(),
    };
    let _ = frames.send(last).await;
}
