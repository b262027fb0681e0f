//! The restrictions on one kind of column, by column (`RestrictionSet`).

use super::restriction::Restriction;
use crate::error::Result;
use helenus_model::schema::Column;
use std::cmp::Ordering;
use std::sync::Arc;

/// Restrictions, in the order of their columns.
#[derive(Clone, Debug, Default)]
pub(super) struct RestrictionSet {
    restrictions: Vec<Restriction>,
    /// Position and name of each restricted column, and the index of its restriction, sorted. A tuple is listed under
    /// each of its columns.
    by_column: Vec<((usize, Arc<str>), usize)>,
    only_equality_or_in: bool,
    has_in: bool,
}

/// Compares a key of the set with `column`.
fn order(key: &(usize, Arc<str>), column: &Column) -> Ordering {
    key.0.cmp(&column.position).then_with(|| (*key.1).cmp(&*column.name))
}

impl RestrictionSet {
    pub(super) fn new() -> RestrictionSet {
        RestrictionSet { only_equality_or_in: true, ..RestrictionSet::default() }
    }

    /// Adds a restriction and merges it with existing ones on its columns.
    ///
    /// # Errors
    /// They cannot be combined.
    pub(super) fn add(&mut self, restriction: Restriction) -> Result<()> {
        self.has_in |= restriction.is_in();
        self.only_equality_or_in &= restriction.is_in() || restriction.is_equal();
        let mut existing: Vec<usize> = Vec::new();
        for column in &restriction.columns {
            existing.extend(self.index_of(column).filter(|found| !existing.contains(found)));
        }
        if existing.is_empty() {
            self.place(&restriction.columns.clone(), restriction);
            return Ok(());
        }
        if let [only] = existing[..]
            && let Some(found) = self.restrictions.get_mut(only)
            && found.merge_contains(&restriction)
        {
            return Ok(());
        }
        let merged: Result<Vec<Restriction>> =
            existing.iter().map(|index| self.restrictions[*index].merge(&restriction)).collect();
        for merged in merged? {
            self.place(&restriction.columns, merged);
        }
        Ok(())
    }

    fn place(&mut self, columns: &[Column], restriction: Restriction) {
        self.restrictions.push(restriction);
        let index = self.restrictions.len() - 1;
        for column in columns {
            match self.by_column.binary_search_by(|(key, _)| order(key, column)) {
                Ok(at) => self.by_column[at].1 = index,
                Err(at) => self.by_column.insert(at, ((column.position, column.name.clone()), index)),
            }
        }
    }

    fn index_of(&self, column: &Column) -> Option<usize> {
        let at = self.by_column.binary_search_by(|(key, _)| order(key, column)).ok()?;
        self.by_column.get(at).map(|(_, index)| *index)
    }

    /// The restrictions in the order of their first columns; each tuple once.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Restriction> {
        let mut previous = None;
        self.by_column.iter().filter_map(move |(_, index)| {
            if previous.replace(*index) == Some(*index) { None } else { self.restrictions.get(*index) }
        })
    }

    /// Number of restricted columns.
    pub(super) fn len(&self) -> usize {
        self.by_column.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_column.is_empty()
    }

    /// The restriction on a column.
    pub(super) fn of(&self, column: &Column) -> Option<&Restriction> {
        self.index_of(column).and_then(|index| self.restrictions.get(index))
    }

    /// The restriction on the last column.
    pub(super) fn last(&self) -> Option<&Restriction> {
        self.by_column.last().and_then(|(_, index)| self.restrictions.get(*index))
    }

    /// Names of the restricted columns, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_column.iter().map(|((_, name), _)| name)
    }

    /// The next restricted column after this one.
    pub(super) fn name_after(&self, column: &Column) -> Option<&Arc<str>> {
        let at = self.by_column.partition_point(|(key, _)| order(key, column) != Ordering::Greater);
        self.by_column.get(at).map(|((_, name), _)| name)
    }

    pub(super) fn has_in(&self) -> bool {
        self.has_in
    }

    pub(super) fn has_slice(&self) -> bool {
        self.iter().any(Restriction::is_slice)
    }

    pub(super) fn has_contains(&self) -> bool {
        self.iter().any(Restriction::is_contains)
    }

    /// Whether only `=` and IN were added.
    pub(super) fn has_only_equality_or_in(&self) -> bool {
        self.only_equality_or_in
    }
}
