//! The YAML at the beginning of a `SKILL.md` as a JSON object.
//!
//! Clients read the same YAML with parsers of their own and refuse a skill whose object differs from ours. So what JSON
//! can't say, or not in one way only, is refused here, where its author learns of it.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};
use serde_json::{Map, Number, Value};
use thiserror::Error;

/// How many bytes the frontmatter may have.
const LONGEST: usize = 64 * 1024;

/// How many lists and objects may lie inside one another.
const DEEPEST: usize = 32;

/// Why a `SKILL.md` has no frontmatter that can be used.
#[derive(Clone, Debug, Error)]
pub(super) enum FrontmatterError {
    #[error("it has to begin with a line `---`, its YAML frontmatter and another line `---`")]
    Missing,
    #[error("its frontmatter has more than {LONGEST} bytes")]
    TooLong,
    #[error("its line {line} is no YAML: {} (column {column})", message.replace(char::is_control, " "))]
    Syntax {
        line: usize,
        column: usize,
        message: String,
    },
    #[error("its frontmatter has to be fields such as `name: …`")]
    NoFields,
    #[error("its frontmatter has lists or objects inside one another more than {DEEPEST} times")]
    TooDeep,
    #[error("its frontmatter uses {0}, which not every client can read")]
    Ambiguous(&'static str),
    #[error("its frontmatter has the key `{}` twice", .0.escape_debug())]
    Twice(String),
    #[error("its frontmatter has the key `{}`, which is no text; put it in quotes", .0.escape_debug())]
    Key(String),
    #[error("its frontmatter has the number `{}`, which JSON doesn't know; put it in quotes", .0.escape_debug())]
    Number(String),
}

impl From<ScanError> for FrontmatterError {
    fn from(error: ScanError) -> Self {
        Self::Syntax {
            // The file has a line of dashes before the parser's first.
            line: error.marker().line() + 1,
            column: error.marker().col() + 1,
            message: error.info().to_owned(),
        }
    }
}

/// Reads the frontmatter of a `SKILL.md`.
pub(super) fn parse(text: &str) -> Result<Map<String, Value>, FrontmatterError> {
    let mut built = Builder::default();
    for event in Parser::new_from_str(cut(text)?) {
        built.take(event?.0)?;
    }
    match built.document {
        Some(Value::Object(fields)) => Ok(fields),
        _ => Err(FrontmatterError::NoFields),
    }
}

/// Returns what stands between the lines of dashes.
fn cut(text: &str) -> Result<&str, FrontmatterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text
        .strip_prefix("---\n")
        .or_else(|| text.strip_prefix("---\r\n"))
        .ok_or(FrontmatterError::Missing)?;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end_matches(['\n', '\r', '\t', ' ']) == "---" {
            return Ok(&text[..end]);
        }
        end += line.len();
        if end > LONGEST {
            return Err(FrontmatterError::TooLong);
        }
    }
    Err(FrontmatterError::Missing)
}

/// The value as far as the events went.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    document: Option<Value>,
}

/// A list or an object whose end is still to come.
enum Open {
    List(Vec<Value>),
    Object {
        fields: Map<String, Value>,
        key: Option<String>,
    },
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), FrontmatterError> {
        match event {
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
            Event::Alias(_) => Err(FrontmatterError::Ambiguous("an alias")),
            Event::Scalar(text, style, anchor, tag) => {
                refuse(anchor, tag.is_some())?;
                self.scalar(&text, style)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse(anchor, tag.is_some())?;
                self.begin(Open::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                refuse(anchor, tag.is_some())?;
                self.begin(Open::Object {
                    fields: Map::new(),
                    key: None,
                })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items)) => self.value(Value::Array(items)),
                Some(Open::Object { fields, .. }) => self.value(Value::Object(fields)),
                None => Ok(()),
            },
        }
    }

    fn begin(&mut self, open: Open) -> Result<(), FrontmatterError> {
        if matches!(self.open.last(), Some(Open::Object { key: None, .. })) {
            return Err(FrontmatterError::Key("[…]".to_owned()));
        }
        if self.open.len() == DEEPEST {
            return Err(FrontmatterError::TooDeep);
        }
        self.open.push(open);
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle) -> Result<(), FrontmatterError> {
        let value = if style == ScalarStyle::Plain {
            resolve(text)?
        } else {
            Value::from(text)
        };
        let Some(Open::Object { fields, key }) = self.open.last_mut() else {
            return self.value(value);
        };
        if key.is_some() {
            return self.value(value);
        }
        match value {
            Value::String(name) if fields.contains_key(&name) => Err(FrontmatterError::Twice(name)),
            Value::String(name) => {
                *key = Some(name);
                Ok(())
            }
            _ => Err(FrontmatterError::Key(text.to_owned())),
        }
    }

    fn value(&mut self, value: Value) -> Result<(), FrontmatterError> {
        match self.open.last_mut() {
            Some(Open::List(items)) => items.push(value),
            Some(Open::Object { fields, key }) => {
                let key = key
                    .take()
                    .expect("a value comes after its key, and `begin` refuses what else could");
                fields.insert(key, value);
            }
            None if self.document.is_some() => {
                return Err(FrontmatterError::Ambiguous("a second document"));
            }
            None => self.document = Some(value),
        }
        Ok(())
    }
}

/// Anchors are worth nothing without aliases, and aliases can make a small text enormous.
fn refuse(anchor: usize, tag: bool) -> Result<(), FrontmatterError> {
    if anchor != 0 {
        return Err(FrontmatterError::Ambiguous("an anchor"));
    }
    if tag {
        return Err(FrontmatterError::Ambiguous("a tag"));
    }
    Ok(())
}

/// Returns what a text without quotes means, by YAML's core schema.
fn resolve(text: &str) -> Result<Value, FrontmatterError> {
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text) {
            Some(number) => Value::Number(number?),
            None => Value::from(text),
        },
    };
    Ok(value)
}

/// Returns `None` for what is no number.
fn number(text: &str) -> Option<Result<Number, FrontmatterError>> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let number = if let Some((digits, radix)) = based(text) {
        u64::from_str_radix(digits, radix).ok().map(Number::from)
    } else if is_decimal(unsigned) {
        let whole = text.parse::<i64>().map(Number::from);
        whole
            .or_else(|_| text.parse::<u64>().map(Number::from))
            .ok()
            .or_else(|| text.parse().ok().and_then(Number::from_f64))
    } else if matches!(unsigned, ".inf" | ".Inf" | ".INF")
        || matches!(text, ".nan" | ".NaN" | ".NAN")
    {
        None
    } else {
        return None;
    };
    Some(number.ok_or_else(|| FrontmatterError::Number(text.to_owned())))
}

fn based(text: &str) -> Option<(&str, u32)> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text.strip_prefix("0o")?, 8),
    };
    let right = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    right.then_some((digits, radix))
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
