//! How the rows of one file are laid out, resolved against the table that reads or writes them.
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
    /// Descending order.
    pub reversed: bool,
    /// Bytes of each value, `None` when values carry their length.
    pub fixed: Option<usize>,
}

/// A static or regular column as a file holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnLayout {
    /// Its number in the table; `None` when the table has no such column any more: its cells are passed over.
    pub id: Option<ColumnId>,
    /// Bytes of each value, `None` when values carry their length.
    pub fixed: Option<usize>,
    /// Stored as several cells with paths.
    pub multi_cell: bool,
    /// Cells at or before this were dropped, microseconds; `None` if the column never was.
    pub dropped_us: Option<i64>,
}

/// The static or the regular columns of a file, in the file's order.
#[derive(Clone, Debug, Default)]
pub struct ColumnSet {
    pub(super) columns: Vec<ColumnLayout>,
    /// Whether the numbers ascend in the file's order, so that decoded cells need no sorting.
    pub(super) ascending: bool,
    /// The columns once more if all are plain: of one cell each, in the table, never dropped, in order.
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
    /// From columns in the file's order.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// How the rows of one file are laid out.
#[derive(Clone, Debug)]
pub struct RowLayout {
    /// Smallest values, to which the numbers in rows are differences.
    pub base: EncodingStats,
    /// Clustering columns.
    pub clustering: Vec<ClusteringLayout>,
    /// Static columns.
    pub statics: ColumnSet,
    /// Regular columns.
    pub regulars: ColumnSet,
    /// Form of the deletion times of partitions, and how times that overflowed are read.
    pub deletion_times: DeletionTimeForm,
}

impl RowLayout {
    /// The layout of a file of this version that holds every column of `table`.
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

    /// The layout of a file of a version with this header, as `table` reads it. `file` is the component the header is from; `Corrupt`
    /// for a column that the table cannot place, or other clustering columns than the table's.
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

    /// Resolves a column of a file's header by name. `Err` says why the table cannot read it.
    pub fn resolve(
        table: &Table,
        name: &str,
        ty: &CqlType,
        is_static: bool,
    ) -> std::result::Result<ColumnLayout, &'static str> {
        let kind = if is_static { ColumnKind::Static } else { ColumnKind::Regular };
        let dropped = table.dropped.get(name);
        let dropped_us = dropped.map(|d| d.dropped_us);
        match table.column(name).filter(|column| column.kind == kind) {
            // Cassandra 3.0 knows only frozen user types and writes them without saying so (CASSANDRA-15035).
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
