//! Calls: what runs a tool, reads a resource or makes a prompt, and may ask and say something meanwhile.

use super::{
    Door,
    conversation::{Rerun, required_capabilities},
    peer::{Meta, Peer, Talk},
    result::{blocking, complete_result, hint, sign},
    rpc::{self, INTERNAL_ERROR, MISSING_CAPABILITY, RESOURCE_NOT_FOUND, RpcError},
    seal::{Answers, Binding, State},
    session::Version,
    stream::Work,
    tasks,
};
use crate::{engines::Engine, store::now};
use axum::http::StatusCode;
use futures_util::{FutureExt as _, future::BoxFuture};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};
use tool_runtime::{
    self as runtime, Body, CallError, Content, Context, Conversation, InputRequired, Later,
    Message, NAMESPACE, Output, ProtocolError, ReadError, Role, Round, TaskSupport, Tool, Typed,
    export::mcp,
};

/// What a call brings besides its name: the answers of a stateless client.
#[derive(Default, Deserialize)]
struct RoundParams<'a> {
    #[serde(default, rename = "inputResponses")]
    input_responses: Option<Map<String, Value>>,
    #[serde(borrow, default, rename = "requestState")]
    request_state: Option<Cow<'a, str>>,
}

/// A call that is about to run.
struct Call {
    door: Arc<Door>,
    peer: Peer,
    context: Context,
    /// The questions of a stateless call.
    rerun: Option<Arc<Rerun>>,
    /// What a state is bound to that the client carries to the next round.
    binding: Binding,
}

/// Prepares a call of what `name` names; its answers are those of this round and of the rounds before.
fn prepare(
    door: &Arc<Door>,
    peer: &Peer,
    method: &str,
    name: &str,
    arguments: &str,
    params: Option<&RawValue>,
) -> Result<(Talk, Call), RpcError> {
    let binding = Binding::new(&peer.caller.principal, method, name, arguments);
    let mut state = State::default();
    let mut answers = Answers::new();
    if peer.is_modern() {
        let sent: RoundParams<'_> = rpc::params(method, params)?;
        if let Some(sealed) = &sent.request_state {
            state = door.seal.open(sealed, &binding, now())?;
        }
        answers.extend(sent.input_responses.into_iter().flatten());
    }
    let sent = Round {
        state: state.own,
        answers,
    };
    let meta = Meta::of(params)?.unwrap_or_default();
    let mut talk = Talk::new(peer, meta.progress_token, state.answers, sent);
    // A door that closes takes all calls back.
    talk.context.cancellation = door.closed.child_token();
    talk.context.changes = door.dispatcher.changes().clone();
    let call = Call {
        door: door.clone(),
        peer: peer.clone(),
        context: talk.context.clone(),
        rerun: talk.rerun.clone(),
        binding,
    };
    Ok((talk, call))
}

impl Call {
    /// Starts a call that may outlive the request.
    fn start(&self, job: &tasks::Job) -> BoxFuture<'static, Result<Output, CallError>> {
        let (dispatcher, context) = (self.door.dispatcher.clone(), self.context.clone());
        let name = runtime::full_name(&job.tool.server, &job.tool.name);
        let arguments = job.arguments.clone();
        Box::pin(async move { dispatcher.call(&name, &arguments, &context).await })
    }

    /// Has the call ask in another way once it is a task.
    fn talks_later(&mut self) -> Arc<tasks::Switch> {
        let first = self.rerun.clone().expect("a call of 2026-07-28 has one");
        let switch = Arc::new(tasks::Switch::new(first));
        let conversation: Arc<dyn Conversation> = switch.clone();
        self.context.client = conversation.into();
        switch
    }

    fn answer(&self, ended: Result<Output, CallError>) -> Result<Value, RpcError> {
        match ended {
            Ok(Output {
                input_required: Some(required),
                ..
            }) => Ok(self.ask(&required)),
            Ok(output) => Ok(call_result(&self.peer, &output)),
            Err(error) => call_error(&self.peer, &error),
        }
    }

    /// The result that asks the client's questions; the answers that the call has used go along, sealed.
    fn ask(&self, required: &InputRequired) -> Value {
        let questions = required.questions.iter().map(|it| {
            let question = json!({ "method": it.method, "params": it.params });
            (it.key.clone(), question)
        });
        let questions: Map<String, Value> = questions.collect();
        let mut result = json!({ "resultType": "input_required" });
        if !questions.is_empty() {
            result["inputRequests"] = questions.into();
        }
        if let Some(rerun) = &self.rerun {
            let state = State {
                answers: rerun.used(),
                own: required.state.clone(),
            };
            result["requestState"] = self.door.seal.seal(state, &self.binding, now()).into();
        }
        sign(&mut result);
        result
    }
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

pub(super) fn call_tool(
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
    let view = door.dispatcher.view_for(&peer.caller);
    let tool = view.reached_tool(&name, &peer.caller);
    let arguments = &*without_invented(&peer.caller.engine, tool, arguments);
    let (talk, mut call) = prepare(door, peer, "tools/call", &name, arguments, params)?;
    let (name, arguments) = (name.into_owned(), arguments.to_owned());
    if tool.is_some_and(|it| it.task == Some(TaskSupport::Late)) {
        call.context.meta = Some(Box::new(Meta::whole(params)));
    }
    if let Some(tool) = tool
        && let Some((tasks, capabilities)) = tasks::for_call(door, peer, tool)?
    {
        let full_name = runtime::full_name(&tool.server, &tool.name);
        let job = tasks::Job {
            tool: view
                .shared_tool(&full_name)
                .expect("the view knows its own tool"),
            arguments,
            caller: peer.caller.clone(),
            capabilities,
        };
        let work: Work = match job.tool.task {
            Some(TaskSupport::Late) => Box::pin(perhaps_later(call, tasks, job)),
            Some(TaskSupport::AsksFirst) => Box::pin(ask_first(call, tasks, job)),
            _ => Box::pin(async move { tasks::start(&call.door, &tasks, job).await }),
        };
        return Ok((talk, work));
    }
    let work = async move {
        let (dispatcher, context) = (&call.door.dispatcher, &call.context);
        let _in_flight = call.door.in_flight.enter();
        let ended = dispatcher.call(&name, &arguments, context).await;
        call.answer(ended)
    };
    Ok((talk, Box::pin(work)))
}

/// Takes out the arguments that an engine adds to those of the model, unless the tool has them.
fn without_invented<'a>(engine: &str, tool: Option<&Tool>, arguments: &'a str) -> Cow<'a, str> {
    let invented = Engine::named(engine).map_or(&[][..], |it| it.invents);
    let has = |name: &str| {
        let properties = tool.and_then(|it| it.input_schema.get("properties"));
        properties.is_some_and(|it| it.get(name).is_some())
    };
    let mut surplus = invented
        .iter()
        .filter(|it| arguments.contains(*it) && !has(it));
    let Some(first) = surplus.next() else {
        return arguments.into();
    };
    let members: Result<BTreeMap<&str, &RawValue>, _> = serde_json::from_str(arguments);
    let Ok(mut members) = members else {
        return arguments.into();
    };
    members.retain(|name, _| *name != *first && surplus.clone().all(|it| *name != *it));
    let members = serde_json::to_string(&members);
    members.expect("what was JSON is JSON").into()
}

/// Runs a call that becomes a task once it says so: whether it does, its own server decides.
async fn perhaps_later(
    mut call: Call,
    tasks: Arc<tasks::Tasks>,
    job: tasks::Job,
) -> Result<Value, RpcError> {
    let _in_flight = call.door.in_flight.enter();
    let switch = call.talks_later();
    let later = Later::possible();
    call.context.later = later.clone();
    let mut running = call.start(&job);
    tokio::select! {
        biased;
        ended = &mut running => call.answer(ended),
        () = later.wanted() => {
            let cancellation = call.context.cancellation.clone();
            let created = tasks::go_on(&tasks, job, cancellation, running, &switch).await;
            later.give();
            created
        }
    }
}

/// Runs a call until it has asked everything; then it goes on as a task.
async fn ask_first(
    mut call: Call,
    tasks: Arc<tasks::Tasks>,
    job: tasks::Job,
) -> Result<Value, RpcError> {
    call.context.limit = Some(tasks::LIMIT);
    let switch = call.talks_later();
    let cancellation = call.context.cancellation.clone();
    let mut running = call.start(&job);
    let running = match (&mut running).now_or_never() {
        Some(Ok(Output {
            input_required: Some(required),
            ..
        })) => return Ok(call.ask(&required)),
        Some(ended) => Box::pin(std::future::ready(ended)),
        None => running,
    };
    tasks::go_on(&tasks, job, cancellation, running, &switch).await
}

fn call_result(peer: &Peer, output: &Output) -> Value {
    let mut result = mcp::result(output);
    if let Some(version) = peer.version() {
        for_version(&mut result, version);
    }
    complete_result(peer, result)
}

/// Takes out what a version doesn't know: structured output and links came with 2025-06-18, sounds with 2025-03-26.
fn for_version(result: &mut Value, version: Version) {
    if version >= Version::V2025_06_18 {
        return;
    }
    if let Value::Object(result) = result {
        result.remove("structuredContent");
    }
    for block in result["content"].as_array_mut().into_iter().flatten() {
        let words = match block["type"].as_str() {
            Some("resource_link") => {
                let text = |key: &str| block[key].as_str().unwrap_or_default();
                format!("{}: {}", text("name"), text("uri"))
            }
            Some("audio") if version < Version::V2025_03_26 => "[a sound]".to_owned(),
            _ => continue,
        };
        *block = json!({ "type": "text", "text": words });
    }
}

/// A call that did not happen: a name that means nothing is an error of the protocol, everything else is told to the
/// model as the tool's result.
fn call_error(peer: &Peer, error: &CallError) -> Result<Value, RpcError> {
    match error {
        CallError::Unknown { .. } | CallError::Ambiguous(_) => {
            let data = json!({ "code": error.code() });
            Err(RpcError::invalid_params(error.to_string()).with_data(data))
        }
        CallError::Protocol { error, .. } => Err(protocol_error(error)),
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

/// What an external server has refused, as it did.
fn protocol_error(error: &ProtocolError) -> RpcError {
    let mut refused = RpcError::new(error.code, error.message.clone());
    if error.code == MISSING_CAPABILITY {
        refused = refused.with_status(StatusCode::BAD_REQUEST);
    }
    match &error.data {
        Some(data) => refused.with_data(data.clone()),
        None => refused,
    }
}

#[derive(Deserialize)]
pub(super) struct ReadParams<'a> {
    #[serde(borrow)]
    pub(super) uri: Cow<'a, str>,
}

pub(super) fn read_resource(
    door: &Arc<Door>,
    peer: &Peer,
    params: Option<&RawValue>,
) -> Result<(Talk, Work), RpcError> {
    let ReadParams { uri } = rpc::params("resources/read", params)?;
    let (talk, call) = prepare(door, peer, "resources/read", &uri, "", params)?;
    let uri = uri.into_owned();
    let work = async move {
        let Call { door, peer, .. } = &call;
        let _in_flight = door.in_flight.enter();
        if let Some(skills) = door.skills.clone() {
            let asked = uri.clone();
            let look = move || Ok(skills.read(&asked).transpose()?);
            if let Some(contents) = blocking(look).await? {
                let mut result = json!({ "contents": [contents.into_value()] });
                hint(door, peer, &mut result);
                return Ok(complete_result(peer, result));
            }
        }
        match door.dispatcher.read(&uri, &call.context).await {
            Ok(output) => Ok(read_result(door, peer, &uri, &output)),
            Err(ReadError::InputRequired(required)) => Ok(call.ask(&required)),
            Err(error) => Err(read_error(peer, &error)),
        }
    };
    Ok((talk, Box::pin(work)))
}

fn read_result(door: &Door, peer: &Peer, uri: &str, output: &Output) -> Value {
    let view = door.dispatcher.view_for(&peer.caller);
    let resource = view.resource(uri, &peer.caller);
    let mime_type = resource.and_then(|it| it.mime_type.as_deref());
    let contents = output.content.iter().map(|it| contents(uri, mime_type, it));
    let mut contents: Vec<Value> = contents.collect();
    // What a page may do stands beside its text, as `_meta` of the contents.
    if let Some(meta) = &output.meta {
        for contents in &mut contents {
            contents["_meta"] = Value::Object((**meta).clone());
        }
    }
    let mut result = json!({ "contents": contents });
    hint(door, peer, &mut result);
    complete_result(peer, result)
}

fn contents(uri: &str, mime_type: Option<&str>, content: &Content) -> Value {
    match content {
        Content::Annotated { content, further } => {
            let mut described = contents(uri, mime_type, content);
            if let Value::Object(described) = &mut described {
                mcp::add_further(described, further);
            }
            described
        }
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

pub(super) fn read_error(peer: &Peer, error: &ReadError) -> RpcError {
    let message = error.to_string();
    match error {
        ReadError::Protocol(error) => protocol_error(error),
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

pub(super) fn get_prompt(
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
    let (talk, call) = prepare(door, peer, "prompts/get", &name, &digest, params)?;
    let name = name.into_owned();
    let work = async move {
        let _in_flight = call.door.in_flight.enter();
        match call
            .door
            .dispatcher
            .prompt(&name, arguments, &call.context)
            .await
        {
            Ok(messages) => Ok(complete_result(&call.peer, prompt_result(&messages))),
            Err(ReadError::InputRequired(required)) => Ok(call.ask(&required)),
            Err(error) => Err(read_error(&call.peer, &error)),
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
    #[serde(default)]
    context: FilledIn,
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

#[derive(Default, Deserialize)]
struct FilledIn {
    #[serde(default)]
    arguments: BTreeMap<String, Value>,
}

pub(super) fn complete(
    door: &Arc<Door>,
    peer: &Peer,
    params: Option<&RawValue>,
) -> Result<(Talk, Work), RpcError> {
    let method = "completion/complete";
    let CompleteParams {
        reference,
        argument,
        context: FilledIn { arguments },
    } = rpc::params(method, params)?;
    let others = arguments.into_iter();
    let typed = Typed {
        argument: argument.name.into_owned(),
        value: argument.value.into_owned(),
        others: others.map(|(name, value)| (name, text(value))).collect(),
    };
    let (is_prompt, name) = match reference {
        Reference::Prompt { name } => (true, name.into_owned()),
        Reference::Resource { uri } => (false, uri.into_owned()),
    };
    let (talk, call) = prepare(door, peer, method, &name, "", params)?;
    let work = async move {
        let (dispatcher, context) = (&call.door.dispatcher, &call.context);
        let completed = if is_prompt {
            dispatcher.complete_prompt(&name, &typed, context).await
        } else {
            dispatcher.complete_resource(&name, &typed, context).await
        };
        let completed = completed.map_err(|error| match error {
            // That there is no such template is no fault of an address.
            ReadError::NotFound { .. } => RpcError::invalid_params(error.to_string()),
            error => read_error(&call.peer, &error),
        })?;
        let mut completion = json!({ "hasMore": completed.has_more, "values": completed.values });
        if let Some(total) = completed.total {
            completion["total"] = total.into();
        }
        Ok(complete_result(
            &call.peer,
            json!({ "completion": completion }),
        ))
    };
    Ok((talk, Box::pin(work)))
}
