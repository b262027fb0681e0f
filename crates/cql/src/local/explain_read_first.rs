//! EXPLAIN of writes that read first. Their mutation is not known before the read, so EXPLAIN shows what they read, and
//! EXPLAIN ANALYZE runs them.

use super::backend::LocalBackend;
use crate::backend::{BatchKind, Outcome, Request, ResultColumns, RowsOut};
use crate::error::Result;
use crate::plan::conditional::CasRequest;
use crate::plan::explain::{
    RunStats, Step, count_steps, counter_step, prior_steps, verdict_step, write_steps,
};
use crate::plan::modify::{Collector, Moment, ReadSet, Statement};
use helenus_engine::read::Probe;
use parking_lot::Mutex;
use std::sync::Arc;

/// A write to be explained.
#[derive(Clone, Copy)]
pub(super) struct ExplainedWrite<'a> {
    /// The name of its kind, as EXPLAIN shows it.
    pub(super) word: &'static str,
    /// The kind of a batch.
    pub(super) kind: Option<BatchKind>,
    /// Whether it is run (EXPLAIN ANALYZE).
    pub(super) analyzed: bool,
    pub(super) statements: &'a [Statement<'a>],
}

impl LocalBackend {
    /// Explains such a write, and runs it if it is analyzed.
    pub(super) fn explain_first(
        &self,
        explained: ExplainedWrite<'_>,
        moment: Moment,
        request: &Request<'_>,
    ) -> Result<(Vec<Step>, Vec<String>)> {
        let ExplainedWrite { word, kind, analyzed, statements } = explained;
        let is_conditional = statements.iter().any(|statement| !statement.plan.conditions.is_none());
        let mut wanted = ReadSet::default();
        if is_conditional {
            CasRequest::new(statements, kind.is_some())?.want(&mut wanted);
        } else {
            for statement in statements {
                statement.plan.add_reads(&statement.bindings, &mut wanted)?;
            }
        }
        let mut steps = match wanted.is_empty() {
            false => prior_steps(word, &wanted, is_conditional),
            true => {
                let mut collector = Collector::default();
                for statement in statements {
                    statement.plan.apply(&statement.bindings, moment, None, &mut collector)?;
                }
                let (mut steps, _) = write_steps(word, &collector.finish(), "reads what it adds to");
                steps.push(counter_step());
                steps
            }
        };
        if !analyzed {
            return Ok((steps, Vec::new()));
        }
        let clock = &self.database().host().clock;
        let began_ns = clock.monotonic_ns();
        let probe = Mutex::new(Probe::default());
        let watched = Request { probe: Some(&probe), ..request.clone() };
        let mut applied = Applied::default();
        let answer = match is_conditional {
            true => self.run_conditional(statements, kind, &watched, &mut applied)?,
            false => self.run_batch(statements, kind, moment, &watched)?,
        };
        let written_ns = clock.monotonic_ns();
        if let Outcome::Done(ticket) | Outcome::Rows { ticket: Some(ticket), .. } = answer.outcome {
            ticket.wait()?;
        }
        let ended_ns = clock.monotonic_ns();
        steps.extend(is_conditional.then(|| verdict_step(applied.first == Some(true))));
        let ran = RunStats {
            total_ns: ended_ns - began_ns,
            acknowledge_ns: Some(ended_ns - written_ns),
            rows: applied.rows,
            bytes: 0,
        };
        steps.extend(count_steps(&probe.into_inner(), &ran));
        Ok((steps, answer.warnings))
    }
}

/// The first value of a conditional statement's answer: whether it was applied.
#[derive(Default)]
struct Applied {
    first: Option<bool>,
    rows: u64,
}

impl RowsOut for Applied {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}

    fn cell(&mut self, value: Option<&[u8]>) {
        if self.first.is_none() {
            self.first = Some(value == Some(&[1][..]));
        }
    }

    fn end_row(&mut self) {
        self.rows += 1;
    }

    fn bytes(&self) -> usize {
        0
    }

    fn clear(&mut self) {}
}
