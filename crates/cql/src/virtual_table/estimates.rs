//! `system.size_estimates` and `system.table_estimates`: partitions and their mean size by table and ring range. They
//! are always current (Cassandra computes them every five minutes).

use super::local::ring_tokens;
use super::table::{VirtualContext, VirtualRows, VirtualTable};
use helenus_engine::{Database, is_replicated_system_keyspace, is_system_keyspace};
use helenus_model::schema::Table;
use helenus_model::token::Token;
use std::sync::Arc;

struct Estimates {
    table: Arc<Table>,
    /// The kinds of ranges in `table_estimates`; empty for `size_estimates`.
    kinds: &'static [&'static str],
}

/// The only node has all ranges as primary ones.
const KINDS: &[&str] = &["local_primary", "primary"];

/// The tables that are in the schema.
pub(super) fn tables(database: &Database) -> Vec<Arc<dyn VirtualTable>> {
    let schema = database.schema();
    let found = [("size_estimates", &[][..]), ("table_estimates", KINDS)]
        .into_iter()
        .filter_map(|(name, kinds)| Some((schema.table("system", name)?.clone(), kinds)));
    found.map(|(table, kinds)| Arc::new(Estimates { table, kinds }) as Arc<dyn VirtualTable>).collect()
}

/// The ranges between the ring's tokens. The range across the end of the ring is split in two at the smallest token, as
/// in Cassandra.
fn ranges() -> Vec<(Token, Token)> {
    let mut ends: Vec<i64> = ring_tokens().iter().filter_map(|token| token.parse().ok()).collect();
    ends.sort_unstable();
    let mut starts = vec![i64::MIN];
    starts.extend(&ends);
    // As the end of a range the smallest token means the end of the ring.
    let ends = ends.into_iter().chain([i64::MIN]);
    starts.into_iter().zip(ends).map(|(start, end)| (Token(start), Token(end))).collect()
}

/// The range with an end that can be compared.
fn comparable((start, end): (Token, Token)) -> (Token, Token) {
    (start, if end.0 == i64::MIN { Token(i64::MAX) } else { end })
}

impl VirtualTable for Estimates {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn rows(&self, cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        let ranges = ranges();
        let comparable: Vec<(Token, Token)> = ranges.iter().copied().map(comparable).collect();
        let schema = cx.database.schema();
        let is_replicated = |name: &str| !is_system_keyspace(name) || is_replicated_system_keyspace(name);
        let keyspaces = schema.keyspaces.values().filter(|keyspace| is_replicated(&keyspace.name));
        for table in keyspaces.flat_map(|keyspace| keyspace.tables.values()) {
            let estimates = cx.database.inspect().range_estimates(table.id, &comparable);
            for ((start, end), estimate) in ranges.iter().zip(estimates) {
                let text = |text: &str| text.as_bytes().to_vec();
                let long = |value: u64| i64::try_from(value).unwrap_or(i64::MAX).to_be_bytes().to_vec();
                let mut row = vec![
                    ("keyspace_name", text(&table.keyspace)),
                    ("table_name", text(&table.name)),
                    ("range_start", text(&start.0.to_string())),
                    ("range_end", text(&end.0.to_string())),
                    ("mean_partition_size", long(estimate.partition_bytes_mean)),
                    ("partitions_count", long(estimate.partitions)),
                ];
                if self.kinds.is_empty() {
                    rows.row(&row);
                }
                for kind in self.kinds {
                    row.push(("range_type", text(kind)));
                    rows.row(&row);
                    row.pop();
                }
            }
        }
    }
}
