//! How near two vectors of floats are (`VectorFcts`): 1 for equal ones, less for others.

use crate::error::{CqlError, Result};

/// A measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Similarity {
    /// By the angle.
    Cosine,
    /// By the distance.
    Euclidean,
    /// By the product, for vectors of length one.
    DotProduct,
}

impl Similarity {
    /// The measure of a function's name.
    pub(super) fn named(name: &str) -> Option<Similarity> {
        Some(match name {
            "similarity_cosine" => Similarity::Cosine,
            "similarity_euclidean" => Similarity::Euclidean,
            "similarity_dot_product" => Similarity::DotProduct,
            _ => return None,
        })
    }

    /// Measures two vectors of one dimension.
    ///
    /// # Errors
    /// An angle with a vector of zeros.
    pub(super) fn of(self, function: &str, a: &[u8], b: &[u8]) -> Result<Vec<u8>> {
        let (a, b) = (floats(a), floats(b));
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let found = match self {
            Similarity::DotProduct => (1.0 + dot(&a, &b)) / 2.0,
            Similarity::Euclidean => {
                let distance: f32 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
                1.0 / (1.0 + distance)
            }
            Similarity::Cosine => {
                if [&a, &b].iter().any(|vector| vector.iter().all(|float| *float == 0.0)) {
                    let text = format!("Function {function} doesn't support all-zero vectors.");
                    return Err(CqlError::Invalid(text));
                }
                let lengths = f64::from(dot(&a, &a)) * f64::from(dot(&b, &b));
                let cosine = (f64::from(dot(&a, &b)) / lengths.sqrt()) as f32;
                (1.0 + cosine) / 2.0
            }
        };
        Ok(found.to_be_bytes().to_vec())
    }
}

fn floats(vector: &[u8]) -> Vec<f32> {
    vector.chunks_exact(4).map(|bytes| bytes.try_into().map_or(0.0, f32::from_be_bytes)).collect()
}
