//! Writes one event as JSON.
//!
//! `op` is Debezium's: `c` (INSERT, which makes the row), `u` (UPDATE), `d` (of a row, a range or a partition: `scope`),
//! `r` (a present row), `t` (TRUNCATE); `schema` and `import` are our own. `after` has the written values by column; `cells`
//! has each cell with its timestamp and TTL, and each deletion of a cell; `collections_deleted` the deletions of whole
//! collections, as an assignment of a collection makes one.
//!
//! An event may be several times as long as what was written: a value stands in it twice, a blob as digits, and the images of a
//! row besides. So memory is asked for before each value.
//!
//! The digits of long numbers take more time than their bytes tell. An event has `STEPS_MAX` steps of such work; numbers for
//! which none are left stand in it in hexadecimal. That depends on the event alone, so all readers get the same text.

use crate::cost;
use helenus_engine::account::{self, Refusal};
use helenus_engine::changes::{Before, Change, ChangeKind, SchemaEvent};
use helenus_model::cell::Cell;
use helenus_model::counter_context;
use helenus_model::deletion::{DeletionTime, NO_EXPIRY};
use helenus_model::mutation::RangeBound;
use helenus_model::reconcile::merge_rows;
use helenus_model::row::{RowBuf, RowView};
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::{CqlType, UserType, key_values, pack, write_json_exactly, write_json_string};
use std::fmt::Write;

/// The most steps of work (`cost`) on the numbers of an event: a quarter of a second. One number of some 700,000 digits takes
/// as many.
pub(super) const STEPS_MAX: usize = 250_000;

/// An event as JSON, and the steps of work on its numbers.
pub(super) struct EventText {
    pub(super) json: String,
    pub(super) steps: usize,
}

/// The operation of a change, as the event's `op` has it.
pub fn operation_of(change: &Change<'_>) -> &'static str {
    match &change.kind {
        ChangeKind::Row { row, .. } => operation_of_row(*row),
        ChangeKind::StaticRow { .. } => "u",
        ChangeKind::RangeDeletion { .. } | ChangeKind::PartitionDeletion { .. } => "d",
        ChangeKind::Truncated => "t",
        ChangeKind::Imported { .. } => "import",
        ChangeKind::Schema(_) => "schema",
    }
}

fn operation_of_row(row: RowView<'_>) -> &'static str {
    match row.row {
        row if !row.liveness.is_none() => "c",
        row if !row.deletion.is_live() && row.cells.is_empty() && row.complex_deletions.is_empty() => "d",
        _ => "u",
    }
}

/// The write timestamp of a change, microseconds: of a row the greatest of what was written. `None` if it has none.
pub(super) fn timestamp_of(change: &Change<'_>) -> Option<i64> {
    match &change.kind {
        ChangeKind::Row { row, .. } | ChangeKind::StaticRow { row, .. } => newest(*row),
        ChangeKind::RangeDeletion { deletion, .. } | ChangeKind::PartitionDeletion { deletion, .. } => {
            Some(deletion.timestamp_us)
        }
        ChangeKind::Truncated | ChangeKind::Imported { .. } | ChangeKind::Schema(_) => None,
    }
}

fn newest(row: RowView<'_>) -> Option<i64> {
    let RowView { row, .. } = row;
    let cells = row.cells.iter().map(|cell| cell.timestamp_us);
    let deletions = row.complex_deletions.iter().map(|(_, deletion)| deletion.timestamp_us);
    let all = cells.chain(deletions).chain([row.liveness.timestamp_us, row.deletion.timestamp_us]);
    all.max().filter(|newest| *newest != i64::MIN)
}

/// The head of an event: cursor, operation, time and source.
pub(super) struct Head<'h> {
    pub(super) cursor: &'h str,
    pub(super) operation: &'static str,
    pub(super) timestamp_us: Option<i64>,
    pub(super) is_snapshot: bool,
}

/// The event of a change.
///
/// # Errors
/// There is no memory for it.
pub(super) fn change_json(change: &Change<'_>, cursor: &str) -> Result<EventText, Refusal> {
    let head = Head {
        cursor,
        operation: operation_of(change),
        timestamp_us: timestamp_of(change),
        is_snapshot: false,
    };
    let mut event = Event::begin(change.table, &head);
    match &change.kind {
        ChangeKind::Row { key, row } => event.row(key, *row, true, change.before),
        ChangeKind::StaticRow { key, row } => event.static_row(key, *row, change.before),
        ChangeKind::RangeDeletion { key, start, end, deletion } => {
            event.field("scope", "\"range\"");
            event.key(key, None);
            event.range(start, end);
            event.deletion(*deletion);
            event.no_row();
        }
        ChangeKind::PartitionDeletion { key, deletion } => {
            event.field("scope", "\"partition\"");
            event.key(key, None);
            event.deletion(*deletion);
            event.no_row();
        }
        ChangeKind::Truncated => {}
        ChangeKind::Imported { sstables } => event.field("sstables", &sstables.to_string()),
        ChangeKind::Schema(what) => event.schema(*what),
    }
    event.end()
}

/// The event of a present row; cells that are dead are left out by the caller.
///
/// # Errors
/// There is no memory for it.
pub(super) fn row_json(
    table: &Table,
    head: &Head<'_>,
    (key, row): (&[u8], RowView<'_>),
    is_static: bool,
) -> Result<EventText, Refusal> {
    let mut event = Event::begin(table, head);
    match is_static {
        true => event.static_row(key, row, Before::NotRecorded),
        false => event.row(key, row, false, Before::NotRecorded),
    }
    event.end()
}

/// About the bytes of a value as JSON: a blob has two digits a byte, a number up to three. A text has more with many control characters; the next value
/// asks for them.
fn json_bytes(ty: &CqlType, bytes: usize) -> usize {
    match ty {
        CqlType::Text | CqlType::Ascii => bytes.saturating_add(bytes / 8),
        CqlType::Varint | CqlType::Decimal => bytes.saturating_mul(3),
        _ => bytes.saturating_mul(2),
    }
}

struct Event<'e> {
    table: &'e Table,
    out: String,
    /// Steps of work on numbers so far.
    steps: usize,
    /// There is no memory for a value: the event is not used.
    refused: Option<Refusal>,
}

impl<'e> Event<'e> {
    fn begin(table: &'e Table, head: &Head<'_>) -> Event<'e> {
        let mut event = Event { table, out: String::with_capacity(512), steps: 0, refused: None };
        event.out.push('{');
        event.text("position", head.cursor);
        event.text("op", head.operation);
        event.field("ts_us", &head.timestamp_us.map_or("null".to_owned(), |us| us.to_string()));
        event.name("source");
        event.out.push_str("{\"connector\":\"helenus\",\"keyspace\":");
        write_json_string(&table.keyspace, &mut event.out);
        event.out.push_str(",\"table\":");
        write_json_string(&table.name, &mut event.out);
        let _ = write!(event.out, ",\"table_id\":\"{}\",\"snapshot\":{}}}", table.id.0, head.is_snapshot);
        event
    }

    fn end(mut self) -> Result<EventText, Refusal> {
        self.out.push('}');
        self.refused.map_or(Ok(EventText { json: self.out, steps: self.steps }), Err)
    }

    /// Appends a value, in hexadecimal if its numbers take more steps than the event has left.
    fn put_value(&mut self, ty: &CqlType, value: Option<&[u8]>) {
        let steps = self.steps.saturating_add(cost::text(ty, value.unwrap_or_default()));
        if steps > STEPS_MAX {
            return write_json_exactly(&CqlType::Blob, value, &mut self.out);
        }
        self.steps = steps;
        write_json_exactly(ty, value, &mut self.out);
    }

    /// Asks for memory for so many bytes of JSON, and for whatever was allocated since. False: there is none.
    fn has_room(&mut self, bytes: usize) -> bool {
        if self.refused.is_some() {
            return false;
        }
        let needed = self.out.len().saturating_add(bytes).saturating_add(64);
        let asked = match needed.checked_sub(self.out.capacity()) {
            None | Some(0) => account::settle(),
            Some(_) => {
                let whole = needed.max(self.out.capacity() + self.out.capacity() / 4);
                let asked = account::grow(whole);
                if asked.is_ok() {
                    self.out.reserve_exact(whole - self.out.len());
                }
                asked
            }
        };
        self.refused = asked.err();
        self.refused.is_none()
    }

    /// Begins a field.
    fn name(&mut self, name: &str) {
        if !self.out.ends_with(['{', '[']) {
            self.out.push(',');
        }
        write_json_string(name, &mut self.out);
        self.out.push(':');
    }

    /// A field whose value is JSON.
    fn field(&mut self, name: &str, json: &str) {
        self.name(name);
        self.out.push_str(json);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        write_json_string(text, &mut self.out);
    }

    /// A field whose value is a value of a type.
    fn value(&mut self, name: &str, ty: &CqlType, bytes: Option<&[u8]>) {
        self.name(name);
        if self.has_room(json_bytes(ty, bytes.map_or(0, <[u8]>::len))) {
            self.put_value(ty, bytes);
        }
    }

    /// The value of a cell; a counter's is its count.
    fn cell_value(&mut self, ty: &CqlType, cell: &Cell, row: RowView<'_>) {
        if cell.is_tombstone() {
            self.out.push_str("null");
        } else if *ty == CqlType::Counter {
            let _ = write!(self.out, "{}", counter_context::total(row.value(cell)));
        } else if self.has_room(json_bytes(ty, row.value(cell).len())) {
            self.put_value(ty, Some(row.value(cell)));
        }
    }

    fn row(&mut self, key: &[u8], row: RowView<'_>, with_deletions: bool, before: Before<'_>) {
        let is_deletion = with_deletions && operation_of_row(row) == "d";
        if is_deletion {
            self.field("scope", "\"row\"");
        }
        self.key(key, Some(row));
        if !row.row.liveness.is_none() {
            let liveness = row.row.liveness;
            self.name("row");
            let _ = write!(self.out, "{{\"ts_us\":{}", liveness.timestamp_us);
            self.expiry(liveness.ttl_s, liveness.expires_s);
            self.out.push('}');
        }
        if with_deletions && !row.row.deletion.is_live() {
            self.deletion(row.row.deletion);
        }
        self.written(&self.table.regulars, row, is_deletion, before);
    }

    fn static_row(&mut self, key: &[u8], row: RowView<'_>, before: Before<'_>) {
        self.key(key, None);
        self.field("static", "true");
        self.written(&self.table.statics, row, false, before);
    }

    /// The columns of the partition key, and of the clustering of a row.
    fn key(&mut self, key: &[u8], row: Option<RowView<'_>>) {
        self.name("key");
        self.out.push('{');
        let values = key_values(self.table.partition_key.len(), key);
        for (column, value) in self.table.partition_key.iter().zip(values) {
            self.value(&column.name, &column.ty, Some(value));
        }
        for (index, column) in self.table.clustering.iter().enumerate() {
            if let Some(row) = row {
                self.value(&column.name, &column.ty, row.clustering(index));
            }
        }
        self.out.push('}');
    }

    fn deletion(&mut self, deletion: DeletionTime) {
        self.name("deletion");
        let DeletionTime { timestamp_us, local_s } = deletion;
        let _ = write!(self.out, "{{\"ts_us\":{timestamp_us},\"local_s\":{local_s}}}");
    }

    fn no_row(&mut self) {
        self.field("before", "null");
        self.field("after", "null");
    }

    fn range(&mut self, start: &RangeBound<'_>, end: &RangeBound<'_>) {
        self.name("range");
        self.out.push('{');
        for (name, bound, is_inclusive) in [("start", start, start.before), ("end", end, !end.before)] {
            self.name(name);
            self.out.push('{');
            for (column, value) in self.table.clustering.iter().zip(bound.values()) {
                self.value(&column.name, &column.ty, value);
            }
            self.out.push('}');
            self.field(&format!("{name}_inclusive"), if is_inclusive { "true" } else { "false" });
        }
        self.out.push('}');
    }

    /// The row before and after the change; `false` if it was not recorded.
    fn images(&mut self, columns: &[&Column], row: RowView<'_>, before: Before<'_>) -> bool {
        let Before::Recorded { row: old, hidden } = before else { return false };
        self.field("row_images", "true");
        let mut image = RowBuf::default();
        image.copy_from(old);
        self.image("before", columns, &mut image);
        image.clear();
        merge_rows(self.table, old, row, hidden, &mut image);
        self.image("after", columns, &mut image);
        true
    }

    /// All columns of a row; `null` if there is none.
    fn image(&mut self, name: &str, columns: &[&Column], image: &mut RowBuf) {
        image.cells.retain(|cell| !cell.is_tombstone());
        image.complex_deletions.clear();
        let row = image.view();
        if row.row.liveness.is_none() && row.row.cells.is_empty() {
            return self.field(name, "null");
        }
        self.name(name);
        self.out.push('{');
        for column in columns {
            match row.cells_of(column.id) {
                [] => self.field(&column.name, "null"),
                _ => self.after(column, row),
            }
        }
        self.out.push('}');
    }

    /// The values by column, then cell by cell.
    fn written(&mut self, columns: &[Column], row: RowView<'_>, is_deletion: bool, before: Before<'_>) {
        let columns: Vec<&Column> = columns.iter().filter(|column| !self.table.is_hidden(column)).collect();
        // Each value stands in it twice. Asked for in one piece: a text that grows is there twice while it is copied.
        let written = |column: &&Column| {
            let cells = row.cells_of(column.id).iter();
            let bytes = cells.map(|cell| row.path(cell).len() + row.value(cell).len() + 128).sum();
            2 * json_bytes(&column.ty, bytes)
        };
        if !self.has_room(columns.iter().map(written).sum()) {
            return;
        }
        let is_whole = self.images(&columns, row, before);
        if is_deletion {
            if !is_whole {
                self.no_row();
            }
            return;
        }
        if !is_whole {
            self.field("before", "null");
            self.name("after");
            self.out.push('{');
            for column in &columns {
                self.after(column, row);
            }
            self.out.push('}');
        }
        self.name("cells");
        self.out.push('[');
        for column in &columns {
            for cell in row.cells_of(column.id) {
                self.cell(column, cell, row);
            }
        }
        self.out.push(']');
        let deletions: Vec<_> =
            columns.iter().filter_map(|column| Some((column, row.complex_deletion_of(column.id)?))).collect();
        if !deletions.is_empty() {
            self.name("collections_deleted");
            self.out.push('[');
            for (column, deletion) in deletions {
                if !self.out.ends_with('[') {
                    self.out.push(',');
                }
                self.out.push('{');
                self.text("column", &column.name);
                self.field("ts_us", &deletion.timestamp_us.to_string());
                self.field("local_s", &deletion.local_s.to_string());
                self.out.push('}');
            }
            self.out.push(']');
        }
    }

    /// What was written to a column: a value, `null` if it was deleted, of a collection the elements that were written.
    fn after(&mut self, column: &Column, row: RowView<'_>) {
        let cells = row.cells_of(column.id);
        if !column.ty.is_multi_cell() {
            if let [cell] = cells {
                self.name(&column.name);
                self.cell_value(&column.ty, cell, row);
            }
            return;
        }
        if cells.is_empty() && row.complex_deletion_of(column.id).is_none() {
            return;
        }
        self.name(&column.name);
        let live: Vec<&Cell> = cells.iter().filter(|cell| !cell.is_tombstone()).collect();
        if live.is_empty() && row.complex_deletion_of(column.id).is_some() {
            self.out.push_str("null");
            return;
        }
        if let CqlType::Udt(of) = &column.ty {
            self.out.push('{');
            for cell in cells {
                let Some((name, ty)) = field(of, row.path(cell)) else { continue };
                self.name(&name);
                self.cell_value(&ty, cell, row);
            }
            self.out.push('}');
            return;
        }
        let bytes: usize = live.iter().map(|cell| row.path(cell).len() + row.value(cell).len() + 8).sum();
        // The values once more, packed, and then as JSON.
        if !self.has_room(3 * bytes) {
            return;
        }
        let mut packed = Vec::new();
        match &column.ty {
            CqlType::Set { .. } => {
                pack(live.len(), live.iter().map(|cell| Some(row.path(cell))), &mut packed)
            }
            CqlType::Map { value, .. } if **value == CqlType::Counter => {
                let counts: Vec<[u8; 8]> =
                    live.iter().map(|cell| counter_context::total(row.value(cell)).to_be_bytes()).collect();
                let parts = live
                    .iter()
                    .zip(&counts)
                    .flat_map(|(cell, count)| [Some(row.path(cell)), Some(&count[..])]);
                pack(live.len(), parts, &mut packed);
            }
            CqlType::Map { .. } => {
                let parts = live.iter().flat_map(|cell| [Some(row.path(cell)), Some(row.value(cell))]);
                pack(live.len(), parts, &mut packed);
            }
            _ => pack(live.len(), live.iter().map(|cell| Some(row.value(cell))), &mut packed),
        }
        self.put_value(&column.ty, Some(&packed));
    }

    fn cell(&mut self, column: &Column, cell: &Cell, row: RowView<'_>) {
        if !self.out.ends_with('[') {
            self.out.push(',');
        }
        self.out.push('{');
        self.text("column", &column.name);
        let mut ty = column.ty.clone();
        if column.ty.is_multi_cell() {
            let path = row.path(cell);
            match &column.ty {
                CqlType::Map { key, value, .. } => {
                    self.value("path", key, Some(path));
                    ty = (**value).clone();
                }
                CqlType::Set { element, .. } => {
                    self.value("path", element, Some(path));
                    ty = (**element).clone();
                }
                CqlType::List { element, .. } => {
                    self.value("path", &CqlType::TimeUuid, Some(path));
                    ty = (**element).clone();
                }
                CqlType::Udt(of) => {
                    let Some((name, of_field)) = field(of, path) else {
                        self.value("path", &CqlType::Blob, Some(path));
                        return self.out.push('}');
                    };
                    self.text("path", &name);
                    ty = of_field;
                }
                _ => self.value("path", &CqlType::Blob, Some(path)),
            }
        }
        if cell.is_tombstone() {
            self.field("deleted", "true");
            self.field("ts_us", &cell.timestamp_us.to_string());
            self.field("local_s", &cell.local_deletion_s.to_string());
        } else {
            if !matches!(column.ty, CqlType::Set { frozen: false, .. }) {
                self.name("value");
                self.cell_value(&ty, cell, row);
            }
            self.field("ts_us", &cell.timestamp_us.to_string());
            self.expiry(cell.ttl_s, cell.local_deletion_s);
        }
        self.out.push('}');
    }

    fn expiry(&mut self, ttl_s: i32, expires_s: i64) {
        if ttl_s != 0 && expires_s != NO_EXPIRY {
            self.field("ttl_s", &ttl_s.to_string());
            self.field("expires_s", &expires_s.to_string());
        }
    }

    fn schema(&mut self, what: SchemaEvent) {
        let change = match what {
            SchemaEvent::Created => "created",
            SchemaEvent::Altered => "altered",
            SchemaEvent::Watched => "watched",
            SchemaEvent::Unwatched => "unwatched",
            SchemaEvent::Dropped => "dropped",
        };
        self.text("change", change);
        self.name("columns");
        self.out.push('[');
        for column in self.table.columns().filter(|column| !self.table.is_hidden(column)) {
            if !self.out.ends_with('[') {
                self.out.push(',');
            }
            self.out.push('{');
            self.text("name", &column.name);
            self.text("type", &column.ty.to_string());
            let kind = match column.kind {
                ColumnKind::PartitionKey => "partition_key",
                ColumnKind::Clustering => "clustering",
                ColumnKind::Static => "static",
                ColumnKind::Regular => "regular",
            };
            self.text("kind", kind);
            if column.reversed {
                self.text("order", "desc");
            }
            self.out.push('}');
        }
        self.out.push(']');
    }
}

/// The field of a user type that a path names: its index, two bytes.
fn field(of: &UserType, path: &[u8]) -> Option<(String, CqlType)> {
    let index = u16::from_be_bytes(*path.first_chunk()?);
    let (name, ty) = of.fields.get(usize::from(index))?;
    Some((name.to_string(), ty.clone()))
}
