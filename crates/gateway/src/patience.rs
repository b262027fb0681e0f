//! How long a client's connection waits for its bytes: for the rest of a request that has begun to arrive, and for any request at all.
//!
//! Asked by `connection` before each wait. A server's native protocol has the same limits (`Limits::frame_grace`, `idle_timeout`).

use std::time::Duration;

use tokio::time::Instant;

/// The slowest rate at which a request may arrive, after its grace.
const BYTES_A_SECOND: u64 = 128 << 10;

/// What a connection has waited for.
pub(crate) struct Patience {
    frame_grace: Duration,
    idle_timeout: Option<Duration>,
    /// When bytes arrived last.
    heard: Instant,
    /// When the request began to arrive that is not whole yet, and the bytes that had been received before it.
    begun: Option<(Instant, u64)>,
}

/// The client is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// With the rest of a request.
    Request,
    /// With any request.
    Idle,
}

impl Patience {
    pub fn new(frame_grace: Duration, idle_timeout: Option<Duration>) -> Patience {
        Patience { frame_grace, idle_timeout, heard: tokio::time::Instant::now(), begun: None }
    }

    /// Bytes have arrived.
    pub fn heard(&mut self) {
        self.heard = tokio::time::Instant::now();
    }

    /// The client could not send, because it was not read: its time begins now.
    pub fn restart(&mut self) {
        self.heard();
        self.begun = None;
    }

    /// When the client will be late, and with what. `has_part`: whether a request has begun to arrive and is not whole. `received`: the
    /// bytes received in all.
    pub fn until(&mut self, has_part: bool, received: u64) -> Option<(Instant, Late)> {
        self.begun = has_part.then(|| self.begun.unwrap_or((self.heard, received)));
        let request = self.begun.map(|(since, before)| {
            let for_bytes = Duration::from_secs((received - before) / BYTES_A_SECOND);
            (since + self.frame_grace + for_bytes, Late::Request)
        });
        let idle = self.idle_timeout.map(|timeout| (self.heard + timeout, Late::Idle));
        [request, idle].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn half_a_request_has_its_grace_and_more_for_its_bytes_and_silence_its_time() {
        let second = Duration::from_secs(1);
        let begin = Instant::now();
        let mut patience = Patience::new(10 * second, Some(30 * second));
        assert_eq!(patience.until(false, 0), Some((begin + 30 * second, Late::Idle)));
        patience.heard();
        assert_eq!(patience.until(true, 100), Some((begin + 10 * second, Late::Request)));
        tokio::time::advance(5 * second).await;
        patience.heard();
        // Each byte that trickles in does not begin the grace anew.
        assert_eq!(patience.until(true, 101), Some((begin + 10 * second, Late::Request)));
        assert_eq!(patience.until(true, 100 + (512 << 10)), Some((begin + 14 * second, Late::Request)));
        assert_eq!(patience.until(false, 200), Some((begin + 35 * second, Late::Idle)));
        assert_eq!(Patience::new(second, None).until(false, 0), None);
    }
}
