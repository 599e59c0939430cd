//! JSON-RPC as servers write it: read with patience, written as it should be.

use super::{meta::Meta, talk::Refusal};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use std::fmt;

pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
/// How many messages of a batch are looked at.
const LARGEST_BATCH: usize = 256;

/// What a server sends.
#[derive(Debug)]
pub(super) enum Message {
    Answer(Answer),
    Request {
        id: Box<RawValue>,
        method: String,
        params: Option<Box<RawValue>>,
    },
    Notification {
        method: String,
        params: Option<Box<RawValue>>,
    },
}

#[derive(Debug)]
pub(super) struct Answer {
    /// The request that it answers; none if the server could not tell.
    pub(super) id: Option<u64>,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Done(Box<RawValue>),
    Refused(Failure),
    /// Neither a result nor an error.
    Nothing,
}

/// An error as the server wrote it.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Tells a value that is `null` from none.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads what a server sent: a message, or several in a batch. What is no JSON-RPC is left out.
pub(super) fn read(bytes: &[u8]) -> Vec<Message> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.starts_with('[') {
        let Ok(Batch(messages)) = serde_json::from_str(text) else {
            return Vec::new();
        };
        let messages = messages.into_iter();
        messages.filter_map(|it| one(it.get())).collect()
    } else {
        one(text).into_iter().collect()
    }
}

fn one(text: &str) -> Option<Message> {
    // A sequence would be taken for a struct.
    if !text.starts_with('{') {
        return None;
    }
    let wire: Wire<'_> = serde_json::from_str(text).ok()?;
    let params = wire.params.map(ToOwned::to_owned);
    match (wire.method, wire.id) {
        (Some(method), Some(id)) => Some(Message::Request {
            id: id.to_owned(),
            method,
            params,
        }),
        (Some(method), None) => Some(Message::Notification { method, params }),
        (None, id) => {
            let outcome = match (wire.error, wire.result) {
                (Some(error), _) => Outcome::Refused(failure(error)),
                (None, Some(result)) => Outcome::Done(result.to_owned()),
                (None, None) => Outcome::Nothing,
            };
            // JSON that is an object is not yet a message.
            if id.is_none() && matches!(outcome, Outcome::Nothing) {
                return None;
            }
            let id = id.and_then(|it| number(it.get()));
            Some(Message::Answer(Answer { id, outcome }))
        }
    }
}

/// Reads an id of ours, which a server may have made a text or a fraction.
pub(super) fn number(id: &str) -> Option<u64> {
    let id = id.trim().trim_matches('"').trim();
    let whole = match id.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|it| it == b'0') => whole,
        Some(_) => return None,
        None => id,
    };
    whole.parse().ok()
}

fn failure(error: &RawValue) -> Failure {
    #[derive(Deserialize)]
    struct Error<'a> {
        #[serde(borrow, default)]
        code: Option<&'a RawValue>,
        #[serde(borrow, default)]
        message: Option<&'a RawValue>,
        #[serde(borrow, default)]
        data: Option<&'a RawValue>,
    }

    let text = |value: &RawValue| {
        serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned())
    };
    let object = error.get().starts_with('{');
    match serde_json::from_str::<Error<'_>>(error.get()) {
        Ok(it) if object => Failure {
            code: it.code.map_or(INTERNAL_ERROR, |it| code(it.get())),
            message: it.message.map_or_else(|| text(error), text),
            data: it.data.map(ToOwned::to_owned),
        },
        _ => Failure {
            code: INTERNAL_ERROR,
            message: text(error),
            data: None,
        },
    }
}

fn code(text: &str) -> i64 {
    let text = text.trim_matches('"');
    let whole = text.strip_suffix(".0").unwrap_or(text);
    whole.parse().unwrap_or(INTERNAL_ERROR)
}

struct Batch<'a>(Vec<&'a RawValue>);

/// Stops to keep messages at [`LARGEST_BATCH`], since a message of 16 MiB may be millions of them.
impl<'de: 'a, 'a> Deserialize<'de> for Batch<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Messages;

        impl<'de> Visitor<'de> for Messages {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a batch")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut batch: A) -> Result<Self::Value, A::Error> {
                let mut messages = Vec::new();
                while messages.len() < LARGEST_BATCH {
                    match batch.next_element()? {
                        Some(message) => messages.push(message),
                        None => return Ok(messages),
                    }
                }
                while batch.next_element::<IgnoredAny>()?.is_some() {}
                Ok(messages)
            }
        }

        deserializer.deserialize_seq(Messages).map(Self)
    }
}

/// Writes a request. Its parameters are an object or nothing, into which `_meta` is put if there is one.
pub(super) fn request(
    id: u64,
    method: &str,
    params: &RawValue,
    meta: Option<&Meta<'_>>,
) -> Result<Vec<u8>, serde_json::Error> {
    // `null` is no value that `params` may have.
    let params = Some(params.get()).filter(|it| *it != "null");
    let mut text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"#).into_bytes();
    serde_json::to_writer(&mut text, method)?;
    if let Some(meta) = meta {
        let members = params.map_or("}", |it| it.strip_prefix('{').unwrap_or("}"));
        text.extend_from_slice(br#","params":{"_meta":"#);
        serde_json::to_writer(&mut text, meta)?;
        if !members.trim_start().starts_with('}') {
            text.push(b',');
        }
        text.extend_from_slice(members.as_bytes());
    } else if let Some(params) = params {
        text.extend_from_slice(br#","params":"#);
        text.extend_from_slice(params.as_bytes());
    }
    text.push(b'}');
    Ok(text)
}

pub(super) fn initialized() -> Vec<u8> {
    br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec()
}

pub(super) fn cancelled(id: u64) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"nobody waits for the answer any more"}}}}"#
    )
    .into_bytes()
}

/// Writes our answer to a request of the server.
pub(super) fn answer(id: &RawValue, outcome: &Result<Value, Refusal>) -> Vec<u8> {
    let outcome = match outcome {
        Ok(result) => format!(r#""result":{result}"#),
        Err(Refusal { code, message }) => {
            let message = Value::from(message.as_str());
            format!(r#""error":{{"code":{code},"message":{message}}}"#)
        }
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expect: &Expect) {
        let lines: Vec<String> = read(text.as_bytes())
            .into_iter()
            .map(|it| match it {
                Message::Answer(Answer { id, outcome }) => match outcome {
                    Outcome::Done(result) => format!("{id:?} done {result}"),
                    Outcome::Refused(it) => format!("{id:?} refused {} {}", it.code, it.message),
                    Outcome::Nothing => format!("{id:?} nothing"),
                },
                Message::Request { id, method, .. } => format!("{id} asks {method}"),
                Message::Notification { method, .. } => format!("says {method}"),
            })
            .collect();
        expect.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn jso_090_an_error_may_be_a_text() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#,
            &expect!["Some(1) refused -32603 boom"],
        );
        check(
            r#"{"id":1,"error":[7]}"#,
            &expect!["Some(1) refused -32603 [7]"],
        );
        check(
            r#"{"id":1,"error":{"code":"-32000","message":{"a":1}}}"#,
            &expect![[r#"Some(1) refused -32000 {"a":1}"#]],
        );
        check(
            r#"{"id":1,"error":{"code":1e99}}"#,
            &expect![[r#"Some(1) refused -32603 {"code":1e99}"#]],
        );
    }

    #[test]
    fn jso_091_a_notification_may_have_no_params() {
        check(
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            &expect!["says notifications/tools/list_changed"],
        );
    }

    #[test]
    fn jso_093_what_is_no_message_is_left_out() {
        for text in [
            "{oops",
            "",
            "hello",
            "{}",
            "[]",
            "[1,{}]",
            "1",
            "null",
            r#"["2.0",1]"#,
        ] {
            check(text, &expect![""]);
        }
        let deep = "[".repeat(200_000);
        check(&deep, &expect![""]);
        check(&format!(r#"{{"id":1,"result":{deep}"#), &expect![""]);
    }

    #[test]
    fn ids_are_known_however_they_are_written() {
        check(r#"{"id":7,"result":null}"#, &expect!["Some(7) done null"]);
        check(
            r#"{"id":"7","result":{},"error":null}"#,
            &expect!["Some(7) done {}"],
        );
        check(r#"{"id":7.0,"result":1}"#, &expect!["Some(7) done 1"]);
        check(r#"{"id":{},"result":1}"#, &expect!["None done 1"]);
        check(r#"{"id":-7,"result":1}"#, &expect!["None done 1"]);
        check(r#"{"id":7}"#, &expect!["Some(7) nothing"]);
    }

    #[test]
    fn a_batch_is_read_to_a_limit() {
        check(
            "\u{feff} [{\"id\":1,\"result\":1}, 5, {\"id\":\"a\",\"method\":\"ping\"}]\r\n",
            &expect![[r#"
                Some(1) done 1
                "a" asks ping"#]],
        );
        let many = format!("[{}1]", r#"{"method":"a"},"#.repeat(10_000));
        assert_eq!(read(many.as_bytes()).len(), LARGEST_BATCH);
    }

    #[test]
    fn a_result_stays_as_it_came() {
        check(
            r#"{"id":1,"result":{"n":9007199254740993123,"n":1.0,"s":"\ud800"}}"#,
            &expect![[r#"Some(1) done {"n":9007199254740993123,"n":1.0,"s":"\ud800"}"#]],
        );
    }

    #[test]
    fn meta_is_put_into_the_parameters() {
        let rest = serde_json::Map::new();
        let meta = Meta {
            token: Some(7),
            rest: &rest,
            said: None,
        };
        let write = |params: &str| {
            let params = RawValue::from_string(params.to_owned()).expect("it is JSON");
            let text = request(7, "a", &params, Some(&meta)).expect("it can be written");
            String::from_utf8(text).expect("it is UTF-8")
        };
        let start = r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"_meta":{"progressToken":7}"#;
        assert_eq!(write("null"), format!("{start}}}}}"));
        assert_eq!(write("{ }"), format!("{start} }}}}"));
        assert_eq!(write(r#"{"n":1.0}"#), format!(r#"{start},"n":1.0}}}}"#));
    }
}
