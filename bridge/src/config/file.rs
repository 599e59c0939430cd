//! The settings file: which one it is, and where in it something stands.

use super::{FILE_NAME, Flags, Place, Problem, folders::settings_folder};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};
use toml::de::DeTable;

/// A settings file: what it is called in messages, where it is, and what it says.
pub(super) struct File {
    name: PathBuf,
    pub(super) path: PathBuf,
    text: String,
}

impl File {
    pub(super) fn place(&self, key: impl Into<String>, offset: usize) -> Place {
        let (line, column) = self.position(offset);
        Place::File {
            path: self.name.clone(),
            line,
            column,
            key: key.into(),
        }
    }

    fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (
            before.matches('\n').count() + 1,
            before[line_start..].chars().count() + 1,
        )
    }
}

pub(super) fn find_file(
    flags: &Flags,
    variables: &BTreeMap<String, String>,
    folder: &Path,
) -> Result<Option<File>, Problem> {
    let variable = variables
        .get("CLOPEN_MCP_CONFIG")
        .filter(|it| !it.is_empty());
    let named = match (&flags.config, variable) {
        (Some(path), _) => Some((path.clone(), Place::Flag("--config"))),
        (None, Some(path)) => Some((
            PathBuf::from(path),
            Place::Variable("CLOPEN_MCP_CONFIG".to_owned()),
        )),
        (None, None) => None,
    };
    if let Some((name, place)) = named {
        return read_file(&name, folder)
            .map(Some)
            .map_err(|source| Problem::Named {
                place,
                path: name,
                source,
            });
    }
    let candidates = [
        Some(PathBuf::from(FILE_NAME)),
        settings_folder(variables).map(|it| it.join("clopen-mcp").join(FILE_NAME)),
    ];
    for name in candidates.into_iter().flatten() {
        match read_file(&name, folder) {
            Ok(file) => return Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Problem::Unreadable { path: name, source }),
        }
    }
    Ok(None)
}

fn read_file(name: &Path, folder: &Path) -> Result<File, io::Error> {
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path)?;
    Ok(File {
        name: name.to_owned(),
        path,
        text,
    })
}

pub(super) fn parse<'a>(file: &'a File, problems: &mut Vec<Problem>) -> DeTable<'a> {
    let (table, errors) = DeTable::parse_recoverable(&file.text);
    if errors.is_empty() {
        return table.into_inner();
    }
    // What is left of a broken file would only raise problems that aren't there.
    problems.extend(errors.into_iter().map(|error| {
        let (line, column) = file.position(error.span().map_or(0, |it| it.start));
        Problem::Syntax {
            path: file.name.clone(),
            line,
            column,
            message: error.message().to_owned(),
        }
    }));
    DeTable::new()
}
