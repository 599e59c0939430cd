//! How long the catalog takes at its real size: `cargo bench -p clopen-mcp --bench catalog`.
//!
//! A registry of 47,547 made-up servers answers on loopback, page by page. It is fetched into a new SQLite database, loaded
//! from there into the index, and searched with words of names and descriptions, rare and common ones, and beginnings of
//! one letter.
#![expect(clippy::print_stdout, reason = "the benchmark prints a table")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use clopen_mcp::{
    catalog::{Client, Filter, Index, Patience, sync},
    store::{Store, now},
};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

const SERVERS: usize = 47_547;
const PAGE: usize = 100;
const SEARCHES: usize = 1_000;

const KINDS: [&str; 12] = [
    "fast", "tiny", "smart", "open", "secure", "cloud", "local", "team", "simple", "deep", "blue",
    "quick",
];
const THINGS: [&str; 24] = [
    "weather", "calendar", "mail", "invoice", "search", "browser", "files", "postgres", "redis",
    "kafka", "git", "issues", "slack", "notes", "docs", "maps", "speech", "video", "metrics",
    "logs", "deploy", "docker", "billing", "flights",
];
const DEEDS: [&str; 8] = [
    "Search", "Read", "Manage", "Sync", "Query", "Create", "Inspect", "Convert",
];

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let at = usize::try_from(self.0 >> 33).expect("31 bits fit");
        words[at % words.len()]
    }
}

fn entry(number: usize, random: &mut Random) -> Value {
    let thing = random.of(&THINGS);
    let (owner, kind) = (random.of(&KINDS), random.of(&KINDS));
    let package = json!({
        "registryType": random.of(&["npm", "npm", "pypi", "oci", "cargo"]),
        "identifier": format!("{thing}-{number}-mcp"),
        "version": "1.0.0",
        "environmentVariables": [{ "name": "API_KEY", "isRequired": true, "isSecret": true }],
    });
    json!({
        "server": {
            "name": format!("io.github.{owner}{}{}/{kind}-{thing}-mcp{number}", random.of(&THINGS), number % 997),
            "title": format!("{thing} {kind}"),
            "description": format!("{} {thing} and {} from your agent.", random.of(&DEEDS), random.of(&THINGS)),
            "version": "1.0.0",
            "packages": [package],
            "remotes": [{ "type": "streamable-http", "url": format!("https://{thing}{number}.example.org/mcp") }],
        },
        "_meta": { "io.modelcontextprotocol.registry/official": {
            "status": "active", "updatedAt": "2026-11-01T00:00:00Z", "isLatest": true,
        }},
    })
}

/// Serves pages on kept connections.
async fn serve(listener: TcpListener, pages: Arc<Vec<String>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let pages = pages.clone();
        tokio::spawn(async move { answer(BufReader::new(stream), &pages).await });
    }
}

async fn answer(mut stream: BufReader<TcpStream>, pages: &[String]) -> Option<()> {
    loop {
        let mut first = String::new();
        stream.read_line(&mut first).await.ok()?;
        let mut line = first.clone();
        while line.trim() != "" {
            line.clear();
            stream.read_line(&mut line).await.ok()?;
        }
        let cursor = first.split("cursor=").nth(1);
        let number = cursor.map_or("0", |it| it.split([' ', '&']).next().unwrap_or(it));
        let page = pages.get(number.parse::<usize>().ok()?)?;
        // In one piece, which waits for no acknowledgement.
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{page}",
            page.len()
        );
        stream.get_mut().write_all(answer.as_bytes()).await.ok()?;
    }
}

fn pages() -> Vec<String> {
    let mut random = Random(1);
    let entries: Vec<Value> = (0..SERVERS).map(|it| entry(it, &mut random)).collect();
    let pages = entries.chunks(PAGE).count();
    let page = |(number, entries): (usize, &[Value])| {
        let next = (number + 1 < pages).then(|| (number + 1).to_string());
        json!({ "servers": entries, "metadata": { "nextCursor": next } }).to_string()
    };
    entries.chunks(PAGE).enumerate().map(page).collect()
}

fn client(url: &str) -> Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Client::new("official", url, None, &tls, Patience::SHORT).expect("the address is right")
}

fn row(what: &str, took: Duration) {
    println!("| {what} | {:.3} ms |", took.as_secs_f64() * 1_000.0);
}

async fn fetched(store: &Store) {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    tokio::spawn(serve(listener, Arc::new(pages())));
    let client = client(&format!("http://{address}"));
    let start = Instant::now();
    let synced = sync(&client, store, false, now(), |_| ())
        .await
        .expect("it is fetched");
    assert_eq!(synced.kept, SERVERS);
    row("fetch all from loopback into SQLite", start.elapsed());
}

async fn loaded(store: &Store) -> Index {
    let start = Instant::now();
    let servers = store.catalog("official").await.expect("they are there");
    row("load all from SQLite", start.elapsed());
    let start = Instant::now();
    let index = Index::new(servers);
    row("put the index together", start.elapsed());
    index
}

fn searched(index: &Index, what: &str, query: impl Fn(&mut Random) -> String) {
    let mut random = Random(7);
    let mut times = Vec::new();
    for _ in 0..SEARCHES {
        let query = query(&mut random);
        let start = Instant::now();
        black_box(index.search(&query, &Filter::default(), 20));
        times.push(start.elapsed());
    }
    times.sort();
    row(&format!("search {what}, p50"), times[SEARCHES / 2]);
    row(&format!("search {what}, p99"), times[SEARCHES * 99 / 100]);
}

#[tokio::main]
async fn main() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let store = Store::open(folder.path(), None)
        .await
        .expect("it can be opened");
    fetched(&store).await;
    let index = loaded(&store).await;
    searched(&index, "one word", |it| it.of(&THINGS).to_owned());
    searched(&index, "two words", |it| {
        format!("{} {}", it.of(&THINGS), it.of(&KINDS))
    });
    searched(&index, "what all have", |_| "mcp agent".to_owned());
    searched(&index, "a letter", |it| {
        it.of(&["s", "m", "i", "d"]).to_owned()
    });
}
