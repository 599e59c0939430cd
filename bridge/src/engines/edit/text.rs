//! Lines of a text, and what all three languages have in common when they write one.

use serde_json::{Number, Value};
use std::fmt::Write as _;

/// Returns where the line of this byte begins.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns where the line of this byte ends, before its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    if end > at && text[..end].ends_with('\r') && end < text.len() {
        end - 1
    } else {
        end
    }
}

/// Returns where the line after this byte's begins, or where the text ends.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

/// Returns where the line break before this line begins, or `None` in the first line.
pub(super) fn break_before(text: &str, line_start: usize) -> Option<usize> {
    let before = text[..line_start].strip_suffix('\n')?;
    Some(before.strip_suffix('\r').unwrap_or(before).len())
}

/// Returns the white space that a line begins with.
pub(super) fn indentation(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Says whether nothing but white space is before it on its line.
pub(super) fn starts_line(text: &str, at: usize) -> bool {
    // A file may be one line of megabytes, so this doesn't look for where the line begins.
    let before = text[..at].trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with('\n')
}

pub(super) fn is_blank(text: &str) -> bool {
    text.trim_matches([' ', '\t', '\r', '\n']).is_empty()
}

/// Returns the line break that the text uses.
pub(super) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Writes a text in double quotes, as JSON, TOML and YAML all read it.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            // YAML takes some of them for line breaks, and others may not stand in a file at all.
            _ if character.is_control()
                || matches!(
                    character,
                    '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}'..='\u{ffff}'
                ) =>
            {
                write!(quoted, "\\u{:04x}", u32::from(character))
                    .expect("a text takes what is written to it");
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// Writes what is neither a list nor an object; `None` for those.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("null".to_owned()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        Value::String(value) => Some(quoted(value)),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads a decimal number exactly, or returns `None` for those that JSON doesn't know.
pub(super) fn decimal(text: &str) -> Option<Number> {
    let whole = text.parse::<i64>().map(Number::from);
    whole
        .or_else(|_| text.parse::<u64>().map(Number::from))
        .ok()
        .or_else(|| text.parse().ok().and_then(Number::from_f64))
}
