//! The server `file-utils`: facts about files in one folder. It writes nothing and leaves that folder for no path.

use schemars::JsonSchema;
use serde::Serialize;
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path, PathBuf},
};
use thiserror::Error;
use tokio::task::spawn_blocking;
use tool_runtime::{Cancellation, Environment, Json, tool_server};

/// Variable with the folder that the tools may read.
pub const ROOT_VARIABLE: &str = "FILE_UTILS_ROOT";

/// Memory for one call, whatever the size of the file.
const BUFFER: usize = 256 * 1024;

/// Reads files in one folder.
#[derive(Debug)]
pub struct FileUtils {
    root: Root,
}

/// Facts about files.
#[tool_server(name = "file-utils", version = "1.0.0", start)]
impl FileUtils {
    /// Makes the server. The folder is `FILE_UTILS_ROOT`, or the one in which the program was started.
    pub fn start(environment: &Environment) -> Result<Self, StartError> {
        let root = environment.get(ROOT_VARIABLE).unwrap_or(".");
        Ok(Self {
            root: Root::new(root)?,
        })
    }

    /// Count the lines and bytes of a text file. Use it before you read a file that may be large. A last line without
    /// a line break counts.
    #[tool(title = "Count lines", read_only, idempotent, open_world = false)]
    pub async fn count_lines(
        &self,
        /// Path of the file, relative to the folder that this server may read.
        #[arg(length = 1..=4096, example = "src/main.rs")]
        path: String,
        cancellation: &Cancellation,
    ) -> Result<Json<Count>, FileError> {
        // When this future is dropped, the guard stops the thread that it can't take with it.
        let stop = cancellation.child_token();
        let _guard = stop.clone().drop_guard();

        let root = self.root.clone();
        let counted = spawn_blocking(move || {
            let file = root.open(&path)?;
            let (lines, bytes) = count(file, &stop).map_err(|reason| match reason {
                Stopped::Cancelled => FileError::Cancelled { path: path.clone() },
                Stopped::Io(source) => FileError::Unreadable {
                    path: path.clone(),
                    source,
                },
            })?;
            Ok(Count { path, lines, bytes })
        });
        counted.await.map_err(FileError::Broken)?.map(Json)
    }
}

/// The size of a text file.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Count {
    /// The path, as it was asked for.
    pub path: String,
    /// Number of lines.
    pub lines: u64,
    /// Number of bytes.
    pub bytes: u64,
}

enum Stopped {
    Cancelled,
    Io(io::Error),
}

fn count(mut file: impl Read, stop: &Cancellation) -> Result<(u64, u64), Stopped> {
    let mut buffer = vec![0; BUFFER];
    let (mut lines, mut bytes) = (0, 0);
    let mut last = b'\n';
    loop {
        if stop.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Stopped::Io(error)),
        };
        lines += memchr::memchr_iter(b'\n', read).count() as u64;
        bytes += read.len() as u64;
        last = read[read.len() - 1];
    }
    if last != b'\n' {
        lines += 1;
    }
    Ok((lines, bytes))
}

/// A folder that paths can't leave.
#[derive(Clone, Debug)]
struct Root {
    /// As it was configured: what a caller may know it by.
    named: PathBuf,
    /// Without any link in it.
    real: PathBuf,
}

impl Root {
    fn new(path: &str) -> Result<Self, StartError> {
        let unusable = |source| StartError::Unusable {
            path: path.to_owned(),
            source,
        };
        let named = std::path::absolute(path).map_err(unusable)?;
        let real = fs::canonicalize(&named).map_err(unusable)?;
        if !real.is_dir() {
            return Err(unusable(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self { named, real })
    }

    /// Opens a regular file inside. Nothing that this does can block or change anything.
    fn open(&self, asked: &str) -> Result<File, FileError> {
        let outside = || FileError::Outside {
            path: asked.to_owned(),
            root: self.named.clone(),
        };
        let unreadable = |source: io::Error| FileError::Unreadable {
            path: asked.to_owned(),
            source,
        };
        let not_a_file = |kind| FileError::NotAFile {
            path: asked.to_owned(),
            kind,
        };

        if asked.contains('\0') {
            return Err(FileError::NulByte);
        }
        // What lies outside must not even be looked at: "not found" would be an answer, too.
        let inside = self.inside(Path::new(asked)).ok_or_else(outside)?;
        let real = fs::canonicalize(self.real.join(inside)).map_err(unreadable)?;
        let inside = real.strip_prefix(&self.real).map_err(|_| outside())?;

        // To open a device can have effects of its own, so they are refused before, too.
        if let Some(kind) = unsuitable(&fs::symlink_metadata(&real).map_err(unreadable)?) {
            return Err(not_a_file(kind));
        }
        let file = open_without_links(&self.real, inside).map_err(unreadable)?;
        match unsuitable(&file.metadata().map_err(unreadable)?) {
            Some(kind) => Err(not_a_file(kind)),
            None => Ok(file),
        }
    }

    /// Returns the part of a path below the root, if it is plainly below.
    fn inside<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let inside = if path.is_absolute() {
            path.strip_prefix(&self.real)
                .or_else(|_| path.strip_prefix(&self.named))
                .ok()?
        } else {
            path
        };
        inside
            .components()
            .all(|it| matches!(it, Component::Normal(_) | Component::CurDir))
            .then_some(inside)
    }
}

/// Opens a file step by step, so that a folder which becomes a link in the meantime is an error and no way out.
#[cfg(unix)]
fn open_without_links(root: &Path, inside: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open, openat};

    const FOLDER: OFlags = OFlags::DIRECTORY
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);
    // A pipe that nobody writes to would keep a blocking `open` for ever.
    const FILE: OFlags = OFlags::NONBLOCK
        .union(OFlags::NOCTTY)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);

    let mut folder = open(root, FOLDER, Mode::empty())?;
    let mut steps = inside.components().peekable();
    while let Some(step) = steps.next() {
        let step = step.as_os_str();
        if steps.peek().is_none() {
            return Ok(openat(&folder, step, FILE, Mode::empty())?.into());
        }
        folder = openat(&folder, step, FOLDER, Mode::empty())?;
    }
    Err(io::ErrorKind::IsADirectory.into())
}

#[cfg(not(unix))]
fn open_without_links(root: &Path, inside: &Path) -> io::Result<File> {
    File::open(root.join(inside))
}

/// Names what is no regular file.
fn unsuitable(metadata: &fs::Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a folder")
    } else if kind.is_symlink() {
        Some("a link")
    } else {
        Some("a device, pipe or socket")
    }
}

/// Why the server can't start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The folder isn't there, or is none.
    #[error("`{ROOT_VARIABLE}` must name a folder that can be read, and `{path}` is none")]
    Unusable {
        /// The path, as it was configured.
        path: String,
        /// Why it can't be used.
        source: io::Error,
    },
}

/// Why a file was not read.
#[derive(Debug, Error)]
pub enum FileError {
    /// The path leads out of the root.
    #[error(
        "`{path}` is outside of `{}`, and only files inside can be read; give a path relative to that folder, without `..`",
        .root.display()
    )]
    Outside {
        /// The path, as it was asked for.
        path: String,
        /// The folder that it leaves.
        root: PathBuf,
    },
    /// The path holds a NUL byte.
    #[error("the path holds a NUL byte, which no file name can have")]
    NulByte,
    /// There is something else at the path.
    #[error("`{path}` is {kind}; only regular files can be read")]
    NotAFile {
        /// The path, as it was asked for.
        path: String,
        /// What is there.
        kind: &'static str,
    },
    /// The system refused.
    #[error("`{path}` can't be read")]
    Unreadable {
        /// The path, as it was asked for.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// The caller took the call back.
    #[error("stopped reading `{path}`: the call was cancelled")]
    Cancelled {
        /// The path, as it was asked for.
        path: String,
    },
    /// The reading thread has gone.
    #[error("the reading thread failed; try again")]
    Broken(#[source] tokio::task::JoinError),
}
