//! Sealed secrets, and what happens to them without their key.

use clopen_mcp::{
    credentials::{Vault, VaultError},
    secret::Secret,
};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};
use tempfile::TempDir;

fn vault(folder: &Path) -> Vault {
    Vault::open(folder).expect("it can be made")
}

#[test]
fn what_is_sealed_can_be_opened_by_its_owner_alone() {
    let folder = TempDir::new().unwrap();
    let sealed = vault(folder.path())
        .seal("notes", &Secret::new("größe 'x'"))
        .unwrap();
    assert!(!sealed.contains("größe"));
    let again = vault(folder.path());
    assert_eq!(
        again.unseal("notes", &sealed).unwrap().expose(),
        "größe 'x'"
    );
    assert!(matches!(
        again.unseal("other", &sealed),
        Err(VaultError::WrongKey { .. })
    ));
    let once_more = again.seal("notes", &Secret::new("größe 'x'")).unwrap();
    assert_ne!(sealed, once_more);
}

#[test]
fn the_key_is_this_persons_alone() {
    let folder = TempDir::new().unwrap();
    vault(folder.path());
    let mode = fs::metadata(folder.path().join("vault.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn another_key_is_told_and_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let sealed = vault(folder.path())
        .seal("notes", &Secret::new("s3cret-s3cret"))
        .unwrap();
    let key = folder.path().join("vault.key");
    let kept = fs::read_to_string(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let error = vault(folder.path())
        .unseal("notes", &sealed)
        .unwrap_err()
        .to_string();
    let told = error.replace(&folder.path().display().to_string(), "FOLDER");
    assert_eq!(
        told,
        "the secrets of `notes` were sealed under another key than the one in `FOLDER/vault.key`; restore that file, or enter the secrets again"
    );
    fs::write(&key, kept).unwrap();
    assert_eq!(
        vault(folder.path())
            .unseal("notes", &sealed)
            .unwrap()
            .expose(),
        "s3cret-s3cret"
    );
}

#[test]
fn a_damaged_key_is_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    let key = folder.path().join("vault.key");
    fs::write(&key, "no key").unwrap();
    assert!(matches!(
        Vault::open(folder.path()),
        Err(VaultError::NoKey { .. })
    ));
    assert_eq!(fs::read_to_string(&key).unwrap(), "no key");
}

#[test]
fn nothing_damaged_is_opened() {
    let folder = TempDir::new().unwrap();
    let vault = vault(folder.path());
    let sealed = vault.seal("notes", &Secret::new("s3cret")).unwrap();
    for wrong in ["", "AAAA", "no base64!", &sealed[..sealed.len() - 4]] {
        assert!(vault.unseal("notes", wrong).is_err(), "{wrong}");
    }
}
