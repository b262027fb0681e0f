//! The loop of one thread: wait for its connections, judge answers, send the next requests, until the time is up.

use super::cost::thread_cpu;
use super::lane::Lane;
use super::measure::Tally;
use crate::commands::client::PATIENCE;
use anyhow::{Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// When a run measures and when it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Answers before this do not count.
    pub measure_from: Instant,
    /// No request is sent after this; without it, until there are none.
    pub send_until: Option<Instant>,
}

/// What a thread did.
#[derive(Debug)]
pub(super) struct Driven {
    pub tally: Tally,
    /// CPU time of the thread while it measured.
    pub cpu: Duration,
    /// When its last answer came.
    pub ended: Instant,
}

/// Drives connections to the end.
pub(super) fn drive(mut lanes: Vec<Lane<'_>>, plan: Plan) -> Result<Driven> {
    // With one request in flight there is nothing to wait for but its answer: a blocking read spares a call.
    let blocking = matches!(lanes.as_slice(), [lane] if lane.streams() == 1);
    for lane in &lanes {
        lane.socket().set_nonblocking(!blocking)?;
    }
    let mut tally = Tally::new()?;
    let mut cpu_before = thread_cpu();
    let mut measuring = false;
    for lane in &mut lanes {
        lane.send()?;
    }
    let mut ready: Vec<PollFlags> = vec![PollFlags::IN; lanes.len()];
    loop {
        let now = Instant::now();
        if !measuring && now >= plan.measure_from {
            measuring = true;
            tally.begin();
            cpu_before = thread_cpu();
        }
        if plan.send_until.is_some_and(|end| now >= end) {
            lanes.iter_mut().for_each(Lane::end);
        }
        if lanes.iter().all(Lane::is_idle) {
            return Ok(Driven { tally, cpu: thread_cpu() - cpu_before, ended: now });
        }
        if !blocking {
            wait(&lanes, &mut ready)?;
        }
        for (lane, ready) in lanes.iter_mut().zip(&ready) {
            if ready.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP) {
                lane.receive(&mut tally)?;
            }
            if !ready.is_empty() {
                lane.send()?;
            }
        }
    }
}

/// Waits until a lane can go on; `ready` says how each can.
fn wait(lanes: &[Lane<'_>], ready: &mut [PollFlags]) -> Result<()> {
    let interest = |lane: &Lane<'_>| {
        if lane.wants_to_write() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    };
    let mut sockets: Vec<PollFd<'_>> =
        lanes.iter().map(|lane| PollFd::new(lane.socket(), interest(lane))).collect();
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    loop {
        match poll(&mut sockets, Some(&patience)) {
            Ok(0) => bail!("no answer for {} s", PATIENCE.as_secs()),
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for (ready, socket) in ready.iter_mut().zip(&sockets) {
        *ready = socket.revents();
    }
    Ok(())
}
