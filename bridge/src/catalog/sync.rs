//! Brings what a registry offers into the store, page by page. A sync that is cut goes on where it was.

use super::{
    Client, Query, RegistryError,
    record::{Entry, Record, Status},
    way,
};
use crate::store::{CatalogServer, CatalogSync, DatabaseError, Store};
use serde_json::value::RawValue;
use std::{
    collections::HashSet,
    time::{Duration, UNIX_EPOCH},
};
use thiserror::Error;

/// How many pages are kept at once.
const PAGES: usize = 5;

/// How many pages a registry may have.
const MOST_PAGES: usize = 100_000;

/// How far before the last change that a sync has seen the next one begins: clocks differ, and what changes while pages
/// are read may not be on them.
const OVERLAP: Duration = Duration::from_mins(10);

/// How many reasons for entries that are left out are kept.
const MOST_REASONS: usize = 20;

/// What came of a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// How many entries were read.
    pub read: usize,
    /// How many servers are new, or were fetched again.
    pub kept: usize,
    /// How many servers are gone.
    pub removed: u64,
    /// How many entries can't be used.
    pub skipped: usize,
    /// Why, for the first of them.
    pub reasons: Vec<String>,
    /// Whether only changes were asked for.
    pub is_incremental: bool,
    /// Whether it went on where an earlier one was cut.
    pub is_resumed: bool,
}

/// Why a sync is cut. What came before is kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The registry gives no answer.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// It sends round in a circle.
    #[error(
        "the registry `{registry}` sends back to a page that it gave before, after {pages} pages"
    )]
    Circle {
        /// The registry.
        registry: String,
        /// After how many pages.
        pages: usize,
    },
    /// It has no end.
    #[error("the registry `{registry}` has more than {MOST_PAGES} pages")]
    Endless {
        /// The registry.
        registry: String,
    },
    /// What came can't be kept.
    #[error("can't keep what the registry `{registry}` offers")]
    Keep {
        /// The registry.
        registry: String,
        /// Why.
        source: DatabaseError,
    },
}

/// Fetches what has changed at a registry since the last sync, or everything. `progress` is told how far it has come.
pub async fn sync(
    client: &Client,
    store: &Store,
    is_full: bool,
    now: i64,
    mut progress: impl FnMut(&Synced),
) -> Result<Synced, SyncError> {
    let registry = client.registry().to_owned();
    let keep = |source| SyncError::Keep {
        registry: registry.clone(),
        source,
    };
    let last = store.catalog_sync(&registry).await.map_err(keep)?;
    let mut state = begun(client, last, is_full, now);
    let mut synced = Synced {
        is_incremental: state.since.is_some(),
        is_resumed: state.next_page.is_some(),
        ..Synced::default()
    };
    let mut seen = HashSet::new();
    let mut batch = Batch::default();
    let mut page = first_page(client, &mut state, &mut synced).await?;
    for pages in 1.. {
        let next = page.next.take();
        if let Some(cursor) = &next
            && !seen.insert(cursor.clone())
        {
            state.next_page = None;
            store
                .save_catalog(&state, batch.servers, &batch.gone)
                .await
                .map_err(keep)?;
            return Err(SyncError::Circle { registry, pages });
        }
        if pages > MOST_PAGES {
            return Err(SyncError::Endless { registry });
        }
        batch.take(&page.entries, &mut state, &mut synced);
        state.next_page.clone_from(&next);
        let Some(cursor) = next else {
            break;
        };
        // While one page is kept, the next one is on its way.
        let query = Query {
            cursor: Some(&cursor),
            since: state.since.as_deref(),
        };
        let fetched = if pages % PAGES == 0 {
            let Batch { servers, gone } = std::mem::take(&mut batch);
            let kept = store.save_catalog(&state, servers, &gone);
            let (kept, fetched) = tokio::join!(kept, client.page(query));
            kept.map_err(keep)?;
            fetched
        } else {
            client.page(query).await
        };
        progress(&synced);
        page = match fetched {
            Ok(page) => page,
            Err(error) => {
                store
                    .save_catalog(&state, batch.servers, &batch.gone)
                    .await
                    .map_err(keep)?;
                return Err(error.into());
            }
        };
    }
    synced.removed += finish(state, batch, store, now).await.map_err(keep)?;
    progress(&synced);
    Ok(synced)
}

/// Where a sync starts: where the last one was cut, else from the beginning.
fn begun(client: &Client, last: Option<CatalogSync>, is_full: bool, now: i64) -> CatalogSync {
    let last = last.unwrap_or_default();
    let is_same = last.url == client.url();
    let wants_the_same = !is_full || last.since.is_none();
    if is_same && last.next_page.is_some() && wants_the_same {
        return last;
    }
    CatalogSync {
        registry: client.registry().to_owned(),
        url: client.url().to_owned(),
        number: last.number + 1,
        started_at: now,
        since: last.synced_to.clone().filter(|_| is_same && !is_full),
        next_page: None,
        newest: None,
        synced_to: last.synced_to.filter(|_| is_same),
        synced_at: last.synced_at.filter(|_| is_same),
    }
}

/// Fetches the page where a sync starts. A registry that no longer knows where the last one was cut is asked from the
/// beginning.
async fn first_page(
    client: &Client,
    state: &mut CatalogSync,
    synced: &mut Synced,
) -> Result<super::Page, SyncError> {
    let cursor = state.next_page.clone();
    let query = Query {
        cursor: cursor.as_deref(),
        since: state.since.as_deref(),
    };
    match client.page(query).await {
        Err(RegistryError::Status { status, .. })
            if cursor.is_some() && matches!(status.as_u16(), 400 | 404 | 410 | 422) =>
        {
            state.next_page = None;
            synced.is_resumed = false;
            let query = Query {
                cursor: None,
                ..query
            };
            Ok(client.page(query).await?)
        }
        page => Ok(page?),
    }
}

async fn finish(
    state: CatalogSync,
    batch: Batch,
    store: &Store,
    now: i64,
) -> Result<u64, DatabaseError> {
    let started = rfc3339(state.started_at);
    let newest = state
        .newest
        .clone()
        .map_or(started.clone(), |it| it.min(started));
    let state = CatalogSync {
        next_page: None,
        synced_to: Some(earlier(&newest)),
        synced_at: Some(now),
        ..state
    };
    store
        .save_catalog(&state, batch.servers, &batch.gone)
        .await?;
    if state.since.is_some() {
        return Ok(0);
    }
    store.forget_unseen(&state).await
}

/// What is kept in one go.
#[derive(Default)]
struct Batch {
    servers: Vec<CatalogServer>,
    gone: Vec<String>,
}

impl Batch {
    fn take(&mut self, entries: &[Box<RawValue>], state: &mut CatalogSync, synced: &mut Synced) {
        for json in entries {
            synced.read += 1;
            match Entry::read(json) {
                Ok(entry) => self.take_one(entry, state, synced),
                Err(error) => {
                    synced.skipped += 1;
                    if synced.reasons.len() < MOST_REASONS {
                        synced.reasons.push(error.to_string());
                    }
                }
            }
        }
    }

    fn take_one(&mut self, entry: Entry, state: &mut CatalogSync, synced: &mut Synced) {
        let changed = entry.updated_at.as_deref().and_then(in_utc);
        state.newest = state.newest.take().max(changed);
        if entry.is_latest == Some(false) {
            return;
        }
        // In one batch, the last word on a name is the one that counts.
        let name = &entry.record.name;
        self.gone.retain(|it| it != name);
        if entry.status == Status::Deleted {
            self.servers.retain(|it| it.name != *name);
            self.gone.push(name.clone());
            synced.removed += u64::from(state.since.is_some());
        } else {
            synced.kept += 1;
            self.servers.push(listed(&state.registry, entry));
        }
    }
}

/// What the store keeps of an entry.
pub(super) fn listed(registry: &str, entry: Entry) -> CatalogServer {
    let Record {
        name,
        title,
        description,
        version,
        ..
    } = entry.record.clone();
    CatalogServer {
        registry: registry.to_owned(),
        name,
        version,
        title,
        description: super::text::line(&description, 300),
        status: entry.status.as_str().to_owned(),
        status_message: entry.status_message,
        kinds: way::kinds(&entry.record).join(" "),
        needs_key: way::needs_key(&entry.record),
        updated_at: entry.updated_at.unwrap_or_default(),
        record: entry.raw,
    }
}

/// Writes a time so that times sort as they follow each other; `None` if it is none.
fn in_utc(time: &str) -> Option<String> {
    let time = humantime::parse_rfc3339_weak(time.trim_end_matches("+00:00")).ok()?;
    Some(humantime::format_rfc3339_seconds(time).to_string())
}

fn rfc3339(milliseconds: i64) -> String {
    let since = Duration::from_millis(milliseconds.unsigned_abs());
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}

fn earlier(time: &str) -> String {
    let time = humantime::parse_rfc3339(time).unwrap_or(UNIX_EPOCH);
    let earlier = time.checked_sub(OVERLAP).filter(|it| *it >= UNIX_EPOCH);
    humantime::format_rfc3339_seconds(earlier.unwrap_or(UNIX_EPOCH)).to_string()
}
