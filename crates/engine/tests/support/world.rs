//! A database on a simulated machine beside the knowledge of what it must answer: tables with rows, a feed of changes with
//! consumers, snapshots. It survives any number of deaths and starts, and knows what upkeep does to the content.
//!
//! Every write waits for its sync, so a crash takes back nothing. Where an operation is cut or fails, the caller keeps
//! several candidates of the knowledge, and `World::settle` finds the one that the database shows.

use super::progress::Judged;
use super::random::Random;
use super::{Rows, Write, command, create, table, table_of};
use helenus_engine::changes::ChangeKind;
use helenus_engine::import::{ImportOptions, ImportProgress, ImportTable, Imports};
use helenus_engine::{
    CheckedName, Database, DatabaseOptions, Error, Exports, ReadRequest, Snapshots, SyncMode, index_id,
    read_indexed,
};
use helenus_host::sim::{Machine, Survives};
use helenus_model::index::{IndexLayout, IndexLookup, IndexSearch};
use helenus_model::mutation::{Mutation, PartitionUpdate};
use helenus_model::schema::{
    Column, ColumnKind, DroppedColumn, Index, IndexKind, Schema, TARGET_OPTION, Table,
};
use helenus_model::types::CqlType;
use helenus_sstable::component::Component;
use helenus_sstable::names::Descriptor;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// The table whose changes consumers read.
pub const WATCHED: &str = "w";
/// The tables, in an order that has nothing to do with their ids.
pub const TABLES: [&str; 4] = ["t", WATCHED, "u", "x"];
/// The index that some worlds have.
const INDEX: &str = "on_v";
/// Between two looks of the flusher.
const LOOK_NS: u64 = 100_000_000;
/// Time for what failed to be tried again: rounds of ten seconds.
const REST_NS: u64 = 10_000_000_000;
const REST_ROUNDS: usize = 8;
/// A month.
pub const LONG_NS: u64 = 30 * 86_400 * 1_000_000_000;

/// Rows by key and clustering.
pub type Content = BTreeMap<(String, i32), String>;

/// What the database must show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    pub tables: BTreeMap<&'static str, Content>,
    /// The values written to the watched table, in order; a deletion is an empty value.
    pub fed: Vec<String>,
    /// Of each consumer, the number of these that it has acknowledged.
    pub consumers: BTreeMap<&'static str, usize>,
    /// Whether an acknowledgement or a departure has failed: after a start it may count all the same, as any refused
    /// write whose bytes have reached the disk.
    pub doubtful: bool,
    /// The content of each snapshot.
    pub snapshots: BTreeMap<&'static str, BTreeMap<&'static str, Content>>,
}

/// The shape of a world, drawn once: it stays the same over all of its starts.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub seed: u64,
    pub segment_bytes: u32,
    pub memtable_bytes: usize,
    pub mode: SyncMode,
    /// The greatest size of most values, and of a few: those let records end far from the end of their segment.
    pub value_bytes: (usize, usize),
    /// The bytes of log kept for consumers.
    pub kept_bytes: u64,
}

impl Form {
    pub fn drawn(seed: u64) -> Form {
        let mut random = Random::new(seed);
        Form {
            seed,
            segment_bytes: *random.pick(&[16 << 10, 32 << 10, 64 << 10]),
            memtable_bytes: *random.pick(&[1 << 20, 64 << 20, 512 << 20]),
            mode: *random.pick(&[SyncMode::Group, SyncMode::Batch]),
            value_bytes: (*random.pick(&[30, 300]), *random.pick(&[5_000, 7_500])),
            kept_bytes: *random.pick(&[256 << 10, 1 << 30]),
        }
    }

    pub fn options(&self) -> DatabaseOptions {
        let mut options = DatabaseOptions::new("/db");
        options.sync = Some(self.mode);
        options.segment_bytes = self.segment_bytes;
        options.memory.memtables = self.memtable_bytes;
        options.kept_log.bytes = self.kept_bytes;
        options.kept_log.age_s = u64::MAX / 4;
        // Whatever is deleted, and in no memtable or file that could bring it back, is purged at the next compaction.
        options.compaction.purge.grace_s = 0;
        options.compaction.bytes_per_s = 0;
        options
    }
}

/// A database and what is known of it.
pub struct World {
    pub form: Form,
    pub machine: Machine,
    pub database: Arc<Database>,
    pub random: Random,
    pub known: Known,
    /// Numbers the values.
    pub written: u64,
    /// Whether its log has failed in this test.
    pub had_failed_log: bool,
    /// Numbers the tables: no id is used twice.
    tables: u128,
}

impl World {
    /// An empty database with all tables and two consumers.
    pub fn new(form: Form) -> World {
        let machine = Machine::new(form.seed);
        let database = Database::open(machine.host(), form.options()).unwrap().0;
        let random = Random::new(form.seed ^ 0x77);
        let (known, tables) = (Known::default(), 0x10);
        let mut world =
            World { form, machine, database, random, known, written: 0, had_failed_log: false, tables };
        let mut names = TABLES.to_vec();
        // The flusher looks at tables in the order of their ids.
        for _ in 0..names.len() {
            let name = names.swap_remove(world.random.below(names.len()));
            world.create(name);
        }
        for name in ["c1", "c2"] {
            world.register(name);
        }
        world
    }

    /// Changes the tables of the keyspace.
    fn change_tables(
        &self,
        change: impl FnOnce(&mut BTreeMap<Arc<str>, Arc<Table>>, i64),
    ) -> Result<(), Error> {
        let changed = self.database.change_schema::<()>(|schema, made_us| {
            let mut next: Schema = schema.clone();
            let mut keyspace = (*next.keyspaces["ks"]).clone();
            change(&mut keyspace.tables, made_us);
            next.keyspaces.insert("ks".into(), Arc::new(keyspace));
            Ok(next)
        });
        match changed {
            Ok((_, ticket)) => ticket.wait(),
            Err(helenus_engine::DdlError::Engine(error)) => Err(error),
            Err(helenus_engine::DdlError::Refused(())) => unreachable!("the change refuses nothing"),
        }
    }

    fn change_table(&self, name: &str, change: impl FnOnce(&mut Table, i64)) -> Result<(), Error> {
        self.change_tables(|tables, made_us| {
            let mut table = Table::clone(&tables[name]);
            change(&mut table, made_us);
            table.arrange();
            tables.insert(name.into(), Arc::new(table));
        })
    }

    /// Adds a column that nothing is written to, unless an attempt that was cut has added it, and drops it again.
    pub fn alter(&self, name: &str) -> Result<(), Error> {
        let is_ours = |column: &Column| &*column.name == "z";
        if !table_of(&self.database, name).regulars.iter().any(is_ours) {
            self.change_table(name, |table, _| {
                let column = Column::new("z", ColumnKind::Regular, CqlType::Text);
                table.regulars.push(Column { id: Table::UNNUMBERED, ..column });
            })?;
        }
        self.change_table(name, |table, dropped_us| {
            let at = table.regulars.iter().position(is_ours).expect("it was added");
            let Column { name, ty, kind, .. } = table.regulars.remove(at);
            table.dropped.insert(name.clone(), DroppedColumn { name, ty, kind, dropped_us });
        })
    }

    /// Creates an index on `v`, unless it is there. Its build goes on in the background.
    pub fn index(&self, name: &str) -> Result<(), Error> {
        if table_of(&self.database, name).indexes.contains_key(INDEX) {
            return Ok(());
        }
        self.change_table(name, |table, made_us| {
            let options = BTreeMap::from([(TARGET_OPTION.to_owned(), "v".to_owned())]);
            let id = index_id(table.id, INDEX, made_us);
            let index = Index { name: INDEX.into(), id, kind: IndexKind::Composites, options };
            table.indexes.insert(INDEX.into(), Arc::new(index));
        })
    }

    /// Links all SSTables of some tables into a folder, which its owner forgets: the next start removes it.
    pub fn export(&self, tables: &[&'static str]) -> Result<(), Error> {
        let exported: Vec<_> = tables.iter().map(|table| table_of(&self.database, table)).collect();
        Exports::of(&self.database).link(&exported).map(drop)
    }

    /// A reader comes, reads what another consumer has not acknowledged, and keeps the log from now on.
    pub fn follow_changes(&mut self, name: &'static str) -> Result<(), Error> {
        let feed = self.database.changes();
        let now = feed.now()?;
        // Whether a registration that fails counts is known later.
        self.known.consumers.insert(name, self.known.fed.len());
        feed.acknowledge(("ks", WATCHED), name, (now, String::new()))?;
        let consumer = feed.consumer(("ks", WATCHED), "c1").expect("the consumer is known");
        match self.fed_to(&consumer) {
            Err(Error::Changes(helenus_engine::ChangesError::Gone { .. })) if self.may_be_gone() => Ok(()),
            read => read.map(drop),
        }
    }

    pub fn create(&mut self, name: &'static str) {
        self.tables += 1;
        let mut made = table(name, self.tables, false);
        made.options.cdc = name == WATCHED;
        create(&self.database, vec![made]);
        self.known.tables.insert(name, Content::new());
    }

    /// What a start after a crash of this machine finds: the database opens by itself.
    pub fn start(&self, survives: Survives, what: &str) -> World {
        World::open(self, self.machine.crash_image(survives), what)
    }

    /// Opens the database of a machine that died while this world's was at work.
    pub fn open(before: &World, machine: Machine, what: &str) -> World {
        let database = match Database::open(machine.host(), before.form.options()) {
            Ok((database, _)) => database,
            Err(error) => panic!("{what}: the database does not start by itself: {error}"),
        };
        World {
            form: before.form,
            machine,
            database,
            random: before.random.clone(),
            known: before.known.clone(),
            written: before.written,
            had_failed_log: before.had_failed_log,
            tables: before.tables,
        }
    }

    /// Ends the process: what is left is on the disk.
    pub fn end(self) {
        self.machine.end_tasks();
    }

    /// Stops the database in order and starts it again.
    pub fn restart(self, what: &str) -> World {
        self.database.close().unwrap_or_else(|error| panic!("{what}: {error}"));
        let next = self.start(Survives::EverythingWritten, what);
        self.end();
        next
    }

    /// Kills the process and starts the database again.
    pub fn kill(self, what: &str) -> World {
        let next = self.start(Survives::EverythingWritten, what);
        self.end();
        next
    }

    /// Gives the background work a turn.
    pub fn idle(&self) {
        for _ in 0..3 {
            self.machine.advance(LOOK_NS);
            self.machine.run_until_idle();
        }
    }

    /// Writes a row and waits for it.
    pub fn try_put(&mut self, name: &'static str, bytes: usize) -> Result<(), Error> {
        let place = (["a", "b", "c"][self.random.below(3)].to_owned(), self.random.below(30) as i32);
        self.written += 1;
        let value = format!("{:06}-{}", self.written, "v".repeat(bytes));
        let at = self.database.next_timestamp()?;
        let table = table_of(&self.database, name);
        let changes = Write::default().insert(&table, place.1, &value, at).changes;
        let update = PartitionUpdate { table, key: place.0.as_bytes().to_vec(), changes };
        self.database.write(&Mutation { updates: vec![update] })?.wait()?;
        if name == WATCHED {
            self.known.fed.push(value.clone());
        }
        self.known.tables.get_mut(name).expect("the table is known").insert(place, value);
        Ok(())
    }

    pub fn put(&mut self, name: &'static str, bytes: usize) {
        self.try_put(name, bytes).unwrap();
    }

    /// Deletes a row and waits for it.
    pub fn delete(&mut self, name: &'static str, place: &(String, i32)) {
        let at = self.database.next_timestamp().unwrap();
        Write::default().delete_row(place.1, at).to(&self.database, name, &place.0).wait().unwrap();
        if name == WATCHED {
            self.known.fed.push(String::new());
        }
        self.known.tables.get_mut(name).expect("the table is known").remove(place);
    }

    /// The size of a value.
    pub fn size(&mut self) -> usize {
        let (most, few) = self.form.value_bytes;
        if self.random.chance(30) { few - self.random.below(few / 3) } else { self.random.below(most) }
    }

    /// Fills segments of the log with writes to one table, with turns of the background work, and judges progress.
    pub fn load(&mut self, name: &'static str, segments: usize, what: &str) {
        let bytes = segments * self.form.segment_bytes as usize;
        let (mut written, mut looked) = (0, 0);
        while written < bytes {
            let size = self.size();
            self.try_put(name, size).unwrap_or_else(|error| panic!("{what}: under load: {error}"));
            written += size + 100;
            if written - looked > self.form.segment_bytes as usize / 2 {
                looked = written;
                self.idle();
                let mut troubles = Vec::new();
                Judged::of(&self.database).log_is_bounded(&mut troubles);
                assert!(troubles.is_empty(), "{what}: after {written} bytes for {name}: {troubles:?}");
            }
        }
    }

    /// Adds a consumer that wants everything from now on.
    pub fn register(&mut self, name: &'static str) {
        let now = self.database.changes().now().unwrap();
        self.database.changes().acknowledge(("ks", WATCHED), name, (now, String::new())).unwrap();
        self.known.consumers.insert(name, self.known.fed.len());
    }

    /// A consumer reads some changes and acknowledges them.
    pub fn acknowledge(&mut self, name: &'static str, count: usize) -> Result<(), Error> {
        let feed = self.database.changes();
        let consumer = feed.consumer(("ks", WATCHED), name).expect("the consumer is known");
        let mut seen = 0;
        let mut reached = consumer.position;
        if count > 0 {
            reached = feed.read(("ks", WATCHED), consumer.position, &mut |change| {
                seen += usize::from(matches!(change.kind, ChangeKind::Row { .. }));
                Ok(if seen == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
        }
        let seen = self.known.consumers[name] + seen;
        feed.acknowledge(("ks", WATCHED), name, (reached, String::new()))?;
        self.known.consumers.insert(name, seen);
        Ok(())
    }

    pub fn leave(&mut self, name: &'static str) -> Result<(), Error> {
        self.database.changes().drop_consumer(("ks", WATCHED), name)?;
        self.known.consumers.remove(name);
        Ok(())
    }

    pub fn truncate(&mut self, name: &'static str) -> Result<(), Error> {
        self.database.truncate(&table_of(&self.database, name))?;
        self.known.tables.insert(name, Content::new());
        Ok(())
    }

    pub fn drop_table(&mut self, name: &'static str) -> Result<(), Error> {
        self.change_tables(|tables, _| drop(tables.remove(name)))?;
        self.known.tables.remove(name);
        Ok(())
    }

    pub fn snapshot(&mut self, name: &'static str, tables: &[&'static str]) -> Result<(), Error> {
        let taken: Vec<_> = tables.iter().map(|table| table_of(&self.database, table)).collect();
        let checked = CheckedName::new("snapshot", name).unwrap();
        Snapshots::of(&self.database).take(&taken, &checked, true)?;
        let content = tables.iter().map(|table| (*table, self.known.tables[table].clone())).collect();
        self.known.snapshots.insert(name, content);
        Ok(())
    }

    /// Imports tables from a snapshot. Their rows come back where the table has no newer ones.
    pub fn import(&mut self, snapshot: &str, tables: &[&'static str]) -> Result<(), String> {
        let disk = self.machine.host().disk;
        let from = self.database.host().disk.clone();
        let mut imports = Vec::new();
        for name in tables {
            let table = table_of(&self.database, name);
            let folder = self.database.inspect().folder(&table).unwrap().join("snapshots").join(snapshot);
            let files = disk.list(&folder).unwrap_or_default();
            let data = files.iter().filter_map(|path| Descriptor::parse(path.file_name()?.to_str()?));
            let data = data.filter(|(_, component)| *component == Component::Data.name());
            let sstables = data.map(|(descriptor, _)| (folder.clone(), descriptor)).collect();
            imports.push(ImportTable { table, sstables });
        }
        let progress = ImportProgress::default();
        let staged = Imports::of(&self.database)
            .stage(&from, &imports, ImportOptions::default(), &progress)
            .map_err(|error| error.to_string())?;
        Imports::of(&self.database).commit(staged).map_err(|error| error.to_string())?;
        self.known.take_in(snapshot, tables);
        Ok(())
    }

    /// The rows of a table.
    pub fn rows(&self, name: &str) -> Result<Content, Error> {
        let mut whole = command(&self.database, name, "");
        whole.partitions = helenus_engine::read::Partitions::Range(helenus_engine::read::KeyRange::all());
        let mut rows = Rows::default();
        let view = self.database.view(&whole.table)?;
        let request = ReadRequest { may_block: true, ..ReadRequest::default() };
        self.database.read(&whole, &view, request, &mut rows, None)?;
        Ok(rows.rows.into_iter().map(|(key, _, c, v)| ((key, c), v.unwrap_or_default())).collect())
    }

    /// The values behind a consumer's position.
    fn fed_to(&self, consumer: &helenus_engine::changes::Consumer) -> Result<Vec<String>, Error> {
        let mut fed = Vec::new();
        self.database.changes().read(("ks", WATCHED), consumer.position, &mut |change| {
            if let ChangeKind::Row { row, .. } = &change.kind {
                let cell = row.row.cells.first();
                let value = cell.map(|cell| String::from_utf8_lossy(row.value(cell)).into_owned());
                fed.push(value.unwrap_or_default());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(fed)
    }

    /// How the database differs from this knowledge, if it does.
    pub fn difference(&self, known: &Known) -> Option<String> {
        let schema = self.database.schema();
        let tables = schema.keyspaces.get("ks").map(|keyspace| keyspace.tables.clone()).unwrap_or_default();
        let names: Vec<&str> = tables.keys().map(|name| &**name).collect();
        if !names.iter().copied().eq(known.tables.keys().copied()) {
            return Some(format!("the tables are {names:?}, not {:?}", known.tables.keys()));
        }
        for (name, wanted) in &known.tables {
            let found = match self.rows(name) {
                Ok(found) => found,
                Err(error) => return Some(format!("{name} cannot be read: {error}")),
            };
            let places = found.keys().chain(wanted.keys());
            let differs = |place: &&(String, i32)| found.get(*place) != wanted.get(*place);
            if let Some(place) = places.clone().find(differs) {
                let shown =
                    |of: &Content| of.get(place).map_or("absent".to_owned(), |value| value[..6].to_owned());
                let (rows, wanted_rows) = (found.len(), wanted.len());
                return Some(format!(
                    "{name} {place:?} is {} and must be {} ({rows} rows, {wanted_rows} wanted)",
                    shown(&found),
                    shown(wanted)
                ));
            }
        }
        for (name, wanted) in &known.tables {
            if tables[*name].indexes.contains_key(INDEX)
                && let Some(difference) = self.difference_of_index(name, wanted)
            {
                return Some(difference);
            }
        }
        self.difference_of_feed(known)
    }

    /// The index finds some of the rows by their values, and nothing else.
    fn difference_of_index(&self, name: &str, wanted: &Content) -> Option<String> {
        let table = table_of(&self.database, name);
        let shape = Arc::new(IndexLayout::new(&table, &table.indexes[INDEX]).unwrap());
        for (place, value) in wanted.iter().step_by(1 + wanted.len() / 6) {
            let lookup = IndexLookup::Equal(shape.term(None, value.as_bytes()).unwrap());
            let search = [IndexSearch { shape: shape.clone(), lookup }];
            let mut whole = command(&self.database, name, "");
            whole.partitions = helenus_engine::read::Partitions::Range(helenus_engine::read::KeyRange::all());
            let request = ReadRequest { may_block: true, ..ReadRequest::default() };
            let mut attempts = 0;
            let found = loop {
                let mut rows = Rows::default();
                match read_indexed(&self.database, &whole, &search, request, &mut rows, None) {
                    Ok(_) => break rows.rows,
                    // Its build goes on, also after a failure.
                    Err(Error::IndexNotAvailable { .. }) if attempts < 100 => self.idle(),
                    Err(error) => return Some(format!("the index of {name} cannot be searched: {error}")),
                }
                attempts += 1;
            };
            // Entries of earlier values may be found: the reader compares.
            let is_it = |row: &&(String, Option<String>, i32, Option<String>)| {
                (&row.0, row.2) == (&place.0, place.1) && row.3.as_ref() == Some(value)
            };
            if !found.iter().any(|row| is_it(&row)) {
                return Some(format!("the index of {name} does not find {place:?} among {}", found.len()));
            }
        }
        None
    }

    fn difference_of_feed(&self, known: &Known) -> Option<String> {
        let consumers = self.database.changes().consumers();
        let names: Vec<&str> = consumers.iter().map(|consumer| &*consumer.name).collect();
        let may_have_left = known.doubtful && names.iter().all(|name| known.consumers.contains_key(name));
        if !may_have_left && !names.iter().copied().eq(known.consumers.keys().copied()) {
            return Some(format!("the consumers are {names:?}, not {:?}", known.consumers.keys()));
        }
        if !known.tables.contains_key(WATCHED) {
            return None;
        }
        for consumer in &consumers {
            let acknowledged = known.consumers[&*consumer.name];
            let wanted = &known.fed[acknowledged.min(known.fed.len())..];
            match self.fed_to(consumer) {
                Ok(fed) if fed == wanted || known.doubtful && wanted.ends_with(&fed) => {}
                Ok(fed) => {
                    let begin = |values: &[String]| {
                        let first =
                            values.first().map(|value| value.get(..6).unwrap_or("deleted").to_owned());
                        format!("{} from {first:?}", values.len())
                    };
                    return Some(format!(
                        "{} gets {} changes and must get {}",
                        consumer.name,
                        begin(&fed),
                        begin(wanted)
                    ));
                }
                // What is beyond the limit is gone, and the consumer is told.
                Err(Error::Changes(helenus_engine::ChangesError::Gone { .. })) if self.may_be_gone() => {}
                Err(error) => return Some(format!("{} cannot read on: {error}", consumer.name)),
            }
        }
        None
    }

    fn may_be_gone(&self) -> bool {
        self.form.kept_bytes < 1 << 30
    }

    /// Takes the candidate that the database shows as known; fails if it shows none of them.
    pub fn settle(&mut self, candidates: &[Known], what: &str) {
        let mut told = Vec::new();
        for (index, known) in candidates.iter().enumerate() {
            match self.difference(known) {
                None => {
                    self.known = known.clone();
                    return;
                }
                Some(difference) => told.push(format!("not {index}: {difference}")),
            }
        }
        panic!("{what}: the database is in none of {} states:\n  {}", candidates.len(), told.join("\n  "));
    }

    /// Fails unless the database shows what is known.
    pub fn check(&self, what: &str) {
        if let Some(difference) = self.difference(&self.known) {
            panic!("{what}: {difference}");
        }
    }

    /// Fails if the database has anything that it needs not, once its background work had turns. What failed is tried
    /// again after a while.
    pub fn check_progress(&self, what: &str) {
        self.rest();
        Judged::of(&self.database).assert_none(what);
    }

    /// The same of a database in which nothing has failed since its start.
    pub fn check_progress_after_start(&self, what: &str) {
        self.rest();
        Judged { is_fresh: true, ..Judged::of(&self.database) }.assert_none(what);
    }

    /// Gives the background work time for what it tries again after a failure.
    pub fn rest(&self) {
        for _ in 0..REST_ROUNDS {
            self.machine.advance(REST_NS);
            self.machine.run_until_idle();
        }
    }

    /// Bytes of the files below a folder of the database, each name once.
    pub fn bytes_below(&self, folder: &str) -> u64 {
        let disk = self.machine.host().disk;
        let files = self.machine.files_below(&Path::new("/db").join(folder)).unwrap_or_default();
        files.iter().map(|path| disk.open(path).and_then(|file| file.size()).unwrap_or_default()).sum()
    }
}

impl Known {
    /// The content after an import from a snapshot. Later writes have later timestamps, so they win.
    pub fn take_in(&mut self, snapshot: &str, tables: &[&'static str]) {
        for name in tables {
            let Some(imported) = self.snapshots.get(snapshot).and_then(|tables| tables.get(name)).cloned()
            else {
                continue;
            };
            if let Some(rows) = self.tables.get_mut(name) {
                for (place, value) in imported {
                    rows.entry(place).or_insert(value);
                }
            }
        }
    }
}
