//! Makes the writes of rows, static rows and partition deletions.
//!
//! The cells of a row are grouped by timestamp and expiry; each group is one statement. The TTL of a group is what is left of it
//! when it is sent. A cell that has expired is sent as a tombstone, and an expired row marker with a TTL of one second: both still
//! hide what is older. An INSERT assigns a collection if the source's deletion and elements are those of an assignment;
//! other elements are added, and other deletions of collections are statements of their own. Lists are left to `lists`.
//!
//! The table is as the other side has it: a compact one hides columns. A row of a table of keys alone is an INSERT there, and one whose
//! clustering ends early has statements that name fewer columns. DELETE would take such names for ranges (`StatementType.DELETE`
//! allows slices), so its deletion is one of its only cell.

use super::error::SourceError;
use super::texts::{StatementKind, hidden_value, is_list, written_columns};
use super::write::{Values, Write};
use helenus_model::cell::{Cell, ColumnId};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::row::RowView;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, key_values, to_cql_literal};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The TTL of what has expired: the least that CQL takes.
const EXPIRED_S: i32 = 1;

/// Groups for which room is kept from row to row.
const GROUPS_KEPT: usize = 1_024;

/// Makes the writes of a table's rows. Each element of a set or map may be a group by itself, so the groups of a row are found by one pass over
/// its cells, and each group knows its own.
pub struct RowWrites {
    table: Arc<Table>,
    groups: Vec<Group>,
    /// The places of cells in the row: group by group, ascending in each.
    members: Vec<usize>,
    /// The groups by timestamp and expiry, and the first of each timestamp.
    by_times: HashMap<(i64, i64), usize>,
    by_timestamp: HashMap<i64, usize>,
}

/// Cells that one statement writes. The first group of a timestamp has the dead cells of that timestamp.
#[derive(Clone, Debug)]
struct Group {
    timestamp_us: i64,
    /// Seconds since the epoch; `NO_EXPIRY` without a TTL.
    expires_s: i64,
    /// Whether it writes the row's marker. Only the first group of a row may.
    has_marker: bool,
    /// Where its cells are among the members.
    members: Range<usize>,
}

/// A partition, and the row in it; without clustering it is the static row.
#[derive(Clone, Copy)]
struct Place<'p> {
    key: &'p [u8],
    row: RowView<'p>,
    is_static: bool,
}

impl RowWrites {
    /// For the rows of this table.
    pub fn new(table: &Arc<Table>) -> RowWrites {
        RowWrites {
            table: table.clone(),
            groups: Vec::new(),
            members: Vec::new(),
            by_times: HashMap::new(),
            by_timestamp: HashMap::new(),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Appends the writes of a row.
    ///
    /// # Errors
    /// The row cannot be written by CQL.
    pub fn row(
        &mut self,
        key: &[u8],
        row: RowView<'_>,
        now_s: i64,
        out: &mut Vec<Write>,
    ) -> Result<(), SourceError> {
        self.any_row(Place { key, row, is_static: false }, now_s, out)
    }

    /// Appends the writes of a static row.
    ///
    /// # Errors
    /// As `row`.
    pub fn static_row(
        &mut self,
        key: &[u8],
        row: RowView<'_>,
        now_s: i64,
        out: &mut Vec<Write>,
    ) -> Result<(), SourceError> {
        self.any_row(Place { key, row, is_static: true }, now_s, out)
    }

    /// Appends the deletion of a partition, if it is deleted.
    pub fn partition_deletion(&self, key: &[u8], deletion: DeletionTime, out: &mut Vec<Write>) {
        if deletion.is_live() {
            return;
        }
        let mut values = Values::default();
        values.put(&deletion.timestamp_us.to_be_bytes());
        put_partition_key(&self.table, key, &mut values);
        out.push(Write { kind: StatementKind::DeletePartition, values });
    }

    fn any_row(&mut self, place: Place<'_>, now_s: i64, out: &mut Vec<Write>) -> Result<(), SourceError> {
        let table = self.table.clone();
        if table.is_counter() {
            return Err(SourceError::Counter);
        }
        if table.is_static_compact() && !place.is_static {
            return undeclared(&table, place, now_s);
        }
        if !place.row.row.deletion.is_live() {
            put_row_deletion((&table, place), place.row.row.deletion.timestamp_us, out)?;
        }
        self.group(place, now_s);
        let columns = if place.is_static { &table.statics } else { &table.regulars };
        self.column_deletions((place, columns, now_s), out)?;
        for at in 0..self.groups.len() {
            self.group_writes(at, (place, now_s), out)?;
        }
        Ok(())
    }

    /// Finds the groups of a row's marker and cells.
    fn group(&mut self, place: Place<'_>, now_s: i64) {
        let row = place.row.row;
        self.groups.clear();
        if self.by_times.capacity() > GROUPS_KEPT {
            // Every row after one of many groups would clear the room of those.
            (self.by_times, self.by_timestamp) = Default::default();
        }
        self.by_times.clear();
        self.by_timestamp.clear();
        if !row.liveness.is_none() {
            let Liveness { timestamp_us, expires_s, .. } = row.liveness;
            self.add_group((timestamp_us, expires_s), true);
        }
        // By cell.
        let mut group_of: Vec<Option<usize>> = vec![None; row.cells.len()];
        let dead_last = [false, true];
        for is_dead in dead_last {
            // Most cells have the times of the one before.
            let mut last: Option<((i64, i64), usize)> = None;
            for (cell, group_of) in row.cells.iter().zip(&mut group_of) {
                if cell.is_live(now_s) == is_dead || self.is_elsewhere(cell, is_dead) {
                    continue;
                }
                let expires_s = if is_dead { NO_EXPIRY } else { cell.local_deletion_s };
                let times = (cell.timestamp_us, expires_s);
                let known = last.filter(|(of, _)| *of == times).map(|(_, group)| group);
                let known = known.or_else(|| match is_dead {
                    true => self.by_timestamp.get(&cell.timestamp_us).copied(),
                    false => self.by_times.get(&times).copied(),
                });
                let group = known.unwrap_or_else(|| self.add_group(times, false));
                last = Some((times, group));
                *group_of = Some(group);
            }
        }
        self.set_members(&group_of);
    }

    fn add_group(&mut self, (timestamp_us, expires_s): (i64, i64), has_marker: bool) -> usize {
        let place = self.groups.len();
        self.groups.push(Group { timestamp_us, expires_s, has_marker, members: 0..0 });
        self.by_times.insert((timestamp_us, expires_s), place);
        self.by_timestamp.entry(timestamp_us).or_insert(place);
        place
    }

    /// Gives each group its cells. `group_of`: the groups of the cells.
    fn set_members(&mut self, group_of: &[Option<usize>]) {
        let mut counts = vec![0; self.groups.len()];
        for group in group_of.iter().flatten() {
            counts[*group] += 1;
        }
        let mut start = 0;
        for (group, count) in self.groups.iter_mut().zip(counts) {
            group.members = start..start;
            start += count;
        }
        self.members.clear();
        self.members.resize(start, 0);
        for (at, group) in group_of.iter().enumerate() {
            let Some(group) = *group else { continue };
            looked(1);
            let members = &mut self.groups[group].members;
            self.members[members.end] = at;
            members.end += 1;
        }
    }

    /// Whether a cell is no part of a group: of a list or of a dropped column, or a dead element of a set or map.
    fn is_elsewhere(&self, cell: &Cell, is_dead: bool) -> bool {
        match self.table.column_by_id(cell.column).map(|column| &column.ty) {
            None => true,
            Some(CqlType::Set { frozen: false, .. } | CqlType::Map { frozen: false, .. }) => is_dead,
            Some(ty) => is_list(ty),
        }
    }

    /// Appends the deletions of collections that no INSERT implies, and those of elements.
    fn column_deletions(
        &self,
        (place, columns, now_s): (Place<'_>, &[Column], i64),
        out: &mut Vec<Write>,
    ) -> Result<(), SourceError> {
        for column in columns.iter().filter(|column| column.ty.is_multi_cell() && !is_list(&column.ty)) {
            if let Some(deletion) = place.row.complex_deletion_of(column.id)
                && !self.groups.first().is_some_and(|group| group.assigns(place, column, now_s))
            {
                let mut values = Values::default();
                values.put(&deletion.timestamp_us.to_be_bytes());
                put_key(&self.table, place, &mut values)?;
                out.push(Write { kind: StatementKind::DeleteColumn(column.id), values });
            }
            if matches!(column.ty, CqlType::Udt(_)) {
                continue;
            }
            let mut dead: Vec<&Cell> =
                place.row.cells_of(column.id).iter().filter(|cell| !cell.is_live(now_s)).collect();
            dead.sort_by_key(|cell| cell.timestamp_us);
            for dead in dead.chunk_by(|one, next| one.timestamp_us == next.timestamp_us) {
                looked(dead.len());
                let timestamp_us = dead.first().map_or(i64::MIN, |cell| cell.timestamp_us);
                let mut values = Values::default();
                values.put(&timestamp_us.to_be_bytes());
                values.put_collection(dead.len(), dead.iter().map(|cell| place.row.path(cell)));
                put_key(&self.table, place, &mut values)?;
                out.push(Write { kind: StatementKind::Remove(column.id), values });
            }
        }
        Ok(())
    }

    /// Appends the INSERT and the UPDATE of a group.
    fn group_writes(
        &self,
        at: usize,
        (place, now_s): (Place<'_>, i64),
        out: &mut Vec<Write>,
    ) -> Result<(), SourceError> {
        let Some(group) = self.groups.get(at) else { return Ok(()) };
        let table = &*self.table;
        let members = self.members.get(group.members.clone()).unwrap_or_default();
        let cells = Cells { place, now_s, group, members };
        let hidden = hidden_value(table).filter(|_| !place.is_static);
        let hidden = hidden.and_then(|column| cells.of(column.id).next());
        if let Some(dead) = hidden.filter(|cell| !cell.is_live(now_s)) {
            put_row_deletion((table, place), dead.timestamp_us, out)?;
        }
        let prefix = place.prefix(table);
        if group.has_marker || hidden.is_some_and(|cell| cell.is_live(now_s)) {
            let mut values = Values::default();
            put_key(table, place, &mut values)?;
            if prefix.is_none() {
                written_columns(table, false).for_each(|column| cells.put_whole(column, &mut values));
            }
            values.put(&group.timestamp_us.to_be_bytes());
            values.put_ttl(group.expires_s, now_s);
            let kind = prefix.map_or(StatementKind::Insert, StatementKind::InsertPrefix);
            out.push(Write { kind, values });
        }
        let mut values = Values::default();
        values.put(&group.timestamp_us.to_be_bytes());
        values.put_ttl(group.expires_s, now_s);
        let mut is_needed = false;
        for column in written_columns(table, place.is_static) {
            is_needed |= cells.put_parts(column, &mut values);
        }
        if is_needed {
            put_key(table, place, &mut values)?;
            let kind = match (place.is_static, prefix) {
                (true, _) => StatementKind::UpdateStatic,
                (false, None) => StatementKind::Update,
                (false, Some(values)) => StatementKind::UpdatePrefix(values),
            };
            out.push(Write { kind, values });
        }
        Ok(())
    }
}

impl Place<'_> {
    /// The number of clustering values, if the row's clustering ends early.
    fn prefix(self, table: &Table) -> Option<u16> {
        let all = table.clustering.len();
        let there = (0..all).take_while(|index| self.row.clustering(*index).is_some()).count();
        (!self.is_static && there < all).then_some(there as u16)
    }
}

/// Whether the other side hides a row of a table that has this form there: it is a column that was not declared.
///
/// # Errors
/// `Undeclared` if it is live, as `RowWrites::row`.
pub(crate) fn is_hidden_row(
    as_there: &Table,
    key: &[u8],
    row: RowView<'_>,
    now_s: i64,
) -> Result<bool, SourceError> {
    let is_hidden = as_there.is_static_compact();
    if is_hidden {
        undeclared(as_there, Place { key, row, is_static: false }, now_s)?;
    }
    Ok(is_hidden)
}

/// A row of a compact table without declared clustering is a column that was not declared. The other side has none, so only a live one
/// matters.
fn undeclared(table: &Table, place: Place<'_>, now_s: i64) -> Result<(), SourceError> {
    let literal = |column: Option<&Column>, value: Option<&[u8]>| {
        column.map_or_else(String::new, |column| to_cql_literal(&column.ty, value))
    };
    if !place.row.row.cells.iter().any(|cell| cell.is_live(now_s)) {
        return Ok(());
    }
    let keys = key_values(table.partition_key.len(), place.key);
    let keys = table.partition_key.iter().zip(keys);
    let keys: Vec<String> = keys.map(|(column, value)| literal(Some(column), Some(value))).collect();
    Err(SourceError::Undeclared {
        key: keys.join(", "),
        column: literal(table.clustering.first(), place.row.clustering(0)),
    })
}

/// Appends the deletion of a row.
fn put_row_deletion(
    (table, place): (&Table, Place<'_>),
    timestamp_us: i64,
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    let mut key = Values::default();
    put_key(table, place, &mut key)?;
    out.push(row_deletion(table, place.prefix(table), timestamp_us, &key));
    Ok(())
}

/// The deletion of a row, whose clustering may end early (`prefix`).
pub(crate) fn row_deletion(table: &Table, prefix: Option<u16>, timestamp_us: i64, key: &Values) -> Write {
    let mut values = Values::default();
    match prefix {
        None => {
            values.put(&timestamp_us.to_be_bytes());
            values.append(key);
            Write { kind: StatementKind::DeleteRow, values }
        }
        // No statement deletes it; one that has expired hides as much.
        Some(prefix) if hidden_value(table).is_some() => {
            values.append(key);
            values.put(&timestamp_us.to_be_bytes());
            values.put(&EXPIRED_S.to_be_bytes());
            Write { kind: StatementKind::InsertPrefix(prefix), values }
        }
        Some(prefix) => {
            values.put(&timestamp_us.to_be_bytes());
            values.put(&0_i32.to_be_bytes());
            written_columns(table, false).for_each(|_| values.put_null());
            values.append(key);
            Write { kind: StatementKind::UpdatePrefix(prefix), values }
        }
    }
}

impl Group {
    /// Whether a live cell is one of the group.
    fn has(&self, cell: &Cell) -> bool {
        looked(1);
        cell.timestamp_us == self.timestamp_us && cell.local_deletion_s == self.expires_s
    }

    /// Whether the group's INSERT assigns a collection: all that the row has of it was written by that statement.
    fn assigns(&self, place: Place<'_>, column: &Column, now_s: i64) -> bool {
        if !self.has_marker {
            return false;
        }
        let Some(deletion) = place.row.complex_deletion_of(column.id) else { return false };
        deletion.timestamp_us == self.timestamp_us - 1
            && place.row.cells_of(column.id).iter().all(|cell| cell.is_live(now_s) && self.has(cell))
    }
}

/// The cells of a row that belong to one group.
struct Cells<'p> {
    place: Place<'p>,
    now_s: i64,
    group: &'p Group,
    members: &'p [usize],
}

impl<'p> Cells<'p> {
    /// The cells of a column.
    fn of(&self, column: ColumnId) -> impl Iterator<Item = &'p Cell> + Clone + use<'p> {
        let cells = &self.place.row.row.cells;
        // The cells of a row are in the order of their columns.
        let is_before = |at: &usize| cells.get(*at).is_some_and(|cell| cell.column < column);
        let members = self.members.get(self.members.partition_point(is_before)..).unwrap_or_default();
        let cells = members.iter().filter_map(|at| cells.get(*at));
        cells.inspect(|_| looked(1)).take_while(move |cell| cell.column == column)
    }

    fn put_cell(&self, cell: &Cell, values: &mut Values) {
        match cell.is_live(self.now_s) {
            true => values.put(self.place.row.value(cell)),
            false => values.put_null(),
        }
    }

    /// A column's value in the INSERT.
    fn put_whole(&self, column: &Column, values: &mut Values) {
        let row = self.place.row;
        if !column.ty.is_multi_cell() {
            match self.of(column.id).next() {
                Some(cell) => self.put_cell(cell, values),
                None => values.put_unset(),
            }
            return;
        }
        if !self.group.assigns(self.place, column, self.now_s) {
            values.put_unset();
            return;
        }
        let cells = row.cells_of(column.id);
        match &column.ty {
            _ if cells.is_empty() => values.put_null(),
            CqlType::Udt(udt) => values.put_fields(
                (0..udt.fields.len())
                    .map(|field| find_field(row, cells.iter(), field).map(|cell| row.value(cell))),
            ),
            _ => put_elements(&column.ty, cells.iter(), row, values),
        }
    }

    /// A column's value in the UPDATE: what the INSERT has not written. Returns whether there is anything.
    fn put_parts(&self, column: &Column, values: &mut Values) -> bool {
        let row = self.place.row;
        match &column.ty {
            CqlType::Udt(udt) if !udt.frozen => {
                let is_whole = self.group.assigns(self.place, column, self.now_s);
                let mut is_any = false;
                for field in 0..udt.fields.len() {
                    let cell = find_field(row, self.of(column.id), field);
                    match cell.filter(|_| !is_whole) {
                        None => values.put_unset(),
                        Some(cell) => {
                            self.put_cell(cell, values);
                            is_any = true;
                        }
                    }
                }
                is_any
            }
            ty if ty.is_multi_cell() => {
                // Those of a set or map are alive.
                let cells = self.of(column.id);
                let is_any =
                    cells.clone().next().is_some() && !self.group.assigns(self.place, column, self.now_s);
                match is_any {
                    true => put_elements(ty, cells, row, values),
                    false => values.put_unset(),
                }
                is_any
            }
            _ => {
                let cell = self.of(column.id).next().filter(|_| !self.group.has_marker);
                match cell {
                    Some(cell) => self.put_cell(cell, values),
                    None => values.put_unset(),
                }
                cell.is_some()
            }
        }
    }
}

/// The cell of a field among those of a user type: its path is the field's position.
fn find_field<'c>(
    row: RowView<'_>,
    mut cells: impl Iterator<Item = &'c Cell>,
    field: usize,
) -> Option<&'c Cell> {
    let path = u16::try_from(field).ok()?.to_be_bytes();
    cells.find(|cell| row.path(cell) == path)
}

/// Elements of a set or map as one value.
fn put_elements<'c>(
    ty: &CqlType,
    cells: impl Iterator<Item = &'c Cell> + Clone,
    row: RowView<'_>,
    values: &mut Values,
) {
    let count = cells.clone().count();
    match ty {
        CqlType::Map { .. } => {
            values.put_collection(count, cells.flat_map(|cell| [row.path(cell), row.value(cell)]));
        }
        _ => values.put_collection(count, cells.map(|cell| row.path(cell))),
    }
}

/// Appends the values of the partition key.
pub(super) fn put_partition_key(table: &Table, key: &[u8], values: &mut Values) {
    match table.partition_key.len() {
        1 => values.put(key),
        count => key_values(count, key).into_iter().for_each(|value| values.put(value)),
    }
}

/// Appends the values that name a row, or the partition of a static row.
fn put_key(table: &Table, place: Place<'_>, values: &mut Values) -> Result<(), SourceError> {
    put_partition_key(table, place.key, values);
    if place.is_static {
        return Ok(());
    }
    put_clustering(table, (0..table.clustering.len()).map(|index| place.row.clustering(index)), values)
}

/// Appends clustering values.
pub(super) fn put_clustering<'v>(
    table: &Table,
    clustering: impl Iterator<Item = Option<&'v [u8]>>,
    values: &mut Values,
) -> Result<(), SourceError> {
    let mut missing = None;
    for (column, value) in table.clustering.iter().zip(clustering) {
        match (value, missing) {
            (Some(value), None) => values.put(value),
            (None, None) if table.is_compact() && !table.is_counter() => missing = Some(column),
            (None, Some(_)) => {}
            (None, None) => return Err(SourceError::NoClustering { column: column.name.to_string() }),
            (Some(_), Some(missing)) => {
                return Err(SourceError::NoClustering { column: missing.name.to_string() });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
thread_local! {
    /// How often a cell was looked at.
    static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts that cells are looked at, for the tests.
fn looked(cells: usize) {
    #[cfg(test)]
    LOOKS.with(|looks| looks.set(looks.get() + cells));
    let _ = cells;
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_cql::backend::{Backend, Identity, NoRows, Outcome, Request};
    use helenus_cql::{LocalBackend, LocalOptions};
    use helenus_engine::read::{KeyRange, UnfilteredSink};
    use helenus_engine::{Database, DatabaseOptions};
    use helenus_host::sim::Machine;
    use helenus_model::unfiltered::Unfiltered;

    struct Writer(RowWrites, Vec<Write>, usize, i64);

    impl UnfilteredSink for Writer {
        fn partition(
            &mut self,
            _: &[u8],
            _: DeletionTime,
            _: Option<RowView<'_>>,
        ) -> helenus_engine::Result<()> {
            Ok(())
        }

        fn element(&mut self, element: Unfiltered<'_>) -> helenus_engine::Result<()> {
            if let Unfiltered::Row(row) = element {
                self.2 += row.row.cells.len();
                self.0.row(b"key1", row, self.3, &mut self.1).unwrap();
            }
            Ok(())
        }

        fn partition_end(&mut self) -> helenus_engine::Result<()> {
            Ok(())
        }
    }

    /// Elements that were written one by one, and removed one by one, have as many timestamps as there are elements.
    #[test]
    fn the_cells_of_a_row_are_looked_at_a_few_times_each_however_many_timestamps_they_have() {
        const ELEMENTS: usize = 2_000;
        let machine = Machine::new(1);
        let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
        let backend = LocalBackend::new(database, LocalOptions::default());
        let run = |text: &str| {
            let answer = backend.query(text, &Request::plain(&Identity::default(), &[]), &mut NoRows);
            match answer.unwrap_or_else(|error| panic!("{text}: {error}")).outcome {
                Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
                _ => {}
            }
        };
        run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        run("CREATE TABLE ks.t (k int, c int, m map<int, int>, s set<int>, PRIMARY KEY (k, c))");
        run("INSERT INTO ks.t (k, c) VALUES (1, 1) USING TIMESTAMP 7");
        for at in 0..ELEMENTS {
            let stamp = 1_000 + at;
            run(&format!(
                "UPDATE ks.t USING TIMESTAMP {stamp} SET m[{at}] = 1, s = s + {{{at}}} WHERE k = 1 AND c = 1"
            ));
            run(&format!(
                "DELETE m[{}] FROM ks.t USING TIMESTAMP {stamp} WHERE k = 1 AND c = 1",
                at + ELEMENTS
            ));
        }
        let table = backend.database().schema().table("ks", "t").unwrap().clone();
        let mut writer = Writer(RowWrites::new(&table), Vec::new(), 0, backend.database().now_s());
        LOOKS.set(0);
        backend.database().scan_unfiltered(&table, &KeyRange::all(), &mut writer).unwrap();
        assert_eq!((writer.1.len(), writer.2), (1 + 2 * ELEMENTS, 3 * ELEMENTS));
        assert!(LOOKS.get() <= 4 * writer.2, "{} looks at {} cells", LOOKS.get(), writer.2);
    }
}
