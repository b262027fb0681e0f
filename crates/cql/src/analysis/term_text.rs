//! Terms as quoted in Cassandra's messages (`Term.Raw.getText`), which differ slightly from CQL.

use super::assignment::Operand;
use crate::syntax::ast::{LiteralKind, Term};
use crate::syntax::print_type;
use helenus_model::types::quote_identifier;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The bytes of a text after which nothing is appended, and those of a literal in it: terms may have megabytes, a text is
/// copied several times, and no name or message has use for more.
const TEXT_BYTES_MAX: usize = 64 << 10;
const LITERAL_BYTES_MAX: usize = 16 << 10;

/// The text of a term in messages.
pub fn term_text(term: &Term<'_>) -> String {
    let mut out = String::new();
    write(term, &mut out);
    out
}

fn write(term: &Term<'_>, out: &mut String) {
    if out.len() >= TEXT_BYTES_MAX {
        return;
    }
    match term {
        Term::Literal(literal) if literal.kind == LiteralKind::String => {
            _ = write!(out, "'{}'", cut(&literal.text))
        }
        Term::Literal(literal) => out.push_str(&cut(&literal.text)),
        Term::Null(_) => out.push_str("NULL"),
        Term::Marker(_) => out.push('?'),
        Term::List(items, _) => list("[", items, "]", out),
        Term::Set(items, _) => list("{", items, "}", out),
        Term::Tuple(items, _) => list("(", items, ")", out),
        Term::Map(pairs, _) => {
            out.push('{');
            for (index, (key, value)) in pairs.iter().enumerate() {
                if out.len() >= TEXT_BYTES_MAX {
                    break;
                }
                out.push_str(if index == 0 { "" } else { ", " });
                write(key, out);
                out.push_str(": ");
                write(value, out);
            }
            out.push('}');
        }
        Term::Udt(fields, _) => {
            out.push('{');
            for (index, (field, value)) in fields.iter().enumerate() {
                _ = write!(out, "{}{}: ", if index == 0 { "" } else { ", " }, field.as_str());
                write(value, out);
            }
            out.push('}');
        }
        Term::Function(call) => {
            if let Some(keyspace) = &call.name.keyspace {
                _ = write!(out, "{}.", quote_identifier(keyspace.as_str()));
            }
            out.push_str(&quote_identifier(call.name.name.as_str()));
            list("(", &call.arguments, ")", out);
        }
        Term::Hint(hint, _) => {
            _ = write!(out, "({})", print_type(&hint.0));
            write(&hint.1, out);
        }
        Term::Cast(..) | Term::Negation(..) | Term::Arithmetic(..) => {
            out.push_str(&operand_text(Operand::Term(term)))
        }
    }
}

/// The text of an operand: operators, casts and the minus sign are printed as function calls.
pub(super) fn operand_text(operand: Operand<'_, '_>) -> String {
    match (operand, operand.as_call()) {
        (Operand::Term(term @ Term::Function(_)), _) | (Operand::Term(term), None) => term_text(term),
        (_, Some((name, arguments))) => {
            let arguments: Vec<String> = arguments.into_iter().map(operand_text).collect();
            format!("system.{}({})", quote_identifier(name.name.as_str()), arguments.join(", "))
        }
        (Operand::Chain(first, _), None) => term_text(first),
    }
}

/// A literal, or its beginning.
fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= LITERAL_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}...", text.get(..text.floor_char_boundary(LITERAL_BYTES_MAX)).unwrap_or_default()))
}

fn list(open: &str, items: &[Term<'_>], close: &str, out: &mut String) {
    out.push_str(open);
    for (index, item) in items.iter().enumerate() {
        if out.len() >= TEXT_BYTES_MAX {
            out.push_str("...");
            break;
        }
        out.push_str(if index == 0 { "" } else { ", " });
        write(item, out);
    }
    out.push_str(close);
}
