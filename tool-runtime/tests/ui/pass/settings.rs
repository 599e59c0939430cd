//! Everything that an attribute can say lands in the definition.
#![deny(warnings)]

use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tool_runtime::{
    Caller, Client, Context, Log, Message, Progress, ToolError,
    definition::{
        Annotations, ArgumentDefinition, Format, Input, Measure, Requirement, Rule, ToolDefinition,
        TaskSupport, ToolServer,
    },
    tool_server,
};

#[derive(Deserialize, JsonSchema)]
pub struct Everything {
    pub id: u32,
}

pub struct Desk;

/// A desk.
#[tool_server(name = "desk", version = "1.2.3", manual)]
impl Desk {
    /// Says all.
    #[tool(
        name = "all",
        title = "All",
        read_only = false,
        destructive,
        idempotent,
        open_world = false,
        deprecated = "use `less` instead",
        timeout = "1500ms",
        task = "required",
        scopes("desk:read", "desk:write"),
        requires(project),
        examples(json!({"number": 1}), json!({"number": 2})),
        meta("example.org/kind" = "desk", weight = 1 + 1)
    )]
    pub fn says_all(
        &self,
        #[arg(range = 1..=10, example = 3, example = 4)] number: u32,
        #[arg(range = 0.5..)] half: f64,
        #[arg(range = ..10)] below: Option<u8>,
        #[arg(length = 2..5, pattern = "^a", format = "date-time")] text: String,
        #[arg(length = ..=3)] list: Vec<u8>,
        #[arg(default = 7)] default: u16,
        #[arg(default = Some(7))] optional_default: Option<u16>,
        nullable: Option<std::option::Option<u16>>,
        #[arg(name = "sent-as.this", header = "Sent-As")] renamed: bool,
        #[arg(header = "Region", length = 1..)] region: Option<String>,
        #[arg(default = -1, header = "!#$%&'*+-.^_`|~9aZ")] size: i64,
    ) {
        let _ = (number, half, below, text, list, default, optional_default, nullable, renamed);
        let _ = (region, size);
    }

    /// Says nothing.
    #[tool]
    pub fn says_nothing(caller: &Caller) {
        let _ = caller;
    }

    /// Takes everything at once.
    #[tool]
    pub fn whole(#[arg(flatten)] everything: Everything, caller: &Caller, progress: &Progress) {
        let _ = (everything.id, caller, progress);
    }

    /// Talks.
    #[tool(task)]
    pub fn talks(log: &Log) {
        let _ = log;
    }

    /// Asks.
    #[tool(task = "asks-first")]
    pub fn asks(client: &Client) {
        let _ = client;
    }

    /// Can do anything.
    #[tool]
    pub fn can(context: &Context) {
        let _ = context;
    }

    /// Reads a drawer.
    #[resource(uri = "desk://{drawer}/{sheet}", mime_type = "text/plain", name = "Sheet", title = "One sheet")]
    pub async fn sheet(&self, sheet: usize, drawer: String) -> Result<String, ToolError> {
        Ok(format!("{drawer}{sheet}"))
    }

    /// Greets.
    #[prompt(name = "greet", title = "Greet")]
    pub async fn greeting(&self, name: Option<String>) -> Vec<Message> {
        vec![Message::user(name.unwrap_or_default())]
    }
}

fn arguments(tool: &ToolDefinition) -> &'static [ArgumentDefinition] {
    match tool.arguments {
        Input::Arguments(arguments) => arguments,
        Input::Whole(_) => &[],
    }
}

fn rules(argument: &ArgumentDefinition) -> Vec<Value> {
    let measure = |it: Measure, length: usize| json!([format!("{it:?}"), length]);
    let rule = |it: &Rule| match *it {
        Rule::Minimum(it) => json!({"minimum": it()}),
        Rule::Maximum(it) => json!({"maximum": it()}),
        Rule::ExclusiveMaximum(it) => json!({"exclusive_maximum": it()}),
        Rule::MinLength(it, length) => json!({"min_length": measure(it, length)}),
        Rule::MaxLength(it, length) => json!({"max_length": measure(it, length)}),
        Rule::Pattern(it) => json!({"pattern": it}),
        Rule::Format(it) => json!({"format": it.as_str()}),
        Rule::Example(it) => json!({"example": it()}),
        Rule::Header(it) => json!({"header": it}),
    };
    argument.rules.iter().map(rule).collect()
}

fn main() {
    let server = Desk::DEFINITION;
    assert_eq!((server.name, server.version, server.description), ("desk", "1.2.3", "A desk."));
    assert!(server.location.file.ends_with("settings.rs"), "{}", server.location);
    assert_eq!(server.location.line, 25);

    let all = &server.tools[0];
    assert_eq!(all.name, Desk::SAYS_ALL);
    assert_eq!((all.name.server, all.name.tool), ("desk", "all"));
    assert_eq!(all.description, "Says all.");
    assert_eq!(
        all.annotations,
        Annotations {
            title: Some("All"),
            read_only: Some(false),
            destructive: Some(true),
            idempotent: Some(true),
            open_world: Some(false),
        }
    );
    assert_eq!(all.deprecated, Some("use `less` instead"));
    assert_eq!(all.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(all.task, Some(TaskSupport::Required));
    assert_eq!(all.scopes, ["desk:read", "desk:write"]);
    assert_eq!(all.requires, [Requirement::Project]);
    let examples: Vec<Value> = all.examples.iter().map(|it| it()).collect();
    assert_eq!(examples, [json!({"number": 1}), json!({"number": 2})]);
    let meta: Vec<(&str, Value)> = all.meta.iter().map(|(key, it)| (*key, it())).collect();
    assert_eq!(meta, [("example.org/kind", json!("desk")), ("weight", json!(2))]);

    let arguments_of_all = arguments(all);
    let names: Vec<&str> = arguments_of_all.iter().map(|it| it.name).collect();
    assert_eq!(
        names,
        ["number", "half", "below", "text", "list", "default", "optional_default", "nullable", "sent-as.this", "region", "size"]
    );
    let required: Vec<bool> = arguments_of_all.iter().map(|it| it.required).collect();
    assert_eq!(required, [true, true, false, true, true, false, false, false, true, false, false]);
    let defaults: Vec<Value> =
        arguments_of_all.iter().filter_map(|it| it.default.map(|it| it())).collect();
    assert_eq!(defaults, [json!(7), json!(7), json!(-1)]);
    let of_all: Vec<Vec<Value>> = arguments_of_all.iter().map(rules).collect();
    assert_eq!(
        of_all,
        [
            vec![json!({"minimum": 1}), json!({"maximum": 10}), json!({"example": 3}), json!({"example": 4})],
            vec![json!({"minimum": 0.5})],
            vec![json!({"exclusive_maximum": 10})],
            vec![
                json!({"min_length": ["Characters", 2]}),
                json!({"max_length": ["Characters", 4]}),
                json!({"pattern": "^a"}),
                json!({"format": Format::DateTime.as_str()}),
            ],
            vec![json!({"max_length": ["Items", 3]})],
            vec![],
            vec![],
            vec![],
            vec![json!({"header": "Sent-As"})],
            vec![json!({"header": "Region"}), json!({"min_length": ["Characters", 1]})],
            vec![json!({"header": "!#$%&'*+-.^_`|~9aZ"})],
        ]
    );
    let mut generator = SchemaGenerator::default();
    let mut types = arguments_of_all.iter().map(|it| (it.schema)(&mut generator));
    assert_eq!(types.nth(2).unwrap().get("type"), Some(&json!("integer")));
    assert_eq!(types.nth(4).unwrap().get("type"), Some(&json!(["integer", "null"])));

    let nothing = &server.tools[1];
    assert_eq!(nothing.annotations, Annotations::default());
    assert_eq!((nothing.deprecated, nothing.timeout), (None, None));
    let tasks: Vec<Option<TaskSupport>> = server.tools[1..5].iter().map(|it| it.task).collect();
    assert_eq!(tasks, [None, None, Some(TaskSupport::Optional), Some(TaskSupport::AsksFirst)]);
    assert!(matches!(server.tools[2].arguments, Input::Whole(_)));
    let converses: Vec<bool> = server.tools.iter().map(|it| it.converses).collect();
    assert_eq!(converses, [false, false, true, true, true, true]);

    let resource = &server.resources[0];
    assert_eq!(resource.uri, "desk://{drawer}/{sheet}");
    assert_eq!((resource.name, resource.title), ("Sheet", Some("One sheet")));
    assert_eq!((resource.description, resource.mime_type), ("Reads a drawer.", Some("text/plain")));
    assert_eq!(resource.arguments[0].name, "sheet");

    let prompt = &server.prompts[0];
    assert_eq!((prompt.name, prompt.title, prompt.description), ("greet", Some("Greet"), "Greets."));
    assert!(!prompt.arguments[0].required);
}
