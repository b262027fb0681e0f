//! Whether a term can be used for a value of some type, and which type it has without context (`AssignmentTestable`,
//! `Term.Raw.getExactTypeIfKnown`).

use super::data_type::resolve_type;
use super::term_text::operand_text;
use crate::error::Result;
use crate::functions::{
    Choice, NEGATION, assignable, choose, compatible, find, function_name, is_made, number_of,
};
use crate::scope::{Argument, CallId, CallKind, CallSite, Fits, OPERAND_TYPES, Receiver, Scalar, Scope};
use crate::syntax::ast::{ArithmeticOperator, FunctionName, Ident, Literal, LiteralKind, Pos, Term};
use helenus_model::types::{Assignment, ConstantKind, CqlType, UserType, preferred_type, test_constant};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How well a term fits a receiver.
pub fn test_assignment(term: &Term<'_>, receiver: &Receiver, scope: &Scope<'_>) -> Assignment {
    let ty = &receiver.ty;
    match term {
        Term::Literal(literal) => test_constant(ty, constant_kind(literal), &literal.text),
        Term::Null(_) if *ty == CqlType::Counter => Assignment::Refused,
        Term::Null(_) | Term::Marker(_) => Assignment::Weak,
        Term::List(items, _) => match ty {
            CqlType::List { element, .. } => all(items, &receiver.tested_part(element), scope),
            CqlType::Vector { element, dimension } if items.len() == *dimension as usize => {
                all(items, &receiver.tested_part(element), scope)
            }
            _ => Assignment::Refused,
        },
        Term::Set(items, _) => match ty {
            CqlType::Set { element, .. } => all(items, &receiver.tested_part(element), scope),
            CqlType::Map { .. } if items.is_empty() => Assignment::Weak,
            _ => Assignment::Refused,
        },
        Term::Map(pairs, _) => match ty {
            CqlType::Map { key, value, .. } => {
                let (key, value) = (receiver.tested_part(key), receiver.tested_part(value));
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
                let mut parts = items.iter().zip(types.iter());
                let fits = fits
                    && parts.all(|(item, ty)| {
                        test_assignment(item, &receiver.tested_part(ty), scope) != Assignment::Refused
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
        Term::Function(..) | Term::Cast(..) | Term::Negation(..) | Term::Arithmetic(..) => {
            Operand::Term(term).test_as_call(receiver, scope)
        }
    }
}

/// The type that a term has in every context, if it has one.
pub fn exact_type(term: &Term<'_>, keyspace: &str, scope: &Scope<'_>) -> Option<CqlType> {
    match term {
        Term::Hint(hint, _) => resolve_type(&hint.0, keyspace, scope).ok(),
        Term::Function(..) | Term::Cast(..) | Term::Negation(..) | Term::Arithmetic(..) => {
            Operand::Term(term).returned_type(scope)
        }
        Term::Tuple(items, _) => {
            let mut types = Vec::with_capacity(items.len());
            for item in items {
                types.push(exact_type(item, keyspace, scope)?);
            }
            Some(CqlType::Tuple(types.into()))
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

/// The type that is assumed for a term without context (`Term.Raw.getCompatibleTypeIfKnown`).
pub(crate) fn compatible_type(term: &Term<'_>, keyspace: &str, scope: &Scope<'_>) -> Option<CqlType> {
    let of = |items: &[&Term<'_>]| {
        common_type(items.iter().filter_map(|item| compatible_type(item, keyspace, scope)).collect())
    };
    match term {
        Term::Literal(literal) => preferred_type(constant_kind(literal), &literal.text),
        Term::Set(items, _) => {
            let element = of(&items.iter().collect::<Vec<_>>())?.into();
            Some(CqlType::Set { element, frozen: true })
        }
        Term::Map(pairs, _) => {
            let key = of(&pairs.iter().map(|(key, _)| key).collect::<Vec<_>>())?.into();
            let value = of(&pairs.iter().map(|(_, value)| value).collect::<Vec<_>>())?.into();
            Some(CqlType::Map { key, value, frozen: true })
        }
        other => exact_type(other, keyspace, scope),
    }
}

/// The first of some types that accepts values of all of them.
pub(crate) fn common_type(types: Vec<CqlType>) -> Option<CqlType> {
    // Each type once, in order: there may be many elements, mostly of one type.
    let mut seen = HashSet::new();
    let types: Vec<CqlType> = types.into_iter().filter(|ty| seen.insert(ty.clone())).collect();
    let takes_all = |ty: &&CqlType| types.iter().all(|given| assignable(ty, given) != Assignment::Refused);
    types.iter().find(takes_all).cloned()
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

/// The name of the system function for an operator or a cast.
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
    let given = Fields::new(fields);
    let refused = udt.fields.iter().any(|(name, ty)| {
        given.get(name).is_some_and(|value| {
            test_assignment(value, &receiver.tested_part(ty), scope) == Assignment::Refused
        })
    });
    if refused { Assignment::Refused } else { Assignment::Weak }
}

/// The fields of a literal by name; if a name occurs twice, the first one.
pub(super) struct Fields<'t, 'a>(HashMap<&'t str, &'t Term<'a>>);

impl<'t, 'a> Fields<'t, 'a> {
    pub(super) fn new(fields: &'t [(Ident<'a>, Term<'a>)]) -> Fields<'t, 'a> {
        // The last insert for a name wins, so insert in reverse order.
        Fields(fields.iter().rev().map(|(name, value)| (name.as_str(), value)).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&'t Term<'a>> {
        self.0.get(name).copied()
    }
}

/// A term, or the first operands of a chain of operators of equal precedence: `a + b` of `a + b - c`.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'t, 'a> {
    /// A term.
    Term(&'t Term<'a>),
    /// The first operands of a chain.
    Chain(&'t Term<'a>, &'t [(ArithmeticOperator, Term<'a>)]),
}

/// The function of a call, or the error if there is none, and the call's arguments.
type Resolved<'t, 'a> = (Result<Arc<dyn Scalar>>, Vec<Operand<'t, 'a>>);

impl<'t, 'a> Operand<'t, 'a> {
    fn chain(first: &'t Term<'a>, rest: &'t [(ArithmeticOperator, Term<'a>)]) -> Operand<'t, 'a> {
        if rest.is_empty() { Operand::Term(first) } else { Operand::Chain(first, rest) }
    }

    /// Name and arguments if the term is a call, operator, cast or negation; otherwise `None`.
    pub(super) fn as_call(self) -> Option<(FunctionName<'t>, Vec<Operand<'t, 'a>>)> {
        let (first, rest) = match self {
            Operand::Term(Term::Function(call)) => {
                return Some((call.name.clone(), call.arguments.iter().map(Operand::Term).collect()));
            }
            Operand::Term(Term::Cast(inner, to, pos)) => {
                return Some((
                    operation(&format!("cast_as_{}", to.as_str()), *pos),
                    vec![Operand::Term(inner)],
                ));
            }
            Operand::Term(Term::Negation(inner, pos)) => {
                return Some((operation(NEGATION, *pos), vec![Operand::Term(inner)]));
            }
            Operand::Term(Term::Arithmetic(first, rest)) => (&**first, &rest[..]),
            Operand::Term(_) => return None,
            Operand::Chain(first, rest) => (first, rest),
        };
        let ((operator, last), front) = rest.split_last()?;
        let operands = vec![Operand::chain(first, front), Operand::Term(last)];
        Some((operation(function_name(*operator), last.pos()), operands))
    }

    /// Identifies the call in the statement; `None` for terms that are not calls.
    fn id(self) -> Option<CallId> {
        let of = |pos: Pos, kind: CallKind, operators: usize| {
            Some(CallId { offset: pos.0, kind, operators: u32::try_from(operators).unwrap_or(u32::MAX) })
        };
        let (first, rest) = match self {
            Operand::Term(Term::Function(call)) => return of(call.pos, CallKind::Function, 0),
            Operand::Term(Term::Cast(_, _, pos)) => return of(*pos, CallKind::Cast, 0),
            Operand::Term(Term::Negation(_, pos)) => return of(*pos, CallKind::Negation, 0),
            Operand::Term(Term::Arithmetic(first, rest)) => (&**first, &rest[..]),
            Operand::Term(_) => return None,
            Operand::Chain(first, rest) => (first, rest),
        };
        use ArithmeticOperator::{Add, Subtract};
        let is_sum = matches!(rest.first(), Some((Add | Subtract, _)));
        of(first.pos(), if is_sum { CallKind::Sum } else { CallKind::Product }, rest.len())
    }

    /// An operation's operator and operands.
    fn as_operation(self) -> Option<(ArithmeticOperator, Operand<'t, 'a>, Operand<'t, 'a>)> {
        let (first, rest) = match self {
            Operand::Term(Term::Arithmetic(first, rest)) => (&**first, &rest[..]),
            Operand::Chain(first, rest) => (first, rest),
            Operand::Term(_) => return None,
        };
        let ((operator, last), front) = rest.split_last()?;
        Some((*operator, Operand::chain(first, front), Operand::Term(last)))
    }

    /// Resolves the function of a call.
    pub(super) fn resolve(self, receiver: Option<&Receiver>, scope: &Scope<'_>) -> Option<Resolved<'t, 'a>> {
        let (name, arguments) = self.as_call()?;
        let key = self.id().map(|id| (id, receiver.map(|receiver| receiver.ty.clone())));
        if let Some(Some(known)) = key.as_ref().and_then(|key| scope.memo.function(key)) {
            return Some((Ok(known), arguments));
        }
        let given: Vec<&dyn Argument> = arguments.iter().map(|argument| argument as &dyn Argument).collect();
        let found = find(&name, &given, receiver, scope);
        if let Some(key) = key {
            scope.memo.keep_function(key, found.as_ref().ok().cloned());
        }
        Some((found, arguments))
    }

    /// As `resolve`, without the error.
    fn function(self, receiver: Option<&Receiver>, scope: &Scope<'_>) -> Option<Arc<dyn Scalar>> {
        let key = (self.id()?, receiver.map(|receiver| receiver.ty.clone()));
        match scope.memo.function(&key) {
            Some(known) => known,
            None => self.resolve(receiver, scope)?.0.ok(),
        }
    }

    /// How well a call fits a receiver. A call that cannot be resolved fits weakly: preparing it reports a better
    /// error.
    fn test_as_call(self, receiver: &Receiver, scope: &Scope<'_>) -> Assignment {
        if let Some(operation) = self.as_operation() {
            let place = CallSite {
                keyspace: receiver.keyspace.clone(),
                table: receiver.table.clone(),
                ty: Some(receiver.ty.clone()),
            };
            return match number_of(&receiver.ty) {
                Some(number) => self.suits(&place, scope)[number],
                None => Self::test_operation(operation, (&receiver.ty, &place), scope),
            };
        }
        let is_made = |operand: Self| operand.as_call().is_some_and(|(name, _)| is_made(&name));
        match self.function(Some(receiver), scope) {
            None => Assignment::Weak,
            Some(_) if is_made(self) => Assignment::Weak,
            Some(function) => suits_result(&receiver.ty, function.return_type()),
        }
    }

    fn test_operation(
        (operator, left, right): (ArithmeticOperator, Self, Self),
        (ty, place): (&CqlType, &CallSite),
        scope: &Scope<'_>,
    ) -> Assignment {
        let suits = (&left.suits(place, scope), &right.suits(place, scope));
        match choose(operator, suits, left.is_marker() || right.is_marker(), Some(ty)) {
            Choice::One(found) => suits_result(ty, found.returns()),
            Choice::None | Choice::Several => Assignment::Weak,
        }
    }

    fn returned_type(self, scope: &Scope<'_>) -> Option<CqlType> {
        self.function(None, scope).map(|function| function.return_type().clone())
    }
}

/// How well the result of a call fits the type of its receiver.
fn suits_result(ty: &CqlType, returned: &CqlType) -> Assignment {
    if ty == returned || returned.has_parts() && ty.freeze() == returned.freeze() {
        return Assignment::Exact;
    }
    compatible(ty, returned)
}

impl Argument for Operand<'_, '_> {
    fn test(&self, receiver: &Receiver, scope: &Scope<'_>) -> Assignment {
        match self {
            Operand::Term(term) => test_assignment(term, receiver, scope),
            Operand::Chain(..) => self.test_as_call(receiver, scope),
        }
    }

    fn compatible_type(&self, keyspace: &str, scope: &Scope<'_>) -> Option<CqlType> {
        match self {
            Operand::Term(term) => compatible_type(term, keyspace, scope),
            Operand::Chain(..) => self.returned_type(scope),
        }
    }

    fn text(&self) -> String {
        operand_text(*self)
    }

    fn is_marker(&self) -> bool {
        matches!(self, Operand::Term(Term::Marker(_)))
    }

    fn suits(&self, place: &CallSite, scope: &Scope<'_>) -> Fits {
        let Some((operator, left, right)) = self.as_operation() else {
            return OPERAND_TYPES.map(|ty| self.test(&Receiver::of_argument(place, ty), scope));
        };
        let key = self.id().map(|id| (id, place.keyspace.is_empty()));
        if let Some(known) = key.and_then(|key| scope.memo.suits(key)) {
            return known;
        }
        let suits = (&left.suits(place, scope), &right.suits(place, scope));
        let has_marker = left.is_marker() || right.is_marker();
        let found = OPERAND_TYPES.map(|ty| match choose(operator, suits, has_marker, Some(&ty)) {
            Choice::One(found) => suits_result(&ty, found.returns()),
            Choice::None | Choice::Several => Assignment::Weak,
        });
        if let Some(key) = key {
            scope.memo.keep_suits(key, found);
        }
        found
    }
}

/// Tests all elements of a collection. An empty collection fits weakly.
fn all(items: &[Term<'_>], receiver: &Receiver, scope: &Scope<'_>) -> Assignment {
    if items.is_empty() {
        return Assignment::Weak;
    }
    combine(items.iter().map(|item| test_assignment(item, receiver, scope)))
}

/// The worst of several assignments.
pub(crate) fn combine(each: impl Iterator<Item = Assignment>) -> Assignment {
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
