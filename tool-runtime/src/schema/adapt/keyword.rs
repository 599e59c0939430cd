//! The keywords of JSON Schema: what stands in each, and what kind of value it is about.

use serde_json::Value;

/// What stands in a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A schema.
    Schema,
    /// A schema, or a list of them before 2020-12.
    SchemaOrList,
    /// A list of schemas that isn't empty.
    List,
    /// Schemas by name.
    Named,
    /// Schemas or lists of names, by name.
    Dependencies,
    /// The name of a type, or a list of them.
    Kinds,
    Text,
    Flag,
    Number,
    /// A number above 0.
    Positive,
    /// A whole number from 0.
    Count,
    /// A list of texts.
    Names,
    /// Lists of texts by name.
    NamesByName,
    /// A list of any values.
    Values,
    Any,
}

/// The names of types.
pub(super) const KINDS: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Says what stands in a keyword; `None` for a keyword of others.
pub(super) fn shape(keyword: &str) -> Option<Shape> {
    Some(match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Shape::Schema,
        "items" => Shape::SchemaOrList,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::List,
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
            Shape::Named
        }
        "dependencies" => Shape::Dependencies,
        "type" => Shape::Kinds,
        "$anchor" | "$comment" | "$dynamicAnchor" | "$dynamicRef" | "$id" | "$recursiveRef"
        | "$ref" | "$schema" | "contentEncoding" | "contentMediaType" | "description"
        | "format" | "pattern" | "title" => Shape::Text,
        "$recursiveAnchor" | "deprecated" | "readOnly" | "uniqueItems" | "writeOnly" => Shape::Flag,
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => Shape::Number,
        "multipleOf" => Shape::Positive,
        "maxContains" | "maxItems" | "maxLength" | "maxProperties" | "minContains" | "minItems"
        | "minLength" | "minProperties" => Shape::Count,
        "required" => Shape::Names,
        "dependentRequired" => Shape::NamesByName,
        "enum" | "examples" => Shape::Values,
        "const" | "default" => Shape::Any,
        _ => return None,
    })
}

impl Shape {
    /// Says whether a value is of this shape.
    pub(super) fn fits(self, value: &Value) -> bool {
        match self {
            Self::Schema => is_schema(value),
            Self::SchemaOrList => {
                is_schema(value) || value.as_array().is_some_and(|it| it.iter().all(is_schema))
            }
            Self::List => value.as_array().is_some_and(|it| !it.is_empty()),
            Self::Named | Self::Dependencies => value.is_object(),
            Self::Kinds => match value {
                Value::Array(kinds) => !kinds.is_empty() && kinds.iter().all(is_kind),
                kind => is_kind(kind),
            },
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Number => value.is_number(),
            Self::Positive => value.as_f64().is_some_and(|it| it > 0.0),
            Self::Count => value
                .as_f64()
                .is_some_and(|it| it >= 0.0 && it.fract() == 0.0),
            Self::Names => is_names(value),
            Self::NamesByName => value
                .as_object()
                .is_some_and(|it| it.values().all(is_names)),
            Self::Values => value.is_array(),
            Self::Any => true,
        }
    }
}

pub(super) fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

fn is_kind(value: &Value) -> bool {
    value.as_str().is_some_and(|it| KINDS.contains(&it))
}

fn is_names(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|it| it.iter().all(Value::is_string))
}

/// Says whether a keyword decides which values are good. The others only tell about them.
pub(super) fn is_rule(keyword: &str) -> bool {
    match keyword {
        "$anchor" | "$comment" | "$defs" | "$dynamicAnchor" | "$id" | "$recursiveAnchor"
        | "$schema" | "contentEncoding" | "contentMediaType" | "contentSchema" | "default"
        | "definitions" | "deprecated" | "description" | "examples" | "readOnly" | "title"
        | "writeOnly" => false,
        _ => shape(keyword).is_some(),
    }
}

/// Says whether the schemas in a keyword are about the same value as the one around them.
pub(super) fn is_branch(keyword: &str) -> bool {
    matches!(
        keyword,
        "allOf"
            | "anyOf"
            | "dependencies"
            | "dependentSchemas"
            | "else"
            | "if"
            | "not"
            | "oneOf"
            | "then"
    )
}

/// The kind of value that a keyword is about, if it is about one.
pub(super) fn kind(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "additionalProperties"
        | "dependencies"
        | "dependentRequired"
        | "dependentSchemas"
        | "maxProperties"
        | "minProperties"
        | "patternProperties"
        | "properties"
        | "propertyNames"
        | "propertyOrdering"
        | "required"
        | "unevaluatedProperties" => "object",
        "additionalItems" | "contains" | "items" | "maxContains" | "maxItems" | "minContains"
        | "minItems" | "prefixItems" | "unevaluatedItems" | "uniqueItems" => "array",
        "contentEncoding" | "contentMediaType" | "format" | "maxLength" | "minLength"
        | "pattern" => "string",
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf" => "number",
        _ => return None,
    })
}
