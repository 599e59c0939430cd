//! The service token: what lets this user's own engines in.

use super::folder;
use crate::secret::Secret;
use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};
use thiserror::Error;

/// The file in the data folder.
const FILE_NAME: &str = "token";

/// More than any token has; whatever is longer is another file.
const MOST_BYTES: u64 = 4096;

/// The service token, as the data folder has it.
#[derive(Clone, Debug)]
pub struct ServiceToken {
    /// The token.
    pub token: Secret,
    /// The file that it is kept in.
    pub file: PathBuf,
    /// What was wrong with the file, and has been put right as far as possible.
    pub warning: Option<String>,
}

/// Why there is no service token.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServiceTokenError {
    /// It can't be written.
    #[error(
        "can't write the service token to `{}`; make the data folder yours, or set the token in `CLOPEN_MCP_TOKEN`", file.display()
    )]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It can't be read.
    #[error(
        "can't read the service token from `{}`; make the file yours, or delete it for a new token", file.display()
    )]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error(
        "`{}` holds no token, which is one line of at least 16 visible ASCII characters; delete the file for a new token", file.display()
    )]
    Invalid {
        /// The file.
        file: PathBuf,
    },
    /// The system has no randomness to give.
    #[error("the system gives no random bytes for a token")]
    Random(#[from] getrandom::Error),
}

/// Reads the service token from the data folder; makes one where there is none yet. Of several processes that make
/// one at once, the first wins and the others take its token.
pub fn service_token(data: &Path) -> Result<ServiceToken, ServiceTokenError> {
    let file = data.join(FILE_NAME);
    if let Some(token) = read(&file)? {
        return Ok(token);
    }
    let text = super::tokens::random_text()?;
    write(data, &file, &text).map_err(|source| ServiceTokenError::Write {
        file: file.clone(),
        source,
    })?;
    read(&file)?.ok_or_else(|| ServiceTokenError::Read {
        source: io::ErrorKind::NotFound.into(),
        file,
    })
}

fn read(file: &Path) -> Result<Option<ServiceToken>, ServiceTokenError> {
    let failed = |source| ServiceTokenError::Read {
        file: file.to_owned(),
        source,
    };
    let open = match fs::File::open(file) {
        Ok(open) => open,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let warning = match folder::close_to_others(&open) {
        Ok(None) => None,
        Ok(Some(mode)) => Some(format!(
            "others could read the service token in `{}` (mode {mode:04o}), which is set to 0600 now; if somebody may have, delete the file and start again for a new token",
            file.display()
        )),
        Err(error) => Some(format!(
            "others can read the service token in `{}`, and its mode can't be set to 0600: {error}",
            file.display()
        )),
    };
    let mut text = String::new();
    match open.take(MOST_BYTES).read_to_string(&mut text) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidData => text.clear(),
        Err(error) => return Err(failed(error)),
    }
    let text = text.trim();
    if text.len() < 16 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ServiceTokenError::Invalid {
            file: file.to_owned(),
        });
    }
    Ok(Some(ServiceToken {
        token: Secret::new(text),
        file: file.to_owned(),
        warning,
    }))
}

/// The file gets its name only when all of it is on the disk, so nobody reads half a token; and a link is never put
/// over a file that is there already.
fn write(data: &Path, file: &Path, text: &Secret) -> Result<(), io::Error> {
    let data = folder::prepare(data)?;
    let unfinished = data.join(format!(
        "{FILE_NAME}.{}.new",
        super::tokens::random_id::<8>()?
    ));
    let written = (|| {
        let mut new = folder::private()
            .write(true)
            .create_new(true)
            .open(&unfinished)?;
        writeln!(new, "{}", text.expose())?;
        new.sync_all()?;
        match fs::hard_link(&unfinished, file) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    })();
    // When this fails, what is left is one unused token in a folder of our own.
    drop(fs::remove_file(&unfinished));
    written?;
    #[cfg(unix)]
    fs::File::open(&data)?.sync_all()?;
    Ok(())
}
