//! LMDB: a copy-on-write B+tree in a memory map.

use crate::content::wide_value;
use crate::reads::{Answer, Place};
use crate::store::{LAST_ROW, Store, bytes_of, ordered_key, take};
use anyhow::{Context, Result};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};
use std::ops::{Bound, Range};
use std::path::{Path, PathBuf};

/// One environment, one database, a transaction each batch and each request.
pub struct Lmdb {
    env: Env,
    rows: Database<Bytes, Bytes>,
    dir: PathBuf,
}

impl Lmdb {
    /// An environment with room for so many rows.
    pub fn create(dir: &Path, rows: u64) -> Result<Lmdb> {
        let mut options = EnvOpenOptions::new();
        options.map_size((rows * 256).next_multiple_of(64 << 10) as usize + (1 << 30));
        #[expect(
            unsafe_code,
            reason = "the file is new, in a folder of this process alone, which keeps no log anyway"
        )]
        let env = unsafe { options.flags(EnvFlags::NO_SYNC).open(dir)? };
        let mut txn = env.write_txn()?;
        let rows = env.create_database(&mut txn, None)?;
        txn.commit()?;
        Ok(Lmdb { env, rows, dir: dir.to_owned() })
    }
}

impl Store for Lmdb {
    fn name(&self) -> &'static str {
        "LMDB"
    }

    fn about(&self) -> String {
        let version = heed::lmdb_version().string;
        format!("{version} through heed, MDB_NOSYNC: a transaction each batch, written and not synced")
    }

    fn load(&mut self, partition: u64, rows: Range<u64>) -> Result<()> {
        let mut txn = self.env.write_txn()?;
        for row in rows {
            self.rows.put(&mut txn, &ordered_key(partition, row), &wide_value(partition, row))?;
        }
        Ok(txn.commit()?)
    }

    fn settle(&mut self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    fn slice(&mut self, partition: u64, place: Place, limit: u64, answer: &mut Answer) -> Result<()> {
        let txn = self.env.read_txn()?;
        let (first, last) = (ordered_key(partition, 0), ordered_key(partition, LAST_ROW));
        let from = ordered_key(partition, place.first);
        let limit = limit as usize;
        if place.reversed {
            let range = (Bound::Included(&first[..]), Bound::Included(&from[..]));
            for row in self.rows.rev_range(&txn, &range)?.take(limit) {
                let (key, value) = row?;
                take(answer, key, value)?;
            }
        } else {
            let range = (Bound::Included(&from[..]), Bound::Included(&last[..]));
            for row in self.rows.range(&txn, &range)?.take(limit) {
                let (key, value) = row?;
                take(answer, key, value)?;
            }
        }
        Ok(())
    }

    fn names(&mut self, partition: u64, rows: &[u64], answer: &mut Answer) -> Result<()> {
        let txn = self.env.read_txn()?;
        for row in rows {
            let key = ordered_key(partition, *row);
            take(answer, &key, self.rows.get(&txn, &key)?.context("a row is missing")?)?;
        }
        Ok(())
    }

    fn scan(&mut self, answer: &mut Answer) -> Result<()> {
        let txn = self.env.read_txn()?;
        for row in self.rows.iter(&txn)? {
            let (key, value) = row?;
            take(answer, key, value)?;
        }
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64> {
        bytes_of(&self.dir.join("data.mdb"))
    }
}
