//! Secrets of others, which this person has entrusted to the bridge.

mod vault;

pub use vault::{Vault, VaultError};
