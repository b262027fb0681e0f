//! Positions in a partition: the clustering of a row, and the bounds of slices and range tombstones.

use super::source::Source;
use super::value::{Encoded, encode_value, read};
use super::{
    EXCLUDED, GT_NEXT_COMPONENT, LT_NEXT_COMPONENT, NEXT_COMPONENT, NEXT_COMPONENT_EMPTY,
    NEXT_COMPONENT_EMPTY_REVERSED, NEXT_COMPONENT_NULL, TERMINATOR,
};
use crate::schema::Column;
use crate::types::{CqlType, TypeError};

/// The type and order of one clustering column, in any representation that the caller has.
pub trait Component {
    /// The column's type, and whether its order is descending.
    fn ordered_type(&self) -> (&CqlType, bool);
}

impl Component for (CqlType, bool) {
    fn ordered_type(&self) -> (&CqlType, bool) {
        (&self.0, self.1)
    }
}

impl Component for (&CqlType, bool) {
    fn ordered_type(&self) -> (&CqlType, bool) {
        (self.0, self.1)
    }
}

impl Component for Column {
    fn ordered_type(&self) -> (&CqlType, bool) {
        (&self.ty, self.reversed)
    }
}

/// Appends the key of a row: all its clustering values, then a terminator. Without clustering columns all rows have one
/// key.
///
/// # Errors
/// As [`encode_value`]; `out` then ends with part of a key.
#[inline]
pub fn clustering_key<'a>(
    values: impl IntoIterator<Item = Option<&'a [u8]>>,
    types: &[impl Component],
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    prefix(values, types, out)?;
    end_row(out);
    Ok(())
}

/// Appends a bound: a prefix of clustering values and a byte that sorts it before or after all rows with that prefix.
/// Without values the bound is before or after the whole partition.
///
/// # Errors
/// As [`encode_value`]; `out` then ends with part of a bound.
#[inline]
pub fn clustering_bound<'a>(
    values: impl IntoIterator<Item = Option<&'a [u8]>>,
    types: &[impl Component],
    before: bool,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    prefix(values, types, out)?;
    end_bound(before, out);
    Ok(())
}

#[inline]
fn prefix<'a>(
    values: impl IntoIterator<Item = Option<&'a [u8]>>,
    types: &[impl Component],
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    for (value, column) in values.into_iter().zip(types) {
        component(column.ordered_type(), value, out)?;
    }
    Ok(())
}

/// Appends one clustering value of a column of this type and order. `None` is a null, which sorts first in either
/// order.
///
/// # Errors
/// As [`encode_value`].
#[inline]
pub fn component(
    (ty, reversed): (&CqlType, bool),
    value: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let Some(value) = value else {
        out.push(NEXT_COMPONENT_NULL);
        return Ok(());
    };
    let separator = out.len();
    out.push(NEXT_COMPONENT);
    if encode_value(ty, reversed, value, out)? == Encoded::Nothing
        && let Some(separator) = out.get_mut(separator)
    {
        *separator = if reversed { NEXT_COMPONENT_EMPTY_REVERSED } else { NEXT_COMPONENT_EMPTY };
    }
    Ok(())
}

/// Ends the key of a row after its last [`component`].
#[inline]
pub fn end_row(out: &mut Vec<u8>) {
    out.push(TERMINATOR);
}

/// Ends a bound after the last [`component`] of its prefix.
#[inline]
pub fn end_bound(before: bool, out: &mut Vec<u8>) {
    out.push(if before { LT_NEXT_COMPONENT } else { GT_NEXT_COMPONENT });
}

/// Appends the key of the static row.
pub fn static_key(out: &mut Vec<u8>) {
    out.push(EXCLUDED);
}

/// What a position denotes. The last byte of its encoding tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A row.
    Row,
    /// The static row.
    Static,
    /// Before everything with this prefix.
    Before,
    /// After everything with this prefix.
    After,
}

/// A decoded position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedClustering {
    /// The serialised values; `None` is a null.
    pub values: Vec<Option<Vec<u8>>>,
    /// What the position denotes.
    pub position: Position,
}

/// Decodes a position. `encoded` must be the whole position.
///
/// # Errors
/// [`TypeError::Ordered`] if `encoded` is not a position in a table with these clustering columns.
pub fn decode_clustering(encoded: &[u8], types: &[impl Component]) -> Result<DecodedClustering, TypeError> {
    let mut source = Source::new(encoded, 0);
    let mut values = Vec::with_capacity(types.len());
    let position = loop {
        let separator = source.next()?;
        let position = match separator {
            TERMINATOR if values.len() == types.len() => Position::Row,
            LT_NEXT_COMPONENT => Position::Before,
            GT_NEXT_COMPONENT => Position::After,
            EXCLUDED if values.is_empty() => Position::Static,
            _ => {
                let column =
                    types.get(values.len()).ok_or_else(|| source.error("too many clustering values"))?;
                values.push(decode_component(separator, column.ordered_type(), &mut source)?);
                continue;
            }
        };
        break position;
    };
    if source.is_at_end() {
        Ok(DecodedClustering { values, position })
    } else {
        Err(source.error("bytes after the end of a clustering"))
    }
}

fn decode_component(
    separator: u8,
    (ty, reversed): (&CqlType, bool),
    source: &mut Source<'_>,
) -> Result<Option<Vec<u8>>, TypeError> {
    match separator {
        NEXT_COMPONENT_NULL => Ok(None),
        NEXT_COMPONENT_EMPTY | NEXT_COMPONENT_EMPTY_REVERSED => Ok(Some(Vec::new())),
        NEXT_COMPONENT => {
            let mut value = Vec::new();
            source.set_reversed(reversed);
            read(ty, source, &mut value)?;
            source.set_reversed(false);
            Ok(Some(value))
        }
        _ => Err(source.error("no separator of a clustering")),
    }
}
