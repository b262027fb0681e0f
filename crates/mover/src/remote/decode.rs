//! Reads the rows of an answer to the SELECTs of `texts`.

use super::row::{SeenCell, SeenRow, Times};
use super::texts::{ReadColumn, ReadTexts};
use crate::error::MoveError;
use crate::source::clustering_of;
use helenus_model::deletion::NO_EXPIRY;
use helenus_model::partitions::PartitionKey;
use helenus_model::types::{CqlType, Elements};
use helenus_wire::native::Rows;
use std::sync::Arc;

/// Reads page after page of one SELECT. A partition's static row is given once, before its rows.
pub(super) struct Decoder<'d> {
    texts: &'d ReadTexts,
    partition: Option<Arc<PartitionKey>>,
}

type Cells<'a> = [Option<&'a [u8]>];
/// WRITETIME and TTL of a column: each a number, a list of numbers, or null.
type TimeValues<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

impl<'d> Decoder<'d> {
    pub(super) fn new(texts: &'d ReadTexts) -> Decoder<'d> {
        Decoder { texts, partition: None }
    }

    /// The rows of a page. `now_s`: the time of the read, from which TTLs count.
    ///
    /// # Errors
    /// The answer does not fit the SELECT.
    pub(super) fn page(&mut self, rows: &Rows<'_>, now_s: i64) -> Result<Vec<SeenRow>, MoveError> {
        let table = self.texts.table();
        let mut seen = Vec::with_capacity(rows.row_count);
        for row in rows.iter() {
            let row = row.map_err(|error| self.wrong(&error.to_string()))?;
            let cells: Vec<Option<&[u8]>> = row.cells().collect();
            let (keys, rest) = cells
                .split_at_checked(table.partition_key.len())
                .ok_or_else(|| self.wrong("it has too few columns"))?;
            let (clustering, rest) = rest
                .split_at_checked(self.texts.clustering)
                .ok_or_else(|| self.wrong("it has too few columns"))?;
            let keys: Option<Vec<&[u8]>> = keys.iter().copied().collect();
            let key = serialised_key(&keys.ok_or_else(|| self.wrong("a key is null"))?);
            let known = self.partition.clone().filter(|known| known.bytes == key);
            let is_new = known.is_none();
            let partition = known.unwrap_or_else(|| Arc::new(PartitionKey::new(key)));
            self.partition = Some(Arc::clone(&partition));
            let (statics, regulars) = self.cells(rest, now_s)?;
            if is_new && !statics.is_empty() {
                seen.push(SeenRow::new(table, &partition, None, statics).map_err(|error| self.row(error))?);
            }
            // A partition without rows is shown by one without clustering.
            if !clustering.is_empty() && clustering.iter().all(Option::is_none) {
                continue;
            }
            // All that is shown of a compact table without declared clustering is in its static row.
            if clustering.len() < table.clustering.len() {
                continue;
            }
            let values = clustering_of(table, clustering.iter().copied()).map_err(|error| self.row(error))?;
            let row = SeenRow::new(table, &partition, Some(values), regulars);
            seen.push(row.map_err(|error| self.row(error))?);
        }
        Ok(seen)
    }

    /// The static and the regular cells.
    fn cells(&self, mut rest: &Cells<'_>, now_s: i64) -> Result<(Vec<SeenCell>, Vec<SeenCell>), MoveError> {
        let (mut statics, mut regulars) = (Vec::new(), Vec::new());
        for column in &self.texts.columns {
            let (cells, after) = rest
                .split_at_checked(if column.has_times { 3 } else { 1 })
                .ok_or_else(|| self.wrong("it has too few columns"))?;
            rest = after;
            let out = if column.is_static { &mut statics } else { &mut regulars };
            match *cells {
                [Some(value)] => self.column((column, value), None, now_s, out)?,
                [Some(value), written, ttl] => {
                    self.column((column, value), Some((written, ttl)), now_s, out)?
                }
                _ => {}
            }
        }
        Ok((statics, regulars))
    }

    /// Appends the cells of a column.
    fn column(
        &self,
        (column, value): (&ReadColumn, &[u8]),
        times: Option<TimeValues<'_>>,
        now_s: i64,
        out: &mut Vec<SeenCell>,
    ) -> Result<(), MoveError> {
        let wrong = || self.wrong(&format!("column {} has other times than values", column.name));
        if !column.ty.is_multi_cell() {
            let times = match times {
                None => None,
                Some((written, ttl)) => Some(times_of(written, ttl, now_s).ok_or_else(wrong)?),
            };
            out.push(SeenCell { column: column.id, path: Vec::new(), value: value.to_vec(), times });
            return Ok(());
        }
        let all = |bytes: Option<&[u8]>| -> Vec<Option<Vec<u8>>> {
            Elements::of_list(bytes.unwrap_or_default()).map(|one| one.map(<[u8]>::to_vec)).collect()
        };
        let lists = times.map(|(written, ttls)| (all(written), all(ttls)));
        for (at, path, value) in parts(&column.ty, value) {
            let times = match &lists {
                None => None,
                Some((written, ttls)) => {
                    let of = |list: &Vec<Option<Vec<u8>>>| list.get(at).cloned().flatten();
                    let (written, ttl) = (of(written), of(ttls));
                    Some(times_of(written.as_deref(), ttl.as_deref(), now_s).ok_or_else(wrong)?)
                }
            };
            out.push(SeenCell { column: column.id, path, value, times });
        }
        Ok(())
    }

    fn wrong(&self, what: &str) -> MoveError {
        let table = self.texts.table();
        MoveError::Table(format!(
            "{}.{}: the cluster's answer is not what was asked for: {what}",
            table.keyspace, table.name
        ))
    }

    fn row(&self, error: crate::source::SourceError) -> MoveError {
        let table = self.texts.table();
        MoveError::Row { table: format!("{}.{}", table.keyspace, table.name), error }
    }
}

/// The serialised key of a partition; of several columns each with its length and an end byte (`CompositeType`).
pub(crate) fn serialised_key(values: &[&[u8]]) -> Vec<u8> {
    if let [value] = values {
        return value.to_vec();
    }
    let mut key = Vec::new();
    for value in values {
        key.extend_from_slice(&(value.len() as u16).to_be_bytes());
        key.extend_from_slice(value);
        key.push(0);
    }
    key
}

fn times_of(written: Option<&[u8]>, ttl: Option<&[u8]>, now_s: i64) -> Option<Times> {
    let timestamp_us = i64::from_be_bytes(*written?.first_chunk()?);
    let expires_s = match ttl {
        None => NO_EXPIRY,
        Some(ttl) => now_s + i64::from(i32::from_be_bytes(*ttl.first_chunk()?)),
    };
    Some(Times { timestamp_us, expires_s })
}

/// The cells of a value of several cells: the place among its times, path and value.
pub(super) fn parts(ty: &CqlType, value: &[u8]) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let own = |bytes: Option<&[u8]>| bytes.unwrap_or_default().to_vec();
    match ty {
        CqlType::Map { .. } => {
            let all: Vec<Option<&[u8]>> = Elements::of_map(value).collect();
            let entries = all.as_chunks::<2>().0.iter().enumerate();
            entries.map(|(at, [key, value])| (at, own(*key), own(*value))).collect()
        }
        CqlType::Set { .. } => {
            Elements::of_list(value).enumerate().map(|(at, element)| (at, own(element), Vec::new())).collect()
        }
        CqlType::List { .. } => {
            Elements::of_list(value).enumerate().map(|(at, element)| (at, Vec::new(), own(element))).collect()
        }
        _ => fields(value),
    }
}

/// The fields of a user type that are not null; their paths are their positions.
fn fields(mut rest: &[u8]) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut at = 0_u16;
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        rest = after;
        if let Ok(len) = usize::try_from(i32::from_be_bytes(*len)) {
            let Some((value, after)) = rest.split_at_checked(len) else { break };
            found.push((usize::from(at), at.to_be_bytes().to_vec(), value.to_vec()));
            rest = after;
        }
        at += 1;
    }
    found
}
