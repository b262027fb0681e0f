//! Makes and changes column families by statements, where the tables are not in the local database.
//!
//! A definition gives the table that a local database would have, after the same checks; the storage puts it as statements, which run one
//! after the other. A call that makes something and fails takes back what it has made.

use super::define::{new_table, updated_table};
use super::texts;
use crate::context::{CallContext, Rpc};
use crate::error::{Result, RpcError, invalid};
use crate::storage::FamilyChange;
use helenus_model::schema::{Column, ColumnKind, Table, TableId};
use helenus_model::types::{CqlType, quote_identifier};
use helenus_wire::thrift::{CfDef, Exception};
use uuid::Uuid;

impl Rpc {
    /// Creates column families. `keyspace`: the statement that makes their keyspace first, and the one that drops it.
    pub(super) fn define_elsewhere(
        &self,
        keyspace: Option<(&str, &str)>,
        families: &[CfDef<'_>],
        work: &CallContext<'_>,
    ) -> Result<()> {
        let mut all = Vec::with_capacity(families.len());
        for definition in families {
            all.push((definition, self.new_family(definition)?));
        }
        if let Some((create, _)) = keyspace {
            self.run_statement(create, work)?;
        }
        for (definition, statements) in all {
            let drop_table = format!(
                "DROP TABLE {}.{}",
                quote_identifier(&definition.keyspace),
                quote_identifier(&definition.name)
            );
            let undo = keyspace.map_or(drop_table.as_str(), |(_, undo)| undo);
            for (index, statement) in statements.iter().enumerate() {
                if let Err(error) = self.run_statement(statement, work) {
                    let has_made = keyspace.is_some() || index > 0;
                    return Err(if has_made { self.taken_back(error, undo, work) } else { error });
                }
            }
        }
        Ok(())
    }

    /// The statements that make a column family.
    fn new_family(&self, definition: &CfDef<'_>) -> Result<Vec<String>> {
        texts::check_name("ColumnFamily", &definition.name)?;
        self.check_index_names(definition)?;
        let key = Column::new("key", ColumnKind::PartitionKey, CqlType::Blob);
        let names = (&*definition.keyspace, &*definition.name);
        let base = Table::new(names, TableId(Uuid::nil()), std::iter::once(key));
        let table = new_table(&base, definition, 0)?;
        let options = texts::family(definition)?;
        Ok(self.storage.family_statements(&FamilyChange::New { table: &table, options: &options })?)
    }

    /// Drops what a call has made that failed. Returns the error of the call.
    fn taken_back(&self, error: RpcError, undo: &str, work: &CallContext<'_>) -> RpcError {
        match self.run_statement(undo, work) {
            Ok(()) => error,
            Err(why) => RpcError::Thrown(Exception::InvalidRequest(format!(
                "{error}; what the call made before is still there, because {undo} failed: {why}"
            ))),
        }
    }

    /// Changes a column family to match a definition.
    pub(super) fn update_elsewhere(
        &self,
        before: &Table,
        definition: &CfDef<'_>,
        work: &CallContext<'_>,
    ) -> Result<()> {
        let options = texts::family(definition)?;
        let after = updated_table(before, definition, 0)?;
        let change = FamilyChange::Other { before, after: &after, options: &options };
        let statements = self.storage.family_statements(&change)?;
        for (done, statement) in statements.iter().enumerate() {
            match self.run_statement(statement, work) {
                Err(error) if done > 0 => {
                    let before = statements.get(..done).unwrap_or_default().join("; ");
                    return invalid(format!("{statement} failed: {error}; these were run before: {before}"));
                }
                other => other?,
            }
        }
        Ok(())
    }
}
