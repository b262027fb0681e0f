//! Decides which vectors a storage-attached index can hold: those whose floats a similarity can be computed of
//! (`OnHeapGraph.checkInBounds`, `validateIndexable`).
//!
//! A write of any other vector is refused, and so is a search for one. Rows that hold one already, because the index was
//! made later or their files were imported, are in no answer of a search by similarity.

use crate::schema::Index;
use crate::types::{CqlType, to_cql_literal};
use std::fmt;

/// The greatest magnitude of a component (`OnHeapGraph.MAX_FLOAT32_COMPONENT`).
const COMPONENT_MAX: f32 = 1e17;

/// Why an index cannot hold a vector. Displayed with Cassandra's text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UnindexableVector {
    /// A component is infinite or not a number.
    NotFinite {
        /// Its index.
        at: usize,
        /// The component.
        value: f32,
    },
    /// A component is too great.
    OutOfBounds {
        /// Its index.
        at: usize,
        /// The component.
        value: f32,
    },
    /// All components are zero, which has no angle to another vector.
    Zero,
}

impl fmt::Display for UnindexableVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &f32| to_cql_literal(&CqlType::Float, Some(&value.to_be_bytes()));
        match self {
            UnindexableVector::NotFinite { at, value } => {
                write!(f, "non-finite value at vector[{at}]={}", text(value))
            }
            UnindexableVector::OutOfBounds { at, value } => {
                write!(f, "Out-of-bounds value at vector[{at}]={}", text(value))
            }
            UnindexableVector::Zero => {
                f.write_str("Zero vectors cannot be indexed or queried with cosine similarity")
            }
        }
    }
}

/// Whether an index measures by the angle between vectors, which is the default.
pub fn is_by_cosine(index: &Index) -> bool {
    index.options.get("similarity_function").is_none_or(|name| name.eq_ignore_ascii_case("cosine"))
}

/// Checks a serialised vector of floats.
///
/// # Errors
/// An index cannot hold it.
pub fn check_vector(vector: &[u8], is_by_cosine: bool) -> Result<(), UnindexableVector> {
    let floats = || vector.chunks_exact(4).map(|bytes| bytes.try_into().map_or(f32::NAN, f32::from_be_bytes));
    for (at, value) in floats().enumerate() {
        if !value.is_finite() {
            return Err(UnindexableVector::NotFinite { at, value });
        }
        if value.abs() > COMPONENT_MAX {
            return Err(UnindexableVector::OutOfBounds { at, value });
        }
    }
    if is_by_cosine && floats().all(|value| value == 0.0) {
        return Err(UnindexableVector::Zero);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_refused_by_its_first_unmeasurable_component() {
        let check = |floats: &[f32], is_by_cosine| {
            let bytes: Vec<u8> = floats.iter().flat_map(|float| float.to_be_bytes()).collect();
            check_vector(&bytes, is_by_cosine).map_err(|problem| problem.to_string())
        };
        assert_eq!(check(&[0.0, 1.0], true), Ok(()));
        assert_eq!(check(&[1e17, -1e17], true), Ok(()));
        assert_eq!(check(&[0.0, -0.0], false), Ok(()));
        let refused = |text: &str| Err(text.to_owned());
        let zero = refused("Zero vectors cannot be indexed or queried with cosine similarity");
        assert_eq!(check(&[0.0, -0.0], true), zero);
        assert_eq!(check(&[1.0, f32::NAN, 2e17], true), refused("non-finite value at vector[1]=NaN"));
        assert_eq!(check(&[f32::NEG_INFINITY], false), refused("non-finite value at vector[0]=-Infinity"));
        assert_eq!(check(&[0.0, -2e17], false), refused("Out-of-bounds value at vector[1]=-1.99999997E17"));
    }
}
