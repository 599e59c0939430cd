//! How much of something is under way (calls, requests), so that a bridge that stops can let it end.

use std::sync::Arc;
use tokio::sync::watch;

/// Counts what is under way. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Gauge(Arc<watch::Sender<usize>>);

/// One more under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Entered(Gauge);

impl Default for Gauge {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Gauge {
    pub(crate) fn enter(&self) -> Entered {
        self.0.send_modify(|count| *count += 1);
        Entered(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until nothing is under way.
    pub(crate) async fn idle(&self) {
        // The sender lives as long as this gauge, so that waiting can't fail.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
