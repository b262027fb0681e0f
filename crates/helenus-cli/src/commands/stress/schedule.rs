//! Schedules requests at a fixed rate, and measures their latency from the scheduled time.
//!
//! A client that waits for answers sends nothing while a server stalls for a second. Its latencies then show one slow
//! request, where a thousand independent clients would have waited (coordinated omission). Therefore each request has a
//! due time that is independent of the server, and its latency counts from that time. Times are durations since the
//! start of the run, so that tests need no clock.

use std::time::Duration;

/// The due times of one connection: every `count`-th request of the run.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// Nanoseconds between two requests of the whole run.
    period_ns: f64,
    /// The number of the next request in the whole run.
    next: u64,
    count: u64,
}

impl Schedule {
    /// The schedule of connection `number` of `count`, at `rate` requests a second over all connections.
    pub fn new(rate: f64, number: u64, count: u64) -> Schedule {
        Schedule { period_ns: 1e9 / rate, next: number, count }
    }

    /// The due time of the next request.
    pub fn due(&self) -> Duration {
        Duration::from_nanos((self.next as f64 * self.period_ns) as u64)
    }

    fn pass(&mut self) {
        self.next += self.count;
    }

    /// The number of requests that are due before `end` and not sent.
    fn late(&self, end: Duration) -> u64 {
        let due_before_end = (end.as_nanos() as f64 / self.period_ns).ceil() as u64;
        due_before_end.saturating_sub(self.next).div_ceil(self.count)
    }
}

/// The request of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    operation: u64,
    /// The times at which the request was sent and was due; `None` without a request.
    left: Option<(Duration, Duration)>,
}

/// The latency of an answered request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Took {
    pub operation: u64,
    /// Time since the request was due.
    pub latency: Duration,
    /// Time since the request was sent.
    pub service: Duration,
}

/// The requests in flight on a connection, one for each stream.
#[derive(Debug)]
pub(super) struct InFlight {
    slots: Vec<Slot>,
    /// Streams without a request.
    free: Vec<i16>,
    /// Streams that were taken and not marked as sent yet.
    fresh: Vec<i16>,
    schedule: Option<Schedule>,
}

impl InFlight {
    /// A set of `streams` streams. Without a schedule, each stream sends as soon as it is free.
    pub fn new(streams: i16, schedule: Option<Schedule>) -> InFlight {
        let slots = vec![Slot::default(); usize::try_from(streams).unwrap_or(0)];
        InFlight { slots, free: (0..streams).rev().collect(), fresh: Vec::new(), schedule }
    }

    /// The number of streams.
    pub fn streams(&self) -> usize {
        self.slots.len()
    }

    /// Whether no request is in flight.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Takes a stream whose request may be sent now.
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

    /// Sets the operation of a taken stream.
    #[inline]
    pub fn carries(&mut self, stream: i16, operation: u64) {
        if let Some(slot) = self.slots.get_mut(stream as usize) {
            slot.operation = operation;
        }
    }

    /// Returns the stream that was taken last and sends nothing.
    pub fn give_back(&mut self, stream: i16) {
        self.fresh.pop();
        self.free.push(stream);
    }

    /// Marks all taken streams as sent now. Without a schedule, this is also their due time.
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

    /// Handles an answer on a stream; `None` if the stream has no request.
    #[inline]
    pub fn answered(&mut self, stream: i32, now: Duration) -> Option<Took> {
        let at = usize::try_from(stream).ok()?;
        let slot = self.slots.get_mut(at)?;
        let (left, meant) = slot.left.take()?;
        // Fits, because slots are numbered by stream.
        self.free.push(stream as i16);
        let since = |moment| now.saturating_sub(moment);
        Some(Took { operation: slot.operation, latency: since(meant), service: since(left) })
    }

    /// The due time of the next request, if a stream is free for it.
    pub fn due(&self) -> Option<Duration> {
        let schedule = self.schedule.as_ref()?;
        (!self.free.is_empty()).then(|| schedule.due())
    }

    /// The number of requests that were due before `end` and not sent.
    pub fn late(&self, end: Duration) -> u64 {
        self.schedule.as_ref().map_or(0, |schedule| schedule.late(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Simulates ten seconds of a connection with `streams` streams to a server that answers one request a millisecond,
    /// in order, and none from second 2 to 3. Returns the latencies and the service times.
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
        // The rate is half of the server's, so the lost second is made up for within another second, and every request
        // of the pause waits for the rest of the pause and for the requests before it.
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
