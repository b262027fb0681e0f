//! Calls that fail on request, a full disk, and a medium that flips bits.

use super::{Call, Fault, Machine};
use crate::PathError;
use std::io::{self, ErrorKind};
use std::path::Path;

use Call::*;
const CALLS: [Call; 15] = [
    Open, Create, Read, Write, Allocate, SetSize, Sync, SyncDir, Rename, Link, Remove, RemoveDir, CreateDir,
    List, Lock,
];

/// Makes one call of each kind, with a fault set for the next call of kind `fault`. Returns the kinds that failed.
fn one_of_each(machine: &Machine, fault: Option<Call>) -> Vec<Call> {
    let disk = machine.host().disk;
    let at = |name: &str| Path::new("/d").join(name);
    disk.create_dir_all(&at("empty")).unwrap();
    for name in ["old", "linked", "gone"] {
        disk.create(&at(name)).unwrap();
    }
    let file = disk.create(&at("file")).unwrap();
    if let Some(call) = fault {
        machine.fail(Fault::new(call, 1, ErrorKind::StorageFull));
    }
    let results: [(Call, io::Result<()>); 15] = [
        (Create, disk.create(&at("new")).map(drop)),
        (Open, disk.open(&at("file")).map(drop)),
        (Write, file.write_all_at(b"0123456789", 0)),
        (Read, file.read_exact_at(&mut [0; 0], 0)),
        (Allocate, file.allocate(100)),
        (SetSize, file.set_size(50)),
        (Sync, file.sync()),
        (Link, disk.hard_link(&at("linked"), &at("link"))),
        (Rename, disk.rename(&at("old"), &at("renamed"))),
        (List, disk.list(&at("")).map(drop)),
        (SyncDir, disk.sync_dir(&at(""))),
        (Lock, disk.lock(&at("lock"), "").map(drop)),
        (CreateDir, disk.create_dir_all(&at("folder"))),
        (RemoveDir, disk.remove_dir(&at("empty"))),
        (Remove, disk.remove(&at("gone"))),
    ];
    let mut failed = Vec::new();
    for (call, result) in results {
        if let Err(e) = result {
            assert_eq!(e.kind(), ErrorKind::StorageFull);
            let inner = e.get_ref().and_then(|inner| inner.downcast_ref::<PathError>());
            assert!(inner.is_some(), "names no path: {e}");
            failed.push(call);
        }
    }
    failed
}

#[test]
fn each_kind_of_call_fails_when_told_and_no_other() {
    assert!(one_of_each(&Machine::new(0), None).is_empty());
    for call in CALLS {
        let machine = Machine::new(0);
        assert_eq!(one_of_each(&machine, Some(call)), [call]);
        assert_eq!(machine.faults_struck(), 1);
        assert!(machine.calls(call) > 0);
    }
}

#[test]
fn the_nth_call_fails_once_or_from_then_on_and_on_one_path() {
    let machine = Machine::new(0);
    let disk = machine.host().disk;
    machine.fail(Fault::new(Call::Create, 2, ErrorKind::Other).on("-Data"));
    let created = |name: &str| disk.create(Path::new(name)).is_ok();
    let results = ["1-Data", "1-Rows", "2-Data", "2-Rows", "3-Data"].map(created);
    assert_eq!(results, [true, true, false, true, true]);
    machine.fail(Fault::new(Call::Create, 2, ErrorKind::Other).lasting());
    assert_eq!(["a", "b", "c"].map(created), [true, false, false]);
    assert_eq!(machine.faults_struck(), 3);
    machine.clear_faults();
    assert!(created("b"));
    assert_eq!(machine.calls(Call::Create), 9);
}

#[test]
fn a_failing_write_leaves_a_beginning_of_its_bytes() {
    let mut lengths = Vec::new();
    for seed in 0..20 {
        let machine = Machine::new(seed);
        let file = machine.host().disk.create(Path::new("f")).unwrap();
        machine.fail(Fault::new(Call::Write, 1, ErrorKind::Other));
        assert!(file.write_all_at(&[7; 1000], 0).is_err());
        lengths.push(file.size().unwrap());
        let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
    assert!(lengths.iter().all(|len| *len <= 1000) && lengths.iter().any(|len| *len != lengths[0]));
}

#[test]
fn a_full_disk_refuses_writes_and_takes_them_again_when_there_is_room() {
    let machine = Machine::new(0);
    let disk = machine.host().disk;
    machine.set_capacity(1000);
    let file = disk.create(Path::new("f")).unwrap();
    file.write_all_at(&[1; 600], 0).unwrap();
    assert_eq!(file.allocate(1001).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!((file.size().unwrap(), machine.used_bytes()), (600, 600));
    let error = file.write_all_at(&[1; 600], 600).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!((file.size().unwrap(), machine.used_bytes()), (1000, 1000), "what fitted was written");
    file.write_all_at(&[2; 1000], 0).unwrap();
    let other = disk.create(Path::new("g")).unwrap();
    assert!(other.write_all_at(b"x", 0).is_err() && other.write_all_at(b"x", 50).is_err());
    assert_eq!(machine.used_bytes(), 1000);
    machine.set_capacity(1100);
    other.write_all_at(b"x", 99).unwrap();
    file.set_size(10).unwrap();
    assert_eq!(machine.used_bytes(), 110);
}

#[test]
fn room_is_given_back_when_the_last_name_and_the_last_open_file_are_gone() {
    let machine = Machine::new(0);
    let disk = machine.host().disk;
    let file = disk.create(Path::new("f")).unwrap();
    file.allocate(1000).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    disk.hard_link(Path::new("f"), Path::new("g")).unwrap();
    disk.remove(Path::new("f")).unwrap();
    disk.remove(Path::new("g")).unwrap();
    assert_eq!(machine.used_bytes(), 1000, "still open");
    let after = machine.crash();
    drop(file);
    assert_eq!(machine.used_bytes(), 0);
    assert_eq!(after.used_bytes(), 1000, "the remove was not durable");
}

#[test]
fn a_flipped_bit_stays_flipped() {
    let machine = Machine::new(0);
    let disk = machine.host().disk;
    let file = disk.create(Path::new("f")).unwrap();
    file.write_all_at(&[0; 10], 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    machine.flip_bit(Path::new("f"), 3, 7).unwrap();
    let mut bytes = [0; 10];
    for machine in [machine.clone(), machine.crash()] {
        machine.host().disk.open(Path::new("f")).unwrap().read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, [0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0]);
    }
    assert_eq!(machine.flip_bit(Path::new("f"), 10, 0).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(machine.flip_bit(Path::new("g"), 0, 0).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn cold_reads_miss_and_waiting_reads_do_not() {
    let machine = Machine::new(0);
    let file = machine.host().disk.create(Path::new("f")).unwrap();
    file.write_all_at(b"x", 0).unwrap();
    machine.set_cold_reads(50);
    let hits = (0..100).filter(|_| file.try_read_exact_at(&mut [0], 0).unwrap()).count();
    assert!((20..80).contains(&hits), "{hits}");
    machine.set_cold_reads(100);
    assert!(!file.try_read_exact_at(&mut [0], 0).unwrap());
    file.read_exact_at(&mut [0], 0).unwrap();
}

#[test]
fn wild_offsets_are_refused() {
    let file = Machine::new(0).host().disk.create(Path::new("f")).unwrap();
    assert_eq!(file.write_all_at(b"x", u64::MAX).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(file.set_size(u64::MAX).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert!(file.read_exact_at(&mut [0], u64::MAX).is_err());
}

#[test]
fn a_fault_of_any_change_counts_changes_and_syncs_alone() {
    let changes = |call: &Call| !matches!(call, Open | Read | List);
    let counted = CALLS.iter().filter(|call| changes(call)).count() as u64;
    let mut failed = Vec::new();
    for nth in 1..=counted + 1 {
        let machine = Machine::new(0);
        let disk = machine.host().disk;
        let at = |name: &str| Path::new("/d").join(name);
        disk.create_dir_all(&at("empty")).unwrap();
        let file = disk.create(&at("file")).unwrap();
        machine.fail(Fault::of_any_change(nth, ErrorKind::Other));
        let results = [
            disk.create(&at("old")).map(drop),
            disk.open(&at("file")).map(drop),
            file.write_all_at(b"0123456789", 0),
            file.read_exact_at(&mut [0; 0], 0),
            file.allocate(100),
            file.set_size(50),
            file.sync(),
            disk.hard_link(&at("file"), &at("link")),
            disk.rename(&at("file"), &at("renamed")),
            disk.list(&at("")).map(drop),
            disk.sync_dir(&at("")),
            disk.lock(&at("lock"), "").map(drop),
            disk.create_dir_all(&at("folder")),
            disk.remove_dir(&at("empty")),
            disk.remove(&at("link")),
        ];
        failed.push(results.iter().position(Result::is_err));
    }
    let wanted = [0, 2, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14].map(Some);
    assert_eq!(failed, wanted.into_iter().chain([None]).collect::<Vec<_>>());
}
