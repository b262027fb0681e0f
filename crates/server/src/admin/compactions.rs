//! The compactions that tools have requested, by number, so that tools can ask for their progress.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_engine::{CompactionRequest, Database};
use helenus_model::schema::{Table, TableId};
use parking_lot::Mutex;

use super::answer::Compaction;
use super::collect_metrics::running;

/// When there are more requests than this, finished ones are forgotten.
const KEPT_MAX: usize = 64;

/// The compaction requests of this server.
#[derive(Default)]
pub(super) struct CompactionRequests {
    asked: Mutex<BTreeMap<u64, Asked>>,
}

#[derive(Clone)]
struct Asked {
    request: Arc<CompactionRequest>,
    /// Keyspace and name of each table.
    tables: Vec<(String, String)>,
    /// Number and bytes of SSTables before.
    before: (u64, u64),
}

impl CompactionRequests {
    /// Requests compactions of these tables; returns the number of the request.
    pub(super) fn ask(
        &self,
        database: &Database,
        tables: &[Arc<Table>],
        ask: impl FnOnce(Vec<TableId>) -> Arc<CompactionRequest>,
    ) -> u64 {
        let names: Vec<_> =
            tables.iter().map(|table| (table.keyspace.to_string(), table.name.to_string())).collect();
        let before = footprint(database, &names);
        let ids: Vec<TableId> = tables.iter().map(|table| table.id).collect();
        let request = ask(ids);
        let mut asked = self.asked.lock();
        if asked.len() >= KEPT_MAX {
            asked.retain(|_, asked| asked.request.status().ended.is_none());
        }
        let number = asked.last_key_value().map_or(1, |(number, _)| number + 1);
        asked.insert(number, Asked { request, tables: names, before });
        number
    }

    /// The progress of a request, or the text of its failure.
    pub(super) fn look(&self, database: &Database, number: u64) -> Result<Compaction, String> {
        let asked = self.asked.lock().get(&number).cloned();
        let Some(Asked { request, tables, before }) = asked else {
            return Err(format!("there is no compaction with the number {number}"));
        };
        let status = request.status();
        if let Some(Err(failure)) = status.ended {
            return Err(failure);
        }
        let (sstables, disk_bytes) = footprint(database, &tables);
        Ok(Compaction {
            number,
            is_over: status.ended.is_some(),
            compactions: status.compactions,
            tables_left: status.tables_left,
            sstables_before: before.0,
            sstables,
            disk_bytes_before: before.1,
            disk_bytes,
            running: database.status().compactions.into_iter().map(running).collect(),
        })
    }
}

fn footprint(database: &Database, tables: &[(String, String)]) -> (u64, u64) {
    let status = database.status();
    let is_one = |line: &&helenus_engine::TableStatus| {
        tables.iter().any(|(keyspace, table)| line.keyspace == *keyspace && line.table == *table)
    };
    let lines = status.tables.iter().filter(is_one);
    lines.fold((0, 0), |(sstables, bytes), line| (sstables + line.sstables, bytes + line.disk_bytes))
}
