//! Changes to the configuration files of engines, in which everything that is not ours stays byte for byte.
//!
//! A file is read into a tree that knows where everything stands. A change is a few splices into the text, and what
//! comes of it is read again: unless it says what the file said, with just that change, there is an error instead.

mod flow;
mod json;
mod text;
mod toml;
mod tree;
mod yaml;

use serde_json::Value;
use std::ops::Range;
use thiserror::Error;
use tree::{Node, Way};

/// The language a configuration file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and trailing commas are read and kept, and never added.
    Json,
    /// TOML.
    Toml,
    /// One document of YAML.
    Yaml,
}

/// One step of the way from the whole file to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// To what an object has under this key.
    Key(&'a str),
    /// To the object in a list that has this text under this key.
    Element {
        /// The key, such as `name`.
        key: &'a str,
        /// The text.
        name: &'a str,
    },
}

/// Why a file can't be read or changed, and where it has to be looked at.
///
/// It repeats no value of the file, since that may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct EditError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1 and in characters.
    pub column: usize,
    /// What was expected there, or what can't be done.
    pub reason: String,
}

/// Returns the whole file as a value; an empty one is `null`, or an object in TOML.
///
/// What JSON can't say comes as text: dates, numbers without end, and an alias as `*`.
pub fn parse(text: &str, format: Format) -> Result<Value, EditError> {
    get(text, format, &[]).map(Option::unwrap_or_default)
}

/// Returns the error that something else was expected at the end of the path, or on the way to it.
pub fn expected(text: &str, format: Format, path: &[Step<'_>], what: &str) -> EditError {
    let body = without_mark(text);
    let found = || {
        let root = read(body, format)?;
        let start = Way::along(&root, path)?.end().at.start;
        Err(Fault::new(start, format!("expected {what}")))
    };
    found().map_or_else(
        |fault: Fault| fault.in_text(body),
        |never: std::convert::Infallible| match never {},
    )
}

/// Returns the value at the end of the path, if it is there.
pub fn get(text: &str, format: Format, path: &[Step<'_>]) -> Result<Option<Value>, EditError> {
    let body = without_mark(text);
    let found = || {
        let root = read(body, format)?;
        let way = Way::along(&root, path)?;
        Ok(way.is_complete().then(|| way.end().value()))
    };
    found().map_err(|fault: Fault| fault.in_text(body))
}

/// Puts a value at the end of the path, in the place of the one that is there.
///
/// Missing parents are made, and a `null` on the way counts as missing. An object for a list gets the name that the
/// path says, unless it has it. Where the value is the same already, so is the text.
pub fn set(
    text: &str,
    format: Format,
    path: &[Step<'_>],
    value: &Value,
) -> Result<String, EditError> {
    change(text, format, path, Some(value))
}

/// Takes out what is at the end of the path, with the comment at the end of its line; its parents stay.
pub fn remove(text: &str, format: Format, path: &[Step<'_>]) -> Result<String, EditError> {
    change(text, format, path, None)
}

/// What is wrong, and at which byte.
#[derive(Debug)]
struct Fault {
    at: usize,
    reason: String,
}

impl Fault {
    fn new(at: usize, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { at, reason }
    }

    fn in_text(self, text: &str) -> EditError {
        let mut at = self.at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &text[..at];
        EditError {
            line: before.matches('\n').count() + 1,
            column: text[text::line_start(text, at)..at].chars().count() + 1,
            reason: self.reason,
        }
    }
}

/// A text that takes the place of another; an insertion where the range is empty.
#[derive(Debug)]
struct Splice {
    range: Range<usize>,
    text: String,
}

impl Splice {
    fn new(range: Range<usize>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { range, text }
    }
}

fn change(
    text: &str,
    format: Format,
    path: &[Step<'_>],
    value: Option<&Value>,
) -> Result<String, EditError> {
    let body = without_mark(text);
    changed(body, format, path, value)
        .map(|changed| format!("{}{changed}", &text[..text.len() - body.len()]))
        .map_err(|fault| fault.in_text(body))
}

fn changed(
    body: &str,
    format: Format,
    path: &[Step<'_>],
    value: Option<&Value>,
) -> Result<String, Fault> {
    if path.is_empty() {
        return Err(Fault::new(0, "the file as a whole can't be replaced"));
    }
    let root = read(body, format)?;
    let way = Way::along(&root, path)?;
    let named = value.map(|value| named(path, value, &way)).transpose()?;
    let value = named.as_ref();
    let before = way.is_complete().then(|| way.end().value());
    if before.as_ref() == value {
        return Ok(body.to_owned());
    }
    let splices = match (format, value) {
        (Format::Json, Some(value)) => json::set(body, &way, value),
        (Format::Json, None) => json::remove(body, &way),
        (Format::Toml, Some(value)) => toml::set(body, &way, value)?,
        (Format::Toml, None) => toml::remove(body, &way)?,
        (Format::Yaml, Some(value)) => yaml::set(body, &way, value)?,
        (Format::Yaml, None) => yaml::remove(body, &way)?,
    };
    let unsafe_here = || {
        let reason = "this can't be changed without harm to the rest; change it by hand";
        Fault::new(way.end().at.start, reason)
    };
    let changed = spliced(body, splices).ok_or_else(unsafe_here)?;
    let after = read(&changed, format).map_err(|_| unsafe_here())?.value();
    if is_right(root.value(), &after, format, path, value) {
        Ok(changed)
    } else {
        Err(unsafe_here())
    }
}

/// Returns the value with the name that the last step finds it by.
fn named(path: &[Step<'_>], value: &Value, way: &Way<'_, '_>) -> Result<Value, Fault> {
    match path.last() {
        Some(step @ Step::Element { key, name }) => {
            let value = tree::element(*step, value.clone());
            if value[*key] == *name {
                return Ok(value);
            }
            let reason = "only an object with the name that it is found by can stand here";
            Err(Fault::new(way.end().at.start, reason))
        }
        _ => Ok(value.clone()),
    }
}

/// Says whether a file that was `before` may be `after` the change.
fn is_right(
    before: Value,
    after: &Value,
    format: Format,
    path: &[Step<'_>],
    value: Option<&Value>,
) -> bool {
    let mut right = before;
    if let Some(value) = value {
        return tree::put(&mut right, path, value).is_some() && right == *after;
    }
    let mut path = path;
    loop {
        tree::take(&mut right, path);
        if right == *after {
            return true;
        }
        // In TOML, a table without a line of its own is there only as long as something is in it.
        match path.split_last() {
            Some((_, parents)) if format == Format::Toml && tree::is_empty(&right, parents) => {
                path = parents;
            }
            _ => return false,
        }
    }
}

fn read(body: &str, format: Format) -> Result<Node, Fault> {
    match format {
        Format::Json => json::read(body),
        Format::Toml => toml::read(body),
        Format::Yaml => yaml::read(body),
    }
}

/// Returns the text without the mark of its byte order, which editors of Windows put first.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns `None` for splices that cut into one another.
fn spliced(text: &str, mut splices: Vec<Splice>) -> Option<String> {
    splices.sort_by_key(|splice| splice.range.start);
    let mut changed = String::with_capacity(text.len());
    let mut at = 0;
    for splice in splices {
        changed += text.get(at..splice.range.start)?;
        changed += &splice.text;
        at = splice.range.end;
    }
    changed += text.get(at..)?;
    Some(changed)
}
