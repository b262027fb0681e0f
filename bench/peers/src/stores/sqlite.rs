//! SQLite: a B-tree without row ids, through prepared statements.

use crate::content::wide_value;
use crate::reads::{Answer, Place};
use crate::store::{LAST_ROW, Store, bytes_of, ordered_key, take};
use anyhow::{Context, Result};
use rusqlite::config::DbConfig;
use rusqlite::{CachedStatement, Connection};
use std::ops::Range;
use std::path::{Path, PathBuf};

const TABLE: &str = "CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";
const INSERT: &str = "INSERT OR REPLACE INTO entries VALUES (?1, ?2)";
const FORWARD: &str = "SELECT key, value FROM entries WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3";
const REVERSED: &str =
    "SELECT key, value FROM entries WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT ?3";
const ONE: &str = "SELECT key, value FROM entries WHERE key = ?1";
const ALL: &str = "SELECT key, value FROM entries ORDER BY key";

/// One connection, which has the file to itself.
pub struct Sqlite {
    connection: Connection,
    file: PathBuf,
}

impl Sqlite {
    /// A database with so many MiB of page cache, its log not synced.
    pub fn create(dir: &Path, cache_mib: u64) -> Result<Sqlite> {
        let file = dir.join("entries.sqlite");
        let connection = Connection::open(&file)?;
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "cache_size", -((cache_mib << 10) as i64))?;
        // Else a statement with a bound LIMIT is planned again at each call.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.execute_batch(TABLE)?;
        Ok(Sqlite { connection, file })
    }

    /// What `work` does, as one transaction.
    fn together(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.connection.prepare_cached("BEGIN")?.execute([])?;
        work()?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

/// The rows of a statement, into the answer.
fn rows(
    statement: &mut CachedStatement<'_>,
    values: impl rusqlite::Params,
    answer: &mut Answer,
) -> Result<()> {
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        take(answer, row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?)?;
    }
    Ok(())
}

impl Store for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn about(&self) -> String {
        format!(
            "{}, WITHOUT ROWID, pages of 4 KiB, WAL, synchronous off, exclusive; a transaction each batch, written and \
             not synced",
            rusqlite::version()
        )
    }

    fn load(&mut self, partition: u64, rows: Range<u64>) -> Result<()> {
        self.together(|| {
            let mut insert = self.connection.prepare_cached(INSERT)?;
            for row in rows {
                insert.execute((ordered_key(partition, row), wide_value(partition, row)))?;
            }
            Ok(())
        })
    }

    fn settle(&mut self) -> Result<()> {
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    fn slice(&mut self, partition: u64, place: Place, limit: u64, answer: &mut Answer) -> Result<()> {
        let from = ordered_key(partition, place.first);
        let (sql, low, high) = match place.reversed {
            false => (FORWARD, from, ordered_key(partition, LAST_ROW)),
            true => (REVERSED, ordered_key(partition, 0), from),
        };
        rows(&mut self.connection.prepare_cached(sql)?, (low, high, limit as i64), answer)
    }

    fn names(&mut self, partition: u64, names: &[u64], answer: &mut Answer) -> Result<()> {
        let mut one = self.connection.prepare_cached(ONE)?;
        if let [row] = names {
            return rows(&mut one, [ordered_key(partition, *row)], answer);
        }
        self.together(|| {
            names.iter().try_for_each(|row| rows(&mut one, [ordered_key(partition, *row)], answer))
        })
    }

    fn scan(&mut self, answer: &mut Answer) -> Result<()> {
        rows(&mut self.connection.prepare_cached(ALL)?, [], answer)
    }

    fn disk_bytes(&self) -> Result<u64> {
        bytes_of(&self.file).context("the file of SQLite")
    }
}
