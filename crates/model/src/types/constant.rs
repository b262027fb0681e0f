//! Converts constants of statements to values: which kinds each type accepts, and how their text is parsed.
//!
//! The rules are those of `Constants.Literal` and of each type's `fromString`.

use super::class_name::{DATE_CLASS, LEXICAL_UUID_CLASS};
use super::error::quoted;
use super::{
    ConstantKind, CqlType, TypeError, collection, composite, date, decimal, duration, float, inet, integer,
    text, timestamp, uuid,
};

/// How well a constant fits a type; used to choose between functions of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// The constant's own type.
    Exact,
    /// Another type that accepts it.
    Weak,
    /// A type that refuses it.
    Refused,
}

/// Tests whether a constant of this kind and text is accepted for a value of type `ty`.
pub fn test_constant(ty: &CqlType, kind: ConstantKind, text: &str) -> Assignment {
    use ConstantKind as Kind;
    use CqlType as T;
    match ty {
        T::List { .. } | T::Set { .. } | T::Map { .. } | T::Udt(_) | T::Vector { .. } => {
            return Assignment::Refused;
        }
        // Cassandra does not check the kind for types without a native name.
        T::Tuple(_) => return Assignment::Weak,
        T::Custom(class) if &**class != DATE_CLASS => return Assignment::Weak,
        _ => {}
    }
    let may_be_preferred = match kind {
        Kind::Float => matches!(ty, T::Double | T::Decimal),
        Kind::Integer => matches!(ty, T::Int | T::BigInt | T::Varint),
        _ => true,
    };
    if may_be_preferred && preferred_type(kind, text).as_ref() == Some(ty) {
        return Assignment::Exact;
    }
    let taken = match kind {
        Kind::String => {
            matches!(ty, T::Ascii | T::Text | T::Inet | T::Date | T::Time | T::Timestamp | T::Custom(_))
        }
        Kind::Integer => matches!(
            ty,
            T::BigInt
                | T::Counter
                | T::Date
                | T::Decimal
                | T::Double
                | T::Duration
                | T::Float
                | T::Int
                | T::SmallInt
                | T::Time
                | T::Timestamp
                | T::TinyInt
                | T::Varint
                | T::Custom(_)
        ),
        Kind::Uuid => matches!(ty, T::Uuid | T::TimeUuid),
        Kind::Float => matches!(ty, T::Decimal | T::Double | T::Float),
        Kind::Boolean => matches!(ty, T::Boolean),
        Kind::Hex => matches!(ty, T::Blob),
        Kind::Duration => matches!(ty, T::Duration),
    };
    if taken { Assignment::Weak } else { Assignment::Refused }
}

/// The type of a constant without context: the smallest that holds it. For hexadecimal constants that is `tinyint`, a
/// mistake of Cassandra's that is kept because it decides between functions.
pub fn preferred_type(kind: ConstantKind, text: &str) -> Option<CqlType> {
    Some(match kind {
        ConstantKind::String if text.is_ascii() => CqlType::Ascii,
        ConstantKind::String => CqlType::Text,
        ConstantKind::Integer if text.parse::<i32>().is_ok() => CqlType::Int,
        ConstantKind::Integer if text.parse::<i64>().is_ok() => CqlType::BigInt,
        ConstantKind::Integer => CqlType::Varint,
        ConstantKind::Uuid if text.as_bytes().get(14) == Some(&b'1') => CqlType::TimeUuid,
        ConstantKind::Uuid => CqlType::Uuid,
        ConstantKind::Float if is_exact_double(text) => CqlType::Double,
        ConstantKind::Float => CqlType::Decimal,
        ConstantKind::Boolean => CqlType::Boolean,
        ConstantKind::Hex => CqlType::TinyInt,
        ConstantKind::Duration => CqlType::Duration,
    })
}

/// Whether the shortest text of the nearest double denotes the same number.
fn is_exact_double(text: &str) -> bool {
    if text.trim_start_matches('-').starts_with(['N', 'I']) {
        return true;
    }
    let Some(written) = Written::of(text) else { return false };
    // Long texts end here: their digits are neither made a number nor copied.
    if written.digits.len() > DOUBLE_DIGITS_MAX {
        return false;
    }
    let Ok(value) = text.parse::<f64>() else { return false };
    let nearest = format!("{value:e}");
    Written::of(&nearest).is_some_and(|nearest| nearest == written)
}

/// The most digits of the shortest text of a double.
const DOUBLE_DIGITS_MAX: usize = 17;

/// A number as it is written: equal numbers are equal here.
#[derive(PartialEq)]
struct Written {
    is_negative: bool,
    /// Without zeros at either end; of a long number only the first ones.
    digits: Vec<u8>,
    /// The power of ten by which the last digit is multiplied.
    exponent: i64,
}

impl Written {
    /// `None` for texts that are no decimals (`decimal::parse`).
    fn of(text: &str) -> Option<Written> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, decimal::parse_exponent(exponent)?),
            None => (text, 0),
        };
        let is_negative = mantissa.starts_with('-');
        let mantissa = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = || whole.bytes().chain(fraction.bytes());
        if whole.is_empty() && fraction.is_empty() || !all().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let scale = i32::try_from(fraction.len() as i64 - exponent).ok()?;
        let zeros = all().rev().take_while(|byte| *byte == b'0').count();
        let significant = all().take(whole.len() + fraction.len() - zeros).skip_while(|byte| *byte == b'0');
        let digits: Vec<u8> = significant.take(DOUBLE_DIGITS_MAX + 1).collect();
        match digits.is_empty() {
            true => Some(Written { is_negative: false, digits, exponent: 0 }),
            false => Some(Written { is_negative, digits, exponent: zeros as i64 - i64::from(scale) }),
        }
    }
}

/// The value of a constant for `ty`. String constants come without their quotes, hexadecimal ones with their `0x`.
///
/// # Errors
/// [`TypeError::InvalidConstant`] for a kind that the type refuses, [`TypeError::Now`] for the time of the statement,
/// otherwise the error in the text.
pub fn parse_constant(ty: &CqlType, kind: ConstantKind, text: &str) -> Result<Vec<u8>, TypeError> {
    if test_constant(ty, kind, text) == Assignment::Refused {
        return Err(TypeError::InvalidConstant { kind, text: quoted(text), ty: Box::new(ty.clone()) });
    }
    if kind == ConstantKind::Hex {
        let bytes = text::parse_blob(text.get(2..).unwrap_or_default())?;
        // Cassandra stores hexadecimal constants unchecked, even two bytes in a tinyint. Composites are not checked
        // because of old clients' values.
        if !matches!(ty, CqlType::Custom(class) if composite::is_composite(class)) {
            ty.validate(&bytes)?;
        }
        return Ok(bytes);
    }
    let bytes = parse_text(ty, text)?;
    if matches!(ty, CqlType::Tuple(_)) {
        ty.validate(&bytes)?; // an empty field may be invalid for its type
    }
    Ok(bytes)
}

/// The value that a text denotes, parsed as each type's `fromString` does. Empty text is the empty value of the types
/// that have one, and also of some that do not: [`CqlType::validate`] detects that. Collections and vectors are parsed
/// as hexadecimal digits.
///
/// # Errors
/// The error in the text, in Cassandra's words.
pub fn parse_text(ty: &CqlType, text: &str) -> Result<Vec<u8>, TypeError> {
    match ty {
        CqlType::Ascii => return text::parse_ascii(text),
        CqlType::Text => return Ok(text.as_bytes().to_vec()),
        CqlType::Boolean => return text::parse_boolean(text),
        CqlType::Date => return date::parse_date(text),
        CqlType::Time => return date::parse_time(text),
        CqlType::Tuple(types) => return parse_fields(ty, types.iter().collect(), text),
        CqlType::Udt(udt) => return parse_fields(ty, udt.fields.iter().map(|(_, ty)| ty).collect(), text),
        _ if text.is_empty() => return Ok(Vec::new()),
        _ => {}
    }
    match ty {
        CqlType::BigInt | CqlType::Counter => integer::parse_bigint(text),
        CqlType::Decimal => decimal::parse(text),
        CqlType::Double => float::parse_double(text),
        CqlType::Duration => duration::parse(text),
        CqlType::Empty => Err(TypeError::Text { before: "", text: quoted(text), after: " is not empty" }),
        CqlType::Float => float::parse_float(text),
        CqlType::Inet => inet::parse(text),
        CqlType::Int => integer::parse_int(text),
        CqlType::SmallInt => integer::parse_smallint(text),
        CqlType::Timestamp => timestamp::parse(text),
        CqlType::TimeUuid => uuid::parse_time(text),
        CqlType::TinyInt => integer::parse_tinyint(text),
        CqlType::Uuid => uuid::parse(text),
        CqlType::Varint => integer::parse_varint(text),
        CqlType::Custom(class) if &**class == LEXICAL_UUID_CLASS => uuid::parse_lexical(text),
        CqlType::Custom(class) if &**class == DATE_CLASS => timestamp::parse(text),
        CqlType::Custom(class) if composite::is_composite(class) => composite::parse(class, text),
        _ => text::parse_blob(text),
    }
}

/// Parses fields of a tuple separated by colons; `@` is a null, and a backslash escapes both characters.
fn parse_fields(tuple: &CqlType, types: Vec<&CqlType>, text: &str) -> Result<Vec<u8>, TypeError> {
    let mut out = Vec::new();
    let fields = split_fields(text);
    if fields.len() > types.len() {
        return Err(TypeError::TupleText {
            tuple: tuple.clone(),
            expected: types.len(),
            found: fields.len(),
        });
    }
    for (field, ty) in fields.into_iter().zip(types) {
        if field == "@" {
            collection::put_value(None, &mut out);
            continue;
        }
        let value = parse_text(ty, &field.replace("\\:", ":").replace("\\@", "@"))?;
        collection::put_value(Some(&value), &mut out);
    }
    Ok(out)
}

fn split_fields(text: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    if text.is_empty() {
        return fields;
    }
    let bytes = text.as_bytes();
    let mut start = 0;
    for (i, byte) in bytes.iter().enumerate() {
        if *byte == b':' && (i == 0 || bytes.get(i - 1) != Some(&b'\\')) {
            fields.push(text.get(start..i).unwrap_or_default());
            start = i + 1;
        }
    }
    fields.push(text.get(start..).unwrap_or_default());
    fields
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    /// Digits of such texts take seconds each in a build for tests.
    #[test]
    fn long_numbers_are_not_parsed_to_find_their_types() {
        let digits = "7".repeat(2 << 20);
        for text in [format!("1.{digits}"), format!("{digits}.5"), format!("0.{digits}e-7")] {
            for ty in &CqlType::SIMPLE {
                let taken = matches!(ty, CqlType::Decimal | CqlType::Double | CqlType::Float);
                let found = test_constant(ty, ConstantKind::Float, &text);
                assert_eq!(found != Assignment::Refused, taken, "{ty}");
            }
            assert_eq!(preferred_type(ConstantKind::Float, &text), Some(CqlType::Decimal));
        }
        let zeros = "0".repeat(2 << 20);
        assert_eq!(preferred_type(ConstantKind::Float, &format!("1.{zeros}")), Some(CqlType::Double));
    }

    use super::super::{parse_class_name, to_cql_literal};
    use super::*;

    /// Text of characters that the formats use.
    const LIKELY: &str = "[-+0-9:.TZPeEymohdsuUn@ \\\\(),=a-fµ日]{0,24}";

    /// As `is_exact_double`, by all digits.
    fn is_exact_by_value(text: &str) -> bool {
        let Ok(value) = text.parse::<f64>() else { return false };
        let (written, nearest) = (decimal::parse(text), decimal::parse(&format!("{value:e}")));
        matches!((written, nearest), (Ok(a), Ok(b)) if decimal::compare(&a, &b).is_eq())
    }

    proptest! {
        #[test]
        fn doubles_are_exact_by_their_digits_as_by_their_values(
            text in "-?[0-9]{1,4}0{0,30}\\.0{0,30}[0-9]{0,19}0{0,9}([eE][-+]?[0-9]{1,3})?",
            double: f64,
        ) {
            prop_assert_eq!(is_exact_double(&text), is_exact_by_value(&text), "{}", text);
            for text in [format!("{double}"), format!("{double:e}"), format!("{double}0e1"), format!("{double}1")] {
                let special = text.trim_start_matches('-').starts_with(['N', 'i']);
                prop_assert!(special || is_exact_double(&text) == is_exact_by_value(&text), "{}", text);
            }
        }

        #[test]
        fn whatever_is_read_is_valid_and_prints(text in prop_oneof![LIKELY, any::<String>()]) {
            let tuple = CqlType::Tuple(Arc::new([CqlType::Int, CqlType::Text, CqlType::Duration]));
            _ = parse_constant(&tuple, ConstantKind::String, &text);
            for ty in &CqlType::SIMPLE {
                let Ok(value) = parse_text(ty, &text) else { continue };
                if value.is_empty() && !ty.allows_empty() {
                    continue; // the empty text, which Cassandra does not check
                }
                prop_assert_eq!(ty.validate(&value), Ok(()), "{} {}", ty, text);
                prop_assert!(!to_cql_literal(ty, Some(&value)).starts_with("0x") || *ty == CqlType::Blob);
            }
            _ = parse_class_name(&text);
        }

        #[test]
        fn a_number_comes_back_from_its_text(bytes in proptest::collection::vec(any::<u8>(), 1..30), scale in -9_i32..40) {
            let mut decimal = scale.to_be_bytes().to_vec();
            decimal.extend_from_slice(&bytes);
            for (ty, value) in [(CqlType::Varint, &bytes), (CqlType::Decimal, &decimal)] {
                let again = parse_text(&ty, &to_cql_literal(&ty, Some(value))).unwrap();
                prop_assert!(ty.compare(value, &again).is_eq());
            }
            for ty in [CqlType::Double, CqlType::Float, CqlType::BigInt, CqlType::Int, CqlType::Timestamp] {
                let Some(value) = ty.fixed_length().and_then(|length| bytes.get(..length)) else { continue };
                let text = to_cql_literal(&ty, Some(value));
                let Ok(again) = parse_text(&ty, text.trim_matches('\'')) else {
                    prop_assert!(ty == CqlType::Timestamp, "{} {}", ty, text);
                    continue; // years before 1 are printed without their sign, years after 9999 are parsed without it
                };
                prop_assert!(ty.compare(value, &again).is_eq() || ty == CqlType::Timestamp, "{} {}", ty, text);
            }
        }
    }
}
