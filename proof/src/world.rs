//! A database on a simulated machine beside the judge of each of its tables.

use crate::answer::Rows;
use crate::crash::Track;
use crate::judge::{Judge, Moment};
use crate::plan::{Op, Plan};
use crate::shown::adopt;
use crate::statement::{Action, Condition, Keys, Select, Shown, Write, batch_cql};
use crate::table::{Table, Timing};
use helenus_cql::backend::{Backend, Identity, Outcome, Request, ResultColumns, RowsOut};
use helenus_cql::{CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions, SyncMode, Ticket};
use helenus_host::sim::{Machine, Survives};
use helenus_model::schema::TableId;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

/// What is wrong, in words.
pub(crate) type Failure = String;

/// How a world's database is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) timing: Timing,
    pub(crate) sync: SyncMode,
    pub(crate) segment_bytes: u32,
    /// Seconds that tombstones are kept at least; `None` if they are never purged.
    pub(crate) grace_s: Option<i64>,
}

impl Setup {
    pub(crate) fn of(plan: &Plan) -> Setup {
        let grace_s = match plan.timing {
            Timing::Server => Some(0),
            Timing::Client => [None, Some(0), Some(15)][(plan.seed % 3) as usize],
        };
        let (seed, timing, sync) = (plan.seed, plan.timing, SyncMode::Group);
        let segment_bytes = if plan.seed % 4 < 2 { 256 << 10 } else { 16 << 10 };
        Setup { seed, timing, sync, segment_bytes, grace_s }
    }

    /// The same, for tests that compare with several states: where timestamps come in any order, each of them would have
    /// several answers if tombstones were purged.
    pub(crate) fn of_states(plan: &Plan, sync: SyncMode) -> Setup {
        let grace_s = (plan.timing == Timing::Server).then_some(0);
        Setup { sync, segment_bytes: 16 << 10, grace_s, ..Setup::of(plan) }
    }

    fn options(&self) -> DatabaseOptions {
        let mut options = DatabaseOptions::new("/db");
        options.sync = Some(self.sync);
        options.segment_bytes = self.segment_bytes;
        options.compaction.purge.grace_s = self.grace_s.unwrap_or(i64::MAX / 4);
        options.compaction.threads = 1 + self.seed as usize % 2;
        options.compaction.bytes_per_s = 0;
        options
    }
}

#[derive(Default)]
struct Collected {
    rows: Rows,
    row: Vec<Option<Vec<u8>>>,
    bytes: usize,
}

impl RowsOut for Collected {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        self.bytes += value.map_or(0, <[u8]>::len);
        self.row.push(value.map(<[u8]>::to_vec));
    }

    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) {
        *self = Collected::default();
    }
}

/// What a statement gave.
pub(crate) struct Given {
    pub(crate) rows: Rows,
    pub(crate) paging_state: Option<Vec<u8>>,
    pub(crate) ticket: Option<Ticket>,
}

/// An open database.
pub(crate) struct Store {
    pub(crate) machine: Machine,
    pub(crate) backend: Arc<LocalBackend>,
    identity: Identity,
}

impl Store {
    pub(crate) fn open(machine: Machine, setup: &Setup) -> Result<Store, Failure> {
        let opened = Database::open(machine.host(), setup.options());
        let (database, _) = opened.map_err(|error| format!("the database does not open: {error}"))?;
        let backend = LocalBackend::new(database, LocalOptions::default());
        Ok(Store { machine, backend, identity: Identity::default() })
    }

    pub(crate) fn database(&self) -> &Arc<Database> {
        self.backend.database()
    }

    /// The latest that the clock has said, seconds: what was over by then may have been purged, and would come back only if not.
    pub(crate) fn now_s(&self) -> i64 {
        self.database().now_s().max(self.machine.latest_wall_us() / 1_000_000)
    }

    /// Runs a statement as the server does: first without waiting for the disk. After the clock was set back the statement
    /// brings its own time.
    pub(crate) fn run(&self, text: &str, page: Option<u32>, state: Option<&[u8]>) -> Result<Given, CqlError> {
        let mut out = Collected::default();
        let request = Request {
            keyspace: Some("ks"),
            page_size: page,
            paging_state: state,
            may_block: false,
            now_s: Some(self.now_s()).filter(|now_s| *now_s > self.database().now_s()),
            ..Request::plain(&self.identity, &[])
        };
        let answer = match self.backend.query(text, &request, &mut out) {
            Err(CqlError::WouldBlock) => {
                out.clear();
                self.backend.query(text, &Request { may_block: true, ..request }, &mut out)?
            }
            other => other?,
        };
        let rows = out.rows;
        Ok(match answer.outcome {
            Outcome::Rows { paging_state, ticket, .. } => Given { rows, paging_state, ticket },
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => {
                Given { rows, paging_state: None, ticket: Some(ticket) }
            }
            Outcome::UsedKeyspace(_) => Given { rows, paging_state: None, ticket: None },
        })
    }

    /// Runs a statement that must succeed, to its end.
    pub(crate) fn must(&self, text: &str) -> Result<Given, Failure> {
        let mut given = self.run(text, None, None).map_err(|error| format!("{text}\nanswers: {error}"))?;
        if let Some(ticket) = given.ticket.take() {
            ticket.wait().map_err(|error| format!("{text}\nis not acknowledged: {error}"))?;
        }
        Ok(given)
    }

    /// All pages of a SELECT.
    pub(crate) fn pages(&self, text: &str, page: Option<u32>) -> Result<Rows, Failure> {
        let mut rows = Rows::new();
        let mut state: Option<Vec<u8>> = None;
        for _ in 0..100_000 {
            let given = self
                .run(text, page, state.as_deref())
                .map_err(|error| format!("{text}\nanswers after {} rows: {error}", rows.len()))?;
            if page.is_some_and(|most| given.rows.len() > most as usize) {
                return Err(format!("{text}\nhas a page of {} rows", given.rows.len()));
            }
            rows.extend(given.rows);
            state = given.paging_state;
            if state.is_none() {
                return Ok(rows);
            }
        }
        Err(format!("{text}\nhas pages without end"))
    }
}

/// The database and what it must answer.
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) store: Option<Store>,
    pub(crate) judges: Vec<Judge>,
    pub(crate) tables: Vec<Table>,
    /// The last snapshot of each table: where it is, and what it must hold.
    pub(crate) snapshots: Vec<Option<(PathBuf, Judge)>>,
    /// Where operations are noted instead of waited for.
    pub(crate) track: Option<Arc<Mutex<Track>>>,
    /// The rows of the table that is loaded.
    pub(crate) loaded: u32,
}

impl World {
    pub(crate) fn new(plan: &Plan, setup: Setup) -> Result<World, Failure> {
        let store = Store::open(Machine::new(plan.seed), &setup)?;
        for statement in plan.schema() {
            store.must(&statement)?;
        }
        let judges = plan.tables.iter().cloned().map(|table| Judge::new(table, setup.grace_s)).collect();
        let (tables, snapshots) = (plan.tables.clone(), vec![None; plan.tables.len()]);
        Ok(World { setup, store: Some(store), judges, tables, snapshots, track: None, loaded: 0 })
    }

    pub(crate) fn store(&self) -> Result<&Store, Failure> {
        self.store.as_ref().ok_or_else(|| "the database is closed".into())
    }

    /// Does an operation. After some, and always where nothing waits for a cut or a fault, it looks at what must hold
    /// whatever the answers are.
    pub(crate) fn apply(&mut self, op: &Op) -> Result<(), Failure> {
        self.run(op)?;
        if self.track.is_none() && is_upkeep(op) { self.rest_and_judge() } else { Ok(()) }
    }

    fn run(&mut self, op: &Op) -> Result<(), Failure> {
        let engine = |error: helenus_engine::Error| format!("{op:?} fails: {error}");
        match op {
            Op::Write(write) => self.write(std::slice::from_ref(write), None),
            Op::Batch { writes, logged } => self.write(writes, Some(*logged)),
            Op::Read(select) => {
                self.adopt(select.table)?;
                self.compare(select)
            }
            Op::Flush(table) => {
                let store = self.store()?;
                let id = self.id(*table)?;
                if store.database().flush(id).map_err(engine)? > 0 {
                    self.synced();
                }
                Ok(())
            }
            Op::Compact(table) => {
                let store = self.store()?;
                let id = self.id(*table)?;
                store
                    .database()
                    .compact(vec![id])
                    .wait()
                    .map(drop)
                    .map_err(|error| format!("{op:?} fails: {error}"))
            }
            Op::Background(steps) => {
                let machine = self.store()?.machine.clone();
                (0..*steps).for_each(|_| _ = machine.step());
                Ok(())
            }
            Op::Truncate(table) => self.truncate(*table),
            Op::Restart { clean } => self.restart(*clean),
            Op::Advance { seconds } => {
                self.store()?.machine.advance(seconds * 1_000_000_000);
                Ok(())
            }
            Op::ColdReads(percent) => {
                self.store()?.machine.set_cold_reads(*percent);
                Ok(())
            }
            Op::Move(table) => self.export_and_import(*table),
            Op::Remake { table, column } => self.remake(*table, *column),
            Op::Reindex { table, index } => self.reindex(*table, *index),
            Op::Alter { table, options } => self.alter(*table, options),
            Op::Snapshot(table) => self.snapshot(*table),
            Op::TakeBack(table) => self.take_back(*table),
            Op::Restore(table) => self.restore(*table),
            Op::Load { rows } => self.load(*rows),
            Op::DropLoaded => self.drop_loaded(),
            Op::ClockBack { seconds } => self.set_clock_back(*seconds),
        }
    }

    fn id(&self, table: usize) -> Result<TableId, Failure> {
        self.present(table).map(|table| table.id)
    }

    /// A table's definition as the database has it.
    pub(crate) fn present(&self, table: usize) -> Result<Arc<helenus_model::schema::Table>, Failure> {
        let name = &self.tables[table].name;
        let schema = self.store()?.database().schema();
        schema.table("ks", name).cloned().ok_or_else(|| format!("table {name} is not there"))
    }

    fn write(&mut self, writes: &[Write], batch: Option<bool>) -> Result<(), Failure> {
        let store = self.store()?;
        let text = match (batch, writes) {
            (None, [write]) => write.cql(&self.tables),
            (logged, writes) => batch_cql(writes, logged.unwrap_or(true), &self.tables),
        };
        // Greater than that of all before, and smaller than the one that the statement gets.
        let server_us =
            store.database().next_timestamp().map_err(|error| format!("no timestamp: {error}"))?;
        let now_s = store.now_s();
        for write in writes.iter().filter(|write| write.reads()) {
            self.adopt(write.table)?;
        }
        let store = self.store()?;
        let is_conditional = writes.iter().any(|write| !matches!(write.condition, Condition::None));
        let allowed = writes.iter().all(|write| self.judges[write.table].allows(write, now_s));
        let refused = allowed && writes.iter().any(|write| self.judges[write.table].refuses(write, now_s));
        if refused {
            return match store.run(&text, None, None) {
                Err(CqlError::Invalid(_)) => Ok(()),
                Err(error) => Err(format!("{text}\nanswers: {error}")),
                Ok(_) => Err(format!("{text}\nis to be refused")),
            };
        }
        for write in writes.iter().filter(|_| allowed) {
            let moment = Moment { timestamp_us: write.timestamp_us.unwrap_or(server_us), now_s };
            self.judges[write.table].apply(write, moment);
        }
        self.begin(server_us);
        let store = self.store()?;
        let given = store.run(&text, None, None).map_err(|error| format!("{text}\nanswers: {error}"))?;
        let is_logged = allowed && given.ticket.as_ref().is_some_and(|ticket| ticket.position().is_some());
        if let Some(track) = self.track.as_ref().filter(|_| !is_logged) {
            track.lock().wrote_nothing();
        }
        if is_conditional {
            let applied = given.rows.first().and_then(|row| row.first()).cloned().flatten();
            if applied != Some(vec![u8::from(allowed)]) {
                return Err(format!("{text}\nanswers [applied] = {applied:?}; expected {allowed}"));
            }
        }
        match (given.ticket, &self.track) {
            // A deletion of no row writes nothing, and promises nothing about what was written before it. Whatever reads first
            // promises that, though it may write nothing.
            (Some(ticket), Some(_)) if ticket.position().is_none() && writes.iter().all(is_range) => {}
            (Some(ticket), Some(track)) => track.lock().ticket(ticket),
            (Some(ticket), None) => {
                ticket.wait().map_err(|error| format!("{text}\nis not acknowledged: {error}"))?;
            }
            (None, _) => {}
        }
        Ok(())
    }

    /// Tells the track what the next operation leads to.
    pub(crate) fn begin(&self, server_us: i64) {
        if let Some(track) = &self.track {
            track.lock().begin(&self.judges, server_us);
        }
    }

    /// Tells the track that the last operation is on the disk.
    pub(crate) fn synced(&self) {
        if let Some(track) = &self.track {
            track.lock().synced();
        }
    }

    fn truncate(&mut self, table: usize) -> Result<(), Failure> {
        self.judges[table].truncate();
        self.begin(0);
        self.store()?.must(&format!("TRUNCATE {}", self.tables[table].name))?;
        self.synced();
        Ok(())
    }

    /// Has the judge take over which of several versions are visible.
    fn adopt(&mut self, table: usize) -> Result<(), Failure> {
        let World { store, judges, .. } = self;
        match store {
            Some(store) if judges[table].is_open() => adopt(store, &mut judges[table]),
            _ => Ok(()),
        }
    }

    fn compare(&self, select: &Select) -> Result<(), Failure> {
        compare(self.store()?, &self.judges, select)
    }

    /// Every table whole, in both directions of nothing: as one SELECT gives it.
    pub(crate) fn compare_everything(&mut self) -> Result<(), Failure> {
        (0..self.tables.len()).try_for_each(|table| self.adopt(table))?;
        (0..self.tables.len()).try_for_each(|table| self.compare(&everything(&self.tables[table], table)))
    }

    fn restart(&mut self, clean: bool) -> Result<(), Failure> {
        let Some(Store { machine, backend, .. }) = self.store.take() else { return Ok(()) };
        let machine = if clean {
            backend.database().close().map_err(|error| format!("closing fails: {error}"))?;
            drop(backend);
            machine
        } else {
            let after = machine.crash_image(Survives::OnlySynced);
            machine.end_tasks();
            drop(backend);
            after
        };
        // Nobody is back within the same millisecond.
        machine.advance(1_000_000_000);
        self.store = Some(Store::open(machine, &self.setup)?);
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(store) = &self.store {
            store.machine.end_tasks();
        }
    }
}

fn is_upkeep(op: &Op) -> bool {
    let is_seldom =
        matches!(op, Op::Move(_) | Op::TakeBack(_) | Op::Restore(_) | Op::Load { .. } | Op::DropLoaded);
    is_seldom || matches!(op, Op::Truncate(_) | Op::Reindex { .. } | Op::Remake { .. } | Op::Alter { .. })
}

fn is_range(write: &Write) -> bool {
    matches!(&write.action, Action::DeleteRows(preds) if !preds.is_empty())
}

/// Runs a SELECT and holds its rows against what the judges say.
pub(crate) fn compare(store: &Store, judges: &[Judge], select: &Select) -> Result<(), Failure> {
    let judge = &judges[select.table];
    let text = select.text(&judge.table);
    let mut found = store.pages(&text, select.page);
    // An index is being built; after a fault that is tried again only once some time has passed.
    for _ in 0..20 {
        if !found.as_ref().is_err_and(|failure| failure.contains("is not yet available")) {
            break;
        }
        store.machine.run_until_idle();
        found = store.pages(&text, select.page);
        if found.is_err() {
            store.machine.advance(1_000_000_000);
        }
    }
    let mut found = found?;
    let now_s = store.now_s();
    let mut expected = judge.select(select, now_s);
    if matches!(select.keys, Keys::In(_)) {
        // The order of partitions that are named is not the ring's.
        let keys = judge.table.keys().len();
        found.sort_by(|a, b| a[..keys].cmp(&b[..keys]));
        expected.sort_by(|a, b| a[..keys].cmp(&b[..keys]));
    }
    if found == expected {
        return Ok(());
    }
    let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
    let at = differs.unwrap_or(found.len().min(expected.len()));
    Err(format!(
        "{text}\nin pages of {:?}: {} rows, expected {}; row {at} is\n  {}\nexpected\n  {}",
        select.page,
        found.len(),
        expected.len(),
        shown(found.get(at)),
        shown(expected.get(at))
    ))
}

/// `SELECT` of all columns of all rows.
pub(crate) fn everything(of: &Table, table: usize) -> Select {
    Select {
        table,
        shown: of.of(|_| true).into_iter().map(Shown::Column).collect(),
        distinct: false,
        keys: Keys::All,
        preds: Vec::new(),
        filters: Vec::new(),
        reversed: false,
        limit: None,
        per_partition: None,
        page: None,
    }
}

/// A row for people: hexadecimal values.
pub(crate) fn shown(row: Option<&Vec<Option<Vec<u8>>>>) -> String {
    let Some(row) = row else { return "(none)".into() };
    let cell = |cell: &Option<Vec<u8>>| match cell {
        None => "null".to_owned(),
        Some(bytes) if bytes.len() > 40 => format!("{} bytes", bytes.len()),
        Some(bytes) => bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    };
    row.iter().map(cell).collect::<Vec<_>>().join(" | ")
}
