//! Finds servers by words: all of them stand in memory, with the words of each.
//!
//! Words stand in order, so that the beginning of a word finds it too. Each search looks at all servers, which takes less
//! than a database takes to find its way.

use super::{
    known::{Note, SignIn, WELL_KNOWN, known},
    sync::listed,
};
use crate::store::CatalogServer;
use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
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

/// All servers that can be found, by name.
#[derive(Debug, Default)]
pub struct Index {
    servers: Vec<Listed>,
    /// All words in order, and where the places of each begin.
    words: Vec<(Box<str>, usize)>,
    /// The places of all words, one after another, so that words that begin alike have theirs in one piece.
    places: Vec<Place>,
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
pub struct Listed {
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
        let notes: HashMap<&str, &Note> = known()
            .iter()
            .map(|(it, note)| (&*it.record.name, note))
            .collect();
        let there: HashSet<&str> = servers.iter().map(|it| &*it.name).collect();
        let missing = known().iter().map(|it| &it.0);
        let missing: Vec<CatalogServer> = missing
            .filter(|it| !there.contains(&*it.record.name))
            .map(|it| listed(WELL_KNOWN, it.clone()))
            .collect();
        let mut all: Vec<CatalogServer> = servers.into_iter().chain(missing).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        let mut index = Self::default();
        let mut words = HashMap::new();
        for server in all {
            let note = notes.get(&*server.name).copied();
            index.add(server, note, &mut words);
        }
        let mut words: Vec<(Box<str>, Vec<Place>)> = words.into_iter().collect();
        words.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (word, places) in words {
            index.words.push((word, index.places.len()));
            index.places.extend(places);
        }
        index
    }

    fn add(
        &mut self,
        mut server: CatalogServer,
        note: Option<&Note>,
        all: &mut HashMap<Box<str>, Vec<Place>>,
    ) {
        let id = u32::try_from(self.servers.len()).expect("there are fewer servers than that");
        let (space, name) = server.name.split_once('/').unwrap_or(("", &server.name));
        let called = [&*server.name, name, &*server.title].map(|it| words_of(it).collect());
        for called in BTreeSet::<String>::from(called) {
            self.called.entry(called.into()).or_default().push(id);
        }
        let mut words: HashMap<String, u16> = HashMap::new();
        let mut take = |text: &str, weight: u16| {
            for word in words_of(text) {
                let known = words.entry(word).or_default();
                *known = weight.max(*known);
            }
        };
        take(name, IN_NAME);
        take(&server.title, IN_NAME);
        take(space, IN_SPACE);
        take(&server.description, IN_DESCRIPTION);
        if let Some(note) = note {
            take(&note.service, IN_NAME);
            note.aliases.iter().for_each(|it| take(it, IN_NAME));
            server.needs_key |= note.auth != SignIn::None;
        }
        for (word, weight) in words {
            let place = Place { server: id, weight };
            match all.get_mut(&*word) {
                Some(places) => places.push(place),
                None => drop(all.insert(word.into(), vec![place])),
            }
        }
        server.record = String::new();
        self.servers.push(Listed {
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
    pub fn search(&self, query: &str, filter: &Filter, limit: usize) -> Vec<&Listed> {
        let words: Vec<String> = words_of(query).take(MOST_WORDS).collect();
        let scores = self.scores(&words);
        let most = scores.iter().map(|it| it.words).max().unwrap_or(0);
        if most == 0 && !words.is_empty() {
            return Vec::new();
        }
        let fitting = scores.iter().zip(&self.servers).enumerate();
        let mut found: Vec<_> = fitting
            .filter(|(_, (score, it))| score.words == most && filter.takes(&it.server))
            .map(|(place, (score, it))| {
                let is_kept_up = it.server.status != "deprecated";
                // Servers stand by name, so their places decide between those that fit as well.
                let rank = (score.is_called, is_kept_up, it.is_known, score.weight);
                (Reverse(rank), place)
            })
            .collect();
        // Only the first few need to be in order.
        if found.len() > limit && limit > 0 {
            found.select_nth_unstable(limit - 1);
        }
        found.truncate(limit);
        found.sort_unstable();
        let found = found.into_iter();
        found.map(|(_, place)| &self.servers[place]).collect()
    }

    /// The places of a word, and those of the words that begin with it.
    fn places(&self, word: &str) -> (&[Place], &[Place]) {
        let first = self.words.partition_point(|it| &*it.0 < word);
        let alike = self.words[first..].partition_point(|it| it.0.starts_with(word));
        let is_whole = self.words.get(first).is_some_and(|it| &*it.0 == word);
        let begin = |word: usize| self.words.get(word).map_or(self.places.len(), |it| it.1);
        let whole = first + usize::from(is_whole);
        (
            &self.places[begin(first)..begin(whole)],
            &self.places[begin(whole)..begin(first + alike)],
        )
    }

    fn scores(&self, words: &[String]) -> Vec<Score> {
        let mut scores = vec![Score::default(); self.servers.len()];
        let mut best = vec![0_u16; self.servers.len()];
        for word in words {
            best.fill(0);
            let (whole, alike) = self.places(word);
            for (places, times) in [(whole, WHOLE), (alike, 1)] {
                for place in places {
                    let best = &mut best[index(place.server)];
                    *best = (place.weight * times).max(*best);
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
