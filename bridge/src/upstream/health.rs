//! Whether a server is worth a try: one that fails again and again is left alone for a while, then tried with one call.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// How many failures in a row a server may have before it is left alone.
const FAILURES: u32 = 5;

/// How long it is left alone at first. Each further failure doubles that.
const FIRST_REST: Duration = Duration::from_secs(1);

/// How long it is left alone at most.
const LONGEST_REST: Duration = Duration::from_mins(1);

/// What is known of a server's last answers.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many times in a row it has failed.
    failures: u32,
    rest: Option<Rest>,
}

#[derive(Debug)]
struct Rest {
    until: Instant,
    why: String,
    /// Whether a call tries it at this moment.
    is_tried: bool,
}

/// Why a server is not asked now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resting {
    /// What went wrong the last time.
    pub(super) why: String,
    /// When it is tried again.
    pub(super) wait: Duration,
}

/// The permission to ask a server; what came of it should be told.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    health: &'a Health,
    /// Whether all others wait for what comes of this one.
    is_alone: bool,
}

impl Health {
    /// Lets a call ask the server, or says why it can't.
    pub(super) fn admit(&self) -> Result<Trial<'_>, Resting> {
        let mut state = self.state();
        let is_alone = match &mut state.rest {
            None => false,
            Some(rest) => {
                let wait = rest.until.saturating_duration_since(Instant::now());
                if rest.is_tried || !wait.is_zero() {
                    let why = rest.why.clone();
                    return Err(Resting { why, wait });
                }
                rest.is_tried = true;
                true
            }
        };
        Ok(Trial {
            health: self,
            is_alone,
        })
    }

    /// Forgets all failures: something about the server is new.
    pub(super) fn forget(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trial<'_> {
    /// It has answered.
    pub(super) fn worked(mut self) {
        self.is_alone = false;
        self.health.forget();
    }

    /// It has failed once more.
    pub(super) fn failed(self, why: &str) {
        self.fails(why, 1);
    }

    /// It can't even be started or reached, so that no other call has to find out.
    pub(super) fn failed_to_start(self, why: &str) {
        self.fails(why, FAILURES);
    }

    fn fails(mut self, why: &str, least: u32) {
        self.is_alone = false;
        let mut state = self.health.state();
        state.failures = state.failures.saturating_add(1).max(least);
        let beyond = state.failures.checked_sub(FAILURES);
        state.rest = beyond.map(|beyond| Rest {
            until: Instant::now() + rest(beyond),
            why: why.to_owned(),
            is_tried: false,
        });
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        // Nobody knows what would have come of it: the next call tries.
        if self.is_alone
            && let Some(rest) = &mut self.health.state().rest
        {
            rest.is_tried = false;
        }
    }
}

fn rest(beyond: u32) -> Duration {
    FIRST_REST
        .saturating_mul(2_u32.saturating_pow(beyond))
        .min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resting(health: &Health) -> Option<u64> {
        health.admit().err().map(|it| it.wait.as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_fails_again_and_again_is_left_alone() {
        let health = Health::default();
        for _ in 0..4 {
            health.admit().expect("it is asked").failed("it is slow");
        }
        health.admit().expect("it is asked").worked();
        for _ in 0..5 {
            health.admit().expect("it is asked").failed("it is slow");
        }
        assert_eq!(resting(&health), Some(1));
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            tokio::time::advance(Duration::from_secs(wait)).await;
            let trial = health.admit().expect("it is tried");
            assert_eq!(resting(&health), Some(0), "one call tries it");
            trial.failed("it is slow");
        }
        tokio::time::advance(LONGEST_REST).await;
        health.admit().expect("it is tried").worked();
        assert_eq!(resting(&health), None);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_can_not_start_is_left_alone_at_once() {
        let health = Health::default();
        health.admit().expect("it is asked").failed_to_start("no");
        let resting = health.admit().expect_err("it rests");
        let expected = Resting {
            why: "no".to_owned(),
            wait: FIRST_REST,
        };
        assert_eq!(resting, expected);
        health.forget();
        assert!(health.admit().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_taken_back_decides_nothing() {
        let health = Health::default();
        health.admit().expect("it is asked").failed_to_start("no");
        tokio::time::advance(FIRST_REST).await;
        drop(health.admit().expect("it is tried"));
        assert!(health.admit().is_ok(), "the next call tries it");
    }
}
