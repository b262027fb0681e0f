//! Prints WHERE and IF.

use super::super::ast::{Condition, Guard, Ident, Relation, RelationKind, Test};
use super::printer::Printer;

impl Printer<'_> {
    /// ` WHERE ...`, or nothing without relations.
    pub(super) fn filter(&mut self, relations: &[Relation<'_>]) {
        if !relations.is_empty() {
            self.push(" WHERE ");
            self.joined(relations, " AND ", Self::relation);
        }
    }

    fn columns(&mut self, columns: &[Ident<'_>]) {
        self.enclosed("(", columns, ")", Self::ident);
    }

    fn spaced(&mut self, word: &str) {
        self.push(" ");
        self.push(word);
        self.push(" ");
    }

    fn relation(&mut self, relation: &Relation<'_>) {
        match &relation.kind {
            RelationKind::Column { column, element, comparison, value } => {
                self.ident(column);
                if let Some(element) = element {
                    self.push("[");
                    self.term(element);
                    self.push("]");
                }
                self.spaced(comparison.as_str());
                self.term(value);
            }
            RelationKind::In(column, values) => {
                self.ident(column);
                self.push(" IN ");
                self.in_values(values);
            }
            RelationKind::IsNotNull(column) => {
                self.ident(column);
                self.push(" IS NOT NULL");
            }
            RelationKind::Token(columns, comparison, value) => {
                self.push("token");
                self.columns(columns);
                self.spaced(comparison.as_str());
                self.term(value);
            }
            RelationKind::Tuple(columns, comparison, value) => {
                self.columns(columns);
                self.spaced(comparison.as_str());
                self.term(value);
            }
            RelationKind::TupleIn(columns, values) => {
                self.columns(columns);
                self.push(" IN ");
                self.in_values(values);
            }
            RelationKind::Custom(index, value) => {
                self.push("expr(");
                self.ident(index);
                self.push(", ");
                self.term(value);
                self.push(")");
            }
        }
    }

    /// ` IF ...`, or nothing without a guard.
    pub(super) fn guard(&mut self, guard: &Guard<'_>) {
        match guard {
            Guard::None => {}
            Guard::Exists => self.push(" IF EXISTS"),
            Guard::Conditions(conditions) => {
                self.push(" IF ");
                self.joined(conditions, " AND ", Self::condition);
            }
        }
    }

    fn condition(&mut self, condition: &Condition<'_>) {
        self.ident(&condition.column);
        if let Some(element) = &condition.element {
            self.push("[");
            self.term(element);
            self.push("]");
        }
        if let Some(field) = &condition.field {
            self.push(".");
            self.ident(field);
        }
        match &condition.test {
            Test::Compare(comparison, value) => {
                self.spaced(comparison.as_str());
                self.term(value);
            }
            Test::In(values) => {
                self.push(" IN ");
                self.in_values(values);
            }
        }
    }
}
