//! rmcp's `ServerHandler` → the dispatcher.
#![expect(deprecated, reason = "clients up to 2025-11-25 read logs")]

use super::convert;
use crate::mcp::gauge::Gauge;
use axum::http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, CustomRequest, CustomResult,
        GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam,
        ProgressToken, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig, ServerRequest, SetLevelRequestParams,
    },
    service::{Peer, RequestContext},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::mpsc;
use tool_runtime::{
    Caller, Client, ClientError, Context, Dispatcher, InputRequest, Level, Log, NAMESPACE,
    Progress, ProgressReport, Server,
};

/// How many reports and log messages of one call may wait for the client; more are left out.
const WAITING: usize = 256;

/// The methods that this server knows: rmcp hands a request whose parameters it can't read over as an unknown one.
const METHODS: [&str; 7] = [
    "tools/call",
    "tools/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/get",
    "prompts/list",
];

/// Serves one client: a legacy session, a modern request, or a pipe.
#[derive(Debug)]
pub(crate) struct Handler {
    dispatcher: Arc<Dispatcher>,
    /// Who calls through a pipe; over HTTP every request says it.
    caller: Arc<Caller>,
    in_flight: Gauge,
    /// The least level that a legacy client wants to read.
    level: Mutex<Option<Level>>,
}

/// Something that a tool says while it runs.
enum News {
    Progress(ProgressReport),
    Log(Level, Value),
}

impl Handler {
    pub(crate) fn new(dispatcher: Arc<Dispatcher>, caller: Arc<Caller>, in_flight: Gauge) -> Self {
        Self {
            dispatcher,
            caller,
            in_flight,
            level: Mutex::new(None),
        }
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Arc<Caller> {
        let parts = context.extensions.get::<Parts>();
        let caller = parts.and_then(|it| it.extensions.get::<Arc<Caller>>());
        caller.unwrap_or(&self.caller).clone()
    }

    /// The least level that this request may be logged at: modern clients say so in the request, or want nothing.
    fn level(&self, context: &RequestContext<RoleServer>) -> Option<Level> {
        if is_modern(context) {
            return context.meta.log_level().map(convert::own_level);
        }
        let level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        Some(level.unwrap_or(Level::Debug))
    }

    /// Makes the context of a call, and the channel of what the tool says while it runs.
    fn context(&self, request: &RequestContext<RoleServer>) -> (Context, mpsc::Receiver<News>) {
        let (say, news) = mpsc::channel(WAITING);
        let mut context = Context::new(self.caller(request));
        context.cancellation = request.ct.clone();
        if request.meta.get_progress_token().is_some() {
            let say = say.clone();
            context.progress = Progress::to(move |it| drop(say.try_send(News::Progress(it))));
        }
        if let Some(least) = self.level(request) {
            context.log = Log::to(move |level, data| {
                if level >= least {
                    drop(say.try_send(News::Log(level, data)));
                }
            });
        }
        if !is_modern(request) {
            let peer = request.peer.clone();
            let capabilities = request.client_capabilities().unwrap_or_default();
            context.client =
                Client::to(move |question| ask(peer.clone(), capabilities.clone(), question));
        }
        (context, news)
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Puts a question to a legacy client, if it can answer such.
async fn ask(
    peer: Peer<RoleServer>,
    capabilities: ClientCapabilities,
    question: InputRequest,
) -> Result<Value, ClientError> {
    let InputRequest { method, params } = question;
    let able = match &*method {
        "elicitation/create" => capabilities.elicitation.is_some(),
        "sampling/createMessage" => capabilities.sampling.is_some(),
        "roots/list" => capabilities.roots.is_some(),
        _ => false,
    };
    if !able {
        return Err(ClientError::Unsupported { method });
    }
    let request: ServerRequest = serde_json::from_value(json!({
        "method": method,
        "params": params,
    }))
    .map_err(|error| ClientError::Invalid {
        reason: error.to_string(),
    })?;
    let failed = |reason: String| ClientError::Failed { reason };
    let answer = peer.send_request(request).await;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    serde_json::to_value(answer).map_err(|error| failed(error.to_string()))
}

/// Hands on what a tool says while it runs.
async fn tell(peer: &Peer<RoleServer>, token: Option<&ProgressToken>, news: News) {
    // A client that is gone hears nothing; the call itself finds out at its end.
    match (news, token) {
        (News::Progress(report), Some(token)) => {
            #[expect(
                clippy::cast_precision_loss,
                reason = "the protocol counts in floating point"
            )]
            let mut progress = ProgressNotificationParam::new(token.clone(), report.done as f64);
            #[expect(
                clippy::cast_precision_loss,
                reason = "the protocol counts in floating point"
            )]
            let total = (report.total > 0).then_some(report.total as f64);
            progress.total = total;
            progress.message = report.message;
            let _ = peer.notify_progress(progress).await;
        }
        (News::Progress(_), None) => {}
        (News::Log(level, data), _) => {
            let message = LoggingMessageNotificationParam::new(convert::level(level), data);
            let _ = peer.notify_logging_message(message).await;
        }
    }
}

/// All lists fit one page, so that every cursor is one that we never gave.
fn first_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|it| it.cursor) {
        Some(_) => {
            let message = "this cursor is not one that this server gave";
            Err(ErrorData::invalid_params(message, None))
        }
        None => Ok(()),
    }
}

/// What a client reads about all servers together.
fn instructions<'s>(servers: impl Iterator<Item = &'s Server>) -> Option<String> {
    let described = servers.filter(|it| !it.description.is_empty() && !it.tools.is_empty());
    let lines: Vec<String> = described
        .map(|it| format!("- {}: {}", it.name, it.description.replace('\n', " ")))
        .collect();
    (!lines.is_empty()).then(|| format!("Tools of these servers:\n{}", lines.join("\n")))
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_logging()
            .build();
        let mut info = ServerConfig::new(capabilities);
        // VS Code makes its prefix of the name that the server announces.
        info.server_info = Implementation::new(NAMESPACE, env!("CARGO_PKG_VERSION"));
        info.server_info.title = Some(NAMESPACE.to_owned());
        info.instructions = instructions(self.dispatcher.view().enabled_servers());
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        first_page(request)?;
        let (view, caller) = (self.dispatcher.view(), self.caller(&context));
        let tools = view.tools(&caller).map(convert::tool);
        Ok(ListToolsResult::with_all_items(
            tools.collect::<Result<_, _>>()?,
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _in_flight = self.in_flight.enter();
        let arguments = request.arguments.map(Value::Object);
        let arguments = arguments.map_or_else(String::new, |it| it.to_string());
        let token = context.meta.get_progress_token();
        let (call_context, mut news) = self.context(&context);
        let mut call = pin!(
            self.dispatcher
                .call(&request.name, &arguments, &call_context)
        );
        let result = loop {
            tokio::select! {
                biased;
                Some(it) = news.recv() => tell(&context.peer, token.as_ref(), it).await,
                result = &mut call => break result,
            }
        };
        while let Ok(it) = news.try_recv() {
            tell(&context.peer, token.as_ref(), it).await;
        }
        match &result {
            Ok(output) => convert::call_result(output),
            Err(error) => convert::call_error(error),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        first_page(request)?;
        let (view, caller) = (self.dispatcher.view(), self.caller(&context));
        let resources = view.resources(&caller).filter(|it| !it.is_template());
        let resources = resources.map(convert::resource).collect::<Result<_, _>>()?;
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        first_page(request)?;
        let (view, caller) = (self.dispatcher.view(), self.caller(&context));
        let templates = view.resources(&caller).filter(|it| it.is_template());
        let templates = templates.map(convert::template).collect::<Result<_, _>>()?;
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let _in_flight = self.in_flight.enter();
        let mut call_context = Context::new(self.caller(&context));
        call_context.cancellation = context.ct.clone();
        let output = self.dispatcher.read(&request.uri, &call_context).await;
        let output = output.map_err(|error| convert::read_error(&error))?;
        let view = self.dispatcher.view();
        let resource = view
            .resources(&call_context.caller)
            .find(|it| it.matches(&request.uri).is_some());
        let mime_type = resource.and_then(|it| it.mime_type.as_deref());
        convert::contents(&request.uri, mime_type, &output).map(Into::into)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        first_page(request)?;
        let (view, caller) = (self.dispatcher.view(), self.caller(&context));
        let prompts = view.prompts(&caller).map(convert::prompt);
        Ok(ListPromptsResult::with_all_items(
            prompts.collect::<Result<_, _>>()?,
        ))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let _in_flight = self.in_flight.enter();
        let arguments: BTreeMap<String, String> = request
            .arguments
            .into_iter()
            .flatten()
            .map(|(name, value)| (name, text(value)))
            .collect();
        let mut call_context = Context::new(self.caller(&context));
        call_context.cancellation = context.ct.clone();
        let messages = self
            .dispatcher
            .prompt(&request.name, arguments, &call_context)
            .await;
        let messages = messages.map_err(|error| convert::read_error(&error))?;
        convert::messages(&messages).map(Into::into)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(ErrorData::new(
                rmcp::model::ErrorCode::METHOD_NOT_FOUND,
                "logging/setLevel",
                None,
            ));
        }
        let level = convert::own_level(request.level);
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if METHODS.contains(&method.as_str()) {
            let message = format!("the parameters of `{method}` are not what it takes");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(
            rmcp::model::ErrorCode::METHOD_NOT_FOUND,
            method,
            None,
        ))
    }
}

/// The protocol wants text here; some clients send numbers.
fn text(value: impl Into<Value>) -> String {
    match value.into() {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
