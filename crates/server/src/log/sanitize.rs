//! Makes foreign texts safe for the log: of bounded length, and without characters that a terminal or an editor obeys.
//!
//! Every line goes through here (`line`, `sink`), because a statement, the name of a table, or an error that quotes one
//! of them may contain anything.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::Value;

/// Longest message, and longest text in a field, in bytes. The number of omitted bytes is appended.
pub(super) const TEXT_BYTES_MAX: usize = 8 << 10;
/// Most elements of a list in a field.
const LIST_MAX: usize = 64;
/// Most levels of nested lists.
const DEPTH_MAX: usize = 4;

/// A text of slightly more than `bytes_max` bytes at most, on one line.
pub(crate) fn on_one_line(text: &str, bytes_max: usize) -> Cow<'_, str> {
    shown(text, bytes_max, |c| match c {
        '\n' | '\r' | '\t' => Some(' '),
        _ => None,
    })
}

/// A text of slightly more than `bytes_max` bytes at most, with its line ends.
fn as_it_is(text: &str, bytes_max: usize) -> Cow<'_, str> {
    shown(text, bytes_max, |c| matches!(c, '\n' | '\r' | '\t').then_some(c))
}

fn shown(text: &str, bytes_max: usize, replace: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    if text.len() <= bytes_max && !text.chars().any(|c| is_obeyed(c) && replace(c) != Some(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().min(bytes_max) + 32);
    for (at, c) in text.char_indices() {
        if out.len() >= bytes_max {
            // Writing to a String cannot fail.
            let _ok = write!(out, " ... ({} bytes more)", text.len() - at);
            break;
        }
        match replace(c) {
            Some(other) => out.push(other),
            None if is_obeyed(c) => out.extend(c.escape_unicode()),
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Whether a terminal or editor would obey a character instead of showing it: control characters, line ends, changes of
/// the writing direction, and characters without width.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

/// A field's value, with bounded texts and lists.
pub(super) fn bounded(value: &Value) -> Value {
    bounded_to(value, DEPTH_MAX)
}

fn bounded_to(value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) => Value::String(as_it_is(text, TEXT_BYTES_MAX).into_owned()),
        Value::Array(_) | Value::Object(_) if depth == 0 => Value::Null,
        Value::Array(list) => list.iter().take(LIST_MAX).map(|value| bounded_to(value, depth - 1)).collect(),
        Value::Object(map) => map
            .iter()
            .take(LIST_MAX)
            .map(|(name, value)| (name.clone(), bounded_to(value, depth - 1)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_host::Random;
    use helenus_host::sim::Machine;

    /// A random text with many characters that are special somewhere.
    fn draw(random: &dyn Random, length: usize) -> String {
        const NASTY: [char; 12] = [
            '\0', '\n', '\r', '\t', '\u{1b}', '\u{9b}', '\u{7f}', '\u{2028}', '\u{202e}', '\u{feff}', 'ä',
            '"',
        ];
        let mut bytes = vec![0; 4 * length];
        random.fill(&mut bytes);
        let draw = |bytes: &[u8]| match bytes {
            [kind, which, ..] if *kind < 100 => NASTY[usize::from(*which) % NASTY.len()],
            [_, a, b, c] => char::from_u32(u32::from_be_bytes([0, a % 17, *b, *c])).unwrap_or('x'),
            _ => 'y',
        };
        bytes.chunks(4).map(draw).collect()
    }

    #[test]
    fn whatever_the_text_it_is_one_line_of_bounded_length_that_a_terminal_only_shows() {
        for seed in 0..50_u64 {
            println!("seed {seed}");
            let host = Machine::new(seed).host();
            let text = draw(&*host.random, 1 + (seed as usize * 97) % 4000);
            let line = on_one_line(&text, 1000);
            assert!(line.len() <= 1000 + 40, "{} bytes", line.len());
            assert!(!line.chars().any(is_obeyed), "{line:?}");
            let field = bounded(&Value::Array(vec![Value::String(text.repeat(20)); 100]));
            assert!(
                field.to_string().len() <= LIST_MAX * 7 * TEXT_BYTES_MAX,
                "six digits a character at most"
            );
        }
        assert_eq!(on_one_line("plain ä text", 1000), "plain ä text");
        assert_eq!(on_one_line("a\nb\u{1b}[2J", 1000), "a b\\u{1b}[2J");
        assert_eq!(on_one_line(&"x".repeat(1200), 1000).len(), 1000 + " ... (200 bytes more)".len());
    }
}
