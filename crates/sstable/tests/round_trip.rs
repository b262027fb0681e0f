//! Tests that written tables are read back: whole, by slices and by names, in both directions, against a list in
//! memory.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

mod render;

use helenus_host::{Host, memory};
use helenus_model::byte_comparable::{clustering_bound, clustering_key, decorated_key};
use helenus_model::cell::{Cell, ColumnId, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, ClusteringFilter, Slice};
use helenus_model::partitions::PartitionKey;
use helenus_model::range_tombstone::MarkerBuf;
use helenus_model::row::RowBuf;
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::token::KeyHash;
use helenus_model::types::CqlType;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::data::KeyRange;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::statistics::EncodingStats;
use helenus_sstable::table::{OpenOptions, PartitionReader, SpareReaders, SsTable};
use helenus_sstable::version::Version;
use helenus_sstable::writer::{Beyond2038, SsTableWriter, WriterOptions};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const FOLDER: &str = "/t";

/// A small random generator, so that one seed determines a whole table.
struct Dice(u64, Version);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    /// A local deletion time that the version can store.
    fn seconds(&mut self) -> i64 {
        self.below(if self.1.has_unsigned_deletion_times() { 4_000_000_000 } else { 2_000_000_000 }) as i64
    }
    fn bytes(&mut self, max: u64) -> Vec<u8> {
        (0..self.below(max + 1)).map(|_| self.below(256) as u8).collect()
    }
}

fn schema(regulars: usize) -> Table {
    let map = |frozen| CqlType::Map { key: CqlType::Int.into(), value: CqlType::Blob.into(), frozen };
    let mut columns = vec![
        Column::new("k", ColumnKind::PartitionKey, CqlType::Blob),
        Column { reversed: true, ..Column::new("c", ColumnKind::Clustering, CqlType::Int) },
        Column::new("d", ColumnKind::Clustering, CqlType::Blob),
        Column::new("s", ColumnKind::Static, CqlType::Blob),
        Column::new("sm", ColumnKind::Static, map(false)),
        Column::new("m", ColumnKind::Regular, map(false)),
        Column::new("b", ColumnKind::Regular, CqlType::Blob),
        Column::new("i", ColumnKind::Regular, CqlType::Int),
    ];
    let more = |i| Column::new(&format!("x{i:02}"), ColumnKind::Regular, CqlType::Blob);
    columns.extend((0..regulars).map(more));
    Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns)
}

/// The rows and markers of a partition, in order.
#[derive(Default)]
struct Partition {
    elements: Vec<Element>,
}

enum Element {
    Row(RowBuf),
    Marker(MarkerBuf),
}

impl Element {
    fn view(&self) -> Unfiltered<'_> {
        match self {
            Element::Row(row) => Unfiltered::Row(row.view()),
            Element::Marker(marker) => Unfiltered::Marker(marker.view()),
        }
    }
}

fn deletion(dice: &mut Dice) -> DeletionTime {
    DeletionTime { timestamp_us: 1 + dice.below(1 << 40) as i64, local_s: dice.seconds() }
}

/// A deletion of a row. Its timestamp may be negative, unlike that of a partition deletion.
fn inner_deletion(dice: &mut Dice) -> DeletionTime {
    let deletion = deletion(dice);
    if dice.one_in(4) { DeletionTime { timestamp_us: -deletion.timestamp_us, ..deletion } } else { deletion }
}

fn clustering(dice: &mut Dice, values: u64) -> Vec<Option<Vec<u8>>> {
    let c = if dice.one_in(12) { Vec::new() } else { (dice.below(9) as i32 - 4).to_be_bytes().to_vec() };
    let d = if dice.one_in(20) { None } else { Some(dice.bytes(6)) };
    [Some(c), d].into_iter().take(values as usize).collect()
}

fn cell(dice: &mut Dice, row: &mut RowBuf, column: ColumnId, path: Option<[u8; 4]>, fixed: Option<usize>) {
    let liveness = row.liveness;
    let timestamp_us = match dice.below(3) {
        0 if !liveness.is_none() => liveness.timestamp_us,
        _ => dice.below(1 << 50) as i64 - (1 << 20),
    };
    let (mut ttl_s, mut local_deletion_s) = (0, NO_EXPIRY);
    match dice.below(5) {
        0 => (ttl_s, local_deletion_s) = (1 + dice.below(1000) as i32, 5000 + dice.seconds()),
        1 if liveness.ttl_s != 0 => (ttl_s, local_deletion_s) = (liveness.ttl_s, liveness.expires_s),
        2 => local_deletion_s = dice.seconds(),
        _ => {}
    }
    let is_tombstone = ttl_s == 0 && local_deletion_s != NO_EXPIRY;
    let value = match fixed {
        _ if is_tombstone => Vec::new(),
        Some(len) => dice.bytes(1).iter().flat_map(|byte| vec![*byte; len]).collect(),
        None if dice.one_in(50) => vec![7; 3000],
        None => dice.bytes(40),
    };
    let path = path.map_or(Span::NULL, |path| row.push_bytes(&path));
    let value = if value.is_empty() { Span::EMPTY } else { row.push_bytes(&value) };
    row.cells.push(Cell { column, ttl_s, timestamp_us, local_deletion_s, path, value });
}

fn body(dice: &mut Dice, table: &Table, columns: &[Column], row: &mut RowBuf) {
    if dice.below(3) > 0 {
        row.liveness = Liveness::at(dice.below(1 << 50) as i64);
        if dice.one_in(3) {
            row.liveness.ttl_s = 1 + dice.below(1000) as i32;
            row.liveness.expires_s = 5000 + dice.seconds();
        }
    }
    if dice.one_in(6) {
        row.deletion = inner_deletion(dice);
    }
    let _ = table;
    let keep = 1 + dice.below(4);
    for column in columns {
        if dice.below(4) >= keep {
            continue;
        }
        if !column.ty.is_multi_cell() {
            cell(dice, row, column.id, None, column.ty.fixed_length());
            continue;
        }
        if dice.one_in(2) {
            row.complex_deletions.push((column.id, inner_deletion(dice)));
        }
        for path in 0..dice.below(4) as i32 {
            cell(dice, row, column.id, Some(path.to_be_bytes()), None);
        }
    }
    row.cells.sort_by_key(|cell| cell.column);
    row.complex_deletions.sort_by_key(|(id, _)| *id);
    if row.view().is_empty() {
        row.liveness = Liveness::at(1);
    }
}

/// Rows and bounds at random positions, in order, with markers that close what they open.
fn partition(dice: &mut Dice, table: &Table, rows: u64) -> Partition {
    let mut positions: BTreeMap<Vec<u8>, Option<bool>> = BTreeMap::new();
    let mut values = BTreeMap::new();
    for _ in 0..rows {
        let (clustering, bound) = match dice.below(5) {
            0 => {
                let count = dice.below(3);
                (clustering(dice, count), Some(dice.one_in(2)))
            }
            _ => (clustering(dice, 2), None),
        };
        let key = position(table, &clustering, bound);
        positions.insert(key.clone(), bound);
        values.insert(key, clustering);
    }
    let last = position(table, &[], Some(false));
    positions.entry(last.clone()).or_insert(Some(false));
    values.entry(last.clone()).or_default();
    let mut found = Partition::default();
    let mut open = DeletionTime::LIVE;
    for (key, bound) in positions {
        let values = &values[&key];
        let Some(before) = bound else {
            let mut row = RowBuf { key, ..RowBuf::default() };
            for value in values {
                let span = value.as_ref().map_or(Span::NULL, |value| row.push_bytes(value));
                row.clustering.push(span);
            }
            body(dice, table, &table.regulars, &mut row);
            found.elements.push(Element::Row(row));
            continue;
        };
        let opens = key != last && (open.is_live() || dice.one_in(3));
        let mut marker = MarkerBuf { before, close: open, ..MarkerBuf::default() };
        open = if opens { inner_deletion(dice) } else { DeletionTime::LIVE };
        marker.open = open;
        marker.key = key;
        for value in values {
            let (start, len) = (marker.data.len(), value.as_ref().map_or(0, Vec::len));
            marker.data.extend_from_slice(value.as_deref().unwrap_or_default());
            marker.clustering.push(match value {
                None => Span::NULL,
                Some(_) => Span { start: start as u32, len: len as u32 },
            });
        }
        if marker.kind().is_some() {
            found.elements.push(Element::Marker(marker));
        }
    }
    found
}

fn position(table: &Table, values: &[Option<Vec<u8>>], bound: Option<bool>) -> Vec<u8> {
    let mut out = Vec::new();
    let values = values.iter().map(|value| value.as_deref());
    match bound {
        None => clustering_key(values, &table.clustering, &mut out).unwrap(),
        Some(before) => clustering_bound(values, &table.clustering, before, &mut out).unwrap(),
    }
    out
}

struct Written {
    host: Host,
    descriptor: Descriptor,
    schema: Arc<Table>,
    partitions: BTreeMap<Vec<u8>, (Vec<u8>, DeletionTime, RowBuf, Partition)>,
}

struct Shape {
    seed: u64,
    rows: u64,
    block_bytes: u64,
    chunk_bytes: u32,
    compressed: bool,
    regulars: usize,
    version: Version,
}

fn write(shape: &Shape) -> Written {
    let host = memory::host();
    let schema = Arc::new(schema(shape.regulars));
    let mut dice = Dice(shape.seed, shape.version);
    let mut partitions = BTreeMap::new();
    for number in 0..1 + dice.below(6) {
        let mut key = dice.bytes(4);
        key.push(number as u8);
        let mut decorated = Vec::new();
        decorated_key(KeyHash::of(&key).token, &key, &mut decorated);
        let deleted = if dice.one_in(3) { deletion(&mut dice) } else { DeletionTime::LIVE };
        let mut static_row = RowBuf::default();
        if dice.one_in(2) {
            body(&mut dice, &schema, &schema.statics, &mut static_row);
            static_row.liveness = Liveness::NONE;
            static_row.deletion = DeletionTime::LIVE;
        }
        let rows = if dice.one_in(4) { dice.below(3) } else { dice.below(shape.rows + 1) };
        let partition = partition(&mut dice, &schema, rows);
        partitions.insert(decorated, (key, deleted, static_row, partition));
    }
    host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    let options = WriterOptions::of_table(schema.clone(), partitions.len() as u64, EncodingStats::NONE);
    let mut options = options.for_version(shape.version);
    options.row_index_block_bytes = shape.block_bytes;
    options.compression.chunk_bytes = shape.chunk_bytes;
    if !shape.compressed {
        options.compression.class = None;
    }
    let descriptor = Descriptor { version: shape.version, id: SsTableId::Sequence(1) };
    let mut writer =
        SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options).unwrap();
    for (key, deletion, static_row, partition) in partitions.values() {
        let static_row = Some(static_row.view()).filter(|row| !row.is_empty());
        writer.begin_partition(key, &KeyHash::of(key), *deletion, static_row).unwrap();
        for element in &partition.elements {
            writer.add(element.view()).unwrap();
        }
        writer.end_partition().unwrap();
    }
    writer.finish().unwrap();
    Written { host, descriptor, schema, partitions }
}

impl Written {
    fn open(&self) -> Arc<SsTable> {
        self.open_with(BufferPool::none())
    }

    fn open_with(&self, buffers: BufferPool) -> Arc<SsTable> {
        let options = OpenOptions { schema: self.schema.clone(), buffers };
        SsTable::open(&*self.host.disk, Path::new(FOLDER), self.descriptor, options).unwrap()
    }
}

fn line(schema: &Table, element: Unfiltered<'_>) -> String {
    let mut key = element.key().to_vec();
    if let (true, Unfiltered::Row(row)) = (key.is_empty(), element) {
        // The reader leaves keys out.
        let values = (0..schema.clustering.len()).map(|index| row.clustering(index));
        clustering_key(values, &schema.clustering, &mut key).unwrap();
    }
    let mut out = format!("{} ", render::hex(&key));
    render::element(schema, element, &mut out);
    out
}

/// The expected result of a forward read of one slice.
fn expected(schema: &Table, partition: &Partition, start: &[u8], end: &[u8]) -> Vec<String> {
    let open_before = |is_before: &dyn Fn(&[u8]) -> bool| {
        let markers = partition.elements.iter().filter_map(|element| match element {
            Element::Marker(marker) => Some(marker).filter(|marker| is_before(&marker.key)),
            Element::Row(_) => None,
        });
        markers.last().map_or(DeletionTime::LIVE, |marker| marker.open)
    };
    let made = |at: &[u8], close, open| {
        let before = at.last().is_none_or(|byte| *byte == 0x20);
        line(
            schema,
            Unfiltered::Marker(
                MarkerBuf { key: at.to_vec(), before, close, open, ..MarkerBuf::default() }.view(),
            ),
        )
    };
    let mut out = Vec::new();
    let open = open_before(&|key| key <= start);
    if !open.is_live() {
        out.push(made(start, DeletionTime::LIVE, open));
    }
    let at_start = |e: &Unfiltered<'_>| matches!(e, Unfiltered::Row(_)) && start == e.key();
    let inside = partition.elements.iter().map(Element::view);
    let inside = inside.filter(|e| (start < e.key() || at_start(e)) && e.key() < end);
    out.extend(inside.map(|element| line(schema, element)));
    let open = open_before(&|key| key < end);
    if !open.is_live() {
        out.push(made(end, open, DeletionTime::LIVE));
    }
    out
}

fn read(reader: &mut PartitionReader, schema: &Table) -> Vec<String> {
    let mut cx = render::cx();
    let mut out = Vec::new();
    while reader.advance(&mut cx).unwrap() {
        out.push(line(schema, reader.current()));
    }
    assert!(!reader.advance(&mut cx).unwrap());
    out
}

fn check_selection(written: &Written, table: &Arc<SsTable>, dice: &mut Dice) {
    let mut cx = render::cx();
    // Some partitions are read in the memory of a reader of another one.
    let mut readers = SpareReaders::default();
    let schema = &*written.schema;
    for (decorated, (key, deletion, static_row, partition)) in &written.partitions {
        let position = table.find(key, &KeyHash::of(key), decorated, &mut cx).unwrap().unwrap();
        let with_static = dice.one_in(2);
        let mut reader = if dice.one_in(2) {
            PartitionReader::open(table.clone(), &position, with_static, &mut cx).unwrap()
        } else {
            readers.find(table, &PartitionKey::new(key.clone()), with_static, &mut cx).unwrap().unwrap()
        };
        assert_eq!((reader.key(), reader.deletion()), (&key[..], *deletion));
        if with_static {
            assert_eq!(reader.static_row().is_some(), !static_row.view().is_empty());
        }
        for _ in 0..4 {
            let (filter, ranges) = selection(dice, schema, partition);
            let parts: Vec<Vec<String>> =
                ranges.iter().map(|(start, end)| expected(schema, partition, start, end)).collect();
            let mut wanted: Vec<String> = parts.concat();
            let filter = Arc::new(filter);
            // The reader must also return rows beyond the expected number.
            let likely = dice.one_in(2).then(|| 1 + dice.below(40));
            let expect =
                |reader: &mut PartitionReader| likely.into_iter().for_each(|rows| reader.expect_rows(rows));
            reader.select(filter.clone(), false);
            expect(&mut reader);
            assert_eq!(read(&mut reader, schema), wanted, "forward {filter:?}");
            reader.select(filter.clone(), false);
            expect(&mut reader);
            reader.set_keys(false);
            assert_eq!(read(&mut reader, schema), wanted, "forward, without keys {filter:?}");
            wanted.reverse();
            reader.select(filter.clone(), true);
            expect(&mut reader);
            assert_eq!(read(&mut reader, schema), wanted, "reversed, without keys {filter:?}");
            reader.set_keys(true);
            reader.select(filter.clone(), true);
            expect(&mut reader);
            assert_eq!(read(&mut reader, schema), wanted, "reversed {filter:?}");
        }
        // The next reader uses its memory again, and must not return anything of it.
        readers.close(reader);
    }
}

/// Start and end in ordered encoding.
type FromTo = (Vec<u8>, Vec<u8>);

/// Names or slices, and the same as ranges.
fn selection(dice: &mut Dice, schema: &Table, partition: &Partition) -> (ClusteringFilter, Vec<FromTo>) {
    let mut bounds: Vec<Vec<u8>> = Vec::new();
    if dice.one_in(2) {
        for _ in 0..dice.below(6) {
            bounds.push(position(schema, &clustering(dice, 2), None));
        }
        let rows: Vec<_> = partition.elements.iter().filter(|e| matches!(e, Element::Row(_))).collect();
        for _ in 0..dice.below(6).min(rows.len() as u64) {
            bounds.push(rows[dice.below(rows.len() as u64) as usize].view().key().to_vec());
        }
        bounds.sort();
        bounds.dedup();
        let around = |key: &Vec<u8>| {
            let mut ends = (key.clone(), key.clone());
            *ends.0.last_mut().unwrap() = 0x20;
            *ends.1.last_mut().unwrap() = 0x60;
            ends
        };
        let ranges = bounds.iter().map(around).collect();
        return (ClusteringFilter::Names(bounds), ranges);
    }
    for _ in 0..2 * (1 + dice.below(3)) {
        let count = dice.below(3);
        bounds.push(position(schema, &clustering(dice, count), Some(dice.one_in(2))));
    }
    // The next page of a query begins at a row's own key.
    if dice.one_in(3)
        && let Some(Element::Row(row)) = partition.elements.get(dice.below(50) as usize)
    {
        bounds[0].clone_from(&row.key);
    }
    bounds.sort();
    if dice.one_in(3) {
        bounds[0] = BEFORE_ALL.to_vec();
    }
    if dice.one_in(3) {
        *bounds.last_mut().unwrap() = AFTER_ALL.to_vec();
    }
    bounds.dedup();
    let ranges: Vec<_> = bounds.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let slices = ranges.iter().map(|(start, end)| Slice { start: start.clone(), end: end.clone() }).collect();
    (ClusteringFilter::Slices(slices), ranges)
}

fn check_scan(written: &Written, table: &Arc<SsTable>, dice: &mut Dice) {
    let mut cx = render::cx();
    let schema = &*written.schema;
    let keys: Vec<&Vec<u8>> = written.partitions.keys().collect();
    let mut range = KeyRange::all();
    if dice.one_in(2) {
        range.start = keys[dice.below(keys.len() as u64) as usize].clone();
        *range.start.last_mut().unwrap() = if dice.one_in(2) { 0x20 } else { 0x60 };
    }
    if dice.one_in(2) {
        range.end = keys[dice.below(keys.len() as u64) as usize].clone();
        *range.end.last_mut().unwrap() = if dice.one_in(2) { 0x20 } else { 0x60 };
    }
    let mut scan = table.scan(&range, &mut cx).unwrap();
    let filtered = dice.one_in(2);
    let bound = position(schema, &clustering(dice, 1), Some(true));
    let reversed = dice.one_in(2);
    if filtered {
        let slice = Slice { start: bound.clone(), end: AFTER_ALL.to_vec() };
        scan.select(Arc::new(ClusteringFilter::Slices(vec![slice])), reversed);
    }
    let inside = written.partitions.iter().filter(|(key, _)| **key >= range.start && **key < range.end);
    for (decorated, (key, deletion, static_row, partition)) in inside {
        assert!(scan.next_partition(&mut cx).unwrap());
        assert_eq!((scan.decorated(), scan.key()), (decorated.as_slice(), key.as_slice()));
        assert_eq!(scan.deletion(), *deletion);
        assert_eq!(scan.static_row().is_some(), !static_row.view().is_empty());
        let start = if filtered { bound.as_slice() } else { BEFORE_ALL };
        let mut wanted = expected(schema, partition, start, AFTER_ALL);
        if filtered && reversed {
            wanted.reverse();
        }
        // Some partitions are left in the middle.
        let most =
            if dice.one_in(3) { dice.below(1 + wanted.len() as u64) as usize } else { wanted.len() + 1 };
        let mut found = Vec::new();
        while found.len() < most && scan.advance(&mut cx).unwrap() {
            found.push(line(schema, scan.current()));
        }
        assert_eq!(found, wanted[..most.min(wanted.len())]);
    }
    assert!(!scan.next_partition(&mut cx).unwrap());
    assert!(!scan.next_partition(&mut cx).unwrap());
}

fn shapes() -> impl Strategy<Value = Shape> {
    let chunks = prop::sample::select(vec![1024_u32, 4096, 16384]);
    let blocks = prop::sample::select(vec![1_u64, 40, 300, 2000, 16384]);
    let regulars = prop::sample::select(vec![0_usize, 2, 70]);
    let versions = prop::sample::select(vec![Version::Da, Version::Oa, Version::Nb, Version::Me]);
    (any::<u64>(), 0..200_u64, blocks, chunks, any::<bool>(), regulars, versions).prop_map(
        |(seed, rows, block_bytes, chunk_bytes, compressed, regulars, version)| Shape {
            seed,
            rows,
            block_bytes,
            chunk_bytes,
            compressed,
            regulars,
            version,
        },
    )
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shape { seed, rows, block_bytes, chunk_bytes, compressed, regulars, version } = self;
        write!(
            f,
            "seed {seed} rows {rows} block {block_bytes} chunk {chunk_bytes} {compressed} {regulars} {version}"
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(60), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_by_slices_and_names_in_both_directions(shape in shapes()) {
        let written = write(&shape);
        let table = written.open();
        let mut dice = Dice(shape.seed ^ 0x5555, shape.version);
        table.verify(&*written.host.disk, Path::new(FOLDER)).unwrap();
        check_selection(&written, &table, &mut dice);
        // With a cache, blocks that were decompressed in part are found again by reads that need more of them.
        let cached = written.open_with(BufferPool::offline());
        check_selection(&written, &cached, &mut dice);
        for _ in 0..4 {
            check_scan(&written, &table, &mut dice);
        }
    }

    #[test]
    fn damaged_data_is_an_error_or_another_row_but_never_a_panic(shape in shapes(), at in any::<u64>(), byte in any::<u8>()) {
        let written = write(&Shape { compressed: false, ..shape });
        let folder = Path::new(FOLDER);
        let descriptor = written.descriptor;
        // Without CRC.db the decoder sees the damage.
        written.host.disk.remove(&descriptor.path(folder, Component::Crc)).unwrap();
        let data = written.host.disk.open_write(&descriptor.path(folder, Component::Data)).unwrap();
        let at = at % data.size().unwrap();
        data.write_all_at(&[byte], at).unwrap();
        let table = written.open();
        let mut cx = render::cx();
        let all = Arc::new(ClusteringFilter::Slices(vec![Slice::all()]));
        for (decorated, (key, ..)) in &written.partitions {
            let Ok(Some(position)) = table.find(key, &KeyHash::of(key), decorated, &mut cx) else { continue };
            for reversed in [false, true] {
                let Ok(mut reader) = PartitionReader::open(table.clone(), &position, true, &mut cx) else { continue };
                reader.select(all.clone(), reversed);
                while let Ok(true) = reader.advance(&mut cx) {
                    line(&written.schema, reader.current());
                }
            }
        }
        let Ok(mut scan) = table.scan(&KeyRange::all(), &mut cx) else { return Ok(()) };
        while let Ok(true) = scan.next_partition(&mut cx) {
            while let Ok(true) = scan.advance(&mut cx) {}
        }
    }
}

#[test]
fn a_damaged_block_is_named_with_its_place() {
    let shape = Shape {
        seed: 5,
        rows: 100,
        block_bytes: 300,
        chunk_bytes: 4096,
        compressed: false,
        regulars: 0,
        version: Version::Da,
    };
    let written = write(&shape);
    let path = Descriptor::new(SsTableId::Sequence(1)).path(Path::new(FOLDER), Component::Data);
    written.host.disk.open_write(&path).unwrap().write_all_at(b"\xFF\xFF", 30).unwrap();
    let table = written.open();
    let mut cx = render::cx();
    let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
    let message = scan.next_partition(&mut cx).unwrap_err().to_string();
    assert!(message.contains("da-1-bti-Data.db at byte 0"), "{message}");
}

#[test]
fn an_aborted_writer_leaves_nothing() {
    let host = memory::host();
    host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    let options = WriterOptions::of_table(Arc::new(schema(0)), 1, EncodingStats::NONE);
    let descriptor = Descriptor::new(SsTableId::Sequence(1));
    let mut writer =
        SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options).unwrap();
    writer.begin_partition(b"k", &KeyHash::of(b"k"), DeletionTime::LIVE, None).unwrap();
    writer.abort().unwrap();
    assert!(host.disk.list(Path::new(FOLDER)).unwrap().is_empty());
}

/// Writes one row with a cell that expires after 2038, in version `nb`.
fn written_late(beyond_2038: Beyond2038) -> helenus_sstable::Result<(Written, u64)> {
    let host = memory::host();
    host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
    let schema = Arc::new(schema(0));
    let options = WriterOptions::of_table(schema.clone(), 1, EncodingStats::NONE).for_version(Version::Nb);
    let options = WriterOptions { beyond_2038, ..options };
    let descriptor = Descriptor { version: Version::Nb, id: SsTableId::Sequence(1) };
    let mut writer =
        SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options).unwrap();
    writer.begin_partition(b"k", &KeyHash::of(b"k"), DeletionTime::LIVE, None).unwrap();
    let mut row = RowBuf { key: position(&schema, &[None, None], None), ..RowBuf::default() };
    row.clustering = vec![Span::NULL, Span::NULL];
    row.liveness = Liveness { timestamp_us: 1, ttl_s: 600_000_000, expires_s: 2_200_000_000 };
    writer.add(Unfiltered::Row(row.view()))?;
    writer.end_partition().unwrap();
    let times_capped = writer.finish()?.times_capped;
    Ok((Written { host, descriptor, schema, partitions: BTreeMap::new() }, times_capped))
}

#[test]
fn a_time_after_2038_is_refused_or_capped_where_the_version_has_none() {
    let message = written_late(Beyond2038::Refuse).err().unwrap().to_string();
    assert!(message.contains("version nb has no times after 2038-01-19T03:14:06Z"), "{message}");
    let (written, capped) = written_late(Beyond2038::Cap).unwrap();
    assert_eq!(capped, 1);
    assert!(render::dump(&written.open()).contains("L1/600000000/2147483646"));
}

#[test]
fn a_version_that_is_only_read_is_not_written() {
    let host = memory::host();
    let options = WriterOptions::of_table(Arc::new(schema(0)), 1, EncodingStats::NONE);
    let descriptor = Descriptor { version: Version::Mc, id: SsTableId::Sequence(1) };
    let refused = SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options);
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("version mc is read but not written; me, nb, oa, da are"), "{message}");
}

#[test]
fn a_name_in_a_wide_partition_is_found_by_its_index_in_every_format_and_direction() {
    const ROWS: u32 = 5000;
    for version in Version::all().filter(|version| version.is_written()) {
        let host = memory::host();
        host.disk.create_dir_all(Path::new(FOLDER)).unwrap();
        let schema = Arc::new(schema(0));
        let options = WriterOptions::of_table(schema.clone(), 1, EncodingStats::NONE).for_version(version);
        let options = WriterOptions { row_index_block_bytes: 1024, ..options };
        let descriptor = Descriptor { version, id: SsTableId::Sequence(1) };
        let mut writer =
            SsTableWriter::create(host.disk.clone(), Path::new(FOLDER), descriptor, options).unwrap();
        let values = |number: u32| [Some(vec![0; 4]), Some(number.to_be_bytes().to_vec())];
        let blob = schema.regulars.iter().find(|column| &*column.name == "b").unwrap().id;
        writer.begin_partition(b"k", &KeyHash::of(b"k"), DeletionTime::LIVE, None).unwrap();
        for number in 0..ROWS {
            let mut row = RowBuf { key: position(&schema, &values(number), None), ..RowBuf::default() };
            for value in values(number).iter().flatten() {
                let span = row.push_bytes(value);
                row.clustering.push(span);
            }
            row.liveness = Liveness::at(i64::from(number));
            let value = row.push_bytes(&[7; 100]);
            let (timestamp_us, local_deletion_s, path) = (5, NO_EXPIRY, Span::NULL);
            row.cells.push(Cell { column: blob, ttl_s: 0, timestamp_us, local_deletion_s, path, value });
            writer.add(Unfiltered::Row(row.view())).unwrap();
        }
        writer.end_partition().unwrap();
        writer.finish().unwrap();
        let written = Written { host, descriptor, schema, partitions: BTreeMap::new() };
        let table = written.open();
        for number in (0..ROWS).step_by(613) {
            for reversed in [false, true] {
                let mut cx = render::cx();
                let key = PartitionKey::new(b"k".to_vec());
                let mut reader = PartitionReader::find(&table, &key, false, &mut cx).unwrap().unwrap();
                let name = position(&written.schema, &values(number), None);
                reader.select(Arc::new(ClusteringFilter::Names(vec![name.clone()])), reversed);
                assert!(reader.advance(&mut cx).unwrap());
                assert_eq!(reader.current().key(), name);
                assert!(!reader.advance(&mut cx).unwrap());
                // An index block may lie in two chunks. A binary search in about six hundred blocks takes ten steps.
                let touched = cx.touched;
                assert!(touched.blocks_read <= 3, "{version} {number} {reversed}: {touched:?}");
                assert!(touched.index_nodes <= 40, "{version} {number} {reversed}: {touched:?}");
            }
        }
    }
}
