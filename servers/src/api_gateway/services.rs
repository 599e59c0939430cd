//! The services that an operator has named in the environment, and their tokens.

use super::{CallError, Method, StartError, VARIABLE_PREFIX};
use crate::http::{self, BaseUrlError};
use reqwest::{Url, header::HeaderValue};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};
use tool_runtime::Environment;

/// Reads the services from the environment.
pub(super) fn services(environment: &Environment) -> Result<BTreeMap<String, Service>, StartError> {
    let settings = |suffix: &'static str| {
        environment.iter().filter_map(move |(variable, value)| {
            let name = variable
                .strip_prefix(VARIABLE_PREFIX)?
                .strip_suffix(suffix)?;
            (!name.is_empty() && !value.is_empty()).then_some((variable, name, value))
        })
    };

    let mut services = BTreeMap::new();
    for (variable, name, value) in settings("_URL") {
        let base = http::base_url(value).map_err(|error| StartError::InvalidUrl {
            variable: variable.to_owned(),
            reason: match error {
                BaseUrlError::HoldsSecrets => format!("{error}; use the variable `…_TOKEN`"),
                _ => error.to_string(),
            },
        })?;
        let service = Service {
            base,
            token: None,
            methods: BTreeSet::from([Method::Get]),
        };
        services.insert(name.to_ascii_lowercase(), service);
    }
    for (variable, name, value) in settings("_TOKEN") {
        let token = Token::new(value).ok_or_else(|| StartError::InvalidToken {
            variable: variable.to_owned(),
        })?;
        service_of(&mut services, variable, name)?.token = Some(token);
    }
    for (variable, name, value) in settings("_METHODS") {
        let methods = value
            .split(',')
            .map(|it| it.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(|source| StartError::InvalidMethods {
                variable: variable.to_owned(),
                source,
            })?;
        service_of(&mut services, variable, name)?.methods = methods;
    }
    Ok(services)
}

fn service_of<'a>(
    services: &'a mut BTreeMap<String, Service>,
    variable: &str,
    name: &str,
) -> Result<&'a mut Service, StartError> {
    services
        .get_mut(&name.to_ascii_lowercase())
        .ok_or_else(|| StartError::NoUrl {
            variable: variable.to_owned(),
            missing: format!("{VARIABLE_PREFIX}{name}_URL"),
        })
}

/// A service that can be called.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) base: Url,
    pub(super) token: Option<Token>,
    pub(super) methods: BTreeSet<Method>,
}

impl Service {
    pub(super) fn check(
        &self,
        name: &str,
        method: Method,
        has_body: bool,
    ) -> Result<(), CallError> {
        if !self.methods.contains(&method) {
            return Err(CallError::MethodNotAllowed {
                service: name.to_owned(),
                method,
                allowed: self.methods.iter().copied().collect(),
            });
        }
        if has_body && matches!(method, Method::Get | Method::Head) {
            return Err(CallError::BodyNotAllowed { method });
        }
        Ok(())
    }
}

/// A bearer token. Prints as `Token(…)`.
pub(super) struct Token {
    pub(super) text: String,
    pub(super) header: HeaderValue,
}

impl Token {
    fn new(text: &str) -> Option<Self> {
        let mut header = HeaderValue::from_str(&format!("Bearer {text}")).ok()?;
        header.set_sensitive(true);
        Some(Self {
            text: text.to_owned(),
            header,
        })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

pub(super) fn without_token(text: &str, token: Option<&Token>) -> String {
    match token {
        Some(token) => text.replace(&token.text, "(token)"),
        None => text.to_owned(),
    }
}

pub(super) fn json_without_token(json: Value, token: Option<&Token>) -> Value {
    if token.is_none() {
        return json;
    }
    match json {
        Value::String(it) => without_token(&it, token).into(),
        Value::Array(items) => items
            .into_iter()
            .map(|it| json_without_token(it, token))
            .collect(),
        Value::Object(entries) => entries
            .into_iter()
            .map(|(name, it)| (without_token(&name, token), json_without_token(it, token)))
            .collect(),
        other => other,
    }
}
