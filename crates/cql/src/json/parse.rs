//! A JSON parser that behaves like Jackson with its defaults: text after the first value is ignored, of repeated keys
//! the last counts, and numbers with a fraction are doubles.

use super::error::{MISMATCHED, ParseError, Step, Unread, source};
use super::tree::{Entries, Json};
use helenus_model::types::TYPE_DEPTH_MAX;

/// The most levels of nested arrays and objects. Jackson allows 1000 (`StreamReadConstraints.DEFAULT_MAX_DEPTH`);
/// Cassandra's threads have larger stacks. Deeper JSON is no value of any type anyway, as types nest less deep.
const DEPTH_MAX: usize = 4 * TYPE_DEPTH_MAX;

/// Parses the first value of a text.
///
/// # Errors
/// The text is not valid JSON, or is empty; `step` ended the work.
pub(crate) fn parse(text: &str, step: Step<'_>) -> Result<Json, Unread> {
    let mut reader = Reader { text, at: 0, depth: 0, step };
    reader.skip_space();
    if reader.peek().is_none() {
        let message = format!("No content to map due to end-of-input\n at {}", source("", 1));
        return Err(ParseError { exception: MISMATCHED, message }.into());
    }
    reader.value()
}

/// The most bytes of the character that an escape stands for.
const ESCAPED_BYTES: usize = 8;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    step: Step<'a>,
}

type Read<T> = Result<T, Unread>;

// Code that does not recurse is kept out of the stack frames of code that does.
impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Describes a position in the text for errors.
    #[inline(never)]
    fn place(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before.get(line_start..).unwrap_or_default().encode_utf16().count() + 1;
        source(&format!(", column: {column}"), line)
    }

    #[inline(never)]
    fn error<T>(&self, message: String) -> Read<T> {
        let message = format!("{message}\n at {}", self.place(self.at));
        Err(ParseError { exception: "core.JsonParseException", message }.into())
    }

    /// The error that the current character is not allowed here.
    #[inline(never)]
    fn unexpected<T>(&self, expected: &str) -> Read<T> {
        let Some(shown) = self.shown() else { return self.ended(&format!(": {expected}")) };
        self.error(format!("Unexpected character {shown}: {expected}"))
    }

    /// The same, inside a number.
    #[inline(never)]
    fn unexpected_in_number<T>(&self, expected: &str) -> Read<T> {
        let Some(shown) = self.shown() else { return self.ended(&format!(": {expected}")) };
        self.error(format!("Unexpected character {shown} in numeric value: {expected}"))
    }

    fn shown(&self) -> Option<String> {
        let found = self.text.get(self.at..)?.chars().next()?;
        let code = u32::from(found);
        Some(if found < ' ' {
            format!("((CTRL-CHAR, code {code}))")
        } else {
            format!("('{found}' (code {code}))")
        })
    }

    #[inline(never)]
    fn ended<T>(&self, rest: &str) -> Read<T> {
        let message = format!("Unexpected end-of-input{rest}\n at {}", self.place(self.text.len()));
        Err(ParseError { exception: "core.io.JsonEOFException", message }.into())
    }

    /// Counts a step that takes so many bytes.
    fn step(&self, bytes: usize) -> Read<()> {
        if (self.step)(bytes) { Ok(()) } else { Err(Unread::Stopped) }
    }

    fn value(&mut self) -> Read<Json> {
        self.step(0)?;
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string(": was expecting closing quote for a string value").map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Boolean(true)),
            Some(b'f') => self.word("false", Json::Boolean(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' => {
                self.unknown_word()
            }
            _ => self.unexpected(
                "expected a valid value (JSON String, Number, Array, Object or token 'null', 'true' or 'false')",
            ),
        }
    }

    fn nested(&mut self, read: impl Fn(&mut Self) -> Read<Json>) -> Read<Json> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.error(format!(
                "Document nesting depth ({}) exceeds the maximum allowed ({DEPTH_MAX}, from `StreamReadConstraints.getMaxNestingDepth()`)",
                self.depth
            ));
        }
        let found = read(self)?;
        self.depth -= 1;
        Ok(found)
    }

    fn word(&mut self, word: &str, value: Json) -> Read<Json> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let goes_on =
            rest.as_bytes().get(word.len()).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        if !rest.starts_with(word) || goes_on {
            return self.unknown_word();
        }
        self.at += word.len();
        Ok(value)
    }

    #[inline(never)]
    fn unknown_word(&mut self) -> Read<Json> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default().to_owned();
        self.at += length;
        self.error(format!(
            "Unrecognized token '{word}': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
        ))
    }

    fn array(&mut self) -> Read<Json> {
        let start = self.at;
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::List(items));
        }
        loop {
            self.skip_space();
            let value = self.value()?;
            if items.len() == items.capacity() {
                // It doubles, and the old ones are there until they are copied.
                self.step((items.len() + 4) * 2 * size_of::<Json>())?;
            }
            items.push(value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::List(items));
                }
                None => {
                    return self.ended(&format!(
                        ": expected close marker for Array (start marker at {})",
                        self.place(start)
                    ));
                }
                Some(b'}') => {
                    return self.error(format!(
                        "Unexpected close marker '}}': expected ']' (for Array starting at {})",
                        self.place(start)
                    ));
                }
                Some(_) => return self.unexpected("was expecting comma to separate Array entries"),
            }
        }
    }

    fn object(&mut self) -> Read<Json> {
        let start = self.at;
        self.at += 1;
        let mut entries = Entries::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Map(entries.into_vec()));
        }
        loop {
            self.skip_space();
            match self.peek() {
                Some(b'"') => {}
                None => {
                    return self.ended(&format!(
                        ": expected close marker for Object (start marker at {})",
                        self.place(start)
                    ));
                }
                Some(_) => return self.unexpected("was expecting double-quote to start field name"),
            }
            let key = self.string(" in field name")?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return self.unexpected("was expecting a colon to separate field name and value");
            }
            self.at += 1;
            self.skip_space();
            let value = self.value()?;
            self.step(entries.room_for(&key))?;
            entries.put(key, value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::Map(entries.into_vec()));
                }
                None => {
                    return self.ended(&format!(
                        ": expected close marker for Object (start marker at {})",
                        self.place(start)
                    ));
                }
                Some(b']') => {
                    return self.error(format!(
                        "Unexpected close marker ']': expected '}}' (for Object starting at {})",
                        self.place(start)
                    ));
                }
                Some(_) => return self.unexpected("was expecting comma to separate Object entries"),
            }
        }
    }

    /// Reads a string. `unended` completes the error of one that does not end.
    #[inline(never)]
    fn string(&mut self, unended: &str) -> Read<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            if out.capacity() - out.len() < plain + ESCAPED_BYTES {
                self.step(2 * out.len() + plain + ESCAPED_BYTES)?;
                out.reserve(plain + ESCAPED_BYTES);
            }
            out.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(&mut out)?;
                }
                None => return self.ended(unended),
                Some(control) => {
                    return self.error(format!(
                        "Illegal unquoted character ((CTRL-CHAR, code {control})): has to be escaped using backslash to be included in string value"
                    ));
                }
            }
        }
    }

    #[inline(never)]
    fn escape(&mut self, out: &mut String) -> Read<()> {
        let Some(byte) = self.peek() else { return self.ended(" in character escape sequence") };
        let character = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                let first = self.hex()?;
                // An unpaired surrogate has no UTF-8 form; Java stores a question mark.
                if (0xD800..0xDC00).contains(&first)
                    && self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u"))
                {
                    self.at += 2;
                    let second = self.hex()?;
                    let pair = char::decode_utf16([first, second]).map(|c| c.unwrap_or('?'));
                    out.extend(pair);
                    return Ok(());
                }
                out.push(char::from_u32(u32::from(first)).unwrap_or('?'));
                return Ok(());
            }
            _ => {
                let found = self.text.get(self.at..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
                return self
                    .error(format!("Unrecognized character escape '{found}' (code {})", u32::from(found)));
            }
        };
        self.at += 1;
        out.push(character);
        Ok(())
    }

    fn hex(&mut self) -> Read<u16> {
        let digits = self.text.get(self.at..self.at + 4);
        match digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit())) {
            Some(digits) => {
                self.at += 4;
                Ok(u16::from_str_radix(digits, 16).unwrap_or_default())
            }
            None => self.unexpected("expected a hex-digit for character escape sequence"),
        }
    }

    #[inline(never)]
    fn number(&mut self) -> Read<Json> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let whole = self.digits();
        if whole == 0 {
            return self
                .unexpected_in_number("expected digit (0-9) to follow minus sign, for valid numeric value");
        }
        let first_digit = self.at - whole;
        if whole > 1 && self.text.as_bytes().get(first_digit) == Some(&b'0') {
            self.at = first_digit + 1;
            return self.error("Invalid numeric value: Leading zeroes not allowed".to_owned());
        }
        let mut is_real = false;
        if self.peek() == Some(b'.') {
            is_real = true;
            self.at += 1;
            if self.digits() == 0 {
                let wrong = self.unexpected_in_number("Decimal point not followed by a digit");
                return wrong.map_err(|error| self.one_before(error));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_real = true;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                let wrong = self.unexpected_in_number("Exponent indicator not followed by a digit");
                return wrong.map_err(|error| self.one_before(error));
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if is_real {
            return Ok(Json::Double(text.parse().unwrap_or(f64::NAN)));
        }
        Ok(match (text.parse::<i32>(), text.parse::<i64>()) {
            (Ok(value), _) => Json::Int(value),
            (_, Ok(value)) => Json::Long(value),
            _ => {
                self.step(text.len())?;
                Json::Big(text.to_owned())
            }
        })
    }

    /// Jackson reports the column of the preceding character here.
    fn one_before(&self, error: Unread) -> Unread {
        let Unread::Invalid(error) = error else { return error };
        let (here, before) = (self.place(self.at), self.place(self.at.saturating_sub(1)));
        ParseError { message: error.message.replace(&here, &before), ..error }.into()
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Json {
        parse(text, &|_| true).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    #[test]
    fn numbers_have_the_class_that_java_gives_them() {
        let read =
            read("[1, -2147483649, 9223372036854775808, 1.50, 1e3, true, null, \"\\u00e9\\ud83d\\ude00\"]");
        let classes: Vec<&str> = match &read {
            Json::List(items) => items.iter().map(Json::class).collect(),
            _ => Vec::new(),
        };
        assert_eq!(
            classes,
            ["Integer", "Long", "BigInteger", "Double", "Double", "Boolean", "null", "String"]
        );
        assert_eq!(read.java_text(), "[1, -2147483649, 9223372036854775808, 1.5, 1000.0, true, null, é😀]");
    }

    #[test]
    fn the_last_of_repeated_keys_counts_and_what_follows_is_not_read() {
        assert_eq!(read("{\"a\": 1, \"b\": 2, \"a\": 3} and more").java_text(), "{a=3, b=2}");
        assert!(parse("  ", &|_| true).is_err());
    }

    #[test]
    fn texts_cut_anywhere_are_refused_without_panic() {
        let text = "{\"a\": [1, -2.5e3, \"x\\u00e9y\\n\"], \"b\": {\"c\": null}}";
        for end in 1..text.len() {
            assert!(parse(&text[..end], &|_| true).is_err(), "{}", &text[..end]);
        }
        let deep = "[".repeat(100_000);
        assert!(parse(&deep, &|_| true).is_err());
    }
}
