//! Arguments: what is accepted, what is repaired, and what is refused.

use crate::host::{context, limits, recorded, tool};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tool_runtime::{Check, Enforcement, Json, Registry, tool_server};

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "it is only printed")]
struct Guest {
    name: String,
    #[serde(default)]
    seats: u8,
    allergies: Option<Vec<String>>,
    address: Option<Address>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is only printed")]
struct Address {
    street: String,
    number: u16,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "it is only printed")]
struct Folder {
    #[schemars(length(min = 1))]
    name: String,
    #[serde(default)]
    folders: Vec<Folder>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "it is only printed")]
struct Chain {
    link: u8,
    next: Option<Box<Chain>>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

struct Echo;

#[tool_server(name = "echo", version = "1.0.0", manual)]
impl Echo {
    /// Take nothing that must be sent.
    #[tool]
    fn optional(a: Option<u8>, b: Option<String>, #[arg(default = 7)] c: u8) -> String {
        format!("{a:?} {b:?} {c}")
    }

    /// Tell absence from null.
    #[tool]
    #[expect(clippy::option_option, reason = "the two say different things")]
    fn nullable(a: Option<Option<u8>>, v: Option<Value>) -> String {
        format!("{a:?} {v:?}")
    }

    /// Take a number.
    #[tool]
    fn number(n: i64) -> String {
        n.to_string()
    }

    /// Take numbers.
    #[tool]
    fn numbers(signed: i64, unsigned: u64, any: Value) -> Json<(i64, u64, Value)> {
        Json((signed, unsigned, any))
    }

    /// Take small numbers.
    #[tool]
    fn ranged(
        #[arg(range = 1..=14)] days: u8,
        #[arg(range = -90.0..=90.0)] latitude: Option<f64>,
        #[arg(range = 0.1..0.7)] share: Option<f32>,
    ) -> String {
        format!("{days} {latitude:?} {share:?}")
    }

    /// Take a postal code.
    #[tool]
    fn zip(zip: String, #[arg(length = 1..=3)] note: Option<String>) -> String {
        format!("{zip:?} {note:?}")
    }

    /// Take lists and objects.
    #[tool]
    fn lists(
        queries: Option<Vec<String>>,
        counts: Option<Vec<u32>>,
        by_name: Option<BTreeMap<String, u8>>,
        object: Option<Map<String, Value>>,
        on: Option<bool>,
    ) -> String {
        format!("{queries:?} {counts:?} {by_name:?} {object:?} {on:?}")
    }

    /// Take guests.
    #[tool]
    fn guests(guests: Vec<Guest>) -> String {
        format!("{guests:?}")
    }

    /// Take a guest, whole.
    #[tool]
    fn guest(#[arg(flatten)] guest: Guest) -> String {
        format!("{guest:?}")
    }

    /// Take a folder.
    #[tool]
    fn folder(folder: Folder) -> String {
        format!("{folder:?}")
    }

    /// Take a chain.
    #[tool]
    fn chain(chain: Chain) -> String {
        format!("{chain:?}")
    }

    /// Search.
    #[tool]
    fn search(
        query: String,
        limit: Option<u8>,
        #[arg(default = Unit::Celsius)] unit: Unit,
    ) -> String {
        format!("{query} {limit:?} {unit:?}")
    }

    /// Take texts of a form.
    #[tool]
    fn forms(
        #[arg(format = "email")] email: Option<String>,
        #[arg(format = "uri")] uri: Option<String>,
        #[arg(format = "date")] date: Option<String>,
        #[arg(format = "date-time")] date_time: Option<String>,
        #[arg(format = "uuid")] uuid: Option<String>,
        #[arg(pattern = "^[a-z]+$")] word: Option<String>,
        #[arg(length = 1..=2)] tags: Option<Vec<String>>,
    ) -> String {
        format!("{email:?} {uri:?} {date:?} {date_time:?} {uuid:?} {word:?} {tags:?}")
    }

    /// Take more than a handful.
    #[tool]
    #[expect(
        clippy::many_single_char_names,
        clippy::too_many_arguments,
        reason = "more arguments than are kept without an allocation"
    )]
    fn many(
        a: u8,
        b: u8,
        c: u8,
        d: u8,
        e: u8,
        f: u8,
        g: u8,
        h: u8,
        i: u8,
        #[arg(default = 10)] j: u8,
    ) -> String {
        format!("{a} {b} {c} {d} {e} {f} {g} {h} {i} {j}")
    }
}

/// Calls a tool; shows what it gave, or why not, and what was repaired.
#[track_caller]
fn check(name: &str, arguments: &str, expect: Expect) {
    let (dispatcher, recorder) = recorded(Registry::empty().with(Echo).unwrap(), limits(1));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without drivers");
    let context = context();
    let mut shown = match runtime.block_on(dispatcher.call(name, arguments, &context)) {
        Ok(output) => output.to_text(),
        Err(error) => format!("{}: {error}", error.code()),
    };
    let record = recorder.line();
    if let Some((_, repaired)) = record.split_once(", repaired ") {
        let (paths, _) = repaired.split_once(": ").unwrap();
        shown = format!("{shown}\nrepaired {paths}");
    }
    expect.assert_eq(&shown);
}

#[test]
fn good_arguments_are_taken_as_they_are() {
    check(
        "optional",
        r#"{"a":1,"b":"x","c":3}"#,
        expect![[r#"Some(1) Some("x") 3"#]],
    );
    check("optional", " {\n\"c\" : 3 } ", expect!["None None 3"]);
    check("optional", r#"{"\u0061":1}"#, expect!["Some(1) None 7"]);
    check(
        "many",
        r#"{"i":9,"h":8,"g":7,"f":6,"e":5,"d":4,"c":3,"b":2,"a":1}"#,
        expect!["1 2 3 4 5 6 7 8 9 10"],
    );
}

#[test]
fn arg_086_arguments_that_are_left_out_are_an_empty_object() {
    check("optional", "", expect!["None None 7"]);
    check("optional", "null", expect!["None None 7"]);
    check("optional", "{}", expect!["None None 7"]);
    check(
        "number",
        "",
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - `n` is required"#]],
    );
}

#[test]
fn null_for_an_optional_argument_is_absence() {
    check(
        "optional",
        r#"{"a":null,"b":null,"c":null}"#,
        expect!["None None 7"],
    );
    check(
        "optional",
        r#"{"a":null,"b":null,"c":"3"}"#,
        expect![[r#"
            None None 3
            repaired /a /b /c"#]],
    );
    check(
        "forms",
        r#"{"email":null,"tags":null}"#,
        expect!["None None None None None None None"],
    );
    check(
        "number",
        r#"{"n":null}"#,
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - /n: null is not of type integer"#]],
    );
}

#[test]
fn null_is_a_value_where_the_type_says_so() {
    check("nullable", "{}", expect!["None None"]);
    check(
        "nullable",
        r#"{"a":null,"v":null}"#,
        expect!["Some(None) None"],
    );
    check(
        "nullable",
        r#"{"a":3,"v":[null]}"#,
        expect!["Some(Some(3)) Some(Array [Null])"],
    );
}

#[test]
fn null_for_an_optional_field_is_absence_too() {
    check(
        "guests",
        r#"{"guests":[{"name":"Ana","seats":null,"allergies":null,"address":null}]}"#,
        expect![[r#"
            [Guest { name: "Ana", seats: 0, allergies: None, address: None }]
            repaired /guests/0/seats"#]],
    );
    check(
        "guest",
        r#"{"name":"Ana","seats":null,"allergies":null,"address":null}"#,
        expect![[r#"
            Guest { name: "Ana", seats: 0, allergies: None, address: None }
            repaired /seats"#]],
    );
}

#[test]
fn arg_083_a_list_or_an_object_sent_as_text_is_read() {
    check(
        "lists",
        r#"{"queries":"[\"test\"]"}"#,
        expect![[r#"
            Some(["test"]) None None None None
            repaired /queries"#]],
    );
    check(
        "lists",
        r#"{"counts":"[1,2]"}"#,
        expect![[r#"
            None Some([1, 2]) None None None
            repaired /counts"#]],
    );
    check(
        "lists",
        r#"{"counts":["1","2"]}"#,
        expect![[r#"
            None Some([1, 2]) None None None
            repaired /counts/0 /counts/1"#]],
    );
    check(
        "lists",
        r#"{"by_name":"{\"a\":1}"}"#,
        expect![[r#"
            None None Some({"a": 1}) None None
            repaired /by_name"#]],
    );
    check(
        "lists",
        r#"{"by_name":{"a":"1"}}"#,
        expect![[r#"
            None None Some({"a": 1}) None None
            repaired /by_name/a"#]],
    );
    check(
        "lists",
        r#"{"object":"{\"a\":\"1\"}"}"#,
        expect![[r#"
            None None None Some({"a": String("1")}) None
            repaired /object"#]],
    );
    check(
        "guests",
        r#"{"guests":"[{\"name\":\"Ana\",\"seats\":\"2\",\"allergies\":\"[]\",\"address\":\"{\\\"street\\\":\\\"A\\\",\\\"number\\\":\\\"1\\\"}\"}]"}"#,
        expect![[r#"
            [Guest { name: "Ana", seats: 2, allergies: Some([]), address: Some(Address { street: "A", number: 1 }) }]
            repaired /guests /guests/0/seats /guests/0/allergies /guests/0/address /guests/0/address/number"#]],
    );
    check(
        "chain",
        r#"{"chain":{"link":1,"next":{"link":2,"next":"{\"link\":\"3\",\"next\":null}"}}}"#,
        expect![[r#"
            Chain { link: 1, next: Some(Chain { link: 2, next: Some(Chain { link: 3, next: None }) }) }
            repaired /chain/next/next /chain/next/next/link"#]],
    );
    check(
        "folder",
        r#"{"folder":{"name":"a","folders":"[{\"name\":\"b\"}]"}}"#,
        expect![[r#"
            Folder { name: "a", folders: [Folder { name: "b", folders: [] }] }
            repaired /folder/folders"#]],
    );
}

#[test]
fn arg_083_text_of_another_kind_stays_and_is_refused() {
    check(
        "lists",
        r#"{"queries":"test"}"#,
        expect![[r#"
            invalid_arguments: the arguments of `lists` are not valid, nothing was done:
            - /queries: "test" is not of type array"#]],
    );
    check(
        "lists",
        r#"{"queries":"{}"}"#,
        expect![[r#"
            invalid_arguments: the arguments of `lists` are not valid, nothing was done:
            - /queries: "{}" is not of type array"#]],
    );
    check(
        "lists",
        r#"{"object":"[]"}"#,
        expect![[r#"
            invalid_arguments: the arguments of `lists` are not valid, nothing was done:
            - /object: "[]" is not of type object"#]],
    );
    check(
        "lists",
        r#"{"queries":"[1]"}"#,
        expect![[r#"
            invalid_arguments: the arguments of `lists` are not valid, nothing was done:
            - /queries/0: 1 is not of type string"#]],
    );
    check(
        "lists",
        r#"{"queries":"[\"test\""}"#,
        expect![[r#"
            invalid_arguments: the arguments of `lists` are not valid, nothing was done:
            - /queries: "[\"test\"" is not of type array"#]],
    );
}

#[test]
fn numbers_and_flags_sent_as_text_are_read() {
    check(
        "number",
        r#"{"n":"-5"}"#,
        expect![[r#"
            -5
            repaired /n"#]],
    );
    check(
        "number",
        r#"{"n":"9007199254740993"}"#,
        expect![[r#"
            9007199254740993
            repaired /n"#]],
    );
    check(
        "number",
        r#"{"n":"five"}"#,
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - /n: "five" is not of type integer"#]],
    );
    check(
        "lists",
        r#"{"on":"true"}"#,
        expect![[r#"
            None None None None Some(true)
            repaired /on"#]],
    );
    check(
        "lists",
        r#"{"on":"yes"}"#,
        expect![[r#"
            invalid_arguments: the arguments of `lists` are not valid, nothing was done:
            - /on: "yes" is not of type boolean"#]],
    );
    check(
        "ranged",
        r#"{"days":"3","latitude":"1.5"}"#,
        expect![[r#"
            3 Some(1.5) None
            repaired /days /latitude"#]],
    );
    check(
        "ranged",
        r#"{"days":"30"}"#,
        expect![[r#"
            invalid_arguments: the arguments of `ranged` are not valid, nothing was done:
            - /days: 30 is greater than the maximum of 14"#]],
    );
}

#[test]
fn a_whole_number_written_as_a_fraction_is_whole() {
    check(
        "number",
        r#"{"n":5.0}"#,
        expect![[r#"
            5
            repaired /n"#]],
    );
    check(
        "number",
        r#"{"n":-5e2}"#,
        expect![[r#"
            -500
            repaired /n"#]],
    );
    check(
        "number",
        r#"{"n":"5.0"}"#,
        expect![[r#"
            5
            repaired /n"#]],
    );
    check(
        "ranged",
        r#"{"days":5.0}"#,
        expect![[r#"
            5 None None
            repaired /days"#]],
    );
    check(
        "lists",
        r#"{"counts":[1.0,2]}"#,
        expect![[r#"
            None Some([1, 2]) None None None
            repaired /counts/0"#]],
    );
    check(
        "lists",
        r#"{"by_name":{"a":1.0}}"#,
        expect![[r#"
            None None Some({"a": 1}) None None
            repaired /by_name/a"#]],
    );
    check(
        "number",
        r#"{"n":5.5}"#,
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - /n: 5.5 is not of type integer"#]],
    );
    check(
        "number",
        r#"{"n":1e300}"#,
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - argument `n`: invalid type: floating point `1e+300`, expected i64"#]],
    );
}

#[test]
fn arg_084_text_stays_text() {
    check("zip", r#"{"zip":"00713"}"#, expect![[r#""00713" None"#]]);
    check("zip", r#"{"zip":"[1]"}"#, expect![[r#""[1]" None"#]]);
    check(
        "zip",
        r#"{"zip":"{}","note":null}"#,
        expect![[r#""{}" None"#]],
    );
    check("zip", r#"{"zip":"null"}"#, expect![[r#""null" None"#]]);
    check(
        "zip",
        r#"{"zip":"true","unknown":1}"#,
        expect![[r#"
            invalid_arguments: the arguments of `zip` are not valid, nothing was done:
            - there is no `unknown`; there are `zip`, `note`"#]],
    );
    check(
        "lists",
        r#"{"queries":["00713","[]","1.0"]}"#,
        expect![[r#"Some(["00713", "[]", "1.0"]) None None None None"#]],
    );
    check(
        "lists",
        r#"{"object":{"a":"1"}}"#,
        expect![[r#"None None None Some({"a": String("1")}) None"#]],
    );
    check(
        "nullable",
        r#"{"v":"00713"}"#,
        expect![[r#"None Some(String("00713"))"#]],
    );
    check(
        "zip",
        r#"{"zip":713}"#,
        expect![[r#"
            invalid_arguments: the arguments of `zip` are not valid, nothing was done:
            - /zip: 713 is not of type string"#]],
    );
}

#[test]
fn arg_088_an_unknown_argument_is_an_error_with_what_may_be_meant() {
    check(
        "search",
        r#"{"query":"x","limitt":5}"#,
        expect![[r#"
            invalid_arguments: the arguments of `search` are not valid, nothing was done:
            - there is no `limitt`; did you mean `limit`?"#]],
    );
    check(
        "search",
        r#"{"query":"x","max_results":5}"#,
        expect![[r#"
            invalid_arguments: the arguments of `search` are not valid, nothing was done:
            - there is no `max_results`; there are `query`, `limit`, `unit`"#]],
    );
    check(
        "search",
        r#"{"query":"x","Limit":5,"q":"x"}"#,
        expect![[r#"
            invalid_arguments: the arguments of `search` are not valid, nothing was done:
            - there is no `Limit`; did you mean `limit`?
            - there is no `q`; there are `query`, `limit`, `unit`"#]],
    );
    check(
        "number",
        r#"{"n":1,"other":1}"#,
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - there is no `other`; there is only `n`"#]],
    );
    check(
        "guests",
        r#"{"guests":[{"name":"Ana","address":{"street":"A","number":1,"numbr":2}}]}"#,
        expect![[r#"
            invalid_arguments: the arguments of `guests` are not valid, nothing was done:
            - /guests/0/address: there is no `numbr`; did you mean `number`?"#]],
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    check(
        "guests",
        r#"{"guests":[{"seats":300,"allergies":"none"},{"name":1,"address":{"street":2,"numbr":3}},"Ana"],"extra":1}"#,
        expect![[r#"
            invalid_arguments: the arguments of `guests` are not valid, nothing was done:
            - /guests/0: `name` is required
            - /guests/0/seats: 300 is greater than the maximum of 255
            - /guests/0/allergies: "none" is not of type null or array
            - /guests/1/name: 1 is not of type string
            - /guests/1/address: `number` is required
            - /guests/1/address/street: 2 is not of type string
            - /guests/1/address: there is no `numbr`; did you mean `number`?
            - /guests/2: "Ana" is not of type object
            - there is no `extra`; there is only `guests`"#]],
    );
    check(
        "ranged",
        r#"{"days":15,"latitude":-90.5,"share":0.7}"#,
        expect![[r#"
            invalid_arguments: the arguments of `ranged` are not valid, nothing was done:
            - /days: 15 is greater than the maximum of 14
            - /latitude: -90.5 is less than the minimum of -90.0
            - /share: 0.7 is greater than or equal to the maximum of 0.7"#]],
    );
    check(
        "search",
        r#"{"limit":-1,"unit":"kelvin"}"#,
        expect![[r#"
            invalid_arguments: the arguments of `search` are not valid, nothing was done:
            - /limit: -1 is less than the minimum of 0
            - /unit: "kelvin" is none of ["celsius","fahrenheit"]
            - `query` is required"#]],
    );
    check(
        "forms",
        r#"{"email":"ana","uri":"x y","date":"2026-02-30","date_time":"today","uuid":"1","word":"Word","tags":[]}"#,
        expect![[r#"
            invalid_arguments: the arguments of `forms` are not valid, nothing was done:
            - /email: "ana" is not a "email"
            - /uri: "x y" is not a "uri"
            - /date: "2026-02-30" is not a "date"
            - /date_time: "today" is not a "date-time"
            - /uuid: "1" is not a "uuid"
            - /word: "Word" does not match "^[a-z]+$"
            - /tags: [] has less than 1 item"#]],
    );
}

#[test]
fn good_forms_are_taken() {
    check(
        "forms",
        r#"{"email":"ana@example.org","uri":"https://example.org/?q=1","date":"2026-02-28","date_time":"2026-07-28T12:00:00Z","uuid":"67e55044-10b1-426f-9247-bb680e5fe0c8","word":"word","tags":["a"]}"#,
        expect![[
            r#"Some("ana@example.org") Some("https://example.org/?q=1") Some("2026-02-28") Some("2026-07-28T12:00:00Z") Some("67e55044-10b1-426f-9247-bb680e5fe0c8") Some("word") Some(["a"])"#
        ]],
    );
}

#[test]
fn the_bounds_of_a_type_are_rules_too() {
    check(
        "optional",
        r#"{"a":256}"#,
        expect![[r#"
            invalid_arguments: the arguments of `optional` are not valid, nothing was done:
            - /a: 256 is greater than the maximum of 255"#]],
    );
    check(
        "optional",
        r#"{"a":-1}"#,
        expect![[r#"
            invalid_arguments: the arguments of `optional` are not valid, nothing was done:
            - /a: -1 is less than the minimum of 0"#]],
    );
    check(
        "number",
        r#"{"n":9223372036854775808}"#,
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - argument `n`: invalid value: integer `9223372036854775808`, expected i64"#]],
    );
}

#[test]
fn bounds_of_short_fractions_are_as_written() {
    check(
        "ranged",
        r#"{"days":1,"share":0.1}"#,
        expect!["1 None Some(0.1)"],
    );
    check(
        "ranged",
        r#"{"days":1,"share":0.09}"#,
        expect![[r#"
            invalid_arguments: the arguments of `ranged` are not valid, nothing was done:
            - /share: 0.09 is less than the minimum of 0.1"#]],
    );
}

#[test]
fn rules_inside_of_a_recursive_type_are_enforced() {
    check(
        "folder",
        r#"{"folder":{"name":"a","folders":[{"name":""}]}}"#,
        expect![[r#"
            invalid_arguments: the arguments of `folder` are not valid, nothing was done:
            - /folder/folders/0/name: "" is shorter than 1 character"#]],
    );
}

#[test]
fn what_is_no_object_is_refused() {
    check(
        "number",
        "[1]",
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - the arguments must be an object, not [1]"#]],
    );
    check(
        "guest",
        r#"["Ana",2,null,null]"#,
        expect![[r#"
            invalid_arguments: the arguments of `guest` are not valid, nothing was done:
            - the arguments must be an object, not ["Ana",2,null,null]"#]],
    );
    check(
        "chain",
        r#"{"chain":[1,null]}"#,
        expect![[r#"
            invalid_arguments: the arguments of `chain` are not valid, nothing was done:
            - /chain: [1,null] is not of type object"#]],
    );
    check(
        "number",
        "\"n\"",
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - the arguments must be an object, not "n""#]],
    );
    check(
        "number",
        r#"{"n":1"#,
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - the arguments are not JSON: EOF while parsing an object at line 1 column 6"#]],
    );
    check(
        "number",
        r#"{"n":1} x"#,
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - the arguments are not JSON: trailing characters at line 1 column 9"#]],
    );
}

#[test]
fn a_long_value_is_quoted_in_part() {
    let long = format!(r#"{{"n":"{}"}}"#, "é".repeat(500));
    check(
        "number",
        &long,
        expect![[r#"
            invalid_arguments: the arguments of `number` are not valid, nothing was done:
            - /n: "ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé… is not of type integer"#]],
    );
}

#[test]
fn great_whole_numbers_stay_exact() {
    check(
        "numbers",
        r#"{"signed":-9223372036854775808,"unsigned":18446744073709551615,"any":{"n":9007199254740993}}"#,
        expect![[
            r#"{"result":[-9223372036854775808,18446744073709551615,{"n":9007199254740993}]}"#
        ]],
    );
    check(
        "numbers",
        r#"{"signed":"-9007199254740993","unsigned":"18446744073709551615","any":[18446744073709551615]}"#,
        expect![[r#"
            {"result":[-9007199254740993,18446744073709551615,[18446744073709551615]]}
            repaired /signed /unsigned"#]],
    );
}

/// What is enforced flat, and by the schema alone.
fn checks(schema: &Value) -> [Check; 2] {
    let schema = json!({
        "type": "object",
        "properties": { "it": schema },
        "required": ["it"],
        "additionalProperties": false,
    });
    let Value::Object(schema) = schema else {
        unreachable!("it is one")
    };
    let schema = Arc::new(schema);
    [Enforcement::Flat, Enforcement::Schema]
        .map(|it| Check::new(schema.clone(), it).expect("it is a schema"))
}

/// The quick check of raw JSON must say what the schema says.
fn agree(schema: &Value, value: &str) -> Result<(), TestCaseError> {
    let [flat, full] = checks(schema);
    let json = format!(r#"{{"it":{value}}}"#);
    let (flat, full) = (flat.accept(&json).is_some(), full.accept(&json).is_some());
    prop_assert_eq!(flat, full, "{} of {}", value, schema);
    Ok(())
}

fn bound() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-20_i64..20).prop_map(Value::from),
        (-20.0..20.0).prop_map(Value::from),
    ]
}

/// Text with what JSON escapes, and characters of all lengths.
fn text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        any::<char>(),
        prop_oneof![
            Just('"'),
            Just('\\'),
            Just('\n'),
            Just('\u{1f980}'),
            Just('é')
        ],
    ];
    proptest::collection::vec(character, 0..12).prop_map(String::from_iter)
}

/// The same text with an escape for each UTF-16 unit.
fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    let mut json = "\"".to_owned();
    for unit in text.encode_utf16() {
        write!(json, "\\u{unit:04x}").expect("writing to a String does not fail");
    }
    json + "\""
}

proptest! {
    #[test]
    fn quick_bounds_agree_with_the_schema(
        least in bound(),
        most in bound(),
        below in bound(),
        value in bound(),
    ) {
        let schema = json!({
            "type": "number", "minimum": least, "maximum": most, "exclusiveMaximum": below,
        });
        for json in [value.clone(), least, most, below] {
            agree(&schema, &json.to_string())?;
        }
        agree(&json!({ "type": "number", "minimum": value }), &value.to_string())?;
        agree(&json!({ "type": "number", "exclusiveMaximum": value }), &value.to_string())?;
    }

    #[test]
    fn quick_lengths_agree_with_the_schema(text in text(), least in 0..12_usize, most in 0..12_usize) {
        let schema = json!({ "type": "string", "minLength": least, "maxLength": most });
        agree(&schema, &Value::from(text.as_str()).to_string())?;
        agree(&schema, &escaped(&text))?;
    }

    #[test]
    fn great_whole_numbers_stay_exact_for_any_number(signed: i64, unsigned: u64) {
        let registry = Registry::empty().with(Echo).unwrap();
        let tool = tool(&registry, "numbers");
        let sent = json!({ "signed": signed.to_string(), "unsigned": unsigned, "any": unsigned });
        let repaired = tool.check.repair(&sent.to_string()).unwrap();
        let exact = json!({ "signed": signed, "unsigned": unsigned, "any": unsigned });
        prop_assert_eq!(repaired.json, exact.to_string());
        prop_assert_eq!(repaired.paths, ["/signed"]);
    }

    #[test]
    fn arg_084_no_text_is_ever_changed(text in text(), digits in "[0-9]{1,20}") {
        let registry = Registry::empty().with(Echo).unwrap();
        let tool = tool(&registry, "zip");
        for text in [text, digits] {
            let sent = json!({ "zip": text }).to_string();
            let repaired = tool.check.repair(&sent).unwrap();
            prop_assert_eq!(repaired.json, sent);
            prop_assert!(repaired.paths.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn bounds_hold_as_the_schema_says(
        number in "-?(0|[1-9][0-9]{0,11})(\\.[0-9]{1,6})?([eE][+-]?[0-3])?",
        minimum in prop_oneof![(-120_i64..120).prop_map(Value::from), (-2.0_f64..2.0).prop_map(Value::from)],
        above in prop_oneof![(0_i64..120).prop_map(Value::from), (0.0_f64..2.0).prop_map(Value::from)],
        limit in prop::sample::select(vec!["maximum", "exclusiveMaximum"]),
    ) {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "type": "number", "minimum": minimum, limit: above } },
            "additionalProperties": false,
        });
        let sent = format!("{{\"a\":{number}}}");
        let instance: Value = serde_json::from_str(&sent).unwrap();
        let is_valid = jsonschema::is_valid(&schema, &instance);
        let object = Arc::new(schema.as_object().unwrap().clone());
        let check = Check::new(object, Enforcement::Flat).unwrap();
        prop_assert_eq!(check.accept(&sent).is_some(), is_valid, "{} {}", schema, sent);
    }
}
