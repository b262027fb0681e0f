//! Collections, tuples, user-defined types and vectors: each part after a separator, then a terminator.
//!
//! A null part, or one whose encoding is empty, is only a separator. Trailing null fields of a tuple are omitted, so
//! that a value written before a field was added stays equal.

use super::source::Source;
use super::value::{Encoded, append, read};
use super::{
    NEXT_COMPONENT, NEXT_COMPONENT_EMPTY, NEXT_COMPONENT_EMPTY_REVERSED, NEXT_COMPONENT_NULL, TERMINATOR,
};
use crate::types::{CqlType, Elements, TypeError, VectorElements, put_element, put_value, take_value};

/// Appends one part.
fn part(ty: &CqlType, value: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), TypeError> {
    let separator = out.len();
    out.push(NEXT_COMPONENT);
    let encoded = match value {
        Some(value) => append(ty, value, out)?,
        None => Encoded::Nothing,
    };
    if encoded == Encoded::Nothing
        && let Some(separator) = out.get_mut(separator)
    {
        *separator = NEXT_COMPONENT_NULL;
    }
    Ok(())
}

/// Appends a list or set (one type), or a map (two types).
pub(super) fn collection(
    elements: Elements<'_>,
    types: &[&CqlType],
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    for (element, ty) in elements.zip(types.iter().cycle()) {
        part(ty, element, out)?;
    }
    out.push(TERMINATOR);
    Ok(())
}

pub(super) fn vector(
    elements: VectorElements<'_>,
    element: &CqlType,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    for value in elements {
        part(element, Some(value), out)?;
    }
    out.push(TERMINATOR);
    Ok(())
}

/// Appends a tuple or user-defined type.
pub(super) fn fields<'t>(
    bytes: &[u8],
    types: impl Iterator<Item = &'t CqlType>,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let mut rest = bytes;
    let mut end = out.len();
    for (index, ty) in types.enumerate() {
        if rest.is_empty() {
            break;
        }
        let field = take_value(&mut rest).ok_or(TypeError::TupleCut { index })?;
        part(ty, field, out)?;
        if field.is_some() {
            end = out.len();
        }
    }
    if !rest.is_empty() {
        return Err(TypeError::TupleExtraneous);
    }
    out.truncate(end);
    out.push(TERMINATOR);
    Ok(())
}

/// What the separator announces.
enum Next {
    Part,
    Null,
    End,
}

fn next(source: &mut Source<'_>) -> Result<Next, TypeError> {
    match source.next()? {
        NEXT_COMPONENT => Ok(Next::Part),
        NEXT_COMPONENT_NULL | NEXT_COMPONENT_EMPTY | NEXT_COMPONENT_EMPTY_REVERSED => Ok(Next::Null),
        TERMINATOR => Ok(Next::End),
        _ => Err(source.error("no separator of a collection")),
    }
}

/// Appends the list, set or map at `source`.
pub(super) fn read_collection(
    source: &mut Source<'_>,
    types: &[&CqlType],
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut parts = 0_usize;
    for ty in types.iter().cycle() {
        match next(source)? {
            Next::End => break,
            Next::Null => put_value(None, out),
            Next::Part => put_read(source, ty, out)?,
        }
        parts += 1;
    }
    if !parts.is_multiple_of(types.len()) {
        return Err(source.error("a key without a value"));
    }
    let count = ((parts / types.len()) as i32).to_be_bytes();
    if let Some(header) = out.get_mut(start..start + 4) {
        header.copy_from_slice(&count);
    }
    Ok(())
}

/// Appends the tuple or user-defined type at `source`, with all its fields.
pub(super) fn read_fields<'t>(
    source: &mut Source<'_>,
    types: impl Iterator<Item = &'t CqlType>,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let mut ended = false;
    for ty in types {
        let next = if ended { Next::Null } else { next(source)? };
        match next {
            Next::Part => put_read(source, ty, out)?,
            Next::Null => put_value(None, out),
            Next::End => {
                ended = true;
                put_value(None, out);
            }
        }
    }
    if ended || matches!(next(source)?, Next::End) {
        Ok(())
    } else {
        Err(source.error("more fields than the type has"))
    }
}

/// Appends the vector at `source`.
pub(super) fn read_vector(
    source: &mut Source<'_>,
    element: &CqlType,
    dimension: u32,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let mut value = Vec::new();
    for _ in 0..dimension {
        value.clear();
        match next(source)? {
            Next::Part => read(element, source, &mut value)?,
            Next::Null if element.fixed_length().is_none() => {}
            _ => return Err(source.error("a vector's element is missing")),
        }
        put_element(element, &value, out);
    }
    match next(source)? {
        Next::End => Ok(()),
        _ => Err(source.error("more elements than the vector's dimension")),
    }
}

/// Appends the value at `source` after its length.
fn put_read(source: &mut Source<'_>, ty: &CqlType, out: &mut Vec<u8>) -> Result<(), TypeError> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    read(ty, source, out)?;
    let length = ((out.len() - start - 4) as i32).to_be_bytes();
    if let Some(header) = out.get_mut(start..start + 4) {
        header.copy_from_slice(&length);
    }
    Ok(())
}
