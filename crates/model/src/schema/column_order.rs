//! The orders in which Cassandra lists static and regular columns; they differ from the byte order of the names.
//!
//! A row in an SSTable has no column names: its cells come in the order of columns that reader and writer agree on.
//! With another order values would be read as those of other columns.

use super::Column;
use std::cmp::Ordering;

/// Storage order of a table's static or regular columns (`ColumnMetadata.compareTo`): single-cell columns before
/// multi-cell ones, then by name.
pub(super) fn storage_order(a: &Column, b: &Column) -> Ordering {
    a.ty.is_multi_cell().cmp(&b.ty.is_multi_cell()).then_with(|| storage_order_of_names(&a.name, &b.name))
}

/// The storage order of names: by the first byte as a signed number (0 for an empty name), then by all bytes unsigned.
/// So a name that begins outside ASCII comes before every other.
///
/// The reason: `ColumnIdentifier.prefixComparison` is the first eight bytes with the highest bit inverted, so that its
/// signed order is that of the bytes. `ColumnMetadata.comparisonOrder` shifts it right by 16 bits, where the inverted
/// bit is no longer the sign.
fn storage_order_of_names(a: &str, b: &str) -> Ordering {
    first_byte(a).cmp(&first_byte(b)).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

/// Yields columns in storage order in the order of `SELECT *` (`Columns.selectOrderIterator`): merges two lists by
/// name, with bytes compared as signed; neither list is sorted again.
///
/// The second list begins at the first column that is not before a multi-cell column with an empty name
/// (`Columns.findFirstComplexIdx`). Names that begin outside ASCII are before it, so multi-cell columns with such names
/// stay at the end of the first list.
pub(super) fn select_order(columns: &[Column]) -> impl Iterator<Item = &Column> {
    let is_before = |column: &Column| !column.ty.is_multi_cell() || first_byte(&column.name) < 0;
    let (first, second) = columns.split_at(columns.partition_point(is_before));
    let (mut first, mut second) = (first.iter().peekable(), second.iter().peekable());
    let signed = |column: &Column| -> Vec<i8> { column.name.bytes().map(u8::cast_signed).collect() };
    std::iter::from_fn(move || match (first.peek(), second.peek()) {
        (Some(one), Some(other)) if signed(other) < signed(one) => second.next(),
        (Some(_), _) => first.next(),
        (None, _) => second.next(),
    })
}

/// The first byte of a name as a signed number; 0 for an empty name.
fn first_byte(name: &str) -> i8 {
    name.as_bytes().first().copied().unwrap_or(0).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::super::{ColumnKind, Table, TableId};
    use crate::types::CqlType;
    use std::sync::Arc;
    use uuid::Uuid;

    fn names<'a>(columns: impl Iterator<Item = &'a super::Column>) -> Vec<&'a str> {
        columns.map(|column| &*column.name).collect()
    }

    fn table(simple: &[&str], complex: &[&str]) -> Table {
        let set = CqlType::Set { element: Arc::new(CqlType::Int), frozen: false };
        let key = super::Column::new("k", ColumnKind::PartitionKey, CqlType::Int);
        let of = |name: &&str, ty: &CqlType| super::Column::new(name, ColumnKind::Regular, ty.clone());
        let columns = std::iter::once(key).chain(simple.iter().map(|name| of(name, &CqlType::Int)));
        let columns = columns.chain(complex.iter().map(|name| of(name, &set)));
        Table::new(("ks", "t"), TableId(Uuid::from_u128(1)), columns)
    }

    #[test]
    fn names_that_begin_outside_ascii_are_stored_first() {
        let table = table(&["a", "é", "z", "aé", "az", "", "日"], &[]);
        assert_eq!(names(table.regulars.iter()), ["é", "日", "", "a", "az", "aé", "z"]);
    }

    // The orders in which Cassandra 5.0.9 returns columns.
    #[test]
    fn columns_of_several_cells_are_merged_in_by_signed_bytes() {
        let selected = |simple: &[&str], complex: &[&str]| {
            let table = table(simple, complex);
            names(table.columns_in_select_order()).join(" ")
        };
        assert_eq!(selected(&["vÿ1"], &["ÿv0"]), "k vÿ1 ÿv0");
        assert_eq!(selected(&["ÿv1"], &["v0"]), "k ÿv1 v0");
        assert_eq!(selected(&["az", "aé", "b"], &["aa", "aü", "é"]), "k aa aü az aé b é");
        assert_eq!(selected(&["é1", "b", "日1"], &["é0", "a", "日0", "c"]), "k é1 日1 a b é0 日0 c");
    }
}
