//! Readers of schemas as they are said to be: each walks a schema and tells what it would reject.

use serde_json::{Map, Value};

/// What a reader rejects. It is written apart from the dialects, from what the readers' errors say.
#[expect(clippy::struct_excessive_bools, reason = "each is a quirk by itself")]
#[derive(Clone, Copy)]
pub(super) struct Reader {
    follows_references: bool,
    knows: Option<&'static [&'static str]>,
    needs_plain_root: bool,
    needs_items: bool,
    needs_types: bool,
    has_booleans: bool,
    has_any_enum: bool,
}

impl Reader {
    /// Any reader of JSON Schema.
    pub(super) const ANY: Self = Self {
        follows_references: true,
        knows: None,
        needs_plain_root: false,
        needs_items: false,
        needs_types: false,
        has_booleans: true,
        has_any_enum: true,
    };
    pub(super) const WITHOUT_REFERENCES: Self = Self {
        follows_references: false,
        ..Self::ANY
    };

    /// Fails if the reader rejects the schema.
    pub(super) fn check(&self, schema: &Map<String, Value>) {
        let rejected = self.rejects(schema);
        assert!(
            rejected.is_empty(),
            "{rejected:#?} in {}",
            serde_json::to_string(schema).unwrap()
        );
    }

    pub(super) fn rejects(&self, schema: &Map<String, Value>) -> Vec<String> {
        let mut rejected = Vec::new();
        if schema.get("type").is_none_or(|it| it != "object") {
            rejected.push("the root isn't of type object".to_owned());
        }
        let combinators = [
            "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const",
        ];
        if self.needs_plain_root && combinators.iter().any(|it| schema.contains_key(*it)) {
            rejected.push("the root has a combinator".to_owned());
        }
        let root = Value::Object(schema.clone());
        self.node(&root, &root, "", &mut rejected);
        rejected
    }

    fn node(&self, schema: &Value, root: &Value, path: &str, rejected: &mut Vec<String>) {
        let mut reject = |what: &str| rejected.push(format!("{path}: {what}"));
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(_) if self.has_booleans => return,
            other => return reject(&format!("{other} is no schema")),
        };
        if let Some(knows) = self.knows {
            for keyword in schema.keys() {
                if !knows.contains(&keyword.as_str()) {
                    reject(&format!("unknown name {keyword}"));
                }
            }
        }
        if let Some(reference) = schema.get("$ref") {
            let pointer = reference.as_str().and_then(|it| it.strip_prefix('#'));
            let pointer = pointer.map(|it| it.replace("%20", " ").replace("%25", "%"));
            if !self.follows_references {
                reject("a reference");
            } else if pointer.is_none_or(|it| root.pointer(&it).is_none()) {
                reject("a reference to nothing");
            }
        }
        let names = |keyword: &str| {
            let names = schema.get(keyword).and_then(Value::as_array);
            names.into_iter().flatten().filter_map(Value::as_str)
        };
        if self.needs_types {
            if schema.contains_key("anyOf") {
                if schema.len() > 1 {
                    reject("other fields alongside any_of");
                }
            } else if !schema.get("type").is_some_and(Value::is_string) {
                reject("no type");
            }
            if schema.get("type").is_some_and(|it| it == "null") {
                reject("the type null");
            }
            let properties = schema.get("properties").and_then(Value::as_object);
            if names("required").any(|it| properties.is_some_and(|known| !known.contains_key(it))) {
                reject("required of a property that is not defined");
            }
            if let Some(format) = schema.get("format") {
                let known = ["date-time", "enum", "float", "double", "int32", "int64"];
                if !format.as_str().is_some_and(|it| known.contains(&it)) {
                    reject("unknown format");
                }
            }
        }
        if let Some(values) = schema.get("enum").filter(|_| !self.has_any_enum) {
            let values = values.as_array().map_or(&[][..], Vec::as_slice);
            let are_texts = values
                .iter()
                .all(|it| it.as_str().is_some_and(|it| !it.is_empty()));
            if values.is_empty() || !are_texts || schema.get("type").is_none_or(|it| it != "string")
            {
                reject("an enum of other than texts");
            }
        }
        let is_array = schema.get("type").is_some_and(|it| it == "array")
            || names("type").any(|it| it == "array");
        if self.needs_items && is_array && !schema.contains_key("items") {
            reject("items: missing field");
        }
        self.inner(schema, root, path, rejected);
    }

    fn inner(
        &self,
        schema: &Map<String, Value>,
        root: &Value,
        path: &str,
        rejected: &mut Vec<String>,
    ) {
        for (keyword, value) in schema {
            let path = format!("{path}/{keyword}");
            match (keyword.as_str(), value) {
                (
                    "$defs" | "definitions" | "dependentSchemas" | "patternProperties"
                    | "properties",
                    Value::Object(schemas),
                ) => {
                    for (name, schema) in schemas {
                        self.node(schema, root, &format!("{path}/{name}"), rejected);
                    }
                }
                ("allOf" | "anyOf" | "items" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                    for (index, schema) in schemas.iter().enumerate() {
                        self.node(schema, root, &format!("{path}/{index}"), rejected);
                    }
                }
                (
                    "additionalProperties"
                    | "unevaluatedProperties"
                    | "additionalItems"
                    | "unevaluatedItems",
                    Value::Bool(_),
                ) => {}
                (
                    "additionalItems"
                    | "additionalProperties"
                    | "contains"
                    | "else"
                    | "if"
                    | "items"
                    | "not"
                    | "propertyNames"
                    | "then"
                    | "unevaluatedItems"
                    | "unevaluatedProperties",
                    schema,
                ) => self.node(schema, root, &path, rejected),
                _ => {}
            }
        }
    }
}

/// Google's function declarations.
pub(super) const GEMINI: Reader = Reader {
    follows_references: false,
    knows: Some(&[
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "maxItems",
        "minItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
        "propertyOrdering",
        "items",
        "minimum",
        "maximum",
    ]),
    needs_plain_root: true,
    needs_items: true,
    needs_types: true,
    has_booleans: false,
    has_any_enum: false,
};

/// Anthropic's Messages API.
pub(super) const ANTHROPIC: Reader = Reader {
    needs_plain_root: true,
    ..Reader::ANY
};

/// OpenAI's functions.
pub(super) const OPENAI: Reader = Reader {
    needs_plain_root: true,
    needs_items: true,
    ..Reader::ANY
};
