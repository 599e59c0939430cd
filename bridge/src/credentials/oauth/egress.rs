//! Requests to addresses that strangers have named: only over https, only to public addresses, small and short.

use reqwest::{
    Client, Method, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{CONTENT_TYPE, HeaderMap, LOCATION, WWW_AUTHENTICATE},
    redirect::Policy,
};
use rustls::ClientConfig;
use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error as StdError,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use thiserror::Error;
use tokio::{net::lookup_host, time::timeout};

/// How long a request may take, with all redirects.
const LIMIT: Duration = Duration::from_secs(10);
/// How many bytes an answer may have.
const LARGEST: usize = 1024 * 1024;
/// How often metadata may be elsewhere.
const REDIRECTS: usize = 3;

/// How such requests are made: with what is trusted here, through the proxy of this network, and to where.
#[derive(Clone, Debug)]
pub struct Network {
    tls: ClientConfig,
    allow_private: bool,
    /// The hosts of the proxies, which are often at private addresses and were named by this person.
    proxies: BTreeSet<String>,
}

/// Why there is no answer. No query of an address is in it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EgressError {
    /// It is no place to ask.
    #[error("`{url}` is not asked: {reason}")]
    Forbidden {
        /// The address, without its query.
        url: String,
        /// Why.
        reason: String,
    },
    /// Nothing answers.
    #[error("`{url}` can't be reached: {reason}")]
    Unreachable {
        /// The address, without its query.
        url: String,
        /// What happened.
        reason: String,
    },
    /// It answers that it has failed.
    #[error("`{url}` answers with status {status}")]
    Failed {
        /// The address, without its query.
        url: String,
        /// The status.
        status: u16,
    },
    /// It answers too much.
    #[error("`{url}` answers with more than {LARGEST} bytes")]
    TooLarge {
        /// The address, without its query.
        url: String,
    },
}

/// An answer, whatever it says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) kind: String,
    /// All its challenges.
    pub(super) challenge: Option<String>,
}

impl Answer {
    pub(super) const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }
}

/// Makes requests for one server.
pub(super) struct Egress {
    /// Goes through the proxy, where there is one.
    world: Client,
    this_network: Client,
    guard: Arc<Guard>,
}

/// What may be asked.
#[derive(Debug)]
struct Guard {
    allow_private: bool,
    /// The host of the server itself, where that is at no public address.
    own: Option<String>,
    is_own_loopback: bool,
    proxies: BTreeSet<String>,
}

impl Network {
    /// Takes how TLS is spoken, whether private addresses may be asked, and the variables of this process, which may name
    /// proxies.
    pub fn new(
        tls: ClientConfig,
        allow_private: bool,
        variables: &BTreeMap<String, String>,
    ) -> Self {
        let names = ["https_proxy", "http_proxy", "all_proxy"];
        let proxies = variables.iter().filter_map(|(name, value)| {
            let is_proxy = names.contains(&name.to_ascii_lowercase().as_str());
            let value = Some(value).filter(|_| is_proxy)?;
            let url = Url::parse(value).or_else(|_| Url::parse(&format!("http://{value}")));
            Some(url.ok()?.host_str()?.to_owned())
        });
        Self {
            proxies: proxies.collect(),
            tls,
            allow_private,
        }
    }

    /// Makes what asks on behalf of a server: what is at no public address may be asked only where that is the server's
    /// own.
    pub(super) async fn for_server(&self, url: &Url) -> Result<Egress, reqwest::Error> {
        let host = host(url);
        let addresses = addresses(&host).await.unwrap_or_default();
        let is_private = !addresses.is_empty() && addresses.iter().all(|it| !is_public(*it));
        let guard = Arc::new(Guard {
            allow_private: self.allow_private,
            is_own_loopback: is_private && addresses.iter().all(IpAddr::is_loopback),
            own: is_private.then_some(host),
            proxies: self.proxies.clone(),
        });
        let builder = || {
            Client::builder()
                .tls_backend_preconfigured(self.tls.clone())
                .redirect(Policy::none())
                .referer(false)
                .connect_timeout(LIMIT)
                .dns_resolver(Resolver(guard.clone()))
                .user_agent(concat!("clopen-mcp/", env!("CARGO_PKG_VERSION")))
        };
        Ok(Egress {
            world: builder().build()?,
            this_network: builder().no_proxy().build()?,
            guard,
        })
    }
}

impl Egress {
    /// Asks for a document, wherever it is.
    pub(super) async fn get(&self, url: &Url, headers: &HeaderMap) -> Result<Answer, EgressError> {
        let place = url.clone();
        let followed = async {
            let mut url = url.clone();
            for _ in 0..=REDIRECTS {
                // What the server is given goes to no other.
                let is_own = url.origin() == place.origin();
                let headers = if is_own {
                    headers.clone()
                } else {
                    HeaderMap::new()
                };
                let (answer, location) = self.send(Method::GET, &url, headers, Vec::new()).await?;
                let Some(location) = location else {
                    return Ok(answer);
                };
                url = url
                    .join(&location)
                    .map_err(|_| forbidden(&url, "it redirects to no address"))?;
            }
            Err(forbidden(&url, "there are too many redirects"))
        };
        within(&place, followed).await
    }

    /// Sends something, to there and nowhere else.
    pub(super) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, EgressError> {
        let sent = self.send(Method::POST, url, headers, body);
        Ok(within(url, sent).await?.0)
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<(Answer, Option<String>), EgressError> {
        self.guard.check(url)?;
        let client = if self.guard.is_near(&host(url)) {
            &self.this_network
        } else {
            &self.world
        };
        let unreachable = |error: &reqwest::Error| EgressError::Unreachable {
            url: place(url),
            reason: reason(error),
        };
        let request = client.request(method, url.clone()).headers(headers);
        let sent = request.body(body).send().await;
        let mut response = sent.map_err(|it| unreachable(&it))?;
        let header = |name| {
            let values = response.headers().get_all(name).iter();
            let values: Vec<String> = values
                .map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned())
                .collect();
            (!values.is_empty()).then(|| values.join(", "))
        };
        let location = header(LOCATION).filter(|_| response.status().is_redirection());
        let mut answer = Answer {
            status: response.status().as_u16(),
            body: Vec::new(),
            kind: header(CONTENT_TYPE)
                .unwrap_or_default()
                .to_ascii_lowercase(),
            challenge: header(WWW_AUTHENTICATE),
        };
        while let Some(chunk) = response.chunk().await.map_err(|it| unreachable(&it))? {
            if answer.body.len() + chunk.len() > LARGEST {
                return Err(EgressError::TooLarge { url: place(url) });
            }
            answer.body.extend_from_slice(&chunk);
            // An endpoint may answer with a stream that doesn't end.
            if answer.kind.starts_with("text/event-stream") {
                break;
            }
        }
        Ok((answer, location))
    }

    /// Checks an address that somebody else asks, such as a browser.
    pub(super) fn check(&self, url: &Url) -> Result<(), EgressError> {
        self.guard.check(url)
    }
}

async fn within<T>(
    url: &Url,
    asked: impl Future<Output = Result<T, EgressError>>,
) -> Result<T, EgressError> {
    let asked = timeout(LIMIT, asked).await;
    asked.unwrap_or_else(|_| {
        Err(EgressError::Unreachable {
            url: place(url),
            reason: "it took too long".to_owned(),
        })
    })
}

impl Guard {
    fn check(&self, url: &Url) -> Result<(), EgressError> {
        let host = host(url);
        let literal: Option<IpAddr> = host.parse().ok();
        let is_loopback = host == "localhost" || literal.is_some_and(|it| it.is_loopback());
        match url.scheme() {
            "https" => {}
            "http" if is_loopback => {}
            _ => return Err(forbidden(url, "it must be https")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(forbidden(url, "it holds a password"));
        }
        if self.proxies.contains(&host) {
            return Err(forbidden(url, "it is the proxy"));
        }
        match literal {
            Some(address) if !self.allows(&host, address) => Err(forbidden(url, PRIVATE)),
            _ => Ok(()),
        }
    }

    fn allows(&self, host: &str, address: IpAddr) -> bool {
        self.allow_private
            || is_public(address)
            || self.own.as_deref() == Some(host)
            || self.is_own_loopback && address.is_loopback()
    }

    /// Whether a host is on this machine or in this network, where no proxy is in between.
    fn is_near(&self, host: &str) -> bool {
        let literal: Option<IpAddr> = host.parse().ok();
        host == "localhost"
            || self.own.as_deref() == Some(host)
            || literal.is_some_and(|it| !is_public(it))
    }
}

const PRIVATE: &str = "it is at no public address; if that is right, set `allow_private = true` in `[sign_in]` of the settings";

fn forbidden(url: &Url, reason: &str) -> EgressError {
    EgressError::Forbidden {
        url: place(url),
        reason: reason.to_owned(),
    }
}

/// What of an address may be shown.
pub(super) fn place(url: &Url) -> String {
    let place = format!("{}{}", url.origin().ascii_serialization(), url.path());
    place.chars().take(200).collect()
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    host.trim_matches(['[', ']']).to_ascii_lowercase()
}

async fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    Ok(lookup_host((host, 0)).await?.map(|it| it.ip()).collect())
}

/// Looks names up, and leaves out the addresses that may not be asked, so that a connection goes to none of them.
struct Resolver(Arc<Guard>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let host = name.as_str().to_ascii_lowercase();
            let is_proxy = guard.proxies.contains(&host);
            let found = addresses(&host).await?.into_iter();
            let allowed = found.filter(|it| is_proxy || guard.allows(&host, *it));
            let allowed: Vec<SocketAddr> = allowed.map(|it| SocketAddr::new(it, 0)).collect();
            if allowed.is_empty() {
                return Err(io::Error::other(PRIVATE).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is one of the internet: not of this machine, a private network, or a cloud's metadata.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match (a, b, c) {
        // This network, carriers' networks, protocol assignments, benchmarks, the old 6to4 relays.
        // Multicast, and what is reserved.
        (0 | 224.., ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18..=19, _) | (192, 88, 99) => {
            true
        }
        _ => false,
    };
    !(is_special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // Addresses of IPv4 in those of IPv6: mapped, compatible, translated, 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            embedded(high, low)
        }
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, documentation, local use of translation.
        [0x2001, 0 | 0xdb8, ..] | [0x64, 0xff9b, 1, ..] => false,
        // Only this block is given out.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Says what went wrong in the words of whoever noticed it first. Never says the address.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn StdError = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    match cause.downcast_ref::<io::Error>() {
        Some(error) if error.raw_os_error().is_some() => error.kind().to_string(),
        _ if cause.is::<reqwest::Error>() => "the request could not be sent".to_owned(),
        _ => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_told_from_public_ones() {
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "fec0::1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001:db8::1",
        ];
        for address in private {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[tokio::test]
    async fn oau_180_the_proxy_of_this_person_is_no_stranger() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let variables = [("HTTPS_PROXY", "http://localhost:3128"), ("PATH", "/bin")];
        let variables = variables.map(|(name, it)| (name.to_owned(), it.to_owned()));
        let network = Network::new(tls, false, &BTreeMap::from(variables));
        let public = Url::parse("https://1.1.1.1/mcp").unwrap();
        let egress = network.for_server(&public).await.unwrap();
        let resolver = Resolver(egress.guard.clone());
        assert!(resolver.resolve("localhost".parse().unwrap()).await.is_ok());
        let direct = Guard {
            allow_private: false,
            own: None,
            is_own_loopback: false,
            proxies: BTreeSet::new(),
        };
        let direct = Resolver(Arc::new(direct));
        assert!(direct.resolve("localhost".parse().unwrap()).await.is_err());
        let proxy = Url::parse("https://localhost:3128/").unwrap();
        assert!(egress.check(&proxy).is_err());
    }

    #[test]
    fn only_https_leaves_this_machine() {
        let guard = |own: Option<&str>| Guard {
            allow_private: false,
            own: own.map(str::to_owned),
            is_own_loopback: own == Some("127.0.0.1"),
            proxies: BTreeSet::from(["proxy.example".to_owned()]),
        };
        let check = |own, url: &str| guard(own).check(&Url::parse(url).unwrap()).is_ok();
        assert!(check(None, "https://a.example/x"));
        for url in [
            "http://a.example/",
            "ftp://a.example/",
            "https://10.0.0.1/",
            "https://[fd00::1]/",
            "http://127.0.0.1:1/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://u:p@a.example/",
            "https://proxy.example/",
            "http://169.254.169.254/latest",
        ] {
            assert!(!check(None, url), "{url}");
        }
        assert!(check(Some("127.0.0.1"), "http://127.0.0.1:1/"));
        assert!(!check(Some("127.0.0.1"), "https://10.0.0.1/"));
        assert!(check(Some("10.0.0.1"), "https://10.0.0.1:2/"));
        assert!(!check(Some("10.0.0.1"), "https://10.0.0.2/"));
    }
}
