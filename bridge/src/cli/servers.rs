//! `clopen-mcp servers`: which there are, and what of them is on.

use super::{Failure, NO, import, in_full, print, print_json};
use crate::{
    app,
    config::Config,
    credentials::Vault,
    secret::Secret,
    store::{ExternalServer, Store, now},
    upstream::{Address, Entry, Upstreams},
};
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
    /// Add an external server, and ask it for its tools
    Add(Add),
    /// Take over the servers that stand in the configuration of an engine
    Import(import::Import),
    /// Ask an external server for its tools, and say what had to be changed or left out
    Check {
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

/// What is to be added.
#[derive(Debug, clap::Args)]
pub(super) struct Add {
    /// A name for it: small letters, digits and `-`
    name: String,
    /// Its address, where it speaks over HTTP
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    url: Option<String>,
    /// A header that it is given: `Authorization: Bearer …`
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    headers: Vec<String>,
    /// A variable that its program is given
    #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url")]
    environment: Vec<String>,
    /// Its program and arguments, after `--`
    #[arg(last = true)]
    command: Vec<String>,
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
    let switches = store.switches().await?;
    let upstreams = app::upstreams(config, variables, &store).await?;
    let external = store.external_servers().await?;
    let dispatcher =
        app::dispatcher_with(config, variables, &switches, Some(upstreams.clone())).await?;
    match command {
        Command::List { json } => {
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
        Command::Add(add) => {
            let entry = add.entry()?;
            if view_names(&dispatcher).contains(&entry.name) {
                return Err(format!("there is a server `{}` already", entry.name).into());
            }
            keep(&entry, config, &store).await?;
            let upstreams = app::upstreams(config, variables, &store).await?;
            ask(&entry.name, &upstreams).await?;
            upstreams.close().await;
        }
        Command::Import(import) => {
            let names = view_names(&dispatcher);
            import::run(&import, &names, config, variables, &store).await?;
        }
        Command::Check { server } => {
            if !external.iter().any(|it| it.name == server) {
                return Err(no_such(&server, &external).into());
            }
            let has_told = ask(&server, &upstreams).await?;
            upstreams.close().await;
            if !has_told {
                return Ok(ExitCode::from(NO));
            }
        }
        Command::Remove { server } => {
            if !store.delete_external_server(&server).await? {
                return Err(no_such(&server, &external).into());
            }
            print(format!("`{server}` is removed"))?;
        }
        Command::Enable(it) => switch(&it, true, &store, &dispatcher, config).await?,
        Command::Disable(it) => switch(&it, false, &store, &dispatcher, config).await?,
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

fn no_such(name: &str, external: &[ExternalServer]) -> String {
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

impl Add {
    fn entry(&self) -> Result<Entry, Failure> {
        let name = Entry::name_for(&self.name).filter(|it| *it == self.name);
        let name = name.ok_or_else(|| {
            format!(
                "`{}` is no name for a server: it has small letters, digits and single `-`, at most 40",
                self.name
            )
        })?;
        let address = if let Some(url) = &self.url {
            Address::Http {
                url: url.clone(),
                headers: pairs(&self.headers, ':', "--header 'NAME: VALUE'")?,
            }
        } else {
            let mut words = self.command.iter().cloned();
            Address::Command {
                program: words.next().ok_or("the command is empty")?,
                arguments: words.collect(),
                environment: pairs(&self.environment, '=', "--env NAME=VALUE")?,
                folder: None,
            }
        };
        Ok(Entry {
            name,
            source: "by hand".to_owned(),
            address,
        })
    }
}

fn pairs(texts: &[String], between: char, form: &str) -> Result<BTreeMap<String, Secret>, Failure> {
    let pairs = texts.iter().map(|it| {
        let (name, value) = it
            .split_once(between)
            .ok_or_else(|| format!("write {form}"))?;
        Ok((name.trim().to_owned(), Secret::new(value.trim())))
    });
    pairs.collect()
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
