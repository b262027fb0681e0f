//! describe_keyspace(s) and the system_ calls, which change the schema.

use super::define::{FamilyEdit, new_table, updated_table};
use super::{describe, texts};
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, RpcError, invalid};
use crate::family::Family;
use crate::validate::session_keyspace;
use helenus_cql::CqlError;
use helenus_cql::backend::{Outcome, Request, SchemaStep};
use helenus_engine::is_system_keyspace;
use helenus_model::schema::{Keyspace, Schema};
use helenus_model::types::quote_identifier;
use helenus_wire::thrift::{CfDef, Exception, Field, KsDef, Method, Reader, Text, args};
use std::sync::Arc;

impl Rpc {
    pub(crate) fn describe_schema(
        &self,
        method: Method,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let schema = self.storage.schema();
        if method == Method::DescribeKeyspace {
            let asked = args::OfKeyspace::read(reader)?;
            let Some(keyspace) = schema.keyspaces.get(asked.keyspace) else {
                return Err(RpcError::Thrown(Exception::NotFound));
            };
            work.reply.success(&describe::keyspace(keyspace), work.out);
        } else {
            let all: Vec<_> =
                schema.keyspaces.values().map(|keyspace| describe::keyspace(keyspace)).collect();
            work.reply.success(&all, work.out);
        }
        Ok(ReplyState::Result)
    }

    pub(crate) fn change_schema(
        &self,
        method: Method,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        match method {
            Method::SystemAddKeyspace => {
                self.define_keyspace(&args::WithKsDef::read(reader)?.ks_def, work)?;
            }
            Method::SystemUpdateKeyspace => {
                let definition = args::WithKsDef::read(reader)?.ks_def;
                check_not_system(&definition.name)?;
                if !self.storage.schema().keyspaces.contains_key(&*definition.name) {
                    return invalid(format!("Keyspace {} does not exist", definition.name));
                }
                if !definition.cf_defs.is_empty() {
                    return invalid("Keyspace update must not contain any table definitions.");
                }
                let name = quote_identifier(&definition.name);
                self.run_statement(&format!("ALTER KEYSPACE {name} {}", texts::keyspace(&definition)), work)?;
            }
            Method::SystemDropKeyspace => {
                let asked = args::OfKeyspace::read(reader)?;
                check_not_system(asked.keyspace)?;
                if !self.storage.schema().keyspaces.contains_key(asked.keyspace) {
                    return invalid(format!("Cannot drop non existing keyspace '{}'.", asked.keyspace));
                }
                self.run_statement(&format!("DROP KEYSPACE {}", quote_identifier(asked.keyspace)), work)?;
            }
            Method::SystemAddColumnFamily => {
                let definition = args::WithCfDef::read(reader)?.cf_def;
                let keyspace = session_keyspace(work.session)?;
                if *definition.keyspace != *keyspace && !definition.keyspace.is_empty() {
                    self.check_keyspace(&definition)?;
                }
                self.add_family(&definition, work)?;
            }
            Method::SystemUpdateColumnFamily => {
                let definition = args::WithCfDef::read(reader)?.cf_def;
                self.update_family(&definition, work)?;
            }
            _ => {
                let asked = args::OfColumnFamily::read(reader)?;
                let keyspace = session_keyspace(work.session)?;
                let family = self.family(work.session, asked.column_family)?;
                let (keyspace, name) = (quote_identifier(&keyspace), quote_identifier(&family.table.name));
                self.run_statement(&format!("DROP TABLE {keyspace}.{name}"), work)?;
            }
        }
        let version: Text<'_> = self.storage.schema().version.to_string().into();
        work.reply.success(&version, work.out);
        Ok(ReplyState::Result)
    }

    fn check_keyspace(&self, definition: &CfDef<'_>) -> Result<()> {
        if self.storage.schema().keyspaces.contains_key(&*definition.keyspace) {
            return Ok(());
        }
        invalid(format!(
            "Cannot add table '{}' to non existing keyspace '{}'.",
            definition.name, definition.keyspace
        ))
    }

    /// Creates a keyspace with its column families.
    pub(crate) fn define_keyspace(&self, definition: &KsDef<'_>, work: &CallContext<'_>) -> Result<()> {
        check_not_system(&definition.name)?;
        let schema = self.storage.schema();
        let conflict = schema.keyspaces.keys().find(|known| known.eq_ignore_ascii_case(&definition.name));
        if let Some(known) = conflict {
            return invalid(format!(
                "Keyspace names must be case-insensitively unique (\"{}\" conflicts with \"{known}\")",
                definition.name
            ));
        }
        texts::check_name("Keyspace", &definition.name)?;
        texts::check_replicas(definition)?;
        for family in &definition.cf_defs {
            if family.keyspace != definition.name {
                return invalid(format!(
                    "CfDef ({}) had a keyspace definition that did not match KsDef",
                    family.name
                ));
            }
        }
        let name = quote_identifier(&definition.name);
        let query = format!("CREATE KEYSPACE {name} {}", texts::keyspace(definition));
        if self.storage.local().is_none() {
            let undo = format!("DROP KEYSPACE {name}");
            return self.define_elsewhere(Some((&query, &undo)), &definition.cf_defs, work);
        }
        let mut steps = vec![SchemaStep { query, beyond: Box::new(|_, _| Ok(())) }];
        for family in &definition.cf_defs {
            steps.push(self.family_step(family)?);
        }
        self.change(&steps, work)
    }

    /// Creates a column family.
    pub(crate) fn add_family(&self, definition: &CfDef<'_>, work: &CallContext<'_>) -> Result<()> {
        if self.storage.local().is_none() {
            return self.define_elsewhere(None, std::slice::from_ref(definition), work);
        }
        self.change(&[self.family_step(definition)?], work)
    }

    /// Creates a compact table with the family's name and options by CQL, then replaces its columns by those of the
    /// definition.
    fn family_step<'d>(&self, definition: &'d CfDef<'_>) -> Result<SchemaStep<'d>> {
        texts::check_name("ColumnFamily", &definition.name)?;
        self.check_index_names(definition)?;
        let text = format!(
            "CREATE TABLE {}.{} (key blob PRIMARY KEY, value blob) WITH COMPACT STORAGE AND {}",
            quote_identifier(&definition.keyspace),
            quote_identifier(&definition.name),
            texts::family(definition)?
        );
        Ok(step(text, definition, Box::new(|base, made_us| new_table(base, definition, made_us))))
    }

    /// Checks that index names are unique in their keyspace.
    pub(super) fn check_index_names(&self, definition: &CfDef<'_>) -> Result<()> {
        let schema = self.storage.schema();
        let Some(keyspace) = schema.keyspaces.get(&*definition.keyspace) else { return Ok(()) };
        let columns = definition.column_metadata.as_deref().unwrap_or_default();
        let wanted = columns.iter().filter(|column| column.index_type.is_some());
        for name in wanted.filter_map(|column| column.index_name.as_deref()) {
            let others = keyspace.tables.values().filter(|table| *table.name != *definition.name);
            if others.flat_map(|table| table.indexes.keys()).any(|known| **known == *name) {
                return invalid(format!("Duplicate index name {name}"));
            }
        }
        Ok(())
    }

    /// The definition of a column family.
    pub(crate) fn described<'f>(&self, family: &'f Family) -> Result<CfDef<'f>> {
        describe::family(&family.table)
            .ok_or_else(|| RpcError::Internal(format!("table {} cannot be described", family.table.name)))
    }

    /// Changes a column family to match a definition.
    pub(crate) fn update_family(&self, definition: &CfDef<'_>, work: &CallContext<'_>) -> Result<()> {
        let schema = self.storage.schema();
        let Some(table) = schema.table(&definition.keyspace, &definition.name) else {
            return invalid(format!("unconfigured table {}", definition.name));
        };
        if !table.is_compact() {
            return invalid(format!(
                "Cannot modify CQL3 table {} as it may break the schema. You should use cqlsh to modify CQL3 tables instead.",
                table.name
            ));
        }
        self.check_index_names(definition)?;
        if self.storage.local().is_none() {
            return self.update_elsewhere(table, definition, work);
        }
        let text = format!(
            "ALTER TABLE {}.{} WITH {}",
            quote_identifier(&definition.keyspace),
            quote_identifier(&definition.name),
            texts::family(definition)?
        );
        let edit: FamilyEdit<'_> = Box::new(|base, made_us| updated_table(base, definition, made_us));
        self.change(&[step(text, definition, edit)], work)
    }

    fn change(&self, steps: &[SchemaStep<'_>], work: &CallContext<'_>) -> Result<()> {
        let request =
            Request { may_block: work.manner.may_block, ..Request::plain(&work.session.identity, &[]) };
        let answer = self.local("a change of the schema")?.change_schema_in_steps(steps, &request)?;
        match answer.outcome {
            Outcome::SchemaChanged(_, ticket) => Ok(ticket.wait()?),
            _ => Ok(()),
        }
    }
}

/// A CQL statement for a family's table, followed by an edit of the table.
fn step<'d>(query: String, definition: &'d CfDef<'_>, edit: FamilyEdit<'d>) -> SchemaStep<'d> {
    let beyond = move |schema: &mut Schema, made_us: i64| {
        let Some(keyspace) = schema.keyspaces.get_mut(&*definition.keyspace) else { return Ok(()) };
        let Some(table) = keyspace.tables.get(&*definition.name) else { return Ok(()) };
        let table = edit(table, made_us).map_err(|error| match error {
            RpcError::Thrown(Exception::InvalidRequest(why)) => CqlError::Invalid(why),
            other => CqlError::Invalid(other.to_string()),
        })?;
        let mut changed = Keyspace::clone(keyspace);
        changed.tables.insert(table.name.clone(), Arc::new(table));
        *keyspace = Arc::new(changed);
        Ok(())
    };
    SchemaStep { query, beyond: Box::new(beyond) }
}

fn check_not_system(keyspace: &str) -> Result<()> {
    if is_system_keyspace(keyspace) {
        return invalid(format!("{keyspace} keyspace is not user-modifiable"));
    }
    Ok(())
}
