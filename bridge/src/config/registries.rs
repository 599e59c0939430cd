//! Where servers are looked for: the tables `[registries.NAME]`, and a variable for each of their keys.

use super::{File, PREFIX, Place, Problem, Sources, closest, kind};
use crate::secret::Secret;
use std::collections::BTreeMap;
use toml::{Spanned, de::DeValue};

/// The registry that is there without settings.
const OFFICIAL: (&str, &str) = ("official", "https://registry.modelcontextprotocol.io");

const KEYS: [&str; 3] = ["url", "token", "enabled"];

/// A registry.
#[derive(Clone, Debug)]
pub struct Registry {
    /// Its address.
    pub url: String,
    /// What it is shown, where it wants to know who asks.
    pub token: Option<Secret>,
}

/// A registry as it is written down, perhaps in several places.
#[derive(Default)]
struct Written {
    url: Option<String>,
    token: Option<Secret>,
    is_off: bool,
}

/// Returns the variables that a registry can have.
pub(super) fn variables(name: &str) -> [String; 2] {
    ["URL", "TOKEN"].map(|key| variable(name, key))
}

fn variable(name: &str, key: &str) -> String {
    let name = name.to_ascii_uppercase().replace('-', "_");
    format!("{PREFIX}REGISTRY_{name}_{key}")
}

impl Sources<'_> {
    pub(super) fn registries(&mut self) -> BTreeMap<String, Registry> {
        let mut registries = BTreeMap::from([(OFFICIAL.0.to_owned(), Written::default())]);
        if let Some((file, tables)) = self.tables("registries") {
            for (name, value) in tables {
                let place = file.place(format!("registries.{}", name.get_ref()), name.span().start);
                let name = name.get_ref();
                if is_name(name) {
                    let written = self.registry(file, name, value);
                    registries.insert(name.to_string(), written);
                } else {
                    self.problems.push(Problem::Value {
                        place,
                        expected: "the name of a registry: small letters, digits and `-`",
                        found: None,
                    });
                }
            }
        }
        let registries = registries.into_iter();
        registries
            .filter_map(|(name, written)| {
                let registry = self.with_variables(&name, written)?;
                Some((name, registry))
            })
            .collect()
    }

    fn registry(&mut self, file: &File, name: &str, value: &Spanned<DeValue<'_>>) -> Written {
        let mut written = Written::default();
        let path = format!("registries.{name}");
        let Some(table) = self.table(file, &path, value) else {
            return written;
        };
        for (key, value) in table {
            let path = format!("{path}.{}", key.get_ref());
            let place = file.place(path.clone(), value.span().start);
            let found = super::Found::Toml(value.get_ref());
            match key.get_ref().as_ref() {
                "url" => written.url = self.read(found, place, &kind::REGISTRY),
                "token" => written.token = self.read(found, place, &kind::REGISTRY_TOKEN),
                "enabled" => {
                    written.is_off = self.read(found, place, &kind::SWITCH) == Some(false);
                }
                unknown => self.problems.push(Problem::UnknownKey {
                    suggestion: closest(unknown, KEYS),
                    place: file.place(path, key.span().start),
                }),
            }
        }
        if written.url.is_none() && name != OFFICIAL.0 && !table.contains_key("url") {
            let place = file.place(format!("{path}.url"), value.span().start);
            written.url = self.variable(&variable(name, "URL")).map(|_| String::new());
            if written.url.is_none() {
                self.problems.push(Problem::Value {
                    place,
                    expected: kind::REGISTRY.expected,
                    found: None,
                });
            }
        }
        written
    }

    /// A variable wins over the file. Without an address there is no registry.
    fn with_variables(&mut self, name: &str, written: Written) -> Option<Registry> {
        let of_variable = |sources: &Self, key| -> Option<(String, Place)> {
            let (text, place) = sources.variable(&variable(name, key))?;
            Some((text.to_owned(), place))
        };
        let mut registry = Registry {
            url: written.url.unwrap_or_else(|| OFFICIAL.1.to_owned()),
            token: written.token,
        };
        if let Some((text, place)) = of_variable(self, "URL") {
            registry.url = self.read(super::Found::Text(&text), place, &kind::REGISTRY)?;
        }
        if let Some((text, place)) = of_variable(self, "TOKEN") {
            registry.token = self.read(super::Found::Text(&text), place, &kind::REGISTRY_TOKEN);
        }
        (!written.is_off).then_some(registry)
    }
}

fn is_name(name: &str) -> bool {
    let is_of_name = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    // The servers that are known without any registry are told to be of this one.
    let is_taken = name == "well-known";
    !name.is_empty() && !is_taken && name.len() <= 40 && name.bytes().all(is_of_name)
}
