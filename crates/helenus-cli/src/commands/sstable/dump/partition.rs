//! Writes partitions in the format of sstabledump (Cassandra's `JsonTransformer`), including its quirks.

use super::printer::{Name, Printer, member};
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::deletion::{DeletionTime, Liveness};
use helenus_model::range_tombstone::MarkerView;
use helenus_model::row::RowView;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{
    CqlType, key_values, quote_identifier, write_instant, write_integer, write_json, write_json_string,
    write_text,
};
use std::sync::Arc;

/// The state that all partitions of a file share.
pub struct Words {
    table: Arc<Table>,
    /// sstabledump's name for the kind of the table.
    kind: &'static str,
    /// Whether times are numbers in the unit in which they are stored (`-t`).
    raw_times: bool,
    /// The time at which cells count as expired, in seconds.
    now_s: i64,
    /// The quoted column names, by column number.
    names: Vec<String>,
    text: String,
    /// The time printed last and its text, in microseconds and in seconds. The same time is often repeated in a row.
    moments: [(i64, String); 2],
}

impl Words {
    /// A writer for `table`.
    pub fn new(table: Arc<Table>, kind: &'static str, raw_times: bool, now_s: i64) -> Words {
        let mut names = vec![String::new(); usize::from(table.next_column_id)];
        for column in table.statics.iter().chain(&table.regulars) {
            if let Some(name) = names.get_mut(usize::from(column.id.0)) {
                write_json_string(&quote_identifier(&column.name), name);
            }
        }
        Words { table, kind, raw_times, now_s, names, text: String::new(), moments: Default::default() }
    }

    /// Writes the values of a partition key as strings.
    pub fn key(&mut self, key: &[u8], json: &mut Printer) {
        json.compact(true);
        json.begin_array();
        let columns = &self.table.partition_key;
        for (column, value) in columns.iter().zip(key_values(columns.len(), key)) {
            self.text.clear();
            write_text(&column.ty, value, &mut self.text);
            json.string(&self.text);
        }
        json.end();
        json.compact(false);
    }

    /// Writes the members before the rows of a partition.
    pub fn begin_partition(&mut self, key: &[u8], position: u64, deletion: DeletionTime, json: &mut Printer) {
        json.begin_object();
        json.name(member!("table kind"));
        json.string(self.kind);
        json.name(member!("partition"));
        json.begin_object();
        json.name(member!("key"));
        self.key(key, json);
        json.name(member!("position"));
        json.number(position as i64);
        if !deletion.is_live() {
            self.deletion(deletion, json);
        }
        json.end();
        json.name(member!("rows"));
        json.begin_array();
    }

    /// Ends a partition.
    pub fn end_partition(&mut self, json: &mut Printer) {
        json.end();
        json.end();
    }

    /// Writes a row, or the static row.
    pub fn row(&mut self, row: RowView<'_>, is_static: bool, position: u64, json: &mut Printer) {
        json.begin_object();
        json.name(member!("type"));
        json.quoted(if is_static { "\"static_block\"" } else { "\"row\"" });
        json.name(member!("position"));
        json.number(position as i64);
        if !is_static {
            self.clustering(row.row.clustering.iter().map(|span| span.get(row.data)), json);
        }
        let liveness = row.row.liveness;
        if !liveness.is_none() {
            self.liveness(liveness, json);
        }
        if !row.row.deletion.is_live() {
            self.deletion(row.row.deletion, json);
        }
        json.name(member!("cells"));
        json.begin_array();
        self.cells(row, json);
        json.end();
        json.end();
    }

    fn liveness(&mut self, liveness: Liveness, json: &mut Printer) {
        json.compact_objects = false;
        json.name(member!("liveness_info"));
        json.compact_objects = true;
        json.begin_object();
        json.name(member!("tstamp"));
        self.microseconds(liveness.timestamp_us, json);
        if liveness.ttl_s != 0 {
            json.name(member!("ttl"));
            json.number(i64::from(liveness.ttl_s));
            json.name(member!("expires_at"));
            self.seconds(liveness.expires_s, json);
            json.name(member!("expired"));
            json.boolean(liveness.expires_s < self.now_s);
        }
        json.end();
        json.compact_objects = false;
    }

    /// Writes a bound or boundary of range tombstones.
    pub fn marker(&mut self, marker: MarkerView<'_>, json: &mut Printer) {
        let (close, open) = (marker.marker.close, marker.marker.open);
        let is_before = marker.marker.before;
        json.begin_object();
        json.name(member!("type"));
        if open.is_live() || close.is_live() {
            json.quoted("\"range_tombstone_bound\"");
        } else {
            json.quoted("\"range_tombstone_boundary\"");
        }
        if !open.is_live() {
            self.bound(member!("start"), is_before, open, marker, json);
        }
        if !close.is_live() {
            self.bound(member!("end"), !is_before, close, marker, json);
        }
        json.end();
        json.compact_objects = false;
    }

    fn bound(
        &mut self,
        name: Name,
        is_inclusive: bool,
        deletion: DeletionTime,
        marker: MarkerView<'_>,
        json: &mut Printer,
    ) {
        json.name(name);
        json.begin_object();
        json.name(member!("type"));
        json.quoted(if is_inclusive { "\"inclusive\"" } else { "\"exclusive\"" });
        self.clustering(marker.marker.clustering.iter().map(|span| span.get(marker.data)), json);
        self.deletion(deletion, json);
        json.end();
    }

    fn clustering<'v>(
        &mut self,
        values: impl ExactSizeIterator<Item = Option<&'v [u8]>>,
        json: &mut Printer,
    ) {
        if values.len() == 0 {
            return;
        }
        json.name(member!("clustering"));
        json.compact_objects = true;
        json.begin_array();
        json.compact_arrays = true;
        let mut values = values;
        for column in &self.table.clustering {
            match values.next() {
                None => json.quoted("\"*\""),
                Some(value) => json.raw(|out| write_json(&column.ty, value, out)),
            }
        }
        json.end();
        json.compact(false);
    }

    fn deletion(&mut self, deletion: DeletionTime, json: &mut Printer) {
        json.name(member!("deletion_info"));
        json.compact_objects = true;
        json.begin_object();
        json.name(member!("marked_deleted"));
        self.microseconds(deletion.timestamp_us, json);
        json.name(member!("local_delete_time"));
        self.seconds(deletion.local_s, json);
        json.end();
        json.compact_objects = false;
    }

    fn cells(&mut self, row: RowView<'_>, json: &mut Printer) {
        let mut deletions = row.row.complex_deletions.iter().peekable();
        let table = self.table.clone();
        let mut column: Option<&Column> = None;
        for cell in &row.row.cells {
            while let Some((id, deletion)) = deletions.next_if(|(id, _)| *id <= cell.column) {
                self.complex_deletion(*id, *deletion, json);
            }
            if column.is_none_or(|column| column.id != cell.column) {
                column = table.column_by_id(cell.column);
            }
            if let Some(column) = column {
                self.cell(column, cell, row, json);
            }
        }
        for (id, deletion) in deletions {
            self.complex_deletion(*id, *deletion, json);
        }
    }

    fn complex_deletion(&mut self, id: ColumnId, deletion: DeletionTime, json: &mut Printer) {
        json.compact_objects = true;
        json.begin_object();
        json.name(member!("name"));
        json.raw(|out| out.push_str(self.names.get(usize::from(id.0)).map_or("\"\"", String::as_str)));
        self.deletion(deletion, json);
        json.compact_objects = true;
        json.end();
        json.compact_objects = false;
    }

    fn cell(&mut self, column: &Column, cell: &Cell, row: RowView<'_>, json: &mut Printer) {
        let liveness = row.row.liveness;
        json.begin_object();
        json.compact_objects = true;
        json.name(member!("name"));
        json.raw(|out| out.push_str(self.names.get(usize::from(column.id.0)).map_or("\"\"", String::as_str)));
        let ty = if column.ty.is_multi_cell() {
            json.name(member!("path"));
            json.compact_arrays = true;
            json.begin_array();
            let ty = self.path(&column.ty, row.path(cell), json);
            json.end();
            json.compact_arrays = false;
            ty
        } else {
            &column.ty
        };
        if cell.is_tombstone() {
            json.name(member!("deletion_info"));
            json.begin_object();
            json.name(member!("local_delete_time"));
            self.seconds(cell.local_deletion_s, json);
            json.end();
            json.compact_objects = false;
        } else {
            json.name(member!("value"));
            json.raw(|out| write_value(ty, row.value(cell), out));
        }
        if liveness.is_none() || cell.timestamp_us != liveness.timestamp_us {
            json.name(member!("tstamp"));
            self.microseconds(cell.timestamp_us, json);
        }
        if cell.is_expiring() && (liveness.is_none() || cell.ttl_s != liveness.ttl_s) {
            json.name(member!("ttl"));
            json.number(i64::from(cell.ttl_s));
            json.name(member!("expires_at"));
            self.seconds(cell.local_deletion_s, json);
            json.name(member!("expired"));
            json.boolean(!cell.is_live(self.now_s));
        }
        json.end();
        json.compact_objects = false;
    }

    /// Writes the path of a cell in a collection or user-defined type; returns the type of the cell's value.
    fn path<'t>(&mut self, ty: &'t CqlType, path: &[u8], json: &mut Printer) -> &'t CqlType {
        let text = &mut self.text;
        json.raw(|out| write_path(ty, path, text, out))
    }

    fn microseconds(&mut self, time_us: i64, json: &mut Printer) {
        if self.raw_times {
            return self.quoted_number(time_us, json);
        }
        // As in Java: the seconds are truncated towards zero, but the nanoseconds are the floored remainder of a
        // saturated product.
        let nanoseconds = time_us.saturating_mul(1000).rem_euclid(1_000_000_000) as u32;
        moment(&mut self.moments[0], time_us, (time_us / 1_000_000, nanoseconds), json);
    }

    fn seconds(&mut self, time_s: i64, json: &mut Printer) {
        if self.raw_times {
            return self.quoted_number(time_s, json);
        }
        moment(&mut self.moments[1], time_s, (time_s, 0), json);
    }

    fn quoted_number(&mut self, number: i64, json: &mut Printer) {
        json.raw(|out| {
            out.push('"');
            write_integer(number, out);
            out.push('"');
        });
    }
}

/// Writes a time; reuses its text if the time is the same as the last one.
fn moment(last: &mut (i64, String), time: i64, (seconds, nanoseconds): (i64, u32), json: &mut Printer) {
    let (of, text) = last;
    if *of != time || text.is_empty() {
        *of = time;
        text.clear();
        text.push('"');
        write_instant(seconds, nanoseconds, text);
        text.push('"');
    }
    json.raw(|out| out.push_str(text));
}

/// Appends a cell path of a multi-cell column as a JSON string; returns the type of the cell's value. `text` is scratch
/// space.
pub fn write_path<'t>(ty: &'t CqlType, path: &[u8], text: &mut String, out: &mut String) -> &'t CqlType {
    let (of_path, of_value): (&CqlType, &CqlType) = match ty {
        CqlType::List { element, .. } => (&CqlType::TimeUuid, element),
        CqlType::Set { element, .. } => (element, &CqlType::Empty),
        CqlType::Map { key, value, .. } => (key, value),
        _ => (&CqlType::Blob, &CqlType::Blob),
    };
    let by_text = |text: &mut String, out: &mut String| {
        text.clear();
        let of_value = path_text(ty, path, text);
        write_json_string(text, out);
        of_value
    };
    match of_path {
        CqlType::Text => match std::str::from_utf8(path) {
            Ok(path) => {
                write_json_string(path, out);
                of_value
            }
            Err(_) => by_text(text, out),
        },
        // The text of these types needs no escapes.
        CqlType::TimeUuid | CqlType::Uuid | CqlType::Int | CqlType::BigInt => {
            out.push('"');
            write_text(of_path, path, out);
            out.push('"');
            of_value
        }
        _ => by_text(text, out),
    }
}

/// Appends the text of a cell path of a multi-cell column; returns the type of the cell's value.
pub fn path_text<'t>(ty: &'t CqlType, path: &[u8], out: &mut String) -> &'t CqlType {
    match ty {
        CqlType::List { element, .. } => {
            write_text(&CqlType::TimeUuid, path, out);
            element
        }
        CqlType::Set { element, .. } => {
            write_text(element, path, out);
            &CqlType::Empty
        }
        CqlType::Map { key, value, .. } => {
            write_text(key, path, out);
            value
        }
        CqlType::Udt(udt) => {
            let index = path.first_chunk::<2>().map_or(usize::MAX, |index| u16::from_be_bytes(*index).into());
            match udt.fields.get(index) {
                Some((name, ty)) => {
                    out.push_str(name);
                    ty
                }
                None => &CqlType::Blob,
            }
        }
        other => other,
    }
}

/// Appends a value as JSON. For a counter, sstabledump prints the first eight bytes of the stored value, which are not
/// its sum.
fn write_value(ty: &CqlType, value: &[u8], out: &mut String) {
    match (ty, value.first_chunk::<8>()) {
        (CqlType::Counter, Some(first)) => write_json(&CqlType::BigInt, Some(first), out),
        (CqlType::Empty, _) => out.push_str("\"\""),
        _ => write_json(ty, Some(value), out),
    }
}
