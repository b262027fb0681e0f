//! Helenus, through the engine's reads and writes: what a statement's execution calls.

use crate::reads::{self, Answer, Place};
use crate::store::{Store, bytes_of};
use crate::tables::{Tables, database_options, wide_rows};
use anyhow::{Result, anyhow};
use helenus_engine::MemoryShares;
use helenus_model::schema::Table;
use helenus_sstable::writer::ROW_INDEX_BLOCK_BYTES_DEFAULT;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The engine with the tables of its own bench.
pub struct Helenus {
    tables: Tables,
    dir: PathBuf,
}

/// Bytes of the block cache.
const CACHE: u64 = 512 << 20;

impl Helenus {
    /// A database that keeps so many rows in memory, up to ten million, until it is asked to flush them; the bytes between
    /// entries of the row index as the extension has them, or the default's.
    pub fn create(dir: &Path, rows: u64, granularity: Option<&str>) -> Result<Helenus> {
        // 200 bytes a row are enough for a memtable; a flush would begin at half of the share.
        let shares = MemoryShares { memtables: (2 << 30) + rows as usize * 800, cache: CACHE };
        let mut options = database_options(dir, shares);
        options.segment_bytes = 256 << 20; // the log must not ask for a flush either
        options.compaction.bytes_per_s = 0;
        Ok(Helenus { tables: Tables::create(options, (granularity, None))?, dir: dir.to_owned() })
    }

    fn table(&self) -> &Arc<Table> {
        &self.tables.ascending
    }
}

impl Store for Helenus {
    fn name(&self) -> &'static str {
        "Helenus"
    }

    fn about(&self) -> String {
        let sstables = self.tables.database.view(self.table()).map_or(0, |view| view.sstables.len());
        let entry = self.table().options.row_index_block_bytes().unwrap_or(ROW_INDEX_BLOCK_BYTES_DEFAULT);
        format!(
            "SSTables: {sstables}, LZ4, 16 KiB blocks, an entry of the row index each {} KiB, block cache of {} MiB; log \
             written with each batch, synced periodically",
            entry >> 10,
            CACHE >> 20
        )
    }

    fn load(&mut self, partition: u64, rows: Range<u64>) -> Result<()> {
        let database = &self.tables.database;
        let _ticket = database.write(&wide_rows(self.table(), partition, rows))?;
        Ok(database.write_out()?)
    }

    fn settle(&mut self) -> Result<()> {
        let (database, table) = (&self.tables.database, self.table());
        database.flush(table.id)?;
        if database.view(table)?.sstables.len() > 1 {
            database.compact(vec![table.id]).wait().map_err(|error| anyhow!("the compaction: {error}"))?;
        }
        Ok(())
    }

    fn slice(&mut self, partition: u64, place: Place, limit: u64, answer: &mut Answer) -> Result<()> {
        let command = reads::slice(self.table(), partition, place, limit)?;
        reads::run(&self.tables.database, &command, answer)
    }

    fn names(&mut self, partition: u64, rows: &[u64], answer: &mut Answer) -> Result<()> {
        let command = reads::names(self.table(), partition, rows.iter().copied())?;
        reads::run(&self.tables.database, &command, answer)
    }

    fn scan(&mut self, answer: &mut Answer) -> Result<()> {
        reads::run(&self.tables.database, &reads::scan(self.table()), answer)
    }

    fn disk_bytes(&self) -> Result<u64> {
        bytes_of(&self.dir.join("data"))
    }
}

impl Drop for Helenus {
    fn drop(&mut self) {
        if let Err(error) = self.tables.database.close() {
            eprintln!("the database was not closed well: {error}");
        }
    }
}
