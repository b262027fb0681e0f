//! The file `.helenus-indexed` in the folder of a table with indexes: the SSTables of the table and of the hidden tables of its
//! complete indexes, so that a start notices if somebody has changed them.
//!
//! An index is complete for the SSTables that it was built from and for those that the database has written since. If files were put
//! back by hand, taken away, or replaced by older ones, of the table or of an index, searches would miss rows. A start compares
//! the folders with this file (`database/index_check.rs`), and builds the index anew if they differ.
//!
//! Lines of text are appended. A change of a set of SSTables is announced in a synced line before its transaction commits
//! (`begin`), by flushes and compactions, and settled by a synced line after it. After a crash in between, an announced change may
//! have happened or not; both are right. Each start, `include` and, once most lines are old, `begin` write the file anew.
//!
//! The first line names the run of the database that wrote the file. `system."IndexInfo"` names it too, so that a whole folder of
//! an earlier run is told from the present one: the log would bring only a part of what was written since.
//!
//! An SSTable is known by its name, the size of its Data.db, and the content of its Digest.crc32, because SSTables of an adopted
//! directory have short numbers for names. With it stands the greatest timestamp of its removals and expiring entries, which its
//! own files do not say and writes to an index need (`index/entry_time.rs`). `docs/formats/indexed-files.md` describes the bytes.

use super::TableStore;
use super::view::View;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::folder::make_folder_below;
use helenus_host::{Disk, File};
use helenus_model::schema::TableId;
use helenus_sstable::checksum::crc32;
use helenus_sstable::component::Component;
use helenus_sstable::digest;
use helenus_sstable::names::Descriptor;
use helenus_sstable::table::read_whole;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// Name of the file.
pub(super) const NAME: &str = ".helenus-indexed";
/// Name of the file while it is written anew.
pub(super) const NEW_NAME: &str = ".helenus-indexed.new";
/// The beginning of the first line, without its checksum. The run follows.
const HEAD: &str = "indexed files 1";
/// The file is written anew when it has at least this many lines, and four times as many as it needs.
const LINES_MIN: usize = 256;

/// An SSTable that a change adds, with the timestamp that `SsTable::hiding_us_max` needs, if it is known.
pub(super) type Added = (Descriptor, Option<i64>);

/// What is known of an SSTable besides its name. `hiding_us_max` is not compared: only this file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    data_bytes: u64,
    /// The CRC32 of its Data.db as its Digest.crc32 says; `None` without one.
    digest: Option<u32>,
    /// No deletion, and no value that expires, has a greater timestamp.
    hiding_us_max: Option<i64>,
}

/// The file of one table, shared by the table and its indexes.
pub(crate) struct IndexedFiles {
    disk: Arc<dyn Disk>,
    /// The folder of the table.
    folder: PathBuf,
    /// The run that wrote the file which a start has found.
    found_run: Option<Uuid>,
    /// The present run.
    run: Uuid,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The open file and the offset of the next line; `None` if there is no file.
    file: Option<(Arc<dyn File>, u64)>,
    /// The number of lines in it.
    lines: usize,
    /// Lines that need not be durable before the next synced line.
    waiting: String,
    stores: BTreeMap<TableId, StoreFiles>,
    /// The number of the last change.
    last_change: u64,
    /// The run that the file is of, until `keep` or `include` makes it one of the present run.
    earlier_run: Option<Uuid>,
}

/// The SSTables of one table or hidden table.
#[derive(Default)]
struct StoreFiles {
    present: BTreeMap<Descriptor, Stamp>,
    /// Changes that may have happened.
    begun: BTreeMap<u64, Change>,
    /// Whether a start has found them so.
    is_found: bool,
}

/// A change of a set of SSTables: all of it happens or nothing.
#[derive(Default)]
struct Change {
    added: BTreeMap<Descriptor, Stamp>,
    removed: BTreeSet<Descriptor>,
}

impl StoreFiles {
    /// Whether a folder can have these SSTables after a crash.
    fn may_be(&self, found: &BTreeMap<Descriptor, Stamp>) -> bool {
        let mut expected = self.present.clone();
        for change in self.begun.values() {
            let is_added = |descriptor: &Descriptor| found.contains_key(descriptor);
            let has_happened = match change.added.is_empty() {
                true => !change.removed.iter().any(is_added),
                false => change.added.keys().any(is_added),
            };
            if has_happened {
                change.apply(&mut expected);
            }
        }
        expected.values_mut().for_each(|stamp| stamp.hiding_us_max = None);
        expected == *found
    }

    /// The stamp of an SSTable that is there, if this is the file that is known.
    fn known(&self, (descriptor, found): (&Descriptor, &Stamp)) -> Option<&Stamp> {
        let added = self.begun.values().filter_map(|change| change.added.get(descriptor));
        let mut all = self.present.get(descriptor).into_iter().chain(added);
        all.find(|known| (known.data_bytes, known.digest) == (found.data_bytes, found.digest))
    }
}

impl Change {
    fn apply(&self, present: &mut BTreeMap<Descriptor, Stamp>) {
        self.removed.iter().for_each(|descriptor| _ = present.remove(descriptor));
        present.extend(&self.added);
    }
}

impl IndexedFiles {
    /// Reads the file of a table's folder, for the present run. Without a usable one, also if it cannot be read, nothing is known of any
    /// SSTable: the indexes are built anew then, and the start goes on.
    pub(crate) fn load(disk: &Arc<dyn Disk>, folder: &Path, run: Uuid) -> IndexedFiles {
        let (state, found_run) = match read_state(&**disk, &folder.join(NAME)) {
            Ok(Some((state, run))) => (State { earlier_run: Some(run), ..state }, Some(run)),
            Ok(None) | Err(_) => (State::default(), None),
        };
        let state = Mutex::new(state);
        IndexedFiles { disk: disk.clone(), folder: folder.to_owned(), found_run, run, state }
    }

    /// The run that wrote the file which a start has found.
    pub(crate) fn found_run(&self) -> Option<Uuid> {
        self.found_run
    }

    /// Compares the SSTables of a store's folder with the file.
    ///
    /// # Errors
    /// A file of an SSTable cannot be read.
    pub(crate) fn compare(&self, store: &TableStore) -> Result<()> {
        let view = store.view();
        let mut found = stamps(&*self.disk, store.folder(), descriptors_of(&view))?;
        let mut state = self.state.lock();
        let files = state.stores.entry(store.table().id).or_default();
        files.is_found &= files.may_be(&found);
        for (descriptor, stamp) in &mut found {
            stamp.hiding_us_max = files.known((descriptor, stamp)).and_then(|known| known.hiding_us_max);
        }
        for sstable in view.sstables.iter() {
            if let Some(known) = found.get(sstable.descriptor()).and_then(|stamp| stamp.hiding_us_max) {
                sstable.note_hiding_us_max(known);
            }
        }
        files.present = found;
        files.begun.clear();
        Ok(())
    }

    /// Whether a start has found a store's SSTables as they should be.
    pub(crate) fn is_found(&self, store: TableId) -> bool {
        self.state.lock().stores.get(&store).is_some_and(|files| files.is_found)
    }

    /// Forgets all stores but these, and writes the file of this run. Without any, the file is removed.
    ///
    /// # Errors
    /// Failures of the disk. The file is that of the run before then, and the next change writes one of this run.
    pub(crate) fn keep(&self, stores: &[TableId]) -> Result<()> {
        let mut state = self.state.lock();
        state.stores.retain(|id, _| stores.contains(id));
        if state.stores.is_empty() {
            *state = State::default();
            return self.remove();
        }
        (state.file, state.earlier_run) = (None, None);
        self.write_anew(&mut state)
    }

    fn remove(&self) -> Result<()> {
        let path = self.folder.join(NAME);
        if self.disk.exists(&path) {
            self.disk.remove(&path).map_err(Error::io("remove", &path))?;
            self.disk.sync_dir(&self.folder).map_err(Error::io("sync", &self.folder))?;
        }
        Ok(())
    }

    /// Takes the present SSTables of stores whose sets cannot change meanwhile for those that an index is complete for.
    fn include(&self, stores: &[&TableStore]) -> Result<()> {
        let mut state = self.state.lock();
        for store in stores {
            let view = store.view();
            let mut present = stamps(&*self.disk, store.folder(), descriptors_of(&view))?;
            for sstable in view.sstables.iter() {
                if let Some(stamp) = present.get_mut(sstable.descriptor()) {
                    stamp.hiding_us_max = sstable.known_hiding_us_max();
                }
            }
            let files = StoreFiles { present, is_found: true, ..StoreFiles::default() };
            state.stores.insert(store.table().id, files);
        }
        state.earlier_run = None;
        self.write_anew(&mut state)
    }

    /// Announces a change, durably. Returns its number; `None` for a store without entries in the file.
    fn begin(&self, store: &TableStore, added: &[Added], removed: &[Descriptor]) -> Result<Option<u64>> {
        let id = store.table().id;
        let mut state = self.state.lock();
        if !state.stores.contains_key(&id) {
            return Ok(None);
        }
        let names = added.iter().map(|(descriptor, _)| *descriptor).collect();
        let mut stamps = stamps(&*self.disk, store.folder(), names)?;
        for (descriptor, hiding_us_max) in added {
            if let Some(stamp) = stamps.get_mut(descriptor) {
                stamp.hiding_us_max = *hiding_us_max;
            }
        }
        let change = Change { added: stamps, removed: removed.iter().copied().collect() };
        state.last_change += 1;
        let number = state.last_change;
        let line = change_line(number, id, &change);
        if let Some(files) = state.stores.get_mut(&id) {
            files.begun.insert(number, change);
        }
        let needed: usize =
            state.stores.values().map(|files| files.present.len() + files.begun.len() + 1).sum();
        let written = match state.lines > LINES_MIN.max(needed * 4) || state.file.is_none() {
            true => self.write_anew(&mut state),
            false => self.append(&mut state, &line),
        };
        if written.is_err()
            && let Some(files) = state.stores.get_mut(&id)
        {
            files.begun.remove(&number);
        }
        written.map(|()| Some(number))
    }

    /// Settles a change; the next line that is synced makes that durable.
    fn settle(&self, store: TableId, number: u64, has_happened: bool) {
        let mut state = self.state.lock();
        let Some(files) = state.stores.get_mut(&store) else { return };
        let Some(change) = files.begun.remove(&number) else { return };
        if has_happened {
            change.apply(&mut files.present);
        }
        let kind = if has_happened { "done" } else { "undone" };
        line(&mut state.waiting, &format!("{kind} {number} {}", store.0.simple()));
    }

    /// Settles the changes of a store that failed half-way, by the view, which its folder agrees with.
    fn settle_by(&self, id: TableId, view: &View) {
        let begun: Vec<(u64, bool)> = {
            let state = self.state.lock();
            let Some(files) = state.stores.get(&id) else { return };
            if files.begun.is_empty() {
                return;
            }
            let present = descriptors_of(view);
            let has_happened = |change: &Change| match change.added.is_empty() {
                true => !change.removed.iter().any(|descriptor| present.contains(descriptor)),
                false => change.added.keys().any(|descriptor| present.contains(descriptor)),
            };
            files.begun.iter().map(|(number, change)| (*number, has_happened(change))).collect()
        };
        begun.into_iter().for_each(|(number, has_happened)| self.settle(id, number, has_happened));
    }

    /// A store was emptied, and its files are gone. A failure is none of the TRUNCATE: a start that finds other files than it
    /// expects builds the index of the empty table anew.
    fn emptied(&self, id: TableId) {
        let mut state = self.state.lock();
        let Some(files) = state.stores.get_mut(&id) else { return };
        *files = StoreFiles { is_found: true, ..StoreFiles::default() };
        let _ = self.append(&mut state, &format!("empty {}", id.0.simple()));
    }

    /// Appends a line, behind those that wait, and syncs it.
    fn append(&self, state: &mut State, body: &str) -> Result<()> {
        line(&mut state.waiting, body);
        self.write_waiting(state)
    }

    /// Writes the lines that wait, and syncs them.
    fn write_waiting(&self, state: &mut State) -> Result<()> {
        let Some((file, end)) = state.file.clone() else { return Ok(()) };
        let path = self.folder.join(NAME);
        let text = std::mem::take(&mut state.waiting);
        let written = file
            .write_all_at(text.as_bytes(), end)
            .map_err(Error::io("write", &path))
            .and_then(|()| file.sync().map_err(Error::io("sync", &path)));
        if let Err(error) = written {
            // How much of it lasts is unknown. The next change writes a new file.
            state.file = None;
            return Err(error);
        }
        state.lines += text.lines().count();
        state.file = Some((file, end + text.len() as u64));
        Ok(())
    }

    /// Writes the file anew under another name, and renames it when it is complete.
    fn write_anew(&self, state: &mut State) -> Result<()> {
        let (path, new) = (self.folder.join(NAME), self.folder.join(NEW_NAME));
        let mut text = String::new();
        line(&mut text, &format!("{HEAD} {}", state.earlier_run.unwrap_or(self.run).simple()));
        for (id, files) in &state.stores {
            line(&mut text, &format!("store {}", id.0.simple()));
            for (descriptor, stamp) in &files.present {
                line(&mut text, &format!("has {} {}", id.0.simple(), entry(descriptor, stamp)));
            }
            for (number, change) in &files.begun {
                line(&mut text, &change_line(*number, *id, change));
            }
        }
        if self.disk.exists(&new) {
            self.disk.remove(&new).map_err(Error::io("remove", &new))?;
        }
        let file = self.disk.create(&new).map_err(Error::io("create", &new))?;
        file.write_all_at(text.as_bytes(), 0).map_err(Error::io("write", &new))?;
        file.sync().map_err(Error::io("sync", &new))?;
        self.disk.rename(&new, &path).map_err(Error::io("rename", &new))?;
        self.disk.sync_dir(&self.folder).map_err(Error::io("sync", &self.folder))?;
        state.lines = text.lines().count();
        state.waiting.clear();
        state.file = Some((file, text.len() as u64));
        Ok(())
    }
}

impl TableStore {
    /// Records that the SSTables of this table and of the hidden table of an index, which is built now, belong together.
    ///
    /// # Errors
    /// Failures of the disk.
    pub(crate) fn include_index(&self, env: &Env, index: &TableStore) -> Result<()> {
        // In the order of `truncate`.
        let (_base, _hidden) = (self.changing.lock(), index.changing.lock());
        let files = match self.indexed_files.load_full() {
            Some(files) => files,
            None => {
                make_folder_below(&*env.host.disk, &env.dir, &self.folder)?;
                Arc::new(IndexedFiles {
                    disk: env.host.disk.clone(),
                    folder: self.folder.clone(),
                    found_run: None,
                    run: env.run,
                    state: Mutex::default(),
                })
            }
        };
        files.include(&[self, index])?;
        self.indexed_files.store(Some(files.clone()));
        index.indexed_files.store(Some(files));
        Ok(())
    }

    /// Sets the file that changes of this store are announced in.
    pub(crate) fn announce_in(&self, files: Option<&Arc<IndexedFiles>>) {
        self.indexed_files.store(files.cloned());
    }

    /// Announces a change of the set of SSTables, before its transaction commits. `is_tidy` says that earlier changes left nothing
    /// behind.
    pub(super) fn begin_change(
        &self,
        (added, removed): (&[Added], &[Descriptor]),
        is_tidy: bool,
    ) -> Result<Option<u64>> {
        let Some(files) = &*self.indexed_files.load() else { return Ok(None) };
        if is_tidy {
            files.settle_by(self.table().id, &self.view());
        }
        files.begin(self, added, removed)
    }

    /// A change is in the view.
    pub(super) fn end_change(&self, number: Option<u64>) {
        if let (Some(files), Some(number)) = (&*self.indexed_files.load(), number) {
            files.settle(self.table().id, number, true);
            // Otherwise a file that somebody takes away would look like one that was never added. After a failure the next
            // change writes all of it.
            let _ = files.write_waiting(&mut files.state.lock());
        }
    }

    /// The files of the emptied table are gone.
    pub(super) fn note_emptied(&self) {
        if let Some(files) = &*self.indexed_files.load() {
            files.emptied(self.table().id);
        }
    }
}

/// What a file says, and the run that wrote it; `None` without a usable one.
fn read_state(disk: &dyn Disk, path: &Path) -> Result<Option<(State, Uuid)>> {
    if !disk.exists(path) {
        return Ok(None);
    }
    let bytes = read_whole(disk, path)?;
    let Some(Parsed { state, run, end }) = parse(&bytes) else { return Ok(None) };
    let file = disk.open_write(path).map_err(Error::io("open", path))?;
    if end < bytes.len() {
        // A crash cut the last line, whose change has not happened.
        file.set_size(end as u64).map_err(Error::io("cut", path))?;
    }
    Ok(Some((State { file: Some((file, end as u64)), ..state }, run)))
}

/// The SSTables of a view, also those that cannot be read.
fn descriptors_of(view: &View) -> BTreeSet<Descriptor> {
    let readable = view.sstables.iter().map(|sstable| *sstable.descriptor());
    readable.chain(view.unreadable.iter().filter_map(|unreadable| unreadable.descriptor)).collect()
}

fn stamps(disk: &dyn Disk, folder: &Path, of: BTreeSet<Descriptor>) -> Result<BTreeMap<Descriptor, Stamp>> {
    let stamp = |descriptor: Descriptor| {
        let data = descriptor.path(folder, Component::Data);
        let file = disk.open(&data).map_err(Error::io("open", &data))?;
        let data_bytes = file.size().map_err(Error::io("read", &data))?;
        let path = descriptor.path(folder, Component::Digest);
        let digest = match disk.exists(&path) {
            // One that cannot be parsed is the same as none, as long as it stays so.
            true => digest::parse(&read_whole(disk, &path)?, &path).ok(),
            false => None,
        };
        Ok((descriptor, Stamp { data_bytes, digest, hiding_us_max: None }))
    };
    of.into_iter().map(stamp).collect()
}

fn entry(descriptor: &Descriptor, stamp: &Stamp) -> String {
    let digest = stamp.digest.map_or("-".to_owned(), |digest| digest.to_string());
    let hiding_us_max = stamp.hiding_us_max.map_or(String::new(), |known| format!("/{known}"));
    format!("{descriptor}/{}/{digest}{hiding_us_max}", stamp.data_bytes)
}

fn change_line(number: u64, store: TableId, change: &Change) -> String {
    let mut text = format!("begin {number} {}", store.0.simple());
    for (descriptor, stamp) in &change.added {
        let _ = write!(text, " +{}", entry(descriptor, stamp));
    }
    for descriptor in &change.removed {
        let _ = write!(text, " -{descriptor}");
    }
    text
}

/// Adds a line with the checksum of its body before it.
fn line(text: &mut String, body: &str) {
    let _ = writeln!(text, "{:08x} {body}", crc32(body.as_bytes()));
}

/// A file.
struct Parsed {
    state: State,
    run: Uuid,
    /// The offset behind its last whole line.
    end: usize,
}

/// Parses a file. `None` if something other than its end is damaged, or if it is of another version.
fn parse(bytes: &[u8]) -> Option<Parsed> {
    let mut state = State::default();
    let (mut end, mut run) = (0, Uuid::nil());
    for text in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(body) = body_of(text) else { break };
        match state.lines {
            0 => run = Uuid::try_parse(body.strip_prefix(HEAD)?.strip_prefix(' ')?).ok()?,
            _ => read_line(body, &mut state)?,
        }
        state.lines += 1;
        end += text.len();
    }
    // Only the last append can be torn: everything behind a bad line must be of it.
    let torn = bytes.get(end..).unwrap_or_default();
    let is_torn = !torn.split_inclusive(|byte| *byte == b'\n').skip(1).any(|text| body_of(text).is_some());
    (state.lines > 0 && is_torn).then_some(Parsed { state, run, end })
}

fn body_of(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text.strip_suffix(b"\n")?).ok()?;
    let (sum, body) = text.split_once(' ')?;
    (u32::from_str_radix(sum, 16) == Ok(crc32(body.as_bytes()))).then_some(body)
}

fn read_line(body: &str, state: &mut State) -> Option<()> {
    let mut words = body.split(' ');
    let kind = words.next()?;
    let number = match kind {
        "begin" | "done" | "undone" => words.next()?.parse().ok()?,
        _ => 0,
    };
    state.last_change = state.last_change.max(number);
    let files = state.stores.entry(TableId(Uuid::try_parse(words.next()?).ok()?)).or_default();
    files.is_found = true;
    match kind {
        "store" => {}
        "has" => files.present.extend([parse_entry(words.next()?)?]),
        "empty" => (files.present, files.begun) = Default::default(),
        "begin" => {
            let mut change = Change::default();
            for word in words {
                match word.strip_prefix('+') {
                    Some(added) => change.added.extend([parse_entry(added)?]),
                    None => _ = change.removed.insert(parse_name(word.strip_prefix('-')?)?),
                }
            }
            files.begun.insert(number, change);
        }
        "done" => files.begun.remove(&number)?.apply(&mut files.present),
        "undone" => _ = files.begun.remove(&number)?,
        _ => return None,
    }
    Some(())
}

fn parse_entry(text: &str) -> Option<(Descriptor, Stamp)> {
    let mut parts = text.split('/');
    let descriptor = parse_name(parts.next()?)?;
    let data_bytes = parts.next()?.parse().ok()?;
    let digest = match parts.next()? {
        "-" => None,
        digits => Some(digits.parse().ok()?),
    };
    let hiding_us_max = parts.next().and_then(|digits| digits.parse().ok());
    Some((descriptor, Stamp { data_bytes, digest, hiding_us_max }))
}

fn parse_name(text: &str) -> Option<Descriptor> {
    Descriptor::parse(&format!("{text}-{}", Component::Data)).map(|(descriptor, _)| descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: &str = "7ad54392bcdd35a684174e047860b377";

    fn text(lines: &[String]) -> Vec<u8> {
        let mut text = String::new();
        lines.iter().for_each(|body| line(&mut text, body));
        text.into_bytes()
    }

    fn lines() -> Vec<String> {
        vec![
            format!("{HEAD} {STORE}"),
            format!("store {STORE}"),
            format!("has {STORE} nb-1-big/100/7/-5"),
            format!("has {STORE} nb-2-big/100/-"),
            format!("begin 4 {STORE} +nb-3-big/50/9 -nb-1-big -nb-2-big"),
        ]
    }

    fn files(names: &[(&str, u64, Option<u32>)]) -> BTreeMap<Descriptor, Stamp> {
        let entry = |(name, data_bytes, digest): &(&str, u64, Option<u32>)| {
            (
                parse_name(name).unwrap(),
                Stamp { data_bytes: *data_bytes, digest: *digest, hiding_us_max: None },
            )
        };
        names.iter().map(entry).collect()
    }

    #[test]
    fn a_change_that_was_announced_may_have_happened_or_not_and_nothing_else_may() {
        let Parsed { state, end, .. } = parse(&text(&lines())).unwrap();
        assert_eq!(end, text(&lines()).len());
        let known = state.stores.values().next().unwrap();
        let (one, two, three) =
            (("nb-1-big", 100, Some(7)), ("nb-2-big", 100, None), ("nb-3-big", 50, Some(9)));
        assert!(known.may_be(&files(&[one, two])));
        assert!(known.may_be(&files(&[three])));
        assert!(!known.may_be(&files(&[one])));
        let of = |name: &str, data_bytes| {
            let stamp = Stamp { data_bytes, digest: Some(7), hiding_us_max: None };
            known.known((&parse_name(name).unwrap(), &stamp)).and_then(|known| known.hiding_us_max)
        };
        assert_eq!((of("nb-1-big", 100), of("nb-1-big", 101), of("nb-2-big", 100)), (Some(-5), None, None));
        assert!(
            entry(&parse_name("nb-1-big").unwrap(), &known.present[&parse_name("nb-1-big").unwrap()])
                == "nb-1-big/100/7/-5"
        );
        assert!(!known.may_be(&files(&[])));
        assert!(!known.may_be(&files(&[one, two, three])));
        assert!(!known.may_be(&files(&[three, ("nb-9-big", 1, None)])));
        assert!(!known.may_be(&files(&[("nb-1-big", 100, Some(8)), two])), "another file of the same name");
    }

    #[test]
    fn a_cut_in_the_last_append_loses_that_alone_and_other_damage_everything() {
        let whole = text(&lines());
        let before = text(&lines()[..4]).len();
        for cut in before..whole.len() {
            let Parsed { state, end, .. } = parse(&whole[..cut]).unwrap();
            assert_eq!((end, state.stores.values().next().unwrap().begun.len()), (before, 0), "{cut}");
        }
        // Without the last newline before the append two lines are lost: the folder has a file more than the rest says.
        for at in 0..before - 1 {
            let mut damaged = whole.clone();
            damaged[at] ^= 4;
            assert!(parse(&damaged).is_none(), "byte {at}");
        }
    }
}
