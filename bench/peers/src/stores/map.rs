//! The floor: std's B-tree map with everything in its nodes, without log, disk or versions.

use crate::content::{WIDE_VALUE, wide_value};
use crate::reads::{Answer, Place};
use crate::store::{KEY, LAST_ROW, Store, ordered_key, take};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ops::Range;

/// Ordered keys and values.
#[derive(Default)]
pub struct Map {
    rows: BTreeMap<[u8; KEY], [u8; WIDE_VALUE]>,
}

impl Store for Map {
    fn name(&self) -> &'static str {
        "BTreeMap"
    }

    fn about(&self) -> String {
        "std's, keys and values in the nodes; no log, no disk".into()
    }

    fn load(&mut self, partition: u64, rows: Range<u64>) -> Result<()> {
        for row in rows {
            self.rows.insert(ordered_key(partition, row), wide_value(partition, row));
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    fn slice(&mut self, partition: u64, place: Place, limit: u64, answer: &mut Answer) -> Result<()> {
        let (first, last) = (ordered_key(partition, 0), ordered_key(partition, LAST_ROW));
        let from = ordered_key(partition, place.first);
        let limit = limit as usize;
        match place.reversed {
            false => self.rows.range(from..=last).take(limit).try_for_each(|(k, v)| take(answer, k, v)),
            true => self.rows.range(first..=from).rev().take(limit).try_for_each(|(k, v)| take(answer, k, v)),
        }
    }

    fn names(&mut self, partition: u64, rows: &[u64], answer: &mut Answer) -> Result<()> {
        for row in rows {
            let key = ordered_key(partition, *row);
            take(answer, &key, self.rows.get(&key).context("a row is missing")?)?;
        }
        Ok(())
    }

    fn scan(&mut self, answer: &mut Answer) -> Result<()> {
        self.rows.iter().try_for_each(|(key, value)| take(answer, key, value))
    }

    fn disk_bytes(&self) -> Result<u64> {
        Ok(0)
    }
}
