//! Reads the only table of a folder and writes the same content into another, for checks with Cassandra's tools:
//! `rewrite FROM TO [ROW_INDEX_BLOCK_BYTES [VERSION]]`.

#![allow(clippy::unwrap_used, reason = "what fails here fails the run")]

#[path = "../tests/render/mod.rs"]
mod render;

use helenus_host::real;
use helenus_model::partitions::KeyRange;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::Source;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::statistics::EncodingStats;
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use std::path::Path;
use std::sync::Arc;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (from, to) = (Path::new(&args[1]), Path::new(&args[2]));
    let host = real::host();
    let table = render::open(&host, from, render::schema_in(&host, from));
    host.disk.create_dir_all(to).unwrap();
    let mut cx = render::cx();
    let stats = table.stats();
    let encoding = EncodingStats::new(stats.timestamp_us_min, stats.local_deletion_s_min, stats.ttl_s_min);
    let version = args.get(4).map_or(Version::CURRENT, |letters| Version::parse(letters).unwrap());
    let options =
        WriterOptions::of_table(Arc::new(render::schema_in(&host, from)), table.partition_count(), encoding);
    let mut options = options.for_version(version);
    options.page_checksums = version == Version::CURRENT;
    if let Some(bytes) = args.get(3) {
        options.row_index_block_bytes = bytes.parse().unwrap();
    }
    if !from
        .join(table.descriptor().file_name(helenus_sstable::component::Component::CompressionInfo))
        .exists()
    {
        options.compression.class = None;
    }
    let descriptor = Descriptor { version, id: SsTableId::Sequence(1) };
    let mut writer = SsTableWriter::create(host.disk.clone(), to, descriptor, options).unwrap();
    let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
    while scan.next_partition(&mut cx).unwrap() {
        let key = scan.key().to_vec();
        writer.begin_partition(&key, &KeyHash::of(&key), scan.deletion(), scan.static_row()).unwrap();
        while scan.advance(&mut cx).unwrap() {
            writer.add(scan.current()).unwrap();
        }
        writer.end_partition().unwrap();
    }
    let written = writer.finish().unwrap();
    println!("{} bytes in {:?}", written.size_on_disk, written.components);
}
