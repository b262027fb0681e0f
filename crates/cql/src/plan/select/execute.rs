//! Runs a SELECT: binds its values, makes the `ReadCommand`, and connects the read to the sink that writes the answer.
//!
//! The page size of the request (`page_rows`) becomes the limit of the read and of its groups here. The order of checks
//! and errors is that of `SelectStatement.execute`.

use super::fold::Folding;
use super::group::{GroupLimits, Grouping};
use super::paging::{PageEnd, Remaining};
use super::prepare::SelectPlan;
use super::row::Computing;
use super::sink::{PAGE_BYTES, Partition, SelectSink, Target, check_length};
use super::sort::SortBuffer;
use crate::analysis::restrictions::{PartitionSelection, RowSelection};
use crate::analysis::selection::{GroupBy, Source, TermUse};
use crate::analysis::{Bound, Term};
use crate::answer::{Answer, Outcome, RowsOut};
use crate::budget::owned;
use crate::error::{CqlError, Result};
use crate::guardrails::Reading;
use crate::plan::Execution;
use crate::plan::paging_state::{PagingState, mark_at};
use crate::request::Request;
use crate::super_family;
use crate::virtual_table::{self, VirtualContext, VirtualRead, VirtualRows};
use helenus_engine::read::{Partitions, ReadCommand, ReadEnd, Resume, Stage, TombstoneLimit};
use helenus_engine::read_indexed;
use helenus_engine::{Error as EngineError, ReadRequest, Ticket, is_system_keyspace};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::index::IndexSearch;
use helenus_model::token::Token;
use parking_lot::Mutex;
use std::sync::Arc;

/// The characters of a statement that a warning shows.
const QUERY_CHARS_MAX: usize = 512;
/// The number of rows that Cassandra reads at once for aggregates and groups (`SelectStatement.DEFAULT_PAGE_SIZE`).
const AGGREGATE_PAGE_ROWS: u64 = 10_000;

impl SelectPlan {
    /// Runs the statement. Rows go to `out`.
    ///
    /// # Errors
    /// Invalid values, a failed read, `WouldBlock`.
    pub(crate) fn execute(&self, execution: &Execution<'_>, out: &mut dyn RowsOut) -> Result<Answer> {
        let (request, bindings) = (execution.request, &execution.bindings);
        let began_ns = execution.began_ns();
        let limit = self.bound_limit(self.limit.as_ref(), execution)?;
        let per_partition = self.bound_limit(self.per_partition_limit.as_ref(), execution)?;
        let mut warnings = match &self.nearest {
            Some(nearest) => {
                nearest.check(request, self.selection.combines_rows(), (limit, per_partition))?
            }
            None => Vec::new(),
        };
        let terms = self.bound_terms(execution)?;
        if let Some(refusal) = self.selection.group_by.as_ref().and_then(|by| by.refusal.as_ref()) {
            return Err(CqlError::Invalid(refusal.clone()));
        }
        let filter = self.restrictions.filter(bindings)?;
        let partitions = self.restrictions.partitions(bindings)?;
        if let PartitionSelection::Read(Partitions::Keys(keys)) = &partitions
            && keys.len() > 1
            && request.is_serial()
        {
            return Err(CqlError::Invalid(
                "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time"
                    .to_owned(),
            ));
        }
        let rows = match partitions {
            PartitionSelection::Nothing => RowSelection::nothing(),
            PartitionSelection::Read(_) => self.restrictions.rows(bindings)?,
        };
        let reads_any = !rows.is_empty || self.reads_only_statics(&partitions, &rows);
        if reads_any {
            partitions.check_keys()?;
        }
        let page_rows = request.page_size.filter(|size| *size > 0).map(u64::from);
        warnings.extend(self.guarded(execution, (&partitions, &rows), limit)?);
        // A result known to be empty is not paged, unless rows are grouped or aggregated (`SelectStatement.execute`).
        let is_paged = page_rows.is_some() && (self.selection.combines_rows() || reads_any);
        if is_paged && self.sort.is_some() {
            return Err(CqlError::Invalid("Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove the ORDER BY or the IN and sort client side, or disable paging for this query".to_owned()));
        }
        out.columns(&self.selection.result);
        let partitions = match partitions {
            PartitionSelection::Read(partitions) if !rows.is_empty => Some(partitions),
            _ => None,
        };
        let obeys_states = self.obeys_states(page_rows, limit);
        let (partitions, rest) = self.rest(execution, (partitions, obeys_states), (limit, per_partition))?;
        let limits = GroupLimits {
            rest: &rest,
            // A sorted result is cut at the limit afterwards.
            shown: if self.sort.is_some() { u64::MAX } else { limit },
            page: page_rows.unwrap_or(u64::MAX),
            page_bytes: page_rows.map_or(usize::MAX, |_| PAGE_BYTES),
        };
        let target = match &self.nearest {
            Some(nearest) => Target::Nearest(nearest.bind(limit, bindings)?),
            None => self.target(limits),
        };
        let is_direct = matches!(target, Target::Answer) && filter.keeps_all_rows();
        let mut sink = SelectSink {
            selection: &self.selection,
            direct: self.direct.as_ref().filter(|_| is_direct),
            filter,
            computing: Computing { terms: &terms, calls: bindings.calls, folded: &[], first: &[] },
            target,
            out,
            key_columns: self.table.partition_key.len(),
            now_s: execution.now_s(),
            shows_statics_alone: self.restrictions.shows_statics_alone(),
            partition: Partition::default(),
            bytes_max: (!is_paged).then_some(execution.answer_bytes_max),
            memory: execution.request.identity.answer_memory(),
            failure: None,
            scratch: Vec::new(),
            passed: (0, 0),
            ticket: None,
            tombstone_limit: self.tombstone_limit(execution, page_rows),
        };
        let mut end = ReadEnd::Complete;
        let mut read = None;
        if let Some(partitions) = partitions {
            let command = self.command(partitions, rows.filter, (limit, per_partition), sink.now_s);
            let command = self.within(&rest, page_rows, command);
            let searches = self.restrictions.index_searches(bindings)?;
            execution.spent(Stage::Plan, began_ns);
            end = self.read(&command, &searches, execution, &mut sink)?;
            read = Some(command.partitions);
        }
        warnings.extend(self.tombstone_warning(&sink, execution.tombstones_warn));
        let began_ns = execution.began_ns();
        let ticket = sink.ticket.take();
        let mut memory = std::mem::take(&mut sink.memory);
        let bytes_max = sink.bytes_max;
        let end = self.finish(sink, end, limit)?;
        // Rows that were kept until the last one are in the answer now.
        memory.grow_to(out.bytes())?;
        check_length(out.bytes(), bytes_max)?;
        execution.spent(Stage::Sink, began_ns);
        let state = end.zip(read).and_then(|(end, partitions)| rest.state(end, &partitions));
        let paging_state = state.map(|state| PagingState { is_cut: !obeys_states, ..state }.encode());
        Ok(self.answer(paging_state, ticket, warnings))
    }

    /// Whether Cassandra would page, and so obey a paging state (`SelectStatement.execute`).
    fn obeys_states(&self, page_rows: Option<u64>, limit: u64) -> bool {
        let is_paged = page_rows.is_some_and(|rows| self.sort.is_some() || limit > rows);
        self.selection.combines_rows() || is_paged && self.nearest.is_none()
    }

    /// What to read: everything, or what the request's paging state leaves.
    fn rest(
        &self,
        execution: &Execution<'_>,
        (partitions, obeys_states): (Option<Partitions>, bool),
        (limit, per_partition): (u64, u64),
    ) -> Result<(Option<Partitions>, Remaining)> {
        let per_partition = if self.distinct { 1 } else { per_partition };
        let state = execution.request.paging_state.map(PagingState::decode).transpose()?;
        match (partitions, state.filter(|state| obeys_states || state.is_cut)) {
            (Some(partitions), Some(state)) => {
                let is_virtual = self.is_virtual(execution);
                Remaining::behind(state, (partitions, is_virtual), &self.table, per_partition)
            }
            (partitions, _) => {
                let limit = if self.reads_whole() { u64::MAX } else { limit };
                let rest = Remaining::whole(partitions.as_ref(), (limit, per_partition));
                Ok((partitions, rest))
            }
        }
    }

    /// Restricts a command to one page. Groups are counted by the sink instead.
    fn within(&self, rest: &Remaining, page_rows: Option<u64>, command: ReadCommand) -> ReadCommand {
        let (limits, resume) = rest.limits(&command.partitions);
        if self.groups().is_none() {
            let page_rows = page_rows.filter(|_| !self.reads_whole());
            return ReadCommand { limits, resume, page_rows, ..command };
        }
        let Limits { rows: rows_left, per_partition: rows_left_in_partition } = command.limits;
        let resume = resume.map(|at| Resume { rows_left, rows_left_in_partition, ..at });
        ReadCommand { resume, ..command }
    }

    /// Whether partitions are read although no row of them is named, for their static columns. Cassandra reads these if
    /// static columns are selected, or if only key columns are (`makeClusteringIndexFilter`,
    /// `ColumnFilter.Builder.build`).
    fn reads_only_statics(&self, partitions: &PartitionSelection, rows: &RowSelection) -> bool {
        matches!(partitions, PartitionSelection::Read(_))
            && matches!(*rows.filter, ClusteringFilter::Names(_))
            && !self.table.statics.is_empty()
            && (self.selection.uses_statics() || self.selection.used.iter().all(Source::is_of_key))
    }

    /// Checks the guardrails, if there are any.
    fn guarded(
        &self,
        execution: &Execution<'_>,
        (partitions, rows): (&PartitionSelection, &RowSelection),
        limit: u64,
    ) -> Result<Vec<String>> {
        let guardrails = execution.guardrails.filter(|_| !is_system_keyspace(&self.table.keyspace));
        let Some(guardrails) = guardrails else { return Ok(Vec::new()) };
        let keys = match partitions {
            PartitionSelection::Read(Partitions::Keys(keys)) if self.restrictions.key_has_in() => {
                Some(keys.len() as u64)
            }
            _ => None,
        };
        let names = match &*rows.filter {
            ClusteringFilter::Names(names) if self.restrictions.clustering_has_in() => {
                Some(names.len() as u64)
            }
            _ => None,
        };
        let paged = execution.request.page_size.filter(|size| *size > 0);
        let is_cut =
            |size: &u32| self.selection.combines_rows() || self.nearest.is_none() && limit > u64::from(*size);
        guardrails.read(&Reading {
            table: &self.table.name,
            partitions: keys,
            rows: names,
            index_without_partition: self.restrictions.uses_index() && self.restrictions.is_key_range(),
            page_size: paged.filter(is_cut),
        })
    }

    /// The warning for the client if a read passed more than `most` tombstones (`ReadCommand.withMetricsRecording`).
    fn tombstone_warning(&self, sink: &SelectSink<'_>, most: u64) -> Option<String> {
        let (rows, tombstones) = sink.passed;
        if tombstones <= most || is_system_keyspace(&self.table.keyspace) {
            return None;
        }
        let token = Token::of_key(&sink.partition.key).0;
        let shown: String = self.text.chars().take(QUERY_CHARS_MAX).collect();
        Some(format!(
            "Read {rows} live rows and {tombstones} tombstone cells for query {shown}; token {token} (see tombstone_warn_threshold)"
        ))
    }

    /// The number of tombstones that a read may pass. Reads that Cassandra pages internally are counted page by page
    /// (`AggregationQueryPager`).
    fn tombstone_limit(&self, execution: &Execution<'_>, page_rows: Option<u64>) -> Option<TombstoneLimit> {
        let rows = match self.selection.combines_rows() {
            true => page_rows.unwrap_or(AGGREGATE_PAGE_ROWS),
            false => u64::MAX,
        };
        let counts = !is_system_keyspace(&self.table.keyspace);
        counts.then_some(TombstoneLimit { count: execution.tombstones_fail, rows })
    }

    /// Where the rows of an execution go.
    fn target<'a>(&'a self, limits: GroupLimits<'a>) -> Target<'a> {
        if let Some(by) = self.groups() {
            let mut grouping = Grouping::new(by, &self.selection, (limits, self.table.clustering.len()));
            grouping.kept = self.sort.as_ref().map(|sort| (SortBuffer::default(), sort));
            return Target::Grouping(grouping);
        }
        match &self.sort {
            _ if self.selection.is_aggregate() => Target::Folding(Folding::new(&self.selection)),
            Some(sort) => Target::Kept(SortBuffer::default(), sort),
            None => Target::Answer,
        }
    }

    /// Writes what had to wait for the last row. Returns where the page ends; with groups, that is after the last
    /// group.
    fn finish(&self, sink: SelectSink<'_>, end: ReadEnd, limit: u64) -> Result<Option<PageEnd>> {
        match sink.target {
            Target::Answer => {}
            Target::Nearest(nearby) => nearby.write(sink.out)?,
            Target::Folding(mut folding) => folding.write(&self.selection, &sink.computing, sink.out)?,
            Target::Kept(kept, sort) => kept.write(sort, limit, (sink.computing.calls.work, sink.out))?,
            Target::Grouping(mut grouping) => {
                // If the page ended before a group, the group before it is complete.
                grouping.finish(&self.selection, &sink.computing, sink.out)?;
                let page_end = grouping.page_end(&*sink.out);
                if let Some((kept, sort)) = grouping.kept {
                    kept.write(sort, limit, (sink.computing.calls.work, sink.out))?;
                }
                return Ok(page_end);
            }
        }
        Ok(match end {
            ReadEnd::Complete => None,
            ReadEnd::Page(at) => Some(PageEnd {
                row: at.clustering.and_then(|position| mark_at(&position, &self.table)),
                key: at.key,
                rows_left: at.rows_left,
                left_in_partition: at.rows_left_in_partition,
                has_given: at.has_given,
            }),
        })
    }

    /// How rows are grouped. With DISTINCT and no aggregates there is one row in each partition, so no grouping is
    /// needed.
    fn groups(&self) -> Option<&GroupBy> {
        self.selection.group_by.as_ref().filter(|_| !self.distinct || !self.selection.aggregates.is_empty())
    }

    /// Aggregates, sorting and ANN read everything, whatever the page and the limit.
    fn reads_whole(&self) -> bool {
        self.selection.is_aggregate() || self.sort.is_some() || self.nearest.is_some()
    }

    /// The engine's command for the whole read, without paging.
    pub(super) fn command(
        &self,
        partitions: Partitions,
        filter: Arc<ClusteringFilter>,
        (limit, per_partition): (u64, u64),
        now_s: i64,
    ) -> ReadCommand {
        ReadCommand {
            table: self.table.clone(),
            partitions,
            filter: if self.distinct { all_rows() } else { filter },
            reversed: self.reversed,
            statics: self.reads_statics,
            columns: self.cells.clone(),
            limits: Limits {
                rows: if self.reads_whole() || self.groups().is_some() { u64::MAX } else { limit },
                per_partition: match self.groups() {
                    _ if self.distinct => 1,
                    Some(_) => u64::MAX,
                    None => per_partition,
                },
            },
            now_s,
            resume: None,
            page_rows: None,
        }
    }

    fn answer(
        &self,
        paging_state: Option<Vec<u8>>,
        ticket: Option<Ticket>,
        mut warnings: Vec<String>,
    ) -> Answer {
        if self.selection.combines_rows() {
            if !self.restrictions.has_partition_key() {
                warnings.push("Aggregation query used without partition key".to_owned());
            } else if self.restrictions.key_has_in() {
                warnings
                    .push("Aggregation query used on multiple partition keys (IN restriction)".to_owned());
            }
        }
        let columns = self.selection.result.clone();
        Answer { outcome: Outcome::Rows { columns, paging_state, ticket }, warnings }
    }

    fn read(
        &self,
        command: &ReadCommand,
        searches: &[IndexSearch],
        execution: &Execution<'_>,
        sink: &mut SelectSink<'_>,
    ) -> Result<ReadEnd> {
        let request = execution.request;
        let how = ReadRequest {
            may_block: request.may_block,
            deadline_ns: request.deadline_ns,
            cancelled: request.cancelled,
            bypasses_cache: self.bypasses_cache,
        };
        let of_virtual = VirtualRead { command, may_block: request.may_block };
        let read = match self.virtual_rows(execution, &of_virtual) {
            Some(rows) => rows.and_then(|rows| virtual_table::read(command, &rows, sink)),
            None => {
                let mut probe = request.probe.map(Mutex::lock);
                let database = execution.database;
                let probe = probe.as_deref_mut();
                if !searches.is_empty() {
                    return read_indexed(database, command, searches, how, sink, probe)
                        .map_err(|error| read_error(error, sink.failure.take(), request));
                }
                super_family::read(database, command, how, sink, probe)
            }
        };
        read.map_err(|error| read_error(error, sink.failure.take(), request))
    }

    pub(super) fn is_virtual(&self, execution: &Execution<'_>) -> bool {
        is_system_keyspace(&self.table.keyspace) && execution.virtuals.contains(self.table.id)
    }

    fn virtual_rows(
        &self,
        execution: &Execution<'_>,
        read: &VirtualRead<'_>,
    ) -> Option<helenus_engine::Result<VirtualRows>> {
        if !self.is_virtual(execution) {
            return None;
        }
        let schema = execution.schema();
        let cx = VirtualContext { schema: &schema, database: execution.database };
        execution.virtuals.rows(self.table.id, &cx, read)
    }

    /// The value of a limit; `u64::MAX` if it is absent or unset.
    pub(super) fn bound_limit(&self, limit: Option<&Term>, execution: &Execution<'_>) -> Result<u64> {
        let Some(term) = limit else { return Ok(u64::MAX) };
        match term.bind(&execution.bindings)? {
            Bound::Unset => Ok(u64::MAX),
            Bound::Null => Err(CqlError::Invalid("Invalid null value of limit".to_owned())),
            Bound::Bytes(bytes) => {
                let Ok(value) = <[u8; 4]>::try_from(&*bytes) else {
                    return Err(CqlError::Invalid("Invalid limit value".to_owned()));
                };
                match u64::try_from(i32::from_be_bytes(value)) {
                    Ok(limit) if limit > 0 => Ok(limit),
                    _ => Err(CqlError::Invalid("LIMIT must be strictly positive".to_owned())),
                }
            }
        }
    }

    fn bound_terms(&self, execution: &Execution<'_>) -> Result<Vec<Option<Vec<u8>>>> {
        let refused = |what: &str, of: &str, name: &str| {
            Err(CqlError::Invalid(format!("Invalid {what} value for {of} selection on {name}")))
        };
        let bind = |(term, used): &(Term, TermUse)| match (term.bind(&execution.bindings)?, used) {
            (Bound::Unset, TermUse::Value) => {
                Err(CqlError::Invalid("Invalid unset value for bind variable in selection".to_owned()))
            }
            (Bound::Null, TermUse::Element(name)) => refused("null", "element", name),
            (Bound::Unset, TermUse::Element(name)) => refused("unset", "element", name),
            (Bound::Null, TermUse::SliceEnd(name)) => refused("null", "slice", name),
            (Bound::Bytes(bytes), _) => owned(bytes).map(Some),
            (Bound::Null | Bound::Unset, _) => Ok(None),
        };
        self.selection.terms.iter().map(bind).collect()
    }
}

/// The error of a read; `failure` is the error for which the sink ended it.
fn read_error(error: EngineError, failure: Option<CqlError>, request: &Request<'_>) -> CqlError {
    let consistency = request.consistency;
    match (failure, error) {
        (Some(failure), _) => failure,
        (None, EngineError::TimedOut) => CqlError::ReadTimeout { consistency },
        (None, EngineError::TooManyTombstones) => CqlError::TooManyTombstones { consistency },
        (
            None,
            failed @ (EngineError::Table(_)
            | EngineError::Unreadable(_)
            | EngineError::Io { .. }
            | EngineError::IndexNotAvailable { .. }),
        ) => CqlError::ReadFailure { consistency, reason: failed.to_string() },
        (None, error) => CqlError::from(error),
    }
}

fn all_rows() -> Arc<ClusteringFilter> {
    Arc::new(ClusteringFilter::Slices(vec![Slice::all()]))
}
