//! Makes functions for the types of their arguments (`FunctionFactory`, `FunctionParameter`).

use super::aggregate::Aggregate;
use super::collection::element_of;
use super::compatibility::assignable;
use super::native::{Native, Operation};
use super::number::is_number;
use super::resolve::Found;
use super::similarity::Similarity;
use crate::error::{CqlError, Result};
use crate::scope::Argument;
use crate::scope::CallSite;
use crate::scope::Scope;
use helenus_model::schema::Table;
use helenus_model::types::{Assignment, CqlType};
use std::sync::Arc;

/// The requirement on an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter {
    /// Any type.
    Any,
    /// Any type; an argument without a type of its own gets that of the receiver.
    AnyOrReceiver,
    /// The type of the first argument.
    AsFirst,
    Text,
    TextOrAscii,
    Int,
    Collection,
    SetOrList,
    NumberSetOrList,
    Map,
    /// A vector of floats; an argument without a type of its own gets that of the argument with this index.
    Vector(usize),
}

/// The parameters of a function, and how many of them are required.
fn parameters(name: &str) -> Option<(&'static [Parameter], usize)> {
    use Parameter as P;
    Some(match name {
        "min" | "max" => (&[P::AnyOrReceiver], 1),
        "to_json" | "tojson" | "mask_null" | "mask_default" => (&[P::Any], 1),
        "from_json" | "fromjson" => (&[P::Text], 1),
        "map_keys" | "map_values" => (&[P::Map], 1),
        "collection_count" => (&[P::Collection], 1),
        "collection_min" | "collection_max" => (&[P::SetOrList], 1),
        "collection_sum" | "collection_avg" => (&[P::NumberSetOrList], 1),
        "mask_replace" => (&[P::AnyOrReceiver, P::AsFirst], 2),
        "mask_inner" | "mask_outer" => (&[P::TextOrAscii, P::Int, P::Int, P::Text], 3),
        "mask_hash" => (&[P::Any, P::Text], 1),
        "similarity_cosine" | "similarity_euclidean" | "similarity_dot_product" => {
            (&[P::Vector(1), P::Vector(0)], 2)
        }
        _ => return None,
    })
}

/// Whether functions with this name are made for their arguments.
pub(super) fn is_made(name: &str) -> bool {
    name == "token" || parameters(name).is_some()
}

/// Makes a function; `None` if no function with this name is made.
///
/// # Errors
/// Arguments that the function refuses, or whose types are unknown.
pub(super) fn make(
    name: &str,
    arguments: &[&dyn Argument],
    place: &CallSite,
    scope: &Scope<'_>,
) -> Result<Option<Found>> {
    if name == "token" {
        return token(place, scope).map(Some);
    }
    let Some((parameters, needed)) = parameters(name) else { return Ok(None) };
    let signature = || {
        let text = |(index, parameter): (usize, &Parameter)| {
            if index < needed { parameter.text().to_owned() } else { format!("[{}]", parameter.text()) }
        };
        let texts: Vec<String> = parameters.iter().enumerate().map(text).collect();
        format!("system.{name}({})", texts.join(", "))
    };
    if arguments.len() < needed || arguments.len() > parameters.len() {
        return invalid(format!("Invalid number of arguments for function {}", signature()));
    }
    let infer = |index: usize, known: &[Option<CqlType>]| {
        let (parameter, argument) = (parameters.get(index)?, arguments.get(index)?);
        parameter.infer(*argument, known, place, scope)
    };
    let mut types: Vec<Option<CqlType>> = (0..arguments.len()).map(|index| infer(index, &[])).collect();
    for (index, argument) in arguments.iter().enumerate() {
        let Some(ty) = infer(index, &types) else {
            return invalid(format!(
                "Cannot infer type of argument {} in call to function {}: use type casts to disambiguate",
                argument.text(),
                signature()
            ));
        };
        if let Some(parameter) = parameters.get(index) {
            parameter.check(name, *argument, &ty)?;
        }
        if let Some(known) = types.get_mut(index) {
            *known = Some(ty.freeze());
        }
    }
    made(name, types.into_iter().flatten().collect(), place).map(Some)
}

fn made(name: &str, types: Vec<CqlType>, place: &CallSite) -> Result<Found> {
    let first = types.first().cloned().unwrap_or(CqlType::Blob);
    let scalar = |types: &[CqlType], returns: CqlType, does: Operation| {
        Ok(Found::Scalar(Native::shared(name, types, returns, does)))
    };
    let set_of = |ty: &Arc<CqlType>| CqlType::Set { element: ty.clone(), frozen: true };
    let list_of = |ty: &Arc<CqlType>| CqlType::List { element: ty.clone(), frozen: true };
    let fold = |make: fn(CqlType) -> Aggregate| {
        let function = make(element_of(&first).cloned().unwrap_or(CqlType::Blob));
        scalar(&types, function.return_type(), Operation::FoldCollection(function))
    };
    match (name, &first) {
        ("min", _) => Ok(Found::Aggregate(Aggregate::Min(first))),
        ("max", _) => Ok(Found::Aggregate(Aggregate::Max(first))),
        ("to_json" | "tojson", _) => scalar(&types, CqlType::Text, Operation::ToJson),
        ("from_json" | "fromjson", _) => match &place.ty {
            Some(ty) => scalar(&[CqlType::Text], ty.clone(), Operation::FromJson),
            None => invalid(format!("{name}() cannot be used in the selection clause of a SELECT statement")),
        },
        ("map_keys", CqlType::Map { key, .. }) => scalar(&types, set_of(key), Operation::MapKeys),
        ("map_values", CqlType::Map { value, .. }) => scalar(&types, list_of(value), Operation::MapValues),
        ("collection_count", _) => scalar(&types, CqlType::Int, Operation::CountCollection),
        ("collection_min", _) => fold(Aggregate::Min),
        ("collection_max", _) => fold(Aggregate::Max),
        ("collection_sum", _) => fold(Aggregate::Sum),
        ("collection_avg", _) => fold(Aggregate::Avg),
        ("mask_null", _) => scalar(&types, first.clone(), Operation::MaskNull),
        ("mask_default", _) => scalar(&types, first.clone(), Operation::MaskDefault),
        ("mask_replace", _) => scalar(&types, first.clone(), Operation::MaskReplace),
        ("mask_hash", _) => scalar(&with_first(&types, &[CqlType::Text]), CqlType::Blob, Operation::MaskHash),
        ("mask_inner" | "mask_outer", _) => {
            let rest = [CqlType::Int, CqlType::Int, CqlType::Text];
            scalar(&with_first(&types, &rest), first.clone(), Operation::MaskPartial(name == "mask_inner"))
        }
        _ => match Similarity::named(name) {
            Some(similarity) => {
                let dimension = |ty: &CqlType| match ty {
                    CqlType::Vector { dimension, .. } => Some(*dimension),
                    _ => None,
                };
                if types.iter().any(|ty| dimension(ty) != dimension(&first)) {
                    return invalid("All arguments must have the same vector dimensions".to_owned());
                }
                let vectors = [first.clone(), first.clone()];
                scalar(&vectors, CqlType::Float, Operation::Similarity(similarity))
            }
            None => invalid(format!("Function system.{name} does not take arguments of type {first}")),
        },
    }
}

/// The type of the first argument, and those of the other given arguments.
fn with_first(types: &[CqlType], rest: &[CqlType]) -> Vec<CqlType> {
    types.iter().take(1).chain(rest).take(types.len()).cloned().collect()
}

fn token(place: &CallSite, scope: &Scope<'_>) -> Result<Found> {
    if place.keyspace.is_empty() {
        return invalid("No receiver keyspace has been specified for function token".to_owned());
    }
    let table: Option<&Arc<Table>> = scope.schema.table(&place.keyspace, &place.table);
    let Some(table) = table else {
        return invalid(format!(
            "The receiver table {}.{} specified by call to function token hasn't been found",
            place.keyspace, place.table
        ));
    };
    Ok(Found::Scalar(Native::token(table)))
}

impl Parameter {
    fn infer(
        self,
        argument: &dyn Argument,
        known: &[Option<CqlType>],
        place: &CallSite,
        scope: &Scope<'_>,
    ) -> Option<CqlType> {
        let own = || argument.compatible_type(&place.keyspace, scope);
        let known = |index: usize| known.get(index).cloned().flatten();
        match self {
            Parameter::AnyOrReceiver => own().or_else(|| place.ty.clone()),
            Parameter::AsFirst => known(0).or_else(own).or_else(|| place.ty.clone()),
            Parameter::Text | Parameter::TextOrAscii => own().or(Some(CqlType::Text)),
            Parameter::Int => own().or(Some(CqlType::Int)),
            Parameter::Vector(other) => {
                let array = argument.array_length().map(|length| CqlType::Vector {
                    element: Arc::new(CqlType::Float),
                    dimension: u32::try_from(length).unwrap_or(u32::MAX),
                });
                array.or_else(own).or_else(|| place.ty.clone()).or_else(|| known(other))
            }
            _ => own(),
        }
    }

    fn check(self, name: &str, argument: &dyn Argument, ty: &CqlType) -> Result<()> {
        let fits = |to: &CqlType| assignable(to, ty) != Assignment::Refused;
        let (takes, wanted) = match self {
            Parameter::Any | Parameter::AnyOrReceiver | Parameter::AsFirst => return Ok(()),
            Parameter::Text | Parameter::TextOrAscii | Parameter::Int => {
                let takes = match self {
                    Parameter::Int => fits(&CqlType::Int),
                    Parameter::Text => fits(&CqlType::Text),
                    _ => fits(&CqlType::Text) || fits(&CqlType::Ascii),
                };
                (takes, format!("an argument of type {}", self.text()))
            }
            Parameter::Collection => {
                let takes = element_of(ty).is_some() || matches!(ty, CqlType::Map { .. });
                (takes, "a collection argument".to_owned())
            }
            Parameter::SetOrList => (element_of(ty).is_some(), "a set or list argument".to_owned()),
            Parameter::NumberSetOrList => {
                (element_of(ty).is_some_and(is_number), "a numeric set/list argument".to_owned())
            }
            Parameter::Map => (matches!(ty, CqlType::Map { .. }), "a map argument".to_owned()),
            Parameter::Vector(_) => {
                let takes = matches!(ty, CqlType::Vector { element, .. } if **element == CqlType::Float);
                (takes, "a float vector argument".to_owned())
            }
        };
        if takes {
            return Ok(());
        }
        invalid(format!(
            "Function system.{name} requires {wanted}, but found argument {} of type {ty}",
            argument.text()
        ))
    }

    fn text(self) -> &'static str {
        match self {
            Parameter::Any | Parameter::AnyOrReceiver | Parameter::AsFirst => "any",
            Parameter::Text => "text",
            Parameter::TextOrAscii => "[text|varchar|ascii]",
            Parameter::Int => "int",
            Parameter::Collection => "collection",
            Parameter::SetOrList | Parameter::NumberSetOrList => "numeric_set_or_list",
            Parameter::Map => "map",
            Parameter::Vector(_) => "vector<float, n>",
        }
    }
}

fn invalid<T>(text: String) -> Result<T> {
    Err(CqlError::Invalid(text))
}
