//! The words and signs of a statement's text. Any text can be divided, whether it is CQL or not.

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word in lower case, or a number.
    Word(String),
    /// A name in double quotes.
    Quoted(String),
    Sign(char),
    /// A string.
    Text(String),
}

impl Token {
    /// Whether it is this keyword.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        matches!(self, Token::Word(word) if word == keyword)
    }

    /// The name of a keyspace, a table or a column.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Token::Word(name) | Token::Quoted(name) => Some(name),
            Token::Sign(_) | Token::Text(_) => None,
        }
    }
}

/// The parts of a text, without white space and comments.
#[derive(Clone, Copy)]
pub(crate) struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    /// Those of a text.
    pub(crate) fn of(text: &'a str) -> Tokens<'a> {
        Tokens(text)
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let text = self.0.trim_start();
            let skipped = if text.starts_with("--") || text.starts_with("//") {
                text.split_once('\n').map_or("", |(_, rest)| rest)
            } else if let Some(rest) = text.strip_prefix("/*") {
                rest.split_once("*/").map_or("", |(_, rest)| rest)
            } else {
                self.0 = text;
                break;
            };
            self.0 = skipped;
        }
        let first = self.0.chars().next()?;
        let (token, rest) = match first {
            '\'' | '"' => {
                let (inner, rest) = quoted(self.0, first);
                (if first == '"' { Token::Quoted(inner) } else { Token::Text(inner) }, rest)
            }
            '$' if self.0.starts_with("$$") => {
                let inner = self.0.get(2..).unwrap_or_default();
                let (inner, rest) = inner.split_once("$$").unwrap_or((inner, ""));
                (Token::Text(inner.to_owned()), rest)
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end = self.0.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.0.len());
                let (word, rest) = self.0.split_at(end);
                (Token::Word(word.to_lowercase()), rest)
            }
            other => (Token::Sign(other), self.0.get(other.len_utf8()..).unwrap_or_default()),
        };
        self.0 = rest;
        Some(token)
    }
}

/// The text between quotes, which stand twice inside it, and what follows.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut inner = String::new();
    let mut rest = text.get(1..).unwrap_or_default();
    loop {
        let Some((part, after)) = rest.split_once(quote) else { return (inner, "") };
        inner.push_str(part);
        match after.strip_prefix(quote) {
            Some(more) => {
                inner.push(quote);
                rest = more;
            }
            None => return (inner, after),
        }
    }
}
