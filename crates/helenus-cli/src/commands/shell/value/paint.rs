//! Coloured text with the width that it takes on a terminal.

use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// cqlsh's colours: all bright, except that of blobs.
pub const RED: &str = "\x1b[0;1;31m";
pub const GREEN: &str = "\x1b[0;1;32m";
pub const YELLOW: &str = "\x1b[0;1;33m";
pub const BLUE: &str = "\x1b[0;1;34m";
pub const MAGENTA: &str = "\x1b[0;1;35m";
pub const CYAN: &str = "\x1b[0;1;36m";
pub const WHITE: &str = "\x1b[0;1;37m";
pub const DARK_MAGENTA: &str = "\x1b[0;35m";
pub const RESET: &str = "\x1b[0m";

/// A text for the terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Painted {
    /// The text with colour codes.
    pub text: String,
    /// The visible width in columns.
    pub width: usize,
}

impl Painted {
    /// Appends the text to a line, padded on the right to `width`.
    pub fn left(&self, width: usize, line: &mut String) {
        line.push_str(&self.text);
        line.extend(std::iter::repeat_n(' ', width.saturating_sub(self.width)));
    }

    /// Appends the text to a line, padded on the left to `width`.
    pub fn right(&self, width: usize, line: &mut String) {
        line.extend(std::iter::repeat_n(' ', width.saturating_sub(self.width)));
        line.push_str(&self.text);
    }
}

/// Builds a coloured text.
pub struct Painter {
    in_colour: bool,
    painted: Painted,
}

impl Painter {
    /// Begins with an empty text.
    pub fn new(in_colour: bool) -> Painter {
        Painter { in_colour, painted: Painted::default() }
    }

    /// Appends a text in a colour.
    pub fn put(&mut self, colour: &str, text: &str) {
        self.painted.width += text.width();
        if self.in_colour {
            self.painted.text.push_str(colour);
            self.painted.text.push_str(text);
            self.painted.text.push_str(RESET);
        } else {
            self.painted.text.push_str(text);
        }
    }

    /// Appends a text with its control characters as escapes. Without colours a backslash is doubled, to distinguish it
    /// from escapes; with colours the escapes have a colour of their own.
    pub fn put_escaped(&mut self, colour: &str, text: &str, is_shown_as_is: fn(char) -> bool) {
        let mut plain = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '\\' if self.in_colour => plain.push('\\'),
                '\\' => plain.push_str("\\\\"),
                _ if is_shown_as_is(character) => plain.push(character),
                _ if self.in_colour => {
                    if !plain.is_empty() {
                        self.put(colour, &plain);
                        plain.clear();
                    }
                    self.put(DARK_MAGENTA, &escape(character));
                }
                _ => plain.push_str(&escape(character)),
            }
        }
        if !plain.is_empty() || self.painted.text.is_empty() {
            self.put(colour, &plain);
        }
    }

    /// The finished text.
    pub fn done(self) -> Painted {
        self.painted
    }
}

/// Escapes a character as Python's `repr` does.
fn escape(character: char) -> String {
    match character {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        other => {
            let mut text = String::new();
            _ = write!(text, "\\x{:02x}", u32::from(other));
            text
        }
    }
}

/// Whether cqlsh prints a character of a text as it is: all except control characters and the no-break space.
pub fn is_printable(character: char) -> bool {
    !matches!(character, '\0'..='\x1f' | '\x7f'..='\u{a0}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str, in_colour: bool) -> Painted {
        let mut painter = Painter::new(in_colour);
        painter.put_escaped(YELLOW, text, is_printable);
        painter.done()
    }

    #[test]
    fn control_characters_show_and_backslashes_are_told_from_them() {
        assert_eq!(escaped("a\\b\n\x01\u{85}é", false).text, "a\\\\b\\n\\x01\\x85é");
        let coloured = escaped("a\\b\n", true);
        assert_eq!(coloured.text, format!("{YELLOW}a\\b{RESET}{DARK_MAGENTA}\\n{RESET}"));
        assert_eq!(coloured.width, 5);
        assert_eq!(escaped("漢字", false).width, 4);
    }
}
