//! Chooses the function of a call (`FunctionResolver`).

use super::aggregate::Aggregate;
use super::compatibility::assignable;
use super::native::functions;
use super::number::NUMBERS;
use super::operation::NEGATION;
use super::overload::{Choice, choose};
use super::{factory, operation};
use crate::error::{CqlError, Result};
use crate::scope::{Argument, CallSite, Receiver, Scalar, Scope};
use crate::syntax::ast::{ArithmeticOperator, FunctionName};
use helenus_model::types::{Assignment, CqlType, quote_identifier};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// A resolved function.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// Computes on one row.
    Scalar(Arc<dyn Scalar>),
    /// Computes on many rows.
    Aggregate(Aggregate),
}

impl Found {
    /// Its name, with its keyspace.
    pub(crate) fn name(&self) -> &str {
        match self {
            Found::Scalar(function) => function.name(),
            Found::Aggregate(function) => function.name(),
        }
    }

    /// Types of its arguments.
    pub(crate) fn arguments(&self) -> &[CqlType] {
        match self {
            Found::Scalar(function) => function.argument_types(),
            Found::Aggregate(function) => function.argument().map_or(&[], std::slice::from_ref),
        }
    }

    /// Type of what it returns.
    pub(crate) fn returns(&self) -> CqlType {
        match self {
            Found::Scalar(function) => function.return_type().clone(),
            Found::Aggregate(function) => function.return_type(),
        }
    }

    /// The name of its result column, for the names of its arguments.
    pub(crate) fn column_name(&self, arguments: &[&str]) -> String {
        match self {
            Found::Scalar(function) => function.column_name(arguments),
            Found::Aggregate(function) => function.column_name(&arguments.join(", ")),
        }
    }

    fn signature(&self) -> String {
        let arguments: Vec<String> = self.arguments().iter().map(CqlType::to_string).collect();
        format!("{} : ({}) -> {}", quoted_name(self.name()), arguments.join(", "), self.returns())
    }
}

/// Chooses the function of a call within a term, by its arguments and the receiver of its result.
///
/// # Errors
/// There is no such function, none of its overloads fits, or it is an aggregate.
pub fn find(
    name: &FunctionName<'_>,
    arguments: &[&dyn Argument],
    receiver: Option<&Receiver>,
    scope: &Scope<'_>,
) -> Result<Arc<dyn Scalar>> {
    let place = receiver.map_or_else(
        || CallSite { keyspace: "".into(), table: "".into(), ty: None },
        |receiver| CallSite {
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

/// Whether functions with this name are made for their arguments.
pub(crate) fn is_made(name: &FunctionName<'_>) -> bool {
    is_native(name) && factory::is_made(name.name.as_str())
}

fn is_native(name: &FunctionName<'_>) -> bool {
    name.keyspace.as_ref().is_none_or(|keyspace| keyspace.as_str() == "system")
}

/// Chooses the function of a call; `None` if there is no function with this name.
///
/// # Errors
/// No overload fits, or more than one.
pub(crate) fn lookup(
    name: &FunctionName<'_>,
    arguments: &[&dyn Argument],
    place: &CallSite,
    scope: &Scope<'_>,
) -> Result<Option<Found>> {
    if !is_native(name) {
        return Ok(None);
    }
    if let (Some(operator), [left, right]) = (operation::operator_of(name.name.as_str()), arguments) {
        return operation_of(name, operator, (*left, *right), place, scope).map(Some);
    }
    let candidates = match factory::make(name.name.as_str(), arguments, place, scope)? {
        Some(made) => Arc::from([made]),
        None => functions_named(name.name.as_str()),
    };
    match &candidates[..] {
        [] => Ok(None),
        [only] => {
            check(only, arguments, place, scope)?;
            Ok(Some(only.clone()))
        }
        several => best(name, several, arguments, place, scope).map(Some),
    }
}

fn operation_of(
    name: &FunctionName<'_>,
    operator: ArithmeticOperator,
    (left, right): (&dyn Argument, &dyn Argument),
    place: &CallSite,
    scope: &Scope<'_>,
) -> Result<Found> {
    let suits = (&left.suits(place, scope), &right.suits(place, scope));
    match choose(operator, suits, left.is_marker() || right.is_marker(), place.ty.as_ref()) {
        Choice::One(overload) => Ok(overload.function.clone()),
        Choice::None => Err(no_overload(name, &functions_named(name.name.as_str()), &[left, right])),
        Choice::Several => Err(CqlError::Invalid(format!(
            "Ambiguous '{}' operation with args {} and {}: use type hint to disambiguate, example '(int) ?'",
            operator.as_char(),
            left.text(),
            right.text()
        ))),
    }
}

/// The functions with this name and fixed types; created once.
pub(super) fn functions_named(name: &str) -> Arc<[Found]> {
    static KNOWN: LazyLock<RwLock<HashMap<String, Arc<[Found]>>>> = LazyLock::new(RwLock::default);
    if let Some(known) = KNOWN.read().get(name) {
        return known.clone();
    }
    let made: Arc<[Found]> = fixed(name).into();
    // Only names of functions are kept, so the map stays small.
    if !made.is_empty() {
        KNOWN.write().insert(name.to_owned(), made.clone());
    }
    made
}

fn fixed(name: &str) -> Vec<Found> {
    let of_numbers = |make: fn(CqlType) -> Aggregate| {
        NUMBERS.iter().map(|ty| Found::Aggregate(make(ty.clone()))).collect()
    };
    match name {
        "count_rows" | "countRows" => vec![Found::Aggregate(Aggregate::CountRows)],
        "count" => vec![Found::Aggregate(Aggregate::Count(CqlType::Blob))],
        "sum" => of_numbers(Aggregate::Sum),
        "avg" => of_numbers(Aggregate::Avg),
        other => functions(other).into_iter().map(Found::Scalar).collect(),
    }
}

/// Checks the arguments of the only function with its name, with better errors than a choice could give.
fn check(function: &Found, arguments: &[&dyn Argument], place: &CallSite, scope: &Scope<'_>) -> Result<()> {
    let (name, types) = (function.name(), function.arguments());
    if arguments.len() != types.len() {
        return Err(CqlError::Invalid(format!(
            "Invalid number of arguments in call to function {name}: {} required but {} provided",
            types.len(),
            arguments.len()
        )));
    }
    for (index, (argument, ty)) in arguments.iter().zip(types).enumerate() {
        if assignment(*argument, (ty, place), scope) == Assignment::Refused {
            return Err(CqlError::Invalid(format!(
                "Type error: {} cannot be passed as argument {index} of function {name} of type {ty}",
                argument.text()
            )));
        }
    }
    Ok(())
}

fn best(
    name: &FunctionName<'_>,
    candidates: &[Found],
    arguments: &[&dyn Argument],
    place: &CallSite,
    scope: &Scope<'_>,
) -> Result<Found> {
    let mut fitting = Vec::new();
    let mut first_exact = None;
    // Overloads share types, so each type is tested once for each argument.
    let mut asked: Vec<(usize, &CqlType, Assignment)> = Vec::new();
    for candidate in candidates {
        let returned = place.ty.as_ref().map(|ty| assignable(ty, &candidate.returns()));
        let types = candidate.arguments();
        if returned == Some(Assignment::Refused) || types.len() != arguments.len() {
            continue;
        }
        let mut exact = true;
        let mut fits = true;
        for (index, (argument, ty)) in arguments.iter().zip(types).enumerate() {
            let known = asked.iter().find(|(of, asked, _)| *of == index && *asked == ty);
            let found = known.map(|(_, _, found)| *found).unwrap_or_else(|| {
                let found = assignment(*argument, (ty, place), scope);
                asked.push((index, ty, found));
                found
            });
            exact &= found == Assignment::Exact;
            fits &= found != Assignment::Refused;
            if !fits {
                break;
            }
        }
        if !fits {
            continue;
        }
        if exact {
            // Operands without a type of their own fit several overloads exactly; then the receiver's type decides.
            let of_type = place.ty.as_ref().is_none_or(|ty| types.iter().all(|argument| argument == ty));
            if of_type {
                return Ok(candidate.clone());
            }
            first_exact.get_or_insert(candidate);
        }
        fitting.push(candidate);
    }
    if let Some(found) = first_exact {
        return Ok(found.clone());
    }
    match &fitting[..] {
        [only] => Ok((*only).clone()),
        [] => Err(no_overload(name, candidates, arguments)),
        several => ambiguous(name, several),
    }
}

fn no_overload(name: &FunctionName<'_>, candidates: &[Found], arguments: &[&dyn Argument]) -> CqlError {
    if let (Some(operator), [left, right]) = (operator_of(name), arguments) {
        return CqlError::Invalid(format!(
            "the '{}' operation is not supported between {} and {}",
            operator.as_char(),
            left.text(),
            right.text()
        ));
    }
    CqlError::Invalid(format!(
        "Invalid call to function {}, none of its type signatures match (known type signatures: {})",
        text(name),
        signatures(candidates.iter())
    ))
}

fn ambiguous(name: &FunctionName<'_>, several: &[&Found]) -> Result<Found> {
    let refused = |text: String| Err(CqlError::Invalid(text));
    if name.keyspace.is_some() && name.name.as_str() == NEGATION {
        return refused("Ambiguous negation: use type casts to disambiguate".to_owned());
    }
    refused(format!(
        "Ambiguous call to function {} (can be matched by following signatures: {}): use type casts to disambiguate",
        text(name),
        signatures(several.iter().copied())
    ))
}

/// The operator of a call; a function name without keyspace is not an operator.
fn operator_of(name: &FunctionName<'_>) -> Option<ArithmeticOperator> {
    name.keyspace.as_ref()?;
    operation::operator_of(name.name.as_str())
}

fn signatures<'f>(found: impl Iterator<Item = &'f Found>) -> String {
    found.map(Found::signature).collect::<Vec<_>>().join(", ")
}

fn assignment(argument: &dyn Argument, (ty, place): (&CqlType, &CallSite), scope: &Scope<'_>) -> Assignment {
    argument.test(&Receiver::of_argument(place, ty.clone()), scope)
}

/// A function's name with its keyspace, each quoted if necessary.
pub(crate) fn quoted_name(name: &str) -> String {
    match name.split_once('.') {
        Some((keyspace, name)) => format!("{}.{}", quote_identifier(keyspace), quote_identifier(name)),
        None => quote_identifier(name).into_owned(),
    }
}

fn text(name: &FunctionName<'_>) -> String {
    match &name.keyspace {
        Some(keyspace) => format!("{}.{}", keyspace.as_str(), name.name.as_str()),
        None => name.name.as_str().to_owned(),
    }
}
