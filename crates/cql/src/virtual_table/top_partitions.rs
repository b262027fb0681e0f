//! `system_views.top_partitions`: approximately the most read and written partitions of each table.
//!
//! Not in Cassandra, which samples them for a while on `nodetool profileload`.

use super::table::{VirtualContext, VirtualRows, VirtualTable, virtual_definition};
use super::views::KEYSPACE;
use crate::key_text::shown_type;
use helenus_model::schema::Table;
use helenus_model::types::{CqlType, to_short_literal};
use std::sync::Arc;

/// The table.
pub(super) struct TopPartitions(Arc<Table>);

impl TopPartitions {
    pub(super) fn new() -> TopPartitions {
        let columns = [
            ("keyspace_name", CqlType::Text),
            ("table_name", CqlType::Text),
            ("operation", CqlType::Text),
            ("rank", CqlType::Int),
            ("partition", CqlType::Text),
            ("requests", CqlType::BigInt),
        ];
        let comment = "partitions that are read and written most, of one request in sixteen";
        TopPartitions(virtual_definition((KEYSPACE, "top_partitions"), comment, (2, 2), &columns))
    }
}

impl VirtualTable for TopPartitions {
    fn table(&self) -> &Arc<Table> {
        &self.0
    }

    fn rows(&self, cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        let text = |text: &str| text.as_bytes().to_vec();
        for status in cx.database.status().tables.iter().filter(|table| !table.is_index) {
            let Some(table) = cx.schema.table(&status.keyspace, &status.table) else { continue };
            for (operation, found) in [("read", &status.top_reads), ("write", &status.top_writes)] {
                for (partition, rank) in found.iter().zip(1_i32..) {
                    let requests = i64::try_from(partition.count).unwrap_or(i64::MAX);
                    rows.row(&[
                        ("keyspace_name", text(&status.keyspace)),
                        ("table_name", text(&status.table)),
                        ("operation", text(operation)),
                        ("rank", rank.to_be_bytes().to_vec()),
                        ("partition", text(&key_text(table, &partition.key))),
                        ("requests", requests.to_be_bytes().to_vec()),
                    ]);
                }
            }
        }
    }
}

/// The most characters of a value of a key: its longest is written whole, but names of fields may be longer.
const KEY_CHARS_MAX: usize = 256 << 10;

/// A partition key as literals separated by commas.
fn key_text(table: &Table, key: &[u8]) -> String {
    if let [column] = &table.partition_key[..] {
        return to_short_literal(shown_type(&column.ty, key), Some(key), KEY_CHARS_MAX);
    }
    let (mut parts, mut rest) = (Vec::new(), key);
    for column in &table.partition_key {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { break };
        let length = usize::from(u16::from_be_bytes(*length));
        let Some(value) = after.get(..length) else { break };
        parts.push(to_short_literal(shown_type(&column.ty, value), Some(value), KEY_CHARS_MAX));
        rest = after.get(length + 1..).unwrap_or_default();
    }
    parts.join(", ")
}
