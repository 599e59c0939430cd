//! A server that is an endpoint of Streamable HTTP, with a session or without.

mod failure;
mod listen;
mod old;
mod stream;

use super::{
    Era, Limits, UpstreamError,
    clients::{Clients, origin, reason},
    ears::{Ears, Place},
    error::result,
    link::Outgoing,
    mask::Masks,
    message::{self, Answer, Message, Outcome},
    modern,
    ongoing::Ongoing,
    stdio::is_cancellable,
    waiting::Waiting,
};
use crate::{credentials::Bearer, secret::Secret};
use reqwest::{
    Client, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::value::RawValue;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long a server may take to say whether it tells news between requests.
const LISTENED: Duration = Duration::from_secs(2);
/// How long it may take for what has no answer.
const ASIDE: Duration = Duration::from_secs(10);
/// How much is read of a body that is no answer.
const LONGEST_FAILURE: usize = 64 * 1024;
/// How many letters of what a server says stand in an error.
const SHOWN: usize = 300;
/// How long an id of a session may be, and a challenge.
const LONGEST_HEADER: usize = 4096;
/// A part of a path that is as long as this may be a key.
const LONG_SEGMENT: usize = 16;
/// How many answers to requests of a server are sent at once.
const ANSWERS: usize = 4;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Where an endpoint is, and what it is given: headers, and the token of who has signed in.
pub(super) type Given<'a> = (&'a str, &'a BTreeMap<String, Secret>, Option<&'a Bearer>);

/// An endpoint, and the session with it.
pub(super) struct Endpoint {
    shared: Arc<Shared>,
    _over_on_drop: DropGuard,
}

struct Shared {
    limits: Limits,
    client: Client,
    url: Url,
    headers: HeaderMap,
    bearer: Option<Bearer>,
    /// What the server is given in headers.
    given: Masks,
    /// Their masks are the same, with what in the URL may be a key.
    ears: Ears,
    session: OnceLock<HeaderValue>,
    version: OnceLock<HeaderValue>,
    answers: Arc<Semaphore>,
    /// Cancelled when the connection can't be used any more.
    over: CancellationToken,
    /// Whether that is because the server lost the session.
    lost: AtomicBool,
    /// Whether somebody listens for news between requests.
    listens: AtomicBool,
    /// Cancelled when the server has said whether it tells news between requests.
    listened: CancellationToken,
    /// Who waits for what, where answers don't come as answers to what is posted, but on a stream of their own.
    waiting: Option<Waiting>,
}

impl Endpoint {
    pub(super) fn new(
        server: &Arc<str>,
        given: Given<'_>,
        era: Era,
        limits: Limits,
        clients: &Clients,
    ) -> Result<Self, UpstreamError> {
        let place = Location::read(server, given)?;
        let ears = Ears::new(server, place.masks());
        if era == Era::Modern {
            ears.be_modern();
        }
        Ok(Self::at(place, ears, None, limits, clients))
    }

    fn at(
        place: Location,
        ears: Ears,
        waiting: Option<Waiting>,
        limits: Limits,
        clients: &Clients,
    ) -> Self {
        let over = CancellationToken::new();
        let version = OnceLock::new();
        if ears.era() == Era::Modern {
            // It has just been made.
            let _ = version.set(HeaderValue::from_static(modern::VERSION));
        }
        Self {
            _over_on_drop: over.clone().drop_guard(),
            shared: Arc::new(Shared {
                limits,
                client: clients.to(&place.url).clone(),
                ears,
                url: place.url,
                headers: place.headers,
                bearer: place.bearer,
                given: place.given,
                session: OnceLock::new(),
                version,
                answers: Arc::new(Semaphore::new(ANSWERS)),
                over,
                lost: AtomicBool::new(false),
                listens: AtomicBool::new(false),
                listened: CancellationToken::new(),
                waiting,
            }),
        }
    }

    /// Sends a request and waits for its answer. If nobody waits any longer, the server is told.
    pub(super) async fn exchange(
        &self,
        outgoing: Outgoing<'_>,
        ongoing: Option<&Ongoing>,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let (shared, method) = (&self.shared, outgoing.method);
        if shared.over.is_cancelled() {
            return Err(shared.over_error(method));
        }
        let mut unanswered = Unanswered {
            shared,
            id: outgoing.id,
            // Since 2026-07-28 it is enough that we don't read on.
            may_be_cancelled: shared.ears.era() == Era::Legacy && is_cancellable(method),
        };
        let answer = tokio::select! {
            biased;
            answer = shared.exchange(outgoing, ongoing) => answer,
            () = shared.over.cancelled() => Err(shared.over_error(method)),
        };
        unanswered.may_be_cancelled = false;
        answer
    }

    /// Sends a notification. A server that can't take it gets over it, unless it refuses us altogether.
    pub(super) async fn notify(&self, method: &str, message: Vec<u8>) -> Result<(), UpstreamError> {
        let shared = &self.shared;
        let response = shared.post(method, HeaderMap::new(), message).await?;
        match shared.check_status(method, response).await.err() {
            Some(
                error @ (UpstreamError::Unauthorized { .. } | UpstreamError::SessionLost { .. }),
            ) => Err(error),
            Some(error) => {
                tracing::debug!(server = shared.ears.server(), %error, "a notification was refused");
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Speaks a version from now on.
    pub(super) fn speak(&self, version: &str) {
        if let Ok(version) = HeaderValue::from_str(version) {
            // It is agreed on once.
            let _ = self.shared.version.set(version);
        }
    }

    /// Listens for news between requests, if the server offers that.
    pub(super) fn listen(&self) {
        if self.shared.waiting.is_none() && !self.shared.listens.swap(true, Ordering::Relaxed) {
            tokio::spawn(self.shared.clone().listen());
        }
    }

    /// Waits until nothing that the server says between requests is missed, but not for long.
    pub(super) async fn is_listened_to(&self) {
        if self.shared.listens.load(Ordering::Relaxed) {
            // One that does not say so may hold it back until there is news.
            let _ = timeout(LISTENED, self.shared.listened.cancelled()).await;
        }
    }

    /// Sends what has no answer, and whose fate nobody waits for.
    pub(super) fn tell(&self, message: Vec<u8>) {
        self.shared.send_aside(message, None);
    }

    pub(super) fn ears(&self) -> &Ears {
        &self.shared.ears
    }

    pub(super) async fn ended(&self) {
        self.shared.over.cancelled().await;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.shared.over.is_cancelled()
    }

    /// Ends the session, if there is one. The server may not care.
    pub(super) async fn close(&self) {
        let shared = &self.shared;
        let was_over = shared.over.is_cancelled();
        shared.over.cancel();
        if shared.session.get().is_some() && !was_over {
            let delete = shared.client.delete(shared.url.clone());
            let delete = delete.headers(shared.all_headers());
            let _ = timeout(ASIDE, delete.send()).await;
        }
    }
}

/// Where an endpoint is, and what it is given.
#[derive(Clone)]
struct Location {
    url: Url,
    headers: HeaderMap,
    bearer: Option<Bearer>,
    given: Masks,
}

impl Location {
    fn read(server: &str, (url, headers, bearer): Given<'_>) -> Result<Self, UpstreamError> {
        let bad = |reason: String| UpstreamError::BadAddress {
            server: server.to_owned(),
            reason,
        };
        let url = Url::parse(url).map_err(|it| bad(format!("its URL is none: {it}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return Err(bad(format!(
                "`{scheme}` is not HTTP; the URL begins with `https://` or `http://`"
            )));
        }
        let given = Masks::new(headers.values()).with_bearer(bearer);
        let headers = headers
            .iter()
            .map(|(name, value)| header(name, value).map_err(&bad))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            url,
            headers,
            bearer: bearer.cloned(),
            given,
        })
    }

    fn masks(&self) -> Masks {
        with_keys_of(&self.url, self.given.clone())
    }
}

/// Reads a header as it is declared. Its value is in no error.
fn header(name: &str, value: &Secret) -> Result<(HeaderName, HeaderValue), String> {
    let name = HeaderName::try_from(name)
        .map_err(|_| format!("`{}` can't be the name of a header", name.escape_debug()))?;
    let Ok(mut value) = HeaderValue::from_str(value.expose()) else {
        return Err(format!(
            "the value of its header `{name}` holds a letter that no header may; is there a line end?"
        ));
    };
    value.set_sensitive(true);
    Ok((name, value))
}

/// Adds what in a URL may be a key.
fn with_keys_of(url: &Url, mut masks: Masks) -> Masks {
    masks.add(url.username());
    masks.add(url.password().unwrap_or_default());
    masks.add(url.query().unwrap_or_default());
    for (_, value) in url.query_pairs() {
        masks.add(&value);
    }
    let segments = url.path_segments().into_iter().flatten();
    for segment in segments.filter(|it| it.len() >= LONG_SEGMENT) {
        masks.add(segment);
    }
    masks
}

/// A request without an answer, which is taken back if it is dropped. That its connection is closed does not mean so
/// before 2026-07-28.
struct Unanswered<'a> {
    shared: &'a Arc<Shared>,
    id: u64,
    may_be_cancelled: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.may_be_cancelled {
            self.shared.send_aside(message::cancelled(self.id), None);
        }
    }
}

impl Shared {
    async fn exchange(
        self: &Arc<Self>,
        outgoing: Outgoing<'_>,
        ongoing: Option<&Ongoing>,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let Outgoing {
            id,
            method,
            body,
            headers,
        } = outgoing;
        if let Some(waiting) = &self.waiting {
            return self.exchange_apart(waiting, (id, method), body).await;
        }
        let place = Place::Request(ongoing);
        let response = self.post(method, headers, body).await?;
        let response = self.check_status(method, response).await?;
        if method == "initialize" {
            self.take_session(method, &response)?;
        }
        if is_stream(&response) {
            self.answer_in_stream((id, method), place, response).await
        } else {
            self.answer_in_body((id, method), place, response).await
        }
    }

    async fn post(
        &self,
        method: &str,
        repeated: HeaderMap,
        message: Vec<u8>,
    ) -> Result<Response, UpstreamError> {
        let post = self.client.post(self.url.clone());
        let post = post.headers(self.all_headers()).headers(repeated);
        let post = post.body(message);
        let response = post.send().await;
        response.map_err(|it| self.unreachable(method, &it))
    }

    fn all_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(token) = self.bearer.as_ref().and_then(Bearer::token)
            && let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
        {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        // Ours go last, and win.
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accepted);
        for (name, value) in [(SESSION, &self.session), (VERSION, &self.version)] {
            match value.get() {
                Some(value) => headers.insert(name, value.clone()),
                None => headers.remove(name),
            };
        }
        headers
    }

    /// Takes the id of the session from the answer to `initialize`.
    fn take_session(&self, method: &str, response: &Response) -> Result<(), UpstreamError> {
        let Some(session) = response.headers().get(SESSION) else {
            return Ok(());
        };
        let is_sound = session.as_bytes().iter().all(u8::is_ascii_graphic);
        if !is_sound || session.is_empty() || session.len() > LONGEST_HEADER {
            let what = "a session id that is too long, or not of visible ASCII";
            return Err(self.malformed(method, what.to_owned()));
        }
        let mut session = session.clone();
        session.set_sensitive(true);
        // There is one `initialize` per connection.
        let _ = self.session.set(session);
        Ok(())
    }

    async fn answer_in_body(
        self: &Arc<Self>,
        (id, method): (u64, &str),
        place: Place<'_>,
        mut response: Response,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let limit = self.limits.message;
        let length = response.content_length().unwrap_or(0);
        if length > u64::try_from(limit).unwrap_or(u64::MAX) {
            return Err(self.too_large(method));
        }
        let status = response.status();
        let mut body = Vec::new();
        loop {
            let chunk = response.chunk().await;
            let Some(chunk) = chunk.map_err(|it| self.unreachable(method, &it))? else {
                break;
            };
            if body.len() + chunk.len() > limit {
                return Err(self.too_large(method));
            }
            body.extend_from_slice(&chunk);
        }
        if let Some(outcome) = self.hear(id, &body, place) {
            return result(method, outcome, &self.ears);
        }
        let start = body.trim_ascii_start();
        let what = if start.is_empty() {
            format!("status {} and nothing else", status.as_u16())
        } else if start.starts_with(b"<") {
            "a web page".to_owned()
        } else {
            let text = String::from_utf8_lossy(&start[..start.len().min(LONGEST_FAILURE)]);
            let text = self.ears.masks().beginning(&text, SHOWN);
            format!("`{text}`, which is no answer to it")
        };
        Err(self.malformed(method, what))
    }

    /// Hears messages, and returns the answer to a request if it is among them.
    fn hear(self: &Arc<Self>, id: u64, bytes: &[u8], place: Place<'_>) -> Option<Outcome> {
        let mut ours = None;
        self.hear_each(bytes, place, |answer| {
            // A server that could not read the request can't tell its id.
            let is_ours = answer.id == Some(id)
                || answer.id.is_none() && matches!(answer.outcome, Outcome::Refused(_));
            if is_ours && ours.is_none() {
                ours = Some(answer.outcome);
            }
        });
        ours
    }

    fn hear_each(
        self: &Arc<Self>,
        bytes: &[u8],
        place: Place<'_>,
        mut answered: impl FnMut(Answer),
    ) {
        for message in message::read(bytes) {
            match message {
                Message::Answer(answer) => answered(answer),
                Message::Request { id, method, params } => {
                    if let Some(answer) = self.ears.asked(id, method, params.as_deref(), place) {
                        self.answer(answer);
                    }
                }
                Message::Notification { method, params } => {
                    self.ears.hear(&method, params.as_deref(), place);
                }
            }
        }
    }

    /// Sends an answer, unless too many are being sent.
    fn answer(self: &Arc<Self>, answer: Vec<u8>) {
        if let Ok(permit) = self.answers.clone().try_acquire_owned() {
            self.send_aside(answer, Some(permit));
        } else {
            tracing::debug!(server = self.ears.server(), "it asks too much");
        }
    }

    /// Sends what has no answer, and whose fate nobody waits for.
    fn send_aside(self: &Arc<Self>, message: Vec<u8>, permit: Option<OwnedSemaphorePermit>) {
        // A client may be dropped after its runtime is gone.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let shared = self.clone();
        runtime.spawn(async move {
            let post = shared.post("a notification or an answer", HeaderMap::new(), message);
            if let Ok(Err(error)) = timeout(ASIDE, post).await {
                tracing::debug!(server = shared.ears.server(), %error, "it was not told");
            }
            drop(permit);
        });
    }

    fn over_error(&self, method: &str) -> UpstreamError {
        let (server, method) = (self.ears.server().to_owned(), method.to_owned());
        if self.lost.load(Ordering::Relaxed) {
            UpstreamError::SessionLost { server, method }
        } else {
            UpstreamError::Closed { server, method }
        }
    }

    fn unreachable(&self, method: &str, error: &reqwest::Error) -> UpstreamError {
        UpstreamError::Unreachable {
            server: self.ears.server().to_owned(),
            origin: origin(&self.url),
            method: method.to_owned(),
            reason: self.ears.masks().beginning(&reason(error), SHOWN),
            was_connected: !error.is_connect(),
        }
    }

    /// Says how a connection broke.
    fn broken(&self, method: &str, reason: &str) -> UpstreamError {
        UpstreamError::Unreachable {
            server: self.ears.server().to_owned(),
            origin: origin(&self.url),
            method: method.to_owned(),
            reason: reason.to_owned(),
            was_connected: true,
        }
    }

    fn malformed(&self, method: &str, what: String) -> UpstreamError {
        UpstreamError::Malformed {
            server: self.ears.server().to_owned(),
            method: method.to_owned(),
            what,
        }
    }

    fn too_large(&self, method: &str) -> UpstreamError {
        UpstreamError::TooLarge {
            server: self.ears.server().to_owned(),
            method: method.to_owned(),
            limit: self.limits.message,
        }
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("text/event-stream")
}
