//! Published schemas: of arguments, and of structured output.

use crate::host::tool;
use expect_test::{Expect, expect};
use jsonschema::Validator;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    num::NonZeroU16,
    sync::LazyLock,
};
use tool_runtime::{Context, Dispatcher, Json, Provider as _, Registry, tool_server};

/// A way to go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Move {
    /// To the left.
    Left,
    /// To the right,
    /// not wrong.
    Right,
    Back,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Plain {
    OneWay,
    OtherWay,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
enum External {
    Nothing,
    /// A circle.
    Circle {
        radius: f64,
    },
    Pair(u8, u8),
    Named(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Internal {
    /// By mail.
    Mail { address: String },
    /// By phone.
    Phone {
        number: String,
        extension: Option<u16>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "value")]
enum Adjacent {
    Count(u32),
    Text(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
}

/// A person to write to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Person {
    /// First and last name.
    #[schemars(length(min = 1, max = 80))]
    name: String,
    #[schemars(range(min = 0, max = 150))]
    age: u8,
    #[schemars(email)]
    mail: Option<String>,
    #[schemars(regex(pattern = "^[A-Z]{2}$"))]
    country: String,
    address: Address,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Address {
    city: String,
    #[serde(default)]
    lines: Vec<String>,
}

/// A folder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Folder {
    #[schemars(length(min = 1))]
    name: String,
    folders: Vec<Folder>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Query {
    /// What to look for.
    text: String,
    #[serde(default)]
    limit: Option<u32>,
}

macro_rules! server {
    ($($name:ident: $ty:ty),* $(,)?) => {
        struct Shapes;

        #[tool_server(name = "shapes", version = "1.0.0", manual)]
        #[expect(clippy::option_option, reason = "the two say different things")]
        impl Shapes {
            $(
                /// Take it.
                #[tool]
                fn $name(
                    /// What it is.
                    it: $ty,
                ) -> String {
                    format!("{it:?}")
                }
            )*
        }
    };
}
server! {
    text: String,
    character: char,
    flag: bool,
    byte: u8,
    short: i16,
    long: i64,
    unsigned_long: u64,
    size: usize,
    float: f32,
    double: f64,
    not_zero: NonZeroU16,
    optional: Option<String>,
    nullable: Option<Option<String>>,
    optional_enum: Option<Move>,
    documented_enum: Move,
    plain_enum: Plain,
    external: External,
    internal: Internal,
    adjacent: Adjacent,
    untagged: Untagged,
    value: Value,
    values: Vec<Value>,
    object: Map<String, Value>,
    optional_value: Option<Value>,
    list: Vec<String>,
    set: BTreeSet<u8>,
    map: BTreeMap<String, i32>,
    pair: (String, u8),
    array: [f64; 3],
    person: Person,
    people: Vec<Person>,
    folder: Folder,
    address: IpAddr,
}

fn registry() -> Registry {
    Registry::empty().with(Shapes).expect("one server")
}

#[track_caller]
fn check(name: &str, expect: Expect) {
    let tool = tool(&registry(), name);
    expect.assert_eq(&format!(
        "{:#}",
        Value::Object((*tool.input_schema).clone())
    ));
}

/// Checks the only property.
#[track_caller]
fn check_property(name: &str, expect: Expect) {
    let tool = tool(&registry(), name);
    expect.assert_eq(&tool.input_schema["properties"]["it"].to_string());
}

#[test]
fn a_tool_without_arguments_takes_an_empty_object() {
    struct Nothing;
    #[tool_server(name = "nothing", version = "1.0.0", manual)]
    impl Nothing {
        /// Take nothing.
        #[tool]
        fn nothing() {}
    }
    let registry = Registry::empty().with(Nothing).unwrap();
    let schema = &tool(&registry, "nothing").input_schema;
    expect![[r#"{"type":"object","properties":{},"additionalProperties":false}"#]]
        .assert_eq(&Value::Object((**schema).clone()).to_string());
}

#[test]
fn a_text() {
    check(
        "text",
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "it": {
                  "type": "string",
                  "description": "What it is."
                }
              },
              "required": [
                "it"
              ],
              "additionalProperties": false
            }"#]],
    );
}

#[test]
fn scalars() {
    check_property(
        "character",
        expect![[r#"{"type":"string","minLength":1,"maxLength":1,"description":"What it is."}"#]],
    );
    check_property(
        "flag",
        expect![[r#"{"type":"boolean","description":"What it is."}"#]],
    );
    check_property(
        "byte",
        expect![[r#"{"type":"integer","maximum":255,"minimum":0,"description":"What it is."}"#]],
    );
    check_property(
        "short",
        expect![[
            r#"{"type":"integer","maximum":32767,"minimum":-32768,"description":"What it is."}"#
        ]],
    );
    check_property(
        "long",
        expect![[r#"{"type":"integer","description":"What it is."}"#]],
    );
    check_property(
        "unsigned_long",
        expect![[r#"{"type":"integer","minimum":0,"description":"What it is."}"#]],
    );
    check_property(
        "size",
        expect![[r#"{"type":"integer","minimum":0,"description":"What it is."}"#]],
    );
    check_property(
        "float",
        expect![[r#"{"type":"number","description":"What it is."}"#]],
    );
    check_property(
        "double",
        expect![[r#"{"type":"number","description":"What it is."}"#]],
    );
    check_property(
        "not_zero",
        expect![[r#"{"type":"integer","maximum":65535,"minimum":1,"description":"What it is."}"#]],
    );
    check_property(
        "address",
        expect![[r#"{"type":"string","format":"ip","description":"What it is."}"#]],
    );
}

#[test]
fn an_optional_argument_is_not_required_and_not_nullable() {
    check(
        "optional",
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "it": {
                  "type": "string",
                  "description": "What it is."
                }
              },
              "additionalProperties": false
            }"#]],
    );
    check(
        "optional_enum",
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "it": {
                  "description": "What it is.\nA way to go.\n- `Left`: To the left.\n- `Right`: To the right, not wrong.",
                  "type": "string",
                  "enum": [
                    "Back",
                    "Left",
                    "Right"
                  ]
                }
              },
              "additionalProperties": false
            }"#]],
    );
}

#[test]
fn an_option_of_an_option_is_nullable_too() {
    check(
        "nullable",
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "it": {
                  "type": [
                    "string",
                    "null"
                  ],
                  "description": "What it is."
                }
              },
              "additionalProperties": false
            }"#]],
    );
}

#[test]
fn sch_039_documented_variants_are_an_enum_with_docs_in_the_description() {
    check_property(
        "documented_enum",
        expect![[
            r#"{"description":"What it is.\nA way to go.\n- `Left`: To the left.\n- `Right`: To the right, not wrong.","type":"string","enum":["Back","Left","Right"]}"#
        ]],
    );
    check_property(
        "plain_enum",
        expect![[
            r#"{"type":"string","enum":["one-way","other-way"],"description":"What it is."}"#
        ]],
    );
}

#[test]
fn sch_040_any_value_is_an_empty_schema_with_a_description() {
    check_property("value", expect![[r#"{"description":"What it is."}"#]]);
    check_property(
        "optional_value",
        expect![[r#"{"description":"What it is."}"#]],
    );
    check_property(
        "values",
        expect![[r#"{"type":"array","items":{},"description":"What it is."}"#]],
    );
    check_property(
        "object",
        expect![[r#"{"type":"object","additionalProperties":true,"description":"What it is."}"#]],
    );
}

#[test]
fn collections() {
    check_property(
        "list",
        expect![[r#"{"type":"array","items":{"type":"string"},"description":"What it is."}"#]],
    );
    check_property(
        "set",
        expect![[
            r#"{"type":"array","uniqueItems":true,"items":{"type":"integer","maximum":255,"minimum":0},"description":"What it is."}"#
        ]],
    );
    check_property(
        "map",
        expect![[
            r#"{"type":"object","additionalProperties":{"type":"integer","minimum":-2147483648,"maximum":2147483647},"description":"What it is."}"#
        ]],
    );
    check_property(
        "pair",
        expect![[
            r#"{"type":"array","prefixItems":[{"type":"string"},{"type":"integer","maximum":255,"minimum":0}],"minItems":2,"maxItems":2,"description":"What it is."}"#
        ]],
    );
    check_property(
        "array",
        expect![[
            r#"{"type":"array","items":{"type":"number"},"minItems":3,"maxItems":3,"description":"What it is."}"#
        ]],
    );
}

#[test]
fn an_externally_tagged_enum() {
    check_property(
        "external",
        expect![[
            r#"{"oneOf":[{"type":"string","enum":["Nothing"]},{"type":"object","properties":{"Circle":{"type":"object","properties":{"radius":{"type":"number"}},"required":["radius"]}},"required":["Circle"],"additionalProperties":false,"description":"A circle."},{"type":"object","properties":{"Pair":{"type":"array","prefixItems":[{"type":"integer","maximum":255,"minimum":0},{"type":"integer","maximum":255,"minimum":0}],"minItems":2,"maxItems":2}},"required":["Pair"],"additionalProperties":false},{"type":"object","properties":{"Named":{"type":"string"}},"required":["Named"],"additionalProperties":false}],"description":"What it is."}"#
        ]],
    );
}

#[test]
fn an_internally_tagged_enum() {
    check_property(
        "internal",
        expect![[
            r#"{"oneOf":[{"type":"object","properties":{"kind":{"type":"string","const":"mail"},"address":{"type":"string"}},"required":["kind","address"],"description":"By mail."},{"type":"object","properties":{"kind":{"type":"string","const":"phone"},"number":{"type":"string"},"extension":{"type":["integer","null"],"maximum":65535,"minimum":0}},"required":["kind","number"],"description":"By phone."}],"description":"What it is."}"#
        ]],
    );
}

#[test]
fn an_adjacently_tagged_enum() {
    check_property(
        "adjacent",
        expect![[
            r#"{"oneOf":[{"type":"object","properties":{"kind":{"type":"string","const":"Count"},"value":{"type":"integer","minimum":0,"maximum":4294967295}},"required":["kind","value"]},{"type":"object","properties":{"kind":{"type":"string","const":"Text"},"value":{"type":"string"}},"required":["kind","value"]}],"description":"What it is."}"#
        ]],
    );
}

#[test]
fn an_untagged_enum() {
    check_property(
        "untagged",
        expect![[
            r#"{"anyOf":[{"type":"integer"},{"type":"string"}],"description":"What it is."}"#
        ]],
    );
}

#[test]
fn a_structure_brings_its_own_docs_and_rules() {
    check(
        "person",
        expect![[r#"
            {
              "type": "object",
              "properties": {
                "it": {
                  "type": "object",
                  "properties": {
                    "name": {
                      "type": "string",
                      "description": "First and last name.",
                      "minLength": 1,
                      "maxLength": 80
                    },
                    "age": {
                      "type": "integer",
                      "maximum": 150,
                      "minimum": 0
                    },
                    "mail": {
                      "type": [
                        "string",
                        "null"
                      ],
                      "format": "email"
                    },
                    "country": {
                      "type": "string",
                      "pattern": "^[A-Z]{2}$"
                    },
                    "address": {
                      "type": "object",
                      "additionalProperties": false,
                      "properties": {
                        "city": {
                          "type": "string"
                        },
                        "lines": {
                          "type": "array",
                          "items": {
                            "type": "string"
                          },
                          "default": []
                        }
                      },
                      "required": [
                        "city"
                      ]
                    }
                  },
                  "required": [
                    "name",
                    "age",
                    "country",
                    "address"
                  ],
                  "description": "What it is.\nA person to write to."
                }
              },
              "required": [
                "it"
              ],
              "additionalProperties": false
            }"#]],
    );
}

#[test]
fn a_recursive_type_is_kept_apart() {
    check(
        "folder",
        expect![[r##"
            {
              "type": "object",
              "properties": {
                "it": {
                  "type": "object",
                  "properties": {
                    "name": {
                      "type": "string",
                      "minLength": 1
                    },
                    "folders": {
                      "type": "array",
                      "items": {
                        "$ref": "#/$defs/Folder"
                      }
                    }
                  },
                  "required": [
                    "name",
                    "folders"
                  ],
                  "description": "What it is.\nA folder."
                }
              },
              "required": [
                "it"
              ],
              "additionalProperties": false,
              "$defs": {
                "Folder": {
                  "type": "object",
                  "properties": {
                    "name": {
                      "type": "string",
                      "minLength": 1
                    },
                    "folders": {
                      "type": "array",
                      "items": {
                        "$ref": "#/$defs/Folder"
                      }
                    }
                  },
                  "required": [
                    "name",
                    "folders"
                  ],
                  "description": "A folder."
                }
              }
            }"##]],
    );
}

struct Rules;

#[tool_server(name = "rules", version = "1.0.0", manual)]
impl Rules {
    /// Take numbers.
    #[tool]
    fn numbers(
        #[arg(range = 1..=14)] days: u8,
        #[arg(range = 1..)] page: u64,
        #[arg(range = ..10)] below: i64,
        #[arg(range = -90.0..=90.0)] latitude: f64,
        #[arg(range = 0.1..0.7)] share: f32,
        #[arg(range = 2..=4)] optional: Option<i32>,
    ) -> String {
        format!("{days} {page} {below} {latitude} {share} {optional:?}")
    }

    /// Take texts.
    #[tool]
    fn texts(
        #[arg(length = 1..=200)] short: String,
        #[arg(length = ..5, pattern = "^[a-z]+$")] word: String,
        #[arg(format = "email")] email: String,
        #[arg(format = "uri")] uri: String,
        #[arg(format = "date")] date: String,
        #[arg(format = "date-time")] date_time: String,
        #[arg(format = "uuid")] uuid: String,
    ) -> String {
        format!("{short} {word} {email} {uri} {date} {date_time} {uuid}")
    }

    /// Take collections.
    #[tool]
    fn collections(
        #[arg(length = 1..=3)] list: Vec<String>,
        #[arg(length = 2..)] map: BTreeMap<String, u8>,
        #[arg(length = ..1 << 4)] bits: Vec<bool>,
    ) -> String {
        format!("{list:?} {map:?} {bits:?}")
    }

    /// Take defaults and examples.
    #[tool(examples(json!({ "way": "Right" })))]
    fn defaults(
        #[arg(default = Move::Left, example = Move::Back, example = Move::Right)] way: Move,
        /// A person.
        #[arg(name = "as", default = "you".to_owned())]
        person: String,
        #[arg(default = None)] nothing: Option<u8>,
        #[arg(default = Some(7))] something: Option<u8>,
    ) -> String {
        format!("{way:?} {person} {nothing:?} {something:?}")
    }

    /// Take it whole.
    #[tool]
    fn whole(#[arg(flatten)] query: Query) -> String {
        format!("{query:?}")
    }

    /// Take one of several wholes.
    #[tool]
    fn tagged(#[arg(flatten)] by: Internal) -> String {
        format!("{by:?}")
    }

    /// Take a whole that holds itself.
    #[tool]
    fn recursive(#[arg(flatten)] folder: Folder) -> String {
        format!("{folder:?}")
    }
}

#[track_caller]
fn check_rules(name: &str, expect: Expect) {
    let registry = Registry::empty().with(Rules).unwrap();
    let schema = Value::Object((*tool(&registry, name).input_schema).clone());
    let mut lines = Vec::new();
    for (key, value) in schema.as_object().unwrap() {
        if key == "properties" {
            let properties = value.as_object().unwrap().iter();
            lines.extend(properties.map(|(name, it)| format!("  {name}: {it}")));
        } else {
            lines.push(format!("{key}: {value}"));
        }
    }
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn rules_of_numbers() {
    check_rules(
        "numbers",
        expect![[r#"
            type: "object"
              days: {"type":"integer","maximum":14,"minimum":1}
              page: {"type":"integer","minimum":1}
              below: {"type":"integer","exclusiveMaximum":10}
              latitude: {"type":"number","minimum":-90.0,"maximum":90.0}
              share: {"type":"number","minimum":0.1,"exclusiveMaximum":0.7}
              optional: {"type":"integer","minimum":2,"maximum":4}
            required: ["days","page","below","latitude","share"]
            additionalProperties: false"#]],
    );
}

#[test]
fn rules_of_texts() {
    check_rules(
        "texts",
        expect![[r#"
            type: "object"
              short: {"type":"string","minLength":1,"maxLength":200}
              word: {"type":"string","maxLength":4,"pattern":"^[a-z]+$"}
              email: {"type":"string","format":"email"}
              uri: {"type":"string","format":"uri"}
              date: {"type":"string","format":"date"}
              date_time: {"type":"string","format":"date-time"}
              uuid: {"type":"string","format":"uuid"}
            required: ["short","word","email","uri","date","date_time","uuid"]
            additionalProperties: false"#]],
    );
}

#[test]
fn rules_of_collections() {
    check_rules(
        "collections",
        expect![[r#"
            type: "object"
              list: {"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3}
              map: {"type":"object","additionalProperties":{"type":"integer","maximum":255,"minimum":0},"minProperties":2}
              bits: {"type":"array","items":{"type":"boolean"},"maxItems":15}
            required: ["list","map","bits"]
            additionalProperties: false"#]],
    );
}

#[test]
fn defaults_and_examples() {
    check_rules(
        "defaults",
        expect![[r#"
            type: "object"
              way: {"description":"A way to go.\n- `Left`: To the left.\n- `Right`: To the right, not wrong.","type":"string","enum":["Back","Left","Right"],"examples":["Back","Right"],"default":"Left"}
              as: {"type":"string","description":"A person.","default":"you"}
              nothing: {"type":"integer","maximum":255,"minimum":0}
              something: {"type":"integer","maximum":255,"minimum":0,"default":7}
            additionalProperties: false
            examples: [{"way":"Right"}]"#]],
    );
}

#[test]
fn one_type_can_be_the_whole_object() {
    check_rules(
        "whole",
        expect![[r#"
            type: "object"
              text: {"type":"string","description":"What to look for."}
              limit: {"type":["integer","null"],"default":null,"minimum":0,"maximum":4294967295}
            required: ["text"]"#]],
    );
    check_rules(
        "tagged",
        expect![[r#"
            oneOf: [{"type":"object","properties":{"kind":{"type":"string","const":"mail"},"address":{"type":"string"}},"required":["kind","address"],"description":"By mail."},{"type":"object","properties":{"kind":{"type":"string","const":"phone"},"number":{"type":"string"},"extension":{"type":["integer","null"],"maximum":65535,"minimum":0}},"required":["kind","number"],"description":"By phone."}]
            type: "object""#]],
    );
    check_rules(
        "recursive",
        expect![[r##"
            type: "object"
              name: {"type":"string","minLength":1}
              folders: {"type":"array","items":{"$ref":"#/$defs/Folder"}}
            required: ["name","folders"]
            description: "A folder."
            $defs: {"Folder":{"type":"object","properties":{"name":{"type":"string","minLength":1},"folders":{"type":"array","items":{"$ref":"#/$defs/Folder"}}},"required":["name","folders"],"description":"A folder."}}"##]],
    );
}

/// Every schema inside of a schema.
fn each(schema: &Value, visit: &mut impl FnMut(&Value)) {
    visit(schema);
    let Value::Object(object) = schema else {
        return;
    };
    for (keyword, value) in object {
        match keyword.as_str() {
            "properties" | "$defs" => value
                .as_object()
                .unwrap()
                .values()
                .for_each(|it| each(it, visit)),
            "items" | "not" => each(value, visit),
            "additionalProperties" if value.is_object() => each(value, visit),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => value
                .as_array()
                .unwrap()
                .iter()
                .for_each(|it| each(it, visit)),
            _ => {}
        }
    }
}

#[track_caller]
fn check_sound(schema: &Map<String, Value>) {
    let schema = Value::Object(schema.clone());
    assert!(
        jsonschema::meta::is_valid(&schema),
        "not a schema: {schema:#}"
    );
    assert_eq!(schema["type"], "object", "{schema:#}");
    assert!(schema["properties"].is_object(), "{schema:#}");
    each(&schema, &mut |it| {
        assert!(it.is_object(), "{it} is a flag, in {schema:#}");
        if let Some(Value::String(reference)) = it.get("$ref") {
            let target = schema.pointer(reference.strip_prefix('#').unwrap());
            assert!(target.is_some(), "{reference} leads nowhere: {schema:#}");
        }
    });
}

#[test]
fn every_published_schema_is_sound() {
    let registry = registry()
        .with(Rules)
        .and_then(|it| it.with(Outputs))
        .unwrap();
    let servers = registry.servers();
    let tools: Vec<_> = servers.iter().flat_map(|it| &it.tools).collect();
    assert!(tools.len() > 40);
    for tool in tools {
        check_sound(&tool.input_schema);
        if let Some(schema) = &tool.output_schema {
            check_sound(schema);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Item {
    id: String,
    ended_at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Skipping {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    tags: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Tree {
    value: i64,
    children: Vec<Tree>,
}

struct Outputs;

#[tool_server(name = "outputs", version = "1.0.0", manual)]
impl Outputs {
    /// Give text.
    #[tool]
    fn text() -> String {
        "text".to_owned()
    }

    /// Give an item.
    #[tool]
    fn item(#[arg(flatten)] item: Item) -> Json<Item> {
        Json(item)
    }

    /// Give what leaves fields out.
    #[tool]
    fn skipping(#[arg(flatten)] item: Skipping) -> Json<Skipping> {
        Json(item)
    }

    /// Give a list.
    #[tool]
    fn list(items: Vec<Item>) -> Json<Vec<Item>> {
        Json(items)
    }

    /// Give something or nothing.
    #[tool]
    fn maybe(item: Option<Item>) -> Json<Option<Item>> {
        Json(item)
    }

    /// Give a number.
    #[tool]
    fn number(number: u64) -> Json<u64> {
        Json(number)
    }

    /// Give anything.
    #[tool]
    fn any(value: Value) -> Json<Value> {
        Json(value)
    }

    /// Give a map.
    #[tool]
    fn map(map: BTreeMap<String, u8>) -> Json<BTreeMap<String, u8>> {
        Json(map)
    }

    /// Give one of several.
    #[tool]
    fn tagged(#[arg(flatten)] by: Internal) -> Json<Internal> {
        Json(by)
    }

    /// Give one of several.
    #[tool]
    fn external(it: External) -> Json<External> {
        Json(it)
    }

    /// Give one of several.
    #[tool]
    fn adjacent(it: Adjacent) -> Json<Adjacent> {
        Json(it)
    }

    /// Give one of several words.
    #[tool]
    fn word(it: Move) -> Json<Move> {
        Json(it)
    }

    /// Give a tree.
    #[tool]
    fn tree(#[arg(flatten)] tree: Tree) -> Json<Tree> {
        Json(tree)
    }

    /// Give a pair.
    #[tool]
    fn pair(it: (i32, String)) -> Json<(i32, String)> {
        Json(it)
    }

    /// Give a result.
    #[tool]
    async fn result(item: Item) -> Result<Json<Item>, tool_runtime::ToolError> {
        Ok(Json(item))
    }
}

fn outputs() -> Registry {
    Registry::empty().with(Outputs).unwrap()
}

#[track_caller]
fn check_output(name: &str, expect: Expect) {
    let tool = tool(&outputs(), name);
    let schema = tool.output_schema.as_ref();
    let schema = schema.map(|it| Value::Object((**it).clone()));
    expect.assert_eq(&schema.map_or("none".to_owned(), |it| it.to_string()));
}

#[test]
fn text_has_no_output_schema() {
    check_output("text", expect!["none"]);
}

#[test]
fn sch_037_an_option_that_is_written_as_null_is_required_and_nullable() {
    check_output(
        "item",
        expect![[
            r#"{"type":"object","properties":{"id":{"type":"string"},"ended_at":{"type":["string","null"]}},"required":["id","ended_at"]}"#
        ]],
    );
    check_output(
        "result",
        expect![[
            r#"{"type":"object","properties":{"id":{"type":"string"},"ended_at":{"type":["string","null"]}},"required":["id","ended_at"]}"#
        ]],
    );
}

#[test]
fn sch_037_an_option_that_is_left_out_is_not_required() {
    check_output(
        "skipping",
        expect![[
            r#"{"type":"object","properties":{"id":{"type":"string"},"ended_at":{"type":["string","null"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["id"]}"#
        ]],
    );
}

#[test]
fn what_is_no_object_is_wrapped() {
    check_output(
        "list",
        expect![[
            r#"{"type":"object","properties":{"result":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"ended_at":{"type":["string","null"]}},"required":["id","ended_at"]}}},"required":["result"]}"#
        ]],
    );
    check_output(
        "maybe",
        expect![[
            r#"{"type":"object","properties":{"result":{"type":["object","null"],"properties":{"id":{"type":"string"},"ended_at":{"type":["string","null"]}},"required":["id","ended_at"]}},"required":["result"]}"#
        ]],
    );
    check_output(
        "number",
        expect![[
            r#"{"type":"object","properties":{"result":{"type":"integer","minimum":0}},"required":["result"]}"#
        ]],
    );
    check_output(
        "any",
        expect![[r#"{"type":"object","properties":{"result":{}},"required":["result"]}"#]],
    );
    check_output(
        "word",
        expect![[
            r#"{"type":"object","properties":{"result":{"description":"A way to go.\n- `Left`: To the left.\n- `Right`: To the right, not wrong.","type":"string","enum":["Back","Left","Right"]}},"required":["result"]}"#
        ]],
    );
    check_output(
        "pair",
        expect![[
            r#"{"type":"object","properties":{"result":{"type":"array","prefixItems":[{"type":"integer","minimum":-2147483648,"maximum":2147483647},{"type":"string"}],"minItems":2,"maxItems":2}},"required":["result"]}"#
        ]],
    );
}

#[test]
fn what_is_an_object_is_not_wrapped() {
    check_output(
        "map",
        expect![[
            r#"{"type":"object","additionalProperties":{"type":"integer","maximum":255,"minimum":0},"properties":{}}"#
        ]],
    );
    check_output(
        "tagged",
        expect![[
            r#"{"oneOf":[{"type":"object","properties":{"kind":{"type":"string","const":"mail"},"address":{"type":"string"}},"required":["kind","address"],"description":"By mail."},{"type":"object","properties":{"kind":{"type":"string","const":"phone"},"number":{"type":"string"},"extension":{"type":["integer","null"],"maximum":65535,"minimum":0}},"required":["kind","number","extension"],"description":"By phone."}],"type":"object","properties":{}}"#
        ]],
    );
    check_output(
        "adjacent",
        expect![[
            r#"{"oneOf":[{"type":"object","properties":{"kind":{"type":"string","const":"Count"},"value":{"type":"integer","minimum":0,"maximum":4294967295}},"required":["kind","value"]},{"type":"object","properties":{"kind":{"type":"string","const":"Text"},"value":{"type":"string"}},"required":["kind","value"]}],"type":"object","properties":{}}"#
        ]],
    );
    check_output(
        "tree",
        expect![[
            r##"{"type":"object","properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/Tree"}}},"required":["value","children"],"$defs":{"Tree":{"type":"object","properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/Tree"}}},"required":["value","children"]}}}"##
        ]],
    );
}

struct Host {
    dispatcher: Dispatcher,
    validators: HashMap<String, Validator>,
}

static HOST: LazyLock<Host> = LazyLock::new(|| {
    let servers = outputs().servers();
    let tools = servers.iter().flat_map(|it| &it.tools);
    let validators = tools.filter_map(|it| {
        let schema = Value::Object((**it.output_schema.as_ref()?).clone());
        let validator = jsonschema::validator_for(&schema).expect("it is a schema");
        Some((it.name.clone(), validator))
    });
    Host {
        validators: validators.collect(),
        dispatcher: Dispatcher::new(outputs()).expect("one server"),
    }
});

/// Calls a tool, and checks its structured output against the schema that it publishes.
fn call(name: &str, arguments: &Value) -> Result<Value, TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without drivers");
    let context = Context::default();
    let arguments = arguments.to_string();
    let output = runtime.block_on(HOST.dispatcher.call(name, &arguments, &context));
    let output = output.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert!(!output.is_error, "{}", output.to_text());
    let structured = output.structured.as_ref().expect("it is structured");
    prop_assert_eq!(structured.get(), output.to_text());
    let structured: Value = serde_json::from_str(structured.get()).expect("it is JSON");
    let checked = HOST.validators[name].validate(&structured);
    checked.map_err(|error| TestCaseError::fail(format!("{structured}: {error}")))?;
    Ok(structured)
}

fn item() -> impl Strategy<Value = Item> {
    (".*", proptest::option::of(".*")).prop_map(|(id, ended_at)| Item { id, ended_at })
}

fn skipping() -> impl Strategy<Value = Skipping> {
    let tags = proptest::collection::vec(".*", 0..3);
    (".*", proptest::option::of(".*"), tags).prop_map(|(id, ended_at, tags)| Skipping {
        id,
        ended_at,
        tags,
    })
}

fn internal() -> impl Strategy<Value = Internal> {
    prop_oneof![
        ".*".prop_map(|address| Internal::Mail { address }),
        (".*", any::<Option<u16>>())
            .prop_map(|(number, extension)| Internal::Phone { number, extension }),
    ]
}

fn external() -> impl Strategy<Value = External> {
    prop_oneof![
        Just(External::Nothing),
        (-1e9..1e9).prop_map(|radius| External::Circle { radius }),
        any::<(u8, u8)>().prop_map(|(one, other)| External::Pair(one, other)),
        ".*".prop_map(External::Named),
    ]
}

fn adjacent() -> impl Strategy<Value = Adjacent> {
    prop_oneof![
        any::<u32>().prop_map(Adjacent::Count),
        ".*".prop_map(Adjacent::Text)
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = any::<i64>().prop_map(|value| Tree {
        value,
        children: Vec::new(),
    });
    leaf.prop_recursive(3, 12, 3, |inner| {
        (any::<i64>(), proptest::collection::vec(inner, 0..3))
            .prop_map(|(value, children)| Tree { value, children })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sch_037_every_output_validates_against_its_published_schema(
        item in item(),
        items in proptest::collection::vec(item(), 0..3),
        skipping in skipping(),
        number: u64,
        map: HashMap<String, u8>,
        internal in internal(),
        external in external(),
        adjacent in adjacent(),
        tree in tree(),
        pair: (i32, String),
    ) {
        prop_assert_eq!(call("item", &json!(item))?, json!(item));
        prop_assert_eq!(call("skipping", &json!(skipping))?, json!(skipping));
        prop_assert_eq!(call("list", &json!({ "items": items }))?, json!({ "result": items }));
        prop_assert_eq!(call("maybe", &json!({ "item": item }))?, json!({ "result": item }));
        prop_assert_eq!(call("maybe", &json!({}))?, json!({ "result": null }));
        prop_assert_eq!(call("number", &json!({ "number": number }))?, json!({ "result": number }));
        prop_assert_eq!(call("any", &json!({ "value": item }))?, json!({ "result": item }));
        prop_assert_eq!(call("map", &json!({ "map": map }))?, json!(map));
        prop_assert_eq!(call("tagged", &json!(internal))?, json!(internal));
        prop_assert_eq!(call("external", &json!({ "it": external }))?, json!({ "result": external }));
        prop_assert_eq!(call("adjacent", &json!({ "it": adjacent }))?, json!(adjacent));
        prop_assert_eq!(call("tree", &json!(tree))?, json!(tree));
        prop_assert_eq!(call("pair", &json!({ "it": pair }))?, json!({ "result": pair }));
        prop_assert_eq!(call("result", &json!({ "item": item }))?, json!(item));
    }
}
