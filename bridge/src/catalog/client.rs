//! A registry over HTTP. Whatever it answers is bounded, and what may be over soon is asked again, a few times.

use super::{
    record::{Entry, RecordError},
    text::line,
};
use crate::secret::Secret;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{
    Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect::Policy,
};
use rustls::ClientConfig;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{error::Error as StdError, net::IpAddr, time::Duration};
use thiserror::Error;

/// How many bytes an answer may have.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// How long a registry may keep one waiting that asks to come back later.
const LONGEST_WAIT: Duration = Duration::from_mins(2);

/// What a name or a version is in a path.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The versions of the API, the newest first.
const APIS: [&str; 2] = ["v0.1", "v0"];

/// How often a registry is asked, and how long it gets.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How often at most.
    pub tries: u32,
    /// How long it is left alone after the first failure; twice as long after each further one.
    pub pause: Duration,
    /// How long an answer may take.
    pub answer: Duration,
}

impl Patience {
    /// For work that may take its time.
    pub const LONG: Self = Self {
        tries: 8,
        pause: Duration::from_millis(100),
        answer: Duration::from_mins(1),
    };

    /// For a person who waits.
    pub const SHORT: Self = Self {
        tries: 2,
        pause: Duration::from_millis(300),
        answer: Duration::from_secs(5),
    };
}

/// A registry.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    registry: String,
    url: Url,
    patience: Patience,
}

/// One page of a registry's servers.
#[derive(Debug)]
pub struct Page {
    /// Its entries, as they came.
    pub entries: Vec<Box<RawValue>>,
    /// What asks for the next page.
    pub next: Option<String>,
}

/// What is asked of a list of servers.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The page.
    pub cursor: Option<&'a str>,
    /// Only what has changed since then.
    pub since: Option<&'a str>,
}

/// Why a registry gives no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Its address is none.
    #[error(
        "the address `{url}` of the registry `{registry}` is no `http://` or `https://` address without a password"
    )]
    Address {
        /// The registry.
        registry: String,
        /// The address.
        url: String,
    },
    /// The HTTP client can't be made.
    #[error("could not set up the HTTP client for registries")]
    Client(#[source] reqwest::Error),
    /// There is no answer.
    #[error("the registry `{registry}` can't be reached at `{origin}` ({tries} tries): {reason}")]
    Unreachable {
        /// The registry.
        registry: String,
        /// Where.
        origin: String,
        /// How often it was tried.
        tries: u32,
        /// Why.
        reason: String,
    },
    /// It refuses.
    #[error("the registry `{registry}` answers {status}{words}{}", hint(*status))]
    Status {
        /// The registry.
        registry: String,
        /// The status.
        status: StatusCode,
        /// What it says, after a colon.
        words: String,
    },
    /// It has neither version of the API.
    #[error(
        "`{url}` is no registry: there is neither `/v0.1/servers` nor `/v0/servers`; correct `url` in `[registries.{registry}]`"
    )]
    NoRegistry {
        /// The registry.
        registry: String,
        /// The address.
        url: String,
    },
    /// It sends on to somewhere else.
    #[error(
        "the registry `{registry}` has moved to `{to}`; write that into `[registries.{registry}]` if you trust it"
    )]
    Moved {
        /// The registry.
        registry: String,
        /// Where to.
        to: String,
    },
    /// It answers something else.
    #[error("the registry `{registry}` answers what can't be read: {reason}")]
    Unreadable {
        /// The registry.
        registry: String,
        /// Why.
        reason: String,
    },
    /// The entry that was asked for can't be read.
    #[error("what the registry `{registry}` has of this server can't be used")]
    Record {
        /// The registry.
        registry: String,
        /// Why.
        source: RecordError,
    },
}

fn hint(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 | 403 => {
            "; give its `token` in the settings, or in the variable CLOPEN_MCP_REGISTRY_<NAME>_TOKEN"
        }
        _ => "",
    }
}

impl Client {
    /// Makes the client of a registry. The token goes to the origin of its address, and nowhere else.
    pub fn new(
        registry: &str,
        url: &str,
        token: Option<&Secret>,
        tls: &ClientConfig,
        patience: Patience,
    ) -> Result<Self, RegistryError> {
        let address = || RegistryError::Address {
            registry: registry.to_owned(),
            url: line(url, 200),
        };
        let parsed = Url::parse(url).map_err(|_| address())?;
        let is_plain = parsed.username().is_empty() && parsed.password().is_none();
        if !matches!(parsed.scheme(), "http" | "https") || !is_plain {
            return Err(address());
        }
        let mut headers =
            HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        if let Some(token) = token {
            let bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let mut bearer = bearer.map_err(|_| address())?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        let within = |attempt: reqwest::redirect::Attempt<'_>| {
            let came_from = attempt.previous().last();
            let stays = came_from.is_some_and(|it| it.origin() == attempt.url().origin());
            if stays && attempt.previous().len() < 5 {
                attempt.follow()
            } else {
                attempt.stop()
            }
        };
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.clone())
            .redirect(Policy::custom(within))
            .referer(false)
            .default_headers(headers)
            .connect_timeout(patience.answer.min(Duration::from_secs(10)))
            .timeout(patience.answer)
            .user_agent(concat!("clopen-mcp/", env!("CARGO_PKG_VERSION")));
        if is_this_machine(&parsed) {
            builder = builder.no_proxy();
        }
        Ok(Self {
            http: builder.build().map_err(RegistryError::Client)?,
            registry: registry.to_owned(),
            url: parsed,
            patience,
        })
    }

    /// Returns the registry's name.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns its address.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Asks for a page of the latest versions of its servers. An address that ends in `.json` is one document with all
    /// of them.
    pub async fn page(&self, query: Query<'_>) -> Result<Page, RegistryError> {
        // What is taken out while pages are read is told too.
        let mut parameters = vec![
            ("limit", "100"),
            ("version", "latest"),
            ("include_deleted", "true"),
        ];
        parameters.extend(query.since.map(|it| ("updated_since", it)));
        parameters.extend(query.cursor.map(|it| ("cursor", it)));
        let body = if self.is_document() {
            self.get(&self.url).await?
        } else {
            let body = self.get_of_api(&[], &parameters).await?;
            body.ok_or_else(|| RegistryError::NoRegistry {
                registry: self.registry.clone(),
                url: self.url.to_string(),
            })?
        };
        self.read_page(&body)
    }

    /// Asks for all versions of a server, the newest first. `None` if it doesn't know the server.
    pub async fn versions(&self, name: &str) -> Result<Option<Vec<Entry>>, RegistryError> {
        if self.is_document() {
            return Ok(None);
        }
        let Some(body) = self.get_of_api(&[name, "versions"], &[]).await? else {
            return Ok(None);
        };
        let entries = self.read_page(&body)?.entries;
        Ok(Some(
            entries
                .iter()
                .filter_map(|it| Entry::read(it).ok())
                .collect(),
        ))
    }

    /// Asks for one version of a server, or `latest`. `None` if there is none.
    pub async fn version(&self, name: &str, version: &str) -> Result<Option<Entry>, RegistryError> {
        if self.is_document() {
            return Ok(None);
        }
        let Some(body) = self.get_of_api(&[name, "versions", version], &[]).await? else {
            return Ok(None);
        };
        let json: Box<RawValue> =
            serde_json::from_slice(&body).map_err(|error| self.unreadable(&error))?;
        let entry = Entry::read(&json).map_err(|source| RegistryError::Record {
            registry: self.registry.clone(),
            source,
        });
        entry.map(Some)
    }

    /// Asks for a document below its address. `None` if there is none.
    pub(super) async fn json(&self, path: &[&str]) -> Result<Option<Value>, RegistryError> {
        let url = self.below(path)?;
        match self.get(&url).await {
            Err(RegistryError::Status { status, .. }) if status == StatusCode::NOT_FOUND => {
                Ok(None)
            }
            body => serde_json::from_slice(&body?)
                .map(Some)
                .map_err(|error| self.unreadable(&error)),
        }
    }

    /// Puts the parts of a path behind its address.
    fn below(&self, path: &[&str]) -> Result<Url, RegistryError> {
        let path = path.iter().fold(String::new(), |path, it| {
            path + "/" + &utf8_percent_encode(it, IN_PATH).to_string()
        });
        // Setting a path would encode it once more.
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        let text = format!("{}{path}", url.as_str().trim_end_matches('/'));
        Url::parse(&text).map_err(|error| self.unreadable(&error))
    }

    fn is_document(&self) -> bool {
        let path = self.url.path().to_ascii_lowercase();
        path.rsplit_once('.')
            .is_some_and(|(_, ending)| ending == "json")
    }

    /// Asks each version of the API for `servers` and what follows; `None` if none of them has it.
    async fn get_of_api(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Option<Vec<u8>>, RegistryError> {
        for api in APIS {
            let mut url = self.below(&[&[api, "servers"], path].concat())?;
            if !query.is_empty() {
                url.query_pairs_mut().extend_pairs(query);
            }
            match self.get(&url).await {
                Err(RegistryError::Status { status, .. }) if status == StatusCode::NOT_FOUND => {}
                body => return body.map(Some),
            }
        }
        Ok(None)
    }

    fn read_page(&self, body: &[u8]) -> Result<Page, RegistryError> {
        #[derive(Deserialize)]
        struct Metadata {
            #[serde(default, rename = "nextCursor", alias = "next_cursor")]
            next: Option<String>,
        }
        #[derive(Deserialize)]
        struct Servers {
            servers: Vec<Box<RawValue>>,
            #[serde(default)]
            metadata: Option<Metadata>,
        }
        if body.trim_ascii_start().starts_with(b"[") {
            let entries = serde_json::from_slice(body).map_err(|error| self.unreadable(&error))?;
            return Ok(Page {
                entries,
                next: None,
            });
        }
        let servers: Servers =
            serde_json::from_slice(body).map_err(|error| self.unreadable(&error))?;
        let next = servers.metadata.and_then(|it| it.next);
        Ok(Page {
            entries: servers.servers,
            next: next.filter(|it| !it.is_empty()),
        })
    }

    fn unreadable(&self, error: &dyn StdError) -> RegistryError {
        RegistryError::Unreadable {
            registry: self.registry.clone(),
            reason: line(&error.to_string(), 200),
        }
    }

    /// Asks until there is an answer, or patience is at its end.
    async fn get(&self, url: &Url) -> Result<Vec<u8>, RegistryError> {
        let mut pause = self.patience.pause;
        let mut tries = 1;
        loop {
            let (error, wait) = match self.get_once(url, tries).await {
                Ok(body) => return Ok(body),
                Err(Failed::ForNow(error, wait)) => (error, wait),
                Err(Failed::ForGood(error)) => return Err(error),
            };
            if tries >= self.patience.tries {
                return Err(error);
            }
            tracing::debug!(%error, "asking the registry again");
            tokio::time::sleep(wait.unwrap_or(pause).min(LONGEST_WAIT)).await;
            pause *= 2;
            tries += 1;
        }
    }

    async fn get_once(&self, url: &Url, tries: u32) -> Result<Vec<u8>, Failed> {
        let unreachable = |error: reqwest::Error| {
            let error = RegistryError::Unreachable {
                registry: self.registry.clone(),
                origin: url.origin().ascii_serialization(),
                tries,
                reason: reason(&error),
            };
            Failed::ForNow(error, None)
        };
        let response = self.http.get(url.clone()).send().await;
        let mut response = response.map_err(unreachable)?;
        let status = response.status();
        if status.is_redirection() {
            return Err(Failed::ForGood(self.moved(&response)));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(Failed::ForGood(RegistryError::Unreadable {
                    registry: self.registry.clone(),
                    reason: format!("it has more than {MOST_BYTES} bytes"),
                }));
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return Ok(body);
        }
        let error = RegistryError::Status {
            registry: self.registry.clone(),
            status,
            words: words(&body),
        };
        if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
            return Err(Failed::ForNow(error, retry_after(&response)));
        }
        Err(Failed::ForGood(error))
    }

    fn moved(&self, response: &Response) -> RegistryError {
        let to = response.headers().get(reqwest::header::LOCATION);
        let to = to.map(|it| String::from_utf8_lossy(it.as_bytes()));
        RegistryError::Moved {
            registry: self.registry.clone(),
            to: line(to.as_deref().unwrap_or("nowhere"), 200),
        }
    }
}

/// Why an answer didn't come, and whether it may come if it is asked for again.
enum Failed {
    /// With how long the registry asks to be left alone.
    ForNow(RegistryError, Option<Duration>),
    ForGood(RegistryError),
}

/// Says whether an address is of this machine.
pub(super) fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse();
    host == "localhost" || address.is_ok_and(|it: IpAddr| it.is_loopback())
}

/// What a refusal says of itself, after a colon.
fn words(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        #[serde(alias = "detail", alias = "title", alias = "message")]
        error: String,
    }
    let refusal: Option<Refusal> = serde_json::from_slice(body).ok();
    refusal.map_or_else(String::new, |it| format!(": {}", line(&it.error, 200)))
}

/// How many seconds it asks to wait. The other form of the header, a date, is as good as none.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it took too long".to_owned();
    }
    let mut cause: &dyn StdError = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    line(&cause.to_string(), 200)
}
