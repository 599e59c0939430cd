//! The rules for names, and what to write instead of a bad one.

use crate::{errors::Errors, model::Kind};
use syn::LitStr;

/// The namespace under which engines know all servers.
const NAMESPACE: &str = "clopen-mcp";

/// The strictest engine allows 64 characters, and puts a prefix before the name.
const LONGEST_TOOL: usize = 46;
const LONGEST_SERVER: usize = 40;
const LONGEST_ARGUMENT: usize = 64;

pub const EMPTY: &str = "`name` is empty";

pub fn check_server(name: &LitStr, errors: &Errors) {
    let text = name.value();
    if text.is_empty() {
        errors.at(name, EMPTY);
    } else if text == NAMESPACE {
        errors.at(
            name,
            format!(
                "`{NAMESPACE}` is the name under which engines know all servers; choose another one"
            ),
        );
    } else if text.chars().count() > LONGEST_SERVER {
        errors.at(
            name,
            format!(
                "the name of a server has at most {LONGEST_SERVER} characters, and this one has {}",
                text.chars().count()
            ),
        );
    } else if !is_spelled(&text, '-') {
        errors.at(
            name,
            format!(
                "`{text}` can't be the name of a server: it has lower-case letters and digits, single `-` between words, and starts with a letter{}",
                suggestion(&text, '-', |it| format!(", like `{it}`"))
            ),
        );
    }
}

/// Checks the name of a tool or prompt, which comes from its function unless the attribute states one.
pub fn check_function(kind: Kind, name: &LitStr, is_stated: bool, errors: &Errors) {
    let (word, text) = (kind.word(), name.value());
    let way_out = |example: &str| {
        if is_stated {
            format!("; write `name = \"{example}\"`")
        } else {
            format!("; rename the function or write `#[{word}(name = \"{example}\")]`")
        }
    };
    if text.is_empty() {
        errors.at(name, EMPTY);
    } else if !is_spelled(&text, '_') {
        errors.at(
            name,
            format!(
                "`{text}` can't be the name of a {word}: it has lower-case letters and digits, single `_` between words, and starts with a letter{}",
                suggestion(&text, '_', way_out)
            ),
        );
    } else if text.chars().count() > LONGEST_TOOL {
        errors.at(
            name,
            format!(
                "the name of a {word} has at most {LONGEST_TOOL} characters, or some engines refuse it, and this one has {}{}",
                text.chars().count(),
                way_out("…")
            ),
        );
    }
}

pub fn check_argument(name: &LitStr, errors: &Errors) {
    let text = name.value();
    if text.is_empty() {
        errors.at(name, EMPTY);
        return;
    }
    let mut characters = text.chars();
    let starts_well = characters
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic() || it == '_');
    let goes_on_well = characters.all(|it| it.is_ascii_alphanumeric() || "_.-".contains(it));
    if !starts_well || !goes_on_well {
        errors.at(
            name,
            format!("`{text}` can't be the name of an argument: it has letters, digits, `_`, `.` and `-`, and starts with a letter or `_`"),
        );
    } else if text.len() > LONGEST_ARGUMENT {
        errors.at(
            name,
            format!(
                "the name of an argument has at most {LONGEST_ARGUMENT} characters, and this one has {}",
                text.len()
            ),
        );
    }
}

/// Checks the name of a header, a token of HTTP (RFC 9110).
pub fn check_header(name: &LitStr, errors: &Errors) {
    let text = name.value();
    let is_token = |it: char| it.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(it);
    if text.is_empty() {
        errors.at(name, "`header` is empty");
    } else if !text.chars().all(is_token) {
        errors.at(
            name,
            format!("`{text}` can't be the name of a header: it has letters, digits and any of !#$%&'*+-.^_`|~"),
        );
    }
}

/// Whether the name is made of lower-case words with one separator between two.
fn is_spelled(name: &str, separator: char) -> bool {
    name.starts_with(|it: char| it.is_ascii_lowercase())
        && name.split(separator).all(|word| {
            !word.is_empty()
                && word
                    .chars()
                    .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
        })
}

/// Spells a name as it should be, where that can be done.
fn suggestion(name: &str, separator: char, tell: impl FnOnce(&str) -> String) -> String {
    let mut words = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            words.push(separator);
        }
        words.push(if character.is_ascii_alphanumeric() {
            character.to_ascii_lowercase()
        } else {
            separator
        });
    }
    let words: Vec<&str> = words.split(separator).filter(|it| !it.is_empty()).collect();
    let spelled = words.join(&separator.to_string());
    tell(if is_spelled(&spelled, separator) {
        &spelled
    } else {
        "…"
    })
}
