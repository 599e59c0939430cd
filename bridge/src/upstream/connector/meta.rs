//! What a request says in its `_meta`.

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value};
use tool_runtime::Level;

/// The prefix of the protocol's own keys.
const OURS: &str = "io.modelcontextprotocol/";
/// Those of its keys that concern one hop only.
const HOP: [&str; 5] = [
    "protocolVersion",
    "clientCapabilities",
    "clientInfo",
    "logLevel",
    "subscriptionId",
];
const TOKEN: &str = "progressToken";

/// The `_meta` of a request.
#[derive(Debug)]
pub(super) struct Meta<'a> {
    /// By what progress names the request.
    pub(super) token: Option<u64>,
    /// What the caller says.
    pub(super) rest: &'a Map<String, Value>,
    /// What every request says since 2026-07-28.
    pub(super) said: Option<Said<'a>>,
}

/// What a request says of who sends it.
#[derive(Debug)]
pub(super) struct Said<'a> {
    pub(super) version: &'a str,
    pub(super) capabilities: &'a Map<String, Value>,
    pub(super) log: Option<Level>,
}

impl Meta<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.token.is_none() && self.said.is_none() && self.rest.is_empty()
    }
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut meta = serializer.serialize_map(None)?;
        if let Some(said) = &self.said {
            meta.serialize_entry(&format!("{OURS}protocolVersion"), said.version)?;
            meta.serialize_entry(&format!("{OURS}clientInfo"), &ClientInfo::OURS)?;
            meta.serialize_entry(&format!("{OURS}clientCapabilities"), said.capabilities)?;
            if let Some(level) = said.log {
                meta.serialize_entry(&format!("{OURS}logLevel"), level.name())?;
            }
        }
        if let Some(token) = self.token {
            meta.serialize_entry(TOKEN, &token)?;
        }
        for (key, value) in self.rest.iter().filter(|(key, _)| goes_on(key)) {
            meta.serialize_entry(key, value)?;
        }
        meta.end()
    }
}

/// Says whether a key of the caller's means something to the server.
fn goes_on(key: &str) -> bool {
    let own = key.strip_prefix(OURS);
    key != TOKEN && own.is_none_or(|it| !HOP.contains(&it))
}

/// Who we are to servers.
#[derive(Debug, Serialize)]
pub(super) struct ClientInfo {
    name: &'static str,
    version: &'static str,
}

impl ClientInfo {
    pub(super) const OURS: Self = Self {
        name: "clopen-mcp",
        version: env!("CARGO_PKG_VERSION"),
    };
}
