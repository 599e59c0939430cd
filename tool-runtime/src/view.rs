//! One immutable picture of what can be called: servers, names and selection, put together when a setting changes.

use crate::{
    context::Caller,
    error::CallError,
    name::{Ambiguous, Names, full_name},
    provider::{Prompt, Provider, Resource, Server, Tool, Unavailable},
    selection::{Selection, ServerSelection},
};
use serde::Serialize;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, OnceLock},
};

/// What can be called, and by which names. Lists have one order: servers by name, tools in source order.
#[derive(Debug, Default)]
pub struct View {
    selection: Selection,
    servers: Vec<(usize, Arc<Server>)>,
    tools: Vec<Offered<Tool>>,
    resources: Vec<Offered<Resource>>,
    prompts: Vec<Offered<Prompt>>,
    /// The names of all.
    names: Naming,
    /// The same, each with its server before it. Few want them.
    prefixed: OnceLock<Naming>,
    /// Those of each server, for who knows of no other: they need not be told from those of others.
    alone: HashMap<String, Naming>,
    notes: Vec<String>,
    /// Whether other servers are offered in some workspaces.
    pub(crate) differs_by_workspace: bool,
}

/// The names of a view's tools and prompts, or of a server's.
#[derive(Debug, Default)]
struct Naming {
    tools: Named,
    prompts: Named,
}

/// A run of the items of a view, and their names.
#[derive(Debug, Default)]
struct Named {
    start: usize,
    names: Names,
}

impl Named {
    fn of<'v, T>(
        offered: &'v [Offered<T>],
        start: usize,
        name: fn(&T) -> (&str, &str),
        selection: &'v Selection,
        prefixed: bool,
    ) -> Self {
        let entries = offered[start..].iter().map(|it| {
            let (server, name) = name(&it.item);
            (server, name, selection.prefix(server))
        });
        Self {
            start,
            names: Names::with_prefixes(entries, prefixed),
        }
    }

    fn listed(&self, index: usize) -> &str {
        self.names.listed(index - self.start)
    }

    fn resolve_among(
        &self,
        spelled: &str,
        is_known: impl Fn(usize) -> bool,
    ) -> Result<Option<usize>, Ambiguous> {
        let known = |it: usize| is_known(it + self.start);
        let index = self.names.resolve_among(spelled, known)?;
        Ok(index.map(|it| it + self.start))
    }
}

/// Something that a provider offers.
#[derive(Debug)]
struct Offered<T> {
    provider: usize,
    item: Arc<T>,
    /// Whether the server runs and the item is selected.
    on: bool,
}

/// The tool that a name means.
#[derive(Debug)]
pub(crate) struct Found<'v> {
    pub(crate) provider: usize,
    pub(crate) tool: &'v Arc<Tool>,
    /// Whether it runs and is on.
    pub(crate) callable: Result<(), CallError>,
}

/// A prompt with its provider, or the names of those that look like it.
type FoundPrompt<'v> = Result<(usize, &'v Arc<Prompt>), Vec<String>>;

/// A tool under the name that a list shows.
#[derive(Debug)]
pub struct Listed<'v, T> {
    /// The name in the list.
    pub name: &'v str,
    /// What it names.
    pub item: &'v T,
}

impl<T> Clone for Listed<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Listed<'_, T> {}

/// Figures about a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// How many servers there are.
    pub servers: usize,
    /// How many of them are on and available.
    pub enabled_servers: usize,
    /// How many tools there are.
    pub tools: usize,
    /// How many of them can be called.
    pub enabled_tools: usize,
    /// Full names of those that can be called.
    pub names: Vec<String>,
}

impl View {
    /// Puts together what providers offer and what is selected of it.
    pub fn new(providers: &[Arc<dyn Provider>], selection: Selection) -> Self {
        Self::of(providers, |it| it.servers(), selection)
    }

    /// Puts together what providers offer in a workspace.
    pub(crate) fn of_workspace(
        providers: &[Arc<dyn Provider>],
        workspace: &str,
        selection: Selection,
    ) -> Self {
        Self::of(providers, |it| it.servers_in(workspace), selection)
    }

    fn of(
        providers: &[Arc<dyn Provider>],
        servers: impl Fn(&dyn Provider) -> Vec<Arc<Server>>,
        selection: Selection,
    ) -> Self {
        let mut offered = Vec::new();
        for (index, provider) in providers.iter().enumerate() {
            offered.extend(servers(&**provider).into_iter().map(|it| (index, it)));
        }
        let mut servers: Vec<(usize, Arc<Server>)> = offered;
        servers.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
        let mut view = Self {
            selection,
            differs_by_workspace: providers.iter().any(|it| it.differs_by_workspace()),
            ..Self::default()
        };
        let mut seen = HashSet::new();
        for (provider, server) in servers {
            if seen.insert(server.name.clone()) {
                let (tools, prompts) = (view.tools.len(), view.prompts.len());
                view.offer(provider, &server);
                let alone = view.naming(tools, prompts, false);
                view.alone.insert(server.name.clone(), alone);
                view.servers.push((provider, server));
            } else {
                let name = &server.name;
                view.notes
                    .push(format!("a second server `{name}` was left out"));
            }
        }
        view.names = view.naming(0, 0, false);
        view
    }

    /// Names the tools and prompts from these on.
    fn naming(&self, tools: usize, prompts: usize, prefixed: bool) -> Naming {
        Naming {
            tools: Named::of(&self.tools, tools, of_tool, &self.selection, prefixed),
            prompts: Named::of(&self.prompts, prompts, of_prompt, &self.selection, prefixed),
        }
    }

    /// Returns the names by which a caller is told of tools and prompts.
    fn names_for(&self, caller: &Caller) -> &Naming {
        if let Some(servers) = &caller.reach.servers
            && servers.len() == 1
            && let Some(alone) = servers.first().and_then(|it| self.alone.get(it))
        {
            return alone;
        }
        if caller.prefixed {
            return self.prefixed.get_or_init(|| self.naming(0, 0, true));
        }
        &self.names
    }

    fn offer(&mut self, provider: usize, server: &Server) {
        let Self {
            selection, notes, ..
        } = self;
        let of = &server.name;
        let running = server.unavailable.is_none() && selection.includes_server(of);
        let tools = distinct(&server.tools, "tool", ("name", |it| &it.name), of, notes);
        let resources = &server.resources;
        let resources = distinct(resources, "resource", ("URI", |it| &it.uri), of, notes);
        let prompts = &server.prompts;
        let prompts = distinct(prompts, "prompt", ("name", |it| &it.name), of, notes);
        self.tools.extend(tools.into_iter().map(|item| Offered {
            provider,
            on: running && item.held.is_none() && selection.includes(of, &item.name),
            item,
        }));
        self.resources
            .extend(resources.into_iter().map(|item| Offered {
                provider,
                on: running,
                item,
            }));
        self.prompts.extend(prompts.into_iter().map(|item| Offered {
            provider,
            on: running,
            item,
        }));
    }

    /// Returns the tools that a caller can call, under their listed names.
    pub fn tools<'v>(&'v self, caller: &'v Caller) -> impl Iterator<Item = Listed<'v, Tool>> {
        let tools = self.tools.iter().enumerate();
        let reached = tools.filter(|(_, it)| it.on && caller.reaches(&it.item));
        let names = &self.names_for(caller).tools;
        reached.map(move |(index, it)| Listed {
            name: names.listed(index),
            item: &*it.item,
        })
    }

    /// Returns the resources that a caller can read.
    pub fn resources<'v>(&'v self, caller: &'v Caller) -> impl Iterator<Item = &'v Resource> {
        let reached = self
            .resources
            .iter()
            .filter(|it| it.on && caller.reaches_server(&it.item.server));
        reached.map(|it| &*it.item)
    }

    /// Returns the prompts that a caller can use, under their listed names.
    pub fn prompts<'v>(&'v self, caller: &'v Caller) -> impl Iterator<Item = Listed<'v, Prompt>> {
        let prompts = self.prompts.iter().enumerate();
        let reached = prompts.filter(|(_, it)| it.on && caller.reaches_server(&it.item.server));
        let names = &self.names_for(caller).prompts;
        reached.map(move |(index, it)| Listed {
            name: names.listed(index),
            item: &*it.item,
        })
    }

    /// Returns all servers, also those that are off or unavailable, by name.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().map(|(_, it)| &**it)
    }

    /// Returns the servers that are on and available, by name.
    pub fn enabled_servers(&self) -> impl Iterator<Item = &Server> {
        self.servers()
            .filter(|it| it.unavailable.is_none() && self.selection.includes_server(&it.name))
    }

    /// Returns the servers that a caller would have if they could be called, and why they can't.
    pub fn missing_servers<'v>(
        &'v self,
        caller: &'v Caller,
    ) -> impl Iterator<Item = (&'v Server, &'v Unavailable)> {
        let selected = self
            .servers()
            .filter(|it| self.selection.includes_server(&it.name));
        let reached = selected.filter(|it| caller.reaches_server(&it.name));
        reached.filter_map(|it| Some((it, it.unavailable.as_ref()?)))
    }

    /// Returns a server and what is selected of it.
    pub fn server(&self, name: &str) -> Option<(&Server, ServerSelection)> {
        let server = self.servers().find(|it| it.name == name)?;
        Some((server, self.selection.of(name)))
    }

    /// Returns the tool that any spelling means, on or off; an error if it means several.
    pub fn tool(&self, spelled: &str) -> Result<Option<&Tool>, Ambiguous> {
        let index = self.names.tools.names.resolve(spelled)?;
        Ok(index.map(|it| &*self.tools[it].item))
    }

    /// Returns the tool that a caller means by a spelling, if it is one that the caller may know of.
    pub fn reached_tool(&self, spelled: &str, caller: &Caller) -> Option<&Tool> {
        let index = self.resolve_for(spelled, caller).ok().flatten()?;
        Some(&*self.tools[index].item)
    }

    /// Returns the tool of a full name, to be kept beyond this view.
    pub fn shared_tool(&self, full_name: &str) -> Option<Arc<Tool>> {
        let index = self.names.tools.names.resolve(full_name).ok().flatten()?;
        Some(self.tools[index].item.clone())
    }

    /// Returns the full name (`mcp__{server}__{tool}`) that any spelling means.
    pub fn resolve(&self, spelled: &str) -> Result<Option<String>, Ambiguous> {
        let tool = self.tool(spelled)?;
        Ok(tool.map(|it| full_name(&it.server, &it.name)))
    }

    /// Says whether a spelling means one of these tools, or several.
    pub fn is_ours(&self, spelled: &str) -> bool {
        !matches!(self.names.tools.names.resolve(spelled), Ok(None))
    }

    /// Returns the tools of a server that are on, in source order.
    pub fn enabled_tools<'v>(&'v self, server: &'v str) -> impl Iterator<Item = &'v Tool> {
        let on = self
            .tools
            .iter()
            .filter(move |it| it.on && *it.item.server == *server);
        on.map(|it| &*it.item)
    }

    /// Returns the full names of all tools that are on: what an engine's allow-list wants.
    pub fn allowed_tools(&self) -> Vec<String> {
        let on = self.tools.iter().filter(|it| it.on);
        on.map(|it| full_name(&it.item.server, &it.item.name))
            .collect()
    }

    /// Returns figures.
    pub fn statistics(&self) -> Statistics {
        let names = self.allowed_tools();
        Statistics {
            servers: self.servers.len(),
            enabled_servers: self.enabled_servers().count(),
            tools: self.tools.len(),
            enabled_tools: names.len(),
            names,
        }
    }

    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns what was left out, and why.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the tool that a caller means, if it may know of it.
    pub(crate) fn find(&self, spelled: &str, caller: &Caller) -> Result<Found<'_>, CallError> {
        // What a caller may not know of looks like what does not exist.
        let found = self.resolve_for(spelled, caller)?;
        let Some(offered) = found.map(|it| &self.tools[it]) else {
            let name = spelled.to_owned();
            let similar = self.names.tools.names.similar_among(spelled, |it| {
                let it = &self.tools[it];
                it.on && caller.reaches(&it.item)
            });
            return Err(CallError::Unknown { name, similar });
        };
        let tool = &offered.item;
        Ok(Found {
            provider: offered.provider,
            tool,
            callable: if offered.on {
                Ok(())
            } else {
                Err(self.refusal(tool))
            },
        })
    }

    /// Returns the place of the tool that a caller means, if it may know of it.
    fn resolve_for(&self, spelled: &str, caller: &Caller) -> Result<Option<usize>, Ambiguous> {
        let is_known = |it: usize| caller.reaches(&self.tools[it].item);
        let names = self.names_for(caller);
        match names.tools.resolve_among(spelled, is_known)? {
            Some(found) => Ok(Some(found)),
            None => self.names.tools.resolve_among(spelled, is_known),
        }
    }

    /// Says why a tool that is not on can't be called.
    fn refusal(&self, tool: &Tool) -> CallError {
        let server = self.servers().find(|it| *it.name == *tool.server);
        if let Some(unavailable) = server.and_then(|it| it.unavailable.as_ref()) {
            return CallError::Unavailable {
                server: tool.server.to_string(),
                reason: unavailable.reason.clone(),
            };
        }
        let name = full_name(&tool.server, &tool.name);
        let is_selected = self.selection.includes(&tool.server, &tool.name);
        match tool.held.clone().filter(|_| is_selected) {
            Some(reason) => CallError::Held { name, reason },
            None => CallError::Disabled { name },
        }
    }

    /// Returns the resource that a caller means by a URI: of several whose templates fit, the one that says most about it.
    pub fn resource(&self, uri: &str, caller: &Caller) -> Option<&Resource> {
        let (_, resource, _) = self.find_resource(uri, caller)?;
        Some(resource)
    }

    pub(crate) fn find_resource(
        &self,
        uri: &str,
        caller: &Caller,
    ) -> Option<(usize, &Arc<Resource>, BTreeMap<String, String>)> {
        let reached = self
            .resources
            .iter()
            .filter(|it| it.on && caller.reaches_server(&it.item.server));
        let matching = reached.filter_map(|it| Some((it, it.item.matches(uri)?)));
        // The one that says most about the URI; the first of several that say as much.
        match matching.min_by_key(|(it, _)| Reverse(it.item.literals())) {
            Some((offered, variables)) => Some((offered.provider, &offered.item, variables)),
            None => self.unlisted(caller),
        }
    }

    /// Returns what stands for an address that is in no list, where only one server can be meant.
    fn unlisted(
        &self,
        caller: &Caller,
    ) -> Option<(usize, &Arc<Resource>, BTreeMap<String, String>)> {
        let running = self.servers.iter().filter(|(_, it)| {
            it.unavailable.is_none()
                && self.selection.includes_server(&it.name)
                && caller.reaches_server(&it.name)
        });
        let mut unlisted =
            running.filter_map(|(provider, it)| Some((*provider, it.unlisted.as_ref()?)));
        let (provider, resource) = unlisted.next()?;
        unlisted
            .next()
            .is_none()
            .then(|| (provider, resource, BTreeMap::new()))
    }

    /// Returns the resource of this very address or template.
    pub(crate) fn find_template(
        &self,
        template: &str,
        caller: &Caller,
    ) -> Option<(usize, &Arc<Resource>)> {
        let mut reached = self
            .resources
            .iter()
            .filter(|it| it.on && caller.reaches_server(&it.item.server));
        let offered = reached.find(|it| it.item.uri == template)?;
        Some((offered.provider, &offered.item))
    }

    /// Returns the prompt that a caller means.
    pub(crate) fn find_prompt(
        &self,
        spelled: &str,
        caller: &Caller,
    ) -> Result<FoundPrompt<'_>, Ambiguous> {
        let is_known = |it: usize| {
            let it = &self.prompts[it];
            it.on && caller.reaches_server(&it.item.server)
        };
        let names = self.names_for(caller);
        let mut found = names.prompts.resolve_among(spelled, is_known)?;
        if found.is_none() {
            found = self.names.prompts.resolve_among(spelled, is_known)?;
        }
        let found = found.map(|it| &self.prompts[it]);
        Ok(found.map(|it| (it.provider, &it.item)).ok_or_else(|| {
            let names = &self.names.prompts.names;
            names.similar_among(spelled, is_known)
        }))
    }
}

/// Returns the items that can be told apart by their key, and notes what is left out of them.
fn distinct<T>(
    items: &[Arc<T>],
    kind: &str,
    (key_word, key): (&str, fn(&T) -> &str),
    server: &str,
    notes: &mut Vec<String>,
) -> Vec<Arc<T>> {
    let mut seen = HashSet::new();
    let mut distinct = Vec::new();
    for item in items {
        let key = key(item);
        if key.trim().is_empty() {
            notes.push(format!(
                "a {kind} of `{server}` has no {key_word} and was left out"
            ));
        } else if seen.insert(key) {
            distinct.push(item.clone());
        } else {
            notes.push(format!(
                "a second {kind} `{key}` of `{server}` was left out"
            ));
        }
    }
    distinct
}

fn of_tool(tool: &Tool) -> (&str, &str) {
    (&tool.server, &tool.name)
}

fn of_prompt(prompt: &Prompt) -> (&str, &str) {
    (&prompt.server, &prompt.name)
}
