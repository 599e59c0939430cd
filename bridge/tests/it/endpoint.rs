//! A server of HTTP that says exactly what a test wants, byte for byte.

use clopen_mcp::upstream::{Address, Connector, Era, Limits, Opening};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc::UnboundedReceiver,
    time::sleep,
};

/// What the server was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Says whether it is a request or a notification of this method.
    pub(crate) fn is(&self, method: &str) -> bool {
        self.body.contains(&format!(r#""method":"{method}""#))
    }
}

/// What it answers: the bytes, in pieces, and whether the connection stays open then.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) hangs: bool,
    /// More pieces, as they come.
    pub(crate) more: Option<UnboundedReceiver<Vec<u8>>>,
}

impl Answer {
    pub(crate) fn new(status: &str, headers: &[&str], body: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
        for header in headers {
            head.extend([header, "\r\n"]);
        }
        head += "\r\n";
        Self {
            pieces: vec![head.into_bytes(), body.as_bytes().to_vec()],
            hangs: false,
            more: None,
        }
    }

    pub(crate) fn json(body: &str) -> Self {
        Self::new("200 OK", &["content-type: application/json"], body)
    }

    pub(crate) fn stream(body: &str) -> Self {
        Self::new(
            "200 OK",
            &["content-type: text/event-stream; charset=utf-8"],
            body,
        )
    }

    /// An answer to a request whose id is put in by [`session`].
    pub(crate) fn result(result: &Value) -> Self {
        Self::json(&json!({ "jsonrpc": "2.0", "id": "ID", "result": result }).to_string())
    }

    fn to(mut self, id: &Value) -> Self {
        for piece in &mut self.pieces {
            if let Ok(text) = std::str::from_utf8(piece) {
                *piece = text.replace("\"ID\"", &id.to_string()).into_bytes();
            }
        }
        self
    }

    pub(crate) fn accepted() -> Self {
        Self::new("202 Accepted", &[], "")
    }

    pub(crate) fn hanging(mut self) -> Self {
        self.hangs = true;
        self
    }
}

/// Answers like a server with sessions: `result` says what a request gives, by its method and parameters.
pub(crate) fn session(
    result: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Asked) -> Answer + Send + Sync + 'static {
    move |asked| {
        let Ok(message) = serde_json::from_str::<Value>(&asked.body) else {
            return Answer::new("405 Method Not Allowed", &[], "");
        };
        let method = message["method"].as_str().unwrap_or_default();
        let answer = match method {
            _ if message["id"].is_null() => return Answer::accepted(),
            "initialize" => Answer::result(&json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            })),
            "server/discover" => Answer::new("400 Bad Request", &[], "no session"),
            _ => result(method, &message["params"]),
        };
        answer.to(&message["id"])
    }
}

/// A server with sessions that lists these tools and answers each call with this result.
pub(crate) async fn serve_tools(tools: Value, result: Value) -> Endpoint {
    let answer = session(move |method, _| match method {
        "tools/list" => Answer::result(&json!({ "tools": tools })),
        _ => Answer::result(&result),
    });
    Endpoint::serve(answer).await
}

/// A running server.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// What was left before it was over.
    left: Arc<Mutex<Vec<Asked>>>,
}

impl Endpoint {
    pub(crate) async fn serve(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let left: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (log, leaving) = (asked.clone(), left.clone());
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, log, leaving) = (answer.clone(), log.clone(), leaving.clone());
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let Some(asked) = read(&mut stream).await else {
                        return;
                    };
                    log.lock().expect("it is free").push(asked.clone());
                    let answer = answer(&asked);
                    for piece in answer.pieces {
                        if stream.get_mut().write_all(&piece).await.is_err() {
                            leaving.lock().expect("it is free").push(asked);
                            return;
                        }
                        let _ = stream.get_mut().flush().await;
                        sleep(Duration::from_millis(2)).await;
                    }
                    let mut more = answer.more;
                    while let Some(more) = &mut more {
                        let Some(piece) = more.recv().await else {
                            return;
                        };
                        if stream.get_mut().write_all(&piece).await.is_err() {
                            return;
                        }
                    }
                    if answer.hangs {
                        // Until the client has enough.
                        let _ = stream.read_u8().await;
                        leaving.lock().expect("it is free").push(asked);
                    }
                });
            }
        });
        Self {
            url: format!("http://{address}/mcp"),
            asked,
            left,
        }
    }

    pub(crate) fn address(&self) -> Address {
        Address::Http {
            url: self.url.clone(),
            headers: BTreeMap::new(),
        }
    }

    /// How often it was asked a method.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.asked().iter().filter(|it| it.is(method)).count()
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("it is free").clone()
    }

    /// Waits until it was asked something.
    pub(crate) async fn was_asked(&self, what: impl Fn(&Asked) -> bool) -> Asked {
        for _ in 0..200 {
            if let Some(asked) = self.asked().into_iter().find(&what) {
                return asked;
            }
            sleep(Duration::from_millis(25)).await;
        }
        panic!("it was only asked {:#?}", self.asked())
    }

    /// Waits until a client has had enough of a hanging answer.
    pub(crate) async fn was_left(&self, what: impl Fn(&Asked) -> bool) {
        self.has_left(|left| left.iter().any(&what)).await;
    }

    /// Waits until so many answers were left.
    pub(crate) async fn were_left(&self, count: usize) {
        self.has_left(|left| left.len() >= count).await;
    }

    async fn has_left(&self, enough: impl Fn(&[Asked]) -> bool) {
        for _ in 0..200 {
            if enough(&self.left.lock().expect("it is free")) {
                return;
            }
            sleep(Duration::from_millis(25)).await;
        }
        panic!("nobody has left")
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok()?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|it| it.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked {
        method,
        path,
        headers,
        body: String::from_utf8(body).ok()?,
    })
}

pub(crate) fn limits() -> Limits {
    Limits {
        connect: Duration::from_secs(20),
        call: Duration::from_secs(20),
        longest: Duration::from_mins(1),
        message: 1024 * 1024,
    }
}

/// What is known of a server with sessions, which is not tried out then.
pub(crate) fn legacy() -> Opening {
    Opening {
        known: Some(Era::Legacy),
        ..Opening::default()
    }
}

/// Connects to what a test serves.
pub(crate) fn connector(limits: Limits) -> Connector {
    let environment = ["PATH", "HOME", "CARGO_MANIFEST_DIR"]
        .map(|name| (name.into(), std::env::var_os(name).unwrap_or_default()));
    connector_in(limits, &environment)
}

/// Connects with just this in the environment.
pub(crate) fn connector_in(limits: Limits, environment: &[(OsString, OsString)]) -> Connector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let environment = environment.iter().cloned();
    let function: [(OsString, OsString); 1] = [("LC_X".into(), "() { :; }".into())];
    Connector::new(limits, environment.chain(function), &tls).expect("it is sound")
}
