//! Why nobody could sign in, or stay signed in.

use super::{super::VaultError, egress::EgressError};
use crate::{secret::Secret, store::DatabaseError};
use thiserror::Error;

/// How many letters of what others say stand in an error.
const SHOWN: usize = 300;

/// Why nobody could sign in, or stay signed in. What others say in it is bounded and printable; no secret is in it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// The server says nowhere where to sign in.
    #[error(
        "`{server}` doesn't say where to sign in: no metadata of it or of its host was found; if it takes a fixed token, give it with `--header 'Authorization: Bearer …'`"
    )]
    NoMetadata {
        /// The server.
        server: String,
    },
    /// A request went wrong.
    #[error("could not {what}")]
    Request {
        /// What was to be done.
        what: String,
        /// Why.
        source: EgressError,
    },
    /// An answer can't be used.
    #[error("could not {what}: {reason}")]
    Answer {
        /// What was to be done.
        what: String,
        /// Why.
        reason: String,
    },
    /// The authorization server calls itself something else.
    #[error(
        "the authorization server at `{expected}` says that it is `{found}`, so it may be another's; nothing was sent to it"
    )]
    Issuer {
        /// Who it should be.
        expected: String,
        /// Who it says it is.
        found: String,
    },
    /// The metadata is of another server.
    #[error(
        "the metadata of `{server}` is about `{found}`, which is another server; nothing was sent"
    )]
    Resource {
        /// The server.
        server: String,
        /// What the metadata is about.
        found: String,
    },
    /// Without PKCE a code that is stolen is a token that is stolen.
    #[error(
        "the authorization server `{issuer}` doesn't offer PKCE with S256 ({found}), which is required; ask who runs it to switch it on"
    )]
    NoPkce {
        /// The authorization server.
        issuer: String,
        /// What it offers.
        found: String,
    },
    /// The authorization server wants to know us, and there is no way to make ourselves known.
    #[error(
        "the authorization server `{issuer}` registers no clients by itself; register one there by hand with the redirect URI `{redirect}`, then sign in with `--client-id`, and `--client-secret` if it has one{}",
        if *.takes_documents { "; or set `public_url` in `[sign_in]` to an https address of this bridge, whose client document it takes" } else { "" }
    )]
    NoClient {
        /// The authorization server.
        issuer: String,
        /// Where a sign-in comes back to.
        redirect: String,
        /// Whether it takes metadata documents of clients.
        takes_documents: bool,
    },
    /// The authorization server does not want us.
    #[error(
        "the authorization server `{issuer}` refused to register this client with the redirect URI `{redirect}`: {reason}; if it wants https, set `public_url` in `[sign_in]`, or register a client by hand and sign in with `--client-id`"
    )]
    Registration {
        /// The authorization server.
        issuer: String,
        /// Where a sign-in comes back to.
        redirect: String,
        /// What it says.
        reason: String,
    },
    /// The authorization server doesn't know its client any more.
    #[error(
        "the authorization server `{issuer}` doesn't know this client any more; sign in again, which registers it anew"
    )]
    ClientGone {
        /// The authorization server.
        issuer: String,
    },
    /// The authorization server gave no token.
    #[error("the authorization server `{issuer}` gave no token: {reason}")]
    Refused {
        /// The authorization server.
        issuer: String,
        /// What it says.
        reason: String,
    },
    /// Somebody came back to a sign-in that isn't under way.
    #[error(
        "no sign-in is under way with this `state`: it was finished already, took longer than ten minutes, or was begun elsewhere; begin again with `clopen-mcp auth login`"
    )]
    State,
    /// Somebody came back without what is needed.
    #[error("the address that was come back to has no `{missing}`; copy all of it")]
    Callback {
        /// What is missing.
        missing: &'static str,
    },
    /// The answer is of another authorization server.
    #[error(
        "the answer comes from {} and not from `{expected}`, where it was asked for; nothing was sent", .found.as_ref().map_or_else(|| "an authorization server that doesn't say its name".to_owned(), |it| format!("`{it}`"))
    )]
    Mixed {
        /// Who was asked.
        expected: String,
        /// Who answers.
        found: Option<String>,
    },
    /// The person said no, or the authorization server did.
    #[error("the sign-in was refused: {reason}")]
    Denied {
        /// What it says.
        reason: String,
    },
    /// The server is given a token of its own.
    #[error(
        "`{server}` is given a header `Authorization` of its own, so nobody signs in to it; remove it and add it again without that header"
    )]
    HasHeader {
        /// The server.
        server: String,
    },
    /// Nobody has signed in.
    #[error("nobody has signed in to `{server}`; do so with `{command}`")]
    NotSignedIn {
        /// The server.
        server: String,
        /// How to.
        command: String,
    },
    /// What the database has can't be read.
    #[error("what is kept of the sign-in to `{server}` is damaged; sign in again with `{command}`")]
    Damaged {
        /// The server.
        server: String,
        /// How to.
        command: String,
    },
    /// The token could not be renewed; it is tried again.
    #[error(
        "the token for `{server}` has expired and can't be renewed for now: {reason}; it is tried again in {wait} s"
    )]
    Resting {
        /// The server.
        server: String,
        /// Why.
        reason: String,
        /// When it is tried again.
        wait: i64,
    },
    /// The vault failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The database failed.
    #[error("can't keep or find what is known of the sign-in")]
    Store(#[from] DatabaseError),
    /// The system has no randomness to give.
    #[error("the system gives no random bytes to sign in with")]
    Random(#[from] getrandom::Error),
}

/// Makes of what others say a text on one line, without the secrets that they were told.
pub(super) fn shown(text: &str, secrets: &[&Secret]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|it| it.expose().len() >= 4) {
        text = text.replace(secret.expose(), "***");
    }
    let printable = |it: char| match it {
        '`' => '\'',
        it if it.is_control() || is_invisible(it) => ' ',
        it => it,
    };
    let text: String = text.chars().map(printable).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Letters that show others in another order, or none.
const fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}
