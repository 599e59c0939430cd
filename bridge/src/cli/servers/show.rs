//! `clopen-mcp servers show|set|tools`: one server, what it was made of, and what it offers.

use super::{add, browse::programs, inputs, keep, no_such, on_or_off};
use crate::{
    catalog::{Plan, Record, Status, Way, ways},
    cli::{Failure, import::reached, print, print_json, tools::first_sentence},
    config::Config,
    credentials::Vault,
    store::{ExternalServer, Store},
    upstream::{Entry, Origin},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tool_runtime::{Dispatcher, Server, View};

/// The server that is meant, and how it is printed.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct One {
    /// The server
    server: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is to be changed.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Set {
    /// The server
    server: String,
    /// What it wants to know; nothing after the `=` takes it back
    #[arg(value_name = "INPUT=VALUE", required = true)]
    inputs: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl One {
    /// Shows where a server comes from, what is started or reached for it, and what state it is in.
    pub(super) async fn show(
        &self,
        dispatcher: &Dispatcher,
        external: &[ExternalServer],
        config: &Config,
        variables: &BTreeMap<String, String>,
        store: &Store,
    ) -> Result<(), Failure> {
        let view = dispatcher.view();
        let server = of_view(&self.server, &view)?;
        let mut facts = Map::new();
        facts.insert("name".to_owned(), json!(server.name));
        let mut warnings = Vec::new();
        if let Some(stored) = external.iter().find(|it| it.name == server.name) {
            let entry = Entry::opened(stored, &Vault::open(&config.data)?)?;
            reach(&entry, self.json, variables, &mut facts)?;
            if let Some(origin) = &entry.origin {
                warnings = outdated(origin, store).await?;
            }
        }
        let selected = view.server(&server.name);
        let is_on = selected.is_some_and(|(_, it)| it.enabled);
        facts.insert("state".to_owned(), json!(on_or_off(is_on)));
        if let Some(unavailable) = &server.unavailable {
            facts.insert("notAvailable".to_owned(), json!(unavailable.reason));
        }
        facts.insert("tools".to_owned(), json!(server.tools.len()));
        if self.json {
            facts.insert("warnings".to_owned(), json!(warnings));
            return print_json(&facts);
        }
        for (what, it) in &facts {
            let shown = plain(it);
            if !shown.is_empty() {
                print(format!("{:<14}{shown}", label(what)))?;
            }
        }
        for warning in warnings {
            eprintln!("warning: {warning}");
        }
        Ok(())
    }

    /// Lists the tools of a server, and which are on.
    pub(super) fn tools(&self, dispatcher: &Dispatcher) -> Result<(), Failure> {
        let view = dispatcher.view();
        let server = of_view(&self.server, &view)?;
        let is_on = |name: &str| {
            let mut enabled = view.enabled_tools(&server.name);
            enabled.any(|it| it.name.as_str() == name)
        };
        if self.json {
            let tools = server.tools.iter().map(|it| {
                json!({
                    "name": it.name.as_str(),
                    "enabled": is_on(&it.name),
                    "description": it.description,
                })
            });
            let tools: Vec<Value> = tools.collect();
            return print_json(&json!({ "server": server.name, "tools": tools }));
        }
        for tool in &server.tools {
            let state = on_or_off(is_on(&tool.name));
            let description = first_sentence(&tool.description);
            print(format!("{:<32} {state:<4} {description}", tool.name))?;
        }
        if let Some(unavailable) = &server.unavailable {
            eprintln!("not available: {}", unavailable.reason);
        }
        Ok(())
    }
}

fn of_view<'v>(name: &str, view: &'v View) -> Result<&'v Server, Failure> {
    let mut servers = view.servers();
    if let Some(server) = servers.find(|it| it.name == name) {
        return Ok(server);
    }
    let known: Vec<String> = view.servers().map(|it| format!("`{}`", it.name)).collect();
    Err(format!(
        "there is no server `{name}`; there are {}",
        known.join(", ")
    )
    .into())
}

fn label(fact: &str) -> &str {
    match fact {
        "notAvailable" => "not available",
        fact => fact,
    }
}

fn plain(fact: &Value) -> String {
    match fact {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Says how a server is reached, without a secret.
fn reach(
    entry: &Entry,
    is_json: bool,
    variables: &BTreeMap<String, String>,
    facts: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let (shown, given, is_command) = if let Some(origin) = &entry.origin {
        facts.insert("from".to_owned(), json!(origin.registry));
        facts.insert("server".to_owned(), json!(origin.name));
        facts.insert("version".to_owned(), json!(origin.version));
        let plan = planned(origin, variables)?;
        facts.insert(
            "inputs".to_owned(),
            json!(origin.inputs.keys().collect::<Vec<_>>()),
        );
        if is_json {
            facts.insert("argv".to_owned(), json!(plan.words()));
        }
        let given = plan.given().into_iter().map(str::to_owned).collect();
        (plan.shown(), given, matches!(plan, Plan::Command { .. }))
    } else {
        facts.insert("from".to_owned(), json!(entry.source));
        let (shown, given) = reached(&entry.address);
        let given: Vec<String> = given.into_iter().map(str::to_owned).collect();
        let is_command = matches!(entry.address, crate::upstream::Address::Command { .. });
        (shown, given, is_command)
    };
    let (what, given_as) = if is_command {
        ("command", "variables")
    } else {
        ("address", "headers")
    };
    facts.insert(what.to_owned(), json!(shown));
    facts.insert(given_as.to_owned(), json!(given));
    Ok(())
}

/// Makes again what a server was made of.
fn planned(origin: &Origin, variables: &BTreeMap<String, String>) -> Result<Plan, Failure> {
    let record = Record::read(&origin.record)?;
    let ways: Vec<Way> = ways(&record);
    let recipe = ways.get(origin.way).and_then(|it| it.recipe.as_ref().ok());
    let recipe = recipe.ok_or("its record can't be used any more; remove it and add it again")?;
    Ok(recipe.fill(&origin.inputs, &origin.environment, &programs(variables))?)
}

/// Says whether the registry has another word on a server by now.
async fn outdated(origin: &Origin, store: &Store) -> Result<Vec<String>, Failure> {
    let Origin {
        registry,
        name,
        version,
        ..
    } = origin;
    let kept = store.catalog_servers(name).await?;
    let kept = kept.iter().find(|it| it.registry == *registry);
    let sync = store.catalog_sync(registry).await?;
    let mut warnings = Vec::new();
    match kept {
        Some(kept) => {
            if Status::of(&kept.status) == Status::Deprecated {
                warnings.push(format!("`{name}` is deprecated: {}", kept.status_message));
            }
            if kept.version != *version {
                warnings.push(format!("the registry has version {} of it", kept.version));
            }
        }
        None if sync.is_some_and(|it| it.synced_at.is_some()) => {
            warnings.push(format!(
                "`{name}` is no longer in the registry `{registry}`"
            ));
        }
        None => {}
    }
    Ok(warnings)
}

impl Set {
    /// Changes inputs of a server of a registry, and makes it anew.
    pub(super) async fn run(
        &self,
        external: &[ExternalServer],
        config: &Config,
        variables: &BTreeMap<String, String>,
        store: &Store,
    ) -> Result<(), Failure> {
        let name = &self.server;
        let stored = external.iter().find(|it| it.name == *name);
        let stored = stored.ok_or_else(|| no_such(name, external))?;
        let mut entry = Entry::opened(stored, &Vault::open(&config.data)?)?;
        let origin = entry.origin.as_mut().ok_or_else(|| {
            format!("`{name}` is of no registry, and so has no inputs; remove it and add it again")
        })?;
        for (key, said) in inputs::values(&self.inputs)? {
            if said.iter().all(|it| it.expose().is_empty()) {
                origin.inputs.remove(&key);
            } else {
                origin.inputs.insert(key, said);
            }
        }
        let plan = planned(origin, variables);
        let plan = plan.map_err(|error| format!("`{name}` stays as it was:\n{error}"))?;
        let entry = add::entry(name, origin.clone(), plan);
        keep(&entry, config, store).await?;
        let shown = json!({ "name": name });
        add::told(name, shown, self.json, config, variables, store).await
    }
}
