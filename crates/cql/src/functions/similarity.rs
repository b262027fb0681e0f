//! Similarity of two float vectors (`VectorFcts`): 1 for equal ones, less for others.

use crate::error::{CqlError, Result};

/// A similarity function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Similarity {
    /// By the angle.
    Cosine,
    /// By the distance.
    Euclidean,
    /// By the product, for vectors of length one.
    DotProduct,
}

impl Similarity {
    /// The similarity of a function's name.
    pub(super) fn named(name: &str) -> Option<Similarity> {
        Some(match name {
            "similarity_cosine" => Similarity::Cosine,
            "similarity_euclidean" => Similarity::Euclidean,
            "similarity_dot_product" => Similarity::DotProduct,
            _ => return None,
        })
    }

    /// The similarity of two vectors of equal dimension.
    ///
    /// # Errors
    /// A cosine with a vector of zeros.
    pub(super) fn of(self, function: &str, a: &[u8], b: &[u8]) -> Result<Vec<u8>> {
        let (a, b) = (Similarity::floats(a), Similarity::floats(b));
        let is_zero = |vector: &[f32]| vector.iter().all(|float| *float == 0.0);
        if self == Similarity::Cosine && (is_zero(&a) || is_zero(&b)) {
            let text = format!("Function {function} doesn't support all-zero vectors.");
            return Err(CqlError::Invalid(text));
        }
        Ok(self.measure(&a, &b).to_be_bytes().to_vec())
    }

    /// The similarity of an index's option `similarity_function` (`VectorSimilarityFunction`).
    pub(crate) fn of_index(name: &str) -> Option<Similarity> {
        Some(match name.to_uppercase().as_str() {
            "COSINE" => Similarity::Cosine,
            "EUCLIDEAN" => Similarity::Euclidean,
            "DOT_PRODUCT" => Similarity::DotProduct,
            _ => return None,
        })
    }

    /// The similarity of two vectors of equal dimension; NaN for a cosine with a vector of zeros.
    pub(crate) fn measure(self, a: &[f32], b: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        match self {
            Similarity::DotProduct => (1.0 + dot(a, b)) / 2.0,
            Similarity::Euclidean => {
                let distance: f32 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
                1.0 / (1.0 + distance)
            }
            Similarity::Cosine => {
                let lengths = f64::from(dot(a, a)) * f64::from(dot(b, b));
                let cosine = (f64::from(dot(a, b)) / lengths.sqrt()) as f32;
                (1.0 + cosine) / 2.0
            }
        }
    }

    /// The floats of a serialised vector.
    pub(crate) fn floats(vector: &[u8]) -> Vec<f32> {
        vector.chunks_exact(4).map(|bytes| bytes.try_into().map_or(0.0, f32::from_be_bytes)).collect()
    }
}
