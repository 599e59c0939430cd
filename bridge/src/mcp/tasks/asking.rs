//! Questions of a call that is a task, or becomes one.

use super::{ANSWERS, Running, Tasks};
use crate::{
    mcp::{
        conversation::{Rerun, can_answer, declared, fits},
        seal::Answers,
    },
    store::{StoredTask, now},
};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tool_runtime::{BoxFuture, ClientError, Conversation, InputRequired, Question, Round as Sent};

/// Asks as the call did that became a task: at first the client comes back with answers, then it looks into the task.
pub(in crate::mcp) struct Switch {
    first: Arc<Rerun>,
    pub(super) later: OnceLock<InTask>,
}

impl Switch {
    pub(in crate::mcp) fn new(first: Arc<Rerun>) -> Self {
        Self {
            first,
            later: OnceLock::new(),
        }
    }
}

impl Conversation for Switch {
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Value, ClientError>> {
        match self.later.get() {
            Some(later) => later.ask(question),
            None => self.first.ask(question),
        }
    }

    fn capabilities(&self) -> Map<String, Value> {
        self.first.capabilities()
    }

    fn round(&self) -> Option<Sent> {
        match self.later.get() {
            Some(_) => None,
            None => self.first.round(),
        }
    }

    fn missing(&self) -> Option<InputRequired> {
        match self.later.get() {
            Some(_) => None,
            None => self.first.missing(),
        }
    }
}

/// Asks through the task: the client finds the questions when it looks, and sends its answers.
#[derive(Debug)]
pub(super) struct InTask {
    tasks: Arc<Tasks>,
    id: String,
    capabilities: Value,
    pub(super) running: Arc<Running>,
    round: Mutex<Round>,
}

#[derive(Debug, Default)]
struct Round {
    unnamed: usize,
    answers: Answers,
}

impl InTask {
    pub(super) fn new(
        tasks: &Arc<Tasks>,
        stored: &StoredTask,
        capabilities: Value,
        running: Arc<Running>,
    ) -> Self {
        Self {
            tasks: tasks.clone(),
            id: stored.id.clone(),
            capabilities,
            running,
            round: Mutex::default(),
        }
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn put(&self, key: String, question: Question) -> Result<Value, ClientError> {
        if !can_answer(&self.capabilities, &question) {
            let method = question.method;
            return Err(ClientError::Unsupported { method });
        }
        let lost = |reason: String| ClientError::Failed { reason };
        let (store, owner) = (&self.tasks.store, self.tasks.name());
        let request = json!({ "method": question.method, "params": question.params });
        let requests = Map::from_iter([(key.clone(), request)]);
        let asked = store.ask_task(&self.id, owner, &requests, now()).await;
        asked.map_err(|error| lost(error.to_string()))?;
        loop {
            let answered = self.running.answered.notified();
            let taken = store.take_answers(&self.id, owner).await;
            let taken = taken.map_err(|error| lost(error.to_string()))?;
            let Some(taken) = taken else {
                return Err(lost("the task has ended".to_owned()));
            };
            if taken.cancel_requested {
                self.running.cancellation.cancel();
            }
            let mine = {
                let mut round = self.round();
                let some_new = !taken.answers.is_empty();
                round.answers.extend(taken.answers);
                if some_new {
                    self.running.answered.notify_waiters();
                }
                round.answers.remove(&key)
            };
            match mine {
                Some(answer) if fits(&question, &answer) => return Ok(answer),
                Some(_) => {
                    let reason = "it doesn't have the shape that the question asks for".to_owned();
                    return Err(ClientError::Invalid { reason });
                }
                None => drop(tokio::time::timeout(ANSWERS, answered).await),
            }
        }
    }
}

impl Conversation for InTask {
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Value, ClientError>> {
        let key = if question.key.is_empty() {
            let mut round = self.round();
            round.unnamed += 1;
            format!("question-{}", round.unnamed)
        } else {
            question.key.clone()
        };
        Box::pin(self.put(key, question))
    }

    fn capabilities(&self) -> Map<String, Value> {
        declared(&self.capabilities)
    }
}
