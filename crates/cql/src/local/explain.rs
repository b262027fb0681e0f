//! Runs EXPLAIN and EXPLAIN ANALYZE.
//!
//! EXPLAIN does not run the statement: it binds the values and forecasts a run from the data that tables keep in
//! memory. EXPLAIN ANALYZE runs the statement completely, a SELECT page by page with its rows discarded, a write until
//! it is acknowledged, and shows the counts of a probe. It waits for the disk, so it is refused where waiting is not
//! allowed.

use super::backend::{LocalBackend, may_block};
use super::consistency::{check_read, check_write};
use super::explain_read_first::ExplainedWrite;
use crate::analysis::Bindings;
use crate::backend::{Answer, BatchKind, Outcome, Request, ResultColumns, RowsOut};
use crate::error::{CqlError, Result};
use crate::plan::explain::{
    ExplainPlan, RunStats, Step, advise_read, advise_write, count_steps, read_steps, source_steps,
    write_steps,
};
use crate::plan::modify::{Collector, Moment, Statement};
use crate::plan::select::SelectPlan;
use crate::plan::{Execution, Plan};
use helenus_engine::read::{Probe, Stage};
use helenus_model::mutation::Mutation;
use parking_lot::Mutex;
use std::sync::Arc;

impl LocalBackend {
    /// Explains a statement, and runs it for EXPLAIN ANALYZE.
    pub(super) fn explain(
        &self,
        plan: &ExplainPlan,
        (request, bindings): (&Request<'_>, Bindings<'_>),
        moment: Result<Moment>,
        out: &mut dyn RowsOut,
    ) -> Result<Answer> {
        if plan.is_analyzed() {
            may_block(request)?;
        }
        let (steps, warnings) = match &plan.statement {
            Plan::Select(select) => {
                check_read(request.consistency)?;
                (self.explain_read(plan, select, (request, bindings))?, Vec::new())
            }
            statement => {
                check_write(request.consistency)?;
                self.explain_write(plan, statement, (request, bindings), moment?)?
            }
        };
        plan.write(&steps, out)?;
        let columns = plan.columns().clone();
        Ok(Answer { outcome: Outcome::Rows { columns, paging_state: None, ticket: None }, warnings })
    }

    fn explain_read(
        &self,
        plan: &ExplainPlan,
        select: &SelectPlan,
        (request, bindings): (&Request<'_>, Bindings<'_>),
    ) -> Result<Vec<Step>> {
        let execution = Execution {
            database: self.database(),
            virtuals: self.virtual_tables(),
            request,
            guardrails: None,
            tombstones_warn: self.tuning.tombstones_warn(),
            tombstones_fail: self.tuning.tombstones_fail(),
            answer_bytes_max: self.answer_bytes_max,
            bindings,
        };
        let forecast = select.forecast(&execution)?;
        let mut memtables = 0;
        let mut probe = Probe::default();
        if let Some(command) = forecast.command.as_ref().filter(|_| forecast.indexes.is_empty()) {
            let view = self.database().view(&command.table)?;
            memtables = view.memtables.len();
            probe = self.database().forecast(command, &view);
        }
        let mut steps = read_steps(&forecast);
        let mut counts = Vec::new();
        if plan.is_analyzed() {
            let (ran, counted) = self.run_whole(select, &execution)?;
            counts = count_steps(&counted, &ran);
            probe = counted;
        }
        // With an index the sources of rows are only known after its entries were read.
        if forecast.indexes.is_empty() || plan.is_analyzed() {
            steps.extend(source_steps(&forecast, memtables, &probe));
        }
        steps.extend(counts);
        steps.extend(advise_read(&forecast, &probe, plan.is_analyzed()));
        Ok(steps)
    }

    /// Runs a SELECT to its end or its LIMIT, page by page. Each page has its own deadline, but for a role with a time for its
    /// statements, which all pages share.
    fn run_whole(&self, select: &SelectPlan, execution: &Execution<'_>) -> Result<(RunStats, Probe)> {
        let clock = &self.database().host().clock;
        let began_ns = clock.monotonic_ns();
        let probe = Mutex::new(Probe::default());
        let mut thrown_away = Discard::default();
        let mut state: Option<Vec<u8>> = None;
        let consistency = execution.request.consistency;
        let deadline_ns = execution.request.identity.statement_timeout().and(execution.request.deadline_ns);
        loop {
            // A short page does not look at the clock by itself.
            if deadline_ns.is_some_and(|deadline_ns| clock.monotonic_ns() >= deadline_ns) {
                return Err(CqlError::ReadTimeout { consistency });
            }
            let request = Request {
                page_size: select.page_rows(execution.request.page_size),
                paging_state: state.as_deref(),
                deadline_ns,
                probe: Some(&probe),
                ..execution.request.clone()
            };
            let page = Execution { request: &request, bindings: execution.bindings.clone(), ..*execution };
            thrown_away.page_bytes = 0;
            state = match select.execute(&page, &mut thrown_away)?.outcome {
                Outcome::Rows { paging_state: Some(state), .. } => Some(state),
                _ => break,
            };
        }
        let total_ns = clock.monotonic_ns().saturating_sub(began_ns);
        let Discard { rows, bytes, .. } = thrown_away;
        Ok((RunStats { total_ns, acknowledge_ns: None, rows, bytes }, probe.into_inner()))
    }

    fn explain_write(
        &self,
        plan: &ExplainPlan,
        statement: &Plan,
        (request, bindings): (&Request<'_>, Bindings<'_>),
        moment: Moment,
    ) -> Result<(Vec<Step>, Vec<String>)> {
        let (word, kind, statements) = statements_of(statement, &bindings)?;
        if statements.iter().any(|statement| !statement.plan.is_plain()) {
            let moment = batch_moment(statement, moment, &bindings)?;
            let (analyzed, statements) = (plan.is_analyzed(), &statements[..]);
            let explained = ExplainedWrite { word, kind, analyzed, statements };
            return self.explain_first(explained, moment, request);
        }
        let clock = &self.database().host().clock;
        let began_ns = clock.monotonic_ns();
        let moment = batch_moment(statement, moment, &bindings)?;
        let (mut mutation, warnings) = self.mutation_of(kind, &statements, moment)?;
        let planned_ns = clock.monotonic_ns();
        let (mut steps, written) = write_steps(word, &mutation, "reads nothing");
        if plan.is_analyzed() {
            let probe = Mutex::new(Probe::default());
            probe.lock().times.add(Stage::Plan, planned_ns.saturating_sub(began_ns));
            let writing_ns = clock.monotonic_ns();
            let watched = Request { probe: Some(&probe), ..request.clone() };
            let ticket = self.write(&mut mutation, &watched)?;
            let written_ns = clock.monotonic_ns();
            ticket.wait()?;
            let ended_ns = clock.monotonic_ns();
            let total_ns = (planned_ns - began_ns) + (ended_ns - writing_ns);
            let acknowledge_ns = Some(ended_ns - written_ns);
            let ran = RunStats { total_ns, acknowledge_ns, rows: 0, bytes: 0 };
            steps.extend(count_steps(&probe.into_inner(), &ran));
        }
        steps.extend(advise_write(&written));
        Ok((steps, warnings))
    }

    /// The mutation of a write, and its warnings.
    fn mutation_of(
        &self,
        kind: Option<BatchKind>,
        statements: &[Statement<'_>],
        moment: Moment,
    ) -> Result<(Mutation, Vec<String>)> {
        let mut collector = Collector::default();
        for statement in statements {
            statement.plan.apply(&statement.bindings, moment, None, &mut collector)?;
        }
        let mutation = collector.finish();
        let warnings = match kind {
            Some(kind) => self.tuning.batches().check(
                &mutation,
                kind,
                statements.iter().map(|statement| statement.plan),
            )?,
            None => Vec::new(),
        };
        Ok((mutation, warnings))
    }
}

/// The statements of a write with their values, the write's keyword, and the kind of a batch.
fn statements_of<'p>(
    statement: &'p Plan,
    bindings: &Bindings<'p>,
) -> Result<(&'static str, Option<BatchKind>, Vec<Statement<'p>>)> {
    match statement {
        Plan::Modify(plan) => {
            Ok((plan.kind.word(), None, vec![Statement { plan, bindings: bindings.clone() }]))
        }
        Plan::Batch(plan) => Ok(("batch", Some(plan.kind), plan.bound(bindings)?)),
        _ => Err(CqlError::Invalid("EXPLAIN goes with SELECT, INSERT, UPDATE, DELETE and BATCH".to_owned())),
    }
}

/// The timestamp and time of a write: a batch may have its own timestamp.
fn batch_moment(statement: &Plan, moment: Moment, bindings: &Bindings<'_>) -> Result<Moment> {
    match statement {
        Plan::Batch(plan) => plan.moment(moment, bindings),
        _ => Ok(moment),
    }
}

/// Counts rows and discards them.
#[derive(Default)]
struct Discard {
    rows: u64,
    bytes: u64,
    page_bytes: usize,
}

impl RowsOut for Discard {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        // Counts a value with its length as in an answer, so that pages end at the same rows.
        let length = value.map_or(0, <[u8]>::len);
        self.bytes += length as u64;
        self.page_bytes += 4 + length;
    }

    fn end_row(&mut self) {
        self.rows += 1;
    }

    fn bytes(&self) -> usize {
        self.page_bytes
    }

    fn clear(&mut self) {}
}
