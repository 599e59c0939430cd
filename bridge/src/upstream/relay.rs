//! One request to a server on behalf of a caller, whichever era of the protocol each of them speaks.
//!
//! | caller, server | what a question of the server becomes |
//! |---|---|
//! | both without sessions | a result that asks; the server's state goes along, sealed |
//! | the server with a session only | the server's call is kept waiting, and the next round of the caller's answers it |
//! | the caller with a session only | a question on the caller's stream; then the server is asked again with the answer |
//! | both with sessions | a question on the caller's stream |

mod listening;
mod task;
mod waiting;

pub(super) use waiting::WaitingCalls;

use super::{
    connector::{Client, Talk, UpstreamError},
    failure::{ExternalError, Failure},
};
use futures_util::future::try_join_all;
use listening::Listening;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use std::{collections::BTreeMap, sync::Arc};
use task::{Task, with_tasks};
use tool_runtime::{ClientError, Context, InputRequired, Question};
use waiting::Waiting;

/// How often a server may ask again before it gives its result.
const MOST_ROUNDS: usize = 16;

/// How many questions it may put at once.
const MOST_QUESTIONS: usize = 32;

/// What is asked of a server.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input_responses: Option<BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_state: Option<String>,
    /// That it is to run as a task, for servers with sessions that want to be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<Map<String, Value>>,
}

/// A request that is to be made.
#[derive(Debug)]
pub(super) struct Relay<'a> {
    pub(super) server: &'a str,
    pub(super) client: &'a Client,
    pub(super) waiting: &'a WaitingCalls,
    pub(super) method: &'static str,
    pub(super) params: Params,
    /// What headers repeat of the arguments.
    pub(super) headers: Vec<(String, String)>,
    pub(super) context: &'a Context,
}

/// What a caller without a session brings back to the next round.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    /// The server's own state, as it came.
    OfServer(Option<String>),
    /// A call of the server's that waits.
    Waits(String),
}

/// What a server without sessions wants to know first.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asking {
    #[serde(default)]
    result_type: String,
    #[serde(default)]
    input_requests: Questions,
    #[serde(default)]
    request_state: Option<String>,
}

/// Questions by their names, as a server without sessions writes them.
type Questions = BTreeMap<String, Asked>;

#[derive(Debug, Deserialize)]
struct Asked {
    method: String,
    #[serde(default)]
    params: Value,
}

fn questions(asked: Questions) -> impl Iterator<Item = Question> {
    let asked = asked.into_iter().take(MOST_QUESTIONS);
    asked.map(|(key, asked)| Question {
        key,
        method: asked.method.into(),
        params: asked.params,
    })
}

impl Relay<'_> {
    /// Makes the request, or another round of it.
    pub(super) async fn run(mut self) -> Result<Box<RawValue>, Failure> {
        let round = self.context.client.round();
        let state = round.as_ref().and_then(|it| it.state.as_deref());
        let state: Option<State> = state.and_then(|it| serde_json::from_str(it).ok());
        match (round, state) {
            (Some(round), Some(State::Waits(call))) => self.go_on(&call, round.answers).await,
            (Some(round), state) if self.client.is_modern() => {
                if !round.answers.is_empty() || state.is_some() {
                    self.params.input_responses = Some(round.answers);
                }
                if let Some(State::OfServer(state)) = state {
                    self.params.request_state = state;
                }
                let result = self.once().await?;
                match asking(&result) {
                    Some(asking) => Err(Failure::Asks(asking.into_required())),
                    None => Ok(result),
                }
            }
            (Some(_), _) if !self.context.client.capabilities().is_empty() => {
                let waiting = Waiting::start(&self, self.talk(false));
                self.drive(waiting).await
            }
            _ => self.ask_as_it_goes().await,
        }
    }

    /// What goes along with the request.
    fn talk(&self, is_heard: bool) -> Talk {
        let context = self.context;
        let log = context.log.least();
        let progress = context.progress.is_heard();
        let capabilities = context.client.capabilities();
        let listens = is_heard && (log.is_some() || progress || !capabilities.is_empty());
        Talk {
            log,
            progress,
            listener: listens.then(|| Arc::new(Listening::new(context)) as _),
            capabilities: if self.client.is_modern() && context.later.is_possible() {
                with_tasks(capabilities)
            } else {
                capabilities
            },
            headers: self.headers.clone(),
            meta: context.meta.as_deref().cloned().unwrap_or_default(),
            ..Talk::default()
        }
    }

    async fn once(&self) -> Result<Box<RawValue>, Failure> {
        let talk = self.talk(true);
        let answered = ask(self.client, self.method, &self.params, talk).await?;
        match Task::of(&answered) {
            Some(created) if self.context.later.is_possible() => self.follow(created).await,
            _ => Ok(answered),
        }
    }

    /// Asks a caller who answers at once whatever the server wants to know.
    async fn ask_as_it_goes(mut self) -> Result<Box<RawValue>, Failure> {
        for _ in 0..MOST_ROUNDS {
            let result = self.once().await?;
            if !self.client.is_modern() {
                return Ok(result);
            }
            let Some(asking) = asking(&result) else {
                return Ok(result);
            };
            self.params.input_responses = Some(self.answers(asking.input_requests).await?);
            self.params.request_state = asking.request_state;
        }
        let reason = format!("it asks again after {MOST_ROUNDS} rounds of answers");
        Err(Failure::Answer(
            format!("server `{}` gives no result: {reason}", self.server).into(),
        ))
    }

    /// Asks a caller who answers at once.
    async fn answers(&self, asked: Questions) -> Result<BTreeMap<String, Value>, Failure> {
        let client = &self.context.client;
        let answers = questions(asked).map(|it| async move {
            let answer = client.named(&it.key).ask(it.method, it.params).await;
            Ok::<_, ClientError>((it.key, answer?))
        });
        let answers = try_join_all(answers).await.map_err(Failure::Client)?;
        Ok(answers.into_iter().collect())
    }

    /// Goes on with a call that waits for answers.
    async fn go_on(
        self,
        call: &str,
        answers: BTreeMap<String, Value>,
    ) -> Result<Box<RawValue>, Failure> {
        let waiting = self.waiting.take(call);
        let mut waiting = waiting.ok_or_else(|| ExternalError::CallGone {
            name: self.server.to_owned(),
        })?;
        waiting.answer(answers);
        self.drive(waiting).await
    }

    /// Sees a call to its end, or to its next question.
    async fn drive(self, mut waiting: Waiting) -> Result<Box<RawValue>, Failure> {
        if let Some(result) = waiting.until_stuck(self.context).await {
            return Ok(result?);
        }
        let questions = waiting.questions();
        let call = self.waiting.keep(waiting);
        let state = serde_json::to_string(&State::Waits(call)).ok();
        Err(Failure::Asks(InputRequired { questions, state }))
    }
}

/// Makes a request; one that runs as a task has the task's result.
async fn ask(
    client: &Client,
    method: &str,
    params: &Params,
    talk: Talk,
) -> Result<Box<RawValue>, UpstreamError> {
    if params.task.is_none() {
        return client.converse(method, params, talk).await;
    }
    let answered = client.converse(method, params, talk.clone()).await?;
    match task::in_session(&answered) {
        Some(id) => task::result_in_session(client, id, talk).await,
        None => Ok(answered),
    }
}

/// Reads a result that asks.
fn asking(result: &RawValue) -> Option<Asking> {
    // Most results need no look inside.
    if !result.get().contains("input_required") {
        return None;
    }
    let asking: Asking = serde_json::from_str(result.get()).ok()?;
    (asking.result_type == "input_required").then_some(asking)
}

impl Asking {
    fn into_required(self) -> InputRequired {
        InputRequired {
            questions: questions(self.input_requests).collect(),
            state: serde_json::to_string(&State::OfServer(self.request_state)).ok(),
        }
    }
}

/// The arguments of a prompt, as JSON.
pub(super) fn texts(arguments: &BTreeMap<String, String>) -> Option<Box<RawValue>> {
    let texts = arguments.iter();
    let texts: Map<String, Value> = texts
        .map(|(name, text)| (name.clone(), text.as_str().into()))
        .collect();
    serde_json::value::to_raw_value(&texts).ok()
}
