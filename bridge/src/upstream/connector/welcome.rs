//! What a server says of itself.

use super::{mask::Masks, news::News};
use serde_json::{Map, Value, value::RawValue};

/// What a server speaks that doesn't say so, according to 2025-11-25.
const UNSAID_VERSION: &str = "2025-03-26";
/// How long a version may be.
const LONGEST_VERSION: usize = 32;
/// How long the name of a server may be, and its own version.
const LONGEST_NAME: usize = 128;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// How a server introduces itself.
#[derive(Debug)]
pub(super) struct Welcome {
    pub(super) version: String,
    pub(super) name: String,
    pub(super) server_version: String,
    pub(super) instructions: Option<String>,
    pub(super) capabilities: Map<String, Value>,
}

impl Welcome {
    /// Reads the answer to `initialize` or `server/discover`. Whatever is missing or of another shape is taken to be unsaid.
    pub(super) fn read(result: &RawValue, masks: &Masks) -> Option<Self> {
        let Value::Object(mut result) = serde_json::from_str(result.get()).ok()? else {
            return None;
        };
        let version = result.get("protocolVersion").and_then(Value::as_str);
        // It becomes a header.
        let version = version.filter(|it| {
            let is_sound = it.bytes().all(|it| it.is_ascii_graphic());
            is_sound && !it.is_empty() && it.len() <= LONGEST_VERSION
        });
        let version = version.unwrap_or(UNSAID_VERSION).to_owned();
        let of_itself = |key: &str| {
            // Since 2026-07-28 it stands in `_meta`.
            let newer = result.get("_meta").and_then(|it| it.get(SERVER_INFO));
            let info = newer.or_else(|| result.get("serverInfo"));
            let text = info.and_then(|it| it.get(key)?.as_str());
            masks.beginning(text.unwrap_or_default(), LONGEST_NAME)
        };
        Some(Self {
            name: of_itself("name"),
            server_version: of_itself("version"),
            version,
            instructions: match result.remove("instructions") {
                Some(Value::String(text)) if !text.trim().is_empty() => Some(text),
                _ => None,
            },
            capabilities: match result.remove("capabilities") {
                Some(Value::Object(capabilities)) => capabilities,
                _ => Map::new(),
            },
        })
    }

    pub(super) fn declares(&self, capability: &str) -> bool {
        let declared = self.capabilities.get(capability);
        declared.is_some_and(|it| !matches!(it, Value::Null | Value::Bool(false)))
    }

    /// Returns what the server says that it will tell of.
    pub(super) fn announced(&self) -> impl Iterator<Item = News> {
        let lists = [
            ("tools", News::Tools),
            ("prompts", News::Prompts),
            ("resources", News::Resources),
        ];
        let announced = lists.into_iter().filter(|(name, _)| {
            let list = self.capabilities.get(*name);
            list.and_then(|it| it.get("listChanged")) == Some(&Value::Bool(true))
        });
        announced.map(|(_, news)| news)
    }
}
