//! Ends the programs that we started where we can't do it any more, since we were killed.
//!
//! The guardian is a shell that waits until its input ends, which happens when we do, however that comes about. It is
//! told the process group of each program, and which have ended. A program that is started in the very moment in which we
//! are killed has no guardian yet: it only finds its input closed.

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

/// Remembers groups until the end of the input; then they are asked to end, and killed a second later.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=
while read -r sign group; do
  others=
  for it in $groups; do [ "$it" = "$group" ] || others="$others $it"; done
  groups=$others
  [ "$sign" = + ] && groups="$groups $group"
done
[ -z "$groups" ] && exit
for it in $groups; do kill -s TERM -- "-$it"; done
sleep 1
for it in $groups; do kill -s KILL -- "-$it"; done
"#;

/// What the shell is called in lists of processes.
const NAME: &str = "clopen-mcp-guardian";

/// Watches over process groups.
#[derive(Debug, Default)]
pub(super) struct Guardian(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    groups: BTreeSet<u32>,
    shell: Option<Child>,
}

impl Guardian {
    /// Has a group ended when we are.
    pub(super) fn guard(&self, group: u32) {
        let mut state = self.state();
        state.groups.insert(group);
        if state.tell('+', group).is_ok() {
            return;
        }
        // There is none yet, or it has been killed itself.
        if let Err(error) = state.start() {
            tracing::warn!(%error, "programs of external servers may outlive a bridge that is killed");
        }
    }

    /// Leaves a group alone that has ended.
    pub(super) fn leave(&self, group: u32) {
        let mut state = self.state();
        if state.groups.remove(&group) {
            // One that is gone has nothing to leave alone.
            let _ = state.tell('-', group);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn start(&mut self) -> io::Result<()> {
        self.end();
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, NAME])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // What is meant for us and all of our group is not meant for it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        self.shell = Some(command.spawn()?);
        for group in self.groups.clone() {
            self.tell('+', group)?;
        }
        Ok(())
    }

    fn tell(&mut self, sign: char, group: u32) -> io::Result<()> {
        let shell = self.shell.as_mut();
        let input = shell.and_then(|it| it.stdin.as_mut());
        let input = input.ok_or(io::ErrorKind::NotConnected)?;
        input.write_all(format!("{sign} {group}\n").as_bytes())
    }

    /// Lets the shell go, which ends by itself.
    fn end(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            drop(shell.stdin.take());
            // Whoever ends must be waited for, and nobody here has the time.
            thread::spawn(move || shell.wait());
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};
    use std::os::unix::process::CommandExt as _;

    fn sleeping() -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").process_group(0);
        command.spawn().expect("it starts")
    }

    #[test]
    fn std_105_a_guardian_that_is_killed_has_a_successor() {
        let guardian = Guardian::default();
        let [one, two, mut other] = [(); 3].map(|()| sleeping());
        guardian.guard(one.id());
        guardian.guard(other.id());
        {
            let mut state = guardian.state();
            let shell = state.shell.as_mut().expect("it was started");
            let pid = i32::try_from(shell.id()).ok().and_then(Pid::from_raw);
            kill_process(pid.expect("it has an id"), Signal::KILL).expect("it lives");
            shell.wait().expect("it ends");
        }
        guardian.guard(two.id());
        guardian.leave(other.id());
        drop(guardian);
        for mut guarded in [one, two] {
            let status = guarded.wait().expect("it ends");
            assert!(!status.success());
        }
        assert!(other.try_wait().expect("it can be asked").is_none());
        other.kill().expect("it lives");
        other.wait().expect("it ends");
    }
}
