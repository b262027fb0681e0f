//! Values as CQL literals (`CQL3Type.toCQLLiteral`).
//!
//! Bytes that are invalid for their type are printed as a blob literal, because error messages and tools must not fail
//! on damaged data.

use super::class_name::DATE_CLASS;
use super::collection::{Elements, take_value};
use super::digits::write_integer;
use super::duration::{self, Duration};
use super::name::is_bare;
use super::text::write_hex;
use super::vector::VectorElements;
use super::{CqlType, date, decimal, float, inet, integer, timestamp, uuid};

/// The literal of a value; `null` for `None` and for meaningless empty values.
pub fn to_cql_literal(ty: &CqlType, bytes: Option<&[u8]>) -> String {
    let mut out = String::new();
    write_literal(ty, bytes, &mut out);
    out
}

/// The first characters of the literal, at most so many, and "..." if there are more. What is not shown is not made: the names of
/// fields have any length, and each element of a collection repeats those of its type.
pub fn to_short_literal(ty: &CqlType, bytes: Option<&[u8]>, chars_max: usize) -> String {
    const CHAR_BYTES_MAX: usize = 4;
    let mut out = String::new();
    write_within(ty, bytes, chars_max.saturating_mul(CHAR_BYTES_MAX), &mut out);
    if let Some((end, _)) = out.char_indices().nth(chars_max) {
        out.truncate(end);
        out.push_str("...");
    }
    out
}

/// Appends the result of [`to_cql_literal`].
pub fn write_literal(ty: &CqlType, bytes: Option<&[u8]>, out: &mut String) {
    write_within(ty, bytes, usize::MAX, out);
}

/// The same, as long as the text has not more than `max` bytes. A text that has more is not whole.
fn write_within(ty: &CqlType, bytes: Option<&[u8]>, max: usize, out: &mut String) {
    if out.len() > max {
        return;
    }
    let Some(bytes) = bytes else {
        out.push_str("null");
        return;
    };
    if ty.validate_stored(bytes).is_err() && !matches!(ty, CqlType::Empty) {
        out.push_str("0x");
        write_hex(bytes, out);
        return;
    }
    match ty {
        CqlType::Ascii | CqlType::Text => write_quoted(&String::from_utf8_lossy(bytes), out),
        CqlType::Blob => {
            out.push_str("0x");
            write_hex(bytes, out);
        }
        CqlType::List { element, .. } => {
            write_elements(('[', ']'), element, Elements::of_list(bytes), max, out);
        }
        CqlType::Set { element, .. } => {
            write_elements(('{', '}'), element, Elements::of_list(bytes), max, out);
        }
        CqlType::Vector { element, .. } => {
            write_elements(('[', ']'), element, VectorElements::of(element, bytes).map(Some), max, out);
        }
        CqlType::Map { key, value, .. } => write_map((key, value), bytes, max, out),
        CqlType::Tuple(types) => {
            let mut rest = bytes;
            let fields = types.iter().map_while(|ty| take_value(&mut rest).map(|field| (ty, field)));
            out.push('(');
            for (i, (ty, field)) in fields.enumerate() {
                separate(i, out);
                write_within(ty, field, max, out);
            }
            out.push(')');
        }
        CqlType::Udt(udt) => {
            let mut rest = bytes;
            out.push('{');
            for (i, (name, ty)) in udt.fields.iter().enumerate() {
                let Some(field) = take_value(&mut rest).filter(|_| out.len() <= max) else { break };
                separate(i, out);
                write_name(name, max, out);
                out.push_str(": ");
                write_within(ty, field, max, out);
            }
            out.push('}');
        }
        CqlType::Custom(class) if &**class != DATE_CLASS => {
            out.push_str("0x");
            write_hex(bytes, out);
        }
        _ if bytes.is_empty() => out.push_str("null"),
        CqlType::Date | CqlType::Inet | CqlType::Time | CqlType::Timestamp | CqlType::Custom(_) => {
            out.push('\'');
            write_plain(ty, bytes, 'T', out);
            out.push('\'');
        }
        _ => write_plain(ty, bytes, 'T', out),
    }
}

/// Appends a name as `quote_identifier` writes it, or more than `max` bytes of a longer one.
fn write_name(name: &str, max: usize, out: &mut String) {
    let shown = name.get(..name.floor_char_boundary(max.saturating_add(4))).unwrap_or_default();
    if is_bare(name) {
        return out.push_str(shown);
    }
    out.push('"');
    out.push_str(&shown.replace('"', "\"\""));
    out.push('"');
}

/// Appends a valid value of a type without parts, except text, without quotes; `separator` is between the date and the
/// time of a timestamp. Appends nothing for other types and the empty value.
pub(super) fn write_plain(ty: &CqlType, bytes: &[u8], separator: char, out: &mut String) {
    match ty {
        CqlType::BigInt | CqlType::Counter | CqlType::Int | CqlType::SmallInt | CqlType::TinyInt => {
            if let Some(value) = integer::to_i64(bytes) {
                write_integer(value, out);
            }
        }
        CqlType::Boolean => match bytes.first() {
            None => {}
            Some(0) => out.push_str("false"),
            Some(_) => out.push_str("true"),
        },
        CqlType::Date => _ = bytes.try_into().map(|bytes| date::write_date(bytes, out)),
        CqlType::Decimal => decimal::write(bytes, out),
        CqlType::Double => _ = bytes.try_into().map(|bytes| float::write_double(bytes, out)),
        CqlType::Duration => _ = Duration::from_bytes(bytes).map(|value| duration::write(value, out)),
        CqlType::Float => _ = bytes.try_into().map(|bytes| float::write_float(bytes, out)),
        CqlType::Inet => inet::write(bytes, out),
        CqlType::Time => _ = bytes.try_into().map(|bytes| date::write_time(bytes, out)),
        CqlType::Timestamp => _ = bytes.try_into().map(|bytes| timestamp::write(bytes, separator, out)),
        CqlType::TimeUuid | CqlType::Uuid => _ = bytes.try_into().map(|bytes| uuid::write(bytes, out)),
        CqlType::Varint if !bytes.is_empty() => integer::write_varint(bytes, out),
        CqlType::Custom(class) if &**class == DATE_CLASS => {
            _ = bytes.try_into().map(|bytes| timestamp::write(bytes, separator, out));
        }
        CqlType::Custom(_) => _ = bytes.try_into().map(|bytes| uuid::write(bytes, out)),
        _ => {}
    }
}

/// Appends a comma, except before the first element.
pub(super) fn separate(index: usize, out: &mut String) {
    if index > 0 {
        out.push_str(", ");
    }
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('\'');
    for (i, part) in text.split('\'').enumerate() {
        if i > 0 {
            out.push_str("''");
        }
        out.push_str(part);
    }
    out.push('\'');
}

fn write_elements<'a>(
    (open, close): (char, char),
    element: &CqlType,
    values: impl Iterator<Item = Option<&'a [u8]>>,
    max: usize,
    out: &mut String,
) {
    out.push(open);
    for (i, value) in values.enumerate() {
        if out.len() > max {
            return;
        }
        separate(i, out);
        write_within(element, value, max, out);
    }
    out.push(close);
}

fn write_map((key, value): (&CqlType, &CqlType), bytes: &[u8], max: usize, out: &mut String) {
    let mut elements = Elements::of_map(bytes);
    out.push('{');
    let mut index = 0;
    while let (Some(entry_key), Some(entry_value)) = (elements.next(), elements.next())
        && out.len() <= max
    {
        separate(index, out);
        write_within(key, entry_key, max, out);
        out.push_str(": ");
        write_within(value, entry_value, max, out);
        index += 1;
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::UserType;
    use std::sync::Arc;

    fn udt(fields: usize, name_bytes: usize, ty: &CqlType) -> CqlType {
        let name = |number: usize| format!("\"ä{number}{}", "n".repeat(name_bytes)).into();
        CqlType::Udt(Arc::new(UserType {
            keyspace: "k".into(),
            name: "u".into(),
            fields: (0..fields).map(|number| (name(number), ty.clone())).collect(),
            frozen: true,
        }))
    }

    fn fields(count: usize, value: &[u8]) -> Vec<u8> {
        let one = [&(value.len() as i32).to_be_bytes()[..], value].concat();
        one.repeat(count)
    }

    #[test]
    fn a_short_literal_is_the_beginning_of_the_literal_and_costs_what_it_shows() {
        for chars_max in [0, 1, 2, 5, 17, 100, 4096] {
            for (count, name_bytes) in [(1, 0), (3, 4), (100, 1), (60, 300), (2, 9000)] {
                let inner = udt(count, name_bytes, &CqlType::Int);
                let value = fields(count, &7_i32.to_be_bytes());
                let list = [&3_i32.to_be_bytes()[..], &fields(3, &value)].concat();
                let of_lists = CqlType::List { element: Arc::new(inner.clone()), frozen: true };
                for (ty, value) in [(&inner, &value), (&of_lists, &list)] {
                    let (whole, short) =
                        (to_cql_literal(ty, Some(value)), to_short_literal(ty, Some(value), chars_max));
                    match whole.chars().count() > chars_max {
                        true => {
                            let beginning: String = whole.chars().take(chars_max).collect();
                            assert_eq!(short, beginning + "...", "{chars_max} of {count} with {name_bytes}");
                        }
                        false => assert_eq!(short, whole),
                    }
                    let mut made = String::new();
                    write_within(ty, Some(value), chars_max, &mut made);
                    assert!(made.len() <= 3 * chars_max + 64, "{} bytes for {chars_max}", made.len());
                }
            }
        }
    }
}
