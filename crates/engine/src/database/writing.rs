//! The write path: check, log, apply, and a ticket for the acknowledgement.
//!
//! A write becomes visible when it is in the memtable. In `batch` and `group` mode that is before its sync, so the
//! answer of a read is held back until the writes it has seen are safe (`reading.rs`). See
//! docs/decisions/2026-11-26-refused-is-never-read.md.

use super::partition_locks::PartitionLock;
use super::reading::ReadRequest;
use super::shared::{Database, Shared};
use crate::check_mutation::{TimeRange, check};
use crate::commitlog::{CommitLog, MemoryWait, MutationRecord, Ticket, of_present_columns};
use crate::error::{Error, Result};
use crate::index::index_updates;
use crate::listeners::Listening;
use crate::log_position::LogPosition;
use crate::memtable::{Memtable, WriterLock};
use crate::metrics::SAMPLED;
use crate::table::{Tables, View};
use crate::timestamps::ServerTime;
use arc_swap::Guard;
use helenus_host::account;
use helenus_model::mutation::{Mutation, PartitionUpdate};
use helenus_model::schema::TableId;
use helenus_model::token::Token;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How a write relates to the partition locks (`partition_locks.rs`).
#[derive(Clone, Copy)]
enum Order {
    /// It must not come between the read and the write of a lock holder, nor have an older timestamp than that write.
    Plain {
        /// Its server timestamp; `NOT_STAMPED` if it has none.
        stamped_us: i64,
    },
    /// The caller holds the locks, or writes to tables that no statement writes to.
    Locked,
    /// As `Locked`; a table whose flush fails takes it all the same.
    Unrefused,
}

impl Order {
    /// Whether the write's timestamp is later than those of earlier plain writes to the partition.
    fn is_next(self, memtable: &Memtable, writer_lock: &WriterLock<'_>) -> bool {
        match self {
            Order::Plain { stamped_us: NOT_STAMPED } | Order::Locked | Order::Unrefused => true,
            Order::Plain { stamped_us } => memtable.is_next(writer_lock, stamped_us),
        }
    }
}

/// Stands for a missing server timestamp: later than any timestamp, earlier than the mark `LOCKED`.
const NOT_STAMPED: i64 = i64::MAX - 1;

/// A mutation that passed its checks, with the index updates derived from it.
struct Checked<'a> {
    mutation: &'a Mutation,
    extent: TimeRange,
    derived: &'a [PartitionUpdate],
    of_derived: TimeRange,
    /// The rows as they were, for the feed of changes (`row_images.rs`).
    images: &'a [PartitionUpdate],
}

/// An update with its table's view.
struct Target<'a> {
    update: &'a PartitionUpdate,
    token: Token,
    view: Guard<Arc<View>>,
    /// Whether its table has indexes.
    is_indexed: bool,
    /// Whether the table was changed since the update was made.
    is_outdated: bool,
}

impl<'a> Target<'a> {
    /// Finds the table of an update and prefetches the memory in which its partition is looked up. It arrives while
    /// the mutation is checked and its record is made.
    fn of(tables: &Tables, update: &'a PartitionUpdate, order: Order) -> Result<Target<'a>> {
        let store = tables.get(&update.table.id).filter(|store| !store.is_dropped());
        let store = store.ok_or_else(|| Error::unknown(&update.table))?;
        if !matches!(order, Order::Unrefused) {
            store.troubles.check_write(&update.table)?;
        }
        let token = Token::of_key(&update.key);
        let view = store.view_briefly();
        view.current().prefetch(token);
        let is_outdated = !Arc::ptr_eq(&store.table_briefly(), &update.table);
        Ok(Target { update, token, view, is_indexed: !store.indexes().is_empty(), is_outdated })
    }
}

impl Database {
    /// Applies a mutation as a whole. The ticket tells when it may be acknowledged. Blocks while another caller holds
    /// the lock of one of its partitions.
    ///
    /// # Errors
    /// `MutationTooLarge`; `LogFull` and `LogFailed` when the log cannot take it; `UnknownTable` for a table dropped
    /// meanwhile. Nothing was applied then.
    pub fn write(&self, mutation: &Mutation) -> Result<Ticket> {
        self.write_stamped_by_clients(mutation, ReadRequest { may_block: true, ..ReadRequest::default() })
    }

    /// Checks a mutation as `write` does, and writes nothing: a rollback of a move must know that it can be written at all.
    ///
    /// # Errors
    /// What `write` refuses for good.
    pub fn check_write(&self, mutation: &Mutation) -> Result<()> {
        let shared = &self.shared;
        shared.check_size(mutation)?;
        let _gate = shared.gate.enter();
        let tables = shared.tables.load();
        let present = of_present_tables(&tables, mutation)?;
        check_storable(present.updates.iter())?;
        let derived = index_updates(&tables, &present, shared.timestamps.now_s())?;
        check_storable(derived.iter()).map(drop)
    }

    /// `write` for a request, which may not block or wait for ever.
    ///
    /// # Errors
    /// As `write`; those of `lock_partition` if another caller holds the lock of a partition for long.
    pub fn write_stamped_by_clients(&self, mutation: &Mutation, request: ReadRequest<'_>) -> Result<Ticket> {
        match self.try_write(mutation, None) {
            Err(Error::WouldBlock) => {
                let locked = self.lock_all(mutation, request)?;
                self.write_locked(mutation, &locked)
            }
            done => done,
        }
    }

    /// Applies a mutation as a whole, unless it would have to wait. `stamped_us` is the server timestamp of its cells;
    /// `None` if clients gave the timestamps.
    ///
    /// # Errors
    /// As `write`. `WouldBlock` if another caller holds the lock of one of its partitions, or has written to one after
    /// `stamped_us` was given out, or the rows are recorded as they were: lock the partitions (`lock_all`), take a new timestamp and make the mutation again.
    pub fn try_write(&self, mutation: &Mutation, stamped_us: Option<i64>) -> Result<Ticket> {
        if self.wants_images(mutation) {
            return Err(Error::WouldBlock);
        }
        self.shared.write_in(mutation, Order::Plain { stamped_us: stamped_us.unwrap_or(NOT_STAMPED) }, &[])
    }

    /// Applies a mutation. The caller holds the locks of all its partitions.
    ///
    /// # Errors
    /// As `write`. Where rows are recorded as they were, those of a read: `WouldBlock` if the locks were taken without blocking.
    pub fn write_locked(&self, mutation: &Mutation, locked: &PartitionLock<'_>) -> Result<Ticket> {
        let images = self.images(mutation, locked.may_block())?;
        self.shared.write_in(mutation, Order::Locked, &images)
    }

    /// Locks partitions that will be read and then written. Lock all partitions of a statement or batch at once, never
    /// a second time while one is held, and write with `write_locked`.
    ///
    /// # Errors
    /// `WouldBlock` if another caller holds one of the locks for long and the request may not block; `TimedOut` and
    /// `Cancelled` if the request ends while it waits; `NoMemory` if others wait for memory that it holds meanwhile.
    pub fn lock_partition(
        &self,
        partitions: impl Iterator<Item = (TableId, Token)>,
        request: ReadRequest<'_>,
    ) -> Result<PartitionLock<'_>> {
        self.shared.lock_partition(partitions, request)
    }

    /// Locks all partitions of a mutation.
    ///
    /// # Errors
    /// As `lock_partition`.
    pub fn lock_all(&self, mutation: &Mutation, request: ReadRequest<'_>) -> Result<PartitionLock<'_>> {
        let updates = mutation.updates.iter();
        self.lock_partition(updates.map(|update| (update.table.id, Token::of_key(&update.key))), request)
    }

    /// A ticket for all writes so far, for an answer that shows what they wrote.
    pub fn written_so_far(&self) -> Ticket {
        self.shared.log.as_ref().map_or_else(Ticket::ready, |log| log.so_far())
    }

    /// A new server timestamp, microseconds; greater than all before.
    ///
    /// # Errors
    /// `ClockBeyond` if the machine's clock is beyond its limit.
    pub fn next_timestamp(&self) -> Result<i64> {
        Ok(self.next_time()?.timestamp_us)
    }

    /// The same, with the wall-clock time of the same moment.
    ///
    /// # Errors
    /// As `next_timestamp`.
    pub fn next_time(&self) -> Result<ServerTime> {
        self.shared.timestamps.next()
    }

    /// A new server timestamp even if the machine's clock is beyond its limit: it is then one more than the last. For
    /// callers that need an order and not a time.
    pub fn next_timestamp_unrefused(&self) -> i64 {
        self.shared.timestamps.next_always()
    }

    /// The wall clock, microseconds since the epoch.
    pub fn wall_us(&self) -> i64 {
        self.shared.timestamps.wall_us()
    }

    /// The greater of the wall clock and the last server timestamp, microseconds: no present write has a later one.
    pub fn latest_us(&self) -> i64 {
        self.shared.timestamps.latest_us()
    }

    /// The present time for TTLs and expiry: seconds since the epoch by the wall clock.
    pub fn now_s(&self) -> i64 {
        self.shared.timestamps.now_s()
    }

    /// Writes logged records to the operating system: in `periodic` mode, tickets wait for that.
    pub fn write_out(&self) -> Result<()> {
        self.shared.log.as_ref().map_or(Ok(()), |log| log.write_out())
    }

    /// Calls `listener` whenever tickets may have become ready, for as long as the result lives.
    pub fn on_written(&self, listener: Box<dyn Fn() + Send + Sync>) -> Listening {
        self.shared.announcer.listen(listener)
    }
}

impl Shared {
    /// Applies a mutation to partitions that nobody else locks, or that the caller has locked.
    pub(crate) fn write(&self, mutation: &Mutation) -> Result<Ticket> {
        self.write_in(mutation, Order::Locked, &[])
    }

    /// Applies a change of the schema, whatever memory is in use: it may be what frees it.
    pub(crate) fn write_schema(&self, mutation: &Mutation) -> Result<Ticket> {
        self.check_size(mutation)?;
        self.apply_checked(mutation, Order::Unrefused, &[])
    }

    fn write_in(&self, mutation: &Mutation, order: Order, images: &[PartitionUpdate]) -> Result<Ticket> {
        self.check_size(mutation)?;
        self.check_room()?;
        let ticket = self.apply_checked(mutation, order, images)?;
        if !self.memory.is_full() {
            return Ok(ticket);
        }
        Ok(ticket.waiting_for_memory(MemoryWait {
            account: self.memory.clone(),
            announcer: self.announcer.clone(),
            tasks: self.host.tasks.clone(),
        }))
    }

    fn apply_checked(&self, mutation: &Mutation, order: Order, images: &[PartitionUpdate]) -> Result<Ticket> {
        let _gate = self.gate.enter();
        // Loaded within the gate: creating an index waits there until no write is left that does not know the
        // index.
        let tables = self.tables.load();
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        self.write_within(&tables, mutation, order, images)
    }

    /// Checks and writes a mutation. The caller is within the gate.
    fn write_within(
        &self,
        tables: &Tables,
        mutation: &Mutation,
        order: Order,
        images: &[PartitionUpdate],
    ) -> Result<Ticket> {
        let (one, several);
        let targets: &[Target<'_>] = match &mutation.updates[..] {
            [update] => {
                one = [Target::of(tables, update, order)?];
                &one
            }
            updates => {
                let targets = updates.iter().map(|update| Target::of(tables, update, order));
                several = targets.collect::<Result<Vec<_>>>()?;
                &several
            }
        };
        if targets.iter().any(|target| target.is_outdated) {
            return self.write_within(tables, &of_present_tables(tables, mutation)?, order, images);
        }
        let extent = check_storable(mutation.updates.iter())?;
        let derived = match targets.iter().any(|target| target.is_indexed) {
            true => index_updates(tables, mutation, self.timestamps.now_s())?,
            false => Vec::new(),
        };
        for update in &derived {
            tables.get(&update.table.id).map_or(Ok(()), |store| store.troubles.check_write(&update.table))?;
        }
        let of_derived = if derived.is_empty() { extent } else { check_storable(derived.iter())? };
        let checked = Checked { mutation, extent, derived: &derived, of_derived, images };
        match targets {
            [target] => self.write_one(tables, target, &checked, order),
            _ => self.write_several(tables, targets, &checked, order),
        }
    }

    /// Writes a mutation of one partition. The caller is within the gate.
    fn write_one(
        &self,
        tables: &Tables,
        target: &Target<'_>,
        checked: &Checked<'_>,
        order: Order,
    ) -> Result<Ticket> {
        let Target { update, token, view, .. } = target;
        if !self.admits(target, order) {
            return Err(Error::WouldBlock);
        }
        let memtable = view.current();
        let record = self.log.as_ref().map(|_| CommitLog::record(checked.mutation, checked.derived));
        let partition = memtable.get_or_create(*token, &update.key);
        let writer_lock = partition.content().writer_lock();
        if !order.is_next(memtable, &writer_lock) {
            return Err(Error::WouldBlock);
        }
        let (ticket, logged) = self.append(record, checked)?;
        self.apply(view, update, || {
            memtable.apply_in(&writer_lock, partition, update, (&checked.extent, logged))
        });
        // Index updates need no order, but they follow their table's.
        self.apply_derived(tables, checked, logged);
        Ok(ticket)
    }

    /// Writes a mutation of any number of partitions, with the memtable locks of all of them held. The caller is
    /// within the gate.
    fn write_several(
        &self,
        tables: &Tables,
        targets: &[Target<'_>],
        checked: &Checked<'_>,
        order: Order,
    ) -> Result<Ticket> {
        if !targets.iter().all(|target| self.admits(target, order)) {
            return Err(Error::WouldBlock);
        }
        let record = self.log.as_ref().map(|_| CommitLog::record(checked.mutation, checked.derived));
        let places: Vec<_> = targets
            .iter()
            .map(|Target { view, token, update, .. }| {
                (view, view.current().get_or_create(*token, &update.key), *update)
            })
            .collect();
        // Lock in address order, whatever the order of the mutation, and each partition once.
        let address =
            |at: &usize| places.get(*at).map(|(_, partition, _)| std::ptr::from_ref(partition.content()));
        let mut first_of: Vec<usize> = (0..places.len()).collect();
        first_of.sort_by_key(address);
        first_of.dedup_by_key(|at| address(at));
        let mut writer_locks = Vec::with_capacity(first_of.len());
        for (view, partition, _) in first_of.iter().filter_map(|at| places.get(*at)) {
            let writer_lock = partition.content().writer_lock();
            if !order.is_next(view.current(), &writer_lock) {
                return Err(Error::WouldBlock);
            }
            writer_locks.push((std::ptr::from_ref(partition.content()), writer_lock));
        }
        let (ticket, logged) = self.append(record, checked)?;
        for (view, partition, update) in &places {
            let here = std::ptr::from_ref(partition.content());
            let writer_lock = writer_locks
                .binary_search_by_key(&here, |(held, _)| *held)
                .ok()
                .and_then(|at| writer_locks.get(at));
            let Some((_, writer_lock)) = writer_lock else { unreachable!("each partition was locked") };
            self.apply(view, update, || {
                view.current().apply_in(writer_lock, *partition, update, (&checked.extent, logged))
            });
        }
        self.apply_derived(tables, checked, logged);
        Ok(ticket)
    }

    fn admits(&self, target: &Target<'_>, order: Order) -> bool {
        match order {
            Order::Plain { stamped_us } => {
                self.partition_locks.admits(target.update.table.id, target.token, stamped_us)
            }
            Order::Locked | Order::Unrefused => true,
        }
    }

    /// Appends a record, if there is a log. Returns the ticket and the end of the record.
    fn append(&self, record: Option<MutationRecord>, checked: &Checked<'_>) -> Result<(Ticket, LogPosition)> {
        let ticket = match self.log.as_ref().zip(record) {
            Some((log, record)) => log.append(record, (checked.mutation, checked.derived), checked.images)?,
            None => Ticket::ready(),
        };
        account::commit();
        let logged = ticket.position().unwrap_or(LogPosition::START);
        Ok((ticket, logged))
    }

    /// Applies a logged update, and measures a sample of them.
    fn apply(&self, view: &View, update: &PartitionUpdate, apply: impl FnOnce()) {
        let writes = &view.figures.writes;
        let began_ns = writes.count().then(|| self.host.clock.monotonic_ns());
        apply();
        if let Some(began_ns) = began_ns {
            let now_ns = self.host.clock.monotonic_ns();
            writes.record(now_ns.saturating_sub(began_ns), now_ns);
            view.figures.top_writes.add(&update.key, SAMPLED);
        }
    }

    fn apply_derived(&self, tables: &Tables, checked: &Checked<'_>, logged: LogPosition) {
        for update in checked.derived {
            let Some(store) = tables.get(&update.table.id) else { continue };
            let view = store.view_briefly();
            let memtable = view.current();
            let partition = memtable.get_or_create(Token::of_key(&update.key), &update.key);
            let writer_lock = partition.content().writer_lock();
            self.apply(&view, update, || {
                memtable.apply_in(&writer_lock, partition, update, (&checked.of_derived, logged))
            });
        }
    }

    /// Refuses a write when more memory is in use than waiting writers account for. Tables whose flush fails refuse
    /// their own writes (`table/failures.rs`); here their memory does not count.
    fn check_room(&self) -> Result<()> {
        let (used, limit) = self.memory.beside_stuck();
        if used < limit.saturating_mul(2) {
            return Ok(());
        }
        let failure = self.flush_failure.lock().clone();
        let reason = failure.unwrap_or_else(|| "the disk does not keep up".into());
        Err(Error::NoRoom { used, limit, reason })
    }

    fn check_size(&self, mutation: &Mutation) -> Result<()> {
        let bytes = |update: &PartitionUpdate| update.key.len() + update.changes.as_bytes().len();
        let size: usize = mutation.updates.iter().map(bytes).sum();
        let limit = self.options.mutation_bytes_max;
        if size <= limit {
            return Ok(());
        }
        let Some(largest) = mutation.updates.iter().max_by_key(|update| bytes(update)) else { return Ok(()) };
        Err(Error::MutationTooLarge {
            size,
            limit,
            keyspace: largest.table.keyspace.to_string(),
            table: largest.table.name.to_string(),
            key: largest.key.iter().take(64).map(|byte| format!("{byte:02x}")).collect(),
        })
    }
}

/// A mutation made anew for the present definitions of its tables: without the cells of columns that were dropped since.
///
/// The memtable would not show them. But replay knows columns by their names, so a column of the same name that was
/// made again would have them after a restart.
fn of_present_tables(tables: &Tables, mutation: &Mutation) -> Result<Mutation> {
    let of_present = |update: &PartitionUpdate| {
        let store = tables.get(&update.table.id).ok_or_else(|| Error::unknown(&update.table))?;
        let table = store.table();
        let changes = of_present_columns(&update.changes, &table);
        let changes = changes.map_err(|problem| Error::unstorable(&update.table, problem))?;
        Ok(PartitionUpdate { table, key: update.key.clone(), changes })
    };
    Ok(Mutation { updates: mutation.updates.iter().map(of_present).collect::<Result<_>>()? })
}

/// Refuses changes that cannot be stored: once in the log, they would make every flush of their table and every start
/// fail.
fn check_storable<'a>(updates: impl Iterator<Item = &'a PartitionUpdate>) -> Result<TimeRange> {
    check(updates).map_err(|(update, problem)| Error::unstorable(&update.table, problem))
}
