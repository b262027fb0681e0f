//! Whether newer sources hold all there is of a row, so that older SSTables need not be asked.
//!
//! SSTables come with the newest data first. Nothing in one is newer than its greatest timestamp: where every column that is
//! asked for has a value above it, and the row is known to be alive, neither it nor any behind it can change the answer.
//! Cassandra stops so, too (`SinglePartitionReadCommand.queryMemtableAndSSTablesInTimestampOrder`), but takes a row for
//! alive whose own marker has expired.

use super::command::ReadCommand;
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::ClusteringFilter;
use helenus_model::row::RowView;
use helenus_model::schema::Column;

/// What the sources opened so far hold of the one row that is asked for. Keeps its memory from read to read.
#[derive(Default)]
pub(super) struct Newest {
    columns: Vec<(ColumnId, Known)>,
    /// Of the row's own marker.
    marker: Known,
    deletion_us: i64,
}

/// The newest of a column, or of the row's marker.
#[derive(Clone, Copy)]
struct Known {
    /// Microseconds; `i64::MIN` for nothing.
    timestamp_us: i64,
    /// Whether it is alive, whichever of several of its timestamp wins.
    is_live: bool,
}

impl Default for Known {
    fn default() -> Known {
        Known { timestamp_us: i64::MIN, is_live: false }
    }
}

impl Known {
    fn see(&mut self, timestamp_us: i64, is_live: bool) {
        if timestamp_us > self.timestamp_us {
            *self = Known { timestamp_us, is_live };
        } else if timestamp_us == self.timestamp_us {
            self.is_live &= is_live;
        }
    }
}

/// Whether the newest of what a read asks for of a partition can be all of it: it asks for one row or none, and of columns that
/// have one value each. What a counter or a collection holds is spread over all sources.
pub(super) fn is_of_one_row(command: &ReadCommand, filter: &ClusteringFilter) -> bool {
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

/// Those of these columns that are looked at.
fn wanted<'a>(command: &'a ReadCommand, columns: &'a [Column]) -> impl Iterator<Item = ColumnId> + 'a {
    let is_wanted = |id: &ColumnId| command.columns.as_ref().is_none_or(|wanted| wanted.contains(id));
    columns.iter().map(|column| column.id).filter(is_wanted)
}

impl Newest {
    /// Forgets a row.
    pub(super) fn restart(&mut self, command: &ReadCommand) {
        let columns = wanted(command, &command.table.regulars);
        self.columns.clear();
        self.columns.extend(columns.map(|id| (id, Known::default())));
        (self.marker, self.deletion_us) = (Known::default(), i64::MIN);
    }

    /// Takes in what another source holds of the row.
    pub(super) fn see(&mut self, row: RowView<'_>, now_s: i64) {
        self.marker.see(row.row.liveness.timestamp_us, row.row.liveness.is_live(now_s));
        self.deletion_us = self.deletion_us.max(row.row.deletion.timestamp_us);
        for (column, known) in &mut self.columns {
            if let Some(cell) = row.cell_of(*column) {
                known.see(cell.timestamp_us, cell.is_live(now_s));
            }
        }
    }

    /// Whether data of at most this timestamp can change nothing any more. `statics` are the merged static cells, where they
    /// are asked for. Deletions that were met elsewhere need not be known: one that hides what is newer hides what is older.
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
        let is_newer = |known: &Known| known.timestamp_us > older_us;
        let is_alive = self.marker.is_live && is_newer(&self.marker);
        self.columns.iter().all(|(_, known)| is_newer(known))
            && (is_alive || self.columns.iter().any(|(_, known)| known.is_live))
    }
}
