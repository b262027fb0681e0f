//! Tests transaction logs: lines against Cassandra's, and a crash at every sync of a transaction and of its recovery.

use super::*;
use crate::component::Component;
use crate::names::SsTableId;
use helenus_host::sim::{Machine, Survives};
use std::collections::BTreeSet;
use std::sync::Mutex;

const FOLDER: &str = "/data/ks/t-1";

fn descriptor(number: u32) -> Descriptor {
    Descriptor::new(SsTableId::Sequence(number))
}

fn write_table(disk: &dyn Disk, number: u32) {
    for component in [Component::Data, Component::Partitions, Component::Toc] {
        let file = disk.create(&descriptor(number).path(Path::new(FOLDER), component)).unwrap();
        file.write_all_at(b"content", 0).unwrap();
        file.sync().unwrap();
    }
}

fn machine() -> Machine {
    let machine = Machine::new(1);
    let disk = machine.host().disk;
    disk.create_dir_all(Path::new(FOLDER)).unwrap();
    for parent in ["/", "/data", "/data/ks", FOLDER] {
        disk.sync_dir(Path::new(parent)).unwrap();
    }
    machine
}

fn tables(disk: &dyn Disk) -> BTreeSet<u32> {
    let mut files_of = std::collections::BTreeMap::<u32, usize>::new();
    for path in disk.list(Path::new(FOLDER)).unwrap() {
        let (descriptor, _) =
            Descriptor::parse(name(&path)).unwrap_or_else(|| panic!("{path:?} is left over"));
        let SsTableId::Sequence(number) = descriptor.id else { panic!("{path:?}") };
        *files_of.entry(number).or_default() += 1;
    }
    assert!(files_of.values().all(|files| *files == 3), "a table is whole or absent: {files_of:?}");
    files_of.into_keys().collect()
}

/// A compaction of SSTables 1 and 2 into 3.
fn compact(disk: &Arc<dyn Disk>, commits: bool) {
    let folder = Path::new(FOLDER);
    let mut log = TransactionLog::begin(disk.clone(), folder, Operation::Compaction, Uuid::from_u128(5));
    log.add(&descriptor(3), 3).unwrap();
    write_table(&**disk, 3);
    for old in [1, 2] {
        log.remove(&descriptor(old), 3, 1_700_000_000_123).unwrap();
    }
    if !commits {
        return log.abort().unwrap();
    }
    log.commit().unwrap();
    log.finish().unwrap();
}

#[test]
fn a_record_is_the_line_that_cassandra_writes() {
    let record = Record {
        kind: RecordKind::Remove,
        path: "/d/ks/t-1/da-1-bti-".into(),
        modified_ms: 1_700_000_000_123,
        files: 9,
    };
    let line = record.to_line();
    assert!(line.starts_with("REMOVE:[/d/ks/t-1/da-1-bti-,1700000000123,9]["), "{line}");
    assert_eq!(Record::parse(&line), Some(record.clone()));
    assert_eq!(Record::parse(&line.replace("da-1", "da-2")), None);
    assert_eq!(record.prefix(), "da-1-bti-");
    // LogRecord.makeCommit, printed by Cassandra 5.0.6.
    assert_eq!(Record::last(RecordKind::Commit).to_line(), "COMMIT:[,0,0][2613697770]");
}

#[test]
fn a_finished_transaction_leaves_one_side_and_no_log() {
    for (commits, left) in [(true, [3].as_slice()), (false, &[1, 2])] {
        let disk = machine().host().disk;
        for old in [1, 2] {
            write_table(&*disk, old);
        }
        compact(&disk, commits);
        assert_eq!(tables(&*disk), left.iter().copied().collect());
        assert_eq!(recover(&*disk, Path::new(FOLDER)).unwrap(), []);
    }
}

#[test]
fn a_cut_at_every_sync_leaves_the_old_tables_or_the_new_one_and_recovery_may_be_cut_too() {
    let machine = machine();
    let disk = machine.host().disk;
    for old in [1, 2] {
        write_table(&*disk, old);
    }
    disk.sync_dir(Path::new(FOLDER)).unwrap();
    let images: Arc<Mutex<Vec<Machine>>> = Arc::default();
    let kept = images.clone();
    machine.on_every_sync(move |cut| {
        let survivors = (0..4).map(|seed| Survives::Torn { seed });
        let survivors = survivors.chain([Survives::OnlySynced, Survives::EverythingWritten]);
        kept.lock().unwrap().extend(survivors.map(|survives| cut.machine.crash_image(survives)));
    });
    compact(&disk, true);
    machine.stop_watching();

    let (old, new) = (BTreeSet::from([1, 2]), BTreeSet::from([3]));
    let mut outcomes = BTreeSet::new();
    let images = std::mem::take(&mut *images.lock().unwrap());
    assert!(images.len() > 60);
    for image in images {
        let again: Arc<Mutex<Vec<Machine>>> = Arc::default();
        let kept = again.clone();
        image.on_every_sync(move |cut| kept.lock().unwrap().push(cut.machine.crash()));
        let disk = image.host().disk;
        recover(&*disk, Path::new(FOLDER)).unwrap();
        image.stop_watching();
        let outcome = tables(&*disk);
        assert!(outcome == old || outcome == new, "{outcome:?}");
        for second in std::mem::take(&mut *again.lock().unwrap()) {
            let disk = second.host().disk;
            recover(&*disk, Path::new(FOLDER)).unwrap();
            let outcome = tables(&*disk);
            assert!(outcome == old || outcome == new, "{outcome:?}");
        }
        outcomes.insert(outcome);
    }
    assert_eq!(outcomes.len(), 2);
}

#[test]
fn a_damaged_log_is_not_acted_upon() {
    let folder = Path::new(FOLDER);
    let machine = machine();
    let disk = machine.host().disk;
    for old in [1, 2] {
        write_table(&*disk, old);
    }
    let mut log = TransactionLog::begin(disk.clone(), folder, Operation::Compaction, Uuid::from_u128(5));
    log.remove(&descriptor(1), 3, 0).unwrap();
    log.remove(&descriptor(2), 3, 0).unwrap();
    log.commit().unwrap();
    machine.flip_bit(log.path(), 12, 0).unwrap();
    let error = recover(&*disk, folder).unwrap_err();
    assert!(error.to_string().contains("damaged record"), "{error}");
    machine.flip_bit(log.path(), 12, 0).unwrap();

    // The last record is damaged and an old file is gone, so the record may have been the COMMIT.
    let len = disk.open(log.path()).unwrap().size().unwrap();
    machine.flip_bit(log.path(), len - 4, 0).unwrap();
    disk.remove(&descriptor(1).path(folder, Component::Data)).unwrap();
    let error = recover(&*disk, folder).unwrap_err();
    assert!(error.to_string().contains("da-1-bti- has 2 of 3 files"), "{error}");
    assert!(disk.exists(log.path()));
    machine.flip_bit(log.path(), len - 4, 0).unwrap();
    assert!(recover(&*disk, folder).unwrap()[0].committed);
}
