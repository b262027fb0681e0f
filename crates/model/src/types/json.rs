//! Values as JSON, as in `SELECT JSON` and `toJson` (each type's `toJSONString`).
//!
//! The text differs from the CQL literal: timestamps have a space, NaN is null, empty numbers are `""`.

use super::class_name::DATE_CLASS;
use super::collection::{Elements, take_value};
use super::digits::write_integer;
use super::literal::{separate, write_plain};
use super::text::write_hex;
use super::vector::VectorElements;
use super::{CqlType, UserType};

/// The JSON text of a value; `None` is `null`.
pub fn to_json(ty: &CqlType, bytes: Option<&[u8]>) -> String {
    let mut out = String::new();
    write_json(ty, bytes, &mut out);
    out
}

/// Appends the result of [`to_json`]. Bytes that are invalid for their type are printed as a blob.
pub fn write_json(ty: &CqlType, bytes: Option<&[u8]>, out: &mut String) {
    let Some(bytes) = bytes else {
        out.push_str("null");
        return;
    };
    // These types are validated and printed in one pass; all others are validated first.
    match (ty, bytes) {
        (CqlType::Text, _) => {
            match simdutf8::basic::from_utf8(bytes) {
                Ok(text) => write_json_string(text, out),
                Err(_) => write_blob(bytes, out),
            }
            return;
        }
        (CqlType::Int, [a, b, c, d]) => {
            return write_integer(i64::from(i32::from_be_bytes([*a, *b, *c, *d])), out);
        }
        (CqlType::BigInt, [a, b, c, d, e, f, g, h]) => {
            return write_integer(i64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), out);
        }
        (CqlType::Blob, _) => return write_blob(bytes, out),
        // `""` is parsed to these empty values, though a bound value of these types must not be empty. Cassandra prints
        // `smallint` and `duration` like this (`ShortType`, `AbstractType.toJSONString`) and fails for `tinyint`.
        (CqlType::SmallInt | CqlType::TinyInt | CqlType::Duration, []) => return out.push_str("\"\""),
        _ => {}
    }
    if ty.validate(bytes).is_err() {
        write_blob(bytes, out);
        return;
    }
    match ty {
        CqlType::Ascii => write_json_string(&String::from_utf8_lossy(bytes), out),
        CqlType::Blob => write_blob(bytes, out),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            write_array(element, Elements::of_list(bytes), out);
        }
        CqlType::Vector { element, .. } => {
            write_array(element, VectorElements::of(element, bytes).map(Some), out)
        }
        CqlType::Map { key, value, .. } => write_map(key, value, bytes, out),
        CqlType::Tuple(types) => {
            let mut rest = bytes;
            out.push('[');
            for (i, ty) in types.iter().enumerate() {
                separate(i, out);
                write_json(ty, take_value(&mut rest).flatten(), out);
            }
            out.push(']');
        }
        CqlType::Udt(udt) => write_object(udt, bytes, out),
        CqlType::Double
            if <[u8; 8]>::try_from(bytes).is_ok_and(|bytes| !f64::from_be_bytes(bytes).is_finite()) =>
        {
            out.push_str("null");
        }
        CqlType::Float
            if <[u8; 4]>::try_from(bytes).is_ok_and(|bytes| !f32::from_be_bytes(bytes).is_finite()) =>
        {
            out.push_str("null");
        }
        CqlType::BigInt
        | CqlType::Boolean
        | CqlType::Counter
        | CqlType::Decimal
        | CqlType::Double
        | CqlType::Float
        | CqlType::Int
        | CqlType::SmallInt
        | CqlType::TinyInt
        | CqlType::Varint
            if !bytes.is_empty() =>
        {
            write_plain(ty, bytes, ' ', out);
        }
        CqlType::Custom(class) if !class.ends_with("LexicalUUIDType") && &**class != DATE_CLASS => {
            write_blob(bytes, out);
        }
        _ => {
            out.push('"');
            write_plain(ty, bytes, ' ', out);
            out.push('"');
        }
    }
}

fn write_blob(bytes: &[u8], out: &mut String) {
    out.push_str("\"0x");
    write_hex(bytes, out);
    out.push('"');
}

/// Appends `text` as a JSON string, escaped as Jackson does: with short escapes where they exist, otherwise `\u00XX`.
pub fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    write_escaped(text, out);
    out.push('"');
}

fn write_escaped(text: &str, out: &mut String) {
    use std::fmt::Write as _;
    let mut rest = text;
    // Every character that needs an escape is one byte; the text between them is copied at once.
    while let Some(at) = first_to_escape(rest.as_bytes()) {
        let (plain, from) = rest.split_at(at);
        out.push_str(plain);
        match from.as_bytes()[0] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            0x0C => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => _ = write!(out, "\\u{control:04X}"),
        }
        rest = &from[1..];
    }
    out.push_str(rest);
}

/// Index of the first byte that needs an escape. Sixteen bytes are tested together, in a loop without early exit that
/// compilers can vectorise.
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    let needs_escape = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    let (runs, _) = bytes.as_chunks::<16>();
    let plain = runs.iter().take_while(|run| !run.iter().fold(false, |any, byte| any | needs_escape(*byte)));
    let from = plain.count() * 16;
    let found = bytes[from..].iter().position(|byte| needs_escape(*byte))?;
    Some(from + found)
}

fn write_array<'a>(element: &CqlType, values: impl Iterator<Item = Option<&'a [u8]>>, out: &mut String) {
    out.push('[');
    for (i, value) in values.enumerate() {
        separate(i, out);
        write_json(element, value, out);
    }
    out.push(']');
}

/// Keys whose JSON is not a string are put in quotes.
fn write_map(key: &CqlType, value: &CqlType, bytes: &[u8], out: &mut String) {
    let mut elements = Elements::of_map(bytes);
    out.push('{');
    let mut index = 0;
    while let (Some(entry_key), Some(entry_value)) = (elements.next(), elements.next()) {
        separate(index, out);
        let text = to_json(key, entry_key);
        if text.starts_with('"') {
            out.push_str(&text);
        } else {
            write_json_string(&text, out);
        }
        out.push_str(": ");
        write_json(value, entry_value, out);
        index += 1;
    }
    out.push('}');
}

/// A field name with capitals keeps its CQL quotes within the JSON string.
fn write_object(udt: &UserType, bytes: &[u8], out: &mut String) {
    let mut rest = bytes;
    out.push('{');
    for (i, (name, ty)) in udt.fields.iter().enumerate() {
        separate(i, out);
        if name.chars().any(char::is_uppercase) {
            write_json_string(&format!("\"{name}\""), out);
        } else {
            write_json_string(name, out);
        }
        out.push_str(": ");
        write_json(ty, take_value(&mut rest).flatten(), out);
    }
    out.push('}');
}
