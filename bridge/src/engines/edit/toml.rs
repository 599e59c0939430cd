//! TOML, in which a table may be written as lines below its header, as dotted keys or in braces.

use super::{
    Fault, Splice, Step,
    flow::{Arrangement, Flow},
    text::{
        break_before, indentation, is_blank, line_end, line_start, newline, next_line, quoted,
        scalar,
    },
    tree::{self, Member, Node, Shape, Way},
};
use serde_json::{Map, Value};
use std::{fmt::Write as _, ops::Range};
use toml_edit::{Document, InlineTable, Item, Key, Table, TableLike};

const IS_A_TABLE: &str = "this is a table with lines of its own; only a table can take its place";
const IS_DOTTED: &str = "a dotted key in braces can't be edited; write braces in the braces";

/// Reads a file.
pub(super) fn read(text: &str) -> Result<Node, Fault> {
    Ok(table(document(text)?.as_table(), 0..0))
}

pub(super) fn set(text: &str, way: &Way<'_, '_>, value: &Value) -> Result<Vec<Splice>, Fault> {
    let lines = Lines::of(text)?;
    let end = way.end();
    let place = place(way);
    if way.is_complete() {
        return if end.is_flow {
            let value = inline(value).map_err(|reason| Fault::new(end.at.start, reason))?;
            Ok(vec![Splice::new(end.at.clone(), value)])
        } else {
            lines.rewrite(&place, end, value)
        };
    }
    let refused = |reason| Fault::new(end.at.start, reason);
    if end.is_flow {
        let (step, rest) = way.rest.split_first().expect("the way is not complete");
        let value = tree::nested(rest, value);
        let entry = match step {
            Step::Key(key) => format!("{} = {}", bare(key), inline(&value).map_err(refused)?),
            Step::Element { .. } => inline(&tree::element(*step, value)).map_err(refused)?,
        };
        let padding = match step {
            Step::Key(_) => " ",
            Step::Element { .. } => "",
        };
        Ok(flow(text, end).add(&entry, &Arrangement::Line { padding }))
    } else {
        lines.add(&place, way.rest, value).map_err(refused)
    }
}

pub(super) fn remove(text: &str, way: &Way<'_, '_>) -> Result<Vec<Splice>, Fault> {
    match way.parent() {
        Some((parent, index)) if parent.is_flow => {
            let at = parent.entries()[index].start;
            let flow = flow(text, parent);
            let index = flow.entries.iter().position(|entry| entry.start == at);
            Ok(index.map_or_else(Vec::new, |index| flow.remove(index)))
        }
        _ => {
            let lines = Lines::of(text)?;
            Ok(lines.remove(&lines.owned(&place(way))))
        }
    }
}

fn document(text: &str) -> Result<Document<&str>, Fault> {
    Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Fault::new(at, error.message())
    })
}

fn flow<'t>(text: &'t str, node: &Node) -> Flow<'t> {
    Flow::of(text, node, comment, ", ")
}

/// Returns where the comment that begins here ends.
fn comment(text: &str, at: usize) -> Option<usize> {
    text[at..].starts_with('#').then(|| line_end(text, at))
}

fn table(table: &Table, at: Range<usize>) -> Node {
    Node::block(table.span().unwrap_or(at), members(table))
}

fn members(table: &dyn TableLike) -> Shape {
    let members = table.iter().filter_map(|(name, item)| {
        let name_at = table.key(name).and_then(Key::span).unwrap_or_default();
        let node = match item {
            Item::None => return None,
            Item::Value(value) => flow_node(value, name_at.clone()),
            Item::Table(it) => self::table(it, name_at.clone()),
            Item::ArrayOfTables(tables) => {
                let items = tables.iter().map(|it| self::table(it, name_at.clone()));
                let at = tables.span().unwrap_or_else(|| name_at.clone());
                Node::block(at, Shape::List(items.collect()))
            }
        };
        Some(Member {
            name: name.to_owned(),
            name_at,
            node,
        })
    });
    Shape::Object(members.collect())
}

fn flow_node(value: &toml_edit::Value, name_at: Range<usize>) -> Node {
    let at = value.span().unwrap_or(name_at);
    let text = |text: String| Shape::Scalar(Value::String(text));
    let shape = match value {
        toml_edit::Value::String(value) => text(value.value().clone()),
        toml_edit::Value::Integer(value) => Shape::Scalar(Value::from(*value.value())),
        toml_edit::Value::Float(value) => match *value.value() {
            value if value.is_finite() => Shape::Scalar(Value::from(value)),
            value => text(value.to_string()),
        },
        toml_edit::Value::Boolean(value) => Shape::Scalar(Value::from(*value.value())),
        toml_edit::Value::Datetime(value) => text(value.value().to_string()),
        toml_edit::Value::Array(items) => {
            let items = items.iter().map(|item| flow_node(item, at.clone()));
            Shape::List(items.collect())
        }
        toml_edit::Value::InlineTable(table) => return inline_table(table, at),
    };
    Node::flow(at, shape)
}

fn inline_table(table: &InlineTable, at: Range<usize>) -> Node {
    let mut node = Node::flow(at, members(table));
    if table.is_dotted() {
        node.obstacle = Some(IS_DOTTED);
        // It stands from its first key to its last value.
        let ends = node.entries().into_iter().map(|entry| entry.end).max();
        node.at.end = ends.unwrap_or(node.at.end);
    }
    node
}

/// A key, or the number of a table among those with the same header.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Key(String),
    Index(usize),
}

/// Returns the way as it is counted in headers.
fn place(way: &Way<'_, '_>) -> Vec<Part> {
    let parents = way.nodes().zip(way.nodes().skip(1));
    parents
        .map(|(parent, child)| {
            let same = |node: &Node| std::ptr::eq(node, child);
            match &parent.shape {
                Shape::Object(members) => members
                    .iter()
                    .find(|member| same(&member.node))
                    .map(|member| Part::Key(member.name.clone())),
                Shape::List(items) => items.iter().position(same).map(Part::Index),
                Shape::Scalar(_) => None,
            }
            .expect("a value on the way is an entry of the one before it")
        })
        .collect()
}

/// A header, or a key with its value.
struct Line {
    /// From the root; that of a key begins with that of its header.
    place: Vec<Part>,
    /// How much of the place is its header's.
    header: usize,
    is_header: bool,
    /// With the line break.
    at: Range<usize>,
}

/// The file as headers and keys, without comments and blank lines.
struct Lines<'t> {
    text: &'t str,
    lines: Vec<Line>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Result<Self, Fault> {
        let document = document(text)?;
        let mut lines = Self {
            text,
            lines: Vec::new(),
        };
        lines.collect(document.as_table(), &[], 0);
        lines.lines.sort_by_key(|line| line.at.start);
        Ok(lines)
    }

    fn collect(&mut self, table: &Table, place: &[Part], header: usize) {
        for (name, item) in table {
            let place = [place, &[Part::Key(name.to_owned())]].concat();
            match item {
                Item::None => {}
                Item::Value(value) => {
                    let key = table.key(name).and_then(Key::span);
                    if let (Some(key), Some(value)) = (key, value.span()) {
                        self.push(place, header, false, &(key.start..value.end));
                    }
                }
                Item::Table(table) => self.table(table, place, header),
                Item::ArrayOfTables(tables) => {
                    for (index, table) in tables.iter().enumerate() {
                        let place = [place.as_slice(), &[Part::Index(index)]].concat();
                        self.table(table, place, header);
                    }
                }
            }
        }
    }

    fn table(&mut self, table: &Table, place: Vec<Part>, header: usize) {
        let header = if table.is_dotted() {
            header
        } else {
            place.len()
        };
        self.collect(table, &place, header);
        if !table.is_implicit()
            && !table.is_dotted()
            && let Some(at) = table.span()
        {
            self.push(place, header, true, &at);
        }
    }

    fn push(&mut self, place: Vec<Part>, header: usize, is_header: bool, at: &Range<usize>) {
        let at = line_start(self.text, at.start)..next_line(self.text, at.end);
        self.lines.push(Line {
            place,
            header,
            is_header,
            at,
        });
    }

    /// Returns which lines say something at this place or below it.
    fn owned(&self, place: &[Part]) -> Vec<usize> {
        let lines = self.lines.iter().enumerate();
        lines
            .filter(|(_, line)| line.place.starts_with(place))
            .map(|(index, _)| index)
            .collect()
    }

    fn remove(&self, owned: &[usize]) -> Vec<Splice> {
        let runs = owned.chunk_by(|left, right| left + 1 == *right);
        runs.map(|run| {
            let (first, last) = (&self.lines[run[0]], &self.lines[run[run.len() - 1]]);
            let mut start = first.at.start;
            if first.is_header
                && let Some(above) =
                    break_before(self.text, start).map(|at| line_start(self.text, at))
                && is_blank(&self.text[above..start])
            {
                start = above;
            }
            let mut end = last.at.end;
            let below = next_line(self.text, end);
            if start == 0 && is_blank(&self.text[end..below]) {
                // A file doesn't begin with a blank line.
                end = below;
            }
            if end == self.text.len() && !self.text.ends_with('\n') {
                start = break_before(self.text, start).unwrap_or(start);
            }
            Splice::new(start..end, "")
        })
        .collect()
    }

    /// Writes a table that has lines of its own anew, where its first line is.
    fn rewrite(&self, place: &[Part], node: &Node, value: &Value) -> Result<Vec<Splice>, Fault> {
        let refused = |reason| Fault::new(node.at.start, reason);
        let owned = self.owned(place);
        let (Value::Object(members), Some(first)) = (value, owned.first()) else {
            return Err(refused(IS_A_TABLE));
        };
        let first = &self.lines[*first];
        let lines = if first.header >= place.len() {
            self.section(place, members)
        } else {
            let indentation = indentation(self.text, first.at.start);
            self.dotted(&place[first.header..], members, indentation)
        };
        let mut lines = lines.map_err(refused)?;
        let mut splices: Vec<Splice> = owned
            .chunk_by(|left, right| left + 1 == *right)
            .map(|run| {
                let start = self.lines[run[0]].at.start;
                let end = self.lines[run[run.len() - 1]].at.end;
                Splice::new(start..end, "")
            })
            .collect();
        if splices[0].range.end == self.text.len() && !self.text.ends_with('\n') {
            lines.truncate(lines.trim_end().len());
        }
        splices[0].text = lines;
        Ok(splices)
    }

    /// Adds what isn't there yet below a table that has lines of its own, or below the whole file.
    fn add(
        &self,
        place: &[Part],
        rest: &[Step<'_>],
        value: &Value,
    ) -> Result<Vec<Splice>, &'static str> {
        let siblings = self.owned(place);
        let mut siblings = siblings.iter().rev().map(|index| &self.lines[*index]);
        let sibling = siblings.clone().next();
        let is_table = value.is_object() || rest.len() > 1;
        let is_dotted = |it: &&Line| it.header < place.len();
        let dotted = if is_table {
            sibling.filter(is_dotted)
        } else {
            siblings.find(is_dotted)
        };
        if let Some(sibling) = dotted {
            let mut names = place[sibling.header..].to_vec();
            let (names, members) = below(&mut names, rest, value);
            let indentation = indentation(self.text, sibling.at.start);
            let lines = self.dotted(names, &members, indentation)?;
            return Ok(vec![self.insert(sibling.at.end, &lines)]);
        }

        let named = rest
            .iter()
            .position(|step| matches!(step, Step::Element { .. }));
        if named.is_none() && rest.len() == 1 && !value.is_object() {
            let (Step::Key(key) | Step::Element { name: key, .. }) = rest[0];
            return self.add_key(place, key, value);
        }
        let mut place = place.to_vec();
        let sibling_end = sibling.map_or_else(|| self.end(), |sibling| sibling.at.end);
        let at = if place.is_empty() {
            self.end()
        } else {
            sibling_end
        };
        let lines = if let Some(named) = named {
            place.extend(rest[..named].iter().map(part));
            // Which of the tables it becomes makes no difference to its header.
            place.push(Part::Index(0));
            let object = tree::element(rest[named], tree::nested(&rest[named + 1..], value));
            self.section(&place, object.as_object().ok_or(IS_A_TABLE)?)?
        } else {
            let (place, members) = below(&mut place, rest, value);
            self.section(place, &members)?
        };
        Ok(vec![self.insert_section(at, &lines)])
    }

    /// Adds a key to a table that may have no header yet.
    fn add_key(
        &self,
        place: &[Part],
        key: &str,
        value: &Value,
    ) -> Result<Vec<Splice>, &'static str> {
        let own = |line: &&Line| {
            let is_own_header = line.is_header && line.place == place;
            is_own_header
                || (!line.is_header && line.header == place.len() && line.place.starts_with(place))
        };
        let line = format!("{} = {}{}", bare(key), inline(value)?, self.newline());
        match self.lines.iter().rev().find(own) {
            Some(last) => {
                let indentation = if last.is_header {
                    ""
                } else {
                    indentation(self.text, last.at.start)
                };
                Ok(vec![
                    self.insert(last.at.end, &format!("{indentation}{line}")),
                ])
            }
            None if place.is_empty() && self.lines.is_empty() => {
                Ok(vec![self.insert(self.end(), &line)])
            }
            None if place.is_empty() => Ok(vec![Splice::new(0..0, line)]),
            None => {
                let members = Map::from_iter([(key.to_owned(), value.clone())]);
                let last = self
                    .owned(place)
                    .last()
                    .map(|last| self.lines[*last].at.end);
                let lines = self.section(place, &members)?;
                Ok(vec![self.insert_section(
                    last.unwrap_or_else(|| self.end()),
                    &lines,
                )])
            }
        }
    }

    /// Returns where the last line ends that isn't blank.
    fn end(&self) -> usize {
        let kept = self.text.trim_end_matches([' ', '\t', '\r', '\n']).len();
        if kept == 0 {
            0
        } else {
            next_line(self.text, kept)
        }
    }

    /// Inserts lines, where a line ends.
    fn insert(&self, at: usize, lines: &str) -> Splice {
        if at == 0 && is_blank(self.text) {
            return Splice::new(0..self.text.len(), lines);
        }
        if at == self.text.len() && !self.text.ends_with('\n') {
            let lines = lines.strip_suffix(self.newline()).unwrap_or(lines);
            return Splice::new(at..at, format!("{}{lines}", self.newline()));
        }
        Splice::new(at..at, lines)
    }

    /// Inserts lines with a blank line before them, unless the file begins with them.
    fn insert_section(&self, at: usize, lines: &str) -> Splice {
        if at == 0 {
            self.insert(at, lines)
        } else {
            self.insert(at, &format!("{}{lines}", self.newline()))
        }
    }

    fn section(
        &self,
        place: &[Part],
        members: &Map<String, Value>,
    ) -> Result<String, &'static str> {
        let newline = self.newline();
        let table = dotted(place);
        let mut lines = match place.last() {
            Some(Part::Index(_)) => format!("[[{table}]]{newline}"),
            _ => format!("[{table}]{newline}"),
        };
        for (key, value) in members {
            write!(lines, "{} = {}{newline}", bare(key), inline(value)?)
                .expect("a text takes what is written to it");
        }
        Ok(lines)
    }

    fn dotted(
        &self,
        names: &[Part],
        members: &Map<String, Value>,
        indentation: &str,
    ) -> Result<String, &'static str> {
        let newline = self.newline();
        let table = dotted(names);
        if members.is_empty() {
            return Ok(format!("{indentation}{table} = {{}}{newline}"));
        }
        members
            .iter()
            .map(|(key, value)| {
                let value = inline(value)?;
                Ok(format!(
                    "{indentation}{table}.{} = {value}{newline}",
                    bare(key)
                ))
            })
            .collect()
    }

    fn newline(&self) -> &'static str {
        newline(self.text)
    }
}

fn part(step: &Step<'_>) -> Part {
    let (Step::Key(name) | Step::Element { name, .. }) = step;
    Part::Key((*name).to_owned())
}

/// Returns the place and the members of the table that says the value at the end of the steps.
fn below<'p>(
    place: &'p mut Vec<Part>,
    steps: &[Step<'_>],
    value: &Value,
) -> (&'p [Part], Map<String, Value>) {
    let keys = steps
        .iter()
        .take_while(|step| matches!(step, Step::Key(_)))
        .count();
    if keys == steps.len()
        && let Value::Object(members) = value
    {
        place.extend(steps.iter().map(part));
        return (place, members.clone());
    }
    let keys = keys.min(steps.len() - 1);
    place.extend(steps[..keys].iter().map(part));
    let members = match tree::nested(&steps[keys..], value) {
        Value::Object(members) => members,
        list => {
            // The list belongs to the last key.
            let key = place.pop();
            let key = key.and_then(|part| match part {
                Part::Key(key) => Some(key),
                Part::Index(_) => None,
            });
            Map::from_iter(key.map(|key| (key, list)))
        }
    };
    (place, members)
}

fn dotted(place: &[Part]) -> String {
    let keys = place.iter().filter_map(|part| match part {
        Part::Key(key) => Some(bare(key)),
        // A header means the last of the tables with the same name.
        Part::Index(_) => None,
    });
    keys.collect::<Vec<_>>().join(".")
}

/// Returns a key, in quotes only where it needs them.
fn bare(key: &str) -> String {
    let is_bare = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// Writes a value on one line.
fn inline(value: &Value) -> Result<String, &'static str> {
    match value {
        Value::Null => Err("TOML has no `null`"),
        Value::Number(number) if number.as_u64().is_some_and(|it| i64::try_from(it).is_err()) => {
            Err("TOML has no integers as large as this value has")
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect::<Result<_, _>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        Value::Object(members) if members.is_empty() => Ok("{}".to_owned()),
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| Ok(format!("{} = {}", bare(key), inline(value)?)))
                .collect::<Result<_, &str>>()?;
            Ok(format!("{{ {} }}", members.join(", ")))
        }
        _ => Ok(scalar(value).expect("lists and objects are written above")),
    }
}
