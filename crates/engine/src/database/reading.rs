//! The entry of the read path: runs a read command over the present view of its table.

use super::shared::Database;
use super::timeouts::ReadTimeouts;
use crate::commitlog::Ticket;
use crate::error::{Error, Result};
use crate::journal::Event;
use crate::log_position::LogPosition;
use crate::metrics::SAMPLED;
use crate::read::{
    KeyRange, Probe, ReadCommand, ReadEnd, RowSink, UnfilteredSink, execute, forecast, scan_unfiltered,
};
use crate::table::View;
use helenus_model::schema::Table;
use helenus_sstable::block::Touched;
use helenus_sstable::stopwatch::{Stage, Stopwatch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a read that may not wait for the disk may take, nanoseconds. Its thread should not do a long scan of
/// memory either. The read then answers `WouldBlock`, and runs again on a thread where it may take longer.
const PATIENCE_NS: u64 = 20_000_000;

/// What a read may do, and how long it may take.
#[derive(Clone, Copy, Default)]
pub struct ReadRequest<'a> {
    /// Whether it may wait for the disk. If not, it answers `WouldBlock` when it would have to wait, and when it takes
    /// long.
    pub may_block: bool,
    /// Monotonic time at which the read times out, nanoseconds of the host's clock.
    pub deadline_ns: Option<u64>,
    /// Set when nobody waits for the answer any more.
    pub cancelled: Option<&'a AtomicBool>,
    /// Whether the blocks that it reads from files are not kept in memory.
    pub bypasses_cache: bool,
}

impl ReadRequest<'_> {
    /// Whether nobody waits for the answer any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }
}

impl Database {
    /// The present sources of a table. Several reads of one view see the same sources.
    ///
    /// # Errors
    /// `UnknownTable` if it was dropped, `Unreadable` if one of its SSTables could not be opened.
    pub fn view(&self, table: &Table) -> Result<Arc<View>> {
        let view = self.shared.tables.load().get(&table.id).map(|store| store.view());
        let view = view.ok_or_else(|| Error::UnknownTable {
            keyspace: table.keyspace.to_string(),
            table: table.name.to_string(),
        })?;
        view.check_whole()?;
        Ok(view)
    }

    /// Runs a read over a view. With a probe its sources are counted and timed (see `read::Probe`).
    ///
    /// # Errors
    /// `WouldBlock` (run it again with `may_block`), `TimedOut`, `Cancelled`, a damaged file. `Unlogged` if it has
    /// seen writes that were refused because the log failed.
    pub fn read(
        &self,
        command: &ReadCommand,
        view: &View,
        request: ReadRequest<'_>,
        sink: &mut dyn RowSink,
        probe: Option<&mut Probe>,
    ) -> Result<ReadEnd> {
        // A scan does not fill the cache: it would evict the blocks that reads by key use again.
        let by_key = matches!(command.partitions, crate::read::Partitions::Keys(_));
        let fill_cache = by_key && !request.bypasses_cache;
        let mut scratch = self.shared.scratches.take();
        let cx = &mut scratch.cx;
        (cx.may_block, cx.fill_cache) = (request.may_block, fill_cache);
        (cx.touched, cx.stopwatch) = (Touched::default(), None);
        (scratch.sstables_asked, scratch.logged) = (0, view.emptied_at);
        let clock = &self.shared.host.clock;
        if let Some(probe) = &probe {
            let start = if probe.disk_alone { Stopwatch::start_of_disk } else { Stopwatch::start };
            cx.stopwatch = Some(Box::new(start(clock.clone(), Stage::Sources)));
        }
        let timeouts = &self.shared.timeouts;
        let own_ns = timeouts.own_ns(by_key);
        let is_timed = !request.may_block || request.deadline_ns.is_none() && own_ns.is_some();
        let begun_ns = if is_timed { clock.monotonic_ns() } else { 0 };
        let deadline_ns = request.deadline_ns.or_else(|| Some(begun_ns.saturating_add(own_ns?)));
        let patience_ns = (!request.may_block)
            .then(|| begun_ns.saturating_add(timeouts.patience_ns().unwrap_or(PATIENCE_NS)));
        let interrupt = || {
            if request.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if deadline_ns.is_none() && patience_ns.is_none() {
                return Ok(());
            }
            let now_ns = clock.monotonic_ns();
            match deadline_ns {
                Some(deadline) if now_ns >= deadline => Err(Error::TimedOut),
                _ if patience_ns.is_some_and(|end| now_ns >= end) => Err(Error::WouldBlock),
                _ => Ok(()),
            }
        };
        if request.deadline_ns.is_some() {
            // A read of little may end without another check.
            interrupt()?;
        }
        let meter = if by_key { &view.figures.reads } else { &view.figures.scans };
        let began_ns = meter.count().then(|| clock.monotonic_ns());
        let end = Error::contain(|| execute(command, view, sink, (&mut scratch, probe), &interrupt));
        if let (Some(began_ns), Ok(_)) = (began_ns, &end) {
            let now_ns = clock.monotonic_ns();
            meter.record(now_ns.saturating_sub(began_ns), now_ns);
            view.figures.rows.record(scratch.rows_returned, now_ns);
            view.figures.tombstones.record(scratch.tombstones_passed, now_ns);
            if let crate::read::Partitions::Keys(keys) = &command.partitions
                && let Some(first) = keys.first()
            {
                view.figures.sstables.record(scratch.sstables_asked.div_ceil(keys.len() as u64), now_ns);
                view.figures.top_reads.add(&first.bytes, SAMPLED);
            }
        }
        self.shared.work.count_read(&scratch.cx.touched, by_key);
        match &end {
            Err(error @ Error::Table(_)) => self.read_failed(&command.table, error),
            Err(error @ Error::Panicked { .. }) => {
                self.read_failed(&command.table, error);
                self.mark_panicked(&command.table, error);
                // The state of the scratch is unknown after a panic.
                return end;
            }
            Ok(_) | Err(_) => {}
        }
        sink.passed(scratch.rows_returned, scratch.tombstones_passed);
        let logged = scratch.logged;
        self.shared.scratches.give_back(scratch);
        match end {
            Ok(end) => self.hold_until_safe(logged, request.may_block, sink).map(|()| end),
            Err(error) => Err(error),
        }
    }

    /// Passes all that a range of partitions holds to a sink, dead or alive. It waits for the disk, and returns once every
    /// write that it has seen is as durable as its acknowledgement promises.
    ///
    /// # Errors
    /// `UnknownTable`, `Unreadable`, a damaged file, `Unlogged`; those of the sink.
    pub fn scan_unfiltered(
        &self,
        table: &Arc<Table>,
        range: &KeyRange,
        sink: &mut dyn UnfilteredSink,
    ) -> Result<()> {
        let view = self.view(table)?;
        let mut scratch = self.shared.scratches.take();
        (scratch.cx.may_block, scratch.cx.fill_cache) = (true, false);
        (scratch.cx.touched, scratch.cx.stopwatch) = (Touched::default(), None);
        scratch.logged = view.emptied_at;
        Error::contain(|| scan_unfiltered(table, &view, range, sink, &mut scratch))?;
        self.shared.work.count_read(&scratch.cx.touched, false);
        let logged = scratch.logged;
        self.shared.scratches.give_back(scratch);
        match self.shared.log.as_ref().filter(|log| !log.is_safe(logged)) {
            Some(log) => Ticket::of_read(log.clone(), logged).wait(),
            None => Ok(()),
        }
    }

    /// Holds an answer back while it depends on writes that may still be refused.
    pub(crate) fn hold_until_safe(
        &self,
        logged: LogPosition,
        may_block: bool,
        sink: &mut dyn RowSink,
    ) -> Result<()> {
        let Some(log) = self.shared.log.as_ref().filter(|log| !log.is_safe(logged)) else { return Ok(()) };
        let ticket = Ticket::of_read(log.clone(), logged);
        if ticket.is_ready()? {
            return Ok(());
        }
        match sink.hold_until(ticket) {
            None => Ok(()),
            Some(ticket) if may_block => ticket.wait(),
            Some(_) => Err(Error::WouldBlock),
        }
    }

    #[cold]
    fn read_failed(&self, table: &Table, error: &Error) {
        self.shared.work.reads_failed.fetch_add(1, Ordering::Relaxed);
        self.shared.options.journal.note(&Event::ReadFailed { table, error });
    }

    #[cold]
    fn mark_panicked(&self, table: &Table, error: &Error) {
        if let Some(store) = self.shared.table(table.id) {
            store.troubles.read_panicked(error.to_string());
        }
    }

    /// A forecast of a read (EXPLAIN): the sources it would read and those it would skip, according to what is in
    /// memory. No block is read. Facts that only the files know are missing (false positives of the Bloom filter, a
    /// partition deletion in an SSTable), so a run may skip more.
    pub fn forecast(&self, command: &ReadCommand, view: &View) -> Probe {
        forecast(command, view)
    }

    /// Sets the timeouts of reads that begin from now on.
    pub fn set_read_timeouts(&self, timeouts: ReadTimeouts) {
        self.shared.timeouts.set(timeouts);
    }
}
