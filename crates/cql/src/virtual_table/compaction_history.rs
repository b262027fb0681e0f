//! `system.compaction_history`: the compactions since the server started.

use super::table::{VirtualContext, VirtualRows, VirtualTable};
use helenus_engine::Database;
use helenus_model::schema::Table;
use helenus_model::types::pack;
use std::sync::Arc;

struct History {
    table: Arc<Table>,
}

/// The table, if it is in the schema.
pub(super) fn table(database: &Database) -> Option<Arc<dyn VirtualTable>> {
    let table = database.schema().table("system", "compaction_history")?.clone();
    Some(Arc::new(History { table }))
}

impl VirtualTable for History {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn rows(&self, cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        for past in cx.database.compactions().past() {
            let text = |text: &str| text.as_bytes().to_vec();
            let long = |value: u64| i64::try_from(value).unwrap_or(i64::MAX).to_be_bytes().to_vec();
            let mut properties = Vec::new();
            pack(2, [&b"compaction_type"[..], past.kind.as_bytes()].map(Some), &mut properties);
            // The count of a map is the number of its pairs.
            properties.splice(..4, 1_i32.to_be_bytes());
            // How many rows came from how many SSTables is not counted, so `rows_merged` is null.
            rows.row(&[
                ("id", past.id.as_bytes().to_vec()),
                ("bytes_in", long(past.bytes_in)),
                ("bytes_out", long(past.bytes_out)),
                ("columnfamily_name", text(&past.table)),
                ("compacted_at", past.ended_ms.to_be_bytes().to_vec()),
                ("compaction_properties", properties),
                ("keyspace_name", text(&past.keyspace)),
            ]);
        }
    }
}
