//! Encodes and decodes records of the commit log.
//!
//! A record is replayed whole or not at all. On disk: length u32, CRC32 u32 (over the segment's number, the length and
//! the content), content. The content's first byte is the kind. A length of zero ends the segment if only zeroes
//! follow.

use super::definition::{DefinitionKind, put_definition, read_definition};
use crate::log_position::LogPosition;
use helenus_model::cell::ColumnId;
use helenus_model::mutation::{Mutation, PartitionUpdate};
use helenus_model::schema::{Table, TableId};
use helenus_sstable::checksum::Crc32;
use uuid::Uuid;

/// Bytes of the header before a record's content.
pub(super) const HEADER_BYTES: usize = 8;

const MUTATION: u8 = 1;
const LAYOUT: u8 = 2;
const SYNCED: u8 = 3;
const TRUNCATE: u8 = 4;
const FLUSHED: u8 = 5;
const TIMESTAMP: u8 = 6;
const CONTINUES: u8 = 7;
const DEFINITION: u8 = 8;
const IMPORTED: u8 = 9;
const BEFORE: u8 = 10;

/// Bytes of a timestamp record's content.
pub(super) const TIMESTAMP_BYTES: usize = 9;

/// Marks a SYNCED record, so that it can be found after damaged bytes.
pub(super) const SYNCED_MAGIC: [u8; 8] = *b"\x03syncd\xA5\x5A";

/// A decoded record.
#[derive(Debug)]
pub enum Record<'a> {
    /// Updates to apply, with tables by id.
    Mutation(LoggedUpdates<'a>),
    /// The column numbers that records after this one use for a table.
    Layout(TableId, Vec<(ColumnId, String)>),
    /// Everything before this offset of the segment was on disk when the record was written.
    Synced(u32),
    /// The table was truncated: its earlier records are void.
    Truncate(TableId),
    /// The writes of these tables up to these positions are in their SSTables.
    Flushed(Vec<(TableId, LogPosition)>),
    /// The greatest timestamp that the server had given to its own writes when the records after this one were written
    /// to the operating system, microseconds. The last such record counts.
    Timestamp(i64),
    /// End of the previous segment.
    Continues(LogPosition),
    /// The definition of a watched table, for the records after it in this segment. If it is new, the next mutation is
    /// the schema change that makes it so.
    Definition(DefinitionKind, Box<Table>),
    /// So many SSTables were imported into a watched table, and are visible.
    Imported(TableId, u32),
    /// What the rows were that the next mutation changes: an update for each of its partitions whose rows are recorded, without
    /// the rows that were not there.
    Before(LoggedUpdates<'a>),
}

/// Iterates over the updates of a record without copying them.
#[derive(Clone, Copy, Debug)]
pub struct LoggedUpdates<'a>(&'a [u8]);

/// One partition's update as logged.
#[derive(Clone, Copy, Debug)]
pub struct LoggedUpdate<'a> {
    /// The table.
    pub table: TableId,
    /// Serialised partition key.
    pub key: &'a [u8],
    /// Its changes (`Changes::from_bytes`); column numbers as of the last `Layout`.
    pub changes: &'a [u8],
}

impl<'a> Iterator for LoggedUpdates<'a> {
    type Item = LoggedUpdate<'a>;

    fn next(&mut self) -> Option<LoggedUpdate<'a>> {
        let mut input = Input(self.0);
        let update = input.update();
        self.0 = input.0;
        update
    }
}

/// Appends the content of a mutation record to `out`, which begins with `HEADER_BYTES` reserved bytes.
pub(super) fn put_mutation(mutation: &Mutation, derived: &[PartitionUpdate], out: &mut Vec<u8>) {
    out.push(MUTATION);
    put_len(out, mutation.updates.len() + derived.len());
    put_updates(mutation.updates.iter().chain(derived), out);
}

/// The content of the record before a mutation whose rows are recorded as they were.
pub(super) fn before(images: &[PartitionUpdate]) -> Vec<u8> {
    let mut out = vec![BEFORE];
    put_len(&mut out, images.len());
    put_updates(images.iter(), &mut out);
    out
}

fn put_updates<'u>(updates: impl Iterator<Item = &'u PartitionUpdate>, out: &mut Vec<u8>) {
    for update in updates {
        out.extend_from_slice(update.table.id.0.as_bytes());
        put_bytes(out, &update.key);
        put_bytes(out, update.changes.as_bytes());
    }
}

pub(super) fn put_layout(table: &Table, out: &mut Vec<u8>) {
    out.push(LAYOUT);
    out.extend_from_slice(table.id.0.as_bytes());
    put_len(out, table.statics.len() + table.regulars.len());
    for column in table.statics.iter().chain(&table.regulars) {
        out.extend_from_slice(&column.id.0.to_le_bytes());
        put_bytes(out, column.name.as_bytes());
    }
}

pub(super) fn put_synced(offset: u32, out: &mut Vec<u8>) {
    // The magic begins with the kind.
    out.extend_from_slice(&SYNCED_MAGIC);
    out.extend_from_slice(&offset.to_le_bytes());
}

pub(super) fn put_truncate(table: TableId, out: &mut Vec<u8>) {
    out.push(TRUNCATE);
    out.extend_from_slice(table.0.as_bytes());
}

pub(super) fn put_flushed(
    positions: impl ExactSizeIterator<Item = (TableId, LogPosition)>,
    out: &mut Vec<u8>,
) {
    out.push(FLUSHED);
    put_len(out, positions.len());
    for (table, position) in positions {
        out.extend_from_slice(table.0.as_bytes());
        out.extend_from_slice(&position.0.to_le_bytes());
    }
}

/// The content of a timestamp record.
pub(super) fn timestamp(timestamp_us: i64) -> [u8; TIMESTAMP_BYTES] {
    let [a, b, c, d, e, f, g, h] = timestamp_us.to_le_bytes();
    [TIMESTAMP, a, b, c, d, e, f, g, h]
}

pub(super) fn put_continues(end: LogPosition, out: &mut Vec<u8>) {
    out.push(CONTINUES);
    out.extend_from_slice(&end.0.to_le_bytes());
}

pub(super) fn definition(kind: DefinitionKind, table: &Table) -> Vec<u8> {
    let mut out = vec![DEFINITION];
    put_definition(kind, table, &mut out);
    out
}

pub(super) fn put_imported(table: TableId, sstables: u32, out: &mut Vec<u8>) {
    out.push(IMPORTED);
    out.extend_from_slice(table.0.as_bytes());
    out.extend_from_slice(&sstables.to_le_bytes());
}

/// The header of a record in a segment.
pub(super) fn head(segment: u32, content: &[u8]) -> [u8; HEADER_BYTES] {
    let [a, b, c, d] = (content.len() as u32).to_le_bytes();
    let [e, f, g, h] = checksum(segment, content).to_le_bytes();
    [a, b, c, d, e, f, g, h]
}

/// The checksum of a record in a segment.
pub(super) fn checksum(segment: u32, content: &[u8]) -> u32 {
    let [a, b, c, d] = segment.to_le_bytes();
    let [e, f, g, h] = (content.len() as u32).to_le_bytes();
    let mut crc = Crc32::default();
    crc.update(&[a, b, c, d, e, f, g, h]);
    crc.update(content);
    crc.value()
}

pub(super) fn put_len(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&(len as u32).to_le_bytes());
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Decodes a record's content; `None` if it is invalid although its checksum was right.
pub(super) fn parse(content: &[u8]) -> Option<Record<'_>> {
    let (&kind, rest) = content.split_first()?;
    let mut input = Input(rest);
    let record = match kind {
        MUTATION => Record::Mutation(input.updates()?),
        BEFORE => Record::Before(input.updates()?),
        LAYOUT => {
            let table = input.table()?;
            let count = input.u32()?;
            let mut columns = Vec::new();
            for _ in 0..count {
                let id = ColumnId(u16::from_le_bytes(input.array()?));
                columns.push((id, String::from_utf8(input.bytes()?.to_vec()).ok()?));
            }
            Record::Layout(table, columns)
        }
        SYNCED => {
            input.array::<7>()?;
            Record::Synced(input.u32()?)
        }
        TRUNCATE => Record::Truncate(input.table()?),
        FLUSHED => {
            let count = input.u32()?;
            let mut positions = Vec::new();
            for _ in 0..count {
                positions.push((input.table()?, LogPosition(u64::from_le_bytes(input.array()?))));
            }
            Record::Flushed(positions)
        }
        TIMESTAMP => Record::Timestamp(i64::from_le_bytes(input.array()?)),
        CONTINUES => Record::Continues(LogPosition(u64::from_le_bytes(input.array()?))),
        DEFINITION => {
            let (kind, table) = read_definition(&mut input)?;
            Record::Definition(kind, Box::new(table))
        }
        IMPORTED => Record::Imported(input.table()?, input.u32()?),
        _ => return None,
    };
    input.0.is_empty().then_some(record)
}

/// Bytes that are read from the front; each method returns `None` if they are too few.
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn table(&mut self) -> Option<TableId> {
        self.array().map(|bytes| TableId(Uuid::from_bytes(bytes)))
    }

    fn updates(&mut self) -> Option<LoggedUpdates<'a>> {
        let count = self.u32()?;
        let updates = LoggedUpdates(self.0);
        for _ in 0..count {
            self.update()?;
        }
        Some(updates)
    }

    fn update(&mut self) -> Option<LoggedUpdate<'a>> {
        Some(LoggedUpdate { table: self.table()?, key: self.bytes()?, changes: self.bytes()? })
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }
}
