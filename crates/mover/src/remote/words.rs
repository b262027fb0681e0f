//! Differences in words: the row's key, the column, and both cells.

use super::compare::{CellDifference, Difference, Tolerance};
use super::row::{SeenCell, Times, has_no_ttl};
use crate::source::RowName;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{CqlType, key_values, to_cql_literal};

/// Characters of a value that are shown.
const VALUE_CHARS: usize = 60;
/// Cells of a row that are named.
const CELLS: usize = 5;

/// The key of a row, such as `p = 1, c = 'x'`.
pub(crate) fn key_words(table: &Table, name: &RowName) -> String {
    let part =
        |(column, value): (&Column, &[u8])| format!("{} = {}", column.name, literal(&column.ty, value));
    let keys = table.partition_key.iter().zip(key_values(table.partition_key.len(), &name.key));
    let mut words: Vec<String> = keys.map(part).collect();
    match &name.clustering {
        Some(values) => {
            let values = values.iter().map(|value| &value[..]);
            words.extend(table.clustering.iter().zip(values).map(part));
        }
        None => words.push("static".to_owned()),
    }
    words.join(", ")
}

/// What differs in a row.
pub(crate) fn difference_words(table: &Table, difference: &Difference, tolerance: Tolerance) -> String {
    match difference {
        Difference::OnlyHere => "the target does not have the row".to_owned(),
        Difference::OnlyThere => "only the target has the row".to_owned(),
        Difference::Cells(cells) => {
            let shown = cells.iter().take(CELLS).map(|cell| cell_words(table, cell, tolerance.now_s));
            let mut text = shown.collect::<Vec<_>>().join("; ");
            if let Some(left) = cells.len().checked_sub(CELLS).filter(|left| *left > 0) {
                text.push_str(&format!("; and {left} more cells"));
            }
            text
        }
    }
}

fn cell_words(table: &Table, cell: &CellDifference, now_s: i64) -> String {
    let either = cell.here.as_ref().or(cell.there.as_ref());
    let Some((column, seen)) = either.and_then(|seen| Some((table.column_by_id(seen.column)?, seen))) else {
        return String::new();
    };
    let name = cell_name(column, seen, cell.place);
    let value = |seen: &SeenCell| literal(value_type(&column.ty, &seen.path), &seen.value);
    let words = |seen: &SeenCell| {
        let times = seen.times.map(|times| times_words(times, now_s)).unwrap_or_default();
        match &column.ty {
            // The name has the value.
            CqlType::Set { frozen: false, .. } => times.trim_start_matches(", ").to_owned(),
            _ => format!("{}{times}", value(seen)),
        }
    };
    match (&cell.here, &cell.there) {
        (Some(here), Some(there)) => {
            format!("{name}: {} here, {} at the target", words(here), words(there))
        }
        (Some(here), None) => format!("{name}: {} here, nothing at the target", words(here)),
        (None, Some(there)) => format!("{name}: nothing here, {} at the target", words(there)),
        (None, None) => String::new(),
    }
}

/// The column, with the element or the field.
fn cell_name(column: &Column, cell: &SeenCell, place: usize) -> String {
    let name = &column.name;
    match &column.ty {
        CqlType::Map { key, frozen: false, .. } => format!("{name}[{}]", literal(key, &cell.path)),
        CqlType::Set { element, frozen: false } => format!("{name}{{{}}}", literal(element, &cell.path)),
        CqlType::List { frozen: false, .. } => format!("{name}[{place}]"),
        CqlType::Udt(udt) if !udt.frozen => match field(&cell.path).and_then(|at| udt.fields.get(at)) {
            Some((field, _)) => format!("{name}.{field}"),
            None => name.to_string(),
        },
        _ => name.to_string(),
    }
}

fn field(path: &[u8]) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(*path.first_chunk()?)))
}

/// The type of a cell's value.
fn value_type<'t>(ty: &'t CqlType, path: &[u8]) -> &'t CqlType {
    match ty {
        CqlType::Map { value, frozen: false, .. } => value,
        CqlType::List { element, frozen: false } | CqlType::Set { element, frozen: false } => element,
        CqlType::Udt(udt) if !udt.frozen => {
            field(path).and_then(|at| udt.fields.get(at)).map_or(ty, |(_, ty)| ty)
        }
        // A counter's sum.
        CqlType::Counter => &CqlType::BigInt,
        _ => ty,
    }
}

fn times_words(times: Times, now_s: i64) -> String {
    let ttl = match has_no_ttl(times) {
        true => String::new(),
        false => format!(", TTL {}", times.expires_s.saturating_sub(now_s)),
    };
    format!(", timestamp {}{ttl}", times.timestamp_us)
}

fn literal(ty: &CqlType, value: &[u8]) -> String {
    let text = to_cql_literal(ty, Some(value));
    match text.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
