//! rmcp's own client: it goes through the story and tells each step, one JSON list a line.
#![allow(
    clippy::disallowed_methods,
    reason = "the environment is how it is told of the server"
)]
#![expect(
    deprecated,
    reason = "2026-07-28 is about to leave sampling and roots behind"
)]

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
        ClientRequest, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
        ElicitResult, ElicitationAction, ElicitationCapability, GetPromptRequestParams,
        Implementation, ListRootsResult, ProgressNotificationParam, ProtocolVersion,
        ReadResourceRequestParams, ResourceContents, Root, RootsCapabilities, SamplingCapability,
        SamplingMessage, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{
        ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions,
        RequestContext, RequestHandle, RunningService, ServiceError,
    },
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Map, Value, json};
use std::{
    env,
    error::Error,
    io,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{process::Command, time};

type Outcome = Result<(), Box<dyn Error>>;
type Client = RunningService<RoleClient, Person>;

/// Whom the server asks, and who hears from it.
#[derive(Debug)]
struct Person {
    version: ProtocolVersion,
    progress: Mutex<Vec<ProgressNotificationParam>>,
    tools_changed: AtomicBool,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        capabilities.sampling = Some(SamplingCapability::default());
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("rmcp", "1.0.0"))
            .with_protocol_version(self.version.clone())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams {
            requested_schema, ..
        } = request
        else {
            return Err(ErrorData::invalid_params("it is no form", None));
        };
        let fields = requested_schema.properties.keys().map(|field| {
            let value = match field.as_str() {
                "email" => "alice@example.com",
                "username" => "alice",
                _ => "Alice",
            };
            (field.clone(), json!(value))
        });
        let content = Value::Object(fields.collect());
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let message = SamplingMessage::assistant_text("Paris");
        Ok(CreateMessageResult::new(message, "model".to_owned()))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///project")]))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().expect("nobody panics").push(params);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::SeqCst);
    }
}

fn say(step: &str, outcome: &str) {
    println!("{}", json!([step, outcome]));
}

/// Takes a step and tells what came of it.
async fn tell(step: &str, taken: impl Future<Output = Outcome>) {
    match time::timeout(Duration::from_secs(25), taken).await {
        Ok(Ok(())) => say(step, "passed"),
        Ok(Err(error)) => say(step, &format!("failed: {error}")),
        Err(_) => say(step, "failed: it takes more than 25 s"),
    }
}

fn same(seen: &Value, wanted: &Value) -> Outcome {
    if seen == wanted {
        return Ok(());
    }
    Err(format!("{seen} is not {wanted}").into())
}

fn params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap_or_default();
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

async fn call(
    client: &Client,
    tool: &'static str,
    arguments: Value,
) -> Result<CallToolResult, ServiceError> {
    client.call_tool(params(tool, arguments)).await
}

/// The first text of a result.
fn text(result: &CallToolResult) -> Value {
    let text = result.content.first().and_then(|it| it.as_text());
    json!(text.map(|it| &it.text))
}

async fn says(client: &Client, tool: &'static str, arguments: Value, wanted: &str) -> Outcome {
    same(&text(&call(client, tool, arguments).await?), &json!(wanted))
}

async fn read(client: &Client, uri: &str) -> Result<ResourceContents, Box<dyn Error>> {
    let read = client.read_resource(ReadResourceRequestParams::new(uri));
    let contents = read.await?.contents.into_iter().next();
    contents.ok_or_else(|| "nothing was read".into())
}

async fn list_tools(client: &Client) -> Outcome {
    let tools = client.list_all_tools().await?;
    let slow = tools.iter().find(|it| it.name == "slow_compute");
    let slow = slow.ok_or("there is no `slow_compute`")?;
    let most = &slow.input_schema["properties"]["seconds"]["maximum"];
    same(most, &json!(60.0))
}

async fn plain(client: &Client) -> Outcome {
    let wanted = "This is a simple text response for testing.";
    says(client, "test_simple_text", json!({}), wanted).await?;
    let result = call(client, "test_multiple_content_types", json!({})).await?;
    let kinds = serde_json::to_value(&result.content)?;
    let kinds: Vec<&Value> = kinds
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| &it["type"])
        .collect();
    same(&json!(kinds), &json!(["text", "image", "resource"]))
}

async fn structured(version: ProtocolVersion, is_modern: bool, token: &str) -> Outcome {
    let client = connect(version, is_modern, "MCP_SHIPPED", token).await?;
    client.list_all_tools().await?;
    let result = call(&client, "count_lines", json!({ "path": "three.txt" })).await?;
    let structured = result.structured_content.unwrap_or_default();
    same(&structured["lines"], &json!(3))
}

async fn failed(client: &Client) -> Outcome {
    let result = call(client, "test_error_handling", json!({})).await?;
    same(&json!(result.is_error), &json!(true))?;
    let wanted = "This tool intentionally returns an error for testing";
    same(&text(&result), &json!(wanted))
}

async fn progress(client: &Client) -> Outcome {
    let request = CallToolRequest::new(params("test_tool_with_progress", json!({})));
    let request = ClientRequest::CallToolRequest(request);
    let options = PeerRequestOptions::no_options();
    let handle = client.send_cancellable_request(request, options).await?;
    handle.await_response().await?;
    // Notifications are handed over in tasks of their own.
    let seen = || {
        client
            .service()
            .progress
            .lock()
            .expect("nobody panics")
            .len()
    };
    until(|| seen() == 3).await?;
    let seen = client.service().progress.lock().expect("nobody panics");
    let seen: Vec<_> = seen.iter().map(|it| (it.progress, it.total)).collect();
    same(
        &json!(seen),
        &json!([[0.0, 100.0], [50.0, 100.0], [100.0, 100.0]]),
    )
}

async fn until(is_so: impl Fn() -> bool) -> Outcome {
    for _ in 0..500 {
        if is_so() {
            return Ok(());
        }
        time::sleep(Duration::from_millis(20)).await;
    }
    Err("nothing was heard for 10 s".into())
}

async fn elicitation(client: &Client) -> Outcome {
    let arguments = json!({ "message": "Please register" });
    let wanted = r#"User response: {"username":"alice","email":"alice@example.com"}"#;
    says(client, "test_elicitation", arguments, wanted).await?;
    let tool = "test_input_required_result_elicitation";
    says(client, tool, json!({}), "Hello, Alice!").await
}

async fn sampling(client: &Client) -> Outcome {
    let arguments = json!({ "prompt": "The capital of France?" });
    says(client, "test_sampling", arguments, "LLM response: Paris").await?;
    let tool = "test_input_required_result_sampling";
    says(client, tool, json!({}), "The model says: Paris").await
}

async fn cancel(client: &Client) -> Outcome {
    let request = CallToolRequest::new(params("slow_compute", json!({ "seconds": 30 })));
    let request = ClientRequest::CallToolRequest(request);
    let options = PeerRequestOptions::no_options();
    let handle = client.send_cancellable_request(request, options).await?;
    time::sleep(Duration::from_millis(500)).await;
    handle.cancel(None).await?;
    says(client, "greet", json!({ "name": "Bob" }), "Hello, Bob!").await
}

async fn resources(client: &Client) -> Outcome {
    let listed = client.list_all_resources().await?;
    let uris: Vec<&str> = listed.iter().map(|it| it.uri.as_str()).collect();
    let uris: Vec<&str> = uris
        .into_iter()
        .filter(|it| it.starts_with("test://"))
        .collect();
    let wanted = [
        "test://static-text",
        "test://static-binary",
        "test://watched-resource",
    ];
    same(&json!(uris), &json!(wanted))?;
    let templates = client.list_all_resource_templates().await?;
    let template = templates.first().map(|it| it.uri_template.as_str());
    same(&json!(template), &json!("test://template/{id}/data"))?;
    let text = serde_json::to_value(read(client, "test://static-text").await?)?;
    same(
        &text["text"],
        &json!("This is the content of the static text resource."),
    )?;
    let binary = serde_json::to_value(read(client, "test://static-binary").await?)?;
    same(&binary["mimeType"], &json!("image/png"))?;
    let is_png = binary["blob"]
        .as_str()
        .is_some_and(|it| it.starts_with("iVBORw0KGgo"));
    same(&json!(is_png), &json!(true))?;
    let data = serde_json::to_value(read(client, "test://template/7/data").await?)?;
    let data: Value = serde_json::from_str(data["text"].as_str().unwrap_or_default())?;
    same(&data["data"], &json!("Data for ID: 7"))
}

async fn missing(client: &Client, code: i32) -> Outcome {
    let read = client.read_resource(ReadResourceRequestParams::new("test://missing"));
    let Err(ServiceError::McpError(error)) = read.await else {
        return Err("it was read, or failed in another way".into());
    };
    let uri = error.data.as_ref().map(|it| &it["uri"]);
    same(
        &json!([error.code.0, uri]),
        &json!([code, "test://missing"]),
    )
}

async fn subscribe(client: &Client, is_modern: bool) -> Outcome {
    let uri = "test://watched-resource";
    if is_modern {
        let wanted = SubscriptionFilter::builder()
            .resource_subscriptions([uri])
            .build();
        let mut subscription = client.listen(wanted.clone()).await?;
        let acknowledged = serde_json::to_value(subscription.acknowledged())?;
        same(&acknowledged, &serde_json::to_value(wanted)?)?;
        subscription.cancel().await?;
    } else {
        client.subscribe(SubscribeRequestParams::new(uri)).await?;
        client
            .unsubscribe(UnsubscribeRequestParams::new(uri))
            .await?;
    }
    Ok(())
}

async fn changes(client: &Client, is_modern: bool) -> Outcome {
    let tool = "test_trigger_tool_change";
    if is_modern {
        let wanted = SubscriptionFilter::builder().tools_list_changed().build();
        let mut subscription = client.listen(wanted).await?;
        says(client, tool, json!({}), "Changed").await?;
        let news = serde_json::to_value(subscription.next().await?)?;
        same(&news["method"], &json!("notifications/tools/list_changed"))?;
        subscription.cancel().await?;
        return Ok(());
    }
    says(client, tool, json!({}), "Changed").await?;
    until(|| client.service().tools_changed.load(Ordering::SeqCst)).await
}

async fn prompts(client: &Client) -> Outcome {
    let prompts = client.list_all_prompts().await?;
    let first = prompts.first().map(|it| it.name.as_str());
    same(&json!(first), &json!("test_simple_prompt"))?;
    let arguments = Map::from_iter([
        ("arg1".to_owned(), json!("a")),
        ("arg2".to_owned(), json!("b")),
    ]);
    let name = "test_prompt_with_arguments";
    let given = GetPromptRequestParams::new(name).with_arguments(arguments);
    let prompt = serde_json::to_value(client.get_prompt(given).await?)?;
    let text = &prompt["messages"][0]["content"]["text"];
    same(text, &json!("Prompt with arguments: arg1='a', arg2='b'"))
}

async fn skills(client: &Client) -> Outcome {
    let skills = client.list_all_skills().await?;
    let uris: Vec<&str> = skills.iter().map(|it| it.uri.as_str()).collect();
    same(&json!(uris), &json!(["skill://incident-report/SKILL.md"]))?;
    for uri in uris {
        let file = serde_json::to_value(read(client, uri).await?)?;
        let has_frontmatter = file["text"]
            .as_str()
            .is_some_and(|it| it.starts_with("---\n"));
        same(&json!(has_frontmatter), &json!(true))?;
    }
    Ok(())
}

async fn many(client: &Client) -> Outcome {
    let names: Vec<String> = (0..40).map(|it| format!("client {it}")).collect();
    let mut begun = Vec::new();
    for name in &names {
        let request = CallToolRequest::new(params("greet", json!({ "name": name })));
        let request = ClientRequest::CallToolRequest(request);
        let options = PeerRequestOptions::no_options();
        begun.push(client.send_cancellable_request(request, options).await?);
    }
    for (name, begun) in names.iter().zip(begun) {
        let answer = serde_json::to_value(begun.await_response().await?)?;
        let text = &answer["content"][0]["text"];
        same(text, &json!(format!("Hello, {name}!")))?;
    }
    Ok(())
}

/// Asks for an answer that takes longer than proxies like, while everything else goes on.
async fn begin(client: &Client) -> Result<RequestHandle<RoleClient>, ServiceError> {
    let arguments = json!({ "seconds": 6, "label": "it" });
    let request = CallToolRequest::new(params("slow_compute", arguments));
    let request = ClientRequest::CallToolRequest(request);
    let options = PeerRequestOptions::no_options();
    client.send_cancellable_request(request, options).await
}

async fn long_answer(begun: RequestHandle<RoleClient>) -> Outcome {
    let answer = serde_json::to_value(begun.await_response().await?)?;
    let text = &answer["content"][0]["text"];
    same(text, &json!("Computed it for 6 seconds"))
}

async fn restart(client: &Client, is_modern: bool) -> Outcome {
    say("restart", "please");
    tokio::task::spawn_blocking(|| io::stdin().read_line(&mut String::new())).await??;
    says(client, "greet", json!({ "name": "Carol" }), "Hello, Carol!").await?;
    let arguments = json!({ "prompt": "Once more" });
    says(client, "test_sampling", arguments, "LLM response: Paris").await?;
    let changed = &client.service().tools_changed;
    changed.store(false, Ordering::SeqCst);
    while !is_modern && !changed.load(Ordering::SeqCst) {
        // Its stream for news comes back when the client has waited a little.
        says(client, "test_trigger_tool_change", json!({}), "Changed").await?;
        time::sleep(Duration::from_millis(300)).await;
    }
    Ok(())
}

async fn wrong_token(version: ProtocolVersion, is_modern: bool) -> Outcome {
    let Err(error) = connect(version, is_modern, "MCP", "wrong").await else {
        return Err("it was let in".into());
    };
    let error = format!("{error:?}");
    if error.contains("401") || error.contains("AuthRequired") {
        return Ok(());
    }
    Err(error.into())
}

async fn connect(
    version: ProtocolVersion,
    is_modern: bool,
    server: &str,
    token: &str,
) -> Result<Client, Box<dyn Error>> {
    let lifecycle = if is_modern {
        ClientLifecycleMode::Auto {
            preferred_versions: vec![version.clone()],
            legacy_version: None,
        }
    } else {
        ClientLifecycleMode::Initialize
    };
    let person = Person {
        version,
        progress: Mutex::default(),
        tools_changed: AtomicBool::new(false),
    };
    let Ok(command) = env::var(format!("{server}_COMMAND")) else {
        let config =
            StreamableHttpClientTransportConfig::with_uri(env::var(format!("{server}_URL"))?)
                .auth_header(token);
        let transport = StreamableHttpClientTransport::from_config(config);
        return Ok(person.serve_with_lifecycle(transport, lifecycle).await?);
    };
    let command: Value = serde_json::from_str(&command)?;
    let mut process = Command::new(command["command"].as_str().unwrap_or_default());
    process.args(
        command["args"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str),
    );
    for (name, value) in command["env"].as_object().into_iter().flatten() {
        process.env(name, value.as_str().unwrap_or_default());
    }
    let transport = TokioChildProcess::new(process)?;
    Ok(person.serve_with_lifecycle(transport, lifecycle).await?)
}

#[tokio::main]
async fn main() -> Outcome {
    let version = env::args().nth(1).ok_or("which version?")?;
    let is_modern = version.as_str() >= "2026";
    let asked: ProtocolVersion = serde_json::from_value(json!(version))?;
    let token = env::var("MCP_TOKEN").unwrap_or_default();
    let client = connect(asked.clone(), is_modern, "MCP", &token).await?;
    let agreed = client.peer_info().map(|it| it.protocol_version.to_string());
    same(&json!(agreed), &json!(version))?;

    let long = begin(&client).await?;
    let not_in_version = "not in this version of the protocol";
    tell("list tools", list_tools(&client)).await;
    tell("plain result", plain(&client)).await;
    if version.as_str() < "2025-06" {
        say("structured result", not_in_version);
    } else {
        tell(
            "structured result",
            structured(asked.clone(), is_modern, &token),
        )
        .await;
    }
    tell("failed result", failed(&client)).await;
    let arguments = json!({ "value": "Grüße ", "count": 42 });
    let headers = says(&client, "test_custom_header", arguments, "Grüße  Some(42)");
    tell("arguments in headers", headers).await;
    tell("progress", progress(&client)).await;
    if version.as_str() < "2025-06" {
        say("elicitation", not_in_version);
    } else {
        tell("elicitation", elicitation(&client)).await;
    }
    tell("sampling", sampling(&client)).await;
    let tool = "test_input_required_result_list_roots";
    let roots = says(&client, tool, json!({}), "The client has 1 roots");
    tell("roots", roots).await;
    tell("cancel", cancel(&client)).await;
    tell("resources", resources(&client)).await;
    let code = if is_modern { -32602 } else { -32002 };
    tell("missing resource", missing(&client, code)).await;
    tell("subscribe", subscribe(&client, is_modern)).await;
    tell("changes", changes(&client, is_modern)).await;
    tell("prompts", prompts(&client)).await;
    tell("skills", skills(&client)).await;
    tell("many calls", many(&client)).await;
    if env::var("MCP_COMMAND").is_ok() {
        for step in ["long answer", "restart", "wrong token"] {
            say(step, "not over a pipe");
        }
    } else {
        tell("long answer", long_answer(long)).await;
        tell("restart", restart(&client, is_modern)).await;
        tell("wrong token", wrong_token(asked, is_modern)).await;
    }
    client.cancel().await?;
    Ok(())
}
