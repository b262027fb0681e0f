//! Masks of columns (`ColumnMask.Raw`): resolves the function and its further arguments.
//!
//! A mask has an effect on SELECTs of roles without UNMASK (`Selection::mask`). Without permissions everybody has UNMASK,
//! as in Cassandra with AllowAllAuthorizer.

use super::create_table::invalid;
use crate::analysis::selection::{OfType, mask_arguments};
use crate::analysis::{Markers, Memo, Operand, Receiver, Scope, Term, term_text};
use crate::budget::UNBOUNDED;
use crate::error::Result;
use crate::functions::{Found, lookup};
use crate::scope::{Argument, CallSite};
use crate::syntax::ast::{FunctionName, Ident, Mask, Pos, Term as Syntax};
use helenus_model::schema::{ColumnMask, MaskArgument, Schema, Table};
use helenus_model::types::{CqlType, to_cql_literal};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rejects masks unless `dynamic_data_masking_enabled` is true; the default is false.
///
/// # Errors
/// Masks are disabled.
pub(super) fn ensure_enabled(enabled: bool) -> Result<()> {
    if enabled {
        return Ok(());
    }
    invalid(
        "Cannot mask columns because dynamic data masking is not enabled. You can enable it with the \
         dynamic_data_masking_enabled property on cassandra.yaml",
    )
}

/// The mask of a column of a table of `keyspace`.
///
/// # Errors
/// There is no such function, it is not a masking function, or its result has another type than the column.
pub(super) fn prepare(
    mask: &Mask<'_>,
    (column, ty): (&str, &CqlType),
    (keyspace, table): (&str, &str),
    schema: &Schema,
) -> Result<ColumnMask> {
    let (name, arguments): (Cow<'_, FunctionName<'_>>, &[Syntax<'_>]) = match mask {
        Mask::Default => (Cow::Owned(default_function()), &[]),
        Mask::Function(name, arguments) => (Cow::Borrowed(name), arguments),
    };
    let shown = shown(&name, arguments);
    let schema = Arc::new(schema.clone());
    let memo = Memo::default();
    let scope = Scope { schema: &schema, keyspace: Some(keyspace), memo: &memo, work: &UNBOUNDED };
    let place = CallSite { keyspace: keyspace.into(), table: table.into(), ty: Some(ty.clone()) };
    let value = OfType(ty);
    let operands: Vec<Operand<'_, '_>> = arguments.iter().map(Operand::Term).collect();
    let mut given: Vec<&dyn Argument> = vec![&value];
    given.extend(operands.iter().map(|operand| operand as &dyn Argument));
    let function = match lookup(&name, &given, &place, &scope)? {
        None => {
            return invalid(format!(
                "Unable to find masking function for {column}, no declared function matches the signature {shown}"
            ));
        }
        Some(Found::Aggregate(_)) => {
            return invalid(format!("Aggregate function {shown} cannot be used for masking table columns"));
        }
        Some(Found::Scalar(function)) => function,
    };
    if !function.name().starts_with("system.mask_") {
        return invalid(format!("Not-masking function {shown} cannot be used for masking table columns"));
    }
    let returns = function.return_type();
    if returns.freeze() != ty.freeze() {
        return invalid(format!(
            "Masking function {shown} return type is {returns}. This is different to the type of the masked column {column} \
             of type {ty}. Masking functions can only be attached to table columns if they return the same data type as the \
             masked column."
        ));
    }
    let types = function.argument_types().iter().skip(1);
    let arguments: Result<Vec<MaskArgument>> =
        arguments.iter().zip(types).map(|(term, ty)| argument(term, ty, keyspace, &scope)).collect();
    let (in_keyspace, function) = function.name().split_once('.').unwrap_or(("system", function.name()));
    Ok(ColumnMask { keyspace: in_keyspace.into(), function: function.into(), arguments: arguments? })
}

fn argument(term: &Syntax<'_>, ty: &CqlType, keyspace: &str, scope: &Scope<'_>) -> Result<MaskArgument> {
    let receiver = Receiver {
        keyspace: keyspace.into(),
        table: "--dummy--".into(),
        name: "(dummy)".into(),
        ty: ty.clone(),
        key_position: None,
    };
    constant(&Term::prepare(term, &receiver, scope, &mut Markers::new(&[]))?, ty)
}

/// A constant of this type, as masks keep it.
fn constant(term: &Term, ty: &CqlType) -> Result<MaskArgument> {
    let value = match term {
        Term::Null => None,
        Term::Value(bytes) => {
            let literal = to_cql_literal(ty, Some(bytes));
            let inner = literal.strip_prefix('\'').and_then(|literal| literal.strip_suffix('\''));
            Some(inner.map_or_else(|| literal.clone(), |inner| inner.replace("''", "'")))
        }
        _ => return invalid("Arguments of a masking function must be constants"),
    };
    Ok(MaskArgument { ty: ty.clone(), value })
}

/// The masks of a table once a user-defined type has changed: arguments of it have its new fields and their names. `schema` is that
/// before the change, and `changed` gives a type as it is after it.
///
/// # Errors
/// An argument is no constant of its type.
pub(super) fn with_type(
    table: &Table,
    schema: &Arc<Schema>,
    changed: impl Fn(&CqlType) -> CqlType,
) -> Result<BTreeMap<Arc<str>, ColumnMask>> {
    let memo = Memo::default();
    let scope = Scope { schema, keyspace: Some(&table.keyspace), memo: &memo, work: &UNBOUNDED };
    let mask = |(name, mask): (&Arc<str>, &ColumnMask)| {
        if mask.arguments.iter().all(|argument| changed(&argument.ty) == argument.ty) {
            return Ok((name.clone(), mask.clone()));
        }
        let values = mask_arguments(table, mask, &scope)?;
        let arguments = values.iter().zip(&mask.arguments);
        let arguments: Result<_> =
            arguments.map(|(value, argument)| constant(value, &changed(&argument.ty))).collect();
        Ok((name.clone(), ColumnMask { arguments: arguments?, ..mask.clone() }))
    };
    table.masks.iter().map(mask).collect()
}

/// The function of `MASKED WITH DEFAULT`.
fn default_function() -> FunctionName<'static> {
    let ident = |text: &'static str| Ident { name: text.into(), pos: Pos(0) };
    FunctionName { keyspace: Some(ident("system")), name: ident("mask_default") }
}

fn shown(name: &FunctionName<'_>, arguments: &[Syntax<'_>]) -> String {
    let arguments: Vec<String> = arguments.iter().map(term_text).collect();
    let keyspace = name.keyspace.as_ref().map(|keyspace| format!("{}.", keyspace.as_str()));
    format!("{}{}({})", keyspace.unwrap_or_default(), name.name.as_str(), arguments.join(", "))
}
