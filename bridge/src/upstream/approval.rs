//! What a person has approved of a server's tools: one that is other than it was then is held back.

use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a model reads of a tool, and what decides how it is called.
const APPROVED: [&str; 5] = [
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
];

/// A tool that is held back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// The tool.
    pub tool: String,
    /// What was approved; `None` if there was no such tool.
    pub before: Option<String>,
    /// What it says of itself now.
    pub now: String,
}

impl Held {
    /// Says why a call does not happen, and what to do.
    pub(super) fn reason(&self, server: &str) -> String {
        let why = match self.before {
            Some(_) => "it has changed since the tools of its server were approved",
            None => "it is new since the tools of its server were approved",
        };
        format!(
            "{why}; `clopen-mcp servers check {server}` shows how, `clopen-mcp servers approve {server}` approves it as it is"
        )
    }
}

/// Returns what each tool says of itself, in one form whatever the order of its members; of several with one name, the
/// first, which is the one that is served.
pub(super) fn definitions(listed: &[Value]) -> BTreeMap<String, String> {
    let mut definitions = BTreeMap::new();
    for item in listed {
        if let Some(name) = item.get("name").and_then(Value::as_str) {
            definitions
                .entry(name.to_owned())
                .or_insert_with(|| definition(item));
        }
    }
    definitions
}

fn definition(item: &Value) -> String {
    let members = APPROVED.iter().filter_map(|&key| {
        let value = item.get(key)?.clone();
        Some((key.to_owned(), value))
    });
    let mut definition = Value::Object(members.collect::<Map<String, Value>>());
    definition.sort_all_objects();
    serde_json::to_string_pretty(&definition).expect("JSON can be written")
}

/// Returns the tools that are other than approved, by name.
pub(super) fn held(
    approved: &BTreeMap<String, String>,
    listed: &[Value],
) -> BTreeMap<String, Held> {
    let definitions = definitions(listed).into_iter();
    let others = definitions.filter(|(name, now)| approved.get(name) != Some(now));
    let held = others.map(|(name, now)| {
        let held = Held {
            tool: name.clone(),
            before: approved.get(&name).cloned(),
            now,
        };
        (name, held)
    });
    held.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_model_reads_is_compared() {
        let before = json!({ "name": "a", "description": "A.", "inputSchema": { "x": 1, "y": 2 } });
        let approved = definitions(&[before]);
        let held = |tool: Value| held(&approved, &[tool]).into_keys().collect::<Vec<_>>();
        let nothing: [&str; 0] = [];
        let same = json!({ "inputSchema": { "y": 2, "x": 1 }, "description": "A.", "name": "a", "icons": [] });
        assert_eq!(held(same), nothing);
        for other in [
            json!({ "name": "a", "description": "B.", "inputSchema": { "x": 1, "y": 2 } }),
            json!({ "name": "a", "description": "A.", "inputSchema": { "x": 1 } }),
            json!({ "name": "a", "description": "A.", "inputSchema": { "x": 1, "y": 2 }, "annotations": {} }),
        ] {
            assert_eq!(held(other), ["a"]);
        }
        assert_eq!(held(json!({ "name": "b" })), ["b"]);
    }
}
