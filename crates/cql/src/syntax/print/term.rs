//! Prints terms.

use super::super::ast::{InValues, Term};
use super::printer::Printer;

impl Printer<'_> {
    pub(super) fn term(&mut self, term: &Term<'_>) {
        match term {
            Term::Literal(literal) => self.literal(literal),
            Term::Null(_) => self.push("null"),
            Term::Marker(marker) => self.marker(*marker),
            Term::List(items, _) => self.enclosed("[", items, "]", Self::term),
            Term::Set(items, _) => self.enclosed("{", items, "}", Self::term),
            Term::Tuple(items, _) => self.enclosed("(", items, ")", Self::term),
            Term::Map(pairs, _) => self.enclosed("{", pairs, "}", |printer, (key, value)| {
                printer.term(key);
                printer.push(": ");
                printer.term(value);
            }),
            Term::Udt(fields, _) => self.enclosed("{", fields, "}", |printer, (field, value)| {
                printer.ident(field);
                printer.push(": ");
                printer.term(value);
            }),
            Term::Function(call) => {
                self.function_name(&call.name);
                self.enclosed("(", &call.arguments, ")", Self::term);
            }
            Term::Hint(hint, _) => {
                self.push("(");
                self.data_type(&hint.0);
                self.push(") ");
                self.term(&hint.1);
            }
            Term::Cast(inner, to, _) => {
                self.push("CAST(");
                self.term(inner);
                self.push(" AS ");
                self.push(to.as_str());
                self.push(")");
            }
            Term::Negation(inner, _) => {
                self.push("- ");
                self.term(inner);
            }
            Term::Arithmetic(first, rest) => {
                self.term(first);
                for (operator, term) in rest {
                    self.push(&format!(" {} ", operator.as_char()));
                    self.term(term);
                }
            }
        }
    }

    pub(super) fn in_values(&mut self, values: &InValues<'_>) {
        match values {
            InValues::Marker(marker) => self.marker(*marker),
            InValues::List(terms) => self.enclosed("(", terms, ")", Self::term),
        }
    }
}
