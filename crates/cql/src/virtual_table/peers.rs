//! `system.peers` and `system.peers_v2`: empty, because the server has no peers.

use super::table::{VirtualContext, VirtualRows, VirtualTable};
use helenus_engine::Database;
use helenus_model::schema::Table;
use std::sync::Arc;

struct Empty {
    table: Arc<Table>,
}

/// The tables that are in the schema.
pub(super) fn tables(database: &Database) -> Vec<Arc<dyn VirtualTable>> {
    let schema = database.schema();
    let found = ["peers", "peers_v2"].into_iter().filter_map(|name| schema.table("system", name));
    found.map(|table| Arc::new(Empty { table: table.clone() }) as Arc<dyn VirtualTable>).collect()
}

impl VirtualTable for Empty {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn rows(&self, _cx: &VirtualContext<'_>, _rows: &mut VirtualRows) {}
}
