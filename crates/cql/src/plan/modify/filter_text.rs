//! Relations as Cassandra's messages quote them (`Relation.toCQLString`).

use crate::analysis::term_text;
use crate::syntax::ast::{Ident, InValues, Relation, RelationKind, Term};
use helenus_model::types::quote_identifier;

/// The text of a relation in messages.
pub(super) fn relation_text(relation: &Relation<'_>) -> String {
    let name = |ident: &Ident<'_>| quote_identifier(ident.as_str()).into_owned();
    let names = |idents: &[Ident<'_>]| idents.iter().map(name).collect::<Vec<_>>().join(", ");
    match &relation.kind {
        RelationKind::Column { column, element, comparison, value } => {
            let element = element.as_ref().map(|key| format!("[{}]", term_text(key))).unwrap_or_default();
            format!("{}{element} {} {}", name(column), comparison.as_str(), term_text(value))
        }
        RelationKind::In(column, values) => format!("{} IN {}", name(column), in_text(values)),
        RelationKind::IsNotNull(column) => format!("{} IS NOT NULL", name(column)),
        RelationKind::Token(columns, comparison, value) => {
            format!("token({}) {} {}", names(columns), comparison.as_str(), term_text(value))
        }
        RelationKind::Tuple(columns, comparison, value) => {
            format!("({}) {} {}", names(columns), comparison.as_str(), term_text(value))
        }
        RelationKind::TupleIn(columns, values) => format!("({}) IN {}", names(columns), in_text(values)),
        RelationKind::Custom(index, value) => format!("expr({}, {})", name(index), term_text(value)),
    }
}

fn in_text(values: &InValues<'_>) -> String {
    match values {
        InValues::Marker(_) => "?".into(),
        InValues::List(terms) => {
            format!(
                "({})",
                terms.iter().map(|term: &Term<'_>| term_text(term)).collect::<Vec<_>>().join(", ")
            )
        }
    }
}
