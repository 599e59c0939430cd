//! What the programs of external servers write to their error output, kept in a file each, so that another process can
//! show it.

use super::mask::Masks;
use crate::store::now;
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

/// How many bytes a file may have before it is put aside, and the one before it is gone.
const LARGEST: u64 = 256 * 1024;

/// How long a line may be; what is longer goes on in the next.
const LONGEST_LINE: usize = 4096;

/// Where the journals are.
#[derive(Clone, Debug)]
pub struct Journals(PathBuf);

impl Journals {
    /// Takes the folder, which is made when the first line is written.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Returns the last lines of a server's program, oldest first; none if it has written none.
    pub fn last(&self, server: &str, lines: usize) -> io::Result<Vec<String>> {
        let Some(path) = self.path(server) else {
            return Ok(Vec::new());
        };
        let mut text = String::new();
        for path in [aside(&path), path] {
            match fs::read(&path) {
                Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let all: Vec<&str> = text.lines().collect();
        let last = all[all.len().saturating_sub(lines)..].iter();
        Ok(last.map(|it| (*it).to_owned()).collect())
    }

    /// Removes what a server's program has written.
    pub fn remove(&self, server: &str) {
        let Some(path) = self.path(server) else {
            return;
        };
        for path in [aside(&path), path] {
            // There may be none.
            let _ = fs::remove_file(path);
        }
    }

    /// Names of servers are words of letters and digits; nothing else becomes a path.
    fn path(&self, server: &str) -> Option<PathBuf> {
        let is_name = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
        let is_sound = !server.is_empty() && server.bytes().all(is_name);
        is_sound.then(|| self.0.join(format!("{server}.log")))
    }

    pub(super) fn open(&self, server: &str) -> Option<Journal> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let path = self.path(server)?;
        let opened = builder.create(&self.0).and_then(|()| open(&path));
        match opened {
            Ok((file, size)) => Some(Journal {
                path,
                file,
                size,
                line: Vec::new(),
            }),
            Err(error) => {
                tracing::debug!(%error, server, "what its program writes is not kept");
                None
            }
        }
    }
}

fn aside(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// The journal of one program.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    size: u64,
    /// The line that has not ended yet.
    line: Vec<u8>,
}

impl Journal {
    /// Writes the lines that end in a piece of what the program says, each with its time. Secrets are masked.
    pub(super) fn write(&mut self, piece: &[u8], masks: &Masks) {
        for &byte in piece {
            let is_end = byte == b'\n';
            if !is_end {
                self.line.push(byte);
            }
            if is_end || self.line.len() >= LONGEST_LINE {
                self.end_line(masks);
            }
        }
    }

    /// Writes the line that has not ended.
    pub(super) fn end(&mut self, masks: &Masks) {
        if !self.line.is_empty() {
            self.end_line(masks);
        }
    }

    fn end_line(&mut self, masks: &Masks) {
        let line = std::mem::take(&mut self.line);
        let line = masks.beginning(String::from_utf8_lossy(&line).trim_end(), LONGEST_LINE);
        let since = Duration::from_millis(u64::try_from(now()).unwrap_or_default());
        let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + since);
        if let Err(error) = self.put(&format!("{time} {line}\n")) {
            tracing::debug!(%error, "what a program writes is not kept");
        }
    }

    fn put(&mut self, line: &str) -> io::Result<()> {
        if self.size >= LARGEST {
            fs::rename(&self.path, aside(&self.path))?;
            (self.file, self.size) = open(&self.path)?;
        }
        self.file.write_all(line.as_bytes())?;
        self.size += u64::try_from(line.len()).unwrap_or_default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn journals() -> (tempfile::TempDir, Journals) {
        let folder = tempfile::tempdir().expect("there is room");
        let journals = Journals::new(folder.path().join("logs"));
        (folder, journals)
    }

    /// The lines without their times.
    fn lines(journals: &Journals, most: usize) -> Vec<String> {
        let lines = journals.last("notes", most).expect("they can be read");
        let texts = lines.iter().map(|it| it.split_once(' ').map(|it| it.1));
        texts.map(|it| it.unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn lines_are_kept_without_secrets() {
        let (_folder, journals) = journals();
        assert!(lines(&journals, 9).is_empty());
        let masks = Masks::new([&Secret::new("s3cr3t-word")]);
        let mut journal = journals.open("notes").expect("it opens");
        for piece in ["star", "ted\nkey s3cr3t-", "word\r\n\u{1b}[1mlast"] {
            journal.write(piece.as_bytes(), &masks);
        }
        journal.end(&masks);
        let all = lines(&journals, 9);
        assert_eq!(all[0], "started");
        assert!(!all.concat().contains("s3cr3t"), "{all:?}");
        assert!(!all.concat().contains('\u{1b}'), "{all:?}");
        assert_eq!(lines(&journals, 1), all[2..]);
        journals.remove("notes");
        assert!(lines(&journals, 9).is_empty());
    }

    #[test]
    fn the_file_stays_small() {
        let (folder, journals) = journals();
        let mut journal = journals.open("notes").expect("it opens");
        let line = format!("{}\n", "x".repeat(1000));
        for _ in 0..1_000 {
            journal.write(line.as_bytes(), &Masks::default());
        }
        let files = fs::read_dir(folder.path().join("logs")).expect("it is there");
        let sizes = files.map(|it| it.and_then(|it| it.metadata()).expect("it is there").len());
        let sizes: Vec<u64> = sizes.collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|it| *it <= LARGEST + 2_000), "{sizes:?}");
        assert_eq!(lines(&journals, 5).len(), 5);
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let (_folder, journals) = journals();
        for name in ["", "../x", "a/b", "a.b", "ä"] {
            assert!(journals.open(name).is_none(), "{name}");
        }
    }
}
