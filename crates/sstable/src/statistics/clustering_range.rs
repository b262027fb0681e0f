//! The smallest slice of clusterings that covers a file. Reads of other clusterings skip the file.
//!
//! Source: `Slice.Serializer`, `ClusteringBoundOrBoundary.Serializer`, `ClusteringPrefix.Serializer`.

use super::input::{Input, write_vint_bytes};
use crate::error::Result;
use helenus_model::range_tombstone::BoundKind;
use helenus_model::types::CqlType;
use helenus_model::vint;

/// One end of the range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusteringBound {
    /// Start or end, inclusive or exclusive. Not a boundary.
    pub kind: BoundKind,
    /// Serialised values of the first clustering columns; `None` for null.
    pub values: Vec<Option<Vec<u8>>>,
}

/// The range of a file's clusterings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusteringRange {
    /// Its start.
    pub start: ClusteringBound,
    /// Its end.
    pub end: ClusteringBound,
}

/// Number of values whose null and empty ones are described by one header.
const VALUES_A_HEADER: usize = 32;

impl ClusteringRange {
    /// The range of a file that has at most static rows. No clustering is in it.
    pub const EMPTY: ClusteringRange = ClusteringRange {
        start: ClusteringBound { kind: BoundKind::ExclStart, values: Vec::new() },
        end: ClusteringBound { kind: BoundKind::ExclEnd, values: Vec::new() },
    };

    /// The range of all clusterings, for files that do not contain a narrower one.
    pub fn all() -> ClusteringRange {
        ClusteringRange::inclusive(Vec::new(), Vec::new())
    }

    fn inclusive(start: Vec<Vec<u8>>, end: Vec<Vec<u8>>) -> ClusteringRange {
        let bound = |kind, values: Vec<Vec<u8>>| ClusteringBound {
            kind,
            values: values.into_iter().map(Some).collect(),
        };
        ClusteringRange { start: bound(BoundKind::InclStart, start), end: bound(BoundKind::InclEnd, end) }
    }

    /// Whether no clustering is in it.
    pub fn is_empty(&self) -> bool {
        *self == ClusteringRange::EMPTY
    }

    pub(super) fn write(&self, types: &[String], out: &mut Vec<u8>) {
        for bound in [&self.start, &self.end] {
            out.push(bound.kind as u8);
            out.extend_from_slice(&(bound.values.len() as u16).to_be_bytes());
            let mut types = types.iter();
            for values in bound.values.chunks(VALUES_A_HEADER) {
                let mut header = 0_u64;
                for (at, value) in values.iter().enumerate() {
                    header |= match value {
                        None => 2 << (2 * at),
                        Some(value) if value.is_empty() => 1 << (2 * at),
                        Some(_) => 0,
                    };
                }
                vint::write_unsigned(header, out);
                for value in values {
                    let fixed = types.next().and_then(|ty| fixed_length(ty));
                    match value.as_deref() {
                        None | Some([]) => {}
                        Some(value) if fixed.is_some() => out.extend_from_slice(value),
                        Some(value) => write_vint_bytes(value, out),
                    }
                }
            }
        }
    }

    /// Writes the layout of versions before `oa`: for each end the number of its values up to the first null, and the
    /// values.
    pub(super) fn write_values(&self, out: &mut Vec<u8>) {
        for bound in [&self.start, &self.end] {
            let values = || bound.values.iter().map_while(Option::as_ref);
            out.extend_from_slice(&(values().count() as u32).to_be_bytes());
            for value in values() {
                out.extend_from_slice(&(value.len() as u16).to_be_bytes());
                out.extend_from_slice(value);
            }
        }
    }

    /// Reads the layout of versions before `oa`. Both ends count as inclusive.
    pub(super) fn read_values(input: &mut Input<'_>) -> Result<ClusteringRange> {
        let (start, end) = (read_values(input)?, read_values(input)?);
        Ok(ClusteringRange::inclusive(start, end))
    }

    pub(super) fn read(types: &[String], input: &mut Input<'_>) -> Result<ClusteringRange> {
        let start = read_bound(types, input)?;
        Ok(ClusteringRange { start, end: read_bound(types, input)? })
    }
}

fn read_values(input: &mut Input<'_>) -> Result<Vec<Vec<u8>>> {
    let count = input.u32()?;
    let count = input.count(u64::from(count), 2)?;
    let value = |input: &mut Input<'_>| {
        let len = usize::from(input.u16()?);
        Ok(input.bytes(len)?.to_vec())
    };
    (0..count).map(|_| value(input)).collect()
}

fn read_bound(types: &[String], input: &mut Input<'_>) -> Result<ClusteringBound> {
    let kind = input.u8()?;
    let Some(kind) = BoundKind::from_u8(kind).filter(|kind| !kind.is_boundary()) else {
        return Err(input.corrupt(format!("bound of unknown kind {kind}")));
    };
    let size = usize::from(input.u16()?);
    if size > types.len() {
        return Err(input.corrupt(format!("a bound of {size} values for {} clustering columns", types.len())));
    }
    let mut values = Vec::with_capacity(size);
    let mut header = 0;
    for (at, ty) in types.iter().take(size).enumerate() {
        if at % VALUES_A_HEADER == 0 {
            header = input.vint()?;
        }
        values.push(match header >> (2 * (at % VALUES_A_HEADER)) & 3 {
            0 => Some(match fixed_length(ty) {
                Some(len) => input.bytes(len)?.to_vec(),
                None => input.vint_bytes()?.to_vec(),
            }),
            1 => Some(Vec::new()),
            _ => None,
        });
    }
    Ok(ClusteringBound { kind, values })
}

/// Length in bytes of the values of a type, by class name, if they are stored without a length.
fn fixed_length(class_name: &str) -> Option<usize> {
    CqlType::from_class_name(class_name).ok()?.fixed_length()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_range_of_null_empty_fixed_and_other_values_comes_back() {
        let marshal = |name: &str| format!("org.apache.cassandra.db.marshal.{name}");
        let types = [
            marshal("ReversedType(org.apache.cassandra.db.marshal.Int32Type)"),
            marshal("UTF8Type"),
            marshal("VectorType(org.apache.cassandra.db.marshal.FloatType , 3)"),
            marshal("LongType"),
        ];
        let range = ClusteringRange {
            start: ClusteringBound {
                kind: BoundKind::InclStart,
                values: vec![Some(vec![0, 0, 0, 1]), Some(b"text".to_vec()), Some(vec![7; 12]), None],
            },
            end: ClusteringBound { kind: BoundKind::ExclEnd, values: vec![Some(vec![]), None] },
        };
        let mut out = Vec::new();
        range.write(&types, &mut out);
        let mut input = Input::new(&out, 0, Path::new("t"));
        assert_eq!(ClusteringRange::read(&types, &mut input).unwrap(), range);
        assert!(input.is_empty());
        assert!(ClusteringRange::read(&types[..3], &mut Input::new(&out, 0, Path::new("t"))).is_err());
    }
}
