//! Agent Skills from a folder, in the shapes of the protocol's extension `io.modelcontextprotocol/skills`.
//!
//! Every folder with a `SKILL.md`, however deep, is a skill; the other files in it are the skill's too. Hidden files
//! and links are not. The folder is looked at again for every answer, so that skills can be edited while they are
//! served.

mod frontmatter;
mod scan;
mod uri;

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use scan::{Snapshot, scan};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs, io,
    num::NonZeroUsize,
    ops::Bound,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use thiserror::Error;

/// The extension's name in `capabilities.extensions`.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// How many skills, or files of a folder, a page has where nobody says another number.
pub const PAGE_SIZE: NonZeroUsize = NonZeroUsize::new(50).expect("50 is not 0");

/// The skills in a folder. Its methods read files, so they don't belong on a thread that others wait for.
#[derive(Debug)]
pub struct Skills {
    /// Without links.
    root: PathBuf,
    page_size: NonZeroUsize,
    snapshot: Mutex<Arc<Snapshot>>,
}

/// What a file of a skill contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The file's URI.
    pub uri: String,
    /// What kind of file it is.
    pub mime_type: String,
    /// All of its bytes.
    pub body: Body,
}

/// The bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// UTF-8.
    Text(String),
    /// Anything else, in base64.
    Blob(String),
}

impl Contents {
    /// Returns the protocol's `TextResourceContents` or `BlobResourceContents`.
    pub fn into_value(self) -> Value {
        let (key, body) = match self.body {
            Body::Text(text) => ("text", text),
            Body::Blob(base64) => ("blob", base64),
        };
        json!({"uri": self.uri, "mimeType": self.mime_type, key: body})
    }
}

/// Why there are no skills at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SkillsError {
    /// The folder isn't there or isn't open to us.
    #[error("can't read the folder of skills `{}`", path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is a file.
    #[error("`{}` is not a folder, so there are no skills in it", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
}

/// Why a request is answered with an error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SkillError {
    /// There is no such skill.
    #[error("no skill is served at `{uri}`")]
    NotASkill {
        /// What was asked for.
        uri: String,
    },
    /// There is no such folder.
    #[error("`{uri}` is not a folder of a skill")]
    NotAFolder {
        /// What was asked for.
        uri: String,
    },
    /// The cursor is not one of ours, or belongs to another list.
    #[error("the cursor is not one that this list gave")]
    Cursor,
    /// The folder of skills is gone or closed.
    #[error("the folder of skills can't be read")]
    Unreadable {
        /// What the system says.
        source: io::Error,
    },
    /// The file never stayed the same until it was read.
    #[error("`{uri}` is being changed; try again")]
    Changing {
        /// What was asked for.
        uri: String,
    },
}

impl SkillError {
    /// Returns the code of JSON-RPC: `-32602` where the request is wrong, `-32603` where we are.
    pub const fn code(&self) -> i32 {
        match self {
            Self::NotASkill { .. } | Self::NotAFolder { .. } | Self::Cursor => -32602,
            Self::Unreadable { .. } | Self::Changing { .. } => -32603,
        }
    }

    /// Returns what was asked for.
    pub fn uri(&self) -> Option<&str> {
        match self {
            Self::NotASkill { uri } | Self::NotAFolder { uri } | Self::Changing { uri } => {
                Some(uri)
            }
            Self::Cursor | Self::Unreadable { .. } => None,
        }
    }
}

impl Skills {
    /// Looks for skills in the folder. Those that can't be served are left out, and [`notes`](Self::notes) says why.
    pub fn open(root: &Path, page_size: NonZeroUsize) -> Result<Self, SkillsError> {
        let unreadable = |source| SkillsError::Unreadable {
            path: root.to_owned(),
            source,
        };
        let real = fs::canonicalize(root).map_err(unreadable)?;
        if !real.is_dir() {
            return Err(SkillsError::NotAFolder {
                path: root.to_owned(),
            });
        }
        let snapshot = scan(&real, &Snapshot::default(), None).map_err(unreadable)?;
        Ok(Self {
            root: real,
            page_size,
            snapshot: Mutex::new(Arc::new(snapshot)),
        })
    }

    /// Returns what is left out and why, and what else is odd, as of the last look.
    pub fn notes(&self) -> Vec<String> {
        self.lock().notes.clone()
    }

    /// Answers `skills/list`: `{skills, nextCursor?}`.
    pub fn list(&self, cursor: Option<&str>) -> Result<Value, SkillError> {
        let after = after(cursor, uri::ROOT)?;
        let snapshot = self.look(None)?;
        let (skills, next) = self.page(&snapshot.skills, after);
        let skills = skills.into_iter().map(|skill| skill.entry.clone());
        Ok(answer("skills", skills.collect(), next, uri::ROOT))
    }

    /// Answers `skills/get`: `{skill}`.
    pub fn get(&self, uri: &str) -> Result<Value, SkillError> {
        let snapshot = self.look(None)?;
        uri::canonical(uri)
            .and_then(|uri| snapshot.skills.get(&uri))
            .map(|skill| json!({"skill": skill.entry}))
            .ok_or_else(|| SkillError::NotASkill {
                uri: uri.to_owned(),
            })
    }

    /// Reads a file for `resources/read`; `None` where no skill has such a file.
    ///
    /// The bytes are those that the skill's entry has the digest of from now on.
    pub fn read(&self, uri: &str) -> Option<Result<Contents, SkillError>> {
        /// Who saves a file may do so in steps.
        const TRIES: usize = 3;

        let canonical = uri::canonical(uri)?;
        let mut snapshot = Arc::clone(&self.lock());
        for _ in 0..TRIES {
            if let Some(file) = snapshot.files.get(&canonical)
                && let Ok((_, bytes)) = scan::read(&self.root, &file.path)
                && scan::digest(&bytes) == file.digest
            {
                return Some(Ok(contents(canonical, file.media_type, bytes)));
            }
            snapshot = match self.look(Some(&canonical)) {
                Ok(snapshot) => snapshot,
                Err(error) => return Some(Err(error)),
            };
            if !snapshot.files.contains_key(&canonical) {
                return None;
            }
        }
        Some(Err(SkillError::Changing {
            uri: uri.to_owned(),
        }))
    }

    /// Answers `resources/directory/read`: `{resources, nextCursor?}`, what lies directly in a folder of a skill, or in
    /// one on the way to a skill.
    pub fn directory(&self, uri: &str, cursor: Option<&str>) -> Result<Value, SkillError> {
        let missing = || SkillError::NotAFolder {
            uri: uri.to_owned(),
        };
        let canonical = uri::canonical(uri).ok_or_else(missing)?;
        let snapshot = self.look(None)?;
        let children = snapshot.folders.get(&canonical).ok_or_else(missing)?;
        let (resources, next) = self.page(children, after(cursor, &canonical)?);
        let resources = resources.into_iter().cloned().collect();
        Ok(answer("resources", resources, next, &canonical))
    }

    /// Returns what `resources/list` shows of the skills: each one's `SKILL.md`. Their other files are found by way of
    /// it.
    pub fn resources(&self) -> Result<Vec<Value>, SkillError> {
        let snapshot = self.look(None)?;
        Ok(snapshot
            .skills
            .values()
            .map(|skill| skill.resource.clone())
            .collect())
    }

    /// Looks at the folder again, and reads those files of it that have changed, and the distrusted one.
    fn look(&self, distrusted: Option<&str>) -> Result<Arc<Snapshot>, SkillError> {
        let mut last = self.lock();
        let snapshot = scan(&self.root, &last, distrusted)
            .map_err(|source| SkillError::Unreadable { source })?;
        for note in &snapshot.notes {
            if !last.notes.contains(note) {
                tracing::warn!("{note}");
            }
        }
        *last = Arc::new(snapshot);
        Ok(Arc::clone(&last))
    }

    /// A snapshot is replaced as a whole, so one that a panic left is a good one.
    fn lock(&self) -> MutexGuard<'_, Arc<Snapshot>> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a page of what comes after this URI, and the page's last URI where there is more.
    fn page<'a, T>(
        &self,
        all: &'a BTreeMap<String, T>,
        after: Option<String>,
    ) -> (Vec<&'a T>, Option<&'a str>) {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = all.range((start, Bound::Unbounded));
        let page: Vec<_> = rest.by_ref().take(self.page_size.get()).collect();
        let next = rest.next().and(page.last()).map(|(uri, _)| uri.as_str());
        (page.into_iter().map(|(_, item)| item).collect(), next)
    }
}

fn contents(uri: String, media_type: &str, bytes: Vec<u8>) -> Contents {
    Contents {
        uri,
        mime_type: media_type.to_owned(),
        body: match String::from_utf8(bytes) {
            Ok(text) => Body::Text(text),
            Err(error) => Body::Blob(BASE64_STANDARD.encode(error.as_bytes())),
        },
    }
}

/// A cursor names the folder and the last URI seen, so that it stays right when something comes or goes.
fn answer(key: &str, items: Vec<Value>, last: Option<&str>, folder: &str) -> Value {
    let mut answer = json!({});
    answer[key] = items.into();
    if let Some(last) = last {
        answer["nextCursor"] = BASE64_URL_SAFE_NO_PAD
            .encode(format!("{folder}\n{last}"))
            .into();
    }
    answer
}

fn after(cursor: Option<&str>, folder: &str) -> Result<Option<String>, SkillError> {
    let Some(cursor) = cursor else {
        return Ok(None);
    };
    let decoded = BASE64_URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or(SkillError::Cursor)?;
    match decoded.split_once('\n') {
        Some((of, last)) if of == folder => Ok(Some(last.to_owned())),
        _ => Err(SkillError::Cursor),
    }
}
