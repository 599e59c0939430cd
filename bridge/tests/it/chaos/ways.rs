//! Small external servers, each good or bad in its own way.

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
    routing::post,
};
use clopen_mcp::upstream::Address;
use futures_util::stream;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    fs,
    future::pending,
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, sleep},
};

/// How long a server that restarts remembers a session.
const REMEMBERS: Duration = Duration::from_millis(300);

/// How often one that floods says that its lists have changed.
const FLOOD: Duration = Duration::from_millis(2);

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Works,
    /// It works without sessions.
    WorksModern,
    /// It is never answered.
    Hangs,
    /// Not even a session can be opened; its list is from better days.
    HangsAtOnce,
    /// Its answer is a stream that says nothing.
    HangsInStream,
    /// The connection is cut within the answer.
    Dies,
    /// It works in a session that is not too old.
    Restarts,
    /// It works, and the server says all the time that its lists have changed: they have, each time.
    Floods,
}

/// A server of HTTP.
pub(super) struct Served {
    pub(super) address: Address,
    accepts: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.accepts.abort();
    }
}

struct Server {
    way: Way,
    sessions: Mutex<HashMap<String, Instant>>,
    count: AtomicU64,
}

/// Serves over HTTP.
pub(super) async fn serve(way: Way) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it listens");
    let server = Arc::new(Server {
        way,
        sessions: Mutex::default(),
        count: AtomicU64::new(0),
    });
    let route = post(answer).get(news).delete(leave);
    let router = Router::new().route("/mcp", route).with_state(server);
    let accepts = tokio::spawn(async move {
        axum::serve(listener, router).await.expect("it serves");
    });
    Served {
        address: Address::Http {
            url: format!("http://{address}/mcp"),
            headers: BTreeMap::new(),
        },
        accepts,
    }
}

async fn answer(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let id = &message["id"];
    let result = match (message["method"].as_str().unwrap_or_default(), server.way) {
        (_, Way::HangsAtOnce) => pending().await,
        ("server/discover", Way::WorksModern) => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
        }),
        ("server/discover", _) => return refused(id),
        ("initialize", _) => return server.welcome(id),
        _ if !server.knows(&headers) => return StatusCode::NOT_FOUND.into_response(),
        ("tools/list", way) => json!({ "resultType": "complete", "tools": server.tools(way) }),
        ("tools/call", Way::Hangs) => pending().await,
        ("tools/call", Way::HangsInStream) => {
            return stream(Body::from_stream(stream::pending::<io::Result<Vec<u8>>>()));
        }
        ("tools/call", Way::Dies) => {
            let start = Ok(b"{\"jsonrpc\":\"2.0\",".to_vec());
            let pieces = [start, Err(io::Error::other("it dies"))];
            return Body::from_stream(stream::iter(pieces)).into_response();
        }
        ("tools/call", _) => {
            json!({ "resultType": "complete", "content": [{ "type": "text", "text": "works" }] })
        }
        _ if id.is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => return refused(id),
    };
    Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response()
}

fn refused(id: &Value) -> Response {
    let error = json!({ "code": -32601, "message": "Method not found" });
    Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_response()
}

fn stream(body: Body) -> Response {
    ([("content-type", "text/event-stream")], body).into_response()
}

impl Server {
    fn welcome(&self, id: &Value) -> Response {
        let session = format!("s-{}", self.count.fetch_add(1, Ordering::Relaxed));
        let now = Instant::now();
        let mut sessions = self.sessions.lock().unwrap();
        sessions.insert(session.clone(), now);
        let changes = self.way == Way::Floods;
        let result = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": { "listChanged": changes } },
            "serverInfo": { "name": "chaos", "version": "1" },
        });
        let answer = Json(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        ([("mcp-session-id", session)], answer).into_response()
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        if self.way == Way::WorksModern {
            return true;
        }
        let session = headers
            .get("mcp-session-id")
            .and_then(|it| it.to_str().ok());
        let sessions = self.sessions.lock().unwrap();
        let opened = session.and_then(|it| sessions.get(it));
        opened.is_some_and(|it| self.way != Way::Restarts || it.elapsed() < REMEMBERS)
    }

    fn tools(&self, way: Way) -> Value {
        let mut tools = vec![tool("a", "Try it.")];
        if way == Way::Floods {
            let count = self.count.fetch_add(1, Ordering::Relaxed);
            tools.push(tool("b", &format!("Try it the {count}th time.")));
        }
        tools.into()
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

/// What a server has listed that can't be asked any more.
pub(super) fn kept() -> Value {
    json!({ "tools": [tool("a", "Try it.")] })
}

async fn news(State(server): State<Arc<Server>>, headers: HeaderMap) -> Response {
    if server.way != Way::Floods || !server.knows(&headers) {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let said = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let event = format!("data: {said}\n\n");
    let flood = stream::unfold((), move |()| {
        let event = event.clone();
        async move {
            sleep(FLOOD).await;
            Some((io::Result::Ok(event), ()))
        }
    });
    stream(Body::from_stream(flood))
}

async fn leave(State(server): State<Arc<Server>>, headers: HeaderMap) -> StatusCode {
    if let Some(session) = headers.get("mcp-session-id") {
        let session = session.to_str().expect("it is ours");
        server.sessions.lock().unwrap().remove(session);
    }
    StatusCode::OK
}

/// A server that is a program: what its script does with a call, after the beginning that all have.
const SCRIPT: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"chaos","version":"1"}}';;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}';;
    *'"tools/call"'*) CALL;;
    *'"notifications/'*) ;;
    *) say '"error":{"code":-32601,"message":"Method not found"}';;
  esac
done
"#;

/// Writes a program.
pub(super) fn program(folder: &Path, name: &str, way: Way) -> Address {
    let call = match way {
        Way::Hangs => "sleep 1000 & wait",
        Way::Dies => "exit 3",
        Way::Floods => {
            r#"say '"result":{"content":[{"type":"text","text":"works"}]}'
               for it in 1 2 3 4 5 6 7 8 9 10; do
                 echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
               done"#
        }
        other => panic!("there is no program that {other:?}"),
    };
    let script = folder.join(format!("{name}.sh"));
    fs::write(&script, SCRIPT.replace("CALL", call)).expect("it can be written");
    command("/bin/sh", &[&script.display().to_string()])
}

/// Our own binary, as a server.
pub(super) fn own(folder: &Path) -> Address {
    let data = folder.join("own").display().to_string();
    command(
        env!("CARGO_BIN_EXE_clopen-mcp"),
        &["stdio", "--data", &data],
    )
}

fn command(program: &str, arguments: &[&str]) -> Address {
    Address::Command {
        program: program.to_owned(),
        arguments: arguments.iter().map(|&it| it.to_owned()).collect(),
        environment: BTreeMap::new(),
        folder: None,
    }
}
