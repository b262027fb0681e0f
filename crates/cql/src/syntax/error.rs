//! Syntax errors, in the words of Cassandra's parser.
//!
//! While parsing, a failure is only a few numbers; the text is made once, here, for the failure that is reported.
//! Cassandra's texts come from ANTLR (`BaseRecognizer.getErrorMessage`) and from its own `ErrorCollector`, which quotes
//! the tokens around the error. That class counts white space and comments as tokens.

use crate::error::SyntaxError;
use std::borrow::Cow;
use std::fmt;

use super::ast::Pos;
use super::lexer::{LexError, Lexer, Trouble};
use super::token::{Kind, Token};

/// A failure while parsing.
#[derive(Debug)]
pub(super) enum Failure {
    /// One certain kind of token was required.
    Mismatched { found: Token, expected: &'static str },
    /// No alternative accepts the token. `decision` is where the alternatives that failed began.
    NoViable { found: Token, decision: Token },
    /// The grammar accepts the text, but a rule beyond it does not.
    Rule { at: Pos, message: String },
    /// The text nests too deep.
    TooDeep { at: Token },
    /// The request was cancelled or took too long.
    Interrupted { at: Token },
    /// The text contains something that is not a token.
    Lexical(LexError),
}

pub(super) type Parsed<T> = Result<T, Box<Failure>>;

impl From<LexError> for Box<Failure> {
    fn from(error: LexError) -> Box<Failure> {
        Box::new(Failure::Lexical(error))
    }
}

impl Failure {
    /// Whether no other way to parse the text can succeed.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Failure::Rule { .. } | Failure::TooDeep { .. } | Failure::Interrupted { .. })
    }

    /// The error to report. `read_to` is the start of the last token that the parser looked at.
    pub(super) fn report(&self, text: &str, read_to: u32) -> SyntaxError {
        match self {
            Failure::Mismatched { found, expected } => {
                let what = format!("mismatched input {} expecting {expected}", shown(text, *found));
                positioned(text, *found, &what, &snippet(text, *found, read_to))
            }
            Failure::NoViable { found, decision } => {
                let what = format!("no viable alternative at input {}", shown(text, *found));
                positioned(text, *found, &what, &snippet(text, *decision, read_to))
            }
            Failure::TooDeep { at } => {
                positioned(text, *at, "the statement nests too deep; write it flatter", "")
            }
            Failure::Interrupted { at } => positioned(text, *at, "the statement takes too long to read", ""),
            Failure::Rule { at, message } => {
                let (line, column) = at.line_and_column(text);
                SyntaxError {
                    line: line as i32,
                    column: column as i32,
                    offset: at.0,
                    message: message.clone(),
                }
            }
            Failure::Lexical(error) => lexical(text, *error),
        }
    }
}

fn positioned(text: &str, found: Token, what: &str, snippet: &str) -> SyntaxError {
    let (line, column) = match found.kind {
        Kind::Eof => (0, -1),
        _ => {
            let (line, column) = Pos(found.start).line_and_column(text);
            (line as i32, column as i32)
        }
    };
    SyntaxError {
        line,
        column,
        offset: found.start,
        message: format!("line {line}:{column} {what}{snippet}"),
    }
}

fn lexical(text: &str, error: LexError) -> SyntaxError {
    let (line, column) = Pos(error.at).line_and_column(text);
    let character = match text.get(error.at as usize..).and_then(|rest| rest.chars().next()) {
        None => "<EOF>".to_owned(),
        Some('\n') => "\\n".to_owned(),
        Some('\t') => "\\t".to_owned(),
        Some('\r') => "\\r".to_owned(),
        // ANTLR sees characters beyond the basic plane as two surrogates; a single surrogate cannot be written in
        // UTF-8.
        Some(other) => other.to_string(),
    };
    let what = match error.trouble {
        Trouble::NoViable => format!("no viable alternative at character '{character}'"),
        Trouble::Expected(wanted) => format!("mismatched character '{character}' expecting '{wanted}'"),
        Trouble::ExpectedSet => format!("mismatched character '{character}' expecting set null"),
        Trouble::EmptyLoop => {
            format!("required (...)+ loop did not match anything at character '{character}'")
        }
    };
    SyntaxError {
        line: line as i32,
        column: column as i32,
        offset: error.at,
        message: format!("line {line}:{column} {what}"),
    }
}

/// A token's text as ANTLR keeps it: strings and quoted names without their quotes.
pub(super) fn content(text: &str, token: Token) -> Cow<'_, str> {
    let raw = text.get(token.start as usize..token.end as usize).unwrap_or_default();
    match token.kind {
        Kind::String if raw.starts_with('$') => Cow::Borrowed(raw.get(2..raw.len() - 2).unwrap_or_default()),
        Kind::String => unquoted(raw, '\'', "''"),
        Kind::QuotedName => unquoted(raw, '"', "\"\""),
        _ => Cow::Borrowed(raw),
    }
}

fn unquoted<'a>(raw: &'a str, quote: char, doubled: &str) -> Cow<'a, str> {
    let inner = raw.get(1..raw.len() - 1).unwrap_or_default();
    if memchr::memchr(quote as u8, inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    Cow::Owned(inner.replace(doubled, quote.encode_utf8(&mut [0; 4])))
}

fn shown(text: &str, token: Token) -> String {
    if token.kind == Kind::Eof {
        return "'<EOF>'".to_owned();
    }
    let content = content(text, token).replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    format!("'{content}'")
}

/// The number of tokens that are quoted before and after the offending one.
const TOKENS_BEFORE: usize = 10;
const TOKENS_BEHIND: usize = 2;

/// The part of the statement around `offending`, which is put in brackets; empty at the end of the text.
fn snippet(text: &str, offending: Token, read_to: u32) -> String {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    let mut index = None;
    while let Ok(token) = lexer.next_raw() {
        if token.start > read_to {
            break;
        }
        if token.start == offending.start && token.kind == offending.kind {
            index = Some(tokens.len());
        }
        tokens.push(token);
        if token.kind == Kind::Eof || index.is_some_and(|index| tokens.len() > index + TOKENS_BEHIND) {
            break;
        }
    }
    let Some(index) = index else { return String::new() };
    let from = tokens[index.saturating_sub(TOKENS_BEFORE)];
    let to = tokens[(index + TOKENS_BEHIND).min(tokens.len() - 1)];
    if to.kind == Kind::Eof || offending.kind == Kind::Eof {
        return String::new();
    }
    quote(text, from, to, offending)
}

/// `ErrorCollector.appendSnippet`: works line by line, and takes a token's end to be its start plus the length of its
/// *content*.
fn quote(text: &str, from: Token, to: Token, offending: Token) -> String {
    let mut lines: Vec<Vec<u16>> = text.split('\n').map(|line| line.encode_utf16().collect()).collect();
    while lines.len() > 1 && lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    let place = |token: Token| {
        let (line, column) = Pos(token.start).line_and_column(text);
        (line as usize - 1, column as usize, column as usize + content(text, token).encode_utf16().count())
    };
    let ((from_line, from_start, _), (to_line, _, to_end)) = (place(from), place(to));
    let (line, start, end) = place(offending);
    let whole_start = from_line == 0 && from_start == 0;
    let whole_end = to_line + 1 == lines.len() && lines.last().is_some_and(|last| last.len() == to_end);
    // A token of several lines makes Cassandra itself fail here; the quotation ends with the token's first line.
    if let Some(last) = lines.get_mut(to_line) {
        last.truncate(to_end);
    }
    if let Some(marked) = lines.get_mut(line) {
        let end = end.min(marked.len());
        marked.insert(end, u16::from(b']'));
        marked.insert(start.min(end), u16::from(b'['));
    }
    let mut out = String::from(" (");
    if !whole_start {
        out.push_str("...");
    }
    for (index, line) in lines.iter().enumerate().take(to_line + 1).skip(from_line) {
        let cut = if index == from_line { from_start.min(line.len()) } else { 0 };
        out.push_str(&String::from_utf16_lossy(&line[cut..]));
    }
    if !whole_end {
        out.push_str("...");
    }
    out.push(')');
    out
}

impl fmt::Display for Pos {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "byte {}", self.0)
    }
}
