//! A server that is another one in each workspace: one that stands for all, and those of the workspaces that were there.

use super::{Upstream, locked};
use crate::{store::ExternalServer, upstream::entry::Entry};
use std::sync::{Arc, PoisonError, RwLock};

/// How many workspaces of a server are known at once.
const MOST_WORKSPACES: usize = 1_000;

impl Upstream {
    /// Whether it is another server in each workspace.
    pub(in crate::upstream) fn differs_by_workspace(&self) -> bool {
        self.entry.as_ref().is_ok_and(Entry::differs_by_workspace)
    }

    /// Whether it is one of many, which the store knows nothing of.
    pub(in crate::upstream) fn is_of_workspace(&self) -> bool {
        self.workspace.is_some()
    }

    /// Returns the server of a workspace, if it is known.
    pub(in crate::upstream) fn known_in(&self, workspace: &str) -> Option<Arc<Self>> {
        locked(&self.workspaces).get(workspace).cloned()
    }

    /// Returns the server of a workspace, and whether it is new.
    pub(in crate::upstream) fn of_workspace(&self, workspace: &str) -> (Arc<Self>, bool) {
        let mut workspaces = locked(&self.workspaces);
        if let Some(known) = workspaces.get(workspace) {
            return (known.clone(), false);
        }
        let stored = ExternalServer {
            listed: None,
            listed_at: None,
            ..self.stored.clone()
        };
        let entry = self.entry.as_ref().map_err(Clone::clone);
        let entry = entry.and_then(|it| it.in_workspace(workspace).map_err(|it| it.to_string()));
        let mut upstream = Self::with(stored, entry);
        upstream.workspace = Some(workspace.to_owned());
        let approved = self.approved.read().unwrap_or_else(PoisonError::into_inner);
        upstream.approved = RwLock::new(approved.clone());
        let upstream = Arc::new(upstream);
        while workspaces.len() >= MOST_WORKSPACES
            && let Some((_, gone)) = workspaces.pop_first()
        {
            gone.end();
        }
        workspaces.insert(workspace.to_owned(), upstream.clone());
        (upstream, true)
    }

    pub(in crate::upstream) fn of_workspaces(&self) -> Vec<Arc<Self>> {
        locked(&self.workspaces).values().cloned().collect()
    }
}
