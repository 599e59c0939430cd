//! Starts the binary and calls its tool.

use serde_json::Value;
use std::process::Command;

#[test]
fn the_bridge_has_our_tool() {
    let data = env!("CARGO_TARGET_TMPDIR");
    let output = Command::new(env!("CARGO_BIN_EXE_own-bridge"))
        .args([
            "--data",
            data,
            "tools",
            "call",
            "greet",
            r#"{"name":"Ada"}"#,
            "--json",
        ])
        .output()
        .expect("the binary starts");
    assert!(output.status.success(), "{output:?}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!(result["content"][0]["text"], "Hello, Ada!");
}
