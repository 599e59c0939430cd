//! Makes what a server says fit to be shown: printable, bounded, and without what it was given in confidence.

use crate::{credentials::Bearer, secret::Secret};
use serde_json::Value;
use std::fmt;

/// What is shown for a secret.
const MASK: &str = "***";
/// Texts shorter than this are settings, such as `true` or `1`, and no secrets.
const SHORTEST_SECRET: usize = 4;
/// A part of a secret, such as what follows `Bearer`, is one if it is as long as this.
const SHORTEST_PART: usize = 8;

/// The secrets of one server.
#[derive(Clone, Default)]
pub(super) struct Masks {
    /// Longest first.
    secrets: Vec<String>,
    /// The token of who has signed in, which changes.
    bearer: Option<Bearer>,
}

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masks({})", self.secrets.len())
    }
}

impl Masks {
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut masks = Self::default();
        for secret in secrets {
            masks.add(secret.expose());
        }
        masks
    }

    /// Has a token masked too, whatever it becomes.
    pub(super) fn with_bearer(mut self, bearer: Option<&Bearer>) -> Self {
        self.bearer = bearer.cloned();
        self
    }

    /// Has a text masked from now on, and its longer words with it.
    pub(super) fn add(&mut self, secret: &str) {
        let whole = [secret, secret.trim()].map(|it| (it, SHORTEST_SECRET));
        let parts = secret.split_whitespace().map(|it| (it, SHORTEST_PART));
        for (text, shortest) in whole.into_iter().chain(parts) {
            if text.len() >= shortest && !self.secrets.iter().any(|it| it == text) {
                self.secrets.push(text.to_owned());
            }
        }
        self.secrets.sort_by_key(|it| usize::MAX - it.len());
    }

    /// Has all masked that others mask.
    pub(super) fn extend(&mut self, others: Self) {
        for secret in others.secrets {
            self.add(&secret);
        }
        self.bearer = self.bearer.take().or(others.bearer);
    }

    /// Returns the beginning of a text, fit to be shown.
    pub(super) fn beginning(&self, text: &str, longest: usize) -> String {
        let text = self.shown(text);
        match text.char_indices().nth(longest) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    /// Returns the end of a text, fit to be shown. Where the text itself is an end, it may begin within a secret.
    pub(super) fn end(&self, text: &str, is_cut: bool, longest: usize) -> String {
        let text = if is_cut {
            &text[self.cut_secret(text)..]
        } else {
            text
        };
        let shown = self.shown(text);
        let surplus = shown.chars().count().saturating_sub(longest);
        match shown.char_indices().nth(surplus) {
            Some((start, _)) if surplus > 0 => format!("…{}", &shown[start..]),
            _ => shown,
        }
    }

    /// Masks all texts of a value, and what else may hold a secret.
    pub(super) fn masked(&self, value: Value) -> Value {
        if self.secrets.is_empty() && self.bearer.is_none() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.hide(text)),
            Value::Array(items) => items.into_iter().map(|it| self.masked(it)).collect(),
            Value::Object(members) => {
                let members = members.into_iter();
                let masked = members.map(|(name, it)| (self.hide(name), self.masked(it)));
                Value::Object(masked.collect())
            }
            Value::Number(number) if self.secrets.contains(&number.to_string()) => MASK.into(),
            Value::Number(_) | Value::Bool(_) | Value::Null => value,
        }
    }

    /// Masks before and after control characters go, since a secret may hold some, or be told apart by some.
    fn shown(&self, text: &str) -> String {
        self.hide(printable(&self.hide(text.to_owned())))
    }

    fn hide(&self, mut text: String) -> String {
        let secrets = self.secrets.iter().map(String::as_str);
        let tokens = self.bearer.iter().flat_map(Bearer::secrets);
        let tokens: Vec<Secret> = tokens.collect();
        for secret in secrets.chain(tokens.iter().map(Secret::expose)) {
            if text.contains(secret) {
                text = text.replace(secret, MASK);
            }
        }
        text
    }

    /// Returns how many bytes at the beginning of a text are the end of a secret.
    fn cut_secret(&self, text: &str) -> usize {
        let ends = self.secrets.iter().flat_map(|secret| {
            let starts = secret.char_indices().skip(1).map(|(at, _)| at);
            starts.map(|at| &secret[at..])
        });
        let cut = ends.filter(|it| text.starts_with(it)).map(str::len);
        cut.max().unwrap_or(0)
    }
}

/// Puts a text on one line, without what moves a cursor, colours, or shows letters in another order.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => {
                if letters.next_if_eq(&'[').is_some() {
                    // A control sequence goes up to its first letter.
                    while letters.next_if(|it| !it.is_alphabetic()).is_some() {}
                    letters.next();
                }
            }
            '\n' if shown.ends_with(" / ") => {}
            '\n' => {
                shown.truncate(shown.trim_end().len());
                shown.push_str(" / ");
            }
            '\t' => shown.push(' '),
            '`' => shown.push('\''),
            _ if letter.is_control() || is_invisible(letter) => {}
            _ => shown.push(letter),
        }
    }
    shown
}

fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn masks(secrets: &[&str]) -> Masks {
        let secrets: Vec<Secret> = secrets.iter().map(|it| Secret::new(*it)).collect();
        Masks::new(&secrets)
    }

    #[test]
    fn a_secret_is_masked_with_its_parts() {
        let masks = masks(&["Bearer sk-123456", "on"]);
        assert_eq!(masks.beginning("on sk-123456, on", 100), "on ***, on");
        assert_eq!(masks.beginning("<Bearer sk-123456>", 100), "<***>");
        assert_eq!(masks.beginning("sk-\u{7}123456", 100), "***");
    }

    #[test]
    fn data_is_masked() {
        let masks = masks(&["s3cr3t", "123456"]);
        let data = json!({ "a s3cr3t": ["s3cr3t!", 123_456, 1, true, null] });
        let masked = json!({ "a ***": ["***!", "***", 1, true, null] });
        assert_eq!(masks.masked(data), masked);
    }

    #[test]
    fn a_secret_that_is_cut_is_masked() {
        let masks = masks(&["abcdefgh"]);
        assert_eq!(masks.end("fgh is wrong", true, 100), "is wrong");
        assert_eq!(masks.end("fgh is wrong", false, 100), "fgh is wrong");
        assert_eq!(masks.end("abcdefgh", false, 2), "…**");
    }

    #[test]
    fn what_is_shown_is_on_one_line_and_printable() {
        let text = "\u{1b}[31merror\u{1b}[0m:\r\n\n\u{202e}`b\tc`\n";
        assert_eq!(Masks::default().beginning(text, 100), "error: / 'b c'");
        assert_eq!(Masks::default().beginning("äöü", 2), "äö…");
    }
}
