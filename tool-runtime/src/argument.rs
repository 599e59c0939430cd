//! What the model sent: raw JSON, split into arguments and taken into their types without a tree between.

use crate::error::ArgumentError;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize,
    de::{DeserializeOwned, Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt,
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
const INLINE: usize = 8;

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
    pub(crate) fn split<'n>(
        whole: &'a str,
        names: impl ExactSizeIterator<Item = &'n str> + Clone,
    ) -> Option<Self> {
        let mut each = Slots::empty(names.len());
        let mut deserializer = serde_json::Deserializer::from_str(whole);
        let all_known = deserializer
            .deserialize_map(Split {
                names,
                slots: each.as_mut_slice(),
            })
            .ok()?;
        deserializer.end().ok()?;
        all_known.then_some(Self { whole, each })
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

/// Puts each property into the slot of its name. Says whether all names were known.
struct Split<'s, 'a, N> {
    names: N,
    slots: &'s mut [Option<&'a str>],
}

impl<'de, 'n, N: Iterator<Item = &'n str> + Clone> Visitor<'de> for Split<'_, 'de, N> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut all_known = true;
        while let Some(Key(key)) = map.next_key()? {
            let value: &'de RawValue = map.next_value()?;
            match self.names.clone().position(|name| name == key) {
                Some(index) => self.slots[index] = Some(value.get()),
                None => all_known = false,
            }
        }
        Ok(all_known)
    }
}

/// A property name, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a property name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
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
