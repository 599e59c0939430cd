//! Who we are to an authorization server: a client that a person has registered, a document of ours, or a client that is
//! registered as it is needed.

use super::{
    discovery::Authorization,
    egress::Egress,
    error::{OAuthError, shown},
};
use crate::secret::Secret;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::{
    Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

/// What we are called where people are asked whether they trust us.
const NAME: &str = "clopen-mcp";

/// A client, as it is kept: sealed.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// How the secret is shown.
    pub(super) method: Method,
    pub(super) origin: Origin,
    /// When the secret ends, in milliseconds since 1970; never if that is not said.
    pub(super) expires_at: Option<i64>,
}

/// How a client shows its secret.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) enum Method {
    None,
    Basic,
    Post,
}

/// How a client came to be one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) enum Origin {
    ByHand,
    Document,
    Registered,
}

impl Client {
    /// Makes one of what a person says.
    pub(super) fn by_hand(
        id: &str,
        secret: Option<&Secret>,
        authorization: &Authorization,
    ) -> Self {
        Self {
            id: id.to_owned(),
            secret: secret.map(|it| it.expose().to_owned()),
            method: match secret {
                Some(_) => usual_method(authorization),
                None => Method::None,
            },
            origin: Origin::ByHand,
            expires_at: None,
        }
    }

    /// Makes one whose id is the address of a document.
    pub(super) fn of_document(address: &str) -> Self {
        Self {
            id: address.to_owned(),
            secret: None,
            method: Method::None,
            origin: Origin::Document,
            expires_at: None,
        }
    }

    pub(super) fn secret(&self) -> Option<Secret> {
        self.secret.as_deref().map(Secret::new)
    }

    /// Adds who asks to a request for a token.
    pub(super) fn sign(&self, form: &mut Vec<(&'static str, String)>, headers: &mut HeaderMap) {
        let secret = self.secret.as_deref().unwrap_or_default();
        match self.method {
            Method::Basic => {
                let encoded = |it: &str| -> String {
                    form_urlencoded::byte_serialize(it.as_bytes()).collect()
                };
                let pair = format!("{}:{}", encoded(&self.id), encoded(secret));
                let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
                if let Ok(mut value) = HeaderValue::from_str(&value) {
                    value.set_sensitive(true);
                    headers.insert(AUTHORIZATION, value);
                }
            }
            Method::Post => {
                form.push(("client_id", self.id.clone()));
                form.push(("client_secret", secret.to_owned()));
            }
            Method::None => form.push(("client_id", self.id.clone())),
        }
    }
}

fn usual_method(authorization: &Authorization) -> Method {
    let offers = |it: &str| authorization.methods.iter().any(|method| method == it);
    if offers("client_secret_post") && !offers("client_secret_basic") {
        Method::Post
    } else {
        Method::Basic
    }
}

/// The metadata document of this client, for authorization servers that take the address of one as its id.
pub(super) fn document(address: &str, redirect: &str) -> Value {
    let mut document = metadata(redirect, &[]);
    document["client_id"] = address.into();
    document
}

fn metadata(redirect: &str, scopes: &[String]) -> Value {
    // A page of the internet is no native application to an authorization server.
    let is_web = redirect.starts_with("https://");
    let mut metadata = json!({
        "client_name": NAME,
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": if is_web { "web" } else { "native" },
    });
    if !scopes.is_empty() {
        metadata["scope"] = scopes.join(" ").into();
    }
    metadata
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
    /// In seconds since 1970, or 0 for never.
    client_secret_expires_at: Option<Number>,
}

/// Registers a client.
pub(super) async fn register(
    egress: &Egress,
    authorization: &Authorization,
    endpoint: &str,
    redirect: &str,
    scopes: &[String],
) -> Result<Client, OAuthError> {
    let issuer = shown(&authorization.issuer, &[]);
    let refused = |reason: String| OAuthError::Registration {
        issuer: issuer.clone(),
        redirect: redirect.to_owned(),
        reason,
    };
    let url =
        Url::parse(endpoint).map_err(|_| refused("its endpoint has no address".to_owned()))?;
    let json = HeaderValue::from_static("application/json");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, json.clone()), (ACCEPT, json)]);
    let body = metadata(redirect, scopes).to_string().into_bytes();
    let answer = egress.post(&url, headers, body).await;
    let answer = answer.map_err(|source| OAuthError::Request {
        what: format!("register a client with `{issuer}`"),
        source,
    })?;
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if !answer.is_success() || said.get("error").is_some_and(|it| !it.is_null()) {
        let text = |name: &str| said.get(name).and_then(Value::as_str);
        let words = [text("error_description"), text("error")];
        let words: Vec<String> = words
            .into_iter()
            .flatten()
            .map(|it| shown(it, &[]))
            .collect();
        return Err(refused(if words.is_empty() {
            format!("it answered with status {}", answer.status)
        } else {
            words.join("; ")
        }));
    }
    let registered: Registered = serde_json::from_value(said)
        .map_err(|_| refused("its answer holds no `client_id`".to_owned()))?;
    let secret = registered.client_secret.filter(|it| !it.is_empty());
    let method = match (registered.token_endpoint_auth_method.as_deref(), &secret) {
        (_, None) | (Some("none"), _) => Method::None,
        (Some("client_secret_post"), _) => Method::Post,
        (Some("client_secret_basic"), _) => Method::Basic,
        _ => usual_method(authorization),
    };
    let expires = registered.client_secret_expires_at;
    let expires = expires.and_then(|it| it.as_i64()).filter(|it| *it > 0);
    Ok(Client {
        id: registered.client_id,
        secret,
        method,
        origin: Origin::Registered,
        expires_at: expires.map(|it| it.saturating_mul(1_000)),
    })
}
