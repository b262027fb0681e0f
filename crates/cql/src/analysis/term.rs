//! Typed terms: constants are values already, other terms become values when a request binds them.

use super::assignment::{Operand, constant_kind, test_assignment};
use super::data_type::resolve_type;
use super::json_row::JsonRow;
use super::literal;
use super::markers::Markers;
use super::term_text::term_text;
use super::values::{Bindings, Bound};
use crate::budget::{RequestBudget, normalised, room_for};
use crate::cost;
use crate::error::{CqlError, Result};
use crate::functions::{assignable, compatible};
use crate::request::BoundValue;
use crate::scope::Receiver;
use crate::scope::Scalar;
use crate::scope::Scope;
use crate::syntax::ast;
use crate::syntax::print_type;
use helenus_model::types::{
    Assignment, CqlType, TypeError, check_bound_list, check_count, empty_as_null, parse_constant,
};
use std::borrow::Cow;
use std::sync::Arc;

/// A typed term.
#[derive(Clone, Debug)]
pub enum Term {
    /// A value known from the analysis.
    Value(Box<[u8]>),
    /// Null.
    Null,
    /// A bind marker: its number, and the type its values must have.
    Marker(u16, CqlType),
    /// A list, set or vector with parts that are not yet known; it becomes one value.
    Elements(CqlType, Vec<Term>),
    /// The same for a map: keys and values alternate.
    Entries(CqlType, Vec<Term>),
    /// A tuple or user-defined type with parts that are not yet known.
    Fields(CqlType, Vec<Term>),
    /// The timestamp constant `'now'`.
    Now,
    /// A column of a JSON row.
    Json(Arc<JsonRow>, usize),
    /// A call of a function.
    Call(Arc<dyn Scalar>, Vec<Term>),
}

impl Term {
    /// Types a term and records its markers in `markers`.
    ///
    /// # Errors
    /// The term cannot be a value of the receiver's type; the messages are those of each `Term.Raw.prepare`.
    pub fn prepare(
        term: &ast::Term<'_>,
        receiver: &Receiver,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<Term> {
        scope.work.step()?;
        match term {
            ast::Term::Literal(constant) => Self::prepare_literal(constant, receiver, scope),
            ast::Term::Null(_) if receiver.ty == CqlType::Counter => {
                Err(CqlError::Invalid("Invalid null value for counter increment/decrement".into()))
            }
            ast::Term::Null(_) => Ok(Term::Null),
            ast::Term::Marker(marker) => {
                if let Some(own) = markers.own(*marker) {
                    return Ok(own.clone());
                }
                markers.add(*marker, receiver);
                let index = u16::try_from(marker.index).map_err(|_| {
                    CqlError::Invalid("Too many markers(?). markers must be at most 65535".into())
                })?;
                Ok(Term::Marker(index, receiver.ty.clone()))
            }
            ast::Term::List(items, _) => literal::list(items, receiver, scope, markers),
            ast::Term::Set(items, _) => literal::set(items, receiver, scope, markers),
            ast::Term::Map(pairs, _) => literal::map(pairs, receiver, scope, markers),
            ast::Term::Udt(fields, _) => literal::udt(fields, receiver, scope, markers),
            ast::Term::Tuple(items, _) => literal::tuple(items, receiver, scope, markers),
            ast::Term::Hint(hint, _) => Self::prepare_hint(term, hint, receiver, scope, markers),
            ast::Term::Function(..)
            | ast::Term::Cast(..)
            | ast::Term::Negation(..)
            | ast::Term::Arithmetic(..) => Self::prepare_call(Operand::Term(term), receiver, scope, markers),
        }
    }

    /// Like `bind_marker` a function of its own: `prepare` and `bind` call themselves, and their stack frames count.
    fn prepare_literal(constant: &ast::Literal<'_>, receiver: &Receiver, scope: &Scope<'_>) -> Result<Term> {
        if matches!(receiver.ty, CqlType::Varint | CqlType::Decimal) {
            scope.work.operation(cost::number_text(&constant.text), "Reading the number")?;
            // Its halves, the powers of ten by which they are multiplied, and the products.
            room_for(5 * constant.text.len())?;
        }
        match parse_constant(&receiver.ty, constant_kind(constant), &constant.text) {
            Ok(bytes) => Ok(Term::Value(bytes.into())),
            Err(TypeError::Now) => Ok(Term::Now),
            Err(error) => Err(CqlError::Invalid(error.for_column(&receiver.name))),
        }
    }

    fn prepare_hint(
        term: &ast::Term<'_>,
        hint: &(ast::DataType<'_>, ast::Term<'_>),
        receiver: &Receiver,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<Term> {
        let hinted = resolve_type(&hint.0, &receiver.keyspace, scope)?;
        let casted = receiver.part(term_text(term), hinted.clone());
        if test_assignment(&hint.1, &casted, scope) == Assignment::Refused {
            return Err(CqlError::Invalid(format!(
                "Cannot cast value {} to type {}",
                term_text(&hint.1),
                print_type(&hint.0)
            )));
        }
        if compatible(&receiver.ty, &hinted) == Assignment::Refused {
            return Err(CqlError::Invalid(format!(
                "Cannot assign value {} to {} of type {}",
                term_text(term),
                receiver.name,
                receiver.ty
            )));
        }
        Self::prepare(&hint.1, receiver, scope, markers)
    }

    fn prepare_call(
        operand: Operand<'_, '_>,
        receiver: &Receiver,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<Term> {
        let Some((function, arguments)) = operand.resolve(Some(receiver), scope) else {
            // Every operand that is not a call is a term.
            let Operand::Term(term) = operand else { return Ok(Term::Null) };
            return Self::prepare(term, receiver, scope, markers);
        };
        let function = function?;
        if assignable(&receiver.ty, function.return_type()) == Assignment::Refused {
            let operator = function.operator();
            let (what, name) = match operator {
                Some(operator) => ("operation", operator.as_char().to_string()),
                None => ("function", function.name().to_owned()),
            };
            return Err(CqlError::Invalid(format!(
                "Type error: cannot assign result of {what} {name} (type {}) to {} (type {})",
                function.return_type(),
                receiver.name,
                receiver.ty
            )));
        }
        let types = function.argument_types();
        let mut prepared = Vec::with_capacity(arguments.len());
        for (index, (argument, ty)) in arguments.into_iter().zip(types).enumerate() {
            let spec = receiver.part(format!("arg{index}({})", function.name()), ty.clone());
            prepared.push(match argument {
                Operand::Term(term) => Self::prepare(term, &spec, scope, markers)?,
                chain => Self::prepare_call(chain, &spec, scope, markers)?,
            });
        }
        Ok(Term::Call(function, prepared))
    }

    /// Whether the value is known without the request.
    pub fn is_constant(&self) -> bool {
        matches!(self, Term::Value(_) | Term::Null)
    }

    /// Whether the term contains a bind marker.
    pub fn has_marker(&self) -> bool {
        match self {
            Term::Value(_) | Term::Null | Term::Now => false,
            Term::Json(row, _) => row.has_marker(),
            Term::Marker(..) => true,
            Term::Elements(_, parts)
            | Term::Entries(_, parts)
            | Term::Fields(_, parts)
            | Term::Call(_, parts) => parts.iter().any(Term::has_marker),
        }
    }

    /// The term's value. Bound values are validated; constants were validated in the analysis.
    ///
    /// # Errors
    /// A bound value that is invalid for its type; null or unset where it is not allowed.
    pub fn bind<'a>(&'a self, bindings: &Bindings<'a>) -> Result<Bound<'a>> {
        match self {
            Term::Value(bytes) => Ok(Bound::Bytes(Cow::Borrowed(bytes))),
            Term::Null => Ok(Bound::Null),
            Term::Now => {
                let now_ms = bindings.calls.now_us.div_euclid(1000);
                Ok(Bound::Bytes(Cow::Owned(now_ms.to_be_bytes().to_vec())))
            }
            Term::Marker(index, ty) => bind_marker(*index, ty, bindings),
            Term::Json(row, column) => row.bind(*column, bindings),
            Term::Elements(ty, parts) => literal::bind_elements(ty, parts, bindings),
            Term::Entries(ty, parts) => literal::bind_entries(ty, parts, bindings),
            Term::Fields(ty, parts) => literal::bind_fields(ty, parts, bindings),
            Term::Call(function, parts) => bind_call(&**function, parts, bindings),
        }
    }
}

fn bind_marker<'a>(index: u16, ty: &CqlType, bindings: &Bindings<'a>) -> Result<Bound<'a>> {
    match bindings.values.get(index) {
        BoundValue::Null => Ok(Bound::Null),
        BoundValue::Unset => Ok(Bound::Unset),
        BoundValue::Bytes(bytes) => {
            let work = bindings.calls.work;
            work.validation(ty, bytes.len())?;
            // Cassandra's message does not name the column, so it is added.
            let wrong = |error: TypeError| {
                CqlError::Invalid(format!("{error} (column {})", bindings.values.name(index)))
            };
            check_count(ty, bytes).map_err(wrong)?;
            if let CqlType::List { element, frozen } = ty {
                return bind_list((element, *frozen), bytes, work, wrong).map(Bound::Bytes);
            }
            ty.validate(bytes).map_err(wrong)?;
            Ok(Bound::Bytes(match ty {
                // Cassandra does not sort sets and maps in a vector, unless it is inside a collection.
                CqlType::Vector { .. } => Cow::Borrowed(bytes),
                _ => normalised(ty, bytes, work)?,
            }))
        }
    }
}

/// A list that a request binds. A frozen one may have nulls (`ElementsWithout`); of another each element is a cell, which
/// has a value.
fn bind_list<'a>(
    (element, is_frozen): (&Arc<CqlType>, bool),
    bytes: &'a [u8],
    work: &RequestBudget<'_>,
    wrong: impl Fn(TypeError) -> CqlError,
) -> Result<Cow<'a, [u8]>> {
    let without = check_bound_list(element, bytes).map_err(&wrong)?;
    if without.null && !is_frozen {
        return Err(wrong(TypeError::NullElement));
    }
    if without.empty && is_frozen {
        // Types whose empty value is read as null have nothing to sort.
        room_for(bytes.len())?;
        return Ok(Cow::Owned(empty_as_null(bytes)));
    }
    normalised(&CqlType::List { element: element.clone(), frozen: is_frozen }, bytes, work)
}

fn bind_call<'a>(function: &dyn Scalar, parts: &'a [Term], bindings: &Bindings<'a>) -> Result<Bound<'a>> {
    let mut arguments = Vec::with_capacity(parts.len());
    for part in parts {
        match part.bind(bindings)? {
            Bound::Unset => {
                let name = function.name();
                let name = name.strip_prefix("system.").unwrap_or(name);
                let text = format!("Invalid unset value for argument in call to function {name}");
                return Err(CqlError::Invalid(text));
            }
            Bound::Null => arguments.push(None),
            Bound::Bytes(bytes) => arguments.push(Some(bytes)),
        }
    }
    let arguments: Vec<Option<&[u8]>> = arguments.iter().map(Option::as_deref).collect();
    bindings.calls.calls(function, &arguments)?;
    let value = bindings.calls.made(function, function.call(&arguments, bindings.calls)?)?;
    Ok(Bound::of(value.map(Cow::Owned)))
}
