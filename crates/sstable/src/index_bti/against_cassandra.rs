//! Tests that our index writers write the same bytes as Cassandra's for the same keys, and that our readers find every
//! key.
//!
//! The sizes and checksums here were printed by `tests/fixtures/bti/MakeIndexes.java` on Cassandra 5.0.6; the keys are
//! generated in the same way as there. If `HELENUS_BTI_GOLDEN` names the folder of its files, the files are compared
//! byte by byte, which shows where they differ.

use super::{IndexBlock, IndexPosition, PartitionEnd, PartitionIndex, PartitionIndexBuilder};
use super::{RowIndexEntry, RowIndexReader, RowIndexWriter};
use crate::checksum::crc32;
use crate::filter::hash_byte;
use crate::sequential_writer::SequentialWriter;
use crate::trie::test_file::{MemoryFile, block_file, blocking};
use helenus_model::deletion::DeletionTime;
use helenus_model::filter::AFTER_ALL;
use helenus_model::murmur3::murmur3_x64_128;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The random numbers of SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = self.0;
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn bytes(&mut self, (min, max): (u64, u64), alphabet: u64) -> Vec<u8> {
        let len = min + self.below(max - min + 1);
        (0..len).map(|_| 255 - self.below(alphabet) as u8).collect()
    }
}

struct Golden {
    name: &'static str,
    size: usize,
    crc: u32,
}

fn golden(name: &'static str, size: usize, crc: u32) -> Golden {
    Golden { name, size, crc }
}

impl Golden {
    fn assert_is(&self, bytes: &[u8]) {
        if let Some(folder) = std::env::var_os("HELENUS_BTI_GOLDEN") {
            let theirs = std::fs::read(Path::new(&folder).join(self.name)).unwrap();
            let differs = theirs.iter().zip(bytes).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{} differs from Cassandra's", self.name);
        }
        assert_eq!((bytes.len(), crc32(bytes)), (self.size, self.crc), "{}", self.name);
    }
}

/// The ordered encoding of a byte string inside a sequence. The tests' strings contain no zero bytes, so nothing is
/// escaped.
fn component(bytes: &[u8]) -> impl Iterator<Item = u8> {
    [0x40].into_iter().chain(bytes.iter().copied()).chain([0])
}

fn decorated(token: i64, key: &[u8]) -> Vec<u8> {
    let token = (token as u64 ^ 1 << 63).to_be_bytes();
    [0x40].into_iter().chain(token).chain(component(key)).chain([0x38]).collect()
}

fn clustering(bytes: &[u8]) -> Vec<u8> {
    component(bytes).chain([0x38]).collect()
}

struct Partitions {
    count: u64,
    lengths: (u64, u64),
    alphabet: u64,
    /// 0 for the Murmur3 tokens, otherwise the number of different tokens.
    tokens: u64,
    step: u64,
}

struct Partition {
    key: Vec<u8>,
    hash_byte: u8,
    position: IndexPosition,
}

impl Partitions {
    fn draw(&self) -> BTreeMap<Vec<u8>, Partition> {
        let random = &mut Random(self.count);
        let mut keys = BTreeSet::new();
        for _ in 0..self.count {
            let key = random.bytes(self.lengths, self.alphabet);
            let token =
                if self.tokens == 0 { murmur3_x64_128(&key, 0).0 } else { random.below(self.tokens) as i64 };
            keys.insert((decorated(token, &key), key));
        }
        let mut at = 0;
        let partition = |(decorated, key): (Vec<u8>, Vec<u8>)| {
            let position =
                if random.below(3) == 0 { IndexPosition::Rows(at) } else { IndexPosition::Data(at) };
            at += 1 + random.below(self.step);
            let hash_byte = hash_byte(murmur3_x64_128(&key, 0).1);
            (decorated, Partition { key, hash_byte, position })
        };
        keys.into_iter().map(partition).collect()
    }

    fn check(&self, golden: &Golden) {
        let partitions = self.draw();
        let file = MemoryFile::empty();
        let out = SequentialWriter::on(file.clone(), Path::new("Partitions.db"), false);
        let mut builder = PartitionIndexBuilder::new(out);
        for (decorated, partition) in &partitions {
            builder.add(decorated, partition.hash_byte, partition.position).unwrap();
        }
        let first = &partitions.values().next().unwrap().key;
        let last = &partitions.values().next_back().unwrap().key;
        builder.finish(first, last).unwrap();
        let bytes = file.bytes();
        golden.assert_is(&bytes);

        let cx = &mut blocking();
        let index = PartitionIndex::open(block_file(bytes), cx).unwrap();
        assert_eq!(index.key_count(), partitions.len() as u64);
        assert_eq!((index.first_key(), index.last_key()), (first.as_slice(), last.as_slice()));
        let positions: Vec<_> = partitions.values().map(|partition| partition.position).collect();
        for (decorated, partition) in partitions.iter().step_by(partitions.len().div_ceil(50_000)) {
            let found = index.lookup(decorated, partition.hash_byte, cx).unwrap();
            assert_eq!(found, Some(partition.position));
            assert_eq!(index.lookup(decorated, !partition.hash_byte, cx).unwrap(), None);
        }
        let step = positions.len().div_ceil(100);
        let bounds = partitions.keys().step_by(step).map(|key| Some(key.as_slice()));
        for (n, bound) in [None].into_iter().chain(bounds).enumerate() {
            let expected = &positions[n.saturating_sub(1) * step..];
            let expected = if n == 0 { expected } else { &expected[..expected.len().min(300)] };
            let mut iter = index.iter_from(bound, cx).unwrap();
            for position in expected {
                assert_eq!(iter.next(cx).unwrap(), Some(*position));
            }
            if n == 0 {
                assert_eq!(iter.next(cx).unwrap(), None);
            }
        }
    }
}

struct Rows {
    partitions: u64,
    blocks: usize,
    lengths: (u64, u64),
    alphabet: u64,
    step: u64,
}

struct Block {
    first: Vec<u8>,
    last: Vec<u8>,
    offset: u64,
    open: Option<DeletionTime>,
}

struct WidePartition {
    key: Vec<u8>,
    blocks: Vec<Block>,
    end: u64,
    deletion: DeletionTime,
}

impl Rows {
    fn draw(&self, random: &mut Random) -> WidePartition {
        let mut keys = BTreeSet::new();
        while keys.len() < 2 * self.blocks {
            keys.insert(clustering(&random.bytes(self.lengths, self.alphabet)));
        }
        let (mut blocks, mut end) = (Vec::new(), 30);
        let mut keys = keys.into_iter();
        while let (Some(first), Some(last)) = (keys.next(), keys.next()) {
            let open = (random.below(10) == 0).then(|| DeletionTime {
                timestamp_us: 1_700_000_000_000_000 + end as i64,
                local_s: 1_700_000_000 + random.below(1000) as i64,
            });
            blocks.push(Block { first, last, offset: end, open });
            end += 1 + random.below(self.step);
        }
        let deletion = match random.below(2) {
            0 => DeletionTime::LIVE,
            _ => DeletionTime { timestamp_us: 1_600_000_000_000_000, local_s: 1_600_000_000 },
        };
        WidePartition { key: random.bytes((4, 30), 255), blocks, end, deletion }
    }

    fn check(&self, golden: &Golden) {
        let file = MemoryFile::empty();
        let out = SequentialWriter::on(file.clone(), Path::new("Rows.db"), false);
        let mut writer = RowIndexWriter::new(out);
        let random = &mut Random(self.blocks as u64);
        let mut written = Vec::new();
        let mut data_position = 0;
        for _ in 0..self.partitions {
            let partition = self.draw(random);
            for block in &partition.blocks {
                writer.add_block(&block.first, &block.last, block.offset, block.open).unwrap();
            }
            let WidePartition { ref key, end, deletion, .. } = partition;
            let end_of_partition = PartitionEnd { key, data_position, deletion, end_offset: end };
            let position = writer.finish_partition(&end_of_partition).unwrap();
            let IndexPosition::Rows(position) = position else { panic!("not indexed") };
            written.push((position, data_position, partition));
            data_position += end + 1;
        }
        writer.finish().unwrap();
        let bytes = file.bytes();
        golden.assert_is(&bytes);

        let file = block_file(bytes);
        for (position, data_position, partition) in &written {
            let (key, entry) = RowIndexEntry::read(&file, *position, &mut blocking()).unwrap();
            assert_eq!((&key, entry.data_position), (&partition.key, *data_position));
            let again = RowIndexEntry::read_of(&file, *position, &key, &mut blocking()).unwrap();
            assert_eq!(again, Some(entry));
            assert_eq!((entry.block_count, entry.deletion), (self.blocks as u64, partition.deletion));
            partition.assert_blocks_are_found(RowIndexReader::new(&file, &entry, &mut blocking()).unwrap());
        }
    }
}

impl WidePartition {
    fn block(&self, index: usize) -> Option<IndexBlock> {
        let block = self.blocks.get(index)?;
        let end = self.blocks.get(index + 1).map_or(self.end, |next| next.offset);
        Some(IndexBlock { offset: block.offset, end, open: block.open })
    }

    fn assert_blocks_are_found(&self, mut reader: RowIndexReader<&crate::block::BlockFile>) {
        let cx = &mut blocking();
        let step = self.blocks.len().div_ceil(20_000);
        for (index, block) in self.blocks.iter().enumerate().step_by(step) {
            let here = self.block(index);
            // In order and with jumps in between, because each search begins on the path of the one before it.
            let far = &self.blocks[index * 7919 % self.blocks.len()];
            for block in [block, far, block] {
                for bound in [&block.last, &block.first, &block.last] {
                    assert_eq!(reader.floor_start(bound, cx).unwrap(), (block.offset, block.open));
                }
            }
            for bound in [&block.first, &block.last] {
                assert_eq!(reader.floor(bound, cx).unwrap(), here);
                assert_eq!(reader.floor_reversed(bound, cx).unwrap(), here);
            }
        }
        let indexes = 0..self.blocks.len();
        assert_eq!(reader.floor(&[], cx).unwrap(), self.block(0));
        for index in indexes.clone().skip(1) {
            assert_eq!(reader.next(cx).unwrap(), self.block(index));
        }
        assert_eq!((reader.next(cx).unwrap(), reader.next(cx).unwrap()), (None, None));
        assert_eq!(reader.floor(AFTER_ALL, cx).unwrap(), None);
        assert_eq!(reader.floor_reversed(AFTER_ALL, cx).unwrap(), self.block(self.blocks.len() - 1));
        for index in indexes.clone().rev().skip(1) {
            assert_eq!(reader.previous(cx).unwrap(), self.block(index));
        }
        assert_eq!((reader.previous(cx).unwrap(), reader.previous(cx).unwrap()), (None, None));
        // From the middle, both directions are walked alternately.
        let middle = indexes.len() / 2;
        reader.floor(&self.blocks[middle].last, cx).unwrap();
        reader.floor_reversed(&self.blocks[middle].first, cx).unwrap();
        for index in 1..=middle.min(100) {
            assert_eq!(reader.next(cx).unwrap(), self.block(middle + index));
            assert_eq!(reader.previous(cx).unwrap(), self.block(middle - index));
        }
    }
}

fn partitions(count: u64, lengths: (u64, u64), alphabet: u64, tokens: u64, step: u64) -> Partitions {
    Partitions { count, lengths, alphabet, tokens, step }
}

fn rows(partitions: u64, blocks: usize, lengths: (u64, u64), alphabet: u64, step: u64) -> Rows {
    Rows { partitions, blocks, lengths, alphabet, step }
}

#[test]
fn partitions_of_any_number_are_indexed_as_cassandra_does() {
    partitions(1, (5, 5), 255, 0, 100).check(&golden("one", 41, 0x5d40_6df0));
    partitions(10, (1, 20), 255, 0, 100).check(&golden("ten", 101, 0x9b22_8392));
    partitions(1000, (1, 20), 255, 0, 100_000).check(&golden("thousand", 8834, 0xf76d_44d3));
    partitions(200_000, (4, 12), 255, 0, 100_000).check(&golden("many", 2_058_540, 0xd929_385f));
}

#[test]
fn partitions_of_equal_token_are_told_apart_by_their_keys() {
    partitions(5000, (1, 12), 4, 1, 1000).check(&golden("equal_tokens", 39_032, 0x1e22_f443));
    partitions(20_000, (1, 300), 3, 50, 1000).check(&golden("few_tokens", 249_752, 0xdb73_1fef));
    partitions(100_000, (1, 3), 255, 1, 50).check(&golden("dense", 522_580, 0xf838_2ac6));
}

#[test]
fn long_keys_make_deep_tries_without_recursion() {
    partitions(300, (3000, 20_000), 2, 1, 1 << 30).check(&golden("long_keys", 30_537, 0x572d_08c6));
    partitions(200, (3000, 20_000), 1, 1, 1 << 30).check(&golden("deep", 65_430, 0xcb3c_3659));
}

#[test]
fn blocks_of_wide_partitions_are_indexed_as_cassandra_does() {
    rows(100, 2, (1, 20), 255, 40_000).check(&golden("rows_two", 5036, 0x4737_af4c));
    rows(300, 50, (1, 20), 30, 40_000).check(&golden("rows_some", 136_923, 0x4c5c_dc78));
    rows(2, 200_000, (4, 30), 60, 40_000).check(&golden("rows_many", 4_015_703, 0x7716_3ecf));
}

#[test]
fn a_last_clustering_of_greatest_bytes_still_has_an_end_after_it() {
    rows(50, 200, (10, 60), 2, 40_000).check(&golden("rows_of_ff", 203_314, 0x8c02_6288));
}

#[test]
fn long_clusterings_make_deep_tries_without_recursion() {
    rows(3, 400, (1000, 20_000), 2, 1 << 30).check(&golden("rows_long", 23_342, 0x33db_07a1));
    rows(3, 100, (1000, 20_000), 1, 1 << 30).check(&golden("rows_deep", 130_981, 0x7d7b_4fe9));
}
