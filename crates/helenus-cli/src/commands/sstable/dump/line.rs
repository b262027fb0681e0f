//! Writes one line of JSON for each element: a row, a static row, a partition deletion, a bound of range tombstones.
//!
//! Every line names its partition, so that lines can be cut, sorted and searched, and memory does not grow with the
//! partition. Times are numbers in the unit that the member's name states. A cell without a timestamp has that of its
//! row's liveness. Nothing is merged or left out: the lines show the content of the file, not the answer to a SELECT.

use super::partition::path_text;
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::counter_context;
use helenus_model::deletion::{DeletionTime, NO_EXPIRY};
use helenus_model::range_tombstone::MarkerView;
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::types::{
    CqlType, append_integer, append_json, append_json_text, key_values, write_json_string,
};
use std::sync::Arc;

/// Writes the lines of one table.
pub struct Lines {
    /// The output that was not taken yet.
    pub out: Vec<u8>,
    table: Arc<Table>,
    /// `"name":` of each column of the partition key.
    keys: Vec<String>,
    /// `,"name":` of each clustering column. The first has the opening of the object in place of the comma.
    clustering: Vec<String>,
    /// The other columns, by column number.
    columns: Vec<Option<Named>>,
    /// The beginning of the partition's lines, by kind of line.
    fronts: [Vec<u8>; 2],
    /// The partition's part of each line.
    partition: Vec<u8>,
    last: LastDeletion,
}

/// The deletion printed last and its text. One deletion often replaces every collection of a row.
#[derive(Default)]
struct LastDeletion {
    deletion: Option<DeletionTime>,
    text: Vec<u8>,
}

/// A column and its printed name, behind a comma, which is omitted for the first column of a row.
#[derive(Clone)]
struct Named {
    ty: CqlType,
    is_multi_cell: bool,
    /// `,"name":{`
    member: String,
    /// `,"name":{"value":` for a column with one cell, `,"name":{"elements":[` for other columns.
    value: String,
}

/// The kinds of lines whose beginning is cached.
const ROW: usize = 0;
const STATIC_ROW: usize = 1;
const KINDS: [&str; 2] = ["row", "static_row"];

impl Lines {
    /// A writer for `table`.
    pub fn new(table: Arc<Table>) -> Lines {
        let keys = table.partition_key.iter().map(|column| member(&column.name)).collect();
        let opening = |index| if index == 0 { ",\"clustering\":{" } else { "," };
        let clustering = table.clustering.iter().enumerate();
        let clustering =
            clustering.map(|(index, column)| format!("{}{}", opening(index), member(&column.name))).collect();
        let mut columns = vec![None; usize::from(table.next_column_id)];
        for column in table.statics.iter().chain(&table.regulars) {
            if let Some(place) = columns.get_mut(usize::from(column.id.0)) {
                let is_multi_cell = column.ty.is_multi_cell();
                let member = format!(",{}{{", member(&column.name));
                let value =
                    format!("{member}{}", if is_multi_cell { "\"elements\":[" } else { "\"value\":" });
                *place = Some(Named { ty: column.ty.clone(), is_multi_cell, member, value });
            }
        }
        Lines {
            out: Vec::new(),
            table,
            keys,
            clustering,
            columns,
            fronts: Default::default(),
            partition: Vec::new(),
            last: LastDeletion::default(),
        }
    }

    /// Begins a partition; writes a line if the partition has a deletion.
    pub fn begin_partition(&mut self, key: &[u8], position: u64, deletion: DeletionTime) {
        let partition = &mut self.partition;
        partition.clear();
        partition.extend_from_slice(b"\"partition\":{");
        let columns = &self.table.partition_key;
        for (index, (column, value)) in columns.iter().zip(key_values(columns.len(), key)).enumerate() {
            partition.extend_from_slice(if index == 0 { &[] } else { b"," });
            partition.extend_from_slice(self.keys[index].as_bytes());
            append_json(&column.ty, value, partition);
        }
        partition.push(b'}');
        let kinds = if self.table.statics.is_empty() { &KINDS[..1] } else { &KINDS };
        for (front, kind) in self.fronts.iter_mut().zip(kinds) {
            front.clear();
            begin(kind, &self.partition, front);
        }
        if !deletion.is_live() {
            begin("partition_deletion", &self.partition, &mut self.out);
            append_integer(position as i64, &mut self.out);
            self.last.append(b",\"deletion\":{", deletion, &mut self.out);
            self.out.extend_from_slice(b"}\n");
        }
    }

    /// Writes a row, or the static row.
    pub fn row(&mut self, row: RowView<'_>, is_static: bool, position: u64) {
        self.out.extend_from_slice(&self.fronts[if is_static { STATIC_ROW } else { ROW }]);
        append_integer(position as i64, &mut self.out);
        if !is_static {
            self.clustering(row.row.clustering.iter().map(|span| span.get(row.data)));
        }
        let out = &mut self.out;
        let liveness = row.row.liveness;
        if !liveness.is_none() {
            number(b",\"liveness\":{\"timestamp_us\":", liveness.timestamp_us, out);
            if liveness.ttl_s != 0 {
                number(b",\"ttl_s\":", i64::from(liveness.ttl_s), out);
                number(b",\"expires_s\":", liveness.expires_s, out);
            }
            out.push(b'}');
        }
        if !row.row.deletion.is_live() {
            self.last.append(b",\"deletion\":{", row.row.deletion, out);
        }
        self.cells(row);
        self.out.extend_from_slice(b"}}\n");
    }

    /// Writes a bound of range tombstones: the deletions that end and begin there.
    pub fn marker(&mut self, marker: MarkerView<'_>, position: u64) {
        begin("range_tombstone_bound", &self.partition, &mut self.out);
        append_integer(position as i64, &mut self.out);
        self.clustering(marker.marker.clustering.iter().map(|span| span.get(marker.data)));
        let side = if marker.marker.before { ",\"side\":\"before\"" } else { ",\"side\":\"after\"" };
        self.out.extend_from_slice(side.as_bytes());
        if !marker.marker.close.is_live() {
            self.last.append(b",\"ends\":{", marker.marker.close, &mut self.out);
        }
        if !marker.marker.open.is_live() {
            self.last.append(b",\"begins\":{", marker.marker.open, &mut self.out);
        }
        self.out.extend_from_slice(b"}\n");
    }

    fn clustering<'v>(&mut self, values: impl Iterator<Item = Option<&'v [u8]>>) {
        let out = &mut self.out;
        let mut is_open = false;
        for ((column, member), value) in self.table.clustering.iter().zip(&self.clustering).zip(values) {
            is_open = true;
            out.extend_from_slice(member.as_bytes());
            match value {
                Some(value) => append_json(&column.ty, value, out),
                None => out.extend_from_slice(b"null"),
            }
        }
        out.extend_from_slice(if is_open { "}" } else { ",\"clustering\":{}" }.as_bytes());
    }

    /// Writes `"cells":{..`: the cell of a single-value column, or the list of cells of another column.
    fn cells(&mut self, row: RowView<'_>) {
        let out = &mut self.out;
        out.extend_from_slice(b",\"cells\":{");
        let mut behind_comma = 1;
        let mut rest = row.row.cells.as_slice();
        let mut deletions = row.row.complex_deletions.as_slice();
        while let Some(id) = next_column(rest, deletions) {
            let count = rest.iter().take_while(|cell| cell.column == id).count();
            let (cells, later) = rest.split_at(count);
            rest = later;
            let mut deleted = None;
            while let [(of, deletion), later @ ..] = deletions
                && *of == id
            {
                deleted.get_or_insert(*deletion);
                deletions = later;
            }
            let Some(Some(named)) = self.columns.get(usize::from(id.0)) else { continue };
            match cells {
                [cell, ..] if !named.is_multi_cell => {
                    if cell.is_tombstone() {
                        out.extend_from_slice(&named.member.as_bytes()[behind_comma..]);
                        number(b"\"deleted_s\":", cell.local_deletion_s, out);
                    } else {
                        out.extend_from_slice(&named.value.as_bytes()[behind_comma..]);
                        append_value(&named.ty, row.value(cell), out);
                    }
                    append_times(cell, row, out);
                }
                _ => {
                    out.extend_from_slice(&named.value.as_bytes()[behind_comma..]);
                    append_elements(&named.ty, cells, row, out);
                    match deleted {
                        Some(of) => self.last.append(b"],\"deletion\":{", of, out),
                        None => out.push(b']'),
                    }
                    out.push(b'}');
                }
            }
            behind_comma = 0;
        }
    }
}

/// The lower column number of the next cell and the next deletion.
#[inline]
fn next_column(cells: &[Cell], deletions: &[(ColumnId, DeletionTime)]) -> Option<ColumnId> {
    match (cells, deletions) {
        ([cell, ..], [(of, _), ..]) => Some(cell.column.min(*of)),
        ([cell, ..], []) => Some(cell.column),
        ([], [(of, _), ..]) => Some(*of),
        ([], []) => None,
    }
}

fn append_elements(ty: &CqlType, cells: &[Cell], row: RowView<'_>, out: &mut Vec<u8>) {
    for (index, cell) in cells.iter().enumerate() {
        out.extend_from_slice(if index == 0 { "{\"path\":" } else { ",{\"path\":" }.as_bytes());
        let path = row.path(cell);
        let of_value: &CqlType = match ty {
            CqlType::List { element, .. } => {
                append_json_text(&CqlType::TimeUuid, path, out);
                element
            }
            CqlType::Set { element, .. } => {
                append_json_text(element, path, out);
                &CqlType::Empty
            }
            CqlType::Map { key, value, .. } => {
                append_json_text(key, path, out);
                value
            }
            _ => {
                let (mut text, mut quoted) = (String::new(), String::new());
                let of_value = path_text(ty, path, &mut text);
                write_json_string(&text, &mut quoted);
                out.extend_from_slice(quoted.as_bytes());
                of_value
            }
        };
        if cell.is_tombstone() {
            number(b",\"deleted_s\":", cell.local_deletion_s, out);
        } else if matches!(of_value, CqlType::Empty) {
            out.extend_from_slice(b",\"value\":null");
        } else {
            out.extend_from_slice(b",\"value\":");
            append_value(of_value, row.value(cell), out);
        }
        append_times(cell, row, out);
    }
}

impl LastDeletion {
    /// Appends a deletion after its `opening`.
    fn append(&mut self, opening: &[u8], deletion: DeletionTime, out: &mut Vec<u8>) {
        if self.deletion != Some(deletion) {
            self.deletion = Some(deletion);
            self.text.clear();
            number(b"\"timestamp_us\":", deletion.timestamp_us, &mut self.text);
            number(b",\"deleted_s\":", deletion.local_s, &mut self.text);
            self.text.push(b'}');
        }
        out.extend_from_slice(opening);
        out.extend_from_slice(&self.text);
    }
}

#[inline]
fn append_value(ty: &CqlType, value: &[u8], out: &mut Vec<u8>) {
    match ty {
        CqlType::Counter => append_integer(counter_context::total(value), out),
        CqlType::Empty => out.extend_from_slice(b"null"),
        _ => append_json(ty, value, out),
    }
}

/// Appends the times of a cell that differ from those of its row, and ends the cell.
#[inline]
fn append_times(cell: &Cell, row: RowView<'_>, out: &mut Vec<u8>) {
    if cell.timestamp_us != row.row.liveness.timestamp_us {
        number(b",\"timestamp_us\":", cell.timestamp_us, out);
    }
    if cell.is_expiring() && cell.local_deletion_s != NO_EXPIRY {
        number(b",\"ttl_s\":", i64::from(cell.ttl_s), out);
        number(b",\"expires_s\":", cell.local_deletion_s, out);
    }
    out.push(b'}');
}

/// Writes the beginning of a line, up to the position.
fn begin(kind: &str, partition: &[u8], out: &mut Vec<u8>) {
    for part in [b"{\"type\":\"", kind.as_bytes(), b"\",", partition, b",\"position\":"] {
        out.extend_from_slice(part);
    }
}

#[inline]
fn number(name: &[u8], value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    append_integer(value, out);
}

fn member(name: &str) -> String {
    let mut out = String::new();
    write_json_string(name, &mut out);
    out.push(':');
    out
}
