//! `system.prepared_statements`: the prepared statements in the server's cache.

use super::statements::Statements;
use crate::syntax::without_passwords;
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

    fn rows(&self, _cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        for prepared in self.statements.all_prepared() {
            let mut row = vec![
                ("prepared_id", prepared.id.to_vec()),
                ("query_string", without_passwords(&prepared.query).as_bytes().to_vec()),
            ];
            if let Some(keyspace) = &prepared.keyspace {
                row.push(("logged_keyspace", keyspace.as_bytes().to_vec()));
            }
            rows.row(&row);
        }
    }
}
