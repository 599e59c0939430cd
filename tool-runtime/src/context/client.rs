//! The caller's side, which a tool can ask something.

use crate::{
    definition::BoxFuture,
    output::{InputRequired, Question},
};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use thiserror::Error;

/// The caller's side, which can answer questions.
#[derive(Clone, Default)]
pub struct Client {
    asking: Option<Arc<Asking>>,
    /// The name of the next question; empty where it has none.
    key: String,
}

/// A way to put a question to a client. A closure is one, for agents in the same process.
pub trait Conversation: Send + Sync {
    /// Asks, and waits for the answer: the `result` of the protocol's method.
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Value, ClientError>>;

    /// Returns what the client can answer: the protocol's `ClientCapabilities`. The default is everything.
    fn capabilities(&self) -> Map<String, Value> {
        let all = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
        match all {
            Value::Object(all) => all,
            _ => Map::new(),
        }
    }

    /// Returns what the client has sent along, if it answers by making the call again. The default is that it answers
    /// while the call runs.
    fn round(&self) -> Option<Round> {
        None
    }

    /// Returns the questions that can't be answered while the call runs: it is stopped, and made again with the answers
    /// at hand. The default is none.
    fn missing(&self) -> Option<InputRequired> {
        None
    }
}

impl<F, A> Conversation for F
where
    F: Fn(Question) -> A + Send + Sync,
    A: Future<Output = Result<Value, ClientError>> + Send + 'static,
{
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Value, ClientError>> {
        Box::pin(self(question))
    }
}

/// What a client brings that makes a call again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// The state of an [`InputRequired`] that the call gave before; `None` if this is the first round.
    pub state: Option<String>,
    /// The answers to its questions, by name.
    pub answers: BTreeMap<String, Value>,
}

/// Why a question has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The client can't be asked this.
    #[error("the client can't answer `{method}`")]
    Unsupported {
        /// The method of the protocol.
        method: Cow<'static, str>,
    },
    /// The person said no.
    #[error("the user declined to answer")]
    Declined,
    /// The person closed the question.
    #[error("the user closed the question without an answer")]
    Cancelled,
    /// The answer has the wrong shape.
    #[error("the client's answer can't be read: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The client gave an error.
    #[error("the client could not answer: {reason}")]
    Failed {
        /// What it said.
        reason: String,
    },
}

/// A folder that the client lets servers work on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// Its address, a `file://` URI.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

struct Asking {
    conversation: Arc<dyn Conversation>,
    /// How many questions have no answer yet.
    open: AtomicUsize,
}

/// A question without an answer, until it is dropped.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl From<Arc<dyn Conversation>> for Client {
    fn from(conversation: Arc<dyn Conversation>) -> Self {
        let asking = Asking {
            conversation,
            open: AtomicUsize::new(0),
        };
        Self {
            asking: Some(Arc::new(asking)),
            key: String::new(),
        }
    }
}

impl Client {
    /// Makes one that hands each question on.
    pub fn to(conversation: impl Conversation + 'static) -> Self {
        let conversation: Arc<dyn Conversation> = Arc::new(conversation);
        conversation.into()
    }

    /// Gives the next question a name, by which a stateless client sends its answer along. Without one, questions are
    /// counted in the order in which they are asked.
    #[must_use]
    pub fn named(&self, key: impl Into<String>) -> Self {
        Self {
            asking: self.asking.clone(),
            key: key.into(),
        }
    }

    /// Asks the person to fill in a form: the fields of `T`, which are texts, numbers, flags or enums.
    ///
    /// A person who declines or closes the form is an error, so that `?` ends the call.
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        message: impl Into<String>,
    ) -> Result<T, ClientError> {
        let params = json!({
            "mode": "form",
            "message": message.into(),
            "requestedSchema": crate::schema::published_form::<T>(),
        });
        let mut answer = self.ask("elicitation/create", params).await?;
        accepted(&answer)?;
        read(&mut answer, "content")
    }

    /// Asks the person to open a page, for what must not pass through the client, such as a password. Returns when the
    /// person has agreed to open it, which is before they are done there.
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<(), ClientError> {
        let params = json!({ "mode": "url", "message": message.into(), "url": url.into() });
        let answer = self.ask("elicitation/create", params).await?;
        accepted(&answer)
    }

    /// Asks the client's model. `params` are those of `sampling/createMessage`; the answer is its result.
    pub async fn sample(&self, params: Value) -> Result<Value, ClientError> {
        self.ask("sampling/createMessage", params).await
    }

    /// Asks which folders the client lets servers work on.
    pub async fn roots(&self) -> Result<Vec<Root>, ClientError> {
        let mut answer = self.ask("roots/list", json!({})).await?;
        read(&mut answer, "roots")
    }

    /// Puts a question in the protocol's own words.
    pub async fn ask(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: Value,
    ) -> Result<Value, ClientError> {
        let method = method.into();
        match &self.asking {
            Some(asking) => {
                let key = self.key.clone();
                let question = Question {
                    key,
                    method,
                    params,
                };
                asking.open.fetch_add(1, Ordering::Relaxed);
                let _open = Open(&asking.open);
                asking.conversation.ask(question).await
            }
            None => Err(ClientError::Unsupported { method }),
        }
    }

    /// Returns what the client can answer: the protocol's `ClientCapabilities`; empty if it can't be asked.
    pub fn capabilities(&self) -> Map<String, Value> {
        let asking = self.asking.as_ref();
        asking
            .map(|it| it.conversation.capabilities())
            .unwrap_or_default()
    }

    /// Returns what the client has sent along, if it answers questions by making the call again.
    pub fn round(&self) -> Option<Round> {
        self.asking.as_ref()?.conversation.round()
    }

    /// The questions that keep the call from going on.
    pub(crate) fn missing(&self) -> Option<InputRequired> {
        self.asking.as_ref()?.conversation.missing()
    }

    /// Whether somebody is being asked: that is no work of the tool's.
    pub(crate) fn is_asked(&self) -> bool {
        let asking = self.asking.as_ref();
        asking.is_some_and(|it| it.open.load(Ordering::Relaxed) > 0)
    }
}

fn accepted(answer: &Value) -> Result<(), ClientError> {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => Ok(()),
        Some("decline") => Err(ClientError::Declined),
        Some("cancel") => Err(ClientError::Cancelled),
        _ => Err(ClientError::Invalid {
            reason: "`action` is none of `accept`, `decline` and `cancel`".to_owned(),
        }),
    }
}

fn read<T: DeserializeOwned>(answer: &mut Value, key: &str) -> Result<T, ClientError> {
    let part = answer.get_mut(key).map(Value::take).unwrap_or_default();
    serde_json::from_value(part).map_err(|error| ClientError::Invalid {
        reason: format!("`{key}`: {error}"),
    })
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client(can be asked: {})", self.asking.is_some())
    }
}
