//! The numbers of CQL for which Rust has no type: integers of any size, and decimal fractions.

use helenus_model::types::{CqlType, parse_text, write_text};
use std::fmt;
use std::str::FromStr;

/// A text that is no such number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} is no {ty}")]
pub struct NumberError {
    /// What was given.
    pub text: String,
    /// `varint` or `decimal`.
    pub ty: &'static str,
}

/// An integer of any size (`varint`). Made from integers of Rust and from texts, and turned into both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Varint {
    /// Two's complement, big endian, as short as it can be.
    bytes: Vec<u8>,
}

impl Varint {
    /// From two's complement, big endian, at any length. No bytes are 0.
    pub fn from_be_bytes(bytes: &[u8]) -> Varint {
        let repeats_sign = |pair: &[u8]| match *pair {
            [first, second] => first == if second < 0x80 { 0 } else { 0xFF },
            _ => false,
        };
        let redundant = bytes.windows(2).take_while(|pair| repeats_sign(pair)).count();
        let short = bytes.get(redundant..).unwrap_or_default();
        Varint { bytes: if short.is_empty() { vec![0] } else { short.to_vec() } }
    }

    /// Two's complement, big endian, as short as it can be.
    pub fn to_be_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<i128> for Varint {
    fn from(value: i128) -> Varint {
        Varint::from_be_bytes(&value.to_be_bytes())
    }
}

impl From<i64> for Varint {
    fn from(value: i64) -> Varint {
        Varint::from(i128::from(value))
    }
}

impl TryFrom<&Varint> for i128 {
    type Error = NumberError;

    /// Fails for an integer that needs more than 128 bits.
    fn try_from(value: &Varint) -> Result<i128, NumberError> {
        let sign = if value.bytes.first().is_some_and(|first| *first >= 0x80) { 0xFF } else { 0 };
        let mut wide = [sign; 16];
        let start = wide.len().checked_sub(value.bytes.len());
        match start.and_then(|start| wide.get_mut(start..)) {
            Some(low) => low.copy_from_slice(&value.bytes),
            None => return Err(NumberError { text: value.to_string(), ty: "integer of 128 bits" }),
        }
        Ok(i128::from_be_bytes(wide))
    }
}

impl TryFrom<&Varint> for i64 {
    type Error = NumberError;

    /// Fails for an integer that needs more than 64 bits.
    fn try_from(value: &Varint) -> Result<i64, NumberError> {
        let wide = i128::try_from(value)?;
        i64::try_from(wide).map_err(|_| NumberError { text: value.to_string(), ty: "integer of 64 bits" })
    }
}

impl FromStr for Varint {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Varint, NumberError> {
        let wrong = || NumberError { text: text.to_owned(), ty: "varint" };
        let bytes = parse_text(&CqlType::Varint, text).map_err(|_| wrong())?;
        if bytes.is_empty() { Err(wrong()) } else { Ok(Varint::from_be_bytes(&bytes)) }
    }
}

impl fmt::Display for Varint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text_of(&CqlType::Varint, &self.bytes))
    }
}

/// A decimal fraction (`decimal`): `unscaled` times ten to the power of `-scale`. 1.5 and 1.50 are different values here; CQL
/// compares them as equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The number of digits behind the point; zeros before it if it is negative.
    pub scale: i32,
    /// All digits, as an integer.
    pub unscaled: Varint,
}

impl Decimal {
    /// The serialised form: the scale, then the integer.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.scale.to_be_bytes().to_vec();
        bytes.extend_from_slice(self.unscaled.to_be_bytes());
        bytes
    }

    /// From the serialised form; `None` if it is too short.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Decimal> {
        let (scale, unscaled) = bytes.split_first_chunk::<4>()?;
        Some(Decimal { scale: i32::from_be_bytes(*scale), unscaled: Varint::from_be_bytes(unscaled) })
    }
}

impl FromStr for Decimal {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Decimal, NumberError> {
        let bytes = parse_text(&CqlType::Decimal, text).ok();
        let wrong = || NumberError { text: text.to_owned(), ty: "decimal" };
        bytes.and_then(|bytes| Decimal::from_bytes(&bytes)).ok_or_else(wrong)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text_of(&CqlType::Decimal, &self.to_bytes()))
    }
}

fn text_of(ty: &CqlType, bytes: &[u8]) -> String {
    let mut text = String::new();
    write_text(ty, bytes, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_size_are_short_and_come_back() {
        for (value, bytes) in [
            (0i64, &[0][..]),
            (127, &[127]),
            (128, &[0, 128]),
            (-1, &[0xFF]),
            (-128, &[0x80]),
            (-129, &[0xFF, 0x7F]),
        ] {
            let made = Varint::from(value);
            assert_eq!(made.to_be_bytes(), bytes, "{value}");
            assert_eq!((made.to_string(), i64::try_from(&made)), (value.to_string(), Ok(value)));
        }
        for text in ["170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"] {
            let made: Varint = text.parse().unwrap();
            assert_eq!(
                (made.to_string(), i128::try_from(&made).unwrap().to_string()),
                (text.into(), text.into())
            );
        }
        let large: Varint = "170141183460469231731687303715884105728".parse().unwrap();
        assert!(i128::try_from(&large).is_err() && "1x".parse::<Varint>().is_err());
        assert!("".parse::<Varint>().is_err());
    }

    #[test]
    fn decimals_keep_their_digits() {
        let made: Decimal = "-12.50".parse().unwrap();
        assert_eq!(made, Decimal { scale: 2, unscaled: (-1250i64).into() });
        assert_eq!(made.to_string(), "-12.50");
        assert!("x".parse::<Decimal>().is_err() && "".parse::<Decimal>().is_err());
    }
}
