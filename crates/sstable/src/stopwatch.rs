//! Measures the time of a read by stages.
//!
//! A read that is not traced has no stopwatch (`ReadContext::stopwatch` is `None`) and reads no clock: a change of
//! stage only checks the empty option. Times are exclusive: a block that is read during a walk of the index counts as
//! `Disk` and not as `Index`. The cost of reading the clock is measured at the start and subtracted from every
//! interval, because a stage is entered for each row, and rows are cheap.

use helenus_host::Clock;
use std::fmt;
use std::sync::Arc;

/// What a read is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Binding values and making the read's command. Measured by the code that runs statements.
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
    /// Writing: log and memtable. Measured by the code that runs statements.
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

    /// Nanoseconds of all stages together.
    pub fn total_ns(&self) -> u64 {
        self.ns.iter().sum()
    }

    /// Adds nanoseconds to a stage.
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
    /// The time that reading the clock takes.
    look_ns: u64,
    /// Whether only waiting for files is measured apart from the rest.
    disk_alone: bool,
}

/// Number of clock reads by which their cost is measured.
const LOOKS: u64 = 8;

impl Stopwatch {
    /// Starts in a stage.
    pub fn start(clock: Arc<dyn Clock>, stage: Stage) -> Stopwatch {
        let began_ns = clock.monotonic_ns();
        let mut since_ns = began_ns;
        for _ in 0..LOOKS {
            since_ns = clock.monotonic_ns();
        }
        let look_ns = since_ns.saturating_sub(began_ns) / LOOKS;
        Stopwatch { clock, times: StageTimes::default(), stage, since_ns, look_ns, disk_alone: false }
    }

    /// Starts a stopwatch that only measures waiting for files apart from the rest. It reads the clock only around file
    /// reads, so that any read can have one in case it becomes slow.
    pub fn start_of_disk(clock: Arc<dyn Clock>, stage: Stage) -> Stopwatch {
        let since_ns = clock.monotonic_ns();
        Stopwatch { clock, times: StageTimes::default(), stage, since_ns, look_ns: 0, disk_alone: true }
    }

    /// Switches to another stage, and returns the one before.
    pub fn switch(&mut self, stage: Stage) -> Stage {
        if self.disk_alone && (stage == Stage::Disk) == (self.stage == Stage::Disk) {
            return std::mem::replace(&mut self.stage, stage);
        }
        let now_ns = self.clock.monotonic_ns();
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        self.times.add(self.stage, passed_ns.saturating_sub(self.look_ns));
        self.since_ns = now_ns;
        std::mem::replace(&mut self.stage, stage)
    }

    /// Stops, and returns the times.
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

    /// A clock that advances by a microsecond when it is read.
    #[derive(Default)]
    struct Ticking(AtomicU64);

    impl Ticking {
        fn pass(&self, us: u64) {
            self.0.fetch_add(us * 1000, Ordering::Relaxed);
        }
    }

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
        let clock = Arc::new(Ticking::default());
        let mut watch = Stopwatch::start(clock.clone(), Stage::Sources);
        clock.pass(3);
        let outer = watch.switch(Stage::Index);
        clock.pass(5);
        let index = watch.switch(Stage::Disk);
        assert_eq!((outer, index), (Stage::Sources, Stage::Index));
        clock.pass(70);
        watch.switch(index);
        watch.switch(outer);
        clock.pass(4);
        let times = watch.stop();
        let us = [Stage::Sources, Stage::Index, Stage::Disk, Stage::Merge].map(|stage| times.us(stage));
        assert_eq!(us, [7, 5, 70, 0]);
        assert_eq!(times.total_ns(), 82_000);
    }
}
