//! The read path's door: a command over the present view of its table.

use super::shared::Database;
use crate::error::{Error, Result};
use crate::figures::SAMPLED;
use crate::read::{Probe, ReadCommand, ReadEnd, RowSink, execute, foresee};
use crate::table::View;
use helenus_model::schema::Table;
use helenus_sstable::block::Touched;
use helenus_sstable::stopwatch::{Stage, Stopwatch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a read may do, and how long.
#[derive(Clone, Copy, Default)]
pub struct ReadRequest<'a> {
    /// Whether it may wait for the disk; if not, it answers `WouldBlock` where it would have to.
    pub may_block: bool,
    /// Monotonic time at which it is given up, nanoseconds of the host's clock.
    pub deadline_ns: Option<u64>,
    /// Set when nobody waits for the answer any more.
    pub cancelled: Option<&'a AtomicBool>,
}

impl Database {
    /// The sources of a table at this moment, for several reads of one picture.
    ///
    /// # Errors
    /// `UnknownTable` when it was dropped, `Unreadable` when one of its SSTables could not be opened.
    pub fn view(&self, table: &Table) -> Result<Arc<View>> {
        let view = self.shared.tables.load().get(&table.id).map(|store| store.view());
        let view = view.ok_or_else(|| Error::UnknownTable {
            keyspace: table.keyspace.to_string(),
            table: table.name.to_string(),
        })?;
        view.check_whole()?;
        Ok(view)
    }

    /// Runs a read over a view. With a probe it is counted and timed (`read::Probe` says how to use one).
    ///
    /// # Errors
    /// `WouldBlock` (run it again with `may_block`), `TimedOut`, `Cancelled`, damage of a file.
    pub fn read(
        &self,
        command: &ReadCommand,
        view: &View,
        request: ReadRequest<'_>,
        sink: &mut dyn RowSink,
        probe: Option<&mut Probe>,
    ) -> Result<ReadEnd> {
        // A scan reads past the cache: it would push out what single reads keep coming back to.
        let fill_cache = matches!(command.partitions, crate::read::Partitions::Keys(_));
        let mut scratch = self.shared.scratches.take();
        let cx = &mut scratch.cx;
        (cx.may_block, cx.fill_cache) = (request.may_block, fill_cache);
        (cx.touched, cx.stopwatch) = (Touched::default(), None);
        let clock = &self.shared.host.clock;
        if probe.is_some() {
            cx.stopwatch = Some(Box::new(Stopwatch::start(clock.clone(), Stage::Sources)));
        }
        let timeouts = self.shared.options.timeouts;
        let own_ns = if fill_cache { timeouts.by_key_ns } else { timeouts.range_ns };
        let deadline_ns = request.deadline_ns.or_else(|| Some(clock.monotonic_ns().saturating_add(own_ns?)));
        let interrupt = || {
            if request.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
                return Err(Error::Cancelled);
            }
            match deadline_ns {
                Some(deadline) if clock.monotonic_ns() >= deadline => Err(Error::TimedOut),
                _ => Ok(()),
            }
        };
        let meter = if fill_cache { &view.figures.reads } else { &view.figures.scans };
        let began_ns = meter.count().then(|| clock.monotonic_ns());
        let end = execute(command, view, sink, (&mut scratch, probe), &interrupt);
        if let (Some(began_ns), Ok(_)) = (began_ns, &end) {
            meter.record(clock.monotonic_ns().saturating_sub(began_ns));
            view.figures.rows.record(scratch.rows_passed);
            view.figures.tombstones.record(scratch.tombstones_passed);
            if let crate::read::Partitions::Keys(keys) = &command.partitions
                && let Some(first) = keys.first()
            {
                view.figures.top_reads.add(&first.bytes, SAMPLED);
            }
        }
        sink.passed(scratch.rows_passed, scratch.tombstones_passed);
        self.shared.scratches.give_back(scratch);
        end
    }

    /// What is known of a read without running it: which sources it would ask and which it would leave out, from what
    /// is in memory; no block is read. Whatever only the files know (a partition that the Bloom filter did not deny
    /// though it is not there, a partition deletion in an SSTable) is missing, so a run may leave out more.
    pub fn foresee(&self, command: &ReadCommand, view: &View) -> Probe {
        foresee(command, view)
    }
}
