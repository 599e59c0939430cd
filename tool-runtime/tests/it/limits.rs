//! Results that are too long.

use crate::host::{Recorder, caller, context, recorded};
use expect_test::expect;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use tool_runtime::{
    Body, Caller, Content, Context, Dispatcher, Json, Limits, Output, Registry, ToolServer as _,
    tool_server,
};

#[derive(Serialize, JsonSchema)]
struct Found {
    names: Vec<String>,
}

struct Talker;

#[tool_server(name = "talker", version = "1.0.0", manual)]
impl Talker {
    /// Say it.
    #[tool]
    fn say(text: String) -> String {
        text
    }

    /// Say it as often.
    #[tool]
    fn repeat(text: String, times: usize) -> String {
        text.repeat(times)
    }

    /// Find names.
    #[tool]
    fn find(count: usize) -> Json<Found> {
        Json(Found {
            names: (0..count).map(|it| format!("name {it}")).collect(),
        })
    }

    /// Say it in parts, with a picture between.
    #[tool]
    fn parts(text: String) -> Vec<Content> {
        vec![
            Content::text(text.clone()),
            Content::image([1, 2, 3], "image/png"),
            Content::text(text),
        ]
    }

    /// Say it in a resource.
    #[tool]
    fn attach(text: String) -> Content {
        Content::resource("said://now", "text/plain", text)
    }

    /// Fail at length.
    #[tool]
    fn fail(text: String) -> Output {
        Output::error(text)
    }
}

fn talker(output: usize) -> (Dispatcher, Recorder) {
    let limits = Limits {
        output,
        ..Limits::default()
    };
    recorded(Registry::empty().with(Talker).unwrap(), limits)
}

async fn call(dispatcher: &Dispatcher, name: &str, arguments: &str, context: &Context) -> Output {
    let output = dispatcher.call(name, arguments, context).await;
    output.unwrap_or_else(|error| panic!("{error}"))
}

/// Takes the note off a cut result: what was shown, and the arguments of `read_result` to read on.
pub(crate) fn shown_and_next(text: &str) -> (&str, Option<&str>) {
    let note = text.rfind("\n\n[cut after ");
    match note.filter(|_| text.ends_with(']')) {
        None => (text, None),
        Some(at) => {
            let (_, next) = text[at..].split_once("call `read_result` with ").unwrap();
            (&text[..at], next.strip_suffix(']'))
        }
    }
}

/// The handle is random; for a snapshot it is not.
pub(crate) fn without_handle(text: &str) -> String {
    let Some((before, after)) = text.split_once(r#"{"handle":""#) else {
        return text.to_owned();
    };
    let (handle, after) = after.split_once('"').unwrap();
    assert_eq!(handle.len(), 17, "{handle}");
    format!(r#"{before}{{"handle":"…"{after}"#)
}

#[tokio::test(start_paused = true)]
async fn what_is_short_stays_whole() {
    let (dispatcher, recorder) = talker(20);
    let output = call(
        &dispatcher,
        "say",
        r#"{"text":"exactly twenty bytes"}"#,
        &context(),
    )
    .await;
    assert_eq!(output.to_text(), "exactly twenty bytes");
    assert!(!recorder.line().contains("cut"));
}

#[tokio::test(start_paused = true)]
async fn what_is_long_is_cut_with_a_note_and_a_record() {
    let (dispatcher, recorder) = talker(20);
    let output = call(
        &dispatcher,
        "say",
        r#"{"text":"more than twenty bytes"}"#,
        &context(),
    )
    .await;
    expect![[r#"
        more than twenty byt

        [cut after 20 of 22 bytes; to read on, call `read_result` with {"handle":"…","offset":20}]"#]].assert_eq(&without_handle(&output.to_text()));
    assert!(!output.is_error);
    expect!["say = talker/say by `codex`, 0 ms, 33 bytes, cut of 22: done"]
        .assert_eq(&recorder.line());
}

#[tokio::test(start_paused = true)]
async fn a_cut_never_splits_a_character() {
    for (text, kept) in [
        ("aaaaaaaaé", "aaaaaaaaé"),
        ("aaaaaaaaaé", "aaaaaaaaa"),
        ("ééééé🦀", "ééééé"),
        ("aéééé🦀", "aéééé"),
        ("🦀🦀🦀", "🦀🦀"),
    ] {
        let (dispatcher, _) = talker(10);
        let arguments = serde_json::json!({ "text": text }).to_string();
        let output = call(&dispatcher, "say", &arguments, &context()).await;
        let output = output.to_text();
        assert_eq!(shown_and_next(&output).0, kept);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_cut_too_and_stays_one() {
    let (dispatcher, _) = talker(5);
    let output = call(
        &dispatcher,
        "fail",
        r#"{"text":"it went wrong"}"#,
        &context(),
    )
    .await;
    assert!(output.is_error);
    expect![[r#"
        it we

        [cut after 5 of 13 bytes; to read on, call `read_result` with {"handle":"…","offset":5}]"#]]
    .assert_eq(&without_handle(&output.to_text()));
}

#[tokio::test(start_paused = true)]
async fn other_content_stays_beside_cut_text() {
    let (dispatcher, _) = talker(5);
    let output = call(&dispatcher, "parts", r#"{"text":"part"}"#, &context()).await;
    assert_eq!(output.content.len(), 2);
    expect![[r#"
        part

        [cut after 5 of 9 bytes; to read on, call `read_result` with {"handle":"…","offset":5}]"#]]
    .assert_eq(&without_handle(&output.to_text()));
    assert_eq!(output.content[1], Content::image([1, 2, 3], "image/png"));
}

#[tokio::test(start_paused = true)]
async fn the_text_of_a_resource_is_cut_too() {
    let (dispatcher, recorder) = talker(5);
    let output = call(&dispatcher, "attach", r#"{"text":"too long"}"#, &context()).await;
    let [
        Content::Resource {
            body: Body::Text(text),
            ..
        },
    ] = &output.content[..]
    else {
        panic!("{output:?}");
    };
    expect![[r#"
        too l

        [cut after 5 of 8 bytes; to read on, call `read_result` with {"handle":"…","offset":5}]"#]]
    .assert_eq(&without_handle(text));
    expect!["attach = talker/attach by `codex`, 0 ms, 19 bytes, cut of 8: done"]
        .assert_eq(&recorder.line());
}

#[tokio::test(start_paused = true)]
async fn structured_data_that_is_too_long_is_an_error_with_its_beginning() {
    let (dispatcher, recorder) = talker(40);
    let whole = call(&dispatcher, "find", r#"{"count":2}"#, &context()).await;
    assert!(whole.structured.is_some());
    recorder.line();
    let output = call(&dispatcher, "find", r#"{"count":9}"#, &context()).await;
    assert!(output.is_error);
    assert!(output.structured.is_none());
    expect![[r#"
        {"names":["name 0","name 1","name 2","na

        [cut after 40 of 92 bytes; to read on, call `read_result` with {"handle":"…","offset":40}]"#]].assert_eq(&without_handle(&output.to_text()));
    expect![[r#"
        find = talker/find by `codex`, 0 ms, 11 bytes, cut of 92: failed: {"names":["name 0","name 1","name 2","na

        [cut after 40 of 92 bytes; to read on, call `read_result` with {"handle":"…","offset":40}]"#]].assert_eq(&without_handle(&recorder.line()));
}

#[tokio::test(start_paused = true)]
async fn read_result_reads_on_from_where_the_note_says() {
    let (dispatcher, _) = talker(2_000);
    let context = context();
    let text = (0..900)
        .map(|it| it.to_string())
        .collect::<Vec<_>>()
        .join(" ");
    let arguments = serde_json::json!({ "text": text }).to_string();
    let first = call(&dispatcher, "say", &arguments, &context)
        .await
        .to_text();
    let (shown, next) = shown_and_next(&first);
    assert_eq!(shown, &text[..2_000]);
    let second = call(&dispatcher, "read_result", next.unwrap(), &context).await;
    let second = second.to_text();
    let (shown, next) = shown_and_next(&second);
    assert_eq!(shown, &text[2_000..]);
    assert_eq!(next, None);
}

#[tokio::test(start_paused = true)]
async fn another_principal_can_not_read_it() {
    let (dispatcher, _) = talker(5);
    let output = call(&dispatcher, "say", r#"{"text":"my own words"}"#, &context()).await;
    let output = output.to_text();
    let (_, next) = shown_and_next(&output);
    let other = Context::new(Caller {
        principal: "somebody else".to_owned(),
        ..caller()
    });
    let refused = call(&dispatcher, "read_result", next.unwrap(), &other).await;
    assert!(refused.is_error);
    expect!["this result is gone: only the latest ones are kept; make the call again that gave it"]
        .assert_eq(&refused.to_text());
    let read = call(&dispatcher, "read_result", next.unwrap(), &context()).await;
    assert_eq!(shown_and_next(&read.to_text()).0, "n wor");
}

#[tokio::test(start_paused = true)]
async fn what_can_not_be_read_says_why() {
    let (dispatcher, _) = talker(4);
    let output = call(&dispatcher, "say", r#"{"text":"ééé"}"#, &context()).await;
    let output = output.to_text();
    let (_, next) = shown_and_next(&output);
    let next: serde_json::Value = serde_json::from_str(next.unwrap()).unwrap();
    let handle = next["handle"].as_str().unwrap();
    let mut lines = Vec::new();
    for (handle, offset) in [
        ("r0", 0),
        (handle, 1),
        (handle, 6),
        (handle, 7),
        (handle, u64::MAX),
    ] {
        let arguments = serde_json::json!({ "handle": handle, "offset": offset }).to_string();
        let output = call(&dispatcher, "read_result", &arguments, &context()).await;
        lines.push(format!("{offset}: {:?}", output.to_text()));
    }
    expect![[r#"
        0: "this result is gone: only the latest ones are kept; make the call again that gave it"
        1: "the offset must be one that stands in a cut result"
        6: ""
        7: "the offset must be one that stands in a cut result"
        18446744073709551615: "the offset must be one that stands in a cut result""#]]
    .assert_eq(&lines.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn only_the_latest_results_are_kept() {
    let (dispatcher, _) = talker(4);
    let context = context();
    let mut nexts = Vec::new();
    for it in 100..165 {
        let arguments = format!(r#"{{"text":"long {it}"}}"#);
        let output = call(&dispatcher, "say", &arguments, &context)
            .await
            .to_text();
        nexts.push(shown_and_next(&output).1.unwrap().to_owned());
    }
    assert!(
        call(&dispatcher, "read_result", &nexts[0], &context)
            .await
            .is_error
    );
    for (next, it) in nexts.iter().zip(100..165).skip(1) {
        let output = call(&dispatcher, "read_result", next, &context).await;
        assert!(output.to_text().starts_with(&format!(" {it}")[..4]));
    }
}

#[tokio::test(start_paused = true)]
async fn great_results_push_older_ones_out() {
    let (dispatcher, _) = talker(4);
    let context = context();
    let mut nexts = Vec::new();
    for _ in 0..3 {
        let arguments = r#"{"text":"0123456789abcdef","times":2000000}"#;
        let output = call(&dispatcher, "repeat", arguments, &context)
            .await
            .to_text();
        nexts.push(shown_and_next(&output).1.unwrap().to_owned());
    }
    let mut kept = Vec::new();
    for next in &nexts {
        kept.push(
            !call(&dispatcher, "read_result", next, &context)
                .await
                .is_error,
        );
    }
    assert_eq!(kept, [false, true, true]);
}

#[test]
fn the_reader_is_a_tool_like_any_other() {
    let definition = tool_runtime::Results::DEFINITION;
    let tools: Vec<String> = definition
        .tools
        .iter()
        .map(|it| it.name.to_string())
        .collect();
    assert_eq!(tools, ["mcp__results__read_result"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_pieces_make_the_whole(
        text in "(\\PC|\n\n|\\[cut after |é|🦀){0,400}",
        limit in 1_usize..300,
        length in proptest::option::of(1_000_u32..80_000),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let whole = runtime.block_on(async {
            let (dispatcher, _) = talker(limit);
            let context = context();
            let arguments = serde_json::json!({ "text": text }).to_string();
            let mut whole = String::new();
            let mut piece = call(&dispatcher, "say", &arguments, &context).await.to_text();
            loop {
                // A text that fits has no note, even if it looks as if it had one.
                if whole.is_empty() && text.len() <= limit {
                    break piece;
                }
                let (shown, next) = shown_and_next(&piece);
                whole.push_str(shown);
                let Some(next) = next else { break whole };
                let mut next: serde_json::Value = serde_json::from_str(next).unwrap();
                if let Some(length) = length {
                    next["length"] = length.into();
                }
                let next = next.to_string();
                piece = call(&dispatcher, "read_result", &next, &context).await.to_text();
            }
        });
        prop_assert_eq!(whole, text);
    }
}
