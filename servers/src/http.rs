//! How our servers speak HTTP: clients made once, with limits, and failures in few words.

use reqwest::{Client, Response, Url, redirect::Policy};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::{error::Error as StdError, io, net::IpAddr, str::FromStr, sync::Arc, time::Duration};
use thiserror::Error;

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why there is no HTTP client.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The TLS library refused its settings.
    #[error("could not set up TLS")]
    Tls(#[from] rustls::Error),
    /// The client could not be built.
    #[error("could not set up the HTTP client")]
    Build(#[from] reqwest::Error),
}

/// The clients of one server. Their requests end after a time, the body included, and follow no redirect: an answer
/// comes from the server that was asked, or there is none.
#[derive(Debug)]
pub(crate) struct Clients {
    world: Client,
    this_machine: Client,
}

impl Clients {
    pub(crate) fn new(timeout: Duration) -> Result<Self, ClientError> {
        let tls = tls()?;
        let builder = || {
            Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .redirect(Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(timeout)
                .user_agent(concat!("clopen-mcp/", env!("CARGO_PKG_VERSION")))
        };
        Ok(Self {
            world: builder().build()?,
            this_machine: builder().no_proxy().build()?,
        })
    }

    /// Returns the client for a URL: what is meant for this machine is told to no proxy.
    pub(crate) fn to(&self, url: &Url) -> &Client {
        if is_this_machine(url) {
            &self.this_machine
        } else {
            &self.world
        }
    }
}

/// Why a text is no base URL.
#[derive(Debug, Error)]
pub(crate) enum BaseUrlError {
    #[error("{0}")]
    Malformed(<Url as FromStr>::Err),
    #[error("the scheme `{0}` is not HTTP")]
    OtherScheme(String),
    #[error("`http` is only allowed to this machine; use `https`")]
    Unencrypted,
    #[error("it can't hold a user or password")]
    HoldsSecrets,
    #[error("a base URL has no `?` and no `#`")]
    HoldsMore,
}

/// Reads the URL of a server, below which requests are made. What leaves this machine is encrypted.
pub(crate) fn base_url(text: &str) -> Result<Url, BaseUrlError> {
    let url = Url::parse(text).map_err(BaseUrlError::Malformed)?;
    match url.scheme() {
        "https" => {}
        "http" if is_this_machine(&url) => {}
        "http" => return Err(BaseUrlError::Unencrypted),
        other => return Err(BaseUrlError::OtherScheme(other.to_owned())),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BaseUrlError::HoldsSecrets);
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(BaseUrlError::HoldsMore);
    }
    Ok(url)
}

/// Says whether a URL names this machine by an address that can be no other.
fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse()
            .is_ok_and(|it: IpAddr| it.is_loopback())
}

/// Trusts what the system trusts. A small container has no certificates of its own: there, those of Mozilla.
fn tls() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    if let Ok(trusting) = builder.clone().with_platform_verifier() {
        return Ok(trusting.with_no_client_auth());
    }
    let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The beginning of a body.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) bytes: Vec<u8>,
    /// Whether the body went on.
    pub(crate) truncated: bool,
}

/// Reads a body up to a limit; the rest stays unread.
pub(crate) async fn read_up_to(
    response: &mut Response,
    limit: usize,
) -> Result<Beginning, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok(Beginning {
                bytes,
                truncated: true,
            });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Beginning {
        bytes,
        truncated: false,
    })
}

/// Says what went wrong in the words of whoever noticed it first. Never says the URL: its query may be private.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it took too long".to_owned();
    }
    let mut cause: &dyn StdError = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    match cause.downcast_ref::<io::Error>() {
        // Without the number, which means nothing to a model.
        Some(error) if error.raw_os_error().is_some() => error.kind().to_string(),
        _ => cause.to_string(),
    }
}
