//! Compact tables in a `schema.cql` of Cassandra. They are in comments (`CompactTableMetadata.appendCqlTo`), as
//! statements that are nearly complete but cannot be executed. `schema_text` reads the file; this module makes the
//! statements executable.
//!
//! The statement lacks the type of undeclared column names of a table without clustering columns: it is text, unless
//! the table was created with Thrift.

use crate::syntax::ast::{Ident, StatementKind, TableChange};
use helenus_model::schema::{Schema, Table};
use std::sync::Arc;

/// The beginning of such a comment; the table's name and `OMITTED` follow.
const WARNING: &str = "/*\nWarning: Table ";
const OMITTED: &str =
    " omitted because it has constructs not compatible with CQL (was created via legacy API).\n";

/// Splits a text, in order, into the statements of such comments (`true`) and the text between them (`false`).
pub(super) fn parts(text: &str) -> Vec<(&str, bool)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once(WARNING) {
        let (comment, after) = comment.split_once("\n*/").unwrap_or((comment, ""));
        let statements = comment
            .split_once(OMITTED)
            .and_then(|(_, statements)| statements.find("CREATE TABLE ").and_then(|at| statements.get(at..)));
        found.push((before, false));
        found.extend(statements.map(|statements| (statements, true)));
        rest = after;
    }
    found.push((rest, false));
    found
}

/// The undeclared clustering column of a CREATE TABLE in a comment: its name, and whether its order is descending.
pub(super) type Undeclared = Option<(Arc<str>, bool)>;

/// Makes a statement of a comment executable.
pub(super) fn make_runnable(kind: &mut StatementKind<'_>) -> Undeclared {
    let StatementKind::CreateTable(create) = kind else { return None };
    // A table without clustering stores its columns as static ones, and the comment prints dropped columns in this
    // form.
    create.columns.iter_mut().for_each(|column| column.is_static = false);
    let is_known = |name: &str| {
        create.primary_keys.iter().flat_map(|key| &key.clustering).any(|own| own.as_str() == name)
    };
    let order = std::mem::take(&mut create.options.clustering_order);
    let (known, others): (Vec<_>, Vec<(Ident<'_>, bool)>) =
        order.into_iter().partition(|(name, _)| is_known(name.as_str()));
    create.options.clustering_order = known;
    others.first().map(|(name, descends)| (name.as_str().into(), *descends))
}

/// Gives a table's implicit clustering column the name and order from the comment.
pub(super) fn name_undeclared(schema: &mut Schema, (keyspace, table): (&str, &str), undeclared: Undeclared) {
    let Some((name, reversed)) = undeclared else { return };
    edit(schema, (keyspace, table), |table| {
        let is_static = table.is_static_compact();
        if let Some(clustering) = table.clustering.first_mut().filter(|_| is_static) {
            (clustering.name, clustering.reversed) = (name, reversed);
        }
    });
}

/// Runs `apply`, which adds a dropped column again. ADD is not allowed on a compact table, but the column may exist
/// again, so the table's flags are changed meanwhile.
///
/// # Errors
/// Those of `apply`.
pub(super) fn readd<E>(
    schema: &mut Schema,
    kind: &StatementKind<'_>,
    keyspace: &str,
    apply: impl FnOnce(&mut Schema) -> Result<(), E>,
) -> Result<(), E> {
    let StatementKind::AlterTable(alter) = kind else { return apply(schema) };
    let table = alter.name.name.as_str();
    let flags = schema.table(keyspace, table).map(|table| table.flags.clone());
    let Some(flags) = flags.filter(|_| matches!(alter.change, TableChange::Add { .. })) else {
        return apply(schema);
    };
    let ordinary = std::iter::once("compound".to_owned());
    let counter = flags.iter().find(|flag| *flag == "counter").cloned();
    edit(schema, (keyspace, table), |table| table.flags = ordinary.chain(counter).collect());
    let applied = apply(schema);
    edit(schema, (keyspace, table), |table| table.flags = flags);
    applied
}

fn edit(schema: &mut Schema, (keyspace, table): (&str, &str), change: impl FnOnce(&mut Table)) {
    let Some(keyspace) = schema.keyspaces.get_mut(keyspace) else { return };
    let Some(found) = keyspace.tables.get(table).cloned() else { return };
    let mut changed = Table::clone(&found);
    change(&mut changed);
    // Discards the cached cell shapes.
    changed.arrange();
    Arc::make_mut(keyspace).tables.insert(changed.name.clone(), Arc::new(changed));
}
