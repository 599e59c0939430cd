//! 2026-07-28: every request says everything, and its headers repeat some of it.

use super::UpstreamError;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, ops::RangeInclusive};

/// The revision of the protocol that has no sessions.
pub(super) const VERSION: &str = "2026-07-28";

/// The errors that came with this revision.
const OWN_ERRORS: RangeInclusive<i64> = -32022..=-32020;
/// The server doesn't speak the version.
const UNSUPPORTED_VERSION: i64 = -32022;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAMETER: &str = "mcp-param-";

/// The extension by which a call may become a task.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Returns the headers of a request that repeat what its body says.
pub(super) fn headers(method: &str, params: &RawValue, repeated: &[(String, String)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.extend(value(method).map(|it| (METHOD, it)));
    let name = name(method, params);
    headers.extend(name.and_then(|it| Some((NAME, value(&it)?))));
    for (name, text) in repeated {
        let name = HeaderName::try_from(format!("{PARAMETER}{name}"));
        headers.extend(name.ok().zip(value(text)));
    }
    headers
}

/// The parameter that says what the request is about.
fn name(method: &str, params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow, default)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        uri: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        task_id: Option<Cow<'a, str>>,
    }
    let read = || serde_json::from_str::<Params<'_>>(params.get()).ok();
    let name = match method {
        "tools/call" | "prompts/get" => read()?.name,
        "resources/read" => read()?.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => read()?.task_id,
        _ => None,
    };
    name.map(Cow::into_owned)
}

/// Writes a text as a header: as it stands, or in base64 behind the protocol's mark.
fn value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|it| matches!(it, b' '..=b'~'));
    let is_marked = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain && !is_marked && text.trim() == text {
        HeaderValue::from_str(text).ok()
    } else {
        HeaderValue::try_from(format!("=?base64?{}?=", STANDARD.encode(text))).ok()
    }
}

/// Says whether an error is one that only servers of this revision give.
pub(super) fn is_own_error(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Refused { code, .. } if OWN_ERRORS.contains(code))
}

/// What else a server offers that refuses a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// The very same, now that it has thought about it.
    Again,
    /// A version that has sessions.
    Sessions,
}

/// Returns what a server offers that refuses our version, if that is anything to us.
pub(super) fn offer(error: &UpstreamError) -> Option<Offer> {
    let UpstreamError::Refused {
        code: UNSUPPORTED_VERSION,
        data: Some(data),
        ..
    } = error
    else {
        return None;
    };
    let supported = data.get("supported")?.as_array()?.iter();
    let supported: Vec<&str> = supported.filter_map(Value::as_str).collect();
    if supported.contains(&VERSION) {
        return Some(Offer::Again);
    }
    // Dates compare as text.
    let has_sessions = supported.iter().any(|it| *it < VERSION);
    has_sessions.then_some(Offer::Sessions)
}

/// Says whether the answer to `server/discover` is one, and names our version.
pub(super) fn is_discovery(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovery {
        supported_versions: Vec<Value>,
    }
    let discovery = serde_json::from_str::<Discovery>(result.get());
    discovery.is_ok_and(|it| it.supported_versions.iter().any(|it| it == VERSION))
}

/// Returns the kind of a result, if it is none that a caller with these capabilities can take.
pub(super) fn unknown_kind(
    result: &RawValue,
    capabilities: &serde_json::Map<String, Value>,
) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind {
        #[serde(default)]
        result_type: Option<Value>,
    }
    // What is no object is none of our business here.
    let kind = serde_json::from_str::<Kind>(result.get())
        .ok()?
        .result_type?;
    let takes_tasks = || {
        let extensions = capabilities.get("extensions");
        extensions.is_some_and(|it| it.get(TASKS).is_some())
    };
    let is_known = match kind.as_str() {
        Some("complete" | "input_required") => true,
        Some("task") => takes_tasks(),
        _ => false,
    };
    (!is_known).then(|| kind.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(method: &str, params: &str, expected: &[(&str, &str)]) {
        let params = RawValue::from_string(params.to_owned()).expect("it is JSON");
        let headers = headers(method, &params, &[("Region".to_owned(), "ü".to_owned())]);
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, it)| (name.as_str(), it.to_str().expect("it is ASCII")))
            .filter(|it| *it != ("mcp-param-region", "=?base64?w7w=?="))
            .collect();
        assert_eq!(headers, expected);
    }

    #[test]
    fn headers_repeat_the_body() {
        check("tools/list", "{}", &[("mcp-method", "tools/list")]);
        check(
            "tools/call",
            r#"{"arguments":{"name":"x"},"name":"a b"}"#,
            &[("mcp-method", "tools/call"), ("mcp-name", "a b")],
        );
        check(
            "resources/read",
            r#"{"uri":" a"}"#,
            &[
                ("mcp-method", "resources/read"),
                ("mcp-name", "=?base64?IGE=?="),
            ],
        );
        check(
            "tasks/get",
            r#"{"taskId":"=?base64?YQ==?="}"#,
            &[
                ("mcp-method", "tasks/get"),
                ("mcp-name", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ],
        );
    }

    #[test]
    fn kinds_of_results_are_known() {
        let check = |result: &str, capabilities: Value, expected: Option<&str>| {
            let result = RawValue::from_string(result.to_owned()).expect("it is JSON");
            let capabilities = capabilities.as_object().cloned().unwrap_or_default();
            let kind = unknown_kind(&result, &capabilities);
            assert_eq!(kind.as_deref(), expected, "{result}");
        };
        check("{}", json!({}), None);
        check(r#"{"resultType":"complete"}"#, json!({}), None);
        check(r#"{"resultType":"input_required"}"#, json!({}), None);
        check(r#"{"resultType":7}"#, json!({}), Some("7"));
        check(r#"{"resultType":"task"}"#, json!({}), Some(r#""task""#));
        let tasks = json!({ "extensions": { TASKS: {} } });
        check(r#"{"resultType":"task"}"#, tasks, None);
    }
}
