//! Splits a statement's text into tokens, one at a time, byte by byte and without allocating.
//!
//! The rules are those of Cassandra's `Lexer.g` as ANTLR implements them: some prefixes commit the lexer to one kind of
//! token, and if the rest does not fit there is an error instead of a shorter token. `-n` must become `-NaN`, eight
//! hexadecimal digits and a dash must become a UUID, and a comment to the end of a line needs that end. Numbers,
//! durations and UUIDs are in `number`.

mod number;

use crate::keyword;
use crate::token::{Kind, Token};

/// Why a text cannot be split into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No token begins or continues with this character.
    NoViable,
    /// One certain character was required.
    Expected(char),
    /// One of several characters was required.
    ExpectedSet,
    /// At least one digit was required.
    EmptyLoop,
}

/// An error of the lexer.
#[derive(Clone, Copy, Debug)]
pub struct LexError {
    /// The byte offset of the character that does not fit; the text's length at its end.
    pub at: u32,
    /// Why it does not fit.
    pub trouble: Trouble,
}

type Lexed = Result<(Kind, usize), LexError>;

fn fail(at: usize, trouble: Trouble) -> Lexed {
    Err(LexError { at: at as u32, trouble })
}

/// The reading position in a text. It is cheap to copy, and a copy can be used to return to its position.
#[derive(Clone, Copy, Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

/// The bytes that continue an identifier: letters, digits, `_`.
static WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

impl<'a> Lexer<'a> {
    /// Begins at the start of `text`, which must be shorter than 4 GiB.
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// The whole text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The next token after white space and comments; `Kind::Eof`, empty, at the end.
    ///
    /// # Errors
    /// The text that follows is not a token. The lexer then keeps its position.
    #[inline]
    pub fn next_token(&mut self) -> Result<Token, LexError> {
        loop {
            let start = self.at;
            let Some(first) = self.byte(start) else {
                return Ok(Token { kind: Kind::Eof, start: start as u32, end: start as u32 });
            };
            if matches!(first, b' ' | b'\n' | b'\t' | b'\r') {
                self.at += 1;
                continue;
            }
            match self.hidden_end(first, start)? {
                Some(end) => self.at = end,
                None => {
                    let (kind, end) = self.scan(first, start)?;
                    self.at = end;
                    return Ok(Token { kind, start: start as u32, end: end as u32 });
                }
            }
        }
    }

    /// The next token, where each run of white space and each comment is a token too, of kind `Kind::Bad`.
    ///
    /// Only for quoting a part of the statement in an error text, where hidden tokens count.
    pub fn next_raw(&mut self) -> Result<Token, LexError> {
        let start = self.at;
        let white = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
        let run = self.text.as_bytes().iter().skip(start).take_while(|byte| white(byte)).count();
        if run > 0 {
            self.at += run;
            return Ok(Token { kind: Kind::Bad, start: start as u32, end: self.at as u32 });
        }
        let Some(first) = self.byte(start) else { return self.next_token() };
        match self.hidden_end(first, start)? {
            Some(end) => {
                self.at = end;
                Ok(Token { kind: Kind::Bad, start: start as u32, end: end as u32 })
            }
            None => self.next_token(),
        }
    }

    /// The end of the comment that begins at `start`, if there is one.
    #[inline]
    fn hidden_end(&self, first: u8, start: usize) -> Result<Option<usize>, LexError> {
        if first != b'-' && first != b'/' {
            return Ok(None);
        }
        let rest = self.text.as_bytes().get(start + 2..).unwrap_or_default();
        match (first, self.byte(start + 1)) {
            (b'-', Some(b'-')) | (b'/', Some(b'/')) => match memchr::memchr2(b'\n', b'\r', rest) {
                Some(length) => Ok(Some(start + 2 + length + 1)),
                None => Err(LexError { at: self.text.len() as u32, trouble: Trouble::ExpectedSet }),
            },
            (b'/', Some(b'*')) => match memchr::memmem::find(rest, b"*/") {
                Some(length) => Ok(Some(start + 2 + length + 2)),
                None => Err(LexError { at: self.text.len() as u32, trouble: Trouble::Expected('*') }),
            },
            _ => Ok(None),
        }
    }

    #[inline]
    fn scan(&self, first: u8, start: usize) -> Lexed {
        match first {
            b'a'..=b'z' | b'A'..=b'Z' => self.word(first, start),
            b'0'..=b'9' => number::number(self.text, start),
            b'\'' => self.string(start),
            b'"' => self.quoted_name(start),
            b'-' => self.minus(start),
            b'$' => self.dollar_string(start),
            _ => self.symbol(first, start),
        }
    }

    #[inline]
    fn word(&self, first: u8, start: usize) -> Lexed {
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        while end < bytes.len() && WORD[usize::from(bytes[end])] {
            end += 1;
        }
        if first == b'P' {
            if let Some(found) = number::duration_word(self.text, start, end) {
                return found;
            }
        } else if end - start == 8 && self.byte(end) == Some(b'-') && number::is_hex(&bytes[start..end]) {
            return number::uuid(self.text, start);
        } else if end - start == 4 && self.byte(end) == Some(b'(') && &bytes[start..end] == b"expr" {
            return Ok((Kind::ExprParen, end + 1));
        }
        Ok((keyword::kind_of(&bytes[start..end]), end))
    }

    fn string(&self, start: usize) -> Lexed {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        while let Some(length) = memchr::memchr(b'\'', &bytes[at..]) {
            at += length + 1;
            if self.byte(at) != Some(b'\'') {
                return Ok((Kind::String, at));
            }
            at += 1;
        }
        fail(bytes.len(), Trouble::Expected('\''))
    }

    fn quoted_name(&self, start: usize) -> Lexed {
        let bytes = self.text.as_bytes();
        if self.byte(start + 1) == Some(b'"') && self.byte(start + 2) != Some(b'"') {
            return Ok((Kind::EmptyQuotedName, start + 2));
        }
        let mut at = start + 1;
        while let Some(length) = memchr::memchr(b'"', &bytes[at..]) {
            at += length + 1;
            if self.byte(at) != Some(b'"') {
                return Ok((Kind::QuotedName, at));
            }
            at += 1;
        }
        fail(bytes.len(), Trouble::Expected('"'))
    }

    /// `$$...$$`. The error for a missing end is at the text's last character, where ANTLR stops.
    fn dollar_string(&self, start: usize) -> Lexed {
        let bytes = self.text.as_bytes();
        if self.byte(start + 1) != Some(b'$') {
            return fail(start + 1, Trouble::Expected('$'));
        }
        let body = &self.text[start + 2..];
        match memchr::memmem::find(body.as_bytes(), b"$$") {
            Some(length) => Ok((Kind::String, start + 2 + length + 2)),
            None if body.ends_with('$') || body.is_empty() => fail(bytes.len(), Trouble::Expected('$')),
            None => {
                let last = body.chars().next_back().map_or(0, char::len_utf8);
                fail(bytes.len() - last, Trouble::Expected('$'))
            }
        }
    }

    fn minus(&self, start: usize) -> Lexed {
        match self.byte(start + 1) {
            Some(b'=') => Ok((Kind::MinusEqual, start + 2)),
            Some(b'0'..=b'9') => number::negative(self.text, start),
            Some(b'P') => number::negative_duration(self.text, start),
            Some(b'n' | b'N') => self.rest_of(start + 1, b"nan", Kind::NegativeNan),
            Some(b'i' | b'I') => self.rest_of(start + 1, b"infinity", Kind::NegativeInfinity),
            _ => Ok((Kind::Minus, start + 1)),
        }
    }

    fn rest_of(&self, start: usize, word: &[u8], kind: Kind) -> Lexed {
        for (index, letter) in word.iter().enumerate() {
            if self.byte(start + index).map(|byte| byte.to_ascii_lowercase()) != Some(*letter) {
                return fail(start + index, Trouble::ExpectedSet);
            }
        }
        Ok((kind, start + word.len()))
    }

    #[inline]
    fn symbol(&self, first: u8, start: usize) -> Lexed {
        let followed = |by: u8| self.byte(start + 1) == Some(by);
        let (kind, length) = match first {
            b'(' => (Kind::LParen, 1),
            b')' => (Kind::RParen, 1),
            b',' => (Kind::Comma, 1),
            b'=' => (Kind::Equal, 1),
            b'?' => (Kind::QMark, 1),
            b'*' => (Kind::Star, 1),
            b';' => (Kind::Semicolon, 1),
            b':' => (Kind::Colon, 1),
            b'[' => (Kind::LBracket, 1),
            b']' => (Kind::RBracket, 1),
            b'{' => (Kind::LBrace, 1),
            b'}' => (Kind::RBrace, 1),
            b'/' => (Kind::Slash, 1),
            b'%' => (Kind::Percent, 1),
            b'.' if followed(b'.') => (Kind::Range, 2),
            b'.' => (Kind::Dot, 1),
            b'+' if followed(b'=') => (Kind::PlusEqual, 2),
            b'+' => (Kind::Plus, 1),
            b'<' if followed(b'=') => (Kind::LessEqual, 2),
            b'<' => (Kind::Less, 1),
            b'>' if followed(b'=') => (Kind::GreaterEqual, 2),
            b'>' => (Kind::Greater, 1),
            b'!' if followed(b'=') => (Kind::NotEqual, 2),
            b'!' => return fail(start + 1, Trouble::Expected('=')),
            _ => return fail(start, Trouble::NoViable),
        };
        Ok((kind, start + length))
    }
}
