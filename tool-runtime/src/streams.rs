//! Which conversations are under way, so that a call which doesn't say where it comes from can be told.

use crate::context::{Caller, Identified};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The conversations that a host application runs, the most recent last.
#[derive(Debug, Default)]
pub struct Streams(Mutex<Vec<Stream>>);

/// One conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The engine, for example `codex`.
    pub engine: String,
    /// The project that it works on.
    pub project: String,
    /// The name of the conversation, unique among all.
    pub session: String,
}

impl Streams {
    /// Notes that a conversation has begun, or has something new to do: it is the most recent one now.
    pub fn start(&self, stream: Stream) {
        let mut streams = self.streams();
        streams.retain(|it| it.session != stream.session);
        streams.push(stream);
    }

    /// Notes that a conversation has ended; says whether it was under way.
    pub fn end(&self, session: &str) -> bool {
        let mut streams = self.streams();
        let before = streams.len();
        streams.retain(|it| it.session != session);
        streams.len() < before
    }

    /// Completes a caller that names no session: with the most recent one in the project that it names, on its engine if
    /// it names that too; or, if it names no project, with the most recent one on its engine. A caller that names neither
    /// stays unknown, and nobody is ever taken for a conversation of another project.
    pub fn identify(&self, caller: &mut Caller) {
        if !caller.session.is_empty() {
            caller.identified = Identified::Exact;
            return;
        }
        let fits = |named: &str, actual: &str| named.is_empty() || named == actual;
        let identified = match (caller.project.as_str(), caller.engine.as_str()) {
            ("", "") => return,
            ("", _) => Identified::ByEngine,
            _ => Identified::ByProject,
        };
        let streams = self.streams();
        let mut latest = streams.iter().rev();
        let found = latest
            .find(|it| fits(&caller.project, &it.project) && fits(&caller.engine, &it.engine));
        if let Some(stream) = found {
            caller.identified = identified;
            caller.engine.clone_from(&stream.engine);
            caller.project.clone_from(&stream.project);
            caller.session.clone_from(&stream.session);
        }
    }

    fn streams(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
