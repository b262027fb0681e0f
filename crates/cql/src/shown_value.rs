//! Values as short texts, for EXPLAIN and for messages: no text is much longer than what a reader looks at, however long
//! the value is.

use helenus_model::types::{CqlType, to_short_literal};

/// The most bytes of a value whose literal is shown. The text of a longer one takes several times its memory, and of a
/// long number more than linear time.
const LITERAL_BYTES_MAX: usize = 1024;
/// The most characters of a literal: names of fields may be longer than the values.
const LITERAL_CHARS_MAX: usize = 4096;
/// The most bytes of a value that are shown as hexadecimal digits.
const HEX_BYTES_MAX: usize = 64;

/// The CQL literal of a value, or only its length if it is long; `null` for `None`.
pub(crate) fn shown_literal(ty: &CqlType, value: Option<&[u8]>) -> String {
    match value {
        Some(bytes) if bytes.len() > LITERAL_BYTES_MAX => format!("<{} bytes>", bytes.len()),
        value => to_short_literal(ty, value, LITERAL_CHARS_MAX),
    }
}

/// The first bytes of a value as hexadecimal digits.
pub(crate) fn shown_hex(bytes: &[u8]) -> String {
    let mut text: String = bytes.iter().take(HEX_BYTES_MAX).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > HEX_BYTES_MAX {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_and_short_ones_are_whole() {
        assert_eq!(shown_literal(&CqlType::Int, Some(&[0, 0, 0, 7])), "7");
        assert_eq!(shown_literal(&CqlType::Int, None), "null");
        assert_eq!(shown_literal(&CqlType::Blob, Some(&[7; 5000])), "<5000 bytes>");
        assert_eq!(shown_literal(&CqlType::Blob, Some(&[7; 1024])).len(), 2 + 2 * 1024);
        assert_eq!(shown_hex(&[0xAB, 1]), "ab01");
        assert_eq!(shown_hex(&[1; 1 << 20]).len(), 2 * HEX_BYTES_MAX + 3);
    }
}
