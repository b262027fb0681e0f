//! The layout of the rows in one file, resolved against the table that reads or writes them.
//!
//! Source: Cassandra's `SerializationHeader`, `DeserializationHelper`.

use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::CqlType;

use crate::deletion_time::DeletionTimeForm;
use crate::error::{Error, Result};
use crate::statistics::{EncodingStats, Header, HeaderColumn};
use crate::version::Version;
use std::path::Path;

/// A clustering column.
#[derive(Clone, Debug)]
pub struct ClusteringLayout {
    /// Its type.
    pub ty: CqlType,
    /// Whether its order is descending.
    pub reversed: bool,
    /// Size of each value in bytes; `None` if the length is stored with the value.
    pub fixed: Option<usize>,
}

/// A static or regular column as a file stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnLayout {
    /// Its number in the table; `None` if the table no longer has the column, so that its cells are skipped.
    pub id: Option<ColumnId>,
    /// Size of each value in bytes; `None` if the length is stored with the value.
    pub fixed: Option<usize>,
    /// Whether it is stored as several cells with paths.
    pub multi_cell: bool,
    /// Cells with this timestamp (in microseconds) or an earlier one were dropped; `None` if the column never was.
    pub dropped_us: Option<i64>,
}

/// The static or the regular columns of a file, in the file's order.
#[derive(Clone, Debug, Default)]
pub struct ColumnSet {
    pub(super) columns: Vec<ColumnLayout>,
    /// Whether the column numbers ascend in the file's order, so that decoded cells need no sorting.
    pub(super) ascending: bool,
    /// The columns again, if all are plain: of one cell each, in the table, never dropped, in order of their numbers.
    pub(super) plain: Option<Vec<PlainColumn>>,
    /// The numbers of the columns, if all are plain.
    pub(super) plain_ids: Vec<ColumnId>,
}

/// A column of which every cell is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainColumn {
    pub(super) id: ColumnId,
    pub(super) fixed: Option<usize>,
}

impl ColumnSet {
    /// A set of columns, which are given in the file's order.
    pub fn new(columns: Vec<ColumnLayout>) -> ColumnSet {
        let ascending = columns.iter().filter_map(|c| c.id).is_sorted();
        let plain = |column: &ColumnLayout| {
            let id = column.id.filter(|_| !column.multi_cell && column.dropped_us.is_none())?;
            Some(PlainColumn { id, fixed: column.fixed })
        };
        let plain = columns.iter().map(plain).collect::<Option<Vec<_>>>().filter(|_| ascending);
        let plain_ids = plain.iter().flatten().map(|column| column.id).collect();
        ColumnSet { columns, ascending, plain, plain_ids }
    }

    /// Whether the set has no columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// The layout of the rows in one file.
#[derive(Clone, Debug)]
pub struct RowLayout {
    /// The smallest times and TTL, from which rows store differences.
    pub base: EncodingStats,
    /// Clustering columns.
    pub clustering: Vec<ClusteringLayout>,
    /// Static columns.
    pub statics: ColumnSet,
    /// Regular columns.
    pub regulars: ColumnSet,
    /// The encoding of the deletion times of partitions. It also decides how overflowed times are read.
    pub deletion_times: DeletionTimeForm,
}

impl RowLayout {
    /// The layout of a file of this version that has every column of `table`.
    pub fn of_table(table: &Table, base: EncodingStats, version: Version) -> RowLayout {
        let columns = |columns: &[Column]| {
            ColumnSet::new(columns.iter().map(|c| ColumnLayout::of_column(&c.ty, Some(c.id), None)).collect())
        };
        RowLayout {
            base,
            clustering: table.clustering.iter().map(ClusteringLayout::of_column).collect(),
            statics: columns(&table.statics),
            regulars: columns(&table.regulars),
            deletion_times: DeletionTimeForm::of(version),
        }
    }

    /// The layout of a file with this header and version, as `table` reads it. `file` is the component that the header
    /// comes from, for errors. `Corrupt` for a column that the table cannot read, or if the number of clustering
    /// columns differs from the table's.
    pub fn of_header(header: &Header, table: &Table, (version, file): (Version, &Path)) -> Result<RowLayout> {
        let corrupt = |problem: String| Error::Corrupt { file: file.to_owned(), offset: 0, problem };
        if header.clustering_types.len() != table.clustering.len() {
            let (found, expected) = (header.clustering_types.len(), table.clustering.len());
            return Err(corrupt(format!("{found} clustering columns where the table has {expected}")));
        }
        let columns = |columns: &[HeaderColumn], is_static| {
            let resolve = |column: &HeaderColumn| {
                let name = String::from_utf8_lossy(&column.name);
                let ty = CqlType::from_class_name(&column.type_name)
                    .map_err(|source| corrupt(format!("column {name}: {source}")))?;
                let resolved = ColumnLayout::resolve(table, &name, &ty, is_static);
                resolved.map_err(|problem| corrupt(format!("column {name} {problem}")))
            };
            columns.iter().map(resolve).collect::<Result<Vec<_>>>().map(ColumnSet::new)
        };
        Ok(RowLayout {
            base: header.encoding,
            clustering: table.clustering.iter().map(ClusteringLayout::of_column).collect(),
            statics: columns(&header.statics, true)?,
            regulars: columns(&header.regulars, false)?,
            deletion_times: DeletionTimeForm::of(version),
        })
    }

    /// The columns of one kind.
    pub(super) fn set(&self, is_static: bool) -> &ColumnSet {
        if is_static { &self.statics } else { &self.regulars }
    }
}

impl ClusteringLayout {
    fn of_column(column: &Column) -> ClusteringLayout {
        let ty = column.ty.clone();
        ClusteringLayout { fixed: ty.fixed_length(), ty, reversed: column.reversed }
    }
}

impl ColumnLayout {
    fn of_column(ty: &CqlType, id: Option<ColumnId>, dropped_us: Option<i64>) -> ColumnLayout {
        let multi_cell = ty.is_multi_cell();
        ColumnLayout { id, fixed: if multi_cell { None } else { ty.fixed_length() }, multi_cell, dropped_us }
    }

    /// Resolves a static or regular column of a file's header by name, within its kind. The error describes why the table cannot read it.
    pub fn resolve(
        table: &Table,
        name: &str,
        ty: &CqlType,
        is_static: bool,
    ) -> std::result::Result<ColumnLayout, &'static str> {
        let kind = if is_static { ColumnKind::Static } else { ColumnKind::Regular };
        let dropped = table.dropped.get(name);
        let dropped_us = dropped.map(|d| d.dropped_us);
        match table.column_of(kind, name) {
            // Cassandra 3.0 has only frozen user types, and does not write that they are frozen (CASSANDRA-15035).
            Some(column) if is_user_type(&column.ty) && is_user_type(ty) => {
                Ok(ColumnLayout::of_column(&column.ty, Some(column.id), dropped_us))
            }
            Some(column) if column.ty.is_multi_cell() != ty.is_multi_cell() => {
                Err("is stored as one value where the table has several cells, or the other way round")
            }
            Some(column) => Ok(ColumnLayout::of_column(ty, Some(column.id), dropped_us)),
            None if dropped.is_some() => Ok(ColumnLayout::of_column(ty, None, dropped_us)),
            None => Err("is not in the table and was never dropped from it"),
        }
    }
}

fn is_user_type(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Udt(_))
}
