//! Servers: how they start, and how they are put together.

use crate::host::{context, limits, recorded};
use expect_test::{Expect, expect};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::{
    borrow::Cow,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
};
use tool_runtime::{
    Dispatcher, Environment, MissingVariable, Provider as _, Registry, RegistryError, Server,
    ToolError, tool_server,
};

struct Keyed {
    key: String,
}

#[tool_server(name = "keyed", version = "1.2.3", start)]
impl Keyed {
    fn start(environment: &Environment) -> Result<Self, ToolError> {
        let key = environment.required("KEYED_API_KEY")?.to_owned();
        Ok(Self { key })
    }

    /// Tell how long the key is.
    #[tool]
    fn key_length(&self) -> String {
        self.key.len().to_string()
    }
}

struct Hanging;

#[tool_server(name = "hanging", version = "1.0.0", start)]
impl Hanging {
    async fn start(_: &Environment) -> Result<Self, ToolError> {
        std::future::pending().await
    }

    /// Never start.
    #[tool]
    fn hang() {}
}

struct Panicking;

#[tool_server(name = "panicking", version = "1.0.0", start)]
impl Panicking {
    fn start(environment: &Environment) -> Result<Self, ToolError> {
        let calm = environment.required("CALM");
        assert!(calm.is_ok(), "not calm");
        calm?;
        Ok(Self)
    }

    /// Be calm.
    #[tool]
    fn be_calm() {}
}

struct Sour;

#[tool_server(name = "sour", version = "1.0.0", start)]
impl Sour {
    async fn start(_: &Environment) -> Result<Self, MissingVariable> {
        tokio::task::yield_now().await;
        Err(MissingVariable {
            name: "SUGAR".to_owned(),
        })
    }

    /// Be sweet.
    #[tool]
    fn sweeten() {}
}

#[derive(Default)]
struct Ready {
    calls: AtomicU32,
}

/// Is always there.
#[tool_server(name = "ready", version = "1.0.0")]
impl Ready {
    /// Count the calls.
    #[tool]
    fn count(&self) -> String {
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        format!("{}", before + 1)
    }
}

/// Describe the tools of a module.
#[tool_server(name = "plain-module", version = "1.0.0")]
mod plain {
    /// Come second in the alphabet, and first in the source.
    #[tool]
    pub(super) fn zebra() {}

    /// Come first in the alphabet, and second in the source.
    #[tool]
    pub(super) fn ant() {}
}

/// A text that counts how often it is described.
#[derive(Deserialize)]
struct Counted(String);

static DESCRIBED: AtomicUsize = AtomicUsize::new(0);

impl JsonSchema for Counted {
    fn schema_name() -> Cow<'static, str> {
        "Counted".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        DESCRIBED.fetch_add(1, Ordering::Relaxed);
        json_schema!({ "type": "string" })
    }
}

struct Counting;

#[tool_server(name = "counting", version = "1.0.0", manual)]
impl Counting {
    /// Take it as a tool.
    #[tool]
    fn tool(it: Counted) -> String {
        it.0
    }

    /// Take it from a URI.
    #[resource(uri = "counting://{it}")]
    fn resource(it: Counted) -> String {
        it.0
    }

    /// Take it from a person.
    #[prompt]
    fn prompt(it: Counted) -> String {
        it.0
    }
}

async fn linked(variables: &[(&str, &str)]) -> Registry {
    let environment = Environment::new(variables.iter().copied());
    Registry::linked(&environment).await.unwrap()
}

fn states(registry: &Registry) -> String {
    let ours = [
        "hanging",
        "keyed",
        "panicking",
        "plain-module",
        "ready",
        "sour",
    ];
    let servers = registry.servers();
    let servers = servers.iter().filter(|it| ours.contains(&it.name.as_str()));
    let lines = servers.map(|it| {
        let Server { name, version, .. } = &**it;
        match &it.unavailable {
            None => format!("{name} {version}: ready"),
            Some(why) => format!("{name} {version}: {} ({:?})", why.reason, why.variable),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn a_server_that_can_not_start_is_offered_as_unavailable() {
    let started = tokio::time::Instant::now();
    let registry = linked(&[]).await;
    expect![[r#"
        hanging 1.0.0: it had not started after 30 s (None)
        keyed 1.2.3: the environment variable `KEYED_API_KEY` is not set (Some("KEYED_API_KEY"))
        panicking 1.0.0: it panicked while it started (None)
        plain-module 1.0.0: ready
        ready 1.0.0: ready
        sour 1.0.0: the environment variable `SUGAR` is not set (Some("SUGAR"))"#]]
    .assert_eq(&states(&registry));
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_server_reads_the_environment_when_it_starts() {
    let registry = linked(&[("KEYED_API_KEY", "secret"), ("CALM", "yes")]).await;
    expect![[r#"
        hanging 1.0.0: it had not started after 30 s (None)
        keyed 1.2.3: ready
        panicking 1.0.0: ready
        plain-module 1.0.0: ready
        ready 1.0.0: ready
        sour 1.0.0: the environment variable `SUGAR` is not set (Some("SUGAR"))"#]]
    .assert_eq(&states(&registry));
    let (dispatcher, _) = recorded(registry, limits(1));
    let output = dispatcher.call("key_length", "", &context()).await;
    assert_eq!(output.unwrap().to_text(), "6");
}

#[tokio::test(start_paused = true)]
async fn a_variable_that_is_empty_is_missing() {
    let registry = linked(&[("KEYED_API_KEY", "")]).await;
    assert!(states(&registry).contains("keyed 1.2.3: the environment variable `KEYED_API_KEY`"));
}

#[tokio::test(start_paused = true)]
async fn a_call_of_an_unavailable_server_says_why() {
    let (dispatcher, recorder) = recorded(linked(&[]).await, limits(1));
    for name in ["key_length", "hang", "be_calm", "sweeten"] {
        let error = dispatcher.call(name, "", &context()).await.unwrap_err();
        assert_eq!(error.code(), "server_unavailable");
    }
    expect![[r#"
        key_length = keyed/key_length by `codex`, 0 ms, 0 bytes: refused: server_unavailable Unavailable { server: "keyed", reason: "the environment variable `KEYED_API_KEY` is not set" }
        hang = hanging/hang by `codex`, 0 ms, 0 bytes: refused: server_unavailable Unavailable { server: "hanging", reason: "it had not started after 30 s" }
        be_calm = panicking/be_calm by `codex`, 0 ms, 0 bytes: refused: server_unavailable Unavailable { server: "panicking", reason: "it panicked while it started" }
        sweeten = sour/sweeten by `codex`, 0 ms, 0 bytes: refused: server_unavailable Unavailable { server: "sour", reason: "the environment variable `SUGAR` is not set" }"#]].assert_eq(&recorder.lines().join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_default_keeps_its_state() {
    let (dispatcher, _) = recorded(linked(&[]).await, limits(1));
    for count in ["1", "2", "3"] {
        let output = dispatcher.call("count", "", &context()).await;
        assert_eq!(output.unwrap().to_text(), count);
    }
}

#[tokio::test(start_paused = true)]
async fn servers_stand_by_name_and_tools_as_in_the_source() {
    let registry = linked(&[]).await;
    let names: Vec<&str> = registry.definitions().map(|it| it.name).collect();
    assert!(names.is_sorted(), "{names:?}");
    let servers = registry.servers();
    let plain = servers.iter().find(|it| it.name == "plain-module").unwrap();
    let tools: Vec<&str> = plain.tools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(tools, ["zebra", "ant"]);
    assert_eq!(plain.description, "Describe the tools of a module.");
    plain::zebra();
    plain::ant();
}

macro_rules! manual {
    ($name:ident, $server:literal) => {
        struct $name;

        #[tool_server(name = $server, version = "1.0.0", manual)]
        impl $name {
            /// Do nothing.
            #[tool]
            fn nothing() {}
        }
    };
}
manual!(Alpha, "alpha");
manual!(Beta, "beta");
manual!(Gamma, "gamma");
manual!(SecondBeta, "beta");
manual!(SecondReady, "ready");

#[test]
fn servers_added_by_hand_stand_by_name_too() {
    let one = Registry::empty()
        .with(Gamma)
        .and_then(|it| it.with(Alpha))
        .and_then(|it| it.with(Beta))
        .unwrap();
    let other = Registry::empty()
        .with(Beta)
        .and_then(|it| it.with(Gamma))
        .and_then(|it| it.with(Alpha))
        .unwrap();
    for registry in [one, other] {
        assert_eq!(format!("{registry:?}"), r#"["alpha", "beta", "gamma"]"#);
        let servers = registry.servers();
        let names: Vec<&str> = servers.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["alpha", "beta", "gamma"]);
    }
}

#[track_caller]
fn check_duplicate(error: &RegistryError, name: &str) {
    let RegistryError::DuplicateServer { first, second, .. } = error else {
        panic!("{error}");
    };
    assert_ne!(first.line, second.line);
    assert_eq!([first.file, second.file], [file!(), file!()]);
    assert_eq!(
        error.to_string(),
        format!("two servers are called `{name}`: {first} and {second}; rename one of them")
    );
}

#[test]
fn def_249_two_servers_of_one_name_are_an_error_that_names_both_places() {
    let registry = Registry::empty().with(Alpha).and_then(|it| it.with(Beta));
    let error = registry.unwrap().with(SecondBeta).unwrap_err();
    check_duplicate(&error, "beta");
}

#[tokio::test(start_paused = true)]
async fn def_249_a_server_added_by_hand_meets_a_linked_one() {
    let error = linked(&[]).await.with(SecondReady).unwrap_err();
    check_duplicate(&error, "ready");
}

struct Broken;

#[tool_server(name = "broken", version = "1.0.0", manual)]
impl Broken {
    /// Take a text that nothing matches.
    #[tool]
    fn take(#[arg(pattern = "(")] text: String) -> String {
        text
    }
}

struct TooMuch;

#[tool_server(name = "too-much", version = "1.0.0", manual)]
impl TooMuch {
    /// Take as many.
    #[tool]
    fn take(
        name: String,
        #[arg(default = 3, range = 1..=4)] few: u8,
        #[arg(default = 20, range = 1..=14)] days: u8,
    ) -> String {
        format!("{name} {few} {days}")
    }
}

struct TooLittle;

#[tool_server(name = "too-little", version = "1.0.0", manual)]
impl TooLittle {
    /// Ask for as many.
    #[prompt]
    fn ask(#[arg(default = 0, range = 1..=14)] days: u8) -> String {
        format!("{days}")
    }
}

#[test]
fn a_schema_that_can_not_be_enforced_is_an_error_that_names_the_place() {
    check_unusable(
        Registry::empty().with(Broken),
        expect![[r#"
        the schema of `mcp__broken__take` (HERE) can't be used
        "(" is not a "regex" (at `/properties/text/pattern`)"#]],
    );
}

#[test]
fn a_default_that_breaks_its_own_rules_is_an_error() {
    check_unusable(
        Registry::empty().with(TooMuch),
        expect![[r#"
        the schema of `mcp__too-much__take` (HERE) can't be used
        the default of `days` breaks its own rules: 20 is greater than the maximum of 14"#]],
    );
    check_unusable(
        Registry::empty().with(TooLittle),
        expect![[r#"
        the schema of `ask` (HERE) can't be used
        the default of `days` breaks its own rules: 0 is less than the minimum of 1"#]],
    );
}

#[track_caller]
fn check_unusable(registry: Result<Registry, RegistryError>, expect: Expect) {
    use std::error::Error as _;
    let error = registry.unwrap_err();
    let RegistryError::Schema { location, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(location.file, file!());
    let text = error.to_string().replace(&location.to_string(), "HERE");
    expect.assert_eq(&format!("{text}\n{}", error.source().unwrap()));
}

#[test]
fn an_environment_shows_only_names() {
    let environment = Environment::new([("TOKEN", "secret"), ("EMPTY", "")]);
    assert_eq!(format!("{environment:?}"), r#"{"EMPTY", "TOKEN"}"#);
    assert_eq!(environment.get("TOKEN"), Some("secret"));
    assert_eq!(environment.get("EMPTY"), None);
    assert_eq!(environment.get("OTHER"), None);
    let missing = environment.required("EMPTY").unwrap_err();
    expect!["the environment variable `EMPTY` is not set"].assert_eq(&missing.to_string());
    let all: Vec<_> = environment.iter().collect();
    assert_eq!(all, [("EMPTY", ""), ("TOKEN", "secret")]);
}

#[test]
fn what_is_added_later_does_not_describe_anything_again() {
    let registry = Registry::empty().with(Counting).unwrap();
    let registry = registry.with(Ready::default()).unwrap();
    Dispatcher::new(registry).unwrap();
    assert_eq!(DESCRIBED.load(Ordering::Relaxed), 3);
}
