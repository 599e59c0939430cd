//! One call, however it ends; and one record of it.

use crate::host::{Log, Recorder, caller, context, limits, reaching, recorded, scoped};
use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use std::{
    error::Error,
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tool_runtime::{
    Caller, Cancellation, Context, Dispatcher, Limits, Registry, Selection, ToolError, tool_server,
};

#[derive(Debug)]
struct Outer(Inner);

#[derive(Debug)]
struct Inner;

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("could not open the notes")
    }
}

impl Error for Outer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk is full")
    }
}

impl Error for Inner {}

/// A type whose own reading panics.
#[derive(Debug, JsonSchema)]
#[serde(transparent)]
#[expect(dead_code, reason = "it is only printed")]
struct Odd(String);

impl<'de> Deserialize<'de> for Odd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        assert!(text.is_empty(), "too odd");
        Ok(Self(text))
    }
}

#[derive(Default)]
struct Desk {
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

#[tool_server(name = "desk", version = "1.0.0", manual)]
impl Desk {
    /// Greet somebody.
    #[tool(read_only)]
    async fn greet(name: String, caller: &Caller) -> String {
        format!("hello {name}, from {}", caller.engine)
    }

    /// Fail for two reasons.
    #[tool]
    async fn fail() -> Result<String, ToolError> {
        Err(Outer(Inner))?
    }

    /// Fail with a sentence.
    #[tool]
    fn refuse() -> Result<String, ToolError> {
        Err("not today".into())
    }

    /// Panic at once.
    #[tool]
    async fn panic_at_once(word: Option<String>) -> String {
        panic!("x {word:?}")
    }

    /// Panic in a function that is not async.
    #[tool]
    fn panic_in_sync() -> String {
        panic!("sync")
    }

    /// Panic after a pause.
    #[tool]
    async fn panic_later() -> String {
        tokio::time::sleep(Duration::from_secs(1)).await;
        panic!("later")
    }

    /// Panic with something that is no text.
    #[tool]
    async fn panic_oddly() -> String {
        std::panic::panic_any(7)
    }

    /// Take what can't be taken.
    #[tool]
    fn take_odd(odd: Odd) -> String {
        format!("{odd:?}")
    }

    /// Wait for some seconds.
    #[tool]
    async fn wait(&self, seconds: u64) -> String {
        let at_once = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.at_once.fetch_sub(1, Ordering::Relaxed);
        format!("waited {seconds} s")
    }

    /// Wait for some seconds, but never long.
    #[tool(timeout = "3s")]
    async fn wait_briefly(seconds: u64) -> String {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        "waited".to_owned()
    }

    /// Tell how many waited at once.
    #[tool]
    fn most_at_once(&self) -> String {
        self.most_at_once.load(Ordering::Relaxed).to_string()
    }

    /// Write something down.
    #[tool(scopes("notes:write", "notes:read"))]
    fn write() -> String {
        "written".to_owned()
    }

    /// Index the project.
    #[tool(requires(project))]
    fn index(caller: &Caller) -> String {
        format!("indexed {}", caller.project)
    }
}

struct Counter;

#[tool_server(name = "counter", version = "1.0.0", manual)]
impl Counter {
    /// Greet a customer.
    #[tool]
    fn greet() -> String {
        "next".to_owned()
    }
}

fn desk() -> (Dispatcher, Recorder) {
    let registry = Registry::empty().with(Desk::default()).unwrap();
    recorded(registry, limits(10))
}

fn desk_and_counter() -> (Dispatcher, Recorder) {
    let registry = Registry::empty().with(Desk::default());
    let registry = registry.and_then(|it| it.with(Counter));
    recorded(registry.unwrap(), limits(10))
}

/// Makes a call, and shows how it ended and what was recorded.
async fn shown(
    host: &(Dispatcher, Recorder),
    name: &str,
    arguments: &str,
    context: &Context,
) -> String {
    let (dispatcher, recorder) = host;
    let answer = match dispatcher.call(name, arguments, context).await {
        Ok(output) if output.is_error => format!("failed: {}", output.to_text()),
        Ok(output) => output.to_text(),
        Err(error) => format!("{}: {error}", error.code()),
    };
    format!("{answer}\n{}", recorder.line())
}

async fn check(name: &str, arguments: &str, expect: Expect) {
    expect.assert_eq(&shown(&desk(), name, arguments, &context()).await);
}

async fn check_by(caller: Caller, name: &str, arguments: &str, expect: Expect) {
    let context = Context::new(caller);
    expect.assert_eq(&shown(&desk_and_counter(), name, arguments, &context).await);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_done() {
    check(
        "greet",
        r#"{"name":"Ana"}"#,
        expect![[r#"
            hello Ana, from codex
            greet = desk/greet by `codex`, 0 ms, 14 bytes: done"#]],
    )
    .await;
    check(
        "mcp__clopen-mcp__greet",
        r#"{"name":"Ana"}"#,
        expect![[r#"
            hello Ana, from codex
            mcp__clopen-mcp__greet = desk/greet by `codex`, 0 ms, 14 bytes: done"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_repaired_call_says_what_was_repaired() {
    check(
        "wait",
        r#"{"seconds":"2"}"#,
        expect![[r#"
            waited 2 s
            wait = desk/wait by `codex`, 2000 ms, 15 bytes, repaired /seconds: done"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_tells_all_causes() {
    check("fail", "", expect![[r#"
        failed: could not open the notes: the disk is full
        fail = desk/fail by `codex`, 0 ms, 0 bytes: failed: could not open the notes: the disk is full"#]]).await;
    check(
        "refuse",
        "",
        expect![[r#"
            failed: not today
            refuse = desk/refuse by `codex`, 0 ms, 0 bytes: failed: not today"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn def_251_a_panic_is_an_error_of_that_call_only_and_is_logged() {
    let host = desk();
    let log = Log::default();
    let guard = log.listen();
    let context = context();
    let mut lines = Vec::new();
    for name in [
        "panic_at_once",
        "panic_in_sync",
        "panic_later",
        "panic_oddly",
        "take_odd",
        "refuse",
    ] {
        let arguments = if name == "take_odd" {
            r#"{"odd":"x"}"#
        } else {
            ""
        };
        lines.push(shown(&host, name, arguments, &context).await);
    }
    expect![[r#"
        panicked: `panic_at_once` failed by an internal error; the same call will probably fail again
        panic_at_once = desk/panic_at_once by `codex`, 0 ms, 0 bytes: refused: panicked Panicked { tool: "panic_at_once", message: "x None" }
        panicked: `panic_in_sync` failed by an internal error; the same call will probably fail again
        panic_in_sync = desk/panic_in_sync by `codex`, 0 ms, 0 bytes: refused: panicked Panicked { tool: "panic_in_sync", message: "sync" }
        panicked: `panic_later` failed by an internal error; the same call will probably fail again
        panic_later = desk/panic_later by `codex`, 1000 ms, 0 bytes: refused: panicked Panicked { tool: "panic_later", message: "later" }
        panicked: `panic_oddly` failed by an internal error; the same call will probably fail again
        panic_oddly = desk/panic_oddly by `codex`, 0 ms, 0 bytes: refused: panicked Panicked { tool: "panic_oddly", message: "no message" }
        panicked: `take_odd` failed by an internal error; the same call will probably fail again
        take_odd = desk/take_odd by `codex`, 0 ms, 11 bytes: refused: panicked Panicked { tool: "take_odd", message: "too odd" }
        failed: not today
        refuse = desk/refuse by `codex`, 0 ms, 0 bytes: failed: not today"#]].assert_eq(&lines.join("\n"));
    drop(guard);
    expect![[r#"
        ERROR tool_runtime::dispatcher: a tool panicked server="desk" tool="panic_at_once" panic="x None"
        ERROR tool_runtime::dispatcher: a tool panicked server="desk" tool="panic_in_sync" panic="sync"
        ERROR tool_runtime::dispatcher: a tool panicked server="desk" tool="panic_later" panic="later"
        ERROR tool_runtime::dispatcher: a tool panicked server="desk" tool="panic_oddly" panic="no message"
        ERROR tool_runtime::dispatcher: a tool panicked server="desk" tool="take_odd" panic="too odd"
    "#]].assert_eq(&log.text());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_stopped() {
    check(
        "wait",
        r#"{"seconds":9}"#,
        expect![[r#"
            waited 9 s
            wait = desk/wait by `codex`, 9000 ms, 13 bytes: done"#]],
    )
    .await;
    check("wait", r#"{"seconds":11}"#, expect![[r#"
        timed_out: `wait` was stopped after 10 s: that is the limit for one call
        wait = desk/wait by `codex`, 10000 ms, 14 bytes: refused: timed_out TimedOut { tool: "wait", limit: 10s }"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_set_its_own_limit() {
    check(
        "wait_briefly",
        r#"{"seconds":2}"#,
        expect![[r#"
            waited
            wait_briefly = desk/wait_briefly by `codex`, 2000 ms, 13 bytes: done"#]],
    )
    .await;
    check("wait_briefly", r#"{"seconds":4}"#, expect![[r#"
        timed_out: `wait_briefly` was stopped after 3 s: that is the limit for one call
        wait_briefly = desk/wait_briefly by `codex`, 3000 ms, 13 bytes: refused: timed_out TimedOut { tool: "wait_briefly", limit: 3s }"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_taken_back_is_stopped() {
    let host = desk();
    let context = context();
    let cancellation: Cancellation = context.cancellation.clone();
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        cancellation.cancel();
    };
    let (shown, ()) = tokio::join!(shown(&host, "wait", r#"{"seconds":9}"#, &context), cancel);
    expect![[r#"
        cancelled: the call of `wait` was cancelled
        wait = desk/wait by `codex`, 4000 ms, 13 bytes: refused: cancelled Cancelled { tool: "wait" }"#]].assert_eq(&shown);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_taken_back_before_it_began_does_nothing() {
    let host = desk();
    let context = context();
    context.cancellation.cancel();
    let line = shown(&host, "panic_at_once", "", &context).await;
    expect![[r#"
        cancelled: the call of `panic_at_once` was cancelled
        panic_at_once = desk/panic_at_once by `codex`, 0 ms, 0 bytes: refused: cancelled Cancelled { tool: "panic_at_once" }"#]].assert_eq(&line);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_leaves_a_record_too() {
    let (dispatcher, recorder) = desk();
    let context = context();
    let call = dispatcher.call("wait", r#"{"seconds":9}"#, &context);
    let waited = tokio::time::timeout(Duration::from_secs(2), call).await;
    assert!(waited.is_err());
    expect![[r#"wait = desk/wait by `codex`, 2000 ms, 13 bytes: refused: cancelled Cancelled { tool: "wait" }"#]].assert_eq(&recorder.line());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_ends_even_if_its_tool_is_turned_off() {
    let host = desk();
    let context = context();
    let turn_off = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let selection = Selection::all().without(Desk::WAIT);
        host.0.select(selection).unwrap();
    };
    let call = host.0.call("wait", r#"{"seconds":2}"#, &context);
    let (output, ()) = tokio::join!(call, turn_off);
    assert_eq!(output.unwrap().to_text(), "waited 2 s");
    let error = host.0.call("wait", r#"{"seconds":2}"#, &context).await;
    assert_eq!(error.unwrap_err().code(), "tool_disabled");
}

#[tokio::test(start_paused = true)]
async fn a_call_with_bad_arguments_is_refused() {
    check("greet", r#"{"nam":"Ana"}"#, expect![[r#"
        invalid_arguments: the arguments of `greet` are not valid, nothing was done:
        - there is no `nam`; did you mean `name`?
        - `name` is required
        greet = desk/greet by `codex`, 0 ms, 13 bytes: refused: invalid_arguments InvalidArguments { tool: "greet", violations: [Violation { path: "", message: "there is no `nam`; did you mean `name`?" }, Violation { path: "", message: "`name` is required" }] }"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_off_is_refused() {
    let host = desk();
    let selection = Selection::all().without(Desk::GREET);
    host.0.select(selection).unwrap();
    let off = shown(&host, "greet", r#"{"name":"Ana"}"#, &context()).await;
    expect![[r#"
        tool_disabled: the tool `mcp__desk__greet` is turned off
        greet = desk/greet by `codex`, 0 ms, 14 bytes: refused: tool_disabled Disabled { name: "mcp__desk__greet" }"#]].assert_eq(&off);
    let selection = Selection::all().without_server("desk");
    host.0.select(selection).unwrap();
    let off = shown(&host, "refuse", "", &context()).await;
    expect![[r#"
        tool_disabled: the tool `mcp__desk__refuse` is turned off
        refuse = desk/refuse by `codex`, 0 ms, 0 bytes: refused: tool_disabled Disabled { name: "mcp__desk__refuse" }"#]].assert_eq(&off);
    host.0.select(Selection::all()).unwrap();
    let on = shown(&host, "greet", r#"{"name":"Ana"}"#, &context()).await;
    expect![[r#"
        hello Ana, from codex
        greet = desk/greet by `codex`, 0 ms, 14 bytes: done"#]]
    .assert_eq(&on);
}

#[tokio::test(start_paused = true)]
async fn a_selection_of_what_does_not_exist_changes_nothing() {
    let host = desk();
    let selection = Selection::all()
        .without_server("desk")
        .without_server("dsk");
    host.0.select(selection).unwrap_err();
    let on = shown(&host, "refuse", "", &context()).await;
    expect![[r#"
        failed: not today
        refuse = desk/refuse by `codex`, 0 ms, 0 bytes: failed: not today"#]]
    .assert_eq(&on);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_refused_with_what_may_be_meant() {
    check("gret", "", expect![[r#"
        unknown_tool: there is no tool `gret`; did you mean `greet`?
        gret = - by `codex`, 0 ms, 0 bytes: refused: unknown_tool Unknown { name: "gret", similar: ["greet"] }"#]]).await;
    check("make_coffee", "", expect![[r#"
        unknown_tool: there is no tool `make_coffee`
        make_coffee = - by `codex`, 0 ms, 0 bytes: refused: unknown_tool Unknown { name: "make_coffee", similar: [] }"#]]).await;
    check(
        "",
        "",
        expect![[r#"
            unknown_tool: there is no tool ``
             = - by `codex`, 0 ms, 0 bytes: refused: unknown_tool Unknown { name: "", similar: [] }"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_name_is_refused_with_the_candidates() {
    check_by(caller(), "greet", "", expect![[r#"
        ambiguous_tool: `greet` could mean several: call `mcp__counter__greet` or `mcp__desk__greet`
        greet = - by `codex`, 0 ms, 0 bytes: refused: ambiguous_tool Ambiguous(Ambiguous { name: "greet", candidates: ["mcp__counter__greet", "mcp__desk__greet"] })"#]]).await;
    check_by(
        caller(),
        "counter_greet",
        "",
        expect![[r#"
            next
            counter_greet = counter/greet by `codex`, 0 ms, 0 bytes: done"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_was_not_given_is_missing() {
    check_by(scoped(&[]), "write", "", expect![[r#"
        forbidden: `write` needs the scopes `notes:write` and `notes:read`, which this caller has not been given
        write = desk/write by `codex`, 0 ms, 0 bytes: refused: forbidden Forbidden { tool: "write", missing: ["notes:write", "notes:read"] }"#]]).await;
    check_by(scoped(&["notes:write"]), "write", "", expect![[r#"
        forbidden: `write` needs the scope `notes:read`, which this caller has not been given
        write = desk/write by `codex`, 0 ms, 0 bytes: refused: forbidden Forbidden { tool: "write", missing: ["notes:read"] }"#]]).await;
    check_by(
        scoped(&["notes:write", "notes:read"]),
        "write",
        "",
        expect![[r#"
            written
            write = desk/write by `codex`, 0 ms, 0 bytes: done"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_want_a_project() {
    check_by(caller(), "index", "", expect![[r#"
        project_required: `index` works on a project, and this call does not say which: connect with a URL that ends in `?project=NAME`
        index = desk/index by `codex`, 0 ms, 0 bytes: refused: project_required ProjectRequired { tool: "index" }"#]]).await;
    let from_project = Caller {
        project: "shop".to_owned(),
        ..caller()
    };
    check_by(
        from_project,
        "index",
        "",
        expect![[r#"
            indexed shop
            index = desk/index by `codex`, 0 ms, 0 bytes: done"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_may_not_know_of_does_not_exist() {
    let greet = r#"{"name":"Ana"}"#;
    check_by(reaching(&["counter"], false), "refuse", "", expect![[r#"
        unknown_tool: there is no tool `refuse`
        refuse = - by `codex`, 0 ms, 0 bytes: refused: unknown_tool Unknown { name: "refuse", similar: [] }"#]]).await;
    check_by(reaching(&["counter"], false), "refus", "", expect![[r#"
        unknown_tool: there is no tool `refus`
        refus = - by `codex`, 0 ms, 0 bytes: refused: unknown_tool Unknown { name: "refus", similar: [] }"#]]).await;
    check_by(reaching(&["counter"], false), "desk_greet", greet, expect![[r#"
        unknown_tool: there is no tool `desk_greet`
        desk_greet = - by `codex`, 0 ms, 14 bytes: refused: unknown_tool Unknown { name: "desk_greet", similar: [] }"#]]).await;
    check_by(
        reaching(&["counter"], false),
        "greet",
        "",
        expect![[r#"
            next
            greet = counter/greet by `codex`, 0 ms, 0 bytes: done"#]],
    )
    .await;
    check_by(
        reaching(&["desk"], true),
        "greet",
        greet,
        expect![[r#"
            hello Ana, from codex
            greet = desk/greet by `codex`, 0 ms, 14 bytes: done"#]],
    )
    .await;
    check_by(reaching(&["desk", "counter"], true), "counter_greet", "", expect![[r#"
        unknown_tool: there is no tool `counter_greet`
        counter_greet = - by `codex`, 0 ms, 0 bytes: refused: unknown_tool Unknown { name: "counter_greet", similar: [] }"#]]).await;
    check_by(reaching(&["desk"], true), "refuse", "", expect![[r#"
        unknown_tool: there is no tool `refuse`
        refuse = - by `codex`, 0 ms, 0 bytes: refused: unknown_tool Unknown { name: "refuse", similar: [] }"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn many_calls_run_at_once_and_leave_one_record_each() {
    let (dispatcher, recorder) = desk();
    let context = context();
    let started = tokio::time::Instant::now();
    let calls = (0..200).map(|it| {
        let (dispatcher, context) = (&dispatcher, &context);
        async move {
            let seconds = it % 5 + 1;
            let arguments = format!(r#"{{"seconds":{seconds}}}"#);
            let output = dispatcher.call("wait", &arguments, context).await;
            assert_eq!(output.unwrap().to_text(), format!("waited {seconds} s"));
        }
    });
    futures_util::future::join_all(calls).await;
    assert_eq!(started.elapsed().as_secs(), 5);
    let lines = recorder.lines();
    assert_eq!(lines.len(), 200);
    assert!(lines.iter().all(|it| it.ends_with(": done")), "{lines:#?}");
    let most = dispatcher.call("most_at_once", "", &context).await;
    assert_eq!(most.unwrap().to_text(), "200");
}

#[tokio::test(start_paused = true)]
async fn no_observer_is_needed() {
    let registry = Registry::empty().with(Desk::default()).unwrap();
    let dispatcher = Dispatcher::with(registry, Vec::new(), Limits::default(), Vec::new()).unwrap();
    let output = dispatcher.call("refuse", "", &Context::default()).await;
    assert!(output.unwrap().is_error);
}

#[test]
fn errors_tell_their_causes_once() {
    let error = ToolError::from(Outer(Inner));
    assert_eq!(
        error.to_string(),
        "could not open the notes: the disk is full"
    );
    assert!(error.downcast_ref::<Outer>().is_some());
    assert!(error.downcast_ref::<Inner>().is_some());
    let quoted = std::io::Error::other(Inner);
    assert_eq!(ToolError::from(quoted).to_string(), "the disk is full");
    assert_eq!(ToolError::from("no").to_string(), "no");
    assert_eq!(ToolError::from("no".to_owned()).to_string(), "no");
    assert_eq!(format!("{:?}", ToolError::from("no")), "ToolError(no)");
}
