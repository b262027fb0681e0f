//! Parses names.

use std::borrow::Cow;

use super::super::ast::{FunctionName, Ident, Pos, QualifiedName, RoleName};
use super::super::error::Parsed;
use super::super::token::{Kind, Token};
use super::cursor::Parser;
use super::follow;

/// Names that are reserved for future types (`reservedTypeNames`). Compared with the text as written, so `ENUM` is
/// allowed.
pub const RESERVED_TYPE_NAMES: [&str; 7] =
    ["byte", "complex", "enum", "date", "interval", "macaddr", "bitstring"];

impl<'a> Parser<'a, '_> {
    /// The name that a token spells.
    #[inline]
    pub(super) fn name_of(&self, token: Token) -> Ident<'a> {
        let name = match token.kind {
            Kind::QuotedName => self.content(token),
            Kind::EmptyQuotedName => Cow::Borrowed(""),
            _ => {
                let raw = self.raw(token);
                match raw.bytes().any(|byte| byte.is_ascii_uppercase()) {
                    true => Cow::Owned(raw.to_ascii_lowercase()),
                    false => Cow::Borrowed(raw),
                }
            }
        };
        Ident { name, pos: Pos(token.start) }
    }

    /// `ident`, `fident`, `noncol_ident`.
    #[inline]
    pub(super) fn ident(&mut self) -> Parsed<Ident<'a>> {
        if !self.kind().is_name() {
            return Err(self.no_viable());
        }
        let token = self.advance()?;
        Ok(self.name_of(token))
    }

    /// `cident`: a column, which may have the empty name.
    #[inline]
    pub(super) fn column(&mut self) -> Parsed<Ident<'a>> {
        if !self.kind().is_column() {
            return Err(self.no_viable());
        }
        let token = self.advance()?;
        Ok(self.name_of(token))
    }

    fn name_without_marker(&mut self, of: &str) -> Parsed<Ident<'a>> {
        if self.kind() == Kind::QMark {
            return Err(self.rule(self.pos(), format!("Bind variables cannot be used for {of} names")));
        }
        self.ident()
    }

    /// `keyspaceName`
    pub(super) fn keyspace_name(&mut self) -> Parsed<Ident<'a>> {
        self.name_without_marker("keyspace")
    }

    /// `idxName`
    pub(super) fn index_name(&mut self) -> Parsed<Ident<'a>> {
        self.name_without_marker("index")
    }

    /// `columnFamilyName`
    pub(super) fn table_name(&mut self) -> Parsed<QualifiedName<'a>> {
        self.qualified("table")
    }

    /// `[ks.]name`; messages use `of` for the kind of object.
    pub(super) fn qualified(&mut self, of: &str) -> Parsed<QualifiedName<'a>> {
        let first = self.token;
        if first.kind == Kind::QMark {
            let next = self.look(1);
            let of = match next.kind {
                Kind::Dot => "keyspace",
                kind if follow::of_table(kind) => of,
                _ => return Err(self.no_viable_ahead(next)),
            };
            return Err(self.rule(self.pos(), format!("Bind variables cannot be used for {of} names")));
        }
        let name = self.ident()?;
        if !self.eat(Kind::Dot)? {
            if !follow::of_table(self.kind()) && !self.begins_extension(0) {
                return Err(self.no_viable_since(first));
            }
            return Ok(QualifiedName { keyspace: None, name });
        }
        Ok(QualifiedName { keyspace: Some(name), name: self.name_without_marker(of)? })
    }

    /// `userTypeName`
    pub(super) fn type_name(&mut self) -> Parsed<QualifiedName<'a>> {
        let first = self.token;
        if first.kind.is_name() {
            let next = self.look(1);
            if next.kind == Kind::Dot {
                let keyspace = Some(self.ident()?);
                self.expect(Kind::Dot)?;
                return Ok(QualifiedName { keyspace, name: self.bare_type_name()? });
            }
            if !first.kind.is_type_name() {
                self.advance()?;
                return Err(self.mismatched(Kind::Dot.label()));
            }
        }
        Ok(QualifiedName { keyspace: None, name: self.bare_type_name()? })
    }

    /// `non_type_ident`
    fn bare_type_name(&mut self) -> Parsed<Ident<'a>> {
        if !self.kind().is_type_name() {
            return Err(self.no_viable());
        }
        let token = self.advance()?;
        let raw = self.raw(token);
        if token.kind == Kind::Ident && RESERVED_TYPE_NAMES.contains(&raw) {
            return Err(self.rule(Pos(token.start), format!("Invalid (reserved) user type name {raw}")));
        }
        Ok(self.name_of(token))
    }

    /// `functionName`
    pub(super) fn function_name(&mut self) -> Parsed<FunctionName<'a>> {
        let first = self.token;
        if first.kind == Kind::QMark {
            return Err(self.rule(self.pos(), "Bind variables cannot be used for keyspace names"));
        }
        if first.kind.is_name() {
            let next = self.look(1);
            if next.kind == Kind::Dot {
                let keyspace = Some(self.ident()?);
                self.expect(Kind::Dot)?;
                return Ok(FunctionName { keyspace, name: self.bare_function_name()? });
            }
            if !first.kind.is_function_name() || !follow::of_function(next.kind) {
                return Err(self.no_viable_ahead(next));
            }
        }
        Ok(FunctionName { keyspace: None, name: self.bare_function_name()? })
    }

    /// `allowedFunctionName`
    pub(super) fn bare_function_name(&mut self) -> Parsed<Ident<'a>> {
        if !self.kind().is_function_name() {
            return Err(self.no_viable());
        }
        let token = self.advance()?;
        Ok(self.name_of(token))
    }

    /// `userOrRoleName`
    pub(super) fn role_name(&mut self) -> Parsed<RoleName<'a>> {
        let token = self.token;
        match token.kind {
            Kind::String => {
                self.advance()?;
                Ok(RoleName { name: self.content(token), pos: Pos(token.start) })
            }
            Kind::QMark => Err(self.rule(self.pos(), "Bind variables cannot be used for role names")),
            _ => {
                let name = self.ident()?;
                Ok(RoleName { name: name.name, pos: name.pos })
            }
        }
    }

    /// `username` and `identity`: an identifier that is not a keyword, or a string. Both keep their case.
    pub(super) fn plain_role_name(&mut self, refusal: &str) -> Parsed<RoleName<'a>> {
        let token = self.token;
        match token.kind {
            Kind::Ident | Kind::String => {
                self.advance()?;
                Ok(RoleName { name: self.content(token), pos: Pos(token.start) })
            }
            Kind::QuotedName => Err(self.rule(self.pos(), refusal)),
            _ => Err(self.no_viable()),
        }
    }
}
