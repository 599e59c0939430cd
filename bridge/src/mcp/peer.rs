//! Who is at the other end of one request, and what that end can take.

use super::{
    conversation::{OnStream, Rerun},
    rpc::{self, RpcError},
    seal::Answers,
    session::{Session, Version},
    stream::{Exchange, Work},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json, value::RawValue};
use std::{borrow::Cow, sync::Arc};
use tokio::sync::mpsc;
use tool_runtime::{
    Caller, Client, Context, Conversation, Level, Log, Progress, ProgressReport, Round,
};

/// How many messages of one call may wait for the client; more reports and logs are left out.
const WAITING: usize = 256;

/// The other end of one request.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) caller: Arc<Caller>,
    pub(super) era: Era,
}

#[derive(Clone, Debug)]
pub(super) enum Era {
    /// 2026-07-28: each request says everything.
    Modern {
        capabilities: Value,
        level: Option<Level>,
    },
    /// Up to 2025-11-25: the session says it.
    Legacy(Arc<Session>),
}

impl Peer {
    pub(super) fn is_modern(&self) -> bool {
        matches!(self.era, Era::Modern { .. })
    }

    /// Whether the client has declared an extension of the protocol.
    pub(super) fn has_extension(&self, name: &str) -> bool {
        match &self.era {
            Era::Modern { capabilities, .. } => capabilities
                .get("extensions")
                .and_then(|it| it.get(name))
                .is_some(),
            Era::Legacy(_) => false,
        }
    }

    pub(super) fn version(&self) -> Option<Version> {
        match &self.era {
            Era::Modern { .. } => None,
            Era::Legacy(session) => Some(session.version),
        }
    }
}

/// What the parameters of every request may hold besides their own.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Meta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(super) version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub(super) client_info: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(super) capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    pub(super) level: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "progressToken")]
    pub(super) progress_token: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct OnlyMeta<'a> {
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

impl<'a> Meta<'a> {
    /// Reads `_meta` out of parameters.
    pub(super) fn of(params: Option<&'a RawValue>) -> Result<Option<Self>, RpcError> {
        let Some(params) = params else {
            return Ok(None);
        };
        let read: Result<OnlyMeta<'a>, _> = serde_json::from_str(params.get());
        read.map(|it| it.meta)
            .map_err(|error| RpcError::invalid_params(format!("`_meta` doesn't fit: {error}")))
    }

    /// All of `_meta`, as it came.
    pub(super) fn whole(params: Option<&RawValue>) -> Map<String, Value> {
        #[derive(Default, Deserialize)]
        struct Whole {
            #[serde(default, rename = "_meta")]
            meta: Map<String, Value>,
        }
        let whole: Option<Whole> = params.and_then(|it| serde_json::from_str(it.get()).ok());
        whole.unwrap_or_default().meta
    }

    /// The level that it names; `Err` if it names none that there is.
    pub(super) fn level(&self) -> Result<Option<Level>, RpcError> {
        let Some(raw) = self.level else {
            return Ok(None);
        };
        let name: Result<String, _> = serde_json::from_str(raw.get());
        match name.ok().and_then(|it| Level::named(&it)) {
            Some(level) => Ok(Some(level)),
            None => Err(RpcError::invalid_params(format!(
                "there is no log level {}",
                rpc::shown(raw.get())
            ))),
        }
    }
}

/// A call that may talk while it runs.
pub(super) struct Talk {
    pub(super) context: Context,
    /// The questions of a stateless call.
    pub(super) rerun: Option<Arc<Rerun>>,
    inbox: mpsc::Receiver<Vec<u8>>,
}

impl Talk {
    /// Prepares the context of a call from this peer.
    pub(super) fn new(
        peer: &Peer,
        progress_token: Option<&RawValue>,
        answers: Answers,
        sent: Round,
    ) -> Self {
        let (outbox, inbox) = mpsc::channel(WAITING);
        let mut context = Context::new(peer.caller.clone());
        if let Some(token) = progress_token {
            context.progress = progress(token.to_owned(), outbox.clone());
        }
        let mut rerun = None;
        match &peer.era {
            Era::Modern {
                capabilities,
                level,
            } => {
                if let Some(least) = *level {
                    context.log = log(outbox, move || least);
                }
                let questions = Arc::new(Rerun::new(capabilities.clone(), answers, sent));
                let conversation: Arc<dyn Conversation> = questions.clone();
                context.client = conversation.into();
                rerun = Some(questions);
            }
            Era::Legacy(session) => {
                let of_level = session.clone();
                context.log = log(outbox.clone(), move || of_level.level());
                context.client = Client::to(OnStream::new(session.clone(), outbox));
            }
        }
        Self {
            context,
            rerun,
            inbox,
        }
    }

    /// Makes the exchange of the work that this context is for.
    pub(super) fn exchange(self, peer: &Peer, id: Box<RawValue>, work: Work) -> Exchange {
        let cancellation = self.context.cancellation;
        let outlives_client = !peer.is_modern();
        let work: Work = match &peer.era {
            Era::Modern { .. } => work,
            Era::Legacy(session) => {
                let running = session.start(id.get(), &cancellation);
                Box::pin(async move {
                    let _running = running;
                    work.await
                })
            }
        };
        Exchange {
            id,
            work,
            inbox: self.inbox,
            cancellation,
            outlives_client,
        }
    }
}

/// A report of progress, with the token as it came: not every token that is JSON is a `Value`.
#[derive(Serialize)]
struct Reported<'a> {
    #[serde(rename = "progressToken")]
    token: &'a RawValue,
    progress: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

fn progress(token: Box<RawValue>, outbox: mpsc::Sender<Vec<u8>>) -> Progress {
    Progress::to(move |report| {
        let ProgressReport {
            done,
            total,
            message,
        } = report;
        let params = Reported {
            token: &token,
            progress: done,
            total,
            message,
        };
        let _ = outbox.try_send(rpc::notification("notifications/progress", &params));
    })
}

fn log(outbox: mpsc::Sender<Vec<u8>>, least: impl Fn() -> Level + Send + Sync + 'static) -> Log {
    Log::from_level(least, move |level, data| {
        let params = json!({ "level": level.name(), "data": data });
        let _ = outbox.try_send(rpc::notification("notifications/message", &params));
    })
}
