//! When requests are meant to leave at a fixed rate, and what their latency is then.
//!
//! A server that stops for a second keeps a client that waits for answers from asking: its latencies tell of one slow
//! request where a thousand clients would have waited (coordinated omission). So each request has a moment when it is meant
//! to leave, whatever the server does, and its latency counts from that moment. Times are spans since the run began, so
//! that tests need no clock.

use std::time::Duration;

/// The moments of one connection: every `count`-th of the run's.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// Nanoseconds between two requests of the whole run.
    period_ns: f64,
    /// The next one's number in the whole run.
    next: u64,
    count: u64,
}

impl Schedule {
    /// Those of connection `number` of `count`, at `rate` requests a second over all of them.
    pub fn new(rate: f64, number: u64, count: u64) -> Schedule {
        Schedule { period_ns: 1e9 / rate, next: number, count }
    }

    /// When the next request is meant to leave.
    pub fn due(&self) -> Duration {
        Duration::from_nanos((self.next as f64 * self.period_ns) as u64)
    }

    fn pass(&mut self) {
        self.next += self.count;
    }

    /// How many are due before `end` and have not left.
    fn late(&self, end: Duration) -> u64 {
        let due_before_end = (end.as_nanos() as f64 / self.period_ns).ceil() as u64;
        due_before_end.saturating_sub(self.next).div_ceil(self.count)
    }
}

/// A stream's request.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    operation: u64,
    /// When it left, and when it was meant to; `None` if there is no request.
    left: Option<(Duration, Duration)>,
}

/// What a request took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Took {
    pub operation: u64,
    /// From the moment it was meant to leave.
    pub latency: Duration,
    /// From the moment it left.
    pub service: Duration,
}

/// The requests that a connection has in flight, a stream each.
#[derive(Debug)]
pub(super) struct InFlight {
    slots: Vec<Slot>,
    /// Streams without a request.
    free: Vec<i16>,
    /// Those that got one and have not been marked as left.
    fresh: Vec<i16>,
    schedule: Option<Schedule>,
}

impl InFlight {
    /// So many streams; without a schedule each sends as soon as it is free.
    pub fn new(streams: i16, schedule: Option<Schedule>) -> InFlight {
        let slots = vec![Slot::default(); usize::try_from(streams).unwrap_or(0)];
        InFlight { slots, free: (0..streams).rev().collect(), fresh: Vec::new(), schedule }
    }

    /// How many streams there are.
    pub fn streams(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// A stream whose request may leave now.
    #[inline]
    pub fn take(&mut self, now: Duration) -> Option<i16> {
        let mut meant = now;
        if let Some(schedule) = &self.schedule {
            meant = schedule.due();
            if meant > now || self.free.is_empty() {
                return None;
            }
        }
        let stream = self.free.pop()?;
        if let Some(schedule) = &mut self.schedule {
            schedule.pass();
        }
        if let Some(slot) = self.slots.get_mut(stream as usize) {
            slot.left = Some((now, meant));
        }
        self.fresh.push(stream);
        Some(stream)
    }

    /// What a stream that was taken sends.
    #[inline]
    pub fn carries(&mut self, stream: i16, operation: u64) {
        if let Some(slot) = self.slots.get_mut(stream as usize) {
            slot.operation = operation;
        }
    }

    /// Gives a stream back that was taken last and sends nothing.
    pub fn give_back(&mut self, stream: i16) {
        self.fresh.pop();
        self.free.push(stream);
    }

    /// All that were taken leave now. Without a schedule they were meant to.
    #[inline]
    pub fn leave(&mut self, now: Duration) {
        let is_free = self.schedule.is_none();
        for stream in self.fresh.drain(..) {
            if let Some(Slot { left: Some((left, meant)), .. }) = self.slots.get_mut(stream as usize) {
                *left = now;
                if is_free {
                    *meant = now;
                }
            }
        }
    }

    /// An answer on a stream; nothing if it has no request.
    #[inline]
    pub fn answered(&mut self, stream: i32, now: Duration) -> Option<Took> {
        let at = usize::try_from(stream).ok()?;
        let slot = self.slots.get_mut(at)?;
        let (left, meant) = slot.left.take()?;
        // A slot's number was a stream's.
        self.free.push(stream as i16);
        let since = |moment| now.saturating_sub(moment);
        Some(Took { operation: slot.operation, latency: since(meant), service: since(left) })
    }

    /// When the next request is meant to leave, if a stream waits for that.
    pub fn due(&self) -> Option<Duration> {
        let schedule = self.schedule.as_ref()?;
        (!self.free.is_empty()).then(|| schedule.due())
    }

    /// How many requests were due before `end` and have not left.
    pub fn late(&self, end: Duration) -> u64 {
        self.schedule.as_ref().map_or(0, |schedule| schedule.late(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A connection of `streams` to a server that answers one request a millisecond, in order, and nothing from second 2 to
    /// 3, for ten seconds of a clock of this test's own: latencies and services.
    fn with_a_pause(streams: i16, schedule: Option<Schedule>) -> (Vec<Duration>, Vec<Duration>) {
        let mut in_flight = InFlight::new(streams, schedule);
        let mut queue = std::collections::VecDeque::new();
        let (mut latencies, mut services) = (Vec::new(), Vec::new());
        for tick in 0..10_000 {
            let now = MS * tick;
            let answers = usize::from(!(2_000..3_000).contains(&tick));
            for stream in queue.drain(..answers.min(queue.len())) {
                let took = in_flight.answered(i32::from(stream), now).unwrap();
                latencies.push(took.latency);
                services.push(took.service);
            }
            while let Some(stream) = in_flight.take(now) {
                in_flight.carries(stream, 0);
                queue.push_back(stream);
            }
            in_flight.leave(now);
        }
        (latencies, services)
    }

    fn longer_than(spans: &[Duration], least: Duration) -> usize {
        spans.iter().filter(|span| **span >= least).count()
    }

    #[test]
    fn at_a_fixed_rate_everyone_who_would_have_waited_for_a_pause_is_counted() {
        let (latencies, services) = with_a_pause(1, Some(Schedule::new(500.0, 0, 1)));
        // Half of the server's rate: half a second makes up for the second that was lost, and every request of the pause
        // waits for what is left of it and for those before it.
        assert!(latencies.len() >= 4_990, "{}", latencies.len());
        assert_eq!(longer_than(&services, 100 * MS), 1, "the client itself has seen one");
        let waited = longer_than(&latencies, 100 * MS);
        assert!((850..=950).contains(&waited), "{waited}");
        assert_eq!(latencies.iter().max(), services.iter().max());
    }

    #[test]
    fn without_a_rate_a_pause_is_seen_by_those_in_flight_alone() {
        let (latencies, services) = with_a_pause(4, None);
        assert_eq!(longer_than(&latencies, 100 * MS), 4);
        assert_eq!(latencies, services);
    }

    #[test]
    fn connections_share_the_moments_out_among_them() {
        let mut all: Vec<Duration> = Vec::new();
        for number in 0..3 {
            let mut schedule = Schedule::new(1_000.0, number, 3);
            for _ in 0..4 {
                all.push(schedule.due());
                schedule.pass();
            }
        }
        all.sort_unstable();
        assert_eq!(all, (0..12).map(|at| MS * at).collect::<Vec<_>>());
    }

    #[test]
    fn what_has_not_left_when_its_time_is_over_is_late() {
        let mut in_flight = InFlight::new(2, Some(Schedule::new(1_000.0, 0, 1)));
        assert_eq!(in_flight.take(Duration::ZERO), Some(0));
        assert_eq!(in_flight.take(Duration::ZERO), None, "the second is due after a millisecond");
        assert_eq!(in_flight.due(), Some(MS));
        assert_eq!(in_flight.take(MS), Some(1));
        assert_eq!((in_flight.take(5 * MS), in_flight.due()), (None, None));
        assert_eq!(in_flight.late(5 * MS), 3, "those of milliseconds 2, 3 and 4");
        assert_eq!(in_flight.answered(1, 7 * MS).unwrap().latency, 6 * MS);
        assert_eq!(in_flight.answered(1, 7 * MS), None);
    }
}
