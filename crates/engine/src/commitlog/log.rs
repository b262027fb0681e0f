//! `CommitLog`, its state and its locks: opens and closes the log, and reports its positions and status.
//!
//! A record goes through three steps: `append` copies it to the buffer under the lock `state`; `write_out` hands the
//! buffer to the operating system under the lock `writing`; `sync_now` syncs the files under the lock `syncing`.
//! `written` and `synced` are the positions up to which the last two are done, and only grow. The order of locks is
//! `syncing`, `writing`, `state`. A failure of the last two steps is final (`failure`).

use super::active::{Active, Chunk};
use super::kept::Kept;
use super::options::LogOptions;
use super::recovered::RecoveredLog;
use super::removal::Removing;
use super::segment::{Segment, UsedSegment, remove_spares, segment_path};
use super::spare::SpareWorker;
use super::sync::SyncWorker;
use super::watched::WatchedTables;
use crate::error::Result;
use crate::folder::make_folder_below;
use crate::log_position::LogPosition;
use crate::metrics::{Meter, Period};
use crate::notify::Notifier;
use crate::sharded::CacheLine;
use crate::totals::LogStatus;
use helenus_host::{Host, TaskHandle};
use helenus_model::schema::TableId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The log of a database.
pub struct CommitLog {
    pub(super) host: Host,
    pub(super) options: LogOptions,
    pub(super) state: CacheLine<Mutex<State>>,
    /// Held while the next segment's file is created. Nobody waits for it while holding `state`.
    pub(super) making: Mutex<()>,
    /// Held while segments are removed, kept or released. It comes before all other locks.
    pub(super) removing: Mutex<Removing>,
    /// Held while bytes are written to the operating system, so that they are written in order and without gaps.
    pub(super) writing: Mutex<()>,
    /// Held while files are synced: otherwise a sync that ends before an older one would report bytes as safe that the
    /// older one is still syncing.
    pub(super) syncing: Mutex<()>,
    pub(super) written: AtomicU64,
    pub(super) synced: AtomicU64,
    pub(super) announcer: Arc<Notifier>,
    /// Why nothing is appended, written or synced any more.
    pub(super) refusal: OnceLock<String>,
    /// The same, once the refused records are cut off as far as possible (`settle`): only then are callers told.
    pub(super) failure: OnceLock<String>,
    /// Duration of syncs, nanoseconds.
    pub(super) syncs: Meter,
    pub(super) sync_task: OnceLock<Arc<dyn TaskHandle>>,
    pub(super) spare_task: OnceLock<Arc<dyn TaskHandle>>,
}

pub(super) struct State {
    pub(super) active: Option<Active>,
    /// Segments before the active one, oldest first.
    pub(super) closed: VecDeque<Closed>,
    pub(super) next_number: u32,
    /// End of the last segment before the active one.
    pub(super) end_of_last: LogPosition,
    /// Bytes before the active buffer that are not yet written, oldest first: the last chunks of closed segments, and
    /// large records.
    pub(super) pending: VecDeque<Chunk>,
    /// Closed segments that are completely written but not yet synced.
    pub(super) unsynced: Vec<Arc<Segment>>,
    /// Memory for the next buffer, from one that was written.
    pub(super) spare_buffer: Vec<u8>,
    /// The position up to which each table's writes are in its SSTables.
    pub(super) flushed: BTreeMap<TableId, LogPosition>,
    /// Dropped tables of which segments may have writes, with positions behind all of them.
    pub(super) forgotten: BTreeMap<TableId, LogPosition>,
    /// The next segments in the order of their numbers, created in advance by the spare worker.
    pub(super) ready: VecDeque<Segment>,
    /// The number of the segment that the spare worker is creating.
    pub(super) making: Option<u32>,
    /// The number of the segment that was active when a spare could not be created. It is tried again only in the next
    /// segment, so that a full disk is not tried again at each write.
    pub(super) failed_behind: Option<u32>,
    /// Full-size segments that are no longer needed and will be reused.
    pub(super) used: Vec<UsedSegment>,
    /// Whether the file `reserve` is there.
    pub(super) has_reserve: bool,
    pub(super) stopping: bool,
    /// Bytes of records appended since the start.
    pub(super) appended_bytes: u64,
    /// Whether the next segment could not be created and the journal has been told.
    pub(super) is_full: bool,
    /// The watched tables (`watched`).
    pub(super) watched: WatchedTables,
    /// The segments that are kept for readers of changes.
    pub(super) kept: Kept,
}

pub(super) struct Closed {
    pub(super) path: PathBuf,
    pub(super) number: u32,
    /// Size of the file.
    pub(super) bytes: u64,
    /// End of its records.
    pub(super) end: u32,
    /// Last position of each table with writes here.
    pub(super) dirty: BTreeMap<TableId, LogPosition>,
    /// Whether it has records of a watched table.
    pub(super) is_watched: bool,
}

impl CommitLog {
    /// Opens the log for writing after the segments that `replay` read. The first write creates the first segment.
    pub(crate) fn open(
        host: &Host,
        options: LogOptions,
        left: RecoveredLog,
        announcer: Arc<Notifier>,
    ) -> Result<Arc<CommitLog>> {
        let base = options.dir.parent().unwrap_or(&options.dir);
        make_folder_below(&*host.disk, base, &options.dir)?;
        remove_spares(&*host.disk, &options.dir)?;
        let kept = Kept::open(&*host.disk, &options.kept_dir)?;
        let next_number = left.segments.iter().map(|segment| segment.number + 1).max().unwrap_or(1);
        let flushed = &left.flushed;
        let closed = left.segments.into_iter().map(|mut segment| {
            // What the last run flushed keeps no segment.
            segment.dirty.retain(|table, last| flushed.get(table).is_none_or(|position| position < last));
            Closed {
                path: segment_path(&options.dir, segment.number),
                number: segment.number,
                bytes: segment.bytes,
                end: segment.end,
                dirty: segment.dirty,
                is_watched: segment.is_watched,
            }
        });
        let closed = closed.collect();
        let has_reserve = CommitLog::finds_reserve(&*host.disk, &options.dir);
        let state = State {
            active: None,
            closed,
            next_number,
            end_of_last: left.end.unwrap_or(LogPosition::START),
            pending: VecDeque::new(),
            unsynced: Vec::new(),
            spare_buffer: Vec::new(),
            flushed: left.flushed,
            forgotten: BTreeMap::new(),
            ready: VecDeque::new(),
            making: None,
            failed_behind: None,
            used: Vec::new(),
            has_reserve,
            stopping: false,
            appended_bytes: 0,
            is_full: false,
            watched: WatchedTables::default(),
            kept,
        };
        let start = LogPosition::new(next_number, 0).0;
        let log = Arc::new(CommitLog {
            host: host.clone(),
            options,
            state: CacheLine(Mutex::new(state)),
            making: Mutex::new(()),
            removing: Mutex::default(),
            writing: Mutex::new(()),
            syncing: Mutex::new(()),
            written: AtomicU64::new(start),
            synced: AtomicU64::new(start),
            announcer,
            refusal: OnceLock::new(),
            failure: OnceLock::new(),
            syncs: Meter::default(),
            sync_task: OnceLock::new(),
            spare_task: OnceLock::new(),
        });
        let task = host.tasks.start("log-sync", Box::new(SyncWorker::new(&log)));
        let _ = log.sync_task.set(task);
        let task = host.tasks.start("log-spare", Box::new(SpareWorker::new(&log)));
        let _ = log.spare_task.set(task);
        Ok(log)
    }

    /// The end of the records of a closed segment.
    pub(super) fn closed_end(&self, number: u32) -> Option<u32> {
        self.state.lock().closed.iter().find(|segment| segment.number == number).map(|segment| segment.end)
    }

    /// The end of the last segment before the active one.
    pub(super) fn end_before_active(&self) -> LogPosition {
        self.state.lock().end_of_last
    }

    /// The position after the last record.
    pub fn position(&self) -> LogPosition {
        let state = self.state.lock();
        match &state.active {
            Some(active) => LogPosition::new(active.segment.number, active.end()),
            None => LogPosition::new(state.next_number, 0),
        }
    }

    /// Status of the log, for `Status`.
    pub(crate) fn status(&self) -> LogStatus {
        let syncs = self.syncs.counted_distribution(Period::All);
        let synced = LogPosition(self.synced.load(Ordering::Acquire));
        let state = self.state.lock();
        let active = state.active.as_ref();
        let unsynced = active.map_or(0, |active| match active.segment.number == synced.segment() {
            true => active.end().saturating_sub(synced.offset()),
            false => active.end(),
        });
        let closed: u64 = state.closed.iter().map(|segment| segment.bytes).sum();
        LogStatus {
            segments: state.closed.len() as u64 + u64::from(active.is_some()),
            bytes: closed + active.map_or(0, |active| u64::from(active.segment.size)),
            appended_bytes: state.appended_bytes,
            unsynced_bytes: u64::from(unsynced),
            syncs,
            failure: self.failure.get().cloned(),
        }
    }

    /// Number of closed segments, plus the active one.
    pub fn segments_count(&self) -> usize {
        let state = self.state.lock();
        state.closed.len() + usize::from(state.active.is_some())
    }

    /// The number of the oldest segment before the active one, and of the tables with unflushed writes in it.
    pub(crate) fn oldest_segment(&self) -> (Option<u32>, usize) {
        let state = self.state.lock();
        state.closed.front().map_or((None, 0), |segment| (Some(segment.number), segment.dirty.len()))
    }

    /// Tables with unflushed writes in the oldest segment; flushing them frees it.
    pub fn tables_of_oldest_segment(&self) -> Vec<TableId> {
        let state = self.state.lock();
        let oldest = state.closed.iter().find(|segment| !segment.dirty.is_empty());
        oldest.map(|segment| segment.dirty.keys().copied().collect()).unwrap_or_default()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Stops the workers and syncs a last time.
    pub fn close(&self) -> Result<()> {
        self.stop();
        for task in [&self.sync_task, &self.spare_task].into_iter().filter_map(OnceLock::get) {
            task.join();
        }
        self.sync_now()?;
        let ready = {
            let mut state = self.state.lock();
            state.used.clear();
            std::mem::take(&mut state.ready)
        };
        ready.into_iter().try_for_each(|segment| self.discard(segment))?;
        remove_spares(&*self.host.disk, &self.options.dir)
    }

    /// Tells the workers to end, without waiting for them.
    pub fn stop(&self) {
        self.state.lock().stopping = true;
        for task in [&self.sync_task, &self.spare_task].into_iter().filter_map(OnceLock::get) {
            task.wake();
        }
    }

    pub(super) fn wake_sync(&self) {
        if let Some(task) = self.sync_task.get() {
            task.wake();
        }
    }
}
