//! Judges of progress: what a database must keep small, gapless and tidy, whatever its answers are.
//!
//! They look at the files of a database that is open, and at its inspection interface, so that they can judge any test
//! at any quiet moment: after an operation, when its background work has had a turn. Each trouble is a sentence; a
//! test asserts that there is none.
//!
//! The arithmetic of the log's bound: the flusher acts beyond 32 closed segments (`SEGMENTS_MAX` of the engine), two more may be
//! created in advance, one is active, and one may be filled while the flush runs.

use helenus_engine::Database;
use helenus_host::Disk;
use helenus_sstable::names::{Descriptor, parse_table_folder};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The most segment files of a log while every table can be flushed.
pub const SEGMENTS_MAX: usize = 32 + 2 + 1 + 1;
/// The most segments that wait for reuse.
const USED_MAX: usize = 16;
/// The bytes of a segment's head, and of a record's.
const HEADS: (usize, usize) = (20, 8);
/// The kind of a record that names the end of the previous segment: `docs/formats/commitlog.md`.
const CONTINUES: u8 = 7;

/// A database on a disk, in the folder `dir`.
pub struct Judged<'a> {
    pub disk: &'a dyn Disk,
    pub dir: &'a Path,
    pub database: &'a Database,
    /// Whether nothing has failed since the database was opened.
    pub is_fresh: bool,
}

impl<'a> Judged<'a> {
    /// The database of `/db` on the disk that it was opened on.
    pub fn of(database: &'a Database) -> Judged<'a> {
        Judged { disk: &*database.host().disk, dir: Path::new("/db"), database, is_fresh: false }
    }

    /// All troubles.
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        self.log_is_bounded(&mut troubles);
        self.log_is_gapless(&mut troubles);
        self.nothing_else_in_the_log(&mut troubles);
        self.kept_segments_are_wanted(&mut troubles);
        self.begin_is_on_the_disk(&mut troubles);
        self.memory_is_freed(&mut troubles);
        self.no_import_is_left(&mut troubles);
        self.no_export_is_left(&mut troubles);
        self.folders_are_of_tables(&mut troubles);
        troubles
    }

    /// Fails with all troubles, if there are any.
    pub fn assert_none(&self, what: &str) {
        let troubles = self.troubles();
        assert!(troubles.is_empty(), "{what}:\n  {}", troubles.join("\n  "));
    }

    /// The segments of the log, oldest first.
    pub fn segments(&self) -> Vec<PathBuf> {
        let files = self.list(&self.dir.join("commitlog"));
        files.into_iter().filter(|path| name(path).starts_with("helenus-")).collect()
    }

    fn list(&self, folder: &Path) -> Vec<PathBuf> {
        if self.disk.is_dir(folder) { self.disk.list(folder).unwrap() } else { Vec::new() }
    }

    /// Whether the log has no more segments than a flush of every table would leave it.
    pub fn log_is_bounded(&self, troubles: &mut Vec<String>) {
        let segments = self.segments().len();
        if segments > SEGMENTS_MAX {
            troubles.push(format!("the log has {segments} segments; the bound is {SEGMENTS_MAX}"));
        }
    }

    /// Each segment with records names the one before it. That one is on the disk too, unless it was the oldest: nothing
    /// in the middle is missing.
    pub fn log_is_gapless(&self, troubles: &mut Vec<String>) {
        let segments = self.segments();
        let numbers: BTreeSet<u32> = segments.iter().filter_map(|path| number(path, "helenus-")).collect();
        for path in &segments {
            let Some(continued) = self.continues(path) else { continue };
            if !numbers.contains(&continued) && numbers.first().is_some_and(|oldest| *oldest < continued) {
                troubles.push(format!("{} continues segment {continued}, which is not there", name(path)));
            }
        }
    }

    /// The segment that this one continues; `None` for one without records.
    fn continues(&self, path: &Path) -> Option<u32> {
        let file = self.disk.open(path).ok()?;
        let mut bytes = vec![0; HEADS.0 + HEADS.1 + 9];
        file.read_exact_at(&mut bytes, 0).ok()?;
        // A reused file that is not begun yet has the head of its new number and the records of its old one.
        let head = bytes.get(12..16).and_then(|head| head.first_chunk::<4>()).copied()?;
        let content = bytes.get(HEADS.0 + HEADS.1..)?;
        let length = bytes.get(HEADS.0..HEADS.0 + 4)?.first_chunk::<4>().copied()?;
        let checksum = bytes.get(HEADS.0 + 4..HEADS.0 + HEADS.1)?.first_chunk::<4>().copied()?;
        let mut crc = helenus_sstable::checksum::Crc32::default();
        crc.update(&head);
        crc.update(&length);
        crc.update(content.get(..u32::from_le_bytes(length) as usize)?);
        if content.first() != Some(&CONTINUES) || crc.value() != u32::from_le_bytes(checksum) {
            return None;
        }
        let position = content.get(1..9)?.first_chunk::<8>().copied()?;
        u32::try_from(u64::from_le_bytes(position) >> 32).ok()
    }

    fn nothing_else_in_the_log(&self, troubles: &mut Vec<String>) {
        let files = self.list(&self.dir.join("commitlog"));
        let used = files.iter().filter(|path| name(path).starts_with("used-")).count();
        if used > USED_MAX {
            troubles.push(format!("{used} segments wait for reuse; the bound is {USED_MAX}"));
        }
        let is_known = |name: &str| {
            ["helenus-", "used-"].iter().any(|begin| name.starts_with(begin))
                || ["spare.log", "next.log", "reserve.log"].contains(&name)
                // Records that no table can keep, for a person to look at.
                || name == "unappliable"
        };
        for path in files.iter().filter(|path| !is_known(name(path))) {
            troubles.push(format!("{} is left in the log's folder", name(path)));
        }
    }

    /// Kept segments are some consumer's.
    fn kept_segments_are_wanted(&self, troubles: &mut Vec<String>) {
        let files = self.list(&self.dir.join("changes"));
        // The next replacement of such a file removes what an interrupted one left.
        let is_known = |name: &str| {
            let name = name.strip_suffix(".new").unwrap_or(name);
            name.starts_with("kept-") || name.starts_with("begin-") || name == "consumers"
        };
        for path in files.iter().filter(|path| !is_known(name(path))) {
            troubles.push(format!("{} is left in the folder of changes", name(path)));
        }
        let kept: Vec<u32> = files.iter().filter_map(|path| number(path, "kept-")).collect();
        if !kept.is_empty() && self.database.changes().consumers().is_empty() {
            troubles.push(format!("{} segments are kept, and there is no consumer", kept.len()));
        }
    }

    /// The position from which all changes are there is not earlier on the disk than in memory: otherwise a start would pass
    /// over a gap in silence. No kept segment lies before it.
    fn begin_is_on_the_disk(&self, troubles: &mut Vec<String>) {
        let files = self.list(&self.dir.join("changes"));
        let begins = files.iter().filter_map(|path| name(path).strip_prefix("begin-")?.parse::<u64>().ok());
        let on_disk = begins.max().unwrap_or_default();
        let text = self.database.changes().begin().unwrap().text(self.database.host_id());
        let in_memory = text.split('-').nth(1).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        if in_memory.is_none_or(|in_memory| in_memory > on_disk) {
            troubles.push(format!("changes begin at {on_disk:#x} on the disk, and at {text} in memory"));
        }
        let begin = u32::try_from(on_disk >> 32).unwrap_or(u32::MAX);
        for before in files.iter().filter(|path| number(path, "kept-").is_some_and(|kept| kept < begin)) {
            troubles.push(format!("{} is kept, and changes begin at segment {begin}", name(before)));
        }
    }

    /// At rest the memtables take at most half of their memory: flushes have freed it.
    fn memory_is_freed(&self, troubles: &mut Vec<String>) {
        let status = self.database.status();
        if status.flush_failure.is_none() && status.memtable_bytes > status.memtable_bytes_max / 2 {
            let (bytes, most) = (status.memtable_bytes, status.memtable_bytes_max);
            troubles.push(format!("memtables have {bytes} bytes of {most}, and no flush frees them"));
        }
    }

    /// No import that counts is unfinished: its folder holds no table's files that are not retired. Empty folders, and what
    /// an import left that does not count, go at the next start if their removal failed too.
    fn no_import_is_left(&self, troubles: &mut Vec<String>) {
        for path in self.list(&self.dir.join("import")) {
            let tables = self.list(&path).into_iter().flat_map(|keyspace| self.list(&keyspace));
            let counts = name(&path).ends_with(".ready")
                && tables.into_iter().any(|table| !name(&table).ends_with(".retired"));
            if self.is_fresh || counts {
                troubles.push(format!("{} is left in the folder of imports", name(&path)));
            }
        }
    }

    /// A start removes the exports whose owners have gone.
    fn no_export_is_left(&self, troubles: &mut Vec<String>) {
        for path in self.list(&self.dir.join("export")).iter().filter(|_| self.is_fresh) {
            troubles.push(format!("{} is left in the folder of exports", name(path)));
        }
    }

    /// Each folder is a table's and has the files of the table's SSTables only, or it has nothing but snapshots.
    fn folders_are_of_tables(&self, troubles: &mut Vec<String>) {
        let schema = self.database.schema();
        for keyspace in self.list(&self.dir.join("data")) {
            for folder in self.list(&keyspace) {
                let shown = format!("{}/{}", name(&keyspace), name(&folder));
                let id = parse_table_folder(name(&folder)).map(|(_, id)| id);
                let table = id.and_then(|id| schema.table_by_id(id));
                let files: Vec<PathBuf> = self.list(&folder);
                let files = files.iter().filter(|path| name(path) != "snapshots");
                match table {
                    Some(table) => {
                        let own: BTreeSet<Descriptor> =
                            self.database.inspect().sstables(table).unwrap().into_iter().collect();
                        let of_index = |path: &&PathBuf| name(path).starts_with(".helenus-");
                        let useless = files.filter(|path| {
                            !of_index(path)
                                && Descriptor::parse(name(path)).is_none_or(|(one, _)| !own.contains(&one))
                        });
                        let useless: Vec<&str> = useless.map(|path| name(path)).collect();
                        if !useless.is_empty() {
                            troubles
                                .push(format!("{shown} has files of no SSTable of the table: {useless:?}"));
                        }
                    }
                    None => {
                        let left: Vec<&str> = files.map(|path| name(path)).collect();
                        if !left.is_empty() {
                            troubles.push(format!("{shown} is of no table and has {left:?}"));
                        }
                    }
                }
            }
        }
    }
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The number in the name of a segment.
fn number(path: &Path, prefix: &str) -> Option<u32> {
    let digits: String = name(path).strip_prefix(prefix)?.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
