//! The active segment: its buffer of records that are not yet written, and the chunks that are cut from it.

use super::record::{self, HEADER_BYTES, TIMESTAMP_BYTES};
use super::segment::{SEGMENT_HEAD, Segment};
use crate::log_position::LogPosition;
use crate::timestamps::LastAssigned;
use helenus_model::schema::{Table, TableId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Size of a page of the kernel's page cache, or a divisor of it.
pub(super) const PAGE_BYTES: u32 = 4096;
/// A mutation's record of at least this size is written from its own memory. Copying it to the buffer would cost
/// memory, and time under the lock.
pub(super) const LARGE_RECORD_BYTES: usize = 64 << 10;

/// Bytes to be written to a segment.
pub(super) struct Chunk {
    pub(super) segment: Arc<Segment>,
    /// The records, padded with zeroes to a whole page.
    pub(super) bytes: Vec<u8>,
    pub(super) at: u32,
    /// End of the records in the segment.
    pub(super) end: u32,
    /// Whether they complete the segment.
    pub(super) last: bool,
}

impl Chunk {
    /// A write that ends within a page of a reused segment would have to read that page first, unless it is still
    /// cached. So the whole page is written. That overwrites the bytes after the records, which have no meaning any
    /// more; the next chunk begins at `end`.
    pub(super) fn new(segment: Arc<Segment>, mut bytes: Vec<u8>, at: u32, last: bool) -> Chunk {
        let end = at + bytes.len() as u32;
        let whole = end.next_multiple_of(PAGE_BYTES).min(segment.size).max(end);
        bytes.resize((whole - at) as usize, 0);
        Chunk { segment, bytes, at, end, last }
    }
}

/// What the end of a buffer records besides its mutations.
#[derive(Clone, Copy)]
pub(super) struct BufferEnd<'a> {
    /// The offset up to which the segment is synced.
    pub(super) synced: u32,
    /// The greatest timestamp given to a write.
    pub(super) last_given: &'a LastAssigned,
}

pub(super) struct Active {
    pub(super) segment: Arc<Segment>,
    /// Bytes not yet written, and their offset in the segment.
    pub(super) buffer: Vec<u8>,
    pub(super) buffer_at: u32,
    /// Offset of the timestamp record in the buffer, if the buffer has records. It bounds the timestamps of the
    /// records after it, so it is filled in when the buffer is taken.
    pub(super) timestamp_at: Option<usize>,
    /// The layouts already described in this segment: for each table, the column numbers below this one.
    pub(super) layouts: BTreeMap<TableId, u16>,
    /// The watched tables that are defined in this segment.
    pub(super) defined: BTreeSet<TableId>,
    pub(super) dirty: BTreeMap<TableId, LogPosition>,
}

impl Active {
    /// A segment without records.
    pub(super) fn new(segment: Segment, buffer: Vec<u8>) -> Active {
        Active {
            segment: Arc::new(segment),
            buffer,
            buffer_at: SEGMENT_HEAD,
            timestamp_at: None,
            layouts: BTreeMap::new(),
            defined: BTreeSet::new(),
            dirty: BTreeMap::new(),
        }
    }

    pub(super) fn end(&self) -> u32 {
        self.buffer_at + self.buffer.len() as u32
    }

    pub(super) fn put(&mut self, content: &[u8]) -> LogPosition {
        self.leave_timestamp();
        self.put_bare(content);
        LogPosition::new(self.segment.number, self.end())
    }

    pub(super) fn put_bare(&mut self, content: &[u8]) {
        self.buffer.extend_from_slice(&record::head(self.segment.number, content));
        self.buffer.extend_from_slice(content);
    }

    /// Reserves space for the buffer's timestamp record, before the first record of the buffer.
    pub(super) fn leave_timestamp(&mut self) {
        if self.timestamp_at.is_none() {
            self.timestamp_at = Some(self.buffer.len());
            self.buffer.resize(self.buffer.len() + HEADER_BYTES + TIMESTAMP_BYTES, 0);
        }
    }

    /// Fills in the buffer's timestamp record.
    pub(super) fn fill_timestamp(&mut self, last_given: &LastAssigned) {
        let Some(at) = self.timestamp_at.take() else { return };
        let content = record::timestamp(last_given.get());
        let head = record::head(self.segment.number, &content);
        for (place, byte) in self.buffer.iter_mut().skip(at).zip(head.into_iter().chain(content)) {
            *place = byte;
        }
    }

    /// Appends a record whose header is not filled in. A large record is not copied: it goes to `pending`, after all
    /// bytes before it.
    pub(super) fn put_record(
        &mut self,
        mut bytes: Vec<u8>,
        ending: BufferEnd<'_>,
        pending: &mut VecDeque<Chunk>,
    ) -> LogPosition {
        let (head, content) = bytes.split_at_mut(HEADER_BYTES);
        head.copy_from_slice(&record::head(self.segment.number, content));
        self.leave_timestamp();
        if bytes.len() < LARGE_RECORD_BYTES {
            self.buffer.extend_from_slice(&bytes);
        } else {
            pending.push_back(self.take_buffer(ending, Vec::new()));
            let at = self.buffer_at;
            self.buffer_at += bytes.len() as u32;
            pending.push_back(Chunk::new(self.segment.clone(), bytes, at, false));
        }
        LogPosition::new(self.segment.number, self.end())
    }

    /// Writes a table's column numbers, once per segment, and again when the table has new columns.
    pub(super) fn describe(&mut self, table: &Table) {
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
    pub(super) fn take_buffer(&mut self, ending: BufferEnd<'_>, next: Vec<u8>) -> Chunk {
        if ending.synced > SEGMENT_HEAD {
            let mut content = Vec::with_capacity(16);
            record::put_synced(ending.synced, &mut content);
            self.put_bare(&content);
        }
        self.fill_timestamp(ending.last_given);
        let bytes = std::mem::replace(&mut self.buffer, next);
        let at = self.buffer_at;
        self.buffer_at += bytes.len() as u32;
        Chunk::new(self.segment.clone(), bytes, at, false)
    }
}
