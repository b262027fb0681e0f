//! A mutation: the changes to one partition key in one or more tables of a keyspace, in the form in which they are
//! logged.
//!
//! The changes of a partition are one byte string. The statement writes it once, the commit log stores it as it is, and
//! the memtable decodes it once. Layout of a change: kind u8, length u32, content.

use crate::cell::ColumnId;
use crate::deletion::{DeletionTime, Liveness};
use crate::packed::{Damaged, RowWriter, get_value, put_value};
use crate::schema::Table;
use std::sync::Arc;

const PARTITION_DELETION: u8 = 1;
const STATIC_ROW: u8 = 2;
const ROW: u8 = 3;
const RANGE_DELETION: u8 = 4;

/// Bytes of a change before its content.
const CHANGE_HEADER_BYTES: usize = 5;
/// Bytes of a deletion.
const DELETION: usize = 16;

/// One write. It is applied and replayed completely or not at all.
#[derive(Clone, Debug, Default)]
pub struct Mutation {
    /// The changed partitions.
    pub updates: Vec<PartitionUpdate>,
}

/// The changes to one partition of one table.
#[derive(Clone, Debug)]
pub struct PartitionUpdate {
    /// The table as the statement saw it.
    pub table: Arc<Table>,
    /// Serialised partition key.
    pub key: Vec<u8>,
    /// The changes.
    pub changes: Changes,
}

/// Changes to one partition, in the order they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    bytes: Vec<u8>,
}

/// One end of a range deletion: a prefix of the clustering, and whether the bound is before or after it.
#[derive(Clone, Copy, Debug)]
pub struct RangeBound<'a> {
    /// Serialised values of the prefix, packed as in a row; read them with `values`.
    packed: &'a [u8],
    /// Number of values in the prefix.
    pub count: usize,
    /// Whether the bound is before the rows with the prefix, or after them.
    pub before: bool,
}

impl<'a> RangeBound<'a> {
    /// The prefix's values.
    pub fn values(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let (bytes, mut at) = (self.packed, 0);
        (0..self.count).map_while(move |_| get_value(bytes, &mut at).ok())
    }
}

/// One change.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The whole partition is deleted.
    PartitionDeletion(DeletionTime),
    /// An update of the static row, packed.
    StaticRow(&'a [u8]),
    /// An update of a row, packed.
    Row(&'a [u8]),
    /// All rows between two bounds are deleted.
    RangeDeletion {
        /// Lower bound.
        start: RangeBound<'a>,
        /// Upper bound.
        end: RangeBound<'a>,
        /// The deletion.
        deletion: DeletionTime,
    },
}

impl Changes {
    /// Takes bytes that were logged. `iter` reports damage in them.
    pub fn from_bytes(bytes: Vec<u8>) -> Changes {
        Changes { bytes }
    }

    /// The bytes, as logged.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all changes and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Reserves memory for `bytes` more bytes of changes.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// The memory for changes, so that the caller can make room in it.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Bytes of memory for changes, used and unused.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends the changes of another update of the same partition.
    pub fn append(&mut self, other: &Changes) {
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// Deletes the whole partition.
    pub fn delete_partition(&mut self, deletion: DeletionTime) {
        let at = self.begin(PARTITION_DELETION);
        put_deletion(&mut self.bytes, deletion);
        self.end(at);
    }

    /// Adds a row update; `write` appends its cells.
    pub fn row<'v>(
        &mut self,
        clustering: impl Iterator<Item = Option<&'v [u8]>>,
        (liveness, deletion): (Liveness, DeletionTime),
        complex: &[(ColumnId, DeletionTime)],
        write: impl FnOnce(&mut RowWriter<'_>),
    ) {
        let at = self.begin(ROW);
        let mut writer = RowWriter::begin(&mut self.bytes, clustering, liveness, deletion, complex);
        write(&mut writer);
        writer.finish();
        self.end(at);
    }

    /// Adds an update of the static row; `write` appends its cells.
    pub fn static_row(
        &mut self,
        complex: &[(ColumnId, DeletionTime)],
        write: impl FnOnce(&mut RowWriter<'_>),
    ) {
        let at = self.begin(STATIC_ROW);
        let none = std::iter::empty();
        let mut writer = RowWriter::begin(&mut self.bytes, none, Liveness::NONE, DeletionTime::LIVE, complex);
        write(&mut writer);
        writer.finish();
        self.end(at);
    }

    /// Adds an update of a row, or of the static row, that is already packed.
    pub fn packed_row(&mut self, is_static: bool, packed: &[u8]) {
        let at = self.begin(if is_static { STATIC_ROW } else { ROW });
        self.bytes.extend_from_slice(packed);
        self.end(at);
    }

    /// Deletes the rows between two bounds. A bound is its prefix values and whether it is before the rows with the
    /// prefix.
    pub fn delete_range(
        &mut self,
        start: (&[Option<&[u8]>], bool),
        end: (&[Option<&[u8]>], bool),
        deletion: DeletionTime,
    ) {
        let at = self.begin(RANGE_DELETION);
        put_deletion(&mut self.bytes, deletion);
        for (values, before) in [start, end] {
            self.bytes.push(u8::from(before));
            // The low eight bits of the count: see `read_bound`.
            self.bytes.push(values.len() as u8);
            let length_at = self.bytes.len();
            self.bytes.extend_from_slice(&[0; 4]);
            for value in values {
                put_value(&mut self.bytes, *value);
            }
            let len = (self.bytes.len() - length_at - 4) as u32;
            self.bytes[length_at..length_at + 4].copy_from_slice(&len.to_le_bytes());
        }
        self.end(at);
    }

    /// Removes the changes that `keep` refuses.
    pub fn retain(&mut self, mut keep: impl FnMut(&Change<'_>) -> bool) {
        let (mut kept, mut at) = (Vec::with_capacity(self.bytes.len()), 0);
        while let Ok((change, next)) = read_change(&self.bytes, at) {
            if keep(&change) {
                kept.extend_from_slice(&self.bytes[at..next]);
            }
            at = next;
        }
        self.bytes = kept;
    }

    /// Iterates over the changes.
    pub fn iter(&self) -> impl Iterator<Item = Result<Change<'_>, Damaged>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            if at >= self.bytes.len() {
                return None;
            }
            let change = read_change(&self.bytes, at);
            at = match &change {
                Ok((_, next)) => *next,
                Err(_) => self.bytes.len(),
            };
            Some(change.map(|(change, _)| change))
        })
    }

    fn begin(&mut self, kind: u8) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[kind, 0, 0, 0, 0]);
        at
    }

    fn end(&mut self, at: usize) {
        let len = (self.bytes.len() - at - CHANGE_HEADER_BYTES) as u32;
        self.bytes[at + 1..at + CHANGE_HEADER_BYTES].copy_from_slice(&len.to_le_bytes());
    }
}

fn put_deletion(out: &mut Vec<u8>, deletion: DeletionTime) {
    out.extend_from_slice(&deletion.timestamp_us.to_le_bytes());
    out.extend_from_slice(&deletion.local_s.to_le_bytes());
}

fn read_change(bytes: &[u8], at: usize) -> Result<(Change<'_>, usize), Damaged> {
    let damaged = Damaged { offset: at };
    let head = bytes.get(at..at + CHANGE_HEADER_BYTES).ok_or(damaged)?;
    let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let next = (at + CHANGE_HEADER_BYTES).checked_add(len).ok_or(damaged)?;
    let content = bytes.get(at + CHANGE_HEADER_BYTES..next).ok_or(damaged)?;
    let change = match head[0] {
        PARTITION_DELETION if len == DELETION => {
            Change::PartitionDeletion(read_deletion(content).ok_or(damaged)?)
        }
        STATIC_ROW => Change::StaticRow(content),
        ROW => Change::Row(content),
        RANGE_DELETION => {
            let deletion = read_deletion(content).ok_or(damaged)?;
            let (start, used) = read_bound(content.get(DELETION..).ok_or(damaged)?).ok_or(damaged)?;
            let at_end = DELETION + used;
            let (end, used) = read_bound(content.get(at_end..).ok_or(damaged)?).ok_or(damaged)?;
            if at_end + used != len {
                return Err(damaged);
            }
            Change::RangeDeletion { start, end, deletion }
        }
        _ => return Err(damaged),
    };
    Ok((change, next))
}

fn read_deletion(bytes: &[u8]) -> Option<DeletionTime> {
    let (timestamp, rest) = bytes.split_first_chunk::<8>()?;
    let local = rest.first_chunk::<8>()?;
    Some(DeletionTime { timestamp_us: i64::from_le_bytes(*timestamp), local_s: i64::from_le_bytes(*local) })
}

/// Reads a bound: one byte for its side, the low eight bits of the number of its values, the length of the values, and
/// the values. Their full number is found by walking over them.
fn read_bound(bytes: &[u8]) -> Option<(RangeBound<'_>, usize)> {
    let (head, rest) = bytes.split_first_chunk::<6>()?;
    let len = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
    let packed = rest.get(..len)?;
    let (mut count, mut at) = (0_usize, 0);
    while at < packed.len() {
        get_value(packed, &mut at).ok()?;
        count += 1;
    }
    (count as u8 == head[1]).then_some((RangeBound { packed, count, before: head[0] != 0 }, 6 + len))
}
