//! Prints values that consist of others: lists, sets, maps, tuples, user types, vectors.

use super::paint::{Painter, YELLOW, is_printable};
use super::show::{BRACKETS, ValueRules, address, put as put_value};
use helenus_model::types::{CqlType, Elements, Fields, VectorElements};
use std::cmp::Ordering;

/// Appends a valid value that is not empty.
pub fn put(ty: &CqlType, bytes: &[u8], rules: &ValueRules, painter: &mut Painter) {
    match ty {
        CqlType::List { element, .. } => {
            put_all(("[", "]"), Elements::of_list(bytes).map(|value| (&**element, value)), rules, painter);
        }
        CqlType::Set { element, .. } => {
            let mut values: Vec<_> = Elements::of_list(bytes).collect();
            values.sort_by(|a, b| python_order(element, *a, *b));
            put_all(("{", "}"), values.into_iter().map(|value| (&**element, value)), rules, painter);
        }
        CqlType::Vector { element, .. } => {
            let values = VectorElements::of(element, bytes).map(|value| (&**element, Some(value)));
            put_all(("[", "]"), values, rules, painter);
        }
        CqlType::Tuple(types) => {
            put_all(("(", ")"), types.iter().zip(padded(bytes)), rules, painter);
        }
        CqlType::Map { key, value, .. } => put_map((key, value), bytes, rules, painter),
        CqlType::Udt(udt) => {
            painter.put(BRACKETS, "{");
            for (at, ((name, ty), field)) in udt.fields.iter().zip(padded(bytes)).enumerate() {
                if at > 0 {
                    painter.put(BRACKETS, ", ");
                }
                painter.put_escaped(YELLOW, name, is_printable);
                painter.put(BRACKETS, ": ");
                put_value(ty, field, rules, true, painter);
            }
            painter.put(BRACKETS, "}");
        }
        _ => {}
    }
}

fn put_all<'t>(
    (open, close): (&str, &str),
    values: impl Iterator<Item = (&'t CqlType, Option<&'t [u8]>)>,
    rules: &ValueRules,
    painter: &mut Painter,
) {
    painter.put(BRACKETS, open);
    for (at, (ty, value)) in values.enumerate() {
        if at > 0 {
            painter.put(BRACKETS, ", ");
        }
        put_value(ty, value, rules, true, painter);
    }
    painter.put(BRACKETS, close);
}

fn put_map((key, value): (&CqlType, &CqlType), bytes: &[u8], rules: &ValueRules, painter: &mut Painter) {
    let mut elements = Elements::of_map(bytes);
    let mut entries = Vec::new();
    while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
        entries.push((key, value));
    }
    entries.sort_by(|(a, _), (b, _)| python_order(key, *a, *b));
    painter.put(BRACKETS, "{");
    for (at, (found_key, found)) in entries.into_iter().enumerate() {
        if at > 0 {
            painter.put(BRACKETS, ", ");
        }
        put_value(key, found_key, rules, true, painter);
        painter.put(BRACKETS, ": ");
        put_value(value, found, rules, true, painter);
    }
    painter.put(BRACKETS, "}");
}

/// The fields of a value, then nulls: a value may be older than its type's last fields.
fn padded(bytes: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    Fields::of(bytes).chain(std::iter::repeat(None))
}

/// The order of keys in the Python driver. It is that of the type, except for UUIDs, which Cassandra orders by time,
/// and addresses, which Python orders as texts.
fn python_order(ty: &CqlType, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else { return a.is_some().cmp(&b.is_some()) };
    match ty {
        CqlType::Uuid | CqlType::TimeUuid => a.cmp(b),
        CqlType::Inet => {
            let text = |bytes: &[u8]| address(bytes).map(|address| address.to_string());
            text(a).cmp(&text(b))
        }
        // The keys arrive in the type's order already.
        _ => Ordering::Equal,
    }
}
