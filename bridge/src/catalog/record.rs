//! A server as a registry describes it, in today's spelling and in the older ones.

use super::text::{line, lines};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value, value::RawValue};
use std::collections::BTreeMap;
use thiserror::Error;

/// How many bytes a record may have.
const MOST_BYTES: usize = 256 * 1024;

/// How many bytes a name may have, and a version.
const LONGEST: usize = 255;

/// How many packages and remotes are looked at, and how many inputs of each.
const MOST: usize = 64;

/// Where the official registry keeps what it says itself of an entry.
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";

/// An entry of a registry: a record, and what the registry says of it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The record.
    pub record: Record,
    /// What state it is in.
    pub status: Status,
    /// What the registry says of that; may be empty.
    pub status_message: String,
    /// When it was last changed.
    pub updated_at: Option<String>,
    /// Whether there is no newer version; `None` where the registry doesn't say.
    pub is_latest: Option<bool>,
    /// The record as it came: JSON.
    pub raw: String,
}

/// What state an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It may be used.
    Active,
    /// Its publisher advises against it.
    Deprecated,
    /// It was taken out.
    Deleted,
}

impl Status {
    /// Reads what registries call it.
    pub fn of(text: &str) -> Self {
        match text {
            "deprecated" => Self::Deprecated,
            "deleted" => Self::Deleted,
            _ => Self::Active,
        }
    }

    /// Returns what registries call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deprecated => "deprecated",
            Self::Deleted => "deleted",
        }
    }
}

/// A server: what it is, and in which ways it can be had.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Its name in the registry: `namespace/name`.
    pub name: String,
    /// What people call it.
    #[serde(default, deserialize_with = "shown")]
    pub title: String,
    /// What it is for.
    #[serde(default, deserialize_with = "shown_long")]
    pub description: String,
    /// Its version.
    #[serde(default, deserialize_with = "shown")]
    pub version: String,
    #[serde(default, alias = "version_detail")]
    version_detail: Option<VersionDetail>,
    #[serde(default, deserialize_with = "shown")]
    status: String,
    #[serde(default)]
    repository: Option<Repository>,
    /// Its page on the web.
    #[serde(default, alias = "website_url", deserialize_with = "shown")]
    pub website_url: String,
    /// The programs that can be started here.
    #[serde(default, deserialize_with = "each")]
    pub packages: Vec<Result<Package, String>>,
    /// The addresses where it runs already.
    #[serde(default, deserialize_with = "each")]
    pub remotes: Vec<Result<Remote, String>>,
}

#[derive(Clone, Debug, Deserialize)]
struct VersionDetail {
    #[serde(default, deserialize_with = "shown")]
    version: String,
    #[serde(default)]
    is_latest: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
struct Repository {
    #[serde(default, deserialize_with = "shown")]
    url: String,
}

/// A program that can be started here.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "registries call them so")]
pub struct Package {
    /// Where it is fetched from: `npm`, `pypi`, `oci` and others.
    #[serde(alias = "registry_type", alias = "registry_name")]
    pub registry_type: String,
    /// Which of the registries of this type.
    #[serde(default, alias = "registry_base_url", deserialize_with = "or_empty")]
    pub registry_base_url: String,
    /// Its name there.
    #[serde(alias = "name")]
    pub identifier: String,
    /// Its version there.
    #[serde(default, deserialize_with = "or_empty")]
    pub version: String,
    /// The hash of its file.
    #[serde(default, alias = "file_sha256", deserialize_with = "or_empty")]
    pub file_sha256: String,
    /// How it is spoken to.
    #[serde(default, deserialize_with = "or_default")]
    pub transport: Transport,
    /// What stands before it.
    #[serde(default, alias = "runtime_arguments", deserialize_with = "all")]
    pub runtime_arguments: Vec<Argument>,
    /// What stands after it.
    #[serde(default, alias = "package_arguments", deserialize_with = "all")]
    pub package_arguments: Vec<Argument>,
    /// The variables that it is given.
    #[serde(default, alias = "environment_variables", deserialize_with = "all")]
    pub environment_variables: Vec<Named>,
}

/// How a program is spoken to.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Transport {
    /// `stdio`, `streamable-http` or `sse`; may be empty, which is `stdio`.
    #[serde(rename = "type", default, deserialize_with = "or_empty")]
    pub kind: String,
}

/// An address where a server runs.
#[derive(Clone, Debug, Deserialize)]
pub struct Remote {
    /// `streamable-http` or `sse`.
    #[serde(rename = "type", alias = "transport_type")]
    pub kind: String,
    /// The address, with `{variables}`.
    pub url: String,
    /// What every request carries.
    #[serde(default, deserialize_with = "all")]
    pub headers: Vec<Named>,
    /// What the variables of the address are.
    #[serde(default, deserialize_with = "or_default")]
    pub variables: BTreeMap<String, Input>,
}

/// A variable of the environment, or a header.
#[derive(Clone, Debug, Deserialize)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// What it holds.
    #[serde(flatten)]
    pub input: Input,
}

/// An argument of a command.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Argument {
    /// `positional` or `named`.
    #[serde(rename = "type", default, deserialize_with = "or_empty")]
    pub kind: String,
    /// The name of a named one, with its dashes.
    #[serde(default, deserialize_with = "or_empty")]
    pub name: String,
    /// What a positional one is called where it is asked for.
    #[serde(default, alias = "value_hint", deserialize_with = "or_empty")]
    pub value_hint: String,
    /// Whether it may be given several times.
    #[serde(default, alias = "is_repeated", deserialize_with = "or_default")]
    pub is_repeated: bool,
    /// What it holds.
    #[serde(flatten)]
    pub input: Input,
}

/// Something that is fixed, or that whoever installs the server says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// What it is.
    #[serde(default, deserialize_with = "shown_long")]
    pub description: String,
    /// Whether the server doesn't run without.
    #[serde(default, alias = "is_required", deserialize_with = "or_default")]
    pub is_required: bool,
    /// Whether it is never shown.
    #[serde(default, alias = "is_secret", deserialize_with = "or_default")]
    pub is_secret: bool,
    /// `string`, `number`, `boolean` or `filepath`; may be empty.
    #[serde(default, deserialize_with = "or_empty")]
    pub format: String,
    /// What it is, where nobody is asked; may have `{variables}`.
    #[serde(default, deserialize_with = "text")]
    pub value: Option<String>,
    /// What it is where nothing is said.
    #[serde(default, deserialize_with = "text")]
    pub default: Option<String>,
    /// An example.
    #[serde(default, deserialize_with = "shown")]
    pub placeholder: String,
    /// What it may be, where not everything.
    #[serde(default, deserialize_with = "texts")]
    pub choices: Vec<String>,
    /// What the variables of `value` are.
    #[serde(default, deserialize_with = "or_default")]
    pub variables: BTreeMap<String, Input>,
}

/// Why an entry is left out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It has another shape.
    #[error("{}it can't be read: {reason}", named(name))]
    Shape {
        /// What can be told of its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// It is too long.
    #[error("it has {bytes} bytes, more than {MOST_BYTES}")]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// Its name is none.
    #[error("its name `{name}` is none: one looks like `namespace/name`")]
    Name {
        /// The name, as far as it can be shown.
        name: String,
    },
    /// Its version is none.
    #[error("`{name}`: its version can't be one")]
    Version {
        /// The name.
        name: String,
    },
}

fn named(name: &str) -> String {
    if name.is_empty() {
        String::new()
    } else {
        format!("`{name}`: ")
    }
}

impl Entry {
    /// Reads an entry: a record with what the registry says of it, or the record alone, as older registries give it.
    pub fn read(json: &RawValue) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        #[serde(expecting = "a server")]
        struct Envelope<'a> {
            #[serde(borrow, default)]
            server: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        let bytes = json.get().len();
        if bytes > MOST_BYTES {
            return Err(RecordError::TooLong { bytes });
        }
        let shape = |error: serde_json::Error| RecordError::Shape {
            name: name_of(json),
            reason: line(&error.to_string(), 200),
        };
        let envelope: Envelope<'_> = serde_json::from_str(json.get()).map_err(shape)?;
        let raw = envelope.server.unwrap_or(json);
        let record = Record::read(raw.get()).map_err(|error| match error {
            RecordError::Shape { reason, .. } => RecordError::Shape {
                name: name_of(json),
                reason,
            },
            other => other,
        })?;
        let meta = envelope.meta.map(RawValue::get).unwrap_or_default();
        let meta: Map<String, Value> = serde_json::from_str(meta).unwrap_or_default();
        let official = meta.get(OFFICIAL).unwrap_or(&Value::Null);
        let said = |names: [&str; 2]| names.iter().find_map(|it| official.get(*it));
        let text = |names| said(names).and_then(Value::as_str).map(|it| line(it, 500));
        let status = text(["status", "status"]).unwrap_or_else(|| record.status.clone());
        let detail = record.version_detail.as_ref();
        let is_latest = said(["isLatest", "is_latest"]).and_then(Value::as_bool);
        Ok(Self {
            status: Status::of(&status),
            status_message: text(["statusMessage", "status_message"]).unwrap_or_default(),
            updated_at: text(["updatedAt", "updated_at"]),
            is_latest: is_latest.or_else(|| detail.and_then(|it| it.is_latest)),
            raw: raw.get().to_owned(),
            record,
        })
    }
}

impl Record {
    /// Reads a record.
    pub fn read(json: &str) -> Result<Self, RecordError> {
        let mut record: Self = serde_json::from_str(json).map_err(|error| RecordError::Shape {
            name: String::new(),
            reason: line(&error.to_string(), 200),
        })?;
        if !is_name(&record.name) {
            let name = line(&record.name, 80);
            return Err(RecordError::Name { name });
        }
        if record.version.is_empty() {
            let detail = record.version_detail.as_ref();
            record.version = detail.map(|it| it.version.clone()).unwrap_or_default();
        }
        if record.version.len() > LONGEST {
            return Err(RecordError::Version { name: record.name });
        }
        Ok(record)
    }

    /// Returns where its source is; may be empty.
    pub fn repository(&self) -> &str {
        self.repository.as_ref().map_or("", |it| &it.url)
    }

    /// Returns the last part of its name.
    pub fn last_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// Says whether it is `namespace/name` of the letters that registries allow.
fn is_name(name: &str) -> bool {
    let is_of = |it: &str, others: &[u8]| {
        let is_right = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
        !it.is_empty() && !it.starts_with('-') && it.bytes().all(is_right)
    };
    name.len() <= LONGEST
        && name
            .split_once('/')
            .is_some_and(|(space, name)| is_of(space, b".-") && is_of(name, b"._-"))
}

fn name_of(json: &RawValue) -> String {
    let json: Value = serde_json::from_str(json.get()).unwrap_or_default();
    let name = json.get("name").or_else(|| json.get("server")?.get("name"));
    name.and_then(Value::as_str)
        .map_or_else(String::new, |it| line(it, 80))
}

/// Reads a list item by item, so that one that can't be read hides no other.
fn each<'de, D: Deserializer<'de>, T: de::DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<Result<T, String>>, D::Error> {
    let items: Vec<Value> = or_default(deserializer)?;
    let read = |it: Value| serde_json::from_value(it).map_err(|it| line(&it.to_string(), 200));
    Ok(items.into_iter().take(MOST).map(read).collect())
}

/// Reads a list of which no item may be missing.
fn all<'de, D: Deserializer<'de>, T: de::DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<T> = or_default(deserializer)?;
    if items.len() > MOST {
        return Err(de::Error::custom(format!(
            "more than {MOST} items in a list"
        )));
    }
    Ok(items)
}

/// Reads a value of which `null` is as good as nothing.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    or_default(deserializer)
}

/// Reads a text that is shown, so without what a terminal would obey.
fn shown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(line(&or_empty(deserializer)?, 300))
}

fn shown_long<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(lines(&or_empty(deserializer)?, 2_000))
}

/// Reads a text that some publishers write as a number or a boolean.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Option::deserialize(deserializer)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(it @ (Value::Number(_) | Value::Bool(_))) => Ok(Some(it.to_string())),
        Some(_) => Err(de::Error::custom("a value that is no text")),
    }
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let values: Vec<Value> = or_default(deserializer)?;
    let texts = values.into_iter().map(|it| match it {
        Value::String(text) => text,
        other => other.to_string(),
    });
    Ok(texts.collect())
}
