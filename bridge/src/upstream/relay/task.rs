//! A call of a server's that goes on as a task: the caller is told so, and the server is asked until it has ended.

use super::{Questions, Relay};
use crate::upstream::{
    connector::{Client, Talk, UpstreamError},
    failure::{ExternalError, Failure, INTERNAL_ERROR},
};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{collections::BTreeMap, time::Duration};
use tokio::{runtime::Handle, time::sleep};
use tool_runtime::ProtocolError;

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How often a server is asked that doesn't say how often.
const LOOK: Duration = Duration::from_millis(500);

/// How often it is asked at least, and at most.
const LOOKS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// What a server says of a task.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Task {
    result_type: String,
    #[serde(rename = "taskId")]
    id: String,
    status: String,
    status_message: Option<String>,
    poll_interval_ms: Option<u64>,
    input_requests: Questions,
    result: Option<Box<RawValue>>,
    error: Option<Value>,
}

impl Task {
    /// Reads a result that says that there will be one.
    pub(super) fn of(result: &RawValue) -> Option<Self> {
        // Most results need no look inside.
        if !result.get().contains(r#""task""#) {
            return None;
        }
        let task: Self = serde_json::from_str(result.get()).ok()?;
        (task.result_type == "task" && !task.id.is_empty()).then_some(task)
    }

    fn wait(&self) -> Duration {
        let said = self.poll_interval_ms.map(Duration::from_millis);
        said.unwrap_or(LOOK).clamp(LOOKS.0, LOOKS.1)
    }
}

/// Declares the extension.
pub(super) fn with_tasks(mut capabilities: Map<String, Value>) -> Map<String, Value> {
    capabilities.insert("extensions".to_owned(), json!({ EXTENSION: {} }));
    capabilities
}

impl Relay<'_> {
    /// Sees a task to its end.
    pub(super) async fn follow(&self, mut task: Task) -> Result<Box<RawValue>, Failure> {
        self.context.later.go_on().await;
        let id = task.id.clone();
        let mut unfinished = Unfinished {
            client: self.client,
            id: Some(id.clone()),
        };
        let mut answered = BTreeMap::new();
        loop {
            match task.status.as_str() {
                "completed" | "failed" | "cancelled" => {
                    unfinished.id = None;
                    return self.ended(task);
                }
                "input_required" => {
                    let asked = std::mem::take(&mut task.input_requests);
                    let new = asked.into_iter().filter(|it| !answered.contains_key(&it.0));
                    let answers = self.answers(new.collect()).await?;
                    if !answers.is_empty() {
                        let update = json!({ "taskId": id, "inputResponses": answers });
                        self.client
                            .converse("tasks/update", &update, self.plain())
                            .await?;
                        answered.extend(answers);
                    }
                }
                _ => {}
            }
            sleep(task.wait()).await;
            let asked = json!({ "taskId": id });
            let now = self
                .client
                .converse("tasks/get", &asked, self.plain())
                .await?;
            task = serde_json::from_str(now.get()).map_err(|error| self.unreadable(&error))?;
        }
    }

    /// What goes along with the requests about a task.
    fn plain(&self) -> Talk {
        Talk {
            capabilities: with_tasks(self.context.client.capabilities()),
            ..Talk::default()
        }
    }

    fn ended(&self, task: Task) -> Result<Box<RawValue>, Failure> {
        if let Some(result) = task.result.filter(|_| task.status == "completed") {
            return Ok(result);
        }
        let said = task.status_message.unwrap_or_default();
        let error = task.error.unwrap_or_default();
        let message = error.get("message").and_then(Value::as_str);
        Err(Failure::Answer(
            ProtocolError {
                code: error
                    .get("code")
                    .and_then(Value::as_i64)
                    .unwrap_or(INTERNAL_ERROR),
                message: message.map_or_else(
                    || format!("the task of `{}` has {}: {said}", self.server, task.status),
                    str::to_owned,
                ),
                data: error.get("data").cloned(),
            }
            .into(),
        ))
    }

    fn unreadable(&self, error: &serde_json::Error) -> Failure {
        ExternalError::Unreadable {
            name: self.server.to_owned(),
            reason: error.to_string(),
        }
        .into()
    }
}

/// Returns the task that a server with sessions says that it has begun.
pub(super) fn in_session(answered: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Begun {
        task: Named,
    }
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "taskId")]
        id: String,
    }
    let begun: Begun = serde_json::from_str(answered.get()).ok()?;
    Some(begun.task.id)
}

/// Waits for the result of a task of a server with sessions, which answers when there is one.
pub(super) async fn result_in_session(
    client: &Client,
    id: String,
    talk: Talk,
) -> Result<Box<RawValue>, UpstreamError> {
    let asked = json!({ "taskId": id });
    let mut unfinished = Unfinished {
        client,
        id: Some(id),
    };
    let result = client.converse("tasks/result", &asked, talk).await?;
    unfinished.id = None;
    Ok(result)
}

/// Takes a task back if it is dropped.
struct Unfinished<'a> {
    client: &'a Client,
    id: Option<String>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let client = self.client.clone();
        runtime.spawn(async move {
            let talk = Talk {
                capabilities: with_tasks(Map::new()),
                ..Talk::default()
            };
            let cancelled = json!({ "taskId": id });
            let cancel = client.converse("tasks/cancel", &cancelled, talk);
            if let Err(error) = cancel.await {
                tracing::debug!(%error, "a task can't be taken back");
            }
        });
    }
}
