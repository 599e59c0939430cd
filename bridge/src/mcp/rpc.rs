//! JSON-RPC 2.0: what a body holds, and what an answer looks like.

use crate::skills::SkillError;
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json, value::RawValue};
use std::borrow::Cow;

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL_ERROR: i64 = -32603;
/// 2026-07-28: a header says something else than the body.
pub(super) const HEADER_MISMATCH: i64 = -32020;
/// 2026-07-28: the client can't do what the request needs.
pub(super) const MISSING_CAPABILITY: i64 = -32021;
/// 2026-07-28: a version that this server doesn't speak.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;
/// Up to 2025-11-25: no such resource.
pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;

/// What a body holds.
#[derive(Debug)]
pub(super) enum Incoming {
    One(Message),
    /// Several messages; only 2025-03-26 knows this.
    Batch(Vec<Result<Message, Refused>>),
}

#[derive(Debug)]
pub(super) enum Message {
    Request(Request),
    Notification(Notification),
    Answer(Answer),
}

/// A request that wants an answer.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: Box<RawValue>,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

/// A message that wants none.
#[derive(Debug)]
pub(super) struct Notification {
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

impl Notification {
    /// Returns the id of the request that it takes back, as it stands, if it takes one back.
    pub(super) fn taken_back(&self) -> Option<&str> {
        #[derive(Deserialize)]
        struct Cancelled<'a> {
            #[serde(borrow, rename = "requestId")]
            request_id: &'a RawValue,
        }
        if self.method != "notifications/cancelled" {
            return None;
        }
        let cancelled: Cancelled<'_> = serde_json::from_str(self.params.as_deref()?.get()).ok()?;
        Some(cancelled.request_id.get())
    }
}

/// A client's answer to a request of ours.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: Box<RawValue>,
    pub(super) outcome: Result<Value, Value>,
}

/// An error of the protocol.
#[derive(Clone, Debug)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Box<Value>>,
    /// The HTTP status that goes with it, where the era has one.
    pub(super) status: StatusCode,
}

/// A message that can't be understood, with its id as far as there is one.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) id: Option<Box<RawValue>>,
    pub(super) error: RpcError,
}

impl From<SkillError> for RpcError {
    fn from(error: SkillError) -> Self {
        let answer = Self::new(error.code().into(), error.to_string());
        match error.uri() {
            Some(uri) => answer.with_data(json!({ "uri": uri })),
            None => answer,
        }
    }
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status: StatusCode::OK,
        }
    }

    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        let message = format!("there is no method `{}`", shown(method));
        Self::new(METHOD_NOT_FOUND, message).with_status(StatusCode::NOT_FOUND)
    }

    pub(super) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }
}

/// A piece of foreign text as an error may repeat it.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 100;
    text.chars()
        .take(MOST)
        .flat_map(char::escape_debug)
        .collect()
}

/// A message with every member that any kind of message has.
#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// A member that is there, be it `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a body.
pub(super) fn parse(body: &[u8]) -> Result<Incoming, Refused> {
    let raw: &RawValue = serde_json::from_slice(body).map_err(|error| Refused {
        id: None,
        error: RpcError::new(PARSE_ERROR, format!("the body is not JSON: {error}"))
            .with_status(StatusCode::BAD_REQUEST),
    })?;
    if !raw.get().starts_with('[') {
        return message(raw).map(Incoming::One);
    }
    let items: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    if items.is_empty() {
        return Err(refused(None, "a batch holds at least one message"));
    }
    Ok(Incoming::Batch(items.into_iter().map(message).collect()))
}

fn refused(id: Option<&RawValue>, message: impl Into<String>) -> Refused {
    Refused {
        id: id.map(ToOwned::to_owned),
        error: RpcError::new(INVALID_REQUEST, message).with_status(StatusCode::BAD_REQUEST),
    }
}

fn message(raw: &RawValue) -> Result<Message, Refused> {
    let Ok(raw) = serde_json::from_str::<Raw<'_>>(raw.get()) else {
        return Err(refused(
            None,
            "the body is no JSON-RPC message: it must be an object",
        ));
    };
    let id = match raw.id {
        Some(id) if is_id(id) => Some(id),
        Some(_) => return Err(refused(None, "the `id` must be a string or a whole number")),
        None => None,
    };
    if raw.jsonrpc.as_deref() != Some("2.0") {
        return Err(refused(
            id,
            "the body is no JSON-RPC message: `jsonrpc` must be \"2.0\"",
        ));
    }
    let params = raw.params.filter(|it| it.get() != "null");
    if params.is_some_and(|it| !it.get().starts_with('{')) {
        let error = RpcError::invalid_params("`params` must be an object");
        return Err(Refused {
            id: id.map(ToOwned::to_owned),
            error: error.with_status(StatusCode::BAD_REQUEST),
        });
    }
    let params = params.map(ToOwned::to_owned);
    let method = raw
        .method
        .map(|it| serde_json::from_str::<String>(it.get()));
    match (method, id, raw.result, raw.error) {
        (Some(Ok(method)), Some(id), None, None) => Ok(Message::Request(Request {
            id: id.to_owned(),
            method,
            params,
        })),
        (Some(Ok(method)), None, None, None) => {
            Ok(Message::Notification(Notification { method, params }))
        }
        (None, Some(id), Some(result), None) => Ok(Message::Answer(Answer {
            id: id.to_owned(),
            outcome: Ok(value(result)),
        })),
        (None, Some(id), None, Some(error)) => Ok(Message::Answer(Answer {
            id: id.to_owned(),
            outcome: Err(value(error)),
        })),
        (Some(Err(_)), id, ..) => Err(refused(id, "the `method` must be a string")),
        (_, id, ..) => Err(refused(
            id,
            "the body is no JSON-RPC message: it needs a `method`, or an `id` with a `result` or an `error`",
        )),
    }
}

/// A string, or a number without fraction and exponent.
fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    let digits = text.strip_prefix('-').unwrap_or(text);
    text.starts_with('"') || (!digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()))
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Reads the parameters of a method; what doesn't fit is named.
pub(super) fn params<'p, T: Deserialize<'p>>(
    method: &str,
    params: Option<&'p RawValue>,
) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        RpcError::invalid_params(format!("the parameters of `{method}` don't fit: {error}"))
    })
}

/// Writes the answer to a request.
pub(super) fn answer(id: &RawValue, outcome: &Result<Value, RpcError>) -> Vec<u8> {
    match outcome {
        Ok(result) => {
            let mut bytes = Vec::with_capacity(256);
            bytes.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            bytes.extend_from_slice(id.get().as_bytes());
            bytes.extend_from_slice(b",\"result\":");
            serde_json::to_writer(&mut bytes, result).expect("a value is JSON");
            bytes.push(b'}');
            bytes
        }
        Err(error) => error_answer(Some(id), error),
    }
}

/// Writes an error; without an id where the request had none that could be read.
pub(super) fn error_answer(id: Option<&RawValue>, error: &RpcError) -> Vec<u8> {
    let mut body = json!({ "code": error.code, "message": error.message });
    if let Some(data) = &error.data {
        body["data"] = (**data).clone();
    }
    // The id goes back as it came: not every id that is JSON is a `Value`, such as half a surrogate pair.
    let id = id.map_or("null", RawValue::get);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{body}}}"#).into_bytes()
}

/// Writes a notification. Raw JSON among its parameters stays as it is.
pub(super) fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Written<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    let message = Written {
        jsonrpc: "2.0",
        method,
        params,
    };
    serde_json::to_vec(&message).expect("a message is JSON")
}

/// Writes a request of ours.
pub(super) fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    message.to_string().into_bytes()
}
