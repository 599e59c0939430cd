//! What bridges on one database tell each other: what has changed, and what they should look at now and not later.

use super::{Door, listen};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use tool_runtime::Change;

/// The pause before a connection is tried again.
const PAUSE: Duration = Duration::from_secs(5);

/// One piece of news.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum News {
    Tools,
    Prompts,
    Resources,
    Resource(String),
    /// A session was changed or ended.
    Session(String),
    /// A client has answered what a task asked.
    TaskAnswered(String),
    /// A client wants a task to end.
    TaskCancelled(String),
}

#[derive(Deserialize, Serialize)]
struct Letter {
    /// The bridge that tells it.
    from: String,
    news: News,
}

impl From<&Change> for News {
    fn from(change: &Change) -> Self {
        match change {
            Change::Tools => Self::Tools,
            Change::Prompts => Self::Prompts,
            Change::Resources => Self::Resources,
            Change::Resource(uri) => Self::Resource(uri.clone()),
        }
    }
}

impl Door {
    /// Tells the other bridges on the same store, without waiting for it.
    pub(super) fn tell_others(&self, news: News) {
        let Some(tasks) = self.tasks.as_ref().filter(|it| it.store.has_others()) else {
            return;
        };
        let letter = Letter {
            from: tasks.name().to_owned(),
            news,
        };
        let letter = serde_json::to_string(&letter).expect("texts can be written as JSON");
        let store = tasks.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.tell(&letter).await {
                tracing::warn!(%error, "can't tell other bridges what has changed");
            }
        });
    }

    async fn take(&self, letter: &str) {
        let Ok(Letter { from, news }) = serde_json::from_str(letter) else {
            return;
        };
        let Some(tasks) = self.tasks.as_ref().filter(|it| it.name() != from) else {
            return;
        };
        match news {
            News::Tools => listen::tell(self, &Change::Tools),
            News::Prompts => listen::tell(self, &Change::Prompts),
            News::Resources => listen::tell(self, &Change::Resources),
            News::Resource(uri) => listen::tell(self, &Change::Resource(uri)),
            News::Session(id) => {
                self.sessions.doubt(&id);
                self.check_sessions().await;
            }
            News::TaskAnswered(id) => tasks.wake(&id, false),
            News::TaskCancelled(id) => tasks.wake(&id, true),
        }
    }

    /// Sees what other bridges have done to sessions that are busy here.
    pub(super) async fn check_sessions(&self) {
        if let Err(error) = self.sessions.check_busy().await {
            tracing::error!(?error, "can't look after sessions");
        }
    }
}

/// Hears what other bridges tell, until the door closes.
pub(super) async fn hear(door: Arc<Door>) {
    let closed = door.closed.clone();
    let hearing = async {
        while let Some(tasks) = &door.tasks {
            let mut others = match tasks.store.hear().await {
                Ok(None) => return,
                Ok(Some(others)) => others,
                Err(error) => {
                    tracing::warn!(%error, "can't hear what other bridges tell");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            loop {
                match others.next().await {
                    Ok(Some(letter)) => door.take(&letter).await,
                    // What was missed may have been anything.
                    Ok(None) => listen::lists()
                        .iter()
                        .for_each(|it| listen::tell(&door, it)),
                    Err(error) => {
                        tracing::warn!(%error, "can't hear what other bridges tell");
                        tokio::time::sleep(PAUSE).await;
                        break;
                    }
                }
            }
        }
    };
    tokio::select! {
        () = closed.cancelled() => {}
        () = hearing => {}
    }
}
