//! A server of a registry: where its record comes from, and how it is shown.

use crate::{
    app,
    catalog::{
        Asked, Entry, Filter, Index, Note, Patience, Programs, Record, RegistryError, Status,
        WELL_KNOWN, completed, known, note, ways,
    },
    cli::{Failure, in_full},
    config::Config,
    store::{CatalogServer, Store},
};
use serde_json::{Value, json};

/// A server, and who says what it is.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) registry: String,
    pub(super) entry: Entry,
}

impl Found {
    pub(super) fn record(&self) -> &Record {
        &self.entry.record
    }

    /// What is known of it besides.
    pub(super) fn note(&self) -> Option<&'static Note> {
        note(self.record())
    }

    /// Whether its version is known. A service that one reaches often names none.
    pub(super) fn has_version(&self) -> bool {
        !matches!(&*self.record().version, "" | "0.0.0")
    }

    /// Its title, its name and its version.
    pub(super) fn heading(&self) -> String {
        let Record {
            name,
            title,
            version,
            ..
        } = self.record();
        let title = if title.is_empty() {
            String::new()
        } else {
            format!("{title}: ")
        };
        let version = if self.has_version() {
            format!(" {version}")
        } else {
            String::new()
        };
        format!("{title}{name}{version}, from {}", self.registry)
    }

    /// What a person should know before installing it: whether it is still kept up, and how one signs in.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let Entry {
            status,
            status_message,
            ..
        } = &self.entry;
        if *status != Status::Active {
            let message = match status {
                _ if !status_message.is_empty() => status_message,
                Status::Deleted => "it was taken out of the registry",
                _ => "its publisher advises against it",
            };
            warnings.push(format!("{}: {message}", status.as_str()));
        }
        if let Some(note) = self.note() {
            warnings.push(format!(
                "sign-in: {} (looked up on {}, confidence {}: {})",
                note.auth, note.checked, note.confidence, note.source
            ));
            warnings.extend((!note.caveat.is_empty()).then(|| format!("mind: {}", note.caveat)));
        }
        warnings
    }

    pub(super) fn json(&self, programs: &Programs) -> Value {
        let record = self.record();
        let ways = ways(record).into_iter().map(|way| {
            let recipe = way.recipe.as_ref();
            let inputs = recipe.map_or(&[][..], |it| &it.asked);
            json!({
                "kind": way.kind.as_str(),
                "what": way.shown,
                "notHere": way.is_refused(programs),
                "notes": way.notes,
                "inputs": inputs.iter().map(input_json).collect::<Vec<_>>(),
            })
        });
        let note = self.note().map(|it| {
            json!({
                "service": it.service,
                "official": it.official,
                "signIn": it.auth.to_string(),
                "caveat": it.caveat,
                "source": it.source,
                "confidence": it.confidence,
                "checked": it.checked,
            })
        });
        json!({
            "name": record.name,
            "title": record.title,
            "version": record.version,
            "registry": self.registry,
            "description": record.description,
            "status": self.entry.status.as_str(),
            "statusMessage": self.entry.status_message,
            "repository": record.repository(),
            "websiteUrl": record.website_url,
            "ways": ways.collect::<Vec<_>>(),
            "note": note,
        })
    }
}

fn input_json(asked: &Asked) -> Value {
    json!({
        "name": asked.key,
        "description": asked.description,
        "required": asked.is_required,
        "secret": asked.is_secret,
        "repeated": asked.is_repeated,
        "format": asked.format,
        "default": asked.default.as_ref().filter(|_| !asked.is_secret),
        "choices": asked.choices,
        "placeholder": asked.placeholder,
    })
}

/// An input on one line.
pub(super) fn input_line(asked: &Asked) -> String {
    let mut facts = vec![
        if asked.is_required {
            "required"
        } else {
            "optional"
        }
        .to_owned(),
    ];
    facts.extend(asked.is_secret.then(|| "secret".to_owned()));
    facts.extend(asked.is_repeated.then(|| "as often as you like".to_owned()));
    let format = asked.format.as_str();
    facts.extend((!matches!(format, "" | "string")).then(|| format.to_owned()));
    let choices = asked.choices.join(", ");
    facts.extend((!choices.is_empty()).then(|| format!("one of {choices}")));
    let default = asked.default.as_ref().filter(|_| !asked.is_secret);
    facts.extend(default.map(|it| format!("default {it}")));
    let description = asked.description.lines().next().unwrap_or_default();
    let what = [description, &format!("({})", facts.join(", "))].join(" ");
    format!("{}: {}", asked.key, what.trim())
}

/// Finds a server by its whole name: what the last sync has kept, the well-known, then what the registries say now. A
/// version that is none of these is asked for at its registry.
pub(super) async fn find(
    name: &str,
    version: Option<&str>,
    registry: Option<&str>,
    config: &Config,
    store: &Store,
) -> Result<Found, Failure> {
    if let Some(registry) = registry.filter(|it| *it != WELL_KNOWN) {
        is_registry(registry, config)?;
    }
    let is_asked = |it: &str| registry.is_none_or(|registry| registry == it);
    let mut kept: Vec<CatalogServer> = store.catalog_servers(name).await?;
    kept.retain(|it| config.registries.contains_key(&it.registry) && is_asked(&it.registry));
    if let [first, second, ..] = &kept[..] {
        return Err(format!(
            "`{name}` is in the registries `{}` and `{}`; say which with `--registry`",
            first.registry, second.registry
        )
        .into());
    }
    let is_version = |it: &str| version.is_none_or(|version| [it, "latest"].contains(&version));
    let registries: Vec<&str> = match kept.first() {
        Some(kept) if is_version(&kept.version) => return of_store(kept),
        Some(kept) => vec![&kept.registry],
        None => {
            let mut known = known().iter().map(|(it, _)| it);
            let known = known.find(|it| it.record.name == name);
            let known = known.filter(|it| is_asked(WELL_KNOWN) && is_version(&it.record.version));
            if let Some(entry) = known.cloned() {
                let registry = WELL_KNOWN.to_owned();
                return Ok(Found { registry, entry });
            }
            let all = config.registries.keys().map(String::as_str);
            all.filter(|it| is_asked(it)).collect()
        }
    };
    live(
        name,
        version.unwrap_or("latest"),
        &registries,
        config,
        store,
    )
    .await
}

fn of_store(kept: &CatalogServer) -> Result<Found, Failure> {
    Ok(Found {
        registry: kept.registry.clone(),
        entry: completed(Entry {
            record: Record::read(&kept.record)?,
            status: Status::of(&kept.status),
            status_message: kept.status_message.clone(),
            updated_at: Some(kept.updated_at.clone()),
            is_latest: Some(true),
            raw: kept.record.clone(),
        }),
    })
}

/// Asks registries for a version of a server.
async fn live(
    name: &str,
    version: &str,
    registries: &[&str],
    config: &Config,
    store: &Store,
) -> Result<Found, Failure> {
    let mut failures: Vec<RegistryError> = Vec::new();
    // What has no slash is no name, and is not worth a question.
    let asked = registries.iter().filter(|_| name.contains('/'));
    for registry in asked {
        let client = app::registry(registry, &config.registries[*registry], Patience::SHORT)?;
        match client.version(name, version).await {
            Ok(Some(entry)) if entry.record.name == name => {
                return Ok(Found {
                    registry: (*registry).to_owned(),
                    entry: completed(entry),
                });
            }
            Ok(_) => {}
            Err(error) => failures.push(error),
        }
    }
    let mut words = format!("there is no version `{version}` of `{name}`");
    if version == "latest" {
        let index = index(config, store).await?;
        let last = name.rsplit('/').next().unwrap_or(name);
        let alike = index.search(last, &Filter::default(), 3);
        let alike = alike.iter().map(|it| format!("`{}`", it.server.name));
        let alike: Vec<String> = alike.collect();
        words = format!("there is no server `{name}`");
        if !alike.is_empty() {
            words = format!("{words}; is it {}?", alike.join(", "));
        }
    }
    let failures = failures.iter().map(|it| format!("\n{}", in_full(it)));
    Err(format!("{words}{}", failures.collect::<String>()).into())
}

/// Says whether there is a registry of this name.
pub(super) fn is_registry(name: &str, config: &Config) -> Result<(), Failure> {
    if config.registries.contains_key(name) {
        return Ok(());
    }
    let known = config.registries.keys().map(|it| format!("`{it}`"));
    let known = known.collect::<Vec<_>>().join(", ");
    Err(format!("there is no registry `{name}` in the settings; there are {known}").into())
}

/// Everything that can be found: what the last syncs have kept, and the well-known.
pub(super) async fn index(config: &Config, store: &Store) -> Result<Index, Failure> {
    let mut servers = Vec::new();
    for registry in config.registries.keys() {
        servers.extend(store.catalog(registry).await?);
    }
    Ok(Index::new(servers))
}
