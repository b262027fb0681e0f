//! Values as plain text, as Cassandra's tools print and parse partition keys and paths in collections (each type's
//! `getString`, and `CompositeType`'s for keys of several columns).

use super::class_name::{DATE_CLASS, LEXICAL_UUID_CLASS};
use super::error::quoted;
use super::literal::write_plain;
use super::text::write_hex;
use super::tuple::Fields;
use super::{CqlType, TypeError, composite, parse_text};

/// Appends a value as text without quotes. Bytes that are invalid for the type, and values without a text form, are
/// printed as hexadecimal digits.
pub fn write_text(ty: &CqlType, bytes: &[u8], out: &mut String) {
    if matches!(ty, CqlType::Text) {
        // Validated and printed in one pass.
        match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => out.push_str(text),
            Err(_) => write_hex(bytes, out),
        }
        return;
    }
    if ty.validate(bytes).is_err() {
        write_hex(bytes, out);
        return;
    }
    match ty {
        CqlType::Ascii => out.push_str(&String::from_utf8_lossy(bytes)),
        CqlType::Tuple(types) => write_fields(types.iter(), bytes, out),
        CqlType::Udt(udt) => write_fields(udt.fields.iter().map(|(_, ty)| ty), bytes, out),
        CqlType::Custom(class) if &**class == DATE_CLASS || &**class == LEXICAL_UUID_CLASS => {
            write_plain(ty, bytes, 'T', out);
        }
        CqlType::Custom(class) if composite::is_composite(class) => composite::write(class, bytes, out),
        CqlType::Blob
        | CqlType::Custom(_)
        | CqlType::List { .. }
        | CqlType::Set { .. }
        | CqlType::Map { .. }
        | CqlType::Vector { .. } => write_hex(bytes, out),
        _ => write_plain(ty, bytes, 'T', out),
    }
}

/// Appends fields with `:` between them and `@` for null; both characters are escaped within a field.
fn write_fields<'t>(types: impl Iterator<Item = &'t CqlType>, bytes: &[u8], out: &mut String) {
    for (index, (ty, field)) in types.zip(Fields::of(bytes)).enumerate() {
        if index > 0 {
            out.push(':');
        }
        match field {
            None => out.push('@'),
            Some(field) => {
                let mut text = String::new();
                write_text(ty, field, &mut text);
                out.push_str(&text.replace(':', "\\:").replace('@', "\\@"));
            }
        }
    }
}

/// The values of a serialised partition key, one for each column. A truncated composite key has fewer.
pub fn key_values<'k>(columns: usize, key: &'k [u8]) -> Vec<&'k [u8]> {
    if columns == 1 {
        return vec![key];
    }
    let mut rest = key;
    let mut component = || -> Option<&'k [u8]> {
        let length = u16::from_be_bytes(*rest.first_chunk::<2>()?);
        let value = rest.get(2..2 + usize::from(length))?;
        rest = rest.get(2 + value.len() + 1..)?;
        Some(value)
    };
    (0..columns).map_while(|_| component()).collect()
}

/// A partition key as one text: the value of its column, or several values with `:` between them.
pub fn key_text(types: &[&CqlType], key: &[u8]) -> String {
    let mut out = String::new();
    if let [ty] = types {
        write_text(ty, key, &mut out);
        return out;
    }
    for (index, (ty, value)) in types.iter().zip(key_values(types.len(), key)).enumerate() {
        if index > 0 {
            out.push(':');
        }
        let mut text = String::new();
        write_text(ty, value, &mut text);
        let mut text = text.replace(':', "\\:");
        if text.ends_with(['\\', '!']) {
            text.push('!');
        }
        out.push_str(&text);
    }
    out
}

/// Parses a partition key from the text that [`key_text`] prints.
///
/// # Errors
/// The error in the text of a value, in Cassandra's words.
pub fn parse_key_text(types: &[&CqlType], text: &str) -> Result<Vec<u8>, TypeError> {
    if let [ty] = types {
        let key = parse_text(ty, text)?;
        return ty.validate(&key).map(|()| key);
    }
    let parts = split_key(text);
    if parts.len() != types.len() {
        return Err(TypeError::Text {
            before: "not a value for each column of the partition key, with : between them:",
            text: quoted(text),
            after: "",
        });
    }
    let mut key = Vec::new();
    for (ty, part) in types.iter().zip(parts) {
        let value = parse_text(ty, &part)?;
        ty.validate(&value)?;
        key.extend_from_slice(&(value.len() as u16).to_be_bytes());
        key.extend_from_slice(&value);
        key.push(0);
    }
    Ok(key)
}

/// Splits at colons that are not escaped by a backslash, and removes the escapes.
fn split_key(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next_if_eq(&':').is_some() => part.push(':'),
            ':' => parts.push(std::mem::take(&mut part)),
            other => part.push(other),
        }
    }
    parts.push(part);
    for part in &mut parts {
        if part.ends_with("\\!") || part.ends_with("!!") {
            part.pop();
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_several_columns_reads_as_it_prints() {
        let types = [&CqlType::Text, &CqlType::Int, &CqlType::Text];
        for (a, c) in [("a:b", ""), ("", "x!"), ("\\", "a\\"), ("plain", ":")] {
            let mut key = Vec::new();
            for value in [a.as_bytes(), &7_i32.to_be_bytes(), c.as_bytes()] {
                key.extend_from_slice(&(value.len() as u16).to_be_bytes());
                key.extend_from_slice(value);
                key.push(0);
            }
            assert_eq!(key_values(3, &key), [a.as_bytes(), &7_i32.to_be_bytes(), c.as_bytes()]);
            let text = key_text(&types, &key);
            assert_eq!(parse_key_text(&types, &text).unwrap(), key, "{text}");
        }
        assert!(parse_key_text(&types, "a:1").is_err());
    }

    #[test]
    fn text_has_no_quotes_blobs_no_prefix_and_tuples_colons() {
        let text = |ty: &CqlType, bytes: &[u8]| {
            let mut out = String::new();
            write_text(ty, bytes, &mut out);
            out
        };
        assert_eq!(text(&CqlType::Text, b"it's"), "it's");
        assert_eq!(text(&CqlType::Blob, &[0, 0xAB]), "00ab");
        assert_eq!(text(&CqlType::Int, &[]), "");
        let pair = CqlType::Tuple([CqlType::Text, CqlType::Int].into());
        let mut bytes = Vec::new();
        super::super::put_value(Some(b"a:b@"), &mut bytes);
        super::super::put_value(None, &mut bytes);
        assert_eq!(text(&pair, &bytes), "a\\:b\\@:@");
    }
}
