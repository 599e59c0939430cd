//! Who waits for which answer of a program.

use super::message::{Answer, Outcome};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;

/// What comes instead of silence.
#[derive(Debug)]
pub(super) enum Reply {
    Answered(Outcome),
    TooLong,
    Ended(Ending),
}

/// How a program ended.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    /// We closed the connection.
    Closed,
    /// It ended by itself, or had to be ended.
    Ended { how: String, said: String },
}

/// The requests without an answer; once the program has ended, how it did.
#[derive(Debug)]
pub(super) struct Waiting(Mutex<State>);

#[derive(Debug)]
enum State {
    Open(HashMap<u64, oneshot::Sender<Reply>>),
    Ended(Ending),
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State::Open(HashMap::new())))
    }

    /// Starts to wait for an answer.
    pub(super) fn enter(&self, id: u64) -> Result<oneshot::Receiver<Reply>, Ending> {
        match &mut *self.state() {
            State::Open(waiting) => {
                let (sender, receiver) = oneshot::channel();
                waiting.insert(id, sender);
                Ok(receiver)
            }
            State::Ended(ending) => Err(ending.clone()),
        }
    }

    pub(super) fn leave(&self, id: u64) {
        if let State::Open(waiting) = &mut *self.state() {
            waiting.remove(&id);
        }
    }

    /// Hands an answer to who waits for it, and says whether anybody did.
    pub(super) fn answer(&self, answer: Answer) -> bool {
        answer
            .id
            .is_some_and(|id| self.reply(id, Reply::Answered(answer.outcome)))
    }

    pub(super) fn reply(&self, id: u64, reply: Reply) -> bool {
        let State::Open(waiting) = &mut *self.state() else {
            return false;
        };
        let sender = waiting.remove(&id);
        sender.is_some_and(|it| it.send(reply).is_ok())
    }

    /// Tells all who wait, and all who come later, how it ended.
    pub(super) fn end(&self, ending: &Ending) {
        let before = std::mem::replace(&mut *self.state(), State::Ended(ending.clone()));
        if let State::Open(waiting) = before {
            for sender in waiting.into_values() {
                // Whoever has stopped to wait needs no reply.
                let _ = sender.send(Reply::Ended(ending.clone()));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
