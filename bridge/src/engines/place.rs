//! Where an engine's files are.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The folders of one person, and of one project.
#[derive(Clone, Debug)]
pub struct Folders {
    home: PathBuf,
    project: Option<PathBuf>,
    variables: BTreeMap<String, String>,
}

/// A file of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The folder.
    pub root: Root,
    /// The file in it, with `/` between folders; of several, the first that is there, else the first.
    pub names: &'static [&'static str],
}

/// A folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// A folder in the home folder, or the one that a variable names (`""` where there is none).
    Home {
        /// The variable.
        variable: &'static str,
        /// The folder.
        folder: &'static str,
    },
    /// A folder in `~/.config`, or where `XDG_CONFIG_HOME` says, on every system.
    Config(&'static str),
    /// A folder where each system keeps the settings of applications.
    Application(&'static str),
    /// A folder in the project.
    Project(&'static str),
}

impl Folders {
    /// Takes the folders from the variables of the process; `None` where nobody has a home folder.
    pub fn of(variables: &BTreeMap<String, String>, project: Option<PathBuf>) -> Option<Self> {
        let home = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        let home = variables.get(home).map(PathBuf::from);
        Some(Self {
            home: home.filter(|it| it.is_absolute())?,
            project,
            variables: variables.clone(),
        })
    }

    /// Returns a variable's folder.
    fn variable(&self, name: &str) -> Option<PathBuf> {
        let folder = self.variables.get(name).map(PathBuf::from);
        folder.filter(|it| it.is_absolute())
    }

    /// Writes a path as a person would: `~/.codex/config.toml`.
    pub fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }

    /// Finds a program in the folders of `PATH`.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let path = self.variables.get("PATH")?;
        let endings: &[&str] = if cfg!(windows) {
            &[".exe", ".cmd"]
        } else {
            &[""]
        };
        std::env::split_paths(path)
            .flat_map(|folder| {
                endings
                    .iter()
                    .map(move |ending| folder.join(format!("{name}{ending}")))
            })
            .find(|it| it.is_file())
    }
}

impl Place {
    /// Returns the folder; `None` if it is one of a project, and there is none.
    pub fn folder(&self, folders: &Folders) -> Option<PathBuf> {
        let home = &folders.home;
        let below = |folder: PathBuf, name: &str| {
            if name.is_empty() {
                folder
            } else {
                folder.join(name)
            }
        };
        Some(match self.root {
            Root::Home { variable, folder } => folders
                .variable(variable)
                .unwrap_or_else(|| below(home.clone(), folder)),
            Root::Config(folder) => {
                let config = folders.variable("XDG_CONFIG_HOME");
                below(config.unwrap_or_else(|| home.join(".config")), folder)
            }
            Root::Application(folder) => {
                let application = if cfg!(windows) {
                    folders.variable("APPDATA")
                } else if cfg!(target_os = "macos") {
                    Some(home.join("Library/Application Support"))
                } else {
                    folders.variable("XDG_CONFIG_HOME")
                };
                below(application.unwrap_or_else(|| home.join(".config")), folder)
            }
            Root::Project(folder) => below(folders.project.clone()?, folder),
        })
    }

    /// Says whether the folder is there, or the file where its folder says nothing, as a home folder does.
    pub fn has_folder(&self, folders: &Folders) -> bool {
        let folder = self.folder(folders);
        let folder = folder.filter(|it| *it != folders.home);
        folder
            .or_else(|| self.file(folders))
            .is_some_and(|it| it.exists())
    }

    /// Returns the file; `None` if it is one of a project, and there is none.
    pub fn file(&self, folders: &Folders) -> Option<PathBuf> {
        let folder = self.folder(folders)?;
        let there = self
            .names
            .iter()
            .map(|it| folder.join(it))
            .find(|it| it.exists());
        there.or_else(|| Some(folder.join(self.names.first()?)))
    }
}
