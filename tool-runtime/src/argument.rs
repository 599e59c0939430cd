//! What the model sent: raw JSON, split into arguments and taken into their types without a tree between.

use crate::error::ArgumentError;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

/// A type that the model can send.
#[diagnostic::on_unimplemented(
    message = "the model can't send a `{Self}`",
    label = "not an argument type",
    note = "an argument needs `#[derive(Deserialize, JsonSchema)]`",
    note = "a parameter that the runtime lends is taken by reference: `&{Self}`"
)]
pub trait Argument: DeserializeOwned + JsonSchema {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Argument for T {}

/// What the model sent, completed with the defaults: one piece of raw JSON per argument, in the order of the
/// definition.
#[derive(Debug)]
pub struct Arguments<'a> {
    pub(crate) whole: &'a str,
    pub(crate) each: Slots<'a>,
}

/// Few arguments need no allocation.
const INLINE: usize = 6;

#[derive(Debug)]
pub(crate) enum Slots<'a> {
    Few([Option<&'a str>; INLINE]),
    Many(Vec<Option<&'a str>>),
}

impl<'a> Slots<'a> {
    pub(crate) fn empty(count: usize) -> Self {
        if count <= INLINE {
            Self::Few([None; INLINE])
        } else {
            Self::Many(vec![None; count])
        }
    }

    fn get(&self, index: usize) -> Option<&'a str> {
        self.as_slice().get(index).copied().flatten()
    }

    fn as_slice(&self) -> &[Option<&'a str>] {
        match self {
            Self::Few(slots) => slots,
            Self::Many(slots) => slots,
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [Option<&'a str>] {
        match self {
            Self::Few(slots) => slots,
            Self::Many(slots) => slots,
        }
    }
}

impl<'a> Arguments<'a> {
    /// Splits a JSON object into the arguments of these names; `None` if it is no object or has others.
    ///
    /// The pieces are found, not checked: each is parsed when it is taken.
    pub(crate) fn split<'n>(
        whole: &'a str,
        names: &(impl ExactSizeIterator<Item = &'n str> + Clone),
    ) -> Option<Self> {
        let mut each = Slots::empty(names.len());
        let slots = each.as_mut_slice();
        let mut rest = Scanner(whole.trim_ascii_start());
        rest.skip(b'{')?;
        if rest.skip(b'}').is_none() {
            loop {
                let key = unescaped(rest.text()?)?;
                rest.skip(b':')?;
                let value = rest.value()?;
                let index = names.clone().position(|name| name == key)?;
                slots[index] = Some(value);
                if rest.skip(b',').is_none() {
                    rest.skip(b'}')?;
                    break;
                }
            }
        }
        rest.0.is_empty().then_some(Self { whole, each })
    }

    /// Keeps a JSON object in one piece.
    pub(crate) fn whole(whole: &'a str) -> Self {
        Self {
            whole,
            each: Slots::empty(0),
        }
    }

    /// Returns the JSON object that was sent, without the defaults.
    pub fn json(&self) -> &'a str {
        self.whole
    }
}

/// An argument of this type: how it is described, and how it is taken.
///
/// One function gives both, so that rustc tells only once of a type that is no argument.
#[derive(Debug)]
pub struct Sent<T> {
    /// Describes it.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    parse: fn(&str, Option<&'static str>) -> Result<T, ArgumentError>,
}

/// Speaks of an argument of this type.
pub const fn argument<T: Argument>() -> Sent<T> {
    Sent {
        schema: |generator| generator.subschema_for::<T>(),
        parse: parse::<T>,
    }
}

impl<T> Sent<T> {
    /// Takes one argument; the runtime has put in the default of one that was not sent.
    pub fn take(
        self,
        arguments: &Arguments<'_>,
        index: usize,
        name: &'static str,
    ) -> Result<T, ArgumentError> {
        match arguments.each.get(index) {
            Some(json) => (self.parse)(json, Some(name)),
            None => Err(ArgumentError {
                name: Some(name),
                reason: "missing".to_owned(),
            }),
        }
    }

    /// Takes one argument that may be missing or `null`, which is the same.
    pub fn take_optional(
        self,
        arguments: &Arguments<'_>,
        index: usize,
        name: &'static str,
    ) -> Result<Option<T>, ArgumentError> {
        match arguments.each.get(index) {
            None | Some("null") => Ok(None),
            Some(json) => (self.parse)(json, Some(name)).map(Some),
        }
    }

    /// Takes one argument that may be missing, which is not the same as `null`.
    pub fn take_nullable(
        self,
        arguments: &Arguments<'_>,
        index: usize,
        name: &'static str,
    ) -> Result<Option<T>, ArgumentError> {
        match arguments.each.get(index) {
            None => Ok(None),
            Some(json) => (self.parse)(json, Some(name)).map(Some),
        }
    }

    /// Takes everything as one value.
    pub fn take_whole(self, arguments: &Arguments<'_>) -> Result<T, ArgumentError> {
        (self.parse)(arguments.whole, None)
    }
}

fn parse<T: DeserializeOwned>(json: &str, name: Option<&'static str>) -> Result<T, ArgumentError> {
    serde_json::from_str(json).map_err(|error| {
        let reason = error.to_string();
        // The place is one in a piece that the model never saw.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let reason = reason.strip_suffix(&place).unwrap_or(&reason).to_owned();
        ArgumentError { name, reason }
    })
}

/// What is left of a JSON text, with no white space before it.
struct Scanner<'a>(&'a str);

impl<'a> Scanner<'a> {
    /// Steps over one character, if it comes next.
    fn skip(&mut self, character: u8) -> Option<()> {
        (self.0.as_bytes().first() == Some(&character)).then(|| {
            self.0 = self.0[1..].trim_ascii_start();
        })
    }

    fn take(&mut self, length: usize) -> Option<&'a str> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest.trim_ascii_start();
        Some(taken)
    }

    /// Takes a text, with its quotes.
    fn text(&mut self) -> Option<&'a str> {
        self.take(length_of_text(self.0.as_bytes())?)
    }

    /// Takes a value.
    fn value(&mut self) -> Option<&'a str> {
        let bytes = self.0.as_bytes();
        let length = match bytes.first()? {
            b'"' => length_of_text(bytes)?,
            b'{' | b'[' => length_of_nested(bytes)?,
            _ => bytes
                .iter()
                .position(|it| matches!(it, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))?,
        };
        self.take(length).filter(|it| !it.is_empty())
    }
}

/// The bytes of the text that stands first, its quotes included.
fn length_of_text(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes.strip_prefix(b"\"")?;
    loop {
        match rest.iter().position(|it| matches!(it, b'"' | b'\\'))? {
            at if rest[at] == b'"' => return Some(bytes.len() - rest.len() + at + 1),
            at => rest = rest.get(at + 2..)?,
        }
    }
}

/// The bytes of the list or object that stands first.
fn length_of_nested(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at += length_of_text(&bytes[at..])?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The text that a piece of JSON stands for, borrowed where it has no escapes.
fn unescaped(json: &str) -> Option<Cow<'_, str>> {
    if json.contains('\\') {
        serde_json::from_str(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(&json[1..json.len() - 1]))
    }
}

/// A type that `#[arg(length = …)]` can measure.
#[diagnostic::on_unimplemented(
    message = "`length` can't measure a `{Self}`",
    label = "has no length",
    note = "`length` is for text (characters), lists and sets (items) and maps (entries); for numbers write `range`"
)]
pub trait Measured {
    /// What its length counts.
    const MEASURE: crate::definition::Measure;
}

/// A type that `#[arg(range = …)]` can bound.
#[diagnostic::on_unimplemented(
    message = "`range` can't bound a `{Self}`",
    label = "not a number",
    note = "`range` is for numbers; for text, lists, sets and maps write `length`"
)]
pub trait Ranged {}

/// A type that `#[arg(pattern = …)]` and `#[arg(format = …)]` can look at.
#[diagnostic::on_unimplemented(
    message = "`pattern` and `format` are for text, not for a `{Self}`",
    label = "not text",
    note = "take a `String`"
)]
pub trait Text {}

/// A type that `#[arg(header = …)]` can repeat in a header.
#[diagnostic::on_unimplemented(
    message = "a header can't repeat a `{Self}`",
    label = "not a text, a whole number or a `bool`",
    note = "`header` is for `String`, integers of at most 64 bits and `bool`, with at most one `Option` around them"
)]
pub trait InHeader {}

macro_rules! measured {
    ($measure:ident: $([$($parameter:ident),*] $type:ty),* $(,)?) => {$(
        impl<$($parameter),*> Measured for $type {
            const MEASURE: crate::definition::Measure = crate::definition::Measure::$measure;
        }
    )*};
}
measured!(Characters: [] String, [] Box<str>, [] std::sync::Arc<str>, [] Cow<'static, str>, [] std::path::PathBuf);
measured!(Items: [T] Vec<T>, [T] Box<[T]>, [T] std::collections::VecDeque<T>, [T] BTreeSet<T>, [T, S] HashSet<T, S>);
measured!(Entries: [K, V] BTreeMap<K, V>, [K, V, S] HashMap<K, V, S>, [] serde_json::Map<String, serde_json::Value>);

macro_rules! ranged {
    ($($integer:ty),*) => {$(
        impl Ranged for $integer {}
        impl Ranged for std::num::NonZero<$integer> {}
    )*};
}
ranged!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
);
impl Ranged for f32 {}
impl Ranged for f64 {}

macro_rules! text {
    ($($type:ty),*) => {$(impl Text for $type {})*};
}
text!(
    String,
    Box<str>,
    std::sync::Arc<str>,
    Cow<'static, str>,
    std::path::PathBuf
);

macro_rules! in_header {
    ($($type:ty),*) => {$(impl InHeader for $type {})*};
}
in_header!(
    String,
    Box<str>,
    std::sync::Arc<str>,
    Cow<'static, str>,
    std::path::PathBuf
);
in_header!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, bool);
