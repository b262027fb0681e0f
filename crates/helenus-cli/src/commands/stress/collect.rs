//! Collects the counts of a run's threads, second by second, for the terminal, the series, and the results.

use super::cost::ServerUse;
use super::live::Live;
use super::measure::{Fault, Tally};
use super::results::{Errors, Latency, RunResult, Second, StatementFigures, buckets, spectrum};
use super::thread_loop::{Part, TICK};
use super::workload::Workload;
use anyhow::Result;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Time between two redraws of the bar on the terminal.
const LOOK: Duration = Duration::from_millis(200);
/// A last second that is shorter than this is left out of the series, because its rate means nothing.
const SECOND_MIN: Duration = Duration::from_millis(200);

/// The counts received so far.
pub(super) struct Collected {
    live: Live,
    threads: usize,
    total: Option<Tally>,
    /// The seconds that some threads have not reported yet: their counts, and the number of threads that reported.
    open: BTreeMap<u64, (Tally, usize)>,
    /// The latest second that any thread has reported, and the number of closed seconds.
    newest: u64,
    over: u64,
    series: Vec<Second>,
    /// The server's use of resources when the measurement began.
    pub server_before: Option<ServerUse>,
}

impl Collected {
    fn new(live: Live, threads: usize) -> Collected {
        let (open, series) = (BTreeMap::new(), Vec::new());
        Collected { live, threads, total: None, open, newest: 0, over: 0, series, server_before: None }
    }

    /// Receives until all threads have ended.
    pub fn of(
        heard: &Receiver<Part>,
        live: Live,
        threads: usize,
        server_pid: Option<u32>,
    ) -> Result<Collected> {
        let mut collected = Collected::new(live, threads);
        loop {
            match heard.recv_timeout(LOOK) {
                Ok(part) => {
                    if part.second.is_none() && collected.server_before.is_none() {
                        collected.server_before = server_pid.map(ServerUse::of).transpose()?;
                    }
                    collected.add(part)?;
                }
                Err(RecvTimeoutError::Timeout) => collected.live.tick(),
                Err(RecvTimeoutError::Disconnected) => return Ok(collected),
            }
        }
    }

    fn add(&mut self, part: Part) -> Result<()> {
        let Part { second, is_last, mut tally } = part;
        if second.is_none() {
            // Of the warm-up, only the faults are kept.
            tally.begin();
        }
        match &mut self.total {
            Some(total) => total.add(&tally)?,
            None => {
                let mut total = tally.another()?;
                total.add(&tally)?;
                self.total = Some(total);
            }
        }
        let Some(second) = second else { return Ok(()) };
        match self.open.get_mut(&second) {
            Some((sum, told)) => {
                sum.add(&tally)?;
                *told += 1;
            }
            None => {
                self.open.insert(second, (tally, 1));
            }
        }
        self.newest = self.newest.max(second);
        if !is_last {
            self.over = self.over.max(second + 1);
        }
        // A thread that has ended reports nothing more, so a second is closed at the latest two seconds later.
        while let Some(first) = self.open.first_entry() {
            let (number, told) = (*first.key(), first.get().1);
            if number >= self.over || told < self.threads && self.newest < number + 2 {
                break;
            }
            let (tally, _) = first.remove();
            self.close(number, &tally, TICK)?;
        }
        Ok(())
    }

    fn close(&mut self, number: u64, tally: &Tally, length: Duration) -> Result<()> {
        let latency = tally.latency()?;
        let second = Second {
            at_s: number as f64 + length.as_secs_f64(),
            operations: latency.len(),
            ops_per_s: latency.len() as f64 / length.as_secs_f64(),
            latency_us: Latency::of(&latency),
            errors: tally.fault_count(),
        };
        self.live.second(&second);
        self.series.push(second);
        Ok(())
    }

    /// Closes the open seconds of a run that took `took`.
    pub fn end(&mut self, took: Duration) -> Result<()> {
        while let Some((number, (tally, _))) = self.open.pop_first() {
            let length = took.saturating_sub(TICK * u32::try_from(number).unwrap_or(u32::MAX)).min(TICK);
            if length >= SECOND_MIN || self.series.is_empty() && !length.is_zero() {
                self.close(number, &tally, length)?;
            }
        }
        Ok(())
    }

    /// The results of the run.
    pub fn figures(&self, took: Duration, workload: &dyn Workload) -> Result<RunResult> {
        let seconds = took.as_secs_f64();
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let Some(total) = &self.total else {
            return Ok(RunResult { workload: workload.name(), seconds, ..RunResult::default() });
        };
        let latency = total.latency()?;
        let errors = |(kind, fault): (&String, &Fault)| {
            (kind.clone(), Errors { count: fault.count, first: fault.first.clone() })
        };
        let statement = |(name, histogram): (&String, &Histogram<u64>)| StatementFigures {
            name: name.clone(),
            operations: histogram.len(),
            ops_per_s: rate(histogram.len()),
            latency_us: Latency::of(histogram),
        };
        let answers = latency.len() + total.fault_count();
        Ok(RunResult {
            workload: workload.name(),
            operations: latency.len(),
            rows: total.rows,
            seconds,
            ops_per_s: rate(latency.len()),
            rows_per_s: rate(total.rows),
            latency_us: Latency::of(&latency),
            service_us: total.service.as_ref().map(Latency::of),
            answers_per_read: if total.reads == 0 { 0.0 } else { answers as f64 / total.reads as f64 },
            errors: total.faults.iter().map(errors).collect(),
            statements: workload.kinds().iter().zip(total.kinds()).map(statement).collect(),
            series: self.series.clone(),
            histogram: buckets(&latency),
            spectrum: spectrum(&latency),
            ..RunResult::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::live::Goal;
    use super::super::schedule::Took;
    use super::*;
    use std::time::Instant;

    fn part(second: u64, is_last: bool, answers: u64) -> Part {
        let mut tally = Tally::new(1, false).unwrap();
        let latency = Duration::from_millis(1);
        for operation in 0..answers {
            tally.right(0, Took { operation, latency, service: latency }, 1);
        }
        Part { second: Some(second), is_last, tally }
    }

    fn collected(threads: usize) -> Collected {
        let live = Live::begin("", Goal::Answers(0), Instant::now(), false);
        Collected::new(live, threads)
    }

    #[test]
    fn a_second_is_closed_when_every_thread_has_told_of_it_or_nobody_will() {
        let mut all = collected(2);
        all.add(part(0, false, 10)).unwrap();
        assert!(all.series.is_empty());
        all.add(part(0, false, 5)).unwrap();
        assert_eq!(all.series[0].ops_per_s, 15.0);
        all.add(part(1, true, 3)).unwrap(); // this thread ends within the second
        all.add(part(1, false, 4)).unwrap();
        assert_eq!(all.series[1].operations, 7);
        all.add(part(2, false, 4)).unwrap();
        assert_eq!(all.series.len(), 2);
        all.add(part(4, false, 4)).unwrap();
        assert_eq!(all.series.len(), 3, "the second thread is not waited for");
    }

    #[test]
    fn the_last_second_has_its_own_length() {
        let mut all = collected(1);
        all.add(part(0, false, 10)).unwrap();
        all.add(part(1, true, 10)).unwrap();
        assert_eq!(all.series.len(), 1);
        all.end(Duration::from_millis(1_500)).unwrap();
        assert_eq!((all.series[1].ops_per_s, all.series[1].at_s), (20.0, 1.5));
        assert_eq!(all.total.unwrap().rows, 20);
    }

    #[test]
    fn a_last_second_of_no_length_is_in_the_total_alone() {
        let mut all = collected(1);
        all.add(part(0, false, 10)).unwrap();
        all.add(part(1, true, 1)).unwrap();
        all.end(Duration::from_millis(1_001)).unwrap();
        assert_eq!((all.series.len(), all.total.unwrap().rows), (1, 11));
    }
}
