//! The layout of an index's hidden table.
//!
//! An entry is a row without cells; its marker has the timestamp and expiry of the indexed cell. Its clustering is the
//! position of the indexed partition in the ring (`byte_comparable::decorated_key`), then the indexed row's clustering
//! in its own order, then, for values of lists and maps, the path of the cell. So the entries of one value are in the
//! order of the indexed rows, and a search for one value is a sequential read.
//!
//! The partition key is the value in ordered encoding; a long value ends with a digest. An index that supports ranges
//! (storage-attached, of numbers, times and the like) has one partition for all entries, and the value in ordered
//! encoding is the first part of the clustering. So a range of values is a slice.
//!
//! Cassandra's own files of legacy indexes are sorted by the value's order and contain no position. The files of the
//! hidden table are not meant for Cassandra: it rebuilds an index whose files are missing (docs/decisions).

use super::analyzer::Analyzer;
use crate::byte_comparable::component;
use crate::cell::Cell;
use crate::row::RowView;
use crate::schema::{Column, ColumnKind, Index, IndexPart, Table};
use crate::types::{CqlType, TypeError};
use std::sync::Arc;

/// Maximum bytes of a term. A longer one is cut; in an unordered index it ends with a digest.
const TERM_BYTES_MAX: usize = 1024;
const DIGEST_BYTES: usize = 16;

/// Key of the only partition of an ordered index.
const ORDERED_KEY: [u8; 1] = [0];

/// An index with everything that is derived from its table.
#[derive(Debug)]
pub struct IndexLayout {
    /// The index.
    pub index: Arc<Index>,
    /// The indexed table.
    pub base: Arc<Table>,
    /// The indexed column.
    pub column: Column,
    /// The indexed part of the column.
    pub part: IndexPart,
    /// The transformation of values before they are compared.
    pub analyzer: Analyzer,
    /// The hidden table.
    pub table: Arc<Table>,
    /// Whether entries are in the order of their values.
    is_ordered: bool,
}

/// The name of an index's hidden table, as Cassandra names it.
fn index_table_name(table: &str, index: &str) -> String {
    format!("{table}.{index}")
}

impl IndexLayout {
    /// The shape of an index; `None` if its column is not there (a damaged schema).
    pub fn new(base: &Arc<Table>, index: &Arc<Index>) -> Option<IndexLayout> {
        let column = index.column(base)?.clone();
        let (part, _) = index.part();
        let is_vector = matches!(column.ty, CqlType::Vector { .. });
        let is_ordered = index.is_sai() && index.term_type(&column).is_some_and(has_ranges) || is_vector;
        let is_of_addresses = index.is_sai() && index.term_type(&column) == Some(&CqlType::Inet);
        let mut shape = IndexLayout {
            analyzer: if is_of_addresses { Analyzer::of_addresses() } else { Analyzer::of(&index.options) },
            table: base.clone(),
            index: index.clone(),
            base: base.clone(),
            column,
            part,
            is_ordered,
        };
        shape.table = Arc::new(shape.hidden_table());
        Some(shape)
    }

    fn hidden_table(&self) -> Table {
        let blob = |name| Column::new(name, ColumnKind::Clustering, CqlType::Blob);
        let mut clustering = Vec::new();
        if self.is_ordered {
            clustering.push(blob("value"));
        }
        clustering.push(blob("position"));
        if !self.is_of_partitions() {
            clustering.extend(self.base.clustering.iter().cloned());
        }
        if self.has_path() {
            clustering.push(blob("path"));
        }
        let name = index_table_name(&self.base.name, &self.index.name);
        let term = Column { kind: ColumnKind::PartitionKey, ..blob("term") };
        let columns = std::iter::once(term).chain(clustering);
        let mut table = Table::new((&self.base.keyspace, &name), self.index.id, columns);
        table.options.gc_grace_seconds = self.base.options.gc_grace_seconds;
        table
    }

    /// Whether entries refer to partitions and not to rows.
    pub fn is_of_partitions(&self) -> bool {
        Index::is_of_partitions(&self.column)
    }

    /// Whether ranges of values can be searched.
    pub fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Whether the path of a cell is part of its entry, because two cells of a row may hold the same value.
    pub fn has_path(&self) -> bool {
        self.part == IndexPart::Values
            && matches!(
                self.column.ty,
                CqlType::List { frozen: false, .. } | CqlType::Map { frozen: false, .. }
            )
    }

    /// The term of a value: its ordered encoding, as entries store it. `key` is given for an index on map entries.
    ///
    /// # Errors
    /// The value is not valid for the type.
    pub fn term(&self, key: Option<&[u8]>, value: &[u8]) -> Result<Vec<u8>, TypeError> {
        let mut term = Vec::with_capacity(value.len() + 4);
        if let (Some(key), CqlType::Map { key: key_type, value: value_type, .. }) = (key, &self.column.ty) {
            component((&**key_type, false), Some(key), &mut term)?;
            component((&**value_type, false), Some(value), &mut term)?;
        } else {
            let ty = self.index.term_type(&self.column).unwrap_or(&self.column.ty);
            let value = self.analyzer.apply(value);
            component((ty, false), Some(&value), &mut term)?;
        }
        if term.len() > TERM_BYTES_MAX {
            let digest = md5::compute(&term).0;
            term.truncate(if self.is_ordered { TERM_BYTES_MAX } else { TERM_BYTES_MAX - DIGEST_BYTES });
            if !self.is_ordered {
                term.extend_from_slice(&digest);
            }
        }
        Ok(term)
    }

    /// The term of a cell of the indexed column.
    pub fn cell_term(&self, row: RowView<'_>, cell: &Cell) -> Result<Vec<u8>, TypeError> {
        match (self.part, &self.column.ty) {
            (IndexPart::Entries, _) => self.term(Some(row.path(cell)), row.value(cell)),
            (IndexPart::Keys, _) => self.term(None, row.path(cell)),
            (_, CqlType::Set { frozen: false, .. }) => self.term(None, row.path(cell)),
            _ => self.term(None, row.value(cell)),
        }
    }

    /// Key of the hidden table's partition that holds the entries of a term.
    pub fn key_of(&self, term: &[u8]) -> Vec<u8> {
        if self.is_ordered { ORDERED_KEY.to_vec() } else { term.to_vec() }
    }

    /// The value of the indexed column in a partition key.
    pub fn key_part<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        if self.base.partition_key.len() == 1 {
            return Some(key);
        }
        let mut rest = key;
        for _ in 0..self.column.position {
            let (length, after) = rest.split_first_chunk::<2>()?;
            rest = after.get(usize::from(u16::from_be_bytes(*length)) + 1..)?;
        }
        let (length, after) = rest.split_first_chunk::<2>()?;
        after.get(..usize::from(u16::from_be_bytes(*length)))
    }
}

/// Whether a storage-attached index of this type supports ranges (`IndexTermType`: neither literal nor equality only).
fn has_ranges(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Varint
            | CqlType::Decimal
            | CqlType::Float
            | CqlType::Double
            | CqlType::Date
            | CqlType::Time
            | CqlType::Timestamp
            | CqlType::TimeUuid
            | CqlType::Inet
    )
}
