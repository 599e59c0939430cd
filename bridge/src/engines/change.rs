//! One change to the text of a configuration, made and unmade.

use super::{EditError, Format, Place, Step, edit};
use serde_json::Value;

/// A change to a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    /// The file.
    pub place: Place,
    /// How it is written.
    pub format: Format,
    /// Where in it.
    pub at: Vec<Step<'a>>,
    /// What stands there then.
    pub wanted: Wanted,
}

/// What must stand somewhere in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// This value, whatever was there.
    Value(Value),
    /// This value, unless there is one.
    Default(Value),
    /// These texts, among others in a list.
    Members {
        /// How all texts begin that are ours.
        prefix: String,
        /// The texts.
        members: Vec<String>,
    },
    /// Nothing: what stood there is ours, and not needed any more.
    Nothing,
}

impl Change<'_> {
    /// Makes it in the text of the file.
    pub fn make(&self, text: &str) -> Result<String, EditError> {
        match &self.wanted {
            Wanted::Value(value) => self.set(text, value),
            Wanted::Nothing => edit::remove(text, self.format, &self.at),
            Wanted::Default(value) => match self.get(text)? {
                Some(_) => Ok(text.to_owned()),
                None => self.set(text, value),
            },
            Wanted::Members { members, .. } => {
                let mut all = self.members(text)?;
                let before = all.len();
                for member in members {
                    if !all.iter().any(|it| it == member) {
                        all.push(member.as_str().into());
                    }
                }
                if all.len() == before {
                    Ok(text.to_owned())
                } else {
                    self.set(text, &all.into())
                }
            }
        }
    }

    /// Takes it out of the text of the file, and nothing else.
    pub fn unmake(&self, text: &str) -> Result<String, EditError> {
        match &self.wanted {
            Wanted::Value(_) | Wanted::Nothing => edit::remove(text, self.format, &self.at),
            Wanted::Default(_) => Ok(text.to_owned()),
            Wanted::Members { prefix, .. } => {
                let mut all = self.members(text)?;
                let before = all.len();
                all.retain(|it| it.as_str().is_none_or(|it| !it.starts_with(prefix)));
                if all.len() == before {
                    Ok(text.to_owned())
                } else {
                    self.set(text, &all.into())
                }
            }
        }
    }

    fn get(&self, text: &str) -> Result<Option<Value>, EditError> {
        edit::get(text, self.format, &self.at)
    }

    fn set(&self, text: &str, value: &Value) -> Result<String, EditError> {
        edit::set(text, self.format, &self.at, value)
    }

    fn members(&self, text: &str) -> Result<Vec<Value>, EditError> {
        match self.get(text)? {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(members)) => Ok(members),
            Some(_) => Err(edit::expected(text, self.format, &self.at, "a list")),
        }
    }
}
