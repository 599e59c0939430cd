//! HTTP as of 2024-11-05: one stream, which stays open, names the URL that messages are sent to, and brings all answers.

use super::{Endpoint, Given, LONGEST_HEADER, Location, Shared};
use crate::upstream::connector::{
    Limits, UpstreamError,
    clients::Clients,
    ears::{Ears, Place},
    error::result,
    sse::{Event, Events, TooLarge},
    waiting::{Ending, Reply, Waiting},
};
use reqwest::{Response, Url, header::HeaderMap};
use serde_json::value::RawValue;
use std::sync::Arc;

/// What a failure to open the stream is told of.
const GREETING: &str = "initialize";

/// The one stream, and what of it was read too early.
struct Stream {
    response: Response,
    events: Events,
    early: Vec<Event>,
}

impl Endpoint {
    /// Says whether a URL is one that such streams usually have.
    pub(in crate::upstream::connector) fn looks_old(url: &str) -> bool {
        let url = Url::parse(url).ok();
        url.is_some_and(|it| it.path().trim_end_matches('/').ends_with("/sse"))
    }

    /// Opens the stream, and waits until it names where to send to.
    pub(in crate::upstream::connector) async fn old(
        server: &Arc<str>,
        given: Given<'_>,
        limits: Limits,
        clients: &Clients,
    ) -> Result<Self, UpstreamError> {
        let place = Location::read(server, given)?;
        let mut masks = place.masks();
        let ears = Ears::new(server, masks.clone());
        let door = Self::at(place.clone(), ears, None, limits, clients);
        let (stream, url) = door.shared.open_stream().await?;

        let place = Location { url, ..place };
        masks.extend(place.masks());
        let ears = Ears::new(server, masks);
        let endpoint = Self::at(place, ears, Some(Waiting::new()), limits, clients);
        tokio::spawn(endpoint.shared.clone().read_stream(stream));
        Ok(endpoint)
    }
}

impl Shared {
    async fn open_stream(&self) -> Result<(Stream, Url), UpstreamError> {
        let response = self.get().send().await;
        let response = response.map_err(|it| self.unreachable(GREETING, &it))?;
        let mut response = self.check_status(GREETING, response).await?;
        if !super::is_stream(&response) {
            return Err(self.malformed(GREETING, "what is no stream of events".to_owned()));
        }
        let mut events = Events::new(self.limits.message);
        loop {
            let chunk = response.chunk().await;
            let chunk = chunk.map_err(|it| self.unreachable(GREETING, &it))?;
            let Some(chunk) = chunk else {
                let reason = "the stream ended before it said where to send to";
                return Err(self.broken(GREETING, reason));
            };
            let heard = events.feed(&chunk);
            let mut heard = heard.map_err(|TooLarge| self.too_large(GREETING))?;
            if let Some(at) = heard.iter().position(|it| it.name == "endpoint") {
                let url = self.where_to_send(&heard[at].data)?;
                let early = heard.split_off(at + 1);
                let stream = Stream {
                    response,
                    events,
                    early,
                };
                return Ok((stream, url));
            }
        }
    }

    /// Reads the URL that messages are sent to, which may not be one of another server: it would learn what this one is
    /// given.
    fn where_to_send(&self, text: &[u8]) -> Result<Url, UpstreamError> {
        let text = String::from_utf8_lossy(text);
        let url = Some(text.trim()).filter(|it| it.len() <= LONGEST_HEADER);
        let url = url.and_then(|it| self.url.join(it).ok());
        url.filter(|it| it.origin() == self.url.origin())
            .ok_or_else(|| {
                let what = "an endpoint that is not on the same host";
                self.malformed(GREETING, what.to_owned())
            })
    }

    /// Hears the stream until it ends, or the connection does.
    async fn read_stream(self: Arc<Self>, mut stream: Stream) {
        let ending = tokio::select! {
            () = self.over.cancelled() => Ending::Closed,
            how = self.hear_stream(&mut stream) => Ending::Ended {
                how: how.to_owned(),
                said: String::new(),
            },
        };
        if let Some(waiting) = &self.waiting {
            waiting.end(&ending);
        }
        self.over.cancel();
    }

    async fn hear_stream(self: &Arc<Self>, stream: &mut Stream) -> &'static str {
        loop {
            for event in std::mem::take(&mut stream.early) {
                self.hear_each(&event.data, Place::Open, |answer| {
                    if let Some(waiting) = &self.waiting {
                        waiting.answer(answer);
                    }
                });
            }
            match stream.response.chunk().await {
                Ok(Some(chunk)) => match stream.events.feed(&chunk) {
                    Ok(events) => stream.early = events,
                    Err(TooLarge) => return "a message on the stream of answers is too large",
                },
                Ok(None) | Err(_) => return "the stream of answers ended before the answer",
            }
        }
    }

    /// Posts a request, and waits for its answer on the stream.
    pub(super) async fn exchange_apart(
        &self,
        waiting: &Waiting,
        (id, method): (u64, &str),
        body: Vec<u8>,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let ended = |ending: Ending| match ending {
            Ending::Closed => self.over_error(method),
            Ending::Ended { how, .. } => self.broken(method, &how),
        };
        let answer = waiting.enter(id).map_err(ended)?;
        let _leaving = Leaving { waiting, id };
        let posted = self.post(method, HeaderMap::new(), body).await?;
        self.check_status(method, posted).await?;
        match answer.await {
            Ok(Reply::Answered(outcome)) => result(method, outcome, &self.ears),
            Ok(Reply::Ended(ending)) => Err(ended(ending)),
            Ok(Reply::TooLong) => Err(self.too_large(method)),
            Err(_) => Err(self.over_error(method)),
        }
    }
}

/// Stops to wait for an answer when it is dropped.
struct Leaving<'a> {
    waiting: &'a Waiting,
    id: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.waiting.leave(self.id);
    }
}
