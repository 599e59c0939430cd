//! What lies in the folder of skills: which skills can be served, of which files, and why others can't.

use super::{
    frontmatter::{self, FrontmatterError},
    uri,
};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};
use thiserror::Error;

/// The file that makes a folder a skill.
const ENTRY: &str = "SKILL.md";

/// More than this a client needn't take.
const MOST_FILES: usize = 512;

/// More than this a client needn't take.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// How many files and folders are looked at. Who names the wrong folder shouldn't wait for a walk through the disk.
const MOST_ENTRIES: usize = 50_000;

/// How many folders may lie inside one another.
const DEEPEST: usize = 32;

/// The folder of skills as it was at one moment. Every key is a URI.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) skills: BTreeMap<String, Skill>,
    pub(super) files: BTreeMap<String, Arc<File>>,
    /// What lies directly in each folder, each as the protocol's `Resource`.
    pub(super) folders: BTreeMap<String, BTreeMap<String, Value>>,
    pub(super) notes: Vec<String>,
}

/// A skill that is served.
#[derive(Debug)]
pub(super) struct Skill {
    /// The protocol's `Skill`.
    pub(super) entry: Value,
    /// Its `SKILL.md` as the protocol's `Resource`.
    pub(super) resource: Value,
}

/// A file whose bytes are known by their digest.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) digest: String,
    size: u64,
    pub(super) media_type: &'static str,
    stamp: Stamp,
    /// Of a `SKILL.md` only.
    frontmatter: Option<Result<Map<String, Value>, FrontmatterError>>,
}

impl File {
    /// Returns the protocol's `Resource`.
    fn resource(&self, found: &Found) -> Value {
        json!({
            "uri": found.uri,
            "name": found.name,
            "mimeType": self.media_type,
            "size": self.size,
        })
    }
}

/// What changes with a file's bytes, nearly always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            size: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

/// Looks at everything in the folder, and reads those files that the earlier snapshot doesn't know, or knows another
/// size or time of, or that are distrusted.
pub(super) fn scan(
    root: &Path,
    earlier: &Snapshot,
    distrusted: Option<&str>,
) -> Result<Snapshot, io::Error> {
    let mut walk = Walk {
        root,
        left: MOST_ENTRIES,
        full: false,
    };
    let mut top = Folder::new("", uri::ROOT.to_owned());
    walk.fill(&mut top, Path::new(""), 0)?;
    let mut scan = Scan {
        root,
        earlier,
        distrusted,
        read: BTreeMap::new(),
        snapshot: Snapshot::default(),
    };
    scan.folder(&top, false);
    let mut snapshot = scan.snapshot;
    snapshot.folders.remove(uri::ROOT);
    if walk.full {
        snapshot.notes.push(format!(
            "skills may be left out: there are more than {MOST_ENTRIES} files and folders"
        ));
    }
    note_equal_names(&mut snapshot);
    Ok(snapshot)
}

/// A folder on the disk.
struct Folder {
    name: String,
    uri: String,
    files: Vec<Found>,
    folders: Vec<Folder>,
    /// What is in it and can't be served, each with the reason.
    others: Vec<String>,
    /// Why there may be more in it than this.
    gap: Option<Gap>,
}

/// Why a folder isn't known as a whole.
#[derive(Clone, Debug, Error)]
enum Gap {
    #[error("there are more than {MOST_ENTRIES} files and folders")]
    Full,
    #[error("it lies in more than {DEEPEST} folders")]
    Deep,
    #[error("{0}")]
    Unreadable(String),
}

/// A file on the disk.
struct Found {
    name: String,
    uri: String,
    path: PathBuf,
    stamp: Stamp,
}

impl Folder {
    fn new(name: &str, uri: String) -> Self {
        Self {
            name: name.to_owned(),
            uri,
            files: Vec::new(),
            folders: Vec::new(),
            others: Vec::new(),
            gap: None,
        }
    }

    fn entry(&self) -> Option<&Found> {
        self.files.iter().find(|file| file.name == ENTRY)
    }

    /// Adds the files of the folder and of all folders in it; fails where there may be more.
    fn all_files<'a>(&'a self, files: &mut Vec<&'a Found>) -> Result<(), Unfit> {
        if let Some(gap) = &self.gap {
            return Err(Unfit::Gap {
                folder: self.uri.clone(),
                gap: gap.clone(),
            });
        }
        files.extend(&self.files);
        for folder in &self.folders {
            folder.all_files(files)?;
        }
        Ok(())
    }
}

/// The way through the folders, on which no file is read.
struct Walk<'a> {
    root: &'a Path,
    left: usize,
    full: bool,
}

impl Walk<'_> {
    fn fill(&mut self, folder: &mut Folder, path: &Path, depth: usize) -> Result<(), io::Error> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.root.join(path))? {
            if self.left == 0 {
                self.full = true;
                folder.gap = Some(Gap::Full);
                break;
            }
            self.left -= 1;
            entries.push(entry?);
        }
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let name = name.to_string_lossy();
                let name = name.escape_debug();
                folder
                    .others
                    .push(format!("`{name}`, whose name is not UTF-8"));
                continue;
            };
            if name.starts_with('.') {
                continue;
            }
            let path = path.join(name);
            let uri = uri::child(&folder.uri, name);
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => {
                    let mut inner = Folder::new(name, uri);
                    if depth == DEEPEST {
                        inner.gap = Some(Gap::Deep);
                    } else if let Err(error) = self.fill(&mut inner, &path, depth + 1) {
                        inner.gap = Some(Gap::Unreadable(error.to_string()));
                    }
                    folder.folders.push(inner);
                }
                Ok(metadata) if metadata.is_file() => folder.files.push(Found {
                    name: name.to_owned(),
                    uri,
                    path,
                    stamp: Stamp::of(&metadata),
                }),
                Ok(_) => {
                    let name = name.escape_debug();
                    folder
                        .others
                        .push(format!("`{name}`, which is neither a file nor a folder"));
                }
                // It was deleted after it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Why a skill is left out.
#[derive(Debug, Error)]
enum Unfit {
    #[error("it is the folder of all skills; put it into a folder of its own")]
    Root,
    #[error("`{folder}` isn't known as a whole: {gap}")]
    Gap { folder: String, gap: Gap },
    #[error("it has {0} files, more than the {MOST_FILES} that every client takes")]
    Files(usize),
    #[error("it has {0} bytes, more than the {MOST_BYTES} that every client takes")]
    Bytes(u64),
    #[error("`{uri}` can't be read: {source}")]
    Unreadable { uri: String, source: io::Error },
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
    #[error("its `SKILL.md` is not UTF-8")]
    Binary,
    #[error("its frontmatter has no `name` that is a text")]
    NoName,
    #[error("its frontmatter has no `description` that is a text")]
    NoDescription,
    #[error("its `description` has more than 1024 characters")]
    LongDescription,
    #[error("its `metadata` has to map texts to texts, which `{}` does not", .0.escape_debug())]
    Metadata(String),
    #[error("its `compatibility` has to be a text of 1 to 500 characters")]
    Compatibility,
    #[error("its `name` is `{}`, but its folder is called `{}`", name.escape_debug(), folder.escape_debug())]
    OtherName { name: String, folder: String },
    #[error("its `name` has to be 1 to 64 of `a` to `z`, `0` to `9` and single `-` between them, and is `{}`", .0.escape_debug())]
    BadName(String),
}

/// The snapshot as far as the folders were looked at.
struct Scan<'a> {
    root: &'a Path,
    earlier: &'a Snapshot,
    distrusted: Option<&'a str>,
    /// The files read in this scan, since a skill inside another shares its files.
    read: BTreeMap<String, Arc<File>>,
    snapshot: Snapshot,
}

impl Scan<'_> {
    /// Returns whether anything in the folder is served. Inside a skill that is served everything is.
    fn folder(&mut self, folder: &Folder, mut served: bool) -> bool {
        if let Some(entry) = folder.entry() {
            match self.skill(folder, entry) {
                Ok(skill) => {
                    served = true;
                    self.snapshot.skills.insert(entry.uri.clone(), skill);
                }
                Err(reason) => self
                    .snapshot
                    .notes
                    .push(format!("`{}` is left out: {reason}", entry.uri)),
            }
        }
        if !served && let Some(gap @ (Gap::Deep | Gap::Unreadable(_))) = &folder.gap {
            self.snapshot
                .notes
                .push(format!("skills in `{}` may be left out: {gap}", folder.uri));
        }
        let mut children = BTreeMap::new();
        for inner in &folder.folders {
            if self.folder(inner, served) {
                children.insert(
                    inner.uri.clone(),
                    json!({"uri": inner.uri, "name": inner.name, "mimeType": "inode/directory"}),
                );
            }
        }
        if served {
            for found in &folder.files {
                let resource = match self.snapshot.skills.get(&found.uri) {
                    Some(skill) => skill.resource.clone(),
                    None => self.snapshot.files[&found.uri].resource(found),
                };
                children.insert(found.uri.clone(), resource);
            }
            for other in &folder.others {
                let note = format!("`{}` is served without {other}", folder.uri);
                self.snapshot.notes.push(note);
            }
        }
        let served = served || !children.is_empty();
        if served {
            self.snapshot.folders.insert(folder.uri.clone(), children);
        }
        served
    }

    fn skill(&mut self, folder: &Folder, entry: &Found) -> Result<Skill, Unfit> {
        if folder.uri == uri::ROOT {
            return Err(Unfit::Root);
        }
        let mut found = Vec::new();
        folder.all_files(&mut found)?;
        if found.len() > MOST_FILES {
            return Err(Unfit::Files(found.len()));
        }
        let bytes = found.iter().map(|file| file.stamp.size).sum();
        if bytes > MOST_BYTES {
            return Err(Unfit::Bytes(bytes));
        }
        let entry_file = self.file(entry)?;
        let frontmatter = match &entry_file.frontmatter {
            Some(frontmatter) => frontmatter.clone()?,
            None => return Err(Unfit::Binary),
        };
        let name = name(&frontmatter, folder)?;
        let description = description(&frontmatter)?;
        check_further(&frontmatter)?;
        let mut resource = entry_file.resource(entry);
        resource["name"] = name.into();
        resource["description"] = description.into();

        let mut files = BTreeMap::new();
        for found in found {
            files.insert(found.uri.clone(), self.file(found)?);
        }
        // A file may have grown since it was found.
        let bytes = files.values().map(|file| file.size).sum();
        if bytes > MOST_BYTES {
            return Err(Unfit::Bytes(bytes));
        }
        let resources: Vec<Value> = files
            .iter()
            .map(|(uri, file)| json!({"uri": uri, "digest": file.digest, "size": file.size}))
            .collect();
        self.snapshot.files.extend(files);
        Ok(Skill {
            entry: json!({"uri": entry.uri, "frontmatter": frontmatter, "resources": resources}),
            resource,
        })
    }

    fn file(&mut self, found: &Found) -> Result<Arc<File>, Unfit> {
        if let Some(file) = self.read.get(&found.uri) {
            return Ok(Arc::clone(file));
        }
        let earlier = self
            .earlier
            .files
            .get(&found.uri)
            .filter(|file| file.stamp == found.stamp)
            .filter(|_| self.distrusted != Some(&found.uri));
        let file = match earlier {
            Some(file) => Arc::clone(file),
            None => Arc::new(self.read(found).map_err(|source| Unfit::Unreadable {
                uri: found.uri.clone(),
                source,
            })?),
        };
        self.read.insert(found.uri.clone(), Arc::clone(&file));
        Ok(file)
    }

    fn read(&self, found: &Found) -> Result<File, io::Error> {
        let (stamp, bytes) = read(self.root, &found.path)?;
        let text = str::from_utf8(&bytes).ok();
        Ok(File {
            path: found.path.clone(),
            digest: digest(&bytes),
            size: u64::try_from(bytes.len()).expect("a file that was read has a length"),
            media_type: media_type(&found.name, text.is_some()),
            stamp,
            frontmatter: text.filter(|_| found.name == ENTRY).map(frontmatter::parse),
        })
    }
}

/// The rules for names are those of the Agent Skills specification.
fn name<'a>(frontmatter: &'a Map<String, Value>, folder: &Folder) -> Result<&'a str, Unfit> {
    let name = frontmatter
        .get("name")
        .and_then(Value::as_str)
        .ok_or(Unfit::NoName)?;
    let right = (1..=64).contains(&name.len())
        && name.split('-').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        });
    if !right {
        return Err(Unfit::BadName(name.to_owned()));
    }
    if name != folder.name {
        return Err(Unfit::OtherName {
            name: name.to_owned(),
            folder: folder.name.clone(),
        });
    }
    Ok(name)
}

fn description(frontmatter: &Map<String, Value>) -> Result<&str, Unfit> {
    let description = frontmatter
        .get("description")
        .and_then(Value::as_str)
        .filter(|it| !it.trim().is_empty())
        .ok_or(Unfit::NoDescription)?;
    if description.chars().count() > 1024 {
        return Err(Unfit::LongDescription);
    }
    Ok(description)
}

/// What a skill may say besides: clients refuse the whole list for one skill that says it in another shape.
fn check_further(frontmatter: &Map<String, Value>) -> Result<(), Unfit> {
    if let Some(metadata) = frontmatter.get("metadata") {
        let entries = metadata.as_object();
        let entries = entries.ok_or_else(|| Unfit::Metadata("metadata".to_owned()))?;
        if let Some((key, _)) = entries.iter().find(|(_, value)| !value.is_string()) {
            return Err(Unfit::Metadata(key.clone()));
        }
    }
    let compatibility = frontmatter.get("compatibility");
    let length = |it: &Value| it.as_str().map(|it| it.chars().count());
    if compatibility.is_some_and(|it| length(it).is_none_or(|it| !(1..=500).contains(&it))) {
        return Err(Unfit::Compatibility);
    }
    Ok(())
}

/// Both are served, since URIs tell them apart; but people don't.
fn note_equal_names(snapshot: &mut Snapshot) {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for (uri, skill) in &snapshot.skills {
        let Some(name) = skill.resource["name"].as_str() else {
            continue;
        };
        match first.get(name) {
            Some(other) => snapshot
                .notes
                .push(format!("`{other}` and `{uri}` have the same name")),
            None => {
                first.insert(name, uri);
            }
        }
    }
}

/// Reads a file in the folder of skills, where neither the file nor a folder on the way to it is a link.
pub(super) fn read(root: &Path, path: &Path) -> Result<(Stamp, Vec<u8>), io::Error> {
    let path = root.join(path);
    // A pipe would keep whoever opens it waiting.
    if fs::canonicalize(&path)? != path || !fs::symlink_metadata(&path)?.is_file() {
        return Err(io::Error::other("it is no file in this folder"));
    }
    let file = fs::File::open(&path)?;
    // The time before the bytes: who writes in between leaves a later one.
    let stamp = Stamp::of(&file.metadata()?);
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((stamp, bytes))
}

/// Returns the digest as the protocol writes it.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut text = String::from("sha256:");
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a `String` takes all text");
    }
    text
}

fn media_type(name: &str, text: bool) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "md" | "markdown" => "text/markdown",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" | "cjs" => "text/javascript",
        "py" => "text/x-python",
        "sh" | "bash" => "text/x-shellscript",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ if text => "text/plain",
        _ => "application/octet-stream",
    }
}
