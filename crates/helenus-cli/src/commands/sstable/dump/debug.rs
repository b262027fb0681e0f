//! Writes one line for each row in Cassandra's internal notation, as `sstabledump -d` does (`AbstractRow.toString` and
//! the `toString` of its parts).

use super::partition::path_text;
use super::run::key_types;
use helenus_model::cell::Cell;
use helenus_model::counter_context;
use helenus_model::deletion::DeletionTime;
use helenus_model::range_tombstone::{BoundKind, MarkerView};
use helenus_model::row::RowView;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, key_text, write_literal, write_text};
use std::fmt::Write as _;
use std::sync::Arc;

/// Writes the lines of one table.
pub struct Debug {
    table: Arc<Table>,
    key: String,
}

impl Debug {
    /// A writer for `table`.
    pub fn new(table: Arc<Table>) -> Debug {
        Debug { table, key: String::new() }
    }

    /// Begins a partition; writes a line if the partition has a deletion.
    pub fn begin_partition(&mut self, key: &[u8], position: u64, deletion: DeletionTime, out: &mut String) {
        self.key = key_text(&key_types(&self.table), key);
        if !deletion.is_live() {
            _ = write!(out, "[{}]@{position} ", self.key);
            write_deletion(deletion, out);
            out.push('\n');
        }
    }

    fn begin(&self, position: u64, out: &mut String) {
        _ = write!(out, "[{}]@{position} ", self.key);
    }

    /// Writes a row, or the static row.
    pub fn row(&mut self, row: RowView<'_>, is_static: bool, position: u64, out: &mut String) {
        self.begin(position, out);
        let liveness = row.row.liveness;
        if liveness.ttl_s == 0 {
            _ = write!(out, "Row[info=[ts={}]", liveness.timestamp_us);
        } else {
            let (timestamp_us, ttl_s, expires_s) =
                (liveness.timestamp_us, liveness.ttl_s, liveness.expires_s);
            _ = write!(out, "Row[info=[ts={timestamp_us} ttl={ttl_s}, let={expires_s}]");
        }
        if !row.row.deletion.is_live() {
            out.push_str(" del=");
            write_deletion(row.row.deletion, out);
        }
        out.push_str(" ]: ");
        if is_static {
            out.push_str("STATIC");
        } else {
            for (index, column) in self.table.clustering.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_literal(&column.ty, row.clustering(index), out);
            }
        }
        out.push_str(" | ");
        self.columns(row, out);
        out.push('\n');
    }

    fn columns(&self, row: RowView<'_>, out: &mut String) {
        let of_cells = row.row.cells.iter().map(|cell| cell.column);
        let mut ids: Vec<_> = of_cells.chain(row.row.complex_deletions.iter().map(|(id, _)| *id)).collect();
        ids.sort_unstable();
        ids.dedup();
        for (index, id) in ids.into_iter().enumerate() {
            let Some(column) = self.table.column_by_id(id) else { continue };
            out.push_str(if index == 0 { "" } else { ", " });
            for (_, deletion) in row.row.complex_deletions.iter().filter(|(of, _)| *of == id) {
                _ = write!(out, "del({})=", column.name);
                write_deletion(*deletion, out);
            }
            for cell in row.cells_of(id) {
                out.push_str(if column.ty.is_multi_cell() { ", " } else { "" });
                write_cell(column, cell, row, out);
            }
        }
    }

    /// Writes a bound of range tombstones.
    pub fn marker(&mut self, view: MarkerView<'_>, position: u64, out: &mut String) {
        self.begin(position, out);
        let marker = view.marker;
        let kind = match marker.kind() {
            Some(BoundKind::ExclEnd) => "EXCL_END_BOUND",
            Some(BoundKind::InclStart) => "INCL_START_BOUND",
            Some(BoundKind::ExclEndInclStart) => "EXCL_END_INCL_START_BOUNDARY",
            Some(BoundKind::InclEndExclStart) => "INCL_END_EXCL_START_BOUNDARY",
            Some(BoundKind::InclEnd) => "INCL_END_BOUND",
            Some(BoundKind::ExclStart) => "EXCL_START_BOUND",
            None => "",
        };
        _ = write!(out, "Marker {kind}(");
        for (index, (column, span)) in self.table.clustering.iter().zip(&marker.clustering).enumerate() {
            out.push_str(if index == 0 { "" } else { ", " });
            match span.get(view.data) {
                Some(value) => write_text(&column.ty, value, out),
                None => out.push_str("null"),
            }
        }
        out.push_str(")@");
        let ends = [marker.close, marker.open].into_iter().filter(|deletion| !deletion.is_live());
        for (index, deletion) in ends.enumerate() {
            out.push_str(if index == 0 { "" } else { "-" });
            _ = write!(out, "{}/{}", deletion.timestamp_us, deletion.local_s);
        }
        out.push('\n');
    }
}

fn write_deletion(deletion: DeletionTime, out: &mut String) {
    let DeletionTime { timestamp_us, local_s } = deletion;
    _ = write!(out, "deletedAt={timestamp_us}, localDeletion={local_s}");
}

fn write_cell(column: &Column, cell: &Cell, row: RowView<'_>, out: &mut String) {
    let value = row.value(cell);
    _ = write!(out, "[{}", column.name);
    if column.ty == CqlType::Counter {
        _ = write!(out, "={} ts={}]", counter_context::total(value), cell.timestamp_us);
        return;
    }
    let is_collection = !matches!(column.ty, CqlType::Udt(_)) && column.ty.is_multi_cell();
    let mut ty = &column.ty;
    if is_collection {
        out.push('[');
        ty = path_text(&column.ty, row.path(cell), out);
        out.push(']');
    }
    out.push('=');
    if cell.is_tombstone() {
        out.push_str("<tombstone>");
    } else if ty.validate_stored(value).is_ok() {
        write_text(ty, value, out);
    } else {
        // In a user-defined type with one cell for each field, sstabledump interprets a field as the whole value, and
        // fails.
        out.push_str("0x");
        write_text(&CqlType::Blob, value, out);
    }
    _ = write!(out, " ts={}", cell.timestamp_us);
    if cell.is_expiring() {
        _ = write!(out, " ttl={} ldt={}", cell.ttl_s, cell.local_deletion_s);
    } else if cell.is_tombstone() {
        _ = write!(out, " ldt={}", cell.local_deletion_s);
    }
    out.push(']');
}
