//! Arguments against the published schema: types and small rules on the good way; on the bad one, repair what is
//! plainly meant, or name everything that is wrong.

use super::{Enforcement, Object};
use crate::{
    argument::Arguments,
    error::{Violation, did_you_mean},
    name::similar,
};
use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::Value;
use std::{cmp::Ordering, fmt, sync::Arc};
use thiserror::Error;

/// The longest piece of a value that an error quotes, in characters.
const QUOTED: usize = 120;

/// How the arguments of one tool are checked.
pub struct Check {
    properties: Vec<Property>,
    /// Whether the properties are all there may be, so that the raw object can be split into them.
    closed: bool,
    enforcement: Enforcement,
    schema: Arc<Object>,
    validator: Validator,
}

struct Property {
    name: String,
    required: bool,
    /// The default as JSON.
    default: Option<String>,
    /// Whether `null` says no more than leaving it out.
    null_is_absent: bool,
    /// Whether it must be an object; serde alone would take a list for a struct.
    is_object: bool,
    bounds: Bounds,
}

/// The rules that can be checked on the raw JSON of a number or a text.
#[derive(Debug, Default)]
struct Bounds {
    minimum: Option<Limit>,
    maximum: Option<Limit>,
    exclusive_maximum: Option<Limit>,
    min_length: Option<usize>,
    max_length: Option<usize>,
}

/// A bound of a number: exact where it is whole.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Whole(i128),
    Float(f64),
}

/// Why a schema can't be enforced.
#[derive(Debug, Error)]
#[error("{reason}")]
pub struct SchemaError {
    /// What is wrong with it, with the place.
    pub reason: String,
}

/// Arguments that were not quite right, made right.
#[derive(Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The arguments as JSON.
    pub json: String,
    /// Which places were changed or left out: JSON pointers.
    pub paths: Vec<String>,
}

impl Check {
    /// Prepares the check of a published schema; `enforcement` says what the types leave open.
    pub fn new(schema: Arc<Object>, enforcement: Enforcement) -> Result<Self, SchemaError> {
        let whole = Value::Object((*schema).clone());
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&whole)
            .map_err(|error| SchemaError {
                reason: format!("{error} (at `{}`)", error.instance_path()),
            })?;
        let required: Vec<&str> = strings(schema.get("required")).collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten().map(|(name, schema)| {
            let required = required.contains(&name.as_str());
            Property {
                name: name.clone(),
                required,
                default: schema.get("default").map(Value::to_string),
                null_is_absent: !required && !allows_null(schema),
                is_object: schema.get("type").is_some_and(|it| it == "object"),
                bounds: Bounds::of(schema),
            }
        });
        Ok(Self {
            properties: properties.collect(),
            closed: schema.get("additionalProperties") == Some(&Value::Bool(false)),
            enforcement,
            validator,
            schema,
        })
    }

    /// Refuses a default that breaks the rules of its own argument: a call that relies on it would be refused.
    pub(crate) fn check_defaults(&self) -> Result<(), SchemaError> {
        let properties = self.properties.iter();
        let defaults = properties.filter_map(|it| Some((&it.name, it.default.as_deref()?)));
        for (name, default) in defaults {
            let default: Value = serde_json::from_str(default).expect("it was JSON");
            let sent = Value::Object(Object::from_iter([(name.clone(), default)]));
            let mut errors = self.validator.iter_errors(&sent);
            if let Some(error) = errors.find(|it| !it.instance_path().is_empty()) {
                let reason = format!("the default of `{name}` breaks its own rules: {error}");
                return Err(SchemaError { reason });
            }
        }
        Ok(())
    }

    /// Takes arguments that are right as they are, completed with the defaults; `None` sends them to [`Check::repair`].
    /// `null` for an argument that may be left out is right: it says no more than leaving it out.
    pub fn accept<'a>(&'a self, json: &'a str) -> Option<Arguments<'a>> {
        let mut arguments = if self.closed {
            let names = self.properties.iter().map(|it| it.name.as_str());
            Arguments::split(json, &names)?
        } else if json.trim_start().starts_with('{') {
            Arguments::whole(json)
        } else {
            return None;
        };
        if self.closed {
            let slots = arguments.each.as_mut_slice();
            for (property, slot) in self.properties.iter().zip(slots) {
                if *slot == Some("null") && property.null_is_absent {
                    *slot = None;
                }
                match slot {
                    Some(json) if property.is_object && !json.starts_with('{') => return None,
                    Some(json) if self.enforcement == Enforcement::Flat => {
                        if !property.bounds.hold(json) {
                            return None;
                        }
                    }
                    Some(_) => {}
                    None if property.required => return None,
                    None => *slot = property.default.as_deref(),
                }
            }
        }
        if self.enforcement == Enforcement::Schema {
            let mut value: Value = serde_json::from_str(json).ok()?;
            self.drop_nulls(&mut value);
            if !self.validator.is_valid(&value) {
                return None;
            }
        }
        Some(arguments)
    }

    /// Repairs what is plainly meant (a list, an object, a number or a boolean sent as text, where the schema wants the
    /// real thing; a whole number written as a fraction; `null` for what may be left out), or says everything that is
    /// wrong.
    pub fn repair(&self, json: &str) -> Result<Repaired, Vec<Violation>> {
        let mut value: Value = serde_json::from_str(json).map_err(|error| {
            let message = format!("the arguments are not JSON: {error}");
            vec![whole(message)]
        })?;
        if !value.is_object() {
            let message = format!("the arguments must be an object, not {}", quoted(&value));
            return Err(vec![whole(message)]);
        }
        let root = Value::Object((*self.schema).clone());
        let mut paths = Vec::new();
        mend(&mut value, &root, &root, &mut String::new(), &mut paths);
        let violations: Vec<Violation> = self
            .validator
            .iter_errors(&value)
            .flat_map(|error| violations(&error, &root))
            .collect();
        if violations.is_empty() {
            let json = value.to_string();
            Ok(Repaired { json, paths })
        } else {
            Err(violations)
        }
    }

    fn drop_nulls(&self, value: &mut Value) {
        let Value::Object(object) = value else { return };
        for property in self.properties.iter().filter(|it| it.null_is_absent) {
            if object.get(&property.name) == Some(&Value::Null) {
                object.remove(&property.name);
            }
        }
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Check({:?})", self.enforcement)
    }
}

pub(super) fn allows_null(schema: &Value) -> bool {
    let Value::Object(object) = schema else {
        return true;
    };
    let of_type = match object.get("type") {
        Some(Value::String(kind)) => kind == "null",
        Some(Value::Array(kinds)) => kinds.iter().any(|it| it == "null"),
        _ => object
            .keys()
            .all(|it| ["description", "default", "examples", "title"].contains(&it.as_str())),
    };
    let of_branches = ["anyOf", "oneOf"].iter().any(|keyword| {
        let branches = object.get(*keyword).and_then(Value::as_array);
        branches.is_some_and(|it| it.iter().any(allows_null))
    });
    let of_values = object.get("enum").and_then(Value::as_array);
    of_type || of_branches || of_values.is_some_and(|it| it.contains(&Value::Null))
}

impl Bounds {
    fn of(schema: &Value) -> Self {
        let limit = |keyword| match schema.get(keyword) {
            Some(Value::Number(number)) => match number.as_i128() {
                Some(whole) => Some(Limit::Whole(whole)),
                None => number.as_f64().map(Limit::Float),
            },
            _ => None,
        };
        let length = |keyword| {
            let length = schema.get(keyword).and_then(Value::as_u64)?;
            usize::try_from(length).ok()
        };
        Self {
            minimum: limit("minimum"),
            maximum: limit("maximum"),
            exclusive_maximum: limit("exclusiveMaximum"),
            min_length: length("minLength"),
            max_length: length("maxLength"),
        }
    }

    /// Says whether raw JSON keeps the rules. A value of another type is the business of the types.
    fn hold(&self, json: &str) -> bool {
        self.hold_number(json) && self.hold_length(json)
    }

    fn hold_number(&self, json: &str) -> bool {
        let limits = [self.minimum, self.maximum, self.exclusive_maximum];
        if limits.iter().all(Option::is_none) || self.are_far_from(json) {
            return true;
        }
        let number: Option<f64> = json.parse().ok();
        let [minimum, maximum, exclusive_maximum] =
            limits.map(|it| it?.compared_with(json, number?));
        minimum != Some(Ordering::Less)
            && maximum != Some(Ordering::Greater)
            && matches!(exclusive_maximum, None | Some(Ordering::Less))
    }

    /// Whether the digits before the point say that a number keeps the limits, as they mostly do.
    fn are_far_from(&self, json: &str) -> bool {
        let above = |limit: Option<Limit>, least| limit.is_none_or(|it| it.float() <= least);
        let below = |limit: Option<Limit>, most| limit.is_none_or(|it| most < it.float());
        neighbours(json).is_some_and(|(least, most)| {
            above(self.minimum, least)
                && below(self.maximum, most)
                && below(self.exclusive_maximum, most)
        })
    }

    fn hold_length(&self, json: &str) -> bool {
        if self.min_length.is_none() && self.max_length.is_none() {
            return true;
        }
        characters(json).is_none_or(|length| {
            self.min_length.is_none_or(|least| length >= least)
                && self.max_length.is_none_or(|most| length <= most)
        })
    }
}

impl Limit {
    /// How a number stands to it: exactly where both are whole, and as floating point otherwise.
    fn compared_with(self, json: &str, float: f64) -> Option<Ordering> {
        match self {
            Self::Float(limit) => float.partial_cmp(&limit),
            Self::Whole(limit) => match json.parse::<i128>() {
                Ok(number) => Some(number.cmp(&limit)),
                Err(_) => float.partial_cmp(&self.float()),
            },
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a fraction is no nearer than that"
    )]
    fn float(self) -> f64 {
        match self {
            Self::Whole(limit) => limit as f64,
            Self::Float(limit) => limit,
        }
    }
}

/// The whole numbers around a short number without an exponent: -49 and -48 around `-48.85`.
fn neighbours(json: &str) -> Option<(f64, f64)> {
    let mut whole = 0_u32;
    let mut bytes = json.bytes();
    let is_negative = json.starts_with('-');
    if is_negative {
        bytes.next();
    }
    while let Some(byte) = bytes.next() {
        match byte {
            b'0'..=b'9' if whole < 100_000_000 => whole = whole * 10 + u32::from(byte - b'0'),
            b'.' if bytes.all(|it| it.is_ascii_digit()) => break,
            _ => return None,
        }
    }
    let (least, most) = (f64::from(whole), f64::from(whole + 1));
    Some(if is_negative {
        (-most, -least)
    } else {
        (least, most)
    })
}

/// Counts the characters of the JSON of a text.
fn characters(json: &str) -> Option<usize> {
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') {
        let text: String = serde_json::from_str(json).ok()?;
        Some(text.chars().count())
    } else {
        Some(inside.chars().count())
    }
}

/// Puts the real thing where something else stands for it, guided by the schema. Text that the schema allows is never
/// touched.
fn mend(
    value: &mut Value,
    schema: &Value,
    root: &Value,
    path: &mut String,
    paths: &mut Vec<String>,
) {
    let Some(schema) = resolved(schema, root) else {
        return;
    };
    if let Some(real) = meant(value, schema) {
        *value = real;
        paths.push(path.clone());
    }
    let length = path.len();
    match value {
        Value::Object(object) => {
            let properties = schema.get("properties");
            let others = schema.get("additionalProperties");
            object.retain(|name, value| {
                let own = properties.and_then(|it| it.get(name));
                let is_required = || strings(schema.get("required")).any(|it| it == name);
                let is_kept =
                    !value.is_null() || own.is_none_or(|it| is_required() || allows_null(it));
                if !is_kept {
                    paths.push(format!("{path}/{}", escaped(name)));
                }
                is_kept
            });
            for (name, value) in object {
                let own = properties.and_then(|it| it.get(name)).or(others);
                if let Some(schema) = own {
                    path.push('/');
                    path.push_str(&escaped(name));
                    mend(value, schema, root, path, paths);
                    path.truncate(length);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else {
                return;
            };
            for (index, value) in items.iter_mut().enumerate() {
                path.push('/');
                path.push_str(&index.to_string());
                mend(value, schema, root, path, paths);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Spells a name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Follows a local `$ref`, and the only branch that isn't `null`; several in a row end somewhere, or nowhere.
fn resolved<'s>(mut schema: &'s Value, root: &'s Value) -> Option<&'s Value> {
    for _ in 0..16 {
        schema = if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            root.pointer(reference.strip_prefix('#')?)?
        } else if let Some(branch) = only_branch(schema) {
            branch
        } else {
            return Some(schema);
        };
    }
    None
}

fn only_branch(schema: &Value) -> Option<&Value> {
    let branches = schema.get("anyOf").or_else(|| schema.get("oneOf"))?;
    let mut branches = branches
        .as_array()?
        .iter()
        .filter(|it| it.get("type").is_none_or(|kind| kind != "null"));
    let only = branches.next()?;
    branches.next().is_none().then_some(only)
}

/// What a value stands for, if the schema wants another type and the value is plainly that.
fn meant(value: &Value, schema: &Value) -> Option<Value> {
    let kinds: Vec<&str> = match schema.get("type")? {
        Value::String(kind) => vec![kind],
        kinds => strings(Some(kinds)).collect(),
    };
    match value {
        Value::String(text) if !kinds.contains(&"string") => {
            let real: Value = serde_json::from_str(text).ok()?;
            kinds.iter().find_map(|kind| match *kind {
                "array" => real.is_array().then(|| real.clone()),
                "object" => real.is_object().then(|| real.clone()),
                "number" => real.is_number().then(|| real.clone()),
                "integer" => integer(&real),
                "boolean" => real.is_boolean().then(|| real.clone()),
                _ => None,
            })
        }
        Value::Number(number) if number.is_f64() && !kinds.contains(&"number") => {
            let is_wanted = kinds.contains(&"integer");
            is_wanted.then(|| integer(value)).flatten()
        }
        _ => None,
    }
}

/// A whole number, also one that is written as a fraction (`5.0`), if it can be told exactly.
fn integer(value: &Value) -> Option<Value> {
    let number = value.as_number()?;
    if !number.is_f64() {
        return Some(value.clone());
    }
    let fraction = number.as_f64().filter(|it| it.fract() == 0.0)?;
    let digits = format!("{fraction:.0}");
    let signed = digits.parse::<i64>().map(Value::from);
    signed
        .or_else(|_| digits.parse::<u64>().map(Value::from))
        .ok()
}

/// Says in our words what jsonschema found; most errors stand for one violation.
fn violations(error: &ValidationError<'_>, root: &Value) -> Vec<Violation> {
    let path = error.instance_path().to_string();
    let at = |message: String| Violation {
        path: path.clone(),
        message,
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![at(format!("`{name}` is required"))]
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_properties(error, root);
            let unknown = unexpected.iter().map(|name| {
                let similar = similar(name, known.iter().map(String::as_str));
                let ways = if similar.is_empty() && !known.is_empty() {
                    format!("; there {}", there_are(&known))
                } else {
                    did_you_mean(&similar)
                };
                at(format!("there is no `{}`{ways}", shortened(name)))
            });
            unknown.collect()
        }
        ValidationErrorKind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => {
                    let kinds: Vec<String> = kinds.iter().map(|it| it.to_string()).collect();
                    kinds.join(" or ")
                }
            };
            let value = quoted(error.instance());
            vec![at(format!("{value} is not of type {wanted}"))]
        }
        ValidationErrorKind::Enum { options } => {
            let value = quoted(error.instance());
            vec![at(format!(
                "{value} is none of {}",
                shortened(&options.to_string())
            ))]
        }
        _ => vec![at(shortened(&error.to_string()))],
    }
}

fn there_are(known: &[String]) -> String {
    let names: Vec<String> = known.iter().map(|it| format!("`{it}`")).collect();
    match names.as_slice() {
        [one] => format!("is only {one}"),
        many => format!("are {}", many.join(", ")),
    }
}

/// The properties of the schema that an error comes from.
fn known_properties(error: &ValidationError<'_>, root: &Value) -> Vec<String> {
    let path = error.schema_path().to_string();
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let properties = root.pointer(parent).and_then(|it| it.get("properties"));
    let properties = properties.and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(|it| it.keys().cloned())
        .collect()
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    let items = list.and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str)
}

fn whole(message: String) -> Violation {
    Violation {
        path: String::new(),
        message,
    }
}

fn quoted(value: &Value) -> String {
    shortened(&value.to_string())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
