//! The tokens of a statement's text, with their texts. They are those of the database's own lexer: the node that gets the text splits it
//! alike, so that a comment hides from the gateway only what it hides from the node.

use helenus_lexer::lexer::Lexer;
use helenus_lexer::token::{self, Kind};

/// A token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub kind: Kind,
    text: &'a str,
}

impl Token<'_> {
    /// The name of a keyspace, a table or a column.
    pub fn name(&self) -> Option<String> {
        match self.kind {
            Kind::QuotedName => Some(unquoted(self.text, '"')),
            kind if kind.is_name() => Some(self.text.to_lowercase()),
            _ => None,
        }
    }

    /// The contents of a string, or a number as it is written.
    pub fn constant(&self) -> Option<String> {
        match self.kind {
            Kind::Integer => Some(self.text.to_owned()),
            Kind::String => Some(match self.text.strip_prefix("$$") {
                Some(rest) => rest.strip_suffix("$$").unwrap_or(rest).to_owned(),
                None => unquoted(self.text, '\''),
            }),
            _ => None,
        }
    }

    /// Whether it is this word, which is no keyword of Cassandra's.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Ident && self.text.eq_ignore_ascii_case(word)
    }
}

/// The text between quotes, which stand twice inside it.
fn unquoted(text: &str, quote: char) -> String {
    let inner = text.strip_prefix(quote).unwrap_or(text);
    let inner = inner.strip_suffix(quote).unwrap_or(inner);
    let mut twice = String::from(quote);
    twice.push(quote);
    inner.replace(&twice, quote.encode_utf8(&mut [0; 4]))
}

/// The tokens of a text, up to its end. A place that is no token is the last one, `Kind::Bad`: no node runs such a text.
#[derive(Clone, Copy)]
pub(crate) struct Tokens<'a> {
    lexer: Lexer<'a>,
    is_over: bool,
}

impl<'a> Tokens<'a> {
    /// Those of a text.
    pub fn of(text: &'a str) -> Tokens<'a> {
        Tokens { lexer: Lexer::new(text), is_over: false }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if self.is_over {
            return None;
        }
        match self.lexer.next_token() {
            Ok(token::Token { kind: Kind::Eof, .. }) => {
                self.is_over = true;
                None
            }
            Ok(token::Token { kind, start, end }) => {
                let text = self.lexer.text().get(start as usize..end as usize).unwrap_or_default();
                Some(Token { kind, text })
            }
            Err(_) => {
                self.is_over = true;
                Some(Token { kind: Kind::Bad, text: "" })
            }
        }
    }
}
