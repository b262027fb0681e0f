//! Translates the judge's tables, changes and reads into those of the engine.

use super::judge::{
    Ask, Bound, CellWrite, Change, FoundPartition, FoundRow, Kind, NEVER, RingBound, STRATEGIES, Select,
    Shape, Timed, Values, Version,
};
use helenus_engine::read::{
    BatchSink, KeyRange, PartitionKey, Partitions, ReadCommand, ReadEnd, RowOutcome, RowSink,
};
use helenus_engine::{Database, Error, ReadRequest};
use helenus_model::byte_comparable;
use helenus_model::cell::{Cell, ColumnId, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::mutation::{Changes, PartitionUpdate};
use helenus_model::packed::RowWriter;
use helenus_model::row::RowView;
use helenus_model::row_batch::{BatchValue, RowBatch};
use helenus_model::schema::{Column, ColumnKind, Table, TableId, TableOptions};
use helenus_model::token::Token;
use helenus_model::types::CqlType;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// The table of a shape.
pub fn table_of_shape(shape: &Shape) -> Table {
    let clustering = shape.clustering.iter().enumerate().map(|(index, (kind, desc))| {
        let ty = match kind {
            Kind::Text => CqlType::Text,
            Kind::Int => CqlType::Int,
            Kind::Blob => CqlType::Blob,
        };
        Column { reversed: *desc, ..Column::new(&format!("c{index}"), ColumnKind::Clustering, ty) }
    });
    let regular = |name, ty| Column::new(name, ColumnKind::Regular, ty);
    let mut columns = vec![Column::new("k", ColumnKind::PartitionKey, CqlType::Text)];
    columns.extend(clustering);
    columns.extend([regular("v", CqlType::Text), regular("w", CqlType::Int)]);
    if shape.has_map {
        let text = || Arc::new(CqlType::Text);
        columns.push(regular("m", CqlType::Map { key: text(), value: text(), frozen: false }));
    }
    columns.extend(shape.has_static.then(|| Column::new("s", ColumnKind::Static, CqlType::Text)));
    let mut options = TableOptions::default();
    let (class, option, value) = STRATEGIES[shape.strategy];
    let compaction = [("class", class), (option, value)];
    options.compaction = compaction.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    if !shape.compressed {
        options.compression = BTreeMap::from([("enabled".to_string(), "false".to_string())]);
    }
    Table { options, ..Table::new(("ks", shape.name), TableId(Uuid::from_u128(shape.id)), columns) }
}

/// The changes of one partition as an update.
pub fn update(table: &Arc<Table>, key: &[u8], changes: &[Timed], now_s: i64) -> PartitionUpdate {
    let mut out = Changes::default();
    for timed in changes {
        put_change(table, timed, now_s, &mut out);
    }
    PartitionUpdate { table: table.clone(), key: key.to_vec(), changes: out }
}

fn put_change(table: &Table, timed: &Timed, now_s: i64, out: &mut Changes) {
    let at = timed.timestamp_us;
    let deletion = DeletionTime { timestamp_us: at, local_s: now_s };
    let values = |bound: &'_ Bound| bound.prefix.clone();
    match &timed.change {
        Change::DeletePartition => out.delete_partition(deletion),
        Change::DeleteRow(clustering) => {
            let values = clustering.iter().map(|value| Some(&value[..]));
            out.row(values, (Liveness::NONE, deletion), &[], |_| {});
        }
        Change::DeleteRange(start, end) => {
            let (from, to) = (values(start), values(end));
            let from: Vec<_> = from.iter().map(|value| Some(&value[..])).collect();
            let to: Vec<_> = to.iter().map(|value| Some(&value[..])).collect();
            out.delete_range((&from, start.before), (&to, end.before), deletion);
        }
        Change::Static(cells) => out.static_row(&[], |row| put_cells(table, cells, timed, now_s, row)),
        Change::Row { clustering, marker, cells, clear_map } => {
            let ends_s = if timed.ttl_s == 0 { NO_EXPIRY } else { now_s + i64::from(timed.ttl_s) };
            let liveness = if *marker {
                Liveness { timestamp_us: at, ttl_s: timed.ttl_s, expires_s: ends_s }
            } else {
                Liveness::NONE
            };
            let complex = if *clear_map {
                let id = table.column("m").unwrap().id;
                vec![(id, DeletionTime { timestamp_us: at - 1, local_s: now_s })]
            } else {
                Vec::new()
            };
            let values = clustering.iter().map(|value| Some(&value[..]));
            out.row(values, (liveness, DeletionTime::LIVE), &complex, |row| {
                put_cells(table, cells, timed, now_s, row);
            });
        }
    }
}

fn put_cells(table: &Table, cells: &[CellWrite], timed: &Timed, now_s: i64, row: &mut RowWriter<'_>) {
    let mut cells: Vec<_> = cells.iter().map(|cell| (table.column(cell.column).unwrap().id, cell)).collect();
    cells.sort_by_key(|(id, cell)| (*id, cell.path.clone()));
    for (column, cell) in cells {
        let ttl_s = if cell.value.is_some() { timed.ttl_s } else { 0 };
        let local_deletion_s = match (&cell.value, ttl_s) {
            (None, _) => now_s,
            (Some(_), 0) => NO_EXPIRY,
            (Some(_), ttl) => now_s + i64::from(ttl),
        };
        let head = Cell {
            column,
            ttl_s,
            timestamp_us: timed.timestamp_us,
            local_deletion_s,
            path: Span::NULL,
            value: Span::EMPTY,
        };
        row.cell(&head, cell.path.as_deref(), cell.value.as_deref().unwrap_or_default());
    }
}

/// The command for a read.
pub fn command_of(table: &Arc<Table>, ask: &Ask, now_s: i64) -> ReadCommand {
    let key = |bytes: &Vec<u8>| PartitionKey::new(bytes.clone());
    let partitions = match &ask.keys {
        Some(keys) => Partitions::Keys(keys.iter().map(key).collect()),
        None => {
            let mut range = KeyRange::all();
            if let Some(bound) = &ask.range.0 {
                range.start = ring_position(bound);
            }
            if let Some(bound) = &ask.range.1 {
                range.end = ring_position(bound);
            }
            Partitions::Range(range)
        }
    };
    let filter = match &ask.select {
        Select::All => ClusteringFilter::Slices(vec![Slice::all()]),
        Select::Names(names) => {
            ClusteringFilter::Names(names.iter().map(|name| name_key(table, name)).collect())
        }
        Select::Slices(slices) => ClusteringFilter::Slices(
            slices
                .iter()
                .map(|(start, end)| Slice { start: bound_key(table, start), end: bound_key(table, end) })
                .collect(),
        ),
    };
    ReadCommand {
        table: table.clone(),
        partitions,
        filter: Arc::new(filter),
        reversed: ask.reversed,
        statics: ask.statics,
        columns: ask.only.map(|only| table.column(only).into_iter().map(|column| column.id).collect()),
        limits: Limits { rows: ask.rows_max, per_partition: ask.per_partition_max },
        now_s,
        resume: None,
        page_rows: ask.page_rows,
    }
}

fn ring_position(bound: &RingBound) -> Vec<u8> {
    let mut out = Vec::new();
    match bound {
        RingBound::Key(key, before) => {
            byte_comparable::decorated_key_bound(Token::of_key(key), key, *before, &mut out);
        }
        RingBound::Token(token, before) => byte_comparable::token_bound(Token(*token), *before, &mut out),
    }
    out
}

fn name_key(table: &Table, name: &Values) -> Vec<u8> {
    let mut out = Vec::new();
    let values = name.iter().map(|value| Some(&value[..]));
    byte_comparable::clustering_key(values, &table.clustering, &mut out).unwrap();
    out
}

fn bound_key(table: &Table, bound: &Bound) -> Vec<u8> {
    let mut out = Vec::new();
    let values = bound.prefix.iter().map(|value| Some(&value[..]));
    byte_comparable::clustering_bound(values, &table.clustering, bound.before, &mut out).unwrap();
    out
}

/// Collects the rows of a read.
struct Collector<'a> {
    table: &'a Table,
    ask: &'a Ask,
    now_s: i64,
    found: Vec<FoundPartition>,
    counted: u64,
}

impl Collector<'_> {
    fn live_cells(&self, row: RowView<'_>) -> Vec<LiveCell> {
        let live = row.row.cells.iter().filter(|cell| cell.is_live(self.now_s));
        // As every reader does, skips columns that the table no longer has.
        let live = live.filter(|cell| self.table.column_by_id(cell.column).is_some());
        let mut cells: Vec<_> = live
            .map(|cell| {
                let name = &*self.table.column_by_id(cell.column).expect("cells of known columns").name;
                let name = ["v", "w", "m", "s"].into_iter().find(|known| *known == name).unwrap();
                let version = Version {
                    timestamp_us: cell.timestamp_us,
                    ttl_s: cell.ttl_s,
                    ends_s: cell.local_deletion_s,
                    value: row.value(cell).to_vec(),
                };
                ((name, cell.path.get(row.data).map(<[u8]>::to_vec)), version)
            })
            .collect();
        cells.sort_by(|a, b| a.0.cmp(&b.0));
        cells
    }
}

impl RowSink for Collector<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        let statics = static_row.map(|row| self.live_cells(row)).unwrap_or_default();
        // The partition continues from the last page.
        if self.found.last().is_some_and(|last| last.key == key) {
            assert_eq!(
                self.found.last().unwrap().statics,
                statics,
                "the static row is the same on each page"
            );
            return Ok(());
        }
        self.found.push(FoundPartition { key: key.to_vec(), statics, rows: Vec::new() });
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        let clustering: Values =
            (0..self.table.clustering.len()).map(|index| row.clustering(index).unwrap().to_vec()).collect();
        if self.ask.refuses(&clustering) {
            return Ok(RowOutcome::Skipped);
        }
        let liveness = row.row.liveness;
        let marker = liveness.is_live(self.now_s).then(|| Version {
            timestamp_us: liveness.timestamp_us,
            ttl_s: liveness.ttl_s,
            ends_s: if liveness.ttl_s == 0 { NEVER } else { liveness.expires_s },
            value: Vec::new(),
        });
        let cells = self.live_cells(row);
        self.found.last_mut().unwrap().rows.push(FoundRow { clustering, marker, cells });
        self.counted += 1;
        Ok(RowOutcome::Counted)
    }

    fn batches(&mut self) -> Option<&mut dyn BatchSink> {
        if self.ask.filtered { None } else { Some(self) }
    }

    fn partition_end(&mut self, rows: u64) -> helenus_engine::Result<RowOutcome> {
        let statics = self.found.last().is_some_and(|partition| !partition.statics.is_empty());
        if rows == 0 && statics && !self.ask.filtered {
            self.counted += 1;
            return Ok(RowOutcome::Counted);
        }
        Ok(RowOutcome::Skipped)
    }
}

impl BatchSink for Collector<'_> {
    fn batch(&mut self, batch: &RowBatch<'_>) -> helenus_engine::Result<bool> {
        let version = |value: &BatchValue, bytes: &[u8]| Version {
            timestamp_us: value.timestamp_us,
            ttl_s: 0,
            ends_s: NEVER,
            value: bytes.to_vec(),
        };
        for row in batch.rows() {
            let (clustering, cells) = row.split_at(batch.clustering);
            let marker = clustering.first().filter(|value| value.timestamp_us != i64::MIN);
            let cell = |(id, value): (&ColumnId, &BatchValue)| {
                let name = &*self.table.column_by_id(*id).expect("cells of known columns").name;
                let name = ["v", "w"].into_iter().find(|known| *known == name).expect("a column of one cell");
                ((name, None), version(value, batch.bytes(value)))
            };
            let mut cells: Vec<_> = batch.columns.iter().zip(cells).map(cell).collect();
            cells.sort_by(|a, b| a.0.cmp(&b.0));
            let clustering_values = clustering.iter().map(|value| batch.bytes(value).to_vec()).collect();
            let marker = marker.map(|value| version(value, &[]));
            let found = FoundRow { clustering: clustering_values, marker, cells };
            self.found.last_mut().unwrap().rows.push(found);
            self.counted += 1;
        }
        Ok(true)
    }
}

/// Reads page by page. Each page is first tried without waiting, as on an event loop.
pub fn read(
    database: &Database,
    table: &Arc<Table>,
    ask: &Ask,
    now_s: i64,
) -> Result<Vec<FoundPartition>, Error> {
    let mut command = command_of(table, ask, now_s);
    let mut found: Vec<FoundPartition> = Vec::new();
    for _ in 0..100_000 {
        let view = database.view(table)?;
        let page = |may_block: bool, found: Vec<FoundPartition>| {
            let mut sink = Collector { table, ask, now_s, found, counted: 0 };
            let request = ReadRequest { may_block, ..ReadRequest::default() };
            let end = database.read(&command, &view, request, &mut sink, None);
            end.map(|end| (end, sink.found, sink.counted))
        };
        let (end, so_far, counted) = match page(false, found.clone()) {
            Err(Error::WouldBlock) => page(true, found)?,
            other => other?,
        };
        found = so_far;
        assert!(ask.page_rows.is_none_or(|rows| counted <= rows), "a page has at most its rows");
        match end {
            ReadEnd::Complete => {
                found.retain(|partition| !partition.rows.is_empty() || !partition.statics.is_empty());
                return Ok(found);
            }
            ReadEnd::Page(resume) => command.resume = Some(resume),
        }
        if ask.flush_between {
            database.flush(table.id)?;
        }
    }
    panic!("a read without an end");
}

/// A live cell: its column, its path in a collection, and its version.
type LiveCell = ((&'static str, Option<Vec<u8>>), Version);
