//! Finds servers by words: all of them stand in memory, with the words of each.
//!
//! A list of servers per word, and words in order, so that the beginning of a word finds it too. Searching 50,000 servers
//! takes less than a database takes to plan the same.

use super::{
    known::{self, SignIn, WELL_KNOWN},
    sync::listed,
};
use crate::store::CatalogServer;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Bound::{Included, Unbounded},
};

/// What a word counts that stands in the last part of a name or in the title, in the rest of the name, in the
/// description.
const IN_NAME: u16 = 8;
const IN_SPACE: u16 = 3;
const IN_DESCRIPTION: u16 = 1;

/// How much more a whole word counts than its beginning.
const WHOLE: u16 = 3;

/// How many words of a query count.
const MOST_WORDS: usize = 16;

/// All servers that can be found.
#[derive(Debug, Default)]
pub struct Index {
    servers: Vec<Found>,
    words: BTreeMap<Box<str>, Vec<Place>>,
    /// By name, last part of the name and title, without signs and in small letters.
    called: HashMap<Box<str>, Vec<u32>>,
}

/// Where a word stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    server: u32,
    weight: u16,
}

/// A server that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The server, without its record.
    pub server: CatalogServer,
    /// Whether it is one of the well-known.
    pub is_known: bool,
}

/// Which servers are wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those that are offered so: `npm`, `pypi`, `oci`, `remote`.
    pub kind: Option<String>,
    /// Only those that need no key.
    pub no_key: bool,
}

impl Filter {
    fn takes(&self, server: &CatalogServer) -> bool {
        let is_of_kind = |kind: &String| server.kinds.split(' ').any(|it| it == kind);
        self.kind.as_ref().is_none_or(is_of_kind) && !(self.no_key && server.needs_key)
    }
}

impl Index {
    /// Puts the servers of registries together with the well-known ones. Where both have a server, the registry's word on
    /// it counts, but how one signs in is known better.
    pub fn new(servers: Vec<CatalogServer>) -> Self {
        let mut index = Self::default();
        let mut there = HashSet::new();
        let notes: HashMap<&str, &known::Note> = known::known()
            .iter()
            .map(|(it, note)| (&*it.record.name, note))
            .collect();
        let mut words = HashMap::new();
        for mut server in servers {
            let note = notes.get(&*server.name).copied();
            if let Some(note) = note {
                server.needs_key |= note.auth != SignIn::None;
                there.insert(server.name.clone());
            }
            index.add(server, note, &mut words);
        }
        for (entry, note) in known::known() {
            if !there.contains(&entry.record.name) {
                let mut server = listed(WELL_KNOWN, entry.clone());
                server.needs_key |= note.auth != SignIn::None;
                server.record = String::new();
                index.add(server, Some(note), &mut words);
            }
        }
        index.words = words.into_iter().collect();
        index
    }

    fn add(
        &mut self,
        server: CatalogServer,
        note: Option<&known::Note>,
        all: &mut HashMap<Box<str>, Vec<Place>>,
    ) {
        let id = u32::try_from(self.servers.len()).expect("there are fewer servers than that");
        let (space, name) = server.name.split_once('/').unwrap_or(("", &server.name));
        let called = [&*server.name, name, &*server.title].map(|it| words_of(it).collect());
        for called in BTreeSet::<String>::from(called) {
            self.called.entry(called.into()).or_default().push(id);
        }
        let mut words: HashMap<String, u16> = HashMap::new();
        let mut note_words = |text: &str, weight: u16| {
            for word in words_of(text) {
                let known = words.entry(word).or_default();
                *known = weight.max(*known);
            }
        };
        note_words(name, IN_NAME);
        note_words(&server.title, IN_NAME);
        note_words(space, IN_SPACE);
        note_words(&server.description, IN_DESCRIPTION);
        if let Some(note) = note {
            note_words(&note.service, IN_NAME);
            note.aliases.iter().for_each(|it| note_words(it, IN_NAME));
        }
        for (word, weight) in words {
            let place = Place { server: id, weight };
            match all.get_mut(&*word) {
                Some(places) => places.push(place),
                None => drop(all.insert(word.into(), vec![place])),
            }
        }
        self.servers.push(Found {
            server,
            is_known: note.is_some(),
        });
    }

    /// Counts the servers.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Says whether there are none.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Finds the servers that have all words of a query, or as many of them as any has: first those that are called so,
    /// then the well-known, then by how well the words fit. Without words, the well-known come first.
    pub fn search(&self, query: &str, filter: &Filter, limit: usize) -> Vec<&Found> {
        let words: Vec<String> = words_of(query).take(MOST_WORDS).collect();
        let scores = self.scores(&words);
        let most = scores.iter().map(|it| it.words).max().unwrap_or(0);
        if most == 0 && !words.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<_> = scores
            .iter()
            .zip(&self.servers)
            .filter(|(score, it)| score.words == most && filter.takes(&it.server))
            .map(|(score, it)| {
                let rank = Reverse((
                    score.is_called,
                    it.server.status != "deprecated",
                    it.is_known,
                    score.weight,
                ));
                ((rank, &*it.server.name), it)
            })
            .collect();
        // Only the first few need to be in order.
        if found.len() > limit && limit > 0 {
            found.select_nth_unstable_by(limit - 1, |a, b| a.0.cmp(&b.0));
        }
        found.truncate(limit);
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found.into_iter().map(|(_, it)| it).collect()
    }

    fn scores(&self, words: &[String]) -> Vec<Score> {
        let mut scores = vec![Score::default(); self.servers.len()];
        let mut best = vec![0_u16; self.servers.len()];
        for word in words {
            best.fill(0);
            for (found, places) in self.words.range::<str, _>((Included(&**word), Unbounded)) {
                let is_whole = found.len() == word.len();
                if !found.starts_with(&**word) {
                    break;
                }
                for Place { server, weight } in places {
                    let weight = if is_whole { weight * WHOLE } else { *weight };
                    let best = &mut best[index(*server)];
                    *best = weight.max(*best);
                }
            }
            for (score, best) in scores.iter_mut().zip(&best) {
                score.words += u16::from(*best > 0);
                score.weight += best;
            }
        }
        for server in self.called.get(&*words.concat()).into_iter().flatten() {
            scores[index(*server)].is_called = true;
        }
        scores
    }
}

/// How well a server fits.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    words: u16,
    weight: u16,
    is_called: bool,
}

fn index(server: u32) -> usize {
    usize::try_from(server).expect("an index in memory")
}

/// Takes a text apart into words, in small letters.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    text.split(|it: char| !it.is_alphanumeric())
        .filter(|it| !it.is_empty())
        .map(str::to_lowercase)
}
