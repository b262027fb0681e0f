//! The lexer of CQL 2.
//!
//! A word may begin with a digit: `d41d8cd9`, `03c7c0ac` and `00000000000001` are all hexadecimal bytes. In an option's
//! name it may contain colons (`strategy_options:replication_factor`).

use crate::error::{Result, invalid};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Letters, digits, underscores; numbers; UUIDs.
    Word(String),
    /// A quoted text.
    Text(String),
    /// `..`.
    Range,
    /// `?`.
    Marker,
    /// Any other sign: a single character, or a comparison.
    Sign(&'static str),
}

const SIGNS: [&str; 16] = ["<=", ">=", "(", ")", ",", ";", "=", "<", ">", "*", "+", "-", ".", ":", "{", "}"];

/// Splits a statement into tokens, each with the place where it begins.
pub(super) fn tokens(text: &str) -> Result<(Vec<Token>, Vec<usize>)> {
    let (mut tokens, mut places) = (Vec::new(), Vec::new());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        // Of a token, or of what is between two; the next one takes its place.
        places.truncate(tokens.len());
        places.push(text.len() - rest.len());
        if first.is_whitespace() {
            rest = rest.trim_start();
        } else if let Some(after) = comment(rest) {
            rest = after;
        } else if first == '\'' {
            let (text, after) = quoted(rest)?;
            tokens.push(Token::Text(text));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("..") {
            tokens.push(Token::Range);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('?') {
            tokens.push(Token::Marker);
            rest = after;
        } else {
            let length = word_length(rest);
            if length > 0 {
                let (word, after) = rest.split_at(length);
                tokens.push(Token::Word(word.to_owned()));
                rest = after;
                continue;
            }
            let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) else {
                return invalid(format!("no viable alternative at character '{first}'"));
            };
            tokens.push(Token::Sign(sign));
            rest = rest.get(sign.len()..).unwrap_or_default();
        }
    }
    places.truncate(tokens.len());
    Ok((tokens, places))
}

/// The rest after a comment, if one begins here.
fn comment(rest: &str) -> Option<&str> {
    if let Some(rest) = rest.strip_prefix("/*") {
        return Some(rest.split_once("*/").map_or("", |(_, after)| after));
    }
    let line = rest.strip_prefix("--").filter(|after| !after.starts_with(|c: char| c.is_ascii_digit()));
    let line = line.or_else(|| rest.strip_prefix("//"))?;
    Some(line.split_once('\n').map_or("", |(_, after)| after))
}

fn quoted(rest: &str) -> Result<(String, &str)> {
    let mut text = String::new();
    let mut rest = rest.get(1..).unwrap_or_default();
    loop {
        let Some((before, after)) = rest.split_once('\'') else {
            return invalid(format!("mismatched character '<EOF>' expecting ''' after '{text}{rest}'"));
        };
        text.push_str(before);
        match after.strip_prefix('\'') {
            Some(after) => {
                text.push('\'');
                rest = after;
            }
            None => return Ok((text, after)),
        }
    }
}

/// Bytes of the word at the start; 0 if there is none.
fn word_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if is_uuid(rest) {
        return UUID_LENGTH;
    }
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let minus = usize::from(bytes.first() == Some(&b'-') && is_digit(1));
    let mut length = minus;
    while bytes.get(length).is_some_and(|byte| is_word(*byte)) {
        length += 1;
    }
    if length == 0 || length == minus && minus > 0 {
        return 0;
    }
    let numeric = rest.get(minus..length).is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    if numeric && bytes.get(length) == Some(&b'.') && is_digit(length + 1) {
        length += 1;
        while bytes.get(length).is_some_and(|byte| is_word(*byte)) {
            length += 1;
        }
    }
    while !numeric
        && bytes.get(length) == Some(&b':')
        && bytes.get(length + 1).is_some_and(|byte| is_word(*byte))
    {
        length += 1;
        while bytes.get(length).is_some_and(|byte| is_word(*byte)) {
            length += 1;
        }
    }
    length
}

const UUID_LENGTH: usize = 36;

fn is_uuid(rest: &str) -> bool {
    let Some(text) = rest.get(..UUID_LENGTH) else { return false };
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Token {
        Token::Word(text.to_owned())
    }

    #[test]
    fn bytes_in_digits_numbers_and_options_are_words() {
        let (found, places) = tokens("C2=03c7c0ac -5 1.25 a:b_c 1..5 -- rest").unwrap();
        assert_eq!(places, [0, 2, 3, 12, 15, 20, 26, 27, 29]);
        let expected = [
            word("C2"),
            Token::Sign("="),
            word("03c7c0ac"),
            word("-5"),
            word("1.25"),
            word("a:b_c"),
            word("1"),
            Token::Range,
            word("5"),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            tokens("'it''s'..''").unwrap().0,
            [Token::Text("it's".to_owned()), Token::Range, Token::Text(String::new())]
        );
        let uuid = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
        assert_eq!(tokens(uuid).unwrap().0, [word(uuid)]);
        assert!(tokens("'open").is_err() && tokens("a # b").is_err());
    }
}
