//! Writes of one partition that are sent as one request.

use super::TableTarget;
use crate::source::{PART_BYTES, Write, in_parts};
use helenus_model::token::Token;
use std::sync::Arc;

/// A batch is sent when its writes have so many bytes. A target counts batches of one partition as one mutation, which may be
/// far larger; small ones keep its memory and its latency low.
const BATCH_BYTES: usize = 16 << 10;
/// Or when it has so many writes.
const BATCH_WRITES: usize = 128;

/// Writes of one partition, sent as one request.
#[derive(Clone)]
pub(crate) struct Batch {
    pub(crate) table: Arc<TableTarget>,
    pub(crate) token: Token,
    pub(crate) writes: Vec<Write>,
    /// Bytes of the writes, about.
    pub(crate) bytes: usize,
    /// Rows, markers and partition deletions that it comes from.
    pub(crate) rows: u64,
}

impl Batch {
    pub(crate) fn new(table: &Arc<TableTarget>, key: &[u8]) -> Batch {
        let token = Token::of_key(key);
        Batch { table: Arc::clone(table), token, writes: Vec::new(), bytes: 0, rows: 0 }
    }

    /// Counts the bytes of the writes from `from` on.
    pub(crate) fn count(&mut self, from: usize) {
        self.bytes += self.writes.iter().skip(from).map(Write::bytes).sum::<usize>();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES || self.writes.len() >= BATCH_WRITES
    }

    /// The batch in parts of about `PART_BYTES`, in order; one `None` if it is small enough as it is.
    pub(crate) fn parts(&self) -> Vec<Option<Batch>> {
        if self.bytes <= PART_BYTES {
            return vec![None];
        }
        let mut parts = vec![self.clone_head()];
        let table = self.table.as_there();
        for write in self.writes.iter().flat_map(|write| in_parts(table, write, PART_BYTES)) {
            if parts.last().is_some_and(|part| part.bytes > 0 && part.bytes + write.bytes() > PART_BYTES) {
                parts.push(self.clone_head());
            }
            if let Some(part) = parts.last_mut() {
                part.bytes += write.bytes();
                part.writes.push(write);
            }
        }
        parts.into_iter().map(Some).collect()
    }

    /// A batch of the same partition without writes.
    pub(crate) fn clone_head(&self) -> Batch {
        let (table, token) = (Arc::clone(&self.table), self.token);
        Batch { table, token, writes: Vec::new(), bytes: 0, rows: 0 }
    }
}
