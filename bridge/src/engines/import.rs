//! The servers that a person has in an engine's configuration, read so that the bridge can take them over.

use super::{Engine, Folders, Scope, entries, plan::PlanError};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt, path::PathBuf};
use tool_runtime::NAMESPACE;

/// The keys by which an engine opens some tools of a server only.
const RESTRICTIONS: [&str; 6] = [
    "tools",
    "enabled_tools",
    "disabled_tools",
    "includeTools",
    "excludeTools",
    "available_tools",
];

/// A server of an engine's configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name there.
    pub name: String,
    /// How it is reached, or why it can't be taken over.
    pub reached: Result<Reached, String>,
}

/// What a server is given may be secret.
impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Found({})", self.name)
    }
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Reached {
    /// A program that speaks over standard input and output.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// The variables that it is given.
        environment: BTreeMap<String, String>,
        /// Where it runs.
        folder: Option<PathBuf>,
    },
    /// An address.
    Http {
        /// The address.
        url: String,
        /// The headers that it is given.
        headers: BTreeMap<String, String>,
    },
}

impl fmt::Debug for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command { .. } => "Command(…)",
            Self::Http { .. } => "Http(…)",
        })
    }
}

/// Reads the servers of an engine's file but for ours, in the order of the file; `None` if there is no file.
/// Variables that values name are those of `variables`.
pub fn servers(
    engine: &Engine,
    scope: Scope,
    folders: &Folders,
    variables: &BTreeMap<String, String>,
) -> Result<Option<(PathBuf, Vec<Found>)>, PlanError> {
    let Some((file, named)) = entries::all(engine, scope, folders)? else {
        return Ok(None);
    };
    let is_ours =
        |name: &str, entry: &Value| name == NAMESPACE || entries::is_external(engine, name, entry);
    let others = named.into_iter();
    let others = others.filter(|(name, entry)| !is_ours(name, entry));
    let found = others.map(|(name, entry)| Found {
        reached: reached(&entry, variables),
        name,
    });
    Ok(Some((file, found.collect())))
}

fn reached(entry: &Value, variables: &BTreeMap<String, String>) -> Result<Reached, String> {
    // Cline keeps the address one level further down.
    let nested = entry.get("transport").filter(|it| it.is_object());
    let Some(entry) = nested.unwrap_or(entry).as_object() else {
        return Err("it is no object".to_owned());
    };
    let says = |key: &str, flag: bool| entry.get(key) == Some(&Value::Bool(flag));
    if says("enabled", false) || says("disabled", true) {
        return Err("it is turned off there".to_owned());
    }
    if let Some(restriction) = RESTRICTIONS.iter().find(|it| restricts(entry, it)) {
        return Err(format!(
            "not all of its tools are open there (`{restriction}`)"
        ));
    }
    let expanded = |text: &str| expand(text, variables);
    if let Some(url) = text_of(entry, &["url", "httpUrl", "serverUrl", "uri"]) {
        return Ok(Reached::Http {
            url: expanded(url)?,
            headers: headers(entry, variables)?,
        });
    }
    let (program, mut arguments) = match entry.get("command").or_else(|| entry.get("cmd")) {
        Some(Value::String(program)) => (program.clone(), Vec::new()),
        Some(Value::Array(words)) => {
            let mut words = words.iter().filter_map(Value::as_str).map(str::to_owned);
            let program = words.next().ok_or("its command is empty")?;
            (program, words.collect())
        }
        _ => return Err("it has neither a command nor an address".to_owned()),
    };
    let further = entry.get("args").and_then(Value::as_array);
    for argument in further.into_iter().flatten() {
        arguments.push(match argument {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => argument.to_string(),
            _ => return Err("one of its arguments is no text".to_owned()),
        });
    }
    let arguments: Result<Vec<String>, String> = arguments.iter().map(|it| expanded(it)).collect();
    Ok(Reached::Command {
        program: expanded(&program)?,
        arguments: arguments?,
        environment: texts(entry, &["env", "environment", "envs"], variables)?,
        folder: text_of(entry, &["cwd"]).map(PathBuf::from),
    })
}

/// Whether an entry names some of the tools of its server.
fn restricts(entry: &Map<String, Value>, key: &str) -> bool {
    match entry.get(key) {
        Some(Value::Array(names)) => !names.is_empty() && names.iter().all(|it| it != "*"),
        _ => false,
    }
}

fn headers(
    entry: &Map<String, Value>,
    variables: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let options = entry.get("requestOptions").and_then(Value::as_object);
    let mut headers = texts(
        options.unwrap_or(entry),
        &["headers", "http_headers"],
        variables,
    )?;
    if let Some(variable) = text_of(entry, &["bearer_token_env_var"]) {
        let token = value_of(variable, variables)?;
        headers.insert("Authorization".to_owned(), format!("Bearer {token}"));
    }
    let named = entry.get("env_http_headers").and_then(Value::as_object);
    for (name, variable) in named.into_iter().flatten() {
        let variable = variable.as_str().unwrap_or_default();
        headers.insert(name.clone(), value_of(variable, variables)?.to_owned());
    }
    Ok(headers)
}

fn text_of<'e>(entry: &'e Map<String, Value>, keys: &[&str]) -> Option<&'e str> {
    keys.iter().find_map(|it| entry.get(*it)?.as_str())
}

/// The texts of the first of these objects that is there; numbers and flags count as text.
fn texts(
    entry: &Map<String, Value>,
    keys: &[&str],
    variables: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let object = keys.iter().find_map(|it| entry.get(*it)?.as_object());
    let texts = object.into_iter().flatten().map(|(name, value)| {
        let text = match value {
            Value::String(text) => expand(text, variables)?,
            other => other.to_string(),
        };
        Ok((name.clone(), text))
    });
    texts.collect()
}

/// Puts the values of variables in, in any engine's form: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `{env:NAME}`.
fn expand(text: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((start, open)) = first_of(rest, &["${{ secrets.", "${env:", "{env:", "${"]) {
        let Some(end) = rest[start..].find('}') else {
            break;
        };
        expanded.push_str(&rest[..start]);
        let inside = rest[start + open.len()..start + end].trim();
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        expanded.push_str(match (value_of(name, variables), default) {
            (Ok(value), _) => value,
            (Err(_), Some(default)) => default,
            (Err(error), None) => return Err(error),
        });
        let closing = if open.starts_with("${{") { "}}" } else { "}" };
        let after = &rest[start + end..];
        rest = after.strip_prefix(closing).unwrap_or(&after[1..]);
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// The first place where one of these begins; of two at one place, the one that comes first here.
fn first_of<'o>(text: &str, openings: &[&'o str]) -> Option<(usize, &'o str)> {
    let places = openings.iter().filter_map(|it| Some((text.find(it)?, *it)));
    places.min_by_key(|(start, _)| *start)
}

fn value_of<'v>(name: &str, variables: &'v BTreeMap<String, String>) -> Result<&'v str, String> {
    let value = variables.get(name);
    value
        .map(String::as_str)
        .ok_or_else(|| format!("it needs the variable `{name}`, which isn't set here"))
}
