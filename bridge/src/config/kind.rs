//! The kinds of values that settings have.

use crate::secret::Secret;
use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};
use toml::de::DeValue;

const LONGEST: Duration = Duration::from_hours(24);
const MOST_BYTES: usize = 1 << 30;

/// What was found where a value is expected.
#[derive(Clone, Copy)]
pub(super) enum Found<'a> {
    /// A flag's or a variable's text.
    Text(&'a str),
    /// A value of the settings file.
    Toml(&'a DeValue<'a>),
}

/// How to read a value, and what to say when it can't be read.
pub(super) struct Kind<T> {
    pub(super) expected: &'static str,
    pub(super) read: fn(Found<'_>) -> Option<T>,
    pub(super) secret: bool,
}

impl<T> Kind<T> {
    const fn new(expected: &'static str, read: fn(Found<'_>) -> Option<T>) -> Self {
        Self {
            expected,
            read,
            secret: false,
        }
    }

    const fn secret(self) -> Self {
        Self {
            secret: true,
            ..self
        }
    }
}

pub(super) const ADDRESS: Kind<SocketAddr> = Kind::new(
    "an address with a port, such as `127.0.0.1:9151`",
    |found| {
        let text = found.text()?;
        match text.strip_prefix("localhost:") {
            Some(port) => Some((Ipv4Addr::LOCALHOST, port.parse::<u16>().ok()?).into()),
            None => text.parse().ok(),
        }
    },
);

pub(super) const FOLDER: Kind<PathBuf> = Kind::new("the path of a folder", |found| {
    found.text().filter(|it| !it.is_empty()).map(PathBuf::from)
});

pub(super) const SWITCH: Kind<bool> = Kind::new("`true` or `false`", |found| match found {
    Found::Text("true" | "1" | "yes" | "on") => Some(true),
    Found::Text("false" | "0" | "no" | "off") => Some(false),
    Found::Text(_) => None,
    Found::Toml(value) => value.as_bool(),
});

pub(super) const BYTES: Kind<usize> = Kind::new(
    "a number of bytes from 1 to 1073741824, such as `100000`",
    |found| {
        let number = match found {
            Found::Text(text) => text.parse().ok()?,
            Found::Toml(value) => {
                let integer = value.as_integer()?;
                usize::from_str_radix(integer.as_str(), integer.radix()).ok()?
            }
        };
        (1..=MOST_BYTES).contains(&number).then_some(number)
    },
);

pub(super) const DURATION: Kind<Duration> = Kind::new(
    "a time such as `30s`, `500ms` or `2m`, at most `24h`",
    |found| duration(found.text()?),
);

pub(super) const TIMEOUT: Kind<Duration> = Kind::new(
    "a time such as `30s`, `500ms` or `2m`, more than zero and at most `24h`",
    |found| duration(found.text()?).filter(|it| !it.is_zero()),
);

pub(super) const HOST: Kind<String> = Kind::new(
    "a host with or without a port, such as `mcp.example.com` or `10.0.0.5:9151`",
    |found| {
        let text = found.text()?.to_ascii_lowercase();
        split_authority(&text)?;
        Some(text)
    },
);

pub(super) const ORIGIN: Kind<String> = Kind::new(
    "an origin such as `https://app.example.com`, with nothing after the host and its port",
    |found| normal_origin(found.text()?),
);

pub(super) const TOOL: Kind<String> = Kind::new("the name of a tool", |found| {
    found.text().filter(|it| !it.is_empty()).map(str::to_owned)
});

pub(super) const PREFIX: Kind<String> = Kind::new(
    "what stands before the names of tools: small letters, digits and single `-`, at most 20",
    |found| {
        let text = found.text()?;
        let is_word = |it: &str| {
            !it.is_empty()
                && it
                    .bytes()
                    .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
        };
        let is_prefix = text.len() <= 20 && text.split('-').all(is_word);
        is_prefix.then(|| text.to_owned())
    },
);

pub(super) const SERVER: Kind<String> = Kind::new("the name of a server", |found| {
    found.text().filter(|it| !it.is_empty()).map(str::to_owned)
});

pub(super) const PUBLIC_URL: Kind<String> = Kind::new(
    "the address of this bridge from outside, such as `https://bridge.example.com`",
    |found| {
        let text = found.text()?;
        let url = reqwest::Url::parse(text).ok()?;
        let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        (is_http && is_plain).then(|| text.trim_end_matches('/').to_owned())
    },
);

pub(super) const TOKEN: Kind<Secret> = Kind::new(
    "a token of at least 16 visible ASCII characters, such as `openssl rand -hex 32` prints",
    |found| found.text().filter(|it| is_token(it)).map(Secret::new),
)
.secret();

pub(super) const REGISTRY: Kind<String> = Kind::new(
    "the address of a registry, such as `https://registry.example.com`, without a password",
    |found| {
        let url = reqwest::Url::parse(found.text()?).ok()?;
        let is_http = matches!(url.scheme(), "http" | "https");
        let is_plain =
            url.username().is_empty() && url.password().is_none() && url.query().is_none();
        // Some write the whole path down, which is known.
        let text = url
            .as_str()
            .trim_end_matches('/')
            .trim_end_matches("/servers");
        let text = text.trim_end_matches("/v0.1").trim_end_matches("/v0");
        (is_http && is_plain).then(|| text.trim_end_matches('/').to_owned())
    },
);

/// The token of a registry, which someone else has made: any visible text.
pub(super) const REGISTRY_TOKEN: Kind<Secret> =
    Kind::new("a token of visible ASCII characters", |found| {
        let text = found.text()?;
        let is_visible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_visible.then(|| Secret::new(text))
    })
    .secret();

pub(super) const DATABASE_URL: Kind<Secret> = Kind::new(
    "the address of a PostgreSQL database, such as `postgres://user:password@host/database`",
    |found| {
        let text = found.text()?;
        let rest = text
            .strip_prefix("postgres://")
            .or_else(|| text.strip_prefix("postgresql://"))?;
        (!rest.is_empty()).then(|| Secret::new(text))
    },
)
.secret();

impl<'a> Found<'a> {
    fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Toml(value) => value.as_str(),
        }
    }
}

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "`{}`", shown(text)),
            Self::Toml(DeValue::String(text)) => write!(f, "\"{}\"", shown(text)),
            Self::Toml(DeValue::Integer(number)) => write!(f, "the number `{number}`"),
            Self::Toml(DeValue::Float(number)) => write!(f, "the number `{}`", number.as_str()),
            Self::Toml(DeValue::Boolean(it)) => write!(f, "`{it}`"),
            Self::Toml(DeValue::Datetime(_)) => f.write_str("a date"),
            Self::Toml(DeValue::Array(_)) => f.write_str("an array"),
            Self::Toml(DeValue::Table(_)) => f.write_str("a table"),
        }
    }
}

fn shown(text: &str) -> String {
    const MOST: usize = 100;
    let mut shown: String = text
        .chars()
        .take(MOST)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().ok()?;
    let milliseconds = match unit.trim_start() {
        "ms" => number,
        "s" => number.checked_mul(1_000)?,
        "m" => number.checked_mul(60_000)?,
        "h" => number.checked_mul(3_600_000)?,
        _ => return None,
    };
    Some(Duration::from_millis(milliseconds)).filter(|it| *it <= LONGEST)
}

fn is_token(text: &str) -> bool {
    text.len() >= 16 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the origin in lower case, without a port where it is the scheme's own; `None` if it is no origin.
pub(crate) fn normal_origin(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let (scheme, authority) = text.split_once("://")?;
    let (host, port) = split_authority(authority)?;
    let scheme_is_right = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    scheme_is_right.then(|| match (scheme, port) {
        (_, None) | ("http", Some(80)) | ("https", Some(443)) => format!("{scheme}://{host}"),
        (_, Some(port)) => format!("{scheme}://{host}:{port}"),
    })
}

/// Takes `host` or `host:port` apart; the host is a name, an IPv4 address or an IPv6 address in brackets.
pub(crate) fn split_authority(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.rfind(':') {
        Some(at) if !text.ends_with(']') => (&text[..at], Some(text[at + 1..].parse().ok()?)),
        _ => (text, None),
    };
    let host_is_right = match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']')?.parse::<Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        }
    };
    host_is_right.then_some((host, port))
}
