//! 2026-07-28: every request says in itself what it needs, and its headers say the same as its body.

use super::{
    Door,
    peer::{Era, Meta, Peer},
    rpc::{self, HEADER_MISMATCH, INVALID_PARAMS, Request, RpcError, UNSUPPORTED_VERSION},
    sightings::{ClientInfo, name_engine},
};
use crate::engines::dialect;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json, value::RawValue};
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use tool_runtime::{Caller, Tool};

/// The revision of the protocol that has no sessions.
pub(super) const VERSION: &str = "2026-07-28";

pub(super) const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");
const PARAMETER_PREFIX: &str = "mcp-param-";

/// The keyword by which a schema says that a header repeats an argument.
const MARK: &str = "x-mcp-header";

/// Whether a request is of this era: its `_meta` or its header names a version that has no sessions, or none that there
/// ever was with sessions.
pub(super) fn is_meant(headers: &HeaderMap, params: Option<&RawValue>) -> bool {
    let header = headers.get(VERSION_HEADER).and_then(|it| it.to_str().ok());
    says_version(params) || header.is_some_and(is_later)
}

/// Whether the parameters name their version, as only this era does.
pub(super) fn says_version(params: Option<&RawValue>) -> bool {
    Meta::of(params).is_ok_and(|it| it.is_some_and(|it| it.version.is_some()))
}

/// Whether a version is this one or a later one: dates compare as text.
fn is_later(version: &str) -> bool {
    version.len() == VERSION.len() && version.starts_with("20") && version >= VERSION
}

fn bad_request(code: i64, message: impl Into<String>) -> RpcError {
    RpcError::new(code, message).with_status(StatusCode::BAD_REQUEST)
}

/// Checks a request's `_meta` and headers, and says who is at the other end.
pub(super) fn peer(
    door: &Door,
    caller: &Arc<Caller>,
    headers: &HeaderMap,
    request: &Request,
) -> Result<Peer, RpcError> {
    let params = request.params.as_deref();
    if let Ok(Some(Meta {
        version: Some(version),
        ..
    })) = Meta::of(params)
    {
        matches_header(headers, &VERSION_HEADER, &version)?;
    }
    let peer = in_body(door, caller, request)?;
    matches_header(headers, &METHOD_HEADER, &request.method)?;
    if let Some(name) = named_by(&request.method).and_then(|it| text_of(params, it)) {
        matches_header(headers, &NAME_HEADER, &name)?;
    }
    if request.method == "tools/call" {
        let name = text_of(params, "name").unwrap_or_default();
        let view = door.dispatcher.view_for(caller);
        if let Some(tool) = view.reached_tool(&name, caller) {
            let is_marked = dialect(&peer.caller).keywords.has(MARK);
            parameters(headers, tool, params, is_marked)?;
        }
    }
    Ok(peer)
}

/// Checks what a request says about itself; for a pipe, which has no headers, that is all.
pub(super) fn in_body(
    door: &Door,
    caller: &Arc<Caller>,
    request: &Request,
) -> Result<Peer, RpcError> {
    let params = request.params.as_deref();
    let malformed = |error: RpcError| error.with_status(StatusCode::BAD_REQUEST);
    let missing = |what: &str| {
        let message =
            format!("every request needs `io.modelcontextprotocol/{what}` in its `_meta`");
        bad_request(INVALID_PARAMS, message)
    };
    let meta = Meta::of(params).map_err(malformed)?.unwrap_or_default();
    let version = meta
        .version
        .as_deref()
        .ok_or_else(|| missing("protocolVersion"))?;
    let capabilities = meta
        .capabilities
        .ok_or_else(|| missing("clientCapabilities"))?;
    if version != VERSION {
        let message = format!(
            "this server doesn't speak version `{}`",
            rpc::shown(version)
        );
        let data = json!({ "supported": [VERSION], "requested": version });
        return Err(bad_request(UNSUPPORTED_VERSION, message).with_data(data));
    }
    let capabilities: Value = serde_json::from_str(capabilities.get()).unwrap_or_default();
    if !capabilities.is_object() {
        return Err(bad_request(
            INVALID_PARAMS,
            "the client's capabilities must be an object",
        ));
    }
    let level = meta.level().map_err(malformed)?;
    let client = || ClientInfo::of(meta.client_info);
    let caller = name_engine(caller, || client().engine());
    if ["server/discover", "tools/list"].contains(&request.method.as_str()) {
        door.sightings.note(&caller, client(), VERSION);
    }
    Ok(Peer {
        caller,
        era: Era::Modern {
            capabilities,
            level,
        },
    })
}

/// The parameter that the header `Mcp-Name` repeats.
fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// The members of an object, each as it stands: one that can't be read, such as half a surrogate pair, must not hide
/// the others from these checks, since it doesn't hide them from the call.
fn members(object: &RawValue) -> Option<HashMap<String, &RawValue>> {
    serde_json::from_str(object.get()).ok()
}

fn text_of(params: Option<&RawValue>, key: &str) -> Option<String> {
    serde_json::from_str(members(params?)?.get(key)?.get()).ok()
}

fn matches_header(headers: &HeaderMap, name: &HeaderName, body: &str) -> Result<(), RpcError> {
    let header = single(headers, name.as_str())?.ok_or_else(|| {
        let message = format!("the header `{name}` is missing; it must say what the body says");
        bad_request(HEADER_MISMATCH, message)
    })?;
    let said = decoded(header).ok_or_else(|| {
        bad_request(
            HEADER_MISMATCH,
            format!("the header `{name}` can't be decoded"),
        )
    })?;
    if said == body {
        return Ok(());
    }
    let (said, body) = (rpc::shown(&said), rpc::shown(body));
    let message = format!("the header `{name}` says `{said}`, and the body `{body}`");
    Err(bad_request(HEADER_MISMATCH, message))
}

/// The one header of a name; several could say different things to different readers.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h HeaderValue>, RpcError> {
    let mut sent = headers.get_all(name).iter();
    let header = sent.next();
    if sent.next().is_some() {
        let message = format!("the header `{name}` is there more than once");
        return Err(bad_request(HEADER_MISMATCH, message));
    }
    Ok(header)
}

/// The text of a header: as it stands, or in base64 behind the protocol's mark.
fn decoded(header: &HeaderValue) -> Option<Cow<'_, str>> {
    let text = header.to_str().ok()?.trim_matches([' ', '\t']);
    let marked = text
        .strip_prefix("=?base64?")
        .and_then(|it| it.strip_suffix("?="));
    let Some(coded) = marked else {
        return Some(text.into());
    };
    let bytes = STANDARD.decode(coded).ok()?;
    Some(String::from_utf8(bytes).ok()?.into())
}

/// Checks the headers that repeat arguments of a tool.
fn parameters(
    headers: &HeaderMap,
    tool: &Tool,
    params: Option<&RawValue>,
    is_marked: bool,
) -> Result<(), RpcError> {
    let mut arguments = None;
    let properties = tool
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    for (argument, schema) in properties.into_iter().flatten() {
        let Some(name) = schema.get(MARK).and_then(Value::as_str) else {
            continue;
        };
        let arguments = arguments.get_or_insert_with(|| arguments_of(params));
        let value = match arguments.get(argument) {
            Some(raw) => serde_json::from_str(raw.get()).map_err(|error| {
                let message = format!("the argument `{argument}` can't be read: {error}");
                bad_request(INVALID_PARAMS, message)
            })?,
            None => Value::Null,
        };
        let name = format!("{PARAMETER_PREFIX}{}", name.to_ascii_lowercase());
        // Whoever was shown no mark sends no header.
        if is_marked || headers.contains_key(&name) {
            parameter(headers, &name, &value)?;
        }
    }
    Ok(())
}

fn arguments_of(params: Option<&RawValue>) -> HashMap<String, &RawValue> {
    let params = params.and_then(members).unwrap_or_default();
    let arguments = params.get("arguments").and_then(|it| members(it));
    arguments.unwrap_or_default()
}

fn parameter(headers: &HeaderMap, name: &str, value: &Value) -> Result<(), RpcError> {
    let mismatch = |message: String| bad_request(HEADER_MISMATCH, message);
    let header = match (single(headers, name)?, value) {
        (None, Value::Null) => return Ok(()),
        (None, _) => return Err(mismatch(format!("the header `{name}` is missing"))),
        (Some(_), Value::Null) => {
            let message = format!("the header `{name}` repeats an argument that isn't there");
            return Err(mismatch(message));
        }
        (Some(header), _) => header,
    };
    let said =
        decoded(header).ok_or_else(|| mismatch(format!("the header `{name}` can't be decoded")))?;
    let same = match value {
        Value::String(text) => said == *text,
        Value::Bool(flag) => said == flag.to_string(),
        Value::Number(number) => same_number(&said, number),
        _ => false,
    };
    if same {
        Ok(())
    } else {
        Err(mismatch(format!(
            "the header `{name}` says something else than the body"
        )))
    }
}

/// Numbers are compared as numbers: `42.0` says the same as `42`. Whole numbers are compared digit by digit, since large
/// ones that differ are one number with a floating point.
#[expect(
    clippy::float_cmp,
    reason = "a number that is close says something else"
)]
fn same_number(said: &str, number: &serde_json::Number) -> bool {
    if said == number.to_string() {
        return true;
    }
    if let (Ok(said), Some(number)) = (said.parse::<i128>(), number.as_i128()) {
        return said == number;
    }
    let decimal = said
        .bytes()
        .all(|it| it.is_ascii_digit() || b"+-.eE".contains(&it));
    let said = said.parse::<f64>().ok().filter(|_| decimal);
    said.zip(number.as_f64())
        .is_some_and(|(said, number)| said == number)
}
