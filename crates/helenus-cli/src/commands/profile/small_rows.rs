//! Measures reads by key as a table grows, in the engine in this process. Each row has five columns and is a partition
//! of its own.
//!
//! The table grows from one size to the next, is flushed and compacted, and is read at random keys, so that most reads
//! of a table larger than the block cache miss the cache.

use super::embedded::Embedded;
use super::options::RunOptions;
use super::progress::Progress;
use super::results::{AtSize, Latency, Profile, TouchedMean};
use crate::commands::stress::content::{COLUMNS, KEY, VALUE, below, key, mix, value};
use anyhow::{Result, ensure};
use helenus_engine::ReadRequest;
use helenus_engine::read::{PartitionKey, Partitions, Probe, ReadCommand, RowOutcome, RowSink};
use helenus_model::cell::{Cell, Span};
use helenus_model::deletion::{DeletionTime, Liveness, NO_EXPIRY};
use helenus_model::filter::{AFTER_ALL, BEFORE_ALL, ClusteringFilter, Limits, Slice};
use helenus_model::mutation::{Changes, Mutation, PartitionUpdate};
use helenus_model::row::RowView;
use helenus_model::schema::Table;
use helenus_server::quantity::parse_size;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The table's name.
pub(super) const TABLE: &str = "small";
/// Bytes of a row: its key and its values.
const ROW_BYTES: u64 = (KEY + COLUMNS * VALUE) as u64;
/// Number of writes that wait for the log together.
const TOGETHER: u64 = 128;
/// Number of queries with a probe, besides the timed ones.
const PROBED: u64 = 100;

/// Measures reads by key at each size, the smallest first.
///
/// # Errors
/// Errors of the database; an answer that differs from the written data.
pub(super) fn measure(options: &RunOptions, profile: &mut Profile) -> Result<()> {
    let mut sizes: Vec<u64> = options.sizes.iter().map(|size| size.0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let embedded = Embedded::open(options)?;
    let mut small = SmallRows::make(&embedded)?;
    for size in sizes {
        small.grow((size / ROW_BYTES).max(1))?;
        let settled = embedded.settle_tables(&[small.table.id])?;
        let mut at = AtSize { data_bytes: size, rows: small.rows, ..AtSize::default() };
        (at.sstables, at.disk_bytes) =
            (settled.sstables.unwrap_or_default(), settled.disk_bytes.unwrap_or_default());
        small.read(options, &mut at)?;
        profile.sizes.push(at);
    }
    Ok(())
}

/// Bytes in powers of ten: 100 MB, 1 GB, 2.5 GB.
pub(super) fn data_size(bytes: u64) -> String {
    let (size, unit) = match bytes {
        0..1_000_000 => (bytes as f64 / 1e3, "KB"),
        1_000_000..1_000_000_000 => (bytes as f64 / 1e6, "MB"),
        _ => (bytes as f64 / 1e9, "GB"),
    };
    format!("{} {unit}", (size * 10.0).round() / 10.0)
}

struct SmallRows<'d> {
    embedded: &'d Embedded,
    table: Arc<Table>,
    rows: u64,
}

impl SmallRows<'_> {
    fn make(embedded: &Embedded) -> Result<SmallRows<'_>> {
        let columns: Vec<String> = (0..COLUMNS).map(|column| format!("c{column} blob")).collect();
        let columns = format!("key blob PRIMARY KEY, {}", columns.join(", "));
        let table = embedded.make_table(TABLE, &columns)?;
        Ok(SmallRows { embedded, table, rows: 0 })
    }

    /// Writes rows until the table has `rows` rows.
    fn grow(&mut self, rows: u64) -> Result<()> {
        let more = rows.saturating_sub(self.rows);
        let progress = Progress::of(format!("load {TABLE} to {}", data_size(rows * ROW_BYTES)), more, "rows");
        let engine = self.embedded.engine();
        while self.rows < rows {
            let upto = (self.rows + TOGETHER).min(rows);
            let mut last = None;
            for row in self.rows..upto {
                last = Some(engine.write(&self.mutation(row, engine.next_timestamp()?))?);
            }
            if let Some(ticket) = last {
                ticket.wait()?;
            }
            progress.add(upto - self.rows);
            self.rows = upto;
        }
        progress.end();
        Ok(())
    }

    fn mutation(&self, row: u64, timestamp_us: i64) -> Mutation {
        let mut changes = Changes::default();
        let head = (Liveness::at(timestamp_us), DeletionTime::LIVE);
        changes.row(std::iter::empty(), head, &[], |writer| {
            for (number, column) in self.table.regulars.iter().enumerate() {
                let cell = Cell {
                    column: column.id,
                    ttl_s: 0,
                    timestamp_us,
                    local_deletion_s: NO_EXPIRY,
                    path: Span::NULL,
                    value: Span::EMPTY,
                };
                writer.cell(&cell, None, &value(row, number));
            }
        });
        let update = PartitionUpdate { table: self.table.clone(), key: key(row).to_vec(), changes };
        Mutation { updates: vec![update] }
    }

    fn read(&self, options: &RunOptions, at: &mut AtSize) -> Result<()> {
        let draw =
            |number: u64| below(mix(options.seed.wrapping_mul(1 << 32).wrapping_add(number)), self.rows);
        for number in 0..options.discard {
            self.ask(draw((1 << 31) + number), None)?;
        }
        let mut touched = TouchedMean::default();
        for number in 0..PROBED.min(options.repeats) {
            let mut probe = Probe::default();
            self.ask(draw(number), Some(&mut probe))?;
            touched.add(&probe);
        }
        let mut latencies_us = Vec::with_capacity(options.repeats as usize);
        for number in 0..options.repeats {
            latencies_us.push(self.ask(draw(PROBED + number), None)?.as_nanos() as f64 / 1e3);
        }
        at.latency_us = Latency::of(latencies_us);
        at.touched = touched.mean();
        Ok(())
    }

    /// Reads a row and checks it; returns the time of the read.
    fn ask(&self, row: u64, probe: Option<&mut Probe>) -> Result<Duration> {
        let engine = self.embedded.engine();
        let mut cells = Cells::default();
        let begun = Instant::now();
        let everything = Slice { start: BEFORE_ALL.to_vec(), end: AFTER_ALL.to_vec() };
        let command = ReadCommand {
            table: self.table.clone(),
            partitions: Partitions::Keys(vec![PartitionKey::new(key(row).to_vec())]),
            filter: Arc::new(ClusteringFilter::Slices(vec![everything])),
            reversed: false,
            statics: false,
            columns: None,
            limits: Limits::NONE,
            now_s: engine.now_s(),
            resume: None,
            page_rows: None,
        };
        let view = engine.view(&self.table)?;
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        engine.read(&command, &view, request, &mut cells, probe)?;
        let took = begun.elapsed();
        let expected: Vec<u8> = (0..COLUMNS).flat_map(|column| value(row, column)).collect();
        ensure!(
            cells.0 == expected,
            "WRONG ANSWER, {TABLE}, row {row}: {} bytes instead of the {} that were written",
            cells.0.len(),
            expected.len()
        );
        Ok(took)
    }
}

/// A row sink that concatenates the values of a row.
#[derive(Default)]
struct Cells(Vec<u8>);

impl RowSink for Cells {
    fn partition(&mut self, _key: &[u8], _static_row: Option<RowView<'_>>) -> helenus_engine::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> helenus_engine::Result<RowOutcome> {
        row.row.cells.iter().for_each(|cell| self.0.extend_from_slice(row.value(cell)));
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _rows: u64) -> helenus_engine::Result<RowOutcome> {
        Ok(RowOutcome::Skipped)
    }
}

/// Bytes of keys and values, as given to `--sizes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub u64);

impl std::str::FromStr for Size {
    type Err = anyhow::Error;

    /// Parses `100MB`, `0.1GB`, `10GB`.
    fn from_str(text: &str) -> Result<Size> {
        let size = parse_size(text).map_err(anyhow::Error::msg)?;
        ensure!((1_000..=10_000_000_000_000).contains(&size), "`{text}`: sizes are of 1KB to 10TB");
        Ok(Size(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_as_they_are_asked_for() {
        assert_eq!(data_size(100_000_000), "100 MB");
        assert_eq!(data_size(999_999_982), "1000 MB");
        assert_eq!(data_size(2_500_000_000), "2.5 GB");
    }

    #[test]
    fn sizes_are_powers_of_ten_with_a_unit() {
        let size = |text: &str| text.parse::<Size>().map(|size| size.0).ok();
        assert_eq!(size("100MB"), Some(100_000_000));
        assert_eq!(size("0.1gb"), Some(100_000_000));
        assert_eq!(size("10 GB"), Some(10_000_000_000));
        for wrong in ["", "10", "GB", "-1GB", "11TB", "0MB", "1e99GB"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }
}
