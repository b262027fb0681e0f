//! The printer's output and its basic operations.

use super::super::ast::{
    BindMarker, DataType, DataTypeKind, FunctionName, Ident, Literal, LiteralKind, Marker, QualifiedName,
    Statement, Term,
};
use super::super::lexer::Lexer;
use super::super::parser::RESERVED_TYPE_NAMES;
use super::super::token::Kind;

/// Canonical CQL of a statement, without `;`.
pub fn print(statement: &Statement<'_>) -> String {
    let mut printer = Printer { out: String::new(), markers: &statement.markers };
    printer.statement(&statement.kind);
    printer.out
}

/// Canonical CQL of a term. `markers` are the statement's.
pub fn print_term(term: &Term<'_>, markers: &[BindMarker<'_>]) -> String {
    let mut printer = Printer { out: String::new(), markers };
    printer.term(term);
    printer.out
}

/// Canonical CQL of a data type.
pub fn print_type(data_type: &DataType<'_>) -> String {
    let mut printer = Printer { out: String::new(), markers: &[] };
    printer.data_type(data_type);
    printer.out
}

pub(super) struct Printer<'p> {
    pub(super) out: String,
    markers: &'p [BindMarker<'p>],
}

impl Printer<'_> {
    pub(super) fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Appends `text` if `condition` is true.
    pub(super) fn push_if(&mut self, condition: bool, text: &str) {
        if condition {
            self.push(text);
        }
    }

    /// Appends items with `separator` between them.
    pub(super) fn joined<T>(&mut self, items: &[T], separator: &str, mut item: impl FnMut(&mut Self, &T)) {
        for (index, one) in items.iter().enumerate() {
            self.push_if(index > 0, separator);
            item(self, one);
        }
    }

    /// Appends items between `open` and `close`, separated by commas.
    pub(super) fn enclosed<T>(
        &mut self,
        open: &str,
        items: &[T],
        close: &str,
        item: impl FnMut(&mut Self, &T),
    ) {
        self.push(open);
        self.joined(items, ", ", item);
        self.push(close);
    }

    /// A name, quoted unless it is read back unchanged without quotes: it is in lower case and not a keyword.
    pub(super) fn name(&mut self, name: &str) {
        let lower =
            !name.bytes().any(|byte| byte.is_ascii_uppercase()) && !RESERVED_TYPE_NAMES.contains(&name);
        let plain = lower
            && matches!(Lexer::new(name).next_token(), Ok(token) if token.kind == Kind::Ident && token.start == 0 && token.end as usize == name.len());
        if plain {
            self.push(name);
        } else {
            self.push("\"");
            self.push(&name.replace('"', "\"\""));
            self.push("\"");
        }
    }

    pub(super) fn ident(&mut self, ident: &Ident<'_>) {
        self.name(&ident.name);
    }

    fn dotted(&mut self, keyspace: Option<&Ident<'_>>, name: &Ident<'_>) {
        if let Some(keyspace) = keyspace {
            self.ident(keyspace);
            self.push(".");
        }
        self.ident(name);
    }

    pub(super) fn qualified(&mut self, name: &QualifiedName<'_>) {
        self.dotted(name.keyspace.as_ref(), &name.name);
    }

    pub(super) fn function_name(&mut self, name: &FunctionName<'_>) {
        self.dotted(name.keyspace.as_ref(), &name.name);
    }

    pub(super) fn string(&mut self, content: &str) {
        self.push("'");
        self.push(&content.replace('\'', "''"));
        self.push("'");
    }

    pub(super) fn literal(&mut self, literal: &Literal<'_>) {
        match literal.kind {
            LiteralKind::String => self.string(&literal.text),
            _ => self.push(&literal.text),
        }
    }

    pub(super) fn marker(&mut self, marker: Marker) {
        match self.markers.get(marker.index as usize).and_then(|bound| bound.name.as_ref()) {
            Some(name) => {
                self.push(":");
                self.name(&name.name);
            }
            None => self.push("?"),
        }
    }

    pub(super) fn data_type(&mut self, data_type: &DataType<'_>) {
        match &data_type.kind {
            DataTypeKind::Native(native) => self.push(native.as_str()),
            DataTypeKind::List(element) => self.angle("list", &[element]),
            DataTypeKind::Set(element) => self.angle("set", &[element]),
            DataTypeKind::Frozen(inner) => self.angle("frozen", &[inner]),
            DataTypeKind::Map(pair) => self.angle("map", &[&pair.0, &pair.1]),
            DataTypeKind::Tuple(types) => self.enclosed("tuple<", types, ">", Self::data_type),
            DataTypeKind::Vector(element, dimension) => {
                self.push("vector<");
                self.data_type(element);
                self.push(&format!(", {dimension}>"));
            }
            DataTypeKind::User(name) => self.qualified(name),
            DataTypeKind::Custom(class) => self.string(class),
        }
    }

    fn angle(&mut self, word: &str, types: &[&DataType<'_>]) {
        self.push(word);
        self.enclosed("<", types, ">", |printer, inner| printer.data_type(inner));
    }
}
