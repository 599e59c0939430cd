//! Who a call comes from, when it doesn't say.

use expect_test::{Expect, expect};
use tool_runtime::{Caller, Stream, Streams};

fn under_way() -> Streams {
    let streams = Streams::default();
    for (engine, project, session) in [
        ("codex", "atlas", "one"),
        ("claude-code", "atlas", "two"),
        ("codex", "beacon", "three"),
    ] {
        streams.start(Stream {
            engine: engine.to_owned(),
            project: project.to_owned(),
            session: session.to_owned(),
        });
    }
    streams
}

fn check(streams: &Streams, named: [&str; 3], expected: Expect) {
    let [engine, project, session] = named.map(str::to_owned);
    let mut caller = Caller {
        engine,
        project,
        session,
        ..Caller::default()
    };
    streams.identify(&mut caller);
    let Caller {
        engine,
        project,
        session,
        identified,
        ..
    } = caller;
    expected.assert_eq(&format!("{identified:?}: {engine}/{project}/{session}"));
}

#[test]
fn a_caller_that_names_its_session_is_exactly_that() {
    let streams = under_way();
    check(
        &streams,
        ["codex", "atlas", "one"],
        expect!["Exact: codex/atlas/one"],
    );
    check(
        &streams,
        ["", "", "elsewhere"],
        expect!["Exact: //elsewhere"],
    );
}

#[test]
fn a_project_means_its_most_recent_session() {
    let streams = under_way();
    check(
        &streams,
        ["", "atlas", ""],
        expect!["ByProject: claude-code/atlas/two"],
    );
    check(
        &streams,
        ["codex", "atlas", ""],
        expect!["ByProject: codex/atlas/one"],
    );
}

#[test]
fn an_engine_means_its_most_recent_session() {
    check(
        &under_way(),
        ["codex", "", ""],
        expect!["ByEngine: codex/beacon/three"],
    );
}

#[test]
fn nobody_is_guessed() {
    let streams = under_way();
    check(&streams, ["", "", ""], expect!["Unknown: //"]);
    check(&streams, ["", "cellar", ""], expect!["Unknown: /cellar/"]);
    check(
        &streams,
        ["claude-code", "beacon", ""],
        expect!["Unknown: claude-code/beacon/"],
    );
}

#[test]
fn what_has_ended_is_no_answer() {
    let streams = under_way();
    assert!(streams.end("two"));
    assert!(!streams.end("two"));
    check(
        &streams,
        ["", "atlas", ""],
        expect!["ByProject: codex/atlas/one"],
    );
}

#[test]
fn whoever_starts_again_is_the_most_recent() {
    let streams = under_way();
    streams.start(Stream {
        engine: "codex".to_owned(),
        project: "atlas".to_owned(),
        session: "one".to_owned(),
    });
    check(
        &streams,
        ["", "atlas", ""],
        expect!["ByProject: codex/atlas/one"],
    );
    check(
        &streams,
        ["codex", "", ""],
        expect!["ByEngine: codex/atlas/one"],
    );
}
