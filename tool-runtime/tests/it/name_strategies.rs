//! Names of servers and tools, as ours and others have them.

use proptest::prelude::*;
use std::collections::HashSet;
use tool_runtime::{LONGEST_TOOL_NAME, Names};

pub(crate) fn legal_server() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c](-?[a-c0-1]){0,3}",
        "[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,6}){0,5}"
    ]
    .prop_filter("it is our own name, or too long", |it| {
        it != "clopen-mcp" && it.len() <= 40
    })
}

pub(crate) fn legal_tool() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c](_?[a-c0-1]){0,3}",
        "(mcp_)?(clopen_mcp_)?[a-c](_[a-c]){0,1}",
        "[a-z][a-z0-9]{0,20}(_[a-z0-9]{1,12}){0,4}",
    ]
    .prop_filter("it is too long", |it| it.len() <= LONGEST_TOOL_NAME)
}

/// Names as external servers have them.
pub(crate) fn wild_name() -> impl Strategy<Value = String> {
    prop_oneof![
        legal_tool(),
        "(clopen-mcp[_-]|mcp__clopen[-_]mcp__|mcp__[a-b]__|mcp_|[a-b]_)?[x-y]([_.]?[x-y])?",
        "[a-bA-B](__?|[./ -])[a-b]",
        "[ -~]{1,60}",
        "\\PC{1,20}",
    ]
    .prop_filter("it has no name", |it| !it.trim().is_empty())
}

pub(crate) type Owned = Vec<(String, String)>;

pub(crate) fn entries(
    server: impl Strategy<Value = String>,
    tool: impl Strategy<Value = String>,
) -> impl Strategy<Value = Owned> {
    proptest::collection::vec((server, tool), 1..12).prop_map(|mut entries| {
        let mut seen = HashSet::new();
        entries.retain(|it| seen.insert(it.clone()));
        entries
    })
}

pub(crate) fn named(entries: &[(String, String)]) -> Names {
    Names::new(entries.iter().map(|(s, t)| (s.as_str(), t.as_str())))
}
