//! Runs a read over the rows of a virtual table, with the same filters, limits and pages as the engine's reads.
//! Partitions are in the order of their keys.

use super::table::{VirtualPartition, VirtualRows};
use helenus_engine::read::{
    PartitionKey, Partitions, ReadCommand, ReadEnd, Resume, RowOutcome, RowSink, left_of,
};
use helenus_model::column_map::ColumnMap;
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL};
use helenus_model::row::RowBuf;

/// Runs `command` over `rows`.
///
/// # Errors
/// Those of the sink.
pub(crate) fn read(
    command: &ReadCommand,
    rows: &VirtualRows,
    sink: &mut dyn RowSink,
) -> helenus_engine::Result<ReadEnd> {
    let mut reading = Reading { command, rows_left: command.rows_left(), rows_in_page: 0 };
    let mut resume = command.resume.as_ref();
    let partitions: Vec<&VirtualPartition> = match &command.partitions {
        Partitions::Keys(keys) => {
            let is_before = |key: &&PartitionKey| resume.is_some_and(|at| at.key != key.bytes);
            keys.iter().skip_while(is_before).filter_map(|key| rows.partitions.get(&key.bytes)).collect()
        }
        Partitions::Range(range) => {
            let within = |partition: &&VirtualPartition| {
                resume.is_none_or(|at| at.key <= partition.key.bytes)
                    && range.start <= partition.key.decorated
                    && partition.key.decorated < range.end
            };
            rows.partitions.values().filter(within).collect()
        }
    };
    let last = partitions.last().map(|partition| &partition.key.bytes);
    for partition in partitions.iter().copied() {
        let mut from = None;
        if let Some(at) = resume.take().filter(|at| at.key == partition.key.bytes) {
            match &at.clustering {
                None => continue,
                Some(clustering) => from = Some((&clustering[..], at.rows_left_in_partition)),
            }
        }
        let is_cut = rows.is_cut && last == Some(&partition.key.bytes);
        if let Some(end) = reading.partition((partition, is_cut), from, sink)? {
            return Ok(end);
        }
    }
    Ok(ReadEnd::Complete)
}

struct Reading<'a> {
    command: &'a ReadCommand,
    rows_left: u64,
    rows_in_page: u64,
}

impl Reading<'_> {
    /// Reads a partition, starting after a row if an earlier page began it. Returns the read's end if it ends here.
    fn partition(
        &mut self,
        (partition, is_cut): (&VirtualPartition, bool),
        from: Option<(&[u8], u64)>,
        sink: &mut dyn RowSink,
    ) -> helenus_engine::Result<Option<ReadEnd>> {
        let command = self.command;
        let mut left = from.map_or(command.limits.per_partition, |(_, left)| left);
        let mut is_begun = from.is_some();
        sink.partition(&partition.key.bytes, None)?;
        let all = &partition.rows;
        let rows: Vec<(&[u8], &RowBuf)> = match from.map(|(after, _)| after) {
            None if command.reversed => all.before(AFTER_ALL).collect(),
            None => all.at_or_after(BEFORE_ALL).collect(),
            Some(after) if command.reversed => all.before(after).collect(),
            Some(after) => all.at_or_after(after).filter(|(position, _)| *position != after).collect(),
        };
        let last = rows.last().map(|(position, _)| position.to_vec());
        for (position, row) in rows.into_iter().filter(|(position, _)| command.filter.selects(position)) {
            match sink.row(row.view())? {
                RowOutcome::Counted => {
                    (left, is_begun) = (left_of(left, 1), true);
                    self.count();
                }
                RowOutcome::Skipped => {}
                RowOutcome::EndPartition => break,
                RowOutcome::EndRead => return Ok(Some(ReadEnd::Complete)),
            }
            if self.rows_left == 0 {
                return Ok(Some(ReadEnd::Complete));
            }
            if left == 0 {
                break;
            }
            if self.page_ends(sink) {
                return Ok(Some(self.page(partition, Some(position.to_vec()), left)));
            }
        }
        if is_cut && left > 0 && last.is_some() {
            return Ok(Some(self.page(partition, last, left)));
        }
        match sink.partition_end(u64::from(is_begun))? {
            RowOutcome::Counted => self.count(),
            RowOutcome::EndRead => return Ok(Some(ReadEnd::Complete)),
            RowOutcome::Skipped | RowOutcome::EndPartition => {}
        }
        if self.rows_left == 0 {
            return Ok(Some(ReadEnd::Complete));
        }
        Ok(self.page_ends(sink).then(|| self.page(partition, None, 0)))
    }

    fn count(&mut self) {
        self.rows_left = left_of(self.rows_left, 1);
        self.rows_in_page += 1;
    }

    fn page_ends(&self, sink: &dyn RowSink) -> bool {
        self.command.page_rows.is_some_and(|rows| self.rows_in_page >= rows || sink.is_full())
    }

    fn page(
        &self,
        partition: &VirtualPartition,
        clustering: Option<Vec<u8>>,
        rows_left_in_partition: u64,
    ) -> ReadEnd {
        ReadEnd::Page(Resume {
            key: partition.key.bytes.clone(),
            clustering,
            rows_left: self.rows_left,
            rows_left_in_partition,
            // Virtual tables have no static rows, which alone would depend on it.
            has_given: true,
        })
    }
}
