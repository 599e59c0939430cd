//! The catalog for a model's API, and what the model answers.

use crate::{
    external::{External, external, external_tool},
    host::{caller, context, limits, recorded, view},
};
use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tool_runtime::{
    Content, Dispatcher, InputRequired, Json, Provider, Question, Registry, Selection, ToolError,
    View,
    export::{anthropic, mcp, openai},
    tool_server,
};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "lowercase")]
enum Place {
    Name {
        name: String,
    },
    Point {
        latitude: f64,
        longitude: f64,
        height: Option<f64>,
    },
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Station {
    name: String,
    #[serde(default)]
    count: u8,
    parent: Option<Box<Station>>,
}

#[derive(Serialize, JsonSchema)]
struct Temperature {
    /// In the unit that was asked for.
    degrees: f64,
}

struct Weather;

#[tool_server(name = "weather-service", version = "1.0.0", manual)]
impl Weather {
    /// Get the current temperature.
    #[tool(
        title = "Temperature",
        read_only,
        idempotent,
        open_world = true,
        examples(json!({ "latitude": 52.5 })),
        meta("example.org/cost" = 1)
    )]
    async fn get_temperature(
        /// In degrees north.
        #[arg(range = -90.0..=90.0)]
        latitude: f64,
        /// Unit of the answer.
        #[arg(default = Unit::Celsius)]
        unit: Unit,
        /// Name of the caller.
        #[arg(length = 1..=20)]
        name: Option<String>,
    ) -> Result<Json<Temperature>, ToolError> {
        if latitude > 89.0 {
            return Err(format!("too cold for {unit:?} and {name:?}").into());
        }
        Ok(Json(Temperature { degrees: 21.5 }))
    }

    /// Draw a map.
    #[tool(deprecated = "use `get_temperature` instead")]
    fn draw(place: Place) -> Vec<Content> {
        vec![
            Content::text(format!("{place:?}")),
            Content::image([1, 2, 3], "image/png"),
            Content::audio([4], "audio/wav"),
            Content::resource("map://1", "text/plain", "a map"),
            Content::blob("map://2", "image/png", [5]),
            Content::link("map://3", "the third"),
        ]
    }
}

struct Door;

#[tool_server(name = "door", version = "1.0.0", manual)]
impl Door {
    /// Let somebody in.
    #[tool]
    fn open() -> InputRequired {
        let question = |method: &'static str, params: Value| Question {
            key: method.to_owned(),
            method: method.into(),
            params,
        };
        InputRequired {
            questions: vec![
                question("elicitation/create", json!({ "message": "Who is there?" })),
                question("roots/list", json!({})),
            ],
            state: None,
        }
    }
}

struct Shapes;

#[tool_server(name = "shapes", version = "1.0.0", manual)]
impl Shapes {
    /// Take nested things.
    #[tool]
    fn nested(
        station: Station,
        place: Option<Place>,
        tags: Vec<String>,
        #[arg(format = "uri")] link: Option<String>,
        /// When.
        #[arg(format = "date")]
        day: Option<String>,
    ) -> String {
        format!("{station:?} {place:?} {tags:?} {link:?} {day:?}")
    }

    /// Take nothing.
    #[tool]
    fn nothing() {}

    /// Take a map, which strict mode can't say.
    #[tool]
    fn map(map: BTreeMap<String, u8>) -> String {
        format!("{map:?}")
    }

    /// Take anything, which strict mode can't say.
    #[tool]
    fn anything(value: Value) -> String {
        value.to_string()
    }

    /// Take a pair, which strict mode can't say.
    #[tool]
    fn pair(pair: (u8, u8)) -> String {
        format!("{pair:?}")
    }

    /// Take one of several wholes, which strict mode can't say.
    #[tool]
    fn choice(#[arg(flatten)] place: Place) -> String {
        format!("{place:?}")
    }
}

fn weather() -> Registry {
    Registry::empty().with(Weather).unwrap()
}

#[track_caller]
fn check(tools: Vec<Value>, expect: Expect) {
    let tools: Vec<String> = tools.iter().map(Value::to_string).collect();
    expect.assert_eq(&tools.join("\n"));
}

#[test]
fn tools_for_mcp() {
    check(
        mcp::tools(&view(weather()), &caller()),
        expect![[r#"
            {"name":"get_temperature","title":"Temperature","description":"Get the current temperature.","inputSchema":{"type":"object","properties":{"latitude":{"type":"number","description":"In degrees north.","minimum":-90.0,"maximum":90.0},"unit":{"type":"string","enum":["celsius","fahrenheit"],"description":"Unit of the answer.","default":"celsius"},"name":{"type":"string","description":"Name of the caller.","minLength":1,"maxLength":20}},"required":["latitude"],"additionalProperties":false,"examples":[{"latitude":52.5}]},"outputSchema":{"type":"object","properties":{"degrees":{"type":"number","description":"In the unit that was asked for."}},"required":["degrees"]},"annotations":{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":true},"_meta":{"example.org/cost":1}}
            {"name":"draw","description":"Deprecated: use `get_temperature` instead.\nDraw a map.","inputSchema":{"type":"object","properties":{"place":{"oneOf":[{"type":"object","properties":{"by":{"type":"string","const":"name"},"name":{"type":"string"}},"required":["by","name"]},{"type":"object","properties":{"by":{"type":"string","const":"point"},"latitude":{"type":"number"},"longitude":{"type":"number"},"height":{"type":["number","null"]}},"required":["by","latitude","longitude"]}]}},"required":["place"],"additionalProperties":false}}"#]],
    );
}

#[test]
fn tools_for_openai() {
    check(
        openai::tools(&view(weather()), &caller()),
        expect![[r#"
            {"type":"function","function":{"name":"get_temperature","description":"Get the current temperature.","parameters":{"type":"object","properties":{"latitude":{"type":"number","description":"In degrees north.","minimum":-90.0,"maximum":90.0},"unit":{"type":"string","enum":["celsius","fahrenheit"],"description":"Unit of the answer.","default":"celsius"},"name":{"type":"string","description":"Name of the caller.","minLength":1,"maxLength":20}},"required":["latitude"],"additionalProperties":false,"examples":[{"latitude":52.5}]}}}
            {"type":"function","function":{"name":"draw","description":"Deprecated: use `get_temperature` instead.\nDraw a map.","parameters":{"type":"object","properties":{"place":{"oneOf":[{"type":"object","properties":{"by":{"type":"string","const":"name"},"name":{"type":"string"}},"required":["by","name"]},{"type":"object","properties":{"by":{"type":"string","const":"point"},"latitude":{"type":"number"},"longitude":{"type":"number"},"height":{"type":["number","null"]}},"required":["by","latitude","longitude"]}]}},"required":["place"],"additionalProperties":false}}}"#]],
    );
}

#[test]
fn tools_for_openai_in_strict_mode() {
    check(
        openai::strict_tools(&view(weather()), &caller()),
        expect![[r#"
            {"type":"function","function":{"name":"get_temperature","description":"Get the current temperature.","parameters":{"type":"object","properties":{"latitude":{"type":"number","description":"In degrees north.","minimum":-90.0,"maximum":90.0},"unit":{"type":["string","null"],"enum":["celsius","fahrenheit",null],"description":"Unit of the answer."},"name":{"type":["string","null"],"description":"Name of the caller.","minLength":1,"maxLength":20}},"required":["latitude","unit","name"],"additionalProperties":false},"strict":true}}
            {"type":"function","function":{"name":"draw","description":"Deprecated: use `get_temperature` instead.\nDraw a map.","parameters":{"type":"object","properties":{"place":{"anyOf":[{"type":"object","properties":{"by":{"type":"string","const":"name"},"name":{"type":"string"}},"required":["by","name"],"additionalProperties":false},{"type":"object","properties":{"by":{"type":"string","const":"point"},"latitude":{"type":"number"},"longitude":{"type":"number"},"height":{"type":["number","null"]}},"required":["by","latitude","longitude","height"],"additionalProperties":false}]}},"required":["place"],"additionalProperties":false},"strict":true}}"#]],
    );
    let shapes = view(Registry::empty().with(Shapes).unwrap());
    check(
        openai::strict_tools(&shapes, &caller()),
        expect![[r##"
            {"type":"function","function":{"name":"nested","description":"Take nested things.","parameters":{"type":"object","properties":{"station":{"type":"object","properties":{"name":{"type":"string"},"count":{"type":["integer","null"],"minimum":0,"maximum":255},"parent":{"anyOf":[{"$ref":"#/$defs/Station"},{"type":"null"}]}},"required":["name","count","parent"],"additionalProperties":false},"place":{"anyOf":[{"type":"object","properties":{"by":{"type":"string","const":"name"},"name":{"type":"string"}},"required":["by","name"],"additionalProperties":false},{"type":"object","properties":{"by":{"type":"string","const":"point"},"latitude":{"type":"number"},"longitude":{"type":"number"},"height":{"type":["number","null"]}},"required":["by","latitude","longitude","height"],"additionalProperties":false},{"type":"null"}]},"tags":{"type":"array","items":{"type":"string"}},"link":{"type":["string","null"],"description":"It has the form `uri`."},"day":{"type":["string","null"],"description":"When.","format":"date"}},"$defs":{"Station":{"type":"object","properties":{"name":{"type":"string"},"count":{"type":["integer","null"],"minimum":0,"maximum":255},"parent":{"anyOf":[{"$ref":"#/$defs/Station"},{"type":"null"}]}},"required":["name","count","parent"],"additionalProperties":false}},"required":["station","place","tags","link","day"],"additionalProperties":false},"strict":true}}
            {"type":"function","function":{"name":"nothing","description":"Take nothing.","parameters":{"type":"object","properties":{},"required":[],"additionalProperties":false},"strict":true}}
            {"type":"function","function":{"name":"map","description":"Take a map, which strict mode can't say.","parameters":{"type":"object","properties":{"map":{"type":"object","additionalProperties":{"type":"integer","maximum":255,"minimum":0}}},"required":["map"],"additionalProperties":false}}}
            {"type":"function","function":{"name":"anything","description":"Take anything, which strict mode can't say.","parameters":{"type":"object","properties":{"value":{}},"required":["value"],"additionalProperties":false}}}
            {"type":"function","function":{"name":"pair","description":"Take a pair, which strict mode can't say.","parameters":{"type":"object","properties":{"pair":{"type":"array","prefixItems":[{"type":"integer","maximum":255,"minimum":0},{"type":"integer","maximum":255,"minimum":0}],"minItems":2,"maxItems":2}},"required":["pair"],"additionalProperties":false}}}
            {"type":"function","function":{"name":"choice","description":"Take one of several wholes, which strict mode can't say.","parameters":{"oneOf":[{"type":"object","properties":{"by":{"type":"string","const":"name"},"name":{"type":"string"}},"required":["by","name"]},{"type":"object","properties":{"by":{"type":"string","const":"point"},"latitude":{"type":"number"},"longitude":{"type":"number"},"height":{"type":["number","null"]}},"required":["by","latitude","longitude"]}],"type":"object","properties":{}}}}"##]],
    );
}

#[test]
fn tools_for_anthropic() {
    check(
        anthropic::tools(&view(weather()), &caller()),
        expect![[r#"
            {"name":"get_temperature","description":"Get the current temperature.","input_schema":{"type":"object","properties":{"latitude":{"type":"number","description":"In degrees north.","minimum":-90.0,"maximum":90.0},"unit":{"type":"string","enum":["celsius","fahrenheit"],"description":"Unit of the answer.","default":"celsius"},"name":{"type":"string","description":"Name of the caller.","minLength":1,"maxLength":20}},"required":["latitude"],"additionalProperties":false,"examples":[{"latitude":52.5}]}}
            {"name":"draw","description":"Deprecated: use `get_temperature` instead.\nDraw a map.","input_schema":{"type":"object","properties":{"place":{"oneOf":[{"type":"object","properties":{"by":{"type":"string","const":"name"},"name":{"type":"string"}},"required":["by","name"]},{"type":"object","properties":{"by":{"type":"string","const":"point"},"latitude":{"type":"number"},"longitude":{"type":"number"},"height":{"type":["number","null"]}},"required":["by","latitude","longitude"]}]}},"required":["place"],"additionalProperties":false}}"#]],
    );
}

/// What strict mode says about a schema (<https://platform.openai.com/docs/guides/structured-outputs>).
fn check_strict(schema: &Value, root: &Value) {
    let schema_object = schema.as_object().unwrap();
    if let Some(reference) = schema_object.get("$ref") {
        assert_eq!(schema_object.len(), 1, "a reference stands alone: {schema}");
        let path = reference.as_str().unwrap().strip_prefix('#').unwrap();
        assert!(root.pointer(path).is_some(), "{reference} leads nowhere");
        return;
    }
    for (keyword, value) in schema_object {
        match keyword.as_str() {
            "properties" | "$defs" => {
                for it in value.as_object().unwrap().values() {
                    check_strict(it, root);
                }
            }
            "items" => check_strict(value, root),
            "anyOf" => {
                for it in value.as_array().unwrap() {
                    check_strict(it, root);
                }
            }
            "format" => {
                let known = ["date", "date-time", "email", "uuid"];
                assert!(known.contains(&value.as_str().unwrap()), "{value}");
            }
            "type"
            | "description"
            | "required"
            | "additionalProperties"
            | "enum"
            | "const"
            | "minimum"
            | "maximum"
            | "minLength"
            | "maxLength"
            | "pattern"
            | "minItems"
            | "maxItems" => {}
            _ => panic!("strict mode doesn't know `{keyword}`: {schema}"),
        }
    }
    let kinds = &schema["type"];
    let is_object = kinds == "object"
        || kinds
            .as_array()
            .is_some_and(|it| it.contains(&json!("object")));
    if is_object {
        assert_eq!(schema["additionalProperties"], false, "{schema}");
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let required = schema["required"].as_array().unwrap();
        let required: Vec<&str> = required.iter().map(|it| it.as_str().unwrap()).collect();
        assert_eq!(required, names, "{schema}");
    } else {
        assert!(
            !kinds.is_null() || schema.get("anyOf").is_some(),
            "{schema}"
        );
    }
}

#[test]
fn strict_schemas_keep_to_the_rules_of_strict_mode() {
    let registry = weather().with(Shapes).unwrap();
    let mut strict = Vec::new();
    let tools = openai::strict_tools(&view(registry), &caller());
    for tool in &tools {
        let function = &tool["function"];
        if function["strict"] == true {
            let parameters = &function["parameters"];
            assert_eq!(parameters["type"], "object");
            check_strict(parameters, parameters);
            strict.push(function["name"].as_str().unwrap());
        } else {
            assert_eq!(function.get("strict"), None);
        }
    }
    assert_eq!(strict, ["nested", "nothing", "get_temperature", "draw"]);
}

/// The tools that get strict mode, of external tools with these schemas; what strict mode would refuse never does.
#[track_caller]
fn check_external(schemas: &[Value], expect: Expect) {
    let tools = schemas
        .iter()
        .enumerate()
        .map(|(index, it)| external_tool("zoo", &format!("tool_{index}"), "", it.clone()));
    let mut zoo = Arc::into_inner(external("zoo", &[])).unwrap();
    zoo.tools = tools.collect();
    let provider: Arc<dyn Provider> = Arc::new(External(vec![Arc::new(zoo)]));
    let view = View::new(&[provider], Selection::all());
    let mut lines = Vec::new();
    for tool in openai::strict_tools(&view, &caller()) {
        let parameters = &tool["function"]["parameters"];
        if tool["function"]["strict"] == true {
            check_strict(parameters, parameters);
            lines.push(parameters.to_string());
        } else {
            lines.push(format!("as it is: {parameters}"));
        }
    }
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn external_schemas_are_strict_only_where_strict_mode_can_say_them() {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    check_external(
        &[
            json!({}),
            json!({ "type": "object" }),
            object(json!({})),
            object(json!({ "x": true })),
            object(json!({ "x": {} })),
            object(json!({ "x": { "type": "array" } })),
            object(json!({ "x": { "type": "array", "items": {} } })),
            object(json!({ "x": { "enum": ["a"] } })),
            object(
                json!({ "x": { "type": "array", "items": { "type": "string" }, "uniqueItems": true } }),
            ),
            object(json!({ "x": { "type": "integer", "x-vendor": 1 } })),
            object(
                json!({ "x": { "$ref": "#/properties/y", "title": "X" }, "y": { "type": "string" } }),
            ),
            json!({ "anyOf": [{ "type": "object", "properties": {} }] }),
        ],
        expect![[r##"
            as it is: {}
            as it is: {"type":"object"}
            {"type":"object","properties":{},"required":[],"additionalProperties":false}
            as it is: {"type":"object","properties":{"x":true}}
            as it is: {"type":"object","properties":{"x":{}}}
            as it is: {"type":"object","properties":{"x":{"type":"array"}}}
            as it is: {"type":"object","properties":{"x":{"type":"array","items":{}}}}
            as it is: {"type":"object","properties":{"x":{"enum":["a"]}}}
            as it is: {"type":"object","properties":{"x":{"type":"array","items":{"type":"string"},"uniqueItems":true}}}
            as it is: {"type":"object","properties":{"x":{"type":"integer","x-vendor":1}}}
            as it is: {"type":"object","properties":{"x":{"$ref":"#/properties/y","title":"X"},"y":{"type":"string"}}}
            as it is: {"anyOf":[{"type":"object","properties":{}}]}"##]],
    );
    check_external(
        &[
            object(json!({ "x": { "type": ["number", "null"] } })),
            object(
                json!({ "x": { "type": ["null", "string"], "enum": ["a", null], "default": null } }),
            ),
            object(json!({ "x": { "type": "string", "const": "a" } })),
            json!({ "type": "object", "properties": { "x": { "type": "string" } }, "required": ["y"] }),
            json!({
                "type": "object",
                "properties": { "x": { "$ref": "#/$defs/X", "description": "It is." } },
                "$defs": { "X": { "type": "object", "properties": { "x": { "$ref": "#/$defs/X" } }, "additionalProperties": false } },
            }),
        ],
        expect![[r##"
            {"type":"object","properties":{"x":{"type":["number","null"]}},"required":["x"],"additionalProperties":false}
            {"type":"object","properties":{"x":{"type":["null","string"],"enum":["a",null]}},"required":["x"],"additionalProperties":false}
            {"type":"object","properties":{"x":{"anyOf":[{"type":"string","const":"a"},{"type":"null"}]}},"required":["x"],"additionalProperties":false}
            {"type":"object","properties":{"x":{"type":["string","null"]}},"required":["x"],"additionalProperties":false}
            {"type":"object","properties":{"x":{"anyOf":[{"$ref":"#/$defs/X"},{"type":"null"}]}},"$defs":{"X":{"type":"object","properties":{"x":{"anyOf":[{"$ref":"#/$defs/X"},{"type":"null"}]}},"required":["x"],"additionalProperties":false}},"required":["x"],"additionalProperties":false}"##]],
    );
}

fn host() -> Dispatcher {
    recorded(weather().with(Shapes).unwrap(), limits(1)).0
}

async fn check_openai(tool_call: Value, expect: Expect) {
    let answer = openai::answer(&host(), &tool_call, &context()).await;
    expect.assert_eq(&answer.to_string());
}

fn tool_call(name: &str, arguments: impl Into<Value>) -> Value {
    let arguments: Value = arguments.into();
    json!({ "id": "call_1", "type": "function", "function": { "name": name, "arguments": arguments } })
}

#[tokio::test(start_paused = true)]
async fn openai_sends_arguments_as_text() {
    check_openai(
        tool_call("get_temperature", r#"{"latitude":1}"#),
        expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"{\"degrees\":21.5}"}"#]],
    )
    .await;
    check_openai(
        tool_call("get_temperature", json!({ "latitude": 1 })),
        expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"{\"degrees\":21.5}"}"#]],
    )
    .await;
    check_openai(
        tool_call("nothing", ""),
        expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"done"}"#]],
    )
    .await;
    check_openai(
        tool_call("nothing", " \n"),
        expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"done"}"#]],
    )
    .await;
    check_openai(
        tool_call("nothing", Value::Null),
        expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"done"}"#]],
    )
    .await;
    check_openai(
        json!({ "id": "call_1", "function": { "name": "nothing" } }),
        expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"done"}"#]],
    )
    .await;
    check_openai(
        json!({ "id": "call_1", "name": "nothing", "arguments": "{}" }),
        expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"done"}"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn openai_hears_what_went_wrong() {
    check_openai(tool_call("get_temperature", r#"{"latitude":1"#), expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"the arguments of `get_temperature` are not valid, nothing was done:\n- the arguments are not JSON: EOF while parsing an object at line 1 column 13"}"#]]).await;
    check_openai(tool_call("get_temperature", "[]"), expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"the arguments of `get_temperature` are not valid, nothing was done:\n- the arguments must be an object, not []"}"#]]).await;
    check_openai(tool_call("get_temperatur", "{}"), expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"there is no tool `get_temperatur`; did you mean `get_temperature`?"}"#]]).await;
    check_openai(
        tool_call("get_temperature", r#"{"latitude":90}"#),
        expect![[
            r#"{"role":"tool","tool_call_id":"call_1","content":"too cold for Celsius and None"}"#
        ]],
    )
    .await;
    check_openai(
        json!({ "id": "call_1" }),
        expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"the call names no tool"}"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn openai_reads_other_content_in_words() {
    let point = r#"{"place":{"by":"point","latitude":1,"longitude":2}}"#;
    check_openai(tool_call("draw", point), expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"Point { latitude: 1.0, longitude: 2.0, height: None }\n[an image, image/png]\n[a sound, audio/wav]\nmap://1:\na map\n[the bytes of map://2]\nthe third: map://3"}"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn the_nulls_of_strict_mode_are_absence() {
    let nulls = r#"{"latitude":1.0,"unit":null,"name":null}"#;
    check_openai(
        tool_call("get_temperature", nulls),
        expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"{\"degrees\":21.5}"}"#]],
    )
    .await;
    let nested = r#"{"station":{"name":"a","count":null,"parent":{"name":"b","count":null,"parent":null}},"place":null,"tags":[],"link":null,"day":null}"#;
    check_openai(tool_call("nested", nested), expect![[r#"{"role":"tool","tool_call_id":"call_1","content":"Station { name: \"a\", count: 0, parent: Some(Station { name: \"b\", count: 0, parent: None }) } None [] None None"}"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn anthropic_gets_blocks() {
    let blocks = [
        json!({ "type": "tool_use", "id": "toolu_1", "name": "get_temperature", "input": { "latitude": 1 } }),
        json!({ "type": "tool_use", "id": "toolu_2", "name": "get_temperature", "input": { "latitude": 90 } }),
        json!({ "type": "tool_use", "id": "toolu_3", "name": "nothing", "input": {} }),
        json!({ "type": "tool_use", "id": "toolu_4", "name": "noting", "input": {} }),
        json!({ "type": "tool_use", "id": "toolu_5", "name": "draw", "input": { "place": { "by": "name", "name": "x" } } }),
    ];
    let (host, context) = (host(), context());
    let mut answers = Vec::new();
    for block in &blocks {
        answers.push(anthropic::answer(&host, block, &context).await);
    }
    check(
        answers,
        expect![[r#"
            {"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"{\"degrees\":21.5}"}],"is_error":false}
            {"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"too cold for Celsius and None"}],"is_error":true}
            {"type":"tool_result","tool_use_id":"toolu_3","content":[{"type":"text","text":"done"}],"is_error":false}
            {"type":"tool_result","tool_use_id":"toolu_4","content":[{"type":"text","text":"there is no tool `noting`; did you mean `nothing` or `anything`?"}],"is_error":true}
            {"type":"tool_result","tool_use_id":"toolu_5","content":[{"type":"text","text":"Name { name: \"x\" }"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQID"}},{"type":"text","text":"[a sound, audio/wav]"},{"type":"text","text":"map://1:\na map"},{"type":"text","text":"[the bytes of map://2]"},{"type":"text","text":"the third: map://3"}],"is_error":false}"#]],
    );
}

#[tokio::test(start_paused = true)]
async fn mcp_gets_results() {
    let calls = [
        json!({ "name": "get_temperature", "arguments": { "latitude": 1 } }),
        json!({ "name": "get_temperature", "arguments": { "latitude": 91 } }),
        json!({ "name": "nothing" }),
        json!({ "name": "draw", "arguments": { "place": { "by": "name", "name": "x" } } }),
        json!({ "name": 7 }),
        json!({}),
    ];
    let (host, context) = (host(), context());
    let mut answers = Vec::new();
    for call in &calls {
        answers.push(mcp::answer(&host, call, &context).await);
    }
    check(
        answers,
        expect![[r#"
            {"content":[{"type":"text","text":"{\"degrees\":21.5}"}],"structuredContent":{"degrees":21.5},"isError":false}
            {"content":[{"type":"text","text":"the arguments of `get_temperature` are not valid, nothing was done:\n- /latitude: 91 is greater than the maximum of 90.0"}],"isError":true}
            {"content":[{"type":"text","text":"done"}],"isError":false}
            {"content":[{"type":"text","text":"Name { name: \"x\" }"},{"type":"image","data":"AQID","mimeType":"image/png"},{"type":"audio","data":"BA==","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"map://1","mimeType":"text/plain","text":"a map"}},{"type":"resource","resource":{"uri":"map://2","mimeType":"image/png","blob":"BQ=="}},{"type":"resource_link","uri":"map://3","name":"the third"}],"isError":false}
            {"content":[{"type":"text","text":"the call names no tool"}],"isError":true}
            {"content":[{"type":"text","text":"the call names no tool"}],"isError":true}"#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_is_told_what_a_tool_must_ask() {
    let host = recorded(Registry::empty().with(Door).unwrap(), limits(1)).0;
    let context = context();
    let tool_use = json!({ "type": "tool_use", "id": "toolu_1", "name": "open", "input": {} });
    check(
        vec![
            openai::answer(&host, &tool_call("open", ""), &context).await,
            anthropic::answer(&host, &tool_use, &context).await,
            mcp::answer(&host, &json!({ "name": "open" }), &context).await,
        ],
        expect![[r#"
            {"role":"tool","tool_call_id":"call_1","content":"the tool must ask the user: Who is there?; roots/list"}
            {"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"the tool must ask the user: Who is there?; roots/list"}],"is_error":true}
            {"content":[{"type":"text","text":"the tool must ask the user: Who is there?; roots/list"}],"isError":true}"#]],
    );
}

#[test]
fn a_result_carries_its_meta() {
    let output = tool_runtime::Output {
        meta: Some(Box::new(Map::from_iter([(
            "example.org/cost".to_owned(),
            json!(2),
        )]))),
        ..tool_runtime::Output::text("x")
    };
    expect![[
        r#"{"content":[{"type":"text","text":"x"}],"isError":false,"_meta":{"example.org/cost":2}}"#
    ]]
    .assert_eq(&mcp::result(&output).to_string());
}
