//! `clopen-mcp connect` and `disconnect`: our entry in the configuration of an engine.

use super::{Failure, print};
use crate::{
    app,
    config::Config,
    credentials::OWN_TOKENS,
    engines::{
        Connection, ENGINES, Engine, Folders, Scope, TOKEN_VARIABLE, Token,
        backups::{self, Backups},
        entries,
        plan::{self, Planned},
    },
    mcp::guard::LONGEST_NAME,
    secret::Secret,
    store::{NewToken, Store, now},
};
use clap::{Args, ValueEnum};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};
use tool_runtime::{Caller, NAMESPACE};

#[derive(Debug, Args)]
pub(super) struct Connect {
    /// The engine; `clopen-mcp engines` lists them
    #[arg(required_unless_present_any = ["all", "undo"])]
    engine: Option<String>,
    /// Connect every engine that is installed here
    #[arg(long, conflicts_with = "engine")]
    all: bool,
    /// Take back what was connected or disconnected last, byte for byte
    #[arg(long, conflicts_with_all = ["engine", "all", "project", "scope", "external", "url", "dry_run"])]
    undo: bool,
    #[command(flatten)]
    whose: Whose,
    /// How the tools of external servers come: among those of the bridge, or from an entry for each server [default: as the
    /// engine is connected already, else merged]
    #[arg(long)]
    external: Option<External>,
    /// The address of the bridge, where it isn't this machine's: `https://tools.example.org/mcp`
    #[arg(long)]
    url: Option<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct Disconnect {
    /// The engine
    engine: String,
    #[command(flatten)]
    whose: Whose,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Whose configuration it is.
#[derive(Debug, Args)]
pub(super) struct Whose {
    /// The folder of the project whose configuration it is
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Whether it is the configuration of a person or of a project; of a project if `--project` names one
    #[arg(long)]
    scope: Option<ScopeName>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeName {
    User,
    Project,
}

/// How external servers come to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum External {
    /// All tools come from the one entry of the bridge
    Merged,
    /// Each external server has an entry of its own
    Each,
}

/// Everything that connecting needs besides the engine.
pub(super) struct Desk<'a> {
    config: &'a Config,
    store: Store,
    pub(super) backups: Backups,
    pub(super) folders: Folders,
    pub(super) scope: Scope,
    project: Option<PathBuf>,
    /// The token that the environment says, for engines that can't name a variable.
    given: Option<Secret>,
}

pub(super) async fn connect(
    command: Connect,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<ExitCode, Failure> {
    if command.undo {
        let record = Backups::of(&config.data).undo()?;
        for written in &record.files {
            print(format!(
                "`{}` is as it was before `{}`",
                written.file.display(),
                record.what
            ))?;
        }
        if let Some(token) = record.token {
            if record.what.starts_with("connect") {
                let store = Store::open(&config.data, config.database_url.as_ref()).await?;
                store.revoke_token(&token, now()).await?;
                store.close().await;
            } else {
                eprintln!("its token `{token}` is revoked; `connect` once more writes a new one");
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let desk = Desk::new(&command.whose, config, variables).await?;
    let engines = match &command.engine {
        Some(name) => vec![find(name)?],
        None => desk.installed(),
    };
    if engines.is_empty() {
        return Err(
            "no engine is installed here; name one, and it will find the bridge once it is".into(),
        );
    }
    let upstreams = app::upstreams(config, variables, &desk.store).await?;
    let switches = desk.store.switches().await?;
    let view = app::dispatcher_with(config, variables, &switches, Some(upstreams))
        .await?
        .view();
    let external = desk.store.external_servers().await?;
    let everyone = Caller::default();
    // What an external server says of its own tools is no reason not to ask.
    let tools = view.tools(&everyone).filter(|it| {
        let is_ours = external.iter().all(|other| *other.name != *it.item.server);
        is_ours && it.item.hints.read_only == Some(true)
    });
    let read_only_tools: Vec<String> = tools.map(|it| it.name.to_owned()).collect();
    let enabled = external.into_iter().map(|it| it.name).filter(|it| {
        let server = view.server(it);
        server.is_some_and(|(_, selected)| selected.enabled)
    });
    // One of our own name has no place beside our own entry.
    let external: Vec<String> = enabled.filter(|it| it != NAMESPACE).collect();
    let mut failed = false;
    for engine in engines {
        let connection = Connection {
            url: command.url.clone().unwrap_or_else(|| local_url(config)),
            caller: desk.caller(),
            token: Token::Variable,
            external: external.clone(),
            read_only_tools: read_only_tools.clone(),
        };
        let connected = desk
            .connect(engine, connection, command.external, command.dry_run)
            .await;
        match connected {
            Ok(()) => {}
            // One that can't be connected keeps no other from it.
            Err(error) if command.all => {
                eprintln!("error: {}: {}", engine.title, super::in_full(&*error));
                failed = true;
            }
            Err(error) => return Err(error),
        }
    }
    desk.store.close().await;
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

pub(super) async fn disconnect(
    command: Disconnect,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<ExitCode, Failure> {
    let desk = Desk::new(&command.whose, config, variables).await?;
    let engine = find(&command.engine)?;
    desk.disconnect(engine, command.dry_run).await?;
    desk.store.close().await;
    Ok(ExitCode::SUCCESS)
}

impl<'a> Desk<'a> {
    pub(super) async fn new(
        Whose { project, scope }: &Whose,
        config: &'a Config,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let scope = match (scope, project) {
            (Some(ScopeName::User), Some(_)) => {
                return Err(
                    "`--project` belongs to `--scope project`; leave one of them out".into(),
                );
            }
            (Some(ScopeName::User) | None, None) => Scope::User,
            (Some(ScopeName::Project) | None, _) => Scope::Project,
        };
        let project = match scope {
            Scope::User => None,
            Scope::Project => {
                let folder = project.clone().unwrap_or_else(|| PathBuf::from("."));
                let whole = folder.canonicalize();
                Some(whole.map_err(|error| {
                    format!("can't find the project `{}`: {error}", folder.display())
                })?)
            }
        };
        if let Some(project) = &project
            && project
                .to_string_lossy()
                .chars()
                .nth(LONGEST_NAME)
                .is_some()
        {
            return Err(format!(
                "the path `{}` is longer than the {LONGEST_NAME} characters that a project's name may have",
                project.display()
            )
            .into());
        }
        let folders = Folders::of(variables, project.clone());
        Ok(Self {
            config,
            store: Store::open(&config.data, config.database_url.as_ref()).await?,
            backups: Backups::of(&config.data),
            folders: folders.ok_or("there is no home folder to look for settings in; set HOME")?,
            scope,
            project,
            given: variables
                .get(TOKEN_VARIABLE)
                .filter(|it| !it.is_empty())
                .map(Secret::new),
        })
    }

    /// The project goes by its path: two projects may have one name.
    fn caller(&self) -> Caller {
        let project = self.project.as_deref().map(Path::to_string_lossy);
        Caller {
            project: project.unwrap_or_default().into_owned(),
            ..Caller::default()
        }
    }

    fn installed(&self) -> Vec<&'static Engine> {
        let engines = ENGINES.iter().copied();
        let engines = engines.filter(|it| it.place(self.scope).is_some());
        engines
            .filter(|it| it.is_installed(&self.folders))
            .collect()
    }

    async fn connect(
        &self,
        engine: &Engine,
        mut connection: Connection,
        external: Option<External>,
        is_dry: bool,
    ) -> Result<(), Failure> {
        let each = match external {
            Some(external) => external == External::Each,
            None => !entries::external(engine, self.scope, &self.folders)?.is_empty(),
        };
        if !each {
            connection.external.clear();
        } else if connection.external.is_empty() {
            eprintln!(
                "there are no external servers that are on; `connect {} --external each` once there are",
                engine.id
            );
        }
        let mut new_token = None;
        if self.config.no_auth {
            connection.token = Token::Unneeded;
        } else if engine.variable.is_none() {
            let known = match self.given_token().await? {
                Some(given) => Some(given),
                None => self.written_token(engine).await?,
            };
            let token = match known {
                Some(token) => token,
                None if is_dry => Secret::new("…"),
                None => {
                    let (name, token) = self.make_token(engine).await?;
                    new_token = Some(name);
                    token
                }
            };
            connection.token = Token::Written(token);
        }
        let planned = plan::connect(engine, &connection, self.scope, &self.folders);
        let written = planned.map_err(Failure::from).and_then(|mut planned| {
            planned.retain(|it| !it.is_done());
            for planned in &planned {
                print(diff(planned, &self.folders))?;
            }
            if planned.is_empty() {
                print(format!("{} is connected already", engine.title))?;
            } else if !is_dry {
                let is_private = matches!(connection.token, Token::Written(_));
                let what = format!("connect {}", engine.id);
                self.backups
                    .write(what, &planned, is_private, new_token.clone())?;
                print(format!("{} is connected", engine.title))?;
            }
            Ok(())
        });
        if let (Err(_), Some(name)) = (&written, new_token) {
            self.store.revoke_token(&name, now()).await?;
        }
        written?;
        if let (Token::Variable, false) = (&connection.token, is_dry) {
            eprintln!(
                "{} takes the token from the variable {TOKEN_VARIABLE} of its own environment; for the service token: export {TOKEN_VARIABLE}=\"$(cat '{}')\"",
                engine.title,
                self.config.data.join("token").display()
            );
        }
        if let (Token::Written(_), Scope::Project, false) = (&connection.token, self.scope, is_dry)
        {
            eprintln!(
                "warning: {} can't name a variable, so the token stands in the file itself; keep it out of version control",
                engine.title
            );
        }
        Ok(())
    }

    async fn disconnect(&self, engine: &Engine, is_dry: bool) -> Result<(), Failure> {
        let token = self.written_token(engine).await?;
        let connection = Connection {
            url: local_url(self.config),
            caller: self.caller(),
            token: token.clone().map_or(Token::Variable, Token::Written),
            external: Vec::new(),
            read_only_tools: Vec::new(),
        };
        let mut planned = plan::disconnect(engine, &connection, self.scope, &self.folders)?;
        planned.retain(|it| !it.is_done());
        if planned.is_empty() {
            print(format!("{} is not connected", engine.title))?;
            return Ok(());
        }
        if is_dry {
            for planned in &planned {
                print(diff(planned, &self.folders))?;
            }
            return Ok(());
        }
        // What nobody else has changed since is put back byte for byte.
        let connected = format!("connect {}", engine.id);
        let mut folders = Vec::new();
        for planned in &mut planned {
            if let Some(original) = self.backups.original(&planned.file, &connected)? {
                planned.after = original.text;
                folders.extend(original.folders);
            }
        }
        let made = match &token {
            Some(token) => self.store.look_up_token(token.expose()).await?,
            None => None,
        };
        let made = made.filter(|it| it.name.starts_with(OWN_TOKENS));
        let made = made.map(|it| it.name);
        let what = format!("disconnect {}", engine.id);
        let is_private = token.is_some();
        self.backups
            .write(what, &planned, is_private, made.clone())?;
        backups::delete_folders(&folders);
        if let Some(made) = made {
            self.store.revoke_token(&made, now()).await?;
        }
        print(format!("{} is disconnected", engine.title))?;
        Ok(())
    }

    /// The token of the environment, to be written into a file; never the service token, which nobody could take back.
    /// One that is revoked lets nobody in; another bridge's is none of ours to judge.
    async fn given_token(&self) -> Result<Option<Secret>, Failure> {
        let Some(given) = &self.given else {
            return Ok(None);
        };
        if super::engines::is_service_token(given, self.config)? {
            return Ok(None);
        }
        let found = self.store.look_up_token(given.expose()).await?;
        if let Some(revoked) = found.filter(|it| it.revoked_at.is_some()) {
            return Err(format!(
                "the token in {TOKEN_VARIABLE} is `{}`, which is revoked; unset the variable, or set it to another",
                revoked.name
            )
            .into());
        }
        Ok(Some(given.clone()))
    }

    /// The token in the engine's file, if it still lets somebody in.
    async fn written_token(&self, engine: &Engine) -> Result<Option<Secret>, Failure> {
        let entry = plan::connected(engine, self.scope, &self.folders)?;
        let Some(token) = entry.and_then(|(_, entry)| bearer(&entry)) else {
            return Ok(None);
        };
        let found = self.store.look_up_token(token.expose()).await?;
        Ok(found.filter(|it| it.revoked_at.is_none()).map(|_| token))
    }

    /// Makes a token for one engine alone, so that it can be revoked alone.
    async fn make_token(&self, engine: &Engine) -> Result<(String, Secret), Failure> {
        let tokens = self.store.tokens().await?;
        let mut names = (1..).map(|it| match it {
            1 => format!("{OWN_TOKENS}{}", engine.id),
            _ => format!("{OWN_TOKENS}{}-{it}", engine.id),
        });
        let is_free = |name: &String| tokens.iter().all(|it| it.name != *name);
        let name = names.find(is_free).expect("there is no end of numbers");
        let project = self.caller().project;
        let new = NewToken {
            name: name.clone(),
            project: (!project.is_empty()).then_some(project),
            ..NewToken::default()
        };
        let (_, token) = self.store.create_token(new, now()).await?;
        Ok((name, token))
    }
}

pub(super) fn find(name: &str) -> Result<&'static Engine, Failure> {
    Engine::find(name).ok_or_else(|| {
        let known: Vec<&str> = ENGINES.iter().map(|it| it.id).collect();
        format!(
            "there is no engine `{name}`; known are {}",
            known.join(", ")
        )
        .into()
    })
}

/// The address at which engines on this machine reach the bridge.
pub(super) fn local_url(config: &Config) -> String {
    let mut address = config.listen;
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    format!("http://{address}/mcp")
}

/// The token that an entry holds in clear, wherever it stands in it.
pub(super) fn bearer(entry: &Value) -> Option<Secret> {
    match entry {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let text = value.as_str().filter(|_| name == "Authorization");
            let token = text.and_then(|it| it.strip_prefix("Bearer "));
            let written = token.filter(|it| !it.contains(['$', '{']));
            written.map(Secret::new).or_else(|| bearer(value))
        }),
        _ => None,
    }
}

/// What changes in a file. What isn't ours may be secret: it is shown as far as it stands in no quotes.
fn diff(planned: &Planned, folders: &Folders) -> String {
    let name = folders.shown(&planned.file);
    let text = |it: &Option<String>| {
        let text = it.clone().unwrap_or_default();
        // A last line without its end would count as changed.
        if text.is_empty() || text.ends_with('\n') {
            text
        } else {
            text + "\n"
        }
    };
    let (before, after) = (text(&planned.before), text(&planned.after));
    let diff = TextDiff::from_lines(&before, &after);
    let mut lines = vec![format!("--- {name}"), format!("+++ {name}")];
    for group in diff.grouped_ops(0) {
        let changes: Vec<_> = group.iter().flat_map(|it| diff.iter_changes(it)).collect();
        let replaces = changes.iter().any(|it| it.tag() == ChangeTag::Delete);
        let place = changes
            .iter()
            .find_map(|it| it.new_index().or(it.old_index()));
        lines.push(format!("@@ line {} @@", place.unwrap_or_default() + 1));
        for change in changes {
            let line = change.value().trim_end_matches('\n');
            let shown = if replaces {
                without_texts(line)
            } else {
                without_tokens(line)
            };
            lines.push(format!("{}{shown}", change.tag()));
        }
    }
    lines.join("\n")
}

/// A line with `…` for every value in quotes; the names before `:` and `=` stay.
fn without_texts(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(['"', '\'']) {
        let (before, quoted) = rest.split_at(start);
        let quote = if quoted.starts_with('"') { '"' } else { '\'' };
        let Some(end) = quoted[1..].find(quote) else {
            break;
        };
        let inside = &quoted[1..=end];
        rest = &quoted[end + 2..];
        let is_name = rest.trim_start().starts_with([':', '=']);
        shown.push_str(before);
        shown.push(quote);
        shown.push_str(if is_name { inside } else { "…" });
        shown.push(quote);
    }
    // An end without quotes may be the rest of a text.
    shown + &without_tokens(rest)
}

fn without_tokens(text: &str) -> String {
    const SCHEME: &str = "Bearer ";
    let mut parts = text.split(SCHEME);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str(SCHEME);
        let is_variable = part.starts_with(['$', '{']);
        let end = part.find(['"', '\'']).unwrap_or(part.len());
        shown.push_str(if is_variable { &part[..end] } else { "…" });
        shown.push_str(&part[end..]);
    }
    shown
}
