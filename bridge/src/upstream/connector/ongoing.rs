//! A request under way that somebody listens to, and the questions that the server puts meanwhile.

use super::{
    message,
    talk::{Listener, Refusal, Talk},
};
use serde_json::{Value, value::RawValue};
use std::{
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};
use tokio::{sync::mpsc, time::Instant};
use tool_runtime::{BoxFuture, Level};

/// How many questions of one request may be open, and how many more may wait.
const OPEN: usize = 16;
/// What is wrong on our side of a question.
const INTERNAL_ERROR: i64 = -32603;

/// A request under way.
pub(super) struct Ongoing {
    pub(super) id: u64,
    listener: Option<Arc<dyn Listener>>,
    log: Option<Level>,
    wants_progress: bool,
    /// When it last went on, as far as we know.
    went_on: Mutex<Instant>,
    asked: mpsc::Sender<Asked>,
}

impl fmt::Debug for Ongoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ongoing({})", self.id)
    }
}

/// What a server wants of whoever sent the request.
#[derive(Debug)]
pub(super) enum Asked {
    Question {
        id: Box<RawValue>,
        method: String,
        params: Value,
    },
    /// The server doesn't want to know any more.
    TakenBack { id: Box<RawValue> },
}

impl Ongoing {
    pub(super) fn new(id: u64, talk: &Talk) -> (Arc<Self>, mpsc::Receiver<Asked>) {
        let (asked, questions) = mpsc::channel(OPEN);
        let ongoing = Self {
            id,
            listener: talk.listener.clone(),
            log: talk.log,
            wants_progress: talk.progress,
            went_on: Mutex::new(Instant::now()),
            asked,
        };
        (Arc::new(ongoing), questions)
    }

    pub(super) fn has_listener(&self) -> bool {
        self.listener.is_some()
    }

    /// Notes that it goes on.
    pub(super) fn goes_on(&self) {
        *self.went_on.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(super) fn went_on(&self) -> Instant {
        *self.went_on.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hear_progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        if self.wants_progress {
            self.goes_on();
            if let Some(listener) = &self.listener {
                listener.progress(done, total, message);
            }
        }
    }

    pub(super) fn wants_log(&self, level: Level) -> bool {
        self.log.is_some_and(|least| level >= least)
    }

    pub(super) fn hear_log(&self, level: Level, logger: Option<String>, data: Value) {
        if let Some(listener) = self.listener.as_ref().filter(|_| self.wants_log(level)) {
            listener.log(level, logger, data);
        }
    }

    /// Hands on what the server asks, unless too much waits already.
    pub(super) fn ask(&self, asked: Asked) -> Result<(), Asked> {
        let sent = self.asked.try_send(asked);
        sent.map_err(mpsc::error::TrySendError::into_inner)
    }

    /// Starts without questions.
    pub(super) fn questions(&self) -> Questions<'_> {
        Questions {
            listener: self.listener.as_deref(),
            open: Vec::new(),
        }
    }
}

/// The questions of a server that are not answered yet. They end with this.
pub(super) struct Questions<'a> {
    listener: Option<&'a dyn Listener>,
    open: Vec<Open<'a>>,
}

struct Open<'a> {
    id: Box<RawValue>,
    answer: BoxFuture<'a, Result<Value, Refusal>>,
}

impl Questions<'_> {
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Puts a question to the listener, or takes one back.
    pub(super) fn take(&mut self, asked: Asked) {
        match asked {
            Asked::Question { id, method, params } => {
                let answer = match self.listener {
                    Some(listener) if self.open.len() < OPEN => listener.ask(&method, params),
                    _ => Box::pin(async { Err(too_much()) }),
                };
                self.open.push(Open { id, answer });
            }
            Asked::TakenBack { id } => self.open.retain(|it| it.id.get() != id.get()),
        }
    }

    /// Waits until one is answered, and returns the answer as it is sent.
    pub(super) async fn answered(&mut self) -> Vec<u8> {
        poll_fn(|context| {
            for at in 0..self.open.len() {
                if let Poll::Ready(outcome) = self.open[at].answer.as_mut().poll(context) {
                    let Open { id, .. } = self.open.swap_remove(at);
                    return Poll::Ready(message::answer(&id, &outcome));
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// What a server is told that asks faster than anybody could answer.
pub(super) fn too_much() -> Refusal {
    Refusal {
        code: INTERNAL_ERROR,
        message: "too many questions are open; wait for the answers".to_owned(),
    }
}
