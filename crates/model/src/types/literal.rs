//! Values as CQL literals (`CQL3Type.toCQLLiteral`).
//!
//! Bytes that are invalid for their type are printed as a blob literal, because error messages and tools must not fail
//! on damaged data.

use super::class_name::DATE_CLASS;
use super::collection::{Elements, take_value};
use super::digits::write_integer;
use super::duration::{self, Duration};
use super::text::write_hex;
use super::vector::VectorElements;
use super::{CqlType, date, decimal, float, inet, integer, quote_identifier, timestamp, uuid};

/// The literal of a value; `null` for `None` and for meaningless empty values.
pub fn to_cql_literal(ty: &CqlType, bytes: Option<&[u8]>) -> String {
    let mut out = String::new();
    write_literal(ty, bytes, &mut out);
    out
}

/// Appends the result of [`to_cql_literal`].
pub fn write_literal(ty: &CqlType, bytes: Option<&[u8]>, out: &mut String) {
    let Some(bytes) = bytes else {
        out.push_str("null");
        return;
    };
    if ty.validate(bytes).is_err() && !matches!(ty, CqlType::Empty) {
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
        CqlType::List { element, .. } => write_elements('[', element, Elements::of_list(bytes), ']', out),
        CqlType::Set { element, .. } => write_elements('{', element, Elements::of_list(bytes), '}', out),
        CqlType::Vector { element, .. } => {
            write_elements('[', element, VectorElements::of(element, bytes).map(Some), ']', out);
        }
        CqlType::Map { key, value, .. } => write_map(key, value, bytes, out),
        CqlType::Tuple(types) => {
            let mut rest = bytes;
            let fields = types.iter().map_while(|ty| take_value(&mut rest).map(|field| (ty, field)));
            out.push('(');
            for (i, (ty, field)) in fields.enumerate() {
                separate(i, out);
                write_literal(ty, field, out);
            }
            out.push(')');
        }
        CqlType::Udt(udt) => {
            let mut rest = bytes;
            out.push('{');
            for (i, (name, ty)) in udt.fields.iter().enumerate() {
                let Some(field) = take_value(&mut rest) else { break };
                separate(i, out);
                out.push_str(&quote_identifier(name));
                out.push_str(": ");
                write_literal(ty, field, out);
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
    open: char,
    element: &CqlType,
    values: impl Iterator<Item = Option<&'a [u8]>>,
    close: char,
    out: &mut String,
) {
    out.push(open);
    for (i, value) in values.enumerate() {
        separate(i, out);
        write_literal(element, value, out);
    }
    out.push(close);
}

fn write_map(key: &CqlType, value: &CqlType, bytes: &[u8], out: &mut String) {
    let mut elements = Elements::of_map(bytes);
    out.push('{');
    let mut index = 0;
    while let (Some(entry_key), Some(entry_value)) = (elements.next(), elements.next()) {
        separate(index, out);
        write_literal(key, entry_key, out);
        out.push_str(": ");
        write_literal(value, entry_value, out);
        index += 1;
    }
    out.push('}');
}
