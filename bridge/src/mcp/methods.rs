//! What each method gives, in both eras.

use super::{
    Door,
    conversation::{Rerun, required_capabilities},
    news::News,
    peer::{Era, Meta, Peer, Round, Talk},
    rpc::{
        self, INTERNAL_ERROR, INVALID_REQUEST, MISSING_CAPABILITY, RESOURCE_NOT_FOUND, Request,
        RpcError,
    },
    seal::{Answers, Binding},
    session::{Kept, Session, Version, level_of},
    stream::{Exchange, Work},
    tasks,
};
use crate::{skills::SkillError, store::now};
use axum::http::StatusCode;
use futures_util::{FutureExt as _, future::BoxFuture};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap, future::Future, sync::Arc};
use tool_runtime::{
    self as runtime, Body, CallError, Content, Context, InputRequired, Listed, Message, NAMESPACE,
    Output, ReadError, Role, Server, TaskSupport, export::mcp,
};

/// How many items a page of a list has. All known clients ask for further pages; a page is still long, since not all
/// did so always.
const PAGE: usize = 1_000;

/// How many values a completion has at most: the protocol's limit.
const COMPLETIONS: usize = 100;

/// Answers a request, whatever its method.
pub(super) fn exchange(door: &Arc<Door>, peer: &Peer, request: Request) -> Exchange {
    let Request { id, method, params } = request;
    let params = params.as_deref();
    let started = match method.as_str() {
        "tools/call" => call_tool(door, peer, params),
        "resources/read" => read_resource(door, peer, params),
        "prompts/get" => get_prompt(door, peer, params),
        "subscriptions/listen" if peer.is_modern() => {
            return super::listen::exchange(door, peer, id, params);
        }
        "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
            return match &peer.era {
                Era::Modern { .. } => Exchange::known(id, Err(RpcError::unknown_method(&method))),
                Era::Legacy(_) => {
                    let (door, peer) = (door.clone(), peer.clone());
                    let params = params.map(ToOwned::to_owned);
                    let work = async move { set(&door, &peer, &method, params.as_deref()).await };
                    later(id, work)
                }
            };
        }
        "skills/list" | "skills/get" | "resources/directory/read" | "resources/list"
            if door.skills.is_some() =>
        {
            return later(id, skills(door.clone(), peer.clone(), method, params));
        }
        "tasks/get" | "tasks/update" | "tasks/cancel" if peer.is_modern() => {
            let (door, peer) = (door.clone(), peer.clone());
            let params = params.map(ToOwned::to_owned);
            let work = async move { tasks::answer(&door, &peer, &method, params.as_deref()).await };
            return Exchange {
                work: Box::pin(work),
                ..Exchange::known(id, Ok(Value::Null))
            };
        }
        _ => {
            let outcome = simple(door, peer, &method, params);
            return Exchange::known(id, outcome);
        }
    };
    match started {
        Ok((talk, work)) => talk.exchange(peer, id, work),
        Err(error) => Exchange::known(id, Err(error)),
    }
}

/// An exchange that says nothing before its answer.
fn later(
    id: Box<RawValue>,
    work: impl Future<Output = Result<Value, RpcError>> + Send + 'static,
) -> Exchange {
    Exchange {
        work: Box::pin(work),
        ..Exchange::known(id, Ok(Value::Null))
    }
}

/// The methods that look into the folder of skills.
fn skills(
    door: Arc<Door>,
    peer: Peer,
    method: String,
    params: Option<&RawValue>,
) -> impl Future<Output = Result<Value, RpcError>> + Send + 'static {
    let params = params.map(ToOwned::to_owned);
    let look = move || {
        let params = params.as_deref();
        let Some(skills) = &door.skills else {
            return Err(RpcError::unknown_method(&method));
        };
        if method == "resources/list" {
            let (view, caller) = (door.dispatcher.view(), &peer.caller);
            let resources = view.resources(caller).filter(|it| !it.is_template());
            let resources = resources.map(|it| described_resource(it, "uri"));
            let of_skills = skills.resources().map_err(|error| skill_error(&error))?;
            let all = resources.chain(of_skills);
            return page(&door, &peer, &method, params, "resources", all);
        }
        let SkillParams { uri, cursor } = rpc::params(&method, params)?;
        let uri = uri.unwrap_or_default();
        let mut result = match method.as_str() {
            "skills/list" => skills.list(cursor.as_deref()),
            "skills/get" => skills.get(&uri),
            _ => skills.directory(&uri, cursor.as_deref()),
        }
        .map_err(|error| skill_error(&error))?;
        if method != "resources/directory/read" {
            hint(&door, &peer, &mut result);
        }
        Ok(complete_result(&peer, result))
    };
    blocking(look)
}

#[derive(Deserialize)]
struct SkillParams<'a> {
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    cursor: Option<Cow<'a, str>>,
}

/// Runs what reads files where it holds nobody up.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
) -> Result<T, RpcError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(RpcError::new(INTERNAL_ERROR, "reading ended in the middle")))
}

fn skill_error(error: &SkillError) -> RpcError {
    let error_of = RpcError::new(error.code().into(), error.to_string());
    match error.uri() {
        Some(uri) => error_of.with_data(json!({ "uri": uri })),
        None => error_of,
    }
}

/// The methods that know their answer at once.
fn simple(
    door: &Door,
    peer: &Peer,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Value, RpcError> {
    match method {
        "ping" if !peer.is_modern() => Ok(json!({})),
        "server/discover" if peer.is_modern() => Ok(discover(door, peer)),
        "tools/list" => {
            let (view, caller) = (door.dispatcher.view(), &peer.caller);
            let tools = view.tools(caller).map(mcp::tool);
            page(door, peer, method, params, "tools", tools)
        }
        "prompts/list" => {
            let (view, caller) = (door.dispatcher.view(), &peer.caller);
            let prompts = view.prompts(caller).map(described_prompt);
            page(door, peer, method, params, "prompts", prompts)
        }
        "resources/list" => {
            let (view, caller) = (door.dispatcher.view(), &peer.caller);
            let resources = view.resources(caller).filter(|it| !it.is_template());
            let resources = resources.map(|it| described_resource(it, "uri"));
            page(door, peer, method, params, "resources", resources)
        }
        "resources/templates/list" => {
            let (view, caller) = (door.dispatcher.view(), &peer.caller);
            let templates = view.resources(caller).filter(|it| it.is_template());
            let templates = templates.map(|it| described_resource(it, "uriTemplate"));
            page(door, peer, method, params, "resourceTemplates", templates)
        }
        "completion/complete" => complete(door, peer, params),
        _ => Err(RpcError::unknown_method(method)),
    }
}

/// What the server is and can do, as `initialize` says it.
pub(super) fn initialized(door: &Door, version: Version) -> Value {
    let mut result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": capabilities(door, Some(version)),
        "serverInfo": server_info(),
    });
    if let Some(instructions) = instructions(door.dispatcher.view().enabled_servers()) {
        result["instructions"] = instructions.into();
    }
    result
}

fn discover(door: &Door, peer: &Peer) -> Value {
    let mut result = json!({
        "supportedVersions": [super::modern::VERSION],
        "capabilities": capabilities(door, None),
    });
    if let Some(instructions) = instructions(door.dispatcher.view().enabled_servers()) {
        result["instructions"] = instructions.into();
    }
    hint(door, peer, &mut result);
    complete_result(peer, result)
}

/// What the server can do, for clients with a session of some version, or without one.
fn capabilities(door: &Door, version: Option<Version>) -> Value {
    let mut capabilities = json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "completions": {},
        "logging": {},
    });
    let mut extensions = Map::new();
    if version.is_none() && door.tasks.is_some() {
        extensions.insert(tasks::EXTENSION.to_owned(), json!({}));
    }
    if door.skills.is_some() {
        let settings = json!({ "directoryRead": true });
        extensions.insert(crate::skills::EXTENSION.to_owned(), settings);
    }
    if !extensions.is_empty() {
        capabilities["extensions"] = extensions.into();
    }
    capabilities
}

pub(super) fn server_info() -> Value {
    // VS Code makes its prefix of the title that the server announces.
    json!({ "name": NAMESPACE, "title": NAMESPACE, "version": env!("CARGO_PKG_VERSION") })
}

/// What a client reads about all servers together.
fn instructions<'s>(servers: impl Iterator<Item = &'s Server>) -> Option<String> {
    let described = servers.filter(|it| !it.description.is_empty() && !it.tools.is_empty());
    let lines: Vec<String> = described
        .map(|it| format!("- {}: {}", it.name, it.description.replace('\n', " ")))
        .collect();
    (!lines.is_empty()).then(|| format!("Tools of these servers:\n{}", lines.join("\n")))
}

/// Marks a result as the last word on its request, and says whose word it is: both only 2026-07-28 knows.
pub(super) fn complete_result(peer: &Peer, mut result: Value) -> Value {
    if peer.is_modern() {
        result["resultType"] = "complete".into();
        sign(&mut result);
    }
    result
}

pub(super) fn sign(result: &mut Value) {
    let info = json!({ "name": NAMESPACE, "version": env!("CARGO_PKG_VERSION") });
    result["_meta"]["io.modelcontextprotocol/serverInfo"] = info;
}

/// Says how long a result may be kept, and by whom. With tokens it depends on the caller.
fn hint(door: &Door, peer: &Peer, result: &mut Value) {
    if peer.is_modern() {
        result["ttlMs"] = 0.into();
        let scope = if door.is_open { "public" } else { "private" };
        result["cacheScope"] = scope.into();
    }
}

#[derive(Deserialize)]
struct ListParams<'a> {
    #[serde(borrow, default)]
    cursor: Option<Cow<'a, str>>,
}

fn page(
    door: &Door,
    peer: &Peer,
    method: &str,
    params: Option<&RawValue>,
    key: &str,
    items: impl Iterator<Item = Value>,
) -> Result<Value, RpcError> {
    let ListParams { cursor } = rpc::params(method, params)?;
    let start = match &cursor {
        None => 0,
        Some(cursor) => read_cursor(cursor).ok_or_else(|| {
            RpcError::invalid_params("this cursor is not one that this server gave for this list")
        })?,
    };
    let mut rest = items.skip(start);
    let page: Vec<Value> = rest.by_ref().take(PAGE).collect();
    if page.is_empty() && cursor.is_some() {
        let message = "this cursor points behind the end of the list; list again from the start";
        return Err(RpcError::invalid_params(message));
    }
    let mut result = json!({ key: page });
    if rest.next().is_some() {
        result["nextCursor"] = format!("from-{}", start + PAGE).into();
    }
    hint(door, peer, &mut result);
    Ok(complete_result(peer, result))
}

fn read_cursor(cursor: &str) -> Option<usize> {
    let start: usize = cursor.strip_prefix("from-")?.parse().ok()?;
    (start > 0 && start.is_multiple_of(PAGE)).then_some(start)
}

fn described_prompt(listed: Listed<'_, runtime::Prompt>) -> Value {
    let Listed { name, item } = listed;
    let mut prompt = json!({ "name": name, "description": item.description });
    if let Some(title) = &item.title {
        prompt["title"] = title.as_str().into();
    }
    let arguments = item.arguments.iter().map(
        |it| json!({ "name": it.name, "description": it.description, "required": it.required }),
    );
    let arguments: Vec<Value> = arguments.collect();
    if !arguments.is_empty() {
        prompt["arguments"] = arguments.into();
    }
    prompt
}

fn described_resource(resource: &runtime::Resource, address: &str) -> Value {
    let mut described = json!({ "name": resource.name, "description": resource.description });
    described[address] = resource.uri.as_str().into();
    if let Some(title) = &resource.title {
        described["title"] = title.as_str().into();
    }
    if let Some(mime_type) = &resource.mime_type {
        described["mimeType"] = mime_type.as_str().into();
    }
    described
}

/// What a call brings besides its name: the answers of a stateless client.
#[derive(Default, Deserialize)]
struct RoundParams<'a> {
    #[serde(default, rename = "inputResponses")]
    input_responses: Option<Map<String, Value>>,
    #[serde(borrow, default, rename = "requestState")]
    request_state: Option<Cow<'a, str>>,
}

/// Puts the answers of this round to those of the rounds before.
fn round(
    door: &Door,
    peer: &Peer,
    method: &str,
    name: &str,
    arguments: &str,
    params: Option<&RawValue>,
) -> Result<Round, RpcError> {
    let binding = Binding::new(&peer.caller.principal, method, name, arguments);
    let mut answers = Answers::new();
    if peer.is_modern() {
        let sent: RoundParams<'_> = rpc::params(method, params)?;
        if let Some(state) = &sent.request_state {
            answers = door.seal.open(state, &binding, now())?;
        }
        answers.extend(sent.input_responses.into_iter().flatten());
    }
    Ok(Round { binding, answers })
}

/// The result that asks the client's questions; the answers that the call has used go along, sealed.
fn ask(door: &Door, talk: Option<&Rerun>, binding: &Binding, required: &InputRequired) -> Value {
    let questions = required.questions.iter().map(|it| {
        let question = json!({ "method": it.method, "params": it.params });
        (it.key.clone(), question)
    });
    let questions: Map<String, Value> = questions.collect();
    let mut result = json!({ "resultType": "input_required" });
    if !questions.is_empty() {
        result["inputRequests"] = questions.into();
    }
    let state = match (&required.state, talk) {
        (Some(state), _) => Some(state.clone()),
        (None, Some(talk)) => Some(door.seal.seal(talk.used(), binding, now())),
        (None, None) => None,
    };
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    sign(&mut result);
    result
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

fn call_tool(
    door: &Arc<Door>,
    peer: &Peer,
    params: Option<&RawValue>,
) -> Result<(Talk, Work), RpcError> {
    let CallParams { name, arguments } = rpc::params("tools/call", params)?;
    let arguments = arguments.map_or("", RawValue::get);
    if !(arguments.is_empty() || arguments == "null" || arguments.starts_with('{')) {
        return Err(RpcError::invalid_params(
            "the `arguments` of `tools/call` must be an object",
        ));
    }
    let Round { binding, answers } = round(door, peer, "tools/call", &name, arguments, params)?;
    let meta = Meta::of(params)?.unwrap_or_default();
    let talk = talk(door, peer, &meta, answers);
    let (door, peer, context, rerun) = (
        door.clone(),
        peer.clone(),
        talk.context.clone(),
        talk.rerun.clone(),
    );
    let (name, arguments) = (name.into_owned(), arguments.to_owned());
    let view = door.dispatcher.view();
    if let Some(tool) = view.reached_tool(&name, &peer.caller)
        && tasks::applies(&door, &peer, tool)?
        && let Some(tasks) = door.tasks.clone()
        && let Era::Modern { capabilities, .. } = &peer.era
    {
        let full_name = runtime::full_name(&tool.server, &tool.name);
        let job = tasks::Job {
            tool: view
                .shared_tool(&full_name)
                .expect("the view knows its own tool"),
            arguments,
            caller: peer.caller.clone(),
            capabilities: capabilities.clone(),
        };
        let asks_first = job.tool.task == Some(TaskSupport::AsksFirst);
        let work: Work = if let Some(rerun) = rerun.filter(|_| asks_first) {
            Box::pin(ask_first(door, tasks, job, context, rerun, binding))
        } else {
            Box::pin(async move { tasks::start(&door, &tasks, job).await })
        };
        return Ok((talk, work));
    }
    let work = async move {
        let _in_flight = door.in_flight.enter();
        match door.dispatcher.call(&name, &arguments, &context).await {
            Ok(Output {
                input_required: Some(required),
                ..
            }) => Ok(ask(&door, rerun.as_deref(), &binding, &required)),
            Ok(output) => Ok(call_result(&peer, &output)),
            Err(error) => call_error(&peer, &error),
        }
    };
    Ok((talk, Box::pin(work)))
}

/// Runs a call until it has asked everything; then it goes on as a task.
async fn ask_first(
    door: Arc<Door>,
    tasks: Arc<tasks::Tasks>,
    job: tasks::Job,
    mut context: Context,
    rerun: Arc<Rerun>,
    binding: Binding,
) -> Result<Value, RpcError> {
    context.limit = Some(tasks::LIMIT);
    let cancellation = context.cancellation.clone();
    let name = runtime::full_name(&job.tool.server, &job.tool.name);
    let (dispatcher, arguments) = (door.dispatcher.clone(), job.arguments.clone());
    let mut call: BoxFuture<'static, _> =
        Box::pin(async move { dispatcher.call(&name, &arguments, &context).await });
    let call = match (&mut call).now_or_never() {
        Some(Ok(Output {
            input_required: Some(required),
            ..
        })) => return Ok(ask(&door, Some(&*rerun), &binding, &required)),
        Some(ended) => Box::pin(std::future::ready(ended)),
        None => call,
    };
    tasks::go_on(&tasks, job, cancellation, call).await
}

fn talk(door: &Door, peer: &Peer, meta: &Meta<'_>, answers: Answers) -> Talk {
    let mut talk = Talk::new(peer, meta.progress_token, answers);
    // A door that closes takes all calls back.
    talk.context.cancellation = door.closed.child_token();
    talk.context.changes = door.dispatcher.changes().clone();
    talk
}

fn call_result(peer: &Peer, output: &Output) -> Value {
    let mut result = mcp::result(output);
    // Clients before 2025-06-18 know no structured output.
    if peer.version().is_some_and(|it| it < Version::V2025_06_18)
        && let Value::Object(result) = &mut result
    {
        result.remove("structuredContent");
    }
    complete_result(peer, result)
}

/// A call that did not happen: a name that means nothing is an error of the protocol, everything else is told to the
/// model as the tool's result.
fn call_error(peer: &Peer, error: &CallError) -> Result<Value, RpcError> {
    match error {
        CallError::Unknown { .. } | CallError::Ambiguous(_) => {
            let data = json!({ "code": error.code() });
            Err(RpcError::invalid_params(error.to_string()).with_data(data))
        }
        CallError::ClientLacks { method, .. } if peer.is_modern() => {
            Err(RpcError::new(MISSING_CAPABILITY, error.to_string())
                .with_data(required_capabilities(method))
                .with_status(StatusCode::BAD_REQUEST))
        }
        _ => {
            let mut output = Output::error(error.to_string());
            let key = format!("{NAMESPACE}/error");
            output.insert_meta(key, error.code());
            Ok(call_result(peer, &output))
        }
    }
}

#[derive(Deserialize)]
struct ReadParams<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
}

fn read_resource(
    door: &Arc<Door>,
    peer: &Peer,
    params: Option<&RawValue>,
) -> Result<(Talk, Work), RpcError> {
    let ReadParams { uri } = rpc::params("resources/read", params)?;
    let Round { binding, answers } = round(door, peer, "resources/read", &uri, "", params)?;
    let meta = Meta::of(params)?.unwrap_or_default();
    let talk = talk(door, peer, &meta, answers);
    let (door, peer, context, rerun) = (
        door.clone(),
        peer.clone(),
        talk.context.clone(),
        talk.rerun.clone(),
    );
    let uri = uri.into_owned();
    let work = async move {
        let _in_flight = door.in_flight.enter();
        if let Some(skills) = door.skills.clone() {
            let asked = uri.clone();
            let look = move || {
                skills
                    .read(&asked)
                    .transpose()
                    .map_err(|it| skill_error(&it))
            };
            if let Some(contents) = blocking(look).await? {
                let mut result = json!({ "contents": [contents.into_value()] });
                hint(&door, &peer, &mut result);
                return Ok(complete_result(&peer, result));
            }
        }
        match door.dispatcher.read(&uri, &context).await {
            Ok(output) => Ok(read_result(&door, &peer, &uri, &context, &output)),
            Err(ReadError::InputRequired(required)) => {
                Ok(ask(&door, rerun.as_deref(), &binding, &required))
            }
            Err(error) => Err(read_error(&peer, &error)),
        }
    };
    Ok((talk, Box::pin(work)))
}

fn read_result(door: &Door, peer: &Peer, uri: &str, context: &Context, output: &Output) -> Value {
    let view = door.dispatcher.view();
    let resource = view.resource(uri, &context.caller);
    let mime_type = resource.and_then(|it| it.mime_type.as_deref());
    let contents = output.content.iter().map(|it| contents(uri, mime_type, it));
    let contents: Vec<Value> = contents.collect();
    let mut result = json!({ "contents": contents });
    hint(door, peer, &mut result);
    complete_result(peer, result)
}

fn contents(uri: &str, mime_type: Option<&str>, content: &Content) -> Value {
    match content {
        Content::Resource {
            uri,
            mime_type,
            body,
        } => mcp::resource(uri, mime_type.as_deref(), body),
        Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
            mcp::resource(uri, Some(mime_type), &Body::Blob(data.clone()))
        }
        Content::Link { uri: target, .. } => {
            mcp::resource(uri, Some("text/uri-list"), &Body::Text(target.clone()))
        }
        other => {
            let text = other.as_text().unwrap_or_default().to_owned();
            mcp::resource(uri, mime_type, &Body::Text(text))
        }
    }
}

fn read_error(peer: &Peer, error: &ReadError) -> RpcError {
    let message = error.to_string();
    match error {
        ReadError::NotFound { uri } => {
            let error = if peer.is_modern() {
                RpcError::invalid_params(message)
            } else {
                RpcError::new(RESOURCE_NOT_FOUND, message)
            };
            error.with_data(json!({ "uri": uri }))
        }
        ReadError::UnknownPrompt { .. }
        | ReadError::Ambiguous(_)
        | ReadError::MissingArgument { .. } => RpcError::invalid_params(message),
        _ => RpcError::new(INTERNAL_ERROR, message),
    }
}

#[derive(Deserialize)]
struct PromptParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    arguments: Option<BTreeMap<String, Value>>,
}

fn get_prompt(
    door: &Arc<Door>,
    peer: &Peer,
    params: Option<&RawValue>,
) -> Result<(Talk, Work), RpcError> {
    let PromptParams { name, arguments } = rpc::params("prompts/get", params)?;
    let arguments: BTreeMap<String, String> = arguments
        .into_iter()
        .flatten()
        .map(|(name, value)| (name, text(value)))
        .collect();
    let digest = json!(arguments).to_string();
    let Round { binding, answers } = round(door, peer, "prompts/get", &name, &digest, params)?;
    let meta = Meta::of(params)?.unwrap_or_default();
    let talk = talk(door, peer, &meta, answers);
    let (door, peer, context, rerun) = (
        door.clone(),
        peer.clone(),
        talk.context.clone(),
        talk.rerun.clone(),
    );
    let name = name.into_owned();
    let work = async move {
        let _in_flight = door.in_flight.enter();
        match door.dispatcher.prompt(&name, arguments, &context).await {
            Ok(messages) => Ok(complete_result(&peer, prompt_result(&messages))),
            Err(ReadError::InputRequired(required)) => {
                Ok(ask(&door, rerun.as_deref(), &binding, &required))
            }
            Err(error) => Err(read_error(&peer, &error)),
        }
    };
    Ok((talk, Box::pin(work)))
}

/// The protocol wants text here; some clients send numbers.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn prompt_result(messages: &[Message]) -> Value {
    let messages = messages.iter().map(|it| {
        let role = match it.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({ "role": role, "content": mcp::content(&it.content) })
    });
    json!({ "messages": messages.collect::<Vec<_>>() })
}

#[derive(Deserialize)]
struct CompleteParams<'a> {
    #[serde(borrow, rename = "ref")]
    reference: Reference<'a>,
    #[serde(borrow)]
    argument: Completed<'a>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Reference<'a> {
    #[serde(rename = "ref/prompt")]
    Prompt {
        #[serde(borrow)]
        name: Cow<'a, str>,
    },
    #[serde(rename = "ref/resource")]
    Resource {
        #[serde(borrow)]
        uri: Cow<'a, str>,
    },
}

#[derive(Deserialize)]
struct Completed<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    value: Cow<'a, str>,
}

fn complete(door: &Door, peer: &Peer, params: Option<&RawValue>) -> Result<Value, RpcError> {
    let CompleteParams {
        reference,
        argument,
    } = rpc::params("completion/complete", params)?;
    let view = door.dispatcher.view();
    let values = match &reference {
        Reference::Prompt { name } => view.prompt_values(name, &argument.name, &peer.caller),
        Reference::Resource { uri } => view.resource_values(uri, &argument.name, &peer.caller),
    };
    let values = values.ok_or_else(|| {
        RpcError::invalid_params(match &reference {
            Reference::Prompt { name } => format!("there is no prompt `{}`", rpc::shown(name)),
            Reference::Resource { uri } => format!("there is no resource `{}`", rpc::shown(uri)),
        })
    })?;
    let typed = argument.value.to_lowercase();
    let fitting = values
        .into_iter()
        .filter(|it| it.to_lowercase().starts_with(&typed));
    let fitting: Vec<String> = fitting.collect();
    let total = fitting.len();
    let values: Vec<String> = fitting.into_iter().take(COMPLETIONS).collect();
    let completion = json!({ "hasMore": values.len() < total, "total": total, "values": values });
    Ok(complete_result(peer, json!({ "completion": completion })))
}

#[derive(Deserialize)]
struct LevelParams<'a> {
    #[serde(borrow)]
    level: Cow<'a, str>,
}

/// The methods by which a client with a session asks for something that stays.
async fn set(
    door: &Door,
    peer: &Peer,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Value, RpcError> {
    let Era::Legacy(session) = &peer.era else {
        return Err(RpcError::unknown_method(method));
    };
    if method == "logging/setLevel" {
        let LevelParams { level } = rpc::params(method, params)?;
        let level = level_of(&level).ok_or_else(|| {
            RpcError::invalid_params(format!("there is no log level `{}`", rpc::shown(&level)))
        })?;
        return change(door, session, move |it| it.level = Some(level)).await;
    }
    let ReadParams { uri } = rpc::params(method, params)?;
    if method == "resources/unsubscribe" {
        let unsubscribe = |it: &mut Kept| {
            it.subscriptions.remove(&*uri);
        };
        return change(door, session, unsubscribe).await;
    }
    let known = {
        let view = door.dispatcher.view();
        let mut resources = view.resources(&peer.caller);
        resources.any(|it| it.matches(&uri).is_some())
    };
    if !known {
        let uri = uri.into_owned();
        return Err(read_error(peer, &ReadError::NotFound { uri }));
    }
    let subscribe = |it: &mut Kept| {
        it.subscriptions.insert(uri.to_string());
    };
    change(door, session, subscribe).await
}

async fn change(
    door: &Door,
    session: &Session,
    change: impl Fn(&mut Kept) + Send + Sync,
) -> Result<Value, RpcError> {
    let changed = door.sessions.change(session, change).await;
    let is_there = changed.map_err(|error| {
        tracing::error!(?error, "can't keep what a session asked for");
        RpcError::new(
            INTERNAL_ERROR,
            "the bridge can't keep this at the moment; try again",
        )
    })?;
    if !is_there {
        let message = "the session has just been ended; send `initialize` again";
        return Err(RpcError::new(INVALID_REQUEST, message));
    }
    door.tell_others(News::Session(session.id.to_string()));
    Ok(json!({}))
}
