//! `CommitLog`: appends records to the active segment's buffer, writes the buffer out, syncs files, changes segments.
//!
//! A record goes through three steps: `append` copies it to the buffer under the lock `state`; `write_out` hands the
//! buffer to the operating system under the lock `writing`; `sync_now` syncs the files under the lock `syncing`.
//! `written` and `synced` are the positions up to which the last two are done, and only grow. The order of locks is
//! `syncing`, `writing`, `state`. A failure of the last two steps is final (`failure`).

use super::kept::{Kept, KeptLimits};
use super::record::{self, HEADER_BYTES, TIMESTAMP_BYTES};
use super::recovered::RecoveredLog;
use super::segment::{
    SEGMENT_HEAD, SPARE_NAMES, Segment, SpareFile, UsedSegment, content_bytes_max, remove_spares,
    segment_path,
};
use super::spare::SpareWorker;
use super::sync::SyncWorker;
use super::ticket::Ticket;
use super::watched::WatchedTables;
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use crate::journal::{Event, JournalSlot};
use crate::log_position::LogPosition;
use crate::metrics::{Meter, Period};
use crate::notify::Notifier;
use crate::sharded::CacheLine;
use crate::timestamps::LastAssigned;
use crate::totals::LogStatus;
use helenus_host::{Host, TaskHandle};
use helenus_model::mutation::{Mutation, PartitionUpdate};
use helenus_model::schema::{Table, TableId};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Once the operating system has it; synced every `period_ms`. Survives the process, but not a power cut.
    Periodic {
        /// Milliseconds between syncs.
        period_ms: u64,
    },
    /// Once it is synced; each sync begins when a write waits for it.
    Batch,
    /// Once it is synced; the next sync begins when the last has ended, and covers all waiting writes.
    Group,
}

impl SyncMode {
    /// Whether an acknowledgement waits for the disk.
    pub fn waits_for_sync(self) -> bool {
        !matches!(self, SyncMode::Periodic { .. })
    }
}

/// Options of the log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The folder of the segments.
    pub dir: PathBuf,
    /// The folder of the segments that are kept for readers of changes.
    pub kept_dir: PathBuf,
    /// How much of them is kept.
    pub kept_limits: KeptLimits,
    /// When a write is acknowledged.
    pub mode: SyncMode,
    /// Size of a full-size segment. The first segments are smaller, so that a start and a small database cost little.
    pub segment_bytes: u32,
    /// Receives failures.
    pub journal: JournalSlot,
    /// The greatest timestamp that the server has given to a write. Each chunk of the log begins with it.
    pub last_given: LastAssigned,
}

/// Size of the first segment of a process.
const SEGMENT_BYTES_FIRST: u32 = 1 << 20;
/// Size of a page of the kernel's page cache, or a divisor of it.
const PAGE_BYTES: u32 = 4096;
/// A mutation's record of at least this size is written from its own memory. Copying it to the buffer would cost
/// memory, and time under the lock.
const LARGE_RECORD_BYTES: usize = 64 << 10;
/// Segments kept for reuse. A flush may free many at once.
pub(super) const USED_MAX: usize = 16;

/// The log of a database.
pub struct CommitLog {
    pub(super) host: Host,
    pub(super) options: LogOptions,
    pub(super) state: CacheLine<Mutex<State>>,
    /// Held while the next segment's file is created. Nobody waits for it while holding `state`.
    making: Mutex<()>,
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
    syncs: Meter,
    pub(super) sync_task: OnceLock<Arc<dyn TaskHandle>>,
    spare_task: OnceLock<Arc<dyn TaskHandle>>,
}

pub(super) struct State {
    pub(super) active: Option<Active>,
    /// Segments before the active one, oldest first.
    pub(super) closed: VecDeque<Closed>,
    pub(super) next_number: u32,
    /// End of the last segment before the active one.
    end_of_last: LogPosition,
    /// Bytes before the active buffer that are not yet written, oldest first: the last chunks of closed segments, and
    /// large records.
    pending: VecDeque<Chunk>,
    /// Closed segments that are completely written but not yet synced.
    unsynced: Vec<Arc<Segment>>,
    /// Memory for the next buffer, from one that was written.
    spare_buffer: Vec<u8>,
    /// The position up to which each table's writes are in its SSTables.
    pub(super) flushed: BTreeMap<TableId, LogPosition>,
    /// The next segments in the order of their numbers, created in advance by the spare worker.
    ready: VecDeque<Segment>,
    /// The number of the segment that the spare worker is creating.
    making: Option<u32>,
    /// The number of the segment that was active when a spare could not be created. It is tried again only in the next
    /// segment, so that a full disk is not tried again at each write.
    failed_behind: Option<u32>,
    /// Full-size segments that are no longer needed and will be reused.
    pub(super) used: Vec<UsedSegment>,
    pub(super) stopping: bool,
    /// Bytes of records appended since the start.
    appended_bytes: u64,
    /// Whether the next segment could not be created and the journal has been told.
    is_full: bool,
    /// The watched tables (`watched`).
    pub(super) watched: WatchedTables,
    /// The segments that are kept for readers of changes.
    pub(super) kept: Kept,
}

/// A mutation record whose header is not filled in yet.
pub(crate) struct MutationRecord(Vec<u8>);

/// Bytes to be written to a segment.
struct Chunk {
    segment: Arc<Segment>,
    /// The records, padded with zeroes to a whole page.
    bytes: Vec<u8>,
    at: u32,
    /// End of the records in the segment.
    end: u32,
    /// Whether they complete the segment.
    last: bool,
}

impl Chunk {
    /// A write that ends within a page of a reused segment would have to read that page first, unless it is still
    /// cached. So the whole page is written. That overwrites the bytes after the records, which have no meaning any
    /// more; the next chunk begins at `end`.
    fn new(segment: Arc<Segment>, mut bytes: Vec<u8>, at: u32, last: bool) -> Chunk {
        let end = at + bytes.len() as u32;
        let whole = end.next_multiple_of(PAGE_BYTES).min(segment.size).max(end);
        bytes.resize((whole - at) as usize, 0);
        Chunk { segment, bytes, at, end, last }
    }
}

pub(super) struct Active {
    pub(super) segment: Arc<Segment>,
    /// Bytes not yet written, and their offset in the segment.
    buffer: Vec<u8>,
    buffer_at: u32,
    /// Offset of the timestamp record in the buffer, if the buffer has records. It bounds the timestamps of the
    /// records after it, so it is filled in when the buffer is taken.
    timestamp_at: Option<usize>,
    /// The layouts already described in this segment: for each table, the column numbers below this one.
    layouts: BTreeMap<TableId, u16>,
    /// The watched tables that are defined in this segment.
    pub(super) defined: BTreeSet<TableId>,
    pub(super) dirty: BTreeMap<TableId, LogPosition>,
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

impl State {
    /// The size of the next segment to create in advance, if one is due and none is being created. A full-size segment
    /// wants one ready from its start and two from its middle, because others follow it as fast, and syncs are slow
    /// while the disk is busy.
    fn wants_spare(&self, segment_bytes: u32) -> Option<u32> {
        let active = self.active.as_ref()?;
        let is_grown = active.segment.size >= segment_bytes;
        let is_half_full = active.end() > active.segment.size / 2;
        let wanted = usize::from(is_grown) + usize::from(is_half_full);
        let has_failed = self.failed_behind == Some(active.segment.number);
        let due = self.ready.len() < wanted && self.making.is_none() && !has_failed && !self.stopping;
        due.then(|| active.segment.size.saturating_mul(2).min(segment_bytes))
    }

    /// Takes a segment of this size that waits for reuse.
    fn take_used(&mut self, size: u32) -> Option<UsedSegment> {
        let at = self.used.iter().position(|used| used.size() == size)?;
        Some(self.used.swap_remove(at))
    }

    /// A number that no segment has had, and that the spare worker is not using.
    fn number(&mut self) -> u32 {
        let number = self.making.map_or(self.next_number, |making| self.next_number.max(making + 1));
        self.next_number = number + 1;
        number
    }
}

impl Active {
    pub(super) fn end(&self) -> u32 {
        self.buffer_at + self.buffer.len() as u32
    }

    pub(super) fn put(&mut self, content: &[u8]) -> LogPosition {
        self.leave_timestamp();
        self.put_bare(content);
        LogPosition::new(self.segment.number, self.end())
    }

    fn put_bare(&mut self, content: &[u8]) {
        self.buffer.extend_from_slice(&record::head(self.segment.number, content));
        self.buffer.extend_from_slice(content);
    }

    /// Reserves space for the buffer's timestamp record, before the first record of the buffer.
    fn leave_timestamp(&mut self) {
        if self.timestamp_at.is_none() {
            self.timestamp_at = Some(self.buffer.len());
            self.buffer.resize(self.buffer.len() + HEADER_BYTES + TIMESTAMP_BYTES, 0);
        }
    }

    /// Fills in the buffer's timestamp record.
    fn fill_timestamp(&mut self, last_given: &LastAssigned) {
        let Some(at) = self.timestamp_at.take() else { return };
        let content = record::timestamp(last_given.get());
        let head = record::head(self.segment.number, &content);
        for (place, byte) in self.buffer.iter_mut().skip(at).zip(head.into_iter().chain(content)) {
            *place = byte;
        }
    }

    /// Appends a record whose header is not filled in. A large record is not copied: it goes to `pending`, after all
    /// bytes before it.
    fn put_record(
        &mut self,
        mut bytes: Vec<u8>,
        (synced, last_given): (u32, &LastAssigned),
        pending: &mut VecDeque<Chunk>,
    ) -> LogPosition {
        let (head, content) = bytes.split_at_mut(HEADER_BYTES);
        head.copy_from_slice(&record::head(self.segment.number, content));
        self.leave_timestamp();
        if bytes.len() < LARGE_RECORD_BYTES {
            self.buffer.extend_from_slice(&bytes);
        } else {
            pending.push_back(self.take_buffer((synced, last_given), Vec::new()));
            let at = self.buffer_at;
            self.buffer_at += bytes.len() as u32;
            pending.push_back(Chunk::new(self.segment.clone(), bytes, at, false));
        }
        LogPosition::new(self.segment.number, self.end())
    }
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
        let closed = left.segments.into_iter().map(|segment| Closed {
            path: segment_path(&options.dir, segment.number),
            number: segment.number,
            bytes: segment.bytes,
            end: segment.end,
            dirty: segment.dirty,
            is_watched: segment.is_watched,
        });
        let state = State {
            active: None,
            closed: closed.collect(),
            next_number,
            end_of_last: left.end.unwrap_or(LogPosition::START),
            pending: VecDeque::new(),
            unsynced: Vec::new(),
            spare_buffer: Vec::new(),
            flushed: left.flushed,
            ready: VecDeque::new(),
            making: None,
            failed_behind: None,
            used: Vec::new(),
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

    /// The record of a mutation and of the index updates derived from it, for `append`.
    pub(crate) fn record(mutation: &Mutation, derived: &[PartitionUpdate]) -> MutationRecord {
        let updates = || mutation.updates.iter().chain(derived);
        let size: usize = updates().map(|u| u.key.len() + u.changes.as_bytes().len() + 24).sum();
        // A large record is padded to a whole page in its own memory.
        let padding = if size < LARGE_RECORD_BYTES { 0 } else { PAGE_BYTES as usize };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + 8 + size + padding);
        bytes.resize(HEADER_BYTES, 0);
        record::put_mutation(mutation, derived, &mut bytes);
        MutationRecord(bytes)
    }

    /// Appends the record of these updates. The ticket tells when the mutation may be acknowledged.
    pub(crate) fn append(
        self: &Arc<Self>,
        MutationRecord(bytes): MutationRecord,
        (mutation, derived): (&Mutation, &[PartitionUpdate]),
    ) -> Result<Ticket> {
        let updates = || mutation.updates.iter().chain(derived);
        let content_bytes = bytes.len() - HEADER_BYTES;
        let mut state = self.state.lock();
        let definitions_bytes = state.watched.definitions_bytes(updates());
        self.make_room(&mut state, content_bytes + layout_bytes(updates()) + definitions_bytes)?;
        let State { active, pending, watched, .. } = &mut *state;
        let Some(active) = active else { unreachable!("make_room leaves an active segment") };
        for update in updates() {
            active.describe(&update.table);
        }
        if !watched.is_empty() {
            watched.define_all(updates(), active);
        }
        let of_piece = (self.synced_offset(active.segment.number), &self.options.last_given);
        let position = active.put_record(bytes, of_piece, pending);
        for update in updates() {
            active.dirty.insert(update.table.id, position);
        }
        state.appended_bytes += content_bytes as u64;
        let wants_spare = state.wants_spare(self.options.segment_bytes).is_some();
        drop(state);
        if wants_spare && let Some(task) = self.spare_task.get() {
            task.wake();
        }
        if self.options.mode.waits_for_sync() {
            self.wake_sync();
        }
        Ok(Ticket::new(self.clone(), position))
    }

    /// A ticket for everything appended so far, for an answer that depends on writes of others.
    pub fn so_far(self: &Arc<Self>) -> Ticket {
        match &self.state.lock().active {
            Some(active) => Ticket::new(self.clone(), LogPosition::new(active.segment.number, active.end())),
            None => Ticket::ready(),
        }
    }

    /// Records the greatest timestamp given out, and syncs. It replaces the timestamps in earlier records.
    ///
    /// # Errors
    /// As `append`; failures of writing and syncing.
    pub(crate) fn note_timestamp(self: &Arc<Self>) -> Result<()> {
        let content = record::timestamp(self.options.last_given.get());
        let position = self.append_content(&content)?;
        self.sync_up_to(position)
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

    /// Tables with unflushed writes in the oldest segment; flushing them frees it.
    pub fn tables_of_oldest_segment(&self) -> Vec<TableId> {
        let state = self.state.lock();
        state.closed.front().map(|segment| segment.dirty.keys().copied().collect()).unwrap_or_default()
    }

    /// Writes all records appended so far to the operating system. After that they survive the death of the process.
    pub fn write_out(&self) -> Result<()> {
        let target = self.position();
        let written = {
            let writing = self.writing.lock();
            self.write_out_alone(&writing, target)
        };
        written.inspect_err(|_| self.settle(&self.syncing.lock()))
    }

    /// Writes out everything up to `target`, and at most the rest of its chunk: later records are written by their own
    /// callers, in one piece and not in many small ones.
    fn write_out_alone(&self, _writing: &MutexGuard<'_, ()>, target: LogPosition) -> Result<()> {
        self.check_failure()?;
        while self.written.load(Ordering::Acquire) < target.0 {
            let Some(chunk) = self.next_chunk() else { break };
            if let Err(error) = chunk.segment.file.write_all_at(&chunk.bytes, u64::from(chunk.at)) {
                return Err(self.fail(format!("write {}: {error}", chunk.segment.path.display())));
            }
            let end = LogPosition::new(chunk.segment.number, chunk.end);
            if chunk.last {
                self.state.lock().unsynced.push(chunk.segment);
            } else {
                self.give_back(chunk.bytes);
            }
            self.written.fetch_max(end.0, Ordering::Release);
        }
        if !self.options.mode.waits_for_sync() {
            self.announcer.notify();
        }
        Ok(())
    }

    /// The next chunk to write. The caller holds `writing`.
    fn next_chunk(&self) -> Option<Chunk> {
        let mut state = self.state.lock();
        if let Some(chunk) = state.pending.pop_front() {
            return Some(chunk);
        }
        let State { active, spare_buffer, .. } = &mut *state;
        let active = active.as_mut().filter(|active| !active.buffer.is_empty())?;
        let synced = self.synced_offset(active.segment.number);
        Some(active.take_buffer((synced, &self.options.last_given), std::mem::take(spare_buffer)))
    }

    /// Writes out and syncs everything up to `position`.
    pub fn sync_up_to(&self, position: LogPosition) -> Result<()> {
        while self.synced.load(Ordering::Acquire) < position.0 {
            self.sync_now()?;
        }
        Ok(())
    }

    /// Writes out and syncs everything appended so far.
    pub(super) fn sync_now(&self) -> Result<()> {
        let syncing = self.syncing.lock();
        self.sync_alone().inspect_err(|_| self.settle(&syncing))
    }

    fn sync_alone(&self) -> Result<()> {
        let (files, target) = {
            let writing = self.writing.lock();
            self.write_out_alone(&writing, self.position())?;
            // Everything up to `written` is in one of these files: no bytes are being written while `writing` is held,
            // and a segment that was closed meanwhile is in `pending`.
            let mut state = self.state.lock();
            let mut files = std::mem::take(&mut state.unsynced);
            files.extend(state.pending.iter().map(|chunk| chunk.segment.clone()));
            files.extend(state.active.iter().map(|active| active.segment.clone()));
            // Large records are separate chunks, often several in a row of the same segment.
            files.dedup_by(|one, before| Arc::ptr_eq(one, before));
            (files, self.written.load(Ordering::Acquire))
        };
        if self.synced.load(Ordering::Acquire) >= target {
            return Ok(());
        }
        let begun_ns = self.host.clock.monotonic_ns();
        for segment in files {
            if let Err(error) = segment.file.sync() {
                return Err(self.fail(format!("sync {}: {error}", segment.path.display())));
            }
        }
        // Every sync is measured, because it takes far longer than reading the clock.
        let _sampled = self.syncs.count();
        let now_ns = self.host.clock.monotonic_ns();
        self.syncs.record(now_ns.saturating_sub(begun_ns), now_ns);
        self.synced.fetch_max(target, Ordering::Release);
        self.announcer.notify();
        Ok(())
    }

    /// Whether appended records are not yet synced.
    pub(super) fn has_unsynced(&self) -> bool {
        self.position().0 > self.synced.load(Ordering::Acquire)
            && self.state.lock().active.as_ref().is_some_and(|active| active.end() > SEGMENT_HEAD)
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

    /// Creates the next segment in advance, if one is due: from a segment that waits for reuse, else from zeroes.
    /// Returns whether another is due.
    ///
    /// # Errors
    /// `LogFull`. The next append that needs a segment tries again and reports the error.
    pub(super) fn make_spare(&self) -> Result<bool> {
        let _making = self.making.lock();
        let (size, number, used) = {
            let mut state = self.state.lock();
            let Some(size) = state.wants_spare(self.options.segment_bytes) else { return Ok(false) };
            let used = state.take_used(size);
            state.making = Some(state.next_number);
            (size, state.next_number, used)
        };
        let made = self.make_segment(size, number, used);
        let mut state = self.state.lock();
        state.making = None;
        if made.is_err() {
            state.failed_behind = state.active.as_ref().map(|active| active.segment.number);
        }
        let segment = made?;
        if state.next_number == number {
            state.next_number += 1;
            state.ready.push_back(segment);
            return Ok(state.wants_spare(self.options.segment_bytes).is_some());
        }
        // Meanwhile an append needed a segment and took a later number.
        drop(state);
        self.discard(segment)?;
        Ok(true)
    }

    fn make_segment(&self, size: u32, number: u32, used: Option<UsedSegment>) -> Result<Segment> {
        self.spare(size, SPARE_NAMES[0], used)?.into_segment(&*self.host.disk, &self.options.dir, number)
    }

    /// A file for a segment of this size: one that waits for reuse, else a new file of zeroes.
    fn spare(&self, size: u32, name: &str, used: Option<UsedSegment>) -> Result<SpareFile> {
        match used {
            Some(used) => SpareFile::reuse(&*self.host.disk, used),
            None => SpareFile::create(&*self.host.disk, self.options.dir.join(name), size),
        }
    }

    /// Removes a segment that was never used.
    fn discard(&self, segment: Segment) -> Result<()> {
        drop(segment.file);
        self.host.disk.remove(&segment.path).map_err(Error::io("remove", &segment.path))
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    pub(super) fn append_content(&self, content: &[u8]) -> Result<LogPosition> {
        let mut state = self.state.lock();
        self.make_room(&mut state, content.len())?;
        let Some(active) = &mut state.active else { unreachable!("make_room leaves an active segment") };
        let position = active.put(content);
        drop(state);
        self.wake_sync();
        Ok(position)
    }

    /// Ensures an active segment with room for `bytes` of content in several records.
    pub(super) fn make_room(&self, state: &mut State, bytes: usize) -> Result<()> {
        self.check_failure()?;
        // Room for the record's header, a timestamp record and a SYNCED record before it, and the end.
        let wanted = bytes + 4 * HEADER_BYTES + 64;
        if state.active.as_ref().is_some_and(|a| a.end() as usize + wanted <= a.segment.size as usize) {
            return Ok(());
        }
        let grown = state.active.as_ref().map_or(SEGMENT_BYTES_FIRST, |a| a.segment.size.saturating_mul(2));
        let least = wanted + SEGMENT_HEAD as usize + 28 * state.flushed.len() + 96;
        let size = grown.min(self.options.segment_bytes).max(least.next_multiple_of(4096) as u32);
        debug_assert!(content_bytes_max(size) > bytes);
        let (disk, dir) = (&*self.host.disk, &self.options.dir);
        let segment = match state.ready.pop_front() {
            Some(ready) if ready.size as usize >= least => ready,
            small => {
                // The segment created now gets a greater number than these.
                let useless = small.into_iter().chain(std::mem::take(&mut state.ready));
                useless.into_iter().try_for_each(|segment| self.discard(segment))?;
                let used = state.take_used(size);
                let spare = self.told(state, self.spare(size, SPARE_NAMES[1], used))?;
                let number = state.number();
                spare.into_segment(disk, dir, number)?
            }
        };
        state.is_full = false;
        if let Some(mut old) = state.active.take() {
            old.fill_timestamp(&self.options.last_given);
            state.end_of_last = LogPosition::new(old.segment.number, old.end());
            state.closed.push_back(Closed {
                path: old.segment.path.clone(),
                number: old.segment.number,
                bytes: u64::from(old.segment.size),
                end: old.end(),
                dirty: old.dirty,
                is_watched: !old.defined.is_empty(),
            });
            state.pending.push_back(Chunk::new(old.segment, old.buffer, old.buffer_at, true));
        }
        let mut active = Active {
            segment: Arc::new(segment),
            buffer: std::mem::take(&mut state.spare_buffer),
            buffer_at: SEGMENT_HEAD,
            timestamp_at: None,
            layouts: BTreeMap::new(),
            defined: BTreeSet::new(),
            dirty: BTreeMap::new(),
        };
        // Repeats what older segments record, because they may be removed. The end of the previous segment comes
        // first, where replay looks for it.
        let mut content = Vec::new();
        record::put_continues(state.end_of_last, &mut content);
        active.put_bare(&content);
        content.clear();
        record::put_flushed(state.flushed.iter().map(|(table, position)| (*table, *position)), &mut content);
        active.put_bare(&content);
        active.leave_timestamp();
        state.active = Some(active);
        Ok(())
    }

    /// Notes the first segment that cannot be created in the journal, but not the failures that follow it.
    fn told<T>(&self, state: &mut State, made: Result<T>) -> Result<T> {
        if let Err(error) = &made
            && !std::mem::replace(&mut state.is_full, true)
        {
            self.options.journal.note(&Event::LogFull { error });
        }
        made
    }

    /// Keeps a buffer's memory for the next buffer.
    fn give_back(&self, mut bytes: Vec<u8>) {
        const KEPT_BYTES_MAX: usize = 1 << 20;
        if bytes.capacity() > KEPT_BYTES_MAX {
            return;
        }
        bytes.clear();
        let mut state = self.state.lock();
        if state.spare_buffer.capacity() < bytes.capacity() {
            state.spare_buffer = bytes;
        }
    }

    fn synced_offset(&self, segment: u32) -> u32 {
        let synced = LogPosition(self.synced.load(Ordering::Acquire));
        if synced.segment() == segment { synced.offset() } else { 0 }
    }

    pub(super) fn wake_sync(&self) {
        if let Some(task) = self.sync_task.get() {
            task.wake();
        }
    }
}

impl Active {
    /// Writes a table's column numbers, once per segment, and again when the table has new columns.
    fn describe(&mut self, table: &Table) {
        if self.layouts.get(&table.id).is_some_and(|known| *known >= table.next_column_id) {
            return;
        }
        let mut content = Vec::new();
        record::put_layout(table, &mut content);
        self.put(&content);
        self.layouts.insert(table.id, table.next_column_id);
    }

    /// Takes the bytes to write, with their offset. They end with a record of the offset up to which the segment is
    /// synced: it proves to a later replay that everything before that offset was once complete. `next` is memory for
    /// the next buffer.
    fn take_buffer(&mut self, (synced, last_given): (u32, &LastAssigned), next: Vec<u8>) -> Chunk {
        if synced > SEGMENT_HEAD {
            let mut content = Vec::with_capacity(16);
            record::put_synced(synced, &mut content);
            self.put_bare(&content);
        }
        self.fill_timestamp(last_given);
        let bytes = std::mem::replace(&mut self.buffer, next);
        let at = self.buffer_at;
        self.buffer_at += bytes.len() as u32;
        Chunk::new(self.segment.clone(), bytes, at, false)
    }
}

fn layout_bytes<'u>(updates: impl Iterator<Item = &'u PartitionUpdate>) -> usize {
    let table = |table: &Table| {
        let columns = table.statics.iter().chain(&table.regulars);
        32 + columns.map(|column| column.name.len() + 6).sum::<usize>()
    };
    updates.map(|update| table(&update.table)).sum()
}
