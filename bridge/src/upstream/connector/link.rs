//! Asks a server and waits for its answer, in time.

use super::{
    Era, Limits, UpstreamError,
    ears::{Ears, Entered},
    http::Endpoint,
    message,
    meta::{Meta, Said},
    modern,
    ongoing::{Asked, Ongoing},
    stdio::Program,
    talk::Talk,
};
use reqwest::header::HeaderMap;
use serde::Serialize;
use serde_json::value::RawValue;
use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

/// How much is shown of the type of a result.
const LONGEST_KIND: usize = 40;

/// The way to one server.
pub(super) struct Link {
    pub(super) server: Arc<str>,
    pub(super) transport: Transport,
    limits: Limits,
    last_id: AtomicU64,
}

/// How a server is spoken to.
pub(super) enum Transport {
    Program(Program),
    Endpoint(Endpoint),
}

/// A request as it is sent.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) id: u64,
    pub(super) method: &'a str,
    pub(super) body: Vec<u8>,
    /// What headers repeat of the body, where there are headers.
    pub(super) headers: HeaderMap,
}

impl Link {
    pub(super) fn new(server: &Arc<str>, transport: Transport, limits: Limits) -> Self {
        Self {
            server: server.clone(),
            transport,
            limits,
            last_id: AtomicU64::new(0),
        }
    }

    /// Sends a request, once, and returns the result as it came. If the future is dropped, the server is told that
    /// nobody waits any more.
    pub(super) async fn converse(
        &self,
        method: &str,
        params: &impl Serialize,
        talk: &Talk,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let era = self.transport.ears().era();
        let outgoing = self.write(era, method, params, talk)?;
        let limit = talk.limit.unwrap_or(self.limits.call);
        let limit = limit.min(self.limits.longest);
        let result = if talk.listener.is_none() && !talk.progress {
            let exchange = self.transport.exchange(outgoing, None);
            self.in_time(method, limit, exchange).await
        } else {
            let (entered, asked) = self.transport.ears().enter(outgoing.id, talk);
            self.exchange_with(outgoing, &entered, asked, limit).await
        };
        match era {
            Era::Legacy => result,
            Era::Modern => self.of_known_kind(method, result?, talk),
        }
    }

    /// Sends a plain request in the way of an era, with a limit of its own.
    pub(super) async fn ask(
        &self,
        era: Era,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let outgoing = self.write(era, method, params, &Talk::default())?;
        let exchange = self.transport.exchange(outgoing, None);
        self.in_time(method, limit, exchange).await
    }

    fn write<'a>(
        &self,
        era: Era,
        method: &'a str,
        params: &impl Serialize,
        talk: &Talk,
    ) -> Result<Outgoing<'a>, UpstreamError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let is_modern = era == Era::Modern;
        let meta = Meta {
            token: talk.progress.then_some(id),
            rest: &talk.meta,
            said: is_modern.then(|| Said {
                version: modern::VERSION,
                capabilities: &talk.capabilities,
                log: talk.log.filter(|_| talk.listener.is_some()),
            }),
        };
        let meta = (!meta.is_empty()).then_some(&meta);
        let unsendable = |error: serde_json::Error| UpstreamError::Unsendable {
            server: self.server.to_string(),
            method: method.to_owned(),
            reason: error.to_string(),
        };
        let params = serde_json::value::to_raw_value(params).map_err(unsendable)?;
        let body = message::request(id, method, &params, meta).map_err(unsendable)?;
        let headers = if is_modern && self.transport.has_headers() {
            modern::headers(method, &params, &talk.headers)
        } else {
            HeaderMap::new()
        };
        Ok(Outgoing {
            id,
            method,
            body,
            headers,
        })
    }

    fn of_known_kind(
        &self,
        method: &str,
        result: Box<RawValue>,
        talk: &Talk,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let Some(kind) = modern::unknown_kind(&result, &talk.capabilities) else {
            return Ok(result);
        };
        let kind = self.transport.ears().masks().beginning(&kind, LONGEST_KIND);
        Err(UpstreamError::Malformed {
            server: self.server.to_string(),
            method: method.to_owned(),
            what: format!("a result of the unknown type `{kind}`"),
        })
    }

    /// Waits for the answer, and meanwhile has the server's questions answered. Signs of progress hold the limit off, and
    /// so do open questions.
    async fn exchange_with(
        &self,
        outgoing: Outgoing<'_>,
        entered: &Entered<'_>,
        mut asked: mpsc::Receiver<Asked>,
        limit: Duration,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let (ongoing, method) = (&*entered.ongoing, outgoing.method);
        let end = Instant::now() + self.limits.longest;
        let mut questions = ongoing.questions();
        let mut exchange = pin!(self.transport.exchange(outgoing, Some(ongoing)));
        loop {
            let idle = ongoing.went_on() + limit;
            let until = if questions.are_open() {
                end
            } else {
                idle.min(end)
            };
            tokio::select! {
                biased;
                answer = &mut exchange => return answer,
                Some(asked) = asked.recv() => questions.take(asked),
                answer = questions.answered(), if questions.are_open() => {
                    ongoing.goes_on();
                    self.transport.tell(answer);
                }
                () = sleep_until(until) => {
                    let now = Instant::now();
                    if now >= end {
                        return Err(self.timed_out(method, self.limits.longest));
                    }
                    if ongoing.went_on() + limit <= now {
                        return Err(self.timed_out(method, limit));
                    }
                }
            }
        }
    }

    async fn in_time<T>(
        &self,
        method: &str,
        limit: Duration,
        exchange: impl Future<Output = Result<T, UpstreamError>>,
    ) -> Result<T, UpstreamError> {
        let answer = timeout(limit, exchange).await;
        answer.unwrap_or_else(|_| Err(self.timed_out(method, limit)))
    }

    pub(super) fn timed_out(&self, method: &str, after: Duration) -> UpstreamError {
        UpstreamError::TimedOut {
            server: self.server.to_string(),
            method: method.to_owned(),
            after,
            said: self.transport.said(),
        }
    }
}

impl Transport {
    async fn exchange(
        &self,
        outgoing: Outgoing<'_>,
        ongoing: Option<&Ongoing>,
    ) -> Result<Box<RawValue>, UpstreamError> {
        match self {
            Self::Program(program) => program.exchange(outgoing).await,
            Self::Endpoint(endpoint) => endpoint.exchange(outgoing, ongoing).await,
        }
    }

    /// Sends what gets no answer, and whose fate nobody waits for.
    fn tell(&self, message: Vec<u8>) {
        match self {
            Self::Program(program) => program.tell(message),
            Self::Endpoint(endpoint) => endpoint.tell(message),
        }
    }

    fn has_headers(&self) -> bool {
        matches!(self, Self::Endpoint(_))
    }

    pub(super) fn ears(&self) -> &Ears {
        match self {
            Self::Program(program) => program.ears(),
            Self::Endpoint(endpoint) => endpoint.ears(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Program(program) => program.has_ended(),
            Self::Endpoint(endpoint) => endpoint.has_ended(),
        }
    }

    pub(super) async fn ended(&self) {
        match self {
            Self::Program(program) => program.ended().await,
            Self::Endpoint(endpoint) => endpoint.ended().await,
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Program(program) => program.close().await,
            Self::Endpoint(endpoint) => endpoint.close().await,
        }
    }

    /// Returns the last words of a program.
    fn said(&self) -> String {
        match self {
            Self::Program(program) => program.said(),
            Self::Endpoint(_) => String::new(),
        }
    }
}
