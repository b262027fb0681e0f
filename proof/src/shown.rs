//! Tells the judge which of several versions a table shows.
//!
//! Where tombstones are purged while timestamps come in any order, a read may show one of several versions of a cell
//! (`slot`). One read of the whole table, with the timestamps, decides it; all SELECTs that follow must agree. A version
//! that is none of those is left to them: they fail.

use crate::judge::{Cells, Judge, Path, Version};
use crate::slot::Slot;
use crate::table::{Place, Type};
use crate::world::{Failure, Store};
use helenus_engine::ReadRequest;
use helenus_engine::read::{KeyRange, Partitions, ReadCommand, RowOutcome, RowSink};
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::row::RowView;
use helenus_model::schema;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The live cells of a row, by column, in the order of their paths: path, version.
type ShownCells = BTreeMap<usize, Vec<(Vec<u8>, Version)>>;

#[derive(Default)]
struct ShownPartition {
    statics: ShownCells,
    /// By the values of the clustering columns.
    rows: BTreeMap<Vec<Vec<u8>>, (Option<Version>, ShownCells)>,
}

/// Collects what a read of the whole table shows.
struct Collector<'a> {
    judge: &'a Judge,
    table: &'a schema::Table,
    now_s: i64,
    partitions: BTreeMap<Vec<u8>, ShownPartition>,
    key: Vec<u8>,
}

impl Collector<'_> {
    fn cells(&self, row: RowView<'_>) -> ShownCells {
        let mut cells = ShownCells::new();
        for cell in row.row.cells.iter().filter(|cell| cell.is_live(self.now_s)) {
            let name = self.table.column_by_id(cell.column).map(|column| &*column.name);
            let columns = &self.judge.table.columns;
            let Some(column) = columns.iter().position(|column| Some(&*column.name) == name) else {
                continue;
            };
            let version = version((cell.timestamp_us, cell.ttl_s, cell.local_deletion_s), row.value(cell));
            cells.entry(column).or_default().push((row.path(cell).to_vec(), version));
        }
        cells
    }
}

fn version((timestamp_us, ttl_s, ends_s): (i64, i32, i64), bytes: &[u8]) -> Version {
    let ends_s = if ttl_s == 0 { NO_EXPIRY } else { ends_s };
    Version { timestamp_us, ttl_s: ttl_s as u32, ends_s, value: Some(0), bytes: bytes.into() }
}

impl RowSink for Collector<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        self.key = key.to_vec();
        let statics = static_row.map(|row| self.cells(row)).unwrap_or_default();
        self.partitions.entry(key.to_vec()).or_default().statics = statics;
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        let clustering = (0..self.table.clustering.len())
            .map(|index| row.clustering(index).unwrap_or_default().to_vec())
            .collect();
        let of = row.row.liveness;
        let marker = of.is_live(self.now_s).then(|| version((of.timestamp_us, of.ttl_s, of.expires_s), &[]));
        let cells = self.cells(row);
        self.partitions.entry(self.key.clone()).or_default().rows.insert(clustering, (marker, cells));
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}

/// Has the judge take over what its table shows.
pub(crate) fn adopt(store: &Store, judge: &mut Judge) -> Result<(), Failure> {
    let schema = store.database().schema();
    let Some(table) = schema.table("ks", &judge.table.name) else { return Ok(()) };
    let now_s = store.now_s();
    let command = ReadCommand {
        table: table.clone(),
        partitions: Partitions::Range(KeyRange::all()),
        filter: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
        reversed: false,
        statics: true,
        columns: None,
        limits: Limits::NONE,
        now_s,
        resume: None,
        page_rows: None,
    };
    let engine = |error: helenus_engine::Error| format!("{} cannot be read: {error}", judge.table.name);
    let view = store.database().view(table).map_err(engine)?;
    let mut sink = Collector { judge, table, now_s, partitions: BTreeMap::new(), key: Vec::new() };
    let request = ReadRequest { may_block: true, ..ReadRequest::default() };
    store.database().read(&command, &view, request, &mut sink, None).map_err(engine)?;
    let shown = sink.partitions;
    let Judge { table, partitions, .. } = judge;
    let keys = table.keys().len();
    let nothing = (None, ShownCells::new());
    for ((_, key), (_, partition)) in partitions.iter_mut() {
        let shown = shown.get(key);
        let kinds: Vec<&Type> = table.columns.iter().map(|column| &column.ty).collect();
        adopt_cells(&kinds, &mut partition.statics, shown.map_or(&nothing.1, |shown| &shown.statics), now_s);
        for (clustering, row) in partition.rows.values_mut() {
            let of_column = |(at, value): (usize, &u8)| {
                let column = &table.columns[keys + at];
                assert!(matches!(column.place, Place::Clustering { .. }), "keys come before clusterings");
                column.pool().bytes(*value).to_vec()
            };
            let name: Vec<Vec<u8>> = clustering.iter().enumerate().map(of_column).collect();
            let (marker, cells) = shown.and_then(|shown| shown.rows.get(&name)).unwrap_or(&nothing);
            row.marker.adopt(marker.as_ref(), Version::marker_remains, now_s);
            adopt_cells(&kinds, &mut row.cells, cells, now_s);
        }
    }
    Ok(())
}

fn adopt_cells(kinds: &[&Type], cells: &mut Cells, shown: &ShownCells, now_s: i64) {
    let none = Vec::new();
    for (column, ty) in kinds.iter().enumerate() {
        let shown = shown.get(&column).unwrap_or(&none);
        let mut of_column: Vec<(&Path, &mut Slot<Version>)> = cells
            .cells
            .range_mut((column, Path::Whole)..)
            .take_while(|((of, _), _)| *of == column)
            .map(|((_, path), slot)| (path, slot))
            .collect();
        if let Type::List(_) = ty {
            let slots: Vec<&Slot<Version>> = of_column.iter().map(|(_, slot)| &**slot).collect();
            let versions: Vec<&Version> = shown.iter().map(|(_, version)| version).collect();
            let Some(matched) = matching(&slots, &versions, now_s) else { continue };
            for ((_, slot), shown) in of_column.iter_mut().zip(matched) {
                slot.adopt(shown.map(|at| versions[at]), Version::remains, now_s);
            }
            continue;
        }
        for (path, slot) in of_column {
            let bytes: Vec<u8> = match (path, ty) {
                (Path::Key(key), Type::Set(pool) | Type::Map(pool, _)) => pool.bytes(*key).to_vec(),
                (Path::Field(field), _) => (*field as u16).to_be_bytes().to_vec(),
                _ => Vec::new(),
            };
            let version = shown.iter().find(|(path, _)| *path == bytes).map(|(_, version)| version);
            slot.adopt(version, Version::remains, now_s);
        }
    }
}

/// Which elements of a list are shown: the judge does not know their places as they are stored, only their order. The version
/// of each slot; `None` if no choice gives just these versions.
fn matching(slots: &[&Slot<Version>], shown: &[&Version], now_s: i64) -> Option<Vec<Option<usize>>> {
    // fits[i][j]: whether the slots from i on may show just the versions from j on.
    let mut fits = vec![vec![false; shown.len() + 1]; slots.len() + 1];
    fits[slots.len()][shown.len()] = true;
    let takes = |i: usize, j: usize| shown.get(j).is_some_and(|version| slots[i].may_show(version, now_s));
    for i in (0..slots.len()).rev() {
        for j in (0..=shown.len()).rev() {
            let may_skip = slots[i].may_show_nothing(now_s);
            fits[i][j] = takes(i, j) && fits[i + 1][j + 1] || may_skip && fits[i + 1][j];
        }
    }
    if !fits[0][0] {
        return None;
    }
    let mut j = 0;
    let choose = |i: usize| {
        let is_shown = takes(i, j) && fits[i + 1][j + 1];
        j += usize::from(is_shown);
        is_shown.then(|| j - 1)
    };
    Some((0..slots.len()).map(choose).collect())
}
