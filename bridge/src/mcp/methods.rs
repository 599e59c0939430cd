//! What each method gives, in both eras.

use super::{
    Door,
    calls::{self, ReadParams, read_error},
    news::News,
    peer::{Era, Peer},
    result::{blocking, complete_result, hint},
    rpc::{self, INTERNAL_ERROR, INVALID_REQUEST, Request, RpcError},
    session::{Kept, Session, Version},
    stream::Exchange,
    tasks,
};
use crate::engines::dialect;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{borrow::Cow, future::Future, sync::Arc};
use tool_runtime::{
    self as runtime, Caller, Level, Listed, NAMESPACE, ReadError, Server, View, export::mcp,
};

/// How many letters of what a server says of itself stand in a list of several.
const LONGEST_LINE: usize = 400;

/// Where the list of tools says which servers it lacks.
const MISSING: &str = "clopen-mcp/missing";

/// Answers a request, whatever its method.
pub(super) fn exchange(door: &Arc<Door>, peer: &Peer, request: Request) -> Exchange {
    let Request { id, method, params } = request;
    let params = params.as_deref();
    let started = match method.as_str() {
        "tools/call" => calls::call_tool(door, peer, params),
        "resources/read" => calls::read_resource(door, peer, params),
        "completion/complete" => calls::complete(door, peer, params),
        "prompts/get" => calls::get_prompt(door, peer, params),
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
            let (view, caller) = (door.dispatcher.view_for(&peer.caller), &peer.caller);
            let resources = view.resources(caller).filter(|it| !it.is_template());
            let resources = resources.map(|it| described_resource(it, "uri"));
            let of_skills = skills.resources()?;
            let all = resources.chain(of_skills);
            return page(&door, &peer, &method, params, "resources", all);
        }
        let SkillParams { uri, cursor } = rpc::params(&method, params)?;
        let uri = uri.unwrap_or_default();
        let mut result = match method.as_str() {
            "skills/list" => skills.list(cursor.as_deref()),
            "skills/get" => skills.get(&uri),
            _ => skills.directory(&uri, cursor.as_deref()),
        }?;
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
            let (view, caller) = (door.dispatcher.view_for(&peer.caller), &peer.caller);
            let dialect = dialect(caller);
            let tools = view.tools(caller).map(|it| mcp::tool_for(it, &dialect));
            let mut page = page(door, peer, method, params, "tools", tools)?;
            if let Some(missing) = missing(&view, caller) {
                page["_meta"][MISSING] = missing.into();
            }
            Ok(page)
        }
        "prompts/list" => {
            let (view, caller) = (door.dispatcher.view_for(&peer.caller), &peer.caller);
            let prompts = view.prompts(caller).map(described_prompt);
            page(door, peer, method, params, "prompts", prompts)
        }
        "resources/list" => {
            let (view, caller) = (door.dispatcher.view_for(&peer.caller), &peer.caller);
            let resources = view.resources(caller).filter(|it| !it.is_template());
            let resources = resources.map(|it| described_resource(it, "uri"));
            page(door, peer, method, params, "resources", resources)
        }
        "resources/templates/list" => {
            let (view, caller) = (door.dispatcher.view_for(&peer.caller), &peer.caller);
            let templates = view.resources(caller).filter(|it| it.is_template());
            let templates = templates.map(|it| described_resource(it, "uriTemplate"));
            page(door, peer, method, params, "resourceTemplates", templates)
        }
        _ => Err(RpcError::unknown_method(method)),
    }
}

/// Which servers have no tools in the list, by name, and why.
fn missing(view: &View, caller: &Caller) -> Option<Map<String, Value>> {
    let missing = view.missing_servers(caller);
    let missing: Map<String, Value> = missing
        .map(|(server, why)| (server.name.clone(), why.reason.as_str().into()))
        .collect();
    (!missing.is_empty()).then_some(missing)
}

/// What the server is and can do, as `initialize` says it.
pub(super) fn initialized(door: &Door, caller: &Caller, version: Version) -> Value {
    let mut result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": capabilities(door, Some(version)),
        "serverInfo": server_info(),
    });
    if let Some(instructions) = instructions(&door.dispatcher.view_for(caller), caller) {
        result["instructions"] = instructions.into();
    }
    result
}

fn discover(door: &Door, peer: &Peer) -> Value {
    let mut result = json!({
        "supportedVersions": [super::modern::VERSION],
        "capabilities": capabilities(door, None),
    });
    if let Some(instructions) = instructions(&door.dispatcher.view_for(&peer.caller), &peer.caller)
    {
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

/// What a client reads about all servers that it reaches together; of one alone, all that it says of itself.
fn instructions(view: &View, caller: &Caller) -> Option<String> {
    let reached = view
        .enabled_servers()
        .filter(|it| caller.reaches_server(&it.name));
    let reached: Vec<&Server> = reached.filter(|it| !it.description.is_empty()).collect();
    if let [alone] = reached.as_slice()
        && caller
            .reach
            .servers
            .as_ref()
            .is_some_and(|it| it.len() == 1)
    {
        return Some(alone.description.clone());
    }
    let described = reached.iter().filter(|it| !it.tools.is_empty());
    let lines: Vec<String> = described
        .map(|it| format!("- {}: {}", it.name, in_one_line(&it.description)))
        .collect();
    (!lines.is_empty()).then(|| format!("Tools of these servers:\n{}", lines.join("\n")))
}

fn in_one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
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
        Some(cursor) => read_cursor(cursor, door.limits.page).ok_or_else(|| {
            RpcError::invalid_params("this cursor is not one that this server gave for this list")
        })?,
    };
    let mut rest = items.skip(start);
    let page: Vec<Value> = rest.by_ref().take(door.limits.page).collect();
    if page.is_empty() && cursor.is_some() {
        let message = "this cursor points behind the end of the list; list again from the start";
        return Err(RpcError::invalid_params(message));
    }
    let mut result = json!({ key: page });
    if rest.next().is_some() {
        result["nextCursor"] = format!("from-{}", start + door.limits.page).into();
    }
    hint(door, peer, &mut result);
    Ok(complete_result(peer, result))
}

fn read_cursor(cursor: &str, page: usize) -> Option<usize> {
    let start: usize = cursor.strip_prefix("from-")?.parse().ok()?;
    (start > 0 && start.is_multiple_of(page)).then_some(start)
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
    with_further(prompt, &item.further)
}

fn with_further(mut described: Value, further: &Map<String, Value>) -> Value {
    if let Value::Object(described) = &mut described {
        mcp::add_further(described, further);
    }
    described
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
    with_further(described, &resource.further)
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
        let level = Level::named(&level).ok_or_else(|| {
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
    if !door.dispatcher.watch(&uri, &peer.caller) {
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
