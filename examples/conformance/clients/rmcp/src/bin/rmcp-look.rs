//! rmcp's own client looks at servers, and tells what is there, one JSON list a line.
#![allow(
    clippy::disallowed_methods,
    reason = "the environment is how it is told of the servers"
)]

use rmcp::{
    RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
    },
    service::{ClientLifecycleMode, ClientServiceExt, RunningService},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Map, Value, json};
use std::{env, error::Error, time::Duration};
use tokio::{process::Command, time};

type Client = RunningService<RoleClient, ClientConfig>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let version = env::args().nth(1).ok_or("which version?")?;
    let servers: Vec<Value> = serde_json::from_str(&env::var("MCP_LOOK")?)?;
    for server in servers {
        let looked = time::timeout(Duration::from_secs(60), look(&version, &server)).await;
        let outcome = match looked {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => json!(format!("failed: {error}")),
            Err(_) => json!("failed: it takes more than 60 s"),
        };
        println!("{}", json!([server["name"], outcome]));
    }
    Ok(())
}

async fn look(version: &str, server: &Value) -> Result<Value, Box<dyn Error>> {
    let client = connect(version, server).await?;
    let tools = client.list_all_tools().await?;
    let mut texts = Vec::new();
    for called in server["calls"].as_array().into_iter().flatten() {
        let tool = called[0].as_str().unwrap_or_default().to_owned();
        let arguments: Map<String, Value> = serde_json::from_value(called[1].clone())?;
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = client.call_tool(params).await?;
        let text = result.content.first().and_then(|it| it.as_text());
        texts.push(json!(text.map(|it| &it.text)));
    }
    client.cancel().await?;
    let tools: Vec<&str> = tools.iter().map(|it| &*it.name).collect();
    Ok(json!({ "tools": tools, "texts": texts }))
}

async fn connect(version: &str, server: &Value) -> Result<Client, Box<dyn Error>> {
    let asked: ProtocolVersion = serde_json::from_value(json!(version))?;
    let lifecycle = if version >= "2026" {
        ClientLifecycleMode::Auto {
            preferred_versions: vec![asked.clone()],
            legacy_version: None,
        }
    } else {
        ClientLifecycleMode::Initialize
    };
    let implementation = Implementation::new("rmcp", "1.0.0");
    let config = ClientConfig::new(ClientCapabilities::default(), implementation)
        .with_protocol_version(asked);
    if let Some(url) = server["url"].as_str() {
        let http = StreamableHttpClientTransportConfig::with_uri(url)
            .auth_header(env::var("MCP_TOKEN").unwrap_or_default());
        let transport = StreamableHttpClientTransport::from_config(http);
        return Ok(config.serve_with_lifecycle(transport, lifecycle).await?);
    }
    let command = &server["command"];
    let mut process = Command::new(command["command"].as_str().unwrap_or_default());
    let arguments = command["args"].as_array().into_iter().flatten();
    process.args(arguments.filter_map(Value::as_str));
    let transport = TokioChildProcess::new(process)?;
    Ok(config.serve_with_lifecycle(transport, lifecycle).await?)
}
