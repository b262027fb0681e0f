//! Chooses the function that a call means (`FunctionResolver`).

use super::aggregate::{Aggregate, NUMBERS};
use super::call::{Argument, Scalar};
use super::native::{Native, functions};
use crate::analysis::{Receiver, Scope, compatible, exact_type, term_text, test_assignment};
use crate::error::{CqlError, Result};
use crate::syntax::ast::FunctionName;
use helenus_model::types::{Assignment, CqlType};
use std::sync::Arc;

/// Where a call stands.
#[derive(Clone, Debug)]
pub(crate) struct CallPlace {
    /// Keyspace of the statement's table.
    pub(crate) keyspace: Arc<str>,
    /// The statement's table.
    pub(crate) table: Arc<str>,
    /// What the result must be, if that is known.
    pub(crate) ty: Option<CqlType>,
}

/// A function found.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// Of one row.
    Scalar(Arc<dyn Scalar>),
    /// Of many.
    Aggregate(Aggregate),
}

impl Found {
    fn name(&self) -> &str {
        match self {
            Found::Scalar(function) => function.name(),
            Found::Aggregate(function) => function.name(),
        }
    }

    fn arguments(&self) -> &[CqlType] {
        match self {
            Found::Scalar(function) => function.argument_types(),
            Found::Aggregate(function) => function.argument().map_or(&[], std::slice::from_ref),
        }
    }

    fn returns(&self) -> CqlType {
        match self {
            Found::Scalar(function) => function.return_type().clone(),
            Found::Aggregate(function) => function.return_type(),
        }
    }

    fn signature(&self) -> String {
        let arguments: Vec<String> = self.arguments().iter().map(CqlType::to_string).collect();
        format!("{} : ({}) -> {}", self.name(), arguments.join(", "), self.returns())
    }
}

/// The function that a call within a term means, chosen by its arguments and what the result is for.
///
/// # Errors
/// There is no such function, none of its overloads fits, or it is an aggregate.
pub fn find(
    name: &FunctionName<'_>,
    arguments: &[Argument<'_>],
    receiver: Option<&Receiver>,
    scope: &Scope<'_>,
) -> Result<Arc<dyn Scalar>> {
    let place = receiver.map_or_else(
        || CallPlace { keyspace: "".into(), table: "".into(), ty: None },
        |receiver| CallPlace {
            keyspace: receiver.keyspace.clone(),
            table: receiver.table.clone(),
            ty: Some(receiver.ty.clone()),
        },
    );
    match lookup(name, arguments, &place, scope)? {
        Some(Found::Scalar(function)) => Ok(function),
        Some(Found::Aggregate(_)) => {
            Err(CqlError::Invalid("Aggregation function are not supported in the where clause".to_owned()))
        }
        None => Err(CqlError::Invalid(format!("Unknown function {} called", text(name)))),
    }
}

/// The function that a call means; `None` if there is none of that name.
///
/// # Errors
/// None of its overloads fits, or more than one does.
pub(crate) fn lookup(
    name: &FunctionName<'_>,
    arguments: &[Argument<'_>],
    place: &CallPlace,
    scope: &Scope<'_>,
) -> Result<Option<Found>> {
    if name.keyspace.as_ref().is_some_and(|keyspace| keyspace.as_str() != "system") {
        return Ok(None);
    }
    let candidates = candidates(name.name.as_str(), arguments, place, scope)?;
    match &candidates[..] {
        [] => Ok(None),
        [only] => {
            check(only, arguments, place, scope)?;
            Ok(Some(only.clone()))
        }
        several => best(name, several, arguments, place, scope).map(Some),
    }
}

fn candidates(
    name: &str,
    arguments: &[Argument<'_>],
    place: &CallPlace,
    scope: &Scope<'_>,
) -> Result<Vec<Found>> {
    let of_numbers = |make: fn(CqlType) -> Aggregate| {
        NUMBERS.iter().map(|ty| Found::Aggregate(make(ty.clone()))).collect()
    };
    let of_any = |make: fn(CqlType) -> Aggregate| -> Result<Vec<Found>> {
        let [argument] = arguments else {
            return Err(CqlError::Invalid(format!(
                "Invalid number of arguments for function system.{name}({})",
                "any"
            )));
        };
        let ty = match argument {
            Argument::Typed(ty, _) => Some((*ty).clone()),
            Argument::Term(term) => exact_type(term, &place.keyspace, scope),
        };
        let Some(ty) = ty else {
            return Err(CqlError::Invalid(format!(
                "Cannot infer type of argument {}",
                argument_text(argument)
            )));
        };
        Ok(vec![Found::Aggregate(make(ty))])
    };
    Ok(match name {
        "count_rows" | "countrows" => vec![Found::Aggregate(Aggregate::CountRows)],
        "count" => vec![Found::Aggregate(Aggregate::Count(CqlType::Blob))],
        "min" => of_any(Aggregate::Min)?,
        "max" => of_any(Aggregate::Max)?,
        "sum" => of_numbers(Aggregate::Sum),
        "avg" => of_numbers(Aggregate::Avg),
        "token" => {
            if place.keyspace.is_empty() {
                let text = "No receiver keyspace has been specified for function token";
                return Err(CqlError::Invalid(text.to_owned()));
            }
            let Some(table) = scope.schema.table(&place.keyspace, &place.table) else {
                return Err(CqlError::Invalid(format!(
                    "The receiver table {}.{} specified by call to function token hasn't been found",
                    place.keyspace, place.table
                )));
            };
            vec![Found::Scalar(Native::token(table))]
        }
        other => functions(other).into_iter().map(Found::Scalar).collect(),
    })
}

/// Checks the arguments of the only function of a name, with better texts than a choice could give.
fn check(function: &Found, arguments: &[Argument<'_>], place: &CallPlace, scope: &Scope<'_>) -> Result<()> {
    let (name, types) = (function.name(), function.arguments());
    if arguments.len() != types.len() {
        return Err(CqlError::Invalid(format!(
            "Invalid number of arguments in call to function {name}: {} required but {} provided",
            types.len(),
            arguments.len()
        )));
    }
    for (index, (argument, ty)) in arguments.iter().zip(types).enumerate() {
        if assignment(argument, index, name, (ty, place), scope) == Assignment::Refused {
            return Err(CqlError::Invalid(format!(
                "Type error: {} cannot be passed as argument {index} of function {name} of type {ty}",
                argument_text(argument)
            )));
        }
    }
    Ok(())
}

fn best(
    name: &FunctionName<'_>,
    candidates: &[Found],
    arguments: &[Argument<'_>],
    place: &CallPlace,
    scope: &Scope<'_>,
) -> Result<Found> {
    let mut fitting = Vec::new();
    for candidate in candidates {
        let returned = place.ty.as_ref().map(|ty| compatible(ty, &candidate.returns()));
        let types = candidate.arguments();
        if returned == Some(Assignment::Refused) || types.len() != arguments.len() {
            continue;
        }
        let each: Vec<Assignment> = arguments
            .iter()
            .zip(types)
            .enumerate()
            .map(|(index, (argument, ty))| assignment(argument, index, candidate.name(), (ty, place), scope))
            .collect();
        if each.contains(&Assignment::Refused) {
            continue;
        }
        if !each.contains(&Assignment::Weak) {
            return Ok(candidate.clone());
        }
        fitting.push(candidate);
    }
    let signatures = |found: &[&Found]| found.iter().map(|f| f.signature()).collect::<Vec<_>>().join(", ");
    match &fitting[..] {
        [only] => Ok((*only).clone()),
        [] => Err(CqlError::Invalid(format!(
            "Invalid call to function {}, none of its type signatures match (known type signatures: {})",
            text(name),
            signatures(&candidates.iter().collect::<Vec<_>>())
        ))),
        several => Err(CqlError::Invalid(format!(
            "Ambiguous call to function {} (can be matched by following signatures: {}): use type casts to disambiguate",
            text(name),
            signatures(several)
        ))),
    }
}

fn assignment(
    argument: &Argument<'_>,
    index: usize,
    function: &str,
    (ty, place): (&CqlType, &CallPlace),
    scope: &Scope<'_>,
) -> Assignment {
    match argument {
        // Functions see collections whole, however they are stored.
        Argument::Typed(given, _) => compatible(ty, &given.freeze()),
        Argument::Term(term) => {
            let receiver = Receiver {
                keyspace: place.keyspace.clone(),
                table: place.table.clone(),
                name: format!("arg{index}({function})").into(),
                ty: ty.clone(),
                key_position: None,
            };
            test_assignment(term, &receiver, scope)
        }
    }
}

fn argument_text(argument: &Argument<'_>) -> String {
    match argument {
        Argument::Typed(_, name) => (*name).to_owned(),
        Argument::Term(term) => term_text(term),
    }
}

fn text(name: &FunctionName<'_>) -> String {
    match &name.keyspace {
        Some(keyspace) => format!("{}.{}", keyspace.as_str(), name.name.as_str()),
        None => name.name.as_str().to_owned(),
    }
}
