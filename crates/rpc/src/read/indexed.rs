//! Reads of rows by the values of their columns: get_indexed_slices, and get_range_slices with a row filter.
//!
//! The rows are found first, through an index if one of the expressions is an equality on an indexed column, and are
//! then read like any others. A row without the column of an expression does not match.

use super::ranges::{RowFilter, RowRange, from_key};
use crate::call_options::CallOptions;
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, invalid};
use crate::family::Family;
use crate::predicate::Wanted;
use crate::storage::IndexEquality;
use helenus_cql::CqlError;
use helenus_cql::budget::RequestBudget;
use helenus_engine::read::{Partitions, ReadCommand, RowOutcome, RowSink};
use helenus_engine::{Error as EngineError, Result as EngineResult};
use helenus_model::filter::Limits;
use helenus_model::index::{IndexLayout, IndexLookup, IndexSearch};
use helenus_model::row::RowView;
use helenus_wire::thrift::{Field, IndexExpression, IndexOperator, Reader, args};
use std::cmp::Ordering;
use std::sync::Arc;

/// Maximum bytes of an expression's value.
const EXPRESSION_BYTES_MAX: usize = 0xFFFF;

impl Rpc {
    pub(crate) fn get_indexed_slices(
        &self,
        reader: &mut Reader<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let asked = args::GetIndexedSlices::read(reader)?;
        let family = self.family_that(work.session, asked.column_parent.column_family, false)?;
        let wanted =
            self.wanted(&family, &asked.column_parent, &asked.column_predicate, asked.consistency_level)?;
        let clause = &asked.index_clause;
        if clause.expressions.is_empty() {
            return invalid("index clause list may not be empty");
        }
        check_expressions(&family, &clause.expressions)?;
        if equality_of(&family, &clause.expressions).is_none() {
            return invalid("No indexed columns present in index clause with operator EQ");
        }
        let spans = vec![from_key(clause.start_key)];
        let filter = RowFilter { expressions: &clause.expressions, count: clause.count };
        self.rows_of(&family, spans, filter, &wanted, work)
    }

    /// Writes the rows of a token range that match all expressions. Returns their number.
    pub(super) fn filtered(
        &self,
        family: &Family,
        asked: RowRange<'_>,
        wanted: &Wanted,
        (manner, out): (CallOptions<'_>, &mut Vec<u8>),
    ) -> Result<u64> {
        let expressions = asked.expressions;
        check_expressions(family, expressions)?;
        let local = self.storage.local();
        let budget = local.map(|local| RequestBudget::of_read(manner.read(), local.database()));
        let search = search_of(family, expressions, budget.as_ref())?;
        let names: Vec<&[u8]> = expressions.iter().map(|expression| expression.column_name).collect();
        let looked_at = Wanted::names(family, None, &names)?;
        let mut keys = Vec::new();
        let command = ReadCommand {
            partitions: Partitions::Range(asked.range),
            limits: Limits { rows: u64::try_from(asked.count).unwrap_or(0), per_partition: u64::MAX },
            ..self.command(family, Vec::new(), &looked_at)
        };
        let mut sink = Matching {
            family,
            expressions,
            now_s: command.now_s,
            held: vec![false; expressions.len()],
            budget,
            late: None,
            key: Vec::new(),
            keys: &mut keys,
        };
        let read = match &search {
            Some(by) => self.storage.read_indexed(&command, by, &mut sink, manner),
            None => self.storage.read(&command, &mut sink, manner),
        };
        if let Some(late) = sink.late {
            return Err(late.into());
        }
        read?;
        self.rows_by_key(family, &keys, wanted, (manner, out))?;
        Ok(keys.len() as u64)
    }
}

fn check_expressions(family: &Family, expressions: &[IndexExpression<'_>]) -> Result<()> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for IndexExpression { column_name, value, .. } in expressions {
        let refused = |what: &str, error: &dyn std::fmt::Display| {
            invalid(format!("[{}]=[{}] failed {what} validation ({error})", hex(column_name), hex(value)))
        };
        if let Err(error) = family.comparator_within(None).validate(column_name) {
            return refused("name", &error);
        }
        if value.len() > EXPRESSION_BYTES_MAX {
            return invalid("Index expression values may not be larger than 64K");
        }
        if let Err(error) = family.type_of(column_name).validate(value) {
            return refused("value", &error);
        }
    }
    Ok(())
}

/// The first value that is searched for equality in an indexed column, with the index.
fn equality_of<'e>(
    family: &Family,
    expressions: &[IndexExpression<'e>],
) -> Option<(Arc<IndexLayout>, &'e [u8])> {
    let mut equalities = expressions.iter().filter(|expression| expression.op == IndexOperator::Eq);
    equalities.find_map(|expression| {
        let declared = family.declared(expression.column_name)?;
        let shape = family.table.indexes.values().find_map(|index| {
            let column = index.column(&family.table).filter(|column| column.id == declared.column);
            column.and_then(|_| IndexLayout::new(&family.table, index))
        })?;
        Some((Arc::new(shape), expression.value))
    })
}

/// The index search for the first expression that an index supports.
fn search_of<'e>(
    family: &Family,
    expressions: &[IndexExpression<'e>],
    budget: Option<&RequestBudget<'_>>,
) -> Result<Option<IndexEquality<'e>>> {
    let Some((shape, value)) = equality_of(family, expressions) else { return Ok(None) };
    if let Some(budget) = budget {
        budget.term(&shape.column.ty, value)?;
    }
    let lookup = IndexLookup::Equal(shape.term(None, value)?);
    Ok(Some(IndexEquality { search: IndexSearch { shape, lookup }, value }))
}

/// A row sink that collects the keys of rows that match all expressions.
struct Matching<'a> {
    family: &'a Family,
    expressions: &'a [IndexExpression<'a>],
    now_s: i64,
    /// Whether each expression holds for the current row.
    held: Vec<bool>,
    /// Counts the comparisons; `None` where the values stay elsewhere.
    budget: Option<RequestBudget<'a>>,
    /// The error for which the comparisons ended.
    late: Option<CqlError>,
    key: Vec<u8>,
    keys: &'a mut Vec<Vec<u8>>,
}

impl Matching<'_> {
    fn look(&mut self, is_meant: impl Fn(&IndexExpression<'_>) -> bool, value: &[u8]) -> EngineResult<()> {
        for (expression, held) in self.expressions.iter().zip(&mut self.held) {
            if !is_meant(expression) {
                continue;
            }
            let ty = self.family.type_of(expression.column_name);
            let order = match &self.budget {
                None => ty.compare(value, expression.value),
                Some(budget) => match budget.order(ty, value, expression.value) {
                    Ok(order) => order,
                    Err(late) => {
                        self.late = Some(late);
                        return Err(EngineError::Cancelled);
                    }
                },
            };
            *held |= match expression.op {
                IndexOperator::Eq => order == Ordering::Equal,
                IndexOperator::Gte => order != Ordering::Less,
                IndexOperator::Gt => order == Ordering::Greater,
                IndexOperator::Lte => order != Ordering::Greater,
                IndexOperator::Lt => order == Ordering::Less,
            };
        }
        Ok(())
    }
}

impl RowSink for Matching<'_> {
    fn partition(&mut self, key: &[u8], static_row: Option<RowView<'_>>) -> EngineResult<()> {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.held.fill(false);
        let Some(row) = static_row else { return Ok(()) };
        let family = self.family;
        for known in &family.declared {
            if let Some(cell) = row.cells_of(known.column).first().filter(|cell| cell.is_live(self.now_s)) {
                self.look(|expression| expression.column_name == known.name, row.value(cell))?;
            }
        }
        Ok(())
    }

    fn row(&mut self, row: RowView<'_>) -> EngineResult<RowOutcome> {
        let cell = row.cells_of(self.family.value).first().filter(|cell| cell.is_live(self.now_s));
        if let Some(cell) = cell {
            let mut name = Vec::new();
            super::column::put_row_name(self.family, row, &mut name);
            self.look(|expression| name.get(4..) == Some(expression.column_name), row.value(cell))?;
        }
        Ok(RowOutcome::Skipped)
    }

    fn partition_end(&mut self, _rows: u64) -> EngineResult<RowOutcome> {
        if !self.held.iter().all(|held| *held) {
            return Ok(RowOutcome::Skipped);
        }
        self.keys.push(self.key.clone());
        Ok(RowOutcome::Counted)
    }
}
