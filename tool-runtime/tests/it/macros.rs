//! The macros: what is written becomes what is published and called.

use crate::host::{context, limits, recorded, tool};
use expect_test::expect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Mutex, time::Duration};
use tool_runtime::{
    Caller, Cancellation, Client, Context, Environment, Json, Log, Progress, Provider as _,
    Registry, TaskSupport, ToolError, ToolServer as _,
    definition::{Annotations, Requirement},
    tool_server,
};

/// Weather for any place on Earth.
///
/// # For people
///
/// This is read in the documentation only.
#[tool_server(name = "weather-service", version = "1.0.0")]
mod weather {
    use super::{Caller, ToolError, Unit};

    /// Get the current temperature at a place.
    ///
    /// It is measured two metres above the ground:
    /// ```text
    /// # not a heading
    /// ```
    ///
    /// # Examples
    ///
    /// For people.
    #[tool(read_only)]
    pub(super) async fn get_temperature(
        /// Latitude, in degrees north.
        #[arg(range = -90.0..=90.0)]
        latitude: f64,
        /// Longitude, in degrees east.
        #[arg(range = -180.0..=180.0)]
        longitude: f64,
        /// Unit of the answer.
        #[arg(default = Unit::Celsius)]
        unit: Unit,
        caller: &Caller,
    ) -> Result<String, ToolError> {
        let degrees: f64 = "21".parse()?;
        Ok(format!(
            "{degrees} {unit:?} at {latitude}, {longitude} for {}",
            caller.engine
        ))
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[derive(Default)]
struct Notes {
    all: Mutex<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct Saved {
    /// How many notes there are now.
    count: usize,
}

/// Notes of this project.
#[tool_server(name = "notebook", version = "1.0.0")]
impl Notes {
    /// Save a note.
    #[tool(destructive = false)]
    async fn save(
        &self,
        /// The text.
        #[arg(length = 1..=10_000)]
        text: String,
        /// Where it came from.
        source: Option<String>,
    ) -> Result<Json<Saved>, ToolError> {
        let mut all = self.all.lock().map_err(|_| "the notes are broken")?;
        all.push(source.map_or(text.clone(), |source| format!("{text} ({source})")));
        Ok(Json(Saved { count: all.len() }))
    }

    /// One note.
    #[resource(uri = "notebook://{index}", mime_type = "text/plain")]
    async fn note(
        &self,
        /// Its place in the list.
        index: usize,
    ) -> Result<String, ToolError> {
        let all = self.all.lock().map_err(|_| "the notes are broken")?;
        Ok(all.get(index).ok_or("no such note")?.clone())
    }

    /// Ask for a summary of the notes.
    #[prompt]
    fn summarize_notes(
        /// How long it may be.
        #[arg(default = 3, range = 1..=10)]
        sentences: u8,
    ) -> String {
        format!("Summarize my notes in {sentences} sentences.")
    }
}

#[tool_server(name = "indexer", version = "1.0.0")]
mod indexer {
    use super::{Caller, Cancellation, Progress, ToolError};

    /// Index the files of the project.
    #[tool(idempotent)]
    pub(super) async fn index_files(
        /// Glob of the files to index.
        #[arg(default = "**/*.rs".to_owned())]
        files: String,
        caller: &Caller,
        progress: &Progress,
        cancellation: &Cancellation,
    ) -> Result<String, ToolError> {
        for step in 0..10 {
            if cancellation.is_cancelled() {
                return Err("stopped on request".into());
            }
            progress.report(step, 10);
        }
        Ok(format!("indexed {files} of {}", caller.project))
    }
}

#[tool_server(name = "files", version = "1.0.0")]
mod files {
    use super::ToolError;

    /// Count the lines of a file.
    #[tool(read_only)]
    pub(super) async fn count_lines(
        /// Path of the file, relative to the project.
        path: String,
    ) -> Result<String, ToolError> {
        if path.contains("..") {
            return Err("the path must stay inside the project".into());
        }
        let text = std::fs::read_to_string(&path)?;
        check(&text)?;
        Ok(text.lines().count().to_string())
    }

    fn check(text: &str) -> Result<(), std::num::TryFromIntError> {
        u8::try_from(text.len()).map(|_| ())
    }
}

async fn linked() -> Registry {
    Registry::linked(&Environment::default()).await.unwrap()
}

async fn call(name: &str, arguments: &str) -> String {
    let (dispatcher, _) = recorded(linked().await, limits(1));
    match dispatcher.call(name, arguments, &context()).await {
        Ok(output) => output.to_text(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_state_is_called() {
    expect!["21 Celsius at 1.5, 2 for codex"]
        .assert_eq(&call("get_temperature", r#"{"latitude":1.5,"longitude":2}"#).await);
    expect![[r#"
        the arguments of `get_temperature` are not valid, nothing was done:
        - /latitude: 95 is greater than the maximum of 90.0
        - /longitude: "east" is not of type number
        - /unit: "Kelvin" is none of ["celsius","fahrenheit"]"#]]
    .assert_eq(
        &call(
            "get_temperature",
            r#"{"latitude":95,"longitude":"east","unit":"Kelvin"}"#,
        )
        .await,
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_with_state_is_called() {
    let (dispatcher, _) = recorded(linked().await, limits(1));
    let context = context();
    for arguments in [r#"{"text":"one"}"#, r#"{"text":"two","source":"a book"}"#] {
        dispatcher.call("save", arguments, &context).await.unwrap();
    }
    let note = dispatcher.read("notebook://1", &context).await.unwrap();
    assert_eq!(note.to_text(), "two (a book)");
    let prompt = dispatcher
        .prompt("summarize_notes", BTreeMap::new(), &context)
        .await;
    let prompt = prompt.unwrap();
    assert_eq!(
        prompt[0].content.as_text(),
        Some("Summarize my notes in 3 sentences.")
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_borrows_what_it_needs() {
    expect!["indexed **/*.rs of "].assert_eq(&call("index_files", "").await);
}

#[tokio::test(start_paused = true)]
async fn a_tool_fails_with_any_error() {
    expect!["the path must stay inside the project"]
        .assert_eq(&call("count_lines", r#"{"path":"../secret"}"#).await);
    expect!["No such file or directory (os error 2)"]
        .assert_eq(&call("count_lines", r#"{"path":"missing.txt"}"#).await);
    expect!["out of range integral type conversion attempted"]
        .assert_eq(&call("count_lines", r#"{"path":"Cargo.toml"}"#).await);
}

#[tokio::test(start_paused = true)]
async fn a_tool_stays_a_function() {
    let caller = Caller::default();
    let temperature = weather::get_temperature(1.0, 2.0, Unit::Fahrenheit, &caller).await;
    assert_eq!(temperature.unwrap(), "21 Fahrenheit at 1, 2 for ");
    let saved = Notes::default().save("hi".to_owned(), None).await;
    assert_eq!(saved.unwrap().0.count, 1);
    let stopped = Cancellation::new();
    stopped.cancel();
    let progress = Progress::default();
    let index = indexer::index_files(String::new(), &caller, &progress, &stopped).await;
    assert_eq!(index.unwrap_err().to_string(), "stopped on request");
}

#[tokio::test(start_paused = true)]
async fn a_description_ends_before_the_first_heading() {
    let registry = linked().await;
    let servers = registry.servers();
    let server = servers
        .iter()
        .find(|it| it.name == "weather-service")
        .unwrap();
    assert_eq!(server.description, "Weather for any place on Earth.");
    expect![[r#"
        Get the current temperature at a place.

        It is measured two metres above the ground:
        ```text
        # not a heading
        ```"#]]
    .assert_eq(&tool(&registry, "get_temperature").description);
}

#[test]
fn the_names_of_tools_are_constants() {
    assert_eq!(weather::tools::GET_TEMPERATURE.server, "weather-service");
    assert_eq!(weather::tools::GET_TEMPERATURE.tool, "get_temperature");
    assert_eq!(Notes::SAVE.to_string(), "mcp__notebook__save");
    assert_eq!(indexer::tools::INDEX_FILES.tool, "index_files");
    assert_eq!(Talk::RENAMED.tool, "another_name");
    assert_eq!(Talk::TYPE.tool, "type");
}

struct Talk;

/// Talk or not.
#[tool_server(name = "talk", version = "1.0.0", manual)]
impl Talk {
    /// Say nothing.
    #[tool]
    fn quiet() {}

    /// Know who calls.
    #[tool]
    fn knows_caller(caller: &Caller, cancellation: &Cancellation) -> String {
        format!("{} {}", caller.engine, cancellation.is_cancelled())
    }

    /// Report.
    #[tool]
    fn reports(progress: &Progress) {
        progress.report(1, 1);
    }

    /// Log.
    #[tool]
    fn logs(log: &Log) {
        log.info("x");
    }

    /// Ask.
    #[tool]
    fn asks(client: &Client) -> String {
        format!("{client:?}")
    }

    /// Have everything.
    #[tool]
    fn has_all(context: &Context) -> String {
        context.caller.engine.clone()
    }

    /// Be called by another name.
    #[tool(name = "another_name")]
    fn renamed() {}

    /// Be a word of the language, and take one.
    #[tool]
    fn r#type(
        r#in: String,
        /// A name that Rust can't say.
        #[arg(name = "max-size")]
        max_size: u8,
    ) -> String {
        [r#in, max_size.to_string()].join(" ")
    }

    /// Say everything that can be said.
    #[tool(
        title = "All of it",
        read_only = false,
        destructive,
        idempotent = true,
        open_world = false,
        deprecated = "use `quiet` instead",
        timeout = "90s",
        task = "required",
        scopes("a:read", "a:write"),
        requires(project),
        meta("example.org/x" = 1, y = "z")
    )]
    fn everything() {}

    /// Count what there is in a region.
    #[tool(task)]
    fn count(
        /// Where to look.
        #[arg(header = "Region")]
        region: String,
        #[arg(default = 1, range = 1..=9, header = "X-Depth")] depth: u8,
        #[arg(header = "hidden")] hidden: Option<bool>,
    ) -> String {
        format!("{region} {depth} {hidden:?}")
    }

    /// Look something up.
    #[resource(uri = "talk://{word}", name = "word", title = "A word")]
    fn look_up(word: String) -> String {
        word
    }

    /// Ask something.
    #[prompt(name = "ask_something", title = "Ask")]
    fn ask(what: String) -> String {
        what
    }
}

#[test]
fn a_tool_converses_if_what_it_borrows_does() {
    let converses = |name: &str| {
        let tools = Talk::DEFINITION.tools.iter();
        let mut tools = tools.filter(|it| it.name.tool == name);
        tools.next().unwrap().converses
    };
    let all = [
        "quiet",
        "knows_caller",
        "reports",
        "logs",
        "asks",
        "has_all",
    ];
    assert_eq!(all.map(converses), [false, false, true, true, true, true]);
}

#[test]
fn every_setting_goes_into_the_definition() {
    let definition = Talk::DEFINITION;
    assert_eq!(definition.description, "Talk or not.");
    assert!(definition.location.file.ends_with("macros.rs"));
    let tools = definition.tools.iter();
    let tool = tools
        .clone()
        .find(|it| it.name.tool == "everything")
        .unwrap();
    assert_eq!(tool.timeout, Some(Duration::from_secs(90)));
    assert_eq!(tool.task, Some(TaskSupport::Required));
    assert_eq!(tool.scopes, ["a:read", "a:write"]);
    assert_eq!(tool.requires, [Requirement::Project]);
    assert_eq!(tool.deprecated, Some("use `quiet` instead"));
    let annotations = tool.annotations;
    assert_eq!(annotations.title, Some("All of it"));
    assert_eq!(annotations.read_only, Some(false));
    assert_eq!(annotations.destructive, Some(true));
    assert_eq!(annotations.idempotent, Some(true));
    assert_eq!(annotations.open_world, Some(false));
    let meta = tool
        .meta
        .iter()
        .map(|(key, value)| format!("{key} {}", value()));
    assert_eq!(meta.collect::<Vec<_>>(), ["example.org/x 1", "y \"z\""]);
    let quiet = tools.clone().find(|it| it.name.tool == "quiet").unwrap();
    assert_eq!(quiet.annotations, Annotations::default());
    assert_eq!((quiet.timeout, quiet.deprecated), (None, None));
    assert_eq!(quiet.task, None);

    let [resource] = definition.resources else {
        panic!()
    };
    assert_eq!((resource.uri, resource.name), ("talk://{word}", "word"));
    let [prompt] = definition.prompts else {
        panic!()
    };
    assert_eq!((prompt.name, prompt.title), ("ask_something", Some("Ask")));
}

#[tokio::test(start_paused = true)]
async fn raw_names_and_stated_names_are_what_the_model_sends() {
    let registry = Registry::empty().with(Talk).unwrap();
    let schema = Value::Object((*tool(&registry, "type").input_schema).clone());
    expect![[r#"{"type":"object","properties":{"in":{"type":"string"},"max-size":{"type":"integer","maximum":255,"minimum":0,"description":"A name that Rust can't say."}},"required":["in","max-size"],"additionalProperties":false}"#]].assert_eq(&schema.to_string());
    let (dispatcher, _) = recorded(registry, limits(1));
    let output = dispatcher
        .call("type", r#"{"in":"x","max-size":3}"#, &context())
        .await;
    assert_eq!(output.unwrap().to_text(), "x 3");
    let output = dispatcher.call("another_name", "", &context()).await;
    assert_eq!(output.unwrap().to_text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_header_that_repeats_an_argument_is_published_and_changes_no_check() {
    let registry = Registry::empty().with(Talk).unwrap();
    let schema = &tool(&registry, "count").input_schema["properties"];
    expect![[r#"
        {
          "region": {
            "type": "string",
            "description": "Where to look.",
            "x-mcp-header": "Region"
          },
          "depth": {
            "type": "integer",
            "maximum": 9,
            "minimum": 1,
            "x-mcp-header": "X-Depth",
            "default": 1
          },
          "hidden": {
            "type": "boolean",
            "x-mcp-header": "hidden"
          }
        }"#]]
    .assert_eq(&format!("{schema:#}"));
    let (dispatcher, _) = recorded(registry, limits(1));
    let output = dispatcher
        .call("count", r#"{"region":"north"}"#, &context())
        .await;
    assert_eq!(output.unwrap().to_text(), "north 1 None");
    let error = dispatcher
        .call("count", r#"{"region":1}"#, &context())
        .await;
    expect![[r#"
        the arguments of `count` are not valid, nothing was done:
        - /region: 1 is not of type string"#]]
    .assert_eq(&error.unwrap_err().to_string());
}

#[test]
fn a_tool_says_whether_it_runs_as_a_task() {
    let registry = Registry::empty().with(Talk).unwrap();
    let task = |name: &str| tool(&registry, name).task;
    assert_eq!(task("quiet"), None);
    assert_eq!(task("count"), Some(TaskSupport::Optional));
    assert_eq!(task("everything"), Some(TaskSupport::Required));
}

#[test]
fn a_deprecated_tool_says_so_first() {
    let registry = Registry::empty().with(Talk).unwrap();
    expect![[r#"
        Deprecated: use `quiet` instead.
        Say everything that can be said."#]]
    .assert_eq(&tool(&registry, "everything").description);
}
