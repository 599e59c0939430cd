//! What is offered to a user who fills something in, and the page that a user is asked to open.

use crate::{
    bridge::{Serving, config, profile},
    client::{Client, Era, Profile, Reply},
};
use clopen_mcp::Bridge;
use expect_test::{Expect, expect};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{borrow::Cow, collections::BTreeMap};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tool_runtime::{Environment, ToolError, tool_server};

const ERAS: [Era; 2] = [Era::Legacy("2025-11-25"), Era::Modern];

/// How a book reads.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mood {
    Calm,
    Cheerful,
    Sad,
}

/// One of 250 shelves.
#[derive(Debug, Deserialize)]
pub(crate) struct Shelf(String);

impl JsonSchema for Shelf {
    fn schema_name() -> Cow<'static, str> {
        "Shelf".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let shelves: Vec<String> = (1..=250).map(|it| format!("Shelf {it:03}")).collect();
        json_schema!({ "type": "string", "enum": shelves })
    }
}

/// Has more to offer than one answer holds.
#[derive(Debug)]
pub(crate) struct Library;

/// Lends books, where a test has opened it.
#[tool_server(name = "library", version = "1.0.0", start)]
impl Library {
    /// Opens it.
    pub(crate) fn start(environment: &Environment) -> Result<Self, ToolError> {
        environment.required("LIBRARY")?;
        Ok(Self)
    }

    /// Ask for a book.
    #[prompt]
    pub(crate) fn recommend(
        /// How it reads.
        mood: Mood,
        /// Where it stands.
        shelf: Shelf,
        /// Who wrote it.
        author: String,
    ) -> String {
        format!("Recommend a {mood:?} book by {author} from {}.", shelf.0)
    }

    /// The books of a shelf.
    #[resource(uri = "library://{mood}/{shelf}", name = "books")]
    pub(crate) fn books(
        /// How they read.
        mood: Mood,
        /// Where they stand.
        shelf: Shelf,
    ) -> String {
        format!("no {mood:?} book stands on {}", shelf.0)
    }
}

/// Asks for completions in each era; the answers are the same, and `show` makes a line of each.
async fn completed(cases: &[(Value, &str, &str)], show: fn(&Reply) -> String) -> String {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let variables = BTreeMap::from([("LIBRARY".to_owned(), "open".to_owned())]);
    let bridge = Bridge::start(&config(folder.path(), ""), &variables).await;
    let bridge = bridge.expect("it starts");
    let url = format!("http://{}/mcp", bridge.address);
    tokio::spawn(bridge.serve(CancellationToken::new()));
    let mut told = Vec::new();
    for era in ERAS {
        let client = Client::http(&url, profile(era)).await;
        let mut lines = Vec::new();
        for (reference, argument, typed) in cases {
            let argument = json!({ "name": argument, "value": typed });
            let params = json!({ "ref": reference, "argument": argument });
            let reply = client.request("completion/complete", params).await;
            lines.push(format!("{typed:?}: {}\n", show(&reply)));
        }
        told.push(lines.concat());
    }
    assert_eq!(told[0], told[1]);
    told.remove(0)
}

/// Completes an argument of the prompt and a variable of the template, which are offered the same.
async fn offers(argument: &str, typed: &[&str], show: fn(&Reply) -> String, expected: Expect) {
    let of = |it: Value| -> Vec<_> {
        let cases = typed.iter().map(|typed| (it.clone(), argument, *typed));
        cases.collect()
    };
    let by_prompt = completed(&of(prompt("recommend")), show).await;
    let by_template = completed(&of(books()), show).await;
    assert_eq!(by_prompt, by_template);
    expected.assert_eq(&by_prompt);
}

fn prompt(name: &str) -> Value {
    json!({ "type": "ref/prompt", "name": name })
}

fn resource(uri: &str) -> Value {
    json!({ "type": "ref/resource", "uri": uri })
}

fn books() -> Value {
    resource("library://{mood}/{shelf}")
}

/// The whole of a completion.
fn in_full(reply: &Reply) -> String {
    reply.result().to_string()
}

/// How many values there are, where they begin and end, and what is said of the others.
fn in_short(reply: &Reply) -> String {
    let completion = &reply.result()["completion"];
    let values = completion["values"].as_array().expect("there are some");
    let (first, last) = (values.first(), values.last());
    let (first, last) = first.zip(last).expect("there are some");
    let (count, total, more) = (values.len(), &completion["total"], &completion["hasMore"]);
    format!("{count} of {total}, {first} to {last}, more: {more}")
}

/// The code and the words of an error, but for the place in the request.
fn refusal(reply: &Reply) -> String {
    let error = reply.error();
    let words = error["message"].as_str().expect("it has words");
    let words = words.split(" at line ").next().unwrap_or_default();
    format!("{} {words}", error["code"])
}

#[tokio::test]
async fn values_begin_with_what_is_typed() {
    let typed = ["", "c", "CH", "calm", "calmer", "alm"];
    offers(
        "mood",
        &typed,
        in_full,
        expect![[r#"
        "": {"completion":{"hasMore":false,"total":3,"values":["calm","cheerful","sad"]}}
        "c": {"completion":{"hasMore":false,"total":2,"values":["calm","cheerful"]}}
        "CH": {"completion":{"hasMore":false,"total":1,"values":["cheerful"]}}
        "calm": {"completion":{"hasMore":false,"total":1,"values":["calm"]}}
        "calmer": {"completion":{"hasMore":false,"total":0,"values":[]}}
        "alm": {"completion":{"hasMore":false,"total":0,"values":[]}}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn an_answer_has_at_most_a_hundred_values() {
    let typed = ["", "shelf 0", "shelf 1", "shelf 2", "Shelf 249"];
    offers(
        "shelf",
        &typed,
        in_short,
        expect![[r#"
        "": 100 of 250, "Shelf 001" to "Shelf 100", more: true
        "shelf 0": 99 of 99, "Shelf 001" to "Shelf 099", more: false
        "shelf 1": 100 of 100, "Shelf 100" to "Shelf 199", more: false
        "shelf 2": 51 of 51, "Shelf 200" to "Shelf 250", more: false
        "Shelf 249": 1 of 1, "Shelf 249" to "Shelf 249", more: false
    "#]],
    )
    .await;
}

#[tokio::test]
async fn nothing_is_offered_where_anything_fits() {
    let cases = [
        (prompt("recommend"), "author", "any text"),
        (prompt("recommend"), "colour", "no argument"),
        (books(), "colour", "no variable"),
        (resource("gallery://rooms/{number}"), "number", "a number"),
        (resource("gallery://motto"), "mood", "no template"),
    ];
    expect![[r#"
        "any text": {"completion":{"hasMore":false,"total":0,"values":[]}}
        "no argument": {"completion":{"hasMore":false,"total":0,"values":[]}}
        "no variable": {"completion":{"hasMore":false,"total":0,"values":[]}}
        "a number": {"completion":{"hasMore":false,"total":0,"values":[]}}
        "no template": {"completion":{"hasMore":false,"total":0,"values":[]}}
    "#]]
    .assert_eq(&completed(&cases, in_full).await);
}

#[tokio::test]
async fn what_can_not_be_completed() {
    let template = resource("library://{mood}/{floor}");
    let nothing = json!({ "type": "ref/tool", "name": "text" });
    let cases = [
        (prompt("recomend"), "mood", "no such prompt"),
        (template, "mood", "no such template"),
        (resource("library://calm/Shelf 001"), "mood", "filled in"),
        (json!({ "type": "ref/prompt" }), "mood", "no name"),
        (nothing, "mood", "a tool"),
    ];
    expect![[r#"
        "no such prompt": -32602 there is no prompt `recomend`; did you mean `recommend`?
        "no such template": -32602 there is no resource `library://{mood}/{floor}`
        "filled in": -32602 there is no resource `library://calm/Shelf 001`
        "no name": -32602 the parameters of `completion/complete` don't fit: missing field `name`
        "a tool": -32602 the parameters of `completion/complete` don't fit: unknown variant `ref/tool`, expected `ref/prompt` or `ref/resource`
    "#]].assert_eq(&completed(&cases, refusal).await);
}

/// Calls a tool that asks, for a client that declares these kinds of questions and answers so.
async fn asked(era: Era, tool: &str, kinds: Value, answer: Value) -> (Reply, Vec<Value>) {
    let bridge = Serving::start("").await;
    let profile = Profile {
        capabilities: json!({ "elicitation": kinds }),
        answers: [("elicitation/create", answer)].into(),
        ..profile(era)
    };
    let client = bridge.client_with(profile).await;
    let reply = client.call(tool, json!({})).await;
    let questions = client.asked().into_iter().map(|mut it| {
        assert_eq!(it["method"], "elicitation/create");
        it["params"].sort_all_objects();
        it["params"].take()
    });
    (reply, questions.collect())
}

/// The question and the result, which are the same for all clients that can open pages.
async fn opens(answer: Value, expected: Expect) {
    let mut told = Vec::new();
    for era in ERAS {
        for kinds in [json!({ "url": {} }), json!({ "form": {}, "url": {} })] {
            let (reply, questions) = asked(era, "ask_to_open", kinds, answer.clone()).await;
            let [question] = questions.try_into().expect("one question is asked");
            told.push(format!("{question}\n{}", reply.text()));
        }
    }
    told.dedup();
    expected.assert_eq(&told.join("\n\n"));
}

#[tokio::test]
async fn the_user_opens_a_page() {
    opens(
        json!({ "action": "accept" }),
        expect![[r#"
        {"message":"Sign in, please.","mode":"url","url":"https://example.org/sign-in"}
        opened"#]],
    )
    .await;
}

#[tokio::test]
async fn the_user_opens_no_page() {
    opens(
        json!({ "action": "decline" }),
        expect![[r#"
        {"message":"Sign in, please.","mode":"url","url":"https://example.org/sign-in"}
        error: the user declined to answer"#]],
    )
    .await;
}

/// The words for a client that can't be asked what a tool asks, which are the same in each era.
async fn refuses(tool: &str, kinds: &[Value], expected: Expect) {
    let mut told = Vec::new();
    for era in ERAS {
        for kinds in kinds {
            let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
            let (reply, questions) = asked(era, tool, kinds.clone(), answer).await;
            assert_eq!(questions, Vec::<Value>::new(), "{kinds}");
            told.push(if era.is_modern() {
                let error = reply.error();
                assert_eq!((reply.status, &error["code"]), (400, &json!(-32021)));
                let required = &error["data"]["requiredCapabilities"];
                assert!(required["elicitation"].is_object(), "{error}");
                let words = error["message"].as_str().expect("it has words");
                format!("error: {words}")
            } else {
                reply.text()
            });
        }
    }
    told.dedup();
    expected.assert_eq(&told.join("\n\n"));
}

#[tokio::test]
async fn who_only_fills_in_forms_opens_no_page() {
    // Elicitation without its kinds means forms.
    let kinds = [json!({ "form": {} }), json!({})];
    refuses("ask_to_open", &kinds, expect!["error: `ask_to_open` must ask the client (`elicitation/create`), which this client can't answer"]).await;
}

#[tokio::test]
async fn who_only_opens_pages_fills_in_no_form() {
    refuses("ask_user", &[json!({ "url": {} })], expect!["error: `ask_user` must ask the client (`elicitation/create`), which this client can't answer"]).await;
}
