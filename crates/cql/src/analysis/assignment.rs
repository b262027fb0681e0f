//! Whether a term may stand where a value of some type is needed, and what type it has by itself
//! (`AssignmentTestable`, `Term.Raw.getExactTypeIfKnown`).

use super::data_type::{native_type, resolve_type};
use super::names::Scope;
use super::receiver::Receiver;
use crate::functions::{Argument, find};
use crate::syntax::ast::{FunctionName, Ident, Literal, LiteralKind, Pos, Term};
use helenus_model::types::{Assignment, ConstantKind, CqlType, UserType, test_constant};
use std::sync::Arc;

/// How well a term suits a receiver.
pub fn test_assignment(term: &Term<'_>, receiver: &Receiver, scope: &Scope<'_>) -> Assignment {
    let ty = &receiver.ty;
    match term {
        Term::Literal(literal) => test_constant(ty, constant_kind(literal), &literal.text),
        Term::Null(_) if *ty == CqlType::Counter => Assignment::Refused,
        Term::Null(_) | Term::Marker(_) => Assignment::Weak,
        Term::List(items, _) => match ty {
            CqlType::List { element, .. } => all(items, &value_of(receiver, element), scope),
            CqlType::Vector { element, dimension } if items.len() == *dimension as usize => {
                all(items, &value_of(receiver, element), scope)
            }
            _ => Assignment::Refused,
        },
        Term::Set(items, _) => match ty {
            CqlType::Set { element, .. } => all(items, &value_of(receiver, element), scope),
            CqlType::Map { .. } if items.is_empty() => Assignment::Weak,
            _ => Assignment::Refused,
        },
        Term::Map(pairs, _) => match ty {
            CqlType::Map { key, value, .. } => {
                let (key, value) = (key_of(receiver, key), value_of(receiver, value));
                let each = pairs
                    .iter()
                    .flat_map(|(k, v)| [test_assignment(k, &key, scope), test_assignment(v, &value, scope)]);
                combine(each)
            }
            _ => Assignment::Refused,
        },
        Term::Udt(fields, _) => match ty {
            CqlType::Udt(udt) => test_fields(fields, udt, receiver, scope),
            _ => Assignment::Refused,
        },
        Term::Tuple(items, _) => match ty {
            CqlType::Tuple(types) => {
                let fits = items.len() <= types.len();
                let mut parts = items.iter().zip(types.iter()).enumerate();
                let fits = fits
                    && parts.all(|(index, (item, ty))| {
                        test_assignment(item, &component_of(receiver, index, ty), scope)
                            != Assignment::Refused
                    });
                if fits { Assignment::Weak } else { Assignment::Refused }
            }
            _ => match &items[..] {
                [only] => test_assignment(only, receiver, scope),
                _ => Assignment::Refused,
            },
        },
        Term::Hint(hint, _) => match resolve_type(&hint.0, &receiver.keyspace, scope) {
            Ok(hinted) => compatible(ty, &hinted),
            Err(_) => Assignment::Weak,
        },
        Term::Function(call) => test_call(&call.name, &terms(&call.arguments), receiver, scope),
        Term::Cast(inner, to, pos) => {
            let name = operation(&format!("castas{}", to.as_str()), *pos);
            test_call(&name, &[Argument::Term(inner)], receiver, scope)
        }
        // Errors about operators name the operator, which preparing the term does.
        Term::Negation(..) | Term::Arithmetic(..) => Assignment::Weak,
    }
}

/// The type that a term has wherever it stands, if it has one.
pub fn exact_type(term: &Term<'_>, keyspace: &str, scope: &Scope<'_>) -> Option<CqlType> {
    match term {
        Term::Hint(hint, _) => resolve_type(&hint.0, keyspace, scope).ok(),
        Term::Function(call) => find(&call.name, &terms(&call.arguments), None, scope)
            .ok()
            .map(|found| found.return_type().clone()),
        Term::Cast(_, to, _) => Some(native_type(*to)),
        Term::Tuple(items, _) => {
            let types: Option<Vec<_>> = items.iter().map(|item| exact_type(item, keyspace, scope)).collect();
            types.map(|types| CqlType::Tuple(types.into()))
        }
        Term::Set(items, _) => {
            let element = items.iter().find_map(|item| exact_type(item, keyspace, scope))?;
            Some(CqlType::Set { element: Arc::new(element), frozen: true })
        }
        Term::Map(pairs, _) => {
            let key = pairs.iter().find_map(|(key, _)| exact_type(key, keyspace, scope))?;
            let value = pairs.iter().find_map(|(_, value)| exact_type(value, keyspace, scope))?;
            Some(CqlType::Map { key: key.into(), value: value.into(), frozen: true })
        }
        _ => None,
    }
}

/// Whether a value of one type may go where another is declared (`AbstractType.isValueCompatibleWith`).
pub(crate) fn compatible(receiver: &CqlType, given: &CqlType) -> Assignment {
    use CqlType as T;
    if receiver == given {
        return Assignment::Exact;
    }
    let takes = match (receiver, given) {
        (T::Blob, _) => !given.is_multi_cell(),
        (T::Text, T::Ascii) | (T::Uuid, T::TimeUuid) | (T::Timestamp, T::BigInt) => true,
        (T::BigInt, T::Timestamp) | (T::Date, T::Int) | (T::Time, T::BigInt) => true,
        (T::Varint, T::Int | T::BigInt | T::TinyInt | T::SmallInt) => true,
        (T::Set { element: a, .. }, T::Set { element: b, .. })
        | (T::List { element: a, .. }, T::List { element: b, .. }) => compatible(a, b) != Assignment::Refused,
        (T::Map { key: ka, value: va, .. }, T::Map { key: kb, value: vb, .. }) => {
            compatible(ka, kb) != Assignment::Refused && compatible(va, vb) != Assignment::Refused
        }
        (T::Udt(a), T::Udt(b)) => a.keyspace == b.keyspace && a.name == b.name && a.fields == b.fields,
        _ => false,
    };
    if takes { Assignment::Weak } else { Assignment::Refused }
}

/// The kind of a constant.
pub(crate) fn constant_kind(literal: &Literal<'_>) -> ConstantKind {
    match literal.kind {
        LiteralKind::String => ConstantKind::String,
        LiteralKind::Integer => ConstantKind::Integer,
        LiteralKind::Float => ConstantKind::Float,
        LiteralKind::Boolean => ConstantKind::Boolean,
        LiteralKind::Duration => ConstantKind::Duration,
        LiteralKind::Uuid => ConstantKind::Uuid,
        LiteralKind::Hex => ConstantKind::Hex,
    }
}

/// Arguments of a call as its resolution sees them.
pub(crate) fn terms<'a>(arguments: &'a [Term<'a>]) -> Vec<Argument<'a>> {
    arguments.iter().map(Argument::Term).collect()
}

/// The name of a function that stands for an operator or a cast.
pub(crate) fn operation(name: &str, pos: Pos) -> FunctionName<'static> {
    let ident = |name: &str| Ident { name: name.to_owned().into(), pos };
    FunctionName { keyspace: Some(ident("system")), name: ident(name) }
}

pub(super) fn value_of(receiver: &Receiver, ty: &CqlType) -> Receiver {
    receiver.part(format!("value({})", receiver.name), ty.clone())
}

pub(super) fn key_of(receiver: &Receiver, ty: &CqlType) -> Receiver {
    receiver.part(format!("key({})", receiver.name), ty.clone())
}

pub(super) fn component_of(receiver: &Receiver, index: usize, ty: &CqlType) -> Receiver {
    receiver.part(format!("{}[{index}]", receiver.name), ty.clone())
}

pub(super) fn field_of(receiver: &Receiver, name: &str, ty: &CqlType) -> Receiver {
    receiver.part(format!("{}.{name}", receiver.name), ty.clone())
}

fn test_fields(
    fields: &[(Ident<'_>, Term<'_>)],
    udt: &UserType,
    receiver: &Receiver,
    scope: &Scope<'_>,
) -> Assignment {
    let refused = udt.fields.iter().any(|(name, ty)| {
        let given = fields.iter().find(|(field, _)| field.as_str() == &**name);
        given.is_some_and(|(_, value)| {
            test_assignment(value, &field_of(receiver, name, ty), scope) == Assignment::Refused
        })
    });
    if refused { Assignment::Refused } else { Assignment::Weak }
}

fn test_call(
    name: &FunctionName<'_>,
    arguments: &[Argument<'_>],
    receiver: &Receiver,
    scope: &Scope<'_>,
) -> Assignment {
    match find(name, arguments, Some(receiver), scope) {
        Ok(function) => compatible(&receiver.ty, function.return_type()),
        // Preparing the term gives the better error.
        Err(_) => Assignment::Weak,
    }
}

/// All of a collection's elements. An empty collection fits weakly.
fn all(items: &[Term<'_>], receiver: &Receiver, scope: &Scope<'_>) -> Assignment {
    if items.is_empty() {
        return Assignment::Weak;
    }
    combine(items.iter().map(|item| test_assignment(item, receiver, scope)))
}

fn combine(each: impl Iterator<Item = Assignment>) -> Assignment {
    let mut result = Assignment::Exact;
    for found in each {
        match found {
            Assignment::Refused => return Assignment::Refused,
            Assignment::Weak => result = Assignment::Weak,
            Assignment::Exact => {}
        }
    }
    result
}
