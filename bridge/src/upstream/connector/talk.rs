//! What goes to and fro while a request is under way.

use serde_json::{Map, Value};
use std::{fmt, sync::Arc, time::Duration};
use tool_runtime::{BoxFuture, Level};

/// What a request brings besides its parameters. The default is a plain request, to which nobody listens.
#[derive(Clone, Default)]
pub struct Talk {
    /// What the caller can be asked: the protocol's `ClientCapabilities`. They are sent with the request since
    /// 2026-07-28; before, they were declared when the session was opened.
    pub capabilities: Map<String, Value>,
    /// From which level on the caller wants the server's log.
    pub log: Option<Level>,
    /// Whether the caller wants to know of progress, which then holds off the limit of time.
    pub progress: bool,
    /// How long the server may take, or be silent, where it is not as long as for all requests.
    pub limit: Option<Duration>,
    /// What else of the caller's `_meta` goes on to the server: traces, and keys of vendors. What concerns one hop only
    /// is left out.
    pub meta: Map<String, Value>,
    /// What headers repeat of the arguments since 2026-07-28, by the names that follow `Mcp-Param-`;
    /// [`param_headers`](super::param_headers) makes them.
    pub headers: Vec<(String, String)>,
    /// Who hears what the server says meanwhile.
    pub listener: Option<Arc<dyn Listener>>,
}

/// What a caller says may be private.
impl fmt::Debug for Talk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Talk")
            .field("log", &self.log)
            .field("progress", &self.progress)
            .field("limit", &self.limit)
            .field("is_heard", &self.listener.is_some())
            .finish_non_exhaustive()
    }
}

/// Hears what a server says while a request is under way.
pub trait Listener: Send + Sync {
    /// Says how much is done, of how much, and what is going on.
    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>);

    /// Takes a message of the server's log, of the level that is wanted or above.
    fn log(&self, level: Level, logger: Option<String>, data: Value);

    /// Answers a request of the server: `elicitation/create`, `sampling/createMessage`, `roots/list`, or whatever else it
    /// asks. The future is dropped where the server takes its request back, and where ours has come to its end.
    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, Refusal>>;
}

/// Why a request of a server gets no result: becomes an error of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: i64,
    /// For the server, and whoever reads its log.
    pub message: String,
}
