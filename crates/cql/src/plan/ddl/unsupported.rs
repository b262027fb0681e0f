//! Statements about views, functions, aggregates and triggers, of which no keyspace has any: answers as Cassandra does
//! if the named object does not exist. Statements that create one are rejected by `plan::analysed`, except triggers,
//! whose classes cannot be loaded.

use super::create_table::invalid;
use crate::analysis::Scope;
use crate::error::Result;
use crate::syntax::ast::{DropRoutine, FunctionName, Permission, QualifiedName, StatementKind};
use crate::syntax::print_type;
use helenus_engine::{SchemaChange, SchemaChangeKind};
use helenus_model::schema::Schema;

/// The change and the permission of such a statement; `None`: it is another statement, or creates an unsupported
/// object.
pub(super) fn change_of(
    statement: &StatementKind<'_>,
    scope: &Scope<'_>,
) -> Result<Option<(SchemaChange, Permission)>> {
    use SchemaChangeKind::{Dropped, Updated};
    let of_table = |name: &QualifiedName<'_>, kind, permission| {
        let keyspace = scope.keyspace_of(name)?.into();
        let name = Some(name.name.as_str().into());
        Ok(Some((SchemaChange { kind, keyspace, name, is_type: false }, permission)))
    };
    let of_function = |name: &FunctionName<'_>| {
        let keyspace = match &name.keyspace {
            Some(keyspace) => keyspace.as_str(),
            None => scope.session_keyspace()?,
        };
        let name = Some(name.name.as_str().into());
        let change = SchemaChange { kind: Dropped, keyspace: keyspace.into(), name, is_type: true };
        Ok(Some((change, Permission::Drop)))
    };
    match statement {
        StatementKind::AlterView(alter) => of_table(&alter.name, Updated, Permission::Alter),
        StatementKind::DropView(drop) => of_table(&drop.name, Dropped, Permission::Drop),
        StatementKind::CreateTrigger(create) => of_table(&create.table, Updated, Permission::Alter),
        StatementKind::DropTrigger(drop) => of_table(&drop.table, Updated, Permission::Alter),
        StatementKind::DropFunction(drop) | StatementKind::DropAggregate(drop) => of_function(&drop.name),
        _ => Ok(None),
    }
}

/// Runs the statement, which changes nothing.
///
/// # Errors
/// The named object does not exist, unless there is an IF EXISTS.
pub(super) fn run(statement: &StatementKind<'_>, in_keyspace: &str, schema: &Schema) -> Result<()> {
    let view = |name: &QualifiedName<'_>, may_be_absent| match may_be_absent {
        true => Ok(()),
        false => invalid(format!("Materialized view '{in_keyspace}.{}' doesn't exist", name.name.as_str())),
    };
    let routine = |kind, drop: &DropRoutine<'_>| {
        if drop.if_exists {
            return Ok(());
        }
        let types = |types: &Vec<_>| types.iter().map(print_type).collect::<Vec<_>>().join(", ");
        let arguments = drop.arguments.as_ref().map_or(String::new(), |list| format!("({})", types(list)));
        invalid(format!("{kind} '{in_keyspace}.{}{arguments}' doesn't exist", drop.name.name.as_str()))
    };
    match statement {
        StatementKind::AlterView(alter) => view(&alter.name, alter.if_exists),
        StatementKind::DropView(drop) => view(&drop.name, drop.if_exists),
        StatementKind::DropFunction(drop) => routine("Function", drop),
        StatementKind::DropAggregate(drop) => routine("Aggregate", drop),
        StatementKind::DropTrigger(drop) if drop.if_exists => Ok(()),
        StatementKind::DropTrigger(drop) => {
            let (name, table) = (drop.name.as_str(), drop.table.name.as_str());
            invalid(format!("Trigger '{name}' on '{in_keyspace}.{table}' doesn't exist"))
        }
        StatementKind::CreateTrigger(create) => {
            if !schema.keyspaces.contains_key(in_keyspace) {
                return invalid(format!("Keyspace '{in_keyspace}' doesn't exist"));
            }
            let table = create.table.name.as_str();
            if schema.table(in_keyspace, table).is_none() {
                return invalid(format!("Table '{table}' doesn't exist"));
            }
            invalid(format!("Trigger class '{}' couldn't be loaded", create.class.text))
        }
        _ => invalid("this statement does not change the schema"),
    }
}
