//! Programs whose bridge is gone.

use crate::endpoint::{connector, legacy, limits};
use clopen_mcp::upstream::Address;
use std::{
    collections::BTreeMap,
    env, fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// The variable that makes [`a_host_of_programs`] one; it names a folder.
const FOLDER: &str = "FOLDER_OF_PROGRAMS";
const PROGRAMS: usize = 20;

/// What ends for no end of its input, and for no kind word; its child doesn't either.
fn stubborn(file: &Path) -> Address {
    let script = format!(
        r#"trap '' TERM HUP INT
read -r line; printf '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-06-18"}}}}\n'
sh -c 'trap "" TERM; while :; do sleep 1; done' & echo "$! $$" > '{}'
while :; do sleep 1; done"#,
        file.display()
    );
    Address::Command {
        program: "/bin/sh".to_owned(),
        arguments: vec!["-c".to_owned(), script],
        environment: BTreeMap::new(),
        folder: None,
    }
}

/// Starts programs and waits to be killed; nothing at all where nobody has asked for it.
#[tokio::test]
async fn a_host_of_programs() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let connector = connector(limits());
    let mut clients = Vec::new();
    for n in 0..PROGRAMS {
        let address = stubborn(&Path::new(&folder).join(n.to_string()));
        let client = connector.connect("stubborn", &address, &legacy()).await;
        clients.push(client.expect("it connects"));
    }
    sleep(Duration::from_mins(5)).await;
    drop(clients);
}

/// The ids of all that were started, once they are.
async fn started(folder: &Path) -> Vec<String> {
    for _ in 0..600 {
        let files = (0..PROGRAMS).map(|n| fs::read_to_string(folder.join(n.to_string())));
        let texts: Vec<String> = files.filter_map(Result::ok).collect();
        if texts.len() == PROGRAMS && texts.iter().all(|it| it.ends_with('\n')) {
            let ids = texts.iter().flat_map(|it| it.split_whitespace());
            return ids.map(str::to_owned).collect();
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("not all have started")
}

fn lives(id: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/stat"));
    // A zombie that nobody reaps, where the tests have no init, is gone.
    status.is_ok_and(|it| !it.contains(") Z "))
}

#[tokio::test]
async fn std_105_nothing_outlives_a_bridge_that_is_killed() {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let mut host = Command::new(env::current_exe().expect("it has a path"))
        .args(["--exact", "upstream_orphans::a_host_of_programs"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let ids = started(folder.path()).await;
    assert_eq!(ids.len(), 2 * PROGRAMS);
    assert!(ids.iter().all(|it| lives(it)));
    host.kill().expect("it can be killed");
    host.wait().expect("it ends");
    let start = Instant::now();
    while ids.iter().any(|it| lives(it)) {
        assert!(start.elapsed() < Duration::from_secs(5), "some live");
        sleep(Duration::from_millis(50)).await;
    }
}
