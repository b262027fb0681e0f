//! Parses the text of a CSV field into a value (cqlsh's `ImportConversion`).

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
    #[error("a blob begins with 0x")]
    Blob,
    #[error("{expected} or {other} was expected")]
    Boolean { expected: String, other: String },
    #[error("an entry of a map is KEY: VALUE, not {0}")]
    Entry(String),
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
        CqlType::Blob => {
            let digits =
                text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).ok_or(ParseError::Blob)?;
            out.extend_from_slice(&parse_text(ty, digits)?);
        }
        CqlType::Boolean => out.push(boolean(text, rules)?),
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

fn put_plain(ty: &CqlType, text: &str, rules: &TextRules, out: &mut Vec<u8>) -> Result<(), ParseError> {
    let is_number = matches!(
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
    );
    let mut text = Cow::Borrowed(text);
    if is_number {
        if let Some(separator) = rules.thousands_separator {
            text = text.replace(separator, "").into();
        }
        if let Some(separator) = rules.decimal_separator {
            text = text.replace(separator, ".").into();
        }
        text = text.trim().to_owned().into();
    }
    let bytes = parse_text(ty, &text)?;
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

fn put_collection(ty: &CqlType, text: &str, rules: &TextRules, out: &mut Vec<u8>) -> Result<(), ParseError> {
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
