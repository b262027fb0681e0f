//! A whole WHERE clause: its restrictions by kind of column, and the rules for all of them together
//! (`StatementRestrictions`).

use super::index::{Chosen, Indexes};
use super::relation::{Typed, Typing, joined, text};
use super::restriction::{Restriction, Test, invalid};
use super::set::RestrictionSet;
use crate::analysis::{Markers, Scope};
use crate::error::{CqlError, Result};
use crate::syntax::ast::{Comparison, Relation, RelationKind};
use helenus_model::filter::{ClusteringFilter, Slice};
use helenus_model::schema::{Column, ColumnKind, IndexKind, Table};
use std::sync::Arc;

/// The parts of a SELECT that concern its WHERE clause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WhereClause<'a> {
    /// The relations.
    pub(crate) relations: &'a [Relation<'a>],
    /// Whether ALLOW FILTERING is given.
    pub(crate) allow_filtering: bool,
    /// Whether the table filters without ALLOW FILTERING: a virtual table.
    pub(crate) filters_implicitly: bool,
    /// Whether only static columns, and possibly partition key columns, are selected.
    pub(crate) only_statics: bool,
    /// ORDER BY .. ANN OF: also a restriction, and one that needs an index.
    pub(crate) nearest_to: Option<NearestTo<'a>>,
}

/// The vector column and whether its elements are floats, or the error in the ordering.
pub(crate) type NearestTo<'a> = std::result::Result<(&'a Column, bool), &'static str>;

/// The typed restrictions of a WHERE clause.
#[derive(Clone, Debug)]
pub(crate) struct Restrictions {
    pub(super) table: Arc<Table>,
    pub(super) partition: RestrictionSet,
    pub(super) token: Option<Test>,
    pub(super) clustering: RestrictionSet,
    pub(super) other: RestrictionSet,
    /// The filter for all rows of a partition, made once.
    pub(super) everything: Arc<ClusteringFilter>,
    is_key_range: bool,
    pub(super) indexes: Indexes,
    /// The indexes that can answer the clause, each with its restriction.
    pub(super) chosen: Vec<Chosen>,
    uses_index: bool,
    /// Whether rows are tested for the partition key, and for the clustering.
    tests: (bool, bool),
    /// Kind of the vector column of an ANN ordering.
    nearest_to: Option<ColumnKind>,
}

/// Cassandra's error for a query that needs filtering.
const REQUIRES_ALLOW_FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If you want to execute this query despite the performance unpredictability, use ALLOW FILTERING";

impl Restrictions {
    /// Types a clause and applies the rules for SELECT, except those that need the rest of the statement.
    ///
    /// # Errors
    /// Everything that Cassandra refuses, with its messages.
    pub(crate) fn prepare(
        clause: WhereClause<'_>,
        table: &Arc<Table>,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<Restrictions> {
        let mut found = Restrictions {
            table: table.clone(),
            partition: RestrictionSet::new(),
            token: None,
            clustering: RestrictionSet::new(),
            other: RestrictionSet::new(),
            everything: Arc::new(all_rows_filter(table)),
            is_key_range: false,
            indexes: Indexes::of(table),
            chosen: Vec::new(),
            uses_index: false,
            tests: (false, false),
            nearest_to: None,
        };
        let mut typing = Typing { table, scope, markers };
        for relation in clause.relations {
            refuse_unsupported(relation, &mut typing, table)?;
            match typing.relation(relation)? {
                Typed::Token(test) => found.add_token(test)?,
                Typed::Columns(restriction) => match restriction.first().kind {
                    ColumnKind::PartitionKey => found.partition.add(restriction)?,
                    ColumnKind::Clustering => found.add_clustering(restriction, clause.allow_filtering)?,
                    ColumnKind::Static | ColumnKind::Regular => found.other.add(restriction)?,
                },
            }
        }
        if let Some(nearest_to) = clause.nearest_to {
            let (column, _) = nearest_to.map_err(|refusal| CqlError::Invalid(refusal.to_owned()))?;
            found.check_unrestricted(column)?;
            found.nearest_to = Some(column.kind);
        }
        found.check(clause)?;
        Ok(found)
    }

    /// Refuses a relation on the vector column of an ANN ordering (`SingleRestriction.mergeWith`).
    fn check_unrestricted(&self, column: &Column) -> Result<()> {
        let name = &column.name;
        match self.other.of(column).map(|found| &found.test) {
            None => Ok(()),
            Some(Test::Equal(_)) => invalid(format!(
                "{name} cannot be restricted by more than one relation if it includes an Equal"
            )),
            Some(Test::In(_)) => {
                invalid(format!("{name} cannot be restricted by more than one relation if it includes a IN"))
            }
            Some(_) => invalid(format!(
                "Column \"{name}\" cannot be restricted by both an equality and an inequality relation"
            )),
        }
    }

    fn add_token(&mut self, test: Test) -> Result<()> {
        let merged = match (self.token.take(), test) {
            (None, test) => test,
            (Some(Test::Slice(start, end)), Test::Slice(other_start, other_end)) => {
                let names = joined(&self.table.partition_key, ", ");
                if start.is_some() && other_start.is_some() {
                    return invalid(format!(
                        "More than one restriction was found for the start bound on {names}"
                    ));
                }
                if end.is_some() && other_end.is_some() {
                    return invalid(format!(
                        "More than one restriction was found for the end bound on {names}"
                    ));
                }
                Test::Slice(start.or(other_start), end.or(other_end))
            }
            (Some(Test::Slice(..)), _) => {
                return invalid(format!(
                    "Columns \"{}\" cannot be restricted by both an equality and an inequality relation",
                    joined(&self.table.partition_key, ", ")
                ));
            }
            (Some(_), _) => {
                return invalid(format!(
                    "{} cannot be restricted by more than one relation if it includes an Equal",
                    joined(&self.table.partition_key, ", ")
                ));
            }
        };
        self.token = Some(merged);
        Ok(())
    }

    fn add_clustering(&mut self, new: Restriction, allow_filtering: bool) -> Result<()> {
        // This error is only returned if `new` can be merged with the restrictions on its own columns.
        let refused = self.clustering.last().filter(|_| !allow_filtering && !self.indexes.support(&new));
        let refused = refused.and_then(|last| {
            let (new_start, last_start) = (new.first(), last.first());
            if last.is_slice() && new_start.position > last_start.position {
                return Some(format!(
                    "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                    new_start.name, last_start.name
                ));
            }
            if new_start.position < last_start.position && new.is_slice() {
                let next = self.clustering.name_after(new_start).unwrap_or(&last_start.name);
                return Some(format!(
                    "PRIMARY KEY column \"{next}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                    new_start.name
                ));
            }
            None
        });
        self.clustering.add(new)?;
        refused.map_or(Ok(()), invalid)
    }

    fn check(&mut self, clause: WhereClause<'_>) -> Result<()> {
        let may_filter = clause.allow_filtering || clause.filters_implicitly;
        let any = |set: &RestrictionSet| set.iter().any(|restriction| self.indexes.support(restriction));
        let has_clustering_index = any(&self.clustering);
        let measured = clause.nearest_to.and_then(std::result::Result::ok);
        let has_index = has_clustering_index
            || any(&self.partition)
            || any(&self.other)
            || measured.is_some_and(|(column, _)| self.indexes.has_sai_of(column));
        if self.is_on_token() {
            self.is_key_range = true;
        }
        if self.token.is_none() && self.partition.is_empty() {
            self.is_key_range = true;
            self.uses_index = has_index;
        }
        if self.filters_partition_key() {
            if !may_filter && !has_index {
                return invalid(REQUIRES_ALLOW_FILTERING.to_owned());
            }
            self.is_key_range = true;
            self.uses_index = has_index;
        }
        self.tests.0 = self.uses_index || self.filters_partition_key();
        if clause.only_statics && !self.clustering.is_empty() {
            let text = "Cannot restrict clustering columns when selecting only static columns";
            return invalid(text.to_owned());
        }
        if self.clustering.has_contains() && !clause.allow_filtering && !has_index {
            let text =
                "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering";
            return invalid(text.to_owned());
        }
        if self.filters_clustering() && has_index {
            self.uses_index = true;
        } else if self.filters_clustering() && !clause.allow_filtering {
            for (column, restricted) in self.table.clustering.iter().zip(self.clustering.names()) {
                if column.name != *restricted {
                    return invalid(format!(
                        "PRIMARY KEY column \"{restricted}\" cannot be restricted as preceding column \"{}\" is not restricted",
                        column.name
                    ));
                }
            }
        }
        self.uses_index |= self.is_key_range && has_clustering_index;
        self.tests.1 = self.uses_index || self.filters_clustering();
        self.check_others(has_index, may_filter, measured)?;
        if self.uses_index {
            if self.key_has_in() {
                let text =
                    "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported";
                return invalid(text.to_owned());
            }
            self.chosen = self.indexes.choose(self.tested().into_iter());
        }
        Ok(())
    }

    /// The rules for columns outside the primary key.
    fn check_others(
        &mut self,
        has_index: bool,
        may_filter: bool,
        ann_column: Option<(&Column, bool)>,
    ) -> Result<()> {
        if let Some(measured) = ann_column {
            self.check_ann_ordering(measured)?;
        } else if self.other.is_empty() {
            return Ok(());
        } else if self.indexes.has_of_vector(self.other.iter()) {
            return invalid("Vector indexes only support ANN queries".to_owned());
        }
        if has_index {
            self.uses_index = true;
        } else if !may_filter {
            return invalid(REQUIRES_ALLOW_FILTERING.to_owned());
        }
        Ok(())
    }

    /// Checks what ORDER BY .. ANN OF needs: an index on the column, and on every restricted column outside the key.
    fn check_ann_ordering(&self, (column, of_floats): (&Column, bool)) -> Result<()> {
        const INDEXED_FILTERING: &str =
            "ANN ordering by vector requires all restricted column(s) to be indexed";
        if !of_floats {
            return invalid("ANN ordering is only supported on float vector indexes".to_owned());
        }
        if !self.indexes.has_of(column) {
            return invalid("ANN ordering by vector requires the column to be indexed".to_owned());
        }
        if self.filters_partition_key() {
            return invalid(INDEXED_FILTERING.to_owned());
        }
        let is_free =
            |restriction: &Restriction| restriction.columns.iter().any(|column| !self.indexes.has_of(column));
        let refused = self.other.iter().any(is_free)
            || self.clustering.iter().any(is_free)
                && (self.partition.len() < self.table.partition_key.len() || self.filters_clustering());
        if refused { invalid(INDEXED_FILTERING.to_owned()) } else { Ok(()) }
    }

    /// The restrictions that rows are tested for, by an index or after reading (`filterRestrictions`).
    fn tested(&self) -> Vec<&Restriction> {
        let partition = self.partition.iter().filter(|_| self.tests.0);
        let clustering = self.clustering.iter().filter(|_| self.tests.1);
        partition.chain(clustering).chain(self.other.iter()).collect()
    }

    /// Whether an index is used.
    pub(crate) fn uses_index(&self) -> bool {
        self.uses_index
    }

    /// The last check of a SELECT: whether it filters without ALLOW FILTERING (`checkNeedsFiltering`).
    ///
    /// # Errors
    /// It does.
    pub(crate) fn check_filtering(&self, clause: WhereClause<'_>) -> Result<()> {
        let tested = self.tested();
        let is_nearest = self.nearest_to.is_some();
        let filters = match tested.is_empty() && !is_nearest {
            true => !self.clustering.is_empty(),
            false => self.indexes.leave_to_filter(&tested, is_nearest),
        };
        if (self.is_key_range || self.uses_index)
            && filters
            && !clause.allow_filtering
            && !clause.filters_implicitly
        {
            return Err(CqlError::Invalid(REQUIRES_ALLOW_FILTERING.to_owned()));
        }
        Ok(())
    }

    /// Whether a range of partitions is read, instead of given keys.
    pub(crate) fn is_key_range(&self) -> bool {
        self.is_key_range
    }

    /// Whether the partition key has an IN.
    pub(crate) fn key_has_in(&self) -> bool {
        !self.is_on_token() && self.partition.has_in()
    }

    /// Whether the clustering has an IN.
    pub(crate) fn clustering_has_in(&self) -> bool {
        self.clustering.has_in()
    }

    /// Whether the partition key or its token is restricted.
    pub(crate) fn has_partition_key(&self) -> bool {
        self.token.is_some() || !self.partition.is_empty()
    }

    /// Whether a clustering column is restricted.
    pub(crate) fn has_clustering(&self) -> bool {
        !self.clustering.is_empty()
    }

    /// Whether restrictions on clustering columns bound the rows that are read, instead of only filtering them.
    pub(crate) fn has_clustering_bounds(&self) -> bool {
        self.clustering.iter().next().is_some_and(|first| !is_filtered(first, &mut 0))
    }

    /// Whether a static column is restricted.
    pub(crate) fn has_static(&self) -> bool {
        self.has_other_of(ColumnKind::Static)
    }

    /// Whether a regular column is restricted.
    pub(crate) fn has_regular(&self) -> bool {
        self.has_other_of(ColumnKind::Regular)
    }

    fn has_other_of(&self, kind: ColumnKind) -> bool {
        self.nearest_to == Some(kind) || self.other.iter().any(|restriction| restriction.first().kind == kind)
    }

    /// Whether a partition without rows yields a row of its static columns: only if all rows of each partition are
    /// requested.
    pub(crate) fn shows_statics_alone(&self) -> bool {
        self.clustering.is_empty() && (!self.has_regular() || self.table.is_static_compact())
    }

    /// Whether a column has `=`.
    pub(crate) fn is_equal(&self, column: &Column) -> bool {
        let set = match column.kind {
            ColumnKind::PartitionKey => &self.partition,
            ColumnKind::Clustering => &self.clustering,
            ColumnKind::Static | ColumnKind::Regular => &self.other,
        };
        set.of(column).is_some_and(Restriction::is_equal)
    }

    /// Whether the token determines which partitions are read. If every key column has a value, the keys determine them
    /// and the token only filters.
    pub(crate) fn is_on_token(&self) -> bool {
        let complete =
            self.partition.len() >= self.table.partition_key.len() && !self.filters_partition_key();
        self.token.is_some() && !complete
    }

    pub(super) fn filters_partition_key(&self) -> bool {
        let set = &self.partition;
        !set.is_empty()
            && (set.len() < self.table.partition_key.len() || set.has_slice() || set.has_contains())
    }

    pub(super) fn filters_clustering(&self) -> bool {
        let mut position = 0;
        self.clustering.iter().any(|restriction| is_filtered(restriction, &mut position))
    }
}

/// Whether a clustering restriction must be tested row by row. `position` is the number of columns that bounds express
/// so far.
pub(super) fn is_filtered(restriction: &Restriction, position: &mut usize) -> bool {
    if restriction.is_contains() || *position != restriction.first().position {
        return true;
    }
    if !restriction.is_slice() {
        *position = restriction.last().position + 1;
    }
    false
}

/// The rows of a partition if the statement restricts none. A compact table without clustering has only its static row
/// for CQL: its rows are columns of the Thrift interface that statements do not see
/// (`StatementRestrictions.getClusteringColumns`).
fn all_rows_filter(table: &Table) -> ClusteringFilter {
    let all = (!table.is_static_compact()).then(Slice::all);
    ClusteringFilter::Slices(all.into_iter().collect())
}

fn refuse_unsupported(relation: &Relation<'_>, typing: &mut Typing<'_, '_>, table: &Table) -> Result<()> {
    match &relation.kind {
        RelationKind::Custom(name, _) => match table.indexes.get(name.as_str()) {
            None => Ok(()),
            Some(index) if index.kind == IndexKind::Custom => {
                invalid(format!("Index {} does not support custom expressions", name.as_str()))
            }
            Some(_) => invalid(format!(
                "Only CUSTOM indexes may be used in custom index expressions, {} is not valid",
                name.as_str()
            )),
        },
        RelationKind::IsNotNull(_) => invalid(format!("Unsupported restriction: {}", text(relation))),
        RelationKind::Column { comparison: Comparison::Like, .. } => {
            typing.relation(relation)?;
            invalid(format!(
                "LIKE restriction is only supported on properly indexed columns. {} is not valid.",
                text(relation)
            ))
        }
        _ => Ok(()),
    }
}
