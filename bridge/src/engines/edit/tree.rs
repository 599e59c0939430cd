//! What a file says, where it says it, and the way to a place in it.

use super::{Fault, Step};
use serde_json::{Map, Value};
use std::ops::Range;

/// How many lists and objects may lie inside one another.
pub(super) const DEEPEST: usize = 128;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: Range<usize>,
    pub(super) shape: Shape,
    /// Whether it stands in brackets, or is a scalar; otherwise lines and indentation hold it together.
    pub(super) is_flow: bool,
    /// Why no way leads to it or through it.
    pub(super) obstacle: Option<&'static str>,
}

#[derive(Debug)]
pub(super) enum Shape {
    Scalar(Value),
    List(Vec<Node>),
    Object(Vec<Member>),
}

/// A key of an object and its value.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) name_at: Range<usize>,
    pub(super) node: Node,
}

impl Node {
    pub(super) fn flow(at: Range<usize>, shape: Shape) -> Self {
        Self {
            at,
            shape,
            is_flow: true,
            obstacle: None,
        }
    }

    pub(super) fn block(at: Range<usize>, shape: Shape) -> Self {
        Self {
            is_flow: false,
            ..Self::flow(at, shape)
        }
    }

    pub(super) fn value(&self) -> Value {
        match &self.shape {
            Shape::Scalar(value) => value.clone(),
            Shape::List(items) => items.iter().map(Self::value).collect(),
            Shape::Object(members) => members
                .iter()
                .map(|member| (member.name.clone(), member.node.value()))
                .collect(),
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.shape, Shape::Scalar(Value::Null))
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.shape {
            Shape::Scalar(value) => value.is_null(),
            Shape::List(items) => items.is_empty(),
            Shape::Object(members) => members.is_empty(),
        }
    }

    /// Returns where each of its entries begins and ends, with its key.
    pub(super) fn entries(&self) -> Vec<Range<usize>> {
        match &self.shape {
            Shape::Scalar(_) => Vec::new(),
            Shape::List(items) => items.iter().map(|item| item.at.clone()).collect(),
            Shape::Object(members) => members.iter().map(Member::at).collect(),
        }
    }

    fn child(&self, index: usize) -> Option<&Self> {
        match &self.shape {
            Shape::Scalar(_) => None,
            Shape::List(items) => items.get(index),
            Shape::Object(members) => members.get(index).map(|member| &member.node),
        }
    }

    /// Returns which entry a step leads to, if it is there.
    fn find(&self, step: Step<'_>) -> Result<Option<usize>, Fault> {
        let found: Vec<(usize, usize)> = match (&self.shape, step) {
            (Shape::Scalar(Value::Null), _) => return Ok(None),
            (Shape::Object(members), Step::Key(key)) => members
                .iter()
                .enumerate()
                .filter(|(_, member)| member.name == key)
                .map(|(index, member)| (index, member.name_at.start))
                .collect(),
            (Shape::List(items), Step::Element { key, name }) => items
                .iter()
                .enumerate()
                .filter(|(_, item)| item.has_name(key, name))
                .map(|(index, item)| (index, item.at.start))
                .collect(),
            (_, Step::Key(_)) => return Err(Fault::new(self.at.start, "expected an object")),
            (_, Step::Element { .. }) => return Err(Fault::new(self.at.start, "expected a list")),
        };
        match found.as_slice() {
            [] => Ok(None),
            [(index, _)] => Ok(Some(*index)),
            [_, (_, second), ..] => {
                let (Step::Key(name) | Step::Element { name, .. }) = step;
                let name = name.escape_debug();
                Err(Fault::new(*second, format!("`{name}` is there twice")))
            }
        }
    }

    fn has_name(&self, key: &str, name: &str) -> bool {
        let Shape::Object(members) = &self.shape else {
            return false;
        };
        members.iter().any(|member| {
            member.name == key
                && matches!(&member.node.shape, Shape::Scalar(Value::String(it)) if it == name)
        })
    }
}

impl Member {
    pub(super) fn at(&self) -> Range<usize> {
        self.name_at.start..self.node.at.end
    }
}

/// The values along a path, as far as they are there.
#[derive(Debug)]
pub(super) struct Way<'t, 'p> {
    root: &'t Node,
    /// Which entry of the value before each is, and the value itself.
    below: Vec<(usize, &'t Node)>,
    /// The steps that lead nowhere yet.
    pub(super) rest: &'p [Step<'p>],
}

impl<'t, 'p> Way<'t, 'p> {
    pub(super) fn along(root: &'t Node, path: &'p [Step<'p>]) -> Result<Self, Fault> {
        let mut way = Self {
            root,
            below: Vec::new(),
            rest: path,
        };
        loop {
            let end = way.end();
            if let Some(obstacle) = end.obstacle {
                return Err(Fault::new(end.at.start, obstacle));
            }
            let Some((step, rest)) = way.rest.split_first() else {
                return Ok(way);
            };
            let Some(index) = end.find(*step)? else {
                return Ok(way);
            };
            let child = end.child(index).expect("`find` returns an entry");
            way.below.push((index, child));
            way.rest = rest;
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn root(&self) -> &'t Node {
        self.root
    }

    /// Returns the last value that is there.
    pub(super) fn end(&self) -> &'t Node {
        self.below.last().map_or(self.root, |(_, node)| node)
    }

    /// Returns the last value's parent, and which of its entries the value is; `None` for the root.
    pub(super) fn parent(&self) -> Option<(&'t Node, usize)> {
        let (last, before) = self.below.split_last()?;
        let parent = before.last().map_or(self.root, |(_, node)| node);
        Some((parent, last.0))
    }

    /// Returns the way to the last value's parent.
    pub(super) fn up(&self) -> Option<Self> {
        let (_, before) = self.below.split_last()?;
        Some(Self {
            root: self.root,
            below: before.to_vec(),
            rest: &[],
        })
    }

    /// Returns every value on the way, from the root on.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &'t Node> {
        std::iter::once(self.root).chain(self.below.iter().map(|(_, node)| *node))
    }

    /// Returns where the last value begins, with its key.
    pub(super) fn entry(&self) -> Range<usize> {
        match self.parent() {
            Some((parent, index)) => parent.entries()[index].clone(),
            None => self.root.at.clone(),
        }
    }
}

/// Returns the value with the parents that the steps ask for around it.
pub(super) fn nested(steps: &[Step<'_>], value: &Value) -> Value {
    steps
        .iter()
        .rev()
        .fold(value.clone(), |value, step| match step {
            Step::Key(key) => Value::Object(Map::from_iter([((*key).to_owned(), value)])),
            Step::Element { .. } => Value::Array(vec![element(*step, value)]),
        })
}

/// Returns what a list gets for a step: an object that has its name, if the step gives one.
pub(super) fn element(step: Step<'_>, value: Value) -> Value {
    match (step, value) {
        (Step::Element { key, name }, Value::Object(members)) if !members.contains_key(key) => {
            let mut named = Map::from_iter([(key.to_owned(), Value::from(name))]);
            named.extend(members);
            Value::Object(named)
        }
        (_, value) => value,
    }
}

/// Puts a value where the path leads to, and returns `None` if it leads nowhere.
pub(super) fn put(root: &mut Value, path: &[Step<'_>], value: &Value) -> Option<()> {
    let Some((step, rest)) = path.split_first() else {
        *root = value.clone();
        return Some(());
    };
    if root.is_null() {
        *root = nested(path, value);
        return Some(());
    }
    match step {
        Step::Key(key) => {
            let members = root.as_object_mut()?;
            if let Some(member) = members.get_mut(*key) {
                return put(member, rest, value);
            }
            members.insert((*key).to_owned(), nested(rest, value));
        }
        Step::Element { key, name } => {
            let items = root.as_array_mut()?;
            if let Some(item) = items.iter_mut().find(|item| item[*key] == *name) {
                return put(item, rest, value);
            }
            items.push(element(*step, nested(rest, value)));
        }
    }
    Some(())
}

/// Takes out what the path leads to.
pub(super) fn take(root: &mut Value, path: &[Step<'_>]) -> Option<()> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(root, |value, step| match step {
        Step::Key(key) => value.as_object_mut()?.get_mut(*key),
        Step::Element { key, name } => {
            let mut items = value.as_array_mut()?.iter_mut();
            items.find(|item| item[*key] == *name)
        }
    })?;
    match last {
        Step::Key(key) => {
            parent.as_object_mut()?.shift_remove(*key)?;
        }
        Step::Element { key, name } => {
            let items = parent.as_array_mut()?;
            let index = items.iter().position(|item| item[*key] == *name)?;
            items.remove(index);
        }
    }
    Some(())
}

/// Says whether the path leads to a list or an object with nothing in it.
pub(super) fn is_empty(root: &Value, path: &[Step<'_>]) -> bool {
    let end = path.iter().try_fold(root, |value, step| match step {
        Step::Key(key) => value.get(*key),
        Step::Element { key, name } => {
            let mut items = value.as_array()?.iter();
            items.find(|item| item[*key] == *name)
        }
    });
    match end {
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        _ => false,
    }
}
