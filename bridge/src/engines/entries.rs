//! The servers that stand in an engine's file: which are there, and which of them lead to this bridge.

use super::{
    Engine, Folders, Scope, Step, edit,
    plan::{PlanError, read},
};
use serde_json::Value;
use std::path::PathBuf;

/// Servers under the names by which an engine knows them.
pub type Named = Vec<(String, Value)>;

/// Returns an engine's file with the servers in it, in their order; `None` if there is no file.
pub fn all(
    engine: &Engine,
    scope: Scope,
    folders: &Folders,
) -> Result<Option<(PathBuf, Named)>, PlanError> {
    let Some(file) = engine.place(scope).and_then(|it| it.file(folders)) else {
        return Ok(None);
    };
    let Some(text) = read(&file)? else {
        return Ok(None);
    };
    let servers = edit::get(&text, engine.format, &engine.entry_at[..1]);
    let servers = servers.map_err(|source| PlanError::Edit {
        file: file.clone(),
        source,
    })?;
    let named = match servers {
        Some(Value::Object(servers)) => servers.into_iter().collect(),
        Some(Value::Array(servers)) => servers
            .into_iter()
            .filter_map(|it| Some((it.get("name")?.as_str()?.to_owned(), it)))
            .collect(),
        _ => Vec::new(),
    };
    Ok(Some((file, named)))
}

/// Returns the entries of external servers that connecting has written.
pub fn external(engine: &Engine, scope: Scope, folders: &Folders) -> Result<Named, PlanError> {
    let (_, mut named) = all(engine, scope, folders)?.unwrap_or_default();
    named.retain(|(name, entry)| is_external(engine, name, entry));
    Ok(named)
}

/// Says whether connecting has written an entry for an external server, at whatever address the bridge was then.
pub fn is_external(engine: &Engine, name: &str, entry: &Value) -> bool {
    let address = address(entry).unwrap_or_default();
    let (base, query) = address.split_once('?').unwrap_or_default();
    let mut facts = form_urlencoded::parse(query.as_bytes());
    base.ends_with(&format!("/ext/{name}"))
        && facts.any(|(fact, value)| fact == "engine" && value == engine.id)
}

/// Returns the address in an entry, wherever it stands in it.
pub fn address(entry: &Value) -> Option<String> {
    match entry {
        Value::String(text) if text.contains("://") => Some(text.clone()),
        Value::Object(members) => members.values().find_map(address),
        _ => None,
    }
}

/// Returns the servers that the address of our own entry leaves out, because they have an entry each.
pub fn left_out(address: &str) -> Vec<String> {
    let (_, query) = address.split_once('?').unwrap_or_default();
    let facts = form_urlencoded::parse(query.as_bytes());
    let left_out = facts.filter(|(fact, _)| fact == "without");
    left_out.map(|(_, server)| server.into_owned()).collect()
}

/// Returns the way to a server in an engine's file.
pub(super) fn way<'a>(engine: &Engine, name: &'a str) -> Vec<Step<'a>> {
    let last = match engine.entry_at[1] {
        Step::Key(_) => Step::Key(name),
        Step::Element { key, .. } => Step::Element { key, name },
    };
    vec![engine.entry_at[0], last]
}
