//! The state that a stateless client carries from one round of questions to the next: sealed, bound to who asked for
//! what, and good for a while only.

use super::rpc::RpcError;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    Key, KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::{collections::BTreeMap, time::Duration};

/// How long a person may take to answer.
const GOOD_FOR: Duration = Duration::from_hours(1);

/// The most bytes of state that are looked at.
const LONGEST: usize = 256 * 1024;

/// Bytes of a nonce of XChaCha20-Poly1305.
const NONCE: usize = 24;

/// What a state is bound to: it opens for the same request of the same caller only.
pub(super) struct Binding {
    digest: [u8; 32],
}

impl Binding {
    pub(super) fn new(principal: &str, method: &str, name: &str, arguments: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [principal, method, name, arguments] {
            // With its length before it, no part can run into the next.
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        Self {
            digest: hash.finalize().into(),
        }
    }
}

/// Answers to questions, by key.
pub(super) type Answers = BTreeMap<String, Value>;

/// What a call must know of the rounds before.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The answers of earlier rounds.
    pub(super) answers: Answers,
    /// What the tool itself has kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) own: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Dated {
    until: i64,
    #[serde(flatten)]
    state: State,
}

/// Seals and opens states.
pub(super) struct Seal(XChaCha20Poly1305);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(…)")
    }
}

impl Seal {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&Key::from(*key)))
    }

    pub(super) fn seal(&self, state: State, binding: &Binding, now: i64) -> String {
        let until = now + i64::try_from(GOOD_FOR.as_millis()).unwrap_or(i64::MAX);
        let state = serde_json::to_vec(&Dated { until, state }).expect("JSON is JSON");
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).expect("the system has a source of randomness");
        let payload = Payload {
            msg: &state,
            aad: &binding.digest,
        };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("a state is shorter than the cipher's limit");
        URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }

    /// Opens a state; one that was touched, is another request's, or is too old is refused.
    pub(super) fn open(&self, state: &str, binding: &Binding, now: i64) -> Result<State, RpcError> {
        let refused = || {
            RpcError::invalid_params(
                "the `requestState` is not one that this server gave for this request",
            )
        };
        if state.len() > LONGEST {
            return Err(refused());
        }
        let bytes = URL_SAFE_NO_PAD.decode(state).map_err(|_| refused())?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>().ok_or_else(refused)?;
        let payload = Payload {
            msg: sealed,
            aad: &binding.digest,
        };
        let opened = self
            .0
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| refused())?;
        let dated: Dated = serde_json::from_slice(&opened).map_err(|_| refused())?;
        if dated.until < now {
            return Err(RpcError::invalid_params(
                "the `requestState` is too old; make the request again without it",
            ));
        }
        Ok(dated.state)
    }
}
