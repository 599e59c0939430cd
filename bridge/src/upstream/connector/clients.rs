//! The HTTP clients that all servers share.

use reqwest::{Client, Url, redirect::Policy};
use rustls::ClientConfig;
use std::{error::Error as StdError, io, net::IpAddr, time::Duration};

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Two clients. They follow redirects only within an origin and only where the method stays, so
/// that what a server is given goes to no other.
#[derive(Clone, Debug)]
pub(super) struct Clients {
    world: Client,
    this_machine: Client,
}

impl Clients {
    pub(super) fn new(tls: &ClientConfig) -> Result<Self, reqwest::Error> {
        let redirect = |attempt: reqwest::redirect::Attempt<'_>| {
            let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
            let came_from = attempt.previous().last();
            let stays = came_from.is_some_and(|it| it.origin() == attempt.url().origin());
            if keeps_method && stays && attempt.previous().len() < 5 {
                attempt.follow()
            } else {
                attempt.stop()
            }
        };
        let builder = || {
            Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .redirect(Policy::custom(redirect))
                .referer(false)
                .connect_timeout(CONNECT_TIMEOUT)
                .user_agent(concat!("clopen-mcp/", env!("CARGO_PKG_VERSION")))
        };
        Ok(Self {
            world: builder().build()?,
            this_machine: builder().no_proxy().build()?,
        })
    }

    /// Returns the client for a URL: what is meant for this machine is told to no proxy.
    pub(super) fn to(&self, url: &Url) -> &Client {
        let host = url.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse();
        if host == "localhost" || address.is_ok_and(|it: IpAddr| it.is_loopback()) {
            &self.this_machine
        } else {
            &self.world
        }
    }
}

/// Returns what of a URL may be shown: paths and queries of MCP servers often hold a key.
pub(super) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Says what went wrong in the words of whoever noticed it first. Never says the URL: its query may be private.
pub(super) fn reason(error: &reqwest::Error) -> String {
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
        _ if cause.is::<reqwest::Error>() => "the request could not be sent".to_owned(),
        _ => cause.to_string(),
    }
}
