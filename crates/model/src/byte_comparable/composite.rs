//! `CompositeType(..)` and `DynamicCompositeType(..)`: a mark of the static row, then each component and its end byte after
//! separators, then a terminator (`CompositeType.asComparableBytes`, `DynamicCompositeType.asComparableBytes`).
//!
//! In a dynamic composite the names of a component's class stand before its value: the short one, then the full one;
//! for a descending component the word `ReversedType` before both. So components of different types are ordered by their
//! classes, and an alias and the class that it denotes are equal.
//!
//! An empty value of a descending component is last here, as in the order in which Cassandra keeps rows
//! (`AbstractCompositeType.compareCustom`). Cassandra's encoding, which only its row indexes use, has it first, because
//! `ByteSource.Multi` has one separator for all values without bytes.

use super::source::Source;
use super::value::{Encoded, append, read};
use super::{
    NEXT_COMPONENT, NEXT_COMPONENT_EMPTY, NEXT_COMPONENT_EMPTY_REVERSED, NEXT_COMPONENT_NULL, TERMINATOR,
    escape,
};
use crate::types::{Composite, CompositeComponent, CqlType, TypeError, class_names};

/// Precedes the names of a descending component's class.
const REVERSED: &[u8] = b"ReversedType";

/// Appends a value of `composite`.
pub(super) fn encode(composite: &Composite, bytes: &[u8], out: &mut Vec<u8>) -> Result<Encoded, TypeError> {
    if bytes.is_empty() && !composite.is_dynamic() {
        return Ok(Encoded::Nothing);
    }
    let (is_static, mut rest) = composite.start(bytes);
    out.push(if is_static { NEXT_COMPONENT_NULL } else { NEXT_COMPONENT });
    let mut index = 0;
    while !rest.is_empty() {
        let component = composite.take(index, &mut rest)?;
        if component.end != 0 && !rest.is_empty() {
            return Err(TypeError::ComponentExtraneous { index });
        }
        if composite.is_dynamic() {
            names(&component, out);
        }
        part(&component, out)?;
        // The end byte is compared as a signed number.
        out.extend([NEXT_COMPONENT, component.end.to_be_bytes()[0] ^ 0x80]);
        index += 1;
    }
    out.push(TERMINATOR);
    Ok(Encoded::Bytes)
}

fn names(component: &CompositeComponent<'_>, out: &mut Vec<u8>) {
    let (short, full) = class_names(&component.ty);
    let reversed = component.reversed.then_some(REVERSED);
    for name in reversed.into_iter().chain([short.as_bytes(), full.as_bytes()]) {
        out.push(NEXT_COMPONENT);
        escape::encode(name, out);
    }
}

fn part(component: &CompositeComponent<'_>, out: &mut Vec<u8>) -> Result<(), TypeError> {
    let start = out.len();
    out.push(NEXT_COMPONENT);
    let encoded = append(&component.ty, component.value, out)?;
    let (separator, value) = match out.get_mut(start..) {
        Some([separator, value @ ..]) => (separator, value),
        _ => return Ok(()),
    };
    if encoded == Encoded::Nothing {
        *separator = if component.reversed { NEXT_COMPONENT_EMPTY_REVERSED } else { NEXT_COMPONENT_NULL };
    } else if component.reversed {
        value.iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

/// Appends the value of `composite` at `source`. A dynamic component is given by its alias if it has one.
pub(super) fn decode(
    composite: &Composite,
    source: &mut Source<'_>,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    match source.next()? {
        NEXT_COMPONENT => {}
        NEXT_COMPONENT_NULL if !composite.is_dynamic() => out.extend_from_slice(&Composite::STATIC),
        _ => return Err(source.error("no start of a composite")),
    }
    let mut index = 0;
    loop {
        let mut separator = source.next()?;
        if separator == TERMINATOR {
            return Ok(());
        }
        let (ty, reversed) = if composite.is_dynamic() {
            let found = named(composite, separator, source)?;
            composite.put_header(&found, out)?;
            separator = source.next()?;
            found
        } else {
            composite.component(index, "")?
        };
        put_part((&ty, reversed), separator, source, out)?;
        if source.next()? != NEXT_COMPONENT {
            return Err(source.error("no end byte of a component"));
        }
        out.push(source.next()? ^ 0x80);
        index += 1;
    }
}

/// The type and order that the names at `source` denote.
fn named(
    composite: &Composite,
    separator: u8,
    source: &mut Source<'_>,
) -> Result<(CqlType, bool), TypeError> {
    let first = name(separator, source)?;
    let reversed = first.as_bytes() == REVERSED;
    if reversed {
        let separator = source.next()?;
        name(separator, source)?;
    }
    let separator = source.next()?;
    let class = name(separator, source)?;
    Ok((composite.type_of_class(&class)?, reversed))
}

fn name(separator: u8, source: &mut Source<'_>) -> Result<String, TypeError> {
    if separator != NEXT_COMPONENT {
        return Err(source.error("no separator before the name of a class"));
    }
    let mut name = Vec::new();
    escape::decode(source, &mut name)?;
    String::from_utf8(name).map_err(|_| source.error("the name of a class is not UTF-8"))
}

fn put_part(
    (ty, reversed): (&CqlType, bool),
    separator: u8,
    source: &mut Source<'_>,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let start = out.len();
    out.extend_from_slice(&[0; 2]);
    match separator {
        NEXT_COMPONENT => {
            source.flip(reversed);
            let done = read(ty, source, out);
            source.flip(reversed);
            done?;
        }
        NEXT_COMPONENT_NULL | NEXT_COMPONENT_EMPTY | NEXT_COMPONENT_EMPTY_REVERSED => {}
        _ => return Err(source.error("no separator of a component")),
    }
    let length = u16::try_from(out.len() - start - 2);
    let length = length.map_err(|_| source.error("a component of more than 65535 bytes"))?;
    if let Some(header) = out.get_mut(start..start + 2) {
        header.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}
