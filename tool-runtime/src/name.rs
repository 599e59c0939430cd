//! Names of tools: the full name, the one that a list shows, and every spelling by which an engine may call.

mod spelling;

pub use spelling::{Shown, Spelling, TooLong};

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
/// A tool is listed by its bare name while no other server has it, else as `{server}_{tool}`. A listed name is one
/// that every engine takes: words of letters and digits with a single `_` or `-` between, not too long, not like an
/// engine's spelling of another. A name that is none of these is adapted, and a stable hash tells it from others. What
/// is listed never depends on the order of the set, and no two are listed alike, also where `-` and `_` are the same.
#[derive(Debug, Default)]
pub struct Names {
    servers: Vec<String>,
    listed: Vec<String>,
    full: Vec<String>,
    /// What is meant by a name as it is written.
    exact: HashMap<String, Vec<usize>>,
    /// What is meant by a listed name, folded.
    shown: HashMap<String, usize>,
    /// What could be meant by a tool's own name, folded,
    own: HashMap<String, Vec<usize>>,
    /// and by that or its listed name behind the name of its server.
    with_server: HashMap<String, Vec<usize>>,
}

/// A name that several tools or prompts could mean.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` could mean several: call {}", in_words(.candidates))]
pub struct Ambiguous {
    /// The name as it was called.
    pub name: String,
    /// What it could mean, by names that mean one each: full names, or listed ones where two full names are alike.
    pub candidates: Vec<String>,
}

impl Names {
    /// Names a set; each entry is a server and a name, the pairs unique.
    pub fn new<'n>(entries: impl IntoIterator<Item = (&'n str, &'n str)>) -> Self {
        let with_prefixes = entries
            .into_iter()
            .map(|(server, name)| (server, name, server));
        Self::with_prefixes(with_prefixes, false)
    }

    /// Names a set with what stands before a name instead of that of its server: before all, or where it is needed.
    pub(crate) fn with_prefixes<'n>(
        entries: impl IntoIterator<Item = (&'n str, &'n str, &'n str)>,
        before_all: bool,
    ) -> Self {
        let entries: Vec<(&str, &str, &str)> = entries.into_iter().collect();
        let prefixes: Vec<&str> = entries.iter().map(|it| it.2).collect();
        let entries: Vec<(&str, &str)> = entries.iter().map(|it| (it.0, it.1)).collect();
        let listed = list(&entries, &prefixes, before_all);
        let full: Vec<String> = entries.iter().map(|(s, t)| full_name(s, t)).collect();
        let shown: HashMap<String, usize> = listed.iter().map(|it| fold(it)).zip(0..).collect();
        let each = || entries.iter().copied().enumerate();
        let served_alone: HashSet<(String, String)> = each()
            .map(|(index, (server, _))| (fold(server), fold(&listed[index])))
            .collect();
        // A name is its tool's own, unless it is what some engine makes of another.
        let is_free = |index, tool: &str| {
            let is_another = shown.get(tool).is_some_and(|it| *it != index);
            let behind_mcp = tool.strip_prefix("mcp__").unwrap_or(tool);
            let behind_server = behind_mcp.split_once("__");
            let is_behind = behind_server
                .is_some_and(|(it, rest)| served_alone.contains(&(fold(it), fold(rest))));
            !is_another && !is_behind && without_namespace(tool).is_none()
        };
        let own = each().filter(|(index, (_, tool))| is_free(*index, tool));
        let mut exact = grouped(own.map(|(index, (_, tool))| (tool.to_owned(), index)));
        let full_names = each().filter(|(_, (server, _))| fold(server) != fold(NAMESPACE));
        exact.extend(grouped(
            full_names.map(|(index, _)| (full[index].clone(), index)),
        ));
        // A listed name is what the server itself told the client, so it wins.
        exact.extend(grouped(listed.iter().cloned().zip(0..)));
        Self {
            servers: entries.iter().map(|(it, _)| (*it).to_owned()).collect(),
            exact,
            shown,
            own: grouped(each().map(|(index, (_, tool))| (fold(tool), index))),
            with_server: grouped(each().flat_map(|(index, (server, tool))| {
                // A server that is served alone shows its listed names behind its own.
                let listed = Some(&*listed[index]).filter(|it| *it != tool);
                let named = [Some(tool), listed].into_iter().flatten();
                let prefix = Some(prefixes[index]).filter(|it| *it != server);
                let behind = [Some(server), prefix].into_iter().flatten();
                behind
                    .flat_map(|before| {
                        let named = named.clone();
                        named.map(move |it| (fold(&format!("{before}_{it}")), index))
                    })
                    .collect::<Vec<_>>()
            })),
            listed,
            full,
        }
    }

    /// Returns the name that a list shows for an entry.
    pub fn listed(&self, index: usize) -> &str {
        &self.listed[index]
    }

    /// Returns the entry that any engine's spelling means; `None` if it means none, an error if it means several.
    ///
    /// Known are the full name, the listed name, the bare name, and the last two behind the name of their server, each
    /// alone or behind the namespace in every engine's form (`mcp__clopen-mcp__x`, `clopen-mcp_x`, `clopen-mcp-x`, …).
    /// Letters count as written; what is no letter and no digit separates. What an engine makes of a listed name means
    /// that one, and nothing is ever guessed.
    pub fn resolve(&self, spelled: &str) -> Result<Option<usize>, Ambiguous> {
        self.resolve_among(spelled, |_| true)
    }

    /// Does the same for somebody who knows of these entries only.
    pub(crate) fn resolve_among(
        &self,
        spelled: &str,
        is_known: impl Fn(usize) -> bool,
    ) -> Result<Option<usize>, Ambiguous> {
        let bare = without_namespace(spelled);
        let mut exactly = [Some(spelled), bare].into_iter().flatten();
        if let Some(meant) = exactly.find_map(|it| self.exact.get(it)) {
            return self.only(spelled, meant.iter().copied().filter(|it| is_known(*it)));
        }
        let folded = [Some(spelled), bare].map(|it| it.map(fold).filter(|it| !it.is_empty()));
        let spellings = || folded.iter().flatten().map(String::as_str);
        // `mcp__` alone stands before the name of a server only.
        let behind_mcp = spellings().filter_map(|it| it.strip_prefix("mcp_"));
        let with_server = spellings()
            .chain(behind_mcp)
            .filter_map(|it| self.with_server.get(it));
        let mut served_alone = with_server
            .clone()
            .flatten()
            .copied()
            .filter(|it| is_known(*it) && self.is_behind_server(spelled, *it))
            .peekable();
        if served_alone.peek().is_some() {
            return self.only(spelled, served_alone);
        }
        if let Some(index) = spellings().find_map(|it| self.shown.get(it))
            && is_known(*index)
        {
            return Ok(Some(*index));
        }
        let own = spellings().filter_map(|it| self.own.get(it));
        let meant = own.chain(with_server).flatten().copied();
        self.only(spelled, meant.filter(|it| is_known(*it)))
    }

    /// Says whether an engine that puts `__` behind the name of a server spells the listed name of this entry so. Nothing
    /// that stands alone holds a `__`, so no other spelling looks like that.
    fn is_behind_server(&self, spelled: &str, index: usize) -> bool {
        let is_spelled = |server: &str, listed: &str| {
            let before = spelled.strip_suffix(listed);
            let before = before.and_then(|it| it.strip_suffix("__"));
            before.is_some_and(|it| it.strip_prefix("mcp__").unwrap_or(it) == server)
        };
        let (server, listed) = (&self.servers[index], &self.listed[index]);
        // Some engines have no other separator than `_`.
        let folded = |name: &str| name.replace('-', "_");
        fold(server) != fold(NAMESPACE)
            && (is_spelled(server, listed) || is_spelled(&folded(server), &folded(listed)))
    }

    /// Returns the one entry that is meant; `None` if none is, an error if several are.
    fn only(
        &self,
        spelled: &str,
        mut meant: impl Iterator<Item = usize>,
    ) -> Result<Option<usize>, Ambiguous> {
        let Some(first) = meant.next() else {
            return Ok(None);
        };
        let mut several: Vec<usize> = meant.filter(|it| *it != first).collect();
        if several.is_empty() {
            return Ok(Some(first));
        }
        several.push(first);
        several.sort_unstable();
        several.dedup();
        let unmistakable = several
            .into_iter()
            .map(|it| match self.exact.get(&self.full[it]) {
                Some(meant) if *meant == [it] => &self.full[it],
                _ => &self.listed[it],
            });
        let mut candidates: Vec<String> = unmistakable.cloned().collect();
        candidates.sort();
        Err(Ambiguous {
            name: spelled.to_owned(),
            candidates,
        })
    }

    /// Returns the listed names that look like one that means nothing.
    pub fn similar(&self, spelled: &str) -> Vec<String> {
        self.similar_among(spelled, |_| true)
    }

    /// Does the same for somebody who knows of these entries only.
    pub(crate) fn similar_among(
        &self,
        spelled: &str,
        is_known: impl Fn(usize) -> bool,
    ) -> Vec<String> {
        let listed = self.listed.iter().enumerate();
        let known = listed.filter(|(index, _)| is_known(*index));
        similar(spelled, known.map(|(_, it)| it.as_str()))
    }
}

/// What stands behind the namespace in a name, whatever separates the words.
fn without_namespace(name: &str) -> Option<&str> {
    let mut rest = without_word(name, "mcp").unwrap_or(name);
    for word in NAMESPACE.split('-') {
        rest = without_word(rest, word)?;
    }
    Some(rest)
}

fn without_word<'n>(name: &'n str, word: &str) -> Option<&'n str> {
    let after = name.strip_prefix(word)?;
    let rest = after.trim_start_matches(|it: char| !it.is_alphanumeric());
    (rest.len() < after.len()).then_some(rest)
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

fn list(entries: &[(&str, &str)], prefixes: &[&str], before_all: bool) -> Vec<String> {
    let bare: Vec<String> = entries.iter().map(|(_, tool)| adapted(tool)).collect();
    let mut servers: HashMap<String, HashSet<&str>> = HashMap::new();
    for ((server, _), bare) in entries.iter().zip(&bare) {
        servers.entry(fold(bare)).or_default().insert(server);
    }
    let candidates: Vec<String> = entries
        .iter()
        .zip(prefixes)
        .zip(bare)
        .map(|(((_, tool), prefix), bare)| {
            if !before_all && servers[&fold(&bare)].len() == 1 {
                bare
            } else {
                adapted(&format!("{prefix}_{tool}"))
            }
        })
        .collect();
    let uses = count(candidates.iter().cloned());
    let alike = count(candidates.iter().map(|it| fold(it)));
    let own: HashSet<(&str, String)> = entries.iter().map(|(s, t)| (*s, fold(t))).collect();
    let stays = |(server, tool): (&str, &str), name: &String| {
        let folded = fold(name);
        // Of those that look alike to some engine, the one that looks so to all keeps its name.
        let is_alone = alike[&folded] == 1 || (folded == *name && uses[name] == 1);
        // Behind the name of the server, it would be the full name of another tool.
        is_alone && (name == tool || !own.contains(&(server, folded)))
    };
    let staying = entries.iter().zip(&candidates);
    let staying = staying.filter(|(entry, name)| stays(**entry, name));
    let mut taken: HashSet<String> = staying.map(|(_, it)| fold(it)).collect();
    entries
        .iter()
        .zip(&candidates)
        .map(|((server, tool), candidate)| {
            if stays((server, tool), candidate) {
                return candidate.clone();
            }
            let mut name = with_hash(candidate, &full_name(server, tool));
            // Two hashes of eight digits meet once in four thousand million pairs; even then no tool may hide another.
            while !taken.insert(fold(&name)) {
                name = with_hash(candidate, &name);
            }
            name
        })
        .collect()
}

fn count(names: impl Iterator<Item = String>) -> HashMap<String, usize> {
    let mut uses = HashMap::new();
    for name in names {
        *uses.entry(name).or_default() += 1;
    }
    uses
}

fn grouped(names: impl Iterator<Item = (String, usize)>) -> HashMap<String, Vec<usize>> {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (name, index) in names {
        groups.entry(name).or_default().push(index);
    }
    groups
}

/// A name that every engine takes as it is; one that had to change for that carries a hash of the original, so that it
/// stays the same and meets no other.
fn adapted(name: &str) -> String {
    let tidy = tidy(name);
    let mut rest = tidy.as_str();
    // What looks like an engine's spelling would be taken for another's.
    while let Some(behind) = without_namespace(rest) {
        rest = behind;
    }
    if rest == name && name.len() <= LONGEST_TOOL_NAME {
        tidy
    } else {
        with_hash(rest, name)
    }
}

/// Joins the ASCII words of a name: with a `-` where a single one stands between them, else with a `_`.
fn tidy(name: &str) -> String {
    let mut tidy = String::with_capacity(name.len());
    let mut between = None;
    for character in name.chars() {
        if character.is_ascii_alphanumeric() {
            let separator = between.take().filter(|_| !tidy.is_empty());
            tidy.extend(separator);
            tidy.push(character);
        } else {
            let is_single = between.is_none() && character == '-';
            between = Some(if is_single { '-' } else { '_' });
        }
    }
    tidy
}

/// Puts a hash of `of` behind a name, which is cut so that both fit.
fn with_hash(name: &str, of: &str) -> String {
    let hash = format!("{:08x}", fnv1a(of.as_bytes()));
    let room = LONGEST_TOOL_NAME - hash.len() - 1;
    let kept: String = name.chars().take(room).collect();
    match kept.trim_end_matches(['_', '-']) {
        "" => hash,
        kept => format!("{kept}_{hash}"),
    }
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
