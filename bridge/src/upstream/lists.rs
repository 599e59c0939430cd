//! What a server lists, page by page, and how that is kept.

use super::{
    connector::{Client, Era},
    failure::ExternalError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, time::Duration};

/// How long a list is good of which the server doesn't say how long.
const LISTED: Duration = Duration::from_mins(10);

/// How long a list is good at least, and at most, whatever the server says.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_hours(24);

/// How many bytes all pages of a list may have.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// How many pages a list may have.
const MOST_PAGES: usize = 100;

/// How many letters of what a server says of itself are kept.
const LONGEST_INSTRUCTIONS: usize = 20_000;

/// What a server has told of itself and of what it offers: items as they came.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Heard {
    pub(super) tools: Vec<Value>,
    pub(super) resources: Vec<Value>,
    pub(super) templates: Vec<Value>,
    pub(super) prompts: Vec<Value>,
    pub(super) version: String,
    pub(super) instructions: String,
    /// Whether it speaks 2026-07-28.
    pub(super) is_modern: bool,
    /// Whether it says that it has resources, listed or not.
    pub(super) has_resources: bool,
    /// For how many milliseconds it says that its lists are good: the shortest of them.
    pub(super) ttl_ms: Option<u64>,
    /// Lists that it has announced and not given.
    pub(super) missing: Vec<String>,
}

#[derive(Serialize)]
struct Page<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

impl Heard {
    /// Reads what was kept. What older versions kept is a list of tools.
    pub(super) fn read(kept: &str) -> Option<Self> {
        match serde_json::from_str(kept).ok()? {
            Value::Array(tools) => Some(Self {
                tools,
                ..Self::default()
            }),
            other => serde_json::from_value(other).ok(),
        }
    }

    /// Asks a server for everything that it offers. Without its tools it is of no use; further lists that fail are named.
    pub(super) async fn of(name: &str, client: &Client) -> Result<Self, ExternalError> {
        let mut ttl_ms = None;
        let mut heard = Self {
            tools: list(name, client, "tools/list", "tools", &mut ttl_ms).await?,
            version: client.server_info().1.to_owned(),
            instructions: client
                .instructions()
                .unwrap_or_default()
                .chars()
                .take(LONGEST_INSTRUCTIONS)
                .collect(),
            is_modern: client.era() == Era::Modern,
            has_resources: client.declares("resources"),
            ..Self::default()
        };
        let further = [
            ("resources", "resources/list", "resources"),
            ("resources", "resources/templates/list", "resourceTemplates"),
            ("prompts", "prompts/list", "prompts"),
        ];
        for (capability, method, key) in further {
            if !client.declares(capability) {
                continue;
            }
            let listed = match list(name, client, method, key, &mut ttl_ms).await {
                Ok(listed) => listed,
                Err(error) => {
                    heard.missing.push(format!("{method}: {error}"));
                    continue;
                }
            };
            match key {
                "resources" => heard.resources = listed,
                "prompts" => heard.prompts = listed,
                _ => heard.templates = listed,
            }
        }
        heard.ttl_ms = ttl_ms;
        Ok(heard)
    }

    pub(super) fn offers_nothing(&self) -> bool {
        self.tools.is_empty()
            && self.resources.is_empty()
            && self.templates.is_empty()
            && self.prompts.is_empty()
    }

    /// The tools that a server with sessions wants to be called as tasks, and not otherwise.
    pub(super) fn only_tasks(&self) -> BTreeSet<String> {
        if self.is_modern {
            return BTreeSet::new();
        }
        let only = self.tools.iter().filter(|it| {
            let support = it.get("execution").and_then(|it| it.get("taskSupport"));
            support.is_some_and(|it| it == "required")
        });
        only.filter_map(|it| Some(it.get("name")?.as_str()?.to_owned()))
            .collect()
    }

    /// How long all of it is good.
    pub(super) fn good_for(&self) -> Duration {
        let said = self.ttl_ms.map(Duration::from_millis);
        said.unwrap_or(LISTED).clamp(SHORTEST, LONGEST)
    }

    pub(super) fn era(&self) -> Era {
        if self.is_modern {
            Era::Modern
        } else {
            Era::Legacy
        }
    }
}

/// Asks a server for its tools.
pub(super) async fn tools(name: &str, client: &Client) -> Result<Vec<Value>, ExternalError> {
    list(name, client, "tools/list", "tools", &mut None).await
}

/// Asks for all pages of a list.
async fn list(
    name: &str,
    client: &Client,
    method: &str,
    key: &str,
    ttl_ms: &mut Option<u64>,
) -> Result<Vec<Value>, ExternalError> {
    let unreadable = |reason: String| ExternalError::Unreadable {
        name: name.to_owned(),
        reason,
    };
    let mut listed = Vec::new();
    let mut bytes = 0;
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let page = Page {
            cursor: cursor.as_deref(),
        };
        let answer = client.request(method, &page).await?;
        bytes += answer.get().len();
        if bytes > MOST_BYTES {
            return Err(unreadable(format!("it has more than {MOST_BYTES} bytes")));
        }
        let mut answer: Map<String, Value> =
            serde_json::from_str(answer.get()).map_err(|error| unreadable(error.to_string()))?;
        let Some(Value::Array(items)) = answer.remove(key) else {
            return Err(unreadable(format!("there is no list `{key}` in it")));
        };
        listed.extend(items);
        if let Some(said) = answer.get("ttlMs").and_then(Value::as_u64) {
            *ttl_ms = Some(ttl_ms.map_or(said, |it| it.min(said)));
        }
        let next = answer.get("nextCursor").and_then(Value::as_str);
        // A server that gives the cursor again that it was given would be asked for ever.
        let next = next.filter(|it| !it.is_empty() && Some(*it) != cursor.as_deref());
        let Some(next) = next else { break };
        cursor = Some(next.to_owned());
    }
    Ok(listed)
}
