//! The parser's position in the text, and its basic operations.

use super::super::ast::{BindMarker, Marker, Pos};
use super::super::error::{Failure, Parsed, content};
use super::super::lexer::{LexError, Lexer};
use super::super::token::{Kind, Token};
use crate::budget::{RequestBudget, room_for};

/// The deepest nesting of terms, types, selectors and relations.
///
/// It bounds the trees that are built, not only the parser, so any code may process a statement's tree by recursion. A
/// chain of operators or of steps into a value is as deep a tree as the chain is long, although the parser reads it in
/// a loop (`link`). One level costs the parser a handful of stack frames, some 4 KiB in a debug build, and the analysis
/// twice that: 128 levels fit in the smallest stack that is used here, the 2 MiB of a Rust thread. Cassandra has no
/// limit of its own: its parser and its analysis run out of stack (`StackOverflowError`), and each operator of a chain
/// multiplies the time of its analysis.
pub const DEPTH_MAX: u32 = 128;

/// The parser's state.
pub(super) struct Parser<'a, 'w> {
    /// Limits the time of parsing.
    work: &'w RequestBudget<'w>,
    lexer: Lexer<'a>,
    /// The current token, not yet consumed.
    pub(super) token: Token,
    /// The bind markers so far.
    pub(super) markers: Vec<BindMarker<'a>>,
    depth: u32,
    /// The deepest level read since the current chain began.
    deepest: u32,
    /// The first invalid token found. It is reported instead of any later failure.
    pub(super) lex_error: Option<LexError>,
    /// The start of the last token looked at.
    pub(super) read_to: u32,
    /// Where in the text the next step of work begins.
    next_step: u32,
}

/// The bytes of text that are parsed in one step of work.
const TEXT_BYTES_A_STEP: u32 = 64;

/// A position to return to.
pub(super) struct Mark<'a> {
    lexer: Lexer<'a>,
    token: Token,
    markers: usize,
    depth: u32,
    deepest: u32,
}

impl<'a, 'w> Parser<'a, 'w> {
    pub(super) fn new(text: &'a str, work: &'w RequestBudget<'w>) -> Parsed<Parser<'a, 'w>> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next_token()?;
        Ok(Parser {
            work,
            lexer,
            token,
            markers: Vec::new(),
            depth: 0,
            deepest: 0,
            lex_error: None,
            read_to: token.start,
            next_step: TEXT_BYTES_A_STEP,
        })
    }

    /// The kind of the current token.
    #[inline]
    pub(super) fn kind(&self) -> Kind {
        self.token.kind
    }

    /// Where the current token begins.
    #[inline]
    pub(super) fn pos(&self) -> Pos {
        Pos(self.token.start)
    }

    pub(super) fn text(&self) -> &'a str {
        self.lexer.text()
    }

    /// A token's text as written.
    #[inline]
    pub(super) fn raw(&self, token: Token) -> &'a str {
        self.text().get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// A token's text, without quotes.
    pub(super) fn content(&self, token: Token) -> std::borrow::Cow<'a, str> {
        content(self.text(), token)
    }

    /// Moves to the next token and returns the consumed one.
    #[inline]
    pub(super) fn advance(&mut self) -> Parsed<Token> {
        let consumed = self.token;
        match self.lexer.next_token() {
            Ok(token) => {
                self.token = token;
                if token.start > self.read_to {
                    self.read_to = token.start;
                }
                if token.start >= self.next_step {
                    self.next_step = token.start.saturating_add(TEXT_BYTES_A_STEP);
                    self.go_on()?;
                }
                Ok(consumed)
            }
            Err(error) => {
                self.lex_error.get_or_insert(error);
                Err(error.into())
            }
        }
    }

    /// The `ahead`th token after the current one; `Kind::Bad` if there is none.
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

    /// The same as `look`, without a trace in the message of an error.
    pub(super) fn peek(&self, ahead: usize) -> Token {
        let (mut lexer, mut token) = (self.lexer, self.token);
        for _ in 0..ahead {
            match lexer.next_token() {
                Ok(next) => token = next,
                Err(error) => return Token { kind: Kind::Bad, start: error.at, end: error.at },
            }
        }
        token
    }

    /// Consumes the current token if it is of this kind.
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

    /// Consumes tokens of these kinds in this order.
    pub(super) fn expect_all(&mut self, kinds: &[Kind]) -> Parsed<()> {
        for kind in kinds {
            self.expect(*kind)?;
        }
        Ok(())
    }

    /// `K_IF K_EXISTS`, if the first word is there.
    pub(super) fn if_exists(&mut self) -> Parsed<bool> {
        if !self.eat(Kind::If)? {
            return Ok(false);
        }
        self.expect(Kind::Exists)?;
        Ok(true)
    }

    /// `K_IF K_NOT K_EXISTS`, if the first word is there.
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

    /// Asks for memory that is about to be taken.
    ///
    /// # Errors
    /// There is none.
    #[cold]
    fn room_for(&self, bytes: usize) -> Parsed<()> {
        room_for(bytes).map_err(|error| {
            self.work.interrupt(error);
            Box::new(Failure::Interrupted { at: self.token })
        })
    }

    /// Counts a step of the work.
    ///
    /// # Errors
    /// The request took too long, or its client has disconnected.
    #[cold]
    fn go_on(&self) -> Parsed<()> {
        match self.work.step() {
            Ok(()) => Ok(()),
            Err(error) => {
                self.work.interrupt(error);
                Err(Box::new(Failure::Interrupted { at: self.token }))
            }
        }
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

    /// Parses a marker, `? | :name`, which the caller has seen.
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
        if self.markers.len() == self.markers.capacity() {
            // It doubles, and the old ones are there until they are copied.
            self.room_for(2 * size_of_val(&*self.markers))?;
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
        self.deepest = self.deepest.max(self.depth);
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Begins a chain: `a + b - c`, or steps into a value. The caller calls `link` for each part after the first, and
    /// passes the result of this function to `end_chain` when all parts are read. If parsing fails, `end_chain` is not
    /// needed.
    #[inline]
    pub(super) fn begin_chain(&mut self) -> u32 {
        std::mem::replace(&mut self.deepest, self.depth)
    }

    /// Ends a chain.
    #[inline]
    pub(super) fn end_chain(&mut self, outer: u32) {
        self.deepest = self.deepest.max(outer);
    }

    /// Adds a tree level above everything that the current chain has read so far.
    #[inline]
    pub(super) fn link(&mut self) -> Parsed<()> {
        if self.deepest >= DEPTH_MAX {
            return Err(Box::new(Failure::TooDeep { at: self.token }));
        }
        self.deepest += 1;
        Ok(())
    }

    /// Tries a way to parse: returns its result or, if it fails, nothing and restores the position.
    ///
    /// # Errors
    /// A failure that no other way to parse can avoid.
    pub(super) fn attempt<T>(&mut self, reading: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<Option<T>> {
        let mark = Mark {
            lexer: self.lexer,
            token: self.token,
            markers: self.markers.len(),
            depth: self.depth,
            deepest: self.deepest,
        };
        match reading(self) {
            Ok(value) => Ok(Some(value)),
            Err(failure) if failure.is_final() => Err(failure),
            Err(_) => {
                self.lexer = mark.lexer;
                self.token = mark.token;
                self.markers.truncate(mark.markers);
                self.depth = mark.depth;
                self.deepest = mark.deepest;
                Ok(None)
            }
        }
    }

    /// The current token is not the required one.
    #[cold]
    pub(super) fn mismatched(&self, expected: &'static str) -> Box<Failure> {
        Box::new(Failure::Mismatched { found: self.token, expected })
    }

    /// The current token is not allowed here.
    #[cold]
    pub(super) fn no_viable(&self) -> Box<Failure> {
        Box::new(Failure::NoViable { found: self.token, decision: self.token })
    }

    /// The current token continues nothing that begins with `decision`.
    #[cold]
    pub(super) fn no_viable_since(&self, decision: Token) -> Box<Failure> {
        Box::new(Failure::NoViable { found: self.token, decision })
    }

    /// A later token continues nothing that begins with the current token.
    #[cold]
    pub(super) fn no_viable_ahead(&self, found: Token) -> Box<Failure> {
        Box::new(Failure::NoViable { found, decision: self.token })
    }

    /// A rule beyond the grammar is violated.
    #[cold]
    pub(super) fn rule(&self, at: Pos, message: impl Into<String>) -> Box<Failure> {
        Box::new(Failure::Rule { at, message: message.into() })
    }
}
