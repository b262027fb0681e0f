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
    let first = |name: &str| name.as_bytes().first().copied().unwrap_or(0).cast_signed();
    first(a).cmp(&first(b)).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

/// The columns, which stand in storage order, in the order of `SELECT *` (`Columns.selectOrderIterator`): those of one cell and
/// those of several are merged by their names, whose bytes count as signed. Neither list is sorted anew, so a list that
/// storage order and signed bytes put differently stays in storage order.
pub(super) fn select_order(columns: &[Column]) -> impl Iterator<Item = &Column> {
    let (simple, complex) = columns.split_at(columns.partition_point(|column| !column.ty.is_multi_cell()));
    let (mut simple, mut complex) = (simple.iter().peekable(), complex.iter().peekable());
    let signed = |column: &Column| -> Vec<i8> { column.name.bytes().map(u8::cast_signed).collect() };
    std::iter::from_fn(move || match (simple.peek(), complex.peek()) {
        (Some(one), Some(several)) if signed(several) < signed(one) => complex.next(),
        (Some(_), _) => simple.next(),
        (None, _) => complex.next(),
    })
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

    #[test]
    fn columns_of_several_cells_are_merged_in_by_signed_bytes() {
        let table = table(&["az", "aé", "b"], &["aa", "aü", "é"]);
        assert_eq!(names(table.regulars.iter()), ["az", "aé", "b", "é", "aa", "aü"]);
        let selected = names(table.columns_in_select_order());
        assert_eq!(selected, ["k", "é", "aa", "aü", "az", "aé", "b"]);
    }
}
