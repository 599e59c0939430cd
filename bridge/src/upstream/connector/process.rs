//! A child process with all that it starts: how it ends, and how it is made to.

use super::guardian::Guardian;
use std::{io, process::ExitStatus, sync::Arc, time::Duration};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

/// How long each of the steps towards an end may take.
const STEP: Duration = Duration::from_secs(2);

/// A child that leads a process group of its own. Whatever is left of the group is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) child: Child,
    group: Group,
}

impl Process {
    pub(super) fn spawn(command: &mut Command, guardian: &Arc<Guardian>) -> io::Result<Self> {
        #[cfg(unix)]
        command.process_group(0);
        let child = command.kill_on_drop(true).spawn()?;
        let id = child.id();
        #[cfg(unix)]
        if let Some(id) = id {
            guardian.guard(id);
        }
        let guardian = guardian.clone();
        let group = Group { id, guardian };
        Ok(Self { child, group })
    }

    /// Waits for the end.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Waits for the end, but not for long.
    pub(super) async fn ended_soon(&mut self) -> Option<ExitStatus> {
        timeout(STEP, self.child.wait()).await.ok()?.ok()
    }

    /// Ends a program whose input is closed: it may end by itself, is asked to, is killed.
    pub(super) async fn stop(&mut self) {
        if self.ended_soon().await.is_none() {
            self.group.terminate();
            if self.ended_soon().await.is_none() {
                self.kill_group();
                self.ended_soon().await;
            }
        }
    }

    /// Kills whatever of the group is still there.
    pub(super) fn kill_group(&mut self) {
        self.group.kill();
        // Where there are no groups, only the child itself can be killed; it may be gone.
        let _ = self.child.start_kill();
    }
}

/// The group, by its leader's id. The id is not given to another process while a member lives. After the last one is
/// gone it may be, in theory, which is why a group is killed once at most.
#[derive(Debug)]
struct Group {
    id: Option<u32>,
    guardian: Arc<Guardian>,
}

impl Group {
    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        let id = self.id.and_then(|it| i32::try_from(it).ok());
        if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
            // It fails where nobody is left.
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }

    fn terminate(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    fn kill(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        if let Some(id) = self.id.take() {
            self.guardian.leave(id);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Says how a program ended, to stand after its name.
pub(super) fn how_it_ended(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return format!("was ended by signal {signal}");
        }
    }
    match status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => "ended".to_owned(),
    }
}
