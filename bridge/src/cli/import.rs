//! `clopen-mcp servers import`: the servers that a person already has in an engine's configuration.

use super::servers::{ask, keep};
use super::{
    Failure,
    connect::{self, Desk, Whose},
    print,
};
use crate::{
    app,
    config::Config,
    engines::{
        Engine,
        import::{self, Found, Reached},
        plan::{self, Planned},
    },
    secret::Secret,
    store::Store,
    upstream::{Address, Entry},
};
use clap::Args;
use std::collections::BTreeMap;

#[derive(Debug, Args)]
pub(super) struct Import {
    /// The engine
    engine: String,
    #[command(flatten)]
    whose: Whose,
    /// Take them over; without it, they are only shown
    #[arg(long)]
    yes: bool,
    /// Take them out of the engine's configuration too, so that their tools aren't there twice; `connect --undo` puts them
    /// back
    #[arg(long, requires = "yes")]
    remove: bool,
}

pub(super) async fn run(
    import: &Import,
    names: &[String],
    config: &Config,
    variables: &BTreeMap<String, String>,
    store: &Store,
) -> Result<(), Failure> {
    let engine = connect::find(&import.engine)?;
    let desk = Desk::new(&import.whose, config, variables).await?;
    let found = import::servers(engine, desk.scope, &desk.folders, variables)?;
    let (file, found) = found.unwrap_or_default();
    if found.is_empty() {
        print(format!(
            "there is no other server in the configuration of {}",
            engine.title
        ))?;
        return Ok(());
    }
    print(format!("{}:", desk.folders.shown(&file)))?;
    let mut taken: Vec<(&str, Entry)> = Vec::new();
    let mut names = names.to_vec();
    for found in &found {
        let entry = entry(found, engine, &names);
        print(line(found, entry.as_ref()))?;
        if let Ok(entry) = entry {
            names.push(entry.name.clone());
            taken.push((&found.name, entry));
        }
    }
    if !import.yes {
        eprintln!(
            "nothing is changed; with `--yes` these are taken over, and with `--remove` also taken out of the configuration of {}",
            engine.title
        );
        return Ok(());
    }
    for (_, entry) in &taken {
        keep(entry, config, store).await?;
    }
    let upstreams = app::upstreams(config, variables, store).await?;
    let mut told = Vec::new();
    for (name, entry) in &taken {
        if ask(&entry.name, &upstreams).await? {
            told.push(*name);
        }
    }
    upstreams.close().await;
    if import.remove {
        let planned: Option<Planned> = plan::without(engine, desk.scope, &desk.folders, &told)?;
        let planned: Vec<Planned> = planned.into_iter().collect();
        let what = format!("servers import {} --remove", engine.id);
        desk.backups.write(what, &planned, false, None)?;
        print(format!(
            "those that have told their tools are taken out of {}",
            desk.folders.shown(&file)
        ))?;
    }
    Ok(())
}

/// Makes an entry of what was found, or says why it can't be taken over.
fn entry(found: &Found, engine: &Engine, names: &[String]) -> Result<Entry, String> {
    let reached = found.reached.clone()?;
    let name = Entry::name_for(&found.name);
    let name = name.ok_or("nothing of its name can be the name of a server")?;
    if names.contains(&name) {
        return Err(format!("there is a server `{name}` already"));
    }
    let secrets = |it: BTreeMap<String, String>| {
        it.into_iter()
            .map(|(name, value)| (name, Secret::new(value)))
            .collect()
    };
    Ok(Entry {
        name,
        source: format!("from {}", engine.title),
        address: match reached {
            Reached::Command {
                program,
                arguments,
                environment,
                folder,
            } => Address::Command {
                program,
                arguments,
                environment: secrets(environment),
                folder,
            },
            Reached::Http { url, headers } => Address::Http {
                url,
                headers: secrets(headers),
            },
        },
        origin: None,
    })
}

/// A server on one line, without the values of its variables and headers.
fn line(found: &Found, entry: Result<&Entry, &String>) -> String {
    let name = &found.name;
    match entry {
        Err(reason) => format!("  {name:<20} left as it is: {reason}"),
        Ok(Entry {
            name: taken,
            address,
            ..
        }) => {
            let (what, given) = reached(address);
            let given = if given.is_empty() {
                String::new()
            } else {
                format!(", with {}", given.join(", "))
            };
            let renamed = if taken == name {
                String::new()
            } else {
                format!(" as `{taken}`")
            };
            format!("  {name:<20}{renamed} {what}{given}")
        }
    }
}

/// How a server is reached, as far as it is surely no secret, and the names of what it is given.
pub(super) fn reached(address: &Address) -> (String, Vec<&str>) {
    let (what, secrets) = match address {
        Address::Command {
            program,
            arguments,
            environment,
            ..
        } => (command(program, arguments), environment),
        Address::Http { url, headers } => (origin(url), headers),
    };
    (what, secrets.keys().map(String::as_str).collect())
}

/// A command as far as it is surely no secret: the program, and the first argument that is no flag, such as a package.
fn command(program: &str, arguments: &[String]) -> String {
    let is_plain = |it: &&String| {
        let is_of_name = |it: char| it.is_ascii_alphanumeric() || "@/._-".contains(it);
        !it.starts_with('-') && it.chars().all(is_of_name)
    };
    let first = arguments.iter().find(is_plain);
    let others = arguments.len() - usize::from(first.is_some());
    let mut words = vec![program.to_owned()];
    words.extend(first.cloned());
    words.extend((others > 0).then(|| format!("(and {others} more arguments)")));
    words.join(" ")
}

/// The scheme, the host and the port of an address: its path may be secret.
fn origin(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(url) => url.origin().ascii_serialization(),
        Err(_) => "an address that can't be read".to_owned(),
    }
}
