//! One call: resolve → select → check → run → cut → record.

use crate::{
    context::{Caller, Context},
    definition::{BoxFuture, Requirement, ToolServer as _},
    error::{CallError, ToolError, Violation, did_you_mean},
    limits::{Limits, Results},
    name::Ambiguous,
    output::{Content, Message, Output},
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
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use thiserror::Error;
use tokio::time::Instant;

/// Takes calls to tools, wherever they come from and whoever runs them.
#[derive(Debug)]
pub struct Dispatcher {
    providers: Vec<Arc<dyn Provider>>,
    view: ArcSwap<View>,
    limits: Limits,
    results: Results,
    observers: Vec<Arc<dyn Observer>>,
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
            providers,
            limits,
            results,
            observers,
        })
    }

    /// Turns on what a selection says, from the next call on. One that names what does not exist changes nothing.
    pub fn select(&self, selection: Selection) -> Result<(), SelectionError> {
        let servers: Vec<_> = self.providers.iter().flat_map(|it| it.servers()).collect();
        selection.check(&servers)?;
        let view = View::new(&self.providers, selection);
        self.view.store(Arc::new(view));
        Ok(())
    }

    /// Returns what can be called now.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
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
        let started = Instant::now();
        let mut trace = Trace::default();
        let result = self.steps(name, arguments, context, &mut trace).await;
        let outcome = match &result {
            Ok(output) if output.is_error => Outcome::Failed(output),
            Ok(_) => Outcome::Done,
            Err(error) => Outcome::Refused(error),
        };
        let record = Record {
            called: name,
            tool: trace.tool.as_deref(),
            caller: &context.caller,
            outcome,
            duration: started.elapsed(),
            bytes_in: arguments.len(),
            repaired: &trace.repaired,
            cut: trace.cut,
        };
        for observer in &self.observers {
            observer.observe(&record);
        }
        result
    }

    async fn steps(
        &self,
        name: &str,
        arguments: &str,
        context: &Context,
        trace: &mut Trace,
    ) -> Result<Output, CallError> {
        let view = self.view.load();
        let found = view.find(name, &context.caller)?;
        let (provider, tool) = (&*self.providers[found.provider], found.tool.clone());
        trace.tool = Some(tool.clone());
        found.callable?;
        drop(view);
        permit(&tool, &context.caller)?;
        let running = prepare(provider, &tool, arguments, context, &mut trace.repaired)?;
        let limit = tool.timeout.unwrap_or(self.limits.time);
        let mut output = match run(running, limit, context).await {
            Ended::Done(Ok(output)) => output,
            Ended::Done(Err(error)) => Output::error(error.to_string()),
            Ended::Panicked(message) => return Err(panicked(&tool, message)),
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
            trace.cut = self.results.cut(&mut output, &context.caller);
        }
        Ok(output)
    }

    /// Reads a resource by its URI.
    pub async fn read(&self, uri: &str, context: &Context) -> Result<Output, ReadError> {
        let view = self.view.load_full();
        let found = view.find_resource(uri, &context.caller);
        let (provider, resource, variables) = found.ok_or_else(|| ReadError::NotFound {
            uri: uri.to_owned(),
        })?;
        let running = self.providers[provider].read(resource, variables, context);
        self.finish(running, context, uri).await
    }

    /// Makes the messages of a prompt, by its name and what the user filled in.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: BTreeMap<String, String>,
        context: &Context,
    ) -> Result<Vec<Message>, ReadError> {
        let view = self.view.load_full();
        let (provider, prompt) = view
            .find_prompt(name, &context.caller)?
            .map_err(|similar| ReadError::UnknownPrompt {
                name: name.to_owned(),
                similar,
            })?;
        let missing = prompt
            .arguments
            .iter()
            .find(|it| it.required && !arguments.contains_key(&it.name));
        if let Some(missing) = missing {
            return Err(ReadError::MissingArgument {
                prompt: name.to_owned(),
                argument: missing.name.clone(),
            });
        }
        let running = self.providers[provider].prompt(prompt, arguments, context);
        self.finish(running, context, name).await
    }

    async fn finish<T>(
        &self,
        running: BoxFuture<'_, Result<T, ToolError>>,
        context: &Context,
        what: &str,
    ) -> Result<T, ReadError> {
        let limit = self.limits.time;
        let reason = match run(running, limit, context).await {
            Ended::Done(Ok(done)) => return Ok(done),
            Ended::Done(Err(error)) => error.to_string(),
            Ended::Panicked(_) => "an internal error".to_owned(),
            Ended::TimedOut => format!("it was stopped after {} s", limit.as_secs_f64()),
            Ended::Cancelled => "it was cancelled".to_owned(),
        };
        Err(ReadError::Failed {
            what: what.to_owned(),
            reason,
        })
    }
}

/// Why a resource or a prompt could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No resource has that address.
    #[error("there is no resource `{uri}`")]
    NotFound {
        /// The address.
        uri: String,
    },
    /// No prompt has that name.
    #[error("there is no prompt `{name}`{}", did_you_mean(.similar))]
    UnknownPrompt {
        /// The name as it was asked for.
        name: String,
        /// Names that look like it.
        similar: Vec<String>,
    },
    /// Several prompts could be meant.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// The prompt can't be made without something that the user did not fill in.
    #[error("the prompt `{prompt}` needs the argument `{argument}`")]
    MissingArgument {
        /// Name of the prompt.
        prompt: String,
        /// What is missing.
        argument: String,
    },
    /// The function behind it failed.
    #[error("`{what}` could not be had: {reason}")]
    Failed {
        /// The address or name.
        what: String,
        /// What went wrong.
        reason: String,
    },
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

enum Ended<T> {
    Done(Result<T, ToolError>),
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
    let mut running = AssertUnwindSafe(running).catch_unwind();
    // Most calls are ready at once, and need neither a timer nor a place in the list of those to be cancelled.
    let done = if let Some(done) = (&mut running).now_or_never() {
        done
    } else {
        tokio::select! {
            biased;
            done = &mut running => done,
            () = context.cancellation.cancelled() => return Ended::Cancelled,
            () = tokio::time::sleep(limit) => return Ended::TimedOut,
        }
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
