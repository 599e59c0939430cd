//! The data folder and its files, which nobody but their owner may read.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// Makes the folder where it isn't there, and returns its path without detours.
pub(super) fn prepare(folder: &Path) -> Result<PathBuf, io::Error> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    fs::canonicalize(folder)
}

/// Makes the file where it isn't there. SQLite gives its side files the mode of this one.
pub(super) fn touch(path: &Path) -> Result<(), io::Error> {
    let file = private().append(true).create(true).open(path)?;
    close_to_others(&file)?;
    Ok(())
}

/// Makes a file that isn't there yet, for the owner only.
pub(crate) fn create(path: &Path) -> Result<File, io::Error> {
    private().write(true).create_new(true).open(path)
}

/// Options whose new files are for the owner only.
pub(super) fn private() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Takes a file from everybody but its owner; returns the mode that it had where that was too wide.
#[cfg(unix)]
pub(super) fn close_to_others(file: &File) -> Result<Option<u32>, io::Error> {
    use std::os::unix::fs::PermissionsExt as _;

    const OTHERS: u32 = 0o077;

    let mode = file.metadata()?.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(None);
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(Some(mode))
}

/// Elsewhere the user's own folders are closed to others already.
#[cfg(not(unix))]
pub(super) fn close_to_others(_: &File) -> Result<Option<u32>, io::Error> {
    Ok(None)
}
