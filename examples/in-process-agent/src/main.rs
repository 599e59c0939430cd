//! A whole agent in one process: it shows its tools to a model, runs the calls that the model asks for, and feeds the
//! results back until the model answers. Once with OpenAI's API, once with Anthropic's.
//!
//! `cargo run -p in-process-agent` talks to a model on loopback that asks for what a real one would.

mod agent;
mod model;
mod shop;

use tool_runtime::{Caller, Context, Dispatcher, Environment, Registry, ToolError};

const QUESTION: &str = "What do three apples cost?";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ToolError> {
    let base_url = model::serve().await?;
    let client = client()?;
    let dispatcher = Dispatcher::new(Registry::linked(&Environment::default()).await?)?;
    let context = Context::new(Caller {
        engine: "in-process-agent".to_owned(),
        ..Caller::default()
    });

    let agent = agent::Agent {
        client: &client,
        base_url: &base_url,
        dispatcher: &dispatcher,
        context: &context,
    };
    let answers = [
        agent.ask_openai(QUESTION).await?,
        agent.ask_anthropic(QUESTION).await?,
    ];
    for answer in answers {
        assert_eq!(answer, "They cost 1.50.");
    }
    Ok(())
}

/// A client that speaks to loopback only, so that no authority needs to be trusted.
fn client() -> Result<reqwest::Client, ToolError> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy();
    Ok(client.build()?)
}
