//! The tasks extension: a call that goes on after its answer. A task is in the store before the client hears of it, and
//! a bridge that starts takes over what another left.

mod asking;

pub(super) use asking::Switch;

use super::{
    Door,
    news::News,
    peer::{Era, Peer},
    result::{complete_result, sign},
    rpc::{self, INTERNAL_ERROR, INVALID_PARAMS, MISSING_CAPABILITY, RpcError},
};
use crate::engines::Engine;
use crate::store::{NewTask, Outcome, Presence, Store, StoredTask, TaskStatus, now};
use asking::InTask;
use axum::http::StatusCode;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};
use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, UNIX_EPOCH},
};
use tokio::sync::Notify;
use tool_runtime::{
    CallError, Caller, Cancellation, Context, Conversation, Identified, Output, ProtocolError,
    Reach, Scopes, TaskSupport, Tool, export::mcp, full_name,
};

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How long a task is kept.
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;

/// How often a client should look.
const POLL_MS: i64 = 500;

/// How long a task may run.
pub(super) const LIMIT: Duration = Duration::from_hours(24);

/// How long a bridge that has gone quiet keeps its tasks.
const LEASE_MS: i64 = 15_000;

/// The time between two looks after tasks: well within the lease.
const LOOK: Duration = Duration::from_secs(4);

/// The time between two looks for answers that another bridge has taken.
const ANSWERS: Duration = Duration::from_millis(500);

/// The tasks that this process runs.
#[derive(Debug)]
pub(super) struct Tasks {
    pub(super) store: Store,
    presence: Presence,
    running: Mutex<HashMap<String, Arc<Running>>>,
}

/// A task under way in this process.
#[derive(Debug, Default)]
struct Running {
    cancellation: Cancellation,
    /// Rings when an answer may have come.
    answered: Notify,
}

impl Tasks {
    pub(super) fn new(store: Store) -> Self {
        Self {
            presence: store.appear(),
            store,
            running: Mutex::default(),
        }
    }

    /// The name of this process among all bridges on the store.
    pub(super) fn name(&self) -> &str {
        self.presence.name()
    }

    /// Tells a task of this process that an answer has come, or that it is to end.
    pub(super) fn wake(&self, id: &str, cancel: bool) {
        if let Some(running) = self.running().get(id) {
            if cancel {
                running.cancellation.cancel();
            }
            running.answered.notify_waiters();
        }
    }

    /// Stops what this process runs and leaves it to other bridges, or to the next process.
    async fn let_go(&self) {
        if let Err(error) = self.store.release_tasks(self.name()).await {
            tracing::error!(%error, "can't leave tasks to other bridges; they take them over later");
        }
        for running in self.running().values() {
            running.cancellation.cancel();
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what a call needs to run as a task, and what its client can do, if it may run so; an error if it must and
/// can't.
pub(super) fn for_call(
    door: &Door,
    peer: &Peer,
    tool: &Tool,
) -> Result<Option<(Arc<Tasks>, Value)>, RpcError> {
    let Era::Modern { capabilities, .. } = &peer.era else {
        return Ok(None);
    };
    match &door.tasks {
        Some(tasks) if peer.has_extension(EXTENSION) => {
            let may_be = tool.task.is_some();
            Ok(may_be.then(|| (tasks.clone(), capabilities.clone())))
        }
        _ => match tool.task {
            None | Some(TaskSupport::Optional | TaskSupport::Late) => Ok(None),
            Some(_) => Err(undeclared()),
        },
    }
}

fn undeclared() -> RpcError {
    let message = format!("the client must declare the extension `{EXTENSION}` for this");
    RpcError::new(MISSING_CAPABILITY, message)
        .with_data(json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } }))
        .with_status(StatusCode::BAD_REQUEST)
}

fn broken(error: &(dyn std::error::Error + 'static)) -> RpcError {
    tracing::error!(error, "can't look after tasks");
    RpcError::new(
        INTERNAL_ERROR,
        "the bridge can't look after tasks at the moment; try again",
    )
}

/// What a task does, and for whom.
pub(super) struct Job {
    pub(super) tool: Arc<Tool>,
    pub(super) arguments: String,
    pub(super) caller: Arc<Caller>,
    /// What the client can do.
    pub(super) capabilities: Value,
}

/// Keeps a task, and then starts it.
pub(super) async fn start(
    door: &Arc<Door>,
    tasks: &Arc<Tasks>,
    job: Job,
) -> Result<Value, RpcError> {
    let stored = keep(tasks, &job).await?;
    let running = Arc::default();
    let conversation = InTask::new(tasks, &stored, job.capabilities.clone(), running);
    run(door, tasks, &stored.id, &job, conversation);
    Ok(created(&stored))
}

/// Keeps a task whose call is under way already, and lets it go on.
pub(super) async fn go_on(
    tasks: &Arc<Tasks>,
    job: Job,
    cancellation: Cancellation,
    call: BoxFuture<'static, Result<Output, CallError>>,
    switch: &Switch,
) -> Result<Value, RpcError> {
    let stored = keep(tasks, &job).await?;
    let running = Arc::new(Running {
        cancellation,
        answered: Notify::new(),
    });
    let in_task = InTask::new(tasks, &stored, job.capabilities, running.clone());
    // It is handed over once.
    let _ = switch.later.set(in_task);
    tasks.running().insert(stored.id.clone(), running);
    spawn(tasks, stored.id.clone(), call);
    Ok(created(&stored))
}

async fn keep(tasks: &Tasks, job: &Job) -> Result<StoredTask, RpcError> {
    let Job {
        tool,
        arguments,
        caller,
        capabilities,
    } = job;
    let idempotent = tool.hints.idempotent == Some(true) || tool.hints.read_only == Some(true);
    let time = now();
    let new = NewTask {
        principal: caller.principal.clone(),
        tool: full_name(&tool.server, &tool.name),
        arguments: arguments.clone(),
        caller: written(caller, capabilities),
        idempotent,
        ttl_ms: Some(KEPT_MS),
        poll_interval_ms: Some(POLL_MS),
        owner: tasks.name().to_owned(),
        lease_until: time + LEASE_MS,
    };
    tasks
        .store
        .create_task(new, time)
        .await
        .map_err(|error| broken(&error))
}

fn run(door: &Arc<Door>, tasks: &Arc<Tasks>, id: &str, job: &Job, conversation: InTask) {
    let running = conversation.running.clone();
    let mut context = Context::new(job.caller.clone());
    context.cancellation = running.cancellation.clone();
    context.changes = door.dispatcher.changes().clone();
    context.limit = Some(LIMIT);
    let conversation: Arc<dyn Conversation> = Arc::new(conversation);
    context.client = conversation.into();
    tasks.running().insert(id.to_owned(), running);
    let door = door.clone();
    let (name, arguments) = (
        full_name(&job.tool.server, &job.tool.name),
        job.arguments.clone(),
    );
    let call = async move { door.dispatcher.call(&name, &arguments, &context).await };
    spawn(tasks, id.to_owned(), call);
}

fn spawn(
    tasks: &Arc<Tasks>,
    id: String,
    call: impl Future<Output = Result<Output, CallError>> + Send + 'static,
) {
    let tasks = tasks.clone();
    tokio::spawn(async move {
        let outcome = match call.await {
            Ok(output) => Outcome::Completed(mcp::result(&output).to_string()),
            Err(CallError::Cancelled { .. }) => Outcome::Cancelled,
            Err(CallError::Protocol { error, .. }) => Outcome::Failed(refused(&error)),
            Err(error) => Outcome::Failed(failure(&error.to_string())),
        };
        finish(&tasks, &id, outcome).await;
        tasks.running().remove(&id);
    });
}

fn refused(error: &ProtocolError) -> String {
    let mut refused = json!({ "code": error.code, "message": error.message });
    if let Some(data) = &error.data {
        refused["data"] = data.clone();
    }
    refused.to_string()
}

fn failure(message: &str) -> String {
    json!({ "code": INTERNAL_ERROR, "message": message }).to_string()
}

async fn finish(tasks: &Tasks, id: &str, outcome: Outcome) {
    let finished = tasks
        .store
        .finish_task(id, tasks.name(), outcome, None, now())
        .await;
    if let Err(error) = finished {
        tracing::error!(%error, task = id, "can't keep how a task ended");
    }
}

#[derive(Deserialize)]
struct TaskParams<'a> {
    #[serde(borrow, rename = "taskId")]
    id: Cow<'a, str>,
    #[serde(default, rename = "inputResponses")]
    responses: Option<Map<String, Value>>,
}

/// Answers `tasks/get`, `tasks/update` and `tasks/cancel`.
pub(super) async fn answer(
    door: &Door,
    peer: &Peer,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Value, RpcError> {
    let Some(tasks) = &door.tasks else {
        return Err(RpcError::unknown_method(method));
    };
    if !peer.has_extension(EXTENSION) {
        return Err(undeclared());
    }
    let TaskParams { id, responses } = rpc::params(method, params)?;
    let principal = &peer.caller.principal;
    let found = match method {
        "tasks/get" => tasks.store.find_task(&id, principal).await,
        "tasks/update" => {
            let responses = responses.unwrap_or_default();
            tasks
                .store
                .answer_task(&id, principal, &responses, now())
                .await
        }
        _ => tasks.store.request_cancel(&id, principal, now()).await,
    };
    let task = found.map_err(|error| broken(&error))?.ok_or_else(|| {
        RpcError::new(
            INVALID_PARAMS,
            format!("there is no task `{}`", rpc::shown(&id)),
        )
    })?;
    if method == "tasks/get" {
        return Ok(complete_result(peer, described(&task)));
    }
    let cancel = method == "tasks/cancel";
    tasks.wake(&id, cancel);
    if task.owner.as_deref().is_some_and(|it| it != tasks.name()) {
        door.tell_others(if cancel {
            News::TaskCancelled(task.id)
        } else {
            News::TaskAnswered(task.id)
        });
    }
    Ok(complete_result(peer, json!({})))
}

fn created(task: &StoredTask) -> Value {
    let mut result = described(task);
    result["resultType"] = "task".into();
    sign(&mut result);
    result
}

fn described(task: &StoredTask) -> Value {
    let mut described = json!({
        "taskId": task.id,
        "status": task.status.as_str(),
        "createdAt": date(task.created_at),
        "lastUpdatedAt": date(task.updated_at),
        "ttlMs": task.ttl_ms,
    });
    if let Some(interval) = task.poll_interval_ms {
        described["pollIntervalMs"] = interval.into();
    }
    if let Some(message) = &task.status_message {
        described["statusMessage"] = message.as_str().into();
    }
    let json = |text: &String| serde_json::from_str::<Value>(text).unwrap_or_default();
    match task.status {
        TaskStatus::InputRequired => {
            let open = task.open_requests();
            let open: Map<String, Value> = open.map(|(k, v)| (k.to_owned(), v.clone())).collect();
            described["inputRequests"] = open.into();
        }
        TaskStatus::Completed => {
            described["result"] = task.result.as_ref().map(json).unwrap_or_default();
        }
        TaskStatus::Failed => {
            described["error"] = task.error.as_ref().map(json).unwrap_or_default();
        }
        _ => {}
    }
    described
}

fn date(millis: i64) -> String {
    let since = Duration::from_millis(millis.try_into().unwrap_or(0));
    humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string()
}

/// What must be known of a caller to run a task for it again; its principal is kept beside.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    engine: String,
    project: String,
    session: String,
    #[serde(with = "KeptIdentified")]
    identified: Identified,
    #[serde(default)]
    model: String,
    servers: Option<BTreeSet<String>>,
    #[serde(default)]
    without: BTreeSet<String>,
    read_only: bool,
    /// `None` is all.
    scopes: Option<BTreeSet<String>>,
    capabilities: Value,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "Identified", rename_all = "camelCase")]
enum KeptIdentified {
    Unknown,
    Exact,
    ByProject,
    ByEngine,
}

fn written(caller: &Caller, capabilities: &Value) -> String {
    let caller = caller.clone();
    let kept = Kept {
        engine: caller.engine,
        project: caller.project,
        session: caller.session,
        identified: caller.identified,
        model: caller.model,
        servers: caller.reach.servers,
        without: caller.reach.without,
        read_only: caller.reach.read_only,
        scopes: match caller.scopes {
            Scopes::All => None,
            Scopes::Only(scopes) => Some(scopes),
        },
        capabilities: capabilities.clone(),
    };
    serde_json::to_string(&kept).expect("texts, lists and flags are JSON")
}

/// Reads a caller with what its client can do. Whoever can't be read is nobody: it must not become one who may do all.
fn read(principal: &str, kept: &str) -> Result<(Caller, Value), serde_json::Error> {
    let kept: Kept = serde_json::from_str(kept)?;
    let caller = Caller {
        most_output: Engine::named(&kept.engine).and_then(|it| it.most_output),
        engine: kept.engine,
        project: kept.project,
        session: kept.session,
        identified: kept.identified,
        model: kept.model,
        // A task is called by its full name.
        prefixed: false,
        principal: principal.to_owned(),
        reach: Reach {
            servers: kept.servers,
            without: kept.without,
            read_only: kept.read_only,
        },
        scopes: kept.scopes.map_or(Scopes::All, Scopes::Only),
    };
    Ok((caller, kept.capabilities))
}

/// Keeps this process's tasks its own, and takes over those that nobody looks after, until the door closes.
pub(super) async fn tend(door: Arc<Door>) {
    let Some(tasks) = &door.tasks else { return };
    let mut looks = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            () = door.closed.cancelled() => return tasks.let_go().await,
            _ = looks.tick() => {}
        }
        if let Err(error) = look(&door, tasks).await {
            tracing::error!(%error, "can't look after tasks");
        }
    }
}

async fn look(door: &Arc<Door>, tasks: &Arc<Tasks>) -> Result<(), crate::store::DatabaseError> {
    let time = now();
    let until = time + LEASE_MS;
    for renewed in tasks.store.renew_leases(tasks.name(), until).await? {
        if renewed.cancel_requested
            && let Some(running) = tasks.running().get(&renewed.id)
        {
            running.cancellation.cancel();
        }
    }
    tasks.store.release_tasks_of_the_dead().await?;
    for task in tasks.store.adopt_tasks(tasks.name(), time, until).await? {
        take_over(door, tasks, &task).await;
    }
    tasks.store.expire_tasks(time).await?;
    Ok(())
}

/// Runs a task again, if that does no harm; else it has failed.
async fn take_over(door: &Arc<Door>, tasks: &Arc<Tasks>, task: &StoredTask) {
    if task.cancel_requested {
        finish(tasks, &task.id, Outcome::Cancelled).await;
        return;
    }
    let tool = door.dispatcher.view().shared_tool(&task.tool);
    let Some(tool) = tool.filter(|_| task.idempotent) else {
        let message = "the bridge was restarted while the tool ran, and running it again might do something twice; start it again if that is right";
        finish(tasks, &task.id, Outcome::Failed(failure(message))).await;
        return;
    };
    let (caller, capabilities) = match read(&task.principal, &task.caller) {
        Ok(read) => read,
        Err(error) => {
            tracing::error!(task = task.id, %error, "can't read who made a task");
            let message = "the bridge was restarted, and who made the call can't be read from the database any more; start it again";
            finish(tasks, &task.id, Outcome::Failed(failure(message))).await;
            return;
        }
    };
    let conversation = InTask::new(tasks, task, capabilities.clone(), Arc::default());
    let job = Job {
        tool,
        arguments: task.arguments.clone(),
        caller: Arc::new(caller),
        capabilities,
    };
    run(door, tasks, &task.id, &job, conversation);
}
