//! Packages whose record names no exact version: the one that is meant now is asked for, and written into the record.

use super::{
    Client, RegistryError,
    record::{Entry, Package, Record},
    rules,
    way::Kind,
};
use serde_json::Value;

/// Where packages are fetched from, as far as versions can be asked for there.
#[derive(Debug)]
pub struct Indexes {
    /// npm.
    pub npm: Client,
    /// `PyPI`.
    pub pypi: Client,
}

/// Whether a record has packages whose exact version can be asked for.
pub fn needs_pin(record: &Record) -> bool {
    !unpinned(record).is_empty()
}

/// Asks for the versions that are meant, and writes them into the record of an entry.
pub async fn pin(entry: &mut Entry, indexes: &Indexes) -> Result<(), RegistryError> {
    let Ok(mut raw) = serde_json::from_str::<Value>(&entry.raw) else {
        return Ok(());
    };
    for (place, kind, package) in unpinned(&entry.record) {
        let (client, path): (_, &[&str]) = match (&kind, &*package.version) {
            (Kind::Npm, "") => (&indexes.npm, &[&package.identifier, "latest"]),
            (Kind::Npm, tag) => (&indexes.npm, &[&package.identifier, tag]),
            _ => (&indexes.pypi, &["pypi", &package.identifier, "json"]),
        };
        let answer = client.json(path).await?.unwrap_or_default();
        let version = answer
            .get("version")
            .or_else(|| answer.get("info")?.get("version"));
        let version = version
            .and_then(Value::as_str)
            .filter(|it| rules::is_exact(&kind, it));
        // Without one, it stays as it is, and is refused.
        if let (Some(version), Some(package)) = (version, raw["packages"].get_mut(place)) {
            package["version"] = version.into();
        }
    }
    let raw = raw.to_string();
    if let Ok(record) = Record::read(&raw) {
        (entry.record, entry.raw) = (record, raw);
    }
    Ok(())
}

/// The packages that are fine but for their version, which is none or a tag, and not a range.
fn unpinned(record: &Record) -> Vec<(usize, Kind, &Package)> {
    let packages = record.packages.iter().enumerate();
    let unpinned = packages.filter_map(|(place, package)| {
        let package = package.as_ref().ok()?;
        let kind = Kind::of(package);
        let is_tag = match kind {
            Kind::Npm => rules::is_tag_of_npm(&package.version),
            Kind::Pypi => matches!(&*package.version, "" | "latest"),
            _ => false,
        };
        let exact = Package {
            version: "1.0.0".to_owned(),
            ..package.clone()
        };
        (is_tag && rules::package(&kind, &exact).is_ok()).then_some((place, kind, package))
    });
    unpinned.collect()
}
