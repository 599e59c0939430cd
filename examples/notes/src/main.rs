//! `cargo run -p notes` saves, finds and reads notes as an agent would, and checks what comes back.

use notes::Notes;
use serde_json::json;
use std::collections::BTreeMap;
use tool_runtime::{Context, Dispatcher, Registry, ToolError};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ToolError> {
    let dispatcher = Dispatcher::new(Registry::empty().with(Notes::default())?)?;
    let context = Context::default();

    for text in ["water the plants", "call Ada", "water the lawn"] {
        let arguments = json!({ "text": text }).to_string();
        dispatcher.call("save_note", &arguments, &context).await?;
    }

    // The text that a model reads and the structured form that a program reads say the same.
    let output = dispatcher
        .call("find_notes", r#"{"text":"water","most":1}"#, &context)
        .await?;
    let expected = r#"{"result":[{"index":2,"text":"water the lawn"}]}"#;
    assert_eq!(output.to_text(), expected);
    assert_eq!(
        output
            .structured
            .as_deref()
            .map(serde_json::value::RawValue::get),
        Some(expected)
    );

    let note = dispatcher.read("notes://1", &context).await?;
    assert_eq!(note.to_text(), "call Ada");

    let filled_in = BTreeMap::from([("sentences".to_owned(), "2".to_owned())]);
    let messages = dispatcher.prompt("summarize", filled_in, &context).await?;
    let text = messages[0].content.as_text().unwrap_or_default();
    assert!(
        text.starts_with("Summarize these notes in at most 2 sentences"),
        "{text}"
    );
    Ok(())
}
