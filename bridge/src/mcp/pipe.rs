//! MCP over standard input and output: a message a line, one client, both eras.

use super::{
    Door, legacy, methods, modern,
    rpc::{self, INVALID_REQUEST, Incoming, Message, Notification, RpcError},
    session::Session,
    stream::Exchange,
};
use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::mpsc,
    task::JoinSet,
};
use tool_runtime::{Caller, Cancellation};

/// How many messages may wait to be written.
const WAITING: usize = 256;

/// Calls under way without a session, by the JSON of their id.
type Running = Arc<Mutex<HashMap<String, Cancellation>>>;

/// Serves a client until it closes its end; calls under way then end first.
pub(super) async fn serve(
    door: Arc<Door>,
    caller: Arc<Caller>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    door.dispatcher.enter(&caller).await;
    let (out, lines) = mpsc::channel(WAITING);
    let writer = tokio::spawn(write(lines, output));
    let mut calls = JoinSet::new();
    let mut pipe = Pipe {
        door,
        caller,
        session: None,
        running: Running::default(),
        out,
    };
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).await? > 0 {
        if !line.trim_ascii().is_empty() {
            pipe.take(line.trim_ascii(), &mut calls).await;
        }
        line.clear();
        while calls.try_join_next().is_some() {}
    }
    // Listening has no end of its own.
    pipe.door.closed.cancel();
    while calls.join_next().await.is_some() {}
    drop(pipe);
    writer.await.map_err(io::Error::other)?
}

async fn write(
    mut lines: mpsc::Receiver<Vec<u8>>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        output.write_all(&line).await?;
        output.flush().await?;
    }
    Ok(())
}

struct Pipe {
    door: Arc<Door>,
    caller: Arc<Caller>,
    session: Option<Arc<Session>>,
    running: Running,
    out: mpsc::Sender<Vec<u8>>,
}

impl Pipe {
    async fn take(&mut self, line: &[u8], calls: &mut JoinSet<()>) {
        match rpc::parse(line) {
            Ok(Incoming::One(message)) => self.one(message, calls).await,
            Ok(Incoming::Batch(messages)) => {
                for message in messages {
                    match message {
                        Ok(message) => self.one(message, calls).await,
                        Err(refused) => self.refuse(&refused).await,
                    }
                }
            }
            Err(refused) => self.refuse(&refused).await,
        }
    }

    async fn one(&mut self, message: Message, calls: &mut JoinSet<()>) {
        let request = match message {
            Message::Request(request) => request,
            Message::Notification(it) if self.session.is_none() => {
                self.cancel(&it);
                return;
            }
            other => {
                if let Some(session) = &self.session {
                    legacy::take(&self.door, &self.caller, session, other);
                }
                return;
            }
        };
        let says_version = modern::says_version(request.params.as_deref());
        let exchange = if request.method == "initialize" && !says_version {
            let opened = legacy::initialize(&self.door, &self.caller, &request).await;
            let outcome = opened.map(|(session, result)| {
                calls.spawn(forward(
                    session.open_stream(),
                    self.out.clone(),
                    self.door.clone(),
                ));
                self.session = Some(session);
                result
            });
            Exchange::known(request.id, outcome)
        } else if let (Some(session), false) = (&self.session, says_version) {
            let message = Message::Request(request);
            match legacy::take(&self.door, &self.caller, session, message) {
                Some(exchange) => exchange,
                None => return,
            }
        } else if says_version || request.method == "server/discover" {
            match modern::in_body(&self.door, &self.caller, &request) {
                Ok(peer) => methods::exchange(&self.door, &peer, request),
                Err(error) => Exchange::known(request.id, Err(error)),
            }
        } else {
            let message = "send `initialize` first, or the `_meta` of 2026-07-28";
            Exchange::known(request.id, Err(RpcError::new(INVALID_REQUEST, message)))
        };
        calls.spawn(run(exchange, self.out.clone(), self.running.clone()));
    }

    fn cancel(&self, notification: &Notification) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cancellation) = notification.taken_back().and_then(|it| running.get(it)) {
            cancellation.cancel();
        }
    }

    async fn refuse(&self, refused: &rpc::Refused) {
        let answer = rpc::error_answer(refused.id.as_deref(), &refused.error);
        let _ = self.out.send(answer).await;
    }
}

/// Writes what belongs to no request, until the door closes.
async fn forward(
    mut messages: mpsc::Receiver<Vec<u8>>,
    out: mpsc::Sender<Vec<u8>>,
    door: Arc<Door>,
) {
    loop {
        tokio::select! {
            Some(message) = messages.recv() => drop(out.send(message).await),
            () = door.closed.cancelled() => return,
        }
    }
}

/// Writes the messages of an exchange and at last its answer, unless it is taken back.
async fn run(mut exchange: Exchange, out: mpsc::Sender<Vec<u8>>, running: Running) {
    let key = exchange.id.get().to_owned();
    let cancellation = exchange.cancellation.clone();
    let held = |change: &dyn Fn(&mut HashMap<String, Cancellation>)| {
        change(&mut running.lock().unwrap_or_else(PoisonError::into_inner));
    };
    held(&|it| drop(it.insert(key.clone(), cancellation.clone())));
    let outcome = loop {
        tokio::select! {
            biased;
            Some(message) = exchange.inbox.recv() => drop(out.send(message).await),
            outcome = &mut exchange.work => break Some(outcome),
            () = cancellation.cancelled() => break None,
        }
    };
    held(&|it| drop(it.remove(&key)));
    while let Ok(message) = exchange.inbox.try_recv() {
        let _ = out.send(message).await;
    }
    if let Some(outcome) = outcome.filter(|_| !cancellation.is_cancelled()) {
        let _ = out.send(rpc::answer(&exchange.id, &outcome)).await;
    }
}
