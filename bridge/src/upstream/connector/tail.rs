//! Keeps the end of what a program says.

use super::mask::Masks;
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// How many bytes are kept.
const KEPT: usize = 8 * 1024;
/// How many letters of them stand in an error.
const SHOWN: usize = 1_000;

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// Whether there were more.
    is_cut: bool,
}

impl Tail {
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = &bytes[bytes.len().saturating_sub(KEPT)..];
        let surplus = (kept.bytes.len() + last.len()).saturating_sub(KEPT);
        kept.is_cut |= surplus > 0 || last.len() < bytes.len();
        kept.bytes.drain(..surplus);
        kept.bytes.extend(last);
    }

    /// Returns the end of what was said, fit to be shown.
    pub(super) fn shown(&self, masks: &Masks) -> String {
        let (bytes, is_cut) = {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            (kept.bytes.iter().copied().collect::<Vec<u8>>(), kept.is_cut)
        };
        masks.end(&String::from_utf8_lossy(&bytes), is_cut, SHOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept() {
        let tail = Tail::default();
        tail.push(&[b'a'; KEPT]);
        tail.push(b"b");
        tail.push(&[b'c'; 3]);
        assert!(tail.shown(&Masks::default()).ends_with("aabccc"));
        tail.push(&[b'd'; 2 * KEPT]);
        assert_eq!(tail.0.lock().expect("it is free").bytes.len(), KEPT);
        assert_eq!(
            tail.shown(&Masks::default()),
            format!("…{}", "d".repeat(SHOWN))
        );
    }
}
