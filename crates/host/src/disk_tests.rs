//! The disk in memory behaves as the real one: same results, same kinds of error, same bytes.

use crate::random::Sequence;
use crate::sim::Machine;
use crate::{Disk, Host, lock_holder, memory, real};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Does a random operation and describes it as text, so that two disks can be compared.
fn operate(disk: &dyn Disk, root: &Path, chance: &Sequence) -> String {
    let path = |chance: &Sequence| {
        let depth = chance.below(3) + 1;
        (0..depth).fold(root.to_path_buf(), |path, _| {
            path.join(["a", "b", "c"][usize::try_from(chance.below(3)).unwrap()])
        })
    };
    let (one, two) = (path(chance), path(chance));
    let (offset, len) = (chance.below(200_000), usize::try_from(chance.below(90_000)).unwrap());
    let told = match chance.below(13) {
        0..=2 => {
            disk.create(&one).and_then(|f| f.write_all_at(&vec![7; len], offset)).map(|()| "created".into())
        }
        3 => disk.create_dir_all(&one).map(|()| "folder".into()),
        4 | 5 => disk.rename(&one, &two).map(|()| "renamed".into()),
        6 => disk.hard_link(&one, &two).map(|()| "linked".into()),
        7 => disk.remove(&one).map(|()| "removed".into()),
        8 => disk.remove_dir(&one).map(|()| "folder removed".into()),
        9 => disk.open_write(&one).and_then(|f| f.set_size(offset)).map(|()| "cut".into()),
        10 => disk.open_write(&one).and_then(|f| f.allocate(offset)).map(|()| "allocated".into()),
        11 => disk
            .open_write(&one)
            .and_then(|f| f.write_all_at(&vec![9; len], offset))
            .map(|()| "written".into()),
        _ => disk.sync_dir(&one).and_then(|()| disk.list(&one)).map(|names| relative(&names, root)),
    };
    match told {
        Ok(told) => told,
        Err(e) => {
            assert!(e.to_string().contains(root.to_str().unwrap()), "names no path: {e}");
            format!("{:?}", e.kind())
        }
    }
}

fn relative(paths: &[PathBuf], root: &Path) -> String {
    format!("{:?}", paths.iter().map(|path| path.strip_prefix(root).unwrap()).collect::<Vec<_>>())
}

/// Every name and byte below `dir`.
fn dump(disk: &dyn Disk, dir: &Path, root: &Path, into: &mut Vec<(PathBuf, Option<Vec<u8>>)>) {
    for path in disk.list(dir).unwrap() {
        let name = path.strip_prefix(root).unwrap().to_path_buf();
        if disk.is_dir(&path) {
            into.push((name, None));
            dump(disk, &path, root, into);
        } else {
            assert!(disk.exists(&path));
            let file = disk.open(&path).unwrap();
            let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
            file.read_exact_at(&mut bytes, 0).unwrap();
            into.push((name, Some(bytes)));
        }
    }
}

fn dumped(host: &Host, root: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    dump(host.disk.as_ref(), root, root, &mut all);
    all
}

#[test]
fn memory_and_simulated_disks_answer_as_the_real_one() {
    for seed in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::new(seed);
        let hosts = [real::host(), memory::host(), machine.host()];
        for host in &hosts {
            host.disk.create_dir_all(dir.path()).unwrap();
        }
        for round in 0..150 {
            let told = hosts
                .each_ref()
                .map(|host| operate(host.disk.as_ref(), dir.path(), &Sequence::new(seed * 1000 + round)));
            assert_eq!(told[0], told[1], "memory, seed {seed}, round {round}");
            assert_eq!(told[0], told[2], "simulated, seed {seed}, round {round}");
        }
        let all = hosts.each_ref().map(|host| dumped(host, dir.path()));
        assert!(all[0] == all[1] && all[0] == all[2], "seed {seed}");
        let present = machine.crash_image(crate::sim::Survives::EverythingWritten);
        assert!(all[0] == dumped(&present.host(), dir.path()), "seed {seed}");
    }
}

#[test]
fn a_removed_file_is_read_on_while_open() {
    let dir = tempfile::tempdir().unwrap();
    for host in [real::host(), memory::host(), Machine::new(0).host()] {
        host.disk.create_dir_all(dir.path()).unwrap();
        let path = dir.path().join("f");
        let file = host.disk.create(&path).unwrap();
        file.write_all_at(b"still", 0).unwrap();
        host.disk.remove(&path).unwrap();
        host.disk.create(&path).unwrap().write_all_at(b"other", 0).unwrap();
        let mut bytes = [0; 5];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"still");
        host.disk.remove(&path).unwrap();
    }
}

#[test]
fn reads_behind_the_end_and_writes_through_a_reader_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for host in [real::host(), memory::host(), Machine::new(0).host()] {
        host.disk.create_dir_all(dir.path()).unwrap();
        let path = dir.path().join("f");
        host.disk.create(&path).unwrap().write_all_at(b"abc", 0).unwrap();
        let file = host.disk.open(&path).unwrap();
        assert_eq!(file.read_exact_at(&mut [0; 2], 2).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert!(!file.try_read_exact_at(&mut [0; 2], 2).unwrap());
        assert!(
            file.write_all_at(b"d", 0).is_err() && file.set_size(0).is_err() && file.allocate(9).is_err()
        );
        assert_eq!(file.size().unwrap(), 3);
        host.disk.remove(&path).unwrap();
    }
}

#[test]
fn a_lock_is_held_until_dropped() {
    let dir = tempfile::tempdir().unwrap();
    for host in [real::host(), memory::host(), Machine::new(0).host()] {
        host.disk.create_dir_all(dir.path()).unwrap();
        let path = dir.path().join("lock");
        let first = host.disk.lock(&path, "the first").unwrap();
        let error: io::Error = host.disk.lock(&path, "the second").err().unwrap();
        assert_eq!((error.kind(), lock_holder(&error)), (ErrorKind::WouldBlock, Some("the first")));
        drop(first);
        drop(host.disk.lock(&path, "third").unwrap());
        host.disk.remove(&path).unwrap();
    }
}

#[test]
fn a_memory_file_serves_readers_and_writers_at_once() {
    let file = memory::host().disk.create(Path::new("f")).unwrap();
    file.write_all_at(&[0; 200_000], 0).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let file = &file;
            scope.spawn(move || {
                let own = u64::from(thread) * 50_000;
                let mut bytes = [0; 5_000];
                for round in 1..200_u8 {
                    file.write_all_at(&[round; 5_000], own).unwrap();
                    file.sync().unwrap();
                    file.read_exact_at(&mut bytes, own).unwrap();
                    assert!(bytes.iter().all(|byte| *byte == round));
                    file.read_exact_at(&mut bytes, (own + 50_000) % 200_000).unwrap();
                    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a torn read");
                }
            });
        }
    });
}
