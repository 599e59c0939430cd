//! Resources, prompts and what is offered to who fills them in.

use super::{Dispatcher, Ended, run};
use crate::{
    context::{Caller, Context},
    definition::BoxFuture,
    error::{ProtocolError, ToolError, did_you_mean},
    name::Ambiguous,
    output::{InputRequired, Message, Output},
    provider::{Completion, Fillable, Prompt, Typed},
    view::View,
};
use std::{collections::BTreeMap, sync::Arc};
use thiserror::Error;

/// Filters of logs know the dispatcher, whose part this is.
const TARGET: &str = "tool_runtime::dispatcher";

impl Dispatcher {
    /// Reads a resource by its URI.
    pub async fn read(&self, uri: &str, context: &Context) -> Result<Output, ReadError> {
        let view = self.view_for(&context.caller);
        let found = view.find_resource(uri, &context.caller);
        let (provider, resource, variables) = found.ok_or_else(|| ReadError::NotFound {
            uri: uri.to_owned(),
        })?;
        let running = self.providers[provider].read(resource, uri, variables, context);
        let panicked = |panic: &str| {
            let server = &*resource.server;
            tracing::error!(target: TARGET, server, resource = uri, panic, "a resource panicked");
        };
        let mut output = self.finish(running, context, uri, panicked).await?;
        self.results.cut(&mut output, &context.caller);
        Ok(output)
    }

    /// Makes the messages of a prompt, by its name and what the user filled in.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: BTreeMap<String, String>,
        context: &Context,
    ) -> Result<Vec<Message>, ReadError> {
        let view = self.view_for(&context.caller);
        let (provider, prompt) = prompt_of(&view, name, &context.caller)?;
        let missing = prompt
            .arguments
            .iter()
            .find(|it| it.required && !arguments.contains_key(&it.name));
        if let Some(missing) = missing {
            return Err(ReadError::MissingArgument {
                prompt: name.to_owned(),
                argument: missing.name.clone(),
            });
        }
        let running = self.providers[provider].prompt(prompt, arguments, context);
        let panicked = |panic: &str| {
            let (server, prompt) = (&*prompt.server, &*prompt.name);
            tracing::error!(target: TARGET, server, prompt, panic, "a prompt panicked");
        };
        let mut messages = self.finish(running, context, name, panicked).await?;
        self.results.cut_messages(&mut messages, &context.caller);
        Ok(messages)
    }

    /// Returns what to offer a user who fills in the arguments of a prompt.
    pub async fn complete_prompt(
        &self,
        name: &str,
        typed: &Typed,
        context: &Context,
    ) -> Result<Completion, ReadError> {
        let view = self.view_for(&context.caller);
        let (provider, prompt) = prompt_of(&view, name, &context.caller)?;
        let item = Fillable::Prompt(prompt);
        self.complete(provider, item, name, typed, context).await
    }

    /// Returns what to offer a user who fills in the variables of an address, by its template.
    pub async fn complete_resource(
        &self,
        template: &str,
        typed: &Typed,
        context: &Context,
    ) -> Result<Completion, ReadError> {
        let view = self.view_for(&context.caller);
        let found = view.find_template(template, &context.caller);
        let (provider, resource) = found.ok_or_else(|| ReadError::NotFound {
            uri: template.to_owned(),
        })?;
        let item = Fillable::Resource(resource);
        self.complete(provider, item, template, typed, context)
            .await
    }

    async fn complete(
        &self,
        provider: usize,
        item: Fillable<'_>,
        of: &str,
        typed: &Typed,
        context: &Context,
    ) -> Result<Completion, ReadError> {
        let running = self.providers[provider].complete(item, typed, context);
        let panicked =
            |panic: &str| tracing::error!(target: TARGET, of, panic, "a completion panicked");
        self.finish(running, context, of, panicked).await
    }

    /// Says that somebody wants to hear of changes of a resource; says whether the caller knows one of that address.
    pub fn watch(&self, uri: &str, caller: &Caller) -> bool {
        let view = self.view_for(caller);
        let Some((provider, resource, _)) = view.find_resource(uri, caller) else {
            return false;
        };
        self.providers[provider].watch(resource, uri, caller);
        true
    }

    async fn finish<T>(
        &self,
        running: BoxFuture<'_, Result<T, ToolError>>,
        context: &Context,
        what: &str,
        panicked: impl FnOnce(&str),
    ) -> Result<T, ReadError> {
        let limit = context.limit.unwrap_or(self.limits.time);
        let reason = match run(running, limit, context).await {
            Ended::Done(Ok(done)) => return Ok(done),
            Ended::Stuck(required) => return Err(ReadError::InputRequired(required)),
            Ended::Done(Err(error)) => {
                if let Some(required) = error.downcast_ref::<InputRequired>() {
                    return Err(ReadError::InputRequired(required.clone()));
                }
                if let Some(refused) = error.downcast_ref::<ProtocolError>() {
                    return Err(ReadError::Protocol(refused.clone()));
                }
                error.to_string()
            }
            Ended::Panicked(message) => {
                panicked(&message);
                "an internal error".to_owned()
            }
            Ended::TimedOut => format!("it was stopped after {} s", limit.as_secs_f64()),
            Ended::Cancelled => "it was cancelled".to_owned(),
        };
        Err(ReadError::Failed {
            what: what.to_owned(),
            reason,
        })
    }
}

/// Finds the prompt that a caller means, and its provider.
fn prompt_of<'v>(
    view: &'v View,
    name: &str,
    caller: &Caller,
) -> Result<(usize, &'v Arc<Prompt>), ReadError> {
    view.find_prompt(name, caller)?
        .map_err(|similar| ReadError::UnknownPrompt {
            name: name.to_owned(),
            similar,
        })
}

/// Why a resource or a prompt could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No resource has that address.
    #[error("there is no resource `{uri}`")]
    NotFound {
        /// The address.
        uri: String,
    },
    /// No prompt has that name.
    #[error("there is no prompt `{name}`{}", did_you_mean(.similar))]
    UnknownPrompt {
        /// The name as it was asked for.
        name: String,
        /// Names that look like it.
        similar: Vec<String>,
    },
    /// Several prompts could be meant.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// The prompt can't be made without something that the user did not fill in.
    #[error("the prompt `{prompt}` needs the argument `{argument}`")]
    MissingArgument {
        /// Name of the prompt.
        prompt: String,
        /// What is missing.
        argument: String,
    },
    /// The client must answer before it can be had.
    #[error("the client must answer questions before")]
    InputRequired(InputRequired),
    /// An external server has refused it.
    #[error(transparent)]
    Protocol(ProtocolError),
    /// The function behind it failed.
    #[error("`{what}` could not be had: {reason}")]
    Failed {
        /// The address or name.
        what: String,
        /// What went wrong.
        reason: String,
    },
}
