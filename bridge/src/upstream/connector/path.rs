//! Where programs are looked for.
//!
//! A bridge that was started from a desktop or as a service often has a shorter `PATH` than the person's terminal. What is
//! not found there is looked for where a login shell would.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    process::Stdio,
    time::Duration,
};
use tokio::{process::Command, sync::OnceCell, time::timeout};

/// How long a shell may take to start and to say its `PATH`.
const SHELL: Duration = Duration::from_secs(5);

const PATH: &str = "PATH";

/// The `PATH` of a login shell, which is asked once, if at all.
#[derive(Debug, Default)]
pub(super) struct LoginPath(OnceCell<OsString>);

impl LoginPath {
    /// Returns a longer `PATH` for a program that is in no folder of the one in this environment.
    pub(super) async fn longer(
        &self,
        program: &str,
        environment: &BTreeMap<OsString, OsString>,
    ) -> Option<OsString> {
        let path = environment.get(OsStr::new(PATH)).cloned();
        let path = path.unwrap_or_default();
        if program.contains('/') || has(&path, program) {
            return None;
        }
        let login = self.0.get_or_init(|| of_login_shell(environment)).await;
        if login.is_empty() {
            return None;
        }
        let folders = env::split_paths(&path).chain(env::split_paths(login));
        let mut longer = Vec::new();
        for folder in folders {
            if !longer.contains(&folder) {
                longer.push(folder);
            }
        }
        env::join_paths(longer).ok()
    }
}

fn has(path: &OsStr, program: &str) -> bool {
    env::split_paths(path).any(|it| it.join(program).is_file())
}

/// Asks the person's shell; it may not say.
async fn of_login_shell(environment: &BTreeMap<OsString, OsString>) -> OsString {
    if !cfg!(unix) {
        return OsString::new();
    }
    let shell = environment.get(OsStr::new("SHELL"));
    let shell = shell.map_or(OsStr::new("/bin/sh"), OsString::as_os_str);
    let mut command = Command::new(shell);
    command
        .args(["-l", "-c", "env"])
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let said = timeout(SHELL, command.output()).await;
    let said = said.ok().and_then(Result::ok).map(|it| it.stdout);
    let said = String::from_utf8(said.unwrap_or_default()).unwrap_or_default();
    // Greetings may come first.
    let path = said.lines().rev().find_map(|it| it.strip_prefix("PATH="));
    path.unwrap_or_default().into()
}
