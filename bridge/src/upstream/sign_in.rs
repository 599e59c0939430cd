//! On whose behalf an external server is asked, and what to do where it wants somebody to sign in.

use super::{
    Upstreams,
    connector::UpstreamError,
    failure::{self, ExternalError},
    line::Wanted,
    server::Upstream,
};
use crate::credentials::{Bearer, sign_in_command, subject};
use serde_json::{Map, Value};
use tool_runtime::Context;

impl Upstreams {
    /// What is wanted by whoever runs the bridge.
    pub(super) fn own(&self, upstream: &Upstream, capabilities: Map<String, Value>) -> Wanted {
        Wanted {
            bearer: upstream.bearer(&self.0.sign_ins, ""),
            capabilities,
        }
    }

    /// What is wanted by a caller: with the token of its own subject, never with that of another.
    pub(super) fn of(
        &self,
        upstream: &Upstream,
        context: &Context,
        capabilities: Map<String, Value>,
    ) -> Wanted {
        let subject = subject(&context.caller.principal);
        Wanted {
            bearer: upstream.bearer(&self.0.sign_ins, subject),
            capabilities,
        }
    }

    /// Sees to it that requests carry a good token, where somebody has signed in.
    pub(super) async fn ready(&self, wanted: &Wanted) -> Result<(), ExternalError> {
        match &wanted.bearer {
            Some(bearer) => {
                let ready = self.0.sign_ins.ready(bearer).await;
                ready.map_err(|error| Box::new(error).into())
            }
            None => Ok(()),
        }
    }

    /// Says whether there is another token, where that of a version was refused.
    pub(super) async fn is_renewed(
        &self,
        wanted: &Wanted,
        version: i64,
        error: &UpstreamError,
    ) -> Result<bool, ExternalError> {
        match &wanted.bearer {
            Some(bearer) if failure::is_unauthorized(error) => {
                let renewed = self.0.sign_ins.renewed(bearer, version).await;
                renewed.map_err(|error| Box::new(error).into())
            }
            _ => Ok(false),
        }
    }

    /// Says of a refusal why it is one, and what to do.
    pub(super) async fn with_way_out(
        &self,
        wanted: &Wanted,
        error: ExternalError,
    ) -> ExternalError {
        let (
            ExternalError::Upstream(UpstreamError::Unauthorized {
                server,
                status,
                challenge,
                ..
            }),
            Some(bearer),
        ) = (&error, &wanted.bearer)
        else {
            return error;
        };
        ExternalError::NeedsSignIn {
            name: server.clone(),
            reason: self.reason(bearer, *status, challenge.as_deref()).await,
            command: sign_in_command(server, bearer.subject()),
        }
    }

    async fn reason(&self, bearer: &Bearer, status: u16, challenge: Option<&str>) -> String {
        if bearer.token().is_none() {
            return match bearer.subject() {
                "" => "nobody has signed in to it".to_owned(),
                subject => format!("nobody has signed in to it for the token `{subject}`"),
            };
        }
        let said = challenge.unwrap_or_default();
        match self.0.sign_ins.want(bearer, said).await {
            Ok(scopes) if !scopes.is_empty() => {
                format!("it wants the scopes `{}` besides", scopes.join(" "))
            }
            _ if said.is_empty() => format!(
                "it refuses the token that it is given with status {status}, so the token may be for something else, or for too little"
            ),
            _ => format!(
                "it refuses the token that it is given with status {status}, so the token may be for something else, or for too little; it says `{said}`"
            ),
        }
    }
}
