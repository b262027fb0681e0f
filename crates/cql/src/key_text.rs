//! A partition key as Cassandra's messages and logs write it: its values between colons, texts without quotes.

use helenus_model::schema::Table;
use helenus_model::types::{CqlType, to_cql_literal};

/// The text of a serialised key.
pub fn partition_key_text(table: &Table, key: &[u8]) -> String {
    let value = |ty: &CqlType, bytes: &[u8]| match ty {
        CqlType::Text | CqlType::Ascii => String::from_utf8_lossy(bytes).into_owned(),
        ty => to_cql_literal(ty, Some(bytes)),
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
