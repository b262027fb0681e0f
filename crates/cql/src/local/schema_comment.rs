//! Compact tables in a `schema.cql` of Cassandra, which stand there in comments (`CompactTableMetadata.appendCqlTo`): a statement that
//! says almost all, and that cannot be run. `schema_text` reads the file; here the statements are made such that can.
//!
//! What is not said is the type of names that nobody declared, where a table has no clustering column: it is text, unless the
//! table was made by the old interface.

use crate::syntax::ast::{Ident, StatementKind, TableChange};
use helenus_model::schema::{Schema, Table};
use std::sync::Arc;

/// Begins such a comment; the table's name follows, and `OMITTED`.
const WARNING: &str = "/*\nWarning: Table ";
const OMITTED: &str =
    " omitted because it has constructs not compatible with CQL (was created via legacy API).\n";

/// A text in parts, in their order: the statements of such a comment, `true`, or what stands between comments.
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

/// What a CREATE TABLE of a comment said of a column that it does not declare: its name, and whether it descends.
pub(super) type Undeclared = Option<(Arc<str>, bool)>;

/// Makes a statement of a comment one that can be run.
pub(super) fn make_runnable(kind: &mut StatementKind<'_>) -> Undeclared {
    let StatementKind::CreateTable(create) = kind else { return None };
    // A table without clustering keeps its columns as static ones, and dropped columns are shown so.
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

/// Gives the clustering column that a table has for itself the name and order that a comment said.
pub(super) fn name_undeclared(schema: &mut Schema, (keyspace, table): (&str, &str), undeclared: Undeclared) {
    let Some((name, reversed)) = undeclared else { return };
    edit(schema, (keyspace, table), |table| {
        let is_static = table.is_static_compact();
        if let Some(clustering) = table.clustering.first_mut().filter(|_| is_static) {
            (clustering.name, clustering.reversed) = (name, reversed);
        }
    });
}

/// Runs `apply`, which adds a column that was dropped before: to a compact table none can be added, but one may have come again.
///
/// # Errors
/// As `apply` has them.
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
    // Whoever keeps shapes of cells finds them anew.
    changed.arrange();
    Arc::make_mut(keyspace).tables.insert(changed.name.clone(), Arc::new(changed));
}
