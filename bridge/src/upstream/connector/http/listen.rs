//! What a server says between requests.

use super::{Shared, is_stream};
use crate::upstream::connector::{ears::Place, sse::Events};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// How long to wait before the stream of news is opened again: at least, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

impl Shared {
    /// Listens for news until the session is over.
    pub(super) async fn listen(self: Arc<Self>) {
        let mut wait = AGAIN.0;
        let mut has_listened = false;
        loop {
            let start = Instant::now();
            let news = tokio::select! {
                () = self.over.cancelled() => return,
                news = self.listen_once(has_listened) => news,
            };
            let retry = match news {
                News::NotOffered => return,
                News::Ended { retry } => {
                    has_listened = true;
                    retry
                }
                News::Failed => None,
            };
            let lasted = start.elapsed() > AGAIN.1;
            wait = if lasted { AGAIN.0 } else { wait * 2 }.min(AGAIN.1);
            let pause = retry.unwrap_or_default().clamp(wait, AGAIN.1);
            tokio::select! {
                () = self.over.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    async fn listen_once(self: &Arc<Self>, is_again: bool) -> News {
        let response = self.get().send().await;
        self.listened.cancel();
        let Ok(mut response) = response else {
            return News::Failed;
        };
        if response.status().is_server_error() {
            return News::Failed;
        }
        if !response.status().is_success() || !is_stream(&response) {
            return News::NotOffered;
        }
        if is_again {
            // What changed in between, nobody has told.
            self.ears.bulletin().tell_of_gap();
        }
        let mut events = Events::new(self.limits.message);
        while let Ok(Some(chunk)) = response.chunk().await {
            let Ok(events) = events.feed(&chunk) else {
                break;
            };
            for event in events {
                // No request has the id 0, so that nothing here is an answer.
                self.hear(0, &event.data, Place::Open);
            }
        }
        News::Ended {
            retry: events.retry(),
        }
    }
}

/// How a stream of news went.
enum News {
    NotOffered,
    Failed,
    Ended {
        /// When the server wants to be asked again.
        retry: Option<Duration>,
    },
}
