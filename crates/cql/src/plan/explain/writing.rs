//! What a write that reads no rows first will write.

use super::step::{Step, bytes_text, counted};
use crate::shown_value::shown_literal;
use helenus_model::cell::Cell;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::mutation::{Change, Mutation, PartitionUpdate};
use helenus_model::packed;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, Table};
use helenus_model::token::KeyHash;
use helenus_model::types::quote_identifier;

/// The most partitions that get a line each.
const PARTITIONS_SHOWN_MAX: usize = 24;

/// The number of changes of each kind in a mutation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    pub(crate) partitions: u64,
    pub(crate) rows: u64,
    pub(crate) cells: u64,
    /// Cells written as tombstones.
    pub(crate) nulls: u64,
    pub(crate) row_deletions: u64,
    pub(crate) range_deletions: u64,
    pub(crate) partition_deletions: u64,
}

impl Written {
    fn add(&mut self, update: &PartitionUpdate) {
        self.partitions += 1;
        for change in update.changes.iter().flatten() {
            match change {
                Change::PartitionDeletion(_) => self.partition_deletions += 1,
                Change::RangeDeletion { .. } => self.range_deletions += 1,
                Change::StaticRow(bytes) => self.add_row(bytes, 0),
                Change::Row(bytes) => self.add_row(bytes, update.table.clustering.len()),
            }
        }
    }

    fn add_row(&mut self, bytes: &[u8], columns: usize) {
        let mut row = RowBuf::default();
        if packed::unpack(bytes, columns, &mut row).is_err() {
            return;
        }
        let is_null = |cell: &&Cell| cell.ttl_s == 0 && cell.local_deletion_s != NO_EXPIRY;
        self.row_deletions += u64::from(!row.deletion.is_live());
        self.rows += u64::from(row.deletion.is_live());
        self.cells += row.cells.len() as u64;
        self.nulls += row.cells.iter().filter(is_null).count() as u64;
    }

    fn text(&self) -> String {
        let parts = [
            (self.rows, "row"),
            (self.cells, "cell"),
            (self.row_deletions, "row deletion"),
            (self.range_deletions, "range deletion"),
            (self.partition_deletions, "partition deletion"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, noun)| counted(*count, noun)).collect();
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }
}

/// The lines of a write, and the counts of its changes. `word` names the statement, `reads` describes what it reads.
pub(crate) fn write_steps(word: &'static str, mutation: &Mutation, reads: &str) -> (Vec<Step>, Written) {
    let mut all = Written::default();
    let mut lines = Vec::new();
    for update in &mutation.updates {
        let mut here = Written::default();
        here.add(update);
        all.add(update);
        if lines.len() < PARTITIONS_SHOWN_MAX {
            let size = bytes_text((update.key.len() + update.changes.as_bytes().len()) as u64);
            let token = KeyHash::of(&update.key).token.0;
            let table = &update.table;
            let detail = format!("{}.{}, token {token}: {}, {size}", table.keyspace, table.name, here.text());
            lines.push(Step::new("partition", key_text(table, &update.key), detail).count(1));
        }
    }
    let detail = match mutation.updates.len() {
        0 => format!("changes nothing; {reads}"),
        _ => format!("{}; {reads}", all.text()),
    };
    let mut steps = vec![Step::new("write", word, detail)];
    let more = mutation.updates.len() - lines.len();
    steps.extend(lines);
    if more > 0 {
        steps.push(Step::new("partition", format!("{more} more"), "").count(more as u64));
    }
    if !mutation.updates.is_empty() {
        steps.push(Step::new("log", "1 record", "applied and replayed whole or not at all"));
        steps.push(Step::new("memtable", "memory", "the changes become visible in one step"));
    }
    (steps, all)
}

/// A partition key as CQL: `a = 1 AND b = 'x'`.
pub(super) fn key_text(table: &Table, key: &[u8]) -> String {
    let one = |column: &Column, value: &[u8]| {
        format!("{} = {}", quote_identifier(&column.name), shown_literal(&column.ty, Some(value)))
    };
    if let [column] = table.partition_key.as_slice() {
        return one(column, key);
    }
    // In the encoding of `CompositeType`: length, value, a zero byte.
    let mut parts = Vec::new();
    let mut rest = key;
    for column in &table.partition_key {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { break };
        let length = usize::from(u16::from_be_bytes(*length));
        let (Some(value), next) = (after.get(..length), after.get(length + 1..)) else { break };
        parts.push(one(column, value));
        rest = next.unwrap_or_default();
    }
    parts.join(" AND ")
}
