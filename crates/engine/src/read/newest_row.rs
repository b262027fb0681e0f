//! Decides whether newer sources determine a row completely, so that older SSTables need not be read.
//!
//! SSTables come newest data first, and no data in an SSTable is newer than its greatest timestamp. If every requested
//! column has a value above that timestamp and the row is known to be alive, neither this SSTable nor any later one can
//! change the answer. Cassandra stops in the same way
//! (`SinglePartitionReadCommand.queryMemtableAndSSTablesInTimestampOrder`), but treats a row whose row marker has
//! expired as alive.

use super::command::ReadCommand;
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::ClusteringFilter;
use helenus_model::row::RowView;
use helenus_model::schema::Column;

/// The newest data of the one row that is read, from the sources opened so far. Keeps its memory from read to read.
#[derive(Default)]
pub(super) struct NewestRow {
    columns: Vec<(ColumnId, NewestCell)>,
    /// The row marker.
    marker: NewestCell,
    deletion_us: i64,
}

/// The newest cell of a column, or the newest row marker.
#[derive(Clone, Copy)]
struct NewestCell {
    /// Microseconds; `i64::MIN` if there is none.
    timestamp_us: i64,
    /// Whether it is alive. If several have this timestamp, all of them must be.
    is_live: bool,
}

impl Default for NewestCell {
    fn default() -> NewestCell {
        NewestCell { timestamp_us: i64::MIN, is_live: false }
    }
}

impl NewestCell {
    fn see(&mut self, timestamp_us: i64, is_live: bool) {
        if timestamp_us > self.timestamp_us {
            *self = NewestCell { timestamp_us, is_live };
        } else if timestamp_us == self.timestamp_us {
            self.is_live &= is_live;
        }
    }
}

/// Whether the newest data of a partition can be the whole answer: the read asks for at most one row, and for columns
/// of a single value each. The value of a counter or a collection is spread over all sources.
pub(super) fn can_stop_early(command: &ReadCommand, filter: &ClusteringFilter) -> bool {
    let table = &command.table;
    // Multi-cell columns come last.
    let is_spread = |columns: &[Column]| columns.last().is_some_and(|column| column.ty.is_multi_cell());
    let is_one = match filter {
        ClusteringFilter::Names(names) => names.len() <= 1,
        ClusteringFilter::Slices(_) => table.clustering.is_empty(),
    };
    let are_spread = is_spread(&table.regulars) || command.statics && is_spread(&table.statics);
    let are_simple = command.columns.is_some() || !are_spread;
    is_one && are_simple && !table.is_counter()
}

/// The ids of those columns that the command needs.
fn wanted<'a>(command: &'a ReadCommand, columns: &'a [Column]) -> impl Iterator<Item = ColumnId> + 'a {
    let is_wanted = |id: &ColumnId| command.columns.as_ref().is_none_or(|wanted| wanted.contains(id));
    columns.iter().map(|column| column.id).filter(is_wanted)
}

impl NewestRow {
    /// Clears the state for another row.
    pub(super) fn restart(&mut self, command: &ReadCommand) {
        let columns = wanted(command, &command.table.regulars);
        self.columns.clear();
        self.columns.extend(columns.map(|id| (id, NewestCell::default())));
        (self.marker, self.deletion_us) = (NewestCell::default(), i64::MIN);
    }

    /// Adds the row as another source has it.
    pub(super) fn see(&mut self, row: RowView<'_>, now_s: i64) {
        self.marker.see(row.row.liveness.timestamp_us, row.row.liveness.is_live(now_s));
        self.deletion_us = self.deletion_us.max(row.row.deletion.timestamp_us);
        for (column, known) in &mut self.columns {
            if let Some(cell) = row.cell_of(*column) {
                known.see(cell.timestamp_us, cell.is_live(now_s));
            }
        }
    }

    /// Whether data with timestamps up to `older_us` can no longer change the row. `statics` has the merged static
    /// cells, if they are read. Deletions found elsewhere need not be known, because a deletion that hides newer data
    /// also hides older data.
    pub(super) fn hides(
        &self,
        (command, filter): (&ReadCommand, &ClusteringFilter),
        statics: RowView<'_>,
        older_us: i64,
    ) -> bool {
        let is_newer = |cell: &Cell| cell.timestamp_us > older_us;
        let is_known = |id| statics.cell_of(id).is_some_and(is_newer);
        if command.statics && !wanted(command, &command.table.statics).all(is_known) {
            return false;
        }
        if matches!(filter, ClusteringFilter::Names(names) if names.is_empty()) {
            return true;
        }
        let deletion = DeletionTime { timestamp_us: self.deletion_us, local_s: 0 };
        if !deletion.is_live() && deletion.deletes(older_us) {
            return true;
        }
        let is_newer = |known: &NewestCell| known.timestamp_us > older_us;
        let is_alive = self.marker.is_live && is_newer(&self.marker);
        self.columns.iter().all(|(_, known)| is_newer(known))
            && (is_alive || self.columns.iter().any(|(_, known)| known.is_live))
    }
}
