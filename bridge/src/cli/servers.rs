//! `clopen-mcp servers`: which there are, and what of them is on.

use super::{Failure, print, print_json};
use crate::{app, config::Config, store::Store};
use clap::Subcommand as ClapSubcommand;
use serde::Serialize;
use serde_json::json;
use std::{collections::BTreeMap, process::ExitCode};
use tool_runtime::{Dispatcher, Selection, Server, ServerSelection, View};

#[derive(Debug, ClapSubcommand)]
pub(super) enum Command {
    /// List the servers, and what is off
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Switch a server or one of its tools on; a running bridge takes it up at once
    Enable(Switched),
    /// Switch a server or one of its tools off; a running bridge takes it up at once
    Disable(Switched),
}

/// What is to be switched.
#[derive(Debug, clap::Args)]
pub(super) struct Switched {
    /// The server
    server: String,
    /// One of its tools, instead of the server itself
    tool: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Described<'a> {
    name: &'a str,
    version: &'a str,
    enabled: bool,
    tools_off: Vec<&'a str>,
    unavailable: Option<&'a str>,
}

pub(super) async fn run(
    command: Command,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<ExitCode, Failure> {
    let store = Store::open(&config.data, config.database_url.as_ref()).await?;
    let switches = store.switches().await?;
    let dispatcher = app::dispatcher_with(config, variables, &switches).await?;
    match command {
        Command::List { json } => {
            let view = dispatcher.view();
            let servers = view.servers().map(|it| described(it, &view));
            let servers: Vec<Described<'_>> = servers.collect();
            if json {
                print_json(&json!({ "servers": servers }))?;
            } else {
                for server in &servers {
                    print(line(server))?;
                }
            }
        }
        Command::Enable(it) => switch(&it, true, &store, &dispatcher, config).await?,
        Command::Disable(it) => switch(&it, false, &store, &dispatcher, config).await?,
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

async fn switch(
    Switched { server, tool }: &Switched,
    on: bool,
    store: &Store,
    dispatcher: &Dispatcher,
    config: &Config,
) -> Result<(), Failure> {
    // A selection that names what isn't there says so, and what may have been meant.
    let named = ServerSelection {
        without: tool.iter().cloned().collect(),
        ..ServerSelection::default()
    };
    dispatcher.select(Selection::all().server(server, named))?;
    store.set_switch(server, tool.as_deref(), on).await?;
    let what = tool
        .as_ref()
        .map_or_else(|| server.clone(), |tool| format!("{server}.{tool}"));
    print(format!("`{what}` is {}", on_or_off(on)))?;
    if config.servers.contains_key(server) {
        eprintln!(
            "warning: the settings have a section [servers.{server}], which has the last word"
        );
    }
    Ok(())
}

fn described<'a>(server: &'a Server, view: &View) -> Described<'a> {
    let on = |tool: &str| {
        view.enabled_tools(&server.name)
            .any(|it| it.name.as_str() == tool)
    };
    let enabled = view
        .server(&server.name)
        .is_some_and(|(_, selected)| selected.enabled);
    let selectable = enabled && server.unavailable.is_none();
    let tools = server.tools.iter().map(|it| it.name.as_str());
    Described {
        name: &server.name,
        version: &server.version,
        enabled,
        tools_off: tools.filter(|it| selectable && !on(it)).collect(),
        unavailable: server.unavailable.as_ref().map(|it| &*it.reason),
    }
}

fn line(server: &Described<'_>) -> String {
    let Described { name, version, .. } = server;
    let state = on_or_off(server.enabled);
    let mut facts = vec![format!("{name:<20} {version:<8}"), state.to_owned()];
    if !server.tools_off.is_empty() {
        facts.push(format!("without {}", server.tools_off.join(", ")));
    }
    if let Some(reason) = server.unavailable {
        facts.push(format!("not available: {reason}"));
    }
    facts.join("  ")
}

fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
