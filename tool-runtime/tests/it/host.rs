//! A host for a few servers, and what keeps what it says: an observer and a log.

use std::{
    fmt::Write as _,
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;
use tool_runtime::{
    Caller, Context, Dispatcher, Limits, Observer, Outcome, Provider as _, Reach, Record, Registry,
    Scopes, Tool, View,
};
use tracing::subscriber::DefaultGuard;

/// Keeps one line for each call that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Debug)]
struct Recorded {
    lines: Vec<String>,
    /// When the last call ended, by the clock that tests pause.
    last: Instant,
}

impl Default for Recorder {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Recorded {
            lines: Vec::new(),
            last: Instant::now(),
        })))
    }
}

impl Recorder {
    /// Takes the lines out.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut recorded = self.0.lock().expect("no test panics while it records");
        std::mem::take(&mut recorded.lines)
    }

    /// Takes the only line out.
    pub(crate) fn line(&self) -> String {
        let lines = self.lines();
        let [line] = lines.as_slice() else {
            panic!("one call leaves one record: {lines:#?}");
        };
        line.clone()
    }
}

impl Observer for Recorder {
    fn observe(&self, record: &Record<'_>) {
        let outcome = match record.outcome {
            Outcome::Done => "done".to_owned(),
            Outcome::Failed(output) => format!("failed: {}", output.to_text()),
            Outcome::Refused(error) => format!("refused: {} {error:?}", error.code()),
        };
        let tool = record
            .tool
            .map_or("-".to_owned(), |it| format!("{}/{}", it.server, it.name));
        let mut recorded = self.0.lock().expect("no test panics while it records");
        assert!(!record.duration.is_zero(), "no call takes no time at all");
        let waited = std::mem::replace(&mut recorded.last, Instant::now()).elapsed();
        let mut line = format!("{} = {tool} by `{}`", record.called, record.caller.engine);
        let facts = [
            ("ms", waited.as_millis() as usize),
            ("bytes", record.bytes_in),
        ];
        for (unit, count) in facts {
            write!(line, ", {count} {unit}").expect("writing to a String does not fail");
        }
        if !record.repaired.is_empty() {
            line.push_str(", repaired ");
            line.push_str(&record.repaired.join(" "));
        }
        if let Some(bytes) = record.cut {
            write!(line, ", cut of {bytes}").expect("writing to a String does not fail");
        }
        recorded.lines.push(format!("{line}: {outcome}"));
    }
}

/// Keeps what is logged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Takes what this thread logs, until the guard is dropped.
    pub(crate) fn listen(&self) -> DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .without_time()
            .with_ansi(false)
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// Returns what was logged.
    pub(crate) fn text(&self) -> String {
        let written = self.0.lock().expect("no test panics while it logs");
        String::from_utf8_lossy(&written).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().expect("no test panics while it logs");
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Limits of a time in seconds, and of no length that a test reaches by accident.
pub(crate) fn limits(seconds: u64) -> Limits {
    Limits {
        time: Duration::from_secs(seconds),
        ..Limits::default()
    }
}

/// A dispatcher of these servers, and what it records.
pub(crate) fn recorded(registry: Registry, limits: Limits) -> (Dispatcher, Recorder) {
    let recorder = Recorder::default();
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(recorder.clone())];
    let dispatcher = Dispatcher::with(registry, Vec::new(), limits, observers);
    (dispatcher.expect("the servers fit together"), recorder)
}

/// A view of these servers, everything on.
pub(crate) fn view(registry: Registry) -> View {
    View::new(&[Arc::new(registry)], tool_runtime::Selection::all())
}

/// A tool of these servers.
pub(crate) fn tool(registry: &Registry, name: &str) -> Arc<Tool> {
    let mut tools = registry
        .servers()
        .into_iter()
        .flat_map(|it| it.tools.clone());
    tools
        .find(|it| it.name == name)
        .unwrap_or_else(|| panic!("there is no tool `{name}`"))
}

/// The context of a call from an engine, from no project.
pub(crate) fn context() -> Context {
    Context::new(caller())
}

/// An engine that may do everything.
pub(crate) fn caller() -> Caller {
    Caller {
        engine: "codex".to_owned(),
        principal: "desk".to_owned(),
        ..Caller::default()
    }
}

/// An engine that may do this only.
pub(crate) fn scoped(scopes: &[&str]) -> Caller {
    Caller {
        scopes: Scopes::Only(scopes.iter().map(|it| (*it).to_owned()).collect()),
        ..caller()
    }
}

/// An engine that knows of these servers only.
pub(crate) fn reaching(servers: &[&str], read_only: bool) -> Caller {
    Caller {
        reach: Reach {
            servers: Some(servers.iter().map(|it| (*it).to_owned()).collect()),
            read_only,
            ..Reach::default()
        },
        ..caller()
    }
}
