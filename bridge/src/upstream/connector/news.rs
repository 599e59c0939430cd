//! What has changed with a server since somebody asked.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// How much is kept that nobody has asked for.
const MOST: usize = 1024;
/// How long the address of a resource may be.
const LONGEST_URI: usize = 4096;

/// What a server says that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and their templates.
    Resources,
    /// The resource of this address, or one below it.
    Updated(String),
}

/// News that nobody has asked for yet, each once.
#[derive(Debug, Default)]
pub(super) struct Bulletin {
    kept: Mutex<VecDeque<News>>,
    told: Notify,
    /// What the server will tell of.
    watched: Mutex<Vec<News>>,
    acknowledged: Notify,
}

impl Bulletin {
    pub(super) fn tell(&self, news: News) {
        let is_update = matches!(&news, News::Updated(_));
        if matches!(&news, News::Updated(uri) if uri.len() > LONGEST_URI) {
            return;
        }
        {
            let mut kept = locked(&self.kept);
            // Lists always have a place: there are three of them.
            let is_full = is_update && kept.len() >= MOST;
            if is_full || kept.contains(&news) {
                return;
            }
            kept.push_back(news);
        }
        self.told.notify_one();
    }

    /// Tells of all that could have been missed while nobody could tell.
    pub(super) fn tell_of_gap(&self) {
        for news in self.watched() {
            self.tell(news);
        }
    }

    /// Waits until there is something new.
    pub(super) async fn next(&self) -> News {
        loop {
            let first = locked(&self.kept).pop_front();
            match first {
                Some(news) => return news,
                None => self.told.notified().await,
            }
        }
    }

    /// Notes that the server tells of what was wanted.
    pub(super) fn acknowledge(&self) {
        self.acknowledged.notify_one();
    }

    /// Waits until the server tells of what was wanted.
    pub(super) async fn acknowledged(&self) {
        self.acknowledged.notified().await;
    }

    /// Says whether this is new, and is watched from now on.
    pub(super) fn watch(&self, news: News) -> bool {
        let mut watched = locked(&self.watched);
        let is_new = !watched.contains(&news);
        if is_new {
            watched.push(news);
        }
        is_new
    }

    /// Says whether this was watched, and is so no longer.
    pub(super) fn unwatch(&self, news: &News) -> bool {
        let mut watched = locked(&self.watched);
        let before = watched.len();
        watched.retain(|it| it != news);
        watched.len() < before
    }

    pub(super) fn watched(&self) -> Vec<News> {
        locked(&self.watched).clone()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn much_is_not_kept() {
        let bulletin = Bulletin::default();
        for n in 0..2 * MOST {
            bulletin.tell(News::Updated(n.to_string()));
        }
        bulletin.tell(News::Updated("x".repeat(LONGEST_URI + 1)));
        bulletin.tell(News::Tools);
        let told = std::iter::from_fn(|| bulletin.next().now_or_never());
        let told: Vec<News> = told.collect();
        assert_eq!(told.len(), MOST + 1);
        assert_eq!(told.last(), Some(&News::Tools));
    }

    #[test]
    fn a_gap_is_news_of_what_is_watched() {
        let bulletin = Bulletin::default();
        let resource = News::Updated("a:1".to_owned());
        assert!(bulletin.watch(resource.clone()) && !bulletin.watch(resource.clone()));
        bulletin.watch(News::Prompts);
        bulletin.tell_of_gap();
        bulletin.tell(News::Prompts);
        assert!(bulletin.unwatch(&resource) && !bulletin.unwatch(&resource));
        let told = std::iter::from_fn(|| bulletin.next().now_or_never());
        assert_eq!(told.collect::<Vec<_>>(), [resource, News::Prompts]);
    }
}
