//! An answer that comes in a stream. A server with sessions may end the stream early, and go on in another that is asked
//! for.

use super::{LONGEST_HEADER, Shared, is_stream};
use crate::upstream::connector::{
    Era, UpstreamError,
    ears::Place,
    error::result,
    message::Outcome,
    sse::{Events, TooLarge},
};
use reqwest::{
    RequestBuilder, Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// How long to wait for the next stream where the server does not say.
const USUAL_WAIT: Duration = Duration::from_secs(1);
/// How long to wait at least, and at most, whatever the server says.
const WAIT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_mins(1));
/// How many streams that bring nothing new are enough.
const IN_VAIN: usize = 3;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How far a stream brought us.
enum Came {
    Answer(Outcome),
    /// It ended, or broke, before.
    Short(UpstreamError),
}

impl Shared {
    pub(super) async fn answer_in_stream(
        self: &Arc<Self>,
        (id, method): (u64, &str),
        place: Place<'_>,
        mut response: Response,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let mut events = Events::new(self.limits.message);
        let mut in_vain = 0;
        loop {
            let last_id = events.last_id().map(ToOwned::to_owned);
            let answered = self.answer_on(&mut events, (id, method), place, response);
            let short = match answered.await? {
                Came::Answer(outcome) => return result(method, outcome, &self.ears),
                Came::Short(error) => error,
            };
            let goes_on = events.last_id() != last_id.as_deref();
            in_vain = if goes_on { 0 } else { in_vain + 1 };
            if in_vain > IN_VAIN || self.ears.era() == Era::Modern {
                return Err(short);
            }
            response = self.next_stream(&mut events).await.ok_or(short)?;
        }
    }

    /// Reads one stream to the answer, or as far as it goes.
    async fn answer_on(
        self: &Arc<Self>,
        events: &mut Events,
        (id, method): (u64, &str),
        place: Place<'_>,
        mut response: Response,
    ) -> Result<Came, UpstreamError> {
        loop {
            let chunk = match response.chunk().await {
                Ok(chunk) => chunk,
                Err(error) => return Ok(Came::Short(self.unreachable(method, &error))),
            };
            let is_end = chunk.is_none();
            let heard = match chunk {
                Some(chunk) => events.feed(&chunk),
                None => Ok(events.finish().into_iter().collect()),
            };
            let heard = heard.map_err(|TooLarge| self.too_large(method))?;
            let mut heard = heard.iter();
            if let Some(outcome) = heard.find_map(|it| self.hear(id, &it.data, place)) {
                return Ok(Came::Answer(outcome));
            }
            if is_end {
                let reason = "the stream ended before the answer";
                return Ok(Came::Short(self.broken(method, reason)));
            }
        }
    }

    /// Asks for the stream that goes on after the last event that came, if events have ids.
    async fn next_stream(&self, events: &mut Events) -> Option<Response> {
        let last_id = events.last_id().filter(|it| it.len() <= LONGEST_HEADER)?;
        let last_id = HeaderValue::from_str(last_id).ok()?;
        let wait = events.retry().unwrap_or(USUAL_WAIT);
        sleep(wait.clamp(WAIT.0, WAIT.1)).await;
        events.begin_again();
        let response = self
            .get()
            .header(LAST_EVENT_ID, last_id)
            .send()
            .await
            .ok()?;
        (response.status().is_success() && is_stream(&response)).then_some(response)
    }

    /// Asks for a stream of events.
    pub(super) fn get(&self) -> RequestBuilder {
        let mut headers = self.all_headers();
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.client.get(self.url.clone()).headers(headers)
    }
}
