//! The attempts of one request that reads of a cluster: a failure that passes is answered by asking again, a bounded number of times.

use helenus_cluster::ClusterError;
use std::time::Duration;

/// Attempts of one request.
const ATTEMPTS: u32 = 8;
/// The first and the longest pause between them.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The attempts of one request.
pub(crate) struct Attempts {
    failed: u32,
    pause: Duration,
}

impl Attempts {
    /// None is made yet.
    pub(crate) fn new() -> Attempts {
        Attempts { failed: 0, pause: PAUSES.0 }
    }

    /// The pause before the next attempt.
    ///
    /// # Errors
    /// This failure, if it does not pass, or was the last attempt.
    pub(crate) fn after(&mut self, error: ClusterError) -> Result<Duration, ClusterError> {
        self.failed += 1;
        if self.failed >= ATTEMPTS || !error.may_repeat(true) {
            return Err(error);
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSES.1);
        Ok(pause)
    }
}
