//! A partition key as Cassandra's messages and logs write it: its values between colons, texts without quotes.

use crate::cost;
use helenus_model::schema::Table;
use helenus_model::types::{CqlType, to_cql_literal};

/// The most steps of work on the digits of a key's value that is shown with them. Beyond it stand its bytes.
const STEPS_MAX: usize = 1000;

/// The type by which a value of a key is shown: its own, or that of bytes if its digits take long.
pub(crate) fn shown_type<'t>(ty: &'t CqlType, value: &[u8]) -> &'t CqlType {
    if cost::text(ty, value) > STEPS_MAX { &CqlType::Blob } else { ty }
}

/// The text of a serialised key.
pub fn partition_key_text(table: &Table, key: &[u8]) -> String {
    let value = |ty: &CqlType, bytes: &[u8]| match ty {
        CqlType::Text | CqlType::Ascii => String::from_utf8_lossy(bytes).into_owned(),
        ty => to_cql_literal(shown_type(ty, bytes), Some(bytes)),
    };
    if let [only] = &table.partition_key[..] {
        return value(&only.ty, key);
    }
    let mut rest = key;
    let mut parts = Vec::new();
    for column in &table.partition_key {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { break };
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (bytes, after) = after.split_at(length);
        parts.push(value(&column.ty, bytes));
        rest = after.get(1..).unwrap_or_default();
    }
    parts.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::schema::{Column, ColumnKind, TableId};
    use uuid::Uuid;

    #[test]
    fn a_number_of_a_key_whose_digits_take_long_is_shown_by_its_bytes() {
        let text = |ty: CqlType, key: &[u8]| {
            let column = Column::new("k", ColumnKind::PartitionKey, ty);
            partition_key_text(&Table::new(("ks", "t"), TableId(Uuid::nil()), [column]), key)
        };
        assert_eq!(text(CqlType::Varint, &[7]), "7");
        assert!(!text(CqlType::Varint, &[7; 1000]).starts_with("0x"));
        for ty in [CqlType::Varint, CqlType::Decimal] {
            assert!(text(ty, &[7; 0xFFFF]).starts_with("0x0707"));
        }
        assert_eq!(text(CqlType::Text, &[b'a'; 0xFFFF]).len(), 0xFFFF);
    }
}
