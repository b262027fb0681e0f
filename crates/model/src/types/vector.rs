//! Vectors: the elements one after the other, without lengths if the element type has a fixed length, otherwise each
//! after its length as an unsigned vint. Neither the vector nor an element can be null (`VectorType`).

use std::borrow::Cow;
use std::cmp::Ordering;

use super::collection::{needs_normalising, normalise_within};
use super::{CqlType, TypeError};
use crate::permission::Permission;
use crate::vint;

/// The elements of a serialised vector. Ends at the end of the bytes.
#[derive(Clone, Debug)]
pub struct VectorElements<'a> {
    rest: &'a [u8],
    fixed_length: Option<usize>,
}

impl<'a> VectorElements<'a> {
    /// Iterates over the elements of a vector with this element type.
    pub fn of(element: &CqlType, bytes: &'a [u8]) -> VectorElements<'a> {
        VectorElements { rest: bytes, fixed_length: element.fixed_length() }
    }

    /// The bytes not yet read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for VectorElements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let (length, header) = match self.fixed_length {
            // Elements without bytes do not end: the number of elements is never more than that of the bytes.
            Some(0) => return None,
            Some(length) => (length, 0),
            None => {
                // Cassandra assumes that the length has its shortest encoding.
                let (length, _) = vint::read_unsigned(self.rest)?;
                (usize::try_from(length).ok()?, vint::unsigned_length(length))
            }
        };
        let (value, rest) = self.rest.get(header..)?.split_at_checked(length)?;
        self.rest = rest;
        Some(value)
    }
}

/// Appends one element of a vector.
pub fn put_element(element: &CqlType, value: &[u8], out: &mut Vec<u8>) {
    if element.fixed_length().is_none() {
        vint::write_unsigned(value.len() as u64, out);
    }
    out.extend_from_slice(value);
}

pub(super) fn validate(
    ty: &CqlType,
    element: &CqlType,
    dimension: u32,
    bytes: &[u8],
) -> Result<(), TypeError> {
    if bytes.is_empty() {
        return Err(TypeError::VectorEmpty);
    }
    let cut_short = || TypeError::CutShort { what: ty.to_string() };
    if element.fixed_length().is_some_and(|length| bytes.len() < length.saturating_mul(dimension as usize)) {
        return Err(cut_short());
    }
    let mut elements = VectorElements::of(element, bytes);
    // Of a type without bytes (`EmptyType`, or vectors of it) no element is read, however many are declared. As in
    // Cassandra no value is valid then: the empty value is not, and all bytes are extraneous.
    let elements_read = if element.fixed_length() == Some(0) { 0 } else { dimension };
    for _ in 0..elements_read {
        element.validate(elements.next().ok_or_else(cut_short)?)?;
    }
    match elements.rest().len() {
        0 => Ok(()),
        count => Err(TypeError::VectorExtraneous { count, vector: ty.clone() }),
    }
}

/// Order of two vectors: element by element.
pub(super) fn compare(element: &CqlType, a: &[u8], b: &[u8]) -> Ordering {
    let (mut a, mut b) = (VectorElements::of(element, a), VectorElements::of(element, b));
    loop {
        match (a.next(), b.next()) {
            (Some(a), Some(b)) => match element.compare(a, b) {
                Ordering::Equal => {}
                order => return order,
            },
            (a, b) => return a.is_some().cmp(&b.is_some()),
        }
    }
}

pub(super) fn normalise<'a>(
    bytes: &'a [u8],
    (element, dimension): (&CqlType, u32),
    may: Permission<'_>,
) -> Option<Cow<'a, [u8]>> {
    if !needs_normalising(element) {
        return Some(Cow::Borrowed(bytes));
    }
    let mut values = Vec::new();
    for value in VectorElements::of(element, bytes).take(dimension as usize) {
        if values.len() == values.capacity() && !may((values.len() + 4) * 2 * size_of::<Cow<'_, [u8]>>(), 0) {
            return None;
        }
        values.push(normalise_within(element, value, may)?);
    }
    if values.iter().all(|value| matches!(value, Cow::Borrowed(_))) {
        return Some(Cow::Borrowed(bytes));
    }
    if !may(bytes.len(), 0) {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len());
    values.iter().for_each(|value| put_element(element, value, &mut out));
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn vectors_are_checked_to_the_last_byte() {
        let floats = CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 2 };
        assert_eq!(floats.validate(&[0; 8]), Ok(()));
        assert_eq!(floats.validate(&[]).unwrap_err().to_string(), "Invalid empty vector value");
        assert_eq!(
            floats.validate(&[0; 7]).unwrap_err().to_string(),
            "Not enough bytes to read a vector<float, 2>"
        );
        assert_eq!(
            floats.validate(&[0; 9]).unwrap_err().to_string(),
            "Unexpected 1 extraneous bytes after vector<float, 2> value"
        );
        let texts = CqlType::Vector { element: Arc::new(CqlType::Text), dimension: 2 };
        assert_eq!(texts.validate(&[1, b'a', 0]), Ok(()));
        assert_eq!(texts.compare(&[1, b'a', 0], &[1, b'a', 1, b'b']), Ordering::Less);
        assert!(texts.validate(&[1, b'a', 9]).is_err());
    }

    /// No loop may run for each declared element of a value of one byte.
    #[test]
    fn vectors_of_elements_without_bytes_have_no_values_and_end() {
        let vector =
            |element: CqlType| CqlType::Vector { element: Arc::new(element), dimension: i32::MAX as u32 };
        for ty in
            [vector(CqlType::Empty), vector(vector(CqlType::Empty)), vector(vector(vector(CqlType::Empty)))]
        {
            assert_eq!(ty.validate(&[]), Err(TypeError::VectorEmpty));
            let error = ty.validate(&[7]).unwrap_err();
            assert_eq!(error, TypeError::VectorExtraneous { count: 1, vector: ty.clone() });
            assert_eq!(ty.compare(&[7], &[8, 9]), Ordering::Equal);
            let CqlType::Vector { element, .. } = &ty else { unreachable!() };
            assert_eq!(VectorElements::of(element, &[7; 9]).count(), 0);
            assert_eq!(super::super::to_cql_literal(&ty, Some(&[7])), "0x07");
            let list = CqlType::List { element: Arc::new(ty), frozen: true };
            assert!(list.validate(&[0, 0, 0, 1, 0, 0, 0, 1, 7]).is_err());
        }
        for element in [CqlType::Int, CqlType::Text, vector(CqlType::Int), CqlType::Tuple(Arc::new([]))] {
            assert!(vector(element).validate(&[1; 9]).is_err());
        }
    }
}
