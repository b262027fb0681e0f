//! Converts a predicate to storage terms: the rows of the table, the declared columns, and the limit.

use crate::error::Result;
use crate::family::{Family, Shape};
use helenus_model::cell::ColumnId;
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_wire::thrift::SliceRange;
use std::sync::Arc;

/// The wanted columns of a super column.
pub(crate) enum Within {
    /// Columns with these names.
    Names(Vec<Vec<u8>>),
    /// Columns between two byte-comparable positions.
    Between(Vec<u8>, Vec<u8>),
}

/// The columns that a read wants of each row.
pub(crate) struct Wanted {
    pub(crate) filter: Arc<ClusteringFilter>,
    pub(crate) reversed: bool,
    /// Declared columns by their index in the family, in the order of names.
    pub(crate) declared: Vec<usize>,
    /// Maximum number of columns, or of super columns if no super column is named.
    pub(crate) limit: u64,
    /// The wanted columns of a super column; `None`: complete super columns.
    pub(crate) within: Option<Within>,
}

impl Wanted {
    /// The declared columns, if nothing else is wanted.
    pub(crate) fn only_declared(&self, family: &Family) -> Option<Arc<[ColumnId]>> {
        let has_rows = !matches!(&*self.filter, ClusteringFilter::Names(names) if names.is_empty());
        let column = |index: &usize| family.declared.get(*index).map(|known| known.column);
        (!has_rows).then(|| self.declared.iter().filter_map(column).collect())
    }

    /// Undeclared columns only, which are rows of the table.
    fn undeclared(filter: ClusteringFilter) -> Wanted {
        let filter = Arc::new(filter);
        Wanted { filter, reversed: false, declared: Vec::new(), limit: u64::MAX, within: None }
    }

    /// Columns by name.
    pub(crate) fn names(family: &Family, super_column: Option<&[u8]>, names: &[&[u8]]) -> Result<Wanted> {
        let (mut within, mut all_declared) = (None, Vec::new());
        let mut positions = Vec::with_capacity(names.len());
        match (family.shape, super_column) {
            (Shape::Super, Some(super_column)) => {
                within = Some(Within::Names(names.iter().map(|name| name.to_vec()).collect()));
                positions.push(position(family.comparator_within(None), super_column)?);
            }
            _ => {
                let comparator = family.comparator_within(super_column);
                for name in names {
                    let position = position(comparator, name)?;
                    let declared = family.declared.iter().position(|declared| declared.position == position);
                    match declared.filter(|_| family.shape == Shape::Static) {
                        Some(declared) => all_declared.push(declared),
                        None => positions.push(position),
                    }
                }
            }
        }
        positions.sort_unstable();
        positions.dedup();
        all_declared.sort_unstable();
        all_declared.dedup();
        let wanted = Wanted::undeclared(ClusteringFilter::Names(positions));
        Ok(Wanted { within, declared: all_declared, ..wanted })
    }

    /// A single column, which may have been written before it was declared.
    pub(crate) fn one(family: &Family, super_column: Option<&[u8]>, name: &[u8]) -> Result<Wanted> {
        let mut wanted = Wanted::names(family, super_column, &[name])?;
        if !wanted.declared.is_empty() {
            let position = position(&family.comparator, name)?;
            wanted.filter = Arc::new(ClusteringFilter::Names(vec![position]));
        }
        Ok(wanted)
    }

    /// A complete super column.
    pub(crate) fn super_column(family: &Family, name: &[u8]) -> Result<Wanted> {
        let position = position(family.comparator_within(None), name)?;
        Ok(Wanted::undeclared(ClusteringFilter::Names(vec![position])))
    }

    /// A range of columns; `slice` is the range in storage terms.
    pub(crate) fn range(
        family: &Family,
        super_column: Option<&[u8]>,
        range: &SliceRange<'_>,
        slice: Slice,
    ) -> Result<Wanted> {
        let limit = u64::try_from(range.count).unwrap_or(0);
        if let (Shape::Super, Some(super_column)) = (family.shape, super_column) {
            let whole = Wanted::super_column(family, super_column)?;
            let within = Some(Within::Between(slice.start, slice.end));
            return Ok(Wanted { reversed: range.reversed, limit, within, ..whole });
        }
        Ok(Wanted { reversed: range.reversed, limit, ..Wanted::slices(family, vec![slice]) })
    }

    /// Slices, which are ascending and do not overlap, and the declared columns in them.
    pub(crate) fn slices(family: &Family, slices: Vec<Slice>) -> Wanted {
        let mut declared = Vec::new();
        if family.shape == Shape::Static {
            let is_within = |position: &[u8]| {
                slices.iter().any(|slice| &slice.start[..] <= position && position < &slice.end[..])
            };
            let within = family.declared.iter().enumerate().filter(|(_, known)| is_within(&known.position));
            declared.extend(within.map(|(index, _)| index));
        }
        let slices = slices.into_iter().filter(|slice| !slice.is_empty()).collect();
        Wanted { declared, ..Wanted::undeclared(ClusteringFilter::Slices(slices)) }
    }

    /// Whether a column of a super column is wanted. `position` returns its byte-comparable position.
    pub(crate) fn wants_within(&self, name: &[u8], position: impl FnOnce() -> Vec<u8>) -> bool {
        match &self.within {
            None => true,
            Some(Within::Names(names)) => names.iter().any(|wanted| wanted == name),
            Some(Within::Between(start, end)) => {
                let position = position();
                *start <= position && position < *end
            }
        }
    }
}

fn position(comparator: &crate::name::Comparator, name: &[u8]) -> Result<Vec<u8>> {
    let mut position = Vec::new();
    comparator.put_position(name, &mut position)?;
    Ok(position)
}
