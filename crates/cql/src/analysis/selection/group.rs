//! GROUP BY: the primary key columns that rows are grouped by (`SelectStatement.getAggregationSpecFactory`).

use super::node::{Finder, Node};
use super::selected::{Selected, Selection};
use super::source::Source;
use super::typing::Typing;
use crate::analysis::{Markers, restrictions::Restrictions};
use crate::error::{CqlError, Result};
use crate::functions::{Found, quoted_name};
use crate::syntax::ast::Selectable;
use helenus_model::schema::{Column, ColumnKind};
use helenus_model::types::CqlType;
use std::collections::HashSet;

/// How rows are grouped: by partition, by the first clustering columns, and possibly by a function of the next
/// clustering column.
#[derive(Clone, Debug)]
pub(crate) struct GroupBy {
    /// Types of the grouping clustering columns, without the function's argument.
    pub(crate) clustering: Vec<CqlType>,
    /// The function, and its return type.
    pub(crate) function: Option<(Selected, CqlType)>,
    /// Why the function cannot group rows. Told when the statement runs, not when it is prepared
    /// (`Selector.validateForGroupBy`).
    pub(crate) refusal: Option<String>,
}

fn invalid<T>(text: impl Into<String>) -> Result<T> {
    Err(CqlError::Invalid(text.into()))
}

/// GROUP BY of a SELECT.
pub(crate) struct GroupedBy<'a> {
    /// What it groups by; empty without GROUP BY.
    pub(crate) columns: &'a [Selectable<'a>],
    /// Whether the SELECT is DISTINCT.
    pub(crate) distinct: bool,
}

impl Selection {
    /// Adds GROUP BY, and lets values outside aggregates come from the first row of a group. With DISTINCT and without
    /// aggregates no group has a second row, so rows are returned as they are.
    ///
    /// # Errors
    /// Columns that are not in the order of the primary key, functions of other columns than a clustering column.
    pub(crate) fn group<'a>(
        &mut self,
        by: &'a GroupedBy<'a>,
        finder: Finder<'a, '_>,
        restrictions: &Restrictions,
        markers: &'a mut Markers,
    ) -> Result<()> {
        if !by.columns.is_empty() {
            self.group_by = Some(self.grouping(by.columns, finder, restrictions, markers)?);
        }
        if !self.aggregates.is_empty() || (self.group_by.is_some() && !by.distinct) {
            self.take_first();
        }
        Ok(())
    }

    fn grouping<'a>(
        &mut self,
        by: &'a [Selectable<'a>],
        finder: Finder<'a, '_>,
        restrictions: &Restrictions,
        markers: &'a mut Markers,
    ) -> Result<GroupBy> {
        const ORDER: &str = "Group by currently only support groups of columns following their declared order in the PRIMARY KEY";
        let table = finder.table;
        let mut typing = Typing {
            finder,
            markers,
            terms: std::mem::take(&mut self.terms),
            aggregates: Vec::new(),
            used: Vec::new(),
            used_names: Vec::new(),
            seen: HashSet::new(),
        };
        let mut key = table.partition_key.iter().chain(&table.clustering);
        let mut clustering = 0;
        let mut function = None;
        for selectable in by {
            let column = match finder.node(selectable)? {
                Node::Column(column) => {
                    if !matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
                        return invalid(format!(
                            "Group by is currently only supported on the columns of the PRIMARY KEY, got {}",
                            column.name
                        ));
                    }
                    if function.is_some() {
                        return invalid(
                            "Functions are only supported on the last element of the GROUP BY clause",
                        );
                    }
                    column
                }
                node @ Node::Call(..) => {
                    let (column, found) = typing.grouping_function(&node)?;
                    function = Some(found);
                    column
                }
                _ => return invalid("GROUP BY takes columns of the primary key and functions of them"),
            };
            loop {
                let Some(next) = key.next() else { return invalid(ORDER) };
                clustering += usize::from(next.kind == ColumnKind::Clustering);
                if next.name == column.name {
                    break;
                }
                if !restrictions.is_equal(next) {
                    return invalid(ORDER);
                }
            }
        }
        if key.next().is_some_and(|next| next.kind == ColumnKind::PartitionKey) {
            return invalid("Group by is not supported on only a part of the partition key");
        }
        let refusal = function.as_ref().and_then(|(selected, _)| not_monotonic(selected)).map(|function| {
            format!("Only monotonic functions are supported in the GROUP BY clause. Got: {function} ")
        });
        self.terms = typing.terms;
        clustering -= usize::from(function.is_some());
        let types = table.clustering.iter().take(clustering).map(|column| column.ty.clone());
        Ok(GroupBy { clustering: types.collect(), function, refusal })
    }
}

impl<'a> Typing<'a, '_> {
    /// Types a function of a clustering column; returns the column, and the function with its type.
    fn grouping_function(&mut self, node: &Node<'_>) -> Result<(&'a Column, (Selected, CqlType))> {
        if let Node::Call(found @ Found::Aggregate(_), _) = node {
            return invalid(format!(
                "Aggregate functions are not supported within the GROUP BY clause, got: {}",
                found.name()
            ));
        }
        self.used.clear();
        self.used_names.clear();
        let typed = self.typed(node, None)?;
        let column = match (&self.used[..], &self.used_names[..]) {
            ([_], [name]) => self.finder.table.column(name),
            ([], _) => {
                return invalid("GROUP BY functions must have one clustering column name as parameter");
            }
            (_, names) => {
                return invalid(format!(
                    "GROUP BY functions accept only one clustering column as parameter, got: {}",
                    names.join(",")
                ));
            }
        };
        let Some(column) = column.filter(|column| matches!(Source::of(column), Source::Clustering(_))) else {
            let name = self.used_names.first().map_or("", |name| name);
            return invalid(format!(
                "Group by functions are only supported on clustering columns, got {name}"
            ));
        };
        Ok((column, (typed.selected, typed.ty)))
    }
}

/// The text of an inner function that is not monotonic in its first argument, for the error.
fn not_monotonic(selected: &Selected) -> Option<String> {
    let Selected::Call(function, arguments) = selected else { return None };
    let is_monotonic =
        function.is_monotonic() && arguments.iter().skip(1).all(|part| matches!(part, Selected::Term(_)));
    if !is_monotonic {
        let argument = |(ty, part): (&CqlType, &Selected)| {
            let constant = if matches!(part, Selected::Term(_)) { "(constant)" } else { "" };
            format!("{ty}{constant}")
        };
        let types: Vec<String> = function.argument_types().iter().zip(arguments).map(argument).collect();
        let name = quoted_name(function.name());
        return Some(format!("{name} : ({}) -> {}", types.join(", "), function.return_type()));
    }
    arguments.iter().find_map(not_monotonic)
}
