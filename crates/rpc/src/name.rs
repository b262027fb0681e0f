//! Column names: plain values, or composites of several components.
//!
//! ```text
//! composite: for each component  length u16, bytes, end of component i8
//! end of component: 0; in a bound, 1 for "after all names with this prefix", -1 for "before them"
//! ```
//! Source: `CompositeType`, `AbstractCompositeType`, `LegacyLayout.decodeBound`.

use crate::error::{Result, invalid};
use helenus_model::byte_comparable::{clustering_bound, clustering_key};
use helenus_model::schema::Column;
use helenus_model::types::{
    CqlType, ParsedClass, composite_class_name, parse_class_name, parse_text, to_cql_literal,
};

/// Maximum bytes of a name (`LegacyLayout.MAX_CELL_NAME_LENGTH`).
pub(crate) const NAME_BYTES_MAX: usize = 65_535;

/// The order of names: a type, possibly reversed, or several types in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// A single type, and whether it is reversed.
    Plain(CqlType, bool),
    /// The types of the components.
    Composite(Vec<(CqlType, bool)>),
}

/// The clustering values of a name. A single one, the usual case, needs no allocation.
pub(crate) enum Values<'a> {
    One(&'a [u8]),
    Several(Vec<Option<&'a [u8]>>),
}

impl<'a> Values<'a> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<&'a [u8]>> + '_ {
        let (one, several) = match self {
            Values::One(value) => (Some(Some(*value)), &[][..]),
            Values::Several(values) => (None, &values[..]),
        };
        one.into_iter().chain(several.iter().copied())
    }
}

impl Comparator {
    /// The comparator of a Java class name, as in definitions: `AsciiType(reversed=true)`,
    /// `CompositeType(UTF8Type,LongType)`.
    ///
    /// # Errors
    /// The problem with the class name.
    pub fn of_class(name: &str) -> std::result::Result<Comparator, String> {
        match parse_class_name(name).map_err(|error| error.to_string())? {
            ParsedClass::Plain { ty, reversed } => Ok(Comparator::Plain(ty, reversed)),
            ParsedClass::Composite(components) => Ok(Comparator::Composite(components)),
        }
    }

    /// Parses a text into a serialised name or value.
    ///
    /// # Errors
    /// The problem with the text.
    pub fn bytes_of(&self, text: &str) -> std::result::Result<Vec<u8>, String> {
        self.parse(text).map_err(|error| error.to_string())
    }

    /// Formats a serialised name or value as text.
    pub fn text_of(&self, bytes: &[u8]) -> String {
        self.text(bytes)
    }

    /// The comparator of a composite family.
    pub(crate) fn composite(clustering: &[Column]) -> Comparator {
        Comparator::Composite(clustering.iter().map(|column| (column.ty.clone(), column.reversed)).collect())
    }

    /// The Java class name, as in the answers of the describing calls.
    pub(crate) fn class_name(&self) -> String {
        match self {
            Comparator::Plain(ty, reversed) => ty.class_name_ordered(*reversed),
            Comparator::Composite(components) => composite_class_name(components),
        }
    }

    /// Checks that the bytes are a valid name.
    ///
    /// # Errors
    /// `InvalidRequest` with the problem.
    pub(crate) fn validate(&self, name: &[u8]) -> Result<()> {
        match self {
            Comparator::Plain(ty, _) => Ok(ty.validate(name)?),
            Comparator::Composite(types) => {
                let components = split(name)?;
                for (index, component) in components.iter().enumerate() {
                    let Some((ty, _)) = types.get(index) else {
                        return invalid(format!(
                            "Too many bytes for comparator. Found {} components, which is more than the {} of {}",
                            components.len(),
                            types.len(),
                            self.class_name()
                        ));
                    };
                    ty.validate(component.bytes)?;
                }
                Ok(())
            }
        }
    }

    /// The clustering values of a validated name.
    pub(crate) fn values<'n>(&self, name: &'n [u8]) -> Result<Values<'n>> {
        match self {
            Comparator::Plain(..) => Ok(Values::One(name)),
            Comparator::Composite(types) => {
                let mut values: Vec<Option<&[u8]>> =
                    split(name)?.iter().map(|component| Some(component.bytes)).collect();
                values.resize(types.len(), None);
                Ok(Values::Several(values))
            }
        }
    }

    /// Appends the byte-comparable position of the row with this validated name.
    pub(crate) fn put_position(&self, name: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Comparator::Plain(ty, reversed) => {
                clustering_key([Some(name)], &[(ty, *reversed)], out)?;
            }
            Comparator::Composite(types) => clustering_key(self.values(name)?.iter(), types, out)?,
        }
        Ok(())
    }

    /// The values of one end of a slice, and whether the bound is before the rows that match them. No values: the end
    /// of the row.
    pub(crate) fn bound<'n>(&self, name: &'n [u8], is_start: bool) -> Result<(Vec<Option<&'n [u8]>>, bool)> {
        if name.is_empty() {
            return Ok((Vec::new(), is_start));
        }
        let Comparator::Composite(types) = self else { return Ok((vec![Some(name)], is_start)) };
        let components = split(name)?;
        let end = components.last().map_or(0, |component| component.end);
        let mut values: Vec<Option<&[u8]>> =
            components.iter().take(types.len()).map(|component| Some(component.bytes)).collect();
        if is_start {
            return Ok((values, end <= 0));
        }
        if end == 0 && values.len() < types.len() {
            // The bound is after this exact name and before all longer names (CASSANDRA-12423).
            values.push(Some(&[]));
            return Ok((values, true));
        }
        Ok((values, end < 0))
    }

    /// Appends one end of a slice as a byte-comparable position.
    pub(crate) fn put_bound(&self, name: &[u8], is_start: bool, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Comparator::Plain(ty, reversed) => {
                let value = (!name.is_empty()).then_some(Some(name));
                clustering_bound(value, &[(ty, *reversed)], is_start, out)?;
            }
            Comparator::Composite(types) => {
                let (values, before) = self.bound(name, is_start)?;
                clustering_bound(values, types, before, out)?;
            }
        }
        Ok(())
    }

    /// Formats a name as text: `getString` of its type.
    pub(crate) fn text(&self, name: &[u8]) -> String {
        match self {
            Comparator::Plain(ty, _) => value_text(ty, name),
            Comparator::Composite(types) => {
                let Ok(components) = split(name) else { return value_text(&CqlType::Blob, name) };
                let mut text = String::new();
                for (component, (ty, _)) in components.iter().zip(types) {
                    if !text.is_empty() {
                        text.push(':');
                    }
                    text.push_str(&value_text(ty, component.bytes).replace(':', "\\:"));
                    match component.end {
                        0 => {}
                        below if below < 0 => text.push_str(":_"),
                        _ => text.push_str(":!"),
                    }
                }
                text
            }
        }
    }

    /// Parses a text into a name: `fromString` of its type.
    ///
    /// # Errors
    /// The problem with the text.
    pub(crate) fn parse(&self, text: &str) -> Result<Vec<u8>> {
        let types = match self {
            Comparator::Plain(ty, _) => return Ok(parse_text(ty, text)?),
            Comparator::Composite(types) => types,
        };
        let mut name = Vec::new();
        let mut types = types.iter();
        for part in split_text(text) {
            match &*part {
                "!" | "_" => {
                    if let Some(end) = name.last_mut() {
                        *end = if part == "!" { 1 } else { u8::MAX };
                    }
                    break;
                }
                part => match types.next() {
                    Some((ty, _)) => put_component(&parse_text(ty, part)?, &mut name),
                    None => return invalid("a name with more components than its comparator has"),
                },
            }
        }
        Ok(name)
    }
}

/// Bytes of a composite's component besides its value: the length before it and the end-of-component byte after it.
pub(crate) const COMPONENT_BYTES: usize = 3;

/// Appends a component of a composite.
pub(crate) fn put_component(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(value.len() as u16).to_be_bytes());
    out.extend_from_slice(value);
    out.push(0);
}

/// A component of a name.
struct Part<'a> {
    bytes: &'a [u8],
    end: i8,
}

/// Splits a composite into components (`AbstractCompositeType.validate`).
fn split(name: &[u8]) -> Result<Vec<Part<'_>>> {
    let mut rest = name;
    let mut parts: Vec<Part<'_>> = Vec::new();
    while !rest.is_empty() {
        let index = parts.len();
        let Some((length, after)) = rest.split_first_chunk::<2>() else {
            return invalid(format!("Not enough bytes to read value size of component {index}"));
        };
        let Some((bytes, after)) = after.split_at_checked(usize::from(u16::from_be_bytes(*length))) else {
            return invalid(format!("Not enough bytes to read value of component {index}"));
        };
        let Some((end, after)) = after.split_first() else {
            return invalid(format!(
                "Not enough bytes to read the end-of-component byte of component{index}"
            ));
        };
        if *end != 0 && !after.is_empty() {
            return invalid(format!("Invalid bytes remaining after an end-of-component at component{index}"));
        }
        parts.push(Part { bytes, end: end.cast_signed() });
        rest = after;
    }
    Ok(parts)
}

fn split_text(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, parts.last_mut()) {
            ('\\', Some(part)) if characters.peek() == Some(&':') => {
                part.extend(characters.next());
            }
            (':', _) => parts.push(String::new()),
            (other, Some(part)) => part.push(other),
            (_, None) => {}
        }
    }
    parts
}

/// Formats a value as text: `getString` of its type, which is hexadecimal for blobs.
pub(crate) fn value_text(ty: &CqlType, bytes: &[u8]) -> String {
    match ty {
        CqlType::Text | CqlType::Ascii => String::from_utf8_lossy(bytes).into_owned(),
        CqlType::Blob => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        _ if bytes.is_empty() => String::new(),
        other => {
            let literal = to_cql_literal(other, Some(bytes));
            let inner = literal.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
            inner.map_or_else(|| literal.clone(), |text| text.replace("''", "'"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparator() -> Comparator {
        Comparator::Composite(vec![(CqlType::Text, false), (CqlType::BigInt, false)])
    }

    #[test]
    fn a_composite_name_is_its_values_and_back() {
        let comparator = comparator();
        let name = comparator.parse("a\\:b:7").unwrap();
        assert_eq!(name, b"\0\x03a:b\0\0\x08\0\0\0\0\0\0\0\x07\0");
        assert_eq!(comparator.text(&name), "a\\:b:7");
        comparator.validate(&name).unwrap();
        let values: Vec<_> = comparator.values(&name).unwrap().iter().collect();
        assert_eq!(values, [Some(&b"a:b"[..]), Some(&7_i64.to_be_bytes()[..])]);
        let part = comparator.parse("x").unwrap();
        assert_eq!(comparator.values(&part).unwrap().iter().collect::<Vec<_>>(), [Some(&b"x"[..]), None]);
    }

    #[test]
    fn bounds_of_composites_lie_before_or_after_what_begins_with_them() {
        let comparator = comparator();
        let position = |text: &str| {
            let mut out = Vec::new();
            comparator.put_position(&comparator.parse(text).unwrap(), &mut out).unwrap();
            out
        };
        let bound = |text: &str, is_start| {
            let mut out = Vec::new();
            comparator.put_bound(&comparator.parse(text).unwrap(), is_start, &mut out).unwrap();
            out
        };
        let (first, last) = (position("a:1"), position("a:9"));
        assert!(bound("a", true) < first && bound("a:!", false) > last);
        assert!(bound("a:!", true) > last && bound("a", false) < first && bound("a", false) > position("a"));
        assert!(bound("a:1", true) < first && bound("a:9", false) > last && bound("a:9:_", false) < last);
    }

    #[test]
    fn what_is_no_composite_is_named() {
        for (name, text) in [
            (&b"\0"[..], "Not enough bytes to read value size of component 0"),
            (b"\0\x02a", "Not enough bytes to read value of component 0"),
            (b"\0\x01a", "Not enough bytes to read the end-of-component byte of component0"),
            (b"\0\x01a\x01\0", "Invalid bytes remaining after an end-of-component at component0"),
        ] {
            let error = format!("{:?}", comparator().validate(name).unwrap_err());
            assert!(error.contains(text), "{error}");
        }
    }
}
