//! Well-known services: there before anything was ever fetched, with what no registry tells: how one signs in, and what
//! to mind.

use super::record::{Entry, Record};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{fmt, sync::LazyLock};

/// Where the well-known ones are from, as the name of a registry.
pub const WELL_KNOWN: &str = "well-known";

static KNOWN: LazyLock<Vec<(Entry, Note)>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Noted {
        #[serde(rename = "_note")]
        note: Note,
    }
    let entries: Vec<Box<RawValue>> =
        serde_json::from_str(include_str!("known.json")).expect("a test reads it");
    let read = |it: &RawValue| {
        let entry = Entry::read(it).expect("a test reads it");
        let noted: Noted = serde_json::from_str(it.get()).expect("a test reads it");
        (entry, noted.note)
    };
    entries.iter().map(|it| read(it)).collect()
});

/// What is known of a service.
#[derive(Clone, Debug, Deserialize)]
pub struct Note {
    /// The service.
    pub service: String,
    /// Other services that it serves.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// How one signs in.
    pub auth: SignIn,
    /// Whether the service itself offers it.
    pub official: bool,
    /// The document that says so.
    pub source: String,
    /// How sure that is: `high`, `medium` or `low`.
    pub confidence: String,
    /// When it was looked up.
    pub checked: String,
    /// What to mind; may be empty.
    #[serde(default)]
    pub caveat: String,
}

/// How one signs in.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SignIn {
    /// Not at all.
    None,
    /// With a token.
    Bearer,
    /// With a key in a header of its own.
    HeaderKey,
    /// In the browser; the program registers itself.
    OauthDcr,
    /// In the browser, with a client that one has registered there.
    OauthPreregistered,
    /// In the browser; it isn't known for whom.
    Oauth,
    /// With the cookies of a browser.
    BrowserSession,
}

impl fmt::Display for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "not needed",
            Self::Bearer => "a token",
            Self::HeaderKey => "a key",
            Self::OauthDcr => "in the browser (OAuth)",
            Self::OauthPreregistered => {
                "in the browser (OAuth), with the id of a client that you register there"
            }
            Self::Oauth => "in the browser (OAuth); whom it admits is not established",
            Self::BrowserSession => "the session of a browser in which you are signed in",
        })
    }
}

/// Returns the well-known servers.
pub fn known() -> &'static [(Entry, Note)] {
    &KNOWN
}

/// Returns what is known of a server, by its name or an address that it shares with a well-known one.
pub fn note(record: &Record) -> Option<&'static Note> {
    let by_name = known().iter().find(|(it, _)| it.record.name == record.name);
    let addresses = |it: &'static Record| it.remotes.iter().flatten().map(|it| &*it.url);
    let by_address = || {
        known().iter().find(|(known, _)| {
            let mut urls = record.remotes.iter().flatten().map(|it| &*it.url);
            urls.any(|url| addresses(&known.record).any(|it| it == url))
        })
    };
    by_name.or_else(by_address).map(|(_, note)| note)
}

/// Gives the addresses of an entry that name no headers those that well-known ones of the same address have: many publishers
/// leave out that a token can be sent.
pub fn completed(entry: Entry) -> Entry {
    let changed = || {
        let mut raw: Value = serde_json::from_str(&entry.raw).ok()?;
        let mut has_changed = false;
        for remote in raw.get_mut("remotes")?.as_array_mut()? {
            let has_headers = remote["headers"]
                .as_array()
                .is_some_and(|it| !it.is_empty());
            let headers = remote["url"].as_str().and_then(headers_of);
            if let Some(headers) = headers.filter(|_| !has_headers) {
                remote["headers"] = headers;
                has_changed = true;
            }
        }
        let raw = raw.to_string();
        let record = Record::read(&raw).ok()?;
        has_changed.then_some((record, raw))
    };
    match changed() {
        Some((record, raw)) => Entry {
            record,
            raw,
            ..entry
        },
        None => entry,
    }
}

/// The headers that a well-known address takes.
fn headers_of(url: &str) -> Option<Value> {
    let is_same = |it: &Value| {
        let known = it["url"].as_str().unwrap_or_default();
        known.trim_end_matches('/') == url.trim_end_matches('/')
    };
    known().iter().find_map(|(entry, _)| {
        let raw: Value = serde_json::from_str(&entry.raw).ok()?;
        let remotes = raw.get("remotes")?.as_array()?;
        let headers = remotes.iter().find(|it| is_same(it))?.get("headers")?;
        Some(headers.clone())
    })
}
