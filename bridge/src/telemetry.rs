//! Observers of calls: each call leaves a line in the log.

use tool_runtime::{Observer, Outcome, Record};

/// Writes every call into the log of the process: what failed by itself as `info`, what was refused as `warn`, the
/// rest as `debug`. Arguments and results stay out of it.
#[derive(Debug)]
pub(crate) struct CallLog;

impl Observer for CallLog {
    fn observe(&self, record: &Record<'_>) {
        let tool = record.tool.map_or("", |it| it.name.as_str());
        let server = record.tool.map_or("", |it| &*it.server);
        let caller = record.caller;
        let (engine, project) = (caller.engine.as_str(), caller.project.as_str());
        let session = caller.session.as_str();
        let principal = caller.principal.as_str();
        let micros = u64::try_from(record.duration.as_micros()).unwrap_or(u64::MAX);
        let repaired = record.repaired.len();
        match record.outcome {
            Outcome::Done => tracing::debug!(
                server,
                tool,
                engine,
                project,
                session,
                principal,
                micros,
                repaired,
                cut = record.cut,
                "done"
            ),
            Outcome::Failed(_) => tracing::info!(
                server,
                tool,
                engine,
                project,
                session,
                principal,
                micros,
                repaired,
                "the tool failed"
            ),
            Outcome::Refused(error) => tracing::warn!(
                called = ?record.called, server, tool, engine, project, session, principal, micros,
                code = error.code(), "refused"
            ),
        }
    }
}
