//! A database that cannot be wrong: the versions of everything in maps.
//!
//! It shares nothing with the engine but the token of a key. A write meets every deletion that came before it and covers
//! it, and the versions of its cell (`slot`). Which of two versions of a cell remains is Cassandra's `Cells.reconcile`, of
//! two markers `LivenessInfo.supersedes`. Where tombstones are purged while timestamps come in any order, a read may show
//! one of several versions; `shown` takes over which one it was.

use crate::slot::{Arrival, Dated, Deletion, NEVER, Scope, Slot};
use crate::statement::{Action, Assign, Compare, Condition, Pred, Term, Write};
use crate::table::{Place, Table, Type};
use helenus_model::token::Token;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where in a column a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Path {
    Whole,
    /// Of a set or map: a value of the keys' pool.
    Key(u8),
    /// Of a list: places are given out in both directions.
    At(i64),
    Field(usize),
}

/// A cell, or the marker of a row.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) timestamp_us: i64,
    pub(crate) ttl_s: u32,
    /// `NEVER`, or when it expires, or when it was deleted.
    pub(crate) ends_s: i64,
    /// `None`: a tombstone.
    pub(crate) value: Option<u8>,
    pub(crate) bytes: Arc<[u8]>,
}

impl PartialEq for Version {
    fn eq(&self, other: &Version) -> bool {
        let is = |of: &Version| (of.timestamp_us, of.ttl_s, of.ends_s, of.value.is_none(), of.bytes.clone());
        is(self) == is(other)
    }
}

impl Dated for Version {
    fn timestamp_us(&self) -> i64 {
        self.timestamp_us
    }

    fn ends_s(&self) -> i64 {
        self.ends_s
    }

    fn is_tombstone(&self) -> bool {
        self.value.is_none()
    }
}

impl Version {
    /// Seconds left at a moment; `None` without a TTL.
    pub(crate) fn ttl_left(&self, now_s: i64) -> Option<i32> {
        (self.ends_s != NEVER).then(|| (self.ends_s - now_s) as i32)
    }

    /// Whether it remains against another version of its cell.
    pub(crate) fn remains(&self, other: &Version) -> bool {
        let (ends, other_ends) = (self.ends_s != NEVER, other.ends_s != NEVER);
        let both = |order: Ordering| if ends { order } else { Ordering::Equal };
        let order = self.timestamp_us.cmp(&other.timestamp_us);
        let order = order.then(ends.cmp(&other_ends));
        let order = order.then(both(self.value.is_none().cmp(&other.value.is_none())));
        let order = order.then(both(self.ends_s.cmp(&other.ends_s))).then(both(other.ttl_s.cmp(&self.ttl_s)));
        order.then(self.bytes.cmp(&other.bytes)).is_ge()
    }

    pub(crate) fn marker_remains(&self, other: &Version) -> bool {
        let order = self.timestamp_us.cmp(&other.timestamp_us);
        let order = order.then((self.ttl_s != 0).cmp(&(other.ttl_s != 0)));
        order.then(self.ends_s.cmp(&other.ends_s)).then(other.ttl_s.cmp(&self.ttl_s)).is_ge()
    }
}

/// The cells of a row, static or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells {
    pub(crate) cells: BTreeMap<(usize, Path), Slot<Version>>,
    /// Deletions of whole columns.
    columns: Vec<(usize, Deletion)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) marker: Slot<Version>,
    deletions: Vec<Deletion>,
    pub(crate) cells: Cells,
}

/// Clustering values as they sort: turned round where the order is descending.
pub(crate) type Position = Vec<i16>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Partition {
    deletions: Vec<Deletion>,
    ranges: Vec<(Vec<Pred>, Deletion)>,
    pub(crate) statics: Cells,
    pub(crate) rows: BTreeMap<Position, (Vec<u8>, Row)>,
}

/// What a row shows: its live cells by column.
pub(crate) type Live = BTreeMap<usize, Vec<(Path, Version)>>;

/// One table and all that was ever written to it.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    pub(crate) table: Table,
    /// The least time that tombstones are kept, seconds; `None` if they are kept for good.
    grace_s: Option<i64>,
    pub(crate) partitions: BTreeMap<(i64, Vec<u8>), (Vec<u8>, Partition)>,
    /// The next places of lists, at their front and at their end.
    places: (i64, i64),
    /// A column that is dropped and not made again yet.
    pub(crate) missing: Option<usize>,
    /// The table is dropped and not made again yet.
    pub(crate) is_absent: bool,
}

/// When a write happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) timestamp_us: i64,
    pub(crate) now_s: i64,
}

impl Judge {
    pub(crate) fn new(table: Table, grace_s: Option<i64>) -> Judge {
        let (partitions, places) = (BTreeMap::new(), (-1, 0));
        Judge { table, grace_s, partitions, places, missing: None, is_absent: false }
    }

    /// From now on tombstones may be purged whatever their age, if they are purged at all: the clock was set.
    pub(crate) fn trust_no_clock(&mut self) {
        self.grace_s = self.grace_s.map(|_| -(1 << 40));
    }

    /// Whether a read may show one of several versions of something.
    pub(crate) fn is_open(&self) -> bool {
        let is_open = |cells: &Cells| cells.cells.values().any(Slot::is_open);
        self.partitions.values().any(|(_, partition)| {
            let mut rows = partition.rows.values();
            is_open(&partition.statics) || rows.any(|(_, row)| row.marker.is_open() || is_open(&row.cells))
        })
    }

    pub(crate) fn truncate(&mut self) {
        self.partitions.clear();
    }

    /// Where the next elements of lists go.
    pub(crate) fn places(&self) -> (i64, i64) {
        self.places
    }

    /// Elements of lists go behind those of another judge of the table.
    pub(crate) fn go_on_from(&mut self, places: (i64, i64)) {
        self.places = places;
    }

    /// Forgets a column that is dropped.
    pub(crate) fn forget(&mut self, column: usize) {
        let clear = |cells: &mut Cells| {
            cells.cells.retain(|(of, _), _| *of != column);
            cells.columns.retain(|(of, _)| *of != column);
        };
        for (_, partition) in self.partitions.values_mut() {
            clear(&mut partition.statics);
            partition.rows.values_mut().for_each(|(_, row)| clear(&mut row.cells));
        }
    }

    /// The key as it is stored.
    pub(crate) fn key_bytes(&self, key: &[u8]) -> Vec<u8> {
        let columns = self.table.keys();
        let parts =
            key.iter().zip(&columns).map(|(value, index)| self.table.columns[*index].pool().bytes(*value));
        if columns.len() == 1 {
            return parts.flat_map(|bytes| bytes.to_vec()).collect();
        }
        parts.flat_map(|bytes| [&(bytes.len() as u16).to_be_bytes()[..], bytes, &[0]].concat()).collect()
    }

    fn position(&self, clustering: &[u8]) -> Position {
        let columns = self.table.clusterings();
        let turned = |(value, index): (&u8, &usize)| match self.table.columns[*index].place {
            Place::Clustering { desc: true } => -i16::from(*value),
            _ => i16::from(*value),
        };
        clustering.iter().zip(&columns).map(turned).collect()
    }

    /// Where a key lies on the ring.
    pub(crate) fn ring(&self, key: &[u8]) -> (i64, Vec<u8>) {
        let bytes = self.key_bytes(key);
        (Token::of_key(&bytes).0, bytes)
    }

    /// The partitions in the order of the ring: key, partition.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = &(Vec<u8>, Partition)> {
        self.partitions.values()
    }

    pub(crate) fn partition(&self, key: &[u8]) -> Option<&(Vec<u8>, Partition)> {
        self.partitions.get(&self.ring(key))
    }

    /// Whether the condition of a write holds now.
    pub(crate) fn allows(&self, write: &Write, now_s: i64) -> bool {
        let nobody = Partition::default();
        let partition = self.partition(&write.key).map_or(&nobody, |(_, partition)| partition);
        let statics = partition.live_statics(now_s);
        let row = write.clustering.as_ref().and_then(|c| partition.live_row(&self.position(c), now_s));
        // A statement of static columns alone asks whether there is a static row.
        let exists = match &write.clustering {
            Some(_) => row.is_some(),
            None => !statics.is_empty(),
        };
        match &write.condition {
            Condition::None => true,
            Condition::NotExists => !exists,
            Condition::Exists => exists,
            Condition::Columns(columns) => columns.iter().all(|(column, wanted)| {
                let from = if self.table.columns[*column].place == Place::Static {
                    Some(&statics)
                } else {
                    row.as_ref()
                };
                let found = from.and_then(|live| live.get(column)).and_then(|cells| cells.first());
                found.and_then(|(_, version)| version.value) == *wanted
            }),
        }
    }

    /// The live cells that the row of a write, or its static row, has in a column.
    fn prior(&self, write: &Write, column: usize, now_s: i64) -> Vec<(Path, Version)> {
        let Some((_, partition)) = self.partition(&write.key) else { return Vec::new() };
        let live = match &write.clustering {
            _ if self.table.columns[column].place == Place::Static => Some(partition.live_statics(now_s)),
            Some(clustering) => {
                let position = self.position(clustering);
                // Conditions on static columns alone have the first row of the partition read, and no other.
                let is_read = !self.asks_statics_alone(write)
                    || partition.rows.keys().find(|at| partition.live_row(at, now_s).is_some())
                        == Some(&position);
                if is_read { partition.live_row(&position, now_s) } else { None }
            }
            None => None,
        };
        live.and_then(|mut live| live.remove(&column)).unwrap_or_default()
    }

    fn asks_statics_alone(&self, write: &Write) -> bool {
        let Condition::Columns(columns) = &write.condition else { return false };
        columns.iter().all(|(column, _)| self.table.columns[*column].place == Place::Static)
    }

    /// Whether a write is refused for what is there: places of lists that they do not have.
    pub(crate) fn refuses(&self, write: &Write, now_s: i64) -> bool {
        let (Action::Update(assigns) | Action::DeleteParts(assigns)) = &write.action else { return false };
        assigns.iter().any(|assign| match assign {
            Assign::At(column, at, _) => *at >= self.prior(write, *column, now_s).len(),
            _ => false,
        })
    }

    /// Notes a write whose condition holds and that is not refused.
    pub(crate) fn apply(&mut self, write: &Write, at: Moment) {
        let place = self.ring(&write.key);
        let position = write.clustering.as_ref().map(|clustering| self.position(clustering));
        let ttl_s = write.ttl_s.unwrap_or(self.table.default_ttl_s);
        let assigns: Vec<Assign> = match &write.action {
            Action::Insert(cells) => {
                cells.iter().map(|(column, term)| Assign::Set(*column, term.clone())).collect()
            }
            Action::Update(assigns) | Action::DeleteParts(assigns) => assigns.clone(),
            Action::DeleteRows(_) => Vec::new(),
        };
        // What depends on what is there is looked up before anything is noted.
        let prior = assigns.iter().map(|assign| match assign {
            Assign::At(column, ..) | Assign::Remove(column, _) | Assign::Count(column, _) => {
                self.prior(write, *column, at.now_s)
            }
            _ => Vec::new(),
        });
        let prior: Vec<_> = prior.collect();
        let is_delete = matches!(write.action, Action::DeleteParts(_));
        let is_insert = matches!(write.action, Action::Insert(_));
        let clusterings = self.table.clusterings().len();
        let Judge { table, grace_s, partitions, places, .. } = self;
        let arrival = Arrival {
            now_s: at.now_s,
            purged_before_s: grace_s.map_or(i64::MIN, |grace_s| at.now_s - grace_s),
        };
        let (_, partition) =
            partitions.entry(place).or_insert_with(|| (write.key.clone(), Partition::default()));
        if let Action::DeleteRows(preds) = &write.action {
            let scope = if names_rows(preds, clusterings) { Scope::Row } else { Scope::Range };
            return partition.delete((write.clustering.as_ref(), position), (preds, scope), at);
        }
        let of_partition = partition.deletions.clone();
        let mut nobody = Row::default();
        let (row, mut of_row) = match (&write.clustering, position) {
            (Some(clustering), Some(position)) => {
                let ranges = partition.ranges.iter().filter(|(preds, _)| covers(preds, clustering));
                let mut deletions = of_partition.clone();
                deletions.extend(ranges.map(|(_, deletion)| *deletion));
                let row = partition.rows.entry(position);
                (&mut row.or_insert_with(|| (clustering.clone(), Row::default())).1, deletions)
            }
            _ => (&mut nobody, of_partition.clone()),
        };
        of_row.extend(&row.deletions);
        if is_insert && write.clustering.is_some() {
            let new = version(Some(0), &[], at, ttl_s);
            row.marker.put(new, Version::marker_remains, of_row.iter().copied(), arrival);
        }
        let mut noting = Noting { table, places, at, arrival, ttl_s, is_delete, outer: Vec::new() };
        for (assign, prior) in assigns.iter().zip(&prior) {
            let is_static = noting.table.columns[assign.column()].place == Place::Static;
            noting.outer.clone_from(if is_static { &of_partition } else { &of_row });
            noting.assign(if is_static { &mut partition.statics } else { &mut row.cells }, assign, prior);
        }
    }
}

/// Whether these relations give every clustering column its values. A DELETE by them deletes rows, not a range of rows.
fn names_rows(preds: &[Pred], clusterings: usize) -> bool {
    let is_named = |at: usize| {
        preds.iter().any(|pred| match pred {
            Pred::One(of, compare, _) => *of == at && *compare == Compare::Equal,
            Pred::In(of, _) => *of == at,
            Pred::Tuple(compare, values) => at < values.len() && *compare == Compare::Equal,
            Pred::TupleIn(tuples) => tuples.iter().all(|values| at < values.len()),
        })
    };
    (0..clusterings).all(is_named)
}

fn covers(preds: &[Pred], clustering: &[u8]) -> bool {
    preds.iter().all(|pred| pred.holds(clustering))
}

fn version(value: Option<u8>, bytes: &[u8], at: Moment, ttl_s: u32) -> Version {
    let ttl_s = if value.is_some() { ttl_s } else { 0 };
    let ends_s = match (value, ttl_s) {
        (None, _) => at.now_s,
        (Some(_), 0) => NEVER,
        (Some(_), ttl) => at.now_s + i64::from(ttl),
    };
    Version { timestamp_us: at.timestamp_us, ttl_s, ends_s, value, bytes: bytes.into() }
}

/// Takes one statement's assignments down.
struct Noting<'a> {
    table: &'a Table,
    places: &'a mut (i64, i64),
    at: Moment,
    arrival: Arrival,
    ttl_s: u32,
    is_delete: bool,
    /// The deletions of rows and more that cover the cells.
    outer: Vec<Deletion>,
}

impl Noting<'_> {
    fn assign(&mut self, cells: &mut Cells, assign: &Assign, prior: &[(Path, Version)]) {
        let column = assign.column();
        match assign {
            Assign::Set(_, term) => self.set(cells, column, term),
            Assign::Add(_, term) => self.add(cells, column, term),
            Assign::Prepend(_, items) => {
                for value in items.iter().rev() {
                    self.places.0 -= 1;
                    let path = Path::At(self.places.0);
                    self.note(cells, column, path, Some(*value));
                }
            }
            Assign::Remove(_, items) => match &self.table.columns[column].ty {
                Type::List(_) => {
                    let gone =
                        prior.iter().filter(|(_, version)| version.value.is_some_and(|v| items.contains(&v)));
                    gone.for_each(|(path, _)| self.note(cells, column, *path, None));
                }
                _ => items.iter().for_each(|key| self.note(cells, column, Path::Key(*key), None)),
            },
            Assign::Element(_, key, value) => self.note(cells, column, Path::Key(*key), *value),
            Assign::At(_, index, value) => self.note(cells, column, prior[*index].0, *value),
            Assign::Field(_, field, value) => self.note(cells, column, Path::Field(*field), *value),
            Assign::Count(_, by) => {
                let total = prior.first().map_or(0, |(_, version)| total(version)) + by;
                let counted = version(Some(0), &total.to_be_bytes(), self.at, 0);
                // A batch may count twice at one timestamp; only a deletion of that timestamp is stronger.
                if prior.is_empty() {
                    self.put(cells, (column, Path::Whole), counted);
                } else {
                    cells.cells.entry((column, Path::Whole)).or_default().replace(counted);
                }
            }
        }
    }

    fn set(&mut self, cells: &mut Cells, column: usize, term: &Term) {
        let ty = &self.table.columns[column].ty;
        if let (Type::Simple(_) | Type::Counter, term) = (ty, term) {
            let value = if let Term::Simple(value) = term { Some(*value) } else { None };
            return self.note(cells, column, Path::Whole, value);
        }
        // An assignment deletes what was there before; a DELETE what is there now, too.
        let deleted_us = if self.is_delete { self.at.timestamp_us } else { self.at.timestamp_us - 1 };
        let (timestamp_us, local_s) = (deleted_us, self.at.now_s);
        cells.columns.push((column, Deletion { scope: Scope::Column, timestamp_us, local_s }));
        let of_column =
            cells.cells.range_mut((column, Path::Whole)..).take_while(|((of, _), _)| *of == column);
        of_column.for_each(|(_, cell)| cell.delete(timestamp_us));
        self.add(cells, column, term);
    }

    fn add(&mut self, cells: &mut Cells, column: usize, term: &Term) {
        match term {
            Term::Null | Term::Simple(_) => {}
            Term::Set(items) => {
                items.iter().for_each(|key| self.note(cells, column, Path::Key(*key), Some(0)))
            }
            Term::Map(items) => {
                items.iter().for_each(|(key, value)| self.note(cells, column, Path::Key(*key), Some(*value)));
            }
            Term::List(items) => {
                for value in items {
                    self.places.1 += 1;
                    let path = Path::At(self.places.1);
                    self.note(cells, column, path, Some(*value));
                }
            }
            Term::Fields(items) => {
                for (field, value) in items.iter().enumerate().filter(|(_, value)| value.is_some()) {
                    self.note(cells, column, Path::Field(field), *value);
                }
            }
        }
    }

    fn note(&self, cells: &mut Cells, column: usize, path: Path, value: Option<u8>) {
        let bytes: Option<Arc<[u8]>> = value.and_then(|value| match &self.table.columns[column].ty {
            Type::Simple(pool) | Type::List(pool) | Type::Map(_, pool) => Some(pool.bytes(value).clone()),
            Type::Fields(pools) => match path {
                Path::Field(field) => Some(pools[field].bytes(value).clone()),
                _ => None,
            },
            Type::Set(_) | Type::Counter => None,
        });
        let new = version(value, bytes.as_deref().unwrap_or_default(), self.at, self.ttl_s);
        self.put(cells, (column, path), new);
    }

    fn put(&self, cells: &mut Cells, name: (usize, Path), new: Version) {
        let of_column = cells.columns.iter().filter(|(column, _)| *column == name.0);
        let deletions = self.outer.iter().chain(of_column.map(|(_, deletion)| deletion)).copied();
        cells.cells.entry(name).or_default().put(new, Version::remains, deletions, self.arrival);
    }
}

/// What a counter's version comes to.
pub(crate) fn total(version: &Version) -> i64 {
    version.bytes.first_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

impl Cells {
    fn live(&self, now_s: i64) -> Live {
        let mut live = Live::new();
        for ((column, path), slot) in &self.cells {
            if let Some(version) = slot.visible(now_s) {
                live.entry(*column).or_default().push((*path, version.clone()));
            }
        }
        live
    }

    fn delete(&mut self, timestamp_us: i64) {
        self.cells.values_mut().for_each(|cell| cell.delete(timestamp_us));
    }
}

impl Row {
    fn delete(&mut self, timestamp_us: i64) {
        self.marker.delete(timestamp_us);
        self.cells.delete(timestamp_us);
    }
}

impl Partition {
    /// Deletes a row, rows by relations, which are of this scope, or everything.
    fn delete(
        &mut self,
        at: (Option<&Vec<u8>>, Option<Position>),
        (preds, scope): (&[Pred], Scope),
        moment: Moment,
    ) {
        let Moment { timestamp_us, now_s: local_s } = moment;
        let deletion = |scope| Deletion { scope, timestamp_us, local_s };
        match at {
            (Some(clustering), Some(position)) if !clustering.is_empty() => {
                let row = self.rows.entry(position);
                let (_, row) = row.or_insert_with(|| (clustering.clone(), Row::default()));
                row.deletions.push(deletion(Scope::Row));
                row.delete(timestamp_us);
            }
            _ if preds.is_empty() => {
                self.deletions.push(deletion(Scope::Partition));
                self.statics.delete(timestamp_us);
                self.rows.values_mut().for_each(|(_, row)| row.delete(timestamp_us));
            }
            _ => {
                self.ranges.push((preds.to_vec(), deletion(scope)));
                let rows = self.rows.values_mut().filter(|(clustering, _)| covers(preds, clustering));
                rows.for_each(|(_, row)| row.delete(timestamp_us));
            }
        }
    }

    pub(crate) fn live_statics(&self, now_s: i64) -> Live {
        self.statics.live(now_s)
    }

    fn live_row(&self, position: &Position, now_s: i64) -> Option<Live> {
        self.rows.get(position).and_then(|(_, row)| self.live(row, now_s))
    }

    fn live(&self, row: &Row, now_s: i64) -> Option<Live> {
        let live = row.cells.live(now_s);
        (row.marker.visible(now_s).is_some() || !live.is_empty()).then_some(live)
    }

    /// The live rows in clustering order.
    pub(crate) fn live_rows(&self, now_s: i64) -> impl DoubleEndedIterator<Item = (&Vec<u8>, Live)> {
        self.rows
            .values()
            .filter_map(move |(clustering, row)| self.live(row, now_s).map(|live| (clustering, live)))
    }
}
