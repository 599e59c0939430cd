//! `clopen-mcp servers check`: what is wrong with external servers, and what to do.

use super::{ExternalServer, Failure, NO, Upstreams, approve, in_full, no_such, print, print_json};
use crate::upstream::{Finding, Held, Probe};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::json;
use std::{process::ExitCode, time::Duration};
use tokio::time::timeout;

/// How long a server that works may take to tell everything else that it offers.
const TO_LIST: Duration = Duration::from_secs(5);

/// What came of one server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked {
    #[serde(flatten)]
    probe: Probe,
    /// How many tools it has, where it works.
    tools: Option<usize>,
    /// What had to be changed or left out of what it lists.
    notes: Vec<String>,
    /// Which of its tools are held back, since they are other than approved.
    held: Vec<Held>,
}

/// Checks one server, or all.
pub(super) async fn run(
    server: Option<&str>,
    json: bool,
    external: &[ExternalServer],
    upstreams: &Upstreams,
) -> Result<ExitCode, Failure> {
    let all = external.iter().map(|it| it.name.as_str());
    let names: Vec<&str> = all
        .filter(|it| server.is_none_or(|named| named == *it))
        .collect();
    if let Some(server) = server.filter(|_| names.is_empty()) {
        return Err(no_such(server, external).into());
    }
    let checked = join_all(names.iter().map(|it| check(it, upstreams))).await;
    upstreams.close().await;
    if json {
        print_json(&json!({ "servers": checked }))?;
    } else if checked.is_empty() {
        print("no external server has been added")?;
    } else {
        for it in &checked {
            show(it)?;
        }
    }
    let all_work = checked.iter().all(|it| it.probe.finding == Finding::Ok);
    Ok(if all_work {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NO)
    })
}

/// Probes a server; what one that works lists is kept.
async fn check(name: &str, upstreams: &Upstreams) -> Checked {
    let probe = upstreams.probe(name).await;
    let works = probe.finding == Finding::Ok;
    let notes = if works {
        match timeout(TO_LIST, upstreams.list(name)).await {
            Ok(Ok(notes)) => notes,
            Ok(Err(error)) => vec![in_full(&error)],
            Err(_) => vec![format!(
                "it does not tell all else that it offers within {TO_LIST:?}; what it told before is kept"
            )],
        }
    } else {
        Vec::new()
    };
    Checked {
        tools: works.then(|| upstreams.count(name)),
        held: upstreams.held(name),
        probe,
        notes,
    }
}

fn show(checked: &Checked) -> Result<(), Failure> {
    let Probe {
        name,
        finding,
        code,
        evidence,
        next,
    } = &checked.probe;
    match checked.tools {
        Some(tools) => print(format!("`{name}` {finding}, with {tools} tools"))?,
        None => print(format!("`{name}` {finding} ({code})"))?,
    }
    if checked.tools.is_none() {
        for line in evidence {
            print(format!("  {line}"))?;
        }
    }
    if let Some(next) = next {
        print(format!("  to do: {next}"))?;
    }
    for note in &checked.notes {
        eprintln!("  {note}");
    }
    for it in &checked.held {
        print(format!("  held back: {}", approve::what(it)))?;
        for line in approve::diff(it) {
            print(format!("    {line}"))?;
        }
    }
    if !checked.held.is_empty() {
        print(format!(
            "  to do: if that is as it should be, `clopen-mcp servers approve {name}`"
        ))?;
    }
    Ok(())
}
