//! What a text of YAML says, with the place of each value; values are those of the core schema.

use super::super::{
    Fault,
    text::{decimal, line_start},
    tree::{DEEPEST, Member, Node, Shape},
};
use super::colon;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Number, Value};
use std::ops::Range;

const AN_ALIAS: &str = "an alias can't be edited; write what it stands for";
const AN_ANCHOR: &str = "what has an anchor can't be edited, since it is used elsewhere too";
const A_TAG: &str = "what has a tag can't be edited; take the tag out";
const A_MERGE_KEY: &str = "an object with a merge key can't be edited; write its members out";
const A_KEY: &str = "an object with a key that is no text on one line can't be edited";

/// Reads a file; one without a value is `null`.
pub(in super::super) fn read(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader::of(text);
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => reader.take(event, span)?,
            Err(error) => {
                let at = reader.byte(error.marker().index());
                let message = error.info().replace(char::is_control, " ");
                return Err(Fault::new(at, message));
            }
        }
    }
    let end = text.len();
    let nothing = || Node::flow(end..end, Shape::Scalar(Value::Null));
    Ok(reader.document.unwrap_or_else(nothing))
}

/// The tree as far as the events went.
struct Reader<'t> {
    text: &'t str,
    /// Where each character begins, since the parser counts characters; empty where each is a byte.
    bytes: Vec<usize>,
    open: Vec<Open>,
    document: Option<Node>,
}

/// A list or an object whose end is still to come.
struct Open {
    node: Node,
    key: Option<(String, Range<usize>)>,
}

impl<'t> Reader<'t> {
    fn of(text: &'t str) -> Self {
        let bytes = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().map(|(at, _)| at).collect()
        };
        Self {
            text,
            bytes,
            open: Vec::new(),
            document: None,
        }
    }

    fn byte(&self, character: usize) -> usize {
        let end = self.text.len();
        if self.bytes.is_empty() {
            character.min(end)
        } else {
            self.bytes.get(character).copied().unwrap_or(end)
        }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        let at = self.byte(span.start.index())..self.byte(span.end.index());
        match event {
            Event::DocumentStart(_) if self.document.is_some() => {
                Err(Fault::new(at.start, "expected one document, not several"))
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
            Event::Alias(_) => {
                let mut node = Node::flow(at, Shape::Scalar(Value::from("*")));
                node.obstacle = Some(AN_ALIAS);
                self.value(node)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let at = self.scalar_extent(at, style);
                let value = match style {
                    ScalarStyle::Plain => resolve(&text),
                    _ => Value::from(text.as_ref()),
                };
                let is_value = self.takes_value();
                let mut node = Node::flow(at, Shape::Scalar(value));
                node.obstacle = obstacle(anchor, tag.is_some());
                if is_value {
                    self.value(node)
                } else {
                    self.key(&text, style, node);
                    Ok(())
                }
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(at, Shape::List(Vec::new()), obstacle(anchor, tag.is_some()))
            }
            Event::MappingStart(anchor, tag) => self.begin(
                at,
                Shape::Object(Vec::new()),
                obstacle(anchor, tag.is_some()),
            ),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.end(open.node, &at),
                None => Ok(()),
            },
        }
    }

    /// Says whether what comes next is a value, not a key.
    fn takes_value(&self) -> bool {
        self.open
            .last()
            .is_none_or(|open| open.key.is_some() || !matches!(open.node.shape, Shape::Object(_)))
    }

    fn begin(
        &mut self,
        at: Range<usize>,
        shape: Shape,
        obstacle: Option<&'static str>,
    ) -> Result<(), Fault> {
        if self.open.len() == DEEPEST {
            let reason =
                format!("lists and objects lie inside one another more than {DEEPEST} times");
            return Err(Fault::new(at.start, reason));
        }
        let bracket = match shape {
            Shape::List(_) => '[',
            _ => '{',
        };
        let is_inside_flow = self.open.last().is_some_and(|open| open.node.is_flow);
        let is_flow =
            is_inside_flow || self.text[at.start..].starts_with(bracket) && !at.is_empty();
        let node = Node {
            at,
            shape,
            is_flow,
            obstacle,
        };
        self.open.push(Open { node, key: None });
        Ok(())
    }

    fn end(&mut self, mut node: Node, end: &Range<usize>) -> Result<(), Fault> {
        let entries = node.entries();
        if node.is_flow {
            // The parser's end of a bracket may lie behind the comment that follows.
            node.at.end = self.text.len().min(end.start + 1);
        } else if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            // The parser sees the end of a block only where something else begins.
            node.at = first.start..last.end.max(first.start);
        }
        if self.takes_value() {
            self.value(node)
        } else {
            // No step leads to a key that is a list or an object.
            let at = node.at;
            self.obstruct(A_KEY);
            self.begin_member(String::new(), at);
            Ok(())
        }
    }

    fn key(&mut self, text: &str, style: ScalarStyle, node: Node) {
        if node.obstacle.is_some() {
            self.obstruct(node.obstacle.unwrap_or(A_KEY));
        } else if style == ScalarStyle::Plain && text == "<<" {
            self.obstruct(A_MERGE_KEY);
        } else if self.text[node.at.clone()].contains('\n') {
            self.obstruct(A_KEY);
        }
        self.begin_member(text.to_owned(), node.at);
    }

    fn obstruct(&mut self, reason: &'static str) {
        if let Some(open) = self.open.last_mut() {
            open.node.obstacle = open.node.obstacle.or(Some(reason));
        }
    }

    fn begin_member(&mut self, name: String, name_at: Range<usize>) {
        if let Some(open) = self.open.last_mut() {
            open.key = Some((name, name_at));
        }
    }

    fn value(&mut self, mut node: Node) -> Result<(), Fault> {
        let Some(open) = self.open.last_mut() else {
            if self.document.is_some() {
                return Err(Fault::new(
                    node.at.start,
                    "expected one document, not several",
                ));
            }
            self.document = Some(node);
            return Ok(());
        };
        match (&mut open.node.shape, open.key.take()) {
            (Shape::List(items), _) => items.push(node),
            (Shape::Object(members), Some((name, name_at))) => {
                if node.is_null() && node.at.is_empty() {
                    let at = colon(self.text, name_at.end).unwrap_or(name_at.end);
                    node.at = at..at;
                }
                members.push(Member {
                    name,
                    name_at,
                    node,
                });
            }
            (Shape::Object(_) | Shape::Scalar(_), _) => {}
        }
        Ok(())
    }

    /// Returns where a scalar ends, without the lines that only follow on it.
    fn scalar_extent(&self, at: Range<usize>, style: ScalarStyle) -> Range<usize> {
        if !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
            return at;
        }
        let before = self.text[..at.start].trim_end_matches([' ', '\t', '\r', '\n']);
        let header = &before[line_start(before, before.len())..];
        let keeps_breaks = header.contains("|+") || header.contains(">+") || header.ends_with('+');
        let content = &self.text[at.clone()];
        let trimmed = if keeps_breaks {
            content.trim_end_matches([' ', '\t'])
        } else {
            content.trim_end_matches([' ', '\t', '\r', '\n'])
        };
        at.start..at.start + trimmed.len()
    }
}

fn obstacle(anchor: usize, has_tag: bool) -> Option<&'static str> {
    if anchor != 0 {
        Some(AN_ANCHOR)
    } else {
        has_tag.then_some(A_TAG)
    }
}

/// Returns what a text without quotes means, by YAML's core schema.
fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::from(text), Value::Number),
    }
}

/// Returns `None` for what is no number, and for those that JSON doesn't know.
fn number(text: &str) -> Option<Number> {
    let based = |digits: &str, radix| {
        let right = digits.chars().all(|digit| digit.is_digit(radix));
        let number = u64::from_str_radix(digits, radix);
        number.ok().filter(|_| right).map(Number::from)
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return based(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return based(digits, 8);
    }
    if !is_decimal(text.strip_prefix(['-', '+']).unwrap_or(text)) {
        return None;
    }
    decimal(text)
}

/// Rust reads every text of this form, and more, such as `infinity`.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_is_right = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    digits(whole) && digits(fraction) && (whole.len() + fraction.len() > 0) && exponent_is_right
}
