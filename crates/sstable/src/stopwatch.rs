//! Where the time of a read goes, by stage.
//!
//! A read that nobody watches carries no stopwatch (`ReadContext::stopwatch` is `None`) and reads no clock: all that
//! is left of it is a look at an empty option where a stage would change. With one, time is exclusive: a block read
//! inside the index counts as `Disk`, and the index goes on afterwards.

use helenus_host::Clock;
use std::fmt;
use std::sync::Arc;

/// What a read is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Binding values, making the read's command. Measured by whoever runs statements.
    Plan,
    /// Choosing and opening sources: key ranges, Bloom filters, memtables, partition headers.
    Sources,
    /// Walking Partitions.db and Rows.db.
    Index,
    /// Waiting for files.
    Disk,
    /// Checking checksums of data blocks and decompressing them.
    Decompress,
    /// Decoding rows and merging sources.
    Merge,
    /// Filtering rows and putting them into the answer.
    Sink,
    /// Writing: log and memtable. Measured by whoever runs statements.
    Write,
}

impl Stage {
    /// All stages, in the order in which a request goes through them.
    pub const ALL: [Stage; 8] = [
        Stage::Plan,
        Stage::Sources,
        Stage::Index,
        Stage::Disk,
        Stage::Decompress,
        Stage::Merge,
        Stage::Sink,
        Stage::Write,
    ];
}

/// Time spent in each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    ns: [u64; Stage::ALL.len()],
}

impl StageTimes {
    /// Nanoseconds spent in a stage.
    pub fn ns(&self, stage: Stage) -> u64 {
        self.ns.get(stage as usize).copied().unwrap_or_default()
    }

    /// Microseconds spent in a stage, rounded.
    pub fn us(&self, stage: Stage) -> u64 {
        (self.ns(stage) + 500) / 1000
    }

    /// Nanoseconds of all stages.
    pub fn total_ns(&self) -> u64 {
        self.ns.iter().sum()
    }

    /// Adds to a stage.
    pub fn add(&mut self, stage: Stage, ns: u64) {
        if let Some(sum) = self.ns.get_mut(stage as usize) {
            *sum += ns;
        }
    }

    /// Adds the times of another read, stage by stage.
    pub fn add_all(&mut self, other: &StageTimes) {
        self.ns.iter_mut().zip(other.ns).for_each(|(sum, ns)| *sum += ns);
    }
}

/// Measures the stages of one read.
#[derive(Clone)]
pub struct Stopwatch {
    clock: Arc<dyn Clock>,
    times: StageTimes,
    stage: Stage,
    since_ns: u64,
}

impl Stopwatch {
    /// Starts in a stage.
    pub fn start(clock: Arc<dyn Clock>, stage: Stage) -> Stopwatch {
        let since_ns = clock.monotonic_ns();
        Stopwatch { clock, times: StageTimes::default(), stage, since_ns }
    }

    /// Goes to another stage; returns the one before.
    pub fn switch(&mut self, stage: Stage) -> Stage {
        let now_ns = self.clock.monotonic_ns();
        self.times.add(self.stage, now_ns.saturating_sub(self.since_ns));
        self.since_ns = now_ns;
        std::mem::replace(&mut self.stage, stage)
    }

    /// Ends, and tells the times.
    pub fn stop(mut self) -> StageTimes {
        self.switch(self.stage);
        self.times
    }
}

impl fmt::Debug for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopwatch").field("times", &self.times).field("stage", &self.stage).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock that goes on by one microsecond each time it is read.
    #[derive(Default)]
    struct Ticking(AtomicU64);

    impl Clock for Ticking {
        fn wall_us(&self) -> i64 {
            0
        }
        fn monotonic_ns(&self) -> u64 {
            self.0.fetch_add(1000, Ordering::Relaxed)
        }
    }

    #[test]
    fn a_stage_within_another_counts_for_itself_alone() {
        let mut watch = Stopwatch::start(Arc::new(Ticking::default()), Stage::Sources);
        let outer = watch.switch(Stage::Index);
        let index = watch.switch(Stage::Disk);
        assert_eq!((outer, index), (Stage::Sources, Stage::Index));
        watch.switch(index);
        watch.switch(outer);
        let times = watch.stop();
        let us = [Stage::Sources, Stage::Index, Stage::Disk, Stage::Merge].map(|stage| times.us(stage));
        assert_eq!(us, [2, 2, 1, 0]);
        assert_eq!(times.total_ns(), 5000);
    }
}
