//! The loop of one thread: wait for its connections, judge answers, send the next requests, until the time is up. Each
//! second it hands over what it has counted.

use super::cost::{ThreadUse, thread_use};
use super::interrupt::Interrupt;
use super::lane::Lane;
use super::measure::Tally;
use crate::commands::client::PATIENCE;
use anyhow::{Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// Between two hand-overs.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// Sockets that block are left this often to see what time it is.
const BLOCK: Duration = Duration::from_millis(250);

/// When a run measures and when it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<'r> {
    pub begun: Instant,
    /// Answers before this do not count.
    pub measure_from: Instant,
    /// No request is sent after this; without it, until there are none.
    pub send_until: Option<Instant>,
    /// Whether requests leave at a fixed rate.
    pub is_paced: bool,
    /// Set to end it early.
    pub interrupt: &'r Interrupt,
}

/// What a thread counted in one second.
#[derive(Debug)]
pub(super) struct Part {
    /// Which second since the measurement began; `None` for all before it.
    pub second: Option<u64>,
    /// Whether the thread has ended, perhaps before the second.
    pub is_last: bool,
    pub tally: Tally,
}

/// What a thread did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driven {
    /// What it used while it measured.
    pub used: ThreadUse,
    /// For how long it measured.
    pub wall: Duration,
    /// When its last answer came.
    pub ended: Instant,
    /// Requests that were due and had not left at the end.
    pub late: u64,
}

/// The seconds of a thread's run, and what it counts in the one that is under way.
struct Counting<'t> {
    tally: Tally,
    /// `None` before the measurement.
    second: Option<u64>,
    /// When this one ends.
    ends: Instant,
    told: &'t SyncSender<Part>,
}

impl Counting<'_> {
    /// Hands over what is over at `now`. Whether the measurement has begun just now.
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
        // Who listened has ended with an error of its own.
        let _nobody_listens = self.told.send(Part { second: self.second, is_last, tally });
        Ok(())
    }
}

/// Drives connections to the end; `told` gets what each second has brought.
pub(super) fn drive(
    mut lanes: Vec<Lane<'_>>,
    plan: Plan<'_>,
    tally: Tally,
    told: &SyncSender<Part>,
) -> Result<Driven> {
    // With one request in flight there is nothing to wait for but its answer: a blocking read spares a call.
    let blocking = !plan.is_paced && matches!(lanes.as_slice(), [lane] if lane.streams() == 1);
    for lane in &mut lanes {
        lane.socket().set_nonblocking(!blocking)?;
        if blocking {
            lane.socket().set_read_timeout(Some(BLOCK))?;
        }
        lane.begin(plan.begun);
        lane.send()?;
    }
    let mut counting = Counting { tally, second: None, ends: plan.measure_from, told };
    let mut used_before = thread_use();
    let mut ready: Vec<PollFlags> = vec![PollFlags::IN; lanes.len()];
    let (mut heard, mut late) = (plan.begun, 0);
    loop {
        let now = Instant::now();
        if counting.at(now)? {
            used_before = thread_use();
        }
        if let Some(end) = plan.send_until.filter(|end| now >= *end) {
            late += lanes.iter_mut().map(|lane| lane.end(end)).sum::<u64>();
        }
        if plan.interrupt.is_set() {
            // What was due does not count as late: nobody wants it any more.
            lanes.iter_mut().for_each(|lane| _ = lane.end(plan.begun));
        }
        if lanes.iter().all(Lane::is_done) {
            counting.hand_over(true)?;
            let wall = now.saturating_duration_since(plan.measure_from);
            return Ok(Driven { used: thread_use().since(used_before), wall, ended: now, late });
        }
        if lanes.iter().all(Lane::is_idle) {
            heard = now; // nothing is awaited
        }
        let silent = now.saturating_duration_since(heard);
        ensure!(silent < PATIENCE, "no answer for {} s", PATIENCE.as_secs());
        if !blocking {
            let until = [Some(counting.ends), plan.send_until.filter(|end| *end > now)];
            let due = lanes.iter().filter_map(Lane::due).min();
            let until = until.into_iter().chain([due]).flatten().min().unwrap_or(now + TICK);
            wait(&lanes, &mut ready, until.saturating_duration_since(now))?;
        }
        for (lane, ready) in lanes.iter_mut().zip(&ready) {
            if ready.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP)
                && lane.receive(&mut counting.tally)?
            {
                heard = now;
            }
            if plan.is_paced || !ready.is_empty() {
                lane.send()?;
            }
        }
    }
}

/// Waits until a lane can go on or a span is over; `ready` says how each can.
fn wait(lanes: &[Lane<'_>], ready: &mut [PollFlags], span: Duration) -> Result<()> {
    let interest = |lane: &Lane<'_>| {
        if lane.wants_to_write() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    };
    let mut sockets: Vec<PollFd<'_>> =
        lanes.iter().map(|lane| PollFd::new(lane.socket(), interest(lane))).collect();
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
