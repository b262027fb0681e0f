//! `c = c + value` in a conditional statement: numbers are added, texts concatenated (`Constants.Adder`).

use crate::error::{CqlError, Result};
use helenus_model::types::CqlType;

/// The sum of two values of one type, in that type; integers overflow as in Java.
///
/// # Errors
/// The type has no sums here.
pub(super) fn sum(ty: &CqlType, present: &[u8], by: &[u8]) -> Result<Vec<u8>> {
    let added = match ty {
        CqlType::TinyInt => {
            both(present, by).map(|(a, b)| vec![u8::from_be_bytes(a).wrapping_add(u8::from_be_bytes(b))])
        }
        CqlType::SmallInt => both(present, by)
            .map(|(a, b)| i16::from_be_bytes(a).wrapping_add(i16::from_be_bytes(b)).to_be_bytes().to_vec()),
        CqlType::Int => both(present, by)
            .map(|(a, b)| i32::from_be_bytes(a).wrapping_add(i32::from_be_bytes(b)).to_be_bytes().to_vec()),
        CqlType::BigInt => both(present, by)
            .map(|(a, b)| i64::from_be_bytes(a).wrapping_add(i64::from_be_bytes(b)).to_be_bytes().to_vec()),
        CqlType::Float => both(present, by)
            .map(|(a, b)| (f32::from_be_bytes(a) + f32::from_be_bytes(b)).to_be_bytes().to_vec()),
        CqlType::Double => both(present, by)
            .map(|(a, b)| (f64::from_be_bytes(a) + f64::from_be_bytes(b)).to_be_bytes().to_vec()),
        CqlType::Ascii | CqlType::Text => Some([present, by].concat()),
        _ => {
            return Err(CqlError::Invalid(format!(
                "adding to a {ty} under a condition is not supported yet"
            )));
        }
    };
    added.ok_or_else(|| CqlError::Invalid("an empty value cannot be added to".into()))
}

fn both<const N: usize>(a: &[u8], b: &[u8]) -> Option<([u8; N], [u8; N])> {
    Some((a.try_into().ok()?, b.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_added_in_their_type_and_texts_put_together() {
        let int = |number: i32| number.to_be_bytes().to_vec();
        assert_eq!(sum(&CqlType::Int, &int(5), &int(-7)).unwrap(), int(-2));
        assert_eq!(sum(&CqlType::Int, &int(i32::MAX), &int(1)).unwrap(), int(i32::MIN));
        assert_eq!(sum(&CqlType::TinyInt, &[127], &[1]).unwrap(), [128]);
        let double = |number: f64| number.to_be_bytes().to_vec();
        assert_eq!(sum(&CqlType::Double, &double(0.5), &double(1.25)).unwrap(), double(1.75));
        assert_eq!(sum(&CqlType::Text, b"a", b"bc").unwrap(), b"abc");
        assert!(sum(&CqlType::Int, &[], &int(1)).is_err());
    }
}
