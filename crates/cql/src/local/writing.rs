//! Runs writes: plain statements directly from their values, all others under the locks of their partitions.
//!
//! A statement or batch that reads first (conditions, list operations) locks all its partitions at once, reads, writes
//! and unlocks. Other writes of this kind, and plain writes, come before or after it and never between
//! (`engine/src/database/partition_locks.rs`). Appending to a list locks, too: the elements are ordered by the times in
//! their paths, which must have the order in which they are applied. The server takes the timestamp under the lock, so
//! it is later than everything applied before. The answer waits for the commit log, because it depends on what others
//! have written. The engine does the same for counters (`Database::count`).
//!
//! A plain write that finds a lock, or whose timestamp is from before the lock's last release, is built again under the
//! lock with a new timestamp. If a read or a lock would have to wait, the result is `WouldBlock`: nothing was written,
//! and the request runs again on the disk pool.

use super::backend::LocalBackend;
use super::consistency::{check_conditional, check_counting, check_read_before_write, check_write};
use super::engine_error::{read_before_write_error, write_error};
use crate::backend::{Answer, BatchKind, Outcome, Request, RowsOut};
use crate::budget::{Late, RequestBudget, room_for};
use crate::error::{CqlError, Result};
use crate::plan::conditional::{AnswerLimit, CasRequest, Verdict, without_deleted_rows};
use crate::plan::modify::{Collector, Moment, PriorRows, ReadSet, Statement};
use crate::super_family;
use helenus_engine::read::Stage;
use helenus_engine::{Database, PartitionLock, ReadRequest, Ticket};
use helenus_model::coalesce::{Coalesced, coalesced};
use helenus_model::mutation::Mutation;
use helenus_model::schema::TableId;
use helenus_model::token::Token;
use parking_lot::Mutex;

/// Statements that are written together: those of a batch of this kind, or one statement.
#[derive(Clone, Copy)]
struct WriteTogether<'a> {
    statements: &'a [Statement<'a>],
    kind: Option<BatchKind>,
}

/// The relation of a write to the locks of its partitions.
#[derive(Clone, Copy)]
enum Order<'a> {
    /// It holds no lock, and must not overtake a lock that was held after its timestamp, which is given here; `None` if
    /// the client chose the timestamp.
    Plain(Option<i64>),
    /// It holds these locks.
    Locked(&'a PartitionLock<'a>),
}

/// From this timestamp on there is no room for a conditional write and its deletions.
const TIMESTAMP_US_END: i64 = i64::MAX - 2;
/// The error for a row with such a timestamp.
const TIMESTAMP_TOO_LARGE: &str = "the row has a cell or a deletion with the greatest timestamp there is, which no \
     conditional write can replace; use another key, or TRUNCATE the table";

impl LocalBackend {
    /// Runs one statement.
    pub(super) fn run_statement(
        &self,
        statement: Statement<'_>,
        moment: Moment,
        request: &Request<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer> {
        let plan = statement.plan;
        if !plan.conditions.is_none() {
            return self.run_conditional(&[statement], None, request, out);
        }
        if plan.counts {
            check_counting(request.consistency, &plan.table)?;
        } else {
            check_write(request.consistency)?;
        }
        if !plan.is_plain() || plan.adds_to_lists() {
            return self.run_batch(&[statement], None, moment, request);
        }
        let began_ns = request.began_ns(self.database());
        let mut collector = Collector::of_thread();
        plan.apply(&statement.bindings, moment, None, &mut collector)?;
        let mut mutation = collector.finish();
        let warnings = self.guard_write(&mutation, request)?;
        request.spent(self.database(), Stage::Plan, began_ns);
        let ticket = match self.write_in(&mut mutation, Order::Plain(moment.stamped_us()), request) {
            Err(CqlError::WouldBlock) => {
                return self.run_locked(
                    WriteTogether { statements: &[statement], kind: None },
                    ReadSet::default(),
                    moment,
                    request,
                );
            }
            written => written?,
        };
        Collector::keep(mutation);
        Ok(Answer { outcome: Outcome::Done(ticket), warnings })
    }

    /// Runs statements without conditions as one write. `kind` is the kind of a batch; `None` for a single statement.
    pub(super) fn run_batch(
        &self,
        statements: &[Statement<'_>],
        kind: Option<BatchKind>,
        moment: Moment,
        request: &Request<'_>,
    ) -> Result<Answer> {
        let mut wanted = ReadSet::default();
        for statement in statements {
            let asked = statement.plan.add_reads(&statement.bindings, &mut wanted);
            asked.map_err(|error| first_refusal(error, statements))?;
        }
        let of = WriteTogether { statements, kind };
        let counts = statements.first().is_some_and(|statement| statement.plan.counts);
        let adds_to_lists = statements.iter().any(|statement| statement.plan.adds_to_lists());
        if wanted.is_empty() && !adds_to_lists {
            let order = (!counts).then(|| Order::Plain(moment.stamped_us()));
            match self.run_together(of, moment, (order, None), request) {
                Err(CqlError::WouldBlock) if !counts => {}
                done => return done,
            }
        }
        self.run_locked(of, wanted, moment, request)
    }

    /// Runs statements without conditions as one write, under the locks of all their partitions.
    fn run_locked(
        &self,
        of: WriteTogether<'_>,
        mut wanted: ReadSet,
        moment: Moment,
        request: &Request<'_>,
    ) -> Result<Answer> {
        let statements = of.statements;
        let reads = !wanted.is_empty();
        if reads {
            self.guard_lists(statements)?;
            check_read_before_write(request.consistency)?;
        }
        for statement in statements {
            let asked = statement.plan.add_locks(&statement.bindings, &mut wanted);
            asked.map_err(|error| first_refusal(error, statements))?;
        }
        let locked = self.lock(wanted.locks(), request)?;
        let moment = self.stamped_again(moment)?;
        let prior = if reads { Some(self.read_prior(&wanted, moment.now_s, request)?) } else { None };
        let order = Some(Order::Locked(&locked));
        let done = self.run_together(of, moment, (order, prior.as_ref()), request);
        if reads && matches!(done, Err(CqlError::Invalid(_))) {
            drop(locked);
            self.until_safe(request)?;
        }
        done
    }

    /// Waits until all writes so far are durable, before an error is sent that reveals what was read.
    fn until_safe(&self, request: &Request<'_>) -> Result<()> {
        let ticket = self.database().written_so_far();
        match ticket.is_ready()? {
            true => Ok(()),
            false if request.may_block => Ok(ticket.wait()?),
            false => Err(CqlError::WouldBlock),
        }
    }

    /// The timestamp and time of a write after it got its locks: later than everything applied before, unless the
    /// client chose it.
    fn stamped_again(&self, moment: Moment) -> Result<Moment> {
        match moment.is_clients {
            true => Ok(moment),
            false => Ok(Moment { timestamp_us: self.database().next_timestamp()?, ..moment }),
        }
    }

    /// Builds one mutation from statements and writes it. `order` is `None` for counters, which the engine locks.
    fn run_together(
        &self,
        of: WriteTogether<'_>,
        moment: Moment,
        (order, prior): (Option<Order<'_>>, Option<&PriorRows>),
        request: &Request<'_>,
    ) -> Result<Answer> {
        let WriteTogether { statements, kind } = of;
        let began_ns = request.began_ns(self.database());
        let mut collector = Collector::of_thread();
        // Cassandra finds a range with a null end only when it applies the mutation of all statements.
        let mut late = None;
        for statement in statements {
            match statement.plan.apply(&statement.bindings, moment, prior, &mut collector) {
                Err(error) if statement.plan.is_null_end(&error) => late = late.or(Some(error)),
                applied => applied.map_err(|error| first_refusal(error, statements))?,
            }
        }
        if let Some(error) = late {
            return Err(first_refusal(error, statements));
        }
        let mut mutation = collector.finish();
        let mut warnings = self.guard_write(&mutation, request)?;
        if let Some(kind) = kind {
            let plans = statements.iter().map(|statement| statement.plan);
            warnings.extend(self.tuning.batches().check(&mutation, kind, plans)?);
        }
        request.spent(self.database(), Stage::Plan, began_ns);
        let ticket = match order {
            None => self.count(&mutation, request)?,
            Some(order) => self.write_in(&mut mutation, order, request)?,
        };
        Collector::keep(mutation);
        Ok(Answer { outcome: Outcome::Done(ticket), warnings })
    }

    /// Runs a statement with conditions, or a batch that contains one.
    pub(super) fn run_conditional(
        &self,
        statements: &[Statement<'_>],
        kind: Option<BatchKind>,
        request: &Request<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer> {
        let cas = CasRequest::new(statements, kind.is_some())?;
        check_conditional(request.consistency, request.serial_consistency)?;
        let mut wanted = ReadSet::default();
        cas.want(&mut wanted);
        let locked = self.lock(wanted.locks(), request)?;
        let now_s = request.now_s.unwrap_or_else(|| self.database().now_s());
        let prior = self.read_prior(&wanted, now_s, request)?;
        let mut warnings = Vec::new();
        let work = &RequestBudget::of(request, self.database());
        if let Some(deadline_ns) = request.deadline_ns {
            work.end_at(deadline_ns, Late::Write(request.consistency));
        }
        let (columns, ticket) = match cas.verdict(&prior, now_s, work)? {
            Verdict::Refused => {
                let limit = AnswerLimit {
                    bytes_max: self.answer_bytes_max,
                    memory: request.identity.answer_memory(),
                };
                let written = cas.write_refused(&prior, (now_s, work), limit, out);
                if matches!(written, Err(CqlError::Invalid(_))) {
                    drop(locked);
                    self.until_safe(request)?;
                }
                (written?, self.database().written_so_far())
            }
            Verdict::Applies => {
                self.guard_lists(statements)?;
                // Taken under the lock and later than everything that was read, so the partition's writes are in
                // timestamp order.
                let timestamp_us = self.database().next_timestamp()?.max(prior.newest_us().saturating_add(1));
                if timestamp_us >= TIMESTAMP_US_END {
                    return Err(CqlError::Invalid(TIMESTAMP_TOO_LARGE.into()));
                }
                let mut collector = Collector::default();
                for statement in statements {
                    let moment = Moment { timestamp_us, now_s, is_conditional: true, is_clients: false };
                    statement.plan.apply(&statement.bindings, moment, Some(&prior), &mut collector)?;
                }
                let mut mutation = collector.finish();
                if statements.len() > 1 {
                    without_deleted_rows(&mut mutation, work)?;
                }
                warnings = self.guard_write(&mutation, request)?;
                let ticket = match mutation.updates.is_empty() {
                    true => self.database().written_so_far(),
                    false => self.write_in(&mut mutation, Order::Locked(&locked), request)?,
                };
                (cas.write_applied(out), ticket)
            }
        };
        Ok(Answer { outcome: Outcome::Rows { columns, paging_state: None, ticket: Some(ticket) }, warnings })
    }

    /// Locks the partitions of a write.
    fn lock(
        &self,
        partitions: impl Iterator<Item = (TableId, Token)>,
        request: &Request<'_>,
    ) -> Result<PartitionLock<'_>> {
        let locked = self.database().lock_partition(partitions, read_request(request));
        locked.map_err(|error| write_error(error, &[], request.consistency))
    }

    fn read_prior(&self, wanted: &ReadSet, now_s: i64, request: &Request<'_>) -> Result<PriorRows> {
        let mut probe = request.probe.map(Mutex::lock);
        wanted
            .read(self.database(), read_request(request), now_s, probe.as_deref_mut())
            .map_err(|error| read_before_write_error(error, request.consistency))
    }

    /// Writes a given mutation. Changes of one row may be merged in it.
    pub(super) fn write(&self, mutation: &mut Mutation, request: &Request<'_>) -> Result<Ticket> {
        match self.write_in(mutation, Order::Plain(None), request) {
            Err(CqlError::WouldBlock) => {
                let updates = mutation.updates.iter();
                let partitions = updates.map(|update| (update.table.id, Token::of_key(&update.key)));
                let locked = self.lock(partitions, request)?;
                self.write_in(mutation, Order::Locked(&locked), request)
            }
            written => written,
        }
    }

    fn write_in(&self, mutation: &mut Mutation, order: Order<'_>, request: &Request<'_>) -> Result<Ticket> {
        if mutation.updates.is_empty() {
            return Ok(Ticket::ready());
        }
        check_deadline(request, self.database())?;
        let began_ns = request.began_ns(self.database());
        let work = RequestBudget::of(request, self.database());
        with_fewer_changes(mutation, &work)?;
        work.terms_of(mutation)?;
        let stored = super_family::stored(self.database(), mutation)?;
        if request.is_trial {
            let checked = self.database().check_write(&stored);
            checked.map_err(|error| write_error(error, &mutation.updates, request.consistency))?;
            return Ok(Ticket::ready());
        }
        let written = match order {
            Order::Locked(locked) => self.database().write_locked(&stored, locked),
            Order::Plain(stamped_us) => self.database().try_write(&stored, stamped_us),
        };
        if let Some(probe) = request.probe {
            probe.lock().count_write(mutation);
            request.spent(self.database(), Stage::Write, began_ns);
        }
        written.map_err(|error| write_error(error, &mutation.updates, request.consistency))
    }

    /// Writes a counter mutation, whose cells contain the increments.
    fn count(&self, mutation: &Mutation, request: &Request<'_>) -> Result<Ticket> {
        if mutation.updates.is_empty() {
            return Ok(Ticket::ready());
        }
        check_deadline(request, self.database())?;
        let began_ns = request.began_ns(self.database());
        let mut probe = request.probe.map(Mutex::lock);
        let stored = super_family::stored(self.database(), mutation)?;
        if request.is_trial {
            let checked = self.database().check_write(&stored);
            checked.map_err(|error| write_error(error, &mutation.updates, request.consistency))?;
            return Ok(Ticket::ready());
        }
        let counted = self.database().count(&stored, read_request(request), probe.as_deref_mut());
        drop(probe);
        if let Some(probe) = request.probe {
            probe.lock().count_write(mutation);
            request.spent(self.database(), Stage::Write, began_ns);
        }
        counted.map_err(|error| match write_error(error, &mutation.updates, request.consistency) {
            CqlError::Server(reason) => CqlError::WriteFailure { consistency: request.consistency, reason },
            other => other,
        })
    }
}

/// Merges the changes of each row of partitions with many changes, in place.
fn with_fewer_changes(mutation: &mut Mutation, work: &RequestBudget<'_>) -> Result<()> {
    for update in &mut mutation.updates {
        let mut refusal = None;
        let mut may = |bytes: usize, steps: usize| {
            refusal = room_for(bytes).and_then(|()| work.steps(steps)).err();
            refusal.is_none()
        };
        match coalesced(&update.changes, &update.table, &mut may) {
            Coalesced::Unchanged => {}
            Coalesced::Fewer(changes) => update.changes = changes,
            Coalesced::Refused => return Err(refusal.unwrap_or(CqlError::Cancelled)),
        }
    }
    Ok(())
}

/// The error of a batch: that of the first statement with an invalid partition key, otherwise `error`.
fn first_refusal(error: CqlError, statements: &[Statement<'_>]) -> CqlError {
    let keys = statements.iter().map(|statement| statement.plan.check_partitions(&statement.bindings));
    keys.filter_map(Result::err).next().unwrap_or(error)
}

fn read_request<'r>(request: &Request<'r>) -> ReadRequest<'r> {
    ReadRequest {
        may_block: request.may_block,
        deadline_ns: request.deadline_ns,
        cancelled: request.cancelled,
        bypasses_cache: false,
    }
}

/// Refuses a write whose deadline has passed, before anything of it is written.
fn check_deadline(request: &Request<'_>, database: &Database) -> Result<()> {
    match request.deadline_ns {
        Some(deadline_ns) if database.host().clock.monotonic_ns() >= deadline_ns => {
            Err(CqlError::WriteTimeout { consistency: request.consistency })
        }
        _ => Ok(()),
    }
}
