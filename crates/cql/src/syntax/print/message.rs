//! Terms and types as Cassandra's own messages write them (`Term.Raw.getText`, `CQL3Type.Raw.toString`), which is not
//! always CQL.

use super::super::ast::{ArithmeticOperator, DataType, DataTypeKind, LiteralKind, Term};
use super::printer::print_type;

fn joined(terms: &[Term<'_>]) -> String {
    terms.iter().map(term_in_message).collect::<Vec<_>>().join(", ")
}

const fn function_of(operator: ArithmeticOperator) -> &'static str {
    match operator {
        ArithmeticOperator::Add => "_add",
        ArithmeticOperator::Subtract => "_substract",
        ArithmeticOperator::Multiply => "_multiply",
        ArithmeticOperator::Divide => "_divide",
        ArithmeticOperator::Modulo => "_modulo",
    }
}

/// A term as Cassandra's messages write it.
pub(in crate::syntax) fn term_in_message(term: &Term<'_>) -> String {
    match term {
        Term::Literal(literal) if literal.kind == LiteralKind::String => format!("'{}'", literal.text),
        Term::Literal(literal) => literal.text.to_string(),
        Term::Null(_) => "NULL".to_owned(),
        Term::Marker(_) => "?".to_owned(),
        Term::List(items, _) => format!("[{}]", joined(items)),
        Term::Set(items, _) => format!("{{{}}}", joined(items)),
        Term::Tuple(items, _) => format!("({})", joined(items)),
        Term::Map(pairs, _) => {
            let pair = |(key, value): &(Term<'_>, Term<'_>)| {
                format!("{}: {}", term_in_message(key), term_in_message(value))
            };
            format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        Term::Udt(fields, _) => {
            let fields =
                fields.iter().map(|(field, value)| format!("{}: {}", field.name, term_in_message(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Term::Function(call) => {
            let keyspace = call.name.keyspace.as_ref().map(|keyspace| format!("{}.", keyspace.name));
            format!("{}{}({})", keyspace.unwrap_or_default(), call.name.name.name, joined(&call.arguments))
        }
        Term::Hint(hint, _) => format!("({}){}", type_in_message(&hint.0), term_in_message(&hint.1)),
        Term::Cast(inner, to, _) => format!("system.cast_as_{}({})", to.as_str(), term_in_message(inner)),
        Term::Negation(inner, _) => format!("system.\"_negate\"({})", term_in_message(inner)),
        Term::Arithmetic(first, rest) => {
            rest.iter().fold(term_in_message(first), |left, (operator, right)| {
                format!("system.\"{}\"({left}, {})", function_of(*operator), term_in_message(right))
            })
        }
    }
}

/// A data type as Cassandra's messages write it.
pub(in crate::syntax) fn type_in_message(data_type: &DataType<'_>) -> String {
    match &data_type.kind {
        DataTypeKind::Custom(class) => format!("'{class}'"),
        _ => print_type(data_type),
    }
}
