//! `clopen-mcp engines`: which coding agents are here, which are connected, and what keeps them from their tools.

use super::{
    Failure,
    connect::{bearer, local_url},
    print, print_json,
};
use crate::{
    config::Config,
    engines::{ENGINES, Engine, Folders, Scope, TOKEN_VARIABLE, entries, plan},
    secret::Secret,
    store::{Sighting, Store, now, service_token},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

/// What is known of one engine without asking the bridge.
pub(super) struct State {
    pub(super) engine: &'static Engine,
    pub(super) is_installed: bool,
    /// The files that have our entry.
    pub(super) connected: Vec<Connected>,
    pub(super) seen: Vec<Sighting>,
    /// What keeps it from its tools, and what to do.
    pub(super) problems: Vec<String>,
}

/// An entry of ours in a file.
pub(super) struct Connected {
    pub(super) scope: Scope,
    pub(super) file: PathBuf,
    /// Where the engine finds the bridge.
    pub(super) address: Option<String>,
    /// What it sends.
    pub(super) token: Option<Secret>,
    /// The external servers that have an entry each, and where the engine finds them.
    pub(super) external: Vec<(String, Option<String>)>,
}

impl Connected {
    /// Whether it connects to another machine.
    fn is_remote(&self) -> bool {
        let address = self.address.as_deref().unwrap_or_default();
        let host = address.split("://").nth(1).unwrap_or_default();
        !["127.", "localhost", "[::1]"]
            .iter()
            .any(|it| host.starts_with(it))
    }
}

pub(super) async fn run(
    json: bool,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<ExitCode, Failure> {
    let store = Store::open(&config.data, config.database_url.as_ref()).await?;
    let folders = folders(variables)?;
    let mut states = Vec::new();
    for engine in ENGINES {
        states.push(state(engine, &folders, config, variables, &store).await?);
    }
    store.close().await;
    if json {
        let engines: Vec<Value> = states.iter().map(described).collect();
        print_json(&json!({ "engines": engines }))?;
    } else {
        for state in &states {
            print(lines(state, &folders, now()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The folders of this person; the project is the current folder.
pub(super) fn folders(variables: &BTreeMap<String, String>) -> Result<Folders, Failure> {
    let folders = Folders::of(variables, Some(std::env::current_dir()?));
    folders.ok_or_else(|| "there is no home folder to look for settings in; set HOME".into())
}

/// Looks at an engine's files, and at what its token is worth.
pub(super) async fn state(
    engine: &'static Engine,
    folders: &Folders,
    config: &Config,
    variables: &BTreeMap<String, String>,
    store: &Store,
) -> Result<State, Failure> {
    let servers = store.external_times().await?.into_keys().collect();
    let mut seen = store.sightings().await?;
    seen.retain(|it| it.engine == engine.id);
    let mut state = State {
        engine,
        is_installed: engine.is_installed(folders),
        connected: Vec::new(),
        seen,
        problems: Vec::new(),
    };
    for scope in [Scope::User, Scope::Project] {
        match plan::connected(engine, scope, folders) {
            Ok(None) => {}
            Ok(Some((file, entry))) => {
                let written = bearer(&entry);
                let is_written = written.is_some();
                let from_variable = || variables.get(TOKEN_VARIABLE).map(Secret::new);
                let token = written.or_else(from_variable);
                let external = entries::external(engine, scope, folders)?.into_iter();
                let external = external.map(|(name, it)| (name, entries::address(&it)));
                let connected = Connected {
                    scope,
                    address: entries::address(&entry),
                    token,
                    external: external.collect(),
                    file,
                };
                let problems = &mut state.problems;
                problems.extend(wrong_address(&connected, config, folders));
                problems.extend(wrong_entries(engine, &connected, &servers, folders));
                // What another machine's bridge makes of its tokens is its own affair.
                if !config.no_auth && !connected.is_remote() {
                    let wrong = wrong_token(engine, &connected, is_written, config, folders, store);
                    problems.extend(wrong.await?);
                }
                state.connected.push(connected);
            }
            Err(error) => state.problems.push(super::in_full(&error)),
        }
    }
    Ok(state)
}

fn wrong_address(connected: &Connected, config: &Config, folders: &Folders) -> Option<String> {
    let file = folders.shown(&connected.file);
    let Some(address) = &connected.address else {
        return Some(format!("{file}: our entry has no address; connect again"));
    };
    let ours = local_url(config);
    let base = address.split('?').next().unwrap_or_default();
    (base != ours && !connected.is_remote())
        .then(|| format!("{file}: it looks for the bridge at {base}, and this one is at {ours}"))
}

/// What is wrong with the entries of external servers: whose are they, where do they lead, and are their tools there twice?
fn wrong_entries(
    engine: &Engine,
    connected: &Connected,
    servers: &BTreeSet<String>,
    folders: &Folders,
) -> Vec<String> {
    let file = folders.shown(&connected.file);
    let address = connected.address.as_deref().unwrap_or_default();
    let base = address.split('?').next().unwrap_or_default();
    let left_out = entries::left_out(address);
    let again = format!("`clopen-mcp connect {}` puts it right", engine.id);
    let mut problems = Vec::new();
    for (name, leads) in &connected.external {
        let leads = leads.as_deref().unwrap_or_default();
        let leads = leads.split('?').next().unwrap_or_default();
        // Which servers another machine's bridge has is not known here.
        if !connected.is_remote() && !servers.contains(name) {
            problems.push(format!(
                "{file}: there is no external server `{name}` any more, and an entry for it; {again}"
            ));
        } else if leads != format!("{base}/ext/{name}") {
            problems.push(format!(
                "{file}: the entry `{name}` leads to {leads}, and ours to {base}; {again}"
            ));
        } else if !left_out.contains(name) {
            problems.push(format!(
                "{file}: the tools of `{name}` are there twice; {again}"
            ));
        }
    }
    let has_entry = |name: &String| connected.external.iter().any(|(it, _)| it == name);
    let missing = left_out.iter().filter(|it| !has_entry(it));
    let missing = missing.filter(|it| connected.is_remote() || servers.contains(*it));
    problems.extend(missing.map(|name| {
        format!("{file}: ours leaves `{name}` out, and there is no entry for it; {again}")
    }));
    problems
}

async fn wrong_token(
    engine: &Engine,
    connected: &Connected,
    is_written: bool,
    config: &Config,
    folders: &Folders,
    store: &Store,
) -> Result<Option<String>, Failure> {
    let file = folders.shown(&connected.file);
    let id = engine.id;
    let Some(token) = &connected.token else {
        let service = config.data.join("token");
        let service = service.display();
        return Ok(Some(format!(
            "{file}: {TOKEN_VARIABLE} isn't set in this environment; where it isn't set for {} either, the bridge refuses it: export {TOKEN_VARIABLE}=\"$(cat '{service}')\"",
            engine.title
        )));
    };
    if is_service_token(token, config)? {
        return Ok(None);
    }
    let place = if is_written { &*file } else { TOKEN_VARIABLE };
    Ok(match store.look_up_token(token.expose()).await? {
        Some(found) if found.revoked_at.is_none() => None,
        Some(found) => Some(format!(
            "the token in {place} is `{}`, which is revoked; {}",
            found.name,
            renew(id, is_written)
        )),
        None => Some(format!(
            "the token in {place} is none of this bridge's (another data folder?); {}",
            renew(id, is_written)
        )),
    })
}

fn renew(id: &str, is_written: bool) -> String {
    if is_written {
        format!("`clopen-mcp connect {id}` writes a new one")
    } else {
        format!("make one with `clopen-mcp tokens create {id}`, and set the variable to it")
    }
}

pub(super) fn is_service_token(token: &Secret, config: &Config) -> Result<bool, Failure> {
    let service = match &config.token {
        Some(service) => service.clone(),
        None => service_token(&config.data)?.token,
    };
    Ok(service.is(token.expose()))
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "user",
        Scope::Project => "project",
    }
}

fn described(state: &State) -> Value {
    let connected = state.connected.iter().map(|it| {
        json!({
            "scope": scope_name(it.scope),
            "file": it.file,
            "address": it.address,
            "external": it.external.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        })
    });
    let seen = state.seen.iter().map(|it| {
        json!({
            "project": it.project,
            "client": it.client,
            "version": it.client_version,
            "protocol": it.protocol,
            "seenAt": it.seen_at,
        })
    });
    json!({
        "engine": state.engine.id,
        "title": state.engine.title,
        "installed": state.is_installed,
        "connected": connected.collect::<Vec<_>>(),
        "seen": seen.collect::<Vec<_>>(),
        "problems": state.problems,
    })
}

fn lines(state: &State, folders: &Folders, now: i64) -> String {
    let Engine { id, title, .. } = state.engine;
    let installed = if state.is_installed {
        "installed"
    } else {
        "not found"
    };
    let connected = if state.connected.is_empty() {
        "not connected"
    } else {
        "connected"
    };
    let mut lines = vec![format!("{id:<10} {title:<12} {installed:<10} {connected}")];
    for connected in &state.connected {
        let file = folders.shown(&connected.file);
        let external = connected.external.iter().map(|(name, _)| name.as_str());
        let external: Vec<&str> = external.collect();
        let each = if external.is_empty() {
            String::new()
        } else {
            format!(", with an entry each for {}", external.join(", "))
        };
        lines.push(format!("    {}: {file}{each}", scope_name(connected.scope)));
    }
    lines.extend(state.seen.iter().map(|it| seen_line(it, now)));
    let problems = state.problems.iter();
    lines.extend(problems.map(|it| format!("    problem: {it}")));
    lines.join("\n")
}

fn seen_line(sighting: &Sighting, now: i64) -> String {
    let ago = u64::try_from((now - sighting.seen_at) / 1_000).unwrap_or_default();
    let ago = humantime::format_duration(Duration::from_secs(ago));
    let project = if sighting.project.is_empty() {
        String::new()
    } else {
        format!(" in {}", Path::new(&sighting.project).display())
    };
    format!(
        "    seen {ago} ago{project}: {} {}, protocol {}",
        sighting.client, sighting.client_version, sighting.protocol
    )
}
