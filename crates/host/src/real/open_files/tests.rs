//! Reads of open files while their names and descriptors change: random operations, and single cases.

use super::*;
use crate::random::Sequence;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

fn open(files: &Arc<OpenFiles>, path: &Path) -> io::Result<Opened> {
    files.open(path, || fs::File::open(path))
}

fn read(opened: &Opened) -> io::Result<Vec<u8>> {
    opened.with(|file| {
        let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).unwrap()];
        file.read_exact_at(&mut bytes, 0).map(|()| bytes)
    })
}

fn descriptors(files: &OpenFiles) -> usize {
    let state = files.state.lock();
    let open = |file: &Weak<OpenFile>| file.upgrade().is_some_and(|file| file.descriptor.load().is_some());
    state.by_path.values().flatten().filter(|file| open(file)).count()
}

/// Random opens, reads, removals, renames and closes, compared with a map of each open file's content.
#[test]
fn open_files_are_read_whatever_becomes_of_their_names_with_few_descriptors() {
    const KEPT: usize = 5;
    for seed in 0..30 {
        println!("seed {seed}");
        let chance = Sequence::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let files = OpenFiles::new(KEPT);
        let mut open_ones: Vec<(Opened, Vec<u8>)> = Vec::new();
        let mut there: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
        let mut pinned = 0;
        for step in 0..400_u32 {
            let path = dir.path().join(format!("f{}", chance.below(12)));
            match chance.below(10) {
                0..=2 => {
                    let bytes = format!("{step} ").repeat(1 + chance.below(50) as usize).into_bytes();
                    // A new file that replaces one which may be open.
                    let new = dir.path().join("new");
                    fs::write(&new, &bytes).unwrap();
                    let _leaving = files.pin(&path, false);
                    fs::rename(&new, &path).unwrap();
                    there.insert(path, bytes);
                }
                3..=5 => {
                    if let Some(bytes) = there.get(&path) {
                        open_ones.push((open(&files, &path).unwrap(), bytes.clone()));
                    }
                }
                6 => {
                    if there.remove(&path).is_some() {
                        let _leaving = files.pin(&path, false);
                        fs::remove_file(&path).unwrap();
                        pinned += 1;
                    }
                }
                7 => {
                    let to = dir.path().join(format!("f{}", chance.below(12)));
                    if to != path
                        && let Some(bytes) = there.remove(&path)
                    {
                        let _from = files.pin(&path, false);
                        let _to = files.pin(&to, false);
                        fs::rename(&path, &to).unwrap();
                        there.insert(to, bytes);
                    }
                }
                8 if !open_ones.is_empty() => {
                    let at = chance.below(open_ones.len() as u64) as usize;
                    drop(open_ones.swap_remove(at));
                }
                _ => {
                    for (opened, bytes) in &open_ones {
                        assert_eq!(read(opened).unwrap(), *bytes, "step {step}");
                    }
                }
            }
            let pinned_now =
                open_ones.iter().filter(|(one, _)| *one.file.place.lock() == ClockState::Pinned).count();
            assert!(descriptors(&files) <= KEPT + pinned_now, "step {step}");
        }
        assert!(pinned > 0, "files were removed");
        open_ones.clear();
        assert_eq!(descriptors(&files), 0);
        assert!(files.state.lock().by_path.is_empty());
    }
}

#[test]
fn a_folder_that_is_moved_takes_nothing_from_its_readers() {
    let dir = tempfile::tempdir().unwrap();
    let files = OpenFiles::new(1);
    let folder = dir.path().join("a");
    fs::create_dir(&folder).unwrap();
    let opened: Vec<Opened> = (0..3)
        .map(|n| {
            let path = folder.join(format!("{n}"));
            fs::write(&path, [n]).unwrap();
            open(&files, &path).unwrap()
        })
        .collect();
    let _leaving = files.pin(&folder, true);
    fs::rename(&folder, dir.path().join("b")).unwrap();
    for (n, opened) in (0..).zip(&opened) {
        assert_eq!(read(opened).unwrap(), [n]);
    }
}

#[test]
fn what_another_puts_in_the_place_of_a_file_is_not_read_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let files = OpenFiles::new(1);
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    fs::write(&one, b"first").unwrap();
    fs::write(&other, b"other").unwrap();
    let opened = open(&files, &one).unwrap();
    let others: Vec<Opened> = (0..2).map(|_| open(&files, &other).unwrap()).collect();
    for other in &others {
        read(other).unwrap();
    }
    assert_eq!(descriptors(&files), 1);
    fs::rename(&other, &one).unwrap();
    let error = read(&opened).unwrap_err();
    assert!(error.to_string().contains("another file"), "{error}");
}

#[test]
fn files_that_nobody_reads_lose_their_descriptors_although_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, b"f").unwrap();
    let files = OpenFiles::new(100_000);
    let opened: Vec<Opened> = (0..10 * COLD_MIN).map(|_| open(&files, &path).unwrap()).collect();
    assert!(descriptors(&files) <= 2 * COLD_MIN, "{}", descriptors(&files));
    for opened in &opened {
        assert_eq!(read(opened).unwrap(), b"f");
    }
}

/// A file may lose its name between `open(2)` and the entry in the list of open files, whoever was first.
#[test]
fn a_file_that_loses_its_name_while_it_is_opened_keeps_its_descriptor() {
    let dir = tempfile::tempdir().unwrap();
    let files = OpenFiles::new(5);
    let path = dir.path().join("f");
    let closed_and_read = |opened: &Opened| {
        files.close_some();
        read(opened).unwrap()
    };
    // The removal begins and ends after open(2).
    fs::write(&path, b"one").unwrap();
    let opened = files.open(&path, || {
        let opened = fs::File::open(&path)?;
        let leaving = files.pin(&path, false);
        fs::remove_file(&path)?;
        drop(leaving);
        Ok(opened)
    });
    assert_eq!(closed_and_read(&opened.unwrap()), b"one");
    // It has begun before the name is entered, and ends afterwards; here all names of a folder go.
    fs::write(&path, b"two").unwrap();
    let leaving = files.pin(dir.path(), true);
    let opened = open(&files, &path).unwrap();
    fs::remove_file(&path).unwrap();
    drop(leaving);
    assert_eq!(closed_and_read(&opened), b"two");
    drop(opened);
    // A name that is opened while another goes is not kept open.
    fs::write(&path, b"three").unwrap();
    let leaving = files.pin(&dir.path().join("g"), false);
    let opened = open(&files, &path).unwrap();
    drop(leaving);
    files.close_some();
    assert_eq!((descriptors(&files), read(&opened).unwrap()), (0, b"three".to_vec()));
    assert!(files.state.lock().opening.is_empty() && files.state.lock().leaving.is_empty());
    fs::remove_file(&path).unwrap();
    assert!(open(&files, &path).is_err(), "and a name that is not there leaves no entry");
    assert!(files.state.lock().opening.is_empty());
}
