//! Reads one row here by its name.

use crate::error::MoveError;
use crate::source::RowName;
use helenus_engine::read::{PartitionKey, Partitions, ReadCommand, RowOutcome, RowSink};
use helenus_engine::{Database, ReadRequest};
use helenus_model::filter::{ClusteringFilter, Limits};
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_model::token::Token;
use std::sync::Arc;

/// Gives the present row to `take`, once, if there is one. What it shows cannot be lost any more. A write is in the log before it is in
/// the memtable, so the feed may show one that a read does not see yet: such writes are waited for, by the lock of the partition.
///
/// # Errors
/// Failures of reading.
pub(crate) fn read_row(
    database: &Database,
    table: &Arc<Table>,
    name: &RowName,
    take: &mut dyn FnMut(RowView<'_>),
) -> Result<(), MoveError> {
    let is_static = name.clustering.is_none();
    let names = if is_static { Vec::new() } else { vec![name.order(table)] };
    let command = ReadCommand {
        table: table.clone(),
        partitions: Partitions::Keys(vec![PartitionKey::new(name.key.clone())]),
        filter: Arc::new(ClusteringFilter::Names(names)),
        reversed: false,
        statics: is_static,
        columns: None,
        limits: Limits::NONE,
        now_s: database.now_s(),
        resume: None,
        page_rows: None,
    };
    let partition = (table.id, Token::of_key(&name.key));
    let request = ReadRequest { may_block: true, ..ReadRequest::default() };
    drop(database.lock_partition(std::iter::once(partition), request)?);
    let mut sink = OneRow { is_static, take };
    database.read(&command, &*database.view(table)?, request, &mut sink, None)?;
    Ok(())
}

struct OneRow<'t> {
    is_static: bool,
    take: &'t mut dyn FnMut(RowView<'_>),
}

impl RowSink for OneRow<'_> {
    fn partition(&mut self, _key: &[u8], static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        if let Some(row) = static_row.filter(|_| self.is_static) {
            (self.take)(row);
        }
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        (self.take)(row);
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}
