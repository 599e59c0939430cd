//! The coding agents that can connect: one file per engine says where its settings are, how it keeps a secret, and what
//! it needs to have its tools on the first turn.

pub mod backups;
mod change;
pub mod claude;
pub mod cline;
pub mod codex;
mod connection;
pub mod continue_dev;
pub mod copilot;
pub mod cursor;
pub mod edit;
pub mod entries;
pub mod gemini;
pub mod goose;
pub mod import;
pub mod opencode;
pub mod pi;
mod place;
pub mod plan;
pub mod qwen;
pub mod vscode;
pub mod windsurf;
pub mod zed;

pub use change::{Change, Wanted};
pub use connection::{Access, Connection, TOKEN_VARIABLE, Token};
pub use edit::{EditError, Format, Step};
pub use place::{Folders, Place, Root};

use serde_json::Value;
use tool_runtime::{Caller, Dialect, NAMESPACE, Spelling};

/// Every engine, by title.
pub static ENGINES: [&Engine; 14] = [
    &claude::ENGINE,
    &cline::ENGINE,
    &codex::ENGINE,
    &continue_dev::ENGINE,
    &copilot::ENGINE,
    &cursor::ENGINE,
    &gemini::ENGINE,
    &goose::ENGINE,
    &opencode::ENGINE,
    &pi::ENGINE,
    &qwen::ENGINE,
    &vscode::ENGINE,
    &windsurf::ENGINE,
    &zed::ENGINE,
];

/// A coding agent that can connect.
#[derive(Debug)]
pub struct Engine {
    /// Its name in commands and in the address of the bridge: `codex`.
    pub id: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Other names by which people call it.
    pub aliases: &'static [&'static str],
    /// The programs that start it.
    pub programs: &'static [&'static str],
    /// How the name begins that its client gives itself.
    pub clients: &'static [&'static str],
    /// How its file is written.
    pub format: Format,
    /// The file of a person.
    pub user: Place,
    /// The file of a project, where there is one.
    pub project: Option<Place>,
    /// Where the entry stands in the file.
    pub entry_at: &'static [Step<'static>],
    /// How long the shortest-lived configuration lives that a host application can start it with.
    pub lifetime: Lifetime,
    /// How its file names the variable of the token; `None` where it can't, and the token stands in the file itself.
    pub variable: Option<&'static str>,
    /// What stands at `entry_at`.
    pub entry: fn(&Access<'_>) -> Value,
    /// What must stand elsewhere.
    pub further: fn(&Connection, Scope) -> Vec<Change<'static>>,
    /// How it spells the name of a tool for its model.
    pub spelling: Spelling,
    /// What it takes of a schema, whatever its model takes.
    pub dialect: Dialect,
    /// How many bytes of a result it shows its model whole, where that is known to be few.
    pub most_output: Option<usize>,
    /// Arguments that it adds to those of the model.
    pub invents: &'static [&'static str],
    /// What is written besides address and token, and why.
    pub reasons: &'static [(&'static str, &'static str)],
    /// What its users should know.
    pub notes: &'static [&'static str],
}

/// For whom an engine is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// For one person, in all projects.
    User,
    /// For all who work on one project.
    Project,
}

/// How long a configuration lives: as long as a person, a project or a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifetime {
    /// The file of a person: nobody knows which project calls.
    User,
    /// The file of a project.
    Project,
    /// A file, a variable or an argument of one process.
    Stream,
}

/// A file of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Where the engine looks for it.
    pub place: Place,
    /// How it is written.
    pub format: Format,
    /// What stands in it.
    pub text: String,
}

impl Engine {
    /// Returns the engine of a name, as people write it.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::named(&name.to_lowercase().replace([' ', '_'], "-"))
    }

    /// Returns the engine of a name, as it stands in addresses.
    pub fn named(name: &str) -> Option<&'static Self> {
        let mut engines = ENGINES.iter().copied();
        engines.find(|it| it.id == name || it.aliases.contains(&name))
    }

    /// Returns the one name of an engine that goes by several; a name that is no engine's stays.
    pub fn one_name(name: String) -> String {
        match Self::named(&name) {
            Some(engine) if engine.id != name => engine.id.to_owned(),
            _ => name,
        }
    }

    /// Returns the engine whose client gives itself this name.
    pub fn of_client(name: &str) -> Option<&'static Self> {
        let mut engines = ENGINES.iter().copied();
        engines.find(|it| it.clients.iter().any(|client| name.starts_with(client)))
    }

    /// Says whether it is on this machine: one of its programs, or the folder of its settings.
    pub fn is_installed(&self, folders: &Folders) -> bool {
        let has_program = self.programs.iter().any(|it| folders.program(it).is_some());
        has_program || self.user.has_folder(folders)
    }

    /// Returns the file of a person or a project.
    pub fn place(&self, scope: Scope) -> Option<Place> {
        match scope {
            Scope::User => Some(self.user),
            Scope::Project => self.project,
        }
    }

    /// Returns everything that connecting changes; `None` if the engine has no file of that kind.
    pub fn changes<'a>(&self, connection: &'a Connection, scope: Scope) -> Option<Vec<Change<'a>>> {
        let lifetime = match scope {
            Scope::User => Lifetime::User,
            Scope::Project => Lifetime::Project,
        };
        self.changes_for(connection, scope, lifetime)
    }

    /// Returns a whole configuration, for a host application that starts the engine itself, in a home folder or with
    /// arguments of its own: it holds as much of the caller's project and conversation as the shortest-lived
    /// configuration of this engine may.
    ///
    /// The first file is the one with our entry.
    pub fn config(&self, connection: &Connection) -> Result<Vec<NewFile>, EditError> {
        let changes = self.changes_for(connection, Scope::User, self.lifetime);
        let mut files: Vec<NewFile> = Vec::new();
        for change in changes.into_iter().flatten() {
            let Change { place, format, .. } = change;
            let index = files.iter().position(|it| it.place == place);
            let index = index.unwrap_or_else(|| {
                let text = String::new();
                files.push(NewFile {
                    place,
                    format,
                    text,
                });
                files.len() - 1
            });
            files[index].text = change.make(&files[index].text)?;
        }
        Ok(files)
    }

    fn changes_for<'a>(
        &self,
        connection: &'a Connection,
        scope: Scope,
        lifetime: Lifetime,
    ) -> Option<Vec<Change<'a>>> {
        let place = self.place(scope)?;
        let entry = |server: Option<&'a str>| Change {
            place,
            format: self.format,
            at: entries::way(self, server.unwrap_or(NAMESPACE)),
            wanted: Wanted::Value((self.entry)(&connection.access(self, lifetime, server))),
        };
        // What a new file needs besides comes before our entry.
        let further = (self.further)(connection, scope).into_iter();
        let is_default = |it: &Change<'_>| matches!(it.wanted, Wanted::Default(_));
        let (mut changes, further): (Vec<_>, Vec<_>) = further.partition(is_default);
        changes.push(entry(None));
        changes.extend(connection.external.iter().map(|it| entry(Some(it))));
        changes.extend(further);
        Some(changes)
    }
}

/// Says what a caller takes of a schema: its engine, and the model behind it as far as that is known.
pub fn dialect(caller: &Caller) -> Dialect {
    let of_engine = Engine::named(&caller.engine).map_or(Dialect::ANY, |it| it.dialect);
    let model = caller.model.to_lowercase();
    let families = [
        ("gemini", Dialect::GEMINI),
        ("claude", Dialect::ANTHROPIC),
        ("gpt", Dialect::OPENAI),
    ];
    let family = families.iter().find(|(name, _)| model.contains(name));
    family.map_or(of_engine, |(_, dialect)| of_engine.both(*dialect))
}

/// The place of an entry in a map of servers.
const fn in_map(servers: &'static str) -> [Step<'static>; 2] {
    [Step::Key(servers), Step::Key(NAMESPACE)]
}

fn nothing_else(_: &Connection, _: Scope) -> Vec<Change<'static>> {
    Vec::new()
}

/// Adds tools that change nothing to those that an engine runs without asking, as Claude Code and its kin keep them.
fn allowed(place: Place, tools: &[String]) -> Change<'static> {
    let prefix = format!("mcp__{NAMESPACE}__");
    let members = tools.iter().map(|it| format!("{prefix}{it}")).collect();
    Change {
        place,
        format: Format::Json,
        at: vec![Step::Key("permissions"), Step::Key("allow")],
        wanted: Wanted::Members { prefix, members },
    }
}
