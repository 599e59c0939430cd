//! Calls that outlast the time of who makes them: they go on, and their results are read later.

use crate::{
    context::{Caller, Context, Progress, ProgressReport},
    dispatcher::Dispatcher,
    error::CallError,
    limits::handle,
    output::Output,
};
use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::watch,
    task::{JoinHandle, spawn},
    time::{Instant, timeout, timeout_at},
};

/// How many calls may go on beside each other. More of them wait for their results in the call itself.
const MOST: usize = 256;

/// How long somebody who reads the result of a call waits for its end.
const PATIENCE: Duration = Duration::from_secs(20);

/// The calls that go on after their answer, by the handle of their result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Background(Arc<Mutex<HashMap<String, Pending>>>);

#[derive(Clone, Debug)]
struct Pending {
    tool: String,
    principal: String,
    reported: Arc<Mutex<Option<ProgressReport>>>,
    /// Becomes the text of the result.
    ended: watch::Receiver<Option<Arc<str>>>,
}

/// What is known of a call that goes on.
pub(crate) enum Looked {
    /// It has ended with this text.
    Ended(Arc<str>),
    /// It goes on, in words for the model.
    GoesOn(String),
}

impl Background {
    /// Looks for the result of a call, and waits a little for it; `None` if there is no such call of this caller's.
    pub(crate) async fn look(&self, handle: &str, caller: &Caller) -> Option<Looked> {
        let pending = self.calls().get(handle).cloned();
        let pending = pending.filter(|it| it.principal == caller.principal)?;
        let mut result = pending.ended.clone();
        let ended = timeout(PATIENCE, result.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(text)) => Some(Looked::Ended(text.clone().unwrap_or_default())),
            // Whoever ran it is gone.
            Ok(Err(_)) => None,
            Err(_) => Some(Looked::GoesOn(pending.in_words(handle))),
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Pending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn in_words(&self, handle: &str) -> String {
        let mut words = format!("`{}` is still running", self.tool);
        let reported = self.reported.lock();
        if let Some(report) = &*reported.unwrap_or_else(PoisonError::into_inner) {
            let all = report.total.as_ref().map(|it| format!(" of {it}"));
            let message = report.message.as_ref().map(|it| format!(": {it}"));
            let (all, message) = (all.unwrap_or_default(), message.unwrap_or_default());
            write!(words, ", {}{all} done{message}", report.done)
                .expect("writing to a String does not fail");
        }
        words
            + &format!(
                "; read its result with `read_result`, called with {{\"handle\":\"{handle}\"}}"
            )
    }
}

impl Dispatcher {
    /// Calls a tool as [`call`](Self::call) does, but takes no longer than until a deadline: the calls of one turn of an
    /// agent can share one. A call that isn't done by then goes on within its own limit, and the output says how its
    /// result is read later: by the tool `read_result`.
    pub async fn call_until(
        self: &Arc<Self>,
        name: &str,
        arguments: &str,
        context: &Context,
        deadline: Instant,
    ) -> Result<Output, CallError> {
        let reported = Arc::new(Mutex::new(None));
        let context = Context {
            progress: noted(&context.progress, &reported),
            ..context.clone()
        };
        let caller = context.caller.clone();
        let (dispatcher, tool, sent) = (self.clone(), name.to_owned(), arguments.to_owned());
        let mut running: JoinHandle<Result<Output, CallError>> =
            spawn(async move { dispatcher.call(&tool, &sent, &context).await });
        if let Ok(ended) = timeout_at(deadline, &mut running).await {
            return joined(name, ended);
        }
        let Some(handle) = self.may_go_on().then(handle).flatten() else {
            return joined(name, running.await);
        };
        let (tell, ended) = watch::channel(None);
        let pending = Pending {
            tool: name.to_owned(),
            principal: caller.principal.clone(),
            reported,
            ended,
        };
        let words = pending.in_words(&handle);
        self.background().calls().insert(handle.clone(), pending);
        let (dispatcher, name) = (self.clone(), name.to_owned());
        spawn(async move {
            let text = match joined(&name, running.await) {
                Ok(output) => text(&output),
                Err(error) => error.to_string(),
            };
            let text: Arc<str> = text.into();
            dispatcher
                .results()
                .keep_as(handle.clone(), text.clone(), &caller);
            // Who waits for it has it now, who comes later finds it among the results.
            let _ = tell.send(Some(text));
            dispatcher.background().calls().remove(&handle);
        });
        Ok(Output::text(words))
    }

    fn may_go_on(&self) -> bool {
        self.background().calls().len() < MOST
    }
}

fn joined(
    name: &str,
    ended: Result<Result<Output, CallError>, tokio::task::JoinError>,
) -> Result<Output, CallError> {
    ended.unwrap_or_else(|_| {
        Err(CallError::Cancelled {
            tool: name.to_owned(),
        })
    })
}

/// What a model reads of an output.
fn text(output: &Output) -> String {
    let text = output.to_text();
    match &output.structured {
        Some(structured) if text.is_empty() => structured.get().to_owned(),
        _ => text,
    }
}

/// Passes reports on, and notes the last one.
fn noted(progress: &Progress, last: &Arc<Mutex<Option<ProgressReport>>>) -> Progress {
    let (onward, last) = (progress.clone(), last.clone());
    Progress::to(move |report| {
        onward.relay(
            report.done.clone(),
            report.total.clone(),
            report.message.clone(),
        );
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    })
}
