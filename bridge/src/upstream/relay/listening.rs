//! Hands on to a caller what a server says while it works for it.

use crate::upstream::{
    connector::{Listener, Refusal},
    failure::{INTERNAL_ERROR, METHOD_NOT_FOUND},
};
use serde_json::{Number, Value};
use tool_runtime::{BoxFuture, Client, ClientError, Context, Level, Log, Progress};

/// A caller who answers at once.
pub(super) struct Listening {
    progress: Progress,
    log: Log,
    client: Client,
}

impl Listening {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            progress: context.progress.clone(),
            log: context.log.clone(),
            client: context.client.clone(),
        }
    }
}

impl Listener for Listening {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        relay_progress(&self.progress, done, total, message);
    }

    fn log(&self, level: Level, _: Option<String>, data: Value) {
        self.log.log(level, data);
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, Refusal>> {
        let method = method.to_owned();
        Box::pin(async move {
            let answer = self.client.ask(method, params).await;
            answer.map_err(|error| refusal(&error))
        })
    }
}

/// What a server hears of a question that has no answer.
fn refusal(error: &ClientError) -> Refusal {
    Refusal {
        code: match error {
            ClientError::Unsupported { .. } => METHOD_NOT_FOUND,
            _ => INTERNAL_ERROR,
        },
        message: error.to_string(),
    }
}

pub(super) fn relay_progress(
    progress: &Progress,
    done: f64,
    total: Option<f64>,
    message: Option<String>,
) {
    if let Some(done) = number(done) {
        progress.relay(done, total.and_then(number), message);
    }
}

/// A whole number stays one.
fn number(amount: f64) -> Option<Number> {
    serde_json::from_str(&amount.to_string()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_stays_one() {
        for (amount, written) in [(50.0, "50"), (0.25, "0.25"), (1e15, "1000000000000000")] {
            assert_eq!(
                number(amount).map(|it| it.to_string()).as_deref(),
                Some(written)
            );
        }
        assert_eq!(number(f64::NAN), None);
        assert_eq!(number(f64::INFINITY), None);
    }
}
