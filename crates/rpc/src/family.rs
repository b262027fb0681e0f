//! A column family: the view of a table through Thrift RPC.
//!
//! | family | table | a column is |
//! |---|---|---|
//! | dynamic | compact, `dense`, one clustering column | a row: its clustering is the name |
//! | composite | compact, `dense` and `compound` | a row: the name is made of its clustering values |
//! | static | compact, neither | declared: a cell of the static row; any other: a row, as in a dynamic one |
//! | super | `super` | an entry of a map in the row of its super column, or a declared column of that row |
//!
//! Source: `LegacyLayout`, `CompactTables`, `CFMetaData` of Cassandra 3.11. Only CQL can use tables that are not
//! compact.

use crate::error::{Result, RpcError, invalid};
use crate::name::Comparator;
use helenus_model::byte_comparable::clustering_key;
use helenus_model::cell::ColumnId;
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::{CqlType, parse_text};
use std::sync::Arc;

/// The name of the map that holds a super column's undeclared columns (`SuperColumnCompatibility`).
pub(crate) const SUPER_COLUMN_MAP: &str = "";

/// The kinds of families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Dynamic,
    Composite,
    Static,
    Super,
}

/// A declared column.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    /// The serialised name.
    pub(crate) name: Vec<u8>,
    /// The byte-comparable position that a row with this name would have.
    pub(crate) position: Vec<u8>,
    pub(crate) column: ColumnId,
    pub(crate) ty: CqlType,
}

/// The RPC view of a table.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) table: Arc<Table>,
    pub(crate) shape: Shape,
    /// The comparator of column names; in a super family, of those within a super column.
    pub(crate) comparator: Comparator,
    /// The comparator of super column names; `None` if the family has no super columns.
    pub(crate) super_comparator: Option<Comparator>,
    /// The column that holds the values of undeclared columns.
    pub(crate) value: ColumnId,
    /// The type of those values.
    pub(crate) value_type: CqlType,
    /// The declared columns, ordered by name.
    pub(crate) declared: Vec<Declared>,
    pub(crate) counts: bool,
}

/// Whether a table is visible through RPC.
pub(crate) fn is_shown(table: &Table) -> bool {
    table.is_compact()
}

impl Family {
    /// The view of a table.
    ///
    /// # Errors
    /// `InvalidRequest` for a table that only CQL can use.
    pub(crate) fn new(table: &Arc<Table>) -> Result<Family> {
        let has = |flag: &str| table.flags.iter().any(|found| found == flag);
        let shape = match () {
            () if !table.is_compact() => {
                return invalid(format!(
                    "table {} is not one of COMPACT STORAGE: only CQL can read and write it, through the native protocol \
                     or execute_cql3_query",
                    table.name
                ));
            }
            () if has("super") => Shape::Super,
            () if !has("dense") => Shape::Static,
            () if has("compound") => Shape::Composite,
            () => Shape::Dynamic,
        };
        let damaged = || RpcError::Internal(format!("table {} has no value column", table.name));
        let value = match shape {
            Shape::Super => table.column(SUPER_COLUMN_MAP).ok_or_else(damaged)?,
            _ => table.compact_value().ok_or_else(damaged)?,
        };
        let (comparator, value_type) = match (&value.ty, shape) {
            (CqlType::Map { key, value, .. }, Shape::Super) => {
                (Comparator::Plain((**key).clone(), false), (**value).clone())
            }
            (_, Shape::Super) => return Err(damaged()),
            (ty, Shape::Composite) => (Comparator::composite(&table.clustering), ty.clone()),
            (ty, _) => {
                let clustering = table.clustering.first().ok_or_else(damaged)?;
                (Comparator::Plain(clustering.ty.clone(), clustering.reversed), ty.clone())
            }
        };
        let super_comparator = table.clustering.first().filter(|_| shape == Shape::Super);
        let super_comparator =
            super_comparator.map(|column| Comparator::Plain(column.ty.clone(), column.reversed));
        let mut family = Family {
            shape,
            comparator,
            super_comparator,
            value: value.id,
            value_type,
            declared: Vec::new(),
            counts: table.is_counter(),
            table: table.clone(),
        };
        family.declare();
        Ok(family)
    }

    fn declare(&mut self) {
        let kind = match self.shape {
            Shape::Static => ColumnKind::Static,
            Shape::Super => ColumnKind::Regular,
            Shape::Dynamic | Shape::Composite => return,
        };
        let Comparator::Plain(ty, reversed) = &self.comparator else { return };
        let mut declared = Vec::new();
        for column in self.table.columns_of(kind).iter().filter(|column| column.id != self.value) {
            let Some(name) = declared_name(ty, column) else { continue };
            let mut position = Vec::new();
            if clustering_key([Some(&name[..])], &[(ty, *reversed)], &mut position).is_ok() {
                declared.push(Declared { name, position, column: column.id, ty: column.ty.clone() });
            }
        }
        declared.sort_by(|a, b| a.position.cmp(&b.position));
        self.declared = declared;
    }

    /// The declared column with this name.
    pub(crate) fn declared(&self, name: &[u8]) -> Option<&Declared> {
        self.declared.iter().find(|declared| declared.name == name)
    }

    /// The type of the value of the column `name`.
    pub(crate) fn type_of(&self, name: &[u8]) -> &CqlType {
        self.declared(name).map_or(&self.value_type, |declared| &declared.ty)
    }

    /// The comparator of the names in a call. In a super family, these are names of super columns unless the call names
    /// one.
    pub(crate) fn comparator_within(&self, super_column: Option<&[u8]>) -> &Comparator {
        match (&self.super_comparator, super_column) {
            (Some(comparator), None) => comparator,
            _ => &self.comparator,
        }
    }

    /// Whether the family has super columns.
    pub(crate) fn is_super(&self) -> bool {
        self.shape == Shape::Super
    }
}

/// The serialised name of a declared column, whose name is kept as text.
pub(crate) fn declared_name(comparator: &CqlType, column: &Column) -> Option<Vec<u8>> {
    parse_text(comparator, &column.name).ok()
}
