//! Helenus, through the engine's reads and writes: what a statement's execution calls.

use crate::reads::{self, Answer, Place};
use crate::store::{Store, bytes_of};
use crate::tables::{Tables, wide_rows};
use anyhow::Result;
use helenus_model::schema::Table;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The engine with the tables of its own bench.
pub struct Helenus {
    tables: Tables,
    dir: PathBuf,
}

impl Helenus {
    /// A database whose memtable has room for so many rows.
    pub fn create(dir: &Path, rows: u64) -> Result<Helenus> {
        Ok(Helenus { tables: Tables::create(dir, rows)?, dir: dir.to_owned() })
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
        "one SSTable, LZ4, 16 KiB blocks, block cache of 512 MiB; log written with each batch, synced periodically"
            .into()
    }

    fn load(&mut self, partition: u64, rows: Range<u64>) -> Result<()> {
        let database = &self.tables.database;
        let _ticket = database.write(&wide_rows(self.table(), partition, rows))?;
        Ok(database.write_out()?)
    }

    fn settle(&mut self) -> Result<()> {
        self.tables.database.flush(self.table().id)?;
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
