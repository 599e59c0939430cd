//! What is on: which servers, and which of their tools, for which caller.

use crate::{
    context::Caller,
    error::did_you_mean,
    name::{ToolName, similar},
    provider::{Server, Tool},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use thiserror::Error;

/// Which servers and tools are on. What it doesn't name is on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(BTreeMap<String, ServerSelection>);

/// What is on of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSelection {
    /// Whether the server is on at all.
    pub enabled: bool,
    /// The only tools that are on; `None` means all.
    pub only: Option<BTreeSet<String>>,
    /// Tools that are off.
    pub without: BTreeSet<String>,
    /// What stands before the names of its tools instead of its own, where something must.
    pub prefix: Option<String>,
}

impl Default for ServerSelection {
    fn default() -> Self {
        Self {
            enabled: true,
            only: None,
            without: BTreeSet::new(),
            prefix: None,
        }
    }
}

/// A selection that names what does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.join("\n"))]
pub struct SelectionError(pub Vec<String>);

impl Selection {
    /// Selects everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Says what is on of a server.
    #[must_use]
    pub fn server(mut self, name: impl Into<String>, selection: ServerSelection) -> Self {
        self.0.insert(name.into(), selection);
        self
    }

    /// Turns a server off.
    #[must_use]
    pub fn without_server(mut self, name: impl Into<String>) -> Self {
        self.0.entry(name.into()).or_default().enabled = false;
        self
    }

    /// Turns a tool off.
    #[must_use]
    pub fn without(mut self, tool: ToolName) -> Self {
        let server = self.0.entry(tool.server.to_owned()).or_default();
        server.without.insert(tool.tool.to_owned());
        self
    }

    /// Turns off all tools of a server but those named in calls of this function.
    #[must_use]
    pub fn only(mut self, tool: ToolName) -> Self {
        let server = self.0.entry(tool.server.to_owned()).or_default();
        let only = server.only.get_or_insert_default();
        only.insert(tool.tool.to_owned());
        self
    }

    /// Returns what is on of a server.
    pub fn of(&self, server: &str) -> ServerSelection {
        self.0.get(server).cloned().unwrap_or_default()
    }

    /// Returns what stands before the names of a server's tools, where something must.
    pub(crate) fn prefix<'s>(&'s self, server: &'s str) -> &'s str {
        let prefix = self.0.get(server).and_then(|it| it.prefix.as_deref());
        prefix.unwrap_or(server)
    }

    /// Says whether a server is on.
    pub fn includes_server(&self, server: &str) -> bool {
        self.0.get(server).is_none_or(|it| it.enabled)
    }

    /// Says whether a tool is on.
    pub fn includes(&self, server: &str, tool: &str) -> bool {
        self.0.get(server).is_none_or(|it| {
            let named = it.only.as_ref().is_none_or(|only| only.contains(tool));
            it.enabled && named && !it.without.contains(tool)
        })
    }

    /// Checks that everything it names exists; says all that doesn't, with what may have been meant.
    pub fn check(&self, servers: &[Arc<Server>]) -> Result<(), SelectionError> {
        let mut unknown = Vec::new();
        for (name, selection) in &self.0 {
            let Some(server) = servers.iter().find(|it| it.name == *name) else {
                let known = servers.iter().map(|it| it.name.as_str());
                let hint = did_you_mean(&similar(name, known));
                unknown.push(format!("there is no server `{name}`{hint}"));
                continue;
            };
            for tool in selection.only.iter().flatten().chain(&selection.without) {
                let mut known = server.tools.iter().map(|it| it.name.as_str());
                if !known.clone().any(|it| it == tool) {
                    let hint = did_you_mean(&similar(tool, &mut known));
                    unknown.push(format!("the server `{name}` has no tool `{tool}`{hint}"));
                }
            }
        }
        if unknown.is_empty() {
            Ok(())
        } else {
            Err(SelectionError(unknown))
        }
    }
}

/// How far a caller reaches, whatever is on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The only servers it knows of; `None` means all.
    pub servers: Option<BTreeSet<String>>,
    /// Servers that it leaves out, also of those.
    pub without: BTreeSet<String>,
    /// Whether it may only use tools that say they change nothing.
    pub read_only: bool,
}

impl Caller {
    /// Says whether this caller knows of a server.
    pub fn reaches_server(&self, server: &str) -> bool {
        let Reach {
            servers, without, ..
        } = &self.reach;
        servers.as_ref().is_none_or(|it| it.contains(server)) && !without.contains(server)
    }

    /// Says whether this caller knows of a tool.
    pub fn reaches(&self, tool: &Tool) -> bool {
        self.reaches_server(&tool.server)
            && (!self.reach.read_only || tool.hints.read_only == Some(true))
    }
}
