//! Conditions that bounds cannot express, tested row by row (`RowFilter`).

use super::restriction::{Operand, Restriction, Test, invalid};
use super::statement::{Restrictions, is_filtered};
use crate::analysis::{Bindings, Bound, Term};
use crate::budget::RequestBudget;
use crate::error::Result;
use helenus_model::index::Analyzer;
use helenus_model::schema::{Column, ColumnKind};
use helenus_model::types::{CqlType, Elements};
use std::borrow::Cow;

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
    test: BoundTest,
    /// The index's transformation of values before comparison.
    analyzer: Option<Analyzer>,
}

#[derive(Debug)]
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
        expressions.push(Expression { column: column.clone(), test, analyzer: None });
    }

    /// Makes values of a column be compared as its index compares them.
    fn analyze(&mut self, column: &Column, analyzer: Analyzer) {
        let all = self.partition.iter_mut().chain(&mut self.row);
        for expression in all.filter(|expression| expression.column.name == column.name) {
            expression.analyzer = Some(analyzer);
        }
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
                let mut values = Vec::new();
                for value in candidates.bind_filter(bindings, column)? {
                    let Some(value) = value else { break };
                    values.push(value.into_owned());
                }
                values.sort_unstable_by(|a, b| column.ty.compare(a, b));
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
                    Bound::Bytes(bytes) => Ok(bytes.into_owned()),
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

fn not_null(value: super::restriction::Value<'_>, column: &Column) -> Result<Vec<u8>> {
    match value {
        Some(value) => Ok(value.into_owned()),
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
            if let Some(analyzer) = self.indexes.analyzer(restriction, restriction.first()) {
                filter.analyze(restriction.first(), analyzer);
            }
        }
        Ok(filter)
    }
}

/// Steps of work that are counted for a condition on a collection, because it visits the cells.
const COLLECTION_STEPS: usize = 64;

fn all_hold(expressions: &[Expression], found: &dyn ColumnAccess, work: &RequestBudget<'_>) -> Result<bool> {
    for expression in expressions {
        work.steps(if expression.column.ty.is_multi_cell() { COLLECTION_STEPS } else { 1 })?;
        if !expression.holds(found) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Expression {
    fn holds(&self, found: &dyn ColumnAccess) -> bool {
        let ty = match &self.column.ty {
            CqlType::Counter => &CqlType::BigInt,
            ty => ty,
        };
        if ty.is_multi_cell() {
            return self.holds_of_cells(found);
        }
        found.compare(&self.column, &mut |value| match &self.analyzer {
            Some(analyzer) => {
                // Addresses that an index finds in their IPv6 form must also be equal in their own bytes.
                (!analyzer.is_of_addresses() || self.test.holds(ty, value, Cow::Borrowed))
                    && self.test.holds(ty, &analyzer.apply(value), |with| analyzer.apply(with))
            }
            None => match &self.test {
                BoundTest::In(all) => all.binary_search_by(|with| ty.compare(with, value)).is_ok(),
                test => test.holds(ty, value, Cow::Borrowed),
            },
        })
    }

    fn holds_of_cells(&self, found: &dyn ColumnAccess) -> bool {
        let equal = |ty: &CqlType, a: &[u8], b: &[u8]| match &self.analyzer {
            Some(analyzer) => analyzer.apply(a) == analyzer.apply(b),
            None => ty.compare(a, b).is_eq(),
        };
        found.any_cell(&self.column, &mut |path, cell| match (&self.test, &self.column.ty) {
            (BoundTest::Contains(with), CqlType::Set { element, .. }) => equal(element, path, with),
            (BoundTest::Contains(with), CqlType::List { element, .. }) => equal(element, cell, with),
            (BoundTest::Contains(with), CqlType::Map { value, .. }) => equal(value, cell, with),
            (BoundTest::ContainsKey(with), CqlType::Map { key, .. }) => equal(key, path, with),
            (BoundTest::Entry(with_key, with_value), CqlType::Map { key, value, .. }) => {
                equal(key, path, with_key) && equal(value, cell, with_value)
            }
            _ => false,
        })
    }
}

impl BoundTest {
    /// `changed` transforms a value of the test before comparison; `value` is already transformed.
    fn holds<'w>(&'w self, ty: &CqlType, value: &[u8], changed: impl Fn(&'w [u8]) -> Cow<'w, [u8]>) -> bool {
        let compare = |with: &'w [u8]| ty.compare(value, &changed(with));
        match self {
            BoundTest::Equal(with) => compare(with).is_eq(),
            BoundTest::In(all) => all.iter().any(|with| compare(with).is_eq()),
            BoundTest::Greater(with, or_equal) => {
                if *or_equal {
                    compare(with).is_ge()
                } else {
                    compare(with).is_gt()
                }
            }
            BoundTest::Less(with, or_equal) => {
                if *or_equal {
                    compare(with).is_le()
                } else {
                    compare(with).is_lt()
                }
            }
            BoundTest::Contains(with) => frozen_contains(ty, value, with, false),
            BoundTest::ContainsKey(with) => frozen_contains(ty, value, with, true),
            // Conditions on entries of frozen maps are refused in the analysis.
            BoundTest::Entry(..) => false,
        }
    }
}

/// Whether two values are equal as Java objects; decimals of different scales are not.
fn is_same(ty: &CqlType, a: &[u8], b: &[u8]) -> bool {
    if has_decimals(ty) { a == b } else { ty.compare(a, b).is_eq() }
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

fn frozen_contains(ty: &CqlType, value: &[u8], with: &[u8], keys: bool) -> bool {
    let equal = |ty: &CqlType, found: Option<&[u8]>| found.is_some_and(|found| is_same(ty, found, with));
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            Elements::of_list(value).any(|found| equal(element, found))
        }
        CqlType::Map { key, value: value_type, .. } => {
            let mut parts = Elements::of_map(value);
            while let (Some(found_key), Some(found)) = (parts.next(), parts.next()) {
                if if keys { equal(key, found_key) } else { equal(value_type, found) } {
                    return true;
                }
            }
            false
        }
        _ => false,
    }
}
