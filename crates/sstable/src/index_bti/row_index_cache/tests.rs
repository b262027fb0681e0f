//! Tests that the row index cache gives the same answers as the tries it is loaded from.

use super::super::{
    CachedBlocks, IndexBlock, IndexPosition, PartitionEnd, RowIndexEntry, RowIndexReader, RowIndexWriter,
};
use super::*;
use crate::buffer::BufferPool;
use crate::data::test_random::Random;
use crate::sequential_writer::SequentialWriter;
use crate::trie::test_file::{MemoryFile, block_file_with, blocking};
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::AFTER_ALL;
use std::collections::BTreeSet;
use std::path::Path;

/// A partition with a block for each pair of keys, which begins with the first and ends with the second.
struct Wide {
    key: PartitionKey,
    keys: Vec<Vec<u8>>,
    has_open: bool,
}

impl Wide {
    fn new(key: &str, keys: impl IntoIterator<Item = Vec<u8>>) -> Wide {
        let keys: BTreeSet<Vec<u8>> = keys.into_iter().collect();
        let mut keys: Vec<Vec<u8>> = keys.into_iter().collect();
        keys.truncate(keys.len() / 2 * 2);
        Wide { key: PartitionKey::new(key.as_bytes().to_vec()), keys, has_open: key.contains("open") }
    }

    fn block(&self, number: usize) -> (u64, Option<DeletionTime>) {
        let open = DeletionTime { timestamp_us: number as i64, local_s: 7 };
        (20 + 100 * number as u64, (self.has_open && number % 3 == 1).then_some(open))
    }
}

/// The bytes of Rows.db for some partitions, and the position of each entry.
fn written(partitions: &[Wide]) -> (Vec<u8>, Vec<u64>) {
    let file = MemoryFile::empty();
    let mut writer = RowIndexWriter::new(SequentialWriter::on(file.clone(), Path::new("Rows.db"), false));
    let mut entries = Vec::new();
    for partition in partitions {
        for (number, pair) in partition.keys.chunks(2).enumerate() {
            let (offset, open) = partition.block(number);
            writer.add_block(&pair[0], &pair[1], offset, open).unwrap();
        }
        let end = PartitionEnd {
            key: &partition.key.bytes,
            data_position: 0,
            deletion: DeletionTime::LIVE,
            end_offset: partition.block(partition.keys.len() / 2).0,
        };
        match writer.finish_partition(&end).unwrap() {
            IndexPosition::Rows(at) => entries.push(at),
            found => panic!("{found:?} of a partition of many blocks"),
        }
    }
    writer.finish().unwrap();
    (file.bytes(), entries)
}

/// An open Rows.db whose pages are all in the buffer pool.
struct Opened {
    rows: Arc<BlockFile>,
    row_index_cache: RowIndexCache,
    budget: Arc<Budget>,
}

impl Opened {
    fn new(bytes: Vec<u8>, memory: u64) -> Opened {
        Opened::without_page(bytes, memory, u64::MAX)
    }

    /// One page is not in the buffer pool.
    fn without_page(bytes: Vec<u8>, memory: u64, absent: u64) -> Opened {
        let rows = Arc::new(block_file_with(bytes, BufferPool::new(64 << 20)));
        let budget = Arc::new(Budget::with(0, memory));
        let opened = Opened { rows, row_index_cache: RowIndexCache::new(budget.clone()), budget };
        let pages = opened.rows.size().div_ceil(opened.rows.block_bytes() as u64);
        (0..pages).filter(|page| *page != absent).for_each(|page| opened.read_page(page));
        opened
    }

    fn read_page(&self, page: u64) {
        self.rows.block(page, &mut ReadContext { fill_cache: true, ..blocking() }).unwrap();
    }

    fn left(&self) -> u64 {
        self.budget.left(Share::RowIndexes)
    }

    fn entry(&self, at: u64) -> RowIndexEntry {
        RowIndexEntry::read(&self.rows, at, &mut blocking()).unwrap().1
    }

    fn record_read(&self, key: &PartitionKey, entry: &RowIndexEntry) {
        let cx = ReadContext { fill_cache: true, ..ReadContext::default() };
        self.row_index_cache.record_read(key, (&self.rows, entry), &cx);
    }

    /// Reads a partition often enough to load it. Returns its slot, if it was loaded.
    fn learn(&self, key: &PartitionKey, entry: &RowIndexEntry) -> Option<usize> {
        let steps = (entry.block_count as usize + 2) / STEP + 1;
        (0..READS_MIN as usize + steps).for_each(|_| self.record_read(key, entry));
        let (slot, found) = self.row_index_cache.find(key)?;
        assert_eq!(found, entry);
        Some(slot)
    }
}

/// Checks that the cache and the trie answer the same. Returns the number of answers that came from the cache.
fn assert_alike(opened: &Opened, (slot, entry): (usize, &RowIndexEntry), bounds: &[Vec<u8>]) -> u64 {
    let cx = &mut blocking();
    let at = (&opened.row_index_cache, &opened.rows);
    let mut known = CachedBlocks::new(slot);
    let mut trie = RowIndexReader::new(opened.rows.clone(), entry, cx).unwrap();
    let mut own = blocking();
    for bound in bounds {
        let found = known.floor_start(at, bound, &mut own).unwrap();
        assert_eq!(found, trie.floor_start(bound, cx).unwrap(), "{bound:02x?}");
        let found: Option<IndexBlock> = known.floor_reversed(at, bound, &mut own).unwrap();
        assert_eq!(found, trie.floor_reversed(bound, cx).unwrap(), "{bound:02x?}");
        for _ in 0..3 {
            assert_eq!(known.previous(at, &mut own).unwrap(), trie.previous(cx).unwrap(), "{bound:02x?}");
        }
    }
    let mut block = known.floor_reversed(at, AFTER_ALL, &mut own).unwrap();
    assert_eq!(block, trie.floor_reversed(AFTER_ALL, cx).unwrap());
    let mut blocks = 0;
    while block.is_some() {
        blocks += 1;
        block = known.previous(at, &mut own).unwrap();
        assert_eq!(block, trie.previous(cx).unwrap());
    }
    assert_eq!(blocks, entry.block_count);
    own.touched.index_blocks_cached
}

/// The keys themselves, and bounds near them.
fn bounds(keys: &[Vec<u8>], random: &mut Random) -> Vec<Vec<u8>> {
    let mut bounds = vec![Vec::new(), AFTER_ALL.to_vec(), vec![0], vec![0xFF; 20]];
    for key in keys {
        bounds.push(key.clone());
        bounds.push(key[..random.below(key.len() as u64 + 1) as usize].to_vec());
        bounds.push([key, &[0][..]].concat());
        let mut other = key.clone();
        let at = random.below(key.len() as u64) as usize;
        other[at] = other[at].wrapping_add(1 + random.below(3) as u8);
        bounds.push(other);
    }
    bounds
}

fn names(count: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(|number| format!("\x40{number:010}\x20").into_bytes())
}

#[test]
fn what_is_in_memory_leads_where_the_trie_does() {
    let random = &mut Random(1);
    let drawn = |alphabet: u64, lengths: (u64, u64), count: usize, random: &mut Random| {
        let key = |random: &mut Random| -> Vec<u8> {
            let len = lengths.0 + random.below(lengths.1 - lengths.0 + 1);
            // No key is a prefix of another, because no byte inside is 0.
            let byte = |_| ((256 - alphabet + random.below(alphabet)) as u8).max(1);
            [0x40].into_iter().chain((0..len).map(byte)).chain([0]).collect()
        };
        (0..count).map(|_| key(random)).collect::<Vec<_>>()
    };
    let mut partitions = vec![
        Wide::new("few", names(40)),
        Wide::new("names", names(3_000)),
        Wide::new("names, open", names(3_000)),
        Wide::new("more than one step", names(40_000)),
    ];
    for (name, alphabet, lengths) in [
        ("bytes", 256, (1, 12)),
        ("bytes, open", 256, (1, 12)),
        ("few bytes", 3, (1, 20)),
        ("two bytes", 2, (2, 40)),
        ("greatest bytes", 1, (1, 900)),
    ] {
        partitions.push(Wide::new(name, drawn(alphabet, lengths, 900, random)));
    }
    // All share more first bytes than a key prefix has.
    partitions.push(Wide::new("alike", names(600).map(|name| [&[0x40; 30][..], &name].concat())));
    let halves =
        (0..600).map(|number: u64| [&[0x40 + number as u8 % 2; 30][..], &number.to_be_bytes()].concat());
    partitions.push(Wide::new("two alike", halves));
    let (bytes, entries) = written(&partitions);
    let mut known = Vec::new();
    for (partition, at) in partitions.iter().zip(entries) {
        // Each with a cache of its own, because partitions may share a slot.
        let opened = Opened::new(bytes.clone(), 1 << 30);
        let entry = opened.entry(at);
        let Some(slot) = opened.learn(&partition.key, &entry) else { continue };
        let bounds = bounds(&partition.keys[..partition.keys.len().min(2_000)], random);
        let from_memory = assert_alike(&opened, (slot, &entry), &bounds);
        known.push((String::from_utf8(partition.key.bytes.clone()).unwrap(), from_memory > 0));
    }
    let known: Vec<&str> = known.iter().filter(|(_, found)| *found).map(|(name, _)| &**name).collect();
    for name in ["few", "names", "names, open", "more than one step", "bytes", "bytes, open", "alike"] {
        assert!(known.contains(&name), "{name} is not known, but {known:?}");
    }
    assert!(!known.contains(&"two alike"), "heads that tell nothing apart were kept");
}

#[test]
fn a_partition_is_known_after_some_reads_and_not_for_one() {
    let partitions = [Wide::new("a", names(600)), Wide::new("short", names(20))];
    let (bytes, entries) = written(&partitions);
    let opened = Opened::new(bytes, 1 << 20);
    let entry = opened.entry(entries[0]);
    // Reads that do not fill the cache are not counted.
    (0..100).for_each(|_| {
        opened.row_index_cache.record_read(&partitions[0].key, (&opened.rows, &entry), &blocking())
    });
    for _ in 1..READS_MIN {
        opened.record_read(&partitions[0].key, &entry);
    }
    assert!(opened.row_index_cache.find(&partitions[0].key).is_none());
    assert!(opened.learn(&partitions[0].key, &entry).is_some());
    let stranger = PartitionKey::new(b"stranger".to_vec());
    assert!(opened.row_index_cache.find(&stranger).is_none());
    assert!(opened.learn(&partitions[1].key, &opened.entry(entries[1])).is_none());
}

#[test]
fn partitions_that_are_read_once_do_not_keep_out_one_that_is_read_again() {
    let partitions: Vec<Wide> = (0..400).map(|number| Wide::new(&format!("p{number}"), names(40))).collect();
    let (bytes, entries) = written(&partitions);
    let opened = Opened::new(bytes, 1 << 30);
    let entries: Vec<RowIndexEntry> = entries.into_iter().map(|at| opened.entry(at)).collect();
    for (partition, entry) in partitions.iter().zip(&entries) {
        opened.record_read(&partition.key, entry);
    }
    // The two do not get in each other's way.
    for number in [3, 77] {
        let slot = opened.learn(&partitions[number].key, &entries[number]);
        assert!(slot.is_some(), "partition {number} is not known");
    }
}

#[test]
fn memory_is_asked_for_and_given_back() {
    let partitions = [Wide::new("a", names(600)), Wide::new("b", names(600))];
    let (bytes, entries) = written(&partitions);
    let enough = 4 * STEP_BYTES + 1_000;
    let opened = Opened::new(bytes, enough);
    let entries: Vec<RowIndexEntry> = entries.into_iter().map(|at| opened.entry(at)).collect();
    assert!(opened.learn(&partitions[0].key, &entries[0]).is_some());
    assert_eq!(enough - opened.left(), 301 * SEPARATOR_BYTES);
    // The rest is enough for a step or two but not for all separators, so loading does not begin.
    let mut others = Reserved::none(&opened.budget, Share::RowIndexes);
    assert!(others.grow(opened.left() - STEP_BYTES - 1_000));
    for _ in 0..2 * READS_MIN {
        opened.record_read(&partitions[1].key, &entries[1]);
        assert_eq!(opened.left(), STEP_BYTES + 1_000);
    }
    assert!(opened.row_index_cache.find(&partitions[1].key).is_none());
    drop(others);
    let Opened { row_index_cache, budget, .. } = opened;
    drop(row_index_cache);
    assert_eq!(budget.left(Share::RowIndexes), enough);
}

#[test]
fn a_page_that_is_not_in_memory_is_not_waited_for() {
    let partitions = [Wide::new("a", names(20_000))];
    let (bytes, entries) = written(&partitions);
    let opened = Opened::without_page(bytes, 1 << 20, 3);
    let entry = opened.entry(entries[0]);
    assert!(opened.learn(&partitions[0].key, &entry).is_none());
    opened.read_page(3);
    assert!(opened.learn(&partitions[0].key, &entry).is_some());
}

#[test]
fn a_damaged_index_is_left_to_the_trie() {
    let partitions = [Wide::new("a, open", names(80))];
    let (bytes, entries) = written(&partitions);
    let mut known = 0;
    for at in 0..bytes.len() {
        for flip in [0x01, 0x10, 0x80, 0xFF] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            let opened = Opened::new(damaged, 1 << 20);
            let Ok((_, entry)) = RowIndexEntry::read(&opened.rows, entries[0], &mut blocking()) else {
                continue;
            };
            let Some(slot) = opened.learn(&partitions[0].key, &entry) else { continue };
            known += 1;
            // Nothing panics, blocks ascend, and if the trie has an answer, the cache has the same.
            let mut blocks = CachedBlocks::new(slot);
            let (at, cx) = ((&opened.row_index_cache, &opened.rows), &mut blocking());
            let mut trie = RowIndexReader::new(opened.rows.clone(), &entry, &mut blocking()).unwrap();
            for key in &partitions[0].keys {
                let found = blocks.floor_start(at, key, cx);
                if let (Ok(found), Ok(expected)) = (found, trie.floor_start(key, &mut blocking())) {
                    assert_eq!(found, expected);
                }
            }
            let mut end = u64::MAX;
            let mut block = blocks.floor_reversed(at, AFTER_ALL, cx).unwrap_or_default();
            while let Some(now) = block {
                assert!(now.offset < now.end && now.end <= end);
                end = now.offset;
                block = blocks.previous(at, cx).unwrap_or_default();
            }
        }
    }
    assert!(known > 100, "{known} damaged indexes were read into memory");
}
