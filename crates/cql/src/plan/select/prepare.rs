//! From a parsed SELECT to its plan (`SelectStatement.RawStatement.prepare`).

use super::direct::DirectColumns;
use super::nearest::{Nearest, is_of_floats};
use super::sort::Sort;
use crate::analysis::restrictions::{NearestTo, Restrictions, WhereClause};
use crate::analysis::selection::{Finder, GroupedBy, Selection, Source};
use crate::analysis::{Markers, Receiver, Scope, Term, existing_column};
use crate::answer::ResultColumns;
use crate::budget::room_for;
use crate::error::{CqlError, Result};
use crate::plan::timeout::Timeout;
use crate::super_family;
use crate::syntax::ast::{self, Select, Statement, StatementKind};
use crate::syntax::print;
use crate::virtual_table::is_virtual_keyspace;
use helenus_engine::account;
use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::CqlType;
use std::sync::Arc;

/// An analysed SELECT.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    pub(super) table: Arc<Table>,
    pub(super) selection: Selection,
    /// The output columns, if none of them is computed.
    pub(super) direct: Option<DirectColumns>,
    pub(super) restrictions: Restrictions,
    pub(super) limit: Option<Term>,
    pub(super) per_partition_limit: Option<Term>,
    /// The order is against the clustering order.
    pub(super) reversed: bool,
    pub(super) distinct: bool,
    /// Rows of several partitions are sorted after they were read.
    pub(super) sort: Option<Sort>,
    /// The rows nearest to a vector are kept.
    pub(super) nearest: Option<Nearest>,
    /// The static row is read.
    pub(super) reads_statics: bool,
    /// The regular and static columns that are read, if each is known to have one value; `None`: all columns of the
    /// table.
    pub(super) cells: Option<Arc<[ColumnId]>>,
    /// The statement, for warnings.
    pub(super) text: Box<str>,
    /// The same with masked values, if the table has masked columns.
    masked: Option<Box<SelectPlan>>,
    /// `USING TIMEOUT`
    pub(crate) timeout: Option<Timeout>,
    /// `BYPASS CACHE`: blocks that it reads are not kept.
    pub(super) bypasses_cache: bool,
}

fn invalid<T>(text: impl Into<String>) -> Result<T> {
    Err(CqlError::Invalid(text.into()))
}

impl SelectPlan {
    /// Analyses a SELECT.
    ///
    /// # Errors
    /// Whatever is wrong with it, in Cassandra's words.
    pub(crate) fn prepare(
        select: &Select<'_>,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<SelectPlan> {
        let masks = !scope.table(&select.table)?.masks.is_empty();
        let of_masked = masks.then(|| markers.clone());
        let mut plan = SelectPlan::prepare_one(select, scope, (markers, false))?;
        if let Some(mut of_masked) = of_masked {
            let masked = SelectPlan::prepare_one(select, scope, (&mut of_masked, true))?;
            plan.masked = Some(Box::new(masked));
        }
        Ok(plan)
    }

    fn prepare_one(
        select: &Select<'_>,
        scope: &Scope<'_>,
        (markers, masks): (&mut Markers, bool),
    ) -> Result<SelectPlan> {
        let table = scope.table(&select.table)?;
        let only_statics = Selection::selects_only_statics(select, table, scope)?;
        super_family::check_relations(table, &select.filter)?;
        let ordering = Orderings::prepare(select, table, scope, markers)?;
        let clause = WhereClause {
            relations: &select.filter,
            allow_filtering: select.allow_filtering,
            filters_implicitly: is_virtual_keyspace(&table.keyspace),
            only_statics,
            nearest_to: ordering.nearest_to(),
        };
        let restrictions = Restrictions::prepare(clause, table, scope, markers)?;
        let mut selection = Selection::prepare(select, table, scope, markers)?;
        if masks {
            selection.mask(table, scope)?;
        }
        if select.distinct {
            check_distinct(select, table, (&selection, &ordering), &restrictions)?;
        }
        let by = GroupedBy { columns: &select.group_by, distinct: select.distinct };
        selection.group(&by, Finder { table, scope }, &restrictions, markers)?;
        let groups_by_rows = selection.group_by.as_ref();
        if groups_by_rows.is_some_and(|by| !by.clustering.is_empty() || by.function.is_some())
            && select.distinct
        {
            return invalid("Grouping on clustering columns is not allowed for SELECT DISTINCT queries");
        }
        if selection.is_aggregate() && select.per_partition_limit.is_some() {
            return invalid("PER PARTITION LIMIT is not allowed with aggregate queries.");
        }
        let Orderings { columns: ordering, mut nearest, .. } = ordering;
        let nearest = nearest.pop().map(|(_, nearest)| nearest);
        let mut reversed = false;
        if !ordering.is_empty() {
            if restrictions.uses_index() {
                return invalid("ORDER BY with 2ndary indexes is not supported, except for ANN queries.");
            }
            if restrictions.is_key_range() {
                return invalid(
                    "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.",
                );
            }
            reversed = is_reversed(&ordering, table, &restrictions)?;
        }
        restrictions.check_filtering(clause)?;
        let mut limit = |limit: &Option<ast::Term<'_>>, name| {
            let receiver = Receiver::named(table, name, CqlType::Int);
            limit.as_ref().map(|limit| Term::prepare(limit, &receiver, scope, markers)).transpose()
        };
        let (limit, per_partition_limit) =
            (limit(&select.limit, "[limit]")?, limit(&select.per_partition_limit, "[per_partition_limit]")?);
        let receiver = Receiver::named(table, Timeout::NAME, CqlType::Duration);
        let timeout = select.timeout.as_ref();
        let timeout =
            timeout.map(|term| Term::prepare(term, &receiver, scope, markers)).transpose()?.map(Timeout);
        let sort = (!ordering.is_empty() && restrictions.key_has_in())
            .then(|| Sort::new(ordering.iter().map(|(column, _)| *column), reversed));
        let reads_statics = !table.statics.is_empty()
            && (selection.uses_statics() || restrictions.has_static() || restrictions.shows_statics_alone());
        // A copy of the statement, and its text: no more than the request has of it already.
        room_for(usize::try_from(account::held()).unwrap_or(0))?;
        let text = print(&Statement { kind: StatementKind::Select(select.clone()), markers: Vec::new() });
        let direct = DirectColumns::of(&selection, table);
        let tests_cells = restrictions.has_regular() || restrictions.has_static();
        let cells = direct.as_ref().filter(|_| !tests_cells).map(|direct| direct.cells().collect());
        Ok(SelectPlan {
            table: table.clone(),
            text: text.into(),
            direct,
            cells,
            selection,
            restrictions,
            limit,
            per_partition_limit,
            reversed,
            distinct: select.distinct,
            sort,
            nearest,
            reads_statics,
            masked: None,
            timeout,
            bypasses_cache: select.bypass_cache,
        })
    }

    /// The plan for who sees masked values.
    pub(crate) fn masked(&self) -> &SelectPlan {
        self.masked.as_deref().unwrap_or(self)
    }

    /// The columns of the result.
    pub(crate) fn columns(&self) -> &Arc<ResultColumns> {
        &self.selection.result
    }

    /// The table it reads.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The number of columns in the table's partition key; 0 for a virtual table.
    pub(crate) fn key_columns(&self) -> usize {
        self.table.partition_key.len()
    }
}

/// The content of ORDER BY.
struct Orderings<'t> {
    /// The columns, and whether each is descending.
    columns: Vec<(&'t Column, bool)>,
    /// The columns ordered by ANN, each with its measure.
    nearest: Vec<(&'t Column, Nearest)>,
    /// Whether an ANN ordering is descending.
    farthest: bool,
}

impl<'t> Orderings<'t> {
    fn prepare(
        select: &Select<'_>,
        table: &'t Table,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<Orderings<'t>> {
        let mut found = Orderings { columns: Vec::new(), nearest: Vec::new(), farthest: false };
        for ordering in &select.order_by {
            let column = existing_column(table, &ordering.column)?;
            if let Some(vector) = &ordering.ann_of {
                let nearest = Nearest::prepare((table, column), vector, scope, markers)?;
                found.nearest.push((column, nearest));
                found.farthest |= ordering.descending;
                continue;
            }
            // A column that is named twice keeps its first position and its last direction.
            match found.columns.iter_mut().find(|(known, _)| known.name == column.name) {
                Some(known) => known.1 = ordering.descending,
                None => found.columns.push((column, ordering.descending)),
            }
        }
        Ok(found)
    }

    /// The column ordered by ANN, or why it cannot be (`addOrderingRestrictions`).
    fn nearest_to(&self) -> Option<NearestTo<'t>> {
        let (column, _) = self.nearest.first()?;
        Some(match (&self.nearest[..], self.columns.is_empty()) {
            ([_, _, ..], _) => Err("Cannot specify more than one ANN ordering"),
            (_, false) => Err("ANN ordering does not support any other ordering"),
            _ if self.farthest => Err("Descending ANN ordering is not supported"),
            _ => Ok((column, is_of_floats(&column.ty))),
        })
    }
}

/// Whether the requested order is the reverse of the clustering order.
fn is_reversed(ordering: &[(&Column, bool)], table: &Table, restrictions: &Restrictions) -> Result<bool> {
    let mut reversed = None;
    let mut next = 0;
    let mut agree = true;
    for (column, descending) in ordering {
        if column.kind != ColumnKind::Clustering {
            return invalid(format!(
                "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {}",
                column.name
            ));
        }
        while next != column.position {
            if !table.clustering.get(next).is_some_and(|skipped| restrictions.is_equal(skipped)) {
                return invalid(
                    "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY",
                );
            }
            next += 1;
        }
        next += 1;
        let backwards = *descending != column.reversed;
        agree &= *reversed.get_or_insert(backwards) == backwards;
    }
    if agree { Ok(reversed.unwrap_or(false)) } else { invalid("Unsupported order by relation") }
}

fn check_distinct(
    select: &Select<'_>,
    table: &Table,
    (selection, ordering): (&Selection, &Orderings<'_>),
    restrictions: &Restrictions,
) -> Result<()> {
    if select.per_partition_limit.is_some() {
        return invalid("PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries");
    }
    if restrictions.has_clustering() || restrictions.has_regular() {
        return invalid(
            "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.",
        );
    }
    let name_of = |source: &Source| match source {
        Source::Clustering(index) => table.clustering.get(*index).map(|column| &column.name),
        Source::Cell { id, is_static: false, .. } => table.column_by_id(*id).map(|column| &column.name),
        _ => None,
    };
    // The columns by which rows of several partitions are sorted are selected too.
    let sorted = ordering.columns.iter().filter(|_| restrictions.key_has_in());
    let sorted = sorted.map(|(column, _)| Source::of(column));
    let all = selection.used.iter().cloned().chain(sorted);
    if let Some(name) = all.into_iter().find_map(|source| name_of(&source)) {
        return invalid(format!(
            "SELECT DISTINCT queries must only request partition key columns and/or static columns (not {name})"
        ));
    }
    if !restrictions.is_key_range() {
        return Ok(());
    }
    let missing = table.partition_key.iter().find(|column| !selection.used.contains(&Source::of(column)));
    match missing {
        None => Ok(()),
        Some(column) => invalid(format!(
            "SELECT DISTINCT queries must request all the partition key columns (missing {})",
            column.name
        )),
    }
}
