//! The statements of a family, as texts that are prepared once.

use crate::families::Layout;
use helenus_cql::CqlError;
use helenus_model::byte_comparable::{Position, decode_clustering};
use helenus_model::filter::{AFTER_ALL, ClusteringFilter, Slice};
use helenus_model::schema::{Column, Table};
use helenus_model::types::quote_identifier;

/// Names in one statement.
const NAMES_MAX: usize = 100;

/// A statement with the values of its markers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) text: String,
    pub(crate) values: Vec<Vec<u8>>,
}

/// The name of the table.
pub(crate) fn table_name(table: &Table) -> String {
    format!("{}.{}", quote_identifier(&table.keyspace), quote_identifier(&table.name))
}

/// The columns with commas between them.
pub(crate) fn list(columns: &[Column]) -> String {
    let names: Vec<_> = columns.iter().map(|column| quote_identifier(&column.name)).collect();
    names.join(", ")
}

/// The restriction to one partition.
pub(crate) fn of_key(table: &Table) -> String {
    all_equal(&table.partition_key)
}

/// The restriction to one row of a partition.
pub(crate) fn of_row(table: &Table) -> String {
    format!("{} AND {}", of_key(table), all_equal(&table.clustering))
}

fn all_equal(columns: &[Column]) -> String {
    let each: Vec<_> =
        columns.iter().map(|column| format!("{} = ?", quote_identifier(&column.name))).collect();
    each.join(" AND ")
}

/// What is selected of cells: value, timestamp and TTL of each; of counters the value alone.
pub(crate) fn cells<'c>(table: &Table, columns: impl Iterator<Item = &'c Column>) -> String {
    let is_counter = table.is_counter();
    let each = columns.map(|column| {
        let name = quote_identifier(&column.name);
        if is_counter { name.to_string() } else { format!("{name}, WRITETIME({name}), TTL({name})") }
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Reads the rows of a partition, one statement after the other.
///
/// # Errors
/// A position is none of this table.
pub(crate) fn select_rows(
    table: &Table,
    (key, filter, reversed): (&[Vec<u8>], &ClusteringFilter, bool),
) -> Result<Vec<Bound>, CqlError> {
    if Layout::of(table) == Layout::Columns {
        return Ok(Vec::new());
    }
    let mut restrictions = match filter {
        ClusteringFilter::Names(names) => {
            let chunks = names.chunks(NAMES_MAX).map(|names| restrict_names(table, names));
            chunks.collect::<Result<Vec<_>, _>>()?
        }
        ClusteringFilter::Slices(slices) => {
            let each = slices.iter().map(|slice| restrict_slice(table, slice));
            each.collect::<Result<Vec<_>, _>>()?
        }
    };
    restrictions.retain(|bound| bound.text != NOTHING);
    if reversed {
        restrictions.reverse();
    }
    let order = match reversed {
        false => String::new(),
        true => {
            let each = table.clustering.iter().map(|column| {
                let direction = if column.reversed { "ASC" } else { "DESC" };
                format!("{} {direction}", quote_identifier(&column.name))
            });
            format!(" ORDER BY {}", each.collect::<Vec<_>>().join(", "))
        }
    };
    let names = list(&table.clustering);
    let cells = cells(table, table.regulars.iter());
    let head = format!("SELECT {names}, {cells} FROM {} WHERE {}", table_name(table), of_key(table));
    let statement = |bound: Bound| Bound {
        text: format!("{head}{}{order}", bound.text),
        values: key.iter().cloned().chain(bound.values).collect(),
    };
    Ok(restrictions.into_iter().map(statement).collect())
}

/// A restriction that no row meets.
const NOTHING: &str = "nothing";

fn restrict_names(table: &Table, names: &[Vec<u8>]) -> Result<Bound, CqlError> {
    let mut decoded = Vec::with_capacity(names.len());
    for name in names {
        let values = decode_clustering(name, &table.clustering).map_err(not_of_table)?.values;
        // A name with fewer components is in no row of a table without COMPACT STORAGE.
        if let Some(values) = values.into_iter().collect::<Option<Vec<_>>>() {
            decoded.push(values);
        }
    }
    match (&decoded[..], table.clustering.len()) {
        ([], _) => Ok(Bound { text: NOTHING.to_owned(), values: Vec::new() }),
        ([one], _) => {
            Ok(Bound { text: format!(" AND {}", all_equal(&table.clustering)), values: one.clone() })
        }
        (several, 1) => {
            let value = collection(several.iter().flatten().map(Vec::as_slice));
            Ok(Bound { text: format!(" AND {} IN ?", list(&table.clustering)), values: vec![value] })
        }
        (several, _) => {
            let tuples: Vec<Vec<u8>> = several.iter().map(|values| tuple(values)).collect();
            let value = collection(tuples.iter().map(Vec::as_slice));
            Ok(Bound { text: format!(" AND ({}) IN ?", list(&table.clustering)), values: vec![value] })
        }
    }
}

/// Restricts rows to a slice.
pub(crate) fn restrict_slice(table: &Table, slice: &Slice) -> Result<Bound, CqlError> {
    let mut bound = Bound::default();
    if slice.is_empty() {
        return Ok(Bound { text: NOTHING.to_owned(), values: Vec::new() });
    }
    for (position, is_start) in [(&slice.start, true), (&slice.end, false)] {
        if position.is_empty() || &position[..] == AFTER_ALL {
            continue;
        }
        let decoded = decode_clustering(position, &table.clustering).map_err(not_of_table)?;
        let values: Option<Vec<_>> = decoded.values.into_iter().collect();
        let before = match decoded.position {
            Position::Before | Position::Static => true,
            Position::After => false,
            // A row's own position: an end does not include it.
            Position::Row => true,
        };
        end(table, &values.unwrap_or_default(), (is_start, before), &mut bound);
    }
    Ok(bound)
}

/// Appends one end of a range of rows: before or after all that begin with `values`.
pub(crate) fn end(table: &Table, values: &[Vec<u8>], (is_start, before): (bool, bool), bound: &mut Bound) {
    let Some(columns) = table.clustering.get(..values.len()).filter(|columns| !columns.is_empty()) else {
        return;
    };
    let is_reversed = table.clustering.first().is_some_and(|column| column.reversed);
    let sign = match (is_start, before, is_reversed) {
        (true, true, false) | (false, false, true) => ">=",
        (true, false, false) | (false, true, true) => ">",
        (false, true, false) | (true, false, true) => "<",
        (false, false, false) | (true, true, true) => "<=",
    };
    let markers = vec!["?"; values.len()].join(", ");
    bound.text += &match table.clustering.len() {
        1 => format!(" AND {} {sign} ?", list(columns)),
        _ => format!(" AND ({}) {sign} ({markers})", list(columns)),
    };
    bound.values.extend_from_slice(values);
}

fn not_of_table(error: helenus_model::types::TypeError) -> CqlError {
    CqlError::Invalid(error.to_string())
}

/// A list as a value.
fn collection<'v>(elements: impl Iterator<Item = &'v [u8]> + Clone) -> Vec<u8> {
    let mut value = (elements.clone().count() as i32).to_be_bytes().to_vec();
    elements.for_each(|element| put(element, &mut value));
    value
}

fn tuple(fields: &[Vec<u8>]) -> Vec<u8> {
    let mut value = Vec::new();
    fields.iter().for_each(|field| put(field, &mut value));
    value
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Reads the static columns of a partition, or the row of a table without clustering.
pub(crate) fn select_declared(table: &Table, columns: &[&Column], restriction: &str) -> String {
    let distinct = if Layout::of(table) == Layout::Columns { "" } else { "DISTINCT " };
    let cells = cells(table, columns.iter().copied());
    let keys = list(&table.partition_key);
    let comma = if cells.is_empty() { "" } else { ", " };
    format!("SELECT {distinct}{keys}{comma}{cells} FROM {} WHERE {restriction}", table_name(table))
}

/// Reads the keys of partitions in the order of tokens.
pub(crate) fn select_keys(table: &Table, restriction: &str) -> String {
    // Where a partition has one row, DISTINCT would refuse conditions on its columns.
    let distinct = if Layout::of(table) == Layout::Columns { "" } else { "DISTINCT " };
    let keys = list(&table.partition_key);
    format!("SELECT {distinct}{keys} FROM {}{restriction}", table_name(table))
}

/// Reads nothing; for who may not read the table, it is refused.
pub(crate) fn select_nothing(table: &Table) -> String {
    let keys = list(&table.partition_key);
    format!("SELECT {keys} FROM {} WHERE token({keys}) > 0 AND token({keys}) < 0", table_name(table))
}
