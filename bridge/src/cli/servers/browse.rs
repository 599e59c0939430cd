//! `clopen-mcp servers sync|search|info`: what registries offer.

use super::found::{self, Found};
use crate::{
    app,
    catalog::{Entry, Filter, Listed, Patience, Programs, Status, Synced, WELL_KNOWN, sync, ways},
    cli::{CANNOT, Failure, NO, in_full, print, print_json},
    config::Config,
    store::{Store, now},
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

/// How many servers of a sync are told apart on a line each, where nobody watches.
const STEP: usize = 10_000;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Fetch what the registries offer
    Sync(Sync),
    /// Find servers that the registries offer
    Search(Search),
    /// Show a server of a registry: what it is, what it wants to know, what can be used here
    Info(Info),
}

impl Command {
    pub(super) async fn run(
        &self,
        config: &Config,
        variables: &BTreeMap<String, String>,
        store: &Store,
    ) -> Result<ExitCode, Failure> {
        match self {
            Self::Sync(sync) => sync.run(config, store).await,
            Self::Search(search) => search.run(config, store).await,
            Self::Info(info) => info.run(config, store, variables).await,
        }
    }
}

/// What is to be fetched.
#[derive(Debug, Args)]
pub(in crate::cli) struct Sync {
    /// Only from this registry
    #[arg(long)]
    registry: Option<String>,
    /// Everything, and not only what has changed; what is no longer there is forgotten
    #[arg(long)]
    full: bool,
}

/// What is looked for.
#[derive(Debug, Args)]
pub(in crate::cli) struct Search {
    /// Words of its name, its title or its description, or their beginnings
    #[arg(required = true)]
    words: Vec<String>,
    /// Only what is offered so: npm, pypi, oci, remote
    #[arg(long)]
    kind: Option<String>,
    /// Only what needs no key
    #[arg(long)]
    no_key: bool,
    /// At most so many
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is to be shown.
#[derive(Debug, Args)]
pub(in crate::cli) struct Info {
    /// Its whole name: `namespace/name`
    name: String,
    /// Another version than the latest
    #[arg(long)]
    version: Option<String>,
    /// The registry, where several have it
    #[arg(long)]
    registry: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Sync {
    async fn run(&self, config: &Config, store: &Store) -> Result<ExitCode, Failure> {
        if let Some(name) = &self.registry {
            found::is_registry(name, config)?;
        }
        let is_asked = |name: &String| self.registry.as_ref().is_none_or(|it| it == name);
        let registries = config.registries.iter().filter(|it| is_asked(it.0));
        let mut has_failed = false;
        for (name, registry) in registries {
            // One registry that is away keeps no other from being fetched.
            let client = app::registry(name, registry, Patience::LONG)?;
            let mut progress = Progress::new(name);
            let synced = sync(&client, store, self.full, now(), |it| progress.tell(it)).await;
            progress.end();
            match synced {
                Ok(synced) => print(summary(name, &synced))?,
                Err(error) => {
                    has_failed = true;
                    eprintln!("error: {}", in_full(&error));
                    eprintln!(
                        "  what came before is kept; `clopen-mcp servers sync` goes on there"
                    );
                }
            }
        }
        let code = if has_failed { CANNOT } else { 0 };
        Ok(ExitCode::from(code))
    }
}

fn summary(name: &str, synced: &Synced) -> String {
    let Synced {
        kept,
        removed,
        skipped,
        ..
    } = synced;
    let what = match (synced.is_incremental, synced.is_resumed) {
        (true, _) => " have changed",
        (false, true) => " were left to fetch",
        (false, false) => "",
    };
    let mut facts = vec![format!("{name}: {kept} servers{what}")];
    facts.extend((*removed > 0).then(|| format!("{removed} are gone")));
    facts.extend((*skipped > 0).then(|| format!("{skipped} can't be used")));
    let mut lines = vec![facts.join(", ")];
    let reasons = synced.reasons.iter().map(|it| format!("  left out: {it}"));
    lines.extend(reasons);
    lines.join("\n")
}

/// Counts on one line of a terminal, and now and then elsewhere.
struct Progress<'a> {
    registry: &'a str,
    is_terminal: bool,
    told: usize,
}

impl<'a> Progress<'a> {
    fn new(registry: &'a str) -> Self {
        Self {
            registry,
            is_terminal: io::stderr().is_terminal(),
            told: 0,
        }
    }

    fn tell(&mut self, synced: &Synced) {
        let (registry, read) = (self.registry, synced.read);
        if self.is_terminal {
            // A terminal that is gone is no reason to stop.
            drop(write!(io::stderr(), "\r{registry}: {read} servers read "));
            self.told = read;
        } else if read >= self.told + STEP {
            eprintln!("{registry}: {read} servers read");
            self.told = read;
        }
    }

    fn end(&self) {
        if self.is_terminal && self.told > 0 {
            eprintln!();
        }
    }
}

impl Search {
    async fn run(&self, config: &Config, store: &Store) -> Result<ExitCode, Failure> {
        let index = found::index(config, store).await?;
        let filter = Filter {
            kind: self.kind.as_ref().map(|it| it.to_lowercase()),
            no_key: self.no_key,
        };
        let found = index.search(&self.words.join(" "), &filter, self.limit);
        if self.json {
            let servers: Vec<Value> = found.iter().map(|it| listed_json(it)).collect();
            print_json(&json!({ "servers": servers }))?;
        } else {
            for it in &found {
                print(listed_line(it))?;
            }
        }
        let mut never = Vec::new();
        for name in config.registries.keys() {
            let sync = store.catalog_sync(name).await?;
            if sync.is_none_or(|it| it.synced_at.is_none()) {
                never.push(format!("`{name}`"));
            }
        }
        if !never.is_empty() {
            eprintln!(
                "not everything of {} has been fetched yet; `clopen-mcp servers sync` does that",
                never.join(", ")
            );
        }
        if found.is_empty() && !self.json {
            eprintln!("nothing is found");
            return Ok(ExitCode::from(NO));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn listed_json(listed: &Listed) -> Value {
    let server = &listed.server;
    json!({
        "name": server.name,
        "title": server.title,
        "description": server.description,
        "version": server.version,
        "registry": server.registry,
        "kinds": server.kinds.split_whitespace().collect::<Vec<_>>(),
        "needsKey": server.needs_key,
        "status": server.status,
        "statusMessage": server.status_message,
        "wellKnown": listed.is_known,
    })
}

fn listed_line(listed: &Listed) -> String {
    let server = &listed.server;
    let mut facts = vec![server.kinds.replace(' ', ", ")];
    facts.extend(
        server
            .needs_key
            .then(|| "needs a key or a sign-in".to_owned()),
    );
    if Status::of(&server.status) == Status::Deprecated {
        facts.push("deprecated".to_owned());
    }
    let title = [&*server.title, ""].join(if server.title.is_empty() { "" } else { ": " });
    format!(
        "{}  [{}]\n    {title}{}",
        server.name,
        facts.join("; "),
        server.description
    )
}

impl Info {
    async fn run(
        &self,
        config: &Config,
        store: &Store,
        variables: &BTreeMap<String, String>,
    ) -> Result<ExitCode, Failure> {
        let version = self.version.as_deref();
        let registry = self.registry.as_deref();
        let found = found::find(&self.name, version, registry, config, store).await?;
        let programs = programs(variables);
        let (versions, reason) = versions(&found, config).await;
        if self.json {
            let mut json = found.json(&programs);
            json["versions"] = json!(versions);
            json["versionsUnknown"] = json!(reason);
            print_json(&json)?;
            return Ok(ExitCode::SUCCESS);
        }
        print(found.heading())?;
        for line in described(&found, &programs) {
            print(line)?;
        }
        if found.has_version() {
            print(format!("versions: {}", versions.join(", ")))?;
        }
        if let Some(reason) = reason {
            eprintln!("other versions aren't known: {reason}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The programs that start packages, where `PATH` has them.
pub(super) fn programs(variables: &BTreeMap<String, String>) -> Programs {
    Programs::of_path(variables.get("PATH").map_or("", String::as_str))
}

fn described(found: &Found, programs: &Programs) -> Vec<String> {
    let record = found.record();
    let mut lines = Vec::new();
    let facts = [
        ("", &*record.description),
        ("source: ", record.repository()),
        ("page: ", &record.website_url),
    ];
    let facts = facts.into_iter().filter(|it| !it.1.is_empty());
    lines.extend(facts.map(|(what, it)| format!("{what}{it}")));
    lines.extend(found.warnings());
    let ways = ways(record);
    lines.push(if ways.is_empty() {
        "it names neither a package nor an address".to_owned()
    } else {
        "to be had as:".to_owned()
    });
    for way in &ways {
        lines.push(way.line(programs));
        let inputs = way.recipe.iter().flat_map(|it| &it.asked);
        lines.extend(inputs.map(|it| format!("    {}", found::input_line(it))));
        lines.extend(way.notes.iter().map(|it| format!("    {it}")));
    }
    lines
}

/// Asks the registry which versions there are. Where that fails, there is the one that is known.
async fn versions(found: &Found, config: &Config) -> (Vec<String>, Option<String>) {
    let known = vec![found.record().version.clone()];
    let Some(registry) = config.registries.get(&found.registry) else {
        let reason = (found.registry != WELL_KNOWN).then(|| "its registry is gone".to_owned());
        return (known, reason);
    };
    let client = match app::registry(&found.registry, registry, Patience::SHORT) {
        Ok(client) => client,
        Err(error) => return (known, Some(in_full(&error))),
    };
    match client.versions(&found.record().name).await {
        Ok(entries) => {
            let entries = entries.unwrap_or_default();
            let versions: Vec<String> = entries.iter().map(version_line).collect();
            (if versions.is_empty() { known } else { versions }, None)
        }
        Err(error) => (known, Some(in_full(&error))),
    }
}

fn version_line(entry: &Entry) -> String {
    let version = &entry.record.version;
    match entry.status {
        Status::Active => version.clone(),
        status => format!("{version} ({})", status.as_str()),
    }
}
