//! A line of JSON an element: a row, a static row, a partition's deletion, a bound of range tombstones.
//!
//! Every line names its partition, so lines may be cut, sorted and searched, and memory does not grow with partitions. Times
//! are numbers in the unit that the name of the member says; a cell without a timestamp has that of its row's liveness. Nothing is merged and nothing left out: this is what the
//! file holds, not what a SELECT would answer.

use super::partition::write_path;
use helenus_model::cell::Cell;
use helenus_model::counter_context;
use helenus_model::deletion::{DeletionTime, NO_EXPIRY};
use helenus_model::range_tombstone::MarkerView;
use helenus_model::row::RowView;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, key_values, write_integer, write_json, write_json_string};
use std::sync::Arc;

/// Writes lines about one table.
pub struct Lines {
    table: Arc<Table>,
    /// `"name":` of each column of the partition key.
    keys: Vec<String>,
    /// `"name":` of each clustering column.
    clustering: Vec<String>,
    /// Each other column, by its number.
    columns: Vec<Option<Named>>,
    /// The beginning of each line of the partition, by kind.
    fronts: [String; 2],
    /// The partition's part of each line.
    partition: String,
    scratch: Scratch,
}

/// What is used again from cell to cell.
#[derive(Default)]
struct Scratch {
    path: String,
    /// The deletion that was printed last, and its text: one replaces every collection of a row.
    deletion: Option<DeletionTime>,
    deletion_text: String,
}

/// A column and its name as it prints, behind a comma, which the first of a row goes without.
#[derive(Clone)]
struct Named {
    column: Column,
    is_multi_cell: bool,
    /// `,"name":{`
    member: String,
    /// `,"name":{"value":` of a column with one cell, `,"name":{"elements":[` of another.
    value: String,
}

/// Kinds of lines that come again and again.
const ROW: usize = 0;
const STATIC_ROW: usize = 1;
const KINDS: [&str; 2] = ["row", "static_row"];

impl Lines {
    /// About a table.
    pub fn new(table: Arc<Table>) -> Lines {
        let keys = table.partition_key.iter().map(|column| member(&column.name)).collect();
        let clustering = table.clustering.iter().map(|column| member(&column.name)).collect();
        let mut columns = vec![None; usize::from(table.next_column_id)];
        for column in table.statics.iter().chain(&table.regulars) {
            if let Some(place) = columns.get_mut(usize::from(column.id.0)) {
                let is_multi_cell = column.ty.is_multi_cell();
                let member = format!(",{}{{", member(&column.name));
                let value =
                    format!("{member}{}", if is_multi_cell { "\"elements\":[" } else { "\"value\":" });
                *place = Some(Named { column: column.clone(), is_multi_cell, member, value });
            }
        }
        let fronts = [String::new(), String::new()];
        Lines {
            table,
            keys,
            clustering,
            columns,
            fronts,
            partition: String::new(),
            scratch: Scratch::default(),
        }
    }

    /// Begins a partition; a line if it was deleted.
    pub fn begin_partition(&mut self, key: &[u8], position: u64, deletion: DeletionTime, out: &mut String) {
        self.partition.clear();
        self.partition.push_str("\"partition\":{");
        let columns = &self.table.partition_key;
        for (index, (column, value)) in columns.iter().zip(key_values(columns.len(), key)).enumerate() {
            self.partition.push_str(if index == 0 { "" } else { "," });
            self.partition.push_str(&self.keys[index]);
            write_json(&column.ty, Some(value), &mut self.partition);
        }
        self.partition.push('}');
        let kinds = if self.table.statics.is_empty() { &KINDS[..1] } else { &KINDS };
        for (front, kind) in self.fronts.iter_mut().zip(kinds) {
            front.clear();
            begin(kind, &self.partition, front);
        }
        if !deletion.is_live() {
            begin("partition_deletion", &self.partition, out);
            write_integer(position as i64, out);
            self.scratch.write_deletion(",\"deletion\":{", deletion, out);
            out.push_str("}\n");
        }
    }

    /// A row, or the static one.
    pub fn row(&mut self, row: RowView<'_>, is_static: bool, position: u64, out: &mut String) {
        out.push_str(&self.fronts[if is_static { STATIC_ROW } else { ROW }]);
        write_integer(position as i64, out);
        if !is_static {
            self.clustering(row.row.clustering.iter().map(|span| span.get(row.data)), out);
        }
        let liveness = row.row.liveness;
        if !liveness.is_none() {
            number(",\"liveness\":{\"timestamp_us\":", liveness.timestamp_us, out);
            if liveness.ttl_s != 0 {
                number(",\"ttl_s\":", i64::from(liveness.ttl_s), out);
                number(",\"expires_s\":", liveness.expires_s, out);
            }
            out.push('}');
        }
        if !row.row.deletion.is_live() {
            self.scratch.write_deletion(",\"deletion\":{", row.row.deletion, out);
        }
        self.cells(row, out);
        out.push_str("}\n");
    }

    /// A bound of range tombstones: what ends there, what begins there.
    pub fn marker(&mut self, marker: MarkerView<'_>, position: u64, out: &mut String) {
        begin("range_tombstone_bound", &self.partition, out);
        write_integer(position as i64, out);
        self.clustering(marker.marker.clustering.iter().map(|span| span.get(marker.data)), out);
        out.push_str(if marker.marker.before { ",\"side\":\"before\"" } else { ",\"side\":\"after\"" });
        for (name, deletion) in [(",\"ends\":{", marker.marker.close), (",\"begins\":{", marker.marker.open)]
        {
            if !deletion.is_live() {
                self.scratch.write_deletion(name, deletion, out);
            }
        }
        out.push_str("}\n");
    }

    fn clustering<'v>(&self, values: impl Iterator<Item = Option<&'v [u8]>>, out: &mut String) {
        out.push_str(",\"clustering\":{");
        for (index, ((column, member), value)) in
            self.table.clustering.iter().zip(&self.clustering).zip(values).enumerate()
        {
            out.push_str(if index == 0 { "" } else { "," });
            out.push_str(member);
            write_json(&column.ty, value, out);
        }
        out.push('}');
    }

    /// `"cells":{..}`: of a column with one value its cell, of another the list of its cells.
    fn cells(&mut self, row: RowView<'_>, out: &mut String) {
        out.push_str(",\"cells\":{");
        let mut first = true;
        let mut rest = row.row.cells.as_slice();
        let mut deletions = row.row.complex_deletions.as_slice();
        loop {
            let ids = [rest.first().map(|cell| cell.column), deletions.first().map(|(id, _)| *id)];
            let Some(id) = ids.into_iter().flatten().min() else { break };
            // Most columns have one cell.
            let count = match rest {
                [only] if only.column == id => 1,
                [first, next, ..] if first.column == id && next.column != id => 1,
                _ => rest.partition_point(|cell| cell.column == id),
            };
            let (cells, later) = rest.split_at(count);
            rest = later;
            let (deleted, later) = deletions.split_at(deletions.partition_point(|(of, _)| *of == id));
            deletions = later;
            let Some(Some(named)) = self.columns.get(usize::from(id.0)) else { continue };
            let behind_comma = usize::from(std::mem::take(&mut first));
            let ty = &named.column.ty;
            match (named.is_multi_cell, cells) {
                (false, [cell, ..]) if cell.is_tombstone() => {
                    out.push_str(&named.member[behind_comma..]);
                    write_cell(ty, cell, row, out);
                }
                (false, [cell, ..]) => {
                    out.push_str(&named.value[behind_comma..]);
                    write_value(ty, row.value(cell), out);
                    write_times(cell, row, out);
                }
                _ => {
                    out.push_str(&named.value[behind_comma..]);
                    self.scratch.write_elements(ty, cells, row, out);
                    match deleted.first() {
                        Some((_, of)) => self.scratch.write_deletion("],\"deletion\":{", *of, out),
                        None => out.push(']'),
                    }
                    out.push('}');
                }
            }
        }
        out.push('}');
    }
}

impl Scratch {
    fn write_elements(&mut self, ty: &CqlType, cells: &[Cell], row: RowView<'_>, out: &mut String) {
        for (index, cell) in cells.iter().enumerate() {
            out.push_str(if index == 0 { "{\"path\":" } else { ",{\"path\":" });
            let of_value = write_path(ty, row.path(cell), &mut self.path, out);
            out.push(',');
            write_cell(of_value, cell, row, out);
        }
    }

    /// A deletion behind what opens it.
    fn write_deletion(&mut self, opening: &str, deletion: DeletionTime, out: &mut String) {
        if self.deletion != Some(deletion) {
            self.deletion = Some(deletion);
            self.deletion_text.clear();
            number("\"timestamp_us\":", deletion.timestamp_us, &mut self.deletion_text);
            number(",\"deleted_s\":", deletion.local_s, &mut self.deletion_text);
            self.deletion_text.push('}');
        }
        out.push_str(opening);
        out.push_str(&self.deletion_text);
    }
}

/// A cell behind what opens it.
fn write_cell(ty: &CqlType, cell: &Cell, row: RowView<'_>, out: &mut String) {
    if cell.is_tombstone() {
        number("\"deleted_s\":", cell.local_deletion_s, out);
    } else {
        match ty {
            CqlType::Empty => out.push_str("\"value\":null"),
            _ => {
                out.push_str("\"value\":");
                write_value(ty, row.value(cell), out);
            }
        }
    }
    write_times(cell, row, out);
}

fn write_value(ty: &CqlType, value: &[u8], out: &mut String) {
    match ty {
        CqlType::Counter => write_integer(counter_context::total(value), out),
        CqlType::Empty => out.push_str("null"),
        _ => write_json(ty, Some(value), out),
    }
}

/// What of a cell's times the row has not said, and the end of the cell.
fn write_times(cell: &Cell, row: RowView<'_>, out: &mut String) {
    if cell.timestamp_us != row.row.liveness.timestamp_us {
        number(",\"timestamp_us\":", cell.timestamp_us, out);
    }
    if cell.is_expiring() && cell.local_deletion_s != NO_EXPIRY {
        number(",\"ttl_s\":", i64::from(cell.ttl_s), out);
        number(",\"expires_s\":", cell.local_deletion_s, out);
    }
    out.push('}');
}

/// The front of a line, up to the position.
fn begin(kind: &str, partition: &str, out: &mut String) {
    for part in ["{\"type\":\"", kind, "\",", partition, ",\"position\":"] {
        out.push_str(part);
    }
}

fn number(name: &str, value: i64, out: &mut String) {
    out.push_str(name);
    write_integer(value, out);
}

fn member(name: &str) -> String {
    let mut out = String::new();
    write_json_string(name, &mut out);
    out.push(':');
    out
}
