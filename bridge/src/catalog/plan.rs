//! A recipe with its inputs filled in: the exact command or address.

use super::{
    input::{Asked, Values},
    rules::{self, has_odd},
    template::{Piece, Template},
    text::line,
    way::{Base, Part, Programs, Recipe, Slot},
};
use crate::secret::Secret;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Url, header::HeaderValue};
use std::{collections::BTreeMap, path};
use thiserror::Error;

/// How many bytes a value may have.
const LONGEST: usize = 32 * 1024;

/// How many values a repeated input may have.
const MOST: usize = 64;

/// What a value may have in an address as it is.
const IN_URL: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b',');

/// A text of which parts may be secret.
#[derive(Clone, Debug)]
pub struct Word {
    /// The text itself.
    pub text: Secret,
    /// The text with `…` for what is secret.
    pub shown: String,
}

/// What is started, or where one connects.
#[derive(Clone, Debug)]
pub enum Plan {
    /// A program that speaks on its input and output.
    Command {
        /// The program.
        program: String,
        /// Its arguments, as they are: no shell reads them.
        arguments: Vec<Word>,
        /// The variables that it is given.
        environment: BTreeMap<String, Word>,
    },
    /// An endpoint of Streamable HTTP.
    Remote {
        /// The endpoint.
        url: Word,
        /// What every request carries.
        headers: BTreeMap<String, Word>,
    },
}

/// Why a recipe can't be filled in: everything that is wrong, at once.
#[derive(Debug, Error)]
#[error("{}", lines(.0))]
pub struct FillError(pub Vec<Problem>);

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(|it| format!("- {it}")).collect();
    lines.join("\n")
}

/// One thing that is wrong with what was said.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// Something must be said.
    #[error(
        "`{key}` is missing{}; say it with `--set {key}={}`",
        about(description),
        example(placeholder)
    )]
    Missing {
        /// The input.
        key: String,
        /// What it is.
        description: String,
        /// An example.
        placeholder: String,
    },
    /// Nothing of this name is asked.
    #[error("there is no input `{key}`{}", known(inputs))]
    Unknown {
        /// What was said.
        key: String,
        /// What there is.
        inputs: Vec<String>,
    },
    /// What was said can't be it.
    #[error("`{key}` {reason}")]
    Wrong {
        /// The input.
        key: String,
        /// Why.
        reason: String,
    },
}

fn about(description: &str) -> String {
    if description.is_empty() {
        String::new()
    } else {
        format!(" ({})", line(description, 100))
    }
}

fn example(placeholder: &str) -> &str {
    if placeholder.is_empty() || placeholder.contains(' ') {
        "VALUE"
    } else {
        placeholder
    }
}

fn known(inputs: &[String]) -> String {
    if inputs.is_empty() {
        "; it has none".to_owned()
    } else {
        format!("; there are {}", inputs.join(", "))
    }
}

impl Recipe {
    /// Names the inputs that must still be given.
    pub fn missing(&self, values: &Values) -> Vec<&Asked> {
        let asked = self.asked.iter();
        asked
            .filter(|it| {
                it.is_required && it.default.is_none() && given(values, &it.key).is_empty()
            })
            .collect()
    }

    /// Says whether it has inputs of all these names.
    pub fn knows(&self, values: &Values) -> bool {
        let mut keys = values.keys();
        keys.all(|key| self.asked.iter().any(|it| it.key == *key))
    }

    /// Fills in what was said, checked; what wasn't said is the default. A program also finds `given` in its environment.
    pub fn fill(
        &self,
        values: &Values,
        given: &BTreeMap<String, Secret>,
        programs: &Programs,
    ) -> Result<Plan, FillError> {
        self.can_be_given(given)?;
        let filled = self.checked(values)?;
        match &self.base {
            Base::Command {
                package,
                before,
                after,
                environment,
            } => {
                let mut environment = filled.map(environment);
                let given = given.iter();
                environment.extend(given.map(|(name, it)| (name.clone(), word(it.expose(), true))));
                let (command, _) = programs.command(&self.kind);
                let mut words = command.iter().map(|it| plain(it)).collect::<Vec<_>>();
                if self.kind == super::Kind::Oci {
                    // Values go through the environment, so that no list of processes shows them.
                    let names = environment.keys();
                    words.extend(names.flat_map(|it| [plain("-e"), plain(it)]));
                }
                filled.arguments(before, true, &mut words)?;
                words.push(plain(package));
                filled.arguments(after, false, &mut words)?;
                let program = words.remove(0).shown;
                Ok(Plan::Command {
                    program,
                    arguments: words,
                    environment,
                })
            }
            Base::Remote { url, headers } => Ok(Plan::Remote {
                url: filled.url(url)?,
                headers: headers_of(filled.map(headers))?,
            }),
        }
    }

    /// Checks the names of variables that the record doesn't ask for.
    fn can_be_given(&self, given: &BTreeMap<String, Secret>) -> Result<(), FillError> {
        let wrong = given.keys().filter_map(|name| {
            let reason = match self.base {
                Base::Remote { .. } => "is a variable, and an address is given none",
                Base::Command { .. } if rules::variable(name, false).is_ok() => return None,
                Base::Command { .. } => "is no name of a variable",
            };
            Some(Problem::Wrong {
                key: line(name, 60),
                reason: reason.to_owned(),
            })
        });
        let wrong: Vec<Problem> = wrong.collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(FillError(wrong))
        }
    }

    fn checked(&self, values: &Values) -> Result<Filled<'_>, FillError> {
        let mut problems = Vec::new();
        let mut filled = BTreeMap::new();
        for asked in &self.asked {
            let mut said = given(values, &asked.key);
            let is_said = !said.is_empty();
            if !is_said {
                said.extend(asked.default.as_deref());
            }
            if said.is_empty() && asked.is_required {
                problems.push(Problem::Missing {
                    key: asked.key.clone(),
                    description: asked.description.clone(),
                    placeholder: asked.placeholder.clone(),
                });
            }
            match asked.read(&said, is_said) {
                Ok(said) => drop(filled.insert(&*asked.key, (asked, said))),
                Err(reason) => problems.push(Problem::Wrong {
                    key: asked.key.clone(),
                    reason,
                }),
            }
        }
        for key in values.keys() {
            if !self.asked.iter().any(|it| it.key == *key) {
                problems.push(Problem::Unknown {
                    key: line(key, 60),
                    inputs: self.asked.iter().map(|it| it.key.clone()).collect(),
                });
            }
        }
        if problems.is_empty() {
            Ok(Filled(filled))
        } else {
            Err(FillError(problems))
        }
    }
}

/// What was said for an input; nothing is as good as an empty text.
fn given<'v>(values: &'v Values, key: &str) -> Vec<&'v str> {
    let said = values.get(key).into_iter().flatten();
    said.map(Secret::expose)
        .filter(|it| !it.is_empty())
        .collect()
}

impl Asked {
    /// Checks what was said for it.
    pub fn check(&self, said: &str) -> Result<(), String> {
        self.read(&[said], true).map(drop)
    }

    fn read(&self, said: &[&str], is_said: bool) -> Result<Vec<String>, String> {
        if said.len() > MOST || said.len() > 1 && !self.is_repeated {
            return Err(format!(
                "is given {} times, and takes {}",
                said.len(),
                if self.is_repeated { MOST } else { 1 }
            ));
        }
        let read = said.iter().map(|it| self.read_one(it, is_said));
        read.collect()
    }

    fn read_one(&self, said: &str, is_said: bool) -> Result<String, String> {
        if said.len() > LONGEST {
            return Err(format!("has more than {LONGEST} bytes"));
        }
        if said.chars().any(char::is_control) {
            return Err("has control characters".to_owned());
        }
        if !self.choices.is_empty() && !self.choices.iter().any(|it| it == said) {
            let choices = self.choices.join("`, `");
            return Err(format!("is one of `{choices}`"));
        }
        let shown = if self.is_secret {
            String::new()
        } else {
            format!(", not `{}`", line(said, 60))
        };
        match &*self.format {
            "number" if said.parse::<f64>().is_ok_and(f64::is_finite) => {}
            "number" => return Err(format!("is a number{shown}")),
            "boolean" if matches!(said, "true" | "false") => {}
            "boolean" => return Err(format!("is `true` or `false`{shown}")),
            "filepath" if said.starts_with('~') => {
                return Err(format!("is a whole path, such as `/home/me/…`{shown}"));
            }
            // The bridge may run in another folder than whoever says this.
            "filepath" if is_said => {
                let path = path::absolute(said).ok();
                return Ok(
                    path.map_or_else(|| said.to_owned(), |it| it.to_string_lossy().into_owned())
                );
            }
            _ => {}
        }
        Ok(said.to_owned())
    }
}

/// Inputs by name, with what they hold.
struct Filled<'r>(BTreeMap<&'r str, (&'r Asked, Vec<String>)>);

impl Filled<'_> {
    /// Fills a slot as often as its values go; not at all if something that it needs wasn't said.
    fn slot(&self, slot: &Slot) -> Vec<Word> {
        match slot {
            Slot::Asked(key) => {
                let (asked, said) = &self.0[&**key];
                said.iter().map(|it| word(it, asked.is_secret)).collect()
            }
            Slot::Fixed(template) => {
                let counts: Vec<usize> =
                    template.variables().map(|it| self.0[it].1.len()).collect();
                let times = if counts.contains(&0) {
                    0
                } else {
                    counts.into_iter().max().unwrap_or(1)
                };
                let encode = |text: &str| text.to_owned();
                (0..times)
                    .map(|it| self.text(template, it, encode))
                    .collect()
            }
        }
    }

    /// Fills a text with the values of one round. What has fewer values repeats its last.
    fn text(&self, template: &Template, round: usize, encode: impl Fn(&str) -> String) -> Word {
        let (mut text, mut shown) = (String::new(), String::new());
        for piece in template.pieces() {
            match piece {
                Piece::Text(it) => {
                    text.push_str(it);
                    shown.push_str(it);
                }
                Piece::Variable(name) => {
                    let (asked, said) = &self.0[&**name];
                    let value = said.get(round).or(said.last());
                    let value = value.map(|it| encode(it)).unwrap_or_default();
                    shown.push_str(if asked.is_secret { "…" } else { &value });
                    text.push_str(&value);
                }
            }
        }
        Word {
            text: Secret::new(text),
            shown,
        }
    }

    /// Fills what has names: variables or headers.
    fn map(&self, slots: &[(String, Slot)]) -> BTreeMap<String, Word> {
        let words = slots.iter().filter_map(|(name, slot)| {
            let word = self.slot(slot).into_iter().next()?;
            Some((name.clone(), word))
        });
        words.collect()
    }

    fn arguments(
        &self,
        parts: &[Part],
        is_before: bool,
        words: &mut Vec<Word>,
    ) -> Result<(), FillError> {
        for part in parts {
            let values = part.slot.as_ref().map(|it| self.slot(it));
            match (&part.flag, values) {
                (Some(flag), None) => words.push(plain(flag)),
                (Some(flag), Some(values)) if part.is_switch => {
                    let is_on = values.iter().any(|it| it.text.expose() == "true");
                    words.extend(is_on.then(|| plain(flag)));
                }
                (Some(flag), Some(values)) => {
                    for value in values {
                        words.extend(named(flag, value, is_before));
                    }
                }
                (None, values) => {
                    let values = values.unwrap_or_default();
                    for value in &values {
                        no_flag(part, value)?;
                    }
                    words.extend(values);
                }
            }
        }
        Ok(())
    }

    fn url(&self, template: &Template) -> Result<Word, FillError> {
        let wrong = |key: &str, reason: &str| {
            FillError(vec![Problem::Wrong {
                key: key.to_owned(),
                reason: reason.to_owned(),
            }])
        };
        for name in in_host(template) {
            let said = self.0[name].1.first().map_or("", String::as_str);
            let is_right = |it: u8| it.is_ascii_alphanumeric() || b"-._:".contains(&it);
            if said.is_empty() || !said.bytes().all(is_right) {
                return Err(wrong(
                    name,
                    "stands in the host of an address: letters, digits, `-` and `.`, without `https://`",
                ));
            }
        }
        let encode = |it: &str| utf8_percent_encode(it, IN_URL).to_string();
        let word = self.text(template, 0, encode);
        let url = Url::parse(word.text.expose());
        let is_http =
            |it: &Url| matches!(it.scheme(), "http" | "https") && it.username().is_empty();
        if url.is_ok_and(|it| is_http(&it)) {
            return Ok(word);
        }
        let name = template.variables().next().unwrap_or("url");
        Err(wrong(name, "makes no address"))
    }
}

/// A value that whoever installs the server gives for a place in a row can't be an option.
fn no_flag(part: &Part, value: &Word) -> Result<(), FillError> {
    match &part.slot {
        Some(Slot::Asked(key)) if value.text.expose().starts_with('-') => {
            Err(FillError(vec![Problem::Wrong {
                key: key.clone(),
                reason: "begins with `-`, and would be taken for an option".to_owned(),
            }]))
        }
        _ => Ok(()),
    }
}

/// The variables that stand before the path.
fn in_host(template: &Template) -> Vec<&str> {
    let mut names = Vec::new();
    let mut slashes = 0;
    for piece in template.pieces() {
        match piece {
            Piece::Text(text) => {
                slashes += text.matches(['/', '?', '#']).count();
            }
            Piece::Variable(name) if slashes <= 2 => names.push(name.as_str()),
            Piece::Variable(_) => {}
        }
    }
    names
}

fn headers_of(headers: BTreeMap<String, Word>) -> Result<BTreeMap<String, Word>, FillError> {
    for (name, word) in &headers {
        if has_odd(word.text.expose()) || HeaderValue::from_str(word.text.expose()).is_err() {
            return Err(FillError(vec![Problem::Wrong {
                key: name.clone(),
                reason: "can't be sent as a header: it has other characters than ASCII".to_owned(),
            }]));
        }
    }
    Ok(headers)
}

/// A flag with its value, in one word where the value could be taken for something else.
fn named(flag: &str, value: Word, is_before: bool) -> Vec<Word> {
    let is_joined = is_before || value.text.expose().starts_with('-');
    if flag.starts_with("--") && is_joined || !flag.starts_with('-') {
        return vec![Word {
            text: Secret::new(format!("{flag}={}", value.text.expose())),
            shown: format!("{flag}={}", value.shown),
        }];
    }
    vec![plain(flag), value]
}

fn plain(text: &str) -> Word {
    word(text, false)
}

fn word(text: &str, is_secret: bool) -> Word {
    Word {
        text: Secret::new(text),
        shown: if is_secret {
            "…".to_owned()
        } else {
            text.to_owned()
        },
    }
}

impl Plan {
    /// Returns the words of the command, secrets as `…`; none for an address.
    pub fn words(&self) -> Vec<&str> {
        match self {
            Self::Command {
                program, arguments, ..
            } => {
                let mut words = vec![program.as_str()];
                words.extend(arguments.iter().map(|it| &*it.shown));
                words
            }
            Self::Remote { .. } => Vec::new(),
        }
    }

    /// Returns the whole command as a person may read it: odd words in quotes, secrets as `…`.
    pub fn shown(&self) -> String {
        match self {
            Self::Command { .. } => {
                let words = self.words().into_iter();
                words.map(quoted).collect::<Vec<_>>().join(" ")
            }
            Self::Remote { url, .. } => url.shown.clone(),
        }
    }

    /// Returns the names of the variables or headers.
    pub fn given(&self) -> Vec<&str> {
        let (Self::Command {
            environment: it, ..
        }
        | Self::Remote { headers: it, .. }) = self;
        it.keys().map(String::as_str).collect()
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_alphanumeric() || "-_./:=@,+…%".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
