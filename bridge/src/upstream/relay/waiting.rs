//! Calls of servers that can't go on before a caller without a session has come back with an answer.

use super::{
    super::{
        connector::{Listener, Refusal, Talk, UpstreamError},
        failure::INTERNAL_ERROR,
    },
    Relay, ask,
    listening::relay_progress,
};
use serde_json::{Value, value::RawValue};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};
use tool_runtime::{BoxFuture, Context, Level, Question};

/// How long a caller may take to come back.
const PATIENCE: Duration = Duration::from_mins(15);

/// How many calls may wait. Those that waited longest go first.
const MOST: usize = 1_000;

/// How much that a server says may wait to be handed on.
const SAID: usize = 256;

type Answered = Result<Box<RawValue>, UpstreamError>;

/// A call of a server's that is under way, whoever asks for it at the moment.
pub(in crate::upstream) struct Waiting {
    /// Ends with it.
    call: JoinSet<Answered>,
    said: mpsc::Receiver<Said>,
    open: BTreeMap<String, Open>,
    asked: usize,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiting(for {} answers)", self.open.len())
    }
}

/// A question without an answer.
struct Open {
    question: Question,
    reply: oneshot::Sender<Value>,
}

/// What a server says meanwhile.
enum Said {
    Progress(f64, Option<f64>, Option<String>),
    Log(Level, Value),
    Question {
        method: String,
        params: Value,
        reply: oneshot::Sender<Value>,
    },
}

impl Waiting {
    /// Starts a call.
    pub(super) fn start(relay: &Relay<'_>, talk: Talk) -> Self {
        let (say, said) = mpsc::channel(SAID);
        let talk = Talk {
            listener: Some(Arc::new(Ears(say))),
            ..talk
        };
        let (client, method, params) = (relay.client.clone(), relay.method, relay.params.clone());
        let mut call = JoinSet::new();
        call.spawn(async move { ask(&client, method, &params, talk).await });
        Self {
            call,
            said,
            open: BTreeMap::new(),
            asked: 0,
        }
    }

    /// Goes on until there is a result. `None` if the caller must answer before.
    pub(super) async fn until_stuck(&mut self, context: &Context) -> Option<Answered> {
        if !self.open.is_empty() {
            return None;
        }
        loop {
            let said = tokio::select! {
                biased;
                said = self.said.recv() => said,
                ended = self.call.join_next() => return ended?.ok(),
            };
            match said {
                Some(said) => self.hear(said, context),
                // Nothing more is said: the result is all that can come.
                None => return self.call.join_next().await?.ok(),
            }
            if !self.open.is_empty() {
                // Questions that were put together are asked together.
                while let Ok(said) = self.said.try_recv() {
                    self.hear(said, context);
                }
                return None;
            }
        }
    }

    fn hear(&mut self, said: Said, context: &Context) {
        match said {
            Said::Progress(done, total, message) => {
                relay_progress(&context.progress, done, total, message);
            }
            Said::Log(level, data) => context.log.log(level, data),
            Said::Question {
                method,
                params,
                reply,
            } => {
                self.asked += 1;
                let key = format!("question-{}", self.asked);
                let question = Question {
                    key: key.clone(),
                    method: method.into(),
                    params,
                };
                self.open.insert(key, Open { question, reply });
            }
        }
    }

    pub(super) fn questions(&self) -> Vec<Question> {
        self.open.values().map(|it| it.question.clone()).collect()
    }

    /// Hands answers to the server. Questions without one stay open.
    pub(super) fn answer(&mut self, answers: BTreeMap<String, Value>) {
        for (key, answer) in answers {
            if let Some(open) = self.open.remove(&key) {
                // A server that has taken its question back needs no answer.
                let _ = open.reply.send(answer);
            }
        }
        self.open.retain(|_, it| !it.reply.is_closed());
    }
}

/// Takes down what a server says.
struct Ears(mpsc::Sender<Said>);

impl Listener for Ears {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        let _ = self.0.try_send(Said::Progress(done, total, message));
    }

    fn log(&self, level: Level, _: Option<String>, data: Value) {
        let _ = self.0.try_send(Said::Log(level, data));
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, Refusal>> {
        let (reply, answer) = oneshot::channel();
        let question = Said::Question {
            method: method.to_owned(),
            params,
            reply,
        };
        Box::pin(async move {
            let gone = || Refusal {
                code: INTERNAL_ERROR,
                message: "nobody is there any more who could answer".to_owned(),
            };
            self.0.send(question).await.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())
        })
    }
}

/// All calls that wait, by a name that can't be guessed.
#[derive(Debug, Default)]
pub(in crate::upstream) struct WaitingCalls(Mutex<HashMap<String, (Instant, Waiting)>>);

impl WaitingCalls {
    /// Keeps a call for a while, and returns its name.
    pub(super) fn keep(&self, waiting: Waiting) -> String {
        let name = format!("{:032x}", random());
        let mut calls = self.calls();
        if calls.len() >= MOST
            && let Some(oldest) = calls.iter().min_by_key(|it| it.1.0).map(|it| it.0.clone())
        {
            calls.remove(&oldest);
        }
        calls.insert(name.clone(), (Instant::now(), waiting));
        name
    }

    /// Takes a call to go on with it. Nobody else can meanwhile.
    pub(super) fn take(&self, name: &str) -> Option<Waiting> {
        self.calls().remove(name).map(|it| it.1)
    }

    /// Ends the calls that have waited too long.
    pub(in crate::upstream) fn sweep(&self) {
        self.calls().retain(|_, it| it.0.elapsed() < PATIENCE);
    }

    /// Ends all calls.
    pub(in crate::upstream) fn end(&self) {
        self.calls().clear();
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, (Instant, Waiting)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn random() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has a source of randomness");
    u128::from_le_bytes(bytes)
}
