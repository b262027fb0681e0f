//! The orders in which Cassandra lists static and regular columns, which differ from the order of the names' bytes.
//!
//! A row in an SSTable has no column names: its cells come in the order of columns that reader and writer agree on, so
//! another order here means values in other columns there.

use super::Column;
use std::cmp::Ordering;

/// Storage order of the static or the regular columns of a table (`ColumnMetadata.compareTo`): columns of one cell before
/// those of several, then by name.
pub(super) fn storage_order(a: &Column, b: &Column) -> Ordering {
    a.ty.is_multi_cell().cmp(&b.ty.is_multi_cell()).then_with(|| storage_order_of_names(&a.name, &b.name))
}

/// The name's part of the storage order: the first byte as a signed number, an empty name as if it began with a zero,
/// then all bytes unsigned. So every name that begins outside ASCII comes before every other.
///
/// `ColumnIdentifier.prefixComparison` is the first eight bytes with the highest bit inverted, which makes its signed order that
/// of the bytes; `ColumnMetadata.comparisonOrder` shifts it right by 16 bits, where the inverted bit is no sign any more.
fn storage_order_of_names(a: &str, b: &str) -> Ordering {
    first_byte(a).cmp(&first_byte(b)).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

/// The columns, which stand in storage order, in the order of `SELECT *` (`Columns.selectOrderIterator`): two lists are merged by
/// names, whose bytes count as signed, and neither list is sorted anew.
///
/// The second list begins at the first column that is not before one of several cells without a name (`Columns.findFirstComplexIdx`).
/// Names that begin outside ASCII are before that, so such columns of several cells stay in the first list, behind all others.
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

/// The first byte of a name as a signed number; zero of an empty one.
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

    // The orders that Cassandra 5.0.9 answers with.
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
