//! Finds the cells of two rows that differ, in value, timestamp or expiry.
//!
//! Elements of lists are compared by their place; there an element may be as late as the newest of its list here, dead or alive, and somewhat
//! later, because a list that was sent twice is replaced (`lists`). An expiry may differ by some seconds, because a TTL is sent as what is left of it;
//! a cell that expires within these seconds may be gone on one side.

use super::row::{SeenCell, SeenRow, Times, has_no_ttl};
use helenus_model::cell::ColumnId;
use helenus_model::schema::Table;
use helenus_model::types::CqlType;

/// Microseconds by which an element of a list may be later than the newest of the list here: one for each time it was sent.
const LIST_US: i64 = 1_000;

/// A cell that differs, or is only on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellDifference {
    /// Its place among the elements of a list; 0 otherwise.
    pub place: usize,
    /// The cell here.
    pub here: Option<SeenCell>,
    /// The cell at the cluster.
    pub there: Option<SeenCell>,
}

/// How two rows differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The row is only here.
    OnlyHere,
    /// The row is only at the cluster.
    OnlyThere,
    /// Cells differ.
    Cells(Vec<CellDifference>),
}

/// The time of a comparison, and the seconds by which an expiry may differ.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Seconds since the epoch.
    pub now_s: i64,
    /// Seconds.
    pub slack_s: i64,
}

impl Tolerance {
    /// Whether a time to live is about to end, so that the other side may not show the cell any more.
    fn is_ending(self, times: Option<Times>) -> bool {
        times.is_some_and(|times| !has_no_ttl(times) && times.expires_s <= self.now_s + self.slack_s)
    }

    /// `latest_us`: the latest timestamp of an element of a list.
    fn is_same(self, here: &SeenCell, there: &SeenCell, latest_us: Option<i64>) -> bool {
        let same_times = match (here.times, there.times) {
            (Some(here), Some(there)) => {
                let same_expiry = match (has_no_ttl(here), has_no_ttl(there)) {
                    (false, false) => here.expires_s.abs_diff(there.expires_s) <= self.slack_s.unsigned_abs(),
                    (one, other) => one == other,
                };
                let later = here.timestamp_us..=latest_us.unwrap_or(here.timestamp_us);
                later.contains(&there.timestamp_us) && same_expiry
            }
            _ => true,
        };
        here.value == there.value && same_times
    }
}

/// Compares a row of both sides; `None` if they are the same.
pub fn compare(
    table: &Table,
    here: Option<&SeenRow>,
    there: Option<&SeenRow>,
    tolerance: Tolerance,
) -> Option<Difference> {
    match (here, there) {
        (None, None) => None,
        (Some(row), None) => (!is_ending(row, tolerance)).then_some(Difference::OnlyHere),
        (None, Some(row)) => (!is_ending(row, tolerance)).then_some(Difference::OnlyThere),
        (Some(here), Some(there)) => {
            let cells = differing_cells(table, here, &there.cells, tolerance);
            (!cells.is_empty()).then_some(Difference::Cells(cells))
        }
    }
}

/// Whether all that shows a row is about to expire.
fn is_ending(row: &SeenRow, tolerance: Tolerance) -> bool {
    match row.cells.is_empty() {
        true => tolerance.is_ending(row.marker),
        false => row.cells.iter().all(|cell| tolerance.is_ending(cell.times)),
    }
}

/// A column, a path, and the place among equal ones.
type Name<'c> = (ColumnId, &'c [u8], usize);

/// The cells of a row with their names.
fn named(cells: &[SeenCell]) -> impl Iterator<Item = (Name<'_>, &SeenCell)> {
    let mut last: Option<(ColumnId, &[u8])> = None;
    let mut place = 0;
    cells.iter().map(move |cell| {
        let name = (cell.column, &cell.path[..]);
        place = if last == Some(name) { place + 1 } else { 0 };
        last = Some(name);
        ((name.0, name.1, place), cell)
    })
}

fn differing_cells(
    table: &Table,
    row: &SeenRow,
    there: &[SeenCell],
    tolerance: Tolerance,
) -> Vec<CellDifference> {
    let mut found = Vec::new();
    // Of the column at hand, so that a long list is read once.
    let mut latest: Option<(ColumnId, Option<i64>)> = None;
    let (mut here, mut there) = (named(&row.cells).peekable(), named(there).peekable());
    loop {
        let order = match (here.peek(), there.peek()) {
            (None, None) => return found,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((one, _)), Some((other, _))) => one.cmp(other),
        };
        let one = if order.is_le() { here.next() } else { None };
        let other = if order.is_ge() { there.next() } else { None };
        let is_same = match (one, other) {
            (Some((_, one)), Some((_, other))) => {
                let of_column = latest.filter(|(column, _)| *column == one.column);
                let of_column = of_column.unwrap_or_else(|| (one.column, latest_us(table, row, one.column)));
                latest = Some(of_column);
                tolerance.is_same(one, other, of_column.1)
            }
            // A compact table of keys alone hides this cell, and without one the row is shown all the same.
            (Some((_, one)), None) if has_no_values(table, one.column) => true,
            (one, other) => one.or(other).is_none_or(|(_, cell)| tolerance.is_ending(cell.times)),
        };
        if !is_same {
            let place = one.or(other).map_or(0, |((_, _, place), _)| place);
            let own = |side: Option<(Name<'_>, &SeenCell)>| side.map(|(_, cell)| cell.clone());
            found.push(CellDifference { place, here: own(one), there: own(other) });
        }
    }
}

/// Whether the cells of a column have no values (`EmptyType`).
pub(super) fn has_no_values(table: &Table, column: ColumnId) -> bool {
    table.column_by_id(column).is_some_and(|column| column.ty == CqlType::Empty)
}

/// The latest timestamp that an element of a list may have there; `None` for other columns.
fn latest_us(table: &Table, row: &SeenRow, column: ColumnId) -> Option<i64> {
    let ty = &table.column_by_id(column)?.ty;
    if !matches!(ty, CqlType::List { frozen: false, .. }) {
        return None;
    }
    let times = row.cells.iter().filter(|cell| cell.column == column).filter_map(|cell| cell.times);
    let newest_us = row.lists_us.iter().filter(|list| list.0 == column).map(|list| list.1);
    times.map(|times| times.timestamp_us).chain(newest_us).max().map(|newest| newest.saturating_add(LIST_US))
}
