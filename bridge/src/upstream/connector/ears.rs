//! Who hears what a server says besides its answers.

use super::{
    Era,
    mask::Masks,
    message::{self, METHOD_NOT_FOUND},
    news::{Bulletin, News},
    ongoing::{Asked, Ongoing, too_much},
    talk::{Refusal, Talk},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::mpsc;

/// How many letters of a text are handed on that says what is going on.
const LONGEST_TEXT: usize = 2_000;
/// How many bytes of a message of the log are handed on as data; a longer one becomes the beginning of its text.
const LARGEST_LOG: usize = 64 * 1024;
/// How many bytes the parameters of a question may have.
const LARGEST_QUESTION: usize = 1024 * 1024;
/// How many bytes the id of a question may have.
const LONGEST_ID: usize = 1024;

/// Where something was said.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// On the stream of a request, to which somebody listens or not.
    Request(Option<&'a Ongoing>),
    /// Where it might concern any request, or none.
    Open,
}

/// What hears a server.
#[derive(Debug)]
pub(super) struct Ears {
    server: Arc<str>,
    masks: Masks,
    ongoing: Mutex<BTreeMap<u64, Arc<Ongoing>>>,
    bulletin: Bulletin,
    is_modern: AtomicBool,
}

impl Ears {
    pub(super) fn new(server: &Arc<str>, masks: Masks) -> Self {
        Self {
            server: server.clone(),
            masks,
            ongoing: Mutex::default(),
            bulletin: Bulletin::default(),
            is_modern: AtomicBool::new(false),
        }
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn masks(&self) -> &Masks {
        &self.masks
    }

    pub(super) fn bulletin(&self) -> &Bulletin {
        &self.bulletin
    }

    /// How the server is spoken to: first as it was before 2026-07-28.
    pub(super) fn era(&self) -> Era {
        if self.is_modern.load(Ordering::Relaxed) {
            Era::Modern
        } else {
            Era::Legacy
        }
    }

    pub(super) fn be_modern(&self) {
        self.is_modern.store(true, Ordering::Relaxed);
    }

    /// Starts to listen for a request.
    pub(super) fn enter(&self, id: u64, talk: &Talk) -> (Entered<'_>, mpsc::Receiver<Asked>) {
        let (ongoing, questions) = Ongoing::new(id, talk);
        self.table().insert(id, ongoing.clone());
        let ears = self;
        (Entered { ears, ongoing }, questions)
    }

    /// Hears a notification.
    pub(super) fn hear(&self, method: &str, params: Option<&RawValue>, place: Place<'_>) {
        match method {
            "notifications/tools/list_changed" => self.bulletin.tell(News::Tools),
            "notifications/prompts/list_changed" => self.bulletin.tell(News::Prompts),
            "notifications/resources/list_changed" => self.bulletin.tell(News::Resources),
            "notifications/resources/updated" => self.hear_update(params),
            "notifications/progress" => self.hear_progress(params, place),
            "notifications/message" => self.hear_log(params, place),
            "notifications/subscriptions/acknowledged" => self.bulletin.acknowledge(),
            "notifications/cancelled" => self.hear_taken_back(params, place),
            _ => {}
        }
    }

    /// Hears a request of the server, and returns the answer where there is one at once.
    pub(super) fn asked(
        &self,
        id: Box<RawValue>,
        method: String,
        params: Option<&RawValue>,
        place: Place<'_>,
    ) -> Option<Vec<u8>> {
        // Since 2026-07-28, servers ask within their answers only, and are answered nothing.
        if self.era() == Era::Modern || id.get().len() > LONGEST_ID {
            tracing::debug!(server = &*self.server, method, "it may not ask so");
            return None;
        }
        let refused = match method.as_str() {
            "ping" => return Some(message::answer(&id, &Ok(json!({})))),
            _ => match self.listening(place) {
                Some(ongoing) => match question(id, method, params) {
                    Ok(asked) => match ongoing.ask(asked).err()? {
                        Asked::Question { id, .. } | Asked::TakenBack { id } => (id, too_much()),
                    },
                    Err(refused) => refused,
                },
                None => (id, nobody()),
            },
        };
        let (id, refusal) = refused;
        Some(message::answer(&id, &Err(refusal)))
    }

    fn hear_update(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Update {
            uri: String,
        }
        if let Some(Update { uri }) = read(params) {
            self.bulletin.tell(News::Updated(uri));
        }
    }

    fn hear_progress(&self, params: Option<&RawValue>, place: Place<'_>) {
        #[derive(Deserialize)]
        struct Progress<'a> {
            #[serde(borrow, default, rename = "progressToken")]
            token: Option<&'a RawValue>,
            #[serde(rename = "progress")]
            done: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(default)]
            message: Value,
        }
        let Some(progress) = read::<Progress<'_>>(params) else {
            return;
        };
        let token = progress.token.map(RawValue::get);
        let named = token.and_then(message::number);
        let named = named.and_then(|it| self.table().get(&it).cloned());
        let ongoing = match (&named, place) {
            (Some(named), _) => named,
            (None, Place::Request(Some(ongoing))) => ongoing,
            (None, Place::Request(None) | Place::Open) => return,
        };
        let text = progress.message.as_str();
        let text = text.map(|it| self.masks.beginning(it, LONGEST_TEXT));
        ongoing.hear_progress(progress.done, progress.total, text);
    }

    fn hear_log(&self, params: Option<&RawValue>, place: Place<'_>) {
        #[derive(Deserialize)]
        struct Log<'a> {
            #[serde(default)]
            level: Value,
            #[serde(default)]
            logger: Value,
            #[serde(borrow)]
            data: &'a RawValue,
        }
        let Some(log) = read::<Log<'_>>(params) else {
            return;
        };
        let level = log.level.as_str().and_then(tool_runtime::Level::named);
        let level = level.unwrap_or(tool_runtime::Level::Info);
        let Some(ongoing) = self.listening(place).filter(|it| it.wants_log(level)) else {
            tracing::debug!(server = &*self.server, "nobody listens to its log");
            return;
        };
        let logger = log.logger.as_str();
        let logger = logger.map(|it| self.masks.beginning(it, LONGEST_TEXT));
        let data = log.data.get();
        let whole = (data.len() <= LARGEST_LOG).then(|| serde_json::from_str(data).ok());
        let data = match whole.flatten() {
            Some(data) => self.masks.masked(data),
            None => Value::String(self.masks.beginning(data, LONGEST_TEXT)),
        };
        ongoing.hear_log(level, logger, data);
    }

    fn hear_taken_back(&self, params: Option<&RawValue>, place: Place<'_>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct TakenBack {
            request_id: Box<RawValue>,
        }
        if let Some(TakenBack { request_id: id }) = read(params)
            && let Some(ongoing) = self.listening(place)
        {
            // What did not even get in needs not be taken back.
            let _ = ongoing.ask(Asked::TakenBack { id });
        }
    }

    /// The request that is meant, if somebody listens to it. Where it isn't said which one, there must be just one.
    fn listening(&self, place: Place<'_>) -> Option<Arc<Ongoing>> {
        let table = self.table();
        let mut listening = table.values().filter(|it| it.has_listener());
        let ongoing = match place {
            Place::Request(ongoing) => {
                let id = ongoing?.id;
                listening.find(|it| it.id == id)
            }
            Place::Open => listening.next().filter(|_| listening.next().is_none()),
        };
        ongoing.cloned()
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Ongoing>>> {
        self.ongoing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is listened for, until this is dropped.
#[derive(Debug)]
pub(super) struct Entered<'a> {
    ears: &'a Ears,
    pub(super) ongoing: Arc<Ongoing>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.ears.table().remove(&self.ongoing.id);
    }
}

fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

fn question(
    id: Box<RawValue>,
    method: String,
    params: Option<&RawValue>,
) -> Result<Asked, (Box<RawValue>, Refusal)> {
    let text = params.map_or("{}", RawValue::get);
    let params = if text.len() > LARGEST_QUESTION {
        Err(format!(
            "the question has more than {LARGEST_QUESTION} bytes"
        ))
    } else {
        serde_json::from_str(text).map_err(|error| error.to_string())
    };
    match params {
        Ok(params) => Ok(Asked::Question { id, method, params }),
        Err(message) => {
            let code = message::INVALID_PARAMS;
            Err((id, Refusal { code, message }))
        }
    }
}

fn nobody() -> Refusal {
    Refusal {
        code: METHOD_NOT_FOUND,
        message: "no call is under way that could answer this".to_owned(),
    }
}
