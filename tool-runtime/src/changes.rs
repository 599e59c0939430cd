//! News for those who watch: a list or a resource is no longer what it was.

use tokio::sync::broadcast;

/// How much news may wait for one who watches; whoever is slower takes everything as changed.
const WAITING: usize = 256;

/// Tells those who watch what has changed. Clones tell the same ones; the default tells nobody.
#[derive(Clone, Debug, Default)]
pub struct Changes(Option<broadcast::Sender<Change>>);

/// Something that is no longer what it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// A resource, by its URI.
    Resource(String),
}

impl Changes {
    /// Makes one that can be watched.
    pub(crate) fn watched() -> Self {
        Self(Some(broadcast::Sender::new(WAITING)))
    }

    /// Says that something has changed.
    pub fn tell(&self, change: Change) {
        if let Some(watchers) = &self.0 {
            // Without anybody who watches, nobody misses it.
            let _ = watchers.send(change);
        }
    }

    /// Says that a resource has changed.
    pub fn resource(&self, uri: impl Into<String>) {
        self.tell(Change::Resource(uri.into()));
    }

    /// Hears of everything from now on.
    pub fn watch(&self) -> broadcast::Receiver<Change> {
        match &self.0 {
            Some(watchers) => watchers.subscribe(),
            None => broadcast::channel(1).1,
        }
    }
}
