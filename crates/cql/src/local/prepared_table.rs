//! `system.prepared_statements`: the prepared statements in the server's cache, of all roles. They are shown without literals, which are
//! data of their tables. Statements that a change of the schema has made invalid stay in the cache until they are used; they are not
//! shown, because Cassandra removes them at once (`QueryProcessor.StatementInvalidatingListener`).

use super::statements::Statements;
use crate::syntax::shown_without_values;
use crate::virtual_table::{VirtualContext, VirtualRows, VirtualTable};
use helenus_engine::Database;
use helenus_model::schema::Table;
use std::sync::Arc;

struct PreparedStatements {
    table: Arc<Table>,
    statements: Arc<Statements>,
}

/// The table, if the schema has it.
pub(super) fn table(database: &Database, statements: Arc<Statements>) -> Option<Arc<dyn VirtualTable>> {
    let table = database.schema().table("system", "prepared_statements")?.clone();
    Some(Arc::new(PreparedStatements { table, statements }))
}

impl VirtualTable for PreparedStatements {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn rows(&self, cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        for prepared in self.statements.all_prepared() {
            if !prepared.is_of_epoch(cx.schema.epoch) && !prepared.plan.is_valid_in(cx.schema) {
                continue;
            }
            let mut row = vec![
                ("prepared_id", prepared.id.to_vec()),
                ("query_string", shown_without_values(&prepared.query).into_bytes()),
            ];
            if let Some(keyspace) = &prepared.keyspace {
                row.push(("logged_keyspace", keyspace.as_bytes().to_vec()));
            }
            rows.row(&row);
        }
    }
}
