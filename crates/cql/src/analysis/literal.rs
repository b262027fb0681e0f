//! Literals of lists, sets, maps, vectors, tuples and user-defined types.
//!
//! Each becomes one serialised value, sorted as storage requires; for a non-frozen column the write splits that value
//! into cells. Sources: `ArrayLiteral`, `Lists`, `Sets`, `Maps`, `Vectors`, `Tuples`, `UserTypes`.

use super::assignment::{Fields, component_of, field_of, key_of, test_assignment, value_of};
use super::markers::Markers;
use super::term::Term;
use super::term_text::term_text;
use super::values::{Bindings, Bound, BoundValues};
use crate::budget::{UNBOUNDED, normalised, room_for, room_in};
use crate::error::{CqlError, Result};
use crate::scope::CallContext;
use crate::scope::Receiver;
use crate::scope::Scope;
use crate::syntax::ast::{self, Ident};
use helenus_model::types::{Assignment, CqlType, pack, put_element, put_value};
use std::borrow::Cow;
use std::collections::HashSet;

fn invalid<T>(message: String) -> Result<T> {
    Err(CqlError::Invalid(message))
}

/// `[a, b]`: a list or a vector.
pub(super) fn list(
    items: &[ast::Term<'_>],
    receiver: &Receiver,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<Term> {
    match &receiver.ty {
        CqlType::List { element, .. } => elements("list", items, element, (receiver, scope), markers),
        CqlType::Vector { element, dimension } => {
            if items.len() != *dimension as usize {
                return invalid(format!(
                    "Invalid vector literal for {} of type {}; expected {dimension} elements, but given {}",
                    receiver.name,
                    receiver.ty,
                    items.len()
                ));
            }
            elements("vector", items, element, (receiver, scope), markers)
        }
        other => Err(no_list(other)),
    }
}

fn no_list(receiver: &CqlType) -> CqlError {
    CqlError::Invalid(format!("Unexpected receiver type '{receiver}'; only list and vector are expected"))
}

/// Whether a part of a literal fits its receiver. A `[..]` at any depth whose receiver is neither a list nor a vector
/// has its own error (`ArrayLiteral.testAssignment`).
fn fits(term: &ast::Term<'_>, receiver: &Receiver, scope: &Scope<'_>) -> Result<bool> {
    if test_assignment(term, receiver, scope) != Assignment::Refused {
        return Ok(true);
    }
    match stray_list(term, receiver, scope) {
        Some(ty) => Err(no_list(&ty)),
        None => Ok(false),
    }
}

/// If a `[..]` is why the term does not fit: the receiver type that it was given for.
fn stray_list(term: &ast::Term<'_>, receiver: &Receiver, scope: &Scope<'_>) -> Option<CqlType> {
    let parts: Vec<(&ast::Term<'_>, Receiver)> = match (term, &receiver.ty) {
        (ast::Term::List(items, _), CqlType::List { element, .. } | CqlType::Vector { element, .. })
        | (ast::Term::Set(items, _), CqlType::Set { element, .. }) => {
            items.iter().map(|item| (item, value_of(receiver, element))).collect()
        }
        (ast::Term::List(..), other) => return Some(other.clone()),
        (ast::Term::Map(pairs, _), CqlType::Map { key, value, .. }) => pairs
            .iter()
            .flat_map(|(k, v)| [(k, key_of(receiver, key)), (v, value_of(receiver, value))])
            .collect(),
        (ast::Term::Tuple(items, _), CqlType::Tuple(types)) => items
            .iter()
            .zip(types.iter())
            .enumerate()
            .map(|(at, (item, ty))| (item, component_of(receiver, at, ty)))
            .collect(),
        _ => Vec::new(),
    };
    let is_refused =
        |part: &&(&ast::Term<'_>, Receiver)| test_assignment(part.0, &part.1, scope) == Assignment::Refused;
    let (term, receiver) = parts.iter().find(is_refused)?;
    stray_list(term, receiver, scope)
}

/// `{a, b}`, and `{}`, which may be an empty map.
pub(super) fn set(
    items: &[ast::Term<'_>],
    receiver: &Receiver,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<Term> {
    match &receiver.ty {
        CqlType::Set { element, .. } => elements("set", items, element, (receiver, scope), markers),
        CqlType::Map { .. } if items.is_empty() => Ok(Term::Value([0; 4].into())),
        _ => invalid(format!("Invalid set literal for {} of type {}", receiver.name, receiver.ty)),
    }
}

fn elements(
    what: &str,
    items: &[ast::Term<'_>],
    element: &CqlType,
    (receiver, scope): (&Receiver, &Scope<'_>),
    markers: &mut Markers,
) -> Result<Term> {
    let spec = value_of(receiver, element);
    for item in items {
        if !fits(item, &spec, scope)? {
            return invalid(format!(
                "Invalid {what} literal for {}: value {} is not of type {}",
                receiver.name,
                term_text(item),
                spec.ty
            ));
        }
    }
    let mut parts = Vec::with_capacity(items.len());
    for item in items {
        let part = Term::prepare(item, &spec, scope, markers)?;
        if what != "vector" && part.has_marker() {
            return Err(marker_inside(what, receiver));
        }
        parts.push(part);
    }
    settle(Term::Elements(receiver.ty.clone(), parts))
}

/// `{k: v}`.
pub(super) fn map(
    pairs: &[(ast::Term<'_>, ast::Term<'_>)],
    receiver: &Receiver,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<Term> {
    let CqlType::Map { key, value, .. } = &receiver.ty else {
        return invalid(format!("Invalid map literal for {} of type {}", receiver.name, receiver.ty));
    };
    let (key_spec, value_spec) = (key_of(receiver, key), value_of(receiver, value));
    for (key, value) in pairs {
        for (what, term, spec) in [("key", key, &key_spec), ("value", value, &value_spec)] {
            if !fits(term, spec, scope)? {
                return invalid(format!(
                    "Invalid map literal for {}: {what} {} is not of type {}",
                    receiver.name,
                    term_text(term),
                    spec.ty
                ));
            }
        }
    }
    let mut parts = Vec::with_capacity(pairs.len() * 2);
    for (key, value) in pairs {
        for (term, spec) in [(key, &key_spec), (value, &value_spec)] {
            let part = Term::prepare(term, spec, scope, markers)?;
            if part.has_marker() {
                return Err(marker_inside("map", receiver));
            }
            parts.push(part);
        }
    }
    settle(Term::Entries(receiver.ty.clone(), parts))
}

/// `(a, b)`: a tuple, or a term in parentheses.
pub(super) fn tuple(
    items: &[ast::Term<'_>],
    receiver: &Receiver,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<Term> {
    let CqlType::Tuple(types) = &receiver.ty else {
        return match items {
            [only] => Term::prepare(only, receiver, scope, markers),
            _ => invalid(format!("Invalid tuple type literal for {} of type {}", receiver.name, receiver.ty)),
        };
    };
    let mut parts = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let Some(ty) = types.get(index) else {
            return invalid(format!(
                "Invalid tuple literal for {}: too many elements. Type {} expects {} but got {}",
                receiver.name,
                receiver.ty,
                types.len(),
                items.len()
            ));
        };
        let spec = component_of(receiver, index, ty);
        if !fits(item, &spec, scope)? {
            return invalid(format!(
                "Invalid tuple literal for {}: component {index} is not of type {ty}",
                receiver.name
            ));
        }
    }
    for (index, (item, ty)) in items.iter().zip(types.iter()).enumerate() {
        parts.push(Term::prepare(item, &component_of(receiver, index, ty), scope, markers)?);
    }
    settle(Term::Fields(receiver.ty.clone(), parts))
}

/// `{field: v}`.
pub(super) fn udt(
    fields: &[(Ident<'_>, ast::Term<'_>)],
    receiver: &Receiver,
    scope: &Scope<'_>,
    markers: &mut Markers,
) -> Result<Term> {
    let CqlType::Udt(udt) = &receiver.ty else {
        // `{a: 1}` may have been meant as a map whose keys are not constants.
        return invalid(format!("Invalid user type literal for {} of type {}", receiver.name, receiver.ty));
    };
    let given = Fields::new(fields);
    for (name, ty) in &udt.fields {
        let Some(value) = given.get(name) else { continue };
        if !fits(value, &field_of(receiver, name, ty), scope)? {
            return invalid(format!(
                "Invalid user type literal for {}: field {name} is not of type {ty}",
                receiver.name
            ));
        }
    }
    let mut parts = Vec::with_capacity(udt.fields.len());
    for (name, ty) in &udt.fields {
        parts.push(match given.get(name) {
            None => Term::Null,
            Some(value) => Term::prepare(value, &field_of(receiver, name, ty), scope, markers)?,
        });
    }
    let known: HashSet<&str> = udt.fields.iter().map(|(field, _)| &**field).collect();
    if let Some((field, _)) = fields.iter().find(|(field, _)| !known.contains(field.as_str())) {
        return invalid(format!(
            "Unknown field '{}' in value of user defined type {}",
            field.as_str(),
            udt.name
        ));
    }
    settle(Term::Fields(receiver.ty.clone(), parts))
}

fn marker_inside(what: &str, receiver: &Receiver) -> CqlError {
    CqlError::Invalid(format!(
        "Invalid {what} literal for {}: bind variables are not supported inside collection literals",
        receiver.name
    ))
}

/// Converts a literal whose parts are all constants to a value.
fn settle(term: Term) -> Result<Term> {
    let (Term::Elements(_, parts) | Term::Entries(_, parts) | Term::Fields(_, parts)) = &term else {
        return Ok(term);
    };
    if !parts.iter().all(Term::is_constant) {
        return Ok(term);
    }
    let calls = CallContext {
        now_us: 0,
        unique_us: &|| 0,
        now_uuid: &|| [0; 16],
        random: &|_| (),
        node: 0,
        work: &UNBOUNDED,
    };
    let bindings = Bindings { values: BoundValues::none(), calls: &calls };
    match term.bind(&bindings)? {
        Bound::Bytes(bytes) => Ok(Term::Value(bytes.into_owned().into())),
        Bound::Null | Bound::Unset => Ok(Term::Null),
    }
}

/// Binds the parts; `Ok(None)` if one is unset, because then the whole value is unset.
fn bind_parts<'a>(
    parts: &'a [Term],
    bindings: &Bindings<'a>,
    null: &'static str,
) -> Result<Option<Vec<Cow<'a, [u8]>>>> {
    let mut values = Vec::with_capacity(parts.len());
    for part in parts {
        match part.bind(bindings)? {
            Bound::Bytes(bytes) => values.push(bytes),
            Bound::Null => return invalid(null.to_owned()),
            Bound::Unset => return Ok(None),
        }
    }
    Ok(Some(values))
}

const NULL_INSIDE: &str = "null is not supported inside collections";

/// The bytes that a part takes besides its value: a length.
const PART_BYTES: usize = 9;

/// A buffer for parts, of just the size that they need.
fn buffer_for<'v>(values: impl Iterator<Item = &'v [u8]>) -> Result<Vec<u8>> {
    let bytes = PART_BYTES + values.map(|value| value.len() + PART_BYTES).sum::<usize>();
    room_for(bytes)?;
    Ok(Vec::with_capacity(bytes))
}

/// A value in which sets and maps are sorted.
fn sorted<'a>(ty: &CqlType, value: Vec<u8>, bindings: &Bindings<'_>) -> Result<Bound<'a>> {
    let sorted = match normalised(ty, &value, bindings.calls.work)? {
        Cow::Owned(sorted) => Some(sorted),
        Cow::Borrowed(_) => None,
    };
    Ok(Bound::Bytes(Cow::Owned(sorted.unwrap_or(value))))
}

pub(super) fn bind_elements<'a>(
    ty: &CqlType,
    parts: &'a [Term],
    bindings: &Bindings<'a>,
) -> Result<Bound<'a>> {
    if let CqlType::Vector { element, .. } = ty {
        const NULL: &str = "null is not supported inside vectors";
        let Some(values) = bind_parts(parts, bindings, NULL)? else { return invalid(NULL.into()) };
        if values.iter().any(|value| value.is_empty() && element.is_empty_meaningless()) {
            return invalid(NULL.into());
        }
        let mut out = buffer_for(values.iter().map(|value| &**value))?;
        values.iter().for_each(|value| put_element(element, value, &mut out));
        return Ok(Bound::Bytes(Cow::Owned(out)));
    }
    let Some(values) = bind_parts(parts, bindings, NULL_INSIDE)? else { return Ok(Bound::Unset) };
    let mut out = buffer_for(values.iter().map(|value| &**value))?;
    pack(values.len(), values.iter().map(|value| Some(&**value)), &mut out);
    drop(values);
    sorted(ty, out, bindings)
}

pub(super) fn bind_entries<'a>(
    ty: &CqlType,
    parts: &'a [Term],
    bindings: &Bindings<'a>,
) -> Result<Bound<'a>> {
    let Some(values) = bind_parts(parts, bindings, NULL_INSIDE)? else { return Ok(Bound::Unset) };
    let mut out = buffer_for(values.iter().map(|value| &**value))?;
    pack(values.len() / 2, values.iter().map(|value| Some(&**value)), &mut out);
    drop(values);
    sorted(ty, out, bindings)
}

pub(super) fn bind_fields<'a>(ty: &CqlType, parts: &'a [Term], bindings: &Bindings<'a>) -> Result<Bound<'a>> {
    let mut out = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        match part.bind(bindings)? {
            Bound::Bytes(bytes) => {
                room_in(&mut out, bytes.len() + PART_BYTES)?;
                put_value(Some(&bytes), &mut out);
            }
            Bound::Null => put_value(None, &mut out),
            Bound::Unset => match ty {
                CqlType::Udt(udt) if udt.frozen => {
                    let field = udt.fields.get(index).map_or("", |(name, _)| &**name);
                    return invalid(format!(
                        "Invalid unset value for field '{field}' of user defined type {}",
                        udt.name
                    ));
                }
                CqlType::Udt(_) => put_value(None, &mut out),
                _ => return invalid(format!("Invalid unset value for tuple field number {index}")),
            },
        }
    }
    Ok(Bound::Bytes(Cow::Owned(out)))
}
