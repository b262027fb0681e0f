//! Whether a SELECT uses static columns only.

use super::node::Finder;
use super::selected::Selection;
use crate::analysis::Scope;
use crate::error::Result;
use crate::syntax::ast::{Select, Selectable, Selectors};
use helenus_model::schema::{ColumnKind, Table};

impl Selection {
    /// Whether static columns and otherwise only partition key columns are selected (`selectOnlyStaticColumns`).
    /// Cassandra resolves columns and functions lazily, so this stops as soon as the answer is known.
    ///
    /// # Errors
    /// Errors in the selectors that were resolved: unknown columns and functions, arguments of wrong types.
    pub(crate) fn selects_only_statics(
        select: &Select<'_>,
        table: &Table,
        scope: &Scope<'_>,
    ) -> Result<bool> {
        let Selectors::List(list) = &select.selectors else { return Ok(false) };
        if table.statics.is_empty() || table.is_static_compact() {
            return Ok(false);
        }
        let any = |wanted: fn(ColumnKind) -> bool| -> Result<bool> {
            for selector in list {
                Finder { table, scope }.node(&selector.selectable)?;
                let mut kinds = Vec::new();
                kinds_of(&selector.selectable, table, &mut kinds);
                if kinds.into_iter().any(wanted) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let is_other = |kind| !matches!(kind, ColumnKind::PartitionKey | ColumnKind::Static);
        Ok(any(|kind| kind == ColumnKind::Static)? && !any(is_other)?)
    }
}

/// The kinds of the columns in a selectable.
fn kinds_of(selectable: &Selectable<'_>, table: &Table, kinds: &mut Vec<ColumnKind>) {
    match selectable {
        Selectable::Column(name) => kinds.extend(table.column(name.as_str()).map(|column| column.kind)),
        Selectable::Term(_) | Selectable::CountRows(_) => {}
        Selectable::Time(_, inner, _)
        | Selectable::Cast(inner, _, _)
        | Selectable::Path(inner, _)
        | Selectable::Negation(inner, _) => kinds_of(inner, table, kinds),
        Selectable::Hint(hint, _) => kinds_of(&hint.1, table, kinds),
        Selectable::Function(_, items, _)
        | Selectable::Tuple(items, _)
        | Selectable::List(items, _)
        | Selectable::Set(items, _) => items.iter().for_each(|item| kinds_of(item, table, kinds)),
        Selectable::MapOrUdt(pairs, _) => {
            for (key, value) in pairs {
                kinds_of(key, table, kinds);
                kinds_of(value, table, kinds);
            }
        }
        Selectable::Arithmetic(first, rest) => {
            kinds_of(first, table, kinds);
            rest.iter().for_each(|(_, operand)| kinds_of(operand, table, kinds));
        }
    }
}
