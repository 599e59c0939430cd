//! Names of tools: the full name, the one that a list shows, and every spelling by which an engine may call.

use crate::error::list as in_words;
use foldhash::{HashMap, HashMapExt as _};
use serde::{Serialize, Serializer};
use std::{collections::HashSet, fmt};
use thiserror::Error;

/// The name under which every engine knows the bridge.
pub const NAMESPACE: &str = "clopen-mcp";

/// The longest name of a tool that every engine takes: Qwen Code allows 63 characters with its prefix
/// `mcp__clopen-mcp__`.
pub const LONGEST_TOOL_NAME: usize = 46;

/// The full name of a tool, as a constant that the compiler checks: `weather::tools::GET_TEMPERATURE`.
///
/// It prints as `mcp__{server}__{tool}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName {
    /// Name of the server.
    pub server: &'static str,
    /// Name of the tool in its server.
    pub tool: &'static str,
}

impl ToolName {
    /// Joins the two parts.
    pub const fn new(server: &'static str, tool: &'static str) -> Self {
        Self { server, tool }
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&full_name(self.server, self.tool))
    }
}

impl Serialize for ToolName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Writes a full name: `mcp__{server}__{tool}`.
pub fn full_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// Reads a full name: server and tool. The names of our own servers hold no `__`, so the first one ends the server.
pub fn parse_full_name(name: &str) -> Option<(&str, &str)> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    (!server.is_empty() && !tool.is_empty()).then_some((server, tool))
}

/// The names of a set of tools (or prompts): what a list shows, and which spelling means which.
///
/// A tool is listed by its bare name while no other has it, else as `{server}_{tool}`; a name with characters or a
/// length that some engine refuses is adapted, with a stable hash. What is listed never depends on the order of the
/// set, and no two are listed alike.
#[derive(Debug, Default)]
pub struct Names {
    listed: Vec<String>,
    full: Vec<String>,
    exact: HashMap<String, usize>,
    folded: HashMap<String, Vec<usize>>,
}

/// A name that several tools or prompts could mean.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` could mean several: call {}", in_words(.candidates))]
pub struct Ambiguous {
    /// The name as it was called.
    pub name: String,
    /// The full names that it could mean.
    pub candidates: Vec<String>,
}

impl Names {
    /// Names a set; each entry is a server and a name, the pairs unique.
    pub fn new<'n>(entries: impl IntoIterator<Item = (&'n str, &'n str)>) -> Self {
        let entries: Vec<(&str, &str)> = entries.into_iter().collect();
        let full: Vec<String> = entries.iter().map(|(s, t)| full_name(s, t)).collect();
        let listed = list(&entries);
        let mut names = Self::default();
        // What a server calls its own tool, unless that looks like an engine's spelling of another.
        let own = entries
            .iter()
            .map(|(_, tool)| if is_namespaced(tool) { "" } else { tool });
        names.know_exactly(own);
        names.know_exactly(full.iter().map(String::as_str));
        for (index, (server, tool)) in entries.iter().enumerate() {
            let spellings = [
                fold(tool),
                fold(&format!("{server}_{tool}")),
                fold(&listed[index]),
            ];
            for spelling in spellings.into_iter().filter(|it| !it.is_empty()) {
                let meant = names.folded.entry(spelling).or_default();
                if !meant.contains(&index) {
                    meant.push(index);
                }
            }
        }
        // A listed name is what the server itself told the client, so it wins.
        for (index, name) in listed.iter().enumerate() {
            names.exact.insert(name.clone(), index);
        }
        Self {
            listed,
            full,
            ..names
        }
    }

    /// Makes each of these names mean its entry, but one that stands for several.
    fn know_exactly<'n>(&mut self, names: impl Iterator<Item = &'n str> + Clone) {
        let uses = count(names.clone());
        for (index, name) in names.enumerate() {
            if uses[name] == 1 {
                self.exact.insert(name.to_owned(), index);
            } else {
                self.exact.remove(name);
            }
        }
    }

    /// Returns the name that a list shows for an entry.
    pub fn listed(&self, index: usize) -> &str {
        &self.listed[index]
    }

    /// Returns the entry that any engine's spelling means; `None` if it means none, an error if it means several.
    ///
    /// Known are the full name, the listed name, the bare name and `{server}{separator}{name}`, each alone or behind
    /// the namespace in every engine's form (`mcp__clopen-mcp__x`, `clopen-mcp_x`, `clopen-mcp-x`, …). Letters count
    /// as written; what is no letter and no digit separates. Nothing is ever guessed.
    pub fn resolve(&self, spelled: &str) -> Result<Option<usize>, Ambiguous> {
        self.resolve_among(spelled, |_| true)
    }

    /// Does the same for somebody who knows of these entries only.
    pub(crate) fn resolve_among(
        &self,
        spelled: &str,
        is_known: impl Fn(usize) -> bool,
    ) -> Result<Option<usize>, Ambiguous> {
        if let Some(index) = self.exact.get(spelled) {
            return Ok(Some(*index).filter(|it| is_known(*it)));
        }
        let folded = fold(spelled);
        let mut meant = Vec::new();
        for rest in without_prefixes(&folded) {
            for index in self.folded.get(rest).into_iter().flatten() {
                if is_known(*index) && !meant.contains(index) {
                    meant.push(*index);
                }
            }
        }
        match meant.as_slice() {
            [] => Ok(None),
            [index] => Ok(Some(*index)),
            several => {
                let mut candidates: Vec<String> =
                    several.iter().map(|it| self.full[*it].clone()).collect();
                candidates.sort();
                Err(Ambiguous {
                    name: spelled.to_owned(),
                    candidates,
                })
            }
        }
    }

    /// Returns the listed names that look like one that means nothing.
    pub fn similar(&self, spelled: &str) -> Vec<String> {
        similar(spelled, self.listed.iter().map(String::as_str))
    }
}

/// The folded name with and without each prefix that an engine may have put before it.
fn without_prefixes(folded: &str) -> impl Iterator<Item = &str> {
    let prefixes = ["", "mcp_clopen_mcp_", "clopen_mcp_", "mcp_"];
    prefixes
        .into_iter()
        .filter_map(|it| folded.strip_prefix(it))
}

/// Whether a name looks like an engine's spelling of some tool.
fn is_namespaced(name: &str) -> bool {
    let folded = fold(name);
    ["mcp_clopen_mcp", "clopen_mcp"]
        .iter()
        .any(|it| folded.starts_with(it))
}

/// Spells a name so that all engines' replacements of separators make no difference.
fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_alphanumeric() {
            folded.push(character);
        } else if !folded.is_empty() && !folded.ends_with('_') {
            folded.push('_');
        }
    }
    folded.truncate(folded.trim_end_matches('_').len());
    folded
}

fn list(entries: &[(&str, &str)]) -> Vec<String> {
    let bare: Vec<String> = entries.iter().map(|(_, tool)| adapted(tool)).collect();
    let uses = count(bare.iter().map(String::as_str));
    let candidates: Vec<String> = entries
        .iter()
        .zip(&bare)
        .map(|((server, tool), bare)| {
            if uses[bare.as_str()] == 1 {
                bare.clone()
            } else {
                adapted(&format!("{server}_{tool}"))
            }
        })
        .collect();
    let full: HashSet<String> = entries.iter().map(|(s, t)| full_name(s, t)).collect();
    let uses = count(candidates.iter().map(String::as_str));
    let is_free = |it: &str| uses[it] == 1 && !full.contains(it);
    let mut taken: HashSet<String> = candidates
        .iter()
        .filter(|it| is_free(it))
        .cloned()
        .collect();
    entries
        .iter()
        .zip(&candidates)
        .map(|((server, tool), candidate)| {
            if is_free(candidate) {
                return candidate.clone();
            }
            let full = full_name(server, tool);
            let mut name = with_hash(candidate, &full);
            // Two hashes of eight digits meet once in four thousand million pairs; even then no tool may hide another.
            while !taken.insert(name.clone()) {
                name = with_hash(candidate, &name);
            }
            name
        })
        .collect()
}

fn count<'n>(names: impl Iterator<Item = &'n str>) -> HashMap<&'n str, usize> {
    let mut uses = HashMap::new();
    for name in names {
        *uses.entry(name).or_default() += 1;
    }
    uses
}

/// A name of at most [`LONGEST_TOOL_NAME`] characters out of `[A-Za-z0-9_-]`; one that had to change, that has nothing but
/// separators, or that could be taken for an engine's spelling of another, carries a hash of the original, so that it stays the same and meets no other.
fn adapted(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|it| match it {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '-' => it,
            _ => '_',
        })
        .collect();
    let is_clear = !fold(name).is_empty() && !is_namespaced(name);
    if clean == name && name.len() <= LONGEST_TOOL_NAME && is_clear {
        clean
    } else {
        with_hash(&clean, name)
    }
}

/// Puts a hash of `of` behind a name, which is cut so that both fit.
fn with_hash(name: &str, of: &str) -> String {
    let hash = format!("_{:08x}", fnv1a(of.as_bytes()));
    let room = LONGEST_TOOL_NAME - hash.len();
    let kept: String = name.chars().take(room).collect();
    format!("{}{hash}", kept.trim_end_matches('_'))
}

/// FNV-1a, 32 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>): the same in every version and on every machine.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

/// Returns the names that look like a given one, the likest first; at most three.
pub(crate) fn similar<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Vec<String> {
    const LIKE: f64 = 0.8;
    let folded = fold(name).to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .map(|it| (strsim::jaro_winkler(&folded, &fold(it).to_lowercase()), it))
        .filter(|(score, _)| *score >= LIKE)
        .collect();
    scored.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.cmp(b)));
    scored
        .into_iter()
        .take(3)
        .map(|(_, it)| it.to_owned())
        .collect()
}
