//! A second client that measures the server's response time: short requests one after another, on a permanent
//! connection and on new ones.

use end_to_end::raw::{RESULT, Raw};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum time for a short request, in any build on any machine.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The client, in a thread of its own.
pub struct OtherClient {
    ends: Arc<AtomicBool>,
    waits: Arc<Mutex<Vec<Duration>>>,
    thread: Option<JoinHandle<()>>,
}

/// The durations of its requests.
pub struct Waits(Vec<Duration>);

/// Sends one request: every tenth on a new connection, the others on the permanent one.
fn ask(number: u64, standing: &mut Option<Raw>, address: &str) -> Duration {
    const QUERY: &str = "SELECT key FROM system.local";
    let begin = Instant::now();
    let answered = match number.is_multiple_of(10) {
        true => Raw::try_ready(address, 4).and_then(|mut new| new.try_query(QUERY)),
        false => standing.as_mut().and_then(|client| client.try_query(QUERY)),
    };
    match answered {
        Some(reply) if reply.opcode == RESULT => begin.elapsed(),
        _ => Duration::MAX,
    }
}

impl OtherClient {
    /// The durations of requests while there is no other client.
    pub fn alone(address: &str, count: u64) -> Waits {
        let mut standing = Raw::try_ready(address, 4);
        let mut waits: Vec<Duration> = (0..count).map(|number| ask(number, &mut standing, address)).collect();
        waits.sort_unstable();
        Waits(waits)
    }

    pub fn start(address: &str) -> OtherClient {
        let (ends, waits) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (address, ended, noted) = (address.to_owned(), ends.clone(), waits.clone());
        let thread = std::thread::spawn(move || {
            let mut standing = Raw::try_ready(&address, 4);
            for number in 0_u64.. {
                if ended.load(Ordering::Acquire) {
                    return;
                }
                let took = ask(number, &mut standing, &address);
                noted.lock().unwrap_or_else(PoisonError::into_inner).push(took);
            }
        });
        OtherClient { ends, waits, thread: Some(thread) }
    }

    /// Describes a failure of its last requests, if there was one.
    pub fn problem(&self) -> Option<String> {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        match waits.iter().max() {
            Some(&Duration::MAX) => Some("another client got no answer".to_owned()),
            Some(longest) if *longest > WAIT_MAX => Some(format!("another client waited {longest:?}")),
            _ => None,
        }
    }

    /// Ends the client and returns the durations.
    pub fn finish(mut self) -> Waits {
        self.end();
        let mut waits = std::mem::take(&mut *self.waits.lock().unwrap_or_else(PoisonError::into_inner));
        waits.sort_unstable();
        Waits(waits)
    }

    fn end(&mut self) {
        self.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for OtherClient {
    fn drop(&mut self) {
        self.end();
    }
}

impl Waits {
    /// The quantile of the durations, in thousandths.
    pub fn part(&self, of_thousand: usize) -> Duration {
        self.0.get(self.0.len().saturating_sub(1) * of_thousand / 1000).copied().unwrap_or_default()
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, last] = [500, 990, 1000].map(|part| self.part(part));
        write!(
            f,
            "{} requests, half within {half:?}, 99 % within {most:?}, all within {last:?}",
            self.0.len()
        )
    }
}
