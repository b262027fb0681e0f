//! The loop of one thread: waits for its connections, checks answers, and sends the next requests until the time is up.
//! Each second it hands over its counts.

use super::connection::StressConnection;
use super::cost::{ThreadUse, thread_use};
use super::interrupt::Interrupt;
use super::measure::Tally;
use crate::commands::client::PATIENCE;
use anyhow::{Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// Time between two hand-overs.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// The longest block on a socket, after which the thread checks the time.
const BLOCK: Duration = Duration::from_millis(250);

/// The times at which a run measures and ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<'r> {
    pub begun: Instant,
    /// Answers before this time are not counted.
    pub measure_from: Instant,
    /// No request is sent after this time. `None`: until there are no more requests.
    pub send_until: Option<Instant>,
    /// Whether requests are sent at a fixed rate.
    pub is_paced: bool,
    /// Ends the run early when set.
    pub interrupt: &'r Interrupt,
}

/// The counts of a thread in one second.
#[derive(Debug)]
pub(super) struct Part {
    /// The second since the measurement began; `None` for the time before.
    pub second: Option<u64>,
    /// Whether the thread has ended, perhaps within the second.
    pub is_last: bool,
    pub tally: Tally,
}

/// The totals of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadTotals {
    /// Its use of the CPU during the measurement.
    pub used: ThreadUse,
    /// The duration of its measurement.
    pub wall: Duration,
    /// The time of its last answer.
    pub ended: Instant,
    /// Number of requests that were due and not sent at the end.
    pub late: u64,
}

/// The current second of a thread's run, and its counts.
struct Counting<'t> {
    tally: Tally,
    /// `None` before the measurement.
    second: Option<u64>,
    /// The end of the second.
    ends: Instant,
    told: &'t SyncSender<Part>,
}

impl Counting<'_> {
    /// Hands over the seconds that have ended by `now`. Returns whether the measurement begins with this call.
    fn at(&mut self, now: Instant) -> Result<bool> {
        let mut begins = false;
        while now >= self.ends {
            self.hand_over(false)?;
            begins |= self.second.is_none();
            self.second = Some(self.second.map_or(0, |second| second + 1));
            self.ends += TICK;
        }
        Ok(begins)
    }

    fn hand_over(&mut self, is_last: bool) -> Result<()> {
        let next = self.tally.another()?;
        let tally = std::mem::replace(&mut self.tally, next);
        // If the receiver is gone, it ended with an error of its own.
        let _nobody_listens = self.told.send(Part { second: self.second, is_last, tally });
        Ok(())
    }
}

/// Drives connections to the end. Sends the counts of each second to `told`.
pub(super) fn drive(
    mut connections: Vec<StressConnection<'_>>,
    plan: Plan<'_>,
    tally: Tally,
    told: &SyncSender<Part>,
) -> Result<ThreadTotals> {
    // With one request in flight the thread can only wait for its answer, so a blocking read saves a system call.
    let blocking =
        !plan.is_paced && matches!(connections.as_slice(), [connection] if connection.streams() == 1);
    for connection in &mut connections {
        connection.socket().set_nonblocking(!blocking)?;
        if blocking {
            connection.socket().set_read_timeout(Some(BLOCK))?;
        }
        connection.begin(plan.begun);
        connection.send()?;
    }
    let mut counting = Counting { tally, second: None, ends: plan.measure_from, told };
    let mut used_before = thread_use();
    let mut ready: Vec<PollFlags> = vec![PollFlags::IN; connections.len()];
    let (mut heard, mut late) = (plan.begun, 0);
    loop {
        let now = Instant::now();
        if counting.at(now)? {
            used_before = thread_use();
        }
        if let Some(end) = plan.send_until.filter(|end| now >= *end) {
            late += connections.iter_mut().map(|connection| connection.end(end)).sum::<u64>();
        }
        if plan.interrupt.is_set() {
            // Requests that were due do not count as late after an interrupt.
            connections.iter_mut().for_each(|connection| _ = connection.end(plan.begun));
        }
        if connections.iter().all(StressConnection::is_done) {
            counting.hand_over(true)?;
            let wall = now.saturating_duration_since(plan.measure_from);
            return Ok(ThreadTotals { used: thread_use().since(used_before), wall, ended: now, late });
        }
        if connections.iter().all(StressConnection::is_idle) {
            heard = now; // nothing is awaited
        }
        let silent = now.saturating_duration_since(heard);
        ensure!(silent < PATIENCE, "no answer for {} s", PATIENCE.as_secs());
        if !blocking {
            let until = [Some(counting.ends), plan.send_until.filter(|end| *end > now)];
            let due = connections.iter().filter_map(StressConnection::due).min();
            let until = until.into_iter().chain([due]).flatten().min().unwrap_or(now + TICK);
            wait(&connections, &mut ready, until.saturating_duration_since(now))?;
        }
        for (connection, ready) in connections.iter_mut().zip(&ready) {
            if ready.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP)
                && connection.receive(&mut counting.tally)?
            {
                heard = now;
            }
            if plan.is_paced || !ready.is_empty() {
                connection.send()?;
            }
        }
    }
}

/// Waits until a connection can proceed or `span` has passed. `ready` receives the poll flags of each connection.
fn wait(connections: &[StressConnection<'_>], ready: &mut [PollFlags], span: Duration) -> Result<()> {
    let interest = |connection: &StressConnection<'_>| {
        if connection.wants_to_write() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    };
    let mut sockets: Vec<PollFd<'_>> =
        connections.iter().map(|connection| PollFd::new(connection.socket(), interest(connection))).collect();
    let span = Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(span.subsec_nanos()),
    };
    match poll(&mut sockets, Some(&span)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => bail!("cannot wait for the server: {error}"),
    }
    for (ready, socket) in ready.iter_mut().zip(&sockets) {
        *ready = socket.revents();
    }
    Ok(())
}
