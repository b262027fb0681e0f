//! `WITH name = value AND ...`

use std::collections::HashSet;

use super::super::ast::{Ident, Literal, Pos, Property, PropertyValue, Term};
use super::super::error::Parsed;
use super::super::print::term_in_message;
use super::super::token::Kind;
use super::cursor::Parser;

/// The names given so far, to reject duplicates.
#[derive(Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// Whether the name is new.
    pub(super) fn add(&mut self, name: &str) -> bool {
        self.0.insert(name.to_owned())
    }
}

impl<'a> Parser<'a, '_> {
    /// `properties`
    pub(super) fn properties(&mut self) -> Parsed<Vec<Property<'a>>> {
        let mut names = Names::default();
        let mut properties = vec![self.property(&mut names)?];
        while self.eat(Kind::And)? {
            properties.push(self.property(&mut names)?);
        }
        Ok(properties)
    }

    /// `property`
    pub(super) fn property(&mut self, names: &mut Names) -> Parsed<Property<'a>> {
        let first = self.token;
        let name = self.ident()?;
        if self.kind() != Kind::Equal {
            return Err(self.no_viable_since(first));
        }
        self.advance()?;
        let value = self.token;
        let value = match value.kind {
            Kind::LBrace => {
                let pos = self.pos();
                PropertyValue::Map(self.property_map()?, pos)
            }
            kind if kind.is_constant() => PropertyValue::Literal(self.constant()?),
            kind if kind.is_name() && !matches!(kind, Kind::Ident | Kind::QuotedName) => {
                self.advance()?;
                PropertyValue::Word(self.raw(value).into(), Pos(value.start))
            }
            _ => return Err(self.no_viable_since(first)),
        };
        if !names.add(&name.name) {
            let message = format!("Multiple definitions for property '{}'", name.name);
            return Err(self.rule(name.pos, message));
        }
        Ok(Property { name, value })
    }

    /// `fullMapLiteral`, with the rules of `convertPropertyMap`: constants only, no key twice.
    pub(super) fn property_map(&mut self) -> Parsed<Vec<(Literal<'a>, Literal<'a>)>> {
        self.expect(Kind::LBrace)?;
        let pairs = self.list_until(Kind::RBrace, |parser| {
            let key = parser.term()?;
            parser.expect(Kind::Colon)?;
            Ok((key, parser.term()?))
        })?;
        let mut names = Names::default();
        let mut literals = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let key = match key {
                Term::Literal(literal) => literal,
                other => return Err(self.not_constant("Invalid property name: ", &other, "")),
            };
            let value = match value {
                Term::Literal(literal) => literal,
                other => {
                    let of = format!(" for property: {}", term_in_message(&Term::Literal(key)));
                    return Err(self.not_constant("Invalid property value: ", &other, &of));
                }
            };
            if !names.add(&key.text) {
                return Err(self.rule(key.pos, format!("Multiple definition for property {}", key.text)));
            }
            literals.push((key, value));
        }
        Ok(literals)
    }

    fn not_constant(&self, problem: &str, term: &Term<'a>, of: &str) -> Box<super::super::error::Failure> {
        let mut message = format!("{problem}{}{of}", term_in_message(term));
        if matches!(term, Term::Marker(_)) {
            message.push_str(" (bind variables are not supported in DDL queries)");
        }
        self.rule(term.pos(), message)
    }

    /// A column name in a schema statement (`ident`), with ASC or DESC; the flag is whether it descends.
    pub(super) fn clustering_order(&mut self) -> Parsed<(Ident<'a>, bool)> {
        let column = self.ident()?;
        let descending = match self.kind() {
            Kind::Asc => false,
            Kind::Desc => true,
            _ => return Err(self.no_viable()),
        };
        self.advance()?;
        Ok((column, descending))
    }
}
