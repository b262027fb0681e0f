//! Stores by name.

use super::{Helenus, lmdb::Lmdb, map::Map, rocks::Rocks, sqlite::Sqlite};
use crate::Options;
use crate::store::Store;
use anyhow::{Result, bail};
use std::path::Path;

/// Makes a store in a new folder of `dir`, fit for so many rows.
pub fn open(name: &str, dir: &Path, rows: u64, options: &Options) -> Result<Box<dyn Store>> {
    let dir = dir.join(name);
    std::fs::create_dir_all(&dir)?;
    Ok(match name {
        "helenus" => Box::new(Helenus::create(&dir, rows, options.granularity.as_deref())?),
        "rocksdb" => Box::new(Rocks::create(&dir, options.cache)?),
        "lmdb" => Box::new(Lmdb::create(&dir, rows)?),
        "sqlite" => Box::new(Sqlite::create(&dir, options.cache)?),
        "map" => Box::new(Map::default()),
        other => bail!("no store is named `{other}`; there are helenus, rocksdb, lmdb, sqlite and map"),
    })
}
