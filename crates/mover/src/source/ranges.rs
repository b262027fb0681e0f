//! Makes the writes of range tombstones.
//!
//! A range may begin and end at any depth of the clustering. It is cut into parts that CQL can delete: rows with equal values in
//! some columns, and between two bounds in the next. The parts touch each other and cover what the range covers.

use super::error::SourceError;
use super::rows::{put_clustering, put_partition_key};
use super::texts::{RangeShape, StatementKind};
use super::write::{Values, Write};
use helenus_model::deletion::DeletionTime;
use helenus_model::mutation::RangeBound;
use helenus_model::range_tombstone::MarkerView;
use helenus_model::schema::Table;
use helenus_model::types::CqlType;

/// A bound: the values of a prefix of the clustering, and whether it lies before the rows with the prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bound {
    values: Vec<Vec<u8>>,
    before: bool,
}

/// Pairs the markers of a partition, and makes writes of the ranges between them.
#[derive(Clone, Debug, Default)]
pub struct OpenRange {
    open: Option<(Bound, DeletionTime)>,
}

impl OpenRange {
    /// Begins with another partition.
    pub fn clear(&mut self) {
        self.open = None;
    }

    /// Takes a marker; appends the writes of the range that ends there.
    ///
    /// # Errors
    /// The range cannot be written by CQL.
    pub fn marker(
        &mut self,
        (table, key): (&Table, &[u8]),
        marker: MarkerView<'_>,
        out: &mut Vec<Write>,
    ) -> Result<(), SourceError> {
        let values = (0..marker.marker.clustering.len()).map(|index| marker.clustering(index));
        let bound = Bound::of(table, values, marker.marker.before)?;
        if let Some((start, deletion)) = self.open.take().filter(|_| !marker.marker.close.is_live()) {
            write_range((table, key), (&start, &bound), deletion, out)?;
        }
        if !marker.marker.open.is_live() {
            self.open = Some((bound, marker.marker.open));
        }
        Ok(())
    }

    /// Appends the writes of a range deletion, as a statement makes it.
    ///
    /// # Errors
    /// The range cannot be written by CQL.
    pub fn deletion(
        (table, key): (&Table, &[u8]),
        (start, end): (&RangeBound<'_>, &RangeBound<'_>),
        deletion: DeletionTime,
        out: &mut Vec<Write>,
    ) -> Result<(), SourceError> {
        let start = Bound::of(table, start.values(), start.before)?;
        let end = Bound::of(table, end.values(), end.before)?;
        write_range((table, key), (&start, &end), deletion, out)
    }
}

impl Bound {
    fn of<'v>(
        table: &Table,
        values: impl Iterator<Item = Option<&'v [u8]>>,
        before: bool,
    ) -> Result<Bound, SourceError> {
        let name = |at: usize| table.clustering.get(at).map(|column| column.name.to_string());
        let value = |(at, value): (usize, Option<&[u8]>)| match value {
            Some(value) => Ok(value.to_vec()),
            None => Err(SourceError::NoClustering { column: name(at).unwrap_or_default() }),
        };
        Ok(Bound { values: values.enumerate().map(value).collect::<Result<_, _>>()?, before })
    }
}

/// One part of a range: rows with a prefix, between bounds of the next column.
struct Part<'p> {
    prefix: &'p [Vec<u8>],
    lower: Option<(&'p [u8], bool)>,
    upper: Option<(&'p [u8], bool)>,
}

fn write_range(
    (table, key): (&Table, &[u8]),
    (start, end): (&Bound, &Bound),
    deletion: DeletionTime,
    out: &mut Vec<Write>,
) -> Result<(), SourceError> {
    // The other side hides the rows of such a table, and has none.
    if table.is_static_compact() {
        return Ok(());
    }
    let mut put = |part: Part<'_>| -> Result<(), SourceError> {
        let mut values = Values::default();
        values.put(&deletion.timestamp_us.to_be_bytes());
        put_partition_key(table, key, &mut values);
        put_clustering(table, part.prefix.iter().map(|value| Some(&value[..])), &mut values)?;
        for (value, _) in [part.lower, part.upper].into_iter().flatten() {
            values.put(value);
        }
        let shape = RangeShape {
            prefix: part.prefix.len() as u16,
            lower: part.lower.map(|(_, is_inclusive)| is_inclusive),
            upper: part.upper.map(|(_, is_inclusive)| is_inclusive),
        };
        out.push(Write { kind: StatementKind::DeleteRange(shape), values });
        Ok(())
    };
    let (from, to) = (&start.values, &end.values);
    let common = from.iter().zip(to).take_while(|(from, to)| from == to).count();
    // One bound is a prefix of the other, or both are the same: the shorter one leaves its side open.
    let lower = from.get(common);
    let upper = to.get(common);
    // A bound that ends at the common prefix and excludes its rows leaves nothing.
    if (lower.is_none() && !start.before) || (upper.is_none() && end.before) {
        return Ok(());
    }
    if common == 0 && lower.is_none() && upper.is_none() {
        // All rows, but not the static row: without a bound it would be the partition. So in two parts, at any value.
        let first = table.clustering.first().and_then(|column| any_value(&column.ty));
        let split = first.ok_or(SourceError::WholeRange)?;
        put(Part { prefix: &[], lower: None, upper: Some((&split, false)) })?;
        return put(Part { prefix: &[], lower: Some((&split, true)), upper: None });
    }
    // The deeper parts of the start, innermost first.
    for depth in (common + 1..from.len()).rev() {
        let is_inclusive = depth + 1 == from.len() && start.before;
        put(Part { prefix: &from[..depth], lower: Some((&from[depth], is_inclusive)), upper: None })?;
    }
    let lower = lower.map(|value| (&value[..], from.len() == common + 1 && start.before));
    let upper = upper.map(|value| (&value[..], to.len() == common + 1 && !end.before));
    put(Part { prefix: &from[..common], lower, upper })?;
    for depth in common + 1..to.len() {
        let is_inclusive = depth + 1 == to.len() && !end.before;
        put(Part { prefix: &to[..depth], lower: None, upper: Some((&to[depth], is_inclusive)) })?;
    }
    Ok(())
}

/// Any valid value of a type that can be clustering.
fn any_value(ty: &CqlType) -> Option<Vec<u8>> {
    /// A time UUID is one of version 1.
    const VERSION_AT: usize = 6;
    let zeros = |len: usize| Some(vec![0; len]);
    match ty {
        CqlType::Ascii | CqlType::Blob | CqlType::Text | CqlType::Tuple(_) | CqlType::Udt(_) => zeros(0),
        CqlType::Boolean | CqlType::TinyInt | CqlType::Varint => zeros(1),
        CqlType::SmallInt => zeros(2),
        CqlType::Int | CqlType::Float | CqlType::Date | CqlType::Inet => zeros(4),
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => zeros(4),
        CqlType::Decimal => zeros(5),
        CqlType::BigInt | CqlType::Double | CqlType::Time | CqlType::Timestamp => zeros(8),
        CqlType::Uuid => zeros(16),
        CqlType::TimeUuid => {
            let mut value = vec![0; 16];
            *value.get_mut(VERSION_AT)? = 0x10;
            Some(value)
        }
        _ => None,
    }
}
