//! `clopen-mcp servers add`: an external server by hand, or of a registry.

use super::{
    ask,
    browse::programs,
    found::{self, Found},
    inputs, keep,
};
use crate::{
    app,
    catalog::{Choice, Plan, SignIn, Status, Word, choose, needs_pin, pin, ways},
    cli::{Failure, in_full, print, print_json},
    config::Config,
    secret::Secret,
    store::Store,
    upstream::{Address, Entry, Origin},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is to be added.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Add {
    /// Its name in a registry, such as `com.example/notes`; with an address or a command, a name for it: small letters,
    /// digits and `-`
    name: String,
    /// Its address, where it speaks over HTTP
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// A header that it is given: `Authorization: Bearer …`
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    headers: Vec<String>,
    /// A variable that its program is given
    #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url")]
    environment: Vec<String>,
    #[command(flatten)]
    of_registry: OfRegistry,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Its program and arguments, after `--`
    #[arg(last = true)]
    command: Vec<String>,
}

/// What is said of a server of a registry.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "From a registry")]
struct OfRegistry {
    /// A name for it here, instead of one made of its own
    #[arg(long = "as", value_name = "NAME", conflicts_with_all = ["url", "command"])]
    called: Option<String>,
    /// Another version than the latest
    #[arg(long, conflicts_with_all = ["url", "command"])]
    version: Option<String>,
    /// The registry, where several have it
    #[arg(long, conflicts_with_all = ["url", "command"])]
    registry: Option<String>,
    /// Which of its packages or addresses: npm, pypi, oci, remote, or one by its name
    #[arg(long, conflicts_with_all = ["url", "command"])]
    package: Option<String>,
    /// What it wants to know; several times for several
    #[arg(long = "set", value_name = "INPUT=VALUE", conflicts_with_all = ["url", "command"])]
    set: Vec<String>,
    /// Add it without asking
    #[arg(long, conflicts_with_all = ["url", "command"])]
    yes: bool,
}

impl Add {
    pub(super) async fn run(
        &self,
        names: &[String],
        config: &Config,
        variables: &BTreeMap<String, String>,
        store: &Store,
    ) -> Result<(), Failure> {
        if self.url.is_none() && self.command.is_empty() {
            return self.registered(names, config, variables, store).await;
        }
        let entry = self.by_hand()?;
        is_free(&entry.name, names, "")?;
        keep(&entry, config, store).await?;
        let shown = json!({ "name": entry.name });
        told(&entry.name, shown, self.json, config, variables, store).await
    }

    fn by_hand(&self) -> Result<Entry, Failure> {
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
            name: name(&self.name)?,
            source: "by hand".to_owned(),
            address,
            origin: None,
        })
    }

    async fn registered(
        &self,
        names: &[String],
        config: &Config,
        variables: &BTreeMap<String, String>,
        store: &Store,
    ) -> Result<(), Failure> {
        let said = &self.of_registry;
        let (version, registry) = (said.version.as_deref(), said.registry.as_deref());
        let mut found = found::find(&self.name, version, registry, config, store).await?;
        if found.entry.status == Status::Deleted {
            return Err(format!("`{}` was taken out of its registry", self.name).into());
        }
        let called = match &said.called {
            Some(called) => name(called)?,
            None => {
                name_of(&found).ok_or("nothing of its name can be one here; say one with `--as`")?
            }
        };
        is_free(&called, names, "; say another name with `--as`")?;
        let programs = programs(variables);
        if needs_pin(found.record())
            && let Err(error) = pin(&mut found.entry, &app::indexes(variables)?).await
        {
            eprintln!("warning: {}", in_full(&error));
        }
        let ways = ways(found.record());
        let mut values = inputs::values(&said.set)?;
        let signs_in = found.note().is_some_and(|it| it.auth != SignIn::None);
        let wanted = said.package.as_deref();
        let choice = choose(&ways, wanted, &values, &programs, signs_in)
            .map_err(|error| format!("`{}` can't be added: {error}", self.name))?;
        let can_ask = inputs::can_ask() && !said.yes && !self.json;
        if can_ask {
            introduce(&found, &choice)?;
            inputs::ask(choice.recipe, &mut values)?;
        }
        let environment = pairs(&self.environment, '=', "--env NAME=VALUE")?;
        let plan = choice.recipe.fill(&values, &environment, &programs);
        let plan = plan.map_err(|error| format!("`{}` is not added yet:\n{error}", self.name))?;
        if !self.json {
            if !can_ask {
                introduce(&found, &choice)?;
            }
            show(&plan)?;
        }
        let mut shown = planned(&called, &found, &choice, &plan);
        let is_wanted = said.yes || can_ask && inputs::confirms(&format!("add it as `{called}`?"))?;
        if !is_wanted {
            eprintln!("nothing is changed; with `--yes` it is added as `{called}`");
            shown["added"] = json!(false);
            return if self.json {
                print_json(&shown)
            } else {
                Ok(())
            };
        }
        let origin = Origin {
            registry: found.registry.clone(),
            name: found.record().name.clone(),
            version: found.record().version.clone(),
            record: found.entry.raw.clone(),
            way: choice.place,
            inputs: values,
            environment,
        };
        keep(&entry(&called, origin, plan), config, store).await?;
        shown["added"] = json!(true);
        told(&called, shown, self.json, config, variables, store).await
    }
}

/// Checks a name that a person chose.
fn name(said: &str) -> Result<String, Failure> {
    let name = Entry::name_for(said).filter(|it| it == said);
    let name = name.ok_or_else(|| {
        format!(
            "`{}` is no name for a server: it has small letters, digits and single `-`, at most 40",
            said.escape_debug()
        )
    })?;
    Ok(name)
}

fn is_free(name: &str, names: &[String], hint: &str) -> Result<(), Failure> {
    if names.iter().any(|it| it == name) {
        return Err(format!("there is a server `{name}` already{hint}").into());
    }
    Ok(())
}

/// Makes a name of its title, or of the part of its name that says most.
fn name_of(found: &Found) -> Option<String> {
    let record = found.record();
    let says_nothing = |it: &str| matches!(it, "mcp" | "server" | "mcp-server" | "mcp-remote");
    let last = Entry::name_for(record.last_name()).filter(|it| !says_nothing(it));
    let space = record.name.split('/').next().unwrap_or_default();
    let labels = space.rsplit('.').filter_map(Entry::name_for);
    let space = labels.into_iter().find(|it| !says_nothing(it));
    let title = Entry::name_for(&record.title);
    title.or(last).or(space)
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

/// Says what it is, what to mind, and which way is taken.
fn introduce(found: &Found, choice: &Choice<'_>) -> Result<(), Failure> {
    print(found.heading())?;
    for line in found.warnings() {
        print(format!("  {line}"))?;
    }
    let Choice { way, why, .. } = choice;
    print(format!("  way: {} {} ({why})", way.kind, way.shown))?;
    for note in &way.notes {
        print(format!("  {note}"))?;
    }
    Ok(())
}

/// Shows exactly what will be started or reached.
fn show(plan: &Plan) -> Result<(), Failure> {
    let (does, gives) = match plan {
        Plan::Command { .. } => ("runs", "with the variables"),
        Plan::Remote { .. } => ("reaches", "with the headers"),
    };
    print(format!("  {does}: {}", plan.shown()))?;
    if !plan.given().is_empty() {
        print(format!("  {gives} {}", plan.given().join(", ")))?;
    }
    Ok(())
}

fn planned(called: &str, found: &Found, choice: &Choice<'_>, plan: &Plan) -> Value {
    json!({
        "name": called,
        "origin": {
            "registry": found.registry,
            "name": found.record().name,
            "version": found.record().version,
        },
        "way": choice.way.kind.as_str(),
        "why": choice.why,
        "runs": plan.shown(),
        "argv": plan.words(),
        "given": plan.given(),
        "notes": choice.way.notes,
        "warnings": found.warnings(),
    })
}

/// Makes an external server of what a registry says.
pub(super) fn entry(called: &str, origin: Origin, plan: Plan) -> Entry {
    let given = |it: BTreeMap<String, Word>| -> BTreeMap<String, Secret> {
        it.into_iter().map(|(name, it)| (name, it.text)).collect()
    };
    Entry {
        name: called.to_owned(),
        source: format!("{} {}", origin.name, origin.version)
            .trim_end_matches(" 0.0.0")
            .to_owned(),
        address: match plan {
            Plan::Command {
                program,
                arguments,
                environment,
            } => {
                let arguments = arguments.iter().map(|it| it.text.expose().to_owned());
                Address::Command {
                    program,
                    arguments: arguments.collect(),
                    environment: given(environment),
                    folder: None,
                }
            }
            Plan::Remote { url, headers } => Address::Http {
                url: url.text.expose().to_owned(),
                headers: given(headers),
            },
        },
        origin: Some(origin),
    }
}

/// Asks a server that was just kept for its tools, and says what came of it.
pub(super) async fn told(
    name: &str,
    mut shown: Value,
    is_json: bool,
    config: &Config,
    variables: &BTreeMap<String, String>,
    store: &Store,
) -> Result<(), Failure> {
    let upstreams = app::upstreams(config, variables, store).await?;
    if is_json {
        match upstreams.list(name).await {
            Ok(notes) => {
                shown["tools"] = json!(upstreams.count(name));
                shown["toolNotes"] = json!(notes);
            }
            Err(error) => shown["problem"] = json!(in_full(&error)),
        }
        print_json(&shown)?;
    } else {
        ask(name, &upstreams).await?;
    }
    upstreams.close().await;
    Ok(())
}
