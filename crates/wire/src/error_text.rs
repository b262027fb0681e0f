//! Bounds the length of error texts, because they may quote anything that a client sent.

use std::borrow::Cow;

/// Longest text of an error, in bytes. Cassandra's texts are far shorter unless they quote something.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// Bytes kept from the end of a longer text, which says what to do.
const END_BYTES: usize = 1 << 10;

/// The text; if it is too long, its beginning and end with the number of omitted bytes between them.
pub fn error_text(text: &str) -> Cow<'_, str> {
    if text.len() <= TEXT_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    let begin = text.floor_char_boundary(TEXT_BYTES_MAX - END_BYTES);
    let end = text.ceil_char_boundary(text.len() - END_BYTES);
    let (begin, rest) = text.split_at(begin);
    let (between, end) = rest.split_at(end - begin.len());
    Cow::Owned(format!("{begin} ... ({} bytes) ... {end}", between.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_begin_and_its_end() {
        assert_eq!(error_text("short"), "short");
        for long in ["x".repeat(1 << 20), "ä€😀".repeat(10_000), "€".repeat(TEXT_BYTES_MAX / 3 + 1)] {
            let shown = error_text(&long);
            assert!(shown.len() <= TEXT_BYTES_MAX + 40, "{}", shown.len());
            let (begin, end) = (long.floor_char_boundary(600), long.ceil_char_boundary(long.len() - 900));
            assert!(shown.starts_with(&long[..begin]) && shown.ends_with(&long[end..]));
        }
    }
}
