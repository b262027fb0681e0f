//! Partitions.db: a trie from decorated keys (token and key, byte-comparable) to positions in Rows.db or Data.db.
//!
//! Of each key the trie contains the shortest prefix that distinguishes it from the keys before and after, so a hit is
//! only a candidate. One byte of the key's filter hash, stored with the position, rules out most absent keys; then the
//! reader compares the key that is stored at the position. Keys of the same token are distinguished too, because the
//! whole key follows the token.
//!
//! After the trie: the first and the last key (length in two bytes, bytes), then three `i64`: the offset of the first
//! key, the number of keys, the trie's root. Source: Cassandra's `PartitionIndexBuilder`, `PartitionIndex`.

#![deny(clippy::indexing_slicing)]

use super::PageCursor;
use crate::block::{BlockFile, ReadContext};
use crate::buffer::Block;
use crate::error::{Error, Result};
use crate::sequential_writer::{Finished, SequentialWriter};
use crate::trie::{Forward, TriePayload, TrieWriter, Walker, read_signed, signed_size, write_signed};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

const FOOTER_BYTES: u64 = 24;
/// Payload flag: a byte of the hash comes first. The other three bits are the position's length, less one if the flag
/// is set.
const FLAG_HASH_BYTE: u8 = 8;

/// Where a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPosition {
    /// The position of its entry in Rows.db.
    Rows(u64),
    /// The position of its start in Data.db. It has no row index.
    Data(u64),
}

impl IndexPosition {
    /// Rows.db positions are stored as they are, Data.db positions as their complement.
    fn to_stored(self) -> i64 {
        match self {
            IndexPosition::Rows(position) => position as i64,
            IndexPosition::Data(position) => !(position as i64),
        }
    }

    fn from_stored(stored: i64) -> IndexPosition {
        match u64::try_from(stored) {
            Ok(position) => IndexPosition::Rows(position),
            Err(_) => IndexPosition::Data(!stored as u64),
        }
    }
}

#[derive(Clone, Copy)]
struct Payload {
    stored: i64,
    hash_byte: u8,
}

impl TriePayload for Payload {
    fn size(&self) -> usize {
        1 + signed_size(self.stored)
    }
    fn flags(&self) -> u8 {
        FLAG_HASH_BYTE + (signed_size(self.stored) - 1) as u8
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.hash_byte);
        write_signed(self.stored, signed_size(self.stored), out);
    }
}

/// Writes Partitions.db.
///
/// A key is written when the next one is known, because its prefix must differ from both neighbours.
pub struct PartitionIndexBuilder {
    out: SequentialWriter,
    trie: TrieWriter<Payload>,
    last_key: Vec<u8>,
    last_payload: Option<Payload>,
    /// Length of the prefix that distinguishes the last key from the one before it.
    last_needs: usize,
}

impl PartitionIndexBuilder {
    /// Writes into an empty component.
    pub fn new(out: SequentialWriter) -> PartitionIndexBuilder {
        let last_key = Vec::new();
        PartitionIndexBuilder { out, trie: TrieWriter::new(), last_key, last_payload: None, last_needs: 0 }
    }

    /// Adds a partition. `decorated` is the byte-comparable form of token and key, and must be greater than the one
    /// before. `hash_byte` is the lowest byte of the second Murmur3 half of the key (`filter::hash_byte`).
    pub fn add(&mut self, decorated: &[u8], hash_byte: u8, position: IndexPosition) -> Result<()> {
        if self.last_payload.is_some() {
            let shared = self.last_key.iter().zip(decorated).take_while(|(a, b)| a == b).count();
            self.write_last(shared + 1)?;
            self.last_needs = shared + 1;
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(decorated);
        self.last_payload = Some(Payload { stored: position.to_stored(), hash_byte });
        Ok(())
    }

    /// Writes the rest of the trie and the serialised first and last key (empty without partitions), and syncs.
    pub fn finish(mut self, first_key: &[u8], last_key: &[u8]) -> Result<Finished> {
        self.write_last(0)?;
        let root = self.trie.finish(&mut self.out)?;
        let keys_at = self.out.position();
        for key in [first_key, last_key] {
            let len = u16::try_from(key.len()).map_err(|_| Error::Unsupported {
                file: self.out.path().to_owned(),
                what: format!("a partition key of {} bytes; the longest is 65535", key.len()),
            })?;
            self.out.write(&len.to_be_bytes())?;
            self.out.write(key)?;
        }
        for number in [keys_at, self.trie.count(), root] {
            self.out.write(&number.to_be_bytes())?;
        }
        self.out.finish()
    }

    fn write_last(&mut self, needs: usize) -> Result<()> {
        let Some(payload) = self.last_payload.take() else { return Ok(()) };
        let len = needs.max(self.last_needs).min(self.last_key.len());
        self.trie.add(self.last_key.get(..len).unwrap_or_default(), payload, &mut self.out)
    }
}

/// Reads Partitions.db. Shared by all readers of a table.
pub struct PartitionIndex {
    file: Arc<BlockFile>,
    root: u64,
    key_count: u64,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    /// The page of the root, once it was read. The searches of all threads begin in it.
    root_page: OnceLock<Block>,
}

impl PartitionIndex {
    /// Opens the component: reads the footer and both keys.
    pub fn open(file: BlockFile, cx: &mut ReadContext) -> Result<PartitionIndex> {
        let size = file.size();
        let footer_at = size.checked_sub(FOOTER_BYTES).ok_or_else(|| file.corrupt(0, "the footer is cut"))?;
        let mut cursor = PageCursor::new(&file, footer_at);
        let keys_at = cursor.u64(cx)?;
        let key_count = cursor.u64(cx)?;
        let root = cursor.u64(cx)?;
        if keys_at >= footer_at || root >= keys_at {
            return Err(file.corrupt(footer_at, "the footer points outside the file"));
        }
        let mut cursor = PageCursor::new(&file, keys_at);
        let first_key = cursor.short_bytes(cx)?;
        let last_key = cursor.short_bytes(cx)?;
        if cursor.position() != footer_at {
            return Err(file.corrupt(keys_at, "the first and last key do not end at the footer"));
        }
        let (file, root_page) = (Arc::new(file), OnceLock::new());
        Ok(PartitionIndex { file, root, key_count, first_key, last_key, root_page })
    }

    /// The first partition key, serialised.
    pub fn first_key(&self) -> &[u8] {
        &self.first_key
    }

    /// The last partition key, serialised.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// The number of partitions.
    pub fn key_count(&self) -> u64 {
        self.key_count
    }

    /// The component.
    pub fn file(&self) -> &Arc<BlockFile> {
        &self.file
    }

    /// The position at which the partition may be. It is right for a partition that the table contains; for others it
    /// may be the position of another partition, so the caller must compare the key that it finds there.
    pub fn lookup(
        &self,
        decorated: &[u8],
        hash_byte: u8,
        cx: &mut ReadContext,
    ) -> Result<Option<IndexPosition>> {
        let mut walker = match self.root_page.get() {
            Some(page) => Walker::in_page(&*self.file, self.root, page.clone(), cx)?,
            None => {
                let walker = Walker::new(&*self.file, self.root, cx)?;
                self.root_page.get_or_init(|| walker.block().clone());
                walker
            }
        };
        let whole = walker.follow(decorated, cx)?;
        // An entry with children can only be that of a key whose bytes end there.
        if !whole && walker.range() > 0 {
            return Ok(None);
        }
        Ok(read_payload(&walker)?
            .filter(|found| found.1.is_none_or(|stored| stored == hash_byte))
            .map(|f| f.0))
    }

    /// All partitions in order, from the first that may be `decorated` or greater, or from the first of all without a
    /// bound. The first one returned may be less than the bound, because the trie contains only prefixes; the caller
    /// must compare its key.
    pub fn iter_from(&self, decorated: Option<&[u8]>, cx: &mut ReadContext) -> Result<PartitionIter> {
        let mut walker = Walker::new(self.file.clone(), self.root, cx)?;
        let mut forward = Forward::default();
        let landing = forward.start_after(&mut walker, decorated.unwrap_or_default(), cx)?;
        Ok(PartitionIter { walker, forward, first: landing.prefix(), left: self.key_count })
    }
}

/// Positions of partitions in key order.
pub struct PartitionIter {
    walker: Walker<Arc<BlockFile>>,
    forward: Forward,
    first: Option<u64>,
    /// The number of entries that may still come. It limits the walk through a damaged trie, in which many pointers may
    /// lead to one node.
    left: u64,
}

impl PartitionIter {
    /// The position of the next partition. It can be called again after `WouldBlock`.
    pub fn next(&mut self, cx: &mut ReadContext) -> Result<Option<IndexPosition>> {
        if let Some(first) = self.first {
            self.walker.go(first, cx)?;
            self.first = None;
        } else if !self.forward.advance(&mut self.walker, cx)? {
            return Ok(None);
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Err(self.walker.corrupt("there are more partitions than the footer says"));
        };
        self.left = left;
        match read_payload(&self.walker)? {
            Some((position, _)) => Ok(Some(position)),
            None => Err(self.walker.corrupt("a partition without a position")),
        }
    }
}

/// The position and the hash byte that the walker's node contains.
fn read_payload<F>(walker: &Walker<F>) -> Result<Option<(IndexPosition, Option<u8>)>>
where
    F: Deref<Target = BlockFile>,
{
    let flags = walker.payload_flags();
    if flags == 0 {
        return Ok(None);
    }
    let found = if flags & FLAG_HASH_BYTE == 0 {
        (walker.payload(usize::from(flags))?, None)
    } else {
        match walker.payload(usize::from(flags - FLAG_HASH_BYTE) + 2)? {
            [hash_byte, position @ ..] => (position, Some(*hash_byte)),
            [] => return Ok(None),
        }
    };
    Ok(Some((IndexPosition::from_stored(read_signed(found.0)), found.1)))
}
