//! Masks in a selection: the functions by which a role without UNMASK sees the values of masked columns.
//!
//! The masked value takes the place of the column's value wherever it is selected, also as an argument of a function or an
//! aggregate. Restrictions, groups and the order of rows use the stored values (`ColumnMask`, `Selector`). The write time or TTL of a part
//! of the column (an element, a slice, a field) is null, because whether there is one says whether the part is there. Cassandra shows it.

use super::selected::{RowValue, Selected, Selection, TermUse};
use super::source::Source;
use crate::analysis::{Markers, Receiver, Scope, Term, assignable};
use crate::error::{CqlError, Result};
use crate::functions::{Found, lookup};
use crate::scope::{Argument, CallSite, Scalar};
use crate::syntax::ast::{self as syntax, FunctionName, Ident, Pos};
use crate::syntax::parse_term;
use helenus_model::schema::{Column, ColumnMask, MaskArgument, Table};
use helenus_model::types::{Assignment, CqlType};
use std::sync::Arc;

impl Selection {
    /// Masks the values of the table's masked columns.
    ///
    /// # Errors
    /// The function of a mask is not known, which happens only to a schema that another program wrote.
    pub(crate) fn mask(&mut self, table: &Table, scope: &Scope<'_>) -> Result<()> {
        for (name, mask) in &table.masks {
            let Some(column) = table.column(name) else { continue };
            let function = function_of((table, column), mask, scope)?;
            let mut terms = Vec::new();
            for argument in mask_arguments(table, mask, scope)? {
                self.terms.push((argument, TermUse::Value));
                terms.push(self.terms.len() - 1);
            }
            let call = Call { source: Source::of(column), function, terms };
            for selected in &mut self.columns {
                call.put_into(selected);
            }
            for aggregate in &mut self.aggregates {
                aggregate.argument.iter_mut().for_each(|argument| call.put_into(argument));
            }
        }
        Ok(())
    }
}

/// The call of a masking function, with the indices of its arguments' terms.
struct Call {
    source: Source,
    function: Arc<dyn Scalar>,
    terms: Vec<usize>,
}

impl Call {
    /// Replaces the column's value, and the times of its parts, in an expression.
    fn put_into(&self, selected: &mut Selected) {
        match selected {
            Selected::Leaf(RowValue::Column(source)) if *source == self.source => {
                let mut arguments = vec![selected.clone()];
                arguments.extend(self.terms.iter().map(|index| Selected::Term(*index)));
                *selected = Selected::Call(Arc::clone(&self.function), arguments);
            }
            Selected::TimeOf(_, path) if *path.source() == self.source => *selected = Selected::Null,
            _ => selected.parts().iter_mut().for_each(|part| self.put_into(part)),
        }
    }
}

fn function_of(
    (table, column): (&Table, &Column),
    mask: &ColumnMask,
    scope: &Scope<'_>,
) -> Result<Arc<dyn Scalar>> {
    let ident = |text: &str| Ident { name: text.to_owned().into(), pos: Pos(0) };
    let name = FunctionName { keyspace: Some(ident(&mask.keyspace)), name: ident(&mask.function) };
    let place =
        CallSite { keyspace: table.keyspace.clone(), table: table.name.clone(), ty: Some(column.ty.clone()) };
    let types = std::iter::once(&column.ty).chain(mask.arguments.iter().map(|argument| &argument.ty));
    let values: Vec<OfType<'_>> = types.map(OfType).collect();
    let given: Vec<&dyn Argument> = values.iter().map(|value| value as &dyn Argument).collect();
    match lookup(&name, &given, &place, scope)? {
        Some(Found::Scalar(function)) => Ok(function),
        Some(Found::Aggregate(_)) | None => Err(CqlError::Invalid(format!(
            "The mask {mask} of {}.{}.{} is not known",
            table.keyspace, table.name, column.name
        ))),
    }
}

/// The arguments of a column's mask after the column's value.
///
/// # Errors
/// A text that is no value of its type.
pub(crate) fn mask_arguments(table: &Table, mask: &ColumnMask, scope: &Scope<'_>) -> Result<Vec<Term>> {
    let call = mask.to_string();
    let syntax::Term::Function(call) = parse_term(&call)? else { return Ok(Vec::new()) };
    let typed = call.arguments.iter().zip(&mask.arguments);
    let term = |(argument, typed): (&syntax::Term<'_>, &MaskArgument)| {
        let receiver = Receiver::named(table, "(dummy)", typed.ty.clone());
        Term::prepare(argument, &receiver, scope, &mut Markers::new(&[]))
    };
    typed.map(term).collect()
}

/// A value of a type as an argument of a function.
pub(crate) struct OfType<'t>(pub(crate) &'t CqlType);

impl Argument for OfType<'_> {
    fn test(&self, receiver: &Receiver, _scope: &Scope<'_>) -> Assignment {
        assignable(&receiver.ty, self.0)
    }

    fn compatible_type(&self, _keyspace: &str, _scope: &Scope<'_>) -> Option<CqlType> {
        Some(self.0.clone())
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}
