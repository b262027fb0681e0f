//! Serves the line editor: whether a statement is complete, completion, and colours.

use super::super::interpreter::Server;
use super::complete::{Candidate, completions};
use super::keywords::is_keyword;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper, Result};
use std::borrow::Cow;

const KEYWORD: &str = "\x1b[1;34m";
const TEXT: &str = "\x1b[33m";
const COMMENT: &str = "\x1b[90m";
const PROMPT: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

/// Completes, checks and colours lines.
pub struct Assistant {
    server: Server,
    in_colour: bool,
    /// The lines of the statement before the one that is edited.
    pub begun: String,
}

impl Assistant {
    /// An assistant with the schema of a server.
    pub fn new(server: Server, in_colour: bool) -> Assistant {
        Assistant { server, in_colour, begun: String::new() }
    }
}

impl Helper for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

/// Every line is taken as it is: the loop asks for more until the statement is complete.
impl Validator for Assistant {}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let Ok(mut server) = self.server.try_borrow_mut() else { return Ok((pos, Vec::new())) };
        let (session, catalog) = &mut *server;
        let keyspace = session.keyspace().map(str::to_owned);
        // Without a server, keywords are still completed.
        let keyspaces = catalog.keyspaces(session).cloned().unwrap_or_default();
        let (whole, before) = (format!("{}{line}", self.begun), self.begun.len());
        let (start, found) = completions(&whole, before + pos, &keyspaces, keyspace.as_deref());
        // A word never begins in an earlier line.
        let start = start.saturating_sub(before);
        let pair = |Candidate { shown, inserted }| Pair { display: shown, replacement: inserted };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.in_colour {
            true => Cow::Owned(coloured(line)),
            false => Cow::Borrowed(line),
        }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        match self.in_colour {
            true => Cow::Owned(format!("{PROMPT}{prompt}{RESET}")),
            false => Cow::Borrowed(prompt),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.in_colour && kind != CmdKind::MoveCursor
    }
}

/// Colours keywords, texts and comments. The visible width of the line does not change.
fn coloured(line: &str) -> String {
    let mut out = String::with_capacity(line.len() * 2);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (length, colour) = if first == '\'' {
            let end = rest.get(1..).and_then(|inner| inner.find('\'')).map_or(rest.len(), |end| end + 2);
            (end, TEXT)
        } else if rest.starts_with("--") || rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), COMMENT)
        } else if rest.starts_with("/*") {
            (rest.find("*/").map_or(rest.len(), |end| end + 2), COMMENT)
        } else if first.is_ascii_alphabetic() {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let end = end.unwrap_or(rest.len());
            (end, if is_keyword(rest.get(..end).unwrap_or_default()) { KEYWORD } else { "" })
        } else {
            (first.len_utf8(), "")
        };
        let (piece, after) = rest.split_at(length.min(rest.len()));
        match colour {
            "" => out.push_str(piece),
            _ => out.extend([colour, piece, RESET]),
        }
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_no_letter() {
        for line in ["SELECT 'a FROM", "select x -- c\n/* y", "'it''s' é", "\"T\" = 1 // c"] {
            let mut plain = coloured(line);
            for colour in [KEYWORD, TEXT, COMMENT, RESET] {
                plain = plain.replace(colour, "");
            }
            assert_eq!(plain, line);
        }
        assert!(coloured("select 1").starts_with(KEYWORD));
    }
}
