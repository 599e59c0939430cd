//! What an engine needs to know of the bridge: the address, with who calls from there, and the token.

use super::{Engine, Lifetime};
use crate::secret::Secret;
use serde_json::{Map, Value};
use tool_runtime::{Caller, NAMESPACE};

/// The variable that holds the token, where an engine's settings can name one.
pub const TOKEN_VARIABLE: &str = "CLOPEN_TOKEN";

/// How an engine reaches the bridge.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The address of the bridge: `http://127.0.0.1:9151/mcp`.
    pub url: String,
    /// Who calls: what is known of the project and the conversation goes into the address, as far as a configuration
    /// of that engine lives no longer. The engine's own name is always in it.
    pub caller: Caller,
    /// What lets it in.
    pub token: Token,
    /// The external servers that have an entry each; the bridge's own leaves them out then.
    pub external: Vec<String>,
    /// The listed names of tools that change nothing; engines with a list of such tools run them without asking.
    pub read_only_tools: Vec<String>,
}

/// What lets an engine in.
#[derive(Clone, Debug)]
pub enum Token {
    /// Nothing: the bridge asks for no token.
    Unneeded,
    /// The variable [`TOKEN_VARIABLE`] of the engine's own environment, for engines whose settings can name variables.
    Variable,
    /// This one, in the file itself.
    Written(Secret),
}

/// What an entry holds.
#[derive(Debug)]
pub struct Access<'a> {
    /// Its name.
    pub name: &'a str,
    /// The address of the bridge, with who calls from there.
    pub address: String,
    /// The headers of each request.
    pub headers: Value,
    /// What stands in them.
    pub token: &'a Token,
}

impl Connection {
    /// Where an engine finds all servers that have no entry of their own, or one external server alone.
    fn address(&self, engine: &str, lifetime: Lifetime, server: Option<&str>) -> String {
        let Caller {
            project, session, ..
        } = &self.caller;
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("engine", engine);
        if lifetime >= Lifetime::Project && !project.is_empty() {
            query.append_pair("project", project);
        }
        if lifetime >= Lifetime::Stream && !session.is_empty() {
            query.append_pair("session", session);
        }
        let url = &self.url;
        if let Some(server) = server {
            return format!("{url}/ext/{server}?{}", query.finish());
        }
        for server in &self.external {
            query.append_pair("without", server);
        }
        format!("{url}?{}", query.finish())
    }

    /// Returns what our entry holds, or the one of an external server; the variable in the engine's own form.
    pub(super) fn access<'a>(
        &'a self,
        engine: &Engine,
        lifetime: Lifetime,
        server: Option<&'a str>,
    ) -> Access<'a> {
        let bearer = match &self.token {
            Token::Unneeded => None,
            Token::Variable => Some(engine.variable.unwrap_or_default()),
            Token::Written(token) => Some(token.expose()),
        };
        let bearer = bearer.map(|it| ("Authorization".to_owned(), format!("Bearer {it}").into()));
        Access {
            name: server.unwrap_or(NAMESPACE),
            address: self.address(engine.id, lifetime, server),
            headers: bearer.into_iter().collect::<Map<_, _>>().into(),
            token: &self.token,
        }
    }
}
