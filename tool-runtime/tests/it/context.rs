//! What the runtime lends.

use crate::host::{caller, context, limits, recorded};
use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    future::ready,
    sync::{Arc, Mutex},
    time::Duration,
};
use tool_runtime::{
    BoxFuture, CallError, Caller, Cancellation, Change, Changes, Client, ClientError, Context,
    Conversation, Dispatcher, InputRequired, Level, Log, Progress, ProgressReport, Question,
    Registry, Scopes, Selection, ToolError, tool_server,
};

fn collected() -> (Arc<Mutex<Vec<ProgressReport>>>, Progress) {
    let reports: Arc<Mutex<Vec<ProgressReport>>> = Arc::default();
    let into = reports.clone();
    (
        reports,
        Progress::to(move |it| into.lock().unwrap().push(it)),
    )
}

#[test]
fn progress_that_does_not_move_forward_is_left_out() {
    let (reports, progress) = collected();
    for done in [0, 0, 1, 3, 2, 3, 4, 4, u64::MAX, u64::MAX] {
        progress.report(done, 10);
    }
    let reports = reports.lock().unwrap();
    let done: Vec<Option<u64>> = reports.iter().map(|it| it.done.as_u64()).collect();
    assert_eq!(done, [0, 1, 3, 4, u64::MAX].map(Some));
}

#[test]
fn progress_tells_what_is_going_on() {
    let (reports, progress) = collected();
    progress.report_with(1, 2, "half");
    let report = ProgressReport {
        done: 1.into(),
        total: Some(2.into()),
        message: Some("half".to_owned()),
    };
    assert_eq!(*reports.lock().unwrap(), [report]);
    assert_eq!(format!("{progress:?}"), "Progress(listened to: true)");
}

#[test]
fn nobody_needs_to_listen() {
    let context = Context::default();
    context.progress.report(1, 1);
    context.log.info("x");
    assert_eq!(
        format!("{:?}", context.progress),
        "Progress(listened to: false)"
    );
    assert_eq!(format!("{:?}", context.log), "Log(listened to: false)");
    assert_eq!(
        format!("{:?}", context.client),
        "Client(can be asked: false)"
    );
}

#[test]
fn a_log_hands_levels_and_data_on() {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let into = lines.clone();
    let log = Log::to(move |level, it| into.lock().unwrap().push(format!("{level:?} {it}")));
    log.debug("a");
    log.info("b");
    log.warning(json!({ "c": 1 }));
    log.error("d");
    log.log(Level::Emergency, "e");
    expect![[r#"
        Debug "a"
        Info "b"
        Warning {"c":1}
        Error "d"
        Emergency "e""#]]
    .assert_eq(&lines.lock().unwrap().join("\n"));
    assert!(Level::Debug < Level::Info && Level::Alert < Level::Emergency);
}

#[test]
fn scopes_include_what_was_given() {
    assert!(Scopes::All.include("anything"));
    let only = Scopes::Only(["a".to_owned()].into());
    assert!(only.include("a"));
    assert!(!only.include("b"));
}

/// A booking.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Booking {
    /// How many seats.
    #[schemars(range(min = 1, max = 8))]
    seats: u8,
    /// Where to sit.
    place: Place,
    window: bool,
    name: Option<String>,
    meal: Option<Meal>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// In front.
    Front,
    Back,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
enum Meal {
    Meat,
    /// Without meat.
    Vegetables,
}

struct Questions;

#[tool_server(name = "questions", version = "1.0.0", manual)]
impl Questions {
    /// Book seats.
    #[tool]
    async fn book(client: &Client) -> Result<String, ToolError> {
        let booking: Booking = client.elicit("Which seats?").await?;
        Ok(format!("{booking:?}"))
    }

    /// Let the person sign in.
    #[tool]
    async fn sign_in(client: &Client) -> Result<String, ToolError> {
        let page = "https://example.org/sign-in";
        client
            .named("sign-in")
            .elicit_url("Sign in, please.", page)
            .await?;
        Ok("opened".to_owned())
    }

    /// Change a resource.
    #[tool]
    fn rename(changes: &Changes) {
        changes.resource("questions://all");
    }

    /// Let the model write.
    #[tool]
    async fn write(client: &Client) -> Result<String, ToolError> {
        let answer = client
            .sample(json!({ "maxTokens": 10, "messages": [] }))
            .await?;
        Ok(answer["content"]["text"].to_string())
    }

    /// List the folders.
    #[tool]
    async fn folders(client: &Client) -> Result<String, ToolError> {
        Ok(format!("{:?}", client.roots().await?))
    }

    /// Borrow everything there is.
    #[tool]
    async fn borrow_all(
        caller: &Caller,
        progress: &Progress,
        cancellation: &Cancellation,
        log: &Log,
        client: &Client,
        context: &Context,
    ) -> String {
        progress.report(1, 2);
        log.info("borrowed");
        format!(
            "{} {} {client:?} {}",
            caller.engine,
            cancellation.is_cancelled(),
            std::ptr::eq(&raw const *caller, &raw const *context.caller)
        )
    }
}

/// Calls a tool whose client gives this answer; shows the output.
async fn check(name: &str, answer: Result<Value, ClientError>, expect: Expect) {
    expect.assert_eq(&asked_and_answered(name, answer).await.1);
}

/// Calls a tool whose client gives this answer; returns the question and the output.
async fn asked_and_answered(name: &str, answer: Result<Value, ClientError>) -> (String, String) {
    let (dispatcher, _) = recorded(Registry::empty().with(Questions).unwrap(), limits(1));
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let (into, answer) = (asked.clone(), Mutex::new(Some(answer)));
    let client = Client::to(move |question: Question| {
        let line = format!("{:?} {} {}", question.key, question.method, question.params);
        into.lock().unwrap().push(line);
        ready(answer.lock().unwrap().take().expect("one question"))
    });
    let context = Context {
        client,
        ..context()
    };
    let shown = match dispatcher.call(name, "", &context).await {
        Ok(output) => output.to_text(),
        Err(error) => format!("{}: {error}", error.code()),
    };
    let asked = asked.lock().unwrap().join("\n");
    (asked, shown)
}

#[tokio::test(start_paused = true)]
async fn a_question_is_put_in_the_words_of_the_protocol() {
    let mut asked = Vec::new();
    for name in ["book", "sign_in", "write", "folders"] {
        asked.push(asked_and_answered(name, Ok(Value::Null)).await.0);
    }
    expect![[r#"
        "" elicitation/create {"mode":"form","message":"Which seats?","requestedSchema":{"type":"object","properties":{"seats":{"type":"integer","description":"How many seats.","minimum":1,"maximum":8},"place":{"description":"Where to sit.\n- `front`: In front.","type":"string","enum":["back","front"]},"window":{"type":"boolean"},"name":{"type":"string"},"meal":{"type":"string","enum":["Meat","Vegetables"],"description":"- `Vegetables`: Without meat."}},"required":["seats","place","window"],"description":"A booking."}}
        "sign-in" elicitation/create {"mode":"url","message":"Sign in, please.","url":"https://example.org/sign-in"}
        "" sampling/createMessage {"maxTokens":10,"messages":[]}
        "" roots/list {}"#]].assert_eq(&asked.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_form_is_filled_in() {
    let content = json!({ "seats": 2, "place": "front", "window": true });
    check(
        "book",
        Ok(json!({ "action": "accept", "content": content })),
        expect!["Booking { seats: 2, place: Front, window: true, name: None, meal: None }"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_form_that_is_not_filled_in_ends_the_call() {
    check(
        "book",
        Ok(json!({ "action": "decline" })),
        expect!["the user declined to answer"],
    )
    .await;
    check(
        "book",
        Ok(json!({ "action": "cancel" })),
        expect!["the user closed the question without an answer"],
    )
    .await;
    check("book", Ok(json!({ "action": "shrug" })), expect!["the client's answer can't be read: `action` is none of `accept`, `decline` and `cancel`"]).await;
    check("book", Ok(json!("no")), expect!["the client's answer can't be read: `action` is none of `accept`, `decline` and `cancel`"]).await;
    check("book", Ok(json!({ "action": "accept" })), expect!["the client's answer can't be read: `content`: invalid type: null, expected struct Booking"]).await;
    check("book", Ok(json!({ "action": "accept", "content": { "seats": "two" } })), expect![[r#"the client's answer can't be read: `content`: invalid type: string "two", expected u8"#]]).await;
    let failed = ClientError::Failed {
        reason: "the window was closed".to_owned(),
    };
    check(
        "book",
        Err(failed),
        expect!["the client could not answer: the window was closed"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_page_is_opened_or_not() {
    check(
        "sign_in",
        Ok(json!({ "action": "accept" })),
        expect!["opened"],
    )
    .await;
    check(
        "sign_in",
        Ok(json!({ "action": "decline" })),
        expect!["the user declined to answer"],
    )
    .await;
    check("sign_in", Ok(json!({})), expect!["the client's answer can't be read: `action` is none of `accept`, `decline` and `cancel`"]).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_hears_of_changes() {
    let (dispatcher, _) = recorded(Registry::empty().with(Questions).unwrap(), limits(1));
    dispatcher.changes().tell(Change::Tools);
    let mut watching = dispatcher.changes().watch();
    let context = Context {
        changes: dispatcher.changes().clone(),
        ..context()
    };
    dispatcher.call("rename", "", &context).await.unwrap();
    dispatcher.select(Selection::all()).unwrap();
    let mut heard = Vec::new();
    while let Ok(change) = watching.try_recv() {
        heard.push(change);
    }
    let changed = Change::Resource("questions://all".to_owned());
    let lists = [Change::Tools, Change::Prompts, Change::Resources];
    assert_eq!(heard[0], changed);
    assert_eq!(heard[1..], lists);
}

#[test]
fn without_a_host_nobody_hears_of_changes() {
    let changes = Changes::default();
    let mut watching = changes.watch();
    changes.tell(Change::Tools);
    assert!(watching.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn the_clients_model_is_asked() {
    let answer = json!({ "role": "assistant", "content": { "type": "text", "text": "hello" } });
    check("write", Ok(answer), expect![[r#""hello""#]]).await;
    let unsupported = ClientError::Unsupported {
        method: "sampling/createMessage".into(),
    };
    check(
        "write",
        Err(unsupported),
        expect!["client_lacks: `write` must ask the client (`sampling/createMessage`), which this client can't answer"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_clients_folders_are_listed() {
    let roots = json!({ "roots": [{ "uri": "file:///a", "name": "A" }, { "uri": "file:///b" }] });
    check(
        "folders",
        Ok(roots),
        expect![[
            r#"[Root { uri: "file:///a", name: Some("A") }, Root { uri: "file:///b", name: None }]"#
        ]],
    )
    .await;
    check("folders", Ok(json!({ "roots": [] })), expect!["[]"]).await;
    check(
        "folders",
        Ok(json!({})),
        expect![
            "the client's answer can't be read: `roots`: invalid type: null, expected a sequence"
        ],
    )
    .await;
    check(
        "folders",
        Ok(json!([])),
        expect![
            "the client's answer can't be read: `roots`: invalid type: null, expected a sequence"
        ],
    )
    .await;
}

/// A client that answers only when the call is made again.
struct Later(Mutex<Vec<Question>>);

impl Conversation for Later {
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Value, ClientError>> {
        self.0.lock().unwrap().push(question);
        Box::pin(std::future::pending())
    }

    fn missing(&self) -> Option<InputRequired> {
        let questions = self.0.lock().unwrap().clone();
        (!questions.is_empty()).then(|| InputRequired {
            questions,
            state: None,
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_can_not_go_on_gives_its_questions() {
    let (dispatcher, recorder) = recorded(Registry::empty().with(Questions).unwrap(), limits(1));
    let context = Context {
        client: Client::to(Later(Mutex::default())),
        ..context()
    };
    let output = dispatcher.call("sign_in", "", &context).await.unwrap();
    expect![[r#"InputRequired { questions: [Question { key: "sign-in", method: "elicitation/create", params: Object {"mode": String("url"), "message": String("Sign in, please."), "url": String("https://example.org/sign-in")} }], state: None }"#]].assert_eq(&format!("{:?}", output.input_required.unwrap()));
    expect!["sign_in = questions/sign_in by `codex`, 0 ms, 0 bytes: done"]
        .assert_eq(&recorder.line());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_can_not_be_asked_is_an_error() {
    let (dispatcher, _) = recorded(Registry::empty().with(Questions).unwrap(), limits(1));
    let mut lines = Vec::new();
    for name in ["book", "write", "folders"] {
        let error = dispatcher.call(name, "", &context()).await.unwrap_err();
        lines.push(format!("{}: {error}", error.code()));
    }
    expect![[r#"
        client_lacks: `book` must ask the client (`elicitation/create`), which this client can't answer
        client_lacks: `write` must ask the client (`sampling/createMessage`), which this client can't answer
        client_lacks: `folders` must ask the client (`roots/list`), which this client can't answer"#]]
    .assert_eq(&lines.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn all_six_are_lent() {
    let (dispatcher, _) = recorded(Registry::empty().with(Questions).unwrap(), limits(1));
    let (reports, progress) = collected();
    let context = Context {
        progress,
        ..Context::new(caller())
    };
    let output = dispatcher.call("borrow_all", "", &context).await.unwrap();
    assert_eq!(
        output.to_text(),
        "codex false Client(can be asked: false) true"
    );
    assert_eq!(reports.lock().unwrap().len(), 1);
}

struct Inquirer;

/// Asks, and then works for too long.
#[tool_server(name = "inquirer", version = "1.0.0", manual)]
impl Inquirer {
    /// Ask the user something.
    #[tool]
    async fn inquire(client: &Client) -> Result<String, ToolError> {
        let answer = client.sample(json!({})).await?;
        Ok(answer.to_string())
    }
}

/// Calls the tool with a client that answers after some seconds.
async fn inquire(seconds: u64) -> Result<String, CallError> {
    let registry = Registry::empty().with(Inquirer).expect("the name is free");
    let dispatcher = Dispatcher::new(registry).expect("the names are free");
    let context = Context {
        client: Client::to(move |_: Question| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(json!("at last"))
        }),
        ..Context::default()
    };
    let output = dispatcher.call("inquire", "", &context).await?;
    Ok(output.to_text())
}

#[tokio::test(start_paused = true)]
async fn a_person_may_think_for_longer_than_a_tool_may_work() {
    assert_eq!(inquire(600).await.expect("it is in time"), "\"at last\"");
}

#[tokio::test(start_paused = true)]
async fn a_person_who_never_answers_is_not_waited_for_for_ever() {
    let error = inquire(100_000).await.expect_err("that is too long");
    assert_eq!(error.code(), "timed_out");
}
