//! Columns in an answer, byte by byte: the form of `wire::thrift`'s structs without making one.

use crate::family::{Family, Shape};
use crate::name::put_component;
use helenus_model::cell::Cell;
use helenus_model::counter_context;
use helenus_model::row::RowView;
use helenus_wire::thrift::{Type, put_binary, put_field, put_i32, put_i64};

/// What a column holds.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) value: &'a [u8],
    pub(crate) timestamp_us: i64,
    pub(crate) ttl_s: i32,
}

impl<'a> Found<'a> {
    pub(crate) fn new(cell: &Cell, value: &'a [u8]) -> Found<'a> {
        Found { value, timestamp_us: cell.timestamp_us, ttl_s: cell.ttl_s }
    }
}

/// Appends a `Column`, or a `CounterColumn` if the family counts. `name` writes the name with its length.
#[inline]
pub(crate) fn put_column(
    counts: bool,
    name: impl FnOnce(&mut Vec<u8>),
    found: &Found<'_>,
    out: &mut Vec<u8>,
) {
    put_field(Type::String, 1, out);
    name(out);
    if counts {
        put_field(Type::I64, 2, out);
        put_i64(counter_context::total(found.value), out);
    } else {
        put_field(Type::String, 2, out);
        put_binary(found.value, out);
        put_field(Type::I64, 3, out);
        put_i64(found.timestamp_us, out);
        if found.ttl_s != 0 {
            put_field(Type::I32, 4, out);
            put_i32(found.ttl_s, out);
        }
    }
    out.push(Type::Stop as u8);
}

/// Appends a `ColumnOrSuperColumn` that holds a column of a name that is there in one piece.
#[inline]
pub(crate) fn put_named_column(counts: bool, name: &[u8], found: &Found<'_>, out: &mut Vec<u8>) {
    if counts || found.ttl_s != 0 {
        return put_held_column(counts, |out| put_binary(name, out), found, out);
    }
    // The same bytes in few steps: most columns are of this kind. Three heads of fields and a length, name, head and length,
    // value, head, timestamp and the ends of two structs.
    const STRUCT: u8 = Type::Struct as u8;
    const STRING: u8 = Type::String as u8;
    let [a, b, c, d] = (name.len() as u32).to_be_bytes();
    out.reserve(30 + name.len() + found.value.len());
    out.extend_from_slice(&[STRUCT, 0, 1, STRING, 0, 1, a, b, c, d]);
    out.extend_from_slice(name);
    let [a, b, c, d] = (found.value.len() as u32).to_be_bytes();
    out.extend_from_slice(&[STRING, 0, 2, a, b, c, d]);
    out.extend_from_slice(found.value);
    let [a, b, c, d, e, f, g, h] = found.timestamp_us.to_be_bytes();
    out.extend_from_slice(&[Type::I64 as u8, 0, 3, a, b, c, d, e, f, g, h, 0, 0]);
}

/// Appends a `ColumnOrSuperColumn` that holds a column.
#[inline]
pub(crate) fn put_held_column(
    counts: bool,
    name: impl FnOnce(&mut Vec<u8>),
    found: &Found<'_>,
    out: &mut Vec<u8>,
) {
    put_field(Type::Struct, if counts { 3 } else { 1 }, out);
    put_column(counts, name, found, out);
    out.push(Type::Stop as u8);
}

/// Appends the column that a row of a dynamic, static or composite family stands for.
#[inline]
pub(crate) fn put_row(family: &Family, row: RowView<'_>, found: &Found<'_>, out: &mut Vec<u8>) {
    if family.shape == Shape::Composite {
        return put_held_column(family.counts, |out| put_row_name(family, row, out), found, out);
    }
    put_named_column(family.counts, row.clustering(0).unwrap_or_default(), found, out);
}

/// Appends the name that a row of a dynamic or composite family stands for, with its length.
#[inline]
pub(crate) fn put_row_name(family: &Family, row: RowView<'_>, out: &mut Vec<u8>) {
    if family.table.clustering.len() == 1 && family.shape != Shape::Composite {
        return put_binary(row.clustering(0).unwrap_or_default(), out);
    }
    let at = out.len();
    put_i32(0, out);
    for index in 0..family.table.clustering.len() {
        // A name may have fewer components than there are: the rest is null.
        let Some(value) = row.clustering(index) else { break };
        put_component(value, out);
    }
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}
