//! Tuples and user-defined types as one value: each field is an i32 length and its bytes; a negative length is a null.
//!
//! A value may have fewer fields than its type, because types grow; missing fields are null and compare as null.

use std::cmp::Ordering;

use super::collection::take_value;
use super::{CqlType, TypeError, UserType};

/// The fields of a tuple or user-defined value, `None` for a null. Ends at the end of the bytes.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Iterates over the fields of a serialised value.
    pub fn of(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        take_value(&mut self.rest)
    }
}

/// Why a field could not be read: the end is in its size or in its value.
enum Cut {
    Size,
    Value,
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Cut> {
    if rest.len() < 4 {
        return Err(Cut::Size);
    }
    take_value(rest).ok_or(Cut::Value)
}

pub(super) fn validate(bytes: &[u8], types: &[CqlType]) -> Result<(), TypeError> {
    let mut rest = bytes;
    for (index, ty) in types.iter().enumerate() {
        if rest.is_empty() {
            return Ok(());
        }
        match take_field(&mut rest) {
            Ok(None) => {}
            Ok(Some(field)) => ty.validate(field)?,
            Err(Cut::Size) => return Err(TypeError::TupleSizeCut { index }),
            Err(Cut::Value) => return Err(TypeError::TupleCut { index }),
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(TypeError::TupleExtraneous) }
}

/// Validates a value of a user type; `check` validates a field.
pub(super) fn validate_udt(
    bytes: &[u8],
    udt: &UserType,
    check: impl Fn(&CqlType, &[u8]) -> Result<(), TypeError>,
) -> Result<(), TypeError> {
    let mut rest = bytes;
    for (index, (name, ty)) in udt.fields.iter().enumerate() {
        if rest.is_empty() {
            return Ok(());
        }
        let name = || name.to_string();
        match take_field(&mut rest) {
            Ok(None) => {}
            Ok(Some(field)) => check(ty, field).map_err(|error| TypeError::UdtField {
                index,
                name: name(),
                error: Box::new(error),
            })?,
            Err(Cut::Size) => return Err(TypeError::UdtSizeCut { index, name: name() }),
            Err(Cut::Value) => return Err(TypeError::UdtCut { index, name: name() }),
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(TypeError::UdtExtraneous) }
}

/// Order of two values: the empty one first, then field by field, with null before any value; missing fields count as
/// null (`TupleType.compareCustom`).
pub(super) fn compare<'t>(a: &[u8], b: &[u8], types: impl Iterator<Item = &'t CqlType>) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().min(1).cmp(&b.len().min(1));
    }
    let (mut a, mut b) = (Fields::of(a), Fields::of(b));
    for ty in types {
        let (field_a, field_b) = (a.next(), b.next());
        if field_a.is_none() && field_b.is_none() {
            break;
        }
        let order = match (field_a.flatten(), field_b.flatten()) {
            (Some(a), Some(b)) => ty.compare(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}
