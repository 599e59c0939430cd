//! What a tool returns, and what becomes of it.

use crate::host::{context, limits, recorded};
use expect_test::{Expect, expect};
use serde_json::json;
use std::borrow::Cow;
use tool_runtime::{
    Content, InputRequired, IntoMessages, IntoOutput, Json, Message, Output, Question, Registry,
    ToolError, tool_server,
};

#[track_caller]
fn check(returned: impl IntoOutput, expect: Expect) {
    let shown = match returned.into_output() {
        Ok(output) => {
            let structured = output.structured.as_ref().map(|it| it.get());
            format!("{:?} {structured:?} {}", output.content, output.is_error)
        }
        Err(error) => format!("{error:?}"),
    };
    expect.assert_eq(&shown);
}

#[test]
fn text() {
    check("a", expect![[r#"[Text("a")] None false"#]]);
    check("a".to_owned(), expect![[r#"[Text("a")] None false"#]]);
    check(Cow::Borrowed("a"), expect![[r#"[Text("a")] None false"#]]);
    check((), expect![[r#"[Text("done")] None false"#]]);
}

#[test]
fn content() {
    check(
        Content::link("map://1", "a map"),
        expect![[
            r#"[Link { uri: "map://1", name: "a map", mime_type: None, description: None }] None false"#
        ]],
    );
    check(
        vec![Content::text("a"), Content::image([255, 0], "image/png")],
        expect![[r#"[Text("a"), Image { data: "/wA=", mime_type: "image/png" }] None false"#]],
    );
    check(Vec::<Content>::new(), expect!["[] None false"]);
    check(
        Content::audio(b"ab", "audio/wav"),
        expect![[r#"[Audio { data: "YWI=", mime_type: "audio/wav" }] None false"#]],
    );
    check(
        Content::blob("map://1", "image/png", [1]),
        expect![[
            r#"[Resource { uri: "map://1", mime_type: Some("image/png"), body: Blob("AQ==") }] None false"#
        ]],
    );
    check(
        Content::resource("map://1", "text/plain", "here"),
        expect![[
            r#"[Resource { uri: "map://1", mime_type: Some("text/plain"), body: Text("here") }] None false"#
        ]],
    );
}

#[test]
fn structured_data() {
    check(
        Json(json!({ "n": 18_446_744_073_709_551_615_u64 })),
        expect![[
            r#"[Text("{\"n\":18446744073709551615}")] Some("{\"n\":18446744073709551615}") false"#
        ]],
    );
    check(
        Json([1, 2]),
        expect![[r#"[Text("[1,2]")] Some("[1,2]") false"#]],
    );
    check(
        Json(f64::NAN),
        expect![[r#"[Text("null")] Some("null") false"#]],
    );
    check(Output::error("no"), expect![[r#"[Text("no")] None true"#]]);
}

#[test]
fn results() {
    check(
        Ok::<_, ToolError>("a"),
        expect![[r#"[Text("a")] None false"#]],
    );
    check(
        Err::<String, _>(ToolError::from("no")),
        expect!["ToolError(no)"],
    );
    check(
        Err::<(), _>(std::fmt::Error),
        expect!["ToolError(an error occurred when formatting an argument)"],
    );
    check(
        Ok::<_, String>(Json(1)),
        expect![[r#"[Text("1")] Some("1") false"#]],
    );
}

#[test]
fn schemas_come_from_what_is_structured() {
    assert!(String::schema().is_none());
    assert!(<Result<Vec<Content>, ToolError>>::schema().is_none());
    assert!(Json::<u8>::schema().is_some());
    assert!(<Result<Json<u8>, String>>::schema().is_some());
}

#[track_caller]
fn check_messages(returned: impl IntoMessages, expect: Expect) {
    let shown = match returned.into_messages() {
        Ok(messages) => format!("{messages:?}"),
        Err(error) => format!("{error:?}"),
    };
    expect.assert_eq(&shown);
}

#[test]
fn messages() {
    check_messages(
        "a",
        expect![[r#"[Message { role: User, content: Text("a") }]"#]],
    );
    check_messages(
        "a".to_owned(),
        expect![[r#"[Message { role: User, content: Text("a") }]"#]],
    );
    check_messages(
        Content::text("a"),
        expect![[r#"[Message { role: User, content: Text("a") }]"#]],
    );
    check_messages(
        vec![Content::text("a"), Content::text("b")],
        expect![[
            r#"[Message { role: User, content: Text("a") }, Message { role: User, content: Text("b") }]"#
        ]],
    );
    check_messages(
        Message::assistant("a"),
        expect![[r#"[Message { role: Assistant, content: Text("a") }]"#]],
    );
    check_messages(
        vec![Message::user("a"), Message::assistant("b")],
        expect![[
            r#"[Message { role: User, content: Text("a") }, Message { role: Assistant, content: Text("b") }]"#
        ]],
    );
    check_messages(
        Ok::<_, ToolError>("a"),
        expect![[r#"[Message { role: User, content: Text("a") }]"#]],
    );
    check_messages(Err::<String, _>("no"), expect!["ToolError(no)"]);
}

struct Asking;

#[tool_server(name = "asking", version = "1.0.0", manual)]
impl Asking {
    /// Ask before going on.
    #[tool]
    fn ask_first() -> InputRequired {
        let question = Question {
            key: "sure".to_owned(),
            method: "elicitation/create".into(),
            params: json!({ "message": "Sure?" }),
        };
        InputRequired {
            questions: vec![question],
            state: Some("1".to_owned()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn questions_go_through_as_they_are() {
    let (dispatcher, _) = recorded(Registry::empty().with(Asking).unwrap(), limits(1));
    let output = dispatcher.call("ask_first", "", &context()).await.unwrap();
    assert!(output.content.is_empty());
    expect![[r#"Some(InputRequired { questions: [Question { key: "sure", method: "elicitation/create", params: Object {"message": String("Sure?")} }], state: Some("1") })"#]].assert_eq(&format!("{:?}", output.input_required));
}
