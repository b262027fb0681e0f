//! Purges merged partitions: removes tombstones and expired cells that nothing needs any more.
//!
//! A tombstone is removed when (1) no data of its partition outside the compaction can be as old as it, and (2) it is
//! older than a grace period. On a single machine no replica brings deleted data back, so the grace period is short,
//! and only covers client timestamps, retries and clock jumps. Cassandra's own rule (`PurgeFunction`, `Cell.purge`)
//! uses `gc_grace_seconds`, and turns expired cells into tombstones, whose age counts from the time of the write.

use super::choose::CompactionOptions;
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::range_tombstone::{MarkerBuf, MarkerView};
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::Table;
use helenus_model::unfiltered::Unfiltered;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How long tombstones are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeOptions {
    /// Least seconds that a tombstone is kept.
    pub grace_s: i64,
    /// Whether the table's `gc_grace_seconds` counts instead, as on a node of a cluster. Counter tables always use it.
    pub obey_gc_grace: bool,
}

impl Default for PurgeOptions {
    /// Ten minutes.
    fn default() -> PurgeOptions {
        PurgeOptions { grace_s: 600, obey_gc_grace: false }
    }
}

/// The purge rule of a table at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PurgeRule {
    /// The time, seconds.
    pub(super) now_s: i64,
    /// Deletions before this time may be purged, seconds.
    pub(super) gc_before_s: i64,
    /// Whether expired cells become tombstones, as in Cassandra.
    converts: bool,
}

impl PurgeRule {
    /// Under Cassandra's rule, a table may allow purging only in repaired SSTables. Then nothing is purged unless
    /// `is_repaired`: all inputs of the compaction are repaired.
    pub(super) fn new(options: PurgeOptions, table: &Table, now_s: i64, is_repaired: bool) -> PurgeRule {
        let obeys = options.obey_gc_grace || table.is_counter();
        let grace_s = if obeys { i64::from(table.options.gc_grace_seconds) } else { options.grace_s };
        let only_repaired = CompactionOptions::of(&table.options.compaction).only_purge_repaired;
        let keeps = options.obey_gc_grace && only_repaired && !is_repaired;
        let gc_before_s = if keeps { i64::MIN } else { now_s.saturating_sub(grace_s) };
        PurgeRule { now_s, gc_before_s, converts: obeys }
    }
}

/// Returns the smallest timestamp that data of the partition may have outside the compaction; `None` if there is none.
pub(super) type Outside<'a> = &'a dyn Fn() -> Option<i64>;

/// Applies the rule to partition after partition.
pub(super) struct Purger {
    rule: PurgeRule,
    table: Arc<Table>,
    /// Keys of the partitions whose tombstones are purged whatever their age.
    forced: Arc<BTreeSet<Vec<u8>>>,
    is_forced: bool,
    /// The result of `Outside` for this partition, asked for only when there is something to purge. It is asked once
    /// for a partition, because both ends of a range tombstone must have the same outcome.
    outside_us: Option<Option<i64>>,
    row: RowBuf,
    marker: MarkerBuf,
}

impl Purger {
    pub(super) fn new(rule: PurgeRule, table: Arc<Table>, forced: Arc<BTreeSet<Vec<u8>>>) -> Purger {
        Purger {
            rule,
            table,
            forced,
            is_forced: false,
            outside_us: None,
            row: RowBuf::default(),
            marker: MarkerBuf::default(),
        }
    }

    pub(super) fn begin_partition(&mut self, key: &[u8]) {
        self.outside_us = None;
        self.is_forced = !self.forced.is_empty() && self.forced.contains(key);
    }

    fn may_go(&mut self, timestamp_us: i64, local_s: i64, outside: Outside<'_>) -> bool {
        let is_old = local_s < self.rule.gc_before_s || (self.is_forced && local_s <= self.rule.now_s);
        is_old && self.outside_us.get_or_insert_with(outside).is_none_or(|least_us| timestamp_us < least_us)
    }

    /// What purging leaves of a deletion.
    pub(super) fn deletion(&mut self, deletion: DeletionTime, outside: Outside<'_>) -> DeletionTime {
        let goes = !deletion.is_live() && self.may_go(deletion.timestamp_us, deletion.local_s, outside);
        if goes { DeletionTime::LIVE } else { deletion }
    }

    /// What purging leaves of a row or marker, if anything.
    pub(super) fn unfiltered<'a>(
        &'a mut self,
        element: Unfiltered<'a>,
        outside: Outside<'_>,
    ) -> Option<Unfiltered<'a>> {
        match element {
            Unfiltered::Row(row) => self.row(row, outside).map(Unfiltered::Row),
            Unfiltered::Marker(marker) => self.marker(marker, outside).map(Unfiltered::Marker),
        }
    }

    fn marker<'a>(&'a mut self, marker: MarkerView<'a>, outside: Outside<'_>) -> Option<MarkerView<'a>> {
        let (close, open) = (marker.marker.close, marker.marker.open);
        let remaining = (self.deletion(close, outside), self.deletion(open, outside));
        if remaining == (close, open) {
            return Some(marker);
        }
        self.marker.copy_from(marker);
        (self.marker.close, self.marker.open) = remaining;
        self.marker.kind().map(|_| self.marker.view())
    }

    /// What purging leaves of a row, which may be static.
    pub(super) fn row<'a>(&'a mut self, row: RowView<'a>, outside: Outside<'_>) -> Option<RowView<'a>> {
        if !self.concerns(row) {
            return Some(row);
        }
        let mut out = std::mem::take(&mut self.row);
        out.clear();
        out.key.extend_from_slice(&row.row.key);
        out.copy_clustering(row);
        let Liveness { timestamp_us, expires_s, .. } = row.row.liveness;
        let is_over = !row.row.liveness.is_none() && !row.row.liveness.is_live(self.rule.now_s);
        if !(is_over && self.may_go(timestamp_us, expires_s, outside)) {
            out.liveness = row.row.liveness;
        }
        out.deletion = self.deletion(row.row.deletion, outside);
        for &(column, deletion) in &row.row.complex_deletions {
            let remaining = self.deletion(deletion, outside);
            if !remaining.is_live() && self.exists(column) {
                out.complex_deletions.push((column, remaining));
            }
        }
        for cell in &row.row.cells {
            if let Some(remaining) = self.cell(cell, outside) {
                out.push_cell(&remaining, row.data);
            }
        }
        self.row = out;
        Some(self.row.view()).filter(|row| !row.is_empty())
    }

    fn cell(&mut self, cell: &Cell, outside: Outside<'_>) -> Option<Cell> {
        if !self.exists(cell.column) {
            return None;
        }
        if cell.is_live(self.rule.now_s) {
            return Some(*cell);
        }
        if self.may_go(cell.timestamp_us, cell.local_deletion_s, outside) {
            return None;
        }
        if !(cell.is_expiring() && self.rule.converts) {
            return Some(*cell);
        }
        let written_s = cell.local_deletion_s - i64::from(cell.ttl_s);
        let tombstone = Cell { ttl_s: 0, local_deletion_s: written_s, value: Span::EMPTY, ..*cell };
        (!self.may_go(tombstone.timestamp_us, written_s, outside)).then_some(tombstone)
    }

    /// Whether a row may have something to purge. Most rows have no deleted or expired data.
    fn concerns(&self, row: RowView<'_>) -> bool {
        let now_s = self.rule.now_s;
        let RowBuf { liveness, deletion, complex_deletions, cells, .. } = row.row;
        !deletion.is_live()
            || !complex_deletions.is_empty()
            || (!liveness.is_none() && !liveness.is_live(now_s))
            || cells.iter().any(|cell| cell.local_deletion_s != NO_EXPIRY && !cell.is_live(now_s))
            || (!self.table.dropped.is_empty() && cells.iter().any(|cell| !self.exists(cell.column)))
    }

    /// Whether the table still has a column. Cells of dropped columns are removed in every rewrite.
    fn exists(&self, column: helenus_model::cell::ColumnId) -> bool {
        self.table.dropped.is_empty() || self.table.column_by_id(column).is_some()
    }
}
