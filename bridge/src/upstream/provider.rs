//! External servers as what the dispatcher knows: a source of servers like our own.

use super::{
    Upstreams,
    failure::Failure,
    items::{self, Promise},
    relay::{Params, texts},
};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::timeout;
use tool_runtime::{
    ArgumentError, Arguments, BoxFuture, Caller, Completion, Context, Fillable, Message, Output,
    Prompt, Provider, Resource, Server, Tool, ToolError, Typed,
};

/// How long a workspace may keep its first caller waiting.
const ENTERING: Duration = Duration::from_secs(5);

impl Provider for Upstreams {
    fn servers(&self) -> Vec<Arc<Server>> {
        self.all().iter().map(|it| it.server()).collect()
    }

    fn differs_by_workspace(&self) -> bool {
        self.read().values().any(|it| it.differs_by_workspace())
    }

    fn servers_in(&self, workspace: &str) -> Vec<Arc<Server>> {
        let all = self.all();
        let servers = all.iter().map(|it| match it.known_in(workspace) {
            Some(of_workspace) => of_workspace.server(),
            None => it.server(),
        });
        servers.collect()
    }

    fn enter<'a>(&'a self, workspace: &'a str) -> BoxFuture<'a, bool> {
        let differing = self
            .all()
            .into_iter()
            .filter(|it| it.differs_by_workspace());
        let all: Vec<_> = differing.map(|it| it.of_workspace(workspace)).collect();
        let new: Vec<_> = all.into_iter().filter(|it| it.1).map(|it| it.0).collect();
        if new.is_empty() {
            return Box::pin(std::future::ready(false));
        }
        Box::pin(async move {
            let lists = new.into_iter().map(|it| self.list_beside(it));
            // Those that take longer are told of when they are there.
            let _ = timeout(ENTERING, futures_util::future::join_all(lists)).await;
            true
        })
    }

    fn call<'a>(
        &'a self,
        tool: &Tool,
        arguments: &Arguments<'_>,
        context: &'a Context,
    ) -> Result<BoxFuture<'a, Result<Output, ToolError>>, ArgumentError> {
        let server = tool.server.clone();
        let params = Params {
            name: Some(tool.name.clone()),
            arguments: RawValue::from_string(arguments.json().to_owned()).ok(),
            ..Params::default()
        };
        let is_safe = |hint: Option<bool>| hint == Some(true);
        let may_be_repeated = is_safe(tool.hints.read_only) || is_safe(tool.hints.idempotent);
        let promise = Promise::of(tool);
        let schema = tool.input_schema.clone();
        let promised = tool.output_schema.clone();
        Ok(Box::pin(async move {
            let upstream = self.find_now(&server, &context.caller)?;
            let mut params = params;
            let name = params.name.as_deref().unwrap_or_default();
            if upstream.only_runs_as_task(name) {
                params.task = Some(Map::new());
            }
            let result = self
                .relay(
                    &upstream,
                    "tools/call",
                    &params,
                    Some(&schema),
                    may_be_repeated,
                    context,
                )
                .await;
            match result {
                Ok(result) => {
                    let output = items::output(&result, promise)?;
                    if let (Some(promised), Some(tool)) = (promised, &params.name) {
                        upstream.hold_to_promise(tool, &promised, &output, promise);
                    }
                    if !upstream.is_listed_lately() {
                        self.list_beside(upstream);
                    }
                    Ok(output)
                }
                Err(failure) => failure.into_output(),
            }
        }))
    }

    fn read<'a>(
        &'a self,
        resource: &'a Resource,
        uri: &'a str,
        _: BTreeMap<String, String>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let upstream = self.find_now(&resource.server, &context.caller)?;
            let params = Params {
                uri: Some(uri.to_owned()),
                ..Params::default()
            };
            let result = self
                .relay(&upstream, "resources/read", &params, None, true, context)
                .await?;
            items::contents(&result, uri)
        })
    }

    fn prompt<'a>(
        &'a self,
        prompt: &'a Prompt,
        arguments: BTreeMap<String, String>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Vec<Message>, ToolError>> {
        Box::pin(async move {
            let upstream = self.find_now(&prompt.server, &context.caller)?;
            let params = Params {
                name: Some(prompt.name.clone()),
                arguments: texts(&arguments),
                ..Params::default()
            };
            let result = self
                .relay(&upstream, "prompts/get", &params, None, true, context)
                .await?;
            items::messages(&result)
        })
    }

    fn complete<'a>(
        &'a self,
        item: Fillable<'a>,
        typed: &'a Typed,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Completion, ToolError>> {
        Box::pin(async move {
            let (server, reference) = match item {
                Fillable::Prompt(it) => {
                    (&it.server, json!({ "type": "ref/prompt", "name": it.name }))
                }
                Fillable::Resource(it) => {
                    (&it.server, json!({ "type": "ref/resource", "uri": it.uri }))
                }
            };
            let upstream = self.find_now(server, &context.caller)?;
            let wanted = self.of(&upstream, context, Map::new());
            let used = self.open_in_time(&upstream, &wanted).await?;
            if !used.client().declares("completions") {
                return Ok(Completion::default());
            }
            let params = Completing {
                reference,
                argument: json!({ "name": typed.argument, "value": typed.value }),
                context: (!typed.others.is_empty()).then(|| json!({ "arguments": typed.others })),
            };
            let answered = used.client().request("completion/complete", &params).await;
            items::completion(&answered.map_err(Failure::from)?)
        })
    }

    fn watch(&self, resource: &Resource, uri: &str, caller: &Caller) {
        let Ok(upstream) = self.find_now(&resource.server, caller) else {
            return;
        };
        if !upstream.watches(uri) {
            return;
        }
        let (all, uri) = (self.clone(), uri.to_owned());
        tokio::spawn(async move {
            let wanted = all.own(&upstream, Map::new());
            let watched = match all.open(&upstream, &wanted).await {
                Ok(used) => used.client().subscribe(&uri).await.map_err(Into::into),
                Err(error) => Err(error),
            };
            if let Err(error) = watched {
                tracing::debug!(%error, "a resource can't be watched");
            }
        });
    }
}

#[derive(Serialize)]
struct Completing {
    #[serde(rename = "ref")]
    reference: Value,
    argument: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Value>,
}
