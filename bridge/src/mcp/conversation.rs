//! Questions to the client: on the stream of a session, or, without sessions, by running the call again with the answers
//! at hand.

use super::{seal::Answers, session::Session};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::mpsc;
use tool_runtime::{BoxFuture, ClientError, Conversation, InputRequired, Question, Round};

/// The capability that a client must have declared to be asked something.
pub(super) fn capability(method: &str) -> Option<&'static str> {
    match method {
        "elicitation/create" => Some("elicitation"),
        "sampling/createMessage" => Some("sampling"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

/// Whether a client that declared these capabilities can be asked this.
pub(super) fn can_answer(capabilities: &Value, question: &Question) -> bool {
    let declared = capability(&question.method).and_then(|it| capabilities.get(it));
    let Some(declared) = declared.filter(|it| it.is_object()) else {
        return false;
    };
    // Clients before 2025-11-25 declare elicitation without its modes, which means forms.
    let by_url = question.params.get("mode").is_some_and(|it| it == "url");
    let modes = declared.get("form").is_some() || declared.get("url").is_some();
    match question.method.as_ref() {
        "elicitation/create" if by_url => declared.get("url").is_some(),
        "elicitation/create" => !modes || declared.get("form").is_some(),
        _ => true,
    }
}

/// What can be asked, and in which ways, as the protocol names it.
const QUESTIONS: [(&str, &[&str]); 3] = [
    ("elicitation", &["form", "url"]),
    ("sampling", &["tools", "context"]),
    ("roots", &[]),
];

/// What of the declared capabilities is about questions. Whatever else clients write there is left out: an external server
/// with sessions has a connection for each way in which callers can be asked, and there must not be more and more of them.
pub(super) fn declared(capabilities: &Value) -> Map<String, Value> {
    let mut declared = Map::new();
    for (question, ways) in QUESTIONS {
        let Some(Value::Object(known)) = capabilities.get(question) else {
            continue;
        };
        let ways = ways.iter().filter(|it| known.contains_key(**it));
        let ways: Map<String, Value> = ways.map(|it| ((*it).to_owned(), json!({}))).collect();
        declared.insert(question.to_owned(), ways.into());
    }
    declared
}

fn unsupported(question: Question) -> ClientError {
    ClientError::Unsupported {
        method: question.method,
    }
}

/// Asks on the stream of the call; the client answers with a request of its own.
#[derive(Debug)]
pub(super) struct OnStream {
    session: Arc<Session>,
    capabilities: Value,
    outbox: mpsc::Sender<Vec<u8>>,
}

impl OnStream {
    pub(super) fn new(session: Arc<Session>, outbox: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            capabilities: serde_json::from_str(&session.capabilities).unwrap_or_default(),
            session,
            outbox,
        }
    }

    async fn put(&self, question: Question) -> Result<Value, ClientError> {
        if !can_answer(&self.capabilities, &question) {
            return Err(unsupported(question));
        }
        let failed = |reason: String| ClientError::Failed { reason };
        let (message, asked) = self.session.ask(&question.method, &question.params);
        let sent = self.outbox.send(message).await;
        sent.map_err(|_| failed("the client is gone".to_owned()))?;
        match asked.answer().await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => {
                let message = error.get("message").and_then(Value::as_str);
                Err(failed(message.unwrap_or("it gave an error").to_owned()))
            }
            None => Err(failed("the session ended".to_owned())),
        }
    }
}

impl Conversation for OnStream {
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Value, ClientError>> {
        Box::pin(self.put(question))
    }

    fn capabilities(&self) -> Map<String, Value> {
        declared(&self.capabilities)
    }
}

/// Answers with what the client sent along; what is missing stops the call, and the client makes it again.
#[derive(Debug)]
pub(super) struct Rerun {
    capabilities: Value,
    answers: Answers,
    /// What the client has sent along in this round.
    sent: Round,
    asked: Mutex<Asked>,
}

/// What the call has asked so far.
#[derive(Debug, Default)]
struct Asked {
    /// How many questions without a name of their own.
    unnamed: usize,
    /// The answers that were used, so that the next round has them too.
    used: Answers,
    missing: BTreeMap<String, Question>,
}

impl Rerun {
    /// Takes the answers of the rounds before, and what the client has sent along in this one.
    pub(super) fn new(capabilities: Value, mut answers: Answers, sent: Round) -> Self {
        answers.extend(sent.answers.clone());
        Self {
            capabilities,
            answers,
            sent,
            asked: Mutex::default(),
        }
    }

    /// Returns the answers that the call has used.
    pub(super) fn used(&self) -> Answers {
        self.asked().used.clone()
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Conversation for Rerun {
    fn ask(&self, mut question: Question) -> BoxFuture<'_, Result<Value, ClientError>> {
        if !can_answer(&self.capabilities, &question) {
            return Box::pin(async { Err(unsupported(question)) });
        }
        let mut asked = self.asked();
        if question.key.is_empty() {
            asked.unnamed += 1;
            question.key = format!("question-{}", asked.unnamed);
        }
        let given = self.answers.get(&question.key);
        if let Some(answer) = given.filter(|it| fits(&question, it)).cloned() {
            asked.used.insert(question.key, answer.clone());
            return Box::pin(async { Ok(answer) });
        }
        asked.missing.insert(question.key.clone(), question);
        Box::pin(pending())
    }

    fn capabilities(&self) -> Map<String, Value> {
        declared(&self.capabilities)
    }

    fn round(&self) -> Option<Round> {
        Some(self.sent.clone())
    }

    fn missing(&self) -> Option<InputRequired> {
        let mut asked = self.asked();
        if asked.missing.is_empty() {
            return None;
        }
        let questions = std::mem::take(&mut asked.missing);
        Some(InputRequired {
            questions: questions.into_values().collect(),
            state: None,
        })
    }
}

/// Whether an answer has the shape that its question wants. One that hasn't is as good as none: the client is asked
/// again.
pub(super) fn fits(question: &Question, answer: &Value) -> bool {
    match question.method.as_ref() {
        "elicitation/create" => match answer.get("action").and_then(Value::as_str) {
            Some("accept") => {
                let schema = question.params.get("requestedSchema");
                let content = answer.get("content").unwrap_or(&Value::Null);
                schema.is_none_or(|schema| jsonschema::is_valid(schema, content))
            }
            Some("decline" | "cancel") => true,
            _ => false,
        },
        "sampling/createMessage" => answer.get("content").is_some(),
        "roots/list" => answer.get("roots").is_some_and(Value::is_array),
        _ => answer.is_object(),
    }
}

/// The error data that names what the client would have to declare.
pub(super) fn required_capabilities(method: &str) -> Value {
    let capability = capability(method).unwrap_or(method);
    json!({ "requiredCapabilities": { capability: {} } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_ways_of_asking_are_told_to_servers() {
        let check = |capabilities: Value, expected: Value| {
            assert_eq!(
                Value::Object(declared(&capabilities)),
                expected,
                "{capabilities}"
            );
        };
        check(json!({}), json!({}));
        check(
            json!({ "roots": { "listChanged": true }, "elicitation": { "url": { "x": 1 }, "y": {} } }),
            json!({ "elicitation": { "url": {} }, "roots": {} }),
        );
        check(
            json!({ "sampling": { "tools": {} }, "elicitation": true, "extensions": {}, "tasks": {} }),
            json!({ "sampling": { "tools": {} } }),
        );
    }
}
