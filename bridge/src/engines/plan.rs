//! What connecting and disconnecting make of an engine's files, before anything is written.

use super::{
    Change, Connection, EditError, Engine, Folders, Scope, Wanted, edit,
    entries::{self, Named},
};
use serde_json::Value;
use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};
use thiserror::Error;

/// The longest file that is taken for a configuration.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// A file, and what it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The file.
    pub file: PathBuf,
    /// What stands in it; `None` if it isn't there.
    pub before: Option<String>,
    /// What will stand in it; `None` if it will be gone.
    pub after: Option<String>,
}

/// Why an engine can't be connected or disconnected. Nothing is written then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The engine has no file of that kind.
    #[error("{engine} has no settings of a project; connect it with `--scope user`")]
    NoProjectFile {
        /// Its title.
        engine: &'static str,
    },
    /// The file can't be read.
    #[error("can't read `{}`", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no configuration that can be changed.
    #[error("`{}` is left as it is", file.display())]
    Edit {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where.
        source: EditError,
    },
    /// The name of an external server is taken.
    #[error("`{}` has a server `{name}` that isn't this bridge's; rename it there, or connect with `--external merged`", file.display())]
    Taken {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
    },
}

impl Planned {
    /// Whether nothing changes.
    pub fn is_done(&self) -> bool {
        self.before == self.after
    }
}

/// Plans the connection of an engine. Entries that an earlier connection wrote for other external servers go.
pub fn connect(
    engine: &Engine,
    connection: &Connection,
    scope: Scope,
    folders: &Folders,
) -> Result<Vec<Planned>, PlanError> {
    let mut changes = changes(engine, connection, scope)?;
    let (file, there) = entries::all(engine, scope, folders)?.unwrap_or_default();
    let (ours, others): (Named, Named) = there
        .into_iter()
        .partition(|(name, entry)| entries::is_external(engine, name, entry));
    let is_wanted = |name: &String| connection.external.contains(name);
    if let Some((name, _)) = others.into_iter().find(|(name, _)| is_wanted(name)) {
        return Err(PlanError::Taken { file, name });
    }
    let gone = ours.iter().filter(|(name, _)| !is_wanted(name));
    for (name, _) in gone {
        changes.push(Change {
            place: engine.place(scope).ok_or_else(no_file(engine))?,
            format: engine.format,
            at: entries::way(engine, name),
            wanted: Wanted::Nothing,
        });
    }
    plan(engine, &changes, folders, Change::make)
}

/// Plans to take our entries out of an engine's files, and nothing else.
pub fn disconnect(
    engine: &Engine,
    connection: &Connection,
    scope: Scope,
    folders: &Folders,
) -> Result<Vec<Planned>, PlanError> {
    let ours = entries::external(engine, scope, folders)?.into_iter();
    let connection = Connection {
        external: ours.map(|(name, _)| name).collect(),
        ..connection.clone()
    };
    let changes = changes(engine, &connection, scope)?;
    let mut planned = plan(engine, &changes, folders, Change::unmake)?;
    // What isn't there has nothing of ours.
    planned.retain(|it| it.before.is_some());
    Ok(planned)
}

/// Returns the entry that an engine has for us, with its file; `None` if it has none.
pub fn connected(
    engine: &Engine,
    scope: Scope,
    folders: &Folders,
) -> Result<Option<(PathBuf, Value)>, PlanError> {
    let Some(file) = engine.place(scope).and_then(|it| it.file(folders)) else {
        return Ok(None);
    };
    let text = read(&file)?.unwrap_or_default();
    let entry = edit::get(&text, engine.format, engine.entry_at);
    let entry = entry.map_err(|source| PlanError::Edit {
        file: file.clone(),
        source,
    })?;
    Ok(entry.map(|it| (file, it)))
}

/// Plans to take other servers out of an engine's file; `None` if none is there.
pub fn without(
    engine: &Engine,
    scope: Scope,
    folders: &Folders,
    names: &[&str],
) -> Result<Option<Planned>, PlanError> {
    let Some(file) = engine.place(scope).and_then(|it| it.file(folders)) else {
        return Ok(None);
    };
    let before = read(&file)?;
    let mut text = before.clone().unwrap_or_default();
    for name in names {
        let step = entries::way(engine, name);
        let removed = edit::remove(&text, engine.format, &step);
        text = removed.map_err(|source| PlanError::Edit {
            file: file.clone(),
            source,
        })?;
    }
    let planned = Planned {
        after: before.is_some().then_some(text),
        before,
        file,
    };
    Ok(Some(planned).filter(|it| !it.is_done()))
}

fn changes<'a>(
    engine: &Engine,
    connection: &'a Connection,
    scope: Scope,
) -> Result<Vec<Change<'a>>, PlanError> {
    let changes = engine.changes(connection, scope);
    changes.ok_or_else(no_file(engine))
}

fn no_file(engine: &Engine) -> impl Fn() -> PlanError {
    let engine = engine.title;
    move || PlanError::NoProjectFile { engine }
}

type Apply<'c> = fn(&Change<'c>, &str) -> Result<String, EditError>;

fn plan<'c>(
    engine: &Engine,
    changes: &[Change<'c>],
    folders: &Folders,
    apply: Apply<'c>,
) -> Result<Vec<Planned>, PlanError> {
    let mut planned: Vec<Planned> = Vec::new();
    for change in changes {
        let file = change.place.file(folders).ok_or_else(no_file(engine))?;
        let index = if let Some(index) = planned.iter().position(|it| it.file == file) {
            index
        } else {
            let before = read(&file)?;
            planned.push(Planned {
                after: before.clone(),
                before,
                file,
            });
            planned.len() - 1
        };
        let Planned { file, after, .. } = &mut planned[index];
        let text = after.as_deref().unwrap_or_default();
        let new = apply(change, text).map_err(|source| PlanError::Edit {
            file: file.clone(),
            source,
        })?;
        if new != text {
            *after = Some(new);
        }
    }
    Ok(planned)
}

/// Reads a file; `None` if it isn't there.
pub(super) fn read(file: &Path) -> Result<Option<String>, PlanError> {
    let failed = |source| PlanError::Read {
        file: file.to_owned(),
        source,
    };
    let open = match fs::File::open(file) {
        Ok(open) => open,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let metadata = open.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::other("it is no file")));
    }
    if metadata.len() > MOST_BYTES {
        return Err(failed(io::Error::other("it has more than 16 MiB")));
    }
    let mut text = String::new();
    open.take(MOST_BYTES)
        .read_to_string(&mut text)
        .map_err(failed)?;
    Ok(Some(text))
}
