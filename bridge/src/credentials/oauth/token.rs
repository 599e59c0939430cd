//! What a token endpoint answers, read as tolerantly as is safe.

use super::{egress::Answer, error::shown};
use crate::secret::Secret;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

/// How long a token may be.
const LONGEST: usize = 64 * 1024;
/// The longest time that is believed, in seconds: a year.
const LONGEST_LIFE: i64 = 366 * 24 * 60 * 60;

/// What was given.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    /// Until when it is good, in milliseconds since 1970, where that is known.
    pub(super) expires_at: Option<i64>,
}

/// Why nothing was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotGiven {
    /// It was refused, with a code.
    Refused { code: String, reason: String },
    /// It may be given another time.
    Transient(String),
    /// The answer can't be read.
    Unreadable(String),
}

impl NotGiven {
    pub(super) fn is(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == wanted)
    }

    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Refused { reason, .. } | Self::Transient(reason) | Self::Unreadable(reason) => {
                reason
            }
        }
    }
}

/// Reads an answer. Any status of success counts; an error counts whatever the status is.
pub(super) fn read(answer: &Answer, now: i64, told: &[&Secret]) -> Result<Given, NotGiven> {
    let fields = fields(answer);
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    if let Some(code) = text("error").filter(|it| !it.is_empty()) {
        return Err(refused(code, text("error_description"), told));
    }
    match answer.status {
        200..=299 => {}
        408 | 425 | 429 | 500.. => {
            let reason = format!("it answered with status {}", answer.status);
            return Err(NotGiven::Transient(reason));
        }
        status => {
            return Err(NotGiven::Refused {
                code: "status".to_owned(),
                reason: format!("it answered with status {status}"),
            });
        }
    }
    let unreadable = |what: &str| NotGiven::Unreadable(what.to_owned());
    let access = text("access_token").filter(|it| !it.is_empty());
    let access = access.ok_or_else(|| unreadable("its answer holds no `access_token`"))?;
    let refresh = text("refresh_token").filter(|it| !it.is_empty());
    if ![Some(access), refresh].into_iter().flatten().all(is_token) {
        return Err(unreadable("its token holds letters that no header may"));
    }
    if let Some(kind) = text("token_type")
        && !kind.eq_ignore_ascii_case("bearer")
    {
        let kind = shown(kind, told);
        return Err(unreadable(&format!(
            "its token is a `{kind}` and not a bearer"
        )));
    }
    let expires_at = match fields.get("expires_in").filter(|it| !it.is_null()) {
        Some(life) => {
            let life = seconds(life).ok_or_else(|| unreadable("its `expires_in` is no number"))?;
            Some(now.saturating_add(life * 1_000))
        }
        None => expiry_of_jwt(access),
    };
    Ok(Given {
        access: Secret::new(access),
        refresh: refresh.map(Secret::new),
        expires_at,
    })
}

fn refused(code: &str, description: Option<&str>, told: &[&Secret]) -> NotGiven {
    let shown_code = shown(code, told);
    let reason = match description.map(|it| shown(it, told)) {
        Some(description) if !description.is_empty() => format!("{description} ({shown_code})"),
        _ => shown_code,
    };
    match code {
        "temporarily_unavailable" | "server_error" | "slow_down" => NotGiven::Transient(reason),
        _ => NotGiven::Refused {
            code: code.to_owned(),
            reason,
        },
    }
}

/// Some servers answer with a form, whatever they call it.
fn fields(answer: &Answer) -> Map<String, Value> {
    if let Ok(Value::Object(fields)) = serde_json::from_slice(&answer.body) {
        return fields;
    }
    let is_form = answer.kind.contains("form-urlencoded") || answer.kind.contains("text/plain");
    if !is_form {
        return Map::new();
    }
    let pairs = form_urlencoded::parse(&answer.body);
    pairs
        .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
        .collect()
}

fn is_token(text: &str) -> bool {
    text.len() <= LONGEST && text.bytes().all(|it| it.is_ascii_graphic())
}

/// A number of seconds, also as digits in a text.
fn seconds(value: &Value) -> Option<i64> {
    let whole = match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let text = number.to_string();
            let (whole, _) = text.split_once('.')?;
            whole.parse().ok()
        }),
        Value::String(text) => {
            let text = text.trim();
            let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
            is_number.then(|| text.parse().unwrap_or(LONGEST_LIFE))
        }
        _ => None,
    };
    whole.map(|it| it.clamp(0, LONGEST_LIFE))
}

/// When a token that is a JWT says that it ends. It is only looked at to know when to ask for another.
fn expiry_of_jwt(token: &str) -> Option<i64> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = BASE64_URL_SAFE_NO_PAD
        .decode(claims.trim_end_matches('='))
        .ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let expires = claims.get("exp")?;
    let expires = expires.as_i64().or_else(|| {
        let text = expires.to_string();
        text.split_once('.')?.0.parse().ok()
    })?;
    expires.checked_mul(1_000)
}
