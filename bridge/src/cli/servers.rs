//! `clopen-mcp servers`: which there are, and what of them is on.

mod add;
mod approve;
mod browse;
mod check;
mod found;
mod inputs;
mod show;

use super::{Failure, NO, import, in_full, print, print_json};
use crate::{
    app,
    config::Config,
    credentials::Vault,
    store::{ExternalServer, Store, now},
    upstream::{Entry, Upstreams},
};
use clap::Subcommand as ClapSubcommand;
use serde::Serialize;
use serde_json::json;
use std::{collections::BTreeMap, process::ExitCode};
use tool_runtime::{Dispatcher, Selection, Server, ServerSelection, View};

#[derive(Debug, ClapSubcommand)]
pub(super) enum Command {
    #[command(flatten)]
    Ours(Ours),
    #[command(flatten)]
    Offered(browse::Command),
}

/// What is done with the servers that there are.
#[derive(Debug, ClapSubcommand)]
pub(super) enum Ours {
    /// List the servers, and what is off
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add an external server, of a registry or by hand, and ask it for its tools
    Add(add::Add),
    /// Show a server: where it comes from, what is started or reached for it, what state it is in
    Show(show::One),
    /// List the tools of a server, and which are on
    Tools(show::One),
    /// Change what an external server of a registry was told
    Set(show::Set),
    /// Take over the servers that stand in the configuration of an engine
    Import(import::Import),
    /// Ask external servers for their tools, and say what is wrong with each and what to do
    Check {
        /// One of them, instead of all
        server: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what the program of an external server has written to its error output
    Logs {
        /// The server
        server: String,
        /// How many of the last lines
        #[arg(long, default_value_t = 100)]
        lines: usize,
    },
    /// Approve an external server's tools as they are; what changes later is held back
    Approve {
        /// The server
        server: String,
    },
    /// Remove an external server
    Remove {
        /// The server
        server: String,
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
    /// Where it comes from, unless it is one of this program.
    source: Option<&'a str>,
}

pub(super) async fn run(
    command: Command,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<ExitCode, Failure> {
    let store = Store::open(&config.data, config.database_url.as_ref()).await?;
    let ran = match command {
        Command::Ours(command) => ours(command, config, variables, &store).await,
        Command::Offered(command) => command.run(config, variables, &store).await,
    };
    store.close().await;
    ran
}

async fn ours(
    command: Ours,
    config: &Config,
    variables: &BTreeMap<String, String>,
    store: &Store,
) -> Result<ExitCode, Failure> {
    let switches = store.switches().await?;
    let upstreams = app::upstreams(config, variables, store).await?;
    let external = store.external_servers().await?;
    let dispatcher =
        app::dispatcher_with(config, variables, &switches, Some(upstreams.clone())).await?;
    match command {
        Ours::List { json } => {
            let view = dispatcher.view();
            let servers = view.servers().map(|it| described(it, &view, &external));
            let servers: Vec<Described<'_>> = servers.collect();
            if json {
                print_json(&json!({ "servers": servers }))?;
            } else {
                for server in &servers {
                    print(line(server))?;
                }
            }
        }
        Ours::Add(add) => {
            let names = view_names(&dispatcher);
            add.run(&names, config, variables, store).await?;
        }
        Ours::Show(one) => {
            one.show(&dispatcher, &external, config, variables, store)
                .await?;
        }
        Ours::Tools(one) => one.tools(&dispatcher)?,
        Ours::Set(set) => set.run(&external, config, variables, store).await?,
        Ours::Import(import) => {
            let names = view_names(&dispatcher);
            import::run(&import, &names, config, variables, store).await?;
        }
        Ours::Check { server, json } => {
            return check::run(server.as_deref(), json, &external, &upstreams).await;
        }
        Ours::Approve { server } => approve::run(&server, &external, &upstreams).await?,
        Ours::Logs { server, lines } => logs(&server, lines, &external, config)?,
        Ours::Remove { server } => {
            if !store.delete_external_server(&server).await? {
                return Err(no_such(&server, &external).into());
            }
            app::journals(config).remove(&server);
            print(format!("`{server}` is removed"))?;
        }
        Ours::Enable(it) => {
            switch(&it, true, store, &dispatcher, config).await?;
            let is_external = external.iter().any(|known| known.name == it.server);
            if it.tool.is_none() && is_external {
                // It stays on, whatever is wrong with it.
                check::run(Some(&it.server), false, &external, &upstreams).await?;
            }
        }
        Ours::Disable(it) => switch(&it, false, store, &dispatcher, config).await?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn no_such(name: &str, external: &[ExternalServer]) -> String {
    let known: Vec<String> = external.iter().map(|it| format!("`{}`", it.name)).collect();
    if known.is_empty() {
        format!("there is no external server `{name}`; none has been added")
    } else {
        let known = known.join(", ");
        format!("there is no external server `{name}`; there are {known}")
    }
}

fn view_names(dispatcher: &Dispatcher) -> Vec<String> {
    let view = dispatcher.view();
    view.servers().map(|it| it.name.clone()).collect()
}

/// Keeps an external server.
pub(super) async fn keep(entry: &Entry, config: &Config, store: &Store) -> Result<(), Failure> {
    let sealed = entry.sealed(&Vault::open(&config.data)?, now())?;
    store.save_external_server(&sealed).await?;
    Ok(())
}

/// Asks a server for its tools, and says what came of it; returns whether it has told them. One that hasn't stays, and
/// is asked again.
pub(super) async fn ask(name: &str, upstreams: &Upstreams) -> Result<bool, Failure> {
    match upstreams.list(name).await {
        Ok(notes) => {
            print(format!(
                "`{name}` is there, with {} tools",
                upstreams.count(name)
            ))?;
            for note in notes {
                eprintln!("  {note}");
            }
            Ok(true)
        }
        Err(error) => {
            print(format!("`{name}` is kept, but can't be used yet"))?;
            eprintln!("warning: {}", in_full(&error));
            Ok(false)
        }
    }
}

fn logs(
    server: &str,
    lines: usize,
    external: &[ExternalServer],
    config: &Config,
) -> Result<(), Failure> {
    if !external.iter().any(|it| it.name == server) {
        return Err(no_such(server, external).into());
    }
    let last = app::journals(config).last(server, lines)?;
    if last.is_empty() {
        eprintln!("`{server}` has written nothing; only programs that are started here do");
    }
    for line in last {
        print(line)?;
    }
    Ok(())
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

fn described<'a>(server: &'a Server, view: &View, external: &'a [ExternalServer]) -> Described<'a> {
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
        source: external
            .iter()
            .find(|it| it.name == server.name)
            .map(|it| it.source.as_str()),
    }
}

fn line(server: &Described<'_>) -> String {
    let Described { name, version, .. } = server;
    let state = on_or_off(server.enabled);
    let mut facts = vec![format!("{name:<20} {version:<8}"), state.to_owned()];
    if !server.tools_off.is_empty() {
        facts.push(format!("without {}", server.tools_off.join(", ")));
    }
    if let Some(source) = server.source {
        facts.push(format!("external, {source}"));
    }
    if let Some(reason) = server.unavailable {
        facts.push(format!("not available: {reason}"));
    }
    facts.join("  ")
}

fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
