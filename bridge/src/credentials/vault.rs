//! Seals secrets for the database: XChaCha20-Poly1305 under a key that only this person can read, bound to what the secret
//! belongs to.

use crate::secret::Secret;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chacha20poly1305::{
    Key, KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use std::{
    fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;
use thiserror::Error;

/// The file in the data folder.
const FILE_NAME: &str = "vault.key";

const NONCE: usize = 24;

/// Seals and opens.
#[derive(Clone)]
pub struct Vault {
    cipher: XChaCha20Poly1305,
    file: PathBuf,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

/// Why secrets can't be sealed or opened. Nothing is lost: what is sealed stays as it is.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VaultError {
    /// The key can't be read or made.
    #[error("can't read or make the key of the vault, `{}`", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("`{}` holds no key, which is 32 bytes in base64; restore it from a backup", file.display())]
    NoKey {
        /// The file.
        file: PathBuf,
    },
    /// The system has no randomness to give.
    #[error("the system gives no random bytes to seal with")]
    Random(#[from] getrandom::Error),
    /// It was sealed under another key, for something else, or is damaged.
    #[error("the secrets of `{owner}` were sealed under another key than the one in `{}`; restore that file, or enter the secrets again", file.display())]
    WrongKey {
        /// What the secret belongs to.
        owner: String,
        /// The file with the key.
        file: PathBuf,
    },
}

impl Vault {
    /// Opens the vault of a data folder; makes its key where there is none yet. Of several processes that make one at
    /// once, the first wins.
    pub fn open(data: &Path) -> Result<Self, VaultError> {
        let file = data.join(FILE_NAME);
        let failed = |source| VaultError::File {
            file: file.clone(),
            source,
        };
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(data, &file)?;
                fs::read_to_string(&file).map_err(failed)?
            }
            read => read.map_err(failed)?,
        };
        let key = BASE64_STANDARD.decode(text.trim()).ok();
        let key: Option<[u8; 32]> = key.and_then(|it| it.try_into().ok());
        let key = key.ok_or_else(|| VaultError::NoKey { file: file.clone() })?;
        Ok(Self {
            cipher: XChaCha20Poly1305::new(&Key::from(key)),
            file,
        })
    }

    /// Seals a secret of an owner, which alone can open it.
    pub fn seal(&self, owner: &str, secret: &Secret) -> Result<String, VaultError> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce)?;
        let payload = Payload {
            msg: secret.expose().as_bytes(),
            aad: owner.as_bytes(),
        };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("no secret is longer than the cipher takes");
        Ok(BASE64_STANDARD.encode([&nonce[..], &sealed].concat()))
    }

    /// Opens what was sealed for an owner.
    pub fn unseal(&self, owner: &str, sealed: &str) -> Result<Secret, VaultError> {
        let opened = || {
            let bytes = BASE64_STANDARD.decode(sealed).ok()?;
            let (nonce, msg) = bytes.split_first_chunk::<NONCE>()?;
            let payload = Payload {
                msg,
                aad: owner.as_bytes(),
            };
            let opened = self.cipher.decrypt(&XNonce::from(*nonce), payload).ok()?;
            String::from_utf8(opened).ok()
        };
        opened()
            .map(Secret::new)
            .ok_or_else(|| VaultError::WrongKey {
                owner: owner.to_owned(),
                file: self.file.clone(),
            })
    }
}

fn make(data: &Path, file: &Path) -> Result<(), VaultError> {
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    let write = || {
        fs::create_dir_all(data)?;
        // Temporary files are this person's alone.
        let mut new = NamedTempFile::new_in(data)?;
        new.write_all(BASE64_STANDARD.encode(key).as_bytes())?;
        new.as_file().sync_all()?;
        match new.persist_noclobber(file) {
            Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
            _ => Ok(()),
        }
    };
    write().map_err(|source| VaultError::File {
        file: file.to_owned(),
        source,
    })
}
