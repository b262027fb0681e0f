//! Writes columns into an answer, byte by byte, in the encoding of `wire::thrift`'s structs.

use crate::family::{Family, Shape};
use crate::name::{COMPONENT_BYTES, put_component};
use helenus_model::cell::Cell;
use helenus_model::counter_context;
use helenus_model::row::RowView;
use helenus_model::row_batch::RowBatch;
use helenus_wire::append;
use helenus_wire::thrift::{Type, put_binary, put_field, put_i32, put_i64};

/// The content of a column.
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

/// Appends a `Column`, or a `CounterColumn` in a counter family. `name` writes the name with its length.
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

/// Appends a `ColumnOrSuperColumn` with a column whose name is contiguous in memory.
#[inline]
pub(crate) fn put_named_column(counts: bool, name: &[u8], found: &Found<'_>, out: &mut Vec<u8>) {
    if counts || found.ttl_s != 0 {
        return put_held_column(counts, |out| put_binary(name, out), found, out);
    }
    // The same bytes in fewer steps, because most columns are of this kind.
    out.reserve(COLUMN_BYTES + name.len() + found.value.len());
    out.extend_from_slice(&before_name(name.len()));
    out.extend_from_slice(name);
    out.extend_from_slice(&before_value(found.value.len()));
    out.extend_from_slice(found.value);
    out.extend_from_slice(&behind_value(found.timestamp_us));
}

/// Bytes of a column without TTL, except its name and value.
const COLUMN_BYTES: usize = 30;

/// The header of the column's field in its holder, the header of the name's field, and the length of the name.
#[inline(always)]
fn before_name(length: usize) -> [u8; 10] {
    const STRUCT: u8 = Type::Struct as u8;
    const STRING: u8 = Type::String as u8;
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [STRUCT, 0, 1, STRING, 0, 1, a, b, c, d]
}

/// The header of the value's field, and the length of the value.
#[inline(always)]
fn before_value(length: usize) -> [u8; 7] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [Type::String as u8, 0, 2, a, b, c, d]
}

/// The field of the timestamp, and the ends of the column and of its holder.
#[inline(always)]
fn behind_value(timestamp_us: i64) -> [u8; 13] {
    let [a, b, c, d, e, f, g, h] = timestamp_us.to_be_bytes();
    [Type::I64 as u8, 0, 3, a, b, c, d, e, f, g, h, 0, 0]
}

/// Appends the columns of a row batch in the same form as `put_row`. `place` is the index of their value.
pub(crate) fn put_batch(family: &Family, batch: &RowBatch<'_>, place: usize, out: &mut Vec<u8>) {
    let is_composite = family.shape == Shape::Composite;
    // A component has its length before it and one byte after it.
    let around = COLUMN_BYTES + if is_composite { COMPONENT_BYTES * batch.clustering } else { 0 };
    let bytes: usize = batch.values.iter().map(|value| value.value.len as usize).sum();
    append(out, bytes + batch.len() * around, |out| {
        for row in batch.rows() {
            let (names, _) = row.split_at(batch.clustering);
            if is_composite {
                let length = names.iter().map(|name| COMPONENT_BYTES + name.value.len as usize).sum();
                out.put(&before_name(length));
                for name in names {
                    out.put(&(name.value.len as u16).to_be_bytes());
                    out.put_span(batch.data, name.value);
                    out.put(&[0]);
                }
            } else if let [name, ..] = names {
                out.put(&before_name(name.value.len as usize));
                out.put_span(batch.data, name.value);
            }
            if let Some(value) = row.get(place) {
                out.put(&before_value(value.value.len as usize));
                out.put_span(batch.data, value.value);
                out.put(&behind_value(value.timestamp_us));
            }
        }
    });
}

/// Appends a `ColumnOrSuperColumn` with a column.
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

/// Appends the column of a row of a dynamic, static or composite family.
#[inline]
pub(crate) fn put_row(family: &Family, row: RowView<'_>, found: &Found<'_>, out: &mut Vec<u8>) {
    if family.shape == Shape::Composite {
        return put_held_column(family.counts, |out| put_row_name(family, row, out), found, out);
    }
    put_named_column(family.counts, row.clustering(0).unwrap_or_default(), found, out);
}

/// Appends the column name of a row of a dynamic or composite family, with its length.
#[inline]
pub(crate) fn put_row_name(family: &Family, row: RowView<'_>, out: &mut Vec<u8>) {
    if family.table.clustering.len() == 1 && family.shape != Shape::Composite {
        return put_binary(row.clustering(0).unwrap_or_default(), out);
    }
    let at = out.len();
    put_i32(0, out);
    for index in 0..family.table.clustering.len() {
        // A name may have fewer components than the table has clustering columns; the rest is null.
        let Some(value) = row.clustering(index) else { break };
        put_component(value, out);
    }
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}
