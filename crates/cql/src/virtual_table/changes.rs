//! `system_views.changes`: the feed of changes, read forwards from a position and in pages.
//!
//! Not in Cassandra. A partition is a table; its rows are the events that are kept in the log, ordered by position. A read
//! without a position begins with the oldest. Each row has the whole event as JSON (`crate::changes`).

use super::table::{VirtualContext, VirtualRead, VirtualRows, VirtualTable, virtual_definition};
use super::views::KEYSPACE;
use crate::changes::{Cursor, PageLimits, read_page};
use helenus_engine::account;
use helenus_engine::changes::ChangePosition;
use helenus_engine::read::Partitions;
use helenus_engine::{ChangesError, Database, Error, Result};
use helenus_model::byte_comparable::decode_clustering;
use helenus_model::filter::ClusteringFilter;
use helenus_model::schema::Table;
use helenus_model::types::{CqlType, key_values};
use std::sync::Arc;

struct ChangesTable(Arc<Table>);

/// The most events of a read without pages.
const UNPAGED_MAX: usize = 100_000;
/// The most work on numbers for a read without pages: about the time that a request has.
const UNPAGED_WORK_US_MAX: usize = 10_000_000;
/// Bytes of events that a page reads at most.
const PAGE_BYTES: usize = 8 << 20;

/// The table.
pub(super) fn table() -> Arc<dyn VirtualTable> {
    let columns = [
        ("keyspace_name", CqlType::Text),
        ("table_name", CqlType::Text),
        ("position", CqlType::Text),
        ("event", CqlType::Text),
        ("operation", CqlType::Text),
        ("write_timestamp", CqlType::BigInt),
    ];
    let comment = "changes of tables with cdc = true, as JSON; read on from a position";
    Arc::new(ChangesTable(virtual_definition((KEYSPACE, "changes"), comment, (2, 1), &columns)))
}

impl VirtualTable for ChangesTable {
    fn table(&self) -> &Arc<Table> {
        &self.0
    }

    fn rows(&self, _cx: &VirtualContext<'_>, _rows: &mut VirtualRows) {}

    fn rows_of(&self, cx: &VirtualContext<'_>, read: &VirtualRead<'_>, rows: &mut VirtualRows) -> Result<()> {
        if !read.may_block {
            return Err(Error::WouldBlock);
        }
        let command = read.command;
        let Partitions::Keys(keys) = &command.partitions else { return Err(ChangesError::Unordered.into()) };
        if command.reversed {
            return Err(ChangesError::Unordered.into());
        }
        let page_rows = command.page_rows.map(|rows| usize::try_from(rows).unwrap_or(UNPAGED_MAX));
        for key in keys {
            let names = key_values(2, &key.bytes);
            let [Ok(keyspace), Ok(table)] = [names.first(), names.get(1)]
                .map(|name| std::str::from_utf8(name.copied().unwrap_or_default()))
            else {
                continue;
            };
            let resume = command.resume.as_ref().filter(|resume| resume.key == key.bytes);
            if resume.is_some_and(|resume| resume.clustering.is_none()) {
                continue;
            }
            let begin = match resume.and_then(|resume| resume.clustering.as_deref()) {
                Some(position) => Some(position),
                None => lowest(&command.filter),
            };
            let from = self.position_before(cx.database, begin)?;
            let wanted = usize::try_from(command.rows_left()).unwrap_or(UNPAGED_MAX).min(UNPAGED_MAX);
            // One more than the page: it ends behind its last row, not in front of it.
            let events = page_rows.unwrap_or(wanted).min(wanted).saturating_add(2);
            let (bytes, number_work_us) = match page_rows {
                Some(_) => (PAGE_BYTES, PageLimits::NUMBER_WORK_US),
                None => (usize::MAX, UNPAGED_WORK_US_MAX),
            };
            // The first may be the last of the page before.
            let limits = PageLimits { events, events_min: 2, bytes, number_work_us };
            let page = read_page(cx.database, (keyspace, table), Cursor::Changes(from), limits)?;
            if page_rows.is_none() && !page.is_end && page.events.len() < wanted {
                return Err(ChangesError::Unpaged { events: page.events.len() }.into());
            }
            for event in page.events {
                // The row has a copy of the event.
                account::grow(event.json.len())?;
                let mut values = vec![
                    ("keyspace_name", keyspace.as_bytes().to_vec()),
                    ("table_name", table.as_bytes().to_vec()),
                    ("position", event.cursor.into_bytes()),
                    ("event", event.json.into_bytes()),
                    ("operation", event.operation.as_bytes().to_vec()),
                ];
                values.extend(event.timestamp_us.map(|us| ("write_timestamp", us.to_be_bytes().to_vec())));
                rows.row(&values);
            }
            if !page.is_end {
                if page_rows.is_none() && wanted >= UNPAGED_MAX {
                    return Err(ChangesError::Unpaged { events: UNPAGED_MAX }.into());
                }
                // Later partitions come with later pages.
                rows.cut();
                break;
            }
        }
        Ok(())
    }
}

/// The ordered bytes at which a filter begins; `None` for the start of the partition.
fn lowest(filter: &ClusteringFilter) -> Option<&[u8]> {
    match filter {
        ClusteringFilter::Names(names) => names.iter().map(Vec::as_slice).min(),
        ClusteringFilter::Slices(slices) => slices.iter().map(|slice| &slice.start[..]).min(),
    }
}

impl ChangesTable {
    /// The position before the event at, or behind, a clustering position.
    fn position_before(&self, database: &Database, ordered: Option<&[u8]>) -> Result<ChangePosition> {
        let decoded = ordered.and_then(|ordered| decode_clustering(ordered, &self.0.clustering).ok());
        let text = decoded.and_then(|decoded| decoded.values.into_iter().next().flatten());
        let Some(text) = text.filter(|text| !text.is_empty()) else { return database.changes().begin() };
        let text = String::from_utf8_lossy(&text);
        Ok(ChangePosition::parse(&text, database.host_id())?.before_last())
    }
}
