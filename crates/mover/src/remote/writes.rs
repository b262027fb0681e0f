//! Makes statements of cells that were read: the cells with their timestamps and TTLs, deletions of cells and rows, and row markers.

use super::row::{SeenCell, SeenRow, Times, has_no_ttl};
use crate::source::{
    self, ListElement, ListPlace, ListState, RowName, SourceError, StatementKind, Values, Write,
    hidden_value, list_writes, written_columns,
};
use helenus_model::deletion::{DeletionTime, NO_EXPIRY};
use helenus_model::schema::{Column, Table};
use helenus_model::types::CqlType;
use std::collections::{BTreeMap, HashMap};

/// A table, and a row of it.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    pub(crate) table: &'p Table,
    pub(crate) name: &'p RowName,
}

impl<'p> Place<'p> {
    fn columns(self) -> &'p [Column] {
        if self.is_static() { &self.table.statics } else { &self.table.regulars }
    }

    fn is_static(self) -> bool {
        self.name.clustering.is_none()
    }
}

fn is_list(column: &Column) -> bool {
    matches!(column.ty, CqlType::List { frozen: false, .. })
}

/// What is left of a time to live; 0 without one.
fn ttl_s(times: Times, now_s: i64) -> i32 {
    match has_no_ttl(times) {
        true => 0,
        false => i32::try_from(times.expires_s - now_s).map_or(i32::MAX, |left| left.max(1)),
    }
}

/// Appends the writes of cells. Those of a list are all of it, in order: it is replaced, if there may be anything up to `floor_us`.
///
/// # Errors
/// None in practice: a name has all values.
pub(crate) fn cell_writes(
    place: Place<'_>,
    cells: &[SeenCell],
    floor_us: Option<i64>,
    (read_us, now_s): (i64, i64),
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    // A cluster before 5.0 does not tell the times of elements: they count as written with the row's newest cell.
    let newest_us = cells.iter().filter_map(|cell| cell.times).map(|times| times.timestamp_us).max();
    let unknown = Times { timestamp_us: newest_us.unwrap_or(read_us), expires_s: NO_EXPIRY };
    let times_of = |cell: &SeenCell| cell.times.unwrap_or(unknown);
    // In the order of their first cells. Each element of a set or map may be a group by itself.
    let mut groups: Vec<Vec<&SeenCell>> = Vec::new();
    let mut by_times: HashMap<Times, usize> = HashMap::new();
    for cell in cells {
        let place = *by_times.entry(times_of(cell)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    for group in groups {
        let ttl_s = group.first().map(|first| ttl_s(times_of(first), now_s));
        update(place, &group, ttl_s, times_of, out)?;
    }
    for column in place.columns().iter().filter(|column| is_list(column)) {
        let elements = cells.iter().filter(|cell| cell.column == column.id).map(|cell| {
            let Times { timestamp_us, expires_s } = times_of(cell);
            ListElement { timestamp_us, expires_s, value: cell.value.clone() }
        });
        let elements: Vec<ListElement> = elements.collect();
        if elements.is_empty() {
            continue;
        }
        let state = ListState { deletion: DeletionTime::LIVE, elements, newest_us: i64::MIN };
        let list = ListPlace { table: place.table, name: place.name, column: column.id };
        list_writes(list, &state, floor_us, now_s, out)?;
    }
    Ok(())
}

/// Appends the deletions of cells, each at its own timestamp: a deletion hides what is as old as itself. Lists are left out.
///
/// # Errors
/// As `cell_writes`.
pub(crate) fn cell_deletions(
    place: Place<'_>,
    cells: &[SeenCell],
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    let mut by_stamp: BTreeMap<i64, Vec<&SeenCell>> = BTreeMap::new();
    for cell in cells {
        if let Some(times) = cell.times {
            by_stamp.entry(times.timestamp_us).or_default().push(cell);
        }
    }
    for (stamp, of_stamp) in by_stamp {
        let times = |_: &SeenCell| Times { timestamp_us: stamp, expires_s: NO_EXPIRY };
        update(place, &of_stamp, None, times, out)?;
        for column in place.columns() {
            if !matches!(column.ty, CqlType::Set { frozen: false, .. } | CqlType::Map { frozen: false, .. }) {
                continue;
            }
            let paths = of_stamp.iter().filter(|cell| cell.column == column.id).map(|cell| &cell.path[..]);
            let count = paths.clone().count();
            if count > 0 {
                let mut values = Values::default();
                values.put(&stamp.to_be_bytes());
                values.put_collection(count, paths);
                place.name.put(place.table, &mut values)?;
                out.push(Write { kind: StatementKind::Remove(column.id), values });
            }
        }
    }
    Ok(())
}

/// Appends the UPDATE of cells of one timestamp and TTL; without a TTL, the one that sets them null. Lists are left out, and elements of
/// sets and maps that are to be deleted.
fn update(
    place: Place<'_>,
    cells: &[&SeenCell],
    ttl_s: Option<i32>,
    times_of: impl Fn(&SeenCell) -> Times,
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    let Some(first) = cells.first() else { return Ok(()) };
    let Times { timestamp_us, .. } = times_of(first);
    if let Some(hidden) = hidden_value(place.table).filter(|_| !place.is_static())
        && cells.iter().any(|cell| cell.column == hidden.id)
    {
        match ttl_s {
            Some(ttl_s) => insert_write(place, (timestamp_us, ttl_s), out)?,
            None => row_deletion(place, timestamp_us, out)?,
        }
    }
    let mut values = Values::default();
    values.put(&timestamp_us.to_be_bytes());
    values.put(&ttl_s.unwrap_or(0).to_be_bytes());
    let mut is_needed = false;
    let put = |cell: Option<&&&SeenCell>, values: &mut Values| match cell {
        None => values.put_unset(),
        Some(cell) if ttl_s.is_some() => values.put(&cell.value),
        Some(_) => values.put_null(),
    };
    for column in written_columns(place.table, place.is_static()) {
        looked(cells.len());
        let of_column: Vec<&&SeenCell> = cells.iter().filter(|cell| cell.column == column.id).collect();
        let is_by_elements =
            matches!(column.ty, CqlType::Set { frozen: false, .. } | CqlType::Map { frozen: false, .. });
        is_needed |= !of_column.is_empty() && (ttl_s.is_some() || !is_by_elements);
        match &column.ty {
            CqlType::Udt(udt) if !udt.frozen => {
                for field in 0..udt.fields.len() {
                    let path = (field as u16).to_be_bytes();
                    put(of_column.iter().find(|cell| cell.path == path), &mut values);
                }
            }
            _ if is_by_elements && (ttl_s.is_none() || of_column.is_empty()) => values.put_unset(),
            CqlType::Set { frozen: false, .. } => {
                values.put_collection(of_column.len(), of_column.iter().map(|cell| &cell.path[..]));
            }
            CqlType::Map { frozen: false, .. } => {
                let entries = of_column.iter().flat_map(|cell| [&cell.path[..], &cell.value[..]]);
                values.put_collection(of_column.len(), entries);
            }
            _ => put(of_column.first(), &mut values),
        }
    }
    if is_needed {
        place.name.put(place.table, &mut values)?;
        let kind = match (place.is_static(), place.name.prefix(place.table)) {
            (true, _) => StatementKind::UpdateStatic,
            (false, None) => StatementKind::Update,
            (false, Some(values)) => StatementKind::UpdatePrefix(values),
        };
        out.push(Write { kind, values });
    }
    Ok(())
}

/// The marker of a row that is made anew: see the head of `remote`.
pub(crate) fn marker_of(row: &SeenRow, read_us: i64) -> Times {
    let times = || row.cells.iter().filter_map(|cell| cell.times);
    let expires_s = times().map(|times| times.expires_s).max();
    let oldest_us = times().map(|times| times.timestamp_us).min();
    Times {
        timestamp_us: oldest_us.unwrap_or(read_us),
        // A cell without known times may live for ever.
        expires_s: expires_s
            .filter(|_| row.cells.iter().all(|cell| cell.times.is_some()))
            .unwrap_or(NO_EXPIRY),
    }
}

/// Appends the write of a row's marker.
///
/// # Errors
/// As `cell_writes`.
pub(crate) fn marker_write(
    place: Place<'_>,
    marker: Times,
    now_s: i64,
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    insert_write(place, (marker.timestamp_us, ttl_s(marker, now_s)), out)
}

/// Appends an INSERT of the key alone.
fn insert_write(
    place: Place<'_>,
    (timestamp_us, ttl_s): (i64, i32),
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    let prefix = place.name.prefix(place.table);
    let mut values = Values::default();
    place.name.put(place.table, &mut values)?;
    if prefix.is_none() {
        written_columns(place.table, false).for_each(|_| values.put_unset());
    }
    values.put(&timestamp_us.to_be_bytes());
    values.put(&ttl_s.to_be_bytes());
    let kind = prefix.map_or(StatementKind::Insert, StatementKind::InsertPrefix);
    out.push(Write { kind, values });
    Ok(())
}

/// Appends the writes of a row that is not here yet, with a marker.
///
/// # Errors
/// As `cell_writes`.
pub(crate) fn new_row(
    table: &Table,
    row: &SeenRow,
    (read_us, now_s): (i64, i64),
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    let name = row.name();
    let place = Place { table, name: &name };
    // A row of a compact table has no marker: its cell is the row.
    let has_marker = !table.is_compact() || row.cells.is_empty();
    if name.clustering.is_some() && !table.is_counter() && has_marker {
        marker_write(place, marker_of(row, read_us), now_s, out)?;
    }
    cell_writes(place, &row.cells, None, (read_us, now_s), out)
}

/// Appends the deletion of a row.
///
/// # Errors
/// As `cell_writes`.
pub(crate) fn row_deletion(
    place: Place<'_>,
    timestamp_us: i64,
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    let mut key = Values::default();
    place.name.put(place.table, &mut key)?;
    out.push(source::row_deletion(place.table, place.name.prefix(place.table), timestamp_us, &key));
    Ok(())
}

#[cfg(test)]
thread_local! {
    /// How often a cell was looked at.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts that cells are looked at, for the tests.
fn looked(cells: usize) {
    #[cfg(test)]
    LOOKS.with(|looks| looks.set(looks.get() + cells));
    let _ = cells;
}
