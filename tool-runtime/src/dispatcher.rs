//! One call: resolve → select → check → run → cut → record.

mod reading;

pub use reading::ReadError;

use crate::{
    background::Background,
    changes::{Change, Changes},
    context::{Caller, ClientError, Context},
    definition::{BoxFuture, Requirement, ToolServer as _},
    error::{CallError, ProtocolError, ToolError, Violation},
    limits::{Limits, Results},
    output::{Content, InputRequired, Output},
    provider::{Provider, Tool},
    registry::{Registry, RegistryError},
    selection::{Selection, SelectionError},
    view::View,
};
use arc_swap::ArcSwap;
use futures_util::FutureExt;
use serde_json::value::RawValue;
use std::{
    any::Any,
    collections::HashMap,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};
use tokio::time::Instant;

/// How many workspaces are looked after at once; of more, each is put together anew when it is used again.
const WORKSPACES: usize = 1_000;

/// How long a call may take while a person is asked.
const ASKED: Duration = Duration::from_hours(1);

/// Takes calls to tools, wherever they come from and whoever runs them.
#[derive(Debug)]
pub struct Dispatcher {
    providers: Vec<Arc<dyn Provider>>,
    view: ArcSwap<View>,
    /// The views of workspaces in which other servers are offered.
    workspaces: Mutex<HashMap<String, Arc<View>>>,
    limits: Limits,
    results: Results,
    observers: Vec<Arc<dyn Observer>>,
    changes: Changes,
}

/// Hears of every call, also of a refused one. It is called in the path of the call, so it must not block.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Takes note of a call that has ended.
    fn observe(&self, record: &Record<'_>);
}

/// What became of one call.
#[derive(Debug)]
pub struct Record<'a> {
    /// The name by which the tool was called.
    pub called: &'a str,
    /// The tool, if the name means one.
    pub tool: Option<&'a Tool>,
    /// Who called.
    pub caller: &'a Caller,
    /// How it ended.
    pub outcome: Outcome<'a>,
    /// How long it took, from its arrival to its end.
    pub duration: Duration,
    /// How many bytes of arguments were sent.
    pub bytes_in: usize,
    /// JSON pointers to the arguments that were repaired.
    pub repaired: &'a [String],
    /// How many bytes of text the result had, if it was cut.
    pub cut: Option<usize>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// The tool did what it was asked.
    Done,
    /// The tool ran, and says that it failed.
    Failed(&'a Output),
    /// The call did not happen, or did not end.
    Refused(&'a CallError),
}

/// Tells the observers of one call, also of one that nobody waits for any more.
struct Recording<'a> {
    observers: &'a [Arc<dyn Observer>],
    called: &'a str,
    caller: &'a Caller,
    bytes_in: usize,
    started: quanta::Instant,
    trace: Trace,
    ended: bool,
}

impl Recording<'_> {
    fn end(&mut self, outcome: Outcome<'_>) {
        self.ended = true;
        if self.observers.is_empty() {
            return;
        }
        let record = Record {
            called: self.called,
            tool: self.trace.tool.as_deref(),
            caller: self.caller,
            outcome,
            duration: self.started.elapsed(),
            bytes_in: self.bytes_in,
            repaired: &self.trace.repaired,
            cut: self.trace.cut,
        };
        for observer in self.observers {
            observer.observe(&record);
        }
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let tool = self.called.to_owned();
            self.end(Outcome::Refused(&CallError::Cancelled { tool }));
        }
    }
}

/// What a call met on its way; filled step by step, so that a refused call leaves a record too.
#[derive(Default)]
struct Trace {
    tool: Option<Arc<Tool>>,
    repaired: Vec<String>,
    cut: Option<usize>,
}

impl Dispatcher {
    /// Makes a dispatcher of the servers in this program, everything on.
    pub fn new(registry: Registry) -> Result<Self, RegistryError> {
        Self::with(registry, Vec::new(), Limits::default(), Vec::new())
    }

    /// Makes a dispatcher with further providers, other limits and observers.
    pub fn with(
        registry: Registry,
        further: Vec<Arc<dyn Provider>>,
        limits: Limits,
        observers: Vec<Arc<dyn Observer>>,
    ) -> Result<Self, RegistryError> {
        let results = Results::new(limits.output);
        let registry = registry.with(results.clone())?;
        let mut providers: Vec<Arc<dyn Provider>> = vec![Arc::new(registry)];
        providers.extend(further);
        let view = View::new(&providers, Selection::all());
        Ok(Self {
            view: ArcSwap::from_pointee(view),
            workspaces: Mutex::default(),
            providers,
            limits,
            results,
            observers,
            changes: Changes::watched(),
        })
    }

    /// Turns on what a selection says, from the next call on. One that names what does not exist changes nothing.
    pub fn select(&self, selection: Selection) -> Result<(), SelectionError> {
        let servers: Vec<_> = self.providers.iter().flat_map(|it| it.servers()).collect();
        selection.check(&servers)?;
        self.show(selection);
        Ok(())
    }

    /// Turns on what a selection says, from the next call on. What it names may not be there, and holds once it is:
    /// external servers come and go.
    pub fn select_whatever_comes(&self, selection: Selection) {
        self.show(selection);
    }

    /// Looks anew at what the providers offer, under the same selection.
    pub fn renew(&self) {
        self.show(self.view.load().selection().clone());
    }

    fn show(&self, selection: Selection) {
        let view = View::new(&self.providers, selection);
        self.view.store(Arc::new(view));
        self.workspaces().clear();
        for change in [Change::Tools, Change::Prompts, Change::Resources] {
            self.changes.tell(change);
        }
    }

    pub(crate) fn results(&self) -> &Results {
        &self.results
    }

    pub(crate) fn background(&self) -> &Background {
        &self.results.background
    }

    /// Returns what can be called now, in no workspace.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Returns what can be called now by a caller, in the workspace that its project is.
    pub fn view_for(&self, caller: &Caller) -> Arc<View> {
        let view = self.view.load();
        if !is_apart(&view, caller) {
            return Arc::clone(&view);
        }
        let mut workspaces = self.workspaces();
        if let Some(view) = workspaces.get(&caller.project) {
            return view.clone();
        }
        let selection = view.selection().clone();
        let view = View::of_workspace(&self.providers, &caller.project, selection);
        let view = Arc::new(view);
        if workspaces.len() >= WORKSPACES {
            workspaces.clear();
        }
        workspaces.insert(caller.project.clone(), view.clone());
        view
    }

    /// Finds out what is offered in the workspace of a caller, before it is listed or called for the first time there.
    /// It takes no longer than a few seconds: what is found later is told as a change.
    pub async fn enter(&self, caller: &Caller) {
        if !is_apart(&self.view.load(), caller) {
            return;
        }
        let entering = self.providers.iter().map(|it| it.enter(&caller.project));
        let entered = futures_util::future::join_all(entering).await;
        if entered.contains(&true) {
            self.workspaces().remove(&caller.project);
        }
    }

    fn workspaces(&self) -> MutexGuard<'_, HashMap<String, Arc<View>>> {
        let workspaces = self.workspaces.lock();
        workspaces.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where changes are told and heard of: of the lists, and of resources.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Calls a tool by any spelling of its name; `arguments` is the JSON of an object, or empty.
    ///
    /// A tool that fails gives an output that says so; an error means that it did not run, or did not end.
    pub async fn call(
        &self,
        name: &str,
        arguments: &str,
        context: &Context,
    ) -> Result<Output, CallError> {
        let mut recording = Recording {
            observers: &self.observers,
            called: name,
            caller: &context.caller,
            bytes_in: arguments.len(),
            started: quanta::Instant::now(),
            trace: Trace::default(),
            ended: false,
        };
        let result = self
            .steps(name, arguments, context, &mut recording.trace)
            .await;
        recording.end(match &result {
            Ok(output) if output.is_error => Outcome::Failed(output),
            Ok(_) => Outcome::Done,
            Err(error) => Outcome::Refused(error),
        });
        result
    }

    async fn steps(
        &self,
        name: &str,
        arguments: &str,
        context: &Context,
        trace: &mut Trace,
    ) -> Result<Output, CallError> {
        let Trace {
            tool,
            repaired,
            cut,
        } = trace;
        let view = self.view.load();
        let of_workspace = if is_apart(&view, &context.caller) {
            // In a box, since most calls need no room for it.
            Box::pin(self.enter(&context.caller)).await;
            Some(self.view_for(&context.caller))
        } else {
            None
        };
        let seen: &View = of_workspace.as_deref().unwrap_or(&view);
        let found = seen.find(name, &context.caller)?;
        let provider = &*self.providers[found.provider];
        let tool: &Tool = tool.insert(found.tool.clone());
        found.callable?;
        drop(view);
        permit(tool, &context.caller)?;
        let running = prepare(provider, tool, arguments, context, repaired)?;
        let limit = tool.timeout.or(context.limit).unwrap_or(self.limits.time);
        let mut output = match run(running, limit, context).await {
            Ended::Done(Ok(output)) => output,
            Ended::Done(Err(error)) => failed(tool, &error)?,
            Ended::Stuck(required) => {
                return Ok(Output {
                    input_required: Some(Box::new(required)),
                    ..Output::default()
                });
            }
            Ended::Panicked(message) => return Err(panicked(tool, message)),
            Ended::TimedOut => {
                let tool = tool.name.clone();
                return Err(CallError::TimedOut { tool, limit });
            }
            Ended::Cancelled => {
                let tool = tool.name.clone();
                return Err(CallError::Cancelled { tool });
            }
        };
        if tool.wraps_output {
            wrap(&mut output);
        }
        // A piece of a result keeps to the limit by itself; cut once more, it could never be read to the end.
        if *tool.server != *Results::DEFINITION.name {
            *cut = self.results.cut(&mut output, &context.caller);
        }
        Ok(output)
    }
}

/// Whether a caller is in a workspace that may have servers of its own.
fn is_apart(view: &View, caller: &Caller) -> bool {
    view.differs_by_workspace && !caller.project.is_empty()
}

/// Refuses a caller who may not, or who brings too little.
fn permit(tool: &Tool, caller: &Caller) -> Result<(), CallError> {
    let missing: Vec<String> = tool
        .scopes
        .iter()
        .filter(|it| !caller.scopes.include(it))
        .cloned()
        .collect();
    if !missing.is_empty() {
        let tool = tool.name.clone();
        return Err(CallError::Forbidden { tool, missing });
    }
    if tool.requires.contains(&Requirement::Project) && caller.project.is_empty() {
        let tool = tool.name.clone();
        return Err(CallError::ProjectRequired { tool });
    }
    Ok(())
}

type Running<'a> = BoxFuture<'a, Result<Output, ToolError>>;

/// Takes the arguments into the tool. The happy path parses; the unhappy path repairs or explains.
fn prepare<'a>(
    provider: &'a dyn Provider,
    tool: &Tool,
    sent: &str,
    context: &'a Context,
    repaired: &mut Vec<String>,
) -> Result<Running<'a>, CallError> {
    let sent = if sent.is_empty() || sent == "null" {
        "{}"
    } else {
        sent
    };
    let call = |json: &str| {
        let arguments = tool.check.accept(json)?;
        // A type's own deserialization may panic as well as the tool.
        let called = catch_unwind(AssertUnwindSafe(|| {
            provider.call(tool, &arguments, context)
        }));
        Some(called)
    };
    match call(sent) {
        Some(Ok(Ok(running))) => return Ok(running),
        Some(Err(panic)) => return Err(panicked(tool, message(&*panic))),
        Some(Ok(Err(_))) | None => {}
    }
    let invalid = |violations| CallError::InvalidArguments {
        tool: tool.name.clone(),
        violations,
    };
    let repair = tool.check.repair(sent).map_err(invalid)?;
    *repaired = repair.paths;
    let reason = match call(&repair.json) {
        Some(Ok(Ok(running))) => return Ok(running),
        Some(Err(panic)) => return Err(panicked(tool, message(&*panic))),
        Some(Ok(Err(error))) => error.to_string(),
        None => "they don't fit the schema".to_owned(),
    };
    Err(invalid(vec![Violation {
        path: String::new(),
        message: reason,
    }]))
}

/// A tool that failed says so in its output, unless it failed since the client can't be asked, or its server refused it.
fn failed(tool: &Tool, error: &ToolError) -> Result<Output, CallError> {
    if let Some(ClientError::Unsupported { method }) = error.downcast_ref() {
        return Err(CallError::ClientLacks {
            tool: tool.name.clone(),
            method: method.to_string(),
        });
    }
    match error.downcast_ref::<ProtocolError>() {
        Some(refused) => Err(CallError::Protocol {
            tool: tool.name.clone(),
            error: Box::new(refused.clone()),
        }),
        None => Ok(Output::error(error.to_string())),
    }
}

enum Ended<T> {
    Done(Result<T, ToolError>),
    /// It can't go on before the client has answered.
    Stuck(InputRequired),
    Panicked(String),
    TimedOut,
    Cancelled,
}

/// Runs to the end, the limit, the cancellation or the panic, whichever comes first.
async fn run<T>(
    running: BoxFuture<'_, Result<T, ToolError>>,
    limit: Duration,
    context: &Context,
) -> Ended<T> {
    if context.cancellation.is_cancelled() {
        return Ended::Cancelled;
    }
    let mut running = AssertUnwindSafe(running).catch_unwind();
    let mut next = poll_fn(|task| match running.poll_unpin(task) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => context
            .client
            .missing()
            .map_or(Poll::Pending, |it| Poll::Ready(Err(it))),
    });
    // Most calls are ready at once, and need neither a timer nor a place in the list of those to be cancelled.
    let ended = if let Some(ended) = (&mut next).now_or_never() {
        ended
    } else {
        let started = Instant::now();
        let mut time_up = pin!(tokio::time::sleep(limit));
        loop {
            tokio::select! {
                biased;
                ended = &mut next => break ended,
                () = context.cancellation.cancelled() => return Ended::Cancelled,
                () = &mut time_up => {
                    // While a person is asked, the tool does nothing that could take too long.
                    if !context.client.is_asked() || started.elapsed() > ASKED {
                        return Ended::TimedOut;
                    }
                    time_up.as_mut().reset(Instant::now() + limit);
                }
            }
        }
    };
    let done = match ended {
        Ok(done) => done,
        Err(required) => return Ended::Stuck(required),
    };
    match done {
        Ok(result) => Ended::Done(result),
        Err(panic) => Ended::Panicked(message(&*panic)),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

fn panicked(tool: &Tool, message: String) -> CallError {
    tracing::error!(
        server = &*tool.server,
        tool = tool.name,
        panic = message,
        "a tool panicked"
    );
    let tool = tool.name.clone();
    CallError::Panicked { tool, message }
}

/// Puts structured output that is no object under `result`, as its published schema says.
fn wrap(output: &mut Output) {
    if let Some(structured) = output.structured.take() {
        let json = format!("{{\"result\":{}}}", structured.get());
        output.content = vec![Content::text(json.as_str())];
        let wrapped = RawValue::from_string(json);
        output.structured = Some(wrapped.expect("JSON in an object is JSON"));
    }
}
