//! Estimates the memory of a prepared statement's columns: their names and the whole tree of each type.
//!
//! Called by `statement`, for those who keep statements up to a number of bytes. Clients choose the texts, and so how many columns a
//! statement has, and of which types: a user type has thousands of fields, each with a name. Every column of an answer is decoded for
//! itself, so nothing is shared between columns but the names of keyspace and table.

use std::mem::size_of;
use std::sync::Arc;

use helenus_model::types::{CqlType, UserType};
use helenus_wire::native::ColumnSpec;

/// What an allocation needs besides its bytes: the counters of an `Arc`, and what the allocator rounds up.
const ALLOCATION_BYTES: usize = 32;

/// The memory of columns, bytes.
pub(crate) fn columns_bytes(columns: &[ColumnSpec]) -> u64 {
    let mut before: Option<&ColumnSpec> = None;
    let mut bytes = 0;
    for column in columns {
        // The vector has grown by doubling.
        bytes += 2 * size_of::<ColumnSpec>() + text_bytes(&column.name) + parts_bytes(&column.ty);
        if before.is_none_or(|before| !Arc::ptr_eq(&before.table, &column.table)) {
            bytes += text_bytes(&column.keyspace) + text_bytes(&column.table);
        }
        before = Some(column);
    }
    bytes as u64
}

fn text_bytes(text: &str) -> usize {
    ALLOCATION_BYTES + text.len()
}

/// The memory of a type besides the value itself.
fn parts_bytes(ty: &CqlType) -> usize {
    let boxed = |ty: &CqlType| ALLOCATION_BYTES + size_of::<CqlType>() + parts_bytes(ty);
    match ty {
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            boxed(element)
        }
        CqlType::Map { key, value, .. } => boxed(key) + boxed(value),
        CqlType::Tuple(types) => {
            let parts = types.iter().map(|ty| size_of::<CqlType>() + parts_bytes(ty));
            ALLOCATION_BYTES + parts.sum::<usize>()
        }
        CqlType::Udt(udt) => {
            let of_field = 2 * size_of::<(Arc<str>, CqlType)>();
            let fields = udt.fields.iter().map(|(name, ty)| of_field + text_bytes(name) + parts_bytes(ty));
            let names = text_bytes(&udt.keyspace) + text_bytes(&udt.name);
            2 * ALLOCATION_BYTES + size_of::<UserType>() + names + fields.sum::<usize>()
        }
        CqlType::Custom(name) => text_bytes(name),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, ty: CqlType) -> ColumnSpec {
        ColumnSpec { keyspace: "k".into(), table: "t".into(), name: name.into(), ty }
    }

    #[test]
    fn names_and_the_whole_type_are_counted() {
        let plain = columns_bytes(&[column("a", CqlType::Int)]);
        let named = columns_bytes(&[column(&"a".repeat(50_000), CqlType::Int)]);
        assert!(named > plain + 49_000, "{named}");
        let fields: Vec<(Arc<str>, CqlType)> =
            (0..2_000).map(|number| (format!("field_{number}").into(), CqlType::Text)).collect();
        let udt = UserType { keyspace: "k".into(), name: "u".into(), fields, frozen: true };
        let udt = CqlType::Udt(Arc::new(udt));
        let with_fields = columns_bytes(&[column("a", udt.clone())]);
        let of_fields = 2_000 * (size_of::<(Arc<str>, CqlType)>() + "field_1".len()) as u64;
        assert!(with_fields > plain + of_fields, "{with_fields}");
        // Below other types too.
        let list = CqlType::List { element: Arc::new(udt.clone()), frozen: true };
        let tuple = CqlType::Tuple([list, udt.clone()].into());
        let map = CqlType::Map { key: Arc::new(udt), value: Arc::new(tuple), frozen: true };
        assert!(columns_bytes(&[column("a", map)]) > 3 * with_fields - 3 * plain);
        let custom = columns_bytes(&[column("a", CqlType::Custom("x".repeat(10_000).into()))]);
        assert!(custom > 10_000, "{custom}");
        assert_eq!(columns_bytes(&[]), 0);
    }
}
