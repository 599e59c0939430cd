//! `clopen-mcp doctor`: checks the whole path and says what to do.

use super::{Failure, NO, connect::local_url, engines, in_full, print, print_json};
use crate::{
    app::{self, StartError},
    config::Config,
    engines::{ENGINES, Engine},
    mcp::DOCTOR,
    secret::Secret,
    skills::{PAGE_SIZE, Skills},
    store::{DatabaseError, Store, Switch, service_token},
    upstream::Upstreams,
};
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, process::ExitCode, sync::Arc, time::Duration};
use tool_runtime::{NAMESPACE, Shown};

/// How long a bridge on this machine may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What came of one check.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    state: State,
    says: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    /// Not as it could be; nothing is broken.
    Note,
    Bad,
}

impl Finding {
    fn good(check: &'static str, says: impl Into<String>) -> Self {
        Self {
            check,
            state: State::Good,
            says: says.into(),
        }
    }

    fn note(check: &'static str, says: impl Into<String>) -> Self {
        Self {
            state: State::Note,
            ..Self::good(check, says)
        }
    }

    fn bad(check: &'static str, says: impl Into<String>) -> Self {
        Self {
            state: State::Bad,
            ..Self::good(check, says)
        }
    }
}

pub(super) async fn run(
    doctor: &Doctor,
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<ExitCode, Failure> {
    let mut findings = vec![settings(config)];
    let (switches, kept) = store(config).await;
    findings.extend(servers(config, variables, &switches).await);
    findings.extend(skills(config));
    findings.push(kept);
    let (token, finding) = token(config);
    findings.push(finding);
    let bridge = bridge(&local_url(config), token.as_ref()).await;
    let runs = bridge.state == State::Good;
    findings.push(bridge);
    match connected_engines(config, variables, runs).await {
        Ok(engines) => findings.extend(engines),
        Err(error) => findings.push(Finding::bad("engines", in_full(&*error))),
    }

    let bad = findings.iter().any(|it| it.state == State::Bad);
    if doctor.json {
        print_json(&json!({ "ok": !bad, "findings": findings }))?;
    } else {
        for Finding { check, state, says } in &findings {
            let mark = match state {
                State::Good => "ok ",
                State::Note => "-  ",
                State::Bad => "BAD",
            };
            print(format!("{mark} {check:<9} {says}"))?;
        }
    }
    Ok(if bad {
        ExitCode::from(NO)
    } else {
        ExitCode::SUCCESS
    })
}

fn settings(config: &Config) -> Finding {
    match &config.file {
        Some(file) => Finding::good("settings", format!("read from {}", file.display())),
        None => Finding::good(
            "settings",
            "no settings file; flags, variables and defaults",
        ),
    }
}

async fn servers(
    config: &Config,
    variables: &BTreeMap<String, String>,
    switches: &[Switch],
) -> Vec<Finding> {
    let upstreams = match upstreams(config, variables).await {
        Ok(upstreams) => upstreams,
        Err(error) => return vec![Finding::bad("servers", in_full(&error))],
    };
    let further = upstreams.clone();
    let dispatcher = match app::dispatcher_with(config, variables, switches, further).await {
        Ok(dispatcher) => dispatcher,
        Err(error) => return vec![Finding::bad("servers", in_full(&error))],
    };
    let view = dispatcher.view();
    let figures = view.statistics();
    let says = format!(
        "{} tools of {} servers",
        figures.enabled_tools, figures.enabled_servers
    );
    let mut findings = vec![Finding::good("servers", says)];
    for server in view.servers() {
        if let Some(unavailable) = &server.unavailable {
            let says = format!("`{}` is not available: {}", server.name, unavailable.reason);
            findings.push(Finding::note("server", says));
        }
    }
    findings.extend(
        view.notes()
            .iter()
            .map(|it| Finding::note("tools", it.as_str())),
    );
    let of_external = upstreams.map(|it| it.notes()).unwrap_or_default();
    findings.extend(of_external.into_iter().map(|it| Finding::note("tools", it)));
    findings
}

/// The external servers; `None` where the store doesn't open, which is a finding of its own.
async fn upstreams(
    config: &Config,
    variables: &BTreeMap<String, String>,
) -> Result<Option<Upstreams>, StartError> {
    match Store::open(&config.data, config.database_url.as_ref()).await {
        Ok(store) => app::upstreams(config, variables, &store).await.map(Some),
        Err(_) => Ok(None),
    }
}

fn skills(config: &Config) -> Vec<Finding> {
    let Some(folder) = &config.skills else {
        return Vec::new();
    };
    match Skills::open(folder, PAGE_SIZE) {
        Ok(skills) => {
            let says = format!("read from {}", folder.display());
            let notes = skills.notes().into_iter();
            let notes = notes.map(|it| Finding::note("skills", it));
            std::iter::once(Finding::good("skills", says))
                .chain(notes)
                .collect()
        }
        Err(error) => vec![Finding::bad("skills", in_full(&error))],
    }
}

/// Opens the store; says what the user has switched, and how that went.
async fn store(config: &Config) -> (Vec<Switch>, Finding) {
    let looked = match Store::open(&config.data, config.database_url.as_ref()).await {
        Ok(store) => {
            let looked = look_into(&store).await;
            store.close().await;
            looked.map_err(|error| in_full(&error))
        }
        Err(error) => Err(in_full(&error)),
    };
    match looked {
        Ok((switches, tokens)) => {
            let says = format!("opens; {tokens} tokens besides the service token");
            (switches, Finding::good("store", says))
        }
        Err(says) => (Vec::new(), Finding::bad("store", says)),
    }
}

async fn look_into(store: &Store) -> Result<(Vec<Switch>, usize), DatabaseError> {
    let tokens = store.tokens().await?;
    let live = tokens.iter().filter(|it| it.revoked_at.is_none()).count();
    Ok((store.switches().await?, live))
}

fn token(config: &Config) -> (Option<Secret>, Finding) {
    if config.no_auth {
        return (
            None,
            Finding::note("token", "nobody needs one (`--no-auth`)"),
        );
    }
    if let Some(token) = &config.token {
        return (
            Some(token.clone()),
            Finding::good("token", "from CLOPEN_MCP_TOKEN"),
        );
    }
    match service_token(&config.data) {
        Ok(found) => {
            let says = format!("in {}", found.file.display());
            (Some(found.token), Finding::good("token", says))
        }
        Err(error) => (None, Finding::bad("token", in_full(&error))),
    }
}

/// Goes the way of every connected engine: its file, its token, and the list that the bridge gives it.
async fn connected_engines(
    config: &Config,
    variables: &BTreeMap<String, String>,
    bridge_runs: bool,
) -> Result<Vec<Finding>, Failure> {
    let folders = engines::folders(variables)?;
    let store = Store::open(&config.data, config.database_url.as_ref()).await?;
    let mut findings = Vec::new();
    for engine in ENGINES {
        let state = engines::state(engine, &folders, config, variables, &store).await?;
        let is_asked = bridge_runs && state.problems.is_empty();
        let problems = state.problems.into_iter();
        findings.extend(problems.map(|it| Finding::bad(engine.id, it)));
        for connected in state.connected.iter().filter(|_| is_asked) {
            let file = folders.shown(&connected.file);
            let ours = (NAMESPACE, connected.address.as_ref());
            let external = connected.external.iter();
            let external = external.map(|(name, address)| (name.as_str(), address.as_ref()));
            for (server, address) in std::iter::once(ours).chain(external) {
                let Some(address) = address else { continue };
                let place = if server == NAMESPACE {
                    file.clone()
                } else {
                    format!("{file}, `{server}`")
                };
                findings.push(match listed(address, connected.token.as_ref()).await {
                    Ok(names) => seen_by(engine, server, &place, &names),
                    Err(says) => Finding::bad(engine.id, format!("{place}: {says}")),
                });
            }
        }
    }
    store.close().await;
    Ok(findings)
}

/// What an engine makes of the names that a server gives it.
fn seen_by(engine: &Engine, server: &str, file: &str, names: &[String]) -> Finding {
    let folded = |name: &str| name.replace('-', "_");
    let is_whole = |name: &str| match engine.spelling.of_server(server, name) {
        Shown::As(shown) => folded(&shown).ends_with(&folded(name)),
        _ => false,
    };
    let lost = |name: &&String| !is_whole(name);
    let lost: Vec<String> = names
        .iter()
        .filter(lost)
        .map(|it| format!("`{it}`"))
        .collect();
    if lost.is_empty() {
        let count = names.len();
        return Finding::good(engine.id, format!("{file}: lists {count} tools"));
    }
    let says = format!(
        "{file}: {} leaves out or renames {}",
        engine.title,
        lost.join(", ")
    );
    Finding::bad(engine.id, says)
}

/// Asks the running bridge for its tools.
async fn bridge(url: &str, token: Option<&Secret>) -> Finding {
    match listed(url, token).await {
        Ok(names) => {
            let count = names.len();
            Finding::good("bridge", format!("{url} answers; it lists {count} tools"))
        }
        Err(says) => Finding::bad("bridge", says),
    }
}

/// Returns the names of the tools that somebody gets who comes to this address with this token, as an engine would.
async fn listed(url: &str, token: Option<&Secret>) -> Result<Vec<String>, String> {
    let (status, answer) = match ask(url, token).await {
        Ok(answer) => answer,
        Err(error) if error.is_connect() => {
            return Err(format!(
                "no bridge runs at {url}; start one with `clopen-mcp serve`"
            ));
        }
        Err(error) => return Err(format!("{url}: {}", in_full(&error))),
    };
    let tools = answer.pointer("/result/tools").and_then(Value::as_array);
    match tools {
        Some(tools) => {
            let names = tools.iter().filter_map(|it| it["name"].as_str());
            Ok(names.map(str::to_owned).collect())
        }
        None if status == reqwest::StatusCode::UNAUTHORIZED => Err(format!(
            "{url} refuses the token; it was started with another one (compare CLOPEN_MCP_TOKEN and --data)"
        )),
        None => Err(format!(
            "{url} answers {status}, which is no list of tools; is it a clopen-mcp?"
        )),
    }
}

async fn ask(
    url: &str,
    token: Option<&Secret>,
) -> Result<(reqwest::StatusCode, Value), reqwest::Error> {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(no_tls())
        .timeout(ANSWER)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let request = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {
                "name": DOCTOR,
                "version": env!("CARGO_PKG_VERSION"),
            },
            "io.modelcontextprotocol/clientCapabilities": {},
        } },
    });
    let mut post = client
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/list")
        .json(&request);
    if let Some(token) = token {
        post = post.bearer_auth(token.expose());
    }
    let response = post.send().await?;
    let status = response.status();
    let body = response.text().await?;
    Ok((status, serde_json::from_str(&body).unwrap_or(Value::Null)))
}

/// The bridge listens without TLS, so that no authority needs to be trusted.
fn no_tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of the default versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}
