//! Parses the text of a CSV field into a value (cqlsh's `ImportConversion`). Collections may be in JSON (`json_text`).

use super::json_text;
use super::split::{SplitError, split, split_inner};
use super::time::TimeFormat;
use helenus_model::types::{
    CqlType, TypeError, normalise, pack, parse_text, put_element, put_value as put_field,
};
use std::borrow::Cow;

/// The rules for reading texts.
#[derive(Clone, Debug)]
pub struct TextRules {
    pub null: String,
    pub timestamp: TimeFormat,
    /// The words for true and false, in any case.
    pub booleans: [String; 2],
    pub decimal_separator: Option<char>,
    pub thousands_separator: Option<char>,
}

/// The reason why a text is not a value of its column.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    #[error(transparent)]
    Type(#[from] TypeError),
    #[error(transparent)]
    Split(#[from] SplitError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("a blob begins with 0x")]
    Blob,
    #[error("{expected} or {other} was expected")]
    Boolean { expected: String, other: String },
    #[error("an entry of a map is KEY: VALUE, not {0}")]
    Entry(String),
    #[error("the type is no collection, and {0} is one")]
    NoCollection(String),
    #[error("the type has no field {0}")]
    Field(String),
    #[error(
        "The length of given vector value '{found}' is not equal to the vector size from the type definition '{dimension}'"
    )]
    Dimension { found: usize, dimension: u32 },
    #[error("the tuple has {expected} fields, not {found}")]
    Tuple { found: usize, expected: usize },
    #[error("Empty values are not allowed")]
    Empty,
}

/// Appends the serialised value of a text that is not the null marker to `out`.
///
/// # Errors
/// The text is malformed. The content appended to `out` is then meaningless.
pub fn parse_value(ty: &CqlType, text: &str, rules: &TextRules, out: &mut Vec<u8>) -> Result<(), ParseError> {
    match ty {
        CqlType::Text => out.extend_from_slice(text.as_bytes()),
        CqlType::Int => match text.parse::<i32>() {
            Ok(number) => out.extend_from_slice(&number.to_be_bytes()),
            Err(_) => put_plain(ty, text, rules, out)?,
        },
        CqlType::BigInt => match text.parse::<i64>() {
            Ok(number) => out.extend_from_slice(&number.to_be_bytes()),
            Err(_) => put_plain(ty, text, rules, out)?,
        },
        // cqlsh takes an empty text here and for a boolean, where another text stands for null.
        CqlType::Blob if text.is_empty() => {}
        CqlType::Blob => {
            let digits =
                text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).ok_or(ParseError::Blob)?;
            out.extend_from_slice(&parse_text(ty, digits)?);
        }
        CqlType::Boolean if text.is_empty() => out.push(0),
        CqlType::Boolean => out.push(boolean(text, rules)?),
        // COPY TO of cqlsh writes dates that Python does not have as days since 1970.
        CqlType::Date => match text.parse::<i32>() {
            Ok(days) => out.extend_from_slice(&(days as u32 ^ 1 << 31).to_be_bytes()),
            Err(_) => put_plain(ty, text, rules, out)?,
        },
        CqlType::Timestamp => match rules.timestamp.parse(text) {
            Some(ms) => out.extend_from_slice(&ms.to_be_bytes()),
            None => put_plain(ty, text, rules, out)?,
        },
        CqlType::List { .. }
        | CqlType::Set { .. }
        | CqlType::Map { .. }
        | CqlType::Tuple(_)
        | CqlType::Udt(_)
        | CqlType::Vector { .. } => put_collection(ty, text, rules, out)?,
        _ => put_plain(ty, text, rules, out)?,
    }
    Ok(())
}

fn is_number(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::Int
            | CqlType::BigInt
            | CqlType::SmallInt
            | CqlType::TinyInt
            | CqlType::Varint
            | CqlType::Counter
            | CqlType::Float
            | CqlType::Double
            | CqlType::Decimal
    )
}

fn put_plain(ty: &CqlType, text: &str, rules: &TextRules, out: &mut Vec<u8>) -> Result<(), ParseError> {
    let mut text = Cow::Borrowed(text);
    if is_number(ty) {
        if let Some(separator) = rules.thousands_separator {
            text = text.replace(separator, "").into();
        }
        if let Some(separator) = rules.decimal_separator {
            text = text.replace(separator, ".").into();
        }
        text = text.trim().to_owned().into();
    }
    put_standard(ty, &text, out)
}

/// Appends the value of a text as CQL has it.
fn put_standard(ty: &CqlType, text: &str, out: &mut Vec<u8>) -> Result<(), ParseError> {
    let bytes = parse_text(ty, text)?;
    ty.validate(&bytes)?;
    out.extend_from_slice(&bytes);
    Ok(())
}

fn boolean(text: &str, rules: &TextRules) -> Result<u8, ParseError> {
    let [yes, no] = &rules.booleans;
    match text.trim() {
        text if text.eq_ignore_ascii_case(yes) => Ok(1),
        text if text.eq_ignore_ascii_case(no) => Ok(0),
        _ => Err(ParseError::Boolean { expected: yes.clone(), other: no.clone() }),
    }
}

/// Parses an element of a collection, where a text may be quoted.
fn part(ty: &CqlType, text: &str, rules: &TextRules) -> Result<Vec<u8>, ParseError> {
    let plain = unquoted(text);
    if plain == rules.null && !matches!(ty, CqlType::Text | CqlType::Ascii) {
        return Err(ParseError::Empty);
    }
    let mut out = Vec::new();
    parse_value(ty, &plain, rules, &mut out)?;
    Ok(out)
}

/// Parses a field of a tuple or user type, which may be null.
fn field(ty: &CqlType, text: &str, rules: &TextRules) -> Result<Option<Vec<u8>>, ParseError> {
    match unquoted(text) {
        plain if plain == rules.null && !text.starts_with('\'') || text == "null" => Ok(None),
        _ => part(ty, text, rules).map(Some),
    }
}

fn unquoted(text: &str) -> Cow<'_, str> {
    match text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(inner) if inner.contains('\'') => inner.replace("''", "'").into(),
        Some(inner) => inner.into(),
        None => text.into(),
    }
}

/// Parses an element of a collection in JSON.
fn json_part(ty: &CqlType, text: &str, rules: &TextRules) -> Result<Vec<u8>, ParseError> {
    let mut out = Vec::new();
    match (ty, text) {
        (_, "null") => return Err(ParseError::Empty),
        (CqlType::Boolean, "true" | "false") => out.push(u8::from(text == "true")),
        _ if text.starts_with(['[', '{']) => put_json_collection(ty, text, rules, &mut out)?,
        // A number of JSON has a point, and nothing between its digits, whatever separates those of CSV.
        _ if is_number(ty) && !json_text::is_quoted(text) => put_standard(ty, text, &mut out)?,
        _ => parse_value(ty, &json_text::scalar(text)?, rules, &mut out)?,
    }
    Ok(out)
}

/// Parses a field of a tuple or user type in JSON, which may be null.
fn json_field(ty: &CqlType, text: &str, rules: &TextRules) -> Result<Option<Vec<u8>>, ParseError> {
    if text == "null" { Ok(None) } else { json_part(ty, text, rules).map(Some) }
}

fn put_json_collection(
    ty: &CqlType,
    text: &str,
    rules: &TextRules,
    out: &mut Vec<u8>,
) -> Result<(), ParseError> {
    let parts = json_text::parts(text);
    let entry = |part: &str| match json_text::entry(part)? {
        Some((name, value)) => Ok((name.into_owned(), value.to_owned())),
        None => Err(ParseError::Entry(part.to_owned())),
    };
    let elements = |element: &CqlType| {
        parts.iter().map(|text| json_part(element, text, rules)).collect::<Result<Vec<_>, _>>()
    };
    let mut bytes = Vec::new();
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            let values = elements(element)?;
            pack(values.len(), values.iter().map(|value| Some(value.as_slice())), &mut bytes);
        }
        CqlType::Map { key, value, .. } => {
            let mut values = Vec::new();
            for part in &parts {
                // The name of an entry is a text, whatever the type of the keys is.
                let (name, found) = entry(part)?;
                let mut of_key = Vec::new();
                parse_value(key, &name, rules, &mut of_key)?;
                values.push(of_key);
                values.push(json_part(value, &found, rules)?);
            }
            pack(values.len() / 2, values.iter().map(|value| Some(value.as_slice())), &mut bytes);
        }
        CqlType::Tuple(types) => {
            if parts.len() > types.len() {
                return Err(ParseError::Tuple { found: parts.len(), expected: types.len() });
            }
            for (text, ty) in parts.iter().zip(types.iter()) {
                put_field(json_field(ty, text, rules)?.as_deref(), &mut bytes);
            }
        }
        CqlType::Udt(udt) => {
            let mut values = vec![None; udt.fields.len()];
            for part in &parts {
                let (name, found) = entry(part)?;
                let at = udt.fields.iter().position(|(field, _)| **field == *name);
                let at = at.ok_or_else(|| ParseError::Field(name.clone()))?;
                if let (Some((_, ty)), Some(value)) = (udt.fields.get(at), values.get_mut(at)) {
                    *value = json_field(ty, &found, rules)?;
                }
            }
            values.iter().for_each(|value| put_field(value.as_deref(), &mut bytes));
        }
        CqlType::Vector { element, dimension } => {
            if u32::try_from(parts.len()) != Ok(*dimension) {
                return Err(ParseError::Dimension { found: parts.len(), dimension: *dimension });
            }
            elements(element)?.iter().for_each(|value| put_element(element, value, &mut bytes));
        }
        _ => return Err(ParseError::NoCollection(text.to_owned())),
    }
    out.extend_from_slice(&normalise(ty, &bytes));
    Ok(())
}

fn put_collection(ty: &CqlType, text: &str, rules: &TextRules, out: &mut Vec<u8>) -> Result<(), ParseError> {
    if json_text::is_json(text) {
        return put_json_collection(ty, text, rules, out);
    }
    let parts = split(text, ',')?;
    let mut bytes = Vec::new();
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            let values =
                parts.iter().map(|text| part(element, text, rules)).collect::<Result<Vec<_>, _>>()?;
            pack(values.len(), values.iter().map(|value| Some(value.as_slice())), &mut bytes);
        }
        CqlType::Map { key, value, .. } => {
            let mut values = Vec::new();
            for text in &parts {
                let [found_key, found] = split_inner(text, ':')[..] else {
                    return Err(ParseError::Entry((*text).to_owned()));
                };
                values.push(part(key, found_key, rules)?);
                values.push(part(value, found, rules)?);
            }
            pack(values.len() / 2, values.iter().map(|value| Some(value.as_slice())), &mut bytes);
        }
        CqlType::Tuple(types) => {
            if parts.len() > types.len() {
                return Err(ParseError::Tuple { found: parts.len(), expected: types.len() });
            }
            for (text, ty) in parts.iter().zip(types.iter()) {
                put_field(field(ty, text, rules)?.as_deref(), &mut bytes);
            }
        }
        CqlType::Udt(udt) => {
            let mut values = vec![None; udt.fields.len()];
            for text in &parts {
                let [name, found] = split_inner(text, ':')[..] else {
                    return Err(ParseError::Entry((*text).to_owned()));
                };
                let name = unquoted(name);
                let name = name.trim_matches('"');
                let at = udt.fields.iter().position(|(field, _)| **field == *name);
                let at = at.ok_or_else(|| ParseError::Field(name.to_owned()))?;
                if let (Some((_, ty)), Some(value)) = (udt.fields.get(at), values.get_mut(at)) {
                    *value = field(ty, found, rules)?;
                }
            }
            values.iter().for_each(|value| put_field(value.as_deref(), &mut bytes));
        }
        CqlType::Vector { element, dimension } => {
            if u32::try_from(parts.len()) != Ok(*dimension) {
                return Err(ParseError::Dimension { found: parts.len(), dimension: *dimension });
            }
            for text in &parts {
                put_element(element, &part(element, text, rules)?, &mut bytes);
            }
        }
        _ => {}
    }
    // The server expects sets and maps in their type's order without duplicates.
    out.extend_from_slice(&normalise(ty, &bytes));
    Ok(())
}
