//! Where one signs in to a server: its own metadata, then those of its authorization server.

use super::{
    challenge::{Challenge, scopes},
    egress::{Egress, EgressError, place},
    error::{OAuthError, shown},
};
use reqwest::{
    Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// How many of a server's authorization servers are tried.
const MOST_ISSUERS: usize = 3;

/// The scope for tokens that outlive a visit.
pub(super) const OFFLINE: &str = "offline_access";

/// Where one signs in to a server, and what for.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// What the token is to be for, as the server calls itself.
    pub(super) resource: String,
    pub(super) authorization: Authorization,
    /// What is asked for unless somebody says otherwise: what the challenge says, or else what the metadata do.
    pub(super) scopes: Vec<String>,
}

/// An authorization server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Authorization {
    pub(super) issuer: String,
    pub(super) authorize: String,
    pub(super) token: String,
    pub(super) register: Option<String>,
    pub(super) revoke: Option<String>,
    /// The ways in which a client shows its secret.
    pub(super) methods: Vec<String>,
    pub(super) takes_documents: bool,
    /// Whether its answers say who it is.
    pub(super) names_itself: bool,
    /// Whether there is a scope for tokens that outlive a visit.
    pub(super) offers_offline: bool,
}

/// What a server says of itself.
struct Resource {
    name: Option<String>,
    issuers: Vec<String>,
    scopes: Vec<String>,
}

/// Finds out where one signs in to a server. `headers` are what every request to it carries.
pub(super) async fn find(
    egress: &Egress,
    server: &str,
    url: &Url,
    headers: &HeaderMap,
) -> Result<Found, OAuthError> {
    let mut search = Search {
        egress,
        server,
        url,
        headers,
        failed: None,
    };
    let challenge = search.challenge().await?;
    let told = challenge.clone().unwrap_or_default();
    let resource = search.resource(&told).await?;
    let supported = resource.as_ref().map(|it| it.scopes.clone());
    let mut wanted = scopes(told.scope.as_deref());
    if wanted.is_empty() {
        wanted = supported.unwrap_or_default();
    }
    let authorization = match &resource {
        Some(resource) => search.of_issuers(&resource.issuers).await?,
        None => search.of_host(challenge.is_some()).await?,
    };
    let name = resource.and_then(|it| it.name);
    Ok(Found {
        resource: name.unwrap_or_else(|| own_name(url)),
        authorization,
        scopes: wanted,
    })
}

/// What a server is called that doesn't call itself anything.
fn own_name(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    let text = url.to_string();
    match text.strip_suffix('/') {
        Some(without) if url.path() == "/" && url.query().is_none() => without.to_owned(),
        _ => text,
    }
}

struct Search<'a> {
    egress: &'a Egress,
    server: &'a str,
    url: &'a Url,
    headers: &'a HeaderMap,
    /// What went wrong on the way, for the case that nothing else is found.
    failed: Option<OAuthError>,
}

impl Search<'_> {
    /// Asks the server something without a token; `None` if it doesn't want one.
    async fn challenge(&self) -> Result<Option<Challenge>, OAuthError> {
        let question = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "clopen-mcp", "version": env!("CARGO_PKG_VERSION") },
            },
        });
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accepted);
        let question = question.to_string().into_bytes();
        let answer = self.egress.post(self.url, headers, question).await;
        let answer = answer.map_err(|source| OAuthError::Request {
            what: format!("ask `{}` where to sign in", self.server),
            source,
        })?;
        let wants = matches!(answer.status, 401 | 403);
        Ok(wants.then(|| Challenge::read(answer.challenge.as_deref().unwrap_or_default())))
    }

    /// Finds the metadata of the server: where its challenge says, at its own path, at the root.
    async fn resource(&mut self, challenge: &Challenge) -> Result<Option<Resource>, OAuthError> {
        let told = challenge.resource_metadata.as_deref();
        let mut places: Vec<Url> = told
            .and_then(|it| Url::parse(it).ok())
            .into_iter()
            .collect();
        let path = self.url.path().trim_end_matches('/');
        for path in [path, ""] {
            let place = at(
                self.url,
                &format!("/.well-known/oauth-protected-resource{path}"),
            );
            if !places.contains(&place) {
                places.push(place);
            }
        }
        for place in places {
            let Some(document) = self.document(&place).await else {
                continue;
            };
            let issuers = texts(&document, "authorization_servers");
            let issuers: Vec<String> = issuers.into_iter().take(MOST_ISSUERS).collect();
            if issuers.is_empty() {
                continue;
            }
            let resource = document.get("resource").and_then(Value::as_str);
            if let Some(resource) = resource
                && !self.is_about(resource)
            {
                return Err(OAuthError::Resource {
                    server: self.server.to_owned(),
                    found: shown(resource, &[]),
                });
            }
            let supported = texts(&document, "scopes_supported");
            return Ok(Some(Resource {
                name: resource.map(str::to_owned),
                issuers,
                scopes: scopes(supported.iter().map(String::as_str)),
            }));
        }
        Ok(None)
    }

    /// Whether what a document is about is the server, or its path is below.
    fn is_about(&self, resource: &str) -> bool {
        let Ok(resource) = Url::parse(resource) else {
            return false;
        };
        let (above, own) = (resource.path().trim_end_matches('/'), self.url.path());
        let rest = own.strip_prefix(above);
        let is_below = rest.is_some_and(|it| it.is_empty() || it.starts_with('/'));
        resource.origin() == self.url.origin() && is_below
    }

    /// Takes the first of the authorization servers that a server names which can be used.
    async fn of_issuers(&mut self, issuers: &[String]) -> Result<Authorization, OAuthError> {
        for issuer in issuers {
            let Ok(url) = Url::parse(issuer) else {
                continue;
            };
            for place in places_of(&url) {
                let Some(document) = self.document(&place).await else {
                    continue;
                };
                let found = text(&document, "issuer").unwrap_or_default();
                if found == *issuer {
                    return authorization(issuer, &document);
                }
                self.failed.get_or_insert(OAuthError::Issuer {
                    expected: shown(issuer, &[]),
                    found: shown(&found, &[]),
                });
            }
        }
        Err(self.nothing())
    }

    /// Servers of 2025-03-26 are their own authorization servers, at the root of their host; those without metadata have
    /// what they need at the usual places.
    async fn of_host(&mut self, wants_token: bool) -> Result<Authorization, OAuthError> {
        let root = at(self.url, "/");
        let own = root.origin().ascii_serialization();
        for place in places_of(&root) {
            let Some(document) = self.document(&place).await else {
                continue;
            };
            let found = text(&document, "issuer").unwrap_or_default();
            if found.trim_end_matches('/') == own {
                return authorization(&found, &document);
            }
            self.failed.get_or_insert(OAuthError::Issuer {
                expected: own.clone(),
                found: shown(&found, &[]),
            });
        }
        if !wants_token || self.failed.is_some() {
            return Err(self.nothing());
        }
        Ok(Authorization {
            issuer: own,
            authorize: at(self.url, "/authorize").to_string(),
            token: at(self.url, "/token").to_string(),
            register: Some(at(self.url, "/register").to_string()),
            revoke: None,
            methods: Vec::new(),
            takes_documents: false,
            names_itself: false,
            offers_offline: false,
        })
    }

    fn nothing(&mut self) -> OAuthError {
        self.failed
            .take()
            .unwrap_or_else(|| OAuthError::NoMetadata {
                server: self.server.to_owned(),
            })
    }

    /// Asks for a document; `None` if there is none, or not now, which is remembered.
    async fn document(&mut self, url: &Url) -> Option<Map<String, Value>> {
        let headers = if url.origin() == self.url.origin() {
            self.headers.clone()
        } else {
            HeaderMap::new()
        };
        let failed = match self.egress.get(url, &headers).await {
            Ok(answer) if answer.is_success() => {
                return serde_json::from_slice(&answer.body).ok();
            }
            Ok(answer) if answer.status < 500 => return None,
            Ok(answer) => EgressError::Failed {
                url: place(url),
                status: answer.status,
            },
            Err(error) => error,
        };
        self.failed.get_or_insert(OAuthError::Request {
            what: format!("find out where one signs in to `{}`", self.server),
            source: failed,
        });
        None
    }
}

fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// Where the metadata of an authorization server may be.
fn places_of(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let (oauth, openid) = (
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    );
    if path.is_empty() {
        return vec![at(issuer, oauth), at(issuer, openid)];
    }
    [
        format!("{oauth}{path}"),
        format!("{openid}{path}"),
        format!("{path}{openid}"),
    ]
    .iter()
    .map(|it| at(issuer, it))
    .collect()
}

fn authorization(issuer: &str, document: &Map<String, Value>) -> Result<Authorization, OAuthError> {
    let methods = texts(document, "code_challenge_methods_supported");
    if !methods.iter().any(|it| it == "S256") {
        let found = match methods.as_slice() {
            [] => "its metadata name no `code_challenge_methods_supported`".to_owned(),
            methods => format!("it offers only {}", shown(&methods.join(", "), &[])),
        };
        return Err(OAuthError::NoPkce {
            issuer: shown(issuer, &[]),
            found,
        });
    }
    let needed = |name: &str| {
        text(document, name).ok_or_else(|| OAuthError::Answer {
            what: format!("use the authorization server `{}`", shown(issuer, &[])),
            reason: format!("its metadata name no `{name}`"),
        })
    };
    let flag = |name: &str| document.get(name).and_then(Value::as_bool) == Some(true);
    Ok(Authorization {
        issuer: issuer.to_owned(),
        authorize: needed("authorization_endpoint")?,
        token: needed("token_endpoint")?,
        register: text(document, "registration_endpoint"),
        revoke: text(document, "revocation_endpoint"),
        methods: texts(document, "token_endpoint_auth_methods_supported"),
        takes_documents: flag("client_id_metadata_document_supported"),
        names_itself: flag("authorization_response_iss_parameter_supported"),
        offers_offline: texts(document, "scopes_supported").contains(&OFFLINE.to_owned()),
    })
}

fn text(document: &Map<String, Value>, name: &str) -> Option<String> {
    let text = document.get(name).and_then(Value::as_str);
    text.filter(|it| !it.is_empty()).map(str::to_owned)
}

fn texts(document: &Map<String, Value>, name: &str) -> Vec<String> {
    let items = document.get(name).and_then(Value::as_array);
    let items = items.into_iter().flatten().filter_map(Value::as_str);
    items.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(issuer: &str) -> Vec<String> {
        let places = places_of(&Url::parse(issuer).unwrap());
        places.iter().map(Url::to_string).collect()
    }

    #[test]
    fn oau_149_metadata_are_between_host_and_path() {
        let host = "https://mcp.kapa.ai";
        assert_eq!(
            places("https://mcp.kapa.ai/auth/public"),
            [
                format!("{host}/.well-known/oauth-authorization-server/auth/public"),
                format!("{host}/.well-known/openid-configuration/auth/public"),
                format!("{host}/auth/public/.well-known/openid-configuration"),
            ]
        );
        assert_eq!(
            places("https://mcp.kapa.ai"),
            [
                format!("{host}/.well-known/oauth-authorization-server"),
                format!("{host}/.well-known/openid-configuration"),
            ]
        );
    }

    #[test]
    fn a_server_without_a_name_is_called_by_its_address() {
        let name = |url| own_name(&Url::parse(url).unwrap());
        assert_eq!(name("https://a.example"), "https://a.example");
        assert_eq!(name("https://a.example/mcp#x"), "https://a.example/mcp");
    }
}
