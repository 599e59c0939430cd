//! A text that must not be shown.

use std::fmt;
use subtle::ConstantTimeEq as _;

/// A text that is never printed or serialized by accident.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes a text in.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares in a time that doesn't tell how much of it is right; only the length can be told.
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
