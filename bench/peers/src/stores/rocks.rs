//! RocksDB: an LSM tree, compacted into one sorted run before it is read.

use crate::content::wide_value;
use crate::reads::{Answer, Place};
use crate::store::{Store, bytes_of, ordered_key, take};
use anyhow::{Context, Result};
use rocksdb::perf::{PerfStatsLevel, set_perf_stats};
use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, ReadOptions, WriteBatch};
use std::ops::Range;
use std::path::{Path, PathBuf};

const FAMILY: &str = "default";

/// One column family of block-based tables.
pub struct Rocks {
    db: DB,
    cache: Cache,
    dir: PathBuf,
}

impl Rocks {
    /// A database with LZ4 blocks of 16 KiB and so many MiB of cache, else with its defaults.
    pub fn create(dir: &Path, cache_mib: u64) -> Result<Rocks> {
        // Of this thread, which reads: in a shared library they cost 6 % of a slice.
        set_perf_stats(PerfStatsLevel::Disable);
        let cache = Cache::new_lru_cache((cache_mib << 20) as usize);
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_size(16 << 10);
        blocks.set_block_cache(&cache);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_block_based_table_factory(&blocks);
        let db = DB::open_cf_with_opts(&options, dir, [(FAMILY, options.clone())])?;
        Ok(Rocks { db, cache, dir: dir.to_owned() })
    }

    /// The library's version, which it writes into the file of its options.
    fn version(&self) -> Option<String> {
        let mut files = std::fs::read_dir(&self.dir).ok()?.filter_map(Result::ok);
        let file = files.find(|file| file.file_name().to_string_lossy().starts_with("OPTIONS"))?;
        let text = std::fs::read_to_string(file.path()).ok()?;
        let line = text.lines().find_map(|line| line.trim().strip_prefix("rocksdb_version="));
        line.map(str::to_owned)
    }
}

impl Store for Rocks {
    fn name(&self) -> &'static str {
        "RocksDB"
    }

    fn about(&self) -> String {
        format!(
            "{}, LZ4, 16 KiB blocks, LRU cache of which {} MiB are used, compacted, perf counters off; log written with \
             each batch and not synced; names through its sorted multi-get",
            self.version().unwrap_or_default(),
            self.cache.get_usage() >> 20,
        )
    }

    fn load(&mut self, partition: u64, rows: Range<u64>) -> Result<()> {
        let mut batch = WriteBatch::default();
        for row in rows {
            batch.put(ordered_key(partition, row), wide_value(partition, row));
        }
        Ok(self.db.write(batch)?)
    }

    fn settle(&mut self) -> Result<()> {
        self.db.flush()?;
        self.db.compact_range::<&[u8], &[u8]>(None, None);
        Ok(())
    }

    fn slice(&mut self, partition: u64, place: Place, limit: u64, answer: &mut Answer) -> Result<()> {
        let from = ordered_key(partition, place.first);
        let mut rows = self.db.raw_iterator_opt(ReadOptions::default());
        match place.reversed {
            false => rows.seek(from),
            true => rows.seek_for_prev(from),
        }
        let of_partition = &from[..12];
        for _ in 0..limit {
            let Some((key, value)) = rows.item().filter(|(key, _)| key.starts_with(of_partition)) else {
                break;
            };
            take(answer, key, value)?;
            match place.reversed {
                false => rows.next(),
                true => rows.prev(),
            }
        }
        Ok(rows.status()?)
    }

    fn names(&mut self, partition: u64, rows: &[u64], answer: &mut Answer) -> Result<()> {
        if let [row] = rows {
            let key = ordered_key(partition, *row);
            let value = self.db.get_pinned(key)?.context("a row is missing")?;
            return take(answer, &key, &value);
        }
        let keys: Vec<_> = rows.iter().map(|row| ordered_key(partition, *row)).collect();
        let family = self.db.cf_handle(FAMILY).context("no column family")?;
        let values = self.db.batched_multi_get_cf(family, &keys, true);
        for (key, value) in keys.iter().zip(values) {
            take(answer, key, &value?.context("a row is missing")?)?;
        }
        Ok(())
    }

    fn scan(&mut self, answer: &mut Answer) -> Result<()> {
        let mut rows = self.db.raw_iterator_opt(ReadOptions::default());
        rows.seek_to_first();
        while let Some((key, value)) = rows.item() {
            take(answer, key, value)?;
            rows.next();
        }
        Ok(rows.status()?)
    }

    fn disk_bytes(&self) -> Result<u64> {
        let mut sum = 0;
        for file in std::fs::read_dir(&self.dir)? {
            let path = file?.path();
            if path.extension().is_some_and(|end| end == "sst") {
                sum += bytes_of(&path)?;
            }
        }
        Ok(sum)
    }
}
