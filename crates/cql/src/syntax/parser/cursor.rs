//! Where the parser stands in the text, and its elementary steps.

use super::super::ast::{BindMarker, Marker, Pos};
use super::super::error::{Failure, Parsed, content};
use super::super::lexer::{LexError, Lexer};
use super::super::token::{Kind, Token};

/// How deep terms, types, selectors and relations may nest.
///
/// One level costs a handful of stack frames, under 4 KiB in a debug build; 128 levels stay within half a MiB, a
/// quarter of the smallest stack that anything here runs on.
pub const DEPTH_MAX: u32 = 128;

/// The parser's state.
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token at hand, not yet consumed.
    pub(super) token: Token,
    /// The bind markers so far.
    pub(super) markers: Vec<BindMarker<'a>>,
    depth: u32,
    /// The first thing met that is no token. It is reported before whatever fails later.
    pub(super) lex_error: Option<LexError>,
    /// Start of the last token looked at.
    pub(super) read_to: u32,
}

/// A place to come back to.
pub(super) struct Mark<'a> {
    lexer: Lexer<'a>,
    token: Token,
    markers: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Parsed<Parser<'a>> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next_token()?;
        Ok(Parser { lexer, token, markers: Vec::new(), depth: 0, lex_error: None, read_to: token.start })
    }

    /// The kind of the token at hand.
    #[inline]
    pub(super) fn kind(&self) -> Kind {
        self.token.kind
    }

    /// Where the token at hand begins.
    #[inline]
    pub(super) fn pos(&self) -> Pos {
        Pos(self.token.start)
    }

    pub(super) fn text(&self) -> &'a str {
        self.lexer.text()
    }

    /// A token's own characters.
    #[inline]
    pub(super) fn raw(&self, token: Token) -> &'a str {
        self.text().get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// A token's text, without quotes.
    pub(super) fn content(&self, token: Token) -> std::borrow::Cow<'a, str> {
        content(self.text(), token)
    }

    /// Goes one token on and gives back the one consumed.
    #[inline]
    pub(super) fn advance(&mut self) -> Parsed<Token> {
        let consumed = self.token;
        match self.lexer.next_token() {
            Ok(token) => {
                self.token = token;
                if token.start > self.read_to {
                    self.read_to = token.start;
                }
                Ok(consumed)
            }
            Err(error) => {
                self.lex_error.get_or_insert(error);
                Err(error.into())
            }
        }
    }

    /// The `ahead`th token behind the one at hand; `Kind::Bad` where there is none.
    pub(super) fn look(&mut self, ahead: usize) -> Token {
        let mut lexer = self.lexer;
        let mut token = self.token;
        for _ in 0..ahead {
            match lexer.next_token() {
                Ok(next) => token = next,
                Err(error) => {
                    self.lex_error.get_or_insert(error);
                    return Token { kind: Kind::Bad, start: error.at, end: error.at };
                }
            }
        }
        self.read_to = self.read_to.max(token.start);
        token
    }

    /// Consumes the token at hand if it is of this kind.
    #[inline]
    pub(super) fn eat(&mut self, kind: Kind) -> Parsed<bool> {
        if self.token.kind != kind {
            return Ok(false);
        }
        self.advance()?;
        Ok(true)
    }

    /// Consumes a token of this kind.
    #[inline]
    pub(super) fn expect(&mut self, kind: Kind) -> Parsed<Token> {
        if self.token.kind == kind { self.advance() } else { Err(self.mismatched(kind.label())) }
    }

    /// Consumes these kinds, one behind the other.
    pub(super) fn expect_all(&mut self, kinds: &[Kind]) -> Parsed<()> {
        for kind in kinds {
            self.expect(*kind)?;
        }
        Ok(())
    }

    /// `K_IF K_EXISTS`, if the first is there.
    pub(super) fn if_exists(&mut self) -> Parsed<bool> {
        if !self.eat(Kind::If)? {
            return Ok(false);
        }
        self.expect(Kind::Exists)?;
        Ok(true)
    }

    /// `K_IF K_NOT K_EXISTS`, if the first is there.
    pub(super) fn if_not_exists(&mut self) -> Parsed<bool> {
        if !self.eat(Kind::If)? {
            return Ok(false);
        }
        self.expect_all(&[Kind::Not, Kind::Exists])?;
        Ok(true)
    }

    /// Reads items separated by commas, at least one.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat(Kind::Comma)? {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Reads items separated by commas up to `end`, which is consumed; possibly none.
    pub(super) fn list_until<T>(
        &mut self,
        end: Kind,
        item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        if self.eat(end)? {
            return Ok(Vec::new());
        }
        let items = self.list(item)?;
        self.expect(end)?;
        Ok(items)
    }

    /// `? | :name`, which the caller has seen, as the next marker.
    pub(super) fn marker(&mut self) -> Parsed<Marker> {
        let pos = self.pos();
        let name = match self.advance()?.kind {
            Kind::QMark => None,
            _ => Some(self.ident()?),
        };
        let index = self.markers.len() as u32;
        if index == 0 {
            self.markers.reserve(8);
        }
        self.markers.push(BindMarker { name, pos });
        Ok(Marker { index, pos })
    }

    /// Runs `inner` one level deeper.
    #[inline]
    pub(super) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return Err(Box::new(Failure::TooDeep { at: self.token }));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Tries a reading: what it yields, or nothing and the old place if it does not fit.
    ///
    /// # Errors
    /// Where no other reading can fit either.
    pub(super) fn attempt<T>(&mut self, reading: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<Option<T>> {
        let mark =
            Mark { lexer: self.lexer, token: self.token, markers: self.markers.len(), depth: self.depth };
        match reading(self) {
            Ok(value) => Ok(Some(value)),
            Err(failure) if failure.is_final() => Err(failure),
            Err(_) => {
                self.lexer = mark.lexer;
                self.token = mark.token;
                self.markers.truncate(mark.markers);
                self.depth = mark.depth;
                Ok(None)
            }
        }
    }

    /// The token at hand is not what had to follow.
    #[cold]
    pub(super) fn mismatched(&self, expected: &'static str) -> Box<Failure> {
        Box::new(Failure::Mismatched { found: self.token, expected })
    }

    /// The token at hand is none that may stand here.
    #[cold]
    pub(super) fn no_viable(&self) -> Box<Failure> {
        Box::new(Failure::NoViable { found: self.token, decision: self.token })
    }

    /// The token at hand goes on nothing that begins with `decision`.
    #[cold]
    pub(super) fn no_viable_since(&self, decision: Token) -> Box<Failure> {
        Box::new(Failure::NoViable { found: self.token, decision })
    }

    /// A later token goes on nothing that begins with the token at hand.
    #[cold]
    pub(super) fn no_viable_ahead(&self, found: Token) -> Box<Failure> {
        Box::new(Failure::NoViable { found, decision: self.token })
    }

    /// A rule beyond the grammar is broken.
    #[cold]
    pub(super) fn rule(&self, at: Pos, message: impl Into<String>) -> Box<Failure> {
        Box::new(Failure::Rule { at, message: message.into() })
    }
}
