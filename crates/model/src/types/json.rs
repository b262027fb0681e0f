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
    _ = write_json_within(ty, bytes, out, &mut |_, _| true);
}

/// Makes room in a text for so many more bytes; false if there is none.
pub type TextRoom<'r> = &'r mut dyn FnMut(&mut String, usize) -> bool;

/// The most bytes of the text of a value without parts, for each of its own, and the most that it has besides. A
/// character may become six (`\u001F`); dates, UUIDs and numbers are shorter than the rest.
const TEXT_BYTES_PER_BYTE: usize = 6;
const TEXT_BYTES_MORE: usize = 64;

/// The same as [`write_json`], but `room` is asked before the text grows: a few bytes of a tuple may become a text that
/// is as long as its type. `None` once it has refused; the text then ends somewhere.
pub fn write_json_within(
    ty: &CqlType,
    bytes: Option<&[u8]>,
    out: &mut String,
    room: TextRoom<'_>,
) -> Option<()> {
    write_with((ty, Numbers::OfCassandra), bytes, out, room)
}

/// As [`write_json`], with `"NaN"`, `"Infinity"` and `"-Infinity"` where Cassandra's JSON has `null`, which could not be told from no
/// value. Cassandra reads these texts as such numbers (`FloatType.fromJSONObject`).
pub fn write_json_exactly(ty: &CqlType, bytes: Option<&[u8]>, out: &mut String) {
    _ = write_with((ty, Numbers::All), bytes, out, &mut |_, _| true);
}

/// How numbers are written that JSON does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// As null.
    OfCassandra,
    /// As texts.
    All,
}

fn write_with(
    (ty, numbers): (&CqlType, Numbers),
    bytes: Option<&[u8]>,
    out: &mut String,
    room: TextRoom<'_>,
) -> Option<()> {
    let own = bytes.filter(|_| !ty.has_parts()).map_or(0, <[u8]>::len);
    if !room(out, TEXT_BYTES_PER_BYTE * own + TEXT_BYTES_MORE) {
        return None;
    }
    let Some(bytes) = bytes else {
        out.push_str("null");
        return Some(());
    };
    // These types are validated and printed in one pass; all others are validated first.
    match (ty, bytes) {
        (CqlType::Text, _) => {
            match simdutf8::basic::from_utf8(bytes) {
                Ok(text) => write_json_string(text, out),
                Err(_) => write_blob(bytes, out),
            }
            return Some(());
        }
        (CqlType::Int, [a, b, c, d]) => {
            write_integer(i64::from(i32::from_be_bytes([*a, *b, *c, *d])), out);
            return Some(());
        }
        (CqlType::BigInt, [a, b, c, d, e, f, g, h]) => {
            write_integer(i64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), out);
            return Some(());
        }
        (CqlType::Blob, _) => {
            write_blob(bytes, out);
            return Some(());
        }
        // `""` is parsed to these empty values, though a bound value of these types must not be empty. Cassandra prints
        // `smallint` and `duration` like this (`ShortType`, `AbstractType.toJSONString`) and fails for `tinyint`.
        (CqlType::SmallInt | CqlType::TinyInt | CqlType::Duration, []) => {
            out.push_str("\"\"");
            return Some(());
        }
        _ => {}
    }
    if ty.validate_stored(bytes).is_err() {
        if !room(out, 2 * bytes.len() + TEXT_BYTES_MORE) {
            return None;
        }
        write_blob(bytes, out);
        return Some(());
    }
    write_valid((ty, numbers), bytes, out, room)
}

/// Writes bytes that are valid for their type.
fn write_valid(
    (ty, numbers): (&CqlType, Numbers),
    bytes: &[u8],
    out: &mut String,
    room: TextRoom<'_>,
) -> Option<()> {
    match ty {
        CqlType::Ascii => write_json_string(&String::from_utf8_lossy(bytes), out),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            write_array((element, numbers), Elements::of_list(bytes), out, room)?;
        }
        CqlType::Vector { element, .. } => {
            write_array((element, numbers), VectorElements::of(element, bytes).map(Some), out, room)?;
        }
        CqlType::Map { key, value, .. } => write_map((key, value, numbers), bytes, out, room)?,
        CqlType::Tuple(types) => {
            let mut rest = bytes;
            out.push('[');
            for (i, ty) in types.iter().enumerate() {
                separate(i, out);
                write_with((ty, numbers), take_value(&mut rest).flatten(), out, room)?;
            }
            out.push(']');
        }
        CqlType::Udt(udt) => write_object((udt, numbers), bytes, out, room)?,
        CqlType::Double
            if let Some(text) =
                not_finite(bytes.first_chunk().map(|of| f64::from_be_bytes(*of)), numbers) =>
        {
            out.push_str(text);
        }
        CqlType::Float
            if let Some(text) =
                not_finite(bytes.first_chunk().map(|of| f64::from(f32::from_be_bytes(*of))), numbers) =>
        {
            out.push_str(text);
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
    Some(())
}

/// The text of a number that JSON does not have; `None` for all others.
fn not_finite(number: Option<f64>, numbers: Numbers) -> Option<&'static str> {
    let number = number.filter(|number| !number.is_finite())?;
    Some(match numbers {
        Numbers::OfCassandra => "null",
        Numbers::All if number.is_nan() => "\"NaN\"",
        Numbers::All if number > 0.0 => "\"Infinity\"",
        Numbers::All => "\"-Infinity\"",
    })
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

fn write_array<'a>(
    (element, numbers): (&CqlType, Numbers),
    values: impl Iterator<Item = Option<&'a [u8]>>,
    out: &mut String,
    room: TextRoom<'_>,
) -> Option<()> {
    out.push('[');
    for (i, value) in values.enumerate() {
        separate(i, out);
        write_with((element, numbers), value, out, room)?;
    }
    out.push(']');
    Some(())
}

/// Keys whose JSON is not a string are put in quotes.
fn write_map(
    (key, value, numbers): (&CqlType, &CqlType, Numbers),
    bytes: &[u8],
    out: &mut String,
    room: TextRoom<'_>,
) -> Option<()> {
    let mut elements = Elements::of_map(bytes);
    out.push('{');
    let mut index = 0;
    while let (Some(entry_key), Some(entry_value)) = (elements.next(), elements.next()) {
        separate(index, out);
        let mut text = String::new();
        write_with((key, numbers), entry_key, &mut text, room)?;
        if !room(out, TEXT_BYTES_PER_BYTE * text.len() + TEXT_BYTES_MORE) {
            return None;
        }
        if text.starts_with('"') {
            out.push_str(&text);
        } else {
            write_json_string(&text, out);
        }
        out.push_str(": ");
        write_with((value, numbers), entry_value, out, room)?;
        index += 1;
    }
    out.push('}');
    Some(())
}

/// A field name with capitals keeps its CQL quotes within the JSON string.
fn write_object(
    (udt, numbers): (&UserType, Numbers),
    bytes: &[u8],
    out: &mut String,
    room: TextRoom<'_>,
) -> Option<()> {
    let mut rest = bytes;
    out.push('{');
    for (i, (name, ty)) in udt.fields.iter().enumerate() {
        separate(i, out);
        if !room(out, TEXT_BYTES_PER_BYTE * name.len() + TEXT_BYTES_MORE) {
            return None;
        }
        if name.chars().any(char::is_uppercase) {
            write_json_string(&format!("\"{name}\""), out);
        } else {
            write_json_string(name, out);
        }
        out.push_str(": ");
        write_with((ty, numbers), take_value(&mut rest).flatten(), out, room)?;
    }
    out.push('}');
    Some(())
}
