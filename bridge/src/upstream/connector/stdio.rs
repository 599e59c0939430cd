//! A server that is a program of this machine, spoken to by its input and output.

use super::{
    Limits, UpstreamError,
    ears::{Ears, Place},
    error::result,
    guardian::Guardian,
    journal::{Journal, Journals},
    lines::{self, Line},
    link::Outgoing,
    mask::Masks,
    message::{self, Message},
    process::{Process, how_it_ended},
    tail::Tail,
    waiting::{Ending, Reply, Waiting},
};
use crate::secret::Secret;
use serde_json::value::RawValue;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    path::Path,
    process::Stdio,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// What a program finds in its environment besides what is declared for it, if the bridge itself has it.
const HARMLESS: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    // A bridge that is its own external server must know.
    "CLOPEN_MCP_WITHIN",
    // Without these, `npx` and `uvx` reach no network where it is behind a proxy or a mirror.
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_CACHE_DIR",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "npm_config_cache",
    "npm_config_registry",
    // Without these, hardly a program runs on Windows.
    "APPDATA",
    "COMSPEC",
    "LOCALAPPDATA",
    "PATHEXT",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];
/// How many messages may wait until the program reads them.
const QUEUE: usize = 64;
/// How long a program may still read what is meant for it, and be heard, after it was told to end, or did.
const LAST_MOMENTS: Duration = Duration::from_millis(500);
/// How much of a line that is no message is logged.
const LONGEST_NOISE: usize = 200;

/// Says whether every program may know a variable. A function that a shell has exported is code.
pub(super) fn is_harmless((name, value): &(OsString, OsString)) -> bool {
    let name = name.to_string_lossy();
    let is_known = HARMLESS.iter().any(|it| it.eq_ignore_ascii_case(&name));
    (is_known || name.starts_with("LC_")) && !value.to_string_lossy().starts_with("()")
}

/// What is to be run.
pub(super) struct Start<'a> {
    pub(super) program: &'a str,
    pub(super) arguments: &'a [String],
    pub(super) inherited: &'a BTreeMap<OsString, OsString>,
    /// A `PATH` that is better than the inherited one.
    pub(super) path: Option<&'a OsStr>,
    pub(super) environment: &'a BTreeMap<String, Secret>,
    pub(super) folder: Option<&'a Path>,
    pub(super) guardian: &'a Arc<Guardian>,
    /// Where its error output is kept.
    pub(super) journals: Option<&'a Journals>,
}

/// A running program.
pub(super) struct Program {
    server: Arc<str>,
    limits: Limits,
    ears: Arc<Ears>,
    waiting: Arc<Waiting>,
    tail: Arc<Tail>,
    queue: mpsc::Sender<Vec<u8>>,
    stop: CancellationToken,
    ended: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl Program {
    pub(super) fn start(
        server: &Arc<str>,
        start: &Start<'_>,
        limits: Limits,
    ) -> Result<Self, UpstreamError> {
        let not_started = |reason| UpstreamError::NotStarted {
            server: server.to_string(),
            program: start.program.to_owned(),
            reason,
        };
        if let Some(folder) = start.folder
            && !folder.is_dir()
        {
            let folder = folder.display();
            return Err(not_started(format!(
                "its folder `{folder}` is not there; make it, or name another"
            )));
        }
        let mut command = command(start);
        let mut process = Process::spawn(&mut command, start.guardian)
            .map_err(|it| not_started(why_not(start, &it)))?;
        let child = &mut process.child;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(not_started("it has no input or output".to_owned()));
        };

        let (queue, queued) = mpsc::channel(QUEUE);
        let stop = CancellationToken::new();
        let program = Self {
            server: server.clone(),
            limits,
            ears: Arc::new(Ears::new(server, Masks::new(start.environment.values()))),
            waiting: Arc::new(Waiting::new()),
            tail: Arc::default(),
            queue: queue.clone(),
            stop: stop.clone(),
            ended: CancellationToken::new(),
            _stop_on_drop: stop.clone().drop_guard(),
        };
        let deaf = CancellationToken::new();
        let mute = CancellationToken::new();
        let mut streams = JoinSet::new();
        streams.spawn(write(input, queued, stop, deaf.clone().drop_guard()));
        let reader = Reader {
            limit: limits.message,
            ears: program.ears.clone(),
            waiting: program.waiting.clone(),
            tail: program.tail.clone(),
            queue,
        };
        streams.spawn(reader.read(output, mute.clone().drop_guard()));
        let journal = start.journals.and_then(|it| it.open(server));
        let (tail, ears) = (program.tail.clone(), program.ears.clone());
        streams.spawn(listen(errors, tail, journal, ears));
        let supervisor = Supervisor {
            process,
            streams,
            deaf,
            mute,
            stop: program.stop.clone(),
            ears: program.ears.clone(),
            waiting: program.waiting.clone(),
            tail: program.tail.clone(),
            ended: program.ended.clone().drop_guard(),
        };
        tokio::spawn(supervisor.supervise());
        Ok(program)
    }

    /// Sends a request and waits for its answer. If nobody waits any longer, the program is told.
    pub(super) async fn exchange(
        &self,
        outgoing: Outgoing<'_>,
    ) -> Result<Box<RawValue>, UpstreamError> {
        let Outgoing {
            id, method, body, ..
        } = outgoing;
        let mut answer = match self.waiting.enter(id) {
            Ok(answer) => answer,
            Err(ending) => return Err(self.ended_error(method, ending)),
        };
        let mut unanswered = Unanswered {
            program: self,
            id,
            may_be_cancelled: false,
        };
        let queued = tokio::select! {
            queued = self.queue.send(as_line(body)) => queued.is_ok(),
            // It ended while there was no room in the queue.
            () = self.ended.cancelled() => false,
        };
        unanswered.may_be_cancelled = queued && is_cancellable(method);
        // Where it was not queued, the end of the program is the answer.
        let reply = (&mut answer).await;
        unanswered.may_be_cancelled = false;
        match reply {
            Ok(Reply::Answered(outcome)) => result(method, outcome, &self.ears),
            Ok(Reply::TooLong) => Err(UpstreamError::TooLarge {
                server: self.server.to_string(),
                method: method.to_owned(),
                limit: self.limits.message,
            }),
            Ok(Reply::Ended(ending)) => Err(self.ended_error(method, ending)),
            Err(_) => Err(self.ended_error(method, Ending::Closed)),
        }
    }

    pub(super) async fn notify(&self, message: Vec<u8>) {
        // To a program that has ended there is nothing to say.
        let _ = self.queue.send(as_line(message)).await;
    }

    /// Says what gets no answer, unless the program doesn't read what it is told.
    pub(super) fn tell(&self, message: Vec<u8>) {
        if self.queue.try_send(as_line(message)).is_err() {
            tracing::debug!(server = &*self.server, "it doesn't read our answers");
        }
    }

    pub(super) fn ears(&self) -> &Ears {
        &self.ears
    }

    pub(super) fn said(&self) -> String {
        self.tail.shown(self.ears.masks())
    }

    /// Resolves when the program has ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.stop.is_cancelled() || self.ended.is_cancelled()
    }

    /// Ends the program: its input is closed, then it is asked to end, then killed with all that it started.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.ended.cancelled().await;
    }

    fn ended_error(&self, method: &str, ending: Ending) -> UpstreamError {
        let server = self.server.to_string();
        let method = method.to_owned();
        match ending {
            Ending::Closed => UpstreamError::Closed { server, method },
            Ending::Ended { how, said } => UpstreamError::Ended {
                server,
                method,
                how,
                said,
            },
        }
    }
}

/// Says whether a server can be told to cancel a request: not one that opens the connection.
pub(super) fn is_cancellable(method: &str) -> bool {
    !matches!(method, "initialize" | "server/discover")
}

/// A request without an answer, which is taken back if it is dropped.
struct Unanswered<'a> {
    program: &'a Program,
    id: u64,
    may_be_cancelled: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.program.waiting.leave(self.id);
        if self.may_be_cancelled {
            // A program that doesn't read what it is told would not read this either.
            let _ = self
                .program
                .queue
                .try_send(as_line(message::cancelled(self.id)));
        }
    }
}

/// Makes a line of a message. Between texts, an end of a line is mere space; within one, it is escaped.
fn as_line(mut message: Vec<u8>) -> Vec<u8> {
    for byte in &mut message {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    message.push(b'\n');
    message
}

fn command(start: &Start<'_>) -> Command {
    let mut command = Command::new(start.program);
    command
        .args(start.arguments)
        .env_clear()
        .envs(start.inherited)
        .envs(start.path.map(|it| ("PATH", it)))
        .envs(
            start
                .environment
                .iter()
                .map(|(name, it)| (name, it.expose())),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(folder) = start.folder {
        command.current_dir(folder);
    }
    command
}

/// Says why a program could not be started, and what to do.
fn why_not(start: &Start<'_>, error: &io::Error) -> String {
    let path = || {
        let declared = start
            .environment
            .get("PATH")
            .map(|it| OsStr::new(it.expose()));
        let inherited = || start.inherited.get(OsStr::new("PATH"));
        let path = declared.or(start.path);
        let path = path.or_else(|| inherited().map(OsString::as_os_str));
        path.map_or_else(|| "(empty)".into(), |it| it.to_string_lossy())
    };
    match error.kind() {
        io::ErrorKind::NotFound if start.program.contains('/') => {
            "there is no such file, or what its first line names is missing; check the path"
                .to_owned()
        }
        io::ErrorKind::NotFound => format!(
            "it is in no folder of `PATH`, which is `{}`; install it, or name it by its whole path",
            path()
        ),
        io::ErrorKind::PermissionDenied => {
            "it may not be executed; check its permissions, or name another".to_owned()
        }
        io::ErrorKind::InvalidInput => {
            "its command, arguments or environment hold a zero byte or a name with `=`; remove it"
                .to_owned()
        }
        _ => format!("{error}; check its command"),
    }
}

/// Writes what is queued, one message after the other, until it is told to stop; then the input is closed.
async fn write(
    mut input: ChildStdin,
    mut queued: mpsc::Receiver<Vec<u8>>,
    stop: CancellationToken,
    _deaf: DropGuard,
) {
    let overdue = async {
        stop.cancelled().await;
        sleep(LAST_MOMENTS).await;
    };
    tokio::pin!(overdue);
    loop {
        let message = tokio::select! {
            message = queued.recv() => message,
            () = stop.cancelled(), if !queued.is_closed() => {
                queued.close();
                continue;
            }
        };
        let Some(message) = message else { return };
        tokio::select! {
            written = input.write_all(&message) => if written.is_err() { return },
            () = &mut overdue => return,
        }
    }
}

async fn listen(
    mut errors: ChildStderr,
    tail: Arc<Tail>,
    mut journal: Option<Journal>,
    ears: Arc<Ears>,
) {
    let mut chunk = vec![0; 4096];
    while let Ok(size @ 1..) = errors.read(&mut chunk).await {
        tail.push(&chunk[..size]);
        if let Some(journal) = &mut journal {
            journal.write(&chunk[..size], ears.masks());
        }
    }
    if let Some(mut journal) = journal {
        journal.end(ears.masks());
    }
}

/// Reads what a program says.
struct Reader {
    limit: usize,
    ears: Arc<Ears>,
    waiting: Arc<Waiting>,
    tail: Arc<Tail>,
    queue: mpsc::Sender<Vec<u8>>,
}

impl Reader {
    async fn read(self, output: ChildStdout, _mute: DropGuard) {
        let mut output = BufReader::with_capacity(64 * 1024, output);
        while let Ok(Some(line)) = lines::next(&mut output, self.limit).await {
            match line {
                Line::Whole(line) => self.hear(&line),
                Line::TooLong(id) => {
                    let known = id.is_some_and(|id| self.waiting.reply(id, Reply::TooLong));
                    tracing::debug!(server = self.ears.server(), known, "a line is too long");
                }
            }
        }
    }

    fn hear(&self, line: &[u8]) {
        let messages = message::read(line);
        if messages.is_empty() && !line.trim_ascii().is_empty() {
            self.hear_noise(line);
        }
        for message in messages {
            match message {
                Message::Answer(answer) => {
                    let id = answer.id;
                    if !self.waiting.answer(answer) {
                        let server = self.ears.server();
                        tracing::debug!(server, ?id, "nobody waits for an answer");
                    }
                }
                Message::Request { id, method, params } => {
                    let answer = self.ears.asked(id, method, params.as_deref(), Place::Open);
                    if answer.is_some_and(|it| self.queue.try_send(as_line(it)).is_err()) {
                        let server = self.ears.server();
                        tracing::debug!(server, "it doesn't read our answers");
                    }
                }
                Message::Notification { method, params } => {
                    self.ears.hear(&method, params.as_deref(), Place::Open);
                }
            }
        }
    }

    /// Keeps what is no message: many programs say here, and not where errors belong, why they won't run.
    fn hear_noise(&self, line: &[u8]) {
        self.tail.push(line);
        self.tail.push(b"\n");
        let text = String::from_utf8_lossy(line);
        let text = self.ears.masks().beginning(&text, LONGEST_NOISE);
        tracing::debug!(server = self.ears.server(), text, "a line is no message");
    }
}

/// Sees a program to its end.
struct Supervisor {
    process: Process,
    streams: JoinSet<()>,
    /// Cancelled when the program can't be told anything any more.
    deaf: CancellationToken,
    /// Cancelled when the program says nothing any more.
    mute: CancellationToken,
    stop: CancellationToken,
    ears: Arc<Ears>,
    waiting: Arc<Waiting>,
    tail: Arc<Tail>,
    ended: DropGuard,
}

impl Supervisor {
    async fn supervise(mut self) {
        let how = tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            status = self.process.ended() => Some(match status {
                Ok(status) => how_it_ended(status),
                Err(_) => "ended".to_owned(),
            }),
            // A program that is about to end closes these first.
            () = self.mute.cancelled() => Some(self.how_it_ends("closed its output").await),
            () = self.deaf.cancelled() => Some(self.how_it_ends("closed its input").await),
        };
        // Closes the input, if that is not how it ended.
        self.stop.cancel();
        self.process.stop().await;
        self.process.kill_group();
        // What it said last may still be on its way.
        let streams = async { while self.streams.join_next().await.is_some() {} };
        let _ = timeout(LAST_MOMENTS, streams).await;
        self.waiting.end(&match how {
            Some(how) => Ending::Ended {
                how,
                said: self.tail.shown(self.ears.masks()),
            },
            None => Ending::Closed,
        });
        drop(self.ended);
    }

    async fn how_it_ends(&mut self, otherwise: &str) -> String {
        // Its error output may say why; its end surely does.
        match self.process.ended_soon().await {
            Some(status) => how_it_ended(status),
            None => otherwise.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(as_line(b"[1,\r\n2]".to_vec()), b"[1,  2]\n");
    }
}
