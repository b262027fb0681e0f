//! A reference database for comparison, simple enough to be right: it keeps cells in maps, and compares values by type.
//!
//! It shares no code with the engine except the token of a key. A write meets every deletion that came before it and
//! covers it, and every version of its cell (`slot`; Cassandra's `Cells.reconcile` and `LivenessInfo.supersedes`,
//! implemented independently here). Where tombstones are purged, a read may show one of several versions, and `adopt`
//! takes over which one it was.

use super::random::Random;
use super::slot::{Arrival, Dated, Deletion, Scope, Slot};
use helenus_model::token::Token;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Type of a clustering column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Int,
    Blob,
}

/// The definition of a table. Every table has `k text`, `v text`, `w int`; the fields define the rest.
#[derive(Clone, Debug)]
pub struct Shape {
    pub name: &'static str,
    pub id: u128,
    /// Types of `c0` and `c1`, and whether each is descending.
    pub clustering: Vec<(Kind, bool)>,
    /// Whether there is `s text static`.
    pub has_static: bool,
    /// Whether there is `m map<text, text>`.
    pub has_map: bool,
    pub compressed: bool,
    /// Greatest length of values of `v`, large if partitions shall have a row index.
    pub value_bytes: usize,
    /// Number of different values of the first clustering column, if it is an int.
    pub width: usize,
    /// Its compaction strategy, one of `STRATEGIES`.
    pub strategy: usize,
    /// Most elements of the map, and most range deletions, in one write; 0 for a few, as usual.
    pub many: usize,
}

/// Compaction strategies with an option that makes them compact early: class, option, value.
pub const STRATEGIES: &[(&str, &str, &str)] = &[
    ("UnifiedCompactionStrategy", "scaling_parameters", "N"),
    ("SizeTieredCompactionStrategy", "min_threshold", "2"),
    ("LeveledCompactionStrategy", "sstable_size_in_mb", "1"),
    ("TimeWindowCompactionStrategy", "min_threshold", "2"),
];

/// Serialised clustering values; in a bound, a prefix of them.
pub type Values = Vec<Vec<u8>>;

/// One end of a range of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub prefix: Values,
    /// Whether the bound is before the rows with the prefix, or after them.
    pub before: bool,
}

/// A cell as written.
#[derive(Clone, Debug)]
pub struct CellWrite {
    pub column: &'static str,
    pub path: Option<Vec<u8>>,
    /// `None` for a tombstone.
    pub value: Option<Vec<u8>>,
}

/// A change of one partition.
#[derive(Clone, Debug)]
pub enum Change {
    DeletePartition,
    DeleteRow(Values),
    DeleteRange(Bound, Bound),
    Static(Vec<CellWrite>),
    Row {
        clustering: Values,
        /// Whether the row gets a row marker (INSERT).
        marker: bool,
        cells: Vec<CellWrite>,
        /// Whether the map is deleted one microsecond before (`m = {...}`).
        clear_map: bool,
    },
}

/// A change with its timestamp and TTL.
#[derive(Clone, Debug)]
pub struct Timed {
    pub change: Change,
    pub timestamp_us: i64,
    /// 0 for none.
    pub ttl_s: i32,
}

/// A stored version of a cell or a row marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub timestamp_us: i64,
    pub ttl_s: i32,
    /// Time of expiry or deletion; `i64::MAX` for never.
    pub ends_s: i64,
    pub value: Vec<u8>,
}

pub use super::slot::NEVER;

impl Dated for Version {
    fn timestamp_us(&self) -> i64 {
        self.timestamp_us
    }

    fn ends_s(&self) -> i64 {
        self.ends_s
    }

    fn is_tombstone(&self) -> bool {
        self.ends_s != NEVER && self.ttl_s == 0
    }
}

/// Name and path of a cell.
pub type CellName = (&'static str, Option<Vec<u8>>);

#[derive(Clone, Debug, Default)]
struct Row {
    /// Deletions of the row and of its map.
    deletions: Vec<Deletion>,
    marker: Slot<Version>,
    cells: BTreeMap<CellName, Slot<Version>>,
    /// The greatest timestamp of a deletion since the last write: another of it, or below, changes nothing.
    deleted_us: Option<i64>,
}

#[derive(Clone, Debug, Default)]
struct Partition {
    deletions: Vec<Deletion>,
    ranges: Vec<(Bound, Bound, Deletion)>,
    statics: BTreeMap<CellName, Slot<Version>>,
    /// In clustering order.
    rows: Vec<(Values, Row)>,
}

/// One table.
#[derive(Clone, Debug)]
pub struct Judge {
    pub shape: Shape,
    /// The least time that tombstones are kept, seconds; `None` if they are kept for good.
    grace_s: Option<i64>,
    partitions: BTreeMap<(i64, Vec<u8>), Partition>,
}

/// The result of a read for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPartition {
    pub key: Vec<u8>,
    pub statics: Vec<(CellName, Version)>,
    pub rows: Vec<FoundRow>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRow {
    pub clustering: Values,
    pub marker: Option<Version>,
    pub cells: Vec<(CellName, Version)>,
}

impl FoundPartition {
    /// Removes what no statement sees: the row markers of rows with live cells, and columns other than `only`, if it is
    /// given, except that they keep their row alive.
    pub fn forget_unseen(&mut self, only: Option<&str>) {
        for row in &mut self.rows {
            if !row.cells.is_empty() || only.is_some() {
                row.marker = None;
            }
            row.cells.retain(|((column, _), _)| only.is_none_or(|only| only == *column));
        }
    }
}

/// A position on the ring: of a partition or a token, and the side of it.
#[derive(Clone, Debug)]
pub enum RingBound {
    Key(Vec<u8>, bool),
    Token(i64, bool),
}

#[derive(Clone, Debug)]
pub enum Select {
    All,
    Names(Vec<Values>),
    /// Ascending, not overlapping.
    Slices(Vec<(Bound, Bound)>),
}

/// A read.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Partitions by key, or `None` for the partitions of `range`.
    pub keys: Option<Vec<Vec<u8>>>,
    pub range: (Option<RingBound>, Option<RingBound>),
    pub select: Select,
    pub reversed: bool,
    pub statics: bool,
    /// The only regular or static column that is read; `None` for all.
    pub only: Option<&'static str>,
    pub rows_max: u64,
    pub per_partition_max: u64,
    /// Whether a filter skips rows whose `hash` is odd.
    pub filtered: bool,
    pub page_rows: Option<u64>,
    /// Whether to flush between pages.
    pub flush_between: bool,
}

impl Ask {
    /// A read of everything.
    pub fn everything() -> Ask {
        Ask {
            keys: None,
            range: (None, None),
            select: Select::All,
            reversed: false,
            statics: true,
            only: None,
            rows_max: u64::MAX,
            per_partition_max: u64::MAX,
            filtered: false,
            page_rows: None,
            flush_between: false,
        }
    }

    /// Whether the read may be of a single row. Such a read may skip sources that cannot change what a statement sees.
    pub fn may_end_early(&self, shape: &Shape) -> bool {
        self.only.is_some()
            || self.keys.is_some() && (shape.clustering.is_empty() || matches!(self.select, Select::Names(_)))
    }

    /// Whether a filtering sink refuses a row.
    pub fn refuses(&self, clustering: &Values) -> bool {
        self.filtered
            && clustering.iter().flatten().fold(1u32, |h, b| h.wrapping_mul(31) + u32::from(*b)) % 2 == 1
    }
}

/// The order of two values of a type.
fn compare_values((kind, desc): (Kind, bool), a: &[u8], b: &[u8]) -> Ordering {
    let order = match kind {
        Kind::Text | Kind::Blob => a.cmp(b),
        Kind::Int => {
            let int = |bytes: &[u8]| bytes.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes));
            int(a).cmp(&int(b))
        }
    };
    if desc { order.reverse() } else { order }
}

impl Shape {
    fn compare(&self, a: &[Vec<u8>], b: &[Vec<u8>]) -> Ordering {
        let mut orders = a.iter().zip(b).zip(&self.clustering).map(|((a, b), ty)| compare_values(*ty, a, b));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Whether a row is after a bound.
    pub fn is_behind(&self, row: &[Vec<u8>], bound: &Bound) -> bool {
        match self.compare(&row[..bound.prefix.len()], &bound.prefix) {
            Ordering::Equal => bound.before,
            order => order.is_gt(),
        }
    }

    /// The order of two bounds.
    pub fn compare_bounds(&self, a: &Bound, b: &Bound) -> Ordering {
        let shared = a.prefix.len().min(b.prefix.len());
        self.compare(&a.prefix[..shared], &b.prefix[..shared]).then_with(|| {
            let side = |bound: &Bound| if bound.before { -1 } else { 1 };
            match a.prefix.len().cmp(&b.prefix.len()) {
                Ordering::Equal => side(a).cmp(&side(b)),
                // The shorter bound is before, or after, everything that begins with its prefix.
                Ordering::Less => side(a).cmp(&0),
                Ordering::Greater => 0.cmp(&side(b)),
            }
        })
    }

    pub fn sort_names(&self, names: &mut Vec<Values>) {
        names.sort_by(|a, b| self.compare(a, b));
        names.dedup();
    }
}

/// Whether version `a` of a cell wins over version `b`.
fn remains(a: &Version, b: &Version) -> bool {
    let (a_ends, b_ends) = (a.ends_s != NEVER, b.ends_s != NEVER);
    a.timestamp_us
        .cmp(&b.timestamp_us)
        .then(a_ends.cmp(&b_ends))
        // A tombstone wins over an expiring cell.
        .then(if a_ends { (a.ttl_s == 0).cmp(&(b.ttl_s == 0)) } else { Ordering::Equal })
        .then(if a_ends { a.ends_s.cmp(&b.ends_s) } else { Ordering::Equal })
        .then(if a_ends { b.ttl_s.cmp(&a.ttl_s) } else { Ordering::Equal })
        .then(a.value.cmp(&b.value))
        .is_ge()
}

fn marker_remains(a: &Version, b: &Version) -> bool {
    a.timestamp_us
        .cmp(&b.timestamp_us)
        .then((a.ttl_s != 0).cmp(&(b.ttl_s != 0)))
        .then(a.ends_s.cmp(&b.ends_s))
        .then(b.ttl_s.cmp(&a.ttl_s))
        .is_ge()
}

impl Judge {
    /// A table whose tombstones are kept for good, or in which every write has a greater timestamp than those before.
    pub fn new(shape: Shape) -> Judge {
        Judge { shape, grace_s: None, partitions: BTreeMap::new() }
    }

    /// A table whose tombstones may be purged once they are older than `grace_s`.
    pub fn purging(shape: Shape, grace_s: i64) -> Judge {
        Judge { grace_s: Some(grace_s), ..Judge::new(shape) }
    }

    pub fn truncate(&mut self) {
        self.partitions.clear();
    }

    /// Stores the changes of one write at `now_s`.
    pub fn apply(&mut self, key: &[u8], changes: &[Timed], now_s: i64) {
        let purged_before_s = self.grace_s.map_or(i64::MIN, |grace_s| now_s - grace_s);
        let partition = self.partitions.entry((Token::of_key(key).0, key.to_vec())).or_default();
        for timed in changes {
            partition.apply(&self.shape, timed, Arrival { now_s, purged_before_s });
        }
    }

    /// Whether a read may show one of several versions of something.
    pub fn is_open(&self) -> bool {
        self.partitions.values().any(|partition| {
            let of_row = |row: &Row| row.marker.is_open() || row.cells.values().any(Slot::is_open);
            partition.statics.values().any(Slot::is_open) || partition.rows.iter().any(|(_, row)| of_row(row))
        })
    }

    /// Takes over which of several versions a read of everything has shown.
    pub fn adopt(&mut self, found: &[FoundPartition], now_s: i64) {
        for ((_, key), partition) in &mut self.partitions {
            let found = found.iter().find(|found| found.key == *key);
            adopt_cells(&mut partition.statics, found.map_or(&[], |found| &found.statics), now_s);
            for (clustering, row) in &mut partition.rows {
                let found = found.and_then(|found| found.rows.iter().find(|of| of.clustering == *clustering));
                row.marker.adopt(found.and_then(|found| found.marker.as_ref()), marker_remains, now_s);
                adopt_cells(&mut row.cells, found.map_or(&[], |found| &found.cells), now_s);
            }
        }
    }

    /// The result that a read at `now_s` must have: partitions with a live row or a live static cell.
    pub fn read(&self, ask: &Ask, now_s: i64) -> Vec<FoundPartition> {
        let mut found = Vec::new();
        let mut left = ask.rows_max;
        let places: Vec<(i64, Vec<u8>)> = match &ask.keys {
            Some(keys) => keys.iter().map(|key| (Token::of_key(key).0, key.clone())).collect(),
            None => self.partitions.keys().filter(|place| in_range(place, &ask.range)).cloned().collect(),
        };
        for place in places {
            if left == 0 {
                break;
            }
            let Some(partition) = self.partitions.get(&place) else { continue };
            let statics = if ask.statics { live_cells(&partition.statics, now_s) } else { Vec::new() };
            let mut rows = self.live_rows(partition, &ask.select, now_s);
            if ask.reversed {
                rows.reverse();
            }
            rows.retain(|row| !ask.refuses(&row.clustering));
            rows.truncate(left.min(ask.per_partition_max) as usize);
            left -= rows.len() as u64;
            if rows.is_empty() && !statics.is_empty() && !ask.filtered {
                left -= 1;
            }
            if !rows.is_empty() || !statics.is_empty() {
                found.push(FoundPartition { key: place.1, statics, rows });
            }
        }
        found
    }

    fn live_rows(&self, partition: &Partition, select: &Select, now_s: i64) -> Vec<FoundRow> {
        let shape = &self.shape;
        let selected = |clustering: &Values| match select {
            Select::All => true,
            Select::Names(names) => names.contains(clustering),
            Select::Slices(slices) => slices
                .iter()
                .any(|(start, end)| shape.is_behind(clustering, start) && !shape.is_behind(clustering, end)),
        };
        let rows = partition.rows.iter().filter(|(clustering, _)| selected(clustering));
        rows.filter_map(|(clustering, row)| row.live(clustering, now_s)).collect()
    }

    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.partitions.keys().map(|(_, key)| key.clone()).collect()
    }
}

fn in_range(place: &(i64, Vec<u8>), range: &(Option<RingBound>, Option<RingBound>)) -> bool {
    let behind = |bound: &RingBound| match bound {
        RingBound::Token(token, before) => {
            place.0.cmp(token).then(if *before { Ordering::Greater } else { Ordering::Less }).is_gt()
        }
        RingBound::Key(key, before) => {
            let order = place.0.cmp(&Token::of_key(key).0).then_with(|| place.1.cmp(key));
            order.then(if *before { Ordering::Greater } else { Ordering::Less }).is_gt()
        }
    };
    range.0.as_ref().is_none_or(behind) && !range.1.as_ref().is_some_and(behind)
}

fn adopt_cells(cells: &mut BTreeMap<CellName, Slot<Version>>, shown: &[(CellName, Version)], now_s: i64) {
    for (name, cell) in cells {
        let shown = shown.iter().find(|(shown, _)| shown == name);
        cell.adopt(shown.map(|(_, version)| version), remains, now_s);
    }
}

fn live_cells(cells: &BTreeMap<CellName, Slot<Version>>, now_s: i64) -> Vec<(CellName, Version)> {
    let live = cells.iter().filter_map(|(name, cell)| Some((name.clone(), cell.visible(now_s)?.clone())));
    live.collect()
}

impl Partition {
    fn apply(&mut self, shape: &Shape, timed: &Timed, at: Arrival) {
        let timestamp_us = timed.timestamp_us;
        let deletion = |scope| Deletion { scope, timestamp_us, local_s: at.now_s };
        let version = |value: &Option<Vec<u8>>| Version {
            timestamp_us,
            ttl_s: if value.is_some() { timed.ttl_s } else { 0 },
            ends_s: match (value, timed.ttl_s) {
                (None, _) => at.now_s,
                (Some(_), 0) => NEVER,
                (Some(_), ttl) => at.now_s + i64::from(ttl),
            },
            value: value.clone().unwrap_or_default(),
        };
        match &timed.change {
            Change::DeletePartition => {
                self.deletions.push(deletion(Scope::Partition));
                self.statics.values_mut().for_each(|cell| cell.delete(timestamp_us));
                self.rows.iter_mut().for_each(|(_, row)| row.delete(timestamp_us));
            }
            Change::DeleteRow(clustering) => {
                let row = self.row(shape, clustering);
                row.deletions.push(deletion(Scope::Row));
                row.delete(timestamp_us);
            }
            Change::DeleteRange(start, end) => {
                self.ranges.push((start.clone(), end.clone(), deletion(Scope::Range)));
                let is_in = |at: &Values| shape.is_behind(at, start) && !shape.is_behind(at, end);
                let rows = self.rows.iter_mut().filter(|(clustering, _)| is_in(clustering));
                rows.for_each(|(_, row)| row.delete(timestamp_us));
            }
            Change::Static(cells) => {
                for cell in cells {
                    let slot = self.statics.entry((cell.column, cell.path.clone())).or_default();
                    slot.put(version(&cell.value), remains, self.deletions.iter().copied(), at);
                }
            }
            Change::Row { clustering, marker, cells, clear_map } => {
                let is_in = |(start, end, _): &&(Bound, Bound, Deletion)| {
                    shape.is_behind(clustering, start) && !shape.is_behind(clustering, end)
                };
                let ranges = self.ranges.iter().filter(is_in).map(|(_, _, deletion)| *deletion);
                let mut outer: Vec<Deletion> = self.deletions.iter().copied().chain(ranges).collect();
                if at.purged_before_s == i64::MIN {
                    outer =
                        outer.into_iter().max_by_key(|deletion| deletion.timestamp_us).into_iter().collect();
                }
                let row = self.row(shape, clustering);
                row.deleted_us = None;
                if *clear_map {
                    let deletion = Deletion { timestamp_us: timestamp_us - 1, ..deletion(Scope::Column) };
                    row.deletions.push(deletion);
                    let of_map = row.cells.iter_mut().filter(|((column, _), _)| *column == "m");
                    of_map.for_each(|(_, cell)| cell.delete(deletion.timestamp_us));
                }
                let Row { deletions, marker: of_row, cells: present, .. } = row;
                let covering = |is_map: bool| {
                    let is_of = move |of: &&Deletion| of.scope != Scope::Column || is_map;
                    outer.iter().chain(deletions.iter().filter(is_of)).copied()
                };
                if *marker {
                    of_row.put(version(&Some(Vec::new())), marker_remains, covering(false), at);
                }
                for cell in cells {
                    let slot = present.entry((cell.column, cell.path.clone())).or_default();
                    slot.put(version(&cell.value), remains, covering(cell.column == "m"), at);
                }
            }
        }
    }

    fn row(&mut self, shape: &Shape, clustering: &Values) -> &mut Row {
        let at = match self.rows.binary_search_by(|(present, _)| shape.compare(present, clustering)) {
            Ok(at) => at,
            Err(at) => {
                self.rows.insert(at, (clustering.clone(), Row::default()));
                at
            }
        };
        &mut self.rows[at].1
    }
}

impl Row {
    fn delete(&mut self, timestamp_us: i64) {
        if self.deleted_us.is_some_and(|deleted_us| timestamp_us <= deleted_us) {
            return;
        }
        self.deleted_us = Some(timestamp_us);
        self.marker.delete(timestamp_us);
        self.cells.values_mut().for_each(|cell| cell.delete(timestamp_us));
    }

    fn live(&self, clustering: &Values, now_s: i64) -> Option<FoundRow> {
        let marker = self.marker.visible(now_s).cloned();
        let cells = live_cells(&self.cells, now_s);
        let alive = marker.is_some() || !cells.is_empty();
        alive.then(|| FoundRow { clustering: clustering.clone(), marker, cells })
    }
}

/// Generates random content for a table.
pub struct Maker<'a> {
    pub random: &'a mut Random,
    pub shape: &'a Shape,
    pub keys: &'a [&'static str],
}

impl Maker<'_> {
    pub fn key(&mut self) -> Vec<u8> {
        self.random.pick(self.keys).as_bytes().to_vec()
    }

    pub fn timestamp(&mut self) -> i64 {
        const ODD: &[i64] = &[i64::MIN + 2, -5, 0, i64::MAX - 1, 1 << 40, 1_700_000_000_000_000];
        if self.random.chance(3) { *self.random.pick(ODD) } else { 1000 + self.random.below(12) as i64 }
    }

    fn value(&mut self, index: usize) -> Vec<u8> {
        const TEXTS: &[&str] = &["", "a", "b", "ab", "a\0", "a\0b", "\u{ffff}", "aa", "c"];
        const BLOBS: &[&[u8]] =
            &[b"", b"\0", b"\0\0", b"\0\x01", b"\0\xff", b"\xff", b"\xff\xff", b"a", b"\xfe", b"\x01"];
        const INTS: &[i32] = &[i32::MIN, -256, -1, 0, 1, 127, 128, 256, i32::MAX];
        match self.shape.clustering[index].0 {
            Kind::Text => self.random.pick(TEXTS).as_bytes().to_vec(),
            Kind::Blob => self.random.pick(BLOBS).to_vec(),
            Kind::Int if index == 0 && self.shape.width > 0 => {
                (self.random.below(self.shape.width) as i32).to_be_bytes().to_vec()
            }
            Kind::Int if self.random.chance(10) => Vec::new(),
            Kind::Int => self.random.pick(INTS).to_be_bytes().to_vec(),
        }
    }

    pub fn clustering(&mut self) -> Values {
        (0..self.shape.clustering.len()).map(|index| self.value(index)).collect()
    }

    pub fn bound(&mut self) -> Bound {
        let count = self.random.below(self.shape.clustering.len() + 1);
        Bound { prefix: (0..count).map(|index| self.value(index)).collect(), before: self.random.chance(50) }
    }

    /// Two bounds, the first before the second.
    pub fn range(&mut self) -> (Bound, Bound) {
        let (a, b) = (self.bound(), self.bound());
        if self.shape.compare_bounds(&a, &b).is_lt() { (a, b) } else { (b, a) }
    }

    fn text(&mut self) -> Vec<u8> {
        const TEXTS: &[&str] = &["", "x", "y", "xyz"];
        let mut text = self.random.pick(TEXTS).as_bytes().to_vec();
        if self.shape.value_bytes > 0 {
            // Random letters, which do not compress to almost nothing, so that the data has several blocks.
            let len = self.random.below(self.shape.value_bytes);
            text.extend((0..len).map(|_| b'a' + (self.random.next() % 26) as u8));
        }
        text
    }

    fn cells(&mut self) -> Vec<CellWrite> {
        let mut cells = Vec::new();
        if self.random.chance(60) {
            let value = self.random.chance(80).then(|| self.text());
            cells.push(CellWrite { column: "v", path: None, value });
        }
        if self.random.chance(40) {
            let number = self.random.below(3) as i32;
            let value = self
                .random
                .chance(80)
                .then(|| if self.random.chance(10) { Vec::new() } else { number.to_be_bytes().to_vec() });
            cells.push(CellWrite { column: "w", path: None, value });
        }
        if self.shape.has_map && self.shape.many > 0 && self.random.chance(70) {
            let first = self.random.below(3) * self.shape.many / 2;
            let step = 1 + self.random.below(2);
            let paths = (first..first + 1 + self.random.below(self.shape.many)).step_by(step);
            let is_set = self.random.chance(80);
            cells.extend(paths.map(|path| CellWrite {
                column: "m",
                path: Some(format!("{path:07}").into_bytes()),
                value: is_set.then(|| b"1".to_vec()),
            }));
        } else if self.shape.has_map && self.random.chance(40) {
            for path in ["", "p", "q", "r\0"] {
                if self.random.chance(35) {
                    let value =
                        self.random.chance(75).then(|| self.random.pick(&["", "1", "2"]).as_bytes().to_vec());
                    cells.push(CellWrite { column: "m", path: Some(path.as_bytes().to_vec()), value });
                }
            }
        }
        cells
    }

    pub fn change(&mut self) -> Timed {
        let timestamp_us = self.timestamp();
        let ttl_s = if self.random.chance(15) { *self.random.pick(&[3, 20, 100]) } else { 0 };
        let plain = self.shape.clustering.is_empty();
        let change = match self.random.below(100) {
            0..3 => Change::DeletePartition,
            3..15 => Change::DeleteRow(self.clustering()),
            15..30 if !plain => {
                let (start, end) = self.range();
                Change::DeleteRange(start, end)
            }
            30..40 if self.shape.has_static => {
                let value = self.random.chance(75).then(|| self.text());
                Change::Static(vec![CellWrite { column: "s", path: None, value }])
            }
            _ => {
                let clustering = self.clustering();
                let (marker, cells) = (self.random.chance(50), self.cells());
                let clear_map = self.shape.has_map && self.random.chance(15);
                Change::Row { clustering, marker, cells, clear_map }
            }
        };
        // The SSTable format cannot represent a partition deletion before 1970, and the engine refuses it.
        let least = if matches!(change, Change::DeletePartition) { 0 } else { i64::MIN };
        Timed { change, timestamp_us: timestamp_us.max(least), ttl_s }
    }

    /// A random read.
    pub fn ask(&mut self) -> Ask {
        let mut ask = Ask::everything();
        if self.random.chance(50) {
            let count = 1 + self.random.below(4);
            let mut keys: Vec<Vec<u8>> = (0..count).map(|_| self.key()).collect();
            keys.sort();
            keys.dedup();
            ask.keys = Some(keys);
        } else if self.random.chance(40) {
            ask.range = (self.ring_bound(), self.ring_bound());
        }
        ask.select = match self.random.below(3) {
            0 => Select::All,
            1 => {
                let count = 1 + self.random.below(5);
                let mut names: Vec<Values> = (0..count).map(|_| self.clustering()).collect();
                self.shape.sort_names(&mut names);
                Select::Names(names)
            }
            _ => self.slices(),
        };
        ask.reversed = self.random.chance(45);
        ask.statics = self.random.chance(80);
        if ask.keys.is_some() && self.random.chance(30) {
            let only =
                *self.random.pick(if self.shape.has_static { &["v", "w", "s"] } else { &["v", "w"][..] });
            (ask.only, ask.statics) = (Some(only), only == "s");
        }
        if self.random.chance(30) {
            ask.rows_max = 1 + self.random.below(6) as u64;
        }
        if self.random.chance(20) {
            ask.per_partition_max = 1 + self.random.below(3) as u64;
        }
        ask.filtered = self.random.chance(20);
        if self.random.chance(50) {
            ask.page_rows = Some(1 + self.random.below(5) as u64);
            ask.flush_between = self.random.chance(20);
        }
        ask
    }

    fn slices(&mut self) -> Select {
        let count = 2 * (1 + self.random.below(3));
        let mut bounds: Vec<Bound> = (0..count).map(|_| self.bound()).collect();
        bounds.sort_by(|a, b| self.shape.compare_bounds(a, b));
        bounds.dedup();
        let pairs = bounds.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        Select::Slices(pairs)
    }

    fn ring_bound(&mut self) -> Option<RingBound> {
        let key = self.key();
        let before = self.random.chance(50);
        match self.random.below(5) {
            0 => None,
            1 => Some(RingBound::Token(Token::of_key(&key).0, before)),
            2 => Some(RingBound::Token(Token::of_key(&key).0.wrapping_add(1).max(i64::MIN + 1), before)),
            _ => Some(RingBound::Key(key, before)),
        }
    }
}
