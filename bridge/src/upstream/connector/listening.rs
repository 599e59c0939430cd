//! Keeps a server without sessions telling what has changed.

use super::{Era, News, UpstreamError, link::Link, message::METHOD_NOT_FOUND, news::Bulletin};
use serde_json::{Value, json, value::RawValue};
use std::{pin::Pin, sync::Arc, time::Duration};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

const METHOD: &str = "subscriptions/listen";
/// How long to wait before listening again: at least, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// How long a server may take to say that it tells of what was wanted.
const ACKNOWLEDGED: Duration = Duration::from_secs(10);

/// A request that is answered when the server tells of nothing more.
type Stream = Pin<Box<dyn Future<Output = Ended> + Send>>;
type Ended = Result<Box<RawValue>, UpstreamError>;

/// Listens as long as the connection lasts. What is to be watched is looked up each time that `renew` says so.
pub(super) async fn listen(link: Arc<Link>, renew: Arc<Notify>, over: CancellationToken) {
    let listening = keep_listening(&link, &renew);
    tokio::select! {
        () = over.cancelled() => {}
        () = link.transport.ended() => {}
        () = listening => {}
    }
}

/// Listens until the server says that it offers no such thing.
async fn keep_listening(link: &Arc<Link>, renew: &Notify) {
    let bulletin = link.transport.ears().bulletin();
    let mut wait = AGAIN.0;
    let mut was_deaf = false;
    loop {
        if bulletin.watched().is_empty() {
            renew.notified().await;
            continue;
        }
        let start = Instant::now();
        let mut stream = open(link);
        let mut ended = acknowledged(bulletin, &mut stream).await;
        if ended.is_none() {
            if was_deaf {
                // What changed in between, nobody has told.
                bulletin.tell_of_gap();
            }
            ended = follow(link, renew, stream).await;
        }
        was_deaf = ended.is_some();
        match ended {
            // There is nothing to hear any more.
            None => continue,
            Some(Err(UpstreamError::Refused {
                code: METHOD_NOT_FOUND,
                ..
            })) => return,
            Some(_) => {}
        }
        wait = if start.elapsed() > AGAIN.1 {
            AGAIN.0
        } else {
            (wait * 2).min(AGAIN.1)
        };
        tokio::select! {
            () = sleep(wait) => {}
            // Whoever wants to know of something more wants it soon.
            () = renew.notified() => {}
        }
    }
}

/// Hears a stream to its end, or to where nothing is watched any more. Where something else is to be watched, another
/// stream takes its place.
async fn follow(link: &Arc<Link>, renew: &Notify, mut stream: Stream) -> Option<Ended> {
    let bulletin = link.transport.ears().bulletin();
    loop {
        tokio::select! {
            ended = &mut stream => return Some(ended),
            () = renew.notified() => {
                if bulletin.watched().is_empty() {
                    return None;
                }
                // The old one goes on until the new one tells, so that nothing is missed.
                let mut new = open(link);
                let ended = tokio::select! {
                    ended = acknowledged(bulletin, &mut new) => ended,
                    _ = &mut stream => None,
                };
                if ended.is_some() {
                    return ended;
                }
                stream = new;
            }
        }
    }
}

fn open(link: &Arc<Link>) -> Stream {
    let link = link.clone();
    Box::pin(async move {
        let filter = filter(&link.transport.ears().bulletin().watched());
        let params = json!({ "notifications": filter });
        link.ask(Era::Modern, METHOD, &params, Duration::MAX).await
    })
}

/// Waits until the server tells of what was wanted, or might: sloppy ones don't say so. Returns how the stream ended, if
/// it did.
async fn acknowledged(bulletin: &Bulletin, stream: &mut Stream) -> Option<Ended> {
    tokio::select! {
        ended = stream => Some(ended),
        _ = timeout(ACKNOWLEDGED, bulletin.acknowledged()) => None,
    }
}

/// What is to be told of, in the words of the protocol.
fn filter(watched: &[News]) -> Value {
    let uris: Vec<&str> = watched
        .iter()
        .filter_map(|it| match it {
            News::Updated(uri) => Some(uri.as_str()),
            News::Tools | News::Prompts | News::Resources => None,
        })
        .collect();
    let mut filter = json!({});
    for (key, news) in [
        ("toolsListChanged", News::Tools),
        ("promptsListChanged", News::Prompts),
        ("resourcesListChanged", News::Resources),
    ] {
        if watched.contains(&news) {
            filter[key] = true.into();
        }
    }
    if !uris.is_empty() {
        filter["resourceSubscriptions"] = uris.into();
    }
    filter
}
