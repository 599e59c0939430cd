//! Resources by URI, and prompts by what a person fills in.

use crate::host::{context, limits, reaching, recorded};
use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use tool_runtime::{
    Content, Context, Dispatcher, Message, Registry, Resource, Role, Selection, ToolError,
    tool_server,
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
        answer: tone () true ["warm", "cold"], to () false ["warm", "cold"]
        translate: language (The language.) true [], polite () true []"#]]
    .assert_eq(&prompts.collect::<Vec<_>>().join("\n"));
}
