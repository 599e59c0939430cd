//! From definitions to the JSON Schema that is published; `check` enforces it.

mod adapt;
mod check;

pub use adapt::{
    Adapted, AdaptedOutput, Dialect, Names as SchemaNames, adapt, adapt_output, repair,
};
pub use check::{Check, Repaired, SchemaError};

use crate::definition::{ArgumentDefinition, Input, Measure, Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// What the types of the arguments leave open, so that it must be checked besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// Nothing: a value that fits the types fits the schema.
    Types,
    /// Bounds of numbers and lengths of texts at the top level.
    Flat,
    /// Rules that only the schema knows.
    Schema,
}

/// Makes the published schema of a tool's arguments.
pub(crate) fn input(input: &Input) -> (Object, Enforcement) {
    match input {
        Input::Arguments(definitions) => arguments(definitions),
        Input::Whole(schema) => {
            let mut generator = generator(SchemaSettings::draft2020_12());
            let schema = schema(&mut generator).to_value();
            let enforcement = if types_decide(&schema) {
                Enforcement::Types
            } else {
                Enforcement::Schema
            };
            let mut object = object(schema);
            define(&mut object, generator);
            (object, enforcement)
        }
    }
}

/// Makes the schema of an object with these properties and no others.
pub(crate) fn arguments(definitions: &[ArgumentDefinition]) -> (Object, Enforcement) {
    let mut generator = generator(SchemaSettings::draft2020_12());
    let mut enforcement = Enforcement::Types;
    let mut properties = Object::new();
    for it in definitions {
        let schema = (it.schema)(&mut generator).to_value();
        let of_this = if types_decide(&schema) {
            of_rules(it.rules)
        } else {
            Enforcement::Schema
        };
        enforcement = stricter(enforcement, of_this);
        properties.insert(it.name.to_owned(), property(it, schema));
    }
    let mut schema = Object::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    let required = definitions
        .iter()
        .filter(|it| it.required)
        .map(|it| it.name);
    let required: Vec<&str> = required.collect();
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    define(&mut schema, generator);
    (schema, enforcement)
}

/// Makes the published schema of structured output, and says whether the output must be put under `result`: clients
/// before 2026-07-28 take objects only.
pub(crate) fn output(schema: Schema) -> (Object, bool) {
    let schema = tidied(schema.to_value());
    if is_object(&schema) {
        return (object(schema), false);
    }
    let Value::Object(schema) = schema else {
        return (object(schema), false);
    };
    (adapt::wrapped(schema), true)
}

/// The schema of a type that a tool gives out.
pub(crate) fn published_output<T: JsonSchema>() -> Schema {
    let mut generator = generator(SchemaSettings::draft2020_12().for_serialize());
    whole::<T>(&mut generator)
}

/// The schema of a form that a person fills in. Its fields are of one type each: what may be `null` may be left empty.
pub(crate) fn published_form<T: JsonSchema>() -> Value {
    let mut generator = generator(SchemaSettings::draft2020_12());
    let schema = whole::<T>(&mut generator);
    let mut form = object(schema.to_value());
    if let Some(Value::Object(fields)) = form.get_mut("properties") {
        fields.values_mut().for_each(without_null);
    }
    form.into()
}

fn without_null(field: &mut Value) {
    let Value::Object(schema) = field else { return };
    let is_null = |it: &Value| it == "null" || it.get("type").is_some_and(|kind| kind == "null");
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|it| !is_null(it));
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|it| !it.is_null());
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(mut branches)) = schema.remove("anyOf") {
        branches.retain(|it| !is_null(it));
        match branches.as_mut_slice() {
            [Value::Object(only)] => {
                for (keyword, value) in std::mem::take(only) {
                    schema.entry(keyword).or_insert(value);
                }
            }
            _ => {
                schema.insert("anyOf".to_owned(), branches.into());
            }
        }
    }
}

fn whole<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<T>();
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), definitions.into());
    }
    schema
}

/// Types are written where they are used: several engines can't follow a `$ref`. Only recursive ones stay apart.
fn generator(settings: SchemaSettings) -> SchemaGenerator {
    let settings = settings.with(|it| {
        it.inline_subschemas = true;
        it.meta_schema = None;
    });
    settings.into_generator()
}

fn define(schema: &mut Object, mut generator: SchemaGenerator) {
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        let tidied = definitions.into_iter().map(|(name, it)| (name, tidied(it)));
        schema.insert("$defs".to_owned(), Value::Object(tidied.collect()));
    }
}

fn property(definition: &ArgumentDefinition, schema: Value) -> Value {
    let mut schema = match tidied(schema) {
        Value::Object(schema) => schema,
        _ => Object::new(),
    };
    let of_type = schema.get("description").and_then(Value::as_str);
    let description = match of_type {
        None | Some("") => definition.description.to_owned(),
        Some(of_type) if definition.description.is_empty() => of_type.to_owned(),
        Some(of_type) => format!("{}\n{of_type}", definition.description),
    };
    if !description.is_empty() {
        schema.insert("description".to_owned(), description.into());
    }
    for rule in definition.rules {
        let (keyword, value) = keyword(rule);
        if let Rule::Example(_) = rule {
            let examples = schema.entry("examples").or_insert_with(|| json!([]));
            if let Value::Array(examples) = examples {
                examples.push(value);
            }
        } else {
            schema.insert(keyword.to_owned(), value);
        }
    }
    let mut schema = Value::Object(schema);
    let default = definition.default.map(|it| it());
    // A default of `null` says no more than that the argument is optional, unless `null` is a value.
    if let Some(default) = default.filter(|it| !it.is_null() || check::allows_null(&schema)) {
        schema["default"] = default;
    }
    schema
}

/// The values that a schema names: all of an enum, else its examples.
pub(crate) fn values_of(schema: &Value) -> Vec<String> {
    let named = ["enum", "examples"]
        .iter()
        .find_map(|it| schema.get(it)?.as_array());
    let values = named.into_iter().flatten().map(|it| match it {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    values.collect()
}

fn keyword(rule: &Rule) -> (&'static str, Value) {
    match *rule {
        Rule::Minimum(value) => ("minimum", value()),
        Rule::Maximum(value) => ("maximum", value()),
        Rule::ExclusiveMaximum(value) => ("exclusiveMaximum", value()),
        Rule::MinLength(Measure::Characters, least) => ("minLength", least.into()),
        Rule::MinLength(Measure::Items, least) => ("minItems", least.into()),
        Rule::MinLength(Measure::Entries, least) => ("minProperties", least.into()),
        Rule::MaxLength(Measure::Characters, most) => ("maxLength", most.into()),
        Rule::MaxLength(Measure::Items, most) => ("maxItems", most.into()),
        Rule::MaxLength(Measure::Entries, most) => ("maxProperties", most.into()),
        Rule::Pattern(pattern) => ("pattern", pattern.into()),
        Rule::Format(format) => ("format", format.as_str().into()),
        Rule::Example(value) => ("examples", value()),
        Rule::Header(name) => ("x-mcp-header", name.into()),
    }
}

fn of_rules(rules: &[Rule]) -> Enforcement {
    let each = rules.iter().map(|rule| match rule {
        Rule::Example(_) | Rule::Header(_) => Enforcement::Types,
        Rule::Minimum(_)
        | Rule::Maximum(_)
        | Rule::ExclusiveMaximum(_)
        | Rule::MinLength(Measure::Characters, _)
        | Rule::MaxLength(Measure::Characters, _) => Enforcement::Flat,
        Rule::MinLength(..) | Rule::MaxLength(..) | Rule::Pattern(_) | Rule::Format(_) => {
            Enforcement::Schema
        }
    });
    each.fold(Enforcement::Types, stricter)
}

fn stricter(one: Enforcement, other: Enforcement) -> Enforcement {
    match (one, other) {
        (Enforcement::Schema, _) | (_, Enforcement::Schema) => Enforcement::Schema,
        (Enforcement::Flat, _) | (_, Enforcement::Flat) => Enforcement::Flat,
        _ => Enforcement::Types,
    }
}

/// Says whether serde alone enforces a schema that schemars derived: it has no keyword but those that the Rust type
/// itself keeps. The bounds of an integer count as the type's own when they are the type's own.
fn types_decide(schema: &Value) -> bool {
    let Value::Object(schema) = schema else {
        return schema == &Value::Bool(true);
    };
    let format = schema.get("format").and_then(Value::as_str);
    schema
        .iter()
        .all(|(keyword, value)| match keyword.as_str() {
            "type" | "required" | "description" | "title" | "default" | "examples" | "enum"
            | "const" | "$ref" | "deprecated" | "readOnly" | "writeOnly" => true,
            "format" => of_number(value.as_str()).is_some(),
            "minimum" => of_number(format).is_some_and(|(least, _)| least == *value),
            "maximum" => of_number(format).is_some_and(|(_, most)| most == *value),
            "properties" => values(value).all(types_decide),
            "items" | "additionalProperties" => value.is_boolean() || types_decide(value),
            "anyOf" | "oneOf" => value
                .as_array()
                .is_some_and(|it| it.iter().all(types_decide)),
            _ => false,
        })
}

fn values(object: &Value) -> impl Iterator<Item = &Value> {
    object.as_object().into_iter().flat_map(Map::values)
}

/// The bounds of schemars' own formats of numbers; `null` where JSON has no exact word for it.
fn of_number(format: Option<&str>) -> Option<(Value, Value)> {
    Some(match format? {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "uint8" => (0.into(), u8::MAX.into()),
        "uint16" => (0.into(), u16::MAX.into()),
        "uint32" => (0.into(), u32::MAX.into()),
        "uint" | "uint64" | "uint128" => (0.into(), Value::Null),
        "int" | "int64" | "int128" | "float" | "double" => (Value::Null, Value::Null),
        _ => return None,
    })
}

/// Makes an object schema of any schema, as every engine wants it at the root.
fn object(schema: Value) -> Object {
    let mut schema = match schema {
        Value::Object(_) => match tidied(schema) {
            Value::Object(schema) => schema,
            _ => Object::new(),
        },
        _ => Object::new(),
    };
    schema.insert("type".to_owned(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    schema
}

fn is_object(schema: &Value) -> bool {
    if let Some(kind) = schema.get("type") {
        return kind == "object";
    }
    ["oneOf", "anyOf"].iter().any(|keyword| {
        let branches = schema.get(keyword).and_then(Value::as_array);
        branches.is_some_and(|it| !it.is_empty() && it.iter().all(is_object))
    })
}

/// Rewrites what some engine is known to choke on, without a change in meaning: `true` and `false` as schemas, enums
/// as lists of constants, and schemars' names for the sizes of numbers.
fn tidied(schema: Value) -> Value {
    let mut schema = match schema {
        Value::Bool(true) => return json!({}),
        Value::Bool(false) => return json!({ "not": {} }),
        Value::Object(schema) => schema,
        other => return other,
    };
    for (keyword, value) in &mut schema {
        let taken = value.take();
        *value = match keyword.as_str() {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                each_value(taken, tidied)
            }
            "items" | "not" | "contains" | "propertyNames" | "if" | "then" | "else" => {
                tidied(taken)
            }
            // Here a flag is what every engine knows.
            "additionalProperties" | "unevaluatedProperties" if !taken.is_boolean() => {
                tidied(taken)
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => each_item(taken, tidied),
            _ => taken,
        };
    }
    bounds_for_format(&mut schema);
    enum_for_constants(&mut schema);
    schema.into()
}

fn each_value(object: Value, change: fn(Value) -> Value) -> Value {
    match object {
        Value::Object(object) => {
            Value::Object(object.into_iter().map(|(k, v)| (k, change(v))).collect())
        }
        other => other,
    }
}

fn each_item(list: Value, change: fn(Value) -> Value) -> Value {
    match list {
        Value::Array(items) => items.into_iter().map(change).collect(),
        other => other,
    }
}

fn bounds_for_format(schema: &mut Object) {
    let format = schema.get("format").and_then(Value::as_str);
    let Some((least, most)) = of_number(format) else {
        return;
    };
    schema.remove("format");
    for (keyword, bound) in [("minimum", least), ("maximum", most)] {
        if !bound.is_null() {
            schema.entry(keyword).or_insert(bound);
        }
    }
}

/// `oneOf` with a constant a branch becomes `enum`, and the docs of the branches go into the description.
fn enum_for_constants(schema: &mut Object) {
    let Some(Value::Array(branches)) = schema.get("oneOf").or_else(|| schema.get("anyOf")) else {
        return;
    };
    let mut values = Vec::new();
    let mut docs = Vec::new();
    for branch in branches {
        let Value::Object(branch) = branch else {
            return;
        };
        let known = ["type", "const", "enum", "description", "title"];
        if !branch.keys().all(|it| known.contains(&it.as_str())) {
            return;
        }
        let constants = match (branch.get("const"), branch.get("enum")) {
            (Some(constant), None) => std::slice::from_ref(constant),
            (None, Some(Value::Array(constants))) => constants.as_slice(),
            _ => return,
        };
        if !constants.iter().all(Value::is_string) {
            return;
        }
        if let (Some(Value::String(doc)), [Value::String(constant)]) =
            (branch.get("description"), constants)
        {
            docs.push(format!("- `{constant}`: {}", doc.replace('\n', " ")));
        }
        values.extend_from_slice(constants);
    }
    if values.is_empty() {
        return;
    }
    schema.remove("oneOf");
    schema.remove("anyOf");
    let own = schema.get("description").and_then(Value::as_str);
    let lines = own.map(str::to_owned).into_iter().chain(docs);
    let description = lines.collect::<Vec<_>>().join("\n");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), values.into());
    if !description.is_empty() {
        schema.insert("description".to_owned(), description.into());
    }
}
