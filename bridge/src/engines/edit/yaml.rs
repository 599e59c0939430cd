//! YAML, where lines and indentation hold lists and objects together.
//!
//! What is changed has to be written like that, so that the lines of others can stay as they are.

mod read;

pub(super) use read::read;

use super::{
    Fault, Splice, Step,
    text::{
        break_before, is_blank, line_end, line_start, newline, next_line, quoted, scalar,
        starts_line,
    },
    tree::{self, Node, Shape, Way},
};
use serde_json::Value;
use std::ops::Range;

const IN_BRACKETS: &str = "this stands in brackets and can't be edited; write it in block style, with an entry on each line";
const CROWDED: &str =
    "this shares its line with something else; write each entry on a line of its own";

pub(super) fn set(text: &str, way: &Way<'_, '_>, value: &Value) -> Result<Vec<Splice>, Fault> {
    let style = Style::of(text, way.root());
    let end = way.end();
    if way.is_complete() || end.is_null() || (end.is_flow && end.is_empty()) {
        return style.replace(way, &tree::nested(way.rest, value));
    }
    refuse_brackets(way.nodes())?;

    let (step, rest) = way.rest.split_first().expect("the way is not complete");
    let value = tree::nested(rest, value);
    let (last, lines) = match (&end.shape, step) {
        (Shape::Object(members), Step::Key(key)) => {
            let last = members.last().ok_or_else(|| crowded(end))?;
            let indentation = spaces(text, members[0].name_at.start);
            let value = style.after_key(&value, &indentation);
            (last.at(), format!("{indentation}{}:{value}", plain(key)))
        }
        (Shape::List(items), Step::Element { .. }) => {
            let last = items.last().ok_or_else(|| crowded(end))?;
            let dash = dash(text, items[0].at.start).ok_or_else(|| crowded(end))?;
            let indentation = spaces(text, dash);
            let gap = match &text[dash + 1..items[0].at.start] {
                gap if gap.contains('\n') => " ",
                gap => gap,
            };
            let item = tree::element(*step, value);
            (last.at.clone(), style.item(&item, &indentation, gap))
        }
        _ => return Err(crowded(end)),
    };
    let at = end_with_comments(
        text,
        last_line_end(text, &last),
        lines.len() - lines.trim_start().len(),
    );
    let added = format!("{}{lines}", style.newline);
    Ok(vec![Splice::new(at..at, added)])
}

pub(super) fn remove(text: &str, way: &Way<'_, '_>) -> Result<Vec<Splice>, Fault> {
    let Some((up, (parent, index))) = way.up().zip(way.parent()) else {
        return Ok(Vec::new());
    };
    refuse_brackets(up.nodes())?;
    let (start, nothing) = match &parent.shape {
        Shape::List(items) => {
            let dash = dash(text, items[index].at.start).ok_or_else(|| crowded(parent))?;
            (dash, "[]")
        }
        Shape::Object(members) => (members[index].name_at.start, "{}"),
        Shape::Scalar(_) => return Err(crowded(parent)),
    };
    let entries = parent.entries();
    let end = last_line_end(text, &entries[index]);
    let has_line = starts_line(text, start);

    if entries.len() == 1 {
        let Some(colon) = colon_of(text, &up) else {
            // The file as a whole, or an entry of a list, has no key that the brackets could follow.
            return Ok(vec![Splice::new(start..end, nothing)]);
        };
        let mut splices = vec![Splice::new(colon..colon, format!(" {nothing}"))];
        if !has_line {
            return Err(crowded(parent));
        }
        splices.push(Splice::new(whole_lines(text, start, end), ""));
        return Ok(splices);
    }
    if has_line {
        return Ok(vec![Splice::new(whole_lines(text, start, end), "")]);
    }
    // The first member of an object in a list stands beside the dash, and so has the next one to.
    match entries.get(index + 1) {
        Some(next) if is_blank(&text[end..next.start]) => {
            Ok(vec![Splice::new(start..next.start, "")])
        }
        _ => Err(crowded(parent)),
    }
}

fn crowded(node: &Node) -> Fault {
    Fault::new(node.at.start, CROWDED)
}

fn refuse_brackets<'t>(nodes: impl Iterator<Item = &'t Node>) -> Result<(), Fault> {
    let mut nodes = nodes.filter(|node| node.is_flow);
    match nodes.next() {
        Some(node) => Err(Fault::new(node.at.start, IN_BRACKETS)),
        None => Ok(()),
    }
}

/// Returns the spaces that bring a line to the column of this byte.
fn spaces(text: &str, at: usize) -> String {
    let before = &text[line_start(text, at)..at];
    if is_blank(before) {
        before.to_owned()
    } else {
        " ".repeat(before.chars().count())
    }
}

/// Returns where the dash of an item is that begins at this byte.
fn dash(text: &str, item: usize) -> Option<usize> {
    let before = text[..item].trim_end_matches([' ', '\t', '\r', '\n']);
    before.ends_with('-').then(|| before.len() - 1)
}

/// Returns where the last line of an entry ends, before its line break.
fn last_line_end(text: &str, entry: &Range<usize>) -> usize {
    // A text that keeps its line breaks ends after the last of them.
    match break_before(text, entry.end) {
        Some(end) if end >= entry.start => end,
        _ => line_end(text, entry.end),
    }
}

/// Returns where the last of the comments below a line ends that are indented by more than `column`, and so belong to
/// what is above them.
fn end_with_comments(text: &str, line_end: usize, column: usize) -> usize {
    let mut end = line_end;
    loop {
        let start = next_line(text, end);
        let indentation = text[start..].len() - text[start..].trim_start_matches(' ').len();
        if indentation <= column || !text[start + indentation..].starts_with('#') {
            return end;
        }
        end = self::line_end(text, start);
    }
}

/// Returns these lines with one of the line breaks around them.
fn whole_lines(text: &str, start: usize, end: usize) -> Range<usize> {
    match break_before(text, line_start(text, start)) {
        Some(line_break) => line_break..end,
        None => 0..next_line(text, end),
    }
}

/// Returns where the colon behind the key of the last value ends.
fn colon_of(text: &str, way: &Way<'_, '_>) -> Option<usize> {
    let (parent, index) = way.parent()?;
    match &parent.shape {
        Shape::Object(members) => colon(text, members[index].name_at.end),
        _ => None,
    }
}

fn colon(text: &str, name_end: usize) -> Option<usize> {
    let rest = text[name_end..].trim_start_matches([' ', '\t']);
    rest.starts_with(':').then(|| text.len() - rest.len() + 1)
}

/// How the file is written.
struct Style<'t> {
    text: &'t str,
    /// What a line has more than the line of its parent.
    unit: String,
    /// What the dash of an item has more than the key of the list.
    list_unit: String,
    newline: &'static str,
}

impl<'t> Style<'t> {
    fn of(text: &'t str, root: &Node) -> Self {
        let unit = unit(text, root, &|node| match &node.shape {
            Shape::Object(members) => members.first().map(|member| member.name_at.start),
            _ => None,
        });
        let list_unit = self::unit(text, root, &|node| match &node.shape {
            Shape::List(items) => items.first().and_then(|item| dash(text, item.at.start)),
            _ => None,
        });
        let unit = unit
            .filter(|unit| !unit.is_empty())
            .unwrap_or_else(|| "  ".to_owned());
        Self {
            text,
            list_unit: list_unit.unwrap_or_else(|| unit.clone()),
            unit,
            newline: newline(text),
        }
    }

    /// Puts a value in the place of the last one on the way.
    fn replace(&self, way: &Way<'_, '_>, value: &Value) -> Result<Vec<Splice>, Fault> {
        let text = self.text;
        let old = way.end();
        let Some((parent, index)) = way.parent() else {
            let lines = self.lines(value, "");
            if old.at.is_empty() {
                return Ok(vec![self.first_value(&lines)]);
            }
            return Ok(vec![Splice::new(old.at.clone(), lines)]);
        };
        let up = way.up().into_iter();
        refuse_brackets(up.flat_map(|up| up.nodes().collect::<Vec<_>>()))?;
        let member = match &parent.shape {
            Shape::Object(members) => &members[index],
            _ if old.at.is_empty() => return Err(crowded(old)),
            _ => {
                let item = self.lines(value, &spaces(text, old.at.start));
                return Ok(vec![Splice::new(old.at.clone(), item.trim_start())]);
            }
        };
        let colon = colon(text, member.name_at.end).ok_or_else(|| crowded(parent))?;
        let indentation = spaces(text, member.name_at.start);
        let new = self.after_key(value, &indentation);
        let has_lines = new.starts_with(self.newline);
        let end = old.at.end.max(colon);
        if has_lines && !text[colon..end].contains('\n') {
            // A comment behind the key stays there.
            let line_end = line_end(text, end);
            return Ok(vec![
                Splice::new(colon..end, ""),
                Splice::new(line_end..line_end, new),
            ]);
        }
        if has_lines
            && old.is_empty()
            && starts_line(text, old.at.start)
            && let Some(line_break) = break_before(text, line_start(text, old.at.start))
        {
            return Ok(vec![Splice::new(line_break..old.at.end, new)]);
        }
        let kept_break = &text[text[..end].trim_end_matches(['\r', '\n']).len()..end];
        Ok(vec![Splice::new(colon..end, format!("{new}{kept_break}"))])
    }

    /// Writes into a file that has nothing, or nothing but comments.
    fn first_value(&self, lines: &str) -> Splice {
        let Self { text, newline, .. } = self;
        let end = text.len();
        if is_blank(text) {
            Splice::new(0..end, format!("{lines}{newline}"))
        } else if text.ends_with('\n') {
            Splice::new(end..end, format!("{lines}{newline}"))
        } else {
            Splice::new(end..end, format!("{newline}{lines}"))
        }
    }

    /// Writes what follows on a key and its colon.
    fn after_key(&self, value: &Value, indentation: &str) -> String {
        let unit = match value {
            Value::Array(items) if !items.is_empty() => &self.list_unit,
            Value::Object(members) if !members.is_empty() => &self.unit,
            _ => return format!(" {}", self.lines(value, "")),
        };
        let inside = format!("{indentation}{unit}");
        format!("{}{}", self.newline, self.lines(value, &inside))
    }

    /// Writes a value on lines of its own, the last without a line break.
    fn lines(&self, value: &Value, indentation: &str) -> String {
        let lines: Vec<String> = match value {
            Value::Object(members) if members.is_empty() => vec!["{}".to_owned()],
            Value::Array(items) if items.is_empty() => vec!["[]".to_owned()],
            Value::Object(members) => members
                .iter()
                .map(|(key, value)| {
                    let value = self.after_key(value, indentation);
                    format!("{indentation}{}:{value}", plain(key))
                })
                .collect(),
            Value::Array(items) => items
                .iter()
                .map(|item| self.item(item, indentation, " "))
                .collect(),
            Value::String(text) => vec![plain(text)],
            _ => vec![scalar(value).expect("lists and objects are written above")],
        };
        lines.join(self.newline)
    }

    fn item(&self, item: &Value, indentation: &str, gap: &str) -> String {
        let inside = format!("{indentation} {gap}");
        let lines = self.lines(item, &inside);
        format!("{indentation}-{gap}{}", lines.trim_start_matches(' '))
    }
}

/// Returns what the first line of some child has more than the line of its key.
fn unit(text: &str, node: &Node, first_of: &dyn Fn(&Node) -> Option<usize>) -> Option<String> {
    match &node.shape {
        Shape::Scalar(_) => None,
        Shape::List(items) => items.iter().find_map(|item| unit(text, item, first_of)),
        Shape::Object(members) => members.iter().find_map(|member| {
            let own = || {
                let first = Some(&member.node)
                    .filter(|node| !node.is_flow)
                    .and_then(first_of)?;
                let inside = starts_line(text, first).then(|| spaces(text, first))?;
                let unit = inside.strip_prefix(&spaces(text, member.name_at.start))?;
                Some(unit.to_owned())
            };
            own().or_else(|| unit(text, &member.node, first_of))
        }),
    }
}

/// Returns a text without quotes if nobody can take it for anything else.
fn plain(text: &str) -> String {
    const WORDS: [&str; 11] = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf",
    ];
    let starts_well =
        text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '/' || it == '_');
    let is_harmless = |it: char| it.is_ascii_alphanumeric() || " _-./:@+=,%&?".contains(it);
    let is_plain = starts_well
        && text.chars().all(is_harmless)
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        text.to_owned()
    } else {
        quoted(text)
    }
}
