//! JSON, with comments and trailing commas where the file has them.
//!
//! The reader is our own because two things that others refuse have to be read: half of a surrogate pair, which
//! `JSON.stringify` writes for a text that was cut, and numbers of any size.

use super::{
    Fault, Splice, Step,
    flow::{Arrangement, Flow},
    text::{decimal, indentation, is_blank, newline, quoted, scalar, starts_line},
    tree::{self, DEEPEST, Member, Node, Shape, Way},
};
use serde_json::Value;

/// Reads a file; one without a value is `null`.
pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    reader.skip()?;
    if reader.at == text.len() {
        let end = reader.at..reader.at;
        return Ok(Node::flow(end, Shape::Scalar(Value::Null)));
    }
    let root = reader.value()?;
    reader.skip()?;
    if reader.at < text.len() {
        return Err(reader.fault("expected the end of the file"));
    }
    Ok(root)
}

pub(super) fn set(text: &str, way: &Way<'_, '_>, value: &Value) -> Vec<Splice> {
    let end = way.end();
    let style = Style::of(text, way.root());
    if end.at.is_empty() {
        return vec![first_value(text, &tree::nested(way.rest, value), style)];
    }
    let entry = way.entry();
    // The file as a whole has its lines to itself, even where it is `{}`.
    let has_lines = way.parent().is_none() || starts_line(text, entry.start);
    let here = indentation(text, entry.start);
    if way.is_complete() || end.is_null() {
        let value = tree::nested(way.rest, value);
        let value = style.render(&value, has_lines.then_some(here));
        return vec![Splice::new(end.at.clone(), value)];
    }

    let (step, rest) = way.rest.split_first().expect("the way is not complete");
    let value = tree::nested(rest, value);
    let inside = match end.entries().last() {
        Some(last) if starts_line(text, last.start) => {
            Some(indentation(text, last.start).to_owned())
        }
        Some(_) => None,
        None => has_lines.then(|| format!("{here}{}", style.unit)),
    };
    let arrangement = match &inside {
        Some(indentation) => Arrangement::Lines {
            indentation,
            closing: here,
        },
        None => Arrangement::Line { padding: "" },
    };
    let entry = match step {
        Step::Key(key) => {
            let colon = if style.is_minified { ":" } else { ": " };
            let value = style.render(&value, inside.as_deref());
            format!("{}{colon}{value}", quoted(key))
        }
        Step::Element { .. } => style.render(&tree::element(*step, value), inside.as_deref()),
    };
    flow(text, end, style.is_minified).add(&entry, &arrangement)
}

pub(super) fn remove(text: &str, way: &Way<'_, '_>) -> Vec<Splice> {
    let Some((parent, index)) = way.parent() else {
        return Vec::new();
    };
    flow(text, parent, false).remove(index)
}

fn flow<'t>(text: &'t str, node: &Node, is_minified: bool) -> Flow<'t> {
    let separator = if is_minified { "," } else { ", " };
    Flow::of(text, node, comment, separator)
}

/// Writes into a file that has nothing, or nothing but comments.
fn first_value(text: &str, value: &Value, style: Style<'_>) -> Splice {
    let value = style.render(value, Some(""));
    let newline = newline(text);
    if is_blank(text) {
        return Splice::new(0..text.len(), value + newline);
    }
    let before = if text.ends_with('\n') { "" } else { newline };
    Splice::new(text.len()..text.len(), format!("{before}{value}{newline}"))
}

/// Returns where the comment that begins here ends.
fn comment(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    if rest.starts_with("//") {
        Some(at + rest.find(['\n', '\r']).unwrap_or(rest.len()))
    } else {
        let end = rest.strip_prefix("/*")?.find("*/")?;
        Some(at + 2 + end + 2)
    }
}

/// How the file is written.
#[derive(Clone, Copy)]
struct Style<'t> {
    /// What a line has more than the line of its parent.
    unit: &'t str,
    newline: &'static str,
    /// Whether no space follows on `:` and `,`.
    is_minified: bool,
}

impl<'t> Style<'t> {
    fn of(text: &'t str, root: &Node) -> Self {
        Self {
            unit: unit(text, root).unwrap_or("  "),
            newline: newline(text),
            is_minified: is_minified(text, root),
        }
    }

    /// Writes a value on lines below a line with this indentation, or else on one line.
    fn render(self, value: &Value, indentation: Option<&str>) -> String {
        if let Some(scalar) = scalar(value) {
            return scalar;
        }
        let inside = indentation.map(|indentation| format!("{indentation}{}", self.unit));
        let inside = inside.as_deref();
        let (open, close, entries): (_, _, Vec<String>) = match value {
            Value::Object(members) => {
                let colon = match inside {
                    None if self.is_minified => ":",
                    _ => ": ",
                };
                let entries = members.iter().map(|(key, value)| {
                    format!("{}{colon}{}", quoted(key), self.render(value, inside))
                });
                ('{', '}', entries.collect())
            }
            Value::Array(items) => {
                let entries = items.iter().map(|item| self.render(item, inside));
                ('[', ']', entries.collect())
            }
            _ => unreachable!("a scalar is rendered already"),
        };
        match (indentation, inside) {
            (Some(indentation), Some(inside)) if !entries.is_empty() => {
                let newline = self.newline;
                let entries = entries.join(&format!(",{newline}{inside}"));
                format!("{open}{newline}{inside}{entries}{newline}{indentation}{close}")
            }
            _ if self.is_minified => format!("{open}{}{close}", entries.join(",")),
            _ => format!("{open}{}{close}", entries.join(", ")),
        }
    }
}

/// Returns what the first line that is indented has more than the line above it.
fn unit<'t>(text: &'t str, node: &Node) -> Option<&'t str> {
    let entries = node.entries().into_iter();
    let mut own_lines = entries.filter(|entry| starts_line(text, entry.start));
    let lines = own_lines.find_map(|entry| {
        let outside = indentation(text, node.at.start);
        let unit = indentation(text, entry.start).strip_prefix(outside)?;
        Some(unit).filter(|unit| !unit.is_empty())
    });
    lines.or_else(|| match &node.shape {
        Shape::Scalar(_) => None,
        Shape::List(items) => items.iter().find_map(|item| unit(text, item)),
        Shape::Object(members) => members.iter().find_map(|member| unit(text, &member.node)),
    })
}

fn is_minified(text: &str, root: &Node) -> bool {
    let first = match &root.shape {
        Shape::Object(members) => members.first(),
        _ => None,
    };
    first.is_some_and(|member| {
        let between = &text[member.name_at.end..member.node.at.start];
        between == ":"
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Node, Fault> {
        let start = self.at;
        let shape = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Shape::Scalar(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => Shape::Scalar(self.number()?),
            _ => Shape::Scalar(self.word()?),
        };
        Ok(Node::flow(start..self.at, shape))
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Shape, Fault>) -> Result<Shape, Fault> {
        if self.depth == DEEPEST {
            return Err(self.fault(format!(
                "lists and objects lie inside one another more than {DEEPEST} times"
            )));
        }
        self.depth += 1;
        let shape = read(self)?;
        self.depth -= 1;
        Ok(shape)
    }

    fn object(&mut self) -> Result<Shape, Fault> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            let start = self.at;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') => {}
                _ => return Err(self.fault("expected a key in double quotes or `}`")),
            }
            let name = self.string()?;
            let name_at = start..self.at;
            self.skip()?;
            if !self.takes(b':') {
                return Err(self.fault("expected `:`"));
            }
            self.skip()?;
            let node = self.value()?;
            members.push(Member {
                name,
                name_at,
                node,
            });
            self.skip()?;
            if !self.takes(b',') {
                break;
            }
        }
        if self.takes(b'}') {
            Ok(Shape::Object(members))
        } else {
            Err(self.fault("expected `,` or `}`"))
        }
    }

    fn list(&mut self) -> Result<Shape, Fault> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.peek() == Some(b']') {
                break;
            }
            items.push(self.value()?);
            self.skip()?;
            if !self.takes(b',') {
                break;
            }
        }
        if self.takes(b']') {
            Ok(Shape::List(items))
        } else {
            Err(self.fault("expected `,` or `]`"))
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let start = self.at;
        let mut string = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .find(|it| matches!(it, '"' | '\\' | '\0'..='\u{1f}'))
                .unwrap_or(rest.len());
            string += &rest[..plain];
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                Some(b'\n' | b'\r') | None => {
                    return Err(Fault::new(start, "this text has no closing `\"`"));
                }
                Some(_) => return Err(self.fault("expected no control character in a text")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let escaped = match self.text.as_bytes().get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.fault("expected an escape that JSON knows")),
        };
        self.at += 2;
        Ok(escaped)
    }

    fn unicode_escape(&mut self) -> Result<char, Fault> {
        let Some(first) = self.unit() else {
            return Err(self.fault("expected four hexadecimal digits after `\\u`"));
        };
        self.at += 6;
        let second = match first {
            0xd800..0xdc00 => self.unit(),
            _ => None,
        };
        let units = [first, second.unwrap_or_default()];
        let pair = char::decode_utf16(units).next().and_then(Result::ok);
        if second.is_some() && pair.is_some() {
            self.at += 6;
        }
        let one = || char::decode_utf16([first]).next().and_then(Result::ok);
        Ok(pair.or_else(one).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Returns the code of the `\u…` that comes next.
    fn unit(&self) -> Option<u16> {
        let digits = self.text[self.at..].strip_prefix("\\u")?.get(..4)?;
        let right = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        right.then(|| u16::from_str_radix(digits, 16).ok())?
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        self.takes(b'-');
        if !self.takes(b'0') {
            self.digits()?;
        }
        if self.takes(b'.') {
            self.digits()?;
        }
        if self.takes(b'e') || self.takes(b'E') {
            let _ = self.takes(b'-') || self.takes(b'+');
            self.digits()?;
        }
        let number = &self.text[start..self.at];
        // A number too large for anybody is left as text; it is none of ours.
        Ok(decimal(number).map_or_else(|| Value::from(number), Value::Number))
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.fault("expected a digit"));
        }
        Ok(())
    }

    fn word(&mut self) -> Result<Value, Fault> {
        let rest = &self.text[self.at..];
        let end = rest.find(|it: char| !it.is_alphanumeric());
        let word = &rest[..end.unwrap_or(rest.len())];
        let value = match word {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => return Err(self.fault("expected a value")),
        };
        self.at += word.len();
        Ok(value)
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), Fault> {
        loop {
            let rest = &self.text[self.at..];
            self.at = self.text.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            match comment(self.text, self.at) {
                Some(end) => self.at = end,
                None if self.text[self.at..].starts_with("/*") => {
                    return Err(self.fault("this comment has no closing `*/`"));
                }
                None => return Ok(()),
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let takes = self.peek() == Some(byte);
        self.at += usize::from(takes);
        takes
    }

    fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::new(self.at, reason)
    }
}
