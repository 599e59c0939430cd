//! The server `api-gateway`: HTTP services that an operator has named, and nothing else on the network.
//!
//! The operator says in the environment what there is; the model chooses among that, by name and by path. Whatever it
//! writes into a path, the request goes to the origin and below the base path of the service, or is not sent. Tokens
//! are kept in a type that can't be printed, and taken out of what services send back.

mod path;
mod services;

use self::{
    path::below,
    services::{Service, Token, json_without_token, services, without_token},
};
use crate::http::{self, Beginning, ClientError, Clients};
use reqwest::{
    StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, LOCATION},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};
use thiserror::Error;
use tool_runtime::{Environment, Json, tool_server};

/// What the variables of this server begin with: `API_GATEWAY_<NAME>_URL`, `…_TOKEN` and `…_METHODS`.
pub const VARIABLE_PREFIX: &str = "API_GATEWAY_";

const TIMEOUT: Duration = Duration::from_secs(20);
/// How much of an answer a model gets.
const MAX_BODY: usize = 64 * 1024;
/// How much of an answer that is an error.
const MAX_COMPLAINT: usize = 2000;

/// Calls the services of an operator.
#[derive(Debug)]
pub struct ApiGateway {
    clients: Clients,
    services: BTreeMap<String, Service>,
}

/// Calls to the HTTP services that are set up for you.
#[tool_server(name = "api-gateway", version = "1.0.0", start)]
impl ApiGateway {
    /// Makes the server. Every `API_GATEWAY_<NAME>_URL` adds the service `<name>`.
    pub fn start(environment: &Environment) -> Result<Self, StartError> {
        Ok(Self {
            clients: Clients::new(TIMEOUT)?,
            services: services(environment)?,
        })
    }

    /// List the services that `call_service` can call, and what each allows.
    #[tool(title = "List services", read_only, idempotent, open_world = false)]
    pub fn list_services(&self) -> Json<Services> {
        let services = self.services.iter().map(|(name, service)| ServiceInfo {
            name: name.clone(),
            url: service.base.to_string(),
            methods: service.methods.iter().copied().collect(),
        });
        let hint = self.services.is_empty().then(|| {
            format!(
                "no service is set up; the operator adds one with the variable `{VARIABLE_PREFIX}<NAME>_URL`"
            )
        });
        Json(Services {
            services: services.collect(),
            hint,
        })
    }

    /// Call one HTTP service and get its answer. Call `list_services` first to see the names and allowed methods.
    #[tool(
        title = "Call a service",
        read_only = false,
        destructive,
        open_world,
        timeout = "30s"
    )]
    pub async fn call_service(
        &self,
        /// Name of the service, as `list_services` spells it.
        #[arg(length = 1..=100, example = "orders")]
        service: String,
        /// What to do there; the service must allow it.
        #[arg(default = Method::Get)]
        method: Method,
        /// Path below the URL of the service, beginning with `/`, without the query.
        #[arg(length = 1..=2000, example = "/v1/orders/17")]
        path: String,
        /// The query, by name.
        #[arg(default = BTreeMap::new())]
        query: BTreeMap<String, Scalar>,
        /// JSON to send as the body.
        body: Option<Value>,
    ) -> Result<Json<Answer>, CallError> {
        let Some(found) = self.services.get(&service) else {
            return Err(CallError::Unknown {
                service,
                known: self.services.keys().cloned().collect(),
            });
        };
        found.check(&service, method, body.is_some())?;
        let mut url = below(&found.base, &path).map_err(|reason| CallError::BadPath {
            path: path.clone(),
            reason,
        })?;
        for (name, value) in &query {
            url.query_pairs_mut().append_pair(name, &value.to_string());
        }
        self.call(
            found,
            Asked {
                service,
                method,
                path,
            },
            url,
            body,
        )
        .await
        .map(Json)
    }
}

/// What was asked for, for errors.
#[derive(Debug)]
pub struct Asked {
    service: String,
    method: Method,
    path: String,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{} {}` of `{}`", self.method, self.path, self.service)
    }
}

impl ApiGateway {
    async fn call(
        &self,
        service: &Service,
        asked: Asked,
        url: Url,
        body: Option<Value>,
    ) -> Result<Answer, CallError> {
        let client = self.clients.to(&url);
        let mut request = client.request(asked.method.into(), url);
        if let Some(token) = &service.token {
            request = request.header(AUTHORIZATION, token.header.clone());
        }
        if let Some(body) = &body {
            request = request.json(body);
        }

        // A token that is cut in two at the limit would not be found, so that much more is read.
        let token = service.token.as_ref();
        let to_read = MAX_BODY + token.map_or(0, |it| it.text.len());
        let answered = async {
            let mut response = request.send().await?;
            let beginning = http::read_up_to(&mut response, to_read).await?;
            Ok((response, beginning))
        };
        let (response, beginning) = match answered.await {
            Ok(answered) => answered,
            Err(error) => {
                let reason = http::reason(&error);
                return Err(if error.is_connect() {
                    CallError::Unreachable { asked, reason }
                } else {
                    CallError::NoAnswer { asked, reason }
                });
            }
        };

        let status = response.status();
        let header = |name| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(without_token(value, token))
        };
        let content_type: Option<String> = header(CONTENT_TYPE);
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            return Err(CallError::Redirected {
                asked,
                status,
                location: header(LOCATION).unwrap_or_else(|| "nowhere".to_owned()),
            });
        }
        let (body, truncated) = read(beginning, content_type.as_deref(), token);
        if status.is_client_error() || status.is_server_error() {
            return Err(CallError::Failed {
                advice: advice(status, &asked.service, token.is_some()),
                asked,
                status,
                body: complaint(&body),
            });
        }
        Ok(Answer {
            status: status.as_u16(),
            content_type,
            body,
            truncated,
        })
    }
}

/// An HTTP method.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Read.
    Get,
    /// Read only the headers.
    Head,
    /// Create, or do.
    Post,
    /// Replace.
    Put,
    /// Change.
    Patch,
    /// Remove.
    Delete,
}

impl Method {
    const ALL: [Self; 6] = [
        Self::Get,
        Self::Head,
        Self::Post,
        Self::Put,
        Self::Patch,
        Self::Delete,
    ];
}

impl From<Method> for reqwest::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Head => Self::HEAD,
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Delete => Self::DELETE,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(reqwest::Method::from(*self).as_str())
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        Self::ALL
            .into_iter()
            .find(|it| it.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownMethod(text.to_owned()))
    }
}

/// A word that is no method.
#[derive(Debug, Error)]
#[error("`{0}` is no method; use {methods}", methods = list(&Method::ALL))]
pub struct UnknownMethod(String);

/// A value in a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// Text.
    Text(String),
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(serde_json::Number),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(it) => f.write_str(it),
            Self::Bool(it) => it.fmt(f),
            Self::Number(it) => it.fmt(f),
        }
    }
}

/// The services that can be called.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Services {
    /// The services, by name.
    pub services: Vec<ServiceInfo>,
    /// What to do where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What a caller may know about a service.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServiceInfo {
    /// Its name.
    pub name: String,
    /// Where its paths begin.
    pub url: String,
    /// The methods that it allows.
    pub methods: Vec<Method>,
}

/// What a service answered.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The type of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The body: JSON as it is, anything else as text.
    pub body: Value,
    /// Whether the body is longer than what is here.
    pub truncated: bool,
}

/// Makes a body readable and takes the token out, should the service have sent it back.
fn read(beginning: Beginning, content_type: Option<&str>, token: Option<&Token>) -> (Value, bool) {
    let Beginning { bytes, truncated } = beginning;
    let truncated = truncated || bytes.len() > MAX_BODY;
    if bytes.is_empty() {
        return (Value::Null, false);
    }
    if !truncated
        && is_json(content_type)
        && let Ok(json) = serde_json::from_slice(&bytes)
    {
        return (json_without_token(json, token), false);
    }
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // A character may be cut in two at the end of what was read.
        Err(error) if truncated && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return ("(the body is not text, and left out)".into(), truncated),
    };
    let mut text = without_token(text, token);
    text.truncate(text.floor_char_boundary(MAX_BODY));
    (text.into(), truncated)
}

fn is_json(content_type: Option<&str>) -> bool {
    let essence = content_type
        .and_then(|it| it.split(';').next())
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

/// Returns the first part of a body that tells of an error, with a colon before it, or nothing.
fn complaint(body: &Value) -> String {
    let text = match body {
        Value::Null => return String::new(),
        Value::String(text) => text.clone(),
        json => json.to_string(),
    };
    let end = text.floor_char_boundary(MAX_COMPLAINT);
    let more = if end < text.len() { " …" } else { "" };
    format!(": {}{more}", text[..end].trim_end())
}

fn advice(status: StatusCode, service: &str, has_token: bool) -> String {
    let token = || format!("{VARIABLE_PREFIX}{}_TOKEN", service.to_ascii_uppercase());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if has_token => {
            format!("ask the operator to check `{}`", token())
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!("ask the operator to set `{}`", token())
        }
        StatusCode::NOT_FOUND => "check the path".to_owned(),
        StatusCode::TOO_MANY_REQUESTS => "try again in a minute".to_owned(),
        _ if status.is_server_error() => "try again in a minute".to_owned(),
        _ => "check the path, the query and the body".to_owned(),
    }
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    let quoted: Vec<String> = items.iter().map(|it| format!("`{it}`")).collect();
    quoted.join(", ")
}

/// Why the server can't start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A base URL is none.
    #[error("`{variable}` is not a base URL like `https://api.example.com/v1`: {reason}")]
    InvalidUrl {
        /// The variable.
        variable: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A token can't be sent.
    #[error("`{variable}` holds characters that can't be in an HTTP header")]
    InvalidToken {
        /// The variable.
        variable: String,
    },
    /// A list of methods has something else in it.
    #[error("`{variable}` must be a list like `GET,POST`")]
    InvalidMethods {
        /// The variable.
        variable: String,
        /// What is wrong with it.
        source: UnknownMethod,
    },
    /// A setting is about a service that has no URL.
    #[error("`{variable}` is set, but `{missing}` is not")]
    NoUrl {
        /// The variable.
        variable: String,
        /// The variable that it needs.
        missing: String,
    },
    /// There is no HTTP client.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Why a service gave no answer.
#[derive(Debug, Error)]
pub enum CallError {
    /// No service has that name.
    #[error("there is no service `{service}`; {}", what_there_is(.known))]
    Unknown {
        /// The name that was asked for.
        service: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The operator does not allow it.
    #[error("`{service}` does not allow `{method}`, only {}", list(.allowed))]
    MethodNotAllowed {
        /// Name of the service.
        service: String,
        /// The method that was asked for.
        method: Method,
        /// The methods that are allowed.
        allowed: Vec<Method>,
    },
    /// The method has no body.
    #[error("`{method}` has no body; leave `body` out, or use another method")]
    BodyNotAllowed {
        /// The method that was asked for.
        method: Method,
    },
    /// The path is none below the service.
    #[error("the path `{}` can't be used: {reason}; nothing was sent", .path.escape_debug())]
    BadPath {
        /// The path that was asked for.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No connection.
    #[error("{asked} was not sent, the service can't be reached: {reason}; try again in a minute")]
    Unreachable {
        /// What was asked for.
        asked: Asked,
        /// What went wrong.
        reason: String,
    },
    /// A connection that broke, or no answer in time.
    #[error("{asked} gave no answer: {reason}; it may have been carried out all the same")]
    NoAnswer {
        /// What was asked for.
        asked: Asked,
        /// What went wrong.
        reason: String,
    },
    /// An answer that points elsewhere.
    #[error(
        "{asked} was answered with {status} to `{location}`, and redirects are not followed; call the path that it leads to, if that is part of the service"
    )]
    Redirected {
        /// What was asked for.
        asked: Asked,
        /// The HTTP status.
        status: StatusCode,
        /// Where it points.
        location: String,
    },
    /// An answer that is an error.
    #[error("{asked} was answered with {status}{body}\n({advice})")]
    Failed {
        /// What was asked for.
        asked: Asked,
        /// The HTTP status.
        status: StatusCode,
        /// The first part of the body, with a colon before it, or nothing.
        body: String,
        /// What to do.
        advice: String,
    },
}

fn what_there_is(known: &[String]) -> String {
    if known.is_empty() {
        "no service is set up".to_owned()
    } else {
        format!("there is {}", list(known))
    }
}
