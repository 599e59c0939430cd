//! Writes an engine's files so that each change can be taken back: what stood there is kept in the data folder.

use super::plan::{PlanError, Planned, read};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;
use thiserror::Error;

/// The file in each backup that says what it is a backup of.
const RECORD: &str = "record.json";

/// What was written, and what stood there before: a folder per command in `connections` of the data folder.
#[derive(Clone, Debug)]
pub struct Backups {
    folder: PathBuf,
}

/// One command's changes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Record {
    /// What was done, as a person would say it: `connect codex`.
    pub what: String,
    /// What was written.
    pub files: Vec<Written>,
    /// The name of the token that was made for it, or that it took away.
    #[serde(default)]
    pub token: Option<String>,
    #[serde(skip)]
    folder: PathBuf,
}

/// A file that was written.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Written {
    /// The file.
    pub file: PathBuf,
    /// The copy of what stood in it, in the folder of the record; `None` if it wasn't there.
    before: Option<String>,
    /// The SHA-256 of what was written, in Base64; `None` if the file was deleted.
    after: Option<String>,
    /// The folders that were made for it, the outermost first.
    folders: Vec<PathBuf>,
}

/// What stood in a file before it was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    /// The text; `None` if the file wasn't there.
    pub text: Option<String>,
    /// The folders that were made for it, the outermost first.
    pub folders: Vec<PathBuf>,
}

/// Why a file could not be written, or not be taken back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackupError {
    /// A file could not be read.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A file could not be written.
    #[error("can't write `{}`", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file was changed by somebody else meanwhile.
    #[error("`{}` was changed meanwhile; try again", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// A file was changed after it was written.
    #[error("`{}` was changed after that; `clopen-mcp disconnect` takes out our entry alone, and the old file is `{}`", file.display(), backup.display())]
    ChangedSince {
        /// The file.
        file: PathBuf,
        /// What stood there before.
        backup: PathBuf,
    },
    /// The copy of what stood in a file is gone.
    #[error("`{}` stays as it is: the copy of what stood in it, `{}`, is gone", file.display(), copy.display())]
    NoCopy {
        /// The file.
        file: PathBuf,
        /// The copy.
        copy: PathBuf,
    },
    /// There is nothing to take back.
    #[error("there is nothing to undo")]
    Nothing,
    /// A record can't be read.
    #[error("can't read `{}`; it was written by another version, or damaged", file.display())]
    Record {
        /// The file.
        file: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

impl Backups {
    /// Keeps backups in the data folder of the bridge.
    pub fn of(data: &Path) -> Self {
        Self {
            folder: data.join("connections"),
        }
    }

    /// Writes what is planned, each file in one piece and with a copy of what stood there; `is_private` keeps others
    /// from reading them. `token` is the name of the one that was made for it, or that it takes away. Nothing is written if a file isn't as it was planned from.
    pub fn write(
        &self,
        what: String,
        planned: &[Planned],
        is_private: bool,
        token: Option<String>,
    ) -> Result<(), BackupError> {
        for planned in planned {
            if read(&planned.file)? != planned.before {
                let file = planned.file.clone();
                return Err(BackupError::Changed { file });
            }
        }
        let folder = self.next()?;
        let mut record = Record {
            what,
            files: Vec::new(),
            token,
            folder: folder.clone(),
        };
        for (index, planned) in planned.iter().enumerate() {
            let before = planned.before.as_ref().map(|text| {
                let name = format!("{index}.before");
                put(&folder.join(&name), text, true).map(|()| name)
            });
            record.files.push(Written {
                before: before.transpose()?,
                after: planned.after.as_deref().map(hash),
                folders: missing_folders(&planned.file),
                file: planned.file.clone(),
            });
        }
        // Whoever is interrupted in the middle of writing can take back what is written by then.
        record.save()?;
        for planned in planned {
            if read(&planned.file)? != planned.before {
                let file = planned.file.clone();
                return Err(BackupError::Changed { file });
            }
            match &planned.after {
                Some(text) => put(&planned.file, text, is_private)?,
                None => delete(&planned.file)?,
            }
        }
        Ok(())
    }

    /// Takes back what the last command did, byte for byte; says what that was.
    pub fn undo(&self) -> Result<Record, BackupError> {
        let record = self.records()?.pop().ok_or(BackupError::Nothing)?;
        let mut befores = Vec::new();
        for written in &record.files {
            let before = written.before(&record.folder)?;
            if !written.is_as_written()? && read(&written.file)? != before {
                return Err(BackupError::ChangedSince {
                    file: written.file.clone(),
                    backup: record.folder.clone(),
                });
            }
            befores.push(before);
        }
        for (written, before) in record.files.iter().zip(befores) {
            if let Some(text) = before {
                put(&written.file, &text, false)?;
            } else {
                delete(&written.file)?;
                delete_folders(&written.folders);
            }
        }
        record.forget()?;
        Ok(record)
    }

    /// Returns what stood in a file before a command changed it, as often as it did so in a row, and nobody else since;
    /// `None` if somebody else did, or it never was changed.
    pub fn original(&self, file: &Path, what: &str) -> Result<Option<Original>, BackupError> {
        let mut now = read(file)?;
        let mut original = None;
        for record in self.records()?.into_iter().rev() {
            let Some(written) = record.files.iter().find(|it| it.file == file) else {
                continue;
            };
            if record.what != what || now.as_deref().map(hash) != written.after {
                break;
            }
            now = written.before(&record.folder)?;
            original = Some(Original {
                text: now.clone(),
                folders: written.folders.clone(),
            });
        }
        Ok(original)
    }

    /// Returns what was done, the last at the end.
    fn records(&self) -> Result<Vec<Record>, BackupError> {
        let mut records = Vec::new();
        for number in self.numbers()? {
            let folder = self.folder.join(number.to_string());
            let file = folder.join(RECORD);
            // A folder without a record is one that was interrupted before anything was written.
            let Some(text) = read(&file)? else { continue };
            let record: Result<Record, _> = serde_json::from_str(&text);
            let record = record.map_err(|source| BackupError::Record { file, source })?;
            records.push(Record { folder, ..record });
        }
        Ok(records)
    }

    fn numbers(&self) -> Result<Vec<u64>, BackupError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&self.folder)(error)),
        };
        let names = entries.filter_map(|it| it.ok()?.file_name().into_string().ok());
        let mut numbers: Vec<u64> = names.filter_map(|it| it.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Makes the folder of the next record.
    fn next(&self) -> Result<PathBuf, BackupError> {
        fs::create_dir_all(&self.folder).map_err(failed(&self.folder))?;
        let mut number = self.numbers()?.last().map_or(1, |it| it + 1);
        loop {
            let folder = self.folder.join(number.to_string());
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(folder),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failed(&folder)(error)),
            }
        }
    }
}

impl Record {
    fn save(&self) -> Result<(), BackupError> {
        let text = serde_json::to_string_pretty(self).expect("paths are text");
        put(&self.folder.join(RECORD), &text, true)
    }

    fn forget(&self) -> Result<(), BackupError> {
        fs::remove_dir_all(&self.folder).map_err(failed(&self.folder))
    }
}

impl Written {
    fn is_as_written(&self) -> Result<bool, BackupError> {
        Ok(read(&self.file)?.as_deref().map(hash) == self.after)
    }

    /// What stood in the file before.
    fn before(&self, folder: &Path) -> Result<Option<String>, BackupError> {
        let Some(name) = &self.before else {
            return Ok(None);
        };
        let copy = folder.join(name);
        match read(&copy)? {
            Some(text) => Ok(Some(text)),
            None => Err(BackupError::NoCopy {
                file: self.file.clone(),
                copy,
            }),
        }
    }
}

/// Deletes folders that were made for a file, the innermost first, unless somebody has put something else into them.
pub(crate) fn delete_folders(folders: &[PathBuf]) {
    for made in folders.iter().rev() {
        let _ = fs::remove_dir(made);
    }
}

/// Returns the folders on the way to a file that aren't there, the outermost first.
fn missing_folders(file: &Path) -> Vec<PathBuf> {
    let folders = file.ancestors().skip(1).take_while(|it| !it.exists());
    let mut folders: Vec<PathBuf> = folders.map(Path::to_owned).collect();
    folders.reverse();
    folders
}

/// Writes a file in one piece: whoever reads it sees the old text or the new one. A link stays a link, and a file keeps
/// who may read it unless it becomes private.
fn put(file: &Path, text: &str, is_private: bool) -> Result<(), BackupError> {
    let write = || {
        let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let folder = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut new = NamedTempFile::new_in(folder)?;
        new.write_all(text.as_bytes())?;
        if !is_private {
            let permissions = match fs::metadata(&target) {
                Ok(metadata) => metadata.permissions(),
                Err(_) => usual_permissions(new.as_file().metadata()?.permissions()),
            };
            new.as_file().set_permissions(permissions)?;
        }
        new.as_file().sync_all()?;
        new.persist(&target)?;
        Ok(())
    };
    write().map_err(failed(file))
}

/// What a file has that a program of this person makes: temporary ones are theirs alone.
fn usual_permissions(mut permissions: fs::Permissions) -> fs::Permissions {
    #[cfg(unix)]
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    #[cfg(not(unix))]
    permissions.set_readonly(false);
    permissions
}

fn delete(file: &Path) -> Result<(), BackupError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(file)(error)),
        _ => Ok(()),
    }
}

fn failed(file: &Path) -> impl Fn(io::Error) -> BackupError {
    let file = file.to_owned();
    move |source| BackupError::Write {
        file: file.clone(),
        source,
    }
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    URL_SAFE_NO_PAD.encode(digest)
}
