//! SSTables of other programs' versions in a table's folder.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DatabaseOptions};
use helenus_host::Host;
use helenus_host::sim::Machine;
use helenus_model::partitions::KeyRange;
use helenus_model::schema::Table;
use helenus_model::token::KeyHash;
use helenus_model::unfiltered::Source;
use helenus_sstable::block::ReadContext;
use helenus_sstable::buffer::BufferPool;
use helenus_sstable::component::Component;
use helenus_sstable::names::{Descriptor, SsTableId};
use helenus_sstable::table::{OpenOptions, SsTable};
use helenus_sstable::version::Version;
use helenus_sstable::writer::{SsTableWriter, WriterOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::*;

fn machine() -> Machine {
    let machine = Machine::new(1);
    machine.set_wall_us(1_700_000_000_000_000);
    machine
}

fn folder(host: &Host) -> PathBuf {
    host.disk.list(Path::new("/db/data/ks")).unwrap().remove(0)
}

fn data_files(host: &Host) -> Vec<Descriptor> {
    let files = host.disk.list(&folder(host)).unwrap();
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    let data = names.filter_map(Descriptor::parse).filter(|(_, name)| *name == Component::Data.name());
    data.map(|(descriptor, _)| descriptor).collect()
}

/// Replaces the only SSTable by one of this version.
fn replace(host: &Host, schema: &Arc<Table>, version: Version) {
    let folder = folder(host);
    let [own] = data_files(host)[..] else { panic!("one SSTable was written") };
    let options = OpenOptions { schema: schema.clone(), buffers: BufferPool::none() };
    let table = SsTable::open(&*host.disk, &folder, own, options).unwrap();
    let encoding = table.statistics().header.encoding;
    let options = WriterOptions::of_table(schema.clone(), 1, encoding).for_version(version);
    let options = WriterOptions { page_checksums: false, ..options };
    let descriptor = Descriptor { version, id: SsTableId::Sequence(3) };
    let mut writer = SsTableWriter::create(host.disk.clone(), &folder, descriptor, options).unwrap();
    let mut cx = ReadContext { may_block: true, ..ReadContext::default() };
    let mut scan = table.scan(&KeyRange::all(), &mut cx).unwrap();
    while scan.next_partition(&mut cx).unwrap() {
        let hash = KeyHash::of(scan.key());
        writer.begin_partition(scan.key(), &hash, scan.deletion(), scan.static_row()).unwrap();
        while scan.advance(&mut cx).unwrap() {
            writer.add(scan.current()).unwrap();
        }
        writer.end_partition().unwrap();
    }
    writer.finish().unwrap();
    for component in Component::ALL {
        let path = own.path(&folder, component);
        if host.disk.exists(&path) {
            host.disk.remove(&path).unwrap();
        }
    }
}

fn opened(host: &Host) -> Arc<Database> {
    open_with(host, |options| options.compaction.automatic = false)
}

fn write(database: &Database, c: i32, v: &str, timestamp_us: i64) {
    let table = table_of(database, "t");
    Write::default().insert(&table, c, v, timestamp_us).to(database, "t", "a").wait().unwrap();
    database.flush(table.id).unwrap();
}

#[test]
fn files_of_other_versions_are_read_beside_our_own_and_become_ours_by_compaction() {
    for version in [Version::Me, Version::Nb, Version::Oa] {
        let machine = machine();
        let host = machine.host();
        let database = opened(&host);
        create(&database, vec![table("t", 1, false)]);
        write(&database, 1, "theirs", 10);
        let schema = table_of(&database, "t");
        drop(database);
        replace(&host, &schema, version);

        let database = opened(&host);
        assert_eq!(rows_of(&database, "t", "a"), [(1, "theirs".to_owned())], "{version}");
        write(&database, 2, "ours", 11);
        let both = [(1, "theirs".to_owned()), (2, "ours".to_owned())];
        assert_eq!(rows_of(&database, "t", "a"), both, "{version}");
        database.compact(vec![schema.id]).wait().unwrap();
        assert_eq!(rows_of(&database, "t", "a"), both, "{version}");
        assert!(data_files(&host).iter().all(|file| file.version == Version::CURRENT), "{version}");
        machine.end_tasks();
    }
}

#[test]
fn an_sstable_of_cassandra_2_is_told_by_its_version_and_not_passed_over() {
    let machine = machine();
    let host = machine.host();
    let database = opened(&host);
    create(&database, vec![table("t", 1, false)]);
    write(&database, 1, "ours", 10);
    drop(database);
    host.disk.create(&folder(&host).join("la-1-big-Data.db")).unwrap().write_all_at(b"cells", 0).unwrap();
    let (_database, report) = Database::open(host, DatabaseOptions::new("/db")).unwrap();
    let [(table, problem)] = &report.unreadable[..] else { panic!("{:?}", report.unreadable) };
    assert_eq!(table, "ks.t");
    assert!(problem.contains("version la is of Cassandra 2.2"), "{problem}");
    machine.end_tasks();
}
