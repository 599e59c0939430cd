//! `clopen-mcp servers approve`: holds the tools of an external server to what they are now.

use super::{ExternalServer, Failure, Upstreams, no_such, print};
use crate::upstream::Held;
use similar::TextDiff;

/// How many lines of a change are shown.
const LONGEST_DIFF: usize = 200;

/// Approves what a server has last listed.
pub(super) async fn run(
    server: &str,
    external: &[ExternalServer],
    upstreams: &Upstreams,
) -> Result<(), Failure> {
    if !external.iter().any(|it| it.name == server) {
        return Err(no_such(server, external).into());
    }
    let held = upstreams.held(server);
    let tools = upstreams.approve(server).await?;
    print(format!(
        "`{server}` is approved with its {tools} tools; one that changes, or comes later, is held back"
    ))?;
    for it in &held {
        print(format!("  no longer held back: {}", what(it)))?;
        for line in diff(it) {
            print(format!("    {line}"))?;
        }
    }
    Ok(())
}

/// Says what is other than approved.
pub(super) fn what(held: &Held) -> String {
    let tool = held.tool.escape_debug();
    match held.before {
        Some(_) => format!("`{tool}` has changed"),
        None => format!("`{tool}` is new"),
    }
}

/// Shows how a tool differs from what was approved.
pub(super) fn diff(held: &Held) -> Vec<String> {
    let before = held.before.as_deref().unwrap_or_default();
    let diff = TextDiff::from_lines(before, &held.now);
    let diff = diff.unified_diff().context_radius(1).to_string();
    let lines = diff.lines().filter(|it| !it.starts_with('\\'));
    // A server's words don't steer the terminal.
    let shown = lines.map(|it| it.replace(char::is_control, "\u{fffd}"));
    shown.take(LONGEST_DIFF).collect()
}
