//! A well-formed call of 2026-07-28 under headers that say anything.
#![no_main]

use axum::http::{HeaderName, HeaderValue};
use clopen_mcp_fuzz::{Bridge, MODERN, encoded, in_base64, usual_headers};
use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};
use serde_json::{Value, json};

#[derive(Arbitrary, Debug)]
struct Input {
    id: Id,
    progress_token: Option<Id>,
    value: String,
    count: Option<Count>,
    flag: Option<bool>,
    /// A second `value` among the arguments, which a parser may read instead of the first.
    second_value: Option<String>,
    changes: Vec<(Header, Change)>,
}

#[derive(Arbitrary, Debug)]
enum Id {
    Number(i64),
    Text(String),
}

#[derive(Arbitrary, Debug)]
enum Count {
    Whole(i64),
    /// The runtime takes text that plainly stands for a number.
    Text(i64),
    Float(f64),
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Header {
    Version,
    Method,
    Name,
    Value,
    Count,
    Flag,
    Session,
    Origin,
    Accept,
}

#[derive(Arbitrary, Debug)]
enum Change {
    Leave,
    Remove,
    InBase64,
    Repeat,
    Text(String),
    Bytes(Vec<u8>),
    Number(f64),
    Near(i8),
}

impl Header {
    fn name(self) -> HeaderName {
        HeaderName::from_static(match self {
            Self::Version => "mcp-protocol-version",
            Self::Method => "mcp-method",
            Self::Name => "mcp-name",
            Self::Value => "mcp-param-value",
            Self::Count => "mcp-param-count",
            Self::Flag => "mcp-param-flag",
            Self::Session => "mcp-session-id",
            Self::Origin => "origin",
            Self::Accept => "accept",
        })
    }
}

impl Id {
    fn json(&self) -> Value {
        match self {
            Self::Number(number) => json!(number),
            Self::Text(text) => json!(text),
        }
    }
}

impl Count {
    fn json(&self) -> Value {
        match self {
            Self::Whole(number) => json!(number),
            Self::Text(number) => json!(number.to_string()),
            Self::Float(number) => json!(number),
        }
    }
}

/// The value as a header repeats it.
fn repeated(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(encoded(text)),
        other => Some(other.to_string()),
    }
}

fuzz_target!(|input: Input| {
    let mut arguments = vec![("value", json!(input.value))];
    arguments.extend(input.count.iter().map(|it| ("count", it.json())));
    arguments.extend(input.flag.map(|it| ("flag", json!(it))));
    arguments.extend(input.second_value.iter().map(|it| ("value", json!(it))));
    let is_plain = input.second_value.is_none()
        && matches!(input.count, None | Some(Count::Whole(_)))
        && input.changes.is_empty();
    let members = arguments
        .iter()
        .map(|(name, it)| format!("\"{name}\":{it}"));
    let members: Vec<String> = members.collect();
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(token) = &input.progress_token {
        meta["progressToken"] = token.json();
    }
    // Put together as text, since a map can't hold one name twice.
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"_meta":{meta},"name":"repeat","arguments":{{{}}}}}}}"#,
        input.id.json(),
        members.join(",")
    );

    let mut headers = usual_headers();
    let argument = |name: &str| arguments.iter().rfind(|(it, _)| *it == name);
    let of_argument = |name| argument(name).and_then(|(_, it)| repeated(it));
    let right = [
        (Header::Version, Some(MODERN.to_owned())),
        (Header::Method, Some("tools/call".to_owned())),
        (Header::Name, Some("repeat".to_owned())),
        (Header::Value, of_argument("value")),
        (Header::Count, of_argument("count")),
        (Header::Flag, of_argument("flag")),
    ];
    for (header, text) in &right {
        if let Some(text) = text {
            let value = HeaderValue::from_str(text).expect("it is encoded");
            headers.insert(header.name(), value);
        }
    }
    for (header, change) in &input.changes {
        let name = header.name();
        let right = right.iter().find(|(it, _)| it == header);
        let right = right.and_then(|(_, it)| it.as_deref()).unwrap_or_default();
        let value = match change {
            Change::Leave => continue,
            Change::Remove => {
                headers.remove(name);
                continue;
            }
            Change::InBase64 => in_base64(right).into_bytes(),
            Change::Repeat => {
                if let Ok(value) = HeaderValue::from_str(right) {
                    headers.append(name, value);
                }
                continue;
            }
            Change::Text(text) => encoded(text).into_bytes(),
            Change::Bytes(bytes) => bytes.clone(),
            Change::Number(number) => number.to_string().into_bytes(),
            Change::Near(by) => {
                let number = right.parse::<i64>().unwrap_or_default();
                number.wrapping_add((*by).into()).to_string().into_bytes()
            }
        };
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            headers.insert(name, value);
        }
    }
    let answer = Bridge::of_process().send("", &headers, body.as_bytes());
    let answer = answer.expect("the address is one");
    assert!(
        !is_plain || answer.ran.len() == 1,
        "headers that say what the body says are refused: {answer:?}"
    );
});
