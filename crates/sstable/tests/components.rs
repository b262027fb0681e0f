//! Tests that components of Cassandra 5.0.6's files are read and written back to the same bytes.
//!
//! The tables of `fixtures/cassandra-5.0.6-da` were filled by the `make.py` there and flushed by a node. All but `wide`
//! and `many` have the same 40 rows, with different compression.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use helenus_host::{Host, memory};
use helenus_model::schema::CompressionParams;
use helenus_sstable::block::{BlockFile, ReadContext};
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::compression::{
    BlockCrcs, CompressedBlocks, CompressionInfo, Compressor, DataBlocks, DataWriter, PlainBlocks, WHOLE,
    WrittenData,
};
use helenus_sstable::import::{SsTableFiles, missing_components};
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::sequential_writer::SequentialWriter;
use helenus_sstable::statistics::{Cardinality, Statistics};
use helenus_sstable::toc::Toc;
use helenus_sstable::version::Version;
use helenus_sstable::{Error, digest};
use std::collections::BTreeMap;
use std::path::Path;

macro_rules! fixture {
    ($table:literal, $component:literal) => {
        include_bytes!(concat!("fixtures/cassandra-5.0.6-da/", $table, "/da-1-bti-", $component)).as_slice()
    };
}

macro_rules! compressed {
    ($table:literal) => {
        Fixture {
            table: $table,
            data: fixture!($table, "Data.db"),
            info: fixture!($table, "CompressionInfo.db"),
            digest: fixture!($table, "Digest.crc32"),
            toc: fixture!($table, "TOC.txt"),
        }
    };
}

struct Fixture {
    table: &'static str,
    data: &'static [u8],
    info: &'static [u8],
    digest: &'static [u8],
    toc: &'static [u8],
}

const COMPRESSED: [Fixture; 6] = [
    compressed!("lz4"),
    compressed!("snappy"),
    compressed!("deflate"),
    compressed!("zstd"),
    compressed!("noop"),
    compressed!("wide"),
];

const PLAIN_DATA: &[u8] = fixture!("plain", "Data.db");

const STATISTICS: [(&str, &[u8]); 8] = [
    ("lz4", fixture!("lz4", "Statistics.db")),
    ("snappy", fixture!("snappy", "Statistics.db")),
    ("deflate", fixture!("deflate", "Statistics.db")),
    ("zstd", fixture!("zstd", "Statistics.db")),
    ("noop", fixture!("noop", "Statistics.db")),
    ("plain", fixture!("plain", "Statistics.db")),
    ("wide", fixture!("wide", "Statistics.db")),
    ("many", fixture!("many", "Statistics.db")),
];

fn waiting() -> ReadContext {
    ReadContext { may_block: true, fill_cache: true, ..ReadContext::default() }
}

fn file_of(host: &Host, name: &str, bytes: &[u8], buffers: BufferPool) -> BlockFile {
    let path = Path::new("/").join(name);
    let file = host.disk.create(&path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    BlockFile::new(file, &path, 4096, None, buffers).unwrap()
}

fn open_compressed(data: &[u8], info: &[u8], buffers: BufferPool) -> DataBlocks {
    let host = memory::host();
    let info = file_of(&host, "info", info, BufferPool::none());
    let info = CompressionInfo::read(&info, data.len() as u64, Version::Da).unwrap();
    DataBlocks::Compressed(CompressedBlocks::new(file_of(&host, "data", data, buffers), info))
}

fn read_all(blocks: &DataBlocks) -> Result<Vec<u8>, Error> {
    let mut all = Vec::new();
    for number in 0..blocks.data_length().div_ceil(blocks.block_bytes() as u64) {
        all.extend_from_slice(&blocks.block(number, WHOLE, &mut waiting())?);
    }
    Ok(all)
}

fn info_bytes(info: &CompressionInfo) -> Vec<u8> {
    let mut out = Vec::new();
    info.write(Version::Da, &mut |bytes| {
        out.extend_from_slice(bytes);
        Ok(())
    })
    .unwrap();
    out
}

/// Writes the data in uneven pieces. Returns the file's bytes, and the content of the other components.
fn write_data(data: &[u8], params: &CompressionParams) -> (Vec<u8>, WrittenData) {
    let host = memory::host();
    let path = Path::new("/data");
    let out = SequentialWriter::create(&*host.disk, path, false).unwrap();
    let mut writer = DataWriter::new(out, params).unwrap();
    for piece in data.chunks(777) {
        writer.write(piece).unwrap();
    }
    assert_eq!(writer.position(), data.len() as u64);
    let written = writer.finish().unwrap();
    let file = host.disk.open(path).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    (bytes, written)
}

fn params(class: Option<&str>, chunk_bytes: u32, max_compressed_bytes: u32) -> CompressionParams {
    CompressionParams {
        class: class.map(str::to_owned),
        chunk_bytes,
        max_compressed_bytes,
        options: BTreeMap::new(),
    }
}

#[test]
fn every_compressor_of_cassandra_is_read_and_its_info_written_back() {
    for fixture in COMPRESSED {
        let blocks = open_compressed(fixture.data, fixture.info, BufferPool::none());
        let data = read_all(&blocks).unwrap();
        assert_eq!(data.len() as u64, blocks.data_length());
        if fixture.table != "wide" {
            assert_eq!(data, PLAIN_DATA, "{}", fixture.table);
        }
        let DataBlocks::Compressed(blocks) = blocks else { unreachable!() };
        assert_eq!(info_bytes(blocks.info()), fixture.info, "{}", fixture.table);
        let sum = digest::parse(fixture.digest, Path::new("digest")).unwrap();
        assert_eq!(sum, helenus_sstable::checksum::crc32(fixture.data));
        assert_eq!(digest::to_bytes(sum), fixture.digest);
        let toc = Toc::parse(fixture.toc, Path::new("toc")).unwrap();
        assert_eq!(toc.to_bytes(), fixture.toc);
        assert!(toc.has(Component::CompressionInfo) && toc.has(Component::Toc) && !toc.has(Component::Crc));
    }
}

#[test]
fn what_compression_does_not_decide_is_written_as_cassandra_writes_it() {
    let noop = &COMPRESSED[4];
    let (bytes, written) = write_data(PLAIN_DATA, &params(Some("NoopCompressor"), 4096, i32::MAX as u32));
    assert_eq!(bytes, noop.data);
    assert_eq!(digest::to_bytes(written.digest()), noop.digest);
    let WrittenData::Compressed(file) = written else { unreachable!() };
    assert_eq!(info_bytes(&file.info), noop.info);

    let (bytes, written) = write_data(PLAIN_DATA, &params(None, 0, 0));
    assert_eq!(bytes, PLAIN_DATA);
    assert_eq!(digest::to_bytes(written.digest()), fixture!("plain", "Digest.crc32"));
    assert_eq!(written.compression_ratio(), -1.0);
}

#[test]
fn an_uncompressed_file_is_checked_against_crc_db_of_any_block_length() {
    let host = memory::host();
    let length = PLAIN_DATA.len() as u64;
    let theirs = BlockCrcs::parse(fixture!("plain", "CRC.db"), length, Path::new("crc")).unwrap();
    assert_eq!(theirs.to_bytes(), fixture!("plain", "CRC.db"));
    let file = file_of(&host, "theirs", PLAIN_DATA, BufferPool::none());
    let blocks = DataBlocks::Plain(PlainBlocks::new(file, Some(theirs)));
    assert_eq!(blocks.block_bytes(), 65536);
    assert_eq!(read_all(&blocks).unwrap(), PLAIN_DATA);

    let data: Vec<u8> = PLAIN_DATA.iter().copied().cycle().take(50_000).collect();
    let (mut bytes, written) = write_data(&data, &params(None, 0, 0));
    let WrittenData::Plain(file) = written else { unreachable!() };
    assert_eq!((file.crcs.block_bytes, file.crcs.crcs.len()), (16384, 4));
    let open = |name: &str, bytes: &[u8]| {
        let file_crcs = BlockCrcs::parse(&file.crcs.to_bytes(), 50_000, Path::new("crc")).unwrap();
        DataBlocks::Plain(PlainBlocks::new(file_of(&host, name, bytes, BufferPool::none()), Some(file_crcs)))
    };
    assert_eq!(read_all(&open("ours", &bytes)).unwrap(), data);
    bytes[40_000] ^= 1;
    let error = read_all(&open("damaged", &bytes)).unwrap_err();
    assert!(matches!(error, Error::Corrupt { offset: 32768, .. }), "{error}");
}

#[test]
fn what_is_written_is_read_back_with_and_without_a_limit_on_compressed_length() {
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    });
    let mixed: Vec<u8> = noise.take(20_000).chain(PLAIN_DATA.iter().copied()).collect();
    for class in
        ["LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor", "NoopCompressor"]
    {
        for max in [i32::MAX as u32, 4096, 3000] {
            for len in [1, 4095, 4096, 4097, 20_001, mixed.len()] {
                let data = &mixed[..len];
                let (bytes, written) = write_data(data, &params(Some(class), 4096, max));
                let WrittenData::Compressed(file) = written else { unreachable!() };
                assert_eq!(file.info.stored_length, bytes.len() as u64);
                let blocks = open_compressed(&bytes, &info_bytes(&file.info), BufferPool::none());
                assert!(read_all(&blocks).unwrap() == data, "{class} {max} {len}");
            }
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_in_the_data_is_found() {
    for fixture in COMPRESSED.iter().take(5) {
        let DataBlocks::Compressed(blocks) = open_compressed(fixture.data, fixture.info, BufferPool::none())
        else {
            unreachable!()
        };
        let last =
            blocks.info().chunk(PLAIN_DATA.len() as u64 / u64::from(blocks.info().chunk_bytes)).unwrap();
        for at in (0..last.offset as usize + last.stored_bytes + 4).step_by(13) {
            let mut data = fixture.data.to_vec();
            data[at] ^= 1 << (at % 8);
            let error = read_all(&open_compressed(&data, fixture.info, BufferPool::none())).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{} {at}: {error}", fixture.table);
        }
    }
}

#[test]
fn a_damaged_compression_info_is_an_error_and_never_a_panic() {
    let host = memory::host();
    for fixture in &COMPRESSED {
        for at in 0..fixture.info.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut bytes = fixture.info.to_vec();
                bytes[at] ^= flip;
                let name = format!("{}-{at}-{flip}", fixture.table);
                let file = file_of(&host, &name, &bytes, BufferPool::none());
                if let Ok(info) = CompressionInfo::read(&file, fixture.data.len() as u64, Version::Da) {
                    let data = file_of(&host, &format!("{name}-d"), fixture.data, BufferPool::none());
                    let _ = read_all(&DataBlocks::Compressed(CompressedBlocks::new(data, info)));
                }
            }
        }
        let cut = file_of(&host, fixture.table, &fixture.info[..fixture.info.len() - 1], BufferPool::none());
        assert!(CompressionInfo::read(&cut, fixture.data.len() as u64, Version::Da).is_err());
    }
}

#[test]
fn the_pool_holds_decompressed_chunks_and_scans_do_not_fill_it() {
    let buffers = BufferPool::offline();
    let blocks = open_compressed(COMPRESSED[3].data, COMPRESSED[3].info, buffers.clone());
    let mut scan = ReadContext { fill_cache: false, ..waiting() };
    blocks.block(1, WHOLE, &mut scan).unwrap();
    assert_eq!(buffers.blocks(), 0);
    let mut cx = waiting();
    let first = blocks.block(1, WHOLE, &mut cx).unwrap();
    let second = blocks.block(1, WHOLE, &mut cx).unwrap();
    assert_eq!(first.as_ptr(), second.as_ptr());
    assert_eq!(
        (cx.touched.blocks_read, cx.touched.blocks_cached, cx.touched.bytes_decompressed),
        (1, 1, 4096)
    );
    assert!(blocks.block(99, WHOLE, &mut cx).is_err());
}

#[test]
fn a_chunk_is_decompressed_as_far_as_it_is_wanted_and_whole_when_that_did_not_do() {
    let buffers = BufferPool::offline();
    let lz4 = COMPRESSED.iter().find(|fixture| fixture.table == "lz4").unwrap();
    let blocks = open_compressed(lz4.data, lz4.info, buffers.clone());
    let whole = open_compressed(lz4.data, lz4.info, BufferPool::none());
    let whole = whole.block(0, WHOLE, &mut waiting()).unwrap();
    let mut cx = waiting();
    let bytes = |wanted: usize, cx: &mut ReadContext| {
        let block = blocks.block(0, 0..wanted, cx).unwrap();
        assert_eq!(block[..], whole[..block.len()]);
        (block.len(), cx.touched.bytes_decompressed as usize)
    };
    assert_eq!(bytes(100, &mut cx), (100, 100));
    assert_eq!(bytes(80, &mut cx), (100, 100), "found in the cache");
    assert_eq!(bytes(101, &mut cx), (whole.len(), 100 + whole.len()), "a second time it is had whole");
    assert_eq!(bytes(usize::MAX, &mut cx), (whole.len(), 100 + whole.len()));
    assert_eq!((cx.touched.blocks_read, cx.touched.blocks_cached), (2, 2));
}

#[test]
fn a_front_that_others_hold_does_not_hide_the_whole_chunk() {
    let lz4 = COMPRESSED.iter().find(|fixture| fixture.table == "lz4").unwrap();
    let blocks = open_compressed(lz4.data, lz4.info, BufferPool::offline());
    let mut cx = waiting();
    let mut block = |wanted: usize| {
        let block = blocks.block(0, 0..wanted, &mut cx).unwrap();
        (block, cx.touched.blocks_read)
    };
    let (front, _) = block(100);
    let (again, read) = block(100);
    assert_eq!((again.as_ptr(), again.len(), read), (front.as_ptr(), 100, 1));
    let (whole, read) = block(usize::MAX);
    assert!(whole.len() > 100 && read == 2);
    let (short, _) = block(50);
    assert!([100, whole.len()].contains(&short.len()));
    assert_eq!(block(usize::MAX).1, 2, "it is kept, whoever holds the front");
    drop((front, again, short));
    assert_eq!(block(usize::MAX).0.as_ptr(), whole.as_ptr());
}

/// The rows of `fixtures/pieces`, as Helenus wrote them on 26 Nov 2026.
fn rows_in_pieces() -> Vec<u8> {
    let mix = |number: u64| {
        let number = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        number ^ number >> 29
    };
    let row = |number: u64| {
        let (node, time_us) = (mix(number) % 50, mix(number << 8) % 5_000);
        format!("{number:08} event of node {node:02} took {time_us:04} us, ok\n")
    };
    (0..800).flat_map(|number| row(number).into_bytes()).collect()
}

/// Helenus of 26 Nov 2026 compressed parts of a chunk by themselves, so that they could be decompressed without the
/// parts before them.
#[test]
fn chunks_that_were_compressed_in_pieces_are_read_as_any_others() {
    let data = include_bytes!("fixtures/pieces/Data.db");
    let info = include_bytes!("fixtures/pieces/CompressionInfo.db");
    let rows = rows_in_pieces();
    let blocks = open_compressed(data, info, BufferPool::none());
    assert_eq!(read_all(&blocks).unwrap(), rows);
    for (number, chunk) in rows.chunks(blocks.block_bytes()).enumerate() {
        for wanted in (1..=chunk.len()).step_by(500) {
            let front = blocks.block(number as u64, 0..wanted, &mut waiting()).unwrap();
            assert_eq!(front[..], chunk[..wanted]);
        }
    }
    let (whole, _) = write_data(&rows, &params(Some("LZ4Compressor"), 16 << 10, i32::MAX as u32));
    assert!(whole.len() < data.len(), "{} bytes now, {} then", whole.len(), data.len());
}

#[test]
fn statistics_of_cassandra_are_read_and_written_back_byte_for_byte() {
    for (table, bytes) in STATISTICS {
        let read = Statistics::read(bytes, Version::Da, Path::new(table)).unwrap();
        assert_eq!(read.to_bytes(Version::Da), bytes, "{table}");
        assert_eq!(read.validation.partitioner, helenus_sstable::statistics::MURMUR3_PARTITIONER);
    }
}

#[test]
fn statistics_say_what_was_written() {
    let wide = Statistics::read(STATISTICS[6].1, Version::Da, Path::new("wide")).unwrap();
    let stats = &wide.stats;
    // Writing a whole map deletes the old one, with a timestamp a microsecond earlier.
    assert_eq!(stats.timestamp_us_min, 1_699_999_999_999_999);
    assert_eq!(stats.timestamp_us_max, 1_700_000_000_000_100);
    assert_eq!((stats.ttl_s_min, stats.ttl_s_max), (0, 3_000_000));
    assert!(stats.has_partition_deletions);
    assert_eq!(stats.partition_sizes.count(), 5);
    assert_eq!(wide.partitions.as_ref().map(Cardinality::estimate), Some(5));
    let reversed = "org.apache.cassandra.db.marshal.ReversedType(org.apache.cassandra.db.marshal.Int32Type)";
    assert_eq!(wide.header.clustering_types, [reversed, "org.apache.cassandra.db.marshal.UTF8Type"]);
    assert_eq!(wide.header.statics[0].name, b"st");
    assert_eq!(wide.header.regulars.iter().map(|c| c.name.as_slice()).collect::<Vec<_>>(), [b"v", b"m"]);

    let many = Statistics::read(STATISTICS[7].1, Version::Da, Path::new("many")).unwrap();
    assert_eq!(many.stats.rows, 20_000);
    let mut counted = Cardinality::default();
    (0..20_000_u32).for_each(|key| counted.add(&key.to_be_bytes()));
    assert_eq!(Some(&counted), many.partitions.as_ref(), "the registers are Cassandra's");
    assert!((19_500..20_500).contains(&counted.estimate()));
    let lz4 = Statistics::read(STATISTICS[0].1, Version::Da, Path::new("lz4")).unwrap();
    let mut counted = Cardinality::default();
    (0..40_u32).for_each(|key| counted.add(&key.to_be_bytes()));
    assert_eq!(Some(counted.estimate()), lz4.partitions.as_ref().map(Cardinality::estimate));
    let again = Statistics { partitions: Some(counted), ..lz4 };
    assert_eq!(again.to_bytes(Version::Da), STATISTICS[0].1, "the sparse form is Cassandra's");
}

#[test]
fn damaged_statistics_are_an_error_and_never_a_panic() {
    for (table, bytes) in [STATISTICS[6], STATISTICS[0]] {
        for at in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1 << (at % 8);
            assert!(Statistics::read(&damaged, Version::Da, Path::new(table)).is_err(), "{at}");
            assert!(Statistics::read(&bytes[..at], Version::Da, Path::new(table)).is_err(), "{at}");
        }
    }
}

#[test]
fn the_chosen_compressor_is_the_named_one() {
    let options = BTreeMap::from([("compression_level".to_owned(), "5".to_owned())]);
    let full = "org.apache.cassandra.io.compress.ZstdCompressor";
    assert_eq!(Compressor::of(full, &options, Path::new("t")).unwrap(), Compressor::Zstd { level: 5 });
    assert_eq!(Descriptor::new(SsTableId::Sequence(1)).file_name(Component::Data), "da-1-bti-Data.db");
}

#[test]
fn components_of_a_nodes_indexes_are_not_missed() {
    let host = memory::host();
    let (folder, descriptor) = (Path::new("/t"), Descriptor::parse("da-1-bti-TOC.txt").unwrap().0);
    host.disk.create_dir_all(folder).unwrap();
    let toc = host.disk.create(&descriptor.path(folder, Component::Toc)).unwrap();
    toc.write_all_at(b"Data.db\nSAI+aa+by_v+Meta.db\nSI_by_w.db\nTOC.txt\n", 0).unwrap();
    let missing = missing_components(SsTableFiles { disk: &*host.disk, folder, descriptor }).unwrap();
    assert_eq!(missing, ["Data.db"]);
}

/// Reading needs no level, so a strange one does not make a file unreadable.
#[test]
fn a_level_that_zstd_has_not_does_not_prevent_reading() {
    let fixture = COMPRESSED.iter().find(|fixture| fixture.table == "zstd").unwrap();
    let DataBlocks::Compressed(blocks) = open_compressed(fixture.data, fixture.info, BufferPool::none())
    else {
        unreachable!()
    };
    for level in ["fast", "", "99", "-99999999999", "3.5"] {
        let mut info = blocks.info().clone();
        info.options.insert("compression_level".into(), level.into());
        let blocks = open_compressed(fixture.data, &info_bytes(&info), BufferPool::none());
        assert_eq!(read_all(&blocks).unwrap(), PLAIN_DATA, "{level}");
    }
}

/// Cassandra writes chunks of up to 1 GiB if a table asks for them. They are refused as not supported, not as damage.
#[test]
fn chunks_that_only_cassandra_writes_are_not_supported_and_others_are_damage() {
    let fixture = &COMPRESSED[0];
    let DataBlocks::Compressed(blocks) = open_compressed(fixture.data, fixture.info, BufferPool::none())
    else {
        unreachable!()
    };
    for (shift, unsupported) in [(29, true), (30, true), (31, false)] {
        let mut info = blocks.info().clone();
        info.chunk_bytes = 1 << shift;
        let file = file_of(&memory::host(), "info", &info_bytes(&info), BufferPool::none());
        let error = CompressionInfo::read(&file, fixture.data.len() as u64, Version::Da).unwrap_err();
        assert_eq!(matches!(error, Error::Unsupported { .. }), unsupported, "{error}");
        assert!(!unsupported || error.to_string().contains("a power of two up to 256 MiB is supported"));
    }
}
