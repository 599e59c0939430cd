//! Secrets of others, which this person has entrusted to the bridge.

mod oauth;
mod vault;

pub use oauth::{
    Account, Bearer, Begun, CALLBACK, ClientOfPerson, DOCUMENT, EgressError, Network, OAuthError,
    OWN_TOKENS, SignIns, Signed, SigningIn, State, Target, USUAL_ACCOUNT, has_token,
    sign_in_command, subject,
};
pub use vault::{Vault, VaultError};
