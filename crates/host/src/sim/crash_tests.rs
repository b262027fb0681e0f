//! Which data survives a crash.

use super::{Call, Fault, Machine, Profile, Survives, When};
use crate::{Clock, Disk, File};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

fn p(path: &str) -> &Path {
    Path::new(path)
}

fn disk(machine: &Machine) -> Arc<dyn Disk> {
    machine.host().disk
}

fn read(machine: &Machine, path: &str) -> Option<Vec<u8>> {
    let file = disk(machine).open(p(path)).ok()?;
    let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    Some(bytes)
}

fn text(machine: &Machine, path: &str) -> Option<String> {
    read(machine, path).map(|bytes| String::from_utf8(bytes).unwrap())
}

/// A machine with the durable folders /d and /e.
fn machine() -> Machine {
    let machine = Machine::new(1);
    disk(&machine).create_dir_all(p("/d")).unwrap();
    disk(&machine).create_dir_all(p("/e")).unwrap();
    disk(&machine).sync_dir(p("/")).unwrap();
    machine
}

fn put(machine: &Machine, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk(machine).create(p(path)).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file
}

/// A file whose bytes and name are durable.
fn put_durable(machine: &Machine, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = put(machine, path, bytes);
    file.sync().unwrap();
    disk(machine).sync_dir(p(path).parent().unwrap()).unwrap();
    file
}

fn strict(seed: u64) -> Survives {
    Survives::TornOn { profile: Profile::Strict, seed }
}

fn names(machine: &Machine) -> Vec<String> {
    let list = |dir: &str| disk(machine).list(p(dir)).unwrap_or_default();
    [list("/d"), list("/e")].concat().iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn bytes_need_a_sync_and_names_a_sync_of_their_folder() {
    let m = machine();
    put(&m, "/d/bytes", b"x").sync().unwrap();
    assert_eq!(names(&m.crash()), [""; 0], "the name was not synced");
    disk(&m).sync_dir(p("/d")).unwrap();
    put(&m, "/d/name", b"x");
    disk(&m).sync_dir(p("/d")).unwrap();
    assert_eq!(text(&m.crash(), "/d/bytes").as_deref(), Some("x"));
    assert_eq!(text(&m.crash(), "/d/name").as_deref(), Some(""), "a durable name over bytes that are not");
    assert_eq!(text(&m.crash_image(Survives::EverythingWritten), "/d/name").as_deref(), Some("x"));
}

#[test]
fn a_folder_needs_a_sync_of_the_one_above() {
    let m = machine();
    disk(&m).create_dir_all(p("/d/x/y")).unwrap();
    put_durable(&m, "/d/x/y/f", b"f");
    disk(&m).sync_dir(p("/d/x")).unwrap();
    assert!(!disk(&m.crash()).exists(p("/d/x")));
    disk(&m).sync_dir(p("/d")).unwrap();
    assert_eq!(text(&m.crash(), "/d/x/y/f").as_deref(), Some("f"));
}

#[test]
fn overwritten_and_cut_bytes_come_back_without_a_sync() {
    let m = machine();
    let file = put_durable(&m, "/d/f", &[1; 100_000]);
    file.write_all_at(&[2; 10], 70_000).unwrap();
    file.set_size(70_005).unwrap();
    assert_eq!(read(&m.crash(), "/d/f").unwrap(), [1; 100_000]);
    file.sync().unwrap();
    let left = read(&m.crash(), "/d/f").unwrap();
    assert_eq!((left.len(), &left[69_999..]), (70_005, &[1, 2, 2, 2, 2, 2][..]));
}

#[test]
fn an_allocation_is_durable() {
    let m = machine();
    let file = put_durable(&m, "/d/f", b"");
    file.allocate(1 << 20).unwrap();
    assert_eq!(read(&m.crash(), "/d/f").unwrap(), vec![0; 1 << 20]);
}

#[test]
fn a_remove_a_rename_and_a_link_are_undone_until_synced() {
    let m = machine();
    for name in ["/d/a", "/d/b", "/d/c"] {
        put_durable(&m, name, name.as_bytes());
    }
    disk(&m).remove(p("/d/a")).unwrap();
    disk(&m).rename(p("/d/b"), p("/d/c")).unwrap();
    disk(&m).hard_link(p("/d/c"), p("/d/z")).unwrap();
    assert_eq!(names(&m.crash()), ["/d/a", "/d/b", "/d/c"]);
    assert_eq!(text(&m.crash(), "/d/c").as_deref(), Some("/d/c"));
    disk(&m).sync_dir(p("/d")).unwrap();
    assert_eq!(names(&m.crash()), ["/d/c", "/d/z"]);
    assert_eq!(text(&m.crash(), "/d/z").as_deref(), Some("/d/b"));
    let after = m.crash();
    disk(&after).open_write(p("/d/z")).unwrap().write_all_at(b"!", 0).unwrap();
    assert_eq!(text(&after, "/d/c").as_deref(), Some("!d/b"), "two names are still one file");
}

#[test]
fn a_rename_between_folders_never_loses_the_file() {
    let m = machine();
    put_durable(&m, "/d/f", b"f");
    disk(&m).rename(p("/d/f"), p("/e/f")).unwrap();
    assert_eq!(names(&m.crash()), ["/d/f"]);
    let other = m.crash_image(Survives::EverythingWritten);
    disk(&m).sync_dir(p("/e")).unwrap();
    assert_eq!(names(&m.crash()), ["/d/f", "/e/f"], "the old name goes with its own folder's sync");
    disk(&m).sync_dir(p("/d")).unwrap();
    assert_eq!(names(&m.crash()), ["/e/f"]);
    disk(&other).sync_dir(p("/d")).unwrap();
    assert_eq!(names(&other.crash()), ["/e/f"], "a removal by rename carries the new name");
}

#[test]
fn process_death_leaves_what_is_written_and_a_later_power_cut_only_what_is_synced() {
    let m = machine();
    let file = put_durable(&m, "/d/f", b"old");
    file.write_all_at(b"new", 0).unwrap();
    put(&m, "/d/g", b"g");
    let restarted = m.crash_image(Survives::EverythingWritten);
    assert_eq!(text(&restarted, "/d/f").as_deref(), Some("new"));
    assert_eq!(names(&restarted.crash()), ["/d/f"]);
    assert_eq!(text(&restarted.crash(), "/d/f").as_deref(), Some("old"));
    file.write_all_at(b"xyz", 0).unwrap();
    assert_eq!(text(&restarted, "/d/f").as_deref(), Some("new"), "an image is a machine of its own");
}

#[test]
fn a_torn_image_holds_old_or_new_in_each_block_and_all_combinations_occur() {
    let m = machine();
    let file = put_durable(&m, "/d/f", &[1; 8192]);
    file.write_all_at(&[2; 8192], 0).unwrap();
    file.write_all_at(&[3; 8192], 8192).unwrap();
    let (mut firsts, mut sizes) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..300 {
        let left = read(&m.crash_image(strict(seed)), "/d/f").unwrap();
        assert_eq!(left, read(&m.crash_image(strict(seed)), "/d/f").unwrap(), "seed {seed}");
        for (index, block) in left.chunks(512).enumerate() {
            let allowed: &[u8] = if index < 16 { &[1, 2] } else { &[0, 3] };
            assert!(block.iter().all(|byte| *byte == block[0]) && allowed.contains(&block[0]), "seed {seed}");
        }
        firsts.insert((left[0], left[8191]));
        sizes.insert(left.len());
    }
    assert_eq!(firsts.len(), 4);
    assert!(sizes.contains(&8192) && sizes.contains(&16384) && sizes.len() > 2, "{sizes:?}");
}

#[test]
fn a_torn_image_keeps_synced_bytes_and_renames_whole() {
    let m = machine();
    put_durable(&m, "/d/kept", b"kept");
    put_durable(&m, "/d/current", b"1");
    put(&m, "/d/tmp", b"2").sync().unwrap();
    disk(&m).rename(p("/d/tmp"), p("/d/current")).unwrap();
    put(&m, "/d/new", b"");
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let after = m.crash_image(strict(seed));
        assert_eq!(text(&after, "/d/kept").as_deref(), Some("kept"));
        let current = text(&after, "/d/current").unwrap();
        let tmp = text(&after, "/d/tmp");
        assert!(
            matches!((current.as_str(), tmp.as_deref()), ("1", None | Some("2")) | ("2", None)),
            "seed {seed}"
        );
        seen.insert((current, tmp, disk(&after).exists(p("/d/new"))));
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
}

#[test]
fn the_machine_is_kept_before_and_after_the_nth_sync() {
    let m = machine();
    let file = put_durable(&m, "/d/f", b"0");
    let before = m.syncs();
    m.on_sync(2, When::Before);
    m.on_sync(2, When::After);
    for byte in [b"1", b"2", b"3"] {
        file.write_all_at(byte, 0).unwrap();
        file.sync().unwrap();
    }
    let cuts = m.take_cuts();
    assert_eq!(cuts.iter().map(|cut| cut.when).collect::<Vec<_>>(), [When::Before, When::After]);
    for (cut, synced) in cuts.iter().zip(["1", "2"]) {
        assert_eq!((cut.number, cut.path.as_path()), (before + 2, p("/d/f")));
        assert_eq!(text(&cut.machine, "/d/f").as_deref(), Some("2"));
        assert_eq!(text(&cut.machine.crash(), "/d/f").as_deref(), Some(synced));
    }
    assert!(m.take_cuts().is_empty());
}

#[test]
fn every_sync_of_files_and_folders_can_be_watched() {
    let m = machine();
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    m.on_every_sync(move |cut| into.lock().push((cut.when, names(&cut.machine.crash()).len())));
    put_durable(&m, "/d/f", b"");
    m.stop_watching();
    put_durable(&m, "/d/g", b"");
    let seen = seen.lock();
    assert_eq!(*seen, [(When::Before, 0), (When::After, 0), (When::Before, 0), (When::After, 1)]);
}

#[test]
fn a_failed_sync_is_not_made_good_by_the_next() {
    let m = machine();
    let file = put_durable(&m, "/d/f", &[1; 400_000]);
    file.write_all_at(&[2; 400_000], 0).unwrap();
    m.fail(Fault::new(Call::Sync, 1, ErrorKind::Other));
    assert!(file.sync().is_err());
    file.sync().unwrap();
    assert_eq!(read(&m, "/d/f").unwrap(), vec![2; 400_000], "still read from memory");
    let left = read(&m.crash(), "/d/f").unwrap();
    assert!(left.contains(&1) && left.contains(&2));
    file.write_all_at(&[2; 400_000], 0).unwrap();
    file.sync().unwrap();
    assert_eq!(read(&m.crash(), "/d/f").unwrap(), vec![2; 400_000], "written again, it is durable");
}

#[test]
fn an_image_has_no_locks_no_faults_and_the_time_of_day() {
    let m = machine();
    let _lock = disk(&m).lock(p("/d/lock"), "me").unwrap();
    m.fail(Fault::new(Call::Create, 1, ErrorKind::StorageFull).lasting());
    m.advance(5_000_000_000);
    let after = m.crash_image(Survives::EverythingWritten);
    let _lock = disk(&after).lock(p("/d/lock"), "me again").unwrap();
    put(&after, "/d/f", b"");
    let (old, new) = (m.host().clock, after.host().clock);
    assert_eq!((new.wall_us(), new.monotonic_ns()), (old.wall_us(), 0));
    let (mut a, mut b) = ([0; 16], [0; 16]);
    Machine::new(1).host().random.fill(&mut a);
    after.host().random.fill(&mut b);
    assert_ne!(a, b, "a restarted process draws other ids");
    let _: &dyn Clock = new.as_ref();
}

/// What images of a machine show on a file system, each once.
fn shown<T: Ord>(m: &Machine, profile: Profile, look: impl Fn(&Machine) -> T) -> BTreeSet<T> {
    (0..200).map(|seed| look(&m.crash_image(Survives::TornOn { profile, seed }))).collect()
}

#[test]
fn a_journal_keeps_changes_of_names_in_their_order_over_all_folders() {
    let m = machine();
    put_durable(&m, "/d/a", b"a");
    for (from, to) in [("/d/a", "/e/a"), ("/e/a", "/d/b"), ("/d/b", "/e/b")] {
        disk(&m).rename(p(from), p(to)).unwrap();
    }
    put(&m, "/d/c", b"");
    for profile in [Profile::Ext4Ordered, Profile::Xfs] {
        let seen = shown(&m, profile, names);
        let in_order: [&[&str]; 5] = [&["/d/a"], &["/e/a"], &["/d/b"], &["/e/b"], &["/d/c", "/e/b"]];
        assert_eq!(seen.len(), in_order.len(), "{seen:?}");
        assert!(in_order.iter().all(|names| seen.contains(&strings(names))), "{seen:?}");
    }
    let strict = shown(&m, Profile::Strict, names);
    assert!(
        strict.contains(&strings(&["/d/a", "/d/c"])),
        "a later name without the earlier ones: {strict:?}"
    );
}

/// Names as `names` gives them.
fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_commit_of_a_journal_makes_the_names_of_all_folders_durable() {
    let m = machine();
    let old = put_durable(&m, "/e/old", &[1; 5000]);
    put(&m, "/d/a", b"");
    old.write_all_at(&[2; 5000], 0).unwrap();
    old.sync().unwrap();
    for profile in [Profile::Ext4Ordered, Profile::Xfs] {
        assert_eq!(shown(&m, profile, names).len(), 2, "a sync of old bytes commits nothing");
    }
    old.write_all_at(b"longer", 5000).unwrap();
    old.sync().unwrap();
    for profile in [Profile::Ext4Ordered, Profile::Xfs] {
        let all = BTreeSet::from([strings(&["/d/a", "/e/old"])]);
        assert_eq!(shown(&m, profile, names), all, "a sync of a longer file commits everything");
    }
    assert_eq!(shown(&m, Profile::Strict, names).len(), 2);
    put(&m, "/d/b", b"");
    disk(&m).sync_dir(p("/e")).unwrap();
    for profile in [Profile::Ext4Ordered, Profile::Xfs] {
        assert_eq!(shown(&m, profile, names).len(), 1, "so does a sync of another folder");
    }
}

#[test]
fn a_file_grows_with_its_bytes_but_on_the_strict_disk() {
    let m = machine();
    let file = put_durable(&m, "/d/f", &[1; 4096]);
    file.write_all_at(&[2; 3 * 4096], 4096).unwrap();
    let has_zeroes = |m: &Machine| read(m, "/d/f").unwrap().contains(&0);
    for profile in [Profile::Ext4Ordered, Profile::Xfs] {
        assert_eq!(shown(&m, profile, has_zeroes), BTreeSet::from([false]));
        assert!(shown(&m, profile, |m| read(m, "/d/f").unwrap().len()).len() > 2, "any length");
    }
    assert_eq!(shown(&m, Profile::Strict, has_zeroes).len(), 2, "a length without its bytes");
}

#[test]
fn a_file_renamed_over_another_has_its_bytes_on_ext4_alone() {
    let m = machine();
    put_durable(&m, "/d/current", b"1");
    put(&m, "/d/new", b"2");
    disk(&m).rename(p("/d/new"), p("/d/current")).unwrap();
    let current = |m: &Machine| text(m, "/d/current").unwrap();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(shown(&m, Profile::Ext4Ordered, current), texts(&["1", "2"]));
    assert_eq!(shown(&m, Profile::Xfs, current), texts(&["", "1", "2"]));
}

#[test]
fn a_torn_image_draws_its_file_system() {
    let drawn: Vec<_> = (0..30).map(|seed| Survives::Torn { seed }.profile()).collect();
    assert!(Profile::ALL.iter().all(|profile| drawn.contains(&Some(*profile))), "{drawn:?}");
}

#[test]
fn the_machine_is_shown_before_every_change_if_that_is_wanted() {
    let m = machine();
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    m.on_every_change(move |cut| into.lock().push((cut.when, names(&cut.machine).len())));
    put_durable(&m, "/d/f", b"x");
    disk(&m).rename(p("/d/f"), p("/e/f")).unwrap();
    disk(&m).list(p("/d")).unwrap();
    m.stop_watching();
    let seen = seen.lock();
    let changes: Vec<_> = seen.iter().filter(|(when, _)| matches!(when, When::Change(_))).collect();
    let of = |call, names| (When::Change(call), names);
    assert_eq!(changes, [&of(Call::Create, 0), &of(Call::Write, 1), &of(Call::Rename, 1)]);
    assert_eq!(seen.len(), 3 + 4, "and each sync twice");
}
