//! Resources by URI, and prompts by what a person fills in.

use crate::{
    host::{Log, context, limits, reaching, recorded},
    limits::{shown_and_next, without_handle},
};
use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{collections::BTreeMap, time::Duration};
use tool_runtime::{
    Body, Content, Context, Dispatcher, Limits, Message, Registry, Resource, Role, Selection,
    ToolError, tool_server,
};

fn template(uri: &str) -> Resource {
    Resource {
        server: "notes".into(),
        uri: uri.to_owned(),
        name: "note".to_owned(),
        title: None,
        description: String::new(),
        mime_type: None,
        variables: Vec::new(),
        further: serde_json::Map::new(),
        index: 0,
    }
}

#[track_caller]
fn check(uri_template: &str, uri: &str, expected: Option<&[(&str, &str)]>) {
    let variables = template(uri_template).matches(uri);
    let expected = expected.map(|it| {
        let owned = it
            .iter()
            .map(|(name, it)| ((*name).to_owned(), (*it).to_owned()));
        owned.collect::<BTreeMap<_, _>>()
    });
    assert_eq!(variables, expected, "{uri} by {uri_template}");
}

#[test]
fn a_uri_without_variables_matches_itself_only() {
    check("notes://all", "notes://all", Some(&[]));
    check("notes://all", "notes://all/", None);
    check("notes://all", "notes://al", None);
    check("notes://all", "notes://ALL", None);
    check("notes://all", "", None);
    assert!(!template("notes://all").is_template());
    assert!(template("notes://{all}").is_template());
}

#[test]
fn a_variable_takes_what_stands_in_its_place() {
    check("notes://{index}", "notes://3", Some(&[("index", "3")]));
    check("notes://{index}", "notes://", None);
    check("notes://{index}", "other://3", None);
    check(
        "notes://{index}/text",
        "notes://3/text",
        Some(&[("index", "3")]),
    );
    check("notes://{index}/text", "notes://3/texts", None);
    check("notes://{index}/text", "notes:///text", None);
    check(
        "notes://{index}.md",
        "notes://a.md.md",
        Some(&[("index", "a.md")]),
    );
}

#[test]
fn only_the_last_variable_may_hold_a_slash() {
    check(
        "file:///{path}",
        "file:///a/b/c",
        Some(&[("path", "a/b/c")]),
    );
    check("notes://{index}/text", "notes://3/4/text", None);
    check(
        "repo://{owner}/{path}",
        "repo://ana/src/lib.rs",
        Some(&[("owner", "ana"), ("path", "src/lib.rs")]),
    );
}

#[test]
fn several_variables() {
    check(
        "repo://{owner}/{name}/issues/{number}",
        "repo://ana/shop/issues/7",
        Some(&[("owner", "ana"), ("name", "shop"), ("number", "7")]),
    );
    check(
        "repo://{owner}/{name}/issues/{number}",
        "repo://ana/issues/7",
        None,
    );
    check(
        "x://{a}-{b}",
        "x://1-2-3",
        Some(&[("a", "1"), ("b", "2-3")]),
    );
    check("x://{a}-{b}", "x://1", None);
    check(
        "x://{a}-{b}.md",
        "x://1-2.md",
        Some(&[("a", "1"), ("b", "2")]),
    );
}

#[test]
fn variables_are_percent_decoded() {
    check("notes://{name}", "notes://a%20b", Some(&[("name", "a b")]));
    check("notes://{name}", "notes://%C3%A9", Some(&[("name", "é")]));
    check(
        "notes://{name}/x",
        "notes://a%2Fb/x",
        Some(&[("name", "a/b")]),
    );
    check("notes://{name}", "notes://é", Some(&[("name", "é")]));
    check(
        "notes://{name}",
        "notes://100%25",
        Some(&[("name", "100%")]),
    );
    check("notes://{name}", "notes://a+b", Some(&[("name", "a+b")]));
}

#[test]
fn what_is_no_percent_encoding_does_not_match() {
    for broken in ["%", "%2", "%zz", "%+1", "%ff", "a%C3"] {
        check("notes://{name}", &format!("notes://{broken}"), None);
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Warm,
    /// As in court.
    Cold,
}

struct Notes;

#[tool_server(name = "notes", version = "1.0.0", manual)]
impl Notes {
    /// All notes.
    #[resource(uri = "notes://all", mime_type = "text/plain", title = "All notes")]
    fn all() -> String {
        "one\ntwo".to_owned()
    }

    /// One note.
    #[resource(uri = "notes://{index}", mime_type = "text/plain")]
    async fn note(index: usize) -> Result<String, ToolError> {
        let all = ["one", "two"];
        let note = all.get(index).ok_or("there are only two notes")?;
        Ok((*note).to_owned())
    }

    /// A page of a note.
    #[resource(uri = "notes://{name}/{large}/{page}")]
    fn page(name: String, large: bool, #[arg(range = 1..=9)] page: u8) -> Vec<Content> {
        vec![
            Content::text(format!("{name:?} {large} {page}")),
            Content::blob("notes://x", "image/png", [1, 2]),
        ]
    }

    /// The count of all notes, which is more than a note by that name.
    #[resource(uri = "notes://count")]
    fn count() -> String {
        "2".to_owned()
    }

    /// Panic.
    #[resource(uri = "panic://now")]
    fn panic() -> String {
        panic!("a resource panicked")
    }

    /// Hang.
    #[resource(uri = "hang://now")]
    async fn hang() -> String {
        std::future::pending().await
    }

    /// Several texts.
    #[resource(uri = "texts://all")]
    fn texts() -> Vec<Content> {
        vec![
            Content::resource("texts://one", "text/plain", "one"),
            Content::resource("texts://two", "text/plain", "ééé"),
            Content::blob("texts://three", "image/png", [1, 2]),
            Content::text("four"),
        ]
    }

    /// Ask for a summary.
    #[prompt(title = "Summarize")]
    fn summarize(
        /// How long it may be.
        #[arg(default = 3, range = 1..=10)]
        sentences: u8,
        /// What to leave out.
        without: Option<String>,
    ) -> String {
        format!("Summarize in {sentences} sentences, without {without:?}.")
    }

    /// Panic.
    #[prompt]
    fn startle() -> String {
        panic!("a prompt panicked")
    }

    /// Ask for an answer.
    #[prompt]
    fn answer(tone: Tone, to: Option<Tone>) -> String {
        format!("Answer: {tone:?} {to:?}.")
    }

    /// Ask for a translation.
    #[prompt]
    async fn translate(
        /// The language.
        language: String,
        polite: bool,
    ) -> Result<Vec<Message>, ToolError> {
        if language == "Klingon" {
            return Err("nobody speaks it".into());
        }
        Ok(vec![
            Message::user(format!("Translate to {language}, politely: {polite}.")),
            Message::assistant("Gladly."),
        ])
    }
}

fn notes() -> Dispatcher {
    recorded(Registry::empty().with(Notes).unwrap(), limits(5)).0
}

async fn check_read(uri: &str, expect: Expect) {
    let shown = match notes().read(uri, &context()).await {
        Ok(output) => format!("{:?}", output.content),
        Err(error) => error.to_string(),
    };
    expect.assert_eq(&shown);
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_read_by_its_uri() {
    check_read("notes://all", expect![[r#"[Text("one\ntwo")]"#]]).await;
    check_read("notes://count", expect![[r#"[Text("2")]"#]]).await;
    check_read("notes://1", expect![[r#"[Text("two")]"#]]).await;
    check_read("notes://a%20b/true/3", expect![[r#"[Text("\"a b\" true 3"), Resource { uri: "notes://x", mime_type: Some("image/png"), body: Blob("AQI=") }]"#]]).await;
    check_read("notes://00713/false/9", expect![[r#"[Text("\"00713\" false 9"), Resource { uri: "notes://x", mime_type: Some("image/png"), body: Blob("AQI=") }]"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_can_not_be_read_says_why() {
    check_read(
        "notes://7",
        expect!["`notes://7` could not be had: there are only two notes"],
    )
    .await;
    check_read(
        "notes://first",
        expect![[r#"`notes://first` could not be had: /index: "first" is not of type integer"#]],
    )
    .await;
    check_read(
        "notes://-1",
        expect!["`notes://-1` could not be had: /index: -1 is less than the minimum of 0"],
    )
    .await;
    check_read("notes://a/yes/10", expect![[r#"`notes://a/yes/10` could not be had: /large: "yes" is not of type boolean; /page: 10 is greater than the maximum of 9"#]]).await;
    check_read("other://all", expect!["there is no resource `other://all`"]).await;
    check_read(
        "panic://now",
        expect!["`panic://now` could not be had: an internal error"],
    )
    .await;
    check_read(
        "hang://now",
        expect!["`hang://now` could not be had: it was stopped after 5 s"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_may_set_the_limit_of_a_read() {
    let mut context = context();
    context.limit = Some(Duration::from_secs(2));
    let error = notes().read("hang://now", &context).await.unwrap_err();
    expect!["`hang://now` could not be had: it was stopped after 2 s"]
        .assert_eq(&error.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_read_is_logged() {
    let log = Log::default();
    let guard = log.listen();
    notes().read("panic://now", &context()).await.unwrap_err();
    let startle = notes().prompt("startle", BTreeMap::new(), &context()).await;
    startle.unwrap_err();
    drop(guard);
    expect![[r#"
        ERROR tool_runtime::dispatcher: a resource panicked server="notes" resource="panic://now" panic="a resource panicked"
        ERROR tool_runtime::dispatcher: a prompt panicked server="notes" prompt="startle" panic="a prompt panicked"
    "#]]
    .assert_eq(&log.text());
}

/// A host that cuts what is longer than this many bytes.
fn cutting(output: usize) -> Dispatcher {
    let limits = Limits {
        output,
        ..limits(5)
    };
    recorded(Registry::empty().with(Notes).unwrap(), limits).0
}

fn in_a_line(content: &Content) -> String {
    match content {
        Content::Resource {
            uri,
            body: Body::Text(text),
            ..
        } => format!("{uri}: {text}"),
        Content::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

/// Reads on where the note at the end of a text says how.
async fn check_rest(dispatcher: &Dispatcher, text: &str, expect: Expect) {
    let (_, next) = shown_and_next(text);
    let rest = dispatcher
        .call("read_result", next.unwrap(), &context())
        .await;
    expect.assert_eq(&without_handle(&rest.unwrap().to_text()));
}

async fn check_cut(limit: usize, expect: Expect, rest: Expect) {
    let dispatcher = cutting(limit);
    let output = dispatcher.read("texts://all", &context()).await.unwrap();
    let lines: Vec<String> = output.content.iter().map(in_a_line).collect();
    let cut = lines.iter().find(|it| it.contains("[cut after"));
    expect.assert_eq(&without_handle(&lines.join("\n")));
    check_rest(&dispatcher, cut.unwrap(), rest).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_too_long_is_cut_where_its_texts_reach_the_limit() {
    check_cut(2, expect![[r#"
        texts://one: on

        [cut after 2 of 15 bytes; to read on, call `read_result` with {"handle":"…","offset":2}]
        Resource { uri: "texts://three", mime_type: Some("image/png"), body: Blob("AQI=") }"#]], expect![[r#"
        e


        [cut after 4 of 15 bytes; to read on, call `read_result` with {"handle":"…","offset":4}]"#]]).await;
    check_cut(3, expect![[r#"
        texts://one: one

        [cut after 3 of 15 bytes; to read on, call `read_result` with {"handle":"…","offset":3}]
        Resource { uri: "texts://three", mime_type: Some("image/png"), body: Blob("AQI=") }"#]], expect![[r#"

        é

        [cut after 6 of 15 bytes; to read on, call `read_result` with {"handle":"…","offset":6}]"#]]).await;
    check_cut(4, expect![[r#"
        texts://one: one

        [cut after 4 of 15 bytes; to read on, call `read_result` with {"handle":"…","offset":4}]
        Resource { uri: "texts://three", mime_type: Some("image/png"), body: Blob("AQI=") }"#]], expect![[r#"
        éé

        [cut after 8 of 15 bytes; to read on, call `read_result` with {"handle":"…","offset":8}]"#]]).await;
    check_cut(7, expect![[r#"
        texts://one: one
        texts://two: é

        [cut after 6 of 15 bytes; to read on, call `read_result` with {"handle":"…","offset":6}]
        Resource { uri: "texts://three", mime_type: Some("image/png"), body: Blob("AQI=") }"#]], expect![[r#"
        éé
        fo

        [cut after 13 of 15 bytes; to read on, call `read_result` with {"handle":"…","offset":13}]"#]]).await;
    check_cut(12, expect![[r#"
        texts://one: one
        texts://two: ééé
        Resource { uri: "texts://three", mime_type: Some("image/png"), body: Blob("AQI=") }
        f

        [cut after 12 of 15 bytes; to read on, call `read_result` with {"handle":"…","offset":12}]"#]], expect!["our"]).await;
    let whole = cutting(13).read("texts://all", &context()).await.unwrap();
    assert_eq!(
        whole.content,
        notes()
            .read("texts://all", &context())
            .await
            .unwrap()
            .content
    );
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_too_long_is_cut_too() {
    let dispatcher = cutting(40);
    let arguments = [("language", "Spanish"), ("polite", "true")];
    let arguments = arguments.map(|(name, it)| (name.to_owned(), it.to_owned()));
    let messages = dispatcher
        .prompt("translate", arguments.into(), &context())
        .await;
    let messages = messages.unwrap();
    let lines: Vec<String> = messages.iter().map(|it| in_a_line(&it.content)).collect();
    expect![[r#"
        Translate to Spanish, politely: true.
        Gl

        [cut after 40 of 45 bytes; to read on, call `read_result` with {"handle":"…","offset":40}]"#]].assert_eq(&without_handle(&lines.join("\n")));
    check_rest(&dispatcher, lines.last().unwrap(), expect!["adly."]).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_out_of_reach_does_not_exist() {
    let elsewhere = Context::new(reaching(&["other"], false));
    let error = notes().read("notes://all", &elsewhere).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no resource `notes://all`");
    let error = notes()
        .prompt("summarize", BTreeMap::new(), &elsewhere)
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "there is no prompt `summarize`"
    );
    let dispatcher = notes();
    dispatcher
        .select(Selection::all().without_server("notes"))
        .unwrap();
    let error = dispatcher
        .read("notes://all", &context())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "there is no resource `notes://all`");
}

async fn check_prompt(name: &str, arguments: &[(&str, &str)], expect: Expect) {
    let arguments = arguments
        .iter()
        .map(|(name, it)| ((*name).to_owned(), (*it).to_owned()))
        .collect();
    let shown = match notes().prompt(name, arguments, &context()).await {
        Ok(messages) => messages
            .iter()
            .map(|it| {
                let who = if it.role == Role::User {
                    "user"
                } else {
                    "assistant"
                };
                format!("{who}: {}", it.content.as_text().unwrap_or_default())
            })
            .collect::<Vec<_>>()
            .join("\n"),
        Err(error) => error.to_string(),
    };
    expect.assert_eq(&shown);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_takes_its_arguments_from_text() {
    check_prompt(
        "summarize",
        &[],
        expect!["user: Summarize in 3 sentences, without None."],
    )
    .await;
    check_prompt(
        "summarize",
        &[("sentences", "5"), ("without", "7")],
        expect![[r#"user: Summarize in 5 sentences, without Some("7")."#]],
    )
    .await;
    check_prompt(
        "answer",
        &[("tone", "cold"), ("to", "warm")],
        expect!["user: Answer: Cold Some(Warm)."],
    )
    .await;
    check_prompt(
        "clopen-mcp_translate",
        &[("language", "true"), ("polite", "true")],
        expect![[r#"
            user: Translate to true, politely: true.
            assistant: Gladly."#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_can_not_be_made_says_why() {
    check_prompt(
        "translate",
        &[("polite", "true")],
        expect!["the prompt `translate` needs the argument `language`"],
    )
    .await;
    check_prompt(
        "summarize",
        &[("sentences", "many")],
        expect![[r#"`summarize` could not be had: /sentences: "many" is not of type integer"#]],
    )
    .await;
    check_prompt(
        "summarize",
        &[("sentences", "11")],
        expect!["`summarize` could not be had: /sentences: 11 is greater than the maximum of 10"],
    )
    .await;
    check_prompt(
        "summarize",
        &[("sentence", "3")],
        expect!["`summarize` could not be had: there is no `sentence`; did you mean `sentences`?"],
    )
    .await;
    check_prompt(
        "translate",
        &[("language", "Klingon"), ("polite", "false")],
        expect!["`translate` could not be had: nobody speaks it"],
    )
    .await;
    check_prompt(
        "summarise",
        &[],
        expect!["there is no prompt `summarise`; did you mean `summarize`?"],
    )
    .await;
}

#[test]
fn what_is_offered_says_what_it_is() {
    let view = crate::host::view(Registry::empty().with(Notes).unwrap());
    let caller = crate::host::caller();
    let all = view.resources(&caller).next().unwrap();
    assert_eq!(all.title.as_deref(), Some("All notes"));
    assert_eq!(all.mime_type.as_deref(), Some("text/plain"));
    assert_eq!(all.description, "All notes.");
    let page = view
        .resources(&caller)
        .find(|it| it.name == "page")
        .unwrap();
    let variables = page.variables.iter();
    let variables = variables.map(|it| format!("{} {:?}", it.name, it.values));
    expect![[r#"
        name []
        large []
        page []"#]]
    .assert_eq(&variables.collect::<Vec<_>>().join("\n"));
    let prompts = view.prompts(&caller).map(|it| {
        let arguments = it.item.arguments.iter();
        let arguments = arguments.map(|it| {
            format!(
                "{} ({}) {} {:?}",
                it.name, it.description, it.required, it.values
            )
        });
        format!("{}: {}", it.name, arguments.collect::<Vec<_>>().join(", "))
    });
    expect![[r#"
        summarize: sentences (How long it may be.) false [], without (What to leave out.) false []
        startle: 
        answer: tone () true ["warm", "cold"], to () false ["warm", "cold"]
        translate: language (The language.) true [], polite () true []"#]]
    .assert_eq(&prompts.collect::<Vec<_>>().join("\n"));
}
