//! Finds out what is wrong with an external server, within seconds and without doing anything there.

use super::{
    Upstreams,
    connector::{Client, Opening, UpstreamError},
    failure::ExternalError,
    line::Wanted,
    lists,
    server::Upstream,
};
use serde::Serialize;
use serde_json::Map;
use std::{fmt, time::Duration};
use tokio::time::timeout;

/// How long it may take in all.
const IN_ALL: Duration = Duration::from_secs(5);

/// How much of it the beginning may take.
const TO_CONNECT: Duration = Duration::from_secs(4);

/// What an external server was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// It lists its tools.
    Ok,
    /// It wants to know who asks, or what it is told is not enough.
    NeedsAuth,
    /// Something about its entry is wrong or missing: asking again won't help.
    NeedsConfiguration,
    /// Nothing answers there, or not in time.
    Unreachable,
    /// It answers, and does not work.
    Error,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "is there",
            Self::NeedsAuth => "wants somebody to sign in",
            Self::NeedsConfiguration => "needs other settings",
            Self::Unreachable => "can't be reached",
            Self::Error => "does not work",
        })
    }
}

/// What a server was found to be, and by what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// The server.
    pub name: String,
    /// What it is.
    pub finding: Finding,
    /// `ok`, or the stable code of what went wrong: the same that a call would give.
    pub code: &'static str,
    /// What it was asked, and what came.
    pub evidence: Vec<String>,
    /// What to do next; `None` if all is well.
    pub next: Option<String>,
}

impl Upstreams {
    /// Asks a server what it is and for its tools, and says what came of it. No tool is called, and nothing is kept; one
    /// that was left alone, since it failed, and is well again is asked by the next call.
    pub async fn probe(&self, name: &str) -> Probe {
        let mut evidence = Vec::new();
        let found = match self.find(name) {
            None => Err(ExternalError::NoServer {
                name: name.to_owned(),
            }),
            Some(upstream) => {
                let asked = timeout(IN_ALL, self.ask(&upstream, &mut evidence)).await;
                asked.unwrap_or_else(|_| Err(late(name)))
            }
        };
        match found {
            Ok(()) => Probe {
                name: name.to_owned(),
                finding: Finding::Ok,
                code: "ok",
                evidence,
                next: None,
            },
            Err(error) => {
                evidence.push(error.to_string());
                let (finding, next) = judge(name, &error);
                if let ExternalError::Upstream(UpstreamError::Unauthorized { challenge, .. }) =
                    &error
                {
                    let challenge = challenge.as_deref();
                    evidence.push(challenge.map_or_else(
                        || "there is no challenge that says where to log in".to_owned(),
                        |it| format!("its challenge: `{it}`"),
                    ));
                }
                Probe {
                    name: name.to_owned(),
                    finding,
                    code: error.code(),
                    evidence,
                    next: Some(next),
                }
            }
        }
    }

    /// Asks on the connection that there is: a second program might be in the way of the first. Without one, on a
    /// connection that ends afterwards.
    async fn ask(
        &self,
        upstream: &Upstream,
        evidence: &mut Vec<String>,
    ) -> Result<(), ExternalError> {
        let wanted = self.own(upstream, Map::new());
        self.ready(&wanted).await?;
        if let Some(used) = upstream.line(&wanted) {
            return self.ask_on(used.client(), upstream, evidence).await;
        }
        let connector = self.connector(upstream.name());
        let connector = connector.with_connect_limit(TO_CONNECT);
        let entry = upstream.entry()?;
        let Wanted { bearer, .. } = wanted;
        let opening = Opening {
            bearer,
            ..Opening::default()
        };
        let connected = connector.connect(&entry.name, &entry.address, &opening);
        let client = connected.await?;
        let asked = self.ask_on(&client, upstream, evidence).await;
        tokio::spawn(async move { client.close().await });
        asked
    }

    async fn ask_on(
        &self,
        client: &Client,
        upstream: &Upstream,
        evidence: &mut Vec<String>,
    ) -> Result<(), ExternalError> {
        let greeting = if client.is_modern() {
            "server/discover"
        } else {
            "initialize"
        };
        let ((name, version), protocol) = (client.server_info(), client.protocol_version());
        let who = if name.is_empty() { "a server" } else { name };
        evidence.push(format!(
            "`{greeting}` was answered by `{who}` {version}, which speaks {protocol}"
        ));
        let tools = lists::tools(upstream.name(), client).await?;
        evidence.push(format!("`tools/list` gave {} tools", tools.len()));
        upstream.note_well();
        Ok(())
    }
}

fn late(name: &str) -> ExternalError {
    ExternalError::Upstream(UpstreamError::TimedOut {
        server: name.to_owned(),
        method: "tools/list".to_owned(),
        after: IN_ALL,
        said: String::new(),
    })
}

/// Says what an error makes of a server, and what to do about it.
fn judge(name: &str, error: &ExternalError) -> (Finding, String) {
    let anew =
        format!("`clopen-mcp servers remove {name}`, then `servers add {name}` as it should be");
    let ExternalError::Upstream(error) = error else {
        return match error {
            ExternalError::NeedsSignIn { command, .. } => {
                (Finding::NeedsAuth, format!("sign in with `{command}`"))
            }
            ExternalError::SignIn(_) => (
                Finding::NeedsAuth,
                format!("sign in again with `clopen-mcp auth login {name}`"),
            ),
            ExternalError::NoServer { .. } | ExternalError::Entry(_) => (
                Finding::NeedsConfiguration,
                format!("enter it anew: {anew}"),
            ),
            _ => (Finding::Error, report(name)),
        };
    };
    match error {
        UpstreamError::BadAddress { .. } => {
            (Finding::NeedsConfiguration, format!("correct its address: {anew}"))
        }
        UpstreamError::NotStarted { program, .. } => (
            Finding::NeedsConfiguration,
            format!("install `{program}`, or correct its path: {anew}"),
        ),
        UpstreamError::Status {
            status: 404 | 405 | 410,
            ..
        } => (
            Finding::NeedsConfiguration,
            format!("nothing speaks MCP at this URL; correct its path (`/mcp` is usual): {anew}"),
        ),
        UpstreamError::Malformed { .. } => (
            Finding::Error,
            format!("see that its address or command is that of an MCP server: {anew}"),
        ),
        UpstreamError::Unauthorized { status: 403, .. } => (
            Finding::NeedsAuth,
            format!("sign in with more scopes (`clopen-mcp auth login {name} --scope …`), or give it a token that may do this (`--header 'Authorization: Bearer …'`): {anew}"),
        ),
        UpstreamError::Unauthorized { .. } => (
            Finding::NeedsAuth,
            format!("sign in with `clopen-mcp auth login {name}`, or give it a token (`--header 'Authorization: Bearer …'`): {anew}"),
        ),
        UpstreamError::Ended { said: words, .. } | UpstreamError::Refused { message: words, .. } => {
            match missing(words) {
                Some(Missing::Variable(variable)) => (
                    Finding::NeedsConfiguration,
                    format!("give it the variable `{variable}` (`--env {variable}=…`): {anew}"),
                ),
                Some(Missing::Something) => (
                    Finding::NeedsConfiguration,
                    format!("give it what it says is missing (`--env NAME=…`, or an argument): {anew}"),
                ),
                None => (Finding::Error, report(name)),
            }
        }
        UpstreamError::Unreachable { .. } => (
            Finding::Unreachable,
            "see that it runs and that its URL is right, then check again".to_owned(),
        ),
        UpstreamError::TimedOut { .. } | UpstreamError::Status { status: 502..=504, .. } => (
            Finding::Unreachable,
            "wait and check again: it may be overloaded, or a program that is fetched before its first start; a running bridge goes on trying".to_owned(),
        ),
        _ => (Finding::Error, report(name)),
    }
}

fn report(name: &str) -> String {
    format!("run its command or open its URL by hand, and tell who maintains `{name}` what came")
}

/// What a program says that it lacks.
#[derive(Debug, PartialEq, Eq)]
enum Missing<'a> {
    Variable(&'a str),
    Something,
}

/// Words by which programs say that they lack something.
const LACK: [&str; 9] = [
    "missing",
    "required",
    "not set",
    "must be set",
    "must be provided",
    "not provided",
    "is undefined",
    "please set",
    "no api key",
];

/// Reads out of a program's last words what it lacks: a name in capitals is that of a variable.
fn missing(words: &str) -> Option<Missing<'_>> {
    let lower = words.to_lowercase();
    if !LACK.iter().any(|it| lower.contains(it)) {
        return None;
    }
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let is_variable = |it: &&str| {
        it.contains('_')
            && it.starts_with(|it: char| it.is_ascii_uppercase())
            && !it.contains(|it: char| it.is_ascii_lowercase())
    };
    let variable = words.split(|it| !is_part(it)).find(is_variable);
    let of_settings = ["key", "token", "argument", "environment", "variable"];
    match variable {
        Some(variable) => Some(Missing::Variable(variable)),
        None if of_settings.iter().any(|it| lower.contains(it)) => Some(Missing::Something),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_say_what_they_lack() {
        let variable = |words| match missing(words) {
            Some(Missing::Variable(it)) => it,
            other => panic!("{words}: {other:?}"),
        };
        let words = "Error: GITHUB_TOKEN environment variable is required / at main";
        assert_eq!(variable(words), "GITHUB_TOKEN");
        assert_eq!(variable("please set `X_API_KEY`!"), "X_API_KEY");
        let something = Some(Missing::Something);
        assert_eq!(missing("usage: the API key is missing"), something);
        assert_eq!(missing("Cannot find module 'required'"), None);
        assert_eq!(missing("SEGFAULT in X_Y"), None);
    }
}
