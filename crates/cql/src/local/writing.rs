//! Runs what writes: plain statements straight from their values, all others under the locks of their partitions.
//!
//! A statement or batch that reads first (conditions, operations on lists) locks all its partitions at once, reads, writes,
//! and unlocks: another such write comes before or after it, never between, and neither does a plain one
//! (`engine/src/database/turns.rs`). What adds to a list locks too: the order of a list's elements is that of the times in
//! their paths, which must be the order in which they are applied. A server timestamp is taken under the lock, so that it
//! is later than all that was applied before. The answer waits for the log, since it tells what others have written.
//! Counters do the same within the engine (`Database::count`).
//!
//! A plain write that meets a lock, or comes behind a later one, is made anew under the lock, with a new timestamp. Where reads or locks would have to be waited
//! for, the answer is `WouldBlock`: nothing is written then, and the door runs the request again on a disk thread.

use super::backend::LocalBackend;
use super::consistency::{check_conditional, check_counting, check_read_before_write, check_write};
use super::engine_error::{read_before_write_error, write_error};
use crate::backend::{Answer, BatchKind, Outcome, Request, RowsOut};
use crate::error::{CqlError, Result};
use crate::plan::conditional::{CasRequest, Verdict, without_deleted_rows};
use crate::plan::modify::{Collector, Moment, Prior, Statement, Wanted};
use crate::super_family;
use crate::work::Work;
use helenus_engine::read::Stage;
use helenus_engine::{ReadRequest, Ticket, Turn};
use helenus_model::coalesce::coalesced;
use helenus_model::mutation::Mutation;
use parking_lot::Mutex;

/// How a write stands to the locks of its partitions.
#[derive(Clone, Copy)]
enum Order<'a> {
    /// It needs none, but may not pass one that was held since it was stamped; `None` where the client gave the timestamp.
    Plain(Option<i64>),
    /// These are they.
    Locked(&'a Turn<'a>),
}

/// Timestamps from here on leave no room for a conditional write and what it deletes.
const TIMESTAMP_US_END: i64 = i64::MAX - 2;
/// What is said of a row that has one.
const AT_THE_END_OF_TIME: &str = "the row has a cell with the greatest timestamp there is, which no conditional write can \
     replace; delete the row with USING TIMESTAMP of the same number first";

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
        let mutation = collector.finish();
        let warnings = self.guard_write(&mutation, request)?;
        request.spent(self.database(), Stage::Plan, began_ns);
        let ticket = match self.write_in(&mutation, Order::Plain(moment.stamped_us()), request) {
            Err(CqlError::WouldBlock) => {
                return self.run_locked((&[statement], None), Wanted::default(), moment, request);
            }
            written => written?,
        };
        Collector::keep(mutation);
        Ok(Answer { outcome: Outcome::Done(ticket), warnings })
    }

    /// Runs statements without conditions as one write. `kind` is that of a batch; `None` for a statement alone.
    pub(super) fn run_batch(
        &self,
        statements: &[Statement<'_>],
        kind: Option<BatchKind>,
        moment: Moment,
        request: &Request<'_>,
    ) -> Result<Answer> {
        let mut wanted = Wanted::default();
        for statement in statements {
            let asked = statement.plan.want(&statement.bindings, &mut wanted);
            asked.map_err(|error| first_refusal(error, statements))?;
        }
        let counts = statements.first().is_some_and(|statement| statement.plan.counts);
        let adds_to_lists = statements.iter().any(|statement| statement.plan.adds_to_lists());
        if wanted.is_empty() && !adds_to_lists {
            let order = (!counts).then(|| Order::Plain(moment.stamped_us()));
            match self.run_together((statements, kind), moment, (order, None), request) {
                Err(CqlError::WouldBlock) if !counts => {}
                done => return done,
            }
        }
        self.run_locked((statements, kind), wanted, moment, request)
    }

    /// Runs statements without conditions as one write, under the locks of all their partitions.
    fn run_locked(
        &self,
        (statements, kind): (&[Statement<'_>], Option<BatchKind>),
        mut wanted: Wanted,
        moment: Moment,
        request: &Request<'_>,
    ) -> Result<Answer> {
        let reads = !wanted.is_empty();
        if reads {
            self.guard_lists(statements)?;
            check_read_before_write(request.consistency)?;
        }
        for statement in statements {
            let asked = statement.plan.want_locked(&statement.bindings, &mut wanted);
            asked.map_err(|error| first_refusal(error, statements))?;
        }
        let locked = self.database().turn(wanted.turns(), request.may_block)?;
        let moment = self.stamped_again(moment)?;
        let prior = if reads { Some(self.read_prior(&wanted, moment.now_s, request)?) } else { None };
        let order = Some(Order::Locked(&locked));
        let done = self.run_together((statements, kind), moment, (order, prior.as_ref()), request);
        if reads && matches!(done, Err(CqlError::Invalid(_))) {
            drop(locked);
            self.until_safe(request)?;
        }
        done
    }

    /// A refusal that tells of what was read may go out once that is safe.
    fn until_safe(&self, request: &Request<'_>) -> Result<()> {
        let ticket = self.database().written_so_far();
        match ticket.is_ready()? {
            true => Ok(()),
            false if request.may_block => Ok(ticket.wait()?),
            false => Err(CqlError::WouldBlock),
        }
    }

    /// The moment of a write that has just got its locks: later than all that was applied before, unless the client said when.
    fn stamped_again(&self, moment: Moment) -> Result<Moment> {
        match moment.is_clients {
            true => Ok(moment),
            false => Ok(Moment { timestamp_us: self.database().next_timestamp()?, ..moment }),
        }
    }

    /// Makes one mutation of statements and writes it. `order` is `None` for counters, whose locks the engine takes.
    fn run_together(
        &self,
        (statements, kind): (&[Statement<'_>], Option<BatchKind>),
        moment: Moment,
        (order, prior): (Option<Order<'_>>, Option<&Prior>),
        request: &Request<'_>,
    ) -> Result<Answer> {
        let began_ns = request.began_ns(self.database());
        let mut collector = Collector::of_thread();
        // Cassandra finds a range that ends at null when it applies what all statements come to.
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
        let mutation = collector.finish();
        let mut warnings = self.guard_write(&mutation, request)?;
        if let Some(kind) = kind {
            let plans = statements.iter().map(|statement| statement.plan);
            warnings.extend(self.tuning.batches().check(&mutation, kind, plans)?);
        }
        request.spent(self.database(), Stage::Plan, began_ns);
        let ticket = match order {
            None => self.count(&mutation, request)?,
            Some(order) => self.write_in(&mutation, order, request)?,
        };
        Collector::keep(mutation);
        Ok(Answer { outcome: Outcome::Done(ticket), warnings })
    }

    /// Runs a statement with conditions, or a batch in which there are some.
    pub(super) fn run_conditional(
        &self,
        statements: &[Statement<'_>],
        kind: Option<BatchKind>,
        request: &Request<'_>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer> {
        let cas = CasRequest::new(statements, kind.is_some())?;
        check_conditional(request.consistency, request.serial_consistency)?;
        let mut wanted = Wanted::default();
        cas.want(&mut wanted);
        let locked = self.database().turn(wanted.turns(), request.may_block)?;
        let now_s = request.now_s.unwrap_or_else(|| self.database().now_s());
        let prior = self.read_prior(&wanted, now_s, request)?;
        let mut warnings = Vec::new();
        let work = &Work::of(request, self.database());
        let (columns, ticket) = match cas.verdict(&prior, now_s, work)? {
            Verdict::Refused => (cas.write_refused(&prior, now_s, out), self.database().written_so_far()),
            Verdict::Applies => {
                self.guard_lists(statements)?;
                // Taken under the lock, and later than all that decided: no write of the partition goes back.
                let timestamp_us = self.database().next_timestamp()?.max(prior.newest_us().saturating_add(1));
                if timestamp_us >= TIMESTAMP_US_END {
                    return Err(CqlError::Invalid(AT_THE_END_OF_TIME.into()));
                }
                let mut collector = Collector::default();
                for statement in statements {
                    let moment = Moment { timestamp_us, now_s, is_conditional: true, is_clients: false };
                    statement.plan.apply(&statement.bindings, moment, Some(&prior), &mut collector)?;
                }
                let mut mutation = collector.finish();
                if statements.len() > 1 {
                    without_deleted_rows(&mut mutation);
                }
                warnings = self.guard_write(&mutation, request)?;
                let ticket = match mutation.updates.is_empty() {
                    true => self.database().written_so_far(),
                    false => self.write_in(&mutation, Order::Locked(&locked), request)?,
                };
                (cas.write_applied(out), ticket)
            }
        };
        Ok(Answer { outcome: Outcome::Rows { columns, paging_state: None, ticket: Some(ticket) }, warnings })
    }

    fn read_prior(&self, wanted: &Wanted, now_s: i64, request: &Request<'_>) -> Result<Prior> {
        let mut probe = request.probe.map(Mutex::lock);
        wanted
            .read(self.database(), read_request(request), now_s, probe.as_deref_mut())
            .map_err(|error| read_before_write_error(error, request.consistency))
    }

    /// Writes a mutation as it is.
    pub(super) fn write(&self, mutation: &Mutation, request: &Request<'_>) -> Result<Ticket> {
        match self.write_in(mutation, Order::Plain(None), request) {
            Err(CqlError::WouldBlock) => {
                let locked = self.database().lock_all(mutation, request.may_block)?;
                self.write_in(mutation, Order::Locked(&locked), request)
            }
            written => written,
        }
    }

    fn write_in(&self, mutation: &Mutation, order: Order<'_>, request: &Request<'_>) -> Result<Ticket> {
        if mutation.updates.is_empty() {
            return Ok(Ticket::ready());
        }
        let began_ns = request.began_ns(self.database());
        let fewer = with_fewer_changes(mutation);
        let mutation = fewer.as_ref().unwrap_or(mutation);
        let stored = super_family::stored(self.database(), mutation)?;
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

    /// Writes a mutation of counters, whose cells say what is to be added.
    fn count(&self, mutation: &Mutation, request: &Request<'_>) -> Result<Ticket> {
        if mutation.updates.is_empty() {
            return Ok(Ticket::ready());
        }
        let began_ns = request.began_ns(self.database());
        let mut probe = request.probe.map(Mutex::lock);
        let stored = super_family::stored(self.database(), mutation)?;
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

/// The mutation with the changes of each row made one, where a partition has many.
fn with_fewer_changes(mutation: &Mutation) -> Option<Mutation> {
    let mut fewer: Option<Mutation> = None;
    for (at, update) in mutation.updates.iter().enumerate() {
        let Some(changes) = coalesced(&update.changes, &update.table) else { continue };
        let fewer = fewer.get_or_insert_with(|| mutation.clone());
        if let Some(update) = fewer.updates.get_mut(at) {
            update.changes = changes;
        }
    }
    fewer
}

/// What a batch is refused for: the first of its partitions that cannot be, or else `error`.
fn first_refusal(error: CqlError, statements: &[Statement<'_>]) -> CqlError {
    let keys = statements.iter().map(|statement| statement.plan.check_partitions(&statement.bindings));
    keys.filter_map(Result::err).next().unwrap_or(error)
}

fn read_request<'r>(request: &Request<'r>) -> ReadRequest<'r> {
    ReadRequest {
        may_block: request.may_block,
        deadline_ns: request.deadline_ns,
        cancelled: request.cancelled,
    }
}
