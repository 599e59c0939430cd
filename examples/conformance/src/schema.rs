//! A tool whose whole schema is written by hand.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;
use tool_runtime::tool_server;

/// A person, and how to reach them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Contact {
    name: Option<String>,
    #[serde(rename = "contactMethod")]
    method: Option<String>,
    address: Option<Address>,
    phone: Option<String>,
    email: Option<String>,
}

/// Where somebody lives.
#[derive(Debug, Deserialize)]
pub(crate) struct Address {
    street: Option<String>,
    city: Option<String>,
}

impl JsonSchema for Contact {
    fn schema_name() -> Cow<'static, str> {
        "Contact".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {
                        "street": { "type": "string" },
                        "city": { "type": "string" },
                    },
                },
            },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" },
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        })
    }
}

/// A schema with all that JSON Schema 2020-12 has.
#[tool_server(name = "schema", version = "1.0.0")]
pub(crate) mod server {
    use super::Contact;

    /// Take a contact by a schema that types can't express.
    #[tool(read_only)]
    pub(crate) fn json_schema_2020_12_tool(#[arg(flatten)] contact: Contact) -> String {
        let Contact {
            name,
            method,
            address,
            phone,
            email,
        } = contact;
        let city = address.and_then(|it| it.city.or(it.street));
        let way = method.or(phone).or(email);
        format!("{name:?} in {city:?} by {way:?}")
    }
}
