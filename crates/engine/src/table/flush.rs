//! Writes a memtable as an SSTable, one partition after another, without a copy of a whole partition in memory.

use crate::env::Env;
use crate::error::Result;
use crate::memtable::{
    CursorMemory, Memtable, MemtableCursor, PartitionRef, RowBuffers, Selected, StoredRow,
};
use helenus_host::account::{Scope, Share, Waits};
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_model::merge::Merge;
use helenus_model::reconcile::filter_row;
use helenus_model::row::RowBuf;
use helenus_model::schema::Table;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::{Source, Unfiltered};
use helenus_sstable::block::ReadContext;
use helenus_sstable::names::Descriptor;
use helenus_sstable::statistics::EncodingStats;
use helenus_sstable::writer::{SsTableWriter, Unsynced, WriterOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Writes all of a sealed memtable; the caller syncs the files. Returns them and `Written::hiding_us_max`. `None`: no data
/// of it remained, and no file was written.
pub(super) fn write_memtable(
    env: &Env,
    (folder, descriptor): (&Path, Descriptor),
    table: &Arc<Table>,
    (memtable, past_page_cache): (&Arc<Memtable>, bool),
) -> Result<Option<(Unsynced, i64)>> {
    // Requests wait for the memory that a flush frees, so the flush itself must not wait for memory.
    let _scope = Scope::begin(Share::Background, Waits::ThenGoesOn(Duration::ZERO));
    let stats = memtable.stats();
    let encoding = EncodingStats::new(stats.timestamp_us_min, stats.local_deletion_s_min, stats.ttl_s_min);
    let mut options = WriterOptions::of_table(table.clone(), stats.partitions, encoding);
    env.journal.note_options(table, &options);
    options.host_id = Some(env.host_id);
    options.past_page_cache = past_page_cache;
    options.partition_limits = env.journal.partition_limits();
    let mut writer = SsTableWriter::create(env.host.disk.clone(), folder, descriptor, options)?;
    match write_partitions(&mut writer, table, memtable) {
        Ok(0) => {
            writer.abort()?;
            Ok(None)
        }
        Ok(_) => {
            let (written, unsynced) = writer.write_out()?;
            env.journal.note_written(table, &written);
            Ok(Some((unsynced, written.hiding_us_max)))
        }
        Err(error) => {
            // The first error is the useful one. Undoing the transaction removes what remains of the files.
            let _ = writer.abort();
            Err(error)
        }
    }
}

fn write_partitions(writer: &mut SsTableWriter, table: &Arc<Table>, memtable: &Arc<Memtable>) -> Result<u64> {
    let mut count = 0;
    let mut scratch = Scratch::new(table);
    let walked: Result<()> = memtable.walk(|partition| {
        count += u64::from(write_partition(writer, table, (memtable, partition), &mut scratch)?);
        Ok(())
    });
    walked.map(|()| count)
}

/// Memory that is reused from partition to partition.
struct Scratch {
    everything: Arc<ClusteringFilter>,
    unpacked: RowBuffers,
    visible: RowBuf,
    rows: Merge<MemtableCursor>,
    cursors: Vec<MemtableCursor>,
    memory: Option<Box<CursorMemory>>,
    cx: ReadContext,
}

impl Scratch {
    fn new(table: &Arc<Table>) -> Scratch {
        Scratch {
            everything: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
            unpacked: RowBuffers::default(),
            visible: RowBuf::default(),
            rows: Merge::new(table.clone(), false, DeletionTime::LIVE, Vec::new()),
            cursors: Vec::new(),
            memory: None,
            cx: ReadContext { may_block: true, ..ReadContext::default() },
        }
    }
}

/// Writes one partition. Returns whether anything was written.
fn write_partition(
    writer: &mut SsTableWriter,
    table: &Arc<Table>,
    (memtable, partition): (&Arc<Memtable>, PartitionRef<'_>),
    scratch: &mut Scratch,
) -> Result<bool> {
    let content = partition.content();
    let sequence = content.sequence();
    let deletion = content.deletion(sequence);
    let place = (partition.key(), partition.decorated());
    let Scratch { everything, unpacked, visible, rows, cursors, memory, cx } = scratch;
    visible.clear();
    if let Some(row) = content.static_row(sequence) {
        filter_row(row.decode((table, 0), unpacked)?, deletion, visible);
    }
    let static_row = Some(visible.view()).filter(|row| !row.is_empty());
    if deletion.is_live()
        && static_row.is_none()
        && let Some(plain) = content.plain_rows(sequence)
    {
        return write_plain(writer, place, (plain, table), unpacked);
    }
    let selected = Selected { sequence, table, filter: everything, reversed: false };
    cursors.push(MemtableCursor::new(memtable, partition, &selected, memory.take().unwrap_or_default()));
    rows.restart(table, false, deletion, cursors);
    let mut more = rows.advance(cx).map_err(|error| error.of_partition(place.0))?;
    let holds_something = more || !deletion.is_live() || static_row.is_some();
    if holds_something {
        writer.begin_decorated(place, &KeyHash::of(place.0), deletion, static_row)?;
        while more {
            writer.add(<Merge<MemtableCursor> as Source<ReadContext>>::current(rows))?;
            more = rows.advance(cx).map_err(|error| error.of_partition(place.0))?;
        }
        writer.end_partition()?;
    }
    rows.give_back(cursors);
    *memory = cursors.pop().map(MemtableCursor::into_memory);
    Ok(holds_something)
}

/// Writes a partition that has only rows, without a merge: a merge would pass on the same rows, except empty ones.
fn write_plain<'a>(
    writer: &mut SsTableWriter,
    (key, decorated): (&[u8], &[u8]),
    (rows, table): (impl Iterator<Item = (&'a [u8], StoredRow<'a>)>, &Table),
    buffers: &mut RowBuffers,
) -> Result<bool> {
    let mut has_begun = false;
    for (ordered, stored) in rows {
        let view = stored.decode_with_key((table, table.clustering.len()), ordered, buffers)?;
        if view.is_empty() {
            continue;
        }
        if !std::mem::replace(&mut has_begun, true) {
            writer.begin_decorated((key, decorated), &KeyHash::of(key), DeletionTime::LIVE, None)?;
        }
        writer.add(Unfiltered::Row(view))?;
    }
    if has_begun {
        writer.end_partition()?;
    }
    Ok(has_begun)
}
