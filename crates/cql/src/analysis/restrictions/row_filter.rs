//! Conditions that bounds cannot express, tested row by row (`RowFilter`).

use super::index::{Indexes, Operator};
use super::restriction::{Operand, Restriction, Test, invalid};
use super::statement::{Restrictions, is_filtered};
use crate::analysis::{Bindings, Bound, Term};
use crate::budget::{RequestBudget, owned, room_for, sorted_distinct};
use crate::cost::SHORT_VALUES_PER_STEP;
use crate::error::Result;
use helenus_model::index::Analyzer;
use helenus_model::schema::{Column, ColumnKind};
use helenus_model::types::{CqlType, Elements};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Access to the column values of the current row, for a filter.
pub(crate) trait ColumnAccess {
    /// Whether the column has a value that passes the test; the value of a counter is its total.
    fn compare(&self, column: &Column, test: &mut dyn FnMut(&[u8]) -> bool) -> bool;
    /// Calls `each` with path and value of every live cell of a multi-cell column until it returns true; returns
    /// whether it did.
    fn any_cell(&self, column: &Column, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> bool;
}

/// The filter of one execution.
#[derive(Debug, Default)]
pub(crate) struct BoundFilter {
    /// Conditions on partition key and static columns, which decide about whole partitions.
    partition: Vec<Expression>,
    /// Conditions on clustering and regular columns.
    row: Vec<Expression>,
}

#[derive(Debug)]
struct Expression {
    column: Column,
    /// Its values are transformed, if an index transforms them.
    test: BoundTest,
    analyzed: Option<Analyzed>,
}

/// How an index transforms values before comparison.
#[derive(Debug)]
struct Analyzed {
    analyzer: Analyzer,
    /// The test of values as they are, which addresses must pass too: an index finds them in their IPv6 form.
    of_addresses: Option<BoundTest>,
}

#[derive(Clone, Debug)]
enum BoundTest {
    Equal(Vec<u8>),
    /// One of these values, in their order.
    In(Vec<Vec<u8>>),
    /// Greater or less than the value; the flag tells whether equal values pass.
    Greater(Vec<u8>, bool),
    Less(Vec<u8>, bool),
    Contains(Vec<u8>),
    ContainsKey(Vec<u8>),
    Entry(Vec<u8>, Vec<u8>),
}

impl BoundFilter {
    /// Whether there are no conditions on rows.
    pub(crate) fn keeps_all_rows(&self) -> bool {
        self.row.is_empty()
    }

    /// Whether there are no conditions on partitions.
    pub(crate) fn keeps_all_partitions(&self) -> bool {
        self.partition.is_empty()
    }

    /// Whether the partition passes; `found` gives its key and static columns.
    ///
    /// # Errors
    /// The read has taken too long.
    pub(crate) fn keeps_partition(&self, found: &dyn ColumnAccess, work: &RequestBudget<'_>) -> Result<bool> {
        all_hold(&self.partition, found, work)
    }

    /// Whether the row passes.
    ///
    /// # Errors
    /// As `keeps_partition`.
    pub(crate) fn keeps_row(&self, found: &dyn ColumnAccess, work: &RequestBudget<'_>) -> Result<bool> {
        all_hold(&self.row, found, work)
    }

    fn add(&mut self, column: &Column, test: BoundTest) {
        let expressions = match column.kind {
            ColumnKind::PartitionKey | ColumnKind::Static => &mut self.partition,
            ColumnKind::Clustering | ColumnKind::Regular => &mut self.row,
        };
        expressions.push(Expression { column: column.clone(), test, analyzed: None });
    }

    /// Makes values of a column be compared as its indexes compare them.
    fn analyze(&mut self, column: &Column, indexes: &Indexes, work: &RequestBudget<'_>) -> Result<()> {
        let all = self.partition.iter_mut().chain(&mut self.row);
        for expression in all.filter(|expression| expression.column.name == column.name) {
            let Some(analyzer) = indexes.analyzer(column, expression.test.operator()) else { continue };
            let of_addresses = analyzer.is_of_addresses().then(|| expression.test.clone());
            for value in expression.test.values_mut() {
                work.analysis_of_searched(value)?;
                if let Cow::Owned(transformed) = analyzer.apply(value) {
                    *value = transformed;
                }
            }
            expression.analyzed = Some(Analyzed { analyzer, of_addresses });
        }
        Ok(())
    }

    fn add_restriction(&mut self, restriction: &Restriction, bindings: &Bindings<'_>) -> Result<()> {
        let column = restriction.first();
        match &restriction.test {
            Test::Equal(operand) => {
                let values = operand.bind(bindings, ("Unsupported", column))?;
                for (index, column) in restriction.columns.iter().enumerate() {
                    let value = not_null(values.get(index).cloned().flatten(), column)?;
                    self.add(column, BoundTest::Equal(value));
                }
                Ok(())
            }
            Test::In(_) if restriction.columns.len() > 1 => {
                invalid("Multicolumn IN filters are not supported".to_owned())
            }
            Test::In(candidates) => {
                // Values after a null are ignored (`ListSerializer.anyMatch`).
                let bound = candidates.bind_filter(bindings, column)?;
                room_for(bound.len() * OWNED_BYTES)?;
                let mut values = Vec::with_capacity(bound.len());
                for value in bound {
                    let Some(value) = value else { break };
                    values.push(owned(value)?);
                }
                let work = bindings.calls.work;
                let values = sorted_distinct(values, |a, b| work.order(&column.ty, a, b), work)?;
                self.add(column, BoundTest::In(values));
                Ok(())
            }
            Test::Slice(..) if restriction.multi => {
                invalid("Multi-column slice restrictions cannot be used for filtering.".to_owned())
            }
            Test::Slice(start, end) => {
                let value = |operand: &Operand| {
                    not_null(operand.bind(bindings, ("Unsupported", column))?.pop().flatten(), column)
                };
                if let Some(start) = start {
                    self.add(column, BoundTest::Greater(value(&start.operand)?, start.inclusive));
                }
                if let Some(end) = end {
                    self.add(column, BoundTest::Less(value(&end.operand)?, end.inclusive));
                }
                Ok(())
            }
            Test::Contains { values, keys, entries } => {
                let bind_as = |term: &Term, what: &str| match term.bind(bindings)? {
                    Bound::Bytes(bytes) => owned(bytes),
                    Bound::Null => invalid(format!("Unsupported null {what} for column {}", column.name)),
                    Bound::Unset => invalid(format!("Unsupported unset {what} for column {}", column.name)),
                };
                let bind = |term: &Term| bind_as(term, "value");
                for term in values {
                    self.add(column, BoundTest::Contains(bind(term)?));
                }
                for term in keys {
                    self.add(column, BoundTest::ContainsKey(bind(term)?));
                }
                for (key, value) in entries {
                    let (key, value) = (bind_as(key, "map key")?, bind_as(value, "map value")?);
                    self.add(column, BoundTest::Entry(key, value));
                }
                Ok(())
            }
        }
    }
}

/// The bytes of a value of its own besides those it has: its place in a list, and the allocator's.
const OWNED_BYTES: usize = size_of::<Vec<u8>>() + 16;

fn not_null(value: super::restriction::Value<'_>, column: &Column) -> Result<Vec<u8>> {
    match value {
        Some(value) => owned(value),
        None => invalid(format!("Unsupported null value for column {}", column.name)),
    }
}

impl Restrictions {
    /// The filter for these bound values.
    ///
    /// # Errors
    /// Null or unset values, and tuples that bounds cannot express.
    pub(crate) fn filter(&self, bindings: &Bindings<'_>) -> Result<BoundFilter> {
        let mut filter = BoundFilter::default();
        if self.filters_partition_key() {
            for restriction in self.partition.iter() {
                filter.add_restriction(restriction, bindings)?;
            }
        }
        if self.filters_clustering() {
            let mut position = 0;
            for restriction in self.clustering.iter() {
                if is_filtered(restriction, &mut position) {
                    filter.add_restriction(restriction, bindings)?;
                }
            }
        }
        for restriction in self.other.iter() {
            filter.add_restriction(restriction, bindings)?;
            filter.analyze(restriction.first(), &self.indexes, bindings.calls.work)?;
        }
        Ok(filter)
    }
}

fn all_hold(expressions: &[Expression], found: &dyn ColumnAccess, work: &RequestBudget<'_>) -> Result<bool> {
    for expression in expressions {
        work.step()?;
        if !expression.holds(found, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Expression {
    fn holds(&self, found: &dyn ColumnAccess, work: &RequestBudget<'_>) -> Result<bool> {
        let ty = match &self.column.ty {
            CqlType::Counter => &CqlType::BigInt,
            ty => ty,
        };
        if ty.is_multi_cell() {
            return self.holds_of_cells(found, work);
        }
        // `ColumnAccess` takes a test that says only yes or no; the error of a test is kept beside it.
        let mut failure = Ok(());
        let holds = found.compare(&self.column, &mut |value| match self.holds_of(ty, value, work) {
            Ok(holds) => holds,
            Err(error) => {
                failure = Err(error);
                false
            }
        });
        failure.map(|()| holds)
    }

    fn holds_of(&self, ty: &CqlType, value: &[u8], work: &RequestBudget<'_>) -> Result<bool> {
        match (&self.analyzed, &self.test) {
            (Some(Analyzed { analyzer, of_addresses }), test) => {
                if let Some(test) = of_addresses
                    && !test.holds(ty, value, work)?
                {
                    return Ok(false);
                }
                test.holds(ty, &transformed(*analyzer, value, work)?, work)
            }
            (None, BoundTest::In(all)) => {
                let mut rest = &all[..];
                while !rest.is_empty() {
                    let (before, after) = rest.split_at(rest.len() / 2);
                    let Some((middle, after)) = after.split_first() else { break };
                    rest = match work.order(ty, value, middle)? {
                        Ordering::Equal => return Ok(true),
                        Ordering::Less => before,
                        Ordering::Greater => after,
                    };
                }
                Ok(false)
            }
            (None, test) => test.holds(ty, value, work),
        }
    }

    fn holds_of_cells(&self, found: &dyn ColumnAccess, work: &RequestBudget<'_>) -> Result<bool> {
        let (mut counted, mut cells) = (Ok(()), 0_usize);
        let mut is_equal = |ty: &CqlType, a: &[u8], b: &[u8]| -> Result<bool> {
            cells += 1;
            work.steps(usize::from(cells.is_multiple_of(SHORT_VALUES_PER_STEP)))?;
            work.comparison(ty, a, b)?;
            Ok(match &self.analyzed {
                Some(Analyzed { analyzer, .. }) => *transformed(*analyzer, a, work)? == *b,
                None => ty.compare(a, b).is_eq(),
            })
        };
        // `any_cell` takes a test that says only yes or no. An error ends the visit of the cells.
        let mut equal = |ty: &CqlType, a: &[u8], b: &[u8]| {
            if counted.is_ok() {
                match is_equal(ty, a, b) {
                    Ok(is_equal) => return is_equal,
                    Err(error) => counted = Err(error),
                }
            }
            true
        };
        let holds = found.any_cell(&self.column, &mut |path, cell| match (&self.test, &self.column.ty) {
            (BoundTest::Contains(with), CqlType::Set { element, .. }) => equal(element, path, with),
            (BoundTest::Contains(with), CqlType::List { element, .. }) => equal(element, cell, with),
            (BoundTest::Contains(with), CqlType::Map { value, .. }) => equal(value, cell, with),
            (BoundTest::ContainsKey(with), CqlType::Map { key, .. }) => equal(key, path, with),
            (BoundTest::Entry(with_key, with_value), CqlType::Map { key, value, .. }) => {
                equal(key, path, with_key) && equal(value, cell, with_value)
            }
            _ => false,
        });
        counted.map(|()| holds)
    }
}

impl BoundTest {
    /// The operator as an index sees it.
    fn operator(&self) -> Operator {
        match self {
            BoundTest::Equal(_) | BoundTest::Entry(..) => Operator::Equal,
            BoundTest::In(_) => Operator::In,
            BoundTest::Greater(..) | BoundTest::Less(..) => Operator::Range,
            BoundTest::Contains(_) => Operator::Contains,
            BoundTest::ContainsKey(_) => Operator::ContainsKey,
        }
    }

    /// The values that are searched.
    fn values_mut(&mut self) -> Vec<&mut Vec<u8>> {
        match self {
            BoundTest::In(all) => all.iter_mut().collect(),
            BoundTest::Entry(key, value) => vec![key, value],
            BoundTest::Equal(value)
            | BoundTest::Greater(value, _)
            | BoundTest::Less(value, _)
            | BoundTest::Contains(value)
            | BoundTest::ContainsKey(value) => vec![value],
        }
    }

    fn holds(&self, ty: &CqlType, value: &[u8], work: &RequestBudget<'_>) -> Result<bool> {
        let order = |with: &[u8]| work.order(ty, value, with);
        Ok(match self {
            BoundTest::Equal(with) => order(with)?.is_eq(),
            BoundTest::In(all) => {
                work.steps(all.len() / SHORT_VALUES_PER_STEP)?;
                for with in all {
                    if order(with)?.is_eq() {
                        return Ok(true);
                    }
                }
                false
            }
            BoundTest::Greater(with, true) => order(with)?.is_ge(),
            BoundTest::Greater(with, false) => order(with)?.is_gt(),
            BoundTest::Less(with, true) => order(with)?.is_le(),
            BoundTest::Less(with, false) => order(with)?.is_lt(),
            BoundTest::Contains(with) => frozen_contains(ty, (value, with), false, work)?,
            BoundTest::ContainsKey(with) => frozen_contains(ty, (value, with), true, work)?,
            // Conditions on entries of frozen maps are refused in the analysis.
            BoundTest::Entry(..) => false,
        })
    }
}

/// A value as an index compares it. Its work is counted, and its memory asked for.
fn transformed<'v>(analyzer: Analyzer, value: &'v [u8], work: &RequestBudget<'_>) -> Result<Cow<'v, [u8]>> {
    work.analysis(value)?;
    Ok(analyzer.apply(value))
}

/// Whether two values are equal as Java objects; decimals of different scales are not.
fn is_same(ty: &CqlType, a: &[u8], b: &[u8], work: &RequestBudget<'_>) -> Result<bool> {
    if has_decimals(ty) { Ok(a == b) } else { Ok(work.order(ty, a, b)?.is_eq()) }
}

fn has_decimals(ty: &CqlType) -> bool {
    match ty {
        CqlType::Decimal => true,
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            has_decimals(element)
        }
        CqlType::Map { key, value, .. } => has_decimals(key) || has_decimals(value),
        // Tuples are compared both by their bytes and by their types in any case.
        _ => false,
    }
}

fn frozen_contains(
    ty: &CqlType,
    (value, with): (&[u8], &[u8]),
    keys: bool,
    work: &RequestBudget<'_>,
) -> Result<bool> {
    work.value_steps(value.len())?;
    let any = |ty: &CqlType, parts: &mut dyn Iterator<Item = Option<&[u8]>>| -> Result<bool> {
        for found in parts.flatten() {
            if is_same(ty, found, with, work)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            any(element, &mut Elements::of_list(value))
        }
        CqlType::Map { key, .. } if keys => any(key, &mut Elements::of_map(value).step_by(2)),
        CqlType::Map { value: of, .. } => any(of, &mut Elements::of_map(value).skip(1).step_by(2)),
        _ => Ok(false),
    }
}
