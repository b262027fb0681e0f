//! Parses data types (`comparatorType`).

use super::super::ast::{DataType, DataTypeKind, Native, Pos};
use super::super::error::Parsed;
use super::super::print::type_in_message;
use super::super::token::Kind;
use super::cursor::Parser;
use super::follow;

impl<'a> Parser<'a, '_> {
    /// `comparatorType`
    pub(super) fn data_type(&mut self) -> Parsed<DataType<'a>> {
        let pos = self.pos();
        let kind = self.deeper(|parser| parser.data_type_kind())?;
        Ok(DataType { kind, pos })
    }

    /// `native_type`
    pub(super) fn native_type(&mut self) -> Parsed<Native> {
        let Some(native) = Native::of(self.kind()) else { return Err(self.no_viable()) };
        self.advance()?;
        Ok(native)
    }

    fn data_type_kind(&mut self) -> Parsed<DataTypeKind<'a>> {
        let first = self.token;
        let opens = |parser: &mut Self| parser.look(1).kind == Kind::Less;
        match first.kind {
            Kind::String => {
                self.advance()?;
                Ok(DataTypeKind::Custom(self.content(first)))
            }
            Kind::Set => {
                self.advance()?;
                Ok(DataTypeKind::Set(self.angle()?))
            }
            Kind::List | Kind::Map | Kind::Tuple | Kind::Vector | Kind::Frozen if opens(self) => {
                self.advance()?;
                self.parameterised(first.kind, Pos(first.start))
            }
            kind => match Native::of(kind) {
                Some(native) => match self.look(1) {
                    next if follow::of_type(next.kind) => {
                        self.advance()?;
                        Ok(DataTypeKind::Native(native))
                    }
                    next if next.kind != Kind::Dot => Err(self.no_viable_ahead(next)),
                    _ => Ok(DataTypeKind::User(self.type_name()?)),
                },
                None => Ok(DataTypeKind::User(self.type_name()?)),
            },
        }
    }

    fn angle(&mut self) -> Parsed<Box<DataType<'a>>> {
        self.expect(Kind::Less)?;
        let inner = self.data_type()?;
        self.expect(Kind::Greater)?;
        Ok(Box::new(inner))
    }

    fn parameterised(&mut self, word: Kind, pos: Pos) -> Parsed<DataTypeKind<'a>> {
        match word {
            Kind::List => Ok(DataTypeKind::List(self.angle()?)),
            Kind::Map => {
                self.expect(Kind::Less)?;
                let key = self.data_type()?;
                self.expect(Kind::Comma)?;
                let value = self.data_type()?;
                self.expect(Kind::Greater)?;
                Ok(DataTypeKind::Map(Box::new((key, value))))
            }
            Kind::Tuple => {
                self.expect(Kind::Less)?;
                let types = self.list(Self::data_type)?;
                self.expect(Kind::Greater)?;
                Ok(DataTypeKind::Tuple(types))
            }
            Kind::Vector => {
                self.expect(Kind::Less)?;
                let element = self.data_type()?;
                self.expect(Kind::Comma)?;
                let token = self.expect(Kind::Integer)?;
                let raw = self.raw(token);
                let Ok(dimension) = raw.parse() else {
                    let (statement, problem) = (self.text(), format!("For input string: \"{raw}\""));
                    let message = format!(
                        "Failed parsing statement: [{statement}] reason: NumberFormatException {problem}"
                    );
                    return Err(self.rule(Pos(token.start), message));
                };
                self.expect(Kind::Greater)?;
                Ok(DataTypeKind::Vector(Box::new(element), dimension))
            }
            _ => {
                let inner = self.angle()?;
                // `frozen` has no effect on a vector, and its elements are not frozen by it
                // (`CQL3Type.RawVector.freeze`).
                if let DataTypeKind::Vector(..) = inner.kind {
                    return Ok(inner.kind);
                }
                if let DataTypeKind::Native(_) | DataTypeKind::Custom(_) = inner.kind {
                    let of = type_in_message(&inner);
                    let message = format!(
                        "frozen<> is only allowed on collections, tuples, and user-defined types (got {of})"
                    );
                    return Err(self.rule(pos, message));
                }
                Ok(DataTypeKind::Frozen(inner))
            }
        }
    }
}
